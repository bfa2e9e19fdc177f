"""Databases of earlier versions: upgraded whole, also while an older daemon goes on."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from support.before_narrowing import (
    DETAILS,
    FRESH,
    NARROW,
    PRUNED,
    fill,
    migrations_before,
)
from support.fakes import consolidate, memory, promotion, remember_batch
from support.postgres import MIGRATIONS, open_store, rows, run

from mnemosyned.errors import (
    DatabaseUnreachable,
    MnemosynedError,
    SchemaTooNew,
    StorageFailed,
)
from mnemosyned.memory.forgetting import ForgetFilter
from mnemosyned.memory.values import Episode
from mnemosyned.storage.postgres import connections, fulltext, schema
from mnemosyned.storage.postgres.fulltext import gram_hashes, word_hashes
from mnemosyned.storage.postgres.memories import detail_columns
from mnemosyned.storage.postgres.schema import upgrade
from mnemosyned.storage.postgres.session import Values, values_of
from mnemosyned.storage.postgres.store import PostgresStore
from mnemosyned.text.details import Detail, DetailKind
from mnemosyned.text.terms import parse_terms

pytestmark = pytest.mark.postgres
EMPTIED = ("DROP SCHEMA public CASCADE", "CREATE SCHEMA public")


@pytest.fixture
def before(dsn: str, tmp_path: Path) -> str:
    """A database of the version before: two originals, one of them pruned, and a memory at work."""
    run(dsn, *EMPTIED)
    upgrade(dsn, migrations_before(tmp_path))
    with psycopg.connect(dsn) as connection:
        fill(connection)
    return dsn


@pytest.fixture
def store(before: str) -> Iterator[PostgresStore]:
    with open_store(before) as opened:
        yield opened


def test_exact_values_stay_with_their_originals(store: PostgresStore) -> None:
    episode = store.memories.get("e1")

    assert isinstance(episode, Episode)
    assert episode.details == (
        Detail(DetailKind.ACCESS_CODE, "4711", sensitive=True, memory="m1"),
        Detail(DetailKind.NUMBER, "3", memory="m1"),
        Detail(DetailKind.MONEY, '€7"54\n', memory="m2"),
    )
    assert store.deletion.preview(["m1", "m2"]).details == len(DETAILS)
    assert store.deletion.select(ForgetFilter(person='€7"54')) == ["m2"]


def test_what_was_said_before_is_known(store: PostgresStore) -> None:
    said = [
        memory("again", FRESH, session="s", source=None),
        memory("elsewhere", FRESH, session="t", source=None),
        memory("m2", PRUNED, session="s", source=None),
    ]
    again, elsewhere, pruned = remember_batch(store, *said, dedupe=True)

    assert (again.id, again.stored) == ("m3", False)
    assert (elsewhere.id, elsewhere.stored) == ("elsewhere", True)
    assert (pruned.id, pruned.stored) == ("m2", False)


def test_numbers_go_on_where_they_were(store: PostgresStore) -> None:
    remember_batch(store, memory("next", session="s"))

    working = [each.id for each in store.memories.working(["next", "m3"])]
    assert working == ["m3", "next"]
    assert [each.id for each in store.memories.originals("e1")] == ["m1", "m2"]


def test_owners_and_numbers_have_four_bytes(store: PostgresStore, before: str) -> None:
    store.pool.close()
    wide = rows(
        before,
        "SELECT c.relname, a.attname FROM pg_attribute AS a "
        "JOIN pg_class AS c ON c.oid = a.attrelid "
        "WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'v') "
        "AND a.attname IN ('owner', 'seq', 'memory_seq', 'episode_seq') "
        "AND c.relname != 'audit' "  # numbered for each chain, of no owner
        "AND a.atttypid != 'integer'::regtype",
    )
    without_policy = rows(
        before,
        "SELECT c.relname FROM pg_class AS c JOIN pg_attribute AS a "
        "ON a.attrelid = c.oid AND a.attname = 'owner' "
        "WHERE c.relnamespace = 'public'::regnamespace AND c.relkind = 'r' AND NOT EXISTS "
        "(SELECT 1 FROM pg_policies AS p WHERE p.tablename = c.relname)",
    )

    assert (wide, without_policy) == ([], [])


def test_every_kind_of_exact_value_is_read_as_it_was_written() -> None:
    values: Values = {
        (str(kind), f"{kind} ☃"): number % 2 == 0
        for number, kind in enumerate(DetailKind)
    }

    columns = detail_columns([values, {}])

    assert values_of(columns["details"][0], columns["secrets"][0]) == values
    assert (columns["details"][1], columns["secrets"][1]) == (None, None)
    text = (MIGRATIONS / NARROW).read_text("utf-8")
    kinds = text[text.index("ARRAY[") : text.index("], kind)")].split("'")[1::2]
    for number, kind in enumerate(kinds, start=1):
        assert detail_columns([{(kind, "x"): False}])["details"] == [f'[{number},"x"]']


# A database of before words that touch a script without spaces were indexed by themselves.


SUMMARY = "Anaさんが来て、Redisを直した。Redisは速い"
PLAIN = [memory("plain", "nginx is not touched"), memory("han", "今天下雨 nginx")]
GLUED = [
    memory(f"glued-{number}", f"服务器{number}号用nginx运行") for number in range(5)
]
SLEPT = [memory("slept-1", "Anaさんが来ました"), memory("slept-2", "由Ana主持的会")]
FORMS = [memory("wide", "the ＡＰＩ key"), memory("half", "ｻｰﾊﾞｰを更新した")]


DUE = "SELECT name, place FROM reindexing"


def indexed(dsn: str, table: str) -> dict[int, list[int]]:
    """What the index has of each row, by its number."""
    return dict(rows(dsn, f"SELECT seq, words || grams FROM {table} ORDER BY seq"))


def versions(dsn: str) -> dict[int, str]:
    return dict(rows(dsn, "SELECT seq, xmin::text FROM memory"))


def selected(dsn: str, word: str) -> list[str]:
    with open_store(dsn) as store:
        return sorted(store.deletion.select(ForgetFilter(terms=parse_terms(word))))


@pytest.fixture
def old(dsn: str) -> str:
    """A database whose rows are as a version before wrote them, and which was just migrated."""
    with open_store(dsn) as store:
        remember_batch(store, *SLEPT, *PLAIN, *GLUED, *FORMS)
        consolidate(store, promotion("e", *SLEPT, content=SUMMARY))
    return dsn


@pytest.fixture
def written_now(old: str) -> dict[str, dict[int, list[int]]]:
    """Rows as they are written now; `old` is made old afterwards."""
    now = {table: indexed(old, table) for table in ("memory", "episode")}
    with psycopg.connect(old) as connection:
        for table, second in (("memory", "role"), ("episode", "index_terms")):
            for owner, seq, *texts in connection.execute(
                f"SELECT owner, seq, content, {second} FROM {table}".encode()
            ).fetchall():
                connection.execute(
                    f"UPDATE {table} SET words = %s WHERE owner = %s AND seq = %s".encode(),
                    (word_hashes(owner, *texts), owner, seq),
                )
        connection.execute(
            "UPDATE memory SET grams = NULL WHERE id = ANY(%s)",
            ([each.id for each in FORMS],),
        )
        connection.execute("DROP TABLE reindexing")
        for migration in ("0004_glued_words", "0022_common_letters"):
            connection.execute((MIGRATIONS / f"{migration}.sql").read_bytes())
    return now


def test_rows_are_as_if_they_were_written_now(
    old: str, written_now: dict[str, dict[int, list[int]]]
) -> None:
    before = versions(old)

    assert selected(old, "nginx") == [*(each.id for each in GLUED), "han", "plain"]
    assert selected(old, "Ana") == ["slept-1", "slept-2"]
    assert [selected(old, word) for word in ("API", "サーバー")] == [["wide"], ["half"]]

    assert {table: indexed(old, table) for table in written_now} == written_now
    assert len(before.items() & versions(old).items()) == len(PLAIN), "left alone"
    assert rows(old, DUE) == []


def test_rows_are_rewritten_on_where_a_daemon_was_killed(
    old: str,
    written_now: dict[str, dict[int, list[int]]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    read: list[str] = []

    def read_and_die(owner: int, text: str) -> list[int] | None:
        read.append(text)
        if len(read) == 6:
            raise KeyboardInterrupt
        return gram_hashes(owner, text)

    monkeypatch.setattr(schema, "REWRITTEN_AT_ONCE", 2)
    monkeypatch.setattr(fulltext, "gram_hashes", read_and_die)
    with pytest.raises(KeyboardInterrupt):
        selected(old, "nginx")
    assert rows(old, DUE) != []
    selected(old, "nginx")

    assert read.count(read[0]) == 1
    assert read.count(read[5]) == 2
    assert {table: indexed(old, table) for table in written_now} == written_now
    assert rows(old, DUE) == []


# Two versions over one database: the older goes on where a migration suits it, or says no.


KNOWN = int(max(file.name for file in MIGRATIONS.glob("*.sql"))[:4])
CHANGE = "CREATE TABLE later (owner bigint PRIMARY KEY);\n"


@pytest.fixture
def older(dsn: str) -> Iterator[PostgresStore]:
    """The store of a daemon of this version, which runs."""
    with open_store(dsn) as store:
        remember_batch(store, memory("before"))
        yield store


def newer(folder: Path, *changes: str) -> Path:
    migrations = folder / "newer"
    shutil.copytree(MIGRATIONS, migrations)
    for number, change in enumerate(changes, start=KNOWN + 1):
        (migrations / f"{number:04}_later.sql").write_text(change)
    return migrations


def upgrade_to(dsn: str, migrations: Path) -> None:
    with open_store(dsn, migrations=migrations) as store:
        remember_batch(store, memory("between"))


def test_an_older_daemon_goes_on_beside_a_migration_that_suits_it(
    older: PostgresStore, dsn: str, tmp_path: Path
) -> None:
    suitable = f"-- compatible with {KNOWN}\n{CHANGE}"
    upgrade_to(dsn, newer(tmp_path, suitable))

    remember_batch(older, memory("after"))
    with open_store(dsn) as another:
        found = another.memories.working(["before", "between", "after"])

    assert [record.id for record in found] == ["before", "between", "after"]
    assert upgrade(dsn, MIGRATIONS) == KNOWN


@pytest.mark.parametrize(
    "unsuitable",
    [
        (CHANGE,),
        (f"-- compatible with {KNOWN + 1}\n{CHANGE}",),
        (f"-- compatible with {KNOWN}\n{CHANGE}", "DROP TABLE later;\n"),
    ],
)
def test_an_older_daemon_refuses_all_beside_one_that_does_not(
    older: PostgresStore, dsn: str, tmp_path: Path, unsuitable: tuple[str, ...]
) -> None:
    migrations = newer(tmp_path, *unsuitable)
    upgrade_to(dsn, migrations)
    needed = f"needs a mnemosyned that knows {KNOWN + len(unsuitable)}; this one"

    with pytest.raises(SchemaTooNew, match=needed), open_store(dsn):
        pass
    # One that runs has lost its connections, and gets no other.
    with pytest.raises(MnemosynedError):
        remember_batch(older, memory("after"))
    for _ in range(2):
        with pytest.raises(SchemaTooNew, match=needed):
            older.memories.working(["before"])
    with open_store(dsn, migrations=migrations) as later:
        assert len(later.memories.working(["before", "between", "after"])) == 2


def test_an_older_daemon_whose_connections_nobody_ended_refuses_all_soon(
    older: PostgresStore, dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where the login that owns the tables may not end those of the daemon's login."""
    monkeypatch.setattr(connections, "PLANS_MAX_S", 0.0)
    assert older.memories.working(["before"])
    run(
        dsn,
        "INSERT INTO schema_migration (version, name, oldest) "
        f"VALUES ({KNOWN + 1}, 'later', {KNOWN + 1})",
    )

    for _ in range(2):
        with pytest.raises(SchemaTooNew):
            older.memories.working(["before"])


