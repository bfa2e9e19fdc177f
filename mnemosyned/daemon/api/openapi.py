"""The description of the HTTP API as OpenAPI 3.1, made from the verbs."""

from __future__ import annotations

import inspect
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

import msgspec

from mnemosyned.daemon.api.events import EVENT_STREAM
from mnemosyned.daemon.server.refusals import STATUS_OF_KIND
from mnemosyned.daemon.server.serving import VERB_PREFIX
from mnemosyned.domain.errors import (
    DaemonBusy,
    DatabaseReplaced,
    DatabaseUnreachable,
    ForeignOrigin,
    InvalidRequest,
    InvalidText,
    MalformedJson,
    MalformedRequest,
    MemoryBusy,
    MethodNotAllowed,
    MnemosynedError,
    ShuttingDown,
    StorageFailed,
    Unauthorized,
)
from mnemosyned.http_messages import JSON
from mnemosyned.prometheus import CONTENT_TYPE
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
OF_THE_SERVER = {
    "408": "The request did not arrive in time.",
    "413": "The body exceeds `limits.body_bytes_max`.",
    "431": "The headers are too long.",
}
"""Statuses of requests that could not be read."""
DESCRIPTION = """A memory for AI agents: it remembers, sleeps and recalls.

Over the Unix socket no token is needed. Over TCP, where the setting `listen` switches it on, every
request needs the token of the daemon, and a `Host` that is this machine."""
IN_WORDS: Schema = {
    "type": "string",
    "description": "a time as people write it, in the zone of the daemon; as an end, a day is included",
    "examples": ["yesterday", "7d", "18 Nov", "10:00", "last week", "3 weeks ago"],
}
"""What a request may have for a time next to RFC 3339."""
_RAISES = re.compile(r"\n\s*Raises (.*)", re.DOTALL)


@cache
def openapi_json() -> bytes:
    """The description as JSON."""
    return msgspec.json.encode(openapi())


