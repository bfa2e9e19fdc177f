"""Rules for plain changes: what short statements surely end, whatever the model in `rating.py` says."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby, takewhile
from typing import Any

from mnemosyned.text.endings.statements import (
    DOUBTS,
    EXACT_KINDS,
    MONTH_WORDS,
    NEGATION,
    PATTERNS,
    VALUE_KINDS,
    SentenceMeanings,
    Statement,
    StatementWord,
    is_among,
    is_same_word,
    is_weekday,
    names_owner,
    read_statements,
)
from mnemosyned.text.rule_files import compile_on_use, read_tables
from mnemosyned.text.sentences import WORD_END, WORD_START
from mnemosyned.text.terms import fold_case

SHORT_MAX = 6
"""Maximum words of a sentence that says only where something is, or which version of it."""
STEM = 3
"""Number of first letters that forms of a word and its compounds have in common."""
HOLDER_WORDS_MAX, NAME_WORDS_MAX, SUCCESSOR_WORDS_MAX = 2, 3, 4
"""Maximum words of a name of a role's holder, of another name, and of what replaced a former value."""
A_PLACE, A_PLACE_MIN = "city, town", 0.2
"""A text, and the minimum cosine of a place's name to it: names of software and firms reach .18."""
CLAUSE, REPORT = "clause", "report"
"""Signs that a statement is a part of a sentence, or an agent's report of what it changed."""
STATES_ALIKE_MIN = 0.4
"""Minimum cosine of two words for states of one kind, such as "green" and "blue"."""
_TABLES: dict[str, Any] = read_tables(__file__, "plain.toml")
_PATTERNS: dict[str, re.Pattern[str]] = {"residing": PATTERNS["residing"]} | {
    name: compile_on_use(f"{WORD_START}(?:{pattern}){WORD_END}")
    for name, pattern in _TABLES["patterns"].items()
}
_BREAKS = compile_on_use(_TABLES["breaks"])
_TURNS = compile_on_use(
    f"{WORD_START}(?:"
    + "|".join(f"({side})" for turn in _TABLES["turns"] for side in turn[:2])
    + f"){WORD_END}"
)
_PRODUCTS = [
    [frozenset(map(fold_case, words.split())) for words in kind.split(":")]
    for kind in _TABLES["products"]
]
_SAME = {w: words.split() for words in _TABLES["same"] for w in words.split()}
WORDS = {
    name: frozenset(map(fold_case, words.split()))
    for name, words in _TABLES["words"].items()
}
_ADDITIVE, _DATED, DEFINITE, INDEFINITE, LIGHT, _PLURAL = (
    WORDS[name]
    for name in ("additive", "dated", "definite", "indefinite", "light", "plural")
)
HOLDING = WORDS["standing"] | _DATED
ARTICLES = DEFINITE - WORDS["others"]
CONTRARY = frozenset((*DOUBTS, "negation"))
_WHERE = WORDS["parts"] - WORDS["since"] - INDEFINITE - DEFINITE
_EMPTY = LIGHT | WORDS["every"] | WORDS["new"]
_PART = re.compile("as*f+s+-?[vc]|as+[pa]*b|a?s+[pa]+f+s*-?[vc]|af+s*pa*s+-?[vc]")
"""Pattern, over the initials of words' kinds, of a new word that narrows a subject: article, back, preposition,
verb, change, fresh and shared word."""
LETTERS = (
    dict.fromkeys(WORDS["parts"], "p")
    | dict.fromkeys(WORDS["prices"], "s")
    | dict.fromkeys(DEFINITE | INDEFINITE | WORDS["new"], "a")
    | dict.fromkeys(HOLDING | LIGHT, "v")
    | dict.fromkeys(WORDS["back"], "b")
)


def sought_words(statement: Statement) -> tuple[str, ...]:
    """Return the words to find older statements by: those of `statement`, and "live" for "I moved to Rome"."""
    own = tuple(word.key for word in statement.words)
    own += tuple(same for key in own for same in _SAME.get(key, ()))
    if find("resettling", statement) or find("living", statement):
        own += tuple(sorted(WORDS["homes"]))
    if "i" in statement.signs and (turn := _read_turn(statement)):
        own += tuple(fold_case(_TABLES["turns"][turn[0]][2]).split())
    return own + tuple(sorted(_find_product(statement)[1]))


def may_end_plainly(statement: Statement) -> bool:
    """Return True if these rules may apply to a statement without a word such as "now": "the flag is off"."""
    if find_change(statement):
        return True
    return len(statement.words) <= SHORT_MAX and bool(
        _read_turn(statement)
        or any(find(n, statement) for n in ("again", "favorite", "led", "newcomer"))
    )


