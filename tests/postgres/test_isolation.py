"""No request of one owner shows, changes or breaks anything of another's, whatever it names.

ISOLATION=100000 sends so many requests.
"""

from __future__ import annotations

import json
import os
import random
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, cast

import psycopg
import pytest
from fuzz.requests import Requests, Sent, by_get, by_post
from support.fakes import FakeClock, FakeSummarizer
from support.services import about, make_service

from mnemosyned.daemon.api.verbs import verb_resources
from mnemosyned.daemon.server.activity import ServerActivity
from mnemosyned.daemon.server.serving import answering
from mnemosyned.domain.ports.store import MemoryStore
from mnemosyned.http_messages import HttpRequest, Response
from mnemosyned.paths import shipped
from mnemosyned.service.forgetting.retention import RetentionService
from mnemosyned.service.intake import Intake
from mnemosyned.service.policies import Policies, PolicyHolder
from mnemosyned.service.service import MemoryService
from mnemosyned.sleep.cycle import SleepCycle
from mnemosyned.sleep.lease import SummarizerLease
from mnemosyned.sleep.policy import SleepPolicy
from mnemosyned.storage.postgres.opening import open_store
from mnemosyned.storage.sqlite import SqliteStore

pytestmark = pytest.mark.postgres
MIGRATIONS = shipped("migrations") / "postgres"
REQUESTS = int(os.environ.get("ISOLATION", "1200"))
ANNA, BERT = 7, 8
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


@dataclass(frozen=True, slots=True)
class Memory:
    """An owner's verbs, over HTTP but for the socket."""

    service: MemoryService
    answer: Callable[[HttpRequest], Response]

    def ask(self, sent: Sent) -> Response:
        path, _, query = sent.path.partition("?")
        return self.answer(HttpRequest(sent.method, path, query, sent.body or b""))

    def call(self, verb: str, **fields: object) -> Any:  # noqa: ANN401 of any verb
        response = self.ask(by_post(verb, dict(fields)))
        assert response.status == HTTPStatus.OK, response.body
        return json.loads(response.body)


@pytest.fixture
def anna(dsn: str) -> Iterator[Memory]:
    with open_store(dsn, migrations=MIGRATIONS, owner=ANNA, guarded=True) as opened:
        yield memory_of(cast("MemoryStore", opened))


@pytest.fixture
def bert(dsn: str) -> Iterator[Memory]:
    with open_store(dsn, migrations=MIGRATIONS, owner=BERT, guarded=True) as opened:
        yield memory_of(cast("MemoryStore", opened))


def memory_of(opened: MemoryStore) -> Memory:
    store = cast("SqliteStore", opened)
    policies = PolicyHolder(
        Policies(intake=Intake(content_bytes_max=10_000), sleep=SleepPolicy())
    )
    lease = SummarizerLease(FakeSummarizer())
    cycle = SleepCycle(store=store, lease=lease, clock=FakeClock(), policies=policies)
    retention = RetentionService(
        store=store, cycle=cycle, policies=policies, about=about(store)
    )
    service = make_service(store, cycle, retention, policies)
    return Memory(service, answering(verb_resources(service), ServerActivity()))


def fill(memory: Memory, mark: str) -> list[str]:
    """Keep something in every tier; the names and ids by which it could be asked for."""
    for number in range(6):
        memory.call(
            "remember",
            content=f"{mark} moved to Lisbon on day {number}; the code is QX-{number}",
            id=f"bert-{number}",
            session="berts-room",
            source="berts-phone",
            role="Bert",
        )
    memory.call("tag", tags=["berts-tag"], id="bert-0")
    memory.call("edit", id="bert-1", text=f"{mark} was edited")
    learned = memory.call("learn", content=f"Always say {mark}.")["learning"]
    slept = memory.call("sleep", session="berts-room", force=True)
    memory.call(
        "remember", content=f"{mark} is fresh", id="bert-fresh", supersedes="bert-2"
    )
    episodes = memory.call("list", tier="episodic")["episodes"]
    assert episodes
    names = [f"bert-{number}" for number in range(6)]
    names += ["bert-fresh", "berts-room", "berts-phone", "berts-tag", slept["cycle"]]
    return [*names, learned["id"], *(each["id"] for each in episodes)]


