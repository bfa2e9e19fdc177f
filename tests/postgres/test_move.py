"""`mnem move`: a memory moves from a file to a server and back, whole, whatever ends it midway."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import click
import psycopg
import pytest
from click.testing import CliRunner
from e2e.daemons import mnem, short_room
from support.compare_databases import NUMBERED, NUMBERS, differences
from support.fakes import NOON, memory, remember_batch
from support.postgres import open_owners, open_store as open_server_store, rows
from support.settings import config_by_words
from support.whole_memory import CALL, FORGOTTEN, fill_all

from mnemosyned.assembly.build import open_memory
from mnemosyned.assembly.stores import open_store
from mnemosyned.cli.calls import interruption_message
from mnemosyned.cli.maintenance.databases import move_command, parse_location
from mnemosyned.errors import (
    DatabaseInUse,
    InvalidRequest,
    MnemosynedError,
    NotFound,
    PartlyDone,
    StorageFailed,
)
from mnemosyned.memory.capture import AgentCall
from mnemosyned.memory.exchange import AnyRecord, ExportedMemory, RestoreReport
from mnemosyned.service import exchange as moves
from mnemosyned.service.exchange import compare_recalls
from mnemosyned.storage.common.exchange import ExchangeStore
from mnemosyned.storage.postgres.owners import PostgresOwners
from mnemosyned.verbs.memories import Get, Recall, Remember
from mnemosyned.verbs.retention import Restore

pytestmark = pytest.mark.postgres


TABLES = {
    "episode": "episodic_memory",
    "supersession": "memory_state WHERE superseded_by IS NOT NULL",
    "log": "consolidation_log",
    "forgotten": "agent_forgotten",
    "recoverable": "forgotten",
    "hook_activity": "agent_activity",
    "vector": "embedding",
    "clock": "clock_seen",
}
"""Of kinds of records whose table has another name."""
KINDS = (
    *("memory", "episode", "supersession", "learning", "log", "compaction"),
    *("agent_session", "forgotten", "briefing_line", "ending", "recoverable"),
    *(
        "watched_folder",
        "watched_file",
        "hook_activity",
        "injection",
        "vector",
        "clock",
    ),
)


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    database = tmp_path_factory.mktemp("filled") / "memory.db"
    fill_all(database)
    return database


@pytest.fixture
def source(filled: Path, tmp_path: Path) -> Path:
    return Path(shutil.copy(filled, tmp_path / "source.db"))


@pytest.fixture(autouse=True)
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No settings but defaults, below the test's folder."""
    for name in ("HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_RUNTIME_DIR"):
        monkeypatch.setenv(name, str(tmp_path))


def move(source: Path | str, target: Path | str, *, owner: str = "") -> dict[str, Any]:
    words = ["--from", str(source), "--to", str(target), "--json"]
    words += ["--owner", owner] if owner else []
    done = CliRunner().invoke(
        move_command, words, standalone_mode=False, catch_exceptions=False
    )
    assert done.return_value == 0, done.output
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def counted(database: Path) -> dict[str, int]:
    with closing(sqlite3.connect(database)) as connection:

        def count(table: str) -> int:
            found = connection.execute(f"SELECT count(*) FROM {table}").fetchone()
            return int(found[0])

        counts = {
            kind: count(TABLES.get(kind, kind)) for kind in KINDS if kind != "memory"
        }
        return {"memory": count("working_memory") + count("archive"), **counts}


MOVER = Path(__file__).with_name("mover.py")


KILLED_AFTER = (1, 2, 4)
"""Parts after whose beginning the process is killed, one try after another."""


def differing(one: Path, other: Path) -> list[str]:
    """Rows that only one of both files has; learnings have their order, and other numbers."""
    numbers = NUMBERS | {("learning", "seq")}
    return differences(one, other, left_out=NUMBERED, numbers=numbers)


def amid_a_move(
    patched: pytest.MonkeyPatch, incident: Callable[[], object], *, parts: int = 1
) -> None:
    """Let something happen when so many parts are stored."""
    calls = iter(range(100))
    restore = ExchangeStore.restore

    def disturbed(
        exchange: ExchangeStore, records: Sequence[AnyRecord]
    ) -> RestoreReport:
        if next(calls) == parts:
            incident()
        return restore(exchange, records)

    patched.setattr(moves, "BATCH_RECORDS", 20)
    patched.setattr(ExchangeStore, "restore", disturbed)


