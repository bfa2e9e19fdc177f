"""The description of the HTTP API, made from the verbs.

As OpenAPI 3.1, and as one page for people that loads nothing from elsewhere.
"""

from __future__ import annotations

import copy
import inspect
import json
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from functools import cache
from html import escape
from pathlib import Path
from typing import Any

import msgspec

from mnemosyned.daemon.http.protocol import STATUS_OF_KIND
from mnemosyned.daemon.http.server import VERB_PREFIX
from mnemosyned.errors import (
    DaemonBusy,
    DatabaseReplaced,
    DatabaseUnreachable,
    ForeignOrigin,
    InvalidRequest,
    InvalidText,
    LimitReached,
    MalformedJson,
    MalformedRequest,
    MemoryBusy,
    MethodNotAllowed,
    MnemosynedError,
    ShuttingDown,
    StorageFailed,
    Unauthorized,
    error_classes_by_code,
)
from mnemosyned.http_messages import JSON
from mnemosyned.text.rule_files import read_tables
from mnemosyned.verbs.facade import ALIASES, VERBS
from mnemosyned.verbs.request import Request, result_type
from mnemosyned.version import __version__

Schema = dict[str, Any]
Errors = Iterable[type[MnemosynedError]]

REF = "#/components/schemas/{name}"
UNEXPECTED = "Unexpected; the daemon's log has the traceback."
NULL = {"type": "null"}
OF_EVERY_ROUTE = (
    MalformedRequest,
    Unauthorized,
    ForeignOrigin,
    MethodNotAllowed,
    LimitReached,
    MnemosynedError,
)
OF_EVERY_VERB = (
    *OF_EVERY_ROUTE,
    InvalidRequest,
    InvalidText,
    MalformedJson,
    StorageFailed,
    DatabaseReplaced,
    DatabaseUnreachable,
    MemoryBusy,
    DaemonBusy,
)
_FIXED = read_tables(__file__, "openapi.toml")
IN_WORDS: Schema = _FIXED["time_in_words"]
_RAISES = re.compile(r"\n\s*Raises (.*)", re.DOTALL)


@cache
def openapi_json(*, serves_owners: bool = False) -> bytes:
    """Return the OpenAPI document of the HTTP API as JSON."""
    return msgspec.json.encode(openapi(serves_owners=serves_owners))


