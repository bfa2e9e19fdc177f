"""Owners of one database: added, counted, removed without a trace; and their tokens."""

from __future__ import annotations

import hashlib
from datetime import timedelta
from itertools import count
from typing import Any

import pytest
from support.fakes import consolidate, memory, promotion, remember_batch, trio
from support.postgres import open_store, rows, rows_of, run

from mnemosyned.errors import InvalidRequest, NotFound
from mnemosyned.memory.engine_ports import OWN_SCOPES, Owner, Scope, SharedMemory
from mnemosyned.storage.postgres import administration
from mnemosyned.storage.postgres.owners import PostgresOwners

pytestmark = [pytest.mark.postgres, pytest.mark.usefixtures("anna_and_bert")]
ALL_SCOPES = tuple(Scope)
ANNA, BERT = 2, 3


def fill(dsn: str, owner: int, mark: str) -> None:
    """Give an owner memories in every tier, and something in tables beside them."""
    with open_store(dsn, owner=owner, guarded=True) as store:
        remember_batch(store, memory("new", f"{mark} is new"), *trio("old"))
        consolidate(store, promotion("e", *trio("old")))
        store.changes.tag(["new"], [mark])


def counts_of(dsn: str, owner: int) -> dict[str, int]:
    return {table: len(each) for table, each in rows_of(dsn, owner).items() if each}


