"""Reminders next to a prompt: earlier words that bear on it, and mostly nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from math import ceil

from mnemosyned.domain.conversation.relevance import Relevance
from mnemosyned.domain.dates.questions import parse_times
from mnemosyned.domain.instants import in_zone
from mnemosyned.domain.ports.surroundings.agents import AgentSession, AgentStore
from mnemosyned.domain.search.results import Hit, Line
from mnemosyned.domain.text.snippets import snippet
from mnemosyned.domain.text.terms import terms
from mnemosyned.domain.text.tokenizer import UNTELLING_KINDS, tokens
from mnemosyned.hooks.framing import Quote, Section, framed
from mnemosyned.service.service import MemoryService
from mnemosyned.verbs.memories import Recall
from mnemosyned.verbs.times import local_zone


@dataclass(frozen=True, slots=True, kw_only=True)
class ReminderWeights:
    """The share of a prompt's words that earlier words need to be worth an interruption."""

    share_min: float = 0.3
    """Share of the prompt's telling words."""
    words_min: int = 2
    words_max: int = 6
    """More words in common are never asked for, however long the prompt is."""
    assistant_words: int = 1
    """Further words in common where an agent said it: long answers share words by chance."""
    new_min: int = 1
    """Telling words beyond the prompt's: what only repeats the prompt tells nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReminderLimits:
    """How much a prompt is told, and how far it searches."""

    chars_max: int = 1_500
    lines: int = 4
    line_chars: int = 300
    query_chars: int = 600
    hits: int = 20
    sessions: int = 100


WEIGHTS = ReminderWeights()
LIMITS = ReminderLimits()


class Reminder:
    """Recalls beside a prompt where something is worth saying."""

    def __init__(
        self,
        *,
        service: MemoryService,
        agents: AgentStore,
        weights: ReminderWeights = WEIGHTS,
        limits: ReminderLimits = LIMITS,
    ) -> None:
        self._service = service
        self._agents = agents
        self._weights = weights
        self._limits = limits

    def text(
        self, session: AgentSession, prompt: str, *, now: datetime
    ) -> tuple[str, list[str]]:
        """Return the text and the ids it quotes; nothing where nothing bears on the prompt."""
        query = " ".join(prompt.replace("\0", " ").split())[: self._limits.query_chars]
        relevance = Relevance(query, parse_times(query, in_zone(now, local_zone())))
        if not relevance.has_content:
            return "", []
        quotes = self._quotes(session, query, relevance)
        section = Section(
            "Said before about this:",
            quotes[: self._limits.lines],
            self._limits.chars_max,
            line_chars_max=self._limits.line_chars + 2,
        )
        return framed([section], chars_max=self._limits.chars_max)

    def _quotes(
        self, session: AgentSession, query: str, relevance: Relevance
    ) -> list[Quote]:
        """Return what this project's sessions said, or else what belongs to no other project."""
        own = self._agents.sessions_of(session.project, self._limits.sessions)
        others = [other for other in own if other != session.session]
        if others:
            hits = relevance.worthwhile(self._recalled(query, others))
            if quotes := self._worth_saying(session, query, hits):
                return quotes
        hits = relevance.worthwhile(self._recalled(query, None))
        projects = self._agents.projects_of([hit.session for hit in hits])
        free = [
            hit
            for hit in hits
            if projects.get(hit.session, "") in ("", session.project)
        ]
        return self._worth_saying(session, query, free)

    def _recalled(self, query: str, sessions: list[str] | None) -> list[Hit]:
        recall = Recall(query, limit=self._limits.hits, session=sessions, explain=True)
        return self._service.call(recall).hits

    def _worth_saying(
        self, session: AgentSession, query: str, hits: Iterable[Hit]
    ) -> list[Quote]:
        asked = terms(query)
        test = _Test(query, self._weights)
        shown = set(session.shown)
        quotes: list[Quote] = []
        for hit, line in _lines(hits):
            is_new = line.id not in shown and hit.session != session.session
            if is_new and test.passes(line.content, line.role):
                shown.add(line.id)
                quotes.append(
                    Quote(
                        id=line.id,
                        text=snippet(
                            line.content, asked, width=self._limits.line_chars
                        ),
                        said=line.created_at,
                        source=hit.source or "",
                        speaker=line.role,
                    )
                )
        return quotes


class _Test:
    """Whether words bear on a prompt: enough of its telling words, and something new."""

    def __init__(self, prompt: str, weights: ReminderWeights) -> None:
        self._stems = _telling(prompt)
        count = len(self._stems)
        share = ceil(count * weights.share_min)
        least = max(min(count, weights.words_min), share)
        self._least = min(least, weights.words_max)
        self._weights = weights

    def passes(self, text: str, role: str) -> bool:
        if text.rstrip().endswith(("?", "？")):
            return False
        stems = _telling(text)
        extra = self._weights.assistant_words if role == "assistant" else 0
        is_about = len(stems & self._stems) >= self._least + extra
        return is_about and len(stems - self._stems) >= self._weights.new_min


def _telling(text: str) -> frozenset[str]:
    return frozenset(
        token.stem for token in tokens(text) if token.kind not in UNTELLING_KINDS
    )


def _lines(hits: Iterable[Hit]) -> Iterator[tuple[Hit, Hit | Line]]:
    for hit in hits:
        lines: Sequence[Hit | Line] = hit.lines or (hit,)
        for line in lines:
            yield hit, line
