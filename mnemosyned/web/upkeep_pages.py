"""Pages on the daemon and its work: sleep cycles, undo, injected texts, health, checks, settings, exports."""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing
from functools import cache
from http import HTTPStatus
from itertools import chain, groupby, islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args, get_origin

import msgspec

from mnemosyned.cli.commands.export import DaysOfExport
from mnemosyned.client.connection import Connection
from mnemosyned.config.loading import value_from_text
from mnemosyned.config.settings import KEYS, Config, value_of
from mnemosyned.errors import ConfigInvalid, InvalidRequest, NotFound
from mnemosyned.http_messages import Response
from mnemosyned.memory.consolidation import GroupReport, GroupStatus, LogEntry
from mnemosyned.memory.injections import InjectionOutcome
from mnemosyned.paths import default_config_file, shipped
from mnemosyned.verbs import conversation, exchange
from mnemosyned.verbs.request import decoder_of, parse_text
from mnemosyned.verbs.times import local_now
from mnemosyned.verbs.upkeep import Log, Sleep, Status, Undo
from mnemosyned.web.application import Visit, make_change, redirect_to
from mnemosyned.web.memory_pages import read_provenance

if TYPE_CHECKING:
    from mnemosyned.cli.maintenance.checks import Finding
    from mnemosyned.cli.maintenance.config import SettingInForce, SettingSources


CHANGEABLE = frozenset(
    """
    auto_sleep wm_max secrets sleep.ttl_hours sleep.interval_minutes sleep.cron
    sleep.group_entries_max sleep.group_chars_max sleep.group_pause_hours sleep.summary_ratio
    sleep.on_age sleep.age_slack_minutes sleep.on_count sleep.on_bytes sleep.on_idle_minutes
    sleep.on_session_tokens sleep.idle_min_entries sleep.min_age_minutes sleep.model_policy
    sleep.quiet_hours sleep.load_max sleep.cycle_minutes sleep.cycle_tokens
    sleep.rollup_delay_hours sleep.rollup_min_items sleep.on_shutdown sleep.shutdown_deadline_s
    forget.grace_hours backup.schedule llm.nice llm.time_limit_s llm.cycle_budget_s llm.idle_s
    llm.max_tokens context.total context.system_reserve context.tools_reserve
    context.memory_fraction context.learnings_fraction context.fresh_tail context.model_limit_s
    learnings.recognize hooks.capture hooks.tell embedding.encoder embedding.similarity_min
    embedding.wait_ms log.level
    """.split()
)
"""Settings that a page may change. None names a file, program, address or secret, opens a port, or
deletes anything that is kept."""
FIXED = ("environment", "command line")
"""Beginnings of origins that override the configuration file."""
EXPORTED = ("session", "source", "tag", "since", "until")
TEXT = "text/plain; charset=utf-8"
LINES = 500
"""Lines of an export in one chunk of a response."""


def show_health(visit: Visit) -> Response:
    """Show the page with the daemon's status."""
    stats, is_local = visit.call(Status()), is_on_socket(visit)
    return visit.show("health.html", stats=stats, is_local=is_local)


def is_on_socket(visit: Visit) -> bool:
    """Return True if the pages reach the daemon through a Unix socket of this machine."""
    return isinstance(visit.caller, Connection) and not visit.caller.identity


def find_setting_sources(visit: Visit) -> SettingSources | None:
    """Return where the daemon's settings come from; None if the daemon is remote or another user's."""
    from mnemosyned.cli.maintenance import config  # noqa: PLC0415 it takes the engine

    sources = config.present_sources() if is_on_socket(visit) else None
    process = sources.process if sources else None
    return sources if process and process.pid == visit.call(Status()).pid else None


def show_checks(visit: Visit) -> Response:
    """Show the doctor's findings on this machine, without slow checks."""
    from mnemosyned.cli.maintenance import doctor  # noqa: PLC0415 it takes the engine

    is_own = find_setting_sources(visit) is not None
    findings: list[Finding] = []
    if is_own:
        findings = doctor.examine(doctor.present_installation(), slow=False)
    return visit.show("checks.html", findings=findings, is_own=is_own)


# ---------------------------------------------------------------- settings

_VALUE = r"""(?:"(?:[^"\\]|\\.)*"|'(?:[^']|'')*'|[^\s#"'][^#\n]*?)?"""
_SETTING = re.compile(rf"( *)(\w+): *{_VALUE} *(?:# (?:\(restart\) )?(.*))?")
_FURTHER = re.compile(r" {10,}# *(.*)")


