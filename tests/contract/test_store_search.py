"""What every `MemoryStore` promises of its search."""

from datetime import UTC, datetime, timedelta
from itertools import chain
from typing import Any
from unicodedata import normalize

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from support.cases import each_case
from support.fakes import (
    NOON,
    FakeClock,
    consolidate,
    memory,
    promotion,
    remember_batch,
)
from support.stores import get_memory

from mnemosyned.memory.ports import MemoryStore
from mnemosyned.memory.values import Hit, Tier
from mnemosyned.search.query import Query
from mnemosyned.search.ranking import make_hits, rank
from mnemosyned.search.weights import WEIGHTS
from mnemosyned.service.service import MemoryService
from mnemosyned.text.terms import parse_terms
from mnemosyned.verbs.memories import EditMemory, Recall, Remember
from mnemosyned.verbs.retention import Forget
from mnemosyned.verbs.upkeep import Sleep


def recall(
    store: MemoryStore,
    question: str,
    *,
    limit: int = 10,
    **where: Any,  # noqa: ANN401
) -> list[Hit]:
    query = Query(terms=parse_terms(question), limit=limit, **where)
    places = rank(query, store.search.candidates(query))
    return make_hits(query, places, store.search.documents(places))


def found(store: MemoryStore, question: str, **where: Any) -> list[str]:  # noqa: ANN401
    return sorted(hit.id for hit in recall(store, question, **where))


def test_a_synonym_and_its_forms_are_found_after_the_word_itself(
    store: MemoryStore,
) -> None:
    remember_batch(
        store,
        memory("synonym", "we decided on Stripe for the shop", session="a"),
        memory("word", "we chose Stripe for the shop", session="b"),
        memory("other", "we cancelled Adyen for the shop", session="c"),
    )

    hits = [hit.id for hit in recall(store, "choosing")]

    assert hits == ["word", "synonym"]


def test_only_words_find_those_with_most_of_them(store: MemoryStore) -> None:
    remember_batch(
        store,
        memory("both", "the blue bike is in the cellar", session="a"),
        memory("beside", "nobody has seen it since", session="a"),
        memory("one", "a bike is cheap in Porto", session="b"),
        memory("other", "a blue door", session="b"),
    )

    query = Query(terms=parse_terms("blue bike"), limit=2, only_words=True)
    candidates = store.search.candidates(query)

    assert len(candidates.memories) == 2
    assert candidates.memories[0].content == "the blue bike is in the cellar"
    assert not candidates.beside
    assert all(match.score > 0 for match in candidates.memories)


@pytest.fixture
def trip(store: MemoryStore) -> MemoryStore:
    """A week's notes on a bike: three in an episode, two still fresh."""
    told = [
        memory(id, text, session="a", source="chat", hours_ago=hours)
        for id, text, hours in (
            ("mon", "the bike was stolen in Lisbon", 72),
            ("tue", "police report about the bike", 71),
            ("wed", "weather was fine", 70),
        )
    ]
    thursday: dict[str, Any] = {"session": "a", "source": "shop", "hours_ago": 2}
    remember_batch(
        store,
        *told,
        memory("thu", "a new bike costs 900 euros", **thursday),
        memory("fri", "my bike has a flat tyre", session="b", hours_ago=1),
    )
    consolidate(store, promotion("e", *told, content="Theft reported in Portugal"))
    return store


