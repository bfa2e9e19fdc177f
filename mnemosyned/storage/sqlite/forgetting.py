"""Forgetting: memories and learnings are selected by a filter, and deleted with all their traces."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from typing import Any

from mnemosyned.memory.edit import in_force_again
from mnemosyned.memory.fields import NAMING_FIELDS
from mnemosyned.memory.forgetting import (
    ForgetFilter,
    Grace,
    Newest,
    Removal,
    is_named_in,
    name_matcher,
)
from mnemosyned.memory.intake import is_made_of_source, keys_of_forgotten
from mnemosyned.memory.ports import DeletionStore
from mnemosyned.storage.common.episodes import invalidate
from mnemosyned.storage.common.filters import tag_conditions
from mnemosyned.storage.common.forgetting import chosen_conditions
from mnemosyned.storage.common.grace import save_learnings, save_memories
from mnemosyned.storage.common.learnings import remove_learnings, remove_learnings_of
from mnemosyned.storage.common.session import BELOW, reads, writes
from mnemosyned.storage.common.state import request_purge
from mnemosyned.storage.sqlite.connections import Readers
from mnemosyned.storage.sqlite.copies import NAMING
from mnemosyned.storage.sqlite.filters import bind_by_place
from mnemosyned.storage.sqlite.fulltext import (
    any_of,
    glued_terms,
    index_memories,
    unindex_memory,
)
from mnemosyned.storage.sqlite.memories import chunks, leave_secrets
from mnemosyned.storage.sqlite.purge import Purge
from mnemosyned.storage.sqlite.session import SqliteSession
from mnemosyned.storage.sqlite.writer import SqlitePart, Writer
from mnemosyned.text.stems import accent_variants
from mnemosyned.text.terms import Terms

CHUNK = 500
_TABLES = {
    "working_memory": "content",
    "archive": "iif(content != '', content, ifnull("
    "(SELECT group_concat(value, ' ') FROM detail WHERE memory_seq = seq), ''))",
}
"""Tables with the text of their memories; what a pruned one has left are its exact values."""
_NAMED = ", ".join(f"ifnull({field.column}, '')" for field in NAMING_FIELDS)
_FORMER = " || ' ' || ".join(
    f"ifnull(r.fields ->> '{name}', '')"
    for name in ("role", *(field.name for field in NAMING_FIELDS if field.editable))
)
_EARLIER = (
    f"ifnull((SELECT group_concat(ifnull(r.content, '') || ' ' || {_FORMER}, ' ') "
    "FROM revision AS r WHERE r.memory_seq = {table}.seq), '')"
)
"""What a memory was before it was edited."""
_INDEXES = ("memory_fts", "memory_gram_fts")


def selected_memories(session: SqliteSession, choice: ForgetFilter) -> list[str]:
    """Return the ids of the memories that match all criteria of a filter."""
    where, values = bind_by_place(
        [
            *chosen_conditions(choice, choice.newest.memory if choice.newest else None),
            *tag_conditions(choice.tags, "seq"),
        ]
    )
    having = _positions_with_terms(session, choice.terms) if choice.terms else None
    named = name_matcher(choice.person) if choice.person else None
    ids: dict[str, None] = {}
    for table, text in _TABLES.items():
        columns = (
            f"id, role, {_NAMED}, {text}, {_EARLIER.format(table=table)}"
            if named
            else "id"
        )
        for narrowed, further in _narrow_to_positions(where, values, having):
            rows = session.execute(
                f"SELECT {columns} FROM {table} WHERE 1{narrowed} ORDER BY seq", further
            )
            for id, *texts in rows:
                if is_named_in(texts, named):
                    ids[id] = None
    return list(ids)


def _narrow_to_positions(
    where: str, values: Sequence[Any], having: set[int] | None
) -> Iterator[tuple[str, Sequence[Any]]]:
    """Yield a filter's condition and values for each chunk of positions; once if `having` is None."""
    if having is None:
        yield where, values
        return
    positions = sorted(having)
    for start in range(0, len(positions), CHUNK):
        chunk = positions[start : start + CHUNK]
        yield f"{where} AND seq IN ({', '.join('?' * len(chunk))})", [*values, *chunk]


