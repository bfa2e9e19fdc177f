"""Verbs of what agents are given: contexts, learnings, endings of statements, briefings, the ledger."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal, TypeVar

import msgspec
from msgspec import Meta

from mnemosyned.conversation.budget import Breakdown, MemoryPlace
from mnemosyned.memory import injections as ledger
from mnemosyned.memory.values import (
    DEFAULT_SESSION,
    EndedStatement,
    Learning,
    LearningKind,
    LearningScope,
)
from mnemosyned.verbs.listing import After
from mnemosyned.verbs.request import (
    NOT_EMPTY,
    ById,
    Name,
    Names,
    PageSize,
    ProjectKey,
    Question,
    Request,
    Reveal,
    RowList,
    Since,
    Until,
    doc,
)

R = TypeVar("R")

MESSAGES_MAX = 100_000
TOKENS_MAX = 100_000_000

Tokens = Annotated[int, Meta(ge=0, le=TOKENS_MAX)]
Fraction = Annotated[float, Meta(ge=0, le=1)]
Few = Annotated[int, Meta(ge=0, le=MESSAGES_MAX)]
Messages = Annotated[list[dict[str, Any]], Meta(max_length=MESSAGES_MAX)]
"""A conversation, oldest message first, in the form of OpenAI's or Anthropic's API, or plain."""


class Assembled(msgspec.Struct, frozen=True, kw_only=True):
    """The model's context; equal input gives an equal answer."""

    system: str
    """The system prompt, with `## Relevant Memory` and `## Past Learnings` where there are any."""
    messages: list[Any]
    """The messages to send to an API: summaries, the history that was kept, the new message."""
    tokens: Breakdown
    total: int
    """Tokens of all parts, at most the budget."""
    kept: list[int]
    """Positions among the messages given, from 0."""
    dropped: list[int]
    recalled: list[str]
    """Ids of the memories that are shown."""
    learnings: list[str]
    """Ids of the learnings that are shown."""
    orphans: list[int]
    """Positions of tool calls and results that came in without their other half."""


class _MessageRequest(Request[R], frozen=True):
    message: Annotated[str | dict[str, Any], doc("the new message to the model")]


class Context(_MessageRequest[Assembled], frozen=True, kw_only=True):
    """Assemble the model's context within a token budget.

    Memories that matter to the new message are quoted with date, speaker and source. Long tool
    results among the newest messages are shown in part where they would not fit. Nothing is stored.

    Raises `InvalidRequest` where the budget does not add up, or where what must stay exceeds it.
    """

    messages: Annotated[Messages, doc("the conversation so far, oldest first")] = (
        msgspec.field(default_factory=list)
    )
    system: Annotated[str, doc("the system prompt to extend")] = ""
    tools: Annotated[list[Any], doc("the tool definitions, for their tokens")] = (
        msgspec.field(default_factory=list)
    )
    session: Annotated[Names, doc("recall from this session only; repeatable")] = None
    source: Annotated[
        Names, doc("memories and learnings of this source only; repeatable")
    ] = None
    memory_place: Annotated[
        MemoryPlace,
        doc(
            "place of memories. system: in the system prompt; message: before the new "
            "message, which keeps prompt caches valid"
        ),
    ] = "system"
    total: Annotated[Tokens | None, doc("the whole context window, in tokens")] = None
    system_reserve: Annotated[
        Tokens | None, doc("tokens reserved for the system prompt")
    ] = None
    tools_reserve: Annotated[
        Tokens | None, doc("tokens reserved for tool definitions")
    ] = None
    memory_fraction: Annotated[
        Fraction | None,
        doc(
            "maximum share of the remaining tokens for recalled memories; by default "
            "that of the settings, and more if tokens are left unused"
        ),
    ] = None
    learnings_fraction: Annotated[
        Fraction | None,
        doc(
            "maximum share of the remaining tokens for learnings; by default that of the "
            "settings, and more if tokens are left unused"
        ),
    ] = None
    fresh_tail: Annotated[Few | None, doc("newest messages that are always kept")] = (
        None
    )


