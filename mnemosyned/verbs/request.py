"""Base class of requests, the types of their fields, the validation of values and its errors."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from functools import cache
from itertools import chain
from math import isfinite
from os import PathLike, fspath
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

from mnemosyned import errors

_KINDS = {
    "str": "text",
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "array": "a list",
    "object": "an object",
    "datetime": "a time",
    "null": "null",
}
_SAID = {
    "missing required field": "is missing",
    "unknown field": "is not known",
    r"matching regex '\\S'": "must not be empty",
    "matching regex '^(?!": "must be a key that `projects` lists, and no relative path",
}
_BOUNDS = {">=": "at least", "<=": "at most", ">": "more than", "<": "less than"}
_LENGTH = re.compile(r"Expected `(\w+)` of length ([<>]=) (\d+)")
_RANGE = re.compile(r"Expected `\w+` ([<>]=?) (-?[\d.]+)")
# an escaped backslash, a pair of surrogates, or half of one (group 1), which JSON allows
_SURROGATES = re.compile(
    rb"\\\\|\\u[dD][89abAB]\w\w\\u[dD][c-fC-F]\w\w|(\\u[dD][89a-fA-F][\da-fA-F]{2})"
)
_KIND = re.compile(r"Expected `([^`]*)`(?:, got `(\w+)`)?\Z")


def rephrase(problem: str, *, choices: Sequence[str] = (), form: str = "") -> str:
    """Return an error of msgspec as a phrase to follow a field's name: "must be at most 100".

    `choices` are the allowed words, `form` is an example of the allowed form. An unknown message is quoted.
    """
    problem, _, _ = problem.partition(" - at `")  # a place in a list
    for part, words in _SAID.items():
        if part in problem:
            return words
    if choices and "Invalid enum value" in problem:
        return f"must be one of {', '.join(choices)}"
    if form and "matching regex" in problem:
        return f"must have the form {form}"
    if match := _LENGTH.match(problem):
        kind, bound, number = match.groups()
        if (bound, number) == (">=", "1"):
            return "must not be empty"
        unit = "characters" if kind == "str" else "entries"
        return f"must have {_BOUNDS[bound]} {int(number):,} {unit}"
    if match := _RANGE.match(problem):
        return f"must be {_BOUNDS[match[1]]} {match[2].removesuffix('.0')}"
    if match := _KIND.match(problem):
        # Without null, which does not help after a wrong value.
        kinds = match[1].removesuffix(" | null").split(" | ")
        allowed = " or ".join(_KINDS.get(kind, kind) for kind in kinds)
        given = f", not {_KINDS.get(match[2], match[2])}" if match[2] else ""
        return f"must be {allowed}{given}"
    return f"is wrong: {problem}"


R = TypeVar("R")
T = TypeVar("T")

TEXT_MAX = 200
NAMES_MAX = 1_000


def doc(description: str, **limits: Any) -> Meta:  # noqa: ANN401 as Meta takes them
    """Return a msgspec annotation of a field: its description for help and API, and msgspec's limits."""
    return Meta(description=description, **limits)


Name = Annotated[str, Meta(min_length=1, max_length=TEXT_MAX)]
ProjectKey = Annotated[
    str,
    Meta(min_length=1, max_length=TEXT_MAX, pattern=r"^(?!\.\.?(/|$)|~(/|$))"),
]
"""The key of a project. A relative path, which only the shell client resolves, would match nothing."""
Names = Name | Annotated[list[Name], Meta(max_length=NAMES_MAX)] | None
if TYPE_CHECKING:
    Instant = datetime | date | timedelta | str
else:
    Instant = Annotated[datetime, Meta(tz=True)]
