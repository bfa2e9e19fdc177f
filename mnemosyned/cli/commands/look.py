"""`mnem` alone, `mnem list`, `today`, `day`, `week` and `month`: a look without a question."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime, time, timedelta
from typing import Any, Literal

import click
import msgspec

from mnemosyned.cli.arguments import fields_typed, in_order, parameter
from mnemosyned.cli.calls import called, client_of
from mnemosyned.cli.options import (
    EXIT_NOTHING,
    EXIT_OF_KIND,
    AnswerCommand,
    chosen_format,
    url_of,
)
from mnemosyned.cli.output.listing import (
    day_title,
    origin_of,
    period_name,
    rows_by_origin,
)
from mnemosyned.cli.output.show import answers, show
from mnemosyned.cli.output.terminal import (
    counted,
    cut_line,
    indented,
    pairs,
    reader_left,
    say,
    span,
    when,
    width,
    wrapped_lines,
)
from mnemosyned.cli.output.upkeep import BY_THE_SERVER, on_disk
from mnemosyned.client.connection import Connection
from mnemosyned.errors import DaemonUnreachable, InvalidRequest
from mnemosyned.instants import in_zone
from mnemosyned.memory.listing import ListOrder
from mnemosyned.memory.values import Episode, MemoryRecord, Tier
from mnemosyned.verbs.listing import Listed, ListMemories
from mnemosyned.verbs.request import fields_of, parse_text
from mnemosyned.verbs.times import local_now, read_period
from mnemosyned.verbs.upkeep import Stats, Status

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


PAGE = 500
"""Records of one call, where more are asked for."""
RECORDS_SHOWN = 50
RECORDS_SHOWN_MAX = 100_000_000


def _limit_of(typed: str | None, *, everything: bool) -> int:
    """How many records are asked for. Raises `InvalidRequest`."""
    if everything:
        return RECORDS_SHOWN_MAX
    if typed is None:
        return RECORDS_SHOWN
    if not typed.isdecimal() or not 1 <= int(typed[:12]) <= RECORDS_SHOWN_MAX:
        raise InvalidRequest(
            f"limit must be a whole number from 1 on, not {typed!r}; --all lists everything",
            field="limit",
        )
    return int(typed)


def print_list(context: click.Context, /, *, all_: bool, **given: Any) -> int:  # noqa: ANN401
    """Print as many pages as are asked for."""
    fields = fields_typed(given)
    left = _limit_of(fields.pop("limit", None), everything=all_)
    request = parse_text(ListMemories, fields)
    with client_of(context) as client, answers() as printer:
        pages = _pages(client, request, left)
        if chosen_format() == "json":
            pages = iter([_joined(pages)])
        shown = 0
        for page in pages:
            printer.show(page)
            shown += len(page)
            if printer.is_over() or reader_left():
                break
    return 0 if shown else EXIT_NOTHING


def _pages(client: Connection, request: ListMemories, left: int) -> Iterator[Listed]:
    """Yield page after page; only the last one says what follows."""
    while True:  # ends with the records
        size = min(left, PAGE)
        page = called(client, msgspec.structs.replace(request, limit=size))
        left -= len(page)
        if not page.next or left <= 0:
            yield page
            return
        yield msgspec.structs.replace(page, next=None)
        request = msgspec.structs.replace(request, after=page.next)


def _joined(pages: Iterator[Listed]) -> Listed:
    """All pages as one."""
    gathered = list(pages)
    return Listed(
        [memory for page in gathered for memory in page.memories],
        [episode for page in gathered for episode in page.episodes],
        gathered[-1].next,
    )


def _list_params() -> list[click.Parameter]:
    params = [parameter(ListMemories, field) for field in in_order(ListMemories)]
    everything = click.Option(
        ["--all", "all_"], is_flag=True, help="List everything that matches."
    )
    return [*params, everything]


list_command = AnswerCommand(
    "list",
    params=_list_params(),
    callback=click.pass_context(print_list),
    help=str(ListMemories.__doc__).partition("\n\n    Raises")[0],
)


Unit = Literal["day", "week", "month"]

MEMORIES_OF_A_DAY = 8
"""Memories shown of a day within a week or a month, where it has no summary."""
SUMMARIES_MAX = 100
ONE_DAY = timedelta(days=1)


class Part(msgspec.Struct, frozen=True):
    """A part of a period: a day or a week by its summary, or a day by its memories."""

    first: date
    last: date
    summary: Episode | None = None
    memories: list[MemoryRecord] = msgspec.field(default_factory=list)
    more: bool = False
    """Whether the day has more memories than are shown."""


class PeriodView(msgspec.Struct, frozen=True):
    """A day, week or month."""

    unit: str
    first: date
    last: date
    summary: Episode | None = None
    """Its own summary, once a sleep cycle has written one."""
    parts: list[Part] = msgspec.field(default_factory=list)
    narrowed: bool = False
    """Whether a filter narrows it: then summaries, which speak of everything, are left out."""

    @property
    def records(self) -> list[Episode | MemoryRecord]:
        """Everything that is shown, in order."""
        records: list[Episode | MemoryRecord] = []
        if self.summary:
            records.append(self.summary)
        for part in self.parts:
            records += [part.summary] if part.summary else []
            records += part.memories
        return records


class Reader:
    """Reads periods from the daemon; `fixed` narrows and bounds all that it asks for."""

    def __init__(self, client: Connection, fixed: ListMemories, limit: int) -> None:
        self._client = client
        self._fixed = fixed
        self._limit = limit
        self._narrowed = bool(fixed.session or fixed.source or fixed.role or fixed.tag)

    def read(self, when: str, unit: Unit) -> PeriodView:
        """Return the period in which a typed time lies. Raises `InvalidTime`."""
        now = local_now()
        span = read_period(when or "today", unit, now=now)
        first = in_zone(span.since, now.tzinfo).date()
        last = in_zone(span.until, now.tzinfo).date() - ONE_DAY
        today = now.date()
        if unit == "day":
            parts = [self._memories(first, self._limit)]
        else:
            parts = self._parts(first, min(last, max(today, first)), unit)
        return PeriodView(
            unit,
            first,
            last,
            self._summaries(unit, first, last).get(first),
            [part for part in parts if part.summary or part.memories],
            self._narrowed,
        )

    def _parts(self, first: date, last: date, unit: Unit) -> list[Part]:
        """The weeks and days of a period, each by the highest summary below the period's own."""
        weeks = self._summaries("week", first, last) if unit == "month" else {}
        days = self._summaries("day", first, last)
        parts: list[Part] = []
        day = first
        while day <= last:
            if summary := weeks.get(day):
                parts.append(Part(day, day + 6 * ONE_DAY, summary))
                day += 7 * ONE_DAY
                continue
            if summary := days.get(day):
                parts.append(Part(day, day, summary))
            else:
                parts.append(self._memories(day, MEMORIES_OF_A_DAY))
            day += ONE_DAY
        return parts

    def _summaries(self, unit: Unit, first: date, last: date) -> dict[date, Episode]:
        """Summaries of periods that begin within these days. They go by the UTC calendar.

        What a week covers may begin days after the week does.
        """
        if self._narrowed:
            return {}
        page = self._client.call(
            ListMemories(
                level=unit,
                since=datetime.combine(first, time(), UTC),
                until=datetime.combine(last + 7 * ONE_DAY, time(), UTC),
                order=ListOrder.OLDEST,
                limit=SUMMARIES_MAX,
                reveal=self._fixed.reveal,
            )
        )
        begun = {
            in_zone(episode.period_from, UTC).date(): episode
            for episode in page.episodes
            if episode.period_from
        }
        return {day: begun[day] for day in begun if first <= day <= last}

    def _memories(self, day: date, limit: int) -> Part:
        page = self._client.call(
            msgspec.structs.replace(
                self._fixed,
                since=_midnight(day),
                until=_midnight(day + ONE_DAY),
                order=ListOrder.OLDEST,
                limit=limit,
            )
        )
        return Part(day, day, None, page.memories, bool(page.next))


