"""The owners of a database and their tokens: added, counted, removed; the server as a whole."""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from datetime import datetime, timedelta
from pathlib import Path

import psycopg

from mnemosyned.errors import InvalidRequest, NotFound
from mnemosyned.memory.engine_ports import (
    GROUP_SCOPES,
    LOCAL_OWNER,
    NAME_FORM,
    TOKEN_PREFIX,
    Distribution,
    IssuedToken,
    Membership,
    Migration,
    Owner,
    OwnerFigures,
    OwnerToken,
    RemovedOwner,
    Scope,
    ServerPurge,
    SharedMemory,
    TokenHolder,
    owner_of,
)
from mnemosyned.memory.periods import Level
from mnemosyned.storage.common.session import Row
from mnemosyned.storage.postgres import purge
from mnemosyned.storage.postgres.connections import connected_apart, explaining_failures
from mnemosyned.storage.postgres.pool import Pool
from mnemosyned.storage.postgres.purge import purge_server
from mnemosyned.storage.postgres.roles import (
    OWNER_TABLES,
    ensure_role,
    lock_schema,
    owned_tables,
    require_table_owner,
    revoke_from_others,
    role_in_use,
)
from mnemosyned.storage.postgres.schema import distribute, index_glued_words, upgrade
from mnemosyned.storage.postgres.session import PostgresSession, utc

SECRET_BYTES = 32
ID_BYTES = 5
_VALID = "(revoked_at IS NULL AND (expires_at IS NULL OR expires_at > now()))"
_COLUMNS = "id, name, scopes, created_at, expires_at, revoked_at"
_TOKEN_FIELDS = f"{_COLUMNS}, {_VALID}"
_INSERT = (
    "INSERT INTO owner_token (owner, digest, id, name, scopes, created_at, expires_at) "
    "VALUES (%(owner)s, %(digest)s, %(id)s, %(name)s, %(scopes)s::text[], now(), "
    f"now() + %(valid_for)s::interval) RETURNING {_COLUMNS}, "
    "expires_at IS NULL OR expires_at > created_at"
)
_NAMED = "owner = %(owner)s AND (id = %(token)s OR name = %(token)s)"


def _insert_token(
    session: PostgresSession,
    name: str,
    scopes: Sequence[Scope],
    *,
    valid_for: timedelta | None,
) -> IssuedToken:
    """Create a token of 256 random bits for the session's owner; return it with its secret.

    `valid_for` is the time until it expires, None for no end.
    """
    secret = f"{TOKEN_PREFIX}{session.owner}_{secrets.token_urlsafe(SECRET_BYTES)}"
    row = session.execute(
        _INSERT,
        digest=_token_digest(secret),
        id=secrets.token_hex(ID_BYTES),
        name=name,
        scopes=[scope.value for scope in Scope if scope in scopes],
        valid_for=valid_for,
    ).fetchone()
    assert row  # noqa: S101 for mypy: INSERT … RETURNING gives its row
    return IssuedToken(token=_token_from(row), secret=secret)


def _token_digest(secret: str) -> bytes:
    """Return the SHA-256 of a token's secret; the store keeps the digest in place of the secret."""
    return hashlib.sha256(secret.encode()).digest()


def _token_from(row: Row) -> OwnerToken:
    """Return an owner's token from a row of `_TOKEN_FIELDS`."""
    id, name, scopes, created_at, expires_at, revoked_at, valid = row
    return OwnerToken(
        id=id,
        name=name,
        scopes=tuple(map(Scope, scopes)),
        created_at=created_at,
        expires_at=expires_at,
        revoked_at=revoked_at,
        valid=valid,
    )


