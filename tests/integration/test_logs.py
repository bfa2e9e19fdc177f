"""The log tells what happened and how much; what was said belongs to its owner."""

import json
import logging
import os
import shutil
import sqlite3
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any, Literal

import pytest
import structlog
from support.cases import each_case
from support.fakes import FakeClock, FakeSummarizer, raising, trio
from support.settings import config_by_words

from mnemosyned.assembly.build import OpenMemory, open_memory
from mnemosyned.cli.maintenance.service import readable_line
from mnemosyned.errors import (
    BatchChanged,
    DatabaseReplaced,
    DatabaseUnreachable,
    MnemosynedError,
    StorageFailed,
)
from mnemosyned.logs import ROOT, LineHandler, configure_logs, log_failure, logger
from mnemosyned.memory.values import MemoryRecord
from mnemosyned.verbs.memories import Recall, Remember, RememberMany
from mnemosyned.verbs.retention import Forget
from mnemosyned.verbs.upkeep import Sleep, Status

Form = Literal["json", "console"]
TOLD = "Zqxjv48213Kwyz"


@pytest.fixture(autouse=True)
def logs_as_they_were() -> Iterator[None]:
    """Configuring logs changes the whole process: put it back."""
    root, ours = logging.getLogger(), logging.getLogger(ROOT)
    before = root.handlers[:], root.level, ours.level
    yield
    root.handlers[:], root.level, ours.level = before
    structlog.reset_defaults()


@pytest.fixture
def memory(database: Path, blank: Path, clock: FakeClock) -> Iterator[OpenMemory]:
    shutil.copy(blank, database)
    with open_memory(config_by_words(database), clock=clock) as opened:
        yield opened


def remember(memory: OpenMemory) -> None:
    told = [
        Remember(f"{one.content} {TOLD}", id=one.id, created_at=one.created_at)
        for one in trio("a")
    ]
    memory.service.call(RememberMany(told))


def lines(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def refusing(error: Exception) -> FakeSummarizer:
    def refuse(memories: Sequence[MemoryRecord]) -> None:
        words = " ".join(one.content for one in memories)
        raise error from KeyError(words)

    return FakeSummarizer(meanwhile=refuse)


@pytest.mark.parametrize("form", ["json", "console"])
@pytest.mark.parametrize(
    "error",
    [
        ValueError(f"cannot make sense of {TOLD}"),
        ExceptionGroup(f"two: {TOLD}", [ValueError(TOLD), OSError(TOLD)]),
        UnicodeDecodeError("utf-8", TOLD.encode(), 0, 1, TOLD),
    ],
)
def test_no_line_holds_what_was_said_whatever_goes_wrong(
    memory: OpenMemory,
    capsys: pytest.CaptureFixture[str],
    form: Form,
    error: Exception,
) -> None:
    configure_logs(level="debug", form=form)
    error.add_note(f"said: {TOLD}")

    remember(memory)
    memory.service.call(Recall(TOLD))
    memory.service.sleeper.cycle.lease.replace(refusing(error))
    assert memory.service.call(Sleep()).failed == 1
    memory.service.sleeper.cycle.lease.replace(FakeSummarizer())
    assert memory.service.call(Sleep()).evicted == 3
    memory.service.call(Forget("a1"))
    with pytest.raises(MnemosynedError):
        memory.service.call(Remember(f"{TOLD} other", id="a0"))

    out, err = capsys.readouterr()
    assert "group_failed" in err
    assert type(error).__name__ in err
    assert TOLD not in out + err


def test_a_finished_cycle_is_one_line_of_numbers_and_a_failed_group_says_where(
    memory: OpenMemory, capsys: pytest.CaptureFixture[str]
) -> None:
    configure_logs(level="info", form="json")
    remember(memory)
    lease = memory.service.sleeper.cycle.lease
    lease.replace(refusing(ValueError(TOLD)))

    memory.service.call(Sleep())
    lease.replace(FakeSummarizer())
    report = memory.service.call(Sleep())

    failed, partial, done = lines(capsys.readouterr().err)
    assert (failed["event"], failed["level"]) == ("group_failed", "error")
    assert (failed["items"], failed["error"]) == (3, "ValueError")
    raised = failed["exception"][0]
    assert raised["exc_type"] == "ValueError"
    assert raised["frames"][-1]["name"] == "refuse"
    assert (partial["event"], partial["status"]) == ("cycle_finished", "partial")
    assert (done["event"], done["level"]) == ("cycle_finished", "info")
    assert (done["cycle"], done["promoted"], done["evicted"]) == (report.cycle, 1, 3)
    assert done["timestamp"].endswith("Z")


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (StorageFailed("the disk is full"), "the disk is full"),
        (sqlite3.OperationalError("disk I/O error"), "disk I/O error"),
        (ConnectionRefusedError(111, "Connection refused"), "Connection refused"),
    ],
)
@pytest.mark.parametrize("form", ["json", "console"])
def test_errors_of_ours_and_of_the_machine_keep_their_words(
    capsys: pytest.CaptureFixture[str],
    error: Exception,
    words: str,
    form: Form,
) -> None:
    configure_logs(level="info", form=form)

    try:
        raise error
    except type(error):
        logger().exception("failed")

    assert words in capsys.readouterr().err


