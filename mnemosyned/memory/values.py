"""Values of memory: its fields in one table, memories, episodes, tiers, tags, hits and status.

Rows, edits, filters, exports and forgetting read the table of fields. A test compares the records
of a memory, an export and an edit with it, and passes every field through each of these ways.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Literal

from mnemosyned import errors, instants
from mnemosyned.text.details import Detail

DEFAULT_SESSION = "default"


class Tier(StrEnum):
    """Tier that keeps a memory."""

    WORKING = "working"
    EPISODIC = "episodic"
    ARCHIVE = "archive"


MEMBER_FIELD = "member"
"""The name of the member who wrote a memory of a group, in its metadata."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryRecord:
    """One memory, word for word, in working memory or the archive."""

    id: str
    content: str
    created_at: datetime
    """When it happened, as an aware UTC instant."""
    session: str = DEFAULT_SESSION
    source: str | None = None
    role: str = ""
    importance: float = 0.5
    pinned: bool = False
    metadata: Mapping[str, Any] = field(default_factory=dict)
    tier: Tier = Tier.WORKING
    episode: str | None = None
    """The episode it went into, once it has left the working tier."""
    valid_until: datetime | None = None
    """Past this instant it is not recalled."""
    superseded_at: datetime | None = None
    """When a newer memory took its place."""
    superseded_by: str | None = None
    """The newer one's id; None where that one was forgotten."""
    pruned_at: datetime | None = None
    """When the archive's retention gave its words up."""
    tags: tuple[str, ...] = ()
    edited_at: datetime | None = None
    """When it was last edited; `get` shows its earlier words on request."""

    @property
    def lasting(self) -> bool:
        """Whether a summary may mention the memory: it is not superseded and does not expire."""
        return self.valid_until is None and self.superseded_at is None

    @property
    def member(self) -> Any:  # noqa: ANN401 metadata may have any value
        """The member who wrote it, if it is of a group: two members who say "I" are two people."""
        return self.metadata.get(MEMBER_FIELD)


@dataclass(frozen=True, slots=True, kw_only=True)
class Episode:
    """A summary with its provenance."""

    id: str
    content: str
    created_at: datetime
    session: str
    source: str | None
    level: int
    """0 episode, 1 day, 2 week, 3 month."""
    item_count: int
    """Originals under it, at whatever depth."""
    covers_from: datetime
    covers_until: datetime
    summarizer: str
    summary_of: tuple[str, ...] = ()
    """Ids of what it was made from, oldest first: originals, above level 0 summaries."""
    parent: str | None = None
    """The day, week or month it was rolled up into."""
    period_from: datetime | None = None
    """Midnight UTC of the first day of the day, week or month, in the daemon's zone, that it summarizes."""
    tier: Tier = Tier.EPISODIC
    details: tuple[Detail, ...] = ()
    """The exact values of its originals, oldest original first; of a day, week or month, those of
    its first 500 episodes."""


class LearningKind(StrEnum):
    """The kind of a learning: agents state lessons; the others are a user's own words."""

    INSTRUCTION = "instruction"
    PREFERENCE = "preference"
    NAME = "name"
    LESSON = "lesson"


class LearningScope(StrEnum):
    """The scope of a learning."""

    PROJECT = "project"
    """In the project in which it was said."""
    EVERYWHERE = "everywhere"


@dataclass(frozen=True, slots=True, kw_only=True)
class Learning:
    """A lesson, instruction or preference, in the words it was stated in."""

    id: str
    kind: LearningKind
    text: str
    created_at: datetime
    session: str
    source: str | None = None
    """The source it applies to, in every session."""
    memory: str | None = None
    """Id of the memory it was recognized in; none if an agent stated it."""
    superseded_by: str | None = None
    """The newer learning that contradicts it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Revision:
    """A memory as it was until it was edited."""

    changed_at: datetime
    text: str | None = None
    """The earlier words; None where the edit left them alone, or dropped them."""
    fields: Mapping[str, Any] = field(default_factory=dict)
    """The other fields that changed, with their earlier values."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Acknowledged:
    """Answer to a request to store one memory, once it is on disk."""

    id: str
    created_at: datetime
    stored: bool
    """False if the memory was known: by its id, by its text with `dedupe`, or because it was `forgotten`."""
    secrets: Literal["", "kept", "masked"] = ""
    """How secrets in the text were treated; empty if it has none."""
    forgotten: bool = False
    """True if the memory was captured or imported before and then forgotten: it stays forgotten."""


