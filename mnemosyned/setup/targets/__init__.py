"""The tools that can be given memory, one module each or one for those alike."""

from __future__ import annotations

from mnemosyned.setup.target import Target
from mnemosyned.setup.targets import (
    claude_code,
    codex,
    copilot,
    cursor,
    devin,
    gemini,
    goose,
    opencode,
    servers_only,
    vscode,
)

TARGETS: dict[str, Target] = {
    target.name: target
    for target in (
        claude_code.TARGET,
        codex.TARGET,
        cursor.TARGET,
        vscode.TARGET,
        opencode.TARGET,
        gemini.GEMINI,
        gemini.ANTIGRAVITY,
        copilot.TARGET,
        servers_only.ZED,
        servers_only.CLINE,
        goose.TARGET,
        devin.TARGET,
        servers_only.CLAUDE_DESKTOP,
    )
}
