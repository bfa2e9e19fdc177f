"""Methods that run in a transaction of their own: on a snapshot, or in the next commit."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from functools import wraps
from typing import Concatenate, ParamSpec, TypeVar

from mnemosyned.storage.sqlite.database.readers import Readers
from mnemosyned.storage.sqlite.database.writer import Writer

P = ParamSpec("P")
R = TypeVar("R")
S = TypeVar("S", bound="Transactional")


class Transactional:
    """A part of the store whose methods `reads` and `writes` give a connection."""

    def __init__(self, writer: Writer, readers: Readers) -> None:
        self._writer = writer
        self._readers = readers


def reads(
    method: Callable[Concatenate[S, sqlite3.Connection, P], R],
) -> Callable[Concatenate[S, P], R]:
    """Call a method with a connection that sees one snapshot."""

    @wraps(method)
    def call(self: S, /, *args: P.args, **kwargs: P.kwargs) -> R:
        with self._readers.snapshot() as connection:
            return method(self, connection, *args, **kwargs)

    return call


def writes(
    method: Callable[Concatenate[S, sqlite3.Connection, P], R],
) -> Callable[Concatenate[S, P], R]:
    """Call a method with the writing connection; its changes are durable when it returns.

    The thread that commits calls it, which need not be the caller's.
    """

    @wraps(method)
    def call(self: S, /, *args: P.args, **kwargs: P.kwargs) -> R:
        return self._writer.write(
            lambda connection: method(self, connection, *args, **kwargs)
        )

    return call


def writes_lazily(
    method: Callable[Concatenate[S, sqlite3.Connection, P], R],
) -> Callable[Concatenate[S, P], R]:
    """Call a method as `writes` does, without waiting for the disk.

    A failure of power takes its changes back whole, unless a later write was durable.
    """

    @wraps(method)
    def call(self: S, /, *args: P.args, **kwargs: P.kwargs) -> R:
        (outcome,) = self._writer.write_each(
            [lambda connection: method(self, connection, *args, **kwargs)],
            durable=False,
        )
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    return call
