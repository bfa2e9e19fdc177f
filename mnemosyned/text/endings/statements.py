"""Recognizes that a newer statement ends an older one: a new value, a dropped decision, a correction.

Sentences have signs by which one may end another: cues, values, and words with content. The signs
of both are numbers, which trees fitted on pairs by several authors turn into a probability
(`tests/bench/fit_endings.py`). Vectors of the sentences add what they mean, where an encoder is up.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, takewhile
from typing import NamedTuple, Protocol

from mnemosyned.text.languages.tables import (
    CHINESE_WORDS,
    COUNTS,
    LANGUAGES,
    MONTHS,
    WEEKDAYS,
)
from mnemosyned.text.rule_files import compile_on_use, read_tables
from mnemosyned.text.sentences import QUESTION_MARKS, split_sentences
from mnemosyned.text.terms import (
    STOP_WORDS,
    count_unspaced,
    fold_case,
    irregular_forms,
    stem,
)
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
BY_PATTERN = "by pattern"
"""The sign of a Chinese, Japanese or Korean sentence, whose words a pattern finds."""
_WORD_ENDS = r"(?!\w|-(?!(?:se|me|te|nos)(?!\w)))"
"""No letter follows, nor a hyphen that joins more than a pronoun: `mudou-se`, but not `rose-garden`."""
_TOKEN = re.compile(r"[^\W_](?:(?:[\w.@:/%+'-]|(?<=\d),(?=\d))*\w)?[%€$£]?")
_TIME = re.compile(r"\d{1,2}(?:[:h.]\d\d|h|am|pm)\Z")
_HOUR_UNIT = re.compile(r" (?:am|pm|uhr|h)(?!\w)")
_HOUR = re.compile(r"1?\d|2[0-4]")
_AT = re.compile(r"(?<!\w)(?:at|um|om|las|alle|às|kl\.?|klockan|o|в) $")
_QUOTED = re.compile(r"[\"“„«‚][^\"”“»]{2,200}[\"”“»]")


def list_sentences(text: str) -> list[str]:
    """Return the sentences of a text, as `Ending.places` counts them."""
    normal = unicodedata.normalize("NFC", text)
    return [sentence for sentence, _ in split_sentences(normal)]


def sentence_at(text: str, place: int) -> str:
    """Return the sentence with the number `place`, from `Ending.places`; empty beyond the last sentence."""
    return "".join(list_sentences(text)[place : place + 1])


class LanguageRules:
    """The patterns and words of one language, by their names in the file."""

    def __init__(self, code: str, table: Mapping[str, str]) -> None:
        """Read the patterns and words of a table; `code` is that of its language."""
        self.code = code
        self.joints = table["joints"]
        self.is_spaced = "letters" not in table
        others = ("empty", "joints")
        texts = {name: text for name, text in table.items() if name not in others}
        hints = "|".join(f"(?:{texts[name]})" for name in CUES)
        start, before, end = "", "", ""
        joints = self.joints
        if self.is_spaced:
            start, before, end = r"(?<![\w-])", r"(?<!\w)", _WORD_ENDS
            joints = rf"(?:[,;:]| [–—-]) (?:(?:{joints}) )?| (?:{joints}) "
        self.patterns = {
            name: compile_on_use(f"{start}(?:{text}){end}")
            for name, text in texts.items()
        } | {
            "hint": compile_on_use(f"{before}(?:{hints})"),
            "joints": compile_on_use(joints),
        }
        if code == "zh":
            self.patterns["tokens"] = CHINESE_WORDS
        words = table.get("empty", "")
        for each in LANGUAGES:
            if each.code == code:
                words += f" {each.stop_words} {each.question_stop_words}"
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
_SPACED_RULES = tuple(each for each in RULES if each.is_spaced)
_OPENER = re.compile(_SHARED["openers"] + r"(?<!\w)")
NEGATION = re.compile(rf"(?<!\w)(?:{_SHARED['negation']})(?!\w)")
_WEEKDAYS = frozenset(map(fold_case, (*WEEKDAYS, *_SHARED["weekdays"].split())))
MONTH_WORDS = frozenset(map(fold_case, MONTHS))
_MONTH = f"(?:{'|'.join(sorted(MONTHS, key=len, reverse=True))})"
_FIRST_DAY = compile_on_use(rf"(?<!\w)(?:{_SHARED['firsts']})(?!\w)")
NAMING = ("naming", "renaming")
PATTERNS = {
    name: compile_on_use(rf"(?<!\w)(?:{_SHARED[name]})(?!\w)")
    for name in _SHARED["patterns"].split()
} | {
    "day": compile_on_use(
        rf"(?<![\w.:,])(?:(?:\d{{1,2}}(?:\.|st|nd|rd|th|er|º|°)?|{_SHARED['firsts']}) (?:of |de |di )?{_MONTH}"
        rf"|{_MONTH} (?:the )?(?:\d{{1,2}}(?:st|nd|rd|th)?|first)|\d{{1,2}}(?:st|nd|rd|th)(?! \w)"
        r"|d[ií]a \d{1,2})(?![\w:%]|[.,]\d)"
    )
}
"""Patterns of all languages, in lower case: what names a thing, gives it another name, or stands before a thing
that is removed or not chosen; and a `day` of a month, such as "9 may", "may 9th", "on the 9th.", "1. juni",
"dia 9" or "first of march"."""
_COUNTS = frozenset(fold_case(_SHARED["numbers"]).split()) | frozenset(
    fold_case(word) for word, number in COUNTS.items() if number > 1
)
_GIVEN_NAMES = frozenset(_SHARED["given_names"].split())
UNITS: Mapping[str, re.Pattern[str]] = {
    name: compile_on_use(fold_case(units)) for name, units in _SHARED["units"].items()
}


class StatementWord(NamedTuple):
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
    """A sentence that may end an older sentence, or be ended, with its cues and content words."""

    text: str
    words: tuple[StatementWord, ...]
    """The words with content."""
    frame: tuple[StatementWord, ...]
    """All words outside the cues, function words too."""
    cues: Mapping[str, re.Match[str]]
    """The first match of each cue in it, in lower case, by their names in `CUES`."""
    signs: frozenset[str]
    """Those of `DOUBTS` that it has, and `i` (the first person), `negation`, `new` (the adjective),
    `german` (its nouns begin with a capital), `naming` (it says what a thing is called), `renaming` (it
    gives a thing another name) and `residing` (it says where something is)."""
    former: tuple[StatementWord, ...] = ()
    """The words with content that it names as a former value: "Hetzner" in "from Hetzner to OVH"."""
    place: int = 0
    """The number of the sentence in its text, from 0."""
    span: tuple[int, int] = (0, 0)
    """Of a clause: its start and end in the sentence; (0, 0) for a whole sentence."""


@clear_on_forget
@lru_cache(maxsize=SENTENCES_CACHED_MAX)
def read_statements(text: str) -> tuple[Statement, ...]:
    """Return the statements among the first sentences of a text, each read in its language; no questions."""
    sentences = list_sentences(text[:READ_CHARS_MAX])
    if len(text) > READ_CHARS_MAX:
        del sentences[-1:]  # it is cut
    read = (
        read_statement(sentence, place)
        for place, sentence in enumerate(sentences[:SENTENCES_MAX])
        if not sentence.rstrip(' "”»」').endswith(QUESTION_MARKS)
    )
    return tuple(statement for statement in read if statement)


def find_languages(low: str) -> list[LanguageRules]:
    """Return the rules of the language with most function words of a text in lower case; several in a tie.

    Each run of Chinese, Japanese and Korean letters counts as one.
    """
    tokens = {fold_case(match[0]) for match in _TOKEN.finditer(low)}
    scores = [len(tokens & each.empty) for each in _SPACED_RULES]
    most = max(scores)
    if (runs := count_unspaced(low)) and runs >= most:
        for each in RULES[len(_SPACED_RULES) :]:
            if each.find("letters", low):
                return [each]
    pairs = zip(_SPACED_RULES, scores, strict=True)
    return [each for each, score in pairs if score == most]


def read_statement(sentence: str, place: int) -> Statement | None:
    """Return a sentence as a statement, by the rules of its language; None without content or if too long."""
    text = sentence.replace("’", "'")
    low = text.lower()
    if len(low) != len(text):
        return None
    read = [
        (each, {name: match for name in CUES if (match := each.find(name, low))})
        for each in find_languages(low)
    ]
    rules, cues = max(read, key=lambda each: len(each[1]))
    spans: list[tuple[int, int]] = []
    """Those of the cues' own words: of "not" and "anymore" in "not using X anymore"."""
    for cue in cues.values():
        enclosed = [cue.span(n) for n in range(1, len(cue.groups()) + 1) if cue[n]]
        ends = [cue.start(), *chain.from_iterable(enclosed), cue.end()]
        spans += zip(ends[::2], ends[1::2], strict=True)
    if opener := _OPENER.match(low):
        spans.append(opener.span())
    frame = tuple(
        _read_words(text, low, rules, spans)
        if rules.is_spaced
        else _read_words_by_pattern(low, rules.patterns["tokens"], spans)
    )
    words = tuple(word for word in frame if word.kind)
    if not words or len(words) > WORDS_MAX:
        return None
    signs = {name for name in (*DOUBTS, "i", "new") if rules.find(name, low)}
    if not rules.is_spaced:
        signs.add(BY_PATTERN)
        if rules.find("negation", low):
            signs.add("negation")
    former = [
        match.span(group)
        for match in (rules.patterns["former"].finditer(low) if cues else ())
        for group in range(1, len(match.groups()) + 1)
    ]
    named = tuple(w for w in words if any(a <= w.start < z for a, z in former))
    start = min((match.start() for match in cues.values()), default=len(low))
    if any(match.start() < start < match.end() for match in _QUOTED.finditer(text)):
        signs.add("open")
    if any(no[0] != "no" or rules.code != "pt" for no in NEGATION.finditer(low)):
        signs.add("negation")
    if rules.code == "de":
        signs.add("german")
    signs |= {name for name in (*NAMING, "residing") if PATTERNS[name].search(low)}
    return Statement(sentence, words, frame, cues, frozenset(signs), named, place)