def _positions_with_terms(session: SqliteSession, terms: Terms) -> set[int]:
    """Return the row numbers of memories whose index entries have all terms."""
    found: set[int] | None = None
    for term in (*terms.words, *terms.grams):
        here: set[int] = set()
        for table in _INDEXES[term in terms.grams :]:
            forms = [term, *accent_variants(term)]
            if table == "memory_gram_fts":
                forms += [*map(glued_terms, forms)]
            rows = session.execute(
                f"SELECT rowid FROM {table} WHERE {table} MATCH ?", (any_of(forms),)
            )
            here.update(seq for (seq,) in rows)
        found = here if found is None else found & here
        if not found:
            break
    return found or set()


def selected_learnings(session: SqliteSession, choice: ForgetFilter) -> list[str]:
    """Return the ids of the learnings that match all criteria of a filter; none if it has tags."""
    if choice.excludes_summaries:
        return []
    where, values = bind_by_place(
        chosen_conditions(choice, choice.newest.learning if choice.newest else None)
    )
    named = name_matcher(choice.person) if choice.person else None
    rows = session.execute(
        f"SELECT seq, id, text, ifnull(session_id, ''), ifnull(source, '') FROM learning "
        f"WHERE 1{where}",
        values,
    ).fetchall()
    having = _texts_with_terms(session, rows, choice.terms) if choice.terms else None
    return [
        id
        for seq, id, *texts in rows
        if (having is None or seq in having) and is_named_in(texts, named)
    ]


def _texts_with_terms(
    session: SqliteSession, rows: Sequence[Sequence[Any]], terms: Terms
) -> set[int]:
    """Return the row numbers of the texts that have all terms.

    Learnings have no index of their own: a temporary one is made for the search.
    """
    with closing(sqlite3.connect(":memory:", factory=SqliteSession)) as beside:
        for (definition,) in session.execute(
            f"SELECT sql FROM sqlite_master WHERE name IN ({', '.join('?' * len(_INDEXES))})",
            _INDEXES,
        ):
            beside.execute(definition)
        index_memories(beside, [(seq, text, "") for seq, _, text, *_ in rows])
        return _positions_with_terms(beside, terms)


KEYED_BY_MEMORY = ("memory_state", "tag", "revision")
"""The tables that keep something of a memory under its `memory_seq`, wherever the memory is. What
is made of its words (such as a vector) joins in here; `detail` goes with the archive's row."""


