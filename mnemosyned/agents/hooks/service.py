"""The daemon's side of hooks: one event in, the answer out, sessions and captures kept."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Self

import msgspec

from mnemosyned.agents.hooks.events import (
    Event,
    HookCall,
    Json,
    answer,
    messages_of,
    parse_call,
    takes_context,
)
from mnemosyned.agents.hooks.injected import Briefing, Reminder
from mnemosyned.errors import MnemosynedError
from mnemosyned.importers.capture import Capture
from mnemosyned.importers.transcript_formats import TranscriptMessage
from mnemosyned.importers.transcripts import NO_TRANSCRIPT, TranscriptRefused, clean
from mnemosyned.logs import logger
from mnemosyned.memory.capture import AgentCall, AgentSession, AgentStore
from mnemosyned.memory.clock import Clock
from mnemosyned.memory.ports import LearningStore
from mnemosyned.projects import project_of
from mnemosyned.service.policies import PolicyHolder
from mnemosyned.service.service import MemoryService

SEEN_EVERY = timedelta(minutes=1)
"""How exactly it is kept when a session was last seen."""
LOCKS = 64
SAMPLE = "What did Ann decide about the cart service yesterday?"
"""A prompt that takes every step of a recall."""
NO_CONVERSATION = "the call names no conversation"
CAPTURING = frozenset({Event.STOP, Event.COMPACT, Event.END})

log = logger()


class Envelope(msgspec.Struct, frozen=True, kw_only=True):
    """A call from the executable: the tool's own JSON, and the directory it was called in."""

    payload: dict[str, Any] | None = None
    environment: dict[str, str] = msgspec.field(default_factory=dict)
    directory: str = ""
    arguments: list[str] = msgspec.field(default_factory=list)
    time: float = 0.0
    """When the hook was called, in seconds since 1970."""
    late: bool = False
    """Whether it waited in the spool: then nobody waits for an answer."""


@dataclass(slots=True)
class Outcome:
    """Outcome of a call, as it is counted."""

    stored: int = 0
    context: str = ""
    failure: str = ""