@each_case(
    ("where", "expected"),
    [
        ({}, ["e", "fri", "thu"]),
        ({"sessions": ("b",)}, ["fri"]),
        ({"sessions": ("a", "b")}, ["e", "fri", "thu"]),
        ({"sources": ("shop",)}, ["thu"]),
        ({"sources": ("shop", "chat")}, ["e", "thu"]),
        ({"sessions": ("b",), "sources": ("shop",)}, []),
        ({"sessions": ("nobody",)}, []),
        ({"tier": Tier.WORKING}, ["fri", "thu"]),
        ({"tier": Tier.ARCHIVE}, ["mon", "tue"]),
        ({"tier": Tier.EPISODIC}, []),
        ({"since": NOON - timedelta(hours=2)}, ["fri", "thu"]),
        ({"since": NOON - timedelta(hours=1, minutes=59)}, ["fri"]),
        ({"until": NOON - timedelta(hours=1)}, ["e", "thu"]),
        ({"until": NOON - timedelta(hours=72)}, []),
        ({"tier": Tier.ARCHIVE, "since": NOON - timedelta(hours=71)}, ["tue"]),
        (
            {
                "since": datetime(1, 1, 1, tzinfo=UTC),
                "until": datetime.max.replace(tzinfo=UTC),
            },
            ["e", "fri", "thu"],
        ),
    ],
)
def test_a_search_stays_within_its_filters(
    trip: MemoryStore, where: dict[str, Any], expected: list[str]
) -> None:
    assert found(trip, "bike", **where) == expected


def test_an_episode_shows_the_originals_that_matched(trip: MemoryStore) -> None:
    episode = recall(trip, "stolen bike", sources=("chat",))[0]

    assert (episode.id, episode.tier) == ("e", Tier.EPISODIC)
    assert [line.id for line in episode.lines] == ["mon", "tue"]
    assert episode.lines[0].content == "the bike was stolen in Lisbon"
    assert episode.summary_of == ("mon", "tue", "wed")


def test_an_episode_is_found_by_the_words_of_its_summary(trip: MemoryStore) -> None:
    assert found(trip, "theft in Portugal") == ["e"]
    assert found(trip, "theft", tier=Tier.EPISODIC) == ["e"]
    assert found(trip, "theft", tier=Tier.EPISODIC, sessions=("b",)) == []


@pytest.mark.parametrize(
    ("where", "found_it"),
    [
        ({"since": NOON - timedelta(hours=70)}, True),
        ({"since": NOON - timedelta(hours=69, minutes=59)}, False),
        ({"until": NOON - timedelta(hours=71, minutes=59)}, True),
        ({"until": NOON - timedelta(hours=72)}, False),
    ],
)
def test_a_summary_belongs_to_all_the_time_it_covers(
    trip: MemoryStore, where: dict[str, datetime], *, found_it: bool
) -> None:
    assert found(trip, "Portugal", **where) == (["e"] if found_it else [])


def test_an_original_from_the_archive_is_given_whole(trip: MemoryStore) -> None:
    hit = recall(trip, "police", tier=Tier.ARCHIVE)[0]

    assert (hit.id, hit.tier) == ("tue", Tier.ARCHIVE)
    assert hit.content == "police report about the bike"


def test_an_episode_never_crowds_out_the_answer(store: MemoryStore) -> None:
    told = [memory(str(at), f"apple number {at}") for at in range(20)]
    remember_batch(store, *told, memory("fresh", "an apple a day"))
    consolidate(store, promotion("e", *told, content="apples"))

    answer = recall(store, "apple", limit=2)

    assert sorted(hit.id for hit in answer) == ["e", "fresh"]
    assert max(len(hit.lines) for hit in answer) == WEIGHTS.lines_max


def test_the_limit_is_respected(store: MemoryStore) -> None:
    remember_batch(store, *(memory(str(at), f"apple number {at}") for at in range(30)))

    assert len(recall(store, "apple", limit=4)) == 4
    assert len(recall(store, "apple", limit=25)) == 25


@each_case(
    "question",
    [
        'bike" OR "tyre',
        "bike AND NOT bike",
        "bike NEAR(tyre, 2)",
        "content: bike",
        "{content role}: bike",
        "^bike",
        "bike*",
        "-bike + bike",
        "(bike",
        "'bike'; DROP TABLE working_memory; --",
        '"""bike"',
    ],
)
def test_operators_are_read_as_words(trip: MemoryStore, question: str) -> None:
    assert "fri" in found(trip, question)


