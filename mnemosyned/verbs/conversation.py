"""The verbs of an agent's window: contexts, compactions, and what was learned for good."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from mnemosyned.domain.conversation.budget import Breakdown, MemoryPlace
from mnemosyned.domain.learnings.learning import Learning, LearningKind
from mnemosyned.domain.memory import DEFAULT_SESSION
from mnemosyned.verbs.request import Name, Names, PageSize, Request

MESSAGES_MAX = 100_000
TOKENS_MAX = 100_000_000

Tokens = Annotated[int, Meta(ge=0, le=TOKENS_MAX)]
Fraction = Annotated[float, Meta(ge=0, le=1)]
Few = Annotated[int, Meta(ge=0, le=MESSAGES_MAX)]
Messages = Annotated[list[dict[str, Any]], Meta(max_length=MESSAGES_MAX)]
"""Of a conversation, oldest first, as an API takes them: OpenAI's form, Anthropic's, or plain."""

LEARNING_CHARS_MAX = 2_000
Lesson = Annotated[str, Meta(max_length=LEARNING_CHARS_MAX)]


class Assembled(msgspec.Struct, frozen=True, kw_only=True):
    """What should be in the window now; equal input gives an equal answer."""

    system: str
    """The system prompt with `## Relevant Memory` and `## Past Learnings`, where there are some."""
    messages: list[Any]
    """What an API is to be sent: summaries, what was kept of the history, the new message."""
    tokens: Breakdown
    total: int
    over_budget: bool
    """Whether what must be there is itself more than the budget."""
    kept: list[int]
    """Positions among the messages given, from 0."""
    dropped: list[int]
    recalled: list[str]
    """Ids of the memories that are shown."""
    learnings: list[str]
    """Ids of the learnings that are shown."""
    orphans: list[int]
    """Positions of tool calls and results that came in without their other half."""


class Context(Request[Assembled], frozen=True, forbid_unknown_fields=True):
    """Put together what should be in the model's window now, within a budget of tokens.

    Memories are recalled for the new message, quoted with date, speaker and source; what users
    said to hold is brought up without being asked. Nothing is stored.
    """

    message: Annotated[
        str | dict[str, Any], Meta(description="what is said to the model now")
    ]
    messages: Annotated[
        Messages, Meta(description="the conversation so far, oldest first")
    ] = msgspec.field(default_factory=list)
    system: Annotated[str, Meta(description="the system prompt to enrich")] = ""
    tools: Annotated[
        list[Any], Meta(description="definitions of the tools, to be counted")
    ] = msgspec.field(default_factory=list)
    session: Annotated[
        Names, Meta(description="recall from this session only, or these")
    ] = None
    source: Annotated[
        Names,
        Meta(description="recall, and take learnings, from this source only, or these"),
    ] = None
    memory_place: Annotated[
        MemoryPlace,
        Meta(
            description="system prompt, or before the new message, which caches prefer"
        ),
    ] = "system"
    total: Annotated[Tokens | None, Meta(description="the whole window, in tokens")] = (
        None
    )
    system_reserve: Annotated[
        Tokens | None, Meta(description="kept for the system prompt")
    ] = None
    tools_reserve: Annotated[
        Tokens | None, Meta(description="kept for tool definitions")
    ] = None
    memory_fraction: Annotated[
        Fraction | None, Meta(description="recalled memory's share")
    ] = None
    learnings_fraction: Annotated[
        Fraction | None, Meta(description="the learnings' share")
    ] = None
    fresh_tail: Annotated[
        Few | None, Meta(description="newest messages that always stay")
    ] = None


class Shortened(msgspec.Struct, frozen=True, kw_only=True):
    """A conversation made shorter, and how to get back what was taken out."""

    changed: bool
    messages: list[Any]
    """The kept ones as they were given; a summary has `metadata.kind == "summary"`."""
    policy: str
    counter: str
    """Who counted the tokens."""
    tokens_before: int
    tokens_after: int
    limit: int
    """What it was held to, in the counter's tokens."""
    over_budget: bool
    """Whether what must stay is itself more than the limit."""
    summaries: list[str] = msgspec.field(default_factory=list)
    """The text of each summary written."""
    expand: list[str] = msgspec.field(default_factory=list)
    """Ids with which `expand` brings the exact words back: of each summary and stub."""
    archived: list[str] = msgspec.field(default_factory=list)
    """Ids of the memories that hold the messages taken out or stubbed, oldest first."""
    orphans: list[int] = msgspec.field(default_factory=list)
    """Positions of tool calls and results that came in without their other half."""
    fallback_reason: str = ""
    """Why a rule wrote a summary that a model was asked for."""


class Compact(Request[Shortened], frozen=True, forbid_unknown_fields=True):
    """Make a conversation shorter where it is near its limit, and lose nothing.

    What is taken out is remembered, word for word; the answer says how to `expand` it.
    """

    writes = True

    messages: Annotated[Messages, Meta(description="the conversation, oldest first")]
    policy: Annotated[
        Literal["auto", "facts", "rounds"],
        Meta(
            description="auto; facts: key facts instead of all but the newest; rounds: tell what "
            "the agent did between the user's messages"
        ),
    ] = "auto"
    max_tokens: Annotated[Tokens | None, Meta(description="the window it must fit")] = (
        None
    )
    threshold: Annotated[
        Fraction | None, Meta(description="of max_tokens, where auto and facts begin")
    ] = None
    keep_recent: Annotated[
        Few | None, Meta(description="newest messages that stay")
    ] = None
    reported_tokens: Annotated[
        Tokens | None, Meta(description="what your API said these messages take")
    ] = None
    force: Annotated[bool, Meta(description="do it although it would fit")] = False
    session: Annotated[Name, Meta(description="the conversation it is")] = (
        DEFAULT_SESSION
    )
    source: Annotated[
        Name | None, Meta(description="whose it is: an agent, a tool")
    ] = None


# ----------------------------------------------------------------- learnings


class Learned(msgspec.Struct, frozen=True):
    """The learning as it is kept."""

    learning: Learning
    superseded: list[str]
    """Ids of older learnings that it contradicts and takes the place of."""


class Learn(Request[Learned], frozen=True, forbid_unknown_fields=True):
    """Keep a lesson for good: it goes into every context of its source.

    What users say to hold ("always", "never", "call me") is kept without being asked.
    """

    writes = True

    content: Annotated[Lesson, Meta(description="the lesson, in one sentence")]
    kind: Annotated[LearningKind, Meta(description="what it is")] = LearningKind.LESSON
    session: Annotated[Name, Meta(description="where it was learned")] = DEFAULT_SESSION
    source: Annotated[
        Name | None, Meta(description="whose it is: an agent, a tool")
    ] = None


class LearningList(msgspec.Struct, frozen=True):
    """What holds, newest first."""

    learnings: list[Learning]
    note: str = ""
    """What is not finished yet, such as the purge of former words on a full disk."""


class Learnings(Request[LearningList], frozen=True, forbid_unknown_fields=True):
    """Show what was learned for good, newest first; edit one, or remove it."""

    writes = True

    source: Annotated[Names, Meta(description="only of this source, or these")] = None
    kind: Annotated[LearningKind | None, Meta(description="only of this kind")] = None
    superseded: Annotated[
        bool, Meta(description="also what newer ones took the place of")
    ] = False
    limit: Annotated[PageSize, Meta(description="how many at most")] = 100
    edit: Annotated[
        Name | None, Meta(description="the id of one to give other words")
    ] = None
    text: Annotated[Lesson | None, Meta(description="the other words")] = None
    remove: Annotated[Name | None, Meta(description="the id of one to delete")] = None
