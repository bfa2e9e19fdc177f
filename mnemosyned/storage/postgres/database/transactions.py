"""Methods that run in a transaction of their own, about one owner."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Concatenate, ParamSpec, TypeVar

from mnemosyned.storage.postgres.database.pool import Pool
from mnemosyned.storage.postgres.database.session import Session

P = ParamSpec("P")
R = TypeVar("R")
S = TypeVar("S", bound="Transactional")


class Transactional:
    """A part of the store whose methods `reads` and `writes` give a session."""

    def __init__(self, pool: Pool, owner: int) -> None:
        self._pool = pool
        self._owner = owner


def reads(
    method: Callable[Concatenate[S, Session, P], R],
) -> Callable[Concatenate[S, P], R]:
    """Call a method with a session that sees one snapshot."""

    @wraps(method)
    def call(self: S, /, *args: P.args, **kwargs: P.kwargs) -> R:
        with self._pool.reading(self._owner) as session:
            return method(self, session, *args, **kwargs)

    return call


def writes(
    method: Callable[Concatenate[S, Session, P], R],
) -> Callable[Concatenate[S, P], R]:
    """Call a method with a session that writes; its changes are durable when it returns.

    The owner's row is locked: what the method reads, nobody else changes before it has ended.
    """

    @wraps(method)
    def call(self: S, /, *args: P.args, **kwargs: P.kwargs) -> R:
        with self._pool.writing(self._owner) as session:
            return method(self, session, *args, **kwargs)

    return call


def writes_lazily(
    method: Callable[Concatenate[S, Session, P], R],
) -> Callable[Concatenate[S, P], R]:
    """Call a method as `writes` does, without waiting for the disk."""

    @wraps(method)
    def call(self: S, /, *args: P.args, **kwargs: P.kwargs) -> R:
        with self._pool.writing(self._owner, durable=False) as session:
            return method(self, session, *args, **kwargs)

    return call
