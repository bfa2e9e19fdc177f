"""Check of a model's summary: every exact value in it must occur in its sources."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, tzinfo
from enum import StrEnum
from functools import cached_property

from mnemosyned.instants import in_zone
from mnemosyned.memory.values import MemoryRecord
from mnemosyned.summary.grounding import values
from mnemosyned.summary.grounding.names import find_unknown_names, list_name_forms
from mnemosyned.text.languages.tables import foreign_language, foreign_script
from mnemosyned.text.rule_files import read_rule_file
from mnemosyned.text.sentences import split_sentences
from mnemosyned.text.tokens import PATTERNS, TokenKind, find_keywords

_WORDS, _NAMES, _PATTERNS, _FORMS = read_rule_file(
    __file__, url=PATTERNS[TokenKind.URL], email=PATTERNS[TokenKind.EMAIL]
)

RUNAWAY = 4
SAME_SENTENCES_MAX = 2
SENTENCE_WORDS_MIN = 3
GRAM = 3
GRAMS_MIN = 12
GRAMS_DISTINCT_MIN = 0.6
"""Minimum share of distinct groups of three words; good prose has .95."""
SOURCE_SHARE = 0.8
NEGATED_STEMS_MIN = 2
NEGATED_SHARED_MIN = 0.8
"""Minimum share of a clause's words in a source clause for the two to agree in negation."""
ROW_MAX = 4
ROW_WORDS_MAX = 8


class GroundingFault(StrEnum):
    """Kind of fault in a summary, from a wrong shape or language to an invented value."""

    EMPTY = "empty"
    TOO_LONG = "too_long"
    SCRIPT = "script"
    LANGUAGE = "language"
    REPEATED = "repeated"
    REFUSED = "refused"
    UNINFORMATIVE = "uninformative"
    SPEAKER = "speaker"
    NEGATION = "negation"
    URL = "url"
    EMAIL = "email"
    PATH = "path"
    IDENTIFIER = "identifier"
    DATE = "date"
    NUMBER = "number"
    NAME = "name"


UNGROUNDED = frozenset(list(GroundingFault)[-7:])
"""Faults of a value that no source contains: the last of the kinds, from `URL` on."""


@dataclass(frozen=True, slots=True)
class SummaryProblem:
    """A fault of a summary, with the value at fault."""

    kind: GroundingFault
    item: str
    """Value at fault, as written; never logged, as it may hold a memory's text."""


_EXACT_KINDS = (
    GroundingFault.URL,
    GroundingFault.EMAIL,
    GroundingFault.PATH,
    GroundingFault.IDENTIFIER,
)
"""Kinds of exact values in the order of their search, each with a pattern of its name."""
_TRAILING = ".,;:!?…)]}>\"'`*_»”’、。，；：！？"


