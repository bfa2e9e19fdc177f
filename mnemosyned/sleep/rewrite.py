"""Rewrites summaries that lost a part of their sources, from what is left of them."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import TypeVar

from mnemosyned.domain.errors import BatchChanged, SummarizerFailed
from mnemosyned.domain.keeping.retention import StaleSummary
from mnemosyned.domain.memory import Detail, Episode, MemoryRecord
from mnemosyned.domain.ports.models import Summarizer, Summary
from mnemosyned.domain.ports.store import MemoryStore
from mnemosyned.domain.secrets.exact_values import mask_memories
from mnemosyned.domain.sleep.consolidation import BY_RULE, UNSPOKEN, VERBATIM, WORDLESS
from mnemosyned.domain.sleep.rollup import Level
from mnemosyned.logs import logger
from mnemosyned.sleep.lease import SummarizerLease
from mnemosyned.sleep.policy import RollupPolicy
from mnemosyned.sleep.rollup import compose

REWRITTEN_MAX = 1_000_000
TRIES_MAX = 1_000
"""How often in all a summary may change while it is being rewritten."""

T = TypeVar("T")

log = logger()


def rewrite_stale(
    store: MemoryStore,
    lease: SummarizerLease,
    *,
    policy: RollupPolicy,
    exclusive: AbstractContextManager[object],
    highest: Level = Level.MONTH,
) -> int:
    """Rewrite every stale summary up to a level, the lowest first, and return how many.

    One at a time, which `exclusive` ensures, so that a summary is read only after those below it
    are rewritten. No model is asked, because callers wait.
    """
    tries_left = TRIES_MAX
    rewritten = 0
    with exclusive:
        while rewritten < REWRITTEN_MAX:
            stale = store.rollups.next_stale(highest=highest)
            if stale is None:
                break
            try:
                episode, index_terms = _rewritten(
                    stale, lease.rule_based, policy, store
                )
                store.rollups.rewrite(stale.token, episode, index_terms=index_terms)
            except BatchChanged:  # it lost more of its sources: read it again
                tries_left -= 1
                if not tries_left:
                    raise
            else:
                rewritten += 1
    if rewritten:
        log.info("summaries_rewritten", count=rewritten)
    return rewritten


def _rewritten(
    stale: StaleSummary,
    summarizer: Summarizer,
    policy: RollupPolicy,
    store: MemoryStore,
) -> tuple[Episode, str]:
    """Return the summary as it reads after the loss, and its index terms."""
    if stale.children:
        return _rewritten_rollup(stale, policy, store)
    return _rewritten_episode(stale, summarizer)


def _rewritten_rollup(
    stale: StaleSummary, policy: RollupPolicy, store: MemoryStore
) -> tuple[Episode, str]:
    """Return a day, week or month composed anew from the summaries below it."""
    children = stale.children
    terms = store.rollups.index_terms([child.id for child in children])
    rolled_up = compose(
        children, terms, Level(stale.episode.level), minimum=policy.minimum
    )
    sessions = {child.session for child in children}
    sources = {child.source for child in children}
    episode = replace(
        stale.episode,
        content=rolled_up.text or UNSPOKEN,
        summarizer=BY_RULE,
        session=_only(sessions) or "",
        source=_only(sources),
        item_count=sum(child.item_count for child in children) or len(children),
        covers_from=min(child.covers_from for child in children),
        covers_until=max(child.covers_until for child in children),
    )
    return episode, rolled_up.index_terms


def _only(values: set[T]) -> T | None:
    """Return the value that all have, or None where they differ."""
    return next(iter(values)) if len(values) == 1 else None


def _rewritten_episode(
    stale: StaleSummary, summarizer: Summarizer
) -> tuple[Episode, str]:
    """Return an episode rewritten from the originals that are left of it."""
    originals = stale.originals
    summary = _summarize(_speaking(originals, stale), stale, summarizer)
    episode = replace(
        _with_summary(stale.episode, originals, summary),
        item_count=len(originals),
        covers_until=max(memory.created_at for memory in originals),
    )
    return episode, summary.index_terms


def _with_summary(
    episode: Episode, parts: Sequence[MemoryRecord], summary: Summary
) -> Episode:
    """Return the episode with another text; of one session or source only if all parts are."""
    sessions = {memory.session for memory in parts}
    sources = {memory.source for memory in parts}
    return replace(
        episode,
        session=_only(sessions) or "",
        source=_only(sources),
        content=summary.text,
        summarizer=summary.summarizer,
        covers_from=min(memory.created_at for memory in parts),
    )


def _speaking(parts: Sequence[MemoryRecord], stale: StaleSummary) -> list[MemoryRecord]:
    """Return the parts that a summary may cover and that have any text left."""
    details = stale.episode.details
    readable = [_with_values(memory, details) for memory in parts if memory.lasting]
    return [memory for memory in readable if memory.content]


def _summarize(
    memories: Sequence[MemoryRecord], stale: StaleSummary, summarizer: Summarizer
) -> Summary:
    """Return a summary by rule; word for word if that fails, because forgetting must not."""
    if not memories:
        pruned = any(original.pruned_at for original in stale.originals)
        return Summary(text=WORDLESS if pruned else UNSPOKEN, summarizer=VERBATIM)
    readable, _ = mask_memories(memories, known=stale.episode.details)
    text = "\n".join(memory.content for memory in readable)
    verbatim = Summary(text=text, summarizer=VERBATIM)
    try:
        summary = summarizer.summarize(readable)
    except SummarizerFailed:
        return verbatim
    return summary if summary.text.strip() else verbatim


def _with_values(memory: MemoryRecord, details: Sequence[Detail]) -> MemoryRecord:
    """Return a pruned memory with the exact values that are left of it as its text."""
    if memory.content:
        return memory
    values = (
        detail.value
        for detail in details
        if detail.memory == memory.id and not detail.sensitive
    )
    return replace(memory, content="; ".join(values))
