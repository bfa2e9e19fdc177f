"""The base of every request: its form, the types its fields share, and their validation."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterable, Mapping
from datetime import date, datetime, timedelta
from functools import cache
from itertools import chain
from types import UnionType
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    ClassVar,
    Generic,
    TypeVar,
    Union,
    cast,
    get_args,
    get_origin,
    overload,
)

import msgspec
from msgspec import Meta

from mnemosyned.errors import (
    InvalidRequest,
    InvalidText,
    MalformedJson,
    MnemosynedError,
)

R = TypeVar("R")
T = TypeVar("T")

TEXT_MAX = 200
NAMES_MAX = 1_000

Name = Annotated[str, Meta(min_length=1, max_length=TEXT_MAX)]
Names = Name | Annotated[list[Name], Meta(max_length=NAMES_MAX)] | None
if TYPE_CHECKING:
    Instant = datetime | date | timedelta | str
else:
    Instant = Annotated[datetime, Meta(tz=True)]
"""A time. A caller may give it in words, as a date or as so long ago; a request that was checked
has a `datetime` with its zone, which `instant` returns."""
OnlySession = Annotated[Names, Meta(description="only this session; repeatable")]
OnlySource = Annotated[Names, Meta(description="only this source; repeatable")]
OnlyTag = Annotated[
    Names, Meta(description="only memories with one of these tags; repeatable")
]
Since = Annotated[
    Instant | None,
    Meta(description="only what happened at or after this time: yesterday, 7d"),
]
Until = Annotated[
    Instant | None,
    Meta(description="only what happened until then; a day named is included"),
]
Reveal = Annotated[bool, Meta(description="show secrets, which are masked otherwise")]
QUERY_CHARS_MAX = 4_096
Question = Annotated[str, Meta(min_length=1, max_length=QUERY_CHARS_MAX)]
NOT_EMPTY = {"minLength": 1, "pattern": r"\S"}
"""For the description of the API: the service refuses an empty text with a code of its own."""
PageSize = Annotated[int, Meta(ge=1, le=1_000)]
DEPTH_MAX = 100
"""Levels of lists and objects in a field; Python's own limit would be met at 400, while it works."""
_CONTAINERS = (dict, list)
_DECODERS: dict[type, msgspec.json.Decoder[Any]] = {}
"""Decoders of request and result types; see `decoder_of`."""
_BUILDING = threading.Lock()
_BINARY = (bytes, bytearray, memoryview)
_PLAIN = frozenset({str, int, float, bool, datetime, dict, list, type(None)})
"""Types of most values, none of them binary."""


class Request(
    msgspec.Struct,
    Generic[R],
    frozen=True,
    forbid_unknown_fields=True,
    omit_defaults=True,
):
    """One call of a verb, answered with an `R`. Fields left at their default are not sent.

    Its first field may be given by position and has a base class of its own: the others are
    keyword-only, and msgspec makes them so class by class.
    """

    writes: ClassVar[bool] = False
    """Whether the verb can change the store, and so is refused once the daemon is stopping."""
    deletes: ClassVar[bool] = False
    """Whether it deletes, for which a token of an owner needs a scope of its own."""
    local_only: ClassVar[bool] = False
    """Whether it is out of reach over TCP, as it reads this machine's files."""
    takes_long: ClassVar[bool] = False
    """Whether it may take long, as it works through many memories step by step."""
    repeatable: ClassVar[bool] = False
    """Whether it does its work once however often it is sent: by its ids, or by its words."""
    verb: ClassVar[str] = ""
    """The verb's name, where it is not that of the class: `EditLearning` is `edit_learning`."""

    @classmethod
    def verb_name(cls) -> str:
        """The name of the verb in the table of verbs."""
        return cls.verb or re.sub("(?<=[a-z])(?=[A-Z])", "_", cls.__name__).lower()


V = TypeVar("V", bound=Request[Any])
"""The request of one verb."""


class ById(Request[R], frozen=True, forbid_unknown_fields=True):
    """A call that concerns one memory, episode or learning."""

    id: Annotated[Name, Meta(description="its id")]


def names(given: str | list[str] | None) -> tuple[str, ...]:
    """One name, several or none, as a tuple."""
    if given is None:
        return ()
    return (given,) if isinstance(given, str) else tuple(given)


@overload
def instant(given: Instant) -> datetime: ...
@overload
def instant(given: Instant | None) -> datetime | None: ...
def instant(given: Instant | None) -> datetime | None:
    """The time of a request that was checked."""
    return cast("datetime | None", given)