class GroundingSources:
    """Index of the words, numbers and dates of a group of memories."""

    def __init__(self, memories: Sequence[MemoryRecord], *, zone: tzinfo = UTC) -> None:
        self.memories = memories
        self._zone = zone
        self.text = "\n".join(_normalize_text(memory.content) for memory in memories)
        self.roles = tuple(
            dict.fromkeys(memory.role for memory in memories if memory.role)
        )

    @cached_property
    def calendar(self) -> values.SourceDates:
        """The days on which the memories were made, and the absolute and relative dates in their texts."""
        found = values.SourceDates()
        for memory in self.memories:
            found.add(memory.content, in_zone(memory.created_at, self._zone))
        return found

    @cached_property
    def numbers(self) -> frozenset[str]:
        """Numbers that a summary may contain: of the memories, their times of day, 1, and 2 for two roles."""
        found: set[str] = {"1", "2"} if len(self.roles) == 2 else {"1"}
        for memory in self.memories:
            said = in_zone(memory.created_at, self._zone)
            found.update(
                (f"{said.hour}:{said:%M}", f"{(said.hour - 1) % 12 + 1}:{said:%M}")
            )
        for _, readings in values.read_numbers(self.text):
            found |= readings
        found.update(value for _, value in values.read_number_words(self.text))
        found.update(str(year) for year in self.calendar.years)
        found.update(f"day {day}" for _, day in self.calendar.yearless if day)
        return frozenset(found)

    @cached_property
    def words(self) -> frozenset[str]:
        """The words and roles of the memories, in all forms that a name may take."""
        return frozenset(
            form
            for text in (self.text, *self.roles)
            for form in list_name_forms(_normalize_text(text))
        )

    @cached_property
    def folded_text(self) -> str:
        """The texts and roles of the memories in lower case, for finding exact values."""
        return f"{self.text}\n{' '.join(self.roles)}".casefold()

    @cached_property
    def clauses(self) -> tuple[tuple[set[str], str], ...]:
        """The stems and the text of each clause of the memories."""
        return tuple(_read_clauses(self.text))

    def has_value(self, value: str) -> bool:
        """Return True if a value occurs in the memories, but not within a word; letter case is ignored."""
        text, wanted = self.folded_text, value.casefold()
        start = text.find(wanted)
        while start >= 0:
            stop = start + len(wanted)
            before, after = text[start - 1 : start], text[stop : stop + 1]
            if not (_are_joined(before, wanted[0]) or _are_joined(after, wanted[-1])):
                return True
            start = text.find(wanted, start + 1)
        return False


def check_grounding(
    summary: str, sources: Sequence[MemoryRecord], *, chars_max: int, zone: tzinfo = UTC
) -> tuple[SummaryProblem, ...]:
    """Return the problems of a summary, such as a wrong language, or a value that no source has; empty if none.

    `chars_max` is the longest summary allowed; for one that is `RUNAWAY` times as long, only the length is a
    problem. `zone` is the time zone for the sources' relative dates.
    """
    text = _normalize_text(summary).strip()
    if not text or not any(char.isalnum() for char in text):
        return (SummaryProblem(GroundingFault.EMPTY, ""),)
    problems: dict[SummaryProblem, None] = {}
    if len(text) > chars_max:
        size = f"{len(text)} characters"
        problems[SummaryProblem(GroundingFault.TOO_LONG, size)] = None
    if len(text) <= RUNAWAY * chars_max:  # longer ones are not worth the time
        known = GroundingSources(sources, zone=zone)
        problems |= dict.fromkeys(_find_problems_of_form(text, known))
        problems |= dict.fromkeys(_find_ungrounded_values(text, known))
    return tuple(problems)


def _find_problems_of_form(
    text: str, known: GroundingSources
) -> Iterator[SummaryProblem]:
    """Yield a problem for repetition, a refusal, and a script or language that no source has.

    Problems are also a speaker who says "I" without a name, and a clause that denies what its source claims, or
    claims what its source denies.
    """
    if is_repetitive(text, known.text):
        yield SummaryProblem(GroundingFault.REPEATED, "")
    refusal = _PATTERNS["refusal"].match(text)
    if refusal and not known.has_value(refusal[0]):
        yield SummaryProblem(GroundingFault.REFUSED, refusal[0])
    if script := foreign_script(text, known.text):
        yield SummaryProblem(GroundingFault.SCRIPT, script)
    elif language := foreign_language(text, known.text):
        yield SummaryProblem(GroundingFault.LANGUAGE, language)
    for line in text.splitlines() if len(known.roles) > 1 else ():
        said = _PATTERNS["first_person"].search(_PATTERNS["quotation"].sub(" ", line))
        if said and not any(role.casefold() in line.casefold() for role in known.roles):
            yield SummaryProblem(GroundingFault.SPEAKER, said[0])
    names = find_content_stems(known.roles)
    for stems, clause in _read_clauses(text):
        wanted = stems - names
        if len(wanted) >= NEGATED_STEMS_MIN:
            needed = NEGATED_SHARED_MIN * len(wanted)
            close = [said for has, said in known.clauses if len(wanted & has) >= needed]
            if close and is_negated(clause) not in map(is_negated, close):
                yield SummaryProblem(GroundingFault.NEGATION, clause)


