"""Messages of the Model Context Protocol: requests, answers, errors and versions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Any, Self

import msgspec

from mnemosyned.text import frames, json_repair

MODERN_VERSIONS = ("2026-07-28",)
"""Each request names its version; there is no handshake."""
LEGACY_VERSIONS = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")
"""The version is agreed upon by `initialize`; the newest first."""
SUPPORTED_VERSIONS = (*MODERN_VERSIONS, *LEGACY_VERSIONS)

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
HEADER_MISMATCH = -32020
UNSUPPORTED_VERSION = -32022

META_PREFIX = "io.modelcontextprotocol/"
VERSION_KEY = META_PREFIX + "protocolVersion"
CAPABILITIES_KEY = META_PREFIX + "clientCapabilities"
CLIENT_KEY = META_PREFIX + "clientInfo"
SERVER_KEY = META_PREFIX + "serverInfo"

METHOD_CHARS_SHOWN = 80

Json = dict[str, Any]


class Era(Enum):
    """The generation of the protocol that a request speaks."""

    LEGACY = auto()
    MODERN = auto()


class ProtocolError(Exception):
    """A fault of the message itself, answered with a JSON-RPC error."""

    def __init__(self, code: int, message: str, data: Json | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data


@dataclass(frozen=True, slots=True, kw_only=True)
class McpRequest:
    """A request or a notification of a client."""

    method: str
    id: str | int | None = None
    """None for a notification."""
    params: Mapping[str, Any] = field(default_factory=dict)
    era: Era = Era.LEGACY

    @classmethod
    def of(cls, message: object) -> Self | None:
        """Return the request or notification in a message; None for a response. Raises `ProtocolError`."""
        if not isinstance(message, dict) or message.get("jsonrpc") != "2.0":
            raise ProtocolError(
                INVALID_REQUEST, 'a message is a JSON object with "jsonrpc": "2.0"'
            )
        method, id = message.get("method"), message.get("id")
        if method is None and ("result" in message or "error" in message):
            return None
        if not isinstance(method, str):
            raise ProtocolError(INVALID_REQUEST, "method must be text")
        if "id" in message and (isinstance(id, bool) or not isinstance(id, str | int)):
            raise ProtocolError(INVALID_REQUEST, "id must be text or a whole number")
        params = message.get("params", {})
        if not isinstance(params, dict):
            raise ProtocolError(INVALID_PARAMS, "params must be an object")
        # A modern request names its version; no legacy one does.
        is_modern = VERSION_KEY in _mapping_or_empty(params.get("_meta"))
        era = Era.MODERN if is_modern else Era.LEGACY
        return cls(method=method, id=id, params=params, era=era)

    @property
    def meta(self) -> Mapping[str, Any]:
        """The request's `_meta` object; empty if missing."""
        return _mapping_or_empty(self.params.get("_meta"))

    @property
    def version(self) -> object:
        """The protocol version in the metadata of a modern request; None in an older one."""
        return self.meta.get(VERSION_KEY)

    @property
    def client_name(self) -> str:
        """The name that the client gives itself in the request; empty if missing."""
        info = self.params.get("clientInfo") or self.meta.get(CLIENT_KEY)
        name = _mapping_or_empty(info).get("name")
        return name if isinstance(name, str) else ""

    @property
    def progress_token(self) -> str | int | None:
        """The token for progress notifications; None if the client wants none."""
        token = self.meta.get("progressToken")
        is_token = isinstance(token, str | int) and not isinstance(token, bool)
        return token if is_token else None


def decode_message(body: bytes | bytearray) -> object:
    """Return the value of a message's JSON. Raises `ProtocolError` if it is not JSON."""
    try:
        return json_repair.decode_cut_texts(msgspec.json.decode, bytes(body))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ProtocolError(PARSE_ERROR, f"this is not JSON: {error}") from error


def check_version(request: McpRequest) -> None:
    """Raise `ProtocolError` if a modern request lacks capabilities or a supported version."""
    if request.era is Era.LEGACY:
        return
    if CAPABILITIES_KEY not in request.meta:
        raise ProtocolError(INVALID_PARAMS, f"params._meta lacks {CAPABILITIES_KEY}")
    if not isinstance(request.version, str):
        raise ProtocolError(INVALID_PARAMS, f"{VERSION_KEY} must be text")
    if request.version not in MODERN_VERSIONS:
        data = {
            "supported": list(SUPPORTED_VERSIONS),
            "requested": request.version[:METHOD_CHARS_SHOWN],
        }
        raise ProtocolError(UNSUPPORTED_VERSION, "Unsupported protocol version", data)


def result_message(request: McpRequest, result: Json) -> Json:
    """Return the JSON-RPC response with the result of a request."""
    return {"jsonrpc": "2.0", "id": request.id, "result": result}


def error_message(error: ProtocolError, id: str | int | None) -> Json:
    """Return the JSON-RPC response with an error; `id` is None without a valid one."""
    problem: Json = {"code": error.code, "message": frames.neutralize(error.message)}
    if error.data is not None:
        problem["data"] = error.data
    return {"jsonrpc": "2.0", "id": id, "error": problem}


def readable_id(message: object) -> str | int | None:
    """Return the id of a decoded message, also of an invalid message; None if it has no valid id."""
    id = message.get("id") if isinstance(message, dict) else None
    return id if isinstance(id, str | int) and not isinstance(id, bool) else None


def _mapping_or_empty(value: object) -> Mapping[str, Any]:
    """Return the value if it is a JSON object, else an empty mapping."""
    return value if isinstance(value, dict) else {}
