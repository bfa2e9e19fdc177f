"""What a daemon for a team costs: questions of many owners, rounds and triggers of thousands.

    python tests/bench/bench_team.py recall --data .../locomo10.json [--owners 200] [--processes 1]
    python tests/bench/bench_team.py rounds [--owners 5000]

`recall`: each owner has the first turns of a LoCoMo conversation, consolidated, and already read for
endings and learnings. 32 clients ask its questions of owners at random, each on a connection of its
own that stays open, on one thread of this process. Beside the rate and the latency stands what each
side computed for a question: that hardly changes with whatever else the machine does. `--database`
names a database that `fill` has filled.

`rounds`: owners with 100 memories each, of whom 100 have some that are due. What one round, one look
at the triggers with 500 open, and each open memory takes.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import select
import socket
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import msgspec
import psycopg
from bench.daemon import cpu_seconds, running
from bench.locomo import Conversation
from bench.measure import latency, say
from bench.report import Report
from support.engines import new_database
from support.processes import child_pids

from mnemosyned import process_memory
from mnemosyned.assembly.build import open_memory
from mnemosyned.assembly.owners import OwnerMemories
from mnemosyned.assembly.stores import open_owned_stores
from mnemosyned.config.settings import Config, EmbeddingConfig, OwnersConfig
from mnemosyned.memory.consolidation import Trigger
from mnemosyned.memory.engine_ports import Scope
from mnemosyned.storage.postgres.store import OwnedStores
from mnemosyned.verbs.memories import Recall, Remember, RememberMany
from mnemosyned.verbs.upkeep import Status

CLIENTS = 32
WARM_S, MEASURED_S = 6.0, 15.0
ROUNDS = 3
TURNS = 480
VECTORS_MAX_S = 600.0
RATE_BAR, P95_BAR_MS = 300.0, 250.0
DUE, OPEN = 100, 500
EACH = 100
ROUND_BAR_S, TICK_BAR_S, OPEN_BAR_KB = 2.0, 0.2, 30.0
MARK_READ = (
    "DELETE FROM ending_progress",
    "INSERT INTO ending_progress (owner, position) SELECT owner, last_memory FROM owner",
    "DELETE FROM learned",
    "INSERT INTO learned (owner, position) SELECT owner, last_memory FROM owner",
)
BARE = "SELECT seq, left(content, 120) FROM memory WHERE owner = %s AND seq = ANY(%s)"


@contextmanager
def served(dsn: str) -> Iterator[tuple[OwnedStores, OwnerMemories]]:
    """The memories of many owners, as a daemon has them, but for the schedule."""
    config = Config(
        database=dsn,
        embedding=EmbeddingConfig(encoder="none"),
        owners=OwnersConfig(open_max=OPEN),
    )
    with open_memory(config) as local, open_owned_stores(config.location) as stores:
        memories = OwnerMemories(stores, local.shared)
        try:
            yield stores, memories
        finally:
            memories.rounds.stop()


# --------------------------------------------------------------------- recall


def talks(data: Path) -> list[Conversation]:
    return msgspec.json.decode(data.read_bytes(), type=list[Conversation])


def fill(dsn: str, conversations: Sequence[Conversation], count: int) -> None:
    """Give owners a conversation each, and consolidate everything."""
    told = [list(each.turns())[:TURNS] for each in conversations]
    with served(dsn) as (stores, memories):
        for place in range(count):
            owner = stores.owners.add(f"owner-{place}").number
            turns = told[place % len(told)]
            memories.visit(owner).service.call(RememberMany(turns))
        say("consolidating")
        memories.rounds.run(Trigger.SCHEDULE)


def mark_read(dsn: str) -> None:
    """Let all memories count as read for endings and learnings.

    A daemon reads each new memory once, before the next answer. Of memories that were all stored at
    once, every answer would read some, which took a question half as long again.
    """
    with psycopg.connect(dsn, autocommit=True) as connection:
        for statement in MARK_READ:
            connection.execute(statement)


def make_tokens(dsn: str) -> list[str]:
    """A token for each owner, in the order of their names' numbers."""
    with open_owned_stores(Config(database=dsn).location) as stores:
        names = [
            owner.name
            for owner in stores.owners.owners()
            if owner.name.startswith("owner-")
        ]
        names.sort(key=lambda name: int(name.removeprefix("owner-")))
        return [
            stores.owners.issue(name, "bench", tuple(Scope)).secret for name in names
        ]


