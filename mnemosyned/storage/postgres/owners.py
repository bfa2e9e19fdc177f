"""The owners of a database as a daemon serves them: holders of tokens, logins, owners with work."""

from __future__ import annotations

import hmac
import re
import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime, timedelta

from mnemosyned.errors import InvalidRequest, StorageFailed
from mnemosyned.instants import from_calendar_time
from mnemosyned.logs import logger
from mnemosyned.memory import engine_ports, periods
from mnemosyned.storage.common.session import Row
from mnemosyned.storage.postgres import administration
from mnemosyned.storage.postgres.pool import Pool

log = logger()

RENEWED_FOR = timedelta(days=7)
"""Time for which a renewed token stays valid, at most until its own end, as its successor may get lost."""
USES_EVERY_S = 60.0
USES_MAX = 100_000
"""Maximum tokens whose uses wait to be saved; uses of others are not counted."""
_HOLDER = (
    "SELECT digest, id, name, scopes, expires_at, (SELECT json_agg(json_build_array("
    "memory_owner, memory_name, m.scopes)) FROM memories_of(%(owner)s::bigint) AS m) "
    "FROM token_holder(%(owner)s::bigint, %(digest)s)"
)
_NAMED_HOLDER = (
    "SELECT json_agg(json_build_array(memory_owner, memory_name, m.scopes)) "
    "FROM memories_of(owner_named(%(name)s::text)) AS m"
)


