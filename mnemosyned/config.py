"""Every setting, read once and validated: file, then environment, then the caller's own."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args, get_origin

import msgspec
from msgspec import Meta

from mnemosyned.domain.backups import INTERVALS, KEEP_FORM, Keep
from mnemosyned.domain.errors import ConfigInvalid
from mnemosyned.paths import config_dir, default_socket, models_dir, state_dir
from mnemosyned.verbs.validation import rephrase

if TYPE_CHECKING:
    from yaml.nodes import Node

IN_MEMORY = ":memory:"
"""The path of a `Memory` that keeps nothing; a daemon needs a file."""
ENVIRONMENT_PREFIX = "MNEMOSYNE_"
CONFIG_VARIABLE = "MNEMOSYNE_CONFIG"
NO_MODEL = "none"
"""The `llm.model_path` for rules, although the default model is installed."""
DEFAULT_MODEL = "tinyllama-1.1b-chat-v1.0.Q4_K_M.gguf"
MODEL_TOKENIZER = "model"
"""The `context.tokenizer` for counts by the model that writes summaries."""
BACKUP_SCHEDULES = ("off", *INTERVALS)
"""The values of `backup.schedule` besides cron fields."""
API_KEY_VARIABLE = "MNEMOSYNE_LLM_API_KEY"
"""Not a setting: settings are shown and logged."""

PROJECT_VARIABLE = "MNEMOSYNE_PROJECT"
"""Not a setting: hooks and `mnem mcp` read it."""

Hours = Annotated[float, Meta(gt=0, le=24 * 366)]
Minutes = Annotated[float, Meta(gt=0, le=60 * 24 * 366)]
QuietHours = Annotated[
    str, Meta(pattern=r"^([01]\d|2[0-3]):[0-5]\d-([01]\d|2[0-3]):[0-5]\d$")
]
Count = Annotated[int, Meta(ge=1, le=100_000_000)]
Tokens = Annotated[int, Meta(ge=0, le=100_000_000)]
Fraction = Annotated[float, Meta(ge=0, le=1)]
Bytes = Annotated[int, Meta(ge=1, le=1 << 30)]


class _Section(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    pass


class SleepConfig(_Section, frozen=True):
    """When and how the daemon sleeps."""

    ttl_hours: Hours = 24.0
    interval_minutes: Annotated[float, Meta(ge=0.01, le=60 * 24 * 366)] = 60.0
    cron: str | None = None
    group_entries_max: Annotated[int, Meta(ge=3, le=500)] = 30
    group_chars_max: Annotated[int, Meta(ge=200, le=1_000_000)] = 8_000
    group_pause_hours: Hours = 6.0
    summary_ratio: Annotated[float, Meta(ge=0.05, le=0.9)] = 0.33
    on_age: bool = True
    age_slack_minutes: Minutes = 60.0
    on_count: Annotated[int, Meta(ge=3, le=1_000_000)] | None = None
    on_bytes: Annotated[int, Meta(ge=1_000)] | None = None
    on_idle_minutes: Minutes | None = None
    on_session_tokens: Annotated[int, Meta(ge=100)] | None = None
    idle_min_entries: Annotated[int, Meta(ge=1, le=1_000_000)] = 10
    min_age_minutes: Minutes = 10.0
    tick_s: Annotated[float, Meta(ge=0.01, le=3_600)] = 30.0
    model_policy: Literal["any", "idle", "ac_power"] = "any"
    quiet_hours: QuietHours | None = None
    load_max: Annotated[float, Meta(gt=0, le=1_000)] | None = None
    cycle_minutes: Minutes | None = 60.0
    cycle_tokens: Annotated[int, Meta(ge=1_000)] | None = None
    rollup_delay_hours: Annotated[float, Meta(ge=0, le=24 * 366)] = 6.0
    rollup_min_items: Annotated[int, Meta(ge=2, le=100)] = 3
    on_shutdown: bool = True
    shutdown_deadline_s: Annotated[float, Meta(ge=0, le=3_600)] = 60.0


class ArchiveConfig(_Section, frozen=True):
    """Retention of the originals in the archive."""

    keep_days: Annotated[float, Meta(gt=0, le=366_000)] | None = None
    characters_max: Annotated[int, Meta(ge=0)] | None = None


class BackupConfig(_Section, frozen=True):
    """Backups that the daemon makes by itself."""

    dir: str | None = None
    schedule: str | None = None
    keep: Annotated[int, Meta(ge=1, le=9_999)] | str = KEEP_FORM


class LlmConfig(_Section, frozen=True):
    """The language model that writes summaries, if any."""

    model_path: str | None = None
    endpoint: str | None = None
    endpoint_model: str | None = None
    context_tokens: Annotated[int, Meta(ge=512, le=1 << 20)] | None = None
    threads: Annotated[int, Meta(ge=1, le=256)] | None = None
    gpu_layers: Annotated[int, Meta(ge=-1, le=1_000)] = 0
    nice: Annotated[int, Meta(ge=0, le=19)] = 19
    time_limit_s: Annotated[float, Meta(ge=0.1, le=3_600)] = 120.0
    cycle_budget_s: Annotated[float, Meta(gt=0, le=86_400 * 7)] = 1_800.0
    idle_s: Annotated[float, Meta(ge=1, le=86_400)] = 300.0
    api_key_file: str | None = None
    local_only: bool = True
    max_tokens: Annotated[int, Meta(ge=16, le=32_768)] = 512


class ContextConfig(_Section, frozen=True):
    """Defaults of `context` and `compact`, which a request may override."""

    total: Tokens = 30_000
    system_reserve: Tokens = 2_000
    tools_reserve: Tokens = 2_000
    memory_fraction: Fraction = 0.15
    learnings_fraction: Fraction = 0.05
    fresh_tail: Annotated[int, Meta(ge=0, le=100_000)] = 16
    tokenizer: str | None = None
    model_limit_s: Annotated[float, Meta(gt=0, le=50)] = 20.0  # clients wait for 60 s


class LearningsConfig(_Section, frozen=True):
    """Recognition of standing instructions."""

    recognize: bool = True


class HooksConfig(_Section, frozen=True):
    """Hooks of agents' tools."""

    capture: bool = True
    tell: bool = True


