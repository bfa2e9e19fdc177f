"""The forms in which an answer is printed, and the options that choose one."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import click

from mnemosyned.cli.registry import COMMANDS

FORMATS = ("table", "tsv", "jsonl", "json", "ids")
FORMATS_OF_FILES = ("export", "import")
"""Commands whose `--format` is that of a file; before their name it is that of the answer."""
VARIABLE = "MNEM_FORMAT"
_FORMAT = "mnemosyned.format"
_NO_PAGER = "mnemosyned.no_pager"
FORMAT_HELP = (
    "How to print the answer: table, as at a terminal; tsv, a line for each record, as in a "
    "pipe; jsonl; json; ids."
)


def chosen_format() -> str:
    """The form chosen by an option or MNEM_FORMAT; a table for people, lines for a pipe."""
    chosen: str = _meta().get(_FORMAT) or os.environ.get(VARIABLE, "")
    if not chosen:
        # Loaded here: the help page prints without it.
        from mnemosyned.terminal import is_terminal  # noqa: PLC0415

        return "table" if is_terminal(sys.stdout) else "tsv"
    if chosen not in FORMATS:
        raise click.UsageError(
            f"{VARIABLE}={chosen} is not a format; choose one of {', '.join(FORMATS)}"
        )
    return chosen


def prints_json() -> bool:
    """Whether JSON was chosen, for commands that know no other form."""
    context = click.get_current_context(silent=True)
    completes = context is not None and context.resilient_parsing
    return not completes and chosen_format() in ("json", "jsonl")


def may_page() -> bool:
    """Whether a pager may show what is longer than the screen."""
    return not _meta().get(_NO_PAGER)


def asks_for_json(words: Sequence[str]) -> bool:
    """Whether a command line asks for JSON, also where it is too wrong to be read."""
    command = next(filter(COMMANDS.__contains__, words[1:]), "")
    if command in FORMATS_OF_FILES:
        return "--json" in words or asks_for_json(words[: words.index(command)])
    named = [after for word, after in pairwise(words) if word == "--format"]
    named += [word.partition("=")[2] for word in words if word.startswith("--format=")]
    return "--json" in words or bool({"json", "jsonl"} & set(named))


class AnswerCommand(click.Command):
    """A command whose answer `output.show` prints: it understands the options for that."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401 those of click
        super().__init__(*args, **kwargs)
        self.params += format_options()


def format_options(*, hidden: bool = False) -> list[click.Parameter]:
    """The options that choose a form of the answer, and whether a pager shows it."""
    return [
        click.Option(
            ["--format"],
            type=click.Choice(FORMATS),
            expose_value=False,
            is_eager=True,
            hidden=hidden,
            callback=_use_format,
            help=FORMAT_HELP,
        ),
        click.Option(
            ["--json"],
            is_flag=True,
            expose_value=False,
            hidden=hidden,
            callback=_use_json,
            help="The same as --format json.",
        ),
        click.Option(
            ["--no-pager"],
            is_flag=True,
            expose_value=False,
            hidden=hidden,
            callback=_use_no_pager,
            help="Start no pager for a long answer.",
        ),
    ]


def understand_json_format(command: click.Command) -> None:
    """Let a command that prints JSON by itself understand the other ways to ask for it too."""
    as_json = [each for each in command.params if each.name == "as_json"]
    for parameter in as_json:
        parameter.default = prints_json
    options = {option for parameter in command.params for option in parameter.opts}
    if as_json and "--format" not in options:
        command.params.append(format_options(hidden=True)[0])


def _use_format(
    context: click.Context,
    _parameter: click.Parameter,
    value: str | None,
) -> None:
    if value is not None:
        context.find_root().meta[_FORMAT] = value


def _use_json(
    context: click.Context,
    _parameter: click.Parameter,
    value: object,
) -> None:
    """Choose JSON, as the callback of `--json`."""
    if value:
        context.find_root().meta[_FORMAT] = "json"


def _use_no_pager(
    context: click.Context,
    _parameter: click.Parameter,
    value: object,
) -> None:
    if value:
        context.find_root().meta[_NO_PAGER] = True


def _meta() -> dict[str, Any]:
    context = click.get_current_context(silent=True)
    return context.find_root().meta if context else {}
