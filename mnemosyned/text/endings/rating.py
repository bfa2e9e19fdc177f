"""Ratings of how likely a statement ends another: by words, by vectors, and by the rules for plain changes."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from itertools import chain, compress, groupby
from operator import eq
from typing import Any, NamedTuple

from mnemosyned.text import rule_files, word_cache
from mnemosyned.text.endings import plain
from mnemosyned.text.endings.clauses import list_clauses
from mnemosyned.text.endings.statements import (
    BY_PATTERN,
    CUES,
    DOUBTS,
    EXACT_KINDS,
    NAMING,
    PATTERNS,
    READ_CHARS_MAX,
    VALUE_KINDS,
    SentenceMeanings,
    Statement,
    find_languages,
    is_among,
    is_same_word,
    names_owner,
    read_statements,
)
from mnemosyned.text.endings.values import moves_thing, value_margin, wording_margin

SURE_ODDS = 4.0
"""Log odds if only a value differs in the same words; for a moved thing, the needed odds fall by this."""
CUE_COUNT, SHARE, OTHER_SHARE, VALUE_SHARE, FORMER_SHARE = 8, 11, 54, 55, 69
"""Places among the features: the number of cues of the newer statement, the share of the older one's words that
it has, that share with another value of a kind, the first one with a cue, too, and that of former values."""
PLAIN_SHARE_MIN, PLAIN_VALUE_SHARE_MIN, PLAIN_MARGIN = 0.67, 0.44, 0.7
"""Minimum shares of words that make an ending plain, and how far the needed odds then fall."""
CLAUSE_MARGIN, OLD_CLAUSE_MARGIN = 0.7, 1.3
"""How far odds fall for a part of the newer sentence, which says less of its subject, and for a clause of the
older one. With 0.7 for a clause, the examples in `tune` gain as many wrong endings as right ones."""
CLAUSES_WORDS_MIN, CLAUSE_SHARE_MIN = 4, 0.3
"""Minimum words of an older sentence that is split into clauses, and the minimum share of a clause's words that
begin like words of the newer statement; other clauses are not rated."""
UNLIKELY = "unlikely"
"""The sign of a statement that, by its vector, reports no change: it ends another one only by sure rules."""
SAME_START = 3
"""First letters that two statements have in common in at least one word; other pairs are not rated."""
UNRATED = -6.0
RATED_CACHED_MAX = 5_000
"""Maximum pairs of texts whose rating is cached."""


@dataclass(frozen=True, slots=True)
class Ending:
    """The finding that a sentence of a newer text ends a sentence of an older text."""

    reason: str
    """The surest cue: `corrected`, `gone`, `changed`, `instead`, `now`, or `value` without a cue."""
    cue: str
    """The words of the newer sentence that say so, in lower case; empty for `value`."""
    older: str
    """The sentence that is ended, or a clause of it."""
    newer: str
    """The sentence that ends it, or a part of that sentence."""
    places: tuple[int, int] = (0, 0)
    """The numbers of the two sentences in their texts, from 0, as `sentence_at` counts them."""
    span: tuple[int, int] = (0, 0)
    """Start and end of the clause in its sentence; (0, 0) if the whole sentence is ended."""


def find_ending(
    older: str, newer: str, meanings: SentenceMeanings | None = None
) -> Ending | None:
    """Return the likeliest ending of a statement in `older` by one in `newer`; None if none is likely.

    Both texts may have several sentences. Without `meanings`, words alone decide.
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
    """Return the statements and clauses of a text that may end an older statement; mostly empty."""
    if meanings:
        sentences = read_statements(text)
        statements = [
            each
            for each in (
                *sentences,
                *chain.from_iterable(map(plain.read_clauses, sentences)),
            )
            if each.cues
            or not each.signs.isdisjoint(("new", "naming"))
            or plain.may_end_plainly(each)
            or any(word.kind in EXACT_KINDS for word in each.words)
            or each.words[-1].kind == "name"
        ]
        texts = [each.text for each in statements]
        rated = meanings.rate_changes(texts) if texts else ()
        # "Jonas left, our lead is Ida": a sentence says a change if a clause does, and the reverse.
        highest: dict[int, float] = {}
        for each, odds in zip(statements, rated, strict=True):
            highest[each.place] = max(odds, highest.get(each.place, odds))
        least = _read_model()["vectors"]["change_min"]
        return [
            each if is_likely else replace(each, signs=each.signs | {UNLIKELY})
            for each in statements
            if (
                is_likely := highest[each.place] >= least
                or (BY_PATTERN in each.signs and bool(each.cues))
            )
            or not each.cues.keys().isdisjoint(("now", "instead"))
            or plain.may_end_plainly(each)
        ]
    low = text[:READ_CHARS_MAX].lower()
    if not any(rules.find("hint", low) for rules in find_languages(low)):
        return []
    return [each for each in read_statements(text) if each.cues]