class EmbeddingConfig(_Section, frozen=True):
    """The embedding model that recall uses besides words, if any."""

    model_path: str | None = None
    query_prefix: str = ""
    memory_prefix: str = ""
    similarity_min: Annotated[float, Meta(ge=0, le=1)] = 0.4
    wait_ms: Annotated[int, Meta(ge=1, le=60_000)] = 300
    rows_max: Annotated[int, Meta(ge=100, le=10_000_000)] = 100_000
    threads: Annotated[int, Meta(ge=1, le=256)] = 1
    nice: Annotated[int, Meta(ge=0, le=19)] = 10
    time_limit_s: Annotated[float, Meta(ge=0.1, le=3_600)] = 60.0
    idle_s: Annotated[float, Meta(ge=1, le=86_400)] = 3_600.0


class LimitsConfig(_Section, frozen=True):
    """Limits of requests and connections."""

    content_bytes_max: Bytes = 1 << 20
    body_bytes_max: Bytes = 32 << 20
    threads: Annotated[int, Meta(ge=1, le=256)] = 16
    connections_max: Annotated[int, Meta(ge=1, le=10_000)] = 200


class LogConfig(_Section, frozen=True):
    """Level and format of the log."""

    level: Literal["debug", "info", "warning", "error"] = "info"
    format: Literal["auto", "json", "console"] = "auto"


class Config(_Section, frozen=True):
    """Every setting; `config/mnemosyned.yaml` has the same defaults and a line on each."""

    auto_sleep: bool = True
    wm_max: Count = 10_000
    database: str | None = None
    socket: str | None = None
    listen: str | None = None
    secrets: Literal["keep", "mask", "refuse"] = "keep"
    sleep: SleepConfig = msgspec.field(default_factory=SleepConfig)
    archive: ArchiveConfig = msgspec.field(default_factory=ArchiveConfig)
    backup: BackupConfig = msgspec.field(default_factory=BackupConfig)
    llm: LlmConfig = msgspec.field(default_factory=LlmConfig)
    context: ContextConfig = msgspec.field(default_factory=ContextConfig)
    learnings: LearningsConfig = msgspec.field(default_factory=LearningsConfig)
    hooks: HooksConfig = msgspec.field(default_factory=HooksConfig)
    embedding: EmbeddingConfig = msgspec.field(default_factory=EmbeddingConfig)
    limits: LimitsConfig = msgspec.field(default_factory=LimitsConfig)
    log: LogConfig = msgspec.field(default_factory=LogConfig)

    @property
    def database_path(self) -> Path:
        """The database file, as an absolute path. Raises `ConfigInvalid`."""
        if self.database == IN_MEMORY:
            raise ConfigInvalid(
                f'database: "{IN_MEMORY}" is for `Memory` in a program; name a file',
                field="database",
            )
        if not self.database:
            return _usable(state_dir() / "memory.db", key="database")
        return _usable(Path(self.database), key="database")

    @property
    def backup_folder(self) -> Path | None:
        """The folder of backups, as an absolute path; None: next to the database."""
        if not self.backup.dir:
            return None
        return _usable(Path(self.backup.dir), key="backup.dir")

    @property
    def socket_path(self) -> Path:
        """The daemon's socket."""
        if not self.socket:
            return default_socket()
        return _expanded(Path(self.socket), key="socket")


