"""Conversations captured from agents' transcripts into memory."""

from __future__ import annotations

import heapq
import threading
import time
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Annotated

import msgspec

from mnemosyned.errors import DatabaseUnreachable, Kind, MemoryBusy, MnemosynedError
from mnemosyned.importers import projects, transcripts
from mnemosyned.logs import logger
from mnemosyned.memory.capture import BACKGROUND, AgentCall, AgentSession
from mnemosyned.service.service import MemoryService
from mnemosyned.verbs.memories import Remember, RememberMany

REFUSALS = (Kind.INVALID, Kind.CONFLICT, Kind.NOT_FOUND)
"""Kinds of errors caused by one memory, such as a secret in it."""
BATCH = 100
"""Messages stored in one transaction."""
AGAIN_S = 30.0
"""Seconds until a session is read again after the database could not be reached."""
CALL_BYTES = 256 * 1024
"""Bytes of a transcript read within a call."""
BACKGROUND_BYTES = 1 << 20
"""Bytes of a transcript read at a time by the background thread."""
CALL_WAIT_S = 0.02
"""Longest wait of a call for another capture."""
LOOK_AGAIN_S = 2.0
"""Seconds until a transcript is read again, as tools write the last lines of a turn after their hook."""
WRITTEN_S = 0.3
"""Seconds after a prompt until its transcript is read: another tool may soon ask for what it says."""
REST_S, IDLE_S = 0.02, 3_600.0
"""Pause of the background thread between two readings, and its maximum wait for the next one."""
WAITING_MAX = 1_000
"""Sessions in the queue of the background thread."""

log = logger()


Offset = Annotated[int, msgspec.Meta(ge=0, le=1 << 50)]


class TranscriptPart(msgspec.Struct, frozen=True, kw_only=True):
    """The part of a transcript on another machine that was read there."""

    file: Annotated[str, msgspec.Meta(pattern="^[0-9:]{1,60}$")]
    """Device and inode there."""
    size: Offset
    """Bytes of the whole file."""
    position: Offset | None = None
    """The byte at which the part ends; None if nothing was read yet."""
    messages: list[transcripts.TranscriptMessage] = []
    conversation: str = ""
    """The original of a copied conversation, if the transcript names it."""


class DueQueue:
    """Names of sessions or files with their due times; safe from any thread."""

    def __init__(self, size_max: int) -> None:
        self._size_max = size_max
        self._changed = threading.Condition()
        self._waits: dict[str, tuple[float, float]] = {}
        """By name: when it is due, and the latest time for that."""
        self._heap: list[tuple[float, str]] = []
        """All due times ever set, of which only the times in `_waits` are valid."""
        self._stopping = False
        self._woken = False

    def __len__(self) -> int:
        with self._changed:
            return len(self._waits)

    def put(
        self, name: str, *, after_s: float = 0.0, at_most_s: float | None = None
    ) -> None:
        """Make a name due `after_s` seconds from now, in place of its earlier due time.

        Repeated calls delay a name until at most `at_most_s` seconds after its first call; without
        `at_most_s` they do not delay it. A new name is ignored if the queue is full.
        """
        now = time.monotonic()
        with self._changed:
            if name not in self._waits and len(self._waits) >= self._size_max:
                return
            latest = now + (after_s if at_most_s is None else at_most_s)
            before, latest = self._waits.get(name, (latest, latest))
            due = min(now + after_s, latest)
            if at_most_s is None:
                due = min(due, before)
            self._waits[name] = due, latest
            heapq.heappush(self._heap, (due, name))
            self._changed.notify()

    def take(self, timeout_s: float, *, early: bool = False) -> str:
        """Wait until a name is due, remove it from the queue and return it.

        With `early`, do not wait for its time. Returns an empty text after `timeout_s` seconds without
        a name, or after `wake` or `stop`.
        """
        until = time.monotonic() + timeout_s
        with self._changed:
            while not (self._stopping or self._woken):
                now = time.monotonic()
                due = self._find_first_due(until)
                if self._heap and (early or due <= now):
                    _, name = heapq.heappop(self._heap)
                    del self._waits[name]
                    return name
                if now >= until:
                    return ""
                self._changed.wait(min(due, until) - now)
            self._woken = False
            return ""

    def _find_first_due(self, default: float) -> float:
        """Return the earliest due time, in monotonic seconds, or `default`; remove replaced due times."""
        while self._heap:
            due, name = self._heap[0]
            if name in self._waits and self._waits[name][0] == due:
                return due
            heapq.heappop(self._heap)
        return default

    def rest(self, seconds: float) -> None:
        """Sleep for this many seconds, or until `stop` is called."""
        with self._changed:
            self._changed.wait_for(lambda: self._stopping, seconds)

    def wake(self) -> None:
        """Make the thread that waits in `take` return at once with an empty text."""
        with self._changed:
            self._woken = True
            self._changed.notify_all()

    @property
    def stopping(self) -> bool:
        """Whether `stop` was called, so that the reading thread should end."""
        with self._changed:
            return self._stopping

    def stop(self) -> None:
        """Tell the reading thread to end, and wake it if it waits in `take` or `rest`."""
        with self._changed:
            self._stopping = True
            self._changed.notify_all()


