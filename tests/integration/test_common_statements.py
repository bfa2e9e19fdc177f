"""Statements that both engines have alike, in the language of SQLite."""

from contextlib import closing
from datetime import UTC, datetime, timedelta, timezone

from support.cases import each_case

from mnemosyned.storage.sqlite.session import SqliteSession, translate

NOON = datetime(2026, 11, 18, 12, tzinfo=UTC)


@each_case(
    ("common", "expected"),
    [
        (
            "SELECT name FROM tag WHERE owner = %(owner)s AND seq = %(seq)s",
            "SELECT name FROM tag WHERE seq = :seq",
        ),
        (
            "DELETE FROM clock_seen WHERE owner = %(owner)s",
            "DELETE FROM clock_seen",
        ),
        (
            (
                "INSERT INTO tag (owner, name) VALUES (%(owner)s, %(name)s) "
                "ON CONFLICT (owner, name) DO NOTHING"
            ),
            "INSERT INTO tag (name) VALUES (:name) ON CONFLICT (name) DO NOTHING",
        ),
        (
            (
                "SELECT e.id FROM placed AS p JOIN episode AS e ON e.owner = p.owner "
                "AND e.seq = p.episode_seq WHERE p.owner = %(owner)s"
            ),
            "SELECT e.id FROM archive AS p JOIN episodic_memory AS e ON e.seq = p.episode_seq",
        ),
        (
            (
                "UPDATE episode SET source = %(source)s::text WHERE owner = %(owner)s "
                "AND id = ANY(%(ids)s::text[]) AND source IS NOT DISTINCT FROM %(old)s::text"
            ),
            (
                "UPDATE episodic_memory SET source = :source WHERE "
                "id IN (SELECT value FROM json_each(:ids)) AND source IS :old"
            ),
        ),
        (
            (
                "SELECT m.id FROM fresh AS f JOIN memory AS m ON m.owner = f.owner "
                "AND m.seq = f.seq WHERE f.owner = %(owner)s AND f.created_at < %(now)s"
            ),
            "SELECT m.id FROM working_memory AS m WHERE m.created_at < :now",
        ),
        (
            (
                "SELECT count(m.seq) FROM episode AS e "
                "LEFT JOIN placed AS p ON p.owner = e.owner AND p.episode_seq = e.seq "
                "LEFT JOIN memory AS m ON m.owner = p.owner AND m.seq = p.seq "
                "WHERE e.owner = %(owner)s"
            ),
            (
                "SELECT count(m.seq) FROM episodic_memory AS e "
                "LEFT JOIN archive AS m ON m.episode_seq = e.seq"
            ),
        ),
    ],
)
def test_a_common_statement_is_translated(common: str, expected: str) -> None:
    assert translate(common) == expected


def test_instants_and_lists_are_bound_as_they_are_stored() -> None:
    local = NOON.astimezone(timezone(timedelta(hours=2)))

    with closing(SqliteSession(":memory:")) as session:
        moment, count = session.execute(
            "SELECT %(moment)s, (SELECT count(*) FROM json_each(%(ids)s))",
            moment=local,
            ids=["a", "b"],
        ).fetchone()

    assert moment == "2026-11-18T12:00:00.000000Z"
    assert count == 2
