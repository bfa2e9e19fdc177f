"""What is shipped: one hash of two builds, metadata, SBOM, types, and installs from a wheel and by name."""

from __future__ import annotations

import functools
import hashlib
import importlib
import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import threading
import time
import venv
import zipfile
from collections.abc import Iterator, Sequence
from email import message_from_string
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import ModuleType

import pytest
import yaml
from e2e.daemons import running, short_room
from support.pages import PROJECT, README, blocks

from mnemosyned import version

pytestmark = pytest.mark.packaging

BUILT = PROJECT / "build" / "packaging"
"""What `make test-packaging` installs: wheels of dependencies, and programs that install."""
TOOLS = BUILT / "tools"
LIMIT_S = 300
"""Of one command, on a machine that does other work."""
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
SERVER_EXTRAS = {
    "postgres": "psycopg",
    "oidc": "jwt",
    "otel": "opentelemetry.sdk",
    "personal": "icalendar",
    "top": "textual",
}
"""An extra, and a module of it."""


@pytest.fixture(scope="module")
def release() -> ModuleType:
    """The program of a release, which loads what only a build needs."""
    return importlib.import_module("release")


@pytest.fixture(scope="module")
def distributions(
    release: ModuleType, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """A folder with the sdist, and the wheel that was built from it."""
    room = tmp_path_factory.mktemp("release")
    release.build(PROJECT, room, umask=0o022, age_s=0)
    return room


@pytest.fixture(scope="module")
def wheel(distributions: Path) -> Path:
    (file,) = distributions.glob("*.whl")
    return file


def in_dist_info(wheel: Path, name: str) -> str:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        (found,) = (each for each in names if each.endswith(f".dist-info/{name}"))
        return archive.read(found).decode()


# ------------------------------------------------------------------- builds


def test_builds_in_other_folders_at_other_times_have_the_same_hash(
    release: ModuleType, distributions: Path, tmp_path: Path
) -> None:
    again = release.build(PROJECT, tmp_path, umask=0o077, age_s=86_400 * 400)

    assert len(again) == 2
    assert again == {
        name: hashlib.sha256((distributions / name).read_bytes()).hexdigest()
        for name in again
    }


def test_the_metadata_say_what_an_index_shows(wheel: Path) -> None:
    metadata = message_from_string(in_dist_info(wheel, "METADATA"))
    readme = str(metadata.get_payload())

    assert metadata["Metadata-Version"] == "2.4"
    assert metadata["License-Expression"] == "MIT"
    assert metadata["Author"] == "The mnemosyned authors"
    assert 20 <= len(metadata["Summary"]) <= 100
    assert metadata["Description-Content-Type"] == "text/markdown"
    assert readme.startswith("# mnemosyned\n")
    assert re.findall(r"\]\((?!https?://)[^)]*\)", readme) == []
    assert "![" not in readme or "https://" in readme


def test_links_of_the_readme_lead_to_the_repository_where_it_is_named() -> None:
    hooks = importlib.import_module("build_hooks")
    text = "![A picture](docs/a.svg)\n\n[Setup](docs/setup.md#x), [PEP](https://peps.example)\n"

    absolute = hooks.readme_for_index(text, "https://host.example/o/m", "1.2.3")
    plain = hooks.readme_for_index(text, "", "1.2.3")

    assert absolute == (
        "![A picture](https://host.example/o/m/raw/v1.2.3/docs/a.svg)\n\n"
        "[Setup](https://host.example/o/m/blob/v1.2.3/docs/setup.md#x), [PEP](https://peps.example)\n"
    )
    assert plain == "\n\nSetup, [PEP](https://peps.example)\n"


def test_the_sbom_has_every_package_of_the_lock_and_the_form_of_cyclonedx(
    wheel: Path,
) -> None:
    text = in_dist_info(wheel, "sboms/mnemosyned.cdx.json")
    document = json.loads(text)
    lock = (PROJECT / "requirements-server.lock").read_text("utf-8")
    check = (
        "import sys; from cyclonedx.schema import SchemaVersion;"
        "from cyclonedx.validation.json import JsonStrictValidator;"
        "print(JsonStrictValidator(SchemaVersion.V1_6).validate_str(sys.stdin.read()))"
    )

    validated = subprocess.run(
        [sys.executable, "-c", check],
        input=text,
        env={"PYTHONPATH": str(TOOLS)},
        capture_output=True,
        text=True,
        check=True,
    )

    assert validated.stdout == "None\n"
    listed = [f"{each['name']}=={each['version']}" for each in document["components"]]
    assert listed == re.findall(r"^([\w.-]+==[^\s;]+)", lock, re.MULTILINE)
    direct = [ref.split("@")[0] for ref in document["dependencies"][0]["dependsOn"]]
    assert {"pkg:pypi/numpy", "pkg:pypi/psycopg"} <= set(direct)
    assert "pkg:pypi/pycparser" not in direct


# ------------------------------------------------- away from the checkout


def command(*words: str | Path, cwd: Path) -> str:
    """What a command prints; it does not see the checkout unless it is told where it is."""
    done = subprocess.run(
        [str(word) for word in words],
        cwd=cwd,
        env={name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )
    assert done.returncode == 0, f"{words}: {done.stdout}{done.stderr}"
    return done.stdout.strip()


@pytest.fixture(scope="module")
def source(distributions: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The source distribution, unpacked."""
    room = tmp_path_factory.mktemp("source")
    (sdist,) = distributions.glob("*.tar.gz")
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


def contents(wheel: Path) -> dict[str, int]:
    with zipfile.ZipFile(wheel) as archive:
        return {entry.filename: entry.CRC for entry in archive.infolist()}


def test_the_checkout_and_the_sdist_build_a_wheel_with_what_the_daemon_reads(
    source: Path, wheel: Path, tmp_path: Path
) -> None:
    shipped = {
        f"mnemosyned/_data/{path.relative_to(PROJECT)}"
        for pattern in ("config/mnemosyned.yaml", "migrations/**/*", "systemd/*")
        for path in PROJECT.glob(pattern)
        if path.is_file()
    }
    pip_wheel = (sys.executable, "-m", "pip", "wheel", *OFFLINE, "-w", tmp_path)

    command(*pip_wheel, PROJECT, cwd=tmp_path)

    (of_checkout,) = tmp_path.glob("*.whl")
    names = contents(wheel)
    assert contents(of_checkout) == names
    assert len(shipped) >= 4
    assert {name for name in names if name.startswith("mnemosyned/_data/")} == shipped
    assert not any(name.startswith("tests/") or "__pycache__" in name for name in names)
    files = "tests/conftest.py CHANGELOG.md docs/getting-started.md CONTRIBUTING.md"
    assert all((source / name).is_file() for name in files.split())


@pytest.mark.parametrize("is_editable", [False, True], ids=["wheel", "editable"])
def test_a_daemon_runs_from_an_installation(
    wheel: Path, source: Path, fresh: Path, tmp_path: Path, *, is_editable: bool
) -> None:
    install(fresh, *(["--editable", source] if is_editable else [wheel]))

    with running(tmp_path, programs=fresh / "bin", PYTHONPATH=None) as daemon:
        for number in range(3):
            daemon.post("remember", content=f"The parcel came on day {number}.")
        slept = daemon.post("sleep", force=True)
        found = daemon.post("recall", query="parcel")
        mnem = (fresh / "bin" / "mnem", "--socket", daemon.socket)
        shell = command(*mnem, "status", cwd=tmp_path)
    program = (
        "import mnemosyned, mnemosyned.paths as paths; print(mnemosyned.__file__, "
        "paths.shipped('migrations'), paths.shipped('config') / 'mnemosyned.yaml')"
    )
    files = command(fresh / "bin" / "python", "-c", program, cwd=fresh).split()
    check = (fresh / "bin" / "mnemosyned", "--check", "--config", files[-1])

    assert (slept.status, slept.body["promoted"]) == (200, 1)
    assert len(found.body["hits"][0]["lines"]) == 3
    assert "process" in shell
    home = source if is_editable else fresh
    assert all(Path(file).is_relative_to(home) for file in files)
    assert command(*check, cwd=tmp_path) == "the settings are valid"
    said = command(fresh / "bin" / "mnem", "--version", cwd=tmp_path)
    assert wheel.name.split("-")[1] in said


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


def complaints(checker: Sequence[str | Path], program: str, room: Path) -> str:
    """What a type checker says of a program."""
    file = room / "program.py"
    file.write_text(program)
    done = subprocess.run(
        [*map(str, checker), str(file)],
        cwd=room,
        env={name: value for name, value in os.environ.items() if name != "MYPYPATH"},
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )
    return done.stdout + done.stderr


@pytest.mark.parametrize("name", ["mypy", "pyright"])
def test_an_installed_package_is_typed(
    request: pytest.FixtureRequest, wheel: Path, fresh: Path, tmp_path: Path, name: str
) -> None:
    python = fresh / "bin" / "python"
    checker: list[str | Path] = [
        sys.executable,
        "-m",
        "mypy",
        "--strict",
        f"--python-executable={python}",
    ]
    if name == "pyright":
        checker = [request.getfixturevalue("pyright"), "--pythonpath", python]
        (tmp_path / "pyrightconfig.json").write_text('{"typeCheckingMode": "standard"}')
    install(fresh, wheel)

    right = complaints(checker, TYPED_PROGRAM, tmp_path)
    wrong = complaints(checker, TYPED_PROGRAM + "\n".join(MISTAKES), tmp_path)

    assert "Recalled" in right
    assert "float" in right
    assert "error:" not in right
    first = TYPED_PROGRAM.count("\n") + 1
    for number, (line, word) in enumerate(MISTAKES.items(), first):
        assert re.search(rf"program\.py:{number}:.*error", wrong), (line, wrong)
        assert word in wrong, (line, wrong)


# ------------------------------------------------------------------ release


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A clone of this checkout's last commit."""
    made = tmp_path / "clone"
    subprocess.run(["git", "clone", "-q", PROJECT, made], check=True)
    return made


def git(clone: Path, *words: str) -> None:
    name = ("-c", "user.name=t", "-c", "user.email=t@t.invalid")
    subprocess.run(["git", *name, *words], cwd=clone, check=True, capture_output=True)


def test_a_release_stops_where_a_person_goes_on(
    release: ModuleType, clone: Path
) -> None:
    now = release.next_steps("0.1.0", release.preparations(clone, "0.1.0"))
    assert "1. In CHANGELOG.md, write `## [0.1.0] - DATE`" in now
    assert "git tag" not in now
    with pytest.raises(release.NotReleasable, match="cannot be published"):
        release.make_release(clone, "v0.1.0")

    heading, address = "## [Unreleased]", "https://host.example/o/m"
    for name, old, new in (
        ("CHANGELOG.md", heading, f"{heading}\n\n## [0.1.0] - 2026-12-01"),
        ("pyproject.toml", 'repository = ""', f'repository = "{address}"'),
        ("mnemosyned/version.py", "IS_PUBLISHED = False", "IS_PUBLISHED = True"),
    ):
        text = (clone / name).read_text("utf-8")
        assert old in text or new in text
        (clone / name).write_text(text.replace(old, new, 1), "utf-8")
    with pytest.raises(release.NotReleasable, match="commit or remove first"):
        release.make_release(clone, None)
    git(clone, "commit", "-qam", "Prepare 0.1.0")
    prepared = release.make_release(clone, "v0.1.0")

    assert "git tag -s v0.1.0" in prepared
    assert "CHANGELOG" not in prepared
    dist = clone / "dist"
    subprocess.run(["sha256sum", "-c", "--quiet", "SHA256SUMS"], cwd=dist, check=True)
    notes = (dist / "NOTES.md").read_text("utf-8")
    assert "### Added" in notes
    assert "(https://host.example/o/m/blob/v0.1.0/docs/recall.md)" in notes
    (made,) = dist.glob("*.whl")
    text = in_dist_info(made, "METADATA")
    assert "Project-URL: Homepage, https://host.example/o/m\n" in text
    assert "(https://host.example/o/m/blob/v0.1.0/docs/setup.md)" in text
    with pytest.raises(release.NotReleasable, match=r"v0\.2\.0 of version 0\.1\.0"):
        release.make_release(clone, "v0.2.0")


CHECK_SCHEMA = (sys.executable, "-m", "check_jsonschema", "--builtin-schema")
WORKFLOWS = sorted((PROJECT / ".github" / "workflows").glob("*.yml"))


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda file: file.stem)
def test_a_workflow_has_few_rights_and_pins_what_it_runs(workflow: Path) -> None:
    text = workflow.read_text("utf-8")
    content = yaml.safe_load(text)

    subprocess.run(
        [*CHECK_SCHEMA, "vendor.github-workflows", workflow],
        env={**os.environ, "PYTHONPATH": str(TOOLS)},
        check=True,
        capture_output=True,
    )
    assert content["permissions"] in ({}, {"contents": "read"})
    used = re.findall(r"uses: (\S+)(.*)", text)
    assert used
    for action, comment in used:
        assert re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40}", action), action
        assert re.fullmatch(r" # v\d+\.\d+\.\d+", comment), action
    for script in re.findall(r"(?:bash|python) ((?:\.ci|config)/[\w./]+)", text):
        assert (PROJECT / script).is_file()


# ----------------------------------------------------------- installed by name


@pytest.fixture(scope="module")
def index(
    distributions: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    """The address of a simple index: a folder for each name, whose listing is its page."""
    root = tmp_path_factory.mktemp("index")
    for file in (*(BUILT / "wheels").iterdir(), *distributions.glob("mnemosyned-*.*")):
        if file.is_file():
            name = re.sub(r"[-_.]+", "-", file.name.split("-")[0]).lower()
            (root / "simple" / name).mkdir(parents=True, exist_ok=True)
            (root / "simple" / name / file.name).symlink_to(file)

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            """Print nothing."""

    server = ThreadingHTTPServer(
        ("127.0.0.1", 0), functools.partial(Quiet, directory=str(root))
    )
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/simple/"
    server.shutdown()
    thread.join()
    server.server_close()


class Newcomer:
    """A home with nothing in it, whose programs install from one index; times are printed."""

    def __init__(self, home: Path, index: str) -> None:
        self.home = home
        self.commands = 0
        self.spent_s = 0.0
        path = f"{home}/.local/bin:{home}/bin:{TOOLS}/bin:/usr/bin:/bin"
        self.environ = {
            "HOME": str(home),
            "PATH": path,
            "PIP_INDEX_URL": index,
            "PIP_CONFIG_FILE": os.devnull,
            "UV_DEFAULT_INDEX": index,
            "UV_PYTHON": sys.executable,
            "UV_NO_CONFIG": "1",
        }

    def run(self, *words: str | Path, cwd: Path | None = None, **environ: str) -> str:
        """Run a command of the user's, and add its time."""
        began = time.monotonic()
        done = subprocess.run(
            [str(word) for word in words],
            cwd=cwd or self.home,
            env={**self.environ, **environ},
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            check=False,
        )
        self.commands += 1
        self.spent_s += time.monotonic() - began
        assert done.returncode == 0, f"{words}: {done.stdout}{done.stderr}"
        return done.stdout

    def finds_a_line(self, python: Path, how: str) -> None:
        """The example of README in Python, then the same in the shell."""
        example = next(
            block for block in blocks(README) if "import Client" in block.text
        )
        mnem = python.with_name("mnem")
        self.run(mnem, "start")
        try:
            said = self.run(python, "-c", example.text)
            assert said == example.output
            print(f"{how}: {self.commands} commands, {self.spent_s:.1f} s")
            self.run(mnem, "remember", "--id", "tea", "Ada takes tea at four")
            assert "tea at four" in self.run(mnem, "recall", "when is tea?")
        finally:
            self.run(mnem, "stop")


@pytest.fixture
def newcomer(index: str) -> Iterator[Newcomer]:
    with short_room() as home:
        yield Newcomer(home, index)


def test_pip_installs_by_name_and_adds_each_extra(newcomer: Newcomer) -> None:
    home = newcomer.home / "venv"
    venv.create(home, with_pip=True, symlinks=True)
    python = home / "bin" / "python"

    newcomer.run(python, "-m", "pip", "install", "-q", "mnemosyned")
    newcomer.finds_a_line(python, "pip")
    lines = {
        columns: subprocess.run(
            [home / "bin" / "mnem", "top"],
            env={**newcomer.environ, "COLUMNS": columns},
            capture_output=True,
            text=True,
            check=False,
        ).stdout
        for columns in ("60", "80")
    }
    extras = ",".join(SERVER_EXTRAS)
    newcomer.run(python, "-m", "pip", "install", "-q", f"mnemosyned[{extras}]")
    newcomer.run(python, "-c", f"import {', '.join(SERVER_EXTRAS.values())}")

    command = f"{python} -m pip install 'textual<9,>=8.2'"
    assert lines == dict.fromkeys(lines, f"{command}\n")


def test_pip_installs_the_sdist(newcomer: Newcomer) -> None:
    home = newcomer.home / "venv"
    venv.create(home, with_pip=True, symlinks=True)
    pip = (home / "bin" / "python", "-m", "pip", "install", "-q", "--no-compile")

    newcomer.run(*pip, "--no-binary", "mnemosyned", "mnemosyned")

    assert version.__version__ in newcomer.run(home / "bin" / "mnem", "--version")
    assert list(home.glob("lib/*/site-packages/*.dist-info/sboms/mnemosyned.cdx.json"))


@pytest.mark.parametrize(("how", "what"), [("pipx", "."), ("uv", "mnemosyned")])
def test_it_is_installed_as_a_tool(newcomer: Newcomer, how: str, what: str) -> None:
    checkout = newcomer.home / "checkout"
    subprocess.run(["git", "clone", "-q", PROJECT, checkout], check=True)

    if how == "pipx":
        pipx = (sys.executable, "-m", "pipx", "install", "--python", sys.executable)
        newcomer.run(*pipx, what, cwd=checkout, PYTHONPATH=str(TOOLS))
    else:
        newcomer.run("uv", "tool", "install", "-q", what)

    mnem = newcomer.home / ".local" / "bin" / "mnem"
    newcomer.finds_a_line(mnem.resolve().with_name("python"), f"{how} install {what}")
