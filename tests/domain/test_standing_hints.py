"""No rule can match where `hinted` finds nothing: read off the rules' own syntax trees."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Iterator
from re import _constants as codes  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any

import pytest
from domain.test_instructions import SENTENCES
from hypothesis import given, settings
from hypothesis import strategies as st

from mnemosyned.domain.standing import standing_rules
from mnemosyned.domain.standing_hints import hinted

TEXTS_MAX = 400
"""More spellings than this of one stretch of a pattern are not written out."""

RULES = [rule.pattern for _, rule in standing_rules().rules] + [standing_rules().request.pattern]


def needs_a_hint(nodes: Iterable[Any]) -> bool:
    """Whether every text that these nodes of a pattern match holds a hint."""
    return any(texts and all(map(hinted, texts)) for texts in _stretches(nodes)) or any(
        _node_needs(node) for node in nodes
    )


def _node_needs(node: Any) -> bool:  # noqa: ANN401
    code, value = node
    if code is codes.SUBPATTERN:
        return needs_a_hint(value[-1])
    if code is codes.BRANCH:
        return all(needs_a_hint(branch) for branch in value[1])
    if code in (codes.MAX_REPEAT, codes.MIN_REPEAT):
        least, _, of = value
        return least > 0 and needs_a_hint(of)
    return False


def _stretches(nodes: Iterable[Any]) -> Iterator[set[str]]:
    """All spellings of each stretch of nodes that spells words out."""
    texts = {""}
    for node in nodes:
        spelled = _spelled(node)
        if spelled is None or len(spelled) * len(texts) > TEXTS_MAX:
            yield texts
            texts = {""}
        if spelled is not None:
            texts = {text + more for text in texts for more in spelled}
    yield texts


def _spelled(node: Any) -> set[str] | None:  # noqa: ANN401
    """Everything a node matches, where that is a few words; what it only looks at is nothing."""
    code, value = node
    found: set[str] | None = None
    if code is codes.LITERAL:
        found = {chr(value)}
    elif code in (codes.AT, codes.ASSERT, codes.ASSERT_NOT):
        found = {""}
    elif code is codes.IN and all(kind is codes.LITERAL for kind, _ in value):
        found = {chr(one) for _, one in value}
    elif code is codes.SUBPATTERN:
        found = _all_spelled([value[-1]])
    elif code is codes.BRANCH:
        found = _all_spelled(value[1])
    elif code in (codes.MAX_REPEAT, codes.MIN_REPEAT) and value[:2] == (0, 1):
        once = _all_spelled([value[2]])
        found = None if once is None else {"", *once}
    return found


def _all_spelled(branches: Iterable[Iterable[Any]]) -> set[str] | None:
    found: set[str] = set()
    for branch in branches:
        texts = {""}
        for node in branch:
            spelled = _spelled(node)
            if spelled is None or len(spelled) * len(texts) > TEXTS_MAX:
                return None
            texts = {text + more for text in texts for more in spelled}
        found |= texts
    return found


@pytest.mark.parametrize("pattern", RULES)
def test_every_rule_needs_a_hint(pattern: str) -> None:
    assert needs_a_hint(list(parser.parse(pattern, re.IGNORECASE)))


def test_a_rule_that_needs_none_is_found_out() -> None:
    for pattern in ("(?:always|sometimes) x", "(?:always)? x", r"\\w+ x", "(?!always)x"):
        assert not needs_a_hint(list(parser.parse(pattern, re.IGNORECASE)))


def test_every_labelled_instruction_is_hinted_at() -> None:
    missed = [one.text for one in SENTENCES if one.kind and not hinted(one.text)]

    assert len(missed) <= len(SENTENCES) // 100  # of those that no rule knows either


@settings(max_examples=30)
@given(st.sampled_from(RULES).flatmap(lambda rule: st.from_regex(re.compile(rule, re.IGNORECASE))))
def test_whatever_a_rule_matches_is_hinted_at(text: str) -> None:
    assert hinted(text)


def test_ordinary_words_cost_little() -> None:
    words = "We went to the harbour yesterday and looked at the boats; Ada took 12 pictures. " * 2
    hinted(words)

    began = time.process_time()
    for _ in range(1_000):
        assert not hinted(words)

    assert time.process_time() - began < 0.1  # 10 µs each on an idle machine
