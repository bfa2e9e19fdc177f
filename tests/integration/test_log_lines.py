"""`mnem logs` at a terminal: lines of JSON as a person reads them."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator

import pytest
from support.cases import each_case

from mnemosyned.cli.maintenance.service import readable_line

READY = (
    '{"event": "cycle_finished", "level": "info", "trigger": "explicit", "promoted": 2,'
    ' "timestamp": "2026-11-23T01:18:35.847767Z"}'
)


@pytest.fixture(autouse=True)
def in_berlin(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def test_an_entry_has_its_local_time_its_event_and_its_values() -> None:
    assert readable_line(READY) == (
        "2026-11-23 02:18:35 cycle finished  trigger=explicit  promoted=2"
    )


def test_a_warning_is_called_one() -> None:
    line = '{"event": "slow", "level": "warning", "timestamp": "2026-07-01T10:00:00Z"}'

    assert readable_line(line) == "2026-07-01 12:00:00 warning: slow"


@each_case("line", ["", "Traceback (most recent call last):", "[1]", "{}"])
def test_another_line_stays_as_it_is(line: str) -> None:
    assert readable_line(line) == line


def test_a_damaged_time_is_shown_as_it_is() -> None:
    assert readable_line('{"event": "ready", "timestamp": "now"}') == "now ready"


@each_case(
    ("entry", "sentence"),
    [
        (
            {"event": "cycle_finished", "status": "done", "evicted": 4, "promoted": 2},
            "cycle done: 4 memories became 2 summaries",
        ),
        (
            {"event": "cycle_finished", "status": "nothing_to_do", "evicted": 0},
            "cycle: nothing is old enough",
        ),
        (
            {"event": "cycle_undone", "restored": 1},
            "cycle undone: 1 memory back in working memory",
        ),
        (
            {"event": "action_undone", "kind": "edit", "count": 2},
            "edit undone: 2 memories",
        ),
        ({"event": "forgotten", "count": 3, "complete": True}, "forgot 3 memories"),
    ],
)
def test_what_a_person_did_or_waits_for_is_a_sentence(
    entry: dict[str, object], sentence: str
) -> None:
    line = json.dumps({**entry, "level": "info", "timestamp": "now"})

    assert readable_line(line) == f"now {sentence}"
