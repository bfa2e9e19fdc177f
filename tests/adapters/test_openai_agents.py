"""`MnemosyneSession` next to a real daemon: the SDK's own tests, and what they do not ask."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from adapters.conftest import UpstreamTests, run_page, with_client
from agents.memory import Session

from mnemosyned import AsyncClient, ContentTooLarge
from mnemosyned.adapters.openai_agents import MnemosyneSession

pytestmark = pytest.mark.adapters

OF_SQLITE = (
    "corrupt",
    "close",
    "worker_threads",
    "file_lock",
    "write_lock",
    "rollback",
    "rolls_back",
    "post_commit",
    "await_mutation",
    "add_items_exception",
)
"""Words in the names of tests of SQLite's connections, locks and damaged rows."""
TALK: list[Any] = [
    {"role": "user", "content": "Which zeppelin is blue?"},
    {"type": "function_call", "call_id": "c1", "name": "look", "arguments": '{"n": 1}'},
    {
        "type": "function_call_output",
        "call_id": "c1",
        "output": "The Hindenburg is gray.",
    },
    {
        "type": "message",
        "id": "m1",
        "role": "assistant",
        "status": "completed",
        "content": [
            {"type": "output_text", "text": "None is blue.", "annotations": []}
        ],
    },
    {"type": "reasoning", "id": "r1", "summary": []},
]


@pytest.mark.parametrize("file", ["test_session.py", "test_session_limit.py"])
def test_the_sdks_own_tests_pass(upstream: UpstreamTests, file: str) -> None:
    chosen = " and ".join(f"not {word}" for word in OF_SQLITE)
    outcome = upstream.outcome(
        "openai_agents-0.24.0",
        f"tests/memory/{file}",
        "adapters.upstream_openai_agents",
        "-k",
        chosen,
    )

    assert outcome["passed"] >= 5
    assert not outcome.keys() & {"failed", "error", "errors", "skipped"}


@with_client
async def test_items_of_every_kind_come_back_as_they_were(client: AsyncClient) -> None:
    session = MnemosyneSession("kinds", client)
    assert isinstance(session, Session)
    await session.add_items(TALK)

    assert await session.get_items() == TALK
    assert await session.get_items(2) == TALK[-2:]
    assert await session.pop_item() == TALK[-1]
    assert await session.get_items() == TALK[:-1]


@with_client
async def test_what_no_memory_can_contain_comes_back_too(client: AsyncClient) -> None:
    items: list[Any] = [
        {"type": "function_call_output", "call_id": "c", "output": text}
        for text in (
            "ELF \0 binary",
            "an emoji cut in half: \ud83d",
            "whole: 😀",
            " \n",
        )
    ]
    session = MnemosyneSession("odd", client)
    await session.add_items(items)

    assert await session.get_items() == items


@with_client
async def test_each_item_is_popped_once(client: AsyncClient) -> None:
    session = MnemosyneSession("popped", client)
    await session.add_items(TALK)

    popped = await asyncio.gather(*(session.pop_item() for _ in range(len(TALK) + 1)))

    assert sorted(map(str, popped)) == sorted(map(str, [*TALK, None]))


@with_client
async def test_what_was_said_is_recalled_by_others(client: AsyncClient) -> None:
    session = MnemosyneSession("zeppelins", client, source="air")
    await session.add_items(TALK)

    hits = (await client.recall("Which is gray?", source="air")).hits
    assert hits[0].snippet == "The Hindenburg is gray."
    assert hits[0].session == "zeppelins"


@with_client
async def test_a_sleep_changes_no_history(client: AsyncClient) -> None:
    session = MnemosyneSession("slept", client)
    await session.add_items(TALK)
    await client.sleep(force=True)
    await session.add_items(TALK[:1])

    assert await session.get_items() == [*TALK, TALK[0]]


@with_client
async def test_a_cleared_session_alone_is_forgotten(client: AsyncClient) -> None:
    cleared = MnemosyneSession("cleared", client, source="first")
    other = MnemosyneSession("cleared", client, source="second")
    for session in (cleared, other):
        await session.add_items(TALK[:1])
    await cleared.clear_session()

    assert await cleared.get_items() == []
    assert await cleared.pop_item() is None
    assert await other.get_items() == TALK[:1]
    assert not await client.recall("zeppelin", source="first")


@with_client
async def test_a_large_item_comes_back_whole_and_a_larger_one_is_refused(
    client: AsyncClient,
) -> None:
    session = MnemosyneSession("large", client)
    large: list[Any] = [{"role": "user", "content": 'a "zeppelin"\n' * 10_000}]
    await session.add_items(large)
    with pytest.raises(ContentTooLarge):
        await session.add_items([{"role": "user", "content": "x" * 2_000_000}])
    assert await session.get_items() == large


def test_the_page_shows_what_its_program_prints() -> None:
    run_page("openai_agents")
