"""What a text, a time and metadata must be to be let in."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from mnemosyned.domain.errors import (
    ContentTooLarge,
    EmptyContent,
    InvalidText,
    InvalidTime,
    SecretRefused,
)
from mnemosyned.domain.sensitive import SecretRule, masked
from mnemosyned.verbs import METADATA_BYTES_MAX

CLOCK_TOLERANCE = timedelta(minutes=1)
"""How far ahead of ours another clock may be before its time counts as the future."""


def check_text(text: str | None, *, field: str) -> None:
    """Hold a text to Unicode without NUL. Raises `InvalidText`."""
    if text is None:
        return
    if "\0" in text:
        raise InvalidText(f"{field} holds a NUL character; remove it", field=field)
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise InvalidText(
            f"{field} is not valid Unicode at character {error.start}; decode it first", field=field
        ) from error


def lesson(text: str, rule: SecretRule, *, field: str) -> str:
    """A learning's words as they are kept, never with a secret, as they go into every context.

    Raises `InvalidText`, `EmptyContent` and `SecretRefused`.
    """
    check_text(text, field=field)
    if not text.strip():
        raise EmptyContent(f"there is nothing to learn: {field} is empty", field=field)
    kept = masked(text.strip())
    if rule is SecretRule.REFUSE and kept != text.strip():
        raise SecretRefused(
            f"{field} holds a secret, which the setting `secrets` refuses; take it out", field=field
        )
    return kept


def check_metadata(metadata: Mapping[str, Any], *, field: str) -> None:
    """Hold metadata to Unicode and its size. Raises `InvalidText` and `ContentTooLarge`."""
    try:
        size = len(msgspec.json.encode(metadata)) if metadata else 0
    except UnicodeEncodeError as error:
        raise InvalidText(f"{field} is not valid Unicode; decode it first", field=field) from error
    if size > METADATA_BYTES_MAX:
        raise ContentTooLarge(
            f"metadata exceeds {METADATA_BYTES_MAX:,} bytes; put the text into content", field=field
        )


def happened(created_at: datetime | None, now: datetime, *, field: str) -> datetime:
    """When it happened, in UTC; now where nothing is said. Raises `InvalidTime`."""
    if created_at is None:
        return now
    if created_at.tzinfo is None:
        raise InvalidTime(
            f"{field} names no zone; write it as {now.isoformat(timespec='seconds')}", field=field
        )
    if created_at > now + CLOCK_TOLERANCE:
        raise InvalidTime(f"{field} lies in the future; a memory has already happened", field=field)
    return utc(created_at, field=field)


def utc(moment: datetime, *, field: str) -> datetime:
    """The same instant in UTC. Raises `InvalidTime` for one outside the calendar."""
    try:
        return moment.astimezone(UTC)
    except OverflowError as error:
        raise InvalidTime(f"{field} lies outside the calendar", field=field) from error
