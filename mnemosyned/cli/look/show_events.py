"""Live events in words, a line each."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime

import click

from mnemosyned.cli.look.rows import origin_of, room_after
from mnemosyned.domain.instants import in_zone
from mnemosyned.domain.text.invisible import escape_invisible
from mnemosyned.terminal import counted, cut, span
from mnemosyned.verbs.streams.events import Event, EventKind, EventMemory

SECONDS_MAX = 60
"""From then on, a time is said in minutes."""


def event_lines(event: Event) -> Iterator[str]:
    """The lines of an event: one, or one for each new memory."""
    if event.kind is EventKind.REMEMBERED:
        for memory in event.memories:
            yield memory_line(event.at, memory)
        hidden = event.count - len(event.memories)
        if hidden > 0:
            yield _line(event.at, f"and {counted(hidden, 'more memory')}", dim=True)
        return
    words = _WORDS[event.kind](event)
    if words:
        yield _line(event.at, words, dim=True, red=event.kind is EventKind.REFUSED)


def memory_line(moment: datetime, memory: EventMemory) -> str:
    """A new memory: its time, origin and the beginning of its text."""
    head = f"{in_zone(moment, None):%H:%M:%S}  "
    origin = cut(
        _plain(origin_of(memory.session, memory.source)), room_after(head) // 2
    )
    speaker = f"{_plain(memory.role)}: " if memory.role else ""
    room = room_after(f"{head}{origin}  ")
    text = cut(f"{speaker}{_plain(memory.text)}", room)
    return f"{click.style(f'{head}{origin}', dim=True)}  {text}"


def _plain(text: str) -> str:
    return escape_invisible(text, one_line=True)


def _line(moment: datetime, words: str, *, dim: bool = False, red: bool = False) -> str:
    head = f"{in_zone(moment, None):%H:%M:%S}  "
    text = cut(_plain(words), room_after(head))
    line = f"{head}{text}"
    if red:
        return click.style(line, fg="red")
    return click.style(line, dim=True) if dim else line


def _recalled(event: Event) -> str:
    where = f" in {event.session}" if event.session else ""
    return f"recalled {counted(event.count, 'hit')}{where}"


def _changed(event: Event) -> str:
    return " ".join([event.verb.replace("_", "-"), *event.ids[:3]])


def _captured(event: Event) -> str:
    words = f"{event.client}: {event.hook}"
    if event.message:
        return f"{words} failed ({event.message})"
    return f"{words}, {event.count:,} captured" if event.count else ""


def _ended(event: Event) -> str:
    if event.status in ("failed", "nothing_to_do"):
        return f"sleep cycle: {event.status.replace('_', ' ')}"
    return (
        f"sleep cycle {event.status}: {counted(event.count, 'memory')} into "
        f"{counted(event.episodes, 'summary')} in {_took(event.duration_s)}"
    )


def _took(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds < SECONDS_MAX else span(seconds)


_WORDS: dict[EventKind, Callable[[Event], str]] = {
    EventKind.RECALLED: _recalled,
    EventKind.FORGOTTEN: lambda event: f"forgot {counted(event.count, 'memory')}",
    EventKind.CHANGED: _changed,
    EventKind.CAPTURED: _captured,
    EventKind.CYCLE_BEGUN: lambda event: f"sleep cycle begins ({event.trigger})",
    EventKind.CYCLE_PROGRESS: lambda event: (
        f"sleep cycle: {event.done:,} of {event.total:,}"
    ),
    EventKind.CYCLE_ENDED: _ended,
    EventKind.REFUSED: lambda event: (
        f"{event.verb.replace('_', '-')} refused: {event.message}"
    ),
    EventKind.DROPPED: lambda event: event.message,
    EventKind.STOPPING: lambda _: "the daemon stops",
}
"""What each kind says; nothing where there is nothing to say."""
