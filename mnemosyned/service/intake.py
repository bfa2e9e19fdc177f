"""Validation of new memories, their drafts, and work done in several short transactions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, TypeVar

import msgspec

from mnemosyned import errors, ids, instants
from mnemosyned.config.settings import Config
from mnemosyned.conversation.learnings import recognize
from mnemosyned.memory.edit import MemoryEdit
from mnemosyned.memory.masking import SecretRule, apply_secret_rule
from mnemosyned.memory.ports import Draft
from mnemosyned.memory.values import (
    MEMBER_FIELD,
    ROW_FIELDS,
    Learning,
    MemoryRecord,
    tag_names,
)
from mnemosyned.text.secrets.masking import mask_secrets
from mnemosyned.verbs.memories import METADATA_BYTES_MAX, Remember
from mnemosyned.verbs.request import Instant, instant, to_utc

MEMBER: ContextVar[tuple[int, str]] = ContextVar("member", default=(0, ""))
"""The group whose memory this thread's request is about, or 0, and the name of the owner who sent it."""
_GIVEN = tuple(
    field.name for field in ROW_FIELDS if field.name not in ("id", "created_at")
)
"""Fields of a memory as a request gives them."""
CLOCK_TOLERANCE = timedelta(minutes=1)
"""Difference by which another clock may be ahead before its time counts as the future."""


def make_draft(
    request: Remember, config: Config, *, now: datetime, place: str = ""
) -> Draft:
    """Return the draft of a new memory that a request describes, to be stored at `now`.

    Raises `EmptyContent`, `ContentTooLarge`, `InvalidText`, `InvalidTime` or `SecretRefused`, which
    name the field, with `place` (such as "memories[3].") before it.
    """
    _check_content(request.content, config, field=place + "content")
    if request.metadata:
        check_metadata(request.metadata, field=place + "metadata")
    memory = MemoryRecord(
        **{name: getattr(request, name) for name in _GIVEN},
        id=request.id or ids.new_id(now),
        created_at=check_created_at(request.created_at, now, field=place + "created_at")
        if request.created_at
        else now,
        valid_until=to_utc(request.valid_until, field=place + "valid_until")
        if request.valid_until
        else None,
        tags=tag_names(request.tags, field=place + "tags") if request.tags else (),
    )
    memory, done = apply_secret_rule(memory, config.secrets, place=place)
    return Draft(
        memory,
        dedupe=request.dedupe,
        secrets=done,
        supersedes=request.supersedes,
        learnings=_recognize_learnings(memory, config, now, secrets=done),
        has_new_id=not request.id,
    )


def name_member(draft: Draft, member: str) -> Draft:
    """Return the draft of a group's memory with the name of the member who wrote it in the metadata."""
    metadata = {**draft.memory.metadata, MEMBER_FIELD: member}
    return replace(draft, memory=replace(draft.memory, metadata=metadata))


def make_compacted_draft(
    memory: MemoryRecord, config: Config, *, now: datetime
) -> Draft:
    """Return the draft of a message that a compaction removed, in a group with the member's name.

    Secrets are masked unless the settings keep them.
    """
    rule: SecretRule = "keep" if config.secrets == "keep" else "mask"
    memory, done = apply_secret_rule(memory, rule)
    learnings = _recognize_learnings(memory, config, now, secrets=done)
    draft = Draft(memory, secrets=done, learnings=learnings)
    group, member = MEMBER.get()
    return name_member(draft, member) if group else draft


def make_edit(
    before: MemoryRecord, after: MemoryRecord, config: Config, *, now: datetime
) -> tuple[MemoryEdit, str]:
    """Return the edit from `before` to `after`, and how secrets in a new text are treated.

    The treatment is "kept", "masked", or empty without secrets. Raises `EmptyContent`,
    `ContentTooLarge` and `SecretRefused`.
    """
    secrets = ""
    if after.content != before.content:
        _check_content(after.content, config, field="text")
        after, secrets = apply_secret_rule(after, config.secrets)
    edit = MemoryEdit(before=before, after=after)
    if not edit.is_reworded:
        return edit, secrets
    stated = {
        learning.text
        for learning in _recognize_learnings(before, config, now, secrets="kept")
    }
    learnings = _recognize_learnings(after, config, now, secrets="kept")
    texts = {learning.text for learning in learnings}
    return replace(
        edit,
        learnings=tuple(
            learning for learning in learnings if learning.text not in stated
        ),
        unstated=frozenset(stated - texts),
        states_learnings=recognize.may_state_learnings(after),
    ), secrets


