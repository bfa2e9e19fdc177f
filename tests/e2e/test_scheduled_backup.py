"""A daemon that is given a folder makes backups there by itself, and says when that fails."""

from __future__ import annotations

from pathlib import Path

import pytest
from e2e.conftest import Start
from e2e.consistency import damage
from e2e.daemons import eventually, kept

pytestmark = [pytest.mark.e2e, pytest.mark.thorough]

TICK = {"MNEMOSYNE_SLEEP_TICK_S": "0.05"}


def test_a_folder_is_all_that_a_daily_backup_needs(
    start: Start, tmp_path: Path
) -> None:
    copies = tmp_path / "copies"
    daemon = start(MNEMOSYNE_BACKUP_DIR=str(copies), **TICK)
    eventually(lambda: daemon.events("backup_made"), "a backup in the log")
    daemon.post("remember", content="Tea at four.", id="tea")

    status = daemon.post("status").body
    forgotten = daemon.post("forget", id="tea").body

    (copy,) = copies.glob("memory-*.auto.db")
    assert (status["backup"]["count"], status["warnings"]) == (1, [])
    assert (kept(copy), damage(copy)) == ([], [])
    assert str(copy) in forgotten["backups"]
    assert len(daemon.events("backup_made")) == 1


def test_a_backup_that_fails_is_warned_of_and_tried_again(
    start: Start, tmp_path: Path
) -> None:
    (tmp_path / "copies").write_text("in the way")
    daemon = start(MNEMOSYNE_BACKUP_DIR=str(tmp_path / "copies"), **TICK)

    eventually(lambda: daemon.events("backup_failed"), "the failure in the log")

    (warning,) = daemon.post("status").body["warnings"]
    assert warning.startswith("the last scheduled backup failed: the backup folder")
    assert b"the last scheduled backup failed" in daemon.mnem().stdout
