"""Shell sessions."""

import pytest
from support.records import record_lines, record_samples, record_texts


@pytest.mark.parametrize(("content", "expected"), record_samples("shells"))
def test_a_command_is_shown_with_how_it_ended(
    content: str, expected: list[str]
) -> None:
    assert record_texts(content) == expected


def test_a_failed_command_is_worth_more() -> None:
    failed, passed = record_lines(record_samples("shells")[2][0])
    assert failed.worth > passed.worth


def test_a_long_session_is_bounded() -> None:
    texts = record_texts("\n".join(f"$ ./step-{n} --run" for n in range(100)))
    assert len(texts) == 25
    assert texts[-1] == "The session ran 76 more commands."


def test_a_listing_says_how_many_lines_it_has() -> None:
    assert record_texts("$ ls\na.txt\nb.txt\nc.txt") == [
        "The command `ls` printed: 3 lines, the last c.txt."
    ]
