"""`make install` for a user, and `make uninstall` after it: in a home of the test's own."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

pytestmark = pytest.mark.packaging

CHECKOUT = Path(__file__).parents[2]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    home = tmp_path / "home"
    home.mkdir()
    return home


def make(target: str, home: Path) -> None:
    environ = {
        name: value
        for name, value in os.environ.items()
        if name == "PATH" or name.startswith("PIP_")
    }
    # pip's own settings may stand in the home that is hidden here.
    settings = Path.home() / ".config" / "pip" / "pip.conf"
    if settings.exists():
        environ.setdefault("PIP_CONFIG_FILE", str(settings))
    subprocess.run(
        ["make", target],
        cwd=CHECKOUT,
        env={**environ, "HOME": str(home)},
        check=True,
        timeout=300,
    )


def test_an_installation_runs_and_leaves_only_memory_when_undone(home: Path) -> None:
    make("install", home)
    commands = home / ".local" / "bin"
    unit = home / ".config" / "systemd" / "user" / "mnemosyned.service"
    config = home / ".config" / "mnemosyned" / "mnemosyned.yaml"
    memory = home / ".local" / "state" / "mnemosyned" / "kept"
    memory.write_text("a stand-in for the database")

    checked = subprocess.run(
        [commands / "mnemosyned", "--config", config, "--check"],
        capture_output=True,
        text=True,
        check=True,
    )

    assert "valid" in checked.stdout
    assert f"Environment=PATH={commands}:" in unit.read_text()
    assert memory.parent.stat().st_mode & 0o777 == 0o700

    subprocess.run(
        [commands / "mnem", "setup", "cursor", "opencode", "--yes"],
        env={"HOME": str(home), "PATH": f"{commands}:/usr/bin:/bin"},
        check=True,
    )
    written = (home / ".cursor" / "mcp.json").read_text()
    assert f'"command": "{commands / "mnem"}"' in written

    make("uninstall", home)

    left = {path for path in home.rglob("*") if path.is_file()}
    assert {path for path in left if "mnem" in str(path.relative_to(home))} == {memory}
    assert not (home / ".cursor").exists()
    assert not (home / ".config" / "opencode").exists()


def test_a_config_that_was_changed_survives(home: Path) -> None:
    config = home / ".config" / "mnemosyned" / "mnemosyned.yaml"
    config.parent.mkdir(parents=True)
    config.write_text("wm_max: 7\n")

    make("uninstall", home)

    assert config.read_text() == "wm_max: 7\n"
