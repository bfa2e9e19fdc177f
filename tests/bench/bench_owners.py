"""What owners cost a daemon that serves many: memory, first requests, rounds of sleep.

    python tests/bench/bench_owners.py [--owners 500] [--noisy] [--audit] [--enroll] [--turns 5]

`--enroll` has `mnem owner invite` read `ENROLLED` owners from a file, and each of them exchange the code for
a token.

`--audit` asks two daemons in turns, one of which keeps the audit log.

`--noisy` asks one owner's questions while another one's row is locked, then while that one writes,
exports and reads events as much as it can, against the same questions in between; so many turns.

Without it, each owner has so many memories as `EACH` says. A memory is opened at its owner's first
request; the same request to one that is open is what that is held against. A round visits those who
have something to consolidate: at first all of them, then nobody.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from datetime import UTC, datetime, timedelta
from http.client import HTTPConnection, HTTPException
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.daemon import cpu_seconds, running
from bench.measure import say
from bench.report import Report
from support.engines import new_database

from mnemosyned import process_memory
from mnemosyned.assembly.build import open_memory
from mnemosyned.assembly.owners import OwnerMemories
from mnemosyned.assembly.stores import open_owned_stores
from mnemosyned.config.settings import Config, OwnersConfig
from mnemosyned.memory.consolidation import Trigger
from mnemosyned.memory.engine_ports import LOCAL_OWNER, OWN_SCOPES, Scope
from mnemosyned.storage.postgres.store import OwnedStores
from mnemosyned.verbs.memories import Recall, Remember, RememberMany

OWNERS = 500
ENROLLED = 200
EACH = 20
QUESTIONS = 100
QUESTION = "who agreed to step 3 at the mill?"
OPENED_BAR, OPEN_BAR_KB = 10.0, 200.0


def fill(stores: OwnedStores, memories: OwnerMemories, count: int) -> list[int]:
    """Give owners something to consolidate; their numbers."""
    began = datetime.now(UTC) - timedelta(days=3)
    numbers = []
    for place in range(count):
        owner = stores.owners.add(f"owner-{place}").number
        told = [
            Remember(
                content=f"Step {step} was agreed with Huber of house {place} at the mill.",
                session=f"matter-{step % 4}",
                created_at=began + timedelta(minutes=step),
            )
            for step in range(EACH)
        ]
        memories.visit(owner).service.call(RememberMany(told))
        numbers.append(owner)
    return numbers


def first_requests(report: Report, memories: OwnerMemories, owners: list[int]) -> None:
    """Ask each twice: of the first question a part is the opening."""
    process_memory.trim_heap()
    before = process_memory.resident_bytes()
    seconds: list[list[float]] = [[], []]
    for owner in owners:
        for times in seconds:
            started = time.perf_counter()
            memories.get(owner).service.call(Recall(QUESTION))
            times.append(time.perf_counter() - started)
    process_memory.trim_heap()
    grown = process_memory.resident_bytes() - before
    first, second = map(statistics.median, seconds)
    report.figure("recall of an owner not open, ms", first * 1_000)
    report.figure("recall of an owner that is open, ms", second * 1_000)
    report.bar("first recall / next recall", first / second, "<=", OPENED_BAR)
    each_kb = report.figure("memory of an open owner, kB", grown / len(owners) / 1_000)
    report.bar("memory of an open owner, kB", each_kb, "<=", OPEN_BAR_KB)


def rounds(report: Report, memories: OwnerMemories, owners: list[int]) -> None:
    """Put all to sleep, then look at all once more."""
    for name in ("with work", "with none"):
        started = time.perf_counter()
        memories.rounds.run(Trigger.SCHEDULE)
        taken = time.perf_counter() - started
        report.figure(
            f"round over {len(owners)} owners {name}, ms each",
            taken / len(owners) * 1e3,
        )
    left = sum(
        owner.memories - EACH
        for owner in memories.owners.owners()
        if owner.number != LOCAL_OWNER
    )
    asleep = sum(bool(owner.summaries) for owner in memories.owners.owners())
    report.bar("owners that slept", asleep, ">=", len(owners))
    report.bar("memories gone", -left, "<=", 0)


@contextmanager
def served(owners: int) -> Iterator[tuple[OwnedStores, OwnerMemories]]:
    """The memories of many owners, as a daemon has them, but for the schedule."""
    config = Config(
        auto_sleep=False, database=new_database(), owners=OwnersConfig(open_max=owners)
    )
    with open_memory(config) as local, open_owned_stores(config.location) as stores:
        memories = OwnerMemories(stores, local.shared)
        memories.rounds.start()
        try:
            yield stores, memories
        finally:
            memories.rounds.stop()


def ask(port: int, token: str, method: str, path: str, body: bytes = b"") -> int:
    """Send one request on a connection of its own, and read the answer to its end; its status."""
    connection = HTTPConnection("127.0.0.1", port, timeout=120)
    try:
        headers = {"Authorization": f"Bearer {token}"}
        connection.request(method, path, body, headers)
        response = connection.getresponse()
        while response.read(1 << 16):
            pass
        return response.status
    finally:
        connection.close()


def make_noise(
    port: int, token: str, *, batch: int, writers: int, streams: int
) -> None:
    """Write batches from many clients until this process is ended; with streams, also export."""
    lines = [
        {"content": f"bulk {line} lorem ipsum dolor sit amet {line * 7}"}
        for line in range(batch)
    ]
    body = json.dumps({"memories": lines}).encode()

    def write() -> None:
        while True:
            with suppress(OSError, HTTPException):
                ask(port, token, "POST", "/v1/remember_many", body)

    def read(path: str) -> None:
        while True:
            with suppress(OSError, HTTPException):
                ask(port, token, "GET", path)

    threads = [threading.Thread(target=write, daemon=True) for _ in range(writers)]
    paths = ["/v1/events"] * streams + ["/v1/export"] * bool(streams)
    threads += [
        threading.Thread(target=read, args=(path,), daemon=True) for path in paths
    ]
    for thread in threads:
        thread.start()
    print("noise", flush=True)  # whoever started it waits for this line
    threads[0].join()


@contextmanager
def noise(
    port: int, token: str, *, batch: int, writers: int, streams: int = 0
) -> Iterator[subprocess.Popen[bytes]]:
    """One owner's clients in a process of their own, while the block runs."""
    words = [str(each) for each in (port, token, batch, writers, streams)]
    process = subprocess.Popen(
        [sys.executable, __file__, "--noise", *words], stdout=subprocess.PIPE
    )
    assert process.stdout
    process.stdout.readline()
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def questions(port: int, token: str) -> list[float]:
    """Seconds that each of an owner's questions took."""
    body = json.dumps({"query": "plum"}).encode()
    times = []
    for _ in range(QUESTIONS):
        started = time.perf_counter()
        assert ask(port, token, "POST", "/v1/recall", body) == 200
        times.append(time.perf_counter() - started)
        time.sleep(0.03)
    return times


