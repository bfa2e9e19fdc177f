"""Selection of the statements that say most in a given room."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush

from mnemosyned.domain.summary.clauses import shortened
from mnemosyned.domain.summary.statements import Statement
from mnemosyned.domain.text.tokenizer import tokens


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectionWeights:
    """Weights of selection, chosen on conversations 1-5 of LoCoMo; retention is flat around them.

    A sentence's worth is divided by its length, or only the longest would be kept: to a power
    below one and with some characters added, or the shortest remark would beat every statement.
    """

    sentence_cost_chars: int = 16
    length_power: float = 0.55
    new_worth_min: float = 2.5
    """Worth a sentence must add: more than two ordinary words, or one exact value."""
    statements_max: int = 1_500
    shortened: float = 0.7
    """Factor of a sentence of which only the first clauses are kept."""


HEADS_MAX = 12
"""Sentences that may be shortened, as each takes time to cut."""

WEIGHTS = SelectionWeights()


class Selection:
    """Greedy selection of statements while there is room, by gain for their length.

    A statement comes with those it needs.
    """

    def __init__(
        self,
        statements: Sequence[Statement],
        worth: Mapping[str, float],
        *,
        chars_max: int,
        weights: SelectionWeights = WEIGHTS,
    ) -> None:
        self.room = chars_max
        self.kept: dict[int, Statement] = {}
        self._statements = statements
        self._weights = weights
        self._worth = dict(worth)
        """Remaining worth of each stem: 0 once it is covered."""
        self._speakers: set[int] = set()

    def fill(self, pool: Iterable[Statement]) -> None:
        """Keep the best of the pool while there is room.

        The value of a statement can only shrink while others are kept, so a heap of stale values
        is enough: the top is valued again, and is the best if it stays on top. One that another
        needs gains nothing by being kept.
        """
        heap = sorted([(-self.value(statement), statement.at) for statement in pool])
        heap = heap[: self._weights.statements_max]
        heads: dict[int, Statement | None] = {}
        while heap:
            stale, at = heappop(heap)
            if at in self.kept:
                continue
            statement = heads.get(at) or self._statements[at]
            if self.cost(statement) > self.room:
                self._push_head(statement, heap, heads)
                continue
            gain = -self.value(statement)
            if gain > stale and heap and (gain, at) > heap[0]:
                heappush(heap, (gain, at))
            elif gain < 0:
                self.keep(statement)
            else:
                break

    def _push_head(
        self,
        statement: Statement,
        heap: list[tuple[float, int]],
        heads: dict[int, Statement | None],
    ) -> None:
        """Push the beginning of a statement that is too long as a whole, once."""
        if statement.at in heads or len(heads) >= HEADS_MAX:
            return
        head = heads[statement.at] = self._head(statement)
        if head:
            heappush(heap, (-self.value(head), statement.at))

    def value(self, statement: Statement) -> float:
        """Return what a statement and those it needs add, for their length, to those kept."""
        worth, weights = self._worth, self._weights
        if statement.needs is None:
            fresh = sum(map(worth.__getitem__, statement.stems))
            chars = len(statement.text)
        else:
            chain = self._chain(statement)
            stems = dict.fromkeys([stem for part in chain for stem in part.stems])
            fresh = sum(map(worth.__getitem__, stems))
            chars = sum([len(part.text) for part in chain])
        if fresh < weights.new_worth_min:
            return 0.0
        length: float = (chars + weights.sentence_cost_chars) ** weights.length_power
        return statement.emphasis * fresh / length

    def cost(self, statement: Statement) -> int:
        """Return the characters it takes, with those it needs and the name of its speaker."""
        chars = 0
        for part in self._chain(statement):
            named = part.role and (
                part.starts_line or part.memory not in self._speakers
            )
            chars += len(part.text) + 1 + (len(part.role) + 2 if named else 0)
        return chars

    def keep(self, statement: Statement) -> None:
        """Add a statement and those it needs to the selection."""
        self.room -= self.cost(statement)
        for part in self._chain(statement):
            self.kept[part.at] = part
            self._worth.update(dict.fromkeys(part.stems, 0.0))
            self._speakers.add(part.memory)

    def _head(self, statement: Statement) -> Statement | None:
        """Return the first clauses of a statement too long to be kept whole, if they fit."""
        if statement.needs is not None:
            return None
        frame = self.cost(statement) - len(statement.text)
        text = shortened(statement.text, self.room - frame)
        if not text:
            return None
        left = {token.stem for token in tokens(text)}
        return statement._replace(
            text=text,
            stems=tuple([stem for stem in statement.stems if stem in left]),
            emphasis=statement.emphasis * self._weights.shortened,
        )

    def in_order(self) -> list[Statement]:
        """Return the statements kept, in the order of the source."""
        return [self.kept[at] for at in sorted(self.kept)]

    def _chain(self, statement: Statement) -> list[Statement]:
        """Return the statement after those it needs that are not kept yet."""
        chain = [statement]
        needs = statement.needs
        while needs is not None and needs not in self.kept:
            chain.append(self._statements[needs])
            needs = chain[-1].needs
        return chain[::-1]
