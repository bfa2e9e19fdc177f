from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given, strategies as st
from support.cases import each_case, read_cases
from support.fakes import NOON

from mnemosyned.conversation.learnings.comparison import (
    ActiveLearnings,
    LearningKeeper,
    is_contradiction,
    is_repetition,
    parse_meaning,
)
from mnemosyned.conversation.learnings.recognize import find_statements
from mnemosyned.conversation.learnings.relevance import select_relevant
from mnemosyned.memory.values import Learning, LearningKind
from mnemosyned.text.endings.rating import find_ending
from mnemosyned.text.token_counts import Chars4

CASES = read_cases("conflicts")


def learning(text: str, *, days_ago: float = 0, kind: str | None = None) -> Learning:
    said = find_statements(text)
    return Learning(
        id=text,
        kind=LearningKind(kind or (said[0].kind if said else "instruction")),
        text=text,
        created_at=NOON - timedelta(days=days_ago),
        session="default",
    )


def superseded(new: Learning, older: list[Learning]) -> list[Learning]:
    return ActiveLearnings(older, limit=300).find_conflicts(new)


def shown(
    learnings: list[Learning], question: str, budget_tokens: int = 1_000
) -> list[Learning]:
    return select_relevant(
        learnings,
        question=question,
        now=NOON,
        budget_tokens=budget_tokens,
        count=Chars4().count,
    )


def same(one: str, other: str) -> bool:
    return bool(
        ActiveLearnings([learning(other)], limit=300).find_same_wording(learning(one))
    )


@each_case(("old", "new"), CASES["the_newer_takes_the_place_of_what_it_contradicts"])
def test_the_newer_takes_the_place_of_what_it_contradicts(old: str, new: str) -> None:
    assert superseded(learning(new), [learning(old, days_ago=1)])


@each_case(("old", "new"), [
    ("Always use tabs.", "Always run the tests."),
    ("Never push to main.", "Never use emojis."),
    ("Never use emojis in commit messages.", "Use emojis in chats from now on."),
    ("I prefer short answers.", "I prefer long walks."),
    ("Always use spaces.", "Never use tabs."),
    ("Call me Bob.", "Always call the API twice."),
    ("My favorite editor is Vim.", "My favorite color is green."),
    ("From now on answer in German.", "Never write German comments in code."),
    ("Always answer in English.", "Always cite your sources."),
    ("I prefer window seats.", "I prefer dark mode."),
    ("Never delete files.", "Never delete branches."),
    ("Always sign letters to Anna with love.", "Never mention Anna."),
])  # fmt: skip
def test_compatible_learnings_both_stay(old: str, new: str) -> None:
    assert not superseded(learning(new), [learning(old, days_ago=1)])


@each_case(("old", "new", "replaces"), [
    ("Prefers plain SQL over ORMs", "Would rather use plain SQL than an ORM", True),
    ("Prefers dense tables and small type", "Likes small type and dense tables", True),
    ("Doesn't like Alpine images", "Is not a fan of Alpine images", True),
    ("Prefers tabs", "Prefers spaces", True),
    ("Keep it under 100 KB", "Keep it under 200 KB", True),
    ("Favourite editor is Vim", "Favourite editor is Helix", True),
    ("Prefers ORMs", "Is not a fan of ORMs", True),
    ("Bevorzugt kurze Antworten", "Bevorzugt lange Antworten", True),
    ("Prefers tea over coffee", "Prefers tea in glasses over tea in cups", False),
    ("Likes short functions", "Likes short functions with typed arguments", False),
    ("Prefers trains over planes", "Prefers trains over buses", False),
    ("Doesn't like Alpine images", "Doesn't like stock images", False),
])  # fmt: skip
def test_a_preference_in_other_words_takes_the_place_of_the_older(
    old: str, new: str, *, replaces: bool
) -> None:
    older = learning(old, days_ago=1, kind="preference")

    found = superseded(learning(new, kind="preference"), [older])

    assert found == [older] * replaces


MISSED = pytest.mark.xfail(strict=True, reason="words alone miss it")


@pytest.mark.parametrize(("old", "new"), [
    ("Always use spaces.", "actually, use tabs"),
    ("Answer me in German from now on.", "You can answer in English again."),
    ("Never use emoji.", "emoji are ok from now on"),
    ("Branch names are team-ticket-slug.", "Branch names are no longer team-ticket-slug."),
    pytest.param("money is integer cents everywhere, never floats",
                 "money is decimal strings from now on, not integer cents", marks=MISSED),
    ("Has a strong preference for aisle seats", "Prefers window seats these days"),
    ("In this repo we use pnpm.", "In this repo we don't use pnpm any more."),
])  # fmt: skip
def test_an_order_that_ends_another_takes_its_place(old: str, new: str) -> None:
    assert superseded(learning(new), [learning(old, days_ago=1)])


class Keeper(LearningKeeper):
    """A keeper in memory."""

    def __init__(self, *known: Learning) -> None:
        super().__init__()
        self.known = list(known)

    def read(self, source: str | None, *, limit: int) -> list[Learning]:
        del source
        return self.known[:limit]

    def insert(self, learning: Learning, *, superseded: Sequence[str]) -> None:
        del superseded
        self.known.append(learning)

    def leave_out_others(
        self, learning: Learning, conflicts: Sequence[Learning]
    ) -> Sequence[Learning]:
        del learning
        return conflicts


