"""Finds learnings that contradict a newer one, which supersedes them."""

from __future__ import annotations

import re
from bisect import insort
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator
from itertools import chain

from mnemosyned.domain.learnings.learning import Learning, LearningKind
from mnemosyned.domain.learnings.subject import (
    CHOICES,
    CHOICES_OF_A_SUBJECT,
    SUBJECT_OVERLAP_MIN,
    Meaning,
    is_same_subject,
    parse_meaning,
)

_WORD = re.compile(r"\w+")

REPEAT_SHARE_MIN = 0.75
"""Share of their words that two wordings of the same have in common, at least."""


class ActiveLearnings:
    """The active learnings of one source, indexed by what a newer one may contradict.

    A text may state hundreds of instructions, so that each is not compared with all others.
    """

    def __init__(self, learnings: Iterable[Learning], *, limit: int) -> None:
        """Index the newest learnings, up to `limit`."""
        self._limit = limit
        self._newest_last: list[Learning] = []
        self._by_key: dict[Hashable, dict[str, Learning]] = {}
        for learning in learnings:
            self.add(learning)

    def add(self, learning: Learning) -> None:
        """Add an active learning; above the limit the oldest is dropped."""
        insort(self._newest_last, learning, key=lambda known: known.created_at)
        for key in _index_keys(learning):
            self._by_key.setdefault(key, {})[learning.id] = learning
        if len(self._newest_last) > self._limit:
            self.remove(self._newest_last[0])

    def remove(self, learning: Learning) -> None:
        """Remove a learning that is no longer active."""
        self._newest_last.remove(learning)
        for key in _index_keys(learning):
            del self._by_key[key][learning.id]

    def same_wording(self, learning: Learning) -> list[Learning]:
        """Return the learnings with the same words, case and punctuation aside."""
        return list(self._under(_wording_key(learning)))

    def find_conflicts(self, learning: Learning) -> list[Learning]:
        """Return the learnings that a newer one supersedes: it contradicts or repeats them.

        The rules are cautious: two learnings that may both apply both stay.
        """
        meaning = parse_meaning(learning.text)
        conflicts = {other.id: other for other in self.same_wording(learning)}
        for other in self._candidates(learning, meaning):
            if contradict(learning, other) or repeat(learning, other):
                conflicts[other.id] = other
        return list(conflicts.values())

    def _candidates(self, learning: Learning, meaning: Meaning) -> Iterator[Learning]:
        """Yield every learning that may contradict this one, and few others."""
        for key in _conflict_keys(learning, meaning):
            yield from self._under(key)
        for negative in (True, False):
            yield from self._on_subject(meaning, negative=negative)

    def _on_subject(self, meaning: Meaning, *, negative: bool) -> Iterator[Learning]:
        """Yield learnings of one sense that share enough words of the subject."""
        by_word = [
            self._by_key.get(("subject", word, negative), {})
            for word in meaning.subject
        ]
        shared_words = Counter(chain.from_iterable(by_word))
        learnings = {id: other for ids in by_word for id, other in ids.items()}
        shared_min = SUBJECT_OVERLAP_MIN * len(meaning.subject)
        for id, count in shared_words.items():
            if count >= shared_min:
                yield learnings[id]

    def _under(self, key: Hashable) -> Iterable[Learning]:
        return self._by_key.get(key, {}).values()


def _index_keys(learning: Learning) -> Iterator[Hashable]:
    """Yield the keys under which a learning is indexed."""
    meaning = parse_meaning(learning.text)
    yield _wording_key(learning)
    if learning.kind is LearningKind.NAME:
        yield "name"
    if meaning.slot:
        yield "slot", meaning.slot
    for word in meaning.preferred:
        yield "preferred", word
    for group, choice in meaning.choices.items():
        yield "choice", group, choice, meaning.negative
    for word in meaning.subject:
        yield "subject", word, meaning.negative