def _read_clauses(text: str) -> Iterator[tuple[set[str], str]]:
    """Yield the stems and the text of each clause of a text."""
    for sentence, _ in split_sentences(text):
        for clause in _PATTERNS["clause_end"].split(sentence):
            yield find_content_stems([clause]), clause


def _find_ungrounded_values(
    text: str, known: GroundingSources
) -> Iterator[SummaryProblem]:
    """Yield a problem for each exact value, date, number and name that is in no source.

    A value that was read is blanked out, so that no part is read as another kind of value.
    """
    for kind in _EXACT_KINDS:
        for match in _PATTERNS[kind].finditer(text):
            value = match[0].rstrip(_TRAILING)
            if value and not known.has_value(value):
                if kind is GroundingFault.IDENTIFIER and _is_composed(value, known):
                    continue
                bare = ""
                if kind is GroundingFault.URL:
                    bare = _PATTERNS["around_host"].sub("", value)
                if not bare or not known.has_value(bare):
                    yield SummaryProblem(kind, value)
            text = _blank_out(text, match.start(), match.start() + len(value))
    for mention in values.find_mentions(text):
        if not known.calendar.has_date(mention) and not known.has_value(mention.text):
            yield SummaryProblem(GroundingFault.DATE, mention.text)
        text = _blank_out(text, mention.start, mention.end)
    for figure, readings in values.read_numbers(text):
        if known.numbers.isdisjoint(readings):
            yield SummaryProblem(GroundingFault.NUMBER, figure)
    exempt = _WORDS["exempt_number_words"]
    for word, value in values.read_number_words(text):
        if value not in known.numbers and word.lower() not in exempt and len(word) > 1:
            yield SummaryProblem(GroundingFault.NUMBER, word)
    for name in find_unknown_names(text, known.words, known.folded_text):
        yield SummaryProblem(GroundingFault.NAME, name)


def _blank_out(text: str, start: int, stop: int) -> str:
    """Return the text with blanks from `start` to `stop`, at the same length."""
    return f"{text[:start]}{' ' * (stop - start)}{text[stop:]}"


def is_repetitive(text: str, source: str = "") -> bool:
    """Return True if a text repeats itself like a model in a loop.

    It repeats a sentence more than twice, words many times in a row, or phrases more than `source` does.
    """
    counts = Counter(
        sentence.casefold().strip(" .!?-*•") for sentence, _ in split_sentences(text)
    )
    if any(
        count > SAME_SENTENCES_MAX
        and len(_PATTERNS["gram"].findall(sentence)) >= SENTENCE_WORDS_MIN
        for sentence, count in counts.items()
    ):
        return True
    words = _PATTERNS["gram"].findall(text.casefold())
    least = min(
        GRAMS_DISTINCT_MIN,
        _measure_distinct_share(_PATTERNS["gram"].findall(source.casefold()))
        * SOURCE_SHARE,
    )
    if len(words) >= GRAMS_MIN and _measure_distinct_share(words) < least:
        return True
    for size in range(1, ROW_WORDS_MAX + 1):
        run = 0  # words in a row that are the same as `size` words before
        for at in range(size, len(words)):
            run = run + 1 if words[at] == words[at - size] else 0
            if run >= size * (ROW_MAX - 1):
                return True
    return False


def _measure_distinct_share(words: Sequence[str]) -> float:
    """Return the share of distinct groups among all groups of `GRAM` words in a row; 1 without groups."""
    grams = [tuple(words[at : at + GRAM]) for at in range(len(words) - GRAM + 1)]
    return len(set(grams)) / len(grams) if grams else 1.0


