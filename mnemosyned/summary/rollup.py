"""Texts of days, weeks and months: what happened in each project, to each person or in each summary below."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import chain, zip_longest
from math import exp

from mnemosyned.instants import in_zone, shift
from mnemosyned.memory.engine_ports import RateEvents
from mnemosyned.memory.periods import Level
from mnemosyned.memory.values import MemoryRecord
from mnemosyned.summary.extract import StatementSelection
from mnemosyned.summary.keywords import SEPARATOR, join_terms, select_keywords
from mnemosyned.summary.statements import (
    CLOSING_SIGNS,
    SENTENCE_ENDS,
    Statement,
    StatementReader,
    is_first_person,
    shorten_at_clause,
)
from mnemosyned.text import sentences, tokens
from mnemosyned.text.dates.formatting import format_period
from mnemosyned.text.languages.tables import MONTH_NAMES, WEEKDAY_ABBREVIATIONS

SPEAKERS = frozenset(
    "user assistant system tool agent human ai bot ci calendar notes note mail shell ops".split()
)
"""Names of speakers that count even if they occur only once; other names must occur twice."""
_SPEAKER = re.compile(r"(?:^|(?<=[.!?;…。！？\"”)] ))([^\s:][^:.!?;\n]{0,40}): (?=\S)")
_WEEKDAYS = "|".join(WEEKDAY_ABBREVIATIONS)
_MONTHS = "|".join(MONTH_NAMES)
_LABEL = re.compile(
    rf"(?:^|(?<=[.!?:;…。！？\"”)\]»] ))(?:(?:{_WEEKDAYS}) \d{{1,2}} (?:{_MONTHS})"
    rf"|\d{{1,2}}(?: (?:{_MONTHS}))?–\d{{1,2}} (?:{_MONTHS})): "
)
"""The date label before statements of a week or a month."""
_PROJECT = re.compile(r"\[([^\]\n]{1,80})\] (?=\S)")
"""The project before a line of a day, a week or a month."""


def format_date_label(level: Level, begins: datetime) -> str:
    """Return the date before a line of a week or month, such as "Mon 2 March: ".

    `level` is the period of the whole summary: a week has a line for each day, a month for each
    week. The day or week of the line begins at `begins`. Empty for other levels.
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


