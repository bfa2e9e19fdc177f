"""Errors as they look on the wire."""

from __future__ import annotations

from http import HTTPStatus

import msgspec

from mnemosyned.domain.errors import Kind, MnemosynedError, Unauthorized
from mnemosyned.http_messages import Response

STATUS_OF_KIND = {
    Kind.INVALID: HTTPStatus.BAD_REQUEST,
    Kind.UNAUTHORIZED: HTTPStatus.UNAUTHORIZED,
    Kind.FORBIDDEN: HTTPStatus.FORBIDDEN,
    Kind.NOT_FOUND: HTTPStatus.NOT_FOUND,
    Kind.METHOD: HTTPStatus.METHOD_NOT_ALLOWED,
    Kind.CONFLICT: HTTPStatus.CONFLICT,
    Kind.UNAVAILABLE: HTTPStatus.SERVICE_UNAVAILABLE,
    Kind.INTERNAL: HTTPStatus.INTERNAL_SERVER_ERROR,
}

Headers = tuple[tuple[str, str], ...]


def refusal(
    error: MnemosynedError, status: HTTPStatus | None = None, headers: Headers = ()
) -> Response:
    """Answer with an error: `{"error": {"code", "message", "field"}}`."""
    body = {"code": error.code, "message": error.message, "field": error.field}
    if error.retry_after_s is not None:
        headers = (*headers, ("Retry-After", str(error.retry_after_s)))
    return Response(
        status or STATUS_OF_KIND[error.kind],
        msgspec.json.encode({"error": body}),
        headers=headers,
    )


class RequestRefused(Exception):
    """The request cannot be answered. Before its body is read, the connection must be closed, too."""

    def __init__(
        self,
        error: MnemosynedError,
        status: HTTPStatus | None = None,
        headers: Headers = (),
    ) -> None:
        super().__init__(error.message)
        self.response = refusal(error, status, headers)
        self.status = self.response.status
        self.message = error.message


def token_refused(reason: str, *, given: bool) -> RequestRefused:
    """Refuse who may ask nothing; `given` is whether a token came."""
    challenge = 'Bearer realm="mnemosyned"'
    if given:
        challenge += ', error="invalid_token"'
    return RequestRefused(
        Unauthorized(reason),
        HTTPStatus.UNAUTHORIZED,
        (("WWW-Authenticate", challenge),),
    )
