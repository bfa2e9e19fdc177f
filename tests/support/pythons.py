"""Runs the fast suite on every Python of this machine, each in an environment of its own in build.

    python tests/support/pythons.py [--short] [--resolution lowest-direct|highest] -- MARKS

As root it runs once more as an ordinary user, in a copy of the checkout. A version that is not here
is named at the end: its row says NOT RUN. `--short` leaves out the Python of this environment, and
runs the oldest as an ordinary user alone.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from platform import python_version

ROOT = Path(__file__).resolve().parents[2]
EXPECTED = ("3.11", "3.12", "3.13", "3.14")
"""The versions that pyproject.toml names."""
LIMIT_S = 1_800
NOBODY = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")
ABOUT = (
    "import sys, sqlite3, ensurepip; print(sys.implementation.name == 'cpython' and"
    " sys.version_info >= (3, 11) and '.'.join(map(str, sys.version_info[:3])), sqlite3.sqlite_version)"
)
SUITE = ("-m", "pytest", "-q", "-n", "3", "--dist", "worksteal", "-m")


@dataclass(frozen=True, slots=True)
class Python:
    """An interpreter of this machine."""

    path: Path
    version: str
    sqlite: str


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


def environment(python: Python, home: Path, resolution: str, *user: str) -> list[str]:
    """Make an environment once, with the checkout `home` in it; return how its Python is called."""
    folder = Path("build/pythons") / f"{python.version}-{resolution or 'locked'}"
    needs = [home / "requirements.lock", home / "pyproject.toml"]
    state = sha256(b"".join(file.read_bytes() for file in needs)).hexdigest()
    ready, program = home / folder / ".ready", folder / "bin/python"
    if ready.exists() and ready.read_text("utf-8") == state:
        return [*user, str(program)]
    shutil.rmtree(home / folder, ignore_errors=True)
    pip = f"{program} -m pip install -q --disable-pip-version-check"
    commands = [
        f"{pip} --require-hashes -r requirements.lock",
        f"{pip} --no-deps --no-build-isolation -e .",
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


def counted(program: Sequence[str], home: Path, marks: str, log: Path) -> list[str]:
    """Run the suite; return how many tests passed and failed. What failed is printed."""
    with log.open("w", encoding="utf-8") as output:
        code = subprocess.run(
            [*program, *SUITE, marks],
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
    return [str(numbers.get("passed", 0)), str(failed if failed or not code else "all")]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--short", action="store_true")
    parser.add_argument("--resolution", default="")
    parser.add_argument("marks")
    given = parser.parse_args()
    os.environ |= {"PYTHONDONTWRITEBYTECODE": "", "PIP_ROOT_USER_ACTION": "ignore"}
    here = [
        one for one in pythons() if not given.short or one.version != python_version()
    ]
    rows = []
    for number, python in enumerate(here):
        name = f"{python.version} {given.resolution}".strip()
        if not (given.short and number == 0 and os.geteuid() == 0):
            print(f"{name}: SQLite {python.sqlite}", flush=True)
            program = environment(python, ROOT, given.resolution)
            log = ROOT / f"build/pythons/{name.replace(' ', '-')}.log"
            rows.append(
                [name, python.sqlite, *counted(program, ROOT, given.marks, log)]
            )
        if os.geteuid() == 0:
            rows.append(as_nobody(python, given.resolution, given.marks))
    present = {one.version.rpartition(".")[0] for one in (*here, *pythons())}
    print("\nversion, SQLite, passed, failed")
    for row in rows:
        print(" ".join(f"{cell:<26}" for cell in row).rstrip())
    for version in EXPECTED:
        if version not in present:
            print(f"NOT RUN: {version} is not on this machine")
    sys.exit(any(row[3] not in {"0", ""} for row in rows))


def as_nobody(python: Python, resolution: str, marks: str) -> list[str]:
    """Run the suite as an ordinary user, to whom root's files are closed."""
    name = f"{python.version} {resolution}".strip() + " as nobody"
    reached = subprocess.run([*NOBODY, python.path, "-c", ""], check=False).returncode
    if reached:
        return [name, python.sqlite, "NOT RUN: closed to nobody", ""]
    print(f"{name}: SQLite {python.sqlite}", flush=True)
    with tempfile.TemporaryDirectory(prefix="mn-") as folder:
        home = Path(folder) / "checkout"
        tracked = subprocess.run(
            ["git", "ls-files", "-z"],
            cwd=ROOT,
            capture_output=True,
            check=True,
            text=True,
        )
        for file in filter(None, tracked.stdout.split("\0")):
            if (ROOT / file).is_file():
                (home / file).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / file, home / file)
        subprocess.run(["chown", "-R", "65534:65534", folder], check=True)
        user = ("env", f"HOME={folder}", f"TMPDIR={folder}", *NOBODY)
        program = environment(python, home, resolution, *user)
        log = ROOT / f"build/pythons/{name.replace(' ', '-')}.log"
        return [name, python.sqlite, *counted(program, home, marks, log)]


if __name__ == "__main__":
    main()
