"""Language model behind an HTTP endpoint of OpenAI's form, on this machine or another."""

from __future__ import annotations

import re
import socket
import ssl
import stat
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from functools import cached_property
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException, HTTPResponse
from ipaddress import ip_address
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import SplitResult, urlsplit

import msgspec

from mnemosyned.errors import ConfigInvalid, ModelUnavailable, SummarizerFailed
from mnemosyned.logs import logger
from mnemosyned.memory.engine_ports import TextModel


class EndpointAddress:
    """Host, port and path of an endpoint. Raises `ConfigInvalid` if malformed or not allowed."""

    def __init__(self, endpoint: str, *, local_only: bool) -> None:
        parts, port = _split_endpoint(endpoint)
        self.host = parts.hostname or ""
        self.tls = parts.scheme == "https"
        self.port = port or (443 if self.tls else 80)
        self.path = parts.path.rstrip("/")
        self._local_only = local_only
        if local_only:
            try:
                self.resolve()
            except OSError:
                raise ConfigInvalid(
                    f"llm.endpoint: the host {self.host} is not known, so it cannot be this "
                    "machine; correct it, or set llm.local_only to false",
                    field="llm.endpoint",
                ) from None
            except ModelUnavailable as error:
                raise ConfigInvalid(
                    f"llm.endpoint: {error.message}", field="llm.endpoint"
                ) from None

    def resolve(self) -> list[tuple[socket.AddressFamily, Any]]:
        """Return the address family and socket address of each of the host's addresses.

        Raises `OSError` for an unknown host, and with `local_only` `ModelUnavailable` if any
        address is of another machine.
        """
        try:
            infos = socket.getaddrinfo(self.host, self.port, type=socket.SOCK_STREAM)
        except UnicodeError:  # a label that no name can have
            raise OSError("name not known") from None
        addresses: list[tuple[socket.AddressFamily, Any]] = [
            (family, address) for family, _, _, _, address in infos
        ]
        ips = [ip_address(str(host).partition("%")[0]) for _, (host, *_) in addresses]
        is_local = all(
            (getattr(ip, "ipv4_mapped", None) or ip).is_loopback for ip in ips
        )
        if self._local_only and not is_local:
            raise ModelUnavailable(
                f"the host {self.host} is not this machine; set llm.local_only to false if "
                "memories may be sent there"
            )
        return addresses

    @cached_property
    def trust(self) -> ssl.SSLContext:
        """TLS context that verifies the server's certificate and host name."""
        return ssl.create_default_context()


def _split_endpoint(endpoint: str) -> tuple[SplitResult, int | None]:
    """Return parts and port of an http(s) address with no login, query or fragment. Raises `ConfigInvalid`."""
    try:
        parts = urlsplit(endpoint)
        port = parts.port
    except ValueError:
        raise _make_endpoint_error("is not an address") from None
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise _make_endpoint_error("is not an http:// or https:// address")
    if parts.username is not None or parts.password is not None:
        raise _make_endpoint_error(
            "contains a name or key; put the key in llm.api_key_file"
        )
    printable = endpoint.isascii() and endpoint.isprintable()
    if parts.query or parts.fragment or not printable:
        raise _make_endpoint_error("has more in it than an address; leave it out")
    return parts, port


def _make_endpoint_error(problem: str) -> ConfigInvalid:
    """Return the error for a faulty `llm.endpoint`, without its value, which may contain a key."""
    return ConfigInvalid(
        f"llm.endpoint {problem}; write it like http://127.0.0.1:8080/v1",
        field="llm.endpoint",
    )


CONTEXT_TOKENS = 4096
"""Default window of an endpoint, as of llama-server and Ollama."""
CONNECT_S = 5.0
TRIES = 3
BACKOFF_S = 0.5
RETRY_AFTER_MAX_S = 10.0
"""Longest wait that an endpoint may ask for before it counts as unavailable."""
ANSWER_BYTES_MAX = 1 << 20
KEY_CHARS_MAX = 4_096

_RETRYABLE_STATUSES = {
    HTTPStatus.TOO_MANY_REQUESTS,
    HTTPStatus.INTERNAL_SERVER_ERROR,
    HTTPStatus.BAD_GATEWAY,
    HTTPStatus.SERVICE_UNAVAILABLE,
    HTTPStatus.GATEWAY_TIMEOUT,
}
_REJECTED_REQUEST_STATUSES = {
    HTTPStatus.BAD_REQUEST,
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    HTTPStatus.UNPROCESSABLE_ENTITY,
}
"""HTTP statuses of a rejected prompt; the prompt of another group may be accepted."""

log = logger()


