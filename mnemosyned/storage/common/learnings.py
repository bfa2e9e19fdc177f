"""Learnings: added, found, edited and removed."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from mnemosyned.conversation.learnings import comparison, relevance
from mnemosyned.conversation.learnings.recognize import LateLearning
from mnemosyned.errors import NotFound
from mnemosyned.memory.edit import MemoryEdit
from mnemosyned.memory.endings import find_parts, mark_ended_clauses
from mnemosyned.memory.exchange import ForgottenCopy
from mnemosyned.memory.listing import LearningFilter, Place, RecordKind
from mnemosyned.memory.values import Learning, MemoryRecord
from mnemosyned.storage.common import endings, injections, state
from mnemosyned.storage.common.listing import source_condition
from mnemosyned.storage.common.rows import BRIEFING_EDITS, ENDINGS, LEARNINGS
from mnemosyned.storage.common.session import (
    UNLESS_KNOWN,
    CommonSession,
    StorePart,
    reads,
    writes,
)
from mnemosyned.storage.common.surroundings import projects_of
from mnemosyned.text.terms import parse_terms

READ_MAX = 5_000
"""Maximum number of learnings whose texts are searched for words at once."""


class LearningRows(comparison.LearningKeeper):
    """The learnings that a transaction stores; one that repeats another is not stored."""

    def __init__(self, session: CommonSession) -> None:
        super().__init__()
        self._session = session

    def read(self, source: str | None, *, limit: int) -> Sequence[Learning]:
        """Return up to `limit` active learnings of a source, newest first; None means without a source."""
        return LEARNINGS.find(
            self._session,
            "AND source IS NOT DISTINCT FROM %(source)s::text AND superseded_by IS NULL "
            "ORDER BY created_at DESC, seq DESC LIMIT %(most)s",
            source=source,
            most=limit,
        )

    def insert(self, learning: Learning, *, superseded: Sequence[str]) -> None:
        """Store a learning, and mark the learnings with ids `superseded` as superseded by it."""
        LEARNINGS.add(self._session, learning, seq=self._session.new_number())
        if superseded:
            self._session.update(
                "learning", {"superseded_by": learning.id}, id=superseded
            )

    def leave_out_others(
        self, learning: Learning, conflicts: Sequence[Learning]
    ) -> Sequence[Learning]:
        """Return the `conflicts` that may replace a learning, or that it may replace.

        Those of another project may not, nor what another member of a group says of themselves.
        """
        if not conflicts:
            return conflicts
        both = (learning, *conflicts)
        projects = projects_of(self._session, [each.session for each in both])
        ids = [each.memory for each in both if each.memory]
        members = {
            id: memory.member for id, memory in self._session.memories(ids).items()
        }
        member = members.get(learning.memory or "")
        return [
            other
            for other in conflicts
            if relevance.may_replace(learning, other, projects)
            and (
                members.get(other.memory or "") == member
                or not (
                    relevance.is_personal(learning) and relevance.is_personal(other)
                )
            )
        ]

    def save(
        self, learnings: Iterable[Learning], copies: Mapping[str, ForgottenCopy]
    ) -> None:
        """Add learnings, stored endings and briefing edits to `copies`, {id of memory or learning: copy}."""
        session, by_id = self._session, {**copies}
        for each in learnings:
            by_id[each.id] = copies.get(each.memory or "") or copies[each.id]
            by_id[each.id].learnings.append(each)
        of_these = "AND id = ANY(%(ids)s::text[])"
        for edit in BRIEFING_EDITS.find(session, of_these, ids=list(by_id)):
            by_id[edit.id].edits.append(edit)
        for ending in ENDINGS.find(session, endings.INVOLVED, ids=list(copies)):
            for id in copies.keys() & ending.involved:
                copies[id].endings.append(ending)
        read = session.select_value("ending_progress", "position") or 0
        revised = session.select_value("revision", "max(seq)") or 0
        for copy in copies.values():
            copy.read, copy.revised = read, revised

    def put_back(self, id: str, copy: ForgottenCopy, restored: Collection[int]) -> None:
        """Store the learnings, briefing edits and endings in the copy of a memory or learning (`id`).

        An ending is left out if another of its memories was edited after the copy; if one is forgotten, its
        copy gets it. Memories stored or edited after the copy, except at row numbers `restored`, are to be
        read for endings again.
        """
        session = self._session
        for learning in copy.learnings:
            self.keep(learning, is_restored=True)
            newer = learning.superseded_by
            if newer and learnings_where(session, "id", [newer]):
                session.update("learning", {"superseded_by": newer}, id=learning.id)
        for edit in copy.edits:
            BRIEFING_EDITS.add(session, edit, UNLESS_KNOWN)
        own = session.position_of(id)
        if own is None:  # learnings alone
            return
        since = f"AND seq > {copy.revised:d}"
        edited = {*session.select_column("revision", "memory_seq", since)}
        edited.difference_update(restored)
        again = (own[0], *edited) if edited else ()
        read = min([copy.read, *(seq - 1 for seq in again)])
        session.update("ending_progress", {"position": read}, f"AND position > {read}")
        for ending in copy.endings:
            others = ending.involved - {id}
            positions = session.positions_of([*others])
            if missing := others - positions.keys():
                with state.changed_copy(session, min(missing)) as forgotten:
                    forgotten.endings.append(ending)
            elif edited.isdisjoint(seq for seq, _ in positions.values()):
                ENDINGS.add(session, ending, UNLESS_KNOWN)
                endings.empty_summaries(session, [ending.older])

    def find_dropped(self, edit: MemoryEdit) -> list[Learning]:
        """Return the learnings that an edited memory no longer states."""
        stored = learnings_where(self._session, "memory_id", [edit.before.id])
        return [each for each in stored if edit.drops_learning(each.text)]


def learnings_where(
    session: CommonSession, column: str, values: Sequence[str]
) -> list[Learning]:
    """Return the learnings with one of `values` in `column` (`id` or `memory_id`), oldest first."""
    return LEARNINGS.find(
        session,
        f"AND {column} = ANY(%(values)s::text[]) ORDER BY seq",
        values=list(values),
    )


def remove_learnings(session: CommonSession, **where: Iterable[str]) -> int:
    """Delete learnings by `id` or `memory_id`, with injected lines that quote them; return how many.

    Learnings superseded by a deleted learning apply again.
    """
    removed = [id for (id,) in session.delete("learning", "RETURNING id", **where)]
    if removed:
        injections.forget_injected_words(session, removed)
        session.update("learning", {"superseded_by": None}, superseded_by=removed)
    return len(removed)


def mark_learned(session: CommonSession, positions: Iterable[int]) -> None:
    """Record that learnings were read from the memories at these row numbers."""
    lowest = _read_lowest_learned(session)
    session.insert_each(
        "learned",
        [
            {"position": position}
            for position in [*positions, *([0] if lowest is None else [])]
            if position >= (lowest or 0)
        ],
        UNLESS_KNOWN,
    )


def _read_lowest_learned(session: CommonSession) -> int | None:
    """Return the row number up to which learnings were read from all memories; None if none is saved."""
    lowest: int | None = session.select_value("learned", "min(position)")
    return lowest


class LearningStore(StorePart):
    """Store of learnings; a new learning supersedes contradicting old ones."""

    @writes
    def add(
        self, session: CommonSession, learning: Learning
    ) -> tuple[Learning, list[str]]:
        """Store a learning, unless it repeats another or corrects none; return it and the ids it superseded."""
        return LearningRows(session).keep(learning)

    @reads
    def unlearned(
        self, session: CommonSession, *, limit: int
    ) -> dict[int, MemoryRecord]:
        """Return {row number: memory}, ascending, of up to `limit` memories not yet read for learnings."""
        return endings.read_memories_after(
            session,
            _read_lowest_learned(session) or 0,
            limit=limit,
            condition="AND NOT EXISTS (SELECT 1 FROM learned AS l "
            "WHERE l.owner = %(owner)s AND l.position = m.seq)",
        )

    def add_late(
        self, late: Sequence[LateLearning], *, learned_up_to: int | None = None
    ) -> int:
        """Store learnings that were read from stored memories; return how many of them are in force.

        A learning is left out if its memory already has the same learning, lacks a learning for one of its
        `clauses`, or was changed or superseded after the reading. In the same transaction, all memories up
        to the row number `learned_up_to` are marked as learned from. The call does not wait for the disk.
        """

        def add_new(session: CommonSession) -> int:
            ids = [each.memory.id for each in late]
            stored = learnings_where(session, "memory_id", ids) if ids else []
            known = {(each.memory, each.text) for each in stored}
            memories = session.memories(ids) if ids else {}
            rows = LearningRows(session)
            for learning, read, clauses in late:
                now = memories.get(read.id)
                if (
                    now
                    and not now.superseded_at
                    and (now.content, now.role) == (read.content, read.role)
                    and (read.id, learning.text) not in known
                    and all((read.id, text) in known for text in clauses)
                ):
                    rows.keep(learning)
            if (learned_up_to or 0) > (_read_lowest_learned(session) or 0):
                session.execute(
                    "DELETE FROM learned WHERE owner = %(owner)s AND position <= %(last)s",
                    last=learned_up_to,
                )
                session.insert("learned", position=learned_up_to)
            return rows.inserted_count

        return self._engine.write(add_new, durable=False)

    def find(
        self,
        *,
        sources: Sequence[str | None] = (),
        superseded: bool = False,
        limit: int,
    ) -> list[Learning]:
        """Return the newest `limit` learnings of these sources, or of all; superseded ones only on request."""
        chosen = LearningFilter(sources=sources, superseded=superseded)
        return self.read_page(chosen, limit=limit)[0]

    @reads
    def read_page(
        self, session: CommonSession, chosen: LearningFilter, *, limit: int
    ) -> tuple[list[Learning], Place | None]:
        """Return up to `limit` learnings that pass a filter, the newest first.

        Also return the place after which the next page begins; None for the last page. Any page may have
        fewer learnings: at most `READ_MAX` are searched for words, and a learning is left out if its memory
        is superseded or a newer memory ended its sentence.
        """
        named = source_condition(chosen.sources, "source")
        place = chosen.after
        conditions = {
            "id = ANY(%(ids)s::text[]) OR superseded_by = ANY(%(ids)s::text[])": chosen.ids,
            "superseded_by IS NULL": not (chosen.ids or chosen.superseded),
            "kind = %(kind)s": chosen.kind,
            named.text: chosen.sources,
            "(created_at, seq) < (%(moment)s, %(seq)s)": place,
        }
        condition = "".join(
            f" AND ({text})" for text, given in conditions.items() if given
        )
        most = READ_MAX if chosen.words else limit + 1
        rows = session.execute(
            f"SELECT seq, {LEARNINGS.columns} FROM learning WHERE owner = %(owner)s{condition} "
            "ORDER BY created_at DESC, seq DESC LIMIT %(most)s",
            **named.values,
            ids=list(chosen.ids),
            kind=chosen.kind and str(chosen.kind),
            moment=place and place.moment,
            seq=place and place.seq,
            most=most,
        ).fetchall()
        found: list[Learning] = []
        last: Place | None = None
        for seq, *row in rows:
            if len(found) == limit:
                break
            learning = LEARNINGS.read(row)
            last = Place(moment=learning.created_at, kind=RecordKind.MEMORY, seq=seq)
            text = learning.text.casefold()
            if all(word in text for word in chosen.words):
                found.append(learning)
        else:
            last = last if len(rows) == most else None
        if not (chosen.superseded or chosen.ids):
            found = _drop_ended(session, found)
        return found, last

    @writes
    def edit(self, session: CommonSession, id: str, text: str) -> None:
        """Replace the text of a learning, erase injected copies, and request a purge. Raises `NotFound`."""
        changed = session.update("learning", {"text": text}, id=id)
        _require_learning_found(changed.rowcount, id)
        injections.erase_injected_texts(session, [id])
        state.request_purge(session)

    @writes
    def remove(self, session: CommonSession, id: str) -> None:
        """Delete a learning and request a purge; superseded learnings apply again. Raises `NotFound`."""
        _require_learning_found(remove_learnings(session, id=[id]), id)
        state.request_purge(session)


def _drop_ended(
    session: CommonSession, learnings: Sequence[Learning]
) -> list[Learning]:
    """Return the learnings whose memory is not superseded and whose sentence no newer memory ended.

    An ended clause in a learning is marked.
    """
    ids = [learning.memory for learning in learnings if learning.memory]
    if not ids:
        return [*learnings]
    positions = {id: seq for id, (seq, _) in session.positions_of(ids).items()}
    superseded = session.column(
        "SELECT memory_seq FROM memory_state WHERE owner = %(owner)s "
        "AND memory_seq = ANY(%(positions)s::bigint[]) AND superseded_at IS NOT NULL",
        positions=[*positions.values()],
    )
    ended = endings.read_ended(session, ids)
    current = []
    for learning in learnings:
        if positions.get(learning.memory or "") in superseded:
            continue
        words = comparison.find_content_words(parse_terms(learning.text))
        statements = ended.get(learning.memory or "", ())
        if not any(
            len(words & comparison.find_content_words(parse_terms(each.words)))
            >= (1.0 if each.clause else comparison.SUBJECT_OVERLAP_MIN) * len(words)
            for each in statements
        ):
            parts = find_parts(learning.text, statements)
            text = mark_ended_clauses(learning.text, parts)
            current.append(replace(learning, text=text) if statements else learning)
    return current


def _require_learning_found(count: int, id: str) -> None:
    """Raise `NotFound` for the learning `id` if `count`, the number of changed rows, is 0."""
    if not count:
        problem = f"no learning has the id {id!r}; `learnings` shows them"
        raise NotFound(problem, field="id")
