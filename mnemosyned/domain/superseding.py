"""Which learning takes the place of which: the newer one of two that contradict each other."""

from __future__ import annotations

import re
from collections.abc import Iterable

from mnemosyned.domain.learnings import Learning, LearningKind
from mnemosyned.domain.meaning import OF_SOMETHING, Meaning, alike, meaning

_WORD = re.compile(r"\w+")


def superseded(new: Learning, older: Iterable[Learning]) -> list[Learning]:
    """Those that no longer hold, as a newer one says otherwise, or the same again.

    Decided by rule and with reserve: of two that may both hold, both do.
    """
    ours = meaning(new.text)
    return [old for old in older if same(new.text, old.text) or _contradicts(new, ours, old)]


def _contradicts(new: Learning, ours: Meaning, old: Learning) -> bool:
    if LearningKind.LESSON in (new.kind, old.kind) and new.kind is not old.kind:
        return False
    if new.kind is old.kind is LearningKind.NAME:
        return True
    theirs = meaning(old.text)
    opposed = ours.negative != theirs.negative and alike(ours.about, theirs.about)
    turned = bool(ours.chosen & theirs.refused and ours.refused & theirs.chosen)
    return (
        opposed
        or turned
        or bool(ours.slot and ours.slot == theirs.slot)
        or any(_differ(ours, theirs, group) for group in ours.choices.keys() & theirs.choices)
    )


def _differ(ours: Meaning, theirs: Meaning, group: int) -> bool:
    """Whether they choose otherwise among the same few, for the same thing."""
    agree = ours.choices[group] == theirs.choices[group]
    if agree != (ours.negative != theirs.negative):
        return False
    left, right = (one.about - one.choosing for one in (ours, theirs))
    return alike(left, right) or (group not in OF_SOMETHING and not left and not right)


def same(one: str, other: str) -> bool:
    """Whether two texts say the same in the same words."""
    return _WORD.findall(one.casefold()) == _WORD.findall(other.casefold())
