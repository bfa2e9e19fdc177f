"""Worth of a sentence as the report of an event: what somebody did, what changed, broke or was decided."""

from __future__ import annotations

from math import exp

from mnemosyned.text.rule_files import read_rule_file

_RULES = read_rule_file(__file__)
_WORDS, _PATTERNS = _RULES.words, _RULES.patterns

_EDGE = '"“”„«»()[]*_.,;:!?…'
FIRST_WORDS = 4
"""Words of a sentence among which its subject is sought."""
SHORT_WORDS = 6
LONG_WORDS = 30
FEELINGS_MAX = 3
POINTS = {
    "base": -1.2,
    "length": 1.9,
    "deed": 0.6,
    "own deed": 0.4,
    "self": 0.6,
    "ongoing": 1.0,
    "time": 1.2,
    "beginning": 1.1,
    "plan": 0.3,
    "news": 1.5,
    "name": 0.5,
    "feelings": -0.4,
    "thought": -0.7,
    "reference": -0.6,
    "listener": -1.8,
    "echo": -1.1,
    "fragment": -0.8,
    "advice": -2.0,
    "looking": -2.0,
    "gerund": -1.2,
    "condition": -1.0,
    "habit": 0.0,
    "picture": -0.5,
    "short": -2.0,
    "question": -1.4,
    "felt state": -1.0,
}
"""Log-odds that annotators marked what a sentence says as an event, fitted on conversations 1-5 of LoCoMo."""
HAPPENINGS = ("deed", "ongoing", "time", "beginning", "plan")
"""Marks of what happens; a sentence with none of them describes a state."""
STRENGTH = 0.5
"""Exponent of the odds: how strongly events are preferred to sentences with more names and values."""


def rate_event(sentence: str, *, is_ruling: bool = False) -> float:
    """Return a factor for a sentence's worth: above 1 for an event, below 1 for anything else.

    A feeling, advice, a compliment, a question, or a sentence that begins with a pronoun is no event.
    A decision or rule (`is_ruling`) has at least 1, unless it encourages somebody.
    """
    marks = find_marks(sentence)
    score = sum(POINTS[name] * value for name, value in marks.items())
    if is_ruling and not marks["advice"] and not marks["listener"]:
        score = max(score, 0.0)
    return exp(STRENGTH * score)


def find_marks(sentence: str) -> dict[str, float]:
    """Return the marks of an event, or of none, that a sentence has: {name in `POINTS`: amount}."""
    text = sentence.replace("’", "'").lower()
    words = [word for part in text.split() if (word := part.strip(_EDGE))]
    known = frozenset(words)
    head = words[0] if words else ""
    is_own = (
        not _WORDS["self"].isdisjoint(words[:FIRST_WORDS]) or head in _WORDS["deeds"]
    )
    is_done = _reports_deed(text, words, known)
    marks: dict[str, float] = {
        "base": 1,
        "length": min(len(words), LONG_WORDS) / LONG_WORDS,
        "deed": is_done,
        "own deed": is_done and is_own,
        "self": is_own,
        "ongoing": _PATTERNS["ongoing"].search(text) is not None,
        "time": not _WORDS["times"].isdisjoint(known)
        or _PATTERNS["dated"].search(text) is not None,
        "beginning": not _WORDS["beginnings"].isdisjoint(known),
        "plan": not _WORDS["plans"].isdisjoint(known),
        "news": _PATTERNS["news"].match(text) is not None,
        "name": _PATTERNS["name"].search(sentence) is not None,
        "feelings": min(sum(map(_WORDS["feelings"].__contains__, words)), FEELINGS_MAX),
        "listener": not _WORDS["listener"].isdisjoint(known),
        "thought": not _WORDS["thoughts"].isdisjoint(known),
        "reference": not _WORDS["references"].isdisjoint(known),
        "echo": head in _WORDS["echoes"] or not any(map(str.isalnum, head)),
        "fragment": sentence[:1].islower(),
        "advice": head in _WORDS["advice"]
        or _PATTERNS["encouragement"].match(text) is not None,
        "looking": _PATTERNS["looking"].search(text) is not None,
        "gerund": head.endswith("ing"),
        "condition": not _WORDS["conditional"].isdisjoint(known),
        "habit": not _WORDS["habits"].isdisjoint(known),
        "picture": _PATTERNS["pictures"].search(text) is not None,
        "short": len(words) < SHORT_WORDS and sentence.isascii(),
        "question": sentence.endswith(("?", "？", "؟")),
    }
    marks["felt state"] = marks["feelings"] > 0 and not any(
        map(marks.__getitem__, HAPPENINGS)
    )
    return marks


def _reports_deed(text: str, words: list[str], known: frozenset[str]) -> bool:
    """Return True if a sentence has a verb of doing in the past.

    `text` is in lower case, `words` are its words and `known` the same as a set.
    """
    if not _WORDS["deeds"].isdisjoint(known):
        return True
    if not _WORDS["no_deeds"].issuperset(_PATTERNS["past"].findall(text)):
        return True
    if not text.isascii() and _PATTERNS["unspaced_past"].search(text):
        return True
    return not _WORDS["have"].isdisjoint(known) and any(
        map(_PATTERNS["participle"].fullmatch, words)
    )