@dataclass(slots=True)
class Asking:
    """A client: its connection, what has come of an answer, and when it asked."""

    sock: socket.socket
    began: float = 0.0
    came: bytearray = field(default_factory=bytearray)


class Crowd:
    """Clients on one thread, each of which asks again as soon as it has its answer."""

    def __init__(
        self, port: int, count: int, next_request: Callable[[], bytes]
    ) -> None:
        self._next_request = next_request
        self._epoll = select.epoll()
        self._clients: dict[int, Asking] = {}
        for _ in range(count):
            sock = socket.create_connection(("127.0.0.1", port))
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._clients[sock.fileno()] = Asking(sock)
            self._epoll.register(sock.fileno(), select.EPOLLIN)
        for client in self._clients.values():
            self._ask(client)

    def run(self, seconds: float) -> list[float]:
        """Go on for so long; the seconds of each answer."""
        ends, times = time.perf_counter() + seconds, []
        while (now := time.perf_counter()) < ends:
            for fd, _ in self._epoll.poll(ends - now):
                client = self._clients[fd]
                client.came += client.sock.recv(1 << 18)
                if is_whole(client.came):
                    times.append(time.perf_counter() - client.began)
                    self._ask(client)
        return times

    def close(self) -> None:
        for client in self._clients.values():
            client.sock.close()
        self._epoll.close()

    def _ask(self, client: Asking) -> None:
        client.came.clear()
        client.began = time.perf_counter()
        client.sock.sendall(self._next_request())


def is_whole(came: bytearray) -> bool:
    """Whether an answer has come completely. Raises `AssertionError` for one that is no 200."""
    end = came.find(b"\r\n\r\n")
    if end < 0:
        return False
    head = bytes(came[:end]).lower()
    assert b" 200 " in head[:20], bytes(came)
    length = int(head.partition(b"content-length:")[2].split(b"\r\n")[0])
    return len(came) >= end + 4 + length


