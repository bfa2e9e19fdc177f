"""Extractive summaries: the most informative statements of a group, and keywords for the rest."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, tzinfo
from heapq import heappop, heappush

from mnemosyned.errors import SummarizerFailed
from mnemosyned.instants import in_zone
from mnemosyned.memory import consolidation, engine_ports
from mnemosyned.memory.values import MemoryRecord
from mnemosyned.summary import keywords
from mnemosyned.summary.records.lines import RecordLine, RecordSummary
from mnemosyned.summary.statements import Statement, StatementReader, shorten_at_clause
from mnemosyned.text.dates import formatting
from mnemosyned.text.sentences import UNSPACED_ENDS, split_sentences
from mnemosyned.text.tokens import TokenKind, tokenize

# Weights of selection, chosen on conversations 1-5 of LoCoMo; retention is flat around them. A
# sentence's worth is divided by its length, or only the longest would be kept: to a power below one
# and with some characters added, or the shortest remark would beat every statement.
SENTENCE_COST_CHARS = 16
LENGTH_POWER = 0.55
NEW_WORTH_MIN = 1.75
"""Worth a sentence must add: more than a name or an ordinary word."""
STATEMENTS_MAX = 1_500
SHORTENED_FACTOR = 0.7
"""Factor of a sentence of which only the first clauses are kept."""
HEADS_MAX = 12
"""Maximum sentences to shorten, as each takes time to cut."""


class StatementSelection:
    """Greedy selection of statements while there is room, by gain for their length.

    A statement is selected together with the statements before it that it needs.
    """

    def __init__(
        self,
        statements: Sequence[Statement],
        worth: Mapping[str, float],
        *,
        chars_max: int,
    ) -> None:
        """Prepare a selection of at most `chars_max` characters; `worth` is by stem."""
        self.room = chars_max
        self.kept: dict[int, Statement] = {}
        self._statements = statements
        self._worth = dict(worth)
        """Remaining worth of each stem: 0 once it is covered."""
        self._speakers: set[int] = set()

    def select_best(self, pool: Iterable[Statement]) -> None:
        """Select the statements of `pool` with the best gain, whole or cut after a clause, while they fit.

        A gain can only shrink while statements are selected. Therefore only the highest known gain is
        measured again before each choice.
        """
        heap = sorted(
            [(-self.measure_gain(statement), statement.at) for statement in pool]
        )
        heap = heap[:STATEMENTS_MAX]
        heads: dict[int, Statement | None] = {}
        while heap:
            stale, at = heappop(heap)
            if at in self.kept:
                continue
            statement = heads.get(at) or self._statements[at]
            if self.count_chars(statement) > self.room:
                if at in heads or len(heads) >= HEADS_MAX:
                    continue
                head = heads[at] = self.fit(statement, self.room)
                if head:  # a copy that is cut to fit
                    left = {token.stem for token in tokenize(head.text)}
                    heads[at] = head = head._replace(
                        stems=tuple([stem for stem in head.stems if stem in left]),
                        emphasis=head.emphasis * SHORTENED_FACTOR,
                    )
                    heappush(heap, (-self.measure_gain(head), at))
                continue
            gain = -self.measure_gain(statement)
            if gain > stale and heap and (gain, at) > heap[0]:
                heappush(heap, (gain, at))
            elif gain < 0:
                self.select(statement)
            else:
                break

    def measure_gain(self, statement: Statement) -> float:
        """Return how much a statement adds for its length: 0 if its new words are worth too little.

        The worth of the new words, times the emphasis, is divided by a power of the length. Worth and length
        include the preceding statements that it needs.
        """
        worth = self._worth
        if statement.needs is None:
            fresh = sum(map(worth.__getitem__, statement.stems))
            chars = len(statement.text)
        else:
            chain = self._list_needed(statement)
            stems = dict.fromkeys([stem for part in chain for stem in part.stems])
            fresh = sum(map(worth.__getitem__, stems))
            chars = sum([len(part.text) for part in chain])
        if fresh < NEW_WORTH_MIN:
            return 0.0
        length: float = (chars + SENTENCE_COST_CHARS) ** LENGTH_POWER
        return statement.emphasis * fresh / length

    def count_chars(self, statement: Statement) -> int:
        """Return the length of a statement, its speaker and the unselected statements needed before it."""
        chars = 0
        for part in self._list_needed(statement):
            named = part.role and (
                part.starts_line or part.memory not in self._speakers
            )
            chars += len(part.text) + 1 + (len(part.role) + 2 if named else 0)
        return chars

    def select(self, statement: Statement) -> None:
        """Select a statement and the preceding statements that it needs, and reduce the free characters."""
        self.room -= self.count_chars(statement)
        for part in self._list_needed(statement):
            self.kept[part.at] = part
            self._worth.update(dict.fromkeys(part.stems, 0.0))
            self._speakers.add(part.memory)

    def fit(self, statement: Statement, chars_max: int) -> Statement | None:
        """Return the statement, or a copy cut after a clause, if it fits in `chars_max`; else None.

        Its speaker must fit as well. If it needs preceding statements, they must fit too, and nothing is cut.
        """
        chars = self.count_chars(statement)
        if chars <= chars_max:
            return statement
        if statement.needs is not None:
            return None
        frame = chars - len(statement.text)
        text = shorten_at_clause(statement.text, chars_max - frame)
        return statement._replace(text=text) if text else None

    def list_selected(self) -> list[Statement]:
        """Return the selected statements in their original order."""
        return [self.kept[at] for at in sorted(self.kept)]

    def _list_needed(self, statement: Statement) -> list[Statement]:
        """Return the unselected statements that a statement needs, then the statement itself."""
        chain = [statement]
        needs = statement.needs
        while needs is not None and needs not in self.kept:
            chain.append(self._statements[needs])
            needs = chain[-1].needs
        return chain[::-1]


CHARS_MIN = 160
RECORD_CHARS_MIN = 280
"""Room of a small group with records, as the line of several records is long."""
CHARS_MAX = 12_000
TERMS_SHARE = 0.12
"""Index terms, as a share of the characters of the sources."""
TERMS_CHARS_MIN = 160
RECORD_SHARE_MAX = 0.8
LINE_CHARS_MAX = 400
"""Length of a line after which the next sentence begins a new line."""

UNSPACED = tuple(UNSPACED_ENDS)


@dataclass(frozen=True, slots=True)
class Extract:
    """Extract of a group of memories: sentences, and keywords for the other sentences."""

    lines: tuple[str, ...]
    """Sentences in their original order; each line makes sense alone."""
    index_terms: tuple[str, ...] = ()
    """Keywords that the lines leave out, for the index: days, then words in their order."""

    @property
    def text(self) -> str:
        """The lines of the extract as one text."""
        return "\n".join(self.lines)


def extract(
    memories: Sequence[MemoryRecord], *, ratio: float, zone: tzinfo = UTC
) -> Extract:
    """Return the most informative sentences of memories, and index terms for the other sentences.

    The selected sentences have about `ratio` of the characters of all memories, within limits.
    `zone` is the time zone in which dates such as "yesterday" are resolved.
    """
    size = sum(len(memory.content) for memory in memories)
    room = min(size, max(int(size * ratio), CHARS_MIN), CHARS_MAX)
    roles = tuple(dict.fromkeys(memory.role for memory in memories if memory.role))
    reader = StatementReader(zone=zone, names_all_speakers=len(roles) > 1)
    # Loaded here: only a sleep needs the rules for records.
    from mnemosyned.summary.records.summarize import summarize_records  # noqa: PLC0415

    records = summarize_records(memories, zone=zone)
    if records.lines:
        room = max(room, min(RECORD_CHARS_MIN, int(size * RECORD_SHARE_MAX)))
    _read_statements(memories, records, reader)
    reader.known.ignore_names(roles)
    kept = _select_statements(reader.statements, reader.known, chars_max=room + 1)
    days = ""
    if size > room:  # so there are memories
        first, last = (
            in_zone(memory.created_at, zone) for memory in (memories[0], memories[-1])
        )
        days = formatting.format_period(first.date(), last.date())
    covered = {stem for statement in kept for stem in statement.stems}
    covered.update([token.stem for token in tokenize(days)])
    room = compute_terms_chars_max(memories) - len(days)
    of_records = _select_record_terms(records, chars_max=room // 2)
    room -= sum(len(term) + len(keywords.SEPARATOR) for term in of_records)
    of_prose = keywords.select_keywords(reader.known, covered=covered, chars_max=room)
    terms = dict.fromkeys(filter(None, (days, *of_prose, *of_records)))
    return Extract(tuple(_render_lines(kept)), tuple(terms))


def compute_terms_chars_max(memories: Sequence[MemoryRecord]) -> int:
    """Return how many characters the index terms of these memories may have together."""
    size = sum(len(memory.content) for memory in memories)
    return min(max(int(size * TERMS_SHARE), TERMS_CHARS_MIN), CHARS_MAX)


def _read_statements(
    memories: Sequence[MemoryRecord], records: RecordSummary, reader: StatementReader
) -> None:
    """Add the sentences of prose and the lines about records to `reader`, in the order of the memories."""
    lines_at: dict[int, list[RecordLine]] = {}
    for line in records.lines:
        lines_at.setdefault(line.position, []).append(line)
    prose = set(map(id, records.prose))
    for index, memory in enumerate(memories):
        for line in lines_at.get(index, ()):
            reader.add_record_line(line)
        if id(memory) in prose:
            reader.read(index, memory)


def _select_record_terms(records: RecordSummary, *, chars_max: int) -> tuple[str, ...]:
    """Return the index terms of the lines about records, the first that fit in `chars_max`."""
    terms: dict[str, None] = {}
    for line in records.lines:
        for term in line.index_terms:
            chars_max -= len(term) + len(keywords.SEPARATOR)
            if chars_max < 0:
                return tuple(terms)
            terms[term] = None
    return tuple(terms)


def _select_statements(
    statements: Sequence[Statement], known: keywords.Vocabulary, *, chars_max: int
) -> list[Statement]:
    """Return the best statements that fit in `chars_max`, in order; if none fits, a cut statement."""
    selection = StatementSelection(statements, known.worth, chars_max=chars_max)
    readable = [statement for statement in statements if statement.readable]
    selection.select_best(readable)
    if selection.kept:
        return selection.list_selected()
    # A name takes room that few words do not leave.
    nameless = [one._replace(role="") for one in statements]
    for pool in (readable, statements, nameless):
        ranked = sorted(pool, key=lambda one: (-selection.measure_gain(one), one.at))
        for statement in ranked[:20]:
            alone = statement.needs is None
            if alone and (fitting := selection.fit(statement, selection.room)):
                return [fitting]
    if not ranked:
        return []
    best = ranked[0]
    room = max(chars_max - len(best.role) - len(": …\n"), 1)
    if len(best.text) <= room:
        return [best]
    head = best.text[:room]
    cut = head.rfind(" ")
    text = head[: cut if cut > room // 2 else room].rstrip(" ,;:、，；：")
    return [best._replace(text=f"{text}…")]


def _render_lines(kept: Iterable[Statement]) -> list[str]:
    """Return statements as lines, each after the speaker's name if known.

    Statements of one memory share a line while it is short. A statement always shares the line of
    the preceding statement that it needs.
    """
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


PROSE_WORTH_MIN = 0.25
"""Minimum worth of a model's prose, as a share of the extract's; less is filler."""


@dataclass(frozen=True, slots=True)
class ComposedEpisode:
    """Text and index terms of an episode that a model summarized."""

    text: str
    index_terms: str
    informative: bool
    """True if the text has at least `PROSE_WORTH_MIN` of the extract's worth."""


