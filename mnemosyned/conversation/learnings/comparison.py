"""Comparison of learnings with each other: subjects, contradictions, repetitions, supersession."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from bisect import insort
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from itertools import chain
from operator import attrgetter

from mnemosyned.conversation.learnings.rules import load_shared_pattern
from mnemosyned.memory.values import Learning, LearningKind
from mnemosyned.text import sentences, terms, word_cache
from mnemosyned.text.endings.rating import find_ending
from mnemosyned.text.rule_files import compile_on_use, read_tables

SUBJECT_OVERLAP_MIN = 0.6
"""Minimum share of common words at which two instructions are on one subject."""


@dataclass(frozen=True, slots=True)
class InstructionMeaning:
    """Words of an instruction or preference, sorted by their role, for comparison."""

    negative: bool
    subject: frozenset[str]
    """Words without those that only make it an instruction."""
    choices: Mapping[int, int]
    """Alternative by group of `CHOICES`, if the instruction names just one of the group."""
    choice_words: frozenset[str]
    """Words of the subject that name an alternative."""
    preferred: frozenset[str]
    """The subject of A in "A over B" or "A instead of B"."""
    rejected: frozenset[str]
    """The subject of B in "A over B" or "A instead of B"."""
    numbers: frozenset[str]
    """Words of the subject that begin with a digit."""
    slot: str
    """The attribute with a single value, such as "editor" in "my favorite editor is"."""


@word_cache.clear_on_forget
@lru_cache(maxsize=2_000)
def parse_meaning(text: str) -> InstructionMeaning:
    """Return the meaning of an instruction or preference; cached for repeated comparisons."""
    low = text.casefold().replace("’", "'")
    statement, _, alternative = _INSTEAD.sub("\n", low, count=1).partition("\n")
    subject = _parse_subject(statement)
    choices: dict[int, int] = {}
    for group, alternatives in enumerate(
        CHOICES if _ANY_CHOICE.search(statement) else ()
    ):
        named = [
            index for index, words in enumerate(alternatives) if words.search(statement)
        ]
        if len(named) == 1:
            choices[group] = named[0]
    slot = _SLOT.search(low)
    return InstructionMeaning(
        negative=bool(_NOT.search(statement)),
        subject=subject,
        choices=choices,
        choice_words=frozenset(
            word
            for group, choice in choices.items()
            for word in subject
            if CHOICES[group][choice].search(word)
        ),
        preferred=subject if alternative else frozenset(),
        rejected=_parse_subject(alternative) if alternative else frozenset(),
        numbers=frozenset(word for word in subject if word[:1].isdigit()),
        slot=slot[1] if slot else "",
    )


def is_same_subject(new: frozenset[str], old: frozenset[str]) -> bool:
    """Return True if two sets of subject words have most of their words in common."""
    shared = len(new & old)
    return shared > 0 and shared >= SUBJECT_OVERLAP_MIN * len(new | old)


def find_content_words(parsed: terms.Terms) -> frozenset[str]:
    """Return lower-case singular words without function words, and character pairs of unspaced scripts."""
    words = {word.casefold() for word in parsed.words} - terms.FUNCTION_WORDS
    return frozenset([*(_PLURAL.sub("", word) for word in words), *parsed.grams])


def remove_cues(text: str) -> str:
    """Return a text without words that mark instructions or preferences, such as "always"."""
    low = text.casefold().replace("’", "'")
    return _CUES.sub(" ", _NOT.sub(" ", _ELIDED.sub("", low)))


def _parse_subject(text: str) -> frozenset[str]:
    """Return the content words of an instruction, without words such as "always"."""
    return find_content_words(terms.parse_terms(remove_cues(text)))


_TABLES = read_tables(__file__, "conflicts.toml")
CHOICES = [
    [compile_on_use(words) for words in alternatives]
    for alternatives in _TABLES["choices"]
]
"""Groups of alternatives; only one of a group can apply at a time."""
_ANY_CHOICE = compile_on_use("|".join(chain.from_iterable(_TABLES["choices"])))
CHOICES_OF_A_SUBJECT = frozenset({6, 7, 8, 9})
"""Groups whose alternatives conflict only on one subject: a long answer does not exclude a short walk."""

_INSTEAD, _NOT, _SLOT, _CUES = (
    compile_on_use(_TABLES[name].replace("\n", ""))
    for name in ("instead", "not", "slot", "cues")
)
_ELIDED = re.compile(r"\b[cdjlmnst]'(?=\w{2})")
_PLURAL = re.compile(r"(?<=[a-zà-ÿ]{3})(?:(?<!s)s)$")


_WORD = re.compile(r"\w+")

_newest_first = partial(sorted, key=attrgetter("created_at"), reverse=True)

ENDINGS_TRIED_MAX = 30
"""Number of similar learnings, at 40 µs each, that are checked for being ended by a new learning."""
REPEAT_SHARE_MIN = 0.75
"""Minimum share of words that two wordings of the same learning have in common."""


class ActiveLearnings:
    """Index of a source's active learnings, to find conflicts with newer learnings.

    A text may state hundreds of instructions, so that each is not compared with all others.
    """

    def __init__(self, learnings: Iterable[Learning], *, limit: int) -> None:
        """Index these learnings, or the newest of them if there are more than `limit`."""
        self._limit = limit
        self._newest_last: list[Learning] = []
        self._by_key: dict[Hashable, dict[str, Learning]] = {}
        for learning in learnings:
            self.add(learning)

    def add(self, learning: Learning) -> None:
        """Add an active learning; above the limit the oldest learning is dropped."""
        insort(self._newest_last, learning, key=lambda known: known.created_at)
        for key in _list_index_keys(learning):
            self._by_key.setdefault(key, {})[learning.id] = learning
        if len(self._newest_last) > self._limit:
            self.remove(self._newest_last[0])

    def remove(self, learning: Learning) -> None:
        """Remove a learning that is no longer active."""
        self._newest_last.remove(learning)
        for key in _list_index_keys(learning):
            del self._by_key[key][learning.id]

    def find_same_wording(self, learning: Learning) -> list[Learning]:
        """Return the indexed learnings with the same words, apart from case and punctuation."""
        return list(self._by_key.get(_make_wording_key(learning), {}).values())

    def find_conflicts(self, learning: Learning) -> list[Learning]:
        """Return learnings in conflict with `learning`: the newer contradicts, repeats or ends the older."""
        meaning = parse_meaning(learning.text)
        conflicts = {other.id: other for other in self.find_same_wording(learning)}
        candidates = chain(
            *(
                self._by_key.get(key, {}).values()
                for key in _list_conflict_keys(learning, meaning)
            ),
            self._find_on_subject(meaning, negative=True),
            self._find_on_subject(meaning, negative=False),
        )
        for other in candidates:
            pair = _newest_first((learning, other))
            if is_contradiction(*pair) or is_repetition(*pair):
                conflicts[other.id] = other
        shared = Counter(
            id
            for word in meaning.subject | meaning.rejected
            for key in ("subject", "rejected")
            for negative in (True, False)
            for id, other in self._by_key.get((key, word, negative), {}).items()
            if key == "subject" or other.created_at > learning.created_at
        )
        known = {each.id: each for each in self._newest_last} if shared else {}
        for id, _ in shared.most_common(ENDINGS_TRIED_MAX):
            new, old = _newest_first((learning, known[id]))
            ending = None if id in conflicts else find_ending(old.text, new.text)
            # A clause that ended is marked, and the others still apply.
            if ending and not (ending.span[1] and old.memory and new.memory):
                conflicts[id] = known[id]
        return list(conflicts.values())

    def _find_on_subject(
        self, meaning: InstructionMeaning, *, negative: bool
    ) -> Iterator[Learning]:
        """Yield indexed learnings on the subject of `meaning`, only negative ones or only positive ones."""
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


def _list_index_keys(learning: Learning) -> Iterator[Hashable]:
    """Yield the keys under which a learning is indexed."""
    meaning = parse_meaning(learning.text)
    yield _make_wording_key(learning)
    if learning.memory:
        yield "memory", learning.memory
    if learning.kind is LearningKind.NAME:
        yield "name"
    if meaning.slot:
        yield "slot", meaning.slot
    for word in meaning.preferred:
        yield "preferred", word
    for word in meaning.rejected:
        yield "rejected", word, meaning.negative
    for group, choice in meaning.choices.items():
        yield "choice", group, choice, meaning.negative
    for word in meaning.subject:
        yield "subject", word, meaning.negative


def _list_conflict_keys(
    learning: Learning, meaning: InstructionMeaning
) -> Iterator[Hashable]:
    """Yield the index keys of learnings that may conflict with a learning for more than the same subject."""
    if learning.memory:
        yield "memory", learning.memory
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


def _make_wording_key(learning: Learning) -> Hashable:
    """Return the index key of a learning's words, equal for the same words in any case."""
    return "wording", *_WORD.findall(learning.text.casefold())