def test_the_next_step_that_is_printed_works_as_it_stands(dsn: str) -> None:
    url = dsn.replace("@", ":geheim@", 1)
    with short_room() as home:
        driver = str(
            Path(psycopg.__file__).parents[1]
        )  # the daemon is in another folder
        run = partial(mnem, home=home, PATH="", PYTHONPATH=driver)
        run("start")
        run("remember", "the cellar key hangs behind the flour", "--id", "key")
        run("stop")

        moved = run("move", "--to", url).stdout.decode()
        (step,) = re.findall(r"to use it: mnem (.*)", moved)
        done = run(*shlex.split(step))
        started = run("start")
        found = run("recall", "cellar key", "--json").stdout
        in_use = run("move", "--from", dsn, "--to", str(home / "back.db"))
        run("stop")

        assert "geheim" not in moved
        assert "~/.pgpass" in moved
        assert done.returncode == 0, done.stderr
        assert started.returncode == 0, started.stderr
        assert [hit["id"] for hit in json.loads(found)["hits"]] == ["key"]
        assert in_use.returncode == 5
        assert not list(home.glob("**/postgresql:"))


def test_what_was_forgotten_for_now_can_be_put_back(source: Path, dsn: str) -> None:
    move(source, dsn)

    with open_memory(config_by_words(dsn)) as memory:
        memory.service.call(Restore(CALL))
        for id in FORGOTTEN:
            assert memory.service.call(Get(id)).memory, id
        older = memory.service.call(Get("old-code")).memory
        memory.service.call(Remember("The ferry leaves at noon", id="new"))
        hits = memory.service.call(Recall("ferry")).hits

    assert older
    assert older.superseded_by == "new-code"
    assert [hit.id for hit in hits] == ["new"]


@pytest.mark.parametrize("direction", ["there", "back"])
def test_a_killed_move_goes_on_and_doubles_nothing(
    filled: Path, dsn: str, tmp_path: Path, direction: str
) -> None:
    origin, target = str(filled), dsn
    if direction == "back":
        move(filled, dsn)
        origin, target = dsn, str(tmp_path / "back.db")
    known = 0

    for parts in KILLED_AFTER:
        with subprocess.Popen(
            [sys.executable, MOVER, origin, target], stdout=subprocess.PIPE, text=True
        ) as process:
            assert process.stdout
            lines = [process.stdout.readline() for _ in range(parts)]
            process.kill()
        assert lines == ["part\n"] * parts, "it was killed before its end"
        with (
            open_store(parse_location(target)) as store,
            store.exchange.everything() as (_, records),
        ):
            present = sum(1 for _ in records)
        assert present >= known
        known = present
    done = move(origin, target)

    assert sum(done["known"].values()) == known > 0
    assert sum(done["stored"].values()) + known == sum(counted(filled).values())
    again = tmp_path / "again.db"
    if direction == "there":
        move(dsn, again)
    assert differing(filled, again if direction == "there" else Path(target)) == []


@pytest.mark.parametrize("stored", [0, 1, 3, 5])
@pytest.mark.parametrize("fails", [False, True])
def test_a_move_that_ended_midway_says_that_it_can_be_repeated(
    filled: Path, dsn: str, monkeypatch: pytest.MonkeyPatch, stored: int, *, fails: bool
) -> None:
    def end() -> None:
        raise StorageFailed("the disk is full") if fails else KeyboardInterrupt

    with monkeypatch.context() as patched:
        amid_a_move(patched, end, parts=stored)
        with pytest.raises(PartlyDone if fails else click.Abort) as error:
            move(filled, dsn)
    done = move(filled, dsn)

    if isinstance(error.value, PartlyDone):
        assert "repeat the command" in error.value.message
        assert error.value.reason == "the disk is full"
    else:
        words = interruption_message(error.value)
        assert words == "interrupted; repeat the command to go on from there"
    assert done["counts"] == counted(filled)


