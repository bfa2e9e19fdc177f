"""Extraction: the most informative sentences of a group, and index terms for what is left out."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, tzinfo
from heapq import heappop, heappush
from typing import NamedTuple

from mnemosyned.domain.dates import relative
from mnemosyned.domain.instants import in_zone
from mnemosyned.domain.memory import MemoryRecord
from mnemosyned.domain.summary.keywords import Vocabulary, select_keywords
from mnemosyned.domain.text.sentence_marks import SPACED_ENDS, UNSPACED_ENDS
from mnemosyned.domain.text.sentences import sentences
from mnemosyned.domain.text.tokenizer import (
    EXACT_KINDS,
    Token,
    TokenKind,
    emphasis,
    tokens,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtractWeights:
    """Weights of extraction, chosen on conversations 1-5 of LoCoMo; retention is flat around them.

    A sentence's worth is divided by its length, or only the longest would be kept: to a power
    below one and with some characters added, or the shortest remark would beat every statement.
    """

    terms_share: float = 0.16
    """Index terms, as a share of the characters of the sources."""
    terms_chars_min: int = 160
    question: float = 0.7
    plain: float = 0.85
    """Factor of a sentence without a name, a value or a cue."""
    exclamation: float = 0.2
    """Factor of a sentence with fewer than `exclamation_words`."""
    exclamation_words: int = 3
    listing: float = 0.35
    """Factor of a table row, command or log line."""
    eventful_listing: float = 0.6
    """Factor of a row or command that reports an event, such as a failure."""
    clipped: float = 0.7
    """Factor of a sentence cut short."""
    prose_stop_share: float = 0.15
    """Share of stop words below which a line may be a listing. Notes and appointments have few
    too ("Dentist, Thursday, 08:20"), but they end or pause as prose does."""
    sentence_cost_chars: int = 16
    length_power: float = 0.55
    new_worth_min: float = 2.5
    """Worth a sentence must add: more than two ordinary words, or one exact value."""


WEIGHTS = ExtractWeights()

CHARS_MIN = 160
CHARS_MAX = 12_000
UNITS_MAX = 1_500
CLIP_CHARS_MIN = 40
CLIPS_MAX = 12

VALUES = EXACT_KINDS - {TokenKind.IDENTIFIER}
"""Kinds that make a statement of two words; not identifiers, which are everywhere in code."""

_STOP = TokenKind.STOP  # found faster than an attribute of an Enum

UNSPACED = tuple(UNSPACED_ENDS)
QUESTION_MARKS = ("?", "？", "؟")
SENTENCE_ENDS = tuple(SPACED_ENDS + UNSPACED_ENDS)
_SIGNS = re.compile(r"[{}<>=|$\\\[\]]|::|->|\(\)")
"""Signs of code and commands."""
_STAMP = re.compile(r"\[?(?:\w{3}\s\d+|\d{4}-\d\d-\d\d)[T\s]\d\d:\d\d:\d\d")
"""Timestamp at the beginning of a log line."""
_CLAUSE = re.compile(r"[,;:、，；：](?:\s+|(?<=[、，；：]))|\s[–—]\s")


@dataclass(frozen=True, slots=True)
class Extract:
    """Extract of a group."""

    lines: tuple[str, ...]
    """Sentences in their original order."""
    index_terms: tuple[str, ...] = ()
    """Terms to search by that the lines leave out: days, speakers, words in their order."""

    @property
    def text(self) -> str:
        """Whole text, as an episode shows it."""
        return "\n".join(self.lines)


class _Unit(NamedTuple):
    """Sentence that may be kept."""

    at: int
    """Position among all sentences of the group."""
    memory: int
    role: str
    text: str
    starts_line: bool
    stems: tuple[str, ...]
    """Stems of the words, each once; in a fixed order, on which sums of fractions depend."""
    emphasis: float
    clipped: bool = False


def extract(
    memories: Sequence[MemoryRecord],
    *,
    ratio: float,
    zone: tzinfo = UTC,
    weights: ExtractWeights = WEIGHTS,
) -> Extract:
    """Keep about `ratio` of the group's characters, and index terms for what is left out.

    Very short groups may keep more, but the text is never longer than its sources; very long
    ones keep at most `CHARS_MAX`. `zone` is the time zone of the memories, for "yesterday".
    """
    size = sum(len(memory.content) for memory in memories)
    budget = min(max(int(size * ratio), CHARS_MIN), CHARS_MAX)
    if size <= budget:
        kept = _everything_that_fits(memories, size, weights)
        return Extract(tuple(_render_lines(kept)))
    roles = tuple(dict.fromkeys(memory.role for memory in memories if memory.role))
    units, known = _split_units(
        memories, zone=zone, named=len(roles) > 1, weights=weights
    )
    known.discount(roles)
    _, kept = _choose(units, known.worth, chars_max=budget, weights=weights)
    lines = _render_lines(kept)
    days = _days(memories, zone)
    covered = {token.stem for token in tokens(days)}
    covered.update(*[unit.stems for unit in kept])
    room = terms_room(memories, weights) - len(days)
    terms = select_keywords(known, covered=covered, chars_max=room)
    return Extract(tuple(lines), (days, *terms))


def terms_room(
    memories: Sequence[MemoryRecord], weights: ExtractWeights = WEIGHTS
) -> int:
    """Return the characters that the index terms of a group may take."""
    size = sum(len(memory.content) for memory in memories)
    return min(max(int(size * weights.terms_share), weights.terms_chars_min), CHARS_MAX)


def _days(memories: Sequence[MemoryRecord], zone: tzinfo) -> str:
    """Return the first and the last day of a group, in words that questions use."""
    first, last = (
        in_zone(memory.created_at, zone).date()
        for memory in (memories[0], memories[-1])
    )
    return relative.format_period(first, last)


def _everything_that_fits(
    memories: Sequence[MemoryRecord], size: int, weights: ExtractWeights
) -> list[_Unit]:
    """Return all sentences that fit, for a group too short to be summarized."""
    units, known = _split_units(memories, zone=None, named=False, weights=weights)
    return _choose(units, known.worth, chars_max=size + 1, weights=weights)[1]


def _split_units(
    memories: Sequence[MemoryRecord],
    *,
    zone: tzinfo | None,
    named: bool,
    weights: ExtractWeights,
) -> tuple[list[_Unit], Vocabulary]:
    """Split memories into distinct sentences; resolve their relative dates where a zone is given."""
    known = Vocabulary()
    seen: set[str] = set()
    units: list[_Unit] = []
    for index, memory in enumerate(memories):
        content = memory.content
        said = (
            in_zone(memory.created_at, zone)
            if zone and relative.may_have_relative_dates(content)
            else None
        )
        role = memory.role if named else ""
        for sentence, starts_line in sentences(content):
            key = sentence.casefold()
            if key in seen:
                continue
            seen.add(key)
            text = (
                relative.annotate_relative_dates(sentence, said) if said else sentence
            )
            stamp = _STAMP.match(text)
            words = tokens(text[stamp.end() :] if stamp else text)
            weight = _emphasis(sentence, words, weights, stamped=stamp is not None)
            weight *= 0.5 + memory.importance
            stems = known.add(words)
            units.append(
                _Unit(len(units), index, role, text, starts_line, stems, weight)
            )
    return units, known


def _emphasis(
    sentence: str, words: Sequence[Token], weights: ExtractWeights, *, stamped: bool
) -> float:
    """Return the factor by which a sentence matters more, or less, than its words."""
    kinds = [word.kind for word in words]
    factor = emphasis(words)
    if stamped or _is_listing(sentence, kinds, weights):
        eventful = factor > 1 and not stamped
        factor *= weights.eventful_listing if eventful else weights.listing
    elif factor == 1 and _is_plain(words, kinds):
        factor = weights.plain
    if sentence.endswith(QUESTION_MARKS):
        factor *= weights.question
    if len(words) < weights.exclamation_words and _says_nothing(sentence, kinds):
        factor *= weights.exclamation
    return factor


def _is_plain(words: Sequence[Token], kinds: Sequence[TokenKind]) -> bool:
    """Whether a sentence has neither an exact value nor, after its first word, a name."""
    return EXACT_KINDS.isdisjoint(kinds) and True not in [
        word.capital for word in words[1:]
    ]


def _says_nothing(sentence: str, kinds: Sequence[TokenKind]) -> bool:
    """Whether a few words say nothing; scripts without spaces are not judged by words."""
    return sentence.isascii() and VALUES.isdisjoint(kinds)


def _is_listing(
    sentence: str, kinds: Sequence[TokenKind], weights: ExtractWeights
) -> bool:
    """Whether a line with few stop words is a table row, a command or a log line, not a note."""
    if kinds.count(_STOP) >= weights.prose_stop_share * len(kinds):
        return False
    if _SIGNS.search(sentence):
        return True
    exact = sum(kind in EXACT_KINDS for kind in kinds)
    return exact > len(kinds) / 2 or not (
        sentence.endswith(SENTENCE_ENDS) or "," in sentence
    )


class _Selection:
    """Greedy selection of sentences while there is room, by gain for their length."""

    def __init__(
        self, worth: Mapping[str, float], weights: ExtractWeights, *, chars_max: int
    ) -> None:
        self.room = chars_max
        self._weights = weights
        self.kept: list[_Unit] = []
        self.gain = 0.0
        self._worth = dict(worth)
        """Remaining worth of each stem: 0 once it is covered."""
        self._speakers: set[int] = set()
        self._clips = 0

    def value(self, unit: _Unit) -> float:
        """Return what a sentence adds, for its length, to those kept."""
        fresh = sum(map(self._worth.__getitem__, unit.stems))
        weights = self._weights
        if fresh < weights.new_worth_min:
            return 0.0
        chars = len(unit.text) + weights.sentence_cost_chars
        length: float = chars**weights.length_power
        return unit.emphasis * fresh / length

    def cost(self, unit: _Unit) -> int:
        """Return the characters it takes, with the name of its speaker."""
        named = unit.role and unit.memory not in self._speakers
        return len(unit.text) + 1 + (len(unit.role) + 2 if named else 0)

    def keep(self, unit: _Unit) -> None:
        """Add a sentence to the selection."""
        self.room -= self.cost(unit)
        self.gain += unit.emphasis * sum(map(self._worth.__getitem__, unit.stems))
        self.kept.append(unit)
        self._worth.update(dict.fromkeys(unit.stems, 0.0))
        self._speakers.add(unit.memory)

    def clip(self, unit: _Unit) -> _Unit | None:
        """Return the first clauses of a sentence too long to keep whole, if they fit."""
        if self._clips >= CLIPS_MAX or unit.clipped:
            return None
        self._clips += 1
        size = len(unit.text) - (self.cost(unit) - self.room) - 1
        stop = max(
            (clause.start() for clause in _CLAUSE.finditer(unit.text, 0, size + 1)),
            default=0,
        )
        return _cut(unit, stop, self._weights) if stop >= CLIP_CHARS_MIN else None

    def keep_beginning(self, unit: _Unit) -> None:
        """Keep the beginning of a sentence, where none fits whole."""
        self.keep(_shorten(unit, self.room, self._weights))


def _choose(
    units: Sequence[_Unit],
    worth: Mapping[str, float],
    *,
    chars_max: int,
    weights: ExtractWeights,
) -> tuple[float, list[_Unit]]:
    """Select greedily what adds most to the sentences kept; return the total gain too.

    The value of a sentence can only shrink while others are kept, so a heap of stale values is
    enough: the top is valued again, and is the best if it stays on top.
    """
    selection = _Selection(worth, weights, chars_max=chars_max)
    pool = list(units)
    heap = sorted([(-selection.value(unit), unit.at) for unit in units])[:UNITS_MAX]
    if not heap:
        return selection.gain, []
    best = pool[heap[0][1]]
    _fill_greedily(selection, pool, heap)
    if not selection.kept:
        selection.keep_beginning(best)
    return selection.gain, sorted(selection.kept, key=_position)


def _fill_greedily(
    selection: _Selection, pool: list[_Unit], heap: list[tuple[float, int]]
) -> None:
    """Keep the best unit of the heap while there is room; clip one that is too long."""
    while heap:
        stale, at = heappop(heap)
        unit = pool[at]
        if selection.cost(unit) > selection.room:
            if part := selection.clip(unit):
                pool.append(part)
                heappush(heap, (-selection.value(part), len(pool) - 1))
            continue
        gain = -selection.value(unit)
        if gain > stale and heap and (gain, at) > heap[0]:
            heappush(heap, (gain, at))
        elif gain < 0 or not selection.kept:
            selection.keep(unit)
        else:
            break


def _position(unit: _Unit) -> int:
    return unit.at


def _cut(unit: _Unit, stop: int, weights: ExtractWeights) -> _Unit:
    text = f"{unit.text[:stop].rstrip(' ,;:、，；：')}…"
    words = tokens(text)
    left = {word.stem for word in words}
    stamped = _STAMP.match(text) is not None
    return unit._replace(
        text=text,
        stems=tuple([stem for stem in unit.stems if stem in left]),
        emphasis=_emphasis(text, words, weights, stamped=stamped) * weights.clipped,
        clipped=True,
    )


def _shorten(unit: _Unit, chars_max: int, weights: ExtractWeights) -> _Unit:
    """Return the beginning of the only sentence, cut between words if it has any."""
    room = max(chars_max - len(unit.role) - len(": …\n"), 1)
    head = unit.text[:room]
    cut = head.rfind(" ")
    return _cut(unit, cut if cut > room // 2 else room, weights)


def _render_lines(kept: Iterable[_Unit]) -> list[str]:
    """Join the sentences of one line; name the speaker where it changes."""
    lines: list[str] = []
    previous: _Unit | None = None
    for unit in kept:
        if previous and previous.memory == unit.memory and not unit.starts_line:
            lines[-1] += unit.text if lines[-1].endswith(UNSPACED) else f" {unit.text}"
        elif unit.role and (previous is None or previous.role != unit.role):
            lines.append(f"{unit.role}: {unit.text}")
        else:
            lines.append(unit.text)
        previous = unit
    return lines