LOADS = {
    "14 locked writes": {"batch": 1, "writers": 14},
    "a loud owner": {"batch": 1_000, "writers": 16, "streams": 7},
}
"""What another owner does: writes that wait for its locked row; or batches, with live events and an
export, of which an owner has eight at once."""
BEGIN_S, END_S = 2.0, 8.0
"""Until a load is under way; and, stopped, until the daemon has answered what waits."""


def neighbors(turns: int) -> dict[str, tuple[list[float], list[float]]]:
    """Seconds of an owner's questions, alone and beside another's load, by load.

    Both are measured in turn, as other work of the machine comes and goes.
    """
    import psycopg  # noqa: PLC0415 the other mode has it loaded by the store

    dsn = new_database()
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with open_owned_stores(Config(database=dsn).location) as stores:
        numbers = {name: stores.owners.add(name).number for name in ("anna", "bert")}
        anna, bert = (
            stores.owners.issue(name, "bench", tuple(Scope)).secret for name in numbers
        )
    env = {
        "MNEMOSYNE_LISTEN": f"127.0.0.1:{port}",
        "MNEMOSYNE_OWNERS_SERVE": "true",
        "MNEMOSYNE_DATABASE": dsn,
        "MNEMOSYNE_OWNERS_WRITES_PER_MINUTE": "null",
        "MNEMOSYNE_OWNERS_MEMORIES_MAX": "null",
    }
    times: dict[str, tuple[list[float], list[float]]] = {}
    with running(dsn, env) as daemon, psycopg.connect(dsn) as other:
        for number in range(20):
            body = json.dumps({"content": f"bert's note {number} plum"}).encode()
            assert ask(port, bert, "POST", "/v1/remember", body) == 200
        questions(port, bert)
        other.execute(
            "SELECT 1 FROM owner WHERE owner = %s FOR UPDATE", [numbers["anna"]]
        )
        for name, load in LOADS.items():
            alone, beside = times[name] = [], []
            for _ in range(turns):
                alone += questions(port, bert)
                with noise(port, anna, **load):
                    time.sleep(BEGIN_S)
                    beside += questions(port, bert)
                time.sleep(END_S)
            other.rollback()  # for the load that comes next
        del daemon
    return times


