"""Conversations captured from agents' transcripts into memory."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

from mnemosyned.config import SettingsInForce
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
from mnemosyned.service.service import MemoryService
from mnemosyned.verbs.memories import Remember, RememberMany

BACKGROUND = "background"
"""The event under which captures of the background thread are counted."""
REFUSALS = (Kind.INVALID, Kind.CONFLICT, Kind.NOT_FOUND)
"""Kinds of errors caused by one memory, such as a secret in it."""
BATCH = 100
"""Messages stored in one transaction."""
AGAIN_S = 30.0
"""Seconds until a session is read again after the database was lost."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CaptureLimits:
    """Limits of a capture within a call and in the background thread."""

    call_bytes: int = 256 * 1024
    background_bytes: int = 1 << 20
    """Bytes read of a transcript at a time."""
    wait_s: float = 0.02
    """Longest wait of a call for another capture."""
    look_again_s: float = 2.0
    """Tools write the last lines of a turn a moment after its hook."""
    rest_s: float = 0.02
    """Pause of the background between two readings."""
    waiting_max: int = 1_000
    """Sessions in the queue of the background thread."""
    catch_up: int = 50
    """Sessions, the last seen, whose transcripts are checked when another starts."""


LIMITS = CaptureLimits()

log = logger()


@dataclass(frozen=True, slots=True)
class CaptureResult:
    """The number of messages stored, and whether the transcript was read to its end."""

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
        settings: SettingsInForce,
        limits: CaptureLimits = LIMITS,
    ) -> None:
        self._service = service
        self._agents = agents
        self._clock = clock
        self._settings = settings
        self._limits = limits
        self._capturing = threading.Lock()
        self._thread = CaptureThread(self._read_share, limits=limits)

    def start(self, warm_up: Callable[[], object]) -> None:
        """Start the thread, and queue transcripts that grew while no daemon ran.

        `warm_up` is called in the thread before the first reading.
        """
        self._thread.start(warm_up)
        for session in self._agents.recent(self._limits.waiting_max):
            if size_of(session.transcript) != session.position:
                self._thread.queue(session.session)

    def close(self) -> None:
        """Stop the thread after the share that it is reading."""
        self._thread.close()

    def read_session(self, session: AgentSession) -> CaptureResult:
        """Capture a share of the transcript's new lines; the thread reads the rest.

        If another capture is running, only queue the session.
        Raises `TranscriptRefused` and storage errors.
        """
        if not self._capturing.acquire(timeout=self._limits.wait_s):
            self._thread.queue(session.session)
            return CaptureResult(complete=False)
        try:
            captured = self._capture_share(session, self._limits.call_bytes)
        finally:
            self._capturing.release()
        after_s = self._limits.look_again_s if captured.complete else 0.0
        self._thread.queue(session.session, after_s=after_s)
        return captured

    def queue_session(self, session: AgentSession) -> bool:
        """Queue a session for the thread; return False if it has no transcript."""
        path = session.transcript
        if not (is_plausible(path) and size_of(path)):
            return False
        self._thread.queue(session.session)
        return True

    def queue_grown_sessions(self, session: AgentSession) -> None:
        """Queue the other sessions whose transcripts grew since they were read."""
        for other in self._agents.recent(self._limits.catch_up):
            grew = size_of(other.transcript) != other.position
            if grew and other.session != session.session:
                self._thread.queue(other.session)

    def store_messages(
        self,
        session: AgentSession,
        messages: Sequence[TranscriptMessage],
        *,
        conversation: str = "",
        by_hook: bool = True,
    ) -> int:
        """Store new messages of a session and return how many were new.

        `conversation` takes the place of the session's own in the ids of messages. Messages of
        hooks are skipped for good while capture is switched off. Raises storage errors.
        """
        stored = 0
        if by_hook and not self._settings.config.hooks.capture:
            return stored
        for start in range(0, len(messages), BATCH):
            requests = self._make_new_requests(
                session,
                messages[start : start + BATCH],
                conversation or session.conversation,
            )
            stored += store_batch(
                self._service,
                requests,
                background=not by_hook,
                refusal_event="message_not_captured",
            )
        return stored

    def drain(self) -> None:
        """Capture the transcripts of all queued sessions now, in the caller's thread."""
        self._thread.drain()

    def _read_share(self, session_id: str) -> bool:
        """Capture a share of a session's transcript; return True if nothing is left of it."""
        session = self._agents.session(session_id)
        if session is None or not session.transcript:
            return True
        with self._capturing:
            try:
                captured = self._capture_share(session, self._limits.background_bytes)
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

    def _capture_share(self, session: AgentSession, bytes_max: int) -> CaptureResult:
        """Store the messages in at most `bytes_max` new bytes of a session's transcript.

        Read from the end of the last capture, and save the new end. Raises `TranscriptRefused`.
        """
        session = self._agents.session(session.session) or session
        reading = read_transcript(
            session.transcript,
            position=session.position,
            file=session.file,
            bytes_max=bytes_max,
        )
        stored = self.store_messages(
            session, reading.messages, conversation=reading.conversation
        )
        if (reading.position, reading.file) != (session.position, session.file):
            # One column alone: a briefing may have been noted meanwhile.
            self._agents.advance(session.session, reading.position, reading.file)
        return CaptureResult(stored, reading.complete)

    def _make_new_requests(
        self,
        session: AgentSession,
        messages: Sequence[TranscriptMessage],
        conversation: str,
    ) -> list[Remember]:
        """Return requests to store the messages that memory does not have yet."""
        ids = [memory_ids(message, conversation) for message in messages]
        new = set(self._agents.unknown([id for each in ids for id in each]))
        now = self._clock.now()
        requests: dict[str, Remember] = {}
        for message, names in zip(messages, ids, strict=True):
            if new.issuperset(names):
                requests[names[0]] = _make_request(session, message, names[0], now)
        return list(requests.values())


