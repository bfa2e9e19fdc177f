"""The verbs from Python, over the daemon's socket: `Client`, and for asyncio `AsyncClient`."""

from __future__ import annotations

TYPE_CHECKING = False
"""Type checkers take it for true; `typing`, which has it too, takes 10 ms to load."""

if TYPE_CHECKING:
    from mnemosyned.client.blocking import Client as Client


def __getattr__(name: str) -> object:
    """Return `Client`, imported at its first use: the shell client sends requests without it."""
    if name != "Client":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from mnemosyned.client.blocking import Client  # noqa: PLC0415 see the docstring

    return Client
