"""Forgetting: memories and learnings are selected by a filter, and deleted with all their traces."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import msgspec

from mnemosyned.memory.edit import in_force_again
from mnemosyned.memory.fields import NAMING_FIELDS, column_list
from mnemosyned.memory.forgetting import (
    ForgetFilter,
    Grace,
    Newest,
    Removal,
    name_matcher,
)
from mnemosyned.memory.intake import content_hash, is_made_of_source, keys_of_forgotten
from mnemosyned.memory.ports import DeletionStore
from mnemosyned.memory.values import Tier
from mnemosyned.storage.common.episodes import invalidate
from mnemosyned.storage.common.filters import Condition, tag_conditions
from mnemosyned.storage.common.forgetting import chosen_conditions
from mnemosyned.storage.common.grace import save_learnings, save_memories
from mnemosyned.storage.common.learnings import remove_learnings, remove_learnings_of
from mnemosyned.storage.common.session import BELOW, Row, reads, writes
from mnemosyned.storage.common.state import request_purge
from mnemosyned.storage.postgres import purge
from mnemosyned.storage.postgres.filters import postgres_filter
from mnemosyned.storage.postgres.fulltext import (
    gram_term_hashes,
    gram_words,
    index_words,
    phrase_hashes,
)
from mnemosyned.storage.postgres.memories import leave_secrets
from mnemosyned.storage.postgres.pool import PostgresPart
from mnemosyned.storage.postgres.rows import OF_IDS, values_of
from mnemosyned.storage.postgres.session import PostgresSession
from mnemosyned.text.stems import accent_variants
from mnemosyned.text.terms import Terms, glued_words, gram_text

_MEMORIES = (
    "memory AS m LEFT JOIN fresh AS f ON f.owner = m.owner AND f.seq = m.seq "
    "WHERE m.owner = %(owner)s"
)
_ORDER = "ORDER BY f.seq IS NULL, m.seq"
"""Working memory first."""
_DETAILS = (
    "(SELECT ARRAY[p.details, p.secrets] FROM placed AS p "
    "WHERE m.content = '' AND p.owner = %(owner)s AND p.seq = m.seq)"
)
"""What a pruned memory has left are its exact values."""
_EARLIER = (
    "(SELECT array_agg(ARRAY[coalesce(r.content, ''), r.fields] ORDER BY r.seq) "
    "FROM revision AS r WHERE r.owner = %(owner)s AND r.memory_seq = m.seq)"
)
"""What a memory was before it was edited."""
_NAMED = f"{column_list(NAMING_FIELDS, 'm.')}, {_DETAILS}, {_EARLIER}"
"""All that may mention a person, besides the words and their speaker."""
_EARLIER_FIELDS = ("role", *(field.name for field in NAMING_FIELDS if field.editable))


def selected_memories(session: PostgresSession, choice: ForgetFilter) -> list[str]:
    """Return the ids of the memories that match all criteria of a filter."""
    narrow = postgres_filter(
        [
            *chosen_conditions(
                choice, choice.newest.memory if choice.newest else None, "m.{}"
            ),
            *tag_conditions(choice.tags, row_by_row=False),
            *(
                [_all_terms_condition(session.owner, choice.terms)]
                if choice.terms
                else []
            ),
        ]
    )
    is_meant = _text_checks(choice)
    if not is_meant:
        ids = session.execute(
            f"SELECT m.id FROM {_MEMORIES}{narrow.where} {_ORDER}", **narrow.values
        )
        return [id for (id,) in ids]
    named = _NAMED if choice.person else "NULL"
    rows = session.stream(
        f"SELECT m.id, m.content, m.role, {named} FROM {_MEMORIES}{narrow.where} {_ORDER}",
        **narrow.values,
    )
    return [row[0] for row in rows if all(check(row) for check in is_meant)]


def _text_checks(choice: ForgetFilter) -> list[Callable[[Row], bool]]:
    """Return functions that check the texts of a row found by the indexes against a filter."""
    checks: list[Callable[[Row], bool]] = []
    if choice.terms:
        holds = _build_term_matcher(choice.terms)
        checks.append(lambda row: holds(row[1:3]))
    if choice.person:
        named = name_matcher(choice.person)
        checks.append(lambda row: any(map(named, _all_texts(row[1:]))))
    return checks


def _all_texts(row: Row) -> list[str]:
    """Return a memory's content, speaker, session, source and metadata, and the same of revisions."""
    content, role, *naming, details, earlier = row
    values = " ".join(value for _, value in values_of(*details or (None, None)))
    texts = [content or values, role, *(text or "" for text in naming)]
    for text, fields in earlier or ():
        before: dict[str, Any] = msgspec.json.decode(fields)
        texts.append(
            " ".join([text, *(before.get(name) or "" for name in _EARLIER_FIELDS)])
        )
    return texts


