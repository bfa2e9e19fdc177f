"""The commands of `mnem`."""

from __future__ import annotations

from mnemosyned.verbs.facade import ALIASES, VERBS

COMMANDS = sorted(
    (
        {name.replace("_", "-") for name in (*VERBS, *ALIASES)}
        | {"import", "completion", "archive"}
    )
    # These have no command of their own, but options or words of another.
    - {"remember-many", "prune", "edit-briefing", "rate-injection", "undo-ending"}
)
