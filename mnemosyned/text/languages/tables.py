"""Languages that texts are read in, each a TOML file here, and the detection of a text's language.

A new language is a new file and its name in `_FILES`; the fields of `Language` explain its
tables. The patterns of `order` may take several lines, which are joined without their line
breaks. Letters and stop words of a text show its script and language.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum

from mnemosyned.text.rule_files import compile_on_use, read_tables

UNITS = ("second", "minute", "hour", "day", "week", "month", "year")
"""Units of time, in the order of their patterns in a `TimeGrammar`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeGrammar:
    """Patterns of the time expressions of a language, for translation into English."""

    phrases: Mapping[str, str]
    """Patterns of fixed expressions, by their English phrase among those of `ENGLISH`."""
    units: Mapping[str, str]
    """Patterns of the units of time, by their English names in `UNITS`."""
    ago_before: str = ""
    """Words before a number of units in the past: "vor" in "vor drei Tagen"."""
    ago_after: str = ""
    """Words after a number of units in the past: "fa" in "tre giorni fa"."""
    ahead_before: str = ""
    """Words before a number of units to come: "dans" in "dans deux jours"."""
    on_day: str
    """Words before the day of a date: "am" in "am 5. Mai"."""
    in_month: str
    """Words before a month: "im" in "im Mai"."""
    last_before: str = ""
    """Words before the last weekday, week or other period, with a space: "letzten "."""
    last_after: str = ""
    """Words after the last weekday or period: "dernier"."""
    this_before: str = ""
    """Words before the present period, with a space: "diese "."""
    on_weekday: str = ""
    """Words before a weekday of no week in particular, with a space: "am "."""
    next_before: str = ""
    """Words before the next weekday or period, with a space: "nächsten "."""
    next_after: str = ""
    """Words after the next weekday or period: "prochain"."""
    periods: Mapping[str, str]
    """Patterns of the names of periods, such as "week" or "summer", by their English names."""
    counts: Mapping[str, int] = field(default_factory=dict)
    """Further words for numbers before a unit, such as "due", which elsewhere may mean something else."""


class TimeOrder(Enum):
    """The match that a question asks for among several."""

    LATEST = "latest"
    EARLIEST = "earliest"
    CURRENT = "current"
    """The match that is true now, whatever was true before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderWords:
    """Patterns of the words with which a question asks for the newest, oldest or current match."""

    latest: str = ""
    """Before the newest of a kind: "last", "newest"."""
    earliest: str = ""
    """Before the oldest of a kind: "first"."""
    current: str = ""
    """For the present, whatever was true before: "now", "still"."""
    ahead: str
    """For the present and the future: a weekday is then the coming one."""
    soon: str
    """Words, not patterns, with which a text names a day to come without its date."""
    past: str
    """For the past: a weekday is then the last one, whatever else is said."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Language:
    """The words of a language, for all readers of texts and dates."""

    code: str
    stop_words: str
    """Frequent words that identify the language."""
    question_stop_words: str = ""
    """Words that a search ignores. Leave it empty for a language with declined nouns: without a
    stemmer, stop words may be all that a question and its answer have in common."""
    deeds: str = ""
    """Words of a question about deeds or events that carry no content: "did"."""
    continuations: str = ""
    """Words that ask an agent to go on, without content: "continue", "go ahead"."""
    months: tuple[str, ...] = ()
    """Lower-case names and abbreviations of each month, January first."""
    months_capitalized: bool = False
    """Whether a month begins with a capital within a sentence."""
    weekdays: tuple[str, ...] = ()
    """Lower-case names and abbreviations of each weekday, Monday first."""
    counts: tuple[str, ...] = ()
    """Words for each number, from one."""
    phrases: tuple[str, ...] = ()
    """Fixed time expressions in the order in which a reader tries them; English alone has them."""
    times: TimeGrammar | None = field(default=None)
    order: OrderWords | None = field(default=None)
    backward_heads: str = ""
    """First words of a sentence that depends on its predecessor: pronouns and demonstratives. Leave
    out words that are also names or articles."""
    connectives: str = ""
    """Dispensable first words that join a sentence to its predecessor: "but"."""
    openers: str = ""
    """First words that are dispensable where a comma follows: "well"."""
    courtesies: str = ""
    """First words of a short sentence that is a greeting, thanks or applause."""