@cache
def fields_of(verb: type[Request[Any]]) -> tuple[msgspec.inspect.Field, ...]:
    """Describe the fields of a request, in order."""
    return cast("msgspec.inspect.StructType", msgspec.inspect.type_info(verb)).fields


def result_type(verb: type[Request[R]]) -> type[R]:
    """The type of a verb's result."""
    base = verb.__dict__["__orig_bases__"][0]
    result: type[R] = get_args(base)[0]
    return result


def decoder_of(kind: type[T]) -> msgspec.json.Decoder[T]:
    """The decoder of a request or result type, built at its first use by one thread alone.

    msgspec builds its description of a type, and of the types inside, in Python code, where threads
    switch: a second thread that decodes meanwhile would read half of a description and crash the
    process. The description stays with the type, also for `convert`.
    """
    if kind not in _DECODERS:
        with _BUILDING:
            _DECODERS.setdefault(kind, msgspec.json.Decoder(kind))
    return _DECODERS[kind]


def parse_result(verb: type[Request[R]], answer: bytes) -> R:
    """A result from its JSON. Raises `msgspec.DecodeError` where it is none."""
    result: R = decoder_of(result_type(verb)).decode(answer)
    return result


def parse(
    verb: type[V],
    body: bytes | bytearray,
    *,
    given: V | None = None,
) -> V:
    """A request from its JSON. Raises the error that names the field at fault.

    `given` is the request that the JSON was written of, if any.
    """
    try:
        request = decoder_of(verb).decode(body)
    except msgspec.ValidationError as error:
        request = _with_times(verb, body, error, given)
    except (UnicodeDecodeError, msgspec.DecodeError, RecursionError) as error:
        raise _undecodable(error) from error
    _check_depth(request)
    return request


def _undecodable(error: Exception) -> MnemosynedError:
    if isinstance(error, UnicodeDecodeError):
        return InvalidText(
            f"the body is not UTF-8 at byte {error.start}; encode it first"
        )
    return MalformedJson(f"the body is not JSON: {error}")


def _with_times(
    verb: type[V],
    body: bytes | bytearray,
    error: msgspec.ValidationError,
    given: V | None,
) -> V:
    """A request whose times are not written by RFC 3339: only these cost more than decoding."""
    if not _is_of_a_time(error):
        raise _invalid(error, verb) from error
    # Loaded here: most requests have no time in words.
    from mnemosyned.verbs.times import read_fields, read_request  # noqa: PLC0415

    try:
        if given is not None:
            body = msgspec.json.encode(read_request(given))
            request: V = decoder_of(verb).decode(body)
        else:
            fields = read_fields(verb, msgspec.json.decode(body))
            request = msgspec.convert(fields, verb)
    except msgspec.ValidationError as further:
        raise _invalid(further, verb) from further
    except (UnicodeDecodeError, msgspec.DecodeError, RecursionError) as further:
        raise _undecodable(further) from further
    return request


def _is_of_a_time(error: msgspec.ValidationError) -> bool:
    problem = str(error)
    return "RFC3339" in problem or "timezone" in problem


def parse_text(verb: type[V], fields: Mapping[str, str | list[str]]) -> V:
    """A request from words, as a URL or a shell gives them."""
    decoder_of(verb)
    try:
        request: V = msgspec.convert(_times_read(verb, fields), verb, strict=False)
    except msgspec.ValidationError as error:
        raise _invalid(error, verb) from error
    _check_depth(request)
    return request


def _times_read(verb: type[Request[Any]], fields: Mapping[str, Any]) -> object:
    """The fields with their times read: msgspec would take 2026 for seconds since 1970."""
    if fields.keys().isdisjoint(time_fields(verb)):
        return fields
    # Loaded here: most requests have no time.
    from mnemosyned.verbs.times import read_fields  # noqa: PLC0415

    return read_fields(verb, fields)


def checked(request: V) -> V:
    """Check a request by the rules that a request over the socket has to pass, and return it."""
    _check_text(request)
    try:
        body = msgspec.json.encode(request)
        return parse(type(request), body, given=request)
    except UnicodeEncodeError as error:
        raise InvalidText(
            f"the text is not valid Unicode at character {error.start}; decode it first"
        ) from error
    except (TypeError, ValueError, RecursionError, OverflowError) as error:
        raise InvalidRequest(
            f"the request cannot be written as JSON: {error}"
        ) from error


