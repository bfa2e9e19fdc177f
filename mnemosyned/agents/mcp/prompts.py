"""Resources and prompts: memories that a client reads by URI, and ready questions for its user."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import date, timedelta
from urllib.parse import quote, unquote

import msgspec

from mnemosyned.agents.mcp import tools
from mnemosyned.agents.mcp.forms import ExpandTool, GetTool, RecallTool, StatusTool
from mnemosyned.agents.mcp.protocol import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    Json,
    ProtocolError,
)
from mnemosyned.errors import Kind, MnemosynedError
from mnemosyned.text.frames import neutralize_line
from mnemosyned.verbs.conversation import Injections

SCHEME = "mnemosyne://"
JSON_TYPE = "application/json"
RESOURCE_BYTES_MAX = 60_000
"""A resource is asked for by a person, and may be longer than a tool's result."""
DAYS_LISTED = 7
INJECTIONS_LISTED = 20
DAY_HITS_MAX = 25
URI_CHARS_MAX = 500


def list_resources(context: tools.ToolContext) -> list[Json]:
    """Return the resource list: status, injections, and `DAYS_LISTED` days, today first."""
    today = context.now.date()
    days = [today - timedelta(back) for back in range(DAYS_LISTED)]
    return [
        tools.TEXTS["resources"]["status"],
        tools.TEXTS["resources"]["injections"],
        *(
            {
                "uri": make_resource_uri("day", day.isoformat()),
                "name": f"day-{day.isoformat()}",
                "title": f"What happened on {day:%A}, {day.isoformat()}",
                "mimeType": JSON_TYPE,
            }
            for day in days
        ),
    ]


def make_resource_uri(kind: str, name: str) -> str:
    """Return the URI of a resource: a memory or episode by id, a day by date."""
    return f"{SCHEME}{kind}/{quote(name, safe='')}"


def read_resource(context: tools.ToolContext, uri: object) -> Json:
    """Return the resource at a URI as JSON in the protocol's form. Raises `ProtocolError`."""
    if not isinstance(uri, str) or len(uri) > URI_CHARS_MAX:
        raise ProtocolError(INVALID_PARAMS, "uri must be an address from the list")
    kind, _, name = uri.removeprefix(SCHEME).partition("/")
    reader = _READERS.get(kind) if uri.startswith(SCHEME) else None
    if reader is None or (kind not in _LISTED and not name):
        raise ProtocolError(INVALID_PARAMS, "Resource not found", {"uri": uri})
    wide = replace(context, bytes_max=RESOURCE_BYTES_MAX)
    try:
        result = reader(wide, unquote(name))
    except MnemosynedError as error:
        unknown = error.kind in {Kind.NOT_FOUND, Kind.INVALID}
        code = INVALID_PARAMS if unknown else INTERNAL_ERROR
        raise ProtocolError(code, error.message, {"uri": uri}) from error
    content = {"uri": uri, "mimeType": JSON_TYPE, "text": tools.result_as_text(result)}
    return {"contents": [content]}


def _recall_day(context: tools.ToolContext, name: str) -> msgspec.Struct:
    """Return the memories of a day as the `recall` tool does. Raises `ProtocolError`."""
    try:
        day = date.fromisoformat(name)
    except ValueError as error:
        raise ProtocolError(
            INVALID_PARAMS, "a day is written as 2026-03-09", {"uri": f"day/{name}"}
        ) from error
    question = f"{day:%B} {day.day}, {day.year}"
    return tools.recall(
        context,
        RecallTool(
            question,
            limit=DAY_HITS_MAX,
            since=day.isoformat(),
            until=day.isoformat(),
        ),
    )


_READERS: dict[str, Callable[[tools.ToolContext, str], msgspec.Struct]] = {
    "memory": lambda context, name: tools.get(context, GetTool(name)),
    "episode": lambda context, name: tools.expand(context, ExpandTool(name)),
    "day": _recall_day,
    "status": lambda context, _: tools.status(context, StatusTool()),
    "injections": lambda context, _: context.caller.call(
        Injections(limit=INJECTIONS_LISTED)
    ),
}
_LISTED = frozenset({"status", "injections"})
"""Resources without a name of their own."""

# -------------------------------------------------------------------- prompts


ABOUT_CHARS_MAX = 1_000


class MemoryPrompt(msgspec.Struct, frozen=True, kw_only=True):
    """A prompt with one argument, its subject."""

    title: str
    description: str
    about: str
    """Description of the argument."""
    is_required: bool
    question: str
    """Question for `recall`."""
    task: str
    """Task for the model."""


PROMPTS = msgspec.convert(tools.TEXTS["prompts"]["by_name"], dict[str, MemoryPrompt])


def list_prompts() -> list[Json]:
    """Return the entries of the prompt list: name, texts and the argument `about` of each."""
    return [
        {
            "name": name,
            "title": prompt.title,
            "description": prompt.description,
            "arguments": [
                {
                    "name": "about",
                    "title": "About",
                    "description": prompt.about,
                    "required": prompt.is_required,
                }
            ],
        }
        for name, prompt in PROMPTS.items()
    ]


def fill_prompt(context: tools.ToolContext, name: object, arguments: object) -> Json:
    """Return a prompt as a message of the user: its task, and memories found for it.

    Raises `ProtocolError` for an unknown prompt, a wrong argument or a failed search.
    """
    prompt = PROMPTS.get(name) if isinstance(name, str) else None
    if prompt is None:
        names = ", ".join(PROMPTS)
        raise ProtocolError(INVALID_PARAMS, f"Unknown prompt; the prompts are {names}")
    given = arguments.get("about", "") if isinstance(arguments, dict) else None
    if not isinstance(given, str):
        raise ProtocolError(
            INVALID_PARAMS, "arguments must be an object whose values are text"
        )
    about = neutralize_line(given)[:ABOUT_CHARS_MAX]
    if prompt.is_required and not about:
        raise ProtocolError(INVALID_PARAMS, f"about is missing: {prompt.about}")
    question = prompt.question.format(about=about).strip()
    try:
        found = tools.result_as_text(tools.recall(context, RecallTool(question)))
    except MnemosynedError as error:
        raise ProtocolError(INTERNAL_ERROR, error.message) from error
    task = prompt.task.format(about=about or "everything")
    text = f"{task}\n\n{tools.TEXTS['prompts']['rules']}\n\n```json\n{found}\n```"
    message = {"role": "user", "content": {"type": "text", "text": text}}
    return {"description": prompt.description, "messages": [message]}
