"""Commands of a few lines: admin, archive, completion, help, mcp, top and watch."""

from __future__ import annotations

import os
import sys
from importlib.util import find_spec

import click

from mnemosyned import errors, version
from mnemosyned.agents.mcp.pump import run as run_pump
from mnemosyned.cli import arguments, calls, main, options, verb_command
from mnemosyned.cli.output.show import show
from mnemosyned.cli.output.terminal import say
from mnemosyned.cli.registry import ADMINISTRATION
from mnemosyned.verbs import retention, upkeep


@click.group(cls=main.CommandTable, group=ADMINISTRATION, invoke_without_command=True)
@click.pass_context
def admin(context: click.Context) -> None:
    """List the commands for owners, databases and servers.

    They also work without the word `admin`.
    """
    if context.invoked_subcommand is None:
        say(context.get_help())


@click.group()
def archive() -> None:
    """Limit what the archive keeps."""


archive.add_command(verb_command.make_verb_command("prune", retention.Prune))


def completion_script(shell: str) -> str:
    """Return the script with which bash, zsh or fish completes `mnem`."""
    # Loaded here: only this command needs it.
    from click.shell_completion import get_completion_class  # noqa: PLC0415

    script = get_completion_class(shell)
    assert script  # noqa: S101 click has these three
    return script(main.mnem, {}, "mnem", arguments.COMPLETION_VARIABLE).source()


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print a shell's completion script.

    `make install` puts the scripts where shells look for them. For bash: source <(mnem completion
    bash)
    """
    say(completion_script(shell))


@click.command("help")
@click.argument("words", nargs=-1, metavar="[COMMAND | all]")
@click.pass_context
def help_command(context: click.Context, words: tuple[str, ...]) -> None:
    """Show how a command is used; with `all`, list more commands."""
    shown = context.find_root()
    if words == ("all",):
        shown.meta[options.ALL_COMMANDS] = True
        words = ()
    for word in words:
        group = shown.command
        if not isinstance(group, click.Group):
            raise click.UsageError(f"{shown.command_path} has no commands of its own")
        name, command, _ = group.resolve_command(shown, [word])
        if command is None:
            raise click.UsageError(f"there is no command {word!r}")
        shown = click.Context(command, parent=shown, info_name=name)
    say(shown.get_help())


@click.command()
@click.pass_context
def mcp(context: click.Context) -> None:
    """Serve memory to an agent by the Model Context Protocol, on standard input and output.

    Agents start it by themselves.
    """
    socket = options.typed_address(context).get(options.SOCKET)
    run_pump(socket, options.typed_remote(context))


STATE_TIMEOUT_S = 5.0
"""Longest wait for the daemon's state; a sleep may take longer."""


@click.command()
@click.pass_context
def top(context: click.Context) -> int:
    """Watch the daemon live, full screen.

    Tiers, requests and their times, sleep, hooks and problems, once a second.
    Keys: / search, Enter open, s sleep, p pause, ? help, q quit.
    """
    if find_spec("textual") is None:
        say(
            "the live view needs Textual, which is not installed; install it:", err=True
        )
        say(version.install_command("top"))  # on one line, to be copied
        return options.EXIT_OF_KIND[errors.Kind.INVALID]
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise errors.InvalidRequest(
            "the live view needs a terminal; mnem status prints the state once"
        )
    # Loaded here: Textual takes longer to load than most commands run.
    from mnemosyned.cli.commands.top_app import Top  # noqa: PLC0415

    state_connection = calls.connect_to_daemon(context, timeout_s=STATE_TIMEOUT_S)
    Top(state_connection, calls.connect_to_daemon(context)).run()
    return 0


@click.command("watch")
@click.argument("paths", nargs=-1, metavar="[PATHS]...", type=click.Path())
@click.option("--list", "only_list", is_flag=True, help="Show what is watched.")
@click.option(
    "--remove", is_flag=True, help="Stop watching PATHS; their memories stay."
)
@options.json_option()
@click.pass_context
def watch(
    context: click.Context, paths: tuple[str, ...], *, only_list: bool, remove: bool
) -> None:
    """Watch folders: import files, and what is added to them.

    Transcripts of agents' tools, notes in Markdown, JSON lines and shell histories are read,
    including those that are there already. The daemon continues after every start. An edited note
    takes the place of its earlier version. Without PATHS, show what is watched.
    """
    if only_list and (paths or remove):
        raise click.UsageError("--list takes no PATHS; leave one of them out")
    if remove and not paths:
        raise click.UsageError("--remove needs PATHS; mnem watch --list shows them")
    absolute = [path and os.path.realpath(os.path.expanduser(path)) for path in paths]  # noqa: PTH111 leaves an unknown ~user
    with calls.connect_to_daemon(context) as client:
        show(client.call(upkeep.Watch(absolute, remove=remove)))
