"""The text next to a prompt: earlier lines that bear on it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from math import ceil, log

from mnemosyned.conversation import briefing, injected, successors
from mnemosyned.conversation.learnings.relevance import (
    least_shown_probability,
    rank_for_request,
)
from mnemosyned.conversation.sections import Relevance
from mnemosyned.instants import in_zone
from mnemosyned.memory import capture, injections, values
from mnemosyned.memory.engine_ports import MemoryComparison
from mnemosyned.service.briefing import (
    find_rules,
    name_members,
    quote_learning,
    quote_memory,
)
from mnemosyned.service.intake import MEMBER
from mnemosyned.service.service import NO_GROUPS, Groups, MemoryService
from mnemosyned.text import sentences, terms, tokens
from mnemosyned.text.dates.questions import QuestionTimes, parse_times
from mnemosyned.text.token_counts import TokenEstimator
from mnemosyned.text.tokens import TokenKind
from mnemosyned.verbs import conversation
from mnemosyned.verbs.memories import Recall
from mnemosyned.verbs.times import local_zone

REMINDER_CHARS_MAX = 1_500
REMINDER_LINE_CHARS_MAX = 300
QUERY_CHARS_MAX = 600
PROJECT_SESSIONS_MAX = 100
MEMORIES_READ_MAX, NOTES_READ_MAX, OLDER_READ_MAX = 250, 60, 60
"""Maximum newest memories of the project, and notes without a session, whose statements are compared with the
prompt; and maximum older ones of people, of each of the two kinds, those most similar to the prompt."""
POSITIONS_MAX = 5_000
"""Number of newest memories of people in each tier among which the most similar ones are found."""
KEYWORDS_SHARE_MIN = 0.3
"""Minimum share of the prompt's keywords in a line that is not compared by vectors."""
KEYWORDS_MIN = 2
KEYWORDS_ENOUGH = 6
"""Number of common keywords that is enough, however long the prompt is."""
ASSISTANT_KEYWORDS = 1
"""Number of common keywords that a line of an agent needs in addition: long answers share words by chance."""
NEW_KEYWORDS_MIN = 1
"""Minimum keywords that are not in the prompt: a line that only repeats the prompt is of no use."""

# Chosen on the projects of the groups `tune`, `others` and `lives` of `make bench-telling`.
ODDS_OF_SCORE, ODDS_MIN = 10.0, 2.25
"""Weight of the best score, which is added to the log odds that a prompt asks for something said before, and
the minimum sum with which a line is given."""
RULE_CONFIDENCE_MIN = 0.6
"""Minimum confidence of the best learning; below it, none is given."""
TOLD_MAX, RULES_MIN = 5, 2
"""Maximum lines and learnings given together, and the number of learnings for which lines leave room."""
LINES_ENOUGH = 3
"""Number of lines found by vectors from which on no others are searched by words."""
SCORE_SPREAD = 0.2
"""Maximum difference in score between the best statement and others that are given."""
SURE_SCORE = 0.3
"""Best score from which the heading says that lines are about the prompt. Of prompts in `lives` that nothing
answers, three in five that are given lines are below; of those with an answer, one in eight."""
WORDS_WEIGHT, FORM_WEIGHT, AGE_WEIGHT = 0.13, 0.13, 0.12
"""What a statement's score has beside its similarity: for the share of the prompt's keywords in it, for
the form of the answer, a time or a name, and less for the oldest one."""
STATEMENT_WEIGHT, STATEMENT_ODDS = 0.03, 3.0
"""Weight in the score, and maximum, of the log odds that later sessions need the statement."""
NAME_KINDS = (TokenKind.IDENTIFIER, TokenKind.PATH, TokenKind.URL, TokenKind.EMAIL)
NAME_CHARS_MIN = 4
"""Minimum characters of a name: shorter ones, such as "p90" or "mp3", are of kinds of things."""
NAMED_SCORE_MIN, NAMED_MAX = 0.3, 3
"""Minimum score of a line that has a name of the prompt, such as a file or a ticket, and maximum statements of
the project with such a name: fewer words of the prompt are then enough."""
CONFIDENCE_WEIGHT = 0.5
"""Score of a line found by words, for a confidence of one."""
MISSED_MAX = 5
HIDDEN = "you dropped it (mnem briefing --undo ID takes that back)"


