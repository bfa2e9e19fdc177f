"""A client of the Model Context Protocol in the same process, and sessions without a store."""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from mnemosyned.agents.mcp.identity import AgentSessions, ClientIdentity
from mnemosyned.agents.mcp.server import mcp_route
from mnemosyned.http_messages import HttpRequest, Response, Route
from mnemosyned.verbs.facade import Caller

Json = Any


@dataclass
class FakeSessions(AgentSessions):
    """Projects are directories; sessions are known once they were seen."""

    known: dict[str, list[str]] = field(default_factory=dict)

    def project_of(self, directory: str, override: str) -> str:
        return override or directory

    def sessions_of(self, project: str, limit: int) -> Sequence[str]:
        return self.known.get(project, [])[:limit] if project else []

    def note_session(self, identity: ClientIdentity, _: datetime) -> None:
        sessions = self.known.setdefault(identity.project, [])
        if identity.session not in sessions:
            sessions.insert(0, identity.session)


class McpPeer:
    """Posts messages to a route, as a client does over HTTP."""

    def __init__(self, route: Route, headers: Mapping[str, str]) -> None:
        self._route = route
        self._headers = dict(headers)
        self._ids = itertools.count(1)

    def post(self, body: bytes, **headers: str) -> Response:
        """Post bytes, with further headers whose names have underscores for hyphens."""
        further = {name.replace("_", "-"): value for name, value in headers.items()}
        return self._route(
            HttpRequest("POST", "/mcp", "", body, {**self._headers, **further})
        )

    def send(
        self, method: str, *, headers: Mapping[str, str], **params: Json
    ) -> Response:
        """Post a request with further headers, and return the answer of HTTP."""
        message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        return self.post(json.dumps(message).encode(), **headers)

    def answer(self, method: str, **params: Json) -> Json:
        """The whole answer to a request."""
        message = {"jsonrpc": "2.0", "id": next(self._ids), "method": method}
        if params:
            message["params"] = params
        return json.loads(self.post(json.dumps(message).encode()).body)

    def result(self, method: str, **params: Json) -> Json:
        """The result of a request that succeeds."""
        answer = self.answer(method, **params)
        assert "error" not in answer, answer
        return answer["result"]

    def error(self, method: str, **params: Json) -> Json:
        """The error of a request that fails."""
        return self.answer(method, **params)["error"]

    def call(self, tool: str, **arguments: Json) -> Json:
        """The structured result of a tool, which its text must repeat."""
        result = self.result("tools/call", name=tool, arguments=arguments)
        assert not result["isError"], result["content"]
        structured = result["structuredContent"]
        assert json.loads(result["content"][0]["text"]) == structured
        return structured

    def failure(self, tool: str, **arguments: Json) -> str:
        """What a tool that fails tells the model."""
        result = self.result("tools/call", name=tool, arguments=arguments)
        assert result["isError"]
        return str(result["content"][0]["text"])


def origin_header(**words: str) -> dict[str, str]:
    """The header by which `mnem mcp` tells of its client."""
    return {
        "mnemosyne-origin": "&".join(f"{name}={value}" for name, value in words.items())
    }


def peer(
    caller: Caller,
    *,
    sessions: FakeSessions | None = None,
    now: datetime,
    **origin: str,
) -> McpPeer:
    """A client whose messages `mnem mcp` carries."""
    words = {"directory": "/work/shop", "life": "life1"} | origin
    route = mcp_route(caller, sessions or FakeSessions(), now=lambda: now)
    headers = origin_header(**words) | {"mnemosyne-client": "claude-code"}
    return McpPeer(route, headers)
