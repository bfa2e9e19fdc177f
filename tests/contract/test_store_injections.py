"""What every `MemoryStore` promises of the ledger of injected context and of edited briefings."""

from dataclasses import replace
from datetime import timedelta

import pytest
from support.fakes import NOON, consolidate, memory, promotion, remember_batch, trio
from support.stores import edit_memory

from mnemosyned.errors import InvalidRequest, NotFound
from mnemosyned.memory.injections import (
    BriefingEdit,
    InjectedLine,
    Injection,
    InjectionFilter,
    InjectionKind,
    InjectionOutcome,
)
from mnemosyned.memory.ports import MemoryStore
from mnemosyned.memory.values import Learning, LearningKind

EVERYTHING = InjectionFilter()


def injection(
    id: str, *lines: InjectedLine, minutes: float = 0, **fields: object
) -> Injection:
    base = Injection(
        id=id,
        created_at=NOON + timedelta(minutes=minutes),
        client="codex",
        session="codex:1",
        project="shop",
        kind=InjectionKind.PROMPT,
        prompt="Which database does the cart use?",
        characters=200,
        tokens=50,
        lines=lines,
    )
    return replace(base, **fields)  # type: ignore[arg-type]


def line(id: str, text: str = "the cart uses Postgres") -> InjectedLine:
    return InjectedLine(id=id, text=text, reason="words: cart")


def test_injections_are_found_newest_first_by_their_fields(store: MemoryStore) -> None:
    first = injection("i1", line("m1"), line("m2"))
    second = injection("i2", minutes=5, session="codex:2", project="other")
    remember_batch(store, memory("m1"), memory("m2"))
    store.injections.add(first)
    store.injections.add(second)

    for fields, expected in (
        ({}, [second, first]),
        ({"after": "i2"}, [first]),
        ({"after": "i1"}, []),
        ({"session": "codex:1"}, [first]),
        ({"project": "other"}, [second]),
        ({"since": NOON + timedelta(minutes=1)}, [second]),
        ({"until": NOON + timedelta(minutes=5)}, [first]),
        ({"outcome": InjectionOutcome.USEFUL}, []),
    ):
        wanted = InjectionFilter(**fields)
        assert store.injections.find(wanted, limit=9) == expected, fields
    assert store.injections.find(EVERYTHING, limit=1) == [second]


def test_ratings_give_the_precision(store: MemoryStore) -> None:
    for number in range(4):
        store.injections.add(injection(f"i{number}", line("m1")))
    missed = injection("i9", outcome=InjectionOutcome.SAID_AGAIN, tokens=0)
    store.injections.add(missed)
    assert store.injections.totals().precision is None

    for id, outcome in (
        ("i0", InjectionOutcome.USEFUL),
        ("i1", InjectionOutcome.NOT_USEFUL),
        ("i2", InjectionOutcome.USEFUL),
        ("i2", InjectionOutcome.UNKNOWN),
    ):
        store.injections.rate(id, outcome)

    totals = store.injections.totals()
    assert (totals.injections, totals.tokens, totals.said_again) == (4, 200, 1)
    assert (totals.useful, totals.not_useful, totals.precision) == (1, 1, 0.5)
    for id in ("i7", "i9"):
        with pytest.raises(NotFound):
            store.injections.rate(id, InjectionOutcome.USEFUL)


def test_the_ledger_is_limited(
    store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mnemosyned.memory.injections.INJECTIONS_MAX", 2)
    for number in range(5):
        store.injections.add(injection(f"i{number}", line("m1")))

    kept = store.injections.find(EVERYTHING, limit=9)
    assert [each.id for each in kept] == ["i4", "i3"]


@pytest.mark.parametrize("state", ["working", "archived"])
def test_the_ledger_keeps_no_forgotten_words(store: MemoryStore, state: str) -> None:
    said = replace(memory("m1"), session="codex:1")
    remember_batch(store, said, memory("m2"), *trio("old"))
    if state == "archived":
        consolidate(store, promotion("e", said))
    store.injections.add(injection("i1", line("m1"), line("m2")))
    store.injections.add(injection("i2", line("m2"), session="codex:2"))
    store.injections.add(injection("i3", line("m1"), session=""))
    store.injections.save_edit(BriefingEdit(id="m1", text="words", changed_at=NOON))

    store.deletion.forget(["m1"])

    asked, other, mine = store.injections.find(EVERYTHING, limit=9)
    assert mine.lines == (line("m2"),)
    assert mine.prompt == ""  # it may have been the memory
    assert asked.prompt == ""  # it may have asked in the memory's words
    assert other.prompt
    assert store.injections.edits().by_id == {}


def test_a_forgotten_memory_gets_no_line_in_the_ledger(store: MemoryStore) -> None:
    remember_batch(store, memory("m1"), memory("m2"))
    store.deletion.forget(["m1"])

    store.injections.add(injection("i1", line("m1"), line("m2")))

    (kept,) = store.injections.find(EVERYTHING, limit=9)
    assert (kept.lines, kept.prompt) == ((line("m2"),), "")


def test_a_removed_learning_leaves_no_words_in_the_ledger(store: MemoryStore) -> None:
    text = "Never use emojis."
    kind = LearningKind.INSTRUCTION
    store.learnings.add(
        Learning(id="l1", kind=kind, text=text, created_at=NOON, session="codex:1")
    )
    store.injections.add(injection("i1", line("l1", text)))
    store.learnings.edit("l1", "Use emojis.")
    assert store.injections.find(EVERYTHING, limit=9)[0].lines == (line("l1", ""),)

    store.learnings.remove("l1")

    assert store.injections.find(EVERYTHING, limit=9)[0].lines == ()


def test_words_that_changed_or_were_pruned_leave_the_ledger(store: MemoryStore) -> None:
    said = replace(memory("m1"), session="codex:1")
    kept, *_ = trio("old")
    remember_batch(store, said, *trio("old"))
    consolidate(store, promotion("e", *trio("old")))
    store.injections.add(injection("i1", line("m1"), line(kept.id)))

    edit_memory(store, said.id, "Other words")
    store.retention.prune([kept.id], now=NOON)

    lines = store.injections.find(EVERYTHING, limit=9)[0].lines
    assert lines == (line("m1", ""), line(kept.id, ""))


def test_edits_of_briefings_are_kept_and_undone(
    store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    pinned = BriefingEdit(id="m1", pinned=True, changed_at=NOON)
    dropped = BriefingEdit(id="m2", dropped=True, changed_at=NOON)
    store.injections.save_edit(pinned)
    store.injections.save_edit(dropped)
    store.injections.save_edit(replace(pinned, text="Shorter"))

    edits = store.injections.edits(["m1", "m3"])
    assert edits.by_id == {"m1": replace(pinned, text="Shorter")}
    assert edits.is_pinned("m1")
    assert edits.text_of("m1") == "Shorter"
    assert store.injections.edits().is_dropped("m2")

    store.injections.save_edit(replace(dropped, dropped=False))
    assert not store.injections.edits().is_dropped("m2")
    monkeypatch.setattr("mnemosyned.storage.common.injections.BRIEFING_EDITS_MAX", 1)
    with pytest.raises(InvalidRequest):
        store.injections.save_edit(dropped)
