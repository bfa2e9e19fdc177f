"""Rule-based summarizer: it selects sentences and abbreviates their wordy phrases."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, tzinfo

from mnemosyned.domain.errors import SummarizerFailed
from mnemosyned.domain.memory import MemoryRecord
from mnemosyned.domain.ports.models import Summarizer, Summary
from mnemosyned.domain.summary.extract import KEYWORDS, extract
from mnemosyned.domain.text.stopwords import STOP_WORDS

RATIO = 1 / 3
REASON = "no model is configured; sentences are selected and abbreviated by rule"

ABBREVIATIONS: dict[str, str] = {
    "as soon as possible": "asap",
    "as far as I know": "afaik",
    "that is to say": "ie",
    "for example": "eg",
    "also known as": "aka",
    "by the way": "btw",
    "let me know": "lmk",
    "in my opinion": "imo",
    "to be honest": "tbh",
    "at the moment": "atm",
    "on the other hand": "otoh",
    "with respect to": "wrt",
    "in the middle of": "amid",
    "on top of": "atop",
    "at the same time": "simultaneously",
    "in the same way": "likewise",
    "in the meantime": "meanwhile",
    "for this reason": "hence",
    "the end of the day": "eod",
    "from now on": "henceforth",
    "once again": "anew",
    "even though": "albeit",
}
"""Abbreviations of phrases. Each is shorter in characters and in tokens (GPT-2's vocabulary: 2 to
5 against 1 or 2), is plain English, and is rare, as one that occurs in the text costs an escape."""

_CLOSING = ".,;:!?)"
_ESCAPE = "\\"
_FENCE = "```"


def _cased(table: dict[str, str]) -> dict[str, str]:
    """Add capitalized phrases, for the beginning of a sentence.

    Capitalized, codes for two words cost as many tokens as the words.
    """
    return table | {
        phrase[0].upper() + phrase[1:]: code.capitalize()
        for phrase, code in table.items()
        if phrase.count(" ") > 1
    }


_CODE_OF = {
    tuple(phrase.split()): code for phrase, code in _cased(ABBREVIATIONS).items()
}
_PHRASE_OF = {code: " ".join(phrase) for phrase, code in _CODE_OF.items()}
_OPENERS = {phrase[0] for phrase in _CODE_OF}
_LENGTHS = sorted({len(phrase) for phrase in _CODE_OF}, reverse=True)
_WORD = re.compile(rf"(\\*)([A-Za-z]+)([{re.escape(_CLOSING)}]*)")
_CONCERNED = re.compile(
    rf"(?<![A-Za-z])(?:{'|'.join(map(re.escape, [*_cased(ABBREVIATIONS), *_PHRASE_OF]))})(?![A-Za-z])"
)
_LETTERS = re.compile("[A-Za-z]+")


def _hinted() -> dict[str, list[str]]:
    hinted = {code: [code] for code in _PHRASE_OF}
    for phrase in _CODE_OF:
        hint = max(phrase, key=lambda word: (word.lower() not in STOP_WORDS, len(word)))
        hinted.setdefault(hint, []).append(" ".join(phrase))
    return hinted


_HINTED = _hinted()
"""Codes, and phrases by their most distinctive word."""
_HINTS = frozenset(_HINTED)
_MARK = re.compile("[`\"'‘’“”«»「」『』]")
_SPACE = re.compile(r"(\s+)")
_OPENING_QUOTE = re.compile(r"[(\[]*['‘]")
_CLOSING_QUOTE = re.compile(rf"['’][\])]*[{re.escape(_CLOSING)}]*$")
_PAIRS = (("“", "”"), ("«", "»"), ("「", "」"), ("『", "』"))


def encode(text: str) -> str:
    """Replace wordy phrases by their codes; `decode` restores exactly the same text.

    Only whole words in running prose change: nothing with a digit or a sign in it, nothing in
    code or between quotation marks, no line of keywords. A code that occurs in the text itself
    is escaped with a backslash.
    """
    return _rewritten(text, _encoded)


def decode(text: str) -> str:
    """Restore the text that `encode` was given."""
    return _rewritten(text, _decoded)


def _rewritten(text: str, rewrite: Callable[[list[str]], str]) -> str:
    """Rewrite line by line, wherever both directions see the same open prose."""
    hints = _HINTS.intersection(_LETTERS.findall(text))
    if not any(phrase in text for hint in hints for phrase in _HINTED[hint]):
        return text  # in half the time that the expression takes to find nothing
    lines: list[str] = []
    fenced = False
    for line in text.split("\n"):
        fence = line.lstrip().startswith(_FENCE)
        fenced ^= fence
        closed = fenced or fence or line.startswith(KEYWORDS)
        concerned = not closed and _CONCERNED.search(line)
        lines.append(rewrite(_SPACE.split(line)) if concerned else line)
    return "\n".join(lines)


def _encoded(parts: list[str]) -> str:
    out: list[str] = []
    free = list(_free(parts))
    at = 0
    while at < len(parts):
        part = parts[at]
        if not free[at]:
            out.append(part)
        elif part in _OPENERS and (found := _phrase(parts, at)):
            code, at = found
            out.append(code)
        else:
            word = _WORD.fullmatch(part)
            out.append(_ESCAPE + part if word and word[2] in _PHRASE_OF else part)
        at += 1
    return "".join(out)


def _phrase(parts: list[str], at: int) -> tuple[str, int] | None:
    """Return the code of the longest phrase that starts here, and the phrase's end.

    `parts` alternates words and white space; the last word may carry punctuation.
    """
    for length in _LENGTHS:
        end = at + 2 * (length - 1)
        if end >= len(parts) or any(space != " " for space in parts[at + 1 : end : 2]):
            continue
        bare = parts[end].rstrip(_CLOSING)
        code = _CODE_OF.get((*parts[at:end:2], bare))
        if code:
            return code + parts[end][len(bare) :], end
    return None


def _decoded(parts: list[str]) -> str:
    out: list[str] = []
    for part, free in zip(parts, _free(parts), strict=True):
        word = _WORD.fullmatch(part) if free else None
        if not word or word[2] not in _PHRASE_OF:
            out.append(part)
        elif word[1]:
            out.append(part.removeprefix(_ESCAPE))
        else:
            out.append(_PHRASE_OF[word[2]] + word[3])
    return "".join(out)


def _free(parts: Sequence[str]) -> Iterator[bool]:
    """Yield for each part of a line whether it is outside every quotation and piece of code.

    An unclosed mark closes the rest of the line. Rewriting never changes such a mark, so both
    directions agree.
    """
    marks = _OpenMarks()
    for part in parts:
        if _MARK.search(part):
            yield marks.read(part)
        else:
            yield not marks.any_open


class _OpenMarks:
    """Quotation and code marks that are open in a line."""

    def __init__(self) -> None:
        self._ticks = self._quotes = self._apostrophe = False
        self._depth = 0

    @property
    def any_open(self) -> bool:
        return self._ticks or self._quotes or self._apostrophe or self._depth > 0

    def read(self, part: str) -> bool:
        """Read the marks of a part; return whether the part began outside all of them."""
        opens = bool(_OPENING_QUOTE.match(part))
        free = not (opens or self.any_open)
        self._ticks ^= part.count("`") % 2 == 1
        self._quotes ^= part.count('"') % 2 == 1
        depth = self._depth + sum(
            part.count(opening) - part.count(closing) for opening, closing in _PAIRS
        )
        self._depth = max(depth, 0)
        quoting = self._apostrophe or opens
        self._apostrophe = quoting and not _CLOSING_QUOTE.search(part)
        return free


class ExtractiveSummarizer(Summarizer):
    """Summarizer by selection and abbreviation, used without a model."""

    name = "aaak"

    def __init__(
        self, *, ratio: float = RATIO, reason: str = REASON, zone: tzinfo = UTC
    ) -> None:
        self.reason = reason
        self._ratio = ratio
        self._zone = zone

    def summarize(self, memories: Sequence[MemoryRecord]) -> Summary:
        """Return days and speakers, the most informative sentences, and keywords for the rest."""
        kept = (
            extract(memories, ratio=self._ratio, zone=self._zone).text
            if memories
            else ""
        )
        if not kept:
            raise SummarizerFailed("The memories hold no text; leave them as they are.")
        shorter = encode(kept)
        return Summary(text=min(shorter, kept, key=len), summarizer=self.name)
