"""`mnem archive`: what the archive keeps."""

from __future__ import annotations

import click

from mnemosyned.cli.verb_command import command_of
from mnemosyned.verbs.retention import Prune


@click.group()
def archive() -> None:
    """Limit what the archive keeps."""


archive.add_command(command_of("prune", Prune))
