"""LoCoMo: its conversations and questions, and how much of the evidence a search found."""

from __future__ import annotations

import re
import statistics
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, TypeAlias

import msgspec

from mnemosyned.verbs.memories import Remember

CATEGORIES = {1: "several facts", 2: "time", 3: "common sense", 4: "single fact"}
TUNED_ON = 5
"""Parameters are chosen on the first conversations; the others say what they are worth."""
HALVES = ("conversations 1-5", "conversations 6-10")
EVERYTHING = "all"
FEW, MANY = 10, 20
"""How many results are asked for: twenty are another search than ten, where a pool is cut."""

Results: TypeAlias = Sequence[frozenset[str]]
"""The ids of the turns that each result shows, best first."""
Search: TypeAlias = Callable[[Sequence["Asked"], int], list[Results]]
"""Answers questions with so many results each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A question with the turns that answer it."""

    text: str
    sample: str
    category: int
    evidence: frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """Means over the questions of one kind."""

    recall_5: float
    recall_10: float
    recall_20: float
    hit_10: float
    shown: float
    """How many turns ten results put before the reader: an episode shows several."""


class Conversation(msgspec.Struct):
    """One of the ten samples, as the dataset's file has it."""

    sample_id: str
    conversation: dict[str, Any]
    qa: list[dict[str, Any]]

    def turns(self) -> Iterator[Remember]:
        """Every turn as a memory, in order."""
        numbered = (
            (int(key.removeprefix("session_")), said)
            for key, said in self.conversation.items()
            if re.fullmatch(r"session_\d+", key)
        )
        for number, said in sorted(numbered):
            session = f"session_{number}"
            began = when(self.conversation[f"{session}_date_time"])
            for second, turn in enumerate(said):
                yield Remember(
                    content=turn["text"],
                    id=f"{self.sample_id}/{turn['dia_id']}",
                    session=f"{self.sample_id}/{session}",
                    source=self.sample_id,
                    role=turn["speaker"],
                    created_at=began + timedelta(seconds=second),
                )

    def questions(self) -> Iterator[Asked]:
        """Questions of the four kinds whose evidence exists."""
        known = {turn.id for turn in self.turns()}
        for item in self.qa:
            evidence = known & turn_ids(self.sample_id, item.get("evidence") or [])
            if item["category"] in CATEGORIES and evidence:
                yield Asked(
                    text=item["question"],
                    sample=self.sample_id,
                    category=item["category"],
                    evidence=frozenset(id_ for id_ in evidence if id_),
                )


def when(said: str) -> datetime:
    """The instant of `1:56 pm on 8 May, 2023`, taken as UTC."""
    return datetime.strptime(said, "%I:%M %p on %d %B, %Y").replace(tzinfo=UTC)


def turn_ids(sample: str, evidence: Sequence[str]) -> set[str]:
    """Ids of the turns named; the dataset writes them as D8:6, but also "D8:6; D9:17", D:11:26."""
    named = re.findall(r"D:?(\d+):(\d+)", " ".join(evidence))
    return {f"{sample}/D{int(session)}:{int(turn)}" for session, turn in named}


# -------------------------------------------------------------------- scoring


@dataclass(frozen=True, slots=True)
class Answer:
    """What a question's few results show, and its many."""

    asked: Asked
    few: Results
    many: Results


def scores(search: Search, conversations: Sequence[Conversation]) -> dict[str, Score]:
    """Ask everything; the score of every kind of question, of both halves, and of all."""
    questions = [
        asked for conversation in conversations for asked in conversation.questions()
    ]
    answers = [
        Answer(*answer)
        for answer in zip(
            questions, search(questions, FEW), search(questions, MANY), strict=True
        )
    ]
    tuned = {conversation.sample_id for conversation in conversations[:TUNED_ON]}
    first, second = HALVES
    kinds = {
        EVERYTHING: answers,
        first: [answer for answer in answers if answer.asked.sample in tuned],
        second: [answer for answer in answers if answer.asked.sample not in tuned],
    }
    for number, name in CATEGORIES.items():
        kinds[name] = [answer for answer in answers if answer.asked.category == number]
    return {kind: score(chosen) for kind, chosen in kinds.items() if chosen}


def score(answers: Sequence[Answer]) -> Score:
    at_10 = [found(answer.few, answer.asked.evidence) for answer in answers]
    return Score(
        recall_5=statistics.mean(
            found(one.few[:5], one.asked.evidence) for one in answers
        ),
        recall_10=statistics.mean(at_10),
        recall_20=statistics.mean(
            found(one.many, one.asked.evidence) for one in answers
        ),
        hit_10=statistics.mean(share > 0 for share in at_10),
        shown=statistics.mean(len(frozenset().union(*one.few)) for one in answers),
    )


def found(results: Results, evidence: frozenset[str]) -> float:
    """The share of the evidence among what the results show."""
    return len(evidence & frozenset().union(*results)) / len(evidence)