class PostgresOwners(administration.AdministeredOwners):
    """The owners of a database, for a daemon whose database login need not own the tables."""

    def __init__(
        self,
        pool: Pool,
        *,
        role: str | None = None,
        prepare: Callable[[], object] = lambda: None,
    ) -> None:
        """Serve owners on a pool; `role` and `prepare` are as for `AdministeredOwners`, with no admin token."""
        super().__init__(pool, role=role, prepare=prepare)
        self._changing = threading.Lock()
        self._uses: Counter[tuple[int, str]] = Counter()
        self._saved_at = time.monotonic()

    def find_unknown(self, names: Collection[str]) -> list[str]:
        """Return the names that no owner has; none if the login does not own the tables, and cannot know."""
        if not (names and self.owns_tables()):
            return []
        with self._admin_transaction() as session:
            return session.column(
                "SELECT name FROM unnest(%(names)s::text[]) AS given (name) "
                "WHERE NOT EXISTS (SELECT find_owner(name))",
                names=[*names],
            )

    def _ask(self, function: str, *values: object) -> list[Row]:
        """Call a function of the schema without an administrator's rights; return the rows."""
        with self._pool.outside_transactions(administration.ALL) as session:
            return session.call(function, *values).fetchall()

    def redeem(
        self, code: str, token_name: str, *, most: timedelta | None = None
    ) -> engine_ports.Enrolment | None:
        """Exchange the code of an invitation for a token, which is valid for `most` at most.

        Return None for a malformed, unknown, used or expired code, and for a suspended owner. Raises
        `InvalidRequest` for a malformed name of the token.
        """
        administration.check_name(token_name, field="name")
        read = engine_ports.read_code(code)
        if read is None:
            return None
        number, characters = read
        secret, key = administration.make_secret(number)
        old, new = (number, engine_ports.hash_secret(characters)), (key.digest, key.id)
        rows = self._ask("redeem_invitation", *old, *new, token_name, most)
        if not rows:
            return None
        self.on_change("login", number, [key.id])
        return _enrolment_from(secret, rows[0])

    def renew(
        self, secret: str, *, usual: timedelta, most: timedelta | None = None
    ) -> engine_ports.Enrolment | None:
        """Exchange a valid token for a successor of the same name and scopes.

        The new token is valid as long as the old one was when issued, or for `usual` if that had no end, and
        at most for `most`. The old token ends after `RENEWED_FOR` at the latest. Return None for an invalid
        token, and if the owner has a hundred valid ones.
        """
        number = engine_ports.owner_of(secret)
        if number is None:
            return None
        successor, key = administration.make_secret(number)
        old, new = (number, engine_ports.hash_secret(secret)), (key.digest, key.id)
        rows = self._ask("renew_token", *old, *new, usual, most, RENEWED_FOR)
        if not rows:
            return None
        self.on_change("token_renew", number, [rows[0][4], key.id])
        return _enrolment_from(successor, rows[0])

    def note_use(self, owner: int, token: str) -> None:
        """Count a use of an owner's token, by its id, for `save_uses`; ignore new tokens if `USES_MAX` wait."""
        with self._changing:
            if (owner, token) in self._uses or len(self._uses) < USES_MAX:
                self._uses[owner, token] += 1

    def save_uses(self, *, now: bool = False) -> None:
        """Save the counted uses of tokens, once a minute or `now`; log a failure, which loses the counts."""
        with self._changing:
            moment = time.monotonic()
            is_due = now or moment - self._saved_at >= USES_EVERY_S
            if not (is_due and self._uses):
                return
            uses, self._uses, self._saved_at = self._uses, Counter(), moment
        try:
            owners, ids = map(list, zip(*uses, strict=True))
            self._ask("note_token_uses", owners, ids, list(uses.values()))
        except StorageFailed as error:
            log.warning("token_uses_not_saved", reason=error.reason)

    def with_work(
        self,
        *,
        before: datetime,
        closed: Mapping[periods.Level, datetime],
        archived: bool = False,
        after: int = 0,
        limit: int = 1_000,
    ) -> Sequence[int]:
        """Return up to `limit` numbers of owners above `after` with work for a sleep cycle.

        Work is a working memory from before `before`, a summary without a roll-up whose period began
        before the time of its level in `closed`, a stale summary, or memories to be deleted
        for good. With `archived`, it is also an archive whose text may be pruned.
        """
        ends = [closed[level] for level in periods.Level if level]
        ends[0] = from_calendar_time(ends[0])  # of episodes
        rows = self._ask("owners_with_work", archived, before, *ends, after, limit)
        return [number for (number,) in rows]

    def keep_claims_open(self) -> AbstractContextManager[None]:
        """Keep the connection for this process's claims on owners open while the block runs."""
        return self._pool.claims.keep_open()

    def lacking_vectors(
        self, identity: str, *, after: int = 0, limit: int = 1_000
    ) -> Sequence[int]:
        """Return up to `limit` numbers of owners above `after` with memories to embed by a model.

        `identity` is the model's fingerprint. Owners whose memories another daemon has claimed are
        left out.
        """
        rows = self._ask("owners_lacking_vectors", identity, after, limit)
        return [number for (number,) in rows]

    def holder(self, secret: str) -> engine_ports.TokenHolder | None:
        """Return the owner and scopes of the token with this secret; None if it is not valid.

        No token of a suspended owner is valid. The token is found by its SHA-256, so that timing
        tells nothing about other tokens.
        """
        number = engine_ports.owner_of(secret)
        if number is None:
            return None
        digest = engine_ports.hash_secret(secret)
        with self._pool.outside_transactions(number) as session:
            row = session.execute(_HOLDER, digest=digest).fetchone()
        if row is None or not hmac.compare_digest(bytes(row[0]), digest):
            return None
        _, token, name, allowed, expires_at, memories = row
        scopes = frozenset(map(engine_ports.Scope, allowed))
        return _holder_from(memories, token, name, scopes, expires_at)

    def named_holder(
        self,
        name: str,
        token: str,
        scopes: frozenset[engine_ports.Scope],
        expires_at: datetime | None,
        *,
        add: bool = False,
    ) -> engine_ports.TokenHolder | None:
        """Return the owner whom an identity provider or proxy named, with scopes; None if refused.

        A suspended or missing owner, a group, and the owner of the database's own memory are
        refused. `add` adds a missing owner, which needs the login that owns the tables. `token`
        names the kind of login.
        """
        if not re.fullmatch(engine_ports.NAME_FORM, name):
            return None
        memories = None
        for is_added in (False, True):
            with self._pool.outside_transactions(administration.ALL) as session:
                memories = session.scalar(_NAMED_HOLDER, name=name)
            if memories or is_added or not add:
                break
            try:
                self.add(name)
            except InvalidRequest:  # it is suspended, or another daemon was first
                continue
        if not memories or memories[0][0] == engine_ports.LOCAL_OWNER:
            return None
        return _holder_from(memories, token, token, scopes, expires_at)

    def figures(self, *, before: datetime, identity: str) -> engine_ports.OwnerFigures:
        """Return totals of all owners, with sleep due by `before` and vectors a model (`identity`) lacks."""
        ((owners, working, archive, episodic, *others),) = self._ask(
            "owner_figures", before, identity
        )
        memories = {"working": working, "archive": archive, "episodic": episodic}
        return engine_ports.OwnerFigures(owners, memories, *others)


def _enrolment_from(secret: str, row: Row) -> engine_ports.Enrolment:
    """Return a new token made of a secret and a row: name of the owner, scopes, issue, expiry."""
    name, scopes, _, expires_at, *_ = row
    return engine_ports.Enrolment(
        token=secret,
        owner=name,
        scopes=tuple(map(engine_ports.Scope, scopes)),
        expires_at=expires_at,
    )


def _holder_from(
    memories: Sequence[tuple[int, str, Sequence[str]]],
    token: str,
    name: str,
    scopes: frozenset[engine_ports.Scope],
    expires_at: datetime | None,
) -> engine_ports.TokenHolder:
    """Return a token's holder from rows of `memories_of`: the owner's first, then the groups'."""
    (owner, owner_name, _), *groups = memories
    return engine_ports.TokenHolder(
        owner=owner,
        token=token,
        name=name,
        scopes=scopes,
        expires_at=expires_at,
        owner_name=owner_name,
        groups=tuple(
            engine_ports.SharedMemory(
                group, its_name, scopes & set(map(engine_ports.Scope, there))
            )
            for group, its_name, there in groups
        ),
    )
