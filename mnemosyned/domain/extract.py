"""What to keep of a group of memories: the sentences that say most, and keywords for the rest."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, tzinfo
from heapq import heapify, heappop, heappush, nlargest

from mnemosyned.domain import dates
from mnemosyned.domain.facts import EXACT_KINDS, Kind, Token, emphasis, sentences, tokens
from mnemosyned.domain.keywords import keywords, weights
from mnemosyned.domain.memory import Memory

# Chosen on conversations 1-5 of LoCoMo; retention is flat around all of them.
KEYWORD_SHARE = 0.35
QUESTION = 0.75
BARE = 0.2
LISTING = 0.5
PROSE_STOP_SHARE = 0.15
"""Prose has its share of little words; log lines, tables and code have fewer."""
SENTENCE_COST_CHARS = 24
"""Added to each sentence's length when its worth per character is judged, or the shortest
exclamation with one rare word would beat every statement."""

BARE_WORDS = 3
"""With fewer words a sentence is an exclamation; scripts without spaces are not judged so."""

FRESH_MIN = 0.9
"""A sentence must add at least about one ordinary word."""

CHARS_MIN = 120
CHARS_MAX = 12_000
UNITS_MAX = 1_500
CLIP_CHARS_MIN = 80
ROLES_SHOWN_MAX = 6
KEYWORDS = "Keywords: "
VALUES = EXACT_KINDS - {Kind.IDENTIFIER}
"""Kinds that can make a statement of two words; code has identifiers everywhere."""

UNSPACED = ("。", "！", "？")
QUESTION_MARKS = ("?", "？", "؟")


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
        last = KEYWORDS + ", ".join(self.keywords) if self.keywords else ""
        return "\n".join(part for part in (self.heading, *self.lines, last) if part)


@dataclass(frozen=True, slots=True)
class _Unit:
    """A sentence that may be kept."""

    at: int
    """Where it stands among all sentences of the group."""
    memory: int
    role: str
    text: str
    starts_line: bool
    words: tuple[Token, ...]
    stems: frozenset[str]
    emphasis: float


def extract(memories: Sequence[Memory], *, ratio: float, zone: tzinfo = UTC) -> Extract:
    """Keep about `ratio` of the group's characters, heading and keywords included.

    Very short groups may keep more than that, but the result is never longer than its sources;
    very long ones keep at most `CHARS_MAX`. `zone` is where "yesterday" was said.
    """
    size = sum(len(memory.content) for memory in memories)
    budget = min(max(int(size * ratio), CHARS_MIN), CHARS_MAX)
    if size <= budget:
        return Extract("", tuple(_lines(_fitting(memories, size))), ())
    roles = tuple(dict.fromkeys(memory.role for memory in memories if memory.role))
    heading = _heading(memories, roles, zone)
    if len(heading) > budget // 3:
        heading = ""
    units = _units(memories, zone=zone, named=len(roles) > 1)
    texts = [unit.words for unit in units]
    worth = weights(texts, known=roles)
    room = budget - len(heading) - 1
    lines = _lines(_choose(units, worth, chars_max=int(room * (1 - KEYWORD_SHARE))))
    body = sum(len(line) + 1 for line in lines)
    told = {token.stem for line in lines for token in tokens(line)}
    return Extract(
        heading,
        tuple(lines),
        keywords(
            texts,
            worth,
            covered=told,
            chars_max=min(room, 2 * body - len(heading)) - body - len(KEYWORDS) - 2,
        ),
    )


def _heading(memories: Sequence[Memory], roles: Sequence[str], zone: tzinfo) -> str:
    days = [memory.created_at.astimezone(zone).date() for memory in (memories[0], memories[-1])]
    who = ", ".join(roles[:ROLES_SHOWN_MAX])
    return " · ".join(part for part in (dates.period(*days), who) if part)


def _fitting(memories: Sequence[Memory], size: int) -> list[_Unit]:
    """Everything that fits into the size of a group too short to be summarised."""
    units = _units(memories, zone=None, named=False)
    return _choose(units, weights((unit.words for unit in units), known=()), chars_max=size + 1)


def _units(memories: Sequence[Memory], *, zone: tzinfo | None, named: bool) -> list[_Unit]:
    """Every sentence once, with its relative dates resolved if there is a zone to do it in."""
    seen: set[str] = set()
    units: list[_Unit] = []
    for index, memory in enumerate(memories):
        said = memory.created_at.astimezone(zone)
        for sentence, starts_line in sentences(memory.content):
            key = sentence.casefold()
            if key in seen:
                continue
            seen.add(key)
            text = dates.anchor(sentence, said) if zone else sentence
            words = tuple(tokens(text))
            units.append(
                _Unit(
                    at=len(units),
                    memory=index,
                    role=memory.role if named else "",
                    text=text,
                    starts_line=starts_line,
                    words=words,
                    stems=frozenset([word.stem for word in words if word.kind is not Kind.STOP]),
                    emphasis=_emphasis(sentence, words) * (0.5 + memory.importance),
                )
            )
    return units


def _emphasis(sentence: str, words: Sequence[Token]) -> float:
    """How much more, or less, a sentence matters than the words in it."""
    factor = emphasis(words)
    if [word.kind for word in words].count(Kind.STOP) < PROSE_STOP_SHARE * len(words):
        factor *= LISTING
    if sentence.endswith(QUESTION_MARKS):
        factor *= QUESTION
    bare = len(words) < BARE_WORDS and sentence.isascii()
    if bare and not any(word.kind in VALUES for word in words):
        factor *= BARE
    return factor


def _choose(units: Sequence[_Unit], worth: Mapping[str, float], *, chars_max: int) -> list[_Unit]:
    """Greedily, whatever adds most per character to what is covered already.

    What a sentence adds can only shrink while others are kept, so a heap of stale values is
    enough: the top is valued afresh, and is the best if it stays on top.
    """
    told: set[str] = set()

    def value(unit: _Unit) -> float:
        fresh = sum(worth[word] for word in unit.stems if word not in told)
        if fresh < FRESH_MIN:
            return 0.0
        return unit.emphasis * fresh / (len(unit.text) + SENTENCE_COST_CHARS)

    heap = nlargest(UNITS_MAX, ((value(unit), -unit.at) for unit in units))
    heap = [(-gain, -at) for gain, at in heap]
    heapify(heap)
    kept: list[_Unit] = []
    passed: _Unit | None = None
    speakers: set[int] = set()
    while heap:
        stale, at = heappop(heap)
        unit = units[at]
        cost = len(unit.text) + 1
        if unit.role and unit.memory not in speakers:
            cost += len(unit.role) + 2
        if cost > chars_max:
            passed = passed or unit
            continue
        gain = -value(unit)
        if gain > stale and heap and (gain, at) > heap[0]:
            heappush(heap, (gain, at))
        elif gain < 0 or not kept:
            kept.append(unit)
            told |= unit.stems
            speakers.add(unit.memory)
            chars_max -= cost
        else:
            break
    if passed and (not kept or chars_max >= CLIP_CHARS_MIN):
        kept.append(_clipped(passed, chars_max))
    return sorted(kept, key=lambda unit: unit.at)


def _clipped(unit: _Unit, chars_max: int) -> _Unit:
    """The beginning of a sentence too long to keep whole, cut between words if it has any."""
    room = max(chars_max - len(unit.role) - len(": …\n"), 1)
    head = unit.text[:room]
    cut = head.rfind(" ")
    if cut > room // 2:
        head = head[:cut]
    return replace(unit, text=f"{head.rstrip(' ,;:')}…")


def _lines(kept: Iterable[_Unit]) -> list[str]:
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
