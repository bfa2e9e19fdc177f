"""Runs the fast suite on every Python of this machine, each in an environment of its own in build.

    python tests/support/pythons.py [--short] [--resolution lowest-direct|highest] -- MARKS

As root it runs once more as an ordinary user, in a copy of the checkout. A version that is not here
is named at the end: its row says NOT RUN. `--short` runs as an ordinary user alone, on the oldest and
the newest version but that of this environment, with few random examples and without the tests of
vectors and benchmarks: all of these have run in this environment. The tests that open a database in their own
process then do so on a newer SQLite, as most tests of the store do; daemons have the SQLite of their Python.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from platform import python_version

ROOT = Path(__file__).resolve().parents[2]
EXPECTED = ("3.11", "3.12", "3.13", "3.14")
"""The versions that pyproject.toml names."""
LIMIT_S = 1_800
NOBODY = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")
SHOWN = """set -e
copy=$(mktemp -d)
mount --bind "{shown}" "$copy"
mount -t tmpfs -o mode=755 none "{home}"
mkdir -p "{shown}"
mount --bind "$copy" "{shown}"
exec "$@"
"""
"""Shows nobody the Pythons in the home of root, for one command."""
ABOUT = (
    "import sys, sqlite3, ensurepip; print(sys.implementation.name == 'cpython' and"
    " sys.version_info >= (3, 11) and '.'.join(map(str, sys.version_info[:3])), sqlite3.sqlite_version)"
)
NEWER_SQLITE = "pysqlite3-binary==0.5.4.post2"
COLLECTING = ("-m", "pytest", "-q", "--collect-only", "-p", "no:cacheprovider")
SUITE = ("-m", "pytest", "-q", "-n", "3", "--dist", "worksteal", "-m")
SHORT = (
    *("-p", "support.newer_sqlite"),
    *("--ignore", "tests/bench", "--ignore", "tests/vectors"),
)
SHORT_EXAMPLES = "10"
"""Examples of each property: what another Python does otherwise, it does at the first of them."""


@dataclass(frozen=True, slots=True)
class Python:
    """An interpreter of this machine."""

    path: Path
    version: str
    sqlite: str

    @property
    def release(self) -> str:
        """Its version without the last number, such as 3.13."""
        return self.version.rpartition(".")[0]


def interpreters() -> Iterator[Path]:
    """Yield what may be a Python: on PATH, of the system and of pyenv."""
    folders = [Path(name) for name in os.environ.get("PATH", "").split(os.pathsep)]
    versions = Path(os.environ.get("PYENV_ROOT", "~/.pyenv")).expanduser() / "versions"
    for folder in (*folders, Path("/usr/bin"), *sorted(versions.glob("*/bin"))):
        for path in sorted(folder.glob("python3*")):
            # A script of pyenv's on PATH runs whatever is chosen there.
            if (
                re.fullmatch(r"python3(\.\d+)?t?", path.name)
                and "shims" not in path.parts
            ):
                yield path


def pythons() -> list[Python]:
    """Return one Python of each version, the oldest first; one of an environment is none."""
    found: dict[str, Python] = {}
    for path in interpreters():
        if (path.parent.parent / "pyvenv.cfg").exists():
            continue
        answer = subprocess.run(
            [path, "-c", ABOUT], capture_output=True, text=True, check=False
        )
        version, _, sqlite = answer.stdout.strip().partition(" ")
        if answer.returncode == 0 and version != "False":
            found.setdefault(version, Python(path, version, sqlite))
    return sorted(found.values(), key=lambda one: [*map(int, one.version.split("."))])


def ends(here: list[Python]) -> list[Python]:
    """Return the oldest and the newest Python of other versions than this one; else the last."""
    present = python_version().rpartition(".")[0]
    others = [each for each in (here[0], here[-1]) if each.release != present]
    return others or here[-1:]


def environment(python: Python, home: Path, resolution: str, *user: str) -> list[str]:
    """Make an environment once, with the checkout `home` in it; return how its Python is called."""
    folder = Path("build/pythons") / f"{python.version}-{resolution or 'locked'}"
    needs = [home / "requirements.lock", home / "pyproject.toml"]
    contents = [file.read_bytes() for file in needs]
    state = sha256(b"".join([*contents, NEWER_SQLITE.encode()])).hexdigest()
    ready, program = home / folder / ".ready", folder / "bin/python"
    if ready.exists() and ready.read_text("utf-8") == state:
        return [*user, str(program)]
    shutil.rmtree(home / folder, ignore_errors=True)
    pip = f"{program} -m pip install -q --disable-pip-version-check"
    commands = [
        f"{pip} --require-hashes -r requirements.lock",
        f"{pip} --no-deps --no-build-isolation -e .",
        f"{pip} --only-binary :all: {NEWER_SQLITE}",
    ]
    if resolution:
        bounds, uv = folder / "bounds.txt", f"{folder}/bin/uv pip"
        commands = [
            f"{pip} uv",
            f"{uv} compile -q --resolution {resolution} --python {program} -o {bounds} pyproject.toml",
            f"{uv} install -q --python {program} -c {bounds} -e .[dev]",
        ]
    subprocess.run([*user, python.path, "-m", "venv", folder], check=True, cwd=home)
    for command in commands:
        subprocess.run([*user, *command.split()], check=True, cwd=home)
    ready.write_text(state, "utf-8")
    return [*user, str(program)]


def outcome(
    python: Python, given: argparse.Namespace, home: Path, *user: str
) -> list[str]:
    """Run the suite in a checkout; return the row of its result. What failed is printed."""
    name = f"{python.version} {given.resolution}".strip() + " as nobody" * bool(user)
    print(f"{name}: SQLite {python.sqlite}", flush=True)
    try:
        program = environment(python, home, given.resolution, *user)
    except subprocess.CalledProcessError as error:
        print(error, flush=True)
        return [name, python.sqlite, "0", "no environment"]
    shortening = SHORT if given.short else ()
    # Each worker would compile every test module; what fails here fails in the suite.
    subprocess.run(
        [*program, *COLLECTING, *shortening],
        cwd=home,
        stdout=subprocess.DEVNULL,
        check=False,
    )
    log = ROOT / f"build/pythons/{name.replace(' ', '-')}.log"
    with log.open("w", encoding="utf-8") as output:
        code = subprocess.run(
            [*program, *SUITE, given.marks, *shortening],
            cwd=home,
            stdout=output,
            stderr=subprocess.STDOUT,
            check=False,
            timeout=LIMIT_S,
        ).returncode
    text = log.read_text("utf-8", "replace")
    numbers = {
        words: int(number)
        for number, words in re.findall(r"(\d+) (\w+)", text.splitlines()[-1])
    }
    failed = sum(numbers.get(word, 0) for word in ("failed", "error", "errors"))
    if code:
        print(text[-20_000:], f"all of it: {log}", sep="\n", flush=True)
    passed = str(numbers.get("passed", 0))
    return [name, python.sqlite, passed, str(failed if failed or not code else "all")]


def as_nobody(python: Python, given: argparse.Namespace) -> list[str]:
    """Run the suite in a copy of the checkout, as a user to whom root's files are closed."""
    with tempfile.TemporaryDirectory(prefix="mn-") as folder:
        home = Path(folder) / "checkout"
        listed = ["git", "ls-files", "-z"]
        for file in filter(
            None, subprocess.check_output(listed, cwd=ROOT).split(b"\0")
        ):
            source = ROOT / os.fsdecode(file)
            if source.is_file():
                target = home / source.relative_to(ROOT)
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(source, target)
        subprocess.run(["chown", "-R", "65534:65534", folder], check=True)
        return outcome(
            python,
            given,
            home,
            *showing(python),
            *("env", f"HOME={folder}", f"TMPDIR={folder}", *NOBODY),
        )


