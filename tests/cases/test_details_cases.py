"""The seeds' cases for exact details, read from the file they were handed over in."""

import json
from pathlib import Path
from typing import Any

import pytest

from mnemosyned.domain.details import details
from mnemosyned.domain.memory import Detail

CASES = [
    case
    for case in json.loads((Path(__file__).parent / "seed_cases.json").read_text())["cases"]
    if case["op"] == "details"
]


def pairs(found: list[tuple[Detail, str]]) -> list[list[str]]:
    return [[detail.kind.value, detail.value] for detail, _ in found]


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case['id']} {case['title']}")
def test_case(case: dict[str, Any]) -> None:
    given, expect = case["given"], case["expect"]
    contents = given.get("contents") or given["consolidate"]

    found = [(detail, content) for content in contents for detail in details(content)]

    wanted = expect.get("include", []) + expect.get("metadata_include", [])
    assert [pair for pair in wanted if pair not in pairs(found)] == []
    if "exact" in expect:
        assert pairs(found) == expect["exact"]
    if "source" in expect:
        assert {content for _, content in found} == {expect["source"]}
    if "include_value" in expect:
        sensitive = {detail.value: detail.sensitive for detail, _ in found}
        assert sensitive[expect["include_value"]] is expect["sensitive"]


def test_all_the_cases_are_here() -> None:
    assert len(CASES) == 10