"""A time. A caller may give it in words, as a date or as so long ago; a request that was checked
has a `datetime` with its zone, which `instant` returns."""
OnlySession = Annotated[Names, doc("only this session; repeatable")]
ImportId = Annotated[
    Name | None, doc("your id of the import that this is a part of, for `undo`")
]
OnlySource = Annotated[Names, doc("only this source; repeatable")]
OnlyTag = Annotated[Names, doc("only memories with one of these tags; repeatable")]
Since = Annotated[
    Instant | None,
    doc("only memories from this time on: yesterday, 7d"),
]
Until = Annotated[
    Instant | None,
    doc("only memories until this time; a day is included"),
]
Reveal = Annotated[bool, doc("show secrets, which are masked otherwise")]
QUERY_CHARS_MAX = 4_096
Question = Annotated[str, Meta(min_length=1, max_length=QUERY_CHARS_MAX, pattern=r"\S")]
NOT_EMPTY = {"minLength": 1, "pattern": r"\S"}
"""For the API's description only: the service refuses an empty text with an error code of its own."""
PageSize = Annotated[int, Meta(ge=1, le=1_000)]
DEPTH_MAX = 100
"""Maximum nesting of lists and objects in a field; Python's own limit would be reached at 400."""
_CONTAINERS = (dict, list)
SAID = frozenset({"message", "messages", "system"})
"""Fields for texts said to a model, which may hold anything."""
_DECODERS: dict[type, msgspec.json.Decoder[Any]] = {}
"""Decoders of request and result types; see `decoder_of`."""
_BUILDING = threading.Lock()
_NUMBER = re.compile(r"\+?(?:(\d+)\.?|(\d*\.\d+))", re.ASCII)
"""A number as people type it, such as .5, 1. or +1: its digits, or with a fraction all of it."""
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
    is_probe: ClassVar[bool] = False
    """Whether it asks if the daemon works: a person who asks does not want to wait for a minute."""
    repeatable: ClassVar[bool] = False
    """Whether it does its work once however often it is sent: by its ids, or by its words."""
    nested: ClassVar[dict[str, type[Request[Any]]]] = {}
    """The fields that hold lists of requests, with their type."""
    verb: ClassVar[str] = ""
    """The verb's name, where it is not that of the class: `EditLearning` is `edit_learning`."""

    @property
    def is_preview(self) -> bool:
        """Whether the call only shows what can be changed, and changes nothing."""
        return any(getattr(self, name, False) for name in ("dry_run", "list"))

    @classmethod
    def verb_name(cls) -> str:
        """Return the verb's name in snake case, such as `remember_many`."""
        return cls.verb or re.sub("(?<=[a-z])(?=[A-Z])", "_", cls.__name__).lower()


class RowList(msgspec.Struct, Generic[T], frozen=True):
    """A result that is a list: the first field contains the rows, and iterating yields the rows."""

    def __iter__(self) -> Iterator[T]:
        """Iterate over the rows of the list."""
        rows: list[T] = getattr(self, self.__struct_fields__[0])
        return iter(rows)

    def __len__(self) -> int:
        """Return the number of rows in the list."""
        return len(getattr(self, self.__struct_fields__[0]))


V = TypeVar("V", bound=Request[Any])
"""The request of one verb."""


class ById(Request[R], frozen=True):
    """A call that concerns one memory, episode or learning."""

    id: Annotated[Name, doc("its id")]


def names(given: str | list[str] | None) -> tuple[str, ...]:
    """Return the given names as a tuple: a text is one name, and None is no name."""
    if given is None:
        return ()
    return (given,) if isinstance(given, str) else tuple(given)


@overload
def instant(given: Instant) -> datetime: ...
@overload
def instant(given: Instant | None) -> datetime | None: ...
def instant(given: Instant | None) -> datetime | None:
    """Return a validated request's time unchanged; type checkers learn that it is a `datetime`."""
    return cast("datetime | None", given)


@overload
def to_utc(given: Instant, *, field: str) -> datetime: ...
@overload
def to_utc(given: Instant | None, *, field: str) -> datetime | None: ...
def to_utc(given: Instant | None, *, field: str) -> datetime | None:
    """Return a time in UTC, None for None. Raises `InvalidTime`, which names `field`."""
    moment = instant(given)
    try:
        return None if moment is None else moment.astimezone(UTC)
    except OverflowError as error:
        raise errors.InvalidTime(
            f"{field} lies outside the calendar", field=field
        ) from error


def read_span(since: Instant | None, until: Instant | None) -> dict[str, Any]:
    """Return both times in UTC by name. Raises `InvalidTime`, also if `since` is not before `until`."""
    begin, end = to_utc(since, field="since"), to_utc(until, field="until")
    if begin and end and begin >= end:
        raise errors.InvalidTime(
            f"since ({begin:%Y-%m-%d %H:%M} UTC) is not before `until` ({end:%Y-%m-%d %H:%M} UTC)",
            field="since",
        )
    return {"since": begin, "until": end}