def read_clauses(statement: Statement) -> list[Statement]:
    """Return the clauses of a statement such as "Jonas left, our lead is Ida now"; empty for a single one."""
    parts = _BREAKS.split(statement.text)
    if len(parts) < 2 or find("limiting", statement):
        return []
    clauses = [clause for each in parts for clause in read_statements(each)]
    if any(all(word.kind == "when" for word in each.words) for each in clauses):
        return []  # "Sundays, I get up at ten now"
    doubts = statement.signs & {*DOUBTS}
    return [
        replace(each, signs=each.signs | doubts | {CLAUSE}, place=statement.place)
        for each in clauses
        # Not "Ben called, he moved", and not "I misread the lease, it ends in May".
        if not has(each, "pronouns") and "corrected" not in each.cues
    ]


def find_change(statement: Statement) -> re.Match[str] | None:
    """Return the match of words by which somebody left or took over something, as in "I left Siemens"."""
    return find("leaving", statement) or find("taking", statement)


def reports_change(text: str) -> bool:
    """Return True if an agent's text begins as a report: "Done, logs are kept for 14 days"."""
    return _PATTERNS["reporting"].match(text.lower()) is not None


def find(name: str, statement: Statement) -> re.Match[str] | None:
    """Return the first match of the pattern `name` in a statement."""
    return _PATTERNS[name].search(statement.text.lower())


