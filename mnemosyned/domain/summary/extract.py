"""What to keep of a group of memories: the sentences that say most, and keywords for the rest."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, tzinfo
from heapq import heappop, heappush
from typing import NamedTuple

from mnemosyned.domain.dates import relative as dates
from mnemosyned.domain.instants import in_zone
from mnemosyned.domain.memory import MemoryRecord
from mnemosyned.domain.summary.keywords import SEPARATOR, Vocabulary, select_keywords
from mnemosyned.domain.text.tokenizer import (
    EXACT_KINDS,
    Token,
    TokenKind,
    emphasis,
    sentences,
    tokens,
)

# Chosen on conversations 1-5 of LoCoMo; retention is flat around all of them.
SHARE = 0.35
"""Of the room, what is left to keywords."""
SHARES_SMALL = (0.3, 0.2, 0.1)
SMALL_CHARS = 320
"""With less room than this, several shares are tried: one sentence more can say the most."""
KEYWORD_GAIN = 0.8
"""What a word counts without its sentence."""

QUESTION = 0.7
PLAIN = 0.85
"""A sentence without a name, a value or a cue."""
BARE = 0.2
LISTING = 0.35
LISTING_TOLD = 0.6
"""A row or command that tells of an event, such as a failure."""
CLIPPED = 0.7
PROSE_STOP_SHARE = 0.15
"""Prose has its share of little words; log lines, tables and code have fewer. So have notes and
appointments ("Dentist, Thursday, 08:20"), but they end or pause as prose does."""

SENTENCE_COST_CHARS = 16
LENGTH_POWER = 0.55
"""A sentence's worth is judged per character, or only the longest would be kept; yet to a power
below one and with some characters added, or the shortest remark would beat every statement."""

BARE_WORDS = 3
"""With fewer words a sentence is an exclamation; scripts without spaces are not judged so."""

FRESH_MIN = 2.5
"""A sentence must add more than two ordinary words, or one exact value."""

CHARS_MIN = 160
CHARS_MAX = 12_000
UNITS_MAX = 1_500
CLIP_CHARS_MIN = 40
CLIPS_MAX = 12

ROLES_SHOWN_MAX = 6
UNNAMED_ROLES = frozenset(
    "user assistant system tool agent human ai bot ci calendar notes note mail shell ops".split()
)
"""Roles that a heading need not tell: every group has them, or the lines show them."""

KEYWORDS = "Keywords: "
VALUES = EXACT_KINDS - {TokenKind.IDENTIFIER}
"""Kinds that can make a statement of two words; code has identifiers everywhere."""

_STOP = TokenKind.STOP  # found faster than an attribute of an Enum

UNSPACED = ("。", "！", "？")
QUESTION_MARKS = ("?", "？", "؟")
SENTENCE_ENDS = (".", "!", "?", "…", "。", "！", "？")
_SIGNS = re.compile(r"[{}<>=|$\\\[\]]|::|->|\(\)")
"""What code and commands have, and prose has not."""
_STAMP = re.compile(r"\[?(?:\w{3}\s\d+|\d{4}-\d\d-\d\d)[T\s]\d\d:\d\d:\d\d")
"""How a log line begins."""
_CLAUSE = re.compile(r"[,;:、，；：](?:\s+|(?<=[、，；：]))|\s[–—]\s")


@dataclass(frozen=True, slots=True)
class Extract:
    """What was kept of a group."""

    heading: str
    """The days it covers and who spoke."""
    lines: tuple[str, ...]
    """Sentences in their original order."""
    keywords: tuple[str, ...]
    """What the lines leave out, in the order in which it was said."""

    @property
    def text(self) -> str:
        """Everything, as an episode shows it."""
        last = KEYWORDS + SEPARATOR.join(self.keywords) if self.keywords else ""
        return "\n".join(part for part in (self.heading, *self.lines, last) if part)


class _Unit(NamedTuple):
    """A sentence that may be kept."""

    at: int
    """Where it stands among all sentences of the group."""
    memory: int
    role: str
    text: str
    starts_line: bool
    stems: tuple[str, ...]
    """Each word once; in a fixed order, as sums of fractions depend on it."""
    emphasis: float
    clipped: bool = False


def extract(
    memories: Sequence[MemoryRecord], *, ratio: float, zone: tzinfo = UTC
) -> Extract:
    """Keep about `ratio` of the group's characters, heading and keywords included.

    Very short groups may keep more than that, but the result is never longer than its sources;
    very long ones keep at most `CHARS_MAX`. `zone` is where "yesterday" was said.
    """
    size = sum(len(memory.content) for memory in memories)
    budget = min(max(int(size * ratio), CHARS_MIN), CHARS_MAX)
    if size <= budget:
        return Extract(
            "", tuple(_render_lines(_everything_that_fits(memories, size))), ()
        )
    roles = tuple(dict.fromkeys(memory.role for memory in memories if memory.role))
    heading = _heading(memories, roles if budget > SMALL_CHARS else (), zone)
    if len(heading) > budget // 3:
        heading = ""
    units, known = _split_units(memories, zone=zone, named=len(roles) > 1)
    known.discount(roles)
    room = budget - len(heading) - 1
    if room >= SMALL_CHARS:
        return _fill(units, known, room=room, share=SHARE, heading=heading)[0]
    tried = [
        _fill(units, known, room=room, share=share, heading=heading)
        for share in SHARES_SMALL
    ]
    return max(tried, key=lambda one: _total_gain(known, *one))[0]


def _fill(
    units: Sequence[_Unit], known: Vocabulary, *, room: int, share: float, heading: str
) -> tuple[Extract, float]:
    """The best lines, with keywords as far as there is room beside them; what the lines add."""
    gain, kept = _choose(units, known.worth, chars_max=int(room * (1 - share)))
    lines = _render_lines(kept)
    body = sum(map(len, lines)) + len(lines)
    told = {token.stem for token in tokens(heading)}
    told.update(*[unit.stems for unit in kept])
    found = select_keywords(
        known,
        covered=told,
        chars_max=min(room - body, body) - len(KEYWORDS) - len(SEPARATOR),
    )
    return Extract(heading, tuple(lines), found), gain


def _total_gain(known: Vocabulary, kept: Extract, gain: float) -> float:
    """What an extract tells, its keywords included."""
    named = dict.fromkeys([token.stem for token in tokens(" ".join(kept.keywords))])
    return gain + KEYWORD_GAIN * sum([known.worth.get(word, 0.0) for word in named])


def _heading(
    memories: Sequence[MemoryRecord], roles: Sequence[str], zone: tzinfo
) -> str:
    days = [
        in_zone(memory.created_at, zone).date()
        for memory in (memories[0], memories[-1])
    ]
    telling = not UNNAMED_ROLES.issuperset(map(str.lower, roles))
    who = ", ".join(roles[:ROLES_SHOWN_MAX]) if telling else ""
    return " · ".join(part for part in (dates.format_period(*days), who) if part)


def _everything_that_fits(memories: Sequence[MemoryRecord], size: int) -> list[_Unit]:
    """Everything that fits into the size of a group too short to be summarized."""
    units, known = _split_units(memories, zone=None, named=False)
    return _choose(units, known.worth, chars_max=size + 1)[1]


def _split_units(
    memories: Sequence[MemoryRecord], *, zone: tzinfo | None, named: bool
) -> tuple[list[_Unit], Vocabulary]:
    """Every sentence once, with its relative dates resolved if there is a zone to do it in."""
    known = Vocabulary()
    seen: set[str] = set()
    units: list[_Unit] = []
    for index, memory in enumerate(memories):
        content = memory.content
        said = (
            in_zone(memory.created_at, zone)
            if zone and dates.may_have_relative_dates(content)
            else None
        )
        role = memory.role if named else ""
        for sentence, starts_line in sentences(content):
            key = sentence.casefold()
            if key in seen:
                continue
            seen.add(key)
            text = dates.annotate_relative_dates(sentence, said) if said else sentence
            stamp = _STAMP.match(text)
            words = tokens(text[stamp.end() :] if stamp else text)
            weight = _emphasis(sentence, words, stamped=stamp is not None)
            weight *= 0.5 + memory.importance
            stems = known.add(words)
            units.append(
                _Unit(len(units), index, role, text, starts_line, stems, weight)
            )
    return units, known


def _emphasis(sentence: str, words: Sequence[Token], *, stamped: bool) -> float:
    """How much more, or less, a sentence matters than the words in it."""
    factor = emphasis(words)
    kinds = [word.kind for word in words]
    if stamped:
        factor *= LISTING
    elif kinds.count(_STOP) < PROSE_STOP_SHARE * len(words) and _is_listing(
        sentence, kinds
    ):
        factor *= LISTING_TOLD if factor > 1 else LISTING
    elif (
        factor == 1
        and EXACT_KINDS.isdisjoint(kinds)
        and True not in [word.capital for word in words[1:]]
    ):
        factor *= PLAIN
    if sentence.endswith(QUESTION_MARKS):
        factor *= QUESTION
    if len(words) < BARE_WORDS and sentence.isascii() and VALUES.isdisjoint(kinds):
        factor *= BARE
    return factor


def _is_listing(sentence: str, kinds: Sequence[TokenKind]) -> bool:
    """Whether a line of few little words is a row, a command or a log line, not a note."""
    if _SIGNS.search(sentence):
        return True
    exact = sum(kind in EXACT_KINDS for kind in kinds)
    return exact > len(kinds) / 2 or not (
        sentence.endswith(SENTENCE_ENDS) or "," in sentence
    )


class _Selection:
    """Sentences kept greedily while there is room: whatever adds most for its length."""

    def __init__(self, worth: Mapping[str, float], *, chars_max: int) -> None:
        self.room = chars_max
        self.kept: list[_Unit] = []
        self.gain = 0.0
        self._worth = dict(worth)
        """What each word still adds: nothing once it is told."""
        self._speakers: set[int] = set()
        self._clips = 0

    def value(self, unit: _Unit) -> float:
        """What a sentence adds for its length to what is covered already."""
        fresh = sum(map(self._worth.__getitem__, unit.stems))
        if fresh < FRESH_MIN:
            return 0.0
        length: float = (len(unit.text) + SENTENCE_COST_CHARS) ** LENGTH_POWER
        return unit.emphasis * fresh / length

    def cost(self, unit: _Unit) -> int:
        """The characters it takes, with the name of its speaker."""
        named = unit.role and unit.memory not in self._speakers
        return len(unit.text) + 1 + (len(unit.role) + 2 if named else 0)

    def keep(self, unit: _Unit) -> None:
        """Take it in."""
        self.room -= self.cost(unit)
        self.gain += unit.emphasis * sum(map(self._worth.__getitem__, unit.stems))
        self.kept.append(unit)
        self._worth.update(dict.fromkeys(unit.stems, 0.0))
        self._speakers.add(unit.memory)

    def clipped(self, unit: _Unit) -> _Unit | None:
        """The first clauses of a sentence too long to keep whole, if they fit."""
        if self._clips >= CLIPS_MAX or unit.clipped:
            return None
        self._clips += 1
        size = len(unit.text) - (self.cost(unit) - self.room) - 1
        stop = max(
            (at.start() for at in _CLAUSE.finditer(unit.text, 0, size + 1)), default=0
        )
        return _cut(unit, stop) if stop >= CLIP_CHARS_MIN else None


def _choose(
    units: Sequence[_Unit], worth: Mapping[str, float], *, chars_max: int
) -> tuple[float, list[_Unit]]:
    """Greedily, whatever adds most to what is covered already; and what all of it is worth.

    What a sentence adds can only shrink while others are kept, so a heap of stale values is
    enough: the top is valued afresh, and is the best if it stays on top.
    """
    selection = _Selection(worth, chars_max=chars_max)
    pool = list(units)
    heap = sorted([(-selection.value(unit), unit.at) for unit in units])[:UNITS_MAX]
    first = pool[heap[0][1]] if heap else None
    while heap:
        stale, at = heappop(heap)
        unit = pool[at]
        if selection.cost(unit) > selection.room:
            part = selection.clipped(unit)
            if part:
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
    if first and not selection.kept:
        selection.keep(_shorten(first, chars_max))
    return selection.gain, sorted(selection.kept, key=lambda unit: unit.at)


def _cut(unit: _Unit, stop: int) -> _Unit:
    text = f"{unit.text[:stop].rstrip(' ,;:、，；：')}…"
    words = tokens(text)
    said = {word.stem for word in words}
    return unit._replace(
        text=text,
        stems=tuple([root for root in unit.stems if root in said]),
        emphasis=_emphasis(text, words, stamped=_STAMP.match(text) is not None)
        * CLIPPED,
        clipped=True,
    )


def _shorten(unit: _Unit, chars_max: int) -> _Unit:
    """The beginning of the only sentence there is, cut between words if it has any."""
    room = max(chars_max - len(unit.role) - len(": …\n"), 1)
    head = unit.text[:room]
    cut = head.rfind(" ")
    return _cut(unit, cut if cut > room // 2 else room)


def _render_lines(kept: Iterable[_Unit]) -> list[str]:
    """Sentences of one line together; the speaker named where it changes."""
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
