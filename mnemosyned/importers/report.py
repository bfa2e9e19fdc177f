"""The outcome of an import."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

from mnemosyned.domain.exchange import ExportedMemory, Restored
from mnemosyned.domain.learnings.learning import Learning
from mnemosyned.importers.importer import Bad, Group, Item
from mnemosyned.verbs.memories import Remember, RememberedMany
from mnemosyned.verbs.request import instant
from mnemosyned.verbs.streams.exchange import FOOTER, line_kind, parse_record

PROBLEMS_SHOWN_MAX = 20
SESSIONS_MAX = 10_000
"""Different sessions that are counted by name."""
LEARNINGS_SHOWN_MAX = 20


@dataclass(slots=True)
class ImportReport:
    """Counts of an import, and its first bad records."""

    stored: int = 0
    known: int = 0
    """Memories that were there already."""
    forgotten: int = 0
    """Memories that were imported before and forgotten, and stay so."""
    learned: int = 0
    """Learnings in force that came with the records."""
    bad: int = 0
    problems: list[str] = field(default_factory=list)
    """The place and reason of the first bad records."""
    files: int = 0
    unknown_files: int = 0
    """Files in folders that have no format that can be imported."""
    restored: dict[str, int] = field(default_factory=dict)
    """Records of an export that were restored, by kind."""
    left_out: int = 0
    """Summaries of an export that the next sleep writes, as their originals are not all here."""
    continued: bool = False
    """Whether it went on where an earlier import had stopped."""

    def add_problem(self, problem: Bad) -> None:
        """Count a bad record, and keep the first ones."""
        self.bad += 1
        if len(self.problems) < PROBLEMS_SHOWN_MAX:
            self.problems.append(f"{problem.place}: {problem.reason}")

    def add_restored(self, restored: Restored, place: str) -> None:
        """Count a part of an export."""
        for kind, count in restored.stored.items():
            self.restored[kind] = self.restored.get(kind, 0) + count
        self.stored += restored.stored.get("memory", 0)
        self.known += restored.known.get("memory", 0)
        self.learned += restored.stored.get("learning", 0)
        self.left_out += restored.left_out
        for conflict in restored.conflicts:
            reason = f"the {conflict.kind} {conflict.id}: {conflict.reason}"
            self.add_problem(Bad(place, reason))


@dataclass(slots=True)
class Preview:
    """The preview of an import: what it would store."""

    memories: int = 0
    formats: Counter[str] = field(default_factory=Counter)
    roles: Counter[str] = field(default_factory=Counter)
    sources: Counter[str] = field(default_factory=Counter)
    sessions: Counter[str] = field(default_factory=Counter)
    earliest: datetime | None = None
    latest: datetime | None = None
    undated: int = 0
    """Memories that would get the time of the import."""
    learned: int = 0
    learnings: list[str] = field(default_factory=list)
    """The first texts that would be learned."""

    def add(self, items: Sequence[Item], format: str) -> None:
        """Count records that the daemon takes."""
        self.memories += len(items)
        self.formats[format] += len(items)
        for item in items:
            self._count(item.memory)

    def _count(self, memory: Remember | ExportedMemory) -> None:
        self.roles[memory.role] += 1
        self.sources[memory.source or ""] += 1
        if memory.session in self.sessions or len(self.sessions) < SESSIONS_MAX:
            self.sessions[memory.session] += 1
        moment = instant(memory.created_at)
        if moment is None:
            self.undated += 1
            return
        self.earliest = min(self.earliest or moment, moment)
        self.latest = max(self.latest or moment, moment)

    def add_group(self, group: Group, format: str) -> None:
        """Count lines of an export."""
        for line in group.data.splitlines():
            if line_kind(line).record == FOOTER:
                continue
            record = parse_record(line)
            if isinstance(record, ExportedMemory):
                self.memories += 1
                self.formats[format] += 1
                self._count(record)
            elif isinstance(record, Learning):
                self._count_learning(record)

    def _count_learning(self, learning: Learning) -> None:
        self.learned += 1
        if len(self.learnings) < LEARNINGS_SHOWN_MAX:
            self.learnings.append(learning.text)

    def add_learnings(self, answer: RememberedMany) -> None:
        """Count what a checked batch would teach."""
        for learning in answer.would_learn:
            self._count_learning(learning)
