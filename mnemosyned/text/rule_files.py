"""Reads TOML files of word lists and patterns, each next to the module that uses the file."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Mapping
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple, cast


@cache
def read_tables(module: str, name: str) -> dict[str, Any]:
    """Return the tables, to be left unchanged, of the TOML file `name` next to a module's `__file__`."""
    return tomllib.loads(Path(module).with_name(name).read_text(encoding="utf-8"))


def compile_on_use(pattern: str, flags: int = 0) -> re.Pattern[str]:
    """Return a substitute for a compiled pattern, which compiles itself when it is first used.

    To compile all patterns at the start would slow every command. The functions of `re` and `isinstance` do not
    accept it. A faulty pattern raises at the first use.
    """
    return cast("re.Pattern[str]", PatternOnUse(pattern, flags))


_CASED = re.compile(r"(?<![\\?])[A-Z]|[İſ\u212a]|\(\?-|[^a-z0-9[]-\w|\\[ux]")
"""A capital, a letter that may match an ASCII letter without case, or a range that may have one."""


class PatternOnUse:
    """Substitute for a compiled pattern that `compile_on_use` returns."""

    def __init__(self, pattern: str, flags: int) -> None:
        self._source = pattern, flags

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 any attribute of a pattern
        """Compile the pattern, and keep its attributes, so that this method is not asked again."""
        pattern, flags = self._source
        ignores_case = pattern.startswith("(?i)") or flags == re.IGNORECASE
        if name == "search" and ignores_case and not _CASED.search(pattern):
            # Without case, `ı` matches an ASCII `i`, too.
            lower = re.compile(pattern.removeprefix("(?i)").replace("ı", "i"))
            self.search = partial(self._search_lower_case, lower.search)
            return self.search
        compiled = re.compile(pattern, flags)
        for each in dir(compiled):
            if not each.startswith("_") and (each != "search" or name == each):
                setattr(self, each, getattr(compiled, each))
        return getattr(compiled, name)

    def _search_lower_case(
        self, find: Callable[..., re.Match[str] | None], text: str, *span: int
    ) -> re.Match[str] | None:
        """Search a text in lower case first: that takes a third of the time, and mostly finds nothing."""
        if not text.isascii():
            return next(self.finditer(text, *span), None)
        found = find(text.lower(), *span)
        return found and self.match(text, found.start(), *span[1:])


_NAMED_PART = re.compile(r"(?<!\?P)<([a-z_]+)>")
"""A `<name>` to be replaced, but not `(?P<name>`, which is a group of the pattern."""


def read_patterns(module: str, name: str, **parts: str) -> dict[str, str]:
    """Return {name: pattern} from a TOML file next to a module, given by its `__file__`.

    The lines of a pattern are joined. `<name>` in a pattern stands for another pattern of the file,
    or for one of `parts`. Tables of the file are left out.
    """
    patterns = {
        key: pattern.replace("\n", "")
        for key, pattern in read_tables(module, name).items()
        if isinstance(pattern, str)
    }
    parts |= patterns
    return {key: fill_parts(pattern, parts) for key, pattern in patterns.items()}


def fill_parts(pattern: str, parts: Mapping[str, str]) -> str:
    """Return a pattern with each `<name>` in it replaced by `parts[name]`."""
    while _NAMED_PART.search(pattern):
        pattern = _NAMED_PART.sub(lambda part: parts[part[1]], pattern)
    return pattern


_BRACED_PART = re.compile(r"\{([a-z_]+)\}")


class RuleFile(NamedTuple):
    """Tables of one file, each by name.

    The lines of a pattern are joined. `{name}` in a pattern stands for a pattern of the table
    `parts`, or for one that the module adds. Flags begin a pattern: `(?i)`.
    """

    words: Mapping[str, frozenset[str]]
    """Lists of words."""
    names: Mapping[str, Mapping[str, str]]
    """Values by word; the file lists the words of each value."""
    patterns: Mapping[str, re.Pattern[str]]
    forms: Mapping[str, tuple[re.Pattern[str], ...]]
    """Patterns of which the first that matches counts."""


def read_rule_file(module: str, name: str = "", /, **parts: str) -> RuleFile:
    """Return the tables of a TOML file next to a module, given by its `__file__`.

    Without a `name`, the file is named as the module. `parts` are more named parts for its patterns.
    """
    tables = read_tables(module, name or f"{Path(module).stem}.toml")
    known = tables.get("parts", {}) | parts

    def compile_pattern(text: str) -> re.Pattern[str]:
        """Return a pattern, compiled at its first use, with each named part filled in."""
        while filled := _BRACED_PART.search(text):
            text = text.replace(filled[0], known[filled[1]])
        return compile_on_use(text.replace("\n", ""))

    return RuleFile(
        words={
            name: frozenset(words.split())
            for name, words in tables.get("words", {}).items()
        },
        names={
            name: {
                word: value
                for value, words in table.items()
                for word in (words.split() if isinstance(words, str) else words)
            }
            for name, table in tables.get("names", {}).items()
        },
        patterns={
            name: compile_pattern(text)
            for name, text in tables.get("patterns", {}).items()
        },
        forms={
            name: tuple(map(compile_pattern, texts))
            for name, texts in tables.get("forms", {}).items()
        },
    )
