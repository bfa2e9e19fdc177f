"""Endings of statements: found among new memories, listed, undone, and shown with hits."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING

from mnemosyned import errors, fairness
from mnemosyned.conversation.agreements import (
    AnswerKind,
    may_belong_to_agreement,
    proposes,
    state_decision,
)
from mnemosyned.conversation.briefing import ASSISTANT, find_answers
from mnemosyned.conversation.learnings.recognize import LateLearning
from mnemosyned.logs import log_failure, logger
from mnemosyned.memory.clock import Clock
from mnemosyned.memory.endings import EndingRecord
from mnemosyned.memory.engine_ports import MemoryVectors
from mnemosyned.memory.listing import Place, RecordKind, parse_cursor
from mnemosyned.memory.ports import MemoryStore
from mnemosyned.memory.values import EmbedderState, EndedStatement, Hit, MemoryRecord
from mnemosyned.search.query import MAIN_SHARE, Match, Query
from mnemosyned.text import sentences, terms
from mnemosyned.text.endings import rating, statements
from mnemosyned.text.endings.plain import REPORT, reports_change, sought_words
from mnemosyned.text.secrets.masking import mask_secrets
from mnemosyned.verbs import conversation

if TYPE_CHECKING:
    from mnemosyned.storage.common.endings import EndingStore

READ_AT_ONCE = 200
"""Memories that share a transaction."""
SOON_MAX = 4
"""New memories read before an answer, in about a millisecond each; later answers and the background
read more."""
AHEAD_MAX = 100
"""How many of the newest memories may be read before an answer: the last ones matter most, and after an
import each of thousands of answers would wait for a few."""
SLEEP_MAX, SLEEP_S = 100, 0.3
"""Maximum memories read before a requested sleep cycle, if a background reads the others after it, and maximum
time without one. Reading 2,000 memories took half as long as their sleep cycle."""
CHORE_S = 1.0
"""Time of one call in the background."""
AWAIT_S = 900.0
"""How long memories wait for an encoder that failed, which is tried again every five minutes."""
LIST_S = 3.0
"""Time to read what is left before endings are listed."""
EDIT_S = 0.3
"""Time for vectors, after which words alone judge the rest of a group of edited memories, and no newer ones."""
STATEMENTS_MAX = 5
"""Statements of one memory that are compared with older memories."""
CANDIDATES_MAX = 20
"""Memories compared with a statement."""
NEAR_MAX = 20
"""The newest memories of a session, or those stored before and after an edited one, among which an answer's
proposal is found."""
ENDED_MAX = 10
"""Memories that one statement may end: the likeliest."""

log = logger()


@dataclass(slots=True)
class JudgedEndings:
    """Endings found in the memories of one reading."""

    endings: list[EndingRecord] = field(default_factory=list)
    texts: dict[str, str] = field(default_factory=dict)
    """The texts in which the endings were found, by memory id: an edit may have changed them since."""
    judged: list[str] = field(default_factory=list)
    """The ids of the memories that vectors judged."""
    done: int = 0
    """How many memories were read."""


@dataclass(eq=False, kw_only=True)
class EndingFinder:
    """Reads new memories in the order of arrival, and stores and lists which statements they end."""

    store: MemoryStore
    clock: Clock
    gate: fairness.ForegroundGate
    """Counts the requests to which calls in the background yield."""
    in_background: bool
    """Whether there are such calls."""
    learn: Callable[[MemoryRecord], Sequence[LateLearning] | None] = lambda _: ()
    """Returns what a memory in force states as a rule by its vectors; None while the encoder is loading."""
    meanings: statements.SentenceMeanings | None = None
    """Those of the encoder that makes the vectors."""
    vectors: MemoryVectors = field(default_factory=MemoryVectors)
    """Their state says whether the encoder can be asked."""

    def __post_init__(self) -> None:
        has_news = not self.store.read_only
        self._has_news = self._has_news_ahead = self._has_unlearned = has_news
        self._read_to = 0
        """Row number up to which memories were read ahead of the background."""
        self._is_behind = False
        """Whether the background has more to read than it reads at once, as after an import."""
        self._unavailable_since: float | None = None
        """When the encoder was first seen as unavailable, by the monotonic clock; None while it is not."""
        self._has_edited = has_news
        """Whether edited memories may have to be read again."""
        self._reading = threading.Lock()
        """Held while memories are read, which two threads would both do otherwise."""
        self.on_found: Callable[[], object] = lambda: None
        """Called after endings were stored, to rewrite summaries that told what was ended."""

    def note_new_memories(self) -> None:
        """Note that memories were stored; return at once."""
        self._has_news = self._has_news_ahead = self._has_unlearned = True
        self._has_edited = True

    def find_soon(self) -> None:
        """Find endings in up to `SOON_MAX` new memories, unless many more are unread; log errors."""
        try:
            if not self._is_behind:
                self.find(limit=SOON_MAX)
        except Exception as error:  # noqa: BLE001 a boundary: the answer can do without
            log_failure("endings_not_found", error)

    def find_before_sleep(self) -> None:
        """Find endings for up to `SLEEP_S` seconds, and in a daemon in at most `SLEEP_MAX` memories."""
        self.find(limit=SLEEP_MAX if self.in_background else None, seconds=SLEEP_S)

    def find_in_background(self) -> None:
        """Find endings for `CHORE_S` seconds, learn rules for as long, and yield to requests."""
        self.find(seconds=CHORE_S, is_yielding=True)
        self._is_behind = self._has_news and not self._is_encoder_awaited()

    def find(
        self,
        *,
        limit: int | None = None,
        seconds: float | None = None,
        is_yielding: bool = False,
    ) -> int:
        """Find and store endings in unread memories, up to `limit`; return how many endings changed.

        An ending is added, or withdrawn if vectors refute it. Rules are then learned from as many
        memories. Reading and learning each stop once `seconds` are over. With a `limit`, return 0 at once
        if another thread is reading, and mostly use words alone and learn nothing. With `is_yielding`,
        wait for requests, and leave memories for later while the encoder loads or is briefly unavailable.
        """
        if not self._reading.acquire(blocking=limit is None):
            return 0
        try:
            has_news = self._has_news or self._has_news_ahead or self._has_unlearned
            is_awaited = has_news and self._is_encoder_awaited()
            is_hurried = limit is not None and (
                self.in_background
                or self._find_meanings() is not None
                or (has_news and self.store.endings.unread_rows() > AHEAD_MAX)
            )
            if not has_news or (is_awaited and is_yielding):
                found = 0
            elif is_awaited or is_hurried:
                found = self._find_by_words(limit or READ_AT_ONCE)
            else:
                found = self._find_by_portions(limit, seconds, is_yielding=is_yielding)
                self._learn_from_new(limit, seconds, is_yielding=is_yielding)
        finally:
            self._reading.release()
        ends = time.monotonic() + (seconds or 0)
        while self._has_edited and limit is None and not self._is_encoder_awaited():
            edited = self.store.endings.edited(limit=1)
            self._has_edited = bool(edited)
            if not edited:
                break
            found += self._read_edited([*edited.values()], is_yielding=is_yielding)
            if time.monotonic() >= ends:
                break
        if found:
            self.on_found()
            log.info("endings_changed", endings=found)
        return found

    def _find_by_words(self, limit: int) -> int:
        """Find and store endings in up to `limit` new memories by words alone; return how many changed.

        Vectors take far longer: later, the background or the next sleep reads the memories with vectors.
        """
        if not self._has_news_ahead:
            return 0
        self._has_news_ahead = False
        with self.store.search.one_snapshot():
            memories = self.store.endings.unread(
                limit=limit, after=self._read_to, newest=max(limit, AHEAD_MAX)
            )
            judgment = self._judge(list(memories.values()), None)
        self._read_to = max(memories, default=self._read_to)
        if len(memories) == limit:
            self._has_news_ahead = True  # there may be more
        return self._store_judgment(judgment)

    def _find_by_portions(
        self, limit: int | None, seconds: float | None, *, is_yielding: bool
    ) -> int:
        """Find and store endings within the limits of `find`, in portions; return how many endings changed."""
        ends = time.monotonic() + seconds if seconds is not None else float("inf")
        found = 0
        is_due = self._has_news
        while is_due:
            self._has_news = False
            portion = limit or READ_AT_ONCE
            read_at = self.clock.now()
            meanings = self._find_meanings()
            # A thread that waits, for a vector or for requests, holds no connection meanwhile.
            is_waiting = meanings is not None or is_yielding
            with nullcontext() if is_waiting else self.store.search.one_snapshot():
                memories = self.store.endings.unread(limit=portion)
                judgment = self._judge(
                    list(memories.values()),
                    meanings,
                    ends=ends,
                    is_yielding=is_yielding,
                )
                read = list(memories.values())[: judgment.done]
                self._judge_agreements(read, judgment, meanings)
            if done := judgment.done:
                found += self._store_judgment(
                    judgment, read_at=read_at, read_up_to=list(memories)[done - 1]
                )
            if done == portion or done < len(memories):
                self._has_news = True  # there may be more
            is_due = self._has_news and limit is None and time.monotonic() < ends
        return found

    def _learn_from_new(
        self, limit: int | None, seconds: float | None, *, is_yielding: bool
    ) -> None:
        """Store rules of up to `limit` new memories, or for `seconds`; let requests first if `is_yielding`."""
        ends = time.monotonic() + seconds if seconds is not None else float("inf")
        is_due = self._has_unlearned
        while is_due:
            self._has_unlearned = False
            portion = limit or READ_AT_ONCE
            late: list[LateLearning] = []
            last = None
            memories = self.store.learnings.unlearned(limit=portion)
            for position, memory in memories.items():
                if is_yielding:
                    self.gate.yield_to_requests()
                if (learned := self.learn(memory)) is None:
                    is_due = False
                    break
                late += learned
                last = position
                if time.monotonic() >= ends:
                    is_due = False
                    break
            if last is not None:
                self._store_late(late, learned_up_to=last)
            if not is_due or len(memories) == portion:
                self._has_unlearned = True  # there may be more
            is_due = is_due and self._has_unlearned and limit is None

    def find_again(self, positions: Sequence[int], former: Mapping[str, str]) -> None:
        """Read edited memories again, by row number; store the endings of and by their statements.

        Newer memories that share words are read for the rest of `EDIT_S` seconds, as they may end
        the memories' statements; if that is too short, the next `find` without a limit reads all.
        `former` has the earlier texts of memories by id: rules that only the new texts state are learned.
        """
        if self._read_edited(positions, former, ends=time.monotonic() + EDIT_S):
            self.on_found()

    def _read_edited(
        self,
        positions: Sequence[int],
        former: Mapping[str, str] | None = None,
        *,
        ends: float = float("inf"),
        is_yielding: bool = False,
    ) -> int:
        """Store rules, and until `ends` endings, of and by edited memories; return how many endings changed.

        The memories stay marked if there is no time, or the encoder is loading. Without `former`, their earlier
        texts by id are those of their last revisions.
        """
        marks = self.store.endings.edited(positions=positions)
        edited = self.store.endings.memories_at(positions)
        memories = list(edited.values())
        late: list[LateLearning] = []
        is_learned = True
        for memory in memories:
            learned = self.learn(memory)
            is_learned &= learned is not None
            if learned:
                text = (
                    self._read_former(memory.id)
                    if former is None
                    else former.get(memory.id, "")
                )
                late += [
                    each
                    for each in learned
                    if not sentences.contains_statement(
                        mask_secrets(text), each.learning.text
                    )
                ]
        if late:
            self._store_late(late)
        found: dict[int, None] = {}
        for memory in memories:
            new_statements = statements.read_statements(memory.content)
            words = dict.fromkeys(
                word.key for each in new_statements for word in each.words
            )
            newer = self._find_matches(
                tuple(words), since=memory.created_at + timedelta.resolution
            )
            found |= dict.fromkeys(match.position for match in newer)
        known = {memory.id for memory in memories}
        read = self.store.endings.memories_at(list(found))
        likeliest = [read[each] for each in found if each in read]
        further = [memory for memory in likeliest if memory.id not in known]
        judgment = self._judge(
            [*memories, *further],
            self._find_meanings(),
            ends=ends,
            is_yielding=is_yielding,
        )
        is_done = is_learned and judgment.done == len(memories) + len(further)
        self._has_edited |= not is_done
        rest = self._judge(memories[judgment.done :], None)  # nothing is withdrawn
        near = [
            row + distance
            for row, memory in (edited | read).items()
            if may_belong_to_agreement(
                memory.content, by_agent=memory.role == ASSISTANT
            )
            for distance in range(-NEAR_MAX, NEAR_MAX + 1)
        ]
        around = self.store.endings.memories_at(near)
        self._judge_agreements([*around.values()], rest, self._find_meanings())
        rest.texts |= judgment.texts
        rest.endings = [
            each for each in (*judgment.endings, *rest.endings) if known & each.involved
        ]
        return self._store_judgment(rest, read_again=[*marks] if is_done else [])

    def _read_former(self, id: str) -> str:
        """Return the last earlier text of a memory; empty if none is kept."""
        revisions = self.store.changes.revisions(id)
        return next((each.text for each in revisions if each.text), "")

    def _store_judgment(
        self,
        judgment: JudgedEndings,
        *,
        read_at: datetime | None = None,
        read_up_to: int | None = None,
        read_again: Sequence[int] = (),
    ) -> int:
        """Store endings, withdraw refuted ones, and mark memories as read; return how many endings changed."""
        if not (judgment.endings or read_again) and read_up_to is None:
            return 0
        return self.store.endings.add(
            judgment.endings,
            texts=judgment.texts,
            judged=judgment.judged,
            read_at=read_at,
            read_up_to=read_up_to,
            read_again=read_again,
        )

    def _store_late(
        self, late: Sequence[LateLearning], *, learned_up_to: int | None = None
    ) -> None:
        """Store learnings that were found late, and mark rows up to `learned_up_to` as done; log the number."""
        new = self.store.learnings.add_late(late, learned_up_to=learned_up_to)
        if new:
            log.info("learned_by_vectors", learnings=new)

    def read_again(self) -> None:
        """Mark all memories as unread, to be read again later, as some were restored."""
        self.store.endings.mark_all_unread()
        self._read_to = 0
        self._has_news = self._has_news_ahead = True

    def _is_encoder_awaited(self) -> bool:
        """Return True if the encoder is loading, or in a daemon failed less than `AWAIT_S` seconds ago."""
        if not self.meanings:
            return False
        state = self.vectors.state
        if state is not EmbedderState.UNAVAILABLE:
            self._unavailable_since = None
            return state is EmbedderState.LOADING
        if not self.in_background:
            return False
        now = time.monotonic()
        if self._unavailable_since is None:
            self._unavailable_since = now
        return now - self._unavailable_since < AWAIT_S

    def _find_meanings(self) -> statements.SentenceMeanings | None:
        """Return the meanings of sentences, or None if the encoder is not ready."""
        is_ready = self.meanings and self.vectors.state is EmbedderState.READY
        return self.meanings if is_ready else None

    def _judge(
        self,
        memories: Sequence[MemoryRecord],
        meanings: statements.SentenceMeanings | None,
        *,
        ends: float = float("inf"),
        is_yielding: bool = False,
    ) -> JudgedEndings:
        """Return which older statements memories end; stop once the monotonic clock has reached `ends`.

        Without `meanings`, or once the encoder fails, which is logged, judge by words alone. With
        `is_yielding`, wait for requests before each memory. Pruned and superseded memories end none.
        """
        judgment = JudgedEndings()
        for memory in memories:
            if not memory.pruned_at and not memory.superseded_at:
                compare = partial(self._find_ended, memory, is_yielding=is_yielding)
                try:
                    compared = list(compare(meanings))
                except (errors.EmbedderFailed, errors.ModelUnavailable) as error:
                    log.warning("endings_without_vectors", reason=error.message)
                    meanings = None
                    compared = list(compare(None))
                judgment.judged += [memory.id] if meanings else []
                positions = [match.position for match, _ in compared]
                older = self.store.endings.memories_at(positions) if positions else {}
                for match, ending in compared:
                    if match.position not in older:
                        continue
                    id = older[match.position].id
                    judgment.texts |= {memory.id: memory.content, id: match.content}
                    record = EndingRecord(
                        older=id,
                        newer=memory.id,
                        reason=ending.reason,
                        older_place=ending.places[0],
                        older_start=ending.span[0],
                        older_end=ending.span[1],
                        newer_place=ending.places[1],
                        found_at=self.clock.now(),
                    )
                    judgment.endings.append(record)
            judgment.done += 1
            if time.monotonic() >= ends:
                break
        return judgment

    def _judge_agreements(
        self,
        memories: Sequence[MemoryRecord],
        judgment: JudgedEndings,
        meanings: statements.SentenceMeanings | None,
    ) -> None:
        """Add which older statements end by proposals in or agreed to in `memories`.

        They end by the memory with the proposal or, if the answer changed it, with the answer.
        """
        firsts = {each.session: each for each in reversed(memories)}
        near = {each.id: each for each in memories}
        for session, first in firsts.items():
            if first.role not in ("", ASSISTANT):
                earlier = self.store.agents.latest([session], NEAR_MAX)
                near |= {each.id: each for each in earlier}
        newest_first = sorted(near.values(), key=lambda each: each.created_at)[::-1]
        new = {each.id for each in memories}
        for asked, answer, proposal, _ in find_answers(newest_first):
            is_new = not new.isdisjoint((answer.id, asked.id))
            if not is_new or proposal.kind is not AnswerKind.AGREED:
                continue
            stated, other = (asked, answer)[:: -1 if proposal.is_changed else 1]
            said = statements.list_sentences(asked.content)
            if proposal.sentence not in said:
                continue
            place = 0 if stated is answer else said.index(proposal.sentence)
            agreed = replace(
                stated,
                content=state_decision(proposal.statement),
                role=answer.role,
                created_at=answer.created_at,
            )
            found = self._judge([agreed], meanings)
            judgment.texts |= found.texts | {
                each.id: each.content for each in (stated, other)
            }
            judgment.endings += [
                replace(each, newer_place=place, agreed=other.id)
                for each in found.endings
                if each.older not in (asked.id, answer.id)
            ]

    def _find_ended(
        self,
        memory: MemoryRecord,
        meanings: statements.SentenceMeanings | None,
        *,
        is_yielding: bool,
    ) -> Iterator[tuple[Match, rating.Ending]]:
        """Yield (older memory, ending) for statements that `memory` ends; first wait if `is_yielding`."""
        if is_yielding:
            self.gate.yield_to_requests()
        new_statements = rating.find_ending_statements(memory.content, meanings)[
            :STATEMENTS_MAX
        ]
        if memory.role == ASSISTANT:
            new_statements = [
                each for each in new_statements if not proposes(each.text)
            ]
            # "I've moved Redis to port 6379" is on Redis, not on the assistant.
            says = {"gone"} if reports_change(memory.content) else {"changed", "gone"}
            new_statements = [
                replace(each, signs=each.signs - {"i"} | {REPORT})
                if says & each.cues.keys() == says - {"gone"}
                else each
                for each in new_statements
            ]
        for statement in new_statements:
            if is_yielding:
                self.gate.yield_to_requests()
            words = sought_words(statement)
            older = self._find_matches(words, until=memory.created_at)
            if "i" in statement.signs and memory.member is not None:
                # Nobody moves because another member of the group has moved.
                positions = [match.position for match in older]
                said = self.store.endings.memories_at(positions)
                older = [
                    match
                    for match in older
                    if match.position in said
                    and said[match.position].member == memory.member
                ]
            projects = self.store.agents.projects_of(
                list({memory.session, *(match.session for match in older)})
            )
            rated = [
                (*found, match)
                for match in older
                if _is_in_scope(match, memory, statement, projects)
                and (found := rating.rate_endings(match.content, statement, meanings))
            ]
            rated.sort(key=lambda each: -each[0])
            for odds, ending, match in rated[:ENDED_MAX]:
                # Records that nobody said, such as log lines, differ in values and are all true, and so do
                # figures that an agent calculates from a person's.
                states_values = memory.role and (
                    memory.role != ASSISTANT
                    or match.role == ASSISTANT
                    or REPORT in statement.signs
                )
                if odds > 0 and (states_values or ending.reason != "value"):
                    yield match, ending

    def _find_matches(
        self,
        words: tuple[str, ...],
        *,
        since: datetime | None = None,
        until: datetime | None = None,
    ) -> list[Match]:
        """Return up to `CANDIDATES_MAX` memories with any of these words, the best match first.

        Without `until`, later memories would take the places of older ones when a memory is read again.
        """
        written = terms.unify_letters(" ".join(word for word in words if len(word) > 1))
        pairs = terms.parse_terms(written).grams if not written.isascii() else ()
        query = Query(
            terms=terms.Terms(words, pairs),
            limit=CANDIDATES_MAX,
            only_words=True,
            since=since,
            until=until,
        )
        matches = self.store.search.candidates(query).memories
        return sorted(matches, key=lambda match: -match.score)

    def list_endings(self, request: conversation.Endings) -> conversation.EndingList:
        """Return ended statements, the last found first.

        New memories are read first, for `LIST_S` seconds, or a few with `at_once`. The rest of
        them is read in the background, or by the next call or sleep.
        """
        after = parse_cursor(request.after) if request.after else None
        if request.at_once:
            self.find_soon()
        else:
            self.find(seconds=LIST_S)
        records = self.store.endings.find(
            limit=request.limit + 1,
            id=request.id,
            undone=request.undone,
            after=after,
        )
        page = records[: request.limit]
        quoted = self.store.endings.quote(page)
        if not request.reveal:
            quoted = {record: mask_ended(each) for record, each in quoted.items()}
        lines = [
            conversation.EndedLine(
                id=record.older,
                by=record.newer,
                reason=record.reason,
                sentence=statement.words,
                successor=statement.successor,
                at=statement.at,
                found_at=record.found_at,
                undone=record.undone,
            )
            for record, statement in quoted.items()
        ]
        cursor = None
        if len(records) > len(page):
            moment = page[-1].found_at
            seen = sum(record.found_at == moment for record in page)
            if after and after.moment == moment:
                seen += after.seq
            cursor = Place(moment=moment, kind=RecordKind.MEMORY, seq=seen).encode()
        return conversation.EndingList(lines, cursor)

    def undo(self, request: conversation.UndoEnding) -> conversation.UndoneEnding:
        """Undo the endings of a memory's statements, or `redo` them; return how many. Raises `NotFound`."""
        changed = self.store.endings.undo(request.id, undone=not request.redo)
        if not changed:
            what = "undone" if request.redo else "ended"
            raise errors.NotFound(
                f"no statement of {request.id!r} is {what}; `endings` shows them",
                field="id",
            )
        self.on_found()
        return conversation.UndoneEnding(request.id, changed)


