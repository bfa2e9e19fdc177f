"""The form cases are written in: what a value stands for, what was given, what is expected."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Check = Callable[[Any], bool]


def built(value: Any) -> Any:  # noqa: ANN401 whatever JSON can hold
    """The value with `$rep`, `$cat` and `$hist` carried out, at any depth."""
    if isinstance(value, list):
        return [built(member) for member in value]
    if not isinstance(value, dict):
        return value
    if not any(key.startswith("$") for key in value):
        return {key: built(member) for key, member in value.items()}
    if len(value) != 1:
        raise ValueError(f"a form stands alone: {sorted(value)}")
    ((form, argument),) = value.items()
    if form not in FORMS:
        raise ValueError(f"unknown form {form}")
    return FORMS[form](argument)


def _repeated(argument: Sequence[Any]) -> Any:  # noqa: ANN401
    text, count = argument
    return built(text) * count


def _joined(argument: Sequence[Any]) -> Any:  # noqa: ANN401
    parts = built(argument)
    if all(isinstance(part, str) for part in parts):
        return "".join(parts)
    return [
        member
        for part in parts
        for member in (part if isinstance(part, list) else [part])
    ]


def _history(argument: Mapping[str, Any]) -> list[dict[str, str]]:
    """Messages `m001 xxx…` of so many tokens of four characters, user and assistant in turn."""
    unknown = argument.keys() - {"n", "tokens", "sizes"}
    if unknown:
        raise ValueError(f"unknown keys of $hist: {sorted(unknown)}")
    sizes = argument.get("sizes")
    if sizes is None:
        sizes = [argument["tokens"]] * argument["n"]
    return [
        {
            "role": "user" if at % 2 else "assistant",
            "content": f"m{at:03} ".ljust(4 * size, "x")[: 4 * size],
        }
        for at, size in enumerate(sizes, start=1)
    ]


FORMS: dict[str, Callable[[Any], Any]] = {
    "$rep": _repeated,
    "$cat": _joined,
    "$hist": _history,
}


class Given:
    """What a case gives; what no runner asked for makes the case fail."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._values = built(dict(values))
        self._asked: set[str] = set()

    def __call__(self, name: str, default: Any = None) -> Any:  # noqa: ANN401
        self._asked.add(name)
        return self._values.get(name, default)

    def some(self, *names: str) -> dict[str, Any]:
        """Those of these that are given."""
        self._asked.update(names)
        return {name: self._values[name] for name in names if name in self._values}

    @property
    def unread(self) -> list[str]:
        return sorted(self._values.keys() - self._asked)


@dataclass(frozen=True)
class Holds:
    """An expectation that is no plain equality."""

    check: Check
    shown: Any = None
    """What to show where it does not hold."""


RULES: dict[str, Callable[[Any, Any], bool]] = {
    "_max": lambda found, most: bool(found <= most),
    "_min": lambda found, least: bool(found >= least),
    "_startswith": lambda found, begin: bool(found.startswith(begin)),
    "_not_contains": lambda found, word: word not in found,
    "_contains": lambda found, word: word in found,
    "_nonempty": lambda found, wanted: bool(found.strip()) is wanted,
}
"""What an expectation says of the fact that it names before one of these words."""


def fact_of(name: str, facts: Mapping[str, Any]) -> Any:  # noqa: ANN401
    """The fact that an expectation is about; raises KeyError if there is none."""
    if name in facts:
        return facts[name]
    rule = next((each for each in RULES if name.endswith(each)), "")
    found = facts[name.removesuffix(rule)]
    return Holds(lambda wanted: RULES[rule](found, wanted), found)


def compare(facts: Mapping[str, Any], expect: Mapping[str, Any]) -> list[str]:
    """What does not hold, an expectation nobody knows included."""
    wrong = []
    for name, raw in expect.items():
        wanted = built(raw)
        try:
            found = fact_of(name, facts)
        except KeyError:
            wrong.append(f"{name}: no runner knows this expectation")
            continue
        if isinstance(found, Holds):
            if not found.check(wanted):
                wrong.append(
                    f"{name}: wanted {wanted!r}, found {found.shown!r}"[:2_000]
                )
        elif found != wanted or isinstance(found, bool) is not isinstance(wanted, bool):
            wrong.append(f"{name}: wanted {wanted!r}, found {found!r}"[:2_000])
    return wrong