def _usable(path: Path, *, key: str) -> Path:
    """A path without links in it. Raises `ConfigInvalid` for one that leads nowhere."""
    try:
        return _expanded(path, key=key).resolve()
    except (OSError, RuntimeError, ValueError) as error:
        # Before Python 3.13 a loop is a RuntimeError.
        raise ConfigInvalid(
            f"{key}: {path} cannot be followed: {error}", field=key
        ) from error


def _expanded(path: Path, *, key: str) -> Path:
    try:
        return path.expanduser()
    except RuntimeError as error:
        raise ConfigInvalid(
            f"{key}: {path} names no known user: {error}", field=key
        ) from error


def with_default_model(config: Config) -> Config:
    """The daemon's settings: TinyLlama is its model once `mnem model pull` has put it there."""
    file = models_dir() / DEFAULT_MODEL
    if config.llm.model_path or config.llm.endpoint or not file.exists():
        return config
    llm = msgspec.structs.replace(config.llm, model_path=str(file))
    return msgspec.structs.replace(config, llm=llm)


def config_file() -> Path | None:
    """The daemon's configuration file, if there is one."""
    if named := os.environ.get(CONFIG_VARIABLE):
        return Path(named)
    usual = config_dir() / "mnemosyned.yaml"
    return usual if usual.exists() else None


def load_config(
    file: Path | None = None,
    *,
    environ: Mapping[str, str] | None = None,
    overrides: Mapping[str, Any] | None = None,
) -> Config:
    """Read the settings: the file, then the environment, then overrides by dotted key.

    Raises `ConfigInvalid`, which names the file, line and key.
    """
    environ = os.environ if environ is None else environ
    values: dict[str, Any] = {}
    if file:
        _read_file(file, values)
    _read_environment(environ, values)
    for key, value in (overrides or {}).items():
        _set(values, key, _checked(key, value, where="argument", strict=True))
    config = msgspec.convert(values, Config)
    if config.llm.model_path and config.llm.endpoint:
        raise ConfigInvalid(
            "llm.model_path and llm.endpoint are both set; choose one and set the other to null",
            field="llm.endpoint",
        )
    return config


def keys(
    section: type[_Section] = Config, prefix: str = ""
) -> Iterator[tuple[str, Any]]:
    """Every key, dotted, with its type."""
    for field in msgspec.structs.fields(section):
        if isinstance(field.type, type) and issubclass(field.type, _Section):
            yield from keys(field.type, f"{prefix}{field.name}.")
        else:
            yield prefix + field.name, field.type


def variable(key: str) -> str:
    """The environment variable of a key."""
    return ENVIRONMENT_PREFIX + key.replace(".", "_").upper()


def _read_file(path: Path, values: dict[str, Any]) -> None:
    # Loaded here: without a file the start need not wait for it.
    import yaml  # noqa: PLC0415

    root = _compose(path)
    if root is None:
        return
    seen: set[str] = set()
    for key, node in _flatten(path, root, ""):
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
        _set(values, key, _checked(key, value, where=where, strict=True))


def _compose(path: Path) -> Node | None:
    """The nodes of a YAML file; None where it is empty."""
    # Loaded here: without a file the start need not wait for it.
    import yaml  # noqa: PLC0415

    try:
        text = path.read_text(encoding="utf-8")
        return yaml.compose(text, Loader=yaml.SafeLoader)
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


