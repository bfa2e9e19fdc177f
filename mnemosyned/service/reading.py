"""Queries from requests: questions with their times, sources and words, selections, and pages of lists."""

from __future__ import annotations

import hashlib
import threading
import time
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, time as time_of_day, timedelta
from itertools import accumulate
from math import log2
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

import msgspec

from mnemosyned.errors import BatchChanged, InvalidRequest, MnemosynedError
from mnemosyned.instants import in_zone, shift, shift_months
from mnemosyned.logs import logger
from mnemosyned.memory import masking, ports, values
from mnemosyned.memory.capture import SESSIONS_MAX
from mnemosyned.memory.clock import Clock
from mnemosyned.memory.forgetting import ForgetFilter, Newest
from mnemosyned.memory.listing import ListFilter, parse_cursor
from mnemosyned.search import query, ranking
from mnemosyned.service.intake import CHUNK, split_into_chunks
from mnemosyned.text.dates.questions import TimeSpan, parse_times
from mnemosyned.text.languages.tables import TimeOrder
from mnemosyned.text.terms import Terms, cut_snippet, parse_content_terms, parse_terms
from mnemosyned.verbs import listing
from mnemosyned.verbs.exchange import Export
from mnemosyned.verbs.memories import Filtered, Recall
from mnemosyned.verbs.request import instant, names, read_span, to_utc
from mnemosyned.verbs.times import local_zone

if TYPE_CHECKING:
    from mnemosyned.storage.common.listing import ListStore

_INSTANT = timedelta(microseconds=1)
_SHOWN_BEFORE = {"hour": timedelta(hours=23), "day": timedelta(days=29)}
"""Length of the period before the last hour or day for a request without `since`."""
SUBJECT_WORDS_MAX = 5
"""Number of subject words above which a question only mentions a time or source, and is not about it."""


def make_query(request: Recall, *, now: datetime) -> query.Query:
    """Return the query for a recall request: words, times, filters, and the subject of the question."""
    asked_at = instant(request.asked_at) or in_zone(now, local_zone())
    times = parse_times(request.query, asked_at)
    filters = read_filters(request)
    if filters["since"] and not (times.spans or times.order):
        # "what did I do?" asks for what was said in the period of the filters.
        timed = parse_times(f"{request.query} yesterday", asked_at)
        span = TimeSpan(filters["since"], filters["until"] or asked_at)
        if timed.only_time and span.since < span.until:
            times = replace(timed, spans=(span,))
    asked = query.AskedSource()
    subject: tuple[str, ...] = ()
    is_timed = bool(times.spans or times.order)
    if is_timed:
        asked = query.asked_source(times.subject_text)
        subject = query.subject_words(times.subject_text, asked)
    if len(subject) > SUBJECT_WORDS_MAX:
        # A question that tells a whole story has words of its own to be found by.
        is_timed = False
        asked, times = query.AskedSource(), replace(times, order=None)
    topic = None if times.spans or times.order else ranking.broad_topic(request.query)
    limit = request.limit
    if topic is not None:
        limit = max(limit, min(ranking.RANKED_MAX, ranking.POOL_PER_RESULT * limit))
    if times.only_time:
        terms = parse_content_terms(times.remaining_text)
    else:
        # Without the words for times, and without one for an order, as "last", if the question names a
        # kind of source, or asks for what is current. If no word is left, all of the question count.
        is_order_alone = times.order is TimeOrder.CURRENT or bool(asked)
        is_left_out = times.order and is_order_alone and not times.spans
        text = times.subject_text if is_left_out else times.remaining_text
        terms = parse_terms(text) or parse_terms(request.query)
    return query.Query(
        terms=(parse_content_terms(topic) if topic else None) or terms,
        limit=limit,
        topic=topic,
        spans=times.spans,
        order=times.order,
        subject=Terms(subject, ()) if is_timed else None,
        asked=asked,
        expected=query.expected_answer(request.query),
        only_then=times.only_time,
        now=asked_at,
        explain=request.explain,
        tier=request.tier,
        valid_at=now,
        superseded=request.history,
        **filters,
    )


def read_filters(
    request: Recall | listing.ListMemories | Filtered[Any] | Export, *, prefix: str = ""
) -> dict[str, Any]:
    """Return {field of `MemoryFilter`: value} for all filters, empty for those that a request does not have.

    With a `prefix`, the request's field for `session` is `<prefix>session`; tags and times have none. Raises
    `InvalidRequest` and `InvalidTime`.
    """
    return {
        **{
            field.filter: names(getattr(request, prefix + field.name, None))
            for field in values.FILTER_FIELDS
        },
        "tags": values.tag_names(names(request.tag), field="tag"),
        **read_span(request.since, request.until),
    }


