"""`mnem tail`: the newest memories, and with -f each event as it happens."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from datetime import date, datetime
from typing import Any

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
from mnemosyned.cli.output.show import cells_of, say_cells, zoned_time
from mnemosyned.cli.output.terminal import (
    count_of,
    cut_text,
    duration_text,
    has_reader_left,
    is_terminal,
    say,
    say_json,
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
    """Yield the lines of an event: one, or one for each new memory."""
    if event.kind is EventKind.REMEMBERED:
        for memory in event.memories:
            yield memory_line(event.at, memory)
        hidden = event.count - len(event.memories)
        if hidden > 0:
            yield _event_line(
                event.at, f"and {count_of(hidden, 'more memory')}", dim=True
            )
    elif text := _event_text(event):
        is_refused = event.kind is EventKind.REFUSED
        yield _event_line(
            event.at, text, **{"fg": "red"} if is_refused else {"dim": True}
        )


def memory_line(moment: datetime, memory: EventMemory) -> str:
    """Return the line of a new memory: its time, origin and the beginning of its text."""
    head = f"{in_zone(moment, None):%H:%M:%S}  "
    session = escape_invisible(origin_of(memory.session, memory.source), one_line=True)
    origin = cut_text(session, room_after(head) // 2)
    speaker = f"{memory.role}: " if memory.role else ""
    text = escape_invisible(f"{speaker}{memory.text}", one_line=True)
    shown = cut_text(text, room_after(f"{head}{origin}  "))
    return f"{click.style(f'{head}{origin}', dim=True)}  {shown}"


def _event_line(moment: datetime, text: str, **style: Any) -> str:  # noqa: ANN401 of click
    head = f"{in_zone(moment, None):%H:%M:%S}  "
    shown = cut_text(escape_invisible(text, one_line=True), room_after(head))
    return click.style(f"{head}{shown}", **style)


def _event_text(event: Event) -> str:
    """Return an event in words; empty if it says nothing to people."""
    match event.kind:
        case EventKind.RECALLED:
            where = f" in {event.session}" if event.session else ""
            return f"recalled {count_of(event.count, 'hit')}{where}"
        case EventKind.FORGOTTEN:
            return f"forgot {count_of(event.count, 'memory')}"
        case EventKind.CHANGED:
            return " ".join([event.verb.replace("_", "-"), *event.ids[:3]])
        case EventKind.CAPTURED if event.message:
            return f"{event.client}: {event.hook} failed ({event.message})"
        case EventKind.CAPTURED if event.count:
            return f"{event.client}: {event.hook}, {event.count:,} captured"
        case EventKind.CYCLE_BEGUN:
            return f"sleep cycle begins ({event.trigger})"
        case EventKind.CYCLE_PROGRESS:
            return f"sleep cycle: {event.done:,} of {event.total:,}"
        case EventKind.CYCLE_ENDED if event.status in ("failed", "nothing_to_do"):
            return f"sleep cycle: {event.status.replace('_', ' ')}"
        case EventKind.CYCLE_ENDED:
            seconds = event.duration_s
            took = (
                f"{seconds:.1f} s" if seconds < SECONDS_MAX else duration_text(seconds)
            )
            return (
                f"sleep cycle {event.status}: {count_of(event.count, 'memory')} into "
                f"{count_of(event.episodes, 'summary')} in {took}"
            )
        case EventKind.REFUSED:
            return f"{event.verb.replace('_', '-')} refused: {event.message}"
        case EventKind.DROPPED:
            return event.message
        case EventKind.STOPPING:
            return "the daemon stops"
        case _:
            return ""


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
    printer = EventPrinter(chosen_format(), session, source)
    shown = 0
    try:
        with client_of(context) as client:
            if limit:
                request = ListMemories(
                    limit=limit,
                    session=list(session) or None,
                    source=list(source) or None,
                )
                newest = client.call(request).memories
                shown = len(newest)
                for memory in reversed(newest):
                    printer.print_memory(memory)
            for event in _read_events(client) if follow else ():
                if has_reader_left():
                    break
                printer.print_event(event)
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


def _read_events(client: Connection) -> Iterator[Event]:
    """Yield events, over all restarts of the daemon once it has answered."""
    last: int | None = None
    while True:  # until Ctrl-C
        try:
            for event in client.events(after=last):
                last = event.id or last
                yield event
        except DaemonUnreachable:
            pass
        if _wait_for_daemon(client):
            last = None


def _wait_for_daemon(client: Connection) -> bool:
    """Wait until the daemon answers; return whether it was gone meanwhile."""
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
        return lost


class EventPrinter:
    """Prints memories and events in the chosen form, of some sessions and sources or of all."""

    def __init__(
        self, form: str, sessions: Sequence[str], sources: Sequence[str]
    ) -> None:
        self._form = form
        self._day: date | None = None
        self._sessions = sessions
        self._sources = sources

    def print_memory(self, memory: MemoryRecord) -> None:
        """Print a memory that was stored before."""
        if self._form in ("json", "jsonl"):
            say_json(memory)
        elif self._form == "ids":
            say(escape_invisible(memory.id, one_line=True))
        elif self._form == "tsv":
            say_cells(cells_of(memory))
        else:
            shown = EventMemory(
                id=memory.id,
                created_at=memory.created_at,
                text=memory.content,
                session=memory.session,
                source=memory.source,
                role=memory.role,
            )
            self._print_lines(
                memory.created_at, [memory_line(memory.created_at, shown)]
            )

    def print_event(self, event: Event) -> None:
        """Print an event, unless it is of other sessions and sources."""
        is_narrowed = self._sessions or self._sources
        if is_narrowed and not any(map(self._is_wanted, event.memories)):
            return
        if self._form in ("json", "jsonl"):
            say_json(event)
        elif self._form == "ids":
            for memory in event.memories:
                say(escape_invisible(memory.id, one_line=True))
        elif self._form == "tsv":
            moment = zoned_time(event.at)
            for memory in event.memories:
                origin = [memory.session, memory.source or "", memory.role, memory.text]
                say_cells([memory.id, moment, event.kind.value, *origin])
            if not event.memories:
                text = click.unstyle(next(event_lines(event), ""))[TIME_CHARS:]
                say_cells(["", moment, event.kind.value, "", "", "", text])
        else:
            self._print_lines(event.at, event_lines(event))

    def _is_wanted(self, memory: EventMemory) -> bool:
        is_of_session = not self._sessions or memory.session in self._sessions
        return is_of_session and (not self._sources or memory.source in self._sources)

    def _print_lines(self, moment: datetime, lines: Iterable[str]) -> None:
        """Print lines under the title of their day, once for each day."""
        day = local_day(moment)
        if day != self._day:
            say(click.style(day_title(day), bold=True), styled=True)
        self._day = day
        for line in lines:
            say(line, styled=True)