class HookService:
    """Answers hooks: captures what was said and tells what matters. Safe from any thread."""

    def __init__(
        self,
        *,
        service: MemoryService,
        agents: AgentStore,
        learnings: LearningStore,
        clock: Clock,
        policies: PolicyHolder,
        home: Path | None = None,
    ) -> None:
        self._agents = agents
        self._clock = clock
        self._policies = policies
        self._home = home
        self._events = service.events
        self._briefing = Briefing(agents=agents, learnings=learnings)
        self._reminder = Reminder(service=service, agents=agents)
        self.capture = Capture(
            service=service, agents=agents, clock=clock, policies=policies
        )
        self._telling = [threading.Lock() for _ in range(LOCKS)]
        """By session, so that two hooks of one event do not tell it twice."""

    def __enter__(self) -> Self:
        self.capture.start(self._warm_up)
        return self

    def __exit__(self, *_: object) -> None:
        self.capture.close()

    def _warm_up(self) -> None:
        """Load what the first prompt needs, if hooks are in use, so that it is in time."""
        for session in self._agents.recent(1):
            self._reminder.text(session, SAMPLE, now=self._clock.now())
            self._briefing.text(session)

    def handle(self, envelope: Envelope) -> Json:
        """Return what the hook prints.

        Raises what storing raises; to send the same again then stores nothing twice.
        """
        started = time.monotonic()
        call = parse_call(
            envelope.payload or {},
            envelope.environment,
            directory=envelope.directory,
            arguments=tuple(envelope.arguments),
        )
        outcome = Outcome()
        try:
            if call.event is not Event.OTHER:
                self._handle(call, envelope, outcome)
        except MnemosynedError as error:
            outcome.failure = error.code
            raise
        except Exception as error:
            outcome.failure = type(error).__name__
            raise
        finally:
            self._count(call, outcome, time.monotonic() - started)
        return answer(call, outcome.context)

    def _handle(self, call: HookCall, envelope: Envelope, outcome: Outcome) -> None:
        if not call.session:
            outcome.failure = NO_CONVERSATION
            return
        session = self._session(call)
        outcome.stored, outcome.failure = self._captured(call, session, envelope)
        if self._policies.hooks.tell and takes_context(call) and not envelope.late:
            outcome.context = self._told(call, session)

    # -------------------------------------------------------------- session

    def _session(self, call: HookCall) -> AgentSession:
        """Return the session of a call, and keep what is new of it."""
        now = self._clock.now()
        known = self._agents.session(call.session)
        session = known or self._new_session(call, now)
        named = "" if "\0" in call.transcript else call.transcript
        transcript = named or session.transcript
        seen_at = now if now - session.seen_at >= SEEN_EVERY else session.seen_at
        present = replace(session, transcript=transcript, seen_at=seen_at)
        if present != known:
            self._agents.keep_session(present)
        return present

    def _new_session(self, call: HookCall, now: datetime) -> AgentSession:
        project = project_of(call.directory, override=call.project, home=self._home)
        return AgentSession(
            session=call.session,
            client=call.client,
            conversation=call.conversation,
            started_at=now,
            seen_at=now,
            project=project.key,
            directory=call.directory,
        )

    # -------------------------------------------------------------- capture

    def _captured(
        self, call: HookCall, session: AgentSession, envelope: Envelope
    ) -> tuple[int, str]:
        """Store what was said, from the transcript or else from the call; with what went wrong."""
        if call.event is Event.START:
            self.capture.missed(session)
        failure = NO_TRANSCRIPT if "\0" in call.transcript else ""
        if call.event not in CAPTURING:  # somebody waits to go on
            if self.capture.later(session):
                return 0, ""
        elif session.transcript:
            try:
                return self.capture.transcript(session).stored, ""
            except TranscriptRefused as refused:
                failure = str(refused)
        messages = messages_of(call)
        if call.messages or messages:
            dated = _dated(messages, self._time(envelope))
            return self.capture.messages(session, dated), ""
        # A program that only lists something also ends a session, of which nothing was written.
        said_nothing = call.event is Event.END and not session.position
        counts = call.event in CAPTURING and not said_nothing
        return 0, failure if counts else ""

    def _time(self, envelope: Envelope) -> datetime | None:
        """Return when a call from the spool was made."""
        try:
            return (
                datetime.fromtimestamp(envelope.time, tz=UTC) if envelope.late else None
            )
        except (ValueError, OverflowError, OSError):
            return None

    # ----------------------------------------------------------------- tell

    def _told(self, call: HookCall, session: AgentSession) -> str:
        """Return what the agent is told, nothing twice in a session."""
        with self._telling[hash(session.session) % LOCKS]:
            session = self._agents.session(session.session) or session
            if call.event is Event.PROMPT:
                prompt = clean(call.prompt)
                text, ids = self._reminder.text(session, prompt, now=self._clock.now())
                informed_at = None
            elif call.starts_anew and session.informed_at is None:
                text, ids = self._briefing.text(session)
                informed_at = self._clock.now()
            else:
                return ""
            if ids or informed_at:
                self._agents.note_shown(session.session, ids, informed_at=informed_at)
        return text

    # ---------------------------------------------------------------- count

    def _count(self, call: HookCall, outcome: Outcome, duration_s: float) -> None:
        try:
            self._agents.count(
                AgentCall(
                    client=call.client,
                    event=call.event.value,
                    called_at=self._clock.now(),
                    duration_ms=duration_s * 1_000,
                    stored=outcome.stored,
                    characters=len(outcome.context),
                    failure=outcome.failure,
                )
            )
        except MnemosynedError as error:
            log.warning("hook_not_counted", code=error.code)
        self._events.captured(
            client=call.client,
            hook=call.event.value,
            count=outcome.stored,
            failure=outcome.failure,
        )


def _dated(
    messages: Sequence[TranscriptMessage], said: datetime | None
) -> list[TranscriptMessage]:
    """Messages with a time, where the call has one for those without."""
    return [
        message if message.created_at else replace(message, created_at=said)
        for message in messages
    ]
