"""Which newer statements are told in front of older ones."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta

import pytest
from support.fakes import NOON, memory

from mnemosyned.conversation.briefing import find_statements
from mnemosyned.conversation.injected import (
    InjectedQuote,
    InjectedSection,
    assemble_sections,
)
from mnemosyned.conversation.successors import SuccessorFinder
from mnemosyned.memory.injections import BriefingEdit, BriefingEdits
from mnemosyned.memory.values import EndedStatement, MemoryRecord

OTHERS = (
    "branches are named after the team and the ticket",
    "the dashboard has a search by order number for support",
    "every adapter has the same four methods and no more",
    "the certificate of the bank runs out in autumn",
)


def said(*texts: str) -> list[MemoryRecord]:
    """Memories of one session, the newest first, as they were said one after the other."""
    return [
        replace(
            memory(f"m{number}", text, session="s1"),
            role="user",
            created_at=NOON + timedelta(days=number),
        )
        for number, text in reversed([*enumerate(texts)])
    ]


def told(
    memories: Sequence[MemoryRecord],
    *ids: str,
    edits: BriefingEdits | None = None,
    ended: Mapping[str, Sequence[EndedStatement]] | None = None,
    cosines: Mapping[tuple[str, str], float] | None = None,
) -> list[str]:
    """The lines that an agent is told if the memories with these ids are chosen."""
    by_id = {each.id: each for each in memories}
    near = cosines or {}
    finder = SuccessorFinder(
        list(find_statements(memories)),
        edits=edits or BriefingEdits(),
        endings_of=lambda _: ended or {},
        compare=lambda ids: (
            lambda one: {
                other: near.get((one, other), near.get((other, one), 0.1))
                for other in ids
                if near
            }
        ),
    )
    quotes = [
        InjectedQuote(
            id=id, text=by_id[id].content, said=by_id[id].created_at, speaker="user"
        )
        for id in ids
    ]
    sections = finder.put_newest_first([InjectedSection("Said:", quotes, 2_000)])
    injected = assemble_sections(sections, chars_max=3_000)
    return [line for line in injected.text.splitlines() if line.startswith("- ")]


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("flag for it is ledger_v2, on for merchant 12", "ledger_v2 is on for all now"),
        ("we take Redis streams for the queue", "we drop Redis, events go to Postgres"),
        (
            "Umzug ist am 30. Mai mit der Firma",
            "Der Umzug rutscht, jetzt ist er am 13. Juni",
        ),
        (
            "my test readers: Hanne reads for plot",
            "so my sister Jule reads for plot instead",
        ),
        (
            "the retention of raw files is 13 months",
            "retention of raw files: 24 months",
        ),
    ],
)
def test_an_older_statement_is_told_behind_the_newer_one(
    older: str, newer: str
) -> None:
    memories = said(older, *OTHERS, newer)

    (line,) = told(memories, "m0")

    assert line == f"- [2026-03-22, user] {newer} (earlier: [2026-03-17, user] {older})"
    assert told(memories, "m5") == [f"- [2026-03-22, user] {newer}"]
    assert told(memories, "m0", "m5") == told(memories, "m5", "m0") == [line]


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("the flag is ledger_v2", "the dashboard is called till now"),
        ("die Küche ist aus Eiche", "Der Umzug rutscht, weil der Zug später kommt"),
        ("settlement cutoff is 17:00", "we now keep idempotency keys for a week"),
    ],
)
def test_statements_about_something_else_are_told_apart(older: str, newer: str) -> None:
    assert len(told(said(older, *OTHERS, newer), "m0", "m5")) == 2


def test_meaning_finds_a_successor_in_other_words_and_another_language() -> None:
    older, newer = "las paredes van en color arena", "the walls become sage green"
    memories = said(older, *OTHERS, newer)

    apart = told(memories, "m0", cosines={("m0", "m5"): 0.2})
    together = told(memories, "m0", cosines={("m0", "m5"): 0.6})

    assert apart == [f"- [2026-03-17, user] {older}"]
    assert together == [
        f"- [2026-03-22, user] {newer} (earlier: [2026-03-17, user] {older})"
    ]


def test_a_newer_statement_that_is_more_like_others_is_no_successor() -> None:
    memories = said(
        "the oven has three decks of stone",
        "the bakery opens in May with coffee",
        "the bakery opens on the 12th of May",
        "the opening has music by Clara",
        "the builders need longer, 3 June it is",
    )
    cosines = {(f"m{n}", "m4"): 0.5 + n / 10 for n in range(4)}

    assert "earlier" not in told(memories, "m0", cosines=cosines)[0]
    assert "earlier" in told(memories, "m1", cosines=cosines)[0]


def test_of_several_values_the_newest_is_told() -> None:
    values = [
        f"the number of delivery attempts for a webhook is {n} now" for n in (7, 5, 4)
    ]

    (line,) = told(said(*values, *OTHERS), "m0", "m1")

    assert line == (
        f"- [2026-03-19, user] {values[2]} (earlier: [2026-03-18, user] {values[1]})"
        f" (earlier: [2026-03-17, user] {values[0]})"
    )


def test_an_ended_statement_is_told_with_its_end_and_successor() -> None:
    older, newer = "Ines reviews the ledger", "Tobias does it from now on"
    memories = said(older, *OTHERS, newer)
    ending = EndedStatement(
        at=NOON + timedelta(days=5),
        by="m5",
        reason="now",
        sentence=older,
        successor=newer,
    )

    (line,) = told(memories, "m0", ended={"m0": [ending]})

    assert (
        line
        == f"- [2026-03-22, user] {newer} (until 2026-03-22: [2026-03-17, user] {older})"
    )


def test_the_end_of_another_sentence_of_a_memory_changes_nothing() -> None:
    memories = said("the head end is run by Dragan of Siemens", *OTHERS)
    ending = EndedStatement(
        at=NOON,
        by="x",
        reason="now",
        sentence="billing is Renate Vogt",
        successor="it is Okan",
    )

    assert told(memories, "m0", ended={"m0": [ending]}) == [
        "- [2026-03-17, user] the head end is run by Dragan of Siemens"
    ]


def test_a_repeated_statement_is_told_once_as_it_was_said_last() -> None:
    memories = said(
        "the proxy listens on port 8443",
        *OTHERS,
        "the proxy listens on port 8443 behind nginx",
    )

    assert told(memories, "m0") == [
        "- [2026-03-22, user] the proxy listens on port 8443 behind nginx"
    ]


def test_a_dropped_statement_is_no_successor_and_a_reworded_one_has_its_new_words() -> (
    None
):
    memories = said(
        "we take Redis for the queue", *OTHERS, "we drop Redis, events go to Postgres"
    )

    def edits(**values: object) -> BriefingEdits:
        edit = BriefingEdit(id="m5", changed_at=NOON, **values)  # type: ignore[arg-type]
        return BriefingEdits({"m5": edit})

    assert told(memories, "m0", edits=edits(dropped=True)) == [
        "- [2026-03-17, user] we take Redis for the queue"
    ]
    assert told(memories, "m0", edits=edits(text="Postgres it is"))[0].startswith(
        "- [2026-03-22, user] Postgres it is (earlier: "
    )


def test_each_memory_in_a_line_has_its_own_words_in_the_ledger() -> None:
    older = InjectedQuote(
        id="m1", text="Redis", said=NOON, speaker="user", reason="an old one"
    )
    newer = replace(
        older, id="m2", text="Postgres", reason="a new one", earlier=(older,)
    )

    injected = assemble_sections(
        [InjectedSection("Said:", [newer], 500)], chars_max=500
    )

    assert [(line.id, line.text, line.reason) for line in injected.lines] == [
        ("m2", "[2026-03-17, user] Postgres", "a new one"),
        ("m1", "[2026-03-17, user] Redis", "an old one"),
    ]
