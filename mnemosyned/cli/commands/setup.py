"""`mnem setup`: give agents' tools memory, take it away again, and check each tool."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import click

from mnemosyned import paths, socket_path
from mnemosyned.agents.hooks.withheld import describe_own_settings
from mnemosyned.agents.setup import files, parts
from mnemosyned.agents.setup.targets import TARGETS, write_packages
from mnemosyned.agents.setup.tools import (
    FileChange,
    ToolActivity,
    ToolCheck,
    ToolPlan,
    check_tool,
    confirm_by_program,
    edits_to_undo,
    plan_tool,
    plan_undo,
    recognize_edits,
    set_up,
    summarize_parts,
    undo_all,
)
from mnemosyned.cli import calls, options
from mnemosyned.cli.commands.login import check_access, describe_memories
from mnemosyned.cli.output import show, terminal
from mnemosyned.client.connection import Connection
from mnemosyned.client.login import save_login
from mnemosyned.errors import InvalidRequest, Kind, MnemosynedError
from mnemosyned.memory.engine_ports import Enrolment
from mnemosyned.memory.values import AgentActivity
from mnemosyned.verbs.upkeep import Status

INDENT = "  "
DIFF_LINE_ROWS = 4
"""The rows that one line of a diff may take: a command is shown to its end, a minified file is not."""


def plan_text(plan: ToolPlan, *, whole: bool) -> str:
    """Return a tool's planned changes as text with a diff, cut short unless `whole`."""
    shown = plan.site.machine.short_path
    lines = [click.style(plan.target.title, bold=True)]
    if not plan.found:
        lines.append(_fill_paragraph("it was not found on this machine"))
    for change in () if plan.problems else plan.changes:
        lines.append(
            _fill_paragraph(f"{shown(change.file)}: {summarize_parts(change)}")
        )
        if change.entry is not None and change.changes:
            lines.append(
                _fill_paragraph(f"written by `{' '.join(change.entry.add[:3])}`")
            )
    changed = [] if plan.problems else plan.changed_files
    lines += [diff_text(each, shown(each.file), whole=whole) for each in changed]
    if not changed:
        lines.append(_fill_paragraph("no change"))
    return "\n".join(lines)


def diff_text(change: FileChange, name: str, *, whole: bool = False) -> str:
    """Return a file's planned change as a colored diff, cut to 60 lines unless `whole`."""
    lines = change.diff(name).splitlines()
    limit = len(lines) if whole else 60
    shown = []
    for line in lines[:limit]:
        text = terminal.cut_line(
            show.escape_strings(line.expandtabs(terminal.TAB_CELLS)),
            DIFF_LINE_ROWS * terminal.width(),
        )
        if text.startswith("-") and not text.startswith("---"):
            text = click.style(text, fg="red")
        elif text.startswith("+"):
            text = click.style(text, bold=True)
        shown.append(terminal.fold_lines(text, terminal.width()))
    if len(lines) > limit:
        shown.append(
            f"… {terminal.count_of(len(lines) - limit, 'more line')}, shown by --dry-run"
        )
    return "\n".join(shown)


def next_steps_text(plan: ToolPlan, confirmed: str) -> str:
    """Return the text after a setup: the written files, what is next, how to undo.

    `confirmed` is what the tool's own program says of the entry, or empty.
    """
    shown = plan.site.machine.short_path
    written = ", ".join(shown(change.file) for change in plan.changed_files)
    target = plan.target
    lines = [f"written: {written}"]
    lines += [confirmed] if confirmed else []
    lines += [f"next: {step}" for step in target.steps]
    lines += [f"note: {note}" for note in target.notes]
    lines += [f"not confirmed: {doubt}" for doubt in target.unconfirmed]
    lines.append(f"undo: mnem setup --undo {target.name}")
    return "\n".join(map(_fill_paragraph, lines))


