"""Resources and prompts: memories that a client reads by URI, and ready questions for its user."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import date, timedelta
from urllib.parse import quote, unquote

import msgspec

from mnemosyned.agents.mcp.forms import ExpandTool, GetTool, RecallTool, StatusTool
from mnemosyned.agents.mcp.protocol import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    Json,
    ProtocolError,
)
from mnemosyned.agents.mcp.tools import Exchange, expand, get, recall, status, text_of
from mnemosyned.errors import Kind, MnemosynedError
from mnemosyned.text.frames import neutralize_line

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


def list_resources(exchange: Exchange) -> list[Json]:
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


def read_resource(exchange: Exchange, uri: object) -> Json:
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
    reader = _RESOURCE_READERS.get(kind) if uri.startswith(SCHEME) else None
    if reader is None or (kind != "status" and not name):
        raise ProtocolError(INVALID_PARAMS, "Resource not found", {"uri": uri})
    return reader, unquote(name)


def _read_memory(exchange: Exchange, id: str) -> msgspec.Struct:
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


_RESOURCE_READERS: dict[str, Reader] = {
    "memory": _read_memory,
    "episode": _episode,
    "day": _day,
    "status": _status,
}


ABOUT_CHARS_MAX = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """A prompt with one argument, which names the subject."""

    name: str
    title: str
    description: str
    about: str
    """What the argument is."""
    is_required: bool
    question: str
    """What recall is asked."""
    task: str
    """What the model is asked."""

    def listed(self) -> Json:
        argument = {
            "name": "about",
            "title": "About",
            "description": self.about,
            "required": self.is_required,
        }
        return {
            "name": self.name,
            "title": self.title,
            "description": self.description,
            "arguments": [argument],
        }


PROMPTS = {
    prompt.name: prompt
    for prompt in (
        Prompt(
            name="recall",
            title="Recall from memory",
            description="What memory has on a subject, with dates and sources.",
            about="the subject, in plain words",
            is_required=True,
            question="{about}",
            task="Say what is known from earlier conversations about: {about}",
        ),
        Prompt(
            name="what_did_we_decide",
            title="What did we decide?",
            description="Decisions in earlier conversations, with their dates and reasons.",
            about="the subject; without it, all recent decisions",
            is_required=False,
            question="what did we decide {about}",
            task="Say what was decided in earlier conversations, when and why. Subject: {about}",
        ),
    )
}
_RULES = (
    "Below is what memory found. Say with each statement its date and source. Where two contradict "
    "each other, the newer one counts; say so. If it does not answer, use the tools recall, get and "
    "expand; if nothing is known, say that."
)


def list_prompts() -> list[Json]:
    """The prompts, in a fixed order."""
    return [prompt.listed() for prompt in PROMPTS.values()]


def fill_prompt(exchange: Exchange, name: object, arguments: object) -> Json:
    """A prompt with what memory has on its subject. Raises `ProtocolError`."""
    prompt = PROMPTS.get(name) if isinstance(name, str) else None
    if prompt is None:
        names = ", ".join(PROMPTS)
        raise ProtocolError(INVALID_PARAMS, f"Unknown prompt; the prompts are {names}")
    about = _prompt_about(prompt, arguments)
    question = prompt.question.format(about=about).strip()
    try:
        found = text_of(recall(exchange, RecallTool(question)))
    except MnemosynedError as error:
        raise ProtocolError(INTERNAL_ERROR, error.message) from error
    task = prompt.task.format(about=about or "everything")
    text = f"{task}\n\n{_RULES}\n\n```json\n{found}\n```"
    message = {"role": "user", "content": {"type": "text", "text": text}}
    return {"description": prompt.description, "messages": [message]}


def _prompt_about(prompt: Prompt, arguments: object) -> str:
    given = arguments.get("about", "") if isinstance(arguments, dict) else None
    if not isinstance(given, str):
        raise ProtocolError(
            INVALID_PARAMS, "arguments must be an object whose values are text"
        )
    about = neutralize_line(given)[:ABOUT_CHARS_MAX]
    if prompt.is_required and not about:
        raise ProtocolError(INVALID_PARAMS, f"about is missing: {prompt.about}")
    return about