@dataclass(frozen=True, slots=True)
class BearingLine:
    """A line that bears on a prompt, with a score by which lines are ordered."""

    score: float
    quote: injected.InjectedQuote
    owner: str = ""
    """The group whose memory it is from; empty for one's own."""


class NearMisses:
    """Lines that were considered for a prompt, and how far each was from being given."""

    def __init__(self) -> None:
        self._lines: list[tuple[float, injected.InjectedQuote]] = []

    def add(self, quote: injected.InjectedQuote, *, lacks: float = 0.0) -> None:
        """Add a line, whose reason says why it is not given; `lacks` is how far its score falls short."""
        self._lines.append((lacks, quote))

    def nearest(self, given: Collection[str]) -> list[injections.InjectedLine]:
        """Return up to `MISSED_MAX` lines, the nearest first, each once, without the ids in `given`."""
        by_id: dict[str, injections.InjectedLine] = {}
        for _, quote in sorted(self._lines, key=lambda each: each[0]):
            if quote.id not in given and quote.id not in by_id:
                by_id[quote.id] = quote.lines(REMINDER_LINE_CHARS_MAX)[0]
        return list(by_id.values())[:MISSED_MAX]


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptSearch:
    """A prompt in a session, and what was read to find the lines that bear on it."""

    session: capture.AgentSession
    query: str
    """The beginning of the prompt, with single spaces."""
    now: datetime
    times: QuestionTimes
    others: Sequence[str]
    """The project's other sessions."""
    groups: Groups
    edits: injections.BriefingEdits
    read: Sequence[briefing.ProjectStatement]
    repeated: Collection[str]
    """Ids of the memories that have the prompt itself, or the same words."""
    known: Collection[str]
    """Ids of memories and learnings that the agent has already."""
    score_min: float
    """Minimum score of the best line."""
    names: frozenset[str]
    """Stems of rare names in the prompt, such as a file or a ticket; none if it only asks for work."""
    misses: NearMisses | None

    def least_score(self, keywords: Collection[str]) -> float:
        """Return the minimum score of a line with these keywords: less if it has a rare name."""
        is_named = not self.names.isdisjoint(keywords)
        return min(self.score_min, NAMED_SCORE_MIN) if is_named else self.score_min

    def select_statements(self) -> list[briefing.ProjectStatement]:
        """Return the statements read that may answer the prompt.

        Statements of the session itself are near its next prompt, and no answer. A question such as "What
        happened on Tuesday?" asks for statements from then, or about a Tuesday.
        """
        times = self.times
        is_past = times.only_time and all(
            span.until <= self.now for span in times.spans
        )
        words = tokens.find_keywords(self.query)
        return [
            each
            for each in self.read
            if each.memory.session != self.session.session
            and each.memory.id not in self.repeated
            and (
                not is_past
                or words & each.keywords
                or any(
                    span.since <= each.memory.created_at < span.until
                    for span in times.spans
                )
            )
        ]


