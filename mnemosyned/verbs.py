"""Every verb once: its request, its result and its help; all surfaces are read from here."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import (
    Annotated,
    Any,
    ClassVar,
    Concatenate,
    Generic,
    ParamSpec,
    Protocol,
    TypeVar,
    get_args,
)

import msgspec
from msgspec import Meta

from mnemosyned.domain.consolidation import CycleReport, LogEntry
from mnemosyned.domain.errors import (
    InvalidRequest,
    InvalidText,
    InvalidTime,
    MalformedJson,
    MnemosynedError,
)
from mnemosyned.domain.memory import (
    DEFAULT_SESSION,
    Acknowledged,
    Episode,
    Memory,
    Tier,
    TierTotals,
)
from mnemosyned.domain.ports import EmbedderStanding, Standing
from mnemosyned.domain.recall import Hit

R = TypeVar("R")
P = ParamSpec("P")

TEXT_MAX = 200
METADATA_BYTES_MAX = 64 * 1024
BATCH_MAX = 1_000
QUERY_CHARS_MAX = 4_096
NAMES_MAX = 1_000

Name = Annotated[str, Meta(min_length=1, max_length=TEXT_MAX)]
Names = Name | Annotated[list[Name], Meta(max_length=NAMES_MAX)] | None
Instant = Annotated[datetime, Meta(tz=True)]
Reveal = Annotated[bool, Meta(description="show secrets, which are masked otherwise")]
PageSize = Annotated[int, Meta(ge=1, le=1_000)]


class Request(msgspec.Struct, Generic[R], frozen=True, forbid_unknown_fields=True):
    """One call of a verb; `R` is what it answers with."""

    writes: ClassVar[bool] = False
    """Whether the verb can change the store, and so is refused once the daemon is stopping."""


# ------------------------------------------------------------------ remember


class Remember(Request[Acknowledged], frozen=True, forbid_unknown_fields=True):
    """Keep one memory. When this answers, it is on disk."""

    writes = True

    content: Annotated[str, Meta(description="the words to remember")]
    id: Annotated[Name | None, Meta(description="your own id; the same call may be repeated")] = (
        None
    )
    session: Annotated[Name, Meta(description="the conversation or run it belongs to")] = (
        DEFAULT_SESSION
    )
    source: Annotated[Name | None, Meta(description="where it comes from: an agent, a tool")] = None
    role: Annotated[
        str, Meta(description="who said it: user, assistant, a name", max_length=TEXT_MAX)
    ] = ""
    created_at: Annotated[
        Instant | None, Meta(description="when it happened, with a zone; default: now")
    ] = None
    importance: Annotated[float, Meta(description="0 to 1", ge=0, le=1)] = 0.5
    pinned: Annotated[bool, Meta(description="never leaves working memory")] = False
    metadata: Annotated[dict[str, Any], Meta(description="a JSON object of your own")] = (
        msgspec.field(default_factory=dict)
    )
    dedupe: Annotated[
        bool, Meta(description="if this session and source said it before, answer with that id")
    ] = False


class RememberedMany(msgspec.Struct, frozen=True):
    """The acknowledgement of a batch: all of it is on disk."""

    memories: list[Acknowledged]


class RememberMany(Request[RememberedMany], frozen=True, forbid_unknown_fields=True):
    """Keep a batch of memories, all or none."""

    writes = True

    memories: Annotated[
        list[Remember], Meta(description="up to 1,000", min_length=1, max_length=BATCH_MAX)
    ]
    dry_run: Annotated[bool, Meta(description="check the batch; keep nothing")] = False


# -------------------------------------------------------------------- recall


class Recalled(msgspec.Struct, frozen=True):
    """What was found, best first; empty when nothing matches."""

    hits: list[Hit]
    note: str = ""
    """What limited the search, such as an embedding model that was not ready."""


class Recall(Request[Recalled], frozen=True, forbid_unknown_fields=True):
    """Find what is known: words in, the best memories and episodes out."""

    query: Annotated[
        str, Meta(description="plain words; no operators", min_length=1, max_length=QUERY_CHARS_MAX)
    ]
    limit: Annotated[int, Meta(description="how many hits at most", ge=1, le=100)] = 10
    session: Annotated[Names, Meta(description="only this session, or these")] = None
    source: Annotated[Names, Meta(description="only this source, or these")] = None
    tier: Annotated[Tier | None, Meta(description="only this tier")] = None
    since: Annotated[Instant | None, Meta(description="only what happened at or after")] = None
    until: Annotated[Instant | None, Meta(description="only what happened before")] = None
    asked_at: Annotated[
        Instant | None, Meta(description='when "yesterday" is asked; default: now, here')
    ] = None
    explain: Annotated[bool, Meta(description="show what each score is made of")] = False
    reveal: Reveal = False


class Got(msgspec.Struct, frozen=True):
    """One memory or episode, whole."""

    memory: Memory | None = None
    episode: Episode | None = None


class Get(Request[Got], frozen=True, forbid_unknown_fields=True):
    """Show one memory or episode, whole."""

    id: Annotated[Name, Meta(description="the id of a memory or an episode")]
    reveal: Reveal = False


class Expanded(msgspec.Struct, frozen=True):
    """An episode and the exact words it came from, oldest first."""

    episode: Episode
    originals: list[Memory]


class Expand(Request[Expanded], frozen=True, forbid_unknown_fields=True):
    """Go from an episode back to its originals, word for word."""

    id: Annotated[Name, Meta(description="the id of an episode")]
    reveal: Reveal = False


# --------------------------------------------------------------------- sleep


class Sleep(Request[CycleReport], frozen=True, forbid_unknown_fields=True):
    """Run a sleep cycle now: summarise, promote, evict, log."""

    writes = True

    session: Annotated[Name | None, Meta(description="only this session")] = None
    force: Annotated[bool, Meta(description="ignore the age rule")] = False
    dry_run: Annotated[bool, Meta(description="show the plan; write nothing, call no model")] = (
        False
    )


class Logged(msgspec.Struct, frozen=True):
    """Rows of the consolidation log, newest first."""

    rows: list[LogEntry]


class Log(Request[Logged], frozen=True, forbid_unknown_fields=True):
    """Show what was consolidated, newest first."""

    limit: Annotated[PageSize, Meta(description="how many rows at most")] = 20
    session: Annotated[Name | None, Meta(description="only this session")] = None
    cycle: Annotated[Name | None, Meta(description="only this sleep cycle")] = None


# -------------------------------------------------------------------- forget


class Forgotten(msgspec.Struct, frozen=True, kw_only=True):
    """The receipt: how much is gone. It holds no content."""

    memories: int
    episodes_removed: int
    episodes_rewritten: int


class Forget(Request[Forgotten], frozen=True, forbid_unknown_fields=True):
    """Delete a memory everywhere: every tier, the index, summaries and log previews.

    Forgetting an episode forgets its originals too.
    """

    writes = True

    id: Annotated[Name, Meta(description="the id of a memory or an episode")]


# -------------------------------------------------------------------- status


class SleepStatus(msgspec.Struct, frozen=True, kw_only=True):
    """When the daemon slept, and when it will."""

    auto: bool
    schedule: str
    last_cycle: datetime | None
    next_cycle: datetime | None
    running: bool
    due: int
    """Memories old enough for the next cycle."""


class Stats(msgspec.Struct, frozen=True, kw_only=True):
    """The state of the store and the daemon."""

    version: str
    schema_version: int
    database: str
    bytes_on_disk: int
    tiers: dict[Tier, TierTotals]
    wm_max: int
    sleep: SleepStatus
    summarizer: Standing
    embedder: EmbedderStanding
    pid: int
    uptime_s: float


class Status(Request[Stats], frozen=True, forbid_unknown_fields=True):
    """Show counts, sizes, the last and next cycle, and the summariser in force."""


# -------------------------------------------------------------------- facade


class Caller(Protocol):
    """Whatever can carry a request to the service and bring back its result."""

    def call(self, request: Request[R], /) -> R:
        """Run one verb."""
        ...


def verb(request: Callable[P, Request[R]]) -> Callable[Concatenate[Caller, P], R]:
    """Turn a request type into a method with that request's signature and result."""

    def method(self: Caller, /, *args: P.args, **kwargs: P.kwargs) -> R:
        return self.call(request(*args, **kwargs))

    method.__doc__ = request.__doc__
    return method