@each_case("question", ["", " ", "?!", '""', "🚲", "_", "zzyzx", "bik", "*"])
def test_no_match_finds_nothing(trip: MemoryStore, question: str) -> None:
    assert found(trip, question) == []


def test_a_question_of_stop_words_alone_is_still_asked(store: MemoryStore) -> None:
    remember_batch(store, memory("1", "to be or not to be"), memory("2", "apples"))

    assert found(store, "to be") == ["1"]


@pytest.mark.parametrize(
    "question", ["moved", "moving", "MOVES", "move?", "Anna’s move"]
)
def test_a_word_is_found_in_its_other_forms(store: MemoryStore, question: str) -> None:
    remember_batch(
        store, memory("1", "She moved to Lisbon"), memory("2", "something else")
    )

    assert found(store, question) == ["1"]


@pytest.mark.parametrize(
    ("text", "question"),
    [
        ("Wir trafen uns in São Tomé", "sao tome"),
        ("Größe und Übermut", "übermut"),
        ("Sie wohnt in der Goethestraße", "GOETHESTRAßE"),
        ("το σπίτι στην οδό ΟΔΟΣ", "οδος"),
        ("το σπίτι στην Αθήνα", "ΑΘΗΝΑ"),
        ("ΤΟ ΠΡΟΙΟΝ ΗΡΘΕ", "προϊόν"),
        ("мы купили ёлку", "елку"),
        ("İstanbul'da buluştuk", "istanbul"),
        ("我们在东京见面了", "东京"),
        ("東京都に住んでいます", "東京 引っ越し"),
        ("서울에서 만났어요", "서울"),
        ("เราพบกันที่กรุงเทพ", "กรุงเทพ"),
        ("call getUserProfile first", "user profile"),
        ("call getUserProfile first", "getUserProfile"),
        ("order QX-48213 arrived", "QX-48213"),
        ("order QX-48213 arrived", "qx 48213"),
        ("see https://example.org/a/b?c=1", "https://example.org/a/b?c=1"),
        ("mail to anna.b@example.org", "anna.b@example.org"),
    ],
)
def test_names_codes_and_other_scripts_are_found(
    store: MemoryStore, text: str, question: str
) -> None:
    remember_batch(store, memory("1", text), memory("2", "日本語 fooBar plain words"))

    assert found(store, question) == ["1"]


def test_another_script_is_found_in_an_episode(store: MemoryStore) -> None:
    told = [memory("1", "我们在东京见面了"), memory("2", "b"), memory("3", "c")]
    remember_batch(store, *told)
    consolidate(store, promotion("e", *told, content="在大阪总结"))

    assert [line.id for line in recall(store, "东京")[0].lines] == ["1"]
    assert found(store, "大阪") == ["e"]


def test_a_memory_is_found_by_who_said_it(store: MemoryStore) -> None:
    remember_batch(
        store, memory("1", "I like tea", role="Caroline"), memory("2", "I like coffee")
    )

    assert found(store, "Caroline") == ["1"]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40)
@given(
    st.text(
        st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=200
    )
)
def test_no_question_breaks_the_search(store: MemoryStore, question: str) -> None:
    assert recall(store, question) == []


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=25)
@given(st.text("abcxyzÄßİΣ東京都 -'\"*", min_size=1, max_size=40))
def test_whatever_has_words_is_found_by_itself(store: MemoryStore, text: str) -> None:
    remember_batch(store, memory(f"id {text}", text))

    answer = recall(store, text, limit=100)

    # What says the same shares one place.
    said = {hit.content.strip().casefold() for hit in answer}
    assert not parse_terms(text) or text.strip().casefold() in said


# Words, names and codes that touch a script without spaces are found and forgotten like others.


