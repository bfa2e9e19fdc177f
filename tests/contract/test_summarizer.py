"""What every summariser promises."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest

from mnemosyned.domain.errors import SummarizerFailed
from mnemosyned.domain.memory import Memory
from mnemosyned.domain.ports import Summarizer
from mnemosyned.summarizers.aaak import AaakSummarizer

NOON = datetime(2026, 3, 3, 12, tzinfo=UTC)
SUMMARIZERS: dict[str, Callable[[], Summarizer]] = {"aaak": AaakSummarizer}


@pytest.fixture(params=SUMMARIZERS)
def summarizer(request: pytest.FixtureRequest) -> Summarizer:
    return SUMMARIZERS[request.param]()


def memories(*contents: str) -> list[Memory]:
    return [
        Memory(id=str(at), content=text, role="user", created_at=NOON + timedelta(minutes=at))
        for at, text in enumerate(contents)
    ]


EPISODE = memories(
    "We looked at three vendors for the new badge printer this morning.",
    "Decision: we buy the Zebra ZC300 from Kessler, as soon as possible, for 1,890 euros.",
    "The other two were slower, and one of them needed a driver nobody could find.",
    "Ines will pick it up on 14 April; the invoice goes to finance@example.com.",
    "Then we talked about lunch for a while and about the weather, which was fine.",
)


def test_it_has_a_name_and_says_why_it_is_in_force(summarizer: Summarizer) -> None:
    assert summarizer.name
    assert summarizer.reason


def test_a_summary_is_shorter_than_its_sources_and_signed(summarizer: Summarizer) -> None:
    summary = summarizer.summarize(EPISODE)

    assert 0 < len(summary.text) < sum(len(memory.content) for memory in EPISODE)
    assert summary.summarizer == summarizer.name


def test_a_summary_ends_with_a_line_of_keywords(summarizer: Summarizer) -> None:
    assert summarizer.summarize(EPISODE).text.splitlines()[-1].startswith("Keywords: ")


def test_a_decision_survives_with_its_exact_values(summarizer: Summarizer) -> None:
    text = summarizer.summarize(EPISODE).text

    assert "Zebra ZC300" in text
    assert "1,890" in text


def test_the_same_memories_give_the_same_summary(summarizer: Summarizer) -> None:
    assert summarizer.summarize(EPISODE) == summarizer.summarize(EPISODE)


def test_one_short_memory_never_grows(summarizer: Summarizer) -> None:
    assert len(summarizer.summarize(memories("aka Bob")).text) <= len("aka Bob")


@pytest.mark.parametrize("contents", [(), ("",), (" \n", "\t")])
def test_nothing_to_keep_is_a_failure_to_summarise(
    summarizer: Summarizer, contents: tuple[str, ...]
) -> None:
    with pytest.raises(SummarizerFailed):
        summarizer.summarize(memories(*contents))
