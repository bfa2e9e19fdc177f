"""A thousand hooks at once, with a daemon that is up, hangs, and is killed half-way."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from itertools import count
from pathlib import Path

import pytest
from e2e.daemons import Daemon, eventually, spawned
from e2e.hook_programs import (
    Json,
    Machine,
    Ran,
    bad_daemon,
    hang,
    open_descriptors,
    prompt,
)
from e2e.programs import BIN, Process
from soak.sampler import sample
from support.agents import claude_line, write_lines

from mnemosyned.daemon.main import answers_health_check

pytestmark = [pytest.mark.fault, pytest.mark.alone]

CALLS = int(os.environ.get("HOOK_CALLS", "1000"))
WORKERS = 16
STARTS = 200
SETTLED_S = 120.0


@contextmanager
def running(machine: Machine) -> Iterator[Process]:
    """A daemon on the machine's socket that answers, killed in the end."""
    options = (f"--database={machine.home / 'memory.db'}", f"--socket={machine.socket}")
    log = machine.home / "daemon.log"
    with spawned(*options, home=machine.home, log=log) as process:
        eventually(lambda: answers_health_check(machine.socket), "the daemon answers")
        yield process


def payload_of(machine: Machine, number: int) -> Json:
    """A prompt in a tool without a transcript, or the end of a turn in one that has one."""
    fact = f"The fact of call {number} is {number * 7}."
    if number % 2:
        return prompt(fact, session=f"s{number}")
    folder = machine.home / ".claude" / "projects" / "-w-shop"
    path = write_lines(
        folder / f"s{number}.jsonl", [claude_line("user", fact, uuid=f"u{number}")]
    )
    fields = {
        "session_id": f"s{number}",
        "transcript_path": str(path),
        "cwd": "/w/shop",
    }
    return {**fields, "hook_event_name": "Stop"}


def kept(machine: Machine) -> Counter[str]:
    with closing(sqlite3.connect(machine.home / "memory.db")) as connection:
        rows = connection.execute(
            "SELECT content FROM working_memory UNION ALL SELECT content FROM archive"
        ).fetchall()
    return Counter(content for (content,) in rows)


def settle(machine: Machine) -> Counter[str]:
    """Call the hook until nothing waits, and return what is stored once nothing is added."""
    wanted = {f"The fact of call {number} is {number * 7}." for number in range(CALLS)}
    numbers = count()

    def is_settled() -> bool:
        machine.hook(prompt("go on", session=f"settle{next(numbers)}"))
        return not machine.waiting and wanted <= set(kept(machine))

    with suppress(AssertionError):
        eventually(is_settled, "every call is stored", timeout_s=SETTLED_S)
    assert sorted(wanted - set(kept(machine))) == []
    assert machine.waiting == []
    return Counter(
        {fact: times for fact, times in kept(machine).items() if fact in wanted}
    )


def check(runs: list[Ran]) -> None:
    """Each printed one object, said nothing else, and ended with 0."""
    assert all(isinstance(run.answer, dict) for run in runs)
    seconds = sorted(run.seconds for run in runs)
    print(
        f"{len(runs)} calls by {WORKERS} workers: p50 {seconds[len(runs) // 2] * 1000:.0f} ms, "
        f"p95 {seconds[int(len(runs) * 0.95)] * 1000:.0f} ms, max {seconds[-1] * 1000:.0f} ms; "
        f"{sum('systemMessage' in run.answer for run in runs)} warned"
    )


def call(machine: Machine, numbers: range) -> Iterator[Ran]:
    """Run a hook for each number, many at once, each with the usual time limit."""
    usual = replace(machine, wait_s=None)
    with ThreadPoolExecutor(WORKERS) as workers:
        yield from workers.map(lambda n: usual.hook(payload_of(machine, n)), numbers)


def test_a_thousand_at_once_are_each_stored_once(machine: Machine) -> None:
    with running(machine):
        check([*call(machine, range(CALLS))])
        assert set(settle(machine).values()) == {1}


def test_a_killed_daemon_loses_and_doubles_nothing(machine: Machine) -> None:
    """Up for a third of the calls, killed, down, hanging for some, and up again."""
    third = CALLS // 3
    runs = []
    with running(machine) as first:
        for number, ran in enumerate(call(machine, range(third))):
            runs.append(ran)
            if number == third // 2:
                first.kill()
    machine.socket.unlink(missing_ok=True)
    runs += call(machine, range(third, third + 50))
    with bad_daemon(machine.socket, hang):
        runs += call(machine, range(third + 50, third + 100))
    with running(machine):
        runs += call(machine, range(third + 100, CALLS))
        check(runs)
        assert set(settle(machine).values()) == {1}


def hooks_running() -> set[str]:
    """The ids of processes that are hooks of this installation."""
    name = str(BIN / "mnem-hook").encode()
    running = set()
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if name in (folder / "cmdline").read_bytes():
                running.add(folder.name)
    return running


def test_two_hundred_starts_and_kills_leave_nothing(daemon: Daemon) -> None:
    machine = Machine(daemon.home, daemon.socket)
    for number in range(20):
        machine.hook(prompt(f"Warm fact {number}", session=f"w{number}"))
    pid = daemon.process.pid
    before = hooks_running()
    descriptors, memory = open_descriptors(pid), sample(pid, 0).resident_mb
    for number in range(STARTS):
        process = subprocess.Popen(
            [BIN / "mnem-hook"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=machine.environment(),
        )
        with process:
            assert process.stdin
            if number % 2:
                process.stdin.write(b'{"hook_event_name": "Stop", "session_id": "k"')
                process.stdin.flush()
                process.send_signal(
                    signal.SIGKILL if number % 4 == 1 else signal.SIGTERM
                )
                process.wait(20)
            else:
                process.communicate(b'{"hook_event_name": "PreToolUse"}', 20)

    eventually(lambda: hooks_running() <= before, "every hook has ended")
    eventually(lambda: open_descriptors(pid) <= descriptors, "descriptors are closed")
    assert sample(pid, 0).resident_mb < memory * 1.1 + 2
    assert not list(machine.spool.glob(".tmp-*")) if machine.spool.is_dir() else True