def compose_episode(
    memories: Sequence[MemoryRecord],
    lines: Sequence[str],
    *,
    extract: Extract,
    zone: tzinfo = UTC,
) -> ComposedEpisode:
    """Return an episode with a model's lines as text, and index terms for words that the lines lack.

    Those are all such words of `extract`, the rule-based summary, then words of the memories while there is
    room. Relative dates are resolved in `zone`.
    """
    known = _read_vocabulary(memories, zone)
    text = "\n".join(line for line in map(str.strip, lines) if line)
    covered = _find_stems(text)
    terms = [term for term in extract.index_terms if not _find_stems(term) <= covered]
    covered |= _find_stems(" ".join(terms))
    missing = {
        token.stem: token
        for token in tokenize(" ".join(extract.text.split()))
        if token.kind is not TokenKind.STOP and token.stem not in covered
    }
    terms += [token.surface for token in missing.values()]
    covered |= missing.keys()
    room = compute_terms_chars_max(memories) - sum(
        len(term) + len(keywords.SEPARATOR) for term in terms
    )
    terms += keywords.select_keywords(known, covered=covered, chars_max=room)
    worth, rule_worth = (
        sum(known.worth.get(root, 0.0) for root in _find_stems(each))
        for each in (text, extract.text)
    )
    is_informative = worth >= PROSE_WORTH_MIN * rule_worth
    return ComposedEpisode(text, keywords.join_terms(terms), informative=is_informative)


