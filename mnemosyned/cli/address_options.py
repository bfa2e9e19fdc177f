"""The options that lead to a daemon, `--socket` and `--url` with its token, and what they name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

import click

from mnemosyned.domain.errors import InvalidRequest
from mnemosyned.remote.environment import URL_VARIABLE, url_from_environment

if TYPE_CHECKING:
    from mnemosyned.remote.daemon import RemoteDaemon

SOCKET, URL, TOKEN_FILE, CA = "--socket", "--url", "--token-file", "--ca"
_HELP = {
    SOCKET: "The daemon's socket; default: $MNEMOSYNE_SOCKET or the usual one.",
    URL: "A daemon behind https://HOST:PORT; default: $MNEMOSYNE_URL.",
    TOKEN_FILE: "A file with its token, for you alone to read; default: $MNEMOSYNE_TOKEN, or the "
    "file in $MNEMOSYNE_TOKEN_FILE.",
    CA: "A PEM file with the authority of its certificate; default: $MNEMOSYNE_CA, or those that "
    "this machine knows.",
}
_METAVARS = {SOCKET: "PATH", URL: "URL", TOKEN_FILE: "FILE", CA: "FILE"}
_TYPED = "mnemosyned.address"
"""The key under which a command line's address is kept, whatever part of it was typed where."""


def address_options(*, hidden: bool, taken: Sequence[str] = ()) -> list[click.Option]:
    """The options of an address, which are understood anywhere on the line, except those `taken`."""
    return [
        click.Option(
            [name],
            expose_value=False,
            hidden=hidden,
            metavar=_METAVARS[name],
            callback=_keep,
            help=words,
        )
        for name, words in _HELP.items()
        if name not in taken
    ]


def _keep(context: click.Context, parameter: click.Parameter, value: Any) -> None:  # noqa: ANN401
    if value is not None:
        _typed(context)[parameter.opts[0]] = value


def _typed(context: click.Context) -> dict[str, str]:
    return cast("dict[str, str]", context.meta.setdefault(_TYPED, {}))


def socket_typed(context: click.Context) -> str | None:
    """The socket that was typed."""
    return _typed(context).get(SOCKET)


def url_of(context: click.Context) -> str | None:
    """The URL that was typed or that the environment names; None where a socket is asked.

    Raises `InvalidRequest` for options that do not belong together.
    """
    typed = _typed(context)
    if SOCKET in typed:
        if others := sorted(typed.keys() - {SOCKET}):
            raise InvalidRequest(f"--socket and {others[0]} do not go together")
        return None
    try:
        url = typed.get(URL) or url_from_environment()
    except ValueError as error:
        raise InvalidRequest(str(error)) from error
    if url is None and typed:
        raise InvalidRequest(f"{min(typed)} goes with --url, or {URL_VARIABLE}")
    return url


def remote_of(context: click.Context) -> RemoteDaemon | None:
    """The daemon behind a URL that a command line asks; None where it asks a socket.

    Raises `InvalidRequest`.
    """
    url = url_of(context)
    if url is None:
        return None
    # Loaded here: most commands ask the socket.
    from mnemosyned.remote.daemon import remote_daemon  # noqa: PLC0415

    typed = _typed(context)
    try:
        return remote_daemon(url, token_file=typed.get(TOKEN_FILE), ca=typed.get(CA))
    except ValueError as error:
        raise InvalidRequest(str(error)) from error


def refuse_elsewhere(context: click.Context, form: str = "") -> None:
    """Refuse a command, or a form of it, that works on the daemon's own machine alone.

    Raises `InvalidRequest`.
    """
    url = url_of(context)
    if url is None:
        return
    remedy = "leave out --url" if URL in _typed(context) else f"unset {URL_VARIABLE}"
    name = f"mnem {form}" if form else context.command_path
    raise InvalidRequest(
        f"{name} works on the daemon's own machine alone, not over {url}; run it there, or {remedy}"
    )
