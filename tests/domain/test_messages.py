"""What is read out of messages in three forms, and what belongs together in them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from support.cases import each_case

from mnemosyned.conversation.messages import (
    MEDIA_TOKENS,
    CharsCounter,
    FullCounter,
    Message,
    PartKind,
    count_pinned,
    find_tool_names,
    group_messages,
    is_intent,
    message_id,
    message_parts,
    message_text,
    read_message_time,
)
from mnemosyned.text.token_counts import Chars4


def call(*ids: str, **more: Any) -> Message:  # noqa: ANN401
    calls = [{"id": id, "function": {"name": "sh", "arguments": "{}"}} for id in ids]
    return {"role": "assistant", "content": None, "tool_calls": calls, **more}


def result(id: str, content: object = "ok") -> Message:
    return {"role": "tool", "tool_call_id": id, "content": content}


def says(content: object, role: str = "user") -> Message:
    return {"role": role, "content": content}


USE = says(
    [{"type": "tool_use", "id": "t1", "name": "sh", "input": {"a": 1}}], "assistant"
)
ANSWER = says([{"type": "tool_result", "tool_use_id": "t1", "content": "ok"}])
IMAGE = {"type": "image_url", "image_url": {"url": "data:x"}}


@pytest.mark.parametrize(
    ("messages", "cuts"),
    [
        ([says("a"), says("b")], [0, 1, 2]),
        ([call("1", "2"), result("1"), result("2"), says("b")], [0, 3, 4]),
        ([says("a"), USE, ANSWER, says("b")], [0, 1, 3, 4]),
        ([call("1"), result("1"), call("1"), result("1")], [0, 2, 4]),
        ([call("1"), says("wait"), result("1")], [0, 3]),
        ([call(""), result(""), result(""), says("b"), result("")], [0, 3, 4, 5]),
        (
            [
                {"role": "assistant", "content": None, "function_call": {"name": "f"}},
                {"role": "function", "name": "f", "content": "ok"},
            ],
            [0, 2],
        ),
    ],
    ids=["words", "several", "blocks", "ids again", "between", "no ids", "older form"],
)
def test_a_call_and_its_results_are_not_cut_apart(
    messages: list[Message], cuts: list[int]
) -> None:
    found = group_messages(messages)

    assert list(found.cuts) == cuts
    assert found.orphans == ()


def test_calls_and_results_without_their_other_half_are_named() -> None:
    found = group_messages(
        [result("lost"), call("1", "2"), result("1"), says("b"), call("3")]
    )

    assert found.orphans == (0, 1)
    assert found.pending_call == 4


def test_a_call_waits_while_some_of_its_results_are_missing() -> None:
    assert group_messages([says("a"), call("1", "2"), result("1")]).pending_call == 1
    assert group_messages([call("1"), result("1")]).pending_call is None


def test_the_parts_of_a_message_are_told_apart() -> None:
    message = says(
        [{"type": "text", "text": "look"}, IMAGE, {"type": "odd", "x": 1}, None, 3]
    )

    assert [part.kind for part in message_parts(message)] == [
        PartKind.TEXT,
        PartKind.MEDIA,
        PartKind.OTHER,
    ]
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


def test_pictures_cost_the_same_wherever_they_stand() -> None:
    seed, full = CharsCounter(), FullCounter(Chars4())
    alone, answered = (
        says([IMAGE]),
        result("1", [{"type": "text", "text": "x" * 40}, IMAGE]),
    )

    assert seed.message(alone) == MEDIA_TOKENS + 1
    assert seed.message(answered) == MEDIA_TOKENS + 10
    assert full.message(answered) == MEDIA_TOKENS + 10 + 4


def test_calls_are_counted_where_everything_is() -> None:
    long = says(
        [{"type": "tool_use", "id": "1", "name": "write", "input": {"x": "y" * 400}}]
    )

    assert CharsCounter().message(long) == 1
    assert FullCounter(Chars4()).message(long) > 100


def test_a_message_of_results_alone_is_no_word_of_the_users() -> None:
    mixed = says([*ANSWER["content"], {"type": "text", "text": "and now?"}])

    assert [
        is_intent(one) for one in (says("a"), ANSWER, mixed, says("a", "assistant"))
    ] == [
        True,
        False,
        True,
        False,
    ]


def test_a_picture_in_a_tools_result_is_no_word_of_the_users() -> None:
    shot = {"type": "tool_result", "tool_use_id": "t1", "content": [IMAGE]}

    assert not is_intent(says([shot]))
    assert is_intent(says([shot, IMAGE]))
    assert is_intent(says([IMAGE]))
    assert is_intent(says(None))


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


def test_leading_system_messages_are_pinned() -> None:
    system, developer = says("s", "system"), says("d", "developer")

    assert count_pinned([system, developer, says("a"), system]) == 2
    assert count_pinned([system]) == 1
