"""Administration of owners: added, invited, changed, removed; their tokens and groups.

The database lets a login that owns its tables administer, and holders of a token of the scope `admin`.
"""

from __future__ import annotations

import re
import secrets
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import NamedTuple

from mnemosyned.errors import InvalidRequest, NotFound, StorageFailed, Unauthorized
from mnemosyned.memory.engine_ports import (
    CODE_ALPHABET,
    CODE_CHARS,
    LOCAL_OWNER,
    NAME_FORM,
    OWN_SCOPES,
    TOKEN_PREFIX,
    Invitation,
    IssuedToken,
    Membership,
    Owner,
    OwnerToken,
    RemovedOwner,
    Scope,
    format_code,
    hash_secret,
    owner_of,
)
from mnemosyned.memory.values import MEMBER_FIELD
from mnemosyned.storage.common.rows import column_names
from mnemosyned.storage.common.session import Row
from mnemosyned.storage.postgres import forgetting, roles
from mnemosyned.storage.postgres.pool import Pool
from mnemosyned.storage.postgres.session import PostgresSession

SECRET_BYTES = 32
LOGGED = (
    "the audit log, if one is kept, until `mnem audit prune`: the owner's name, and ids"
)
OWNERS_LISTED_MAX = 100_000
DELETED_AT_ONCE = 5_000
"""Memories that are deleted in one transaction."""
ALL = 0
"""Owner number of statements about all owners."""
_OWNER_FIELDS = (
    "number, name, is_group, created_at, memories, summaries, characters, tokens, invitations, "
    "suspended_at, last_used_at, requests"
)
_ISSUED_FIELDS = (
    "id, name, created_at, expires_at, revoked_at, valid, last_used_at, requests"
)
_BYTES = (
    "SELECT owner, sum(pg_column_size({table}.*))::bigint FROM {table} GROUP BY owner"
)
_DELETE_SOME = (
    "DELETE FROM memory WHERE owner = %(owner)s AND seq IN "
    "(SELECT seq FROM memory WHERE owner = %(owner)s ORDER BY seq LIMIT %(most)s)"
)
_RENAME_MEMBER = (
    "UPDATE memory SET metadata = replace(metadata, %(old)s, %(new)s) "
    "WHERE owner = %(owner)s AND position(%(old)s IN metadata) > 0"
)
"""As text: not every JSON value can be a `jsonb` of PostgreSQL."""


class TokenKey(NamedTuple):
    """The owner's number, the hash of the secret, and the id of a token."""

    owner: int
    digest: bytes
    id: str


def make_secret(number: int) -> tuple[str, TokenKey]:
    """Return a new token of 256 random bits for an owner, and the key that the database stores for it."""
    secret = f"{TOKEN_PREFIX}{number}_{secrets.token_urlsafe(SECRET_BYTES)}"
    id = secrets.token_hex(5)
    return secret, TokenKey(number, hash_secret(secret), id)