def _read_words(
    text: str, low: str, rules: LanguageRules, cues: Sequence[tuple[int, int]]
) -> Iterator[StatementWord]:
    """Yield the words of a sentence with their kinds, except its cues; `low` is `text` in lower case."""
    has_digit = any(map(str.isdigit, low))
    may_have_day = has_digit or _FIRST_DAY.search(low)
    days = [d.span() for d in PATTERNS["day"].finditer(low)] if may_have_day else []
    for match in _TOKEN.finditer(low):
        start, end = match.span()
        word = match[0].removesuffix("'s")
        if "'" in word[:5] and len(word) - word.index("'") > 2:
            start += word.index("'") + 1  # an elided article: `l'adresse`
            word = low[start:end]
        if cues and any(first <= start < last for first, last in cues):
            continue
        key = fold_case(word)
        is_name = start > 0 and text[start].isupper()
        unit = ""
        is_at = bool(has_digit and _HOUR.fullmatch(word) and _AT.search(low, 0, start))
        is_in_day = days and any(first <= start < last for first, last in days)
        if is_in_day and not is_at and word not in ("of", "de", "di", "the"):
            kind, unit = "when", "" if word in MONTHS else "day"
        elif not word.isalpha() and any(map(str.isdigit, word)):
            kind = "number" if word[0].isdigit() else "code"
            if _TIME.match(word) or _HOUR_UNIT.match(low, end):
                kind = "when"
        elif is_weekday(key) and key not in rules.empty:
            kind = "when"
        elif text[start:end] in _GIVEN_NAMES:
            kind = "name" if is_name else "word"
        elif key in rules.empty or (len(key) == 1 and not is_name):
            kind = ""
        elif key in _COUNTS:
            kind = "number"
        elif key in MONTH_WORDS and len(key) > 3 and key not in ("march", "may"):
            kind = "when"
        else:
            is_name = is_name or text[start + 1 : end] != low[start + 1 : end]
            kind = "name" if is_name else "word"  # as in "ClickHouse is out"
        if kind == "number":
            after = fold_case("".join(low[end:].split(maxsplit=1)[:1]).strip(".,;:!)"))
            kinds = (name for name, each in UNITS.items() if each.fullmatch(after))
            unit = next(kinds, "")
            if is_at and not unit and not text[end + 1 : end + 2].isupper():
                kind = "when"  # else it is of an address, as in "at 14 King Street"
        is_owner = match[0].endswith("'s")
        yield StatementWord(key, start, kind, unit, is_owner)


