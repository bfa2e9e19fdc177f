"""No rule can match where its language has no hint: read off the rules' own syntax trees."""

import re
from collections.abc import Iterable, Iterator
from functools import cache
from re import _constants as codes, _parser as parser  # type: ignore[attr-defined]
from typing import Any

import pytest
from domain.test_recognize import SENTENCES
from hypothesis import given, strategies as st

from mnemosyned.conversation.learnings import recognize
from mnemosyned.conversation.learnings.recognize import (
    CORRECTION,
    PASSING_SUFFIX,
    REQUEST,
    find_candidate_languages,
    find_statements,
    may_match_rule,
)
from mnemosyned.conversation.learnings.rules import (
    LANGUAGES,
    compile_pattern,
    load_passing_rules,
    load_rules,
    load_shared_pattern,
    load_table,
)

TEXTS_MAX = 400
"""More spellings than this of one stretch of a pattern are not written out."""


@cache
def find_rules() -> list[tuple[str, str]]:
    """Every rule's language and pattern: to compile them takes as long as a hundred tests."""
    tables = {language: load_table(language) for language in LANGUAGES}
    return [
        *((language, rule.pattern) for language, table in tables.items() if "rules" in table
          for _, rule in load_rules(language).each),
        *((language, compile_pattern(rule).pattern) for language, table in tables.items()
          for rule in table.get("conventions", "").splitlines()),
        (REQUEST, load_shared_pattern("request").pattern),
        (CORRECTION, load_shared_pattern("correction").pattern),
        *((language + PASSING_SUFFIX, rule.pattern.pattern) for language, table in tables.items()
          if "passing" in table for rules in [load_passing_rules(language)]
          for rule in (*rules.at_starts, *rules.inside)),
    ]  # fmt: skip


def needs_a_hint(nodes: Iterable[Any], language: str) -> bool:
    """Whether every text that these nodes of a pattern match holds a hint of the language."""
    return any(
        texts and all(language in find_candidate_languages(text) for text in texts)
        for texts in _stretches(nodes)
    ) or any(_node_needs(node, language) for node in nodes)


def _node_needs(node: Any, language: str) -> bool:  # noqa: ANN401
    code, value = node
    if code is codes.SUBPATTERN:
        return needs_a_hint(value[-1], language)
    if code is codes.BRANCH:
        return all(needs_a_hint(branch, language) for branch in value[1])
    if code in (codes.MAX_REPEAT, codes.MIN_REPEAT):
        least, _, of = value
        return least > 0 and needs_a_hint(of, language)
    if code is codes.ASSERT:
        return needs_a_hint(value[1], language)
    return False


def _stretches(nodes: Iterable[Any]) -> Iterator[set[str]]:
    """All spellings of each stretch of nodes that spells words out; None parts two stretches."""
    texts = {""}
    for node in nodes:
        spelled = _spelled(node)
        if spelled is None or len(spelled) * len(texts) > TEXTS_MAX:
            yield texts
            texts = {""}
        texts = {text + more for text in texts for more in spelled or {""}}
    yield texts


def _spelled(node: Any) -> set[str] | None:  # noqa: ANN401
    """Everything a node matches, where that is a few words; what it only looks at is nothing."""
    code, value = node
    if code is codes.LITERAL:
        return {chr(value)}
    if code in (codes.AT, codes.ASSERT, codes.ASSERT_NOT):
        return {""}
    if code is codes.IN and all(kind is codes.LITERAL for kind, _ in value):
        return {chr(one) for _, one in value}
    if code is codes.SUBPATTERN:
        return _all_spelled([value[-1]])
    if code is codes.BRANCH:
        return _all_spelled(value[1])
    if code in (codes.MAX_REPEAT, codes.MIN_REPEAT) and value[:2] == (0, 1):
        once = _all_spelled([value[2]])
        return None if once is None else {"", *once}
    return None


def _all_spelled(branches: Iterable[Iterable[Any]]) -> set[str] | None:
    """Everything that branches match, where each is one stretch of words."""
    found: set[str] = set()
    for branch in branches:
        nodes = list(branch)
        stretches = list(_stretches(nodes))
        if len(stretches) > 1 or any(_spelled(node) is None for node in nodes):
            return None
        found |= stretches[0]
    return found


@pytest.mark.thorough
def test_every_rule_needs_a_hint_of_its_language() -> None:
    unhinted = [
        (language, pattern)
        for language, pattern in find_rules()
        if not needs_a_hint(list(parser.parse(pattern, re.IGNORECASE)), language)
    ]

    assert unhinted == []


def test_a_rule_that_needs_none_is_found_out() -> None:
    needless = (
        "(?:always|sometimes) x",
        "(?:always)? x",
        r"\\w+ x",
        "(?!always)x",
        "immer x",
    )
    for pattern in needless:
        assert not needs_a_hint(list(parser.parse(pattern, re.IGNORECASE)), "english")


def test_each_labelled_instruction_is_hinted(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [one.text for one in SENTENCES]
    missed = [one for one in SENTENCES if one.kind and not may_match_rule(one.text)]
    hinted = [find_statements(text) for text in texts]
    every = frozenset(language for language, _ in find_rules())
    monkeypatch.setattr(recognize, "find_candidate_languages", lambda _: every)

    assert hinted == [find_statements(text) for text in texts]
    assert len(missed) <= len(SENTENCES) // 100  # of those that no rule knows either


@pytest.mark.thorough
@given(
    st.deferred(lambda: st.sampled_from(find_rules())).flatmap(
        lambda rule: st.tuples(
            st.just(rule[0]), st.from_regex(re.compile(rule[1], re.IGNORECASE))
        )
    )
)
def test_whatever_a_rule_matches_is_hinted_at(said: tuple[str, str]) -> None:
    language, text = said

    assert may_match_rule(text)
    assert language in find_candidate_languages(text)


def test_hints_that_overlap_are_all_found() -> None:
    assert {"english", "italian"} <= find_candidate_languages("non o no tea")
    assert find_candidate_languages("preferirei") >= {"english", "italian"}
    assert "italian" not in find_candidate_languages("i prefer tea")
    assert find_candidate_languages("nothing of this") == frozenset()
    assert not may_match_rule("We went to the harbour yesterday; Ada took 12 pictures.")
