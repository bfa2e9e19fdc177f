"""Export and exact import as resources: GET /v1/export, POST /v1/import; local callers alone."""

from __future__ import annotations

from http import HTTPStatus
from urllib.parse import parse_qs

import msgspec

from mnemosyned.http_messages import HttpRequest, Resource, Response
from mnemosyned.service.service import MemoryService
from mnemosyned.verbs.request import parse_text
from mnemosyned.verbs.streams.exchange import EXPORT_PATH, RESTORE_PATH, Export

JSON_LINES = "application/jsonl"


def exchange_resources(service: MemoryService) -> dict[str, Resource]:
    """The two paths. Over TCP there is neither: they read and write all there is."""

    def export(request: HttpRequest) -> Response:
        query = parse_qs(request.query, keep_blank_values=True)
        fields = {k: v[0] if len(v) == 1 else v for k, v in query.items()}
        asked = parse_text(Export, fields)
        return Response(
            HTTPStatus.OK, content_type=JSON_LINES, stream=service.export(asked)
        )

    def restore(request: HttpRequest) -> Response:
        restored = service.restore_lines(request.body)
        return Response(HTTPStatus.OK, msgspec.json.encode(restored))

    return {
        EXPORT_PATH: Resource(export, local_only=True),
        RESTORE_PATH: Resource(restore, methods=("POST",), local_only=True),
    }
