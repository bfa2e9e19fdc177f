"""`mnem completion`: the script that completes commands, options and values in a shell."""

from __future__ import annotations

import click

from mnemosyned.terminal import say


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print a shell's completion script.

    `make install` puts them where the shells look. For bash: source <(mnem completion bash)
    """
    # Loaded here: it knows all commands, this one too.
    from mnemosyned.cli.commands.man import completion_script  # noqa: PLC0415

    say(completion_script(shell))
