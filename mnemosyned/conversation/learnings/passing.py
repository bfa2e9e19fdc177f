"""Recognition of preferences said in passing: the clause that states one, as a standing preference.

"I'm building a site, and I prefer plain HTML over frameworks, can you help?" is held as "Prefers
plain HTML over frameworks". A preference is held in the third person; a constraint, such as "Keep
it under 100 KB", as the imperative or in the user's words.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import islice

from mnemosyned.conversation.learnings.passing_tables import (
    DUTCH,
    ENGLISH,
    GERMAN,
    SWEDISH,
    PassingTable,
)
from mnemosyned.conversation.learnings.passing_tables_romance import (
    FRENCH,
    ITALIAN,
    POLISH,
    PORTUGUESE,
    RUSSIAN,
    SPANISH,
)
from mnemosyned.conversation.learnings.rule_tables import parse_table, substitute_parts
from mnemosyned.memory.learning import LearningKind

PASSING_LANGUAGES: Mapping[str, PassingTable] = {
    "english": ENGLISH,
    "german": GERMAN,
    "french": FRENCH,
    "spanish": SPANISH,
    "italian": ITALIAN,
    "portuguese": PORTUGUESE,
    "dutch": DUTCH,
    "swedish": SWEDISH,
    "polish": POLISH,
    "russian": RUSSIAN,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class PassingLimits:
    """How much of a sentence is read, and how long a clause may be."""

    starts_max: int = 16
    """Clauses of a sentence that are tried."""
    clause_chars_min: int = 3
    clause_chars_max: int = 160
    """A longer clause is no preference that could be read alone."""
    object_words_max: int = 24
    joined_words_max: int = 3
    """Words after a comma that still belong to one word before it: "short, plain sentences"."""


LIMITS = PassingLimits()

_KINDS = {
    "states": LearningKind.PREFERENCE,
    "asks": LearningKind.INSTRUCTION,
    "inside": LearningKind.PREFERENCE,
}
_QUESTION_ENDS = ("?", "？")
_FORM_FIELD = re.compile(r"\{(\w+)\}")
_GROUP_NAME = re.compile(r"\(\?P<\w+>")
_SPACES = re.compile(r"\s+")
_WORD = re.compile(r"\w+")
_TRIMMED = " \t,;:.!?…–—-"


@dataclass(frozen=True, slots=True)
class PassingStatement:
    """A preference in the form it is held in, and where in the sentence it was said."""

    kind: LearningKind
    text: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class _PassingRule:
    name: str
    pattern: re.Pattern[str]
    form: str


@dataclass(frozen=True, slots=True)
class _CompiledTable:
    """The compiled patterns of a `PassingTable`."""

    at_starts: Sequence[_PassingRule]
    any_at_start: re.Pattern[str]
    """Matches where one of `at_starts` does, in the time of a few of them."""
    inside: Sequence[_PassingRule]
    start: re.Pattern[str]
    lead: re.Pattern[str]
    end: re.Pattern[str]
    next_clause: re.Pattern[str]
    """Matches a comma after which another clause begins."""
    guard: re.Pattern[str]
    unclear: re.Pattern[str]
    once: re.Pattern[str]
    third_person: Sequence[tuple[re.Pattern[str], str]]
    own_words: Mapping[str, str]
    own_word: re.Pattern[str] | None

    @property
    def rules(self) -> Sequence[_PassingRule]:
        """All rules, in the order in which they are tried."""
        return [*self.at_starts, *self.inside]


def find_passing(
    sentence: str, blanked: str, languages: Collection[str]
) -> list[PassingStatement]:
    """Return what a sentence prefers in passing, in order; `blanked` has its quotations blanked."""
    low = _lower_case(blanked)
    found: list[PassingStatement] = []
    for language in PASSING_LANGUAGES:
        if language in languages:
            found += _find_in_language(sentence, low, compiled_table(language))
        if found:
            break
    return sorted(found, key=lambda statement: statement.start)


def _find_in_language(
    sentence: str, low: str, table: _CompiledTable
) -> list[PassingStatement]:
    found: list[PassingStatement] = []
    for rule, match in _rule_matches(low, table):
        overlaps = any(match.start() < s.end and s.start < match.end() for s in found)
        if overlaps or table.guard.search(low[: match.start()].rstrip()):
            continue
        statement = _statement_of(sentence, low, rule, match, table)
        if statement:
            found.append(statement)
    return found


def _rule_matches(
    low: str, table: _CompiledTable
) -> Iterator[tuple[_PassingRule, re.Match[str]]]:
    """Yield each rule that matches at the start of a clause, then those that match within one."""
    for position in _clause_starts(low, table):
        if not table.any_at_start.match(low, position):
            continue
        for rule in table.at_starts:
            match = rule.pattern.match(low, position)
            if match:
                yield rule, match
                break
    for rule in table.inside:
        match = rule.pattern.search(low)
        if match:
            yield rule, match


def _clause_starts(low: str, table: _CompiledTable) -> Iterator[int]:
    """Yield the positions where a clause begins, its leading words skipped and not skipped."""
    seen: set[int] = set()
    for start in islice(table.start.finditer(low), LIMITS.starts_max):
        position = start.end()
        while position not in seen:
            seen.add(position)
            yield position
            lead = table.lead.match(low, position)
            if lead:
                position = lead.end()


def _statement_of(
    sentence: str,
    low: str,
    rule: _PassingRule,
    match: re.Match[str],
    table: _CompiledTable,
) -> PassingStatement | None:
    """Return the statement of a match, if what it prefers stands alone."""
    end = _clause_end(low, match.end(), table)
    preferred = sentence[match.end() : end].strip(_TRIMMED)
    said = low[match.end() : end].strip(_TRIMMED)
    occasion = low[match.start() : end]
    has_object = "{x}" in rule.form
    if has_object:
        preferred, said, occasion = "", match["x"], match["x"]
    if rule.name == "states":
        is_empty = not has_object and not _word_count(said)
        if is_empty or _is_asked(low, end) or table.unclear.match(said):
            return None
    if _word_count(said) > LIMITS.object_words_max or table.once.search(occasion):
        return None
    text = _held_form(sentence, rule, match, preferred, table)
    if not LIMITS.clause_chars_min <= len(text) <= LIMITS.clause_chars_max:
        return None
    return PassingStatement(_KINDS[rule.name], text, match.start(), end)


def _is_asked(low: str, end: int) -> bool:
    """Tell whether a clause is the last of a question."""
    return low.endswith(_QUESTION_ENDS) and end >= len(low.rstrip(_TRIMMED))


def _clause_end(low: str, start: int, table: _CompiledTable) -> int:
    """Return where a clause ends; a comma after its first word joins two adjectives."""
    end = table.end.search(low, start)
    if not end:
        return len(low)
    is_first_word = end[0] == "," and _word_count(low[start : end.start()]) == 1
    if is_first_word and not table.next_clause.match(low, end.start()):
        further = table.end.search(low, end.end())
        stop = further.start() if further else len(low)
        joined = _word_count(low[end.end() : stop])
        if joined <= LIMITS.joined_words_max and low[stop : stop + 1] != "?":
            return stop
    return end.start()


def _word_count(text: str) -> int:
    return len(_WORD.findall(text))


def _held_form(
    sentence: str,
    rule: _PassingRule,
    match: re.Match[str],
    preferred: str,
    table: _CompiledTable,
) -> str:
    """Return the clause in the third person, with a capital letter."""

    def fill(field: re.Match[str]) -> str:
        start, end = match.span(field[1])
        said = sentence[start:end] if start >= 0 else ""
        return _third_person(said, table) if field[1] == "v" else said

    joint = "," if match[0].rstrip().endswith(",") else ""
    words = f"{_FORM_FIELD.sub(fill, rule.form).rstrip(',')}{joint} {preferred}"
    if table.own_word and rule.name == "states":
        words = table.own_word.sub(
            lambda word: table.own_words[word[0].casefold()], words
        )
    text = _SPACES.sub(" ", words).strip(_TRIMMED).replace(" ,", ",")
    return text[:1].upper() + text[1:]


def _third_person(verb: str, table: _CompiledTable) -> str:
    for ending, replacement in table.third_person:
        changed, count = ending.subn(replacement, verb.lower(), count=1)
        if count:
            return changed
    return verb


def _lower_case(text: str) -> str:
    """Return a text in lower case, of the same length."""
    low = text.lower()
    return low if len(low) == len(text) else text.replace("İ", "I").lower()


@cache
def compiled_table(language: str) -> _CompiledTable:
    """Return the compiled table of a language, compiled on first use."""
    table = PASSING_LANGUAGES[language]
    parts = dict(parse_table(table.parts))
    rules = [_parse_rule(name, rule, parts) for name, rule in parse_table(table.rules)]
    joined = table.conjunctions
    starts = rf"(?:{table.starters})\b"
    listed = rf"\s[^,.;:!?]{{1,30}}(?:,\s[^,.;:!?]{{1,30}}){{0,4}},?\s(?:{joined})\s"
    comma = rf",(?=\s{starts})|,(?!{listed})(?!\s(?:{table.negations})\b)"
    at_starts = [rule for rule in rules if rule.name != "inside"]
    nameless = (_GROUP_NAME.sub("(?:", rule.pattern.pattern) for rule in at_starts)
    own = sorted((re.escape(word) for word, _ in table.own_words), key=len)[::-1]
    return _CompiledTable(
        at_starts=at_starts,
        any_at_start=re.compile("|".join(nameless)),
        inside=[rule for rule in rules if rule.name == "inside"],
        start=re.compile(rf"^[\s*•-]*|[,;:(.!?]\s+|\s[–—-]\s|\b(?:{joined}),?\s(?=\S)"),
        lead=re.compile(rf"(?:{table.leads})\b[\s,:–—-]+"),
        end=re.compile(
            rf"[;!?…()\n]|[.:](?=\s|$)|\s[–—-]+\s|,?\s(?:{table.reasons})\b"
            rf"|{comma}|\s(?:{joined})\s(?={starts})"
        ),
        next_clause=re.compile(rf",\s{starts}"),
        guard=re.compile(table.guards),
        unclear=re.compile(table.unclear),
        once=re.compile(table.once),
        third_person=[
            (re.compile(ending), form) for ending, form in table.third_person
        ],
        own_words=dict(table.own_words),
        own_word=re.compile(rf"\b(?:{'|'.join(own)})\b(?!')", re.IGNORECASE)
        if own
        else None,
    )


def _parse_rule(name: str, rule: str, parts: Mapping[str, str]) -> _PassingRule:
    pattern, _, form = rule.partition(" =>")
    whole = substitute_parts(pattern, parts) + ",? ?"
    return _PassingRule(name, re.compile(whole), form.strip())
