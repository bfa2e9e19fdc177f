"""Projects and sessions of agents, as memory by MCP and hooks share them."""

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from support.fakes import NOON, memory, remember_batch
from support.mcp import McpPeer, origin_header

from mnemosyned.agents.mcp.identity import AgentSessions, ClientIdentity
from mnemosyned.agents.mcp.server import mcp_route
from mnemosyned.memory.capture import AgentSession
from mnemosyned.service.service import MemoryService
from mnemosyned.storage.sqlite.store import SqliteStore
from mnemosyned.verbs.memories import Remember

HOOKED = AgentSession(
    session="codex:1",
    client="codex",
    conversation="1",
    started_at=NOON,
    seen_at=NOON,
    project="github.com/ann/shop",
    transcript="/t.jsonl",
    position=77,
)


@pytest.fixture
def sessions(store: SqliteStore) -> AgentSessions:
    return AgentSessions(store.agents)


def test_a_new_session_is_kept_with_its_project(
    store: SqliteStore, sessions: AgentSessions
) -> None:
    identity = ClientIdentity(
        client="codex", conversation="1", project="p", directory="/d"
    )
    sessions.note_session(identity, NOON)
    kept = store.agents.session("codex:1")
    assert kept is not None
    assert (kept.client, kept.directory, kept.seen_at) == ("codex", "/d", NOON)
    assert sessions.sessions_of("p", 9) == [], "nothing is said in it yet"
    remember_batch(store, replace(memory("m"), session="codex:1"))
    assert sessions.sessions_of("p", 9) == ["codex:1"]


def test_what_hooks_know_of_a_session_stays(
    store: SqliteStore, sessions: AgentSessions
) -> None:
    store.agents.keep_session(HOOKED)
    known = store.agents.session("codex:1")
    identity = ClientIdentity(client="codex", conversation="1", project="another")
    sessions.note_session(identity, NOON + timedelta(hours=1))
    assert store.agents.session("codex:1") == known


def test_without_a_project_no_session_comes_first(sessions: AgentSessions) -> None:
    sessions.note_session(ClientIdentity(client="codex", conversation="1"), NOON)
    assert list(sessions.sessions_of("", 9)) == []


def test_what_hooks_captured_in_a_clone_comes_first_in_another(
    service: MemoryService, store: SqliteStore, tmp_path: Path
) -> None:
    store.agents.keep_session(HOOKED)
    service.call(Remember("The deploy needs a key.", session="codex:1"))
    service.call(Remember("The deploy of the blog is by rsync.", session="other"))
    clone = tmp_path / "clone"
    (clone / ".git").mkdir(parents=True)
    (clone / ".git" / "config").write_text(
        '[remote "origin"]\n\turl = git@github.com:ann/shop.git\n'
    )
    route = mcp_route(service, AgentSessions(store.agents), now=lambda: NOON)
    peer = McpPeer(route, origin_header(directory=str(clone), life="l"))
    hits = peer.call("recall", query="deploy")["hits"]
    assert [hit.get("this_project", False) for hit in hits] == [True, False]
    assert peer.call("status")["project"] == "github.com/ann/shop"