@cache
def fields_of(verb: type[Request[Any]]) -> tuple[msgspec.inspect.Field, ...]:
    """Return the description of each field of a request, in order."""
    return cast("msgspec.inspect.StructType", msgspec.inspect.type_info(verb)).fields


def result_type(verb: type[Request[R]]) -> type[R]:
    """Return the type of the verb's result, from the base class of its request."""
    base = verb.__dict__["__orig_bases__"][0]
    result: type[R] = get_args(base)[0]
    return result


def decoder_of(kind: type[T]) -> msgspec.json.Decoder[T]:
    """Return the JSON decoder of a request or result type, built once, under a lock.

    msgspec describes a type, and the types inside, in Python code, where threads switch: a second
    thread that decodes at that time would read half a description and crash the process. `convert`
    uses the same description.
    """
    if kind not in _DECODERS:
        with _BUILDING:
            _DECODERS.setdefault(kind, msgspec.json.Decoder(kind))
    return _DECODERS[kind]


def parse_result(verb: type[Request[R]], answer: bytes) -> R:
    """Return the result of a verb from its JSON. Raises `msgspec.DecodeError` if it is invalid."""
    result: R = decoder_of(result_type(verb)).decode(answer)
    return result


def parse(verb: type[V], body: bytes | bytearray) -> V:
    """Return the request that a JSON body contains, validated, with times in words as `datetime`.

    Raises `InvalidRequest`, `InvalidTime`, `InvalidText` or `MalformedJson`, which name the field.
    """
    decoder = _DECODERS.get(verb) or decoder_of(verb)
    try:
        try:
            request: V = decoder.decode(body)
        except msgspec.ValidationError as error:
            fields = msgspec.json.decode(body)
            if _drop_nulls(verb, fields, error):
                return parse(verb, msgspec.json.encode(fields))
            if "RFC3339" not in str(error) and "timezone" not in str(error):
                raise
            from mnemosyned.verbs.times import read_request_times  # noqa: PLC0415 only for a time in words

            fields = read_request_times(verb, fields)
            request = msgspec.convert(fields, verb)
    except msgspec.ValidationError as error:
        raise _field_error(error, verb) from error
    except UnicodeDecodeError as error:
        raise errors.InvalidText("the body is not UTF-8; encode it first") from error
    except (msgspec.DecodeError, RecursionError) as error:
        if half := next(
            (escape[1] for escape in _SURROGATES.finditer(body) if escape[1]), b""
        ):
            raise errors.InvalidText(
                f"the body has {half.decode()} without its other half; send whole characters"
            ) from error
        raise errors.MalformedJson(f"the body is not JSON: {error}") from error
    for place, part in _requests_within(request):
        values = zip(part.__struct_fields__, msgspec.structs.astuple(part), strict=True)
        for name, value in values:
            if value and isinstance(value, _CONTAINERS) and _is_deep(value):
                raise errors.InvalidRequest(
                    f"{place}{name} is nested more than {DEPTH_MAX} levels deep; flatten it",
                    field=place + name,
                )
    return request


def _drop_nulls(
    verb: type[Request[Any]], fields: object, error: msgspec.ValidationError
) -> bool:
    """Remove null values of optional fields, also in nested requests, if `error` is about a null.

    Return whether a value was removed.
    """
    if "got `null`" not in str(error) or not isinstance(fields, dict):
        return False
    nulls = [
        field.name
        for field in fields_of(verb)
        if not field.required and fields.get(field.name, "") is None
    ]
    for name in nulls:
        del fields[name]
    members = [
        _drop_nulls(kind, member, error)
        for name, kind in verb.nested.items()
        if isinstance(fields.get(name), list)
        for member in fields[name]
    ]
    return bool(nulls) or any(members)


