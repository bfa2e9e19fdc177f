"""What is shipped: the distributions build, hold all they need, and run away from the checkout."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest
from e2e.daemons import running

pytestmark = pytest.mark.packaging

CHECKOUT = Path(__file__).parents[2]
BUILD_S = 120
OFFLINE = ("--no-deps", "--no-build-isolation", "--no-index", "--quiet")


def command(*words: str | Path, cwd: Path) -> str:
    """What a command prints; it does not see the checkout unless it is told where it is."""
    done = subprocess.run(
        [str(word) for word in words],
        cwd=cwd,
        env={name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
        capture_output=True,
        text=True,
        timeout=BUILD_S,
        check=False,
    )
    assert done.returncode == 0, f"{words}: {done.stdout}{done.stderr}"
    return done.stdout.strip()


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("wheel")
    command(
        sys.executable, "-m", "pip", "wheel", *OFFLINE, "-w", made, CHECKOUT, cwd=made
    )
    (found,) = made.glob("*.whl")
    return found


@pytest.fixture(scope="module")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("sdist")
    command(
        sys.executable,
        "-m",
        "hatchling",
        "build",
        "-t",
        "sdist",
        "-d",
        made,
        cwd=CHECKOUT,
    )
    (found,) = made.glob("*.tar.gz")
    return found


@pytest.fixture(scope="module")
def source(sdist: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The source distribution, unpacked."""
    room = tmp_path_factory.mktemp("source")
    with tarfile.open(sdist) as archive:
        archive.extractall(room, filter="data")
    return room / sdist.name.removesuffix(".tar.gz")


@pytest.fixture
def fresh(tmp_path: Path) -> Path:
    """An environment with the dependencies of this one, and without the product."""
    home = tmp_path / "venv"
    venv.create(home, with_pip=False, symlinks=True)
    dependencies = shutil.copytree(
        sysconfig.get_path("purelib"),
        tmp_path / "dependencies",
        copy_function=os.symlink,
        ignore=shutil.ignore_patterns("*mnemosyned*", "*.pth", "__pycache__"),
    )
    (site,) = home.glob("lib/python*/site-packages")
    (site / "dependencies.pth").write_text(f"{dependencies}\n")
    return home


def install(fresh: Path, *what: str | Path) -> None:
    pip = (sys.executable, "-m", "pip", "--python", fresh / "bin" / "python")
    command(*pip, "install", *OFFLINE, *what, cwd=fresh)


def serves(fresh: Path, home: Path) -> None:
    """A daemon of this installation starts, remembers and consolidates."""
    with running(home, programs=fresh / "bin", PYTHONPATH=None) as daemon:
        for number in range(3):
            daemon.post("remember", content=f"The parcel came on day {number}.")
        slept = daemon.post("sleep", force=True)
        found = daemon.post("recall", query="parcel")
        shell = command(
            fresh / "bin" / "mnem", "--socket", daemon.socket, "status", cwd=home
        )

        assert (slept.status, slept.body["promoted"]) == (200, 1)
        assert len(found.body["hits"][0]["lines"]) == 3
        assert "process" in shell


def ask(fresh: Path, expression: str) -> str:
    program = f"import mnemosyned, mnemosyned.paths as paths; print({expression})"
    return command(fresh / "bin" / "python", "-c", program, cwd=fresh)


def test_the_wheel_holds_what_the_daemon_reads(wheel: Path) -> None:
    shipped = {
        f"mnemosyned/_data/{path.relative_to(CHECKOUT)}"
        for folder in ("config", "migrations", "systemd")
        for path in (CHECKOUT / folder).iterdir()
    }

    names = set(zipfile.ZipFile(wheel).namelist())

    assert len(shipped) >= 4
    assert shipped <= names
    assert {name for name in names if name.startswith("mnemosyned/_data/")} == shipped
    assert not [
        name for name in names if name.startswith("tests/") or "__pycache__" in name
    ]


def test_a_daemon_runs_from_the_wheel(wheel: Path, fresh: Path, tmp_path: Path) -> None:
    install(fresh, wheel)

    serves(fresh, tmp_path)
    package = ask(fresh, "mnemosyned.__file__")
    config = ask(fresh, "paths.shipped('config') / 'mnemosyned.yaml'")
    checked = command(
        fresh / "bin" / "mnemosyned", "--check", "--config", config, cwd=tmp_path
    )

    assert Path(package).is_relative_to(fresh)
    assert Path(config).is_relative_to(fresh)
    assert checked == "the settings are valid"
    assert wheel.name.split("-")[1] in command(
        fresh / "bin" / "mnem", "--version", cwd=tmp_path
    )


def test_a_daemon_runs_from_an_editable_install(
    source: Path, fresh: Path, tmp_path: Path
) -> None:
    install(fresh, "--editable", source)

    serves(fresh, tmp_path)

    assert Path(ask(fresh, "mnemosyned.__file__")).is_relative_to(source)
    assert ask(fresh, "paths.shipped('migrations')") == str(source / "migrations")


def test_the_source_distribution_builds_the_same_wheel(
    source: Path, wheel: Path, tmp_path: Path
) -> None:
    command(
        sys.executable,
        "-m",
        "pip",
        "wheel",
        *OFFLINE,
        "-w",
        tmp_path,
        source,
        cwd=tmp_path,
    )

    (again,) = tmp_path.glob("*.whl")
    assert contents(again) == contents(wheel)
    assert (source / "tests" / "conftest.py").is_file()
    assert (source / "CHANGELOG.md").is_file()
    assert (source / "docs" / "getting-started.md").is_file()
    assert (source / "CONTRIBUTING.md").is_file()


def contents(wheel: Path) -> dict[str, int]:
    with zipfile.ZipFile(wheel) as archive:
        return {entry.filename: entry.CRC for entry in archive.infolist()}