class _ChatMessage(msgspec.Struct):
    """Message in a choice of the endpoint's answer."""

    content: str | None = None
    reasoning: str | None = None
    """Thoughts, as Ollama and vLLM name them."""
    reasoning_content: str | None = None
    """Thoughts, as llama-server names them."""

    @property
    def has_thoughts(self) -> bool:
        """Whether the model thought before it answered."""
        begins = (self.content or "").lstrip().startswith("<think>")
        return begins or bool(self.reasoning or self.reasoning_content)

    @property
    def answer(self) -> str:
        """The text; empty if the model stopped while it thought."""
        text = (self.content or "").strip()
        return "" if text.startswith("<think>") and "</think>" not in text else text


class _ChatChoice(msgspec.Struct):
    """Choice in the endpoint's answer."""

    message: _ChatMessage


class _ChatAnswer(msgspec.Struct):
    """Answer of the endpoint, of which only the first choice is used."""

    choices: Annotated[list[_ChatChoice], msgspec.Meta(min_length=1)]


NO_THINKING = {
    "reasoning_effort": "none",
    "chat_template_kwargs": {"enable_thinking": False},
}
"""Fields of a request for an answer without thoughts: for Ollama, and for llama-server and vLLM."""

# Built at import: at the first use, two threads that decode would crash the process.
_ANSWERS = msgspec.json.Decoder(_ChatAnswer)


class _RetryableError(Exception):
    """Error of a call worth a retry: too many requests, a server error, a broken connection."""

    def __init__(self, problem: str, *, wait_s: float | None = None) -> None:
        super().__init__(problem)
        self.problem = problem
        self.wait_s = wait_s


class EndpointModel(TextModel):
    """Client of `{endpoint}/chat/completions` with time limits; one call runs at a time.

    With `local_only` every address of the host must be on this machine, at the start and again at
    each connection. Proxies of the environment are not used and redirects not followed. Raises
    `ConfigInvalid` for an address that is malformed or not allowed.
    """

    def __init__(
        self,
        *,
        endpoint: str,
        model: str | None = None,
        context_tokens: int | None = None,
        time_limit_s: float,
        local_only: bool = True,
        key: str | None = None,
    ) -> None:
        self._address = EndpointAddress(endpoint, local_only=local_only)
        self.name = f"endpoint:{model or self._address.host}"
        self._model = model
        self._context_tokens = context_tokens or CONTEXT_TOKENS
        self._time_limit_s = time_limit_s
        self._key = key
        self._thinks = False
        """Whether the model is to be asked not to think, which takes the time and tokens of its answer."""
        self._calls = threading.Lock()
        self._current: _EndpointCall | None = None
        if key and not self._address.tls and not local_only:
            log.warning("key_sent_in_clear", host=self._address.host)

    @property
    def context_tokens(self) -> int:
        """The context window in tokens that the settings name for the endpoint."""
        return self._context_tokens

    def count_tokens(self, text: str) -> int:
        """Return an upper bound of a text's tokens, as the server's tokenizer is not known."""
        return estimate_tokens(text)

    def complete(
        self,
        messages: Sequence[Mapping[str, str]],
        *,
        max_tokens: int,
        temperature: float,
    ) -> str:
        """Return the answer that the endpoint gives over HTTP to messages of `role` and `content`."""
        body: dict[str, Any] = {
            "messages": [dict(message) for message in messages],
            "max_tokens": max_tokens,
            "temperature": temperature,
            "stream": False,
        }
        if self._model:
            body["model"] = self._model
        try:
            message = self._request_message(body)
        except ModelUnavailable:
            raise
        except SummarizerFailed:
            if not self._thinks:
                raise
            self._thinks = False  # the server may not know the fields
            message = self._request_message(body)
        if message.has_thoughts and not self._thinks:
            self._thinks = True
            if not message.answer:
                message = self._request_message(body)
        if not message.answer:
            because = ": it only thinks; turn that off" if message.has_thoughts else ""
            raise SummarizerFailed(f"{self.name} gave an empty answer{because}")
        return message.answer

    def _request_message(self, body: dict[str, Any]) -> _ChatMessage:
        """Return the answer to a request, which asks for no thoughts if the model thinks."""
        json = "application/json"
        headers = {"Content-Type": json, "Accept": json, "Connection": "close"}
        if self._key:
            headers["Authorization"] = f"Bearer {self._key}"
        sent = body | NO_THINKING if self._thinks else body
        with self._calls:
            call = _EndpointCall(self._address, headers, self._time_limit_s, self.name)
            self._current = call
            try:
                answer = call.answer(msgspec.json.encode(sent))
            finally:
                self._current = None
        try:
            return _ANSWERS.decode(answer).choices[0].message
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            # From nothing: its words could quote the answer.
            raise ModelUnavailable(
                f"{self.name} gives answers that are not in OpenAI's form; check llm.endpoint"
            ) from None

    def close(self) -> None:
        """End a running call in another thread, which then raises `ModelUnavailable`."""
        if call := self._current:
            call.abandon()