class SqliteDeletion(SqlitePart, DeletionStore):
    """A `DeletionStore` on one SQLite file."""

    def __init__(self, writer: Writer, readers: Readers, purge: Purge) -> None:
        super().__init__(writer, readers)
        self._purge = purge

    @reads
    def select(self, session: SqliteSession, choice: ForgetFilter) -> list[str]:
        """Return the ids of the memories that match a filter."""
        return selected_memories(session, choice)

    @reads
    def select_learnings(
        self, session: SqliteSession, choice: ForgetFilter
    ) -> list[str]:
        """Return the ids of the learnings that match a filter."""
        return selected_learnings(session, choice)

    @reads
    def newest(self, session: SqliteSession) -> Newest:
        """Return the row numbers of the last memory and the last learning."""
        memory, learning = session.execute(
            "SELECT max((SELECT ifnull(max(seq), 0) FROM working_memory), "
            "(SELECT ifnull(max(seq), 0) FROM archive)), "
            "(SELECT ifnull(max(seq), 0) FROM learning)"
        ).fetchone()
        return Newest(memory, learning)

    @reads
    def ids_under(self, session: SqliteSession, summary: str) -> list[str]:
        """Return the ids of all originals under a summary of any level."""
        rows = session.execute(
            f"{BELOW} SELECT a.id FROM below CROSS JOIN archive AS a ON a.episode_seq = below.seq "
            "ORDER BY a.seq",
            summary=summary,
        )
        return [id for (id,) in rows]

    @reads
    def preview(
        self,
        session: SqliteSession,
        ids: Sequence[str],
        *,
        learned: Sequence[str] = (),
    ) -> Removal:
        """Return the counts and ids that forgetting these memories and learnings would remove."""
        removal = Removal()
        leaving: dict[int, int] = {}
        wordless: dict[int, int] = {}
        unlearned = set(learned)
        for chunk in chunks(ids):
            marks = ", ".join("?" * len(chunk))
            (working,) = session.execute(
                f"SELECT count(*) FROM working_memory WHERE id IN ({marks})", chunk
            ).fetchone()
            unlearned.update(
                id
                for (id,) in session.execute(
                    f"SELECT id FROM learning WHERE memory_id IN ({marks})", chunk
                )
            )
            archived = details = 0
            for episode, count, without_words, values in session.execute(
                "SELECT episode_seq, count(*), sum(content = ''), "
                "sum((SELECT count(*) FROM detail WHERE memory_seq = seq)) "
                f"FROM archive WHERE id IN ({marks}) GROUP BY episode_seq",
                chunk,
            ):
                leaving[episode] = leaving.get(episode, 0) + count
                wordless[episode] = wordless.get(episode, 0) + without_words
                archived += count
                details += values
            removal |= Removal(working=working, archived=archived, details=details)
        in_force, rewritten = _find_in_force_again(session, ids)
        leaving |= dict.fromkeys(rewritten - leaving.keys(), 0)
        removed, emptied = _preview_summaries(session, leaving)
        return removal | Removal(
            removed=removed,
            emptied=emptied,
            learnings=len(unlearned),
            pruned=sum(wordless.values()),
            in_force=in_force,
            pruned_losing_summary=_count_pruned_without_summary(session, wordless),
        )

    @writes
    def forget(
        self,
        session: SqliteSession,
        ids: Sequence[str],
        *,
        grace: Grace | None = None,
    ) -> Removal:
        """Delete memories, empty or delete their summaries, and request a purge; return what changed.

        With `grace` they can be put back until it ends, and the purge waits. Unknown ids are
        skipped.
        """
        working = archived = details = unlearned = pruned = 0
        indexed: list[tuple[int, str, str]] = []
        in_force, episodes = _find_in_force_again(session, ids)
        if grace:  # before any is deleted that another one refers to
            places = session.positions_of(ids).values()
            save_memories(session, [seq for seq, _ in places], grace)
        for id in ids:
            if is_made_of_source(id):
                _save_source_keys(session, id)
            deleted: tuple[int, str, str] | None = session.execute(
                "DELETE FROM working_memory WHERE id = ? RETURNING seq, content, role",
                (id,),
            ).fetchone()
            if deleted:
                working += 1
            else:
                original = _delete_original(session, id)
                if original is None:
                    continue
                deleted, episode, detail_count = original
                archived += 1
                pruned += not deleted[1]
                episodes.add(episode)
                details += detail_count
            unlearned += remove_learnings_of(session, [id])
            indexed.append(deleted)
            _delete_state(session, deleted[0])
        # After all rows, as when they were remembered.
        for seq, content, role in indexed:
            unindex_memory(session, seq, content, role)
        removed, emptied = invalidate(session, episodes)
        # Exact values of pruned ones go at once.
        if (working or archived) and (pruned or not grace):
            request_purge(session)
        return Removal(
            working=working,
            archived=archived,
            details=details,
            learnings=unlearned,
            pruned=pruned,
            in_force=in_force,
            removed=removed,
            emptied=emptied,
        )

    @writes
    def forget_learnings(
        self,
        session: SqliteSession,
        ids: Sequence[str],
        *,
        grace: Grace | None = None,
    ) -> Removal:
        """Delete learnings and request a purge; return the counts.

        With `grace` copies are saved, to be restored on request until the grace period ends.
        """
        if grace:
            save_learnings(session, ids, grace)
        removal = Removal(learnings=remove_learnings(session, ids))
        if removal.learnings and not grace:
            request_purge(session)
        return removal

    @reads
    def orphaned_log_names(self, session: SqliteSession) -> tuple[list[str], list[str]]:
        """Return the sessions and sources in logs and compactions that no memory has."""
        orphaned = []
        for column in ("session_id", "source"):
            named = " UNION ".join(
                f"SELECT {column} FROM {table} WHERE {column} != ''" for table in NAMING
            )
            rows = session.execute(
                f"{named} "
                f"EXCEPT SELECT {column} FROM working_memory "
                f"EXCEPT SELECT {column} FROM episodic_memory"
            )
            orphaned.append([name for (name,) in rows])
        sessions, sources = orphaned
        return sessions, sources

    @writes
    def forget_names(
        self,
        session: SqliteSession,
        *,
        sessions: Iterable[str],
        sources: Iterable[str],
    ) -> None:
        """Erase these sessions and sources from logs and compactions."""
        for column, names, nameless in (
            ("session_id", sessions, ""),
            ("source", sources, None),
        ):
            for chunk in chunks(sorted(names)):
                marks = ", ".join("?" * len(chunk))
                alive = {
                    name
                    for table in ("working_memory", "episodic_memory")
                    for (name,) in session.execute(
                        f"SELECT DISTINCT {column} FROM {table} WHERE {column} IN ({marks})",
                        chunk,
                    )
                }
                gone = [name for name in chunk if name not in alive]
                for table in NAMING:
                    session.execute(
                        f"UPDATE {table} SET {column} = ? "
                        f"WHERE {column} IN ({', '.join('?' * len(gone))})",
                        (nameless, *gone),
                    )

    def purge_due(self) -> bool:
        return self._purge.due()

    def purge_deleted(self) -> bool:
        return self._purge.run()

    def beyond_purge(self) -> tuple[str, ...]:
        return ()