def _conflict_keys(learning: Learning, meaning: Meaning) -> Iterator[Hashable]:
    """Yield the keys of learnings that may conflict, those on the same subject apart."""
    if learning.kind is LearningKind.NAME:
        yield "name"
    if meaning.slot:
        yield "slot", meaning.slot
    for word in meaning.rejected:
        yield "preferred", word
    for group, choice in meaning.choices.items():
        yield "choice", group, choice, not meaning.negative
        for other in range(len(CHOICES[group])):
            if other != choice:
                yield "choice", group, other, meaning.negative


def _wording_key(learning: Learning) -> Hashable:
    return "wording", *_WORD.findall(learning.text.casefold())


def contradict(new: Learning, old: Learning) -> bool:
    """Tell whether only one of two learnings can apply; the order does not matter."""
    if LearningKind.LESSON in (new.kind, old.kind) and new.kind is not old.kind:
        return False
    if new.kind is old.kind is LearningKind.NAME:
        return True
    ours, theirs = parse_meaning(new.text), parse_meaning(old.text)
    return (
        _negates(ours, theirs)
        or _reverses(ours, theirs)
        or _limit(ours, theirs)
        or bool(ours.slot and ours.slot == theirs.slot)
        or any(
            _differ(ours, theirs, group)
            for group in ours.choices.keys() & theirs.choices
        )
    )


def repeat(new: Learning, old: Learning) -> bool:
    """Tell whether two learnings say the same in other words or another order.

    One may have a word more than the other; a learning that says more is another one.
    """
    if LearningKind.NAME in (new.kind, old.kind):
        return False
    if LearningKind.LESSON in (new.kind, old.kind) and new.kind is not old.kind:
        return False
    ours, theirs = parse_meaning(new.text), parse_meaning(old.text)
    if ours.negative != theirs.negative or ours.choices != theirs.choices:
        return False
    if ours.preferred & theirs.rejected or not _share_most(
        ours.subject, theirs.subject
    ):
        return False
    words, other_words = ours.subject | ours.rejected, theirs.subject | theirs.rejected
    within = words <= other_words or other_words <= words
    return within and len(words & other_words) >= REPEAT_SHARE_MIN * len(
        words | other_words
    )


def _negates(ours: Meaning, theirs: Meaning) -> bool:
    """Tell whether one forbids what the other asks for."""
    if ours.negative == theirs.negative:
        return False
    return is_same_subject(ours.subject, theirs.subject)


def _reverses(ours: Meaning, theirs: Meaning) -> bool:
    """Tell whether one prefers "A over B" and the other "B over A"."""
    return bool(ours.preferred & theirs.rejected and ours.rejected & theirs.preferred)


def _limit(ours: Meaning, theirs: Meaning) -> bool:
    """Tell whether they set one limit to different numbers: "under 100 KB", "under 200 KB"."""
    if ours.negative != theirs.negative or ours.subject == theirs.subject:
        return False
    if len(ours.numbers) != 1 or len(theirs.numbers) != 1:
        return False
    same = ours.subject - ours.numbers == theirs.subject - theirs.numbers
    return same and _share_most(ours.subject, theirs.subject)


def _share_most(subject: frozenset[str], other_subject: frozenset[str]) -> bool:
    shared = len(subject & other_subject)
    longer = max(len(subject), len(other_subject))
    return shared > 0 and shared >= SUBJECT_OVERLAP_MIN * longer


def _differ(ours: Meaning, theirs: Meaning, group: int) -> bool:
    """Tell whether they choose different alternatives of a group for the same subject."""
    agree = ours.choices[group] == theirs.choices[group]
    if agree != (ours.negative != theirs.negative):
        return False
    subject = ours.subject - ours.choice_words
    other_subject = theirs.subject - theirs.choice_words
    if is_same_subject(subject, other_subject):
        return True
    return group not in CHOICES_OF_A_SUBJECT and not subject and not other_subject
