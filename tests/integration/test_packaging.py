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
TYPED_PROGRAM = """\
from mnemosyned import AsyncClient, Client, Memory, Remember


async def hits(client: AsyncClient) -> int:
    recalled = await client.recall("tea", limit=3)
    reveal_type(recalled.note)
    return len(recalled)


memory = Memory("memory.db")
reveal_type(memory.recall("tea", limit=3))
for hit in Client().recall("tea"):
    reveal_type(hit.score)
memory.remember_many([Remember("tea at four", role="user")])
"""
MISTAKES = {
    "from mnemosyned import Memry": "Memry",
    "memory.recall('tea', limti=3)": "limti",
    "memory.recall('tea').hit": "hit",
    "memory.remember('a', 'b')": "positional",
    "memory.remember(b'a')": '"str"',
    "len(AsyncClient().recall('tea'))": "Coroutine",
    "AsyncClient().recall('tea', limti=3)": "limti",
}
"""A line that no type checker may accept, and a word of its complaint."""
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
        for pattern in ("config/mnemosyned.yaml", "migrations/**/*", "systemd/*")
        for path in CHECKOUT.glob(pattern)
        if path.is_file()
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


# ---------------------------------------------------------------------- types


@pytest.fixture(scope="module")
def pyright(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Pyright, which brings its own Node.js in this distribution of it."""
    for name in ("basedpyright", "pyright"):
        if here := shutil.which(name):
            return Path(here)
    home = tmp_path_factory.mktemp("pyright")
    venv.create(home, with_pip=False, symlinks=True)
    pip = (sys.executable, "-m", "pip", "--python", home / "bin" / "python")
    try:
        command(*pip, "install", "--quiet", "basedpyright", cwd=home)
    except (AssertionError, subprocess.TimeoutExpired) as error:
        pytest.skip(f"basedpyright cannot be installed: {str(error)[:300]}")
    return home / "bin" / "basedpyright"


def complaints(checker: tuple[str | Path, ...], program: str, room: Path) -> str:
    """What a type checker says of a program."""
    file = room / "program.py"
    file.write_text(program)
    done = subprocess.run(
        [*map(str, checker), str(file)],
        cwd=room,
        env={name: value for name, value in os.environ.items() if name != "MYPYPATH"},
        capture_output=True,
        text=True,
        timeout=BUILD_S,
        check=False,
    )
    return done.stdout + done.stderr


def hold_types(checker: tuple[str | Path, ...], room: Path) -> None:
    right = complaints(checker, TYPED_PROGRAM, room)
    wrong = complaints(checker, TYPED_PROGRAM + "\n".join(MISTAKES), room)

    assert "Recalled" in right
    assert "float" in right
    assert "error:" not in right
    first = TYPED_PROGRAM.count("\n") + 1
    for number, (line, word) in enumerate(MISTAKES.items(), first):
        of_line = [
            text for text in wrong.splitlines() if f"program.py:{number}:" in text
        ]
        assert any("error" in text for text in of_line), (line, wrong)
        assert word in wrong, (line, wrong)


def test_an_installed_package_is_typed_for_mypy(
    wheel: Path, fresh: Path, tmp_path: Path
) -> None:
    install(fresh, wheel)

    python = f"--python-executable={fresh / 'bin' / 'python'}"
    hold_types((sys.executable, "-m", "mypy", "--strict", python), tmp_path)


def test_an_installed_package_is_typed_for_pyright(
    pyright: Path, wheel: Path, fresh: Path, tmp_path: Path
) -> None:
    install(fresh, wheel)

    (tmp_path / "pyrightconfig.json").write_text('{"typeCheckingMode": "standard"}')
    hold_types((pyright, "--pythonpath", fresh / "bin" / "python"), tmp_path)