def rate_endings(
    older: str, new: Statement, meanings: SentenceMeanings | None = None
) -> tuple[float, Ending] | None:
    """Return the log odds that `new` ends a statement of an older text, and the likeliest ending.

    Odds above 0 are high enough to store the ending. Vectors are compared only for pairs that their
    words do not rule out; the result is None if they rule out all.
    """
    pairs: list[RatedPair] = []
    starts = {key[:SAME_START] for key in plain.sought_words(new)}
    for old in read_statements(older):
        if starts.isdisjoint(word.key[:SAME_START] for word in old.words):
            continue
        is_repeated = len(old.words) < CLAUSES_WORDS_MIN or new.text in old.text
        clauses = () if is_repeated else list_clauses(old.text)
        near = [
            replace(each, place=old.place)
            for each in clauses
            if CLAUSE_SHARE_MIN * len(each.words)
            <= sum(word.key[:SAME_START] in starts for word in each.words)
        ]
        found = [
            rated
            for part in (*near, old)
            if (rated := _rate_by_words(part, new, meanings))
        ]
        if sure := [rated for rated in found if not rated.features]:
            pairs, meanings = sure, None
            break
        pairs += found
    if meanings and pairs:
        least = _read_model()["vectors"]["least"]
        compared = meanings.compare(new.text, [each.old.text for each in pairs])
        for place, (cosine, likely) in enumerate(compared):
            _, old, features, margin = pairs[place]
            features += [cosine, cosine * bool(new.cues), likely]
            odds = _add_trees("vectors", features) + margin
            odds -= CLAUSE_MARGIN if plain.CLAUSE in new.signs else 0.0
            odds -= OLD_CLAUSE_MARGIN if old.span[1] else 0.0
            pairs[place] = pairs[place]._replace(odds=odds - least)
    if not pairs:
        return None
    odds, old, *_ = max(pairs, key=lambda pair: pair.odds)
    cues = dict(new.cues)
    if not cues and (change := plain.find_change(new)):
        cues = {"changed": change}
    reason = next(iter(cues), "value")
    cue = cues[reason][0] if cues else ""
    (sentence,) = (each for each in read_statements(older) if each.place == old.place)
    span = _find_ended_span(sentence, new, pairs) if odds > 0 else (0, 0)
    return odds, Ending(reason, cue, old.text, new.text, (old.place, new.place), span)


class RatedPair(NamedTuple):
    """How likely a new statement ends a sentence or clause."""

    odds: float
    old: Statement
    features: list[float]
    """Empty where words alone are sure."""
    margin: float


def _rate_by_words(
    old: Statement, new: Statement, meanings: SentenceMeanings | None
) -> RatedPair | None:
    """Return the log odds, by words, that `new` ends `old`; None if words rule it out."""
    if plain.are_on_two_subjects(old, new, by_words=not meanings):
        return None
    if plain.surely_ends(old, new, meanings):
        return RatedPair(SURE_ODDS, old, [], 0.0)
    if UNLIKELY in new.signs or _removes_alike(old, new):
        return None
    if plain.only_looks_like_end(old, new):
        return None
    model = _read_model()["words"]
    features = list_features(old, new)
    odds = _add_trees("words", features)
    margin = SURE_ODDS if moves_thing(old, new) else plain_margin(features)
    margin = max(margin, value_margin(old, new), wording_margin(old, new))
    is_possible = odds >= model["excluded"] or margin > PLAIN_MARGIN
    if (is_possible or not meanings) and new.text not in old.text:
        return RatedPair(odds - model["least"], old, features, margin)
    return None


def _find_ended_span(
    sentence: Statement, new: Statement, pairs: Sequence[RatedPair]
) -> tuple[int, int]:
    """Return start and end of the clauses of a sentence that `new` ends; (0, 0) for all of it.

    If a clause has the former value that `new` names, clauses without it have not ended. A clause of which
    `new` has all words is repeated, and has not ended, if another one has another value of a kind that `new`
    has, such as a day. If no clause is likely to be ended, it is the one with another value or, if a cue such
    as "no longer" names what ended, the one that is repeated. The clause with most words in common is often
    another.
    """
    clauses = list_clauses(sentence.text)
    likely = {
        each.old.span
        for each in pairs
        if each.odds > 0 and each.old.place == sentence.place
    }
    features = [list_features(each, new) for each in clauses]
    others = [each[OTHER_SHARE] for each in features]
    repeated = [each[SHARE] == 1 for each in features]
    names_former = not new.cues.keys() <= {"now", "corrected"}
    has_former = [each[FORMER_SHARE] == 1 for each in features]
    ended = [
        each.span in likely
        and (names_former or not is_repeated or not any(others))
        and (has_it or not any(has_former))
        for each, is_repeated, has_it in zip(clauses, repeated, has_former, strict=True)
    ]
    if not any(ended):
        likeness = map(max, others, repeated) if names_former else others
        fits = list(zip(has_former, likeness, strict=True))
        best = max(fits, default=(False, 0.0))
        ended = [any(best) and best == fit and fits.count(best) == 1 for fit in fits]
    if all(ended) or not any(ended):
        return 0, 0
    first, last = ended.index(True), len(ended) - ended[::-1].index(True) - 1
    return clauses[first].span[0], clauses[last].span[1]


