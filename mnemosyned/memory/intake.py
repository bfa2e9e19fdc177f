"""How memories that were stored or forgotten are known again: by hashes of texts and by ids."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from datetime import datetime

from mnemosyned.memory.capture import CAPTURED_PREFIX, IMPORTED_PREFIX

Known = tuple[str | None, datetime, int | None]
"""Content, time and content hash of the record with an id; only the time of an episode."""
_MADE = re.compile(rf"({CAPTURED_PREFIX}|{IMPORTED_PREFIX})[0-9a-f]{{32}}")


def content_hash(content: str) -> int:
    """Return the first 64 bits of the SHA-256 of a text, as a signed integer."""
    return int.from_bytes(
        hashlib.sha256(content.encode()).digest()[:8], "big", signed=True
    )


def is_made_of_source(id: str) -> bool:
    """Return whether an id was made by hashing the source of a captured or imported memory."""
    return _MADE.fullmatch(id) is not None


def keys_of_forgotten(
    id: str, session: str, source: str | None, hashes: Iterable[int]
) -> set[str]:
    """Return the keys by which a forgotten memory is recognized when its source is read again.

    The keys are its id and, if it was captured, a hash of session, source and text for each text it
    ever had: a tool may give messages other ids in a resumed conversation. `hashes` are the content
    hashes of these texts.
    """
    keys = {id}
    for words in hashes if id.startswith(CAPTURED_PREFIX) else ():
        said = "\0".join(("said", session, source or "", str(words)))
        digest = hashlib.sha256(said.encode("utf-8", "replace")).hexdigest()
        keys.add(f"said-{digest[:32]}")
    return keys
