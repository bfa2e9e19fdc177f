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


class DatabaseServer(Protocol):
    """A database as a whole. Every method raises `StorageFailed` if the database fails."""

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
