"""The table of a language by which preferences said in passing are recognized.

A rule is a kind, a pattern and the form it is held in: `states: i prefer => Prefers`. The pattern
stands at the start of a clause, in lower case; the form is followed by the words up to the clause's
end. `asks` is a constraint, `inside` one that may stand anywhere. In a form, `{v}` is the pattern's
verb in the third person, any other name a group as it was said. Indented lines continue a line;
`<name>` is replaced by the part of that name.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class PassingTable:
    """The words of one language by which a preference is told from what resembles it."""

    hints: str
    """Words of which a text needs one for a rule to match, as a test proves."""
    rules: str
    parts: str = ""
    """Parts that several rules share, by name."""
    conjunctions: str
    """Words that join two clauses, or the items of a list."""
    leads: str
    """Words before a statement: "honestly"."""
    reasons: str
    """Words that end the clause: "because"."""
    starters: str
    """Words that begin another clause after a comma or a conjunction: "I", "can", "what"."""
    negations: str
    """Words that go on after a comma: "not"."""
    guards: str
    """Words before a statement that make it another's, a past or an assumed one."""
    unclear: str
    """Beginnings of what is preferred that do not stand alone: "the second", "this one"."""
    once: str
    """Words of a single occasion: "today", "this week"."""
    third_person: tuple[tuple[str, str], ...] = ()
    """Endings of the first person, and those of the third; the first that matches is replaced."""
    own_words: tuple[tuple[str, str], ...] = ()
    """Words of the speaker, and those of a third person: "my", "their"."""