STEPS = 4
"""Steps of time for each doubling: a percentile is right to within 9%."""
RECALL_MS_MIN = 1 / 16
SAVED_EVERY_S = 60.0
GROWTH_BYTES = 1 << 20
"""Minimum change in the database's size that is worth a write."""

log = logger()


@dataclass(eq=False, kw_only=True)
class ListService:
    """The verbs that list what is kept, and counts of recalls by the time they took; thread-safe.

    A recall never waits for the store: its count is kept in memory until it is saved.
    """

    store: ListStore
    clock: Clock
    bytes_on_disk: Callable[[], int]
    """Returns the size of the database; 0 if it is unknown."""

    def __post_init__(self) -> None:
        self._lock = threading.Lock()
        self._unsaved = Counter[int]()
        self._saved_bytes: int | None = None
        self._next_save = time.monotonic() + SAVED_EVERY_S

    def list_memories(self, request: listing.ListMemories) -> listing.Listed:
        """Return one page of memories or summaries, with secrets masked unless revealed.

        Raises `InvalidRequest` and `InvalidTime`.
        """
        if request.level and request.tier not in (None, values.Tier.EPISODIC):
            raise InvalidRequest(
                f"level is for summaries, and {request.tier} has none; leave `tier` out",
                field="level",
            )
        terms = parse_terms(request.query) if request.query else None
        if terms is not None and not terms:
            raise InvalidRequest("query has no word to search for", field="query")
        chosen = ListFilter(
            limit=request.limit,
            terms=terms,
            project=request.project or "",
            order=request.order,
            after=parse_cursor(request.after) if request.after else None,
            tier=request.tier,
            level=listing.LEVELS.index(request.level) if request.level else None,
            pinned=request.pinned,
            id_prefix=request.id_prefix or "",
            valid_at=None if request.history else self.clock.now(),
            **read_filters(request),
        )
        page = self.store.page(chosen)
        memories, summaries = page.memories, page.summaries
        if not request.reveal:
            memories = masking.mask_together(memories)
            summaries = [masking.mask_episode(summary) for summary in summaries]
        return listing.Listed(
            memories,
            [masking.without_superseded(summary) for summary in summaries],
            page.next.encode() if page.next else None,
            page.ended,
        )

    def sessions(self, request: listing.Sessions) -> listing.SessionList:
        """Return sessions whose names begin with a prefix, up to a limit, and the total number."""
        begin = request.prefix or ""
        totals = [
            each for each in self.store.sessions() if each.session.startswith(begin)
        ]
        return listing.SessionList(totals[: request.limit], len(totals))

    def sources(self, request: listing.Sources) -> listing.SourceList:
        """Return sources whose names begin with a prefix, up to a limit, and the total number."""
        begin, every = request.prefix or "", self.store.sources()
        totals = [each for each in every if (each.source or "").startswith(begin)]
        return listing.SourceList(totals[: request.limit], len(totals))

    def count_today(self) -> int:
        """Return the number of memories of today, in this machine's time zone."""
        now = in_zone(self.clock.now(), local_zone())
        midnight = now.replace(hour=0, minute=0, second=0, microsecond=0, fold=0)
        bounds = [midnight, shift(midnight, timedelta(days=1))]
        return self.store.count_periods(bounds)[0][0]

    def days(self, request: listing.Days) -> listing.DayList:
        """Return the counts of each day, hour or month of a period, the oldest first.

        Raises `InvalidRequest` for more than `DAYS_MAX` counts, an end before the beginning, and an
        unknown zone.
        """
        try:
            zone = ZoneInfo(request.zone) if request.zone else local_zone()
        except (LookupError, ValueError, OSError) as error:
            raise InvalidRequest(
                f"zone: {request.zone!r} is no time zone here; give one such as Europe/Berlin",
                field="zone",
            ) from error
        until = to_utc(request.until, field="until")
        end = shift(until, -_INSTANT) if until else self.clock.now()
        last = in_zone(end, zone)
        if since := to_utc(request.since, field="since"):
            first = in_zone(since, zone)
        elif request.by == "month":
            first = shift_months(last, -11)
        else:
            first = shift(last, -_SHOWN_BEFORE[request.by])
        start = datetime.combine(first.date(), time_of_day(), zone)
        if request.by == "month":
            start = start.replace(day=1)
        elif request.by == "hour":
            start = start.replace(hour=first.hour)
        bounds = [
            shift_months(start, number)
            if request.by == "month"
            else shift(start, timedelta(**{f"{request.by}s": number}))
            for number in range(listing.DAYS_MAX + 2)
        ]
        count = bisect_right(bounds, last)
        if count < 1:
            problem = "after until; exchange them" if until else "in the future"
            raise InvalidRequest(f"since is {problem}", field="since")
        if count > listing.DAYS_MAX:
            raise InvalidRequest(
                f"since and until are 1 to {listing.DAYS_MAX} {request.by}s apart; ask for fewer",
                field="since",
            )
        del bounds[count + 1 :]
        counts = zip(bounds, self.store.count_periods(bounds), strict=False)
        hours = request.by == "hour"
        days = [
            listing.DayTotals(begins.date(), *totals, begins.hour if hours else None)
            for begins, totals in counts
        ]
        return self.with_figures(listing.DayList(days, request.by))

    def count_recall(self, duration_s: float) -> None:
        """Count a recall that took so many seconds."""
        step = round(log2(max(duration_s * 1_000, RECALL_MS_MIN)) * STEPS)
        with self._lock:
            self._unsaved[step] += 1

    def save_if_due(self) -> None:
        """Save the figures if they were last saved at least `SAVED_EVERY_S` seconds ago."""
        if time.monotonic() >= self._next_save:
            self.save_figures()

    def save_figures(self) -> None:
        """Save recall counts, and the database size if it changed much; log a failure, keep the counts."""
        self._next_save = time.monotonic() + SAVED_EVERY_S
        with self._lock:
            unsaved, self._unsaved = self._unsaved, Counter()
        try:
            size = self.bytes_on_disk()
            if self._saved_bytes is None:
                self._saved_bytes = size
            if unsaved or abs(size - self._saved_bytes) >= GROWTH_BYTES:
                self.store.add_figures(self._today().isoformat(), unsaved, size)
                self._saved_bytes = size
        except MnemosynedError as error:
            with self._lock:
                self._unsaved.update(unsaved)
            log.warning("figures_not_saved", code=error.code)

    def with_figures(self, totals: listing.DayList) -> listing.DayList:
        """Return ascending days with figures on recalls and size on disk added; hours and months unchanged."""
        if totals.by != "day":
            return totals
        saved, today = self.store.figures(), self._today()
        first = totals.days[0].day.isoformat()
        size = ([0] + [size for day, (_, size) in saved.items() if day < first])[-1]
        days = []
        for total in totals.days:
            times, size = saved.get(total.day.isoformat(), (Counter[int](), size))
            if total.day == today:
                size = self.bytes_on_disk()
                with self._lock:
                    times = times + self._unsaved
            day = msgspec.structs.replace(
                total,
                recalls=times.total(),
                recall_p50_ms=_percentile_ms(times, 0.5),
                recall_p95_ms=_percentile_ms(times, 0.95),
                # It is tomorrow already in a zone ahead of this machine's.
                bytes_on_disk=size if (total.day - today).days <= 1 else 0,
            )
            days.append(day)
        return listing.DayList(days)

    def _today(self) -> date:
        return in_zone(self.clock.now(), local_zone()).date()


