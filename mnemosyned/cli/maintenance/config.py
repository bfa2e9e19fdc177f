"""`mnem config`: the settings in force, where each is from, and changes to them."""

from __future__ import annotations

import os
import re
import shlex
import signal
import sys
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import click
import msgspec

from mnemosyned.cli.maintenance import service
from mnemosyned.cli.options import json_option, prints_json
from mnemosyned.cli.output.show import say_result
from mnemosyned.cli.output.terminal import ask_user, cut_text, say, say_json, table
from mnemosyned.cli.settings_file import Value, replace_settings, write_settings
from mnemosyned.config import loading
from mnemosyned.config.settings import (
    HIDDEN,
    KEYS,
    Config,
    changed_keys,
    needs_restart,
    value_of,
    variable,
    without_password,
)
from mnemosyned.errors import ConfigInvalid, InvalidRequest, MnemosynedError
from mnemosyned.paths import default_config_file, shipped
from mnemosyned.socket_path import CONFIG_VARIABLE
from mnemosyned.storage.sqlite.ownership import DatabaseProcess

DEFAULT = "default"
_ENDPOINT = re.compile(r"(\w+://)?([^?#]*@)?([^?#@]*)([?#][^@]*)?", re.DOTALL)
"""Scheme, user, address, and query or fragment of a URL; with other @ signs, all of it may be secret."""


@dataclass(frozen=True, slots=True)
class SettingInForce:
    """A setting with its present value, its origin, and whether a change needs a restart."""

    key: str
    value: object
    origin: str
    """`default`, a file with its line, a variable, or the daemon's command line."""
    restart: bool
    """Whether a change takes effect at the next start only."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingSources:
    """The file, environment and options that give a daemon its settings."""

    file: Path | None
    environment: Mapping[str, str]
    options: Mapping[str, str]
    """Settings on the daemon's command line, by key."""
    process: DatabaseProcess | None = None


def config_file_path() -> Path:
    """Return the path of the configuration file, which may not exist yet."""
    return loading.config_file() or default_config_file()


def present_sources() -> SettingSources:
    """Return the sources of the settings of the running daemon or, if none runs, of this shell."""
    present = SettingSources(
        file=loading.config_file(), environment=os.environ, options={}
    )
    try:
        config = loading.load_with_origins(present.file, environ=os.environ)[0]
    except MnemosynedError:
        config = Config()
    process = None
    with suppress(MnemosynedError, OSError):
        process = service.configured_daemon(config)
    if process is None:
        return present
    options = service.daemon_options(process.pid)
    environment = service.daemon_environment(process.pid)
    named = options.pop("--config", None) or environment.get(CONFIG_VARIABLE)
    # Not the file that this shell names.
    file = Path(named) if named else default_config_file()
    return SettingSources(
        file=file if named or file.exists() else None,
        environment=environment,
        options={name.removeprefix("--"): value for name, value in options.items()},
        process=process,
    )


def settings_in_force(sources: SettingSources) -> list[SettingInForce]:
    """Return every setting with its value, secrets hidden, and origin. Raises `ConfigInvalid`."""
    config, origins = loading.load_with_origins(
        sources.file, environ=sources.environment, overrides=sources.options
    )
    settings = []
    for key in KEYS:
        origin = ":".join(origins.get(key, DEFAULT).rsplit(", line ", 1))
        if origin == "argument":
            pid = sources.process.pid if sources.process else 0
            origin = f"command line of process {pid}"
        value = masked_value(key, value_of(config, key))
        settings.append(SettingInForce(key, value, origin, needs_restart(key)))
    return settings


def masked_value(key: str, value: object) -> object:
    """Return a setting's value for display, with an endpoint's user and query or a URL's password hidden."""
    if key == "llm.endpoint" and value is not None:
        if (match := _ENDPOINT.fullmatch(str(value))) is None:
            return HIDDEN
        scheme, user, address, query = match.groups(default="")
        return f"{scheme}{user and f'{HIDDEN}@'}{address}{query and f'?{HIDDEN}'}"
    is_url = key == "database" and "://" in str(value)
    return without_password(str(value)) if is_url else value