@dataclass(eq=False, repr=False)  # the headers have a key
class _EndpointCall:
    """One call of the endpoint, with retries and a time limit, over one connection at a time."""

    address: EndpointAddress
    headers: dict[str, str]
    limit_s: float
    name: str

    def __post_init__(self) -> None:
        self._ends = time.monotonic() + self.limit_s
        self._abandoned = threading.Event()
        self._lock = threading.Lock()
        self._socket: socket.socket | None = None
        self._aborted = False

    def abandon(self) -> None:
        """End the call from another thread, so that `answer` raises `ModelUnavailable`."""
        self._abandoned.set()
        self._abort()

    def answer(self, body: bytes) -> bytes:
        """Send a request's body, and return the body of the answer within the time limit.

        Raises `SummarizerFailed`, or `ModelUnavailable` if the endpoint cannot be used at present.
        """
        # Watching from outside, as a server that sends a byte now and then never times out.
        watch = threading.Timer(self.limit_s, self._abort)
        watch.daemon = True
        watch.start()
        wait_s = BACKOFF_S
        try:
            for tries_left in reversed(range(TRIES)):
                try:
                    return self._send_once(body)
                except _RetryableError as busy:
                    self._check_time()
                    pause_s = wait_s if busy.wait_s is None else busy.wait_s
                    late = time.monotonic() + pause_s >= self._ends
                    if not tries_left or late or pause_s > RETRY_AFTER_MAX_S:
                        raise ModelUnavailable(f"{self.name} {busy.problem}") from busy
                    self._abandoned.wait(pause_s)
                    self._check_time()
                    wait_s *= 2
            raise AssertionError  # the loop returns or raises
        finally:
            watch.cancel()
            self._abort()

    def _abort(self) -> None:
        """End the connection of the call from another thread, and prevent new connections."""
        with self._lock:
            self._aborted = True
            if self._socket:
                # Not the TLS socket's own, which first takes apart what the reader reads with.
                with suppress(OSError):
                    socket.socket.shutdown(self._socket, socket.SHUT_RDWR)

    def _open_connection(self, timeout_s: float) -> HTTPConnection:
        """Connect to the first address that accepts in `timeout_s`. Raises `OSError` and `ModelUnavailable`."""
        refused: OSError | None = None
        for family, place in self.address.resolve():
            plain = self._hold_socket(socket.socket(family, socket.SOCK_STREAM))
            plain.settimeout(timeout_s)
            try:
                plain.connect(place)
            except OSError as error:
                refused = error
                self._close_socket()
                continue
            stream = plain
            if self.address.tls:
                stream = self._hold_socket(
                    self.address.trust.wrap_socket(
                        plain,
                        server_hostname=self.address.host,
                        do_handshake_on_connect=False,
                    )
                )
                assert isinstance(stream, ssl.SSLSocket)  # noqa: S101 for the type checker
                stream.do_handshake()
            connection = HTTPConnection(self.address.host, self.address.port)
            connection.sock = stream
            connection.auto_open = 0
            return connection
        raise refused or OSError("the host has no address")

    def _hold_socket(self, held: socket.socket) -> socket.socket:
        """Save a socket for `_abort` to close; return it. Raises `ConnectionAbortedError` after `_abort`."""
        with self._lock:
            self._socket = held
            if self._aborted:
                raise ConnectionAbortedError
        return held

    def _close_socket(self) -> None:
        with self._lock:
            held, self._socket = self._socket, None
        if held:
            held.close()

    def _send_once(self, body: bytes) -> bytes:
        """Return the answer to a body. Raises `_RetryableError`, `ModelUnavailable` and `SummarizerFailed`."""
        try:
            connection = self._open_connection(min(CONNECT_S, self._seconds_left()))
            self._check_time()
            if self._socket:
                self._socket.settimeout(self._seconds_left())
            path = f"{self.address.path}/chat/completions"
            connection.request("POST", path, body, self.headers)
            with closing(connection.getresponse()) as response:
                return self._read_response(response)
        except (OSError, HTTPException) as error:
            self._check_time()
            if isinstance(error, ssl.SSLCertVerificationError):
                raise ModelUnavailable(
                    f"{self.name} has no certificate that this machine trusts"
                ) from None
            # From nothing: the words of an HTTPException may quote what came over the line.
            problem = type(error).__name__
            if isinstance(error, TimeoutError):
                problem = "no answer in time"
            elif isinstance(error, OSError) and error.strerror:
                problem = error.strerror.lower()
            raise _RetryableError(f"cannot be reached ({problem})") from None
        finally:
            self._close_socket()

    def _read_response(self, response: HTTPResponse) -> bytes:
        """Return the body of a response with status 200.

        Raises `_RetryableError` (busy), `SummarizerFailed` (refused prompt), else `ModelUnavailable`.
        """
        status = response.status
        if status == HTTPStatus.OK:
            answer = response.read(ANSWER_BYTES_MAX + 1)
            self._check_time()  # cut off, it looks like an end
            if len(answer) > ANSWER_BYTES_MAX:
                raise SummarizerFailed(
                    f"{self.name} gave an answer of over {ANSWER_BYTES_MAX} bytes"
                )
            if response.length:
                raise HTTPException  # the connection broke in between
            return answer
        if status in _RETRYABLE_STATUSES:
            wait = (response.getheader("Retry-After") or "").strip()
            # A date is ignored, as the backoff is short anyway.
            is_seconds = wait.isascii() and wait.isdecimal() and len(wait) < 7
            raise _RetryableError(
                f"answers with HTTP status {status}",
                wait_s=float(wait) if is_seconds else None,
            )
        said = f"{self.name} answers with HTTP status {status}"
        if 300 <= status < 400:
            raise ModelUnavailable(
                f"{said}, a redirect; put the final address in llm.endpoint"
            )
        if status in _REJECTED_REQUEST_STATUSES:
            raise SummarizerFailed(f"{said} to this group")
        hint = {
            401: "; check its key",
            403: "; check its key",
            404: "; check llm.endpoint and llm.endpoint_model",
        }
        raise ModelUnavailable(f"{said}{hint.get(status, '')}")

    def _seconds_left(self) -> float:
        """Return the seconds until the call's time limit, at least 0.001."""
        return max(0.001, self._ends - time.monotonic())

    def _check_time(self) -> None:
        """Raise `ModelUnavailable` if the call was abandoned or its time limit has passed."""
        if self._abandoned.is_set():
            raise ModelUnavailable(f"{self.name} was interrupted") from None
        if time.monotonic() >= self._ends:
            raise ModelUnavailable(
                f"{self.name} took longer than {self.limit_s:g} s (llm.time_limit_s)"
            ) from None


