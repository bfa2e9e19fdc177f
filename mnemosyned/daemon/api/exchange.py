"""Export and exact import as resources: GET /v1/export, POST /v1/import; local callers alone."""

from __future__ import annotations

from collections.abc import Collection
from http import HTTPStatus
from urllib.parse import parse_qs

import msgspec

from mnemosyned.daemon.api.scopes import require_scope
from mnemosyned.domain.ports.servers.owners import Scope
from mnemosyned.http_messages import HttpRequest, Resource, Response
from mnemosyned.service.service import MemoryService
from mnemosyned.verbs.request import parse_text
from mnemosyned.verbs.streams.exchange import EXPORT_PATH, RESTORE_PATH, Export

JSON_LINES = "application/jsonl"


def exchange_resources(
    service: MemoryService, *, scopes: Collection[Scope] | None = None
) -> dict[str, Resource]:
    """The two paths. For who has no `scopes` they are local: they read and write all there is."""
    local_only = scopes is None

    def export(request: HttpRequest) -> Response:
        query = parse_qs(request.query, keep_blank_values=True)
        fields = {k: v[0] if len(v) == 1 else v for k, v in query.items()}
        asked = parse_text(Export, fields)
        return Response(
            HTTPStatus.OK, content_type=JSON_LINES, stream=service.export(asked)
        )

    def restore(request: HttpRequest) -> Response:
        require_scope(Scope.WRITE, scopes, "import")
        restored = service.restore_lines(request.body)
        return Response(HTTPStatus.OK, msgspec.json.encode(restored))

    return {
        EXPORT_PATH: Resource(export, local_only=local_only),
        RESTORE_PATH: Resource(restore, methods=("POST",), local_only=local_only),
    }
