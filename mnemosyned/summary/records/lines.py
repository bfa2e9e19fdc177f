"""Lines of record summaries: their values, the words and the times they are made of."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, timezone, tzinfo
from typing import Generic, TypeVar

from mnemosyned.instants import in_zone
from mnemosyned.memory.values import MemoryRecord
from mnemosyned.text.dates.formatting import format_period
from mnemosyned.text.languages.tables import LANGUAGES
from mnemosyned.text.rule_files import read_rule_file
from mnemosyned.text.sentences import split_sentences
from mnemosyned.text.terms import FOREIGN_STOP_WORDS, FUNCTION_WORDS
from mnemosyned.text.tokens import TokenKind, tokenize

_WORDS, _NAMES, _PATTERNS, _FORMS = read_rule_file(__file__)


TERMS_MAX = 24
TERM_CHARS_MAX = 40
TERM_SOURCE_CHARS_MAX = 6_000
LINE_CHARS_MAX = 2_000
"""Longer lines are cut: no rule needs their end, and patterns cost more than their length."""
PROSE_WORDS_MIN = 5
PROSE_STOP_SHARE = 0.25

_ENDS = (".", "!", "?", "…", "。", "！", "？", "”", '."')
_STOP_WORDS = FUNCTION_WORDS.union(
    FOREIGN_STOP_WORDS, *(language.stop_words.split() for language in LANGUAGES)
)
"""Function words of all languages, of which records have few."""

_TERM_KINDS = frozenset({TokenKind.WORD, TokenKind.IDENTIFIER, TokenKind.VERSION})

T = TypeVar("T")
S = TypeVar("S")
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


@dataclass(frozen=True, slots=True)
class RecordReading(Generic[T]):
    """A memory with its index in the group, and the value read from it by a rule."""

    position: int
    memory: MemoryRecord
    value: T


@dataclass(frozen=True, slots=True)
class RecordRule(Generic[T]):
    """A kind of record, with its functions to read a memory and to write the lines of a group."""

    plural: str
    """Name of the kind where lines are left out: "and 14 more commits"."""
    read: Callable[[MemoryRecord, tzinfo], T | None]
    """Reads a memory, or returns None if the whole memory is no such record."""
    write: Callable[[Sequence[RecordReading[T]], tzinfo], Iterable[RecordLine]]
    """Writes the lines for all memories that the rule read."""


@dataclass(frozen=True, slots=True)
class RecordSentence:
    """Sentence about one memory, before equal sentences are counted."""

    text: str
    worth: float
    source: str
    """Text of the record, whose words go to the index if the sentence lacks them."""


Sentences = tuple[RecordSentence, ...]
"""A record as the sentences it becomes."""


def write_sentences(
    readings: Sequence[RecordReading[Sentences]], _zone: tzinfo
) -> Iterator[RecordLine]:
    """Yield a line for each distinct sentence in the readings, with its count if repeated."""
    return merge_equal(
        (reading.position, sentence)
        for reading in readings
        for sentence in reading.value
    )


def merge_equal(
    sentences: Iterable[tuple[int, RecordSentence]],
) -> Iterator[RecordLine]:
    """Yield a line for each distinct sentence, with its count if repeated.

    Sentences are given with the index of their memory.
    """
    for pairs in group_by(sentences, lambda pair: pair[1].text).values():
        sentence = pairs[0][1]
        text = sentence.text
        if len(pairs) > 1:
            text = f"{text.removesuffix('.')} ({len(pairs)} times)."
        positions = [position for position, _ in pairs]
        yield make_line(text, sentence.source, positions, sentence.worth)


def make_line(
    text: str, source: str, positions: Sequence[int], worth: float
) -> RecordLine:
    """Return a summary's line about the memories with these indexes in the group.

    Its index terms are the words of `source` that `text` lacks; `worth` is from 0 to 1.
    """
    terms = select_record_terms(source, text)
    return RecordLine(text, terms, positions[0], worth, memories=len(set(positions)))


def find_first_match(
    patterns: Iterable[re.Pattern[str]], text: str
) -> re.Match[str] | None:
    """Return the match of the first pattern that matches the whole text, or None."""
    for pattern in patterns:
        if match := pattern.fullmatch(text):
            return match
    return None


def find_first_reading(
    readers: Iterable[Callable[[S], T | None]], source: S
) -> T | None:
    """Return the first result of a reader for `source` that is not None or empty; else None."""
    for reader in readers:
        if value := reader(source):
            return value
    return None


def group_by(items: Iterable[T], key: Callable[[T], K]) -> dict[K, list[T]]:
    """Return the items in lists by their key, both in the order of their first occurrence."""
    groups: dict[K, list[T]] = {}
    for item in items:
        groups.setdefault(key(item), []).append(item)
    return groups


def collapse_blanks(text: str) -> str:
    """Return a text on one line, with single blanks and none at its ends."""
    return _PATTERNS["spaces"].sub(" ", text).strip()


def remove_hashes(text: str) -> str:
    """Return a text on one line without commit hashes, digests, UUIDs and memory addresses."""
    bare = _PATTERNS["hash"].sub("", text)
    if bare != text:
        bare = _PATTERNS["spaced_mark"].sub("", _PATTERNS["hollow"].sub("", bare))
    return collapse_blanks(bare)


def shorten(text: str, chars_max: int) -> str:
    """Return a text on one line without hashes, cut after a word and with "…" if too long.

    `chars_max` is the limit in characters.
    """
    clean = remove_hashes(text)
    if len(clean) <= chars_max:
        return clean
    head = clean[:chars_max]
    cut = head.rfind(" ")
    if cut < chars_max // 3:
        cut = chars_max
    return f"{head[:cut].rstrip(' ,;:.–—-(')}…"


def take_first_sentences(text: str, chars_max: int) -> str:
    """Return the first sentences of a text that fit in `chars_max`, without hashes.

    If even the first does not fit, return its beginning.
    """
    result = ""
    for sentence, _ in split_sentences(text[: chars_max * 4]):
        longer = f"{result} {sentence}".strip()
        if result and len(longer) > chars_max:
            return remove_hashes(result)
        result = longer
    return shorten(result, chars_max)


def end_sentence(text: str) -> str:
    """Return a text with a full stop, unless it ends with an end mark such as "!"."""
    return text if text.endswith(_ENDS) else f"{text}."


def end_line(text: str) -> str:
    """Return a text with a full stop, unless it ends with "…"."""
    return f"{text}.".replace("….", "…")


def enclose(before: str, text: str, after: str = "") -> str:
    """Return a text between `before` and `after`; empty if the text itself is empty."""
    return f"{before}{text}{after}" if text else ""


def pluralize(count: int, noun: str) -> str:
    """Return an English noun with "s", unless `count` is 1."""
    return noun if count == 1 else f"{noun}s"


def show_count(count: int, noun: str) -> str:
    """Return a count with its noun: "1 commit" or "2 commits"."""
    return f"{count} {pluralize(count, noun)}"


def join_names(names: Sequence[str], limit: int) -> str:
    """Return names as "a, b and c"; after `limit` names, the others are counted: "and 3 more"."""
    shown = list(names[:limit])
    left = len(names) - len(shown)
    if left:
        return f"{', '.join(shown)} and {left} more"
    if len(shown) > 1:
        return f"{', '.join(shown[:-1])} and {shown[-1]}"
    return "".join(shown)


def select_record_terms(source: str, text: str) -> tuple[str, ...]:
    """Return words of `source` whose stems `text` lacks, each once, as index terms.

    At most `TERMS_MAX`, without hashes.
    """
    clean = remove_hashes(source[:TERM_SOURCE_CHARS_MAX])
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


def is_prose(line: str) -> bool:
    """Return True if a line is a person's sentence: enough words, many of them function words."""
    if _PATTERNS["code"].search(line):
        return False
    words = [word.lower() for word in _PATTERNS["word"].findall(line)]
    if len(words) < PROSE_WORDS_MIN:
        return False
    stops = sum(word in _STOP_WORDS for word in words)
    return stops >= PROSE_STOP_SHARE * len(words)


