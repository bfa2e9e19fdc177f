"""Backups under load, and kills amid backups and restores: whole or absent, never harmed.

BACKUPS sets how many backups are made under load, KILLS how often each process is killed.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from e2e.consistency import damage, dangling, half_done
from e2e.daemons import WAIT_S, Daemon, environment, eventually, kept, running
from e2e.programs import BIN

from mnemosyned.cli.maintenance.databases import restore_database
from mnemosyned.errors import MnemosynedError, SleepInProgress
from mnemosyned.storage.sqlite.ownership import lock_database

pytestmark = [pytest.mark.e2e, pytest.mark.backup]

BACKUPS = int(os.environ.get("BACKUPS", "100"))
KILLS = int(os.environ.get("KILLS", "25"))
RATE = 500
WRITERS = 8
BACKLOG = 4_000
WORDS = "amber basil cedar dahlia ember fennel ginger hazel iris juniper".split()


class Writers:
    """Clients that remember at a rate together, and what was acknowledged so far."""

    def __init__(self, daemon: Daemon) -> None:
        self._daemon = daemon
        self._ended = threading.Event()
        self._lock = threading.Lock()
        self._asked = 0
        self.acknowledged: list[str] = []
        self._began = time.monotonic()

    def write(self) -> None:
        with self._daemon.client() as client:
            while not self._ended.is_set():
                with self._lock:
                    number = self._asked
                    self._asked += 1
                due = self._began + number / RATE
                time.sleep(max(0.0, due - time.monotonic()))
                word = WORDS[number % len(WORDS)]
                client.remember(f"{word} {number}", id=f"n{number}", session=word)
                self.acknowledged.append(f"n{number}")

    def sleep(self) -> None:
        """Sleep now and then, so that backups meet cycles."""
        with self._daemon.client() as client:
            while not self._ended.wait(1.0):
                with suppress(SleepInProgress):
                    client.sleep(force=True)

    @property
    def asked(self) -> set[str]:
        return {f"n{number}" for number in range(self._asked)}

    @property
    def rate(self) -> float:
        return len(self.acknowledged) / (time.monotonic() - self._began)

    @contextmanager
    def at_work(self) -> Iterator[None]:
        threads = [threading.Thread(target=self.write) for _ in range(WRITERS)]
        threads.append(threading.Thread(target=self.sleep))
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            self._ended.set()
            for thread in threads:
                thread.join(WAIT_S)


def test_every_backup_under_load_has_what_was_acknowledged(tmp_path: Path) -> None:
    took = []
    with running(tmp_path) as daemon, daemon.client() as client:
        writers = Writers(daemon)
        with writers.at_work():
            for number in range(BACKUPS):
                time.sleep(0.05)
                before = set(writers.acknowledged)
                began = time.monotonic()
                done = client.backup(str(tmp_path / "copy.db"))
                took.append(time.monotonic() - began)
                after = writers.asked
                restored = tmp_path / f"restored-{number}" / "memory.db"
                restore_database(Path(done.file), restored)

                stored = kept(restored)
                assert len(stored) == len(set(stored)) == done.memories
                assert before <= set(stored) <= after
                assert (damage(restored), half_done(restored)) == ([], {})
                assert dangling(restored) == {}
        rate = writers.rate
    print(
        f"{BACKUPS} backups, {len(before):,} memories in the last; "
        f"{rate:.0f} writes/s; a backup took {sorted(took)[len(took) // 2]:.2f} s, "
        f"at most {max(took):.2f} s"
    )


@pytest.fixture
def large(tmp_path: Path) -> Path:
    """A database that takes a while to copy, with 4,000 memories."""
    with running(tmp_path) as daemon, daemon.client() as client:
        fields = [
            {"content": f"{' '.join(WORDS * 20)} {number}", "id": f"n{number}"}
            for number in range(BACKLOG)
        ]
        for begin in range(0, BACKLOG, 500):
            daemon.post("remember_many", memories=fields[begin : begin + 500])
        client.backup(str(tmp_path / "copy.db"))
        client.remember("one more", id="more")
        daemon.stop()
    return tmp_path / "memory.db"


def wait_until_begun(target: Path) -> None:
    part = target.with_name(f"{target.name}.partial")
    eventually(lambda: part.exists() or target.exists(), "the backup is begun")


@pytest.mark.parametrize("victim", ["daemon", "client"])
def test_a_kill_amid_a_backup_leaves_it_whole_or_absent(
    large: Path, tmp_path: Path, victim: str
) -> None:
    chance = random.Random(KILLS)
    whole = amid = 0
    for life in range(KILLS):
        target = tmp_path / f"killed-{life}.db"
        with running(tmp_path, database=large) as daemon:
            command = [str(BIN / "mnem"), "--socket", str(daemon.socket), "backup"]
            client = subprocess.Popen(
                [*command, str(target)],
                env=environment(tmp_path),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            wait_until_begun(target)
            time.sleep(chance.uniform(0.0, 0.15))
            amid += not target.exists()
            daemon.kill() if victim == "daemon" else client.kill()
            client.wait(WAIT_S)
            if victim == "client":  # the daemon finishes what was asked of it
                daemon.stop()
        assert damage(large) == []
        if target.exists():
            whole += 1
            assert len(kept(target)) == BACKLOG + 1
            assert damage(target) == []
    print(
        f"{KILLS} kills of the {victim}, {amid} of them amid the backup: {whole} whole, "
        f"{KILLS - whole} absent"
    )


RESTORE = """
import sys
from pathlib import Path
from mnemosyned.cli.maintenance.databases import restore_database
print("ready", flush=True)
sys.stdin.readline()
restore_database(Path(sys.argv[1]), Path(sys.argv[2]))
"""


def test_a_killed_restore_leaves_the_old_or_the_new(
    large: Path, tmp_path: Path
) -> None:
    chance = random.Random(KILLS)
    copy = tmp_path / "copy.db"
    finished = 0
    for _ in range(KILLS):
        process = subprocess.Popen(
            [sys.executable, "-P", "-c", RESTORE, str(copy), str(large)],
            env=environment(tmp_path),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert process.stdin
        assert process.stdout
        process.stdout.readline()
        process.stdin.write(b"\n")
        process.stdin.flush()
        time.sleep(chance.uniform(0.0, 0.4))
        process.kill()
        process.wait(WAIT_S)
        process.stdin.close()
        process.stdout.close()

        with lock_database(large):  # as the next start does
            pass
        stored = len(kept(large))
        assert stored in (BACKLOG, BACKLOG + 1)
        assert damage(large) == []
        aside = sorted(tmp_path.glob("memory.db.before-restore-*Z"))
        if stored == BACKLOG:
            finished += 1
            assert len(kept(aside[-1])) == BACKLOG + 1
            large.unlink()
            aside[-1].rename(large)
    print(f"{KILLS} kills amid restores: {finished} finished, the others not begun")


def test_a_daemons_file_is_not_restored(large: Path, tmp_path: Path) -> None:
    with (
        running(tmp_path, database=large),
        pytest.raises(MnemosynedError, match="in use by process"),
    ):
        restore_database(tmp_path / "copy.db", large)
