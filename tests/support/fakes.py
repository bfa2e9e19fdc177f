"""Fakes of the clock and the models, and short ways to make memories."""

from __future__ import annotations

import math
import random
import re
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from mnemosyned.errors import SummarizerFailed
from mnemosyned.memory.capture import AgentSession
from mnemosyned.memory.consolidation import (
    GroupStatus,
    LogEntry,
    Pending,
    Selection,
    make_episode,
)
from mnemosyned.memory.engine_ports import Embedder, Summarizer, Summary
from mnemosyned.memory.ports import Draft, MemoryStore, Promotion
from mnemosyned.memory.values import Acknowledged, MemoryRecord

NOON = datetime(2026, 3, 17, 12, tzinfo=UTC)


class FakeClock:
    """A clock that stands still until a test moves it."""

    def __init__(self, moment: datetime = NOON) -> None:
        self.moment = moment

    def now(self) -> datetime:
        return self.moment

    def advance(self, **units: float) -> None:
        self.moment += timedelta(**units)


class FakeTime:
    """A monotonic clock that a test moves."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


def _nothing(_: Sequence[object]) -> None:
    pass


def raising(error: BaseException) -> Callable[..., Any]:
    """A function that raises an error, whatever it is given."""

    def raise_it(*_: object, **__: object) -> None:
        raise error

    return raise_it


@dataclass
class FakeSummarizer(Summarizer):
    """Writes all words of the batch on one line, so that a test can see where they went."""

    name: str = "fake"
    reason: str = "a test handed it in"
    calls: list[tuple[str, ...]] = field(default_factory=list)
    meanwhile: Callable[[Sequence[MemoryRecord]], object] = _nothing
    """Called while the model runs; it may raise."""

    def fail(self) -> None:
        """From now on, no summary comes out."""

        def refuse(_: Sequence[MemoryRecord]) -> None:
            raise SummarizerFailed("no words came")

        self.meanwhile = refuse

    def summarize(self, memories: Sequence[MemoryRecord]) -> Summary:
        self.calls.append(tuple(memory.id for memory in memories))
        self.meanwhile(memories)
        text = "In short: " + " / ".join(memory.content for memory in memories)
        return Summary(text=text, summarizer=self.name)


@dataclass
class FakeEmbedder(Embedder):
    """For it the words of each list mean the same; what else a text says points anywhere."""

    meanings: Sequence[Sequence[str]] = (
        ("car", "tesla"),
        ("dentist", "tooth"),
        ("trip", "lisbon"),
    )
    name: str = "fake"
    in_process: bool = False
    calls: list[tuple[str, ...]] = field(default_factory=list)
    """The texts of memories, in the order in which they were asked for."""
    meanwhile: Callable[[Sequence[str]], object] = _nothing
    """Called while the model embeds memories; it may raise."""
    asked: Callable[[Sequence[str]], object] = _nothing
    """Called while it embeds a question."""

    def identity(self) -> str:
        return self.name

    def embed(self, texts: Sequence[str]) -> list[bytes]:
        self.calls.append(tuple(texts))
        self.meanwhile(texts)
        return [self.vector(text) for text in texts]

    def embed_question(self, text: str) -> bytes:
        self.asked([text])
        return self.vector(text)

    def vector(self, text: str) -> bytes:
        words = set(re.findall(r"\w+", text.lower()))
        chance = random.Random(text)
        anywhere = [chance.gauss(0, 1) / 8 for _ in range(64)]
        numbers = [
            *anywhere,
            *(2.0 * bool(words & set(same)) for same in self.meanings),
        ]
        length = math.hypot(*numbers)
        return struct.pack(
            f"<{len(numbers)}e", *(number / length for number in numbers)
        )

    def close(self) -> None:
        pass


def agent_session(
    session: str,
    project: str,
    at: datetime = NOON,
    **fields: Any,  # noqa: ANN401
) -> AgentSession:
    """A session of Codex or of the client that its name begins with."""
    client, _, conversation = session.rpartition(":")
    given: dict[str, Any] = {"project": project, "seen_at": at, **fields}
    return AgentSession(
        session=session,
        client=client or "codex",
        conversation=conversation,
        started_at=at,
        **given,
    )


def memory(
    id: str,
    content: str = "",
    *,
    hours_ago: float = 0,
    **changes: Any,  # noqa: ANN401
) -> MemoryRecord:
    """A memory of the working tier, an hour or so before noon."""
    plain = MemoryRecord(
        id=id,
        content=content or f"note {id}",
        created_at=NOON - timedelta(hours=hours_ago),
    )
    return replace(plain, **changes)


def said_in_turn(
    *said: str | Sequence[str],
    since: datetime = NOON,
    step: timedelta = timedelta(minutes=1),
    **changes: Any,  # noqa: ANN401
) -> list[MemoryRecord]:
    """Memories with the ids 0, 1, …, one after the other; a pair is (role, content)."""
    pairs = [("", one) if isinstance(one, str) else one for one in said]
    return [
        MemoryRecord(
            id=str(at),
            content=content,
            created_at=since + at * step,
            **{"role": role, **changes},
        )
        for at, (role, content) in enumerate(pairs)
    ]


def said_by_users(*texts: str, **options: Any) -> list[MemoryRecord]:  # noqa: ANN401
    """Memories m0, m1, … of one session, as a user said them one after the other."""
    told = said_in_turn(*texts, **{"role": "user", "session": "s1", **options})
    return [replace(each, id=f"m{each.id}") for each in told]


def trio(name: str, *, hours_ago: float = 20, **where: Any) -> list[MemoryRecord]:  # noqa: ANN401
    """Three memories within three minutes: as many as make a summary."""
    return [
        memory(f"{name}{at}", hours_ago=hours_ago - at / 60, **where) for at in range(3)
    ]


def pending(id: str, *, hours: float = 0, chars: int = 10, **changes: Any) -> Pending:  # noqa: ANN401
    """A pending memory, some hours after noon."""
    plain = Pending(
        id=id,
        session="s",
        source=None,
        created_at=NOON + timedelta(hours=hours),
        chars=chars,
    )
    return replace(plain, **changes)


def remember_batch(
    store: MemoryStore, *memories: MemoryRecord, dedupe: bool = False
) -> list[Acknowledged]:
    """Remember all of these in one batch."""
    return store.memories.remember(
        [Draft(memory, dedupe=dedupe) for memory in memories]
    ).acknowledged


def promotion(
    id: str,
    *memories: MemoryRecord,
    content: str = "a summary",
    index_terms: str = "",
) -> Promotion:
    """The promotion that a cycle would write for these memories."""
    episode = make_episode(
        memories, id=id, content=content, summarizer="fake", now=NOON
    )
    entry = LogEntry(
        cycle="cycle",
        created_at=NOON,
        session=episode.session,
        source=episode.source,
        trigger="explicit",
        status=GroupStatus.PROMOTED,
        items_consolidated=len(memories),
        episode=id,
        summarizer="fake",
        summary_preview=content,
        duration_s=0.5,
        chars_before=sum(len(memory.content) for memory in memories),
        chars_after=len(content),
    )
    return Promotion(episode, entry, index_terms=index_terms)


def consolidate(store: MemoryStore, *promotions: Promotion) -> None:
    """Promote these as one group; raises what went wrong with it."""
    (problem,) = store.sleep.consolidate([promotions])
    if problem:
        raise problem


def working_ids(store: MemoryStore) -> list[str]:
    """The unpinned memories of the working tier, oldest first."""
    return [memory.id for memory in store.sleep.pending(Selection(), limit=1_000)]


def files_containing(folder: Path, *words: str) -> list[str]:
    """The files in which one of these words can be read."""
    spellings = {
        form.encode()
        for word in words
        for form in (word, word.lower(), word.casefold())
    }
    return [
        path.name
        for path in sorted(folder.iterdir())
        if any(spelling in path.read_bytes() for spelling in spellings)
    ]
