"""`mnem` alone: the state at a glance."""

from __future__ import annotations

from collections.abc import Iterator

import click
import msgspec

from mnemosyned.cli.address_options import url_of
from mnemosyned.cli.answers.database import BY_THE_SERVER, on_disk
from mnemosyned.cli.answers.output import show
from mnemosyned.cli.calls import client_of
from mnemosyned.cli.exits import EXIT_OF_KIND
from mnemosyned.cli.look.rows import origin_of
from mnemosyned.domain.errors import DaemonUnreachable
from mnemosyned.domain.memory import MemoryRecord, Tier
from mnemosyned.terminal import counted, pairs, say, span, when
from mnemosyned.verbs.listing import ListMemories
from mnemosyned.verbs.status import Stats, Status

NEXT = "mnem recall WORDS · mnem today · mnem list · mnem --help"
NO_DAEMON = """mnem: no daemon answers on its socket
mnem start starts it; mnem doctor finds out why it does not run"""


class Glance(msgspec.Struct, frozen=True):
    """The state of the daemon, and the newest memory."""

    status: Stats
    newest: MemoryRecord | None = None


def glance(context: click.Context) -> int:
    """Print health, tiers, today and the next sleep; without a daemon, how to start it."""
    try:
        with client_of(context) as client:
            stats = client.call(Status())
            newest = client.call(ListMemories(limit=1)).memories
    except DaemonUnreachable as error:
        if url_of(context):  # the error says what to do there
            raise
        say(NO_DAEMON, err=True)
        return EXIT_OF_KIND[error.kind]
    show(Glance(stats, newest[0] if newest else None))
    return 0


def at_a_glance(state: Glance) -> str:
    """Health, today, tiers, sleep, agents, backups, and what is wrong."""
    stats = state.status
    wrong = list(_wrong(stats))
    health = "needs attention" if wrong else "is well"
    head = click.style(f"mnemosyned {health}", bold=True)
    up = click.style(f"  {stats.version}, up {span(stats.uptime_s)}", dim=True)
    rows = [
        ("today", _today(state)),
        ("memories", _kept(stats)),
        ("sleep", _sleep(stats)),
        ("agents", _agents(stats)),
        ("backups", _backups(stats)),
        *(("attention", click.style(problem, fg="red")) for problem in wrong),
    ]
    return f"{head}{up}\n\n{pairs(rows)}\n\n{click.style(NEXT, dim=True)}"


def _today(state: Glance) -> str:
    newest = state.newest
    if newest is None:
        return "nothing is remembered yet: mnem remember WORDS"
    moment = when(newest.created_at)
    stamp = f"at {moment[11:]}" if state.status.today else moment
    origin = origin_of(newest.session, newest.source)
    return f"{counted(state.status.today, 'memory')}; the last {stamp}, {origin}"


def _kept(stats: Stats) -> str:
    tiers = stats.tiers
    size = f"; {known}" if (known := on_disk(stats)) else ""
    return (
        f"{tiers[Tier.WORKING].count:,} working, {tiers[Tier.ARCHIVE].count:,} archived, "
        f"{counted(tiers[Tier.EPISODIC].count, 'summary')}{size}"
    )


def _sleep(stats: Stats) -> str:
    sleep = stats.sleep
    last = f"; the last {when(sleep.last_cycle)}" if sleep.last_cycle else ""
    if sleep.running:
        progress = sleep.progress
        done = f", {progress.done:,} of {progress.total:,}" if progress else ""
        return f"a cycle is running{done}: mnem tail -f shows its end"
    if sleep.paused_until:
        until = when(sleep.paused_until)
        return f"paused until {until}: mnem sleep --pause-minutes 0 ends it{last}"
    if not sleep.next_cycle:
        return f"no cycle is scheduled (auto_sleep is off): mnem sleep{last}"
    due = f", {counted(sleep.due, 'memory')} due" if sleep.due else ""
    return f"next {when(sleep.next_cycle)}{due}{last}"


def _agents(stats: Stats) -> str:
    """The tools whose hooks were called, and how much they stored."""
    stored: dict[str, int] = {}
    for activity in stats.agents:
        stored[activity.client] = stored.get(activity.client, 0) + activity.stored
    parts = [f"{client} ({count:,} captured)" for client, count in stored.items()]
    return ", ".join(parts) or "none captured anything yet: mnem setup"


def _backups(stats: Stats) -> str:
    if stats.on_server:
        return BY_THE_SERVER
    backup = stats.backup
    if backup.last:
        return f"the last {when(backup.last)}"
    return "scheduled, none yet" if backup.scheduled else "none: mnem backup"


def _wrong(stats: Stats) -> Iterator[str]:
    """Faults, each with what mends it."""
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
