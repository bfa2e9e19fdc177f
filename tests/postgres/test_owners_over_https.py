"""`mnem` over https on a daemon that serves owners: what each token may, and what is said where it may not."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from e2e.authorities import Authority
from e2e.daemons import eventually, mnem, running
from e2e.doors import NAMES
from support.openssl import HAVE_OPENSSL

from mnemosyned import Client
from mnemosyned.cli.commands.top_view import Feed
from mnemosyned.memory.engine_ports import Scope
from mnemosyned.storage.postgres.owners import PostgresOwners

pytestmark = [
    pytest.mark.postgres,
    pytest.mark.usefixtures("anna_and_bert"),
    HAVE_OPENSSL,
]

Run = Callable[..., tuple[int, str, str]]
"""Run `mnem` with a token; its exit code, what it printed and what it said."""


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path / "authority")


@pytest.fixture
def url(
    dsn: str, owners: PostgresOwners, authority: Authority, tmp_path: Path
) -> Iterator[str]:
    assert owners.owners()
    settings = authority.issue(*NAMES).settings | {"MNEMOSYNE_OWNERS_SERVE": "true"}
    with running(tmp_path / "d", "--database", dsn, **settings) as daemon:
        (line,) = daemon.events("listening")
        yield f"https://localhost:{line['address'].rpartition(':')[2]}"


@pytest.fixture
def run(url: str, authority: Authority, tmp_path: Path) -> Run:
    def ask(token: str, *words: str) -> tuple[int, str, str]:
        done = mnem(
            *words,
            home=tmp_path,
            MNEMOSYNE_URL=url,
            MNEMOSYNE_CA=str(authority.file),
            MNEMOSYNE_TOKEN=token,
        )
        return done.returncode, done.stdout.decode(), done.stderr.decode()

    return ask


def test_every_command_is_about_the_memory_of_the_token(
    run: Run, owners: PostgresOwners, tmp_path: Path
) -> None:
    anna, bert = (
        owners.issue(owner, "laptop", tuple(Scope)).secret for owner in ("anna", "bert")
    )
    assert run(anna, "remember", "The bike is blue.", "--id", "bike")[0] == 0
    for number in range(3):
        assert run(anna, "remember", f"Bell {number} rang.")[0] == 0

    assert "blue" in run(anna, "recall", "bike")[1]
    assert "blue" not in run(bert, "recall", "bike")[1]
    assert run(anna, "edit", "bike", "--text", "The bike is green.")[0] == 0
    assert "green" in run(anna, "list")[1]
    assert (
        json.loads(run(anna, "status", "--json")[1])["tiers"]["working"]["count"] == 4
    )
    assert "4 memories" in run(anna, "export", str(tmp_path / "anna.jsonl"))[1]
    code, _, said = run(bert, "import", str(tmp_path / "anna.jsonl"))
    assert code == 0, said
    assert "green" in run(bert, "get", "bike")[1]
    assert run(anna, "forget", "bike", "--yes")[0] == 0
    assert run(anna, "get", "bike")[0] == 4
    assert "green" in run(bert, "get", "bike")[1]


def test_what_a_token_does_not_allow_is_said_in_one_line(
    run: Run, owners: PostgresOwners, tmp_path: Path
) -> None:
    reader = owners.issue("anna", "reader", (Scope.READ,)).secret
    notes = tmp_path / "notes.jsonl"
    notes.write_text('{"content": "The well is deep."}\n')

    for words, name, scope in (
        (("remember", "a bike"), "remember", "write"),
        (("forget", "bike", "--yes"), "forget", "forget"),
        (("import", str(notes)), "remember_many", "write"),
    ):
        code, shown, said = run(reader, *words)
        assert (code, shown) == (7, "")
        assert said == f"mnem: this token allows read; {name} needs the scope {scope}\n"
    code, _, said = run(reader, "remember", "a bike", "--json")
    assert (code, json.loads(said)["error"]["code"]) == (7, "scope_missing")


def test_the_live_view_shows_an_owner_its_memory_without_the_figures_of_the_machine(
    url: str, authority: Authority, owners: PostgresOwners
) -> None:
    token = owners.issue("anna", "laptop", tuple(Scope)).secret
    with Client(url=url, token=token, ca=authority.file) as client:
        client.remember("The bike is blue.", id="bike")

        snapshot = Feed(client).read()

    assert [memory.id for memory in snapshot.latest] == ["bike"]


def test_an_administrator_invites_from_afar_and_a_laptop_logs_in(
    run: Run, owners: PostgresOwners, url: str, authority: Authority, tmp_path: Path
) -> None:
    admin = owners.issue("local", "operator", (Scope.ADMIN,)).secret
    people = tmp_path / "people.csv"
    people.write_text("name;scopes;days\nzoe;;30\n")
    refused = run(admin, "owner", "invite", "--csv", str(people))[2]
    assert "line 1: semicolons separate the columns; use commas instead" in refused
    people.write_bytes(b"name\nz\xf6e\n")  # as Excel saves "CSV" in Europe
    refused = run(admin, "owner", "invite", "--csv", str(people))[2]
    assert "is no name" in refused
    people.write_text('\ufeffname,scopes,days\nzoe\nyan,"read,write",30\nzoe\n')

    code, printed, said = run(admin, "owner", "invite", "--csv", str(people))

    assert code == 0, said
    assert "added 2 owners" in said
    head, *rows = [line.split(",") for line in printed.split()]
    assert head == ["owner", "code"]
    assert [name for name, _ in rows] == ["zoe", "yan"]
    home = tmp_path / "laptop"
    home.mkdir()
    words = ("login", url, "--ca", str(authority.file), "--name", "laptop of zoe")
    assert mnem(*words, home=home, stdin=rows[0][1].lower().encode()).returncode == 0
    assert mnem("remember", "The bike is red.", home=home).returncode == 0
    assert "red" in mnem("recall", "bike", home=home).stdout.decode()
    assert "zoe" in run(admin, "owner", "list")[1]
    assert "laptop-of-zoe" in run(admin, "owner", "token", "list", "zoe")[1]
    assert run(admin, "recall", "bike")[0] == 7
    assert mnem("owner", "list", home=home).returncode == 7

    assert run(admin, "owner", "suspend", "zoe")[0] == 0
    eventually(
        lambda: mnem("recall", "bike", home=home).returncode == 7, "zoe is refused"
    )
    assert run(admin, "owner", "list", "--bytes")[0] == 0  # this daemon owns the tables
    assert run(admin, "owner", "remove", "zoe", "--yes")[0] == 0
    assert "zoe" not in run(admin, "owner", "list")[1]


def test_a_member_asks_the_memory_of_a_group_by_its_name(
    run: Run, url: str, authority: Authority, owners: PostgresOwners, tmp_path: Path
) -> None:
    owners.add("team", is_group=True)
    owners.join("team", "anna", (Scope.READ, Scope.WRITE))
    anna, bert = (
        owners.issue(owner, "laptop", tuple(Scope)).secret for owner in ("anna", "bert")
    )
    stored = run(anna, "--owner", "team", "remember", "The van is at dock 7.")
    assert stored[0] == 0
    assert run(anna, "remember", "My van is at home.", "--owner", "anna")[0] == 0

    found = json.loads(run(anna, "recall", "where is the van?", "--json")[1])
    assert {hit["owner"] for hit in found["hits"]} == {None, "team"}
    assert "  team  " in run(anna, "recall", "dock", "--format", "table")[1]
    kept = stored[1].strip()
    assert "dock 7" in run(anna, "get", kept[:20])[1]
    assert "dock 7" not in run(anna, "--owner", "anna", "list")[1]
    assert "team (read, write)" in run(anna, "status", "--format", "table")[1]
    code, _, said = run(bert, "--owner", "team", "recall", "van")
    unknown = run(bert, "--owner", "teem", "recall", "van")
    assert (code, said.replace("team", "teem")) == (unknown[0], unknown[2])
    assert "no memory of 'team' is yours to ask" in said
    with Client(url=url, token=anna, ca=authority.file, owner="team") as client:
        assert [hit.content for hit in client.recall("van").hits] == [
            "The van is at dock 7."
        ]
    call = {"name": "recall", "arguments": {"query": "where is the van?"}}
    line = json.dumps(
        {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
    )
    done = mnem(
        "mcp",
        home=tmp_path,
        stdin=line.encode(),
        MNEMOSYNE_URL=url,
        MNEMOSYNE_CA=str(authority.file),
        MNEMOSYNE_TOKEN=anna,
        MNEMOSYNE_OWNER="team",
    )
    assert b"dock 7" in done.stdout
    assert b"at home" not in done.stdout