def are_on_two_subjects(old: Statement, new: Statement, *, by_words: bool) -> bool:
    """Return True if two statements are surely on different subjects.

    - only the number before a common value differs: "release 7 moves to May", "release 8 moves to May"
    - they are for two people or purposes: "the parcel for Ada is here", "the parcel for Ben is here"
    - the newer statement is on a part, "the garage rent", or has swapped roles, "Ben helps Anna"
    - the day of an event differs: "we met on May 3", "we met on May 10"
    - the number after the same first word differs: "removed server 3", "removed server 4"
    - with `by_words`, without comparing vectors: only names and values are common to both
    """
    begun, newly_begun = (
        [word for word in each.frame if word.key not in ARTICLES][:2]
        for each in (old, new)
    )
    pairs = list(zip(begun, newly_begun, strict=False))
    if pairs and pairs[0][0].key == pairs[0][1].key:
        for word, newer in pairs[1:]:
            are_numbers = word.kind == newer.kind == "number"
            if are_numbers and not (word.unit or newer.unit) and word.key != newer.key:
                return True
    fresh = [word for word in new.words if not is_among(word.key, old)]
    gone = [word for word in old.words if not is_among(word.key, new)]
    is_other = "new" in new.signs and any(w.key in WORDS["old"] for w in gone)
    is_other |= has(new, "other") and not has(old, "other")
    for one, other in ((old, new), (new, old)):
        is_other |= has(one, "his") and has(other, "her")
    if is_other or _is_on_part(new, fresh) or _swaps_roles(old, new):
        return True
    shared = [word for word in new.words if word not in fresh]
    purpose, was = find("purpose", new), find("purpose", old)
    starts = {purpose.start(1)} if purpose and not find("working", new) else set()
    if purpose and not starts.isdisjoint(word.start for word in fresh):
        has_other = was and any(word.start == was.start(1) for word in gone)
        if not purpose.start() or (has_other and min(len(gone), len(fresh)) > 1):
            return True
        if has_other and gone[0].kind == fresh[0].kind == "name":
            return True
    if len(fresh) == len(gone) == 1:
        if fresh[0].unit == gone[0].unit == "day" and not new.cues:
            return not any(
                has(each, w) for each in (old, new) for w in ("dated", "due")
            )
        before = [word for word in new.frame if word.start < fresh[0].start]
        # Not behind "is" or "at": "the limit is 500 requests per minute".
        is_label = not before or (before[-1].kind and before[-1].key not in HOLDING)
        return (
            bool(is_label)
            and all(
                w.kind in ("number", "code") and not w.unit for w in (*fresh, *gone)
            )
            and any(w.start > fresh[0].start and w.kind in VALUE_KINDS for w in shared)
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


def is_exception(older: str, newer: str) -> bool:
    """Return True if `newer` is about a part, another owner's thing or a short time, or confirms `older`."""
    pairs = [(a, b) for a in read_statements(older) for b in read_statements(newer)]
    return bool(pairs) and all(_narrows(old, new) for old, new in pairs)


def _narrows(old: Statement, new: Statement) -> bool:
    """Return True if `new` has a narrower subject or time than `old`, as "this week we meet at 9"."""
    if find("brief", new) and not find("brief", old) and "now" not in new.cues:
        return True
    first = new.words[0]
    fresh = [word for word in new.words if not is_among(word.key, old)]
    if find("affirming", new):
        return all(word.kind not in EXACT_KINDS for word in fresh)
    if new.cues or find_change(new):
        return False
    is_where = [each.frame[0].key in _WHERE for each in (old, new)] == [False, True]
    is_where &= len(fresh) <= HOLDER_WORDS_MAX and first.kind not in EXACT_KINDS
    is_where |= first.key in WORDS["relatives"] and not has(old, "relatives")
    is_apart = _is_on_part(new, fresh) or _is_parallel(old, new)
    return is_apart or (is_where and first in fresh)


def _is_parallel(old: Statement, new: Statement) -> bool:
    """Return True if only subject and value differ: "the cat eats twice a day", "the dog eats once a day"."""
    frames = [[w for w in each.frame if w.key not in ARTICLES] for each in (old, new)]
    if len({*map(len, frames)}) > 1:
        # "The mail service is on port 6060", "the panel is on port 6061"
        ends = list(zip(*(frame[-2::-1] for frame in frames), strict=False))
        same = sum(1 for _ in takewhile(lambda end: end[0].key == end[1].key, ends))
        first, second = (frame[: -1 - same] for frame in frames)
        is_other = not any(is_same_word(a.key, b.key) for a in first for b in second)
        is_other &= all(word.kind not in EXACT_KINDS for word in (*first, *second))
        return bool(is_other and first and second) and same > 1
    pairs = list(zip(*frames, strict=False))
    differ = [was.key != word.key for was, word in pairs]
    if not 0 < 2 * sum(differ) <= len(differ):
        return False
    subjects = pairs[differ.index(True)]
    runs = sum(is_other for is_other, _ in groupby(differ))
    return runs > 1 and all(word.kind not in EXACT_KINDS for word in subjects)


def _is_on_part(new: Statement, fresh: Sequence[StatementWord]) -> bool:
    """Return True if a new word narrows the subject: "the garage rent" or "the rent for the garage"."""
    change = new.cues["changed"].start() if "changed" in new.cues else -1
    letters, last = "", 0
    for word in new.frame:
        letters += "c" if last <= change < word.start else ""
        last = word.start
        letter = "f" if word in fresh and word.key.isalpha() else "s"
        if word.is_owner:
            letter = {"f": "af", "s": "sp"}[letter]
        letters += LETTERS.get(word.key, letter if word.kind else "-")
    return bool(_PART.match(letters))


def _swaps_roles(old: Statement, new: Statement) -> bool:
    """Return True if roles are swapped, and one is denied: "Anna doesn't help Ben", "Ben helps Anna"."""
    who, whom = old.words[0], new.words[0]
    is_over = "gone" in new.cues and new.cues["gone"].start() > whom.start
    if not is_over and "negation" not in old.signs - new.signs:
        return False
    keys = [word.key for word in old.words]
    places = [
        next((keys.index(key) for key in keys if is_same_word(key, word.key)), -1)
        for word in new.frame
        if word.kind or is_among(word.key, old)
    ]
    are_active = {has(each, "by") for each in (old, new)}
    order = places[: places.index(0)] if 0 in places else [0]
    is_by_cue = "changed" in old.cues.keys() & new.cues.keys()  # "replaces"
    is_reverse = bool(order) and 0 < min(order) < order[0] + is_by_cue
    return is_reverse and len(are_active) == 1 and (who.key + whom.key).isalpha()


def surely_ends(
    old: Statement, new: Statement, meanings: SentenceMeanings | None
) -> bool:
    """Return True if `new` plainly changes the value or state in `old`: "the flag is on", "the flag is off"."""
    is_open = find("required", new) or not new.signs.isdisjoint(("open", "adds"))
    if not is_open and _says_contrary(old, new):
        return True
    if new.signs.isdisjoint(DOUBTS) and (_says_over(old, new) or _resumes(old, new)):
        return True
    if old.cues or (old.signs | new.signs) & CONTRARY:
        return False
    if _ceases(old, new) or _replaces_value(old, new) or _replaces_holder(old, new):
        return True
    if _moves_away(old, new) or is_replaced(old, new, is_held=True):
        return True
    if _leaves_employer(old, new) or _takes_over(old, new):
        return True
    if _replaces_product(old, new) or _has_other_value(old, new):
        return True
    if not meanings:
        return False
    if home := _find_new_home(old, new):
        return meanings.compare(home, [A_PLACE])[0][0] >= A_PLACE_MIN
    other = _find_other_state(old, new)
    return bool(other and meanings.compare(*other)[0][0] >= STATES_ALIKE_MIN)


def only_looks_like_end(old: Statement, new: Statement) -> bool:
    """Return True if `new` has a word such as "now", but adds to `old`, or is about another person or thing.

    "Anna speaks German now" adds a language, "my brother moved" is about a relative, and "coverage is 74 % now"
    does not end "coverage has to be 80 %". With the words of `old` and "now", `new` only confirms `old`.
    """
    cues, first = list(new.cues), new.words[0].key
    is_same = is_same_word(first, old.words[0].key)
    if first in WORDS["relatives"] and not is_among(first, old):
        return True
    is_other = "i" in old.signs - new.signs and new.frame[:1] == new.words[:1]
    if is_other and any(is_same_word(w.key, old.words[0].key) for w in new.frame[1:2]):
        return True  # "I drink coffee", and "Jule no longer drinks coffee"
    if REPORT in new.signs:
        others = [
            n for n, w in enumerate(new.frame) if w.kind and not is_among(w.key, old)
        ]
        is_value = bool(others) and others[-1] - others[0] < len(others)
        if not is_value or not is_among(first, old):
            return True
    is_taken = find("taking", new) and not find("handing", new)
    if is_same and find("duty", old) and is_taken:
        return True
    is_named = "naming" in old.signs - new.signs or has(old, "by")
    if is_named and find("moving", new):
        return True
    gone = [word for word in old.words if not is_among(word.key, new)]
    fresh = [word for word in new.words if not is_among(word.key, old)]
    formers = [{word.key for word in each.former} for each in (old, new)]
    is_told = WORDS["by"].issuperset(word.key for word in fresh) and any(
        word.key not in formers[1] and (formers[1] or word.kind in VALUE_KINDS)
        for word in new.words
    )
    is_told &= not formers[0] or formers[1] <= formers[0]
    if is_told and {"gone", "corrected"}.isdisjoint(new.cues.keys() - old.cues.keys()):
        return "negation" not in old.signs ^ new.signs  # the same change again
    is_part = bool(find("repaid", old)) != bool(find("repaid", new))
    if is_part and any(word.kind == "number" for word in fresh):
        return True  # a part of an amount: "of the loan we have paid back 5,000"
    if not fresh and cues == ["changed"] and new.words[-1].kind in EXACT_KINDS:
        return True  # "Changed: December 18"
    if cues == ["gone"]:
        stems = {word.key[:STEM] for word in old.words}
        kinds = {word.kind for word in gone} & {word.kind for word in fresh}
        objects = [w.key for w in new.words[1:] if w.key not in WORDS["recent"]]
        return (
            "negation" in old.signs & new.signs
            # "We no longer eat at six", "we eat at seven".
            or ("negation" in new.signs and not kinds.isdisjoint(EXACT_KINDS))
            or (
                is_same
                and len(objects) == 1 < len(old.words)
                and objects[0][:STEM] not in stems
            )
        )
    if "now" in cues and find("required", old) and not find("required", new):
        return True
    if cues != ["now"]:
        return False
    # The same again, with more words or fewer: "backups go to S3 in Paris", and "backups go to S3 now".
    at = next((new.words.index(word) for word in new.words if word not in fresh), 0)
    same = zip(old.words, new.words[at:], strict=False)
    is_added = not gone and all(is_same_word(was.key, word.key) for was, word in same)
    if not fresh or is_added:
        return "negation" not in old.signs ^ new.signs
    return all(word.kind == "name" for word in (*gone, *fresh)) and _is_added(
        fresh[0], new
    )


def _is_added(name: StatementWord, statement: Statement) -> bool:
    """Return True if `name` follows a verb that may have several objects at once: "Anna speaks German"."""
    verb = statement.frame[max(0, statement.frame.index(name) - 1)]
    is_object = "german" in statement.signs and verb.kind == "word"
    return verb.key in _ADDITIVE or (is_object and not find("using", statement))


def _says_over(old: Statement, new: Statement) -> bool:
    """Return True if `new` only says that a short `old` is over: "Tom quit chess" after "Tom plays chess"."""
    quits = find("quitting", new)
    if not quits and "gone" not in new.cues:
        return False
    start, end = quits.span() if quits else (0, 0)
    words = [
        word
        for word in new.words
        if not start <= word.start < end
        and (not quits or word.key not in MONTH_WORDS or is_among(word.key, old))
    ]
    was, what = (
        [word for word in each if word.key not in LIGHT | WORDS["doing"]]
        for each in (old.words, words)
    )
    are_others = any(has(old, w) != has(new, w) for w in ("others", "pronouns"))
    if are_others or old.cues or "negation" in old.signs:
        return False
    is_same_speaker = ("i" in old.signs) == ("i" in new.signs)
    if len(what) == 1 and was and was[-1].kind in ("name", "code") and old.frame[1:]:
        # What something uses, or is on: "flags live in Unleash", "Unleash is cancelled".
        verb, before = ["", *(word.key for word in old.frame)][-3:-1]
        return (
            was[-1] == old.frame[-1]
            and is_same_word(was[-1].key, what[0].key)
            and (is_same_speaker or what[0] == new.frame[0])
            and (len(was) == 1 or (before in WORDS["parts"] and verb in LIGHT))
            and (has(old, "light") or has(old, "doing"))
        )
    return (
        (quits is not None or "negation" in new.signs)
        and is_same_speaker
        and 0 < len(was) <= min(SHORT_MAX, 2 * len(what))
        and (len(what) > 1 or len(was) == 1)
        and is_same_word(was[0].key, what[0].key)
        and all(is_among(word.key, old) for word in what)
        and not names_owner(old, [is_among(word.key, new) for word in old.words], new)
    )


def _ceases(old: Statement, new: Statement) -> bool:
    """Return True if `new` only says that the subject or object of `old` is gone: "we sold the Golf in May"."""
    gone = find("ceasing", new)
    # Not "We bought a dog", and not "we have two cats", of which one died.
    is_one = len(old.words) <= SHORT_MAX and all(
        word.kind != "number" for word in old.words
    )
    if not gone or not is_one or has(old, "apart"):
        return False
    when = WORDS["recent"] | WORDS["narrowing"] | MONTH_WORDS
    what = [w for w in new.words if w.kind != "when" and w.key not in when]
    what = [w for w in what if not gone.start() <= w.start < gone.end()]
    known = [any(is_same_word(was.key, w.key) for w in what) for was in old.words]
    if not what or not all(is_among(word.key, old) for word in what):
        return False
    before = [word.key for word in old.frame if word.start < old.words[-1].start]
    verbs = HOLDING | LIGHT | _ADDITIVE | WORDS["doing"] | WORDS["staying"]
    is_held = not verbs.isdisjoint(before) or "naming" in old.signs
    return known[0] or (known[-1] and is_held and _WHERE.isdisjoint(before))


def _resumes(old: Statement, new: Statement) -> bool:
    """Return True if `new` says again what a short `old` denied: "I eat fish again" after "I eat no fish"."""
    again = find("again", new)
    start, end = again.span() if again else (0, 0)
    return (
        "negation" in old.signs - new.signs
        and old.cues.keys() <= {"gone"}
        and (again is not None or "now" in new.cues)
        and ("i" in old.signs) == ("i" in new.signs)
        and len(old.words) <= SHORT_MAX
        and all(word.key in LIGHT or is_among(word.key, new) for word in old.words)
        and all(
            is_among(word.key, old)
            or start <= word.start < end
            or word.key in WORDS["habits"]
            for word in new.words
        )
    )


def _read_turn(statement: Statement) -> tuple[int, int, list[str]] | None:
    """Return row and side of a word in the table `turns`, and the words for the thing ("lift"), or None."""
    match = _TURNS.search(statement.text.lower())
    if not match or not match.lastindex:
        return None
    if "negation" in statement.signs and not NEGATION.search(match[0]):
        return None  # "we have not turned on the flag"
    thing = [
        _SAME.get(word.key, [word.key])[0]
        for word in statement.frame
        if (word.kind or word.key in WORDS["pronouns"] | WORDS["others"])
        and not match.start() <= word.start < match.end()
        and word.key not in WORDS["recent"]
    ]
    return *divmod(match.lastindex - 1, 2), thing


def _says_contrary(old: Statement, new: Statement) -> bool:
    """Return True if both say opposites about the same thing: "the lift works", "the lift is broken"."""
    if not (turn := _read_turn(new)) or not (before := _read_turn(old)):
        return False
    (row, side, thing), (new_row, new_side, new_thing) = before, turn
    if row != new_row or side == new_side:
        return False
    if thing == new_thing:
        return bool(thing or "i" in old.signs & new.signs)
    # "The flag `beta` is off", "Ana turned on `beta`"
    kinds = frozenset() if "test" in thing else WORDS["switches"]
    actors = {w.key for w in new.words if w.kind == "name" or not w.start} - {*thing}
    was, what = {*thing} - kinds, {*new_thing} - actors - kinds
    return 0 < len(was) == len(what) and all(
        any(is_same_word(key, word) for word in what) for key in was
    )


def has(statement: Statement, name: str) -> bool:
    """Return True if a statement has a word of the list `name`."""
    return not WORDS[name].isdisjoint(word.key for word in statement.frame)


def _find_product(statement: Statement) -> tuple[str, frozenset[str], frozenset[str]]:
    """Return the product in "we moved to Postgres", all of its kind, and words for the kind; empty for none."""
    words = {word.key for word in statement.words} - LIGHT
    if not statement.cues.keys().isdisjoint(("changed", "now")):
        for names, products in _PRODUCTS:
            if len(words - names) == 1 and words - names <= products:
                return max(words - names), products, names
    return "", frozenset(), frozenset()


def _replaces_product(old: Statement, new: Statement) -> bool:
    """Return True if `new` replaces a product in `old` by another of its kind: "we migrated to Postgres"."""
    product, products, names = _find_product(new)
    was = {word.key for word in old.words} - LIGHT
    return (
        len(was & products - {product}) == 1
        and was <= products | names
        and ("i" in old.signs) == ("i" in new.signs)
    )


def _has_other_value(old: Statement, new: Statement) -> bool:
    """Return True if `new` has another value in words like those of `old`: "CI runs on Drone now"."""
    has_cue = not new.cues.keys().isdisjoint(("changed", "now"))
    has_cue |= "new" in new.signs and has(old, "secrets")
    if len(old.words) > SHORT_MAX or not (has_cue or find("favorite", new)):
        return False
    is_acted = "changed" in new.cues and find("acting", new)  # "I moved the app"
    if not is_acted and ("i" in old.signs) != ("i" in new.signs):
        return False
    if has(old, "additive") or has(new, "additive"):
        return False
    kinds: list[set[tuple[str, str]]] = []
    before: list[str] = []
    for each, other in ((old, new), (new, old)):
        words = [word for word in each.words if word.key not in _EMPTY]
        values = [word for word in words if not is_among(word.key, other)]
        if not 0 < len(values) <= min(NAME_WORDS_MAX, len(words) - 1):
            return False
        at, last = (each.frame.index(word) for word in (values[0], values[-1]))
        is_first = DEFINITE.issuperset(word.key for word in each.frame[:at])
        if last - at >= len(values) or (is_first and values[0].kind != "when"):
            return False  # it is the subject, or there are several
        if values[0].kind == "name" and _is_added(values[0], each):
            return False
        if words[-1] not in values and each.frame[at - 1].key in WORDS["belonging"]:
            return False
        kinds.append({(w.kind.replace("code", "name"), w.unit) for w in values})
        before.append(each.frame[at - 1].key)
    is_one = kinds[0] == kinds[1] and len(kinds[0]) == 1
    if not has(old, "light") and kinds[0] != {("when", "")}:
        return False
    if "changed" not in new.cues and "residing" in old.signs and before[0] != before[1]:
        return False  # "is in Oslo", "is on King Street"
    return is_one and ("renaming" in new.signs or kinds[0].pop()[0] in VALUE_KINDS)


def is_replaced(old: Statement, new: Statement, *, is_held: bool) -> bool:
    """Return True if `new` says only that the value of `old` was replaced: "from A to B".

    `is_held` says that `old` is known to state nothing but that value.
    """
    size = len(new.former)
    frame, was = old.frame[:-size], old.frame[-size:]
    pairs = zip(was, new.former, strict=False)
    fresh = [word for word in new.words if not is_among(word.key, old)]
    if (
        not (0 < size < len(old.frame) and len(old.words) <= SHORT_MAX)
        or new.cues.keys().isdisjoint(("changed", "now"))
        or any(not is_same_word(a.key, b.key) for a, b in pairs)
        or not 0 < len(fresh) <= SUCCESSOR_WORDS_MAX
    ):
        return False
    ahead = [word for word in fresh if word.start < new.former[0].start]
    if not is_held:
        at = new.frame.index(fresh[0])
        has_name = any(w.kind in ("name", "code") or w == new.frame[0] for w in fresh)
        is_one = ahead == list(new.frame[at : at + len(ahead)]) and not has(
            new, "others"
        )
        return has_name and is_one and was[0].kind in ("name", "code")
    # "Jonas took over from Ida as our lead"
    is_lead = fresh[0] == new.frame[0] and new.former[0] in new.frame[1:3]
    is_lead &= all(word.key in WORDS["leads"] for word in fresh[1:])
    last = frame[-1].key
    is_used = find("using", old) or (last in WORDS["parts"] and has(old, "light"))
    return bool(last in HOLDING or is_used) and (
        not ahead or (is_lead and has(old, "leads"))
    )


def _find_new_home(old: Statement, new: Statement) -> str:
    """Return the new home of a speaker who lived elsewhere: "Rome" for "I moved to Rome"; else empty."""
    pair = ((old, "living"), (new, "living" if "now" in new.cues else "resettling"))
    for statement, name in pair:
        match = find(name, statement)
        if not match or any(
            word.kind not in ("name", "when")
            and not match.start() <= word.start < match.end()
            for word in statement.words
        ):
            return ""
    was, home = (
        " ".join(
            each.text[word.start : word.start + len(word.key)]
            for word in each.words
            if word.kind == "name"
        )
        for each, _ in pair
    )
    return home if was != home else ""


def _leaves_employer(old: Statement, new: Statement) -> bool:
    """Return True if somebody leaves the employer named in `old`: "I left Siemens"."""
    works, leaves = find("working", old), find("leaving", new)
    if not works or not leaves or len(old.words) > SHORT_MAX:
        return False
    fresh = [word for word in new.words if not is_among(word.key, old)]
    return (
        ("i" in old.signs) == ("i" in new.signs)
        and any(word.kind == "name" for word in old.words)
        and all(
            is_among(word.key, new)
            for word in old.words
            if not works.start() <= word.start < works.end()
        )
        and all(
            (leaves.start() <= word.start < leaves.end() or find("working", new))
            and word.kind not in ("when", "number")
            for word in fresh
        )
    )


def _takes_over(old: Statement, new: Statement) -> bool:
    """Return True if another person takes over the task in `old`: "Ben took over billing"."""
    duty, takes = find("duty", old), find("taking", new)
    takes = find("handing", new) or takes
    takes = takes or ("now" in new.cues and find("passing", new)) or None
    if not duty or not takes or len(old.words) > SHORT_MAX:
        return False
    task = [word for word in old.words if word.start >= duty.end()]
    fresh = [
        word
        for word in new.words
        if not is_among(word.key, old) and not takes.start() <= word.start < takes.end()
    ]
    return (
        bool(task)
        and all(is_among(word.key, new) for word in task)
        and 0 < len(fresh) <= HOLDER_WORDS_MAX
        and all(new.text[word.start].isupper() for word in fresh)
    )


def _moves_away(old: Statement, new: Statement) -> bool:
    """Return True if `new` moves a person or thing whose place or time is in `old`: "Ada moved to Rome"."""
    if "changed" not in new.cues or len(old.words) > SHORT_MAX:
        return False
    if not find("moving", new) or not (stays := find("residing", old)):
        return False
    subject = [word for word in old.words if word.start < stays.start()]
    where = [word for word in old.words if word.start >= stays.end()]
    whither = [word for word in new.words if not is_among(word.key, old)]
    kinds, new_kinds = ({word.kind for word in words} for words in (where, whither))
    return (
        bool(subject and where and whither)
        and all(is_among(word.key, new) for word in subject)
        and ("when" in kinds) == ("when" in new_kinds)
        and ("name" not in kinds or not new_kinds.isdisjoint(VALUE_KINDS))
        and not names_owner(new, [is_among(word.key, old) for word in new.words], old)
    )


def _find_other_state(old: Statement, new: Statement) -> tuple[str, list[str]] | None:
    """Return the new state or place, and [the old], if only it changed, as in "it is green now"; or None."""
    if "now" not in new.cues and not find("favorite", new):
        return None
    frames = [
        [word for word in each.frame if word.key not in INDEFINITE | WORDS["kinds"]]
        for each in (old, new)
    ]
    pairs = zip(*frames, strict=False)
    at = next((i for i, (was, word) in enumerate(pairs) if was.key != word.key), 0)
    states = [
        [word for word in words[at:] if word.key not in DEFINITE] for words in frames
    ]
    before = [word.key for word in frames[1][:at]]
    is_definite = not DEFINITE.isdisjoint(before[-1:])
    verb, last = ["", "", *before[: at - is_definite]][-2:]
    if last in WORDS["parts"]:
        is_held = verb in WORDS["staying"]
    else:
        is_one = all(len(words) == at + 1 for words in frames) and not is_definite
        is_held = is_one and (last in HOLDING or not frames[1][at - 1].kind)
    is_state = (
        is_held
        and at > 1
        and len({words[-1].key for words in frames}) == 2
        and last not in _ADDITIVE
        and all(0 < len(state) <= NAME_WORDS_MAX for state in states)
        and all(word.kind == "word" for state in states for word in state)
    )
    was, now = (" ".join(word.key for word in state) for state in states)
    return (now, [was]) if is_state else None


def _replaces_holder(old: Statement, new: Statement) -> bool:
    """Return True if `new` names another person in a role: "Ben is our lead now" after "our lead is Anna"."""
    keys = {word.key for word in new.words}
    is_new = find("newcomer", new) and keys.isdisjoint(WORDS["shared_roles"])
    if "now" not in new.cues and not is_new:
        return False
    sides: list[tuple[Statement, list[StatementWord], int]] = []
    for each, other in ((old, new), (new, old)):
        known = {word.key for word in each.words if is_among(word.key, other)}
        names = [w for w in each.words if w.key not in known | WORDS["new"]]
        if not 0 < len(names) <= HOLDER_WORDS_MAX:
            return False
        at = each.frame.index(names[0])
        is_one = list(each.frame[at : at + len(names)]) == names
        if not is_one or not all(each.text[word.start].isupper() for word in names):
            return False
        sides.append((each, names, at))
    if all(each.words[0] == names[0] for each, names, _ in sides):
        _, names, at = sides[1]
        after = [word.key for word in new.frame[at + len(names) :]]
        has_one = (
            len(after) > 2
            and after[0] in _DATED - _PLURAL
            and (after[1] in DEFINITE or "new" in new.signs)
            and WORDS["shared_roles"].isdisjoint(after)
        )
        return has_one or all(find("duty", each) for each in (old, new))
    _, names, at = sides[0]
    before, after = old.frame[:at], [word.key for word in old.frame[at + len(names) :]]
    if is_new and after[1:] and all(word.key in WORDS["titles"] for word in before):
        return after[0] in _DATED and after[1] in DEFINITE
    is_last = not at and list(new.frame[sides[1][2] :]) == sides[1][1]
    if is_last and all(find("duty", each) for each in (old, new)):
        return True  # "ahora la contabilidad la lleva Jorge"
    return any(
        list(each.frame[at:]) == names
        and not (HOLDING | WORDS["by"]).isdisjoint(
            [
                word.key
                for word in each.frame[1:at]
                if word.kind != "name" and word.key not in WORDS["titles"] | DEFINITE
            ][-1:]
        )
        for each, names, at in sides
    )


def _replaces_value(old: Statement, new: Statement) -> bool:
    """Return True if `new` repeats all words of `old` but one value, usually with a cue.

    The former value may follow: "on Friday instead of Thursday". Without a cue, these replace a value:

    - a number behind "is" or "costs": "the limit is 30", "the limit is 50"
    - a number behind another word without content, at the end or before its unit
    - a time, month or day of the month behind "is", or the place where one thing is

    Behind a word with content, a number names a thing or belongs to an event: "closed ticket 41", "ran 5 km".
    """
    size = len(old.frame)
    if size > len(new.frame):
        return False
    frame = old.frame
    if any(cue.start() < new.frame[0].start for cue in new.cues.values()):
        # Behind it, German, Dutch and Swedish put the verb before its subject.
        keys = [word.key for word in frame]
        verb = new.frame[0].key
        at = keys.index(verb) if verb in keys else 0
        frame = (frame[at], *frame[:at], *frame[at + 1 :])
    pairs = zip(frame, new.frame[:size], strict=True)
    others = [(was, word) for was, word in pairs if was.key != word.key]
    kinds = [{was.kind, word.kind} for was, word in others]
    if new.cues:
        former = {was.key for was, _ in others}
        named = {word.key for word in new.frame[size:]}
        known = (
            {*VALUE_KINDS, "word"} if named and "instead" in new.cues else VALUE_KINDS
        )
        is_other = named <= former and kinds in [[{kind}] for kind in known]
        return is_other and not (kinds == [{"name"}] and _is_added(others[0][1], new))
    rest = new.frame[size:]
    held = {word.key for word in new.frame} & (_DATED - _PLURAL)
    is_one = bool(held) and new.frame[0].key in ARTICLES  # not "yoga is on Monday"
    if kinds == [{"when"}] * 2 and not rest:
        return is_one
    if len(others) != 1 or (rest and rest[0].key not in WORDS["since"]):
        return False
    was, word = others[0]
    if was.unit == word.unit == "day":
        return True  # an event on another day is on another subject
    if kinds == [{"name"}] and "residing" in old.signs & new.signs and not rest:
        return word == new.frame[-1] and _PLURAL.isdisjoint(w.key for w in frame)
    before = new.frame[: new.frame.index(word)]
    things = ("word", "name") if "german" in new.signs else ("word",)
    if was.unit != word.unit or all(each.kind not in things for each in before):
        return False
    is_last = new.frame[size - 1] == word
    if is_last and before[-1].kind == "name" and find("using", new):
        return word.kind == was.kind  # another version, which may look like a time
    if kinds == [{"when"}]:
        is_held = not _DATED.isdisjoint(each.key for each in before)
        return is_held and (is_one or not is_weekday(word.key))
    if kinds == [{"code"}]:
        return before[-1].key in HOLDING
    return kinds == [{"number"}] and (
        before[-1].key in HOLDING
        or (not before[-1].kind and (bool(word.unit) or is_last))
        or (is_last and before[-1].key in WORDS["numbered"])
    )
