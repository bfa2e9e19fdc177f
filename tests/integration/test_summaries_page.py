"""The page of summaries shows what the product writes of the demo's week, word for word."""

import re
from pathlib import Path

import pytest
from bench.readability import Readability, is_bare_list, is_dangling, is_whole
from bench.summary_levels import LEVELS, demo_week, written_levels

PAGE = Path(__file__).parents[2] / "docs" / "summaries.md"
BLOCK = re.compile(r"```text\n(.+?)\n```", re.DOTALL)


@pytest.fixture(scope="module")
def page() -> dict[str, list[str]]:
    """The shown summaries, by the heading above them."""
    parts = PAGE.read_text("utf-8").split("\n## ")[1:]
    return {part.split("\n")[0]: BLOCK.findall(part) for part in parts}


def test_every_summary_on_the_page_is_one_of_the_demo(
    page: dict[str, list[str]],
) -> None:
    levels = [
        {episode.content for episode, _ in level}
        for level in written_levels(next(demo_week()))
    ]

    assert [len(page[name]) for name in ("Episodes", "A day", "A week")] == [5, 1, 1]
    assert set(page["Episodes"]) <= levels[0]
    assert set(page["A day"]) <= levels[1]
    assert set(page["A week"]) <= levels[2]


def test_the_summaries_of_the_demo_can_be_read() -> None:
    levels = written_levels(next(demo_week()))

    for name, level in zip(LEVELS, levels, strict=True):
        readable = Readability()
        for episode, below in level:
            readable.add(episode.content, below)
        figures = readable.figures()
        assert figures["whole"] >= 0.95, name
        assert figures["dangling"] <= 0.03, name
        assert figures["bare_lists"] == 0, name
        assert figures["shrunk"] == 1, name


@pytest.mark.parametrize(
    ("line", "faults"),
    [
        ("We round VAT on every line.", ""),
        ("the export worker leaks a connection for every", "torn"),
        ("She bought the crane for 39.90 EUR.", "dangling"),
        ("This week the pool was closed.", ""),
        ("160 EUR, 142 EUR, 9 minutes, 27 April, Bella", "torn bare"),
        ("We bought flour, water and salt for the bread.", ""),
        ("Decision: the archive moves to Malmö…", "torn"),
    ],
)
def test_the_rules_of_readability_tell_good_lines_from_bad(
    line: str, faults: str
) -> None:
    wrong = {
        "torn": not is_whole(line, ""),
        "dangling": is_dangling(line),
        "bare": is_bare_list(line),
    }

    assert " ".join(name for name, is_so in wrong.items() if is_so) == faults


def test_a_summary_that_hardly_shrinks_and_one_that_repeats_are_counted() -> None:
    source = "The export worker leaks a connection for every pier. " * 14
    readable = Readability()
    readable.add(source.strip(), [source])

    figures = readable.figures()
    assert figures["shrunk"] == 0
    assert figures["repeated"] > 0.9
