"""A random life of one memory on both engines: the same verbs, and the same answers."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from enum import Enum
from itertools import zip_longest
from random import Random
from typing import Any

import msgspec
from support.engines import POSTGRES, SQLITE
from support.random_requests import QUESTIONS, SESSIONS, RandomRequests
from support.twins import RANDOM_ID, Twins

from mnemosyned.errors import MnemosynedError
from mnemosyned.memory.consolidation import LogEntry
from mnemosyned.memory.exchange import (
    AnyRecord,
    ExportedEpisode,
    ExportedMemory,
    RecoverableRecord,
)
from mnemosyned.memory.ports import MemoryStore
from mnemosyned.memory.values import Tier
from mnemosyned.verbs.conversation import Learnings
from mnemosyned.verbs.listing import ListMemories, Sessions, Sources
from mnemosyned.verbs.memories import Recall
from mnemosyned.verbs.request import Request
from mnemosyned.verbs.upkeep import Log

UNTOLD = {
    "bytes",
    "file_bytes",
    "duration_s",
    "model_s",
    "purge_in_s",
    "complete",
    "reason",
    "backups",
    "next",
}
"""Fields of answers that speak of this moment or of an engine's own files."""
OWN = {ExportedEpisode: {"seq"}, LogEntry: {"id"}, RecoverableRecord: {"superseded_by"}}
"""Numbers of records that are an engine's own."""
Plain = Any
"""An answer of lists, dictionaries and texts."""