def rows_of(dsn: str, owner: int) -> dict[str, list[str]]:
    """Every row of an owner, in every table."""
    with psycopg.connect(dsn) as connection:
        tables = connection.execute(
            "SELECT c.relname FROM pg_class AS c JOIN pg_attribute AS a "
            "ON a.attrelid = c.oid AND a.attname = 'owner' "
            "WHERE c.relkind = 'r' AND c.relnamespace = 'public'::regnamespace"
        ).fetchall()
        return {
            table: [
                row
                for (row,) in connection.execute(
                    f'SELECT t::text FROM "{table}" AS t '
                    "WHERE owner = %s ORDER BY 1".encode(),
                    [owner],
                )
            ]
            for (table,) in tables
        }


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


def test_no_request_meets_what_another_owner_has(
    dsn: str, anna: Memory, bert: Memory
) -> None:
    names = fill(bert, MARK)
    fill(anna, "annasownword")
    before = rows_of(dsn, BERT)
    assert sum(MARK in row for rows in before.values() for row in rows) > 10
    chance = random.Random("isolation")
    requests = Requests("isolation", without=NOT_HERE)
    answers: Counter[int] = Counter()

    for _ in range(REQUESTS):
        sent = aimed(requests.next(), chance, names)
        response = anna.ask(sent)
        answers[response.status] += 1
        assert MARK.encode() not in response.body, sent
        assert response.status < HTTPStatus.INTERNAL_SERVER_ERROR, (sent, response.body)

    assert rows_of(dsn, BERT) == before
    assert answers[HTTPStatus.OK] > REQUESTS / 10
    assert MARK.encode() in bert.ask(by_post("recall", {"query": MARK})).body


def test_the_same_ids_belong_to_each_owner(anna: Memory, bert: Memory) -> None:
    fill(anna, "annasownword")
    fill(bert, MARK)

    for memory, own in ((anna, "annasownword"), (bert, MARK)):
        assert own in memory.call("get", id="bert-fresh")["memory"]["content"]
        hits = memory.call("recall", query="Lisbon QX-3 moved", limit=50)["hits"]
        assert hits
        assert all(own in hit["content"] for hit in hits)
    anna.call("forget", id="bert-fresh")
    assert MARK in bert.call("get", id="bert-fresh")["memory"]["content"]


@pytest.mark.parametrize("verb", ["get", "expand", "forget", "edit", "restore", "undo"])
def test_an_id_of_another_owners_is_unknown(
    dsn: str, anna: Memory, bert: Memory, verb: str
) -> None:
    names = fill(bert, MARK)
    before = rows_of(dsn, BERT)
    field = "cycle" if verb == "undo" else "id"

    for name in names:
        fields = {field: name} | ({"text": "x"} if verb == "edit" else {})
        response = anna.ask(by_post(verb, fields))
        unknown = response.status == HTTPStatus.NOT_FOUND
        nothing = b'"memories":0' in response.body
        assert unknown or nothing, response.body
    assert rows_of(dsn, BERT) == before


@pytest.mark.parametrize("id", ["bert-\x00", "\x00", "a\x00b"])
def test_an_id_that_no_text_can_be_is_unknown(anna: Memory, id: str) -> None:
    fill(anna, "annasownword")

    for verb in ("get", "expand", "restore"):
        assert anna.ask(by_post(verb, {"id": id})).status == HTTPStatus.NOT_FOUND
    found = anna.ask(by_post("recall", {"query": "Lisbon", "session": id}))
    assert (found.status, b'"hits":[]' in found.body) == (HTTPStatus.OK, True)
