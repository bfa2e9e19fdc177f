"""What a prompt asks for: something of the project, general knowledge, or work."""

from __future__ import annotations

from enum import StrEnum

from mnemosyned.text.rule_files import read_rule_file

_WORDS, _NAMES, _PATTERNS, _FORMS = read_rule_file(__file__)

CODE_FENCE = "```"


class PromptForm(StrEnum):
    """The form of a prompt, on which it depends how likely earlier statements bear on it."""

    QUESTION = "question"
    """A question that the project may answer."""
    INDEFINITE = "indefinite"
    """A question without a word for something known, such as "the" or "our"."""
    GENERAL = "general"
    """A question of general knowledge, language or arithmetic."""
    WORK = "work"
    """An order, a report, a reply, or a question about the present turn."""


def find_prompt_form(prompt: str) -> PromptForm:
    """Return the form of a prompt; code in fences does not count."""
    prose = "".join(prompt.split(CODE_FENCE)[::2])
    if _PATTERNS["general"].search(prose):
        return PromptForm.GENERAL
    if _PATTERNS["turn"].search(prose):
        return PromptForm.WORK
    if not (_PATTERNS["question"].search(prose) or _PATTERNS["mark"].search(prose)):
        return PromptForm.WORK
    is_definite = _PATTERNS["definite"].search(prose)
    return PromptForm.QUESTION if is_definite else PromptForm.INDEFINITE
