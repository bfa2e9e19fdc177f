"""What every summarizer promises."""

from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC

import pytest
from support.datasets.meeting import EPISODE, memories
from support.endpoints import begins, says, serving
from support.fakes import FakeClock

from mnemosyned.errors import SummarizerFailed
from mnemosyned.memory.engine_ports import Summarizer
from mnemosyned.models.endpoint import EndpointModel
from mnemosyned.models.fallback import FallbackSummarizer
from mnemosyned.models.summarizer import ModelSummarizer
from mnemosyned.summary.extract import ExtractiveSummarizer

RATIO = 1 / 3


def by_model(url: str) -> ModelSummarizer:
    model = EndpointModel(endpoint=url, time_limit_s=20)
    return ModelSummarizer(
        model=model, ratio=RATIO, find_zone=lambda: UTC, max_tokens=256
    )


def in_chain(url: str) -> FallbackSummarizer:
    model = EndpointModel(endpoint=url, time_limit_s=20)
    primary = ModelSummarizer(
        model=model, ratio=RATIO, find_zone=lambda: UTC, max_tokens=256
    )
    rules = ExtractiveSummarizer()
    return FallbackSummarizer(
        primary=primary, model=model, fallback=rules, clock=FakeClock()
    )


SUMMARIZERS: dict[str, Callable[[str], Summarizer]] = {
    "aaak": lambda _: ExtractiveSummarizer(),
    "model": by_model,
    "chain": in_chain,
}


@pytest.fixture(params=SUMMARIZERS)
def summarizer(request: pytest.FixtureRequest) -> Iterator[Summarizer]:
    """Each of them; those with a model have a server that answers with little, but truly."""
    with serving(begins) as endpoint:
        made = SUMMARIZERS[request.param](endpoint.url)
        yield made
        made.close()


def test_it_has_a_name_and_says_why_it_is_in_force(summarizer: Summarizer) -> None:
    assert summarizer.name
    assert summarizer.reason


def test_a_summary_is_signed_and_shorter(summarizer: Summarizer) -> None:
    summary = summarizer.summarize(EPISODE)

    assert 0 < len(summary.text) < sum(len(memory.content) for memory in EPISODE)
    assert summary.summarizer == summarizer.name


def test_index_terms_are_not_in_the_text(summarizer: Summarizer) -> None:
    summary = summarizer.summarize(EPISODE)
    terms = summary.index_terms.split("\n")

    assert terms[0] == "Tue 3 March 2026"
    assert len(terms) > 1
    assert [term for term in terms if term in summary.text] == []


def test_a_decision_is_found_by_its_exact_values(summarizer: Summarizer) -> None:
    summary = summarizer.summarize(EPISODE)
    found_by = f"{summary.text}\n{summary.index_terms}"

    assert all(value in found_by for value in ("Zebra", "ZC300", "Kessler", "1,890"))


def test_the_same_memories_give_the_same_summary(summarizer: Summarizer) -> None:
    assert summarizer.summarize(EPISODE) == summarizer.summarize(EPISODE)


def test_groups_come_back_each_with_its_key(summarizer: Summarizer) -> None:
    groups = {"one": EPISODE, "none": memories(""), "other": EPISODE[1:]}

    outcomes = dict(summarizer.summarize_each(groups.items(), expected=3))

    assert isinstance(outcomes["none"], SummarizerFailed)
    assert outcomes["one"] == summarizer.summarize(EPISODE)
    assert outcomes["other"] == summarizer.summarize(EPISODE[1:])


def test_a_summary_by_rule_keeps_exact_values(summarizer: Summarizer) -> None:
    summary = summarizer.rule_based().summarize(EPISODE)

    assert "1,890" in f"{summary.text}\n{summary.index_terms}"


def test_a_summary_by_the_fallback_says_why() -> None:
    with (
        serving(says("Gonzalo paid 77 percent.")) as endpoint,
        closing(in_chain(endpoint.url)) as rejecting,
    ):
        summary = rejecting.summarize(EPISODE)

    assert summary.text == ExtractiveSummarizer().summarize(EPISODE).text
    assert summary.summarizer == "aaak"
    assert "refused" in summary.fallback_reason


def test_one_short_memory_never_grows(summarizer: Summarizer) -> None:
    assert len(summarizer.summarize(memories("aka Bob")).text) <= len("aka Bob")


@pytest.mark.parametrize("contents", [(), ("",), (" \n", "\t")])
def test_nothing_to_keep_is_a_failure_to_summarize(
    summarizer: Summarizer, contents: tuple[str, ...]
) -> None:
    with pytest.raises(SummarizerFailed):
        summarizer.summarize(memories(*contents))