@cache
def read_comments() -> dict[str, str]:
    """Return the comments in the shipped configuration file, by key of their setting or section."""
    comments: dict[str, str] = {}
    section = key = remark = ""
    for line in (shipped("config") / "mnemosyned.yaml").read_text("utf-8").splitlines():
        if match := _SETTING.fullmatch(line):
            indent, name, comment = match.groups()
            key = f"{section}.{name}" if indent else name
            section = section if key in KEYS else key
            comments[key], remark = f"{remark} {comment or ''}".strip(), ""
        elif match := _FURTHER.fullmatch(line):
            comments[key] += f" {match[1]}"
        else:
            remark = f"{remark} {line.strip(' #')}" if line else ""
    return comments


def is_changeable(setting: SettingInForce) -> bool:
    """Return True if a page may change a setting, and no option or variable overrides the file."""
    return setting.key in CHANGEABLE and not setting.origin.startswith(FIXED)


def show_settings(visit: Visit) -> Response:
    """Show every setting in force with its origin, grouped as in the configuration file."""
    from mnemosyned.cli.maintenance import config  # noqa: PLC0415 it takes the engine

    sources = find_setting_sources(visit)
    settings = config.settings_in_force(sources) if sources else []
    sections = groupby(settings, key=lambda each: each.key.rpartition(".")[0])
    return visit.show(
        "settings.html",
        settings=settings,
        sections=[(name, list(group)) for name, group in sections],
        defaults={key: value_of(Config(), key) for key in KEYS},
        comments=read_comments(),
        is_changeable=is_changeable,
        text=config.setting_text,
        file=sources and (sources.file or default_config_file()),
    )


def change_setting(visit: Visit) -> Response:
    """Show the form to change a setting, or write a sent change to the file and reload the daemon.

    Raises `ConfigInvalid` for a bad value, and `InvalidRequest` for a setting that pages cannot change.
    """
    from mnemosyned.cli.maintenance import config  # noqa: PLC0415 it takes the engine

    key, sources = visit.field("key"), find_setting_sources(visit)
    settings = config.settings_in_force(sources) if sources else ()
    setting = next((each for each in settings if each.key == key), None)
    file = sources.file or default_config_file() if sources else Path()
    # A relative path begins in the working directory of the daemon.
    is_ours = file.is_absolute() and setting is not None and is_changeable(setting)
    if not (sources and sources.process and setting and is_ours):
        raise InvalidRequest(
            "a page does not change this; on the daemon's machine `mnem config set` does"
        )
    if visit.request.method != "POST":
        choices = get_args(KEYS[key]) if get_origin(KEYS[key]) is Literal else ()
        return visit.show(
            "setting.html",
            each=setting,
            value=config.setting_text(setting.value),
            default=config.setting_text(value_of(Config(), key)),
            comment=read_comments()[key],
            choices=("true", "false") if KEYS[key] is bool else choices,
        )
    value = msgspec.UNSET
    if "default" not in visit.fields:
        value = value_from_text(key, visit.fields.get("value", ""), where="this page")
    try:
        config.write_changes({key: value}, file)
    except OSError as error:
        raise ConfigInvalid(f"{file} cannot be written: {error.strerror}") from error
    config.request_reload(sources.process)
    return redirect_to("/settings", changed=key)


# ------------------------------------------------------------------ export


def _read_export(visit: Visit) -> Generator[bytes]:
    """Yield the lines of the selected export. Raises `MnemosynedError`, at the end if it is incomplete."""
    if not isinstance(visit.caller, Connection):
        raise InvalidRequest("there is no daemon to export from; use mnem export")
    request = parse_text(exchange.Export, visit.pick(EXPORTED))
    with visit.caller.transfers().export(request) as lines:
        yield from lines


def show_export(visit: Visit) -> Response:
    """Show the page of exports: how many memories the selection has, and the formats."""
    with closing(_read_export(visit)) as lines:
        expected = decoder_of(exchange.Header).decode(next(lines)).expected
    chosen, stats = visit.pick(EXPORTED), visit.call(Status())
    return visit.show("export.html", chosen=chosen, expected=expected, stats=stats)


def download(visit: Visit) -> Response:
    """Return a response that streams an export as a file: JSON lines, or Markdown by days."""
    is_markdown = visit.field("format") == "markdown"
    lines = _read_export(visit)
    header = next(lines)  # an error is a page, before anything is sent

    def send() -> Iterator[bytes]:
        """Yield the export in large pieces of JSON lines, or after reading all, the Markdown of each day."""
        with closing(lines), TemporaryDirectory(prefix="mnem-export-") as folder:
            days = DaysOfExport(folder, reveal=False)
            parts = chain([header], lines)
            while batch := list(islice(parts, LINES)):
                if is_markdown:
                    days.collect(batch)
                yield b"" if is_markdown else b"".join(batch)
            yield from (text.encode() for text in days.day_texts())

    name = f"memory-{local_now():%Y-%m-%d}.{'md' if is_markdown else 'jsonl'}"
    headers = (("Content-Disposition", f'attachment; filename="{name}"'),)
    return Response(HTTPStatus.OK, content_type=TEXT, headers=headers, stream=send())


