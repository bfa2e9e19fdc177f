"""Hold the grounding check against LoCoMo's own model-written summaries of its sessions.

    python tests/bench/bench_grounding.py --data path/to/locomo10.json

Those summaries are honest work of a large model: what is refused of them, beyond the few that do
say what no turn says, is refused wrongly. What must be refused: the summary of a session of other
people, and the session's own with one value of it replaced or one invented. Rules are chosen on
conversations 1-5.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.report import Report

from mnemosyned.memory.values import MemoryRecord
from mnemosyned.summary.grounding.check import SummaryProblem, check_grounding

TUNED_ON = 5
REJECTED_MAX = 0.1
FOREIGN_REJECTED_MIN = 0.95
"""Summaries of another conversation's session are ungrounded; this many must be refused."""


FORGED_REFUSED_MIN = 0.95
INVENTED = {
    "date": ["They meet on {d} {m} 2021.", "She moved there in {m} 2019."],
    "place": ["They met in {p} later.", "He flew to {p}."],
    "number": ["It cost {n} dollars.", "She ran {n} miles."],
    "URL": ["See https://example.org/{n} for it."],
}


@dataclass(frozen=True, slots=True)
class Session:
    name: str
    turns: tuple[MemoryRecord, ...]
    summary: str


def load(path: Path) -> list[list[Session]]:
    return [list(sessions(item)) for item in json.loads(path.read_text())]


def sessions(item: dict[str, Any]) -> Iterator[Session]:
    said = item["conversation"]
    for key, summary in item["session_summary"].items():
        name = key.removesuffix("_summary")
        if said.get(name):
            told = said[f"{name}_date_time"] + " +0000"
            when = datetime.strptime(told, "%I:%M %p on %d %B, %Y %z")
            turns = tuple(piece(turn, when) for turn in said[name])
            yield Session(f"{item['sample_id']} {name}", turns, str(summary).strip())


def piece(turn: dict[str, Any], when: datetime) -> MemoryRecord:
    """A turn with its picture's caption, which the model that wrote the summaries was shown."""
    seen = f" [{turn['blip_caption']}]" if turn.get("blip_caption") else ""
    return MemoryRecord(
        id=turn["dia_id"],
        content=turn["text"] + seen,
        created_at=when,
        role=turn["speaker"],
    )


def judged(session: Session, summary: str) -> Sequence[SummaryProblem]:
    return check_grounding(
        summary,
        session.turns,
        chars_max=sum(len(turn.content) for turn in session.turns),
    )


def told(verdict: Sequence[SummaryProblem]) -> str:
    return ", ".join(f"{problem.kind} {problem.item}".strip() for problem in verdict)


def measure(
    report: Report, part: str, conversations: Sequence[Sequence[Session]]
) -> None:
    every = [session for one in conversations for session in one]
    started = time.process_time()
    verdicts = [(session, judged(session, session.summary)) for session in every]
    spent = time.process_time() - started
    refused = [(session, verdict) for session, verdict in verdicts if verdict]
    kinds = Counter(
        kind
        for _, verdict in refused
        for kind in {str(problem.kind) for problem in verdict}
    )
    report.figure(f"summaries, {part}", len(every))
    report.figure(f"ms each, {part}", 1000 * spent / len(every))
    for kind, count in kinds.most_common():
        report.figure(f"refused for {kind}, {part}", count)
    rows: list[list[object]] = [
        [session.name, told(verdict)] for session, verdict in refused
    ]
    report.table(f"Refused, {part}", ["session", "problems"], rows)
    report.bar(f"share refused, {part}", len(refused) / len(every), "<=", REJECTED_MAX)
    caught = [
        bool(judged(mine, other.summary)) for mine, other in strangers(conversations)
    ]
    share = sum(caught) / len(caught)
    report.bar(f"share refused of strangers, {part}", share, ">=", FOREIGN_REJECTED_MIN)
    tried: dict[str, list[bool]] = {}
    for kind, session, text in forged(conversations, random.Random(part)):
        tried.setdefault(kind, []).append(bool(judged(session, text)))
    for kind, outcomes in tried.items():
        share = sum(outcomes) / len(outcomes)
        name = f"share refused with an invented {kind}, {part}"
        report.bar(name, share, ">=", FORGED_REFUSED_MIN)


def forged(
    conversations: Sequence[Sequence[Session]], dice: random.Random
) -> Iterator[tuple[str, Session, str]]:
    """Accepted summaries with one thing in them that nobody said."""
    people = [
        {turn.role for session in one for turn in session.turns}
        for one in conversations
    ]
    for one, own in zip(conversations, people, strict=True):
        others = sorted(set().union(*people) - own)
        for session in one:
            if judged(session, session.summary):
                continue
            for kind, sentences in INVENTED.items():
                yield (
                    kind,
                    session,
                    f"{session.summary} {invented(dice.choice(sentences), dice)}",
                )
            named = list(
                re.finditer(rf"\b(?:{'|'.join(sorted(own))})\b", session.summary)
            )
            if named:
                at = dice.choice(named)
                text = session.summary
                name = dice.choice(others)
                yield "name", session, f"{text[: at.start()]}{name}{text[at.end() :]}"


def invented(sentence: str, dice: random.Random) -> str:
    return sentence.format(
        d=dice.randint(1, 28),
        m=dice.choice(["March", "August", "October"]),
        p=dice.choice(["Reykjavik", "Nairobi", "Quito", "Oslo"]),
        n=dice.randint(120, 9_999),
    )


def strangers(
    conversations: Sequence[Sequence[Session]],
) -> Iterator[tuple[Session, Session]]:
    """Each session with one of the next conversation, between other people."""
    for one, other in zip(
        conversations, [*conversations[1:], conversations[0]], strict=True
    ):
        yield from zip(one, other, strict=False)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--data", type=Path, required=True, help="path of locomo10.json"
    )
    conversations = load(parser.parse_args().data)
    report = Report("grounding")
    measure(report, "1-5 (tuned on)", conversations[:TUNED_ON])
    measure(report, "6-10 (held out)", conversations[TUNED_ON:])
    return report.finish()


if __name__ == "__main__":
    raise SystemExit(main())