class AdministeredOwners:
    """The owners of a database, their tokens, codes and groups, for administrators.

    It needs a login that owns the tables, or a token of the scope `admin`, which the database checks itself.
    Every method raises `StorageFailed` if the database fails, and the errors of `_admin_transaction`. Safe from
    any thread.
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
            self._proof = f"{owner_of(admin_token)} {hash_secret(admin_token).hex()}"
        self.on_change: Callable[[str, int, Sequence[str]], object] = lambda *_: None
        """Called with what is done, an owner's number and ids of tokens, before a removal.

        For a rename it gets the new name, for a group a member's number, name and scopes."""

    def administered_with(self, admin_token: str) -> AdministeredOwners:
        """Return an object for the same owners, with the administrator's rights of a token."""
        owners = AdministeredOwners(
            self._pool, role=self._role, admin_token=admin_token
        )
        owners.on_change = self.on_change
        return owners

    def owns_tables(self) -> bool:
        """Return whether the login owns the tables, and so administers without a token."""
        with self._pool.outside_transactions(ALL) as session:
            return roles.table_owner(session)[0]

    @contextmanager
    def _admin_transaction(self) -> Iterator[PostgresSession]:
        """Lend a session with an administrator's rights; its transaction is committed after the block.

        Raises `Unauthorized` for a token that may not administer, and without a token `StorageFailed` for a
        login that does not own the tables.
        """
        with self._pool.outside_transactions(ALL) as session:
            session.execute("BEGIN")
            self._send_admin_proof(session)
            if not self._proof:
                roles.require_table_owner(session)
            elif not session.scalar("SELECT administers()"):
                raise Unauthorized(
                    "this token does not administer owners any more; ask for one of the scope admin"
                )
            yield session
            session.execute("COMMIT")

    def _call_as_admin(self, function: str, *values: object) -> list[Row]:
        """Call a function of the schema in a transaction of administration; return its rows."""
        with self._admin_transaction() as session:
            return session.call(function, *values).fetchall()

    def _send_admin_proof(self, session: PostgresSession) -> None:
        """Give the database the hash of the administrator's token, until the transaction ends."""
        session.execute(
            "SELECT set_config('mnemosyned.admin', %(proof)s::text, true)",
            proof=self._proof,
        )

    def add(self, name: str, *, is_group: bool = False) -> Owner:
        """Add an owner or a group, and return it. Raises `InvalidRequest` for a taken or malformed name."""
        check_name(name, field="name")
        self._prepare()
        with self._admin_transaction() as session:
            _check_letter_case(session, [name], field="name")
            added = session.call("add_owners", [name], is_group).fetchall()
        ((number, _, _, created_at, is_new),) = added
        if not is_new:
            raise _make_owner_exists_error(name, field="name")
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

        With `measured`, also count the bytes of each owner's rows; this reads all rows, and needs the
        login that owns the tables. Otherwise the bytes are None.
        """
        sizes: Counter[int] = Counter()
        with self._admin_transaction() as session:
            if measured:
                roles.require_table_owner(session)
            rows = session.call(
                "list_owners", OWNERS_LISTED_MAX, columns=_OWNER_FIELDS
            ).fetchall()
            for table in ("memory", "episode") if measured else ():
                sizes.update(
                    dict(session.execute(_BYTES.format(table=table)).fetchall())
                )
        return [
            Owner(
                **dict(zip(column_names(_OWNER_FIELDS), row, strict=True)),
                bytes=sizes[row[0]] if measured else None,
            )
            for row in rows
        ]

    def change(
        self, name: str, *, new_name: str | None = None, suspended: bool | None = None
    ) -> str:
        """Rename, suspend or resume an owner; return the name that it has then.

        Fields that are None do not change. A new name is also that of the member in memories of groups.
        Raises `NotFound`, and `InvalidRequest` for a taken or malformed name, and for the owner of the
        database's own memory.
        """
        number = self._number_besides_local(name, "revoke its tokens, if need be")
        if new_name:
            check_name(new_name, field="new_name")
        with self._admin_transaction() as session:
            if new_name:
                _check_letter_case(session, [new_name], field="new_name", besides=name)
            changed = session.call("change_owner", number, new_name, suspended)
            is_done = changed.fetchone()
        if not is_done:
            raise _make_owner_exists_error(new_name or name, field="new_name")
        if new_name:
            self.on_change("owner_rename", number, [new_name])
            for each in self.memberships():
                if each.member == new_name:
                    group = self.number(each.group, is_group=True)
                    with self._pool.writing(group) as session:
                        session.execute_once(self._in_role)
                        old, new = (f'"{MEMBER_FIELD}":"{n}"' for n in (name, new_name))
                        session.execute(_RENAME_MEMBER, old=old, new=new)
        if suspended is not None:
            self.on_change("owner_suspend" if suspended else "owner_resume", number, ())
        return new_name or name

    def remove(self, name: str) -> RemovedOwner:
        """Suspend an owner, delete all tokens and rows, and purge the tables; return what was deleted.

        All members leave a group. If an earlier call was interrupted, this one finishes the
        deletion. A login that does not own the tables of PostgreSQL 16 or older leaves the purge to
        `mnem db purge`. Raises `NotFound`, and `InvalidRequest` for the owner of the database's own memory.
        """
        number = self._number_besides_local(name, "use `mnem forget` there")
        self.on_change("owner_remove", number, ())
        self._call_as_admin("drop_owner", number, True)  # noqa: FBT003 its tokens alone
        rows: Counter[str] = Counter()
        deleted = DELETED_AT_ONCE
        while deleted == DELETED_AT_ONCE:
            with self._pool.writing(number, durable=False) as session:
                session.execute_once(self._in_role)
                deleted = session.execute(_DELETE_SOME, most=DELETED_AT_ONCE).rowcount
            rows["memory"] += deleted
        with self._pool.writing(number) as session:
            owns_tables, _ = roles.table_owner(session)
            # Only now, as daemons wrote until they noticed: the deletions above do not lower it.
            counts = session.execute(
                "SELECT working_count + archive_count, episodic_count FROM owner "
                "WHERE owner = %(owner)s"
            ).fetchone()
            tables = roles.owned_tables(session)
            session.execute_once(self._in_role)  # which the database holds to one owner
            for table in ("memory", *tables):
                done = session.execute(f'DELETE FROM "{table}" WHERE owner = %(owner)s')
                rows[table] += done.rowcount
            session.execute_once("RESET ROLE")
            self._send_admin_proof(session)
            session.call("drop_owner", number, False)  # noqa: FBT003 all of it
        tables += roles.OWNER_TABLES if owns_tables else ()
        try:
            purged = forgetting.purge_tables(self._pool, tables)
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
            left=(*forgetting.BEYOND, LOGGED),
        )

    def require_purge_rights(self) -> None:
        """Raise `StorageFailed` if this login may not VACUUM the tables of memories."""
        with self._pool.outside_transactions(ALL) as session:
            forgetting.require_ownership(session, forgetting.TABLES)

    def invite(
        self,
        invitees: Sequence[tuple[str, Sequence[Scope], float | None]],
        *,
        lasts: timedelta,
    ) -> list[Invitation]:
        """Return a new one-time code for each owner; add missing owners. If one fails, none is invited.

        A new code replaces unused codes of the owner. `invitees` are names, each with the scopes and days of
        the token that the code is exchanged for, None for no end; `lasts` is how long a code may be redeemed.
        Raises `InvalidRequest` for a malformed name or a group.
        """
        for name, _, _ in invitees:
            check_name(name, field="name")
        self._prepare()
        codes, digests = list[str](), list[bytes]()
        with self._admin_transaction() as session:
            names = list(dict.fromkeys(name for name, _, _ in invitees))
            _check_letter_case(session, names, field="name")
            # Number, name, whether it is a group, time, and whether it was added now.
            added = session.call("add_owners", names, False)  # noqa: FBT003 no groups
            known = {row[1]: row for row in added}
            for name, _, _ in invitees:
                if known[name][2]:
                    raise _group_token_error(name)
                characters = "".join(
                    secrets.choice(CODE_ALPHABET) for _ in range(CODE_CHARS)
                )
                codes.append(format_code(known[name][0], characters))
                digests.append(hash_secret(characters))
            ((expires_at,),) = session.call(
                "invite_owners",
                [known[name][0] for name, _, _ in invitees],
                digests,
                [",".join(scopes) for _, scopes, _ in invitees],
                [days and float(days) for _, _, days in invitees],
                lasts,
            )
        for number, *_, is_new in known.values():
            self.on_change("owner_add" if is_new else "owner_invite", number, ())
        return [
            Invitation(
                owner=name, code=code, expires_at=expires_at, added=known[name][4]
            )
            for (name, _, _), code in zip(invitees, codes, strict=True)
        ]

    def withdraw_codes(self, name: str) -> None:
        """Delete the codes that an owner was given and did not use. Raises `NotFound`."""
        self.number(name)
        self.invite([(name, OWN_SCOPES, None)], lasts=timedelta())

    def issue(
        self,
        owner: str,
        name: str,
        scopes: Sequence[Scope],
        *,
        valid_for: timedelta | None = None,
    ) -> IssuedToken:
        """Create a token for an owner, and return it with its secret.

        `valid_for` is the time until it expires, None for no end. Raises `NotFound`, and `InvalidRequest` for a
        malformed name, no scopes or a group.
        """
        check_name(name, field="name")
        if not scopes:
            raise InvalidRequest("a token needs a scope", field="scopes")
        number, is_group = self._find_owner(owner)
        if is_group:
            raise _group_token_error(owner)
        with self._admin_transaction() as session:
            issued = _issue_token(session, number, name, scopes, lasts=valid_for)
        self.on_change("token_add", number, [issued.token.id])
        return issued

    def tokens(self, owner: str) -> Sequence[OwnerToken]:
        """Return all tokens of an owner, ended ones too, the newest first. Raises `NotFound`."""
        number = self.number(owner)
        with self._admin_transaction() as session:
            return [token for token, _ in _list_tokens(session, number)]

    def rotate(
        self, owner: str, token: str, *, keep_for: timedelta = timedelta()
    ) -> IssuedToken:
        """Issue and return a successor to an owner's newest valid token with this id or name.

        The old token stays valid for `keep_for`, or until it expires. The new token is valid as long as the
        old one was when it was issued. Raises `NotFound`.
        """
        number = self.number(owner)
        with self._admin_transaction() as session:
            named = (
                (each, lasts)
                for each, lasts in _list_tokens(session, number)
                if each.valid and token in (each.id, each.name)
            )
            old, lasts = next(named, (None, None))
            if old is None:
                raise NotFound(f"no valid token is called {token!r}", field="token")
            issued = _issue_token(session, number, old.name, old.scopes, lasts=lasts)
            session.call("end_tokens", number, old.id, keep_for)
        self.on_change("token_rotate", number, [old.id, issued.token.id])
        return issued

    def revoke(self, owner: str, token: str) -> int:
        """Revoke an owner's valid tokens with this id or name; return how many. Raises `NotFound`."""
        number = self.number(owner)
        ids = [id for (id,) in self._call_as_admin("end_tokens", number, token, None)]
        if not ids:
            raise NotFound(f"no valid token is called {token!r}", field="token")
        self.on_change("token_revoke", number, ids)
        return len(ids)

    def join(self, group: str, member: str, scopes: Sequence[Scope]) -> Membership:
        """Make an owner a member of a group, or change a member's scopes; return the membership.

        Raises `NotFound`, and `InvalidRequest` for a group as the member, or scopes that members cannot have.
        """
        unknown = [scope for scope in scopes if scope not in OWN_SCOPES]
        if unknown or not scopes:
            raise InvalidRequest(
                f"a member of a group has one or more of {', '.join(OWN_SCOPES)}",
                field="scopes",
            )
        number = self.number(group, is_group=True)
        own, given = self.number(member, is_group=False), tuple(map(Scope, scopes))
        scope_names = [each.value for each in given]
        joined = self._call_as_admin("join_group", number, own, scope_names)
        (joined_at,) = joined[0] if joined else (None,)
        self.on_change("group_join", number, [str(own), member, *given])
        return Membership(group=group, member=member, scopes=given, joined_at=joined_at)

    def leave(self, group: str, member: str) -> None:
        """End an owner's membership of a group. Raises `NotFound`."""
        number, own = self.number(group, is_group=True), self.number(member)
        if not self._call_as_admin("leave_group", number, own):
            raise NotFound(f"{member} is no member of {group}", field="member")
        self.on_change("group_leave", number, [str(own), member])

    def memberships(self, group: str | None = None) -> Sequence[Membership]:
        """Return the memberships of a group, or of all groups, in order of the names. Raises `NotFound`."""
        number = self.number(group, is_group=True) if group else None
        return [
            Membership(
                group=of,
                member=member,
                scopes=tuple(map(Scope, scopes)),
                joined_at=joined_at,
            )
            for of, member, scopes, joined_at in self._call_as_admin(
                "list_members", number, OWNERS_LISTED_MAX
            )
        ]

    def number(self, name: str, *, is_group: bool | None = None) -> int:
        """Return an owner's number. Raises `NotFound`, also if `is_group` is given and wrong for the owner."""
        return self._find_owner(name, is_group=is_group)[0]

    def _find_owner(
        self, name: str, *, is_group: bool | None = None
    ) -> tuple[int, bool]:
        """Return (owner's number, whether it is a group). Raises `NotFound`, also if `is_group` is wrong."""
        found = self._call_as_admin("find_owner", name)
        if not found or is_group not in (None, found[0][1]):
            kind, other = ("group", "an owner") if is_group else ("owner", "a group")
            but = f", but {other} of that name" if found else ""
            raise NotFound(
                f"there is no {kind} {name!r}{but}; `mnem owner list` shows all",
                field="owner",
            )
        return found[0][0], found[0][1]

    def _number_besides_local(self, name: str, advice: str) -> int:
        """Return an owner's number. Raises `NotFound`; `InvalidRequest` with `advice` for the local memory."""
        number = self.number(name)
        if number == LOCAL_OWNER:
            raise InvalidRequest(
                f"{name} is the owner of this database's own memory, which a daemon serves on "
                f"its socket; {advice}",
                field="name",
            )
        return number


