"""Enrolment with codes, renewal and administration, with the login of a daemon that owns nothing."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any
from unittest.mock import Mock, call

import psycopg
import pytest
from support.fakes import memory, remember_batch
from support.postgres import (
    open_owned_stores,
    open_store,
    rows,
    rows_of,
    run,
)

from mnemosyned.config.settings import OwnersConfig
from mnemosyned.daemon.http.server import make_handler
from mnemosyned.daemon.metrics import ServerActivity
from mnemosyned.daemon.owners import (
    TRIES_OF_ADDRESS,
    TRIES_OF_ALL,
    OwnerResources,
    TokenCache,
    TryLimit,
)
from mnemosyned.errors import LimitReached, NotFound, StorageFailed, Unauthorized
from mnemosyned.http_messages import HttpRequest
from mnemosyned.memory.engine_ports import (
    CODE_CHARS,
    OWN_SCOPES,
    Enrolment,
    Owner,
    Scope,
    format_code,
    read_code,
)
from mnemosyned.service.audit import REQUESTER, AuditLog
from mnemosyned.service.owners import OwnerLimiter
from mnemosyned.storage.postgres.owners import PostgresOwners
from mnemosyned.verbs.owners import ADMINISTRATION

pytestmark = pytest.mark.postgres
WEEK = timedelta(days=7)


@pytest.fixture
def serving(served: str) -> Iterator[PostgresOwners]:
    with open_owned_stores(served) as stores:
        yield stores.owners


Door = Callable[..., tuple[int, Any]]
"""Answers a request over TCP: its status and its body."""


def resources_of(owners: PostgresOwners, **given: Any) -> OwnerResources:  # noqa: ANN401 of them
    """What a daemon for many owners has, but for their memories."""
    usual = {
        "tokens": TokenCache(owners),
        "memory_of": Mock(side_effect=AssertionError("no memory is opened for that")),
        "limits": OwnerLimiter(OwnersConfig, lambda _: ("anna", 0)),
        "common": {},
    }
    return OwnerResources(**{**usual, **given})


def request(
    path: str, bearer: str = "", method: str = "POST", **fields: object
) -> HttpRequest:
    headers = {"authorization": f"Bearer {bearer}"} if bearer else {}
    body = b"" if method == "GET" else json.dumps(fields).encode()
    return HttpRequest(
        method, path, "", body, headers, local=False, address="192.0.2.7"
    )


@pytest.fixture
def door(serving: PostgresOwners) -> Door:
    seconds = count(0, 2)  # so that each request asks the database
    answer = make_handler(
        {},
        ServerActivity(),
        tcp_resources=resources_of(
            serving,
            tokens=TokenCache(serving, now=lambda: float(next(seconds))),
            config=lambda: OwnersConfig(token_days=30, token_days_max=60),
        ),
    )

    def ask(path: str, bearer: str = "", /, **fields: Any) -> tuple[int, Any]:  # noqa: ANN401 JSON
        response = answer(request(path, bearer, **fields))
        return response.status.value, json.loads(response.body)

    return ask


def login(door: Door, code: str, name: str = "laptop") -> tuple[int, Any]:
    return door("/v1/login", code=code, name=name)


@pytest.fixture
def anna(owners: PostgresOwners) -> Owner:
    return owners.add("anna")


def invite(owners: PostgresOwners, name: str, *, lasts: timedelta = WEEK) -> str:
    (made,) = owners.invite([(name, OWN_SCOPES, 90.0)], lasts=lasts)
    return made.code


def test_a_code_is_read_as_people_type_it() -> None:
    code = format_code(12, "K3F9A0Q1ZX" * 2)

    assert code == "12-K3F9A-0Q1ZX-K3F9A-0Q1ZX"
    for typed in (
        code.lower(),
        code.replace("0", "o").replace("1Z", "lZ"),
        f" {code}\n",
    ):
        assert read_code(typed) == (12, "K3F9A0Q1ZX" * 2)
    for wrong in ("", "-", code[:-1], code + "A", code.replace("K", "U"), "x" + code):
        assert read_code(wrong) is None
    assert read_code(f"{2**63}-" + "A" * CODE_CHARS) is None
    assert read_code("٣-" + "A" * CODE_CHARS) is None


def test_a_code_is_exchanged_for_a_token_once(
    owners: PostgresOwners, door: Door, dsn: str
) -> None:
    code = invite(owners, "anna")
    kept = rows(dsn, "SELECT i::text FROM owner_invitation AS i")
    assert code.partition("-")[2].replace("-", "") not in str(kept)

    status, enrolled = login(door, code.lower(), "laptop of anna")

    assert status == 200
    assert (enrolled["owner"], enrolled["scopes"]) == ("anna", list(OWN_SCOPES))
    left = datetime.fromisoformat(enrolled["expires_at"]) - datetime.now(UTC)
    assert timedelta(days=59) < left < timedelta(days=61)  # the most of the settings
    holder = owners.holder(enrolled["token"])
    assert holder
    assert (holder.name, holder.scopes) == ("laptop-of-anna", frozenset(OWN_SCOPES))


def test_wrong_codes_are_refused_alike(owners: PostgresOwners, door: Door) -> None:
    used, expired = invite(owners, "anna"), invite(owners, "bert", lasts=-WEEK)
    suspended = invite(owners, "carl")
    owners.change("carl", suspended=True)
    assert login(door, used)[0] == 200
    unknown = format_code(read_code(used)[0], "A" * CODE_CHARS)  # type: ignore[index]

    answers = [
        login(door, code)
        for code in (used, expired, suspended, unknown, "nonsense", "9-" + "A" * 20)
    ]

    assert {(status, each["error"]["code"]) for status, each in answers} == {
        (401, "unauthorized")
    }
    assert len({answer["error"]["message"] for _, answer in answers}) == 1
    owners.change("carl", suspended=False)
    assert login(door, suspended)[0] == 200


def test_of_many_logins_with_one_code_one_succeeds(
    owners: PostgresOwners, serving: PostgresOwners
) -> None:
    invited = owners.invite([("anna", OWN_SCOPES, 90.0)] * 4, lasts=WEEK)
    codes = [each.code for each in invited] * 12
    with ThreadPoolExecutor(8) as threads:
        made = list(threads.map(lambda code: serving.redeem(code, "laptop"), codes))

    assert len([each for each in made if each]) == 4
    assert len(owners.tokens("anna")) == 4
    assert owners.owners()[0].invitations == 0


def test_a_new_code_takes_the_place_of_those_before(owners: PostgresOwners) -> None:
    former, other = invite(owners, "anna"), invite(owners, "bert")
    present = invite(owners, "anna")

    assert owners.redeem(former, "laptop") is None
    assert owners.redeem(present, "laptop")
    assert owners.redeem(other, "laptop")


def test_guesses_are_limited_by_machine_and_in_all() -> None:
    moment = [0.0]
    limit = TryLimit(now=lambda: moment[0])

    def taken(address: str) -> int:
        for number in range(TRIES_OF_ALL + 1):
            try:
                limit.take(address)
            except LimitReached:
                return number
        raise AssertionError("no limit")

    assert taken("192.0.2.7") == TRIES_OF_ADDRESS
    assert taken("::ffff:192.0.2.7") == 0
    assert taken("2001:db8::1") == TRIES_OF_ADDRESS
    assert taken("2001:db8::2") == 0
    assert taken("2001:db8:0:1::1") == TRIES_OF_ADDRESS
    others = sum(taken(f"198.51.100.{number}") for number in range(100))
    assert others == TRIES_OF_ALL - 3 * TRIES_OF_ADDRESS
    moment[0] = 60.0
    assert taken("192.0.2.7") == TRIES_OF_ADDRESS


def test_a_guesser_keeps_nobody_out(owners: PostgresOwners, door: Door) -> None:
    code = invite(owners, "anna")

    guesses = [login(door, "1-guess") for _ in range(TRIES_OF_ADDRESS + 1)]

    *refused, (status, answer) = guesses
    assert {status for status, _ in refused} == {401}
    assert (status, answer["error"]["code"]) == (429, "limit_reached")
    assert login(door, code)[0] == 200


def test_foreign_requests_are_counted(owners: PostgresOwners, anna: Owner) -> None:
    audit = Mock(AuditLog)
    limits = OwnersConfig(requests_per_minute=3)
    limiter = OwnerLimiter(lambda: limits, lambda _: ("anna", 0))
    resources = resources_of(owners, limits=limiter, audit=audit)
    asked = request("/v1/recall", owners.issue("anna", "laptop", OWN_SCOPES).secret)
    foreign = replace(asked, headers={**asked.headers, "mnemosyne-owner": "board"})

    for _ in range(3):
        with pytest.raises(NotFound):
            resources(foreign)
    with pytest.raises(LimitReached):
        resources(foreign)

    assert audit.note.call_args_list == [call("request", outcome="not_found")] * 3
    assert REQUESTER.get().owner == anna.number


@pytest.mark.usefixtures("anna")
def test_a_token_is_renewed_by_its_holder(
    owners: PostgresOwners, door: Door, dsn: str
) -> None:
    issued = owners.issue("anna", "laptop", [Scope.READ], valid_for=timedelta(days=9))

    status, renewed = door("/v1/renew", issued.secret)

    assert (status, renewed["owner"], renewed["scopes"]) == (200, "anna", ["read"])
    new, old = owners.tokens("anna")
    assert new.name == "laptop"
    assert new.expires_at == new.created_at + timedelta(days=9)
    assert old.expires_at == new.created_at + WEEK
    assert owners.holder(issued.secret)
    # Once more with the old one, as if the answer had been lost: as long as the first.
    again = door("/v1/renew", issued.secret)[1]["expires_at"]
    assert owners.tokens("anna")[0].expires_at == datetime.fromisoformat(again)
    run(dsn, f"UPDATE owner_token SET expires_at = now() WHERE id = '{old.id}'")
    assert door("/v1/renew", issued.secret)[0] == 401
    assert door("/v1/renew")[0] == 401


@pytest.mark.usefixtures("anna")
def test_a_renewal_prolongs_no_old_token(owners: PostgresOwners, door: Door) -> None:
    issued = owners.issue("anna", "job", OWN_SCOPES, valid_for=timedelta(days=2))
    (before,) = owners.tokens("anna")

    assert door("/v1/renew", issued.secret)[0] == 200

    assert owners.tokens("anna")[1].expires_at == before.expires_at


@pytest.mark.usefixtures("anna")
def test_a_renewed_token_gets_an_end(owners: PostgresOwners, door: Door) -> None:
    secret = owners.issue("anna", "ever", OWN_SCOPES).secret

    for _ in range(2):
        assert door("/v1/renew", secret)[0] == 200

    for token in owners.tokens("anna")[:2]:
        assert token.expires_at == token.created_at + timedelta(days=30)


@pytest.mark.usefixtures("anna")
def test_endless_renewals_fill_no_table(owners: PostgresOwners, door: Door) -> None:
    secret = owners.issue("anna", "laptop", OWN_SCOPES, valid_for=WEEK).secret
    for _ in range(250):
        status, renewed = door("/v1/renew", secret)
        if status == 429:
            owners.revoke("anna", "laptop")
            secret = owners.issue("anna", "laptop", OWN_SCOPES, valid_for=WEEK).secret
        else:
            secret = renewed["token"]

    assert 100 <= len(owners.tokens("anna")) <= 202


@pytest.mark.parametrize("end", ["revoke", "suspend", "remove"])
@pytest.mark.usefixtures("anna")
def test_no_token_outlives_its_revocation_amid_renewals(
    owners: PostgresOwners, serving: PostgresOwners, end: str
) -> None:
    made = [owners.issue("anna", "laptop", OWN_SCOPES, valid_for=WEEK).secret]
    over = threading.Event()

    def renew() -> None:
        while not over.is_set():
            if renewed := serving.renew(made[-1], usual=WEEK):
                made.append(renewed.token)

    with ThreadPoolExecutor(3) as threads:
        renewing = [threads.submit(renew) for _ in range(3)]
        while len(made) < 8:
            pass
        if end == "revoke":
            owners.revoke("anna", "laptop")
        elif end == "suspend":
            owners.change("anna", suspended=True)
        else:
            owners.remove("anna")
        over.set()
        for each in renewing:
            each.result()

    assert [secret for secret in made if serving.holder(secret)] == []


def admin_token(owners: PostgresOwners) -> str:
    return owners.issue("local", "operator", [Scope.ADMIN]).secret


def test_owners_are_administered_from_afar(
    owners: PostgresOwners, door: Door, dsn: str, served: str
) -> None:
    token = admin_token(owners)

    def administer(path: str, **fields: Any) -> Any:  # noqa: ANN401
        status, answer = door(f"/v1/owners{path}", token, **fields)
        assert status == 200, answer
        return answer

    named = {"token": "ci"}
    anna = administer("/add", name="anna")
    made = administer(
        "/invite",
        owners=[{"name": "anna"}, {"name": "bert", "scopes": ["read"], "days": 9}],
    )["invitations"]
    assert [(each["owner"], each["added"]) for each in made] == [
        ("anna", False),
        ("bert", True),
    ]
    secret = administer("/tokens/issue", owner="anna", name="ci", days=60)["secret"]
    assert owners.holder(secret)
    rotated = administer("/tokens/rotate", owner="anna", **named)["secret"]
    assert owners.holder(secret) is None
    assert administer("/tokens/revoke", owner="anna", **named) == {"revoked": 1}
    assert owners.holder(rotated) is None
    states = [each["valid"] for each in administer("/tokens", owner="anna")["tokens"]]
    assert states == [False, False]
    assert administer("/change", name="bert", new_name="berta") == {"name": "berta"}
    assert administer("/change", name="berta", suspended=True) == {"name": "berta"}
    with open_store(served, owner=anna["number"], guarded=True) as store:
        remember_batch(store, memory("1", "a word"))
    listed = administer("", method="GET")["owners"]
    assert [each["name"] for each in listed] == ["anna", "berta", "local"]
    assert (listed[0]["memories"], listed[0]["invitations"]) == (1, 1)
    assert listed[1]["suspended_at"]
    removed = administer("/remove", name="anna")
    assert (removed["name"], removed["memories"]) == ("anna", 1)
    assert {
        table: rows for table, rows in rows_of(dsn, anna["number"]).items() if rows
    } == {}


def test_refused_administration_is_explained(
    owners: PostgresOwners, door: Door
) -> None:
    token = admin_token(owners)
    owners.add("anna")
    for path, fields, said in (
        ("/add", {"name": "anna"}, "already"),
        ("/change", {"name": "anna", "new_name": "local"}, "already"),
        ("/change", {"name": "local", "suspended": True}, "revoke its tokens"),
        ("/remove", {"name": "local"}, "mnem forget"),
        ("/tokens/issue", {"owner": "anna", "days": 61}, "owners.token_days_max"),
        ("/tokens/issue", {"owner": "bert"}, "there is no owner 'bert'"),
        ("/invite", {"owners": [{"name": "ok"}, {"name": "not ok"}]}, "is no name"),
        (
            "/invite",
            {"owners": [{"name": "ok"}, {"name": "ok", "days": 3}]},
            "name it once",
        ),
        ("", {"bytes": True}, "the tables belong to postgres"),
    ):
        status, answer = door(f"/v1/owners{path}", token, **fields)
        assert status != 200, path
        assert said in answer["error"]["message"], answer
    assert [each.name for each in owners.owners()] == ["anna", "local"]


def test_only_an_administrators_token_administers(
    owners: PostgresOwners, serving: PostgresOwners, door: Door
) -> None:
    owners.add("anna")
    owners.add("boss")
    issue = owners.issue
    suspended = issue("boss", "suspended", [Scope.ADMIN]).secret
    owners.change("boss", suspended=True)
    issue("local", "revoked", [Scope.ADMIN])
    wrong = {
        issue("anna", "laptop", OWN_SCOPES).secret: 403,
        suspended: 401,
        issue("local", "gone", [Scope.ADMIN], valid_for=timedelta(0)).secret: 401,
        f"mnt_1_{'A' * 43}": 401,
        "": 401,
    }
    fields: dict[str, Any] = {
        "name": "anna",
        "owner": "anna",
        "token": "laptop",
        "owners": [{"name": "x"}],
    }
    for verb in ADMINISTRATION:
        path = f"/v1/{verb.verb_name()}"
        own = {name: fields[name] for name in verb.__struct_fields__ if name in fields}
        for secret, expected in wrong.items():
            assert door(path, secret, **own)[0] == expected, (path, secret)
    # The database refuses, too, whatever the daemon believes.
    for secret in wrong:
        acting = serving.administered_with(secret)
        with pytest.raises((Unauthorized, StorageFailed)):
            acting.owners()
    assert [each.name for each in owners.owners()] == ["anna", "boss", "local"]


STATEMENTS = (
    "SELECT * FROM list_owners(9)",
    "SELECT find_owner('anna')",
    "SELECT * FROM add_owners('{{zoe}}', false)",
    "SELECT change_owner({number}, 'zoe', NULL)",
    "SELECT drop_owner({number}, true)",
    "SELECT join_group({number}, {number}, '{{read}}')",
    "SELECT leave_group({number}, {number})",
    "SELECT * FROM list_members(NULL, 9)",
    "SELECT * FROM list_tokens({number})",
    "SELECT * FROM issue_token({number}, 'x', 'x', 'x', '{{read}}', NULL)",
    "SELECT end_tokens({number}, 'laptop', NULL)",
    "SELECT invite_owners('{{{number}}}', '{{x}}', '{{read}}', '{{9}}', '7 days')",
    "SELECT redeem_invitation({number}, 'x', 'x', 'x', 'x', NULL)",
    "SELECT renew_token({number}, 'x', 'x', 'x', '1 day', NULL, '1 day')",
)


def test_a_stolen_login_of_a_daemon_administers_nothing(
    owners: PostgresOwners, served: str, dsn: str
) -> None:
    anna = owners.add("anna")
    owners.issue("anna", "laptop", OWN_SCOPES)
    before = rows_of(dsn, anna.number)

    with psycopg.connect(served) as connection:
        for statement in STATEMENTS:
            for proof in (
                "",
                f"{anna.number} 00",
                f"1 {hashlib.sha256(b'x').hexdigest()}",
            ):
                connection.execute(
                    "SELECT set_config('mnemosyned.admin', %s, false)", [proof]
                )
                text = statement.format(number=anna.number)
                rows = connection.execute(text.encode()).fetchall()
                if "invite_owners" not in text:  # which says until when
                    assert rows in ([], [(None,)], [("",)], [(0,)]), text

    assert rows_of(dsn, anna.number) == before
    assert [each.name for each in owners.owners()] == ["anna", "local"]
    assert owners.owners()[0].invitations == 0


@pytest.mark.usefixtures("anna")
def test_uses_of_tokens_are_saved_later_and_together(
    owners: PostgresOwners, serving: PostgresOwners
) -> None:
    issued = owners.issue("anna", "laptop", OWN_SCOPES)
    owners.issue("anna", "phone", OWN_SCOPES)
    holder = serving.holder(issued.secret)
    assert holder

    for _ in range(3):
        serving.note_use(holder.owner, holder.token)
    serving.save_uses()
    assert owners.tokens("anna")[1].last_used_at is None  # not before a minute
    for _ in range(2):
        serving.save_uses(now=True)

    phone, laptop = owners.tokens("anna")
    assert (laptop.requests, phone.requests, phone.last_used_at) == (3, 0, None)
    listed = owners.owners()[0]
    assert (listed.requests, listed.last_used_at) == (3, laptop.last_used_at)


def test_many_are_invited_at_once(owners: PostgresOwners) -> None:
    owners.add("owner7")
    made = owners.invite(
        [(f"owner{number}", OWN_SCOPES, 90.0) for number in range(200)], lasts=WEEK
    )

    assert [each.owner for each in made if not each.added] == ["owner7"]
    assert len({each.code for each in made}) == 200
    assert len(owners.owners()) == 201
    enrolled: Enrolment | None = owners.redeem(made[199].code, "laptop")
    assert enrolled
    assert enrolled.owner == "owner199"


def test_owners_added_at_once_have_one_name_each(owners: PostgresOwners) -> None:
    people = [("anna", OWN_SCOPES, 9.0)]
    with ThreadPoolExecutor(4) as threads:
        made = list(threads.map(lambda _: owners.invite(people, lasts=WEEK), range(12)))

    assert sum(each.added for (each,) in made) == 1
    assert [each.name for each in owners.owners()] == ["anna", "local"]
