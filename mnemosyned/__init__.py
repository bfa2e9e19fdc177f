"""Memory for AI agents that remembers, sleeps and recalls, and loses nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mnemosyned.version import __version__ as __version__

if TYPE_CHECKING:
    # The public API. What stands here is all that `dir(mnemosyned)` shows; see `__getattr__`.
    from mnemosyned.client import (
        Client as Client,
    )
    from mnemosyned.domain.consolidation import (
        CycleReport as CycleReport,
    )
    from mnemosyned.domain.consolidation import (
        CycleStatus as CycleStatus,
    )
    from mnemosyned.domain.consolidation import (
        GroupReport as GroupReport,
    )
    from mnemosyned.domain.consolidation import (
        GroupStatus as GroupStatus,
    )
    from mnemosyned.domain.consolidation import (
        LogEntry as LogEntry,
    )
    from mnemosyned.domain.consolidation import (
        Progress as Progress,
    )
    from mnemosyned.domain.consolidation import (
        Trigger as Trigger,
    )
    from mnemosyned.domain.conversation.auto_policy import (
        AutoPolicy as AutoPolicy,
    )
    from mnemosyned.domain.conversation.budget import (
        Breakdown as Breakdown,
    )
    from mnemosyned.domain.conversation.budget import (
        TokenBudget as TokenBudget,
    )
    from mnemosyned.domain.conversation.context import (
        ContextManager as ContextManager,
    )
    from mnemosyned.domain.conversation.key_facts import (
        extract_facts as extract_facts,
    )
    from mnemosyned.domain.conversation.memory_items import (
        ConsolidationTrigger as ConsolidationTrigger,
    )
    from mnemosyned.domain.conversation.memory_items import (
        MemoryItem as MemoryItem,
    )
    from mnemosyned.domain.conversation.memory_items import (
        consolidate_memories as consolidate_memories,
    )
    from mnemosyned.domain.conversation.memory_items import (
        extract_preservable_details as extract_preservable_details,
    )
    from mnemosyned.domain.conversation.policy import (
        MemoryConsolidator as MemoryConsolidator,
    )
    from mnemosyned.domain.conversation.policy import (
        should_compact as should_compact,
    )
    from mnemosyned.domain.conversation.rounds_policy import (
        RoundsPolicy as RoundsPolicy,
    )
    from mnemosyned.domain.conversation.sections import (
        PastSummary as PastSummary,
    )
    from mnemosyned.domain.conversation.sections import (
        Quoted as Quoted,
    )
    from mnemosyned.domain.conversation.summary_message import (
        sendable as sendable,
    )
    from mnemosyned.domain.errors import (
        BatchChanged as BatchChanged,
    )
    from mnemosyned.domain.errors import (
        CannotUndo as CannotUndo,
    )
    from mnemosyned.domain.errors import (
        ClockJumped as ClockJumped,
    )
    from mnemosyned.domain.errors import (
        ConfigInvalid as ConfigInvalid,
    )
    from mnemosyned.domain.errors import (
        ContentTooLarge as ContentTooLarge,
    )
    from mnemosyned.domain.errors import (
        DaemonBusy as DaemonBusy,
    )
    from mnemosyned.domain.errors import (
        DaemonUnreachable as DaemonUnreachable,
    )
    from mnemosyned.domain.errors import (
        DatabaseInUse as DatabaseInUse,
    )
    from mnemosyned.domain.errors import (
        DatabaseReplaced as DatabaseReplaced,
    )
    from mnemosyned.domain.errors import (
        EmbedderFailed as EmbedderFailed,
    )
    from mnemosyned.domain.errors import (
        EmptyContent as EmptyContent,
    )
    from mnemosyned.domain.errors import (
        FetchFailed as FetchFailed,
    )
    from mnemosyned.domain.errors import (
        ForeignDaemon as ForeignDaemon,
    )
    from mnemosyned.domain.errors import (
        IdTaken as IdTaken,
    )
    from mnemosyned.domain.errors import (
        InvalidRequest as InvalidRequest,
    )
    from mnemosyned.domain.errors import (
        InvalidText as InvalidText,
    )
    from mnemosyned.domain.errors import (
        InvalidTime as InvalidTime,
    )
    from mnemosyned.domain.errors import (
        MalformedJson as MalformedJson,
    )
    from mnemosyned.domain.errors import (
        MalformedRequest as MalformedRequest,
    )
    from mnemosyned.domain.errors import (
        MnemosynedError as MnemosynedError,
    )
    from mnemosyned.domain.errors import (
        ModelUnavailable as ModelUnavailable,
    )
    from mnemosyned.domain.errors import (
        NotFound as NotFound,
    )
    from mnemosyned.domain.errors import (
        NotPurged as NotPurged,
    )
    from mnemosyned.domain.errors import (
        PartlyDone as PartlyDone,
    )
    from mnemosyned.domain.errors import (
        SchemaTooNew as SchemaTooNew,
    )
    from mnemosyned.domain.errors import (
        SecretRefused as SecretRefused,
    )
    from mnemosyned.domain.errors import (
        ShuttingDown as ShuttingDown,
    )
    from mnemosyned.domain.errors import (
        SleepInProgress as SleepInProgress,
    )
    from mnemosyned.domain.errors import (
        StorageFailed as StorageFailed,
    )
    from mnemosyned.domain.errors import (
        SummarizerFailed as SummarizerFailed,
    )
    from mnemosyned.domain.errors import (
        TokenizerUnusable as TokenizerUnusable,
    )
    from mnemosyned.domain.errors import (
        UnknownVerb as UnknownVerb,
    )
    from mnemosyned.domain.errors import (
        WordsPruned as WordsPruned,
    )
    from mnemosyned.domain.learnings.learning import (
        Learning as Learning,
    )
    from mnemosyned.domain.learnings.learning import (
        LearningKind as LearningKind,
    )
    from mnemosyned.domain.memory import (
        Acknowledged as Acknowledged,
    )
    from mnemosyned.domain.memory import (
        Detail as Detail,
    )
    from mnemosyned.domain.memory import (
        DetailKind as DetailKind,
    )
    from mnemosyned.domain.memory import (
        Episode as Episode,
        MemoryRecord as MemoryRecord,
    )
    from mnemosyned.domain.memory import (
        Tier as Tier,
    )
    from mnemosyned.domain.memory import (
        TierTotals as TierTotals,
    )
    from mnemosyned.domain.retention import (
        Foreseen as Foreseen,
    )
    from mnemosyned.domain.search.query import (
        Hit as Hit,
    )
    from mnemosyned.domain.search.query import (
        Line as Line,
    )
    from mnemosyned.library import (
        Memory as Memory,
    )
    from mnemosyned.verbs.conversation import (
        Assembled as Assembled,
    )
    from mnemosyned.verbs.conversation import (
        Learned as Learned,
    )
    from mnemosyned.verbs.conversation import (
        LearningList as LearningList,
    )
    from mnemosyned.verbs.conversation import (
        Shortened as Shortened,
    )
    from mnemosyned.verbs.memories import (
        Expanded as Expanded,
    )
    from mnemosyned.verbs.memories import (
        Got as Got,
    )
    from mnemosyned.verbs.memories import (
        Logged as Logged,
    )
    from mnemosyned.verbs.memories import (
        Recalled as Recalled,
    )
    from mnemosyned.verbs.memories import (
        Remember as Remember,
    )
    from mnemosyned.verbs.memories import (
        RememberedMany as RememberedMany,
    )
    from mnemosyned.verbs.memories import (
        SleepStatus as SleepStatus,
    )
    from mnemosyned.verbs.memories import (
        Stats as Stats,
    )
    from mnemosyned.verbs.retention import (
        BackedUp as BackedUp,
    )
    from mnemosyned.verbs.retention import (
        Forgotten as Forgotten,
    )
    from mnemosyned.verbs.retention import (
        Pinned as Pinned,
    )
    from mnemosyned.verbs.retention import (
        Pruned as Pruned,
    )
    from mnemosyned.verbs.retention import (
        Restored as Restored,
    )

if not TYPE_CHECKING:  # type checkers read the block above, and refuse a misspelled name
    from functools import cache
    from importlib import import_module

    @cache
    def _homes() -> dict[str, str]:
        """The module of each public name, as the block above says it."""
        import ast  # noqa: PLC0415 who imports a module by its own name never needs it

        source = __spec__.loader.get_source(__name__)
        public = next(part for part in ast.parse(source).body if isinstance(part, ast.If))
        return {name.name: part.module for part in public.body for name in part.names}

    def __dir__() -> list[str]:
        return [*_homes(), "__version__"]

    def __getattr__(name: str) -> object:
        """Load a public name at its first use: the shell client must not wait for the engine."""
        if name == "__all__":
            return __dir__()
        if name.startswith("_") or name not in _homes():
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = globals()[name] = getattr(import_module(_homes()[name]), name)
        return value
