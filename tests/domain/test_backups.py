"""Names of dated backups, and which of them stay."""

from datetime import UTC, datetime, timedelta

import pytest
from support.cases import each_case

from mnemosyned.backup_schedule import (
    BackupRetention,
    DatedBackup,
    backup_name,
    dated_backup,
    is_backup_overdue,
)

NOON = datetime(2026, 3, 10, 12, tzinfo=UTC)


def daily(days: int, *, scheduled: bool = True) -> list[DatedBackup]:
    """A backup at noon of each day, the newest last."""
    moments = [NOON - timedelta(days=back) for back in range(days)]
    names = [backup_name(moment, scheduled=scheduled) for moment in moments]
    return [each for each in map(dated_backup, names) if each]


def kept(rule: str, backups: list[DatedBackup]) -> list[int]:
    """How many days old the backups are that stay."""
    expired = BackupRetention.parse(rule).select_expired(backups)
    return sorted((NOON - each.made_at).days for each in backups if each not in expired)


def test_a_name_tells_the_moment_and_who_made_it() -> None:
    name = backup_name(NOON, scheduled=True)

    assert name == "memory-20260310T120000Z.auto.db"
    assert dated_backup(name) == DatedBackup(NOON, name, scheduled=True)


@each_case(
    "name",
    ["memory.db", "memory-20260310T120000Z.db.partial", "memory-20260231T120000Z.db"],
)
def test_another_name_is_none_of_ours(name: str) -> None:
    assert dated_backup(name) is None


@each_case(
    ("rule", "days"),
    [
        ("3", [0, 1, 2]),
        ("1 newest", [0]),
        ("2 daily", [0, 1]),
        ("3 weekly", [0, 2, 9]),  # a Tuesday, and the Sundays before it
        ("2 monthly", [0, 10]),
        ("2 daily, 2 weekly, 3 monthly", [0, 1, 2, 10, 38]),
    ],
)
def test_the_newest_of_each_period_stays(rule: str, days: list[int]) -> None:
    assert kept(rule, daily(60)) == days


def test_the_newest_of_a_day_stands_for_it_and_what_no_schedule_made_stays() -> None:
    morning = dated_backup("memory-20260310T060000Z.auto.db")
    assert morning

    expired = BackupRetention.parse("9 daily").select_expired([morning, *daily(2)])

    assert expired == [morning]
    assert kept("1", daily(9, scheduled=False)) == [*range(9)]


@each_case("rule", ["", "0", "daily", "3 yearly", "2 daily;", "-1"])
def test_a_rule_that_cannot_be_read_is_refused(rule: str) -> None:
    with pytest.raises(ValueError, match="expected a number of backups"):
        BackupRetention.parse(rule)


@each_case(("hours", "late"), [(24, False), (48, False), (49, True)])
def test_a_backup_is_overdue_after_two_intervals(hours: int, *, late: bool) -> None:
    last = NOON - timedelta(hours=hours)

    assert is_backup_overdue(last, interval=timedelta(days=1), now=NOON) is late
