"""The clock as it was last believed, as a row."""

from __future__ import annotations

import sqlite3
from datetime import timedelta

from mnemosyned.domain.timekeeping import Sighting
from mnemosyned.storage.sqlite.tables.rows import instant, instant_text


def kept_sighting(connection: sqlite3.Connection) -> Sighting | None:
    """The last sighting that was kept."""
    row = connection.execute(
        "SELECT moment, boot, uptime_s, slack_s, slack_from_s FROM clock_seen"
    ).fetchone()
    if row is None:
        return None
    moment, boot, uptime_s, slack_s, slack_from_s = row
    return Sighting(
        moment=instant(moment),
        boot=boot,
        uptime_s=uptime_s,
        slack=timedelta(seconds=slack_s),
        slack_from_s=slack_from_s,
    )


def keep_sighting(connection: sqlite3.Connection, sighting: Sighting) -> None:
    """Replace the sighting that is kept."""
    connection.execute(
        "INSERT OR REPLACE INTO clock_seen VALUES (1, ?, ?, ?, ?, ?)",
        (
            instant_text(sighting.moment),
            sighting.boot,
            sighting.uptime_s,
            sighting.slack.total_seconds(),
            sighting.slack_from_s,
        ),
    )
