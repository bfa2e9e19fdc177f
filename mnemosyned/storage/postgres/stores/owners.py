"""The owners of a database: added, counted, removed; and their tokens."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta

from mnemosyned.domain.errors import InvalidRequest, NotFound
from mnemosyned.domain.ports.servers.owners import (
    LOCAL_OWNER,
    NAME_FORM,
    IssuedToken,
    Owner,
    OwnerStore,
    RemovedOwner,
    Scope,
    Token,
    TokenHolder,
    owner_of,
)
from mnemosyned.domain.sleep.rollup import Level
from mnemosyned.storage.postgres.database import purge
from mnemosyned.storage.postgres.database.pool import Pool
from mnemosyned.storage.postgres.database.roles import (
    lock_schema,
    owned_tables,
    require_table_owner,
)
from mnemosyned.storage.postgres.database.session import Row, Session
from mnemosyned.storage.postgres.tables.owners import tokens
from mnemosyned.storage.postgres.tables.rows import utc

OWNERS_LISTED_MAX = 100_000
DELETED_AT_ONCE = 5_000
"""Memories that are deleted in one transaction."""
ALL = 0
"""The owner of statements about all of them: none."""
_FIELDS = (
    "o.owner, o.name, o.created_at, o.working_count + o.archive_count, o.episodic_count, "
    "o.working_characters + o.archive_characters + o.episodic_characters"
)
_VALID_TOKENS = (
    "(SELECT count(*) FROM owner_token AS t WHERE t.owner = o.owner "
    "AND t.revoked_at IS NULL AND (t.expires_at IS NULL OR t.expires_at > now()))"
)
_LISTED = (
    f"SELECT {_FIELDS}, {_VALID_TOKENS} FROM owner AS o ORDER BY o.name LIMIT %(most)s"
)
_BYTES = (
    "SELECT owner, sum(pg_column_size({table}.*))::bigint FROM {table} GROUP BY owner"
)
_ADD = (
    "INSERT INTO owner AS o (owner, name) VALUES (%(number)s, %(name)s) "
    f"RETURNING {_FIELDS}"
)
_NUMBER = "SELECT owner FROM owner WHERE name = %(name)s"
_DELETE_SOME = (
    "DELETE FROM memory WHERE owner = %(owner)s AND seq IN "
    "(SELECT seq FROM memory WHERE owner = %(owner)s ORDER BY seq LIMIT %(most)s)"
)
_WITH_WORK = (
    "SELECT owner FROM owners_with_work(%(archived)s, %(before)s, %(DAY)s, %(WEEK)s, %(MONTH)s, "
    "%(after)s::bigint, %(limit)s::bigint)"
)
_LACKING_VECTORS = (
    "SELECT owner FROM owners_lacking_vectors("
    "%(digest)s::text, %(after)s::bigint, %(limit)s::bigint)"
)


class PostgresOwners(OwnerStore):
    """An `OwnerStore` on a pool whose user owns the tables; holders of tokens and work for others too."""

    def __init__(
        self,
        pool: Pool,
        *,
        role: str | None = None,
        prepare: Callable[[], object] = lambda: None,
    ) -> None:
        """`role` is that of requests, if there is one; `prepare` makes it before an owner is added."""
        self._pool = pool
        self._in_role = f'SET LOCAL ROLE "{role}"' if role else "SELECT 1"
        self._prepare = prepare

    def add(self, name: str) -> Owner:
        _check_name(name, field="name")
        self._prepare()
        with self._pool.outside_transactions(ALL) as session:
            session.execute("BEGIN")
            # The nodes of a cluster cannot compare names by a key.
            lock_schema(session)
            if session.scalar(_NUMBER, name=name) is not None:
                raise InvalidRequest(
                    f"there is an owner {name} already; choose another name",
                    field="name",
                )
            number = session.scalar("SELECT nextval('owner_number')")
            row = session.execute(_ADD, number=number, name=name).fetchone()
            session.execute("COMMIT")
        assert row  # noqa: S101 for mypy: INSERT … RETURNING gives its row
        return _owner(row)

    def owners(self, *, measured: bool = False) -> Sequence[Owner]:
        with self._pool.outside_transactions(ALL) as session:
            rows = session.execute(_LISTED, most=OWNERS_LISTED_MAX).fetchall()
            sizes = _sizes(session) if measured else {}
        return [
            _owner(
                row[:6],
                tokens=row[6],
                size=sizes.get(row[0], 0) if measured else None,
            )
            for row in rows
        ]

    def remove(self, name: str) -> RemovedOwner:
        number = self.number(name)
        if number == LOCAL_OWNER:
            raise InvalidRequest(
                f"{name} is the owner of this database's own memory, which a daemon serves on "
                "its socket; use `mnem forget` there",
                field="name",
            )
        with self._pool.writing(number) as session:
            tokens.revoke_all(session)
            counts = session.execute(
                "SELECT working_count + archive_count, episodic_count FROM owner "
                "WHERE owner = %(owner)s"
            ).fetchone()
        deleted = DELETED_AT_ONCE
        while deleted == DELETED_AT_ONCE:
            with self._pool.writing(number, durable=False) as session:
                session.execute_once(self._in_role)
                deleted = session.execute(_DELETE_SOME, most=DELETED_AT_ONCE).rowcount
        with self._pool.writing(number) as session:
            tables = owned_tables(session)
            session.execute_once(self._in_role)  # which the database holds to one owner
            for table in ("memory", *tables):
                session.execute(f'DELETE FROM "{table}" WHERE owner = %(owner)s')
            session.execute_once("RESET ROLE")
            for table in ("owner_token", "owner"):
                session.execute(f'DELETE FROM "{table}" WHERE owner = %(owner)s')
        memories, summaries = counts or (0, 0)
        return RemovedOwner(
            name=name,
            memories=memories,
            summaries=summaries,
            purged=purge.sweep(self._pool, [*tables, "owner_token", "owner"]),
            left=purge.BEYOND,
        )

    def issue(
        self,
        owner: str,
        name: str,
        scopes: Sequence[Scope],
        *,
        valid_for: timedelta | None = None,
    ) -> IssuedToken:
        _check_name(name, field="name")
        if not scopes:
            raise InvalidRequest("a token needs a scope", field="scopes")
        with self._changing(owner) as session:
            return tokens.insert_token(session, name, scopes, valid_for=valid_for)

    def tokens(self, owner: str) -> Sequence[Token]:
        with self._pool.outside_transactions(self.number(owner)) as session:
            return tokens.all_tokens(session)

    def rotate(
        self, owner: str, token: str, *, keep_for: timedelta = timedelta()
    ) -> IssuedToken:
        with self._changing(owner) as session:
            return tokens.rotate(session, token, keep_for=keep_for)

    def revoke(self, owner: str, token: str) -> int:
        with self._changing(owner) as session:
            count = tokens.revoke(session, token)
        if not count:
            raise NotFound(f"no valid token is called {token!r}", field="token")
        return count

    def with_work(
        self,
        *,
        before: datetime,
        closed: Mapping[Level, datetime],
        archived: bool = False,
        after: int = 0,
        limit: int = 1_000,
    ) -> Sequence[int]:
        ends = {level.name: utc(closed[level]) for level in Level if level}
        with self._pool.outside_transactions(ALL) as session:
            rows = session.execute(
                _WITH_WORK,
                before=utc(before),
                after=after,
                limit=limit,
                archived=archived,
                **ends,
            )
            return [number for (number,) in rows]

    def lacking_vectors(
        self, identity: str, *, after: int = 0, limit: int = 1_000
    ) -> Sequence[int]:
        with self._pool.outside_transactions(ALL) as session:
            rows = session.execute(
                _LACKING_VECTORS, digest=identity, after=after, limit=limit
            )
            return [number for (number,) in rows]

    def holder(self, secret: str) -> TokenHolder | None:
        number = owner_of(secret)
        if number is None:
            return None
        with self._pool.outside_transactions(number) as session:
            return tokens.holder_of(session, secret)

    @contextmanager
    def _changing(self, owner: str) -> Iterator[Session]:
        with self._pool.writing(self.number(owner)) as session:
            yield session

    def number(self, name: str) -> int:
        with self._pool.outside_transactions(ALL) as session:
            require_table_owner(session)
            number: int | None = session.scalar(_NUMBER, name=name)
        if number is None:
            raise NotFound(
                f"there is no owner {name!r}; `mnem owner list` shows all",
                field="owner",
            )
        return number


def _check_name(name: str, *, field: str) -> None:
    if not re.fullmatch(NAME_FORM, name):
        raise InvalidRequest(
            f"{name!r} is no name: use letters, digits and . _ @ - after a letter or digit, "
            "100 characters at most",
            field=field,
        )


def _sizes(session: Session) -> dict[int, int]:
    """The bytes of each owner's memories and summaries, in their tables."""
    sizes: dict[int, int] = {}
    for table in ("memory", "episode"):
        for owner, size in session.execute(_BYTES.format(table=table)):
            sizes[owner] = sizes.get(owner, 0) + size
    return sizes


def _owner(row: Row, *, tokens: int = 0, size: int | None = None) -> Owner:
    number, name, created_at, memories, summaries, characters = row
    return Owner(
        number=number,
        name=name,
        created_at=created_at,
        memories=memories,
        summaries=summaries,
        characters=characters,
        bytes=size,
        tokens=tokens,
    )