def _read_vocabulary(
    memories: Iterable[MemoryRecord], zone: tzinfo
) -> keywords.Vocabulary:
    """Return the words of memories with their worth, 0 for speakers' names; "yesterday" counts as its date."""
    known = keywords.Vocabulary()
    roles: dict[str, None] = {}
    for memory in memories:
        said = in_zone(memory.created_at, zone)
        for sentence, _ in split_sentences(memory.content):
            known.add(tokenize(formatting.annotate_relative_dates(sentence, said)))
        roles[memory.role] = None
    known.ignore_names(roles)
    return known


def _find_stems(text: str) -> set[str]:
    return {token.stem for token in tokenize(" ".join(text.split()))}


RATIO = 1 / 3
REASON = "no model is configured; summaries are extractive"
"""Reason that `status` gives for extractive summaries."""


class ExtractiveSummarizer(engine_ports.Summarizer):
    """Summarizer that selects sentences without a model."""

    name = consolidation.BY_RULE
    reason = REASON

    def __init__(self, *, ratio: float = RATIO, zone: tzinfo = UTC) -> None:
        self._ratio = ratio
        self._zone = zone

    def summarize(self, memories: Sequence[MemoryRecord]) -> engine_ports.Summary:
        """Return the best sentences, and index terms of the rest. Raises `SummarizerFailed` for empty texts."""
        kept = (
            extract(memories, ratio=self._ratio, zone=self._zone) if memories else None
        )
        if kept is None or not kept.text:
            raise SummarizerFailed(
                "the memories contain no text; leave them as they are"
            )
        return engine_ports.Summary(
            text=kept.text,
            index_terms=keywords.join_terms(kept.index_terms),
            summarizer=self.name,
        )