def test_a_correction_is_kept_only_where_it_corrects_something() -> None:
    correction = learning("actually, use tabs")
    corrected = Keeper(learning("Always use spaces.", days_ago=1))
    lonely = Keeper(learning("Never force push.", days_ago=1))

    assert corrected.keep(correction) == (correction, ["Always use spaces."])
    assert lonely.keep(correction) == (correction, [])
    assert correction in corrected.known
    assert correction not in lonely.known


def test_two_rules_of_one_message_both_stay_unless_one_contains_the_other() -> None:
    old = replace(learning("Never push to main."), memory="said")
    both = "Never push to main. Always push hotfixes to the release branch first, then ask me."
    other = both.removeprefix("Never push to main. ")

    assert superseded(replace(learning(other), memory="said"), [old]) == []
    assert superseded(replace(learning(both), memory="said"), [old]) == [old]
    assert superseded(replace(learning("Please ask me."), memory="said"), [old]) == []


def shown_for(question: str, *texts: str) -> list[str]:
    """Texts of the preferences that are shown for a question."""
    known = [learning(text, kind="preference") for text in texts]
    return [each.text for each in shown(known, question, budget_tokens=200)]


def test_a_preference_is_shown_where_it_matters_and_nowhere_else() -> None:
    sql = "Prefers plain SQL over an ORM"
    guesthouses = "Prefers small guesthouses to big hotels"
    tone = "Without too much flowery language"
    known = (sql, guesthouses, tone)

    assert shown_for("Which hotel in Lisbon?", *known) == [guesthouses, tone]
    assert shown_for("How do I model the orders table?", *known) == [tone]
    assert shown_for("Write the query of this API", *known) == [sql, tone]
    assert shown_for("What is the capital of Peru?", *known) == [tone]


def test_an_instruction_about_another_field_is_not_shown() -> None:
    tabs = learning("Always use tabs.")
    asking = learning("Never delete files without asking me.")

    assert shown([tabs, asking], "What could I cook for dinner?", 100) == [asking]
    both = shown([tabs, asking], "Write a function", 100)
    assert {each.id for each in both} == {tabs.id, asking.id}


def test_a_user_does_not_overrule_a_lesson_and_marks_make_no_other_words() -> None:
    lesson = learning("Always use tabs.", kind="lesson")

    assert not superseded(learning("Always use spaces."), [lesson])
    assert same("Never use emojis!", "never use  emojis")
    assert not same("Never use emojis", "Never use tables")


def test_what_matches_the_question_comes_first_and_then_the_most_recent() -> None:
    old = learning("Always quote invoices in euros.", days_ago=300)
    new = learning("Never use emojis.", days_ago=1)
    older = learning("Always cite your sources.", days_ago=90)

    assert shown([older, new, old], "Write the invoice for March") == [old, new, older]
    assert shown([older, new, old], "Hello") == [new, older, old]


def test_superseded_learnings_and_those_beyond_the_budget_or_five_are_not_shown() -> (
    None
):
    long = learning("Always " + "very " * 100 + "politely decline.", days_ago=1)
    short = learning("Never use emojis.", days_ago=2)
    gone = replace(learning("Call me Robert.", kind="name"), superseded_by="x")
    many = [learning(f"Never use word{at}.", days_ago=at) for at in range(9)]

    assert shown([long, short, gone], "emojis", budget_tokens=10) == [short]
    assert shown(many, "anything") == many[:5]


WORDS = st.sampled_from(
    "Always Never use write tabs spaces english german short long tea coffee over instead of "
    "my favorite editor is vim helix call me Bob Ada prefer I emojis in commits , not".split()
)
STATED = st.lists(WORDS, min_size=1, max_size=7).map(" ".join)


KINDS = st.sampled_from(LearningKind)


def shares_subject(new: Learning, old: Learning) -> bool:
    ours, theirs = parse_meaning(new.text), parse_meaning(old.text)
    return not theirs.subject.isdisjoint(ours.subject | ours.rejected)


@given(st.lists(st.tuples(STATED, KINDS), max_size=12), STATED, KINDS)
def test_the_index_finds_the_same_conflicts_as_comparing_each_pair(
    older: list[tuple[str, LearningKind]], text: str, kind: LearningKind
) -> None:
    numbered = enumerate(older)
    known = [replace(learning(old, kind=of), id=str(at)) for at, (old, of) in numbered]
    new = replace(learning(text, kind=kind), id="new")

    together = {one.id for one in superseded(new, known)}

    each = {
        one.id
        for one in known
        if is_contradiction(new, one)
        or is_contradiction(one, new)
        or is_repetition(new, one)
        or (shares_subject(new, one) and find_ending(one.text, new.text))
    }
    assert together == each | {one.id for one in known if same(new.text, one.text)}


def test_only_the_newest_are_held_against_others() -> None:
    holding = ActiveLearnings([], limit=2)
    for at in range(3):
        holding.add(learning(f"Always use tabs in file {at}.", days_ago=3 - at))

    found = holding.find_conflicts(learning("Always use spaces in file 0."))

    assert [one.text for one in found] == []
    assert len(holding.find_same_wording(learning("Always use tabs in file 2."))) == 1
