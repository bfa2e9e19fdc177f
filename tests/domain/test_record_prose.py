"""Prose that looks like records in part: no rule may take it."""

import json
from datetime import UTC
from pathlib import Path

import pytest
from support.datasets.mixed_year import mixed_year
from support.records import prose_samples, remembered

from mnemosyned.summary.records.summarize import summarize_records

PROSE = prose_samples()


@pytest.mark.parametrize("text", PROSE)
def test_prose_is_left_alone(text: str) -> None:
    memories = remembered(text)
    summary = summarize_records(memories, zone=UTC)
    assert summary.lines == ()
    assert summary.prose == tuple(memories)


def test_prose_keeps_its_order_and_its_objects() -> None:
    memories = remembered(*PROSE[:10], '{"title": "Dentist", "start": "2026-03-10"}')
    summary = summarize_records(memories, zone=UTC)
    assert [id(memory) for memory in summary.prose] == [id(m) for m in memories[:10]]
    assert [line.position for line in summary.lines] == [10]


def test_a_year_of_notes_and_chats_is_prose() -> None:
    memories = remembered(*(record.content for record in mixed_year().records))
    assert len(summarize_records(memories, zone=UTC).prose) == len(memories)


def test_a_year_written_by_hand_is_prose() -> None:
    path = Path(__file__).parents[1] / "support" / "datasets" / "written_year.txt"
    lines = path.read_text(encoding="utf-8").splitlines()
    texts = [line for line in lines if line and line[0] not in "#=?"]
    assert len(texts) > 100
    memories = remembered(*texts)
    assert len(summarize_records(memories, zone=UTC).prose) == len(memories)


def test_of_the_week_only_runs_and_commits_are_records() -> None:
    path = Path(__file__).parents[1] / "demo" / "week.jsonl"
    entries = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    summary = summarize_records(
        remembered(*(entry["content"] for entry in entries)), zone=UTC
    )
    taken = [entries[line.position]["source"] for line in summary.lines]
    assert set(taken) == {"shell", "ci"}
    assert len(summary.prose) == len(entries) - sum(
        line.memories for line in summary.lines
    )