class Capture:
    """Capture of agents' messages, each stored once; a thread reads transcripts. Safe from any thread."""

    def __init__(
        self,
        service: MemoryService,
        on_stored: Callable[[AgentSession, Sequence[Remember]], object] | None = None,
    ) -> None:
        """Store messages by `service`; call `on_stored` with each batch of new messages that hooks reported."""
        self._on_stored = on_stored
        self._service = service
        self._agents = service.store.agents
        self._clock = service.sleeper.cycle.clock
        self._settings = service.settings
        self._capturing = threading.Lock()
        self._due = DueQueue(WAITING_MAX)
        self._thread: threading.Thread | None = None

    def start(self, warm_up: Callable[[], object]) -> None:
        """Start the thread, which calls `warm_up` before it reads; queue sessions with grown transcripts."""
        self._thread = threading.Thread(
            target=self._run_thread, args=[warm_up], name="capture", daemon=True
        )
        self._thread.start()
        for session in self._agents.recent(WAITING_MAX, with_transcript=True):
            if _has_new_size(session):
                self._due.put(session.session)

    def wake(self) -> None:
        """Let the thread, if it was started, call `warm_up`; return at once."""
        if self._thread:
            self._due.wake()

    def close(self) -> None:
        """Stop the thread within 5 seconds; queued sessions are read after the next start."""
        self._due.stop()
        if self._thread:
            self._thread.join(5.0)

    def read_session(self, session: AgentSession) -> int:
        """Store the messages in the next `CALL_BYTES` of a transcript; return the number of new memories.

        Queues the session for the rest of the transcript. If another capture runs for `CALL_WAIT_S`, only
        queues and returns 0. Raises `TranscriptRefused`, after which it looks again later, and storage errors.
        """
        if not self._capturing.acquire(timeout=CALL_WAIT_S):
            self._due.put(session.session)
            return 0
        try:
            stored, complete = self._capture_share(session, CALL_BYTES)
        except transcripts.TranscriptRefused:
            # Some tools create the file a moment after the first turn.
            self._due.put(session.session, after_s=LOOK_AGAIN_S)
            raise
        finally:
            self._capturing.release()
        self._due.put(session.session, after_s=LOOK_AGAIN_S if complete else 0.0)
        return stored

    def store_part(
        self, session: AgentSession, part: TranscriptPart
    ) -> tuple[int, int]:
        """Store the messages of a transcript part read on another machine.

        Returns the number of new memories, and the byte at which the next part begins: 0 if the transcript is
        another file than before. Raises storage errors.
        """
        if part.position is None:
            is_same = session.file == part.file and session.position <= part.size
            return 0, session.position if is_same else 0
        stored = self.store_messages(
            session, part.messages, conversation=part.conversation
        )
        self._agents.save_position(session.session, part.position, part.file)
        return stored, part.position

    def queue_session(self, session: AgentSession) -> bool:
        """Queue a session for the capture thread; return False if it has no readable transcript."""
        path = session.transcript
        if not (transcripts.is_plausible(path) and transcripts.size_of(path)):
            return False
        # A tool writes what its user typed just after its hook has returned.
        self._due.put(session.session, after_s=WRITTEN_S)
        return True

    def queue_grown_sessions(self, session: AgentSession) -> None:
        """Queue recent sessions, except the given one, if their transcripts have changed in size."""
        for other in self._agents.recent(50, with_transcript=True):
            if _has_new_size(other) and other.session != session.session:
                self._due.put(other.session)

    def store_messages(
        self,
        session: AgentSession,
        messages: Sequence[transcripts.TranscriptMessage],
        *,
        conversation: str = "",
        by_hook: bool = True,
    ) -> int:
        """Store the messages that the memory lacks, and return the number of new memories.

        `conversation`, or else the session's own, is part of the ids. Nothing is stored in a folder of the
        setting `hooks.exclude`, nor with `by_hook` if the setting `hooks.capture` is off. Without `by_hook`,
        requests run in the background. Raises storage errors.
        """
        stored, hooks = 0, self._settings.config.hooks
        is_off = by_hook and not hooks.capture
        if is_off or projects.is_below(session.directory, hooks.exclude):
            return stored
        for start in range(0, len(messages), BATCH):
            batch = messages[start : start + BATCH]
            origin = conversation or session.conversation
            ids = [transcripts.memory_ids(message, origin) for message in batch]
            new = set(self._agents.unknown([id for each in ids for id in each]))
            now = self._clock.now()
            by_id = {
                names[0]: _make_request(session, message, names[0], now)
                for message, names in zip(batch, ids, strict=True)
                if new.issuperset(names)
            }
            requests = list(by_id.values())
            stored += store_batch(
                self._service,
                requests,
                background=not by_hook,
                refusal_event="message_not_captured",
            )
            if by_hook and self._on_stored and requests:
                self._on_stored(session, requests)
        return stored

    def drain(self) -> None:
        """Store a part of each queued session's transcript now, until the queue is empty."""
        while session := self._due.take(0.0, early=True):
            self._read_due_session(session)

    def _run_thread(self, warm_up: Callable[[], object]) -> None:
        """Call `warm_up`, and store parts of due sessions' transcripts, until the queue is stopped."""
        while not self._due.stopping:
            try:
                warm_up()
            except Exception:
                log.exception("warm_up_failed")
            if session := self._due.take(IDLE_S):
                self._read_due_session(session)
                self._due.rest(REST_S)

    def _read_due_session(self, name: str) -> None:
        """Store and count a part of a session's transcript; queue the session again for the rest or a retry."""
        try:
            session = self._agents.session(name)
            if session is None or not session.transcript:
                return
            with self._capturing:
                stored, complete = self._capture_share(session, BACKGROUND_BYTES)
            if stored:
                self._agents.count_call(
                    AgentCall(
                        client=session.client,
                        event=BACKGROUND,
                        called_at=self._clock.now(),
                        duration_ms=0.0,
                        stored=stored,
                    )
                )
        except transcripts.TranscriptRefused:  # deleted since
            return
        except MnemosynedError as error:
            log.warning("capture_failed", session=name, code=error.code)
            if isinstance(error, DatabaseUnreachable | MemoryBusy):
                self._due.put(name, after_s=AGAIN_S)
        except Exception:
            log.exception("capture_failed", session=name)
        else:
            if not complete:
                self._due.put(name)

    def _capture_share(self, session: AgentSession, bytes_max: int) -> tuple[int, bool]:
        """Store about `bytes_max` new bytes of a transcript, and save the new position.

        Returns the number of new memories, and True if the end was reached. Raises `TranscriptRefused`.
        """
        session = self._agents.session(session.session) or session
        reading = transcripts.read_transcript(
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
            self._agents.save_position(session.session, reading.position, reading.file)
        return stored, reading.complete


def _has_new_size(session: AgentSession) -> bool:
    """Return True if the size of a session's local transcript differs from the position read so far."""
    path = session.transcript
    return bool(path) and transcripts.size_of(path) != session.position


def store_batch(
    service: MemoryService,
    memories: Sequence[Remember],
    *,
    background: bool,
    refusal_event: str,
) -> int:
    """Store memories in one request and return how many were new.

    If the request is refused because of a memory, store the memories one by one, and log each refusal as the
    event `refusal_event`. With `background` other requests go first. Raises any other error.
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
    """Store one memory; return True if it was new, False if already known or refused.

    A refusal is logged as the event `refusal_event`; any other error is raised. With `background` other
    requests go first.
    """
    try:
        return service.call(memory, background=background).stored
    except MnemosynedError as error:
        if error.kind not in REFUSALS:
            raise
        log.info(refusal_event, code=error.code, session=memory.session)
        return False


def _make_request(
    session: AgentSession,
    message: transcripts.TranscriptMessage,
    id: str,
    now: datetime,
) -> Remember:
    """Return the request to store a message, whose time is never later than `now`."""
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
