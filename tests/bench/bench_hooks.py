"""How long a hook takes, each in a process of its own: daemon up, over TLS, down, and hanging.

The daemon has the encoder, as users' have, and has read all memories before the first hook.
"""

from __future__ import annotations

import argparse
import json
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.corpus import Corpus, fresh
from bench.measure import Latency, latency, say
from bench.report import Report
from e2e.authorities import Authority
from e2e.daemons import Daemon, environment, eventually, mnem, running, short_room
from e2e.doors import NAMES
from e2e.hook_programs import Json, Machine, Ran, bad_daemon, hang, prompt
from e2e.programs import BIN
from support.agents import claude_line, write_lines

RUNS, AT_ONCE, WORKERS = 200, 1_000, 8
BATCH, SESSIONS = 500, 100
PAUSE_S, TURN_S = 0.1, 0.5
"""Between calls, and between ends of turns, which no tool has faster: over TLS a process sends the messages
afterwards."""
UP_BAR_MS, TLS_BAR_MS, DOWN_BAR_MS, HANGING_BAR_MS = 60.0, 90.0, 100.0, 300.0
VECTORS_S = 120.0
Work = Callable[[int], Ran]


def measured(work: Work, runs: int, *, pause_s: float = PAUSE_S) -> Latency:
    """The times of runs one after another, each after a pause."""
    times = []
    for number in range(runs):
        time.sleep(pause_s)
        ran = work(number)
        assert isinstance(ran.answer, dict)
        times.append(ran.seconds)
    return latency(times)


def bare(machine: Machine, runs: int) -> Latency:
    """A Python that does nothing, for comparison."""
    times = []
    for _ in range(runs):
        started = time.monotonic()
        subprocess.run(
            [BIN / "python", "-c", "pass"], check=True, env=machine.environment()
        )
        times.append(time.monotonic() - started)
    return latency(times)


def filled(daemon: Daemon, corpus: Corpus) -> None:
    """Give the daemon a year of notes to search, the newest in sessions of the project."""
    entries = list(corpus)
    for start in range(0, len(entries), BATCH):
        batch = [
            {
                "content": entry.content,
                "session": f"codex:{entry.session}",
                "source": "codex",
                "role": entry.role,
            }
            for entry in entries[start : start + BATCH]
        ]
        assert daemon.post("remember_many", memories=batch).status == 200
    sessions = dict.fromkeys(entry.session for entry in entries[-SESSIONS * 20 :])
    for session in list(sessions)[-SESSIONS:]:
        payload = {**prompt("", session=session), "hook_event_name": "SessionEnd"}
        envelope = json.dumps({"payload": payload}).encode()
        assert daemon.request("POST", "/hooks", envelope).status == 200
    eventually(
        lambda: daemon.post("status").body["embedder"]["embedded"] >= len(entries),
        "vectors of all memories",
        timeout_s=VECTORS_S,
    )


def mark_read(database: Path) -> None:
    """Mark all memories as read for what they end and teach, which takes the background minutes."""
    with closing(sqlite3.connect(database)) as connection, connection:
        for table in ("ending_progress", "learned"):
            connection.execute(f"DELETE FROM {table}")
            connection.execute(
                f"INSERT INTO {table} (position) SELECT max(seq) FROM working_memory"
            )


def start_of(machine: Machine) -> Work:
    def work(number: int) -> Ran:
        fields = {"hook_event_name": "SessionStart", "source": "startup"}
        payload = {**prompt("", session=f"start{number}"), **fields}
        return machine.hook(payload)

    return work


def prompt_of(machine: Machine, questions: Sequence[str]) -> Work:
    def work(number: int) -> Ran:
        text = questions[number % len(questions)]
        return machine.hook(prompt(text, session=f"ask{number}"))

    return work


def stop_of(machine: Machine) -> Work:
    """The end of a turn with two new messages in a transcript that grows."""
    path = machine.home / ".claude" / "projects" / "-w-shop" / "bench.jsonl"
    fields: Json = {
        "hook_event_name": "Stop",
        "session_id": "bench",
        "transcript_path": str(path),
        "cwd": "/w/shop",
    }

    def work(number: int) -> Ran:
        lines = [
            claude_line("user", f"Look at cart {number}", uuid=f"u{number}"),
            claude_line("assistant", f"Cart {number} is empty.", uuid=f"a{number}"),
        ]
        write_lines(path, lines)
        return machine.hook(fields)

    return work