def _removes_alike(old: Statement, new: Statement) -> bool:
    """Return True if `new` does or repeats what `old` says, among other things, about something to remove.

    "Rich is removed" does not end "drop rich, plain print is enough" or "plain print instead of rich".
    """
    removal = PATTERNS["removing"].search(old.text.lower())
    if "gone" not in new.cues or removal is None or "negation" in old.signs | new.signs:
        return False
    start, end = removal.span()
    words = [word for word in old.words if not start <= word.start < end]
    shared = [is_among(word.key, new) for word in words]
    is_after = [word.start >= end for word in words]
    return True in is_after and shared[is_after.index(True)] and not all(shared)


@word_cache.clear_on_forget
@lru_cache(RATED_CACHED_MAX)
def rate_words(older: str, newer: str) -> float:
    """Return the highest log odds, by words, that a sentence of `newer` ends one of `older`, or `UNRATED`."""
    rated = (
        _add_trees("words", list_features(old, new))
        for new in read_statements(newer)
        for old in read_statements(older)
    )
    return max(rated, default=UNRATED)


def list_features(old: Statement, new: Statement) -> list[float]:
    """Return the features, by words, for rating whether `new` ends `old`, in the order of the model."""
    theirs = [is_among(word.key, new) for word in old.words]
    ours = [is_among(word.key, old) for word in new.words]
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
        *_compare_former(old, new),
        "new" in new.signs,
        "new" in old.signs,
        ("naming" in old.signs) * (1 + (not new.signs.isdisjoint(NAMING))),
        names_owner(new, ours, old) or names_owner(old, theirs, new),
    )
    return [float(number) for number in numbers]


def plain_margin(features: Sequence[float]) -> float:
    """Return how far to lower the odds needed by vectors, if words say plainly that a statement ends; else 0.

    Words are plain if a cue comes with the whole former value, or with another value of the same kind and
    many words of the older statement. With the cue `now`, most words of the older statement are enough.
    """
    is_now = features[CUES.index("now")]
    is_plain = features[CUE_COUNT] and (
        features[FORMER_SHARE] == 1
        or features[VALUE_SHARE] > PLAIN_VALUE_SHARE_MIN
        or (is_now and features[SHARE] > PLAIN_SHARE_MIN)
    )
    return PLAIN_MARGIN if is_plain else 0.0


def _compare_former(old: Statement, new: Statement) -> tuple[float, float]:
    """Return the share of former values in `new` that `old` has, and the share of words of `old` that they are.

    The first share is -1 if `new` names no former value.
    """
    if not new.former:
        return -1.0, 0.0
    named = [is_among(word.key, old) for word in new.former]
    keys = {word.key for word in new.former}
    theirs = [any(is_same_word(word.key, key) for key in keys) for word in old.words]
    return sum(named) / len(named), sum(theirs) / len(theirs)


def _split_shared(
    new: Statement, are_shared: Sequence[bool], cue: re.Match[str] | None
) -> list[float]:
    """Return the shares of common words: before a cue, after it, directly before, directly after.

    A share is -1 without words there; all are -1 without a cue.
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
    """Return eight features of how the wording changed, function words included.

    First, of `old` and of `new`: the number of words that the other lacks, their share, and the number of runs
    of such words. Then how many of the two words beside a run are the same for a run of each, at best: of runs
    with values of one kind, and of all; -1 without runs. `theirs` and `ours` mark the words that both have.
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
    """Return (length, kinds, neighbors) of each run of words that are missing in `other`."""
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


def _add_trees(name: str, features: Sequence[float]) -> float:
    """Return the log odds that the trees `name` of the model give these features."""
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
    """Return the tables of the model, cached.

    A tree is a leaf, or [number of a feature, limit, tree up to the limit, tree above it].
    """
    tables = rule_files.read_tables(__file__, "model.toml")
    return {
        name: table | {"trees": json.loads(table["trees"].replace("\n", ""))}
        for name, table in tables.items()
    }