def read_api_key(file: str | None, *, variable: str | None) -> str | None:
    """Return the API key in `file`, else `variable` (a value from the environment). Raises `ConfigInvalid`."""
    if file is None:
        return _check_key(variable, "MNEMOSYNE_LLM_API_KEY") if variable else None
    path = Path(file).expanduser()
    try:
        mode = path.stat().st_mode
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        problem = error.strerror if isinstance(error, OSError) else "not text"
        raise ConfigInvalid(
            f"llm.api_key_file: {path} cannot be read: {problem}",
            field="llm.api_key_file",
        ) from None
    if mode & (stat.S_IRGRP | stat.S_IROTH):
        log.warning(
            "key_file_readable_by_others", file=str(path), mode=f"{mode & 0o777:03o}"
        )
    return _check_key(text, f"llm.api_key_file: {path}")


def _check_key(text: str, where: str) -> str:
    """Return an API key without surrounding blanks. Raises `ConfigInvalid`, which names its source `where`."""
    key = text.strip()
    if not re.fullmatch(rf"[!-~]{{1,{KEY_CHARS_MAX}}}", key):
        raise ConfigInvalid(
            f"{where}: contains no key; write it there in one line of plain characters"
        )
    return key


# -------------------------------------------------------------------- tokens

_PIECES = re.compile(r"[A-Za-z]+|[ ]+|[\x00-\x7f]|[^\x00-\x7f]+")
_WORD_CHARS = 15
"""Maximum letters of a word; a longer run costs more tokens a letter."""


def estimate_tokens(text: str) -> int:
    """Return an upper bound of a text's tokens in common vocabularies, without any vocabulary.

    Three letters (two of a long word) count as one token, and so does each digit, sign, and byte of a
    character outside ASCII, which some models spell by bytes. Spaces count with the next word.
    """
    tokens = 0
    for piece in _PIECES.findall(text):
        if not piece.isascii():
            tokens += len(piece.encode("utf-8", "replace"))
        elif piece.isalpha():
            tokens += -(-len(piece) // (3 if len(piece) <= _WORD_CHARS else 2))
        elif piece != " ":
            tokens += 1
    return tokens
