"""The description of the HTTP API as one page for people, with nothing from elsewhere."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from mnemosyned.daemon.api.openapi import IN_WORDS, Schema, openapi

STYLE = """
:root { color-scheme: light dark; --line: #8884; --soft: #8881; --link: #06c; }
@media (prefers-color-scheme: dark) { :root { --link: #6bf; } }
* { box-sizing: border-box; }
body { margin: 0; font: 16px/1.5 system-ui, sans-serif; display: grid;
  grid-template-columns: 15rem minmax(0, 1fr); }
nav { position: sticky; top: 0; height: 100vh; overflow: auto; padding: 1.5rem 1rem;
  border-right: 1px solid var(--line); font-size: .9rem; }
nav a { display: block; padding: .1rem 0; }
nav h2 { font-size: .8rem; margin: 1rem 0 .3rem; border: 0; padding: 0; opacity: .7; }
main { padding: 1.5rem 2rem 6rem; max-width: 60rem; }
a { color: var(--link); text-decoration: none; } a:hover { text-decoration: underline; }
h1 { margin-top: 0; }
h2 { margin: 3rem 0 .5rem; padding-top: 1rem; border-top: 1px solid var(--line); }
h3 { font-size: 1rem; margin: 1.2rem 0 .3rem; }
code, pre { font: .9em/1.45 ui-monospace, monospace; }
code { background: var(--soft); padding: .1em .3em; border-radius: 3px; }
pre { background: var(--soft); padding: .8rem 1rem; border-radius: 6px; overflow-x: auto; }
pre code { background: none; padding: 0; }
table { border-collapse: collapse; width: 100%; font-size: .92rem; }
th, td { text-align: left; vertical-align: top; padding: .3rem .8rem .3rem 0;
  border-bottom: 1px solid var(--line); }
th { font-weight: 600; opacity: .7; }
.method { font: 600 .75rem ui-monospace, monospace; border: 1px solid var(--line);
  border-radius: 4px; padding: .1rem .4rem; margin-right: .3rem; }
ul { margin: 0; padding-left: 1.2rem; }
details summary { cursor: pointer; margin-top: 1rem; font-weight: 600; }
@media (max-width: 50rem) { body { display: block; }
  nav { position: static; height: auto; border: 0; columns: 2; } main { padding: 1rem; } }
"""
SOCKET = "$XDG_RUNTIME_DIR/mnemosyned/mnemosyned.sock"
EXAMPLES = {"string": "…", "integer": 1, "number": 0.5, "boolean": True}


@cache
def docs_page() -> str:
    """The page."""
    description = openapi()
    paths, schemas = description["paths"], description["components"]["schemas"]
    bodies = {_body_of(path) for path in paths.values()}
    parts = set(re.findall(r'schemas/(\w+)"', json.dumps(schemas)))
    results = [name for name in schemas if name in parts or name not in bodies]
    body = "".join(
        [
            _navigation(paths, results),
            "<main>",
            f"<h1>{_text(description['info']['title'])}</h1>",
            f"<p>Version {_text(description['info']['version'])}. ",
            'Also as <a href="/openapi.json">OpenAPI 3.1</a>.</p>',
            _prose(description["info"]["description"]),
            *(_path(path, paths[path], schemas) for path in paths),
            "<h2>Objects</h2>",
            *(_schema(name, schemas[name]) for name in results),
            "</main>",
        ]
    )
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>mnemosyned HTTP API</title><style>{STYLE}</style></head>"
        f"<body>{body}</body></html>"
    )


def _body_of(path: Schema) -> str:
    """The name of the object that a path takes; empty where it takes none."""
    body = path.get("post", {}).get("requestBody")
    return _name(body["content"]["application/json"]["schema"]) if body else ""


def _navigation(paths: Mapping[str, Schema], results: list[str]) -> str:
    links = [f'<a href="#{_anchor(path)}">{_text(path)}</a>' for path in paths]
    objects = [f'<a href="#{name}">{name}</a>' for name in results]
    return (
        f"<nav><h2>Routes</h2>{''.join(links)}<h2>Objects</h2>{''.join(objects)}</nav>"
    )


def _path(path: str, methods: Schema, schemas: Mapping[str, Schema]) -> str:
    operation = methods.get("post") or methods["get"]
    badges = "".join(f'<span class="method">{name.upper()}</span>' for name in methods)
    parts = [
        f'<h2 id="{_anchor(path)}">{badges}{_text(path)}</h2>',
        f"<p>{_inline(operation['summary'])}.</p>",
        _prose(operation.get("description", "")),
    ]
    if body := _body_of(methods):
        parts += [_example(path, schemas[body]), _fields(schemas[body])]
    parts.append(_result(operation))
    parts.append(_errors(operation))
    return "".join(parts)


def _example(path: str, schema: Schema) -> str:
    """A call with the fields that are required."""
    properties = schema.get("properties", {})
    values = {
        name: EXAMPLES.get(str(properties[name].get("type")), [])
        for name in schema.get("required", [])
    }
    data = json.dumps(values, ensure_ascii=False)
    call = f"curl --unix-socket \"{SOCKET}\" \\\n  http://localhost{path} -d '{data}'"
    return f"<pre><code>{_text(call)}</code></pre>"


def _fields(schema: Schema) -> str:
    rows = "".join(_rows(schema))
    if not rows:
        return "<p>It takes no fields.</p>"
    head = "<tr><th>field<th>type<th>default<th></tr>"
    return f"<table>{head}{rows}</table>"


def _rows(schema: Schema) -> Iterator[str]:
    required = schema.get("required", [])
    for name, field in schema.get("properties", {}).items():
        default = "required" if name in required else _default(field)
        meaning = _inline(field.get("description", ""))
        yield (
            f"<tr><td><code>{_text(name)}</code><td>{_type(field)}"
            f"<td>{default}<td>{meaning}</tr>"
        )


def _default(field: Schema) -> str:
    if "default" not in field:
        return ""
    return f"<code>{_text(json.dumps(field['default']))}</code>"


def _result(operation: Schema) -> str:
    content = operation["responses"]["200"]["content"]
    ((kind, media),) = content.items()
    schema = media["schema"]
    shown = _type(schema) if "$ref" in schema else f"<code>{_text(kind)}</code>"
    return f"<p>Result: {shown}</p>"


def _errors(operation: Schema) -> str:
    rows = "".join(
        f"<tr><td>{status}<td>{_list(response['description'])}</tr>"
        for status, response in operation["responses"].items()
        if status != "200"
    )
    return f"<details><summary>Errors</summary><table>{rows}</table></details>"


def _schema(name: str, schema: Schema) -> str:
    heading = f'<h3 id="{name}">{name}</h3>{_prose(schema.get("description", ""))}'
    if "enum" in schema:
        values = ", ".join(
            f"<code>{_text(str(each))}</code>" for each in schema["enum"]
        )
        return f"{heading}<p>One of {values}.</p>"
    return heading + _fields(schema)


def _type(schema: Schema) -> str:
    """A type in words, with links to the objects it names."""
    if "$ref" in schema:
        name = _name(schema)
        return f'<a href="#{name}">{name}</a>'
    if "anyOf" in schema:
        return " or ".join(map(_type, schema["anyOf"]))
    if "enum" in schema:
        return " or ".join(
            f"<code>{_text(str(each))}</code>" for each in schema["enum"]
        )
    return _plain_type(schema)


def _plain_type(schema: Schema) -> str:
    kind = schema.get("type", "any")
    if kind == "array":
        return f"list of {_type(schema.get('items') or {})}"
    members = schema.get("additionalProperties")
    if kind == "object" and isinstance(members, dict) and members:
        return f"object of {_type(members)}"
    if schema.get("format") == "date-time":
        return "time"
    if schema == IN_WORDS:
        return "time in words"
    return " or ".join(kind) if isinstance(kind, list) else str(kind) + _range(schema)


def _range(schema: Schema) -> str:
    low, high = schema.get("minimum"), schema.get("maximum")
    if low is None and high is None:
        return ""
    if high is None:
        return f", {low} or more"
    return f", {low if low is not None else '…'} to {high}"


def _name(schema: Schema) -> str:
    return str(schema["$ref"]).rpartition("/")[2]


def _anchor(path: str) -> str:
    return re.sub(r"\W+", "-", path).strip("-")


def _list(text: str) -> str:
    """Lines that begin with a hyphen as a list."""
    lines = text.split("\n")
    if not lines[0].startswith("- "):
        return _inline(text)
    items = "".join(f"<li>{_inline(line[2:])}" for line in lines)
    return f"<ul>{items}</ul>"


def _prose(text: str) -> str:
    paragraphs = [part for part in re.split(r"\n\s*\n", text) if part.strip()]
    return "".join(f"<p>{_inline(part)}</p>" for part in paragraphs)


def _inline(text: str) -> str:
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", _text(text))


def _text(text: Any) -> str:  # noqa: ANN401 a value of the description
    return html.escape(str(text))
