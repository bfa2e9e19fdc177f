"""Labelled messages that state preferences in passing, and how many are learned."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

LABELLED = Path(__file__).parents[1] / "domain" / "preferences_labelled.txt"
EXPECTED = " => "
SHARE_MIN = 0.7
"""Share of an expected clause's words that a learning of it holds, at least."""
LONGER_MAX = 1.5
"""A learning with more words than this many times the clause's holds the paragraph, not it."""
LONGER_WORDS_MAX = 3

Find = Callable[[str], list[str]]


@dataclass(frozen=True, slots=True)
class LabelledMessage:
    """A message with the clauses that should be learned from it; none for a look-alike."""

    language: str
    held_out: bool
    text: str
    clauses: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PreferenceFigures:
    precision: float
    recall: float
    wrong: tuple[str, ...]
    """What was missed and what was learned wrongly."""


def labelled_messages() -> tuple[LabelledMessage, ...]:
    return tuple(_parsed(LABELLED.read_text(encoding="utf-8").splitlines()))


def _parsed(lines: Iterable[str]) -> Iterator[LabelledMessage]:
    language, all_tuned_on = "", False
    seen: Counter[tuple[str, str]] = Counter()
    for line in lines:
        if line.startswith("=== "):
            all_tuned_on = True
        elif line.startswith("== "):
            language = line[3:]
        elif line.startswith(("+ ", "- ")):
            text, _, clauses = line[2:].partition(EXPECTED)
            seen[language, line[0]] += 1
            held_out = not all_tuned_on and seen[language, line[0]] % 2 == 0
            expected = tuple(clauses.split(" | ")) if clauses else ()
            yield LabelledMessage(language, held_out, text, expected)


def preference_figures(
    messages: Iterable[LabelledMessage], find: Find
) -> PreferenceFigures:
    """Precision and recall of the clauses that `find` learns."""
    right, wrong = 0, []
    learned_count = expected_count = 0
    for message in messages:
        learned = find(message.text)
        learned_count += len(learned)
        expected_count += len(message.clauses)
        for clause in message.clauses:
            holding = next((text for text in learned if holds(text, clause)), None)
            if holding is None:
                wrong.append(f"missed ({message.language}): {clause}")
            else:
                learned.remove(holding)
                right += 1
        wrong += [f"learned ({message.language}): {text}" for text in learned]
    return PreferenceFigures(
        precision=right / max(learned_count, 1),
        recall=right / max(expected_count, 1),
        wrong=tuple(wrong),
    )


def holds(learned: str, clause: str) -> bool:
    """Whether a learning holds a clause and little else."""
    words, expected = _words(learned), _words(clause)
    longest = LONGER_MAX * len(expected) + LONGER_WORDS_MAX
    return len(words & expected) >= SHARE_MIN * len(expected) and len(words) <= longest


def _words(text: str) -> set[str]:
    return set(re.findall(r"\w+", text.casefold()))
