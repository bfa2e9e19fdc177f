"""Lines of record summaries: their values, the words and the times they are made of."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, timezone, tzinfo
from typing import Generic, TypeVar

from mnemosyned.instants import in_zone
from mnemosyned.memory.values import MemoryRecord
from mnemosyned.summary.records.matching import first_match, grouped
from mnemosyned.text.dates.formatting import format_period
from mnemosyned.text.sentences import sentences
from mnemosyned.text.tokens import TokenKind, tokens

TERMS_MAX = 24
TERM_CHARS_MAX = 40
TERM_SOURCE_CHARS_MAX = 6_000
LINE_CHARS_MAX = 2_000
"""Longer lines are cut: no rule needs their end, and patterns cost more than their length."""
PROSE_WORDS_MIN = 5
PROSE_STOP_SHARE = 0.25

_HEX = r"(?=[0-9a-f]{0,128}[0-9])(?=[0-9a-f]{0,128}[a-f])[0-9a-f]{7,128}"
_HASH = re.compile(
    r"(?<![\w.+-])(?:"
    r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
    r"|(?:sha\d+[:-]|0x)[0-9a-f]{6,128}"
    rf"|{_HEX}"
    r"|[0-9a-f]{40}|[0-9a-f]{64}"
    r"|(?=[\w+-]{0,256}[0-9])(?=[\w+-]{0,256}(?-i:[A-Z]))(?=[\w+-]{0,256}(?-i:[a-z]))[\w+-]{32,256}={0,2}"
    r")(?![\w-])",
    re.IGNORECASE,
)
_HOLLOW = re.compile(r"\s*(?:\(\s*\)|\[\s*\]|<\s*>|“\s*”|\"\s*\"|'\s*')")
_SPACED_MARK = re.compile(r"\s+(?=[,.;:!?)](?:\s|$))")
_SPACES = re.compile(r"\s+")
_WORD = re.compile(r"[^\W_]+")
_CODE = re.compile(r"[{}<>=|$\\\[\]]|::|->|\(\)|^\s*(?:at|File|from) ")
_ENDS = (".", "!", "?", "…", "。", "！", "？", "”", '."')
_STOP_WORDS = frozenset(
    """
    a an and are as at be been but by can could did do for from had has have he her his how i if in
    is it its just me my no not of on or our she should so some than that the their them then there
    they this to too was we were what when which who will with would you your
    aber als am an auch auf aus bei das dass dem den der des die ein eine einen er es für hat ich im
    ist mit nach nicht noch nur oder sich sie sind um und von vor war was wenn wie wir wird zu zum
    au aux avec ce ces dans de du elle en est et il je la le les mais ne nous on ou par pas pour que
    qui sur un une vous
    con como del el en es la las lo los más no para pero por que se su un una y
    che di e il in la le lo ma non per più si sono un una
    de een en het ik in is maar met niet op te van voor
    em com do da no na os as que não um uma
    """.split()
)
"""Function words of the common European languages: what records have few of."""
_TERM_KINDS = frozenset({TokenKind.WORD, TokenKind.IDENTIFIER, TokenKind.VERSION})


def collapse(text: str) -> str:
    """Return the text on one line."""
    return _SPACES.sub(" ", text).strip()


def without_hashes(text: str) -> str:
    """Return the text on one line without commit ids, digests, UUIDs and addresses."""
    bare = _HASH.sub("", text)
    if bare != text:
        bare = _SPACED_MARK.sub("", _HOLLOW.sub("", bare))
    return collapse(bare)


def shorten(text: str, chars_max: int) -> str:
    """Return the text without hashes, cut after a word with an ellipsis where it is too long."""
    clean = without_hashes(text)
    if len(clean) <= chars_max:
        return clean
    head = clean[:chars_max]
    cut = head.rfind(" ")
    if cut < chars_max // 3:
        cut = chars_max
    return f"{head[:cut].rstrip(' ,;:.–—-(')}…"


def first_sentences(text: str, chars_max: int) -> str:
    """Return as many whole sentences from the beginning as fit; at least part of the first."""
    result = ""
    for sentence, _ in sentences(text[: chars_max * 4]):
        longer = f"{result} {sentence}".strip()
        if result and len(longer) > chars_max:
            return without_hashes(result)
        result = longer
    return shorten(result, chars_max)


def closed(text: str) -> str:
    """Return the text with a full stop, unless it ends a sentence already."""
    return text if text.endswith(_ENDS) else f"{text}."


def full_stop(text: str) -> str:
    """Return the text with a full stop, which an ellipsis at the end of a part swallows."""
    return f"{text}.".replace("….", "…")


def phrase(before: str, text: str, after: str = "") -> str:
    """Return the text between its marks, or nothing where there is no text."""
    return f"{before}{text}{after}" if text else ""


def plural(count: int, noun: str) -> str:
    """Return the noun in the form that a number asks for."""
    return noun if count == 1 else f"{noun}s"


def counted(count: int, noun: str) -> str:
    """Return a number with its noun in the right form."""
    return f"{count} {plural(count, noun)}"


def listed(names: Sequence[str], limit: int) -> str:
    """Return names joined as in a sentence; those past the limit are counted."""
    shown = list(names[:limit])
    left = len(names) - len(shown)
    if left:
        return f"{', '.join(shown)} and {left} more"
    if len(shown) > 1:
        return f"{', '.join(shown[:-1])} and {shown[-1]}"
    return "".join(shown)


def index_terms(source: str, text: str) -> tuple[str, ...]:
    """Return distinct words of the source that the text leaves out, without hashes."""
    clean = without_hashes(source[:TERM_SOURCE_CHARS_MAX])
    if len(clean) <= len(text) and clean in text:
        return ()
    seen = {token.stem for token in tokens(text)}
    terms: list[str] = []
    for token in tokens(clean):
        if token.kind not in _TERM_KINDS or token.stem in seen:
            continue
        seen.add(token.stem)
        if 3 <= len(token.surface) <= TERM_CHARS_MAX:
            terms.append(token.surface)
        if len(terms) == TERMS_MAX:
            break
    return tuple(terms)


def is_prose(line: str) -> bool:
    """Tell whether a line is a sentence a person wrote, not a part of a record."""
    if _CODE.search(line):
        return False
    words = [word.lower() for word in _WORD.findall(line)]
    if len(words) < PROSE_WORDS_MIN:
        return False
    stops = sum(word in _STOP_WORDS for word in words)
    return stops >= PROSE_STOP_SHARE * len(words)


def lines_of(text: str) -> list[str]:
    """Return the lines of a text that are not blank, without trailing spaces."""
    return [
        line[:LINE_CHARS_MAX].rstrip() for line in text.splitlines() if line.strip()
    ]


def below_command(lines: list[str]) -> tuple[str, list[str]]:
    """Return the command that a first line `$ make test` shows, and the lines below it."""
    if not lines[0].startswith("$ "):
        return "", lines
    return lines[0].removeprefix("$ "), lines[1:]


def most_common(names: Iterable[str]) -> list[tuple[str, int]]:
    """Return names with their counts, the most frequent first, equals in order."""
    return Counter(names).most_common()


T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class RecordLine:
    """A line of a summary that stands for records."""

    text: str
    """A whole sentence or a whole record, readable alone."""
    index_terms: tuple[str, ...]
    """Words worth finding it by that the text leaves out."""
    position: int
    """Index of the first memory it stands for."""
    worth: float
    """How much it deserves room, from 0 to 1."""
    memories: int
    """How many memories it stands for."""


@dataclass(frozen=True, slots=True)
class RecordSummary:
    """Lines for the records of a group, and the memories that are prose."""

    lines: tuple[RecordLine, ...]
    prose: tuple[MemoryRecord, ...]


@dataclass(frozen=True, slots=True)
class Reading(Generic[T]):
    """A memory that a rule took, and what the rule read in it."""

    position: int
    memory: MemoryRecord
    value: T


Writer = Callable[[Sequence[Reading[T]], tzinfo], Iterable[RecordLine]]
"""What makes the lines for the memories that one rule took."""


@dataclass(frozen=True, slots=True)
class Rule(Generic[T]):
    """A kind of record: how it is recognized and how a group of it is written."""

    plural: str
    """Its name where lines are left out: "and 14 more commits"."""
    read: Callable[[MemoryRecord], T | None]
    write: Writer[T]


def make_line(
    text: str, source: str, positions: Sequence[int], worth: float
) -> RecordLine:
    """Return the line for the memories at the positions, with words of the source."""
    return RecordLine(
        text=text,
        index_terms=index_terms(source, text),
        position=positions[0],
        worth=worth,
        memories=len(set(positions)),
    )


@dataclass(frozen=True, slots=True)
class Sentence:
    """Sentence about one memory, before equal sentences are counted."""

    text: str
    worth: float
    source: str
    """Text whose words the sentence may leave out."""


def write_each(
    describe: Callable[[Reading[T], tzinfo], Iterable[Sentence]],
) -> Writer[T]:
    """Return the writer that describes each memory alone and merges equal sentences."""

    def write(readings: Sequence[Reading[T]], zone: tzinfo) -> Iterator[RecordLine]:
        return merge_equal(
            (reading.position, sentence)
            for reading in readings
            for sentence in describe(reading, zone)
        )

    return write


def merge_equal(
    sentences: Iterable[tuple[int, Sentence]],
) -> Iterator[RecordLine]:
    """Write each distinct sentence once; say how often where it repeats."""
    for pairs in grouped(sentences, _text).values():
        sentence = pairs[0][1]
        text = sentence.text
        if len(pairs) > 1:
            text = f"{text.removesuffix('.')} ({len(pairs)} times)."
        positions = [position for position, _ in pairs]
        yield make_line(text, sentence.source, positions, sentence.worth)


def _text(pair: tuple[int, Sentence]) -> str:
    return pair[1].text


Moment = datetime | date
"""A time with a zone, a time of the wall clock, or a day."""

STAMP = r"\d{4}-\d\d-\d\d \d\d:\d\d(?::\d\d)?"
"""The pattern of a time as phones write it into their rows."""

_DAY = r"(?P<year>\d{4})[-/.]?(?P<month>\d\d)[-/.]?(?P<day>\d\d)"
_CLOCK = r"(?P<hour>\d\d):?(?P<minute>\d\d)(?::?(?P<second>\d\d))?(?:[.,]\d+)?"
_OFFSET = r"(?P<offset>Z|UTC|GMT|[+-]\d\d:?\d\d)"
_ISO = re.compile(rf"{_DAY}(?:[T ]{_CLOCK}\s?{_OFFSET}?)?")
_MONTHS = dict(
    zip(
        "jan feb mar apr may jun jul aug sep oct nov dec".split(),
        range(1, 13),
        strict=True,
    )
)
_RFC = re.compile(
    r"(?:\w{3},? )?(?P<day>\d{1,2}) (?P<name>\w{3})\w* (?P<year>\d{4})"
    rf"(?:,? {_CLOCK}(?: {_OFFSET})?)?(?: \(\w+\))?"
)
_GIT = re.compile(
    rf"\w{{3}} (?P<name>\w{{3}}) +(?P<day>\d{{1,2}}) {_CLOCK} (?P<year>\d{{4}})(?: {_OFFSET})?"
)
_EUROPEAN = re.compile(
    rf"(?P<day>\d{{1,2}})\.(?P<month>\d{{1,2}})\.(?P<year>\d{{4}})(?:,? (?:um )?{_CLOCK})?"
)
_MOMENT_FORMS = (_ISO, _RFC, _GIT, _EUROPEAN)
_STAMP = re.compile(STAMP)
_EPOCH = re.compile(r"1\d{9}(?:\d{3})?(?:\.\d+)?")


def parse_moment(text: str) -> Moment | None:
    """Return the time that the whole text spells, or None."""
    match = first_match(_MOMENT_FORMS, text.strip())
    return _build(match) if match else None


def has_stamp_in_first_paragraph(text: str) -> bool:
    """Tell whether a text may be a row of a phone, which has its time before any gap."""
    stamp = _STAMP.search(text)
    return stamp is not None and "\n\n" not in text[: stamp.start()]


def parse_epoch(text: str) -> Moment | None:
    """Return the time of a count of seconds or milliseconds of our years, or None."""
    if not _EPOCH.fullmatch(text):
        return None
    count = float(text)
    return datetime.fromtimestamp(count / 1000 if count > 1e11 else count, UTC)


def show_moment(moment: Moment, zone: tzinfo) -> str:
    """Return a time as `Tue 10 March 2026, 08:20`."""
    if not isinstance(moment, datetime):
        return format_period(moment, moment)
    local = localized(moment, zone)
    return f"{format_period(local.date(), local.date())}, {local:%H:%M}"


def show_span(start: Moment, end: Moment | None, zone: tzinfo) -> str:
    """Return both ends of a span, the day once where it is the same."""
    if end is None or not _ordered(start, end):
        return show_moment(start, zone)
    if isinstance(start, datetime) and isinstance(end, datetime):
        first, last = localized(start, zone), localized(end, zone)
        if first == last:
            return show_moment(start, zone)
        if first.date() == last.date():
            return f"{show_moment(start, zone)}–{last:%H:%M}"
        return f"{show_moment(start, zone)} – {show_moment(end, zone)}"
    return format_period(_day(start), _day(end))


def show_clock(moment: Moment | None, zone: tzinfo) -> str:
    """Return the time of day as `08:20`, empty for a day."""
    if not isinstance(moment, datetime):
        return ""
    return f"{localized(moment, zone):%H:%M}"


def localized(moment: datetime, zone: tzinfo) -> datetime:
    """Return the reading of the zone's clock; a wall-clock time stays as it is."""
    return moment if moment.tzinfo is None else in_zone(moment, zone)


