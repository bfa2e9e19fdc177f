"""LoCoMo's sessions, and how many of its answers stand in texts made of them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from typing import Any

import snowballstemmer

from mnemosyned.memory.values import MemoryRecord
from mnemosyned.text.terms import STOP_WORDS

CATEGORIES = (1, 2, 4)
WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)?")
STEMMER = snowballstemmer.stemmer("porter")

Session = Sequence[MemoryRecord]
Render = Callable[[Session], str]


@dataclass(frozen=True, slots=True)
class Conversation:
    sessions: dict[int, Session]
    questions: tuple[tuple[frozenset[str], frozenset[int]], ...]
    """Content words of the answer, and the sessions with its evidence."""


@lru_cache(maxsize=1 << 16)
def stemmed(word: str) -> str:
    return str(STEMMER.stemWord(word))


def content_words(text: str) -> frozenset[str]:
    plain = text.lower().replace("’", "'")
    words = (match[0] for match in WORD.finditer(plain))
    return frozenset(
        stemmed(bare)
        for word in words
        if word not in STOP_WORDS
        and (bare := word.removesuffix("'s")) not in STOP_WORDS
    )


def load(path: Path) -> list[Conversation]:
    return [conversation(item) for item in json.loads(path.read_text())]


def conversation(item: dict[str, Any]) -> Conversation:
    said = item["conversation"]
    sessions: dict[int, Session] = {}
    for key, turns in said.items():
        named = re.fullmatch(r"session_(\d+)", key)
        if named and turns:
            told = said[f"{key}_date_time"] + " +0000"
            when = datetime.strptime(told, "%I:%M %p on %d %B, %Y %z")
            sessions[int(named[1])] = [memory(turn, when) for turn in turns]
    return Conversation(sessions, tuple(questions(item["qa"])))


def memory(turn: dict[str, Any], when: datetime) -> MemoryRecord:
    return MemoryRecord(
        id=turn["dia_id"], content=turn["text"], role=turn["speaker"], created_at=when
    )


def questions(
    items: list[dict[str, Any]],
) -> Iterator[tuple[frozenset[str], frozenset[int]]]:
    for item in items:
        if item["category"] in CATEGORIES:
            found = (re.fullmatch(r"D(\d+):\d+", name) for name in item["evidence"])
            evidence = frozenset(int(match[1]) for match in found if match)
            answer = content_words(str(item["answer"]))
            if evidence and answer:
                yield answer, evidence


def retention(conversations: Sequence[Conversation], render: Render) -> float:
    hits = total = 0
    for one in conversations:
        words = {
            at: content_words(render(session)) for at, session in one.sessions.items()
        }
        for answer, evidence in one.questions:
            total += 1
            hits += answer <= frozenset().union(*(words.get(at, ()) for at in evidence))
    return hits / total


def characters(session: Session) -> int:
    return sum(len(one.content) for one in session)
