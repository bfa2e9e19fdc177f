"""Everything exported and restored, row by row; and a large transcript imported through kills."""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.corpus import Corpus
from bench.daemon import BIN, Daemon, embedded, running
from bench.lifebench import life_records
from bench.measure import say
from bench.report import Report
from support.compare_databases import count_rows, differences

from mnemosyned import Client, Memory
from mnemosyned.memory.values import Tier
from mnemosyned.verbs.memories import Remember

MEMORIES = 100_000
TRANSCRIPT_MB = 1_000
KILLS = 10
QUESTIONS = 40
BATCH = 1_000
POLL_S = 0.02
SPAN = timedelta(days=120)
CLIENT_MB_MAX = 100.0
FLAT_MAX = 1.25
"""How much more memory the whole file may take than its first tenth."""


@dataclass(frozen=True, slots=True)
class Run:
    """A run of the shell client."""

    code: int
    seconds: float
    peak_mb: float
    output: str


def run_mnem(
    daemon: Daemon,
    home: Path,
    *words: str,
    killed_when: Callable[[], bool] = lambda: False,
) -> Run:
    """Run the shell client to its end, or until it is killed."""
    command = [str(BIN / "mnem"), "--socket", str(daemon.socket), *words]
    env = {**os.environ, "HOME": str(home), "XDG_STATE_HOME": str(home)}
    started = time.perf_counter()
    peak = 0.0
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(command, env=env, stdout=output, stderr=output)
        while process.poll() is None:
            with suppress(FileNotFoundError, ProcessLookupError, StopIteration):
                peak = max(peak, peak_mb(process.pid))
            if killed_when():
                process.send_signal(signal.SIGKILL)
            time.sleep(POLL_S)
        seconds = time.perf_counter() - started
        output.seek(0)
        text = output.read().decode("utf-8", "replace")
    return Run(process.returncode, seconds, peak, text)


def peak_mb(pid: int) -> float:
    """Return the most memory that a process ever held, in megabytes."""
    status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    line = next(line for line in status.splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) / 1_000


# ---------------------------------------------------------------- round trip


def mixed(count: int, life: Path | None) -> Iterator[Remember]:
    """Yield so many memories: a person's records, if there are some, and made-up ones."""
    newest = datetime.now(UTC) - timedelta(days=8)
    records = life_records(life) if life else []
    for record in records:
        yield Remember(
            record.content[:60_000],
            session=f"life-{record.created_at:%Y-%m-%d}",
            source=record.source,
            created_at=record.created_at,
        )
    corpus = Corpus(max(0, count - len(records)), newest=newest, span=SPAN)
    for number, entry in enumerate(corpus):
        yield Remember(
            entry.content,
            session=entry.session,
            source=entry.source,
            role=entry.role,
            created_at=entry.created_at,
            importance=0.1 * (number % 10),
            pinned=number % 997 == 0,
            tags=["tenth"] if number % 10 == 0 else [],
            metadata={"number": number} if number % 7 == 0 else {},
        )


