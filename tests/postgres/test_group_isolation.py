"""No request shows a line of a memory that its sender may not read, while members come and go.

GROUP_REQUESTS=300000 sends so many requests, and shows how far it is (`make test-groups`).
"""

from __future__ import annotations

import json
import os
import random
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from http import HTTPStatus

import pytest
from fuzz.requests import Requests, by_post
from postgres.served import Memory, Service, serve_in_process
from postgres.test_isolation import NOT_HERE, SHOWN_EVERY, SQL, aimed, fill, show
from support.postgres import rows_of, run

from mnemosyned.memory.engine_ports import OWN_SCOPES, Scope

pytestmark = pytest.mark.postgres
REQUESTS = int(os.environ.get("GROUP_REQUESTS", "800"))
SEED = os.environ.get("FUZZ_SEED", "groups")
PEOPLE = ("anna", "bert", "carla", "dave")
GROUPS = ("team", "board", "crew")
OUT_OF_REACH = ("vault", "erin")
"""A group whose one member, and a person who, send none of the requests."""
CHANGED_EVERY = 25
"""Requests after which a membership changes, a token is revoked and another one is issued."""
FILLED_EVERY = 500
MISSING = "no-memory-of-this-name"


def kept_rows(dsn: str, *numbers: int) -> list[dict[str, list[str]]]:
    """The rows of memories that no chore of the daemon changes."""
    found = [rows_of(dsn, number) for number in numbers]
    chosen = ("memory", "episode", "learning", "tag")
    return [{name: each[name] for name in chosen} for each in found]


def mark_of(name: str) -> str:
    """The word in every text of a memory, and in no request."""
    return f"{name}sownword"


@dataclass(slots=True)
class Token:
    person: str
    scopes: frozenset[Scope]
    id: str
    secret: str
    valid: bool = True


@dataclass(slots=True)
class World:
    """Who is a member of what, which tokens there are, and what each may read."""

    service: Service
    dsn: str
    chance: random.Random
    seconds: float = 0.0
    members: dict[tuple[str, str], frozenset[Scope]] = field(default_factory=dict)
    tokens: list[Token] = field(default_factory=list)
    suspended: str = ""
    """A person or a group that is suspended now."""

    def issue(self, person: str, scopes: Sequence[Scope] = OWN_SCOPES) -> Token:
        issued = self.service.owners.issue(person, "test", scopes)
        token = Token(person, frozenset(scopes), issued.token.id, issued.secret)
        self.tokens.append(token)
        return token

    def some_scopes(self) -> list[Scope]:
        return self.chance.sample(OWN_SCOPES, self.chance.randint(1, 3))

    def change(self) -> None:
        """Change a membership, end a token and issue another; known tokens grow old."""
        owners, chance = self.service.owners, self.chance
        place = chance.choice(PEOPLE), chance.choice(GROUPS)
        if place in self.members and chance.random() < 0.4:
            owners.leave(place[1], place[0])
            del self.members[place]
        else:
            scopes = self.some_scopes()
            owners.join(place[1], place[0], scopes)
            self.members[place] = frozenset(scopes)
        ended = chance.choice([each for each in self.tokens if each.valid])
        owners.revoke(ended.person, ended.id)
        ended.valid = False
        self.issue(ended.person, self.some_scopes())
        lapsed = owners.issue(
            ended.person, "test", OWN_SCOPES, valid_for=timedelta(microseconds=1)
        )
        self.tokens.append(
            Token(ended.person, frozenset(OWN_SCOPES), "", lapsed.secret, valid=False)
        )
        self.tokens = [each for each in self.tokens if each.valid] + [
            each for each in self.tokens if not each.valid
        ][-10:]
        self.suspended = chance.choice((*PEOPLE, *GROUPS, ""))
        suspend = "UPDATE owner SET suspended_at = CASE WHEN name = '{}' THEN now() END"
        run(self.dsn, suspend.format(self.suspended))
        self.seconds += 1

    def is_valid(self, token: Token) -> bool:
        return token.valid and token.person != self.suspended

    def chosen(self, token: Token, owner: str | None) -> set[str] | None:
        """The names of the memories that a request may read; None for a name that is refused."""
        groups = {
            group: token.scopes & scopes
            for (person, group), scopes in self.members.items()
            if person == token.person and group != self.suspended
        }
        if owner in groups:
            return {owner} if Scope.READ in groups[owner] else set()
        if owner not in (None, token.person):
            return None
        own = {token.person} if Scope.READ in token.scopes else set()
        if owner is None and own:
            own |= {group for group, scopes in groups.items() if Scope.READ in scopes}
        return own


