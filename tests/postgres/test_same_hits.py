"""Both engines live the same life, answer alike, and take each other's records."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from datetime import datetime, timedelta
from enum import Enum
from itertools import zip_longest
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import pytest
from bench.locomo import Conversation
from support.datasets.mixed_year import Record
from support.datasets.timed_questions import mixed_month, timed_questions
from support.datasets.written_year import written_year
from support.engines import POSTGRES, SQLITE
from support.fakes import NOON, FakeClock
from support.random_requests import QUESTIONS as ASKED, SESSIONS, RandomRequests
from support.seeds import seed_of
from support.twins import RANDOM_ID, Twins, twins

from mnemosyned.errors import MnemosynedError
from mnemosyned.memory.consolidation import LogEntry
from mnemosyned.memory.exchange import (
    AnyRecord,
    ExportedEpisode,
    ExportedMemory,
    ForgottenCopy,
)
from mnemosyned.memory.ports import MemoryStore
from mnemosyned.memory.values import Tier
from mnemosyned.verbs.conversation import Learnings
from mnemosyned.verbs.listing import ListMemories, Sessions, Sources
from mnemosyned.verbs.memories import Recall, Remember
from mnemosyned.verbs.request import Request
from mnemosyned.verbs.upkeep import Log

pytestmark = pytest.mark.postgres

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
OWN = {ExportedEpisode: {"seq"}, LogEntry: {"id"}, ForgottenCopy: {"read", "revised"}}
"""Numbers of records that are an engine's own."""
OWN_IN_REVISION = re.compile(r'"read":\d+,"revised":\d+')
"""The same numbers in what an edit deleted, which its revision keeps as JSON."""
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
            return RANDOM_ID.sub(self._name, OWN_IN_REVISION.sub("", value))
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
        for question in ASKED:
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


LOCOMO = Path(__file__).parents[3] / "shared" / "datasets" / "locomo" / "locomo10.json"
LANGUAGES = """
The release train leaves on Thursday, ticket QX-48213 blocks it
Wir haben den Heizungskeller in Größenordnung 3 renoviert, Straße gesperrt
Große Straßenbahnen fahren über die Brücke nach Köln
Le café près de l'été dernier était fermé, c'est dommage
El próximo año iremos a Cádiz con mi hermano Íñigo
Мой брат купил ёлку, йод и подъездный ключ
Мои ключи лежат у соседа, їжак живе в саду
Η θάλασσα είναι γαλανή, ο Οδυσσεύς γύρισε
東京都の天気は晴れです。学生はガクセイがくせいと言った
東京タワーで会議があります、資料は会議室に
今天我们在北京开会，讨论了预算和日程
明天的会议取消了，改到下周三
서울에서 친구를 만났습니다. 회의는 내일입니다
회의실 예약을 취소했습니다
วันนี้อากาศดีที่กรุงเทพ เราไปกินข้าว
ประชุมพรุ่งนี้ที่กรุงเทพฯ ตอนเช้า
Hôm nay tiếng Việt khó quá, Đặng nói vậy
İstanbul'da toplantı var, ısı çok yüksek
مرحبا، الاجتماع غدا في المكتب الجديد
פגישה מחר במשרד החדש
The wifi in the office is down, the wi-fi password is hunter42
myCamelCase parses HTTPServerError and getUserName42 in build_server.py
userName and UserName differ, see GitHubActions and GitLab
🤖 robots🎉 party tonight, bring snacks🍪 and 2½ bottles
naïve Ångström coöperate fiancée résumé
"""
LANGUAGE_QUESTIONS = """
when does the release train leave
QX-48213
Größenordnung Heizungskeller
große Straße
strasse brücke
café été
mi hermano el próximo año
мой брат
мои ключи
йод
їжак
θάλασσα
東京
東京の会議
会議室
北京 预算
明天的会议
회의
서울 친구
กรุงเทพ
ประชุมพรุ่งนี้
tiếng Việt
Istanbul toplantı
الاجتماع غدا
פגישה
wifi password
wi-fi
on-call oncall
github actions
HTTP server error
camel case
user name
robots party
2½ bottles
angstrom naive resume
the meeting tomorrow
nothing of the kind whatsoever
what
"""


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[Twins]:
    with twins(tmp_path, FakeClock()) as opened:
        yield opened


def told_of(records: list[Record], sessions: int = 1) -> list[Remember]:
    return [
        Remember(
            id=record.id,
            content=record.content,
            source=record.source,
            role=record.role,
            session=f"s{at % sessions}" if sessions > 1 else "default",
            created_at=record.created_at,
        )
        for at, record in enumerate(records)
    ]


