"""Results in words: which module renders which result, loaded with the first of its kind."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module

from mnemosyned.cli.visible import seen


def render(result: object, *, first: int = 1) -> str:
    """A result in words, with nothing in it that steers a terminal but our own styles.

    `first` is the number of a list's first entry, where it is a further page.
    """
    name = type(result).__name__
    function = _function(RENDERERS[name])
    return function(seen(result), first) if name in NUMBERED else function(seen(result))


def remarks(result: object) -> str:
    """Remarks on a result, for standard error; empty if there are none."""
    target = REMARKS.get(type(result).__name__)
    return _function(target)(result) if target else ""


def _function(target: str) -> Callable[..., str]:
    module, _, name = target.partition(":")
    function: Callable[..., str] = getattr(
        import_module(f"mnemosyned.cli.{module}"), name
    )
    return function


RENDERERS = {
    "Acknowledged": "show_memories:acknowledged",
    "Recalled": "show_memories:recalled",
    "Got": "show_memories:got",
    "Expanded": "show_memories:expanded",
    "Listed": "look.show_lists:listed",
    "Glance": "look.glance:at_a_glance",
    "PeriodView": "look.show_periods:view",
    "SessionList": "look.show_lists:session_list",
    "SourceList": "look.show_lists:source_list",
    "CycleReport": "show_sleep:cycle",
    "Logged": "show_sleep:logged",
    "Forgotten": "show_retention:forgotten",
    "Edited": "show_changes:edited",
    "Tagged": "show_changes:tagged",
    "Pinned": "show_changes:pinned",
    "BackedUp": "show_retention:backed_up",
    "Restored": "show_retention:restored",
    "Pruned": "show_retention:pruned",
    "Learned": "show_conversation:learned",
    "LearningList": "show_conversation:learnings",
    "EditedLearning": "show_conversation:edited",
    "RemovedLearning": "show_conversation:removed",
    "Assembled": "show_conversation:assembled",
    "Shortened": "show_conversation:shortened",
    "Stats": "show_status:stats",
    "Watching": "show_watch:watching",
}
"""By the name of a result's class: `module:function` of this package."""
NUMBERED = {"Listed", "Logged", "Recalled"}
"""Lists whose renderers take the number of their first entry."""
REMARKS = {
    "Edited": "show_changes:on_edited",
    "Acknowledged": "show_memories:on_acknowledged",
    "Recalled": "show_memories:on_recalled",
    "Listed": "look.show_lists:on_listed",
    "PeriodView": "look.show_periods:on_view",
    "SessionList": "look.show_lists:on_session_list",
    "SourceList": "look.show_lists:on_source_list",
    "Logged": "show_sleep:on_logged",
    "Learned": "show_conversation:on_learned",
    "LearningList": "show_conversation:on_learnings",
    "EditedLearning": "show_conversation:on_purge",
    "RemovedLearning": "show_conversation:on_purge",
}
"""The same for remarks."""
