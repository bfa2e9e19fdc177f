"""The verbs on a database file, without a daemon: `Memory`, and for asyncio `AsyncMemory`."""

from mnemosyned.library.blocking import Memory as Memory
