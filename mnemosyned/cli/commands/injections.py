"""`mnem endings`, `injections` and `briefing`: what agents are given, and what people say of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from mnemosyned.cli.calls import call_daemon, connect_to_daemon
from mnemosyned.cli.ids import with_whole_ids
from mnemosyned.cli.options import EXIT_NOTHING, AnswerCommand
from mnemosyned.cli.output.show import show
from mnemosyned.cli.verb_command import add_change, make_verb_command
from mnemosyned.importers.projects import project_of
from mnemosyned.verbs.conversation import (
    Briefing,
    EditBriefing,
    Endings,
    Injections,
    RateInjection,
    UndoEnding,
)

endings = make_verb_command("endings", Endings)
add_change(
    endings,
    UndoEnding,
    {"undo": {"redo": "false"}, "redo": {"redo": "true"}},
    hint="say undo or redo and an id: mnem endings undo 01M2B9QW",
)
injections = make_verb_command("injections", Injections)
add_change(
    injections,
    RateInjection,
    {
        rating: {"outcome": rating.replace("-", "_")}
        for rating in ("useful", "not-useful", "unknown")
    },
    hint="say useful, not-useful, unknown and an id: mnem injections useful 01M2B9QW",
)


@click.command("briefing", cls=AnswerCommand)
@click.argument("text", nargs=-1, metavar="[TEXT]")
@click.option(
    "--project", metavar="DIR", help="A directory of the project, or its key."
)
@click.option("--pin", metavar="ID", help="Always give this line, and first.")
@click.option("--drop", metavar="ID", help="Never give this line again.")
@click.option("--reword", metavar="ID", help="Give this line in the words TEXT.")
@click.option(
    "--undo", metavar="ID", help="Take back what was decided about this line."
)
@click.pass_context
def briefing(
    context: click.Context,
    /,
    text: tuple[str, ...],
    project: str | None,
    **given: str | None,
) -> int:
    """Show what agents are given at a session's start, and why.

    The project is that of this directory. `--pin`, `--drop` and `--reword` change a line by the id
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
    directory = Path(project or ".").expanduser()
    key = project_of(directory.resolve()).key if directory.is_dir() else project
    with connect_to_daemon(context) as client:
        for change, id in chosen:
            fields = with_whole_ids("edit_briefing", {"id": id}, client)
            show(call_daemon(client, EditBriefing(fields["id"], **changes[change])))
            return 0
        told = call_daemon(client, Briefing(project=key or None))
    show(told)
    return 0 if told.lines else EXIT_NOTHING
