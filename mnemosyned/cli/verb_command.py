"""The shell command of a verb: its fields as arguments and options, its result as words."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from mnemosyned.cli.answers.formats import AnswerCommand
from mnemosyned.cli.answers.output import show
from mnemosyned.cli.arguments.ids import with_whole_ids
from mnemosyned.cli.arguments.inputs import fields_typed
from mnemosyned.cli.arguments.parameters import in_order, parameter
from mnemosyned.cli.calls import called, client_of
from mnemosyned.cli.confirm import asks, confirmed, must_ask, whole
from mnemosyned.cli.exits import EXIT_NOTHING
from mnemosyned.verbs.request import Request, parse_text

_IS_NOTHING: dict[str, Callable[[Any], bool]] = {
    "Recalled": lambda recalled: not recalled.hits,
    "CycleReport": lambda report: bool(
        report.failed or report.problem or report.status == "not_running"
    ),
}
"""By the name of a result's class: whether nothing was found, or part of it failed."""


def command_of(name: str, verb: type[Request[Any]]) -> click.Command:
    """A shell command with the verb's fields as its arguments and options."""
    params = [parameter(verb, field) for field in in_order(verb)]
    if asks(verb):
        params.append(
            click.Option(
                ["--yes", "-y"], is_flag=True, help="Do not ask for confirmation."
            )
        )
    return AnswerCommand(
        name,
        params=params,
        callback=click.pass_context(_runner(name, verb)),
        help=_help(verb),
        context_settings={"help_option_names": ["-h", "--help"]},
    )


def _help(verb: type[Request[Any]]) -> str:
    """The verb's docstring without its errors, which exit codes tell a shell."""
    return str(verb.__doc__).partition("\n\n    Raises")[0]


def _runner(name: str, verb: type[Request[Any]]) -> Callable[..., int]:
    def run(
        context: click.Context,
        /,
        *,
        yes: bool = True,
        **given: Any,  # noqa: ANN401
    ) -> int:
        fields = fields_typed(given, name)
        with client_of(context) as client:
            fields = with_whole_ids(verb.verb_name(), fields, client)
            request = parse_text(verb, fields)
            call: Callable[..., object] = called
            if must_ask(request) and not yes:
                call = confirmed
            result = call(client, request)
            if getattr(request, "dry_run", False) and not given.get("after"):
                result = whole(client, request, result)
        show(result)
        return _exit_code(result)

    return run


def _exit_code(result: object) -> int:
    """The exit code of a call that was answered."""
    nothing = _IS_NOTHING.get(type(result).__name__)
    return EXIT_NOTHING if nothing and nothing(result) else 0
