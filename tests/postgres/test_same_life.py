"""Both engines live the same random life: each verb answers the same, and keeps the same.

LIVES sets how many (200 for the long form), LIVES_SEED repeats a run.
"""

from __future__ import annotations

import os
from pathlib import Path
from random import Random

import pytest
from support.fakes import FakeClock
from support.same_life import SameLife
from support.seeds import seed_of
from support.twins import twins

pytestmark = pytest.mark.postgres

LIVES = int(os.environ.get("LIVES", "4"))
SEED = seed_of("LIVES_SEED")
STEPS = 40


def test_a_random_life_is_the_same_on_both_engines(tmp_path: Path) -> None:
    done = 0
    for number in range(SEED, SEED + LIVES):
        print(f"LIVES=1 LIVES_SEED={number}")
        folder = tmp_path / str(number)
        (folder / "moved").mkdir(parents=True)
        with twins(folder, FakeClock(), grace_hours=72) as pair:
            life = SameLife(pair, Random(number))
            life.begin()
            for _ in range(STEPS):
                life.step()
            life.ask()
            with twins(folder / "moved", pair.clock) as fresh:
                life.move_across(fresh)
        print(dict(life.done))
        done += life.done["Remember"] + life.done["RememberMany"]
    assert done > LIVES