def _save_source_keys(session: SqliteSession, id: str) -> None:
    """Save keys of forgotten memories, by which a second reading of their source skips them."""
    row = session.execute(
        "SELECT seq, session_id, source, content_hash FROM working_memory WHERE id = ? "
        "UNION ALL "
        "SELECT seq, session_id, source, content_hash FROM archive WHERE id = ?",
        (id, id),
    ).fetchone()
    if row is None:
        return
    seq, name, source, said = row
    before = session.execute(
        "SELECT content_hash FROM revision WHERE memory_seq = ?", (seq,)
    )
    hashes = [said, *(each for (each,) in before)]
    session.executemany(
        "INSERT OR IGNORE INTO agent_forgotten VALUES (?)",
        [(key,) for key in keys_of_forgotten(id, name, source, hashes)],
    )


def _find_in_force_again(
    session: SqliteSession, ids: Sequence[str]
) -> tuple[frozenset[str], set[int]]:
    """Return the ids of superseded memories that a deletion puts in force again.

    Also return the row numbers of their episodes, which are to be rewritten.
    """
    gone: set[int] = set()
    successors: dict[int, int | None] = {}
    again: set[str] = set()
    episodes: set[int] = set()
    for chunk in chunks(ids):
        marks = ", ".join("?" * len(chunk))
        rows = session.execute(
            f"SELECT seq FROM working_memory WHERE id IN ({marks}) "
            f"UNION ALL SELECT seq FROM archive WHERE id IN ({marks})",
            (*chunk, *chunk),
        )
        gone.update(seq for (seq,) in rows)
    for places in chunks(sorted(gone)):
        marks = ", ".join("?" * len(places))
        successors.update(
            session.execute(
                "SELECT memory_seq, superseded_by FROM memory_state "
                f"WHERE superseded_by IN ({marks}) UNION ALL "
                "SELECT memory_seq, superseded_by FROM memory_state "
                f"WHERE memory_seq IN ({marks}) AND superseded_at IS NOT NULL",
                (*places, *places),
            )
        )
    for seq in in_force_again(successors, gone):
        for id, episode in session.execute(
            "SELECT id, NULL FROM working_memory WHERE seq = ? "
            "UNION ALL SELECT id, episode_seq FROM archive WHERE seq = ?",
            (seq, seq),
        ):
            again.add(id)
            if episode is not None and not session.has_pruned(episode):
                episodes.add(episode)
    return frozenset(again), episodes