class Shortened(msgspec.Struct, frozen=True, kw_only=True):
    """A shortened conversation, and the ids that bring back what was taken out."""

    changed: bool
    messages: list[Any]
    """Kept messages unchanged; a summary has `metadata.kind == "summary"`."""
    policy: str
    counter: str
    """The counter of the tokens."""
    tokens_before: int
    tokens_after: int
    limit: int
    """The token limit that was applied, in the counter's tokens."""
    over_budget: bool
    """Whether what cannot be left out exceeds the limit by itself."""
    summaries: list[str] = msgspec.field(default_factory=list)
    """The text of each summary written."""
    expand: list[str] = msgspec.field(default_factory=list)
    """The id of each summary and stub; `expand` shows the exact words."""
    archived: list[str] = msgspec.field(default_factory=list)
    """Ids of the memories that hold the messages taken out or stubbed, oldest first."""
    orphans: list[int] = msgspec.field(default_factory=list)
    """Positions of tool calls and results that came in without their other half."""
    fallback_reason: str = ""
    """Why rules wrote a summary that a model was asked for."""


class _Messages(Request[R], frozen=True):
    messages: Annotated[Messages, doc("the conversation, oldest first")]


class Compact(_Messages[Shortened], frozen=True, kw_only=True):
    """Shorten a conversation that is near its token limit.

    Messages that are taken out are remembered word for word; `expand` shows them by the ids in the
    answer.

    Raises `InvalidRequest` and `StorageFailed`.
    """

    writes = True
    repeatable = True

    policy: Annotated[
        Literal["auto", "facts", "rounds"],
        doc(
            "how to shorten it. auto: summarize the oldest messages, facts: key facts "
            "in place of all but the newest; rounds: summarize the agent's work between user "
            "messages"
        ),
    ] = "auto"
    max_tokens: Annotated[
        Tokens | None, doc("the context window to fit, in tokens")
    ] = None
    threshold: Annotated[
        Fraction | None, doc("share of max_tokens above which auto and facts begin")
    ] = None
    keep_recent: Annotated[Few | None, doc("newest messages that are always kept")] = (
        None
    )
    reported_tokens: Annotated[
        Tokens | None, doc("the token count your API reported for these messages")
    ] = None
    force: Annotated[bool, doc("shorten even if it fits")] = False
    session: Annotated[Name, doc("the session of the conversation")] = DEFAULT_SESSION
    source: Annotated[Name | None, doc("source: an agent or a tool")] = None


LEARNING_CHARS_MAX = 2_000
Lesson = Annotated[
    str, Meta(max_length=LEARNING_CHARS_MAX, extra_json_schema=NOT_EMPTY)
]


class Learned(msgspec.Struct, frozen=True):
    """The learning as it was stored."""

    learning: Learning
    superseded: list[str]
    """Ids of older learnings that it contradicts and replaces."""


class _Lesson(Request[R], frozen=True):
    content: Annotated[Lesson, doc("the lesson, in one sentence")]


class Learn(_Lesson[Learned], frozen=True, kw_only=True):
    """Store an instruction or lesson for all later contexts.

    Standing instructions of users ("always", "never", "call me") are recognized without this.

    Raises `EmptyContent`, `InvalidText` and `SecretRefused`.
    """

    writes = True

    kind: Annotated[LearningKind, doc("the kind of learning")] = LearningKind.LESSON
    session: Annotated[Name, doc("session in which it was learned")] = DEFAULT_SESSION
    source: Annotated[Name | None, doc("source: an agent or a tool")] = None


