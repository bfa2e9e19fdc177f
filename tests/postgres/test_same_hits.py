"""Both engines live the same life, answer alike, and restore each other's exports."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import pytest
from bench.locomo import Conversation
from support.compare_databases import differences
from support.datasets.mixed_year import Record
from support.datasets.timed_questions import timed_questions, timed_sets
from support.engines import POSTGRES, SQLITE
from support.fakes import NOON, FakeClock
from support.mixed_memory import QUESTIONS, fill
from support.same_life import SameLife
from support.seeds import seed_of
from support.twins import Twins, twins

from mnemosyned.assembly.build import OpenMemory, open_memory
from mnemosyned.config.settings import Config
from mnemosyned.memory.values import Tier
from mnemosyned.verbs.exchange import Export
from mnemosyned.verbs.memories import Recall, Remember

pytestmark = pytest.mark.postgres


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
    requests = [request for text in asked for request in variants(text)]
    assert pair.differing_around_sleep(requests) == []
    answered = pair.ask(Recall(query="東京"))
    assert answered[SQLITE]
    assert answered[POSTGRES] == answered[SQLITE]


@pytest.mark.parametrize("name", ["year", "month"])
def test_questions_about_times_are_answered_alike(pair: Twins, name: str) -> None:
    records = timed_sets()[name]
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


# An export of one engine restores in the other, and everything in it comes back as it was.


ENDS = ("header", "footer")


@contextmanager
def opened(database: str | Path) -> Iterator[OpenMemory]:
    with open_memory(Config(database=str(database), auto_sleep=False)) as memory:
        yield memory


def exported(database: str | Path) -> list[bytes]:
    """The lines of an export, the first and the last included."""
    with opened(database) as memory:
        return b"".join(memory.service.export(Export())).splitlines(keepends=True)


def restored(lines: list[bytes], database: str | Path) -> None:
    with opened(database) as memory:
        outcome = memory.service.restore_lines(b"".join(lines[1:]))
        assert outcome.conflicts == []
        assert (outcome.working, outcome.left_out) == (0, 0)
        assert sum(outcome.stored.values()) == len(lines) - len(ENDS)


def records(lines: list[bytes]) -> list[dict[str, Any]]:
    """What an export holds; the order of the values of one memory is an engine's own."""
    decoded = [msgspec.json.decode(line) for line in lines]
    assert [decoded[0]["record"], decoded[-1]["record"]] == list(ENDS)
    for record in decoded:
        if "details" in record:
            record["details"] = sorted(record["details"])
    return decoded[1:-1]


def answers(database: str | Path) -> list[list[object]]:
    with opened(database) as memory:
        found = [memory.service.call(Recall(question)) for question in QUESTIONS]
    return [[(hit.id, hit.content) for hit in result.hits] for result in found]


@pytest.fixture
def filled(tmp_path: Path) -> Path:
    """A SQLite file with something of everything."""
    file = tmp_path / "filled.db"
    fill(file)
    return file


def test_a_file_comes_back_row_by_row(filled: Path, dsn: str, tmp_path: Path) -> None:
    again = tmp_path / "again.db"
    lines = exported(filled)

    restored(lines, dsn)
    with opened(dsn) as memory:  # once more, which stores nothing
        known = memory.service.restore_lines(b"".join(lines[1:]))
    assert (known.stored, known.conflicts) == ({}, [])
    assert sum(known.known.values()) == len(lines) - len(ENDS)
    from_server = exported(dsn)
    restored(from_server, again)

    kinds = Counter(record["record"] for record in records(lines))
    assert set(kinds) >= {"episode", "memory", "supersession", "learning", "log"}
    assert records(from_server) == records(lines)
    footers = [msgspec.json.decode(given[-1]) for given in (lines, from_server)]
    assert footers[0]["counts"] == footers[1]["counts"]
    assert differences(filled, again) == []
    assert answers(dsn) == answers(filled)
