"""The shell command of a verb: its fields as arguments and options, its result as words."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from mnemosyned.cli.calls import called, client_of, confirmed
from mnemosyned.cli.exits import EXIT_NOTHING
from mnemosyned.cli.inputs import fields_typed
from mnemosyned.cli.parameters import parameter
from mnemosyned.cli.render import remarks, render
from mnemosyned.terminal import say, say_json
from mnemosyned.verbs.request import Request, fields_of, parse_text

ASK_FIRST = {"forget", "prune"}
"""Verbs that cannot be undone: they show a preview and ask for confirmation."""
_IS_NOTHING: dict[str, Callable[[Any], bool]] = {
    "Recalled": lambda recalled: not recalled.hits,
    "CycleReport": lambda report: bool(report.failed or report.problem),
}
"""By the name of a result's class: whether nothing was found, or part of it failed."""


def command_of(name: str, verb: type[Request[Any]]) -> click.Command:
    """A shell command with the verb's fields as its arguments and options."""
    params = [parameter(verb, field) for field in fields_of(verb)]
    params.append(click.Option(["--json", "as_json"], is_flag=True, help="Print JSON."))
    if verb.verb_name() in ASK_FIRST:
        params.append(
            click.Option(["--yes"], is_flag=True, help="Do it without asking.")
        )
    return click.Command(
        name,
        params=params,
        callback=click.pass_context(_runner(verb)),
        help=_help(verb),
        context_settings={"help_option_names": ["-h", "--help"]},
    )


def _help(verb: type[Request[Any]]) -> str:
    """The verb's docstring without its errors, which exit codes tell a shell."""
    return str(verb.__doc__).partition("\n\n    Raises")[0]


def _runner(verb: type[Request[Any]]) -> Callable[..., int]:
    asks_first = verb.verb_name() in ASK_FIRST

    def run(
        context: click.Context,
        /,
        *,
        as_json: bool,
        yes: bool = True,
        **given: Any,  # noqa: ANN401
    ) -> int:
        request = parse_text(verb, fields_typed(given))
        with client_of(context) as client:
            asks = asks_first and not (yes or getattr(request, "dry_run", False))
            call: Callable[..., object] = confirmed if asks else called
            result = call(client, request)
        _show(result, as_json=as_json)
        return _exit_code(result)

    return run


def _exit_code(result: object) -> int:
    """The exit code of a call that was answered."""
    nothing = _IS_NOTHING.get(type(result).__name__)
    return EXIT_NOTHING if nothing and nothing(result) else 0


def _show(result: object, *, as_json: bool) -> None:
    """Print a result on standard output, and remarks about it on standard error."""
    if as_json:
        say_json(result)
        return
    if text := render(result):
        say(text, styled=True)
    if remark := remarks(result):
        say(click.style(remark, dim=True), err=True, styled=True)