OWNERS_LISTED_MAX = 100_000
DELETED_AT_ONCE = 5_000
"""Memories that are deleted in one transaction."""
ALL = 0
"""The owner of statements about all of them: none."""
_FIELDS = (
    "o.owner, o.name, o.is_group, o.created_at, o.working_count + o.archive_count, o.episodic_count, "
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
    "INSERT INTO owner AS o (owner, name, is_group) VALUES (%(number)s, %(name)s, %(is_group)s) "
    f"RETURNING {_FIELDS}"
)
_NUMBER = "SELECT owner FROM owner WHERE name = %(name)s AND is_group = ANY(%(kinds)s)"
_IS_TAKEN = "SELECT EXISTS (SELECT 1 FROM owner WHERE name = %(name)s)"
_HOLDER = (
    "SELECT digest, id, name, scopes, expires_at, (SELECT json_agg(json_build_array("
    "memory_owner, memory_name, m.scopes)) FROM memories_of(%(owner)s::bigint) AS m) "
    "FROM token_holder(%(owner)s::bigint, %(digest)s)"
)
_JOIN = (
    "INSERT INTO membership (owner, group_owner, scopes, joined_at) "
    "VALUES (%(owner)s, %(group)s, %(scopes)s::text[], now()) "
    "ON CONFLICT (owner, group_owner) DO UPDATE SET scopes = excluded.scopes "
    "RETURNING scopes, joined_at"
)
_MEMBERSHIPS = (
    "WITH g AS MATERIALIZED (SELECT owner, name FROM owner WHERE is_group) "
    "SELECT g.name, o.name, m.scopes, m.joined_at FROM membership AS m "
    "JOIN g ON g.owner = m.group_owner JOIN owner AS o ON o.owner = m.owner "
    "WHERE m.group_owner = coalesce(%(group)s::bigint, m.group_owner) "
    "ORDER BY g.name, o.name LIMIT %(most)s"
)
_DELETE_SOME = (
    "DELETE FROM memory WHERE owner = %(owner)s AND seq IN "
    "(SELECT seq FROM memory WHERE owner = %(owner)s ORDER BY seq LIMIT %(most)s)"
)
_WITH_WORK = (
    "SELECT owner FROM owners_with_work(%(archived)s, %(before)s, %(DAY)s, %(WEEK)s, %(MONTH)s, "
    "%(after)s::bigint, %(limit)s::bigint)"
)
_FIGURES = "SELECT * FROM owner_figures(%(before)s, %(digest)s::text)"
_LACKING_VECTORS = (
    "SELECT owner FROM owners_lacking_vectors("
    "%(digest)s::text, %(after)s::bigint, %(limit)s::bigint)"
)


