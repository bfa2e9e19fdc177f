"""The alerts and the dashboard: each names metrics that the daemon has, and says what to do."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml
from support.cases import each_case

import mnemosyned.daemon.metrics
from mnemosyned.errors import error_classes_by_code
from mnemosyned.memory.values import EmbedderState
from mnemosyned.paths import shipped
from mnemosyned.text.rule_files import read_tables
from mnemosyned.verbs.facade import VERBS

FOLDER = shipped("config") / "monitoring"
METRICS: dict[str, dict[str, str]] = read_tables(
    mnemosyned.daemon.metrics.__file__, "metrics.toml"
)
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
    parsed = yaml.safe_load((FOLDER / "alerts.yml").read_text("utf-8"))
    (group,) = parsed["groups"]
    rules: list[dict[str, Any]] = group["rules"]
    return rules


def dashboard() -> dict[str, Any]:
    board: dict[str, Any] = json.loads((FOLDER / "dashboard.json").read_text("utf-8"))
    return board


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


def test_every_alert_says_what_to_look_at() -> None:
    assert len({rule["alert"] for rule in rules()}) == len(rules())
    for rule in rules():
        assert rule["labels"]["severity"] in {"page", "ticket"}
        for text in (rule["annotations"]["summary"], rule["annotations"]["runbook"]):
            assert re.fullmatch(r"[A-Z{].*\.", text), rule["alert"]
            assert len(text.split()) >= 4


def test_the_panels_lie_next_to_each_other() -> None:
    places = [
        (panel["gridPos"]["x"], panel["gridPos"]["y"])
        for panel in dashboard()["panels"]
    ]

    assert len(set(places)) == len(places)
    assert all(
        panel["datasource"]["uid"] == "${source}" for panel in dashboard()["panels"]
    )


def test_the_pages_name_every_metric() -> None:
    page = (Path(__file__).parents[2] / "docs" / "http-api.md").read_text("utf-8")

    ours = {name for name in NAMES if name.startswith("mnemosyned_")}
    assert {name for name in ours if f"`{name}`" not in page} == set()
