"""`mnem login`, `mnem logout` and `mnem use`: a memory on a server, and the folders that use it."""

from __future__ import annotations

import os
import socket
import sys
from contextlib import suppress
from getpass import getpass
from pathlib import Path

import click

from mnemosyned import socket_path
from mnemosyned.agents.hooks import spool
from mnemosyned.cli.options import json_option, prints_json
from mnemosyned.cli.output.terminal import count_of, say, say_json, table
from mnemosyned.client import login as logins
from mnemosyned.client.connection import Connection
from mnemosyned.client.remote import RemoteDaemon, remote_daemon, remote_of
from mnemosyned.errors import InvalidRequest, ScopeMissing
from mnemosyned.importers.projects import project_of
from mnemosyned.verbs.owners import Login
from mnemosyned.verbs.upkeep import Status


def check_access(remote: RemoteDaemon) -> None:
    """Raise the error with which a remote daemon answers; accept a token without the scope to read."""
    with suppress(ScopeMissing), Connection.to(remote.load_authorities()) as client:
        client.call(Status())


def _read_code(url: str) -> str:
    """Return the typed or piped one-time code. Raises `InvalidRequest` for an empty code."""
    is_typed = sys.stdin.isatty()
    code = getpass(f"Code for {url}: ") if is_typed else sys.stdin.readline(1_000)
    if not code.strip():
        raise InvalidRequest(
            f"a login needs a one-time code from whoever runs {url} (mnem owner invite): type it "
            "here or pass it on standard input; or name a file with a token: --token-file"
        )
    return code.strip()


def describe_memories(saved: socket_path.SavedConnection) -> str:
    """Return a line that says whose memory is used in which folders after a login."""
    usual = saved.enter(socket_path.EVERYWHERE)
    parts = []
    for memory in sorted({*saved.folders.values()} - {usual}):
        places = [each for each, used in saved.folders.items() if used == memory]
        parts.append(f"{saved.describe(memory)}, in {', '.join(sorted(places))}")
    where = "elsewhere" if parts else "everywhere"
    return f"memory: {'; '.join([*parts, saved.describe(usual)])}, {where}"


def warn_of_environment() -> None:
    """Print on standard error each environment variable that overrides the login."""
    for name in (socket_path.URL_VARIABLE, socket_path.SOCKET_VARIABLE):
        if os.environ.get(name):
            say(f"mnem: {name} is set, and overrides the login", err=True)


@click.command()
@click.argument("server", metavar="URL")
@click.option(
    "--ca", metavar="FILE", help="A PEM file with the server's certificate authority."
)
@click.option("--name", help="A name for this machine's token; default: the host name.")
@click.option(
    "--token-file", metavar="FILE", help="Use the token in this file; ask for no code."
)
@click.option(
    "--project",
    "projects",
    metavar="DIR",
    multiple=True,
    type=click.Path(file_okay=False),
    help="Use the server only for this folder; repeatable.",
)
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
    folders = None
    if projects:
        chosen = map(os.path.realpath, projects)
        folders = {socket_path.EVERYWHERE: socket_path.LOCAL} | dict.fromkeys(
            chosen, socket_path.SERVER
        )
    if not ca and server.startswith("https"):
        ca = os.environ.get(socket_path.CA_VARIABLE)
    issued = None
    try:
        if token_file:
            check_access(remote_daemon(server, token_file=token_file, ca=ca))
            token_file = os.path.realpath(token_file)
        else:
            remote = RemoteDaemon(server, token="", ca=ca)
            asked = Login(code=_read_code(server), name=name or socket.gethostname())
            logins.check_writable()
            issued = logins.ask_for_token(remote, asked)
        saved = logins.save_login(
            server, ca=ca, issued=issued, token_file=token_file, folders=folders
        )
    except (ValueError, OSError) as error:
        raise InvalidRequest(str(error)) from error
    owner = f" as {saved.owner}" if saved.owner else ""
    say(f"logged in at {saved.url}{owner}")
    say(describe_memories(saved))
    say("next: mnem setup, for the agents that you use", err=True)
    warn_of_environment()


@click.command()
def logout() -> None:
    """Use only the memory on this machine again, and delete the token of the login.

    The choice of a memory for each folder is kept for the next login.
    """
    saved = logins.remove_login()
    where = f"logged out of {saved.url}" if saved else "there was no login"
    say(f"{where}; the memory is {socket_path.OWN_MEMORY}, everywhere")
    if waiting := sum(len(spool.list_waiting(place)) for place in spool.folders()[1:]):
        calls = count_of(waiting, "hook call")
        say(f"until you log in again, there wait {calls} for a server", err=True)


@click.command()
@click.argument("memory", required=False, metavar="[server|local|GROUP]")
@click.argument(
    "folders", nargs=-1, metavar="[DIR]...", type=click.Path(file_okay=False)
)
@json_option()
def use(memory: str | None, folders: tuple[str, ...]) -> None:
    """Choose the memory of a folder: yours on the server, a group's, or this machine's.

    Without a folder, it is the project of the working directory. A choice includes all folders
    below; / is everything. Without a choice, the command shows the choices.
    """
    here = str(Path.cwd())
    try:
        if memory is None:
            saved = socket_path.saved_connection()
        else:
            if memory not in (socket_path.SERVER, socket_path.LOCAL) and (
                saved := socket_path.saved_connection()
            ):
                check_access(remote_of(saved, owner=memory))
            chosen = folders or (project_of(here).root or here,)
            saved = logins.choose_memory(memory, list(chosen))
    except (ValueError, OSError) as error:
        raise InvalidRequest(str(error)) from error
    present = saved.enter(here) if saved else socket_path.LOCAL
    if prints_json():
        say_json({"here": present, "folders": saved.folders if saved else {}})
        return
    if saved is None:
        say(
            f"memory: {socket_path.OWN_MEMORY}, everywhere; there is no login on a server"
        )
        return
    rows = [(folder, saved.folders[folder]) for folder in sorted(saved.folders)]
    say(table(("folder", "memory"), rows), styled=True)
    say(f"here: {saved.describe(present)}")
    warn_of_environment()
