"""Owners of one database: added, counted, removed without a trace; and their tokens."""

from __future__ import annotations

import hashlib
from datetime import timedelta
from typing import cast

import psycopg
import pytest
from support.fakes import consolidate, memory, promotion, remember_batch, trio
from support.postgres import rows_of

from mnemosyned.errors import InvalidRequest, NotFound
from mnemosyned.memory.engine_ports import OWN_SCOPES, Owner, Scope, SharedMemory
from mnemosyned.memory.ports import MemoryStore
from mnemosyned.paths import shipped
from mnemosyned.storage.postgres import administration
from mnemosyned.storage.postgres.owners import PostgresOwners
from mnemosyned.storage.postgres.store import open_store

pytestmark = pytest.mark.postgres
MIGRATIONS = shipped("migrations") / "postgres"
ALL_SCOPES = tuple(Scope)


def fill(dsn: str, owner: Owner, mark: str) -> None:
    """Give an owner memories in every tier, and something in tables beside them."""
    with open_store(
        dsn, migrations=MIGRATIONS, owner=owner.number, guarded=True
    ) as opened:
        store = cast("MemoryStore", opened)
        remember_batch(store, memory("new", f"{mark} is new"), *trio("old"))
        consolidate(store, promotion("e", *trio("old")))
        store.changes.tag(["new"], [mark])


def counts_of(dsn: str, owner: Owner) -> dict[str, int]:
    """How many rows of an owner each table has."""
    found = rows_of(dsn, owner.number)
    return {table: len(each) for table, each in found.items() if each}


def test_owners_are_listed_by_name_with_what_they_have(
    owners: PostgresOwners, dsn: str
) -> None:
    bert, anna = owners.add("bert"), owners.add("anna")
    fill(dsn, anna, "anna's")
    owners.issue("anna", "laptop", ALL_SCOPES)

    listed = owners.owners(measured=True)

    assert [each.name for each in listed] == ["anna", "bert", "local"]
    assert (listed[0].memories, listed[0].summaries, listed[0].tokens) == (4, 1, 1)
    assert listed[0].characters > 0
    assert (listed[0].bytes or 0) > listed[0].characters
    assert listed[1] == Owner(
        number=bert.number,
        name="bert",
        created_at=bert.created_at,
        memories=0,
        summaries=0,
        characters=0,
        bytes=0,
    )
    assert owners.owners()[0].bytes is None


@pytest.mark.parametrize("name", ["", " ", "a b", "-a", "a" * 101, "a\n", "ä", "a'b"])
def test_a_name_that_is_none_is_refused(owners: PostgresOwners, name: str) -> None:
    with pytest.raises(InvalidRequest, match="no name"):
        owners.add(name)
    with pytest.raises(InvalidRequest, match="no name"):
        owners.issue("local", name, ALL_SCOPES)


def test_a_name_is_one_owners_alone(owners: PostgresOwners) -> None:
    owners.add("anna")

    with pytest.raises(InvalidRequest, match="already"):
        owners.add("anna")


