"""`mnem move --owner`: the memory of one owner moves to a server and back, and no other is touched."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest
from click.testing import CliRunner
from support.compare_databases import differences
from support.fakes import memory, remember_batch
from support.whole_memory import fill_all

from mnemosyned.cli.maintenance.move import move_command
from mnemosyned.errors import InvalidRequest, NotFound
from mnemosyned.memory.ports import MemoryStore
from mnemosyned.paths import shipped
from mnemosyned.storage.postgres.owners import PostgresOwners
from mnemosyned.storage.postgres.store import open_owners, open_store

pytestmark = pytest.mark.postgres
MIGRATIONS = shipped("migrations") / "postgres"


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database with something of everything."""
    database = tmp_path_factory.mktemp("filled") / "memory.db"
    fill_all(database)
    return database


@pytest.fixture
def owners(
    dsn: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[PostgresOwners]:
    """Owners anna, with nothing, and ben, with a memory."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    with open_owners(dsn, migrations=MIGRATIONS) as opened:
        opened.add("anna")
        ben = opened.add("ben")
        with open_store(dsn, migrations=MIGRATIONS, owner=ben.number) as store:
            words = memory("a", "what ben said")
            remember_batch(cast("MemoryStore", store), words)
        yield opened


def move(source: object, target: object, *, owner: str) -> dict[str, Any]:
    words = ["--from", str(source), "--to", str(target), "--owner", owner, "--json"]
    run = CliRunner().invoke(
        move_command, words, catch_exceptions=False, standalone_mode=False
    )
    assert run.return_value == 0, run.output
    answer: dict[str, Any] = json.loads(run.stdout)
    return answer


def counts(owners: PostgresOwners) -> dict[str, int]:
    return {owner.name: owner.memories for owner in owners.owners()}


def test_the_memory_of_an_owner_moves_there_and_back(
    filled: Path, dsn: str, owners: PostgresOwners, tmp_path: Path
) -> None:
    back = tmp_path / "back.db"

    there = move(filled, dsn, owner="anna")
    returned = move(dsn, back, owner="anna")

    assert all(there["counts"].values()), "something of everything is moved"
    assert there["sha256"] == returned["sha256"]
    assert there["differing"] == returned["differing"] == []
    assert differences(filled, back) == []
    now = counts(owners)
    assert now.pop("anna") == there["counts"]["memory"]
    assert now == {"ben": 1, "local": 0}


def test_only_who_has_nothing_takes_a_memory(
    filled: Path, dsn: str, owners: PostgresOwners
) -> None:
    before = counts(owners)

    with pytest.raises(InvalidRequest, match="is not of this memory"):
        move(filled, dsn, owner="ben")
    with pytest.raises(NotFound, match="no owner 'carl'"):
        move(filled, dsn, owner="carl")

    assert counts(owners) == before
