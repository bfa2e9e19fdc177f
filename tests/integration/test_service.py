"""The verbs as the service does them: what they answer, and what they refuse."""

from datetime import datetime, timedelta
from typing import Any

import pytest
from support.cases import each_case
from support.fakes import NOON, memory, trio
from support.services import Lab

from mnemosyned.errors import InvalidRequest, MnemosynedError, ShuttingDown
from mnemosyned.memory.values import Tier
from mnemosyned.verbs.conversation import Compact
from mnemosyned.verbs.memories import (
    METADATA_BYTES_MAX,
    Expand,
    Get,
    Pin,
    Recall,
    Remember,
    RememberMany,
)
from mnemosyned.verbs.request import Request
from mnemosyned.verbs.retention import Forget
from mnemosyned.verbs.upkeep import Sleep

BEFORE_YEAR_1 = datetime.fromisoformat("0001-01-01T00:00:00+09:00")
BAD_MEMORIES: list[tuple[dict[str, Any], str, str]] = [
    ({"content": ""}, "empty_content", "content"),
    ({"content": " \n\t\u3000"}, "empty_content", "content"),
    ({"content": "x" * 10_001}, "content_too_large", "content"),
    ({"content": "ü" * 5_001}, "content_too_large", "content"),
    ({"content": "a\0b"}, "invalid_text", "content"),
    ({"content": "\ud800"}, "invalid_text", "content"),
    ({"id": "a\0b"}, "invalid_text", "id"),
    ({"session": "\udfff"}, "invalid_text", "session"),
    ({"source": "a\0"}, "invalid_text", "source"),
    ({"role": "a\0"}, "invalid_text", "role"),
    ({"created_at": NOON + timedelta(minutes=2)}, "invalid_time", "created_at"),
    ({"created_at": datetime(2026, 1, 1)}, "invalid_time", "created_at"),  # noqa: DTZ001
    ({"created_at": BEFORE_YEAR_1}, "invalid_time", "created_at"),
    ({"metadata": {"a": "x" * METADATA_BYTES_MAX}}, "content_too_large", "metadata"),
    ({"metadata": {"a": "\ud800"}}, "invalid_text", "metadata"),
]


def kept_ids(lab: Lab, query: str) -> list[str]:
    return [hit.id for hit in lab.recall(query).hits]


def test_a_memory_without_an_id_or_time_gets_both(lab: Lab) -> None:
    acknowledged = lab.remember("hello", session="s")

    assert len(acknowledged.id) == 26
    assert acknowledged.created_at == NOON
    (kept,) = lab.store.memories.working([acknowledged.id])
    assert (kept.content, kept.session, kept.source) == ("hello", "s", None)
    ahead = NOON + timedelta(seconds=59)  # a clock a little ahead is no future
    assert lab.remember("hello", created_at=ahead).created_at == ahead


@each_case(("given", "code", "field"), BAD_MEMORIES)
def test_a_bad_memory_is_refused_with_its_code_and_field(
    lab: Lab, given: dict[str, Any], code: str, field: str
) -> None:
    bad = Remember(**{"content": "fine", **given})
    requests: list[tuple[Request[Any], str]] = [
        (bad, field),
        (RememberMany([Remember("fine"), bad]), f"memories[1].{field}"),
    ]

    for request, place in requests:
        with pytest.raises(MnemosynedError) as refused:
            lab.call(request)
        assert (refused.value.code, refused.value.field) == (code, place)

    assert lab.store.memories.working_count() == 0


@each_case(
    ("request_", "code", "field"),
    [
        (Recall("a\0b"), "invalid_text", "query"),
        (Recall("\ud800"), "invalid_text", "query"),
        (Recall("x", since=BEFORE_YEAR_1), "invalid_time", "since"),
        (Get("?"), "not_found", "id"),
        (Expand("?"), "not_found", "id"),
        (Forget("?"), "not_found", "id"),
        (Pin("?"), "not_found", "id"),
    ],
)
def test_no_text_no_time_and_an_unknown_id_are_refused(
    lab: Lab, request_: Request[Any], code: str, field: str
) -> None:
    with pytest.raises(MnemosynedError) as refused:
        lab.call(request_)

    assert (refused.value.code, refused.value.field) == (code, field)


