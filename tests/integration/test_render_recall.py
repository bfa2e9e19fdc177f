"""What people read of an answer: a summary that answers by itself is shown line by line."""

from __future__ import annotations

from datetime import UTC, datetime

import click
import pytest

from mnemosyned.cli.output.memories import SUMMARY_LINES_MAX
from mnemosyned.cli.output.show import render
from mnemosyned.memory.values import Tier
from mnemosyned.search.hits import Hit
from mnemosyned.verbs.conversation import Shortened
from mnemosyned.verbs.memories import Recalled

NOON = datetime(2026, 3, 9, 12, tzinfo=UTC)


def printed(*lines: str) -> list[str]:
    """Return the lines printed for a summary of these lines, without its head."""
    content = "\n".join(lines)
    hit = Hit(
        id="a-day",
        tier=Tier.EPISODIC,
        score=1.0,
        snippet="…the part that matches…",
        content=content,
        created_at=NOON,
        session="",
        source=None,
        summary_of=("1", "2"),
    )
    return click.unstyle(render(Recalled([hit], ""))).split("\n")[2:]


def test_a_day_is_shown_line_by_line() -> None:
    assert printed("The crane was bought.", "The build is green.") == [
        "   The crane was bought.",
        "   The build is green.",
        "   made of others: mnem expand a-day --depth 1",
    ]


def test_a_long_summary_says_how_much_is_left_out() -> None:
    lines = printed(*(f"Line {number}." for number in range(SUMMARY_LINES_MAX + 3)))

    assert lines[SUMMARY_LINES_MAX - 1] == f"   Line {SUMMARY_LINES_MAX - 1}."
    assert lines[-1] == "   3 more lines: mnem expand a-day --depth 1"


def test_a_summary_of_one_line_shows_the_part_that_matches() -> None:
    assert printed("A single line.") == ["   …the part that matches…"]


@pytest.mark.parametrize(
    ("count", "said"), [(1, "1 message remembered"), (2, "2 messages remembered")]
)
def test_one_message_is_no_messages(count: int, said: str) -> None:
    shortened = Shortened(
        changed=True,
        messages=[],
        policy="facts",
        counter="estimate",
        tokens_before=100,
        tokens_after=50,
        limit=80,
        over_budget=False,
        archived=["m"] * count,
    )

    assert render(shortened).splitlines()[0].endswith(f"; {said}")


@pytest.mark.parametrize(("count", "said"), [(1, "1 more line: "), (2, "2 more lines")])
def test_one_line_is_no_lines(count: int, said: str) -> None:
    lines = printed(*map(str, range(SUMMARY_LINES_MAX + count)))

    assert lines[-1].strip().startswith(said)
