"""Worth of a sentence as the report of an event: what somebody did, what changed, broke or was decided."""

from __future__ import annotations

from functools import reduce
from math import exp
from operator import or_

from mnemosyned.text.rule_files import read_rule_file
from mnemosyned.text.word_cache import WordCache

_RULES = read_rule_file(__file__)
_WORDS, _PATTERNS = _RULES.words, _RULES.patterns
_PAST_ENDINGS = tuple(sorted(_WORDS["past_endings"]))
_MARKS = {
    name: 1 << place
    for place, name in enumerate((*_WORDS, "past", "gerund", "digit", "capital"))
}
"""Bit of each list of words, and of four forms of a word."""
_EDGE = "\"'“”„«»()[]*_.,;:!?…"
WORDS_CACHED_MAX = 1 << 13
PAST_CHARS_MIN = 4
SUBJECT_WORDS = 4
"""Words of a sentence among which its subject is sought."""
EARLY_WORDS = 6
"""Words in which a pronoun stands for something unnamed."""
SHORT_WORDS = 6
LONG_WORDS = 30
FEELINGS_MAX = 3

# Log-odds that annotators marked what a sentence says as an event, fitted on conversations 1-5 of LoCoMo.
BASE = -1.2
BY_LENGTH = 1.9
DEED = 0.6
OWN_DEED = 0.4
HEADLINE = 0.9
"""Of a sentence that begins with a deed: "Moved the docs to …", "Lost my job"."""
SELF = 0.6
ONGOING = 1.0
NAME = 0.5
NEWS = 1.5
FEELING = -0.4
FELT_STATE = -1.0
"""Of a feeling in a sentence without a deed, a time, a beginning or a plan."""
ATTITUDE = -0.8
ECHO = -1.1
FRAGMENT = -0.8
ADVICE = -2.0
GERUND = -1.2
LOOKING = -2.0
SHORT = -2.0
QUESTION = -1.4
TIMES = 1.2
BY_WORD = {
    "beginnings": 1.1,
    "plans": 0.3,
    "thoughts": -0.7,
    "listener": -1.8,
    "conditional": -1.0,
    "pictures": -0.5,
}
REFERENCE = -1.2
STRENGTH = 0.5
"""Exponent of the odds: how strongly events are preferred to sentences with more names and values."""
_BY_MARK = tuple((_MARKS[name], points) for name, points in BY_WORD.items())
_DONE = _MARKS["deeds"] | _MARKS["past"]
_PERSONAL = _MARKS["listener"] | _MARKS["feelings"]
_HAPPENING = _MARKS["beginnings"] | _MARKS["plans"]


def _mark_word(chunk: str) -> int:
    """Return the bits of the lists and forms to which a word, as written, belongs."""
    word = chunk.strip(_EDGE).lower()
    marks = sum(_MARKS[name] for name, words in _WORDS.items() if word in words)
    is_past = word.endswith(_PAST_ENDINGS) and len(word) >= PAST_CHARS_MIN
    if is_past and word not in _WORDS["no_deeds"]:
        marks |= _MARKS["past"]
    if word.endswith("ing"):
        marks |= _MARKS["gerund"]
    if any(map(str.isdigit, word)):
        marks |= _MARKS["digit"]
    if chunk.lstrip(_EDGE)[:1].isupper() and word not in _WORDS["self"]:
        marks |= _MARKS["capital"]
    return marks


_WORD_MARKS = WordCache(_mark_word, entries_max=WORDS_CACHED_MAX)


def rate_event(
    sentence: str, *, is_ruling: bool = False, is_introduced: bool = False
) -> float:
    """Return a factor for a sentence's worth: above 1 for an event, below 1 for anything else.

    A feeling, advice, a compliment, a question, or a sentence that begins with a pronoun is no event.
    A decision or rule (`is_ruling`) has at least 1, unless it encourages or praises. Pronouns count for
    nothing if the sentence before is shown, too (`is_introduced`).
    """
    sentence = sentence.replace("’", "'")
    marks = [_WORD_MARKS[word] for word in sentence.split()]
    if not marks:
        return 0.0
    union = reduce(or_, marks)
    score = BASE + BY_LENGTH * min(len(marks), LONG_WORDS) / LONG_WORDS
    for mark, points in _BY_MARK:
        if union & mark:
            score += points
    score += _rate_happening(sentence, marks, union)
    is_advice = bool(marks[0] & _MARKS["advice"])
    if union & _MARKS["refusals"] and _PATTERNS["encouragement"].match(sentence):
        is_advice = True
    if is_advice:
        score += ADVICE
    early = reduce(or_, marks[:EARLY_WORDS])
    if early & _MARKS["references"] and not is_introduced:
        score += REFERENCE
    if marks[0] & _MARKS["echoes"] or not any(map(str.isalnum, sentence[:2])):
        score += ECHO
    elif marks[0] & _MARKS["gerund"]:
        score += GERUND
    if sentence[0].islower():
        score += FRAGMENT
    if len(marks) < SHORT_WORDS and sentence.isascii():
        score += SHORT
    if sentence.endswith(("?", "？", "؟")):
        score += QUESTION
    if is_ruling and not is_advice and not union & _PERSONAL:
        score = max(score, 0.0)
    return exp(STRENGTH * score)


def _rate_happening(sentence: str, marks: list[int], union: int) -> float:
    """Return the points of a sentence for a deed, its subject and time, and for feelings.

    `marks` are the bits of its words, `union` all of them.
    """
    is_own = bool(reduce(or_, marks[:SUBJECT_WORDS]) & _MARKS["self"])
    is_headline = bool(marks[0] & _DONE)
    is_done = bool(union & _DONE or _reports_foreign_deed(sentence, union))
    is_timed = bool(
        union & _MARKS["times"]
        or (union & _MARKS["digit"] and _PATTERNS["dated"].search(sentence))
    )
    is_ongoing = bool(
        union & _MARKS["gerund"] and _PATTERNS["ongoing"].search(sentence)
    )
    score = DEED * is_done + OWN_DEED * (is_done and is_own) + SELF * is_own
    score += TIMES * is_timed + ONGOING * is_ongoing
    score += HEADLINE * is_headline
    if '"' in sentence or any(mark & _MARKS["capital"] for mark in marks[1:]):
        score += NAME
    if union & _MARKS["news"] and _PATTERNS["news"].match(sentence):
        score += NEWS
    if union & _MARKS["looks"] and _PATTERNS["looking"].search(sentence):
        score += LOOKING
    if union & _MARKS["attitudes"] and _PATTERNS["attitude"].search(sentence):
        score += ATTITUDE
    if union & _MARKS["feelings"]:
        felt = sum(bool(mark & _MARKS["feelings"]) for mark in marks)
        score += FEELING * min(felt, FEELINGS_MAX)
        if not (is_done or is_timed or is_ongoing or union & _HAPPENING):
            score += FELT_STATE
    return score


def _reports_foreign_deed(sentence: str, union: int) -> bool:
    """Return True if a sentence has a perfect of another language, or a past without spaces.

    `union` are the bits of all its words.
    """
    if union & _MARKS["have"] and any(
        map(_PATTERNS["participle"].fullmatch, sentence.lower().split())
    ):
        return True
    return not sentence.isascii() and bool(_PATTERNS["unspaced_past"].search(sentence))
