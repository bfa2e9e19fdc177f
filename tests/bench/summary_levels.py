"""Summaries of every level that a real memory writes of a set of texts, to be judged."""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

from bench.meaning_sets import wait_for_vectors
from bench.readability import Readability
from bench.retention import Conversation
from support.datasets.technical_talks import load_talks
from support.datasets.written_year import written_year
from support.fakes import FakeClock

from mnemosyned import Memory
from mnemosyned.memory.values import Episode
from mnemosyned.service.endings import LIST_S
from mnemosyned.verbs.memories import Remember
from mnemosyned.verbs.request import instant

LEVELS = ("episodes", "days", "weeks", "months")
WEEK = Path(__file__).parents[1] / "demo" / "week.jsonl"
LATER = timedelta(days=45)
"""How long after the last memory it sleeps: every month is over by then."""
PAGE, READINGS_MAX = 500, 1_000


def read_all(memory: Memory) -> None:
    """Find what memories end; a call reads for `LIST_S` seconds, and a sleep for a moment only."""
    for _ in range(READINGS_MAX):
        began = time.monotonic()
        memory.endings()
        if time.monotonic() - began < LIST_S:
            return
    raise TimeoutError(f"not all memories were read in {READINGS_MAX} calls")


def written_levels(
    memories: Sequence[Remember], *, with_encoder: bool = True
) -> list[list[tuple[Episode, list[str]]]]:
    """Return the summaries of each level, oldest first, with the texts they are made of."""
    moments = [instant(memory.created_at) for memory in memories if memory.created_at]
    clock = FakeClock(max(moments) + LATER)
    with (
        tempfile.TemporaryDirectory() as folder,
        Memory(
            Path(folder) / "memory.db",
            clock=clock,
            wm_max=1_000_000,
            **{"embedding.encoder": "builtin" if with_encoder else "none"},
        ) as opened,
    ):
        for begin in range(0, len(memories), PAGE):
            opened.remember_many(list(memories[begin : begin + PAGE]))
        wait_for_vectors(opened.status)  # by which endings are found, too
        read_all(opened)
        report = opened.sleep(force=True)
        ids = [id for group in report.groups for id in group.episodes]
        episodes = {id: episode for id in ids if (episode := opened.get(id).episode)}
        levels: list[list[tuple[Episode, list[str]]]] = [[] for _ in LEVELS]
        for episode in sorted(episodes.values(), key=_time):
            below = [
                episodes[id].content if episode.level else original(opened, id)
                for id in episode.summary_of
            ]
            levels[episode.level].append((episode, below))
    return levels


def original(memory: Memory, id: str) -> str:
    found = memory.get(id).memory
    return found.content if found else ""


def _time(episode: Episode) -> tuple[datetime, str]:
    return episode.covers_from, episode.id


def judged(sets: Iterable[Sequence[Remember]]) -> list[Readability]:
    """Return the readability of each level over all sets."""
    levels = [Readability() for _ in LEVELS]
    for memories in sets:
        for level, written in zip(levels, written_levels(memories), strict=True):
            for episode, below in written:
                level.add(episode.content, below)
    return levels


def demo_week() -> Iterator[list[Remember]]:
    """The week of `make demo`, nothing of it pinned."""
    rows = [json.loads(line) for line in WEEK.read_text("utf-8").splitlines()]
    yield [
        Remember(
            row["content"],
            session=row["session"],
            source=row["source"],
            role=row["role"],
            created_at=datetime.fromisoformat(row["created_at"]),
        )
        for row in rows
    ]


def hand_made_year() -> Iterator[list[Remember]]:
    """The written year, without its noise."""
    yield [
        Remember(
            record.content,
            source=record.source,
            session=record.source,
            role=record.role,
            created_at=record.created_at,
        )
        for record in written_year(per_day=0).records
    ]


def technical_talks() -> Iterator[list[Remember]]:
    """Each talk as a memory of its own."""
    for talk in load_talks():
        yield [
            Remember(
                turn.text, role=turn.role, session=talk.name, created_at=turn.said_at
            )
            for turn in talk.turns
        ]


def locomo(conversations: Sequence[Conversation]) -> Iterator[list[Remember]]:
    """Each conversation as a memory of its own, its turns a minute apart."""
    for conversation in conversations:
        yield [
            Remember(
                memory.content,
                role=memory.role,
                session=str(number),
                created_at=moved.created_at,
            )
            for number, session in conversation.sessions.items()
            for at, memory in enumerate(session)
            for moved in (
                replace(memory, created_at=memory.created_at + timedelta(minutes=at)),
            )
            if memory.content.strip()
        ]