GLUED = [
    ("サーバーはnginxです。", "nginx"),
    ("我们用PostgreSQL存储订单", "PostgreSQL"),
    ("会议改到2026年5月3日，由Ana主持", "Ana"),
    ("Anaさんが来ました", "Ana"),
    ("서버는nginx입니다", "nginx"),
    ("서버는 Redis입니다", "Redis"),
    ("密码是Hunter22!", "Hunter22"),
    ("错误码E1234出现在支付模块", "E1234"),
    ("チケットABC-123を閉じた", "ABC-123"),
    ("版本v1.2.3已发布", "v1.2.3"),
    ("เซิร์ฟเวอร์nginxล่ม", "nginx"),
    ("会议cancelled了", "cancel"),
    ("会议cancelling了", "cancelled"),
    ("サーバーはСерверです", "сервер"),
    ("我在Zürich工作", "zurich"),
    ("全角のＡＢＣを", "ＡＢＣ"),
    ("请看https://example.com/a/b-7吧", "https://example.com/a/b-7"),
    ("请看https://example.com/a/b-7吧", "example.com"),
    ("部署到foo_bar和prod-eu-1机房", "prod-eu-1"),
    ("はですβγδλです", "βγδλ"),
    ("x 我们בגדז用 y", "בגדז"),
    ("서버بتثج는！", "بتثج"),
    ("a (b用कखगघで, c)", "कखगघ"),
    ("ກຂຄDKV-42_ab1", "DKV-42_ab1"),
    ("48213កខគឃង", "48213"),
    ("ကခဂÄkvxဃင", "äkvx"),
]
"""A text, and a word of it."""


def recalled(
    service: MemoryService, question: str, session: str | None = None
) -> list[str]:
    hits = service.call(Recall(question, session=session)).hits
    ids = [(hit.id, *(line.id for line in hit.lines)) for hit in hits]
    return list(chain.from_iterable(ids))


def forgets(service: MemoryService, **which: Any) -> int:  # noqa: ANN401
    return service.call(Forget(dry_run=True, **which)).memories


def tell(service: MemoryService, session: str | None = None, **texts: str) -> None:
    """Remember texts by their ids, each in a session of its own if none is given."""
    for id, text in texts.items():
        service.call(Remember(text, id=id, session=session or id))


def check_words(
    service: MemoryService, clock: FakeClock, words: dict[str, tuple[str, str]]
) -> None:
    """Each text is found and forgotten by its word, before a sleep and after it."""
    tell(service, **{id: text for id, (text, _) in words.items()})
    for _ in range(2):
        for id, (_, word) in words.items():
            for question in (word, f"where is {word}?"):
                assert id in recalled(service, question, session=id), (id, question)
            assert forgets(service, session=id, query=word) == 1, (id, word)
        clock.advance(hours=48)
        service.call(Sleep(force=True))


@pytest.mark.thorough
def test_a_word_is_found_and_forgotten_whatever_script_it_touches(
    store: MemoryStore, service: MemoryService, clock: FakeClock
) -> None:
    check_words(service, clock, {f"m{at}": each for at, each in enumerate(GLUED)})
    assert store.memories.working_count() == 0


# A letter or digit is found by its common form, and the common form by another one.


FORMS = [
    ("ＡＰＩ", "API"),
    ("ＱＸ－４８２１３", "QX-48213"),
    ("１９２．１６８．０．１７", "192.168.0.17"),
    ("ｻｰﾊﾞｰ", "サーバー"),
    ("カ\uff9eレ\uff70シ\uff9e", "ガレージ"),
    ("ﬁlament", "filament"),
    (normalize("NFD", "서버"), "서버"),
    (normalize("NFD", "ガレージ"), "ガレージ"),
    (normalize("NFD", "йод"), "йод"),
    (normalize("NFD", "Zürich"), "Zurich"),
    ("⾦⾊", "金色"),
    ("85㎡", "85m2"),
    ("CO₂", "CO2"),
    ("Ⅷ", "VIII"),
    ("𝐑𝐞𝐝𝐢𝐬", "redis"),
    ("ﻣﺮﺣﺒﺎ", "مرحبا"),
    ("ＵｓｅｒＮａｍｅ", "UserName"),
]
"""A word in another form, and in the common one."""
FRAMES = ["the {} is new", "新しい{}です", "{}"]


