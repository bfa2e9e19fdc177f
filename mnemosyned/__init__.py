"""Memory for AI agents that remembers, sleeps and recalls, and loses nothing."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mnemosyned.client import Client
    from mnemosyned.domain.auto import AutoPolicy
    from mnemosyned.domain.budget import TokenBudget
    from mnemosyned.domain.compaction import MemoryConsolidator, should_compact
    from mnemosyned.domain.condensed import sendable
    from mnemosyned.domain.context import ContextManager
    from mnemosyned.domain.errors import MnemosynedError
    from mnemosyned.domain.items import (
        ConsolidationTrigger,
        MemoryItem,
        consolidate_memories,
        extract_preservable_details,
    )
    from mnemosyned.domain.keyfacts import extract_facts
    from mnemosyned.domain.quoting import PastSummary, Quoted
    from mnemosyned.domain.rounds import RoundsPolicy
    from mnemosyned.library import Memory
    from mnemosyned.verbs import Remember

__version__ = "0.1.0"
__all__ = [
    "AutoPolicy",
    "Client",
    "ConsolidationTrigger",
    "ContextManager",
    "Memory",
    "MemoryConsolidator",
    "MemoryItem",
    "MnemosynedError",
    "PastSummary",
    "Quoted",
    "Remember",
    "RoundsPolicy",
    "TokenBudget",
    "consolidate_memories",
    "extract_facts",
    "extract_preservable_details",
    "sendable",
    "should_compact",
]

_HOMES = {
    "AutoPolicy": "mnemosyned.domain.auto",
    "Client": "mnemosyned.client",
    "ConsolidationTrigger": "mnemosyned.domain.items",
    "ContextManager": "mnemosyned.domain.context",
    "Memory": "mnemosyned.library",
    "MemoryConsolidator": "mnemosyned.domain.compaction",
    "MemoryItem": "mnemosyned.domain.items",
    "MnemosynedError": "mnemosyned.domain.errors",
    "PastSummary": "mnemosyned.domain.quoting",
    "Quoted": "mnemosyned.domain.quoting",
    "Remember": "mnemosyned.verbs",
    "RoundsPolicy": "mnemosyned.domain.rounds",
    "TokenBudget": "mnemosyned.domain.budget",
    "consolidate_memories": "mnemosyned.domain.items",
    "extract_facts": "mnemosyned.domain.keyfacts",
    "extract_preservable_details": "mnemosyned.domain.items",
    "sendable": "mnemosyned.domain.condensed",
    "should_compact": "mnemosyned.domain.compaction",
}


def __getattr__(name: str) -> Any:  # noqa: ANN401
    """Load on first use: the shell client must not wait for the engine."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
