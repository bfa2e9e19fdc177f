"""Pages of lists on a server, and filters of an owner's memories."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from mnemosyned.memory.listing import LIST_LIMITS
from mnemosyned.memory.values import Tier
from mnemosyned.search.query import Query
from mnemosyned.storage.common import listing
from mnemosyned.storage.postgres import fulltext, pool
from mnemosyned.storage.postgres.session import PostgresSession
from mnemosyned.text.terms import Terms, accent_variants

_HOMES = {Tier.WORKING: "fresh", Tier.ARCHIVE: "placed"}


def tier_condition(tier: Tier | None) -> list[listing.Condition]:
    """Return the condition for memories (table alias `m`) of a tier; none for None, which is both tiers."""
    if tier is None:
        return []
    home = _HOMES.get(tier, "placed")
    text = f"EXISTS (SELECT 1 FROM {home} AS h WHERE h.owner = %(owner)s AND h.seq = m.seq)"
    return [listing.Condition(text, {})]


def memory_filter(query: Query) -> listing.Filter:
    """Return the SQL filter of a question for memories (table alias `m`)."""
    return listing.join_conditions(
        [
            *listing.column_conditions(query.columns),
            *listing.source_name_conditions(query.source_names, "m.source"),
            *listing.time_conditions(query, first="m.created_at", last="m.created_at"),
            *tier_condition(query.tier),
            *listing.asked_conditions(query),
        ]
    )


def episode_filter(query: Query) -> listing.Filter:
    """Return the SQL filter of a question for summaries (table alias `e`)."""
    return listing.join_conditions(listing.summary_conditions(query))


def all_terms_condition(
    owner: int, terms: Terms, seq: str = "m.seq"
) -> listing.Condition:
    """Return the condition for memories whose index entries have the hashes of all terms.

    `seq` is the column with the row number. Different words may share a hash of 32 bits, so a caller may have
    to compare the texts afterward.
    """
    text = f"{seq} IN (SELECT i.seq FROM memory_index AS i WHERE i.owner = %(owner)s"
    values: dict[str, object] = {}
    for number, term in enumerate((*terms.words, *terms.grams)):
        texts = [term, *accent_variants(term)]
        phrases: dict[str, list[list[int]]] = {
            "grams": [fulltext.gram_term_hashes(owner, text) for text in texts]
        }
        if term not in terms.grams:  # which the first index, of stemmed words, has not
            phrases["words"] = [fulltext.phrase_hashes(owner, text) for text in texts]
        clauses: list[str] = []
        for column, hashes in phrases.items():
            for place, phrase in enumerate(filter(None, hashes)):
                name = f"{column}_{number}_{place}"
                clauses.append(f"i.{column} @> %({name})s::integer[]")
                values[name] = phrase
        text += f" AND ({' OR '.join(clauses) or 'false'})"
    return listing.Condition(f"{text})", values)


def query_filter(session: PostgresSession, query: Query) -> listing.Filter:
    """Return a question's filter on alias `m`, with the row numbers in `only` if few memories can pass."""
    narrow = memory_filter(query)
    if not (query.sessions or query.tags):
        return narrow
    # The tags are read once: those whose memories they lead to are not looked up again.
    held, tables = memory_filter(replace(query, tags=())), "memory AS m"
    if query.tags:
        # One tag names each memory once.
        distinct = "DISTINCT " if len(query.tags) > 1 else ""
        tables = (
            f"(SELECT {distinct}n.memory_seq AS seq FROM tag AS n WHERE n.owner = %(owner)s "
            "AND n.name = ANY(%(tags)s::text[])) AS n "
            "JOIN memory AS m ON m.owner = %(owner)s AND m.seq = n.seq"
        )
    rows = session.execute(
        f"SELECT m.seq FROM {tables} WHERE m.owner = %(owner)s{held.text} "
        "LIMIT %(few)s",
        **narrow.values,
        few=listing.FEW_MAX + 1,
    ).fetchall()
    if len(rows) > listing.FEW_MAX:
        return narrow
    return narrow._replace(only=sorted(seq for (seq,) in rows))


_BEGINNING = (
    "SELECT r.low FROM unnest(%(lows)s::text[], %(highs)s::text[]) "
    "WITH ORDINALITY AS r (low, high, number) WHERE "
    + " OR ".join(
        f"EXISTS (SELECT 1 FROM {table} AS t WHERE t.owner = %(owner)s "
        "AND t.id >= r.low AND t.id < r.high)"
        for table in ("memory", "episode")
    )
    + " ORDER BY r.number"
)
# Words have roles among them; with those that were pruned, the words went.
_SPOKEN = (
    "SELECT m.seq FROM memory_index AS m WHERE m.owner = %(owner)s "
    "AND m.role = ANY(%(roles)s::text[]) AND ({said}) UNION ALL "
    "SELECT s.memory_seq FROM memory_state AS s "
    "WHERE s.owner = %(owner)s AND s.pruned_at IS NOT NULL LIMIT %(most)s"
)
_GROUPS = (
    "SELECT session_id, source, count, first, last FROM ("
    "SELECT 0 AS home, m.session_id, m.source, count(*) AS count, "
    "min(f.created_at) AS first, max(f.created_at) AS last "
    "FROM fresh AS f JOIN memory AS m ON m.owner = f.owner AND m.seq = f.seq "
    "WHERE f.owner = %(owner)s GROUP BY m.session_id, m.source UNION ALL "
    "SELECT 1, e.session_id, e.source, sum(e.item_count)::bigint, "
    "min(e.covers_from), max(e.covers_until) FROM episode AS e "
    "WHERE e.owner = %(owner)s AND e.level = 0 GROUP BY e.session_id, e.source) AS g "
    "ORDER BY home, session_id, source NULLS FIRST"
)


class PostgresLists(listing.ListStore):
    """A `ListStore` of one owner in PostgreSQL."""

    _engine: pool.PostgresEngine

    _groups = _GROUPS

    def _existing_prefixes(
        self, session: PostgresSession, prefixes: Sequence[str]
    ) -> list[str]:
        """Return the prefixes that begin at least one stored id."""
        ranges = [listing.id_range(prefix) for prefix in prefixes]
        return session.column(
            _BEGINNING,
            lows=[low for low, _ in ranges],
            highs=[high for _, high in ranges],
        )

    def _tier_tables(
        self, tier: Tier | None
    ) -> Iterable[tuple[str, Sequence[listing.Condition]]]:
        """Return the one table of both tiers, with the condition for memories of `tier`, if given."""
        return [("memory", tier_condition(tier))]

    def _term_conditions(self, terms: Terms, seq: str) -> list[listing.Condition]:
        """Return one condition for memories whose index entries have the hashes of all the terms."""
        return [all_terms_condition(self._engine.owner, terms, seq)]

    def _few_rows_that_may_have_roles(
        self, session: PostgresSession, roles: Sequence[str]
    ) -> list[int] | None:
        """Return a few row numbers that include all memories with these roles; None if there are many."""
        words = [fulltext.phrase_hashes(session.owner, role) for role in roles]
        if not all(words):
            return None
        names = [f"words_{number}" for number in range(len(words))]
        said = " OR ".join(f"m.words @> %({name})s::integer[]" for name in names)
        rows = session.execute(
            _SPOKEN.format(said=said),
            **dict(zip(names, words, strict=True)),
            roles=list(roles),
            most=LIST_LIMITS.few + 1,
        ).fetchall()
        return None if len(rows) > LIST_LIMITS.few else [seq for (seq,) in rows]
