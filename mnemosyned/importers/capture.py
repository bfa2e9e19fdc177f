"""Conversations captured from agents' transcripts into memory."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

from mnemosyned.errors import DatabaseUnreachable, Kind, MemoryBusy, MnemosynedError
from mnemosyned.importers.transcript_formats import TranscriptMessage, memory_ids
from mnemosyned.importers.transcripts import (
    TranscriptRefused,
    is_plausible,
    read_transcript,
    size_of,
)
from mnemosyned.logs import logger
from mnemosyned.memory.capture import AgentCall, AgentSession, AgentStore
from mnemosyned.memory.clock import Clock
from mnemosyned.service.policies import PolicyHolder
from mnemosyned.service.service import MemoryService
from mnemosyned.verbs.memories import Remember, RememberMany

BACKGROUND = "background"
"""The event under which what the background stored is counted."""
BATCH = 100
"""Messages stored in one transaction."""
AGAIN_S = 30.0
"""Seconds until a session is looked at again that lost the database."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CaptureLimits:
    """How much a call captures itself, and what is left to the background."""

    call_bytes: int = 256 * 1024
    background_bytes: int = 1 << 20
    """Bytes read of a transcript at a time."""
    wait_s: float = 0.02
    """How long a call waits while another capture is under way."""
    look_again_s: float = 2.0
    """Tools write the last lines of a turn a moment after its hook."""
    rest_s: float = 0.02
    """Pause of the background between two readings."""
    waiting_max: int = 1_000
    """Sessions that wait for the background."""
    catch_up: int = 50
    """Sessions whose transcripts are looked at when another starts, the last seen."""


LIMITS = CaptureLimits()

log = logger()


@dataclass(frozen=True, slots=True)
class Captured:
    """The outcome of a capture."""

    stored: int = 0
    complete: bool = True


class Capture:
    """Stores messages, each once however often it is read; safe from any thread."""

    def __init__(
        self,
        *,
        service: MemoryService,
        agents: AgentStore,
        clock: Clock,
        policies: PolicyHolder,
        limits: CaptureLimits = LIMITS,
    ) -> None:
        self._service = service
        self._agents = agents
        self._clock = clock
        self._policies = policies
        self._limits = limits
        self._capturing = threading.Lock()
        self._background = Background(self._read_on, limits=limits)

    def start(self, warm_up: Callable[[], object]) -> None:
        """Begin with what was missed: transcripts that grew while nobody listened."""
        self._background.start(warm_up)
        for session in self._agents.recent(self._limits.waiting_max):
            if size_of(session.transcript) != session.position:
                self._background.look(session.session)

    def close(self) -> None:
        """Stop the background."""
        self._background.close()

    def transcript(self, session: AgentSession, *, again: bool = True) -> Captured:
        """Capture a share of what the transcript has more; the background reads the rest.

        Raises `TranscriptRefused`, and what storing raises.
        """
        if not self._capturing.acquire(timeout=self._limits.wait_s):
            self._background.look(session.session)
            return Captured(complete=False)
        try:
            captured = self._captured(session, self._limits.call_bytes)
        finally:
            self._capturing.release()
        if not captured.complete:
            self._background.look(session.session)
        elif again:
            self._background.look(session.session, after_s=self._limits.look_again_s)
        return captured

    def later(self, session: AgentSession) -> bool:
        """Have the background read a transcript; False where there is none to read."""
        path = session.transcript
        if not (is_plausible(path) and size_of(path)):
            return False
        self._background.look(session.session)
        return True

    def missed(self, session: AgentSession) -> None:
        """Have the background look at the other sessions that grew since they were read."""
        for other in self._agents.recent(self._limits.catch_up):
            grew = size_of(other.transcript) != other.position
            if grew and other.session != session.session:
                self._background.look(other.session)

    def messages(
        self,
        session: AgentSession,
        messages: Sequence[TranscriptMessage],
        *,
        conversation: str = "",
        by_hook: bool = True,
    ) -> int:
        """Store the messages that are new, and return how many. Raises what storing raises.

        Those of hooks are passed over for good while capture is switched off.
        """
        stored = 0
        if by_hook and not self._policies.hooks.capture:
            return stored
        for start in range(0, len(messages), BATCH):
            batch = messages[start : start + BATCH]
            stored += self._store(
                session,
                batch,
                conversation or session.conversation,
                background=not by_hook,
            )
        return stored

    def drain(self) -> None:
        """Capture all that waits for the background, at once."""
        self._background.drain()

    def _read_on(self, name: str) -> bool:
        """Capture another share of a session's transcript; whether that was all."""
        session = self._agents.session(name)
        if session is None or not session.transcript:
            return True
        with self._capturing:
            try:
                captured = self._captured(session, self._limits.background_bytes)
            except TranscriptRefused:  # deleted since
                return True
        if captured.stored:
            self._agents.count(
                AgentCall(
                    client=session.client,
                    event=BACKGROUND,
                    called_at=self._clock.now(),
                    duration_ms=0.0,
                    stored=captured.stored,
                )
            )
        return captured.complete

    def _captured(self, session: AgentSession, bytes_max: int) -> Captured:
        """Read on where the last capture ended, store, and keep how far that was."""
        session = self._agents.session(session.session) or session
        reading = read_transcript(
            session.transcript,
            position=session.position,
            file=session.file,
            bytes_max=bytes_max,
        )
        stored = self.messages(
            session, reading.messages, conversation=reading.conversation
        )
        if (reading.position, reading.file) != (session.position, session.file):
            # Read anew: a start may have been told meanwhile.
            self._agents.advance(session.session, reading.position, reading.file)
        return Captured(stored, reading.complete)

    def _store(
        self,
        session: AgentSession,
        messages: Sequence[TranscriptMessage],
        conversation: str,
        *,
        background: bool,
    ) -> int:
        ids = [memory_ids(message, conversation) for message in messages]
        new = set(self._agents.unknown([id for each in ids for id in each]))
        now = self._clock.now()
        requests: dict[str, Remember] = {}
        for message, names in zip(messages, ids, strict=True):
            if new.issuperset(names):
                requests[names[0]] = _request(session, message, names[0], now)
        if not requests:
            return 0
        drafts = list(requests.values())
        try:
            answers = self._service.call(
                RememberMany(drafts), background=background
            ).memories
        except MnemosynedError as error:
            if error.kind not in (Kind.INVALID, Kind.CONFLICT):
                raise
            return sum(map(self._is_stored, drafts))
        return sum(answer.stored for answer in answers)

    def _is_stored(self, request: Remember) -> bool:
        """Store one message of a batch in which some cannot be stored, as it holds a secret."""
        try:
            return self._service.call(request).stored
        except MnemosynedError as error:
            if error.kind not in (Kind.INVALID, Kind.CONFLICT):
                raise
            log.info("message_not_captured", code=error.code, session=request.session)
            return False


