"""Reads the settings: the file, then the environment, then the caller's own, each with its origin."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args, get_origin

import msgspec

from mnemosyned.backup_schedule import BackupRetention
from mnemosyned.config.settings import (
    BACKUP_SCHEDULES,
    ENVIRONMENT_PREFIX,
    IN_MEMORY,
    KEYS,
    MODEL_TOKENIZER,
    NO_MODEL,
    OWNER_LIMITS,
    PATHS,
    Config,
    is_loopback,
    is_server,
    tcp_address,
    variable,
)
from mnemosyned.errors import ConfigInvalid
from mnemosyned.paths import (
    default_config_file,
    models_dir,
    path_form_fault,
    shown_path,
)
from mnemosyned.socket_path import CLIENT_VARIABLES, CONFIG_VARIABLE
from mnemosyned.verbs.request import rephrase

if TYPE_CHECKING:
    from yaml.nodes import Node


DEFAULT_MODEL = "tinyllama-1.1b-chat-v1.0.Q4_K_M.gguf"
API_KEY_VARIABLE = "MNEMOSYNE_LLM_API_KEY"
"""Not a setting: settings are shown and logged."""
PROJECT_VARIABLE = "MNEMOSYNE_PROJECT"
"""Not a setting: hooks and `mnem mcp` read it."""
HOOK_WAIT_VARIABLE = "MNEMOSYNE_HOOK_WAIT_S"
"""Not a setting: `mnem-hook` reads it."""
_PAIRS = {"database": "database_file", "llm.model_path": "llm.endpoint"}
_ALTERNATIVES = _PAIRS | {second: first for first, second in _PAIRS.items()}
"""Settings of which only one can be set."""


@dataclass(slots=True)
class _Values:
    """Values of settings read so far, nested by section, and the origin of each by dotted key."""

    nested: dict[str, Any] = field(default_factory=dict)
    origins: dict[str, str] = field(default_factory=dict)

    def set(self, key: str, value: object, origin: str) -> None:
        """Set a setting's value by its dotted key; `origin` says where it was set, for errors.

        If the setting has an alternative from an earlier source, such as the file, the alternative is unset.
        """
        other = _ALTERNATIVES.get(key, "")
        earlier = self.origins.get(other, origin).partition(",")[0]
        if value is not None and earlier != origin.partition(",")[0]:
            self.set(other, None, origin)
        *sections, name = key.split(".")
        values = self.nested
        for section in sections:
            values = values.setdefault(section, {})
        values[name] = value
        self.origins[key] = origin


def with_default_model(config: Config) -> Config:
    """Return the settings, with the default model if it is installed and they name no model or endpoint."""
    file = models_dir() / DEFAULT_MODEL
    if config.llm.model_path or config.llm.endpoint or not file.exists():
        return config
    llm = msgspec.structs.replace(config.llm, model_path=str(file))
    return msgspec.structs.replace(config, llm=llm)


def config_file() -> Path | None:
    """Return the path of the configuration file, by `MNEMOSYNE_CONFIG` or the usual one, or None."""
    if named := os.environ.get(CONFIG_VARIABLE):
        return Path(named)
    usual = default_config_file()
    return usual if usual.exists() else None


def make_paths_absolute(key: str, value: str, folder: Path) -> str:
    """Return the text of a setting with relative paths in it made absolute below `folder`.

    `key` is the setting's dotted key, or "config" for the path of the configuration file. Settings
    that name no paths are returned unchanged.
    """
    value = value.strip()
    if key not in {*PATHS, *_LISTS, "config"} or "://" in value or value in _NO_PATHS:
        return value
    paths = _split_list(value) if key in _LISTS else [value]
    return os.pathsep.join(
        path if path.startswith("~") else str(folder / path) for path in paths
    )


def _split_list(text: str) -> list[str]:
    """Return the parts of a list that is written with colons, as in $PATH, or as in the file: [~/a, ~/b]."""
    if text.startswith("[") and text.endswith("]"):
        parts = [part.strip().strip("\"'") for part in text[1:-1].split(",")]
    else:
        parts = text.split(os.pathsep)
    return [part for part in parts if part]


def settings_variables(environ: Mapping[str, str], folder: Path) -> dict[str, str]:
    """Return the environment's variables for the daemon, with relative paths made absolute below `folder`."""
    by_variable = {variable(key): key for key in (*KEYS, "config")}
    return {
        name: make_paths_absolute(by_variable.get(name, ""), value, folder)
        for name, value in environ.items()
        if name.startswith(ENVIRONMENT_PREFIX)
    }