def _all_terms_condition(owner: int, terms: Terms) -> Condition:
    """Return the condition for memories whose index entries have the hashes of all terms.

    Different words may share a hash, and the parts of a code may stand apart: the text is compared
    when a row is read.
    """
    has = [
        _term_condition(owner, term, number, only_grams=term in terms.grams)
        for number, term in enumerate((*terms.words, *terms.grams))
    ]
    every, values = " AND ".join(each.text for each in has), dict[str, object]()
    for each in has:
        values |= each.values
    text = (
        "m.seq IN (SELECT i.seq FROM memory_index AS i "
        f"WHERE i.owner = %(owner)s AND {every})"
    )
    return Condition(text, values)


def _term_condition(
    owner: int, term: str, number: int, *, only_grams: bool
) -> Condition:
    """Return the condition for index entries with any spelling of a term; `number` names its values."""
    texts = _spellings(term)
    phrases: dict[str, list[list[int]]] = {
        "grams": [gram_term_hashes(owner, text) for text in texts]
    }
    if not only_grams:
        phrases["words"] = [phrase_hashes(owner, text) for text in texts]
    clauses: list[str] = []
    values: dict[str, object] = {}
    for column, hashes in phrases.items():
        for place, phrase in enumerate(filter(None, hashes)):
            name = f"{column}_{number}_{place}"
            clauses.append(f"i.{column} @> %({name})s::integer[]")
            values[name] = phrase
    return Condition(f"({' OR '.join(clauses) or 'false'})", values)


def _spellings(term: str) -> list[str]:
    """Return a term and its variants with accents."""
    return [term, *accent_variants(term)]


class _TermForms(NamedTuple):
    """The index terms of a search term in each of its spellings."""

    words: list[list[str]]
    grams: list[list[str]]

    @classmethod
    def from_term(cls, term: str, *, only_grams: bool) -> _TermForms:
        """Return the index terms of all spellings; with `only_grams` none for the first index."""
        texts = _spellings(term)
        words = () if only_grams else map(index_words, texts)
        return cls(
            list(filter(None, words)), list(filter(None, map(gram_words, texts)))
        )

    def occur_in(self, texts: Sequence[Sequence[str]], parts: Sequence[str]) -> bool:
        """Return whether any form occurs in one of the stemmed texts, or in the terms of grams."""
        return any(
            _has_phrase(phrase, text) for phrase in self.words for text in texts
        ) or any(_has_phrase(phrase, parts) for phrase in self.grams)


def _build_term_matcher(terms: Terms) -> Callable[[Sequence[str]], bool]:
    """Return a function that tells whether a memory's texts contain all of these terms.

    The texts are compared as the full-text indexes do: words by their stems, grams as they are. The
    first text is the content.
    """
    wanted = [
        _TermForms.from_term(term, only_grams=term in terms.grams)
        for term in (*terms.words, *terms.grams)
    ]

    def holds(texts: Sequence[str]) -> bool:
        stems = [index_words(text) for text in (*texts, *glued_words(texts[0]))]
        parts = gram_words(gram_text(texts[0]))
        return all(forms.occur_in(stems, parts) for forms in wanted)

    return holds


