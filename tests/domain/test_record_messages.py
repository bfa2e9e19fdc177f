"""SMS, chats, calls, notifications and photos."""

from dataclasses import replace
from datetime import timedelta

import pytest
from support.records import (
    VIENNA,
    record_lines,
    record_samples,
    record_texts,
    remembered,
)

from mnemosyned.summary.records.summarize import summarize_records


@pytest.mark.parametrize(("content", "expected"), record_samples("messages"))
def test_a_message_has_its_sender_and_time(content: str, expected: list[str]) -> None:
    assert record_texts(content) == expected


def test_a_group_of_several_days_says_the_day() -> None:
    memories = remembered(*["SMS\nFrom: Anna\nText: The train is late again."] * 2)
    later = replace(memories[1], created_at=memories[1].created_at + timedelta(days=1))
    lines = summarize_records([memories[0], later], zone=VIENNA).lines
    assert [line.text for line in lines] == [
        "SMS from Anna, Tue 10 March 2026, 09:00: The train is late again.",
        "SMS from Anna, Wed 11 March 2026, 09:01: The train is late again.",
    ]


def test_a_long_message_is_cut_between_sentences() -> None:
    body = "The first sentence says where we meet. " * 12
    (line,) = record_lines(f"SMS\nFrom: Anna\nText: {body}Bring the compass.")
    assert line.text.endswith("where we meet.")
    assert len(line.text) < 300
    assert "compass" in line.index_terms


def test_a_long_chat_says_how_much_is_left_out() -> None:
    chat = "\n".join(f"[14:{n % 60:02}] Anna: message number {n}" for n in range(80))
    texts = record_texts(chat)
    assert texts[-1] == "Chat: The chat goes on for 20 more lines."
