"""msgspec's validation errors in plain words, as rules for a value."""

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
    "missing required field": "is missing",
    "unknown field": "is not known",
}
_BOUNDS = {">=": "at least", "<=": "at most", ">": "more than", "<": "less than"}
_LENGTH = re.compile(r"Expected `(\w+)` of length ([<>]=) (\d+)")
_RANGE = re.compile(r"Expected `\w+` ([<>]=?) (-?[\d.]+)")
_KIND = re.compile(r"Expected `([^`]*)`(?:, got `(\w+)`)?\Z")


def rephrase(problem: str, *, choices: Sequence[str] = (), form: str = "") -> str:
    """Return an error of msgspec as a phrase to follow the name of a field.

    An example is "must be at most 100". `choices` are the allowed words, `form` an example of the
    allowed form. An unknown message is quoted.
    """
    problem, _, _ = problem.partition(" - at `")  # a place in a list
    for part, words in _SAID.items():
        if part in problem:
            return words
    if choices and "Invalid enum value" in problem:
        return f"must be one of {', '.join(choices)}"
    if form and "matching regex" in problem:
        return f"must have the form {form}"
    if match := _LENGTH.match(problem):
        kind, bound, number = match.groups()
        if (bound, number) == (">=", "1"):
            return "must not be empty"
        unit = "characters" if kind == "str" else "entries"
        return f"must have {_BOUNDS[bound]} {int(number):,} {unit}"
    if match := _RANGE.match(problem):
        return f"must be {_BOUNDS[match[1]]} {match[2].removesuffix('.0')}"
    if match := _KIND.match(problem):
        # Without null, which does not help after a wrong value.
        kinds = match[1].removesuffix(" | null").split(" | ")
        allowed = " or ".join(_KINDS.get(kind, kind) for kind in kinds)
        given = f", not {_KINDS.get(match[2], match[2])}" if match[2] else ""
        return f"must be {allowed}{given}"
    return f"is wrong: {problem}"
