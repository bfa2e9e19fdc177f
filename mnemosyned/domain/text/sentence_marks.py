"""The punctuation marks that end a sentence, for patterns and for `str.endswith`."""

from __future__ import annotations

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
