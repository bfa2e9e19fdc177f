"""Records of a framework kept as memories: a text to be found, and the exact value next to it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from mnemosyned.adapters.steps import Steps
from mnemosyned.domain.errors import InvalidRequest, NotFound
from mnemosyned.domain.preview_line import PreviewLine
from mnemosyned.verbs.memories import METADATA_BYTES_MAX, Get, Got, Remember
from mnemosyned.verbs.retention import Forget, Forgotten

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