@dataclass(frozen=True, slots=True)
class TierTotals:
    """Totals of a tier: entries and characters."""

    count: int
    characters: int
    oldest: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PreviewLine:
    """A memory that would be changed or deleted, as a preview shows it."""

    id: str
    tier: Tier
    created_at: datetime
    session: str
    role: str
    snippet: str


TAG_CHARS_MAX = 100
TAGS_MAX = 100
"""Tags of one memory."""
_HIDDEN_KINDS = frozenset({"Cc", "Cf", "Cs", "Co", "Cn"})
_JOINERS = "\u200c\u200d"
"""Characters without a shape of their own that words of some scripts, and emoji, need."""


def tag_name(given: str, *, field: str = "tags") -> str:
    """Return the stored form of a tag: lower case, single spaces, no leading `#`.

    `given` is the tag as the user wrote it. Raises `InvalidRequest`, which names `field`, if it is
    empty, too long, or has a comma or invisible characters.
    """
    name = unicodedata.normalize("NFC", given.strip().removeprefix("#").lower())
    name = " ".join(name.split())
    if not name:
        raise errors.InvalidRequest(f"{field}: a tag must not be empty", field=field)
    if "," in name:
        raise errors.InvalidRequest(
            f"{field}: a tag must not contain a comma; a comma separates tags",
            field=field,
        )
    if any(
        character not in _JOINERS and unicodedata.category(character) in _HIDDEN_KINDS
        for character in name
    ):
        raise errors.InvalidRequest(
            f"{field}: a tag must not contain invisible characters", field=field
        )
    if len(name) > TAG_CHARS_MAX:
        raise errors.InvalidRequest(
            f"{field}: a tag must have at most {TAG_CHARS_MAX} characters", field=field
        )
    return name


def tag_names(given: Iterable[str], *, field: str = "tags") -> tuple[str, ...]:
    """Return the stored forms of tags, sorted and distinct. Raises `InvalidRequest`, which names `field`."""
    names = sorted({tag_name(name, field=field) for name in given})
    if len(names) > TAGS_MAX:
        raise errors.InvalidRequest(
            f"{field}: a memory has at most {TAGS_MAX} tags", field=field
        )
    return tuple(names)


class SummarizerState(StrEnum):
    """Who writes the next summary."""

    RULES = "rules"
    """No model is configured."""
    MODEL = "model"
    FALLBACK = "fallback"
    """A model is configured and left alone for a while, or for good."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SummarizerStatus:
    """The summarizer in force as `status` shows it, with its counts since the start."""

    name: str
    reason: str
    """Why it is in force, in one sentence."""
    state: SummarizerState = SummarizerState.RULES
    accepted: int = 0
    """Summaries of the model that were kept."""
    retried: int = 0
    """Groups the model was asked twice about, as its first answer was not kept."""
    rejected: int = 0
    """Groups of which no answer of the model was kept."""
    fallbacks: int = 0
    """Extractive summaries in place of the model's, for any reason."""


class EmbedderState(StrEnum):
    """Whether recall uses semantic search too."""

    OFF = "off"
    """No model is configured."""
    LOADING = "loading"
    READY = "ready"
    UNAVAILABLE = "unavailable"


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbedderStatus:
    """The embedding model as `status` shows it."""

    state: EmbedderState = EmbedderState.OFF
    name: str = ""
    reason: str = ""
    """Why it is unavailable, or which model replaces its vectors, in one sentence."""
    embedded: int = 0
    """Memories that have a vector of this model."""
    searched: int = 0
    """Those of them that are found without a word in common: the newest, where memory is full."""
    failed: int = 0
    """Memories it made no vector of since the start; the next start tries them again."""
    missed: int = 0
    """Questions answered by words alone since the start, as it was not ready in time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentActivity:
    """Activity of one client's hooks on one kind of event."""

    client: str
    event: str
    calls: int
    stored: int
    """Memories stored."""
    characters: int
    """Characters injected into the agent's context."""
    failures: int
    mean_ms: float
    slowest_ms: float
    called_at: datetime
    """When it was last called."""
    stored_at: datetime | None = None
    """When it last stored something."""
    informed_at: datetime | None = None
    """When a text was last injected."""
    failed_at: datetime | None = None
    failure: str = ""
    """Why it last failed."""