def parse_text(verb: type[V], fields: Mapping[str, str | list[str]]) -> V:
    """Return a request from the text values of its fields, as a URL, a shell or a model gives them.

    Raises `InvalidRequest` and `InvalidTime`, which name the field.
    """
    decoder_of(verb)
    try:
        if not fields.keys().isdisjoint(time_fields(verb)):
            # Times are read first: msgspec would take 2026 for seconds since 1970.
            from mnemosyned.verbs.times import read_request_times  # noqa: PLC0415

            fields = read_request_times(verb, fields)
        request: V = msgspec.convert(fields, verb, strict=False)
    except msgspec.ValidationError as error:
        given = dict(fields)
        if _drop_nulls(verb, given, error):
            return parse_text(verb, given)
        problem = _field_error(error, verb)
        if problem.field and (
            number := _NUMBER.fullmatch(str(given.get(problem.field)))
        ):
            plain = number[1] or repr(float(number[2]))
            if "got `str`" in str(error) and plain != given[problem.field]:
                return parse_text(verb, {**given, problem.field: plain})
        raise problem from error
    return request


def validate(request: V) -> V:
    """Return a checked copy of a request that a program made. Raises the errors of `parse`."""
    return parse(type(request), encode(request))


def encode(request: Request[Any]) -> bytes:
    """Return the JSON of a request, with times in words read in this machine's time zone.

    Raises `InvalidText`, `InvalidTime`, and `InvalidRequest` for values that JSON cannot express.
    All other checks are made by the receiver.
    """
    are_times_read = True
    for place, part in _requests_within(request):
        values = msgspec.structs.astuple(part)
        if not _PLAIN.issuperset(map(type, values)):
            for name, value in zip(part.__struct_fields__, values, strict=True):
                if isinstance(value, bytes | bytearray | memoryview):
                    # msgspec would store it as Base64.
                    kind = type(value).__name__
                    raise errors.InvalidRequest(
                        f"{place}{name} must be text, not {kind}; decode it first",
                        field=place + name,
                    )
        for name in time_fields(type(part)):
            value = getattr(part, name)
            if value is not None and not getattr(value, "tzinfo", None):
                are_times_read = False
    try:
        if not are_times_read:
            from mnemosyned.verbs.times import read_request_times  # noqa: PLC0415 only for a time in words

            request = read_request_times(type(request), request)
        body = _ENCODER.encode(request)
    except UnicodeEncodeError as error:
        check_texts(request)
        raise errors.InvalidText(
            f"the text is not valid Unicode at character {error.start}; decode it first"
        ) from error
    except (TypeError, ValueError, RecursionError, OverflowError) as error:
        raise errors.InvalidRequest(
            f"the request cannot be written as JSON: {error}"
        ) from error
    if b"null" in body:
        # It also stands for nan and infinity, and a null counts as left out.
        for place, part in _requests_within(request):
            for name in part.__struct_fields__:
                if (number := _find_nonfinite(getattr(part, name))) is not None:
                    raise errors.InvalidRequest(
                        f"{place}{name} is {number}; give a finite number",
                        field=place + name,
                    )
    return body


def _make_plain(value: object) -> object:
    """Return a path, or a number, text, array or time of NumPy or pandas, as a value for JSON.

    Raises `TypeError` for other types, and `ValueError` for numbers that are not finite.
    """
    if isinstance(value, datetime):
        return datetime.combine(value.date(), value.time(), value.tzinfo)
    for kind in (str, int, float):
        if isinstance(value, kind):
            return kind(value)
    if isinstance(value, PathLike):
        return fspath(value)
    to_list = getattr(value, "tolist", None)
    if to_list is None:
        raise TypeError(f"it contains a value of the type {type(value).__name__}")
    plain = to_list()
    if (number := _find_nonfinite(plain)) is not None:
        raise ValueError(f"it contains {number}; give a finite number")
    return plain


_ENCODER = msgspec.json.Encoder(enc_hook=_make_plain)


def _find_nonfinite(value: object) -> float | None:
    """Return the first number in a value that is nan or infinite, or None."""
    if isinstance(value, float):
        return None if isfinite(value) else value
    if isinstance(value, dict):
        value = list(value.values())
    members = value if isinstance(value, list | tuple | set | frozenset) else ()
    return next(filter(None, map(_find_nonfinite, members)), None)