LOG_ROWS = 1_000
"""Rows of the log read at once; most cycles have far fewer."""
CYCLE_ROWS_MAX = 20_000
"""Rows of one cycle that a page counts, such as the first one after a large import."""
GROUPS = 6
"""Groups of a cycle on one page, each with its originals."""
DRAWN = 24
"""Groups drawn each by itself in the picture of a cycle: the largest."""
FLOW_HEIGHT, FLOW_GAP, RIBBON_MIN = 220.0, 2.0, 1.5
INJECTION_ROWS = 20
PROJECTS_OF = 100
"""Injections whose projects are suggested."""
INJECTION_FIELDS = ("session", "project", "since", "until", "rated", "after")


class Ribbon(NamedTuple):
    """Groups in the picture of a cycle: originals on the left flow into an episode on the right."""

    outline: str
    """Path of SVG, 100 wide; as high as the characters before on the left, after on the right."""
    end: float
    """Height of the picture down to the end of this ribbon."""
    kind: str
    """`written`, `verbatim`, `fallback`, `failed`, `undone` or `planned`."""
    groups: Sequence[LogEntry | GroupReport]
    place: int | None
    """Place of the group in the cycle, from 0; None for all small ones together."""


def draw_flow(groups: Sequence[LogEntry | GroupReport]) -> list[Ribbon]:
    """Return the picture of a cycle: one ribbon for each of the largest groups, one for all others."""
    by_size = sorted(range(len(groups)), key=lambda place: -groups[place].chars_before)
    parts: list[tuple[list[LogEntry | GroupReport], int | None]]
    parts = [([groups[place]], place) for place in sorted(by_size[:DRAWN])]
    if len(groups) > DRAWN:
        parts.append(([groups[place] for place in by_size[DRAWN:]], None))
    total = sum(max(each.chars_before, each.chars_after) for each in groups)
    scale = FLOW_HEIGHT / max(total, 1)
    left = right = 0.0
    ribbons = []
    for members, place in parts:
        kinds = [_flow_kind(each) for each in members]
        kind = max(set(kinds), key=kinds.count)
        before = sum(each.chars_before for each in members)
        after = sum(each.chars_after for each in members)
        left_end = left + max(before * scale, RIBBON_MIN)
        kept = before if kind == "planned" else after
        right_end = right + (max(kept * scale, RIBBON_MIN) if kept else 0.0)
        outline = (
            f"M0 {left:.1f}C50 {left:.1f} 50 {right:.1f} 100 {right:.1f}V{right_end:.1f}"
            f"C50 {right_end:.1f} 50 {left_end:.1f} 0 {left_end:.1f}Z"
        )
        ribbons.append(Ribbon(outline, max(left_end, right_end), kind, members, place))
        left, right = left_end + FLOW_GAP, right_end + FLOW_GAP
    return ribbons


def _flow_kind(group: LogEntry | GroupReport) -> str:
    """Return the outcome of a group for its ribbon: "written", "undone", "fallback", or its status."""
    if isinstance(group, LogEntry) and group.undone_at:
        return "undone"
    if group.fallback_reason:
        return "fallback"
    named = (GroupStatus.VERBATIM, GroupStatus.FAILED, GroupStatus.PLANNED)
    return group.status.value if group.status in named else "written"


def show_sleep(visit: Visit) -> Response:
    """Show the newest sleep cycles, and when the next is due; a cycle cut off by the page is left out."""
    rows = visit.ask(Log, ["after"], limit=str(LOG_ROWS)).rows
    cycles = [list(group) for _, group in groupby(rows, key=lambda row: row.cycle)]
    has_more = len(rows) == LOG_ROWS
    if has_more:
        *cycles, last = cycles
        cycles = cycles or [_read_cycle(visit, last[0].cycle)]
    after = cycles[-1][-1].id if has_more else None
    return visit.show(
        "sleep.html",
        cycles=cycles,
        rows_max=CYCLE_ROWS_MAX,
        after=after,
        stats=visit.call(Status()),
    )


def _read_cycle(visit: Visit, cycle: str) -> list[LogEntry]:
    """Return the rows of a cycle, newest first; at most `CYCLE_ROWS_MAX`."""
    rows: list[LogEntry] = []
    while len(rows) < CYCLE_ROWS_MAX:
        after = rows[-1].id if rows else None
        read = visit.call(Log(cycle=cycle, limit=LOG_ROWS, after=after)).rows
        rows += read
        if len(read) < LOG_ROWS:
            break
    return rows