def store_batch(
    service: MemoryService,
    memories: Sequence[Remember],
    *,
    background: bool,
    refusal_event: str,
) -> int:
    """Store memories in one call and return how many were new; if refused, one by one.

    `refusal_event` is the log event of a refused memory. Raises errors that are not the fault of
    one memory.
    """
    if not memories:
        return 0
    try:
        many = RememberMany(list(memories))
        answers = service.call(many, background=background).memories
    except MnemosynedError as error:
        if error.kind not in REFUSALS:
            raise
        return sum(
            store_one(
                service, memory, background=background, refusal_event=refusal_event
            )
            for memory in memories
        )
    return sum(answer.stored for answer in answers)


def store_one(
    service: MemoryService, memory: Remember, *, background: bool, refusal_event: str
) -> bool:
    """Store one memory; return False if it was known or is refused. Raises other errors.

    `refusal_event` is the log event of a refusal.
    """
    try:
        return service.call(memory, background=background).stored
    except MnemosynedError as error:
        if error.kind not in REFUSALS:
            raise
        log.info(refusal_event, code=error.code, session=memory.session)
        return False


def _make_request(
    session: AgentSession, message: TranscriptMessage, id: str, now: datetime
) -> Remember:
    """Return the request that stores a message under this id, in the agent's session."""
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


class CaptureThread:
    """The background thread, with a queue of sessions and their due times."""

    def __init__(
        self, read_share: Callable[[str], bool], *, limits: CaptureLimits
    ) -> None:
        """`read_share` captures a share of one session and returns whether it was the last."""
        self._read_share = read_share
        self._limits = limits
        self._changed = threading.Condition()
        self._due: dict[str, float] = {}
        self._stopping = False
        self._warm_up: Callable[[], object] = bool
        self._thread: threading.Thread | None = None

    def start(self, warm_up: Callable[[], object]) -> None:
        """Start the thread: call `warm_up`, then read each session when it is due."""
        self._warm_up = warm_up
        self._thread = threading.Thread(
            target=self._run_thread, name="capture", daemon=True
        )
        self._thread.start()

    def close(self) -> None:
        """Stop the thread after the current share; the rest is read after the next start."""
        with self._changed:
            self._stopping = True
            self._changed.notify()
        if self._thread:
            self._thread.join(5.0)

    def queue(self, session: str, *, after_s: float = 0.0) -> None:
        """Make a session due in `after_s` seconds, unless it is due earlier.

        A full queue ignores a new session.
        """
        due = time.monotonic() + after_s
        with self._changed:
            if session in self._due or len(self._due) < self._limits.waiting_max:
                self._due[session] = min(due, self._due.get(session, due))
                self._changed.notify()

    def drain(self) -> None:
        """Read all queued sessions now, in the caller's thread."""
        while session := self._take_due_session(wait=False):
            self._read_session(session)

    def _run_thread(self) -> None:
        """Read due sessions, with a pause after each, until the thread is stopped."""
        try:
            self._warm_up()
        except Exception:
            log.exception("warm_up_failed")
        while session := self._take_due_session(wait=True):
            self._read_session(session)
            with self._changed:
                self._changed.wait_for(lambda: self._stopping, self._limits.rest_s)

    def _read_session(self, session: str) -> None:
        """Read a share of a session; queue the session again if a share is left.

        Errors are logged.
        """
        try:
            complete = self._read_share(session)
        except MnemosynedError as error:
            log.warning("capture_failed", session=session, code=error.code)
            if isinstance(error, DatabaseUnreachable | MemoryBusy):
                self.queue(session, after_s=AGAIN_S)
        except Exception:
            log.exception("capture_failed", session=session)
        else:
            if not complete:
                self.queue(session)

    def _take_due_session(self, *, wait: bool) -> str:
        """Remove and return the session with the earliest due time; empty for none.

        With `wait`, wait for that time; empty then means that the thread is stopping.
        """
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
