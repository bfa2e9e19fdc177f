"""Characters for patterns: marks that end a sentence, and letters of scripts without spaces."""

from __future__ import annotations

import re

UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff"
    "\uac00-\ud7af\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff"
)
"""Scripts written without spaces, and Hangul, whose particles cling to the word."""
WORD_START = f"(?<![^\\W{UNSPACED}\u1100-\u11ff])"
"""Matches where no letter or digit of a script with spaces precedes, as in `はnginx`."""
WORD_END = f"(?![^\\W{UNSPACED}\u1100-\u11ff])"
"""The same where none follows. Hangul without accents is parted into U+1100 and following."""

SPACED_ENDS = ".!?…"
"""Marks that end a sentence where white space follows."""
UNSPACED_ENDS = "。！？"
"""Marks that end a sentence whatever follows, in scripts without spaces."""
HALF_WIDTH_ENDS = "｡．"
"""Variants of the full stop in text with characters of half or full width."""
CLOSING_QUOTES = "\"'”’»)"
"""Marks that may stand between the end of a sentence and the white space."""
CLOSING_WIDE = "」』”’）】"
"""Closing marks of scripts without spaces."""


def ending_at_unspaced(pattern: str, *, end: str = WORD_END) -> str:
    r"""Return a pattern whose words also end where a script without spaces begins: `v2` of `v2版`.

    Ends of words are written `\b`, `(?!\w)`, or with further characters as in `(?![\w-])`.
    """
    pattern = pattern.replace(r"\b", end).replace(r"(?!\w)", end)
    further = re.compile(r"\(\?!\[\\w([^\]]+)\]\)")
    return further.sub(lambda match: f"(?![{match[1]}]){end}", pattern)
