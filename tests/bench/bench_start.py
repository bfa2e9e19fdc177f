"""How long the daemon takes to be ready, a shell call to answer, and the socket to recall."""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.corpus import Question, fresh
from bench.daemon import BIN, Daemon, embedded, running
from bench.measure import (
    Latency,
    Memories,
    asking,
    fill,
    latency,
    recall_each,
    say,
    timed,
)
from bench.report import Report

START_SIZE, RECALL_SIZE = 100_000, 10_000
STARTS, SHELL_CALLS, QUESTIONS = 5, 20, 100
READY_BAR_S = 0.5


def fill_new(database: Path, count: int) -> None:
    say(f"remembering {count:,}")
    with embedded(database) as memory:
        fill(memory, fresh(count))


def start_times(database: Path) -> tuple[float, float]:
    """From spawn to READY=1, the median of several starts: seconds, and CPU seconds."""
    seconds, cpu = [], []
    for _ in range(STARTS):
        with running(database) as daemon:
            seconds.append(daemon.ready_s)
            cpu.append(daemon.ready_cpu_s)
    return statistics.median(seconds), statistics.median(cpu)


def shell_times(daemon: Daemon, questions: Sequence[Question]) -> Latency:
    """A recall from the shell, each in a process of its own."""
    command = [str(BIN / "mnem"), "--socket", str(daemon.socket), "recall"]
    return latency(
        [timed(shell, [*command, question.text])[0] for question in questions]
    )


def shell(command: Sequence[str]) -> None:
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def ask_each(memories: Memories, questions: Sequence[Question]) -> Latency:
    """How long the answers take; the first question is asked once before it counts."""
    recall = asking(memories)
    recall(questions[0].text)
    return latency(recall_each(recall, questions))


def recall_figures(
    report: Report, database: Path, questions: Mapping[str, Sequence[Question]]
) -> None:
    ways: dict[str, dict[str, Latency]] = {}
    with running(database) as daemon, daemon.client() as client:
        ways["socket"] = {k: ask_each(client, q) for k, q in questions.items()}
    with embedded(database) as memory:
        ways["embedded"] = {k: ask_each(memory, q) for k, q in questions.items()}
    rows: list[list[object]] = []
    for way, by_kind in ways.items():
        for kind, taken in by_kind.items():
            report.figure(f"recall/{way}/{kind}/p50_ms", taken.p50_ms)
            report.figure(f"recall/{way}/{kind}/p95_ms", taken.p95_ms)
            rows.append([way, kind, taken.p50_ms, taken.p95_ms])
    title = f"Recall at {RECALL_SIZE:,}, milliseconds"
    report.table(title, ["way", "class", "p50", "p95"], rows)


def main() -> int:
    report = Report("bench-start")
    with tempfile.TemporaryDirectory(prefix="start-") as room:
        large, small = Path(room, "large.db"), Path(room, "small.db")
        fill_new(large, START_SIZE)
        say("starting")
        ready_s, cpu_s = start_times(large)
        report.figure("ready_s", ready_s)
        report.figure("ready_cpu_s", cpu_s)
        with running(large) as daemon:
            say("recalling from the shell")
            asked = fresh(START_SIZE).questions(SHELL_CALLS)["person+code"]
            taken = shell_times(daemon, asked)
        report.figure("shell_recall_p50_ms", taken.p50_ms)
        report.figure("shell_recall_p95_ms", taken.p95_ms)
        fill_new(small, RECALL_SIZE)
        say("recalling")
        recall_figures(report, small, fresh(RECALL_SIZE).questions(QUESTIONS))
    report.bar(f"start to READY at {START_SIZE:,}, s", ready_s, "<", READY_BAR_S)
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
