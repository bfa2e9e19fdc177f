"""Rules that recognize learnings, in a TOML file for each language here, and preferences said in passing.

A rule is a kind and a pattern, matched at the start of a sentence or a clause. `<name>` is replaced
by the part of that name, `"_"` is quoted text.

A rule of preferences said in passing has the learned form, too: `states: i prefer => Prefers`. Its
pattern is in lower case and is at the start of a clause; the form is followed by the words up to
the end of the clause. `asks` is a constraint, `inside` a rule that may match anywhere. In a form,
`{v}` is the pattern's verb in the third person, any other name a group of the pattern.

"I'm building a site, and I prefer plain HTML over frameworks, can you help?" becomes "Prefers plain
HTML over frameworks". A constraint, such as "Keep it under 100 KB", is learned as the imperative or
in the user's words.

A line break followed by four spaces is left out. A new language is a new file and a new name in
`LANGUAGES`; `english.toml` explains each table.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from mnemosyned.memory.values import LearningKind
from mnemosyned.text.rule_files import fill_parts
from mnemosyned.text.sentences import QUESTION_MARKS

LANGUAGES = """
    english german french spanish italian portuguese dutch swedish polish russian chinese japanese
    korean
""".split()
"""Languages in the order in which their rules are tried."""
_GROUP_NAME = re.compile(r"\(\?P<\w+>")


@dataclass(frozen=True, slots=True)
class LearningRules:
    """The compiled rules of a language for instructions, names and preferences."""

    each: Sequence[tuple[LearningKind, re.Pattern[str]]]
    """Rules in order: the first that matches a clause from its start gives the kind."""
    any: re.Pattern[str]
    """Pattern of all rules together, which takes a fifth of the time."""
    convention: re.Pattern[str] | None
    """Pattern of rules that are stated as facts: "money is integer cents, never floats"."""
    alone: Sequence[re.Pattern[str]]
    """What a preference that is a whole message begins with, has, and has not; empty without a rule."""


@dataclass(frozen=True, slots=True)
class PassingRule:
    """A rule for preferences said in passing, with the form of the learning."""

    name: str
    pattern: re.Pattern[str]
    form: str


@dataclass(frozen=True, slots=True)
class PassingRules:
    """The compiled rules and words of a language for preferences said in passing."""

    at_starts: Sequence[PassingRule]
    any_at_start: re.Pattern[str]
    """Pattern of all `at_starts` together, in the time of a few of them."""
    inside: Sequence[PassingRule]
    start: re.Pattern[str]
    lead: re.Pattern[str]
    end: re.Pattern[str]
    next_clause: re.Pattern[str]
    """Matches a comma before another clause."""
    guard: re.Pattern[str]
    unclear: re.Pattern[str]
    once: re.Pattern[str]
    third_person: Sequence[tuple[re.Pattern[str], str]]
    own_words: Mapping[str, str]
    own_word: re.Pattern[str] | None


@cache
def load_table(language: str) -> Mapping[str, Any]:
    """Return the tables of a language's TOML file, or of the file shared by all for "shared"."""
    text = Path(__file__).with_name(f"{language}.toml").read_text("utf-8")
    return tomllib.loads(text.replace("\n    ", ""))


@cache
def load_rules(language: str) -> LearningRules:
    """Return a language's rules for instructions, names and preferences.

    They are compiled on first use, since English takes 20 ms, which would delay every start.
    """
    table = load_table(language)
    rules = _parse_pairs(table["rules"])
    facts = table.get("conventions", "").splitlines()
    return LearningRules(
        each=tuple((LearningKind(kind), compile_pattern(rule)) for kind, rule in rules),
        any=compile_pattern("|".join(rule for _, rule in rules)),
        convention=compile_pattern("|".join(facts)) if facts else None,
        alone=[
            compile_pattern(rf"\b{line}" if number else line)
            for number, line in enumerate(table.get("alone", "").splitlines())
        ],
    )


@cache
def load_shared_pattern(name: str) -> re.Pattern[str]:
    """Return the compiled pattern `name` of `shared.toml`, where comments explain each pattern."""
    return compile_pattern(f"<{name}>")


