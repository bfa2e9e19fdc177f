"""A store's life against a plain model: nothing lost, nothing twice, nothing resurrected."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import invariant, run_state_machine_as_test
from support.lifetimes import Life

from mnemosyned.memory.values import MemoryRecord
from mnemosyned.verbs.memories import Expand, Get, Recall


class Lifetime(Life):
    """A life with what has to be true after each of its steps."""

    @invariant()
    def every_memory_is_where_it_should_be_and_as_it_was(self) -> None:
        for id, known in self.known.items():
            memory = self.call(Get(id)).memory
            assert isinstance(memory, MemoryRecord)
            assert (memory.tier, memory.pinned) == (known.tier, known.pinned)
            assert memory.content == ("" if known.pruned else known.content)
            assert memory.created_at == known.created_at
            assert (memory.session, memory.source) == (known.session, known.source)
            assert memory.tags == known.tags
            assert (memory.superseded_at is not None) == bool(known.superseded)

    @invariant()
    def everything_is_there_once(self) -> None:
        with closing(sqlite3.connect(self.database)) as connection:
            ids = [
                id
                for table in ("working_memory", "archive")
                for (id,) in connection.execute(f"SELECT id FROM {table}")
            ]
            emptied = connection.execute("SELECT * FROM emptied_episode").fetchall()
        assert sorted(ids) == sorted(self.known)
        assert emptied == []

    @invariant()
    def nothing_forgotten_can_be_read(self) -> None:
        data = b"".join(path.read_bytes() for path in self.room.iterdir())
        for known in self.gone.values():
            words = (known.word, *known.earlier)
            assert [word for word in words if word.encode() in data] == []

    @invariant()
    def recall_finds_what_is_in_force_and_nothing_else(self) -> None:
        for id, known in list(self.known.items())[-4:]:
            hits = self.call(Recall(known.word)).hits
            shown = {line.id for hit in hits for line in hit.lines} | {
                hit.id for hit in hits
            }
            until = known.valid_until
            expired = until is not None and until <= self.clock.now()
            past = known.superseded or known.pruned or expired
            assert (id in shown) == (not past), known
            for word in known.earlier[-1:]:
                assert self.call(Recall(word)).hits == [], known

    @invariant()
    def every_summary_tells_of_what_it_was_made_of(self) -> None:
        with closing(sqlite3.connect(self.database)) as connection:
            rows = connection.execute(
                "SELECT id, item_count, content FROM episodic_memory"
            )
            summaries = rows.fetchall()
        for id, count, content in summaries:
            originals = {one.id for one in self.call(Expand(id)).originals}
            assert originals <= self.known.keys()
            assert len(originals) == count
            words = [known.word for known in self.known.values()]
            below = [self.known[one] for one in originals]
            # With a pruned original, a summary is all that is left, and is not written anew.
            frozen = any(known.pruned for known in below)
            allowed = {one.word for one in below if frozen or not one.superseded}
            assert {word for word in words if word in content} <= allowed


@pytest.mark.parametrize(
    ("examples", "steps"),
    [
        pytest.param(15, 16, id="short", marks=pytest.mark.thorough),
        pytest.param(150, 40, id="long", marks=pytest.mark.lifetime),
    ],
)
def test_a_life_loses_nothing_doubles_nothing_and_revives_nothing(
    blank: Path, examples: int, steps: int
) -> None:
    Lifetime.blank = blank
    run_state_machine_as_test(
        Lifetime,
        settings=settings(
            max_examples=examples,
            stateful_step_count=steps,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
