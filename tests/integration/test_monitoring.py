"""Metrics as Prometheus reads them, and alerts and a dashboard that name only what there is."""

import json
import math
import re
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any, cast

import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families
from support.cases import each_case

from mnemosyned.daemon import metrics
from mnemosyned.daemon.metrics import Histogram, Sample, render, samples_by
from mnemosyned.errors import error_classes_by_code
from mnemosyned.memory.values import EmbedderState
from mnemosyned.paths import shipped
from mnemosyned.text.rule_files import read_tables
from mnemosyned.verbs.facade import VERBS

FOLDER = shipped("config") / "monitoring"
METRICS: dict[str, dict[str, str]] = read_tables(metrics.__file__, "metrics.toml")
NAMES = {name for kind in METRICS.values() for name in kind}
SUFFIXED = {
    f"{name}{suffix}"
    for name in METRICS["histogram"]
    for suffix in ("_bucket", "_sum", "_count")
}
BY_PROMETHEUS = {"up"}
METRIC = re.compile(r"\b(?:mnemosyned|process)_\w+|\bup\b")
LABEL = re.compile(r'\b(verb|code|state)=~?"([^"]*)"')
LABEL_VALUES = {
    "verb": set(VERBS),
    "code": set(error_classes_by_code()),
    "state": {state.value for state in EmbedderState},
}


def rules() -> list[dict[str, Any]]:
    (group,) = yaml.safe_load((FOLDER / "alerts.yml").read_text("utf-8"))["groups"]
    return cast("list[dict[str, Any]]", group["rules"])


def dashboard() -> dict[str, Any]:
    text = (FOLDER / "dashboard.json").read_text("utf-8")
    return cast("dict[str, Any]", json.loads(text))


def expressions() -> Iterator[tuple[str, str]]:
    """The title and the expression of each alert and of each line of the dashboard."""
    for rule in rules():
        yield rule["alert"], rule["expr"]
    for panel in dashboard()["panels"]:
        for target in panel["targets"]:
            yield panel["title"], target["expr"]


@each_case(("title", "text"), list(expressions()))
def test_an_expression_names_what_there_is(title: str, text: str) -> None:
    named = set(METRIC.findall(text))

    assert named, title
    assert named <= NAMES | SUFFIXED | BY_PROMETHEUS
    for label, values in LABEL.findall(text):
        assert set(values.split("|")) <= LABEL_VALUES[label]
    for opening, closing in ("()", "[]", "{}"):
        assert text.count(opening) == text.count(closing)
    for counter in named & METRICS["counter"].keys():
        assert re.search(rf"(rate|increase)\({counter}", text), f"{counter} only grows"


def test_words_that_wait_for_a_nightly_purge_raise_no_alert() -> None:
    (text,) = (
        text for _, text in expressions() if text.startswith("mnemosyned_oldest_purge")
    )
    count, seconds = re.findall(r"\d+", text)

    assert timedelta(seconds=int(count) * int(seconds)) > timedelta(days=1)


def test_every_alert_says_what_to_look_at() -> None:
    assert len({rule["alert"] for rule in rules()}) == len(rules())
    for rule in rules():
        assert rule["labels"]["severity"] in {"page", "ticket"}
        for text in (rule["annotations"]["summary"], rule["annotations"]["runbook"]):
            assert re.fullmatch(r"[A-Z{].*\.", text), rule["alert"]
            assert len(text.split()) >= 4


def test_the_panels_lie_next_to_each_other_and_show_the_chosen_source() -> None:
    panels = dashboard()["panels"]

    assert len(
        {(each["gridPos"]["x"], each["gridPos"]["y"]) for each in panels}
    ) == len(panels)
    assert {each["datasource"]["uid"] for each in panels} == {"${source}"}


def test_the_pages_name_every_metric() -> None:
    page = (Path(__file__).parents[2] / "docs" / "http-api.md").read_text("utf-8")

    ours = {name for name in NAMES if name.startswith("mnemosyned_")}
    assert {name for name in ours if f"`{name}`" not in page} == set()


# Figures as text, read back by the parser of the official client.


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
    assert [(sample.value, sample.labels) for sample in first.samples] == [(1, {})]
    assert (second.type, second.documentation) == ("counter", "More.")
    assert {family.name for family in others if not family.samples} == {"odd", "d"}


@each_case("label", ['a"b', "a\\b", "a\nb", "é", "", 'x"} 5\ny{z="'])
@each_case("value", [0, 1, -2, 0.1, 1e-9, 1e300, 2**60, True])
def test_a_value_and_its_label_are_read_back_as_they_were(
    label: str, value: float
) -> None:
    values = read(*samples_by("odd", "k", {label: value, "other": 2.5}))

    assert values == {"odd": {(("k", label),): float(value), (("k", "other"),): 2.5}}


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
