"""Owners of one database, and the tokens by which a daemon for many of them knows each."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Protocol

from mnemosyned.domain.sleep.rollup import Level

NAME_FORM = r"[A-Za-z0-9][A-Za-z0-9._@-]{0,99}"
"""An owner's name, and a token's."""
LOCAL_OWNER = 1
LOCAL_NAME = "local"
"""The owner of a memory that has only one, which a daemon serves on its Unix socket."""

TOKEN_PREFIX = "mnt_"  # noqa: S105 how each begins
_TOKEN = re.compile(
    rf"{TOKEN_PREFIX}([1-9][0-9]{{0,18}})_[A-Za-z0-9_-]{{43}}", re.ASCII
)
_OWNERS_MAX = 2**63 - 1


class Scope(StrEnum):
    """A permission of a token."""

    READ = "read"
    WRITE = "write"
    FORGET = "forget"


@dataclass(frozen=True, slots=True, kw_only=True)
class Owner:
    """An owner, and how much memory it has."""

    number: int
    name: str
    created_at: datetime
    memories: int
    summaries: int
    characters: int
    bytes: int | None = None
    """In the tables, without their indexes; None where they were not measured."""
    tokens: int = 0
    """Tokens that are valid."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    """A token, as far as it is known: the secret itself is not kept."""

    id: str
    name: str
    scopes: tuple[Scope, ...]
    created_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None
    valid: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class IssuedToken:
    """A new token, in the one moment in which it is known."""

    token: Token
    secret: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenHolder:
    """The owner that a token names, and what it allows."""

    owner: int
    token: str
    scopes: frozenset[Scope]


@dataclass(frozen=True, slots=True, kw_only=True)
class RemovedOwner:
    """An owner that was removed: what went with it, and where its words still are."""

    name: str
    memories: int
    summaries: int
    purged: bool
    """Whether they have left the pages of the tables and indexes, too."""
    left: tuple[str, ...]
    """Places that keep the words, each with what ends that."""


def owner_of(token: str) -> int | None:
    """Return the owner that a token says it is of; None for what has not a token's form."""
    form = _TOKEN.fullmatch(token)
    owner = int(form[1]) if form else 0
    return owner if 0 < owner <= _OWNERS_MAX else None


class OwnerStore(Protocol):
    """The owners of a database. Every method raises `StorageFailed` if the database fails."""

    def add(self, name: str) -> Owner:
        """Add an owner. Raises `InvalidRequest` for a name that is taken or not one."""
        ...

    def owners(self, *, measured: bool = False) -> Sequence[Owner]:
        """List all owners by name; `measured` reads all rows for their bytes."""
        ...

    def remove(self, name: str) -> RemovedOwner:
        """Delete an owner with every row of it; again, where that was cut short.

        Its tokens are revoked first. Raises `NotFound`, and `InvalidRequest` for the owner of a
        memory with only one.
        """
        ...

    def issue(
        self,
        owner: str,
        name: str,
        scopes: Sequence[Scope],
        *,
        valid_for: timedelta | None = None,
    ) -> IssuedToken:
        """Issue a token. Raises `NotFound` and `InvalidRequest`."""
        ...

    def tokens(self, owner: str) -> Sequence[Token]:
        """List an owner's tokens, also those that are valid no more; the newest first."""
        ...

    def rotate(
        self, owner: str, token: str, *, keep_for: timedelta = timedelta()
    ) -> IssuedToken:
        """Replace a token by a new one; the old one is valid for so long yet.

        `token` is its id or its name. The new one is valid as long as the old one was when it was
        issued. Raises `NotFound`.
        """
        ...

    def revoke(self, owner: str, token: str) -> int:
        """Revoke a token by its id, or all of a name; how many. Raises `NotFound`."""
        ...

    def number(self, name: str) -> int:
        """Look up an owner's number. Raises `NotFound`."""
        ...

    def with_work(
        self,
        *,
        before: datetime,
        closed: Mapping[Level, datetime],
        archived: bool = False,
        after: int = 0,
        limit: int = 1_000,
    ) -> Sequence[int]:
        """List the numbers of owners, above `after`, whose memory has something to consolidate.

        That is a memory in working memory from before a time, a summary that no period has yet
        although its period began before `closed`, one that is to be rewritten, or what is still to
        be deleted for good. With `archived` also those who have an archive, which may be pruned.
        """
        ...

    def lacking_vectors(
        self, identity: str, *, after: int = 0, limit: int = 1_000
    ) -> Sequence[int]:
        """List the numbers of owners, above `after`, with memories that had no turn with a model.

        Those whom another daemon has claimed are left out.
        """
        ...

    def holder(self, secret: str) -> TokenHolder | None:
        """Look up whose a token is; None where it is none, has expired or was revoked."""
        ...