@cache
def openapi(*, serves_owners: bool = False) -> Schema:
    """Return the OpenAPI document of the HTTP API as a dict, made from the verbs' types.

    With `serves_owners` it has the verbs about owners, too.
    """
    verbs = {name: VERBS[ALIASES.get(name, name)] for name in (*VERBS, *ALIASES)}
    if serves_owners:
        # Loaded here: a memory with one owner has none of them.
        from mnemosyned.verbs.owners import ADMINISTRATION, ENROLMENT  # noqa: PLC0415

        verbs |= {verb.verb_name(): verb for verb in (*ENROLMENT, *ADMINISTRATION)}
    types = [*verbs.values(), *(result_type(verb) for verb in verbs.values())]
    _, schemas = msgspec.json.schema_components(types, ref_template=REF)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "mnemosyned",
            "version": __version__,
            "description": _FIXED["description"],
        },
        "servers": [
            {"url": "http://localhost", "description": "over the Unix socket"},
            {"url": "http://127.0.0.1:7464", "description": "as `listen` says"},
        ],
        "security": [{}, {"token": []}],
        "paths": {**_verb_paths(verbs, schemas), **_page_paths()},
        "components": {
            "schemas": {**_complete_schemas(schemas), "Error": _error_schema()},
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


def errors_of(verb: type[Request[Any]]) -> set[type[MnemosynedError]]:
    """Return the error classes that a verb may raise.

    They are those of every verb, those after "Raises" in its docstring, and `ShuttingDown` if it
    writes.
    """
    errors: set[type[MnemosynedError]] = set(OF_EVERY_VERB)
    if verb.writes:
        errors.add(ShuttingDown)
    named = _RAISES.search(verb.__doc__ or "")
    known = {each.__name__: each for each in error_classes_by_code().values()}
    for name in re.findall(r"`(\w+)`", named[1] if named else ""):
        if name in known:
            errors.add(known[name])
        elif name in VERBS:  # "what `remember` raises"
            errors |= errors_of(VERBS[name])
    return errors


def summary_of(verb: type[Request[Any]]) -> tuple[str, str]:
    """Return the first sentence of a verb's docstring, and the rest up to its "Raises" part."""
    text = _RAISES.sub("", inspect.cleandoc(verb.__doc__ or "") + "\n")
    first, _, rest = text.partition("\n")
    return first.rstrip("."), rest.strip()


# -------------------------------------------------------------------- paths


def _verb_paths(
    verbs: Mapping[str, type[Request[Any]]], schemas: Mapping[str, Schema]
) -> dict[str, Schema]:
    """Return the OpenAPI description of each verb by URL path; `verbs` are by name or alias.

    `schemas` are the schemas of all types by name. Verbs that write have no GET.
    """
    paths: dict[str, Schema] = {}
    for name, verb in verbs.items():
        path = {"post": _post_operation(name, verb)}
        if not verb.writes:
            path["get"] = _get_operation(name, verb, schemas)
        paths[VERB_PREFIX + name] = path
    return paths


def _post_operation(name: str, verb: type[Request[Any]]) -> Schema:
    """Return the OpenAPI description of calling a verb by POST with a JSON body.

    `name` is that of the verb or of its alias.
    """
    required = any(field.required for field in msgspec.structs.fields(verb))
    body = {
        "required": required,
        "content": {JSON: {"schema": _schema_reference(verb.__name__)}},
    }
    return {
        **_verb_operation(name, verb),
        "operationId": name.replace("/", "_"),
        "requestBody": body,
    }


def _get_operation(
    name: str, verb: type[Request[Any]], schemas: Mapping[str, Schema]
) -> Schema:
    """Return the OpenAPI description of calling a verb by GET with query parameters.

    `name` is that of the verb or of its alias; `schemas` are the schemas of all types by name.
    """
    schema = schemas[verb.__name__]
    required = schema.get("required", [])
    parameters = [
        _query_parameter(field, described, required=field in required)
        for field, described in schema["properties"].items()
        if _fits_in_query(described)
    ]
    operation = _verb_operation(name, verb)
    return {
        **operation,
        "operationId": f"{name.replace('/', '_')}_by_url",
        "parameters": parameters,
    }


def _verb_operation(name: str, verb: type[Request[Any]]) -> Schema:
    """Return a verb's summary, description and responses in OpenAPI, for both GET and POST.

    `name` is that of the verb or of its alias.
    """
    summary, description = summary_of(verb)
    if name in ALIASES:
        description = f"The same as `{ALIASES[name]}`. {description}"
    result = result_type(verb).__name__
    return {
        "summary": summary,
        "description": description,
        "responses": {
            "200": _json_response("Done.", _schema_reference(result)),
            **_error_responses(errors_of(verb), body=True),
        },
    }


def _page_paths() -> dict[str, Schema]:
    """Return the OpenAPI description of events, health, metrics and documentation, by URL path."""
    paths = {}
    for path, page in _FIXED["pages"].items():
        schema = {"type": "object" if page["type"] == JSON else "string"}
        response = {
            "description": "Done.",
            "content": {page["type"]: {"schema": schema}},
        }
        operation = {
            "operationId": page["id"],
            "summary": page["summary"],
            "responses": {
                "200": response,
                **_error_responses(OF_EVERY_ROUTE, body=False),
            },
        }
        paths[path] = {"get": operation}
    return paths


def _query_parameter(name: str, schema: Schema, *, required: bool) -> Schema:
    """Return the OpenAPI description of a request's field as a query parameter.

    `name` and `schema` are the field's; `required` means that it has no default.
    """
    described = {key: value for key, value in schema.items() if key != "description"}
    if "anyOf" in described:
        described["anyOf"] = list(filter(_fits_in_query, described["anyOf"]))
    return {
        "name": name,
        "in": "query",
        "required": required,
        "description": schema.get("description", ""),
        "schema": _complete_schema(described),
    }


def _fits_in_query(schema: Schema) -> bool:
    """Return True if a field of this schema can be given as a query parameter.

    Texts, numbers and lists of texts can; objects cannot.
    """
    if "anyOf" in schema:
        return any(each != NULL and _fits_in_query(each) for each in schema["anyOf"])
    if schema.get("type") == "array":
        return bool(schema.get("items", {}).get("type") == "string")
    return bool(schema.get("type") != "object")


# ---------------------------------------------------------------- responses


def _error_responses(errors: Errors, *, body: bool) -> dict[str, Schema]:
    """Return the OpenAPI responses for errors by HTTP status, each with its error codes.

    Without a request `body`, status 413 (too large) is left out.
    """
    by_status: dict[str, list[type[MnemosynedError]]] = defaultdict(list)
    for error in sorted(errors, key=lambda each: each.code):
        by_status[str(STATUS_OF_KIND[error.kind].value)].append(error)
    sentences = {
        error: inspect.cleandoc(error.__doc__ or "").partition("\n")[0]
        for error in errors
    }
    sentences[MnemosynedError] = UNEXPECTED
    texts = {
        status: "\n".join(f"- `{each.code}`: {sentences[each]}" for each in members)
        for status, members in by_status.items()
    }
    texts |= {
        status: text
        for status, text in _FIXED["statuses"].items()
        if body or status != "413"
    }
    refusals = {
        status: _json_response(texts[status], _schema_reference("Error"))
        for status in sorted(texts)
    }
    for status, header in (
        ("401", "WWW-Authenticate"),
        ("405", "Allow"),
        ("429", "Retry-After"),
    ):
        refusals[status]["headers"] = {header: {"schema": {"type": "string"}}}
    return refusals


def _json_response(description: str, schema: Schema) -> Schema:
    """Return the OpenAPI description of a response with a JSON body of this schema."""
    return {"description": description, "content": {JSON: {"schema": schema}}}


def _schema_reference(name: str) -> Schema:
    """Return an OpenAPI reference to the schema with this name."""
    return {"$ref": REF.format(name=name)}


# ------------------------------------------------------------------ schemas


def _error_schema() -> Schema:
    """Return the JSON schema of an error response, which lists all error codes."""
    codes = sorted(error_classes_by_code())
    schema: Schema = copy.deepcopy(_FIXED["error"])
    schema["properties"]["error"]["properties"]["code"]["enum"] = codes
    return schema


def _complete_schemas(schemas: Mapping[str, Schema]) -> dict[str, Schema]:
    """Return completed copies of the schemas by name, sorted, without "Raises" in descriptions."""
    described = {}
    for name in sorted(schemas):
        schema = dict(schemas[name])
        if "description" in schema:
            text = inspect.cleandoc(schema["description"]) + "\n"
            schema["description"] = _RAISES.sub("", text).strip()
        described[name] = _complete_schema(schema)
    return described


def _complete_schema(schema: Any) -> Any:  # noqa: ANN401 any part of a schema
    """Return a copy of a JSON schema, or of a part of one, completed for readers.

    Each array gets `items`, and each time may also be given in words.
    """
    if isinstance(schema, list):
        return [_complete_schema(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    whole = {key: _complete_schema(value) for key, value in schema.items()}
    if {"type": "string", "format": "date-time"} in whole.get("anyOf", ()):
        whole["anyOf"].insert(1, IN_WORDS)
    if whole.get("type") == "array" and not {"items", "prefixItems"} & whole.keys():
        whole["items"] = {}
    return whole


SOCKET = "$XDG_RUNTIME_DIR/mnemosyned/mnemosyned.sock"
EXAMPLES = {"string": "…", "integer": 1, "number": 0.5, "boolean": True}


@cache
def docs_page(*, serves_owners: bool = False) -> str:
    """Return the documentation of the HTTP API as one HTML page."""
    description = openapi(serves_owners=serves_owners)
    style = Path(__file__).with_name("docs.css").read_text(encoding="utf-8")
    paths, schemas = description["paths"], description["components"]["schemas"]
    bodies = {_request_schema_name(path) for path in paths.values()}
    parts = set(re.findall(r'schemas/(\w+)"', json.dumps(schemas)))
    results = [name for name in schemas if name in parts or name not in bodies]
    links = "".join(
        f'<a href="#{_anchor_of(path)}">{escape(path)}</a>' for path in paths
    )
    objects = "".join(f'<a href="#{name}">{name}</a>' for name in results)
    body = "".join(
        [
            f"<nav><h2>Routes</h2>{links}<h2>Objects</h2>{objects}</nav>",
            "<main>",
            f"<h1>{escape(description['info']['title'])}</h1>",
            f"<p>Version {escape(description['info']['version'])}. ",
            'Also as <a href="/openapi.json">OpenAPI 3.1</a>.</p>',
            _paragraphs_html(description["info"]["description"]),
            *(_path_html(path, paths[path], schemas) for path in paths),
            "<h2>Objects</h2>",
            *(_schema_html(name, schemas[name]) for name in results),
            "</main>",
        ]
    )
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>mnemosyned HTTP API</title><style>{style}</style></head>"
        f"<body>{body}</body></html>"
    )


def _request_schema_name(path: Schema) -> str:
    """Return the name of the schema of a URL path's POST body; empty if it takes none.

    `path` is the OpenAPI description of the path.
    """
    body = path.get("post", {}).get("requestBody")
    reference = body["content"][JSON]["schema"]["$ref"] if body else ""
    return str(reference.rpartition("/")[2])


def _path_html(path: str, methods: Schema, schemas: Mapping[str, Schema]) -> str:
    """Return the HTML section about a URL path: methods, fields, an example, result and errors.

    `methods` is its OpenAPI description, `schemas` are the schemas of all types by name.
    """
    operation = methods.get("post") or methods["get"]
    badges = "".join(f'<span class="method">{name.upper()}</span>' for name in methods)
    parts = [
        f'<h2 id="{_anchor_of(path)}">{badges}{escape(path)}</h2>',
        f"<p>{_inline_html(operation['summary'])}.</p>",
        _paragraphs_html(operation.get("description", "")),
    ]
    if body := _request_schema_name(methods):
        parts += [_example_html(path, schemas[body]), _field_table(schemas[body])]
    ((kind, media),) = operation["responses"]["200"]["content"].items()
    schema = media["schema"]
    result = _type_html(schema) if "$ref" in schema else f"<code>{escape(kind)}</code>"
    rows = "".join(
        f"<tr><td>{status}<td>{_text_to_html(response['description'])}</tr>"
        for status, response in operation["responses"].items()
        if status != "200"
    )
    parts += [
        f"<p>Result: {result}</p>",
        f"<details><summary>Errors</summary><table>{rows}</table></details>",
    ]
    return "".join(parts)


def _example_html(path: str, schema: Schema) -> str:
    """Return a `curl` command for a URL path as HTML, with example values of required fields."""
    properties = schema.get("properties", {})
    values = {
        name: EXAMPLES.get(str(properties[name].get("type")), [])
        for name in schema.get("required", [])
    }
    data = json.dumps(values, ensure_ascii=False)
    call = f"curl --unix-socket \"{SOCKET}\" \\\n  http://localhost{path} -d '{data}'"
    return f"<pre><code>{escape(call)}</code></pre>"


def _field_table(schema: Schema) -> str:
    """Return an HTML table of a schema's fields with type, default and description."""
    required = schema.get("required", [])
    rows = "<tr><th>field<th>type<th>default<th></tr>"
    for name, field in schema.get("properties", {}).items():
        default = ""
        if name in required:
            default = "required"
        elif "default" in field:
            default = f"<code>{escape(json.dumps(field['default']))}</code>"
        meaning = _inline_html(field.get("description", ""))
        rows += (
            f"<tr><td><code>{escape(name)}</code><td>{_type_html(field)}"
            f"<td>{default}<td>{meaning}</tr>"
        )
    if not schema.get("properties"):
        return "<p>It takes no fields.</p>"
    return f"<table>{rows}</table>"


def _schema_html(name: str, schema: Schema) -> str:
    """Return the HTML section about a type: an enum's values, or a table of its fields."""
    heading = (
        f'<h3 id="{name}">{name}</h3>{_paragraphs_html(schema.get("description", ""))}'
    )
    if "enum" in schema:
        values = ", ".join(
            f"<code>{escape(str(each))}</code>" for each in schema["enum"]
        )
        return f"{heading}<p>One of {values}.</p>"
    return heading + _field_table(schema)


def _type_html(schema: Schema) -> str:
    """Return the type of a JSON schema in words as HTML, such as "list of string".

    Types with a section of their own are linked.
    """
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return f'<a href="#{name}">{name}</a>'
    if "anyOf" in schema:
        return " or ".join(map(_type_html, schema["anyOf"]))
    if "enum" in schema:
        return " or ".join(
            f"<code>{escape(str(each))}</code>" for each in schema["enum"]
        )
    if schema == IN_WORDS:
        return "time in words"
    if schema.get("format") == "date-time":
        return "time"
    kind = schema.get("type", "any")
    if kind == "array":
        return f"list of {_type_html(schema.get('items') or {})}"
    members = schema.get("additionalProperties")
    if kind == "object" and isinstance(members, dict) and members:
        return f"object of {_type_html(members)}"
    low, high = schema.get("minimum"), schema.get("maximum")
    limits = ""
    if high is not None:
        limits = f", {'…' if low is None else low} to {high}"
    elif low is not None:
        limits = f", {low} or more"
    return " or ".join(kind) if isinstance(kind, list) else f"{kind}{limits}"


def _anchor_of(path: str) -> str:
    """Return the id by which the HTML section of a URL path is linked."""
    return re.sub(r"\W+", "-", path).strip("-")


def _text_to_html(text: str) -> str:
    """Return a text as escaped HTML: as a list if its lines begin with "- "."""
    lines = text.split("\n")
    if not lines[0].startswith("- "):
        return _inline_html(text)
    items = "".join(f"<li>{_inline_html(line[2:])}" for line in lines)
    return f"<ul>{items}</ul>"


def _paragraphs_html(text: str) -> str:
    """Return a text as HTML paragraphs, divided at blank lines."""
    paragraphs = [part for part in re.split(r"\n\s*\n", text) if part.strip()]
    return "".join(f"<p>{_inline_html(part)}</p>" for part in paragraphs)


def _inline_html(text: str) -> str:
    """Return a text as escaped HTML, with words in backquotes as code."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(text))
