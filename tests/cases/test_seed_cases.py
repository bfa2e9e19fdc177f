"""The seeds' cases: what is given goes to the public functions, what is expected must come out."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cases import conversations, memories, sleeping
from cases.dsl import Given, Holds, compare

PURE: dict[str, Callable[[Given], dict[str, Any]]] = {
    "assemble": conversations.assemble,
    "budget": conversations.budget,
    "consolidate": conversations.consolidate,
    "consolidate_memories": memories.items_consolidated,
    "consolidate_repeat": conversations.consolidate_repeat,
    "details": memories.details,
    "estimate_tokens": conversations.estimate,
    "extract_facts": conversations.facts,
    "memory_trigger": memories.memory_trigger,
    "pyramid": memories.pyramid,
    "rounds": conversations.rounds,
    "rounds_repeat": conversations.rounds,
    "rounds_trigger": conversations.rounds_trigger,
    "should_consolidate": conversations.should_consolidate,
}
STORED = {"sleep": sleeping.sleep, "working_cap": sleeping.working_cap}


def test_case(case: dict[str, Any], request: pytest.FixtureRequest) -> None:
    given, op = Given(case["given"]), case["op"]

    found = STORED[op](given, request) if op in STORED else PURE[op](given)

    assert compare(found, case["expect"]) == []
    assert given.unread == [], "no runner reads what is given"


# ------------------------------------------------------------ the runner itself


def test_all_the_cases_are_here() -> None:
    cases = json.loads((Path(__file__).parent / "seed_cases.json").read_text())["cases"]

    assert len(cases) == 142
    assert {case["op"] for case in cases} == PURE.keys() | STORED.keys()


def test_a_case_without_a_runner_fails() -> None:
    given = Given({"asked": 1, "unheard": 2})
    given("asked")

    assert given.unread == ["unheard"]
    assert compare({"count": 1}, {"count": 1, "unheard": 2}) == [
        "unheard: no runner knows this expectation"
    ]


def test_a_failed_expectation_is_reported() -> None:
    found = {"count": 1, "flag": True, "most": Holds(lambda most: most >= 5, 5)}

    assert compare(found, {"count": 1, "flag": True, "most": 6}) == []
    assert compare(found, {"count": 2}) == ["count: wanted 2, found 1"]
    assert compare(found, {"count": True}) == ["count: wanted True, found 1"]
    assert compare(found, {"most": 4}) == ["most: wanted 4, found 5"]
    assert compare(found, {"count_max": 1, "count_min": 1}) == []
    assert compare(found, {"count_max": 0}) == ["count_max: wanted 0, found 1"]
    text = {"text": "tea"}
    assert compare(text, {"text_contains": "te", "text_not_contains": "x"}) == []
    assert len(compare(text, {"text_contains": "x", "text_startswith": "ea"})) == 2