def _has_phrase(phrase: Sequence[str], words: Sequence[str]) -> bool:
    """Return whether the words of a phrase occur next to each other in `words`."""
    length = len(phrase)
    if length == 1:
        return phrase[0] in words
    return any(
        words[start : start + length] == phrase
        for start, word in enumerate(words)
        if word == phrase[0]
    )


def selected_learnings(session: PostgresSession, choice: ForgetFilter) -> list[str]:
    """Return the ids of the learnings that match all criteria of a filter; none if it has tags."""
    if choice.excludes_summaries:
        return []
    newest = choice.newest.learning if choice.newest else None
    narrow = postgres_filter(chosen_conditions(choice, newest, "l.{}"))
    rows = session.stream(
        "SELECT l.id, l.text, coalesce(l.session_id, ''), coalesce(l.source, '') "
        f"FROM learning AS l WHERE l.owner = %(owner)s{narrow.where} ORDER BY l.seq",
        **narrow.values,
    )
    holds = _build_term_matcher(choice.terms) if choice.terms else None
    named = name_matcher(choice.person) if choice.person else None
    return [
        id
        for id, *texts in rows
        if (holds is None or holds(texts[:1]))
        and (named is None or any(map(named, texts)))
    ]


NAMING = ("consolidation_log", "compaction")
"""The tables that name sessions and sources, and outlive the memories of these."""
_NAMES = (("session_id", ""), ("source", None))
"""The columns of names, and what a row has without one."""
_ALIVE = (
    "(EXISTS (SELECT 1 FROM memory AS m WHERE m.owner = %(owner)s AND m.{0} = n.name) "
    "OR EXISTS (SELECT 1 FROM episode AS e WHERE e.owner = %(owner)s AND e.{0} = n.name))"
)


