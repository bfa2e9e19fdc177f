"""A pytest plugin: the Agents SDK's tests of its SQLite session test `MnemosyneSession`."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import agents

from mnemosyned.adapters.openai_agents import MnemosyneSession


class FreshSession(MnemosyneSession):
    """A session that shares its conversation with others on the same path alone."""

    def __init__(self, session_id: str, path: object = None, **options: Any) -> None:  # noqa: ANN401
        super().__init__(session_id, source=str(path or uuid4()), **options)

    def close(self) -> None:
        """Close nothing: the client serves the next test's event loop."""


agents.SQLiteSession = FreshSession
