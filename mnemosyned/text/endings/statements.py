"""Recognizes that a newer statement ends an older one: a new value, a dropped decision, a correction.

Sentences have signs by which one may end another: cues, values, and words with content. The signs
of both are numbers, which trees fitted on pairs by several authors turn into a probability
(`tests/bench/fit_endings.py`). Vectors of the sentences add what they mean, where an encoder is up.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from itertools import chain, compress, groupby, pairwise, takewhile
from operator import eq
from typing import Any, Protocol

from mnemosyned.text.languages.tables import COUNTS, LANGUAGES, MONTHS, WEEKDAYS
from mnemosyned.text.rule_files import compile_on_use, read_tables
from mnemosyned.text.sentences import split_sentences
from mnemosyned.text.terms import STOP_WORDS, fold_case, irregular_forms, stem
from mnemosyned.text.word_cache import clear_on_forget

SENTENCES_MAX = 20
"""Sentences of a text that are read; the further ones of a long text end nothing."""
READ_CHARS_MAX = 8_000
"""Characters of a text that are read: a page of code or a log costs no more than its beginning."""
WORDS_MAX = 40
"""Words of a sentence above which it is prose with several statements, and ends nothing."""
SENTENCES_CACHED_MAX = 300
"""Texts whose statements are kept, at 4 kB each: of 2,000, read for endings in order, no more return."""
CUES = ("corrected", "gone", "changed", "instead", "now")
"""Names of the cues, the surest first."""
DOUBTS = ("open", "adds", "past")
"""Names of the signs that a sentence ends nothing."""
_WORD_ENDS = r"(?!\w|-(?!(?:se|me|te|nos)(?!\w)))"
"""No letter follows, nor a hyphen that joins more than a pronoun: `mudou-se`, but not `rose-garden`."""
_TOKEN = re.compile(r"[^\W_](?:(?:[\w.@:/%+'-]|(?<=\d),(?=\d))*\w)?[%€$£]?")
_TIME = re.compile(r"\d{1,2}(?:[:h.]\d\d|h|am|pm)\Z")
_PAUSE = re.compile("[,:;]")
_QUOTED = re.compile(r"[\"“„«‚][^\"”“»]{2,200}[\"”“»]")


def list_sentences(text: str) -> list[str]:
    """Return the sentences of a text, as `Ending.places` counts them."""
    normal = unicodedata.normalize("NFC", text)
    return [sentence for sentence, _ in split_sentences(normal)]


def sentence_at(text: str, place: int) -> str:
    """Return the sentence of a text with a number from `Ending.places`; empty if it has none."""
    return "".join(list_sentences(text)[place : place + 1])


class LanguageRules:
    """The patterns and words of one language, by their names in the file."""

    def __init__(self, code: str, table: Mapping[str, str]) -> None:
        """Read the patterns and words of a table; `code` is that of its language."""
        self.code = code
        texts = {name: text for name, text in table.items() if name != "empty"}
        hints = "|".join(f"(?:{texts[name]})" for name in CUES)
        self.patterns = {
            name: compile_on_use(rf"(?<![\w-])(?:{text}){_WORD_ENDS}")
            for name, text in texts.items()
        } | {"hint": compile_on_use(rf"(?<!\w)(?:{hints})")}
        language = next(each for each in LANGUAGES if each.code == code)
        words = f"{table['empty']} {language.stop_words} {language.question_stop_words}"
        self.empty = frozenset(fold_case(words).split())
        if code == "en":
            self.empty |= STOP_WORDS

    def find(self, name: str, low: str) -> re.Match[str] | None:
        """Return the first match of the pattern `name` in a text in lower case."""
        return self.patterns[name].search(low)


_TABLES = read_tables(__file__, "statements.toml")
_SHARED = _TABLES["any"]
RULES = tuple(
    LanguageRules(
        table["code"], {name: table[name] for name in table.keys() - {"code"}}
    )
    for name, table in _TABLES.items()
    if name != "any"
)
_OPENER = re.compile(_SHARED["openers"] + r"(?<!\w)")
_NEGATION = re.compile(rf"(?<!\w)(?:{_SHARED['negation']})(?!\w)")
_WEEKDAYS = frozenset(map(fold_case, (*WEEKDAYS, *_SHARED["weekdays"].split())))
_MONTHS = frozenset(map(fold_case, MONTHS))
_MONTH = f"(?:{'|'.join(sorted(MONTHS, key=len, reverse=True))})"
_SWITCHED = compile_on_use(_SHARED["switched"])
_NAMES = ("naming", "renaming")
_PATTERNS = {
    name: compile_on_use(rf"(?<!\w)(?:{_SHARED[name]})(?!\w)")
    for name in (
        *(*_NAMES, "moving", "residing", "duty", "upgrading", "using"),
        *("living", "resettling", "working", "leaving", "taking"),
    )
} | {
    "day": compile_on_use(
        rf"(?<![\w.:,])(?:\d{{1,2}}(?:\.|st|nd|rd|th|er|º)? (?:of |de |di )?{_MONTH}"
        rf"|{_MONTH} (?:the )?\d{{1,2}}(?:st|nd|rd|th)?|\d{{1,2}}(?:st|nd|rd|th)(?! \w))"
        r"(?![\w:%]|[.,]\d)"
    )
}
"""Patterns of all languages, in lower case: what names a thing, what gives it another name, and a `day` of a
month, such as "9 may", "may 9th", "on the 9th.", "1. juni" or "3 de marzo"."""
_COUNTS = frozenset(fold_case(_SHARED["numbers"]).split()) | frozenset(
    fold_case(word) for word, number in COUNTS.items() if number > 1
)
STANDING = frozenset(map(fold_case, _SHARED["standing"].split()))
"""Verbs of an amount that holds until another is said: "costs", "lasts"."""
_DATED = frozenset(map(fold_case, _SHARED["dated"].split()))
"""Verbs by which a date holds until another is said: "is", "ends"."""
_HOLDING = STANDING | _DATED
_PLURAL = frozenset(map(fold_case, _SHARED["plural"].split()))
"""Verbs of several things, which may be in several places."""
_HOMES = tuple(map(fold_case, _SHARED["homes"].split()))
_INDEFINITE, _DEFINITE, _SHARED_ROLES, _NUMBERED, _ADDITIVE, _SINCE = (
    frozenset(map(fold_case, _SHARED[name].split()))
    for name in "indefinite definite shared_roles numbered additive since".split()
)
_UNITS: Mapping[str, re.Pattern[str]] = {
    name: compile_on_use(fold_case(units)) for name, units in _SHARED["units"].items()
}


@dataclass(frozen=True, slots=True)
class StatementWord:
    """A word in a statement."""

    key: str
    """The word in lower case, without accents."""
    start: int
    kind: str
    """`when` (a time, weekday or month), `number`, `code` (of letters and digits), `name` or `word`;
    empty for a function word."""
    unit: str = ""
    """The kind of the unit behind a number, as `time` or `data`, or `day` of a month; empty for none."""
    is_owner: bool = False
    """Whether it ends in "'s"."""


@dataclass(frozen=True, slots=True)
class Statement:
    """A sentence that may end another one, or be ended, with its cues and its words with content."""

    text: str
    words: tuple[StatementWord, ...]
    """The words with content."""
    frame: tuple[StatementWord, ...]
    """All words outside the cues, function words too."""
    cues: Mapping[str, re.Match[str]]
    """The first match of each cue in it, in lower case, by their names in `CUES`."""
    signs: frozenset[str]
    """Those of `DOUBTS` that it has, and `i` (the first person), `negation`, `new` (the adjective),
    `naming` (it says what a thing is called), `renaming` (it gives a thing another name) and `residing` (it
    says where something is)."""
    former: tuple[StatementWord, ...] = ()
    """The words with content that it names as a former value: "Hetzner" in "from Hetzner to OVH"."""
    place: int = 0
    """The number of the sentence in its text, from 0."""

    @property
    def sought(self) -> tuple[str, ...]:
        """Words of statements that it may end: its own, and "live" for "I moved to Rome"."""
        own = tuple(word.key for word in self.words)
        return own + _HOMES if _search("resettling", self) else own


@clear_on_forget
@lru_cache(maxsize=SENTENCES_CACHED_MAX)
def read_statements(text: str) -> tuple[Statement, ...]:
    """Return the statements among the first sentences of a text, each read in its language; no questions."""
    sentences = list_sentences(text[:READ_CHARS_MAX])
    if len(text) > READ_CHARS_MAX:
        del sentences[-1:]  # it is cut
    read = (
        _read_statement(sentence, place)
        for place, sentence in enumerate(sentences[:SENTENCES_MAX])
        if not sentence.rstrip(' "”»').endswith("?")
    )
    return tuple(statement for statement in read if statement)


def find_languages(low: str) -> list[LanguageRules]:
    """Return the rules of the language with most function words of a text in lower case; several in a tie."""
    tokens = {fold_case(match[0]) for match in _TOKEN.finditer(low)}
    scores = [len(tokens & each.empty) for each in RULES]
    most = max(scores)
    return [each for each, score in zip(RULES, scores, strict=True) if score == most]


def _read_statement(sentence: str, place: int) -> Statement | None:
    """Return a sentence with its words, read by the rules of its language, or None if it is too long."""
    text = sentence.replace("’", "'")
    low = text.lower()
    if len(low) != len(text):
        return None
    rules = max(
        find_languages(low),
        key=lambda each: sum(bool(each.find(name, low)) for name in CUES),
    )
    cues = {name: match for name in CUES if (match := rules.find(name, low))}
    spans = [span for cue in cues.values() for span in _list_cue_spans(cue)]
    if opener := _OPENER.match(low):
        spans.append(opener.span())
    frame = tuple(_read_words(text, low, rules, spans))
    words = tuple(word for word in frame if word.kind)
    if not words or len(words) > WORDS_MAX:
        return None
    signs = {name for name in (*DOUBTS, "i", "new") if rules.find(name, low)}
    former = [
        match.span(group)
        for match in (rules.patterns["former"].finditer(low) if cues else ())
        for group in range(1, len(match.groups()) + 1)
    ]
    named = tuple(w for w in words if any(a <= w.start < z for a, z in former))
    start = min((match.start() for match in cues.values()), default=len(low))
    if any(match.start() < start < match.end() for match in _QUOTED.finditer(text)):
        signs.add("open")
    if _NEGATION.search(low):
        signs.add("negation")
    signs |= {name for name in (*_NAMES, "residing") if _PATTERNS[name].search(low)}
    return Statement(sentence, words, frame, cues, frozenset(signs), named, place)


def _list_cue_spans(cue: re.Match[str]) -> list[tuple[int, int]]:
    """Return the spans of a cue without what it encloses: "not" and "anymore" of "not using X anymore"."""
    inner = [cue.span(group) for group in range(1, len(cue.groups()) + 1) if cue[group]]
    ends = [cue.start(), *chain.from_iterable(inner), cue.end()]
    return list(zip(ends[::2], ends[1::2], strict=True))


def _read_words(
    text: str, low: str, rules: LanguageRules, cues: Sequence[tuple[int, int]]
) -> Iterator[StatementWord]:
    """Yield the words of a sentence, `low` in lower case, outside the spans of its cues."""
    has_digit = any(map(str.isdigit, low))
    days = [day.span() for day in _PATTERNS["day"].finditer(low)] if has_digit else []
    for match in _TOKEN.finditer(low):
        start, end = match.span()
        word = match[0].removesuffix("'s")
        if "'" in word[:5] and len(word) - word.index("'") > 2:
            start += word.index("'") + 1  # an elided article: `l'adresse`
            word = low[start:end]
        if any(first <= start < last for first, last in cues):
            continue
        key = fold_case(word)
        is_name = start > 0 and text[start].isupper()
        unit = ""
        is_in_day = any(first <= start < last for first, last in days)
        if is_in_day and (word[0].isdigit() or word in MONTHS):
            kind, unit = "when", "day" if word[0].isdigit() else ""
        elif not word.isalpha() and any(map(str.isdigit, word)):
            kind = "number" if word[0].isdigit() else "code"
            if _TIME.match(word) or low.startswith((" am", " pm", " uhr", " h"), end):
                kind = "when"
        elif _is_weekday(key):
            kind = "when"
        elif key in rules.empty or (len(key) == 1 and not is_name):
            kind = ""
        elif key in _COUNTS:
            kind = "number"
        elif key in _MONTHS and len(key) > 3 and key not in ("march", "may"):
            kind = "when"
        else:
            is_name = is_name or text[start + 1 : end] != low[start + 1 : end]
            kind = "name" if is_name else "word"  # as in "ClickHouse is out"
        if kind == "number":
            after = fold_case("".join(low[end:].split(maxsplit=1)[:1]).strip(".,;:!)"))
            kinds = (name for name, each in _UNITS.items() if each.fullmatch(after))
            unit = next(kinds, "")
        is_owner = match[0].endswith("'s")
        yield StatementWord(key, start, kind, unit, is_owner)


def _is_weekday(key: str) -> bool:
    """Tell whether a word in lower case, without accents, is a weekday or its plural."""
    return key.removesuffix("s") in _WEEKDAYS or key in _WEEKDAYS


_CYRILLIC_ENDS = re.compile(r"[аеиоуыэюяймьх]{0,3} [аеиоуыэюяймьх]{0,3}")
"""What two forms of a short Russian word may differ in, as of "рыба" and "рыбы"."""
EXACT_KINDS = ("when", "number", "code")
"""Kinds of words that may be another value without a cue."""
VALUE_KINDS = (*EXACT_KINDS, "name")
SHORT_MAX = 6
"""Words of a sentence that says no more than where something is, or which version of it."""
HOLDER_WORDS_MAX, NAME_WORDS_MAX, SUCCESSOR_WORDS_MAX = 2, 3, 4
"""Words of the name of who holds a role, of another name, and of what took the place of a former value."""
A_PLACE, A_PLACE_MIN = "city, town", 0.2
"""A text, and the cosine to it of the name of any place: those of software and firms reach .18."""
STATES_ALIKE_MIN = 0.4
"""Cosine of two words from which they are states of one kind, as "green" and "blue" are."""
SURE_ODDS = 4.0
"""Odds, as a logarithm, of another value in the same words."""
CUE_COUNT, SHARE, VALUE_SHARE, FORMER_SHARE = 8, 11, 55, 69
"""Places among the features: the number of cues of the newer statement, the share of the older one's words
that it has, the same where a cue comes with another value, and the share of named former values."""
PLAIN_SHARE_MIN, PLAIN_VALUE_SHARE_MIN, PLAIN_MARGIN = 0.67, 0.44, 0.7
"""Shares from which words say plainly that a statement ends, and how much less odds then have to be."""
UNLIKELY = "unlikely"
"""The sign of a statement that, by its vector, reports no change: it ends another one only by sure rules."""
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
            if each.cues
            or "new" in each.signs
            or ("residing" in each.signs and each.words[-1].kind == "name")
            or any(_read_switch(each))
            or _search("leaving", each)
            or _search("taking", each)
            or any(word.kind in EXACT_KINDS for word in each.words)
        ]
        rated = statements and meanings.rate_changes([each.text for each in statements])
        least = _read_model()["vectors"]["change_min"]
        return [
            each if odds >= least else replace(each, signs=each.signs | {UNLIKELY})
            for each, odds in zip(statements, rated, strict=True)
            if odds >= least
            or not each.cues.keys().isdisjoint(("now", "instead"))
            or any(_read_switch(each))
        ]
    low = text[:READ_CHARS_MAX].lower()
    if not any(rules.find("hint", low) for rules in find_languages(low)):
        return []
    return [each for each in read_statements(text) if each.cues]


def rate_endings(
    older: str, new: Statement, meanings: SentenceMeanings | None = None
) -> tuple[float, Ending] | None:
    """Return how likely `new` ends a statement of an older text, as log odds, and that ending.

    Odds above 0 are high enough to store the ending. Vectors are compared only for pairs that their
    words do not rule out; the result is None if they rule out all.
    """
    model = _read_model()
    pairs: list[tuple[float, Statement, list[float]]] = []
    starts = {key[:SAME_START] for key in new.sought}
    for old in read_statements(older):
        if starts.isdisjoint(word.key[:SAME_START] for word in old.words):
            continue
        if _are_on_two_subjects(old, new, by_words=not meanings):
            continue
        if _surely_ends(old, new, meanings):
            pairs, meanings = [(SURE_ODDS, old, [])], None
            break
        if UNLIKELY in new.signs:
            continue
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
            odds = _add_trees("vectors", features) + plain_margin(features)
            pairs[place] = odds - model["vectors"]["least"], old, features
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
    Thursday", "release 8 moves to Thursday"; where an event has another day: "we met on May 3", "we met
    on May 10"; or where both begin with a word and another number: "removed server 3", "removed server
    4". With `by_words`, where no vector is asked, they also are if they share only names and values; a
    capital at the beginning may be that of a name.
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
        if fresh[0].unit == gone[0].unit == "day" and not new.cues:
            return _DATED.isdisjoint(word.key for word in new.frame)
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


def _search(name: str, statement: Statement) -> re.Match[str] | None:
    """Return the first match of a pattern of all languages in a statement."""
    return _PATTERNS[name].search(statement.text.lower())


def _surely_ends(
    old: Statement, new: Statement, meanings: SentenceMeanings | None
) -> bool:
    """Tell whether `new` says plainly, in the words of `old`, that another value or place took its place."""
    if (old.signs | new.signs) & {*DOUBTS, "negation"}:
        return False
    thing, switched = _read_switch(new)
    if thing and (was := _read_switch(old))[0] == thing:
        return was[1] != switched
    if old.cues:
        return False
    if _replaces_value(old, new) or _replaces_holder(old, new):
        return True
    if _are_elsewhere(old, new) or _moves_away(old, new) or _upgrades(old, new):
        return True
    if _is_replaced(old, new) or _leaves(old, new) or _takes_over(old, new):
        return True
    if not meanings:
        return False
    if home := _find_new_home(old, new):
        return meanings.compare(home, [A_PLACE])[0][0] >= A_PLACE_MIN
    other = _find_other_state(old, new)
    return bool(other and meanings.compare(*other)[0][0] >= STATES_ALIKE_MIN)


def _upgrades(old: Statement, new: Statement) -> bool:
    """Tell whether `new` upgrades what a short `old` names to another version: "upgraded to React 19"."""
    if "changed" not in new.cues or len(old.words) > SHORT_MAX:
        return False
    if not _search("upgrading", new):
        return False
    versions, new_versions = (
        {
            name.key: number.key
            for name, number in pairwise(each.words)
            if name.kind == "name" and number.kind == "number" and not number.unit
        }
        for each in (old, new)
    )
    fresh = [word.key for word in new.words if not _is_among(word.key, old)]
    return bool(fresh) and (
        fresh == [new_versions[name] for name in new_versions if name in versions]
    )


def _is_replaced(old: Statement, new: Statement) -> bool:
    """Tell whether `new` says little more than what took the place of the value of `old`: "from A to B"."""
    size = len(new.former)
    frame, was = old.frame[:-size], old.frame[-size:]
    is_value = (
        0 < size < len(old.frame)
        and "changed" in new.cues
        and len(old.words) <= SHORT_MAX
        and [word.key for word in was] == [word.key for word in new.former]
        and (frame[-1].key in _HOLDING or _search("using", old))
    )
    fresh = [word for word in new.words if not _is_among(word.key, old)]
    return bool(
        is_value
        and 0 < len(fresh) <= SUCCESSOR_WORDS_MAX
        and fresh[0].start > new.former[-1].start
    )


def _find_new_home(old: Statement, new: Statement) -> str:
    """Return where the speaker moved who lived elsewhere, as in "I moved to Rome"; empty for others."""
    pair = ((old, "living"), (new, "resettling"))
    for statement, name in pair:
        match = _search(name, statement)
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


def _leaves(old: Statement, new: Statement) -> bool:
    """Tell whether, in `new`, somebody leaves where he works in `old`: "I left Siemens"."""
    works, leaves = _search("working", old), _search("leaving", new)
    if not works or not leaves or len(old.words) > SHORT_MAX:
        return False
    fresh = [word for word in new.words if not _is_among(word.key, old)]
    return (
        ("i" in old.signs) == ("i" in new.signs)
        and any(word.kind == "name" for word in old.words)
        and all(
            _is_among(word.key, new)
            for word in old.words
            if not works.start() <= word.start < works.end()
        )
        and all(
            leaves.start() <= word.start < leaves.end()
            and word.kind not in ("when", "number")
            for word in fresh
        )
    )


def _takes_over(old: Statement, new: Statement) -> bool:
    """Tell whether, in `new`, another takes over what somebody does in `old`: "Ben took over billing"."""
    duty, takes = _search("duty", old), _search("taking", new)
    if not duty or not takes or len(old.words) > SHORT_MAX:
        return False
    task = [word for word in old.words if word.start >= duty.end()]
    fresh = [
        word
        for word in new.words
        if not _is_among(word.key, old)
        and not takes.start() <= word.start < takes.end()
    ]
    return (
        bool(task)
        and all(_is_among(word.key, new) for word in task)
        and 0 < len(fresh) <= HOLDER_WORDS_MAX
        and all(new.text[word.start].isupper() for word in fresh)
    )


def _read_switch(statement: Statement) -> tuple[str, str]:
    """Return a thing and what it is switched to, as ("the flag", "off"); two empty texts for others."""
    match = _SWITCHED.fullmatch(statement.text.lower())
    return (match[1], match[2]) if match else ("", "")


def _has_other_end(old: Statement, new: Statement) -> bool:
    """Tell whether the last words of two statements differ, and articles before them at most, but no others."""
    (*frame, was), (*new_frame, word) = (
        [each for each in statement.frame if each.key not in _INDEFINITE]
        for statement in (old, new)
    )
    return (
        was.key != word.key
        and bool(was.kind) == bool(word.kind)
        and [each.key for each in frame] == [each.key for each in new_frame]
    )


def _moves_away(old: Statement, new: Statement) -> bool:
    """Tell whether `new` moves the thing whose place or time `old` says: "Ada moved to Rome"."""
    if "changed" not in new.cues or len(old.words) > SHORT_MAX:
        return False
    if not _search("moving", new) or not (stays := _search("residing", old)):
        return False
    subject = [word for word in old.words if word.start < stays.start()]
    where = [word for word in old.words if word.start >= stays.end()]
    whither = [word for word in new.words if not _is_among(word.key, old)]
    kinds, new_kinds = ({word.kind for word in words} for words in (where, whither))
    return (
        bool(subject and where and whither)
        and all(_is_among(word.key, new) for word in subject)
        and not _names_another(new, whither, subject)
        and ("when" in kinds) == ("when" in new_kinds)
        and ("name" not in kinds or not new_kinds.isdisjoint(VALUE_KINDS))
        and not _names_owner(new, [_is_among(word.key, old) for word in new.words], old)
    )


def _names_another(
    new: Statement, fresh: Sequence[StatementWord], subject: Sequence[StatementWord]
) -> bool:
    """Tell whether a `fresh` word leads to those of the subject: "Wim's sister" beside "my sister"."""
    keys = {word.key for word in subject}
    ends = max((word.start for word in new.words if word.key in keys), default=0)
    return any(
        word.start < ends and not _PAUSE.search(new.text, word.start, ends)
        for word in fresh
    )


def _are_elsewhere(old: Statement, new: Statement) -> bool:
    """Tell whether, in the same words, one thing is said to be in two places: "the office is in Oslo"."""
    (*frame, was), (*new_frame, word) = old.frame, new.frame
    return (
        "residing" in old.signs & new.signs
        and was.kind == word.kind == "name"
        and was.key != word.key
        and [each.key for each in frame] == [each.key for each in new_frame]
        and _PLURAL.isdisjoint(each.key for each in frame)
    )


def _find_other_state(old: Statement, new: Statement) -> tuple[str, list[str]] | None:
    """Return the word of `new`, with `now`, in place of the last of `old`, and that one: "it is green now"."""
    was, word = old.frame[-1], new.frame[-1]
    frame = [each.key for each in new.frame[:-1] if each.key not in _INDEFINITE]
    is_state = (
        "now" in new.cues
        and was.kind == word.kind == "word"
        and len(frame) > 1
        and frame[-1] in _HOLDING
        and _has_other_end(old, new)
    )
    return (word.key, [was.key]) if is_state else None


def _replaces_holder(old: Statement, new: Statement) -> bool:
    """Tell whether `new`, with `now`, names another holder: "Ben is our lead now" after "our lead is Anna"."""
    if "now" not in new.cues:
        return False
    keys, new_keys = ({word.key for word in each.frame} for each in (old, new))
    names = [
        [word for word in each.frame if word.key not in others]
        for each, others in ((old, new_keys), (new, keys))
    ]
    for each, words in zip((old, new), names, strict=True):
        if not 0 < len(words) <= HOLDER_WORDS_MAX or not all(
            each.text[word.start].isupper() for word in words
        ):
            return False
    sides = list(zip((old.frame, new.frame), names, strict=True))
    if all(list(frame[: len(words)]) == words for frame, words in sides):
        after = [word.key for word in new.frame[len(names[1]) :]]
        has_one = (
            len(after) > 2
            and after[0] in _DATED - _PLURAL
            and after[1] in _DEFINITE
            and _SHARED_ROLES.isdisjoint(after)
        )
        return has_one or all(_search("duty", each) for each in (old, new))
    return any(
        list(frame[-len(words) :]) == words
        and any(word.key in _HOLDING for word in frame[1 : -len(words)][-1:])
        for frame, words in sides
    )


def _replaces_value(old: Statement, new: Statement) -> bool:
    """Tell whether `new` repeats all words of `old` but one value, with a cue that `old` has not.

    The former value may follow: "on Friday instead of Thursday". A number needs no cue behind "is" or
    "costs", nor at the end or before its unit behind another word without content; a time, month or day needs
    none behind "is": "the limit is 30", "the limit is 50". Behind another word it is a thing's name or an
    event's amount: "closed ticket 41", "ran 5 km".
    """
    size = len(old.frame)
    if size > len(new.frame):
        return bool(new.cues) and _have_other_names(old, new)
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
        if is_other and kinds == [{"name"}]:
            at = new.frame.index(others[0][1])
            return at == 0 or new.frame[at - 1].key not in _ADDITIVE
        return is_other or _have_other_names(old, new)
    rest = new.frame[size:]
    if len(others) != 1 or (rest and rest[0].key not in _SINCE):
        return False
    was, word = others[0]
    if was.unit == word.unit == "day":
        return True  # an event on another day is on another subject
    before = new.frame[: new.frame.index(word)]
    if was.unit != word.unit or all(each.kind != "word" for each in before):
        return False
    is_last = new.frame[size - 1] == word
    if is_last and before[-1].kind == "name" and _search("using", new):
        return word.kind == was.kind  # another version, which may look like a time
    if kinds == [{"when"}]:
        is_held = not _DATED.isdisjoint(each.key for each in before)
        return is_held and not _is_weekday(word.key)  # which several may be
    return kinds == [{"number"}] and (
        before[-1].key in _HOLDING
        or (not before[-1].kind and (bool(word.unit) or is_last))
        or (is_last and before[-1].key in _NUMBERED)
    )


def _have_other_names(old: Statement, new: Statement) -> bool:
    """Tell whether two statements differ in a name of a few words alone: "goes to Park School"."""
    keys, new_keys = ([word.key for word in each.frame] for each in (old, new))
    begin = _count_alike(keys, new_keys)
    end = _count_alike(keys[begin:][::-1], new_keys[begin:][::-1])
    names, new_names = (
        each.frame[begin : len(each.frame) - end] for each in (old, new)
    )
    return (
        begin > 1
        and not _ADDITIVE & {keys[begin - 1]}
        and all(
            0 < len(each) <= NAME_WORDS_MAX
            and all(word.kind == "name" for word in each)
            for each in (names, new_names)
        )
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
        *_compare_former(old, new),
        "new" in new.signs,
        "new" in old.signs,
        ("naming" in old.signs) * (1 + (not new.signs.isdisjoint(_NAMES))),
        _names_owner(new, ours, old) or _names_owner(old, theirs, new),
    )
    return [float(number) for number in numbers]


def plain_margin(features: Sequence[float]) -> float:
    """Return how much less odds by vectors have to be where words say plainly that a statement ends.

    The words are plain where a cue comes with the whole former value, or with another value of one kind in
    much of the older statement's words. With `now`, most of these words are enough.
    """
    is_now = features[CUES.index("now")]
    is_plain = features[CUE_COUNT] and (
        features[FORMER_SHARE] == 1
        or features[VALUE_SHARE] > PLAIN_VALUE_SHARE_MIN
        or (is_now and features[SHARE] > PLAIN_SHARE_MIN)
    )
    return PLAIN_MARGIN if is_plain else 0.0


def _names_owner(
    statement: Statement, are_shared: Sequence[bool], other: Statement
) -> bool:
    """Tell whether a statement is on what belongs to something in `other`: "Lara's brother" beside "Lara"."""
    pairs = zip(statement.words, are_shared, are_shared[1:], strict=False)
    keys = {f"{word.key}s" for word in other.words}
    return any(
        is_shared and not is_next and (word.is_owner or word.key in keys)
        for word, is_shared, is_next in pairs
    )


def _compare_former(old: Statement, new: Statement) -> tuple[float, float]:
    """Return the share of the former values of `new` that `old` names, and of its words that they are.

    The first is -1 where `new` names none.
    """
    if not new.former:
        return -1.0, 0.0
    named = [_is_among(word.key, old) for word in new.former]
    keys = {word.key for word in new.former}
    theirs = [any(is_same_word(word.key, key) for key in keys) for word in old.words]
    return sum(named) / len(named), sum(theirs) / len(theirs)


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


def _count_alike(first: Sequence[str], second: Sequence[str]) -> int:
    """Return with how many equal items two sequences begin."""
    pairs = zip(first, second, strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


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
    shared = _count_alike(key, other)
    if shared >= 3 and _CYRILLIC_ENDS.fullmatch(f"{key[shared:]} {other[shared:]}"):
        return True
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
    """Read the tables of the model, once, when the first sentences are rated.

    A tree is a leaf, or [number of a feature, limit, tree up to the limit, tree above it].
    """
    tables = read_tables(__file__, "model.toml")
    return {
        name: table | {"trees": json.loads(table["trees"].replace("\n", ""))}
        for name, table in tables.items()
    }