class PostgresDeletion(PostgresPart, DeletionStore):
    """A `DeletionStore` of one owner in PostgreSQL."""

    @reads
    def select(self, session: PostgresSession, choice: ForgetFilter) -> list[str]:
        """Return the ids of the memories that match a filter."""
        return selected_memories(session, choice)

    @reads
    def select_learnings(
        self, session: PostgresSession, choice: ForgetFilter
    ) -> list[str]:
        """Return the ids of the learnings that match a filter."""
        return selected_learnings(session, choice)

    @reads
    def newest(self, session: PostgresSession) -> Newest:
        """Return the row numbers of the last memory and the last learning."""
        return Newest(
            _last_number(session, "memory"), _last_number(session, "learning")
        )

    @reads
    def ids_under(self, session: PostgresSession, summary: str) -> list[str]:
        """Return the ids of all originals under a summary of any level."""
        rows = session.execute(
            f"{BELOW} SELECT m.id FROM below "
            "JOIN placed AS p ON p.owner = %(owner)s AND p.episode_seq = below.seq "
            "JOIN memory AS m ON m.owner = %(owner)s AND m.seq = p.seq ORDER BY m.seq",
            summary=summary,
        )
        return [id for (id,) in rows]

    @reads
    def preview(
        self,
        session: PostgresSession,
        ids: Sequence[str],
        *,
        learned: Sequence[str] = (),
    ) -> Removal:
        """Return the counts and ids that forgetting these memories and learnings would remove."""
        found = _find_memories(session, ids)
        originals = [memory for memory in found if memory.episode is not None]
        leaving: dict[int, int] = {}
        wordless: dict[int, int] = {}
        for memory in originals:
            episode = memory.episode or 0
            leaving[episode] = leaving.get(episode, 0) + 1
            wordless[episode] = wordless.get(episode, 0) + (not memory.characters)
        in_force, rewritten = _find_in_force_again(session, found)
        leaving |= dict.fromkeys(rewritten - leaving.keys(), 0)
        removed, emptied = _preview_summaries(session, leaving)
        return Removal(
            working=len(found) - len(originals),
            archived=len(originals),
            details=sum(memory.details for memory in originals),
            removed=removed,
            emptied=emptied,
            learnings=_count_deleted_learnings(session, ids, learned),
            pruned=sum(wordless.values()),
            in_force=in_force,
            pruned_losing_summary=_count_pruned_without_summary(session, wordless),
        )

    @writes
    def forget(
        self,
        session: PostgresSession,
        ids: Sequence[str],
        *,
        grace: Grace | None = None,
    ) -> Removal:
        """Delete memories, empty or delete their summaries, and request a purge; return what changed.

        With `grace` they can be put back until it ends, and the purge waits. Unknown ids are
        skipped.
        """
        found = _find_memories(session, ids)
        if grace:
            save_memories(session, [memory.seq for memory in found], grace)
        known = [memory.id for memory in found]
        unlearned = remove_learnings_of(session, known)
        _save_source_keys(session, known)
        in_force, rewritten = _find_in_force_again(session, found)
        _relink_supersessions(session, [memory.seq for memory in found])
        episodes = _keep_secrets_of_others(session, found) | rewritten
        _delete_rows(session, found)
        removed, emptied = invalidate(session, episodes)
        pruned = sum(not memory.characters for memory in found)
        if found and (pruned or not grace):  # exact values of pruned ones go at once
            request_purge(session)
        originals = [memory for memory in found if memory.episode is not None]
        return Removal(
            working=len(found) - len(originals),
            archived=len(originals),
            details=sum(memory.details for memory in originals),
            learnings=unlearned,
            pruned=pruned,
            in_force=in_force,
            removed=removed,
            emptied=emptied,
        )

    @writes
    def forget_learnings(
        self,
        session: PostgresSession,
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
    def orphaned_log_names(
        self, session: PostgresSession
    ) -> tuple[list[str], list[str]]:
        """Return the sessions and sources in logs and compactions that no memory has."""
        orphaned = []
        for column, _ in _NAMES:
            named = " UNION ".join(
                f"SELECT {column} FROM {table} "
                f"WHERE owner = %(owner)s AND {column} != ''"
                for table in NAMING
            )
            rows = session.execute(
                f"SELECT n.name FROM ({named}) AS n (name) "
                f"WHERE NOT {_ALIVE.format(column)} ORDER BY n.name"
            )
            orphaned.append([name for (name,) in rows])
        sessions, sources = orphaned
        return sessions, sources

    @writes
    def forget_names(
        self,
        session: PostgresSession,
        *,
        sessions: Iterable[str],
        sources: Iterable[str],
    ) -> None:
        """Erase these sessions and sources from logs and compactions."""
        for (column, nameless), names in zip(_NAMES, (sessions, sources), strict=True):
            rows = session.execute(
                "SELECT n.name FROM unnest(%(names)s::text[]) AS n (name) "
                f"WHERE NOT {_ALIVE.format(column)}",
                names=sorted(names),
            )
            gone = [name for (name,) in rows]
            for table in NAMING if gone else ():
                session.execute(
                    f"UPDATE {table} SET {column} = %(nameless)s::text "
                    f"WHERE owner = %(owner)s AND {column} = ANY(%(gone)s::text[])",
                    nameless=nameless,
                    gone=gone,
                )

    def purge_due(self) -> bool:
        return purge.is_purge_due(self._pool, self._owner)

    def purge_deleted(self) -> bool:
        return purge.purge_owner(self._pool, self._owner)

    def beyond_purge(self) -> tuple[str, ...]:
        return purge.BEYOND


class _FoundMemory(NamedTuple):
    """A memory that is to be deleted; `episode` is None in working memory."""

    seq: int
    id: str
    characters: int
    episode: int | None
    details: int


def _find_memories(session: PostgresSession, ids: Sequence[str]) -> list[_FoundMemory]:
    """Return the existing memories among these ids, with size, episode and number of details."""
    rows = session.execute(
        "SELECT m.seq, m.id, length(m.content), p.episode_seq, p.details, p.secrets "
        "FROM memory AS m LEFT JOIN placed AS p ON p.owner = m.owner AND p.seq = m.seq "
        f"WHERE m.owner = %(owner)s AND {OF_IDS} ORDER BY m.seq",
        ids=list(ids),
    )
    return [
        _FoundMemory(
            seq, id, characters, episode, details=len(values_of(plain, secret))
        )
        for seq, id, characters, episode, plain, secret in rows
    ]


def _last_number(session: PostgresSession, table: str) -> int:
    """Return the highest row number in a table, 0 if it is empty."""
    last: int | None = session.scalar(
        f"SELECT max(seq) FROM {table} WHERE owner = %(owner)s"
    )
    return last or 0


def _count_deleted_learnings(
    session: PostgresSession, ids: Sequence[str], learned: Sequence[str]
) -> int:
    """Return how many learnings a deletion removes: those of the memories and those in `learned`."""
    rows = session.execute(
        "SELECT id FROM learning "
        "WHERE owner = %(owner)s AND memory_id = ANY(%(ids)s::text[])",
        ids=list(ids),
    )
    return len({*learned, *(id for (id,) in rows)})


def _save_source_keys(session: PostgresSession, ids: Sequence[str]) -> None:
    """Save keys of forgotten memories, by which a second reading of their source skips them."""
    rows = session.execute(
        "SELECT m.id, m.session_id, m.source, m.content, m.content_hash, "
        "ARRAY(SELECT r.content_hash FROM revision AS r "
        "WHERE r.owner = %(owner)s AND r.memory_seq = m.seq) "
        f"FROM memory AS m WHERE m.owner = %(owner)s AND {OF_IDS}",
        ids=[id for id in ids if is_made_of_source(id)],
    )
    keys: set[str] = set()
    for id, name, source, content, said, before in rows:
        hashes = [content_hash(content) if said is None else said, *before]
        keys |= keys_of_forgotten(id, name, source, hashes)
    if keys:
        session.execute(
            "INSERT INTO agent_forgotten (owner, id) "
            "SELECT o.owner, r.id FROM owner AS o CROSS JOIN unnest(%(ids)s::text[]) AS r (id) "
            "WHERE o.owner = %(owner)s ON CONFLICT DO NOTHING",
            ids=list(keys),
        )


def _relink_supersessions(session: PostgresSession, seqs: Sequence[int]) -> None:
    """Let the next successor supersede the memories that the deleted ones had superseded.

    Without such a successor they are in force again.
    """
    rows = session.execute(
        "SELECT DISTINCT superseded_by FROM memory_state "
        "WHERE owner = %(owner)s AND superseded_by = ANY(%(seqs)s::bigint[])",
        seqs=list(seqs),
    )
    # One by one, as several of one chain may go.
    for (seq,) in rows.fetchall():
        session.execute(
            "UPDATE memory_state AS older SET superseded_by = s.superseded_by, superseded_at = "
            "CASE WHEN s.superseded_at IS NOT NULL THEN older.superseded_at END "
            "FROM (SELECT 1) AS one LEFT JOIN memory_state AS s "
            "ON s.owner = %(owner)s AND s.memory_seq = %(seq)s "
            "WHERE older.owner = %(owner)s AND older.superseded_by = %(seq)s",
            seq=seq,
        )


def _find_in_force_again(
    session: PostgresSession, found: Sequence[_FoundMemory]
) -> tuple[frozenset[str], set[int]]:
    """Return the ids of superseded memories that a deletion puts in force again.

    Also return the row numbers of their episodes, which are to be rewritten.
    """
    gone = {memory.seq for memory in found}
    links = session.execute(
        "SELECT memory_seq, superseded_by FROM memory_state WHERE owner = %(owner)s "
        "AND superseded_at IS NOT NULL AND (superseded_by = ANY(%(seqs)s::bigint[]) "
        "OR memory_seq = ANY(%(seqs)s::bigint[]))",
        seqs=list(gone),
    )
    rows = session.execute(
        "SELECT m.id, p.episode_seq FROM memory AS m "
        "LEFT JOIN placed AS p ON p.owner = m.owner AND p.seq = m.seq "
        "WHERE m.owner = %(owner)s AND m.seq = ANY(%(seqs)s::bigint[])",
        seqs=list(in_force_again(dict(links.fetchall()), gone)),
    ).fetchall()
    episodes = {episode for _, episode in rows if episode is not None}
    return (
        frozenset(id for id, _ in rows),
        {episode for episode in episodes if not session.has_pruned(episode)},
    )


def _keep_secrets_of_others(
    session: PostgresSession, found: Sequence[_FoundMemory]
) -> set[int]:
    """Mark secrets of deleted originals as secret in the remaining ones; return the episodes."""
    episodes = {memory.seq: memory.episode for memory in found if memory.episode}
    rows = session.execute(
        "SELECT seq FROM placed WHERE owner = %(owner)s "
        "AND seq = ANY(%(seqs)s::bigint[]) AND secrets IS NOT NULL",
        seqs=list(episodes),
    )
    for (seq,) in rows.fetchall():
        leave_secrets(session, seq, episodes[seq])
    return set(episodes.values())


def _delete_rows(session: PostgresSession, found: Sequence[_FoundMemory]) -> None:
    """Delete memories with all rows that refer to them, and update the totals."""
    session.execute(
        "DELETE FROM memory WHERE owner = %(owner)s AND seq = ANY(%(seqs)s::bigint[])",
        seqs=[memory.seq for memory in found],
    )
    session.note_rewording()
    for tier in (Tier.WORKING, Tier.ARCHIVE):
        sizes = [
            memory.characters
            for memory in found
            if (memory.episode is None) is (tier is Tier.WORKING)
        ]
        session.add_to_totals(tier, count=-len(sizes), characters=-sum(sizes))


def _count_pruned_without_summary(
    session: PostgresSession, leaving: dict[int, int]
) -> int:
    """Return how many pruned originals would lose their summary, the last trace of their text.

    `leaving` counts by episode the pruned originals that are deleted themselves.
    """
    there: int = session.scalar(
        "SELECT count(*) FROM placed AS p "
        "JOIN memory AS m ON m.owner = p.owner AND m.seq = p.seq "
        "WHERE p.owner = %(owner)s AND p.episode_seq = ANY(%(episodes)s::bigint[]) "
        "AND m.content = ''",
        episodes=list(leaving),
    )
    return there - sum(leaving.values())


def _preview_summaries(
    session: PostgresSession, leaving: dict[int, int]
) -> tuple[frozenset[int], frozenset[int]]:
    """Return the row numbers of summaries to be deleted, and of summaries to be emptied.

    `leaving` counts the deleted originals by episode. A summary that loses all of its sources is
    deleted; the summaries above follow, level by level.
    """
    removed: set[int] = set()
    emptied: set[int] = set()
    while leaving:  # ends, as each step goes up a level
        above: dict[int, int] = {}
        rows = session.execute(
            "SELECT e.seq, (SELECT count(*) FROM placed AS p "
            "WHERE p.owner = %(owner)s AND p.episode_seq = e.seq) "
            "+ (SELECT count(*) FROM episode AS c "
            "WHERE c.owner = %(owner)s AND c.parent_id = e.id), "
            "(SELECT u.seq FROM episode AS u WHERE u.owner = %(owner)s AND u.id = e.parent_id) "
            "FROM episode AS e WHERE e.owner = %(owner)s AND e.seq = ANY(%(seqs)s::bigint[])",
            seqs=list(leaving),
        )
        for seq, parts, parent in rows:
            gone = leaving[seq] >= parts
            (removed if gone else emptied).add(seq)
            if parent is not None:
                above[parent] = above.get(parent, 0) + gone
        leaving = above
    return frozenset(removed), frozenset(emptied - removed)