def showing(python: Python) -> tuple[str, ...]:
    """Return the command that runs another where nobody reaches this Python."""
    home = Path.home()
    if not python.path.is_relative_to(home):
        return ()
    shown = home / python.path.relative_to(home).parts[0]
    script = SHOWN.format(home=home, shown=shown)
    return ("unshare", "--mount", "sh", "-c", script, "sh")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--short", action="store_true")
    parser.add_argument("--resolution", default="")
    parser.add_argument("marks")
    given = parser.parse_args()
    os.environ |= {"PYTHONDONTWRITEBYTECODE": "", "PIP_ROOT_USER_ACTION": "ignore"}
    if given.short:
        os.environ["EXAMPLES"] = SHORT_EXAMPLES
    (ROOT / "build/pythons").mkdir(parents=True, exist_ok=True)
    here = pythons()
    rows, was_ordinary = [], os.geteuid() != 0
    chosen = ends(here) if given.short else here
    # The suite waits for no packages: all environments but those of copies are made while the first one runs.
    pool = ThreadPoolExecutor(max_workers=1)
    made = {
        python: pool.submit(environment, python, ROOT, given.resolution)
        for python in ([] if given.short else chosen[1:])
    }
    for python in chosen:
        if python in made:
            wait([made[python]])
        reached = [*showing(python), *NOBODY, str(python.path), "-c", ""]
        is_root = os.geteuid() == 0
        is_open = is_root and not subprocess.run(reached, check=False).returncode
        if not (is_open and given.short):
            rows.append(outcome(python, given, ROOT))
        if is_open:
            rows.append(as_nobody(python, given))
            was_ordinary = True
        elif is_root and not given.short:
            rows.append(
                [
                    f"{python.version} as nobody",
                    python.sqlite,
                    "NOT RUN: closed to others",
                    "",
                ]
            )
    print("\nversion, SQLite, passed, failed")
    for row in rows:
        print(" ".join(f"{cell:<26}" for cell in row).rstrip())
    present = {python.release for python in here}
    for version in EXPECTED:
        if version not in present:
            print(f"NOT RUN: {version} is not on this machine")
    if not was_ordinary:
        print("NOT RUN: as an ordinary user, to whom every Python here is closed")
    sys.exit(any(row[3] not in {"0", ""} for row in rows))


if __name__ == "__main__":
    main()
