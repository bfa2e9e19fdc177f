"""Memories of groups: read and written by members with tokens of their own, by scope."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from http import HTTPStatus
from typing import Any

import pytest
from fuzz.requests import by_get, by_post
from postgres.served import Memory, Service, serve_in_process

from mnemosyned.http_messages import HttpRequest
from mnemosyned.memory.engine_ports import OWN_SCOPES, Scope
from mnemosyned.service.audit import REQUESTER
from mnemosyned.service.service import GROUPS_S, MemoryService

pytestmark = pytest.mark.postgres


@pytest.fixture
def seconds() -> list[float]:
    """The time by which known tokens age."""
    return [0.0]


@pytest.fixture
def service(dsn: str, seconds: list[float]) -> Iterator[Service]:
    with serve_in_process(dsn, now=lambda: seconds[0]) as service:
        for name in ("team", "board"):
            service.owners.add(name, is_group=True)
        yield service


def share(memory: Memory, *texts: str, owner: str = "team", **fields: Any) -> str:  # noqa: ANN401 of a memory
    """Remember texts in the memory of a group; the id of the last."""
    for text in texts:
        kept = memory.call("remember", owner=owner, content=text, **fields)["id"]
    return str(kept)


def hits(memory: Memory, query: str, **fields: Any) -> list[dict[str, Any]]:  # noqa: ANN401 of a recall
    found: list[dict[str, Any]] = memory.call("recall", query=query, **fields)["hits"]
    return found


@pytest.fixture
def anna(service: Service) -> Memory:
    """A member of the team with all its scopes, and of the board to read."""
    service.owners.add("anna")
    service.owners.join("team", "anna", OWN_SCOPES)
    service.owners.join("board", "anna", [Scope.READ])
    return service.token_of("anna")


@pytest.fixture
def bert(service: Service) -> Memory:
    service.owners.add("bert")
    service.owners.join("team", "bert", OWN_SCOPES)
    return service.token_of("bert")


def status_of(memory: Memory, verb: str, owner: str | None, **fields: Any) -> int:  # noqa: ANN401
    return memory.ask(by_post(verb, fields), owner=owner).status


def test_members_share_what_one_of_them_remembers(anna: Memory, bert: Memory) -> None:
    share(anna, "The staging server is called heron.")
    anna.call("remember", content="My locker has the number 4711.")

    (hit,) = hits(bert, "what is the staging server called?")
    assert (hit["owner"], "heron" in hit["content"]) == ("team", True)
    assert bert.call("get", id=hit["id"])["memory"]["content"] == hit["content"]
    (hit,) = hits(bert, "staging server", owner="team")
    assert hit["owner"] is None
    for owner in (None, "team", "bert"):
        assert "4711" not in str(hits(bert, "what number has the locker?", owner=owner))
    assert hits(bert, "staging server", owner="bert") == []


def test_a_memory_of_a_group_names_the_member_who_wrote_it(
    anna: Memory, bert: Memory
) -> None:
    said = share(anna, "Heron is on port 4711.", metadata={"member": "bert", "a": 1})
    stop = {"hook_event_name": "UserPromptSubmit", "session_id": "s", "prompt": "Ibis"}
    hooked = bert.ask(by_post("hooks", {"payload": stop}, path="/hooks"), owner="team")
    own = bert.call("remember", content="My locker is 4711.")["id"]

    assert hooked.status == 200
    listed = anna.call("list", owner="team")["memories"]
    by_text = {each["content"]: each["metadata"] for each in listed}
    assert by_text["Heron is on port 4711."] == {"member": "anna", "a": 1}
    assert by_text["Ibis"]["member"] == "bert"
    assert bert.call("get", id=said)["memory"]["metadata"]["member"] == "anna"
    assert "member" not in bert.call("get", id=own)["memory"]["metadata"]


def test_the_right_memory_comes_first(anna: Memory) -> None:
    share(
        anna,
        "The release train leaves every second Thursday.",
        "Deploys to production need two approvals.",
        "The office in Lisbon closes at six.",
        *(f"Ticket {n}: the deploy of service {n} failed." for n in range(30)),
    )
    own = ("My dentist is Dr. Okafor.", "My own deploys go to the blue cluster.")
    share(anna, *own, owner="anna")

    for query, owner, part in (
        ("how many approvals do deploys to production need?", "team", "two approvals"),
        ("when does the release train leave?", "team", "second Thursday"),
        ("who is my dentist?", None, "Okafor"),
        ("which cluster do my own deploys go to?", None, "blue cluster"),
    ):
        answer = anna.call("recall", query=query)
        first = answer["hits"][0]
        assert (first["owner"], part in first["content"]) == (owner, True), query
        most = max(hit["confidence"] for hit in answer["hits"])
        assert answer["confidence"] == pytest.approx(most)
        scores = [hit["score"] for hit in answer["hits"]]
        assert scores == sorted(scores, reverse=True)
    assert len(hits(anna, "deploy", limit=5)) == 5
    assert hits(anna, "where does the zeppelin Hindenburg land?") == []


def test_what_replaced_a_statement_comes_first_whoever_said_it(anna: Memory) -> None:
    older = "We deploy the heron service on Fridays"
    newer = "We deploy the heron service on Wednesdays now"
    for owner, by in (("anna", "team"), ("team", "anna"), ("anna", "anna")):
        session = f"{owner} {by}"
        said = {"role": "user", "session": session}
        share(anna, older, owner=owner, created_at="2026-03-02", **said)
        share(anna, newer, owner=by, created_at="2026-03-16", **said)

        found = hits(
            anna, "On which day do we deploy the heron service?", session=session
        )

        told = [(hit["content"], hit["owner"] or "anna") for hit in found]
        assert told == [(newer, by), (older, owner)]


def test_a_slow_search_of_ones_own_memory_leaves_out_no_group(
    anna: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    share(anna, "The staging server is called heron.")
    moments = [0.0]
    search = MemoryService.search

    def search_slowly(*arguments: Any) -> Any:  # noqa: ANN401 as `MemoryService.search`
        if not moments[0]:  # one's own memory is searched first
            moments[0] += 10 * GROUPS_S
        return search(*arguments)

    monkeypatch.setattr(MemoryService, "search", search_slowly)
    monkeypatch.setattr(
        "mnemosyned.service.service.time.perf_counter", lambda: moments[0]
    )

    (hit,) = hits(anna, "what is the staging server called?")

    assert hit["owner"] == "team"


def test_empty_groups_leave_an_answer_as_it_is(anna: Memory) -> None:
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
    for owner in ("anna", "team"):
        share(anna, "The backup runs at four.", owner=owner, id="b")

    (hit,) = hits(anna, "when does the backup run?")

    assert (hit["duplicates"], hit["lines"]) == (1, [])


def test_an_id_is_looked_for_in_ones_own_memory_first(anna: Memory) -> None:
    share(anna, "My own note.", owner="anna", id="note")
    share(anna, "The note of the team.", id="note")
    kept = share(anna, "The team meets on Mondays.")

    assert anna.call("get", id="note")["memory"]["content"] == "My own note."
    assert anna.call("list", id_prefix=kept[:20])["memories"][0]["id"] == kept
    anna.call("edit", id=kept, text="The team meets on Tuesdays.")
    assert "Tuesdays" in anna.call("get", owner="team", id=kept)["memory"]["content"]
    (edit,) = anna.call("undo", owner="team", list=True)["actions"]
    assert anna.call("undo", action=edit["id"])["memories"] == 1
    assert "Mondays" in anna.call("get", id=kept)["memory"]["content"]
    assert anna.call("forget", id=kept)["memories"] == 1
    assert status_of(anna, "get", None, id=kept) == HTTPStatus.NOT_FOUND
    assert anna.call("get", owner="team", id="note")["memory"]["id"] == "note"


def test_the_audit_log_names_the_memory(service: Service, anna: Memory) -> None:
    team, board = map(service.owners.number, ("team", "board"))
    kept = share(anna, "The team meets.")
    own = anna.owner.number

    for verb, fields, about, groups in (
        ("list", {"id_prefix": kept[:20]}, team, ()),
        ("remember", {"content": "My own note."}, own, ()),
        ("pin", {"id": kept}, team, ()),
        ("recall", {"query": "who meets?"}, own, (board, team)),
    ):
        anna.call(verb, **fields)
        asked = REQUESTER.get()
        assert (asked.about, asked.groups) == (about, groups), verb
    assert status_of(anna, "get", None, id="nowhere") == HTTPStatus.NOT_FOUND
    assert REQUESTER.get().about == own


def test_a_summary_of_a_group_is_expanded_without_naming_it(anna: Memory) -> None:
    share(anna, *(f"Step {number} of the move is done." for number in range(4)))
    anna.call("sleep", owner="team", force=True)
    (episode,) = anna.call("list", owner="team", tier="episodic")["episodes"]

    assert len(anna.call("expand", id=episode["id"])["originals"]) == 4
    (hit, *_) = hits(anna, "which steps of the move are done?")
    assert (hit["owner"], hit["id"]) == ("team", episode["id"])


def test_token_and_membership_limit_scopes(service: Service, anna: Memory) -> None:
    kept = share(anna, "The team owns the grill.")
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
    service.owners.join("team", "anna", [Scope.READ])
    owner = service.token_of("anna", *Scope)
    answer = owner.ask(by_post("remember", {"content": "x"}), owner="team")
    assert b"in team, token and membership allow read;" in answer.body
    answer = owner.ask(by_post("hooks", {}, path="/hooks"), owner="team")
    assert b"in team, token and membership allow read;" in answer.body
    answer = owner.ask(by_post("edit", {"id": kept, "text": "no"}))
    assert b"in team, token and membership allow read;" in answer.body
    assert reader.call("status")["groups"] == [
        {"name": name, "scopes": ["read"]} for name in ("board", "team")
    ]


def test_without_a_name_one_writes_ones_own_memory(anna: Memory) -> None:
    kept = share(anna, "The team has a grill.")

    anna.call("remember", content="I like coal.", id="coal")
    answer = anna.ask(by_post("remember", {"content": "x", "supersedes": kept}))

    assert answer.status == HTTPStatus.NOT_FOUND
    assert status_of(anna, "get", "team", id="coal") == HTTPStatus.NOT_FOUND
    assert anna.call("get", owner="anna", id="coal")["memory"]["id"] == "coal"


def test_who_left_or_was_removed_is_refused_within_a_second(
    service: Service, anna: Memory, bert: Memory, seconds: list[float]
) -> None:
    kept = share(anna, "The heron nests in March.")
    assert hits(bert, "when does the heron nest?")
    stream = bert.open(by_get("events", {}), owner="team")
    assert next(stream) == b": \n\n"

    service.owners.leave("team", "bert")
    seconds[0] += 1

    assert b"no memory of 'team'" in next(part for part in stream if part)
    assert list(stream) == []
    assert hits(bert, "when does the heron nest?") == []
    for owner in (None, "team"):
        assert status_of(bert, "get", owner, id=kept) == HTTPStatus.NOT_FOUND
    service.owners.remove("team")
    seconds[0] += 1
    assert status_of(anna, "get", None, id=kept) == HTTPStatus.NOT_FOUND
    assert status_of(anna, "status", "team") == HTTPStatus.NOT_FOUND
    for name in ("", "board, team", "BOARD", " board", "2", "board\x00", "x" * 10_000):
        assert status_of(anna, "status", name) == HTTPStatus.NOT_FOUND, name


def test_events_exports_and_imports_are_of_the_named_memory(anna: Memory) -> None:
    share(anna, "Shared words.")
    share(anna, "Own words.", owner="anna")
    for owner, says, hides in (
        (None, b"Own words", b"Shared words"),
        ("team", b"Shared words", b"Own words"),
    ):
        exported = anna.ask(by_get("export", {}), owner=owner).body
        assert (says in exported, hides in exported) == (True, False)
    stream = anna.open(by_get("events", {}))
    next(stream)
    share(anna, "More shared words.")
    share(anna, "More own words.", owner="anna", session="mine")
    assert b"mine" in next(part for part in stream if part)


def test_the_ledger_keeps_no_words_of_groups(anna: Memory, bert: Memory) -> None:
    share(bert, "The staging server is called heron.")

    told = anna.call("context", message="What is the staging server called?")

    assert "heron" in json.dumps(told["messages"]) + json.dumps(told["system"])
    ledger = anna.call("injections")
    assert ledger["totals"]["tokens"] > 5
    assert "heron" not in json.dumps(ledger)


def test_an_agent_sees_whose_a_memory_is(anna: Memory) -> None:
    share(anna, "The staging server is called heron.")
    share(anna, "My staging account is called ibis.", owner="anna")

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
        anna = service.token_of("anna")
        for name in ("one", "two"):
            share(anna, f"Group {name} paints the barn.", owner=name)

        found = hits(anna, "who paints the barn?")

        assert [hit["owner"] for hit in found] == ["one"]
        assert hits(anna, "who paints the barn?", owner="two")


def told_by_hook(
    memory: Memory, prompt: str, *, owner: str | None = None, session: str = "6a1f"
) -> str:
    """What an agent is told of a prompt."""
    payload = {
        "hook_event_name": "UserPromptSubmit",
        "session_id": session,
        "prompt": prompt,
        "cwd": "/home/anna/heron",
    }
    sent = by_post("hooks", {"payload": payload}, path="/hooks")
    told = memory.ask(sent, owner=owner)
    assert told.status == HTTPStatus.OK
    return told.body.decode()


def test_a_prompt_is_told_what_a_group_knows(anna: Memory, bert: Memory) -> None:
    share(bert, "We decided that the staging database of the heron project is Ibis.")
    prompt = "What did we decide to call the staging database of the heron project?"

    told = told_by_hook(anna, prompt)

    assert "is Ibis" in told
    assert "team" in told
    assert "Ibis" not in told_by_hook(anna, prompt, owner="anna")


def test_a_prompt_is_told_what_replaced_a_statement_of_a_group(
    anna: Memory, bert: Memory
) -> None:
    old = share(bert, "The scanner is in room 12", created_at="2026-03-02")
    share(bert, "The scanner is now in room 31", created_at="2026-03-09")

    told = told_by_hook(anna, "Which room is the scanner in?")

    assert (
        "[2026-03-09, team, bert] The scanner is now in room 31 "
        "(until 2026-03-09: [2026-03-02, team, bert] The scanner is in room 12)"
    ) in told
    assert anna.call("undo_ending", id=old)["changed"] == 1


def test_a_chain_of_values_of_a_group_is_told_newest_first(
    anna: Memory, bert: Memory
) -> None:
    share(bert, "We deploy the heron service on Fridays", created_at="2026-03-02")
    share(anna, "We deploy the heron service on Mondays now", created_at="2026-03-09")
    share(
        bert, "We deploy the heron service on Wednesdays now", created_at="2026-03-16"
    )

    told = told_by_hook(anna, "On which day do we deploy the heron service?")

    assert (
        "- [2026-03-16, team, bert] We deploy the heron service on Wednesdays now "
        "(until 2026-03-16: [2026-03-09, team] We deploy the heron service on Mondays now) "
        "(until 2026-03-09: [2026-03-02, team, bert] We deploy the heron service on Fridays)\\n</"
    ) in told


@pytest.mark.parametrize(
    ("older", "newer", "prompt"),
    [
        (
            "We deploy the heron service on Fridays",
            "We deploy the heron service on Wednesdays now",
            "On which day do we deploy the heron service?",
        ),
        (
            "The checkout runs on Heroku",
            "We moved the checkout from Heroku to Fly.io",
            "Where does the checkout run?",
        ),
    ],
)
def test_a_prompt_is_told_what_a_group_changed_of_ones_own_statement(
    anna: Memory, bert: Memory, older: str, newer: str, prompt: str
) -> None:
    share(anna, older, owner="anna", created_at="2026-03-02")
    share(bert, newer, created_at="2026-03-16")

    told = told_by_hook(anna, prompt)

    assert f"[2026-03-16, team, bert] {newer} (earlier: [2026-03-02] {older})" in told
    assert anna.call("endings")["endings"] == []


def test_nobody_changes_what_another_member_says_of_themselves(
    anna: Memory, bert: Memory
) -> None:
    share(anna, "I run tests with tox", role="user", created_at="2026-03-02")
    share(bert, "I run tests with tox at home", role="user", created_at="2026-03-03")
    share(bert, "I no longer run tests with tox", role="user", created_at="2026-03-09")
    share(anna, "The scanner is in room 12", created_at="2026-03-02")
    share(bert, "The scanner is now in room 31", created_at="2026-03-09")

    ended = anna.call("endings", owner="team")["endings"]

    assert {(each["sentence"], each["successor"]) for each in ended} == {
        ("I run tests with tox at home", "I no longer run tests with tox"),
        ("The scanner is in room 12", "The scanner is now in room 31"),
    }


def test_a_prompt_is_told_of_no_member_what_another_one_did(
    anna: Memory, bert: Memory
) -> None:
    share(anna, "My favorite editor is Vim", owner="anna", created_at="2026-03-02")
    share(bert, "My favorite editor is Emacs now", created_at="2026-03-09")

    told = told_by_hook(anna, "Which one is my favorite editor?")

    assert "- [2026-03-02] My favorite editor is Vim\\n" in told


def test_an_agent_is_told_which_other_member_wrote_a_line(
    anna: Memory, bert: Memory
) -> None:
    line = "I decided that the staging database of the heron project is Ibis."
    share(bert, line, role="user", created_at="2026-03-09", session="s")
    prompt = "What is the staging database of the heron project called?"

    assert f"[2026-03-09, team, bert] {line}" in told_by_hook(anna, prompt)
    context = anna.call("context", message=prompt)["system"]
    assert f"[2026-03-09, bert, team: s] {line}" in context
    for asking, speaker in ((anna, "bert"), (bert, "user")):
        told = told_by_hook(asking, prompt, owner="team", session=speaker)
        assert f"[2026-03-09, {speaker}] {line}" in told


def test_recall_names_the_member_who_wrote_a_hit(anna: Memory, bert: Memory) -> None:
    share(bert, "I park the van behind the bakery.", role="user")
    share(anna, "My van is red.", owner="anna", metadata={"member": "carl"})

    def members(owner: str | None) -> dict[str, str | None]:
        found = anna.call("recall", owner=owner, query="where is the van?")
        every = (*found["hits"], *found["nearest"])
        return {each["content"]: each.get("member") for each in every}

    of_all = members(None)
    assert of_all.pop("My van is red.", None) is None
    assert of_all == members("team") == {"I park the van behind the bakery.": "bert"}
    (hit,) = anna.tool("recall", query="who parks behind the bakery?")["hits"]
    assert (hit["owner"], hit["member"]) == ("team", "bert")
    anna.call("sleep", owner="team", force=True)
    (hit,) = hits(anna, "who parks behind the bakery?", owner="team")
    assert [line["member"] for line in hit["lines"]] == ["bert"]


def test_summaries_of_a_group_name_who_said_something(
    anna: Memory, bert: Memory
) -> None:
    share(anna, "I moved to a new flat in Leeds in May.", role="user", session="s")
    share(bert, "I signed a lease for an office in York.", role="user", session="s")
    share(bert, "I have noted the lease.", role="assistant", session="s")

    anna.call("sleep", owner="team", force=True)

    (hit, *_) = hits(bert, "who moved to Leeds?", owner="team")
    assert "anna: I moved to a new flat in Leeds" in hit["content"]
    assert "bert: I signed a lease for an office in York" in hit["content"]
    assert "user" not in hit["content"]


def test_a_compacted_message_of_a_group_names_who_wrote_it(
    anna: Memory, bert: Memory
) -> None:
    said = ["I park the van behind the bakery.", *(f"Step {n}" for n in range(40))]
    messages = [{"role": "user", "content": text} for text in said]
    done = anna.call(
        "compact", owner="team", messages=messages, max_tokens=20, force=True
    )

    (hit, *_) = hits(bert, "where is the van parked?", owner="team")
    assert (hit["content"], hit["member"]) == (said[0], "anna")
    summary = done["messages"][0]["metadata"]["id"]
    first, *_ = anna.call("expand", owner="team", id=summary)["originals"]
    assert (first["content"], first["metadata"]) == (said[0], {"member": "anna"})


def test_a_renamed_member_is_still_who_wrote_a_memory(
    service: Service, anna: Memory, bert: Memory
) -> None:
    said: dict[str, Any] = {"metadata": {"a": 1}, "role": "user", "session": "s"}
    id = share(anna, "I prefer short answers.", **said)
    share(bert, "I prefer long answers.", **said)

    service.owners.change("anna", new_name="ann")

    ann = service.token_of("ann")
    metadata = ann.call("get", id=id)["memory"]["metadata"]
    assert metadata == {"member": "ann", "a": 1}
    system = ann.call("context", owner="team", message="How do I answer?")["system"]
    _, _, learnings = system.partition("## Past Learnings")
    assert "short" in learnings
    assert "long" not in learnings


def test_nobody_is_told_what_another_member_says_of_themselves(
    anna: Memory, bert: Memory
) -> None:
    said = [
        (anna, "My name is Anna."),
        (anna, "I prefer short answers."),
        (anna, "Answer me in German from now on."),
        (anna, "Never use tabs in this repository."),
        (anna, "I'm allergic to peanuts."),
        (bert, "My name is Bertram."),
        (bert, "I prefer long answers."),
    ]
    for day, (member, text) in enumerate(said, 1):
        share(member, text, role="user", created_at=f"2026-03-0{day}", session="s")

    def told(member: Memory) -> tuple[str, str]:
        payload = {
            "hook_event_name": "SessionStart",
            "session_id": f"of {member.owner.name}",
            "cwd": "/home/anna/heron",
        }
        sent = by_post("hooks", {"payload": payload}, path="/hooks")
        context = member.call("context", owner="team", message="How do I answer you?")
        _, _, learnings = context["system"].partition("## Past Learnings")
        return member.ask(sent, owner="team").body.decode(), learnings

    for member, other, own, others in (
        (anna, "bert", ("Anna", "short", "German"), ("Bertram", "long")),
        (bert, "anna", ("Bertram", "long"), ("Anna.", "short", "German")),
    ):
        start, context = told(member)
        assert all(text in start and text in context for text in own)
        assert not any(text in start + context for text in others)
        is_mine = member is anna
        assert ("instruction of anna] Never use tabs" in start) is not is_mine
        assert ("anna: Never use tabs" in context) is not is_mine
        assert "peanuts" in start
        assert f"name of {other}" not in start


def test_a_hook_that_waited_too_long_for_a_thread_uses_up_no_line(anna: Memory) -> None:
    share(anna, "We decided that the staging database is Ibis.", owner="anna")
    payload = {
        "hook_event_name": "UserPromptSubmit",
        "session_id": "s",
        "prompt": "What did we decide to call the staging database?",
    }
    body = json.dumps({"payload": payload, "limit_s": 1.5}).encode()
    headers = {"authorization": f"Bearer {anna.token}"}

    def told(waited_s: float) -> bytes:
        at = time.monotonic() - waited_s
        sent = HttpRequest(
            "POST", "/hooks", "", body, headers, received_at=at, local=False
        )
        return anna.answer(sent).body

    assert told(9.0) == b"{}"
    assert b"is Ibis" in told(0.0)
