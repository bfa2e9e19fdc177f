"""The owners of a database, their tokens, codes and groups; those with work."""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from datetime import datetime, timedelta

from mnemosyned.errors import InvalidRequest, NotFound, StorageFailed, Unauthorized
from mnemosyned.logs import logger
from mnemosyned.memory.engine_ports import (
    CODE_ALPHABET,
    CODE_CHARS,
    LOCAL_OWNER,
    NAME_FORM,
    OWN_SCOPES,
    TOKEN_PREFIX,
    Enrolment,
    Invitation,
    IssuedToken,
    Membership,
    Owner,
    OwnerFigures,
    OwnerToken,
    RemovedOwner,
    Scope,
    SharedMemory,
    TokenHolder,
    format_code,
    owner_of,
    read_code,
)
from mnemosyned.memory.periods import Level
from mnemosyned.storage.common.session import Row
from mnemosyned.storage.postgres import purge
from mnemosyned.storage.postgres.pool import Pool
from mnemosyned.storage.postgres.roles import (
    OWNER_TABLES,
    owned_tables,
    require_table_owner,
    table_owner,
)
from mnemosyned.storage.postgres.session import PostgresSession, utc

log = logger()

SECRET_BYTES = 32
ID_BYTES = 5
RENEWED_FOR = timedelta(minutes=5)
"""A token that was renewed is valid for so long yet, for programs that have it in use."""
USES_EVERY_S = 60.0
USES_MAX = 100_000
"""Tokens whose uses wait to be saved; those of others are not counted."""
LOGGED = (
    "the audit log, if one is kept, until `mnem audit prune`: the owner's name, and ids"
)
OWNERS_LISTED_MAX = 100_000
DELETED_AT_ONCE = 5_000
"""Memories that are deleted in one transaction."""
ALL = 0
"""The owner of statements about all of them: none."""
_OWNER_FIELDS = (
    *(
        "number",
        "name",
        "is_group",
        "created_at",
        "memories",
        "summaries",
        "characters",
    ),
    *("tokens", "invitations", "suspended_at", "last_used_at", "requests"),
)
_TOKEN_FIELDS = (
    *("id", "name", "created_at", "expires_at", "revoked_at", "valid", "last_used_at"),
    "requests",
)
_BYTES = (
    "SELECT owner, sum(pg_column_size({table}.*))::bigint FROM {table} GROUP BY owner"
)
_DELETE_SOME = (
    "DELETE FROM memory WHERE owner = %(owner)s AND seq IN "
    "(SELECT seq FROM memory WHERE owner = %(owner)s ORDER BY seq LIMIT %(most)s)"
)
_ISSUE = (
    "SELECT * FROM issue_token(%(number)s::bigint, %(digest)s, %(id)s::text, %(name)s::text, "
    "%(scopes)s::text[], %(lasts)s::interval)"
)
_END = "SELECT end_tokens(%(number)s::bigint, %(token)s::text, %(keep_for)s::interval)"
_DROP = "SELECT drop_owner(%(number)s::bigint, %(doors_alone)s)"
_JOIN = "SELECT join_group(%(group)s::bigint, %(member)s::bigint, %(scopes)s::text[])"
_LEAVE = "SELECT leave_group(%(group)s::bigint, %(member)s::bigint)"
_MEMBERS = "SELECT * FROM list_members(%(group)s::bigint, %(most)s)"
_HOLDER = (
    "SELECT digest, id, name, scopes, expires_at, (SELECT json_agg(json_build_array("
    "memory_owner, memory_name, m.scopes)) FROM memories_of(%(owner)s::bigint) AS m) "
    "FROM token_holder(%(owner)s::bigint, %(digest)s)"
)
_CHANGE = (
    "SELECT change_owner(%(number)s::bigint, %(name)s::text, %(suspended)s::boolean)"
)
_INVITE = (
    "SELECT invite_owners(%(numbers)s::bigint[], %(digests)s::bytea[], %(scopes)s::text[], "
    "%(days)s::double precision[], %(lasts)s::interval)"
)
_REDEEM = (
    "SELECT * FROM redeem_invitation(%(number)s::bigint, %(code)s, %(digest)s, %(id)s::text, "
    "%(name)s::text, %(most)s::interval)"
)
_RENEW = (
    "SELECT owner_name, scopes, created_at, expires_at FROM renew_token(%(number)s::bigint, "
    "%(old)s, %(digest)s, %(id)s::text, %(usual)s::interval, %(most)s::interval, "
    "%(keep_for)s::interval)"
)
_NOTE_USES = "SELECT note_token_uses(%(owners)s::bigint[], %(ids)s::text[], %(counts)s::bigint[])"


