"""`mnem completion`: the script that completes commands, options and values in a shell."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from mnemosyned.terminal import say


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print a shell's completion script.

    For bash: source <(mnem completion bash)
    """
    script = get_completion_class(shell)
    if script is None:
        raise click.UsageError(f"no completion for {shell}")
    say(script(context.find_root().command, {}, "mnem", "_MNEM_COMPLETE").source())
