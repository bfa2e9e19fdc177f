"""Recognizes that a newer statement ends an older one: a new value, a dropped decision, a correction.

The signs of both are numbers, which trees fitted on pairs by several authors turn into a probability
(`tests/bench/fit_endings.py`). Vectors of the sentences add what they mean, where an encoder is up.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import compress, groupby, takewhile
from operator import eq
from typing import Any, Protocol

from mnemosyned.text.endings.statements import (
    CUES,
    DOUBTS,
    READ_CHARS_MAX,
    STANDING,
    Statement,
    find_languages,
    read_statements,
)
from mnemosyned.text.rule_files import read_tables
from mnemosyned.text.stems import irregular_forms, stem
from mnemosyned.text.word_cache import clear_on_forget

EXACT_KINDS = ("when", "number", "code")
"""Kinds of words that may be another value without a cue."""
VALUE_KINDS = (*EXACT_KINDS, "name")
SURE_ODDS = 4.0
"""Odds, as a logarithm, of another value in the same words."""
SAME_START = 3
"""Letters that a word of two statements has in common, before more is asked about them."""
UNRATED = -6.0
RATED_CACHED_MAX = 5_000
"""Pairs of texts whose rating is kept."""
PAIRS_CACHED_MAX = 20_000
"""Pairs of words of which it is kept whether they are forms of one."""


class SentenceMeanings(Protocol):
    """Evidence from the vectors of sentences."""

    def rate_changes(self, sentences: Sequence[str]) -> Sequence[float]:
        """Return, for one or more sentences, the log odds that each reports a change."""
        ...

    def compare(
        self, newer: str, olders: Sequence[str]
    ) -> Sequence[tuple[float, float]]:
        """Return the cosine of a sentence to each older one, and the log odds that it ends that one."""
        ...


@dataclass(frozen=True, slots=True)
class Ending:
    """The finding that a sentence of a newer text ends a sentence of an older text."""

    reason: str
    """The surest cue: `corrected`, `gone`, `changed`, `instead`, `now`, or `value` without a cue."""
    cue: str
    """The words of the newer sentence that say so, in lower case; empty for `value`."""
    older: str
    """The sentence that is ended."""
    newer: str
    """The sentence that ends it."""
    places: tuple[int, int] = (0, 0)
    """The numbers of the two sentences in their texts, from 0, as `sentence_at` counts them."""


def find_ending(
    older: str, newer: str, meanings: SentenceMeanings | None = None
) -> Ending | None:
    """Return how a newer text ends a statement of an older one, or None if it probably ends none.

    The texts may have several sentences. Without `meanings`, words alone decide.
    """
    found = [
        rated
        for new in find_ending_statements(newer, meanings)
        if (rated := rate_endings(older, new, meanings))
    ]
    best = max(found, key=lambda rated: rated[0], default=None)
    return best[1] if best and best[0] > 0 else None


def find_ending_statements(
    text: str, meanings: SentenceMeanings | None = None
) -> list[Statement]:
    """Return the statements of a text that may end an older one; none for most texts."""
    if meanings:
        statements = [
            each
            for each in read_statements(text)
            if each.cues or any(word.kind in EXACT_KINDS for word in each.words)
        ]
        rated = statements and meanings.rate_changes([each.text for each in statements])
        least = _read_model()["vectors"]["change_min"]
        return [
            each for each, odds in zip(statements, rated, strict=True) if odds >= least
        ]
    low = text[:READ_CHARS_MAX].lower()
    if not any(rules.find("hint", low) for rules in find_languages(low)):
        return []
    return [each for each in read_statements(text) if each.cues]


def rate_endings(
    older: str, new: Statement, meanings: SentenceMeanings | None = None
) -> tuple[float, Ending] | None:
    """Return the likeliest ending of a statement of an older text, behind the logarithm of its odds.

    It is above 0 if it is likely enough to be stored. Vectors are asked only about pairs that their
    words do not rule out; the result is None if all are.
    """
    model = _read_model()
    pairs: list[tuple[float, Statement, list[float]]] = []
    starts = {word.key[:SAME_START] for word in new.words}
    for old in read_statements(older):
        if starts.isdisjoint(word.key[:SAME_START] for word in old.words):
            continue
        if _are_on_two_subjects(old, new, by_words=not meanings):
            continue
        if _replaces_value(old, new):
            pairs, meanings = [(SURE_ODDS, old, [])], None
            break
        features = list_features(old, new)
        odds = _add_trees("words", features)
        is_possible = not meanings or odds >= model["words"]["excluded"]
        if is_possible and old.text != new.text:
            pairs.append((odds - model["words"]["least"], old, features))
    if meanings and pairs:
        compared = meanings.compare(new.text, [old.text for _, old, _ in pairs])
        for place, (cosine, likely) in enumerate(compared):
            _, old, features = pairs[place]
            features += [cosine, cosine * bool(new.cues), likely]
            odds = _add_trees("vectors", features) - model["vectors"]["least"]
            pairs[place] = odds, old, features
    if not pairs:
        return None
    odds, old, _ = max(pairs, key=lambda pair: pair[0])
    reason = next(iter(new.cues), "value")
    cue = new.cues[reason][0] if new.cues else ""
    return odds, Ending(reason, cue, old.text, new.text, (old.place, new.place))


@clear_on_forget
@lru_cache(RATED_CACHED_MAX)
def rate_words(older: str, newer: str) -> float:
    """Return the log odds, by words, that a sentence of `newer` ends one of `older`; `UNRATED` without any."""
    rated = (
        _add_trees("words", list_features(old, new))
        for new in read_statements(newer)
        for old in read_statements(older)
    )
    return max(rated, default=UNRATED)


def _are_on_two_subjects(old: Statement, new: Statement, *, by_words: bool) -> bool:
    """Tell whether two statements are surely on different subjects.

    So they are where a number alone differs, before a value that both have: "release 7 moves to
    Thursday", "release 8 moves to Thursday"; or where both begin with a word and another number:
    "removed server 3", "removed server 4". With `by_words`, where no vector is asked, they also are
    if they share only names and values; a capital at the beginning may be that of a name.
    """
    (first, *after), (new_first, *new_after) = old.frame[:2], new.frame[:2]
    if first.key == new_first.key and any(
        word.kind == other.kind == "number"
        and not (word.unit or other.unit)
        and word.key != other.key
        for word, other in zip(after, new_after, strict=False)
    ):
        return True
    fresh = [word for word in new.words if not _is_among(word.key, old)]
    gone = [word for word in old.words if not _is_among(word.key, new)]
    shared = [word for word in new.words if word not in fresh]
    if len(fresh) == len(gone) == 1:
        return all(
            word.kind in ("number", "code") and not word.unit
            for word in (*fresh, *gone)
        ) and any(
            word.start > fresh[0].start and word.kind in VALUE_KINDS for word in shared
        )
    return (
        by_words
        and len(gone) > 1
        and all(
            word.kind in ("name", "number", "when")
            or (word.start == 0 and new.text[0].isupper())
            for word in shared
        )
    )


def _replaces_value(old: Statement, new: Statement) -> bool:
    """Tell whether `new` repeats all words of `old` but one value, with a cue that `old` has not.

    The former value may follow: "on Friday instead of Thursday". A number needs no cue at the end or
    before its unit, behind a word without content, a month or a verb such as "costs": "the limit is
    30", "the limit is 50". Behind another word it is a thing's name or an event's amount: "closed
    ticket 41", "ran 5 km".
    """
    size = len(old.frame)
    if (
        old.cues
        or new.signs & {*DOUBTS, "negation"}
        or old.signs & {*DOUBTS, "negation"}
        or size > len(new.frame)
    ):
        return False
    pairs = zip(old.frame, new.frame[:size], strict=True)
    others = [(was, word) for was, word in pairs if was.key != word.key]
    kinds = [{was.kind, word.kind} for was, word in others]
    if new.cues:
        former = {was.key for was, _ in others}
        return former.issuperset(word.key for word in new.frame[size:]) and kinds in [
            [{kind}] for kind in VALUE_KINDS
        ]
    if size != len(new.frame) or kinds != [{"number"}]:
        return False
    was, word = others[0]
    before = new.frame[: new.frame.index(word)]
    return (
        was.unit == word.unit
        and any(each.kind == "word" for each in before)
        and (before[-1].kind in ("", "when") or before[-1].key in STANDING)
        and (bool(word.unit) or new.words[-1] == word)
    )


def list_features(old: Statement, new: Statement) -> list[float]:
    """Return the numbers by which words tell whether `new` ends `old`; the model counts them from 0."""
    theirs = [_is_among(word.key, new) for word in old.words]
    ours = [_is_among(word.key, old) for word in new.words]
    share, our_share = sum(theirs) / len(theirs), sum(ours) / len(ours)
    gone, fresh = (
        [
            word
            for word, is_shared in zip(each.words, shared, strict=True)
            if not is_shared
        ]
        for each, shared in ((old, theirs), (new, ours))
    )
    kept = {
        word.kind for word, is_kept in zip(old.words, theirs, strict=True) if is_kept
    }
    kinds, our_kinds = ({word.kind for word in words} for words in (gone, fresh))
    contrast = [kind in kinds and kind in our_kinds for kind in VALUE_KINDS]
    units, our_units = ({word.unit for word in words} - {""} for words in (gone, fresh))
    cues = [name in new.cues for name in CUES]
    doubts = [name in new.signs for name in DOUBTS]
    numbers = (
        *cues,
        *doubts,
        len(new.cues),
        "negation" in new.signs,
        "i" in new.signs,
        share,
        our_share,
        sum(theirs),
        len(gone),
        len(fresh),
        max(len(gone), len(fresh)),
        (len(gone) == len(fresh) == 1) * (1 + bool(new.cues)),
        not kept.isdisjoint(("name", "code")),
        not kept.isdisjoint(("number", "when")),
        *contrast,
        any(contrast),
        not units.isdisjoint(our_units),
        bool(units and our_units and units.isdisjoint(our_units)),
        "name" in our_kinds,
        "name" in kinds,
        ("negation" in old.signs) != ("negation" in new.signs),
        ("i" in old.signs) != ("i" in new.signs),
        theirs[0],
        ours[0],
        *_split_shared(new, ours, next(iter(new.cues.values()), None)),
        *_split_shared(new, ours, new.cues.get("instead")),
        *(share * sign for sign in (*cues, *doubts)),
        *(our_share * cue for cue in cues),
        share * any(contrast),
        share * any(contrast) * bool(new.cues),
        *_compare_frames(old, new, theirs, ours),
        len(old.words),
        bool(old.cues),
        *(name in old.signs for name in DOUBTS),
    )
    return [float(number) for number in numbers]


def _split_shared(
    new: Statement, are_shared: Sequence[bool], cue: re.Match[str] | None
) -> list[float]:
    """Return the shares of common words before and after a cue, then those of the words next to it.

    Each is -1 where there is no word.
    """
    sides: tuple[list[bool], list[bool]] = ([], [])
    for word, is_shared in zip(new.words, are_shared, strict=True):
        if cue:
            sides[word.start >= cue.end()].append(is_shared)
    before, after = sides
    shares = [sum(side) / len(side) if side else -1.0 for side in sides]
    next_to = [float(side[0]) if side else -1.0 for side in (before[::-1], after)]
    return [*shares, *next_to]


def _compare_frames(
    old: Statement, new: Statement, theirs: Sequence[bool], ours: Sequence[bool]
) -> list[float]:
    """Return how much of the wording stayed, function words too, and whether one value took another's place.

    These are, for either statement, the number of its words that the other has not, their share, and
    the number of runs of them; then how many neighbors two such runs have in common at most: of runs
    that hold values of one kind, and of any. It is -1 without runs.
    """
    lost, added = _list_runs(old, new, theirs), _list_runs(new, old, ours)
    counts: list[float] = []
    for statement, runs in ((old, lost), (new, added)):
        missing = sum(length for length, _, _ in runs)
        counts += [missing, missing / len(statement.frame), len(runs)]
    alike = [
        (bool(kinds & our_kinds & {*VALUE_KINDS}), sum(map(eq, near, our_near)))
        for _, kinds, near in lost
        for _, our_kinds, our_near in added
    ]
    best = max((count for _, count in alike), default=-1)
    return [*counts, max((count for same, count in alike if same), default=-1), best]


def _list_runs(
    statement: Statement, other: Statement, are_shared: Sequence[bool]
) -> list[tuple[int, set[str], tuple[str, str]]]:
    """Return the length, the kinds and the neighbors of each run of words that `other` has not."""
    keys = {word.key for word in other.frame}
    keys |= {word.key for word in compress(statement.words, are_shared)}
    frame = ["", *(word.key for word in statement.frame), ""]
    runs, at = [], 0
    for is_known, group in groupby(statement.frame, lambda word: word.key in keys):
        words = list(group)
        at += len(words)
        if not is_known:
            near = frame[at - len(words)], frame[at + 1]
            runs.append((len(words), {word.kind for word in words}, near))
    return runs


def _is_among(key: str, statement: Statement) -> bool:
    """Tell whether a word occurs in a statement, in any form."""
    initial = key[0]  # which forms of one word share
    return any(
        other.key[0] == initial and is_same_word(key, other.key)
        for other in statement.words
    )


@clear_on_forget
@lru_cache(PAIRS_CACHED_MAX)
def is_same_word(key: str, other: str) -> bool:
    """Tell whether two words in lower case, without accents, are forms of one word."""
    if key == other:
        return True
    if key[0] != other[0] or any(map(str.isdigit, key + other)):
        return False
    if stem(key) == stem(other):
        return True
    if other in irregular_forms(key) or key in irregular_forms(other):
        return True
    pairs = zip(key, other, strict=False)
    shared = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
    shorter, longer = sorted((len(key), len(other)))
    return (
        shorter >= 4 <= shared
        and longer - shared <= max(2, longer // 3)
        and (shared > 4 or 7 * shared >= 4 * longer)
    )


def _add_trees(name: str, features: Sequence[float]) -> float:
    """Return the logarithm of the odds by the trees `name` of the model."""
    table = _read_model()[name]
    odds: float = table["constant"]
    for node in table["trees"]:
        while isinstance(node, list):
            feature, limit, low, high = node
            node = low if features[feature] <= limit else high  # noqa: PLW2901
        odds += node
    return odds


@cache
def _read_model() -> Mapping[str, Any]:
    """Return the tables of the model, when the first sentences are rated.

    A tree is a leaf, or [number of a feature, limit, tree up to the limit, tree above it].
    """
    tables = read_tables(__file__, "model.toml")
    return {
        name: table | {"trees": json.loads(table["trees"].replace("\n", ""))}
        for name, table in tables.items()
    }
