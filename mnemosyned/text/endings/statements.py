"""Reads the statements of a text: words with content, cues, values, and where the subject ends."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
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
CLAUSES_MAX = 10
WORDS_MAX = 40
"""Words of a sentence above which it is prose with several statements, and ends nothing."""
SENTENCES_CACHED_MAX = 300
"""Texts whose statements are kept, at 4 kB each: of 2,000, read for endings in order, no more return."""


def list_sentences(text: str) -> list[str]:
    """Return the sentences of a text, as `Ending.places` counts them."""
    normal = unicodedata.normalize("NFC", text)
    return [sentence for sentence, _ in split_sentences(normal)]


def sentence_at(text: str, place: int) -> str:
    """Return the sentence of a text with a number from `Ending.places`; empty if it has none."""
    return "".join(list_sentences(text)[place : place + 1])


@dataclass(frozen=True, slots=True)
class StatementWord:
    """A word with content in a statement."""

    key: str
    start: int
    kind: str
    """`number`, `time`, `day` (a weekday), `month`, `code` (of letters and digits), `name` or `word`."""
    lead: str
    """The first function word before it but articles, in lower case: often a preposition."""
    unit: str = ""
    """The kind of the unit behind a number, as `time` or `data`; empty for none."""


CUE_REASONS = {
    "corrects": "corrected",
    "gone": "gone",
    "replaced": "changed",
    "changed": "changed",
    "instead": "instead",
    "now": "now",
}
_WORD_ENDS = r"(?!\w|-(?!(?:se|me|te|nos)(?!\w)))"
"""No letter follows, nor a hyphen that joins more than a pronoun: `mudou-se`, but not `rose-garden`."""


class LazyPatterns(dict[str, re.Pattern[str]]):
    """Patterns by name, each compiled when it is first used: few programs meet ten languages."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        super().__init__()
        self.texts = texts
        """The patterns as texts, whose lines are joined."""

    def __missing__(self, name: str) -> re.Pattern[str]:
        """Compile and keep the pattern of a name."""
        pattern = self[name] = re.compile(self.texts[name].replace("\n", ""))
        return pattern


class LanguageRules:
    """The patterns and words of one language, by their names in the file."""

    def __init__(self, code: str, table: Mapping[str, str]) -> None:
        """Read the patterns and words of a table; `code` is that of its language."""
        lists = {
            name: frozenset(fold_case(table[name]).split())
            for name in ("group", "weak", "empty", "articles")
        }
        self.code = code
        self.articles = lists["articles"]
        hints = "|".join(f"(?:{table[name]})" for name in (*CUE_REASONS, "single"))
        self.patterns = LazyPatterns(
            {
                name: rf"(?<![\w-])(?:{fold_case(text) if name == 'single' else text}){_WORD_ENDS}"
                for name, text in table.items()
                if name not in lists
            }
            | {"hint": rf"(?<!\w)(?:{hints})"}
        )
        language = next(each for each in LANGUAGES if each.code == code)
        stop_words = f"{language.stop_words} {language.question_stop_words}"
        self.group = lists["group"]
        self.weak = lists["weak"] | self.group
        self.empty = (
            lists["empty"]
            | self.articles
            | frozenset(fold_case(stop_words).split())
            | (STOP_WORDS if code == "en" else set())
        )

    def find(self, name: str, low: str) -> re.Match[str] | None:
        """Return the first match of the pattern `name` in a text in lower case."""
        return self.patterns[name].search(low)


_TABLES = deepcopy(read_tables(__file__, "statements.toml"))
_SHARED = _TABLES.pop("any")
RULES = tuple(LanguageRules(table.pop("code"), table) for table in _TABLES.values())
_OPENER = re.compile(_SHARED["openers"].replace("\n", "") + r"(?<!\w)")
NEW = re.compile(rf"(?<!\w)(?:{_SHARED['new']})(?!\w)")
PASSED = re.compile(rf"(?<!\w)(?:{_SHARED['passed']})(?!\w)")
PRICE = re.compile(_SHARED["price"])
NEGATION = re.compile(rf"(?<!\w)(?:{_SHARED['negation']})(?!\w)")
_WEEKDAYS = frozenset(map(fold_case, (*WEEKDAYS, *_SHARED["weekdays"].split())))
_MONTHS = frozenset(map(fold_case, MONTHS))
_COUNTS = frozenset(fold_case(_SHARED["numbers"]).split()) | frozenset(
    fold_case(word) for word, number in COUNTS.items() if number > 1
)
_UNITS: Mapping[str, re.Pattern[str]] = {
    name: re.compile(fold_case(units)) for name, units in _SHARED["units"].items()
}
_TOKEN = re.compile(r"[^\W_](?:[\w.@:/%+'-]*\w)?[%€$£]?")
_TIME = re.compile(r"\d{1,2}(?:[:h.]\d\d|h|am|pm)\Z")
_QUOTED = re.compile(r"[\"“„«‚][^\"”“»]{2,200}[\"”“»]")
CLAUSE_END = re.compile(r"[,;:()–]|\.\s|\s-\s")