def mixed_languages() -> list[Remember]:
    """The lines, and lines put together of their words, in several sessions and sources."""
    dice = Random(5)
    lines = LANGUAGES.strip().splitlines()
    words = " ".join(lines).split()
    lines += [" ".join(dice.sample(words, dice.randint(2, 14))) for _ in range(400)]
    return [
        Remember(
            id=f"m{at}",
            content=line,
            session=f"talk {at // 9 % 12}" if at % 5 else "default",
            source=["chat", "mail", None][at // 40 % 3],
            role=["user", "assistant", ""][at % 3],
            created_at=NOON - timedelta(hours=20 * 24 - at),
            importance=[0.5, 0.5, 0.9][at % 3],
            tags=["work"] if at % 7 == 0 else [],
        )
        for at, line in enumerate(lines)
    ]


def variants(text: str) -> list[Recall]:
    return [
        Recall(query=text),
        Recall(query=text, limit=3, tier=Tier.ARCHIVE),
        Recall(query=text, limit=40, tier=Tier.WORKING),
        Recall(query=text, tier=Tier.EPISODIC),
        Recall(query=text, source=["chat"], since=NOON - timedelta(days=15)),
        Recall(query=text, session=["talk 3", "talk 4"], until=NOON),
        Recall(query=text, tag=["work"], history=True, explain=True),
    ]


def test_questions_in_many_languages_are_answered_alike(pair: Twins) -> None:
    told = mixed_languages()
    pair.remember(*told)
    dice = Random(6)
    words = " ".join(memory.content for memory in told[:25]).split()
    asked = LANGUAGE_QUESTIONS.strip().splitlines()
    asked += [" ".join(dice.sample(words, dice.randint(1, 9))) for _ in range(40)]
    # Each without a filter, and with the filters in turn: they narrow what is found in any language.
    requests = [
        request
        for at, text in enumerate(asked)
        for first, *narrowed in [variants(text)]
        for request in (first, narrowed[at // 2 % len(narrowed)])[:: 1 - at % 2 * 2]
    ]
    assert pair.differing_around_sleep(requests) == []
    answered = pair.ask(Recall(query="東京"))
    assert answered[SQLITE]
    assert answered[POSTGRES] == answered[SQLITE]


@pytest.mark.parametrize("name", ["year", "month"])
def test_questions_about_times_are_answered_alike(pair: Twins, name: str) -> None:
    # A record a day is enough for days, weeks and months: more are noise between the answers.
    records = mixed_month() if name == "month" else written_year(per_day=1).records
    pair.clock.moment = max(record.created_at for record in records)
    pair.remember(*told_of(records, sessions=4))
    requests = [
        Recall(query=question.text, asked_at=question.asked_at)
        for question in timed_questions(name, records)
    ]
    assert pair.differing_around_sleep(requests) == []


@pytest.mark.skipif(not LOCOMO.exists(), reason="the data set is not here")
def test_questions_of_long_talks_are_answered_alike(pair: Twins) -> None:
    talks = msgspec.json.decode(LOCOMO.read_bytes(), type=list[Conversation])[:1]
    told = [turn for talk in talks for turn in talk.turns()]
    pair.clock.moment = max(
        turn.created_at for turn in told if isinstance(turn.created_at, datetime)
    )
    pair.remember(*told)
    requests = [
        Recall(query=asked.text, source=source)
        for has_source in (False, True)
        for talk in talks
        for asked in talk.questions()
        for source in [[asked.sample] if has_source else None]
    ]
    assert len(requests) > 200
    assert pair.differing_around_sleep(requests) == []


# Both engines live the same random life: each verb answers the same, and keeps the same.


LIVES = int(os.environ.get("LIVES", "4"))
SEED = seed_of("LIVES_SEED")
STEPS = 40


def test_a_random_life_is_the_same_on_both_engines(tmp_path: Path) -> None:
    done = 0
    for number in range(SEED, SEED + LIVES):
        print(f"LIVES=1 LIVES_SEED={number}")
        folder = tmp_path / str(number)
        (folder / "moved").mkdir(parents=True)
        with twins(folder, FakeClock(), grace_hours=72) as pair:
            life = SameLife(pair, Random(number))
            life.begin()
            for _ in range(STEPS):
                life.step()
            life.ask()
            with twins(folder / "moved", pair.clock) as fresh:
                life.move_across(fresh)
        print(dict(life.done))
        done += life.done["Remember"] + life.done["RememberMany"]
    assert done > LIVES
