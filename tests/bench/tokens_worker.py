"""Counts texts with tiktoken and with our counter of `tokenizer.json`, in an own environment."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import sys
from pathlib import Path

from mnemosyned.models.tokenizers import PackagedCounter

# A package that carries vocabularies is found, never imported: it would load all else it has.
FOUND = importlib.util.find_spec("litellm")
HOME = (
    Path(FOUND.origin or "").parent / "litellm_core_utils" / "tokenizers"
    if FOUND
    else Path()
)
NAMES = "https://openaipublic.blob.core.windows.net/encodings/{}.tiktoken"
"""tiktoken files a vocabulary under the digest of this name."""


def main() -> None:
    """Read texts by kind from standard input, answer with their tokens by tokenizer and kind."""
    os.environ["TIKTOKEN_CACHE_DIR"] = str(HOME)
    import tiktoken  # noqa: PLC0415 it reads the variable above

    of_kind = json.load(sys.stdin)
    counts: dict[str, dict[str, list[int]]] = {}
    ranks: dict[str, str] = {}
    for name in ("cl100k_base", "o200k_base"):
        digest = hashlib.sha1(
            NAMES.format(name).encode(), usedforsecurity=False
        ).hexdigest()
        ranks[name] = str(HOME / digest)
        encoding = tiktoken.get_encoding(name)
        counts[name] = {
            kind: [
                len(encoding.encode(text, disallowed_special=())) for text in written
            ]
            for kind, written in of_kind.items()
        }
    for name in ("anthropic", "deepseek"):
        counter = PackagedCounter(HOME / f"{name}_tokenizer.json")
        counts[name] = {
            kind: [counter.count(text) for text in written]
            for kind, written in of_kind.items()
        }
    json.dump({"counts": counts, "ranks": ranks}, sys.stdout)


if __name__ == "__main__":
    main()
