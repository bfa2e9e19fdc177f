"""Faults of a daemon behind a URL, in words that say what to do."""

from __future__ import annotations


class RemoteFault(OSError):
    """The daemon behind a URL was not reached, or is not proven to be it; nothing was sent."""

    def __init__(self, words: str, *, is_foreign: bool = False) -> None:
        super().__init__(words)
        self.words = words
        self.is_foreign = is_foreign
        """Whether somebody answered who did not prove to be the daemon."""
