"""Memory for AI agents that remembers, sleeps and recalls, and loses nothing."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mnemosyned.client import Client
    from mnemosyned.domain.conversation.auto_policy import AutoPolicy
    from mnemosyned.domain.conversation.budget import TokenBudget
    from mnemosyned.domain.conversation.context import ContextManager
    from mnemosyned.domain.conversation.key_facts import extract_facts
    from mnemosyned.domain.conversation.memory_items import (
        ConsolidationTrigger,
        MemoryItem,
        consolidate_memories,
        extract_preservable_details,
    )
    from mnemosyned.domain.conversation.policy import MemoryConsolidator, should_compact
    from mnemosyned.domain.conversation.rounds_policy import RoundsPolicy
    from mnemosyned.domain.conversation.sections import PastSummary, Quoted
    from mnemosyned.domain.conversation.summary_message import sendable
    from mnemosyned.domain.errors import MnemosynedError
    from mnemosyned.library import Memory
    from mnemosyned.verbs.memories import Remember

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
    "AutoPolicy": "mnemosyned.domain.conversation.auto_policy",
    "Client": "mnemosyned.client",
    "ConsolidationTrigger": "mnemosyned.domain.conversation.memory_items",
    "ContextManager": "mnemosyned.domain.conversation.context",
    "Memory": "mnemosyned.library",
    "MemoryConsolidator": "mnemosyned.domain.conversation.policy",
    "MemoryItem": "mnemosyned.domain.conversation.memory_items",
    "MnemosynedError": "mnemosyned.domain.errors",
    "PastSummary": "mnemosyned.domain.conversation.sections",
    "Quoted": "mnemosyned.domain.conversation.sections",
    "Remember": "mnemosyned.verbs.memories",
    "RoundsPolicy": "mnemosyned.domain.conversation.rounds_policy",
    "TokenBudget": "mnemosyned.domain.conversation.budget",
    "consolidate_memories": "mnemosyned.domain.conversation.memory_items",
    "extract_facts": "mnemosyned.domain.conversation.key_facts",
    "extract_preservable_details": "mnemosyned.domain.conversation.memory_items",
    "sendable": "mnemosyned.domain.conversation.summary_message",
    "should_compact": "mnemosyned.domain.conversation.policy",
}


def __getattr__(name: str) -> Any:  # noqa: ANN401
    """Load on first use: the shell client must not wait for the engine."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
