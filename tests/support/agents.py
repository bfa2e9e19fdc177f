"""Agents' tools as the tests play them: their transcripts, and what they send to hooks."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar

from mnemosyned.agents.hooks.service import HookEnvelope, HookService
from mnemosyned.memory.values import AgentActivity, MemoryRecord
from mnemosyned.service.service import MemoryService
from mnemosyned.storage.sqlite.store import SqliteStore
from mnemosyned.verbs.facade import Verbs
from mnemosyned.verbs.request import Request

Json = dict[str, Any]
Answer = TypeVar("Answer")

MORNING = datetime(2026, 3, 16, 9, tzinfo=UTC)


def moment(minutes: float = 0) -> str:
    """A time of the tests, as transcripts write it."""
    written = (MORNING + timedelta(minutes=minutes)).isoformat(timespec="milliseconds")
    return written.replace("+00:00", "Z")


def write_lines(path: Path, lines: Iterable[Json | str]) -> Path:
    """Append lines to a transcript, whole or as they are given."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", encoding="utf-8") as file:
        for line in lines:
            file.write(line if isinstance(line, str) else json.dumps(line) + "\n")
    return path


# --------------------------------------------------------------- transcripts


def claude_line(
    role: str, text: str, *, uuid: str, minutes: float = 0, **more: object
) -> Json:
    content: object = text if role == "user" else [{"type": "text", "text": text}]
    return {
        "type": role,
        "uuid": uuid,
        "isSidechain": False,
        "sessionId": "s1",
        "timestamp": moment(minutes),
        "message": {"role": role, "content": content},
        **more,
    }


def codex_meta(id: str = "0199", **payload: object) -> Json:
    return {
        "timestamp": moment(),
        "type": "session_meta",
        "payload": {"id": id, "cwd": "/w/shop", "source": "cli", **payload},
    }


def codex_event(kind: str, text: str, *, minutes: float = 0) -> Json:
    return {
        "timestamp": moment(minutes),
        "type": "event_msg",
        "payload": {"type": kind, "message": text},
    }


def cursor_line(role: str, text: str) -> Json:
    if role == "user":
        text = f"<user_query>\n{text}\n</user_query>"
    return {"role": role, "message": {"content": [{"type": "text", "text": text}]}}


# ------------------------------------------------------------------ hooks


@dataclass(slots=True)
class Agent:
    """One conversation in one tool, that calls hooks as the tool does."""

    hooks: HookService
    payload: Json
    environment: Mapping[str, str] = field(default_factory=dict)
    directory: str = ""

    def call(self, **fields: object) -> Json:
        """Call the hook with these fields besides the usual ones."""
        return self.hooks.handle_call(self._envelope(fields))[0]

    def start(self, source: str = "startup") -> str:
        """Start a session; what the agent is told."""
        return context_of(self.call(hook_event_name="SessionStart", source=source))

    def ask(self, prompt: str) -> str:
        """Send a prompt; what the agent is told."""
        return context_of(self.call(hook_event_name="UserPromptSubmit", prompt=prompt))

    def stop(self, **fields: object) -> Json:
        """End a turn."""
        return self.call(hook_event_name="Stop", **fields)

    def late(self, *, time: float = 0.0, **fields: object) -> Json:
        """Hand a call in that waited in the spool."""
        return self.hooks.handle_call(self._envelope(fields, late=True, time=time))[0]

    def call_and_leave(self, **fields: object) -> Json:
        """Call the hook with a time limit that is over when the daemon answers."""
        return self.hooks.handle_call(self._envelope(fields, time=1.0, limit_s=0.24))[0]

    def _envelope(
        self,
        fields: Json,
        *,
        late: bool = False,
        time: float = 0.0,
        limit_s: float = 0.0,
    ) -> HookEnvelope:
        return HookEnvelope(
            payload={**self.payload, **fields},
            environment=dict(self.environment),
            directory=self.directory,
            late=late,
            time=time,
            limit_s=limit_s,
        )