def _is_composed(value: str, known: GroundingSources) -> bool:
    """Return True if the sources contain the numbers and words of a compound such as `5G-ready`.

    The numbers are enough for a plain compound with hyphens, such as `5-year-old`.
    """
    figures = {digits.lstrip("0") or "0" for digits in re.findall(r"\d+", value)}
    if not figures <= known.numbers:
        return False
    plain = "-" in value and not re.search(r"[A-Z].*\d|\d.*[A-Z]", value)
    words = re.findall(r"[^\W\d_]+", value)
    return plain or all(word.casefold() in known.words for word in words)


def _are_joined(first: str, second: str) -> bool:
    """Return True if two characters side by side are both ASCII letters or digits."""
    joined = first + second
    return joined.isascii() and first.isalnum() and second.isalnum()


def _normalize_text(text: str) -> str:
    """Return a text with full-width characters and curly apostrophes made plain."""
    return unicodedata.normalize("NFKC", text).replace("’", "'").replace("‘", "'")


OF_THE_WHOLE = frozenset((GroundingFault.UNINFORMATIVE, GroundingFault.TOO_LONG))
"""Faults that an answer may have, but not one of its sentences alone."""
SHARED_MIN = 0.6
"""Minimum share of a sentence's words in one source sentence that confirms it."""


def shorten_answer(
    answer: str, chars_max: int, is_kept: Callable[[str], bool] = bool
) -> str:
    """Return an answer up to the first sentence that it repeats or that exceeds `chars_max` characters.

    Sentences that are not `is_kept` are left out.
    """
    seen: set[str] = set()
    text = ""
    for sentence, starts_line in split_sentences(answer):
        key = sentence.casefold()
        longer = f"{text}{chr(10) if starts_line else ' '}{sentence}".strip()
        if key in seen or len(longer) > chars_max:
            break
        seen.add(key)
        if is_kept(sentence):
            text = longer
    return text


def select_grounded_sentences(
    answer: str,
    judge: Callable[[str], Sequence[SummaryProblem]],
    sources: Sequence[MemoryRecord],
    *,
    chars_max: int,
) -> str:
    """Return a shortened answer without the sentences that are faulty or that the sources do not confirm.

    `judge` returns the problems of a sentence. Return an empty text if all or none of the sentences
    are left out.
    """

    def is_grounded(sentence: str) -> bool:
        faulty = any(problem.kind not in OF_THE_WHOLE for problem in judge(sentence))
        return not faulty and is_confirmed(sentence, sources)

    text = shorten_answer(answer, chars_max, is_grounded)
    return "" if text == answer else text


def is_confirmed(sentence: str, sources: Sequence[MemoryRecord]) -> bool:
    """Return True if the speakers named in a sentence, or else any speakers, said its content words.

    One sentence of these speakers must have most of the words, and must be negated if and only if
    `sentence` is negated.
    """
    roles = {memory.role for memory in sources}
    names = roles - {""}
    wanted = find_content_stems([sentence]) - find_content_stems(names)
    named = {name for name in names if re.search(rf"\b{re.escape(name)}\b", sentence)}
    speakers = named or roles
    texts = [memory.content for memory in sources if memory.role in speakers]
    if not wanted or not wanted <= find_content_stems(texts):
        return False
    lines = [line for text in texts for line, _ in split_sentences(text)]
    closest = max(lines, key=lambda line: len(wanted & find_content_stems([line])))
    if len(wanted & find_content_stems([closest])) < SHARED_MIN * len(wanted):
        return False
    return is_negated(sentence) == is_negated(closest)


def is_negated(sentence: str) -> bool:
    """Return True if a sentence has a word such as "not" or "never"."""
    return bool(_PATTERNS["negation"].search(_normalize_text(sentence)))


def find_content_stems(texts: Iterable[str]) -> set[str]:
    """Return the stems of all words of texts, except stop words and other commonplace words."""
    return set().union(*(find_keywords(" ".join(text.split())) for text in texts))
