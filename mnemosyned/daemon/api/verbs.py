"""The verbs as resources: POST /v1/VERB with a JSON object, or GET for those that only read."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any
from urllib.parse import parse_qs

import msgspec

from mnemosyned.daemon.server.serving import VERB_PREFIX
from mnemosyned.http_messages import HttpRequest, Resource, Response, Route
from mnemosyned.verbs.facade import ALIASES, VERBS, Caller
from mnemosyned.verbs.request import Request, parse, parse_text


def verb_resources(caller: Caller) -> dict[str, Resource]:
    """Every verb by its path."""
    return {
        VERB_PREFIX + name: _resource(caller, VERBS[ALIASES.get(name, name)])
        for name in (*VERBS, *ALIASES)
    }


def _resource(caller: Caller, verb: type[Request[Any]]) -> Resource:
    def call(request: HttpRequest) -> Response:
        result = caller.call(_parsed(verb, request))
        return Response(HTTPStatus.OK, msgspec.json.encode(result))

    route: Route = call
    methods = ("POST",) if verb.writes else ("GET", "POST")
    return Resource(route, methods=methods, local_only=verb.local_only)


def _parsed(verb: type[Request[Any]], request: HttpRequest) -> Request[Any]:
    if request.method == "POST":
        return parse(verb, request.body or b"{}")
    query = parse_qs(request.query, keep_blank_values=True)
    return parse_text(verb, {k: v[0] if len(v) == 1 else v for k, v in query.items()})