def _load_language(name: str) -> Language:
    """Return the language that the TOML file `name` describes. Raises `TypeError` for an unknown field."""
    tables = {**read_tables(__file__, f"{name}.toml")}
    for key in ("months", "weekdays", "counts", "phrases"):
        tables[key] = tuple(tables.get(key, ()))
    if "times" in tables:
        tables["times"] = TimeGrammar(**tables["times"])
    if "order" in tables:
        patterns = tables["order"].items()
        joined = {key: "".join(pattern.splitlines()) for key, pattern in patterns}
        tables["order"] = OrderWords(**joined)
    return Language(**tables)


_FILES = """
    english german french spanish italian portuguese dutch swedish polish turkish russian ukrainian
""".split()
"""Names of the languages' files; if two languages match equally well, the earlier one is taken."""
LANGUAGES = tuple(map(_load_language, _FILES))
ENGLISH = LANGUAGES[0]
PHRASES = ENGLISH.phrases
GRAMMARS = [language.times for language in LANGUAGES if language.times]


_LETTERS_ALIKE = str.maketrans({"ı": "i", "ſ": "s", "\u0307": None})
"""Letters that a pattern confuses if it ignores case, as in KASIM and kasım."""


def fold_letters(text: str) -> str:
    """Return a text in lower case, with i for ı and İ and s for ſ, as case-insensitive patterns treat them."""
    return text.lower().translate(_LETTERS_ALIKE)


def numbers_by_word(tables: Iterable[Sequence[str]], *, first: int) -> dict[str, int]:
    """Return {word: its number}, for a row of words for each number, such as "january jan".

    The numbers of the rows begin with `first`.
    """
    return {
        word: number
        for table in tables
        for number, row in enumerate(table, first)
        for name in row.split()
        for word in (name, fold_letters(name))
    }


CHINESE_WORDS = compile_on_use(read_tables(__file__, "chinese.toml")["words"])
"""Pattern of the words of Chinese text in lower case; the name of the last group is the kind of a word: `word`,
`name`, `number`, `when` or `day`, or `empty` for a function word, each perhaps with a digit."""
MONTHS = numbers_by_word((language.months for language in LANGUAGES), first=1)
WEEKDAYS = numbers_by_word((language.weekdays for language in LANGUAGES), first=0)
COUNTS = numbers_by_word((language.counts for language in LANGUAGES), first=1)
COUNTS_OF_UNITS = COUNTS | {
    word: number for grammar in GRAMMARS for word, number in grammar.counts.items()
}

MONTH_NAMES = [row.split()[0].capitalize() for row in ENGLISH.months]
WEEKDAY_NAMES = [row.split()[0].capitalize() for row in ENGLISH.weekdays]
WEEKDAY_ABBREVIATIONS = [row.split()[1].capitalize() for row in ENGLISH.weekdays]
ENGLISH_MONTHS = numbers_by_word([ENGLISH.months], first=1)
ENGLISH_COUNTS = numbers_by_word([ENGLISH.counts[:10]], first=1)
"""One to ten: English date expressions contain no higher number in words."""


def join_alternatives(patterns: Iterable[str]) -> str:
    """Return one pattern that matches any of the patterns, without empty and repeated patterns."""
    return "|".join(dict.fromkeys(filter(None, patterns)))


def join_grammars(field_name: str) -> str:
    """Return one pattern for a field of `TimeGrammar` that matches in any language."""
    return join_alternatives(getattr(grammar, field_name) for grammar in GRAMMARS)


