"""Both engines answer every question with the same hits, in the same order, with the same scores."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from random import Random

import msgspec
import pytest
from bench.locomo import Conversation
from support.datasets.mixed_year import NOW, Record, mixed_year
from support.datasets.timed_questions import timed_questions, timed_sets
from support.engines import POSTGRES, SQLITE
from support.fakes import NOON, FakeClock
from support.twins import Twins, twins

from mnemosyned.memory.values import Tier
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
QUESTIONS = """
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
    """A question within some filters."""
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
    asked = QUESTIONS.strip().splitlines()
    asked += [" ".join(dice.sample(words, dice.randint(1, 9))) for _ in range(40)]
    requests = [request for text in asked for request in variants(text)]
    assert pair.differing(requests) == []
    pair.sleep()
    assert pair.differing(requests) == []
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
    assert pair.differing(requests) == []
    pair.sleep()
    assert pair.differing(requests) == []


def test_a_mixed_year_is_answered_alike(pair: Twins) -> None:
    year = mixed_year(per_day=3)
    pair.clock.moment = NOW
    pair.remember(*told_of(year.records))
    requests = [Recall(query=question.text) for question in year.questions[:100]]
    assert pair.differing(requests) == []
    pair.sleep()
    assert pair.differing(requests) == []


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
        for talk in talks
        for asked in talk.questions()
        for source in (None, [asked.sample])
    ]
    assert len(requests) > 200
    assert pair.differing(requests) == []
    pair.sleep()
    assert pair.differing(requests) == []
