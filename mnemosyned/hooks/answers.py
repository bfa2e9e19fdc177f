"""The output of a hook: one JSON object, in the form of the tool that called."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from mnemosyned.hooks.calls import Event, HookCall

Json = dict[str, Any]

OBSERVERS = frozenset({"goose", "windsurf"})
"""Tools whose hooks cannot tell the agent anything."""
START_ALONE = frozenset({"vscode", "copilot"})
"""Tools that take context at the start of a session, and nowhere else."""


def takes_context(call: HookCall) -> bool:
    """Whether the tool passes on what a hook tells on this event."""
    if call.client in OBSERVERS:
        return False
    if call.event is Event.PROMPT:
        return call.client not in START_ALONE
    return call.event is Event.START


def answer(call: HookCall, context: str = "") -> Json:
    """Return what to print: the context, or that nothing is to be done."""
    if not context:
        return {"continue": True} if call.name == "beforeSubmitPrompt" else {}
    return _FORMS.get(call.client, _claude)(call, context)


def _claude(call: HookCall, context: str) -> Json:
    """Return the form that most tools take."""
    return {
        "hookSpecificOutput": {
            "hookEventName": call.name,
            "additionalContext": context,
        }
    }


def _cursor(call: HookCall, context: str) -> Json:
    """Return Cursor's own form, or Claude Code's where it runs a hook of Claude Code's file."""
    if call.name[:1].isupper():
        return _claude(call, context)
    if call.event is Event.PROMPT:
        return {"continue": True, "additional_context": context}
    return {"additional_context": context}


_FORMS: Mapping[str, Callable[[HookCall, str], Json]] = {
    "cursor": _cursor,
    "copilot": lambda _, context: {"additionalContext": context},
    "antigravity": lambda _, context: {"injectSteps": [{"ephemeralMessage": context}]},
}
