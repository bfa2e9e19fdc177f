"""The entry point of `mnem`: agents start `mnem mcp` again and again, so it loads the pump alone."""

from __future__ import annotations

import os
import sys


def main() -> None:
    """Run the shell client; for `mnem mcp` alone, load only the pump of an agent's messages."""
    _open_closed_streams()
    if sys.argv[1:] == ["mcp"]:
        # Loaded here: each needs nothing of the other.
        from mnemosyned.agents.mcp.pump import run  # noqa: PLC0415

        run()
        return
    try:
        from mnemosyned.cli.main import main as shell  # noqa: PLC0415 see above
    except KeyboardInterrupt:  # so early that nothing was asked
        sys.exit(130)
    shell()


def _open_closed_streams() -> None:
    """Open the null device for each standard stream that was closed at the start.

    The next opened file would take the descriptor's number, and prints would go into that file.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            null = open(os.devnull, mode, encoding="utf-8")  # noqa: SIM115 to the end
            setattr(sys, name, null)