def test_get_and_expand_tell_memories_from_episodes(lab: Lab) -> None:
    lab.put(*trio("a"), memory("fresh", hours_ago=1))
    (episode,) = lab.run_cycle().groups[0].episodes

    of_memory, of_episode = lab.get("a1"), lab.get(episode)

    assert of_memory.memory
    assert (of_memory.memory.episode, of_memory.episode) == (episode, None)
    assert of_episode.episode
    assert of_episode.episode.summary_of == ("a0", "a1", "a2")
    assert of_episode.memory is None
    with pytest.raises(InvalidRequest, match=episode):
        lab.expand("a1")
    with pytest.raises(InvalidRequest, match="not an episode; `get`"):
        lab.expand("fresh")


@pytest.mark.parametrize("model_fails", [False, True])
def test_forgetting_one_original_rewrites_its_episode_from_the_rest(
    lab: Lab, *, model_fails: bool
) -> None:
    lab.put(*trio("a"))
    (episode,) = lab.run_cycle().groups[0].episodes
    if model_fails:
        lab.summarizer.fail()

    receipt = lab.forget("a1")

    left = lab.expand(episode)
    assert (receipt.memories, receipt.episodes_rewritten) == (1, 1)
    assert [one.id for one in left.originals] == ["a0", "a2"]
    assert "note a0" in left.episode.content
    assert "a1" not in left.episode.content
    assert model_fails or left.episode.content == "In short: note a0 / note a2"
    assert kept_ids(lab, "a1") == []


def test_a_memory_that_moves_while_it_is_forgotten_is_forgotten(lab: Lab) -> None:
    lab.put(*trio("a"))
    lab.run_cycle()
    moves = iter([True])
    lab.summarizer.meanwhile = lambda _: next(moves, False) and lab.forget("a2")

    lab.forget("a1")

    assert [hit.summary_of for hit in lab.recall("note").hits] == [("a0",)]


def test_a_stopping_daemon_takes_no_writes_and_answers_questions(lab: Lab) -> None:
    lab.remember("a bike", id="1")
    lab.service.stop_writes()

    writes: list[Request[Any]] = [Remember("x"), RememberMany([Remember("x")])]
    writes += [Compact([{"role": "user", "content": "x"}]), Sleep(), Forget("1")]
    for request in writes:
        with pytest.raises(ShuttingDown):
            lab.call(request)
    assert kept_ids(lab, "bike") == ["1"]
    assert lab.get("1").memory
    assert lab.status().tiers[Tier.WORKING].count == 1
    assert lab.log().rows == []


def test_status_tells_the_state_of_the_store(lab: Lab) -> None:
    lab.put(*trio("a"), memory("new", hours_ago=1))
    before = lab.status()
    lab.clock.advance(minutes=5)
    lab.sleep()

    after = lab.status()

    assert (before.sleep.due, before.sleep.last_cycle) == (3, None)
    assert (after.sleep.due, after.sleep.last_cycle) == (0, NOON + timedelta(minutes=5))
    assert (after.tiers[Tier.WORKING].count, after.tiers[Tier.ARCHIVE].count) == (1, 3)
    asleep, summarizer = after.sleep, after.summarizer
    assert (asleep.auto, asleep.schedule, asleep.next_cycle) == (False, "off", None)
    assert (summarizer.name, summarizer.reason) == ("fake", "a test handed it in")
    assert after.bytes_on_disk > 0
    assert after.schema_version == lab.store.schema_version
    assert (after.wm_max, after.sleep.running) == (1_000, False)


@pytest.mark.sqlite
def test_status_names_the_file_and_its_size(lab: Lab) -> None:
    status = lab.status()

    assert status.database == str(lab.store.database)
    assert status.bytes_on_disk > lab.store.database.stat().st_size > 0