def _midnight(day: date) -> datetime:
    """The first instant of a day on this machine's calendar."""
    return in_zone(datetime.combine(day, time()), None)


LINES_OF_A_PART = 3
"""Lines shown of a summary below the period's own."""
INDENT = " " * 6


def view(period: PeriodView, first: int = 1) -> str:
    """A title, the period's summary, and its parts, all that can be opened numbered."""
    number = first
    blocks = [_title(period)]
    if period.summary:
        blocks[0] += f"\n{_overview(period.summary, number)}"
        number += 1
    for part in period.parts:
        blocks.append("\n".join(_part(part, number, period)))
        number += bool(part.summary) + len(part.memories)
    if not period.records:
        return ""
    close = period.unit == "day" and not period.summary
    return ("\n" if close else "\n\n").join(blocks)


def on_view(period: PeriodView) -> str:
    """Remarks on what is missing."""
    if not period.records:
        nothing = "nothing matches in" if period.narrowed else "nothing is kept of"
        return f"{nothing} {_name(period)}"
    if period.summary or period.unit == "day" or period.narrowed:
        return ""
    return (
        f"no summary of this {period.unit} yet: a sleep cycle after its end writes it"
    )


def _title(period: PeriodView) -> str:
    return click.style(_name(period), bold=True)


