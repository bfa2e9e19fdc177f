"""The entry point of `mnem`: agents start `mnem mcp` again and again, so it loads the pump alone."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the shell client, or carry an agent's messages."""
    if sys.argv[1:] == ["mcp"]:
        # Loaded here: each needs nothing of the other.
        from mnemosyned.mcp.pump import run  # noqa: PLC0415

        run()
        return
    try:
        from mnemosyned.cli.main import main as shell  # noqa: PLC0415
    except KeyboardInterrupt:  # so early that nothing was asked
        sys.exit(130)
    shell()