@pytest.mark.parametrize(
    ("error", "level"),
    [
        (DatabaseUnreachable("the server ended"), "warning"),
        (StorageFailed("the disk is full"), "error"),
    ],
)
def test_upkeep_that_fails_has_a_traceback_but_for_a_lost_database(
    memory: OpenMemory,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    error: StorageFailed,
    level: str,
) -> None:
    configure_logs(level="info", form="json")
    monkeypatch.setattr(memory.service.retention, "finish_due", raising(error))

    memory.service.look_after_file()

    (line,) = lines(capsys.readouterr().err)
    assert (line["event"], line["level"]) == ("upkeep_put_off", level)
    assert ("exception" in line) == (level == "error")
    assert error.message in str(line)


@pytest.mark.parametrize("kind", [BatchChanged, DatabaseReplaced])
def test_a_conflict_or_a_replaced_file_has_no_traceback(
    capsys: pytest.CaptureFixture[str], kind: type[MnemosynedError]
) -> None:
    configure_logs(level="info", form="json")

    log_failure("rollup_failed", kind("it was changed concurrently"), items=2)

    (line,) = lines(capsys.readouterr().err)
    assert line["level"] == "warning"
    assert line["reason"] == "it was changed concurrently"
    assert "exception" not in line


def test_the_log_does_not_quote_a_text_that_is_not_utf8(
    memory: OpenMemory, database: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    remember(memory)
    with closing(sqlite3.connect(database)) as other, other:
        other.execute(
            "UPDATE working_memory SET content = content || CAST(x'ff' AS TEXT)"
        )
    configure_logs(level="info", form="json")

    with pytest.raises(StorageFailed, match="run mnem doctor") as raised:
        memory.service.call(Recall(TOLD))
    log_failure("request_failed", raised.value)

    logged = capsys.readouterr().err
    assert "Could not decode to UTF-8" in logged
    assert TOLD not in logged


def test_nothing_is_written_below_the_level_or_unless_the_program_asks(
    memory: OpenMemory, capsys: pytest.CaptureFixture[str]
) -> None:
    remember(memory)
    memory.service.call(Sleep())
    of_library = capsys.readouterr()
    configure_logs(level="warning", form="json")
    memory.service.call(Sleep())
    memory.service.call(Status())

    assert of_library == capsys.readouterr() == ("", "")


def test_lines_of_other_libraries_have_the_same_form_and_on_a_terminal_one_for_people(
    capsys: pytest.CaptureFixture[str],
) -> None:
    configure_logs(level="info", form="auto")
    logging.getLogger("apscheduler").warning("something %s", "odd")
    (line,) = lines(capsys.readouterr().err)
    configure_logs(level="info", form="console")
    logger().info("ready", pid=5)
    shown = capsys.readouterr().err

    assert (line["event"], line["level"]) == ("something odd", "warning")
    assert "ready" in shown
    assert not shown.startswith("{")


# Log lines reach standard error in order, and nobody waits for one who does not read them.


PIPE_BYTES = 65_536
LINE = "x" * 99
QUEUE_BYTES = 10_000

Pipe = tuple[int, int]


@pytest.fixture
def pipe(monkeypatch: pytest.MonkeyPatch) -> Iterator[Pipe]:
    monkeypatch.setattr("mnemosyned.logs.QUEUE_BYTES_MAX", QUEUE_BYTES)
    ours, theirs = os.pipe()
    yield ours, theirs
    os.close(ours)


def writer(pipe: Pipe) -> LineHandler:
    handler = LineHandler(pipe[1])
    handler.setFormatter(logging.Formatter("dropped %(count)s"))
    return handler


def read_all(pipe: Pipe, until: str) -> list[str]:
    text = ""
    while until not in text:
        text += os.read(pipe[0], PIPE_BYTES).decode()
    return text.splitlines()


def test_a_line_is_out_when_the_call_returns(pipe: Pipe) -> None:
    writer(pipe).write("one line")

    os.set_blocking(pipe[0], False)
    assert os.read(pipe[0], 100) == b"one line\n"


def test_lines_of_many_threads_come_whole_and_in_each_threads_order(pipe: Pipe) -> None:
    lines = writer(pipe)

    def write(name: int) -> None:
        for number in range(50):
            lines.write(f"{name} {number}")

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(write, range(8)))
    lines.write("end")

    written = read_all(pipe, "end")[:-1]
    for name in range(8):
        own = [line for line in written if line.startswith(f"{name} ")]
        assert own == [f"{name} {number}" for number in range(50)]


