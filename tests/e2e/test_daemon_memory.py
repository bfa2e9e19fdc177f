"""The daemon's memory after work: given back, and without what was forgotten.

CYCLE_ENTRIES=20000 is the long form.
"""

from __future__ import annotations

import os
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from e2e.conftest import Start
from e2e.daemons import Daemon, eventually
from soak.sampler import sample

pytestmark = [pytest.mark.e2e, pytest.mark.fault, pytest.mark.alone]

ENTRIES = int(os.environ.get("CYCLE_ENTRIES", "5000"))
CYCLES = 3
BATCH = 1_000
GROWTH_MB_MAX = 30.0
"""Page caches of SQLite that later requests fill anew, and pages that small objects share."""
TRIMMED_S = 25.0
"""Two heartbeats and more."""
MARKER = "zqxjvkwyzb"
ROOM = 300
"""Memories of the session that is forgotten."""
COPIES_LEFT_MAX = 0.2
"""Freed memory keeps its bytes until it is used again or given back, so that other work follows;
what is cached or held would be left after it."""
OTHER_WORK_MAX = 10
"""Rounds of other work: 3 leave some 0.15 of the copies, 6 leave 0.1."""
LONG_AGO = datetime.now(UTC) - timedelta(days=3)


def entries(first: int, count: int) -> list[dict[str, object]]:
    return [
        {
            "content": f"Ada mended the bell number {number} of house {number % 97} in the yard, "
            f"and paid {number * 7 % 1013} euros for it on a rainy Tuesday.",
            "session": f"s{number // 40}",
            "source": "notes",
            "created_at": (LONG_AGO + timedelta(seconds=number)).isoformat(),
        }
        for number in range(first, first + count)
    ]


def resident_mb(daemon: Daemon) -> float:
    return sample(daemon.process.pid, 0).resident_mb


def test_after_large_cycles_memory_is_nearly_what_it_was(start: Start) -> None:
    daemon = start(MNEMOSYNE_WM_MAX="1000000")
    began = resident_mb(daemon)

    with daemon.client() as client:
        for cycle in range(CYCLES):
            for first in range(0, ENTRIES, BATCH):
                batch = entries(cycle * ENTRIES + first, BATCH)
                assert daemon.post("remember_many", memories=batch).status == 200
            assert client.sleep(force=True).evicted == ENTRIES
    loaded = resident_mb(daemon)

    print(
        f"{began:.0f} MB at the start, {loaded:.0f} after {CYCLES} cycles of {ENTRIES}"
    )
    eventually(
        lambda: resident_mb(daemon) <= began + GROWTH_MB_MAX,
        f"{loaded:.0f} MB go back to {began + GROWTH_MB_MAX:.0f}",
        timeout_s=TRIMMED_S,
    )


def test_forgotten_words_are_held_nowhere_in_memory(start: Start) -> None:
    daemon = start()
    for _ in range(2):
        work(daemon, MARKER)
    before = copies(daemon.process.pid)
    assert before > ROOM

    assert daemon.post("forget", session="room").body["complete"]

    left = before
    for _ in range(OTHER_WORK_MAX):
        work(daemon, "plovertown")
        left = copies(daemon.process.pid)
        if left < before * COPIES_LEFT_MAX:
            return
    pytest.fail(f"{left} of {before} copies are left after other work")


def work(daemon: Daemon, name: str) -> None:
    """Remember the name, recall it, make a context of it, sleep, and recall it again."""
    memories = [
        {"content": f"{name} keeps bell {number}", "session": "room"}
        for number in range(ROOM)
    ]
    assert daemon.post("remember_many", memories=memories).status == 200
    assert daemon.post("recall", query=name, limit=50).body["hits"]
    assert daemon.post("context", message=f"what of {name}?").status == 200
    assert daemon.post("sleep", force=True).status == 200
    assert daemon.post("recall", query=f"{name} bell", limit=50).body["hits"]


def copies(pid: int) -> int:
    """How often the marker can be read in the process's memory."""
    found = 0
    with Path(f"/proc/{pid}/mem").open("rb", buffering=0) as memory:
        for line in Path(f"/proc/{pid}/maps").read_text(encoding="utf-8").splitlines():
            span = re.match(r"([0-9a-f]+)-([0-9a-f]+) rw", line)
            if span:
                start, stop = (int(end, 16) for end in span.groups())
                memory.seek(start)
                try:
                    found += memory.read(stop - start).count(MARKER.encode())
                except OSError:  # a page of a device, such as vvar
                    continue
    return found
