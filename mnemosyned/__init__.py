"""Memory for AI agents that remembers, sleeps and recalls, and loses nothing."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mnemosyned.client import Client
    from mnemosyned.domain.errors import MnemosynedError
    from mnemosyned.library import Memory
    from mnemosyned.verbs import Remember

__version__ = "0.1.0"
__all__ = ["Client", "Memory", "MnemosynedError", "Remember"]

_HOMES = {
    "Client": "mnemosyned.client",
    "Memory": "mnemosyned.library",
    "MnemosynedError": "mnemosyned.domain.errors",
    "Remember": "mnemosyned.verbs",
}


def __getattr__(name: str) -> Any:  # noqa: ANN401
    """Load on first use: the shell client must not wait for the engine."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
