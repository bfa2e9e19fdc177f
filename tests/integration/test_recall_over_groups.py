"""Recall over one's own memory and those of groups: as over one memory with everything in it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from datetime import timedelta

import pytest
from support.fakes import NOON, FakeClock

from mnemosyned import Memory
from mnemosyned.errors import StorageFailed
from mnemosyned.memory.values import Hit
from mnemosyned.service import service as services
from mnemosyned.service.service import MemoryService
from mnemosyned.verbs.memories import Recall, Remember
from mnemosyned.verbs.upkeep import Sleep

OWN = (
    "The dentist moved my appointment to Friday.",
    "Grace lent me the book about lighthouses.",
    "My deploys go to the blue cluster.",
    "I water the fern on Mondays.",
)
TEAM = (
    "Deploys to production need two approvals.",
    "The blue cluster is in Dublin and has nine nodes.",
    "The release train leaves every second Thursday.",
    "Ticket 4711: the deploy of the mailer failed in Dublin.",
    "The lighthouse project ends in May.",
)
QUESTIONS = (
    "who lent me a book about lighthouses?",
    "what do deploys to production need?",
    "where is the blue cluster?",
    "which cluster do my deploys go to?",
    "the latest deploy",
    "what is known about deploys?",
    "who repairs the zeppelin?",
)


@pytest.fixture
def trio() -> Iterator[list[MemoryService]]:
    """The memory of somebody, that of a team, and one with what both keep."""
    with ExitStack() as opened:
        found: list[MemoryService] = []
        for _ in range(3):
            memory = Memory(
                ":memory:", clock=FakeClock(NOON), **{"embedding.encoder": "none"}
            )
            service = opened.enter_context(memory)._caller  # noqa: SLF001 by its verbs
            assert isinstance(service, MemoryService)
            found.append(service)
        own, team, both = found
        lines = [(text, own) for text in OWN] + [(text, team) for text in TEAM]
        for number, (text, place) in enumerate(lines):
            said = Remember(text, created_at=NOON - timedelta(hours=5 * number))
            place.call(said)
            both.call(said)
        yield found


def shown(hits: list[Hit]) -> list[tuple[str, float, float]]:
    return [
        (hit.content, round(hit.score, 6), round(hit.confidence, 6)) for hit in hits
    ]


@pytest.mark.parametrize("question", QUESTIONS)
def test_hits_are_those_of_one_memory_with_everything(
    trio: list[MemoryService], question: str
) -> None:
    own, team, both = trio
    asked = Recall(question, explain=True)

    answer = own.call(asked, groups={"team": lambda: team})

    expected = both.call(asked)
    assert shown(answer.hits) == shown(expected.hits)
    assert shown(answer.nearest) == shown(expected.nearest)
    assert (answer.confidence, answer.note) == (expected.confidence, expected.note)
    for hit in (*answer.hits, *answer.nearest):
        assert hit.owner == ("team" if hit.content in TEAM else None)
    assert [hit.owner for hit in own.call(asked).hits] == [None] * len(
        own.call(asked).hits
    )


def test_a_question_for_a_time_alone_gets_all_of_that_time(
    trio: list[MemoryService],
) -> None:
    own, team, both = trio
    asked = Recall("what happened yesterday?")

    answer = own.call(asked, groups={"team": lambda: team})

    contents = {hit.content for hit in answer.hits}
    assert contents == {hit.content for hit in both.call(asked).hits}
    assert {hit.owner for hit in answer.hits} == {None, "team"}


def test_summaries_of_groups_come_with_their_originals(
    trio: list[MemoryService],
) -> None:
    own, team, _ = trio
    team.call(Sleep(force=True))

    answer = own.call(
        Recall("what do deploys to production need?"), groups={"team": lambda: team}
    )

    best = answer.hits[0]
    assert (best.owner, best.lines[0].content) == ("team", TEAM[0])
    assert best.summary_of


def test_a_group_that_fails_or_would_take_too_long_is_left_out_with_a_note(
    trio: list[MemoryService], monkeypatch: pytest.MonkeyPatch
) -> None:
    own, team, _ = trio

    def fail() -> MemoryService:
        raise StorageFailed("the server is away")

    asked = Recall("which cluster do my deploys go to?")
    answer = own.call(asked, groups={"board": fail, "team": lambda: team})
    assert "the memory of board was left out: the server is away" in answer.note
    assert {hit.owner for hit in answer.hits} == {None, "team"}

    monkeypatch.setattr(services, "GROUPS_S", -1.0)
    answer = own.call(asked, groups={"team": lambda: team})
    assert answer.note == "the memory of team was left out, for lack of time"
    assert answer.hits == own.call(asked).hits
