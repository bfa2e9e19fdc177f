"""`mnem list`, `today`, `day`, `week` and `month`; `endings`, `injections` and `briefing`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click
import msgspec

from mnemosyned.agents.hooks.withheld import describe_silence
from mnemosyned.cli import arguments, calls, ids, options, registry, verb_command
from mnemosyned.cli.output import listing, terminal
from mnemosyned.cli.output.show import RENDERERS, Renderer, open_printer, show
from mnemosyned.client.connection import Connection
from mnemosyned.errors import InvalidRequest
from mnemosyned.instants import day_at, in_zone, shift
from mnemosyned.memory.listing import ListOrder
from mnemosyned.memory.values import Episode, MemoryRecord
from mnemosyned.verbs import conversation
from mnemosyned.verbs.listing import Listed, ListMemories
from mnemosyned.verbs.request import parse_text

if TYPE_CHECKING:
    from mnemosyned.verbs.facade import Caller


endings = verb_command.make_verb_command("endings", conversation.Endings)
verb_command.add_change(
    endings,
    conversation.UndoEnding,
    {"undo": {"redo": "false"}, "redo": {"redo": "true"}},
    hint="say undo or redo and an id: mnem endings undo 01M2B9QW",
)
injections = verb_command.make_verb_command("injections", conversation.Injections)
verb_command.add_change(
    injections,
    conversation.RateInjection,
    {
        rating: {"outcome": rating.replace("-", "_")}
        for rating in ("useful", "not-useful", "unknown")
    },
    hint="say useful, not-useful or unknown, and an id: mnem injections useful 01M2B9QW",
)


@click.command("briefing", cls=options.AnswerCommand)
@click.argument("text", nargs=-1, metavar="[TEXT]")
@click.option(
    "--project", metavar="DIR", help="A directory of the project, or its key."
)
@click.option(
    "--prompt", metavar="TEXT", help="Show what agents would be given with this prompt."
)
@click.option("--pin", metavar="ID", help="Always give this line, and first.")
@click.option("--drop", metavar="ID", help="Never give this line again.")
@click.option("--reword", metavar="ID", help="Give this line in the words TEXT.")
@click.option("--undo", metavar="ID", help="Revert the change to this line.")
@click.pass_context
def briefing(
    context: click.Context,
    /,
    text: tuple[str, ...],
    project: str | None,
    prompt: str | None,
    **given: str | None,
) -> int:
    """Show what agents are given at a start or with a prompt.

    The project is that of this directory. With `--prompt`, up to five lines that were left out are
    listed, too, each with the reason. `--pin`, `--drop` and `--reword` change a line by the id
    of its memory or learning, and `--undo` takes that back.
    """
    changes: dict[str, dict[str, Any]] = {
        "pin": {"pin": True, "drop": False},
        "drop": {"drop": True, "pin": False},
        "reword": {"text": " ".join(text)},
        "undo": {"pin": False, "drop": False, "text": ""},
    }
    chosen = [(change, id) for change, id in given.items() if id is not None]
    if len(chosen) > 1 or bool(text) != bool(given["reword"]):
        raise click.UsageError(
            "give one of --pin ID, --drop ID, --reword ID TEXT and --undo ID"
        )
    with calls.connect_to_daemon(context) as client:
        for change, id in chosen:
            fields = ids.with_whole_ids("edit_briefing", {"id": id}, client)
            show(
                calls.call_daemon(
                    client, conversation.EditBriefing(fields["id"], **changes[change])
                )
            )
            return 0
        key = arguments.project_key(project or ".") or None
        told = calls.call_daemon(
            client, conversation.Briefing(project=key, prompt=prompt)
        )
    show(told)
    if not told.lines:
        place = f"the project is {key}" if key else "this folder is in no project"
        terminal.say(f"{place}; `mnem projects` lists all", err=True)
    if silence := describe_silence(project or str(Path.cwd())):
        terminal.say(silence, err=True)
    return 0 if told.lines else options.EXIT_NOTHING


# ------------------------------------------------------------------ mnem list

PAGE = 500
"""Records in one call if more are requested."""
RECORDS_SHOWN_MAX = 100_000_000


def print_list(context: click.Context, /, *, all_: bool, **given: Any) -> int:  # noqa: ANN401
    """Print memories or summaries, up to `limit` or with `all_` all that match; return the exit code."""
    fields = arguments.read_fields(given)
    limit = RECORDS_SHOWN_MAX if all_ else 50
    typed = fields.pop("limit", None)
    if typed is not None and not all_:
        if not typed.isdecimal() or not 1 <= int(typed[:12]) <= RECORDS_SHOWN_MAX:
            raise InvalidRequest(
                f"limit must be a whole number from 1 on, not {typed!r}; --all lists everything",
                field="limit",
            )
        limit = int(typed)
    request = parse_text(ListMemories, fields)
    with calls.connect_to_daemon(context) as client, open_printer() as printer:
        pages = _read_pages(client, request, limit)
        if options.chosen_format() == "json":
            whole = list(pages)
            memories = [memory for page in whole for memory in page.memories]
            episodes = [episode for page in whole for episode in page.episodes]
            ended = {id: at for page in whole for id, at in page.ended.items()}
            pages = iter([Listed(memories, episodes, whole[-1].next, ended)])
        shown = 0
        for page in pages:
            printer.show(page)
            shown += len(page)
            if printer.is_over() or terminal.is_reader_gone():
                break
    return 0 if shown else options.EXIT_NOTHING


def _read_pages(
    client: Connection, request: ListMemories, left: int
) -> Iterator[Listed]:
    """Yield pages of a list until `left` records are read, or no more match.

    Only the last page keeps `next`, the cursor of the records that follow.
    """
    while True:  # ends with the records
        request = msgspec.structs.replace(request, limit=min(left, PAGE))
        page = calls.call_daemon(client, request)
        left -= len(page)
        if not page.next or left <= 0:
            yield page
            return
        yield msgspec.structs.replace(page, next=None)
        request = msgspec.structs.replace(request, after=page.next)


list_command = verb_command.make_verb_command("list", ListMemories)
list_command.params.insert(  # before the formats of answers
    -3,
    click.Option(["--all", "all_"], is_flag=True, help="List everything that matches."),
)
list_command.callback = click.pass_context(print_list)


# ----------------------------------------------------- today, day, week, month

Unit = Literal["day", "week", "month"]

MEMORIES_OF_A_DAY = 8
"""Memories shown of a day without a summary, within a week or a month."""
ONE_DAY = timedelta(days=1)
LINES_OF_A_PART = 3
"""Lines shown of the summary of a part of the period."""
INDENT = " " * 6
PERIOD_FILTERS = ("session", "source", "role", "tag", "history", "reveal")


class PeriodPart(msgspec.Struct, frozen=True):
    """A day or week within a period: its summary, or else the memories of the day."""

    first: date
    last: date
    summary: Episode | None = None
    memories: list[MemoryRecord] = msgspec.field(default_factory=list)
    more: bool = False
    """Whether the day has more memories than are shown."""
    ended: dict[str, datetime] = msgspec.field(default_factory=dict)
    """When newer memories ended statements of a memory, by its id: the last such time."""

    @property
    def unit(self) -> Unit:
        """The length of the part: "day" or "week"."""
        return "day" if self.first == self.last else "week"


class PeriodView(msgspec.Struct, frozen=True):
    """A day, week or month to be printed: its summary and its parts."""

    unit: str
    first: date
    last: date
    summary: Episode | None = None
    """Its own summary, once a sleep cycle has written one."""
    parts: list[PeriodPart] = msgspec.field(default_factory=list)
    narrowed: bool = False
    """Whether a filter narrows it: then summaries are left out, as they cover all memories."""

    @property
    def records(self) -> list[Episode | MemoryRecord]:
        """All summaries and memories of the period, in the order in which they are printed."""
        records: list[Episode | MemoryRecord] = [self.summary] if self.summary else []
        for part in self.parts:
            records += [part.summary] if part.summary else []
            records += part.memories
        return records


class PeriodReader:
    """Reads days, weeks and months from the daemon; `fixed` contains the filters of each request."""

    def __init__(self, client: Caller, fixed: ListMemories) -> None:
        self._client = client
        self._fixed = fixed
        self._narrowed = bool(fixed.session or fixed.source or fixed.role or fixed.tag)

    def read_period(self, typed: str, unit: Unit) -> PeriodView:
        """Return the period around a typed time. Raises `InvalidTime`."""
        # Loaded here: a list reads no dates, and their languages take long to load.
        from mnemosyned.verbs.times import local_now, read_period  # noqa: PLC0415

        now = local_now()
        period = read_period(typed, unit, now)
        first = in_zone(period.since, now.tzinfo).date()
        last = in_zone(period.until, now.tzinfo).date() - ONE_DAY
        parts: list[PeriodPart] = []
        if unit == "day":
            parts.append(self._read_memories(first, 1_000))
        else:
            day, end = first, min(last, max(now.date(), first))
            weeks = self.read_summaries("week", first, end) if unit == "month" else {}
            days = self.read_summaries(
                "day", day_at(first, -1) or first, day_at(end, 1) or end
            )
            while day <= end:
                if summary := weeks.get(day):
                    part = PeriodPart(day, day + 6 * ONE_DAY, summary)
                elif summary := days.get(day):
                    part = PeriodPart(day, day, summary)
                else:
                    part = self._read_memories(day, MEMORIES_OF_A_DAY, days)
                parts.append(part)
                day = part.last + ONE_DAY
        return PeriodView(
            unit,
            first,
            last,
            self.read_summaries(unit, first, last).get(first),
            [part for part in parts if part.summary or part.memories],
            self._narrowed,
        )

    def read_summaries(
        self, unit: Unit, first: date, last: date
    ) -> dict[date, Episode]:
        """Return {first day: summary} of the periods from `first` to `last`; empty if filters are set."""
        if self._narrowed:
            return {}
        request = ListMemories(
            level=unit,
            since=shift(datetime.combine(first, time(), UTC), -ONE_DAY),
            until=datetime.combine(last + 7 * ONE_DAY, time(), UTC),
            order=ListOrder.OLDEST,
            limit=100,
            reveal=self._fixed.reveal,
        )
        page = calls.call_daemon(self._client, request)
        begun = {
            in_zone(episode.period_from, UTC).date(): episode
            for episode in page.episodes
            if episode.period_from
        }
        return {day: begun[day] for day in begun if first <= day <= last}

    def _read_memories(
        self, day: date, limit: int, summarized: Mapping[date, Episode] = {}
    ) -> PeriodPart:
        """Return a day with its first `limit` memories, the oldest first.

        If summaries of neighboring days in `summarized` leave a gap, the day is extended to fill the gap.
        """
        since, until = (
            in_zone(datetime.combine(midnight, time()), None)
            for midnight in (day, day + ONE_DAY)
        )
        if before := summarized.get(day_at(day, -1) or day):
            since = min(since, shift(before.covers_until, timedelta(microseconds=1)))
        if after := summarized.get(day_at(day, 1) or day):
            until = max(until, after.covers_from)
        order = ListOrder.OLDEST
        request = msgspec.structs.replace(
            self._fixed, since=since, until=until, order=order, limit=limit
        )
        page = calls.call_daemon(self._client, request)
        return PeriodPart(day, day, None, page.memories, bool(page.next), page.ended)


def _period_text(period: PeriodView, first: int) -> str:
    """Return a period as text, its records numbered from `first`; empty without records."""
    if not period.records:
        return ""
    number = first
    title = click.style(listing.period_name(period.unit, period.first), bold=True)
    if summary := period.summary:
        memories = terminal.count_of(summary.item_count, "memory")
        counts = click.style(f"   summary of {memories}, number {number}:", dim=True)
        title += f"\n{counts}\n{terminal.wrap_lines(summary.content)}"
        number += 1
    blocks = [title]
    for part in period.parts:
        blocks.append("\n".join(_part_lines(part, number, period)))
        number += bool(part.summary) + len(part.memories)
    close = period.unit == "day" and not period.summary
    return ("\n" if close else "\n\n").join(blocks)


def _period_remark(period: PeriodView) -> str:
    """Return a remark that a period has no memories, or no summary yet; else empty."""
    if not period.records:
        nothing = "nothing matches in" if period.narrowed else "nothing is kept of"
        return f"{nothing} {listing.period_name(period.unit, period.first)}"
    if period.summary or period.unit == "day" or period.narrowed:
        return ""
    return (
        f"the summary of this {period.unit} is written by a sleep cycle after its end"
    )


def _part_lines(part: PeriodPart, number: int, period: PeriodView) -> Iterator[str]:
    """Yield a day's or week's summary cut short, or its memories, numbered from `number`."""
    day = part.first.isoformat()
    if part.summary is None:
        if period.unit != "day":
            yield click.style(listing.day_title(part.first), bold=True)
        yield from listing.memory_rows(part.memories, number, part.ended)
        if part.more:
            command = f"mnem day {day}"
            if period.unit == "day":
                command = f"mnem list --since {day} --until {day} --all"
            filters = " with the same filters" if period.narrowed else ""
            yield _dim_hint(f"and more: {command}{filters}")
        return
    count = terminal.count_of(part.summary.item_count, "memory")
    head = f"{number:>4}  {listing.period_name(part.unit, part.first)}"
    yield f"{click.style(head, bold=True)}  {click.style(count, dim=True)}"
    lines = [line for line in part.summary.content.splitlines() if line.strip()]
    room = max(terminal.width() - len(INDENT), 1)
    for line in lines[:LINES_OF_A_PART]:
        yield f"{INDENT}{terminal.cut_line(line, room)}"
    if len(lines) > LINES_OF_A_PART:
        left = terminal.count_of(len(lines) - LINES_OF_A_PART, "more line")
        yield _dim_hint(f"{left}: mnem {part.unit} {day}")


def _dim_hint(text: str) -> str:
    """Return a hint as a dim line, indented like the memories."""
    return click.style(terminal.indent_lines(f"   {text}"), dim=True)


RENDERERS[PeriodView] = Renderer(
    _period_text, _period_remark, lambda period: period.records, is_numbered=True
)


def _period_command(name: str, unit: Unit, further: str = "") -> click.Command:
    """Return the command that prints the day, week or month around a typed time.

    Its help is the registry's summary, followed by `further`.
    """
    params = arguments.make_parameters(ListMemories, PERIOD_FILTERS)
    if name != "today":
        words = click.Argument(["when"], nargs=-1, metavar="[WHEN]")
        params.insert(0, words)

    def print_period(
        context: click.Context,
        /,
        *,
        when: tuple[str, ...] = (),
        **given: Any,  # noqa: ANN401
    ) -> int:
        """Print the period around a typed time, or around today; return the exit code."""
        request = parse_text(ListMemories, arguments.read_fields(given))
        with calls.connect_to_daemon(context) as client:
            typed = " ".join(when or ["today"])
            period = PeriodReader(client, request).read_period(typed, unit)
        show(period)
        return 0 if period.records else options.EXIT_NOTHING

    return options.AnswerCommand(
        name,
        params=params,
        callback=click.pass_context(print_period),
        help=registry.COMMANDS[name].summary + further,
    )


_WHEN = (
    "\n\nWHEN is a time in words: yesterday, 18 Nov, last monday, 2026-11-18; without it, "
    "the present one.\n\nSummaries follow the daemon's time zone, memories your local day. With a filter, only "
    "memories are shown."
)
_OR_MEMORIES = " A day without a summary is shown by its memories."
today = _period_command("today", "day")
day = _period_command("day", "day", _WHEN)
week = _period_command("week", "week", f"{_OR_MEMORIES}{_WHEN}")
month = _period_command("month", "month", f"{_OR_MEMORIES}{_WHEN}")
