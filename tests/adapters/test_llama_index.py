"""`MnemosyneMemoryBlock` in LlamaIndex's `Memory`, next to a real daemon."""

from __future__ import annotations

import asyncio
import tempfile
from typing import Any
from uuid import uuid4

import pytest
from adapters.conftest import run_page, with_client
from llama_index.core.llms import ChatMessage
from llama_index.core.memory import Memory
from sqlalchemy.ext.asyncio import create_async_engine
from sqlalchemy.pool import NullPool

from mnemosyned import AsyncClient
from mnemosyned.adapters.llama_index import MnemosyneMemoryBlock

pytestmark = pytest.mark.adapters


def make_block(client: AsyncClient) -> MnemosyneMemoryBlock:
    return MnemosyneMemoryBlock(client, source=f"llama-{uuid4().hex[:8]}")


def user(text: str) -> Any:  # noqa: ANN401 a message
    return ChatMessage(role="user", content=text)


@with_client
async def test_what_leaves_the_short_term_memory_is_shown_where_it_matters(
    client: AsyncClient,
) -> None:
    block = make_block(client)
    # Without a pool, as LlamaIndex closes no connection of its own database.
    folder = tempfile.TemporaryDirectory(prefix="llama-")
    engine = create_async_engine(
        f"sqlite+aiosqlite:///{folder.name}/talk.db", poolclass=NullPool
    )
    memory = Memory.from_defaults(
        async_engine=engine,
        session_id="talk",
        token_limit=200,
        token_flush_size=50,
        chat_history_token_ratio=0.5,
        memory_blocks=[block],
    )
    await memory.aput(user("My zeppelin is called Hildegard."))
    for number in range(30):
        await memory.aput(user(f"Something else entirely, number {number}."))

    shown = await memory.aget(input="What is my zeppelin called?")

    assert any("Hildegard" in str(message.content) for message in shown)
    recalled = await client.recall("zeppelin", source=block.source)
    assert recalled.hits[0].snippet == "My zeppelin is called Hildegard."
    assert {hit.session for hit in recalled} == {"talk"}
    folder.cleanup()


@with_client
async def test_a_message_without_matches_shows_nothing(client: AsyncClient) -> None:
    block = make_block(client)
    await block.aput([user("My zeppelin is called Hildegard.")])

    assert await block.aget([user("Is the harbor open?")]) == ""
    assert await block.aget([]) == ""
    assert await block.aget() == ""


@with_client
async def test_what_no_memory_can_contain_is_replaced(client: AsyncClient) -> None:
    block = make_block(client)
    await block.aput([user("The canoe\0 is called Edda \ud83d.")])

    shown = await block.aget([user("What is the canoe\0 called \ud83d?")])
    assert "The canoe\ufffd is called Edda \ufffd." in shown


@with_client
async def test_one_session_or_all(client: AsyncClient) -> None:
    block = make_block(client)
    await block.aput([user("The zeppelin is blue.")], session_id="first")
    await block.aput([user("The zeppelin has two cabins.")], session_id="second")
    question = [user("What do you know of the zeppelin?")]

    everything = await block.aget(question, session_id="first")
    block.this_session = True
    first = await block.aget(question, session_id="first")

    assert "blue" in everything
    assert "cabins" in everything
    assert "blue" in first
    assert "cabins" not in first


def test_a_block_is_truncated_line_by_line() -> None:
    block = MnemosyneMemoryBlock()
    content = "\n".join(f"a line with number {number}" for number in range(20))

    shorter = asyncio.run(block.atruncate(content, 40))
    nothing = asyncio.run(block.atruncate(content, 10_000))

    assert shorter is not None
    assert content.startswith(shorter)
    assert 5 <= len(shorter.splitlines()) < 20
    assert nothing is None


def test_the_page_shows_what_its_program_prints() -> None:
    run_page("llama_index")
