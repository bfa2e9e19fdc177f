"""Every setting with its type, limits and default; parsers of `database` and `listen`."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args
from urllib.parse import parse_qsl, urlencode

import msgspec
from msgspec import Meta

from mnemosyned import paths
from mnemosyned.backup_schedule import INTERVALS, KEEP_FORM
from mnemosyned.errors import ConfigInvalid
from mnemosyned.instants import shift

if TYPE_CHECKING:
    from mnemosyned.conversation.messages import MessageCounter


SCHEMES = ("postgresql://", "postgres://")
HIDDEN = "***"
_SECRET_KEYS = ("password", "sslpassword")
_URL = re.compile(r"(\w+://)(?:([^/:@]*)(:[^/]*)?@)?([^?]*)(?:\?(.*))?", re.DOTALL)
"""Scheme, user, password, place and options as libpq parts them: a password may contain # and ?."""
_URL_AS_PATH = re.compile(r"(?:^|/)postgres(?:ql)?:/+([^?]*)(.*)")


@dataclass(frozen=True, slots=True)
class DatabaseLocation:
    """Location of the memory: a SQLite file, or else the URL of a PostgreSQL database."""

    file: Path | None = None
    url: str = ""

    def __str__(self) -> str:
        """Return the path of the file, or the URL without its password."""
        return str(self.file) if self.file else without_password(self.url)


def is_server(database: str | None) -> bool:
    """Return True if the setting `database` is the URL of a server, not a file or None."""
    return database is not None and database.startswith(SCHEMES)


def url_in_path(path: str) -> str | None:
    """Return the URL mistaken for a path such as `/home/ann/postgresql:/ann@host/name`, or None."""
    match = _URL_AS_PATH.search(path)
    if match is None:
        return None
    place, options = match.groups()
    is_name = "@" not in place and "/" not in place  # its slashes were merged
    return f"postgresql://{'/' if is_name else ''}{place}{options}"


def without_password(url: str, *, shown: str = HIDDEN) -> str:
    """Return a database URL with `shown` in place of passwords ("" removes them); hide text that is no URL."""
    match = _URL.fullmatch(url)
    if match is None:
        return shown or HIDDEN
    scheme, user, password, place, options = match.groups()
    hidden = f":{shown}" if password and shown else ""
    pairs = [
        (key, shown if key in _SECRET_KEYS else value)
        for key, value in parse_qsl(options or "", keep_blank_values=True)
        if shown or key not in _SECRET_KEYS
    ]
    query = f"?{urlencode(pairs, safe='/*')}" if pairs else ""
    return f"{scheme}{'' if user is None else f'{user}{hidden}@'}{place}{query}"


IN_MEMORY = ":memory:"
"""Path of a `Memory` that stores nothing on disk; a daemon needs a file."""
ENVIRONMENT_PREFIX = "MNEMOSYNE_"
NO_MODEL = "none"
"""Value of `llm.model_path` for extractive summaries even if the default model is installed."""
MODEL_TOKENIZER = "model"
"""Value of `context.tokenizer` for counts by the model that writes summaries."""
BACKUP_SCHEDULES = ("off", *INTERVALS)
"""Values of `backup.schedule` other than cron fields."""
RESTART = {
    "socket",
    "listen",
    "metrics_listen",
    "owners.serve",
    "owners.processes",
    "owners.open_max",
    "owners.groups_max",
    "audit.table",
    "audit.file",
    "audit.strict",
    "tracing.endpoint",
    "llm.concurrency",
    "sleep.tick_s",
    "limits.body_bytes_max",
    "limits.threads",
    "limits.connections_max",
}
"""Settings that take effect at the next start, as do those that begin as in `RESTART_PREFIXES`."""
RESTART_PREFIXES = ("database", "embedding.", "oidc.", "owners.proxy_", "tls.")
FilePath = Annotated[str, Meta(extra={"is_path": True})]
"""The name of a file or a folder."""
Hours = Annotated[float, Meta(gt=0, le=24 * 366)]
Minutes = Annotated[float, Meta(gt=0, le=60 * 24 * 366)]
QuietHours = Annotated[
    str, Meta(pattern=r"^([01]\d|2[0-3]):[0-5]\d-([01]\d|2[0-3]):[0-5]\d$")
]
Count = Annotated[int, Meta(ge=1, le=100_000_000)]
Tokens = Annotated[int, Meta(ge=0, le=100_000_000)]
Fraction = Annotated[float, Meta(ge=0, le=1)]
Bytes = Annotated[int, Meta(ge=1, le=1 << 30)]
Limit = Annotated[int, Meta(ge=1, le=1 << 50)] | None
"""A limit of an owner; None for no limit."""


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

    @property
    def consolidation_age(self) -> timedelta:
        """Age at which memories are consolidated: half of their time to live."""
        return timedelta(hours=self.ttl_hours) / 2

    def cutoff(self, now: datetime) -> datetime:
        """Return the time, as of `now`, before which memories are old enough to be consolidated."""
        return shift(now, -self.consolidation_age)

    def rollup_cutoff(self, now: datetime) -> datetime:
        """Return the time, as of `now`, before which a period must have ended to be summarized."""
        return shift(self.cutoff(now), -timedelta(hours=self.rollup_delay_hours))


