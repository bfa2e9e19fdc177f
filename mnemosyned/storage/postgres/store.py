"""`PostgresStore`: the parts of a memory store over one owner's rows."""

from __future__ import annotations

from dataclasses import dataclass

from mnemosyned.domain.search.words.frequencies import Frequencies
from mnemosyned.storage.postgres.database.pool import Pool
from mnemosyned.storage.postgres.stores.archive.exchange import PostgresExchange
from mnemosyned.storage.postgres.stores.archive.grace import PostgresGrace
from mnemosyned.storage.postgres.stores.archive.retention import PostgresRetention
from mnemosyned.storage.postgres.stores.archive.undo import PostgresUndo
from mnemosyned.storage.postgres.stores.changes import PostgresChanges
from mnemosyned.storage.postgres.stores.compactions import PostgresCompactions
from mnemosyned.storage.postgres.stores.deletion import PostgresDeletion
from mnemosyned.storage.postgres.stores.learnings import PostgresLearnings
from mnemosyned.storage.postgres.stores.listing import PostgresLists
from mnemosyned.storage.postgres.stores.maintenance import PostgresMaintenance
from mnemosyned.storage.postgres.stores.records import PostgresRecords
from mnemosyned.storage.postgres.stores.rollups import PostgresRollups
from mnemosyned.storage.postgres.stores.search import PostgresSearch
from mnemosyned.storage.postgres.stores.sleep import PostgresSleep
from mnemosyned.storage.postgres.stores.surroundings.agents import PostgresAgents
from mnemosyned.storage.postgres.stores.surroundings.clock import PostgresClock
from mnemosyned.storage.postgres.stores.surroundings.watching import PostgresWatches
from mnemosyned.storage.postgres.stores.vectors import PostgresVectors


@dataclass(frozen=True, slots=True, kw_only=True)
class PostgresArchive:
    """The `ArchiveStores` of one owner in PostgreSQL."""

    retention: PostgresRetention
    undo: PostgresUndo
    grace: PostgresGrace
    exchange: PostgresExchange


@dataclass(frozen=True, slots=True, kw_only=True)
class PostgresSurroundings:
    """The `SurroundingStores` of one owner in PostgreSQL."""

    agents: PostgresAgents
    watches: PostgresWatches
    clock: PostgresClock


class PostgresStore:
    """A `MemoryStore` of one owner in PostgreSQL."""

    def __init__(
        self,
        pool: Pool,
        owner: int,
        *,
        schema_version: int,
        searches_vectors: bool = False,
        read_only: bool = False,
    ) -> None:
        """`searches_vectors`: the server compares vectors by itself, with pgvector.

        `read_only`: the server is a standby, or refuses writes.
        """
        self.schema_version = schema_version
        self.read_only = read_only
        self.owner = owner
        self._pool = pool
        shared = (pool, owner)
        frequencies = Frequencies()
        self.memories = PostgresRecords(*shared)
        self.search = PostgresSearch(*shared, frequencies)
        self.lists = PostgresLists(*shared)
        self.deletion = PostgresDeletion(*shared)
        self.changes = PostgresChanges(*shared)
        self.learnings = PostgresLearnings(*shared)
        self.compactions = PostgresCompactions(*shared)
        self.vectors = PostgresVectors(*shared, searched=searches_vectors)
        self.maintenance = PostgresMaintenance(*shared, frequencies)
        self.sleep = PostgresSleep(*shared)
        self.rollups = PostgresRollups(*shared)
        self.archive = PostgresArchive(
            retention=PostgresRetention(*shared),
            undo=PostgresUndo(*shared),
            grace=PostgresGrace(*shared),
            exchange=PostgresExchange(*shared),
        )
        self.surroundings = PostgresSurroundings(
            agents=PostgresAgents(*shared),
            watches=PostgresWatches(*shared),
            clock=PostgresClock(*shared),
        )

    @property
    def pool(self) -> Pool:
        """The transactions of the store."""
        return self._pool

    def close(self) -> None:
        """Close the connections."""
        self._pool.close()
