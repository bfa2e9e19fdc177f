"""Owners by their tokens, as a daemon for many owners knows them: looked up, and kept for a moment."""

from __future__ import annotations

import hashlib
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from mnemosyned.domain.ports.servers.owners import OwnerStore, TokenHolder, owner_of

KEPT_S = 1.0
"""A token that was revoked is refused so long after, at the latest."""
KEPT_MAX = 10_000
UNKNOWN_MAX = 1_000
"""Of those that are none: they take no place from tokens, however many are tried."""


class OwnerTokens:
    """The form of owners' tokens: whose one is, a thread that answers looks up."""

    file: Path | None = None
    advice = "send a token of an owner: Authorization: Bearer mnt_…"

    def may_be(self, token: str) -> bool:
        """Whether a text has the form of a token."""
        return owner_of(token) is not None


class _Kept(NamedTuple):
    holder: TokenHolder | None
    until: float


class TokenCache:
    """Holders of tokens, by the SHA-256 of each; the database is asked once a second."""

    def __init__(
        self, owners: OwnerStore, *, now: Callable[[], float] = time.monotonic
    ) -> None:
        self._owners = owners
        self._now = now
        self._lock = threading.Lock()
        self._known: OrderedDict[bytes, _Kept] = OrderedDict()
        self._unknown: OrderedDict[bytes, _Kept] = OrderedDict()

    def holder(self, secret: str) -> TokenHolder | None:
        """Whose a token is; None where it is none, or is valid no more. Raises `StorageFailed`."""
        digest = hashlib.sha256(secret.encode("utf-8", "surrogatepass")).digest()
        asked = self._now()
        with self._lock:
            kept = self._known.get(digest) or self._unknown.get(digest)
        if kept and asked < kept.until:
            return kept.holder
        holder = self._owners.holder(secret)
        # From when it was asked: the answer may be older than its arrival.
        self._keep(digest, _Kept(holder, asked + KEPT_S))
        return holder

    def _keep(self, digest: bytes, kept: _Kept) -> None:
        with self._lock:
            self._known.pop(digest, None)
            self._unknown.pop(digest, None)
            table = self._unknown if kept.holder is None else self._known
            table[digest] = kept
            if len(table) > (UNKNOWN_MAX if kept.holder is None else KEPT_MAX):
                table.popitem(last=False)
