"""Keeps structlog from loading rich, which `mnem top` brings.

It loads it where it finds it, for tracebacks with local variables, which are never shown here: that
takes a tenth of a second of each start, and some megabytes.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

RICH = "rich"


@contextmanager
def without_rich() -> Iterator[None]:
    """Let no module find rich while the block runs, unless it is loaded."""
    if RICH in sys.modules:
        yield
        return
    sys.modules[RICH] = None  # type: ignore[assignment]  # Python's way to say: not to be found
    try:
        yield
    finally:
        del sys.modules[RICH]