def _read_words_by_pattern(
    low: str, tokens: re.Pattern[str], cues: Sequence[tuple[int, int]]
) -> Iterator[StatementWord]:
    """Yield the words of a Chinese, Japanese or Korean sentence, as `_read_words` does in other languages."""
    parts: list[tuple[int, int]] = []
    """Those between the cues, read one by one, as a word might begin before a cue and end in it."""
    begin = 0
    for first, last in (*sorted(cues), (len(low), 0)):
        parts.append((begin, first))
        begin = max(begin, last)
    for match in chain.from_iterable(tokens.finditer(low, *part) for part in parts):
        group = match.lastgroup or ""
        start, end = match.span(group)
        key, kind, unit = fold_case(low[start:end]), group.rstrip("23"), ""
        if kind == "number":
            kinds = (name for name, each in UNITS.items() if each.match(low, end))
            unit = next(kinds, "")
        elif kind == "day":
            kind, unit = "when", kind
        elif kind == "name" and any(map(str.isdigit, key)):
            kind = "code"
        yield StatementWord(key, start, kind.replace("empty", ""), unit)


def is_weekday(key: str) -> bool:
    """Return True if a word in lower case, without accents, is a weekday or its plural."""
    return key.removesuffix("s") in _WEEKDAYS or key in _WEEKDAYS


