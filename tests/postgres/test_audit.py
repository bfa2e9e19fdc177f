"""The audit log of a daemon that serves owners: what is in it, and what shows that it was touched."""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import click
import psycopg
import pytest
from click.testing import CliRunner
from e2e.daemons import eventually
from postgres.daemons import Serve, Service
from support.postgres import number_of, programs, rows, run

from mnemosyned.assembly.build import open_memory
from mnemosyned.assembly.stores import open_audit
from mnemosyned.cli.maintenance.audit import audit
from mnemosyned.cli.maintenance.databases import db
from mnemosyned.cli.maintenance.owners import owner
from mnemosyned.client.login import ask_for_token
from mnemosyned.client.remote import RemoteDaemon
from mnemosyned.config.loading import load_config
from mnemosyned.config.settings import Config
from mnemosyned.errors import InvalidRequest, StorageFailed, Unauthorized
from mnemosyned.memory.engine_ports import OWN_SCOPES, Scope
from mnemosyned.service.audit import AuditFile, AuditLog, Requester
from mnemosyned.storage.postgres.audit import AuditTable
from mnemosyned.storage.postgres.owners import PostgresOwners
from mnemosyned.storage.postgres.roles import request_role
from mnemosyned.storage.postgres.session import PostgresSession
from mnemosyned.verbs.memories import Get
from mnemosyned.verbs.owners import Login

pytestmark = [pytest.mark.postgres, pytest.mark.usefixtures("anna_and_bert")]
ANNA = Requester(2, "0a", "token", "192.0.2.7")
WORDS = ("blue", "bicycle", "shed", "where")


@pytest.fixture
def serve(serve: Serve, tmp_path: Path) -> Serve:
    return partial(serve, MNEMOSYNE_AUDIT_FILE=str(tmp_path / "audit.jsonl"))


def logged(dsn: str) -> list[dict[str, Any]]:
    found = rows(dsn, "SELECT line FROM audit ORDER BY writer, seq")
    return [json.loads(line) for (line,) in found]


def test_every_request_has_a_line_and_no_line_has_a_word(
    dsn: str, owners: PostgresOwners, serve: Serve, tmp_path: Path
) -> None:
    token = owners.issue("anna", "laptop", OWN_SCOPES)
    with serve() as service:
        with service.client(token.secret) as client:
            client.remember("The blue bicycle is in the shed.", id="bike")
            client.recall("where is the bicycle?")
            client.forget(session="default", dry_run=True)
            client.forget(session="default")
            client.status()
        with service.client("mnt_2_" + "x" * 43) as client:
            for _ in range(3):
                with pytest.raises(Unauthorized):
                    client.recall("where?")
        with service.daemon.client() as client:
            client.remember("The daemon's own blue bicycle.", id="own")
        service.daemon.stop()

    lines = logged(dsn)
    assert [
        (line["verb"], line.get("outcome", ""), line.get("ids", []), line.get("count"))
        for line in lines
    ] == [
        ("started", "", [], None),
        ("remember", "", ["bike"], 1),
        ("recall", "", ["bike"], 1),
        ("forget", "preview", ["bike"], 1),
        ("forgotten", "", ["bike"], 1),
        ("forget", "", [], 1),
        ("remember", "", ["own"], 1),
        ("login", "unauthorized", [], 3),
        ("stopped", "", [], None),
    ]
    asked, own, login = lines[1], lines[6], lines[7]
    for name, value in {
        "owner": 2,
        "name": "anna",
        "token": token.token.id,
        "via": "token",
        "address": "127.0.0.1",
    }.items():
        assert asked[name] == value
    assert (own["owner"], own["name"], own["via"]) == (1, "local", "socket")
    assert (login["address"], login["about"]) == ("127.0.0.1", 2)
    file = audit_file(tmp_path)
    assert filed(file) == lines
    assert file.stat().st_mode & 0o777 == 0o600
    assert not [word for word in WORDS if word in file.read_text()]


def audit_file(folder: Path) -> Path:
    (file,) = folder.glob("audit-*")
    return file


def filed(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text().splitlines()]


