"""`mnem import`: every line of a file, remembered."""

from __future__ import annotations

import sys
from pathlib import Path

import click
import msgspec

from mnemosyned.cli.calls import client_of, on_interrupt
from mnemosyned.cli.exits import EXIT_OF_KIND
from mnemosyned.cli.importer import PROBLEMS_SHOWN_MAX, ImportReport, import_lines
from mnemosyned.client.connection import Connection
from mnemosyned.domain.errors import Kind
from mnemosyned.domain.text.invisible import escape_invisible
from mnemosyned.terminal import say, say_json


@click.command("import")
@click.argument("file", type=click.Path(dir_okay=False, exists=True, allow_dash=False))
@click.option(
    "--bad-lines",
    type=click.Choice(["refuse", "skip"]),
    default="refuse",
    show_default=True,
    help="refuse: store nothing if any line is bad; skip: store the good ones.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_context
def import_file(
    context: click.Context, file: str, bad_lines: str, *, as_json: bool
) -> int:
    """Remember every line of a file.

    Each line is a JSON object with the fields of `remember`. A file can be imported again: known
    lines are not stored twice.
    """
    again = "what was imported so far is stored; import the file again for the rest"
    with client_of(context) as client, on_interrupt(again):
        report = None
        if bad_lines == "refuse":
            report = _pass(file, client, label="checking", check_only=True)
        if report is None or not report.refused:
            report = _pass(file, client, label="importing", check_only=False)
    if as_json:
        say_json(msgspec.to_builtins(report))
    else:
        _print_import(report)
    return EXIT_OF_KIND[Kind.INVALID] if report.refused else 0


def _pass(
    file: str, client: Connection, *, label: str, check_only: bool
) -> ImportReport:
    path = Path(file)
    with (
        path.open("rb") as opened,
        click.progressbar(
            length=path.stat().st_size,
            label=label,
            file=sys.stderr,
            hidden=not sys.stderr.isatty(),
        ) as bar,
    ):
        return import_lines(opened, client, check_only=check_only, progress=bar.update)


def _print_import(report: ImportReport) -> None:
    for problem in report.refused[:PROBLEMS_SHOWN_MAX]:
        say(escape_invisible(problem, one_line=True), err=True)
    hidden = len(report.refused) - PROBLEMS_SHOWN_MAX
    if hidden > 0:
        say(f"… and {hidden:,} more bad lines", err=True)
    if report.refused and not report.stored + report.known:
        say("nothing was stored; fix these lines, or use --bad-lines skip", err=True)
    else:
        say(
            f"{report.stored:,} remembered, {report.known:,} already known, "
            f"{report.learned:,} learned"
        )