def _complete_key(_: click.Context, __: click.Parameter, typed: str) -> list[str]:
    """Return the keys of settings that begin with the typed text (a click callback)."""
    return [key for key in KEYS if key.startswith(typed)]


@click.group(invoke_without_command=True)
@click.option(
    "--changed", is_flag=True, help="Only those that are not at their default."
)
@json_option()
@click.pass_context
def config(context: click.Context, *, changed: bool) -> None:
    """Show the settings in force, and where each is from; change them.

    If a daemon runs, they are those of the daemon: its file, its environment and its command line.
    The last column marks settings whose change needs a restart. --changed leaves out defaults.
    """
    if context.invoked_subcommand is not None:
        return
    settings = settings_in_force(present_sources())
    if changed:
        defaults = Config()
        settings = [s for s in settings if s.value != value_of(defaults, s.key)]
    if prints_json():
        say_json(settings)
    elif settings:
        folder = f"{config_file_path().parent}/"
        rows = [
            (
                each.key,
                cut_text(setting_text(each.value), 40),
                each.origin.removeprefix(folder),
                "restart" if each.restart else "",
            )
            for each in settings
        ]
        say(table(("setting", "value", "from", ""), rows))
    else:
        say("every setting is at its default", err=True)


@config.command("path")
def show_path() -> None:
    """Print the path of the configuration file."""
    say(str(config_file_path()))


@config.command()
@click.argument("key", shell_complete=_complete_key)
@json_option()
def get(key: str) -> None:
    """Print the value of a setting."""
    _check_key(key)
    settings = settings_in_force(present_sources())
    setting = next(each for each in settings if each.key == key)
    say_result(setting, setting_text(setting.value))


@config.command("set", context_settings={"ignore_unknown_options": True})
@click.argument(
    "words",
    nargs=-1,
    required=True,
    metavar="KEY VALUE | KEY=VALUE...",
    shell_complete=_complete_key,
)
@click.option("--no-reload", is_flag=True, help="Do not notify the running daemon.")
def set_values(words: tuple[str, ...], *, no_reload: bool) -> None:
    """Change a setting in the file, or several at once; `null` means no value.

    Comments and all other lines stay. The settings are checked together before anything is written:
    those that need each other are set in one call, as `tls.certificate=FILE tls.key=FILE`.
    """
    pairs = [word.partition("=") for word in words]
    if len(words) == 2 and not pairs[0][1]:
        pairs = [(words[0], "=", words[1])]
    if not all(equals for _, equals, _ in pairs):
        raise InvalidRequest("write `mnem config set KEY VALUE`, or KEY=VALUE for each")
    changes: dict[str, Value] = {
        key: loading.value_from_text(
            key, loading.make_paths_absolute(key, value, Path.cwd())
        )
        for key, _, value in pairs
    }
    file = write_changes(changes, config_file_path())
    for key, value in changes.items():
        say(f"{key} is {setting_text(masked_value(key, value))} in {file}")
        if key == "database" and value != masked_value(key, value):
            advice = (
                "the password is in this file: better keep it in ~/.pgpass, and set"
            )
            bare = shlex.quote(without_password(str(value), shown=""))
            say(f"{advice} database {bare}", err=True)
    _apply_changes(list(changes), reload=not no_reload)


@config.command()
@click.argument("keys", nargs=-1, required=True, shell_complete=_complete_key)
@click.option("--no-reload", is_flag=True, help="Do not notify the running daemon.")
def unset(keys: tuple[str, ...], *, no_reload: bool) -> None:
    """Remove settings from the file, which restores their defaults.

    The running daemon then reads its settings again, unless --no-reload is given.
    """
    changes = dict.fromkeys(keys, msgspec.UNSET)
    file = write_changes(changes, config_file_path())
    for key in keys:
        say(
            f"{key} is {setting_text(value_of(Config(), key))}, its default; not in {file}"
        )
    _apply_changes(list(keys), reload=not no_reload)


def write_changes(changes: Mapping[str, Value], file: Path) -> Path:
    """Check changes of settings together and write them to the file; return its path.

    UNSET restores a default. Raises `ConfigInvalid`; nothing is written then.
    """
    for key in changes:
        _check_key(key)
    defaults = Config()
    _check_as_at_start(
        loading.load_config(
            file if file.exists() else None,
            environ={},
            overrides={
                key: value_of(defaults, key) if value is msgspec.UNSET else value
                for key, value in changes.items()
            },
        )
    )
    write_settings(file, changes)
    return file


