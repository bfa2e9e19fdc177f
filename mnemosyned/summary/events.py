"""Worth of a sentence as the report of an event: what somebody did, what changed, broke or was decided."""

from __future__ import annotations

from functools import reduce
from math import exp
from operator import or_

from mnemosyned.text.rule_files import read_rule_file, read_tables
from mnemosyned.text.word_cache import WordCache

_RULES = read_rule_file(__file__)
_WORDS, _PATTERNS = _RULES.words, _RULES.patterns
_POINTS: dict[str, float] = read_tables(__file__, "events.toml")["points"]
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
STRENGTH = 0.5
"""Exponent of the odds: how strongly events are preferred to sentences with more names and values."""
_BY_WORD = tuple(
    (mark, _POINTS[name]) for name, mark in _MARKS.items() if name in _POINTS
)
"""Points of a sentence with a word of a list."""
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
    union, first = reduce(or_, marks), marks[0]
    is_advice = bool(first & _MARKS["advice"]) or _matches(
        "encouragement", sentence, union, "refusals"
    )
    is_echo = bool(first & _MARKS["echoes"]) or not any(map(str.isalnum, sentence[:2]))
    early = reduce(or_, marks[:EARLY_WORDS])
    features = {
        "base": 1,
        "length": min(len(marks), LONG_WORDS) / LONG_WORDS,
        "advice_given": is_advice,
        "reference": early & _MARKS["references"] and not is_introduced,
        "echo": is_echo,
        "gerund_first": first & _MARKS["gerund"] and not is_echo,
        "fragment": sentence[0].islower(),
        "short": len(marks) < SHORT_WORDS and sentence.isascii(),
        "question": sentence.endswith(("?", "？", "؟")),
        **_find_happening(sentence, marks, union),
    }
    score = sum(_POINTS[name] * value for name, value in features.items() if value)
    score += sum([points for mark, points in _BY_WORD if union & mark])
    if is_ruling and not is_advice and not union & _PERSONAL:
        score = max(score, 0.0)
    return exp(STRENGTH * score)


def _find_happening(sentence: str, marks: list[int], union: int) -> dict[str, float]:
    """Return the features of a sentence for a deed, its subject and time, and for feelings."""
    is_own = bool(reduce(or_, marks[:SUBJECT_WORDS]) & _MARKS["self"])
    is_done = bool(union & _DONE) or _reports_foreign_deed(sentence, union)
    is_timed = bool(union & _MARKS["times"]) or _matches(
        "dated", sentence, union, "digit"
    )
    is_ongoing = _matches("ongoing", sentence, union, "gerund")
    felt = sum(bool(mark & _MARKS["feelings"]) for mark in marks)
    happens = is_done or is_timed or is_ongoing or union & _HAPPENING
    return {
        "deed": is_done,
        "own_deed": is_done and is_own,
        "own": is_own,
        "timed": is_timed,
        "ongoing_deed": is_ongoing,
        "headline": bool(marks[0] & _DONE),
        "name": '"' in sentence or any(mark & _MARKS["capital"] for mark in marks[1:]),
        "turn_to_news": _matches("news", sentence, union, "news"),
        "looking": _matches("looking", sentence, union, "looks"),
        "attitude": _matches("attitude", sentence, union, "attitudes"),
        "feeling": min(felt, FEELINGS_MAX),
        "felt_state": felt > 0 and not happens,
    }


def _matches(pattern: str, sentence: str, union: int, hint: str) -> bool:
    """Return True if a sentence has a word of the list `hint`, and then matches a pattern."""
    return bool(union & _MARKS[hint] and _PATTERNS[pattern].search(sentence))


def _reports_foreign_deed(sentence: str, union: int) -> bool:
    """Return True if a sentence has a perfect of another language, or a past without spaces."""
    if union & _MARKS["have"] and any(
        map(_PATTERNS["participle"].fullmatch, sentence.lower().split())
    ):
        return True
    return not sentence.isascii() and bool(_PATTERNS["unspaced_past"].search(sentence))
