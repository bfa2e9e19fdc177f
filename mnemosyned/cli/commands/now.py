"""`mnem` alone and `mnem tail`: the present state, and each event as it happens."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from datetime import date, datetime
from typing import Any

import click
import msgspec

from mnemosyned import errors, instants
from mnemosyned.cli import arguments, options
from mnemosyned.cli.calls import PROBE_TIMEOUT_S, connect_to_daemon
from mnemosyned.cli.output import listing, show, terminal
from mnemosyned.cli.output.upkeep import backups_row, size_on_disk
from mnemosyned.client.connection import Connection
from mnemosyned.memory.values import MemoryRecord, Tier
from mnemosyned.socket_path import SERVER
from mnemosyned.text.display import escape_line
from mnemosyned.verbs.listing import ListMemories
from mnemosyned.verbs.upkeep import Event, EventKind, EventMemory, Stats, Status

NEXT = "mnem recall WORDS · mnem today · mnem list · mnem --help"
NO_DAEMON = """mnem: no daemon answers on its socket
mnem start starts it; mnem doctor finds out why it does not run"""


class Glance(msgspec.Struct, frozen=True):
    """The data of `mnem` without a command: the daemon's status and the newest memory."""

    status: Stats
    newest: MemoryRecord | None = None


def run_glance(context: click.Context) -> int:
    """Print the daemon's state at a glance, and whose memory it is; return the exit code."""
    remote = options.typed_remote(context)
    try:
        with connect_to_daemon(context, timeout_s=PROBE_TIMEOUT_S) as client:
            stats = client.call(Status())
            newest = client.call(ListMemories(limit=1)).memories
    except errors.DaemonUnreachable as error:
        if remote:  # the error says what to do there
            raise
        terminal.say(NO_DAEMON, err=True)
        return options.EXIT_OF_KIND[error.kind]
    show.show(Glance(stats, newest[0] if newest else None))
    if remote and remote.saved and options.chosen_format() == "table":
        terminal.say(f"memory: {remote.saved.describe(remote.owner or SERVER)}")
    return 0


def _glance_text(state: Glance) -> str:
    """Return the daemon's state: a heading, a line each for today, memories and so on, faults."""
    stats = state.status
    faults = list(_faults_of(stats))
    health = "needs attention" if faults else "is running"
    head = click.style(f"mnemosyned {health}", bold=True)
    up = click.style(
        f"  {stats.version}, up {terminal.duration_text(stats.uptime_s)}", dim=True
    )
    today = "nothing is remembered yet: mnem remember WORDS"
    if newest := state.newest:
        moment = terminal.local_time(newest.created_at)
        origin = listing.origin_of(newest.session, newest.source)
        stamp = f"at {moment[11:]}" if stats.today else moment
        today = (
            f"{terminal.count_of(stats.today, 'memory')}; the last {stamp}, {origin}"
        )
    tiers = stats.tiers
    size = f"; {known}" if (known := size_on_disk(stats)) else ""
    memories = (
        f"{tiers[Tier.WORKING].count:,} working, {tiers[Tier.ARCHIVE].count:,} archived, "
        f"{terminal.count_of(tiers[Tier.EPISODIC].count, 'summary')}{size}"
    )
    stored: Counter[str] = Counter()
    for activity in stats.agents:
        stored[activity.client] += activity.stored
    agents = ", ".join(f"{name} ({count:,} captured)" for name, count in stored.items())
    rows = [
        ("today", today),
        ("memories", memories),
        ("sleep", _sleep_row(stats)),
        ("agents", agents or "none captured anything yet: mnem setup"),
        ("backups", backups_row(stats)),
        *(("attention", click.style(fault, fg="red")) for fault in faults),
    ]
    return f"{head}{up}\n\n{terminal.key_lines(rows)}\n\n{click.style(NEXT, dim=True)}"


def _sleep_row(stats: Stats) -> str:
    """Return in words whether a sleep cycle runs, or the times of the next and the last cycle."""
    sleep = stats.sleep
    last = (
        f"; the last {terminal.local_time(sleep.last_cycle)}"
        if sleep.last_cycle
        else ""
    )
    if sleep.running:
        progress = sleep.progress
        done = f", {progress.done:,} of {progress.total:,}" if progress else ""
        return f"a cycle is running{done}: mnem tail -f shows its end"
    if sleep.paused_until:
        until = terminal.local_time(sleep.paused_until)
        return f"paused until {until}: mnem sleep --pause-minutes 0 ends it{last}"
    if not sleep.next_cycle:
        return f"no cycle is scheduled (auto_sleep is off): mnem sleep{last}"
    due = "nothing old enough yet"
    if sleep.due:
        due = f"{terminal.count_of(sleep.due, 'memory')} old enough"
    return f"next {terminal.local_time(sleep.next_cycle)}, {due}{last}"