def split_nonblank_lines(text: str) -> list[str]:
    """Return the lines of a text that are not blank, without blanks at their ends.

    Each is cut at `LINE_CHARS_MAX` characters.
    """
    return [
        line[:LINE_CHARS_MAX].rstrip() for line in text.splitlines() if line.strip()
    ]


def split_command(lines: list[str]) -> tuple[str, list[str]]:
    """Return the command in a first line `$ make test`, or an empty text, and the other lines."""
    if not lines[0].startswith("$ "):
        return "", lines
    return lines[0].removeprefix("$ "), lines[1:]


Moment = datetime | date
"""A time with a zone, a time of the wall clock, or a day."""

_MONTHS = "jan feb mar apr may jun jul aug sep oct nov dec".split()
_MOMENT_FORMS = (
    _PATTERNS["iso"],
    _PATTERNS["rfc"],
    _PATTERNS["git"],
    _PATTERNS["european"],
)


def parse_moment(text: str) -> Moment | None:
    """Return the time or the day that the whole text spells; None for any other text.

    The time has a zone if the text has one.
    """
    match = find_first_match(_MOMENT_FORMS, text.strip())
    if match is None:
        return None
    parts = match.groupdict("")
    name, offset = parts.get("name", "").lower(), parts.get("offset", "")
    try:
        month = _MONTHS.index(name) + 1 if name else int(parts["month"])
        day = date(int(parts["year"]), month, int(parts["day"]))
        if not parts["hour"]:
            return day
        hour, minute, second = (
            int(parts[unit] or 0) for unit in ("hour", "minute", "second")
        )
        clock = time(hour, minute, second)
    except ValueError:
        return None
    if not offset:
        return datetime.combine(day, clock)
    ahead = 0 if offset.isalpha() else int(offset[1:3]) * 60 + int(offset[-2:])
    try:
        zone = timezone(timedelta(minutes=-ahead if offset[0] == "-" else ahead))
    except ValueError:
        return None
    return datetime.combine(day, clock, zone)