def is_contradiction(new: Learning, old: Learning) -> bool:
    """Return True if two learnings exclude each other, whichever is newer.

    Two names always do; a lesson and another kind never. Other learnings do if one negates the other on
    the same subject, or reverses its preference. They also do if both set the same attribute (`slot`), or
    differ in a number or in an alternative of `CHOICES`.
    """
    if LearningKind.LESSON in (new.kind, old.kind) and new.kind is not old.kind:
        return False
    if new.kind is old.kind is LearningKind.NAME:
        return True
    ours, theirs = parse_meaning(new.text), parse_meaning(old.text)
    is_same = is_same_subject(ours.subject, theirs.subject)
    is_negation = ours.negative != theirs.negative and is_same
    # "A over B" and "B over A".
    is_reversal = ours.preferred & theirs.rejected and ours.rejected & theirs.preferred
    return bool(
        is_negation
        or is_reversal
        or _has_other_limit(ours, theirs)
        or (ours.slot and ours.slot == theirs.slot)
        or any(
            _is_other_choice(ours, theirs, group)
            for group in ours.choices.keys() & theirs.choices
        )
    )


def is_repetition(new: Learning, old: Learning) -> bool:
    """Return True if two learnings have the same meaning and almost the same words, in any order.

    The meanings must agree in negation and `choices`, and the new learning must not prefer what the old
    one rejects. One learning must include all words of the other, and share `REPEAT_SHARE_MIN` of all words. A
    clause of a learning from the same memory is always a repetition; names never are, and lessons
    repeat only lessons.
    """
    if LearningKind.NAME in (new.kind, old.kind):
        return False
    if LearningKind.LESSON in (new.kind, old.kind) and new.kind is not old.kind:
        return False
    if (
        new.memory
        and new.memory == old.memory
        and sentences.contains_statement(new.text, old.text)
    ):
        return True
    ours, theirs = parse_meaning(new.text), parse_meaning(old.text)
    if ours.negative != theirs.negative or ours.choices != theirs.choices:
        return False
    if ours.preferred & theirs.rejected or not _has_most_words_in_common(
        ours.subject, theirs.subject
    ):
        return False
    words, other_words = ours.subject | ours.rejected, theirs.subject | theirs.rejected
    within = words <= other_words or other_words <= words
    return within and len(words & other_words) >= REPEAT_SHARE_MIN * len(
        words | other_words
    )


