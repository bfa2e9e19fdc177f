"""`mnem config`: the settings in force with their origins, changed and checked."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path

import click

from mnemosyned.cli.answers.table import table
from mnemosyned.cli.setting import Value, replace_settings, write_setting
from mnemosyned.config import (
    KEYS,
    MODEL_TOKENIZER,
    NO_MODEL,
    PATHS,
    Config,
    changed_keys,
    load_config,
    needs_restart,
    value_from_text,
    variable,
)
from mnemosyned.domain.errors import ConfigInvalid, InvalidRequest
from mnemosyned.maintenance.settings_in_force import (
    DEFAULT,
    Setting,
    ask_for_reload,
    settings_in_force,
    surroundings,
    usual_file,
)
from mnemosyned.paths import shipped
from mnemosyned.terminal import (
    agreed,
    cut,
    say,
    say_json,
)

EDITORS = ("editor", "nano", "vi")
RESTART_MARK = "restart"
VALUE_CHARS = 40


def _complete_key(_: click.Context, __: click.Parameter, typed: str) -> list[str]:
    """The settings that begin as what was typed."""
    return [key for key in KEYS if key.startswith(typed)]


@click.group(invoke_without_command=True)
@click.option(
    "--changed", is_flag=True, help="Only those that are not at their default."
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_context
def config(context: click.Context, *, changed: bool, as_json: bool) -> None:
    """Show the settings in force, and where each is from; change them.

    Where a daemon runs, they are its own: its file, its environment and its command line. The
    last column marks settings whose change needs a restart.
    """
    if context.invoked_subcommand is not None:
        return
    settings = settings_in_force(surroundings())
    if changed:
        settings = [each for each in settings if each.origin != DEFAULT]
    if as_json:
        say_json([asdict(each) for each in settings])
    elif settings:
        say(table(("setting", "value", "from", ""), map(_row, settings)))
    else:
        say("every setting is at its default", err=True)


@config.command("path")
def show_path() -> None:
    """Print the path of the configuration file."""
    say(str(usual_file()))


@config.command()
@click.argument("key", shell_complete=_complete_key)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def get(key: str, *, as_json: bool) -> None:
    """Print the value of a setting."""
    _check_key(key)
    setting = next(
        each for each in settings_in_force(surroundings()) if each.key == key
    )
    if as_json:
        say_json(asdict(setting))
    else:
        say(_shown(setting.value))


@config.command("set")
@click.argument("key", shell_complete=_complete_key)
@click.argument("value")
@click.option("--no-reload", is_flag=True, help="Do not tell the running daemon.")
def set_value(key: str, value: str, *, no_reload: bool) -> None:
    """Change a setting in the file; `null` goes back to none.

    Comments and all other lines stay. The settings are checked before anything is written.
    """
    _check_key(key)
    new: Value = value_from_text(key, _absolute(key, value), where="command line")
    file = usual_file()
    _check_whole(_with(file, key, new))
    write_setting(file, key, new)
    say(f"{key} is {_shown(new)} in {file}")
    _remark_on_environment(key)
    _put_in_force([key], reload=not no_reload)


@config.command()
@click.option("--no-reload", is_flag=True, help="Do not tell the running daemon.")
def edit(*, no_reload: bool) -> None:
    """Open the configuration file in an editor ($VISUAL, $EDITOR).

    What you save replaces the file only if it is valid.
    """
    file = usual_file()
    template = shipped("config") / "mnemosyned.yaml"
    before = (file if file.exists() else template).read_text("utf-8")
    former = _lenient(file)
    text = _edited(before, file)
    if text == before:
        say("nothing was changed", err=True)
        return
    replace_settings(file, text)
    keys = changed_keys(former, load_config(file, environ={})) if former else []
    say(f"saved {file}: {', '.join(keys) or 'no setting'} changed")
    for key in keys:
        _remark_on_environment(key)
    _put_in_force(keys, reload=not no_reload)


def _absolute(key: str, value: str) -> str:
    """A path as the daemon must have it, which has another working directory."""
    words = {"", "null", NO_MODEL, MODEL_TOKENIZER}
    if key not in PATHS or value in words or value.startswith(("~", "/")):
        return value
    return str(Path(value).absolute())


def _edited(before: str, file: Path) -> str:
    """The text as the user saved it, once it is valid. Raises `ConfigInvalid`."""
    with tempfile.TemporaryDirectory(prefix="mnem-") as folder:
        draft = Path(folder, file.name)
        draft.write_text(before, encoding="utf-8")
        draft.chmod(0o600)
        while True:
            _open_editor(draft)
            try:
                text = draft.read_text("utf-8")
                if text != before:
                    _check_whole(load_config(draft, environ={}))
            except (ConfigInvalid, OSError, UnicodeDecodeError) as error:
                reason = str(error).replace(str(draft), str(file))
                if sys.stdin.isatty() and agreed(
                    f"{reason}. Edit again?", default=True
                ):
                    continue
                raise ConfigInvalid(f"nothing was changed: {reason}") from error
            return text


def _open_editor(draft: Path) -> None:
    named = os.environ.get("VISUAL") or os.environ.get("EDITOR")
    words = shlex.split(named) if named else []
    if not words:
        words = [name for name in EDITORS if shutil.which(name)][:1]
    if not words:
        raise InvalidRequest("no editor is known: set EDITOR, or use `mnem config set`")
    try:
        code = subprocess.call([*words, str(draft)])  # noqa: S603 the user's own editor
    except OSError as error:
        raise InvalidRequest(f"{words[0]} cannot be run: {error.strerror}") from error
    if code != 0:
        raise InvalidRequest(
            f"nothing was changed: {words[0]} ended with exit code {code}"
        )


def _with(file: Path, key: str, value: Value) -> Config:
    """The settings of the file with one of them changed. Raises `ConfigInvalid`."""
    return load_config(
        file if file.exists() else None, environ={}, overrides={key: value}
    )


def _check_whole(settings: Config) -> None:
    """Check settings as a start would. Raises `ConfigInvalid`."""
    # Loaded here: it takes the whole engine, and only a change is checked.
    from mnemosyned.assembly.build import check_settings  # noqa: PLC0415

    check_settings(settings)


def _put_in_force(keys: list[str], *, reload: bool) -> None:
    """Tell the daemon, and the user what needs a restart."""
    pending = [key for key in keys if needs_restart(key)]
    process = ask_for_reload() if reload else None
    if process:
        say(f"process {process.pid} reads its settings again", err=True)
    if process and pending:
        say(f"in force after a restart: {', '.join(pending)} (mnem restart)", err=True)


def _remark_on_environment(key: str) -> None:
    name = variable(key)
    if name in surroundings().environment:
        say(f"but {name} overrides it in the environment", err=True)


def _lenient(file: Path) -> Config | None:
    """The settings of the file; None where it has a mistake."""
    try:
        return load_config(file if file.exists() else None, environ={})
    except ConfigInvalid:
        return None


def _check_key(key: str) -> None:
    if key not in KEYS:
        value_from_text(key, "", where="command line")  # which suggests a name


def _row(setting: Setting) -> tuple[str, str, str, str]:
    mark = RESTART_MARK if setting.restart else ""
    origin = setting.origin.removeprefix(f"{usual_file().parent}/")
    return setting.key, cut(_shown(setting.value), VALUE_CHARS), origin, mark


def _shown(value: object) -> str:
    """A value as YAML has it."""
    if isinstance(value, bool):
        return str(value).lower()
    if value is None:
        return "null"
    return f"{value:g}" if isinstance(value, float) else str(value)