@config.command()
@click.option("--no-reload", is_flag=True, help="Do not notify the running daemon.")
def edit(*, no_reload: bool) -> None:
    """Open the configuration file in an editor ($VISUAL, $EDITOR).

    The saved text replaces the file only if it is valid. The running daemon then reads its settings
    again, unless --no-reload is given.
    """
    file = config_file_path()
    template = shipped("config") / "mnemosyned.yaml"
    before = (file if file.exists() else template).read_text("utf-8")
    former = None
    with suppress(ConfigInvalid):
        former = loading.load_config(file if file.exists() else None, environ={})
    text = _edit_until_valid(before, file)
    if text == before:
        say("nothing was changed", err=True)
        return
    replace_settings(file, text)
    keys = changed_keys(former, loading.load_config(file, environ={})) if former else []
    say(f"saved {file}: {', '.join(keys) or 'no setting'} changed")
    _apply_changes(keys, reload=not no_reload)


def _edit_until_valid(before: str, file: Path) -> str:
    """Let the user edit a text until it is valid; return the text.

    Raises `ConfigInvalid`, which names `file`, if the user gives up, and `InvalidRequest` if the editor fails.
    """
    with tempfile.TemporaryDirectory(prefix="mnem-") as folder:
        draft = Path(folder, file.name)
        draft.write_text(before, encoding="utf-8")
        draft.chmod(0o600)
        while True:
            try:
                click.edit(filename=str(draft))
            except click.ClickException as error:
                raise InvalidRequest(
                    f"nothing was changed: {error.message}; set EDITOR to another editor, or use "
                    "`mnem config set`"
                ) from error
            try:
                text = draft.read_text("utf-8")
                if text != before:
                    _check_as_at_start(loading.load_config(draft, environ={}))
            except (ConfigInvalid, OSError, UnicodeDecodeError) as error:
                reason = str(error).replace(str(draft), str(file))
                if sys.stdin.isatty() and ask_user(
                    f"{reason}. Edit again?", default=True
                ):
                    continue
                raise ConfigInvalid(f"nothing was changed: {reason}") from error
            return text


def _check_as_at_start(settings: Config) -> None:
    """Check settings as a starting daemon does. Raises `ConfigInvalid`."""
    # Loaded here: it takes the whole engine, and only a change is checked.
    from mnemosyned.assembly.build import check_settings  # noqa: PLC0415

    check_settings(settings)


def _apply_changes(keys: list[str], *, reload: bool) -> None:
    """Tell the running daemon to read its settings again, unless `reload` is False.

    Print which `keys` the environment overrides, and which need a restart.
    """
    sources = present_sources()
    for name in map(variable, keys):
        if name in sources.environment:
            say(f"but {name} overrides it in the environment", err=True)
    process = sources.process
    if not (reload and process and request_reload(process)):
        return
    say(f"settings reloaded by process {process.pid}", err=True)
    if pending := [key for key in keys if needs_restart(key)]:
        say(f"in force after a restart: {', '.join(pending)} (mnem restart)", err=True)


def request_reload(process: DatabaseProcess) -> bool:
    """Tell a daemon to read its settings again; return False if the process is no daemon, or has ended."""
    if process.socket is None or not process.pid:
        return False
    try:
        os.kill(process.pid, signal.SIGHUP)
    except ProcessLookupError:
        return False
    return True


def _check_key(key: str) -> None:
    """Raise `ConfigInvalid` if no setting has this key; the error suggests the nearest one."""
    if members := ", ".join(name for name in KEYS if name.startswith(f"{key}.")):
        raise ConfigInvalid(f"{key} is a group of settings: {members}", field=key)
    if key not in KEYS:
        loading.value_from_text(key, "")  # which suggests a name


def setting_text(value: object) -> str:
    """Return a setting's value as it is written in the configuration file."""
    if isinstance(value, bool):
        return str(value).lower()
    if value is None:
        return "null"
    return f"{value:g}" if isinstance(value, float) else str(value)