class LearningList(RowList[Learning], frozen=True):
    """The learnings in force, newest first."""

    learnings: list[Learning]
    scopes: dict[str, LearningScope] = msgspec.field(default_factory=dict)
    """Where each of them applies, by its id: in the project it was said in, or everywhere."""
    projects: dict[str, str] = msgspec.field(default_factory=dict)
    """The project in which each of them was said, by its id; those of no project are left out."""
    edits: list[ledger.BriefingEdit] = msgspec.field(default_factory=list)
    """Those of them that a person pinned, dropped or reworded in briefings."""
    ended: dict[str, list[EndedStatement]] = msgspec.field(default_factory=dict)
    """What they state that no longer applies, and what newer memories state instead, by their ids."""
    next: str | None = None
    """The cursor of the next page, for `after`; null on the last one."""


class Learnings(Request[LearningList], frozen=True, kw_only=True):
    """List learnings, newest first.

    With `query`, a page may have fewer learnings than `limit` although another one follows.

    Raises `InvalidText`, and `InvalidRequest` if `after` is no cursor.
    """

    query: Annotated[
        Question | None, doc("only with all of these words, or parts of words")
    ] = None
    id: Annotated[
        Names, doc("only this learning, and the learnings that it replaced; repeatable")
    ] = None
    source: Annotated[Names, doc("only of this source; repeatable")] = None
    kind: Annotated[LearningKind | None, doc("only of this kind")] = None
    superseded: Annotated[bool, doc("include learnings that newer ones replaced")] = (
        False
    )
    limit: Annotated[PageSize, doc("maximum number of learnings")] = 100
    after: After = None


class EditedLearning(msgspec.Struct, frozen=True):
    """A learning that has new words."""

    id: str
    text: str
    """The words as they were stored, with secrets masked."""
    note: str = ""
    """Why the old words are not purged from the file yet; empty where they are."""


class EditLearning(ById[EditedLearning], frozen=True, kw_only=True):
    """Change the text of a learning.

    Raises `NotFound`, `EmptyContent`, `InvalidText` and `SecretRefused`.
    """

    writes = True

    text: Annotated[Lesson, doc("the new text")]


class RemovedLearning(msgspec.Struct, frozen=True):
    """A learning that was deleted."""

    id: str
    note: str = ""
    """Why its words are not purged from the file yet; empty where they are."""


class RemoveLearning(ById[RemovedLearning], frozen=True):
    """Delete a learning.

    Learnings that it had superseded are in force again.

    Raises `NotFound`.
    """

    writes = True
    deletes = True


class EndedLine(msgspec.Struct, frozen=True, kw_only=True):
    """A statement that a newer one ended."""

    id: str
    """The id of its memory."""
    by: str
    """The id of the newer memory."""
    reason: str
    """Why it ended: gone, changed, instead, now, corrected, or value for another value."""
    sentence: str
    """The sentence that ended, or the clause of it that did."""
    successor: str
    """The newer sentence."""
    at: datetime
    """Until when it applies: the time of the newer memory, or a later one that this names."""
    found_at: datetime
    undone: bool = False
    """Whether a person said that it still applies."""


class EndingList(RowList[EndedLine], frozen=True):
    """Ended statements, the last found first."""

    endings: list[EndedLine]
    next: str | None = None
    """The cursor of the next page, for `after`; null on the last one."""


class Endings(Request[EndingList], frozen=True, kw_only=True):
    """List statements that newer ones ended, newest first.

    Endings are found in the background, when new memories are read. This call first reads the
    memories that are still unread, for a few seconds at most, or with `at_once` only some of them. Ended
    statements are kept, and recall shows what applies now.

    Raises `StorageFailed`, and `InvalidRequest` if `after` is no cursor.
    """

    id: Annotated[
        Name | None, doc("only statements of this memory, and statements that it ended")
    ] = None
    undone: Annotated[
        bool | None, doc("only those that were undone; false: only those that were not")
    ] = None
    at_once: Annotated[bool, doc("do not wait until all new memories are read")] = False
    limit: Annotated[PageSize, doc("maximum number of statements")] = 100
    after: After = None
    reveal: Reveal = False


class UndoneEnding(msgspec.Struct, frozen=True):
    """A memory whose statements apply again, or no longer."""

    id: str
    changed: int
    """Number of endings that were undone, or are in force again."""