def _check_content(content: str, config: Config, *, field: str) -> None:
    """Check a text's length. Raises `EmptyContent` and `ContentTooLarge`, which name `field`."""
    if not content.strip():
        raise errors.EmptyContent(
            f"there is nothing to remember: {field} is empty", field=field
        )
    size = len(content) if content.isascii() else len(content.encode())
    bytes_max = config.limits.content_bytes_max
    if size > bytes_max:
        raise errors.ContentTooLarge(
            f"{field} has {size:,} bytes, the limit is {bytes_max:,}; "
            "split it, or raise limits.content_bytes_max",
            field=field,
        )


def _recognize_learnings(
    memory: MemoryRecord, config: Config, now: datetime, *, secrets: str
) -> tuple[Learning, ...]:
    """Return the learnings stated in a memory; none if switched off. Empty `secrets` mean no secret in it."""
    if not config.learnings.recognize:
        return ()
    return recognize.extract_learnings(memory, now=now, may_have_secrets=secrets != "")


def clean_learning_text(text: str, rule: SecretRule, *, field: str) -> str:
    """Return the stored form of a learning's text: stripped, and with its secrets masked.

    Secrets are masked even if `rule` is "keep", as the text goes into every context. Raises
    `EmptyContent`, and `SecretRefused` if `rule` is "refuse" and a secret is there; both name `field`.
    """
    if not text.strip():
        raise errors.EmptyContent(
            f"there is nothing to learn: {field} is empty", field=field
        )
    kept = mask_secrets(text.strip())
    if rule == "refuse" and kept != text.strip():
        raise errors.SecretRefused(
            f"{field} contains a secret, which the setting `secrets` refuses; take it out",
            field=field,
        )
    return kept


def check_metadata(metadata: Mapping[str, Any], *, field: str) -> None:
    """Check Unicode and size of metadata. Raises `InvalidText` and `ContentTooLarge`, naming `field`."""
    try:
        size = len(msgspec.json.encode(metadata)) if metadata else 0
    except UnicodeEncodeError as error:
        raise errors.InvalidText(
            f"{field} is not valid Unicode; decode it first", field=field
        ) from error
    if size > METADATA_BYTES_MAX:
        raise errors.ContentTooLarge(
            f"metadata exceeds {METADATA_BYTES_MAX:,} bytes; put the text into content",
            field=field,
        )


def check_created_at(given: Instant, now: datetime, *, field: str) -> datetime:
    """Return a creation time in UTC. Raises `InvalidTime` if it has no zone or is after `now`."""
    created_at = instant(given)
    if created_at.tzinfo is None:
        raise errors.InvalidTime(
            f"{field} names no zone; write it as {now.isoformat(timespec='seconds')}",
            field=field,
        )
    if created_at > instants.shift(now, CLOCK_TOLERANCE):
        raise errors.InvalidTime(
            f"{field} lies in the future; a memory has already happened", field=field
        )
    return to_utc(given, field=field)


T = TypeVar("T")
R = TypeVar("R")

CHUNK = 100
"""Memories changed, or read for a preview, in one transaction; `remember` waits for no more."""


def run_in_chunks(
    values: Sequence[T],
    size: int,
    step: Callable[[Sequence[T]], R],
    *,
    report: str,
    count: Callable[[Any], int] = int,
    total: int | None = None,
) -> list[R]:
    """Call `step` with each chunk of `size` values, and return the list of results.

    If the first step fails, raise its error. If a later step fails, raise `PartlyDone`, such as "7 of
    9 memories are tagged": the 7 is the sum of `count` over the results, the 9 is `total`, by default
    the number of values, and the rest is `report`.
    """
    results: list[R] = []
    try:
        for chunk in split_into_chunks(values, size):
            result = step(chunk)
            results.append(result)
    except errors.MnemosynedError as error:
        if not results:
            raise
        reason = (
            error.reason if isinstance(error, errors.StorageFailed) else error.message
        )
        done = sum(map(count, results))
        total = len(values) if total is None else total
        raise errors.PartlyDone(
            f"{done:,} of {total:,} {report}, the others were not. Send the request again for the "
            f"others: {reason}",
            reason=reason,
        ) from error
    return results


def split_into_chunks(values: Sequence[T], size: int) -> list[Sequence[T]]:
    """Split the values into pieces of `size`; the last one may be shorter."""
    return [values[start : start + size] for start in range(0, len(values), size)]