def _fill_paragraph(line: str, indent: str = INDENT) -> str:
    """Return a line wrapped to the terminal, indented by `indent`, and a little more after its first line."""
    return textwrap.fill(
        show.escape_strings(line),
        terminal.prose_width(),
        initial_indent=indent,
        subsequent_indent=indent + INDENT,
        break_on_hyphens=False,
        break_long_words=False,
    )


def tools_table(plans: list[ToolPlan]) -> str:
    """Return a table of tools with the planned changes, or with the problem that prevents the setup."""
    room = terminal.width() - 2 - max(len(plan.target.title) for plan in plans)
    rows = []
    for plan in plans:
        changes = (
            summarize_parts(change).replace(": new", "")
            for change in plan.changed_files
        )
        gain = "; ".join(changes) or "nothing: it has memory already"
        gain = show.escape_strings(plan.problems[0]) if plan.problems else gain
        rows.append((plan.target.title, terminal.cut_text(gain, room)))
    return terminal.table(("found", "would get"), rows)


def plan_data(
    plan: ToolPlan, failures: list[str], *, written: bool
) -> dict[str, object]:
    """Return a tool's plan as a dictionary for JSON, with `failures`, and whether it was `written`."""
    target = plan.target
    return {
        "tool": target.name,
        "found": plan.found,
        "written": written and not failures,
        "problems": failures,
        "files": [
            {
                "file": str(change.file),
                "changed": change.changes,
                "parts": {label: str(state) for label, state in change.states},
                "diff": change.diff(str(change.file)),
            }
            for change in plan.changes
        ],
        "next": [*target.steps],
        "notes": [*target.notes],
        "unconfirmed": [*target.unconfirmed],
    }


def daemon_text(state: str) -> str:
    """Return the line that says whether the daemon is reachable, or why not."""
    return _fill_paragraph(f"daemon: {state}", indent="")


def checks_text(checks: list[ToolCheck], *, daemon: str) -> str:
    """Return the checks of tools as text, after the state of the `daemon`."""
    lines = [daemon_text(daemon)]
    for check in checks:
        lines.append(f"{click.style(check.title, bold=True)}: {check.verdict}")
        lines += [_fill_paragraph(f"our plugin: {plugin}") for plugin in check.plugins]
        lines += map(_fill_paragraph, check.problems)
        if check.set_up and set(check.problems) - set(check.by_hand):
            lines.append(_fill_paragraph(f"to write it again: mnem setup {check.tool}"))
        if check.set_up and check.activity is not None:
            lines += map(_fill_paragraph, _activity_lines(check.activity))
    if not checks:
        lines.append("none of the tools was found on this machine")
    return "\n".join(lines)


def _activity_lines(activity: ToolActivity) -> list[str]:
    """Return lines on a tool's hooks: when they were called, counts and times, the last failure."""
    if not activity.calls:
        return ["its hooks have not run yet"]
    times = {
        "last called": activity.called_at,
        "last stored": activity.stored_at,
        "last gave the agent something": activity.informed_at,
    }
    moments = [
        f"{what} {terminal.local_time(time)}" for what, time in times.items() if time
    ]
    counts = (
        f"{terminal.count_of(activity.calls, 'call')}, {activity.mean_ms:.0f} ms on average, "
        f"the slowest {activity.slowest_ms:.0f} ms; "
        f"{terminal.count_of(activity.stored, 'memory')} stored, "
        f"{terminal.count_of(activity.characters, 'character')} given to the agent"
    )
    failures = terminal.count_of(activity.failures, "failure")
    failed = f"{failures}, the last {terminal.local_time(activity.failed_at)}: {activity.failure}"
    return ["; ".join(moments), counts, *([failed] if activity.failures else [])]