LISTED_MAX = 10_000
"""Maximum memories that a preview lists at once, in some 0.4 s and 3 MB; `after` lists the rest."""
SNIPPET_CHARS = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectedMemories:
    """Memories that a call selects."""

    ids: Sequence[str]
    learned: Sequence[str] = ()
    """Learnings that match the filters themselves."""
    mark: str = ""
    """Fingerprint of the selection."""


def select_memories(
    store: ports.MemoryStore, request: Filtered[Any], *, prefix: str = ""
) -> SelectedMemories:
    """Return the memories and learnings that a request selects by ids or filters, with their hash as a mark.

    The id of a summary selects its originals; learnings are selected only by filters. In the names of the
    request's filters, `prefix` comes before a field such as `session`. Raises `NotFound`, `InvalidRequest`,
    `InvalidTime`, and `BatchChanged` if the request has the mark of a preview that selected others.
    """
    if request.after is not None and not request.dry_run:
        raise InvalidRequest(
            "after needs dry_run: it lists the rest of a preview", field="after"
        )
    columns = [
        prefix + field.name
        for field in values.FILTER_FIELDS
        if hasattr(request, prefix + field.name)
    ]
    filters = ["query", "tag", *columns, "since", "until", "person", "project"]
    is_filtered = any(getattr(request, name) for name in filters)
    if request.id is not None:
        if is_filtered:
            raise InvalidRequest("give either an id or filters, not both", field="id")
        ids: dict[str, None] = {}
        for id in names(request.id):
            is_summary = isinstance(store.memories.get(id), values.Episode)
            originals = store.deletion.ids_under(id) if is_summary else [id]
            ids.update(dict.fromkeys(originals))
        selected = SelectedMemories(ids=list(ids), mark=_digest_ids(ids))
    elif is_filtered:
        selected = _select_by_filters(store, request, prefix)
    else:
        raise InvalidRequest(
            "say which memories: give an id or a filter, such as `query` or `since`",
            field="id",
        )
    if request.mark and request.mark != selected.mark:
        raise BatchChanged(
            "what matches has changed since the preview, and nothing was done; look at a new "
            "preview",
            field="mark",
        )
    return selected