@cache
def load_passing_rules(language: str) -> PassingRules:
    """Return a language's rules for preferences said in passing, compiled on first use."""
    table = load_table(language)["passing"]
    parts = _parse_parts(table.get("parts", ""))
    rules: list[PassingRule] = []
    for name, rule in _parse_pairs(table["rules"]):
        pattern, _, form = rule.partition(" =>")
        whole = re.compile(fill_parts(pattern, parts) + ",? ?")
        rules.append(PassingRule(name, whole, form.strip()))
    at_starts = [rule for rule in rules if rule.name != "inside"]
    nameless = (_GROUP_NAME.sub("(?:", rule.pattern.pattern) for rule in at_starts)
    joined = table["conjunctions"]
    starts = rf"(?:{table['starters']})\b"
    listed = rf"\s[^,.;:!?]{{1,30}}(?:,\s[^,.;:!?]{{1,30}}){{0,4}},?\s(?:{joined})\s"
    comma = rf",(?=\s{starts})|,(?!{listed})(?!\s(?:{table['negations']})\b)"
    own_words = dict(table.get("own_words", ()))
    own = "|".join(map(re.escape, sorted(own_words, key=len, reverse=True)))
    return PassingRules(
        at_starts=at_starts,
        any_at_start=re.compile("|".join(nameless)),
        inside=[rule for rule in rules if rule.name == "inside"],
        start=re.compile(rf"^[\s*•-]*|[,;:(.!?]\s+|\s[–—-]\s|\b(?:{joined}),?\s(?=\S)"),
        lead=re.compile(rf"(?:{table['leads']})\b[\s,:–—-]+"),
        end=re.compile(
            rf"[;!?…()\n]|[.:](?=\s|$)|\s[–—-]+\s|,?\s(?:{table['reasons']})\b"
            rf"|{comma}|\s(?:{joined})\s(?={starts})"
        ),
        next_clause=re.compile(rf",\s{starts}"),
        guard=re.compile(table["guards"]),
        unclear=re.compile(table["unclear"]),
        once=re.compile(table["once"]),
        third_person=[
            (re.compile(ending), form) for ending, form in table.get("third_person", ())
        ],
        own_words=own_words,
        own_word=re.compile(rf"\b(?:{own})\b(?!')", re.IGNORECASE) if own else None,
    )


def _parse_pairs(table: str) -> list[tuple[str, str]]:
    """Return (name, pattern) for each line of a table, in order."""
    lines = (line.partition(": ") for line in table.splitlines())
    return [(name, pattern) for name, _, pattern in lines]


def compile_pattern(pattern: str) -> re.Pattern[str]:
    """Return a pattern compiled to ignore case; each `<name>` in it stands for a part that rules share."""
    return re.compile(fill_parts(pattern, _load_shared_parts()), re.IGNORECASE)


@cache
def _load_shared_parts() -> Mapping[str, str]:
    """Return {name: pattern} of the parts of patterns that rules have in common."""
    return _parse_parts(load_table("shared")["parts"])


def _parse_parts(table: str) -> dict[str, str]:
    """Return {name: pattern} of the parts in a table, each pattern as a group of its own."""
    return {name: f"(?:{pattern})" for name, pattern in _parse_pairs(table)}


STARTS_MAX = 16
"""Clauses of a sentence that are tried."""
CLAUSE_CHARS_MIN = 3
CLAUSE_CHARS_MAX = 160
"""Maximum characters of a clause: a longer preference could not be read alone."""
OBJECT_WORDS_MAX = 24
JOINED_WORDS_MAX = 3
"""Words after a comma that may still belong to the word before it: "short, plain sentences"."""

_KINDS = {
    "states": LearningKind.PREFERENCE,
    "asks": LearningKind.INSTRUCTION,
    "inside": LearningKind.PREFERENCE,
}
_FORM_FIELD = re.compile(r"\{(\w+)\}")
_SPACES = re.compile(r"\s+")
_WORD = re.compile(r"\w+")
_COURTESY = re.compile(
    r" (?:please|bitte|por favor|per favore|graag)(?= \w)", re.IGNORECASE
)
_TRIMMED = " \t,;:.!?…–—-"


class LearningStatement(NamedTuple):
    """A learning that a user's sentence states, word for word or in the form of its rule."""

    kind: LearningKind
    text: str
    """With straight apostrophes."""
    start: int = 0
    """Place in the sentence of a preference said in passing."""
    end: int = 0