def _split_speeches(
    sources: Sequence[RollupSource], *, level: Level
) -> tuple[list[tuple[int, MemoryRecord]], Mapping[str, bool]]:
    """Return the speeches in summaries, and {speaker: whether it is a person}.

    A speech is a pair: the summary's index, and a memory with the speaker as role and the project as
    session. Summaries above the day name their projects. Only the first characters of each text are read.
    """
    chars_max = max(READ_CHARS_MAX // max(1, len(sources)), READ_CHARS_MIN)
    lines: list[tuple[int, str, str]] = []
    for position, source in enumerate(sources):
        for line in _read_first_lines(source.text, chars_max):
            named = _PROJECT.match(line) if level is not Level.DAY else None
            project = named[1] if named else source.project
            text = _LABEL.sub("", line[named.end() :] if named else line)
            lines.append((position, project, text))
    speakers = _find_speakers(text for _, _, text in lines)
    said = [
        (position, replace(speech, session=project))
        for position, project, line in lines
        for speech in _split_by_speaker(line, sources[position].begins, speakers)
    ]
    return said, speakers


def _read_first_lines(text: str, chars_max: int) -> list[str]:
    """Return the first lines of a text, up to `chars_max` characters; a longer first line is cut."""
    if len(text) <= chars_max:
        return text.splitlines()
    head = text[: chars_max + 1]
    line_end = head.rfind("\n")
    if line_end > 0:
        return head[:line_end].splitlines()
    return [shorten_at_clause(head, chars_max) or f"{head[: head.rfind(' ')]}…"]


def _find_speakers(texts: Iterable[str]) -> dict[str, bool]:
    """Return {speaker: whether it is a person} for names before a colon in the texts.

    A name must occur twice, or be a known role, or come before a sentence in the first person. Such a
    sentence shows that the name, unless a role, is that of a person.
    """
    begun: Counter[str] = Counter()
    persons: set[str] = set()
    for text in texts:
        found = list(_SPEAKER.finditer(text))
        ends = [*(each.start() for each in found[1:]), len(text)]
        for speaker, end in zip(found, ends, strict=False):
            name = speaker[1]
            if ". " in sentences.split_sentences(text[: speaker.end()])[-1][0]:
                continue  # behind "Dr."
            is_name = name.isalpha() or (
                name.istitle() and not any(map(str.isdigit, name))
            )
            if is_name and any(
                is_first_person(tokens.tokenize(sentence))
                for sentence, *_ in sentences.split_sentences(text[speaker.end() : end])
            ):
                persons.add(name)
            begun[name] += 2 if name in SPEAKERS or name in persons else 1
    return {
        name: name in persons and name not in SPEAKERS
        for name, count in begun.items()
        if count > 1
    }


def _split_by_speaker(
    text: str, said: datetime, speakers: Mapping[str, bool]
) -> Iterator[MemoryRecord]:
    """Yield a memory for each part of a line; a part begins with the name of a speaker.

    The name becomes the memory's role, and `said` the memory's time. Text before the first name has no role.
    """
    begins, role = 0, ""
    for speaker in _SPEAKER.finditer(text):
        if speaker[1] in speakers:
            if before := text[begins : speaker.start()].strip():
                yield MemoryRecord(id="", content=before, role=role, created_at=said)
            begins, role = speaker.end(), speaker[1]
    yield MemoryRecord(id="", content=text[begins:], role=role, created_at=said)


ROLLUP_SHARES = {Level.DAY: 0.58, Level.WEEK: 0.52, Level.MONTH: 0.47}
"""Characters of a roll-up, as a share of the characters below."""
ROLLUP_SHARE_MAX = 0.6
"""Share of a roll-up of one statement, if none is shorter."""
SMALL_CHARS = 600
"""Size up to which a day of few episodes keeps all statements."""
CHILD_CHARS_MAX = 300
"""Size up to which a day or week keeps the text of its only summary."""
LINE_CHARS = 130
"""Characters for each summary in the roll-up of short ones."""
FIRST_CHARS = 180
"""Characters that the first statement of a summary may always have."""
FALLBACK_CHARS_MAX = 240
SHARE_OF_LINE = 1.5
"""Factor by which the first statement may exceed the even share of the room."""
TERMS_SHARE = 0.3
TERMS_CHARS_MAX = 1_000
ROLLUP_CHARS_MAX = 4_000
"""Characters of the longest roll-up."""
CHARS_PER_SOURCE = {Level.DAY: 200, Level.WEEK: 200, Level.MONTH: 350}
"""Characters for each summary in a roll-up of long ones; weeks are longer than days."""
ROOM_MIN = 600
"""Minimum room, in characters, of a roll-up of long summaries."""
BUSY_SHARES = {Level.DAY: 0.2, Level.WEEK: 0.25, Level.MONTH: 0.25}
"""Minimum room as a share of the characters below, up to `BUSY_CHARS_MAX`: a busy day has a longer text."""
BUSY_CHARS_MAX = 2_000
READ_CHARS_MAX = 200_000
"""Characters read of all summaries, divided evenly."""
READ_CHARS_MIN = 120
ROLE_FACTORS = {"user": 1.2, "assistant": 0.9}
"""Factors of statements by role: requests and reports of a person say more than an agent's remarks."""
EMPHASIS_MIN = 0.9
"""Emphasis below which a statement is at most the only one of its summary."""
EVENT_ODDS, EVENT_STRENGTH, ODDS_MAX = -2.5, 0.25, 4.0
"""Log odds, by vectors, of a statement that an event keeps as it is; how much a statement gains by higher odds,
and up to which difference."""
TRIVIAL_SHARE = 0.4
"""Worth below which a summary has no statement, as a share of the median."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RollupSource:
    """A summary to be rolled up: an episode, or the summary of a shorter period."""

    text: str
    index_terms: str = ""
    begins: datetime
    """Start of its period, or the time of an episode's first memory."""
    project: str = ""
    """Name of an episode's project; a longer summary names projects in its text."""


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
    rate_events: RateEvents | None = None,
) -> RollupText:
    """Return the summary of a day, week or month from the summaries of shorter periods, oldest first.

    With projects, each line is about one project. Without, a person's statements share a line, and so do the
    other statements of a summary. A day of few characters and fewer than `minimum` episodes keeps all
    statements but questions. A single summary without a project is copied if it is short, or the only week of
    a month. `rate_events` returns log odds that a diary would name what each statement says, or nothing if
    that is not known.
    """
    first = sources[0]
    if (
        len(sources) == 1
        and not first.project
        and first.text.strip()
        and (level is Level.MONTH or len(first.text) <= CHILD_CHARS_MAX)
    ):
        return RollupText(tuple(first.text.splitlines()), first.index_terms)
    composer = _RollupComposer(
        sources, level=level, minimum=minimum, rate_events=rate_events
    )
    composer.choose_statements()
    return RollupText(
        composer.render_lines() or composer.make_fallback_line(),
        composer.select_index_terms(),
    )


