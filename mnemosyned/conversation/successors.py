"""Successors of statements: newer ones on the same subject, told in front of the older ones."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import lru_cache
from math import log

from mnemosyned.conversation.briefing import ProjectStatement, find_keywords
from mnemosyned.conversation.injected import InjectedQuote, InjectedSection
from mnemosyned.memory.engine_ports import CosinesTo
from mnemosyned.memory.injections import BriefingEdits
from mnemosyned.memory.values import EndedStatement
from mnemosyned.text.endings.statements import read_statements
from mnemosyned.text.tokens import (
    CALENDAR,
    COMMONPLACE_KINDS,
    EXACT_KINDS,
    TITLES,
    UNITS,
    tokenize,
)
from mnemosyned.text.word_cache import clear_on_forget

# Chosen on `make bench-telling`: of 31 ended facts all have their successor, and of the other statements
# one in four has a newer one.
LIKENESS_MIN = 0.45
"""Sum of cosine, words and cue from which a newer statement is told with an older one."""
WORDS_WEIGHT = 0.5
"""Weight of the share of the subject's words in common, by their rarity."""
CUE_WEIGHT = 0.2
"""Weight of a cue of change in the newer statement."""
UNKNOWN_COSINE = 0.2
"""The cosine that is assumed where one of the two has no vector."""
PLACE_MAX = 3
"""Only so many older statements that are most like a newer one may have it as their successor."""
SURE_MIN = 0.6
"""The same sum from which a statement that has a successor itself is one."""
STEPS_MAX = 3
"""Statements in a line behind the newest one."""
TRIED_MAX = 5
ENDED_SHARE_MIN = 0.5
"""Share of an ended sentence's keywords that a text needs in order to tell that sentence."""
SUBJECT_CHARS_MIN = 3
SUBJECTS_CACHED_MAX = 2_000

EndingsOf = Callable[[Sequence[str]], Mapping[str, Sequence[EndedStatement]]]
"""Returns the ended statements of memories, by their ids."""


