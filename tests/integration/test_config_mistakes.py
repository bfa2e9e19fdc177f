"""A sentence for every mistake in the settings, with its place."""

from pathlib import Path
from typing import Any

import pytest

from mnemosyned.config import load_config
from mnemosyned.errors import ConfigInvalid


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "settings.yaml"


def refused(file: Path | None = None, **kwargs: Any) -> ConfigInvalid:  # noqa: ANN401
    with pytest.raises(ConfigInvalid) as caught:
        load_config(file, **{"environ": {}, **kwargs})
    return caught.value


@pytest.mark.parametrize(
    ("text", "line", "key"),
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
        ("sleep:\n  ttl_hours: 0\n", 2, "sleep.ttl_hours"),
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
    ],
)
def test_a_mistake_in_the_file_is_named_by_file_line_and_key(
    file: Path, text: str, line: int, key: str
) -> None:
    file.write_text(text)

    error = refused(file)

    assert error.message.startswith(f"{file}, line {line}: ")
    assert key in error.message
    assert error.field == key


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
def test_a_file_that_is_no_mapping_is_refused_with_its_line(
    file: Path, text: str, line: int
) -> None:
    file.write_text(text)

    assert refused(file).message.startswith(f"{file}, line {line}: ")


@pytest.mark.parametrize("content", [b"\xff\xfe\x00", b"wm_max: \x00\n"])
def test_a_file_that_is_no_text_is_refused(file: Path, content: bytes) -> None:
    file.write_bytes(content)

    assert str(file) in refused(file).message


def test_a_file_that_is_not_there_is_refused(file: Path) -> None:
    assert str(file) in refused(file).message


def test_an_unknown_key_comes_with_a_guess(file: Path) -> None:
    file.write_text("autosleep: true\n")

    assert "did you mean auto_sleep?" in refused(file).message


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("MNEMOSYNE_WM_MAX", "many"),
        ("MNEMOSYNE_WM_MAX", "-1"),
        ("MNEMOSYNE_WM_MAX", ""),
        ("MNEMOSYNE_AUTO_SLEEP", "maybe"),
        ("MNEMOSYNE_SLEEP_TTL_HOURS", "nan"),
        ("MNEMOSYNE_SLEEP_CRON", "hourly"),
        ("MNEMOSYNE_LOG_LEVEL", "LOUD"),
        ("MNEMOSYNE_WMMAX", "5"),
        ("MNEMOSYNE_SLEEP", "5"),
    ],
)
def test_a_mistake_in_the_environment_is_named_by_its_variable(
    name: str, text: str
) -> None:
    message = refused(environ={name: text}).message

    assert message.startswith("environment")
    assert name in message


@pytest.mark.parametrize(
    "overrides",
    [{"wm_max": "5"}, {"wm_maximum": 5}, {"sleep.ttl_hours": -1}, {"sleep": {}}],
)
def test_a_mistake_of_the_caller_is_named_by_its_key(overrides: dict[str, Any]) -> None:
    error = refused(overrides=overrides)

    assert error.message.startswith("argument: ")
    assert error.field in overrides


def test_two_models_at_once_are_refused(file: Path) -> None:
    file.write_text("llm:\n  model_path: /x.gguf\n")

    error = refused(file, environ={"MNEMOSYNE_LLM_ENDPOINT": "http://localhost:1/v1"})

    assert "choose one" in error.message


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("schedule: fortnightly", "expected one of off, hourly, daily, weekly"),
        ("keep: 0", "backup.keep"),
        ("keep: 3 yearly", "expected a number of backups"),
    ],
)
def test_rules_for_backups_are_checked(tmp_path: Path, text: str, says: str) -> None:
    file = tmp_path / "settings.yaml"
    file.write_text(f"backup:\n  {text}\n")

    with pytest.raises(ConfigInvalid, match=says):
        load_config(file, environ={})
