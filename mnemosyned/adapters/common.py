"""Shared parts of the adapters: steps for blocking and async callers, records, memory sections."""

from __future__ import annotations

import json
from collections.abc import Generator, Mapping, Sequence
from typing import Any, TypeVar

from mnemosyned.errors import InvalidRequest, MnemosynedError, NotFound
from mnemosyned.memory.values import PreviewLine
from mnemosyned.verbs.conversation import Assembled, Context
from mnemosyned.verbs.facade import AsyncCaller, Caller
from mnemosyned.verbs.memories import (
    BATCH_MAX,
    METADATA_BYTES_MAX,
    Get,
    Got,
    Remember,
    RememberMany,
)
from mnemosyned.verbs.request import Request
from mnemosyned.verbs.retention import Forget, Forgotten

R = TypeVar("R")

Steps = Generator[Request[Any], Any, R]
"""Yields requests, is sent their results or thrown their errors, and returns an `R`."""


def run_steps(steps: Steps[R], caller: Caller) -> R:
    """Run steps one after the other."""
    outcome: object = None
    while True:  # ends with the steps
        try:
            request = _resume_steps(steps, outcome)
        except StopIteration as end:
            result: R = end.value
            return result
        try:
            outcome = caller.call(request)
        except MnemosynedError as error:
            outcome = error


async def run_steps_async(steps: Steps[R], caller: AsyncCaller) -> R:
    """Run steps one after the other, without blocking the event loop."""
    outcome: object = None
    while True:  # ends with the steps
        try:
            request = _resume_steps(steps, outcome)
        except StopIteration as end:
            result: R = end.value
            return result
        try:
            outcome = await caller.call(request)
        except MnemosynedError as error:
            outcome = error


def _resume_steps(steps: Steps[Any], outcome: object) -> Request[Any]:
    """Send the result or the error of the last request; return the next request."""
    if isinstance(outcome, MnemosynedError):
        return steps.throw(outcome)
    return steps.send(outcome)


async def remember_all(caller: AsyncCaller, memories: Sequence[Remember]) -> None:
    """Store memories, all or none of each `BATCH_MAX`."""
    for begin in range(0, len(memories), BATCH_MAX):
        batch = list(memories[begin : begin + BATCH_MAX])
        await caller.call(RememberMany(batch))


VALUE = "value"
"""The metadata key of the record."""
IN_CONTENT = "value_in_content"
"""The metadata key of a record that is in the content, as JSON: it is too large for metadata."""
ENVELOPE_BYTES = 100
"""Bytes of metadata around a value, with a margin."""
PAGES_MAX = 20
"""Pages of a listing, of 10,000 memories each."""


def make_record(text: str, value: Mapping[str, Any], **fields: Any) -> Remember:  # noqa: ANN401
    """Make the memory of a record; a small record is found by `text`, a large one by its JSON."""
    try:
        written = json.dumps(value, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise InvalidRequest(f"the value cannot be written as JSON: {error}") from error
    if len(written.encode(errors="replace")) > METADATA_BYTES_MAX - ENVELOPE_BYTES:
        return Remember(written, metadata={IN_CONTENT: True}, **fields)
    return Remember(text, metadata={VALUE: value}, **fields)


def list_records(
    *,
    session: str | Sequence[str] | None = None,
    source: str | Sequence[str] | None = None,
) -> Steps[list[PreviewLine]]:
    """List memories by session and source, oldest first, by the preview of a forget.

    Ids made by a client sort by their time.
    """
    lines: list[PreviewLine] = []
    after: str | None = None
    for _ in range(PAGES_MAX):
        page: Forgotten = yield Forget(
            session=_as_list(session),
            source=_as_list(source),
            dry_run=True,
            after=after,
        )
        lines += page.lines
        if not page.further:
            return sorted(lines, key=lambda line: line.id)
        after = page.lines[-1].id
    raise InvalidRequest(f"there are more than {len(lines):,} records; request fewer")


def _as_list(given: str | Sequence[str] | None) -> str | list[str] | None:
    return given if given is None or isinstance(given, str) else list(given)


def value_of(id: str) -> Steps[Any]:
    """Read the exact value of a record; None if it was forgotten or pruned."""
    try:
        got: Got = yield Get(id, reveal=True)
    except NotFound:
        return None
    memory = got.memory
    if memory is None or memory.pruned_at:
        return None
    if memory.metadata.get(IN_CONTENT):
        return json.loads(memory.content)
    return memory.metadata.get(VALUE)


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
    """Return memories and learnings under their headings; empty if none matters to the message.

    Texts `before` the message, given with their roles, are not shown again.
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
