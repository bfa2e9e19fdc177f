"""HTTP/1.1 as one client speaks it, by h11: requests, errors as sent, and access by headers."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from email.utils import formatdate
from http import HTTPStatus
from typing import NoReturn
from urllib.parse import unquote

import h11
import msgspec

from mnemosyned import errors
from mnemosyned.http_messages import HttpRequest, Response
from mnemosyned.socket_path import OWNER_HEADER

STATUS_OF_KIND = {
    errors.Kind.INVALID: HTTPStatus.BAD_REQUEST,
    errors.Kind.UNAUTHORIZED: HTTPStatus.UNAUTHORIZED,
    errors.Kind.FORBIDDEN: HTTPStatus.FORBIDDEN,
    errors.Kind.NOT_FOUND: HTTPStatus.NOT_FOUND,
    errors.Kind.METHOD: HTTPStatus.METHOD_NOT_ALLOWED,
    errors.Kind.CONFLICT: HTTPStatus.CONFLICT,
    errors.Kind.UNAVAILABLE: HTTPStatus.SERVICE_UNAVAILABLE,
    errors.Kind.LIMITED: HTTPStatus.TOO_MANY_REQUESTS,
    errors.Kind.INTERNAL: HTTPStatus.INTERNAL_SERVER_ERROR,
}

Headers = tuple[tuple[str, str], ...]


def error_response(
    error: errors.MnemosynedError,
    status: HTTPStatus | None = None,
    headers: Headers = (),
) -> Response:
    """Return the response for an error, by default with the status of its kind."""
    body = {"code": error.code, "message": error.message, "field": error.field}
    if error.retry_after_s is not None:
        headers = (*headers, ("Retry-After", str(error.retry_after_s)))
    return Response(
        status or STATUS_OF_KIND[error.kind],
        msgspec.json.encode({"error": body}),
        headers=headers,
    )


class RequestRefused(Exception):
    """Refusal of a request, with its response; one before the body was read ends the connection."""

    def __init__(
        self,
        error: errors.MnemosynedError,
        status: HTTPStatus | None = None,
        headers: Headers = (),
    ) -> None:
        super().__init__(error.message)
        self.response = error_response(error, status, headers)
        self.status = self.response.status
        self.message = error.message


def token_refusal(reason: str, *, given: bool) -> RequestRefused:
    """Return the refusal, with status 401, of a request without a valid token.

    `given` is True if the request has a wrong token, False if it has none.
    """
    challenge = 'Bearer realm="mnemosyned"'
    if given:
        challenge += ', error="invalid_token"'
    return RequestRefused(
        errors.Unauthorized(reason),
        HTTPStatus.UNAUTHORIZED,
        (("WWW-Authenticate", challenge),),
    )


_LOOPBACK_ORIGIN = re.compile(
    r"https?://(localhost|127(\.\d{1,3}){3}|\[::1\])(:\d{1,5})?", re.ASCII
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """Access rules of one listener; the defaults are those of the Unix socket.

    The kernel opens the socket to its owner alone, and clients write any `Host` there. Over TCP any
    program of this machine can connect, and any page of a browser. The host is checked for pages
    whose own name was made to lead here, and the origin for all others, also those that reach the
    socket through a relay; the token keeps other users out. With TLS, a browser lets no page use
    another's name, and the daemon has whatever name its certificate says.
    """

    local: bool = True
    """Whether the listener's clients come over the Unix socket."""
    address: str = ""
    hosts: frozenset[str] | None = None
    """The hosts that a request may name; None for any."""
    is_token: Callable[[str], bool] | None = None
    """Returns False if a text cannot be a valid token, at once, as the event loop calls it.

    None where no token is needed.
    """
    admits: Callable[[Mapping[str, str]], bool] | None = None
    """Returns True for headers for which a proxy or an identity provider may vouch instead, at once."""
    open_paths: frozenset[str] = frozenset()
    """Paths that need no token; without one, a request's body has `OPEN_BODY_BYTES` at most."""
    advice: str = ""
    """What to do for those who send no valid token."""
    headers: Headers = ()
    """Headers of every response, also to requests that are refused."""

    def check(
        self, headers: Mapping[str, str], authority: str | None, path: str
    ) -> bool:
        """Check a request's host, origin and token; return whether it may pass only because its path is open.

        The result is False with a valid token, or if no tokens are in use. `authority` is the host in the
        target, if any. Raises `RequestRefused` for anything not allowed.
        """
        if self.hosts is not None:
            host = headers.get("host", "").lower()
            target = host if authority is None else authority.lower()
            if not {host, target} <= self.hosts:
                reason = f"ask for {self.address}; the request names another host"
                raise RequestRefused(errors.ForeignOrigin(reason))
        if not _LOOPBACK_ORIGIN.fullmatch(headers.get("origin", "http://localhost")):
            reason = (
                "requests from web pages of other machines are refused; leave out the Origin "
                "header"
            )
            raise RequestRefused(errors.ForeignOrigin(reason))
        if self.is_token and not (self.admits and self.admits(headers)):
            given = bearer_token(headers)
            if given is None or not self.is_token(given):
                if path in self.open_paths:
                    return True
                raise token_refusal(self.advice, given=given is not None)
        return False


