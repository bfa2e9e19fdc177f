"""Make the release of this commit in `dist`: both distributions, checksums, notes, and what a person does next.

    python config/packaging/release.py [--tag v0.1.0]

Each distribution is built twice, in two folders with other modes and times of its files; the hashes
must be the same. Nothing is signed or published here. `--tag` is of the workflow that publishes: it
fails where the release is not prepared, or the tag is of another version.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(Path(__file__).parent))
from build_hooks import readme_for_index  # noqa: E402 of this folder

DIST = "dist"
UMASKS = (0o022, 0o077)
OFFLINE = ("--no-deps", "--no-build-isolation", "--no-index", "--quiet")


PUBLICATION = """\
Read dist/NOTES.md.
Once only: on PyPI, add a trusted publisher for mnemosyned: this repository, the workflow release.yml, the \
environment pypi. In the repository's settings make that environment, with yourself as its reviewer.
Sign the tag: git tag -s v{version} -m 'mnemosyned {version}'
Publish it: git push origin v{version}
The workflow `release` builds again and waits for your review. Compare the SHA256SUMS that it prints with \
dist/SHA256SUMS, then approve it.
"""
"""Each line is a step of the person who publishes."""


class NotReleasable(Exception):
    """The commit is not one to release; the text says what to do."""


def run(*words: str | Path, cwd: Path, **environ: str) -> str:
    """Return what a command prints; raise with what it printed if it fails."""
    done = subprocess.run(
        [str(word) for word in words],
        cwd=cwd,
        env={**os.environ, **environ},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise NotReleasable(
            f"{' '.join(map(str, words))} failed: {done.stdout}{done.stderr}"
        )
    return done.stdout


def copy_files(root: Path, target: Path, umask: int, age_s: int) -> None:
    """Copy the files of the work tree that git knows, as a checkout with this umask has them."""
    for name in run("git", "ls-files", "-z", cwd=root).split("\0"):
        if name and (root / name).is_file():
            executable = (root / name).stat().st_mode & 0o100
            made = target / name
            made.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(root / name, made)
            made.chmod((0o777 if executable else 0o666) & ~umask)
            os.utime(made, (made.stat().st_mtime - age_s,) * 2)


def build(root: Path, room: Path, *, umask: int, age_s: int) -> dict[str, str]:
    """Build the sdist, and the wheel from the sdist, in `room`; return their hashes."""
    source = room / "source"
    copy_files(root, source, umask, age_s)
    epoch = run("git", "log", "-1", "--format=%ct", cwd=root).strip()
    settings = {"SOURCE_DATE_EPOCH": epoch, "PYTHONDONTWRITEBYTECODE": "1"}
    hatchling = (sys.executable, "-m", "hatchling", "build", "-t", "sdist")
    run(*hatchling, "-d", room, cwd=source, **settings)
    (sdist,) = room.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        archive.extractall(room, filter="data")
    unpacked = room / sdist.name.removesuffix(".tar.gz")
    pip = (sys.executable, "-m", "pip", "wheel", *OFFLINE, "-w", room)
    run(*pip, unpacked, cwd=room, **settings)
    made = [sdist, *room.glob("*.whl")]
    return {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in made}


def notes(changelog: str, version: str, repository: str) -> str:
    """Return the changelog's section of the version, or the unreleased one if it has none.

    Its links lead to the repository's files of the version.
    """
    sections = dict(
        re.findall(
            r"^## \[([^\]]+)\].*?\n(.*?)(?=^## |\Z)",
            changelog,
            re.MULTILINE | re.DOTALL,
        )
    )
    section = (sections.get(version) or sections["Unreleased"]).strip()
    return readme_for_index(section, repository, version) + "\n"


def read_repository(root: Path) -> str:
    """Return the address of the public repository in pyproject.toml, or an empty text."""
    project = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))
    return str(project["tool"]["hatch"]["metadata"]["hooks"]["custom"]["repository"])


def read_version(root: Path) -> str:
    """Return the version of the package in a checkout."""
    text = (root / "mnemosyned" / "version.py").read_text("utf-8")
    return re.findall(r'^__version__ = "(.+)"$', text, re.MULTILINE)[0]


def preparations(root: Path, version: str) -> list[str]:
    """Return what is still to be done, in words, before this commit can be published."""
    missing = []
    changelog = (root / "CHANGELOG.md").read_text("utf-8")
    if not re.search(
        rf"^## \[{re.escape(version)}\] - \d{{4}}-\d\d-\d\d$", changelog, re.MULTILINE
    ):
        missing.append(
            f"In CHANGELOG.md, write `## [{version}] - DATE` below `## [Unreleased]`."
        )
    if not read_repository(root):
        missing.append(
            "In pyproject.toml, set `repository` to the address of the public repository."
        )
    if "\nIS_PUBLISHED = True\n" not in (root / "mnemosyned" / "version.py").read_text(
        "utf-8"
    ):
        missing.append(
            "In mnemosyned/version.py, set `IS_PUBLISHED` to True; `.venv/bin/python -m pytest "
            "tests/integration/test_install_texts.py` then names each line of a page that has to follow."
        )
    return missing


def next_steps(version: str, missing: list[str]) -> str:
    """Return what a person does next, numbered."""
    steps = [*missing, "Commit that, and run `make release` again."]
    if not missing:
        steps = PUBLICATION.format(version=version).splitlines()
    return "\n".join(f"{number}. {step}" for number, step in enumerate(steps, 1))


def make_release(root: Path, tag: str | None) -> str:
    """Fill `dist`; return the next steps."""
    if changed := run("git", "status", "--porcelain", cwd=root):
        raise NotReleasable(f"commit or remove first:\n{changed}")
    version = read_version(root)
    missing = preparations(root, version)
    if tag is not None and (missing or tag != f"v{version}"):
        raise NotReleasable(
            "\n".join([f"{tag} of version {version} cannot be published.", *missing])
        )
    builds = []
    dist = root / DIST
    shutil.rmtree(dist, ignore_errors=True)
    dist.mkdir()
    for number, umask in enumerate(UMASKS):
        with tempfile.TemporaryDirectory() as made:
            room = Path(made) / f"build-{number}"
            room.mkdir()
            builds.append(build(root, room, umask=umask, age_s=86_400 * number))
            for name in builds[-1]:
                shutil.copyfile(room / name, dist / name)
    if builds[0] != builds[1]:
        shutil.rmtree(dist)
        raise NotReleasable(f"two builds differ: {builds}; nothing of them is in dist")
    sums = "".join(f"{digest}  {name}\n" for name, digest in sorted(builds[0].items()))
    (dist / "SHA256SUMS").write_text(sums, "utf-8")
    changelog = (root / "CHANGELOG.md").read_text("utf-8")
    text = notes(changelog, version, read_repository(root))
    (dist / "NOTES.md").write_text(text, "utf-8")
    return f"{sums}\nBuilt twice, with the same hashes. Next:\n{next_steps(version, missing)}"


def main() -> int:
    """Run the command."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--tag", help="the tag that is published")
    try:
        print(make_release(ROOT, parser.parse_args().tag))
    except NotReleasable as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