def _has_other_limit(ours: InstructionMeaning, theirs: InstructionMeaning) -> bool:
    """Return True if `ours` and `theirs` differ only in a number: "under 100 KB", "under 200 KB"."""
    if ours.negative != theirs.negative or ours.subject == theirs.subject:
        return False
    if len(ours.numbers) != 1 or len(theirs.numbers) != 1:
        return False
    same = ours.subject - ours.numbers == theirs.subject - theirs.numbers
    return same and _has_most_words_in_common(ours.subject, theirs.subject)


def _has_most_words_in_common(
    subject: frozenset[str], other_subject: frozenset[str]
) -> bool:
    """Return True if two sets of words share at least `SUBJECT_OVERLAP_MIN` of the larger set."""
    shared = len(subject & other_subject)
    longer = max(len(subject), len(other_subject))
    return shared > 0 and shared >= SUBJECT_OVERLAP_MIN * longer


def _is_other_choice(
    ours: InstructionMeaning, theirs: InstructionMeaning, group: int
) -> bool:
    """Return True if `ours` and `theirs`, on one subject, choose different alternatives of `CHOICES[group]`."""
    agree = ours.choices[group] == theirs.choices[group]
    if agree != (ours.negative != theirs.negative):
        return False
    subject = ours.subject - ours.choice_words
    other_subject = theirs.subject - theirs.choice_words
    if is_same_subject(subject, other_subject):
        return True
    return group not in CHOICES_OF_A_SUBJECT and not subject and not other_subject