def _is_in_scope(
    match: Match,
    memory: MemoryRecord,
    statement: statements.Statement,
    projects: Mapping[str, str],
) -> bool:
    """Return whether a `statement` of `memory` may end statements of an older memory, the `match`.

    A statement in the first person ends only the same speaker's statements, and a person's does so in any
    project. All others end statements of the same project or, if neither has one, of the same session or
    source. `projects` gives the project of each session.
    """
    if "i" in statement.signs:
        if match.role != memory.role:
            return False
        if memory.role != ASSISTANT:
            return True
    own, other = (projects.get(each.session, "") for each in (memory, match))
    is_near = match.session == memory.session or match.source == memory.source
    return own == other and (bool(own) or is_near)


def add_endings(store: EndingStore, hits: Sequence[Hit], *, reveal: bool) -> list[Hit]:
    """Return the hits with notes on ended statements, and the newer memory before the older.

    A hit moves behind other hits that ended whole sentences of its main lines, but not behind hits that ended a
    clause. Secrets are masked unless `reveal`.
    """
    ids = [id for hit in hits for id in (hit.id, *(line.id for line in hit.lines))]
    ended = store.of(ids) if ids else {}
    if not ended:
        return list(hits)
    if not reveal:
        ended = {id: tuple(map(mask_ended, each)) for id, each in ended.items()}
    noted = [
        replace(
            hit,
            ended=ended.get(hit.id, ()),
            lines=tuple(
                replace(line, ended=ended[line.id]) if line.id in ended else line
                for line in hit.lines
            ),
        )
        for hit in hits
    ]
    answer: list[Hit] = []
    added: set[str] = set()

    def add(hit: Hit) -> None:
        """Append a hit to `answer` once, first the hits that ended its main lines."""
        if hit.id in added:
            return
        added.add(hit.id)
        least = MAIN_SHARE * max((line.score for line in hit.lines), default=0.0)
        every = (hit.ended, *(line.ended for line in hit.lines if line.score >= least))
        by = {each.by for ended in every for each in ended if not each.clause}
        for other in noted if by else ():
            if not by.isdisjoint((other.id, *(line.id for line in other.lines))):
                add(other)
        answer.append(hit)

    for hit in noted:
        add(hit)
    return answer


def mask_ended(ended: EndedStatement) -> EndedStatement:
    """Return the ended statement with the secrets of both sentences masked."""
    return replace(
        ended,
        sentence=mask_secrets(ended.sentence),
        clause=mask_secrets(ended.clause),
        successor=mask_secrets(ended.successor),
    )
