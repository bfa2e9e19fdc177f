"""Figures as text, read back by the parser of the official client."""

from __future__ import annotations

import math

import pytest
from prometheus_client.parser import text_string_to_metric_families

from mnemosyned.daemon import prometheus
from mnemosyned.daemon.prometheus import (
    Family,
    Histogram,
    counter,
    counters,
    gauge,
    gauges,
    render,
)

Read = dict[str, dict[tuple[tuple[str, str], ...], float]]


def read(*families: Family) -> Read:
    """Values by the name and labels of their line."""
    values: Read = {}
    for family in text_string_to_metric_families(render(families)):
        for sample in family.samples:
            labels = tuple(sorted(sample.labels.items()))
            values.setdefault(sample.name, {})[labels] = sample.value
    return values


def test_families_have_their_type_and_help() -> None:
    text = render([gauge("a", "Help.", 1), counter("b_total", "More.", 2)])
    first, second = text_string_to_metric_families(text)

    assert (first.type, first.documentation) == ("gauge", "Help.")
    assert (second.type, second.documentation) == ("counter", "More.")


@pytest.mark.parametrize("value", ['a"b', "a\\b", "a\nb", "é", "", 'x"} 5\ny{z="'])
def test_a_label_may_be_any_text(value: str) -> None:
    assert read(gauge("a", 'Help "with"\n\\ all.', 1, label=value)) == {
        "a": {(("label", value),): 1}
    }


@pytest.mark.parametrize("value", [0, 1, -2, 0.1, 1e-9, 1e300, 2**60, True])
def test_a_value_is_read_back_as_it_was(value: float) -> None:
    assert read(gauge("a", "Help.", value)) == {"a": {(): float(value)}}


def test_each_value_of_a_label_is_a_line() -> None:
    values = {"x": 1.0, "y": 2.5}
    expected = {(("k", "x"),): 1, (("k", "y"),): 2.5}

    assert read(gauges("a", "Help.", "k", values)) == {"a": expected}
    assert read(counters("a_total", "Help.", "k", values)) == {"a_total": expected}


def test_a_histogram_counts_up_to_each_bound() -> None:
    histogram = Histogram("d", "Help.", ["verb"], bounds=(0.1, 1))
    for seconds in (0.05, 0.1, 0.5, 3):
        histogram.observe(seconds, "recall")

    values = read(histogram.family())

    verb = ("verb", "recall")
    assert values["d_bucket"] == {
        (("le", "0.1"), verb): 2,
        (("le", "1"), verb): 3,
        (("le", "+Inf"), verb): 4,
    }
    assert values["d_count"] == {(verb,): 4}
    assert math.isclose(values["d_sum"][verb,], 3.65)
    assert histogram.counts() == {("recall",): 4}


def test_label_sets_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prometheus, "LABEL_SETS_MAX", 3)
    histogram = Histogram("d", "Help.", ["verb"], bounds=(1,))
    for number in range(10):
        histogram.observe(1, str(number))
    histogram.observe(1, "0")

    assert histogram.counts() == {("0",): 2, ("1",): 1, ("2",): 1}


def test_a_family_without_samples_is_valid() -> None:
    assert read(Family("a", "gauge", "Help.", []), gauge("b", "Help.", 1)) == {
        "b": {(): 1}
    }
