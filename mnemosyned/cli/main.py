"""The entry of the shell client: the command that was named, and its failure in words."""

from __future__ import annotations

import sys

import click

from mnemosyned.cli.address_options import address_options
from mnemosyned.cli.answers.formats import asks_for_json, format_options
from mnemosyned.cli.exits import (
    EXIT_CODES,
    EXIT_INTERRUPTED,
    EXIT_NOTHING,
    EXIT_OF_KIND,
)
from mnemosyned.cli.group import CommandTable
from mnemosyned.domain.errors import InvalidRequest, Kind, MnemosynedError
from mnemosyned.version import __version__

HELP_COLUMNS = 100


@click.group(
    cls=CommandTable,
    invoke_without_command=True,
    context_settings={
        "help_option_names": ["-h", "--help"],
        "max_content_width": HELP_COLUMNS,
    },
    epilog=EXIT_CODES,
)
@click.version_option(__version__)
@click.pass_context
def mnem(context: click.Context) -> int:
    """Ask the memory daemon: remember, recall, sleep, expand, forget.

    Without a command: the state at a glance.
    """
    if context.invoked_subcommand is not None:
        return 0
    from mnemosyned.cli.look.glance import glance  # noqa: PLC0415 a command needs none of it

    return glance(context)


mnem.params[:0] = address_options(hidden=False)
mnem.params += format_options(hidden=True)


def main() -> None:
    """Run the shell client; every failure is one sentence and an exit code."""
    try:
        code = mnem(standalone_mode=False)
    except click.exceptions.NoArgsIsHelpError as error:
        _say(error.format_message())
        code = error.exit_code
    except click.ClickException as error:
        _print_usage(error)
        code = error.exit_code
    except (click.Abort, KeyboardInterrupt) as error:
        _print_interruption(error)
        code = EXIT_INTERRUPTED
    except MnemosynedError as error:
        _print_error(error)
        code = EXIT_OF_KIND[error.kind]
    except OSError as error:
        code = _print_failure(error)
    sys.exit(code)


def _print_failure(error: OSError) -> int:
    """Print what the system refused, such as the answer on a full disk; its exit code."""
    # Loaded here, as below.
    from mnemosyned.paths import path_fault, shown_path  # noqa: PLC0415

    name = error.filename if isinstance(error.filename, str) else ""
    if fault := path_fault(name):
        _print_error(InvalidRequest(f"{shown_path(name)} cannot be used: {fault}"))
        return EXIT_OF_KIND[Kind.INVALID]
    _say(f"mnem: {name}{': ' if name else ''}{error.strerror or error}")
    return EXIT_NOTHING


def _print_usage(error: click.ClickException) -> None:
    """Print a mistake on the command line, and where its help is."""
    if asks_for_json(sys.argv):
        _print_error(InvalidRequest(error.format_message()))
        return
    message = error.format_message().removesuffix(".")
    # A name in capitals, such as MNEM_FORMAT, keeps them.
    begins_sentence = message[:2].istitle()
    problem = f"{message[:1].lower()}{message[1:]}" if begins_sentence else message
    context = getattr(error, "ctx", None)
    if isinstance(error, click.MissingParameter) and "ID" in message:
        problem += "; a number of the last list does too: 2, @2 or '#2', in quotes"
    _say(f"mnem: {problem}")
    if context is not None:
        _say(f"its help: {context.command_path} --help")


def _print_interruption(error: BaseException) -> None:
    # Loaded here: only Ctrl-C needs it.
    from mnemosyned.cli.interruption import words_of  # noqa: PLC0415

    _say(f"mnem: {words_of(error)}")


def _print_error(error: MnemosynedError) -> None:
    """Print an error as words, or with --json in the form of the HTTP API."""
    if not asks_for_json(sys.argv):
        _say(f"mnem: {_in_the_shell(error)}")
        return
    # Loaded here, as below: a help page prints without it.
    from mnemosyned.terminal import say_json  # noqa: PLC0415

    shown = {"code": error.code, "message": error.message, "field": error.field}
    say_json({"error": shown}, err=True)


def _say(words: str) -> None:
    """Print on standard error."""
    from mnemosyned.terminal import say  # noqa: PLC0415 a help page prints without it

    say(words, err=True)


def _in_the_shell(error: MnemosynedError) -> str:
    """The message of an error, with the option that was typed in place of its field."""
    field = error.field or ""
    option = f"--{field.replace('_', '-')}"
    typed = any(word.partition("=")[0] == option for word in sys.argv)
    if typed and error.message.startswith(field):
        return option + error.message.removeprefix(field)
    return error.message
