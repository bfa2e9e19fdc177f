"""`mnem login`, `mnem logout` and `mnem use`: a memory on a server, and the folders that use it."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Sequence
from getpass import getpass
from pathlib import Path

import click

from mnemosyned.agents.hooks import spool
from mnemosyned.cli.options import json_option, prints_json
from mnemosyned.cli.output.terminal import count_of, say, say_json, table
from mnemosyned.client import login as logins
from mnemosyned.client.address import remote_address
from mnemosyned.client.connection import Connection
from mnemosyned.client.remote import RemoteDaemon, remote_daemon
from mnemosyned.errors import InvalidRequest, ScopeMissing
from mnemosyned.socket_path import (
    EVERYWHERE,
    LOCAL,
    SOCKET_VARIABLE,
    TEAM,
    URL_VARIABLE,
    SavedConnection,
    saved_connection,
)
from mnemosyned.verbs.upkeep import Status

CODE_CHARS_MAX = 1_000
WHERE = {TEAM: "the team's, at {url}", LOCAL: "your own, on this machine"}


def log_in(
    url: str,
    *,
    token_file: str | None,
    ca: str | None,
    name: str = "",
    projects: Sequence[str] = (),
) -> SavedConnection:
    """Log in on the server at a URL, by the token in a file or else a code that is asked for.

    Return what was saved. The token is named `name` on the server. `projects` are the folders whose
    memory is kept there; without any, an earlier choice stays, by default everything. Raises
    `InvalidRequest` and the server's error.
    """
    folders = None
    if projects:
        folders = {EVERYWHERE: LOCAL} | dict.fromkeys(
            map(os.path.realpath, projects), TEAM
        )
    try:
        if token_file:
            token_file = os.path.realpath(token_file)
            check_access(remote_daemon(url, token_file=token_file, ca=ca))
            return logins.save_login(url, ca=ca, token_file=token_file, folders=folders)
        RemoteDaemon(url, token="", ca=ca)  # before somebody types a code
        code = _read_code(url)
        issued = logins.exchange_code(url, code, name=name, ca=ca)
        return logins.save_login(url, ca=ca, issued=issued, folders=folders)
    except (ValueError, OSError) as error:
        raise InvalidRequest(str(error)) from error


def check_access(remote: RemoteDaemon) -> None:
    """Ask a remote daemon for its state. Raises its error, or why it is not reached.

    A token that may not read passes.
    """
    try:
        with Connection.to(remote_address(remote)) as client:
            client.call(Status())
    except ScopeMissing:
        return


def _read_code(url: str) -> str:
    """Return the one-time code that the user types, or the first line of standard input.

    Raises `InvalidRequest` if it is empty.
    """
    is_typed = sys.stdin.isatty()
    code = (
        getpass(f"Code for {url}: ") if is_typed else sys.stdin.readline(CODE_CHARS_MAX)
    )
    if not code.strip():
        raise InvalidRequest(
            f"a login needs a one-time code, which whoever runs {url} gives you (mnem owner invite): "
            "type it here or pass it on standard input; or name a file with a token: --token-file"
        )
    return code.strip()


def describe_memories(saved: SavedConnection) -> str:
    """Return in a line which memory is used in which folders."""
    others = sorted(set(saved.folders) - {EVERYWHERE})
    usual = saved.memory_of(EVERYWHERE)
    words = WHERE[usual].format(url=saved.url)
    except_in = [folder for folder in others if saved.folders[folder] != usual]
    if not except_in:
        return f"memory: {words}, everywhere"
    other = WHERE[LOCAL if usual == TEAM else TEAM].format(url=saved.url)
    return f"memory: {other}, in {', '.join(except_in)}; {words}, elsewhere"


def warn_of_environment() -> None:
    """Print on standard error if the environment names a daemon, which counts more than a login."""
    for name in (URL_VARIABLE, SOCKET_VARIABLE):
        if os.environ.get(name):
            say(f"mnem: {name} is set, and counts more than the login", err=True)


@click.command()
@click.argument("server", metavar="URL")
@click.option(
    "--ca", metavar="FILE", help="A PEM file with the authority of its certificate."
)
@click.option(
    "--name", help="The name of this machine's token there; default: its host name."
)
@click.option(
    "--token-file", metavar="FILE", help="Use the token in this file; ask for no code."
)
@click.option(
    "--project",
    "projects",
    metavar="DIR",
    multiple=True,
    type=click.Path(file_okay=False),
    help="Keep the memory of this folder alone there; may be repeated.",
)
@json_option()
def login(
    server: str,
    ca: str | None,
    name: str | None,
    token_file: str | None,
    projects: tuple[str, ...],
) -> None:
    """Use a memory on a server, for everything or for some folders.

    Asks for the one-time code that you were given, or reads it from standard input. The token
    renews itself.
    """
    saved = log_in(
        server,
        token_file=token_file,
        ca=ca,
        name=name or socket.gethostname(),
        projects=projects,
    )
    if prints_json():
        return say_json(
            {"url": saved.url, "owner": saved.owner, "folders": saved.folders}
        )
    owner = f" as {saved.owner}" if saved.owner else ""
    say(f"logged in at {saved.url}{owner}")
    say(describe_memories(saved))
    say("next: mnem setup, for the agents that you use", err=True)
    warn_of_environment()
    return None


@click.command()
@json_option()
def logout() -> int:
    """Use the memory of this machine alone again, and delete the token of the login."""
    saved = logins.remove_login()
    if prints_json():
        say_json({"url": saved.url if saved else None})
        return 0
    if saved is None:
        say("there was no login", err=True)
        return 0
    say(f"logged out of {saved.url}; the memory is this machine's, everywhere")
    if waiting := sum(len(spool.list_waiting(place)) for place in spool.folders()[1:]):
        calls = count_of(waiting, "call")
        say(
            f"{calls} of agents' hooks wait for a server until you log in again",
            err=True,
        )
    return 0


@click.command()
@click.argument("memory", required=False, type=click.Choice([TEAM, LOCAL]))
@click.argument(
    "folders",
    nargs=-1,
    metavar="[DIR]...",
    type=click.Path(file_okay=False),
)
@json_option()
def use(memory: str | None, folders: tuple[str, ...]) -> None:
    """Choose which memory a folder uses: the team's, or your own on this machine.

    The folder is the project of the working directory, unless others are named, and counts with all
    below it; / is everything. Without a choice it shows them.
    """
    try:
        if memory is None:
            saved = saved_connection()
        else:
            chosen = folders or (str(_find_project(Path.cwd())),)
            saved = logins.choose_memory(memory, list(chosen))
    except (ValueError, OSError) as error:
        raise InvalidRequest(str(error)) from error
    here = saved.memory_of(str(Path.cwd())) if saved else LOCAL
    if prints_json():
        say_json({"here": here, "folders": saved.folders if saved else {}})
        return
    if saved is None:
        say(
            "memory: your own, on this machine, everywhere; there is no login on a server"
        )
        return
    rows = [(folder, saved.folders[folder]) for folder in sorted(saved.folders)]
    say(table(("folder", "memory"), rows), styled=True)
    say(f"here: {WHERE[here].format(url=saved.url)}")
    warn_of_environment()


def _find_project(here: Path) -> Path:
    """Return the top of the repository around a directory, or else the directory."""
    roots = (each for each in (here, *here.parents) if (each / ".git").exists())
    return next(roots, here)
