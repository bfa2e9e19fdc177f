"""The audit log without a database: its files, its queue, and what it does when neither can be written."""

import os
from collections.abc import Sequence
from contextlib import nullcontext
from datetime import datetime
from pathlib import Path
from typing import Any, cast

import pytest

from mnemosyned.errors import StorageFailed
from mnemosyned.service import audit
from mnemosyned.service.audit import (
    AuditEntry,
    AuditFile,
    AuditLog,
    ChainVerifier,
    Requester,
    parse_line,
    read_lines,
)

NOBODY = 65_534
ANNA = Requester(2, "0a", "token", "192.0.2.7")._asdict()


class FakeTable:
    """A table in memory, which can be out of reach."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.is_away = False
        self.connections = 0

    def append(self, lines: Sequence[tuple[str, int, datetime, str]]) -> int:
        if self.is_away:
            raise StorageFailed("the database cannot be reached")
        self.lines += [line for *_, line in lines]
        return 0

    def heads(self, limit: int) -> dict[str, tuple[int, str]]:
        assert limit
        return {}

    def names(self, owners: Sequence[int]) -> dict[int, str]:
        return dict.fromkeys(owners, "anna")

    def find_lacking(self, lines: Sequence[object]) -> list[object]:
        return [*lines[:0]]

    @property
    def entries(self) -> list[AuditEntry]:
        return [entry for line in self.lines if (entry := parse_line(line))]


def log_on(
    table: FakeTable, file: AuditFile | None = None, *, strict: bool = False
) -> AuditLog:
    return AuditLog(cast("Any", table), file, strict=strict)


@pytest.fixture(autouse=True)
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit, "RETRY_S", 0.01)
    monkeypatch.setattr(audit, "GATHER_S", 0.01)


@pytest.fixture
def table() -> FakeTable:
    return FakeTable()


@pytest.fixture
def file(tmp_path: Path) -> AuditFile:
    return AuditFile(tmp_path / "audit.jsonl")


def test_a_file_that_cannot_be_written_is_as_before_and_gets_all_lines_later(
    table: FakeTable, file: AuditFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: int) -> None:
        raise OSError(28, "No space left on device")

    with log_on(table, file) as log:
        log.note("recall", whole=True, **ANNA)
        (path,) = file.files()
        before = path.read_bytes()
        with monkeypatch.context() as patch:
            patch.setattr(os, "fdatasync", refuse)
            log.note("remember", ids=["a"], whole=True, **ANNA)
            assert path.read_bytes() == before
        log.note("forgotten", ids=["a"], whole=True, **ANNA)

    verbs = [entry.verb for entry in table.entries]
    assert verbs == ["started", "recall", "remember", "forgotten", "stopped"]
    assert list(read_lines(file.files())) == table.lines


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can begin another's file")
def test_a_file_that_root_begins_belongs_to_the_daemons_user(
    tmp_path: Path, file: AuditFile
) -> None:
    os.chown(tmp_path, NOBODY, NOBODY)
    file.append(["{}"])

    (path,) = file.files()
    assert (path.stat().st_uid, path.stat().st_mode & 0o777) == (NOBODY, 0o600)


@pytest.mark.parametrize("strict", [False, True])
def test_a_strict_log_refuses_what_it_cannot_write_and_another_counts_it(
    table: FakeTable, monkeypatch: pytest.MonkeyPatch, *, strict: bool
) -> None:
    monkeypatch.setattr(audit, "QUEUE_MAX", 3)
    table.is_away = True
    refused = pytest.raises(StorageFailed, match="cannot be written")
    with log_on(table, strict=strict) as log:
        for _ in range(5):
            with refused if strict else nullcontext():
                log.note("recall", whole=True, **ANNA)
        with refused if strict else nullcontext():
            log.check()
        table.is_away = False

    lost = [entry.count for entry in table.entries if entry.verb == "lost"]
    assert sum(lost) + sum(entry.verb == "recall" for entry in table.entries) == 5
    assert lost


def test_a_line_that_a_crash_cut_off_is_no_fault_and_spoils_none(
    file: AuditFile,
) -> None:
    for whole in (True, False):
        with log_on(FakeTable(), file) as log:
            log.note("recall", whole=True, **ANNA)
        (path,) = file.files()
        if whole:
            path.write_bytes(path.read_bytes()[:-30])
    verifier = ChainVerifier()
    for line in read_lines(file.files()):
        verifier.check(line)

    assert (verifier.faults, verifier.unreadable, len(verifier.open)) == ([], 1, 1)


def test_failed_logins_are_counted_by_address_and_addresses_have_a_limit(
    table: FakeTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit, "ADDRESSES_MAX", 2)
    with log_on(table) as log:
        for number in (1, 1, 2, 3):
            log.note_failed_login(f"192.0.2.{number}", 7)

    logins = [entry for entry in table.entries if entry.verb == "login"]
    found = {(entry.address, entry.about): entry.count for entry in logins}
    assert found == {("192.0.2.1", 7): 2, ("192.0.2.2", 7): 1, ("", 0): 1}