class ArchiveConfig(_Section, frozen=True):
    """Retention of the originals in the archive."""

    keep_days: Annotated[float, Meta(gt=0, le=366_000)] | None = None
    characters_max: Annotated[int, Meta(ge=0)] | None = None


class ForgetConfig(_Section, frozen=True):
    """How forgetting becomes final."""

    grace_hours: Annotated[float, Meta(ge=0, le=8_784)] = 0


class BackupConfig(_Section, frozen=True):
    """Backups that the daemon makes by itself."""

    dir: FilePath | None = None
    schedule: str | None = None
    keep: Annotated[int, Meta(ge=1, le=9_999)] | str = KEEP_FORM


class LlmConfig(_Section, frozen=True):
    """The language model that writes summaries, if any."""

    model_path: FilePath | None = None
    endpoint: str | None = None
    endpoint_model: str | None = None
    context_tokens: Annotated[int, Meta(ge=512, le=1 << 20)] | None = None
    threads: Annotated[int, Meta(ge=1, le=256)] | None = None
    gpu_layers: Annotated[int, Meta(ge=-1, le=1_000)] = 0
    nice: Annotated[int, Meta(ge=0, le=19)] = 19
    time_limit_s: Annotated[float, Meta(ge=0.1, le=3_600)] = 120.0
    cycle_budget_s: Annotated[float, Meta(gt=0, le=86_400 * 7)] = 1_800.0
    idle_s: Annotated[float, Meta(ge=1, le=86_400)] = 300.0
    api_key_file: FilePath | None = None
    local_only: bool = True
    max_tokens: Annotated[int, Meta(ge=16, le=32_768)] = 512
    concurrency: Annotated[int, Meta(ge=1, le=64)] = 1


class ContextConfig(_Section, frozen=True):
    """Defaults of `context` and `compact`, which a request may override."""

    total: Tokens = 30_000
    system_reserve: Tokens = 2_000
    tools_reserve: Tokens = 2_000
    memory_fraction: Fraction = 0.15
    learnings_fraction: Fraction = 0.05
    fresh_tail: Annotated[int, Meta(ge=0, le=100_000)] = 16
    tokenizer: FilePath | None = None
    model_limit_s: Annotated[float, Meta(gt=0, le=50)] = 20.0  # clients wait for 60 s


class LearningsConfig(_Section, frozen=True):
    """Recognition of standing instructions."""

    recognize: bool = True


class HooksConfig(_Section, frozen=True):
    """Hooks of agents' tools."""

    capture: bool = True
    tell: bool = True
    exclude: Annotated[list[str], Meta(max_length=100)] = msgspec.field(
        default_factory=list
    )


class WatchConfig(_Section, frozen=True):
    """Folders that are watched, in addition to those of `mnem watch`."""

    paths: Annotated[list[str], Meta(max_length=100)] = msgspec.field(
        default_factory=list
    )
    files_max: Annotated[int, Meta(ge=1, le=200_000)] = 20_000
    settle_s: Annotated[float, Meta(ge=0, le=600)] = 5.0


