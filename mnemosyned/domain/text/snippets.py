"""The stretch of a text that shows why it was found."""

from __future__ import annotations

import re
from functools import lru_cache

from mnemosyned.domain.text.terms import Terms
from mnemosyned.domain.text.word_cache import clear_on_forget

SNIPPET_CHARS = 200


@clear_on_forget
@lru_cache(maxsize=64)
def _marker(terms: Terms) -> re.Pattern[str] | None:
    """A pattern that finds the terms in a text, endings aside."""
    stems = [r"\b" + re.escape(_stem(word)) for word in terms.words]
    stems.extend(re.escape(gram) for gram in terms.grams)
    return re.compile("|".join(stems), re.IGNORECASE) if stems else None


def _stem(word: str) -> str:
    """Enough of a word to find its other forms by their beginning; codes stay whole."""
    if not word.isalpha() or len(word) <= 4:
        return word
    return re.sub(r"(ing|edly|ed|ies|es|s|e|y)$", "", word)


def snippet(content: str, terms: Terms, *, width: int = SNIPPET_CHARS) -> str:
    """The stretch of a text with most distinct matches in it, cut at word boundaries."""
    if len(content) <= width:
        return content
    matches = []
    mark = _marker(terms)
    for match in mark.finditer(content) if mark else ():
        matches.append((match.start(), match.group().casefold()))
        if len(matches) >= 200:
            break
    begin = 0
    best = -1
    for start, _ in matches:
        seen = len(
            {text for at, text in matches if start <= at < start + width * 3 // 4}
        )
        if seen > best:
            begin, best = max(0, start - width // 5), seen
    begin = min(begin, len(content) - width)
    end = begin + width
    if begin > 0:
        space = content.find(" ", begin, begin + 20)
        begin = space + 1 if space >= 0 else begin
    if end < len(content):
        space = content.rfind(" ", end - 20, end)
        end = space if space >= 0 else end
    return (
        ("…" if begin else "")
        + content[begin:end]
        + ("…" if end < len(content) else "")
    )
