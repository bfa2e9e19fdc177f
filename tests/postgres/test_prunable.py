"""Originals to be pruned are read a number of episodes at a time; the steps show nowhere."""

import pytest
from support.engines import postgres_store
from support.fakes import NOON, promotion, remember_batch, trio

from mnemosyned.memory.forgetting import Retention
from mnemosyned.storage.postgres import archive

pytestmark = pytest.mark.postgres

EPISODES = 12
EVERYTHING = Retention(characters_max=0)


@pytest.mark.parametrize("step", [1, 2, EPISODES - 1, EPISODES, EPISODES + 1])
def test_no_original_is_left_out_between_two_steps(
    monkeypatch: pytest.MonkeyPatch, step: int
) -> None:
    monkeypatch.setattr(archive, "EPISODES_READ", step)
    groups = [trio(f"g{number}.", hours_ago=40 - number) for number in range(EPISODES)]
    memories = [memory for group in groups for memory in group]
    ids = tuple(memory.id for memory in memories)
    with postgres_store() as store:
        remember_batch(store, *memories)
        problems = store.sleep.consolidate(
            [[promotion(f"e{number}", *group)] for number, group in enumerate(groups)]
        )
        assert problems == [None] * EPISODES
        port = store.retention

        assert port.prunable(EVERYTHING, now=NOON, limit=1_000).ids == ids
        # An episode is pruned whole.
        assert port.prunable(EVERYTHING, now=NOON, limit=7).ids == ids[:9]
        assert port.prune(ids[:6], now=NOON) == 6
        assert port.prunable(EVERYTHING, now=NOON, limit=1_000).ids == ids[6:]
