"""The verbs from Python, over the daemon's socket: `Client`, and for asyncio `AsyncClient`."""
