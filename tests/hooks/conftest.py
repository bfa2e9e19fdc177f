"""The daemon's side of hooks, over a real store and a home of its own."""

from pathlib import Path

import pytest

from mnemosyned.agents.hooks.service import HookService
from mnemosyned.service.service import MemoryService


@pytest.fixture
def hooks(service: MemoryService, tmp_path: Path) -> HookService:
    return HookService(service, home=tmp_path)


@pytest.fixture
def transcript(tmp_path: Path) -> Path:
    """Where Claude Code would keep the transcript; nothing is there yet."""
    return tmp_path / ".claude" / "projects" / "-w-shop" / "s1.jsonl"


@pytest.fixture
def rollout(tmp_path: Path) -> Path:
    """Where Codex would keep the transcript; nothing is there yet."""
    folder = tmp_path / ".codex" / "sessions" / "2026" / "03" / "16"
    return folder / "rollout-2026-03-16T09-00-00-0199.jsonl"
