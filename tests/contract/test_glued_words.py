"""Words, names and codes that touch a script without spaces are found and forgotten like others."""

from itertools import chain, count
from typing import Any

from hypothesis import HealthCheck, given, settings, strategies as st
from support.fakes import FakeClock

from mnemosyned.memory.ports import MemoryStore
from mnemosyned.service.service import MemoryService
from mnemosyned.verbs.memories import EditMemory, Recall, Remember
from mnemosyned.verbs.retention import Forget
from mnemosyned.verbs.upkeep import Sleep

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
]
"""A text, and a word of it."""
_LETTERS = {
    "latin": st.from_regex("[B-Dx-z][bdgkvxz0-9]{2,8}", fullmatch=True),
    "accents": st.from_regex("[ÄÉø][kvxzß]{2,6}", fullmatch=True),
    "digits": st.from_regex("[1-9][0-9]{4,6}", fullmatch=True),
    "code": st.from_regex("[A-Z]{2,4}-[0-9]{1,4}(_[a-z]{2}[0-9])?", fullmatch=True),
    "version": st.from_regex(r"v[0-9]\.[0-9]{1,2}\.[0-9]", fullmatch=True),
    "cyrillic": st.text("бвгджзкйЩ", min_size=3, max_size=8),
    "greek": st.text("βγδλμξπΣ", min_size=3, max_size=8),
    "hebrew": st.text("בגדזחט", min_size=3, max_size=8),
    "arabic": st.text("بتثجحخ", min_size=3, max_size=8),
    "devanagari": st.text("कखगघच", min_size=3, max_size=8),
    "full width": st.text("ＢＣＤｘｚ１２", min_size=3, max_size=8),
}
_UNSPACED = (
    "我们用存储订单",
    "はですをさん",
    "サーバーコード",
    "서버는입니다",
    "กขคงจฉ",
    "ກຂຄງຈ",
    "កខគឃង",
    "ကခဂဃင",
)
_run = st.sampled_from(_UNSPACED).flatmap(
    lambda all_: st.text(all_, min_size=1, max_size=5)
)
_numbers = count()
_glued = st.tuples(
    st.one_of(*_LETTERS.values()),
    st.sampled_from(
        [
            "{0}{1}",
            "{1}{2}",
            "{0}{1}{2}",
            "x {0}{1} y",
            "a (b{0}{1}, c)",
            "{2}。{0}{1}！",
        ]
    ),
    _run,
    _run,
)


def recalled(
    service: MemoryService, question: str, session: str | None = None
) -> list[str]:
    hits = service.call(Recall(question, session=session)).hits
    ids = [(hit.id, *(line.id for line in hit.lines)) for hit in hits]
    return list(chain.from_iterable(ids))


def forgets(service: MemoryService, **which: Any) -> int:  # noqa: ANN401
    """Count what a filter of `forget` selects."""
    return service.call(Forget(dry_run=True, **which)).memories


def assert_is_found(service: MemoryService, id: str, word: str) -> None:
    for question in (word, f"where is {word}?"):
        assert id in recalled(service, question, session=id), (id, question)
    assert forgets(service, session=id, query=word) == 1, (id, word)


def test_a_word_is_found_and_forgotten_whatever_script_it_touches(
    store: MemoryStore, service: MemoryService, clock: FakeClock
) -> None:
    for number, (text, _) in enumerate(GLUED):
        service.call(Remember(text, id=f"m{number}", session=f"m{number}"))

    for number, (_, word) in enumerate(GLUED):
        assert_is_found(service, f"m{number}", word)
    clock.advance(hours=48)
    service.call(Sleep(force=True))

    assert store.memories.working_count() == 0
    for number, (_, word) in enumerate(GLUED):
        assert_is_found(service, f"m{number}", word)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=2)
@given(st.lists(_glued, min_size=4, max_size=12))
def test_any_word_is_found_whatever_it_touches(
    service: MemoryService,
    clock: FakeClock,
    cases: list[tuple[str, str, str, str]],
) -> None:
    words: dict[str, str] = {}
    for word, form, before, after in cases:
        id = f"p{next(_numbers)}"
        words[id] = word
        service.call(Remember(form.format(before, word, after), id=id, session=id))

    for id, word in words.items():
        assert_is_found(service, id, word)
    clock.advance(hours=48)
    service.call(Sleep(force=True))
    for id, word in words.items():
        assert_is_found(service, id, word)


def test_a_word_within_another_one_is_not_meant(service: MemoryService) -> None:
    for id, text in (
        ("fruit", "我吃banana了"),
        ("who", "Anaさん"),
        ("code", "版本ABC在123"),
    ):
        service.call(Remember(text, id=id, session=id))

    assert recalled(service, "ana") == ["who"]
    assert forgets(service, query="ana") == 1
    assert forgets(service, person="Ana") == 1
    assert recalled(service, "ABC-123") == []
    assert forgets(service, query="ABC-123") == 0


def test_a_person_is_forgotten_whatever_script_the_name_touches(
    service: MemoryService, clock: FakeClock
) -> None:
    texts = (
        "Anaさんが来ました",
        "由Ana主持",
        "Ana씨가 왔다",
        "กับAnaวันนี้",
        "我和Ana López去了",
    )
    for number, text in enumerate(texts):
        service.call(Remember(text, id=f"m{number}", session="s"))
    service.call(Remember("Banana很好吃", session="s"))
    clock.advance(hours=48)
    service.call(Sleep(force=True))

    receipt = service.call(Forget(person="Ana"))

    assert receipt.memories == len(texts)
    assert recalled(service, "Ana") == []
    assert forgets(service, query="Ana") == 0


def test_the_last_time_of_something_is_found(
    service: MemoryService, clock: FakeClock
) -> None:
    for id, text in (
        ("old", "nginxを更新"),
        ("new", "用nginx重启"),
        ("noise", "今天下雨"),
    ):
        service.call(Remember(text, id=id, session="s"))
        clock.advance(hours=30)

    assert recalled(service, "when did we last touch nginx?", "s")[0] == "new"


def test_an_edit_takes_the_old_word_with_it(service: MemoryService) -> None:
    service.call(Remember("サーバーはnginxです", id="m", session="s"))

    service.call(EditMemory("m", text="サーバーはcaddyです"))

    assert forgets(service, query="nginx") == 0
    assert forgets(service, query="caddy") == 1
