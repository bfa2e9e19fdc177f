"""Statements: the sentences of a group of memories, and which of them can be read alone."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import tzinfo
from typing import NamedTuple

from mnemosyned.domain.dates import relative
from mnemosyned.domain.dates.names import WEEKDAYS
from mnemosyned.domain.instants import in_zone
from mnemosyned.domain.memory import MemoryRecord
from mnemosyned.domain.summary.keywords import Vocabulary
from mnemosyned.domain.summary.records.lines import RecordLine
from mnemosyned.domain.summary.sentence_heads import (
    COURTESY_WORDS_MAX,
    is_courtesy,
    is_personal,
    leans_back,
    may_be_opener,
    may_lean_back,
    names_somebody,
    without_opener,
)
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
class StatementWeights:
    """Factors of a sentence's worth by its form, chosen on conversations 1-5 of LoCoMo."""

    question: float = 0.4
    plain: float = 0.85
    """Factor of a sentence without a name, a value or a cue."""
    listing: float = 0.35
    """Factor of a table row, command or log line."""
    eventful_listing: float = 0.6
    """Factor of a row or command that reports an event, such as a failure."""
    prose_stop_share: float = 0.15
    """Share of stop words below which a line may be a listing. Notes and appointments have few
    too ("Dentist, Thursday, 08:20"), but they end or pause as prose does."""
    vague: float = 0.6
    """Factor of a sentence that begins with what somebody does to "it" or "them"."""
    reaction: float = 0.6
    """Factor of a sentence that is about the one spoken to, or a short exclamation."""
    exclamation_words: int = 8
    record: float = 0.6
    """Factor of a line for records, to which its worth is added."""


WEIGHTS = StatementWeights()

CHAIN_MAX = 2
"""Sentences that one may lean on in turn; a longer chain is a story of its own."""
WORDS_MIN = 3
EARLY_WORDS = 4
"""Words at the beginning in which a pronoun stands for something unnamed."""
EXACT_SHARE_MAX = 0.75
"""Share of exact values above which a sentence is a row of them."""

VALUES = EXACT_KINDS - {TokenKind.IDENTIFIER}
"""Kinds that make a statement of two words; not identifiers, which are everywhere in code."""

_STOP = TokenKind.STOP  # found faster than an attribute of an Enum

QUESTION_MARKS = "?？؟"
SENTENCE_ENDS = tuple(SPACED_ENDS + UNSPACED_ENDS)
SENTENCE_ENDINGS = (*SENTENCE_ENDS, *"\"'”’)]»*_`」")
"""Signs at the end of a sentence that was not cut for its length."""
_SIGNS = re.compile(r"[{}<>=|$\\\[\]]|::|->|\(\)")
"""Signs of code and commands."""
_STAMP = re.compile(r"\[?(?:\w{3}\s\d+|\d{4}-\d\d-\d\d)[T\s]\d\d:\d\d:\d\d")
"""Timestamp at the beginning of a log line."""
_BULLET = re.compile(r"(?:[-*•·–—>]|#{1,6}|\(?\d{1,2}[.)]|\[[ xX]\])\s+")
_LIST_COMMAS_MIN, _LIST_WORDS_MAX = 2, 3
_HEADING_ENDS = ":："
_FENCE = ("```", "~~~")
_FIRST_PERSON = frozenset(
    "i i'm i’m i've i’ve i'd i’d i'll i’ll my me mine ich mich mir mein meine je moi yo mi io".split()
)
_PRONOUNS = frozenset("he she it they him them it's he's she's they're".split())
_ADDRESSING = frozenset(
    "you your you're you've you'd you'll you’re you’ve yours".split()
)


class Statement(NamedTuple):
    """A sentence of a memory, with all that its selection reads."""

    at: int
    """Position among all sentences of the group."""
    memory: int
    role: str
    text: str
    starts_line: bool
    stems: tuple[str, ...]
    """Stems of the words, each once; in a fixed order, on which sums of fractions depend."""
    emphasis: float
    readable: bool
    """Whether it says something whole, alone or after the sentence it needs."""
    needs: int | None = None
    """Position of the sentence before it without which it cannot be understood."""


class _Origin(NamedTuple):
    """The memory that a sentence is from."""

    memory: int
    role: str
    weight: float


