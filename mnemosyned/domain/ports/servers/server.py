"""Port of a database server: what whoever runs it does for all owners at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerPurge:
    """What a purge of a whole server took away, and what it could not."""

    tables: int
    """Tables that were written anew, with their indexes."""
    duration_s: float
    longest_s: float
    """The longest that one table was locked."""
    log_files: int
    """Files of the write-ahead log that were written over."""
    undone: tuple[str, ...]
    """Steps that another program or a missing right forbade, each with what to do; repeat then."""
    left: tuple[str, ...]
    """Places out of reach that keep deleted words, each with what ends that."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Distribution:
    """How a database lies on the nodes of a cluster."""

    nodes: int
    """Nodes that take rows."""
    tables: tuple[str, ...]
    """Tables that this call distributed."""
    advice: tuple[str, ...] = ()
    """Steps that are left to a superuser."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Migration:
    """What was done to bring a database up to date."""

    before: int
    """The version of the schema as it was found; 0 for an empty database."""
    after: int
    statements: tuple[str, ...]
    """Statements about roles and rights that were needed."""


class DatabaseServer(Protocol):
    """A database as a whole. Every method raises `StorageFailed` if the database fails."""

    def migrate(self, *, serving: str | None = None) -> Migration:
        """Bring the schema up to date, and the rights of the role of requests where it is used.

        `serving` is a login that owns nothing and serves from now on. Raises `StorageFailed` for a
        login that does not own the tables. May be repeated.
        """
        ...

    def purge(self) -> ServerPurge:
        """Write all tables anew, and the write-ahead log over, so that no deleted word is left.

        Each table is locked while it is written. May be repeated at any time.
        """
        ...

    def distribute(self, shards: int) -> Distribution:
        """Spread the tables over the nodes of a cluster, all rows of an owner on one.

        Raises `InvalidRequest` where there is no cluster. May be repeated.
        """
        ...
