"""Sentences with the signs by which one may end another: cues, values, and words with content."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain

from mnemosyned.text.languages.tables import COUNTS, LANGUAGES, MONTHS, WEEKDAYS
from mnemosyned.text.rule_files import read_tables
from mnemosyned.text.sentences import split_sentences
from mnemosyned.text.stems import fold_case
from mnemosyned.text.terms import STOP_WORDS
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
_TOKEN = re.compile(r"[^\W_](?:[\w.@:/%+'-]*\w)?[%€$£]?")
_TIME = re.compile(r"\d{1,2}(?:[:h.]\d\d|h|am|pm)\Z")
_QUOTED = re.compile(r"[\"“„«‚][^\"”“»]{2,200}[\"”“»]")


def list_sentences(text: str) -> list[str]:
    """Return the sentences of a text, as `Ending.places` counts them."""
    normal = unicodedata.normalize("NFC", text)
    return [sentence for sentence, _ in split_sentences(normal)]


def sentence_at(text: str, place: int) -> str:
    """Return the sentence of a text with a number from `Ending.places`; empty if it has none."""
    return "".join(list_sentences(text)[place : place + 1])


class LazyPatterns(dict[str, re.Pattern[str]]):
    """Patterns by name, each compiled when it is first used: few programs meet ten languages."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        super().__init__()
        self.texts = texts
        """The patterns as texts."""

    def __missing__(self, name: str) -> re.Pattern[str]:
        """Compile and keep the pattern of a name."""
        pattern = self[name] = re.compile(self.texts[name])
        return pattern


class LanguageRules:
    """The patterns and words of one language, by their names in the file."""

    def __init__(self, code: str, table: Mapping[str, str]) -> None:
        """Read the patterns and words of a table; `code` is that of its language."""
        self.code = code
        texts = {name: text for name, text in table.items() if name != "empty"}
        hints = "|".join(f"(?:{texts[name]})" for name in CUES)
        self.patterns = LazyPatterns(
            {name: rf"(?<![\w-])(?:{text}){_WORD_ENDS}" for name, text in texts.items()}
            | {"hint": rf"(?<!\w)(?:{hints})"}
        )
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
_COUNTS = frozenset(fold_case(_SHARED["numbers"]).split()) | frozenset(
    fold_case(word) for word, number in COUNTS.items() if number > 1
)
STANDING = frozenset(map(fold_case, _SHARED["standing"].split()))
"""Verbs of an amount that holds until another is said: "costs", "lasts"."""
_UNITS: Mapping[str, re.Pattern[str]] = {
    name: re.compile(fold_case(units)) for name, units in _SHARED["units"].items()
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
    """The kind of the unit behind a number, as `time` or `data`; empty for none."""


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
    """Those of `DOUBTS` that it has, and `i` (the first person) and `negation`."""
    place: int = 0
    """The number of the sentence in its text, from 0."""


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
    signs = {name for name in (*DOUBTS, "i") if rules.find(name, low)}
    start = min((match.start() for match in cues.values()), default=len(low))
    if any(match.start() < start < match.end() for match in _QUOTED.finditer(text)):
        signs.add("open")
    if _NEGATION.search(low):
        signs.add("negation")
    return Statement(sentence, words, frame, cues, frozenset(signs), place)


def _list_cue_spans(cue: re.Match[str]) -> list[tuple[int, int]]:
    """Return the spans of a cue without what it encloses: "not" and "anymore" of "not using X anymore"."""
    inner = [cue.span(group) for group in range(1, len(cue.groups()) + 1) if cue[group]]
    ends = [cue.start(), *chain.from_iterable(inner), cue.end()]
    return list(zip(ends[::2], ends[1::2], strict=True))


def _read_words(
    text: str, low: str, rules: LanguageRules, cues: Sequence[tuple[int, int]]
) -> Iterator[StatementWord]:
    """Yield the words of a sentence, `low` in lower case, outside the spans of its cues."""
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
        if not word.isalpha() and any(map(str.isdigit, word)):
            kind = "number" if word[0].isdigit() else "code"
            if _TIME.match(word) or low.startswith((" am", " pm", " uhr", " h"), end):
                kind = "when"
        elif key.removesuffix("s") in _WEEKDAYS or key in _WEEKDAYS:
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
        yield StatementWord(key, start, kind, unit)