def test_lost_connections_do_not_end_a_move(
    filled: Path, dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended: list[int] = []
    end = (
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
        "WHERE pid != pg_backend_pid() AND datname = current_database()"
    )
    amid_a_move(monkeypatch, lambda: ended.append(len(rows(dsn, end))))

    assert move(filled, dsn)["counts"] == counted(filled)
    assert ended[0] >= 2, "the pool's, and the one that keeps others from sleeping"


def test_a_nul_that_no_rule_admitted_stops_nothing(source: Path, dsn: str) -> None:
    with open_store(parse_location(str(source))) as store:
        store.agents.count_call(
            AgentCall(
                client="codex",
                event="stop",
                called_at=NOON,
                duration_ms=1,
                failure="a \0 in it",
            )
        )

    assert move(source, dsn)["counts"] == counted(source)


# `mnem move --owner`: the memory of one owner moves to a server and back, and no other is touched.


@pytest.fixture
def owners(
    dsn: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[PostgresOwners]:
    """Owners anna, with nothing, and ben, with a memory."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    with open_owners(dsn) as opened:
        opened.add("anna")
        ben = opened.add("ben")
        with open_server_store(dsn, owner=ben.number) as store:
            words = memory("a", "what ben said")
            remember_batch(store, words)
        yield opened


def counts(owners: PostgresOwners) -> dict[str, int]:
    return {owner.name: owner.memories for owner in owners.owners()}


@pytest.mark.parametrize("owner", ["", "anna"])
def test_all_comes_to_a_server_and_back(
    filled: Path, dsn: str, owners: PostgresOwners, tmp_path: Path, owner: str
) -> None:
    before, back = filled.read_bytes(), tmp_path / "back.db"

    there = move(filled, dsn, owner=owner)
    returned = move(dsn, back, owner=owner)

    assert differing(filled, back) == []
    assert there["counts"] == counted(filled) == counted(back)
    assert all(there["counts"].values()), "something of everything is moved"
    assert there["sha256"] == returned["sha256"]
    assert there["asked"] == returned["asked"] == moves.SAMPLE_MAX
    assert there["differing"] == returned["differing"] == []
    assert filled.read_bytes() == before, "the source stays as it was"
    expected = {"anna": 0, "ben": 1, "local": 0}
    expected[owner or "local"] = there["counts"]["memory"]
    assert counts(owners) == expected


def test_only_who_has_nothing_takes_a_memory(
    filled: Path, dsn: str, owners: PostgresOwners
) -> None:
    before = counts(owners)

    with pytest.raises(
        InvalidRequest, match="in the new database is not as in the old one"
    ):
        move(filled, dsn, owner="ben")
    with pytest.raises(NotFound, match="no owner 'carl'"):
        move(filled, dsn, owner="carl")

    assert counts(owners) == before


# `mnem move` refuses what it cannot carry whole, and says what to do.


def test_a_source_that_changed_since_is_refused(source: Path, dsn: str) -> None:
    move(source, dsn)
    with open_memory(config_by_words(source)) as memory:
        memory.service.call(Remember("Something new", id="new"))

    with pytest.raises(InvalidRequest, match="did not change since then"):
        move(source, dsn)


@pytest.mark.parametrize(
    ("source", "target", "reason"),
    [
        ("here.db", "there.db", "are both files: `mnem backup`"),
        ("postgresql://a/b", "postgresql://c/d", "are both on a server"),
        ("nowhere.db", "postgresql://c/d", "there is no database"),
        ("postgresql://a/b", "nowhere/there.db", "there is no folder"),
    ],
)
def test_places_between_which_nothing_is_moved(
    tmp_path: Path, source: str, target: str, reason: str
) -> None:
    places = [
        place if "://" in place else str(tmp_path / place) for place in (source, target)
    ]

    with pytest.raises(InvalidRequest, match=reason):
        move(*places)

    assert list(tmp_path.iterdir()) == []


def test_a_source_that_keeps_nothing_is_refused(dsn: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidRequest, match="is empty: there is nothing to move"):
        move(dsn, tmp_path / "there.db")

    assert list(tmp_path.iterdir()) == []


def test_a_password_is_not_shown(filled: Path) -> None:
    with pytest.raises(StorageFailed) as error:
        move(filled, "postgresql://ann:hush@127.0.0.1:1/memory?connect_timeout=1")

    assert "hush" not in str(error.value)


def test_a_file_of_another_program_is_refused(dsn: str, tmp_path: Path) -> None:
    foreign = tmp_path / "songs.db"
    with closing(sqlite3.connect(foreign)) as connection:
        connection.execute("CREATE TABLE song (name)")
    before = foreign.read_bytes()
    with open_memory(config_by_words(dsn)) as memory:
        memory.service.call(Remember("Mine", id="mine"))

    with pytest.raises(MnemosynedError, match="songs"):
        move(dsn, foreign)

    assert foreign.read_bytes() == before


def test_a_memory_that_is_open_is_refused(source: Path, dsn: str) -> None:
    with (
        open_store(parse_location(str(source))),
        pytest.raises(DatabaseInUse, match="stop it with `mnem stop`"),
    ):
        move(source, dsn)


def test_other_hits_are_told(filled: Path, dsn: str) -> None:
    memory = ExportedMemory(
        id="pin", seq=1, session="s", content="Ada drinks tea", created_at=NOON
    )

    with (
        open_store(parse_location(str(filled))) as full,
        open_store(parse_location(dsn)) as empty,
    ):
        differing = compare_recalls(
            full.search, empty.search, [memory], now=datetime.now(UTC)
        )

    assert differing == ("pin",)


def test_the_words_tell_what_to_set_and_what_stays(
    filled: Path, dsn: str, owners: PostgresOwners
) -> None:
    owners.add("mill", is_group=True)
    words = ["--from", str(filled), "--to", dsn]

    def say_move(*more: str) -> str:
        done = CliRunner().invoke(move_command, [*words, *more], standalone_mode=False)
        return done.stdout

    said = say_move()

    assert "mnem owner group join mill OWNER" in say_move("--owner", "mill")
    assert "each record is the same in both" in said
    assert "recall: 5 of 5 questions answered alike" in said
    assert f"mnem config set database '{dsn}'" in said
    assert said.splitlines()[-1].startswith("not moved: the list of `mnem undo`")