def _requests_within(request: Request[Any]) -> list[tuple[str, Request[Any]]]:
    """Return (prefix of field names in errors, request) for a request and the requests in its lists."""
    found = [("", request)]
    for name in request.nested:
        members = getattr(request, name)
        if not isinstance(members, list):  # parsing refuses it
            continue
        found += [
            (f"{name}[{index}].", member)
            for index, member in enumerate(members)
            if isinstance(member, Request)
        ]
    return found


def check_texts(request: Request[Any]) -> None:
    """Raise `InvalidText` unless all texts but messages to a model are Unicode without NUL."""
    for place, part in _requests_within(request):
        for name in part.__struct_fields__:
            if name in SAID:
                continue
            value = getattr(part, name)
            if isinstance(value, str):
                if not value.isascii() or "\0" in value:
                    check_text(value, field=place + name)
            elif isinstance(value, list):
                for index, member in enumerate(value):
                    if isinstance(member, str):
                        check_text(member, field=f"{place}{name}[{index}]")


def check_text(text: str, *, field: str) -> None:
    """Check that a text is Unicode without NUL. Raises `InvalidText`, which names `field`."""
    if "\0" in text:
        raise errors.InvalidText(
            f"{field} contains a NUL character; remove it", field=field
        )
    if text.isascii():
        return
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise errors.InvalidText(
            f"{field} is not valid Unicode at character {error.start}; decode it first",
            field=field,
        ) from error


@cache
def time_fields(verb: type[msgspec.Struct]) -> frozenset[str]:
    """Return the names of a request's fields that contain a time."""
    return frozenset(
        field.name
        for field in msgspec.structs.fields(verb)
        if datetime in union_members(field.type)
    )


def union_members(kind: object) -> tuple[object, ...]:
    """Return the types in a union, or the one type itself, each without `Annotated`."""
    if get_origin(kind) is Annotated:
        return union_members(get_args(kind)[0])
    if get_origin(kind) in (Union, UnionType):
        return tuple(chain.from_iterable(map(union_members, get_args(kind))))
    return (kind,)


def _is_deep(value: dict[str, Any] | list[Any]) -> bool:
    """Return whether a JSON value nests lists and objects more than `DEPTH_MAX` levels deep."""
    level: list[dict[str, Any] | list[Any]] = [value]
    for _ in range(DEPTH_MAX):
        members = chain.from_iterable(
            each.values() if isinstance(each, dict) else each for each in level
        )
        level = [member for member in members if isinstance(member, _CONTAINERS)]
        if not level:
            return False
    return True


def _field_error(
    error: msgspec.ValidationError, verb: type[Request[Any]]
) -> errors.MnemosynedError:
    """Return the error for a validation error of msgspec, in plain words with the field's name."""
    problem, _, path = str(error).partition(" - at `")
    inside = path.rstrip("`").removeprefix("$").lstrip(".")
    named = re.search(r"(?:field|argument) `([^`]*)`", problem)
    name = named[1] if named else ""
    field = ".".join(filter(None, (inside, name))) or None
    rephrased = rephrase(problem, choices=_allowed_values(verb, field))
    message = f"{field or 'the body'} {rephrased}"
    if "unknown field" in problem:
        from difflib import get_close_matches  # noqa: PLC0415 only a mistake needs it

        kind = verb.nested.get(inside.partition("[")[0], verb)
        fields = kind.__struct_fields__
        if close := get_close_matches(name, fields, n=1):
            message += f" (did you mean {close[0]}?)"
        message += f"; the fields are {', '.join(fields)}" * bool(fields)
    return errors.InvalidRequest(message, field=field)


def _allowed_values(verb: type[Request[Any]], field: str | None) -> list[str]:
    """Return the values that an enumeration field of a request allows; empty for other fields."""
    kinds = [each.type for each in fields_of(verb) if each.name == field]
    while kinds:  # ends, as each step goes inside
        kind = kinds.pop()
        if isinstance(kind, msgspec.inspect.EnumType):
            return [choice.value for choice in kind.cls]
        if isinstance(kind, msgspec.inspect.LiteralType):
            return [*map(str, kind.values)]
        if isinstance(kind, msgspec.inspect.Metadata):
            kinds.append(kind.type)
        elif isinstance(kind, msgspec.inspect.UnionType):
            kinds.extend(kind.types)
    return []