def _faults_of(stats: Stats) -> Iterator[str]:
    """Yield sentences on problems, warnings, settings that need a restart, clock faults and failed hooks."""
    yield from stats.problems
    yield from stats.warnings
    if stats.restart_needed:
        yield f"{', '.join(stats.restart_needed)} changed: mnem restart"
    if stats.clock:
        yield stats.clock
    for activity in stats.agents:
        if activity.failure and activity.failed_at == activity.called_at:
            yield (
                f"the last {activity.event} hook of {activity.client} failed "
                f"({activity.failure}): mnem setup --check"
            )


show.RENDERERS[Glance] = show.Renderer(_glance_text)


# ------------------------------------------------------------------ mnem tail

SECONDS_MAX = 60
"""Seconds from which a duration is printed in minutes."""


def event_lines(event: Event) -> Iterator[str]:
    """Yield lines for the new memories of an event; for another event a single line, or none if internal."""
    if event.kind is EventKind.REMEMBERED:
        for memory in event.memories:
            yield memory_line(event.at, memory, memory.text)
        hidden = event.count - len(event.memories)
        if hidden > 0:
            yield _event_line(
                event.at, f"and {terminal.count_of(hidden, 'more memory')}", dim=True
            )
    elif text := event_text(event):
        text += f" in {event.session}" if event.session else ""
        is_refused = event.kind is EventKind.REFUSED
        yield _event_line(
            event.at, text, **{"fg": "red"} if is_refused else {"dim": True}
        )