class Reminder:
    """The text next to a prompt: earlier lines that bear on it."""

    def __init__(self, service: MemoryService) -> None:
        self._service = service
        self._store = service.store

    def brief(
        self, request: conversation.Briefing, groups: Groups = NO_GROUPS
    ) -> conversation.Briefed:
        """Return what an agent gets at a start in a project, or with the prompt of a request there."""
        project, prompt = request.project or "", request.prompt or ""
        misses = NearMisses()
        if prompt:
            self._service.endings.find_soon()
            now = self._service.sleeper.cycle.clock.now()
            session = capture.AgentSession(
                session="",
                client="",
                conversation="",
                started_at=now,
                seen_at=now,
                project=project,
            )
            given = self.compose(session, prompt, now=now, groups=groups, misses=misses)
        else:
            given = self._service.briefings.compose(project)
        return conversation.Briefed(
            lines=list(given.lines),
            text=given.text,
            tokens=TokenEstimator().count(given.text) if given.text else 0,
            edits=list(self._store.injections.edits().by_id.values()),
            missed=misses.nearest({line.id for line in given.lines}),
        )

    def compose(
        self,
        session: capture.AgentSession,
        prompt: str,
        *,
        now: datetime,
        groups: Groups = NO_GROUPS,
        misses: NearMisses | None = None,
    ) -> injected.InjectedText:
        """Return the text to inject with a prompt; empty if no memory is relevant.

        Dates such as "yesterday" are relative to `now`. The owner's `groups` are searched by keywords.
        Lines that are left out are added to `misses`.
        """
        query = _shorten(prompt.replace("\0", " "))
        times = parse_times(query, in_zone(now, local_zone()))
        if not Relevance(query, times).has_content:
            return injected.InjectedText()
        own = self._store.agents.sessions_of(session.project, PROJECT_SESSIONS_MAX)
        others = [other for other in own if other != session.session]
        need = injected.estimate_need(
            prompt[:QUERY_CHARS_MAX], self._service.rate_prompt
        )
        edits = self._store.injections.edits()
        read = self._read_statements(query, [*others, session.session])
        messages = {each.memory.id: each.memory for each in read}
        learnings = self._service.briefings.learnings_in(session.project, edits)
        shown = [each for each in learnings if each.id in session.shown]
        asked = PromptSearch(
            session=session,
            query=query,
            now=now,
            times=times,
            others=others,
            groups=groups,
            edits=edits,
            read=read,
            # So many characters are enough even of deeply indented text.
            repeated={
                id
                for id, each in messages.items()
                if _shorten(each.content[: 4 * QUERY_CHARS_MAX]) == query
            },
            # What the agent has been given; the prompt itself is stored first where nothing else is read.
            known={
                *session.shown,
                *find_rules(shown, read),
                *(
                    id
                    for id, each in messages.items()
                    if each.session == session.session
                ),
            },
            score_min=(ODDS_MIN - need) / ODDS_OF_SCORE,
            names=_find_rare_names(query, read),
            misses=misses,
        )
        lines, shared = self._find_lines(asked)
        rules = self._find_rules(asked, learnings)
        lines, rules = _make_room(asked, lines, rules)
        is_sure = any(
            line.score >= SURE_SCORE
            or not asked.names.isdisjoint(tokens.find_keywords(line.quote.text))
            for line in lines
        )
        said = "Said before about this" if is_sure else "Perhaps about this"
        sections = [
            injected.InjectedSection(
                heading,
                quotes,
                REMINDER_CHARS_MAX,
                line_chars_max=REMINDER_LINE_CHARS_MAX + 2,
            )
            for heading, quotes in (
                (f"{said}:", [line.quote for line in lines]),
                ("Standing rules for this:", rules),
            )
        ]
        opened = {hit.owner: asked.groups[hit.owner]() for hit in shared if hit.owner}
        finder = self._make_finder(asked, lines, learnings, shared, opened)
        sections = finder.put_newest_first(sections)
        stores = [each.store for each in opened.values()]
        if MEMBER.get()[0]:
            stores = [self._store]
        if stores:
            sections = name_members(sections, stores)
        joined = [
            replace(section, quotes=_join_messages(section.quotes))
            for section in sections
        ]
        return injected.assemble_sections(joined, chars_max=REMINDER_CHARS_MAX)

    def _find_lines(
        self, asked: PromptSearch
    ) -> tuple[list[BearingLine], list[values.Hit]]:
        """Return lines that fit the prompt, best first, and hits of groups, which may be newer than these.

        Lines are found by meaning, and if these are few also by words; lines of groups are found by words.
        """
        lines = self._find_by_meaning(asked)
        is_enough = len(lines) >= LINES_ENOUGH
        shared: list[values.Hit] = []
        if (lines and asked.groups) or (
            not is_enough and asked.least_score(asked.names) <= CONFIDENCE_WEIGHT
        ):
            told = {line.quote.id for line in lines}
            found, shared = self._find_by_words(asked, shared_only=is_enough)
            for line in found:
                least = asked.least_score(tokens.find_keywords(line.quote.text))
                if line.score >= least and line.quote.id not in told:
                    lines.append(line)
                elif asked.misses:
                    reason = f"fits too little: {_compare(line.score, least)}"
                    quote = replace(line.quote, reason=reason)
                    asked.misses.add(quote, lacks=least - line.score)
        return sorted(lines, key=lambda line: -line.score), shared

    def _make_finder(
        self,
        asked: PromptSearch,
        lines: Sequence[BearingLine],
        learnings: Sequence[values.Learning],
        shared: Sequence[values.Hit],
        groups: Mapping[str, MemoryService],
    ) -> successors.SuccessorFinder:
        """Return a finder of newer statements among those read, `lines` from elsewhere and hits of `groups`."""
        ids_read = {each.memory.id for each in asked.read}
        found = [(hit, line) for hit in shared for line in hit.lines or (hit,)]
        ended = {line.id: line.ended for _, line in found}
        free: list[values.MemoryRecord] = []
        for owner, memory in groups.items():
            records = memory.store.memories.existing(
                [
                    line.id
                    for hit, line in found
                    if hit.owner == owner and all(each.clause for each in line.ended)
                ]
            )
            projects = memory.store.agents.projects_of(
                [each.session for each in records]
            )
            free += [
                replace(each, session=each.id, source=_name_source(owner, each.source))
                for each in records
                if projects.get(each.session, "") in ("", asked.session.project)
            ]
        free += [
            values.MemoryRecord(
                id=line.quote.id,
                content=line.quote.text,
                created_at=line.quote.said,
                session=line.quote.id,
                role=line.quote.speaker,
            )
            for line in lines
            if not line.owner and line.quote.id not in ids_read
        ]

        def compare(ids: Sequence[str]) -> MemoryComparison:
            """Return functions that compare memories of one's own and of the groups by vectors."""
            known = {
                id: vector
                for memory in (*groups.values(), self._service)
                for id, vector in memory.vectors.vectors_of(ids).items()
            }
            return self._service.vectors.compare(known)

        return successors.SuccessorFinder(
            sorted(
                (
                    each
                    for each in (*asked.read, *briefing.find_statements(free))
                    if each.memory.id not in asked.repeated
                ),
                key=lambda each: each.memory.created_at,
                reverse=True,
            ),
            edits=asked.edits,
            endings_of=lambda ids: {**ended, **self._store.endings.of(ids)},
            compare=compare,
            known=asked.known,
            rules=find_rules(learnings, asked.read),
            origins={
                each.by: hit.owner or "" for hit, line in found for each in line.ended
            },
        )

    def _find_rules(
        self,
        asked: PromptSearch,
        learnings: Sequence[values.Learning],
    ) -> list[injected.InjectedQuote]:
        """Return learnings that apply to the query and are new to the session, most probable first.

        Each is followed by the other learnings of the same message, if short: a rule may have several
        sentences, of which a prompt resembles only one.
        """
        known = {*asked.session.shown, asked.session.session}
        untold = [
            each
            for each in learnings
            if known.isdisjoint((each.id, each.memory, each.session))
        ]
        projects = self._store.agents.projects_of(
            list({each.session for each in untold})
        )
        ranked = sorted(
            rank_for_request(
                untold,
                asked.query,
                now=asked.now,
                rate=self._service.rate_texts,
                elsewhere={
                    id
                    for id, name in projects.items()
                    if name not in ("", asked.session.project)
                },
            ),
            key=lambda each: -each.confidence,
        )
        least = RULE_CONFIDENCE_MIN
        if ranked and ranked[0].confidence >= least:
            least = least_shown_probability(ranked[0].confidence)
        chosen: dict[str, injected.InjectedQuote] = {}
        for each in ranked:
            learning = each.learning
            lacks = least - each.confidence
            why = (
                "that is not likely to apply"
                if lacks > 0
                else f"for this ({each.reason})"
            )
            reason = f"a rule {why}: {_compare(each.confidence, least)}"
            quote = quote_learning(learning, asked.edits, reason=reason)
            if lacks > 0:
                if asked.misses is None:
                    break
                asked.misses.add(quote, lacks=lacks)
                continue
            chosen.setdefault(learning.id, quote)
            others = [
                quote_learning(other, asked.edits, reason="a rule of the same message")
                for other in untold
                if learning.memory and other.memory == learning.memory
            ]
            if sum(len(other.text) for other in others) <= REMINDER_LINE_CHARS_MAX:
                for other in others:
                    chosen.setdefault(other.id, other)
        return list(chosen.values())

    def _find_by_meaning(self, asked: PromptSearch) -> list[BearingLine]:
        """Return up to `TOLD_MAX` new statements near the prompt, best first; none if all fit too little.

        Statements far below the best score are left out, and so are the memories that the agent has.
        """
        statements, misses = asked.select_statements(), asked.misses
        ids = [each.memory.id for each in statements]
        similarities = (
            self._service.vectors.similarities(asked.query, ids) if ids else {}
        )
        if not similarities:
            return []
        shares = _rate_keywords(asked.query, statements)
        # The message of an agreement is more than what was agreed.
        odds = self._service.rate_statements(
            {
                each.memory.id: each.memory.content
                for each in statements
                if not each.answer_id
            }
        )
        scores = {
            each.memory.id: similarities[each.memory.id]
            + STATEMENT_WEIGHT
            * max(-STATEMENT_ODDS, min(STATEMENT_ODDS, odds.get(each.memory.id, 0)))
            + WORDS_WEIGHT * shares[place]
            + FORM_WEIGHT * injected.has_answer_form(asked.query, each.text)
            - AGE_WEIGHT * place / len(statements)
            for place, each in enumerate(statements)
            if each.memory.id in similarities
        }
        new = (score for id, score in scores.items() if id not in asked.known)
        is_enough = max(new, default=-1.0) >= asked.score_min
        if not is_enough and misses is None and not asked.names:
            return []
        spread_min = max(scores.values()) - SCORE_SPREAD
        keywords = tokens.find_keywords(asked.query)
        lines = []
        for each in statements:
            score = scores.get(each.memory.id, -1.0)
            least = spread_min if is_enough else asked.least_score(each.keywords)
            if score < least:
                fault = f"fits too little: {_compare(score, least)}"
            elif each.memory.id in asked.known:
                fault = "the session has it already"
            elif asked.edits.is_dropped(each.memory.id):
                fault = HIDDEN
            elif len(each.keywords - keywords) < NEW_KEYWORDS_MIN:
                fault = "it says nothing beyond the prompt"
            else:
                fault = ""
            if fault and misses is None:
                continue
            reason = fault or f"fits: {_compare(score, least)}"
            quote = quote_memory(each.memory, each.text, asked.edits, reason=reason)
            if not fault:
                lines.append(BearingLine(score, quote))
            elif misses:
                misses.add(quote, lacks=max(0.0, least - score))
        return sorted(lines, key=lambda line: -line.score)[:TOLD_MAX]

    def _read_statements(
        self, query: str, sessions: Sequence[str]
    ) -> list[briefing.ProjectStatement]:
        """Return statements of people in these sessions, and notes in the default session, newest first.

        The newest memories are read, and of older memories only the nearest to the query in meaning.
        """
        agents = self._store.agents
        read: dict[str, values.MemoryRecord] = {}
        for names, most in (
            (sessions, MEMORIES_READ_MAX),
            ([values.DEFAULT_SESSION], NOTES_READ_MAX),
        ):
            newest = agents.latest(names, most)
            if len(newest) == most:
                positions = agents.latest_positions(
                    names, POSITIONS_MAX, without=briefing.ASSISTANT
                )
                nearest = self._service.vectors.nearest_of(
                    query, positions, OLDER_READ_MAX
                )
                newest += self._store.endings.memories_at(nearest).values()
            read |= {memory.id: memory for memory in newest}
        memories = sorted(
            read.values(), key=lambda memory: memory.created_at, reverse=True
        )
        # In the default session, messages with a role are those of programs that name no session.
        return [
            each
            for each in briefing.find_statements(memories, with_declined=True)
            if each.memory.role != briefing.ASSISTANT
            and not (each.memory.role and each.memory.session == values.DEFAULT_SESSION)
        ]

    def _find_by_words(
        self, asked: PromptSearch, *, shared_only: bool
    ) -> tuple[list[BearingLine], list[values.Hit]]:
        """Return lines that share enough keywords with the prompt, in the order of hits, and hits of groups.

        The project's other sessions are searched, then memories without a project and of groups. If the
        former have nothing, the project's older sessions are searched too. With `shared_only`, only lines
        of groups are returned. All hits of groups are returned, relevant or not.
        """
        relevance = Relevance(asked.query, asked.times)

        lines = []
        if asked.others and not shared_only:
            recall = Recall(
                asked.query, limit=20, session=list(asked.others), explain=True
            )
            hits = relevance.select_relevant_hits(self._service.call(recall).hits)
            lines = self._choose_lines(asked, hits)
        recall = Recall(asked.query, limit=20, explain=True)
        found = self._service.call(recall, groups=asked.groups)
        hits = relevance.select_relevant_hits(found.hits)
        projects = self._store.agents.projects_of([hit.session for hit in hits])
        wanted = ("",) if lines else ("", asked.session.project)
        further = [
            hit
            for hit in hits
            if hit.owner
            or (not shared_only and projects.get(hit.session, "") in wanted)
        ]
        shared = [hit for hit in (*found.hits, *found.nearest) if hit.owner]
        return [*lines, *self._choose_lines(asked, further)], shared

    def _choose_lines(
        self, asked: PromptSearch, hits: Sequence[values.Hit]
    ) -> list[BearingLine]:
        """Return new snippets of other sessions' hits that share keywords with the prompt."""
        words = terms.parse_terms(asked.query)
        keywords = tokens.find_keywords(asked.query)
        lines = (
            (hit, line)
            for hit in hits
            if hit.session != asked.session.session
            for line in hit.lines or (hit,)
        )
        answered = {each.memory.id: each for each in asked.read if each.answer_id}
        shown = set(asked.known)
        chosen: list[BearingLine] = []
        for hit, line in lines:
            if line.id in shown:
                continue
            if asked.edits.is_dropped(line.id):
                fault = HIDDEN
            elif briefing.is_sample(line.content):
                fault = "an example from the documentation, which agents are not given"
            elif not _is_relevant(keywords, line.content, line.role, names=asked.names):
                is_asked = sentences.is_question(line.content)
                fault = (
                    "a question"
                    if is_asked
                    else "it shares too few words with the prompt"
                )
            else:
                fault = ""
            if fault and asked.misses is None:
                continue
            reason = fault or hit.why
            # A proposal is told with its answer.
            if each := answered.get(line.id):
                quote = quote_memory(each.memory, each.text, asked.edits, reason=reason)
            else:
                text = terms.cut_snippet(
                    line.content, words, width=REMINDER_LINE_CHARS_MAX
                )
                quote = injected.InjectedQuote(
                    id=line.id,
                    text=asked.edits.text_of(line.id) or text,
                    said=line.created_at,
                    source=_name_source(hit.owner, hit.source),
                    speaker=line.role,
                    reason=reason,
                )
            score = CONFIDENCE_WEIGHT * hit.confidence
            if fault:
                if asked.misses:
                    asked.misses.add(quote, lacks=CONFIDENCE_WEIGHT - score)
                continue
            shown.add(line.id)
            chosen.append(BearingLine(score, quote, hit.owner or ""))
        return chosen


