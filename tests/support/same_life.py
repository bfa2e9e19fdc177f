"""A random life of one memory on both engines: the same verbs, and the same answers."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from datetime import timedelta
from enum import Enum
from itertools import zip_longest
from random import Random
from typing import Any, Literal, TypeVar

import msgspec
from support.engines import POSTGRES, SQLITE
from support.fakes import NOON
from support.twins import RANDOM_ID, Twins

from mnemosyned.assembly.stores import OpenStore
from mnemosyned.domain.errors import MnemosynedError
from mnemosyned.domain.exchange import ExportedEpisode, ExportedMemory
from mnemosyned.domain.learnings.learning import Learning, LearningKind
from mnemosyned.domain.memory import Tier
from mnemosyned.domain.ports.archive.exchange import AnyRecord
from mnemosyned.domain.ports.archive.moving import RecoverableRecord
from mnemosyned.domain.sleep.cycles import LogEntry
from mnemosyned.verbs.changes import EditMemory, Pin, Tag, Unpin, Untag
from mnemosyned.verbs.conversation import Compact
from mnemosyned.verbs.learnings import (
    EditLearning,
    Learn,
    Learnings,
    RemoveLearning,
)
from mnemosyned.verbs.listing import ListMemories, Sessions, Sources
from mnemosyned.verbs.memories import Expand, Get, Recall, Remember, RememberMany
from mnemosyned.verbs.request import Request
from mnemosyned.verbs.retention import Forget, Prune, Restore
from mnemosyned.verbs.sleep import Log, Sleep, Undo

TEXTS = (
    "The gate code is 4711",
    f"token ghp_{'a1B2' * 9}",
    "I prefer tea. Always answer in French.",
    "I prefer coffee.",
    "Ada Lovelace called about QX-48213",
    "東京の会議 on 2026-03-04",
    "userName parses build_server.py",
    "the kettle is hot",
    "Never deploy on Friday.",
    "password: hunter22x is secret",
    "cost 45 EUR at 10:30",
    "We meet tomorrow at the café in Größenordnung 3",
)
QUESTIONS = (
    "gate code",
    "QX-48213",
    "what do I prefer",
    "東京",
    "user name",
    "kettle",
    "what was said yesterday",
    "café größenordnung",
    "the last thing that Ada said",
    "what happened in February",
)
SESSIONS = ("s0", "s1", "s2", "s3")
SOURCES = (None, "codex", "chat")
ROLES = ("", "user", "assistant", "Ada")
TAGS = ("a", "b", "c")
MESSAGES = 12

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
T = TypeVar("T")
Policy = Literal["auto", "facts", "rounds"]
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
        self.count = 0
        self.done: Counter[str] = Counter()
        self._names = {engine: Names() for engine in twins.services}
        self._present: dict[type[object], list[str]] = {}

    def begin(self) -> None:
        """Remember something and sleep, as what comes after sleep is what is interesting."""
        for verb in (_remember, _remember, _remember, _sleep):
            for request in verb(self):
                self.call(request)
        self.compare_records()

    def step(self) -> None:
        """Call one verb, or some; then everything that is kept is the same."""
        verbs, weights = zip(*VERBS.items(), strict=True)
        (verb,) = self.dice.choices(verbs, weights)
        for request in verb(self):
            self.call(request)
        if self.dice.random() < 0.3:
            self.twins.clock.advance(hours=self.dice.randint(1, 60))
        self.compare_records()

    def ask(self) -> None:
        """Ask all questions, and for lists."""
        for question in QUESTIONS:
            for request in (
                Recall(question, explain=True),
                Recall(question, limit=3, tier=self.one_of(list(Tier)), history=True),
                Recall(question, session=[self.one_of(SESSIONS)], limit=30),
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
            outcome = moved.archive.exchange.restore(kept)
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

    def _records(self, engine: str, store: OpenStore) -> list[Plain]:
        records = records_of(store)
        plain = [self._names[engine].plain(record) for record in records]
        self._present = defaultdict(list)
        for record, shown in zip(records, plain, strict=True):
            self._present[type(record)].append(shown.get("id", ""))
        return plain

    # ---------------------------------------------------------------- dice

    def one_of(self, values: Sequence[T]) -> T:
        return self.dice.choice(values)

    def ids(self, most: int = 1) -> list[str]:
        """Ids of what is there, mostly memories; now and then of what is not."""
        luck = self.dice.random()
        if luck < 0.75:
            known = self.present(ExportedMemory)
        elif luck < 0.9:
            known = self.present(ExportedEpisode)
        elif luck < 0.95:
            known = [f"m{number}" for number in range(self.count)]
        else:
            known = [f"#{number}" for number in range(len(self._names[SQLITE]))]
        count = min(self.dice.randint(1, most), len(known))
        return self.dice.sample(known, count) or ["nothing"]

    def present(self, kind: type[object]) -> list[str]:
        """The ids of all records of a kind."""
        return self._present.get(kind, [])

    def new_id(self) -> str:
        self.count += 1
        return f"m{self.count - 1}"

    def text(self) -> str:
        return f"{self.one_of(TEXTS)} n{self.dice.randint(0, 60)}"


def records_of(store: OpenStore) -> list[AnyRecord]:
    """Everything that a store keeps; its totals are those of its records."""
    with store.archive.exchange.everything() as (_, kept):
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


# ------------------------------------------------------------------------ verbs


def _remember(life: SameLife) -> list[Request[Any]]:
    dice = life.dice
    known = life.count
    memories = [
        Remember(
            life.text(),
            id=life.new_id() if dice.random() < 0.95 else life.ids()[0],
            session=life.one_of(SESSIONS),
            source=life.one_of(SOURCES),
            role=life.one_of(ROLES),
            tags=dice.sample(TAGS, dice.randint(0, 2)),
            created_at=NOON - timedelta(hours=dice.randint(0, 900)),
            importance=life.one_of([0.5, 0.5, 0.9]),
            pinned=dice.random() < 0.1,
            dedupe=dice.random() < 0.2,
            metadata={"n": known} if dice.random() < 0.2 else {},
            valid_until=NOON + timedelta(days=dice.randint(1, 40))
            if dice.random() < 0.1
            else None,
            supersedes=life.ids()[0] if known and dice.random() < 0.15 else None,
        )
        for _ in range(dice.randint(1, 5))
    ]
    if dice.random() < 0.5:
        return [RememberMany(memories=memories)]
    return list(memories)


def _sleep(life: SameLife) -> list[Request[Any]]:
    session = life.one_of(SESSIONS) if life.dice.random() < 0.2 else None
    return [Sleep(force=life.dice.random() < 0.7, session=session)]


def _edit(life: SameLife) -> list[Request[Any]]:
    moment = NOON - timedelta(hours=life.dice.randint(0, 900))
    id = life.ids()
    return [
        life.one_of(
            [
                EditMemory(id, text=life.text()),
                EditMemory(id, text="dropped words", drop_history=True),
                EditMemory(id, session=life.one_of(SESSIONS)),
                EditMemory(id, source=life.one_of(["moved", "codex", ""])),
                EditMemory(id, role=life.one_of(ROLES)),
                EditMemory(id, created_at=moment),
                EditMemory(id, importance=0.9, tags=["z"]),
                EditMemory(
                    of_session=[life.one_of(SESSIONS)], session=life.one_of(SESSIONS)
                ),
                EditMemory(of_source=["codex"], source="chat", tag=[life.one_of(TAGS)]),
            ]
        )
    ]


def _forget(life: SameLife) -> list[Request[Any]]:
    now = life.dice.random() < 0.5
    word = life.one_of(["QX-48213", "kettle", "東京", "userName", "hunter22x"])
    by_ids = Forget(life.ids(4), now=now)
    return [
        life.one_of(
            [
                by_ids,
                by_ids,
                by_ids,
                Forget(query=word, now=now),
                Forget(person=life.one_of(["Ada", "French"]), now=now),
                Forget(
                    tag=[life.one_of(TAGS)], session=[life.one_of(SESSIONS)], now=now
                ),
            ]
        )
    ]


def _restore(life: SameLife) -> list[Request[Any]]:
    return [Restore(life.ids()[0])]


def _prune(life: SameLife) -> list[Request[Any]]:
    return [Prune(keep_days=life.dice.randint(10, 38))]


def _tag(life: SameLife) -> list[Request[Any]]:
    verb = life.one_of([Tag, Untag])
    return [verb(life.ids(3), tags=life.dice.sample(TAGS, 2))]


def _pin(life: SameLife) -> list[Request[Any]]:
    return [life.one_of([Pin, Unpin])(life.ids(3))]


def _undo(life: SameLife) -> list[Request[Any]]:
    return [Undo(keep_hours=life.one_of([None, 24]))]


def _learn(life: SameLife) -> list[Request[Any]]:
    id = life.one_of([*life.present(Learning), "nothing"])
    learn = Learn(
        life.text(),
        kind=life.one_of(list(LearningKind)),
        session=life.one_of(SESSIONS),
        source=life.one_of(SOURCES),
    )
    changes: list[Request[Any]] = [
        EditLearning(id, text=life.text()),
        RemoveLearning(id),
    ]
    return [learn, life.one_of(changes)]


def _read(life: SameLife) -> list[Request[Any]]:
    id = life.ids()[0]
    listing = ListMemories(
        limit=20,
        tag=[life.one_of(TAGS)] if life.dice.random() < 0.3 else None,
        source=["codex"] if life.dice.random() < 0.3 else None,
        history=life.dice.random() < 0.5,
        level=life.one_of([None, "episode", "day"]),
    )
    return [Get(id, history=True), Expand(id), listing]


def _compact(life: SameLife) -> list[Request[Any]]:
    messages = [
        {"role": ("user", "assistant")[at % 2], "content": life.text()}
        for at in range(MESSAGES)
    ]
    policy: Policy = life.one_of(["auto", "facts", "rounds"])
    session = life.one_of(SESSIONS)
    return [Compact(messages, policy=policy, force=True, session=session)]


VERBS: Mapping[Callable[[SameLife], list[Request[Any]]], int] = {
    _remember: 30,
    _sleep: 12,
    _edit: 20,
    _forget: 14,
    _restore: 7,
    _prune: 3,
    _tag: 4,
    _pin: 4,
    _undo: 4,
    _learn: 4,
    _read: 8,
    _compact: 3,
}
"""Verbs, and how often each comes."""
