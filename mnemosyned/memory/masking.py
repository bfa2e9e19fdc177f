"""Masks the secrets of whole memories and episodes; the rule for secrets in memories to be stored."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import chain
from typing import Literal

from mnemosyned.errors import SecretRefused
from mnemosyned.memory.values import Episode, MemoryRecord
from mnemosyned.text.details import Detail
from mnemosyned.text.exact_values import extract_details
from mnemosyned.text.secrets import masking

SecretRule = Literal["keep", "mask", "refuse"]
"""The treatment of secrets in a memory to be stored."""


def mask_memory(
    memory: MemoryRecord, known: masking.KnownSecrets | None = None
) -> MemoryRecord:
    """Return the memory with secrets in content and metadata masked; `known` are further secrets."""
    content = (
        known.mask(memory.content) if known else masking.mask_secrets(memory.content)
    )
    metadata = (
        masking.mask_metadata(memory.metadata) if memory.metadata else memory.metadata
    )
    if content == memory.content and metadata == memory.metadata:
        return memory
    return replace(memory, content=content, metadata=metadata)


def mask_together(memories: Sequence[MemoryRecord]) -> list[MemoryRecord]:
    """Return the memories with secrets masked; a secret found in one memory is masked in all."""
    masked = [mask_memory(memory) for memory in memories]
    secrets = [
        masking.extract_secrets(memory.content)
        for memory, shown in zip(memories, masked, strict=True)
        if shown is not memory
    ]
    if not any(secrets):
        return masked
    known = masking.KnownSecrets(chain.from_iterable(secrets))
    return [mask_memory(memory, known) for memory in memories]


def apply_secret_rule(
    memory: MemoryRecord, rule: SecretRule, *, place: str = ""
) -> tuple[MemoryRecord, Literal["", "kept", "masked"]]:
    """Return the memory to store under the rule, and "kept" or "masked", or "" if it has no secrets.

    Raises `SecretRefused`, which names the kind of secret and its field, never its value.
    """
    masked = mask_memory(memory)
    if masked is memory:
        return memory, ""
    if rule == "keep":
        return memory, "kept"
    if rule == "mask":
        return masked, "masked"
    field, kind = "metadata", ""
    if secrets := masking.find_secrets(memory.content):
        field, kind = "content", f" ({secrets[0].kind.value})"
    raise SecretRefused(
        f"{place}{field} contains a secret{kind}, which the setting `secrets` refuses; "
        "take it out, or set `secrets` to mask or keep",
        field=place + field,
    )


def mask_memories(
    memories: Sequence[MemoryRecord], *, known: Iterable[Detail] = ()
) -> tuple[list[MemoryRecord], tuple[Detail, ...]]:
    """Return the memories with secrets in their texts masked, and all exact values, unmasked.

    The memories are for a summarizer, which names speakers by their roles: a person's role in a group's memory
    is the member's name. A secret of one memory, or in `known`, is masked in all of them, and marked as
    sensitive.
    """
    memories = [
        memory
        if memory.member is None or memory.role == "assistant"
        else replace(memory, role=str(memory.member))
        for memory in memories
    ]
    per_memory = [
        extract_details(memory.content, memory=memory.id) for memory in memories
    ]
    together = tuple(chain.from_iterable(per_memory))
    secret = [detail for detail in (*together, *known) if detail.sensitive]
    if not secret:
        return list(memories), together
    known_secrets = masking.KnownSecrets(secret)
    masked = [
        replace(memory, content=known_secrets.mask(memory.content))
        for memory in memories
    ]
    return masked, tuple(map(known_secrets.mark, together))


def mask_episode(episode: Episode) -> Episode:
    """Return the episode with sensitive details masked; its text was made without secrets."""
    if not any(detail.sensitive for detail in episode.details):
        return episode
    known_secrets = masking.KnownSecrets(episode.details)
    details = tuple(
        replace(detail, value=known_secrets.mask(detail.value))
        if detail.sensitive
        else detail
        for detail in episode.details
    )
    return replace(episode, details=details)


def without_superseded(episode: Episode) -> Episode:
    """Return the episode without the exact values that come from superseded memories."""
    details = tuple(detail for detail in episode.details if not detail.superseded)
    if len(details) == len(episode.details):
        return episode
    return replace(episode, details=details)