@pytest.fixture
def world(dsn: str) -> Iterator[World]:
    chance = random.Random(SEED)
    ages: list[World] = []
    with serve_in_process(dsn, now=lambda: ages[0].seconds if ages else 0.0) as service:
        ages.append(World(service, dsn, chance))
        yield ages[0]


def test_no_request_shows_a_line_that_its_sender_may_not_read(
    dsn: str, world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    service, chance = world.service, world.chance
    people = {name: service.memory(name) for name in (*PEOPLE, "erin", "keeper")}
    for name in (*GROUPS, "vault"):
        service.owners.add(name, is_group=True)
        service.owners.join(name, "keeper", OWN_SCOPES)
    world.seconds += 1
    keeper = people["keeper"]
    memories = {
        **{name: people[name] for name in (*PEOPLE, "erin")},
        **{name: replace(keeper, group=name) for name in (*GROUPS, "vault")},
    }
    known = [*PEOPLE, *GROUPS, *OUT_OF_REACH]
    for name, memory in memories.items():
        known += fill(memory, mark_of(name))
    numbers = {each.name: each.number for each in service.owners.owners()}
    known += map(str, numbers.values())
    out_of_reach = [numbers[name] for name in OUT_OF_REACH]
    before = kept_rows(dsn, *out_of_reach)
    for person in PEOPLE:
        world.issue(person)
        world.issue(person, world.some_scopes())
    marks = {name: mark_of(name).encode() for name in memories}
    requests = Requests(SEED, without=NOT_HERE)
    answers: Counter[int] = Counter()
    seen: Counter[str] = Counter()
    began = time.monotonic()

    for done in range(1, REQUESTS + 1):
        if done % CHANGED_EVERY == 1:
            world.change()
        if done % FILLED_EVERY == 0:
            for name in {*PEOPLE, *GROUPS} - {world.suspended}:
                text = f"{mark_of(name)} moved to Lisbon in round {done}"
                memories[name].call("remember", content=text)
        valid = chance.random() < 0.9
        token = chance.choice([each for each in world.tokens if each.valid is valid])
        owner = None
        if chance.random() < 0.5:
            others = (token.person, *GROUPS, *known[:9], MISSING, *SQL)
            owner = chance.choice(GROUPS if chance.random() < 0.5 else others)
        sent = requests.next()
        if chance.random() < 0.7:
            sent = aimed(sent, chance, known)
        if chance.random() < 0.2:
            query = f"who moved to Lisbon with {chance.choice(known)}?"
            sent = by_post("recall", {"query": query, "limit": 50})
        sender = Memory(service.answer, people[token.person].owner, token.secret)
        response = sender.ask(sent, owner=owner)
        answers[response.status] += 1

        valid = world.is_valid(token)
        readable = world.chosen(token, owner) if valid else set()
        shown = {name for name, mark in marks.items() if mark in response.body}
        assert shown <= (readable or set()), (sent, token, owner, world.members)
        assert b"keepersownword" not in response.body
        assert response.status < HTTPStatus.INTERNAL_SERVER_ERROR, (sent, response.body)
        assert (response.status == HTTPStatus.UNAUTHORIZED) is not valid, sent
        if valid and readable is None:
            unknown = sender.ask(sent, owner=MISSING)
            assert response.status == unknown.status == HTTPStatus.NOT_FOUND
            named = repr(owner).encode()
            assert named in response.body or b"\\" in response.body
            assert len(response.body) - len(json.dumps(repr(owner))) == len(
                unknown.body
            ) - len(json.dumps(repr(MISSING)))
        seen.update(shown)
        if response.status == HTTPStatus.OK and response.body.startswith(b"{"):
            requests.learn(json.loads(response.body.splitlines()[0]))
        if done % SHOWN_EVERY == 0:
            with capsys.disabled():
                show(done, answers, began)

    assert kept_rows(dsn, *out_of_reach) == before
    assert answers[HTTPStatus.OK] > REQUESTS / 10
    assert seen.keys() == {*PEOPLE, *GROUPS}, seen
    run(dsn, "UPDATE owner SET suspended_at = NULL")
    world.seconds += 1
    for name in ("team", "vault"):
        answer = memories[name].ask(by_post("recall", {"query": "Lisbon"}))
        assert marks[name] in answer.body