def test_an_unread_log_pipe_stalls_nothing_and_lost_lines_are_counted(
    pipe: Pipe,
) -> None:
    lines = writer(pipe)
    count = 2 * (PIPE_BYTES + QUEUE_BYTES) // (len(LINE) + 1)

    begun = time.monotonic()
    for _ in range(count):
        lines.write(LINE)
    took_s = time.monotonic() - begun
    first = read_all(pipe, LINE)
    while len(first) * (len(LINE) + 1) < PIPE_BYTES:
        first += read_all(pipe, LINE)
    lines.write("later")
    remaining = read_all(pipe, "later")

    assert took_s < count / 20, "one wait of a tenth of a second, not one for each line"
    (notice,) = [line for line in remaining if line.startswith("dropped")]
    assert remaining[-2:] == [notice, "later"]
    kept = [line for line in (*first, *remaining) if line == LINE]
    assert len(kept) + int(notice.split()[1]) == count


def test_a_closed_pipe_is_no_error() -> None:
    ours, theirs = os.pipe()
    lines = writer((ours, theirs))
    os.close(ours)

    for _ in range(3):
        lines.write(LINE)
    lines.flush()
    os.close(theirs)


# `mnem logs` at a terminal: lines of JSON as a person reads them.


@pytest.fixture
def in_berlin(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.usefixtures("in_berlin")
@each_case(
    ("entry", "shown"),
    [
        (
            {
                "trigger": "explicit",
                "promoted": 2,
                "timestamp": "2026-11-23T01:18:35.847767Z",
            },
            "2026-11-23 02:18:35 cycle finished  trigger=explicit  promoted=2",
        ),
        (
            {"event": "slow", "level": "warning", "timestamp": "2026-07-01T10:00:00Z"},
            "2026-07-01 12:00:00 warning: slow",
        ),
        ({"event": "ready"}, "now ready"),
        (
            {"status": "done", "evicted": 4, "promoted": 2},
            "now cycle done: 4 memories became 2 summaries",
        ),
        (
            {"status": "nothing_to_do", "evicted": 0},
            "now cycle: nothing is old enough",
        ),
        (
            {"event": "cycle_undone", "restored": 1},
            "now cycle undone: 1 memory back in working memory",
        ),
        (
            {"event": "action_undone", "kind": "edit", "count": 2},
            "now edit undone: 2 memories",
        ),
        ({"event": "forgotten", "count": 3, "complete": True}, "now forgot 3 memories"),
        (
            {
                "event": "request_failed",
                "level": "error",
                "exception": [
                    {"exc_type": "StorageFailed", "exc_value": "full", "frames": [{}]},
                    {"exc_type": "OSError", "exc_value": "", "frames": []},
                ],
            },
            "now error: request failed  exception=StorageFailed: full (mnem logs --json has the traceback)",
        ),
    ],
)
def test_an_entry_is_shown_in_words_at_its_local_time(
    entry: dict[str, object], shown: str
) -> None:
    finished = {"event": "cycle_finished", "level": "info", "timestamp": "now"}

    assert readable_line(json.dumps(finished | entry)) == shown


@each_case("line", ["", "Traceback (most recent call last):", "[1]", "{}"])
def test_a_line_of_another_form_stays_as_it_is(line: str) -> None:
    assert readable_line(line) == line
