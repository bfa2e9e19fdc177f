"""Single memories and episodes: stored unless known, and read by their ids; messages of compactions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

from mnemosyned import errors, instants
from mnemosyned.conversation.archived import ABOUT, list_archived_memory_ids
from mnemosyned.memory import forgetting, ports, values
from mnemosyned.memory.edit import HISTORY_MAX
from mnemosyned.memory.exchange import ExportedCompaction
from mnemosyned.storage.common import learnings, state, undo
from mnemosyned.storage.common.rows import (
    COMPACTIONS,
    EPISODE_COLUMNS,
    episode_from,
)
from mnemosyned.storage.common.session import (
    ORIGINALS_BELOW,
    UNLESS_KNOWN,
    CommonSession,
    Engine,
    EngineSession,
    StorePart,
    instant,
    optional_instant,
    reads,
    writes,
)
from mnemosyned.text.details import Detail


@dataclass
class IntakeTransaction(ABC):
    """Transaction that stores new drafts and acknowledges known ones."""

    _drafts: Sequence[ports.Draft]
    _action: values.Action | None = None
    _session: EngineSession = field(init=False)
    _said: ClassVar[str]
    """Selects id and time of the first memory with a text, session and source.

    Superseded memories, and memories that may expire, do not count.
    """
    same_message: ClassVar[str]
    """Selects the id of a memory with a text, session, source and role, of a time if it is given.

    Only memories with an id chosen by the agent count.
    """

    def run(self, session: EngineSession) -> ports.RememberReport:
        """Insert new drafts with their learnings; return an answer for every draft, in order, and counts.

        Memories named in `supersedes` are marked as superseded. A memory that an import or a hook reads
        again after it was forgotten is not stored. Raises `IdTaken`, and `NotFound` for `supersedes`.
        """
        self._session, drafts = session, self._drafts
        given = [draft.memory.id for draft in drafts if not draft.has_new_id]
        known: dict[str, forgetting.Known] = {}
        if given:
            self._session.lock()
            known = self._session.known_records(given)
        keys = {
            draft.memory.id: forgetting.keys_of_forgotten(
                draft.memory.id,
                draft.memory.session,
                draft.memory.source,
                [forgetting.content_hash(draft.memory.content)] if draft.dedupe else [],
            )
            for draft in drafts
            if not draft.has_new_id and forgetting.is_made_of_source(draft.memory.id)
        }
        forgotten: set[str] = set()
        if keys:
            any_key = set().union(*keys.values())
            rows = self._session.select_column("agent_forgotten", "id", id=any_key)
            forgotten.update(rows)
        keeper: learnings.LearningRows | None = None
        acknowledged: list[values.Acknowledged] = []
        waiting: list[values.MemoryRecord] = []
        for index, draft in enumerate(drafts):
            memory, answer = draft.memory, None
            if memory.id not in known and forgotten & keys.get(memory.id, set()):
                acknowledged.append(
                    values.Acknowledged(
                        id=memory.id,
                        created_at=memory.created_at,
                        stored=False,
                        forgotten=True,
                    )
                )
                continue
            place = f"memories[{index}]." if len(drafts) > 1 else ""
            if memory.id in known or draft.dedupe:
                if waiting and memory.id not in known:
                    # The words before in this batch count too.
                    self._insert_memories(waiting)
                    waiting = []
                answer = self._answer_known(draft, known.get(memory.id), place + "id")
            if answer is None:
                waiting.append(memory)
                known[memory.id] = (memory.content, memory.created_at, None)
                if draft.learnings:
                    self._session.lock()
                    keeper = keeper or learnings.LearningRows(self._session)
                    for learning in draft.learnings:
                        keeper.keep(learning)
                answer = values.Acknowledged(
                    id=memory.id, created_at=memory.created_at, stored=True
                )
            if draft.supersedes:
                if waiting:
                    self._insert_memories(waiting)
                    waiting = []
                self._session.lock()
                try:
                    state.supersede(self._session, old=draft.supersedes, new=answer.id)
                except errors.MnemosynedError as error:
                    error.field = f"{place}{error.field}"
                    raise
            acknowledged.append(answer)
        if waiting:
            self._insert_memories(waiting)
        learned = keeper.inserted_count if keeper else 0
        report = ports.RememberReport(acknowledged, self._finish_intake(), learned)
        if self._action:
            stored = [answer.id for answer in acknowledged if answer.stored]
            positions = self._session.positions_of(stored).values()
            changed = [(seq, "") for seq, _ in positions]
            undo.record_action(self._session, self._action, changed)
        return report

    def _answer_known(
        self, draft: ports.Draft, known: forgetting.Known | None, field: str
    ) -> values.Acknowledged | None:
        """Return the answer for a draft stored already, by id or text; None for a new draft.

        `known` is the stored record with the draft's id. Raises `IdTaken` about `field` if its text is another
        one.
        """
        memory = draft.memory
        if known is None:
            self._session.lock()
            said = self._session.execute(
                self._said,
                session=memory.session,
                hash=forgetting.content_hash(memory.content),
                content=memory.content,
                source=memory.source,
            ).fetchone()
            return said and values.Acknowledged(
                id=said[0], created_at=instant(said[1]), stored=False
            )
        content, created_at, words = known
        is_pruned = content == "" and words == forgetting.content_hash(memory.content)
        is_same = content == memory.content or is_pruned
        if not is_same:
            self._session.lock()
            # An earlier revision of it may have had exactly this text.
            position = self._session.position_of(memory.id)
            is_same = position is not None and bool(
                self._session.select_value(
                    "revision",
                    "1",
                    "LIMIT 1",
                    memory_seq=position[0],
                    content_hash=forgetting.content_hash(memory.content),
                )
            )
        if not is_same:
            raise errors.IdTaken(
                f"the id {memory.id!r} already belongs to something else; "
                "give this memory another id, or none",
                field=field,
            )
        return values.Acknowledged(id=memory.id, created_at=created_at, stored=False)

    @abstractmethod
    def _insert_memories(self, memories: Sequence[values.MemoryRecord]) -> None:
        """Insert memories with tags and validity, with ascending row numbers in this order."""

    @abstractmethod
    def _finish_intake(self) -> int:
        """Write index entries of the inserted memories; return how many memories the working tier has."""


# CROSS JOIN: SQLite takes the compactions of a recursion to be many.
_PARTS_BELOW = (
    'WITH RECURSIVE below (id) AS (SELECT %(id)s::text COLLATE "C" UNION '
    "SELECT c.part FROM below CROSS JOIN compacted AS c "
    "WHERE c.owner = %(owner)s AND c.compaction = below.id) "
    "SELECT c.compaction, c.part FROM below CROSS JOIN compacted AS c "
    "WHERE c.owner = %(owner)s AND c.compaction = below.id ORDER BY c.compaction, c.position"
)
"""Compaction and part of all compactions from which `id` goes on, in order."""
_ORIGINALS = ORIGINALS_BELOW.format("seq", "m.created_at, m.seq")


class RecordStore(StorePart):
    """Single memories and episodes, by id, and messages that compactions replaced by a summary."""

    def __init__(self, engine: Engine, intake: type[IntakeTransaction]) -> None:
        super().__init__(engine)
        self._intake = intake

    @reads
    def get(
        self, session: CommonSession, id: str
    ) -> values.MemoryRecord | values.Episode:
        """Return the memory or episode with this id. Raises `NotFound`."""
        memory = session.memories([id]).get(id)
        record = memory or state.episode_at(session, "id", id, details=True)
        if record is None:
            raise errors.NotFound(
                f"there is no memory {id!r}; `recall` shows the ids that exist",
                field="id",
            )
        return record

    @reads
    def originals(
        self, session: CommonSession, episode: str
    ) -> list[values.MemoryRecord]:
        """Return all original memories below a summary of any level, the oldest first."""
        seqs = session.column(_ORIGINALS, summary=episode)
        memories = session.memories_at(seqs)
        return [memories[seq] for seq in seqs]

    @reads
    def secrets(self, session: CommonSession, episode: str) -> list[Detail]:
        """Return the secrets in all original memories below a summary of any level."""
        return list(session.details_under(episode, secrets=True))

    @reads
    def summaries(
        self, session: CommonSession, ids: Sequence[str]
    ) -> list[values.Episode]:
        """Return the summaries with these ids, oldest first, without sources or details."""
        rows = session.select("episode", EPISODE_COLUMNS, id=ids)
        return sorted(
            map(episode_from, rows),
            key=lambda summary: (summary.covers_from, summary.id),
        )

    @reads
    def working(
        self, session: CommonSession, ids: Sequence[str]
    ) -> list[values.MemoryRecord]:
        """Return the memories in working memory with these ids, oldest first; leave out others."""
        memories = session.memories(ids).values()
        return [memory for memory in memories if memory.tier is values.Tier.WORKING]

    @reads
    def existing(
        self, session: CommonSession, ids: Sequence[str]
    ) -> list[values.MemoryRecord]:
        """Return the memories of both tiers with these ids, in any order; leave out unknown ids."""
        return list(session.memories(ids).values())

    @reads
    def working_count(self, session: CommonSession) -> int:
        """Return the number of memories in working memory."""
        count, _ = session.totals()[values.Tier.WORKING]
        return count

    @reads
    def history(self, session: CommonSession, id: str) -> list[values.MemoryRecord]:
        """Return up to `HISTORY_MAX` memories that a memory superseded, also through others, newest first."""
        position = session.position_of(id)
        older: list[values.MemoryRecord] = []
        newer: list[int] = [position[0]] if position else []
        while newer and len(older) < HISTORY_MAX:
            newer = session.select_column(
                "memory_state",
                "memory_seq",
                f"ORDER BY superseded_at DESC, memory_seq DESC LIMIT {HISTORY_MAX}",
                superseded_by=newer,
            )
            memories = session.memories_at(newer)
            older += [memories[seq] for seq in newer if seq in memories]
        return older[:HISTORY_MAX]

    def remember(
        self, drafts: Sequence[ports.Draft], *, action: values.Action | None = None
    ) -> ports.RememberReport:
        """Store the new drafts with their learnings, all or none; return an answer for every draft.

        Raises `IdTaken`, and `NotFound` for an unknown id that a draft should supersede.
        """
        return self._engine.write(self._intake(drafts, action).run)

    @writes
    def add_compactions(
        self, session: CommonSession, compactions: Sequence[ports.NewCompaction]
    ) -> dict[str, int]:
        """Store compactions and new messages, all or none; return bytes of stored text by message."""
        messages = {
            part.draft.memory.id: part
            for compaction in compactions
            for part in compaction.parts
            if isinstance(part, ports.ArchivedMessage)
        }
        known = {id: self._known_memory(session, messages[id]) for id in messages}
        homes = {id: home or id for id, home in known.items()}
        new = [messages[id].draft for id, home in known.items() if home is None]
        self._intake(new).run(session)
        for compaction in compactions:
            parts = tuple(
                homes[part.draft.memory.id]
                if isinstance(part, ports.ArchivedMessage)
                else part
                for part in compaction.parts
            )
            insert_compaction(session, replace(compaction.record, parts=parts))
        stored = {draft.memory.id: len(draft.memory.content.encode()) for draft in new}
        return {id: stored.get(id, 0) for id in homes.values()}

    def _known_memory(
        self, session: CommonSession, taken: ports.ArchivedMessage
    ) -> str | None:
        """Return the id of the memory that stores a message; None if the message is new.

        The memory has the same id or, if reuse is allowed, the same text, session, source, role and about time.
        """
        memory = taken.draft.memory
        if session.position_of(memory.id):
            return memory.id
        if not taken.may_reuse:
            return None
        earliest = latest = None
        if taken.has_timestamp:
            earliest = instants.shift(memory.created_at, -ABOUT)
            latest = instants.shift(memory.created_at, ABOUT)
        id: str | None = session.scalar(
            self._intake.same_message,
            hash=forgetting.content_hash(memory.content),
            content=memory.content,
            session=memory.session,
            source=memory.source,
            role=memory.role,
            earliest=earliest,
            latest=latest,
        )
        return id

    @reads
    def compaction(
        self, session: CommonSession, id: str
    ) -> tuple[ExportedCompaction, list[values.MemoryRecord]] | None:
        """Return a compaction and its remaining messages in conversation order; None if unknown."""
        found = COMPACTIONS.find(session, "AND id = %(id)s", id=id)
        if not found:
            return None
        parts: dict[str, list[str]] = {}
        for compaction, part in session.execute(_PARTS_BELOW, id=id):
            parts.setdefault(compaction, []).append(part)
        ids = list(dict.fromkeys(list_archived_memory_ids(parts, id)))
        memories = session.memories(ids)
        return found[0], [memories[id] for id in ids if id in memories]

    @reads
    def find_compaction(
        self, snapshot: CommonSession, text: str, *, session: str, source: str | None
    ) -> str | None:
        """Return the id of the newest compaction in a session and source with this summary, or None."""
        id: str | None = snapshot.scalar(
            "SELECT id FROM compaction WHERE owner = %(owner)s AND text_hash = %(hash)s "
            "AND session_id = %(session)s AND source IS NOT DISTINCT FROM %(source)s::text "
            "ORDER BY created_at DESC LIMIT 1",
            hash=forgetting.content_hash(text),
            session=session,
            source=source,
        )
        return id


def tier_totals(session: CommonSession) -> dict[values.Tier, values.TierTotals]:
    """Return the number of entries and characters, and the earliest time, of each tier.

    The earliest time of the archive is that of its first episode.
    """
    working = session.select_value("fresh", "min(created_at)")
    episodes = session.select_value("episode", "min(covers_from)")
    totals = session.totals()
    return {
        tier: values.TierTotals(*totals[tier], optional_instant(oldest))
        for tier, oldest in (
            (values.Tier.WORKING, working),
            (values.Tier.EPISODIC, episodes),
            (values.Tier.ARCHIVE, episodes),
        )
    }


def insert_compaction(session: CommonSession, compaction: ExportedCompaction) -> bool:
    """Insert a compaction with its parts in order, unless the id is stored; return whether it was inserted."""
    if not COMPACTIONS.add(session, compaction, UNLESS_KNOWN):
        return False
    session.insert_each(
        "compacted",
        [
            {"compaction": compaction.id, "position": position, "part": part}
            for position, part in enumerate(compaction.parts)
        ],
    )
    return True
