"""Identity of an MCP client: its name, session and project."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING
from urllib.parse import parse_qs

from mnemosyned.importers.projects import project_of
from mnemosyned.memory.capture import AgentSession
from mnemosyned.verbs.request import TEXT_MAX

if TYPE_CHECKING:
    from mnemosyned.storage.common.surroundings import AgentStore

ORIGIN_HEADER = "mnemosyne-origin"
"""Facts that `mnem mcp` reports of the process that started it, as a query string."""
CLIENT_HEADER = "mnemosyne-client"
"""The name from `initialize`, which `mnem mcp` repeats with each later message."""
SESSION_HEADER = "mcp-session-id"
UNKNOWN_CLIENT = "mcp"

_KNOWN_CLIENTS = {
    **{
        name: name
        for name in (
            "claude-code codex cursor vscode copilot opencode antigravity devin zed cline goose"
        ).split()
    },
    "claude-ai": "claude-desktop",
    "visual-studio-code": "vscode",
    "github-copilot": "copilot",
    "gemini-cli": "gemini",
    "windsurf": "devin",
}
"""Names used here, by the beginnings of the names that clients send."""
_NOT_NAME = re.compile(r"[^a-z0-9]+")
_NOT_VISIBLE = re.compile(r"[^!-~]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientIdentity:
    """The client, conversation and project of a request."""

    client: str = UNKNOWN_CLIENT
    conversation: str = ""
    project: str = ""
    """The project's key; empty for none."""
    directory: str = ""

    @property
    def session(self) -> str:
        """The session id of memories stored by the client: `client:conversation`."""
        return f"{self.client}:{self.conversation}"[:TEXT_MAX]


def origin_of(headers: Mapping[str, str], *, local: bool) -> dict[str, str]:
    """Return facts about a client from the HTTP headers, by name; directories only if `local`.

    `mnem mcp` sends `life`, a random word for each of its processes, and the `project` that the user
    chose. `client` is the name from the handshake, `session` the session id of a client over HTTP.
    """
    facts = parse_qs(headers.get(ORIGIN_HEADER, ""), max_num_fields=20)
    session = headers.get(SESSION_HEADER, "")
    client = headers.get(CLIENT_HEADER, "") or session.partition(".")[0]
    known = {
        name: values[0]
        for name, values in facts.items()
        if local or "directory" not in name
    }
    return {**known, "client": client, "session": session}


def identify(
    origin: Mapping[str, str],
    *,
    client_name: str,
    sessions: AgentSessions,
    now: datetime,
) -> ClientIdentity:
    """Return the client, conversation and project of a request.

    Without `client_name`, the name in `origin` is used. Claude Code's variables for conversation and
    project are used for Claude Code alone, as other programs inherit them. A client over HTTP that
    names no session gets a new session each day.
    """
    client = client_of(client_name or origin["client"])
    own = "claude_" if client == "claude-code" else ""
    directory = origin.get(f"{own}directory") or origin.get("directory", "")
    conversation = (
        (own and origin.get(f"{own}session"))
        or origin.get("life")
        or origin["session"]
        or now.date().isoformat()
    )
    return ClientIdentity(
        client=client,
        conversation=_NOT_VISIBLE.sub("-", conversation)[:120],
        project=sessions.project_of(directory, origin.get("project", "")),
        directory=directory,
    )


def client_of(name: str) -> str:
    """Return the short name of a known client, such as "vscode", or else `name` in lower case with hyphens."""
    words = _NOT_NAME.sub("-", name.lower()).strip("-")[:40].strip("-")
    for beginning, client in _KNOWN_CLIENTS.items():
        if words == beginning or words.startswith(beginning + "-"):
            return client
    return words or UNKNOWN_CLIENT


class AgentSessions:
    """The sessions of each project on an `AgentStore`, which hooks fill as well; none without it."""

    def __init__(self, agents: AgentStore | None, *, may_write: bool = True) -> None:
        self._agents = agents
        self._may_write = may_write

    def project_of(self, directory: str, override: str) -> str:
        """Return the key of a directory's project, or `override` if not empty; "" without a project."""
        if self._agents is None:
            return override
        return project_of(directory, override=override).key

    def sessions_of(self, project: str, limit: int) -> Sequence[str]:
        """Return at most `limit` session ids of a project, the last seen first."""
        return self._agents.sessions_of(project, limit) if self._agents else ()

    def note_session(self, identity: ClientIdentity, now: datetime) -> None:
        """Save the client's session if new, or add a missing project; do nothing if the caller only reads."""
        if self._agents is None or not self._may_write:
            return
        known = self._agents.session(identity.session)
        if known is None:
            self._agents.keep_session(
                AgentSession(
                    session=identity.session,
                    client=identity.client,
                    conversation=identity.conversation,
                    project=identity.project,
                    directory=identity.directory,
                    started_at=now,
                    seen_at=now,
                )
            )
        elif identity.project and not known.project:
            self._agents.keep_session(replace(known, project=identity.project))
