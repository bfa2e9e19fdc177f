"""The shell client: the group of all commands, each loaded when named, and failures as one sentence."""

from __future__ import annotations

import errno
import os
import sys
from functools import wraps
from importlib import import_module
from typing import TYPE_CHECKING, Any

import click

from mnemosyned.cli import options
from mnemosyned.cli.registry import ADMINISTRATION, COMMANDS, GROUPS, LOCAL, Command
from mnemosyned.errors import DISK_FULL, InvalidRequest, Kind, MnemosynedError
from mnemosyned.version import __version__

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem


_REFUSES_URLS = "_refuses_urls"
"""Attribute of a callback that refuses a URL before it runs."""


class CommandTable(click.Group):
    """The click group of the commands in the registry, each imported when it is named."""

    def __init__(self, *args: Any, group: str = "", **given: Any) -> None:  # noqa: ANN401 those of click
        """Make the group of all commands, or of those in one group of the registry."""
        super().__init__(*args, **given)
        self._group = group
        self._entries = {
            name: each for name, each in COMMANDS.items() if group in ("", each.group)
        }

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """Return the names of the commands."""
        return list(self._entries)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Return the command of this name, imported; None for an unknown name."""
        entry = self._entries.get(cmd_name)
        return load_command(entry) if entry else None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the name of the command in `args`, the command, and the words after the name.

        Raises `click.UsageError` for an unknown name, with the nearest known one.
        """
        name = args[0]
        if name in self._entries or name.startswith("-") or ctx.resilient_parsing:
            return super().resolve_command(ctx, args)
        # Loaded here: only a mistake needs it.
        from difflib import get_close_matches  # noqa: PLC0415

        close = get_close_matches(name, self._entries, n=1)
        hint = f" (did you mean {close[0]}?)" if close else ""
        problem = f"there is no command {name!r}{hint}"
        raise click.UsageError(problem, ctx)

    def shell_complete(
        self, ctx: click.Context, incomplete: str
    ) -> list[CompletionItem]:
        """Return completions for the beginning of a word: commands, or else options."""
        # Loaded here: a command that runs completes nothing.
        from click.shell_completion import CompletionItem  # noqa: PLC0415

        names = [
            CompletionItem(each.name, help=each.summary)
            for each in self._entries.values()
            if each.name.startswith(incomplete)
        ]
        return names or click.Command.shell_complete(self, ctx, incomplete)

    def format_commands(
        self, ctx: click.Context, formatter: click.HelpFormatter
    ) -> None:
        """Write the commands that people use every day to the help page, or all for `mnem help all`.

        Commands of administration are on the page of `mnem admin` alone.
        """
        further = [each for each in GROUPS[1:] if each != ADMINISTRATION]
        shows_all = ctx.meta.get(options.ALL_COMMANDS)
        if self._group:
            further = []
        for group in [self._group or GROUPS[0], *(further if shows_all else ())]:
            commands = [each for each in COMMANDS.values() if each.group == group]
            with formatter.section(group):
                formatter.write_dl([(each.name, each.summary) for each in commands])
        if further and not shows_all:
            count = sum(each.group in further for each in COMMANDS.values())
            formatter.write_paragraph()
            formatter.write_text(f"{count} more commands: mnem help all")


def load_command(entry: Command) -> click.Command:
    """Return the command of a registry's row, imported, with example and common options."""
    module, _, attribute = entry.target.partition(":")
    target: Any = getattr(import_module(module), attribute)
    if not isinstance(target, click.Command):
        # Loaded here: commands that are no verbs need none of it.
        from mnemosyned.cli.verb_command import make_verb_command  # noqa: PLC0415

        target = make_verb_command(entry.name, target)
    command: click.Command = target
    if not command.epilog or "Example" not in command.epilog:
        further = f"\n\n{command.epilog}" if command.epilog else ""
        command.epilog = f"Example: {entry.example}{further}"
    _prepare_command(command, is_local=entry.name in LOCAL)
    for example in (entry.example, *entry.examples):
        member: click.Command | None = command
        for word in example.split()[2:]:
            if isinstance(member, click.Group):
                member = member.commands.get(word)
        if member is not None and member is not command:
            member.epilog = f"Example: {example}"
    return command


def _prepare_command(command: click.Command, *, is_local: bool) -> None:
    """Add the hidden options of address and format to a command and its subcommands.

    If `is_local`, the command raises `InvalidRequest` when a URL is given.
    """
    command.context_settings.setdefault("help_option_names", ["-h", "--help"])
    taken = [name for parameter in command.params for name in parameter.opts]
    command.params += options.address_options(hidden=True, taken=taken)
    if "--json" in taken and "--format" not in taken:
        command.params.append(options.format_options(hidden=True)[0])
    if isinstance(command, click.Group):
        for member in command.commands.values():
            # Not cut, as click would cut the help itself.
            summary, _, _ = str(member.help).partition("\n\n")
            member.short_help = member.short_help or " ".join(summary.split())
            _prepare_command(member, is_local=is_local)
    run = command.callback
    if not is_local or run is None or vars(run).get(_REFUSES_URLS):
        return

    @wraps(run)
    def run_unless_url(*args: Any, **given: Any) -> Any:  # noqa: ANN401
        """Run the command, or raise `InvalidRequest` if a URL is given."""
        context = click.get_current_context()
        if context.invoked_subcommand is None:  # else that one refuses it
            options.use_local_daemon(context)
        return run(*args, **given)

    vars(run_unless_url)[_REFUSES_URLS] = True
    command.callback = run_unless_url


