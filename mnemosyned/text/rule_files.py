"""Reads TOML files of word lists and patterns that stand next to the modules which use them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from mnemosyned.text.languages.tables import read_tables

_PART = re.compile(r"\{([a-z_]+)\}")


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


def read_rule_file(module: str, **parts: str) -> RuleFile:
    """Return the tables of the TOML file named as a module's file, with further `parts`."""
    tables = read_tables(module, f"{Path(module).stem}.toml")
    known = tables.get("parts", {}) | parts

    def compile_pattern(text: str) -> re.Pattern[str]:
        """Return a pattern of the file with its parts filled in."""
        while filled := _PART.search(text):
            text = text.replace(filled[0], known[filled[1]])
        return re.compile(text.replace("\n", ""))

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
