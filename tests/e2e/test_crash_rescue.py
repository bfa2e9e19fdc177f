"""SIGKILL while a deleted database is put back: all of it is there or none, and never a mixture.

RESCUE_KILLS sets how many there are, CRASH_SEED repeats a run by its seed.
"""

from __future__ import annotations

import os
import random
import threading
import time
from contextlib import suppress
from pathlib import Path

import pytest
from e2e.consistency import damage, half_done
from e2e.daemons import kept, running
from support.seeds import seed_of

from mnemosyned import Client, MnemosynedError

pytestmark = [pytest.mark.e2e, pytest.mark.fault]

KILLS = int(os.environ.get("RESCUE_KILLS", "8"))
SEED = seed_of("CRASH_SEED")
MEMORIES = 300
USUAL_S = 0.03
"""About how long it takes to put them back."""


def ask_last(client: Client, acknowledged: list[str]) -> None:
    with suppress(MnemosynedError):  # killed before it answered
        acknowledged.append(client.remember("tea at last", id="last").id)


def test_a_killed_rescue_leaves_all_or_nothing(tmp_path: Path) -> None:
    print(f"CRASH_SEED={SEED}")
    chance = random.Random(SEED)
    whole = 0

    for life in range(KILLS):
        home = tmp_path / f"{life}"
        home.mkdir()
        ids = [f"m{number}" for number in range(MEMORIES)]
        acknowledged: list[str] = []
        with running(home) as daemon, daemon.client() as client:
            daemon.post(
                "remember_many",
                memories=[{"id": id, "content": f"tea {id}"} for id in ids],
            )
            if life % 2:  # some of it in the file and some in the log
                client.sleep(force=True)

            daemon.database.unlink()
            asking = threading.Thread(target=ask_last, args=(client, acknowledged))
            asking.start()
            time.sleep(chance.uniform(0, 2 * USUAL_S))
            daemon.kill()
            asking.join()
        with running(home) as again:
            found = set(kept(again.database)) - {"last"}
            assert found in (set(), set(ids))
            if acknowledged:
                assert set(kept(again.database)) == {*ids, "last"}
            assert half_done(again.database) == {}
            again.stop()
        assert damage(home / "memory.db") == []
        assert not list(home.glob("*.rescued"))
        whole += bool(found)

    print(f"{whole} of {KILLS} were whole")
    assert whole, (
        "every kill came before the copy was whole; the moments are badly chosen"
    )
