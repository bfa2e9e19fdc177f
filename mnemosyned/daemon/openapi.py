"""The description of the HTTP API, made from the verbs: OpenAPI 3.1, and a page for people."""

from __future__ import annotations

import copy
import inspect
import json
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from functools import cache, partial
from pathlib import Path
from typing import Any

import msgspec

from mnemosyned import errors as error_types
from mnemosyned.daemon.http import protocol, server
from mnemosyned.errors import MnemosynedError, error_classes_by_code
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
    error_types.MalformedRequest,
    error_types.Unauthorized,
    error_types.ForeignOrigin,
    error_types.MethodNotAllowed,
    error_types.LimitReached,
    MnemosynedError,
)
OF_EVERY_VERB = (
    *OF_EVERY_ROUTE,
    error_types.InvalidRequest,
    error_types.InvalidText,
    error_types.MalformedJson,
    error_types.StorageFailed,
    error_types.DatabaseReplaced,
    error_types.DatabaseUnreachable,
    error_types.MemoryBusy,
    error_types.DaemonBusy,
)
_FIXED = read_tables(__file__, "openapi.toml")
IN_WORDS: Schema = _FIXED["time_in_words"]
_RAISES = re.compile(r"\n\s*Raises (.*)", re.DOTALL)


@cache
def openapi(*, serves_owners: bool = False) -> Schema:
    """Return the OpenAPI document, made from the verbs' types; with `serves_owners`, verbs about owners too."""
    verbs = {name: VERBS[ALIASES.get(name, name)] for name in (*VERBS, *ALIASES)}
    if serves_owners:
        # Loaded here: a memory with one owner has none of them.
        from mnemosyned.verbs.owners import ADMINISTRATION, ENROLMENT  # noqa: PLC0415

        verbs |= {verb.verb_name(): verb for verb in (*ENROLMENT, *ADMINISTRATION)}
    types = [*verbs.values(), *(result_type(verb) for verb in verbs.values())]
    _, schemas = msgspec.json.schema_components(types, ref_template=REF)
    described = {name: _complete_schema(schemas[name]) for name in sorted(schemas)}
    for verb in verbs.values():
        for request in (verb, *verb.nested.values()):
            _allow_null(described[request.__name__])
    for schema in described.values():
        if "description" in schema:
            text = inspect.cleandoc(schema["description"]) + "\n"
            schema["description"] = _RAISES.sub("", text).strip()
    error = copy.deepcopy(_FIXED["error"])
    codes = sorted(error_classes_by_code())
    error["properties"]["error"]["properties"]["code"]["enum"] = codes
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
        "paths": {
            **{
                server.VERB_PREFIX + name: _verb_path(name, verb, schemas)
                for name, verb in verbs.items()
            },
            **_page_paths(),
        },
        "components": {
            "schemas": {**described, "Error": error},
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


def errors_of(verb: type[Request[Any]]) -> set[type[MnemosynedError]]:
    """Return the errors that a verb can raise: common ones, and those its docstring names after "Raises"."""
    errors: set[type[MnemosynedError]] = set(OF_EVERY_VERB)
    if verb.writes:
        errors.add(error_types.ShuttingDown)
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


def _verb_path(
    name: str, verb: type[Request[Any]], schemas: Mapping[str, Schema]
) -> Schema:
    """Return the OpenAPI description of a verb or alias: by POST, and by GET if the verb only reads."""
    summary, description = summary_of(verb)
    if name in ALIASES:
        description = f"The same as `{ALIASES[name]}`. {description}"
    result = _schema_reference(result_type(verb).__name__)
    operation: Schema = {
        "summary": summary,
        "description": description,
        "responses": {
            "200": _json_response("Done.", result),
            **_error_responses(errors_of(verb), body=True),
        },
    }
    id = name.replace("/", "_")
    body: Schema = {
        "required": any(field.required for field in msgspec.structs.fields(verb)),
        "content": {JSON: {"schema": _schema_reference(verb.__name__)}},
    }
    path: Schema = {"post": {**operation, "operationId": id, "requestBody": body}}
    if not verb.writes:
        schema = schemas[verb.__name__]
        required = schema.get("required", [])
        parameters = [
            _query_parameter(field, described, required=field in required)
            for field, described in schema["properties"].items()
            if _fits_in_query(described)
        ]
        by_url: Schema = {"operationId": f"{id}_by_url", "parameters": parameters}
        path["get"] = {**operation, **by_url}
    return path


def _page_paths() -> dict[str, Schema]:
    """Return the OpenAPI description of the fixed pages, such as `/metrics`, by URL path."""
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
    """Return the OpenAPI description of a request's field as a query parameter, `required` or not."""
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
    """Return True if a field fits in a URL query: it is no object, and if a list, a list of texts alone."""
    if "anyOf" in schema:
        return any(each != NULL and _fits_in_query(each) for each in schema["anyOf"])
    if schema.get("type") == "array":
        return bool(schema.get("items", {}).get("type") == "string")
    return bool(schema.get("type") != "object")


# ---------------------------------------------------------------- responses


def _error_responses(errors: Errors, *, body: bool) -> dict[str, Schema]:
    """Return OpenAPI's responses for errors, by status; without a request `body`, 413 is left out."""
    by_status: dict[str, list[type[MnemosynedError]]] = defaultdict(list)
    for error in sorted(errors, key=lambda each: each.code):
        by_status[str(protocol.STATUS_OF_KIND[error.kind].value)].append(error)
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


def _complete_schema(schema: Any) -> Any:  # noqa: ANN401 any part of a schema
    """Return a copy of a schema with `items` in each array, and texts such as "yesterday" allowed for times."""
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


def _allow_null(schema: Schema) -> None:
    """Change a request's schema so that optional fields may be null."""
    for name in schema["properties"].keys() - schema.get("required", ()):
        field = schema["properties"][name]
        about = {
            key: field.pop(key) for key in ("description", "default") if key in field
        }
        if about.get("default") == {}:
            about["default"] = None  # generators of clients accept no object here
        kinds = field.get("anyOf", [field])
        schema["properties"][name] = {
            "anyOf": [*(kind for kind in kinds if kind != NULL), NULL],
            **about,
        }


EXAMPLES = {"string": "…", "integer": 1, "number": 0.5, "boolean": True}


@cache
def docs_page(*, serves_owners: bool = False) -> str:
    """Return the documentation of the HTTP API as one HTML page, with owners' verbs if served."""
    # Loaded here: only a person who reads the page needs the templates.
    from jinja2 import Environment  # noqa: PLC0415

    described = openapi(serves_owners=serves_owners)
    paths, schemas = described["paths"], described["components"]["schemas"]
    bodies = {path: _request_schema_name(methods) for path, methods in paths.items()}
    parts = set(re.findall(r'schemas/(\w+)"', json.dumps(schemas)))
    folder = Path(__file__).parent
    environment = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    environment.filters |= {
        "anchor": lambda path: re.sub(r"\W+", "-", path).strip("-"),
        "example": _example_body,
        "json": partial(json.dumps, ensure_ascii=False),
    }
    template = environment.from_string((folder / "docs.html").read_text("utf-8"))
    return template.render(
        info=described["info"],
        paths=paths,
        schemas=schemas,
        bodies=bodies,
        results=[
            name for name in schemas if name in parts or name not in bodies.values()
        ],
        socket="$XDG_RUNTIME_DIR/mnemosyned/mnemosyned.sock",
        style=(folder / "docs.css").read_text("utf-8"),
        in_words=IN_WORDS,
    )


def _request_schema_name(path: Schema) -> str:
    """Return the name of the schema of a path's POST body; empty if it takes none."""
    body = path.get("post", {}).get("requestBody")
    reference = body["content"][JSON]["schema"]["$ref"] if body else ""
    return str(reference.rpartition("/")[2])


def _example_body(schema: Schema) -> dict[str, object]:
    """Return a request body with example values of a schema's required fields."""
    properties = schema.get("properties", {})
    return {
        name: EXAMPLES.get(str(properties[name].get("type")), [])
        for name in schema.get("required", [])
    }