def find_passing(
    sentence: str, blanked: str, languages: Collection[str]
) -> list[LearningStatement]:
    """Return the preferences and constraints in a sentence, by the rules of the first language with any."""
    low = blanked.lower()
    if len(low) != len(blanked):  # positions must be the same
        low = blanked.replace("İ", "I").lower()
    found: list[LearningStatement] = []
    for language in LANGUAGES:
        if language not in languages:
            continue
        rules = load_passing_rules(language)
        for rule, match in _find_rule_matches(low, rules):
            overlaps = any(
                match.start() < other.end and other.start < match.end()
                for other in found
            )
            if overlaps or rules.guard.search(low[: match.start()].rstrip()):
                continue
            end = _find_clause_end(low, match.end(), rules)
            if low[end : end + 1] == ":" and not low.endswith(QUESTION_MARKS):
                end = len(low)  # what follows says more of the clause
            preferred = sentence[match.end() : end].strip(_TRIMMED)
            said = low[match.end() : end].strip(_TRIMMED)
            occasion = low[match.start() : end]
            has_object = "{x}" in rule.form
            if has_object:
                preferred, said, occasion = "", match["x"], match["x"]
            if rule.name == "states":
                is_empty = not has_object and not _count_words(said)
                is_last = end >= len(low.rstrip(_TRIMMED))
                is_asked = low.endswith(QUESTION_MARKS) and is_last
                if is_empty or is_asked or rules.unclear.match(said):
                    continue
            if _count_words(said) > OBJECT_WORDS_MAX or rules.once.search(occasion):
                continue
            text = _write_learned_form(sentence, rule, match, preferred, rules)
            if CLAUSE_CHARS_MIN <= len(text) <= CLAUSE_CHARS_MAX:
                kind = _KINDS[rule.name]
                found.append(LearningStatement(kind, text, match.start(), end))
        if found:
            break
    return sorted(found, key=lambda statement: statement.start)


def _find_rule_matches(
    low: str, rules: PassingRules
) -> Iterator[tuple[PassingRule, re.Match[str]]]:
    """Yield rules with their matches in a lower-case sentence, at the starts of clauses first.

    At the start of each clause, only the first of `rules.at_starts` that matches is yielded. Then
    each of `rules.inside` is yielded that matches anywhere, with its first match.
    """
    for position in _find_clause_starts(low, rules):
        if not rules.any_at_start.match(low, position):
            continue
        for rule in rules.at_starts:
            match = rule.pattern.match(low, position)
            if match:
                yield rule, match
                break
    for rule in rules.inside:
        match = rule.pattern.search(low)
        if match:
            yield rule, match


def _find_clause_starts(low: str, rules: PassingRules) -> Iterator[int]:
    """Yield the positions where a clause begins, both before and after leading words such as "and"."""
    seen: set[int] = set()
    for start in islice(rules.start.finditer(low), STARTS_MAX):
        position = start.end()
        while position not in seen:
            seen.add(position)
            yield position
            lead = rules.lead.match(low, position)
            if lead:
                position = lead.end()


def _find_clause_end(low: str, start: int, rules: PassingRules) -> int:
    """Return the position at which the clause from `start` ends, in a lower-case sentence.

    A comma after the first word usually joins two adjectives, and does not end the clause.
    """
    end = rules.end.search(low, start)
    if not end:
        return len(low)
    is_first_word = end[0] == "," and _count_words(low[start : end.start()]) == 1
    if is_first_word and not rules.next_clause.match(low, end.start()):
        further = rules.end.search(low, end.end())
        stop = further.start() if further else len(low)
        joined = _count_words(low[end.end() : stop])
        if joined <= JOINED_WORDS_MAX and low[stop : stop + 1] != "?":
            return stop
    return end.start()


def _count_words(text: str) -> int:
    return len(_WORD.findall(text))


def _write_learned_form(
    sentence: str,
    rule: PassingRule,
    match: re.Match[str],
    preferred: str,
    rules: PassingRules,
) -> str:
    """Return the text of a learning: the rule's form filled with the clause's words, capitalized."""

    def fill(field: re.Match[str]) -> str:
        """Return the matched words for a field of the rule's form; a verb is put into the third person."""
        start, end = match.span(field[1])
        said = sentence[start:end] if start >= 0 else ""
        if field[1] == "v":
            for ending, replacement in rules.third_person:
                verb, count = ending.subn(replacement, said.lower(), count=1)
                if count:
                    return verb
        return said

    joint = "," if match[0].rstrip().endswith(",") else ""
    words = f"{_FORM_FIELD.sub(fill, rule.form).rstrip(',')}{joint} {preferred}"
    if rules.own_word and rule.name == "states":
        words = rules.own_word.sub(
            lambda word: rules.own_words[word[0].casefold()], words
        )
    text = _SPACES.sub(" ", _COURTESY.sub("", words)).strip(_TRIMMED).replace(" ,", ",")
    return text[:1].upper() + text[1:]
