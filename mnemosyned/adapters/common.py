"""Shared parts of the adapters: steps for blocking and async callers, records, memory sections."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Generator, Mapping, Sequence
from typing import Any, TypeVar

from mnemosyned.errors import InvalidRequest, MnemosynedError, NotFound
from mnemosyned.memory.values import PreviewLine
from mnemosyned.verbs import conversation, memories as verbs, retention
from mnemosyned.verbs.facade import AsyncCaller, Caller
from mnemosyned.verbs.request import Request

R = TypeVar("R")
T = TypeVar("T")

Steps = Generator[Request[Any], Any, R]
"""Generator of requests: it gets each result or error back, and returns an `R` at its end."""


async def run_steps_async(steps: Steps[R], caller: AsyncCaller) -> R:
    """Call each request that the generator `steps` yields, send it the result or error; return its value."""
    resume: Callable[[Any], Request[Any]] = steps.send
    outcome: Any = None
    while True:  # ends with the steps
        try:
            request = resume(outcome)
        except StopIteration as end:
            result: R = end.value
            return result
        try:
            resume, outcome = steps.send, await caller.call(request)
        except MnemosynedError as error:
            resume, outcome = steps.throw, error


def run_steps(steps: Steps[R], caller: Caller) -> R:
    """Run steps as `run_steps_async` does, with a blocking caller."""

    class Blocking(AsyncCaller):
        """A caller whose calls never suspend: one step of the coroutine ends the coroutine."""

        async def call(self, request: Request[T]) -> T:
            """Return the result of a request by the blocking caller."""
            return caller.call(request)

    try:
        run_steps_async(steps, Blocking()).send(None)
    except StopIteration as end:
        result: R = end.value
        return result
    raise AssertionError("a blocking call was suspended")


async def remember_all(caller: AsyncCaller, memories: Sequence[verbs.Remember]) -> None:
    """Store memories in batches, each whole or not at all. Stops at the first error, and raises it."""
    for begin in range(0, len(memories), verbs.BATCH_MAX):
        batch = list(memories[begin : begin + verbs.BATCH_MAX])
        await caller.call(verbs.RememberMany(batch))


_UNSTORABLE = re.compile("[\0\ud800-\udfff]")


PART_CHARS = 1 << 18
"""Characters of a part of a long text: in UTF-8 at most the usual limit of a memory, 1 MiB."""


def split_storable(text: str) -> list[str]:
    """Return a text as storable parts, of which each fits in a memory; blank parts are left out.

    NUL and halves of surrogate pairs, as of a cut emoji, become U+FFFD.
    """
    whole = _UNSTORABLE.sub("\N{REPLACEMENT CHARACTER}", text)
    begins = range(0, len(whole), PART_CHARS)
    parts = [whole[begin : begin + PART_CHARS] for begin in begins]
    return [part for part in parts if part.strip()]


VALUE = "value"
"""The metadata key of the record."""
IN_CONTENT = "value_in_content"
"""The metadata key of a record that is in the content, as JSON: it is too large for metadata."""
ENVELOPE_BYTES = 100
"""Bytes of metadata around a value, with a margin."""
_HALF = re.compile("[\ud800-\udfff]")
"""Half of a character, as of an emoji that was cut."""
PAGES_MAX = 20
"""Pages of a listing, of 10,000 memories each."""


def make_record_memory(
    text: str,
    value: Mapping[str, Any],
    **fields: Any,  # noqa: ANN401 fields of the request
) -> verbs.Remember:
    """Return a memory that contains the JSON object `value`, which `read_record_value` reads again.

    Its content is `text`; or the JSON itself, if that is too large for metadata or needs escapes to be
    stored. Raises `InvalidRequest` for a value that is no JSON.
    """
    try:
        written = json.dumps(value, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise InvalidRequest(f"the value cannot be written as JSON: {error}") from error
    encoded = written.encode(errors="replace")
    is_cut = encoded.decode() != written  # inside a character
    if is_cut:
        written = _HALF.sub(lambda half: rf"\u{ord(half[0]):04x}", written)
    # NUL and half a character can be stored as their escapes in JSON.
    is_escaped = is_cut or r"\u0000" in written
    if is_escaped or len(encoded) > verbs.METADATA_BYTES_MAX - ENVELOPE_BYTES:
        return verbs.Remember(written, metadata={IN_CONTENT: True}, **fields)
    return verbs.Remember(text, metadata={VALUE: value}, **fields)


def list_records(
    *,
    session: str | None = None,
    source: str | list[str] | None = None,
) -> Steps[list[PreviewLine]]:
    """Return steps that list the memories of a session and of sources, or of any if None, oldest first.

    They use the preview of `Forget`. Raises `InvalidRequest` beyond `PAGES_MAX` pages.
    """
    lines: list[PreviewLine] = []
    after: str | None = None
    for _ in range(PAGES_MAX):
        page: retention.Forgotten = yield retention.Forget(
            session=session, source=source, dry_run=True, after=after
        )
        lines += page.lines
        if not page.further:
            return sorted(lines, key=lambda line: line.id)
        after = page.lines[-1].id
    raise InvalidRequest(f"there are more than {len(lines):,} records; request fewer")


def read_record_value(id: str) -> Steps[Any]:
    """Return steps that read the JSON object in a memory; None if the memory is missing or pruned."""
    try:
        got: verbs.Got = yield verbs.Get(id, reveal=True)
    except NotFound:
        return None
    memory = got.memory
    if memory is None or memory.pruned_at:
        return None
    if memory.metadata.get(IN_CONTENT):
        return json.loads(memory.content)
    return memory.metadata.get(VALUE)


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
    """Return memories and learnings relevant to a message's end, as text of about `tokens` tokens.

    Texts in `before`, pairs of role and text, are not repeated.
    """
    share = tokens / WINDOW_TOKENS
    assembled: conversation.Assembled = await caller.call(
        conversation.Context(
            message[-4_000:],
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
