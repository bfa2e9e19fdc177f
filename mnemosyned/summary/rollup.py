"""Texts of days, weeks and months: one line for each summary below, of its best statements."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import chain, zip_longest

from mnemosyned.instants import in_zone, shift
from mnemosyned.memory.periods import Level
from mnemosyned.memory.values import MemoryRecord
from mnemosyned.summary.extract import StatementSelection
from mnemosyned.summary.keywords import SEPARATOR, join_terms, select_keywords
from mnemosyned.summary.statements import (
    SENTENCE_ENDINGS,
    Statement,
    StatementReader,
    is_first_person,
    shorten_at_clause,
)
from mnemosyned.text.dates.formatting import format_period
from mnemosyned.text.languages.tables import MONTH_NAMES, WEEKDAY_ABBREVIATIONS
from mnemosyned.text.tokens import tokenize

SPEAKERS = frozenset(
    "user assistant system tool agent human ai bot ci calendar notes note mail shell ops".split()
)
"""Speakers that one line is enough to recognize; a name needs two."""
FIRST_WORDS = 8
"""Number of first words of a line that are searched for the first person."""
_SPEAKER = re.compile(r"(?:^|(?<=[.!?;…。！？\"”)] ))([^\s:][^:.!?;\n]{0,40}): (?=\S)")
_WEEKDAYS = "|".join(WEEKDAY_ABBREVIATIONS)
_MONTHS = "|".join(MONTH_NAMES)
_LABEL = re.compile(
    rf"(?:(?:{_WEEKDAYS}) \d{{1,2}} (?:{_MONTHS})|\d{{1,2}}(?: (?:{_MONTHS}))?–\d{{1,2}} (?:{_MONTHS})): "
)
"""The date label before a line of a week or a month."""


def format_date_label(level: Level, begins: datetime) -> str:
    """Return the date before a line of a week or month, such as "Mon 2 March: ".

    `level` is the period of the whole summary: a week has a line for each day, a month for each
    week, which begins at `begins`. Empty for other periods.
    """
    first = in_zone(begins, UTC)
    month = MONTH_NAMES[first.month - 1]
    if level is Level.WEEK:
        return f"{WEEKDAY_ABBREVIATIONS[first.weekday()]} {first.day} {month}: "
    if level is not Level.MONTH:
        return ""
    last = shift(first, timedelta(days=6))
    if last.month == first.month:
        return f"{first.day}–{last.day} {month}: "
    return f"{first.day} {month}–{last.day} {MONTH_NAMES[last.month - 1]}: "


def split_speeches(
    texts: Sequence[tuple[str, datetime]], *, chars_max: int
) -> tuple[list[tuple[int, MemoryRecord]], frozenset[str]]:
    """Split texts, given with their times, into the speeches of their speakers.

    Returns pairs of a text's index and a memory with the speaker as its role, and the names of all
    speakers. Only the first `chars_max` characters of each text are read.
    """
    lines = [
        (position, remove_date_label(line))
        for position, (text, _) in enumerate(texts)
        for line in _read_first_lines(text, chars_max)
    ]
    speakers = _find_speakers(line for _, line in lines)
    said = [
        (position, speech)
        for position, line in lines
        for speech in _split_by_speaker(line, texts[position][1], speakers)
    ]
    return said, speakers


def remove_date_label(line: str) -> str:
    """Return a line without a date such as "Mon 2 March: " at its beginning."""
    label = _LABEL.match(line)
    return line[label.end() :] if label else line


def _read_first_lines(text: str, chars_max: int) -> list[str]:
    """Return the first lines of a text that fit in `chars_max`, or a beginning of the first one."""
    if len(text) <= chars_max:
        return text.splitlines()
    head = text[: chars_max + 1]
    line_end = head.rfind("\n")
    if line_end > 0:
        return head[:line_end].splitlines()
    return [shorten_at_clause(head, chars_max) or f"{head[: head.rfind(' ')]}…"]


def _find_speakers(texts: Iterable[str]) -> frozenset[str]:
    """Return the names that stand before a colon in at least two places of the texts.

    One place is enough for a known role, or before words in the first person.
    """
    begun: Counter[str] = Counter()
    for text in texts:
        for speaker in _SPEAKER.finditer(text):
            words = text[speaker.end() :].split(maxsplit=FIRST_WORDS)[:FIRST_WORDS]
            own = speaker[1] in SPEAKERS or is_first_person(tokenize(" ".join(words)))
            begun[speaker[1]] += 2 if own else 1
    return frozenset(name for name, count in begun.items() if count > 1)


def _split_by_speaker(
    text: str, said: datetime, speakers: frozenset[str]
) -> Iterator[MemoryRecord]:
    """Yield a memory for each part of a line that begins with one of the speakers' names.

    The name becomes the memory's role; text before the first name has none. `said` is its time.
    """
    begins, role = 0, ""
    for speaker in _SPEAKER.finditer(text):
        if speaker[1] in speakers:
            if before := text[begins : speaker.start()].strip():
                yield MemoryRecord(id="", content=before, role=role, created_at=said)
            begins, role = speaker.end(), speaker[1]
    yield MemoryRecord(id="", content=text[begins:], role=role, created_at=said)


ROLLUP_SHARE = 0.55
"""Characters of a roll-up, as a share of the characters below."""
ROLLUP_SHARE_MAX = 0.6
"""Share of a roll-up of one statement, if none is shorter."""
SMALL_CHARS = 600
"""Size up to which a day of few episodes keeps all statements."""
LINE_CHARS = 130
"""Characters that a line may have at least."""
LINE_CHARS_MAX = 240
FEW_LINE_CHARS_MAX = 360
"""Characters of the longest line; the second is for roll-ups of few summaries."""
SHARE_OF_LINE = 1.5
"""Factor by which a line may exceed its even share of the room."""
TERMS_SHARE = 0.3
TERMS_CHARS_MAX = 1_000
ROLLUP_CHARS_MAX = 12_000
"""Characters of the longest roll-up."""
READ_CHARS_MAX = 200_000
"""Characters read of all summaries, divided evenly."""
READ_CHARS_MIN = 120
TRIVIAL_SHARE = 0.3
"""Worth below which an episode has no line, as a share of the median."""
MORE_VALUE_MIN = 0.6
"""Worth of a further statement, as a share of the line's first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RollupSource:
    """A summary to be rolled up: an episode, or the summary of a shorter period."""

    text: str
    index_terms: str = ""
    begins: datetime
    """Start of its period, or the time of an episode's first memory."""