class PostgresOwners:
    """The owners of a database, on a pool whose user owns the tables.

    With any other user, only `holder`, `with_work` and `lacking_vectors` work. Every method raises
    `StorageFailed` if the database fails.
    """

    def __init__(
        self,
        pool: Pool,
        *,
        role: str | None = None,
        prepare: Callable[[], object] = lambda: None,
    ) -> None:
        """Administer owners on a pool; `role` is the database role for requests, if any.

        `prepare` creates that role, and is called before an owner is added.
        """
        self._pool = pool
        self._in_role = f'SET LOCAL ROLE "{role}"' if role else "SELECT 1"
        self._prepare = prepare
        self.on_change: Callable[[str, int, Sequence[str]], object] = lambda *_: None
        """Called with what is done, an owner's number and ids of tokens, or of a group the member's name.

        Before a removal."""

    def add(self, name: str, *, is_group: bool = False) -> Owner:
        """Add an owner, or a group; return it.

        Raises `InvalidRequest` for a taken or malformed name.
        """
        _check_name(name, field="name")
        self._prepare()
        with self._pool.outside_transactions(ALL) as session:
            session.execute("BEGIN")
            # The nodes of a cluster cannot compare names by a key.
            lock_schema(session)
            if session.scalar(_IS_TAKEN, name=name):
                raise InvalidRequest(
                    f"there is an owner {name} already; choose another name",
                    field="name",
                )
            number = session.scalar("SELECT nextval('owner_number')")
            row = session.execute(
                _ADD, number=number, name=name, is_group=is_group
            ).fetchone()
            session.execute("COMMIT")
        assert row  # noqa: S101 for mypy: INSERT … RETURNING gives its row
        self.on_change("owner_add", number, ())
        return _owner_from(row)

    def owners(self, *, measured: bool = False) -> Sequence[Owner]:
        """Return all owners, sorted by name, with counts of their memories, summaries and tokens.

        With `measured`, also count the bytes of each owner's rows, for which all rows are read;
        else the bytes are None.
        """
        sizes: Counter[int] = Counter()
        with self._pool.outside_transactions(ALL) as session:
            rows = session.execute(_LISTED, most=OWNERS_LISTED_MAX).fetchall()
            for table in ("memory", "episode") if measured else ():
                sizes.update(
                    dict(session.execute(_BYTES.format(table=table)).fetchall())
                )
        return [
            _owner_from(
                row[:7], tokens=row[7], size=sizes[row[0]] if measured else None
            )
            for row in rows
        ]

    def remove(self, name: str) -> RemovedOwner:
        """Revoke an owner's tokens, delete and purge all of its rows; return what was deleted.

        All members leave a group. If an earlier call was interrupted, this one finishes the
        deletion. Raises `NotFound`, and `InvalidRequest` for the owner of the database's own memory.
        """
        number = self.number(name)
        if number == LOCAL_OWNER:
            raise InvalidRequest(
                f"{name} is the owner of this database's own memory, which a daemon serves on "
                "its socket; use `mnem forget` there",
                field="name",
            )
        self.on_change("owner_remove", number, ())
        with self._pool.writing(number) as session:
            session.execute(
                "UPDATE owner_token SET revoked_at = now() "
                "WHERE owner = %(owner)s AND revoked_at IS NULL"
            )
            session.execute(
                "DELETE FROM membership WHERE %(owner)s IN (owner, group_owner)"
            )
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
            for table in reversed(OWNER_TABLES):
                session.execute(f'DELETE FROM "{table}" WHERE owner = %(owner)s')
        memories, summaries = counts or (0, 0)
        return RemovedOwner(
            name=name,
            memories=memories,
            summaries=summaries,
            purged=purge.purge_tables(self._pool, [*tables, *OWNER_TABLES]),
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
        """Create a token for an owner, and return it with its secret.

        `valid_for` is the time until it expires, None for no end. Raises `NotFound`, and
        `InvalidRequest` for a malformed name or no scopes.
        """
        _check_name(name, field="name")
        if not scopes:
            raise InvalidRequest("a token needs a scope", field="scopes")
        with self._writing_for(owner) as session:
            if session.scalar("SELECT is_group FROM owner WHERE owner = %(owner)s"):
                raise InvalidRequest(
                    f"{owner} is a group, which has no tokens: its members use their own",
                    field="owner",
                )
            issued = _insert_token(session, name, scopes, valid_for=valid_for)
        self.on_change("token_add", session.owner, [issued.token.id])
        return issued

    def tokens(self, owner: str) -> Sequence[OwnerToken]:
        """Return all tokens of an owner, expired and revoked tokens too, the newest first."""
        with self._pool.outside_transactions(self.number(owner)) as session:
            rows = session.execute(
                f"SELECT {_TOKEN_FIELDS} FROM owner_token WHERE owner = %(owner)s "
                "ORDER BY created_at DESC, id"
            )
            return list(map(_token_from, rows))

    def rotate(
        self, owner: str, token: str, *, keep_for: timedelta = timedelta()
    ) -> IssuedToken:
        """Issue a successor to an owner's newest valid token with this id or name.

        The old token stays valid for `keep_for`, or until it expires. The new token is valid as
        long as the old one was when it was issued. Raises `NotFound`.
        """
        with self._writing_for(owner) as session:
            row = session.execute(
                "SELECT id, name, scopes, expires_at - created_at FROM owner_token "
                f"WHERE {_NAMED} AND {_VALID} ORDER BY created_at DESC, id LIMIT 1",
                token=token,
            ).fetchone()
            if row is None:
                raise NotFound(f"no valid token is called {token!r}", field="token")
            old, name, scopes, valid_for = row
            issued = _insert_token(
                session, name, [Scope(each) for each in scopes], valid_for=valid_for
            )
            session.execute(
                "UPDATE owner_token SET expires_at = "
                "least(expires_at, now() + %(keep_for)s::interval) "
                "WHERE owner = %(owner)s AND id = %(old)s",
                keep_for=keep_for,
                old=old,
            )
        self.on_change("token_rotate", session.owner, [old, issued.token.id])
        return issued

    def revoke(self, owner: str, token: str) -> int:
        """Revoke an owner's valid tokens with this id or name; return how many were revoked.

        Raises `NotFound`.
        """
        with self._writing_for(owner) as session:
            rows = session.execute(
                f"UPDATE owner_token SET revoked_at = now() WHERE {_NAMED} AND {_VALID} RETURNING id",
                token=token,
            ).fetchall()
        if not rows:
            raise NotFound(f"no valid token is called {token!r}", field="token")
        self.on_change("token_revoke", session.owner, [id for (id,) in rows])
        return len(rows)

    def with_work(
        self,
        *,
        before: datetime,
        closed: Mapping[Level, datetime],
        archived: bool = False,
        after: int = 0,
        limit: int = 1_000,
    ) -> Sequence[int]:
        """Return up to `limit` numbers of owners above `after` with work for a sleep cycle.

        Work is a working memory from before `before`, a summary without a roll-up whose period of a
        level began before `closed` of this level, a stale summary, or memories to be deleted for
        good. With `archived`, it is also an archive whose text may be pruned.
        """
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
        """Return up to `limit` numbers of owners above `after` with memories to embed by a model.

        `identity` is the model's fingerprint. Owners whose memories another daemon has claimed are
        left out.
        """
        with self._pool.outside_transactions(ALL) as session:
            rows = session.execute(
                _LACKING_VECTORS, digest=identity, after=after, limit=limit
            )
            return [number for (number,) in rows]

    def holder(self, secret: str) -> TokenHolder | None:
        """Return the owner and scopes of the token with this secret; None if it is not valid.

        No token of a suspended owner is valid.

        The token is found by its SHA-256, so that timing tells nothing about other tokens.
        """
        number = owner_of(secret)
        if number is None:
            return None
        digest = _token_digest(secret)
        with self._pool.outside_transactions(number) as session:
            row = session.execute(_HOLDER, digest=digest).fetchone()
        if row is None or not hmac.compare_digest(bytes(row[0]), digest):
            return None
        _, token, name, allowed, expires_at, memories = row
        scopes = frozenset(map(Scope, allowed))
        (_, owner_name, _), *groups = memories
        return TokenHolder(
            owner=number,
            token=token,
            name=name,
            scopes=scopes,
            expires_at=expires_at,
            owner_name=owner_name,
            groups=tuple(
                SharedMemory(group, its_name, scopes & set(map(Scope, there)))
                for group, its_name, there in groups
            ),
        )

    def figures(self, *, before: datetime, identity: str) -> OwnerFigures:
        """Return totals of all owners; memories created before `before` are due for consolidation.

        `identity` is the embedding model's fingerprint.
        """
        with self._pool.outside_transactions(ALL) as session:
            row = session.execute(_FIGURES, before=utc(before), digest=identity)
            owners, working, archive, episodic, *others = row.fetchone() or ()
        memories = {"working": working, "archive": archive, "episodic": episodic}
        return OwnerFigures(owners, memories, *others)

    def join(self, group: str, member: str, scopes: Sequence[Scope]) -> Membership:
        """Make an owner a member of a group, or change what a member may do there.

        Raises `NotFound`, and `InvalidRequest` for a group as the member, or scopes that a group has
        not.
        """
        unknown = [scope for scope in scopes if scope not in GROUP_SCOPES]
        if unknown or not scopes:
            raise InvalidRequest(
                f"a member of a group has one or more of {', '.join(GROUP_SCOPES)}",
                field="scopes",
            )
        number = self.number(group, is_group=True)
        with self._pool.writing(self.number(member, is_group=False)) as session:
            row = session.execute(
                _JOIN,
                group=number,
                scopes=[scope.value for scope in GROUP_SCOPES if scope in scopes],
            ).fetchone()
        assert row  # noqa: S101 for mypy: INSERT … RETURNING gives its row
        self.on_change("group_join", number, [member])
        return _membership_from((group, member, *row))

    def leave(self, group: str, member: str) -> None:
        """End an owner's membership of a group. Raises `NotFound`."""
        number = self.number(group, is_group=True)
        with self._writing_for(member) as session:
            ended = session.execute(
                "DELETE FROM membership WHERE owner = %(owner)s AND group_owner = %(group)s",
                group=number,
            ).rowcount
        if not ended:
            raise NotFound(f"{member} is no member of {group}", field="member")
        self.on_change("group_leave", number, [member])

    def memberships(self, group: str | None = None) -> Sequence[Membership]:
        """Return the members of a group, or of all groups, sorted by group and member.

        Raises `NotFound`.
        """
        number = self.number(group, is_group=True) if group else None
        with self._pool.outside_transactions(ALL) as session:
            rows = session.execute(_MEMBERSHIPS, group=number, most=OWNERS_LISTED_MAX)
            return list(map(_membership_from, rows))

    @contextmanager
    def _writing_for(self, owner: str) -> Iterator[PostgresSession]:
        """Lend a session in a write transaction of the owner with this name. Raises `NotFound`."""
        with self._pool.writing(self.number(owner)) as session:
            yield session

    def number(self, name: str, *, is_group: bool | None = None) -> int:
        """Return the number of the owner with this name.

        With `is_group`, only of a group, or only of an owner that is none. Raises `NotFound`.
        """
        with self._pool.outside_transactions(ALL) as session:
            require_table_owner(session)
            number: int | None = session.scalar(
                _NUMBER,
                name=name,
                kinds=[True, False] if is_group is None else [is_group],
            )
        if number is None:
            kind = "group" if is_group else "owner"
            raise NotFound(
                f"there is no {kind} {name!r}; `mnem owner list` shows all",
                field="owner",
            )
        return number


def _check_name(name: str, *, field: str) -> None:
    """Raise `InvalidRequest` if the name of an owner or token is malformed.

    `field` is the request's field that the error names.
    """
    if not re.fullmatch(NAME_FORM, name):
        raise InvalidRequest(
            f"{name!r} is no name: use letters, digits and . _ @ - after a letter or digit, "
            "100 characters at most",
            field=field,
        )


def _membership_from(row: Row) -> Membership:
    """Return a membership from a row of group, member, scopes and time."""
    group, member, scopes, joined_at = row
    return Membership(
        group=group,
        member=member,
        scopes=tuple(map(Scope, scopes)),
        joined_at=joined_at,
    )


def _owner_from(row: Row, *, tokens: int = 0, size: int | None = None) -> Owner:
    """Return an owner from a row of `_FIELDS`: number, name, kind, creation time and totals.

    The totals are memories, summaries and characters; `tokens` is the number of valid tokens, and
    `size` the number of bytes, None if not measured.
    """
    number, name, is_group, created_at, memories, summaries, characters = row
    return Owner(
        number=number,
        name=name,
        created_at=created_at,
        memories=memories,
        summaries=summaries,
        characters=characters,
        bytes=size,
        tokens=tokens,
        is_group=is_group,
    )


_VERSION = "SELECT coalesce(max(version), 0) FROM schema_migration"
_HAS_OWNERS = f"SELECT EXISTS (SELECT 1 FROM owner WHERE owner <> {LOCAL_OWNER})"


class PostgresServer:
    """A database as a whole: each method connects, and brings the schema up to date first.

    Every method may be repeated, and raises `StorageFailed` if the database fails.
    """

    def __init__(self, dsn: str, *, migrations: Path) -> None:
        self._dsn = dsn
        self._migrations = migrations

    def migrate(self, *, serving: str | None = None) -> Migration:
        """Upgrade the schema, and the rights of the login that serves requests.

        Return what was done. `serving` is a login without tables that serves from now on. Raises
        `StorageFailed` for a login that does not own the tables.
        """
        with self._connect() as connection:
            session = PostgresSession(connection, 0)
            require_table_owner(session)
            exists = session.scalar("SELECT to_regclass('schema_migration')")
            before = session.scalar(_VERSION) if exists else 0
        with self._upgrade() as connection:
            session = PostgresSession(connection, 0)
            PostgresSession(connection, LOCAL_OWNER).ensure_owner()
            if serving or role_in_use(session) or session.scalar(_HAS_OWNERS):
                ran = ensure_role(connection, serving=serving)
            else:
                ran = revoke_from_others(session)
            after = session.scalar(_VERSION)
        return Migration(before=before, after=after, statements=tuple(ran))

    def purge(self) -> ServerPurge:
        """Rewrite all tables and the write-ahead log, so that no deleted text is left on disk.

        Each table is locked while it is written. Return what was purged and what is left.
        """
        with self._upgrade() as connection:
            return purge_server(connection)

    def distribute(self, shards: int) -> Distribution:
        """Distribute the tables over the nodes of a cluster in `shards` parts.

        All rows of an owner are on one node. Raises `InvalidRequest` if the server is no cluster.
        """
        with self._upgrade() as connection:
            return distribute(connection, shards=shards)

    @contextmanager
    def _upgrade(self) -> Iterator[psycopg.Connection[Row]]:
        """Upgrade the schema and old index entries, then lend a connection to the block."""
        with explaining_failures("nothing was done"):
            upgrade(self._dsn, self._migrations)
        with self._connect() as connection:
            index_glued_words(connection)
            yield connection

    @contextmanager
    def _connect(self) -> Iterator[psycopg.Connection[Row]]:
        """Lend a connection to the block, and turn the server's errors into `StorageFailed`."""
        with (
            explaining_failures("it was not finished"),
            closing(connected_apart(self._dsn)) as connection,
        ):
            yield connection
