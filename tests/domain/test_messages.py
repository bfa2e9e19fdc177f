"""What is read out of messages in three forms, and what belongs together in them."""

import time
from datetime import UTC, datetime

import pytest
from support.cases import each_case
from support.messages import call, result, says, text_block, tool_result, tool_use

from mnemosyned.conversation.messages import (
    MEDIA_TOKENS,
    CharsCounter,
    FullCounter,
    Message,
    PartKind,
    find_tool_names,
    group_messages,
    has_user_content,
    message_id,
    message_parts,
    message_text,
    read_message_time,
)
from mnemosyned.text.token_counts import Chars4, TokenEstimator

USE = tool_use("t1", a=1)
ANSWER = says([tool_result("t1")])
OLDER_CALL = says(None, "assistant", function_call={"name": "f"})
IMAGE = {"type": "image_url", "image_url": {"url": "data:x"}}


@pytest.mark.parametrize(("messages", "cuts"), [
    ([says("a"), says("b")], [0, 1, 2]),
    ([call("1", "2"), result("1"), result("2"), says("b")], [0, 3, 4]),
    ([says("a"), USE, ANSWER, says("b")], [0, 1, 3, 4]),
    ([call("1"), result("1"), call("1"), result("1")], [0, 2, 4]),
    ([call("1"), says("wait"), result("1")], [0, 3]),
    ([call(""), result(""), result(""), says("b"), result("")], [0, 3, 4, 5]),
    ([OLDER_CALL, {"role": "function", "name": "f", "content": "ok"}], [0, 2]),
], ids=["words", "several", "blocks", "ids again", "between", "no ids", "older form"])  # fmt: skip
def test_calls_and_results_stay_together(
    messages: list[Message], cuts: list[int]
) -> None:
    found = group_messages(messages)

    assert list(found.cuts) == cuts
    assert found.orphans == ()


def test_calls_and_results_without_their_other_half_are_named() -> None:
    lost = [result("lost"), call("1", "2"), result("1"), says("b"), call("3")]

    found = group_messages(lost)

    assert (found.orphans, found.pending_call) == ((0, 1), 4)
    assert group_messages([says("a"), call("1", "2"), result("1")]).pending_call == 1
    assert group_messages([call("1"), result("1")]).pending_call is None


def test_the_parts_of_a_message_are_told_apart() -> None:
    message = says([text_block("look"), IMAGE, {"type": "odd", "x": 1}, None, 3])

    kinds = [part.kind for part in message_parts(message)]
    assert kinds == [PartKind.TEXT, PartKind.MEDIA, PartKind.OTHER]
    assert message_text(message) == "look"
    assert [(part.text, part.id, part.name) for part in message_parts(USE)] == [
        ('{"a": 1}', "t1", "sh")
    ]
    assert find_tool_names([USE, call("c1")]) == {"t1": "sh", "c1": "sh"}


@each_case("content", [None, 3, b"x", {}, [[]], True])
def test_content_that_is_no_text_is_never_turned_into_some(content: object) -> None:
    message = says(content)

    assert message_text(message) == ""
    assert CharsCounter().message(message) == 1


@each_case(
    "words",
    [
        "会議は木曜日の午後三時に始まります",
        "我们每周四下午部署服务器",
        "우리는매주목요일에배포합니다",
        "ＡＢＣ１２３、。！？",
    ],
)
def test_characters_of_cjk_count_by_their_tokens(words: str) -> None:
    tokens = pytest.approx(TokenEstimator().count(words), abs=1)

    assert CharsCounter().text(words) == tokens
    assert CharsCounter().message(says(words)) == tokens
    assert CharsCounter().total([says([text_block(words)])]) == tokens
    assert CharsCounter().text(words + "word" * 5) == CharsCounter().text(words) + 5


def test_pictures_cost_the_same_wherever_they_are() -> None:
    seed, full = CharsCounter(), FullCounter(Chars4())
    answered = result("1", [text_block("x" * 40), IMAGE])
    long = tool_use("1", x="y" * 400)

    assert seed.message(says([IMAGE])) == MEDIA_TOKENS + 1
    assert seed.message(answered) == MEDIA_TOKENS + 10
    assert full.message(answered) == MEDIA_TOKENS + 10 + 4
    assert seed.message(long) == 1
    assert full.message(long) > 100


SHOT = tool_result("t1", [IMAGE])


@each_case(("message", "is_users"), [
    (says("a"), True),
    (ANSWER, False),
    (says([tool_result("t1"), text_block("and now?")]), True),
    (says("a", "assistant"), False),
    (says([SHOT]), False),
    (says([SHOT, IMAGE]), True),
    (says([IMAGE]), True),
    (says(None), True),
])  # fmt: skip
def test_a_tools_answer_is_no_users_word(message: Message, *, is_users: bool) -> None:
    assert has_user_content(message) is is_users


def test_a_message_is_called_by_its_id_or_by_what_is_in_it() -> None:
    assert message_id({"id": "m1", "role": "user"}) == "m1"
    assert message_id(says("a")) == message_id({"content": "a", "role": "user"})
    assert message_id(says("a")) != message_id(says("b"))
    assert message_id({"id": "no id]", "role": "user"}).startswith("m-")
    assert message_id({1: b"x", "a": {2, 3}, "b": 1.5}).startswith("m-")  # type: ignore[dict-item]


def test_the_time_of_a_message_is_read_where_it_has_one() -> None:
    noon = datetime(2026, 3, 17, 12, tzinfo=UTC)

    assert read_message_time({"created_at": "2026-03-17T12:00:00"}) == noon
    assert read_message_time({"timestamp": noon}) == noon
    assert read_message_time({"created_at": "soon", "timestamp": 7}) is None


def test_a_time_of_a_message_without_a_zone_is_local() -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TZ", "Europe/Berlin")
        time.tzset()
        said = read_message_time({"timestamp": "2026-03-17T00:30:00"})
    time.tzset()

    assert said
    assert (said.day, said.astimezone(UTC).hour) == (17, 23)
