"""Lists without a question: every filter, every page, whatever moves meanwhile."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from support.engines import POSTGRES, new_database

from mnemosyned import InvalidRequest, Memory, MemoryRecord, Remember, Tier
from mnemosyned.memory.listing import ListOrder

START = datetime(2025, 3, 1, 9, tzinfo=UTC)


@pytest.fixture
def memory(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Memory]:
    is_server = request.config.getoption("--engine") == POSTGRES
    with Memory(new_database() if is_server else tmp_path / "memory.db") as opened:
        yield opened


def said(number: int, chance: random.Random) -> Remember:
    """A memory with something of its own for each filter; every third time is shared."""
    return Remember(
        f"note {number}",
        id=f"Note-{number:03}" if number % 2 else None,
        session=chance.choice(["home", "work"]),
        source=chance.choice([None, "cook", "mail"]),
        role=chance.choice(["user", "assistant", ""]),
        pinned=chance.random() < 0.1,
        created_at=START + timedelta(hours=number // 3 * 3),
    )


def filled(memory: Memory, *, count: int, seed: int) -> None:
    """Memories in all tiers: a part is asleep, a part is not."""
    chance = random.Random(seed)
    memory.remember_many([said(number, chance) for number in range(count * 2 // 3)])
    memory.sleep(force=True)
    memory.remember_many(
        [said(number, chance) for number in range(count * 2 // 3, count)]
    )


def pages(memory: Memory, **filters: Any) -> list[MemoryRecord]:  # noqa: ANN401
    """The records of all pages."""
    records: list[MemoryRecord] = []
    page = memory.list(**filters)
    while page.next:
        records += page.memories
        page = memory.list(**filters, after=page.next)
    return records + page.memories


FILTERS: dict[str, tuple[dict[str, Any], Any]] = {
    "session": ({"session": "home"}, lambda record: record.session == "home"),
    "sessions": ({"session": ["home", "work"]}, lambda _: True),
    "source": ({"source": "cook"}, lambda record: record.source == "cook"),
    "role": ({"role": "user"}, lambda record: record.role == "user"),
    "tier": ({"tier": "archive"}, lambda record: record.tier == "archive"),
    "working": ({"tier": "working"}, lambda record: record.tier == "working"),
    "pinned": ({"pinned": True}, lambda record: record.pinned),
    "unpinned": ({"pinned": False}, lambda record: not record.pinned),
    "since": (
        {"since": START + timedelta(hours=30)},
        lambda record: record.created_at >= START + timedelta(hours=30),
    ),
    "until": (
        {"until": START + timedelta(hours=30)},
        lambda record: record.created_at < START + timedelta(hours=30),
    ),
    "prefix": (
        {"id_prefix": "nOTE-0", "tier": "archive"},
        lambda record: record.id.startswith("Note-0") and record.tier == "archive",
    ),
}


@pytest.mark.parametrize("order", ListOrder)
def test_pages_of_any_size_hold_each_match_once_in_order(
    memory: Memory, order: ListOrder
) -> None:
    filled(memory, count=90, seed=5)
    everything = pages(memory, limit=1_000)
    assert len(everything) == 90

    for filters, matches in FILTERS.values():
        shown = pages(memory, limit=7, order=order, **filters)

        assert {record.id for record in shown} == {
            record.id for record in everything if matches(record)
        }
        times = [record.created_at for record in shown]
        assert times == sorted(times, reverse=order is ListOrder.NEWEST)
        assert len(times) == len({record.id for record in shown})


@pytest.mark.parametrize("order", ListOrder)
def test_a_sleep_and_new_memories_between_pages_neither_repeat_nor_hide_any(
    memory: Memory, order: ListOrder
) -> None:
    filled(memory, count=60, seed=8)
    before = {record.id for record in pages(memory)}

    page = memory.list(limit=20, order=order)
    shown = [record.id for record in page]
    memory.remember("as new as can be")
    memory.remember("older than all", created_at=START - timedelta(days=1))
    memory.sleep(force=True)
    while page.next:
        page = memory.list(limit=11, order=order, after=page.next)
        shown += [record.id for record in page]

    assert len(shown) == len(set(shown))
    assert before <= set(shown)


def test_ids_are_found_by_their_beginning_in_either_case_with_their_summaries(
    memory: Memory,
) -> None:
    memory.remember("one", id="Über-1")
    memory.remember_many([Remember(f"tea {n}", session="tea") for n in range(5)])
    memory.sleep(force=True)
    (episode,) = {
        record.episode
        for record in memory.list(session="tea").memories
        if record.episode
    }

    summaries = [each.id for each in memory.list(level="episode").episodes]
    beginning = episode[:-1]

    found = memory.list(id_prefix=beginning.lower())

    # The other episode may be of the same millisecond, and then its id begins alike.
    assert len(summaries) == 2
    assert [each.id for each in found.episodes] == [
        id for id in summaries if id.startswith(beginning)
    ]
    assert episode in summaries
    assert [record.id for record in memory.list(id_prefix="üBER")] == ["Über-1"]
    assert not memory.list(id_prefix="ü_er")
    assert not memory.list(id_prefix="%")


def test_summaries_are_listed_by_level(memory: Memory) -> None:
    for day in range(3):
        memory.remember_many(
            [
                Remember(f"day {day}: step {n}", created_at=START + timedelta(days=day))
                for n in range(4)
            ]
        )
    memory.sleep(force=True)

    days = memory.list(level="day", limit=2)

    assert [summary.level for summary in days.episodes] == [1, 1]
    assert days.episodes[0].covers_from > days.episodes[1].covers_from
    assert days.memories == []
    (oldest,) = memory.list(level="day", limit=2, after=days.next).episodes
    assert oldest.covers_from == START
    narrow = memory.list(level="day", since=START + timedelta(days=1))
    assert len(narrow.episodes) == 2
    with pytest.raises(InvalidRequest, match="level is for summaries"):
        memory.list(level="day", tier=Tier.ARCHIVE)


def test_what_was_superseded_or_expired_is_listed_on_request(memory: Memory) -> None:
    memory.remember("Rome", id="old")
    memory.remember("Paris", id="new", supersedes="old")
    memory.remember(
        "until noon", id="gone", valid_until=datetime(2025, 1, 1, tzinfo=UTC)
    )

    assert [record.id for record in memory.list()] == ["new"]
    assert {record.id for record in memory.list(history=True)} == {"old", "new", "gone"}


def test_secrets_are_masked_unless_revealed(memory: Memory) -> None:
    memory.remember("The cellar's password is thyme77.")

    assert "thyme77" not in memory.list().memories[0].content
    assert "thyme77" in memory.list(reveal=True).memories[0].content


@pytest.mark.parametrize("cursor", ["1", "x~m1", "1~x1", "1~m", "9" * 18 + "~m1", "~"])
def test_a_cursor_that_no_page_gave_is_refused(memory: Memory, cursor: str) -> None:
    with pytest.raises(InvalidRequest, match="not a cursor"):
        memory.list(after=cursor)


def test_sessions_and_sources_are_counted_over_all_tiers(memory: Memory) -> None:
    filled(memory, count=90, seed=5)
    everything = pages(memory, limit=1_000)

    sessions = memory.sessions()
    sources = memory.sources()

    assert sum(total.count for total in sessions) == 90
    assert sum(total.count for total in sources) == 90
    home = next(total for total in sessions if total.session == "home")
    of_home = [record for record in everything if record.session == "home"]
    assert home.count == len(of_home)
    assert home.first == min(record.created_at for record in of_home)
    assert home.last == max(record.created_at for record in of_home)
    assert home.sources == ("cook", "mail")
    assert {total.source for total in sources} == {None, "cook", "mail"}
    assert memory.sessions(prefix="ho").total == 1
    assert [total.session for total in memory.sessions(limit=1)] == [
        sessions.sessions[0].session
    ]