def _select_by_filters(
    store: ports.MemoryStore, request: Filtered[Any], prefix: str
) -> SelectedMemories:
    """Return the memories and learnings that a request's filters select, and the mark of this selection.

    If the request has the mark of a preview, records newer than the preview are left out. The names of filters
    in the request begin with `prefix`. Raises `InvalidRequest` and `InvalidTime`.
    """
    deletion, mark = store.deletion, request.mark
    newest = deletion.newest()
    if mark:
        memory, _, rest = mark.partition(".")
        learning = rest.partition(".")[0]
        if not (memory.isdecimal() and learning.isdecimal()):
            raise InvalidRequest("mark is not the mark of a preview", field="mark")
        newest = Newest(int(memory), int(learning))
    words = parse_terms(request.query) if request.query else None
    if words is not None and not words:
        raise InvalidRequest("query has no word to search for", field="query")
    if request.person is not None and not request.person.strip():
        raise InvalidRequest("person is empty", field="person")
    filters = read_filters(request, prefix=prefix)
    if request.project:
        wanted = filters["sessions"]
        there = store.agents.project_sessions(request.project, SESSIONS_MAX)
        filters["sessions"] = tuple(n for n in there if not wanted or n in wanted)
        if not filters["sessions"]:  # no session at all would select every memory
            return SelectedMemories(ids=[], mark=f"{newest.memory}.{newest.learning}.")
    chosen = ForgetFilter(terms=words, person=request.person, newest=newest, **filters)
    ids = deletion.select(chosen)
    learned = deletion.select_learnings(chosen)
    digest = _digest_ids([*ids, "", *learned])
    seen = f"{newest.memory}.{newest.learning}.{digest}"
    return SelectedMemories(ids=ids, learned=learned, mark=seen)


def preview_selection(
    store: ports.MemoryStore, selected: SelectedMemories, *, after: str | None
) -> dict[str, Any]:
    """Return the fields of a `SelectionPreview`: the count, and the page of lines after an id."""
    lines, further = preview_lines(store, selected.ids, after=after)
    return {
        "dry_run": True,
        "memories": len(selected.ids),
        "lines": lines,
        "further": further,
        "mark": selected.mark,
    }


def preview_lines(
    store: ports.MemoryStore, ids: Sequence[str], *, after: str | None
) -> tuple[list[values.PreviewLine], int]:
    """Return a line for each of the next `LISTED_MAX` memories, and the number of further memories.

    The lines begin after the id `after`, or with the first of `ids` for None. Raises
    `InvalidRequest` if `after` is not among the ids.
    """
    remaining = ids
    if after is not None:
        if after not in ids:
            raise InvalidRequest(
                f"none of the memories selected has the id {after!r}; leave after out to list "
                "them from the beginning",
                field="after",
            )
        remaining = ids[ids.index(after) + 1 :]
    lines: list[values.PreviewLine] = []
    for chunk in split_into_chunks(remaining[:LISTED_MAX], CHUNK):
        found = {each.id: each for each in store.memories.existing(chunk)}
        # Some may have been forgotten by somebody else meanwhile.
        for memory in masking.mask_together([found[id] for id in chunk if id in found]):
            text = " ".join(memory.content.split())
            line = values.PreviewLine(
                id=memory.id,
                tier=memory.tier,
                created_at=memory.created_at,
                session=memory.session,
                role=memory.role,
                snippet=cut_snippet(text, Terms((), ()), width=SNIPPET_CHARS),
            )
            lines.append(line)
    return lines, max(0, len(remaining) - LISTED_MAX)


def _digest_ids(ids: Iterable[str]) -> str:
    """Return a digest of ids, which does not depend on their order."""
    return hashlib.sha256("\n".join(sorted(ids)).encode()).hexdigest()[:24]


def _percentile_ms(times: Counter[int], share: float) -> float | None:
    """Return the time in ms that a share of recalls took at most, from counts by step; None without recalls."""
    steps = sorted(times)
    for step, count in zip(
        steps, accumulate(times[each] for each in steps), strict=True
    ):
        if count >= share * times.total():
            return float(f"{2 ** (step / STEPS):.3g}")
    return None
