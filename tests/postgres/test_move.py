"""`mnem move`: a memory moves from a file to a server and back, whole, whatever ends it midway."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import click
import psycopg
import pytest
from e2e.daemons import mnem, short_room
from postgres.moving import counted, filled, move, settings, source
from support.compare_databases import NUMBERED, NUMBERS, differences
from support.fakes import NOON
from support.mixed_memory import QUESTIONS
from support.whole_memory import CALL, FORGOTTEN

from mnemosyned.assembly.build import open_memory
from mnemosyned.assembly.stores import open_store
from mnemosyned.cli.calls import interruption_message
from mnemosyned.cli.maintenance.move import parse_location
from mnemosyned.config import Config
from mnemosyned.errors import PartlyDone, StorageFailed
from mnemosyned.memory.capture import AgentCall
from mnemosyned.memory.exchange import AnyRecord, RestoreReport
from mnemosyned.service import move as moves
from mnemosyned.storage.postgres.restore import PostgresExchange
from mnemosyned.verbs.memories import Get, Recall, Remember
from mnemosyned.verbs.request import validate
from mnemosyned.verbs.retention import Restore

__all__ = ["filled", "settings", "source"]

pytestmark = pytest.mark.postgres


MOVER = Path(__file__).with_name("mover.py")


KILLED_AFTER = (1, 2, 4)
"""Parts after whose beginning the process is killed, one try after another."""


def differing(one: Path, other: Path) -> list[str]:
    """Rows that only one of both files has; learnings have their order, and other numbers."""
    numbers = NUMBERS | {("learning", "seq")}
    return differences(one, other, left_out=NUMBERED, numbers=numbers)


def answers(database: Path | str) -> list[list[tuple[str, float]]]:
    """The hits of the questions and of some memories' words, the best first."""
    config = Config(database=str(database), auto_sleep=False)
    with open_memory(config) as memory:
        words = [f"Day {day} note {day % 6} ticket T-{day}" for day in range(14)]
        return [
            [
                (hit.id, round(hit.score, 9))
                for hit in memory.service.call(
                    validate(Recall(question, asked_at="2026-11-23T12:00:00Z"))
                ).hits
            ]
            for question in (*QUESTIONS, *words)
        ]


def amid_a_move(
    patched: pytest.MonkeyPatch, incident: Callable[[], object], *, parts: int = 1
) -> None:
    """Let something happen when so many parts are stored."""
    calls = iter(range(100))
    restore = PostgresExchange.restore

    def disturbed(
        exchange: PostgresExchange, records: Sequence[AnyRecord]
    ) -> RestoreReport:
        if next(calls) == parts:
            incident()
        return restore(exchange, records)

    patched.setattr(moves, "BATCH_RECORDS", 20)
    patched.setattr(PostgresExchange, "restore", disturbed)


def test_all_comes_to_a_server_and_back(filled: Path, dsn: str, tmp_path: Path) -> None:
    before = filled.read_bytes()
    back = tmp_path / "back.db"

    there = move(filled, dsn)
    returned = move(dsn, back)

    assert differing(filled, back) == []
    assert there["counts"] == counted(filled) == counted(back)
    assert all(there["counts"].values()), "something of everything is moved"
    assert there["sha256"] == returned["sha256"]
    assert there["asked"] == returned["asked"] == moves.SAMPLE_MAX
    assert filled.read_bytes() == before, "the source stays as it was"


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


def test_recall_finds_the_same_in_the_same_order(source: Path, dsn: str) -> None:
    move(source, dsn)

    hits = answers(dsn)

    assert sum(map(bool, hits)) > len(hits) / 2
    assert hits == answers(source)


def test_what_was_forgotten_for_now_can_be_put_back(source: Path, dsn: str) -> None:
    move(source, dsn)

    with open_memory(Config(database=dsn, auto_sleep=False)) as memory:
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
def test_an_interrupted_move_says_that_it_can_be_repeated(
    filled: Path, dsn: str, monkeypatch: pytest.MonkeyPatch, stored: int
) -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        amid_a_move(patched, interrupt, parts=stored)
        with pytest.raises(click.Abort) as error:
            move(filled, dsn)
    done = move(filled, dsn)

    words = interruption_message(error.value)
    assert words == "interrupted; repeat the command to go on from there"
    assert done["counts"] == counted(filled)


def test_lost_connections_do_not_end_a_move(
    filled: Path, dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended: list[int] = []

    def end_connections() -> None:
        with psycopg.connect(dsn, autocommit=True) as connection:
            rows = connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE pid != pg_backend_pid() AND datname = current_database()"
            )
            ended.append(rows.rowcount)

    amid_a_move(monkeypatch, end_connections)

    assert move(filled, dsn)["counts"] == counted(filled)
    assert ended[0] >= 2, "the pool's, and the one that keeps others from sleeping"


def test_a_failure_amid_a_move_says_how_to_go_on(
    filled: Path, dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail() -> None:
        raise StorageFailed("the disk of the server is full")

    with monkeypatch.context() as patched:
        amid_a_move(patched, fail)
        with pytest.raises(PartlyDone, match="repeat the command") as error:
            move(filled, dsn)

    assert error.value.reason == "the disk of the server is full"
    assert move(filled, dsn)["counts"] == counted(filled)


def test_a_complete_move_is_compared_again(filled: Path, dsn: str) -> None:
    first = move(filled, dsn)

    second = move(filled, dsn)

    assert second["stored"] == {}
    assert second["known"] == first["stored"] == first["counts"]
    assert second["sha256"] == first["sha256"]


def test_a_nul_that_no_rule_admitted_stops_nothing(source: Path, dsn: str) -> None:
    with open_store(parse_location(str(source))) as store:
        store.agents.count(
            AgentCall(
                client="codex",
                event="stop",
                called_at=NOON,
                duration_ms=1,
                failure="a \0 in it",
            )
        )

    assert move(source, dsn)["counts"] == counted(source)