class _RollupComposer:
    """Composer that chooses the statements of a roll-up within its room."""

    def __init__(
        self,
        sources: Sequence[RollupSource],
        *,
        level: Level,
        minimum: int,
        rate_events: RateEvents | None,
    ) -> None:
        """Read the statements of all sources; a short day of fewer than `minimum` episodes keeps all."""
        self._sources = sources
        self._level = level
        self._said, self._speakers = _split_speeches(sources, level=level)
        reader = StatementReader(zone=UTC, names_all_speakers=True)
        for index, (_, speech) in enumerate(self._said):
            reader.read(index, speech)
        reader.known.ignore_names(self._speakers)
        self._known = reader.known
        self._pools: list[list[Statement]] = [[] for _ in sources]
        """Readable statements of each summary."""
        self._size = size = sum(len(source.text) for source in sources)
        is_small = size <= SMALL_CHARS
        few = len(sources) < minimum
        self._says_all = few and level is Level.DAY and is_small
        odds: dict[int, float] = {}
        if rate_events and not self._says_all:
            readable = {
                each.at: each.text for each in reader.statements if each.readable
            }
            rated = rate_events(list(readable.values()))
            odds = dict(zip(readable, rated, strict=False))
        for at, statement in enumerate(reader.statements):
            emphasis = statement.emphasis * ROLE_FACTORS.get(statement.role, 1.0)
            surplus = odds.get(at, EVENT_ODDS) - EVENT_ODDS
            emphasis *= exp(EVENT_STRENGTH * max(-ODDS_MAX, min(ODDS_MAX, surplus)))
            reader.statements[at] = statement = statement._replace(emphasis=emphasis)  # noqa: PLW2901
            if statement.readable:
                self._pools[self._said[statement.memory][0]].append(statement)
        room = int(size * ROLLUP_SHARES[level])
        if self._says_all:
            room = 2 * size  # with the names of speakers
        elif is_small:
            room = max(room, min(size, LINE_CHARS * len(sources)))
        busy = min(int(size * BUSY_SHARES[level]), BUSY_CHARS_MAX)
        room = min(
            room,
            max(ROOM_MIN, CHARS_PER_SOURCE[level] * len(sources), busy),
            ROLLUP_CHARS_MAX,
        )
        self._selection = StatementSelection(
            reader.statements, self._known.worth, chars_max=room
        )

    def choose_statements(self) -> None:
        """Choose the best statement of each summary, then the best of all while there is room.

        The least informative summaries get none, unless no other is of their project. On a short day of few
        episodes, choose all statements but questions.
        """
        selection = self._selection
        if self._says_all:
            for statement in chain.from_iterable(self._pools):
                asks = sentences.is_question(statement.text)
                if not asks and selection.count_chars(statement) <= selection.room:
                    selection.select(statement)
            if selection.kept:
                return
        gains = sorted(
            (
                (max(map(selection.measure_gain, pool), default=0.0), at, pool)
                for at, pool in enumerate(self._pools)
            ),
            key=lambda entry: -entry[0],
        )
        least = 0.0  # without those far below the median, unless all texts are small
        if self._size > SMALL_CHARS and gains:
            least = gains[len(gains) // 2][0] * TRIVIAL_SHARE
        ranked: list[list[Statement]] = []
        projects = {""}  # those that have a statement, and what is of none
        for gain, at, pool in gains:
            project = self._sources[at].project
            if gain >= least or (gain and project not in projects):
                ranked.append(pool)
                projects.add(project)
        for left, pool in zip(range(len(ranked), 0, -1), ranked, strict=True):
            share = selection.room / left * SHARE_OF_LINE
            self._choose_best(pool, int(max(share, FIRST_CHARS)))
        if not selection.kept:  # none has fitted: more room for one of them
            size = self._size
            room = size if size <= SMALL_CHARS else int(size * ROLLUP_SHARE_MAX)
            selection.room = min(room, ROLLUP_CHARS_MAX)
            for pool in ranked:
                self._choose_best(pool, selection.room)
                if selection.kept:
                    break
        selection.select_best(
            one
            for one in chain.from_iterable(self._pools)
            if one.emphasis >= EMPHASIS_MIN
        )

    def render_lines(self) -> tuple[str, ...]:
        """Return the selected statements as lines, the lines of a project next to each other.

        Without projects, a person's statements share a line, and so do the other statements of a summary.
        Dates stand before the statements of a week or a month if it has several summaries.
        """
        lines: dict[tuple[str, str, int], list[Statement]] = {}
        for statement in self._selection.list_selected():
            source, speech = self._said[statement.memory]
            project = speech.session
            is_person = not project and self._speakers.get(statement.role, False)
            person = statement.role if is_person else ""
            key = project, person, 0 if person else source
            lines.setdefault(key, []).append(statement)
        projects = list(dict.fromkeys(project for project, _, _ in lines))
        return tuple(
            self._render_line(lines[key], project=key[0], person=key[1])
            for key in sorted(lines, key=lambda key: projects.index(key[0]))
        )

    def _render_line(
        self, statements: Sequence[Statement], *, project: str, person: str
    ) -> str:
        """Return statements as a line that begins with the project or person, if known."""
        text = f"[{project}] " if project else ""
        speaker, dated = "", -1
        if person:
            text, speaker = f"{person}: ", person
        for statement in statements:
            source = self._said[statement.memory][0]
            if source != dated and len(self._sources) > 1:
                text += format_date_label(self._level, self._sources[source].begins)
                speaker = person
            dated = source
            named = (
                speaker != ""
                or statement.role not in SPEAKERS
                or is_first_person(tokens.tokenize(statement.text))
                or _SPEAKER.match(statement.text)  # "Done: …", or "Done" were a speaker
            )
            if named and statement.role and statement.role != speaker:
                text += f"{statement.role}: "
                speaker = statement.role
            ended = statement.text.rstrip(CLOSING_SIGNS).endswith(SENTENCE_ENDS)
            ended = ended or len(statements) == 1
            text += f"{statement.text} " if ended else f"{statement.text}. "
        return text.rstrip()

    def make_fallback_line(self) -> tuple[str, ...]:
        """Return one line with the beginning of the first text that is not blank.

        Used if no summary has a statement, such as for an emoji. Empty if all texts are blank.
        """
        for source in self._sources:
            for text in filter(str.strip, source.text.splitlines()):
                words, room = _LABEL.sub("", text), FALLBACK_CHARS_MAX
                cut = words if len(words) <= room else f"{words[:room].rstrip()}…"
                return (f"{format_date_label(self._level, source.begins)}{cut}",)
        return ()

    def select_index_terms(self) -> str:
        """Return index terms, one a line: the period, keywords missing in the roll-up, terms of its sources.

        The first term of each source comes before the second ones, and so on. The length is limited.
        """
        kept = self._selection.kept.values()
        covered = {stem for statement in kept for stem in statement.stems}
        begins = [in_zone(source.begins, UTC).date() for source in self._sources]
        days = format_period(begins[0], begins[-1])
        covered.update(token.stem for token in tokens.tokenize(days))
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

    def _choose_best(self, pool: Sequence[Statement], chars_max: int) -> None:
        """Choose the best statement of `pool`, if worth anything, that fits in `chars_max`, whole or cut."""
        selection = self._selection
        ranked = sorted((-selection.measure_gain(one), one.at, one) for one in pool)
        limit = min(chars_max, selection.room)
        for value, _, statement in ranked:
            if value >= 0:
                return
            if fitting := selection.fit(statement, limit):
                selection.select(fitting)
                return