class StatementReader:
    """Splits memories into statements, each distinct sentence once, and counts their words."""

    def __init__(
        self, *, zone: tzinfo, several: bool, weights: StatementWeights = WEIGHTS
    ) -> None:
        """Name each speaker where there are several, one alone only in the first person."""
        self.statements: list[Statement] = []
        self.known = Vocabulary()
        self._zone = zone
        self._several = several
        self._weights = weights
        self._seen: set[str] = set()

    def read(self, index: int, memory: MemoryRecord) -> None:
        """Read the sentences of a memory; `index` is its place in the group."""
        said = None
        if relative.may_have_relative_dates(memory.content):
            said = in_zone(memory.created_at, self._zone)
        role = " ".join(memory.role.split())
        origin = _Origin(index, role, 0.5 + memory.importance)
        before = self._last_of(role)
        for sentence, starts_line, prose in _sentences(memory.content):
            key = sentence.casefold()
            if key in self._seen:
                before = None
                continue
            self._seen.add(key)
            text = _plain(sentence, starts_line=starts_line)
            if said:
                text = relative.annotate_relative_dates(text, said)
            self._add((text, starts_line, prose), origin, before)
            before = len(self.statements) - 1

    def read_record(self, line: RecordLine) -> None:
        """Read a line that stands for memories that are no prose, as one statement."""
        words = tokens(line.text)
        statement = Statement(
            len(self.statements),
            line.position,
            "",
            line.text,
            starts_line=True,
            stems=self.known.add(words),
            emphasis=self._weights.record + line.worth,
            readable=True,
        )
        self.statements.append(statement)

    def _last_of(self, role: str) -> int | None:
        """Return the position of the sentence before, where the same speaker goes on."""
        last = self.statements[-1] if self.statements else None
        return last.at if last and role and last.role == role else None

    def _add(
        self, sentence: tuple[str, bool, bool], origin: _Origin, before: int | None
    ) -> None:
        text, starts_line, prose = sentence
        weights = self._weights
        bare = _without_stamp(text) if starts_line else text
        words = tokens(bare)
        stems = self.known.add(words)
        early = _lower(words[:EARLY_WORDS])
        kinds = [word.kind for word in words]
        weight = origin.weight * _form(text, words, kinds, weights)
        if bare != text:
            weight *= weights.listing
        readable = prose and _says_something(text, words, kinds)
        needs: int | None = None
        if readable:
            text, leans = _without_opener(text, early[0])
            weight *= _bearing(text, words, early, weights)
            if leans:
                needs = before
                readable = before is not None and self._may_follow(before, text)
        named = self._several or is_first_person(words)
        self.statements.append(
            Statement(
                len(self.statements),
                origin.memory,
                origin.role if named else "",
                text,
                starts_line,
                stems,
                weight,
                readable,
                needs,
            )
        )

    def _may_follow(self, before: int, text: str) -> bool:
        """Whether the sentences before make sense themselves, and are not too many."""
        if is_personal(text) and not names_somebody(self.statements[before].text):
            return False
        for _ in range(CHAIN_MAX):
            statement = self.statements[before]
            if not statement.readable:
                return False
            if statement.needs is None:
                return not statement.text.endswith(tuple(QUESTION_MARKS))
            before = statement.needs
        return False


def _sentences(content: str) -> Iterator[tuple[str, bool, bool]]:
    """Yield the sentences of a memory, whether each starts a line, and whether it is prose.

    What stands in code is none, nor a part of a sentence that was too long for one.
    """
    parts = sentences(content)
    if len(parts) == 1:
        yield *parts[0], not content.startswith(_FENCE)
        return
    fenced = cut = False
    last = len(parts) - 1
    for place, (sentence, starts_line) in enumerate(parts):
        fence = starts_line and sentence.startswith(_FENCE)
        fenced ^= fence
        fragment = cut and not starts_line
        cut = (
            not sentence.endswith(SENTENCE_ENDINGS)
            and place < last
            and not parts[place + 1][1]
        )
        yield sentence, starts_line, not (fenced or fence or fragment or cut)


def _plain(sentence: str, *, starts_line: bool) -> str:
    """Return a sentence without a bullet and marks of emphasis."""
    text = sentence
    if "**" in text:
        text = text.replace("**", "") or sentence
    bullet = starts_line and _BULLET.match(text)
    return text[bullet.end() :] or text if bullet else text