def _digest(secret: str) -> bytes:
    """Return the SHA-256 of a token or code; the database keeps it in place of the secret."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).digest()


def _make_secret(number: int) -> tuple[str, dict[str, object]]:
    """Return a new token of 256 random bits for an owner, and its values for a statement."""
    secret = f"{TOKEN_PREFIX}{number}_{secrets.token_urlsafe(SECRET_BYTES)}"
    id = secrets.token_hex(ID_BYTES)
    return secret, {"number": number, "digest": _digest(secret), "id": id}


_WITH_WORK = (
    "SELECT owner FROM owners_with_work(%(archived)s, %(before)s, %(DAY)s, %(WEEK)s, %(MONTH)s, "
    "%(after)s::bigint, %(limit)s::bigint)"
)
_NAMED_HOLDER = (
    "SELECT json_agg(json_build_array(memory_owner, memory_name, m.scopes)) "
    "FROM memories_of(owner_named(%(name)s::text)) AS m"
)
_FIGURES = "SELECT * FROM owner_figures(%(before)s, %(digest)s::text)"
_LACKING_VECTORS = (
    "SELECT owner FROM owners_lacking_vectors("
    "%(digest)s::text, %(after)s::bigint, %(limit)s::bigint)"
)


class PostgresOwners:
    """The owners of a database and their tokens. Safe from any thread.

    Administration needs a login that owns the tables, or a token of the scope `admin`, which the
    database checks itself: a login that serves can do no more by itself than find the holder of a
    token, exchange a code or a token for another, and look for work. Every method raises
    `StorageFailed` if the database fails, and those of administration as `_administering` does.
    """

    def __init__(
        self,
        pool: Pool,
        *,
        role: str | None = None,
        prepare: Callable[[], object] = lambda: None,
        admin_token: str | None = None,
    ) -> None:
        """Administer owners on a pool; `role` is the database role for requests, if any.

        `prepare` creates that role, and is called before an owner is added. `admin_token` is the
        secret of the token for which the database allows administration.
        """
        self._pool = pool
        self._role = role
        self._in_role = f'SET LOCAL ROLE "{role}"' if role else "SELECT 1"
        self._prepare = prepare
        self._proof = ""
        if admin_token:
            self._proof = f"{owner_of(admin_token)} {_digest(admin_token).hex()}"
        self.on_change: Callable[[str, int, Sequence[str]], object] = lambda *_: None
        """Called with what is done, an owner's number and ids of tokens, or of a group the member's name.

        Before a removal."""
        self._changing = threading.Lock()
        self._uses: Counter[tuple[int, str]] = Counter()
        self._saved_at = time.monotonic()

    def administered_with(self, admin_token: str) -> PostgresOwners:
        """Return the same owners, administered by the holder of a token."""
        owners = PostgresOwners(self._pool, role=self._role, admin_token=admin_token)
        owners.on_change = self.on_change
        return owners

    @contextmanager
    def _administering(self) -> Iterator[PostgresSession]:
        """Lend a session in a transaction of administration, committed after the block.

        Raises `Unauthorized` for a token that may not administer, and without a token
        `StorageFailed` for a login that does not own the tables.
        """
        with self._pool.outside_transactions(ALL) as session:
            session.execute("BEGIN")
            self._prove(session)
            if not self._proof:
                require_table_owner(session)
            elif not session.scalar("SELECT administers()"):
                raise Unauthorized(
                    "this token does not administer owners any more; ask for one of the scope admin"
                )
            yield session
            session.execute("COMMIT")

    def _prove(self, session: PostgresSession) -> None:
        """Name the token of the administrator to the database, until the transaction ends."""
        session.execute(
            "SELECT set_config('mnemosyned.admin', %(proof)s::text, true)",
            proof=self._proof,
        )

    def add(self, name: str, *, is_group: bool = False) -> Owner:
        """Add an owner, or a group; return it.

        Raises `InvalidRequest` for a taken or malformed name.
        """
        check_name(name, field="name")
        self._prepare()
        with self._administering() as session:
            ((number, _, _, created_at, is_new),) = _add_missing(
                session, [name], are_groups=is_group
            )
        if not is_new:
            raise _name_taken(name, field="name")
        self.on_change("owner_add", number, ())
        return Owner(
            number=number,
            name=name,
            created_at=created_at,
            memories=0,
            summaries=0,
            characters=0,
            is_group=is_group,
        )

    def owners(self, *, measured: bool = False) -> Sequence[Owner]:
        """Return all owners, sorted by name, with counts and last use, without any text.

        With `measured`, also count the bytes of each owner's rows, for which all rows are read,
        and which needs the login that owns the tables; else the bytes are None.
        """
        sizes: Counter[int] = Counter()
        with self._administering() as session:
            if measured:
                require_table_owner(session)
            rows = session.execute(
                f"SELECT {', '.join(_OWNER_FIELDS)} FROM list_owners(%(most)s)",
                most=OWNERS_LISTED_MAX,
            ).fetchall()
            for table in ("memory", "episode") if measured else ():
                sizes.update(
                    dict(session.execute(_BYTES.format(table=table)).fetchall())
                )
        return [
            Owner(
                **dict(zip(_OWNER_FIELDS, row, strict=True)),
                bytes=sizes[row[0]] if measured else None,
            )
            for row in rows
        ]

    def change(
        self, name: str, *, new_name: str | None = None, suspended: bool | None = None
    ) -> str:
        """Rename an owner, or refuse its tokens and codes or accept them again; return its name.

        What is None stays as it is. Raises `NotFound`, and `InvalidRequest` for a taken or malformed
        name, and for the owner of the database's own memory.
        """
        number = self._number_besides_local(name, "revoke its tokens, if need be")
        if new_name:
            check_name(new_name, field="new_name")
        with self._administering() as session:
            changed = session.scalar(
                _CHANGE, number=number, name=new_name, suspended=suspended
            )
        if changed is None:
            raise _name_taken(new_name or name, field="new_name")
        if new_name:
            self.on_change("owner_rename", number, ())
        if suspended is not None:
            self.on_change("owner_suspend" if suspended else "owner_resume", number, ())
        return new_name or name

    def remove(self, name: str) -> RemovedOwner:
        """Delete an owner's tokens, then purge all of its rows; return what was deleted.

        All members leave a group. If an earlier call was interrupted, this one finishes the
        deletion. A login that does not own the tables of PostgreSQL 16 or older leaves the purge to
        `mnem db purge`. Raises `NotFound`, and `InvalidRequest` for the owner of the database's own memory.
        """
        number = self._number_besides_local(name, "use `mnem forget` there")
        self.on_change("owner_remove", number, ())
        with self._administering() as session:
            session.execute(_DROP, number=number, doors_alone=True)
        with self._pool.writing(number) as session:
            owns_tables, _ = table_owner(session)
            counts = session.execute(
                "SELECT working_count + archive_count, episodic_count FROM owner "
                "WHERE owner = %(owner)s"
            ).fetchone()
        rows: Counter[str] = Counter()
        deleted = DELETED_AT_ONCE
        while deleted == DELETED_AT_ONCE:
            with self._pool.writing(number, durable=False) as session:
                session.execute_once(self._in_role)
                deleted = session.execute(_DELETE_SOME, most=DELETED_AT_ONCE).rowcount
            rows["memory"] += deleted
        with self._pool.writing(number) as session:
            tables = owned_tables(session)
            session.execute_once(self._in_role)  # which the database holds to one owner
            for table in ("memory", *tables):
                done = session.execute(f'DELETE FROM "{table}" WHERE owner = %(owner)s')
                rows[table] += done.rowcount
            session.execute_once("RESET ROLE")
            self._prove(session)
            session.execute(_DROP, number=number, doors_alone=False)
        tables += OWNER_TABLES if owns_tables else ()
        try:
            purged = purge.purge_tables(self._pool, tables)
        except StorageFailed:
            if owns_tables:
                raise
            purged = False
        memories, summaries = counts or (0, 0)
        return RemovedOwner(
            name=name,
            number=number,
            memories=memories,
            summaries=summaries,
            rows=dict(+rows),
            purged=purged,
            left=(*purge.BEYOND, LOGGED),
        )

    def invite(
        self,
        invitees: Sequence[tuple[str, Sequence[Scope], float | None]],
        *,
        lasts: timedelta,
    ) -> list[Invitation]:
        """Make a one-time code for each owner, adding those that are missing; all or none.

        `invitees` are names, each with the scopes and days of the token that the code is exchanged
        for, None for no end; `lasts` is how long a code may be redeemed. Raises `InvalidRequest`
        for a malformed name.
        """
        for name, _, _ in invitees:
            check_name(name, field="name")
        self._prepare()
        codes, digests = list[str](), list[bytes]()
        with self._administering() as session:
            names = list(dict.fromkeys(name for name, _, _ in invitees))
            known = {row[1]: row for row in _add_missing(session, names)}
            for name, _, _ in invitees:
                if known[name][2]:
                    raise _has_no_tokens(name)
                characters = "".join(
                    secrets.choice(CODE_ALPHABET) for _ in range(CODE_CHARS)
                )
                codes.append(format_code(known[name][0], characters))
                digests.append(_digest(characters))
            expires_at = session.scalar(
                _INVITE,
                numbers=[known[name][0] for name, _, _ in invitees],
                digests=digests,
                scopes=[",".join(scopes) for _, scopes, _ in invitees],
                days=[days and float(days) for _, _, days in invitees],
                lasts=lasts,
            )
        for number, *_, is_new in known.values():
            self.on_change("owner_add" if is_new else "owner_invite", number, ())
        return [
            Invitation(
                owner=name, code=code, expires_at=expires_at, added=known[name][4]
            )
            for (name, _, _), code in zip(invitees, codes, strict=True)
        ]

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
        check_name(name, field="name")
        if not scopes:
            raise InvalidRequest("a token needs a scope", field="scopes")
        number, is_group = self._find(owner)
        if is_group:
            raise _has_no_tokens(owner)
        with self._administering() as session:
            issued = _issue(session, number, name, scopes, lasts=valid_for)
        self.on_change("token_add", number, [issued.token.id])
        return issued

    def tokens(self, owner: str) -> Sequence[OwnerToken]:
        """Return all tokens of an owner, expired and revoked tokens too, the newest first.

        Raises `NotFound`.
        """
        number = self.number(owner)
        with self._administering() as session:
            return [token for token, _ in _list_tokens(session, number)]

    def rotate(
        self, owner: str, token: str, *, keep_for: timedelta = timedelta()
    ) -> IssuedToken:
        """Issue a successor to an owner's newest valid token with this id or name.

        The old token stays valid for `keep_for`, or until it expires. The new token is valid as
        long as the old one was when it was issued. Raises `NotFound`.
        """
        number = self.number(owner)
        with self._administering() as session:
            named = (
                (each, lasts)
                for each, lasts in _list_tokens(session, number)
                if each.valid and token in (each.id, each.name)
            )
            old, lasts = next(named, (None, None))
            if old is None:
                raise NotFound(f"no valid token is called {token!r}", field="token")
            issued = _issue(session, number, old.name, old.scopes, lasts=lasts)
            session.execute(_END, number=number, token=old.id, keep_for=keep_for)
        self.on_change("token_rotate", number, [old.id, issued.token.id])
        return issued

    def revoke(self, owner: str, token: str) -> int:
        """Revoke an owner's valid tokens with this id or name; return how many were revoked.

        Raises `NotFound`.
        """
        number = self.number(owner)
        with self._administering() as session:
            rows = session.execute(_END, number=number, token=token, keep_for=None)
            ids = [id for (id,) in rows]
        if not ids:
            raise NotFound(f"no valid token is called {token!r}", field="token")
        self.on_change("token_revoke", number, ids)
        return len(ids)

    def redeem(
        self, code: str, token_name: str, *, most: timedelta | None = None
    ) -> Enrolment | None:
        """Exchange the code of an invitation for a token, which is valid for `most` at most.

        None for a text that is no code, and for one that is unknown, used or expired, or whose
        owner is suspended. Raises `InvalidRequest` for a malformed name of the token.
        """
        check_name(token_name, field="name")
        read = read_code(code)
        if read is None:
            return None
        number, characters = read
        secret, values = _make_secret(number)
        with self._pool.outside_transactions(ALL) as session:
            row = session.execute(
                _REDEEM, **values, code=_digest(characters), name=token_name, most=most
            ).fetchone()
        if row is None:
            return None
        self.on_change("login", number, [str(values["id"])])
        return _enrolment_from(secret, row)

    def renew(
        self, secret: str, *, usual: timedelta, most: timedelta | None = None
    ) -> Enrolment | None:
        """Exchange a valid token for a successor of the same name and scopes.

        It is valid as long as the old one was when it was issued, or for `usual` if that had no
        end, and for `most` at most; the old one is valid for `RENEWED_FOR` yet. None for a token
        that is not valid, and if the owner has a hundred valid tokens.
        """
        number = owner_of(secret)
        if number is None:
            return None
        successor, values = _make_secret(number)
        with self._pool.outside_transactions(ALL) as session:
            row = session.execute(
                _RENEW,
                **values,
                old=_digest(secret),
                usual=usual,
                most=most,
                keep_for=RENEWED_FOR,
            ).fetchone()
        if row is None:
            return None
        self.on_change("token_renew", number, [str(values["id"])])
        return _enrolment_from(successor, row)

    def note_use(self, owner: int, token: str) -> None:
        """Count a request with a token of an owner, by its id, to be saved later by `save_uses`."""
        with self._changing:
            if (owner, token) in self._uses or len(self._uses) < USES_MAX:
                self._uses[owner, token] += 1

    def save_uses(self, *, now: bool = False) -> None:
        """Save when and how often tokens were used, once a minute, or with `now` at once.

        Errors are logged: what is not saved is lost.
        """
        with self._changing:
            moment = time.monotonic()
            is_due = now or moment - self._saved_at >= USES_EVERY_S
            if not (is_due and self._uses):
                return
            uses, self._uses, self._saved_at = self._uses, Counter(), moment
        try:
            with self._pool.outside_transactions(ALL) as session:
                session.execute(
                    _NOTE_USES,
                    owners=[owner for owner, _ in uses],
                    ids=[token for _, token in uses],
                    counts=list(uses.values()),
                )
        except StorageFailed as error:
            log.warning("token_uses_not_saved", reason=error.reason)

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

    def keep_claims_open(self) -> AbstractContextManager[None]:
        """Keep the connection of claims to consolidate open while the block runs."""
        return self._pool.claims.kept_open()

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
        digest = _digest(secret)
        with self._pool.outside_transactions(number) as session:
            row = session.execute(_HOLDER, digest=digest).fetchone()
        if row is None or not hmac.compare_digest(bytes(row[0]), digest):
            return None
        _, token, name, allowed, expires_at, memories = row
        scopes = frozenset(map(Scope, allowed))
        return _holder_from(memories, token, name, scopes, expires_at)

    def named_holder(
        self,
        name: str,
        token: str,
        scopes: frozenset[Scope],
        expires_at: datetime | None,
        *,
        add: bool = False,
    ) -> TokenHolder | None:
        """Return the holder with an owner's name, for whom others vouch; None if it may not log in.

        It may not if it is suspended, a group, or not there. With `add` a missing owner is added, which
        needs a login that owns the tables. `token` names the kind of login. The owner of the
        database's own memory is never returned.
        """
        if not re.fullmatch(NAME_FORM, name):
            return None
        memories = None
        for is_added in (False, True):
            with self._pool.outside_transactions(ALL) as session:
                memories = session.scalar(_NAMED_HOLDER, name=name)
            if memories or is_added or not add:
                break
            try:
                self.add(name)
            except InvalidRequest:  # it is suspended, or another daemon was first
                continue
        if not memories or memories[0][0] == LOCAL_OWNER:
            return None
        return _holder_from(memories, token, token, scopes, expires_at)

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
        unknown = [scope for scope in scopes if scope not in OWN_SCOPES]
        if unknown or not scopes:
            raise InvalidRequest(
                f"a member of a group has one or more of {', '.join(OWN_SCOPES)}",
                field="scopes",
            )
        number = self.number(group, is_group=True)
        own, given = self.number(member, is_group=False), tuple(map(Scope, scopes))
        with self._administering() as session:
            joined_at = session.scalar(
                _JOIN, group=number, member=own, scopes=[each.value for each in given]
            )
        self.on_change("group_join", number, [member])
        return Membership(group=group, member=member, scopes=given, joined_at=joined_at)

    def leave(self, group: str, member: str) -> None:
        """End an owner's membership of a group. Raises `NotFound`."""
        number, own = self.number(group, is_group=True), self.number(member)
        with self._administering() as session:
            ended = session.scalar(_LEAVE, group=number, member=own)
        if ended is None:
            raise NotFound(f"{member} is no member of {group}", field="member")
        self.on_change("group_leave", number, [member])

    def memberships(self, group: str | None = None) -> Sequence[Membership]:
        """Return the members of a group, or of all groups, sorted by group and member.

        Raises `NotFound`.
        """
        number = self.number(group, is_group=True) if group else None
        with self._administering() as session:
            rows = session.execute(_MEMBERS, group=number, most=OWNERS_LISTED_MAX)
            return [
                Membership(
                    group=of,
                    member=member,
                    scopes=tuple(map(Scope, scopes)),
                    joined_at=joined_at,
                )
                for of, member, scopes, joined_at in rows
            ]

    def number(self, name: str, *, is_group: bool | None = None) -> int:
        """Return the number of the owner with this name.

        With `is_group`, only of a group, or only of an owner that is none. Raises `NotFound`.
        """
        return self._find(name, is_group=is_group)[0]

    def _find(self, name: str, *, is_group: bool | None = None) -> tuple[int, bool]:
        """Return the number of an owner and whether it is a group; as `number` otherwise."""
        with self._administering() as session:
            row = session.execute(
                "SELECT * FROM find_owner(%(name)s::text)", name=name
            ).fetchone()
        if row is None or is_group not in (None, row[1]):
            kind = "group" if is_group else "owner"
            raise NotFound(
                f"there is no {kind} {name!r}; `mnem owner list` shows all",
                field="owner",
            )
        return row[0], row[1]

    def _number_besides_local(self, name: str, advice: str) -> int:
        """Return the number of the owner with this name.

        Raises `NotFound`, and `InvalidRequest` with advice for the database's own memory.
        """
        number = self.number(name)
        if number == LOCAL_OWNER:
            raise InvalidRequest(
                f"{name} is the owner of this database's own memory, which a daemon serves on "
                f"its socket; {advice}",
                field="name",
            )
        return number