@cache
def openapi() -> Schema:
    """The description."""
    types = [*VERBS.values(), *(result_type(verb) for verb in VERBS.values())]
    _, schemas = msgspec.json.schema_components(types, ref_template=REF)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "mnemosyned",
            "version": __version__,
            "description": DESCRIPTION,
        },
        "servers": [
            {"url": "http://localhost", "description": "over the Unix socket"},
            {"url": "http://127.0.0.1:7464", "description": "as `listen` says"},
        ],
        "security": [{}, {"token": []}],
        "paths": {**_verb_paths(schemas), **_other_paths()},
        "components": {
            "schemas": {**_described(schemas), "Error": _error_schema()},
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


def errors_of(verb: type[Request[Any]]) -> set[type[MnemosynedError]]:
    """The errors that a verb's docstring names, and those of every verb."""
    errors: set[type[MnemosynedError]] = set(OF_EVERY_VERB)
    if verb.writes:
        errors.add(ShuttingDown)
    named = _RAISES.search(verb.__doc__ or "")
    known = {each.__name__: each for each in _tree(MnemosynedError)}
    for name in re.findall(r"`(\w+)`", named[1] if named else ""):
        if name in known:
            errors.add(known[name])
        elif name in VERBS:  # "what `remember` raises"
            errors |= errors_of(VERBS[name])
    return errors


def _tree(error: type[MnemosynedError]) -> list[type[MnemosynedError]]:
    tree = [error]
    for each in tree:
        tree.extend(each.__subclasses__())
    return tree


def summary_of(verb: type[Request[Any]]) -> tuple[str, str]:
    """The first sentence of a verb's docstring, and the rest without its errors."""
    text = _RAISES.sub("", inspect.cleandoc(verb.__doc__ or "") + "\n")
    first, _, rest = text.partition("\n")
    return first.rstrip("."), rest.strip()


# -------------------------------------------------------------------- paths


def _verb_paths(schemas: Mapping[str, Schema]) -> dict[str, Schema]:
    paths: dict[str, Schema] = {}
    for name in (*VERBS, *ALIASES):
        verb = VERBS[ALIASES.get(name, name)]
        path = {"post": _post(name, verb)}
        if not verb.writes:
            path["get"] = _get(name, verb, schemas)
        paths[VERB_PREFIX + name] = path
    return paths


def _post(name: str, verb: type[Request[Any]]) -> Schema:
    required = any(field.required for field in msgspec.structs.fields(verb))
    body = {
        "required": required,
        "content": {JSON: {"schema": _reference(verb.__name__)}},
    }
    return {**_operation(name, verb), "operationId": name, "requestBody": body}


def _get(name: str, verb: type[Request[Any]], schemas: Mapping[str, Schema]) -> Schema:
    schema = schemas[verb.__name__]
    required = schema.get("required", [])
    parameters = [
        _parameter(field, described, required=field in required)
        for field, described in schema["properties"].items()
        if _fits_a_url(described)
    ]
    operation = _operation(name, verb)
    return {**operation, "operationId": f"{name}_by_url", "parameters": parameters}


def _operation(name: str, verb: type[Request[Any]]) -> Schema:
    summary, description = summary_of(verb)
    if name in ALIASES:
        description = f"The same as `{ALIASES[name]}`. {description}"
    result = result_type(verb).__name__
    return {
        "summary": summary,
        "description": description,
        "responses": {
            "200": _response("Done.", _reference(result)),
            **_refusals(errors_of(verb), body=True),
        },
    }


def _other_paths() -> dict[str, Schema]:
    """The routes that describe the daemon."""
    return {
        "/v1/events": _page("events", "Show what happens, as it happens", EVENT_STREAM),
        "/v1/health": _page("health", "Tell that the daemon answers", JSON),
        "/metrics": _page("metrics", "Show figures for Prometheus", CONTENT_TYPE),
        "/openapi.json": _page("openapi", "Show this description", JSON),
        "/docs": _page("docs", "Show this description to people", "text/html"),
    }


def _page(name: str, summary: str, content_type: str) -> Schema:
    kind = "object" if content_type == JSON else "string"
    content = {content_type: {"schema": {"type": kind}}}
    return {
        "get": {
            "operationId": name,
            "summary": summary,
            "responses": {
                "200": {"description": "Done.", "content": content},
                **_refusals(OF_EVERY_ROUTE, body=False),
            },
        }
    }


def _parameter(name: str, schema: Schema, *, required: bool) -> Schema:
    """A field of a request in the URL."""
    described = {key: value for key, value in schema.items() if key != "description"}
    if "anyOf" in described:
        described["anyOf"] = list(filter(_fits_a_url, described["anyOf"]))
    return {
        "name": name,
        "in": "query",
        "required": required,
        "description": schema.get("description", ""),
        "schema": _with_items(described),
    }


def _fits_a_url(schema: Schema) -> bool:
    """Whether a field is a word, a number or a list of words."""
    if "anyOf" in schema:
        return any(each != NULL and _fits_a_url(each) for each in schema["anyOf"])
    if schema.get("type") == "array":
        return bool(schema.get("items", {}).get("type") == "string")
    return bool(schema.get("type") != "object")


# ---------------------------------------------------------------- responses


def _refusals(errors: Errors, *, body: bool) -> dict[str, Schema]:
    """The responses of errors, by status, with the codes of each."""
    by_status: dict[str, list[type[MnemosynedError]]] = defaultdict(list)
    for error in sorted(errors, key=lambda each: each.code):
        by_status[str(STATUS_OF_KIND[error.kind].value)].append(error)
    texts = {
        status: "\n".join(f"- `{each.code}`: {_sentence(each)}" for each in members)
        for status, members in by_status.items()
    }
    texts |= {
        status: text
        for status, text in OF_THE_SERVER.items()
        if body or status != "413"
    }
    refusals = {
        status: _response(texts[status], _reference("Error"))
        for status in sorted(texts)
    }
    for status, header in (("401", "WWW-Authenticate"), ("405", "Allow")):
        refusals[status]["headers"] = {header: {"schema": {"type": "string"}}}
    return refusals


def _sentence(error: type[MnemosynedError]) -> str:
    if error is MnemosynedError:
        return UNEXPECTED
    return inspect.cleandoc(error.__doc__ or "").partition("\n")[0]


def _response(description: str, schema: Schema) -> Schema:
    return {"description": description, "content": {JSON: {"schema": schema}}}


def _reference(name: str) -> Schema:
    return {"$ref": REF.format(name=name)}


# ------------------------------------------------------------------ schemas


def _error_schema() -> Schema:
    codes = sorted(error.code for error in _tree(MnemosynedError))
    error = {
        "type": "object",
        "required": ["code", "message", "field"],
        "properties": {
            "code": {"type": "string", "enum": codes},
            "message": {"type": "string", "description": "what to do next"},
            "field": {
                "type": ["string", "null"],
                "description": "the field at fault",
            },
        },
    }
    return {
        "title": "Error",
        "description": "Why a request was refused.",
        "type": "object",
        "required": ["error"],
        "properties": {"error": error},
    }


def _described(schemas: Mapping[str, Schema]) -> dict[str, Schema]:
    """The schemas with their docstrings as text of one paragraph each, without errors."""
    return {name: _with_items(_with_text(schemas[name])) for name in sorted(schemas)}


def _with_items(schema: Any) -> Any:  # noqa: ANN401 any part of a schema
    """A schema in which each list says what it holds, and each time that it may be in words."""
    if isinstance(schema, list):
        return [_with_items(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    whole = {key: _with_items(value) for key, value in schema.items()}
    if {"type": "string", "format": "date-time"} in whole.get("anyOf", ()):
        whole["anyOf"].insert(1, IN_WORDS)
    if whole.get("type") == "array" and not {"items", "prefixItems"} & whole.keys():
        whole["items"] = {}
    return whole


def _with_text(schema: Schema) -> Schema:
    if "description" not in schema:
        return schema
    text = inspect.cleandoc(schema["description"]) + "\n"
    return {**schema, "description": _RAISES.sub("", text).strip()}