_CYRILLIC_ENDS = re.compile(r"[аеиоуыэюяймьх]{0,3} [аеиоуыэюяймьх]{0,3}")
"""What two forms of a short Russian word may differ in, as of "рыба" and "рыбы"."""
EXACT_KINDS = ("when", "number", "code")
"""Kinds of words that may be another value without a cue."""
VALUE_KINDS = (*EXACT_KINDS, "name")
PAIRS_CACHED_MAX = 20_000
"""Pairs of words of which it is kept whether they are forms of one."""


class SentenceMeanings(Protocol):
    """Evidence from the vectors of sentences."""

    def rate_changes(self, sentences: Sequence[str]) -> Sequence[float]:
        """Return the log odds that each sentence reports a change; `sentences` must not be empty."""
        ...

    def compare(
        self, newer: str, olders: Sequence[str]
    ) -> Sequence[tuple[float, float]]:
        """Return (cosine to `newer`, log odds of an ending by `newer`) for each older sentence."""
        ...


def names_owner(
    statement: Statement, are_shared: Sequence[bool], other: Statement
) -> bool:
    """Return True if a statement is about a thing of somebody in `other`: "Lara's brother" for "Lara"."""
    pairs = zip(statement.words, are_shared, are_shared[1:], strict=False)
    keys = {f"{w.key}s" for w in other.words if other.text[w.start].isupper()}
    return any(
        is_shared and not is_next and (word.is_owner or word.key in keys)
        for word, is_shared, is_next in pairs
    )


def is_among(key: str, statement: Statement) -> bool:
    """Return True if a word occurs in a statement, in any form."""
    initial = key[0]  # which forms of one word share
    return any(
        other.key[0] == initial and is_same_word(key, other.key)
        for other in statement.words
    )


@clear_on_forget
@lru_cache(PAIRS_CACHED_MAX)
def is_same_word(key: str, other: str) -> bool:
    """Return True if two words in lower case, without accents, are forms of one word."""
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
    if shared >= 3 and _CYRILLIC_ENDS.fullmatch(f"{key[shared:]} {other[shared:]}"):
        return True
    shorter, longer = sorted((len(key), len(other)))
    return (
        shorter >= 4 <= shared
        and longer - shared <= max(2, longer // 3)
        and (shared < shorter or longer - shorter < 4)  # not "gemeentehuis"
        and (shared > 4 or 7 * shared >= 4 * longer)
    )