def test_owners_are_listed_by_name(owners: PostgresOwners, dsn: str) -> None:
    fill(dsn, ANNA, "anna's")
    owners.issue("anna", "laptop", ALL_SCOPES)

    anna, bert, local = owners.owners(measured=True)

    assert (anna.name, local.name) == ("anna", "local")
    assert (anna.memories, anna.summaries, anna.tokens) == (4, 1, 1)
    assert anna.characters > 0
    assert (anna.bytes or 0) > anna.characters
    assert bert == Owner(
        number=BERT,
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
    with pytest.raises(InvalidRequest, match="already"):
        owners.add("anna")


def test_a_name_differs_from_others_not_in_letter_case_alone(
    owners: PostgresOwners,
) -> None:
    week = timedelta(days=7)
    for add in (
        lambda: owners.add("Anna"),
        lambda: owners.add("ANNA", is_group=True),
        lambda: owners.invite([("dora", OWN_SCOPES, 1), ("Anna", OWN_SCOPES, 1)], lasts=week),
        lambda: owners.invite([("dora", OWN_SCOPES, 1), ("Dora", OWN_SCOPES, 1)], lasts=week),
        lambda: owners.change("bert", new_name="aNna"),
    ):  # fmt: skip
        with pytest.raises(InvalidRequest, match="capital letters only"):
            add()

    assert owners.change("anna", new_name="Anna") == "Anna"
    assert [each.name for each in owners.owners()] == ["Anna", "bert", "local"]


def test_a_removed_owner_leaves_no_row_and_the_others_all_of_theirs(
    owners: PostgresOwners, dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(administration, "DELETED_AT_ONCE", 1)
    secrets = {}
    for number, name in ((ANNA, "anna"), (BERT, "bert")):
        fill(dsn, number, f"{name}-mark")
        secrets[name] = owners.issue(name, "laptop", ALL_SCOPES).secret
    kept = counts_of(dsn, BERT)
    assert counts_of(dsn, ANNA) == kept
    assert kept.keys() >= {"memory", "fresh", "placed", "episode", "tag", "owner_token"}

    writing, begun = owners._pool.writing, count(1)  # noqa: SLF001 of a fixture

    def writing_late(*args: Any, **options: Any) -> Any:  # noqa: ANN401
        if next(begun) == 2:  # a daemon writes that has not noticed
            with open_store(dsn, owner=ANNA, guarded=True) as store:
                remember_batch(store, memory("late"))
        return writing(*args, **options)

    monkeypatch.setattr(owners._pool, "writing", writing_late)  # noqa: SLF001 of a fixture
    removed = owners.remove("anna")

    assert (removed.memories, removed.summaries, removed.purged) == (5, 1, True)
    assert any("write-ahead log" in place for place in removed.left)
    assert counts_of(dsn, ANNA) == {}
    assert counts_of(dsn, BERT) == kept
    assert owners.holder(secrets["anna"]) is None
    with pytest.raises(NotFound):
        owners.remove("anna")
    assert owners.add("anna").number > BERT, "no number is given again"


def test_the_local_owner_cannot_be_removed(owners: PostgresOwners) -> None:
    with pytest.raises(InvalidRequest, match="forget"):
        owners.remove("local")


def test_of_a_token_its_hash_alone_is_kept(owners: PostgresOwners, dsn: str) -> None:
    issued = owners.issue("anna", "reader", [Scope.READ])

    holder = owners.holder(issued.secret)

    assert holder
    assert (holder.owner, holder.scopes) == (ANNA, frozenset({Scope.READ}))
    assert (holder.token, holder.name) == (issued.token.id, "reader")
    assert holder.expires_at is None
    assert issued.secret.startswith(f"mnt_{ANNA}_")
    assert owners.tokens("anna") == [issued.token]
    ((row, digest),) = rows(dsn, "SELECT t::text, digest FROM owner_token AS t")
    assert digest == hashlib.sha256(issued.secret.encode()).digest()
    assert issued.secret.rsplit("_", maxsplit=1)[-1] not in row


def test_what_is_no_token_holds_nothing(owners: PostgresOwners) -> None:
    secret = owners.issue("anna", "laptop", ALL_SCOPES).secret
    number, random = secret.removeprefix("mnt_").split("_", 1)

    for wrong in (
        *("", "mnt_", "\x00", secret[:-1], secret + "A", secret + "\n"),
        secret.swapcase(),
        f"mnt_{BERT}_{random}",
        f"mnt_0{number}_{random}",
        f"mnt_{2**63}_{random}",
        f"mnt_{10**30}_{random}",
        f"mnt_{number} OR 1=1_{random}",
        f"mnt_{number}_{random[:-1]}'",
        "mnt_٣_" + random,
    ):
        assert owners.holder(wrong) is None, wrong
    assert owners.holder(secret)


def test_a_revoked_token_holds_nothing(owners: PostgresOwners) -> None:
    first = owners.issue("anna", "laptop", ALL_SCOPES)
    second = owners.issue("anna", "laptop", ALL_SCOPES)
    third = owners.issue("anna", "phone", ALL_SCOPES)

    for token in ("laptop", third.token.id):
        for end in (owners.revoke, owners.rotate):
            with pytest.raises(NotFound):
                end("bert", token)  # it is another's
    assert owners.revoke("anna", first.token.id) == 1
    assert owners.holder(first.secret) is None
    assert owners.holder(second.secret)
    assert owners.revoke("anna", "laptop") == 1
    assert owners.holder(second.secret) is None
    assert owners.holder(third.secret)
    assert [each.valid for each in owners.tokens("anna")] == [True, False, False]
    with pytest.raises(NotFound):
        owners.revoke("anna", "laptop")


@pytest.mark.parametrize(
    ("change", "is_valid"),
    [
        ("UPDATE owner_token SET expires_at = now()", False),
        ("UPDATE owner SET suspended_at = now() WHERE name = 'anna'", True),
    ],
)
def test_a_token_that_expired_or_of_a_suspended_owner_holds_nothing(
    owners: PostgresOwners, dsn: str, change: str, *, is_valid: bool
) -> None:
    issued = owners.issue("anna", "guest", [Scope.READ], valid_for=timedelta(days=1))
    holder = owners.holder(issued.secret)
    assert holder
    assert holder.expires_at == issued.token.created_at + timedelta(days=1)

    run(dsn, change)

    assert owners.holder(issued.secret) is None
    assert [each.valid for each in owners.tokens("anna")] == [is_valid]


def test_a_rotated_token_has_a_successor(owners: PostgresOwners, dsn: str) -> None:
    scopes = [Scope.READ, Scope.WRITE]
    old = owners.issue("anna", "laptop", scopes, valid_for=timedelta(days=9))
    aged = "UPDATE owner_token SET {0} = {0} - interval '8 days'"
    run(dsn, *(aged.format(column) for column in ("created_at", "expires_at")))

    new = owners.rotate("anna", "laptop", keep_for=timedelta(hours=1))

    assert new.secret != old.secret
    assert (new.token.name, new.token.scopes) == ("laptop", tuple(scopes))
    assert new.token.expires_at == new.token.created_at + timedelta(days=9)
    assert owners.holder(old.secret)
    last = owners.rotate("anna", new.token.id)
    assert owners.holder(new.secret) is None
    assert owners.holder(last.secret)


def test_members_hold_the_memory_of_a_group(owners: PostgresOwners, dsn: str) -> None:
    team = owners.add("team", is_group=True)
    secret = owners.issue("anna", "laptop", (Scope.READ, Scope.FORGET)).secret
    other = owners.issue("bert", "laptop", ALL_SCOPES).secret
    read = frozenset({Scope.READ})

    owners.join("team", "anna", [Scope.WRITE, Scope.READ])
    holder, stranger = owners.holder(secret), owners.holder(other)

    assert holder
    assert (holder.owner, holder.owner_name) == (ANNA, "anna")
    assert holder.groups == (SharedMemory(team.number, "team", read),)
    inside, alone = holder.in_memory_of("team"), holder.in_memory_of("anna")
    assert inside
    assert inside.scopes == read
    assert inside.owner == team.number
    assert (inside.owner_name, inside.member) == ("team", ANNA)
    assert alone
    assert (alone.owner, alone.scopes, alone.groups) == (ANNA, holder.scopes, ())
    assert stranger
    assert stranger.groups == ()
    for name in ("team", "anna", "local", "nobody", "", "team, bert"):
        assert stranger.in_memory_of(name) is None

    run(dsn, "UPDATE owner SET suspended_at = now() WHERE name = 'team'")
    holder = owners.holder(secret)
    assert holder
    assert holder.groups == ()


def test_memberships_go_with_their_owners(owners: PostgresOwners) -> None:
    for group in ("team", "board"):
        owners.add(group, is_group=True)
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

    with pytest.raises(InvalidRequest, match="no tokens"):
        owners.issue("team", "laptop", ALL_SCOPES)
    with pytest.raises(NotFound, match="no owner 'board', but a group"):
        owners.join("team", "board", OWN_SCOPES)
    with pytest.raises(NotFound, match="no group 'anna', but an owner"):
        owners.join("anna", "anna", OWN_SCOPES)
    with pytest.raises(InvalidRequest, match="one or more of read, write, forget"):
        owners.join("team", "anna", [])
    groups = [each.name for each in owners.owners() if each.is_group]
    assert groups == ["board", "team"]
