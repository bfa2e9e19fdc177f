"""A history processor of Pydantic AI: `MemoryProcessor`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from hashlib import sha256
from typing import Any

from pydantic_ai import RunContext
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    SystemPromptPart,
    TextPart,
    UserPromptPart,
)

from mnemosyned.adapters.common import memory_section, remember_all, split_storable
from mnemosyned.client.asynchronous import AsyncClient
from mnemosyned.memory.values import DEFAULT_SESSION
from mnemosyned.verbs.facade import AsyncCaller
from mnemosyned.verbs.memories import Remember

MARK = "<!-- from memory -->"
"""The first line of what this processor adds, by which it finds it again."""


class MemoryProcessor:
    """Remembers what is said, and shows the model what matters to the user's last message.

    Texts of the conversation itself are not shown again. For
    `Agent(capabilities=[ProcessHistory(MemoryProcessor())])`. Each text is remembered once, however
    often it is processed. The last answer of a run is remembered with the next request, or by
    `remember(result.all_messages())`. Context of earlier turns is removed from the history.
    """

    def __init__(
        self,
        caller: AsyncCaller | None = None,
        *,
        source: str = "pydantic-ai",
        session: str | None = None,
        tokens: int = 2_000,
    ) -> None:
        """Set `source` and `session` of new memories, and the limit of shown ones in tokens.

        Without a `session`, each conversation of Pydantic AI is one; all of them are searched.
        """
        self._caller = caller or AsyncClient()
        self._source = source
        self._session = session
        self._tokens = tokens

    async def __call__(
        self, context: RunContext[Any], messages: list[ModelMessage]
    ) -> list[ModelMessage]:
        """Store the messages, and return them with a section of memories at the last user message.

        An earlier section is removed. `context` names the conversation, the session of the messages.
        """
        said: list[ModelMessage] = [
            replace(
                message, parts=[part for part in message.parts if not _is_section(part)]
            )
            if isinstance(message, ModelRequest)
            and any(map(_is_section, message.parts))
            else message
            for message in messages
        ]
        index, prompt = _last_prompt(said)
        shown = ""
        if prompt:
            shown = await memory_section(
                self._caller,
                prompt,
                before=[
                    pair for message in said[:index] for pair in _texts_in(message)
                ],
                tokens=self._tokens,
                source=self._source,
            )
        await self.remember(said, conversation=context.conversation_id)
        request = said[index] if shown else None
        if isinstance(request, ModelRequest):
            section = SystemPromptPart(f"{MARK}\n{shown}")
            said[index] = replace(request, parts=[section, *request.parts])
        return said

    async def remember(
        self, messages: Sequence[ModelMessage], *, conversation: str | None = None
    ) -> None:
        """Store each text of users and model in the messages, unless stored before.

        The session is the processor's own, else `conversation`, else the message's conversation.
        """
        memories = []
        for message in messages:
            session = self._session or conversation or message.conversation_id
            session = session or DEFAULT_SESSION
            for role, text in _texts_in(message):
                said = f"{session}\n{message.timestamp}\n{role}\n{text}"
                memory = Remember(
                    text,
                    id=f"pydantic-ai-{sha256(said.encode()).hexdigest()[:32]}",
                    session=session,
                    source=self._source,
                    role=role,
                )
                memories.append(memory)
        await remember_all(self._caller, memories)


def _texts_in(message: ModelMessage) -> Iterator[tuple[str, str]]:
    """Yield role, "user" or "assistant", and text of each part with words; a long text in pieces."""
    for part in message.parts:
        if isinstance(part, UserPromptPart):
            content = [part.content] if isinstance(part.content, str) else part.content
            text = "\n".join(each for each in content if isinstance(each, str))
            role = "user"
        elif isinstance(part, TextPart):
            text, role = part.content, "assistant"
        else:
            continue
        for storable in split_storable(text):
            yield role, storable


def _last_prompt(messages: Sequence[ModelMessage]) -> tuple[int, str]:
    """Return index and text of the last message with words of the user; 0 and "" without one."""
    for index in range(len(messages) - 1, -1, -1):
        prompts = [text for role, text in _texts_in(messages[index]) if role == "user"]
        if prompts:
            return index, prompts[-1]
    return 0, ""


def _is_section(part: object) -> bool:
    """Return whether a message's part is a section of memories that this processor added."""
    return isinstance(part, SystemPromptPart) and part.content.startswith(MARK)
