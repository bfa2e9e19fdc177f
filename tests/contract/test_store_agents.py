"""What every `MemoryStore` promises of agents' sessions, hooks and watched files."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from support.fakes import NOON, consolidate, memory, promotion, remember_batch, trio
from support.stores import edit_memory

from mnemosyned.memory.capture import AgentCall, AgentSession, FolderTotals, WatchedFile
from mnemosyned.memory.forgetting import Grace
from mnemosyned.memory.injections import (
    InjectedLine,
    InjectionFilter,
    InjectionKind,
)
from mnemosyned.memory.ports import MemoryStore
from mnemosyned.service.briefing import make_injection
from mnemosyned.storage.sqlite.store import SqliteStore


def session(id: str, *, minutes: float = 0, project: str = "shop") -> AgentSession:
    client, _, conversation = id.partition(":")
    moment = NOON + timedelta(minutes=minutes)
    return AgentSession(
        session=id,
        client=client,
        conversation=conversation,
        started_at=moment,
        seen_at=moment,
        project=project,
        directory="/w/shop",
        transcript="/home/ann/t.jsonl",
        shown=("m1", "m2"),
    )


def call(event: str = "stop", *, minutes: float = 0, **fields: object) -> AgentCall:
    moment = NOON + timedelta(minutes=minutes)
    base = AgentCall(client="codex", event=event, called_at=moment, duration_ms=10)
    return replace(base, **fields)  # type: ignore[arg-type]


def test_a_session_is_kept_and_updated(store: MemoryStore) -> None:
    first = session("codex:1")
    store.agents.keep_session(first)
    later = NOON + timedelta(hours=1)
    store.agents.save_position("codex:1", 77, "1:2")
    store.agents.note_shown("codex:1", ["m3", "m1"], informed_at=NOON)
    store.agents.keep_session(
        replace(first, started_at=later, seen_at=later, directory="/w/x", shown=())
    )

    assert store.agents.session("codex:1") == replace(
        first,
        seen_at=later,
        directory="/w/x",
        informed_at=NOON,
        position=77,
        file="1:2",
        shown=("m1", "m2", "m3"),
    )
    assert store.agents.session("codex:2") is None


def test_the_newest_of_sessions_are_of_every_tier(store: MemoryStore) -> None:
    old = [replace(each, session="codex:1") for each in trio("old")]
    new = replace(memory("new"), session="codex:1")
    other = replace(memory("other"), session="codex:2")
    remember_batch(store, *old, new, other)
    consolidate(store, promotion("e", *old))

    latest = store.agents.latest(["codex:1"], 3)
    positions = store.agents.latest_positions(["codex:1"], 9, without="user")
    others = store.agents.latest_positions(["codex:1"], 9, without=new.role)

    assert latest[0].id == "new"
    assert {each.id for each in latest[1:]} <= {each.id for each in old}
    assert len(latest) == 3
    found = store.endings.memories_at(positions).values()
    assert {each.id for each in found} == {"new", *(each.id for each in old)}
    assert others == []


def test_sessions_of_a_project_come_last_seen_first(store: MemoryStore) -> None:
    names = ("codex:0", "codex:1", "codex:2", "silent:3", "cursor:9", "cursor:8")
    projects = {"cursor:9": "other", "cursor:8": ""}
    for number, name in enumerate(names):
        project = projects.get(name, "shop")
        store.agents.keep_session(session(name, minutes=number, project=project))
        if name != "silent:3":
            remember_batch(store, memory(name, session=name))
    old = trio("old", session="codex:0")
    remember_batch(store, *old)
    consolidate(store, promotion("e", *old))

    assert store.agents.sessions_of("shop", 2) == ["codex:2", "codex:1"]
    assert store.agents.sessions_of("shop", 9) == ["codex:2", "codex:1", "codex:0"]
    assert store.agents.sessions_of("", 2) == []
    assert store.agents.projects_of(["codex:1", "cursor:9", "codex:77"]) == {
        "codex:1": "shop",
        "cursor:9": "other",
    }


def test_recent_sessions_are_found_also_of_those_with_a_transcript(
    store: MemoryStore,
) -> None:
    store.agents.keep_session(session("codex:1"))
    store.agents.keep_session(replace(session("codex:2", minutes=1), transcript=""))

    latest = store.agents.recent(9)
    written = store.agents.recent(9, with_transcript=True)

    assert [each.session for each in latest] == ["codex:2", "codex:1"]
    assert [each.session for each in written] == ["codex:1"]


def test_sessions_are_limited(
    store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mnemosyned.memory.capture.SESSIONS_MAX", 2)
    for number in range(4):
        store.agents.keep_session(session(f"codex:{number}", minutes=number))

    kept = [store.agents.session(f"codex:{number}") for number in range(4)]
    assert list(map(bool, kept)) == [False, False, True, True]


def test_what_is_stored_or_was_forgotten_is_known(store: MemoryStore) -> None:
    gone = f"a-{'0' * 32}"
    remember_batch(store, *map(memory, ("a-working", gone, "mine")), *trio("a-old"))
    consolidate(store, promotion("e", *trio("a-old")))
    archived = store.memories.originals("e")[0].id
    store.deletion.forget([gone, "mine"])

    ids = ["a-new", "a-working", gone, archived, "mine", "a-newer"]
    # One that was not captured leaves no id.
    assert store.agents.unknown(ids) == ["a-new", "mine", "a-newer"]


def source_id(prefix: str, number: int) -> str:
    return f"{prefix}-{number:032x}"


def remembered(store: MemoryStore, id: str, text: str) -> tuple[bool, bool]:
    """Whether it was stored, and whether it was forgotten before."""
    (answer,) = remember_batch(
        store, memory(id, text, session="codex:1"), dedupe=id.startswith("a-")
    )
    return answer.stored, answer.forgotten


@pytest.mark.parametrize("state", ["working", "archived", "pruned", "edited"])
def test_a_forgotten_message_is_known_by_words(store: MemoryStore, state: str) -> None:
    words = "The harbor is closed"
    said = memory(source_id("a", 1), words, session="codex:1")
    remember_batch(store, said)
    if state == "edited":
        edit_memory(store, said.id, "Other words")
    if state in ("archived", "pruned"):
        consolidate(store, promotion("e", said))
    if state == "pruned":
        store.retention.prune([said.id], now=NOON)
    store.deletion.forget([said.id])

    assert remembered(store, said.id, words) == (False, True)
    assert remembered(store, source_id("a", 2), words) == (False, True)
    assert remembered(store, source_id("a", 3), "Something else") == (True, False)
    assert remembered(store, "of-a-person", words) == (True, False)


def test_what_was_imported_and_forgotten_stays_forgotten(store: MemoryStore) -> None:
    imported = memory(source_id("import", 1), "One", session="notes")
    remember_batch(store, imported)
    store.deletion.forget([imported.id])

    assert remembered(store, imported.id, "One") == (False, True)
    assert remembered(store, source_id("import", 2), "One") == (True, False)


def test_a_message_that_is_put_back_is_forgotten_no_more(store: MemoryStore) -> None:
    said = memory(source_id("a", 1), "The harbor is closed", session="codex:1")
    remember_batch(store, said)
    store.deletion.forget([said.id], grace=Grace("call", NOON + timedelta(days=1)))
    assert remembered(store, source_id("a", 2), said.content) == (False, True)

    store.deletion.put_back([said.id])

    assert store.agents.unknown([said.id]) == []
    assert remembered(store, source_id("a", 2), said.content) == (False, False)


def test_activity_counts_calls_by_client_and_event(store: MemoryStore) -> None:
    for each in (
        call(stored=3),
        call(minutes=1, duration_ms=30, characters=50),
        call(minutes=2, failure="no transcript"),
        call("prompt", minutes=3),
    ):
        store.agents.count_call(each)

    prompt, stop = store.agents.activity()
    assert (prompt.event, prompt.calls, prompt.stored_at) == ("prompt", 1, None)
    assert (stop.calls, stop.stored, stop.characters, stop.failures) == (3, 3, 50, 1)
    assert (stop.slowest_ms, stop.failure) == (30, "no transcript")
    assert stop.mean_ms == pytest.approx(50 / 3, abs=0.001)
    assert stop.called_at == stop.failed_at == NOON + timedelta(minutes=2)
    assert stop.stored_at == NOON
    assert stop.informed_at == NOON + timedelta(minutes=1)
    # A later success keeps the reason of the last failure.
    store.agents.count_call(call(minutes=4))
    stop = store.agents.activity()[1]
    assert (stop.calls, stop.failure) == (4, "no transcript")
    assert stop.failed_at == NOON + timedelta(minutes=2)


# Watched folders and files in the store.


NOW = datetime(2026, 3, 16, 9, tzinfo=UTC)
NOTE = WatchedFile(
    path="/n/a.md",
    file="1:2",
    size=3,
    modified_ns=4,
    read_at=NOW,
    format="notes",
    position="5",
    memories={"part": "memory"},
    stored=6,
)


def test_a_folder_goes_with_the_state_of_its_files(store: SqliteStore) -> None:
    store.watches.add_folder("/n", NOW)
    store.watches.add_folder("/n", NOW)
    store.watches.keep_file(NOTE)
    beside = replace(NOTE, path="/n.md", file="9:9")
    store.watches.keep_file(beside)

    assert store.watches.folders() == ["/n"]
    assert store.watches.remove_folder("/n")
    assert not store.watches.remove_folder("/n")
    assert store.watches.file(NOTE.path) is None
    assert store.watches.file(beside.path) == beside


def test_the_state_of_a_file_is_kept_found_and_replaced(store: SqliteStore) -> None:
    store.watches.keep_file(NOTE)
    grown = replace(NOTE, size=30, position="50")
    store.watches.keep_file(grown)

    assert store.watches.file(NOTE.path) == grown
    assert list(store.watches.moved_from("1:2")) == [grown]
    assert store.watches.states("/n") == {NOTE.path: (30, 4)}
    assert store.watches.states("/other") == {}
    assert store.watches.totals("/n") == FolderTotals(1, 6, NOW)
    store.watches.drop_files([NOTE.path])
    assert store.watches.totals("/n") == FolderTotals(0, 0, None)


def test_sessions_and_injections_of_a_projects_former_keys_get_its_new_one(
    store: MemoryStore,
) -> None:
    projects = {"1": "/w/shop", "2": "/w/other", "3": "x.org/up", "4": "x.org/up"}
    for name, project in projects.items():
        place = "/w/shops" if name == "4" else "/w/shop/src"
        store.agents.keep_session(
            replace(session(f"codex:{name}", project=project), directory=place)
        )
        store.injections.add(
            make_injection(
                NOON,
                InjectionKind.START,
                client="codex",
                session=f"codex:{name}",
                project=project,
                lines=[InjectedLine(id="m1", text="x", reason="y")],
            )
        )

    new = session("codex:5", project="x.org/shop")
    store.agents.keep_session(new, ["/w/shop", "x.org/up"], "/w/shop")

    moved = ["codex:1", "codex:3", "codex:5"]
    assert sorted(store.agents.project_sessions("x.org/shop", 9)) == moved
    assert store.agents.project_sessions("x.org/up", 9) == ["codex:4"]
    given = store.injections.find(InjectionFilter(project="x.org/shop"), limit=9)
    assert sorted(each.session for each in given) == ["codex:1", "codex:3"]


def test_without_a_folder_sessions_go_on_from_before_the_origin_alone(
    store: MemoryStore,
) -> None:
    for name, project in (("codex:1", "/w/shop"), ("codex:2", "x.org/up")):
        store.agents.keep_session(replace(session(name, project=project), directory=""))

    new = replace(session("codex:3", project="x.org/shop"), directory="")
    store.agents.keep_session(new, ["/w/shop", "x.org/up"])

    assert store.agents.project_sessions("x.org/up", 9) == ["codex:2"]
