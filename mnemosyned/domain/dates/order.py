"""Whether a question asks for the newest, the oldest or what is true now, and of which tense it is."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache

from mnemosyned.domain.languages import LANGUAGES
from mnemosyned.domain.languages.language import OrderWords, TimeOrder

_TABLES = [language.order for language in LANGUAGES if language.order]
_NO_TIME = re.compile(
    r"(?i)\b(?:first|last) (?:names?|aid|floor|class|grade|person|hand|leg|ones?|thing|step"
    r"|round|place|prize|chapter|row|line|page)\b|\b(?:at|come|went|go) (?:first|last)\b"
    r"|\bfirst (?:of|and|or)\b|\blast but\b|\b(?:long|battery|food) last\b|\bnow and then\b|\bby now\b"
    r"|\b(?:how long|does|did|do|will|would|to|not) .{0,30}\blast\b(?! \w)"
)
"""Where these words name no time: "first floor", "how long does it last"."""
_GERMAN_WAS = re.compile(
    r"(?i)\bwas (?=ist|sind|steht|kommt|wird|muss|müssen|soll|gibt|liegt|passiert|machen?)"
)
"""The German word for "what", which is past in English."""
_FROM = r"(?i)\b(?:from|of|since|vom|seit|del|du|depuis|dal|desde)\b"


def _words(pattern: Callable[[OrderWords], str]) -> str:
    return "|".join(map(pattern, _TABLES))


def _compiled(alternatives: str) -> re.Pattern[str]:
    return re.compile(rf"(?i)(?<![\w-])(?:{alternatives})(?![\w'’-])")


@lru_cache(maxsize=1)
def _orders() -> re.Pattern[str]:
    """Compile the words of all orders, each order a group, on first use."""
    groups = {
        TimeOrder.LATEST: _words(lambda words: words.latest),
        TimeOrder.EARLIEST: _words(lambda words: words.earliest),
        TimeOrder.CURRENT: _words(lambda words: words.current),
    }
    return _compiled(
        "|".join(f"(?P<{order.value}>{words})" for order, words in groups.items())
    )


@lru_cache(maxsize=1)
def _tenses() -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Compile the words of what is to come, and of what was."""
    return (
        _compiled(_words(lambda words: words.ahead)),
        _compiled(_words(lambda words: words.past)),
    )


def time_order(text: str) -> tuple[TimeOrder | None, str]:
    """Return the order that a question asks for, and the question without its word.

    `text` has no time expression left: "last week" is a time, "last note" an order.
    """
    match = _orders().search(text)
    if match is None or match.lastgroup is None or _NO_TIME.search(text):
        return None, text
    order = TimeOrder(match.lastgroup)
    return order, f"{text[: match.start()]} {text[match.end() :]}"


def asks_ahead(text: str) -> bool:
    """Tell whether a question asks for what is to come, where it names a weekday or a date."""
    ahead, past = _tenses()
    text = _GERMAN_WAS.sub("", text)
    return (
        ahead.search(text) is not None
        and past.search(text) is None
        and re.search(_FROM, text) is None
    )
