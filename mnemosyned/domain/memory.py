"""The values that memory is made of: memories, episodes and where they are kept."""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, Literal

DEFAULT_SESSION = "default"
CROCKFORD = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_PAIRS = [first + second for first in CROCKFORD for second in CROCKFORD]
"""Ten bits each: half as many steps to write an id."""


class Tier(StrEnum):
    """Where a memory is kept."""

    WORKING = "working"
    EPISODIC = "episodic"
    ARCHIVE = "archive"


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """One thing remembered, word for word, in the working tier or the archive."""

    id: str
    content: str
    created_at: datetime
    """When it happened, as an aware UTC instant."""
    session: str = DEFAULT_SESSION
    source: str | None = None
    role: str = ""
    importance: float = 0.5
    pinned: bool = False
    metadata: Mapping[str, Any] = field(default_factory=dict)
    tier: Tier = Tier.WORKING
    episode: str | None = None
    """The episode it went into, once it has left the working tier."""


class DetailKind(StrEnum):
    """What an exact value is; the second half are secrets."""

    DATE = "date"
    TIME = "time"
    DURATION = "duration"
    MONEY = "money"
    NUMBER = "number"
    EMAIL = "email"
    URL = "url"
    PATH = "path"
    VERSION = "version"
    HASH = "hash"
    IDENTIFIER = "identifier"

    PASSWORD = "password"  # noqa: S105 a name, not a value
    PRIVATE_KEY = "private_key"
    AWS_KEY = "aws_key"
    GITHUB_TOKEN = "github_token"  # noqa: S105 a name, not a value
    GITLAB_TOKEN = "gitlab_token"  # noqa: S105 a name, not a value
    SLACK_TOKEN = "slack_token"  # noqa: S105 a name, not a value
    JWT = "jwt"
    API_KEY = "api_key"
    TOKEN = "token"  # noqa: S105 a name, not a value


@dataclass(frozen=True, slots=True)
class Detail:
    """An exact value, word for word as a memory has it."""

    kind: DetailKind
    value: str
    sensitive: bool = False
    """A secret, or a value with a secret inside, such as a URL with a password."""
    memory: str = ""
    """The id of the memory it stands in."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Episode:
    """A summary with its provenance."""

    id: str
    content: str
    created_at: datetime
    session: str
    source: str | None
    level: int
    """0 episode, 1 day, 2 week, 3 month."""
    item_count: int
    covers_from: datetime
    covers_until: datetime
    summarizer: str
    summary_of: tuple[str, ...] = ()
    """Ids of the originals, oldest first."""
    parent: str | None = None
    tier: Tier = Tier.EPISODIC
    details: tuple[Detail, ...] = ()
    """The exact values of its originals, oldest original first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Acknowledged:
    """The answer to one memory handed in: it is on disk."""

    id: str
    created_at: datetime
    stored: bool
    """False where the memory was already known: the same id again, or `dedupe` found its text."""
    secrets: Literal["", "kept", "masked"] = ""
    """What became of the secrets in it, where it has some."""


@dataclass(frozen=True, slots=True)
class TierTotals:
    """How much a tier holds."""

    count: int
    characters: int
    oldest: datetime | None


def content_hash(content: str) -> int:
    """The first 64 bits of SHA-256 as a signed integer, to find what was said before.

    Whoever finds a match compares the contents themselves.
    """
    return int.from_bytes(hashlib.sha256(content.encode()).digest()[:8], "big", signed=True)


class IdFactory:
    """Makes ULIDs: 48 bits of milliseconds, 80 random bits, ascending within a process.

    Source: the ULID specification, https://github.com/ulid/spec.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._last = 0

    def __call__(self, moment: datetime) -> str:
        """A new id that sorts after all earlier ids of this factory."""
        fresh = int(moment.timestamp() * 1000) << 80 | int.from_bytes(os.urandom(10), "big")
        with self._lock:
            self._last = value = max(fresh, self._last + 1)
        return "".join([_PAIRS[value >> shift & 1023] for shift in range(120, -1, -10)])


new_id = IdFactory()