def load_config(
    file: Path | None = None,
    *,
    environ: Mapping[str, str] | None = None,
    overrides: Mapping[str, Any] | None = None,
) -> Config:
    """Return the settings alone, as `load_with_origins` reads them. Raises `ConfigInvalid`."""
    return load_with_origins(file, environ=environ, overrides=overrides)[0]


def load_with_origins(
    file: Path | None = None,
    *,
    environ: Mapping[str, str] | None = None,
    overrides: Mapping[str, Any] | None = None,
) -> tuple[Config, dict[str, str]]:
    """Return the settings, and {dotted key: where it was set} for those that are not defaults.

    Settings are read from the file, the environment (None for this process's) and `overrides`, values by
    dotted key; later ones win. Raises `ConfigInvalid`.
    """
    environ = os.environ if environ is None else environ
    values = _Values()
    if file:
        _read_file(file, values)
    _read_environment(environ, values)
    for key, value in (overrides or {}).items():
        checked = checked_value(key, value, where="argument", strict=True)
        values.set(key, checked, "argument")
    config = msgspec.convert(values.nested, Config)
    if config.database_file:
        config = _read_database_file(config, values.origins)
    if config.llm.model_path and config.llm.endpoint:
        raise ConfigInvalid(
            "llm.model_path and llm.endpoint are both set; choose one and set the other to null",
            field="llm.endpoint",
        )
    try:
        _ = config.listen_address
    except ConfigInvalid as error:
        where = values.origins.get(error.field or "", values.origins["listen"])
        raise ConfigInvalid(f"{where}: {error.message}", field=error.field) from error
    _check_owners(config, values.origins)
    return config, values.origins


def _read_database_file(config: Config, origins: dict[str, str]) -> Config:
    """Return the settings with `database` read from the file that `database_file` names.

    Adds the origin of `database` to `origins`. Raises `ConfigInvalid`, which quotes nothing of the file, as
    it may contain a password.
    """
    path = Path(config.database_file or "").expanduser()
    url = problem = ""
    try:
        if path.stat().st_mode & stat.S_IRWXO:
            problem = "can be read by others; take that right from them"
        url = path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        problem = f"cannot be read: {getattr(error, 'strerror', 'not text')}"
    if config.database:
        problem = "is set, and so is database; choose one and set the other to null"
    elif not (problem or (is_server(url) and url.isprintable())):
        problem = "must hold one line, postgresql://user:password@host/name"
    if problem:
        raise ConfigInvalid(
            f"{origins['database_file']}: database_file: {path} {problem}",
            field="database_file",
        )
    origins["database"] = str(path)
    return msgspec.structs.replace(config, database=url)


def _check_owners(config: Config, origins: Mapping[str, str]) -> None:
    """Raise `ConfigInvalid` if settings of owners or an identity provider lack others that they need."""
    owners, oidc = config.owners, config.oidc
    if not owners.serve:
        if owners.processes > 1:
            where = origins["owners.processes"]
            raise ConfigInvalid(
                f"{where}: owners.processes needs owners.serve: true; a single memory has one "
                "process",
                field="owners.processes",
            )
        return
    is_private = owners.proxy_secret_file or is_loopback(config.listen or "")
    faults = {
        "owners.serve needs a database on a server: set database to postgresql://…": (
            not is_server(config.database)
        ),
        'owners.serve needs an address: set listen, such as "0.0.0.0:7464"': (
            not config.listen
        ),
        "oidc.issuer needs oidc.audience, as tokens are for one service": (
            oidc.issuer and not oidc.audience
        ),
        "owners.proxy_header lets in whoever sends it: listen on loopback, or set "
        "owners.proxy_secret_file": owners.proxy_header and not is_private,
    }
    for fault, is_there in faults.items():
        if is_there:
            key = fault.partition(" ")[0]
            raise ConfigInvalid(f"{origins[key]}: {fault}", field=key)