@dataclass(frozen=True, slots=True)
class Laptop(Machine):
    """A home that has logged in on a server, and names no daemon in its environment."""

    def environment(self, **variables: str | None) -> dict[str, str]:
        return environment(self.home, **variables)


def logged_in(home: Path, daemon: Daemon, authority: Authority) -> Laptop:
    """A laptop of the daemon's only owner."""
    (line,) = daemon.events("listening")
    url = f"https://localhost:{line['address'].rpartition(':')[2]}"
    token = daemon.home / ".local" / "state" / "mnemosyned" / "token"
    words = ("login", url, "--token-file", str(token), "--ca", str(authority.file))
    done = mnem(*words, home=home)
    assert done.returncode == 0, done.stderr
    return Laptop(home, home / "none.sock")


def at_once(work: Work, machine: Machine, calls: int) -> tuple[Latency, int]:
    """Many prompts at once; their times, and how many the daemon was too busy to take."""
    with ThreadPoolExecutor(WORKERS) as workers:
        runs = list(workers.map(work, range(10_000, 10_000 + calls)))
    assert all(isinstance(run.answer, dict) for run in runs)
    return latency([run.seconds for run in runs]), len(machine.waiting)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=RUNS)
    parser.add_argument("--at-once", type=int, default=AT_ONCE)
    parser.add_argument("--memories", type=int, default=10_000)
    options = parser.parse_args()
    report = Report("bench-hooks")
    rows: list[list[object]] = []
    corpus = fresh(options.memories)
    questions = [
        question.text for asked in corpus.questions(50).values() for question in asked
    ]

    def row(name: str, times: Latency) -> Latency:
        rows.append([name, times.p50_ms, times.p95_ms])
        report.figure(f"{name}, p50 ms", times.p50_ms)
        report.figure(f"{name}, p95 ms", times.p95_ms)
        return times

    with tempfile.TemporaryDirectory() as folder, short_room() as room:
        home = Path(folder) / "daemon"
        home.mkdir()
        authority = Authority(Path(folder) / "authority")
        settings = authority.issue(*NAMES).settings
        settings["MNEMOSYNE_EMBEDDING_ENCODER"] = "builtin"
        settings["MNEMOSYNE_WM_MAX"] = str(2 * options.memories)  # no sleep for room
        with running(home, **settings) as daemon:
            filled(daemon, corpus)
            daemon.stop()
        mark_read(home / "memory.db")
        with running(home, **settings) as daemon:
            machine = Machine(home, daemon.socket, wait_s=None)
            row("a Python that does nothing", bare(machine, options.runs))
            laptop = logged_in(Path(folder) / "laptop", daemon, authority)
            for where, user, bar_ms in (
                ("up", machine, UP_BAR_MS),
                ("TLS", laptop, TLS_BAR_MS),
            ):
                for event, work, pause_s in (
                    ("start of a session", start_of(user), PAUSE_S),
                    ("prompt", prompt_of(user, questions), PAUSE_S),
                    ("end of a turn", stop_of(user), TURN_S),
                ):
                    name = f"{where}: {event}"
                    say(name)
                    times = row(name, measured(work, options.runs, pause_s=pause_s))
                    report.bar(f"{name}, p95 ms", times.p95_ms, "<=", bar_ms)
            say("at once")
            times, waiting = at_once(
                prompt_of(machine, questions), machine, options.at_once
            )
            row(f"up: {options.at_once} prompts, {WORKERS} at once", times)
            report.figure("calls that waited in the spool", waiting)
        absent = Machine(home, room / "absent.sock", wait_s=None)
        say("down")
        times = row(
            "down: prompt", measured(prompt_of(absent, questions), options.runs)
        )
        report.bar("down: prompt, p95 ms", times.p95_ms, "<=", DOWN_BAR_MS)
        say("hanging")
        with bad_daemon(absent.socket, hang):
            times = row(
                "hanging: prompt",
                measured(prompt_of(absent, questions), options.runs // 4),
            )
        report.bar("hanging: prompt, p95 ms", times.p95_ms, "<=", HANGING_BAR_MS)
    report.table(
        "hooks, each in a process of its own", ["call", "p50 ms", "p95 ms"], rows
    )
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
