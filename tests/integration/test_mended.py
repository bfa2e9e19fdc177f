"""A summary that was rewritten reads as if what was forgotten had never been said."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from support.cases import thorough
from support.fakes import FakeClock

from mnemosyned import Memory
from mnemosyned.verbs.memories import Remember

pytestmark = pytest.mark.thorough

MONDAY = datetime(2026, 3, 2, 7, tzinfo=UTC)
WHO = ("Ada", "Bela", "Chiara", "Dov")
WHAT = (
    "paid {} euros for the harbour in Lisbon",
    "decided to move release {} to Thursday",
    "found error E{} in the parser and told nobody",
    "will review invoice {} with Ines",
    "wants the {} boats painted green, as was agreed in the spring",
)


def told(day: int, source: str, number: int) -> Remember:
    count = day * 100 + number
    text = f"{WHO[count % 4]} {WHAT[(number + len(source)) % 5].format(1000 + count)}."
    return Remember(
        text,
        id=f"{source}-{day}-{number}",
        source=source,
        created_at=MONDAY + timedelta(days=day, minutes=10 * number),
    )


def summaries(
    database: Path, forgotten: int, rollup_min_items: int, *, said: bool
) -> list[str]:
    """The summaries above the first day, with some forgotten after all sleep, or never said."""
    clock = FakeClock(MONDAY + timedelta(days=40))
    everything = [
        told(day, source, number)
        for day in range(4)
        for source in ("mail", "chat", "notes", "git")
        for number in range(8)
    ]
    gone = {f"mail-0-{number}" for number in range(forgotten)}
    settings = {"sleep.rollup_min_items": rollup_min_items}
    with Memory(database, clock=clock, **settings) as memory:
        memory.remember_many([one for one in everything if said or one.id not in gone])
        memory.sleep()
        for id in sorted(gone) if said else ():
            memory.forget(id)
        found = memory.get("notes-0-0").memory
        contents = []
        above = found.episode if found else None
        while above:
            episode = memory.get(above).episode
            assert episode
            contents.append(episode.content)
            above = episode.parent
    return contents


@pytest.mark.parametrize(
    ("forgotten", "rollup_min_items"), [(8, 3), *thorough((1, 3), (8, 4), (2, 5))]
)
def test_a_rewritten_summary_has_no_trace_of_what_was_forgotten(
    tmp_path: Path, forgotten: int, rollup_min_items: int
) -> None:
    mended, never = (
        summaries(tmp_path / f"{said}.db", forgotten, rollup_min_items, said=said)
        for said in (True, False)
    )

    assert len(mended) == 4
    assert mended == never


def day_of(database: Path, *, said: bool) -> str:
    """The summary of a long day, with one memory forgotten or never said."""
    clock = FakeClock(MONDAY + timedelta(days=3))
    memories = [
        Remember(
            f"{told(source, 'mail', at).content} {told(at, 'git', source).content} "
            * 2,
            id=f"m{source}-{at}",
            source=f"source {source}",
            created_at=MONDAY + timedelta(minutes=20 * at + source),
        )
        for source in range(5)
        for at in range(30)
    ]
    with Memory(database, clock=clock) as memory:
        memory.remember_many(memories if said else memories[1:])
        memory.sleep()
        if said:
            memory.forget("m0-0")
        (day,) = memory.list(level="day").episodes
        return day.content


def test_a_long_day_is_rewritten_as_it_was_written(tmp_path: Path) -> None:
    assert day_of(tmp_path / "a.db", said=True) == day_of(tmp_path / "b.db", said=False)
