"""Token counters that read a vocabulary already on disk; none fetches one."""

from __future__ import annotations

from pathlib import Path

from mnemosyned.domain.errors import TokenizerUnusable
from mnemosyned.domain.text.token_estimate import TokenCounter
from mnemosyned.tokenizers.model import ModelCounter

__all__ = ["ModelCounter", "open_counter"]


def open_counter(vocabulary: Path) -> TokenCounter:
    """The counter for a `tokenizer.json` or a `*.tiktoken` file. Raises `TokenizerUnusable`."""
    if vocabulary.suffix == ".tiktoken":
        from mnemosyned.tokenizers.ranks import RanksCounter  # noqa: PLC0415 only one is needed

        return RanksCounter(vocabulary)
    if vocabulary.suffix == ".json":
        from mnemosyned.tokenizers.packaged import PackagedCounter  # noqa: PLC0415 only one is needed

        return PackagedCounter(vocabulary)
    raise TokenizerUnusable(
        f"{vocabulary} is neither a tokenizer.json nor a *.tiktoken file; name one of these"
    )
