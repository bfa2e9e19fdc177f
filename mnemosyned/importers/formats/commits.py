"""Commits of a git repository, or of the saved output of `git log`."""

from __future__ import annotations

import os
import re
import subprocess
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from tempfile import TemporaryFile
from typing import BinaryIO, cast

from mnemosyned.importers import importer, reading
from mnemosyned.importers.projects import project_of
from mnemosyned.verbs.memories import Remember

VAULT_FOLDER = ".obsidian"
"""Folder of an Obsidian vault, which is read as notes even if it is in git."""
_SAFE = (
    "--no-pager",
    "-c", "core.fsmonitor=false",
    "-c", "core.hooksPath=/dev/null",
    "-c", "protocol.allow=never",
    "-c", "log.showSignature=false",
)  # fmt: skip
"""Options that disable programs and fetches in a repository's own configuration."""
_ENVIRONMENT = {
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_NO_LAZY_FETCH": "1",
    "LC_ALL": "C.UTF-8",
}
_SAVED_HASH = re.compile(r"commit ([0-9a-f]{7,64})\b")
_SAVED_FIELD = re.compile(r"(Author|Date|AuthorDate):\s+(.*)")
_DATE_FORMS = (
    "%a %b %d %H:%M:%S %Y %z",
    "%Y-%m-%d %H:%M:%S %z",
    "%a, %d %b %Y %H:%M:%S %z",
)
"""The forms default, iso and rfc of git's dates."""


@dataclass(slots=True)
class _Commit(reading.FileRecord):
    hash: str = ""
    author: str = ""
    address: str = ""
    date: str = ""
    lines: list[str] = field(default_factory=list)


class GitRepository(importer.ImportFormat):
    """The history of a repository's present branch."""

    name = "git"

    def recognizes(self, source: importer.ImportSource) -> bool:
        """Return True for the folder of a git repository that is not an Obsidian vault."""
        path = source.path
        is_bare = (path / "HEAD").is_file() and (path / "objects").is_dir()
        is_vault = (path / VAULT_FOLDER).is_dir()
        is_repository = (path / ".git").exists() or is_bare
        return source.is_folder and is_repository and not is_vault

    def size(self, _source: importer.ImportSource) -> int:
        """Return 0: the size of the history is unknown before git has run."""
        return 0

    def read_records(
        self, source: importer.ImportSource, position: str
    ) -> importer.Records:
        """Yield the checked-out branch's commits after a position, oldest first. Raises `SourceRefused`."""
        start = reading.RecordPosition.parse(position)
        make = partial(_memory_of_commit, project_of(source.path.absolute()).key)
        arguments = [
            "git", "-C", str(source.path.absolute()), *_SAFE, "log", "--reverse", "--topo-order",
            "--no-color", "--no-show-signature", "--no-notes", "--no-mailmap", "--encoding=UTF-8",
            "--no-patch", "--no-decorate", "--no-abbrev-commit", "--no-expand-tabs",
            "--format=medium", "--date=iso-strict", "--max-count=5000000", "HEAD", "--",
        ]  # fmt: skip
        try:
            with (
                TemporaryFile() as errors,
                subprocess.Popen(  # noqa: S603 fixed arguments
                    arguments,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=errors,  # a pipe that nobody reads would hold git up
                    env={**os.environ, **_ENVIRONMENT},
                ) as process,
                ExitStack() as stack,
            ):
                stack.callback(process.kill)
                output = cast("BinaryIO", process.stdout)
                commits = reading.group_lines(
                    reading.lines_of(output), _take_saved_line
                )
                further = (each for each in commits if each.number > start.number)
                yield from reading.convert_records(
                    source, further, make, noun="commit", start=start
                )
                if process.wait():
                    errors.seek(0)
                    said = reading.decode_text(errors.read(4_096)).strip().splitlines()
                    raise importer.SourceRefused(f"git says: {[*said, 'nothing'][0]}")
        except FileNotFoundError as error:
            raise importer.SourceRefused("git is not installed") from error


class SavedLog(importer.ImportFormat):
    """The output of `git log` in a file."""

    name = "git-log"

    def recognizes(self, source: importer.ImportSource) -> bool:
        """Return True if a file begins like the output of `git log`: a hash, then an author or a date."""
        lines = reading.decode_text(source.head[:8_192]).lstrip("\ufeff").splitlines()
        return bool(lines) and bool(
            _SAVED_HASH.match(lines[0])
            and any(_SAVED_FIELD.match(line) for line in lines[1:6])
        )

    def read_records(
        self, source: importer.ImportSource, position: str
    ) -> importer.Records:
        """Yield the commits in the output of `git log` after a position, "byte offset/number"."""
        make = partial(_memory_of_commit, source.text_path.stem)
        return reading.read_grouped_lines(
            source, position, _take_saved_line, make, noun="commit"
        )


def _take_saved_line(line: reading.TextLine, commit: _Commit | None) -> _Commit | None:
    """Return a new commit if the line begins one; else add what the line says to `commit` and return None."""
    text = line.text
    if begins := _SAVED_HASH.match(text):
        return _Commit(label=begins[1][:12], hash=begins[1])
    if commit is None:
        return None
    if not commit.lines and (named := _SAVED_FIELD.match(text)):
        if named[1] == "Author":
            author, _, address = named[2].partition(" <")
            commit.author, commit.address = author.strip(), address.rstrip("> ")
        else:
            commit.date = named[2].strip()
    elif text.startswith("    "):
        commit.lines.append(text[4:])
    elif commit.lines and not text:
        commit.lines.append("")
    return None


def _memory_of_commit(project: str, commit: _Commit) -> Remember:
    """Return the memory of a commit. Raises `RecordRefused` if it has no message or no readable date."""
    text = "\n".join(commit.lines).strip()[:100_000]
    moment = _parse_date(commit.date)
    if not text:
        raise importer.RecordRefused("the commit has no message")
    if moment is None:
        raise importer.RecordRefused(f"its date {commit.date!r} cannot be read")
    return Remember(
        text,
        id=importer.stable_id("git", commit.hash),
        session=f"git:{project}",
        source="git",
        role=commit.author,
        created_at=moment,
        metadata={
            "commit": commit.hash,
            "address": commit.address,
            "project": project,
        },
    )


def _parse_date(text: str) -> datetime | None:
    """Return the time in a date as git writes it, in any usual form; None for other texts."""
    if moment := importer.moment_from(text):
        return moment
    for form in _DATE_FORMS:
        with suppress(ValueError):
            return datetime.strptime(text, form)  # noqa: DTZ007 each form has a zone
    return None
