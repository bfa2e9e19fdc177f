"""Successors of statements: newer statements on the same subject, shown before the older ones."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import lru_cache
from heapq import nlargest
from itertools import chain, takewhile
from math import log
from operator import mul
from types import MappingProxyType
from typing import NamedTuple

from mnemosyned.conversation import briefing
from mnemosyned.conversation.injected import InjectedQuote, InjectedSection
from mnemosyned.conversation.learnings.relevance import concerns_health
from mnemosyned.memory import engine_ports, injections, values
from mnemosyned.memory.endings import EndedOf, find_parts, mark_ended_clauses
from mnemosyned.search.query import MAIN_SHARE, Match, RankedResult
from mnemosyned.search.ranking import store_index_of
from mnemosyned.text.dates.mentions import announced_start
from mnemosyned.text.endings import plain, rating
from mnemosyned.text.endings.clauses import locate_clauses
from mnemosyned.text.endings.statements import read_statements
from mnemosyned.text.terms import length_in_letters
from mnemosyned.text.tokens import (
    CALENDAR,
    COMMONPLACE_KINDS,
    EXACT_KINDS,
    TITLES,
    UNITS,
    TokenKind,
    find_keywords,
    tokenize,
)
from mnemosyned.text.word_cache import clear_on_forget

ODDS, WEIGHTS = 3.8, (17.8, 23.4, -18.7, 0.5, -3.9, 1.02, 0.94)
"""Log odds that a newer statement ends an older one: a constant, and the weights of `list_features`. `make
fit-successors` fits them on the projects of the halves `tune` and `others`. Weights fitted after the endings
last changed differ by a tenth, but show facts still in force as outdated ones."""
NEIGHBORS = 5
"""Number of most similar statements whose mean similarity is compared with that of a pair. Two statements on
one subject are more similar to each other than to others; where all are alike, or one is like many, similarity
says little (Conneau et al., "Word translation without parallel data", 2018)."""
ODDS_MIN = -3.5
"""Minimum log odds of a newer statement shown after an older one that it may have changed. A lower limit would
show hardly any more true changes, and twice as many unrelated statements."""
CASE_ODDS_MAX = -2.5
"""Maximum log odds of a newer statement on one case only, so that it never comes first. Such are a fact after a
rule, an exception such as "this week", and another thing, as "the guest wifi" after "the wifi"."""
SPREAD = 1.0
"""Maximum difference in log odds of two lines that are both followed by the same doubtful successor."""
SURE_MIN = 1.0
"""Minimum log odds of a sure successor, which is shown first, and the older statement after it."""
LIKELY_MIN = -2.0
"""Minimum log odds of a likely successor. It is shown even if a sure one is newer, and an agent that has it
gets no quote of the older statement."""
WORDS_ODDS_MAX = 2.0
"""Maximum log odds that words add: of the projects' sure pairs, one in eighty has more. Words are compared
last, as a pair takes a quarter of a millisecond."""
ADDED_WITHIN = timedelta(hours=1)
"""Time after a statement in which people more often add to it than change it, unless they change one word."""
SUBJECT_WEIGHT = 0.5
"""Weight of the share of common subject words (by rarity), relative to the cosine, in the similarity."""
RATED_MAX, LIKENESS_SHARE_MIN = 4, 0.6
"""Number of most similar newer statements that are rated, and their similarity relative to the nearest."""
SUCCESSORS_MAX = 2
"""Maximum successors of one statement, which may state several facts."""
UNKNOWN_COSINE, UNKNOWN_ENDING, NEIGHBOR_LIKENESS = 0.05, -3.0, 0.2
"""Cosine and log odds of an ending assumed for statements without a vector, and the similarity assumed for
neighbors that a small project lacks."""
NEWER_MAX, LATER_MAX, EARLIER_MAX = 3, 2, 3
"""Maximum sure successors of a quote, and in the newest one's line, doubtful successors and older quotes."""
STATEMENTS_MAX = 600
"""Number of newest statements searched for successors: each quote is compared with all of them."""
ENDED_SHARE_MIN = 0.5
"""Share of an ended sentence's keywords from which a text is taken to contain the sentence."""
SUBJECT_CHARS_MIN = 3
USER = "user"
"""Role of a person who talks to agents: the weights were fitted on such statements."""
STATED_CHARS_MAX = 120
"""Maximum characters of a memory without a role that counts as a stored fact; longer ones are records."""
FIRST_RESULTS, COMPARED_MAX = 3, 30
"""Number of first results whose successors are looked for, and of results among which they are found."""
NEAR_SHARE = 0.25
"""Minimum score of a successor, as a share of a result's, to be moved before that result."""


