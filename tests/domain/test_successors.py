"""Which newer statements are told in front of older ones."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from itertools import pairwise, permutations
from typing import Any

import pytest
from support.cases import each_case
from support.fakes import NOON, said_by_users

from mnemosyned.conversation.briefing import find_statements
from mnemosyned.conversation.injected import (
    InjectedQuote,
    InjectedSection,
    InjectedText,
    assemble_sections,
)
from mnemosyned.conversation.successors import (
    STATEMENTS_MAX,
    SuccessorFinder,
    find_subject,
    put_successors_first,
)
from mnemosyned.memory.engine_ports import NOT_COMPARED, MemoryComparison
from mnemosyned.memory.injections import BriefingEdit, BriefingEdits
from mnemosyned.memory.values import EndedStatement, MemoryRecord
from mnemosyned.search.query import Match, RankedResult

OTHERS = (
    "branches are named after the team and the ticket",
    "the dashboard has a search by order number for support",
    "every adapter has the same four methods and no more",
    "the certificate of the bank runs out in autumn",
)


def said(*texts: str) -> list[MemoryRecord]:
    """Memories of one session, the newest first, as they were said a day after the other."""
    return said_by_users(*texts, step=timedelta(days=1))[::-1]


def finder_of(
    memories: Sequence[MemoryRecord],
    *,
    edits: BriefingEdits | None = None,
    ended: Mapping[str, Sequence[EndedStatement]] | None = None,
    cosines: Mapping[tuple[str, str], float] | None = None,
    endings: Mapping[tuple[str, str], float] | None = None,
    known: Sequence[str] = (),
    rules: Sequence[str] = (),
) -> SuccessorFinder:
    """Find successors where pairs of an older and a newer memory are so alike and likely ends."""
    near = cosines or {}
    return SuccessorFinder(
        list(find_statements(memories)),
        edits=edits or BriefingEdits(),
        endings_of=lambda _: ended or {},
        compare=lambda ids: MemoryComparison(
            lambda one: {
                other: near.get((one, other), near.get((other, one), 0.1))
                for other in ids
                if near
            },
            lambda newer, older: (endings or {}).get((older, newer)),
        ),
        known=known,
        rules=rules,
    )


def inject(
    memories: Sequence[MemoryRecord],
    *sections: Sequence[str],
    **given: Any,  # noqa: ANN401
) -> InjectedText:
    """What an agent is told if the memories with these ids are chosen for each section."""
    by_id = {each.id: each for each in memories}
    chosen = [
        InjectedSection(f"Section {number}:", [quote(by_id[id]) for id in ids], 2_000)
        for number, ids in enumerate(sections)
    ]
    sections_told = finder_of(memories, **given).put_newest_first(chosen)
    return assemble_sections(sections_told, chars_max=3_000)


def quote(memory: MemoryRecord) -> InjectedQuote:
    return InjectedQuote(
        id=memory.id,
        text=memory.content,
        said=memory.created_at,
        source=memory.source or "",
        speaker="user",
        reason="pinned",
    )


def told(memories: Sequence[MemoryRecord], *ids: str, **given: Any) -> list[str]:  # noqa: ANN401
    """The lines that an agent is told if the memories with these ids are chosen."""
    lines = inject(memories, ids, **given).text.splitlines()
    return [line for line in lines if line.startswith("- ")]


def told_behind(newest: MemoryRecord, *older: MemoryRecord) -> str:
    """The line of a statement with the older ones behind it."""
    first, *others = [
        f"[{each.created_at:%F}, user] {each.content}" for each in (newest, *older)
    ]
    return " ".join([f"- {first}", *(f"(earlier: {each})" for each in others)])


def ends(id: str, sentence: str, successor: str) -> dict[str, list[EndedStatement]]:
    """What the sixth memory ended of the one with this id."""
    at = NOON + timedelta(days=5)
    ended = EndedStatement(
        at=at, by="m5", reason="now", sentence=sentence, successor=successor
    )
    return {id: [ended]}


def edits_of(id: str, **values: object) -> BriefingEdits:
    edit = BriefingEdit(id=id, changed_at=NOON, **values)  # type: ignore[arg-type]
    return BriefingEdits({id: edit})


@each_case(("older", "newer"), [
    ("flag for it is ledger_v2, on for merchant 12", "ledger_v2 is on for all now"),
    ("we take Redis streams for the queue", "we drop Redis, events go to Postgres"),
    ("Umzug ist am 30. Mai mit der Firma", "Der Umzug rutscht, jetzt ist er am 13. Juni"),
    ("my test readers: Hanne reads for plot", "so my sister Jule reads for plot instead"),
    ("the retention of raw files is 13 months", "retention of raw files: 24 months"),
])  # fmt: skip
def test_an_older_statement_is_told_behind_a_newer(older: str, newer: str) -> None:
    memories = said(older, *OTHERS, newer)
    likely = {("m0", "m5"): 0.0}

    line = told_behind(memories[0], memories[-1])
    assert told(memories, "m0", endings=likely) == [line]
    assert told(memories, "m5") == [told_behind(memories[0])]
    assert told(memories, "m0", "m5", endings=likely) == [line]
    assert told(memories, "m5", "m0", endings=likely) == [line]


def test_what_ended_a_statement_is_told_behind_what_ended_it_in_turn() -> None:
    days = ("Fridays", "Mondays", "Wednesdays")
    memories = said(*(f"We deploy the hub on {day} now" for day in days))
    texts = [memory.content for memory in reversed(memories)]
    third, second, first = memories
    ended = {
        older.id: [
            EndedStatement(
                at=newer.created_at,
                by=newer.id,
                reason="now",
                sentence=older.content,
                successor=newer.content,
            )
        ]
        for newer, older in pairwise(memories)
    }

    for chosen in permutations(memory.id for memory in memories):
        (line,) = told(memories, *chosen, ended=ended)

        assert line == (
            f"- [{third.created_at:%F}, user] {texts[2]} "
            f"(until {third.created_at:%F}: [{second.created_at:%F}, user] {texts[1]}) "
            f"(until {second.created_at:%F}: [{first.created_at:%F}, user] {texts[0]})"
        )


ALIKE: dict[str, Any] = {"cosines": {("m0", "m5"): 0.7}, "endings": {("m0", "m5"): 0.0}}


def test_a_rule_has_no_successor_by_the_vector_of_its_message_alone() -> None:
    message = "We deploy the hub on Thursdays at ten. Always keep your answers short."
    memories = said(message, *OTHERS, "no longer on Thursdays, Tuesdays from now on")
    older = memories[-1]
    rule_of_days, rule = (
        replace(quote(older), id=f"rule-{number}", text=text, memory=older.id)
        for number, text in enumerate(message.split(". "))
    )
    finder = finder_of(memories, **ALIKE)

    rules = InjectedSection("Rules:", [rule_of_days, rule], 2_000)
    (section,) = finder.put_newest_first([rules])

    lines = [
        [each.text, *(old.text for old in each.related)] for each in section.quotes
    ]
    assert lines == [[memories[0].content, rule_of_days.text], [rule.text]]


def test_one_rule_of_several_in_a_message_is_not_told_as_an_earlier_one() -> None:
    rule = "A webhook arrives up to seven times, so handlers must be idempotent."
    message = f"The webhook of the bank goes to port 8443. {rule}"
    moved = "From now on the webhook listens on 9090."
    memories = said(message, *OTHERS, moved)
    older = memories[-1]
    finder = finder_of(memories, **ALIKE)
    learned = replace(quote(older), id="rule", text=rule, memory=older.id)

    (section,) = finder.put_newest_first([InjectedSection("R:", [learned], 2_000)])

    (told,) = section.quotes
    assert [told.text, *(each.text for each in told.related)] == [rule, moved]


def test_a_part_of_an_identifier_names_the_subject() -> None:
    older = find_subject("images get pushed to registry.lumo.example")

    assert older & find_subject("the registry is read only") == {"registri"}
    assert {"registry.lumo.example", "lumo"} <= older
    assert find_subject("version 2.14 of m6i.xlarge") >= {"2.14", "xlarg"}


def test_a_line_that_is_more_like_others_is_no_successor() -> None:
    older, newer = "the oven in the plaza runs on gas", "the mixer has a steel bowl"
    memories = said(older, *OTHERS, newer)
    pair = {("m0", "m5"): 0.4}
    alike = pair | {(f"m{n}", "m5"): 0.6 for n in range(1, 5)}

    assert "later" in told(memories, "m0", cosines=pair)[0]
    assert told(memories, "m0", cosines=alike) == [f"- [2026-03-17, user] {older}"]


def test_what_is_added_within_an_hour_does_not_make_a_decision_an_earlier_one() -> None:
    decided = "We decided: round VAT per invoice line, half up, never on the total."
    added = "The rounding goes into billing/vat.py, and Mila reviews it."
    memories = said(decided, *OTHERS, added)
    near = {("m0", "m5"): 0.32}
    (line,) = told(memories, "m0", cosines=near)
    assert "later" in line

    soon = [replace(memories[0], created_at=NOON + timedelta(minutes=1)), *memories[1:]]

    assert told(soon, "m0", cosines=near) == [f"- [2026-03-17, user] {decided}"]


@each_case(("older", "newer"), [
    ("the flag is ledger_v2", "the dashboard is called till now"),
    ("die Küche ist aus Eiche", "Der Umzug rutscht, weil der Zug später kommt"),
    ("settlement cutoff is 17:00", "we now keep idempotency keys for a week"),
])  # fmt: skip
def test_statements_about_something_else_are_told_apart(older: str, newer: str) -> None:
    assert len(told(said(older, *OTHERS, newer), "m0", "m5")) == 2


def test_meaning_finds_a_successor_in_other_words_and_another_language() -> None:
    older, newer = "las paredes van en color arena", "the walls become sage green"
    memories = said(older, *OTHERS, newer)

    apart = told(memories, "m0", cosines={("m0", "m5"): 0.15})
    near = told(memories, "m0", cosines={("m0", "m5"): 0.4})
    together = told(
        memories, "m0", cosines={("m0", "m5"): 0.6}, endings={("m0", "m5"): 1.0}
    )

    assert apart == [f"- [2026-03-17, user] {older}"]
    assert near == [f"- [2026-03-17, user] {older} (later: [2026-03-22, user] {newer})"]
    assert together == [
        f"- [2026-03-22, user] {newer} (earlier: [2026-03-17, user] {older})"
    ]


def test_only_news_on_health_is_told_with_an_allergy() -> None:
    allergy = "Mia is allergic to peanuts"
    lesson = said(allergy, *OTHERS, "Mia moved her piano lesson to Fridays")
    outgrown = said(allergy, *OTHERS, "Mia has outgrown her allergy to peanuts")
    nuts = "Ida verträgt leider keine Haselnüsse"
    swimming = said(nuts, *OTHERS, "Ida hat jetzt freitags Schwimmen")
    near = {("m0", "m5"): 0.6}

    assert told(lesson, "m0", cosines=near) == [f"- [2026-03-17, user] {allergy}"]
    assert told(swimming, "m0", cosines=near) == [f"- [2026-03-17, user] {nuts}"]
    assert told(outgrown, "m0", cosines=near) == [
        told_behind(outgrown[0], outgrown[-1])
    ]


def test_a_statement_of_two_facts_is_told_behind_what_followed_on_either() -> None:
    older = "the hearing is on 3 June before Judge Amsel"
    hearing = "the court moved the hearing to 17 June"
    judge = "Judge Amsel is ill, Judge Wirth hears the case now"
    memories = said(older, *OTHERS, hearing, judge)

    cosines = {("m0", "m5"): 0.4, ("m0", "m6"): 0.4}

    assert told(memories, "m0", cosines=cosines) == [
        told_behind(memories[0], memories[1], memories[-1])
    ]


def test_a_doubtful_successor_is_told_behind_the_line_that_it_most_likely_changed() -> (
    None
):
    walls = "las paredes van en color arena"
    memories = said(*OTHERS, walls, "the walls become sage green")
    cosines = {("m4", "m5"): 0.48, ("m3", "m5"): 0.4}

    both = told(memories, "m3", "m4", cosines=cosines)
    one = told(memories, "m3", cosines=cosines)

    assert ["later" in line for line in both] == [False, True]
    assert "later" in one[0]


@each_case(("older", "newer", "mark"), [
    ("I pick up the kids on Mondays", "I pick up the kids on Tuesdays", "earlier"),
    ("I pick up the kids on Mondays", "this week I pick up the kids on Friday", "later"),
    ("Das WLAN heißt Rose", "Das WLAN heißt Tulpe", "earlier"),
    ("the wifi is called Rose", "the guest wifi is called Tulip", "later"),
    ("we meet Karim on Friday evening", "we meet Sofia on Saturday evening", "later"),
    ("we meet on Fridays at 9 in Lyon", "we meet on Mondays at 8 in Lyon", "earlier"),
    ("the den is set to 20 degrees", "in winter the den is set to 23 degrees", "later"),
    ("the spare key is in the hall", "my sister's spare key is in the den", "later"),
    ("La bici è in cantina", "La bici di Marta è in garage", "later"),
    ("the retro is on Fridays at 10", "we keep the retro on Fridays unchanged", "later"),
    ("the mail service listens on port 6060", "the panel listens on port 6061", "later"),
    ("the mail service listens on port 6060", "the service listens on port 6061", "earlier"),
    ("op dinsdag doe ik intervallen", "de intervallen blijven zo", "later"),
    ("the limit of the export is 300", "the limit of the export stays at 500", "earlier"),
])  # fmt: skip
def test_an_exception_or_a_part_is_told_behind_what_still_applies(
    older: str, newer: str, mark: str
) -> None:
    memories, pair = said(older, *OTHERS, newer), ("m0", "m5")

    [line] = told(memories, "m0", endings={pair: 2.0}, cosines={pair: 0.6})

    assert f"({mark}: [" in line


@each_case(("rules", "sure", "doubtful"), [
    ([], "earlier", "later"),
    (["m0"], "later", "later"),
    (["m5"], "earlier", ""),
    (["m0", "m5"], "earlier", "later"),
])  # fmt: skip
def test_a_fact_is_never_told_before_a_rule_and_a_rule_only_if_sure(
    rules: Sequence[str], sure: str, doubtful: str
) -> None:
    memories = said("las paredes van en arena", *OTHERS, "the walls become sage green")
    pair = ("m0", "m5")

    def marks(cosine: float, odds: float) -> list[str]:
        near, ends = {pair: cosine}, {pair: odds}
        [line] = told(memories, "m0", cosines=near, endings=ends, rules=rules)
        return re.findall(r"\((\w+): \[", line)

    assert marks(0.6, 1.0) == [sure]
    assert marks(0.4, -3.0) == list(filter(None, [doubtful]))


@each_case(("older", "mark"), [
    ("Swimming for Tom on Tuesdays, Mia has piano with Mrs. Okafor", "earlier in part"),
    ("Swimming for Tom on Tuesdays. The piano is in the hall", "earlier in part"),
    ("Swimming for Tom on Tuesdays, as the hall is free then", "earlier"),
    ("Swimming for Tom on Tuesdays", "earlier"),
])  # fmt: skip
def test_an_older_line_of_two_statements_is_replaced_in_part(
    older: str, mark: str
) -> None:
    memories = said(older, *OTHERS, "Tom's swimming moved to Wednesday")

    [line] = told(memories, "m0", endings={("m0", "m5"): 2.0})

    assert f"({mark}: [" in line


def attempts(*numbers: int) -> list[MemoryRecord]:
    """Statements of one value each, the oldest last, behind others."""
    values = [f"the number of attempts for a webhook is {n} now" for n in numbers]
    return said(*values, *OTHERS)


def test_of_several_values_the_newest_is_told() -> None:
    memories = attempts(7, 5, 4)

    assert told(memories, "m0", "m1") == [told_behind(*memories[-3:])]


REVIEWER, NEW_REVIEWER = "Ines reviews the ledger", "Tobias does it from now on"
REVIEWERS = said(REVIEWER, *OTHERS, NEW_REVIEWER)


def test_an_ended_statement_is_told_with_its_end_and_successor() -> None:
    ended = ends("m0", REVIEWER, NEW_REVIEWER)
    dropped, reworded = edits_of("m5", dropped=True), edits_of("m5", text="Tobias now")

    assert told(REVIEWERS, "m0", ended=ended) == [
        f"- [2026-03-22] {NEW_REVIEWER} (until 2026-03-22: [2026-03-17, user] {REVIEWER})"
    ]
    assert told(REVIEWERS, "m0", ended=ended, edits=dropped) == [
        f"- [2026-03-17, user] {REVIEWER}"
    ]
    (line,) = told(REVIEWERS, "m0", ended=ended, edits=reworded)
    assert line.startswith("- [2026-03-22] Tobias now (until ")


def test_what_changes_later_is_told_with_the_day_until_which_the_older_line_applies() -> (
    None
):
    older, newer = "we pay 64 euros for power", "we pay 68 euros for power from July"
    memories = said(older, *OTHERS, newer)

    assert told(memories, "m0", cosines={("m0", "m5"): 0.9}) == [
        f"- [2026-03-22, user] {newer} (until 2026-07-01: [2026-03-17, user] {older})"
    ]


REDIS, POSTGRES = "we take Redis for the queue", "we drop Redis, events go to Postgres"
QUEUES = said(REDIS, *OTHERS, POSTGRES)


@each_case(("ended_id", "why", "older"), [
    ("m0", "ended an older line (pinned)", "pinned, until 2026-03-22"),
    ("m1", "newer than a line like it (pinned)", "pinned, earlier"),
])  # fmt: skip
def test_a_successor_and_an_older_line_have_their_own_origin_and_reason(
    ended_id: str, why: str, older: str
) -> None:
    sources = {"m0": "claude-code", "m5": "codex"}
    memories = [replace(each, source=sources.get(each.id)) for each in QUEUES]

    injected = inject(memories, ["m0"], ended=ends(ended_id, REDIS, POSTGRES))

    assert [(line.text, line.reason) for line in injected.lines] == [
        (f"[2026-03-22, codex, user] {POSTGRES}", why),
        (f"[2026-03-17, claude-code, user] {REDIS}", older),
    ]


def test_an_older_quote_is_told_with_the_newer_one_of_an_earlier_section() -> None:
    injected = inject(QUEUES, ["m5"], ["m0", "m1"])

    line = told_behind(QUEUES[0], QUEUES[-1])
    assert f"Section 0:\n{line}\nSection 1:\n- [2026-03-18, user]" in injected.text
    assert [each.id for each in injected.lines] == ["m5", "m0", "m1"]


def test_a_likely_successor_is_told_once_behind_the_line_that_it_changed() -> None:
    older, newer = "las paredes van en color arena", "the walls become sage green"
    memories = said(older, *OTHERS, newer)

    def inject_at(cosine: float) -> str:
        return inject(
            memories, ["m5"], ["m1", "m0"], cosines={("m0", "m5"): cosine}
        ).text

    both = f"- [2026-03-17, user] {older} (later: [2026-03-22, user] {newer})"
    other = told_behind(memories[-2])
    assert f"Section 0:\n{both}\nSection 1:\n{other}\n<" in inject_at(0.48)
    apart = f"Section 0:\n{told_behind(memories[0])}\nSection 1:\n{other}\n{both}"
    assert apart in inject_at(0.4)


def test_an_ended_sentence_of_a_line_that_says_more_is_marked_in_its_place() -> None:
    pnpm, now = "In this repo we use pnpm 8.", "we use pnpm 9 in this repo now"
    memories = said(f"Changelog entries are in German, in news/. {pnpm}", *OTHERS, now)

    [line] = told(memories, "m0", ended=ends("m0", pnpm, now))

    assert f"in news/. (until 22 March 2026: {pnpm}) (later: [" in line
    assert line.endswith(f"{now})")


def test_a_quote_is_left_out_if_the_agent_has_the_newest_on_its_subject() -> None:
    memories = attempts(7, 5, 4)

    assert told(memories, "m0", "m3", known=["m2"]) == told(memories, "m3")
    newest, oldest = memories[-3], memories[-1]
    assert told(memories, "m0", known=["m1"]) == [told_behind(newest, oldest)]


def test_a_quote_that_may_still_apply_is_told_beside_what_the_agent_has() -> None:
    older, newer = "las paredes van en color arena", "the walls become sage green"
    memories = said(older, *OTHERS, newer)

    def told_at(cosine: float) -> list[str]:
        cosines, endings = {("m0", "m5"): cosine}, {("m0", "m5"): 0.0}
        return told(memories, "m0", cosines=cosines, endings=endings, known=["m5"])

    assert told_at(0.2) == [f"- [2026-03-17, user] {older}"]
    assert told_at(0.5) == told_at(0.7) == []


def test_three_older_quotes_at_most_are_told_behind_a_newer_one() -> None:
    memories = attempts(4, 5, 6, 7, 8)

    (line,) = told(memories, "m0", "m1", "m2", "m3")

    assert line.startswith(f"{told_behind(memories[-5])} (earlier: ")
    assert line.count("(earlier: ") == 3


def test_successors_are_found_among_the_newest_statements() -> None:
    memories = said(*(f"the ticket {n} is about the label" for n in range(900)))
    compared: list[Sequence[str]] = []

    def compare(ids: Sequence[str]) -> MemoryComparison:
        compared.append(ids)
        return NOT_COMPARED

    finder = SuccessorFinder(
        list(find_statements(memories)),
        edits=BriefingEdits(),
        endings_of=lambda _: {},
        compare=compare,
    )

    finder.put_newest_first([])

    assert compared == [[each.id for each in memories[:STATEMENTS_MAX]]]


def test_the_end_of_another_sentence_of_a_memory_changes_nothing() -> None:
    memories = said("the head end is run by Dragan of Siemens", *OTHERS)
    ended = ends("m0", "billing is Renate Vogt", "it is Okan")

    assert told(memories, "m0", ended=ended) == [told_behind(memories[-1])]


def test_a_repeated_statement_is_told_once_as_it_was_said_last() -> None:
    proxy = "the proxy listens on port 8443"
    memories = said(proxy, *OTHERS, f"{proxy} behind nginx")

    assert told(memories, "m0") == [told_behind(memories[0])]


def test_a_dropped_successor_is_none_and_a_reworded_one_has_new_words() -> None:
    dropped, reworded = (
        edits_of("m5", dropped=True),
        edits_of("m5", text="Postgres it is"),
    )

    assert told(QUEUES, "m0", edits=dropped) == [told_behind(QUEUES[-1])]
    (line,) = told(QUEUES, "m0", edits=reworded)
    assert line.startswith("- [2026-03-22, user] Postgres it is (earlier: ")


LONG = InjectedQuote(id="a", text="a" * 200, said=NOON)
OLDER, LATER = (
    replace(LONG, id=id, said=NOON + timedelta(days=days))
    for id, days in (("c", -1), ("b", 1))
)


NEW = replace(LONG, id="m", text="Postgres", related=(LONG, OLDER))
AFTER = replace(LONG, id="n", text="Amounts are integer cents.")


@each_case(("lines", "chars_max", "ids"), [
    ([NEW], 600, "mac"),
    ([NEW], 400, "ma"),
    ([NEW], 100, "m"),
    ([NEW], 20, ""),
    ([replace(LONG, related=(LATER, OLDER))], 800, "abc"),
    ([replace(LONG, related=(LATER, OLDER))], 500, "ab"),
    ([replace(LONG, related=(LATER, OLDER))], 300, ""),
    ([replace(NEW, related=(OLDER,)), AFTER], 280, "mn"),
])  # fmt: skip
def test_quotes_that_do_not_fit_are_left_out_the_older_first_and_none_without_its_later_one(
    lines: list[InjectedQuote], chars_max: int, ids: str
) -> None:
    section = InjectedSection("Pinned:", lines, chars_max, line_chars_max=300)

    injected = assemble_sections([section], chars_max=3_000)

    assert [each.id for each in injected.lines] == [*ids]


def order(
    *found: tuple[str, float],
    role: str = "user",
    near: float = 0.6,
    last: float = 1.0,
    side: float = 1.0,
) -> list[int]:
    """The order of results, each a text said on a day of the month, of which two are so near.

    The last result has the score `last`, and that of its line is `side` of the best line's.
    """
    matches = [
        Match(
            number,
            1.0,
            "work",
            role=role,
            content=text,
            created_at=NOON + timedelta(days=day),
        )
        for number, (text, day) in enumerate(found)
    ]
    results = [RankedResult(1.0, memory=match.position) for match in matches]
    lines = ((99, 1.0), (len(results) - 1, side))
    results[-1] = RankedResult(last, None, len(results) - 1, lines)
    comparison = MemoryComparison(
        lambda one: {
            str(n): near if {one, str(n)} == {"0", "2"} else 0.1 for n in range(9)
        },
        lambda *_: 1.0,
    )
    ordered = put_successors_first(results, matches, lambda _: comparison)
    return [result.main_position for result in ordered]


def test_a_newer_result_is_put_before_the_first_result_that_it_replaced() -> None:
    older = ("las paredes van en color arena", 0)
    newer = ("the walls become sage green", 9)
    between = [(text, 3) for text in OTHERS]

    assert order(older, between[0], newer, *between[1:]) == [2, 0, 1, 3, 4, 5]
    assert order(newer, between[0], older, *between[1:]) == [0, 1, 2, 3, 4, 5]
    assert order(older, between[0], newer, *between[1:], near=0.15)[0] == 0
    assert order(older, between[0], newer, *between[1:], role="Mila")[0] == 0


@pytest.mark.parametrize(("last", "side"), [(0.2, 1.0), (1.0, 0.5)])
def test_a_newer_result_stays_behind_that_says_little_about_the_question(
    last: float, side: float
) -> None:
    older, other = ("las paredes van en color arena", 0), (OTHERS[0], 3)
    newer = ("the walls become sage green", 9)

    assert order(older, other, newer, last=last, side=side) == [0, 1, 2]
    assert order(older, other, newer, last=0.3, side=0.7) == [2, 0, 1]


def test_a_short_text_without_a_role_counts_as_a_statement() -> None:
    older = ("las paredes van en color arena", 0)
    record = (f"{older[0]}, {'como siempre, ' * 8}dice Eva", 0)
    newer = ("the walls become sage green", 9)

    assert order(older, (OTHERS[0], 3), newer, role="") == [2, 0, 1]
    assert order(record, (OTHERS[0], 3), newer, role="") == [0, 1, 2]


def test_within_an_hour_only_the_same_sentence_with_another_word_is_newer() -> None:
    older, other = ("The frontend is written in Vue.", 0), (OTHERS[0], 0.005)

    changed, added = (
        order(older, other, (text, 0.01), near=0.4)
        for text in (
            "The frontend is written in React.",
            "Its pages are written in Dutch.",
        )
    )

    assert (changed, added) == ([2, 0, 1], [0, 1, 2])