def previous_day(day: date) -> date:
    """Return the day before, for ends that a format excludes."""
    return day - timedelta(1) if day > date.min else day


def _ordered(start: Moment, end: Moment) -> bool:
    if isinstance(start, datetime) != isinstance(end, datetime):
        return False
    try:
        return end >= start
    except TypeError:  # one has a zone and one has none
        return False


def _day(moment: Moment) -> date:
    return moment.date() if isinstance(moment, datetime) else moment


def _build(match: re.Match[str]) -> Moment | None:
    parts = match.groupdict("")
    name = parts.get("name", "").lower()
    month = _MONTHS.get(name, 0) if name else int(parts["month"])
    try:
        day = date(int(parts["year"]), month, int(parts["day"]))
        if not parts["hour"]:
            return day
        return datetime(
            day.year,
            day.month,
            day.day,
            int(parts["hour"]),
            int(parts["minute"]),
            int(parts["second"] or 0),
            tzinfo=_offset(parts.get("offset", "")),
        )
    except ValueError:
        return None


def _offset(text: str) -> timezone | None:
    if not text:
        return None
    if text in {"Z", "UTC", "GMT"}:
        return UTC
    minutes = int(text[1:3]) * 60 + int(text[-2:])
    return timezone(timedelta(minutes=-minutes if text[0] == "-" else minutes))
