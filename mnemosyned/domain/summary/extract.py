"""Extraction: the most informative statements of a group, and index terms for what is left out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, tzinfo

from mnemosyned.domain.dates import relative
from mnemosyned.domain.instants import in_zone
from mnemosyned.domain.memory import MemoryRecord
from mnemosyned.domain.summary.clauses import shortened
from mnemosyned.domain.summary.keywords import SEPARATOR, Vocabulary, select_keywords
from mnemosyned.domain.summary.records.lines import RecordLine, RecordSummary
from mnemosyned.domain.summary.selection import Selection
from mnemosyned.domain.summary.statements import Statement, StatementReader
from mnemosyned.domain.text.sentence_marks import UNSPACED_ENDS
from mnemosyned.domain.text.tokenizer import tokens

CHARS_MIN = 160
RECORD_CHARS_MIN = 280
"""Room of a small group with records, whose lines are long: they stand for several."""
CHARS_MAX = 12_000
TERMS_SHARE = 0.12
"""Index terms, as a share of the characters of the sources."""
TERMS_CHARS_MIN = 160
RECORD_SHARE_MAX = 0.8
LINE_CHARS_MAX = 400
"""Characters of a line from which the next sentence of its memory begins another."""
FALLBACK_TRIES_MAX = 20

UNSPACED = tuple(UNSPACED_ENDS)


@dataclass(frozen=True, slots=True)
class Extract:
    """Extract of a group."""

    lines: tuple[str, ...]
    """Sentences in their original order, each line to be understood alone."""
    index_terms: tuple[str, ...] = ()
    """Terms to search by that the lines leave out: days, then words in their order."""

    @property
    def text(self) -> str:
        """Whole text, as an episode shows it."""
        return "\n".join(self.lines)


def extract(
    memories: Sequence[MemoryRecord], *, ratio: float, zone: tzinfo = UTC
) -> Extract:
    """Keep about `ratio` of the group's characters, and index terms for what is left out.

    Very short groups may keep more, but the text is never longer than its sources; very long
    ones keep at most `CHARS_MAX`. `zone` is the time zone of the memories, for "yesterday".
    """
    size = sum(len(memory.content) for memory in memories)
    room = min(size, max(int(size * ratio), CHARS_MIN), CHARS_MAX)
    roles = tuple(dict.fromkeys(memory.role for memory in memories if memory.role))
    reader = StatementReader(zone=zone, several=len(roles) > 1)
    # Loaded here: only a sleep needs the rules for records.
    from mnemosyned.domain.summary.records.summarize import (  # noqa: PLC0415
        summarize_records,
    )

    records = summarize_records(memories, zone=zone)
    if records.lines:
        room = max(room, min(RECORD_CHARS_MIN, int(size * RECORD_SHARE_MAX)))
    _read(memories, records, reader)
    reader.known.discount(roles)
    kept = _selected(reader.statements, reader.known, chars_max=room + 1)
    days = _days(memories, zone) if size > room else ""
    covered = {stem for statement in kept for stem in statement.stems}
    covered.update([token.stem for token in tokens(days)])
    room = terms_room(memories) - len(days)
    of_records = _terms_of_records(records, chars_max=room // 2)
    room -= sum(len(term) + len(SEPARATOR) for term in of_records)
    of_prose = select_keywords(reader.known, covered=covered, chars_max=room)
    terms = dict.fromkeys(filter(None, (days, *of_prose, *of_records)))
    return Extract(tuple(_render_lines(kept)), tuple(terms))


def terms_room(memories: Sequence[MemoryRecord]) -> int:
    """Return the characters that the index terms of a group may take."""
    size = sum(len(memory.content) for memory in memories)
    return min(max(int(size * TERMS_SHARE), TERMS_CHARS_MIN), CHARS_MAX)


def _read(
    memories: Sequence[MemoryRecord], records: RecordSummary, reader: StatementReader
) -> None:
    """Read prose and the lines that stand for records, in the order of the memories."""
    lines_at: dict[int, list[RecordLine]] = {}
    for line in records.lines:
        lines_at.setdefault(line.position, []).append(line)
    prose = set(map(id, records.prose))
    for index, memory in enumerate(memories):
        for line in lines_at.get(index, ()):
            reader.read_record(line)
        if id(memory) in prose:
            reader.read(index, memory)


def _terms_of_records(records: RecordSummary, *, chars_max: int) -> tuple[str, ...]:
    """Return the terms of records that fit, those of the first lines first."""
    terms: dict[str, None] = {}
    for line in records.lines:
        for term in line.index_terms:
            chars_max -= len(term) + len(SEPARATOR)
            if chars_max < 0:
                return tuple(terms)
            terms[term] = None
    return tuple(terms)


def _days(memories: Sequence[MemoryRecord], zone: tzinfo) -> str:
    """Return the days of a group, in words that questions use."""
    if not memories:
        return ""
    first, last = (
        in_zone(memory.created_at, zone).date()
        for memory in (memories[0], memories[-1])
    )
    return relative.format_period(first, last)


def _selected(
    statements: Sequence[Statement], known: Vocabulary, *, chars_max: int
) -> list[Statement]:
    """Select the statements that say most; of none that fits whole, a beginning."""
    selection = Selection(statements, known.worth, chars_max=chars_max)
    readable = [statement for statement in statements if statement.readable]
    selection.fill(readable)
    if selection.kept:
        return selection.in_order()
    # A name takes room that few words do not leave.
    nameless = [one._replace(role="") for one in statements]
    for pool in (readable, statements, nameless):
        ranked = sorted(pool, key=lambda one: (-selection.value(one), one.at))
        if whole := _first_whole(ranked, selection):
            return [whole]
    return [_beginning(ranked[0], chars_max)] if ranked else []


def _first_whole(ranked: Sequence[Statement], selection: Selection) -> Statement | None:
    """Return the first statement that fits, or that its first clauses stand for."""
    for statement in ranked[:FALLBACK_TRIES_MAX]:
        if statement.needs is not None:
            continue
        if selection.cost(statement) <= selection.room:
            return statement
        frame = selection.cost(statement) - len(statement.text)
        if head := shortened(statement.text, selection.room - frame):
            return statement._replace(text=head)
    return None


def _beginning(statement: Statement, chars_max: int) -> Statement:
    """Return the beginning of a statement, cut between words if it has any."""
    room = max(chars_max - len(statement.role) - len(": …\n"), 1)
    if len(statement.text) <= room:
        return statement
    head = statement.text[:room]
    cut = head.rfind(" ")
    text = head[: cut if cut > room // 2 else room].rstrip(" ,;:、，；：")
    return statement._replace(text=f"{text}…")


def _render_lines(kept: Iterable[Statement]) -> list[str]:
    """Join the sentences of a memory; name the speaker of each line."""
    lines: list[str] = []
    previous: Statement | None = None
    for statement in kept:
        follows = previous is not None and (
            statement.needs == previous.at
            or (
                statement.memory == previous.memory
                and not statement.starts_line
                and len(lines[-1]) + len(statement.text) < LINE_CHARS_MAX
            )
        )
        if follows:
            gap = "" if lines[-1].endswith(UNSPACED) else " "
            lines[-1] += f"{gap}{statement.text}"
        elif statement.role:
            lines.append(f"{statement.role}: {statement.text}")
        else:
            lines.append(statement.text)
        previous = statement
    return lines
