"""Recognition of preferences said in passing: the clause with a preference, as a standing one.

"I'm building a site, and I prefer plain HTML over frameworks, can you help?" becomes "Prefers plain
HTML over frameworks". A preference is learned in the third person; a constraint, such as "Keep it
under 100 KB", as the imperative or in the user's words.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from itertools import islice
from typing import NamedTuple

from mnemosyned.conversation.learnings.rules import (
    LANGUAGES,
    PassingRule,
    PassingRules,
    load_passing_rules,
)
from mnemosyned.memory.values import LearningKind

STARTS_MAX = 16
"""Clauses of a sentence that are tried."""
CLAUSE_CHARS_MIN = 3
CLAUSE_CHARS_MAX = 160
"""A longer clause is no preference that could be read alone."""
OBJECT_WORDS_MAX = 24
JOINED_WORDS_MAX = 3
"""Words after a comma that still belong to one word before it: "short, plain sentences"."""

_KINDS = {
    "states": LearningKind.PREFERENCE,
    "asks": LearningKind.INSTRUCTION,
    "inside": LearningKind.PREFERENCE,
}
_QUESTION_ENDS = ("?", "？")
_FORM_FIELD = re.compile(r"\{(\w+)\}")
_SPACES = re.compile(r"\s+")
_WORD = re.compile(r"\w+")
_TRIMMED = " \t,;:.!?…–—-"


class LearningStatement(NamedTuple):
    """A learning that a user's sentence states, word for word or in the form of its rule."""

    kind: LearningKind
    text: str
    """With straight apostrophes."""
    start: int = 0
    """Place in the sentence of a preference said in passing."""
    end: int = 0


def find_passing(
    sentence: str, blanked: str, languages: Collection[str]
) -> list[LearningStatement]:
    """Return the preferences in a sentence, in order, by the rules of `languages` (codes).

    `blanked` is the sentence with blanks for quoted text, of the same length.
    """
    low = blanked.lower()
    if len(low) != len(blanked):  # positions must be the same
        low = blanked.replace("İ", "I").lower()
    found: list[LearningStatement] = []
    for language in LANGUAGES:
        if language not in languages:
            continue
        rules = load_passing_rules(language)
        for rule, match in _find_rule_matches(low, rules):
            overlaps = any(
                match.start() < other.end and other.start < match.end()
                for other in found
            )
            if overlaps or rules.guard.search(low[: match.start()].rstrip()):
                continue
            statement = _make_statement(sentence, low, rule, match, rules)
            if statement:
                found.append(statement)
        if found:
            break
    return sorted(found, key=lambda statement: statement.start)


def _find_rule_matches(
    low: str, rules: PassingRules
) -> Iterator[tuple[PassingRule, re.Match[str]]]:
    """Yield rules with their matches in a lower-case sentence, at the starts of clauses first.

    At the start of each clause, only the first of `rules.at_starts` that matches is yielded. Then
    each of `rules.inside` is yielded that matches anywhere, with its first match.
    """
    for position in _find_clause_starts(low, rules):
        if not rules.any_at_start.match(low, position):
            continue
        for rule in rules.at_starts:
            match = rule.pattern.match(low, position)
            if match:
                yield rule, match
                break
    for rule in rules.inside:
        match = rule.pattern.search(low)
        if match:
            yield rule, match


def _find_clause_starts(low: str, rules: PassingRules) -> Iterator[int]:
    """Yield the positions where a clause begins, before and after leading words as "and".

    `low` is the sentence in lower case.
    """
    seen: set[int] = set()
    for start in islice(rules.start.finditer(low), STARTS_MAX):
        position = start.end()
        while position not in seen:
            seen.add(position)
            yield position
            lead = rules.lead.match(low, position)
            if lead:
                position = lead.end()


def _make_statement(
    sentence: str,
    low: str,
    rule: PassingRule,
    match: re.Match[str],
    rules: PassingRules,
) -> LearningStatement | None:
    """Return the preference that a rule has matched, or None if it makes no sense alone.

    `low` is the sentence in lower case.
    """
    end = _find_clause_end(low, match.end(), rules)
    preferred = sentence[match.end() : end].strip(_TRIMMED)
    said = low[match.end() : end].strip(_TRIMMED)
    occasion = low[match.start() : end]
    has_object = "{x}" in rule.form
    if has_object:
        preferred, said, occasion = "", match["x"], match["x"]
    if rule.name == "states":
        is_empty = not has_object and not _count_words(said)
        is_asked = low.endswith(_QUESTION_ENDS) and end >= len(low.rstrip(_TRIMMED))
        if is_empty or is_asked or rules.unclear.match(said):
            return None
    if _count_words(said) > OBJECT_WORDS_MAX or rules.once.search(occasion):
        return None
    text = _write_learned_form(sentence, rule, match, preferred, rules)
    if not CLAUSE_CHARS_MIN <= len(text) <= CLAUSE_CHARS_MAX:
        return None
    return LearningStatement(_KINDS[rule.name], text, match.start(), end)


def _find_clause_end(low: str, start: int, rules: PassingRules) -> int:
    """Return the position at which the clause from `start` ends, in a lower-case sentence.

    A comma after its first word joins two adjectives, and does not end it.
    """
    end = rules.end.search(low, start)
    if not end:
        return len(low)
    is_first_word = end[0] == "," and _count_words(low[start : end.start()]) == 1
    if is_first_word and not rules.next_clause.match(low, end.start()):
        further = rules.end.search(low, end.end())
        stop = further.start() if further else len(low)
        joined = _count_words(low[end.end() : stop])
        if joined <= JOINED_WORDS_MAX and low[stop : stop + 1] != "?":
            return stop
    return end.start()


def _count_words(text: str) -> int:
    """Return the number of words of a text."""
    return len(_WORD.findall(text))


def _write_learned_form(
    sentence: str,
    rule: PassingRule,
    match: re.Match[str],
    preferred: str,
    rules: PassingRules,
) -> str:
    """Return a clause as the text of a learning: third person, with a capital letter.

    `preferred` is the part of the sentence that is preferred.
    """

    def fill(field: re.Match[str]) -> str:
        """Return the text of the group that a field of the rule's form names, fit for its place.

        A verb is put into the third person.
        """
        start, end = match.span(field[1])
        said = sentence[start:end] if start >= 0 else ""
        if field[1] == "v":
            for ending, replacement in rules.third_person:
                verb, count = ending.subn(replacement, said.lower(), count=1)
                if count:
                    return verb
        return said

    joint = "," if match[0].rstrip().endswith(",") else ""
    words = f"{_FORM_FIELD.sub(fill, rule.form).rstrip(',')}{joint} {preferred}"
    if rules.own_word and rule.name == "states":
        words = rules.own_word.sub(
            lambda word: rules.own_words[word[0].casefold()], words
        )
    text = _SPACES.sub(" ", words).strip(_TRIMMED).replace(" ,", ",")
    return text[:1].upper() + text[1:]