@dataclass(frozen=True, slots=True)
class Recoverable:
    """Forgotten memories that can still be restored."""

    memories: int = 0
    final_at: datetime | None = None
    """When the first of them is final."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EndedStatement:
    """A sentence of a memory that no longer applies, or a clause of it, and its newer successor."""

    at: datetime
    """Until when it applies: the time of the newer memory, or a later one that this names."""
    by: str
    """The id of the newer memory."""
    reason: str
    """Why it ended: `gone`, `changed`, `instead`, `now`, `corrected`, or `value` for another value."""
    sentence: str
    successor: str
    """The sentence of the newer memory."""
    clause: str = ""
    """The part of the sentence that no longer applies, while the rest does; empty for the whole sentence."""

    @property
    def words(self) -> str:
        """The words that no longer apply: the clause, or the whole sentence without a clause."""
        return self.clause or self.sentence

    @property
    def until(self) -> str:
        """Until when the words applied, as "3 March 2026"."""
        at = instants.in_zone(self.at, None)
        return f"{at.day} {at:%B %Y}"

    @property
    def note(self) -> str:
        """When the words stopped applying, and what applies now: "until 3 March 2026, then: …".

        A clause comes first, as other words of its sentence still apply.
        """
        ended = f"“{self.clause}” " if self.clause else ""
        return f"{ended}until {self.until}, then: {self.successor}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A matching original under its episode, or a repeat under its memory."""

    id: str
    created_at: datetime
    role: str
    content: str
    score: float
    superseded_at: datetime | None = None
    tags: tuple[str, ...] = ()
    ended: tuple[EndedStatement, ...] = ()
    """Sentences of it that no longer apply, as newer memories ended them."""
    member: str | None = None
    """Name of the member who wrote it in a group's memory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """A memory in the answer, or an episode with its matching originals."""

    id: str
    tier: Tier
    score: float
    """Higher is better; comparable within one answer only."""
    snippet: str
    content: str
    created_at: datetime
    session: str
    source: str | None
    role: str = ""
    summary_of: tuple[str, ...] = ()
    """Provenance: the ids of all originals of an episode, oldest first."""
    lines: tuple[Line, ...] = ()
    """Matching originals of an episode, best first; then those of its repeats, or repeats of a memory."""
    confidence: float = 0.0
    """Estimated probability that it bears on the question, from 0 to 1."""
    why: str = ""
    """Why it is in the answer: `words: cancel, refund; meaning`, `time: Fri 5 May 2023`."""
    duplicates: int = 0
    """Number of further places that repeat this one, or differ in figures alone."""
    explanation: Mapping[str, float] | None = None
    """Parts that add up to the score; only on request."""
    superseded_at: datetime | None = None
    """Time at which a newer memory superseded it; only on request."""
    ended: tuple[EndedStatement, ...] = ()
    """Sentences of a memory that no longer apply; those of an episode's originals are in `lines`."""
    history: tuple[Line, ...] = ()
    """Memories superseded by it or its lines, the newest first; only on request."""
    owner: str | None = None
    """Name of the group whose memory it is; None if it is in the memory that was asked."""
    tags: tuple[str, ...] = ()
    member: str | None = None
    """Name of the member who wrote it in a group's memory; None for a summary, whose `lines` name members."""


ACTIONS_KEPT = timedelta(days=30)
"""Time in which an action can be undone; for a forget the grace period, for a sleep cycle unlimited."""
ACTIONS_MAX = 10_000
"""Actions that stay recorded, the newest."""
ACTIONS_LISTED_MAX = 1_000
"""Actions in a list."""


class ActionKind(StrEnum):
    """Kind of an action."""

    EDIT = "edit"
    TAG = "tag"
    UNTAG = "untag"
    PIN = "pin"
    UNPIN = "unpin"
    FORGET = "forget"
    IMPORT = "import"
    SLEEP = "sleep"


@dataclass(frozen=True, slots=True)
class Action:
    """An undoable action, as the rows that it changed refer to it."""

    id: str
    kind: ActionKind
    at: datetime


@dataclass(frozen=True, slots=True)
class ActionStep:
    """A memory that an action changed, and the tag that was added or removed, if any."""

    seq: int
    memory: str
    tag: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class UndoableAction:
    """An action that can be undone."""

    id: str
    kind: ActionKind
    at: datetime
    memories: int
    """Number of memories that it changed."""
    until: datetime | None = None
    """Until then it can be undone; null for a sleep cycle, which has no limit of time."""
    trigger: str = ""
    """What started the sleep cycle; empty for other kinds."""
    sample: str = ""
    """The beginning of one of the memories, with secrets masked; empty for a forget."""