def _read_file(path: Path, values: _Values) -> None:
    """Add the settings of a YAML file to `values`. Raises `ConfigInvalid`."""
    # Loaded here: without a file the start need not wait for it.
    import yaml  # noqa: PLC0415

    try:
        text = path.read_text(encoding="utf-8")
        root = yaml.compose(text, Loader=yaml.SafeLoader)
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigInvalid(f"{path}: cannot be read: {error}") from error
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f", line {mark.line + 1}" if mark else ""
        problem = getattr(error, "problem", None) or "not YAML"
        raise ConfigInvalid(f"{path}{line}: {problem}") from error
    except RecursionError as error:
        raise ConfigInvalid(
            f"{path}: it is nested too deeply; no setting is"
        ) from error
    if root is None:
        return
    seen: set[str] = set()
    for key, node in _setting_nodes(path, root, ""):
        where = f"{path}, line {node.start_mark.line + 1}"
        if key in seen:
            raise ConfigInvalid(f"{where}: {key} is set twice", field=key)
        seen.add(key)
        try:
            value = yaml.SafeLoader("").construct_object(node, deep=True)
        except (yaml.YAMLError, ValueError, RecursionError) as error:
            # A tag of another program, 31 February.
            problem = getattr(error, "problem", None) or error
            raise ConfigInvalid(f"{where}: {key}: {problem}", field=key) from error
        values.set(key, checked_value(key, value, where=where, strict=True), where)


def _setting_nodes(path: Path, node: Node, prefix: str) -> Iterator[tuple[str, Node]]:
    """Yield dotted key and node of each setting below a node. Raises `ConfigInvalid` for unknown keys."""
    if node.tag == "tag:yaml.org,2002:null":  # every key in it is commented out
        return
    if node.tag != "tag:yaml.org,2002:map":
        where = f"{path}, line {node.start_mark.line + 1}"
        raise ConfigInvalid(
            f"{where}: {prefix.rstrip('.') or 'the file'} must be a mapping"
        )
    for name, value in node.value:
        key = prefix + str(name.value)
        if key in _SECTIONS:
            yield from _setting_nodes(path, value, key + ".")
        elif key not in KEYS:
            where = f"{path}, line {name.start_mark.line + 1}"
            raise ConfigInvalid(
                f"{where}: there is no setting {key}{_suggest_name(key)}", field=key
            )
        else:
            yield key, value


def _read_environment(environ: Mapping[str, str], values: _Values) -> None:
    """Add the settings in environment variables to `values`. Raises `ConfigInvalid`."""
    by_variable = {variable(key): key for key in KEYS}
    for name, text in environ.items():
        if not name.startswith(ENVIRONMENT_PREFIX) or name in _NO_SETTINGS:
            continue
        key = by_variable.get(name)
        if key is None:
            raise ConfigInvalid(
                f"environment: unknown variable {name}{_suggest_name(name)}"
            )
        where = f"environment, {name}"
        values.set(key, value_from_text(key, text, where=where), where)


def value_from_text(key: str, text: str, *, where: str = "") -> Any:  # noqa: ANN401 of the key's type
    """Convert text from the environment or a command to a setting's value, and check it.

    `key` is the setting's dotted key; errors begin with `where`, its origin. Raises `ConfigInvalid`. An
    empty text and "null" mean None.
    """
    value: Any = text.strip()
    if KEYS.get(key) is bool:
        value = _YES_AND_NO.get(value.casefold(), value)
    if value in ("", "null"):
        value = [] if key in _LISTS else None
    elif key in ("owners.limits_by_owner", "oidc.scopes"):
        with suppress(msgspec.DecodeError):  # it is checked as it is then
            value = msgspec.json.decode(value)
    return checked_value(key, value, where=where, strict=False)