def _shorten(text: str) -> str:
    """Return the first `QUERY_CHARS_MAX` characters of a text, with single spaces."""
    return " ".join(text.split())[:QUERY_CHARS_MAX]


def _name_source(owner: str | None, source: str | None) -> str:
    """Return the source of a memory, after the group whose memory it is from."""
    return ": ".join(filter(None, (owner, source)))


def _compare(score: float, least: float) -> str:
    """Return a line's `score`, and the `least` score to be given, in words; both may be negative."""
    return f"{score:.3f}, needed {least:.3f}"


def _make_room(
    asked: PromptSearch,
    found: Sequence[BearingLine],
    rules: Sequence[injected.InjectedQuote],
) -> tuple[list[BearingLine], list[injected.InjectedQuote]]:
    """Return the first lines and rules that are given together; lines are without the rules' words."""
    contents = {each.memory.id: each.memory.content for each in asked.read}
    lines: list[BearingLine] = []
    for line in found:
        quote, message = line.quote, contents.get(line.quote.id, "")
        stated = [
            rule.text
            for rule in rules
            if rule.memory == quote.id
            or rule.text == quote.text
            or sentences.contains_statement(message, rule.text)
        ]
        text = quote.text
        if stated:
            text = briefing.leave_out_rules(stated, text, message)
        if text:
            lines.append(replace(line, quote=replace(quote, text=text)))
    # The rules of one message are one line.
    messages = list(dict.fromkeys(rule.source_id for rule in rules))
    lines = lines[: TOLD_MAX - min(len(messages), RULES_MIN)]
    chosen = messages[: TOLD_MAX - len(lines)]
    if asked.misses:
        reason = "others fit better, and there was no room left"
        for quote in (*rules, *(line.quote for line in found)):
            asked.misses.add(replace(quote, reason=reason))
    return lines, [rule for rule in rules if rule.source_id in chosen]


