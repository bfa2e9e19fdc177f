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
    function: Callable[..., str] = getattr(import_module(module), name)
    return function


RENDERERS = {
    "Acknowledged": "mnemosyned.cli.show.memories:acknowledged",
    "Recalled": "mnemosyned.cli.show.memories:recalled",
    "Got": "mnemosyned.cli.show.memories:got",
    "Expanded": "mnemosyned.cli.show.memories:expanded",
    "Listed": "mnemosyned.cli.look.show_lists:listed",
    "Glance": "mnemosyned.cli.look.glance:at_a_glance",
    "PeriodView": "mnemosyned.cli.look.show_periods:view",
    "SessionList": "mnemosyned.cli.look.show_lists:session_list",
    "SourceList": "mnemosyned.cli.look.show_lists:source_list",
    "CycleReport": "mnemosyned.cli.show.sleep:cycle",
    "Logged": "mnemosyned.cli.show.sleep:logged",
    "Forgotten": "mnemosyned.cli.show.retention:forgotten",
    "Edited": "mnemosyned.cli.show.changes:edited",
    "Tagged": "mnemosyned.cli.show.changes:tagged",
    "Pinned": "mnemosyned.cli.show.changes:pinned",
    "BackedUp": "mnemosyned.cli.show.retention:backed_up",
    "Restored": "mnemosyned.cli.show.retention:restored",
    "Pruned": "mnemosyned.cli.show.retention:pruned",
    "Learned": "mnemosyned.cli.show.conversation:learned",
    "LearningList": "mnemosyned.cli.show.conversation:learnings",
    "EditedLearning": "mnemosyned.cli.show.conversation:edited",
    "RemovedLearning": "mnemosyned.cli.show.conversation:removed",
    "Assembled": "mnemosyned.cli.show.conversation:assembled",
    "Shortened": "mnemosyned.cli.show.conversation:shortened",
    "Stats": "mnemosyned.cli.show.status:stats",
    "Watching": "mnemosyned.cli.show.watch:watching",
}
"""By the name of a result's class: `module:function`."""
NUMBERED = {"Listed", "Logged", "PeriodView", "Recalled"}
"""Lists whose renderers take the number of their first entry."""
REMARKS = {
    "Edited": "mnemosyned.cli.show.changes:on_edited",
    "Acknowledged": "mnemosyned.cli.show.memories:on_acknowledged",
    "Recalled": "mnemosyned.cli.show.memories:on_recalled",
    "Listed": "mnemosyned.cli.look.show_lists:on_listed",
    "PeriodView": "mnemosyned.cli.look.show_periods:on_view",
    "SessionList": "mnemosyned.cli.look.show_lists:on_session_list",
    "SourceList": "mnemosyned.cli.look.show_lists:on_source_list",
    "Logged": "mnemosyned.cli.show.sleep:on_logged",
    "Learned": "mnemosyned.cli.show.conversation:on_learned",
    "LearningList": "mnemosyned.cli.show.conversation:on_learnings",
    "EditedLearning": "mnemosyned.cli.show.conversation:on_purge",
    "RemovedLearning": "mnemosyned.cli.show.conversation:on_purge",
}
"""The same for remarks."""