def _flatten(path: Path, node: Node, prefix: str) -> Iterator[tuple[str, Node]]:
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
            yield from _flatten(path, value, key + ".")
        elif key not in _KEYS:
            where = f"{path}, line {name.start_mark.line + 1}"
            raise ConfigInvalid(
                f"{where}: unknown key {key}{_suggestion(key)}", field=key
            )
        else:
            yield key, value


def _read_environment(environ: Mapping[str, str], values: dict[str, Any]) -> None:
    by_variable = {variable(key): key for key in _KEYS}
    for name, text in environ.items():
        if not name.startswith(ENVIRONMENT_PREFIX) or name in _NO_SETTINGS:
            continue
        key = by_variable.get(name)
        if key is None:
            raise ConfigInvalid(
                f"environment: unknown variable {name}{_suggestion(name)}"
            )
        value: Any = text.strip()
        if _KEYS[key] is bool:
            value = _YES_AND_NO.get(value.casefold(), value)
        if value in ("", "null"):
            value = None
        where = f"environment, {name}"
        _set(values, key, _checked(key, value, where=where, strict=False))


def _checked(key: str, value: Any, *, where: str, strict: bool) -> Any:  # noqa: ANN401
    if key not in _KEYS:
        raise ConfigInvalid(f"{where}: unknown key {key}{_suggestion(key)}", field=key)
    try:
        converted = msgspec.convert(value, _KEYS[key], strict=strict)
    except msgspec.ValidationError as error:
        problem = rephrase(
            str(error), choices=_choices(_KEYS[key]), form=_FORMS.get(key, "")
        )
        says = f"it says {_as_yaml(value)}"
        raise ConfigInvalid(f"{where}: {key} {problem}; {says}", field=key) from error
    check = _FURTHER_CHECKS.get(key)
    if check and converted is not None and (problem := check(converted)):
        raise ConfigInvalid(
            f"{where}: {key}: {problem}; it says {converted!r}", field=key
        )
    return converted


def _cron_problem(value: str) -> str:
    return (
        "" if len(value.split()) == 5 else "expected five fields such as '30 3 * * *'"
    )


def _backup_schedule_problem(value: str) -> str:
    if value in BACKUP_SCHEDULES or not _cron_problem(value):
        return ""
    return f"expected one of {', '.join(BACKUP_SCHEDULES)}, or five cron fields"


def _keep_problem(value: str | int) -> str:
    try:
        Keep.parse(str(value))
    except ValueError as error:
        return str(error)
    return ""


def _choices(kind: object) -> list[str]:
    """The values a setting is limited to; empty if any is allowed."""
    if get_origin(kind) is not Literal:
        return []
    return [str(choice) for choice in get_args(kind)]


def _as_yaml(value: object) -> str:
    """A value as a file has it."""
    if isinstance(value, bool):
        return str(value).lower()
    return "null" if value is None else repr(value)


def _set(values: dict[str, Any], key: str, value: object) -> None:
    *sections, name = key.split(".")
    for section in sections:
        values = values.setdefault(section, {})
    values[name] = value


def _suggestion(wrong: str) -> str:
    # Loaded here: only a mistake needs it.
    from difflib import get_close_matches  # noqa: PLC0415

    known = [*_KEYS, *_SECTIONS, *(variable(key) for key in _KEYS)]
    close = get_close_matches(wrong, known, n=1)
    return f"; did you mean {close[0]}?" if close else ""


_FURTHER_CHECKS: dict[str, Callable[[Any], str]] = {
    "sleep.cron": _cron_problem,
    "backup.schedule": _backup_schedule_problem,
    "backup.keep": _keep_problem,
}
"""Checks of the text of a setting: each returns what is wrong, or nothing."""
_FORMS = {"sleep.quiet_hours": '"22:00-07:00"'}
"""An example of each value that a pattern checks."""
_YES_AND_NO = {"yes": True, "on": True, "no": False, "off": False}
"""Words for a yes or no in the environment, besides those of JSON."""
_NO_SETTINGS = {CONFIG_VARIABLE, API_KEY_VARIABLE, PROJECT_VARIABLE}
_KEYS: dict[str, Any] = dict(keys())
_BUILT = msgspec.json.Decoder(Config)
"""Made at import for what it leaves with the types: at first use, two threads would crash."""
_SECTIONS = {key.rsplit(".", 1)[0] for key in _KEYS if "." in key}
