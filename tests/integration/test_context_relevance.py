"""A context quotes the memory that matters to the message, and none where none does."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest
from support.random_conversations import prose

from mnemosyned import Memory


@pytest.fixture(scope="module")
def memory() -> Iterator[Memory]:
    dice = random.Random(5)
    with Memory(":memory:") as opened:
        for _ in range(300):
            opened.remember(
                f"{prose(dice, longest=40)} What comes next, we go on and continue."
            )
        opened.remember(
            "The key box of the cabin hangs behind the larch, beside the Wi-Fi router."
        )
        opened.remember("Ho comprato una bicicletta gialla per Bianca.")
        opened.remember("猫の名前はタマです。")
        opened.remember("서버는 nginx입니다.")
        yield opened


@pytest.mark.parametrize(
    "message",
    [
        "What next?",
        "ok, go on",
        "Thanks!",
        "continue",
        "Yes, please do that",
        "Looks good, next step please",
        "Weiter",
        "Was nun?",
        "Et maintenant ?",
        "¿Y ahora qué?",
        "E adesso?",
        "что дальше?",
        "続けてください",
        "继续",
    ],
)
def test_a_message_without_content_brings_no_memory(
    memory: Memory, message: str
) -> None:
    assert memory.context(message).recalled == []


@pytest.mark.parametrize(
    ("message", "words"),
    [
        ("Where is the Wi-Fi router?", "behind the larch"),
        ("ok, next: where is the key for the cabin", "behind the larch"),
        ("Di che colore è la bicicletta di Bianca?", "gialla"),
        ("猫の名前は？", "タマ"),
        ("nginx 상태는?", "서버는 nginx입니다"),
        ("nginx가 죽었어", "서버는 nginx입니다"),
    ],
)
def test_what_matters_is_quoted(memory: Memory, message: str, words: str) -> None:
    assert words in memory.context(message).system


def test_what_shares_a_single_common_word_of_a_long_message_is_left_out(
    memory: Memory,
) -> None:
    window = memory.context(
        "Could you sketch a poem about penguins, umbrellas and the cache of a squirrel?"
    )

    assert window.recalled == []


def test_a_time_is_content_enough(memory: Memory) -> None:
    assert memory.context("What happened today?").recalled