def checked_value(key: str, value: Any, *, where: str, strict: bool) -> Any:  # noqa: ANN401
    """Check a setting's value, and return it converted to the setting's type.

    `key` is the setting's dotted key; `where` names the origin in errors. Unless `strict`, texts
    are converted to numbers and the like. Raises `ConfigInvalid`.
    """
    place = f"{where}: " if where else ""
    if key not in KEYS:
        raise ConfigInvalid(
            f"{place}there is no setting {key}{_suggest_name(key)}", field=key
        )
    if key in _LISTS and isinstance(value, str):
        value = _split_list(value)
    try:
        converted = msgspec.convert(value, KEYS[key], strict=strict)
    except msgspec.ValidationError as error:
        kind = KEYS[key]
        choices = get_args(kind) if get_origin(kind) is Literal else ()
        problem = rephrase(
            str(error), choices=[*map(str, choices)], form=_FORMS.get(key, "")
        )
        # The value as a YAML file has it.
        says = "null" if value is None else repr(value)
        says = says.lower() if isinstance(value, bool) else says
        wanted = problem.partition(", not ")[0]
        raise ConfigInvalid(f"{place}{key} {wanted}, not {says}", field=key) from error
    if converted is not None and (problem := _find_text_problem(key, converted)):
        raise ConfigInvalid(
            f"{place}{key}: {problem}; it says {converted!r}", field=key
        )
    return converted


def _find_text_problem(key: str, value: Any) -> str:  # noqa: ANN401
    """Return what is wrong with a setting's text, such as an unusable path; empty if nothing is."""
    if key == "database" and not is_server(value) and "://" in value:
        return "expected a file or postgresql://user@host/name"
    if key in PATHS and not (key == "database" and is_server(value)):
        return (
            "expected a path, not a URL" if "://" in value else path_form_fault(value)
        )
    if key == "owners.limits_by_owner":
        names = {name for limits in value.values() for name in limits}
        unknown = sorted(names.difference(OWNER_LIMITS))
        known = ", ".join(OWNER_LIMITS)
        return f"{unknown[0]} is no limit; the limits are {known}" if unknown else ""
    if key in _LISTS:
        faults = ((path, path_form_fault(path)) for path in value)
        return next(
            (f"{shown_path(path)}: {each}" for path, each in faults if each), ""
        )
    has_five_fields = key in _CRONS and len(value.split()) == 5
    if key == "sleep.cron" and not has_five_fields:
        return "expected five fields such as '30 3 * * *'"
    if key == "backup.schedule" and not (value in BACKUP_SCHEDULES or has_five_fields):
        return f"expected one of {', '.join(BACKUP_SCHEDULES)}, or five cron fields"
    try:
        if key in ("listen", "metrics_listen"):
            tcp_address(value, tls=True)  # `load_with_origins` sees if TLS is set
        elif key == "backup.keep":
            BackupRetention.parse(str(value))
    except ValueError as error:
        return str(error)
    return ""


def _suggest_name(wrong: str) -> str:
    """Return "; did you mean NAME?" with the closest setting or variable; empty without one."""
    # Loaded here: only a mistake needs it.
    from difflib import get_close_matches  # noqa: PLC0415

    known = [*KEYS, *_SECTIONS, *(variable(key) for key in KEYS)]
    close = get_close_matches(wrong, known, n=1)
    return f"; did you mean {close[0]}?" if close else ""


_CRONS = {"sleep.cron", "backup.schedule"}
_LISTS = {"watch.paths", "hooks.exclude"}
"""Settings with several values, which may also be a text with colons between them."""
_NO_PATHS = {"", "null", NO_MODEL, MODEL_TOKENIZER, IN_MEMORY}
"""Values of path settings that are not paths."""
_FORMS = {"sleep.quiet_hours": '"22:00-07:00"'}
"""An example for each setting whose value must match a pattern."""
_YES_AND_NO = {"yes": True, "on": True, "no": False, "off": False}
"""Words for true and false in the environment, in addition to those of JSON."""
_NO_SETTINGS = {
    CONFIG_VARIABLE,
    API_KEY_VARIABLE,
    PROJECT_VARIABLE,
    HOOK_WAIT_VARIABLE,
    *CLIENT_VARIABLES,
}
_SECTIONS = {key.rsplit(".", 1)[0] for key in KEYS if "." in key}