def test_an_older_daemon_says_so_where_its_statements_fail(
    older: PostgresStore, dsn: str
) -> None:
    assert older.memories.working(["before"])
    run(
        dsn,
        "ALTER TABLE memory RENAME COLUMN role TO speaker",
        "INSERT INTO schema_migration (version, name, oldest) "
        f"VALUES ({KNOWN + 1}, 'later', {KNOWN + 1})",
    )

    with pytest.raises(SchemaTooNew):
        older.memories.working(["before"])
    with pytest.raises(SchemaTooNew):
        remember_batch(older, memory("after"))


def test_a_migration_takes_longer_than_statements_of_a_login_may(
    dsn: str, tmp_path: Path
) -> None:
    run(
        dsn,
        "DO $$ BEGIN EXECUTE format("
        "'ALTER DATABASE %I SET statement_timeout = 50', current_database()); END $$",
    )

    assert upgrade(dsn, newer(tmp_path, "SELECT pg_sleep(0.2);\n")) == KNOWN + 1


def test_the_first_migrations_end_nobody_s_connection(dsn: str, tmp_path: Path) -> None:
    run(dsn, *EMPTIED)
    with psycopg.connect(dsn, autocommit=True, application_name="mnemosyned") as beside:
        assert upgrade(dsn, newer(tmp_path, CHANGE)) == KNOWN + 1
        assert beside.execute("SELECT 1").fetchone() == (1,)


def test_a_migration_waits_for_nobody_s_transaction_and_says_whose_it_is(
    older: PostgresStore, dsn: str, tmp_path: Path
) -> None:
    alters = "ALTER TABLE memory ADD COLUMN later integer;\n"
    migrations = newer(tmp_path, f"-- compatible with {KNOWN}\n{alters}")
    with psycopg.connect(dsn, application_name="nightly dump") as dump:
        dump.execute("SELECT count(*) FROM memory")
        with pytest.raises(DatabaseUnreachable, match="nightly dump") as raised:
            upgrade(dsn, migrations)
        assert f"process {dump.info.backend_pid}" in raised.value.message
        assert len(older.memories.working(["before"])) == 1

    assert upgrade(dsn, migrations) == KNOWN + 1


def test_tables_from_before_the_first_release_are_named(dsn: str) -> None:
    run(dsn, "ALTER TABLE schema_migration DROP COLUMN oldest")

    with (
        pytest.raises(StorageFailed, match="before the first release"),
        open_store(dsn),
    ):
        pass