@click.command(epilog=f"Tools: {', '.join(TARGETS)}.")
@click.argument("tools", nargs=-1, metavar="[TOOL]...")
@click.option(
    "--scope",
    type=click.Choice(["user", "project"]),
    help="For you everywhere, or for the project of this directory. [default: user]",
)
@click.option("--dry-run", is_flag=True, help="Show the changes and write nothing.")
@click.option("--yes", "-y", is_flag=True, help="Do not ask for confirmation.")
@click.option("--undo", "mode", flag_value="undo", help="Take out what setup wrote.")
@click.option(
    "--check", "mode", flag_value="check", help="Show whether each tool has memory."
)
@click.option(
    "--package",
    "folder",
    metavar="DIR",
    type=click.Path(file_okay=False, path_type=Path),
    help="Write plugin packages to this folder instead.",
)
@options.json_option()
def setup(
    tools: tuple[str, ...],
    scope: str | None,
    mode: str | None,
    folder: Path | None,
    **flags: bool,
) -> int:
    """Connect the agents you use to memory, by an MCP server and hooks.

    Each change is shown before it is written. A copy of every file is kept, and --undo brings it
    back. Without a TOOL, it asks about each one it finds. With --url and --token-file it first logs
    in on a server, as mnem login does.
    """
    if unknown := [name for name in tools if name not in TARGETS]:
        raise click.UsageError(f"no tool {unknown[0]}; there are {', '.join(TARGETS)}")
    machine = parts.Machine.present()
    project = None
    if scope == "project":  # around the working directory
        here = machine.directory
        roots = (each for each in (here, *here.parents) if (each / ".git").exists())
        project = next(roots, here)
        if project == machine.home:
            raise InvalidRequest(
                "your home directory is not a project; change to one first"
            )
    context = click.get_current_context()
    writes = mode is None and folder is None and not flags["dry_run"]
    if writes and (url := options.typed_url(context)):
        if options.URL in options.typed_address(context):
            save_typed_login(url, context)
        else:
            terminal.say(
                f"mnem: tools use {url} only after a login: --url {url}", err=True
            )
    run = SetupRun(
        client=calls.connect_to_daemon(context),
        machine=machine,
        project=project,
        assumes_yes=flags["yes"],
        dry_run=flags["dry_run"],
    )
    if folder is not None:
        return run.write_plugins(folder)
    if mode == "undo":
        return run.undo(tools)
    if mode == "check":
        return run.check(tools)
    return run.set_up(tools) if tools else run.set_up_found_tools()


def save_typed_login(url: str, context: click.Context) -> None:
    """Log in on the server at the URL that was typed, for tools that start our programs.

    Raises the server's error, and `InvalidRequest` for a bad address or token. It also refuses to
    replace a login on another server, or one made with a one-time code.
    """
    try:
        former = socket_path.saved_connection()
    except ValueError as error:
        raise InvalidRequest(str(error)) from error
    if former and (former.url != url.rstrip("/") or former.renew_at is not None):
        raise InvalidRequest(
            f"there is a login at {former.url}: leave out --url to keep it, or end it with "
            "`mnem logout` first"
        )
    remote = options.typed_remote(context)
    assert remote is not None  # noqa: S101 there is a URL
    check_access(remote)
    issued = None
    if not remote.token_file:
        issued = Enrolment(token=remote.token, owner="", scopes=(), expires_at=None)
    saved = save_login(url, ca=remote.ca, token_file=remote.token_file, issued=issued)
    if not options.prints_json():
        terminal.say(f"logged in at {saved.url}\n{describe_memories(saved)}")


def _read_activity(client: Connection) -> tuple[str, list[AgentActivity] | None]:
    """Return ("", activity of all hooks), or (error message, None) without a daemon."""
    try:
        with client:
            return "", client.call(Status()).agents
    except MnemosynedError as error:
        return error.message, None


