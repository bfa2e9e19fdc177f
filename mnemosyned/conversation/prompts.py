"""What a prompt asks for: what was said before in a project, or nothing of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache

from mnemosyned.search.query import says_when
from mnemosyned.text.rule_files import read_rule_file, read_tables

_WORDS, _NAMES, _PATTERNS, _FORMS = read_rule_file(__file__)

CODE_FENCE = "```"

RatePrompt = Callable[[str], float | None]
"""Returns how many natural logarithms nearer a prompt is to the examples of prompts that ask for
what was said than to those that need nothing of it; None if it cannot."""

# A logistic regression on the tune half of `make bench-telling`, cross-validated by project.
ODDS_OF_RATING, ODDS_OF_QUESTION, ODDS_OF_DEFINITE, ODDS_OF_ANY = 4.2, 4.6, 2.3, -9.0
"""Weights of the rating, of the form of a question, and of a word for something known, such as "our"."""
UNRATED_QUESTION, UNRATED, UNRATED_GENERAL = 0.0, -2.7, -9.0
"""The same without a rating: for a question with such a word, any other prompt, and a general question."""


@cache
def load_prompt_examples() -> Mapping[str, Sequence[str]]:
    """Return the examples of prompts by kind: "asking" for what was said, and "needless"."""
    return {
        kind: examples.replace("\n", " ").split(" / ")
        for kind, examples in read_tables(__file__, "prompts.toml")["examples"].items()
    }


def estimate_need(prompt: str, rate: RatePrompt | None = None) -> float:
    """Return the log odds that a prompt asks for what was said before, as far as its form tells.

    `rate` rates it by its meaning, where an encoder is up. Code in fences does not count.
    """
    prose = " ".join("".join(prompt.split(CODE_FENCE)[::2]).split())
    is_definite = bool(_PATTERNS["definite"].search(prose))
    is_question = any(_PATTERNS[name].search(prose) for name in ("question", "mark"))
    rating = rate(prose) if rate and prose else None
    if rating is None:
        if _PATTERNS["general"].search(prose):
            return UNRATED_GENERAL
        return UNRATED_QUESTION if is_question and is_definite else UNRATED
    return (
        ODDS_OF_RATING * rating
        + ODDS_OF_QUESTION * is_question
        + ODDS_OF_DEFINITE * is_definite
        + ODDS_OF_ANY
    )


def has_answer_form(prompt: str, text: str) -> bool:
    """Return whether a text has what the prompt asks for: a time for "when", a name for "who"."""
    return bool(
        (_PATTERNS["when"].search(prompt) and says_when(text))
        or (_PATTERNS["who"].search(prompt) and _PATTERNS["name"].search(text))
    )