SHARE_MIN = 0.3
"""Share of the letters above which a text is written in a script; names need less."""
KNOWN_SHARE_MIN = 0.08
"""Share of the letters of its sources above which a summary may use a script."""
LETTERS_MIN = 8
WORDS_MIN = 3
"""Minimum stop words from which a text's language is detected."""
CLEAR_FACTOR = 2.0
"""Factor by which the stop words of one language must outnumber those of another."""
ALSO_SHARE_MIN = 0.25
"""Share of the stop words of the main language above which another is used as well."""
KANA_MIN = 0.05
"""Minimum share of kana among the letters of Japanese; Chinese has the same Han characters, but no kana."""

_LETTERS = re.compile(r"[^\W\d_]+")
_SCRIPTS: tuple[tuple[str, str], ...] = (
    ("latin", "A-Za-zÀ-ɏḀ-ỿ"),
    ("greek", "Ͱ-Ͽἀ-῿"),
    ("cyrillic", "Ѐ-ԯ"),
    ("hebrew", "֐-׿"),
    ("arabic", "؀-ۿݐ-ݿ"),
    ("devanagari", "ऀ-ॿ"),
    ("thai", "฀-๿"),
    ("hangul", "가-힣ᄀ-ᇿ"),
    ("kana", "\u3040-\u30ff"),
    ("han", "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"),
)
_RUNS = {name: compile_on_use(f"[{ranges}]") for name, ranges in _SCRIPTS}

_LANGUAGES_OF_WORD: dict[str, list[str]] = {}
for _language in LANGUAGES:
    for _word in _language.stop_words.split():
        _LANGUAGES_OF_WORD.setdefault(_word, []).append(_language.code)


def script_shares(text: str) -> dict[str, float]:
    """Return {name of a script, such as `han`: share of the text's letters, 0 to 1}."""
    letters = "".join(_LETTERS.findall(text))
    counts = {name: len(shape.findall(letters)) for name, shape in _RUNS.items()}
    total = sum(counts.values())
    return {name: count / total for name, count in counts.items() if count}


def foreign_script(summary: str, sources: str) -> str:
    """Return the script in which much of a summary, but little of its sources, is written; empty for none."""
    if len(_LETTERS.sub("", summary)) > len(summary) - LETTERS_MIN:
        return ""
    known = script_shares(sources)
    for name, share in script_shares(summary).items():
        if share >= SHARE_MIN and known.get(name, 0) < KNOWN_SHARE_MIN:
            return name
    return ""


def foreign_language(summary: str, sources: str) -> str:
    """Return the code of a summary's language if its sources are clearly in another; else empty."""
    ours, theirs = script_shares(summary), script_shares(sources)
    if ours.get("han", 0) >= SHARE_MIN and theirs.get("han", 0) >= SHARE_MIN / 2:
        kana, source_kana = ours.get("kana", 0), theirs.get("kana", 0)
        if kana >= KANA_MIN > source_kana:
            return "ja"
        return "zh" if not kana and source_kana >= KANA_MIN * 2 else ""
    counts, source_counts = count_stop_words(summary), count_stop_words(sources)
    most = max(source_counts.values(), default=0)
    if most < WORDS_MIN or not counts:
        return ""
    allowed = [
        name for name, count in source_counts.items() if count >= ALSO_SHARE_MIN * most
    ]
    best = max(counts, key=counts.__getitem__)
    if best in allowed:
        return ""
    rival = max(counts.get(name, 0) for name in allowed)
    least = max(WORDS_MIN, CLEAR_FACTOR * rival, CLEAR_FACTOR)
    return best if counts[best] >= least else ""


def count_stop_words(text: str) -> dict[str, float]:
    """Return {language code: number of stop words}; a word of two languages counts half for each."""
    counts: dict[str, float] = {}
    for word in _LETTERS.findall(text):
        languages = _LANGUAGES_OF_WORD.get(word.lower(), ())
        for name in languages:
            counts[name] = counts.get(name, 0.0) + 1 / len(languages)
    return counts
