"""The briefing at the start of a session: what matters for its project, and no more."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from mnemosyned.domain.learnings.learning import Learning, LearningKind
from mnemosyned.domain.memory import MemoryRecord
from mnemosyned.domain.ports.learnings import LearningStore
from mnemosyned.domain.ports.surroundings.agents import AgentSession, AgentStore
from mnemosyned.domain.summary.extract import extract
from mnemosyned.domain.text.sentences import sentences
from mnemosyned.domain.text.tokenizer import emphasis, tokens
from mnemosyned.domain.text.words.cue_words import RULING
from mnemosyned.hooks.framing import Quote, Section, framed


@dataclass(frozen=True, slots=True, kw_only=True)
class BriefingLimits:
    """How much a session's start is told, and how far back it looks."""

    chars_max: int = 2_000
    learnings_chars: int = 700
    decisions_chars: int = 800
    summary_chars: int = 600
    learnings: int = 8
    decisions: int = 6
    learnings_read: int = 200
    sessions: int = 20
    memories: int = 200
    memory_chars: int = 2_000
    """Characters read of one memory."""
    summary_memories: int = 40
    sentence_chars: tuple[int, int] = (20, 240)
    same_share: float = 0.6
    """Words in common from which a decision repeats a newer one."""


LIMITS = BriefingLimits()

GENERAL = frozenset({LearningKind.NAME, LearningKind.PREFERENCE})
"""Learnings that apply to a person, in whatever project they were stated."""
_OPEN = re.compile(
    r"\b(?:to-?do|open question|still (?:need|open|missing|have to)|next step|remains?|not yet"
    r"|follow[- ]up|unresolved|tbd|blocked (?:by|on))\b",
    re.IGNORECASE,
)
"""Words of what is left to do, besides the cue words."""


class Briefing:
    """Puts together what matters at the start of a session."""

    def __init__(
        self,
        *,
        agents: AgentStore,
        learnings: LearningStore,
        limits: BriefingLimits = LIMITS,
    ) -> None:
        self._agents = agents
        self._learnings = learnings
        self._limits = limits

    def text(self, session: AgentSession) -> tuple[str, list[str]]:
        """Return the text and the ids it quotes; nothing where nothing is known."""
        limits = self._limits
        learnings = self._applying(session.project)
        others = [
            other
            for other in self._agents.sessions_of(session.project, limits.sessions)
            if other != session.session
        ]
        memories = self._agents.latest(others, limits.memories) if others else []
        in_learnings = {learning.memory for learning in learnings}
        decided = [each for each in memories if each.id not in in_learnings]
        sections = [
            Section(
                "Standing preferences and instructions:",
                [_of_learning(learning) for learning in learnings],
                limits.learnings_chars,
            ),
            Section(
                "Decided or still open in this project:",
                list(_decisions(decided, limits)),
                limits.decisions_chars,
            ),
            Section(
                "Last session in this project:",
                self._last_session(memories),
                limits.summary_chars,
                line_chars_max=limits.summary_chars - 100,
            ),
        ]
        return framed(sections, chars_max=limits.chars_max)

    def _applying(self, project: str) -> list[Learning]:
        """Return the learnings of this project, then those of none, then personal ones."""
        limits = self._limits
        in_force = self._learnings.find(limit=limits.learnings_read)
        projects = self._agents.projects_of(
            list({learning.session for learning in in_force})
        )
        ranked: list[tuple[int, Learning]] = []
        for learning in in_force:
            origin = projects.get(learning.session, "")
            if origin and origin == project:
                ranked.append((0, learning))
            elif not origin:
                ranked.append((1, learning))
            elif learning.kind in GENERAL:
                ranked.append((2, learning))
        ranked.sort(key=lambda each: each[0])  # newest first within each
        return [learning for _, learning in ranked][: limits.learnings]

    def _last_session(self, memories: Sequence[MemoryRecord]) -> list[Quote]:
        """Return the summary of the last session, as its episode or an extract has it."""
        if not memories:
            return []
        limits = self._limits
        newest = memories[0]
        talk = [each for each in memories if each.session == newest.session]
        talk = talk[: limits.summary_memories]
        episode = self._agents.latest_episode(newest.session)
        is_asleep = episode is not None and newest.episode == episode.id
        text = episode.content if episode and is_asleep else _extracted(talk, limits)
        quote = Quote(
            id=newest.session,
            text="; ".join(filter(None, text.splitlines())),
            said=newest.created_at,
            source=newest.source or "",
        )
        return [quote] if text else []


def _extracted(talk: Sequence[MemoryRecord], limits: BriefingLimits) -> str:
    """Return the sentences that say most of a conversation."""
    read = [
        replace(memory, content=memory.content[: limits.memory_chars])
        for memory in reversed(talk)
    ]
    size = sum(len(memory.content) for memory in read)
    ratio = min(0.9, (limits.summary_chars - 150) / max(size, 1))
    return extract(read, ratio=ratio).text


def _of_learning(learning: Learning) -> Quote:
    return Quote(
        id=learning.id,
        text=learning.text,
        said=learning.created_at,
        source=learning.source or "",
        speaker=learning.kind.value,
    )


def _decisions(
    memories: Sequence[MemoryRecord], limits: BriefingLimits
) -> Iterator[Quote]:
    """Yield the sentences that decide something or leave it open, the newest first, each once."""
    known: list[set[str]] = []
    for memory in memories:
        if memory.superseded_at or len(known) >= limits.decisions:
            continue
        for sentence in _rulings(memory.content[: limits.memory_chars], limits):
            stems = {token.stem for token in tokens(sentence)}
            if any(_is_same(stems, other, limits.same_share) for other in known):
                continue
            known.append(stems)
            yield Quote(
                id=memory.id,
                text=sentence,
                said=memory.created_at,
                source=memory.source or "",
                speaker=memory.role,
            )
            break  # one line of each memory


def _rulings(text: str, limits: BriefingLimits) -> Iterator[str]:
    shortest, longest = limits.sentence_chars
    for sentence, _ in sentences(text):
        is_statement = not sentence.rstrip().endswith(("?", ":", "？"))
        if not (is_statement and shortest <= len(sentence) <= longest):
            continue
        if _OPEN.search(sentence) or emphasis(tokens(sentence)) >= RULING:
            yield sentence


def _is_same(stems: set[str], other: set[str], share: float) -> bool:
    return len(stems & other) >= share * max(1, min(len(stems), len(other)))
