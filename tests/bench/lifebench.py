"""One person's year of LifeBench: its records, and questions with the ids of their evidence."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from bench.measure import Memories
from support.datasets.mixed_year import Record

from mnemosyned.verbs.memories import Remember

SOURCES = ("sms", "note", "calendar", "call", "push", "photo")
UNSAID = {"phone_id", "event_id", "type", "faceRecognition"}
BATCH = 500
CONTENT_CHARS_MAX = 60_000
ASKED_AT = datetime(2025, 12, 31, 23, tzinfo=UTC)
"""When a question is asked that does not say so."""


@dataclass(frozen=True, slots=True)
class LifeQuestion:
    """A question, when it is asked, and the records that answer it."""

    text: str
    asked_at: datetime
    kind: str
    evidence: frozenset[str]


def flattened(value: object) -> str:
    """Return all words of a JSON value that a person would read."""
    if isinstance(value, dict):
        return " ".join(flattened(value[key]) for key in value if key not in UNSAID)
    if isinstance(value, list):
        return " ".join(map(flattened, value))
    return str(value)


def life_records(folder: Path) -> list[Record]:
    """Return the records of the first person of a LifeBench folder, by time."""
    records: dict[str, Record] = {}
    for source in SOURCES:
        file = _person(folder) / "phone_data" / f"{source}.json"
        for entry in json.loads(file.read_text("utf-8")):
            text = flattened(entry)
            record = Record(
                id=f"{source}:{entry.get('phone_id') or entry.get('id') or ''}",
                content=text,
                source=source,
                role="",
                created_at=_moment(str(entry.get("datetime", "")) or text),
            )
            records.setdefault(record.id, record)
    return sorted(records.values(), key=lambda record: record.created_at)


def life_questions(folder: Path, records: Sequence[Record]) -> list[LifeQuestion]:
    """Return the questions that have evidence among these records."""
    known = {record.id for record in records}
    file = _person(folder) / "QA" / "QA_clean.json"
    questions: list[LifeQuestion] = []
    for entry in json.loads(file.read_text("utf-8")):
        named = [item for item in entry.get("evidence") or () if isinstance(item, dict)]
        ids = {f"{item.get('type')}:{item.get('id')}" for item in named}
        if evidence := frozenset(ids & known):
            asked_at = _stated(str(entry.get("ask_time") or "")) or ASKED_AT
            questions.append(
                LifeQuestion(
                    entry["question"], asked_at, entry["question_type"], evidence
                )
            )
    return questions


def fill(memory: Memories, records: Sequence[Record]) -> None:
    """Remember all records."""
    items = [
        Remember(
            content=record.content[:CONTENT_CHARS_MAX] or "-",
            id=record.id,
            source=record.source,
            session=record.source,
            role=record.role,
            created_at=record.created_at,
        )
        for record in records
    ]
    for first in range(0, len(items), BATCH):
        memory.remember_many(items[first : first + BATCH])


def _person(folder: Path) -> Path:
    return min(path for path in folder.iterdir() if path.is_dir())


def _moment(text: str) -> datetime:
    return _stated(text) or datetime(2025, 1, 1, tzinfo=UTC)


def _stated(text: str) -> datetime | None:
    match = re.search(r"20\d\d-\d\d-\d\d(?:[ T]\d\d:\d\d(?::\d\d)?)?", text)
    return datetime.fromisoformat(match[0]).replace(tzinfo=UTC) if match else None
