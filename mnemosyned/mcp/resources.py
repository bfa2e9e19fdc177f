"""Memories, summaries and recent days as resources, for clients that mention them by address."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import date, timedelta
from urllib.parse import quote, unquote

import msgspec

from mnemosyned.domain.errors import Kind, MnemosynedError
from mnemosyned.mcp.calls import Exchange, expand, get, recall, status
from mnemosyned.mcp.forms import (
    ExpandTool,
    GetTool,
    RecallTool,
    StatusTool,
)
from mnemosyned.mcp.protocol import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    Json,
    ProtocolError,
)
from mnemosyned.mcp.tools import text_of

SCHEME = "mnemosyne://"
JSON_TYPE = "application/json"
RESOURCE_BYTES_MAX = 60_000
"""A resource is asked for by a person, and may be longer than a tool's result."""
DAYS_LISTED = 7
DAY_HITS_MAX = 25
URI_CHARS_MAX = 500

_STATUS: Json = {
    "uri": SCHEME + "status",
    "name": "status",
    "title": "The state of memory",
    "mimeType": JSON_TYPE,
}
TEMPLATES: list[Json] = [
    {
        "uriTemplate": SCHEME + "memory/{id}",
        "name": "memory",
        "title": "A memory or summary in full",
        "description": "The words of one memory or summary, by its id.",
        "mimeType": JSON_TYPE,
    },
    {
        "uriTemplate": SCHEME + "episode/{id}",
        "name": "episode",
        "title": "What a summary was made of",
        "description": "The originals of an episode, or the summaries below a day, week or month.",
        "mimeType": JSON_TYPE,
    },
    {
        "uriTemplate": SCHEME + "day/{date}",
        "name": "day",
        "title": "What happened on a day",
        "description": "What memory has of a day, such as 2026-03-09.",
        "mimeType": JSON_TYPE,
    },
]


def listed(exchange: Exchange) -> list[Json]:
    """The state of memory and the last days; more is reached by the templates."""
    today = exchange.now.date()
    return [
        _STATUS,
        *(_day_entry(today - timedelta(back)) for back in range(DAYS_LISTED)),
    ]


def _day_entry(day: date) -> Json:
    return {
        "uri": address("day", day.isoformat()),
        "name": f"day-{day.isoformat()}",
        "title": f"What happened on {day:%A}, {day.isoformat()}",
        "mimeType": JSON_TYPE,
    }


def address(kind: str, name: str) -> str:
    """The address of a memory, a summary or a day."""
    return f"{SCHEME}{kind}/{quote(name, safe='')}"


def read(exchange: Exchange, uri: object) -> Json:
    """Read one resource. Raises `ProtocolError` where there is none at this address."""
    reader, name = _reader(uri)
    wide = replace(exchange, bytes_max=RESOURCE_BYTES_MAX)
    try:
        result = reader(wide, name)
    except MnemosynedError as error:
        unknown = error.kind in {Kind.NOT_FOUND, Kind.INVALID}
        code = INVALID_PARAMS if unknown else INTERNAL_ERROR
        raise ProtocolError(code, error.message, {"uri": uri}) from error
    content = {"uri": uri, "mimeType": JSON_TYPE, "text": text_of(result)}
    return {"contents": [content]}


Reader = Callable[[Exchange, str], msgspec.Struct]


def _reader(uri: object) -> tuple[Reader, str]:
    """Return the reader of a resource, and its name within its kind."""
    if not isinstance(uri, str) or len(uri) > URI_CHARS_MAX:
        raise ProtocolError(INVALID_PARAMS, "uri must be an address from the list")
    kind, _, name = uri.removeprefix(SCHEME).partition("/")
    reader = _READERS.get(kind) if uri.startswith(SCHEME) else None
    if reader is None or (kind != "status" and not name):
        raise ProtocolError(INVALID_PARAMS, "Resource not found", {"uri": uri})
    return reader, unquote(name)


def _memory(exchange: Exchange, id: str) -> msgspec.Struct:
    return get(exchange, GetTool(id))


def _episode(exchange: Exchange, id: str) -> msgspec.Struct:
    return expand(exchange, ExpandTool(id))


def _day(exchange: Exchange, name: str) -> msgspec.Struct:
    try:
        day = date.fromisoformat(name)
    except ValueError as error:
        raise ProtocolError(
            INVALID_PARAMS, "a day is written as 2026-03-09", {"uri": f"day/{name}"}
        ) from error
    question = f"{day:%B} {day.day}, {day.year}"
    return recall(
        exchange,
        RecallTool(
            question,
            limit=DAY_HITS_MAX,
            since=day.isoformat(),
            until=day.isoformat(),
        ),
    )


def _status(exchange: Exchange, _: str) -> msgspec.Struct:
    return status(exchange, StatusTool())


_READERS: dict[str, Reader] = {
    "memory": _memory,
    "episode": _episode,
    "day": _day,
    "status": _status,
}
