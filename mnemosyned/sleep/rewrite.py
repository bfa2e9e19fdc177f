"""Mending: summaries that lost a part of what they were made of are rewritten from the rest."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import replace

from mnemosyned.domain.consolidation import UNSPOKEN, VERBATIM, WORDLESS
from mnemosyned.domain.errors import BatchChanged, SummarizerFailed
from mnemosyned.domain.memory import Detail, Episode, MemoryRecord
from mnemosyned.domain.ports.models import Summarizer, Summary
from mnemosyned.domain.ports.store import MemoryStore
from mnemosyned.domain.retention import Emptied
from mnemosyned.domain.rollup import Level
from mnemosyned.domain.secrets.exact_values import without_secrets
from mnemosyned.logs import logger
from mnemosyned.sleep.rollup import SEPARATOR, LevelPolicy, as_memory, at_once

MENDED_MAX = 1_000_000
TRIES_MAX = 1_000
"""How often in all a summary may change while it is being rewritten."""

log = logger()


def mend(
    store: MemoryStore,
    summarizer: Summarizer,
    *,
    levels: LevelPolicy,
    alone: AbstractContextManager[object],
    highest: Level = Level.MONTH,
) -> int:
    """Rewrite every emptied summary up to a level, the lowest first; answers with how many.

    One at a time, `alone` sees to that, so that a summary is read only when those below it are
    whole. Whoever waits for it waits for no model.
    """
    tries_left = TRIES_MAX
    mended = 0
    with alone:
        while mended < MENDED_MAX and (emptied := store.next_emptied(highest=highest)):
            try:
                store.rewrite(
                    emptied.mark, _rewritten(emptied, summarizer.rule_based(), levels)
                )
            except BatchChanged:  # more of it is gone: look again
                tries_left -= 1
                if not tries_left:
                    raise
            else:
                mended += 1
    if mended:
        log.info("episodes_mended", count=mended)
    return mended


def _rewritten(
    emptied: Emptied, summarizer: Summarizer, levels: LevelPolicy
) -> Episode:
    """The episode as it reads from what it has left; above, from the episodes below it."""
    parts = [as_memory(child) for child in emptied.children] or list(emptied.originals)
    if (
        0 < len(emptied.children) < levels.minimum
    ):  # a fold carries so few up as they are
        words = SEPARATOR.join(child.content for child in emptied.children)
        summary = Summary(text=words, summarizer=VERBATIM)
    else:
        spoken = [
            _told(memory, emptied.episode.details) for memory in parts if memory.lasting
        ]
        summary = _retold(
            [memory for memory in spoken if memory.content], emptied, summarizer
        )
    # A day, a week or a month names a session or source only where all below it have the same.
    sessions = {memory.session for memory in parts}
    sources = {memory.source for memory in parts}
    return replace(
        emptied.episode,
        session=sessions.pop() if len(sessions) == 1 else "",
        source=sources.pop() if len(sources) == 1 else None,
        content=summary.text,
        summarizer=summary.summarizer,
        item_count=sum(child.item_count for child in emptied.children) or len(parts),
        covers_from=min(memory.created_at for memory in parts),
        covers_until=max(
            [child.covers_until for child in emptied.children]
            or [memory.created_at for memory in parts]
        ),
    )


def _retold(
    memories: Sequence[MemoryRecord], emptied: Emptied, summarizer: Summarizer
) -> Summary:
    """A summary by rule. Forgetting must not fail for want of one: else it is word for word."""
    if not memories:
        pruned = any(original.pruned_at for original in emptied.originals)
        return Summary(text=WORDLESS if pruned else UNSPOKEN, summarizer=VERBATIM)
    readable, _ = without_secrets(memories, known=emptied.episode.details)
    words = Summary(
        text="\n".join(memory.content for memory in readable), summarizer=VERBATIM
    )
    try:
        asked = at_once(readable, summarizer) if emptied.children else readable
        summary = summarizer.summarize(asked)
    except SummarizerFailed:
        return words
    return summary if summary.text.strip() else words


def _told(memory: MemoryRecord, details: Sequence[Detail]) -> MemoryRecord:
    """A pruned memory speaks by the exact values that are left of it."""
    if memory.content:
        return memory
    values = (
        one.value for one in details if one.memory == memory.id and not one.sensitive
    )
    return replace(memory, content="; ".join(values))