class UndoEnding(ById[UndoneEnding], frozen=True, kw_only=True):
    """Say that an ended statement still applies.

    All endings of the memory are undone until `redo`: these newer memories end none of its
    statements; later ones may.

    Raises `NotFound` if it has no ended statement.
    """

    writes = True

    redo: Annotated[bool, doc("mark the statements as ended again")] = False


Words = Annotated[str, Meta(max_length=2_000)]
Project = Annotated[
    ProjectKey | None, doc("only in this project, by its key in `projects`")
]


class InjectionList(RowList[ledger.Injection], frozen=True):
    """Injections, the newest first, and sums over all that are kept."""

    injections: list[ledger.Injection]
    totals: ledger.InjectionTotals = ledger.InjectionTotals()


class Injections(Request[InjectionList], frozen=True, kw_only=True):
    """List what agents were given and why, newest first.

    Each line has the reason for which it was chosen. Also listed is what a user said again although
    it was known and not given (`said_again`).

    Raises `InvalidTime`, and `InvalidRequest` if `after` is no id of an injection.
    """

    session: Annotated[Name | None, doc("only in this session")] = None
    project: Project = None
    since: Since = None
    until: Until = None
    outcome: Annotated[
        ledger.InjectionOutcome | None, doc("only with this outcome")
    ] = None
    limit: Annotated[PageSize, doc("maximum number of injections")] = 20
    after: Annotated[
        Name | None, doc("continue after a page: the `id` of its last injection")
    ] = None


class Briefed(RowList[ledger.InjectedLine], frozen=True):
    """The briefing of an agent at the start of a session, or what it gets with a prompt, line by line."""

    lines: list[ledger.InjectedLine]
    text: str = ""
    """The whole text as it is given."""
    tokens: int = 0
    """Its estimated tokens."""
    edits: list[ledger.BriefingEdit] = msgspec.field(default_factory=list)
    """The lines that were pinned, dropped or reworded, of every project."""
    missed: list[ledger.InjectedLine] = msgspec.field(default_factory=list)
    """With a prompt: lines that were left out, nearest first, each with the reason."""


class Briefing(Request[Briefed], frozen=True, kw_only=True):
    """Show what agents are given at a start or with a prompt.

    Without a project, that is what applies everywhere. A prompt is taken for the first of a new session,
    and nothing is stored. Then up to five lines that were left out are listed, too (`missed`).

    Raises `StorageFailed`.
    """

    project: Annotated[
        ProjectKey | None,
        doc("the project, by its key, as `mnem injections` shows it"),
    ] = None
    prompt: Annotated[
        str | None, doc("show what is given with this prompt, instead of at a start")
    ] = None


class EditBriefing(ById[ledger.BriefingEdit], frozen=True, kw_only=True):
    """Pin, drop or reword a line of briefings.

    A pinned line comes first. A dropped line is left out of starts and prompts. A reworded line has
    your text, with the id of its memory or learning. Fields that are not given do not change. The
    answer has the text only if it was given.

    Raises `NotFound`, `InvalidRequest`, `EmptyContent`, `InvalidText` and `SecretRefused`.
    """

    writes = True

    pin: Annotated[bool | None, doc("pin it, or take that back")] = None
    drop: Annotated[bool | None, doc("drop it, or take that back")] = None
    text: Annotated[
        Words | None, doc("the words to show; an empty text takes them back")
    ] = None


class RatedInjection(msgspec.Struct, frozen=True):
    """An injection that was rated."""

    id: str
    outcome: ledger.InjectionOutcome
    totals: ledger.InjectionTotals


class RateInjection(ById[RatedInjection], frozen=True, kw_only=True):
    """Say whether an injection was useful.

    The share of useful ones among the rated is the precision.

    Raises `NotFound`.
    """

    writes = True

    outcome: Annotated[
        Literal["useful", "not_useful", "unknown"],
        doc("how useful it was; unknown removes the rating"),
    ]