@pytest.fixture(autouse=True)
def configured(dsn: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands of this process are about the same database and file as the daemons."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("MNEMOSYNE_DATABASE", dsn)
    monkeypatch.setenv("MNEMOSYNE_AUDIT_FILE", str(tmp_path / "audit.jsonl"))


def mnem(group: click.Group, *words: str) -> tuple[int, str]:
    done = CliRunner().invoke(
        group, words, catch_exceptions=False, standalone_mode=False
    )
    return done.return_value or 0, done.output


def verified(*words: str) -> tuple[int, str]:
    return mnem(audit, "verify", *words)


def replay(*words: str | Path) -> dict[str, Any]:
    done = mnem(db, "replay", "--json", *map(str, words))[1]
    answer: dict[str, Any] = json.loads(done)
    return answer


@contextmanager
def writer(dsn: str, tmp_path: Path) -> Iterator[AuditLog]:
    file = AuditFile(tmp_path / "audit.jsonl")
    with AuditTable(dsn) as table, AuditLog(table, file) as log:
        yield log


def write_chains(dsn: str, tmp_path: Path) -> list[str]:
    """Three chains: of a process, of two at once; the writers' ids."""
    with writer(dsn, tmp_path) as log:
        for number in range(5):
            log.note("recall", ids=[f"m{number}"], **ANNA._asdict())
    with writer(dsn, tmp_path) as first, writer(dsn, tmp_path) as second:
        for number in range(5):
            first.note("recall", ids=[f"m{number}"], **ANNA._asdict())
            second.note("forgotten", ids=[f"f{number}"], whole=True, **ANNA._asdict())
    found = rows(dsn, "SELECT DISTINCT writer FROM audit ORDER BY 1")
    return [name for (name,) in found]


def test_lines_about_an_owner_are_found_by_each_name_that_it_had(
    dsn: str, tmp_path: Path
) -> None:
    with writer(dsn, tmp_path) as log:
        for name in ("anna", "anna.bell"):
            log.note("recall", owner=2, name=name)
        log.note("recall", owner=3, name="bert")
        log.note("owner_remove", name="root", about=2)

    for name in ("anna", "anna.bell"):
        _, shown = mnem(audit, "list", "--owner", name)
        removed, *others = shown.splitlines()[2:]
        assert removed.split()[2:] == ["root", "owner_remove", "anna.bell", "0"]
        assert len(others) == 2


ATTACKS = {
    "UPDATE audit SET line = replace(line, 'm2', 'm9') WHERE {} AND seq = 4": "line 4",
    "UPDATE audit SET at = at - interval '1 day' WHERE {} AND seq = 4": "line 4",
    "DELETE FROM audit WHERE {} AND seq = 3": "line 4",
    "DELETE FROM audit WHERE {} AND seq = 1": "line 2",
    "DELETE FROM audit WHERE {} AND seq > 5": "lines 6 to 7",
    "DELETE FROM audit WHERE {}": "lines 1 to 7",
    "UPDATE audit AS a SET line = b.line FROM audit AS b WHERE a.writer = b.writer "
    "AND a.{} AND (a.seq, b.seq) IN ((3, 4), (4, 3))": "line 4",
    "UPDATE audit SET line = 'x' WHERE {} AND seq = 7": "line 7",
}
"""What is done to the first chain, and which fault names it."""


def test_touched_lines_show_by_other_chains(dsn: str, tmp_path: Path) -> None:
    first, *_ = write_chains(dsn, tmp_path)
    audit_file(tmp_path).unlink()
    code, said = verified()
    assert (code, "lines in 3 chains: whole; 0 " in said) == (0, True)
    run(dsn, "CREATE TABLE untouched AS TABLE audit")

    for attack, fault in ATTACKS.items():
        run(dsn, attack.format(f"writer = '{first}'"))
        code, said = verified()
        run(dsn, "TRUNCATE audit", "INSERT INTO audit TABLE untouched")

        assert code == 1, attack
        assert re.search(f"chain {first}[,:] {fault}", said), (attack, said)
    assert verified()[0] == 0


def test_a_cut_chain_shows_against_earlier_heads(dsn: str, tmp_path: Path) -> None:
    with writer(dsn, tmp_path) as log:
        log.note("recall", ids=["m1"], **ANNA._asdict())
    audit_file(tmp_path).unlink()
    before = tmp_path / "before.json"
    before.write_text(verified("--json")[1])
    assert verified("--against", str(before))[0] == 0

    run(dsn, "DELETE FROM audit WHERE seq > 1")

    assert verified()[0] == 0
    code, said = verified("--against", str(before))
    assert (code, "in 1 chain: 1 fault; " in said) == (1, True), said


@pytest.mark.parametrize("content", ["", "[]", '{"heads": 5}', "no JSON"])
def test_verify_refuses_a_file_of_others(tmp_path: Path, content: str) -> None:
    file = tmp_path / "before.json"
    file.write_text(content)

    with pytest.raises(InvalidRequest, match="not what `mnem audit verify --json`"):
        verified("--against", str(file))


def call_server(dsn: str, program: str, *words: str) -> None:
    subprocess.run(
        [programs() / program, *words, "-d", dsn], check=True, capture_output=True
    )


def test_a_replay_forgets_removes_and_revokes_again_what_a_restore_brought_back(
    dsn: str, owners: PostgresOwners, serve: Serve, tmp_path: Path
) -> None:
    for name in ("carl", "dora"):
        owners.add(name)
    (invited,) = owners.invite([("bert", OWN_SCOPES, 9.0)], lasts=timedelta(days=7))
    tokens = {
        name: owners.issue(name, "laptop", OWN_SCOPES).secret
        for name in ("anna", "bert", "carl")
    }
    lost = owners.issue("anna", "lost", OWN_SCOPES).secret
    owners.add("team", is_group=True)
    for member in ("anna", "bert"):
        owners.join("team", member, OWN_SCOPES)
    dump = str(tmp_path / "dump")

    def ask(service: Service) -> list[list[str]]:
        found = []
        for name in ("anna", "bert"):
            with service.client(tokens[name]) as client:
                hits = client.recall("where is the bicycle?").hits
                found.append([hit.id for hit in hits])
        return found

    with serve() as service:
        for name, token in tokens.items():
            with service.client(token) as client:
                for number in range(4):
                    text = f"The bicycle {number} is {name}'s."
                    client.remember(text, id=f"b{number}")
                client.learn("Answer in French.")
        with service.client(tokens["anna"], owner="team") as client:
            client.remember("The team has a tandem.", id="tandem")
        call_server(dsn, "pg_dump", "-Fc", "-f", dump)
        with service.client(tokens["anna"]) as client:
            client.forget(id=["b1", "b2"])
            client.forget(id="tandem")  # of the group, which is not named
            (learning,) = client.learnings().learnings
            client.remove_learning(learning.id)
        receipt = tmp_path / "receipt.json"
        for words in (
            ("token", "revoke", "anna", "lost"),
            ("remove", "carl", "--yes", "--receipt", str(receipt)),
            ("suspend", "dora"),
            ("group", "leave", "team", "bert"),
        ):
            assert mnem(owner, *words)[0] == 0
        asked = Login(invited.code, "laptop")
        assert ask_for_token(RemoteDaemon(service.url, token=""), asked).owner == "bert"
        expected = ask(service)
        service.daemon.stop()
    said = receipt.read_text()
    body, digest = said.split(',\n  "sha256": ')
    assert hashlib.sha256(body.encode()).hexdigest() in digest
    removed = json.loads(said)
    assert (removed["name"], removed["memories"]) == ("carl", 4)
    assert removed["rows"]["memory"] == 4
    assert any("audit log" in place for place in removed["left"])
    files = sorted(tmp_path.glob("audit-*.jsonl"))
    run(dsn, "DROP SCHEMA public CASCADE", "CREATE SCHEMA public")
    call_server(dsn, "pg_restore", dump)
    settings = load_config(
        None, overrides={"owners.serve": True, "listen": "127.0.0.1:0"}
    )
    with (
        pytest.raises(StorageFailed, match=re.escape(f"mnem db replay {files[0]}")),
        open_audit(settings),
    ):
        pass

    foretold, done, again = replay("--dry-run", *files), replay(*files), replay(*files)

    figures = ("forgotten", "owners", "tokens")
    assert [foretold[name] for name in figures] == [3, ["carl"], 1]
    assert [done[name] for name in (*figures, "learnings")] == [3, ["carl"], 1, 1]
    assert [each.member for each in owners.memberships()] == ["anna"]
    assert [again[name] for name in ("lines", *figures)] == [0, 0, [], 0]
    assert verified()[0] == 0
    with serve() as service:
        assert ask(service) == expected
        with service.client(tokens["anna"]) as client:
            assert not client.learnings().learnings
        for token in (lost, tokens["carl"]):
            assert service.status("/v1/recall", token, query="where?") == 401
    left = ["anna", "bert", "dora", "local", "team"]
    assert [each.name for each in owners.owners()] == left
    assert {each.name for each in owners.owners() if each.suspended_at} == {"dora"}
    assert owners.redeem(invited.code, "laptop") is None


def test_a_replay_leaves_an_owner_alone_who_got_the_number_of_one_removed(
    dsn: str, owners: PostgresOwners, tmp_path: Path
) -> None:
    number = owners.add("carol").number
    (tmp_path / "b").mkdir()
    with writer(dsn, tmp_path) as first, writer(dsn, tmp_path / "b") as second:
        second.note_change("owner_suspend", number)
        first.note_change("owner_suspend", owners.number("bert"))
        owners.on_change = second.note_change
        owners.remove("carol")
    again = f"SELECT setval('owner_number', {number}, false)"
    run(dsn, "DELETE FROM audit WHERE seq > 1", again)
    for folder in (tmp_path, tmp_path / "b"):
        assert replay(audit_file(folder))["lines"]
        if folder == tmp_path:
            assert owners.add("dave").number == number
        there = owners.owners()
        assert "dave" in {each.name for each in there}
        assert {each.name for each in there if each.suspended_at} == {"bert"}


def test_a_replay_renames_again_and_ends_the_membership_of_who_was_renamed(
    dsn: str, owners: PostgresOwners, tmp_path: Path
) -> None:
    numbers = {name: owners.number(name) for name in ("anna", "bert")}
    owners.add("team", is_group=True)
    for member in numbers:
        owners.join("team", member, OWN_SCOPES)
    with writer(dsn, tmp_path) as log:
        owners.on_change = log.note_change
        swap = (("anna", "spare"), ("bert", "anna"), ("spare", "bert"))
        for old, new in swap:
            owners.change(old, new_name=new)
        owners.leave("team", "anna")
        spare = f"{owners.add('carl').number}.replayed"
        owners.change("carl", new_name="carla")
    run(dsn, "DELETE FROM audit WHERE seq > 1")
    owners.on_change = lambda *_: None
    for old, new in swap:
        owners.change(old, new_name=new)
    owners.join("team", "bert", OWN_SCOPES)
    assert {name: owners.number(name) for name in numbers} == numbers
    owners.change("carla", new_name=spare)  # by a replay that was interrupted
    owners.add("carla")

    assert replay(audit_file(tmp_path))["renamed"] == 3

    assert owners.number("bert") == numbers["anna"]
    assert owners.number("anna") == numbers["bert"]
    assert [each.member for each in owners.memberships("team")] == ["bert"]
    assert owners.number(spare) < owners.number("carla")


def test_a_replay_withdraws_codes_and_takes_back_rights_in_groups(
    dsn: str, owners: PostgresOwners, tmp_path: Path
) -> None:
    owners.add("team", is_group=True)
    leaked, _ = [
        owners.invite([(name, OWN_SCOPES, 9.0)], lasts=timedelta(days=7))[0]
        for name in ("anna", "bert")
    ]
    run(dsn, "CREATE TABLE kept AS TABLE owner_invitation")
    with writer(dsn, tmp_path) as log:
        owners.on_change = log.note_change
        owners.invite([("anna", OWN_SCOPES, 9.0)], lasts=timedelta(days=7))
        for scopes in ([Scope.READ, Scope.FORGET], [Scope.WRITE, Scope.READ]):
            owners.join("team", "bert", scopes)
    run(
        dsn,
        "DELETE FROM audit WHERE seq > 1",
        "TRUNCATE owner_invitation",
        "INSERT INTO owner_invitation TABLE kept",
    )
    owners.on_change = lambda *_: None
    owners.join("team", "anna", OWN_SCOPES)
    owners.join("team", "bert", [Scope.READ, Scope.FORGET])

    file = audit_file(tmp_path)
    said = mnem(db, "replay", "--dry-run", str(file))[1]
    assert "1 code withdrawn, 1 membership ended or restricted" in said
    for done in (replay("--dry-run", file), replay(file)):
        assert done["codes"] == done["members"] == 1
    assert owners.redeem(leaked.code, "laptop") is None
    assert [each.invitations for each in owners.owners()][:2] == [0, 1]
    assert [each.scopes for each in owners.memberships("team")] == [
        tuple(OWN_SCOPES),
        (Scope.READ,),
    ]


def test_a_faulty_or_foreign_file_is_not_replayed(dsn: str, tmp_path: Path) -> None:
    write_chains(dsn, tmp_path)
    file = audit_file(tmp_path)
    lines = file.read_text().splitlines(keepends=True)
    other = tmp_path / "other.jsonl"
    other.write_text("".join(lines[:3] + lines[4:]))
    run(dsn, "DELETE FROM audit")
    with pytest.raises(InvalidRequest, match=r"line 5 of .* follows line 3"):
        replay(other)
    with AuditTable(dsn) as table, AuditLog(table) as log:
        log.note("recall", **ANNA._asdict())
    with pytest.raises(InvalidRequest, match="is it another"):
        replay(file)
    assert not rows(dsn, "SELECT 1 FROM audit WHERE line LIKE '%forgotten%'")
    assert mnem(db, "replay", "--despite-faults", str(other))[0] == 0


def test_pruned_chains_can_be_checked(dsn: str, tmp_path: Path) -> None:
    first, second, _ = write_chains(dsn, tmp_path)
    old = audit_file(tmp_path).rename(tmp_path / "audit-2025-01.jsonl")
    aged = (
        "UPDATE audit SET at = at - interval '500 days' WHERE writer = '{}' OR seq < 3"
    )
    run(dsn, aged.format(first))

    code, said = mnem(audit, "prune", "--older", "400d")

    assert (code, "and 1 file" in said, old.exists()) == (0, True, False)
    assert number_of(dsn, "SELECT min(seq) FROM audit WHERE writer = %s", second) == 3
    assert verified()[0] == 0
    run(dsn, f"DELETE FROM audit WHERE writer = '{second}' AND seq = 3")
    code, said = verified()
    assert (code, f"chain {second}, line 4" in said) == (1, True)


def test_a_replay_adds_no_line_that_was_pruned(dsn: str, tmp_path: Path) -> None:
    write_chains(dsn, tmp_path)
    file = audit_file(tmp_path)
    before = len(filed(file))

    for _ in range(2):
        code, said = mnem(audit, "prune", "--older", "0d", "--json")
        assert (code, json.loads(said)["lines"] > 0) == (0, True)

    assert number_of(dsn, "SELECT count(*) FROM audit") < before
    assert replay(file)["lines"] == 0


def test_lines_whose_numbers_another_took_follow_in_a_new_chain_and_are_replayed(
    dsn: str, owners: PostgresOwners, tmp_path: Path
) -> None:
    number = owners.number("bert")
    with writer(dsn, tmp_path) as log, AuditTable(dsn) as thief:
        log.note("recall", whole=True, **ANNA._asdict())
        ((taken, (last, _)),) = thief.heads(1).items()
        places = [*range(last + 1, last + 4), 10**9]
        junk = [(taken, place, datetime.now(UTC), "{}") for place in places]
        assert thief.append(junk) == 0
        log.note_change("owner_suspend", number)
        (other,) = {*thief.heads(9)} - {taken}

    file = audit_file(tmp_path)
    verbs = [each["verb"] for each in filed(file) if each["writer"] == other]
    assert verbs == ["started", "owner_suspend", "stopped"]
    assert verified()[0] == 1
    run(  # a backup with lines that a thief put in the place of those to come
        dsn,
        f"DELETE FROM audit WHERE writer = '{other}' AND seq > 1",
        f"INSERT INTO audit VALUES ('{other}', 2, now(), '{{}}'), ('{other}', 1000, now(), '{{}}')",
    )
    owners.change("bert", suspended=False)
    done, again = (replay("--despite-faults", file) for _ in range(2))
    assert (done["lines"], done["suspended"], again["lines"]) == (2, 1, 0)


def test_requests_append_by_a_function_alone(dsn: str, owners: PostgresOwners) -> None:
    owners.issue("anna", "laptop", OWN_SCOPES)
    with psycopg.connect(dsn, autocommit=True) as connection:
        role = request_role(PostgresSession(connection, 0))
        connection.execute(f'SET ROLE "{role}"'.encode())
        connection.execute(
            "SELECT audit_append(ARRAY['w'], ARRAY[1::bigint], ARRAY[now()], ARRAY['{}'])"
        )
        for statement in (
            b"SELECT * FROM audit",
            b"UPDATE audit SET line = ''",
            b"DELETE FROM audit",
            b"TRUNCATE audit",
            b"INSERT INTO audit VALUES ('w', 2, now(), '')",
        ):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                connection.execute(statement)
        with pytest.raises(psycopg.errors.CheckViolation):
            connection.execute(
                "SELECT audit_append(ARRAY['w'], ARRAY[2::bigint], "
                "ARRAY['-infinity'::timestamptz], ARRAY['{}'])"
            )


def test_an_export_of_an_owner_has_everything_and_can_be_imported(
    dsn: str, owners: PostgresOwners, serve: Serve, tmp_path: Path
) -> None:
    token = owners.issue("anna", "laptop", OWN_SCOPES)
    owners.add("team", is_group=True)
    owners.join("team", "anna", OWN_SCOPES)
    with serve() as service:
        with service.client(token.secret) as client:
            client.remember("The blue bicycle is in the shed.", id="bike")
            client.learn("Answer in French.")
        service.daemon.stop()
    file = tmp_path / "anna.jsonl"

    code, said = mnem(owner, "export", "anna", str(file), "--json")

    receipt = json.loads(said)
    account = Path(f"{file}.account.jsonl")
    kinds = [each["record"] for each in filed(account)]
    assert (code, receipt["records"]["memory"]) == (0, 1)
    assert kinds[:3] == ["owner", "token", "membership"]
    assert {"audit"} < set(kinds)
    assert token.secret.rsplit("_", 1)[-1] not in account.read_text()
    for path in (file, account):
        assert path.stat().st_mode & 0o777 == 0o600
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        assert receipt["sha256"][str(path)] == digest
    with open_memory(Config(database=str(tmp_path / "copy.db"))) as memory:
        lines = file.read_bytes().splitlines(keepends=True)[1:-1]
        memory.service.restore_lines(b"".join(lines))
        assert memory.service.call(Get("bike")).memory
    assert logged(dsn)[-2]["verb"] == "owner_export"


def test_logins_and_administration_over_tcp_are_logged(
    dsn: str, owners: PostgresOwners, serve: Serve
) -> None:
    (invited,) = owners.invite([("anna", OWN_SCOPES, None)], lasts=timedelta(days=1))
    chief = owners.issue("bert", "chief", [Scope.ADMIN]).secret
    code = {"code": invited.code, "name": "laptop"}

    with serve() as service:
        ask = service.status
        token = service.ask("/v1/login", fields=code)[2]["token"]
        assert ask("/v1/login", **code) == 401
        assert ask("/v1/owners/remove", token, name="bert") == 403
        assert ask("/v1/owners", chief) == 200
        assert ask("/v1/owners/change", chief, name="anna", suspended=True) == 200
        service.daemon.stop()

    lines = [
        (each["verb"], each.get("outcome"), each.get("owner"), each.get("about"))
        for each in logged(dsn)
    ]
    assert lines[1:-1] == [
        ("login", None, None, 2),
        ("owners/remove", "scope_missing", 2, None),
        ("owners", None, 3, None),
        ("owner_suspend", None, 3, 2),
        ("owners/change", None, 3, None),
        ("login", "unauthorized", None, None),
    ]
    assert [each["via"] for each in logged(dsn)[1:4]] == ["code", "token", "token"]


def test_a_daemon_says_that_a_standby_which_took_over_lacks_lines(
    dsn: str, owners: PostgresOwners, serve: Serve
) -> None:
    token = owners.issue("anna", "laptop", OWN_SCOPES).secret
    with (
        serve() as service,
        service.client(token) as client,
        service.daemon.client() as local,
    ):
        done = client.remember("The bicycle is blue.")
        client.forget(id=done.id)
        run(
            dsn,
            "DELETE FROM audit WHERE line LIKE '%forgotten%'",
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid != pg_backend_pid()",
        )

        def asked_again() -> bool:
            client.recall("bicycle")
            return any("mnem db replay /" in each for each in local.status().warnings)

        eventually(asked_again, "the loss is reported")
        assert len(service.daemon.events("audit_lines_missing")) == 1


def test_two_killed_daemons_have_logged_what_was_forgotten_and_lack_no_line_between(
    dsn: str, owners: PostgresOwners, serve: Serve, tmp_path: Path
) -> None:
    token = owners.issue("anna", "laptop", OWN_SCOPES).secret
    with serve() as first, serve() as second:
        for service in (first, second, first, second):
            with service.client(token) as client:
                done = client.remember("The bicycle is blue.")
                client.forget(id=done.id)
        first.daemon.kill()
        second.daemon.kill()

    for lines in (logged(dsn), filed(audit_file(tmp_path))):
        verbs = Counter(line["verb"] for line in lines)
        assert verbs["forgotten"] == verbs["forget"] == verbs["remember"] == 4
    code, said = verified()
    assert (code, "2 chains: whole; 2 chains without a stop" in said) == (0, True)