def report_neighbors(report: Report, turns: int) -> None:
    """Measure so many times each, and hold the questions beside a load to those alone."""
    measured = neighbors(turns)
    place = int(0.95 * QUESTIONS * turns)
    for name, (alone, beside) in measured.items():
        alone.sort()
        beside.sort()
        p95s = [times[place] * 1_000 for times in (alone, beside)]
        report.figure(f"p95 of a recall before {name}, ms", p95s[0])
        report.figure(f"p95 of a recall beside {name}, ms", p95s[1])
        report.bar(f"p95 beside {name} / alone", p95s[1] / p95s[0], "<=", 2.0)
        middle = QUESTIONS * turns // 2
        report.figure(f"median beside {name} / alone", beside[middle] / alone[middle])
        report.figure(f"longest before {name}, ms", alone[-1] * 1_000)
        report.bar(f"longest beside {name}, ms", beside[-1] * 1_000, "<=", 200.0)
    report.figure("load of the machine", os.getloadavg()[0])


AUDITED_ROUNDS, AUDITED_EACH = 60, 20


def report_audit(report: Report) -> None:
    """Ask two daemons in turns, one of which keeps the audit log in table and file."""
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        asked: dict[str, tuple[int, str, int]] = {}
        for name in ("without", "with"):
            dsn = new_database()
            with socket.create_server(("127.0.0.1", 0)) as free:
                port = free.getsockname()[1]
            with open_owned_stores(Config(database=dsn).location) as stores:
                stores.owners.add("anna")
                token = stores.owners.issue("anna", "bench", OWN_SCOPES).secret
            env = {
                "MNEMOSYNE_LISTEN": f"127.0.0.1:{port}",
                "MNEMOSYNE_OWNERS_SERVE": "true",
                "MNEMOSYNE_DATABASE": dsn,
                "MNEMOSYNE_AUDIT_TABLE": str(name == "with").lower(),
                "MNEMOSYNE_AUDIT_FILE": f"{folder}/audit.jsonl",
                "MNEMOSYNE_EMBEDDING_ENCODER": "none",
            }
            daemon = stack.enter_context(running(dsn, env))
            asked[name] = port, token, daemon.pid
        for verb, bar in (("remember", 1.05), ("recall", 1.05)):
            cpu: dict[str, list[float]] = {"without": [], "with": []}
            times: dict[str, list[float]] = {"without": [], "with": []}
            for turn in range(AUDITED_ROUNDS):
                for name in sorted(asked, reverse=turn % 2 == 0):
                    port, token, pid = asked[name]
                    before = cpu_seconds(pid)
                    for number in range(AUDITED_EACH):
                        line = f"matter{number} of turn {turn}: Huber came to the mill"
                        fields = {"content": line}
                        if verb == "recall":
                            fields = {"query": f"when was matter{number}?"}
                        body = json.dumps(fields).encode()
                        started = time.perf_counter()
                        assert ask(port, token, "POST", f"/v1/{verb}", body) == 200
                        times[name].append(time.perf_counter() - started)
                    time.sleep(0.2)  # the log is written after the answers
                    cpu[name].append((cpu_seconds(pid) - before) / AUDITED_EACH)
            for name in asked:
                each_ms = statistics.median(times[name]) * 1_000
                report.figure(f"{verb} {name} the audit log, ms: median", each_ms)
            for what, seconds, most in (
                ("processor time", cpu, 1.10),
                ("median time", times, bar),
            ):
                # By pairs of rounds, as this machine's other work comes and goes.
                each = len(seconds["with"]) // AUDITED_ROUNDS
                ratios = [
                    statistics.median(seconds["with"][place : place + each])
                    / statistics.median(seconds["without"][place : place + each])
                    for place in range(0, len(seconds["with"]), each)
                ]
                ratio = statistics.median(ratios)
                report.bar(f"{verb}: {what} with / without", ratio, "<=", most)


