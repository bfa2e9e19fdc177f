"""The daemon's side of hooks: an event in, its answer out, with capture and injection."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from math import inf
from pathlib import Path
from typing import Any, Self

import msgspec

from mnemosyned.agents.hooks import events, spool
from mnemosyned.conversation.briefing import has_substance
from mnemosyned.conversation.learnings.recognize import find_statements
from mnemosyned.errors import MnemosynedError
from mnemosyned.importers import transcripts
from mnemosyned.importers.capture import Capture, TranscriptPart
from mnemosyned.importers.projects import KEY_CHARS_MAX, is_below, project_of
from mnemosyned.logs import logger
from mnemosyned.memory import injections
from mnemosyned.memory.capture import BACKGROUND, AgentCall, AgentSession
from mnemosyned.service import reminder
from mnemosyned.service.briefing import make_injection
from mnemosyned.service.service import NO_GROUPS, Groups, MemoryService
from mnemosyned.text.endings.rating import find_ending_statements
from mnemosyned.text.tokens import find_keywords
from mnemosyned.verbs import request, upkeep
from mnemosyned.verbs.memories import Recall, Remember

SEEN_EVERY = timedelta(minutes=1)
"""Minimum time between two saves of when a session was last seen."""
LOCKS = 16
REPEATED_WITHIN = timedelta(hours=1)
REPEATED_CHECKED_MAX = 3
REPEATED_KEYWORDS_MIN = 3
REPEATED_SHARE_MIN = 0.6
"""Share of keywords in common from which a message repeats an earlier one."""
GIVEN_READ_MAX = 100
"""Number of a session's newest injections that are searched for what a user repeats."""
SAMPLE = "What did Ann decide about the cart service yesterday?"
"""A prompt for which a recall runs all of its steps."""
SAMPLE_RULES = "I prefer short answers. We no longer use Flask. Always write tests for the cart service."
"""A prompt that is searched for instructions, preferences and what it ends."""
FORMER_MAX = 20
"""Maximum former keys of a project that are read from a call over TCP."""
CAPTURING = frozenset(
    {events.HookEvent.STOP, events.HookEvent.COMPACT, events.HookEvent.END}
)

log = logger()


class HookEnvelope(msgspec.Struct, frozen=True, kw_only=True):
    """A call from `mnem-hook`: the tool's own JSON, and the directory of the call."""

    payload: dict[str, Any] | None = None
    environment: dict[str, str] = msgspec.field(default_factory=dict)
    directory: str = ""
    arguments: list[str] = msgspec.field(default_factory=list)
    time: float = 0.0
    """Time of the call, in seconds since 1970."""
    late: bool = False
    """Whether the call waited in the spool: then nobody waits for an answer."""
    limit_s: float = 0.0
    """How long the caller waits for an answer, in seconds; 0 if it did not say."""
    project: str = ""
    """The key of the project, found on the machine of a call over TCP."""
    former: list[str] = []
    """The keys that it may have had before, found there."""
    transcript: TranscriptPart | None = None
    """What was read of the transcript there."""
    memory: str = ""
    """Which memory it is, in words, for a person who has two."""


