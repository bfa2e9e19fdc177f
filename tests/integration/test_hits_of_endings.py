"""Hits whose statements newer memories ended."""

from datetime import UTC, datetime
from types import SimpleNamespace
from typing import cast

from mnemosyned.memory.values import EndedStatement, Hit, Tier
from mnemosyned.service.endings import add_endings
from mnemosyned.storage.common.endings import EndingStore

AT = datetime(2026, 3, 1, tzinfo=UTC)


def hit(id: str) -> Hit:
    return Hit(
        id=id, tier=Tier.WORKING, score=1.0, snippet=id, content=id, created_at=AT,
        session="a", source=None,
    )  # fmt: skip


def ended(by: str) -> list[EndedStatement]:
    return [EndedStatement(at=AT, by=by, reason="corrected", sentence="", successor="")]


def test_of_a_chain_of_endings_the_newest_is_first() -> None:
    known = {"oldest": ended("middle"), "middle": ended("newest")}
    store = cast(EndingStore, SimpleNamespace(of=lambda _: known))
    asked = [hit(id) for id in ("other", "oldest", "newest", "middle")]

    hits = add_endings(store, asked, reveal=True)

    assert [each.id for each in hits] == ["other", "newest", "middle", "oldest"]
