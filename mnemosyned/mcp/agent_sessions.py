"""Projects and their sessions, as the store of agents' sessions keeps them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from mnemosyned.domain.ports.surroundings.agents import AgentSession, AgentStore
from mnemosyned.mcp.identity import Identity
from mnemosyned.projects import project_of


class AgentSessions:
    """`ProjectSessions` on an `AgentStore`, which hooks fill as well."""

    def __init__(self, agents: AgentStore) -> None:
        self._agents = agents

    def project_of(self, directory: str, override: str) -> str:
        return project_of(directory, override=override).key

    def sessions_of(self, project: str, limit: int) -> Sequence[str]:
        return self._agents.sessions_of(project, limit)

    def saw(self, identity: Identity, now: datetime) -> None:
        """Add the session where it is new; what hooks know of one stays as it is."""
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


class UnnotedSessions(AgentSessions):
    """Sessions for a caller who may not write: they are read, and none is added."""

    def saw(self, identity: Identity, now: datetime) -> None:
        """Note nothing."""
