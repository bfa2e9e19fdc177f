"""A memory block of LlamaIndex: `MnemosyneMemoryBlock`."""

from __future__ import annotations

from typing import Any

from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.bridge.pydantic import Field, PrivateAttr
from llama_index.core.memory import BaseMemoryBlock

from mnemosyned.adapters.common import memory_section, remember_all, split_storable
from mnemosyned.client.asynchronous import AsyncClient
from mnemosyned.memory.values import DEFAULT_SESSION
from mnemosyned.text.token_counts import TokenEstimator
from mnemosyned.verbs.facade import AsyncCaller
from mnemosyned.verbs.memories import Remember

SESSION = "session_id"
"""LlamaIndex's key for the conversation of messages and questions."""


class MnemosyneMemoryBlock(BaseMemoryBlock[str]):
    """Remembers messages that leave the short-term memory; shows memories for the last message.

    By default all conversations are searched; `this_session` looks at the present one alone.
    """

    name: str = Field(default="mnemosyne")
    source: str = Field(default="llama-index")
    tokens: int = Field(default=2_000, gt=0, le=10_000)
    """Approximate limit of the tokens of memories and learnings."""
    this_session: bool = Field(default=False)
    _caller: AsyncCaller = PrivateAttr()

    def __init__(self, caller: AsyncCaller | None = None, **fields: Any) -> None:  # noqa: ANN401
        """Make a block with these `fields` on a caller, by default a client of the daemon's socket."""
        super().__init__(**fields)
        self._caller = caller or AsyncClient()

    async def _aget(
        self,
        messages: list[ChatMessage] | None = None,
        **block_kwargs: Any,  # noqa: ANN401
    ) -> str:
        """Return memories relevant to the last message; empty without messages."""
        said = [
            (message.role.value, storable)
            for message in messages or []
            for storable in split_storable(message.content or "")
        ]
        if not said:
            return ""
        session = block_kwargs.get(SESSION) if self.this_session else None
        return await memory_section(
            self._caller,
            said[-1][1],
            before=said[:-1],
            tokens=self.tokens,
            session=session,
            source=self.source,
        )

    async def _aput(self, messages: list[ChatMessage]) -> None:
        """Store messages as memories, with their role and session; blank messages are left out."""
        memories = [
            Remember(
                storable,
                session=str(message.additional_kwargs.get(SESSION) or DEFAULT_SESSION),
                source=self.source,
                role=message.role.value,
            )
            for message in messages
            for storable in split_storable(message.content or "")
        ]
        await remember_all(self._caller, memories)

    async def atruncate(self, content: str, tokens_to_truncate: int) -> str | None:
        """Return the text without its last lines, of `tokens_to_truncate` in all; None if nothing is left."""
        lines = content.splitlines()
        counter = TokenEstimator()
        wanted = counter.count(content) - tokens_to_truncate
        while lines and counter.count("\n".join(lines)) > wanted:
            lines.pop()
        return "\n".join(lines) or None