def test_a_removed_owner_leaves_no_row_and_the_others_all_of_theirs(
    owners: PostgresOwners, dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(administration, "DELETED_AT_ONCE", 1)
    anna, bert = owners.add("anna"), owners.add("bert")
    for owner in (anna, bert):
        fill(dsn, owner, f"{owner.name}-mark")
        owners.issue(owner.name, "laptop", ALL_SCOPES)
    kept = counts_of(dsn, bert)
    assert counts_of(dsn, anna) == kept
    assert kept.keys() >= {"memory", "fresh", "placed", "episode", "tag", "owner_token"}

    removed = owners.remove("anna")

    assert (removed.memories, removed.summaries, removed.purged) == (4, 1, True)
    assert any("write-ahead log" in place for place in removed.left)
    assert counts_of(dsn, anna) == {}
    assert counts_of(dsn, bert) == kept
    with pytest.raises(NotFound):
        owners.remove("anna")


def test_the_number_of_a_removed_owner_is_not_given_again(
    owners: PostgresOwners,
) -> None:
    anna = owners.add("anna")
    owners.remove("anna")

    assert owners.add("anna").number > anna.number


def test_the_owner_of_a_memory_with_only_one_cannot_be_removed(
    owners: PostgresOwners,
) -> None:
    with pytest.raises(InvalidRequest, match="forget"):
        owners.remove("local")


def test_a_token_names_its_owner_and_scopes(owners: PostgresOwners) -> None:
    anna = owners.add("anna")
    issued = owners.issue("anna", "reader", [Scope.READ])

    holder = owners.holder(issued.secret)

    assert holder
    assert holder.owner == anna.number
    assert holder.scopes == {Scope.READ}
    assert (holder.token, holder.name) == (issued.token.id, "reader")
    assert holder.expires_at is None
    assert issued.secret.startswith(f"mnt_{anna.number}_")
    assert owners.tokens("anna") == [issued.token]


def test_of_a_token_its_hash_alone_is_kept(owners: PostgresOwners, dsn: str) -> None:
    owners.add("anna")
    secret = owners.issue("anna", "laptop", ALL_SCOPES).secret

    with psycopg.connect(dsn) as connection:
        rows = connection.execute(
            "SELECT t::text, digest FROM owner_token AS t"
        ).fetchall()

    assert [digest for _, digest in rows] == [hashlib.sha256(secret.encode()).digest()]
    assert secret.rsplit("_", maxsplit=1)[-1] not in rows[0][0]


def test_what_is_no_token_holds_nothing(owners: PostgresOwners) -> None:
    anna, bert = owners.add("anna"), owners.add("bert")
    secret = owners.issue("anna", "laptop", ALL_SCOPES).secret
    number, random = secret.removeprefix("mnt_").split("_", 1)
    assert number == str(anna.number)

    for wrong in (
        "",
        "mnt_",
        secret[:-1],
        secret + "A",
        secret + "\n",
        secret.swapcase(),
        f"mnt_{bert.number}_{random}",
        f"mnt_0{number}_{random}",
        f"mnt_{2**63}_{random}",
        f"mnt_{10**30}_{random}",
        f"mnt_{number} OR 1=1_{random}",
        f"mnt_{number}_{random[:-1]}'",
        "mnt_٣_" + random,
        "\x00",
    ):
        assert owners.holder(wrong) is None, wrong
    assert owners.holder(secret)


def test_a_revoked_token_holds_nothing(owners: PostgresOwners) -> None:
    owners.add("anna")
    first = owners.issue("anna", "laptop", ALL_SCOPES)
    second = owners.issue("anna", "laptop", ALL_SCOPES)
    third = owners.issue("anna", "phone", ALL_SCOPES)

    assert owners.revoke("anna", first.token.id) == 1
    assert owners.holder(first.secret) is None
    assert owners.holder(second.secret)
    assert owners.revoke("anna", "laptop") == 1
    assert owners.holder(second.secret) is None
    assert owners.holder(third.secret)
    assert [each.valid for each in owners.tokens("anna")] == [True, False, False]
    with pytest.raises(NotFound):
        owners.revoke("anna", "laptop")


def test_a_token_of_another_owner_is_not_revoked(owners: PostgresOwners) -> None:
    owners.add("anna")
    owners.add("bert")
    issued = owners.issue("bert", "laptop", ALL_SCOPES)

    for token in ("laptop", issued.token.id):
        with pytest.raises(NotFound):
            owners.revoke("anna", token)
        with pytest.raises(NotFound):
            owners.rotate("anna", token)
    assert owners.holder(issued.secret)


def test_a_token_expires(owners: PostgresOwners, dsn: str) -> None:
    owners.add("anna")
    issued = owners.issue("anna", "guest", [Scope.READ], valid_for=timedelta(days=1))
    assert owners.holder(issued.secret)
    assert issued.token.expires_at == issued.token.created_at + timedelta(days=1)

    with psycopg.connect(dsn) as connection:
        connection.execute("UPDATE owner_token SET expires_at = now()")

    assert owners.holder(issued.secret) is None
    assert [each.valid for each in owners.tokens("anna")] == [False]


def test_a_rotated_token_has_a_successor_of_the_same_kind(
    owners: PostgresOwners, dsn: str
) -> None:
    owners.add("anna")
    scopes = [Scope.READ, Scope.WRITE]
    old = owners.issue("anna", "laptop", scopes, valid_for=timedelta(days=9))
    with psycopg.connect(dsn) as connection:
        connection.execute(
            "UPDATE owner_token SET created_at = created_at - interval '8 days', "
            "expires_at = expires_at - interval '8 days'"
        )

    new = owners.rotate("anna", "laptop", keep_for=timedelta(hours=1))

    assert new.secret != old.secret
    assert (new.token.name, new.token.scopes) == ("laptop", tuple(scopes))
    assert new.token.expires_at == new.token.created_at + timedelta(days=9)
    assert owners.holder(old.secret)
    last = owners.rotate("anna", new.token.id)
    assert owners.holder(new.secret) is None
    assert owners.holder(last.secret)


def test_the_tokens_of_a_removed_owner_hold_nothing(owners: PostgresOwners) -> None:
    owners.add("anna")
    secret = owners.issue("anna", "laptop", ALL_SCOPES).secret
    owners.remove("anna")

    assert owners.holder(secret) is None


def test_a_token_of_a_suspended_owner_holds_nothing(
    owners: PostgresOwners, dsn: str
) -> None:
    owners.add("anna")
    issued = owners.issue("anna", "laptop", ALL_SCOPES, valid_for=timedelta(days=1))
    holder = owners.holder(issued.secret)
    assert holder
    assert holder.expires_at == issued.token.expires_at

    with psycopg.connect(dsn) as connection:
        connection.execute("UPDATE owner SET suspended_at = now() WHERE name = 'anna'")

    assert owners.holder(issued.secret) is None


def test_members_of_a_group_hold_its_memory_by_tokens_of_their_own(
    owners: PostgresOwners, dsn: str
) -> None:
    anna, team = owners.add("anna"), owners.add("team", is_group=True)
    owners.add("bert")
    secret = owners.issue("anna", "laptop", (Scope.READ, Scope.FORGET)).secret
    other = owners.issue("bert", "laptop", ALL_SCOPES).secret

    owners.join("team", "anna", [Scope.WRITE, Scope.READ])
    holder = owners.holder(secret)

    assert holder
    assert (holder.owner, holder.owner_name) == (anna.number, "anna")
    assert holder.groups == (
        SharedMemory(team.number, "team", frozenset({Scope.READ})),
    )
    inside = holder.in_memory_of("team")
    assert inside
    assert inside.owner == team.number
    assert inside.scopes == {Scope.READ}
    assert (inside.owner_name, inside.member) == ("team", anna.number)
    alone = holder.in_memory_of("anna")
    assert alone
    assert (alone.owner, alone.scopes, alone.groups) == (anna.number, holder.scopes, ())
    stranger = owners.holder(other)
    assert stranger
    assert stranger.groups == ()
    for name in ("team", "anna", "local", "nobody", "", "team, bert"):
        assert stranger.in_memory_of(name) is None

    with psycopg.connect(dsn) as connection:
        connection.execute("UPDATE owner SET suspended_at = now() WHERE name = 'team'")
    holder = owners.holder(secret)
    assert holder
    assert holder.groups == ()


def test_memberships_change_end_and_go_with_their_owners(
    owners: PostgresOwners,
) -> None:
    for name in ("anna", "bert"):
        owners.add(name)
    for name in ("team", "board"):
        owners.add(name, is_group=True)
    for group in ("team", "board"):
        owners.join(group, "anna", OWN_SCOPES)
    owners.join("team", "bert", [Scope.READ])
    joined = owners.memberships("team")[1].joined_at
    owners.join("team", "bert", [Scope.WRITE])
    assert owners.memberships("team")[1].joined_at == joined

    assert [
        (each.group, each.member, each.scopes) for each in owners.memberships()
    ] == [
        ("board", "anna", OWN_SCOPES),
        ("team", "anna", OWN_SCOPES),
        ("team", "bert", (Scope.WRITE,)),
    ]
    assert [each.member for each in owners.memberships("board")] == ["anna"]
    owners.leave("team", "bert")
    with pytest.raises(NotFound, match="no member"):
        owners.leave("team", "bert")
    owners.remove("board")
    assert [each.group for each in owners.memberships()] == ["team"]
    owners.remove("anna")
    assert owners.memberships() == []


def test_a_group_has_no_tokens_and_is_no_member(owners: PostgresOwners) -> None:
    owners.add("team", is_group=True)
    owners.add("board", is_group=True)
    owners.add("anna")

    with pytest.raises(InvalidRequest, match="no tokens"):
        owners.issue("team", "laptop", ALL_SCOPES)
    with pytest.raises(NotFound, match="no owner 'board'"):
        owners.join("team", "board", OWN_SCOPES)
    with pytest.raises(NotFound, match="no group 'anna'"):
        owners.join("anna", "anna", OWN_SCOPES)
    with pytest.raises(InvalidRequest, match="one or more of read, write, forget"):
        owners.join("team", "anna", [])
    assert [each.is_group for each in owners.owners()] == [False, True, False, True]