class EmbeddingConfig(_Section, frozen=True):
    """The embedding model that recall uses in addition to words, if any."""

    encoder: Literal["builtin", "none"] = "builtin"
    required: bool = False
    model_path: FilePath | None = None
    query_prefix: str = ""
    memory_prefix: str = ""
    similarity_min: Annotated[float, Meta(ge=0, le=1)] | None = None
    wait_ms: Annotated[int, Meta(ge=1, le=60_000)] = 300
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


class TlsConfig(_Section, frozen=True):
    """TLS of the clients over TCP; both files, or none."""

    certificate: FilePath | None = None
    key: FilePath | None = None


TokenDays = Annotated[int, Meta(ge=1, le=36_600)]


class OidcConfig(_Section, frozen=True):
    """Tokens of an identity provider, which are accepted in addition to our own."""

    issuer: str | None = None
    audience: str | None = None
    owner_claim: str = "preferred_username"
    groups_claim: str = "groups"
    scopes: dict[str, list[Literal["read", "write", "forget"]]] | None = None
    """Scopes by group; that of everybody is "*". None: all of them for everybody."""
    jwks_uri: str | None = None
    add_owners: bool = False


class OwnersConfig(_Section, frozen=True):
    """Whether the memories of many owners are served, and the limits of each in each daemon."""

    serve: bool = False
    processes: Annotated[int, Meta(ge=1, le=64)] = 1
    open_max: Annotated[int, Meta(ge=1, le=100_000)] = 500
    groups_max: Annotated[int, Meta(ge=0, le=100)] = 8
    token_days: TokenDays = 90
    token_days_max: TokenDays | None = 366
    requests_per_minute: Limit = 6_000
    writes_per_minute: Limit = 60_000
    bytes_per_day: Limit = 1 << 30
    memories_max: Limit = 1_000_000
    streams_max: Limit = None
    encoder_s_per_minute: Limit = None
    model_s_per_minute: Limit = None
    limits_by_owner: dict[str, dict[str, Limit]] | None = None
    """Other limits for owners by name."""
    proxy_header: Annotated[str, Meta(pattern=r"^[A-Za-z0-9-]{1,100}$")] | None = None
    proxy_secret_file: FilePath | None = None


OWNER_LIMITS = tuple(
    field.name for field in msgspec.structs.fields(OwnersConfig) if field.type == Limit
)
"""The settings that are limits of an owner."""


class AuditConfig(_Section, frozen=True):
    """The audit log of who asked what, in a database on a server."""

    table: bool | None = None
    file: FilePath | None = None
    strict: bool = False
    keep_days: Annotated[float, Meta(gt=0, le=36_600)] = 400


class TracingConfig(_Section, frozen=True):
    """Traces of requests for OpenTelemetry, if any."""

    endpoint: Annotated[str, Meta(pattern=r"^https?://[^\s@]+$")] | None = None


class LogConfig(_Section, frozen=True):
    """Level and format of the log."""

    level: Literal["debug", "info", "warning", "error"] = "info"
    format: Literal["auto", "json", "console"] = "auto"


