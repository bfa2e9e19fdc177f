"""The clock as it was last believed, as a row."""

from __future__ import annotations

from datetime import timedelta

from mnemosyned.domain.timekeeping import Sighting
from mnemosyned.storage.postgres.database.session import Session
from mnemosyned.storage.postgres.tables.rows import utc


def kept_sighting(session: Session) -> Sighting | None:
    """The last sighting that was kept."""
    row = session.execute(
        "SELECT moment, boot, uptime_s, slack_s, slack_from_s FROM clock_seen "
        "WHERE owner = %(owner)s"
    ).fetchone()
    if row is None:
        return None
    moment, boot, uptime_s, slack_s, slack_from_s = row
    return Sighting(
        moment=moment,
        boot=boot,
        uptime_s=uptime_s,
        slack=timedelta(seconds=slack_s),
        slack_from_s=slack_from_s,
    )


def keep_sighting(session: Session, sighting: Sighting) -> None:
    """Replace the sighting that is kept."""
    session.execute(
        "INSERT INTO clock_seen (owner, moment, boot, uptime_s, slack_s, slack_from_s) "
        "VALUES (%(owner)s, %(moment)s, %(boot)s, %(uptime_s)s, %(slack_s)s, "
        "%(slack_from_s)s) ON CONFLICT (owner) DO UPDATE SET moment = excluded.moment, "
        "boot = excluded.boot, uptime_s = excluded.uptime_s, slack_s = excluded.slack_s, "
        "slack_from_s = excluded.slack_from_s",
        moment=utc(sighting.moment),
        boot=sighting.boot,
        uptime_s=sighting.uptime_s,
        slack_s=sighting.slack.total_seconds(),
        slack_from_s=sighting.slack_from_s,
    )