COMPARED_MAX = 300
"""Newest learnings of a source that a new learning is compared with."""


class LearningKeeper(ABC):
    """Port that inserts the learnings of one transaction, and reads the active learnings once."""

    def __init__(self) -> None:
        self._active: dict[str | None, ActiveLearnings] = {}
        self._inserted: set[str] = set()

    @abstractmethod
    def read(self, source: str | None, *, limit: int) -> Sequence[Learning]:
        """Return up to `limit` active learnings of a source, newest first; None means without a source."""

    @abstractmethod
    def insert(self, learning: Learning, *, superseded: Sequence[str]) -> None:
        """Store a learning, and mark the learnings with ids `superseded` as superseded by it."""

    @abstractmethod
    def leave_out_others(
        self, learning: Learning, conflicts: Sequence[Learning]
    ) -> Sequence[Learning]:
        """Return the `conflicts` that may replace a learning, or that it may replace.

        Those of another project may not, nor what another member of a group says of themselves.
        """

    @property
    def inserted_count(self) -> int:
        """Number of learnings inserted in the transaction that are still active."""
        return len(self._inserted)

    def keep(
        self, learning: Learning, *, is_restored: bool = False
    ) -> tuple[Learning, list[str]]:
        """Insert a learning; return it as stored, with the ids of the learnings it supersedes.

        If an agent repeats a statement in the same words, return the existing learning. A correction
        such as "actually, use tabs" is inserted only if it conflicts with another or is restored. An older
        learning, as from an import, is stored as superseded by a newer learning that conflicts.
        """
        source = learning.source
        if source not in self._active:
            newest = reversed(self.read(source, limit=COMPARED_MAX))
            self._active[source] = ActiveLearnings(newest, limit=COMPARED_MAX)
        active = self._active[source]
        if learning.memory is None:  # stated by an agent
            same = active.find_same_wording(learning)
            for other in self.leave_out_others(learning, same):
                if other.memory is None and other.kind is learning.kind:
                    return other, []
        older: list[Learning] = []
        newer: list[Learning] = []
        conflicts = active.find_conflicts(learning)
        for other in self.leave_out_others(learning, conflicts):
            (newer if other.created_at > learning.created_at else older).append(other)
        is_correction = load_shared_pattern("correction").match(learning.text)
        if not (older or newer or is_restored) and is_correction:
            return learning, []
        if newer:
            last = max(newer, key=lambda other: other.created_at)
            learning = replace(learning, superseded_by=last.id)
        else:
            learning = replace(learning, superseded_by=None)
        superseded = [other.id for other in older]
        self.insert(learning, superseded=superseded)
        for other in older:
            active.remove(other)
            self._inserted.discard(other.id)
        if not newer:
            active.add(learning)
            self._inserted.add(learning.id)
        return learning, superseded
