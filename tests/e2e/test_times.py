"""Times at both ends of the calendar, over the real socket and in the shell, in any zone."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest
from e2e.conftest import Start

pytestmark = pytest.mark.e2e

UNSET = "0001-01-01T00:00:00Z"
"""How Go writes a time that was never set."""
ACCEPTED = (UNSET, "9999-12-31T23:59:59.999999Z", "0001-01-01T00:00:00-14:00")
REFUSED = ("0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00")


@pytest.mark.parametrize(
    "zone",
    [
        "America/New_York",
        pytest.param("Pacific/Kiritimati", marks=pytest.mark.thorough),
    ],
)
def test_a_time_at_either_end_breaks_nothing(start: Start, zone: str) -> None:
    daemon = start(TZ=zone)
    memories = [
        {
            "content": f"yesterday the log of run {at} said created_at {UNSET}",
            "created_at": UNSET,
        }
        for at in range(5)
    ]
    assert daemon.post("remember_many", memories=memories).status == 200

    for asked in (*ACCEPTED, *REFUSED):
        query = f"why is created_at {asked} in the log of yesterday or last week?"
        message = {"role": "user", "content": query, "timestamp": asked}
        assert daemon.post("recall", query=query).status == 200
        found = daemon.post("recall", query=query, asked_at=asked)
        assert (found.status, len(found.body["hits"]) > 0) == (200, True)
        assert daemon.post("context", message=query, messages=[message]).status == 200
        assert daemon.post("compact", messages=[message] * 3, force=True).status == 200
        assert daemon.mnem("recall", "--asked-at", asked, query).returncode == 0
    for limit in ("since", "until"):
        for asked in ACCEPTED:
            assert daemon.post("recall", query="log", **{limit: asked}).status == 200
            preview = {"dry_run": True, limit: asked}
            assert daemon.post("forget", person="Ada", **preview).status == 200
        for asked in REFUSED:
            answer = daemon.post("recall", query="log", **{limit: asked})
            assert (answer.status, *answer.error) == (400, "invalid_time", limit)
    for asked in REFUSED:
        answer = daemon.post("remember", content="x", valid_until=asked)
        assert (answer.status, *answer.error) == (400, "invalid_time", "valid_until")
        answer = daemon.post("remember", content="x", created_at=asked)
        assert (answer.status, *answer.error) == (400, "invalid_time", "created_at")
    assert daemon.post("remember", content="x", valid_until=ACCEPTED[1]).status == 200

    slept = daemon.mnem("sleep", "--force")

    assert slept.returncode == 0, slept.stderr
    with closing(sqlite3.connect(daemon.database)) as connection:
        failed = connection.execute(
            "SELECT error FROM consolidation_log WHERE status = 'failed'"
        )
        assert failed.fetchall() == []
        archived = connection.execute(
            "SELECT COUNT(*) FROM archive WHERE created_at LIKE '0001%' AND content LIKE 'yest%'"
        )
        assert archived.fetchone() == (5,)
    assert daemon.mnem("log").returncode == 0
