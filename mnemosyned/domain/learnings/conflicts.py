"""Which learning takes the place of which: the newer one of two that contradict each other."""

from __future__ import annotations

import re
from bisect import insort
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator
from itertools import chain

from mnemosyned.domain.learnings.learning import Learning, LearningKind
from mnemosyned.domain.learnings.subject import (
    ALIKE,
    CHOICES,
    OF_SOMETHING,
    Meaning,
    alike,
    meaning,
)

_WORD = re.compile(r"\w+")


class Holding:
    """The learnings of one source that hold, found by what a newer one may contradict.

    A text may state hundreds of instructions, so that each is not compared with all others.
    """

    def __init__(self, learnings: Iterable[Learning], *, limit: int) -> None:
        """Only the newest learnings are kept, up to `limit`."""
        self._limit = limit
        self._newest_last: list[Learning] = []
        self._ids: dict[Hashable, dict[str, Learning]] = {}
        for learning in learnings:
            self.add(learning)

    def add(self, learning: Learning) -> None:
        """Take in one that holds; the oldest goes where there are too many."""
        insort(self._newest_last, learning, key=lambda one: one.created_at)
        for key in _keys(learning):
            self._ids.setdefault(key, {})[learning.id] = learning
        if len(self._newest_last) > self._limit:
            self.remove(self._newest_last[0])

    def remove(self, learning: Learning) -> None:
        """Leave one out that no longer holds."""
        self._newest_last.remove(learning)
        for key in _keys(learning):
            del self._ids[key][learning.id]

    def stating(self, learning: Learning) -> list[Learning]:
        """Those that say the same in the same words."""
        return [*self._ids.get(_said(learning), {}).values()]

    def conflicting(self, learning: Learning) -> list[Learning]:
        """Those of which only the newer can hold, as one says otherwise, or the same again.

        Decided by rule and with reserve: of two that may both hold, both do.
        """
        ours = meaning(learning.text)
        found = {other.id: other for other in self.stating(learning)}
        for other in self._candidates(learning, ours):
            if contradict(learning, other):
                found[other.id] = other
        return list(found.values())

    def _candidates(self, learning: Learning, ours: Meaning) -> Iterator[Learning]:
        """All that may contradict it, and few others."""
        if learning.kind is LearningKind.NAME:
            yield from self._having("name")
        if ours.slot:
            yield from self._having(("slot", ours.slot))
        for word in ours.refused:
            yield from self._having(("chosen", word))
        for group, choice in ours.choices.items():
            yield from self._having(("choice", group, choice, not ours.negative))
            for other in range(len(CHOICES[group])):
                if other != choice:
                    yield from self._having(("choice", group, other, ours.negative))
        opposed = [
            self._ids.get(("about", word, not ours.negative), {}) for word in ours.about
        ]
        shared = Counter(chain.from_iterable(opposed))
        having = {id: other for ids in opposed for id, other in ids.items()}
        yield from (
            having[id]
            for id, words in shared.items()
            if words >= ALIKE * len(ours.about)
        )

    def _having(self, key: Hashable) -> Iterable[Learning]:
        return self._ids.get(key, {}).values()


def _keys(learning: Learning) -> Iterator[Hashable]:
    """Under what a learning is looked for."""
    read = meaning(learning.text)
    yield _said(learning)
    if learning.kind is LearningKind.NAME:
        yield "name"
    if read.slot:
        yield "slot", read.slot
    for word in read.chosen:
        yield "chosen", word
    for group, choice in read.choices.items():
        yield "choice", group, choice, read.negative
    for word in read.about:
        yield "about", word, read.negative


def _said(learning: Learning) -> Hashable:
    return "said", *_WORD.findall(learning.text.casefold())


def contradict(new: Learning, old: Learning) -> bool:
    """Whether only one of two can hold; either way round it is the same."""
    if LearningKind.LESSON in (new.kind, old.kind) and new.kind is not old.kind:
        return False
    if new.kind is old.kind is LearningKind.NAME:
        return True
    ours, theirs = meaning(new.text), meaning(old.text)
    opposed = ours.negative != theirs.negative and alike(ours.about, theirs.about)
    turned = bool(ours.chosen & theirs.refused and ours.refused & theirs.chosen)
    return (
        opposed
        or turned
        or bool(ours.slot and ours.slot == theirs.slot)
        or any(
            _differ(ours, theirs, group)
            for group in ours.choices.keys() & theirs.choices
        )
    )


def _differ(ours: Meaning, theirs: Meaning, group: int) -> bool:
    """Whether they choose otherwise among the same few, for the same thing."""
    agree = ours.choices[group] == theirs.choices[group]
    if agree != (ours.negative != theirs.negative):
        return False
    left, right = (one.about - one.choosing for one in (ours, theirs))
    return alike(left, right) or (group not in OF_SOMETHING and not left and not right)