def bearer_token(headers: Mapping[str, str]) -> str | None:
    """Return the bearer token in a request's headers, or None if there is none."""
    scheme, _, given = headers.get("authorization", "").partition(" ")
    return given.strip() if scheme.lower() == "bearer" else None


OPEN_BODY_BYTES = 4_096
"""Maximum body of a request without a token, which must state its length."""
OWNER_KEY = OWNER_HEADER.lower()


def unknown_owner(name: str) -> errors.NotFound:
    """Return the error for a named owner who does not exist, or whose memory the sender may not use."""
    return errors.NotFound(
        f"no memory of {name[:REASON_CHARS_MAX]!r} is yours to ask; for your own, name no owner (mnem use, "
        f"--owner, {OWNER_HEADER}), or ask who runs the server to make you a member, or for a new name",
        field=OWNER_HEADER,
    )


HEAD_BYTES_MAX = 256 * 1024
"""Maximum head of a request: a question of 4,096 characters in a URL is 48 KB; a list of names is longer."""
REASON_CHARS_MAX = 200
"""h11 quotes the line it could not read, however long."""
CHUNKED_BYTES = 1024
"""Bytes of the longest line between chunks, and of all trailers together."""
BLANKS = b" " * 64
"""A run of blanks that is refused, as h11's pattern for headers takes quadratic time for it."""

_BLANK_LINE = re.compile(rb"\n\r?\n")
_FOLD = re.compile(rb"\n[ \t]")
_CHUNK_SIZE = re.compile(rb"([0-9A-Fa-f]{1,16})(?:;[^\r\n]*)?\r\n")
"""h11 takes blanks after the size, which other servers read in other ways."""
_NOT_ASCII = re.compile(rb"[\x80-\xff]")
_HOST = re.compile(r"https?://([^/?]*)", re.IGNORECASE)
SOCKET = Access()
OWNER_ADVICE = "send a token of an owner: Authorization: Bearer mnt_…"