def _request(
    session: AgentSession, message: TranscriptMessage, id: str, now: datetime
) -> Remember:
    said = message.created_at or now
    metadata = {
        "project": session.project,
        "cwd": session.directory,
        "message": message.unique_id,
    }
    return Remember(
        message.text,
        id=id,
        session=session.session,
        source=session.client,
        role=message.role,
        created_at=min(said, now),
        metadata={name: value for name, value in metadata.items() if value},
        dedupe=True,
    )


class Background:
    """One thread that looks at sessions when they are due."""

    def __init__(
        self, read_on: Callable[[str], bool], *, limits: CaptureLimits
    ) -> None:
        """`read_on` captures a share of one session, and tells whether that was all."""
        self._read_on = read_on
        self._limits = limits
        self._changed = threading.Condition()
        self._due: dict[str, float] = {}
        self._stopping = False
        self._warm_up: Callable[[], object] = bool
        self._thread: threading.Thread | None = None

    def start(self, warm_up: Callable[[], object]) -> None:
        """Warm up, and begin to look."""
        self._warm_up = warm_up
        self._thread = threading.Thread(target=self._run, name="capture", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop after the present share; the rest is read after the next start."""
        with self._changed:
            self._stopping = True
            self._changed.notify()
        if self._thread:
            self._thread.join(5.0)

    def look(self, session: str, *, after_s: float = 0.0) -> None:
        """Look at a session, as early as this or any earlier wish asks for."""
        due = time.monotonic() + after_s
        with self._changed:
            if session in self._due or len(self._due) < self._limits.waiting_max:
                self._due[session] = min(due, self._due.get(session, due))
                self._changed.notify()

    def drain(self) -> None:
        """Look at all that waits, now, in the caller's thread."""
        while session := self._next(wait=False):
            self._look(session)

    def _run(self) -> None:
        try:
            self._warm_up()
        except Exception:
            log.exception("warm_up_failed")
        while session := self._next(wait=True):
            self._look(session)
            with self._changed:
                self._changed.wait_for(lambda: self._stopping, self._limits.rest_s)

    def _look(self, session: str) -> None:
        try:
            complete = self._read_on(session)
        except MnemosynedError as error:
            log.warning("capture_failed", session=session, code=error.code)
            if isinstance(error, DatabaseUnreachable | MemoryBusy):
                self.look(session, after_s=AGAIN_S)
        except Exception:
            log.exception("capture_failed", session=session)
        else:
            if not complete:
                self.look(session)

    def _next(self, *, wait: bool) -> str:
        """Return the next session to look at; empty when stopping, or where none is left."""
        with self._changed:
            while not self._stopping or not wait:
                if not self._due and not wait:
                    return ""
                first = min(self._due, key=self._due.__getitem__, default="")
                pause = self._due[first] - time.monotonic() if first else None
                if first and (not wait or (pause is not None and pause <= 0)):
                    del self._due[first]
                    return first
                self._changed.wait(pause)
            return ""