class Config(_Section, frozen=True):
    """Every setting; `config/mnemosyned.yaml` has the same defaults and a line on each."""

    auto_sleep: bool = True
    wm_max: Count = 10_000
    database: FilePath | None = None
    database_file: FilePath | None = None
    socket: FilePath | None = None
    listen: str | None = None
    metrics_listen: str | None = None
    shutdown_drain_s: Annotated[float, Meta(ge=0, le=3_600)] = 0.0
    secrets: Literal["keep", "mask", "refuse"] = "keep"
    sleep: SleepConfig = msgspec.field(default_factory=SleepConfig)
    archive: ArchiveConfig = msgspec.field(default_factory=ArchiveConfig)
    forget: ForgetConfig = msgspec.field(default_factory=ForgetConfig)
    backup: BackupConfig = msgspec.field(default_factory=BackupConfig)
    llm: LlmConfig = msgspec.field(default_factory=LlmConfig)
    context: ContextConfig = msgspec.field(default_factory=ContextConfig)
    learnings: LearningsConfig = msgspec.field(default_factory=LearningsConfig)
    hooks: HooksConfig = msgspec.field(default_factory=HooksConfig)
    watch: WatchConfig = msgspec.field(default_factory=WatchConfig)
    embedding: EmbeddingConfig = msgspec.field(default_factory=EmbeddingConfig)
    limits: LimitsConfig = msgspec.field(default_factory=LimitsConfig)
    tls: TlsConfig = msgspec.field(default_factory=TlsConfig)
    owners: OwnersConfig = msgspec.field(default_factory=OwnersConfig)
    oidc: OidcConfig = msgspec.field(default_factory=OidcConfig)
    audit: AuditConfig = msgspec.field(default_factory=AuditConfig)
    tracing: TracingConfig = msgspec.field(default_factory=TracingConfig)
    log: LogConfig = msgspec.field(default_factory=LogConfig)

    @property
    def location(self) -> DatabaseLocation:
        """The SQLite file or PostgreSQL URL of the memory's database. Raises `ConfigInvalid`."""
        if self.database and is_server(self.database):
            return DatabaseLocation(url=self.database)
        return DatabaseLocation(self.database_path)

    @property
    def database_path(self) -> Path:
        """Absolute path of the SQLite file. Raises `ConfigInvalid` for a server or an unusable path."""
        if is_server(self.database):
            raise ConfigInvalid(
                "the memory is on a PostgreSQL server, and this is for one in a file",
                field="database",
            )
        if self.database == IN_MEMORY:
            raise ConfigInvalid(
                f'database: "{IN_MEMORY}" is for `Memory` in a program; name a file',
                field="database",
            )
        if self.database and (url := url_in_path(self.database)):
            raise ConfigInvalid(
                "database: the URL of a server was stored as the path of a file; store it again: "
                f"mnem config set database {shlex.quote(without_password(url, shown=''))}",
                field="database",
            )
        path = _expand_path(
            self.database or str(paths.state_dir() / "memory.db"),
            key="database",
            suffix=paths.DATABASE_SUFFIX,
            bytes_max=paths.DATABASE_PATH_BYTES_MAX,
        ).resolve()
        if path.is_dir():
            raise ConfigInvalid(
                f"database: {paths.shown_path(str(path))} is a folder; name a file in it",
                field="database",
            )
        return path

    @property
    def backup_folder(self) -> Path | None:
        """Path of the folder for backups; None for a folder next to the database. Raises `ConfigInvalid`."""
        if not self.backup.dir:
            return None
        return _expand_path(self.backup.dir, key="backup.dir").resolve()

    @property
    def audit_file(self) -> Path | None:
        """Path to make the names of audit log files from; None without files. Raises `ConfigInvalid`."""
        suffix, file = "-2026-11", self.audit.file
        if file is None:
            return None
        return _expand_path(file, key="audit.file", suffix=suffix).resolve()

    @property
    def tls_files(self) -> tuple[Path, Path] | None:
        """Paths of the TLS certificate and key; None without TLS. Raises `ConfigInvalid` if one is missing."""
        certificate, key = self.tls.certificate, self.tls.key
        if not (certificate or key):
            return None
        if not (certificate and key):
            missing = "key" if certificate else "certificate"
            raise ConfigInvalid(
                "tls: set both tls.certificate and tls.key, or neither; both at once: mnem config set "
                "tls.certificate=FILE tls.key=FILE",
                field=f"tls.{missing}",
            )
        return (
            _expand_path(certificate, key="tls.certificate").resolve(),
            _expand_path(key, key="tls.key").resolve(),
        )

    @property
    def listen_address(self) -> tuple[str, int] | None:
        """Host and port to listen on; None if not set. Raises `ConfigInvalid` for an address that needs TLS."""
        if not self.listen:
            return None
        try:
            return tcp_address(self.listen, tls=self.tls_files is not None)
        except ValueError as error:
            raise ConfigInvalid(
                f"listen: {error}; it says {self.listen!r}", field="listen"
            ) from error

    @property
    def socket_path(self) -> Path:
        """Path of the daemon's Unix socket, as set or the default. Raises `ConfigInvalid`."""
        if not self.socket:
            return paths.default_socket()
        return _expand_path(self.socket, key="socket")


