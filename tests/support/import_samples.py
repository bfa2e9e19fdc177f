"""The samples of `mnem import`, which lie as files in `tests/data/imports`, and their reading."""

from __future__ import annotations

import shutil
import sqlite3
import subprocess
import tomllib
import zipfile
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from mnemosyned.importers.importer import (
    START,
    BadRecord,
    ImportFormat,
    ImportItem,
    ImportSource,
)
from mnemosyned.importers.run import recognize_format

FOLDER = Path(__file__).parents[1] / "data" / "imports"


@dataclass(frozen=True, slots=True)
class Expected:
    """What a memory has to be; the time as ISO 8601 with its zone, or empty for any."""

    content: str
    session: str = ""
    source: str = ""
    role: str = ""
    created_at: str = ""


@dataclass(frozen=True, slots=True)
class Sample:
    """A source, and what has to be read from it."""

    name: str
    format: str
    path: str
    expected: list[Expected]
    bad: int = 0

    def write(self, folder: Path) -> Path:
        """Write it into a folder and return the path that is handed to `mnem import`."""
        return write_sample(self.name, folder)


def _samples() -> dict[str, Sample]:
    listed = tomllib.loads((FOLDER / "samples.toml").read_text("utf-8"))
    return {
        name: Sample(
            name,
            found["format"],
            found["path"],
            [Expected(*fields) for fields in found["expected"]],
            found.get("bad", 0),
        )
        for name, found in listed.items()
    }


SAMPLES = _samples()


def write_sample(name: str, folder: Path) -> Path:
    """Write a sample into a folder and return its path; SQL becomes a database, `….zip/` an archive."""
    if name == "git_repository":
        _commit(folder / SAMPLES[name].path)
    else:
        shutil.copytree(FOLDER / name, folder, dirs_exist_ok=True)
    for script in list(folder.rglob("*.sql")):
        with closing(sqlite3.connect(script.with_suffix(""))) as connection:
            connection.executescript(script.read_text("utf-8"))
        script.unlink()
    for members in list(folder.rglob("*.zip/")):
        packed = members.rename(members.with_suffix(".folder"))
        with zipfile.ZipFile(members, "w", zipfile.ZIP_DEFLATED) as archive:
            for file in sorted(each for each in packed.rglob("*") if each.is_file()):
                archive.write(file, file.relative_to(packed))
        shutil.rmtree(packed)
    return folder / SAMPLES[name].path


def _commit(repository: Path) -> None:
    """Make a repository of two commits."""
    repository.mkdir()
    environment = {
        "GIT_CONFIG_GLOBAL": "/dev/null",
        "GIT_CONFIG_SYSTEM": "/dev/null",
        "HOME": str(repository.parent),
        "PATH": "/usr/bin:/bin:/usr/local/bin",
        "GIT_AUTHOR_NAME": "Ann Bäcker",
        "GIT_AUTHOR_EMAIL": "ann@example.org",
        "GIT_COMMITTER_NAME": "Bob",
        "GIT_COMMITTER_EMAIL": "bob@example.org",
    }
    commit = ["commit", "-q", "--allow-empty", "-m"]
    for date, command in (
        ("", ["init", "-q", "-b", "main", "--template="]),
        ("2026-03-16T09:00:00+01:00", [*commit, "Round tax\n\nHalf to even."]),
        ("2026-03-16T10:00:00+01:00", [*commit, "Two"]),
    ):
        dates = {"GIT_AUTHOR_DATE": date, "GIT_COMMITTER_DATE": date} if date else {}
        subprocess.run(
            ["git", *command], cwd=repository, env={**environment, **dates}, check=True
        )


def format_of(path: Path) -> ImportFormat:
    format = recognize_format(ImportSource.of_path(path))
    assert format, f"{path} is not recognized"
    return format


def read(path: Path, position: str = START) -> tuple[list[ImportItem], list[BadRecord]]:
    records = list(format_of(path).read(ImportSource.of_path(path), position))
    return (
        [record for record in records if isinstance(record, ImportItem)],
        [record for record in records if isinstance(record, BadRecord)],
    )
