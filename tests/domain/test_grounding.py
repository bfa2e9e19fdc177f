"""The check of a model's summary against its sources, and the sentences that pass it."""

import tomllib
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from support.cases import each_case
from support.fakes import said_in_turn

from mnemosyned.summary.grounding.check import (
    GroundingFault,
    SummaryProblem,
    check_grounding,
    is_confirmed,
    select_grounded_sentences,
)

DATASETS = Path(__file__).parents[1] / "support" / "datasets"
NOON = datetime(2023, 5, 8, 12, tzinfo=UTC)


pieces = partial(said_in_turn, since=NOON)


CASES = tomllib.loads((DATASETS / "grounding.toml").read_text("utf-8"))
SOURCES = {name: pieces(*said) for name, said in CASES["sources"].items()}
ENGLISH = SOURCES["english"]


def check_case(sources: str, summary: str) -> list[GroundingFault]:
    """The faults of a summary that may be as long as its sources."""
    chars = sum(len(piece.content) for piece in SOURCES[sources])
    found = check_grounding(summary, SOURCES[sources], chars_max=chars)
    return [problem.kind for problem in found]


@each_case(("sources", "summary"), CASES["good"].values())
def test_a_grounded_summary_is_accepted(sources: str, summary: str) -> None:
    assert check_case(sources, summary) == []


@each_case(("sources", "summary", "kind"), CASES["bad"].values())
def test_an_invented_summary_is_refused(sources: str, summary: str, kind: str) -> None:
    assert kind in check_case(sources, summary)


def test_a_problem_names_the_offending_item() -> None:
    verdict = check_grounding("Peter agreed to 77 printers.", ENGLISH, chars_max=500)

    assert {problem.item for problem in verdict} == {"Peter", "77"}
    assert [str(problem.kind) for problem in verdict] == ["number", "name"]


def test_yesterday_depends_on_where_it_was_said() -> None:
    late = datetime(2023, 5, 8, 23, 30, tzinfo=UTC)
    said = pieces("The boiler was repaired yesterday by the landlord.", since=late)
    summary = "The landlord repaired the boiler on 8 May 2023, and they said so on 9 May 2023."

    assert (
        check_grounding(summary, said, chars_max=500, zone=ZoneInfo("Asia/Tokyo")) == ()
    )
    assert check_grounding(summary, said, chars_max=500)


def test_a_group_in_two_languages_may_be_summed_up_in_either() -> None:
    both = [*ENGLISH, *SOURCES["german"]]
    summary = "Das Treffen ist in Hamburg und die Sicherung ist ausgefallen, weil der Speicher voll war."

    assert check_grounding(summary, both, chars_max=500) == ()


@pytest.mark.thorough
@each_case("run", ["1", "1.", "1,", "a1-", "/a", "1:", "8 May ", "漢", "Aa", "."])
def test_endless_runs_are_read_without_failing(run: str) -> None:
    endless = run * 1_500

    check_grounding(endless, ENGLISH, chars_max=20_000)
    sources = pieces(("user", f"Hello. {endless}"))
    assert check_grounding("Hello.", sources, chars_max=50) == ()


WHEN = datetime(2023, 5, 8, 13, 56, tzinfo=UTC)
OUTDOORS = pieces(
    ("Ana", "I bought a green kayak in Oslo. I never sold the canoe."),
    ("Ben", "I rented a cabin near Bergen for the summer."),
    since=WHEN,
)


def problems(text: str) -> Sequence[SummaryProblem]:
    return check_grounding(text, OUTDOORS, chars_max=400)


salvaged = partial(
    select_grounded_sentences, judge=problems, sources=OUTDOORS, chars_max=400
)


@each_case(("answer", "left"), [
    ("Ana bought a green kayak in Oslo. She paid 900 euros. Ben rented a cabin.",
     "Ana bought a green kayak in Oslo. Ben rented a cabin."),
    # It is cut where it begins to repeat.
    ("Ben rented a cabin. Ana bought a kayak. Ben rented a cabin. Ana sold it.",
     "Ben rented a cabin. Ana bought a kayak."),
    # Without a fault in a sentence nothing is gained.
    ("Ana bought a green kayak in Oslo.", ""),
])  # fmt: skip
def test_only_the_invented_sentence_is_dropped(answer: str, left: str) -> None:
    assert salvaged(answer) == left


@each_case(("sentence", "confirmed"), [
    ("Ana never sold the canoe.", True),
    ("Ben rented a cabin near Bergen.", True),
    ("Ben bought a green kayak.", False),
    ("Ana sold the canoe.", False),
    ("Ana never bought a green kayak.", False),
    ("Ana bought a green kayak for her brother.", False),
    ("Ben rented a kayak near Bergen in the summer.", False),
    ("They talked.", False),
])  # fmt: skip
def test_what_nobody_said_is_in_doubt(sentence: str, *, confirmed: bool) -> None:
    assert is_confirmed(sentence, OUTDOORS) is confirmed
