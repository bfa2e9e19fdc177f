"""`mnem tail`: the newest memories, and with -f each event as it happens."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import date, datetime

import click

from mnemosyned.cli.arguments import parameter
from mnemosyned.cli.calls import client_of
from mnemosyned.cli.options import (
    EXIT_INTERRUPTED,
    EXIT_NOTHING,
    AnswerCommand,
    chosen_format,
)
from mnemosyned.cli.output.listing import day_title, local_day, origin_of, room_after
from mnemosyned.cli.output.show import cells_of
from mnemosyned.cli.output.terminal import (
    counted,
    cut,
    is_terminal,
    reader_left,
    say,
    say_json,
    span,
)
from mnemosyned.client.connection import Connection
from mnemosyned.errors import DaemonUnreachable
from mnemosyned.instants import in_zone
from mnemosyned.memory.values import MemoryRecord
from mnemosyned.text.display import escape_invisible
from mnemosyned.verbs.listing import ListMemories
from mnemosyned.verbs.request import fields_of
from mnemosyned.verbs.upkeep import Event, EventKind, EventMemory, Status

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


LAST = 10
LAST_MAX = 1_000
RETRY_S = 1.0
TIME_CHARS = len("10:00:00  ")
"""The time before the words of an event."""


@click.command(
    "tail",
    cls=AnswerCommand,
    help="Show the newest memories, and with -f what happens next.\n\nThe oldest of them "
    "comes first. What happens is what is remembered, recalled, changed and captured, and "
    "sleep cycles. Ctrl-C ends it; a restart of the daemon does not.",
)
@click.option(
    "-f", "--follow", is_flag=True, help="Go on with what happens, as it happens."
)
@click.option(
    "-n",
    "--limit",
    type=click.IntRange(0, LAST_MAX),
    default=LAST,
    show_default=True,
    metavar="NUMBER",
    help="Memories to begin with.",
)
@click.pass_context
def tail(
    context: click.Context,
    *,
    follow: bool,
    limit: int,
    session: tuple[str, ...],
    source: tuple[str, ...],
) -> int:
    """Print the newest memories, then events until Ctrl-C."""
    printer = _Printer(chosen_format(), session, source)
    try:
        with client_of(context) as client:
            shown = _begin(client, printer, limit)
            if follow:
                _follow(client, printer)
    except KeyboardInterrupt:
        if is_terminal(sys.stderr):
            say("", err=True)  # the prompt begins on a line of its own
        return EXIT_INTERRUPTED
    if shown or follow:
        return 0
    say("nothing matches", err=True)
    return EXIT_NOTHING


_FILTERS = [
    parameter(ListMemories, field)
    for field in fields_of(ListMemories)
    if field.name in ("session", "source")
]
tail.params[2:2] = _FILTERS


def _begin(client: Connection, printer: _Printer, limit: int) -> int:
    """Print the newest memories, the oldest of them first."""
    if not limit:
        return 0
    request = ListMemories(
        limit=limit,
        session=list(printer.sessions) or None,
        source=list(printer.sources) or None,
    )
    newest = client.call(request).memories
    for memory in reversed(newest):
        printer.memory(memory)
    return len(newest)


def _follow(client: Connection, printer: _Printer) -> None:
    """Print events until nobody reads them; a daemon that is gone is waited for."""
    for event in _events(client):
        if reader_left():
            return
        printer.event(event)


def _events(client: Connection) -> Iterator[Event]:
    """Yield events, over all restarts of the daemon once it has answered."""
    last: int | None = None
    while True:  # until Ctrl-C
        try:
            for event in client.events(after=last):
                last = event.id or last
                yield event
        except DaemonUnreachable:
            pass
        last = _reconnected(client, last)


def _reconnected(client: Connection, last: int | None) -> int | None:
    """Wait until the daemon answers; the event to go on after, if it is still the same one."""
    lost = False
    while True:  # until Ctrl-C
        try:
            client.call(Status())
        except DaemonUnreachable:
            if not lost:
                say("mnem: the daemon is gone; waiting until it answers", err=True)
            lost = True
            time.sleep(RETRY_S)
            continue
        if lost:
            say("mnem: connected again", err=True)
        return None if lost else last


class _Printer:
    """Prints memories and events in the form that was chosen."""

    def __init__(
        self, form: str, sessions: Sequence[str], sources: Sequence[str]
    ) -> None:
        self._form = form
        self._day: date | None = None
        self.sessions = sessions
        self.sources = sources

    def memory(self, memory: MemoryRecord) -> None:
        """Print a memory of before."""
        if self._form in ("json", "jsonl"):
            say_json(memory)
        elif self._form == "ids":
            say(escape_invisible(memory.id, one_line=True))
        elif self._form == "tsv":
            self._cells(cells_of(memory))
        else:
            shown = EventMemory(
                id=memory.id,
                created_at=memory.created_at,
                text=memory.content,
                session=memory.session,
                source=memory.source,
                role=memory.role,
            )
            self._title(memory.created_at)
            say(memory_line(memory.created_at, shown), styled=True)

    def event(self, event: Event) -> None:
        """Print an event, or what of it belongs to the sessions and sources asked for."""
        if not self._is_wanted(event):
            return
        if self._form in ("json", "jsonl"):
            say_json(event)
        elif self._form == "ids":
            for memory in event.memories:
                say(escape_invisible(memory.id, one_line=True))
        elif self._form == "tsv":
            self._event_cells(event)
        else:
            self._title(event.at)
            for line in event_lines(event):
                say(line, styled=True)

    def _title(self, moment: datetime) -> None:
        """Print the day, where it is another than that of the line before."""
        day = local_day(moment)
        if day != self._day:
            say(click.style(day_title(day), bold=True), styled=True)
        self._day = day

    def _is_wanted(self, event: Event) -> bool:
        if not (self.sessions or self.sources):
            return True
        return any(
            (not self.sessions or memory.session in self.sessions)
            and (not self.sources or memory.source in self.sources)
            for memory in event.memories
        )

    def _event_cells(self, event: Event) -> None:
        moment = in_zone(event.at, None).isoformat(timespec="seconds")
        for memory in event.memories:
            origin = [memory.session, memory.source or "", memory.role, memory.text]
            self._cells([memory.id, moment, event.kind.value, *origin])
        if not event.memories:
            words = click.unstyle(next(event_lines(event), ""))[TIME_CHARS:]
            self._cells(["", moment, event.kind.value, "", "", "", words])

    def _cells(self, cells: Sequence[str]) -> None:
        say("\t".join(escape_invisible(cell, one_line=True) for cell in cells))