def _name(period: PeriodView) -> str:
    return period_name(period.unit, period.first)


def _overview(summary: Episode, number: int) -> str:
    memories = counted(summary.item_count, "memory")
    counts = f"   summary of {memories}, number {number}:"
    return f"{click.style(counts, dim=True)}\n{wrapped_lines(summary.content)}"


def _part(part: Part, number: int, period: PeriodView) -> Iterator[str]:
    """A week or a day by its summary, or a day by its memories."""
    if part.summary is None:
        if period.unit != "day":
            yield click.style(day_title(part.first), bold=True)
        yield from rows_by_origin(part.memories, number)
        if part.more:
            yield _dim(f"and more: {_further(part.first.isoformat(), period)}")
        return
    count = counted(part.summary.item_count, "memory")
    name = _part_name(part)
    head = click.style(f"{number:>4}  {name}", bold=True)
    yield f"{head}  {click.style(count, dim=True)}"
    lines = [line for line in part.summary.content.splitlines() if line.strip()]
    room = max(width() - len(INDENT), 1)
    for line in lines[:LINES_OF_A_PART]:
        yield f"{INDENT}{cut_line(line, room)}"
    if len(lines) > LINES_OF_A_PART:
        unit = "day" if part.first == part.last else "week"
        left = counted(len(lines) - LINES_OF_A_PART, "more line")
        yield _dim(f"{left}: mnem {unit} {part.first.isoformat()}")


def _further(day: str, period: PeriodView) -> str:
    """The command that shows a day's memories, of which a view has the first alone."""
    filters = " with the same filters" if period.narrowed else ""
    if period.unit == "day":
        return f"mnem list --since {day} --until {day} --all{filters}"
    return f"mnem day {day}{filters}"


def _part_name(part: Part) -> str:
    return period_name("day" if part.first == part.last else "week", part.first)


def _dim(text: str) -> str:
    return click.style(indented(f"   {text}"), dim=True)


PERIOD_FILTERS = ("session", "source", "role", "tag", "history", "reveal")
MEMORIES_OF_A_PERIOD = 1_000


def _command(name: str, unit: Unit, help_text: str) -> click.Command:
    fields = {field.name: field for field in fields_of(ListMemories)}
    params: list[click.Parameter] = [
        parameter(ListMemories, fields[filter_name]) for filter_name in PERIOD_FILTERS
    ]
    if name != "today":
        words = click.Argument(["when"], nargs=-1, metavar="[WHEN]")
        params.insert(0, words)

    def run(
        context: click.Context,
        /,
        *,
        when: tuple[str, ...] = (),
        **given: Any,  # noqa: ANN401
    ) -> int:
        request = parse_text(ListMemories, fields_typed(given))
        with client_of(context) as client:
            view = Reader(client, request, MEMORIES_OF_A_PERIOD).read(
                " ".join(when), unit
            )
        show(view)
        return 0 if view.records else EXIT_NOTHING

    return AnswerCommand(
        name, params=params, callback=click.pass_context(run), help=help_text
    )


_WHEN = (
    "WHEN is a time in words: yesterday, 18 Nov, last monday, 2026-11-18; without it, "
    "the present one.\n\nWith a filter, the memories alone are shown."
)
today = _command(
    "today", "day", "Show the memories of today, the oldest first, and its summary."
)
day = _command(
    "day", "day", f"Show a day: its summary, and its memories under it.\n\n{_WHEN}"
)
week = _command(
    "week",
    "week",
    "Show a week: its summary, and its days. A day without a summary is shown by its "
    f"memories.\n\n{_WHEN}",
)
month = _command(
    "month",
    "month",
    "Show a month: its summary, and its weeks and days. A day without a summary is shown "
    f"by its memories.\n\n{_WHEN}",
)
