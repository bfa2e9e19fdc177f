"""Lines of record summaries, and the texts they are made of."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, tzinfo
from email.utils import parsedate_to_datetime
from typing import TypeVar

from mnemosyned.instants import in_zone
from mnemosyned.memory.values import MemoryRecord
from mnemosyned.text.dates.formatting import format_period
from mnemosyned.text.languages.tables import LANGUAGES
from mnemosyned.text.rule_files import read_rule_file
from mnemosyned.text.terms import FOREIGN_STOP_WORDS, FUNCTION_WORDS
from mnemosyned.text.tokens import TokenKind, tokenize

_WORDS, _NAMES, _PATTERNS, _FORMS = read_rule_file(__file__)

TERMS_MAX = 24
TERM_CHARS_MAX = 40
LINE_CHARS_MAX = 2_000
"""Longer lines are cut: no rule needs their end, and patterns cost more than their length."""
PROSE_WORDS_MIN = 5
PROSE_STOP_SHARE = 0.25

_STOP_WORDS = FUNCTION_WORDS.union(
    FOREIGN_STOP_WORDS, *(language.stop_words.split() for language in LANGUAGES)
)
"""Function words of all languages, of which records have few."""
_TERM_KINDS = frozenset({TokenKind.WORD, TokenKind.IDENTIFIER, TokenKind.VERSION})

T = TypeVar("T")
K = TypeVar("K", bound=Hashable)


@dataclass(frozen=True, slots=True)
class RecordLine:
    """A line of a summary about one or several records."""

    text: str
    """A whole sentence or a whole record, readable alone."""
    index_terms: tuple[str, ...]
    """Words of the records that the text leaves out, for the index."""
    position: int
    """Index of the first memory of the line."""
    worth: float
    """How much the line deserves room, from 0 to 1."""
    memories: int
    """Number of memories of the line."""


@dataclass(frozen=True, slots=True)
class RecordSummary:
    """Lines about the records of a group, and the memories that are prose."""

    lines: tuple[RecordLine, ...]
    prose: tuple[MemoryRecord, ...]


def group_by(items: Iterable[T], key: Callable[[T], K]) -> dict[K, list[T]]:
    """Return {key: items}, keys and items in the order of their first occurrence."""
    groups: dict[K, list[T]] = {}
    for item in items:
        groups.setdefault(key(item), []).append(item)
    return groups


def split_nonblank_lines(text: str) -> list[str]:
    """Return the lines that are not blank, without blanks at their ends, cut at `LINE_CHARS_MAX`."""
    return [
        line[:LINE_CHARS_MAX].rstrip() for line in text.splitlines() if line.strip()
    ]


def is_prose(line: str) -> bool:
    """Return True if a line is a person's sentence: enough words, many of them function words."""
    if _PATTERNS["code"].search(line):
        return False
    words = [word.lower() for word in _PATTERNS["word"].findall(line)]
    if len(words) < PROSE_WORDS_MIN:
        return False
    stops = sum(word in _STOP_WORDS for word in words)
    return stops >= PROSE_STOP_SHARE * len(words)


def remove_hashes(text: str) -> str:
    """Return a text on one line without commit hashes, digests, UUIDs and memory addresses."""
    bare = _PATTERNS["hash"].sub("", text)
    if bare != text:
        bare = _PATTERNS["spaced_mark"].sub("", _PATTERNS["hollow"].sub("", bare))
    return " ".join(bare.split())


def shorten(text: str, chars_max: int) -> str:
    """Return a text on one line, without hashes; a text above `chars_max` is cut after a word, with "…"."""
    clean = remove_hashes(text)
    if len(clean) <= chars_max:
        return clean
    head = clean[:chars_max]
    cut = head.rfind(" ")
    if cut < chars_max // 3:
        cut = chars_max
    return f"{head[:cut].rstrip(' ,;:.–—-(')}…"


def enclose(before: str, text: str, after: str = "") -> str:
    """Return a text between `before` and `after`; empty if the text itself is empty."""
    return f"{before}{text}{after}" if text else ""


def parse_moment(text: str) -> datetime | None:
    """Return the time in a text in ISO or mail format, naive without a time zone; None for other texts."""
    for read in (datetime.fromisoformat, parsedate_to_datetime):
        with suppress(ValueError, TypeError, IndexError, OverflowError):
            return read(text.strip())
    return None


def show_moment(moment: datetime, zone: tzinfo) -> str:
    """Return a time as `Tue 10 March 2026, 08:20`, in `zone` unless it is naive."""
    local = moment if moment.tzinfo is None else in_zone(moment, zone)
    return f"{format_period(local.date(), local.date())}, {local:%H:%M}"


def select_record_terms(source: str, text: str) -> tuple[str, ...]:
    """Return at most `TERMS_MAX` words of `source`, without hashes, whose stems `text` lacks."""
    clean = remove_hashes(source[:6_000])
    if len(clean) <= len(text) and clean in text:
        return ()
    seen = {token.stem for token in tokenize(text)}
    terms: list[str] = []
    for token in tokenize(clean):
        if token.kind not in _TERM_KINDS or token.stem in seen:
            continue
        seen.add(token.stem)
        if 3 <= len(token.surface) <= TERM_CHARS_MAX:
            terms.append(token.surface)
        if len(terms) == TERMS_MAX:
            break
    return tuple(terms)
