"""Options of every command: the daemon's address and the format of answers; exit codes."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click

from mnemosyned import socket_path
from mnemosyned.cli.registry import COMMANDS
from mnemosyned.errors import InvalidRequest, Kind

if TYPE_CHECKING:
    from mnemosyned.client.remote import RemoteDaemon


F = TypeVar("F", bound=Callable[..., Any])
SOCKET, URL, TOKEN_FILE, CA = "--socket", "--url", "--token-file", "--ca"
OWNER = "--owner"
_HELP = {
    SOCKET: "The daemon's socket; default: $MNEMOSYNE_SOCKET, else the settings, else the runtime directory.",
    URL: "Address of a daemon on a server, https://HOST:PORT; default: $MNEMOSYNE_URL.",
    TOKEN_FILE: "A file with the token for --url, which only you may read; default: "
    "$MNEMOSYNE_TOKEN, or the file in $MNEMOSYNE_TOKEN_FILE.",
    CA: "A PEM file with the authority that signed the certificate of --url; default: "
    "$MNEMOSYNE_CA, or the authorities that this machine trusts.",
    OWNER: "Use the memory of this group at --url; default: $MNEMOSYNE_OWNER, or your own memory.",
}
_METAVARS = {SOCKET: "PATH", URL: "URL", TOKEN_FILE: "FILE", CA: "FILE", OWNER: "NAME"}
ALL_COMMANDS = "mnemosyned.all_commands"
"""Key in the click context: True if the help page must list every command."""
_IS_LOCAL = "mnemosyned.local"
"""Key in the click context: True for a command about this machine's daemon only."""
_TYPED = "mnemosyned.address"
"""Key in the click context for the typed options of the daemon's address."""


def address_options(*, hidden: bool, taken: Sequence[str] = ()) -> list[click.Option]:
    """Return the click options --socket, --url, --token-file, --ca and --owner.

    Names in `taken` are left out; `hidden` leaves the options out of the help page.
    """
    return [
        click.Option(
            # Commands have arguments of these names.
            [name, f"address_{name.strip('-').replace('-', '_')}"],
            expose_value=False,
            hidden=hidden,
            metavar=_METAVARS[name],
            callback=_store_address,
            help=words,
        )
        for name, words in _HELP.items()
        if name not in taken
    ]


def _store_address(
    context: click.Context, parameter: click.Parameter, value: str | None
) -> None:
    """Store the value of an address option, if typed, in the context (a click callback)."""
    if value is not None:
        typed_address(context)[parameter.opts[0]] = value


def typed_address(context: click.Context) -> dict[str, str]:
    """Return {option: value} of the command line's typed address options, which `_store_address` fills."""
    return cast("dict[str, str]", context.meta.setdefault(_TYPED, {}))


def typed_url(context: click.Context) -> str | None:
    """Return the URL that was typed or is in the environment, or None. Raises `InvalidRequest`."""
    typed = typed_address(context)
    if SOCKET in typed:
        if others := sorted(typed.keys() - {SOCKET}):
            raise InvalidRequest(f"--socket and {others[0]} do not go together")
        return None
    try:
        url = typed.get(URL) or socket_path.url_from_environment()
    except ValueError as error:
        raise InvalidRequest(str(error)) from error
    if url is None and (others := sorted(typed.keys() - {OWNER})):
        raise InvalidRequest(
            f"{others[0]} goes with --url, or {socket_path.URL_VARIABLE}"
        )
    return url


def typed_remote(context: click.Context) -> RemoteDaemon | None:
    """Return the remote daemon of the given URL or of the login; None for a socket. Raises `InvalidRequest`."""
    url = typed_url(context)
    typed = typed_address(context)
    try:
        is_local = context.meta.get(_IS_LOCAL) or SOCKET in typed
        saved = None if url or is_local else socket_path.connection_for()
        if url is None and saved is None:
            if OWNER in typed:
                raise InvalidRequest(
                    f"{OWNER} goes with --url, {socket_path.URL_VARIABLE} or a login"
                )
            return None
        # Loaded here: most commands ask the socket.
        from mnemosyned.client.remote import remote_daemon, remote_of  # noqa: PLC0415

        if saved is not None:
            return remote_of(saved, owner=typed.get(OWNER))
        assert url is not None  # noqa: S101 see above
        return remote_daemon(
            url,
            token_file=typed.get(TOKEN_FILE),
            ca=typed.get(CA),
            owner=typed.get(OWNER),
        )
    except ValueError as error:
        raise InvalidRequest(str(error)) from error


def use_local_daemon(context: click.Context, form: str = "") -> None:
    """Make a command ask this machine's daemon, even after `mnem login`.

    A typed socket is put into the environment. Raises `InvalidRequest` if a URL is given; `form` is
    the name of the command in the error.
    """
    url = typed_url(context)
    if url is None:
        context.meta[_IS_LOCAL] = True
        if path := typed_address(context).get(
            SOCKET
        ):  # above the settings, as above the variable
            os.environ[socket_path.SOCKET_VARIABLE] = os.path.abspath(path)  # noqa: PTH100 keeps links
        return
    remedy = (
        "leave out --url"
        if URL in typed_address(context)
        else f"unset {socket_path.URL_VARIABLE}"
    )
    name = f"mnem {form}" if form else context.command_path
    raise InvalidRequest(
        f"{name} works on the daemon's own machine alone, not over {url}; run it there, or {remedy}"
    )