def claude(
    hooks: HookService, transcript: Path, *, cwd: str = "/w/shop", session: str = "s1"
) -> Agent:
    """Claude Code."""
    payload = {"session_id": session, "transcript_path": str(transcript), "cwd": cwd}
    return Agent(hooks, payload, {"CLAUDE_PROJECT_DIR": cwd})


def codex(
    hooks: HookService,
    transcript: Path | None,
    *,
    cwd: str = "/w/shop",
    session: str = "0199",
) -> Agent:
    """Codex."""
    path = str(transcript) if transcript else None
    payload = {
        "session_id": session,
        "transcript_path": path,
        "cwd": cwd,
        "model": "m",
        "turn_id": "t1",
    }
    return Agent(hooks, payload)


def context_of(answer: Json) -> str:
    """The text that the answer tells the agent."""
    specific = answer.get("hookSpecificOutput", answer)
    for key in ("additionalContext", "additional_context"):
        if key in specific:
            return str(specific[key])
    steps = answer.get("injectSteps", [])
    return str(steps[0]["ephemeralMessage"]) if steps else ""


def captured(store: SqliteStore, *sessions: str) -> list[MemoryRecord]:
    """What is stored of these sessions, the oldest first."""
    return list(reversed(store.agents.latest(sessions, 10_000)))


def texts(store: SqliteStore, *sessions: str) -> list[str]:
    return [memory.content for memory in captured(store, *sessions)]


TALK = [
    claude_line("user", "Why is the cart empty?", uuid="u1"),
    claude_line(
        "assistant", "The session cookie expires too early.", uuid="u2", minutes=1
    ),
]
"""A transcript of Claude Code."""
SAID = ["Why is the cart empty?", "The session cookie expires too early."]
"""What was said in it."""


@dataclass(frozen=True)
class Shop(Verbs):
    """The project `/w/shop`, the agents that work on it, and what is stored of them."""

    hooks: HookService
    service: MemoryService
    store: SqliteStore
    home: Path

    @property
    def transcript(self) -> Path:
        """Where Claude Code would keep the transcript; nothing is there yet."""
        return self.home / ".claude" / "projects" / "-w-shop" / "s1.jsonl"

    @property
    def rollout(self) -> Path:
        """Where Codex would keep the transcript; nothing is there yet."""
        folder = self.home / ".codex" / "sessions" / "2026" / "03" / "16"
        return folder / "rollout-2026-03-16T09-00-00-0199.jsonl"

    def call(self, request: Request[Answer]) -> Answer:
        return self.service.call(request)

    def write(self, *lines: Json, session: str = "s1") -> Path:
        """Append lines to the transcript of a session of Claude Code."""
        return write_lines(self.transcript.with_name(f"{session}.jsonl"), lines)

    def claude(self, session: str = "s1", *, cwd: str = "/w/shop") -> Agent:
        file = self.transcript.with_name(f"{session}.jsonl")
        return claude(self.hooks, file, cwd=cwd, session=session)

    def codex(
        self, session: str = "0199", *, file: Path | None = None, cwd: str = "/w/shop"
    ) -> Agent:
        return codex(self.hooks, file, cwd=cwd, session=session)

    def say(
        self,
        *said: str,
        session: str = "s1",
        cwd: str = "/w/shop",
        minutes: float = 8,
    ) -> None:
        """Say something in a session of Claude Code."""
        lines = [claude_line("user", text, uuid=text, minutes=minutes) for text in said]
        self.write(*lines, session=session)
        self.claude(session, cwd=cwd).stop()

    def texts(self, *sessions: str) -> list[str]:
        """What is stored of these sessions, or of the first of Claude Code."""
        return texts(self.store, *(sessions or ["claude-code:s1"]))

    def activity(self) -> AgentActivity:
        """What is known of the only hook that was called."""
        (row,) = self.store.agents.activity()
        return row