def parse_epoch(text: str) -> Moment | None:
    """Return the time in a text that counts seconds or milliseconds since 1970; else None."""
    if not _PATTERNS["epoch"].fullmatch(text):
        return None
    count = float(text)
    return datetime.fromtimestamp(count / 1000 if count > 1e11 else count, UTC)


def show_moment(moment: Moment, zone: tzinfo) -> str:
    """Return a time as `Tue 10 March 2026, 08:20` in `zone`; a day without the time of day."""
    if not isinstance(moment, datetime):
        return format_period(moment, moment)
    local = to_zone(moment, zone)
    return f"{format_period(local.date(), local.date())}, {local:%H:%M}"


def show_span(start: Moment, end: Moment | None, zone: tzinfo) -> str:
    """Return a time span as text in `zone`; if both ends are on one day, the day is given once.

    Only the start is shown if there is no end, or an end before it.
    """
    is_clocked = isinstance(start, datetime)
    if end is None or is_clocked != isinstance(end, datetime):
        return show_moment(start, zone)
    try:
        if end < start:
            return show_moment(start, zone)
    except TypeError:  # one has a zone and one has none
        return show_moment(start, zone)
    if not (isinstance(start, datetime) and isinstance(end, datetime)):
        return format_period(start, end)
    first, last = to_zone(start, zone), to_zone(end, zone)
    if first == last:
        return show_moment(start, zone)
    if first.date() == last.date():
        return f"{show_moment(start, zone)}–{last:%H:%M}"
    return f"{show_moment(start, zone)} – {show_moment(end, zone)}"


def show_clock(moment: Moment | None, zone: tzinfo) -> str:
    """Return the time of day as `08:20` in `zone`; empty for a day or None."""
    if not isinstance(moment, datetime):
        return ""
    return f"{to_zone(moment, zone):%H:%M}"


def to_zone(moment: datetime, zone: tzinfo) -> datetime:
    """Return a time in this zone; a time without a zone is returned unchanged."""
    return moment if moment.tzinfo is None else in_zone(moment, zone)
