"""No pattern can match the same text in so many ways that a text without a match takes for ever.

That is so where a repeated part is nothing but another repetition: of `(a+)*b`, `aaa` has a way for
each place where it may be cut. A separator that has to come leaves one.

Possessive repetitions and atomic groups would, too, but Python before 3.11.6, as Debian 12 has it,
matches them wrongly inside repeated groups.
"""

import pkgutil
import re
import symtable
import sys
from collections.abc import Iterable, Iterator
from functools import partial
from importlib import import_module
from itertools import chain, product
from pathlib import Path

# Python shows the parts of a pattern nowhere else.
from re import _constants as codes, _parser as parser  # type: ignore[attr-defined]
from typing import Any, cast

import pytest
from support.cases import each_case

import mnemosyned
from mnemosyned.text.rule_files import PatternOnUse, compile_on_use

LONG = 10
"""Repetitions that may be so many or more count as endless."""
GREEDY = (codes.MAX_REPEAT, codes.MIN_REPEAT)
EMPTY = (codes.ASSERT, codes.ASSERT_NOT, codes.AT)
Part = tuple[Any, Any]


def within(part: Part) -> list[Iterable[Part]]:
    """What a part of a pattern is made of."""
    code, value = part
    if code in GREEDY or code is codes.POSSESSIVE_REPEAT:
        return [value[2]]
    if code is codes.SUBPATTERN:
        return [value[3]]
    if code in (codes.ASSERT, codes.ASSERT_NOT):
        return [value[1]]
    if code is codes.ATOMIC_GROUP:
        return [value]
    return list(value[1]) if code is codes.BRANCH else []


def is_only_repetition(parts: Iterable[Part]) -> bool:
    """Tell whether this may be a repetition alone, as what else it has need not come."""
    repeats = False
    for part in parts:
        code, value = part
        if code in EMPTY:
            continue
        if code in GREEDY and value[0] == 0 and value[1] < LONG:
            continue
        inner = code in GREEDY and value[1] >= LONG
        if code in (codes.SUBPATTERN, codes.BRANCH):
            inner = any(map(is_only_repetition, within(part)))
        if not inner:
            return False
        repeats = True
    return repeats


def ambiguous(parts: Iterable[Part]) -> Iterator[Part]:
    """The endless repetitions of what may be a repetition alone."""
    for part in parts:
        code, value = part
        if code in GREEDY and value[1] >= LONG and is_only_repetition(value[2]):
            yield part
        for inner in within(part):
            yield from ambiguous(inner)


def is_ambiguous(pattern: re.Pattern[str]) -> bool:
    return any(ambiguous(parser.parse(pattern.pattern, pattern.flags)))


def is_possessive(pattern: re.Pattern[str]) -> bool:
    parts: list[Part] = [*parser.parse(pattern.pattern, pattern.flags)]
    for part in parts:
        parts += chain.from_iterable(within(part))
    return any(
        code in (codes.POSSESSIVE_REPEAT, codes.ATOMIC_GROUP) for code, _ in parts
    )


def patterns() -> Iterator[tuple[str, re.Pattern[str]]]:
    """All patterns that modules keep, alone or in tables."""
    for module in pkgutil.walk_packages(mnemosyned.__path__, "mnemosyned."):
        try:
            values = vars(import_module(module.name))
        except ModuleNotFoundError as error:
            if (error.name or "").startswith("mnemosyned"):
                raise
            continue
        for name, value in values.items():
            yield from kept(f"{module.name}.{name}", value)


def kept(name: str, value: object) -> Iterator[tuple[str, re.Pattern[str]]]:
    if isinstance(value, re.Pattern | PatternOnUse) and isinstance(value.pattern, str):
        yield name, cast("re.Pattern[str]", value)
    elif isinstance(value, dict):
        yield from kept(name, [*value, *value.values()])
    elif isinstance(value, list | tuple | set | frozenset):
        for item in value:
            yield from kept(name, item)


@each_case(("text", "expected"), [
    (r"(a+)*b", True),
    (r"\d+(?:[.,]?\d+)*x", True),
    (r'"(?:[^"]+|\\.)*"', True),
    (r"\d+(?:[.,]\d+)*x", False),
    (r'"(?:[^"]++|\\.)*"', False),
    (r"(?:[a-z]+ )*x", False),
    (r"(?:a+){2}", False),
])  # fmt: skip
def test_an_ambiguous_pattern_is_known(text: str, *, expected: bool) -> None:
    assert is_ambiguous(re.compile(text)) is expected