class Names:
    """Names for ids that are random: by the order in which an engine showed them."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}
        self._ids: dict[str, str] = {}

    def plain(self, value: object) -> Plain:
        """A value without what differs from one engine to another."""
        if isinstance(value, Enum):
            return value.value
        if isinstance(value, str):
            return RANDOM_ID.sub(self._name, value)
        if isinstance(value, Mapping):
            return {
                str(self.plain(key)): self.plain(item) for key, item in value.items()
            }
        if isinstance(value, list | tuple):
            return [self.plain(item) for item in value]
        if isinstance(value, msgspec.Struct) or is_dataclass(value):
            names = _field_names(value)
            own = OWN.get(type(value), set()) | UNTOLD
            shown = {
                name: self.plain(getattr(value, name))
                for name in names
                if name not in own
            }
            if isinstance(value, ExportedMemory):
                shown["details"].sort()
            return shown
        return value

    def ids(self, text: str) -> str:
        """A text with the ids in the place of their names."""
        return re.sub(r"#\d+", lambda name: self._ids.get(name[0], name[0]), text)

    def __len__(self) -> int:
        return len(self._names)

    def _name(self, id: re.Match[str]) -> str:
        name = self._names.setdefault(id[0], f"#{len(self._names)}")
        self._ids[name] = id[0]
        return name


def _field_names(value: object) -> Sequence[str]:
    if isinstance(value, msgspec.Struct):
        return value.__struct_fields__
    assert is_dataclass(value)
    return [field.name for field in fields(value)]


class SameLife:
    """A memory that lives twice; everything that is said of it is compared."""

    def __init__(self, twins: Twins, dice: Random) -> None:
        self.twins = twins
        self.dice = dice
        self.done: Counter[str] = Counter()
        self._names = {engine: Names() for engine in twins.services}
        self.requests = RandomRequests(dice, named=self._names[SQLITE].__len__)

    def begin(self) -> None:
        """Remember something and sleep, as what comes after sleep is what is interesting."""
        for request in self.requests.first():
            self.call(request)
        self.compare_records()

    def step(self) -> None:
        """Call one verb, or some; then everything that is kept is the same."""
        for request in self.requests.next():
            self.call(request)
        if self.dice.random() < 0.3:
            self.twins.clock.advance(hours=self.dice.randint(1, 60))
        self.compare_records()

    def ask(self) -> None:
        """Ask all questions, and for lists."""
        for question in QUESTIONS:
            for request in (
                Recall(question, explain=True),
                Recall(
                    question, limit=3, tier=self.dice.choice(list(Tier)), history=True
                ),
                Recall(question, session=[self.dice.choice(SESSIONS)], limit=30),
            ):
                self.call(request)
        for listing in (ListMemories(), Sessions(), Sources(), Log(limit=100)):
            self.call(listing)
        self.call(Learnings(superseded=True))

    def call(self, request: Request[Any]) -> Plain:
        """Call a verb on both; both answer the same, or refuse with the same words."""
        answers = {
            engine: self._answer(engine, request) for engine in self.twins.services
        }
        assert answers[POSTGRES] == answers[SQLITE], (
            f"{request}: {difference(answers[SQLITE], answers[POSTGRES])}"
        )
        outcome = answers[SQLITE]
        refused = isinstance(outcome, str)
        self.done[f"{type(request).__name__}{' refused' * refused}"] += 1
        return outcome

    def compare_records(self) -> None:
        """Hold against each other all records of both stores, and their totals."""
        records = {
            engine: self._records(engine, store)
            for engine, store in self.twins.stores.items()
        }
        assert records[POSTGRES] == records[SQLITE], difference(
            records[SQLITE], records[POSTGRES]
        )

    def move_across(self, fresh: Twins) -> None:
        """Move all records to the other engine, where they are as they were."""
        for engine, other in ((SQLITE, POSTGRES), (POSTGRES, SQLITE)):
            kept = records_of(self.twins.stores[engine])
            moved = fresh.stores[other]
            outcome = moved.exchange.restore(kept)
            assert (outcome.conflicts, outcome.left_out, outcome.working) == ([], 0, 0)
            before = Names().plain(kept)
            after = Names().plain(records_of(moved))
            assert before == after, difference(before, after)

    def _answer(self, engine: str, request: Request[Any]) -> Plain:
        names = self._names[engine]
        own = msgspec.convert(
            _with_ids(msgspec.to_builtins(request), names), type(request)
        )
        try:
            return names.plain(self.twins.services[engine].call(own))
        except MnemosynedError as error:
            return f"{type(error).__name__}: {names.plain(error.message)}"

    def _records(self, engine: str, store: MemoryStore) -> list[Plain]:
        records = records_of(store)
        plain = [self._names[engine].plain(record) for record in records]
        self.requests.note(
            (type(record), shown.get("id", ""))
            for record, shown in zip(records, plain, strict=True)
        )
        return plain


def records_of(store: MemoryStore) -> list[AnyRecord]:
    """Everything that a store keeps; its totals are those of its records."""
    with store.exchange.everything() as (_, kept):
        records = list(kept)
    assert totals_of(records) == {
        tier: (total.count, total.characters)
        for tier, total in store.maintenance.totals().items()
    }
    return records


def totals_of(records: Sequence[AnyRecord]) -> dict[Tier, tuple[int, int]]:
    """How much each tier has, by the records of it."""
    sizes: dict[Tier, list[int]] = {tier: [] for tier in Tier}
    for record in records:
        if isinstance(record, ExportedEpisode):
            sizes[Tier.EPISODIC].append(len(record.content))
        elif isinstance(record, ExportedMemory):
            tier = Tier.ARCHIVE if record.episode else Tier.WORKING
            sizes[tier].append(len(record.content))
    return {tier: (len(lengths), sum(lengths)) for tier, lengths in sizes.items()}


def difference(one: Plain, other: Plain, where: str = "") -> str:
    """The first place in which two answers differ, and what each has there."""
    if isinstance(one, dict) and isinstance(other, dict):
        for name in sorted(one.keys() | other.keys()):
            if one.get(name) != other.get(name):
                return difference(one.get(name), other.get(name), f"{where}.{name}")
    if isinstance(one, list) and isinstance(other, list):
        for place, (left, right) in enumerate(zip_longest(one, other)):
            if left != right:
                return difference(left, right, f"{where}[{place}]")
    return f"{where}: {one!r} on SQLite, {other!r} on PostgreSQL"


def _with_ids(value: Plain, names: Names) -> Plain:
    if isinstance(value, str):
        return names.ids(value)
    if isinstance(value, list):
        return [_with_ids(item, names) for item in value]
    if isinstance(value, dict):
        return {key: _with_ids(item, names) for key, item in value.items()}
    return value
