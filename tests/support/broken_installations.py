"""Installations broken for real, one fault each: what the doctor says of it, and what repair does."""

from __future__ import annotations

import os
import shutil
import socket
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from unittest.mock import patch

from mnemosyned import Memory
from mnemosyned.cli.maintenance.doctor import examine, present_installation, repair
from mnemosyned.cli.maintenance.findings import Finding

STAMP = "20260301T120000Z"


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
        with patch.dict(os.environ, environment | self.environment, clear=True):
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


def unknown_setting(home: Home) -> None:
    home.configure("wm_maxx: 5\n")


def no_yaml(home: Home) -> None:
    home.configure("sleep: [\n")


def unreadable_settings(home: Home) -> None:
    home.config.write_bytes(b"\xff\xfe\x00")


def missing_key_file(home: Home) -> None:
    home.configure("llm:\n  api_key_file: /nowhere/key\n")


def cut_database(home: Home) -> None:
    os.truncate(home.database, home.database.stat().st_size // 2)


def damaged_page(home: Home) -> None:
    data = bytearray(home.database.read_bytes())
    data[4_096 * 3 : 4_096 * 9] = b"\x55" * (4_096 * 6)
    home.database.write_bytes(data)


def no_database(home: Home) -> None:
    home.database.write_text("Dear Ada, this is a letter and not a database")


def other_program(home: Home) -> None:
    home.database.unlink()
    home.sql("CREATE TABLE bookmarks (url TEXT)")
    home.database.chmod(0o600)


def later_schema(home: Home) -> None:
    home.sql("PRAGMA user_version = 9999")


def hard_link(home: Home) -> None:
    os.link(home.database, home.state / "second.db")


def unindexed_memory(home: Home) -> None:
    home.sql("DELETE FROM memory_fts_docsize WHERE id = 1")


def indexed_nothing(home: Home) -> None:
    home.sql("INSERT INTO memory_fts (rowid, content, role) VALUES (999, 'x', '')")


def words_changed_by_hand(home: Home) -> None:
    home.sql("UPDATE working_memory SET content = 'coffee at nine'")


def index_destroyed(home: Home) -> None:
    home.sql("UPDATE memory_fts_data SET block = x'00' WHERE id = 10")


def orphaned_details(home: Home) -> None:
    home.sql("INSERT INTO detail VALUES (999, 1, '7.50 EUR', 0)")


def lost_values(home: Home) -> None:
    home.sql("DELETE FROM detail WHERE memory_seq = 3")


def orphaned_learning(home: Home) -> None:
    home.sql("UPDATE learning SET superseded_by = 'gone'")


def lost_summary(home: Home) -> None:
    home.sql("UPDATE archive SET episode_seq = 999")
    home.sql("DELETE FROM episodic_memory")
    home.sql("DELETE FROM consolidation_log")


def without_tags(home: Home) -> None:
    home.sql("DROP TABLE tag")


def without_details(home: Home) -> None:
    home.sql("DROP TABLE detail")


def without_totals(home: Home) -> None:
    home.sql("DROP TABLE tier_totals")


def without_a_trigger(home: Home) -> None:
    home.sql("DROP TRIGGER episodic_memory_inserted")


def without_an_index(home: Home) -> None:
    home.sql("DROP INDEX archive_episode")


def without_a_view(home: Home) -> None:
    home.sql("DROP VIEW summary_of")


def without_words(home: Home) -> None:
    home.sql("DROP TABLE memory_fts")


def without_migrations(home: Home) -> None:
    home.sql("DROP TABLE _sqlite_migrations")


def without_archive(home: Home) -> None:
    home.sql("DROP TABLE archive")


def miscounted_summaries(home: Home) -> None:
    home.sql("UPDATE episodic_memory SET item_count = 99")


def wrong_totals(home: Home) -> None:
    home.sql("UPDATE tier_totals SET count = 77 WHERE tier = 'working'")


def open_database(home: Home) -> None:
    home.database.chmod(0o644)


def open_folder(home: Home) -> None:
    home.state.chmod(0o777)


def open_token(home: Home) -> None:
    (home.state / "token").write_text("secret")
    (home.state / "token").chmod(0o640)


def dead_socket(home: Home) -> None:
    with closing(socket.socket(socket.AF_UNIX)) as left:
        left.bind(str(home.socket))


def file_at_socket(home: Home) -> None:
    home.socket.write_text("in the way")


def long_socket(home: Home) -> None:
    home.configure(f"socket: /tmp/{'x' * 110}/m.sock\n")


def linked_lock(home: Home) -> None:
    (home.state / "memory.db.lock").symlink_to(home.path / "letter")


def missing_model(home: Home) -> None:
    home.configure("llm:\n  model_path: /nowhere/small.gguf\n")


def no_model(home: Home) -> None:
    (home.state / "small.gguf").write_text("a text")
    home.configure(f"llm:\n  model_path: {home.state}/small.gguf\n")


def damaged_backup(home: Home) -> None:
    (home.state / "backups").mkdir()
    (home.state / "backups" / f"memory-{STAMP}.db").write_text("no backup")


def old_backup(home: Home) -> None:
    (home.state / "backups").mkdir()
    shutil.copy(home.database, home.state / "backups" / f"memory-{STAMP}.db")
    home.configure("backup:\n  schedule: daily\n")


def no_scheduled_backup(home: Home) -> None:
    home.configure(f"backup:\n  dir: {home.path}/copies\n")


def interrupted_restore(home: Home) -> None:
    home.database.rename(home.state / f"memory.db.restore-{STAMP}")


def unfinished_copy(home: Home) -> None:
    (home.state / "copy.db.partial").write_bytes(b"SQLite format 3\0")


def waiting_calls(home: Home) -> None:
    (home.state / "spool").mkdir()
    call = home.state / "spool" / "1-call"
    call.write_text("{}")
    os.utime(call, (1_700_000_000, 1_700_000_000))


def odd_in_spool(home: Home) -> None:
    (home.state / "spool" / ".odd-1-folder").mkdir(parents=True)
    (home.state / "spool" / "c-1").symlink_to("nowhere")


def clock_behind(home: Home) -> None:
    home.sql(
        "INSERT OR REPLACE INTO clock_seen "
        "VALUES (1, '2190-01-01T00:00:00.000000+00:00', 'boot', 0, 0, 0)"
    )


def failed_unit(home: Home) -> None:
    home.program(
        "systemctl",
        "echo LoadState=loaded; echo ActiveState=failed; echo UnitFileState=disabled; "
        "echo MainPID=0; echo Result=exit-code",
    )


@dataclass(frozen=True, slots=True)
class Case:
    """One fault: how it is brought about, and what is to be said and done."""

    breaks: Callable[[Home], None]
    says: str
    command: str
    repairs: str = ""
    """What `--repair` says that it did; empty where it can do nothing."""

    @property
    def name(self) -> str:
        return self.breaks.__name__.replace("_", " ")


REPAIR = "mnem doctor --repair"
RESTORE = "mnem restore-db"
CASES = (
    Case(unknown_setting, "did you mean wm_max?", "mnem config edit"),
    Case(no_yaml, "mnemosyned.yaml, line 2", "mnem config edit"),
    Case(unreadable_settings, "cannot be read", "mnem config edit"),
    Case(missing_key_file, "/nowhere/key cannot be read", "mnem config edit"),
    Case(cut_database, "malformed", RESTORE),
    Case(damaged_page, "memory.db is damaged", RESTORE),
    Case(no_database, "is not an SQLite database", RESTORE),
    Case(other_program, "of another program", "mnem config set database"),
    Case(later_schema, "schema version 9999", "install the version"),
    Case(hard_link, "has 2 names", "find "),
    Case(unindexed_memory, "texts without an entry: 1", REPAIR, "rebuilt"),
    Case(indexed_nothing, "entries without a text: 1", REPAIR, "rebuilt"),
    Case(words_changed_by_hand, "does not match the texts", REPAIR, "rebuilt"),
    Case(index_destroyed, "memory_fts", REPAIR, "rebuilt"),
    Case(
        orphaned_details,
        "belong to nothing: 1 (exact details)",
        REPAIR,
        "removed 1 exact details",
    ),
    Case(
        lost_values,
        "1 of the newest originals lack exact values",
        REPAIR,
        "extracted the exact values of 1 originals again",
    ),
    Case(
        orphaned_learning,
        "(learnings superseded by nothing)",
        REPAIR,
        "mended 1 learnings",
    ),
    Case(lost_summary, "rows of archive", REPAIR, "brought 6 originals"),
    Case(
        wrong_totals,
        "the working tier holds 1, but 77",
        REPAIR,
        "counted the working tier",
    ),
    Case(without_tags, "the table tag is missing", REPAIR, "made the table tag"),
    Case(without_details, "the table detail is missing", REPAIR, "made the table"),
    Case(without_totals, "the table tier_totals is", REPAIR, "made the table tier_to"),
    Case(without_a_trigger, "the trigger episodic", REPAIR, "made the trigger"),
    Case(without_an_index, "the index archive_episode is", REPAIR, "made the index"),
    Case(without_a_view, "the view summary_of is missing", REPAIR, "made the view"),
    Case(without_words, "the table memory_fts is", REPAIR, "rebuilt the full-text"),
    Case(without_migrations, "_sqlite_migrations is missing", REPAIR, "made the table"),
    Case(without_archive, "the table archive is missing", RESTORE),
    Case(
        miscounted_summaries,
        "another number of originals than they have",
        REPAIR,
        "counted the originals of",
    ),
    Case(open_database, "others can read or write", "chmod 600", "closed"),
    Case(open_folder, "others can write to", "chmod 700", "closed"),
    Case(open_token, "others can read or write", "chmod 600", "closed"),
    Case(dead_socket, "is dead", REPAIR, "removed the dead socket"),
    Case(file_at_socket, "is no socket", "mv "),
    Case(long_socket, "more than 107", "mnem config set socket"),
    Case(linked_lock, "is a symbolic link", "rm "),
    Case(missing_model, "there is no file /nowhere/small.gguf", "mnem model list"),
    Case(no_model, "is not a model in GGUF format", "mnem model list"),
    Case(damaged_backup, "the newest backup", "mnem backup"),
    Case(old_backup, "and old", "mnem backup"),
    Case(no_scheduled_backup, "there is no backup", "mnem backup"),
    Case(interrupted_restore, "a restore was interrupted", "mnem start", "finished"),
    Case(unfinished_copy, "never finished", REPAIR, "removed"),
    Case(waiting_calls, "1 call of agents' hooks", "mnem start"),
    Case(odd_in_spool, "1 entry of ", "ls -la "),
    Case(clock_behind, "the clock is behind", "timedatectl"),
    Case(failed_unit, "the unit failed (exit-code)", "mnem logs"),
)


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