def show_cycle(visit: Visit) -> Response:
    """Show the page of a cycle: each group's originals next to the sentences of its summary."""
    cycle = visit.field("cycle")
    rows = _read_cycle(visit, cycle)
    if not rows:
        raise NotFound(f"no cycle has the id {cycle!r}; the page Sleep lists them")
    given = visit.fields.get("from", "0")
    if not (given.isascii() and given.isdecimal()):
        raise InvalidRequest("from is the number of a group; follow a link")
    groups = [row for row in reversed(rows) if row.level == 0]
    first = int(given[:6])
    page = groups[first : first + GROUPS]
    return visit.show(
        "cycle.html",
        rows=rows,
        is_cut=len(rows) >= CYCLE_ROWS_MAX,
        flow=draw_flow(groups),
        groups=[(row, _read_group(visit, row)) for row in page],
        first=first,
        total=len(groups),
        next=first + GROUPS,
    )


def _read_group(visit: Visit, row: LogEntry) -> dict[str, Any] | None:
    """Return the summary made from a group of the log, with its sources; None if undone or forgotten."""
    try:
        is_there = row.episode and not row.undone_at
        return read_provenance(visit, row.episode or "") if is_there else None
    except NotFound:  # it was forgotten
        return None


def show_plan(visit: Visit) -> Response:
    """Show what a sleep cycle would do now, by a dry run."""
    plan = visit.ask(Sleep, ["force"], dry_run="true")
    flow = draw_flow(plan.groups)
    return visit.show("plan.html", plan=plan, flow=flow, undoes=False)


def show_undo(visit: Visit) -> Response:
    """Show what undoing a cycle would restore."""
    plan = visit.ask(Undo, action=visit.field("cycle"), dry_run="true").cycle
    return visit.show("plan.html", plan=plan, flow=(), undoes=True)


def undo(visit: Visit) -> Response:
    """Undo a cycle, and show what was restored."""
    done = visit.call(Undo(visit.field("cycle"))).cycle
    return visit.show("receipt.html", title="Undone", done=done, kind="undo", id="")


def show_injections(visit: Visit) -> Response:
    """Show what agents were given, newest first, with the reason for each line."""
    chosen = visit.pick(INJECTION_FIELDS)
    rated = {"outcome": chosen["rated"]} if "rated" in chosen else {}
    names = [name for name in chosen if name != "rated"]
    page = visit.ask(
        conversation.Injections, names, limit=str(INJECTION_ROWS + 1), **rated
    )
    injections = page.injections[:INJECTION_ROWS]
    return visit.show(
        "injections.html",
        kept=chosen,
        chosen={name: chosen[name] for name in chosen if name != "after"},
        rows=injections,
        totals=page.totals,
        after=injections[-1].id if len(page) > INJECTION_ROWS else None,
        outcomes=list(InjectionOutcome),
    )


def show_briefing(visit: Visit) -> Response:
    """Show what an agent would be given at the start of its next session, or with a prompt."""
    injections = visit.call(conversation.Injections(limit=PROJECTS_OF)).injections
    briefed = visit.ask(conversation.Briefing, ["project", "prompt"])
    # A line is cut to fit: rewording starts from all words, or from none.
    ids = [line.id for line in briefed.lines]
    learnings = visit.call(conversation.Learnings(id=ids, limit=1_000)) if ids else ()
    words = {each.id: each.text for each in learnings}
    words |= {each.id: each.text for each in briefed.edits if each.text}
    return visit.show(
        "briefing.html",
        briefed=briefed,
        project=visit.fields.get("project", ""),
        prompt=visit.fields.get("prompt", ""),
        projects=sorted({each.project for each in injections} - {""}),
        words=words,
    )


UPKEEP_ROUTES = {
    "GET /sleep": show_sleep,
    "GET /cycle": show_cycle,
    "GET /plan": show_plan,
    "GET /undo": show_undo,
    "POST /undo": undo,
    "GET /injections": show_injections,
    "POST /rate": make_change(
        conversation.RateInjection, ["id", "outcome"], "/injections", INJECTION_FIELDS
    ),
    "GET /briefing": show_briefing,
    "POST /briefing": make_change(
        conversation.EditBriefing,
        ["id", "pin", "drop", "text"],
        "/briefing",
        ["project", "prompt"],
    ),
    "GET /state": show_health,
    "GET /checks": show_checks,
    "GET /settings": show_settings,
    "GET /setting": change_setting,
    "POST /setting": change_setting,
    "GET /export": show_export,
    "GET /download": download,
}