class Likeness(NamedTuple):
    """How similar a text is to the statements of a project."""

    cosines: Mapping[str, float]
    """Cosines of the vectors, by memory id."""
    to_each: Sequence[float]
    """Likeness to each statement, by its place."""
    to_nearest: float
    """Mean of the likenesses to the nearest statements."""


class SuccessorFinder:
    """Finder of newer statements on the subject of a quote, among the statements of a project.

    If another statement ended a statement, it is the sure successor. Any other statement may have a newer one
    with similar words or meaning. A sure successor is shown before the statement. A doubtful one is shown after
    it, as nobody knows which of the two applies.
    """

    def __init__(
        self,
        statements: Sequence[briefing.ProjectStatement],
        *,
        edits: injections.BriefingEdits,
        endings_of: EndedOf,
        compare: Callable[[Sequence[str]], engine_ports.MemoryComparison],
        known: Collection[str] = (),
        rules: Collection[str] = (),
        origins: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        """Find successors among `statements`, newest first, with the changes in `edits` made by a person.

        `known` are the ids of memories that the agent already has. `rules` are the ids of learnings, and of
        memories that only state learnings. `origins` are the sources, perhaps with speakers, of other memories,
        by id.
        """
        self._statements = [
            each for each in statements if not edits.is_dropped(each.memory.id)
        ][:STATEMENTS_MAX]
        self._stated = {each.memory.id: each for each in self._statements}
        self._proposals = {
            each.answer_id: each.memory.id
            for each in self._statements
            if each.answer_id
        }
        """The ids of the memories with what was agreed, by those of the answers."""
        self._known = known
        self._rules = rules
        self._origins = origins
        self._edits = edits
        self._endings_of = endings_of
        self._compare = compare
        self._comparison = engine_ports.NOT_COMPARED
        self._compared: dict[tuple[str, str], Likeness] = {}
        """By memory and text."""
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
        """Return the sections with each quote replaced by its newest sure successor, if it has one.

        The quote and doubtful successors then follow in the same line. No line is in two sections. A likely
        successor that only follows a quote has no line of its own. A quote is
        left out if the agent already has a likely successor, or if the section is full.
        """
        ids = [quote.source_id for each in sections for quote in each.quotes]
        ended = self._endings_of(ids)
        self._comparison = self._compare(list(dict.fromkeys([*self._stated, *ids])))
        lines: dict[str, InjectedQuote] = {}
        line_of: dict[str, str] = {}
        """The ids of lines, by their own and by those of the memories that state learnings."""
        added: list[list[str]] = []
        """The ids of the lines in each section."""
        doubtful: list[tuple[float, str, InjectedQuote]] = []
        """The doubtful successors, each behind the id of a line, and the log odds that it changed that."""
        for section in sections:
            added.append([])
            for quote in section.quotes:
                if sum(len(lines[id].text) for id in added[-1]) > section.chars_max:
                    break  # the rest has no room, and to compare a quote takes milliseconds
                quotes, later = self._chain_successors(
                    quote, ended.get(quote.source_id, ())
                )
                if not quotes:
                    continue
                newest, *older = quotes
                id = line_of.setdefault(newest.id, newest.id)
                if id in lines:
                    source = lines[id].source_id
                    rules = [
                        each for each in lines.values() if each.source_id == source
                    ]
                    if briefing.says_more(
                        newest.text, " ".join(each.text for each in rules)
                    ):
                        # Learnings have the place of their message, which says more.
                        id = line_of[newest.id] = newest.id
                if id not in lines:
                    lines[id] = newest
                    line_of.setdefault(newest.source_id, id)
                    added[-1].append(id)
                lines[id] = self._add_related(lines[id], list(reversed(older)))
                doubtful += [(odds, id, each) for odds, each in later]
        best: dict[str, float] = {}
        """The log odds of the likeliest line, by the successor's id."""
        merged: dict[str, str] = {}
        """The id of the line that has another one as its successor, by the other's id."""
        for odds, behind, each in sorted(doubtful, key=lambda each: -each[0]):
            if odds >= best.setdefault(each.id, odds) - SPREAD:
                id = merged.get(behind, behind)
                lines[id] = line = self._add_related(lines[id], [each])
                newer = lines.get(each.id)
                is_next = each.said > line.said
                is_next &= [each.id] == [quote.id for quote in line.related[:1]]
                if odds >= LIKELY_MIN and is_next and newer and not newer.related:
                    del lines[each.id]
                    merged[each.id] = id
                    places = [*chain.from_iterable(added)]
                    # The two are one line, at the first place of both.
                    is_first = places.index(each.id) < places.index(id)
                    moved = {each.id: [id], id: []} if is_first else {each.id: []}
                    added = [
                        [name for one in chosen for name in moved.get(one, [one])]
                        for chosen in added
                    ]
        for id, line in lines.items():
            related = [
                each
                for each in line.related
                if each.ended_at or each.said > line.said or each.id not in lines
            ]
            lines[id] = replace(line, related=tuple(related))
        lines = self._mark_clauses(lines)
        return [
            replace(section, quotes=[lines[id] for id in chosen])
            for section, chosen in zip(sections, added, strict=True)
        ]

    def _mark_clauses(
        self, lines: Mapping[str, InjectedQuote]
    ) -> dict[str, InjectedQuote]:
        """Return the lines with ended clauses marked, unless a person dropped the memory that ended them."""
        told = [quote for each in lines.values() for quote in (each, *each.related)]
        ended = self._endings_of(list({quote.source_id for quote in told}))

        def mark(quote: InjectedQuote) -> InjectedQuote:
            """Return a quote with its ended clauses marked."""
            clauses = [
                each
                for each in ended.get(quote.source_id, ())
                if not self._edits.is_dropped(each.by)
            ]
            if not quote.ended_at:
                clauses = find_parts(quote.text, clauses)
            text = mark_ended_clauses(quote.text, clauses)
            return replace(quote, text=text, related=tuple(map(mark, quote.related)))

        return {id: mark(line) for id, line in lines.items()} if ended else {**lines}

    def sure_successors_of(self, ids: Sequence[str]) -> Iterator[tuple[str, str]]:
        """Yield (id, successor's id) for every sure successor of the statements with these ids."""
        self._comparison = self._compare(list(self._stated))
        for each in self._statements:
            memory = each.memory
            if memory.id in ids:
                quote = InjectedQuote(
                    id=memory.id, text=each.text, said=memory.created_at
                )
                for _, successor in self._find_successors(quote, SURE_MIN):
                    yield memory.id, successor.memory.id

    def _add_related(
        self, newest: InjectedQuote, others: Sequence[InjectedQuote]
    ) -> InjectedQuote:
        """Return `newest` with related quotes, within limits: quotes of `others` that are new and add words."""
        related = {each.id: each for each in newest.related}
        keywords = find_keywords(newest.text)
        for each in others:
            if each.id not in self._known and find_keywords(each.text) - keywords:
                related.setdefault(each.id, each)
        later = [each for each in related.values() if each.said > newest.said]
        older = [each for each in related.values() if each.said <= newest.said]
        older = older[:EARLIER_MAX]
        older.sort(key=lambda each: each.said, reverse=True)
        return replace(newest, related=(*later[:LATER_MAX], *older))

    def _chain_successors(
        self, quote: InjectedQuote, ended: Sequence[values.EndedStatement]
    ) -> tuple[list[InjectedQuote], list[tuple[float, InjectedQuote]]]:
        """Return the sure successors of a quote, newest first, then the quote; and doubtful ones with log odds.

        A quote that contains one of its `ended` statements gets the time of that ending. Successors that the
        agent already has are left out; if the newest or a likely successor is among them, both lists are empty.
        """

        def make_newer(id: str, text: str, said: datetime, why: str) -> InjectedQuote:
            """Return a quote of a newer memory; its origin is empty if unknown."""
            stated = self._stated.get(id)
            memory = stated and stated.memory
            # "Radek cancelled." says less than "Radek cancelled. Sanne does the pipes now."
            if stated and (stated.answer_id or text in stated.text):
                text = stated.text
            return InjectedQuote(
                id=id,
                text=self._edits.text_of(id) or text,
                said=memory.created_at if memory else said,
                source=(memory.source or "") if memory else self._origins.get(id, ""),
                speaker=memory.role if memory else "",
                reason=f"{why} ({quote.reason})",
            )

        def find_contained_ending(
            text: str, ended: Sequence[values.EndedStatement]
        ) -> values.EndedStatement | None:
            """Return the first of `ended` that a text mostly contains; skip endings by dropped memories.

            A clause is skipped if the text says more.
            """
            keywords = find_keywords(text)
            for each in ended:
                sentence = find_keywords(each.words)
                share = ENDED_SHARE_MIN * len(sentence)
                is_over = not each.clause or keywords <= sentence
                is_over &= not self._edits.is_dropped(each.by)
                if is_over and len(sentence & keywords) >= share:
                    return each
            return None

        def follow(ending: values.EndedStatement | None) -> dict[str, InjectedQuote]:
            """Return {id: quote} of what ended a statement, of what ended that, and so on; empty for None."""
            found: dict[str, InjectedQuote] = {}
            while ending and len(found) < NEWER_MAX:
                id, text = self._proposals.get(ending.by, ending.by), ending.successor
                if id in found:
                    break
                each = make_newer(id, text, ending.at, "ended an older line")
                # What ended a statement may have ended, too.
                ending = find_contained_ending(text, self._endings_of([id]).get(id, ()))
                found[id] = replace(each, ended_at=ending.at) if ending else each
            return found

        ended = find_parts(quote.text, ended)
        ending = find_contained_ending(quote.text, ended)
        if ending:
            quote = replace(quote, ended_at=ending.at)
        newer = follow(ending)
        clauses = [each.clause for each in ended if not self._edits.is_dropped(each.by)]
        marked = {clause for *_, clause in locate_clauses(quote.text, clauses)}
        since = [follow(each) for each in ended if each.clause in marked]
        """What applies instead of clauses that will be marked in the quote, in the order of its endings."""
        told = {id for each in since for id in each}
        waiting = [quote, *newer.values()]
        doubtful: dict[str, tuple[float, InjectedQuote]] = {}
        while waiting and len(newer) < NEWER_MAX:
            for odds, successor in self._find_successors(waiting.pop(0)):
                memory = successor.memory
                if memory.id in told:
                    continue
                found = make_newer(
                    memory.id,
                    successor.text,
                    memory.created_at,
                    "newer than a line like it",
                )
                if odds < SURE_MIN or self._is_part(quote):
                    doubtful.setdefault(memory.id, (odds, found))
                elif memory.id not in newer:
                    newer[memory.id] = found
                    waiting.append(found)
                    start = announced_start(found.text, found.said)
                    if start > found.said and not quote.ended_at:
                        quote = replace(quote, ended_at=start)
        chain = sorted(newer.values(), key=lambda each: each.said, reverse=True)
        newest = chain[0] if chain else quote
        likely = [each for odds, each in doubtful.values() if odds >= LIKELY_MIN]
        later = [each for each in likely if each.said > newest.said]
        if any(each.id in self._known for each in (*chain[:1], *later)):
            return [], []
        chain = [*(each for each in chain if each.id not in self._known), quote]
        last = [[*each.values()][-1] for each in since]
        return chain, [(SURE_MIN, each) for each in last if each.id not in newer] + [
            (odds, each)
            for odds, each in doubtful.values()
            if each.id not in newer and (each.said > newest.said or each in likely)
        ]

    def _find_successors(
        self, quote: InjectedQuote, least: float = ODDS_MIN
    ) -> list[tuple[float, briefing.ProjectStatement]]:
        """Return (log odds, successor) of a quote's likeliest successors with log odds of at least `least`."""
        likeness = self._compare_with_statements(quote.source_id, quote.text)
        likeness_min = LIKENESS_SHARE_MIN * likeness.to_nearest
        is_part = self._is_part(quote)
        is_rule = quote.id in self._rules or quote.source_id in self._rules
        shared = self._rate_shared_subjects(quote.text) if is_part else {}
        # "Mia has piano on Fridays now" is near to her allergy by her name, and changes nothing of it.
        is_on_health = concerns_health(quote.text)
        newer = [
            (likeness.to_each[place], -place)
            for place, each in enumerate(
                takewhile(
                    lambda each: each.memory.created_at > quote.said, self._statements
                )
            )
            if each.memory.id != quote.source_id
            and likeness.to_each[place] >= likeness_min
            and (not is_part or shared.get(place))
            and (not is_on_health or concerns_health(each.text))
        ]
        rated: list[tuple[float, int]] = []
        stated = self._stated.get(quote.source_id)
        older = stated and stated.memory
        for _, place in nlargest(RATED_MAX, newer):
            said = self._statements[-place]
            if (
                older
                and older.member != said.memory.member
                and any("i" in each.signs for each in read_statements(said.text))
            ):
                continue
            is_newer_rule = said.memory.id in self._rules
            # A rule either surely replaces a fact or has nothing to do with it.
            needed = SURE_MIN if is_newer_rule and not is_rule else least
            likenesses = self._list_likenesses(quote, -place)
            odds = ODDS + sum(map(mul, WEIGHTS, likenesses))
            if odds + WORDS_ODDS_MAX >= needed:
                text = said.text
                words = _compare_words(quote.text, text)
                odds += sum(map(mul, WEIGHTS[len(likenesses) :], words))
                if odds >= needed:
                    is_case = is_rule and not is_newer_rule
                    if is_case or plain.is_exception(quote.text, text):
                        odds = min(odds, CASE_ODDS_MAX)
                    if odds >= least:
                        rated.append((odds, place))
        return [
            (odds, self._statements[-place])
            for odds, place in nlargest(SUCCESSORS_MAX, rated)
        ]

    def _is_part(self, quote: InjectedQuote) -> bool:
        """Return True if a quote is a small part of its message, or the message is not among the statements."""
        stated = self._stated.get(quote.memory)
        return bool(quote.memory) and (
            stated is None or briefing.says_more(stated.memory.content, quote.text)
        )

    def list_features(self, quote: InjectedQuote, place: int) -> tuple[float, ...]:
        """Return the features that show whether the newer statement at a place succeeds a quote.

        By vectors: the cosine of the two, the likeness of their subjects, their likeness to the nearest
        statements, and the log odds of an ending. By time: 1 for a newer statement soon after, with other
        keywords. By words: the log odds of an ending, and 1 for a word of change in the newer statement.
        """
        return (
            *self._list_likenesses(quote, place),
            *_compare_words(quote.text, self._statements[place].text),
        )

    def _list_likenesses(self, quote: InjectedQuote, place: int) -> tuple[float, ...]:
        """Return the five features of `list_features` that need no words: by vectors, subjects and times."""
        newer = self._statements[place]
        id = newer.memory.id
        likeness = self._compare_with_statements(quote.source_id, quote.text)
        cosine = likeness.cosines.get(id, UNKNOWN_COSINE)
        ending = self._comparison.rate_ending(id, quote.source_id)
        is_added = newer.memory.created_at < quote.said + ADDED_WITHIN
        if is_added:
            words, new_words = find_keywords(quote.text), find_keywords(newer.text)
            is_added = max(len(words - new_words), len(new_words - words)) > 1
        return (
            cosine,
            likeness.to_each[place] - cosine,
            likeness.to_nearest
            + self._compare_with_statements(id, newer.text).to_nearest,
            UNKNOWN_ENDING if ending is None else ending,
            float(is_added),
        )

    def _compare_with_statements(self, id: str, text: str) -> Likeness:
        """Return how like a memory's text is to each statement, and the mean of the nearest ones; cached."""
        if (id, text) not in self._compared:
            shares, cosines = (
                self._rate_shared_subjects(text),
                self._comparison.cosines_to(id),
            )
            likenesses = [
                cosines.get(each.memory.id, UNKNOWN_COSINE)
                + SUBJECT_WEIGHT * shares.get(place, 0.0)
                for place, each in enumerate(self._statements)
            ]
            others = [
                likeness
                for likeness, each in zip(likenesses, self._statements, strict=True)
                if each.memory.id != id
            ]
            nearest = nlargest(NEIGHBORS, others + [NEIGHBOR_LIKENESS] * NEIGHBORS)
            self._compared[id, text] = Likeness(
                cosines, likenesses, sum(nearest) / NEIGHBORS
            )
        return self._compared[id, text]

    def _rate_shared_subjects(self, text: str) -> dict[int, float]:
        """Return {place of a statement: share of subject words that it has in common, weighted by rarity}."""
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
        """Return the sum of the rarities of words; a word is rare if few statements have it."""
        count = len(self._statements) + 1
        return sum(
            log(count / (len(self._places.get(word, ())) + 0.5)) for word in words
        )


def _compare_words(older: str, newer: str) -> tuple[float, float]:
    """Return the log odds of an ending by words, and whether the newer text has a word of change."""
    return (
        rating.rate_words(older, newer),
        float(any(each.cues for each in read_statements(newer))),
    )


def put_successors_first(
    results: Sequence[RankedResult],
    matches: Sequence[Match],
    compare: Callable[[Sequence[int]], engine_ports.MemoryComparison],
) -> list[RankedResult]:
    """Return ranked results, with sure successors of the first results moved before them.

    Only users' statements and short facts without a role among the main lines of the first `COMPARED_MAX`
    results are compared. A successor with less than `NEAR_SHARE` of the score is not moved. `compare` takes
    the row numbers of memories.
    """
    by_position = {
        match.position: match
        for match in matches
        if match.role == USER
        or (not match.role and len(match.content) <= STATED_CHARS_MAX)
    }
    place_of: dict[str, int] = {}
    """The places of the results, by their statements."""
    for place, result in enumerate(results[:COMPARED_MAX]):
        scores = dict(result.lines)
        least = MAIN_SHARE * max(scores.values(), default=0.0)
        for position in result.positions:
            if position in by_position and scores.get(position, least) >= least:
                place_of.setdefault(str(position), place)
    first = [id for id, place in place_of.items() if place < FIRST_RESULTS]
    if not first or len(place_of) == 1:
        return list(results)
    memories = [
        values.MemoryRecord(
            id=id,
            content=match.content,
            created_at=match.created_at,
            session=match.session,
            role=match.role,
            metadata={values.MEMBER_FIELD: store_index_of(match.position)},
        )
        for id, match in ((id, by_position[int(id)]) for id in place_of)
    ]
    memories.sort(key=lambda memory: memory.created_at, reverse=True)
    finder = SuccessorFinder(
        list(briefing.find_statements(memories)),
        edits=injections.BriefingEdits(),
        endings_of=lambda _: {},
        compare=lambda ids: compare([int(id) for id in ids]),
    )
    order = [*results]
    for older, newer in finder.sure_successors_of(first):
        before, moved = results[place_of[older]], results[place_of[newer]]
        is_near = moved.score >= NEAR_SHARE * before.score
        if is_near and order.index(moved) > order.index(before):
            order.remove(moved)
            order.insert(order.index(before), moved)
    return order


@clear_on_forget
@lru_cache(2_000)
def find_subject(text: str) -> frozenset[str]:
    """Return the stems of words and identifiers' parts that can name a subject; a title, unit or day cannot."""
    tokens = tokenize(text)
    names = " ".join(
        token.surface for token in tokens if token.kind is TokenKind.IDENTIFIER
    )
    return frozenset(
        token.stem
        for token in (*tokens, *tokenize(_JOINTS.sub(" ", names)))
        if token.kind not in COMMONPLACE_KINDS
        and token.stem not in _GENERAL
        and (
            length_in_letters(token.stem) >= SUBJECT_CHARS_MIN
            or token.kind in EXACT_KINDS
        )
    )


_JOINTS = re.compile(r"[\d\W_]+")
"""Between the words of an identifier: of `registry.example.com` the subject may be "the registry"."""
_GENERAL = frozenset(
    token.stem for word in TITLES | UNITS | CALENDAR for token in tokenize(word)
)
"""Stems of titles, units and days, which name no subject."""