def _add_missing(
    session: PostgresSession, names: Sequence[str], *, are_groups: bool = False
) -> list[Row]:
    """Add owners that are missing; return rows of all.

    A row has number, name, whether it is a group, creation time, and whether it is new.
    """
    return session.execute(
        "SELECT * FROM add_owners(%(names)s::text[], %(groups)s)",
        names=list(names),
        groups=are_groups,
    ).fetchall()


def _has_no_tokens(group: str) -> InvalidRequest:
    """Return the error for a token or an invitation of a group."""
    return InvalidRequest(
        f"{group} is a group, which has no tokens: its members use their own",
        field="owner",
    )


def _issue(
    session: PostgresSession,
    number: int,
    name: str,
    scopes: Sequence[Scope],
    *,
    lasts: timedelta | None,
) -> IssuedToken:
    """Create a token for an owner; return it with its secret. Raises `NotFound`."""
    secret, values = _make_secret(number)
    given = [scope.value for scope in Scope if scope in scopes]
    row = session.execute(
        _ISSUE, **values, name=name, scopes=given, lasts=lasts
    ).fetchone()
    if row is None:
        raise NotFound("this owner was removed from the database", field="owner")
    created_at, expires_at = row
    token = OwnerToken(
        id=str(values["id"]),
        name=name,
        scopes=tuple(map(Scope, given)),
        created_at=created_at,
        expires_at=expires_at,
        revoked_at=None,
        valid=expires_at is None or expires_at > created_at,
    )
    return IssuedToken(token=token, secret=secret)