def memory_line(
    moment: datetime, memory: EventMemory | MemoryRecord, content: str
) -> str:
    """Return a memory on one line, cut to the terminal: time, session, source and `content`."""
    head = f"{instants.in_zone(moment, None):%H:%M:%S}  "
    session = escape_line(listing.origin_of(memory.session, memory.source))
    origin = terminal.cut_text(session, listing.room_after(head) // 2)
    speaker = f"{memory.role}: " if memory.role else ""
    text = escape_line(f"{speaker}{content}")
    shown = terminal.cut_text(text, listing.room_after(f"{head}{origin}  "))
    return f"{click.style(f'{head}{origin}', dim=True)}  {shown}"


def _event_line(moment: datetime, text: str, **style: Any) -> str:  # noqa: ANN401 of click
    """Return an event on one line, cut to the terminal, in a style of `click.style`."""
    head = f"{instants.in_zone(moment, None):%H:%M:%S}  "
    shown = terminal.cut_text(escape_line(text), listing.room_after(head))
    return click.style(f"{head}{shown}", **style)


def event_text(event: Event) -> str:
    """Return an event in words, without its session; empty for internal events."""
    verb, status = event.verb.replace("_", "-"), event.status.replace("_", " ")
    match event.kind:
        case EventKind.REMEMBERED:
            return f"remembered {terminal.count_of(event.count, 'memory')}"
        case EventKind.RECALLED:
            return f"recalled {terminal.count_of(event.count, 'hit')}"
        case EventKind.FORGOTTEN:
            return f"forgot {terminal.count_of(event.count, 'memory')}"
        case EventKind.CHANGED:
            return " ".join([verb, *event.ids[:3]])
        case EventKind.CAPTURED if event.message:
            return f"{event.client}: {event.hook} failed ({event.message})"
        case EventKind.CAPTURED if event.count:
            return f"{event.client}: {event.hook}, {event.count:,} captured"
        case EventKind.CYCLE_BEGUN:
            return f"sleep cycle begins ({event.trigger})"
        case EventKind.CYCLE_PROGRESS:
            return f"sleep cycle: {event.done:,} of {event.total:,}"
        case EventKind.CYCLE_ENDED if event.status in ("failed", "nothing_to_do"):
            return f"sleep cycle: {status}"
        case EventKind.CYCLE_ENDED:
            took = terminal.duration_text(event.duration_s)
            if event.duration_s < SECONDS_MAX:
                took = f"{event.duration_s:.1f} s"
            return (
                f"sleep cycle {event.status}: {terminal.count_of(event.count, 'memory')} into "
                f"{terminal.count_of(event.episodes, 'summary')} in {took}"
            )
        case EventKind.REFUSED:
            return f"{verb} refused: {event.message}"
        case EventKind.DROPPED:
            return event.message
        case EventKind.STOPPING:
            return "the daemon stops"
        case _:
            return ""


RETRY_S = 1.0
TIME_CHARS = len("10:00:00  ")
"""The time before the words of an event."""


@click.command("tail", cls=options.AnswerCommand)
@click.option(
    "-f", "--follow", is_flag=True, help="Continue with new events as they happen."
)
@click.option(
    "-n",
    "--limit",
    type=click.IntRange(0, 1_000),
    default=10,
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
    """Show the newest memories, and with -f also new events.

    The oldest of them comes first. Events are memories stored, recalled, changed and captured, and
    sleep cycles. Ctrl-C ends it; a restart of the daemon does not.
    """
    printer = EventPrinter(options.chosen_format(), session, source)
    newest: Sequence[MemoryRecord] = ()
    try:
        with connect_to_daemon(context) as client:
            # Before the memories are asked for, so that none falls between them and the events.
            events: Iterator[Event] = iter(())
            if follow:
                with suppress(errors.DaemonUnreachable):  # waited for below
                    events = client.events()
            if limit:
                request = ListMemories(
                    limit=limit,
                    session=list(session) or None,
                    source=list(source) or None,
                )
                newest = client.call(request).memories
                for memory in reversed(newest):
                    printer.print_memory(memory)
            shown = {memory.id for memory in newest}
            for event in _follow_events(client, events) if follow else ():
                if terminal.is_reader_gone():
                    break
                is_shown = (  # all that it says is that these were remembered
                    event.kind is EventKind.REMEMBERED
                    and 0 < event.count == len(event.memories)
                    and all(memory.id in shown for memory in event.memories)
                )
                if not is_shown:
                    printer.print_event(event)
    except KeyboardInterrupt:
        if terminal.is_terminal(sys.stderr):
            terminal.say("", err=True)  # the prompt begins on a line of its own
        return options.EXIT_INTERRUPTED
    if newest or follow:
        return 0
    terminal.say("nothing matches", err=True)
    return options.EXIT_NOTHING


tail.params[2:2] = arguments.make_parameters(ListMemories, ("session", "source"))


def _follow_events(client: Connection, events: Iterator[Event]) -> Iterator[Event]:
    """Yield the given events, then the daemon's later ones without end; connect again after a loss."""
    last: int | None = None
    while True:  # until Ctrl-C
        with suppress(errors.DaemonUnreachable):
            for event in events:
                last = event.id or last
                yield event
        if _wait_for_daemon(client):
            last = None
        with suppress(errors.DaemonUnreachable):
            events = client.events(after=last)


def _wait_for_daemon(client: Connection) -> bool:
    """Wait until the daemon answers; if it does not answer at once, print so and return True."""
    lost = False
    while True:  # until Ctrl-C
        with suppress(errors.DaemonUnreachable):
            client.call(Status())
            break
        if not lost:
            terminal.say("mnem: the daemon is gone; waiting until it answers", err=True)
        lost = True
        time.sleep(RETRY_S)
    if lost:
        terminal.say("mnem: connected again", err=True)
    return lost


class EventPrinter:
    """Prints memories and events in a format, filtered by sessions and sources if given."""

    def __init__(
        self, form: str, sessions: Sequence[str], sources: Sequence[str]
    ) -> None:
        self._form = form
        self._day: date | None = None
        self._sessions = sessions
        self._sources = sources

    def print_memory(self, memory: MemoryRecord) -> None:
        """Print a stored memory in the chosen format."""
        if self._form == "table":
            line = memory_line(memory.created_at, memory, memory.content)
            self._print_lines(memory.created_at, [line])
        else:
            show.say_record(memory, self._form)

    def print_event(self, event: Event) -> None:
        """Print an event in the chosen format; if filters are given, skip events without a matching memory."""
        is_narrowed = self._sessions or self._sources
        if is_narrowed and not any(
            (not self._sessions or memory.session in self._sessions)
            and (not self._sources or memory.source in self._sources)
            for memory in event.memories
        ):
            return
        if self._form in ("json", "jsonl"):
            terminal.say_json(event)
        elif self._form == "ids":
            for memory in event.memories:
                terminal.say(escape_line(memory.id))
        elif self._form == "tsv":
            moment = show.zoned_time(event.at)
            for memory in event.memories:
                origin = [memory.session, memory.source or "", memory.role, memory.text]
                show.say_cells([memory.id, moment, event.kind.value, *origin])
            if not event.memories:
                text = click.unstyle(next(event_lines(event), ""))[TIME_CHARS:]
                show.say_cells(["", moment, event.kind.value, "", "", "", text])
        else:
            self._print_lines(event.at, event_lines(event))

    def _print_lines(self, moment: datetime, lines: Iterable[str]) -> None:
        """Print lines of one event, after the title of the day if the day has changed."""
        day = listing.local_day(moment)
        if day != self._day:
            terminal.say(click.style(listing.day_title(day), bold=True), styled=True)
        self._day = day
        for line in lines:
            terminal.say(line, styled=True)
