"""`MemoryService`: how each verb is done, one short method for each."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from mnemosyned.admission import check_metadata, check_text, happened, utc
from mnemosyned.domain.consolidation import CycleReport, Trigger
from mnemosyned.domain.details import masked_episode, masked_shown
from mnemosyned.domain.errors import (
    BatchChanged,
    ContentTooLarge,
    EmptyContent,
    InvalidRequest,
    MnemosynedError,
    ShuttingDown,
    SleepInProgress,
)
from mnemosyned.domain.hits import hits
from mnemosyned.domain.memory import Acknowledged, Episode, Memory, new_id
from mnemosyned.domain.ports import Clock, Draft, EmbedderStanding, MemoryStore
from mnemosyned.domain.ranking import rank
from mnemosyned.domain.recall import Query
from mnemosyned.domain.sensitive import SecretRule, admitted, masked_memory
from mnemosyned.domain.terms import terms
from mnemosyned.domain.when import times
from mnemosyned.logs import logger
from mnemosyned.sleep.cycle import SleepCycle
from mnemosyned.sleep.scheduler import SleepScheduler
from mnemosyned.verbs import (
    Expand,
    Expanded,
    Forget,
    Forgotten,
    Get,
    Got,
    Log,
    Logged,
    Recall,
    Recalled,
    Remember,
    RememberedMany,
    RememberMany,
    Request,
    Sleep,
    SleepStatus,
    Stats,
    Status,
)

# Loaded by who has an embedding model.
if TYPE_CHECKING:
    from mnemosyned.embedders.vectors import Vectors

R = TypeVar("R")

FORGET_TRIES = 5
RELIEF_WAIT_S = 600.0
"""How long a full working memory waits for the running cycle before it gives up until asked."""
DUE_COUNTED_MAX = 100_000
CAP_HYSTERESIS = 0.1
"""At the cap, this share of it is consolidated at once, so that it is not hit again at once."""


log = logger()


class SystemClock:
    """The machine's clock."""

    def now(self) -> datetime:
        return datetime.now(UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What the service takes."""

    content_bytes_max: int
    wm_max: int
    secrets: SecretRule = SecretRule.KEEP


@dataclass(frozen=True, slots=True, kw_only=True)
class About:
    """What `status` says of the installation."""

    version: str
    database: Path
    schema_version: int


class MemoryService:
    """The verbs over one store, safe to call from any thread."""

    def __init__(
        self,
        *,
        store: MemoryStore,
        cycle: SleepCycle,
        clock: Clock,
        limits: Limits,
        about: About,
        scheduler: SleepScheduler | None = None,
        vectors: Vectors | None = None,
    ) -> None:
        self._store = store
        self._cycle = cycle
        self._clock = clock
        self._about = about
        self._scheduler = scheduler
        self._vectors = vectors
        self._started = time.monotonic()
        self._stopping = False
        self._relieving = threading.Lock()
        self.use_limits(limits)
        self._verbs: dict[type[Request[Any]], Callable[[Any], Any]] = {
            Remember: self.remember,
            RememberMany: self.remember_many,
            Recall: self.recall,
            Get: self.get,
            Expand: self.expand,
            Sleep: self.sleep,
            Forget: self.forget,
            Status: self.status,
            Log: self.log,
        }

    def call(self, request: Request[R]) -> R:
        """Run one verb. Raises an error of the domain, never half of the work."""
        if self._stopping and request.writes:
            raise ShuttingDown(
                "the daemon is stopping and takes no more writes; start it and send this again"
            )
        result: R = self._verbs[type(request)](request)
        return result

    def stop_writes(self) -> None:
        """From now on, refuse every verb that changes the store."""
        self._stopping = True

    def use_limits(self, limits: Limits) -> None:
        """From now on, take this much."""
        self.limits = limits
        self._relieve_above = limits.wm_max

    def use_scheduler(self, scheduler: SleepScheduler) -> None:
        """Have this scheduler relieve working memory in the background, and report it."""
        self._scheduler = scheduler

    # ------------------------------------------------------------- remember

    def remember(self, request: Remember) -> Acknowledged:
        return self._keep([self._draft(request, self._clock.now())])[0]

    def remember_many(self, request: RememberMany) -> RememberedMany:
        now = self._clock.now()
        drafts = [
            self._draft(memory, now, place=f"memories[{index}].")
            for index, memory in enumerate(request.memories)
        ]
        return RememberedMany([] if request.dry_run else self._keep(drafts))

    def _keep(self, drafts: Sequence[Draft]) -> list[Acknowledged]:
        answers = self._store.remember(drafts)
        if self._vectors:
            self._vectors.remembered()
        try:
            self._keep_cap()
        except SleepInProgress:
            log.debug("relief_skipped", reason="a cycle is running, which relieves it too")
        except MnemosynedError:  # what was acknowledged stays so, whatever becomes of the cap
            log.exception("relief_failed")
        return [
            replace(answer, secrets=draft.secrets) if draft.secrets else answer
            for answer, draft in zip(answers, drafts, strict=True)
        ]

    def _keep_cap(self) -> None:
        if self._store.working_count() <= self._relieve_above:
            return
        if self._scheduler:
            self._scheduler.relieve_soon()
        else:
            self.relieve()

    def _draft(self, request: Remember, now: datetime, *, place: str = "") -> Draft:
        for name in ("content", "id", "session", "source", "role"):
            check_text(getattr(request, name), field=place + name)
        content = request.content
        if not content.strip():
            raise EmptyContent(
                "there is nothing to remember: content is empty", field=place + "content"
            )
        size = len(content.encode())
        if size > self.limits.content_bytes_max:
            raise ContentTooLarge(
                f"content has {size:,} bytes, the limit is {self.limits.content_bytes_max:,}; "
                "part it, or raise limits.content_bytes_max",
                field=place + "content",
            )
        check_metadata(request.metadata, field=place + "metadata")
        if isnan(request.importance):
            raise InvalidRequest("importance is not a number", field=place + "importance")
        memory = Memory(
            id=request.id or new_id(now),
            content=content,
            created_at=happened(request.created_at, now, field=place + "created_at"),
            session=request.session,
            source=request.source,
            role=request.role,
            importance=request.importance,
            pinned=request.pinned,
            metadata=request.metadata,
        )
        memory, done = admitted(memory, self.limits.secrets, place=place)
        return Draft(memory, dedupe=request.dedupe, secrets=done)

    def relieve(self) -> None:
        """Bring working memory under its cap by consolidating the oldest early."""
        with self._relieving:
            if self._scheduler:  # in the background there is time; an embedded caller waits for us
                self._cycle.wait_idle(RELIEF_WAIT_S)
            count = self._store.working_count()
            cap = self.limits.wm_max
            if count <= cap:
                return
            excess = count - int(cap * (1 - CAP_HYSTERESIS))
            self._cycle.run(trigger=Trigger.CAP, oldest=excess, quick=self._scheduler is None)
            # What could not be consolidated (pinned, failed) is not tried again at every call.
            left = self._store.working_count()
            self._relieve_above = cap if left <= cap else left + max(1, int(cap * CAP_HYSTERESIS))

    # --------------------------------------------------------------- recall

    def recall(self, request: Recall) -> Recalled:
        check_text(request.query, field="query")
        asked_at = request.asked_at or self._clock.now().astimezone()
        said = times(request.query, asked_at)
        query = Query(
            terms=terms(said.rest) or terms(request.query),
            limit=request.limit,
            spans=said.spans,
            now=asked_at,
            explain=request.explain,
            sessions=_names(request.session),
            sources=_names(request.source),
            tier=request.tier,
            since=utc(request.since, field="since") if request.since else None,
            until=utc(request.until, field="until") if request.until else None,
        )
        question = self._vectors.ask(request.query) if self._vectors else None
        found = self._store.search(query)
        note = ""
        if self._vectors:
            found, note = self._vectors.near(question, query, found)
        places = rank(query, found)
        shown = self._store.show(places)
        found_hits = hits(query, places, shown if request.reveal else masked_shown(shown))
        return Recalled(found_hits, note)

    def get(self, request: Get) -> Got:
        found = self._store.get(request.id)
        if isinstance(found, Memory):
            return Got(memory=found if request.reveal else masked_memory(found))
        return Got(episode=found if request.reveal else masked_episode(found))

    def expand(self, request: Expand) -> Expanded:
        episode = self._store.get(request.id)
        if isinstance(episode, Memory):
            hint = f"; it went into episode {episode.episode}" if episode.episode else ""
            raise InvalidRequest(
                f"{request.id} is an original, not an episode{hint}; `get` shows it", field="id"
            )
        originals = self._store.originals(episode.id)
        if not request.reveal:
            originals = [masked_memory(memory, episode.details) for memory in originals]
            episode = masked_episode(episode)
        return Expanded(episode, originals)

    # ---------------------------------------------------------------- sleep

    def sleep(self, request: Sleep) -> CycleReport:
        return self._cycle.run(
            trigger=Trigger.EXPLICIT,
            session=request.session,
            force=request.force,
            dry_run=request.dry_run,
        )

    def log(self, request: Log) -> Logged:
        return Logged(
            self._store.log(limit=request.limit, session=request.session, cycle=request.cycle)
        )

    # --------------------------------------------------------------- forget

    def forget(self, request: Forget) -> Forgotten:
        for tries_left in reversed(range(FORGET_TRIES)):
            try:
                receipt = self._forget(request.id)
            except BatchChanged:  # a cycle moved it meanwhile: look again where it is now
                if not tries_left:
                    raise
            else:
                if self._vectors:
                    self._vectors.forgot()
                self._store.scrub()
                return receipt
        raise AssertionError  # the loop returns or raises

    def _forget(self, id: str) -> Forgotten:
        found = self._store.get(id)
        if isinstance(found, Episode):
            originals = self._store.originals(found.id)
            self._store.forget(originals)
            return Forgotten(memories=len(originals), episodes_removed=1, episodes_rewritten=0)
        if found.episode is None:
            self._store.forget([found])
            return Forgotten(memories=1, episodes_removed=0, episodes_rewritten=0)
        remaining = [other for other in self._store.originals(found.episode) if other.id != id]
        if not remaining:
            self._store.forget([found])
            return Forgotten(memories=1, episodes_removed=1, episodes_rewritten=0)
        episode = self._store.get(found.episode)
        if isinstance(episode, Memory):
            raise BatchChanged("the episode changed meanwhile; try again")
        self._store.forget([found], episode=self._cycle.resummarize(episode, remaining))
        return Forgotten(memories=1, episodes_removed=0, episodes_rewritten=1)

    # --------------------------------------------------------------- status

    def status(self, _: Status) -> Stats:
        return Stats(
            version=self._about.version,
            schema_version=self._about.schema_version,
            database=str(self._about.database),
            bytes_on_disk=_bytes_on_disk(self._about.database),
            tiers=dict(self._store.totals()),
            wm_max=self.limits.wm_max,
            sleep=self._sleep_status(),
            summarizer=self._cycle.summarizer.standing(),
            embedder=self._vectors.standing() if self._vectors else EmbedderStanding(),
            pid=os.getpid(),
            uptime_s=round(time.monotonic() - self._started, 3),
        )

    def _sleep_status(self) -> SleepStatus:
        scheduler = self._scheduler
        newest = self._store.log(limit=1)
        cutoff = self._cycle.policy.cutoff(self._clock.now())
        return SleepStatus(
            auto=scheduler is not None and scheduler.next_cycle is not None,
            schedule=scheduler.description if scheduler else "off",
            last_cycle=self._cycle.last_finished or (newest[0].created_at if newest else None),
            next_cycle=scheduler.next_cycle if scheduler else None,
            running=self._cycle.running,
            due=self._store.count_due(before=cutoff, limit=DUE_COUNTED_MAX),
        )


def _names(given: str | list[str] | None) -> tuple[str, ...]:
    if given is None:
        return ()
    return (given,) if isinstance(given, str) else tuple(given)


def _bytes_on_disk(database: Path) -> int:
    total = 0
    for suffix in ("", "-wal", "-shm"):
        path = database.with_name(database.name + suffix)
        if path.exists():
            total += path.stat().st_size
    return total