def _check_text(request: Request[Any], place: str = "") -> None:
    """Refuse bytes, which msgspec would store as Base64. Raises `InvalidRequest`."""
    values = msgspec.structs.astuple(request)
    if not _PLAIN.issuperset(map(type, values)):
        for name, value in zip(request.__struct_fields__, values, strict=True):
            if isinstance(value, _BINARY):
                kind = type(value).__name__
                raise InvalidRequest(
                    f"{place}{name} must be text, not {kind}; decode it first",
                    field=place + name,
                )
    for name in _nesting_fields(type(request)):
        members = getattr(request, name)
        if members and isinstance(members, list) and isinstance(members[0], Request):
            for index, member in enumerate(members):
                _check_text(member, f"{place}{name}[{index}].")


def _check_depth(request: Request[Any], place: str = "") -> None:
    """Limit the caller's own JSON to `DEPTH_MAX` levels. Raises `InvalidRequest`."""
    for name in _nesting_fields(type(request)):
        value = getattr(request, name)
        if not value or not isinstance(value, _CONTAINERS):
            continue
        requests = isinstance(value, list) and isinstance(value[0], Request)
        if requests:
            for index, member in enumerate(value):
                _check_depth(member, f"{place}{name}[{index}].")
        elif _is_deep(value):
            raise InvalidRequest(
                f"{place}{name} is nested more than {DEPTH_MAX} levels deep; flatten it",
                field=place + name,
            )


@cache
def time_fields(verb: type[msgspec.Struct]) -> frozenset[str]:
    """The names of the fields that are times."""
    return frozenset(
        field.name
        for field in msgspec.structs.fields(verb)
        if datetime in members(field.type)
    )


def members(kind: object) -> tuple[object, ...]:
    """The types of a union, without what is noted of each."""
    if get_origin(kind) is Annotated:
        return members(get_args(kind)[0])
    if get_origin(kind) in (Union, UnionType):
        return tuple(chain.from_iterable(map(members, get_args(kind))))
    return (kind,)


@cache
def _nesting_fields(verb: type[Request[Any]]) -> tuple[str, ...]:
    """The fields whose values may be lists or objects."""
    return tuple(
        field.name for field in msgspec.structs.fields(verb) if _may_nest(field.type)
    )


def _may_nest(kind: object) -> bool:
    if get_origin(kind) is Annotated:
        return _may_nest(get_args(kind)[0])
    if kind is Any or get_origin(kind) in _CONTAINERS:
        return True
    return any(map(_may_nest, get_args(kind)))


def _is_deep(value: dict[str, Any] | list[Any]) -> bool:
    level: list[dict[str, Any] | list[Any]] = [value]
    for _ in range(DEPTH_MAX):
        members = chain.from_iterable(map(_members, level))
        level = [member for member in members if isinstance(member, _CONTAINERS)]
        if not level:
            return False
    return True


def _members(container: dict[str, Any] | list[Any]) -> Iterable[Any]:
    return container.values() if isinstance(container, dict) else container


def _invalid(
    error: msgspec.ValidationError, verb: type[Request[Any]]
) -> MnemosynedError:
    """Turn msgspec's message into an error that names the field at fault."""
    # Loaded here: only a mistake needs it.
    from mnemosyned.validation import rephrase  # noqa: PLC0415

    problem, _, path = str(error).partition(" - at `")
    inside = path.rstrip("`").removeprefix("$").lstrip(".")
    named = re.search(r"(?:field|argument) `([^`]*)`", problem)
    name = named[1] if named else ""
    field = ".".join(filter(None, (inside, name))) or None
    rephrased = rephrase(problem, choices=_choices(verb, field))
    message = f"{field or 'the body'} {rephrased}"
    if "unknown field" in problem:
        suggestion = _suggestion(verb, name)
        message += f"{suggestion}; the fields are {', '.join(verb.__struct_fields__)}"
    return InvalidRequest(message, field=field)


def _choices(verb: type[Request[Any]], field: str | None) -> list[str]:
    """The values a field is limited to; empty if any is allowed."""
    kinds = [each.type for each in fields_of(verb) if each.name == field]
    while kinds:  # ends, as each step goes inside
        kind = kinds.pop()
        if isinstance(kind, msgspec.inspect.EnumType):
            return [choice.value for choice in kind.cls]
        if isinstance(kind, msgspec.inspect.Metadata):
            kinds.append(kind.type)
        elif isinstance(kind, msgspec.inspect.UnionType):
            kinds.extend(kind.types)
    return []


def _suggestion(verb: type[Request[Any]], wrong: str) -> str:
    # Loaded here: only a mistake needs it.
    from difflib import get_close_matches  # noqa: PLC0415

    close = get_close_matches(wrong, verb.__struct_fields__, n=1)
    return f" (did you mean {close[0]}?)" if close else ""