class Verbs:
    """Every verb as a method; `Client` and `Memory` inherit them and bring `call`."""

    remember = verb(Remember)
    remember_many = verb(RememberMany)
    recall = verb(Recall)
    get = verb(Get)
    expand = verb(Expand)
    sleep = verb(Sleep)
    consolidate = verb(Sleep)
    forget = verb(Forget)
    status = verb(Status)
    log = verb(Log)


VERBS: dict[str, type[Request[Any]]] = {
    "remember": Remember,
    "remember_many": RememberMany,
    "recall": Recall,
    "get": Get,
    "expand": Expand,
    "sleep": Sleep,
    "forget": Forget,
    "status": Status,
    "log": Log,
}
ALIASES = {"consolidate": "sleep"}


# ---------------------------------------------------------------- validation


def result_type(verb: type[Request[R]]) -> type[R]:
    """What a verb answers with."""
    base = verb.__dict__["__orig_bases__"][0]
    result: type[R] = get_args(base)[0]
    return result


def parse(verb: type[Request[R]], body: bytes) -> Request[R]:
    """A request from its JSON. Raises the error that names the field at fault."""
    try:
        return msgspec.json.decode(body, type=verb)
    except msgspec.ValidationError as error:
        raise _invalid(error) from error
    except UnicodeDecodeError as error:
        raise InvalidText(
            f"the body is not UTF-8 at byte {error.start}; encode it first"
        ) from error
    except (msgspec.DecodeError, RecursionError) as error:
        raise MalformedJson(f"the body is not JSON: {error}") from error


def parse_text(verb: type[Request[R]], fields: Mapping[str, str | list[str]]) -> Request[R]:
    """A request from words, as a URL or a shell gives them."""
    try:
        return msgspec.convert(fields, verb, strict=False)
    except msgspec.ValidationError as error:
        raise _invalid(error) from error


def checked(request: Request[R]) -> Request[R]:
    """The same request, held to the rules that a request over the socket is held to."""
    try:
        return parse(type(request), msgspec.json.encode(request))
    except UnicodeEncodeError as error:
        raise InvalidText(
            f"the text is not valid Unicode at character {error.start}; decode it first"
        ) from error
    except (TypeError, ValueError, RecursionError, OverflowError) as error:
        raise InvalidRequest(f"the request cannot be written as JSON: {error}") from error


def _invalid(error: msgspec.ValidationError) -> MnemosynedError:
    """Read msgspec's sentence: what is wrong, and at which path."""
    text = str(error)
    problem, _, path = text.partition(" - at `")
    field = path.rstrip("`").removeprefix("$").lstrip(".") or None
    if named := re.search(r"(?:field|argument) `([^`]*)`", problem):
        field = ".".join(part for part in (field, named[1]) if part)
    message = f"{field}: {problem}" if field else problem
    if "timezone" in problem or "RFC3339" in problem:
        return InvalidTime(f"{message}; write it as 2026-03-09T14:30:00Z", field=field)
    if "unknown field" in problem:
        message += "; `mnem VERB --help` lists the fields"
    return InvalidRequest(message, field=field)
