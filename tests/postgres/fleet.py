"""Daemons that share one memory and one model, killed and started again while they sleep."""

from __future__ import annotations

import os
import re
import time
from collections import Counter
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from threading import Condition
from typing import Any, Self

import psycopg
from e2e.daemons import WAIT_S, Daemon, running
from support.endpoints import Exchange, begins

ITEMS = 20
"""Memories of a group."""
STARTS_AT_ONCE = 2
STARTS_MAX = 3
_GROUP = re.compile(r"matter (\d+)\b")
_OURS = "application_name = 'mnemosyned' AND datname = current_database()"
_CLAIMED = (
    "EXISTS (SELECT 1 FROM pg_locks AS l WHERE l.pid = a.pid "
    "AND l.locktype = 'advisory' AND l.granted)"
)
_END = "SELECT pg_terminate_backend(a.pid) FROM pg_stat_activity AS a WHERE"


DAYS = 28


def group_memories(group: int) -> list[dict[str, Any]]:
    """The memories that become one episode: of a session of their own, and older than a day."""
    return [
        {
            "id": f"g{group}-{number}",
            "content": f"Step {number} of matter {group} was done by Huber at mill {number * 7}.",
            "session": f"s{group}",
            "created_at": f"2026-01-{1 + group % DAYS:02}T10:{number:02}:00Z",
        }
        for number in range(ITEMS)
    ]


def remember_groups(daemon: Daemon, count: int) -> None:
    for first in range(0, count, 50):
        groups = range(first, min(first + 50, count))
        memories = [memory for group in groups for memory in group_memories(group)]
        assert daemon.post("remember_many", memories=memories).status == 200


class SlowModel:
    """A model behind an endpoint: it counts what it is asked for, and knows who asks now."""

    def __init__(self, writing_s: float) -> None:
        self.begun: Counter[int] = Counter()
        """Summaries begun, by group."""
        self.asking: dict[str, int] = {}
        """The group that each daemon waits for now, by the first part of its path."""
        self._writing_s = writing_s
        self._changed = Condition()

    def __call__(self, exchange: Exchange) -> None:
        asked = exchange.request_body["messages"][-1]["content"]
        found = _GROUP.search(asked)
        assert found, asked
        group, name = int(found[1]), exchange.path.split("/")[1]
        with self._changed:
            self.begun[group] += 1
            self.asking[name] = group
            self._changed.notify_all()
        time.sleep(self._writing_s)
        with self._changed:
            if self.asking.get(name) == group:
                del self.asking[name]
        begins(exchange)

    def asker(self, *, after: int) -> str:
        with self._changed:
            until = self.begun.total() + after
            assert self._changed.wait_for(
                lambda: self.begun.total() >= until and self.asking, WAIT_S * 3
            ), "no daemon asks the model any more"
            return next(iter(self.asking))


class Fleet:
    """Daemons by name, each started again as soon as it was killed."""

    def __init__(
        self,
        home: Path,
        *,
        dsn: str,
        endpoint: str,
        count: int,
        settings: Mapping[str, Any],
    ) -> None:
        """`endpoint` is that of the model, to which each daemon's name is added."""
        self._home = home
        self._dsn = dsn
        self._endpoint = endpoint
        self._settings = settings
        self._names = [f"d{number}" for number in range(count)]
        self._lives: dict[str, tuple[Daemon, ExitStack]] = {}
        self._starting: dict[str, Future[None]] = {}
        self._starter = ThreadPoolExecutor(STARTS_AT_ONCE)

    def __enter__(self) -> Self:
        for name in self._names:
            self._starting[name] = self._starter.submit(self._start, name)
        self.wait_started()
        return self

    def __exit__(self, *_: object) -> None:
        self._starter.shutdown(wait=True)
        for life in self._lives.values():
            life[1].close()

    def wait_started(self) -> None:
        for starting in list(self._starting.values()):
            starting.result(WAIT_S * 2)

    def daemon(self, name: str | None = None) -> Daemon:
        return self._lives[name or self._names[0]][0]

    @property
    def daemons(self) -> list[Daemon]:
        return [daemon for daemon, _ in self._lives.values()]

    @property
    def names(self) -> list[str]:
        return [name for name in self._names if self._starting[name].done()]

    def kill(self, name: str) -> bool:
        """Kill one if it runs, and have it started again; whether it ran."""
        if not self._starting[name].done():
            return False
        self._starting[name].result()
        daemon, stack = self._lives.pop(name)
        daemon.process.kill()
        self._starting[name] = self._starter.submit(self._start_again, name, stack)
        return True

    def _start_again(self, name: str, former: ExitStack) -> None:
        former.close()
        self._start(name)

    def _start(self, name: str) -> None:
        """Start a daemon; once more where the connection of its start was ended, too."""
        stack = ExitStack()
        home = self._home / name
        home.mkdir(exist_ok=True)
        for left in reversed(range(STARTS_MAX)):
            try:
                daemon = stack.enter_context(
                    running(
                        home,
                        *("--database", self._dsn),
                        MNEMOSYNE_LLM_ENDPOINT=f"{self._endpoint}/{name}/v1",
                        **self._settings,
                    )
                )
            except AssertionError:
                if not left:
                    raise
            else:
                self._lives[name] = (daemon, stack)
                return


def end_connections(dsn: str, *, claimed: bool) -> int:
    """End the daemons' connections: one that holds the claim to sleep, or a few; how many."""
    which = f"{_OURS} AND {_CLAIMED}" if claimed else _OURS
    with psycopg.connect(dsn, autocommit=True) as connection:
        return len(
            connection.execute(
                f"{_END} {which} ORDER BY random() LIMIT 3".encode()
            ).fetchall()
        )


def setting(name: str, default: int) -> int:
    return int(os.environ.get(name, default))
