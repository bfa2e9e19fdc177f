"""The section of memories and learnings that matter to a message."""

from __future__ import annotations

from collections.abc import Sequence

from mnemosyned.verbs.conversation import Assembled, Context
from mnemosyned.verbs.facade import AsyncCaller

MESSAGE_CHARS_MAX = 4_000
WINDOW_TOKENS = 32_000
LEARNINGS_SHARE = 0.25
"""Share of the section for learnings."""


async def memory_section(
    caller: AsyncCaller,
    message: str,
    *,
    before: Sequence[tuple[str, str]] = (),
    tokens: int,
    session: str | None = None,
    source: str | None = None,
) -> str:
    """Memories and learnings under their headings; empty where nothing matters to the message.

    Texts of the conversation `before` it, given with their roles, are not shown again.
    """
    share = tokens / WINDOW_TOKENS
    assembled: Assembled = await caller.call(
        Context(
            message[-MESSAGE_CHARS_MAX:],
            messages=[{"role": role, "content": text} for role, text in before],
            session=session,
            source=source,
            total=WINDOW_TOKENS,
            fresh_tail=0,
            system_reserve=0,
            tools_reserve=0,
            memory_fraction=share * (1 - LEARNINGS_SHARE),
            learnings_fraction=share * LEARNINGS_SHARE,
        )
    )
    return assembled.system.strip()