def _group_token_error(group: str) -> InvalidRequest:
    return InvalidRequest(
        f"{group} is a group, which has no tokens: its members use their own",
        field="owner",
    )


def _issue_token(
    session: PostgresSession,
    number: int,
    name: str,
    scopes: Sequence[Scope],
    *,
    lasts: timedelta | None,
) -> IssuedToken:
    """Create a token for an owner, endless if `lasts` is None; return it and its secret. Raises `NotFound`."""
    secret, values = make_secret(number)
    given = [scope.value for scope in Scope if scope in scopes]
    row = session.call("issue_token", *values, name, given, lasts).fetchone()
    if row is None:
        raise NotFound("this owner was removed from the database", field="owner")
    created_at, expires_at = row
    token = OwnerToken(
        id=values.id,
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
    """Yield (token, time from issue to expiry or None) for an owner's tokens, newest first."""
    columns = f"{_ISSUED_FIELDS}, scopes, valid_for"
    for *row, scopes, lasts in session.call("list_tokens", number, columns=columns):
        known = dict(zip(column_names(_ISSUED_FIELDS), row, strict=True))
        yield OwnerToken(**known, scopes=tuple(map(Scope, scopes))), lasts


def _make_owner_exists_error(name: str, *, field: str) -> InvalidRequest:
    return InvalidRequest(
        f"there is an owner {name} already; choose another name", field=field
    )


def _check_letter_case(
    session: PostgresSession, names: Sequence[str], *, field: str, besides: str = ""
) -> None:
    """Raise `InvalidRequest` if a new name differs only in letter case from an existing one, except `besides`.

    A provider that writes a person's name in another way would give that person a second, empty memory.
    """
    rows = session.call("list_owners", OWNERS_LISTED_MAX, columns="name")
    known = {name for (name,) in rows} - {besides}
    by_case = {name.lower(): name for name in known}
    for name in set(names) - known:
        if other := by_case.get(name.lower()):
            raise InvalidRequest(
                f"there is an owner {other} already, whose name differs from {name} in capital "
                "letters only; choose another name",
                field=field,
            )
        by_case[name.lower()] = name


def check_name(name: str, *, field: str) -> None:
    """Raise `InvalidRequest`, which names `field`, for a malformed name of an owner or token."""
    if not re.fullmatch(NAME_FORM, name):
        raise InvalidRequest(
            f"{name!r} is no name: use letters, digits and . _ @ - after a letter or digit, "
            "100 characters at most",
            field=field,
        )
