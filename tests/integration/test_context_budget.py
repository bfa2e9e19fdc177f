"""A context stays within its total, or says by how much it cannot."""

from __future__ import annotations

import random
import re
from typing import Any

import pytest
from support.random_conversations import log, random_conversation, tool_round
from support.thorough import thorough

from mnemosyned import InvalidRequest, Memory
from mnemosyned.service.context import default_counter
from mnemosyned.verbs.conversation import Assembled

COUNTER = default_counter()


def counted(window: Assembled) -> int:
    return COUNTER.text(window.system) + COUNTER.total(window.messages)


@pytest.mark.parametrize("seed", [*range(5), *thorough(*range(5, 40))])
def test_no_context_exceeds_its_total(seed: int) -> None:
    dice = random.Random(seed)
    talk = random_conversation(dice)
    total = dice.choice((2_000, 8_000, 16_000))
    with Memory(":memory:") as memory:
        memory.remember("The harbor tests moved to the new runner on Monday.")
        memory.learn("Always write the note in English.")
        try:
            window = memory.context(
                "Where did the harbor tests go?",
                messages=talk,
                system="You help with code. " * 20,
                total=total,
                system_reserve=0,
                tools_reserve=0,
            )
        except InvalidRequest as error:
            needed = int(
                re.findall(r"takes ([\d,]+) tokens", str(error))[0].replace(",", "")
            )
            assert needed > total
        else:
            assert counted(window) <= window.total <= total


def test_a_long_result_of_the_fresh_tail_keeps_its_beginning_and_its_totals() -> None:
    result = log(random.Random(1), lines=3_000)
    call = {
        "id": "c",
        "type": "function",
        "function": {"name": "sh", "arguments": "{}"},
    }
    talk: list[dict[str, Any]] = [
        {"role": "user", "content": "Run the tests."},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": result},
    ]
    with Memory(":memory:") as memory:
        window = memory.context("And?", messages=talk, total=8_000)

    shown = window.messages[2]["content"]
    assert shown.startswith(
        f"[shortened tool result: sh, {len(result):,} characters] test_0 "
    )
    assert shown.endswith(result.splitlines()[-1])
    assert window.kept == [0, 1, 2]


def test_what_fits_is_not_shortened() -> None:
    talk = tool_round(random.Random(3), id="c")
    with Memory(":memory:") as memory:
        window = memory.context("And?", messages=talk, total=200_000)

    assert window.messages[:2] == talk


def test_the_error_says_by_how_much_and_what_helps() -> None:
    talk = [{"role": "user", "content": "word " * 1_000} for _ in range(10)]
    with Memory(":memory:") as memory:
        with pytest.raises(
            InvalidRequest, match=r"more than total \(8,000\)"
        ) as caught:
            memory.context("And?", messages=talk, total=8_000)
        (tail,) = re.findall(r"lower fresh_tail to (\d+)", str(caught.value))

        window = memory.context(
            "And?", messages=talk, total=8_000, fresh_tail=int(tail)
        )
        with pytest.raises(InvalidRequest):
            memory.context("And?", messages=talk, total=8_000, fresh_tail=int(tail) + 1)

    assert counted(window) <= 8_000


def test_a_new_message_too_long_by_itself_is_refused() -> None:
    with (
        Memory(":memory:") as memory,
        pytest.raises(InvalidRequest, match="shorten the new message"),
    ):
        memory.context("word " * 9_000, total=8_000)


def test_memory_gives_up_its_share_before_the_fresh_tail_is_refused() -> None:
    talk = [{"role": "user", "content": "word " * 430} for _ in range(8)]
    with Memory(":memory:") as memory:
        memory.remember("The harbor opens at seven.")
        window = memory.context(
            "When does the harbor open?",
            messages=talk,
            total=5_000,
            system_reserve=0,
            tools_reserve=0,
        )

    assert window.kept == list(range(8))
    assert counted(window) <= 5_000
