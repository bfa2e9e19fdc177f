"""Which memories and learnings a filter of `forget` selects."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import msgspec

from mnemosyned.domain.keeping.retention import ForgetFilter, naming
from mnemosyned.domain.text.terms import Terms, glued_words, grams
from mnemosyned.domain.text.words.accent_variants import accent_variants
from mnemosyned.storage.postgres.database.session import Row, Session
from mnemosyned.storage.postgres.fulltext.terms import (
    gram_term_hashes,
    gram_words,
    index_words,
    phrase_hashes,
)
from mnemosyned.storage.postgres.search.filters import (
    Condition,
    SqlFilter,
    among,
    joined,
    tagged,
    within,
)
from mnemosyned.storage.postgres.tables.details import values_of

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
_NAMED = f"m.session_id, m.source, m.metadata, {_DETAILS}, {_EARLIER}"
"""All that may mention a person, besides the words and their speaker."""
_EARLIER_FIELDS = ("session", "source", "role")


def chosen(session: Session, choice: ForgetFilter) -> list[str]:
    """The ids of all memories for which everything in the choice holds."""
    newest = choice.newest.memory if choice.newest else None
    narrow = joined(
        [
            *_conditions(choice, table="m", newest=newest),
            *tagged(choice.tags),
            *([_have(session.owner, choice.terms)] if choice.terms else []),
        ]
    )
    is_meant = _checks(choice)
    if not is_meant:
        return _ids(session, narrow)
    named = _NAMED if choice.person else "NULL"
    rows = session.stream(
        f"SELECT m.id, m.content, m.role, {named} FROM {_MEMORIES}{narrow.where} {_ORDER}",
        **narrow.values,
    )
    return [row[0] for row in rows if all(check(row) for check in is_meant)]


def _ids(session: Session, narrow: SqlFilter) -> list[str]:
    rows = session.execute(
        f"SELECT m.id FROM {_MEMORIES}{narrow.where} {_ORDER}", **narrow.values
    )
    return [id for (id,) in rows]


def _conditions(
    choice: ForgetFilter, *, table: str, newest: int | None
) -> list[Condition]:
    when = f"{table}.created_at"
    conditions = [
        *among(choice.sessions, choice.sources, table=table),
        *within(choice.since, choice.until, first=when, last=when),
    ]
    if newest is not None:
        bound = Condition(f"{table}.seq <= %(newest)s", {"newest": newest})
        conditions.append(bound)
    return conditions


def _checks(choice: ForgetFilter) -> list[Callable[[Row], bool]]:
    """Conditions on the words of a memory that the indexes name."""
    checks: list[Callable[[Row], bool]] = []
    if choice.terms:
        holds = _holding(choice.terms)
        checks.append(lambda row: holds(row[1:3]))
    if choice.person:
        named = naming(choice.person)
        checks.append(lambda row: any(map(named, _texts(row[1:]))))
    return checks


def _texts(row: Row) -> list[str]:
    """All texts of a memory: its words, its speaker, its place, and what they were before."""
    content, role, session, source, metadata, details, earlier = row
    values = " ".join(value for _, value in values_of(*details or (None, None)))
    return [content or values, role, session, source or "", metadata] + [
        _before(text, fields) for text, fields in earlier or ()
    ]


def _before(content: str, fields: str) -> str:
    values: dict[str, Any] = msgspec.json.decode(fields)
    return " ".join([content, *(values.get(name) or "" for name in _EARLIER_FIELDS)])


def _have(owner: int, terms: Terms) -> Condition:
    """The memories whose index has every one of these terms.

    Two words may have one number, and the parts of a code may stand apart: the words are compared
    when a row is read.
    """
    has = [
        _has(owner, term, number, only_grams=term in terms.grams)
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


def _has(owner: int, term: str, number: int, *, only_grams: bool) -> Condition:
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
    return [term, *accent_variants(term)]


class _Forms(NamedTuple):
    """What the indexes have of a term in any of its spellings."""

    words: list[list[str]]
    grams: list[list[str]]

    @classmethod
    def of(cls, term: str, *, only_grams: bool) -> _Forms:
        texts = _spellings(term)
        words = () if only_grams else map(index_words, texts)
        return cls(
            list(filter(None, words)), list(filter(None, map(gram_words, texts)))
        )

    def occur(self, texts: Sequence[Sequence[str]], parts: Sequence[str]) -> bool:
        """Tell whether one of them is in one of the texts, or in the parts for the second index."""
        return any(
            _occurs(phrase, text) for phrase in self.words for text in texts
        ) or any(_occurs(phrase, parts) for phrase in self.grams)


def _holding(terms: Terms) -> Callable[[Sequence[str]], bool]:
    """Tells whether texts have every one of these terms, as the indexes would say."""
    wanted = [
        _Forms.of(term, only_grams=term in terms.grams)
        for term in (*terms.words, *terms.grams)
    ]

    def holds(texts: Sequence[str]) -> bool:
        stems = [index_words(text) for text in (*texts, *glued_words(texts[0]))]
        parts = gram_words(grams(texts[0]))
        return all(forms.occur(stems, parts) for forms in wanted)

    return holds


def _occurs(phrase: Sequence[str], words: Sequence[str]) -> bool:
    """Tell whether words stand side by side within others."""
    length = len(phrase)
    if length == 1:
        return phrase[0] in words
    return any(
        words[start : start + length] == phrase
        for start, word in enumerate(words)
        if word == phrase[0]
    )


def chosen_learnings(session: Session, choice: ForgetFilter) -> list[str]:
    """The ids of all learnings for which everything in the choice holds; they have no tags."""
    if choice.tags:
        return []
    newest = choice.newest.learning if choice.newest else None
    narrow = joined(_conditions(choice, table="l", newest=newest))
    rows = session.stream(
        "SELECT l.id, l.text, coalesce(l.session_id, ''), coalesce(l.source, '') "
        f"FROM learning AS l WHERE l.owner = %(owner)s{narrow.where} ORDER BY l.seq",
        **narrow.values,
    )
    holds = _holding(choice.terms) if choice.terms else None
    named = naming(choice.person) if choice.person else None
    return [
        id
        for id, *texts in rows
        if (holds is None or holds(texts[:1]))
        and (named is None or any(map(named, texts)))
    ]
