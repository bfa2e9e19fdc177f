"""The words of a message without what people and agents did not say, or asked not to keep."""

from __future__ import annotations

import re
from functools import lru_cache

from mnemosyned.domain.text.frames import (
    HARNESS_TAGS,
    OWN_TAG,
    PRIVATE_TAG,
    WRAPPER_TAGS,
)

CHARS_MAX = 50_000
"""Characters kept of one message; longer ones are pasted logs."""
READ_CHARS_MAX = 4 * CHARS_MAX

_HIDDEN_TAGS = (OWN_TAG, PRIVATE_TAG)
"""A block without an end hides all that follows."""
_OPENING = re.compile(
    rf"<({'|'.join((*_HIDDEN_TAGS, *HARNESS_TAGS))})\b[^<>]{{0,1000}}>", re.IGNORECASE
)
_WRAPPER = re.compile(rf"</?(?:{'|'.join(WRAPPER_TAGS)})>")
_IDE_CONTEXT, _IDE_REQUEST = "# Context from my IDE setup:", "## My request for Codex:"
_NOT_SAID = re.compile(
    r"\A(?:\[Request interrupted by user[^\]]*\]|\(no content\)|No response requested\.?"
    r"|/[\w:-]+|# AGENTS\.md instructions for .*|Caveat: The messages below .*"
    r"|This session is being continued from a previous conversation .*)\Z",
    re.DOTALL,
)
"""Notes of the tools in place of a message, and commands to them."""
_ANNOUNCEMENT = re.compile(
    r"\A(?:(?:ok(?:ay)?|good|great|perfect|now|next|first|then|so|alright)[,.!:]?\s+)*"
    r"(?:let me|let's|i'll|i’ll|i will|i'm going to|i need to)\b[^.!?\n]{0,140}[.:…]?\Z",
    re.IGNORECASE,
)
"""One sentence of an agent that says which tool it calls next."""
_REASON = re.compile(
    r"\b(?:because|since|instead|rather|decid|so that|not|never)", re.IGNORECASE
)


def clean(text: str) -> str:
    """Return the words that were said; empty where the message holds nothing else."""
    text = text[:READ_CHARS_MAX]
    if "<" in text:
        text = _WRAPPER.sub("", without_blocks(text))
    if text.startswith(_IDE_CONTEXT) and _IDE_REQUEST in text:
        text = text.partition(_IDE_REQUEST)[2]
    text = text.replace("\0", "").encode("utf-8", "replace").decode().strip()
    if not any(map(str.isalnum, text)) or _NOT_SAID.match(text):
        return ""
    return text if len(text) <= CHARS_MAX else text[:CHARS_MAX] + "…"


def without_blocks(text: str) -> str:
    """Remove private blocks, our own, and those of tools; in one pass, however many there are."""
    kept: list[str] = []
    position = 0
    unended: set[str] = set()
    while opening := _OPENING.search(text, position):
        tag = opening[1].lower()
        closing = None if tag in unended else _closing(tag).search(text, opening.end())
        if closing is None and tag in _HIDDEN_TAGS:
            return "".join([*kept, text[position : opening.start()]])
        if closing is None:  # a person's own angle brackets
            unended.add(tag)
            kept.append(text[position : opening.end()])
            position = opening.end()
            continue
        kept.append(text[position : opening.start()])
        position = closing.end()
    return "".join([*kept, text[position:]])


@lru_cache(maxsize=128)
def _closing(tag: str) -> re.Pattern[str]:
    return re.compile(rf"</{tag}\s{{0,9}}>", re.IGNORECASE)


def announces_tool(text: str) -> bool:
    """Whether an agent only says that it will use a tool, without a reason or a decision."""
    return _ANNOUNCEMENT.match(text) is not None and not _REASON.search(text)
