"""Classification of a prompt: whether it asks for something said before in the project."""

from __future__ import annotations

from collections.abc import Callable

from mnemosyned.search.query import says_when
from mnemosyned.text.rule_files import read_rule_file

_WORDS, _NAMES, _PATTERNS, _FORMS = read_rule_file(__file__)

CODE_FENCE = "```"

RatePrompt = Callable[[str], float | None]
"""Returns the log odds that a prompt asks for what was said, by its meaning; None if it cannot."""

# Chosen together with the probe `asking`, which is fitted next to them.
ODDS_OF_QUESTION, ODDS_OF_DEFINITE = 0.2, 0.9
"""Weights of the form of a question, and of a word for something known, such as "our"."""
UNRATED_QUESTION, UNRATED, UNRATED_GENERAL = 0.7, -0.54, -3.4
"""The log odds without a rating: of a question with such a word, any other prompt, and a general question."""


def estimate_need(prompt: str, rate: RatePrompt | None = None) -> float:
    """Return the log odds, by words alone, that a prompt asks for something said before.

    `rate` rates it by its meaning, where an encoder is up. Code in fences does not count.
    """
    prose = " ".join("".join(prompt.split(CODE_FENCE)[::2]).split())
    rating = rate(prose) if rate and prose else None
    if rating is not None:
        return rating + rate_form(prose)
    if _PATTERNS["general"].search(prose):
        return UNRATED_GENERAL
    return UNRATED_QUESTION if all(_find_form(prose)) else UNRATED


def rate_form(prompt: str) -> float:
    """Return how much the form of a prompt without code adds to the log odds of `estimate_need`."""
    is_question, is_definite = _find_form(prompt)
    return ODDS_OF_QUESTION * is_question + ODDS_OF_DEFINITE * is_definite


def _find_form(prose: str) -> tuple[bool, bool]:
    """Return whether a prompt is a question, and whether it has a word for something known."""
    is_question = any(_PATTERNS[name].search(prose) for name in ("question", "mark"))
    return is_question, bool(_PATTERNS["definite"].search(prose))


def has_answer_form(prompt: str, text: str) -> bool:
    """Return whether a text has what the prompt asks for: a time for "when", a name for "who"."""
    return bool(
        (_PATTERNS["when"].search(prompt) and says_when(text))
        or (_PATTERNS["who"].search(prompt) and _PATTERNS["name"].search(text))
    )
