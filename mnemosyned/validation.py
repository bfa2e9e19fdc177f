"""msgspec's validation errors in plain words: they say what a value must be."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

_KINDS = {
    "str": "text",
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "array": "a list",
    "object": "an object",
    "datetime": "a time",
    "null": "null",
}
_SAID = {
    "missing required field": "is missing",
    "unknown field": "is not known",
}
_BOUNDS = {">=": "at least", "<=": "at most", ">": "more than", "<": "less than"}
_LENGTH = re.compile(r"Expected `(\w+)` of length ([<>]=) (\d+)")
_RANGE = re.compile(r"Expected `\w+` ([<>]=?) (-?[\d.]+)")
_KIND = re.compile(r"Expected `([^`]*)`(?:, got `(\w+)`)?\Z")


def rephrase(problem: str, *, choices: Sequence[str] = (), form: str = "") -> str:
    """Rephrase an error so that it follows the name of a field: `must be at most 100`.

    `choices` are the allowed words, `form` an example of the allowed form. A message of msgspec
    that is not known here is quoted.
    """
    problem, _, _ = problem.partition(" - at `")  # a place in a list
    for part, words in _SAID.items():
        if part in problem:
            return words
    if choices and "Invalid enum value" in problem:
        return f"must be one of {', '.join(choices)}"
    if form and "matching regex" in problem:
        return f"must have the form {form}"
    return _bound(problem) or f"is wrong: {problem}"


def _bound(problem: str) -> str:
    """Rephrase an error of length, range or type; empty for any other."""
    for pattern, words in _FORMS:
        if match := pattern.match(problem):
            return words(*match.groups())
    return ""


def _length(kind: str, bound: str, number: str) -> str:
    if (bound, number) == (">=", "1"):
        return "must not be empty"
    unit = "characters" if kind == "str" else "entries"
    return f"must have {_BOUNDS[bound]} {int(number):,} {unit}"


def _range(bound: str, number: str) -> str:
    return f"must be {_BOUNDS[bound]} {number.removesuffix('.0')}"


def _kind(expected: str, got: str | None) -> str:
    """The allowed types, without null, which does not help after a wrong value."""
    kinds = expected.removesuffix(" | null").split(" | ")
    allowed = " or ".join(_KINDS.get(kind, kind) for kind in kinds)
    given = f", not {_KINDS.get(got, got)}" if got else ""
    return f"must be {allowed}{given}"


_FORMS: tuple[tuple[re.Pattern[str], Callable[..., str]], ...] = (
    (_LENGTH, _length),
    (_RANGE, _range),
    (_KIND, _kind),
)
"""The forms of msgspec's messages, and the words for what each names."""
