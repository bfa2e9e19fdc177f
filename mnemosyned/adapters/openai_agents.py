"""A session of OpenAI's Agents SDK on a memory: `MnemosyneSession`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, cast

from agents.items import TResponseInputItem
from agents.memory import SessionABC, SessionSettings
from agents.memory.session_settings import (
    coerce_session_settings,
    resolve_session_limit,
)

from mnemosyned.adapters import common
from mnemosyned.client.asynchronous import AsyncClient
from mnemosyned.errors import NotFound
from mnemosyned.verbs.facade import AsyncCaller
from mnemosyned.verbs.memories import Remember
from mnemosyned.verbs.retention import Forget, Forgotten

TEXT_FIELDS = ("content", "output", "arguments", "summary", "text", "refusal")
"""Fields with words, of an item and of the parts of its content."""


class MnemosyneSession(SessionABC):
    """The history of one conversation, each item a memory that every agent can recall.

    `get_items` answers the items exactly as they were added. `pop_item` and `clear_session` forget.
    Conversations are kept apart by `session_id`, and from other tools by `source`.
    """

    def __init__(
        self,
        session_id: str,
        caller: AsyncCaller | None = None,
        *,
        source: str = "openai-agents",
        session_settings: SessionSettings | dict[str, Any] | None = None,
    ) -> None:
        """Make the session of a conversation on a caller, by default the daemon's socket client."""
        self.session_id = session_id
        self.session_settings = coerce_session_settings(session_settings or {})
        self._caller = caller or AsyncClient()
        self._source = source

    async def get_items(self, limit: int | None = None) -> list[TResponseInputItem]:
        """Return the newest `limit` items, oldest first; without `limit`, as many as the settings say."""
        most = resolve_session_limit(limit, self.session_settings)
        return await common.run_steps_async(self._newest_items(most), self._caller)

    async def add_items(self, items: list[TResponseInputItem]) -> None:
        """Store items of the conversation, in batches that are stored whole or not at all."""
        memories = [self._memory_of(cast("Mapping[str, Any]", item)) for item in items]
        await common.remember_all(self._caller, memories)

    async def pop_item(self) -> TResponseInputItem | None:
        """Forget the newest item of the conversation and return it, or None if there is none."""
        return await common.run_steps_async(self._pop_newest(), self._caller)

    async def clear_session(self) -> None:
        """Forget all items of the conversation, and the learnings from them."""
        await self._caller.call(Forget(session=self.session_id, source=self._source))

    def _memory_of(self, item: Mapping[str, Any]) -> Remember:
        """Return the memory that stores an item of the conversation, with its role or type."""
        text = "\n".join(_texts_in(item)).strip() or json.dumps(
            item, ensure_ascii=False
        )
        return common.make_record_memory(
            text,
            item,
            session=self.session_id,
            source=self._source,
            role=str(item.get("role") or item.get("type") or ""),
        )

    def _newest_items(self, most: int | None) -> common.Steps[list[TResponseInputItem]]:
        """Return steps that read the newest `most` items, or all if None, oldest first; skip pruned ones."""
        lines = yield from common.list_records(
            session=self.session_id, source=self._source
        )
        items: list[TResponseInputItem] = []
        for line in reversed(lines):
            if most is not None and len(items) >= most:
                break
            item = yield from common.read_record_value(line.id)
            if item is not None:
                items.append(item)
        return items[::-1]

    def _pop_newest(self) -> common.Steps[TResponseInputItem | None]:
        """Return steps to forget the newest item, and pruned items after it; the value is the item, or None."""
        lines = yield from common.list_records(
            session=self.session_id, source=self._source
        )
        for line in reversed(lines):
            item: TResponseInputItem | None = yield from common.read_record_value(
                line.id
            )
            try:
                forgotten: Forgotten = yield Forget(line.id)
            except NotFound:
                continue
            if not forgotten.memories:  # another call took it at the same time
                continue
            if item is not None:
                return item
        return None


def _texts_in(value: object) -> Iterator[str]:
    """Yield the texts in an item: strings in its text fields and in lists, at any depth."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for name in TEXT_FIELDS:
            yield from _texts_in(value.get(name))
    elif isinstance(value, list):
        for part in value:
            yield from _texts_in(part)
