"""Requests of a random life: verbs as they come, about what is there."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from random import Random
from typing import Any, Literal, TypeVar

from support.fakes import NOON

from mnemosyned.memory.exchange import ExportedEpisode, ExportedMemory
from mnemosyned.memory.values import Learning, LearningKind
from mnemosyned.verbs.conversation import Compact, EditLearning, Learn, RemoveLearning
from mnemosyned.verbs.listing import ListMemories
from mnemosyned.verbs.memories import (
    EditMemory,
    Expand,
    Get,
    Pin,
    Remember,
    RememberMany,
    Tag,
    Unpin,
    Untag,
)
from mnemosyned.verbs.request import Request
from mnemosyned.verbs.retention import Forget, Prune, Restore
from mnemosyned.verbs.upkeep import Sleep, Undo

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

T = TypeVar("T")
Policy = Literal["auto", "facts", "rounds"]


class RandomRequests:
    """Makes requests by chance; what is kept is asked for again."""

    def __init__(self, dice: Random, *, named: Callable[[], int]) -> None:
        """Take ids from those that were ever shown, of which `named` has the count."""
        self.dice = dice
        self.count = 0
        self._named = named
        self._present: dict[type[object], list[str]] = {}

    def note(self, records: Iterable[tuple[type[object], str]]) -> None:
        """Note the kinds and ids of all that is kept now."""
        self._present = defaultdict(list)
        for kind, id in records:
            self._present[kind].append(id)

    def first(self) -> Iterator[Request[Any]]:
        """Remember something and sleep."""
        for verb in (_remember, _remember, _remember, _sleep):
            yield from verb(self)

    def next(self) -> Sequence[Request[Any]]:
        """One verb, or some."""
        (verb,) = self.dice.choices(list(VERBS), list(VERBS.values()))
        return verb(self)

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
            known = [f"#{number}" for number in range(self._named())]
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


def _remember(life: RandomRequests) -> list[Request[Any]]:
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


def _sleep(life: RandomRequests) -> list[Request[Any]]:
    session = life.one_of(SESSIONS) if life.dice.random() < 0.2 else None
    return [Sleep(force=life.dice.random() < 0.7, session=session)]


def _edit(life: RandomRequests) -> list[Request[Any]]:
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


def _forget(life: RandomRequests) -> list[Request[Any]]:
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


def _restore(life: RandomRequests) -> list[Request[Any]]:
    return [Restore(life.ids()[0])]


def _prune(life: RandomRequests) -> list[Request[Any]]:
    return [Prune(keep_days=life.dice.randint(10, 38))]


def _tag(life: RandomRequests) -> list[Request[Any]]:
    verb = life.one_of([Tag, Untag])
    return [verb(life.ids(3), tags=life.dice.sample(TAGS, 2))]


def _pin(life: RandomRequests) -> list[Request[Any]]:
    return [life.one_of([Pin, Unpin])(life.ids(3))]


def _undo(life: RandomRequests) -> list[Request[Any]]:
    return [Undo(keep_hours=life.one_of([None, 24]))]


def _learn(life: RandomRequests) -> list[Request[Any]]:
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


def _read(life: RandomRequests) -> list[Request[Any]]:
    id = life.ids()[0]
    listing = ListMemories(
        limit=20,
        tag=[life.one_of(TAGS)] if life.dice.random() < 0.3 else None,
        source=["codex"] if life.dice.random() < 0.3 else None,
        history=life.dice.random() < 0.5,
        level=life.one_of([None, "episode", "day"]),
    )
    return [Get(id, history=True), Expand(id), listing]


def _compact(life: RandomRequests) -> list[Request[Any]]:
    messages = [
        {"role": ("user", "assistant")[at % 2], "content": life.text()}
        for at in range(MESSAGES)
    ]
    policy: Policy = life.one_of(["auto", "facts", "rounds"])
    session = life.one_of(SESSIONS)
    return [Compact(messages, policy=policy, force=True, session=session)]


VERBS: Mapping[Callable[[RandomRequests], list[Request[Any]]], int] = {
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
