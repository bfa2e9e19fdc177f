"""Hooks of agents' tools as a resource: POST /hooks, over the Unix socket alone."""

from __future__ import annotations

from http import HTTPStatus

import msgspec

from mnemosyned.domain.errors import MalformedJson
from mnemosyned.hooks.service import Envelope, HookService
from mnemosyned.http_messages import HttpRequest, Resource, Response

HOOKS_PATH = "/hooks"
_decode = msgspec.json.Decoder(Envelope).decode
_encode = msgspec.json.Encoder().encode


def hook_resources(hooks: HookService) -> dict[str, Resource]:
    """The one path that `mnem-hook` posts to."""

    def call(request: HttpRequest) -> Response:
        try:
            envelope = _decode(request.body)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise MalformedJson(f"a hook's call cannot be read: {error}") from error
        return Response(HTTPStatus.OK, _encode(hooks.handle(envelope)))

    return {HOOKS_PATH: Resource(call, methods=("POST",), local_only=True)}
