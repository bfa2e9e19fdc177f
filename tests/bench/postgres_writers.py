"""Writers in processes of their own: into the bare table, into stores, or to daemons."""

from __future__ import annotations

import multiprocessing
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import islice
from multiprocessing.connection import Connection
from typing import Any

import psycopg
from bench.corpus import Corpus
from bench.measure import as_request
from support.settings import settings_in_force

from mnemosyned import Client
from mnemosyned.errors import MnemosynedError
from mnemosyned.memory.ports import Draft
from mnemosyned.paths import shipped
from mnemosyned.service.intake import make_draft
from mnemosyned.storage.postgres.memories import INSERT_MEMORIES, values_by_column
from mnemosyned.storage.postgres.session import memory_values
from mnemosyned.storage.postgres.store import open_store

ANSWER_S = 120.0
MIGRATIONS = shipped("migrations") / "postgres"
NEWEST = timedelta(minutes=5)
CONTENT_BYTES_MAX = 1 << 20
CORPUS = 100_000
"""More than one writer takes."""

Write = Callable[[Sequence[Draft]], object]


@dataclass(frozen=True, slots=True)
class Writer:
    """What one process writes to."""

    kind: str
    """`bare`, `store` or `daemon`."""
    dsn: str = ""
    owner: int = 1
    served: Sequence[tuple[str, str]] = ()
    """URL and token of each owner at a daemon, asked in turn."""
    seed: int = 0


class BareTable:
    """The table of memories by itself: rows that are ready, each insert on disk when it returns."""

    def __init__(self, dsn: str, owner: int) -> None:
        self._owner = owner
        self._connection = psycopg.connect(dsn, autocommit=True, prepare_threshold=1)
        self._execute("INSERT INTO owner (owner, name) VALUES (%(owner)s, %(name)s) "
                      "ON CONFLICT DO NOTHING", name=f"bare-{owner}")  # fmt: skip
        newest = self._execute(
            "SELECT coalesce(max(seq), 0) FROM memory WHERE owner = %(owner)s"
        ).fetchone()
        self._last: int = newest[0] if newest else 0

    def rows(self, drafts: Sequence[Draft]) -> dict[str, list[Any]]:
        """What is inserted for drafts, index terms included."""
        first = self._last + 1
        self._last += len(drafts)
        values = [memory_values(draft.memory, self._owner) for draft in drafts]
        return {"seq": list(range(first, self._last + 1)), **values_by_column(values)}

    def insert(self, rows: dict[str, list[Any]]) -> None:
        """Insert ready rows in one statement."""
        self._execute(INSERT_MEMORIES, **rows)

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def _execute(self, sql: str, **values: object) -> psycopg.Cursor[Any]:
        return self._connection.execute(sql.encode(), {"owner": self._owner, **values})


class Drafts:
    """New memories, as the daemon drafts them; none comes twice."""

    def __init__(self, seed: int) -> None:
        limit = {"limits.content_bytes_max": CONTENT_BYTES_MAX}
        self._config = settings_in_force(limit).config
        newest = datetime.now(UTC) - NEWEST
        self._rest = iter(Corpus(CORPUS, newest=newest, seed=seed))

    def take(self, count: int) -> list[Draft]:
        """The next ones."""
        now = datetime.now(UTC)
        return [
            make_draft(as_request(entry), self._config, now=now)
            for entry in islice(self._rest, count)
        ]


class Writers:
    """Running writers, and the pipes to them."""

    def __init__(self, pipes: Sequence[Connection]) -> None:
        self._pipes = pipes
        self.errors = 0
        """Writes that were refused."""

    def write(self, each: int) -> float:
        """Have each write so many; memories a second from the first to the last."""
        for pipe in self._pipes:
            pipe.send(each)
        for pipe in self._pipes:
            _receive(pipe)
        for pipe in self._pipes:
            pipe.send("go")
        spans: list[tuple[float, float, int]] = [_receive(pipe) for pipe in self._pipes]
        self.errors += sum(errors for _, _, errors in spans)
        seconds = max(end for _, end, _ in spans) - min(start for start, _, _ in spans)
        return len(self._pipes) * each / seconds


@contextmanager
def running(writers: Sequence[Writer]) -> Iterator[Writers]:
    """The writers, until the block is left."""
    context = multiprocessing.get_context("forkserver")
    # Or each loads all of it for itself; the server of forks looks where PYTHONPATH says.
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))
    context.set_forkserver_preload([__name__])
    pairs = [context.Pipe() for _ in writers]
    processes = [
        context.Process(target=serve, args=(writer, theirs))
        for writer, (_, theirs) in zip(writers, pairs, strict=True)
    ]
    for process, (_, theirs) in zip(processes, pairs, strict=True):
        process.start()
        theirs.close()
    try:
        yield Writers([ours for ours, _ in pairs])
    finally:
        for ours, _ in pairs:
            ours.close()  # ends the writer
        for process in processes:
            process.join(ANSWER_S)
            process.kill()


def serve(writer: Writer, pipe: Connection) -> None:
    """A writer: takes a number from the pipe, writes as many when told to, says when it did."""
    drafts = Drafts(writer.seed)
    with ExitStack() as stack:
        if writer.kind == "bare":
            bare = BareTable(writer.dsn, writer.owner)
            stack.callback(bare.close)
        write = (
            _to_daemons(writer, stack) if writer.served else _to_store(writer, stack)
        )
        while True:  # until the bench closes its end
            try:
                count: int = pipe.recv()
            except EOFError:
                return
            given = drafts.take(count)
            works: list[Callable[[], object]]
            if writer.kind == "bare":
                works = [_bound(bare.insert, bare.rows([each])) for each in given]
            else:
                works = [_bound(write, [each]) for each in given]
            pipe.send("ready")
            pipe.recv()
            pipe.send(_timed(works))


def _timed(works: Sequence[Callable[[], object]]) -> tuple[float, float, int]:
    errors = 0
    start = time.monotonic()
    for work in works:
        try:
            work()
        except MnemosynedError:
            errors += 1
    return start, time.monotonic(), errors


def _bound(write: Callable[[Any], object], value: object) -> Callable[[], object]:
    return lambda: write(value)


def _to_store(writer: Writer, stack: ExitStack) -> Write:
    if writer.kind == "bare":
        return lambda _: None
    store = stack.enter_context(
        open_store(writer.dsn, migrations=MIGRATIONS, owner=writer.owner)
    )
    return store.memories.remember


def _to_daemons(writer: Writer, stack: ExitStack) -> Write:
    clients = [
        stack.enter_context(Client(url=url, token=token))
        for url, token in writer.served
    ]
    turn = iter(range(1 << 62))

    def remember(drafts: Sequence[Draft]) -> None:
        for draft in drafts:
            memory = draft.memory
            clients[next(turn) % len(clients)].remember(
                memory.content,
                session=memory.session,
                source=memory.source,
                role=memory.role,
            )

    return remember


def _receive(pipe: Connection) -> Any:  # noqa: ANN401 whatever was sent
    if not pipe.poll(ANSWER_S):
        raise TimeoutError(f"a writer was silent for {ANSWER_S:g} s")
    return pipe.recv()
