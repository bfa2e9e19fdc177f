"""Installations broken for real, one fault each: what the doctor says of it, and what repair does."""

from __future__ import annotations

import functools
import json
import os
import shutil
import socket
import sqlite3
import tempfile
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from unittest.mock import patch

from mnemosyned import Memory
from mnemosyned.cli.maintenance import checks
from mnemosyned.cli.maintenance.checks import Finding
from mnemosyned.cli.maintenance.doctor import examine, present_installation, repair
from mnemosyned.models.encoder_file import checked_resource

STAMP = "20260301T120000Z"
CHARS_MAX = 110
_check_resource_once = functools.cache(checked_resource)
"""The check that hashes the encoder's files, which no case breaks, takes 50 ms."""


@dataclass(frozen=True, slots=True)
class Home:
    """The home of a user who has a memory, and no daemon running."""

    path: Path

    @property
    def state(self) -> Path:
        return self.path / ".local" / "state" / "mnemosyned"

    @property
    def database(self) -> Path:
        return self.state / "memory.db"

    @property
    def config(self) -> Path:
        return self.path / ".config" / "mnemosyned" / "mnemosyned.yaml"

    @property
    def socket(self) -> Path:
        return self.state / "mnemosyned.sock"

    @property
    def environment(self) -> dict[str, str]:
        return {
            "HOME": str(self.path),
            "XDG_STATE_HOME": str(self.path / ".local" / "state"),
            "XDG_CONFIG_HOME": str(self.config.parents[1]),
            "PATH": str(self.path / "bin"),
        }

    def configure(self, text: str) -> None:
        self.config.write_text(text)

    def sql(self, statement: str) -> None:
        """Change the database behind the product's back."""
        with closing(sqlite3.connect(self.database)) as connection, connection:
            connection.execute(statement)

    def program(self, name: str, script: str) -> None:
        """Put a program on the PATH, which has no other."""
        file = self.path / "bin" / name
        file.write_text(f"#!/bin/sh\n{script}\n")
        file.chmod(0o755)

    @contextmanager
    def lived_in(self) -> Iterator[None]:
        """Have this process belong to this home."""
        kept = ("TMPDIR", "LANG", "PYTEST_CURRENT_TEST")
        environment = {name: os.environ[name] for name in kept if name in os.environ}
        with (
            patch.dict(os.environ, environment | self.environment, clear=True),
            patch.object(checks, "checked_resource", _check_resource_once),
        ):
            yield


def make_home(path: Path, database: Path) -> Home:
    """A home with a copy of a database, and with settings."""
    home = Home(path)
    for folder in (home.state, home.config.parent, path / "bin"):
        folder.mkdir(parents=True, mode=0o700)
    shutil.copy(database, home.database)
    home.database.chmod(0o600)
    home.configure("auto_sleep: true\n")
    home.config.chmod(0o600)
    return home


def fill(database: Path) -> None:
    """A memory of each tier, with details and learnings."""
    with Memory(database) as memory:
        for number in range(6):
            memory.remember(
                f"Ada paid {number}.50 EUR for tea", id=f"m{number}", session="shop"
            )
        memory.sleep(force=True)
        memory.remember("tea at four", id="fresh")
        memory.learn("Answer in English.")


# --------------------------------------------------------------- the faults


def unreadable_settings(home: Home) -> None:
    home.config.write_bytes(b"\xff\xfe\x00")