def _join_messages(
    quotes: Sequence[injected.InjectedQuote],
) -> list[injected.InjectedQuote]:
    """Make later quotes of a message related quotes of its first one; quotes with related ones stay apart."""
    joined: dict[str, injected.InjectedQuote] = {}
    for quote in quotes:
        first = joined.get(quote.source_id)
        if first is None:
            joined[quote.source_id] = quote
        elif quote.related:
            joined[quote.id] = quote
        else:
            joined[quote.source_id] = replace(first, related=(*first.related, quote))
    return list(joined.values())


def _rate_keywords(
    query: str, statements: Iterable[briefing.ProjectStatement]
) -> list[float]:
    """Return for each statement the share of the query's keywords in it, weighted by rarity."""
    all_keywords = [each.keywords for each in statements]
    asked = tokens.find_keywords(query)
    counts = Counter(word for words in all_keywords for word in words & asked)
    worth = {
        word: log((len(all_keywords) + 1) / (counts[word] + 0.5)) for word in asked
    }
    total = sum(worth.values()) or 1.0
    return [
        sum(worth[word] for word in words & asked) / total for words in all_keywords
    ]


def _find_rare_names(
    prompt: str, statements: Iterable[briefing.ProjectStatement]
) -> frozenset[str]:
    """Return the stems of names in a prompt that few statements have; none if it only asks for work."""
    words = tokens.tokenize(prompt)
    names = {
        word.stem
        for word in words
        if word.kind in NAME_KINDS and len(word.surface) >= NAME_CHARS_MIN
    }
    if not names or injected.is_general(prompt) or briefing.is_request(prompt, words):
        return frozenset()
    counts = Counter(name for each in statements for name in names & each.keywords)
    return frozenset(name for name in names if counts[name] <= NAMED_MAX)


def _is_relevant(
    asked: frozenset[str], text: str, role: str, *, names: Collection[str]
) -> bool:
    """Return True if a text is no question, and has enough of the keywords `asked` and enough others.

    Each of the rare `names` counts as much as two keywords.
    """
    if sentences.is_question(text) or (
        not {"?", "？"}.isdisjoint(text) and not briefing.has_substance(text)
    ):
        return False
    count = len(asked)
    least = max(min(count, KEYWORDS_MIN), ceil(count * KEYWORDS_SHARE_MIN))
    least = min(least, KEYWORDS_ENOUGH)
    if role == briefing.ASSISTANT:
        least += ASSISTANT_KEYWORDS
    keywords = tokens.find_keywords(text)
    is_about = len(keywords & asked) + len(keywords.intersection(names)) >= least
    return is_about and len(keywords - asked) >= NEW_KEYWORDS_MIN