@pytest.mark.thorough
@pytest.mark.parametrize("frame", FRAMES)
@pytest.mark.parametrize("stored", [0, 1])
def test_a_word_is_found_and_forgotten_whatever_form_its_letters_have(
    service: MemoryService, clock: FakeClock, frame: str, stored: int
) -> None:
    words = {
        f"m{at}-{number}": (frame.format(pair[stored]), asked)
        for at, pair in enumerate(FORMS)
        for number, asked in enumerate(pair)
    }
    tell(service, other="the parcel is at the gate")

    check_words(service, clock, words)


def test_the_text_stays_as_it_is(store: MemoryStore, service: MemoryService) -> None:
    text = "ＡＰＩ の ｻｰﾊﾞｰ " + normalize("NFD", "서버") + " ﬁle"
    tell(service, m=text)

    assert get_memory(store, "m").content == text
    (hit,) = service.call(Recall("API サーバー")).hits
    assert (hit.content, hit.why) == (text, "words: API")


def test_signs_and_raised_digits_stay_what_they_are(service: MemoryService) -> None:
    tell(service, sign="we buy Slack™", power="10² rows", half="2½ cups")

    assert recalled(service, "Slack") == ["sign"]
    assert forgets(service, query="slacktm") == forgets(service, query="102") == 0
    assert forgets(service, query="21") == 0


def test_all_words_may_be_asked_for_whatever_their_forms(
    service: MemoryService, clock: FakeClock
) -> None:
    for id, name in (("other", "SSH"), ("old", "ＡＰＩ"), ("new", "ＡＰＩ")):
        tell(service, "s", **{id: f"the {name} key is {id}"})
        clock.advance(hours=30)

    assert recalled(service, "what was the first API key?", "s")[0] == "old"


def test_an_edited_or_forgotten_word_is_gone_in_all_its_forms(
    service: MemoryService,
) -> None:
    tell(service, m="the ＡＰＩ key", n="the ｻｰﾊﾞｰ")

    service.call(EditMemory("m", text="the ｇａｔｅ key"))
    service.call(Forget(["n"]))

    for word in ("API", "ＡＰＩ", "サーバー", "ｻｰﾊﾞｰ"):
        assert forgets(service, query=word) == 0, word
    assert forgets(service, query="gate") == 1


def test_a_word_within_another_one_is_not_meant(service: MemoryService) -> None:
    tell(service, fruit="我吃banana了", who="Anaさん", code="版本ABC在123")

    assert recalled(service, "ana") == ["who"]
    assert forgets(service, query="ana") == forgets(service, person="Ana") == 1
    assert recalled(service, "ABC-123") == []
    assert forgets(service, query="ABC-123") == 0


def test_a_name_is_forgotten_in_scripts(
    service: MemoryService, clock: FakeClock
) -> None:
    texts = "Anaさんが来ました 由Ana主持 Ana씨가왔다 กับAnaวันนี้".split()
    texts.append("我和Ana López去了")
    tell(service, **{f"m{at}": text for at, text in enumerate(texts)})
    tell(service, fruit="Banana很好吃")
    clock.advance(hours=48)
    service.call(Sleep(force=True))

    receipt = service.call(Forget(person="Ana"))

    assert receipt.memories == len(texts)
    assert recalled(service, "Ana") == []
    assert forgets(service, query="Ana") == 0


def test_the_last_time_is_found(service: MemoryService, clock: FakeClock) -> None:
    for id, text in (
        ("old", "nginxを更新"),
        ("new", "用nginx重启"),
        ("noise", "今天下雨"),
    ):
        tell(service, "s", **{id: text})
        clock.advance(hours=30)

    assert recalled(service, "when did we last touch nginx?", "s")[0] == "new"


def test_an_edit_takes_the_old_word_with_it(service: MemoryService) -> None:
    tell(service, m="サーバーはnginxです")

    service.call(EditMemory("m", text="サーバーはcaddyです"))

    assert forgets(service, query="nginx") == 0
    assert forgets(service, query="caddy") == 1