def is_first_person(words: Sequence[Token]) -> bool:
    """Tell whether words speak of their speaker."""
    return not _FIRST_PERSON.isdisjoint(_lower(words))


def with_speaker(memory: MemoryRecord) -> str:
    """Return the words of a memory, after its speaker's name where they speak of "me"."""
    content, role = memory.content, " ".join(memory.role.split())
    if not role or content.startswith(f"{role}: "):
        return content
    words = tokens(" ".join(content.split()))
    return f"{role}: {content}" if is_first_person(words) else content


def _says_something(
    text: str, words: Sequence[Token], kinds: Sequence[TokenKind]
) -> bool:
    """Whether a sentence is more than a greeting, a remark in brackets, a heading or numbers."""
    count = len(words)
    if not words or _is_furniture(text):
        return False
    if count <= COURTESY_WORDS_MAX and is_courtesy(_lower(words)):
        return False
    if not text.isascii():
        return any(map(str.isalpha, text)) and not _is_bare_list(text, kinds)
    if count < WORDS_MIN:
        return count > 1 and not VALUES.isdisjoint(kinds)
    exact = sum(map(EXACT_KINDS.__contains__, kinds))
    return exact <= count * EXACT_SHARE_MAX and not _is_bare_list(text, kinds)


def _without_stamp(text: str) -> str:
    """Return a line of a log without its time."""
    stamp = _STAMP.match(text)
    return text[stamp.end() :] if stamp else text


def _without_opener(text: str, first: str) -> tuple[str, bool]:
    """Return a sentence without its opener, and whether it leans on the one before it."""
    if may_be_opener(first):
        text = without_opener(text)
        return text, leans_back(text)
    return text, may_lean_back(first) and leans_back(text)


def _is_furniture(text: str) -> bool:
    """Whether it is a heading, a cell, a remark in brackets or a part of something."""
    return text[-1] in _HEADING_ENDS or text[0] in "|([{<*_" or _is_torn(text)


def _is_torn(text: str) -> bool:
    """Whether a quotation, a piece of code or a remark in brackets goes on beyond it."""
    torn = text.count('"') % 2 or text.count("`") % 2
    return bool(torn) or text.count("(") > text.count(")")


def _lower(words: Sequence[Token]) -> list[str]:
    return [word.surface.lower() for word in words]


def _is_bare_list(text: str, kinds: Sequence[TokenKind]) -> bool:
    """Whether it lists values and names without a word that makes a sentence of them."""
    if text.count(", ") < _LIST_COMMAS_MIN or _STOP in kinds:
        return False
    parts = text.split(", ")
    if any(part.split(" ")[0].lower() in WEEKDAYS for part in parts):
        return False  # an appointment
    return all(part.count(" ") < _LIST_WORDS_MAX for part in parts)


def _bearing(
    text: str, words: Sequence[Token], early: Sequence[str], weights: StatementWeights
) -> float:
    """Return the factor of a sentence that is about something unnamed, or about the listener."""
    if early[0] in _ADDRESSING:
        return weights.reaction
    if not _PRONOUNS.isdisjoint(early[1:]):
        return weights.vague
    short = text[-1] == "!" and len(words) <= weights.exclamation_words
    if short and not is_first_person(words):
        return weights.reaction
    return 1.0


def _form(
    sentence: str,
    words: Sequence[Token],
    kinds: Sequence[TokenKind],
    weights: StatementWeights,
) -> float:
    """Return the factor by which a sentence matters more, or less, than its words."""
    factor = emphasis(words)
    if _is_listing(sentence, kinds, weights):
        factor *= weights.eventful_listing if factor > 1 else weights.listing
    elif factor == 1 and _is_plain(words, kinds):
        factor = weights.plain
    if sentence[-1] in QUESTION_MARKS:
        factor *= weights.question
    return factor


def _is_plain(words: Sequence[Token], kinds: Sequence[TokenKind]) -> bool:
    """Whether a sentence has neither an exact value nor, after its first word, a name."""
    return EXACT_KINDS.isdisjoint(kinds) and True not in [
        word.capital for word in words[1:]
    ]


def _is_listing(
    sentence: str, kinds: Sequence[TokenKind], weights: StatementWeights
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