FORMATS = ("table", "tsv", "jsonl", "json", "ids")
FORMATS_OF_FILES = ("export", "import")
"""Commands whose own `--format` is that of a file; before their name, it is that of the answer."""
VARIABLE = "MNEM_FORMAT"
_FORMAT = "mnemosyned.format"
_NO_PAGER = "mnemosyned.no_pager"
FORMAT_HELP = (
    "Output format: table (as at a terminal), tsv (a line for each record, as in a pipe), "
    "jsonl, json or ids."
)


def chosen_format() -> str:
    """Return the output format of the option or MNEM_FORMAT; without both, table at a terminal, else tsv.

    Raises `click.UsageError` for an unknown format in MNEM_FORMAT.
    """
    chosen: str = _root_meta().get(_FORMAT) or os.environ.get(VARIABLE, "")
    if not chosen:
        # Loaded here: the help page prints without it.
        from mnemosyned.cli.output.terminal import is_terminal  # noqa: PLC0415

        return "table" if is_terminal(sys.stdout) else "tsv"
    if chosen not in FORMATS:
        raise click.UsageError(
            f"{VARIABLE}={chosen} is not a format; choose one of {', '.join(FORMATS)}"
        )
    return chosen


def prints_json() -> bool:
    """Return whether --json, --format or MNEM_FORMAT chose json or jsonl."""
    return chosen_format() in ("json", "jsonl")


def may_page() -> bool:
    """Return whether a pager may show long answers: --no-pager was not given."""
    return not _root_meta().get(_NO_PAGER)


def asks_for_json(words: Sequence[str]) -> bool:
    """Return whether the words of a command line, even a wrong one, ask for JSON."""
    command = next(filter(COMMANDS.__contains__, words[1:]), "")
    if command in FORMATS_OF_FILES:
        return "--json" in words or asks_for_json(words[: words.index(command)])
    named = [after for word, after in pairwise(words) if word == "--format"]
    named += [word.partition("=")[2] for word in words if word.startswith("--format=")]
    return "--json" in words or bool({"json", "jsonl"} & set(named))


class AnswerCommand(click.Command):
    """A command with the options --format, --json and --no-pager."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401 those of click
        super().__init__(*args, **kwargs)
        self.params += format_options()


def format_options(*, hidden: bool = False) -> list[click.Parameter]:
    """Return the click options --format, --json and --no-pager, hidden from help or not."""
    common: dict[str, Any] = {
        "expose_value": False,
        "hidden": hidden,
        "callback": _store_format,
    }
    form = click.Choice(FORMATS)
    words = ("The same as --format json.", "Start no pager for a long answer.")
    return [
        click.Option(
            ["--format"], type=form, is_eager=True, help=FORMAT_HELP, **common
        ),
        click.Option(["--json"], is_flag=True, help=words[0], **common),
        click.Option(["--no-pager"], is_flag=True, help=words[1], **common),
    ]


def _store_format(
    context: click.Context, parameter: click.Parameter, value: object
) -> None:
    """Store the chosen format, or --no-pager, for the whole command line (a click callback)."""
    meta = context.find_root().meta
    if parameter.name == "no_pager":
        meta[_NO_PAGER] = meta.get(_NO_PAGER) or value
    elif value:
        meta[_FORMAT] = value if isinstance(value, str) else "json"


def json_option(words: str = "Print JSON.") -> Callable[[F], F]:
    """Return a decorator that adds --json to a command without other formats."""
    return click.option(
        "--json", is_flag=True, expose_value=False, callback=_store_format, help=words
    )


def _root_meta() -> dict[str, Any]:
    """Return the dictionary that a command line's click contexts share; empty outside a command."""
    context = click.get_current_context(silent=True)
    return context.find_root().meta if context else {}


EXIT_OF_KIND = {
    Kind.INVALID: 2,
    Kind.UNAVAILABLE: 3,
    Kind.LIMITED: 3,
    Kind.NOT_FOUND: 4,
    Kind.CONFLICT: 5,
    Kind.METHOD: 2,
    Kind.INTERNAL: 6,
    Kind.UNAUTHORIZED: 7,
    Kind.FORBIDDEN: 7,
}
EXIT_NOTHING = 1
EXIT_INTERRUPTED = 130
EXIT_CODES = (
    "Exit codes: 0 done; 1 nothing found, or part of it failed; 2 bad input; 3 no daemon "
    "answers; 4 unknown id; 5 conflict, such as a running sleep cycle; 6 the daemon failed; "
    "7 the token is rejected, or does not allow it."
)
