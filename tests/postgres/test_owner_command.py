"""`mnem owner` as who runs the server types it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from support.postgres import open_owners, run as sql

from mnemosyned.cli.maintenance.databases import db
from mnemosyned.cli.maintenance.owners import owner
from mnemosyned.errors import ConfigInvalid, InvalidRequest, StorageFailed

pytestmark = pytest.mark.postgres


@pytest.fixture(autouse=True)
def configured(dsn: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("MNEMOSYNE_DATABASE", dsn)


def run(*words: str, typed: str = "") -> Result:
    return CliRunner().invoke(owner, words, input=typed, catch_exceptions=False)


def printed(*words: str) -> str:
    result = run(*words)
    assert result.exit_code == 0, result.output
    return result.stdout


def test_an_owner_comes_gets_tokens_and_goes(dsn: str) -> None:
    assert "mnem owner token add anna" in printed("add", "anna")
    secret = printed("token", "add", "anna", "--name", "laptop").strip()
    reader = printed("token", "add", "anna", "--scopes", "read", "--days", "9").strip()
    with open_owners(dsn) as owners:
        assert owners.holder(secret)
        assert owners.holder(reader)
        rotated = printed("token", "rotate", "anna", "laptop").strip()
        assert owners.holder(secret) is None
        assert (
            printed("token", "revoke", "anna", "token") == "revoked 1 token of anna\n"
        )
        assert owners.holder(reader) is None
        assert owners.holder(rotated)

        listed = json.loads(printed("token", "list", "anna", "--json"))
        assert sorted((each["name"], each["valid"]) for each in listed) == [
            ("laptop", False),
            ("laptop", True),
            ("token", False),
        ]
        table = printed("token", "list", "anna")
        assert table.count("laptop") == 2
        for token in (secret, reader, rotated):
            assert token not in table
        assert "anna" in printed("list")

        said = printed("remove", "anna", "--yes")
        assert "deleted anna: 0 memories, 0 summaries" in said
        assert "write-ahead log" in said
        assert owners.holder(rotated) is None
    assert "anna" not in printed("list", "--bytes")


def test_removing_asks_first() -> None:
    printed("add", "anna")

    with pytest.raises(InvalidRequest, match="ended without an answer; use --yes"):
        run("remove", "anna")
    for typed, code in (("n\n", 1), ("y\n", 0)):
        assert "anna" in printed("list")
        assert run("remove", "anna", typed=typed).exit_code == code
    assert "anna" not in printed("list")


@pytest.mark.parametrize("scopes", ["", "read,", "administer", "read write", "READ"])
def test_a_scope_that_is_none_is_refused(scopes: str) -> None:
    printed("add", "anna")

    refused = run("token", "add", "anna", "--scopes", scopes)

    assert refused.exit_code == 2
    assert "none of read, write, forget, admin" in refused.output


def test_a_memory_in_a_file_has_one_owner(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MNEMOSYNE_DATABASE", str(tmp_path / "memory.db"))

    with pytest.raises(ConfigInvalid, match="one owner"):
        run("list")
    assert not (tmp_path / "memory.db").exists()


def migrate(dsn: str, login: str) -> list[str]:
    words = ("migrate", "--url", dsn, "--serving", login)
    return CliRunner().invoke(db, words, catch_exceptions=False).stdout.splitlines()


def test_a_migration_says_its_steps(dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    sql(dsn, "DROP SCHEMA public CASCADE", "CREATE SCHEMA public")
    sql(dsn, "CREATE ROLE reader_and_writer LOGIN")
    monkeypatch.setenv("MNEMOSYNE_DATABASE", "/no/such/file")

    first, again = (migrate(dsn, "reader_and_writer") for _ in range(2))
    sql(dsn, "DROP OWNED BY reader_and_writer", "DROP ROLE reader_and_writer")

    assert first[0].startswith('CREATE ROLE "mnemosyned_request_')
    assert first[1].endswith("reader_and_writer;")
    assert len([line for line in first if line.startswith("GRANT ")]) > 20
    assert first[-1].endswith(", before 0")
    assert len(again) == 1
    assert again[0].endswith(", as it was")


def test_a_migration_for_a_login_that_is_not_there_says_so(dsn: str) -> None:
    with pytest.raises(StorageFailed, match="createuser --pwprompt nobody_at_all"):
        migrate(dsn, "nobody_at_all")


def test_a_group_gets_members_and_goes() -> None:
    for name in ("anna", "bert"):
        printed("add", name)
    assert "mnem owner group join team OWNER" in printed("group", "add", "team")
    assert "no members; mnem owner group join" in printed("group", "list", "team")
    may = "anna may read, write in team\nbert may read, write in team\n"
    assert printed("group", "join", "team", "anna", "bert") == may
    printed("group", "join", "team", "bert", "--scopes", "read")

    members = json.loads(printed("group", "list", "team", "--json"))
    assert [(each["member"], each["scopes"]) for each in members] == [
        ("anna", ["read", "write"]),
        ("bert", ["read"]),
    ]
    assert printed("group", "leave", "team", "bert") == "bert left team\n"
    assert "bert" not in printed("group", "list")
    assert "group" in printed("list")
    with pytest.raises(InvalidRequest, match="no tokens"):
        run("token", "add", "team")
    printed("remove", "team", "--yes")
    assert json.loads(printed("group", "list", "--json")) == []