_TELLING = (*CUE_REASONS, "is", "naming", "place", "work", "single")
"""Patterns by which the language of a sentence without function words is recognized."""


@dataclass(frozen=True, slots=True)
class Statement:
    """A sentence that may end another one, or be ended, with its cue and its words with content."""

    text: str
    low: str
    rules: LanguageRules
    words: tuple[StatementWord, ...]
    cues: Mapping[str, re.Match[str]]
    values_start: int
    """Where what a verb of change is followed by "to" gives its new value; 0 if it has none."""
    is_stated: bool
    """Whether it is said in the speaker's own words, about now, and as decided."""
    pivot: int
    """Where the subject ends: at the verb between subject and value or at the cue, whichever is first."""
    place: int = 0
    """The number of the sentence in its text, from 0."""

    @property
    def is_personal(self) -> bool:
        """Whether it speaks in the first person, and so of its speaker alone."""
        return bool(self.rules.find("i", self.low))

    @property
    def subject(self) -> list[StatementWord]:
        """The words with content before the verb, without those for the speakers."""
        return [
            word
            for word in self.words
            if word.start < self.pivot
            and word.kind in ("word", "name", "day", "month")
            and word.key not in self.rules.weak
        ]


@clear_on_forget
@lru_cache(maxsize=SENTENCES_CACHED_MAX)
def read_statements(
    text: str, rules: LanguageRules | None = None
) -> tuple[Statement, ...]:
    """Return the statements among the first sentences of a text, and their clauses with a cue; no questions.

    They are read by `rules`, or else by those of the language that each seems to have.
    """
    statements: list[Statement] = []
    sentences = list_sentences(text[:READ_CHARS_MAX])
    if len(text) > READ_CHARS_MAX:
        del sentences[-1:]  # it is cut
    for place, sentence in enumerate(sentences[:SENTENCES_MAX]):
        if sentence.rstrip(' "”»').endswith("?"):
            continue
        if whole := _read_statement(sentence.replace("’", "'"), rules):
            whole = replace(whole, text=sentence, place=place)
            statements += [whole, *_read_clauses(whole)]
    return tuple(statements)


def _read_clauses(whole: Statement) -> Iterator[Statement]:
    """Yield the clauses of a sentence that have a cue of their own.

    A clause behind another one that begins with a function word depends on it: "for the site, the color is".
    """
    clauses = (
        [part.strip() for part in CLAUSE_END.split(whole.text.replace("’", "'"))]
        if whole.is_stated and whole.cues
        else []
    )
    before = ""
    for clause in clauses[:CLAUSES_MAX] if len(clauses) > 1 else ():
        part = (
            _read_statement(clause, whole.rules, is_clause=before != "")
            if clause and fold_case(before) not in whole.rules.empty
            else None
        )
        if part and part.cues and len(part.words) > 1:
            yield replace(part, text=whole.text, place=whole.place)
        before = "" if _OPENER.fullmatch(clause.lower()) else clause.partition(" ")[0]


def find_languages(low: str) -> list[LanguageRules]:
    """Return the rules of the language that has most function words of a text in lower case.

    It has several if several have as many.
    """
    tokens = {fold_case(match[0]) for match in _TOKEN.finditer(low)}
    scores = [len(tokens & each.empty) for each in RULES]
    most = max(scores)
    return [each for each, score in zip(RULES, scores, strict=True) if score == most]


def _read_statement(
    text: str, rules: LanguageRules | None, *, is_clause: bool = False
) -> Statement | None:
    """Return a sentence with its words, read by the rules of its language, or None if it is too long.

    A clause from within a sentence (`is_clause`) begins with a capital only if a name does.
    """
    low = text.lower()
    if len(low) != len(text):
        return None
    likely = [rules] if rules else find_languages(low)
    language = (
        likely[0]
        if len(likely) == 1
        else max(
            likely,
            key=lambda each: sum(bool(each.find(name, low)) for name in _TELLING),
        )
    )
    cues = {name: match for name in CUE_REASONS if (match := language.find(name, low))}
    spans = [span for cue in cues.values() for span in _list_cue_spans(cue)]
    spans += [each.span() for each in language.patterns["corrects"].finditer(low)]
    if opener := _OPENER.match(low):
        spans.append(opener.span())
    words = tuple(_read_words(text, low, language, spans, names_from=not is_clause))
    if not words or len(words) > WORDS_MAX:
        return None
    verbs = (language.find(name, low) for name in ("is", "naming", "place", "work"))
    signs = (
        cue
        for name, cue in cues.items()
        if name not in ("instead", "corrects") and words[-1].start > cue.start()
    )
    starts = [
        match.start() for match in (*signs, *verbs) if match and match.start() > 0
    ]
    changed = cues.get("changed")
    to = changed and language.patterns["to"].search(low, changed.end())
    return Statement(
        text=text,
        low=low,
        rules=language,
        words=words,
        cues=cues,
        values_start=to.start() if to else 0,
        pivot=min(starts, default=0),
        is_stated=_is_stated(text, low, language, cues),
    )


