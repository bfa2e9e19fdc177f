"""The commands that look, typed next to a real daemon."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from e2e.conftest import Start
from e2e.daemons import (
    WAIT_S,
    Daemon,
    Json,
    environment,
    eventually,
    kept,
    mnem,
    running,
)
from e2e.programs import BIN, Process, start
from support.cases import each_case

pytestmark = pytest.mark.e2e


MONDAY = datetime(2026, 3, 9, 9, tzinfo=UTC)
NOTES = 620
"""More than one page of a list."""


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    """A daemon with three weeks that were slept over, and a session that was not."""
    with running(tmp_path_factory.mktemp("looking")) as daemon:
        steps = [
            {
                "id": f"Step-{day:02}-{number}",
                "content": f"Day {day}: step {number} of the stew.",
                "session": "kitchen",
                "source": "cook",
                "role": "Ada",
                "created_at": (
                    MONDAY + timedelta(days=day, minutes=number)
                ).isoformat(),
            }
            for day in range(21)
            for number in range(5)
        ]
        daemon.post("remember_many", memories=steps)
        daemon.post("sleep", force=True)
        notes = [{"content": f"note {n}", "session": "notes"} for n in range(NOTES)]
        daemon.post("remember_many", memories=notes)
        yield daemon


def shown(daemon: Daemon, *words: str, form: str = "table", code: int = 0) -> str:
    printed = daemon.mnem(*words, "--format", form)
    assert printed.returncode == code, printed.stderr.decode()
    return printed.stdout.decode()


def test_mnem_alone_shows_the_state(filled: Daemon) -> None:
    text = shown(filled)

    assert text.startswith("mnemosyned is running")
    assert "620 working, 105 archived" in text
    assert "620 memories; the last at" in text
    assert json.loads(shown(filled, form="json"))["status"]["today"] == NOTES


def test_a_pause_is_shown_in_place_of_the_next_cycle(filled: Daemon) -> None:
    filled.mnem("sleep", "--pause-minutes", "30")
    paused, status = shown(filled), shown(filled, "status")
    filled.mnem("sleep", "--pause-minutes", "0")

    assert "sleep       paused until " in paused
    assert ", paused until " in status
    assert "\nnext cycle " not in status
    assert "paused until" not in shown(filled)


def test_mnem_alone_says_in_two_lines_how_to_start_a_daemon(tmp_path: Path) -> None:
    printed = mnem("--socket", str(tmp_path / "none"), home=tmp_path)

    assert printed.returncode == 3
    assert printed.stdout == b""
    lines = printed.stderr.decode().splitlines()
    assert len(lines) == 2
    assert "mnem start" in lines[1]


def test_a_list_of_any_length_comes_page_by_page(filled: Daemon) -> None:
    ids = shown(filled, "list", "-n", "600", form="ids").split()
    everything = shown(filled, "list", "--all", form="jsonl").splitlines()
    whole = json.loads(shown(filled, "list", "--all", form="json"))

    assert len(set(ids)) == 600
    assert [json.loads(line)["id"] for line in everything[:600]] == ids
    assert len(everything) == len(whole["memories"]) == NOTES + 105
    assert whole["next"] is None


def test_a_day_is_its_summary_and_its_memories(filled: Daemon) -> None:
    text = shown(filled, "day", "2026-03-10")

    title, head, *summary = text.splitlines()
    assert title == "Tuesday 10 March 2026"
    assert head == "   summary of 5 memories, number 1:"
    assert "Day 1: step" in summary[0]
    assert "Ada: Day 1: step 4 of the stew." in text
    ids = shown(filled, "day", "2026-03-10", form="ids").split()
    assert ids[1:] == [f"Step-01-{number}" for number in range(5)]
    narrow = ("day", "10 March", "2026", "-s", "kitchen")
    assert ids[1:] == shown(filled, *narrow, form="ids").split()
    assert b'when: "" is not a valid time' in filled.mnem("day", "").stderr


def test_no_evening_west_of_greenwich_falls_between_a_summary_and_local_days(
    filled: Daemon,
) -> None:
    late = {"content": "Dinner.", "created_at": "2026-03-30T05:00Z"}
    filled.post("remember", **late, id="late", session="evening")
    options = ("--socket", str(filled.socket), "--format", "table")

    day, week = (
        mnem(*options, *words, home=filled.home, TZ="Etc/GMT+8").stdout.decode()
        for words in (("day", "2026-03-29"), ("week", "2026-03-30"))
    )
    filled.post("forget", id="late")

    assert "   summary of 5 memories, number 1" in day
    assert "Dinner." in day
    assert "Dinner." in week


@pytest.mark.parametrize("zone", ["America/Los_Angeles", "Asia/Tokyo"])
def test_days_end_at_midnight_in_the_zone_of_the_daemon(
    start: Start, zone: str
) -> None:
    daemon = start(TZ=zone)
    days = [f"2026-03-{day:02}" for day in (9, 10, 11)]
    daemon.post(
        "remember_many",
        memories=[
            {
                "content": f"{what} of {day}: step {step}",
                "session": what,
                "created_at": datetime.fromisoformat(f"{day}T{hour}:1{step}")
                .replace(tzinfo=ZoneInfo(zone))
                .isoformat(),
            }
            for day in days
            for hour, what in (("06", "Tea"), ("22", "Dinner"))
            for step in range(5)
        ],
    )
    daemon.post("sleep", force=True)
    options = ("--socket", str(daemon.socket), "--format", "table")

    for level in ("day", "week"):
        found = daemon.post("list", level=level, order="oldest").body["episodes"]
        begins = [f"{day}T00:00:00Z" for day in days[: 1 if level == "week" else 3]]
        assert [summary["period_from"] for summary in found] == begins
        counts = {summary["item_count"] for summary in found}
        assert counts == {30 if level == "week" else 10}
    week, text = (
        mnem(*options, *words, home=daemon.home, TZ=zone).stdout.decode()
        for words in (("week", "2026-03-10"), ("day", "2026-03-10"))
    )
    assert "summary of 10 memories, number 1" in text
    assert {"Tea of 2026-03-10", "Dinner of 2026-03-10"} <= set(
        re.findall(r"\w+ of 2026-\d\d-\d\d", text)
    )
    assert week.count("  10 memories") == 3
    top = daemon.post("recall", query="what happened on 10 March 2026?").body["hits"][0]
    assert (top["tier"], "2026-03-10" in top["content"]) == ("episodic", True)


@pytest.mark.parametrize(
    ("words", "head", "part", "parts"),
    [
        (("week", "2026-03-11"), "9 to 15 March 2026 (week 11)\n   summary of 35 mem", "  5 memories\n", 7),
        (("month", "March 2026"), "March 2026\n   summary of 105 memories", "(week ", 3),
    ],
)  # fmt: skip
def test_a_week_and_a_month_are_their_summaries_and_their_parts(
    filled: Daemon, words: tuple[str, ...], head: str, part: str, parts: int
) -> None:
    text = shown(filled, *words)

    assert text.startswith(head)
    assert text.count(part) == parts


def test_the_numbers_of_a_period_name_what_it_showed(filled: Daemon) -> None:
    shown(filled, "list", "-s", "notes", "-n", "5")
    shown(filled, "day", "2026-03-10")

    assert "originals   5" in shown(filled, "show", "1")
    assert shown(filled, "show", "3", form="ids") == "Step-01-1\n"


@pytest.mark.thorough
def test_what_was_not_slept_over_is_shown_by_its_memories(filled: Daemon) -> None:
    notes = ("list", "-s", "notes", "--order", "oldest", "-n", "1000")
    assert shown(filled, "today", form="ids") == shown(filled, *notes, form="ids")
    week = filled.mnem("week", "--format", "table")
    assert b"and more: mnem day " in week.stdout
    assert b"the summary of this week is written" in week.stderr
    narrowed = filled.mnem("week", "-s", "notes", "--format", "table")
    assert b" with the same filters" in narrowed.stdout
    assert narrowed.stderr == b""


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["day", "2020-01-01"], 1, "nothing is kept of Wednesday 1 January 2020"),
        (["day", "-s", "x"], 1, "nothing matches in "),
        (["list", "-s", "nowhere"], 1, "nothing matches\n"),
        (["list", "--since", "yesterday", "--until", "2 weeks ago"], 2, ") is not before `--until` ("),
        (["recall", "tea", "--since", "today", "--until", "yesterday"], 2, " is not before `--until`"),
        (["recall", "  "], 2, "query must not be empty"),
        (["remember", "x", "--valid-until", "yesterday"], 2, "valid-until is over before"),
        (["tail", "-S", "nobody"], 1, "nothing matches"),
        (["sessions", "--prefix", "x"], 0, "no session matches"),
        (["projects"], 0, "no agent was seen in a project yet"),
        (["learnings", "--kind", "name"], 0, "no learning matches"),
        (["list", "-n", "600"], 0, "more follow: add --all, a larger -n, or --after "),
        (["week", "next to never"], 2, "is not a valid time"),
        (["list", "-n", "none"], 2, "--all lists everything"),
        (["tail", "-n", "x"], 2, "'x' is not a whole number"),
        (["config", "get", "hooks"], 2, "hooks is a group of settings: hooks.capture, hooks.tell"),
        (["config", "set", "foo", "1"], 2, "mnem: there is no setting foo"),
    ],
)  # fmt: skip
def test_what_cannot_be_shown_is_said(
    filled: Daemon, words: list[str], code: int, said: str
) -> None:
    printed = filled.mnem(*words)

    assert printed.returncode == code
    assert said in printed.stderr.decode()


# ----------------------------------------------------------------------- tail


@contextmanager
def following(daemon: Daemon, *words: str) -> Iterator[tuple[Process, Path]]:
    """`mnem tail -f` on a daemon, and the file of what it prints."""
    with ExitStack() as stack:
        file = Path(stack.enter_context(tempfile.TemporaryDirectory())) / "printed"
        output = stack.enter_context(file.open("wb"))
        process = start(
            [str(BIN / "mnem"), "--socket", str(daemon.socket), "tail", "-f", *words],
            environment(daemon.home),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
        )
        try:
            yield process, file
        finally:
            process.kill()
            process.wait(WAIT_S)


@pytest.mark.thorough
def test_tail_shows_the_newest_memories_in_order(filled: Daemon) -> None:
    lines = shown(filled, "tail", "-n", "3", "-s", "kitchen").splitlines()

    assert lines[0] == "Sunday 29 March 2026"
    assert [line.rpartition("step ")[2] for line in lines[1:]] == [
        f"{number} of the stew." for number in (2, 3, 4)
    ]


@pytest.mark.thorough
def test_tail_shows_once_what_is_stored_while_it_begins(tmp_path: Path) -> None:
    with (
        running(tmp_path) as daemon,
        following(daemon, "-n", "1000", "--format", "jsonl") as (_, file),
    ):
        stored = 0
        while not file.read_text().count("\n") or stored < 50:
            daemon.post("remember", content=f"note {stored} of many")
            stored += 1
            assert stored < 1_000
        last = f"note {stored - 1} of many"
        eventually(lambda: last in file.read_text(), "the last is shown")

        shown = re.findall(r"note (\d+) of many", file.read_text())

    assert sorted(map(int, shown)) == list(range(stored))


@pytest.mark.thorough
def test_tail_follows_over_a_restart_and_ends_cleanly(tmp_path: Path) -> None:
    with running(tmp_path) as daemon:
        daemon.post("remember", content="Before.", session="tea")
        with following(daemon, "--format", "table") as (process, file):
            eventually(lambda: "Before." in file.read_text(), "the newest is shown")
            daemon.post("remember", content="Meanwhile.", session="tea")
            eventually(
                lambda: "Meanwhile." in file.read_text(), "what happens is shown"
            )
            assert daemon.stop() == 0
            eventually(lambda: "waiting" in file.read_text(), "it waits")
            with running(
                tmp_path, "--socket", str(daemon.socket), database=daemon.database
            ):
                eventually(lambda: "again" in file.read_text(), "it is back")
                eventually(
                    lambda: (
                        daemon.post("remember", content="Afterwards.")
                        and "Afterwards." in file.read_text()
                    ),
                    "what happens then is shown",
                )
                process.send_signal(signal.SIGINT)
                assert process.wait(WAIT_S) == 130
            assert "Traceback" not in file.read_text()


# A conversation compacted from the shell, and what a daemon that starts again still has of it.


TALK = [
    {
        "role": "user" if n % 2 else "assistant",
        "content": f"Step {n}: decided: plan {n}. " * 30,
    }
    for n in range(40)
]


def compact(daemon: Daemon, *words: str, talk: Json = TALK) -> Json:
    done = daemon.mnem(
        "compact", "-", "--json", *words, stdin=json.dumps(talk).encode()
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.thorough
def test_a_killed_daemon_still_expands_what_it_compacted(start: Start) -> None:
    daemon = start()
    answer = compact(daemon, "--max-tokens", "2000", "--policy", "facts")

    daemon.kill()
    again = start()

    words = again.post("expand", id=answer["expand"][0]).body["originals"]
    assert [one["content"] for one in words] == [one["content"] for one in TALK[:-4]]
    assert len(kept(again.database)) == len(TALK) - 4


def test_people_read_what_was_done_and_how_to_undo_it(daemon: Daemon) -> None:
    talk = json.dumps({"model": "any", "messages": TALK}).encode()

    done = daemon.mnem("compact", "-", "--max-tokens", "2000", stdin=talk)
    idle = daemon.mnem("compact", "-", stdin=b"[]")
    window = daemon.mnem("context", "Which plan?", "--messages", "-", stdin=talk)

    shown = done.stdout.decode()
    assert "messages remembered" in shown
    assert "their words: mnem expand c-" in shown
    assert "nothing to do" in idle.stdout.decode()
    assert "by estimate+20%" in window.stdout.decode()


@each_case(
    ("given", "field"),
    [(b"{", "messages"), (b'{"other": 1}', "messages"), (b'["words"]', "messages[0]")],
)
def test_compact_refuses_other_json(daemon: Daemon, given: bytes, field: str) -> None:
    done = daemon.mnem("compact", "-", "--json", stdin=given)

    assert done.returncode == 2
    assert json.loads(done.stderr)["error"]["field"] == field