def cut_database(home: Home) -> None:
    os.truncate(home.database, home.database.stat().st_size // 2)


def damaged_page(home: Home) -> None:
    data = bytearray(home.database.read_bytes())
    data[4_096 * 3 : 4_096 * 9] = b"\x55" * (4_096 * 6)
    home.database.write_bytes(data)


def damaged_index(home: Home) -> None:
    with closing(sqlite3.connect(home.database)) as connection:
        ((page,),) = connection.execute(
            "SELECT rootpage FROM sqlite_schema WHERE name = 'sqlite_autoindex_archive_1'"
        )
        ((size,),) = connection.execute("PRAGMA page_size")
    data = bytearray(home.database.read_bytes())
    place = slice((page - 1) * size, page * size)
    data[place] = data[place].replace(b"m3", b"m9")
    home.database.write_bytes(data)


def other_program(home: Home) -> None:
    home.database.unlink()
    home.sql("CREATE TABLE bookmarks (url TEXT)")
    home.database.chmod(0o600)


def hard_link(home: Home) -> None:
    os.link(home.database, home.state / "second.db")


def dead_socket(home: Home) -> None:
    with closing(socket.socket(socket.AF_UNIX)) as left:
        left.bind(str(home.socket))


def linked_lock(home: Home) -> None:
    (home.state / "memory.db.lock").symlink_to(home.path / "letter")


def old_backup(home: Home) -> None:
    (home.state / "backups").mkdir()
    shutil.copy(home.database, home.state / "backups" / f"memory-{STAMP}.db")
    home.configure("backup:\n  schedule: daily\n")


def interrupted_restore(home: Home) -> None:
    home.database.rename(home.state / f"memory.db.restore-{STAMP}")


def waiting_calls(home: Home, spool: str = "spool") -> None:
    (home.state / spool).mkdir()
    call = home.state / spool / "1-call"
    call.write_text("{}")
    os.utime(call, (1_700_000_000, 1_700_000_000))


def calls_for_another_owner(home: Home) -> None:
    waiting_calls(home, "spool@server:7464@2")


def calls_for_another_address(home: Home) -> None:
    calls_for_a_former_owner(home, "spool@former:7464@3")


def calls_for_a_group(home: Home) -> None:
    calls_for_a_former_owner(home, "spool@server:7464@3@team")


def calls_for_a_renamed_group(home: Home) -> None:
    calls_for_a_former_owner(home, "spool@server:7464@3@crew")


def calls_for_a_former_owner(home: Home, place: str = "spool@server:7464@2") -> None:
    waiting_calls(home, place)
    token = home.state / "token"
    token.write_text("mnt_3_" + "t" * 43)
    token.chmod(0o600)
    login = {
        "url": "https://server:7464",
        "token_file": str(token),
        "folders": {"/w/shop": "team"},
    }
    home.config.with_name("connection.json").write_text(json.dumps(login))


def odd_in_spool(home: Home) -> None:
    (home.state / "spool" / ".odd-1-folder").mkdir(parents=True)
    (home.state / "spool" / "c-1").symlink_to("nowhere")


def failed_unit(home: Home) -> None:
    home.program(
        "systemctl",
        "echo LoadState=loaded; echo ActiveState=failed; echo UnitFileState=disabled; "
        "echo MainPID=0; echo Result=exit-code",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One fault: how it is brought about, and what is to be said and done."""

    name: str
    says: str
    command: str
    repairs: str = ""
    """What `--repair` says that it did; empty where it can do nothing."""
    sql: Sequence[str] = ()
    settings: str = ""
    files: Mapping[str, str] = field(default_factory=dict)
    modes: Mapping[str, int] = field(default_factory=dict)

    def breaks(self, home: Home) -> None:
        """Bring the fault about."""
        for name, text in self.files.items():
            (home.state / name).parent.mkdir(exist_ok=True)
            (home.state / name).write_text(text)
        for name, mode in self.modes.items():
            (home.state / name).chmod(mode)
        for statement in self.sql:
            home.sql(statement)
        if self.settings:
            home.configure(self.settings.format(home=home.path, state=home.state))
        if by_function := globals().get(self.name.replace(" ", "_")):
            by_function(home)


CASES = [
    Case(name=name.replace("_", " "), **case)
    for name, case in tomllib.loads(
        Path(__file__).with_suffix(".toml").read_text("utf-8")
    ).items()
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What the doctor found of a broken installation, before and after repair."""

    finding: Finding | None
    """The finding that the case asks for."""
    findings: list[Finding]
    repairs: list[str]
    left: Finding | None
    """The same finding after repair."""


def outcome(case: Case, home: Home) -> Outcome:
    """Break an installation, look at it, repair it, and look again."""
    case.breaks(home)
    with home.lived_in():
        findings = examine(present_installation())
        repairs = list(repair(findings, present_installation()))
        again = examine(present_installation())
    return Outcome(
        finding=_saying(case.says, findings),
        findings=findings,
        repairs=repairs,
        left=_saying(case.says, again),
    )


def _saying(words: str, findings: list[Finding]) -> Finding | None:
    return next((each for each in findings if words in each.text), None)


def main() -> None:
    """Print, as a Markdown table, what the doctor says of each installation."""
    with tempfile.TemporaryDirectory(prefix="mn-") as name:
        room = Path(name)
        fill(room / "memory.db")
        print("| broken | what it said | to mend it | what repair did |")
        print("|---|---|---|---|")
        for number, case in enumerate(CASES):
            home = make_home(room / f"h{number}", room / "memory.db")
            seen = outcome(case, home)
            said, command = "NOT FOUND", ""
            if seen.finding:
                said = f"{seen.finding.severity.value}: {seen.finding.text}"
                command = seen.finding.command
            did = "; ".join(seen.repairs) if case.repairs else "nothing"
            cells = [case.name, said, f"`{command}`", did]
            row = " | ".join(shown(cell, home.path) for cell in cells)
            print(f"| {row} |")


def shown(text: str, home: Path) -> str:
    line = text.replace(str(home), "~").replace("|", "\\|").replace("\n", " ")
    return line if len(line) <= CHARS_MAX else f"{line[:CHARS_MAX]}…"


if __name__ == "__main__":
    main()