class FieldKind(StrEnum):
    """The kind of a field's values, by which a column stores them."""

    TEXT = "text"
    NUMBER = "number"
    FLAG = "flag"
    TIME = "time"
    JSON = "json"


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryField:
    """A field of `MemoryRecord`."""

    name: str
    column: str = ""
    """Its column in both engines; empty for a field kept in a table of its own."""
    kind: FieldKind = FieldKind.TEXT
    """The kind of the values in its column."""
    editable: bool = False
    """Whether an edit may change the field."""
    exported: bool = True
    """Whether an export has the field in the record of the memory."""
    recoverable: bool = True
    """Whether a forgotten memory keeps the field in its grace period."""
    filter: str = ""
    """The field of `MemoryFilter` that selects memories by this one; requests name it as it is."""
    in_summaries: bool = False
    """Whether summaries have the column, too."""


FIELDS = (
    MemoryField(name="id", column="id"),
    MemoryField(
        name="session",
        column="session_id",
        editable=True,
        filter="sessions",
        in_summaries=True,
    ),
    MemoryField(
        name="source",
        column="source",
        editable=True,
        filter="sources",
        in_summaries=True,
    ),
    MemoryField(name="role", column="role", editable=True, filter="roles"),
    MemoryField(name="content", column="content", editable=True),
    MemoryField(
        name="created_at", column="created_at", kind=FieldKind.TIME, editable=True
    ),
    MemoryField(
        name="importance", column="importance", kind=FieldKind.NUMBER, editable=True
    ),
    MemoryField(name="pinned", column="pinned", kind=FieldKind.FLAG),
    MemoryField(name="metadata", column="metadata", kind=FieldKind.JSON),
    MemoryField(name="tier", exported=False, recoverable=False),
    MemoryField(name="episode", recoverable=False),
    MemoryField(name="valid_until"),
    MemoryField(name="superseded_at"),
    MemoryField(name="superseded_by", exported=False, recoverable=False),
    MemoryField(name="pruned_at", recoverable=False),
    MemoryField(name="tags", editable=True),
    MemoryField(name="edited_at", exported=False, recoverable=False),
)
"""All fields of a memory. Links of superseded memories, and revisions, are exported apart."""
ROW_FIELDS = tuple(field for field in FIELDS if field.column)
"""Fields with a column of their own, in the order they are read and written."""
EDITED_FIELDS = tuple(field for field in ROW_FIELDS if field.editable)
"""Columns that an edit may change; tags have a table."""
EDITABLE = tuple(
    field.name for field in FIELDS if field.editable and field.name != "content"
)
"""Names of the fields that an edit may change, besides the text."""
RECOVERABLE = tuple(field.name for field in FIELDS if field.recoverable)
"""Names of the fields that a forgotten memory keeps in its grace period."""
NAMING_FIELDS = tuple(
    field
    for field in ROW_FIELDS
    if field.kind in (FieldKind.TEXT, FieldKind.JSON)
    and field.name not in ("id", "content", "role")
)
"""Columns that may mention a person, besides the text and its speaker."""
FILTER_FIELDS = tuple(field for field in ROW_FIELDS if field.filter)
"""Columns by whose values memories are selected."""
_SUMMARY_COLUMNS = {field.column for field in FILTER_FIELDS if field.in_summaries}


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryFilter:
    """Filter of memories by their fields; a field of the filter that is empty selects all."""

    sessions: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    roles: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    """Memories with one of these."""
    since: datetime | None = None
    """Memories of this time or later."""
    until: datetime | None = None
    """Memories before this time."""

    @property
    def columns(self) -> dict[str, tuple[str, ...]]:
        """The accepted values by column; a memory is selected if every column contains an accepted value."""
        return {
            field.column: values
            for field in FILTER_FIELDS
            if (values := getattr(self, field.filter))
        }

    @property
    def summary_columns(self) -> dict[str, tuple[str, ...]]:
        """The values by column, as in `columns`, for the columns that summaries have, too."""
        columns = self.columns
        return {name: columns[name] for name in columns if name in _SUMMARY_COLUMNS}

    @property
    def own_columns(self) -> dict[str, tuple[str, ...]]:
        """The values by column, as in `columns`, for the columns that only memories have."""
        columns = self.columns
        return {name: columns[name] for name in columns if name not in _SUMMARY_COLUMNS}

    @property
    def excludes_summaries(self) -> bool:
        """Whether the filter selects by tags or by a column that only memories have."""
        return bool(self.tags or self.own_columns)

    @property
    def is_set(self) -> bool:
        """Whether the filter has any condition."""
        return bool(self.columns or self.tags or self.since or self.until)


def column_list(fields: tuple[MemoryField, ...] = ROW_FIELDS, prefix: str = "") -> str:
    """Return the column names of fields as a comma-separated list, each after `prefix`."""
    return ", ".join(f"{prefix}{field.column}" for field in fields)