class HttpProtocol:
    """Parser of one client's requests and encoder of the responses, without any input or output."""

    def __init__(
        self, *, body_bytes_max: int, access: Access = SOCKET, address: str = ""
    ) -> None:
        """Parse requests of a client at the machine `address`, with `access` by its rules."""
        self._body_bytes_max = body_bytes_max
        self._address = address
        self._access = access
        self.local = access.local
        """Whether the client came over the Unix socket."""
        self._http = h11.Connection(h11.SERVER)
        self._incoming = bytearray()
        """Input for h11, which gets complete heads only, once they are checked."""
        self._searched = 0
        """Bytes in which the end of a head was not found."""
        self._head: HttpRequest | None = None
        """The request whose body is coming, without it."""
        self._length: int | None = None
        """The bytes of that body; None where it comes in chunks."""
        self._body = bytearray()
        self._chunk_left: int | None = 0
        """Bytes to come of a chunk and its end; 0 before a size, None after the last chunk."""
        self.bodiless = False
        """Whether the answer ends with its head, as the request is HEAD."""

    @property
    def has_input(self) -> bool:
        """Whether bytes have come of a request that `next_request` has not returned yet."""
        return self._head is not None or bool(self._incoming)

    @property
    def in_body(self) -> bool:
        """Whether the head of a request has come completely, but not its body."""
        return self._head is not None

    @property
    def in_chunks(self) -> bool:
        """Whether the request's body comes in chunks, without a Content-Length."""
        return self._head is not None and self._length is None

    @property
    def body_bytes(self) -> int:
        """Length in bytes of the arriving request's body; for a body in chunks, of the received part."""
        if self._head is None:
            return 0
        return len(self._body) if self._length is None else self._length

    @property
    def reusable(self) -> bool:
        """Whether request and response are complete, so that another request may follow."""
        return self._http.our_state is h11.DONE and self._http.their_state is h11.DONE

    def feed(self, data: bytes) -> None:
        """Add bytes received from the client, to be parsed by `next_request`."""
        self._incoming += data

    def next_request(self) -> HttpRequest | None:
        """Return the next request, or None until it is complete. Raises `RequestRefused`."""
        if self.reusable:
            self._incoming[:0] = self._http.trailing_data[0]
            self._http = h11.Connection(h11.SERVER)
        try:
            return self._read_request()
        except h11.RemoteProtocolError as error:
            reason = str(error)[:REASON_CHARS_MAX]
            if reason.startswith("illegal request line"):
                reason = "its first line is not METHOD PATH HTTP/1.1"
            _refuse_request(reason, HTTPStatus(error.error_status_hint))

    def _read_request(self) -> HttpRequest | None:
        """Return the next request; None until complete. Raises `RequestRefused`, `h11.RemoteProtocolError`."""
        while True:  # each turn takes bytes, or returns
            event = self._http.next_event()
            if isinstance(event, h11.Request):
                self.bodiless = event.method == b"HEAD"
                self._head = self._read_head(event)
            elif isinstance(event, h11.Data):
                if len(self._body) + len(event.data) > self._body_bytes_max:
                    _refuse_body(self._body_bytes_max)
                self._body += event.data
            elif isinstance(event, h11.EndOfMessage) and self._head:
                head, self._head = self._head, None
                body, self._body = self._body, bytearray()
                return replace(head, body=body)
            elif event is h11.NEED_DATA and (part := self._take_input()):
                self._http.receive_data(part)
            else:
                return None

    def _take_input(self) -> bytes:
        """Remove and return the next received bytes for h11 to parse. Raises `RequestRefused`."""
        if self._head is None:
            return self._take_head()
        if self.in_chunks:
            return self._take_chunk_part()
        return self._take_bytes(len(self._incoming))

    def _take_bytes(self, count: int) -> bytes:
        """Remove and return the first `count` received bytes, or all if there are fewer."""
        part = bytes(self._incoming[:count])
        del self._incoming[:count]
        return part

    def _take_chunk_part(self) -> bytes:
        """Remove and return the next part of a body in chunks, empty if incomplete. Raises `RequestRefused`."""
        if self._chunk_left is None or self._chunk_left > 0:
            if len(self._http.trailing_data[0]) > CHUNKED_BYTES:
                _refuse_head("its trailers are", CHUNKED_BYTES)
            part = self._take_bytes(self._chunk_left or CHUNKED_BYTES)
            if self._chunk_left is not None:
                self._chunk_left -= len(part)
            return part
        if joined := self._join_chunks():
            return joined
        end = self._incoming.find(b"\n", 0, CHUNKED_BYTES)
        if end < 0:
            if len(self._incoming) >= CHUNKED_BYTES:
                _refuse_head("a line between its chunks is", CHUNKED_BYTES)
            return b""
        line = self._take_bytes(end + 1)
        size = _CHUNK_SIZE.fullmatch(line)
        if size is None:
            _refuse_request("the size of a chunk is not in hexadecimal digits alone")
        count = int(size[1], 16)
        if len(self._body) + count > self._body_bytes_max:
            _refuse_body(self._body_bytes_max)
        self._chunk_left = count + len(b"\r\n") if count else None
        return line

    def _join_chunks(self) -> bytes:
        """Remove the complete chunks that fit in the body; return one joined chunk for h11, or b""."""
        data, at = bytearray(), 0
        while size := _CHUNK_SIZE.match(self._incoming, at, at + CHUNKED_BYTES):
            begin, count = size.end(), int(size[1], 16)
            end = begin + count
            is_whole = count and self._incoming[end : end + 2] == b"\r\n"
            if (
                not is_whole
                or len(self._body) + len(data) + count > self._body_bytes_max
            ):
                break
            data += self._incoming[begin:end]
            at = end + 2
        del self._incoming[:at]
        return b"%x\r\n%b\r\n" % (len(data), bytes(data)) if data else b""

    def _take_head(self) -> bytes:
        """Remove and return the next head, first line escaped; b"" if incomplete. Raises `RequestRefused`."""
        if self._incoming and self._incoming[0] <= ord(" "):
            _refuse_request("it begins with a blank")
        end = _BLANK_LINE.search(self._incoming, max(0, self._searched - 2))
        self._searched = 0 if end else len(self._incoming)
        if (end.end() if end else self._searched) > HEAD_BYTES_MAX:
            _refuse_head("its headers are", HEAD_BYTES_MAX)
        if end is None:
            return b""
        head = self._take_bytes(end.end())
        if BLANKS in head.replace(b"\t", b" "):
            _refuse_request(f"its headers have {len(BLANKS)} blanks in a row")
        if _FOLD.search(head):
            _refuse_request("a header goes on in another line")
        line, feed, headers = head.partition(b"\n")
        return (
            _NOT_ASCII.sub(lambda byte: b"%%%02X" % byte[0][0], line) + feed + headers
        )

    def _read_head(self, request: h11.Request) -> HttpRequest:
        """Check a request's head and note its body's length; return the request with an empty body.

        Raises `RequestRefused`.
        """
        if not request.http_version.startswith(b"1."):
            _refuse_request(
                "it is not in HTTP/1.1", HTTPStatus.HTTP_VERSION_NOT_SUPPORTED
            )
        if request.method == b"CONNECT":
            _refuse_request("it asks for a tunnel")
        target = request.target.decode()
        headers: dict[str, str] = {}
        for raw_name, raw_value in request.headers:  # names are in lower case
            name, value = raw_name.decode(), raw_value.decode("latin-1")
            headers[name] = f"{headers[name]}, {value}" if name in headers else value
        host = _HOST.match(target)
        path, _, query = target[host.end() if host else 0 :].partition("?")
        try:
            path = unquote(path, errors="strict")
        except UnicodeDecodeError:
            _refuse_request("its path is not UTF-8")
        is_open = self._access.check(headers, host[1] if host else None, path)
        body_bytes_max = OPEN_BODY_BYTES if is_open else self._body_bytes_max
        self._length = None
        if "transfer-encoding" in headers:
            if is_open:
                _refuse_request(
                    "without a token its body needs a Content-Length",
                    HTTPStatus.LENGTH_REQUIRED,
                )
            if "content-length" in headers:
                _refuse_request("it has both a Content-Length and a Transfer-Encoding")
            self._chunk_left = 0
        else:
            self._length = int(headers.get("content-length", "0"))
            if self._length > body_bytes_max:
                _refuse_body(body_bytes_max)
        return HttpRequest(
            request.method.decode(),
            path or "/",
            query,
            b"",
            headers,
            self.local,
            self._address,
        )

    def continue_response(self) -> bytes:
        """Return the bytes of `100 Continue` if the client waits for it; otherwise none."""
        if not self._http.they_are_waiting_for_100_continue:
            return b""
        proceed = HTTPStatus.CONTINUE
        return self._http.send(
            h11.InformationalResponse(
                status_code=proceed, reason=proceed.phrase, headers=[]
            )
        )

    def encode_response(self, response: Response, *, last: bool) -> tuple[bytes, bytes]:
        """Return the bytes of a response's head and body; the body is empty for HEAD.

        With `last`, the head says that the connection closes.
        """
        body = response.body
        headers = [("Content-Length", str(len(body)))]
        if last:
            headers.append(("Connection", "close"))
        head = self.encode_head(response, headers)
        if self.bodiless:
            body = b""
        if body:
            self._http.send_with_data_passthrough(h11.Data(data=body))
        self._http.send(h11.EndOfMessage())
        return head, body

    def encode_chunk(self, data: bytes | None) -> bytes:
        """Return the bytes of a chunk of a streamed response, or for None the bytes of the end."""
        part = h11.EndOfMessage() if data is None else h11.Data(data=data)
        return self._http.send(part) or b""

    def encode_head(self, response: Response, headers: list[tuple[str, str]]) -> bytes:
        """Add the headers of the response and the listener to `headers`; return the bytes of the head."""
        if response.content_type:
            headers.insert(0, ("Content-Type", response.content_type))
        if not self.local:
            # Another machine may have another clock.
            headers.append(("Date", formatdate(usegmt=True)))
        headers.extend((*self._access.headers, *response.headers))
        return self._http.send(
            h11.Response(
                status_code=response.status,
                reason=response.status.phrase,
                headers=headers,
            )
        )


def _refuse_request(
    reason: str, status: HTTPStatus = HTTPStatus.BAD_REQUEST
) -> NoReturn:
    """Raise the `RequestRefused` for a malformed request, with a reason and an HTTP status."""
    message = f"this is not an HTTP request that the daemon accepts: {reason}"
    raise RequestRefused(errors.MalformedRequest(message), status)


def _refuse_head(part: str, bytes_max: int) -> NoReturn:
    """Raise the `RequestRefused` for a part of the head longer than `bytes_max`."""
    _refuse_request(
        f"{part} longer than {bytes_max:,} bytes; send fewer, or send a body",
        HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE,
    )


def _refuse_body(bytes_max: int) -> NoReturn:
    """Raise the `RequestRefused` for a request body longer than `bytes_max`."""
    too_large = errors.ContentTooLarge(
        f"the body exceeds {bytes_max:,} bytes; split it, or raise limits.body_bytes_max"
    )
    raise RequestRefused(too_large, HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
