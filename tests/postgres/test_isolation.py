"""No request of one owner shows, changes or breaks anything of another's, whatever it names.

ISOLATION=100000 sends so many requests, and shows how far it is.
"""

from __future__ import annotations

import os
import random
import time
from collections import Counter
from collections.abc import Iterator
from datetime import timedelta
from http import HTTPStatus
from typing import Any

import pytest
from fuzz.requests import Requests, Sent, by_get, by_post
from postgres.served import Memory, Service, serve_in_process
from support.postgres import rows_of, run

from mnemosyned.errors import StorageFailed
from mnemosyned.memory.engine_ports import Scope
from mnemosyned.storage.postgres.owners import PostgresOwners

pytestmark = pytest.mark.postgres
REQUESTS = int(os.environ.get("ISOLATION", "1200"))
SHOWN_EVERY = 5_000
BERT = 3
"""The number of the second owner that is added."""
MARK = "bertsownword"
"""It is in every text of Bert's, and in no request of Anna's."""
NOT_HERE = ("backup", "watch")
"""Verbs about files of the daemon's machine."""
SQL = (
    f"' OR owner = {BERT} --",
    f"'; SET mnemosyned.owner = '{BERT}'; SELECT content FROM memory; --",
    f"x') UNION SELECT content FROM memory WHERE owner = {BERT} --",
    "') OR (1=1",
    "%(owner)s",
    "%s%%s%(id)s",
    "{owner}$1",
    "\\' OR 1=1; RESET ROLE; DELETE FROM memory; --",
    "$$; DROP TABLE memory; $$",
    "%_%",
    'a" OR "owner" = "8',
)


@pytest.fixture
def service(dsn: str) -> Iterator[Service]:
    with serve_in_process(dsn) as service:
        yield service


@pytest.fixture
def anna(service: Service) -> Memory:
    return service.memory("anna")


@pytest.fixture
def bert(service: Service) -> Memory:
    return service.memory("bert")


def fill(memory: Memory, mark: str) -> list[str]:
    """Keep something in every tier; the names and ids by which it could be asked for."""
    names = [f"bert-{number}" for number in range(6)]
    for number, id in enumerate(names):
        memory.call(
            "remember",
            content=f"{mark} moved to Lisbon on day {number}; the code is QX-{number}",
            id=id,
            session="berts-room",
            source="berts-phone",
            role="Bert",
        )
    memory.call("tag", tags=["berts-tag"], id="bert-0")
    memory.call("edit", id="bert-1", text=f"{mark} was edited")
    learned = memory.call("learn", content=f"Always say {mark}.")["learning"]
    slept = memory.call("sleep", session="berts-room", force=True)
    fresh = {"id": "bert-fresh", "supersedes": "bert-2"}
    memory.call("remember", content=f"{mark} is fresh", **fresh)
    episodes = [each["id"] for each in memory.call("list", tier="episodic")["episodes"]]
    assert episodes
    names += ["bert-fresh", "berts-room", "berts-phone", "berts-tag"]
    return [*names, slept["cycle"], learned["id"], *episodes]


def aimed(sent: Sent, chance: random.Random, names: list[str]) -> Sent:
    """A request with names of another owner's, or SQL, in some of its texts."""
    if sent.fields is None:
        return sent

    def changed(value: Any) -> Any:  # noqa: ANN401 JSON
        if isinstance(value, dict):
            return {name: changed(item) for name, item in value.items()}
        if isinstance(value, list):
            return [changed(item) for item in value]
        if type(value) is str and chance.random() < 0.5:
            return chance.choice(names if chance.random() < 0.6 else SQL)
        return value

    fields = changed(sent.fields)
    return (by_post if sent.method == "POST" else by_get)(sent.verb, fields)


def no_tokens(service: Service, anna: Memory, bert: Memory) -> list[str]:
    """Tokens that are none: of Bert's, and mixed from both."""
    service.owners.add("carl")
    ended = [
        service.owners.issue(owner, name, tuple(Scope), valid_for=lasts).secret
        for owner, name, lasts in (
            ("bert", "revoked", None),
            ("bert", "expired", timedelta(microseconds=1)),
            ("carl", "suspended", None),
        )
    ]
    service.owners.revoke("bert", "revoked")
    service.owners.change("carl", suspended=True)
    secret = anna.token.rpartition(f"_{anna.owner.number}_")[2]
    return [
        f"mnt_{bert.owner.number}_{secret}",
        f"mnt_0{anna.owner.number}_{secret}",
        f"mnt_{2**63}_{secret}",
        anna.token[:-1],
        f"{anna.token}{bert.token}",
        f"{bert.token[:-1]}{'A' if bert.token[-1] != 'A' else 'B'}",
        *ended,
        *SQL,
    ]


