"""`mnem endings`: statements that newer ones ended, and what a person says about them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import click

from mnemosyned.cli.calls import call_daemon, connect_to_daemon
from mnemosyned.cli.ids import with_whole_ids
from mnemosyned.cli.output.show import show
from mnemosyned.cli.verb_command import make_verb_command
from mnemosyned.verbs.endings import Endings, UndoEnding
from mnemosyned.verbs.request import parse_text

endings = make_verb_command("endings", Endings)
_list_endings = cast("Callable[..., int]", endings.callback)


def _run_endings(
    context: click.Context,
    /,
    *,
    change: tuple[str, ...],
    **given: Any,  # noqa: ANN401
) -> int:
    """Print ended statements, or change what `change` names: `undo ID`; return the exit code."""
    if not change:
        return _list_endings(**given)
    if len(change) != 2 or change[0] not in ("undo", "redo"):
        raise click.UsageError("say undo or redo and an id: mnem endings undo 01M2B9QW")
    what, id = change
    with connect_to_daemon(context) as client:
        fields = with_whole_ids("undo_ending", {"id": id}, client)
        fields["redo"] = "true" if what == "redo" else "false"
        show(call_daemon(client, parse_text(UndoEnding, fields)))
    return 0


endings.params.insert(0, click.Argument(["change"], nargs=-1, metavar="[undo|redo ID]"))
endings.callback = click.pass_context(_run_endings)
