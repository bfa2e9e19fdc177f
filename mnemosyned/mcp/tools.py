"""The tools as clients list and call them."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import Any

import msgspec

from mnemosyned.domain.errors import MnemosynedError
from mnemosyned.domain.text.frames import neutralize, neutralize_tags
from mnemosyned.domain.text.invisible import escape_invisible_json
from mnemosyned.mcp import calls
from mnemosyned.mcp.calls import Exchange, Tool
from mnemosyned.mcp.forms import (
    ExpandTool,
    ForgetTool,
    GetTool,
    LearnTool,
    RecallTool,
    RememberTool,
    StatusTool,
    input_schema,
    output_schema,
)
from mnemosyned.mcp.protocol import INVALID_PARAMS, Json, ProtocolError
from mnemosyned.verbs.request import Request, parse_text, result_type

ALWAYS_LOADED = "anthropic/alwaysLoad"
"""Claude Code then shows the tool to the model from the start, and not only its name."""


def _paragraphs(docstring: str) -> str:
    """A docstring as a model reads it: a line for each paragraph."""
    paragraphs = inspect.cleandoc(docstring).split("\n\n")
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolEntry:
    """One tool: what it is called, what it takes, and what it does."""

    name: str
    title: str
    form: type[Request[Any]]
    run: Tool
    reads: bool = False
    destroys: bool = False
    repeatable: bool = True
    """Whether a second call with the same arguments changes nothing more."""
    always_loaded: bool = False
    is_long: bool = False
    """Whether a call may take so long that its client wants to see progress."""

    def listed(self) -> Json:
        """The entry in the list of tools."""
        entry: Json = {
            "name": self.name,
            "title": self.title,
            "description": _paragraphs(self.form.__doc__ or ""),
            "inputSchema": input_schema(self.form),
            "outputSchema": output_schema(result_type(self.form)),
            "annotations": {
                "title": self.title,
                "readOnlyHint": self.reads,
                "destructiveHint": self.destroys,
                "idempotentHint": self.repeatable,
                "openWorldHint": False,
            },
        }
        if self.always_loaded:
            entry["_meta"] = {ALWAYS_LOADED: True}
        return entry


ENTRIES = (
    ToolEntry(
        name="recall",
        title="Search memory",
        form=RecallTool,
        run=calls.recall,
        reads=True,
        always_loaded=True,
    ),
    ToolEntry(
        name="remember",
        title="Store a fact in memory",
        form=RememberTool,
        run=calls.remember,
        always_loaded=True,
    ),
    ToolEntry(
        name="get",
        title="Read one memory in full",
        form=GetTool,
        run=calls.get,
        reads=True,
        always_loaded=True,
    ),
    ToolEntry(
        name="expand",
        title="Show what a summary was made of",
        form=ExpandTool,
        run=calls.expand,
        reads=True,
    ),
    ToolEntry(
        name="learn",
        title="Remember a rule for good",
        form=LearnTool,
        run=calls.learn,
        repeatable=False,
    ),
    ToolEntry(
        name="forget",
        title="Delete memories, after a preview",
        form=ForgetTool,
        run=calls.forget,
        destroys=True,
        is_long=True,
    ),
    ToolEntry(
        name="status",
        title="Show the state of memory",
        form=StatusTool,
        run=calls.status,
        reads=True,
    ),
)
BY_NAME = {entry.name: entry for entry in ENTRIES}
LISTED = [entry.listed() for entry in ENTRIES]


def call_tool(exchange: Exchange, name: object, arguments: object) -> Json:
    """Call a tool. What a model can mend is a result with `isError`.

    Raises `ProtocolError` for a tool that is not there.
    """
    entry = BY_NAME.get(name) if isinstance(name, str) else None
    if entry is None:
        names = ", ".join(BY_NAME)
        raise ProtocolError(INVALID_PARAMS, f"Unknown tool; the tools are {names}")
    if not isinstance(arguments, dict):
        raise ProtocolError(INVALID_PARAMS, "arguments must be an object")
    try:
        result = entry.run(exchange, parse_text(entry.form, arguments))
    except MnemosynedError as error:
        return {
            "content": [{"type": "text", "text": neutralize(error.message)}],
            "isError": True,
        }
    text = text_of(result)
    return {
        "content": [{"type": "text", "text": text}],
        "structuredContent": msgspec.json.decode(text),
        "isError": False,
    }


def text_of(result: msgspec.Struct) -> str:
    """A result as JSON for a model to read: a list has a line for each of its members.

    Ids and names are neutralized here, as all that is shown.
    """
    fields = [
        f'"{name}": {_value(getattr(result, name))}'
        for name in result.__struct_fields__
    ]
    return escape_invisible_json(neutralize_tags("{" + ",\n".join(fields) + "}"))


def _value(value: object) -> str:
    if not isinstance(value, list) or not value:
        return msgspec.json.encode(value).decode()
    return "[\n" + ",\n".join(msgspec.json.encode(m).decode() for m in value) + "\n]"
