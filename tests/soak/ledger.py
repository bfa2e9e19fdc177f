"""A ledger of what a soaked store acknowledged and what it was told to forget."""

import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from hashlib import blake2b

MARKER_HEX = 14
MARKER_END = "zqj"
SUFFIX_CHARS = 10 + len(MARKER_END)
"""FTS5 shares the beginning of a term with the term before it: of random ones a few characters."""


def new_marker(chance: random.Random) -> str:
    """A word that no other memory has; it ends in letters that no stemmer takes off."""
    return f"{chance.getrandbits(4 * MARKER_HEX):0{MARKER_HEX}x}{MARKER_END}"


def digest(text: str) -> bytes:
    """A fingerprint of a text, small enough to keep one for each memory."""
    return blake2b(text.encode(), digest_size=8).digest()


@dataclass(slots=True)
class Entry:
    """One acknowledged memory."""

    id: str
    marker: str
    digest: bytes
    session: str
    prunable: bool = False
    """Retention may take its words; the row stays."""


@dataclass(slots=True)
class Ledger:
    """What one client knows of its own memories; nobody else forgets them."""

    entries: dict[str, Entry] = field(default_factory=dict)
    forgotten: list[Entry] = field(default_factory=list)
    compacted: dict[str, set[str]] = field(default_factory=dict)
    """Ids of memories that a compaction kept, by session."""
    forgotten_ids: set[str] = field(default_factory=set)

    def keep(self, entries: Iterable[Entry]) -> None:
        """Note memories that were acknowledged."""
        self.entries.update((entry.id, entry) for entry in entries)

    def forget(self, id: str) -> None:
        """Note that a memory was forgotten."""
        entry = self.entries.pop(id)
        self.forgotten.append(entry)
        self.forgotten_ids.add(id)

    def forget_session(self, session: str) -> int:
        """Note that a session was forgotten; answers how many memories it had."""
        ids = [entry.id for entry in self.entries.values() if entry.session == session]
        for id in ids:
            self.forget(id)
        compacted = self.compacted.pop(session, set())
        self.forgotten_ids |= compacted
        return len(ids) + len(compacted)

    def expected(self) -> Iterator[str]:
        """The ids that must be in the store."""
        yield from self.entries
        for ids in self.compacted.values():
            yield from ids


def merged(ledgers: Iterable[Ledger]) -> Ledger:
    """One ledger of all clients."""
    whole = Ledger()
    for ledger in ledgers:
        whole.entries |= ledger.entries
        whole.forgotten += ledger.forgotten
        whole.forgotten_ids |= ledger.forgotten_ids
        whole.compacted |= ledger.compacted
    return whole