def fill(database: Path, count: int, life: Path | None) -> None:
    """Fill a database, with sleeps, corrections, learnings and forgetting in between."""
    with embedded(database) as memory:
        memories = mixed(count, life)
        for number in range(4):  # sleeps in between, as in a life
            share = islice(memories, count // 4 if number < 3 else None)
            while batch := list(islice(share, BATCH)):
                memory.remember_many(batch)
            say(f"sleep {number + 1} of 4")
            memory.sleep()
        change(memory)


def change(memory: Memory) -> None:
    """Supersede, learn, forget, prune, restore and remember some more."""
    for number in range(50):
        memory.remember(
            f"The code of gate {number} is {1000 + number}", id=f"g{number}"
        )
        memory.remember(
            f"The code of gate {number} is {2000 + number}",
            id=f"h{number}",
            supersedes=f"g{number}",
        )
        memory.remember(f"I prefer tea of kind {number}.", role="user", source="codex")
    memory.learn("Ask before pushing", source="codex")
    archived = memory.list(tier=Tier.ARCHIVE, limit=5).memories
    memory.restore(archived[0].id)
    memory.forget(id=archived[1].id)
    memory.prune(
        characters_max=int(memory.status().tiers[Tier.ARCHIVE].characters * 0.9)
    )


def questions(count: int) -> list[str]:
    newest = datetime.now(UTC) - timedelta(days=8)
    by_kind = Corpus(count, newest=newest, span=SPAN).questions(QUESTIONS // 4)
    return [question.text for kind in by_kind.values() for question in kind]


def answers(daemon: Daemon, asked: list[str]) -> list[object]:
    with daemon.client() as client:
        return [[(hit.id, hit.score) for hit in client.recall(text)] for text in asked]


def round_trip(report: Report, room: Path, count: int, life: Path | None) -> None:
    """Export all, import it into an empty database, and compare every row."""
    first, second = room / "first.db", room / "second.db"
    file = room / "memory.jsonl"
    say(f"remembering {count:,}")
    fill(first, count, life)
    asked = questions(count)
    with running(first) as daemon:
        before = answers(daemon, asked)
        say("exporting")
        run = run_mnem(daemon, room, "export", str(file))
        assert run.code == 0, run.output
        report.figure("export/records_per_s", _lines(file) / run.seconds)
        report.figure("export/mb_per_s", file.stat().st_size / 1e6 / run.seconds)
        report.figure("export/client_peak_mb", run.peak_mb)
        report.figure("export/daemon_peak_mb", peak_mb(daemon.pid))
        days = run_mnem(daemon, room, "export", str(room / "days"), "--format=markdown")
        assert days.code == 0, days.output
        report.figure("export/markdown_s", days.seconds)
        report.figure("export/markdown_client_peak_mb", days.peak_mb)
    with running(second) as daemon:
        say("importing")
        run = run_mnem(daemon, room, "import", str(file))
        assert run.code == 0, run.output
        report.figure("restore/records_per_s", _lines(file) / run.seconds)
        report.figure("restore/client_peak_mb", run.peak_mb)
        report.figure("restore/daemon_peak_mb", peak_mb(daemon.pid))
        after = answers(daemon, asked)
    say("comparing")
    different = differences(first, second)
    for line in different:
        say(line[:300])
    counts = count_rows(first)
    report.table(
        "Rows compared", ["table", "rows"], [[k, n] for k, n in counts.items() if n]
    )
    report.bar("rows and index entries that differ", len(different), "<=", 0)
    changed = sum(a != b for a, b in zip(before, after, strict=True))
    report.bar(f"of {len(asked)} questions, answers that differ", changed, "<=", 0)
    report.bar("client's peak memory, MB", run.peak_mb, "<=", CLIENT_MB_MAX)


def _lines(file: Path) -> int:
    with file.open("rb") as opened:
        return sum(1 for _ in opened)


# ---------------------------------------------------------------- transcript


def write_transcript(file: Path, megabytes: float) -> int:
    """Write a transcript of Claude Code: questions, answers, results of tools; the messages."""
    file.parent.mkdir(parents=True)
    rng = random.Random(4)
    words = [
        f"{word}{n}" for n in range(300) for word in ("cart", "build", "retry", "log")
    ]
    begun = datetime.now(UTC) - timedelta(days=200)
    size = number = 0
    with file.open("wb") as opened:
        while size < megabytes * 1e6:
            number += 1
            moment = (begun + timedelta(seconds=20 * number)).isoformat()
            for line in _turn(number, moment, words, rng):
                size += opened.write(json.dumps(line).encode() + b"\n")
    return 2 * number


def _turn(
    number: int, moment: str, words: list[str], rng: random.Random
) -> Iterator[dict[str, object]]:
    common = {"sessionId": "s1", "cwd": "/w/shop", "timestamp": moment, "version": "2"}
    said = " ".join(rng.choices(words, k=40))
    question = {"role": "user", "content": f"Question {number}: why does {said} fail?"}
    yield {**common, "type": "user", "uuid": f"q{number}", "message": question}
    answer = {
        "role": "assistant",
        "content": [{"type": "text", "text": f"Answer {number}: because of {said}."}],
    }
    yield {**common, "type": "assistant", "uuid": f"a{number}", "message": answer}
    result = {
        "role": "user",
        "content": [{"type": "tool_result", "content": "line of output\n" * 400}],
    }
    yield {
        **common,
        "type": "user",
        "uuid": f"t{number}",
        "message": result,
        "toolUseResult": {"stdout": "…"},
    }


def transcript(report: Report, room: Path, megabytes: float, kills: int) -> None:
    """Import a transcript, killed at random moments, and count what is stored."""
    folder = room / "home" / ".claude" / "projects" / "-w-shop"
    file = folder / "large.jsonl"
    say(f"writing a transcript of {megabytes:,.0f} MB")
    messages = write_transcript(file, megabytes)
    small = room / "small" / ".claude" / "projects" / "-w-shop" / "small.jsonl"
    write_transcript(small, megabytes / 10)
    with running(room / "tenth.db") as daemon:
        tenth = run_mnem(daemon, room, "import", str(small))
        assert tenth.code == 0, tenth.output
        tenth_daemon_mb = peak_mb(daemon.pid)
    rng = random.Random()
    database = room / "transcript.db"
    peaks: list[float] = []
    seconds = 0.0
    with running(database) as daemon:
        for number, goal in enumerate(sorted(rng.sample(range(messages), kills)), 1):
            with daemon.client() as client:
                run = run_mnem(
                    daemon,
                    room,
                    "import",
                    str(file),
                    killed_when=lambda goal=goal: _stored(client) >= goal,  # type: ignore[misc]
                )
                say(
                    f"killed {number} times, {_stored(client):,} of {messages:,} stored"
                )
            seconds += run.seconds
            peaks.append(run.peak_mb)
        run = run_mnem(daemon, room, "import", str(file))
        assert run.code == 0, run.output
        peaks.append(run.peak_mb)
        seconds += run.seconds
        daemon_mb = peak_mb(daemon.pid)
    counts = count_rows(database)
    stored = counts["working_memory"] + counts["archive"]
    report.figure("transcript/mb", file.stat().st_size / 1e6)
    report.figure("transcript/messages", messages)
    report.figure("transcript/mb_per_s", file.stat().st_size / 1e6 / seconds)
    report.figure("transcript/messages_per_s", messages / seconds)
    report.figure("transcript/client_peak_mb", max(peaks))
    report.figure("transcript/daemon_peak_mb", daemon_mb)
    report.figure("transcript/tenth_client_peak_mb", tenth.peak_mb)
    report.figure("transcript/tenth_daemon_peak_mb", tenth_daemon_mb)
    report.bar(
        f"doubles or losses after {kills} kills", abs(stored - messages), "<=", 0
    )
    report.bar("client's peak memory, MB", max(peaks), "<=", CLIENT_MB_MAX)
    flat = max(peaks) / tenth.peak_mb
    report.bar("client's memory, all of the file / a tenth", flat, "<=", FLAT_MAX)


def _stored(client: Client) -> int:
    tiers = client.status().tiers
    return tiers[Tier.WORKING].count + tiers[Tier.ARCHIVE].count


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--memories", type=int, default=MEMORIES)
    parser.add_argument("--megabytes", type=float, default=TRANSCRIPT_MB)
    parser.add_argument("--kills", type=int, default=KILLS)
    parser.add_argument("--data", type=Path, help="a folder of LifeBench")
    chosen = parser.parse_args()
    report = Report("bench-exchange")
    with tempfile.TemporaryDirectory(prefix="exchange-") as folder:
        round_trip(report, Path(folder), chosen.memories, chosen.data)
        shutil.rmtree(Path(folder, "days"))
        transcript(report, Path(folder), chosen.megabytes, chosen.kills)
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