@each_case("text", ["a++", "(?:ab)*+", "x(a|b{2,3}+)*", "(?=(?>a))"])
def test_a_possessive_pattern_is_known(text: str) -> None:
    assert is_possessive(re.compile(text))


@pytest.mark.thorough
def test_no_pattern_is_ambiguous_or_possessive() -> None:
    found = list(patterns())
    assert [
        name for name, each in found if is_ambiguous(each) or is_possessive(each)
    ] == []
    assert len(found) > 300


# A pattern that ignores case is searched in lower case.


CASED = re.compile(r"[A-Zİſ\u212a]")
"""Characters that a text of ASCII in lower case lacks, and that match an ASCII letter without case."""


def characters(part: Part) -> Iterator[str]:
    """Characters that a part of a pattern may match, of ranges that not all are lower case or beyond ASCII."""
    code, value = part
    if code in (codes.LITERAL, codes.NOT_LITERAL):
        yield chr(value)
    elif code is codes.RANGE and not ord("a") <= value[0] <= value[1] <= ord("z"):
        yield from map(chr, range(value[0], value[1] + 1))
    elif code is codes.IN:
        yield from chain.from_iterable(map(characters, value))
    for inner in within(part):
        yield from chain.from_iterable(map(characters, inner))


@pytest.mark.thorough
def test_a_pattern_that_is_searched_in_lower_case_matches_no_capital() -> None:
    searched = [
        (name, [*chain.from_iterable(map(characters, parser.parse(each.pattern)))])
        for name, each in patterns()
        if isinstance(each, PatternOnUse) and isinstance(each.search, partial)
    ]

    assert [name for name, found in searched if CASED.search("".join(found))] == []
    assert len(searched) > 20


@each_case("pattern", [
    r"(?i)\b(?:now|never)\b", r"(?i)^ab|(?<=x)c", r"(?i)(?P<name>a+)(?P=name)", r"(?i)ı[ß-ÿ]?s",
    r"(?i)[a-zß-ÿ]+\d", r"(?i)[A-Z]+", r"(?i)[ -_]x", r"now\W", r"(?i)(?-i:A)b", "(?i)k",
])  # fmt: skip
def test_a_pattern_on_use_finds_what_the_pattern_finds(pattern: str) -> None:
    whole, on_use = re.compile(pattern), compile_on_use(pattern)
    texts = [
        "Now, NEVER now!",
        "XC abAB",
        "xAaaA",
        "isıS ISß",
        "Zx zÄ9 Ka9",
        "\u212a ſſ",
        "",
    ]
    for text, start, end in product(texts, (0, 1, 3), (4, 99)):
        ours, theirs = on_use.search(text, start, end), whole.search(text, start, end)
        assert repr(ours) == repr(theirs)
        assert (ours and ours.groups()) == (theirs and theirs.groups())
        assert repr(on_use.search(text)) == repr(whole.search(text))


# What Python 3.13.0 misreads: it joins a comprehension's variable with one of an outer function.


PACKAGE = Path(mnemosyned.__file__).parent
COMPREHENSIONS = {"listcomp", "setcomp", "dictcomp"}

older_than_3_12 = pytest.mark.skipif(
    sys.version_info >= (3, 12), reason="newer symbol tables have no comprehensions"
)


def hidden_names(table: symtable.SymbolTable) -> Iterator[str]:
    """Names that a function has of an outer one, and that a comprehension in it uses anew."""
    for inner in table.get_children():
        if table.get_type() == "function" and inner.get_name() in COMPREHENSIONS:
            own = {name.get_name() for name in inner.get_symbols() if name.is_local()}
            outer = {name.get_name() for name in table.get_symbols() if name.is_free()}
            yield from own & outer
        yield from hidden_names(inner)


def hidden_names_of(source: str) -> list[str]:
    return [*hidden_names(symtable.symtable(source, "-", "exec"))]


@older_than_3_12
def test_a_hidden_name_is_known() -> None:
    source = "def f(a):\n def g(b):\n  return a, [a for a in b]\n return g"

    assert hidden_names_of(source) == ["a"]


@pytest.mark.thorough
@older_than_3_12
def test_no_comprehension_hides_a_name_of_an_outer_function() -> None:
    found = {
        str(path.relative_to(PACKAGE)): names
        for path in PACKAGE.rglob("*.py")
        if (names := hidden_names_of(path.read_text("utf-8")))
    }

    assert found == {}
