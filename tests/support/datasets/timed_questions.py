"""Questions with a time over three sets of records, and how an answer to one is judged."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from support.datasets.mixed_year import Record
from support.datasets.written_year import written_year

PLACES = 3
_HERE = Path(__file__).parent
_EVIDENCE = re.compile(
    r"(?:(?P<source>[a-z]+) ?)?(?P<time>\d{4}-\d\d(?:-\d\d)?(?:\.\.\d{4}-\d\d-\d\d)?|last|first)?"
    r" ?(?:/(?P<pattern>.+)/)?"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TimedQuestion:
    """A question, when it is asked, and the records that answer it."""

    asked_at: datetime
    text: str
    every_place: bool
    """Whether each of the first places must show evidence, as far as there is so much."""
    evidence: frozenset[str]

    def is_answered(self, places: Sequence[Sequence[str]]) -> bool:
        """Tell whether the first places, each a list of ids, show the evidence."""
        first = places[:PLACES]
        if not self.every_place:
            return any(self.evidence.intersection(place) for place in first)
        missing = set(self.evidence)
        for place in first:
            if missing and place[0] not in self.evidence:
                return False
            missing -= set(place)
        return len(missing) < len(self.evidence)


def timed_questions(name: str, records: Sequence[Record]) -> list[TimedQuestion]:
    """Return the questions of a set over its records."""
    text = (_HERE / "timed_questions.txt").read_text("utf-8")
    section = text.partition(f"\n== {name}\n")[2].partition("\n== ")[0]
    questions: list[TimedQuestion] = []
    for line in section.splitlines():
        asked, how, evidence, question = line.split(" | ", 3)
        asked_at = datetime.fromisoformat(asked).replace(tzinfo=UTC)
        ids = _evidence(evidence, records, asked_at)
        if not ids:
            raise ValueError(f"no record of {name} answers: {line}")
        questions.append(
            TimedQuestion(
                asked_at=asked_at,
                text=question,
                every_place=how == "all",
                evidence=ids,
            )
        )
    return questions


def mixed_month() -> list[Record]:
    """Return the month of `mixed_month.txt`, oldest first."""
    records: list[Record] = []
    day = ""
    for line in (_HERE / "mixed_month.txt").read_text("utf-8").splitlines():
        if line.startswith("@ "):
            day = line[2:]
        elif not line.startswith("#"):
            head, text = line.split(" | ", 1)
            time, source, role = head.split(" ", 2)
            records.append(
                Record(
                    id=f"month-{len(records)}",
                    content=text,
                    source=source,
                    role="" if role == "-" else role,
                    created_at=datetime.fromisoformat(f"{day} {time}").replace(
                        tzinfo=UTC
                    ),
                )
            )
    return sorted(records, key=lambda record: record.created_at)


def timed_sets() -> dict[str, list[Record]]:
    """Return the sets of the repository, by name."""
    return {"year": written_year(per_day=5).records, "month": mixed_month()}


def _evidence(
    rule: str, records: Sequence[Record], asked_at: datetime
) -> frozenset[str]:
    parsed = _EVIDENCE.fullmatch(rule)
    if parsed is None:
        raise ValueError(f"evidence of no known form: {rule}")
    source, time, pattern = parsed["source"], parsed["time"] or "", parsed["pattern"]
    matching = [
        record
        for record in records
        if source in (None, record.source)
        and (not pattern or re.search(pattern, f"{record.role} {record.content}"))
    ]
    if time in ("last", "first"):
        past = [record for record in matching if record.created_at <= asked_at]
        past.sort(key=lambda record: record.created_at)
        return frozenset(
            record.id for record in (past[-1:] if time == "last" else past[:1])
        )
    first, _, before = time.partition("..")
    return frozenset(
        record.id for record in matching if _is_within(record.created_at, first, before)
    )


def _is_within(moment: datetime, first: str, before: str) -> bool:
    day = f"{moment:%Y-%m-%d}"
    if before:
        return first <= day < before
    return day.startswith(first)
