"""Which learnings matter to a request, and where each applies."""

import tomllib
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

import pytest
from support.cases import each_case
from support.fakes import NOON

from mnemosyned.conversation.learnings.recognize import find_statements
from mnemosyned.conversation.learnings.relevance import (
    find_scope,
    load_topics,
    rank_for_request,
    select_relevant,
)
from mnemosyned.memory.values import Learning, LearningKind, LearningScope

SCOPES_RIGHT_MIN = 0.9


def learning(
    text: str, kind: LearningKind = LearningKind.INSTRUCTION, *, ended: bool = False
) -> Learning:
    return Learning(
        id=text,
        kind=kind,
        text=text,
        created_at=NOON - timedelta(days=30),
        session="default",
        superseded_by="other" if ended else None,
    )


def rate(request: str, texts: Sequence[str]) -> list[float]:
    return [
        0.9 if request == "add a price" and "cents" in text else 0.01 for text in texts
    ]


CENTS = learning("Money is integer cents, never floats.")
TABS = learning("Always use tabs.")
TEA = learning("Prefers tea over coffee", LearningKind.PREFERENCE)


def test_what_is_rated_high_comes_first_and_says_why() -> None:
    ended = learning("Money is integer cents.", ended=True)
    known = [TABS, TEA, CENTS, ended]

    best = rank_for_request(known, "add a price", now=NOON, rate=rate)

    assert best[0].learning == CENTS
    assert best[0].reason == "meaning"
    assert best[0].confidence > 0.5 > best[1].confidence
    assert not best[2].concerns  # tea
    assert len(best) == 3


def test_words_decide_where_nothing_is_or_can_be_rated() -> None:
    tea = rank_for_request([TEA, CENTS], "which green tea is best?", now=NOON)
    tabs = rank_for_request(
        [CENTS, TABS], "use tabs here", now=NOON, rate=lambda *_: ()
    )

    assert tea[0].learning == TEA
    assert tea[0].reason.startswith("words: tea")
    assert tabs[0].learning == TABS


@each_case("request", [
    "¿Cuándo podríamos vernos con el gestor?", "Cosa ceniamo con un ospite di Roma?",
])  # fmt: skip
def test_a_word_such_as_con_says_nothing_of_what_a_request_needs(request: str) -> None:
    examples = learning(
        "Preferisce le spiegazioni con un esempio", LearningKind.PREFERENCE
    )

    [rated] = rank_for_request([examples], request, now=NOON)

    assert (rated.reason, rated.concerns) == ("", False)


@each_case(("request", "confidence"), [
    ("please plot sleep by shift", 0.75), ("remplace le filtre", 0.75), ("vergleiche die Angebote", 0.75),
    ("shorten this", 0.4), ("replace it", 0.4), ("where is the plot?", 0.4),
])  # fmt: skip
def test_a_request_for_new_work_more_likely_needs_a_rule(
    request: str, confidence: float
) -> None:
    [rated] = rank_for_request([TABS], request, now=NOON, rate=lambda *_: [0.4])

    assert rated.confidence == pytest.approx(confidence, abs=0.01)


def test_a_context_shows_what_meaning_finds() -> None:
    shown = select_relevant(
        [CENTS, learning("Prefers prices in cents", LearningKind.PREFERENCE)],
        question="add a price",
        now=NOON,
        budget_tokens=100,
        count=len,
        rate=rate,
    )

    assert {each.id for each in shown} == {CENTS.id, "Prefers prices in cents"}


def test_where_a_learning_applies_is_read_off_its_words() -> None:
    path = Path(__file__).with_name("instructions_whole.toml")
    said = tomllib.loads(path.read_text(encoding="utf-8"))["said"]
    right = [
        find_scope(learning(statement.text, statement.kind)) == each["scope"]
        for each in said
        if "scope" in each
        for statement in find_statements(each["text"])
    ]

    assert len(right) >= 60
    assert sum(right) >= SCOPES_RIGHT_MIN * len(right)


@each_case(("text", "kind", "scope"), [
    ("In this repo we use pnpm.", LearningKind.INSTRUCTION, LearningScope.PROJECT),
    ("Use tabs everywhere.", LearningKind.INSTRUCTION, LearningScope.EVERYWHERE),
    ("Always use tabs.", LearningKind.INSTRUCTION, LearningScope.PROJECT),
    ("Always answer in German.", LearningKind.INSTRUCTION, LearningScope.EVERYWHERE),
    ("Keep answers under ten lines.", LearningKind.INSTRUCTION, LearningScope.EVERYWHERE),
    ("Antworte mir auf Deutsch.", LearningKind.INSTRUCTION, LearningScope.EVERYWHERE),
    ("Explain Swift to me slowly.", LearningKind.INSTRUCTION, LearningScope.EVERYWHERE),
    ("Always answer in Spanish here.", LearningKind.INSTRUCTION, LearningScope.PROJECT),
    ("Answer me here in Spanish.", LearningKind.INSTRUCTION, LearningScope.EVERYWHERE),
    ("Answer clients within a day.", LearningKind.INSTRUCTION, LearningScope.PROJECT),
    ("We answer in three lines.", LearningKind.INSTRUCTION, LearningScope.PROJECT),
    ("No emojis in tickets.", LearningKind.INSTRUCTION, LearningScope.PROJECT),
    ("Antworten an Kunden kurz.", LearningKind.INSTRUCTION, LearningScope.PROJECT),
    ("Invoices are in English.", LearningKind.INSTRUCTION, LearningScope.PROJECT),
    ("The thesis is in LaTeX, British spelling everywhere.", LearningKind.INSTRUCTION, LearningScope.PROJECT),
    ("Das Handbuch ist auf Deutsch, überall mit Sie.", LearningKind.INSTRUCTION, LearningScope.PROJECT),
    ("The answers are short everywhere.", LearningKind.INSTRUCTION, LearningScope.EVERYWHERE),
    ("Tabs here, spaces everywhere else.", LearningKind.INSTRUCTION, LearningScope.PROJECT),
    ("Prefers tea", LearningKind.PREFERENCE, LearningScope.EVERYWHERE),
    ("Prefers tabs in this project", LearningKind.PREFERENCE, LearningScope.PROJECT),
])  # fmt: skip
def test_an_instruction_applies_in_its_project_unless_it_says_otherwise(
    text: str, kind: LearningKind, scope: LearningScope
) -> None:
    assert find_scope(learning(text, kind)) is scope


def test_each_topic_has_several_examples() -> None:
    assert all(len(examples) >= 2 for examples in load_topics().values())