@click.group(
    cls=CommandTable,
    invoke_without_command=True,
    context_settings={
        "help_option_names": ["-h", "--help"],
        "max_content_width": 100,
    },
    epilog=options.EXIT_CODES,
)
@click.version_option(__version__)
@click.pass_context
def mnem(context: click.Context) -> int:
    """Long-term memory for AI agents: keep what was said, and find it again in any tool.

    Without a command: the state at a glance.
    """
    if context.invoked_subcommand is not None:
        return 0
    from mnemosyned.cli.commands.now import run_glance  # noqa: PLC0415 a command needs none of it

    return run_glance(context)


mnem.params[:0] = options.address_options(hidden=False)
mnem.params += options.format_options(hidden=True)


def main() -> None:
    """Run the shell client, print a failure as one sentence, and exit with the exit code."""
    try:
        code = mnem(standalone_mode=False)
    except click.exceptions.NoArgsIsHelpError as error:
        _say_error(error.format_message())
        code = error.exit_code
    except click.ClickException as error:
        _print_usage_error(error)
        code = error.exit_code
    except (click.Abort, KeyboardInterrupt) as error:
        # Loaded here: only Ctrl-C needs it.
        from mnemosyned.cli.calls import interruption_message  # noqa: PLC0415

        _say_error(f"mnem: {interruption_message(error)}")
        code = options.EXIT_INTERRUPTED
    except MnemosynedError as error:
        _print_error(error)
        code = options.EXIT_OF_KIND[error.kind]
    except OSError as error:
        # Loaded here, as above.
        from mnemosyned.paths import path_fault, shown_path  # noqa: PLC0415

        name = error.filename if isinstance(error.filename, str) else ""
        code = options.EXIT_NOTHING
        if name and (fault := path_fault(name)):
            code = options.EXIT_OF_KIND[Kind.INVALID]
            _print_error(InvalidRequest(f"{shown_path(name)} cannot be used: {fault}"))
        else:
            what = error.strerror or str(error)
            if error.errno in (errno.ENOSPC, errno.EDQUOT):
                what = what.replace(os.strerror(error.errno), DISK_FULL)
            _say_error(f"mnem: {name}{': ' if name else ''}{what}")
    sys.exit(code)


def _print_usage_error(error: click.ClickException) -> None:
    """Print a mistake on the command line and the command to get help, or JSON if asked for."""
    if options.asks_for_json(sys.argv):
        field = getattr(getattr(error, "param", None), "name", None)
        _print_error(InvalidRequest(error.format_message(), field=field))
        return
    message = error.format_message().removesuffix(".")
    message = message.replace("not a valid integer range", "not a whole number")
    # A name in capitals, such as MNEM_FORMAT, keeps them.
    begins_sentence = message[:2].istitle()
    problem = f"{message[:1].lower()}{message[1:]}" if begins_sentence else message
    context = getattr(error, "ctx", None)
    if isinstance(error, click.MissingParameter) and "ID" in message:
        problem += "; a number of the last list does too: 2, @2 or '#2', in quotes"
    _say_error(f"mnem: {problem}")
    if context is not None:
        _say_error(f"its help: {context.command_path} --help")


def _print_error(error: MnemosynedError) -> None:
    """Print an error in words, naming options and commands, or as JSON if asked for."""
    if not options.asks_for_json(sys.argv):
        # Loaded here, as below: a help page prints without it.
        from mnemosyned.cli.arguments import name_options  # noqa: PLC0415

        message, field = error.explained, error.field or ""
        name = next(filter(COMMANDS.__contains__, sys.argv[1:]), "")
        command = load_command(COMMANDS[name]) if name else mnem
        forms = {
            parameter.name or "": parameter.opts
            for parameter in command.params
            if isinstance(parameter, click.Option)
        }
        name, _, _ = field.partition("[")  # of a list, as of a repeated option
        spelled = forms.get(name, [f"--{field.replace('_', '-')}"] if field else [])
        typed = [form for form in spelled if any(w.startswith(form) for w in sys.argv)]
        is_argument = name in {parameter.name for parameter in command.params} - {
            *forms
        }
        if (typed or is_argument) and message.startswith(field):
            message = [*typed, name][0] + message.removeprefix(field)
        message = name_options(message, {name: forms[name][0] for name in forms})
        _say_error(f"mnem: {message}")
        return
    # Loaded here, as below: a help page prints without it.
    from mnemosyned.cli.output.terminal import say_json  # noqa: PLC0415

    shown = {"code": error.code, "message": error.message, "field": error.field}
    say_json({"error": shown}, err=True)


def _say_error(words: str) -> None:
    """Print a line on standard error, with control characters escaped."""
    from mnemosyned.cli.output.terminal import say  # noqa: PLC0415 a help page prints without it

    say(words, err=True)