def _list_tokens(
    session: PostgresSession, number: int
) -> Iterator[tuple[OwnerToken, timedelta | None]]:
    """Yield an owner's tokens, the newest first, each with how long it is valid from its issue."""
    for *row, scopes, lasts in session.execute(
        f"SELECT {', '.join(_TOKEN_FIELDS)}, scopes, valid_for "
        "FROM list_tokens(%(number)s::bigint)",
        number=number,
    ):
        known = dict(zip(_TOKEN_FIELDS, row, strict=True))
        yield OwnerToken(**known, scopes=tuple(map(Scope, scopes))), lasts


def _enrolment_from(secret: str, row: Row) -> Enrolment:
    """Return a new token from its secret and a row of owner's name, scopes, issue and expiry."""
    name, scopes, _, expires_at = row
    return Enrolment(
        token=secret,
        owner=name,
        scopes=tuple(map(Scope, scopes)),
        expires_at=expires_at,
    )


def _name_taken(name: str, *, field: str) -> InvalidRequest:
    """Return the error for a name that another owner has."""
    return InvalidRequest(
        f"there is an owner {name} already; choose another name", field=field
    )


def _holder_from(
    memories: Sequence[tuple[int, str, Sequence[str]]],
    token: str,
    name: str,
    scopes: frozenset[Scope],
    expires_at: datetime | None,
) -> TokenHolder:
    """Return the holder of a token from the rows of `memories_of`, the first of them its owner's."""
    (owner, owner_name, _), *groups = memories
    return TokenHolder(
        owner=owner,
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


def check_name(name: str, *, field: str) -> None:
    """Raise `InvalidRequest` if the name of an owner or token is malformed.

    `field` is the request's field that the error names.
    """
    if not re.fullmatch(NAME_FORM, name):
        raise InvalidRequest(
            f"{name!r} is no name: use letters, digits and . _ @ - after a letter or digit, "
            "100 characters at most",
            field=field,
        )
