"""How many questions about QMSum's meetings show a turn with their evidence among ten results.

    python tests/bench/bench_qmsum.py --data path/to/qmsum [--no-encoder] [--meetings N]

QMSum (github.com/Yale-LILY/QMSum) has transcripts of meetings, and questions with the spans of turns that
answer them. Asked are the specific questions of its validation part, within their meeting and over all
meetings, before and after a sleep, next to bare FTS5 with the Porter stemmer over the same turns.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.bench_meaning import (
    MANY,
    PLAIN,
    answers_of,
    encoder_settings,
    only,
    report_means,
)
from bench.meaning_sets import STAGES, Asked, asked_within_and_over_all, shows_answer
from bench.report import Report

from mnemosyned.verbs.memories import Remember

FIRST_MEETING = datetime(2025, 1, 6, 9, tzinfo=UTC)
TURN = timedelta(seconds=10)
ABOVE_PLAIN = 0.05
ROOMS = {
    "academic": ("Bed", "Bmr", "Bro"),
    "product": ("ES", "IS", "TS"),
    "committee": ("covid", "education"),
}
"""The beginnings of the names of meetings, by kind of meeting."""


def load_meeting(path: Path, began_at: datetime) -> tuple[list[Remember], list[Asked]]:
    """Return the turns of a meeting, and its specific questions."""
    meeting: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    name = path.stem
    turns = [
        Remember(
            id=f"{name}/{number}",
            # Noises stand in braces: {vocalsound}.
            content=re.sub(r"\{\w+\} ?", "", turn["content"]).strip() or "(noise)",
            role=turn["speaker"],
            source=name,
            session=name,
            created_at=began_at + number * TURN,
        )
        for number, turn in enumerate(meeting["meeting_transcripts"])
    ]
    kind = next(kind for kind, names in ROOMS.items() if name.startswith(names))
    questions = [
        Asked(
            kind,
            question["query"],
            frozenset(
                f"{name}/{number}"
                for start, end in question["relevant_text_span"]
                for number in range(int(start), int(end) + 1)
            ),
            name,
        )
        for question in meeting["specific_query_list"]
    ]
    return turns, questions


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder of QMSum")
    parser.add_argument("--no-encoder", action="store_true", help="by words alone")
    parser.add_argument("--meetings", type=int, help="only the first so many")
    options = parser.parse_args()
    turns: list[Remember] = []
    questions: list[Asked] = []
    files = sorted(Path(options.data, "val").glob("*.json"))[: options.meetings]
    for day, file in enumerate(files):
        began_at = FIRST_MEETING + timedelta(days=day)
        meeting_turns, meeting_questions = load_meeting(file, began_at)
        turns += meeting_turns
        questions += meeting_questions
    settings = encoder_settings(with_encoder=not options.no_encoder)
    asked = asked_within_and_over_all(questions)
    answers = answers_of(turns, asked, MANY, settings)
    report = Report("bench-qmsum")
    for scope, part in {
        "within": only(answers, lambda asked: asked.source is not None),
        "all meetings": only(answers, lambda asked: asked.source is None),
    }.items():
        title = f"any evidence among {MANY}, {scope}"
        found = report_means(report, title, part, shows_answer)
        for stage in STAGES:
            above = round(found[stage] - found[PLAIN], 6)
            report.bar(f"{title}, {stage}, above {PLAIN}", above, ">=", ABOVE_PLAIN)
        before, after = (found[stage] for stage in STAGES)
        report.bar(f"{title}, after a sleep", after, ">=", before)
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
