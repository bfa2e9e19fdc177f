"""The nearest peer in its own virtual environment and process, as something a bench can ask."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
import venv
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import msgspec
from bench.corpus import Entry
from bench.measure import RESULTS, say

T = TypeVar("T")

REQUIREMENT = "mnemosyne-memory==3.15.1"
ENVIRONMENT = Path(__file__).parents[2] / "build" / "peer-venv"
WORKER = Path(__file__).with_name("peer_worker.py")
BATCH = 500


def installed() -> Path:
    """The Python of the peer's environment, which is made on first use."""
    python = ENVIRONMENT / "bin" / "python"
    name, _, version = REQUIREMENT.partition("==")
    asking = (
        f"import importlib.metadata as m; assert m.version({name!r}) == {version!r}"
    )
    if (
        not python.exists()
        or subprocess.run([python, "-c", asking], check=False).returncode
    ):
        say(f"installing {REQUIREMENT} into {ENVIRONMENT}")
        venv.create(ENVIRONMENT, clear=True, with_pip=True)
        subprocess.run(
            [python, "-m", "pip", "install", "--quiet", REQUIREMENT], check=True
        )
    return python


class Peer:
    """A running peer over a database of its own."""

    def __init__(self, process: subprocess.Popen[str], database: Path) -> None:
        self._process = process
        self._database = database

    def batch(self, entries: Iterable[Entry]) -> None:
        rest = [{"content": entry.content, "source": entry.source} for entry in entries]
        for start in range(0, len(rest), BATCH):
            self._ask(int, "batch", entries=rest[start : start + BATCH])

    def remember_each(self, entries: Iterable[Entry]) -> list[float]:
        """Seconds of every call, remembering one by one."""
        texts = [
            {"content": entry.content, "source": entry.source} for entry in entries
        ]
        return self._ask(list[float], "remember", entries=texts)

    def recall(
        self, queries: Sequence[str], *, limit: int = RESULTS
    ) -> list[tuple[float, list[str]]]:
        """Seconds of each query, and the texts it shows, best first."""
        answer = list[tuple[float, list[str]]]
        return self._ask(answer, "recall", queries=list(queries), limit=limit)

    def count(self) -> int:
        return self._ask(int, "count")

    def age(self, hours_oldest: float, hours_newest: float) -> None:
        self._ask(object, "age", hours_oldest=hours_oldest, hours_newest=hours_newest)

    def sleep(self) -> tuple[float, float, int]:
        """Seconds, CPU seconds, memories consolidated."""
        return self._ask(tuple[float, float, int], "sleep")

    def checkpoint(self) -> Path:
        """The database file, with all that was written in it."""
        self._ask(object, "checkpoint")
        return self._database

    def _ask(self, answer: type[T], verb: str, **arguments: object) -> T:
        requests, answers = self._process.stdin, self._process.stdout
        if requests is None or answers is None:
            raise RuntimeError("the peer was started without its pipes")
        print(json.dumps({"do": verb, "with": arguments}), file=requests, flush=True)
        line = answers.readline()
        if not line:
            raise RuntimeError(f"the peer ended while it was asked to {verb}")
        return msgspec.json.decode(line, type=answer)


@contextmanager
def running_peer(content: Path | None = None) -> Iterator[Peer]:
    """A peer over a copy of a database, or an empty one; with no model, embeddings or network."""
    python = installed()
    with tempfile.TemporaryDirectory(prefix="peer-") as room:
        database = Path(room, "peer.db")
        if content:
            shutil.copy(content, database)
        env = {
            "PATH": os.environ.get("PATH", ""),
            "HOME": room,
            "MNEMOSYNE_DATA_DIR": room,
            "MNEMOSYNE_NO_EMBEDDINGS": "1",
            "MNEMOSYNE_LLM_ENABLED": "false",
        }
        with (
            Path(room, "stderr").open("wb") as stderr,
            subprocess.Popen(
                [python, WORKER, database],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stderr,
                env=env,
                text=True,
            ) as process,
        ):
            try:
                yield Peer(process, database)
            finally:
                process.kill()
