"""`mnem model`: fetch, check, choose and remove language models; no daemon is needed."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import click

from mnemosyned import errors, paths
from mnemosyned.cli.options import json_option, prints_json
from mnemosyned.cli.output.terminal import ask_or_exit, say, say_json
from mnemosyned.cli.settings_file import write_settings
from mnemosyned.config import loading, settings
from mnemosyned.models.catalog import CATALOG, ModelStore, write_manual_instructions

RELOAD = "the daemon takes it up with `systemctl --user reload mnemosyned`, or SIGHUP"


@click.group()
def model() -> None:
    """Fetch and choose a language model for summaries.

    A model is fetched only when you ask, and kept on this machine.
    llama.cpp itself is installed with `make install-llm`.
    """


@model.command("list")
@json_option()
def list_models() -> None:
    """List the models on this machine, and the models that can be fetched by a short name."""
    shelf = ModelStore()
    used = _model_in_use()
    here = {kept.path.absolute(): kept for kept in shelf}
    if prints_json():
        models = [
            {"path": str(path), "bytes": kept.size, "complete": kept.complete}
            for path, kept in here.items()
        ]
        say_json({"models": models, "in_use": used and str(used)})
        return
    for path, kept in here.items():
        mark = "in use" if path == used else ""
        if not kept.complete:
            mark = "in part: pull it again to go on"
        say(f"{path.name:<50} {kept.size:>15,} bytes  {mark}".rstrip())
    if used and used not in here:
        missing = "" if used.is_file() else ", but missing"
        say(f"{used}  in use{missing}")
    say(f"{'kept' if here else 'none'} in {shelf.folder}", err=True)
    for name, known in CATALOG.items():
        about = f"{known.size:,} bytes, {known.license}, {known.url}"
        say(f"mnem model pull {name}: {about}", err=True)


@model.command()
@click.argument("name", metavar="NAME|URL")
@click.option("--sha256", metavar="HEX", help="Refuse a file with another digest.")
@click.option(
    "--by-hand",
    is_flag=True,
    help="Only print where to get the file and where to put it.",
)
def pull(name: str, sha256: str | None, *, by_hand: bool) -> None:
    """Fetch a model; a repeated call continues an interrupted download.

    A file with a digest other than --sha256 is refused. --by-hand fetches nothing, for a
    machine without a network.
    """
    shelf = ModelStore()
    if sha256 is not None and not re.fullmatch("[0-9a-fA-F]{64}", sha256):
        raise click.UsageError("--sha256 takes 64 hexadecimal digits")
    request, target = shelf.resolve(name, sha256=sha256)
    if by_hand:
        say(write_manual_instructions(request, target))
        return
    with click.progressbar(
        length=request.size or 1,
        label=target.name,
        file=sys.stderr,
        hidden=not sys.stderr.isatty(),
    ) as bar:

        def update_bar(have: int, total: int | None) -> None:
            """Show `have` of `total` bytes on the bar; `total` is None if unknown."""
            bar.length = total or max(have, bar.length or 0)
            bar.update(have - bar.pos)

        path, digest = shelf.pull(name, sha256=sha256, progress=update_bar)
    say(f"{path}\nSHA-256 {digest}")
    if sha256 is None:
        advice = "compare that with the one its publisher states; it was not known here"
        say(advice, err=True)
    say(f"use it with: mnem model use {path.name}", err=True)


@model.command()
@click.argument("name")
@click.option("--sha256", metavar="HEX", help="The digest its publisher states.")
def verify(name: str, sha256: str | None) -> int:
    """Check a model file: GGUF format, size and SHA-256.

    The digest is compared with --sha256, or else with the one known from the download. If none is
    known, llama.cpp loads the model once. The exit code is 1 if the file is faulty.
    """
    shelf = ModelStore()
    path = shelf.find(name)
    verdict = shelf.verify(path, sha256=sha256)
    say(f"{path}\n{verdict.size:,} bytes\nSHA-256 {verdict.sha256}")
    for problem in verdict.problems:
        say(f"mnem: {problem}", err=True)
    if verdict.problems:
        return 1
    say(
        "as it was fetched" if verdict.compared else "whole as far as can be known here"
    )
    return 0


@model.command()
@click.argument("name", metavar="NAME|PATH|none")
def use(name: str) -> None:
    """Let a model write the summaries; `none` returns to the extractive summarizer."""
    shelf = ModelStore()
    value = settings.NO_MODEL if name == "none" else str(shelf.find(name))
    if value != settings.NO_MODEL:
        with Path(value).open("rb") as file:
            if file.read(4) != b"GGUF":
                raise errors.InvalidRequest(f"{value} is not a model in GGUF format")
    file_used = loading.config_file() or paths.default_config_file()
    write_settings(file_used, {"llm.model_path": value})
    say(f"llm.model_path is {value} in {file_used}; {RELOAD}")


@model.command()
@click.argument("name")
@click.option("--yes", "-y", is_flag=True, help="Do not ask for confirmation.")
def remove(name: str, *, yes: bool) -> None:
    """Delete a model from this machine; ask first, unless --yes is given."""
    shelf = ModelStore()
    path = shelf.find(name, in_part=True)
    if path == _model_in_use():
        raise errors.InvalidRequest(
            f"{path.name} is in use; choose another, or `mnem model use none`"
        )
    if not yes:
        ask_or_exit(f"delete {path}?")
    shelf.remove(path)
    say(f"deleted {path}")


def _model_in_use() -> Path | None:
    """Return the path of the language model in the settings; None if they name none."""
    named = loading.load_config(loading.config_file()).llm.model_path
    return paths.require_usable_path(named).absolute() if named else None
