"""What the adapters share: calls without a daemon, records in metadata, context windows."""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Mapping, Sequence
from typing import Any, TypeVar

from mnemosyned.errors import InvalidRequest, MnemosynedError, NotFound
from mnemosyned.memory.values import PreviewLine
from mnemosyned.verbs.conversation import Assembled, Context
from mnemosyned.verbs.facade import AsyncCaller, Caller
from mnemosyned.verbs.memories import METADATA_BYTES_MAX, Get, Got, Remember
from mnemosyned.verbs.request import Request
from mnemosyned.verbs.retention import Forget, Forgotten

R = TypeVar("R")

Steps = Generator[Request[Any], Any, R]
"""Yields requests, is sent their results or thrown their errors, and returns an `R`."""


def run(steps: Steps[R], caller: Caller) -> R:
    """Take the steps one after the other."""
    proceed: Callable[[], Request[Any]] = steps.__next__
    while True:  # ends with the steps
        try:
            request = proceed()
        except StopIteration as end:
            result: R = end.value
            return result
        try:
            proceed = _sending(steps, caller.call(request))
        except MnemosynedError as error:
            proceed = _throwing(steps, error)


async def run_async(steps: Steps[R], caller: AsyncCaller) -> R:
    """Take the steps one after the other, without blocking the event loop."""
    proceed: Callable[[], Request[Any]] = steps.__next__
    while True:  # ends with the steps
        try:
            request = proceed()
        except StopIteration as end:
            result: R = end.value
            return result
        try:
            proceed = _sending(steps, await caller.call(request))
        except MnemosynedError as error:
            proceed = _throwing(steps, error)


def _sending(steps: Steps[Any], result: object) -> Callable[[], Request[Any]]:
    return lambda: steps.send(result)


def _throwing(steps: Steps[Any], error: MnemosynedError) -> Callable[[], Request[Any]]:
    return lambda: steps.throw(error)


VALUE = "value"
"""The key of a memory's metadata that holds the record."""
IN_CONTENT = "value_in_content"
"""The key that says that the content is the record, as JSON: it is too large for metadata."""
ENVELOPE_BYTES = 100
"""Bytes of metadata around a value, with a margin."""
PAGES_MAX = 20
"""Pages of a listing, of 10,000 memories each."""


def keep(text: str, value: Mapping[str, Any], **fields: Any) -> Remember:  # noqa: ANN401
    """Make a memory that is found by its text, or by all of its words where the value is large."""
    try:
        written = json.dumps(value, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise InvalidRequest(f"the value cannot be written as JSON: {error}") from error
    if len(written.encode(errors="replace")) > METADATA_BYTES_MAX - ENVELOPE_BYTES:
        return Remember(written, metadata={IN_CONTENT: True}, **fields)
    return Remember(text, metadata={VALUE: value}, **fields)


def listed(
    *,
    session: str | Sequence[str] | None = None,
    source: str | Sequence[str] | None = None,
) -> Steps[list[PreviewLine]]:
    """List memories by session and source, oldest first: the preview of forgetting them.

    Ids made by a client sort by their time.
    """
    lines: list[PreviewLine] = []
    after: str | None = None
    for _ in range(PAGES_MAX):
        page: Forgotten = yield Forget(
            session=_names(session), source=_names(source), dry_run=True, after=after
        )
        lines += page.lines
        if not page.further:
            return sorted(lines, key=lambda line: line.id)
        after = page.lines[-1].id
    raise InvalidRequest(f"there are more than {len(lines):,} records; request fewer")


def _names(given: str | Sequence[str] | None) -> str | list[str] | None:
    return given if given is None or isinstance(given, str) else list(given)


def value_of(id: str) -> Steps[Any]:
    """The exact value of a record; None where it was forgotten, or its words were pruned."""
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
