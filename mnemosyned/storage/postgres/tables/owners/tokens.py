"""Tokens of owners as rows: of each its SHA-256, never the token."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Sequence
from datetime import timedelta

from mnemosyned.domain.errors import NotFound
from mnemosyned.domain.ports.servers.owners import (
    TOKEN_PREFIX,
    IssuedToken,
    Scope,
    Token,
    TokenHolder,
)
from mnemosyned.storage.postgres.database.session import Row, Session

SECRET_BYTES = 32
ID_BYTES = 5
_VALID = "(revoked_at IS NULL AND (expires_at IS NULL OR expires_at > now()))"
_COLUMNS = "id, name, scopes, created_at, expires_at, revoked_at"
_FIELDS = f"{_COLUMNS}, {_VALID}"
_INSERT = (
    "INSERT INTO owner_token (owner, digest, id, name, scopes, created_at, expires_at) "
    "VALUES (%(owner)s, %(digest)s, %(id)s, %(name)s, %(scopes)s::text[], now(), "
    f"now() + %(valid_for)s::interval) RETURNING {_COLUMNS}, "
    "expires_at IS NULL OR expires_at > created_at"
)
_NAMED = "owner = %(owner)s AND (id = %(token)s OR name = %(token)s)"


def insert_token(
    session: Session,
    name: str,
    scopes: Sequence[Scope],
    *,
    valid_for: timedelta | None = None,
) -> IssuedToken:
    """Make a token of 256 random bits for the session's owner."""
    secret = f"{TOKEN_PREFIX}{session.owner}_{secrets.token_urlsafe(SECRET_BYTES)}"
    row = session.execute(
        _INSERT,
        digest=_digest(secret),
        id=secrets.token_hex(ID_BYTES),
        name=name,
        scopes=[scope.value for scope in Scope if scope in scopes],
        valid_for=valid_for,
    ).fetchone()
    assert row  # noqa: S101 for mypy: INSERT … RETURNING gives its row
    return IssuedToken(token=_token(row), secret=secret)


def all_tokens(session: Session) -> list[Token]:
    """All tokens of the owner, the newest first."""
    rows = session.execute(
        f"SELECT {_FIELDS} FROM owner_token WHERE owner = %(owner)s "
        "ORDER BY created_at DESC, id"
    )
    return list(map(_token, rows))


def holder_of(session: Session, secret: str) -> TokenHolder | None:
    """Whose a token is, if it is valid.

    It is found by its SHA-256: the time that takes says nothing of a token that others have.
    """
    digest = _digest(secret)
    row = session.execute(
        "SELECT digest, id, scopes FROM token_of(%(owner)s::bigint, %(digest)s)",
        digest=digest,
    ).fetchone()
    if row is None or not hmac.compare_digest(bytes(row[0]), digest):
        return None
    return TokenHolder(
        owner=session.owner, token=row[1], scopes=frozenset(map(Scope, row[2]))
    )


def revoke(session: Session, token: str) -> int:
    """Revoke what is valid of an id or a name; how many."""
    return session.execute(
        f"UPDATE owner_token SET revoked_at = now() WHERE {_NAMED} AND {_VALID}",
        token=token,
    ).rowcount


def revoke_all(session: Session) -> None:
    """Revoke every token of the owner."""
    session.execute(
        "UPDATE owner_token SET revoked_at = now() "
        "WHERE owner = %(owner)s AND revoked_at IS NULL"
    )


def rotate(session: Session, token: str, *, keep_for: timedelta) -> IssuedToken:
    """Issue the successor of the newest valid token of an id or a name. Raises `NotFound`."""
    row = session.execute(
        "SELECT id, name, scopes, expires_at - created_at FROM owner_token "
        f"WHERE {_NAMED} AND {_VALID} ORDER BY created_at DESC, id LIMIT 1",
        token=token,
    ).fetchone()
    if row is None:
        raise NotFound(f"no valid token is called {token!r}", field="token")
    old, name, scopes, valid_for = row
    issued = insert_token(
        session, name, [Scope(each) for each in scopes], valid_for=valid_for
    )
    session.execute(
        "UPDATE owner_token SET expires_at = "
        "least(expires_at, now() + %(keep_for)s::interval) "
        "WHERE owner = %(owner)s AND id = %(old)s",
        keep_for=keep_for,
        old=old,
    )
    return issued


def _digest(secret: str) -> bytes:
    return hashlib.sha256(secret.encode()).digest()


def _token(row: Row) -> Token:
    id, name, scopes, created_at, expires_at, revoked_at, valid = row
    return Token(
        id=id,
        name=name,
        scopes=tuple(map(Scope, scopes)),
        created_at=created_at,
        expires_at=expires_at,
        revoked_at=revoked_at,
        valid=valid,
    )