decode_call = msgspec.json.Decoder(HookEnvelope).decode
UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""Errors of `decode_call` for a call that nothing can be read of."""
UNREADABLE_STATUS = 400


@dataclass(slots=True)
class HookOutcome:
    """Counted outcome of a call."""

    stored: int = 0
    context: str = ""
    failure: str = ""
    wanted: str | None = None
    """The byte from which the caller is to read the transcript, and `;now` if no call may follow."""


class HookService:
    """Answers hooks: captures conversations and injects context. Safe from any thread."""

    def __init__(
        self, service: MemoryService, *, home: Path | None = None, waiting: str = ""
    ) -> None:
        self._agents = service.store.agents
        self._ledger = service.store.injections
        self._clock = service.sleeper.cycle.clock
        self._settings = service.settings
        self._home = home
        self._events = service.events
        self._briefings = service.briefings
        self._reminder = reminder.Reminder(service)
        self._service = service
        self.capture = Capture(service, self._note_repetitions)
        self._injecting = [threading.Lock() for _ in range(LOCKS)]
        """By session, so that two hooks of one event do not inject the same."""
        self._is_warm = False
        """Whether the thread of the capture has warmed up, or has begun to."""
        self._spool = waiting
        """The folder of calls that waited for the daemon, until they are stored; empty for none."""

    def __enter__(self) -> Self:
        self.capture.start(self._warm_up)
        return self

    def __exit__(self, *_: object) -> None:
        self.capture.close()

    def _store_waiting(self, place: str) -> None:
        """Store the calls that wait in the spool `place`. After an error, which it raises, the rest waits."""

        def store_call(content: bytes) -> int:
            try:
                call = decode_call(content)
            except UNREADABLE as error:
                log.warning("saved_call_unreadable", reason=str(error))
                return UNREADABLE_STATUS
            self.handle_call(call)
            return spool.OK

        while waiting := spool.list_waiting(place):
            spool.hand_in(place, store_call)
            if spool.list_waiting(place) == waiting:  # the folder cannot be changed
                return

    def _warm_up(self) -> None:
        """Store calls that waited; compose texts for a session and discard them, so that a prompt is quick."""
        place, self._spool = self._spool, ""
        if place:
            self._store_waiting(place)
        sessions = [] if self._is_warm else self._agents.recent(1)
        if not sessions:
            return
        (session,), self._is_warm = sessions, True
        # In a young memory, nothing else would read these tables before a prompt does.
        find_statements(SAMPLE_RULES)
        find_ending_statements(SAMPLE_RULES, None)
        if rate := self._service.rate_texts:
            rate(SAMPLE, [SAMPLE_RULES])
        self._reminder.compose(session, SAMPLE, now=self._clock.now())
        self._briefings.compose(session.project, session=session.session)

    def handle_call(
        self,
        envelope: HookEnvelope,
        *,
        is_remote: bool = False,
        waited_s: float = 0.0,
        may_tell: bool = True,
        groups: Groups = NO_GROUPS,
    ) -> tuple[events.Json, str | None]:
        """Store the conversation of a call; return the JSON to print, and the byte to send its transcript from.

        The second value is a byte as text, see `HookOutcome.wanted`, or None. A call that `is_remote` comes
        from another machine: no file that it names is looked at. It has waited here for `waited_s` seconds.
        Without `may_tell`, or if nobody waits any more, nothing is injected. With a prompt, the memories of
        `groups` are searched, too. Raises storage errors; if the same call is sent again, nothing is stored
        twice.
        """
        started = time.monotonic()
        # Another machine's clock may differ.
        lasted = waited_s if is_remote else max(0.0, time.time() - envelope.time)
        waits_until = started + envelope.limit_s - lasted if envelope.limit_s else inf
        call = events.parse_call(
            envelope.payload or {},
            envelope.environment,
            directory=envelope.directory,
            arguments=tuple(envelope.arguments),
        )
        has_transcript = transcripts.is_plausible(call.transcript)
        part = envelope.transcript if has_transcript else None
        outcome = HookOutcome()
        former: Sequence[str] = ()
        if is_remote:
            if has_transcript and not part and call.event in CAPTURING:
                # Some tools create the file a moment after the first turn: the caller looks again.
                outcome.wanted = "0"
            keys = (envelope.project, *envelope.former[:FORMER_MAX])
            project, *former = (key.replace("\0", "")[:KEY_CHARS_MAX] for key in keys)
            call = replace(call, transcript="", directory="", project=project)
        try:
            if call.event is not events.HookEvent.OTHER and not call.session:
                outcome.failure = "the call names no conversation"
            elif call.event is not events.HookEvent.OTHER:
                session = self._update_session(call, former)
                self._capture_call(call, session, envelope, part, outcome)
                settings = self._settings.config.hooks
                is_excluded = is_below(session.directory, settings.exclude)
                tells = may_tell and settings.tell and not is_excluded
                tells &= time.monotonic() <= waits_until
                if tells and events.takes_context(call) and not envelope.late:
                    outcome.context = self._compose_context(
                        call, session, waits_until, groups, name=envelope.memory
                    )
        except Exception as error:
            outcome.failure = type(error).__name__
            if isinstance(error, MnemosynedError):
                outcome.failure = error.code
            raise
        finally:
            event = (
                BACKGROUND if part and part.position is not None else call.event.value
            )
            self._count_call(call, event, outcome, time.monotonic() - started)
            if not self._is_warm:
                self.capture.wake()
        return events.make_answer(call, outcome.context), outcome.wanted

    def _update_session(
        self, call: events.HookCall, former: Sequence[str]
    ) -> AgentSession:
        """Create or update the agent's session of a call, with transcript and time seen; return the session.

        With a new session, earlier sessions under the project's `former` keys get its present key. Without
        `former`, the keys are those that the folder's project had.
        """
        now = self._clock.now()
        known = self._agents.session(call.session)
        session, root = known, ""
        if session is None:
            project = project_of(call.directory, override=call.project, home=self._home)
            former, root = former or project.former, project.root
            session = AgentSession(
                session=call.session,
                client=call.client,
                conversation=call.conversation,
                started_at=now,
                seen_at=now,
                project=project.key,
                directory=call.directory,
            )
        named = "" if "\0" in call.transcript else call.transcript
        session = replace(
            session,
            transcript=named or session.transcript,
            seen_at=now if now - session.seen_at >= SEEN_EVERY else session.seen_at,
        )
        if session != known:
            self._agents.keep_session(session, () if known else former, root)
        return session

    def _capture_call(
        self,
        call: events.HookCall,
        session: AgentSession,
        envelope: HookEnvelope,
        part: TranscriptPart | None,
        outcome: HookOutcome,
    ) -> None:
        """Store a call's conversation, or the transcript part sent with the call; set fields of `outcome`.

        At an event during which the user waits, a transcript is only queued to be read.
        """
        if part is not None:
            outcome.stored, position = self.capture.store_part(session, part)
            # The call that waits in a spool is the last of its conversation, whatever it was.
            is_behind = part.position is None and position < part.size
            if call.event in CAPTURING or (
                is_behind and (envelope.late or call.event is events.HookEvent.START)
            ):
                is_last = call.event in (events.HookEvent.COMPACT, events.HookEvent.END)
                outcome.wanted = f"{position};now" if is_last else str(position)
            return
        if call.event is events.HookEvent.START:
            self.capture.queue_grown_sessions(session)
        failure = transcripts.NO_TRANSCRIPT if "\0" in call.transcript else ""
        if call.event not in CAPTURING:  # somebody waits to go on
            if self.capture.queue_session(session):
                return
        elif session.transcript:
            try:
                outcome.stored = self.capture.read_session(session)
            except transcripts.TranscriptRefused as refused:
                failure = str(refused)
            else:
                return
        messages = events.hook_messages(call)
        if call.messages or messages:
            called_at = None
            if envelope.late:
                with suppress(ValueError, OverflowError, OSError):
                    called_at = datetime.fromtimestamp(envelope.time, tz=UTC)
            dated = [
                message
                if message.created_at
                else replace(message, created_at=called_at)
                for message in messages
            ]
            outcome.stored = self.capture.store_messages(session, dated)
            return
        # A program that only lists something also ends a session, without a transcript.
        said_nothing = call.event is events.HookEvent.END and not session.position
        if call.event in CAPTURING and not said_nothing:
            outcome.failure = failure

    def _compose_context(
        self,
        call: events.HookCall,
        session: AgentSession,
        waits_until: float,
        groups: Groups,
        *,
        name: str,
    ) -> str:
        """Return the text to inject: a reminder at a prompt, a briefing with the memory's `name` at a start.

        The ids of quoted memories are saved: none is quoted twice in a session. After `waits_until`,
        a monotonic time, the caller has gone, and nothing counts as injected.
        """
        # The prompt before, stored a moment ago, may have ended what would be injected.
        self._service.endings.find_soon()
        with self._injecting[hash(session.session) % LOCKS]:
            session = self._agents.session(session.session) or session
            now = self._clock.now()
            if call.event is events.HookEvent.PROMPT:
                prompt = transcripts.clean(call.prompt)
                injected = self._reminder.compose(
                    session, prompt, now=now, groups=groups
                )
                kind, informed_at = injections.InjectionKind.PROMPT, None
            elif call.is_fresh_start and session.informed_at is None:
                injected = self._briefings.compose(
                    session.project, session=session.session
                )
                prompt, kind, informed_at = "", injections.InjectionKind.START, now
            else:
                return ""
            if time.monotonic() > waits_until:
                return ""
            ids = [line.id for line in injected.lines]
            if ids or informed_at:
                self._agents.note_shown(session.session, ids, informed_at=informed_at)
            if ids:
                self._ledger.add(
                    make_injection(
                        now,
                        kind,
                        client=session.client,
                        session=session.session,
                        project=session.project,
                        prompt=prompt,
                        text=injected.text,
                        lines=injected.lines,
                    )
                )
        if informed_at and injected.text and name:
            shown_name = "".join(filter(str.isprintable, name[:200]))
            return f"{injected.text}\nThis memory is {shown_name}."
        return injected.text

    def _note_repetitions(
        self, session: AgentSession, messages: Sequence[Remember]
    ) -> None:
        """Record in the ledger the known facts that a user had to repeat, as the agent was not given them."""
        now = self._clock.now()
        fresh = [
            (message, words)
            for message in messages
            if message.role == "user"
            and message.created_at
            and now - request.instant(message.created_at) <= REPEATED_WITHIN
            and len(words := find_keywords(message.content)) >= REPEATED_KEYWORDS_MIN
            and has_substance(message.content)
        ][:REPEATED_CHECKED_MAX]
        own = self._agents.sessions_of(session.project, reminder.PROJECT_SESSIONS_MAX)
        others = [name for name in own if name != session.session]
        if not (fresh and others):
            return
        shown = (self._agents.session(session.session) or session).shown
        for message, words in fresh:
            query = message.content.replace("\0", " ")[: reminder.QUERY_CHARS_MAX]
            hits = self._service.call(Recall(query, limit=3, session=others)).hits
            known = [
                line
                for hit in hits
                for line in hit.lines or (hit,)
                if line.role == message.role
                and len(words & (said := find_keywords(line.content)))
                >= REPEATED_SHARE_MIN * len(words | said)
            ]
            if (
                known
                and not any(line.id in shown for line in known)
                and not self._was_given(session, words)
            ):
                line = injections.InjectedLine(
                    id=known[0].id,
                    text=known[0].content[: injections.PROMPT_CHARS_MAX],
                    reason="known in this project, and not given",
                )
                self._ledger.add(
                    make_injection(
                        now,
                        injections.InjectionKind.PROMPT,
                        client=session.client,
                        session=session.session,
                        project=session.project,
                        prompt=message.content,
                        lines=[line],
                        outcome=injections.InjectionOutcome.SAID_AGAIN,
                    )
                )

    def _was_given(self, session: AgentSession, words: frozenset[str]) -> bool:
        """Return whether a line that was injected into a session has most of the keywords `words`."""
        given = self._ledger.find(
            injections.InjectionFilter(session=session.session), limit=GIVEN_READ_MAX
        )
        return any(
            len(words & find_keywords(line.text)) >= REPEATED_SHARE_MIN * len(words)
            for injection in given
            if injection.outcome is not injections.InjectionOutcome.SAID_AGAIN
            for line in injection.lines
        )

    def _count_call(
        self, call: events.HookCall, event: str, outcome: HookOutcome, duration_s: float
    ) -> None:
        """Add a call to the stored counts under the name `event`, and publish an event."""
        try:
            self._agents.count_call(
                AgentCall(
                    client=call.client,
                    event=event,
                    called_at=self._clock.now(),
                    duration_ms=duration_s * 1_000,
                    stored=outcome.stored,
                    characters=len(outcome.context),
                    failure=outcome.failure,
                )
            )
        except MnemosynedError as error:
            log.warning("hook_not_counted", code=error.code)
        self._events.publish(
            upkeep.EventKind.CAPTURED,
            client=call.client,
            hook=event,
            count=outcome.stored,
            message=outcome.failure,
        )
