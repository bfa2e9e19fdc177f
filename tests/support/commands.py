"""Every command of the shell by its whole name, groups among them."""

from __future__ import annotations

from collections.abc import Iterator

import click

from mnemosyned.cli.main import mnem


def walk_commands(
    group: click.Group = mnem, path: str = "mnem"
) -> Iterator[tuple[str, click.Command]]:
    context = click.Context(group)
    yield path, group
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        if isinstance(command, click.Group):
            yield from walk_commands(command, f"{path} {name}")
        else:
            yield f"{path} {name}", command