def request_bytes(token: str, question: str) -> bytes:
    body = json.dumps({"query": question}).encode()
    return (
        f"POST /v1/recall HTTP/1.1\r\nHost: 127.0.0.1:0\r\nAuthorization: Bearer {token}\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    ).encode() + body


def computed_s(parent: int) -> float:
    """What a process has computed with those that it started, also those that have ended."""
    fields = Path(f"/proc/{parent}/stat").read_text(encoding="utf-8")
    ended = sum(map(int, fields.rpartition(")")[2].split()[13:15]))
    alive = sum(map(cpu_seconds, [parent, *child_pids(parent)]))
    return alive + ended / os.sysconf("SC_CLK_TCK")


def server_pid(dsn: str) -> int:
    """The process of the server that started the others."""
    with psycopg.connect(dsn) as connection:
        row = connection.execute("SELECT pg_backend_pid()").fetchone()
        assert row
        stat = Path(f"/proc/{row[0]}/stat").read_text(encoding="utf-8")
        return int(stat.rpartition(")")[2].split()[1])


def bare_rate(dsn: str) -> float:
    """So many statements that read forty memories by their key one connection carries out."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        (first,) = connection.execute("SELECT max(owner) FROM owner").fetchone() or (0,)
        ends, done = time.perf_counter() + 1.0, 0
        while time.perf_counter() < ends:
            connection.execute(BARE, [first, list(range(1, 400, 10))]).fetchall()
            done += 1
    return float(done)


def await_vectors(dsn: str) -> None:
    """Wait until the daemon has embedded every memory."""
    ends = time.monotonic() + VECTORS_MAX_S
    with psycopg.connect(dsn, autocommit=True) as connection:
        while time.monotonic() < ends:
            row = connection.execute(
                "SELECT (SELECT count(*) FROM memory) - (SELECT count(*) FROM embedding)"
            ).fetchone()
            if row and row[0] <= 0:
                return
            time.sleep(1)
    raise TimeoutError("not every memory was embedded")


def recall(report: Report, options: argparse.Namespace) -> None:
    """Ask as many questions as 32 clients can, in rounds."""
    conversations = talks(options.data)
    dsn: str = options.database or new_database()
    if not options.database:
        say(f"filling {options.owners} owners")
        fill(dsn, conversations, options.owners)
    mark_read(dsn)
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("VACUUM ANALYZE")
    tokens = make_tokens(dsn)
    questions = [[asked.text for asked in each.questions()] for each in conversations]
    chance = random.Random(7)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    env = {
        "MNEMOSYNE_LISTEN": f"127.0.0.1:{port}",
        "MNEMOSYNE_OWNERS_SERVE": "true",
        "MNEMOSYNE_EMBEDDING_ENCODER": "builtin",
    }
    if options.processes > 1:
        env["MNEMOSYNE_OWNERS_PROCESSES"] = str(options.processes)
    server = server_pid(dsn)

    def next_request() -> bytes:
        place = chance.randrange(len(tokens))
        asked = chance.choice(questions[place % len(questions)])
        request = request_bytes(tokens[place], asked)
        return request.replace(b"127.0.0.1:0", b"127.0.0.1:%d" % port, 1)

    with running(dsn, env) as daemon:
        await_vectors(dsn)
        crowd = Crowd(port, CLIENTS, next_request)
        crowd.run(WARM_S)
        times: list[float] = []
        rows: list[list[object]] = []
        spent = [0.0, 0.0]
        for _ in range(ROUNDS):
            before = computed_s(daemon.pid), computed_s(server)
            asked = crowd.run(MEASURED_S)
            after = computed_s(daemon.pid), computed_s(server)
            parts = [end - start for end, start in zip(after, before, strict=True)]
            spent = [own + part for own, part in zip(spent, parts, strict=True)]
            times += asked
            found = latency(asked)
            each_ms = [1_000 * part / len(asked) for part in parts]
            rows.append(
                [
                    len(asked) / MEASURED_S,
                    found.p50_ms,
                    found.p95_ms,
                    found.p99_ms,
                    *each_ms,
                    bare_rate(dsn),
                    os.getloadavg()[0],
                ]
            )
        crowd.close()
    report.table(
        f"{CLIENTS} clients, {len(tokens)} owners, {options.processes} processes",
        [
            "a second",
            "p50 ms",
            "p95 ms",
            "p99 ms",
            "daemon ms CPU",
            "server ms CPU",
            "bare statements a second",
            "load",
        ],
        rows,
    )
    found = latency(times)
    rate = report.figure("recalls a second", len(times) / MEASURED_S / ROUNDS)
    report.figure("p50 of a recall, ms", found.p50_ms)
    report.figure("p95 of a recall, ms", found.p95_ms)
    report.figure("daemon's CPU for a recall, ms", 1_000 * spent[0] / len(times))
    report.figure("server's CPU for a recall, ms", 1_000 * spent[1] / len(times))
    report.bar("recalls a second", rate, ">=", RATE_BAR)
    report.bar("p95 of a recall, ms", found.p95_ms, "<=", P95_BAR_MS)


# --------------------------------------------------------------------- rounds


def copy_owners(dsn: str, count: int) -> list[int]:
    """Fill one owner, and copy its rows for the others; the numbers of all.

    A hundred of them have memories old enough to be consolidated.
    """
    with served(dsn) as (stores, memories):
        seed = stores.owners.add("seed").number
        now = memories.visit(seed).service.sleeper.cycle.now()
        told = [
            Remember(
                content=f"On day {step} Berta fixed mill wheel {step} and paid {step * 3} euro.",
                session=f"s{step // 20}",
                created_at=now - timedelta(days=3 - step // 50, minutes=100 - step),
            )
            for step in range(EACH)
        ]
        memories.visit(seed).service.call(RememberMany(told))
        other = stores.owners.add("last").number
    first = other + 1
    numbers = list(range(first, first + count))
    with psycopg.connect(dsn, autocommit=True) as connection:
        row = connection.execute(
            "SELECT string_agg(quote_ident(column_name), ',') FROM information_schema.columns "
            "WHERE table_name = 'memory' AND is_generated = 'NEVER' AND column_name <> 'owner'"
        ).fetchone()
        assert row
        among = f"generate_series({first}, {numbers[-1]}) AS g"
        when = f"CASE WHEN g < {first + DUE} THEN created_at ELSE now() END"
        copied = re.sub(r"\bcreated_at\b", when, row[0])
        for statement in (
            (
                "INSERT INTO owner (owner, name, last_memory, working_count, working_characters) "
                "SELECT g, 'owner-' || g, last_memory, working_count, working_characters "
                f"FROM owner, {among} WHERE owner = {seed}"
            ),
            (
                f"INSERT INTO memory (owner, {row[0]}) "
                f"SELECT g, {copied} FROM memory, {among} WHERE owner = {seed}"
            ),
            (
                "INSERT INTO fresh (owner, seq, created_at) SELECT g, seq, "
                f"{when} "
                f"FROM fresh, {among} WHERE owner = {seed}"
            ),
            f"DELETE FROM fresh WHERE owner = {seed}",
            f"SELECT setval('owner_number', {numbers[-1] + 1})",
            "VACUUM ANALYZE",
        ):
            connection.execute(statement.encode())
    return numbers


def rounds(report: Report, options: argparse.Namespace) -> None:
    """One round, looks at the triggers, and the memory of those that are open."""
    dsn = new_database()
    say(f"making {options.owners} owners")
    numbers = copy_owners(dsn, options.owners)
    server = server_pid(dsn)
    with served(dsn) as (stores, memories):
        del stores
        memories.get(numbers[-1]).service.call(Recall("who fixed the mill wheel?"))
        memories.get(numbers[-1]).service.call(Status())
        process_memory.trim_heap()
        before = process_memory.resident_bytes()
        for owner in numbers[-OPEN - 1 : -1]:
            memories.get(owner).service.call(Status())
            memories.get(owner).service.call(Recall("who fixed the mill wheel?"))
        process_memory.trim_heap()
        each_kb = (process_memory.resident_bytes() - before) / OPEN / 1_000
        ticks = []
        for _ in range(6):
            began = time.process_time(), computed_s(server), time.perf_counter()
            memories.rounds.check_triggers()
            ended = time.process_time(), computed_s(server), time.perf_counter()
            ticks.append([end - start for end, start in zip(ended, began, strict=True)])
        began = time.process_time(), computed_s(server), time.perf_counter()
        memories.rounds.run(Trigger.SCHEDULE)
        ended = time.process_time(), computed_s(server), time.perf_counter()
    with psycopg.connect(dsn) as connection:
        row = connection.execute("SELECT count(DISTINCT owner) FROM placed").fetchone()
        assert row
    report.figure("memory of an open owner, kB", each_kb)
    names = ("daemon's CPU", "server's CPU", "time")
    for name, first, later in zip(names, ticks[0], ticks[-1], strict=True):
        report.figure(f"first look at the triggers, {name}, s", first)
        report.figure(f"further look at the triggers, {name}, s", later)
    taken = [end - start for end, start in zip(ended, began, strict=True)]
    for name, seconds in zip(names, taken, strict=True):
        report.figure(f"round of {DUE} due of {len(numbers)}, {name}, s", seconds)
    report.bar("owners that slept", row[0], ">=", DUE)
    report.bar(f"round of {DUE}, daemon's CPU, s", taken[0], "<=", ROUND_BAR_S)
    # The first one reads the new memories for endings, and one a minute saves figures of the day.
    usual = statistics.median(tick[0] for tick in ticks[1:])
    report.bar(f"triggers of {OPEN} open, daemon's CPU, s", usual, "<=", TICK_BAR_S)
    report.bar("memory of an open owner, kB", each_kb, "<=", OPEN_BAR_KB)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("part", choices=("recall", "rounds"))
    parser.add_argument("--data", type=Path)
    parser.add_argument("--owners", type=int)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--database", help="a database that `fill` has filled before")
    options = parser.parse_args()
    report = Report(f"bench-team-{options.part}")
    if options.part == "recall":
        options.owners = options.owners or 200
        recall(report, options)
    else:
        options.owners = options.owners or 5_000
        if (
            options.owners < DUE + OPEN
        ):  # those that are due would be open, and asleep before
            parser.error(f"--owners must be at least {DUE + OPEN}")
        rounds(report, options)
    return report.finish()


if __name__ == "__main__":
    raise SystemExit(main())