class SuccessorFinder:
    """The statements of a project, among which the newest on a subject is found.

    A statement that surely ended has the one that ended it. Any other may have a newer one with much
    the same words or meaning: which of the two applies is not known, and both are told together.
    """

    def __init__(
        self,
        statements: Sequence[ProjectStatement],
        *,
        edits: BriefingEdits,
        endings_of: EndingsOf,
        compare: Callable[[Sequence[str]], CosinesTo],
    ) -> None:
        """Find successors among `statements`, which come newest first, in a person's words by `edits`."""
        self._statements = [
            each for each in statements if not edits.is_dropped(each.memory.id)
        ]
        self._edits = edits
        self._endings_of = endings_of
        self._compare = compare
        self._cosines_to: CosinesTo = lambda _: {}
        self._places: dict[str, list[int]] = defaultdict(list)
        """The places of the statements with a word of their subject."""
        for place, each in enumerate(self._statements):
            for word in find_subject(each.text):
                self._places[word].append(place)
        self._rarities = [
            self._rate_words(find_subject(each.text)) for each in self._statements
        ]
        self._likeness: dict[str, list[float]] = {}
        """The likeness of texts to the statements, by the ids of their memories."""

    def put_newest_first(
        self, sections: Sequence[InjectedSection]
    ) -> list[InjectedSection]:
        """Return the sections with each older quote behind the newest on its subject, in one line.

        A successor that was not chosen itself is added; no line is in two sections.
        """
        ids = [quote.source_id for each in sections for quote in each.quotes]
        ended = self._endings_of(ids)
        known = [each.memory.id for each in self._statements]
        self._cosines_to = self._compare(list(dict.fromkeys([*known, *ids])))
        self._likeness.clear()
        told: set[str] = set()
        paired = []
        for section in sections:
            lines: dict[str, InjectedQuote] = {}
            for quote in section.quotes:
                newest, *older = self._follow(quote, ended.get(quote.source_id, ()))
                line = lines.get(newest.id, newest)
                for each in older:
                    if each.id not in {other.id for other in line.earlier} and (
                        find_keywords(each.text) - find_keywords(newest.text)
                    ):
                        line = replace(line, earlier=(*line.earlier, each))
                if newest.id not in told:
                    lines[newest.id] = line
            told.update(lines)
            paired.append(replace(section, quotes=list(lines.values())))
        return paired

    def _follow(
        self, quote: InjectedQuote, ended: Sequence[EndedStatement]
    ) -> list[InjectedQuote]:
        """Return the statements that followed on a quote, the newest first, and the quote at last.

        The quote has the time of its end if one of its `ended` statements is in its words.
        """
        keywords = find_keywords(quote.text)
        chain = [quote]
        for each in ended:
            sentence = find_keywords(each.sentence)
            if len(sentence & keywords) >= ENDED_SHARE_MIN * len(sentence):
                newer = replace(
                    quote, id=each.by, memory="", said=each.at, text=each.successor
                )
                chain = [newer, replace(quote, ended_at=each.at)]
                break
        while len(chain) <= STEPS_MAX and (successor := self._find_successor(chain[0])):
            memory = successor.memory
            newer = replace(
                quote,
                id=memory.id,
                memory="",
                text=self._edits.text_of(memory.id) or successor.text,
                said=memory.created_at,
                source=memory.source or "",
                speaker=memory.role,
            )
            chain.insert(0, newer)
        return chain

    def _find_successor(self, quote: InjectedQuote) -> ProjectStatement | None:
        """Return the newer statement that is most like a quote; None if none is like enough.

        One that has a successor itself is passed over, unless the quote is surely about it.
        """
        rated = self._list_successors(quote.source_id, quote.text, quote.said)
        for score, newer in rated:
            memory = newer.memory
            if score >= SURE_MIN or not self._list_successors(
                memory.id, newer.text, memory.created_at
            ):
                return newer
        return None

    def _list_successors(
        self, id: str, text: str, said: datetime
    ) -> list[tuple[float, ProjectStatement]]:
        """Return the statements that may have followed on a text, each after its score, best first."""
        likeness = self._rate_likeness(id, text)
        rated = []
        for place, each in enumerate(self._statements):
            if each.memory.created_at <= said:
                break
            if each.memory.id == id or likeness[place] < LIKENESS_MIN - CUE_WEIGHT:
                continue
            score = likeness[place] + CUE_WEIGHT * has_cue(each.text)
            if score >= LIKENESS_MIN:
                rated.append((score, place))
        successors = []
        for score, place in sorted(rated, reverse=True)[:TRIED_MAX]:
            newer, before = self._statements[place], self._statements[place + 1 :]
            others = self._rate_likeness(newer.memory.id, newer.text)[place + 1 :]
            nearer = sum(
                other > likeness[place] and each.memory.id != id
                for other, each in zip(others, before, strict=True)
            )
            if nearer < PLACE_MAX:
                successors.append((score, newer))
        return successors

    def _rate_likeness(self, id: str, text: str) -> list[float]:
        """Return how like each statement a text is, by meaning and by the words of its subject."""
        if id in self._likeness:
            return self._likeness[id]
        words = find_subject(text)
        rarity = self._rate_words(words)
        cosines = self._cosines_to(id)
        likeness = [
            cosines.get(each.memory.id, UNKNOWN_COSINE) for each in self._statements
        ]
        for word in words:
            weight = WORDS_WEIGHT * self._rate_words([word])
            for place in self._places.get(word, ()):
                likeness[place] += weight / min(rarity, self._rarities[place])
        self._likeness[id] = likeness
        return likeness

    def _rate_words(self, words: Iterable[str]) -> float:
        """Return the sum of the rarities of words among the statements."""
        count = len(self._statements) + 1
        return sum(
            log(count / (len(self._places.get(word, ())) + 0.5)) for word in words
        )


@clear_on_forget
@lru_cache(SUBJECTS_CACHED_MAX)
def has_cue(text: str) -> bool:
    """Return whether a statement of a text has a cue of an ending, such as "instead"."""
    return any(statement.cues for statement in read_statements(text))


@clear_on_forget
@lru_cache(SUBJECTS_CACHED_MAX)
def find_subject(text: str) -> frozenset[str]:
    """Return the stems of a text's words that name a subject: no title, unit or day."""
    return frozenset(
        token.stem
        for token in tokenize(text)
        if token.kind not in COMMONPLACE_KINDS
        and token.stem not in _GENERAL
        and (len(token.stem) >= SUBJECT_CHARS_MIN or token.kind in EXACT_KINDS)
    )


_GENERAL = frozenset(
    token.stem for word in TITLES | UNITS | CALENDAR for token in tokenize(word)
)
"""Stems of titles, units and days, which name no subject."""