def _is_stated(
    text: str, low: str, rules: LanguageRules, cues: Mapping[str, re.Match[str]]
) -> bool:
    """Tell whether a sentence says something in the speaker's own words, about now, and as decided."""
    if any(rules.find(name, low) for name in ("open", "adds", "past")):
        return False
    start = min((match.start() for match in cues.values()), default=len(low))
    says = rules.find("says", low)
    if says and says.start() < start:
        return False
    return not any(
        quoted.start() < start < quoted.end() for quoted in _QUOTED.finditer(text)
    )


def _list_cue_spans(cue: re.Match[str]) -> list[tuple[int, int]]:
    """Return the spans of a cue without what it encloses: "not" and "anymore" of "not using X anymore"."""
    inner = [cue.span(group) for group in range(1, len(cue.groups()) + 1) if cue[group]]
    ends = [cue.start(), *chain.from_iterable(inner), cue.end()]
    return list(zip(ends[::2], ends[1::2], strict=True))


def _read_words(
    text: str,
    low: str,
    rules: LanguageRules,
    cues: Sequence[tuple[int, int]],
    *,
    names_from: int,
) -> Iterator[StatementWord]:
    """Yield the words with content of a sentence outside the spans of its cues.

    `low` is the sentence in lower case; from the position `names_from`, capitals begin names.
    """
    lead = ""
    lead_is_article = False
    for match in _TOKEN.finditer(low):
        start, end = match.span()
        word = match[0].removesuffix("'s")
        if (
            "'" in word[:5] and len(word) - word.index("'") > 2
        ):  # an elided article: `l'adresse`
            start += word.index("'") + 1
            word = low[start:end]
        if any(first <= start < last for first, last in cues):
            continue
        key = fold_case(word)
        is_capital = text[start].isupper()
        is_empty = key in rules.empty or (len(key) == 1 and not is_capital)
        unit = ""
        if not word.isalpha() and any(map(str.isdigit, word)):
            kind = "number" if word[0].isdigit() else "code"
            if _TIME.match(word) or low.startswith((" am", " pm", " uhr", " h"), end):
                kind = "time"
        elif key.removesuffix("s") in _WEEKDAYS or key in _WEEKDAYS:
            kind = "day"
        elif lead_is_article and _UNITS["time"].fullmatch(key):
            kind = "number"
        elif is_empty:
            lead_is_article = key in rules.articles
            is_bare = lead_is_article or rules.patterns["is"].fullmatch(word)
            lead = lead or ("" if is_bare else word)
            continue
        elif key in _COUNTS:
            kind = "number"
        elif key in _MONTHS and _is_month(
            low, start, end, is_capital=is_capital, rules=rules
        ):
            kind = "month"
        else:
            is_name = is_capital and start >= names_from
            is_name = is_name or text[start + 1 : end] != low[start + 1 : end]
            kind = "name" if is_name else "word"  # as in "ClickHouse is out"
        if kind == "number":
            unit = key if lead_is_article else "".join(low[end:].split(maxsplit=1)[:1])
        yield StatementWord(key, start, kind, lead, unit and _name_unit(unit))
        lead = ""
        lead_is_article = False


def _is_month(
    low: str, start: int, end: int, *, is_capital: bool, rules: LanguageRules
) -> bool:
    """Tell whether a month's name in a sentence is no person's, as Jan or Marco is, nor the verb "may"."""
    if low[start - 2 : start - 1].isdigit() or low[end + 1 : end + 2].isdigit():
        return True
    if rules.code in ("en", "de"):
        return end - start > 3 and (
            is_capital or low[start:end] not in ("may", "march")
        )
    return end - start > 3 and not is_capital


def _name_unit(word: str) -> str:
    """Return the kind of a unit behind a number, the unit itself, or an empty text for no unit."""
    unit = fold_case(word.strip(".,;:!)"))
    matching = (kind for kind, units in _UNITS.items() if units.fullmatch(unit))
    return next(matching, "")
