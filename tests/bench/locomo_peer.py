"""The nearest peer over LoCoMo: filled with the same turns, asked before and after its sleep."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TypeAlias

from bench.corpus import TTL_HALF, Entry
from bench.locomo import FEW, MANY, Asked, Conversation, Results, Score, Search, scores
from bench.measure import say
from bench.peer import Peer, running_peer

QUERIES_AT_ONCE = 50
WORDS_SHARE = 0.8
"""How many of a turn's words a text has to show: the peer's sleep rewrites some of them."""
HOURS_OLDEST = 2 * TTL_HALF.total_seconds() / 3600 - 2
HOURS_NEWEST = TTL_HALF.total_seconds() / 3600 + 1
"""Old enough to be consolidated, and none past its TTL, at which the peer deletes it."""

Answered: TypeAlias = dict[tuple[str, int], dict[Asked, Results]]
"""By stage and number of results: what was found for each question."""


def peer_runs(conversations: Sequence[Conversation]) -> dict[str, dict[str, Score]]:
    """A database for each conversation, then one for all ten; both before and after a sleep."""
    runs = {}
    scopes = {"within": [[conversation] for conversation in conversations]}
    scopes["all ten"] = [list(conversations)]
    for scope, groups in scopes.items():
        say(f"asking the peer, {scope}")
        nights = [night(group) for group in groups]
        for stage in ("before", "after"):
            runs[f"peer {stage}, {scope}"] = scores(
                retold(nights, stage), conversations
            )
    return runs


def night(group: Sequence[Conversation]) -> Answered:
    """Fill a peer with these conversations, ask about them, let it sleep, ask again."""
    questions = [asked for conversation in group for asked in conversation.questions()]
    texts = Texts(group)
    answered: Answered = {}
    with running_peer() as peer:
        peer.batch(texts.entries)
        if peer.count() != len(texts.entries):
            raise RuntimeError(
                f"the peer holds {peer.count()} of {len(texts.entries)} turns"
            )
        answered |= ask(peer, "before", questions, texts)
        peer.age(HOURS_OLDEST, HOURS_NEWEST)
        _, _, consolidated = peer.sleep()
        if consolidated != len(texts.entries):
            raise RuntimeError(
                f"the peer consolidated {consolidated} of {len(texts.entries)}"
            )
        answered |= ask(peer, "after", questions, texts)
    return answered


def ask(peer: Peer, stage: str, questions: Sequence[Asked], texts: Texts) -> Answered:
    answered: Answered = {}
    for limit in (FEW, MANY):
        found = answered[stage, limit] = {}
        for start in range(0, len(questions), QUERIES_AT_ONCE):
            some = questions[start : start + QUERIES_AT_ONCE]
            answers = peer.recall([asked.text for asked in some], limit=limit)
            for asked, (_, shown) in zip(some, answers, strict=True):
                found[asked] = [texts.turns(text) for text in shown]
    return answered


def retold(nights: Sequence[Answered], stage: str) -> Search:
    """The answers of these nights, as a search."""

    def search(questions: Sequence[Asked], limit: int) -> list[Results]:
        found = {
            asked: r for night in nights for asked, r in night[stage, limit].items()
        }
        return [found[asked] for asked in questions]

    return search


class Texts:
    """The turns as the peer is told them, and which of them a text shows."""

    def __init__(self, group: Sequence[Conversation]) -> None:
        turns = [turn for conversation in group for turn in conversation.turns()]
        now = datetime.now(UTC)
        self.entries = [
            Entry(
                content=f"{turn.role}: {turn.content}",
                session=turn.session,
                source=turn.session,
                role=turn.role,
                created_at=now,  # the peer stamps what it is told by itself
            )
            for turn in turns
        ]
        self._words = {
            turn.id or "": words(entry.content)
            for turn, entry in zip(turns, self.entries, strict=True)
        }
        self._known: dict[str, frozenset[str]] = {}
        for turn, entry in zip(turns, self.entries, strict=True):
            same = self._known.get(entry.content, frozenset())
            self._known[entry.content] = same | {turn.id or ""}

    def turns(self, text: str) -> frozenset[str]:
        """The ids of the turn that this text is, or else of those that it has most words of."""
        if text not in self._known:
            there = words(text)
            self._known[text] = frozenset(
                id for id, said in self._words.items() if shows(there, said)
            )
        return self._known[text]


def words(text: str) -> frozenset[str]:
    return frozenset(re.findall(r"\w+", text.lower()))


def shows(there: frozenset[str], said: frozenset[str]) -> bool:
    return len(there & said) >= WORDS_SHARE * len(said)