def enroll(report: Report) -> None:
    """Invite many owners by one command, from an empty database on; then log each of them in."""
    dsn = new_database()
    with tempfile.NamedTemporaryFile("w", suffix=".csv") as people:
        lines = [f"person{number},read\n" for number in range(ENROLLED)]
        people.write("".join(["name,scopes\n", *lines]))
        people.flush()
        command = "from mnemosyned.cli.entry import main; main()"
        words = ["owner", "invite", "--csv", people.name, "--json"]
        started = time.perf_counter()
        done = subprocess.run(
            [sys.executable, "-c", command, *words],
            env=os.environ | {"MNEMOSYNE_DATABASE": dsn},
            stdout=subprocess.PIPE,
            check=True,
        )
        taken = time.perf_counter() - started
    report.bar(f"{ENROLLED} owners invited by a command, s", taken, "<=", 10.0)
    codes = [each["code"] for each in json.loads(done.stdout)]
    with open_owned_stores(Config(database=dsn).location) as stores:
        started = time.perf_counter()
        tokens = [stores.owners.redeem(code, "laptop") for code in codes]
        taken = time.perf_counter() - started
    report.figure("login with a code, ms each", taken / ENROLLED * 1_000)
    report.bar("owners enrolled", len(list(filter(None, tokens))), ">=", ENROLLED)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--owners", type=int, default=OWNERS)
    parser.add_argument("--noisy", action="store_true")
    parser.add_argument("--enroll", action="store_true")
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--noise", nargs=5, help=argparse.SUPPRESS)
    parser.add_argument("--audit", action="store_true")
    options = parser.parse_args()
    if options.audit:
        report = Report("bench-owners-audit")
        report_audit(report)
        return report.finish()
    if options.noise:
        port, token, batch, writers, streams = options.noise
        make_noise(
            int(port),
            token,
            batch=int(batch),
            writers=int(writers),
            streams=int(streams),
        )
        return 0
    if options.enroll:
        report = Report("bench-owners-enroll")
        enroll(report)
        return report.finish()
    if options.noisy:
        report = Report("bench-owners-noisy")
        report_neighbors(report, options.turns)
        return report.finish()
    count = options.owners
    report = Report("bench-owners")
    with served(count) as (stores, memories):
        say(f"filling {count} owners")
        owners = fill(stores, memories, count)
        say("asking")
        first_requests(report, memories, owners)
        say("sleeping")
        rounds(report, memories, owners)
    return report.finish()


if __name__ == "__main__":
    raise SystemExit(main())
