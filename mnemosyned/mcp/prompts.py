"""Prompts that a person picks: recall, and what was decided."""

from __future__ import annotations

from dataclasses import dataclass

from mnemosyned.domain.errors import MnemosynedError
from mnemosyned.domain.text.frames import neutralize_line
from mnemosyned.mcp.calls import Exchange, recall
from mnemosyned.mcp.forms import RecallTool
from mnemosyned.mcp.protocol import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    Json,
    ProtocolError,
)
from mnemosyned.mcp.tools import text_of

ABOUT_CHARS_MAX = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """A prompt with one argument, which names the subject."""

    name: str
    title: str
    description: str
    about: str
    """What the argument is."""
    is_required: bool
    question: str
    """What recall is asked."""
    task: str
    """What the model is asked."""

    def listed(self) -> Json:
        argument = {
            "name": "about",
            "title": "About",
            "description": self.about,
            "required": self.is_required,
        }
        return {
            "name": self.name,
            "title": self.title,
            "description": self.description,
            "arguments": [argument],
        }


PROMPTS = {
    prompt.name: prompt
    for prompt in (
        Prompt(
            name="recall",
            title="Recall from memory",
            description="What memory has on a subject, with dates and sources.",
            about="the subject, in plain words",
            is_required=True,
            question="{about}",
            task="Say what is known from earlier conversations about: {about}",
        ),
        Prompt(
            name="what_did_we_decide",
            title="What did we decide?",
            description="Decisions in earlier conversations, with their dates and reasons.",
            about="the subject; without it, all recent decisions",
            is_required=False,
            question="what did we decide {about}",
            task="Say what was decided in earlier conversations, when and why. Subject: {about}",
        ),
    )
}
_RULES = (
    "Below is what memory found. Say with each statement its date and source. Where two contradict "
    "each other, the newer one counts; say so. If it does not answer, use the tools recall, get and "
    "expand; if nothing is known, say that."
)


def listed() -> list[Json]:
    """The prompts, in a fixed order."""
    return [prompt.listed() for prompt in PROMPTS.values()]


def filled(exchange: Exchange, name: object, arguments: object) -> Json:
    """A prompt with what memory has on its subject. Raises `ProtocolError`."""
    prompt = PROMPTS.get(name) if isinstance(name, str) else None
    if prompt is None:
        names = ", ".join(PROMPTS)
        raise ProtocolError(INVALID_PARAMS, f"Unknown prompt; the prompts are {names}")
    about = _about(prompt, arguments)
    question = prompt.question.format(about=about).strip()
    try:
        found = text_of(recall(exchange, RecallTool(question)))
    except MnemosynedError as error:
        raise ProtocolError(INTERNAL_ERROR, error.message) from error
    task = prompt.task.format(about=about or "everything")
    text = f"{task}\n\n{_RULES}\n\n```json\n{found}\n```"
    message = {"role": "user", "content": {"type": "text", "text": text}}
    return {"description": prompt.description, "messages": [message]}


def _about(prompt: Prompt, arguments: object) -> str:
    given = arguments.get("about", "") if isinstance(arguments, dict) else None
    if not isinstance(given, str):
        raise ProtocolError(
            INVALID_PARAMS, "arguments must be an object whose values are text"
        )
    about = neutralize_line(given)[:ABOUT_CHARS_MAX]
    if prompt.is_required and not about:
        raise ProtocolError(INVALID_PARAMS, f"about is missing: {prompt.about}")
    return about
