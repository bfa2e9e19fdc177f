"""msgspec's validation errors in plain words: they say what a value must be."""

from __future__ import annotations

import re
from collections.abc import Sequence

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
    "timezone": "names no zone",
    "RFC3339": "is no time",
    "missing required field": "is missing",
    "unknown field": "is not known",
}
_BOUNDS = {">=": "at least", "<=": "at most", ">": "more than", "<": "less than"}
_LENGTH = re.compile(r"Expected `(\w+)` of length ([<>]=) (\d+)")
_RANGE = re.compile(r"Expected `\w+` ([<>]=?) (-?[\d.]+)")
_KIND = re.compile(r"Expected `([^`]*)`(?:, got `(\w+)`)?")


def rephrase(problem: str, *, choices: Sequence[str] = (), form: str = "") -> str:
    """Rephrase an error so that it follows the name of a field: `must be at most 100`.

    `choices` are the allowed words, `form` an example of the allowed form. A message of msgspec
    that is not known here is quoted.
    """
    for part, said in _SAID.items():
        if part in problem:
            return said
    if choices and "Invalid enum value" in problem:
        return f"must be one of {', '.join(choices)}"
    if form and "matching regex" in problem:
        return f"must have the form {form}"
    return _bound(problem) or f"is wrong: {problem}"


def _bound(problem: str) -> str:
    """Rephrase an error of length, range or type; empty for any other."""
    if found := _LENGTH.match(problem):
        return _length(*found.groups())
    if found := _RANGE.match(problem):
        bound, number = found.groups()
        return f"must be {_BOUNDS[bound]} {number.removesuffix('.0')}"
    found = _KIND.fullmatch(problem)
    return _kind(*found.groups()) if found else ""


def _length(kind: str, bound: str, number: str) -> str:
    if (bound, number) == (">=", "1"):
        return "must not be empty"
    unit = "characters" if kind == "str" else "entries"
    return f"must have {_BOUNDS[bound]} {int(number):,} {unit}"


def _kind(expected: str, got: str | None) -> str:
    """The allowed types, without null, which does not help after a wrong value."""
    kinds = [kind for kind in expected.split(" | ") if kind != "null"] or ["null"]
    said = " or ".join(_KINDS.get(kind, kind) for kind in kinds)
    return f"must be {said}" + (f", not {_KINDS.get(got, got)}" if got else "")
