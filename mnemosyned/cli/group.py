"""The group of all commands: its help comes from the table, and a command is loaded where named."""

from __future__ import annotations

from functools import wraps
from importlib import import_module
from typing import TYPE_CHECKING, Any

import click

from mnemosyned.cli.address_options import address_options, refuse_elsewhere
from mnemosyned.cli.answers.formats import understand_json_format
from mnemosyned.cli.registry import COMMANDS, LOCAL, TITLES, Command

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem


_REFUSES_URLS = "_refuses_urls"
"""The mark of a callback that checks for a URL first."""


class CommandTable(click.Group):
    """The commands of the table, none of them loaded before it is named."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        return load(COMMANDS[cmd_name]) if cmd_name in COMMANDS else None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find a command; a misspelled name gets the nearest ones."""
        name = args[0]
        if name in COMMANDS or name.startswith("-") or ctx.resilient_parsing:
            return super().resolve_command(ctx, args)
        # Loaded here: only a mistake needs it.
        from difflib import get_close_matches  # noqa: PLC0415

        close = get_close_matches(name, COMMANDS, n=1)
        hint = f" (did you mean {close[0]}?)" if close else ""
        problem = f"there is no command {name!r}{hint}"
        raise click.UsageError(problem, ctx)

    def shell_complete(
        self, ctx: click.Context, incomplete: str
    ) -> list[CompletionItem]:
        """Complete names from the table, and options as any command."""
        # Loaded here: a command that runs completes nothing.
        from click.shell_completion import CompletionItem  # noqa: PLC0415

        names = [
            CompletionItem(each.name, help=each.summary)
            for each in COMMANDS.values()
            if each.name.startswith(incomplete)
        ]
        return names or click.Command.shell_complete(self, ctx, incomplete)

    def format_commands(
        self,
        ctx: click.Context,  # noqa: ARG002
        formatter: click.HelpFormatter,
    ) -> None:
        """Write the commands of each group with their summaries."""
        for group, title in TITLES.items():
            commands = [each for each in COMMANDS.values() if each.group == group]
            with formatter.section(title):
                formatter.write_dl([(each.name, each.summary) for each in commands])


def load(entry: Command) -> click.Command:
    """Import a command of the table, with its example and the options that all have."""
    module, _, attribute = entry.target.partition(":")
    target: Any = getattr(import_module(module), attribute)
    if not isinstance(target, click.Command):
        # Loaded here: commands that are no verbs need none of it.
        from mnemosyned.cli.verb_command import command_of  # noqa: PLC0415

        target = command_of(entry.name, target)
    command: click.Command = target
    if not command.epilog or "Example" not in command.epilog:
        further = f"\n\n{command.epilog}" if command.epilog else ""
        command.epilog = f"Example: {entry.example}{further}"
    _add_everywhere(command)
    if entry.name in LOCAL:
        _keep_here(command)
    return command


def _add_everywhere(command: click.Command) -> None:
    """Let the options of the address and of printing also follow a command's name."""
    command.context_settings.setdefault("help_option_names", ["-h", "--help"])
    taken = [name for parameter in command.params for name in parameter.opts]
    command.params += address_options(hidden=True, taken=taken)
    understand_json_format(command)
    if isinstance(command, click.Group):
        for member in command.commands.values():
            _add_everywhere(member)


def _keep_here(command: click.Command) -> None:
    """Let a command, with all below it, refuse a URL."""
    if isinstance(command, click.Group):
        for member in command.commands.values():
            _keep_here(member)
    run = command.callback
    if run is None or vars(run).get(_REFUSES_URLS):
        return

    @wraps(run)
    def run_here(*args: Any, **given: Any) -> Any:  # noqa: ANN401
        context = click.get_current_context()
        if context.invoked_subcommand is None:  # else that one refuses it
            refuse_elsewhere(context)
        return run(*args, **given)

    vars(run_here)[_REFUSES_URLS] = True
    command.callback = run_here
