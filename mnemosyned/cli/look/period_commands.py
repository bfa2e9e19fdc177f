"""`mnem today`, `mnem day`, `mnem week` and `mnem month`."""

from __future__ import annotations

from typing import Any

import click

from mnemosyned.cli.answers.formats import AnswerCommand
from mnemosyned.cli.answers.output import show
from mnemosyned.cli.arguments.inputs import fields_typed
from mnemosyned.cli.arguments.parameters import parameter
from mnemosyned.cli.calls import client_of
from mnemosyned.cli.exits import EXIT_NOTHING
from mnemosyned.cli.look.periods import Reader, Unit
from mnemosyned.verbs.listing import ListMemories
from mnemosyned.verbs.request import fields_of, parse_text

FILTERS = ("session", "source", "role", "tag", "history", "reveal")
LIMIT = 1_000


def _command(name: str, unit: Unit, help_text: str) -> click.Command:
    fields = {field.name: field for field in fields_of(ListMemories)}
    params: list[click.Parameter] = [
        parameter(ListMemories, fields[filter_name]) for filter_name in FILTERS
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
            view = Reader(client, request, LIMIT).read(" ".join(when), unit)
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