def _expand_path(
    name: str, *, key: str, suffix: str = "", bytes_max: int = paths.PATH_BYTES_MAX
) -> Path:
    """Return the path `name` of the setting `key`, `~` expanded. Raises `ConfigInvalid`.

    `suffix` is the longest suffix of files made next to the path, `bytes_max` the limit of both together.
    """
    fault = paths.path_fault(name, suffix=suffix, bytes_max=bytes_max)
    if (
        not fault and paths.printable_path(name) != name
    ):  # the lock file and the log name it
        fault = f"it has bytes that are not UTF-8; set `{key}` to another"
    if fault:
        raise ConfigInvalid(
            f"{key}: {paths.shown_path(name)} cannot be used: {fault}", field=key
        )
    return Path(name).expanduser()


def keys(
    section: type[_Section] = Config, prefix: str = ""
) -> Iterator[tuple[str, Any]]:
    """Yield dotted key and type of each setting in a section, by default of all settings."""
    for field in msgspec.structs.fields(section):
        if isinstance(field.type, type) and issubclass(field.type, _Section):
            yield from keys(field.type, f"{prefix}{field.name}.")
        else:
            yield prefix + field.name, field.type


def variable(key: str) -> str:
    """Return the name of a setting's environment variable, such as `MNEMOSYNE_SLEEP_CRON`."""
    return ENVIRONMENT_PREFIX + key.replace(".", "_").upper()


def needs_restart(key: str) -> bool:
    """Return True if a change of this setting takes effect only at the daemon's next start."""
    return key in RESTART or key.startswith(RESTART_PREFIXES)


def changed_keys(former: Config, present: Config) -> list[str]:
    """Return the dotted keys of settings that differ between two configurations."""
    return [key for key in KEYS if value_of(former, key) != value_of(present, key)]


def value_of(config: Config, key: str) -> Any:  # noqa: ANN401
    """Return the value of the setting with this dotted key."""
    value: Any = config
    for name in key.split("."):
        value = getattr(value, name)
    return value


_BUILT = msgspec.json.Decoder(Config)
"""Made at import, as it completes the types: done at first use, two threads would crash."""
KEYS: dict[str, Any] = dict(keys())
"""Every key with its type."""
PATHS = {key for key, kind in KEYS.items() if FilePath in get_args(kind)}
"""Settings that name a file or a folder."""


LOCALHOST = "localhost"


def tcp_address(setting: str, *, tls: bool = False) -> tuple[str, int]:
    """Return host and port of a text "host:port", as in the setting `listen`.

    Raises `ValueError` with the reason, also for an address other than loopback without `tls`.
    """
    name, colon, digits = setting.rpartition(":")
    port = int(digits) if digits.isdecimal() and digits.isascii() else -1
    if not colon or not 0 <= port <= 65_535:
        raise ValueError('write it as "127.0.0.1:7464"')
    if name.lower() == LOCALHOST:
        return "127.0.0.1", port
    # Loaded here: most settings name no address.
    import ipaddress  # noqa: PLC0415

    try:
        address = ipaddress.ip_address(name.removeprefix("[").removesuffix("]"))
    except ValueError:
        raise ValueError(
            "the host must be localhost or an address of this machine"
        ) from None
    if (address.version == 6) != name.startswith("["):
        raise ValueError('write an IPv6 address as "[::1]:7464"')
    if not (tls or address.is_loopback):
        raise ValueError(
            "only loopback is allowed without TLS: set tls.certificate and tls.key, or forward "
            "the socket or this port with ssh"
        )
    return str(address), port


def is_loopback(setting: str) -> bool:
    """Return True if "host:port" is an address that only this machine reaches."""
    try:
        tcp_address(setting)
    except ValueError:
        return False
    return True


class SettingsInForce:
    """Settings in force; a reload replaces `config`."""

    def __init__(self, config: Config, *, counter: MessageCounter) -> None:
        self.config = config
        self.counter = counter
        """The token counter that `context.tokenizer` names."""
        self.restart_needed: tuple[str, ...] = ()
        """Changed settings that take effect after a restart only."""
