"""`mnem import`: memories from files, folders or standard input."""

from __future__ import annotations

import sys
from collections import Counter
from contextlib import closing, nullcontext
from pathlib import Path
from shutil import copyfileobj
from tempfile import TemporaryDirectory, mkdtemp

import click
import msgspec

from mnemosyned.agents.hooks.withheld import own_settings
from mnemosyned.cli.calls import NOTHING_CHANGED, Interrupted, connect_to_daemon
from mnemosyned.cli.options import EXIT_NOTHING, EXIT_OF_KIND, json_option, prints_json
from mnemosyned.cli.output import terminal
from mnemosyned.errors import InvalidRequest, Kind, MnemosynedError
from mnemosyned.importers import importer, run
from mnemosyned.text.display import escape_line
from mnemosyned.verbs.upkeep import Status

_NAME_COLUMNS = max(len(entry.name) for entry in run.FORMATS) + 2
_FORMATS = "\n".join(
    f"  {entry.name:<{_NAME_COLUMNS}}{entry.summary}" for entry in run.FORMATS
)


@click.command("import", epilog=f"\b\nThe formats:\n{_FORMATS}")
@click.argument(
    "paths", nargs=-1, metavar="[PATH…]", type=click.Path(exists=True, allow_dash=True)
)
@click.option(
    "--format",
    "format_name",
    metavar="NAME",
    help="The format; by default it is recognized by the content.",
)
@click.option(
    "--dry-run", is_flag=True, help="Show what would be stored; store nothing."
)
@click.option(
    "--bad",
    type=click.Choice(["skip", "refuse"]),
    default="skip",
    show_default=True,
    help="Bad records: skip and report them, or check all first and store nothing if one is bad.",
)
@click.option(
    "--restart",
    is_flag=True,
    help="Read from the beginning, even if an earlier import was interrupted.",
)
@json_option()
def import_command(
    paths: tuple[str, ...],
    *,
    format_name: str | None,
    dry_run: bool,
    bad: str,
    restart: bool,
) -> int:
    """Import memories from files, folders or standard input (-).

    Without a path, show what other programs keep on this machine, with the command for each.
    Records keep their own times and sessions. Repeat an interrupted import to continue where it
    stopped; known records are not stored twice.
    """
    if not paths:
        return _show_found()
    context = click.get_current_context()
    with (
        TemporaryDirectory(prefix="mnem-import-") as folder,
        connect_to_daemon(context) as client,
        closing(client.transfers()) as transfers,
    ):
        sources = [_open_source(path, Path(folder)) for path in paths]
        status = client.call(Status())
        is_empty = not any(tier.count for tier in status.tiers.values())
        plan = run.plan_import(sources, format_name)
        settings = own_settings()
        exclude = settings.exclude if settings else []
        if dry_run or bad == "refuse":
            preview = run.Preview()
            checking = run.ImportRun(
                client, transfers, plan, preview=preview, exclude=exclude
            )
            _run_with_progress(checking, "checking")
            if dry_run:
                return _show_preview(preview, checking.report)
            if checking.report.bad:
                _print_report(checking.report)
                return EXIT_OF_KIND[Kind.INVALID]
        # A journal stores where an interrupted import goes on; a pipe has other data then.
        memory = f"{client.identity}{status.database}"
        journals = {
            str(source.root): run.ImportJournal.of(
                memory, source.root, format_name or ""
            )
            for source in sources
            if not source.pipe
        }
        for journal in journals.values() if restart or is_empty else ():
            journal.delete()
        import_run = run.ImportRun(client, transfers, plan, journals, exclude=exclude)
        _run_with_progress(import_run, "importing")
    report = import_run.report
    _print_report(report)
    if not report.bad:
        return 0
    has_some = report.stored + report.known + report.edited
    return EXIT_NOTHING if has_some else EXIT_OF_KIND[Kind.INVALID]


def _show_found() -> int:
    """Print what can be imported from the usual places of other programs; return the exit code."""
    found = run.find_sources()
    if prints_json():
        terminal.say_json(
            [{"path": path, "what": what} for path, what in found.items()]
        )
    elif found:
        for path, what in found.items():
            terminal.say(f"mnem import {escape_line(path)}  # {what}")
        terminal.say(
            "--dry-run shows first what is stored; mnem watch also imports what is added to a folder later",
            err=True,
        )
    else:
        terminal.say(
            "nothing of another program is at its usual place; mnem import PATH reads "
            "a file or folder",
            err=True,
        )
    return 0 if found else EXIT_NOTHING


def _open_source(path: str, folder: Path) -> importer.ImportSource:
    """Return the source for a path; what comes through a pipe is copied to a folder.

    Raises `InvalidRequest` for a pipe that cannot be read, and `OSError` if the disk is full.
    """
    named = Path(path)
    if path != "-" and (named.is_file() or named.is_dir()):
        return importer.ImportSource.of_path(named)
    try:
        opened = nullcontext(sys.stdin.buffer) if path == "-" else named.open("rb")
    except OSError as error:
        raise InvalidRequest(
            f"{path} cannot be read: {error.strerror}", field="path"
        ) from error
    copy = Path(mkdtemp(dir=folder), named.name)  # as a name may tell the format
    try:
        with opened as pipe, copy.open("wb") as file:
            copyfileobj(pipe, file)
    except OSError as error:
        problem = f"the pipe could not be copied to {folder.parent}: {error.strerror}"
        raise OSError(error.errno, problem) from error
    return importer.ImportSource(copy, named, pipe=named)


