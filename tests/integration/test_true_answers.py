"""Where a later step of a request fails, the answer says what the steps before it did."""

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from threading import Thread
from time import sleep
from typing import Any

import click
import pytest
from support.fakes import memory, trio, working_ids
from support.services import Lab

from mnemosyned.cli.output.show import render, renderer_of
from mnemosyned.errors import NotFound, NotPurged, PartlyDone, StorageFailed
from mnemosyned.memory.consolidation import CycleStatus
from mnemosyned.service.forgetting import RetentionService
from mnemosyned.service.intake import CHUNK
from mnemosyned.service.undo import UNDO_CHUNK
from mnemosyned.sleep.context import CommitPacing
from mnemosyned.storage.sqlite.connections import Writer, open_writer

FULL = "the disk is full: free space, then try again"


class Disk:
    """A disk that is full for some methods of the store, until a test frees space."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self._patch = patch
        self.free_space = patch.undo

    def fill(self, part: object, method: str, *, after: int = 0) -> None:
        """Let a method of a part fail, from a call on."""
        original = getattr(part, method)
        left = [after]

        def limited(*given: object, **named: object) -> Any:  # noqa: ANN401
            left[0] -= 1
            if left[0] >= 0:
                return original(*given, **named)
            raise StorageFailed(f"nothing was kept: {FULL}", reason=FULL)

        self._patch.setattr(part, method, limited)


@pytest.fixture
def disk() -> Iterator[Disk]:
    with pytest.MonkeyPatch.context() as patch:
        yield Disk(patch)


def test_a_forget_that_cannot_purge_is_done_and_says_so(lab: Lab, disk: Disk) -> None:
    lab.put(memory("1"), memory("2"))
    disk.fill(lab.store.deletion, "purge_deleted")

    receipt = lab.forget("1")

    assert (receipt.memories, receipt.complete) == (1, False)
    assert "can still be read in the file" in receipt.reason
    assert FULL in receipt.reason
    assert working_ids(lab.store) == ["2"]
    with pytest.raises(
        NotPurged, match=r"there is no memory '1'.*can still be read.*free space"
    ):
        lab.forget("1")
    disk.free_space()

    with pytest.raises(NotFound, match="there is no memory '1'"):
        lab.forget("1")
    assert not lab.store.deletion.purge_due()


def test_repeating_a_forgetting_waits_for_another_program_in_words(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab.put(memory("1"))
    monkeypatch.setattr(lab.store.deletion, "purge_deleted", lambda: False)
    assert not lab.forget("1").complete

    with pytest.raises(NotPurged, match="another program reads the database"):
        lab.forget("1")


def test_a_forget_that_stops_halfway_counts_what_is_gone(lab: Lab, disk: Disk) -> None:
    lab.put(*(memory(f"m{number}", "the same words") for number in range(CHUNK + 5)))
    disk.fill(lab.store.deletion, "forget", after=1)

    with pytest.raises(
        PartlyDone, match=f"^{CHUNK} of {CHUNK + 5} memories are forgotten"
    ):
        lab.forget(query="same")
    disk.free_space()

    assert len(working_ids(lab.store)) == 5
    assert lab.forget(query="same").memories == 5


def test_a_forgetting_of_which_nothing_was_done_says_that(lab: Lab, disk: Disk) -> None:
    lab.put(memory("1"))
    disk.fill(lab.store.deletion, "forget")

    with pytest.raises(StorageFailed, match="nothing was kept") as error:
        lab.forget("1")

    assert error.value.code == "storage_failed"
    assert working_ids(lab.store) == ["1"]


def test_summaries_that_wait_to_be_rewritten_are_named_and_then_rewritten(
    lab: Lab, retention: RetentionService, disk: Disk
) -> None:
    lab.put(*trio("a"), *trio("a1"))
    lab.sleep(force=True)
    disk.fill(lab.store.rollups, "rewrite")

    receipt = lab.forget("a0")
    disk.free_space()

    assert not receipt.complete
    assert "summaries wait to be rewritten" in receipt.reason
    retention.after_cycle()
    assert lab.store.rollups.next_stale() is None


def test_a_cycle_reports_what_it_did_though_its_failure_cannot_be_logged(
    lab: Lab, disk: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab.put(*trio("a", session="a"), *trio("b", session="b"))
    promote = lab.store.sleep.consolidate

    def only_the_first(groups: Any, **named: Any) -> list[Exception | None]:  # noqa: ANN401
        done = promote(groups[:1], **named)
        return [*done, *(StorageFailed(FULL) for _ in groups[1:])]

    monkeypatch.setattr(lab.store.sleep, "consolidate", only_the_first)
    disk.fill(lab.store.sleep, "record_failure")

    report = lab.sleep(force=True)

    assert (report.status, report.promoted, report.failed) == (
        CycleStatus.PARTIAL,
        1,
        1,
    )
    assert report.cycle
    assert lab.undo_cycle(report.cycle).restored == 3


def test_a_cycle_summarizes_nothing_more_if_the_disk_takes_nothing(
    lab: Lab, disk: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(9):
        lab.put(*trio(f"s{number}-", session=f"s{number}"))
    lab.service.sleeper.cycle.pacing = CommitPacing(groups_max=1)
    disk.fill(lab.store.sleep, "record_failure")
    full = [StorageFailed(FULL, reason=FULL)]
    with monkeypatch.context() as patch:
        patch.setattr(
            lab.store.sleep, "consolidate", lambda groups, **_: full * len(groups)
        )
        report = lab.sleep(force=True)
    disk.free_space()

    assert (report.status, report.failed) == (CycleStatus.PARTIAL, 1)
    assert (report.remaining, report.problem) == (27, FULL)
    assert lab.sleep(force=True).evicted == 27


@pytest.mark.parametrize("step", ["flush", "pending"])
def test_a_cycle_that_ends_early_is_reported(lab: Lab, disk: Disk, step: str) -> None:
    lab.put(*trio("a", hours_ago=100))
    # The last commit, which would be flushed itself, has no group.
    lab.service.sleeper.cycle.pacing = CommitPacing(groups_max=1)
    part = lab.store.maintenance if step == "flush" else lab.store.rollups
    disk.fill(part, step)

    report = lab.sleep()

    assert (report.promoted, report.evicted) == (1, 3)
    assert report.problem == ("" if step == "flush" else FULL)
    assert working_ids(lab.store) == []


def test_a_cycle_that_could_do_nothing_says_so(lab: Lab, disk: Disk) -> None:
    lab.put(*trio("a"))
    disk.fill(lab.store.sleep, "pending")

    with pytest.raises(
        StorageFailed, match=r"^nothing was consolidated: the disk is full"
    ):
        lab.sleep(force=True)


def test_tidying_that_fails_takes_no_report_along(lab: Lab, disk: Disk) -> None:
    lab.put(*trio("a"))
    lab.store.deletion.forget(["a0"])
    disk.fill(lab.store.deletion, "purge_deleted")

    assert lab.sleep(force=True).evicted == 2


def test_an_undo_that_stops_halfway_counts_what_is_back(lab: Lab, disk: Disk) -> None:
    for number in range(UNDO_CHUNK + 2):
        lab.put(*trio(f"s{number}-", session=f"s{number}"))
    cycle = lab.sleep(force=True).cycle
    disk.fill(lab.store.undo, "undo_episodes", after=1)

    with pytest.raises(PartlyDone, match=f"^{UNDO_CHUNK} of {UNDO_CHUNK + 2} episodes"):
        lab.undo_cycle(cycle)
    disk.free_space()

    assert lab.store.memories.working_count() == 3 * UNDO_CHUNK
    assert lab.undo_cycle(cycle).restored == 6


def test_a_prune_that_stops_halfway_counts_what_is_gone(lab: Lab, disk: Disk) -> None:
    for number in range(CHUNK // 3 + 2):
        lab.put(*trio(f"s{number}-", session=f"s{number}"))
    lab.sleep(force=True)
    lab.clock.advance(days=10)
    disk.fill(lab.store.retention, "prune", after=1)

    with pytest.raises(
        PartlyDone, match=f"^{CHUNK} of {CHUNK + 5} originals were pruned"
    ):
        lab.prune(keep_days=1)


def test_restores_succeed_though_no_summary_is_rewritten(lab: Lab, disk: Disk) -> None:
    lab.put(*trio("a"), *trio("a1"))
    lab.sleep(force=True)
    disk.fill(lab.store.rollups, "rewrite")

    assert lab.restore("a0").id == "a0"
    assert lab.remember("newer", id="new", supersedes="a1").stored
    assert {"a0", "new"} == {
        one.id for one in lab.store.memories.working(["a0", "new"])
    }


def test_a_learning_that_is_removed_is_so_though_its_words_cannot_be_purged(
    lab: Lab, disk: Disk
) -> None:
    learned = lab.learn("Taste before you salt.").learning
    disk.fill(lab.store.deletion, "purge_deleted")

    removed = lab.remove_learning(learned.id)

    assert lab.learnings().learnings == []
    assert FULL in removed.note
    assert lab.store.deletion.purge_due()


def test_a_memory_opens_though_what_a_crash_left_cannot_be_mended_yet(
    lab: Lab, retention: RetentionService, disk: Disk
) -> None:
    disk.fill(lab.store.rollups, "next_stale")

    assert "summaries wait" in retention.rewrite_stale_or_log()


class Failing:
    """A connection on which statements that begin so fail, as a disk would have them fail."""

    is_durable = True

    def __init__(self, connection: sqlite3.Connection, *begin: str) -> None:
        self.begin = begin
        self._connection = connection

    @property
    def in_transaction(self) -> bool:
        return self._connection.in_transaction

    def execute(self, sql: str, values: Sequence[int] = ()) -> sqlite3.Cursor:
        if sql.startswith(self.begin):
            error = sqlite3.OperationalError("disk I/O error")
            error.sqlite_errorcode = sqlite3.SQLITE_IOERR
            raise error
        return self._connection.execute(sql, values)

    def close(self) -> None:
        self._connection.close()


def writer_on(database: Path, *begin: str) -> tuple[Writer, Failing]:
    connection = open_writer(database)
    connection.execute("CREATE TABLE noted (value INTEGER PRIMARY KEY)")
    failing = Failing(connection, *begin)
    return Writer(failing), failing  # type: ignore[arg-type]  # it stands in for a connection


def note(value: int) -> Callable[[sqlite3.Connection], object]:
    return lambda connection: connection.execute(
        "INSERT INTO noted VALUES (?)", (value,)
    )


def test_a_write_is_refused_though_the_rollback_fails(database: Path) -> None:
    writer, failing = writer_on(database, "COMMIT", "ROLLBACK")

    outcomes = writer.write_each([note(1), note(2)])
    failing.begin = ("COMMIT",)
    with pytest.raises(StorageFailed, match="the disk fails"):
        writer.write(note(3))
    failing.begin = ("nothing",)
    writer.write(note(4))

    assert [type(outcome) for outcome in outcomes] == [StorageFailed, StorageFailed]
    kept = failing.execute("SELECT value FROM noted").fetchall()
    writer.close()
    assert kept == [(4,)]


def test_an_interrupt_after_a_commit_fails_no_write_of_another_thread(
    database: Path,
) -> None:
    class Interrupted(Failing):
        def execute(self, sql: str, values: Sequence[int] = ()) -> sqlite3.Cursor:
            cursor = super().execute(sql, values)
            if sql == "COMMIT":
                raise KeyboardInterrupt
            return cursor

    connection = Interrupted(open_writer(database), "nothing")
    connection.execute("CREATE TABLE noted (value INTEGER PRIMARY KEY)")
    writer = Writer(connection)  # type: ignore[arg-type]  # it stands in for a connection
    outcomes: list[BaseException | None] = []

    def write(value: int) -> None:
        try:
            writer.write(note(value))
        except BaseException as error:  # noqa: BLE001 an interrupt, too
            outcomes.append(error)
        else:
            outcomes.append(None)

    threads = [Thread(target=write, args=(value,)) for value in (1, 2)]
    with writer._lock:  # noqa: SLF001 both wait for it, and share a commit
        for thread in threads:
            thread.start()
        while len(writer._waiting) < len(threads):  # noqa: SLF001 both wait for it, and share a commit
            sleep(0.001)
    for thread in threads:
        thread.join()

    kept = connection.execute("SELECT value FROM noted").fetchall()
    assert kept == [(1,), (2,)]
    assert sorted(type(outcome).__name__ for outcome in outcomes) == [
        "KeyboardInterrupt",
        "NoneType",
    ]


@pytest.mark.parametrize("upkeep", [Writer.compact, Writer.checkpoint])
def test_upkeep_that_fails_is_an_error_of_ours(
    database: Path, upkeep: Callable[[Writer], bool]
) -> None:
    writer, failing = writer_on(database, "VACUUM", "PRAGMA wal_checkpoint")

    with pytest.raises(
        StorageFailed, match="every memory in it is as it was: the disk fails"
    ):
        upkeep(writer)

    failing.begin = ("nothing",)
    writer.close()


def test_a_writer_closes_though_its_log_cannot_be_folded_in(database: Path) -> None:
    writer, _ = writer_on(database, "PRAGMA wal_checkpoint")

    writer.close()

    with pytest.raises(StorageFailed, match="closed"):
        writer.write(note(1))


def test_people_read_what_is_not_finished(
    lab: Lab, disk: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab.put(*trio("a", hours_ago=100), memory("1"))
    learned = lab.learn("Taste before you salt.").learning
    disk.fill(lab.store.deletion, "purge_deleted")
    monkeypatch.setattr(
        lab.store.maintenance, "warnings", lambda: ["the log was damaged"]
    )
    disk.fill(lab.store.rollups, "pending")

    answers = [lab.sleep(), lab.forget("1"), lab.remove_learning(learned.id)]

    for answer in answers:
        assert FULL in click.unstyle(
            render(answer) + renderer_of(type(answer)).remark(answer)
        )
    assert "the log was damaged" in click.unstyle(render(lab.status()))
