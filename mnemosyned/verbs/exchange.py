"""Lines of an export: a header, a record of each kind, and a footer that proves it whole."""

from __future__ import annotations

from datetime import datetime
from typing import Any, get_args

import msgspec

from mnemosyned.errors import InvalidRequest, MalformedJson
from mnemosyned.memory.exchange import KIND_NAMES, Record, RestoreReport
from mnemosyned.verbs import request

EXPORT_PATH = "/v1/export"
RESTORE_PATH = "/v1/import"
FORMAT = "mnemosyned-export"
VERSION = 1
HEADER = "header"
FOOTER = "footer"
CUT_OFF = "cut_off"

KINDS: dict[str, type[Any]] = {KIND_NAMES[kind]: kind for kind in get_args(Record)}
"""What each kind of line is; in this order they are exported."""

_encode = msgspec.json.Encoder().encode


class Export(request.Request[bytes], frozen=True, kw_only=True):
    """The whole memory as JSON lines, as of one moment.

    Raises `InvalidTime`, and `DaemonBusy` while another export runs.
    """

    session: request.OnlySession = None
    source: request.OnlySource = None
    tag: request.OnlyTag = None
    since: request.Since = None
    until: request.Until = None


class Import(request.Request[RestoreReport], frozen=True, kw_only=True):
    """Lines of an export, stored as they are.

    Raises `MalformedJson`, `InvalidRequest` and `InvalidText`, which name the line.
    """

    import_id: request.ImportId = None


class Header(msgspec.Struct, frozen=True, kw_only=True):
    """The first line."""

    record: str = HEADER
    format: str = FORMAT
    version: int = VERSION
    program: str
    """The version of the program that wrote it."""
    schema: int
    created_at: datetime
    database: str = ""
    whole: bool = True
    """Whether nothing was left out by a filter."""
    expected: dict[str, int] = {}
    """How many memories and episodes follow."""


class Footer(msgspec.Struct, frozen=True, kw_only=True):
    """The last line; an export without it was cut off."""

    record: str = FOOTER
    counts: dict[str, int]
    """Lines by kind."""
    sha256: str
    """The hash of all lines before this one, line breaks included."""


class CutOff(msgspec.Struct, frozen=True, kw_only=True):
    """The last line of an export that the daemon ended early."""

    record: str = CUT_OFF
    reason: str


class LineKind(msgspec.Struct):
    """The kind of a line, read without the rest of it."""

    record: str = ""
    format: str = ""
    originals: int = 0
    episode: str | None = None
    id: str | int = ""


_line_kind = msgspec.json.Decoder(LineKind)


def parse_line_kind(line: bytes) -> LineKind:
    """Return only the kind and ids of the record in an export's line. Raises `MalformedJson`."""
    try:
        return _line_kind.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise MalformedJson(f"the line is not JSON: {error}") from error


def encode_record(record: Record) -> bytes:
    """Return the JSON line of a record, without the line break."""
    kind = KIND_NAMES[type(record)].encode()
    return b'{"record":"' + kind + b'",' + _encode(record)[1:]


def parse_record(line: bytes | bytearray | memoryview) -> Record:
    """Return the record that a line contains. Raises `MalformedJson` and `InvalidRequest`."""
    kind = parse_line_kind(bytes(line)).record
    if kind not in KINDS:
        raise InvalidRequest(
            f"{kind!r} is not a kind of record; this export is of a newer version",
            field="record",
        )
    try:
        record: Record = request.decoder_of(KINDS[kind]).decode(line)
    except msgspec.ValidationError as error:
        raise InvalidRequest(f"the {kind} is not whole: {error}") from error
    return record
