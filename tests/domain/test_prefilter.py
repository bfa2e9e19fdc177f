"""No rule can match where its language has no hint: read off the rules' own syntax trees."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from re import _constants as codes, _parser as parser  # type: ignore[attr-defined]
from typing import Any

import pytest
from domain.test_recognize import SENTENCES
from hypothesis import given, strategies as st
from support.cases import each_case

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

RULES = [
    (language, rule.pattern)
    for language in LANGUAGES
    if "rules" in load_table(language)
    for _, rule in load_rules(language).each
]
RULES += [
    (language, compile_pattern(rule).pattern)
    for language in LANGUAGES
    for rule in load_table(language).get("conventions", "").splitlines()
]
RULES.append((REQUEST, load_shared_pattern("request").pattern))
RULES.append((CORRECTION, load_shared_pattern("correction").pattern))
PASSING_RULES = [
    (language + PASSING_SUFFIX, rule.pattern.pattern)
    for language in LANGUAGES
    if "passing" in load_table(language)
    for rule in load_passing_rules(language).rules
]
RULES += PASSING_RULES
EVERY = frozenset(language for language, _ in RULES)


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


@each_case(("language", "pattern"), RULES)
def test_every_rule_needs_a_hint_of_its_language(language: str, pattern: str) -> None:
    assert needs_a_hint(list(parser.parse(pattern, re.IGNORECASE)), language)


def test_a_rule_that_needs_none_is_found_out() -> None:
    for pattern in (
        "(?:always|sometimes) x",
        "(?:always)? x",
        r"\\w+ x",
        "(?!always)x",
        "immer x",
    ):
        assert not needs_a_hint(list(parser.parse(pattern, re.IGNORECASE)), "english")


def test_every_labelled_instruction_is_hinted_at() -> None:
    missed = [
        one.text for one in SENTENCES if one.kind and not may_match_rule(one.text)
    ]

    assert len(missed) <= len(SENTENCES) // 100  # of those that no rule knows either


@given(
    st.sampled_from(RULES).flatmap(
        lambda rule: st.tuples(
            st.just(rule[0]), st.from_regex(re.compile(rule[1], re.IGNORECASE))
        )
    )
)
def test_whatever_a_rule_matches_is_hinted_at(said: tuple[str, str]) -> None:
    language, text = said

    assert may_match_rule(text)
    assert language in find_candidate_languages(text)


TEXTS = st.lists(
    st.sampled_from([one.text for one in SENTENCES])
    | st.sampled_from(RULES).flatmap(
        lambda rule: st.from_regex(re.compile(rule[1], re.IGNORECASE), fullmatch=True)
    )
    | st.text(max_size=40),
    max_size=4,
).map(" ".join)


@given(TEXTS)
def test_nothing_is_recognized_less_for_the_hints(text: str) -> None:
    with pytest.MonkeyPatch.context() as unhinted:
        unhinted.setattr(recognize, "find_candidate_languages", lambda _: EVERY)
        said = find_statements(text)

    assert find_statements(text) == said
    assert may_match_rule(text) or not said


def test_hints_tell_of_labelled_sentences_what_all_rules_tell(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    told = [find_statements(one.text) for one in SENTENCES]
    monkeypatch.setattr(recognize, "find_candidate_languages", lambda _: EVERY)

    assert told == [find_statements(one.text) for one in SENTENCES]


def test_hints_that_overlap_are_all_found() -> None:
    assert {"english", "italian"} <= find_candidate_languages("non o no tea")
    assert find_candidate_languages("preferirei") >= {"english", "italian"}
    assert "italian" not in find_candidate_languages("i prefer tea")
    assert find_candidate_languages("nothing of this") == frozenset()


def test_ordinary_words_have_no_hint() -> None:
    assert not may_match_rule(
        "We went to the harbour yesterday and looked at the boats; Ada took 12 pictures."
    )
