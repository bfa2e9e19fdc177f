"""Successors of statements: newer ones on the same subject, shown before the older ones."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import lru_cache
from heapq import nlargest
from math import log

from mnemosyned.conversation.briefing import ProjectStatement, find_keywords
from mnemosyned.conversation.injected import InjectedQuote, InjectedSection
from mnemosyned.memory.engine_ports import CosinesTo
from mnemosyned.memory.injections import BriefingEdits
from mnemosyned.memory.values import EndedStatement
from mnemosyned.text.endings.recognize import rate_words
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

# A logistic regression, fitted once by hand on the projects of the halves `tune` and `others`. No command
# fits it again: `make bench-telling` shows its effect, as the texts that tell an ended fact as in force.
ODDS, ODDS_OF_COSINE, ODDS_OF_SUBJECT, ODDS_OF_WORDS = -7.25, 17.3, 4.8, 1.4
"""Log odds that a newer statement ends an older one: a constant, and the weights of their cosine, of the
share of their subject's words in common, by rarity, and of the log odds by their words."""
ODDS_MIN = -4.0
"""Log odds from which a newer statement is told with an older one: the agent sees which of them applies."""
SURE_MIN = -2.0
"""The same from which a successor of the successor is told, or a quote whose successor the agent has is not."""
ADDED_WITHIN = timedelta(hours=1)
"""Time after a statement in which people add to it more often than they change it without saying so."""
SUBJECT_WEIGHT = 0.5
"""Weight of the subject's words next to the cosine, where the likest statements are chosen."""
RATED_MAX, RATED_MIN = 4, -3.0
"""Likest newer statements that are compared word by word, a quarter of a millisecond a pair at first, and the
log odds without their words from which they are."""
SUCCESSORS_MAX = 2
"""Successors of one statement: it may state several facts."""
UNKNOWN_COSINE = 0.2
"""The cosine that is assumed where one of the two has no vector."""
NEWER_MAX, EARLIER_MAX = 3, 3
"""Newer quotes that are told with a chosen one, and older quotes in the line of the newest one."""
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
    the same words or meaning: which of the two applies is not known, and both are shown together.
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
        lines: dict[str, InjectedQuote] = {}
        line_of: dict[str, str] = {}
        """The ids of lines, by their own and by those of the memories that state learnings."""
        added: list[list[str]] = []
        """The ids of the lines in each section."""
        for section in sections:
            added.append([])
            for quote in section.quotes:
                if sum(len(lines[id].text) for id in added[-1]) > section.chars_max:
                    break  # the rest has no room, and to compare a quote takes milliseconds
                chain = self._follow(quote, ended.get(quote.source_id, ()))
                if not chain:
                    continue
                newest, *older = chain
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
        """Return a quote behind the statements that followed on it, the newest first.

        The quote has the time of its end if one of its `ended` statements is in its words. Statements that
        the agent has are left out; the result is empty if the newest is one of them.
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
        newer: dict[str, InjectedQuote] = {}
        for each in ended:
            sentence = find_keywords(each.sentence)
            if not self._edits.is_dropped(each.by) and (
                len(sentence & keywords) >= ENDED_SHARE_MIN * len(sentence)
            ):
                newer[each.by] = make_newer(
                    each.by, each.successor, each.at, "ended an older line"
                )
                quote = replace(quote, ended_at=each.at)
                break
        waiting = [(ODDS_MIN, quote), *((SURE_MIN, each) for each in newer.values())]
        while waiting and len(newer) < NEWER_MAX:
            least, older = waiting.pop(0)
            for odds, successor in self._find_successors(older):
                memory = successor.memory
                is_addition = memory.created_at < older.said + ADDED_WITHIN and not any(
                    each.cues for each in read_statements(successor.text)
                )
                if odds < (SURE_MIN if is_addition else least) or memory.id in newer:
                    continue
                follower = make_newer(
                    memory.id,
                    successor.text,
                    memory.created_at,
                    "newer than a line like it",
                )
                # A doubtful one may have ended itself; of one that the agent has, it knows.
                if odds < SURE_MIN and (
                    memory.id in self._known
                    or any(
                        likelier > odds
                        for likelier, _ in self._find_successors(follower)
                    )
                ):
                    continue
                newer[memory.id] = follower
                waiting.append((SURE_MIN, follower))
        chain = sorted(newer.values(), key=lambda each: each.said, reverse=True)
        if chain and chain[0].id in self._known:
            return []
        return [*(each for each in chain if each.id not in self._known), quote]

    def _find_successors(
        self, quote: InjectedQuote
    ) -> list[tuple[float, ProjectStatement]]:
        """Return the likeliest successors of a quote, each after its log odds, the likeliest first."""
        id, text = quote.source_id, quote.text
        shares, cosines = self._share_subject(text), self._cosines_to(id)
        newer: list[tuple[float, int, float]] = []
        for place, each in enumerate(self._statements):
            if each.memory.created_at <= quote.said:
                break
            if each.memory.id != id:
                cosine = cosines.get(each.memory.id, UNKNOWN_COSINE)
                share = shares.get(place, 0.0)
                odds = ODDS + ODDS_OF_COSINE * cosine + ODDS_OF_SUBJECT * share
                if odds >= RATED_MIN:
                    newer.append((cosine + SUBJECT_WEIGHT * share, -place, odds))
        rated = [
            (
                odds + ODDS_OF_WORDS * rate_words(text, self._statements[-place].text),
                place,
            )
            for _, place, odds in nlargest(RATED_MAX, newer)
        ]
        return [
            (odds, self._statements[-place])
            for odds, place in nlargest(SUCCESSORS_MAX, rated)
            if odds >= ODDS_MIN
        ]

    def _share_subject(self, text: str) -> dict[int, float]:
        """Return the share of the subject's words in common, by the places of statements with any."""
        words = find_subject(text)
        rarity = self._rate_words(words)
        shares: dict[int, float] = defaultdict(float)
        for word in words:
            weight = self._rate_words([word])
            for place in self._places.get(word, ()):
                shares[place] += weight / max(
                    min(rarity, self._rarities[place]), weight
                )
        return shares

    def _rate_words(self, words: Iterable[str]) -> float:
        """Return the sum of the rarities of words among the statements."""
        count = len(self._statements) + 1
        return sum(
            log(count / (len(self._places.get(word, ())) + 0.5)) for word in words
        )


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
