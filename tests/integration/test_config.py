"""Settings: every key, every variable, every mistake, and where files lie."""

import re
import shlex
from operator import attrgetter
from pathlib import Path
from typing import Any

import pytest
import yaml
from support.cases import each_case, thorough

from mnemosyned.agents.hooks import client as hooks
from mnemosyned.agents.setup.documents import set_in_yaml
from mnemosyned.cli.calls import configured_socket
from mnemosyned.cli.settings_file import write_settings
from mnemosyned.config.loading import (
    DEFAULT_MODEL,
    PROJECT_VARIABLE,
    config_file,
    load_config,
    load_with_origins,
    with_default_model,
)
from mnemosyned.config.settings import Config, keys, variable, without_password
from mnemosyned.errors import ConfigInvalid
from mnemosyned.paths import shipped, state_dir
from mnemosyned.socket_path import CLIENT_VARIABLES

SHIPPED = shipped("config") / "mnemosyned.yaml"
KEYS = [key for key, _ in keys()]

URL = "postgresql://me:secret@db/memory"

EXAMPLES: dict[str, list[Any]] = yaml.safe_load(
    (Path(__file__).parents[1] / "data" / "settings.yaml").read_text("utf-8")
)
SERVED = {
    "MNEMOSYNE_DATABASE": "postgresql://me@db/memory",
    "MNEMOSYNE_LISTEN": "127.0.0.1:7464",
}
NEEDED = {
    "owners.serve": SERVED,
    "owners.processes": {**SERVED, "MNEMOSYNE_OWNERS_SERVE": "true"},
}
"""What a setting needs beside it."""


def setting(config: Config, key: str) -> Any:  # noqa: ANN401
    return attrgetter(key)(config)


def refused(file: Path | None = None, **kwargs: Any) -> ConfigInvalid:  # noqa: ANN401
    with pytest.raises(ConfigInvalid) as caught:
        load_config(file, **{"environ": {}, **kwargs})
    return caught.value


