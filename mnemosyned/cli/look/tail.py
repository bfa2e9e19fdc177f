"""`mnem tail`: the newest memories, and what happens from then on."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from datetime import date, datetime

import click

from mnemosyned.cli.answers.formats import AnswerCommand, chosen_format
from mnemosyned.cli.answers.records import cells_of
from mnemosyned.cli.arguments.parameters import parameter
from mnemosyned.cli.calls import client_of
from mnemosyned.cli.exits import EXIT_INTERRUPTED, EXIT_NOTHING
from mnemosyned.cli.look.rows import day_title, local_day
from mnemosyned.cli.look.show_events import event_lines, memory_line
from mnemosyned.client.connection import Connection
from mnemosyned.domain.errors import DaemonUnreachable
from mnemosyned.domain.instants import in_zone
from mnemosyned.domain.memory import MemoryRecord
from mnemosyned.domain.text.invisible import escape_invisible
from mnemosyned.terminal import is_terminal, reader_left, say, say_json
from mnemosyned.verbs.listing import ListMemories
from mnemosyned.verbs.request import fields_of
from mnemosyned.verbs.status import Status
from mnemosyned.verbs.streams.events import Event, EventMemory

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
