"""Markdown for generated pages: text that is escaped once, code, and tables."""

import json
import re
from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

SIGNS = str.maketrans({sign: f"\\{sign}" for sign in "*_[]{}\\"} | {"|": "&#124;"})
"""What Markdown, or a table's cell, would read as a mark of its own."""


def code(text: str) -> str:
    """Return a text as inline code that may also be in a table."""
    if text.strip() and not set("`|") & set(text):
        return f"`{text}`"
    shown = escape(text, quote=False).replace("`", "&#96;")
    return f"<code>{shown.translate(SIGNS)}</code>"


def inline(text: str) -> str:
    """Return a docstring's text as Markdown: escaped, with words in backquotes as code."""
    parts = " ".join(text.split()).split("`")
    return "".join(
        code(part) if number % 2 else escape(part, quote=False).translate(SIGNS)
        for number, part in enumerate(parts)
    )


def paragraphs(text: str) -> str:
    """Return a text with blank lines between its paragraphs as Markdown."""
    parts = re.split(r"\n\s*\n", text.replace("\b", ""))
    return "\n\n".join(inline(part) for part in parts if part.strip())


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table; the cells are Markdown on one line. Empty without rows."""
    lines = [f"| {' | '.join(row)} |" for row in rows]
    rule = "|" + "---|" * len(head)
    return "\n".join([f"| {' | '.join(head)} |", rule, *lines]) if lines else ""


def fence(language: str, text: str) -> str:
    """Return a text as a block of code."""
    return f"```{language}\n{text.rstrip()}\n```"


def page(title: str, origin: str, *parts: str) -> str:
    """Return a generated page; `origin` says from what it is generated."""
    note = f"*Generated from {origin}.*{{ .generated }}"
    return "\n\n".join([f"# {title}", note, *filter(None, parts)]) + "\n"


def slug(text: str) -> str:
    """Return the anchor that the site and GitHub give to a heading."""
    return re.sub(r"[^\w\- ]", "", text.lower()).strip().replace(" ", "-")


def type_of(schema: dict[str, Any], types: str) -> str:
    """Return a JSON schema's type in words; `types` is the page of named types, or empty."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return f"[{name}]({types}#{name.lower()})"
    if "anyOf" in schema:
        words = [type_of(each, types) for each in schema["anyOf"]]
        return " or ".join(dict.fromkeys(words))
    if "enum" in schema:
        return " or ".join(code(json.dumps(each)) for each in schema["enum"])
    if schema.get("format") == "date-time":
        return "time"
    kind = schema.get("type", "any")
    if kind == "array":
        return f"list of {type_of(schema.get('items') or {}, types)}"
    members = schema.get("additionalProperties")
    if kind == "object" and isinstance(members, dict) and members:
        return f"object of {type_of(members, types)}"
    if isinstance(kind, list):
        return " or ".join(kind)
    low = schema.get("minimum", schema.get("exclusiveMinimum"))
    high = schema.get("maximum")
    if high is not None:
        return f"{kind}, {'…' if low is None else f'{low:,}'} to {high:,}"
    return f"{kind}, {low:,} or more" if low is not None else str(kind)


def fields_table(schema: dict[str, Any], types: str) -> str:
    """Return the table of an object's fields, with type, default and description."""
    required = schema.get("required", [])
    rows = []
    for name, field in schema.get("properties", {}).items():
        default = "required" if name in required else ""
        if name not in required and "default" in field:
            default = code(json.dumps(field["default"]))
        meaning = inline(field.get("description", ""))
        rows.append((code(name), type_of(field, types), default, meaning))
    return table(("field", "type", "default", "meaning"), rows)