@dataclass(frozen=True, slots=True)
class RollupText:
    """Text and index terms of the summary of a day, a week or a month."""

    lines: tuple[str, ...]
    index_terms: str

    @property
    def text(self) -> str:
        """The lines as one text."""
        return "\n".join(self.lines)


def compose_rollup(
    sources: Sequence[RollupSource],
    *,
    level: Level,
    minimum: int,
) -> RollupText:
    """Return a summary of a day, week or month: a line from each summary within it.

    The summaries are given oldest first; a line has the most informative statements. A small day of
    fewer than `minimum` episodes keeps all statements.
    """
    composer = _RollupComposer(sources, level=level, minimum=minimum)
    composer.choose_statements()
    lines = tuple(filter(None, map(composer.render_line, range(len(sources)))))
    return RollupText(
        lines or composer.make_fallback_line(), composer.select_index_terms()
    )


@dataclass(slots=True)
class _RollupLine:
    """Line of a summary: the date label, all statements, and the chosen statements."""

    label: str
    statements: list[Statement] = field(default_factory=list)
    chosen: list[Statement] = field(default_factory=list)
    chars: int = 0
    value: float = 0.0
    """Gain of its first statement at the time of choice."""


class _RollupComposer:
    """Chooser of the statements of each line within the room of the roll-up."""

    def __init__(
        self,
        sources: Sequence[RollupSource],
        *,
        level: Level,
        minimum: int,
    ) -> None:
        """Read the statements of all sources; below `minimum` episodes a small day keeps all."""
        self._sources = sources
        size = sum(len(source.text) for source in sources)
        self._size = size
        few = len(sources) < minimum
        self._says_all = few and level is Level.DAY and size <= SMALL_CHARS
        reader, self._lines = _read_summaries(sources, level)
        self._known = reader.known
        self._statements = reader.statements
        room = int(size * ROLLUP_SHARE)
        if self._says_all:
            room = 2 * size  # with the names of speakers
        elif size <= SMALL_CHARS:
            room = max(room, min(size, LINE_CHARS * len(sources)))
        room = min(room, ROLLUP_CHARS_MAX)
        self._selection = StatementSelection(
            reader.statements, self._known.worth, chars_max=room
        )
        self._line_chars_max = FEW_LINE_CHARS_MAX if few else LINE_CHARS_MAX

    def choose_statements(self) -> None:
        """Choose the best statement of each line, then more while there is room.

        If there is not enough room, the least informative lines get none.
        """
        ranked = self._rank_informative_lines()
        left = len(ranked)
        for line in ranked:
            share = self._selection.room / left * SHARE_OF_LINE
            self._add_best_statement(line, int(max(share, LINE_CHARS)))
            left -= 1
        if not any(line.chosen for line in self._lines):
            self._choose_long_statement()
        self._add_more_statements()

    def _choose_long_statement(self) -> None:
        """Choose one statement of the most informative line, with more room than usual.

        Used if no statement has fitted.
        """
        small = self._size <= SMALL_CHARS
        room = self._size if small else int(self._size * ROLLUP_SHARE_MAX)
        self._selection.room = min(room, ROLLUP_CHARS_MAX)
        for line in sorted(self._lines, key=self._find_best_gain, reverse=True):
            self._add_best_statement(line, self._selection.room)
            if line.chosen:
                break

    def render_line(self, position: int) -> str:
        """Return the text of the line with this index, after its date; empty without statements."""
        line = self._lines[position]
        text, speaker = "", ""
        for statement in sorted(line.chosen, key=lambda one: one.at):
            if text:
                text = f"{_end_sentence(text)} "
            named = (
                speaker != ""
                or statement.role not in SPEAKERS
                or is_first_person(tokenize(statement.text))
            )
            if named and statement.role and statement.role != speaker:
                text += f"{statement.role}: "
                speaker = statement.role
            text += statement.text
        if len(line.chosen) > 1:
            text = _end_sentence(text)
        return f"{line.label}{text}" if text else ""

    def make_fallback_line(self) -> tuple[str, ...]:
        """Return one line with the beginning of the first text that is not blank.

        Used if no summary has a statement, such as for an emoji. Empty if all texts are blank.
        """
        for line, source in zip(self._lines, self._sources, strict=True):
            for text in filter(str.strip, source.text.splitlines()):
                words = remove_date_label(text)
                room = LINE_CHARS_MAX
                cut = words if len(words) <= room else f"{words[:room].rstrip()}…"
                return (f"{line.label}{cut}",)
        return ()

    def select_index_terms(self) -> str:
        """Return index terms, one a line: the period, words that the lines lack, and older terms.

        The older terms are taken from all summaries in turn. All together they have a limited
        length.
        """
        kept = chain.from_iterable(line.chosen for line in self._lines)
        covered = {stem for statement in kept for stem in statement.stems}
        begins = [in_zone(source.begins, UTC).date() for source in self._sources]
        days = format_period(begins[0], begins[-1])
        covered.update(token.stem for token in tokenize(days))
        room = int(min(self._size * TERMS_SHARE, TERMS_CHARS_MAX))
        words = select_keywords(self._known, covered=covered, chars_max=room // 2)
        terms = dict.fromkeys((days, *words))
        room -= sum(len(term) + len(SEPARATOR) for term in terms)
        terms_of = (source.index_terms.split(SEPARATOR) for source in self._sources)
        for term in filter(None, chain.from_iterable(zip_longest(*terms_of))):
            room -= len(term) + len(SEPARATOR)
            if room < 0:
                break
            terms[term] = None
        return join_terms(terms)

    def _rank_informative_lines(self) -> list[_RollupLine]:
        """Return the lines by their best statement's gain, the highest first.

        Lines far below the median are left out, unless all texts together are small.
        """
        ranked = sorted(
            ((self._find_best_gain(line), line) for line in self._lines),
            key=lambda entry: -entry[0],
        )
        if self._size <= SMALL_CHARS:
            return [line for _, line in ranked]
        median = ranked[len(ranked) // 2][0] if ranked else 0.0
        least = median * TRIVIAL_SHARE
        return [line for value, line in ranked if value >= least]

    def _find_best_gain(self, line: _RollupLine) -> float:
        """Return the highest gain among a line's statements; 0 if it has none."""
        return max(map(self._selection.measure_gain, line.statements), default=0.0)

    def _add_best_statement(self, line: _RollupLine, chars_max: int) -> None:
        """Choose a line's best statement that fits in `chars_max`, whole or cut after a clause."""
        selection = self._selection
        ranked = sorted(
            ((-selection.measure_gain(one), one.at, one) for one in line.statements),
        )
        ranked = [entry for entry in ranked if entry[0] < 0 or self._says_all]
        limit = min(chars_max, selection.room - len(line.label))
        for value, _, statement in ranked:
            line.value = -value
            cost = selection.count_chars(statement)
            if cost <= limit:
                self._add_statement(line, statement)
                return
            if statement.needs is None:
                frame = cost - len(statement.text)
                if head := shorten_at_clause(statement.text, limit - frame):
                    self._add_statement(line, statement._replace(text=head))
                    return

    def _add_more_statements(self) -> None:
        """Choose further statements that fit in their lines and add enough, the best first."""
        selection = self._selection
        line_of = {one.at: line for line in self._lines for one in line.statements}
        ranked = sorted(
            (-selection.measure_gain(self._statements[at]), at) for at in line_of
        )
        for _, at in ranked:
            statement, line = self._statements[at], line_of[at]
            if at not in selection.kept and self._adds_enough(line, statement):
                self._add_statement(line, statement)

    def _adds_enough(self, line: _RollupLine, statement: Statement) -> bool:
        """Return True if a statement fits, and adds enough to the statements already selected.

        The statement must fit in the rest of the roll-up and of its line, and its gain over all
        statements selected so far must exceed `MORE_VALUE_MIN` of the gain of the line's first. If
        the roll-up keeps all statements (`_says_all`), only the room of the roll-up counts.
        """
        selection = self._selection
        cost = selection.count_chars(statement)
        if not line.chosen:
            cost += len(line.label)
        if cost > selection.room:
            return False
        if self._says_all:
            return True
        if line.chars + cost > self._line_chars_max:
            return False
        least = line.value * MORE_VALUE_MIN
        return selection.measure_gain(statement) > least

    def _add_statement(self, line: _RollupLine, statement: Statement) -> None:
        """Choose a statement and those it needs, and count their characters in line and room."""
        if not line.chosen:
            self._selection.room -= len(line.label)
            line.chars += len(line.label)
        before = set(self._selection.kept)
        line.chars += self._selection.count_chars(statement)
        self._selection.select(statement)
        kept = self._selection.kept
        line.chosen += [kept[at] for at in kept.keys() - before]


def _read_summaries(
    sources: Sequence[RollupSource], level: Level
) -> tuple[StatementReader, list[_RollupLine]]:
    """Read the statements of summaries; return their reader, and a line for each summary.

    `level` is the period of the summary to be made, which decides the lines' dates.
    """
    even = READ_CHARS_MAX // max(1, len(sources))
    chars_max = max(even, READ_CHARS_MIN)
    said, speakers = split_speeches(
        [(source.text, source.begins) for source in sources], chars_max=chars_max
    )
    reader = StatementReader(zone=UTC, names_all_speakers=True)
    for index, (_, speech) in enumerate(said):
        reader.read(index, speech)
    reader.known.ignore_names(speakers)
    lines = [_RollupLine(format_date_label(level, source.begins)) for source in sources]
    for statement in reader.statements:
        if statement.readable:
            lines[said[statement.memory][0]].statements.append(statement)
    return reader, lines


def _end_sentence(text: str) -> str:
    """Return a text with a full stop, unless it ends with a mark of its own."""
    return text if text.endswith(SENTENCE_ENDINGS) else f"{text}."