def _count_pruned_without_summary(
    session: SqliteSession, leaving: dict[int, int]
) -> int:
    """Return how many pruned originals would lose their summary, the last trace of their text.

    `leaving` counts by episode the pruned originals that are deleted themselves.
    """
    return sum(
        session.execute(
            "SELECT count(*) FROM archive WHERE episode_seq = ? AND content = ''",
            (episode,),
        ).fetchone()[0]
        - count
        for episode, count in leaving.items()
    )


def _preview_summaries(
    session: SqliteSession, leaving: dict[int, int]
) -> tuple[frozenset[int], frozenset[int]]:
    """Return the row numbers of summaries to be deleted, and of summaries to be emptied.

    `leaving` counts the deleted originals by episode. A summary that loses all of its sources is
    deleted; the summaries above follow, level by level.
    """
    removed: set[int] = set()
    emptied: set[int] = set()
    while leaving:  # ends, as each step goes up a level
        above: dict[int, int] = {}
        for seq, count in leaving.items():
            parts, parent = session.execute(
                "SELECT (SELECT count(*) FROM archive WHERE episode_seq = e.seq) "
                "+ (SELECT count(*) FROM episodic_memory WHERE parent_id = e.id), "
                "(SELECT seq FROM episodic_memory WHERE id = e.parent_id) "
                "FROM episodic_memory AS e WHERE e.seq = ?",
                (seq,),
            ).fetchone()
            gone = count >= parts
            (removed if gone else emptied).add(seq)
            if parent is not None:
                above[parent] = above.get(parent, 0) + gone
        leaving = above
    return frozenset(removed), frozenset(emptied - removed)


def _delete_original(
    session: SqliteSession, id: str
) -> tuple[tuple[int, str, str], int, int] | None:
    """Delete an archived original; None if there is none with this id.

    Return its row number, text and role, then the row number of its episode and its count of
    details.
    """
    row = session.execute(
        "SELECT seq, content, role, episode_seq, "
        "(SELECT count(*) FROM detail WHERE memory_seq = seq) FROM archive WHERE id = ?",
        (id,),
    ).fetchone()
    if row is None:
        return None
    seq, content, role, episode, detail_count = row
    leave_secrets(session, seq, episode)
    session.execute("DELETE FROM archive WHERE seq = ?", (seq,))
    return (seq, content, role), episode, detail_count


def _delete_state(session: SqliteSession, seq: int) -> None:
    """Delete the validity, tags and revisions of a memory.

    Memories that it superseded are now superseded by its successor, or are in force again.
    """
    session.execute(
        "UPDATE memory_state AS older SET (superseded_by, superseded_at) = "
        "(SELECT superseded_by, iif(superseded_at IS NULL, NULL, older.superseded_at) "
        "FROM (SELECT 1) LEFT JOIN memory_state ON memory_seq = ?) WHERE superseded_by = ?",
        (seq, seq),
    )
    for table in KEYED_BY_MEMORY:
        session.execute(f"DELETE FROM {table} WHERE memory_seq = ?", (seq,))
