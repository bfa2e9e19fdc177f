"""Figures as text, read back by the parser of the official client."""

from __future__ import annotations

import math

import pytest
from prometheus_client.parser import text_string_to_metric_families
from support.cases import each_case

from mnemosyned.daemon import metrics
from mnemosyned.daemon.metrics import Histogram, Sample, render, samples_by

TEXTS = {
    "gauge": {"a": "Help.", "odd": 'Help "with"\n\\ all.'},
    "counter": {"b_total": "More."},
    "histogram": {"d": "Help."},
}
Read = dict[str, dict[tuple[tuple[str, str], ...], float]]


def read(*samples: Sample) -> Read:
    """Values by the name and labels of their line."""
    values: Read = {}
    for family in text_string_to_metric_families(render(samples, TEXTS)):
        for sample in family.samples:
            labels = tuple(sorted(sample.labels.items()))
            values.setdefault(sample.name, {})[labels] = sample.value
    return values


def test_families_have_their_type_and_help() -> None:
    text = render([Sample("a", 1), Sample("b_total", 2)], TEXTS)
    first, second, *others = text_string_to_metric_families(text)

    assert (first.type, first.documentation) == ("gauge", "Help.")
    assert (second.type, second.documentation) == ("counter", "More.")
    assert {family.name for family in others if not family.samples} == {"odd", "d"}


@each_case("value", ['a"b', "a\\b", "a\nb", "é", "", 'x"} 5\ny{z="'])
def test_a_label_may_be_any_text(value: str) -> None:
    values = read(Sample("odd", 1, {"label": value}))

    assert values == {"odd": {(("label", value),): 1}}


@each_case("value", [0, 1, -2, 0.1, 1e-9, 1e300, 2**60, True])
def test_a_value_is_read_back_as_it_was(value: float) -> None:
    assert read(Sample("a", value)) == {"a": {(): float(value)}}


def test_each_value_of_a_label_is_a_line() -> None:
    values = read(*samples_by("a", "k", {"x": 1.0, "y": 2.5}))

    assert values == {"a": {(("k", "x"),): 1, (("k", "y"),): 2.5}}


def test_a_histogram_counts_up_to_each_bound() -> None:
    histogram = Histogram("d", ["verb"], bounds=(0.1, 1))
    for seconds in (0.05, 0.1, 0.5, 3):
        histogram.observe(seconds, "recall")

    values = read(*histogram.samples())

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
    monkeypatch.setattr(metrics, "LABEL_SETS_MAX", 3)
    histogram = Histogram("d", ["verb"], bounds=(1,))
    for number in range(10):
        histogram.observe(1, str(number))
    histogram.observe(1, "0")

    assert histogram.counts() == {("0",): 2, ("1",): 1, ("2",): 1}