def show(sent: int, answers: Counter[int], began: float) -> None:
    minutes = (time.monotonic() - began) / 60
    print(f"{sent:,} requests in {minutes:.1f} min:", dict(sorted(answers.items())))


def test_no_request_meets_what_another_owner_has(
    dsn: str,
    service: Service,
    anna: Memory,
    bert: Memory,
    capsys: pytest.CaptureFixture[str],
) -> None:
    names = fill(bert, MARK)
    fill(anna, "annasownword")
    wrong = no_tokens(service, anna, bert)
    number = bert.owner.number
    before = rows_of(dsn, number)
    assert sum(MARK in row for rows in before.values() for row in rows) > 10
    chance = random.Random("isolation")
    requests = Requests("isolation", without=NOT_HERE)
    answers: Counter[int] = Counter()
    began = time.monotonic()

    for done in range(1, REQUESTS + 1):
        sent = aimed(requests.next(), chance, [*names, str(number)])
        token = chance.choice(wrong) if chance.random() < 0.1 else anna.token
        response = anna.ask(sent, token=token)
        answers[response.status] += 1
        assert MARK.encode() not in response.body, sent
        assert response.status < HTTPStatus.INTERNAL_SERVER_ERROR, (sent, response.body)
        refused = response.status == HTTPStatus.UNAUTHORIZED
        assert refused is (token != anna.token), (sent, token)
        if done % SHOWN_EVERY == 0:
            with capsys.disabled():
                show(done, answers, began)

    assert rows_of(dsn, number) == before
    assert answers[HTTPStatus.OK] > REQUESTS / 10
    assert MARK.encode() in bert.ask(by_post("recall", {"query": MARK})).body


def test_an_id_of_another_owners_is_unknown(
    dsn: str, anna: Memory, bert: Memory
) -> None:
    names = fill(bert, MARK)
    before = rows_of(dsn, bert.owner.number)

    for verb in ("get", "expand", "forget", "edit", "restore", "undo"):
        for name in names:
            fields = {"action" if verb == "undo" else "id": name}
            fields |= {"text": "x"} if verb == "edit" else {}
            response = anna.ask(by_post(verb, fields))
            is_unknown = response.status == HTTPStatus.NOT_FOUND
            assert is_unknown or b'"memories":0' in response.body, (verb, name)
        assert rows_of(dsn, bert.owner.number) == before, verb


def test_a_text_that_no_column_can_hold_is_refused(anna: Memory) -> None:
    for id in ("bert-\x00", "\x00", "a\x00b"):
        for verb, fields in (
            *((verb, {"id": id}) for verb in ("get", "expand", "restore")),
            ("recall", {"query": "Lisbon", "session": id}),
        ):
            response = anna.ask(by_post(verb, fields))
            assert response.status == HTTPStatus.BAD_REQUEST
            assert b'"code":"invalid_text"' in response.body


def test_the_settings_of_a_login_change_no_answer(
    dsn: str, served: str, owners: PostgresOwners
) -> None:
    run(
        dsn,
        *(
            f"ALTER ROLE serving_only SET {setting}"
            for setting in (
                "datestyle = German",
                "intervalstyle = iso_8601",
                "extra_float_digits = -9",
                "default_transaction_isolation = serializable",
                "row_security = off",
            )
        ),
    )
    anna = owners.add("anna")
    secret = owners.issue("anna", "test", [*Scope], valid_for=timedelta(1)).secret

    with serve_in_process(served) as service:
        memory = Memory(service.answer, anna, secret)
        memory.call(
            "remember", content="The mill is sold.", id="m", importance=0.1234567
        )
        (found,) = memory.call("recall", query="mill")["hits"]
        kept = memory.call("get", id="m")["memory"]

    assert (kept["importance"], found["id"]) == (0.1234567, "m")


@pytest.mark.parametrize("path", ["", "serving_only"])
def test_a_login_that_does_not_look_where_its_tables_are_is_told(
    dsn: str, served: str, path: str
) -> None:
    """Else it would be told to have another role made, and then keep a second, empty memory."""
    run(
        dsn,
        "CREATE SCHEMA serving_only AUTHORIZATION serving_only",
        f"ALTER ROLE serving_only SET search_path = '{path}'",
    )
    with pytest.raises(StorageFailed) as error, serve_in_process(served):
        pass
    _, _, statement = error.value.message.rpartition(", run ")

    run(dsn, statement)

    with serve_in_process(served):
        pass
