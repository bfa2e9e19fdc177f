"""Successors of statements: newer ones on the same subject, told in front of the older ones."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
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
"""The same sum from which a statement that has a successor itself, or that the agent has, is one."""
STEPS_MAX = 3
"""Statements in a line behind the newest one."""
TRIED_MAX = 5
EARLIER_MAX = 2
"""Older quotes in the line of the newest one."""
STATEMENTS_MAX = 600
"""Newest statements among which successors are found: each quote is compared with all of them, and a
start of a session must not wait for seconds."""
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
        known: Collection[str] = (),
    ) -> None:
        """Find successors among `statements`, which come newest first, in a person's words by `edits`.

        `edits` has those of all memories, `known` the ids of memories whose words the agent has.
        """
        self._statements = [
            each for each in statements if not edits.is_dropped(each.memory.id)
        ][:STATEMENTS_MAX]
        self._memories = {each.memory.id: each.memory for each in self._statements}
        self._known = known
        self._edits = edits
        self._endings_of = endings_of
        self._compare = compare
        self._cosines_to: CosinesTo = lambda _: {}
        self._places: dict[str, list[int]] = defaultdict(list)
        """The places of the statements with a word of their subject."""
        subjects = [find_subject(each.text) for each in self._statements]
        for place, subject in enumerate(subjects):
            for word in subject:
                self._places[word].append(place)
        self._rarities = [self._rate_words(subject) for subject in subjects]
        self._likeness: dict[str, list[float]] = {}
        """The likeness of texts to the statements, by the ids of their memories."""

    def put_newest_first(
        self, sections: Sequence[InjectedSection]
    ) -> list[InjectedSection]:
        """Return the sections with each older quote behind the newest on its subject, in one line.

        A successor that was not chosen itself is added; no line is in two sections. A quote is left out
        if the agent has the newest that is surely on its subject.
        """
        ids = [quote.source_id for each in sections for quote in each.quotes]
        ended = self._endings_of(ids)
        self._cosines_to = self._compare(list(dict.fromkeys([*self._memories, *ids])))
        self._likeness.clear()
        lines: dict[str, InjectedQuote] = {}
        line_of: dict[str, str] = {}
        """The ids of lines, by their own and by those of the memories that state learnings."""
        added: list[list[str]] = []
        """The ids of the lines in each section."""
        for section in sections:
            added.append([])
            for quote in section.quotes:
                newest, *older = self._follow(quote, ended.get(quote.source_id, ()))
                if newest.id in self._known:
                    continue
                id = line_of.setdefault(newest.id, newest.id)
                if id not in lines:
                    lines[id] = newest
                    line_of.setdefault(newest.source_id, id)
                    added[-1].append(id)
                lines[id] = self._put_behind(lines[id], older)
        return [
            replace(section, quotes=[lines[id] for id in chosen])
            for section, chosen in zip(sections, added, strict=True)
        ]

    def _put_behind(
        self, newest: InjectedQuote, older: Sequence[InjectedQuote]
    ) -> InjectedQuote:
        """Return a quote followed by its first `EARLIER_MAX` older quotes, newest first.

        Left out are those that the agent has or that say nothing else; of `older` the last, which was
        chosen, comes before the others.
        """
        earlier = {each.id: each for each in newest.earlier}
        keywords = find_keywords(newest.text)
        for each in reversed(older):
            if each.id not in self._known and find_keywords(each.text) - keywords:
                earlier.setdefault(each.id, each)
        behind = sorted(
            list(earlier.values())[:EARLIER_MAX],
            key=lambda each: each.said,
            reverse=True,
        )
        return replace(newest, earlier=tuple(behind))

    def _follow(
        self, quote: InjectedQuote, ended: Sequence[EndedStatement]
    ) -> list[InjectedQuote]:
        """Return the statements that followed on a quote, the newest first, and the quote at last.

        The quote has the time of its end if one of its `ended` statements is in its words.
        """

        def make_newer(id: str, text: str, said: datetime, why: str) -> InjectedQuote:
            """Return a newer quote from a memory; its origin is empty unless it is a statement here."""
            memory = self._memories.get(id)
            return InjectedQuote(
                id=id,
                text=self._edits.text_of(id) or text,
                said=said,
                source=memory.source or "" if memory else "",
                speaker=memory.role if memory else "",
                reason=f"{why} ({quote.reason})",
            )

        keywords = find_keywords(quote.text)
        chain = [quote]
        for each in ended:
            sentence = find_keywords(each.sentence)
            if not self._edits.is_dropped(each.by) and (
                len(sentence & keywords) >= ENDED_SHARE_MIN * len(sentence)
            ):
                newer = make_newer(
                    each.by, each.successor, each.at, "ended an older line"
                )
                chain = [newer, replace(quote, ended_at=each.at)]
                break
        while len(chain) <= STEPS_MAX and (successor := self._find_successor(chain[0])):
            memory = successor.memory
            newer = make_newer(
                memory.id,
                successor.text,
                memory.created_at,
                "newer than a line like it",
            )
            chain.insert(0, newer)
        return chain

    def _find_successor(self, quote: InjectedQuote) -> ProjectStatement | None:
        """Return the newer statement that is most like a quote; None if none is like enough.

        One that has a successor itself is passed over, unless the quote is surely about it, and so is
        one that the agent has: the quote may still apply.
        """
        rated = self._list_successors(quote.source_id, quote.text, quote.said)
        for score, newer in rated:
            memory = newer.memory
            if score >= SURE_MIN or not (
                memory.id in self._known
                or self._list_successors(memory.id, newer.text, memory.created_at)
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
