"""Results in words: which module renders which result, loaded with the first of its kind."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module

from mnemosyned.cli.answers.visible import seen


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
    "Acknowledged": "show.memories:acknowledged",
    "Recalled": "show.memories:recalled",
    "Got": "show.memories:got",
    "Expanded": "show.memories:expanded",
    "Listed": "look.show_lists:listed",
    "Glance": "look.glance:at_a_glance",
    "PeriodView": "look.show_periods:view",
    "SessionList": "look.show_lists:session_list",
    "SourceList": "look.show_lists:source_list",
    "CycleReport": "show.sleep:cycle",
    "Logged": "show.sleep:logged",
    "Forgotten": "show.retention:forgotten",
    "Edited": "show.changes:edited",
    "Tagged": "show.changes:tagged",
    "Pinned": "show.changes:pinned",
    "BackedUp": "show.retention:backed_up",
    "Restored": "show.retention:restored",
    "Pruned": "show.retention:pruned",
    "Learned": "show.conversation:learned",
    "LearningList": "show.conversation:learnings",
    "EditedLearning": "show.conversation:edited",
    "RemovedLearning": "show.conversation:removed",
    "Assembled": "show.conversation:assembled",
    "Shortened": "show.conversation:shortened",
    "Stats": "show.status:stats",
    "Watching": "show.watch:watching",
}
"""By the name of a result's class: `module:function` of the shell client."""
NUMBERED = {"Listed", "Logged", "PeriodView", "Recalled"}
"""Lists whose renderers take the number of their first entry."""
REMARKS = {
    "Edited": "show.changes:on_edited",
    "Acknowledged": "show.memories:on_acknowledged",
    "Recalled": "show.memories:on_recalled",
    "Listed": "look.show_lists:on_listed",
    "PeriodView": "look.show_periods:on_view",
    "SessionList": "look.show_lists:on_session_list",
    "SourceList": "look.show_lists:on_source_list",
    "Logged": "show.sleep:on_logged",
    "Learned": "show.conversation:on_learned",
    "LearningList": "show.conversation:on_learnings",
    "EditedLearning": "show.conversation:on_purge",
    "RemovedLearning": "show.conversation:on_purge",
}
"""The same for remarks."""