def flat(tree: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    out: dict[str, Any] = {}
    for key, value in tree.items():
        path = prefix + key
        out |= flat(value, f"{path}.") if isinstance(value, dict) else {path: value}
    return out


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "settings.yaml"


def test_the_shipped_file_holds_every_key_with_its_default() -> None:
    written = flat(yaml.safe_load(SHIPPED.read_text("utf-8")))

    assert list(written) == KEYS
    assert written == {key: setting(Config(), key) for key in KEYS}
    assert load_config(SHIPPED, environ={}) == Config()


def test_every_setting_has_a_line_of_its_own_on_it() -> None:
    text = SHIPPED.read_text("utf-8")
    explained = set(re.findall(r"^\s*(\w+):.* # ", text, re.MULTILINE))

    assert {key.rsplit(".", 1)[-1] for key in KEYS} <= explained


def test_a_setting_left_out_keeps_its_default(file: Path) -> None:
    file.write_text("sleep:\n  ttl_hours: 2\nbackup:\n  keep: 5\n", "utf-8")

    config = load_config(file, environ={})

    assert (config.sleep.ttl_hours, config.backup.keep) == (2, 5)
    assert config.sleep.interval_minutes == Config().sleep.interval_minutes
    assert config.wm_max == Config().wm_max


@pytest.mark.parametrize("text", ["", "# no word\n", "---\n", "sleep:\n  # cron: x\n"])
def test_a_file_or_section_with_nothing_in_it_is_default(file: Path, text: str) -> None:
    file.write_text(text, "utf-8")

    assert load_config(file, environ={}) == Config()


def test_an_example_is_here_for_every_key() -> None:
    assert list(EXAMPLES) == KEYS
    assert all(value != setting(Config(), key) for key, (_, value) in EXAMPLES.items())


@pytest.mark.parametrize(
    "key", [*KEYS[::9], *thorough(*(key for key in KEYS if key not in KEYS[::9]))]
)
def test_every_key_has_a_variable_that_wins_over_the_file(
    file: Path, key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    file.write_text(SHIPPED.read_text("utf-8"), "utf-8")
    monkeypatch.chdir(write_private(file.parent / "url", URL).parent)
    text, value = EXAMPLES[key]

    environ = {"HOME": "/root", **NEEDED.get(key, {}), variable(key): text}

    config = load_config(file, environ=environ)

    assert setting(config, key) == value


@each_case(
    ("missing", "advice"),
    [("MNEMOSYNE_DATABASE", "set database to"), ("MNEMOSYNE_LISTEN", "set listen")],
)
def test_owners_are_served_from_a_server(missing: str, advice: str) -> None:
    environ = {**SERVED, "MNEMOSYNE_OWNERS_SERVE": "true"}
    del environ[missing]

    error = refused(environ=environ)

    assert error.field == "owners.serve"
    assert advice in error.message
    assert "MNEMOSYNE_OWNERS_SERVE" in error.message


def write_private(file: Path, text: str) -> Path:
    file.write_text(text)
    file.chmod(0o400)
    return file


def test_the_url_of_a_server_is_read_from_a_file_of_its_own(file: Path) -> None:
    named = write_private(file.parent / "database", f"{URL}\n")
    file.write_text(f"database: null\ndatabase_file: {named}\n")

    config, origins = load_with_origins(file, environ={"HOME": "/root"})

    assert config.location.url == URL
    assert origins["database"] == str(named)


@pytest.mark.parametrize(
    ("text", "mode", "says"),
    [
        (URL, 0o604, "can be read by others"),
        ("", 0o600, "must hold one line, postgresql://"),
        ("secret", 0o600, "must hold one line, postgresql://"),
        (f"{URL}\n{URL}", 0o600, "must hold one line, postgresql://"),
        (None, 0o600, "cannot be read: No such file or directory"),
        ("\udcff", 0o600, "cannot be read: not text"),
    ],
)
def test_a_file_without_the_url_of_a_server_is_refused_and_not_quoted(
    tmp_path: Path, text: str | None, mode: int, says: str
) -> None:
    named = tmp_path / "database"
    if text is not None:
        named.write_bytes(text.encode(errors="surrogateescape"))
        named.chmod(mode)

    message = refused(environ={"MNEMOSYNE_DATABASE_FILE": str(named)}).message

    assert says in message
    assert message.startswith("environment, MNEMOSYNE_DATABASE_FILE: database_file: ")
    assert "secret" not in message


ALTERNATIVES = [
    {"database": "/memory.db", "database_file": "url"},
    {"llm.model_path": "/x.gguf", "llm.endpoint": "http://localhost:1/v1"},
]


@pytest.mark.parametrize("two", ALTERNATIVES, ids=["databases", "models"])
def test_of_two_in_one_place_one_must_be_chosen(two: dict[str, str]) -> None:
    environ = {variable(key): value for key, value in two.items()}

    assert "choose one" in refused(environ=environ).message


@pytest.mark.parametrize("order", [1, -1], ids=["second wins", "first wins"])
@pytest.mark.parametrize("two", ALTERNATIVES, ids=["databases", "models"])
def test_a_variable_wins_over_its_alternative_in_the_file(
    file: Path, monkeypatch: pytest.MonkeyPatch, two: dict[str, str], order: int
) -> None:
    monkeypatch.chdir(file.parent)
    write_private(Path("url"), URL)
    (loser, in_file), (winner, value) = list(two.items())[::order]
    section, _, name = loser.rpartition(".")
    line = f"{name}: {in_file}"
    file.write_text(f"{section}:\n  {line}\n" if section else line)

    config, origins = load_with_origins(file, environ={variable(winner): value})

    assert setting(config, winner) == value
    assert str(file) not in origins[loser]


def test_the_settings_of_the_service_lack_only_its_files(tmp_path: Path) -> None:
    named = write_private(tmp_path / "database", URL)
    environ = {
        "MNEMOSYNE_DATABASE_FILE": str(named),
        "MNEMOSYNE_TLS_CERTIFICATE": "/certificate.pem",
        "MNEMOSYNE_TLS_KEY": "/key.pem",
    }

    config = load_config(SHIPPED.with_name("server.yaml"), environ=environ)

    assert config.owners.serve
    assert config.listen_address == ("0.0.0.0", 7464)  # noqa: S104


@each_case(
    ("word", "is_on"),
    [
        *((word, True) for word in ("true", "TRUE", "True", "on", "yes", "1", " on ")),
        *((word, False) for word in ("false", "False", "off", "OFF", "no", "0")),
    ],
)
def test_auto_sleep_is_switched_in_any_usual_word(word: str, *, is_on: bool) -> None:
    assert load_config(environ={"MNEMOSYNE_AUTO_SLEEP": word}).auto_sleep is is_on


def test_variables_of_clients_and_the_key_of_an_endpoint_are_no_settings() -> None:
    names = (*CLIENT_VARIABLES, hooks.WAIT_VARIABLE, PROJECT_VARIABLE)

    config = load_config(environ=dict.fromkeys([*names, "MNEMOSYNE_LLM_API_KEY"], "1"))

    assert config == load_config(environ={}) == Config()


@pytest.mark.parametrize("text", ["", "null"])
def test_a_variable_can_take_a_value_back(file: Path, text: str) -> None:
    file.write_text("database: /x.db\n", "utf-8")

    assert load_config(file, environ={"MNEMOSYNE_DATABASE": text}).database is None


def test_the_callers_own_settings_win_over_all(file: Path) -> None:
    file.write_text("wm_max: 1\n", "utf-8")
    environ = {"MNEMOSYNE_WM_MAX": "2"}

    assert load_config(file, environ=environ, overrides={"wm_max": 3}).wm_max == 3


def test_the_file_is_found_where_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CONFIGURATION_DIRECTORY", raising=False)
    monkeypatch.delenv("MNEMOSYNE_CONFIG", raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    usual = tmp_path / "mnemosyned" / "mnemosyned.yaml"
    assert config_file() is None

    usual.parent.mkdir()
    usual.touch()
    assert config_file() == usual

    monkeypatch.setenv("MNEMOSYNE_CONFIG", "/elsewhere.yaml")
    assert config_file() == Path("/elsewhere.yaml")


def test_files_lie_where_service_or_user_keep_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def places() -> list[str]:
        config = Config()
        return [str(config.database_path), str(config.socket_path)]

    for name in ("STATE_DIRECTORY", "RUNTIME_DIRECTORY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_STATE_HOME", "/home")
    monkeypatch.setenv("XDG_RUNTIME_DIR", "/run/1")
    assert places() == [
        "/home/mnemosyned/memory.db",
        "/run/1/mnemosyned/mnemosyned.sock",
    ]

    monkeypatch.setenv("STATE_DIRECTORY", "/var/lib/m:/other")
    monkeypatch.setenv("RUNTIME_DIRECTORY", "/run/m")
    assert places() == ["/var/lib/m/memory.db", "/run/m/mnemosyned.sock"]


def test_a_relative_directory_of_xdg_is_ignored(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("STATE_DIRECTORY", raising=False)
    monkeypatch.setenv("HOME", "/home/ada")
    monkeypatch.setenv("XDG_STATE_HOME", "~/.local/state")

    assert state_dir() == Path("/home/ada/.local/state/mnemosyned")


def test_the_daemons_model_is_tinyllama_once_it_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def model(**overrides: str) -> str | None:
        named = {f"llm.{key}": value for key, value in overrides.items()}
        config = load_config(overrides=named, environ={})
        return with_default_model(config).llm.model_path

    monkeypatch.setenv("STATE_DIRECTORY", str(tmp_path))
    assert model() is None

    (tmp_path / "models").mkdir()
    (tmp_path / "models" / DEFAULT_MODEL).write_bytes(b"GGUF")

    assert model() == str(tmp_path / "models" / DEFAULT_MODEL)
    assert model(model_path="none") == "none"
    assert model(model_path="/m.gguf") == "/m.gguf"


@each_case(
    ("url", "shown", "bare"),
    [
        ("postgresql://a:pw@h:5/n", "postgresql://a:***@h:5/n", "postgresql://a@h:5/n"),
        ("postgres://a:p#w?@h/n", "postgres://a:***@h/n", "postgres://a@h/n"),
        ("postgresql:///n?password=pw&host=/run", "postgresql:///n?password=***&host=/run", "postgresql:///n?host=/run"),
        ("postgresql://h1:1,h2/n", "postgresql://h1:1,h2/n", "postgresql://h1:1,h2/n"),
    ],
)  # fmt: skip
def test_a_url_is_shown_without_its_password(url: str, shown: str, bare: str) -> None:
    assert without_password(url) == shown
    assert without_password(url, shown="") == bare


@each_case(
    ("path", "url"),
    [
        ("/home/ann/postgresql:/ann:pw@host:5/name", "postgresql://ann@host:5/name"),
        ("/postgres:/host/name?sslmode=require", "postgresql://host/name?sslmode=require"),
        ("~/postgresql:/name", "postgresql:///name"),
        ("postgresql:/ann@host", "postgresql://ann@host"),
    ],
)  # fmt: skip
def test_a_url_that_was_stored_as_a_path_is_no_file(path: str, url: str) -> None:
    config = load_config(environ={"MNEMOSYNE_DATABASE": path})

    with pytest.raises(ConfigInvalid) as caught:
        _ = config.location

    command = f"mnem config set database {shlex.quote(url)}"
    assert caught.value.message.endswith(command)


@each_case(
    ("name", "value", "says"),
    [
        ("DATABASE", "sqlite:///notes.db", "expected a file or postgresql://"),
        ("DATABASE", "PostgreSQL://ann@host/name", "expected a file or postgresql://"),
        ("BACKUP_DIR", "postgresql://ann@host/name", "expected a path, not a URL"),
        ("LLM_MODEL_PATH", "https://host/m.gguf", "expected a path, not a URL"),
    ],
)
def test_a_url_is_refused_in_place_of_a_path(name: str, value: str, says: str) -> None:
    assert says in refused(environ={f"MNEMOSYNE_{name}": value}).message


# A sentence for every mistake in the settings, with its place.


@pytest.mark.parametrize(
    ("text", "line", "says"),
    [
        ("wm_maximum: 5\n", 1, "wm_maximum"),
        ("wm_max: 5\nsleep:\n  ttl: 5\n", 3, "sleep.ttl"),
        ("ttl_hours: 5\n", 1, "ttl_hours"),
        ("wm_max: many\n", 1, "wm_max"),
        ('wm_max: "5"\n', 1, "wm_max"),
        ("wm_max: 1.5\n", 1, "wm_max"),
        ("wm_max: 0\n", 1, "wm_max"),
        ("wm_max: null\n", 1, "wm_max"),
        ("wm_max: [1]\n", 1, "wm_max"),
        ("\nauto_sleep: 1\n", 2, "auto_sleep"),
        ("sleep:\n  ttl_hours: 0\n", 2, "sleep.ttl_hours must be more than 0, not 0"),
        ("sleep:\n  ttl_hours: lots\n", 2, "sleep.ttl_hours must be a number, not 'lots'"),
        ("sleep:\n  model_policy: never\n", 2, "sleep.model_policy must be one of any, idle, ac_power, not"),
        ("sleep:\n  quiet_hours: 22-7\n", 2, 'sleep.quiet_hours must have the form "22:00-07:00", not '),
        ("sleep:\n  interval_minutes: null\n", 2, "sleep.interval_minutes must be a number, not null"),
        ("sleep:\n  on_count: true\n", 2, "sleep.on_count must be a whole number, not true"),
        ("archive:\n  keep_days: 30d\n", 2, "archive.keep_days must be a number, not '30d'"),
        ("sleep:\n  ttl_hours: .nan\n", 2, "sleep.ttl_hours"),
        ("sleep:\n  ttl_hours: .inf\n", 2, "sleep.ttl_hours"),
        ("sleep:\n  interval_minutes: -1\n", 2, "sleep.interval_minutes"),
        ("log:\n  level: loud\n", 2, "log.level"),
        ("database: 2026-01-01\n", 1, "database"),
        ("database: 2026-02-31\n", 1, "database"),
        ("database: !other tag\n", 1, "database"),
        ("wm_max: 5\nwm_max: 6\n", 2, "wm_max"),
        ("sleep:\n  ttl_hours: 1\n  ttl_hours: 1\n", 3, "sleep.ttl_hours"),
        ("sleep:\n  cron: 30 3 * *\n", 2, "sleep.cron"),
        ('sleep:\n  cron: ""\n', 2, "sleep.cron"),
        ('listen: "0.0.0.0:7464"\n', 1, "listen"),
        ('metrics_listen: "memory.example:9464"\n', 1, "metrics_listen"),
        ("backup:\n  schedule: fortnightly\n", 2, "backup.schedule: expected one of off, hourly, daily"),
        ("backup:\n  keep: 0\n", 2, "backup.keep"),
        ("backup:\n  keep: 3 yearly\n", 2, "backup.keep: expected a number of backups"),
        ("autosleep: true\n", 1, "autosleep; did you mean auto_sleep?"),
    ],
)  # fmt: skip
def test_a_mistake_in_the_file_is_named_by_file_line_and_key(
    file: Path, text: str, line: int, says: str
) -> None:
    file.write_text(text)

    error = refused(file)

    assert error.message.startswith(f"{file}, line {line}: ")
    assert says in error.message
    assert error.field == re.split("[:; ]", says)[0]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("sleep: 5\n", 1),
        ("- a\n- list\n", 1),
        ("just words\n", 1),
        ("wm_max: 5\n  sleep: [\n", 2),
        ("wm_max: 'open\n", 2),
        ("a: *nowhere\n", 1),
        ("wm_max: 5\n---\nwm_max: 6\n", 2),
    ],
)
def test_a_file_that_is_no_mapping_is_refused(file: Path, text: str, line: int) -> None:
    file.write_text(text)

    assert refused(file).message.startswith(f"{file}, line {line}: ")


@pytest.mark.parametrize("content", [b"\xff\xfe\x00", b"wm_max: \x00\n", None])
def test_no_text_or_no_file_is_refused(file: Path, content: bytes | None) -> None:
    if content:
        file.write_bytes(content)

    assert str(file) in refused(file).message


@each_case(
    ("name", "text"),
    [
        *(("WM_MAX", text) for text in ("many", "-1", "")),
        ("AUTO_SLEEP", "maybe"),
        ("SLEEP_TTL_HOURS", "nan"),
        ("SLEEP_CRON", "hourly"),
        ("LOG_LEVEL", "LOUD"),
        ("WMMAX", "5"),
        ("SLEEP", "5"),
    ],
)
def test_a_mistake_in_the_environment_is_named(name: str, text: str) -> None:
    message = refused(environ={f"MNEMOSYNE_{name}": text}).message

    assert message.startswith("environment")
    assert f"MNEMOSYNE_{name}" in message


@each_case(
    "overrides",
    [{"wm_max": "5"}, {"wm_maximum": 5}, {"sleep.ttl_hours": -1}, {"sleep": {}}],
)
def test_a_mistake_of_the_caller_is_named_by_its_key(overrides: dict[str, Any]) -> None:
    error = refused(overrides=overrides)

    assert error.message.startswith("argument: ")
    assert error.field in overrides


# The client finds its daemon by the settings, also by those that have a mistake.


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CONFIGURATION_DIRECTORY", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("MNEMOSYNE_SOCKET", raising=False)
    return tmp_path / "mnemosyned.yaml"


@pytest.mark.parametrize(
    ("text", "socket"),
    [
        ("socket: /run/m.sock\n", "/run/m.sock"),
        ("wm_max: 5\nsocket: '/run/m.sock'  # ours\n", "/run/m.sock"),
        ("socket: ~/m.sock\n", "{HOME}/m.sock"),
        ("socket: null   # the usual one\n", ""),
        ("socket:\n", ""),
        ("llm:\n  model_path: socket\n", ""),
        ("", ""),
    ],
)
def test_the_settings_name_the_socket(settings: Path, text: str, socket: str) -> None:
    settings.write_text(text)

    assert configured_socket() == (socket.format(HOME=settings.parent) or None)


@pytest.mark.parametrize("mistake", ["wm_maxx: 5", "wm_max: [", "wm_max: much"])
def test_a_mistake_in_the_settings_is_a_remark(
    settings: Path, capsys: pytest.CaptureFixture[str], mistake: str
) -> None:
    settings.write_text(f'socket: "/run/m.sock"  # ours\n{mistake}\n')

    assert configured_socket() == "/run/m.sock"
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("mnem: a mistake in the settings was ignored: ")
    assert len(err.splitlines()) == 1


def test_settings_that_cannot_be_read_are_a_remark(
    settings: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    settings.write_bytes(b"socket: \xff\n")

    assert configured_socket() is None
    assert "cannot be read" in capsys.readouterr().err


# One setting written into the user's file, and every other word of it left alone.


@pytest.mark.parametrize(
    "text",
    [
        "",
        "# only a comment",
        "wm_max: 5\n",
        "llm:\n",
        "llm:   # a model\n  threads: 2\n",
        "llm:\n    # none yet\n    threads: 2\nwm_max: 5\n",
        "llm:\n  model_path: null        # a file\n  threads: 2\n",
        "llm:\n  model_path: ~/a b.gguf\n",
        "llm:\n  model_path:\n",
        "llm:\n  model_path: '/it''s # here'   # a file",
        'llm:\n  model_path: "/a \\" # b"\n',
        "llm:\r\n  threads: 2\r\nwm_max: 5\r\n",
    ],
)
def test_a_setting_is_written_and_every_other_word_stays(file: Path, text: str) -> None:
    file.write_bytes(text.encode())
    before = load_config(file, environ={})

    write_settings(file, {"llm.model_path": "/models/ü #1.gguf"})

    after = load_config(file, environ={})
    assert after.llm.model_path == "/models/ü #1.gguf"
    assert (after.wm_max, after.llm.threads) == (before.wm_max, before.llm.threads)
    comments = [comment for comment in re.findall(r"# \w+( \w+)*", text) if comment]
    assert all(comment in file.read_text("utf-8") for comment in comments)
    assert [*file.parent.iterdir()] == [file]


def test_a_setting_changes_one_line_of_the_shipped_file() -> None:
    before = SHIPPED.read_text("utf-8")

    after = set_in_yaml(before, ("llm", "model_path"), "/m.gguf")

    pairs = zip(before.splitlines(), after.splitlines(), strict=True)
    ((old, new),) = [(old, new) for old, new in pairs if old != new]
    assert '"/m.gguf"' in new
    assert old.partition("#")[2] == new.partition("#")[2]


@pytest.mark.parametrize(
    "text",
    [
        "llm: {threads: 2}\n",
        "llm:\n  endpoint: http://127.0.0.1:1/v1\n",
        "colour: red\n",
    ],
)
def test_a_file_that_would_not_be_valid_stays_as_it_is(file: Path, text: str) -> None:
    file.write_text(text, "utf-8")

    with pytest.raises(ConfigInvalid):
        write_settings(file, {"llm.model_path": "/m.gguf"})

    assert file.read_text("utf-8") == text


def test_a_linked_file_stays_a_link_and_keeps_its_mode(tmp_path: Path) -> None:
    real, link = tmp_path / "real.yaml", tmp_path / "mnemosyned.yaml"
    real.write_text("wm_max: 5\n", "utf-8")
    real.chmod(0o640)
    link.symlink_to(real)

    write_settings(link, {"llm.model_path": "/m.gguf"})

    assert link.is_symlink()
    assert load_config(real, environ={}).llm.model_path == "/m.gguf"
    assert real.stat().st_mode & 0o777 == 0o640
