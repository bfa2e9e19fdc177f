"""Values and rules of forgetting, restoring and undoing, and how a known or forgotten text is recognized."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields
from datetime import datetime, timedelta
from operator import add, or_
from typing import Any

from mnemosyned.memory.capture import CAPTURED_PREFIX, IMPORTED_PREFIX
from mnemosyned.memory.consolidation import GroupReport, GroupStatus, LogEntry
from mnemosyned.memory.values import Episode, MemoryFilter, MemoryRecord
from mnemosyned.text.sentences import WORD_END, WORD_START
from mnemosyned.text.terms import Terms, fold_case, has_unspaced_script


@dataclass(frozen=True, slots=True)
class Grace:
    """Until when a call's forgotten memories can be restored."""

    call: str
    """The id of the call."""
    final_at: datetime


@dataclass(frozen=True, slots=True)
class Newest:
    """Row numbers of the newest memory and the newest learning."""

    memory: int
    learning: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ForgetFilter(MemoryFilter):
    """Filter of memories to forget; all given conditions must apply."""

    terms: Terms | None = None
    """They have all of these words."""
    newest: Newest | None = None
    """They were there at this point."""
    person: str | None = None
    """They mention this name anywhere, or are spoken by it."""


def name_matcher(name: str) -> Callable[[str], bool]:
    """Return a function that returns True for a text that mentions a name.

    A name matches as whole words, in any case, with accents or without, with any apostrophe. In a script
    without spaces it matches anywhere, as word borders cannot be seen.
    """

    def fold(text: str) -> str:
        return fold_case(text.casefold().translate(_PLAIN_SIGNS))

    words = [re.escape(word) for word in fold(name).split()]
    pattern = r"\s+".join(words)
    if not has_unspaced_script(name):
        pattern = f"{WORD_START}{pattern}{WORD_END}"
    found = re.compile(pattern).search
    return lambda text: found(fold(text)) is not None


_PLAIN_SIGNS = str.maketrans("’‘ʼ‐‑", "'''--", "\u00ad\u200b\u2060\ufeff")


def is_named_in(texts: Iterable[str], named: Callable[[str], bool] | None) -> bool:
    """Return whether `named` returns True for any of the texts; True if `named` is None."""
    return named is None or any(map(named, texts))


@dataclass(frozen=True, slots=True, kw_only=True)
class Removal:
    """Counts of records that a change deleted, and the summaries that it made stale."""

    working: int = 0
    archived: int = 0
    details: int = 0
    """Exact values that went with them."""
    learnings: int = 0
    pruned: int = 0
    """Memories among them whose words were pruned before."""
    in_force: frozenset[str] = frozenset()
    """Ids of older memories that hold again, as what superseded them is gone."""
    pruned_losing_summary: int = 0
    """Pruned originals that stay, but lose their summary; only counted by a preview."""
    removed: frozenset[int] = frozenset()
    """The episodes that nothing was left of, as the store knows them."""
    emptied: frozenset[int] = frozenset()
    """The episodes that are to be rewritten from what remains."""

    def __or__(self, other: Removal) -> Removal:
        """Return the sum of two removals; an episode that either one removed is not emptied."""
        both: dict[str, Any] = {
            each.name: (or_ if isinstance(each.default, frozenset) else add)(
                getattr(self, each.name), getattr(other, each.name)
            )
            for each in fields(Removal)
        }
        return Removal(**both | {"emptied": both["emptied"] - both["removed"]})


@dataclass(frozen=True, slots=True, kw_only=True)
class Retention:
    """Limits on how much of the archive keeps its text; None is no limit."""

    keep: timedelta | None = None
    """Originals older than this go."""
    characters_max: int | None = None
    """Beyond so many characters the oldest go."""

    @property
    def prunes(self) -> bool:
        """Whether the retention prunes anything: it has a limit of age or of size."""
        return self.keep is not None or self.characters_max is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class Prunable:
    """Originals whose text may be pruned under a retention, oldest first."""

    ids: tuple[str, ...] = ()
    characters: int = 0
    oldest: datetime | None = None
    newest: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StaleSummary:
    """A summary without text, and the memories or summaries to rewrite it from."""

    token: int
    """Which emptying it is; a later one has another."""
    episode: Episode
    originals: tuple[MemoryRecord, ...] = ()
    """Of an episode, oldest first."""
    children: tuple[Episode, ...] = ()
    """Of a day, a week or a month: the summaries below it, oldest first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UndoneEpisode:
    """Result of an undo for one episode."""

    episode: str
    originals: int = 0
    """Those that are left of it, with or without their words."""
    restored: int = 0
    """Originals put back into working memory."""
    pruned: int = 0
    """Originals whose words are gone; with one of them, the episode stays as it is."""
    covers: tuple[datetime, datetime] | None = None
    """When the first and the last of them happened; None where the episode is gone."""


def undone_group(
    entry: LogEntry, returned: UndoneEpisode, *, dry_run: bool
) -> GroupReport:
    """Return the report of the undo of one logged group; `returned` is the result of that undo.

    Its `error` says how many originals were pruned, or were forgotten or restored before.
    """
    status = GroupStatus.PLANNED if dry_run else GroupStatus.UNDONE
    missing = entry.items_consolidated - returned.originals
    problems = []
    if returned.pruned:
        status = GroupStatus.KEPT
        problems.append(f"the words of {_originals_text(returned.pruned)} were pruned")
    if missing:
        was = "was" if missing == 1 else "were"
        problems.append(
            f"{_originals_text(missing)} {was} forgotten or restored before"
        )
    begins, ends = returned.covers or (entry.created_at, entry.created_at)
    return GroupReport(
        session=entry.session,
        source=entry.source,
        status=status,
        items=returned.restored,
        covers_from=begins,
        covers_until=ends,
        episodes=(entry.episode,) if entry.episode else (),
        chars_before=entry.chars_before,
        error="; ".join(problems) or None,
    )


def _originals_text(count: int) -> str:
    return f"{count:,} original{'' if count == 1 else 's'}"


Known = tuple[str | None, datetime, int | None]
"""Content, time and content hash of the record with an id; only the time of an episode."""
_MADE = re.compile(rf"({CAPTURED_PREFIX}|{IMPORTED_PREFIX})[0-9a-f]{{32}}")


def content_hash(content: str) -> int:
    """Return the first 64 bits of the SHA-256 of a text, as a signed integer."""
    return int.from_bytes(
        hashlib.sha256(content.encode()).digest()[:8], "big", signed=True
    )


def is_made_of_source(id: str) -> bool:
    """Return whether an id is a hash made of the source from which a memory was captured or imported."""
    return _MADE.fullmatch(id) is not None


def keys_of_forgotten(
    id: str, session: str, source: str | None, hashes: Iterable[int]
) -> set[str]:
    """Return the keys that identify a forgotten memory when its source is read again.

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
