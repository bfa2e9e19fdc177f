"""`MemoryProcessor` in an agent of Pydantic AI, next to a real daemon."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest
from adapters.conftest import run_page, with_client
from pydantic_ai import Agent
from pydantic_ai.capabilities import ProcessHistory
from pydantic_ai.messages import ModelResponse, TextPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from mnemosyned import AsyncClient
from mnemosyned.adapters.common import PART_CHARS
from mnemosyned.adapters.pydantic_ai import MARK, MemoryProcessor

pytestmark = pytest.mark.adapters


class Talks:
    """An agent whose model says what it is told to, and what its model was sent."""

    def __init__(self, client: AsyncClient, **options: Any) -> None:  # noqa: ANN401
        self.client = client
        self.source = f"pydantic-{uuid4().hex[:8]}"
        self.processor = MemoryProcessor(client, source=self.source, **options)
        self.sent: list[list[Any]] = []
        self.agent = Agent(
            FunctionModel(self._answer),
            capabilities=[ProcessHistory(self.processor)],
            instructions="Be brief.",
        )

    def _answer(self, messages: list[Any], _: AgentInfo) -> ModelResponse:
        self.sent.append(list(messages))
        return ModelResponse(parts=[TextPart(f"answer {len(self.sent)}")])

    def sections(self, turn: int) -> list[str]:
        """What the processor had added; some models get it as a user's words."""
        return [
            part.content
            for message in self.sent[turn]
            for part in message.parts
            if MARK in str(part.content)
        ]


@with_client
async def test_what_was_said_in_one_conversation_is_shown_in_the_next(
    client: AsyncClient,
) -> None:
    talks = Talks(client)
    await talks.agent.run("My zeppelin is called Hildegard.")
    await talks.agent.run("What is my zeppelin called?")
    await talks.agent.run("Is the harbor open?")

    assert talks.sections(0) == []
    (section,) = talks.sections(1)
    assert "Hildegard" in section
    assert talks.sections(2) == []


@with_client
async def test_a_conversation_keeps_one_section_and_remembers_each_text_once(
    client: AsyncClient,
) -> None:
    talks = Talks(client)
    await talks.agent.run("My zeppelin is called Hildegard.")
    result = await talks.agent.run("What is my zeppelin called?")
    for question in ("Who is Hildegard?", "Is the zeppelin called Hildegard?"):
        result = await talks.agent.run(question, message_history=result.all_messages())
    await talks.processor.remember(result.all_messages())
    await talks.processor.remember(result.all_messages())

    (section,) = talks.sections(3)
    assert "My zeppelin is called Hildegard." in section
    assert "Who is Hildegard?" not in section, "the conversation has it anyway"
    kept = await talks.client.forget(source=talks.source, dry_run=True)
    said = [(line.role, line.snippet) for line in kept.lines]
    assert len(said) == len(set(said))
    assert ("assistant", "answer 4") in said
    assert ("user", "Who is Hildegard?") in said
    assert not any(MARK in text for _, text in said)


@with_client
async def test_what_no_memory_can_contain_fails_no_run(client: AsyncClient) -> None:
    talks = Talks(client)
    result = await talks.agent.run("The canoe\0 is called Edda \ud83d.")
    await talks.agent.run("And the oar?", message_history=result.all_messages())

    hit = (await client.recall("canoe Edda", source=talks.source)).hits[0]
    assert hit.content == "The canoe\ufffd is called Edda \ufffd."


@with_client
async def test_a_text_too_long_for_a_memory_is_several(client: AsyncClient) -> None:
    talks = Talks(client)
    strokes = "".join(f"{stroke} 漕ぐ " for stroke in range(150_000))
    long = f"The canoe is called Edda. {strokes} The oar is called Ulla."
    await talks.agent.run(long)

    for query, text in (("canoe Edda", "called Edda"), ("oar Ulla", "called Ulla")):
        hit = (await client.recall(query, source=talks.source)).hits[0]
        assert text in hit.content, query
    kept = await client.forget(source=talks.source, dry_run=True)
    assert kept.memories == -(-len(long) // PART_CHARS)


@with_client
async def test_conversations_are_sessions_unless_named(client: AsyncClient) -> None:
    for named, session in ((None, "kites"), ("mine", "mine")):
        talks = Talks(client, session=named)
        await talks.agent.run("The kite is red.", conversation_id="kites")

        (hit,) = await client.recall("kite", source=talks.source)
        assert hit.session == session


def test_the_page_shows_what_its_program_prints() -> None:
    run_page("pydantic_ai")
