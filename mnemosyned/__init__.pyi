# The public names, for type checkers. The module reads them here, and imports each at its first use.

from mnemosyned.assembly.embedded import AsyncMemory as AsyncMemory, Memory as Memory
from mnemosyned.client.asynchronous import AsyncClient as AsyncClient
from mnemosyned.client.blocking import Client as Client
from mnemosyned.conversation.budget import (
    Breakdown as Breakdown,
    TokenBudget as TokenBudget,
)
from mnemosyned.conversation.compaction import (
    MemoryConsolidator as MemoryConsolidator,
    should_compact as should_compact,
)
from mnemosyned.conversation.context import ContextManager as ContextManager
from mnemosyned.conversation.key_facts import extract_facts as extract_facts
from mnemosyned.conversation.memory_items import (
    ConsolidationTrigger as ConsolidationTrigger,
    MemoryItem as MemoryItem,
    consolidate_memories as consolidate_memories,
    extract_preservable_details as extract_preservable_details,
)
from mnemosyned.conversation.policies import (
    AutoPolicy as AutoPolicy,
    RoundsPolicy as RoundsPolicy,
)
from mnemosyned.conversation.sections import (
    PastSummary as PastSummary,
    Quoted as Quoted,
)
from mnemosyned.conversation.summary_message import sendable as sendable
from mnemosyned.errors import (
    BatchChanged as BatchChanged,
    CannotUndo as CannotUndo,
    ClockJumped as ClockJumped,
    ConfigInvalid as ConfigInvalid,
    ContentTooLarge as ContentTooLarge,
    DaemonBusy as DaemonBusy,
    DaemonUnreachable as DaemonUnreachable,
    DatabaseInUse as DatabaseInUse,
    DatabaseReplaced as DatabaseReplaced,
    DatabaseUnreachable as DatabaseUnreachable,
    EmbedderFailed as EmbedderFailed,
    EmptyContent as EmptyContent,
    FetchFailed as FetchFailed,
    ForeignDaemon as ForeignDaemon,
    ForeignOrigin as ForeignOrigin,
    IdTaken as IdTaken,
    InvalidRequest as InvalidRequest,
    InvalidText as InvalidText,
    InvalidTime as InvalidTime,
    LimitReached as LimitReached,
    MalformedJson as MalformedJson,
    MalformedRequest as MalformedRequest,
    MemoryBusy as MemoryBusy,
    MethodNotAllowed as MethodNotAllowed,
    MnemosynedError as MnemosynedError,
    ModelUnavailable as ModelUnavailable,
    NotFound as NotFound,
    NotPurged as NotPurged,
    PartlyDone as PartlyDone,
    SchemaTooNew as SchemaTooNew,
    ScopeMissing as ScopeMissing,
    SecretRefused as SecretRefused,
    ShuttingDown as ShuttingDown,
    SleepInProgress as SleepInProgress,
    StorageFailed as StorageFailed,
    SummarizerFailed as SummarizerFailed,
    TokenizerUnusable as TokenizerUnusable,
    Unauthorized as Unauthorized,
    UnknownVerb as UnknownVerb,
    WordsPruned as WordsPruned,
)
from mnemosyned.memory.consolidation import (
    CycleReport as CycleReport,
    CycleStatus as CycleStatus,
    GroupReport as GroupReport,
    GroupStatus as GroupStatus,
    LogEntry as LogEntry,
    Progress as Progress,
    Trigger as Trigger,
)
from mnemosyned.memory.injections import (
    BriefingEdit as BriefingEdit,
    Injection as Injection,
)
from mnemosyned.memory.listing import (
    ProjectTotals as ProjectTotals,
    SessionTotals as SessionTotals,
    SourceTotals as SourceTotals,
)
from mnemosyned.memory.values import (
    Acknowledged as Acknowledged,
    ActionKind as ActionKind,
    EndedStatement as EndedStatement,
    Episode as Episode,
    Hit as Hit,
    Learning as Learning,
    LearningKind as LearningKind,
    Line as Line,
    MemoryRecord as MemoryRecord,
    PreviewLine as PreviewLine,
    Revision as Revision,
    Tier as Tier,
    TierTotals as TierTotals,
    UndoableAction as UndoableAction,
)
from mnemosyned.text.details import Detail as Detail, DetailKind as DetailKind
from mnemosyned.verbs.conversation import (
    Assembled as Assembled,
    Briefed as Briefed,
    EditedLearning as EditedLearning,
    EndedLine as EndedLine,
    EndingList as EndingList,
    InjectionList as InjectionList,
    Learned as Learned,
    LearningList as LearningList,
    RatedInjection as RatedInjection,
    RemovedLearning as RemovedLearning,
    Shortened as Shortened,
    UndoneEnding as UndoneEnding,
)
from mnemosyned.verbs.listing import (
    DayList as DayList,
    Listed as Listed,
    ProjectList as ProjectList,
    SessionList as SessionList,
    SourceList as SourceList,
)
from mnemosyned.verbs.memories import (
    Edited as Edited,
    Expanded as Expanded,
    Got as Got,
    Pinned as Pinned,
    Recalled as Recalled,
    Remember as Remember,
    RememberedMany as RememberedMany,
    Tagged as Tagged,
)
from mnemosyned.verbs.retention import (
    BackedUp as BackedUp,
    Forgotten as Forgotten,
    Pruned as Pruned,
    Restored as Restored,
)
from mnemosyned.verbs.upkeep import (
    Event as Event,
    EventKind as EventKind,
    EventMemory as EventMemory,
    Logged as Logged,
    SleepStatus as SleepStatus,
    Stats as Stats,
    Undone as Undone,
    WatchedFolder as WatchedFolder,
    Watching as Watching,
)
from mnemosyned.version import __version__ as __version__
