"""Cuts the snippet of a text that shows why a search found it."""

from __future__ import annotations

import re
from bisect import bisect_left
from functools import lru_cache
from itertools import islice

from mnemosyned.domain.text.sentence_marks import WORD_START
from mnemosyned.domain.text.stemming import match_prefix
from mnemosyned.domain.text.terms import Terms
from mnemosyned.domain.text.word_cache import clear_on_forget

SNIPPET_CHARS = 200
MATCHES_MAX = 200
EDGE_CHARS = 20
"""Distance from its ends within which a snippet is cut at a space."""


@clear_on_forget
@lru_cache(maxsize=64)
def _pattern(terms: Terms) -> re.Pattern[str] | None:
    """Compile a pattern that finds the terms in a text in lower case, whatever their endings."""
    words = "|".join(re.escape(match_prefix(word).lower()) for word in terms.words)
    prefixes = [rf"{WORD_START}(?:{words})"] if words else []
    prefixes += [re.escape(gram.lower()) for gram in terms.grams]
    return re.compile("|".join(prefixes)) if prefixes else None


def beginnings(terms: Terms) -> tuple[str, ...]:
    """Return how the words that match begin, in lower case and the longest first."""
    forms = (form for word in terms.words for form in terms.forms(word))
    words = {match_prefix(form).lower() for form in forms}
    words.update(gram.lower() for gram in terms.grams)
    return tuple(sorted(words, key=lambda word: (-len(word), word)))


def snippet(content: str, terms: Terms, *, width: int = SNIPPET_CHARS) -> str:
    """Return the part of a text with the most distinct matches, cut at word boundaries."""
    if len(content) <= width:
        return content
    begin = min(_best_begin(content, terms, width), len(content) - width)
    end = begin + width
    before = after = ""
    if begin > 0:
        begin = content.find(" ", begin, begin + EDGE_CHARS) + 1 or begin
        before = "…"
    if end < len(content):
        space = content.rfind(" ", end - EDGE_CHARS, end)
        end = space if space >= 0 else end
        after = "…"
    return before + content[begin:end] + after


def _best_begin(content: str, terms: Terms, width: int) -> int:
    """Return where the snippet with the most distinct matches begins."""
    pattern = _pattern(terms)
    if pattern is None:
        return 0
    low = content.replace("İ", "I").lower()  # this letter alone would become two
    matches = [
        (match.start(), match[0])
        for match in islice(pattern.finditer(low), MATCHES_MAX)
    ]
    begin = 0
    most = -1
    for index, (start, _) in enumerate(matches):
        stop = start + width * 3 // 4
        end = bisect_left(matches, (stop, ""), lo=index)
        distinct = {text for _, text in matches[index:end]}
        if len(distinct) > most:
            begin, most = max(0, start - width // 5), len(distinct)
    return begin
