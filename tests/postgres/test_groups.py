"""Memories of groups: read and written by members with tokens of their own, by scope."""

from __future__ import annotations

import json
from collections.abc import Iterator
from http import HTTPStatus
from typing import Any

import pytest
from fuzz.requests import by_get, by_post
from postgres.served import Memory, Service, serve_in_process

from mnemosyned.memory.engine_ports import OWN_SCOPES, Scope
from mnemosyned.service.audit import REQUESTER

pytestmark = pytest.mark.postgres


class Clock:
    """Seconds by which known tokens age."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


@pytest.fixture
def ageing() -> Clock:
    return Clock()


@pytest.fixture
def service(dsn: str, ageing: Clock) -> Iterator[Service]:
    with serve_in_process(dsn, now=ageing) as service:
        for name in ("team", "board"):
            service.owners.add(name, is_group=True)
        yield service


@pytest.fixture
def anna(service: Service) -> Memory:
    """A member of the team with all its scopes, and of the board to read."""
    service.owners.add("anna")
    service.owners.join("team", "anna", OWN_SCOPES)
    service.owners.join("board", "anna", [Scope.READ])
    return service.token_of("anna")


@pytest.fixture
def bert(service: Service) -> Memory:
    """A member of the team with all its scopes."""
    service.owners.add("bert")
    service.owners.join("team", "bert", OWN_SCOPES)
    return service.token_of("bert")


def status_of(memory: Memory, verb: str, owner: str | None, **fields: Any) -> int:  # noqa: ANN401
    return memory.ask(by_post(verb, fields), owner=owner).status


def test_members_share_what_one_of_them_remembers(anna: Memory, bert: Memory) -> None:
    anna.call("remember", owner="team", content="The staging server is called heron.")
    anna.call("remember", content="My locker has the number 4711.")

    (hit,) = bert.call("recall", query="what is the staging server called?")["hits"]
    assert (hit["owner"], "heron" in hit["content"]) == ("team", True)
    assert bert.call("get", id=hit["id"])["memory"]["content"] == hit["content"]
    (hit,) = bert.call("recall", owner="team", query="staging server")["hits"]
    assert hit["owner"] is None
    for owner in (None, "team", "bert"):
        assert "4711" not in json.dumps(
            bert.call("recall", owner=owner, query="what number has the locker?")
        )
    assert bert.call("recall", owner="bert", query="staging server")["hits"] == []


def test_the_right_memory_comes_first(anna: Memory) -> None:
    team = [
        "The release train leaves every second Thursday.",
        "Deploys to production need two approvals.",
        "The office in Lisbon closes at six.",
        *(
            f"Ticket {number}: the deploy of service {number} failed."
            for number in range(30)
        ),
    ]
    own = ["My dentist is Dr. Okafor.", "My own deploys go to the blue cluster."]
    anna.call(
        "remember_many", owner="team", memories=[{"content": text} for text in team]
    )
    anna.call("remember_many", memories=[{"content": text} for text in own])

    for query, owner, part in (
        ("how many approvals do deploys to production need?", "team", "two approvals"),
        ("when does the release train leave?", "team", "second Thursday"),
        ("who is my dentist?", None, "Okafor"),
        ("which cluster do my own deploys go to?", None, "blue cluster"),
    ):
        answer = anna.call("recall", query=query)
        first = answer["hits"][0]
        assert (first["owner"], part in first["content"]) == (owner, True), query
        assert answer["confidence"] == pytest.approx(
            max(hit["confidence"] for hit in answer["hits"])
        )
        scores = [hit["score"] for hit in answer["hits"]]
        assert scores == sorted(scores, reverse=True)
    assert len(anna.call("recall", query="deploy", limit=5)["hits"]) == 5
    unknown = anna.call("recall", query="where does the zeppelin Hindenburg land?")
    assert unknown["hits"] == []


def test_a_question_with_empty_groups_is_answered_as_of_ones_own_memory(
    anna: Memory,
) -> None:
    for number in range(12):
        anna.call(
            "remember",
            content=f"On day {number} the gauge at the mill showed {number * 7} bar.",
            session=f"s{number % 3}",
            created_at=f"2026-03-{number + 1:02}T10:00:00Z",
        )
    anna.call("sleep", force=True)
    anna.call("remember", content="The mill was sold to Huber in May.")

    for query in (
        "what did the gauge show?",
        "who bought the mill?",
        "the latest on the mill",
    ):
        options: list[dict[str, Any]] = [{}, {"explain": True, "history": True}]
        for further in options:
            alone = anna.call("recall", owner="anna", query=query, **further)
            assert anna.call("recall", query=query, **further) == alone
            assert alone["hits"]


def test_a_repeat_in_another_memory_is_counted(anna: Memory) -> None:
    for owner in (None, "team"):
        anna.call("remember", owner=owner, content="The backup runs at four.", id="b")

    (hit,) = anna.call("recall", query="when does the backup run?")["hits"]

    assert hit["duplicates"] == 1
    assert hit["lines"] == []


def test_an_id_is_looked_for_in_ones_own_memory_first(anna: Memory) -> None:
    anna.call("remember", content="My own note.", id="note")
    anna.call("remember", owner="team", content="The note of the team.", id="note")
    kept = anna.call("remember", owner="team", content="The team meets on Mondays.")[
        "id"
    ]

    assert anna.call("get", id="note")["memory"]["content"] == "My own note."
    assert anna.call("list", id_prefix=kept[:20])["memories"][0]["id"] == kept
    anna.call("edit", id=kept, text="The team meets on Tuesdays.")
    assert "Tuesdays" in anna.call("get", owner="team", id=kept)["memory"]["content"]
    assert anna.call("forget", id=kept)["memories"] == 1
    assert status_of(anna, "get", None, id=kept) == HTTPStatus.NOT_FOUND
    assert anna.call("get", owner="team", id="note")["memory"]["id"] == "note"


def test_the_audit_log_is_told_whose_memory_each_call_is_about(
    service: Service, anna: Memory
) -> None:
    team, board = map(service.owners.number, ("team", "board"))
    kept = anna.call("remember", owner="team", content="The team meets.")["id"]

    about, groups = [], []
    for verb, fields in (
        ("list", {"id_prefix": kept[:20]}),
        ("remember", {"content": "My own note."}),
        ("pin", {"id": kept}),
        ("recall", {"query": "who meets?"}),
    ):
        anna.call(verb, **fields)
        about.append(REQUESTER.get().about)
        groups.append(REQUESTER.get().groups)
    assert status_of(anna, "get", None, id="nowhere") == HTTPStatus.NOT_FOUND
    about.append(REQUESTER.get().about)

    own = anna.owner.number
    assert about == [team, own, team, own, own]
    assert groups == [(), (), (), (board, team)]


def test_a_summary_of_a_group_is_expanded_without_naming_it(anna: Memory) -> None:
    for number in range(4):
        anna.call(
            "remember", owner="team", content=f"Step {number} of the move is done."
        )
    anna.call("sleep", owner="team", force=True)
    (episode,) = anna.call("list", owner="team", tier="episodic")["episodes"]

    expanded = anna.call("expand", id=episode["id"])

    assert len(expanded["originals"]) == 4
    (hit, *_) = anna.call("recall", query="which steps of the move are done?")["hits"]
    assert (hit["owner"], hit["id"]) == ("team", episode["id"])


def test_scopes_are_those_of_the_token_and_of_the_membership(
    service: Service, anna: Memory
) -> None:
    kept = anna.call("remember", owner="team", content="The team owns the grill.")["id"]
    reader = service.token_of("anna", Scope.READ)
    service.owners.join("team", "anna", [Scope.READ, Scope.WRITE])
    writer = service.token_of("anna", Scope.WRITE)

    assert reader.call("get", id=kept)["memory"]["id"] == kept
    for verb, fields in (
        ("edit", {"text": "no"}),
        ("forget", {}),
        ("tag", {"tags": ["t"]}),
    ):
        answer = reader.ask(by_post(verb, {"id": kept, **fields}))
        assert (answer.status, b"scope_missing" in answer.body) == (403, True), verb
    # Not even that it is there.
    assert status_of(writer, "forget", None, id=kept) == HTTPStatus.FORBIDDEN
    assert status_of(writer, "remember", "board", content="x") == HTTPStatus.FORBIDDEN
    assert status_of(writer, "remember", "team", content="A grill needs coal.") == 200
    assert status_of(writer, "recall", "team", query="grill") == HTTPStatus.FORBIDDEN
    groups = reader.call("status")["groups"]
    assert groups == [
        {"name": "board", "scopes": ["read"]},
        {"name": "team", "scopes": ["read"]},
    ]


def test_without_a_name_one_writes_ones_own_memory(anna: Memory) -> None:
    kept = anna.call("remember", owner="team", content="The team has a grill.")["id"]

    anna.call("remember", content="I like coal.", id="coal")
    answer = anna.ask(by_post("remember", {"content": "x", "supersedes": kept}))

    assert answer.status == HTTPStatus.NOT_FOUND
    assert status_of(anna, "get", "team", id="coal") == HTTPStatus.NOT_FOUND
    assert anna.call("get", owner="anna", id="coal")["memory"]["id"] == "coal"


def test_unknown_and_foreign_names_are_refused_alike(
    service: Service, anna: Memory, bert: Memory
) -> None:
    service.owners.leave("team", "bert")
    service.owners.join("team", "bert", [Scope.READ])
    answers = set()
    for name in ("board", "anna", "local", "nobody"):
        for verb in ("recall", "status", "export"):
            sent = by_get(verb, {"query": "x"} if verb == "recall" else {})
            answer = bert.ask(sent, owner=name)
            assert answer.status == HTTPStatus.NOT_FOUND, (name, verb)
            answers.add(answer.body.replace(name.encode(), b"NAME"))
    assert len(answers) == 1
    for name in ("", "team, board", "TEAM", " team", "2", "team\x00", "x" * 10_000):
        assert status_of(bert, "status", name) == HTTPStatus.NOT_FOUND, name
    assert status_of(anna, "status", "board") == HTTPStatus.OK


def test_who_left_or_was_removed_is_refused_within_a_second(
    service: Service, anna: Memory, bert: Memory, ageing: Clock
) -> None:
    kept = anna.call("remember", owner="team", content="The heron nests in March.")[
        "id"
    ]
    assert bert.call("recall", query="when does the heron nest?")["hits"]
    stream = bert.open(by_get("events", {}), owner="team")
    assert next(stream) == b": \n\n"

    service.owners.leave("team", "bert")
    ageing.seconds += 1

    assert b"no memory of 'team'" in next(part for part in stream if part)
    assert list(stream) == []
    assert bert.call("recall", query="when does the heron nest?")["hits"] == []
    for owner in (None, "team"):
        assert status_of(bert, "get", owner, id=kept) == HTTPStatus.NOT_FOUND
    service.owners.remove("team")
    ageing.seconds += 1
    assert status_of(anna, "get", None, id=kept) == HTTPStatus.NOT_FOUND
    assert status_of(anna, "status", "team") == HTTPStatus.NOT_FOUND


def test_events_exports_and_imports_are_of_the_named_memory(anna: Memory) -> None:
    anna.call("remember", owner="team", content="Shared words.")
    anna.call("remember", content="Own words.")
    own, shared = (
        anna.ask(by_get("export", {}), owner=owner).body for owner in (None, "team")
    )

    assert (b"Own words" in own, b"Shared words" in own) == (True, False)
    assert (b"Own words" in shared, b"Shared words" in shared) == (False, True)
    stream = anna.open(by_get("events", {}))
    next(stream)
    anna.call("remember", owner="team", content="More shared words.")
    anna.call("remember", content="More own words.", session="mine")
    assert b"mine" in next(part for part in stream if part)


def test_context_recalls_from_groups_and_its_ledger_keeps_no_words_of_theirs(
    anna: Memory, bert: Memory
) -> None:
    bert.call("remember", owner="team", content="The staging server is called heron.")

    told = anna.call("context", message="What is the staging server called?")

    assert "heron" in json.dumps(told["messages"]) + json.dumps(told["system"])
    ledger = anna.call("injections")
    assert ledger["totals"]["tokens"] > 5
    assert "heron" not in json.dumps(ledger)


def test_an_agent_sees_whose_a_memory_is(anna: Memory) -> None:
    anna.call("remember", owner="team", content="The staging server is called heron.")
    anna.call("remember", content="My staging account is called ibis.")

    found = anna.tool("recall", query="what is the staging server called?")
    owners = {hit["text"]: hit.get("owner") for hit in found["hits"]}

    assert owners["The staging server is called heron."] == "team"
    assert owners.get("My staging account is called ibis.") is None
    stored = anna.tool("remember", owner="team", content="The heron has four cores.")
    assert anna.call("get", owner="team", id=stored["id"])["memory"]


def test_groups_beyond_the_limit_are_asked_by_name_alone(dsn: str) -> None:
    with serve_in_process(dsn, groups_max=1) as service:
        anna = service.memory("anna")
        for name in ("one", "two"):
            service.owners.add(name, is_group=True)
            service.owners.join(name, "anna", OWN_SCOPES)
        for name in ("one", "two"):
            anna.call("remember", owner=name, content=f"Group {name} paints the barn.")

        hits = anna.call("recall", query="who paints the barn?")["hits"]

        assert [hit["owner"] for hit in hits] == ["one"]
        assert anna.call("recall", owner="two", query="who paints the barn?")["hits"]


def test_a_prompt_is_told_what_a_group_knows(anna: Memory, bert: Memory) -> None:
    bert.call(
        "remember",
        owner="team",
        content="We decided that the staging database of the heron project is called Ibis.",
    )
    payload = {
        "hook_event_name": "UserPromptSubmit",
        "session_id": "6a1f",
        "prompt": "What did we decide to call the staging database of the heron project?",
        "cwd": "/home/anna/heron",
    }
    sent = by_post("hooks", {"payload": payload}, path="/hooks")

    told = anna.ask(sent)

    assert told.status == HTTPStatus.OK
    assert "called Ibis" in told.body.decode()
    assert "team" in told.body.decode()
    assert "Ibis" not in anna.ask(sent, owner="anna").body.decode()