@dataclass(kw_only=True)
class SetupRun:
    """A run of `mnem setup` with the options given, and a method for each mode."""

    client: Connection
    machine: parts.Machine
    project: Path | None
    """The folder of a setup for one project; None for the user's own files."""
    assumes_yes: bool
    dry_run: bool
    has_written: bool = False
    """Whether a tool was set up."""

    def __post_init__(self) -> None:
        """Find our programs, and open the journal."""
        self.as_json = options.prints_json()
        self.journal = files.SetupJournal(paths.state_dir() / "setup")
        programs = parts.Programs.of(self.machine, Path(sys.argv[0]))
        self.site = parts.SetupSite(
            machine=self.machine, programs=programs, project=self.project
        )

    def set_up(self, tools: Sequence[str], *, may_skip: bool = False) -> int:
        """Set up the tools of these names, or show the plans of a dry run; return the exit code.

        With `may_skip` the user is asked about each tool, and a no skips it. Raises `InvalidRequest` if
        our programs are missing or temporary, and if nobody can confirm.
        """
        programs = self.site.programs
        if missing := programs.missing:
            raise InvalidRequest(
                f"{missing[0]} cannot be run; install mnemosyned again"
            )
        if programs.temporary:
            raise InvalidRequest(
                f"{programs.mnem} is a temporary installation, which no longer exists when a tool "
                "starts it; install mnemosyned first, with pipx, uv tool or make install"
            )
        if not (self.assumes_yes or self.dry_run) and not sys.stdin.isatty():
            raise InvalidRequest(
                "not confirmed: standard input is not a terminal; pass --yes or --dry-run"
            )
        results = [
            self._set_up_tool(name, may_skip=may_skip) for name in dict.fromkeys(tools)
        ]
        if self.as_json:
            terminal.say_json({"tools": [data for data, _ in results]})
        problem = _read_activity(self.client)[0] if self.has_written else ""
        if problem:
            self._say_text(daemon_text(problem))
        has_failed = any(failed for _, failed in results)
        return options.EXIT_OF_KIND[Kind.CONFLICT] if has_failed else 0

    def _set_up_tool(
        self, name: str, *, may_skip: bool
    ) -> tuple[dict[str, object], bool]:
        """Show a tool's plan; unless a dry run, ask and write the files; return JSON data, and True on failure.

        The answer no exits the command, or with `may_skip` skips the tool.
        """
        plan = plan_tool(TARGETS[name], self.site, self.journal)
        if may_skip:
            terminal.say("")
        self._say_text(plan_text(plan, whole=self.dry_run))
        failures = plan.problems
        writes = bool(plan.changed_files) and not failures and not self.dry_run
        question = f"Write this for {plan.target.title}?"
        is_confirmed = writes
        if writes and may_skip:
            is_confirmed = terminal.ask_user(question, default=True)
        elif writes and not self.assumes_yes:
            terminal.ask_or_exit(question)
        if is_confirmed:
            failures = set_up(plan, self.journal)
            self.has_written = self.has_written or not failures
            confirmed = confirm_by_program(plan.target, self.site)
            if not failures:
                self._say_text(next_steps_text(plan, confirmed))
        elif not (failures or plan.changed_files or self.dry_run):
            set_up(plan, self.journal)  # another tool may share its files
        self._report_problems(failures)
        return plan_data(plan, failures, written=writes), bool(failures)

    def _say_text(self, text: str) -> None:
        """Print a text, unless --json was given."""
        if not self.as_json:
            terminal.say(text, styled=True)

    def _report_problems(self, problems: Sequence[str]) -> None:
        """Print problems on standard error, unless --json was given."""
        if not self.as_json:
            for problem in problems:
                terminal.say(f"mnem: {problem}", err=True)

    def set_up_found_tools(self) -> int:
        """List the tools on this machine, and set up the confirmed tools; return the exit code.

        Raises `InvalidRequest` if no tool is found, or nobody may be asked about each one.
        """
        found = [
            name for name, target in TARGETS.items() if target.is_present(self.machine)
        ]
        if not found:
            raise InvalidRequest(
                f"none of the tools is on this machine: {', '.join(TARGETS)}"
            )
        plans = [plan_tool(TARGETS[name], self.site, self.journal) for name in found]
        self._say_text(tools_table(plans))
        if self.dry_run:
            return self.set_up(found)
        if self.assumes_yes or self.as_json or not sys.stdin.isatty():
            words = " ".join(["--yes"] * self.assumes_yes + found)
            raise InvalidRequest(f"name the tools: mnem setup {words}")
        names = [
            plan.target.name for plan in plans if plan.problems or plan.changed_files
        ]
        return self.set_up(names, may_skip=True)

    def undo(self, tools: tuple[str, ...]) -> int:
        """Show, confirm and remove what setup wrote for these tools, or all if empty; return the exit code.

        Edits unknown to the journal are recognized by our entries in the tools' files.
        """
        recognized = recognize_edits(TARGETS.values(), self.site, self.journal)
        self.journal.edits += recognized
        edits = edits_to_undo(self.journal, tools, self.project)
        if titles := {TARGETS[edit.tool].title for edit in edits if edit in recognized}:
            place = self.machine.short_path(self.journal.file)
            words = f"{place} does not know of this, but our entries are found in"
            self._report_problems([f"{words}: {', '.join(sorted(titles))}"])
        self._report_problems(
            [
                f"{TARGETS[tool].title}: our plugin is installed ({plugin}); remove it as it was "
                "installed: see its README.md"
                for tool in tools or TARGETS
                for plugin in TARGETS[tool].plugins(self.machine)
            ]
        )
        for edit in edits:
            change = plan_undo(edit, self.journal)
            self._say_text(diff_text(change, self.machine.short_path(change.file)))
        if not edits and not self.as_json:
            terminal.say(
                "there is no record of a setup here; mnem setup --check shows what tools have",
                err=True,
            )
        if self.dry_run or not edits:
            return 0
        if not self.assumes_yes:
            if not sys.stdin.isatty():
                raise InvalidRequest(
                    "not confirmed: standard input is not a terminal; pass --yes"
                )
            terminal.ask_or_exit("Take this out?")
        done = list(undo_all(edits, self.journal, self.machine))
        undone = [file for file, problem in done if not problem]
        failures = [problem for _, problem in done if problem]
        if self.as_json:
            terminal.say_json({"undone": undone, "problems": failures})
        else:
            self._report_problems(failures)
            terminal.say(f"{terminal.count_of(len(undone), 'file')} as before")
        return options.EXIT_OF_KIND[Kind.CONFLICT] if failures else 0

    def check(self, tools: tuple[str, ...]) -> int:
        """Print the state of the daemon, and of these tools or all found or set up; return the exit code."""
        problem, reports = _read_activity(self.client)
        checks = [
            check_tool(TARGETS[name], self.site, self.journal, reports)
            for name in tools or TARGETS
        ]
        if not tools:
            checks = [check for check in checks if check.found or check.set_up]
        daemon = problem or "reachable"
        saved = socket_path.saved_connection()
        memories = describe_memories(saved) if saved else ""
        missing = [*map(str, self.site.programs.missing)]
        if self.as_json:
            terminal.say_json(
                {
                    "daemon": daemon,
                    "server": saved.url if saved else None,
                    "missing_programs": missing,
                    "tools": checks,
                }
            )
        else:
            self._report_problems([f"{program} does not exist" for program in missing])
            self._say_text(checks_text(checks, daemon=daemon))
            own = describe_own_settings()
            for text in (memories, own and f"hooks on this machine: {own}"):
                if text:
                    self._say_text(_fill_paragraph(text, indent=""))
        failed = any(check.set_up and check.problems for check in checks)
        return options.EXIT_NOTHING if problem or failed or missing else 0

    def write_plugins(self, folder: Path) -> int:
        """Write the plugin packages of the tools to an empty folder; return the exit code.

        Raises `InvalidRequest` for a folder that is not empty.
        """
        if folder.exists() and any(folder.iterdir()):
            raise InvalidRequest(f"{folder} is not empty")
        written = write_packages(folder)
        if self.as_json:
            terminal.say_json({"files": [*map(str, written)]})
        else:
            terminal.say(
                f"{terminal.count_of(len(written), 'file')} in {folder}; see its README.md"
            )
        return 0