# ------------------------------------------------------------------ progress


def _run_with_progress(import_run: run.ImportRun, label: str) -> None:
    """Run an import, with a progress line that begins with `label`.

    Ctrl-C raises `Interrupted`, and an error is raised again, with the number of memories stored.
    """
    try:
        with terminal.progress_line(label, "memory", import_run.plan.size) as advance:
            import_run.progress = lambda amount, _report: advance(
                amount, _count_records(import_run)
            )
            import_run.run()
    except KeyboardInterrupt as error:
        raise Interrupted(
            NOTHING_CHANGED if import_run.preview else _stored_so_far(import_run)
        ) from error
    except MnemosynedError as error:
        if import_run.preview is not None or not _count_records(import_run):
            raise
        message = (
            f"{_stored_so_far(import_run)}. The next batch failed: {error.message}"
        )
        raise type(error)(message, field=error.field) from error


def _stored_so_far(import_run: run.ImportRun) -> str:
    """Return a sentence on how many memories an interrupted import has stored so far."""
    count = _count_records(import_run)
    are = "is" if count == 1 else "are"
    stored = f"{terminal.count_of(count, 'memory')} of this import {are} stored"
    return f"{stored}; repeat the command to go on from there"


def _count_records(import_run: run.ImportRun) -> int:
    """Return how many memories an import has stored or found already stored, or a dry run previewed."""
    if import_run.preview:
        return import_run.preview.memories
    return import_run.report.stored + import_run.report.known


# -------------------------------------------------------------------- output


def _print_report(report: run.ImportReport) -> None:
    """Print the bad records of an import on standard error, and the counts on standard output."""
    _print_problems(report)
    if prints_json():
        terminal.say_json(msgspec.to_builtins(report))
        return
    if report.unknown_files:
        files = terminal.count_of(report.unknown_files, "file")
        terminal.say(f"{files} without a format that can be imported", err=True)
    if report.bad and not (
        report.stored + report.known + report.edited + report.forgotten
    ):
        terminal.say("nothing was stored", err=True)
        return
    terminal.say(
        f"{report.stored:,} remembered, {report.known:,} already known, "
        f"{report.learned:,} learned"
    )
    if report.edited:
        terminal.say(
            f"{terminal.count_of(report.edited, 'memory')} edited, as the text of the record has changed"
        )
    if report.forgotten:
        terminal.say(
            f"{terminal.count_of(report.forgotten, 'memory')} left out: forgotten before, and so they stay"
        )
    others = [
        terminal.count_of(report.restored[kind], noun)
        for kind, noun in terminal.RECORD_NOUNS.items()
        if kind in report.restored.keys() - {"memory", "learning"}
    ]
    if others:
        terminal.say(f"restored with them: {', '.join(others)}")
    if report.left_out:
        summaries = terminal.count_of(report.left_out, "summary")
        terminal.say(
            f"{summaries} left to the next sleep, as their originals are not all here",
            err=True,
        )


def _print_problems(report: run.ImportReport) -> None:
    """Print on standard error which records of an import are bad and why, and how many were excluded."""
    if report.excluded:
        messages = terminal.count_of(report.excluded, "message")
        terminal.say(
            f"{messages} left out: their folders are in hooks.exclude", err=True
        )
    for problem in report.problems:
        terminal.say(escape_line(problem), err=True)
    hidden = report.bad - len(report.problems)
    if hidden > 0:
        terminal.say(f"… and {terminal.count_of(hidden, 'more bad record')}", err=True)


def _show_preview(preview: run.Preview, report: run.ImportReport) -> int:
    """Print what an import would store, after its dry run; return the exit code."""
    _print_problems(report)
    if prints_json():
        terminal.say_json({**msgspec.to_builtins(preview), "bad": report.bad})
    else:
        memories, files = (
            terminal.count_of(preview.memories, "memory"),
            terminal.count_of(report.files, "file"),
        )
        sessions = f"{len(preview.sessions):,}: {_named_counts(preview.sessions)}"
        times = f"{terminal.local_time(preview.earliest)} to {terminal.local_time(preview.latest)}"
        undated = f"{preview.undated:,}, which get the time of the import"
        lines = [
            f"{memories} in {files}, {report.bad:,} bad; nothing stored",
            f"formats:  {_named_counts(preview.formats)}",
            f"roles:    {_named_counts(preview.roles)}",
            f"sources:  {_named_counts(preview.sources)}",
            f"sessions: {sessions}",
            *([f"times:    {times}"] if preview.earliest else []),
            *([f"no time:  {undated}"] if preview.undated else []),
            f"learned:  {preview.learned:,}",
            *(f"  {escape_line(text)}" for text in preview.learnings),
        ]
        terminal.say("\n".join(lines))
    return EXIT_OF_KIND[Kind.INVALID] if report.bad and not preview.memories else 0


def _named_counts(counts: Counter[str]) -> str:
    """Return the largest counts with their names: `user 120, assistant 80, 3 more`."""
    shown = [
        f"{escape_line(name or 'none')} {count:,}"
        for name, count in counts.most_common(10)
    ]
    hidden = len(counts) - len(shown)
    return ", ".join([*shown, f"{hidden:,} more"] if hidden > 0 else shown)
