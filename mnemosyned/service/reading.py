"""Queries from requests: questions with their times, sources and words, and pages of lists."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, time, timedelta
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

from tzlocal import get_localzone

from mnemosyned.errors import InvalidRequest
from mnemosyned.instants import in_zone, shift, shift_months
from mnemosyned.memory.clock import Clock
from mnemosyned.memory.fields import FILTER_FIELDS
from mnemosyned.memory.listing import ListFilter, parse_cursor
from mnemosyned.memory.masking import mask_episode, mask_memory, without_superseded
from mnemosyned.memory.values import Tier, tag_names
from mnemosyned.search.broad import POOL_PER_RESULT, RANKED_MAX, broad_topic
from mnemosyned.search.query import (
    AskedSource,
    Query,
    asked_source,
    expected_answer,
    subject_words,
)
from mnemosyned.service.intake import to_utc
from mnemosyned.text.dates.formatting import format_period
from mnemosyned.text.dates.questions import QuestionTimes, parse_times
from mnemosyned.text.languages.tables import TimeOrder
from mnemosyned.text.terms import Terms, parse_content_terms, parse_terms
from mnemosyned.verbs.exchange import Export
from mnemosyned.verbs.listing import (
    DAYS_MAX,
    LEVELS,
    DayList,
    Days,
    DayTotals,
    Listed,
    ListMemories,
    SessionList,
    Sessions,
    SourceList,
    Sources,
)
from mnemosyned.verbs.memories import Filtered, Recall
from mnemosyned.verbs.request import instant, names
from mnemosyned.verbs.times import local_zone

if TYPE_CHECKING:
    from mnemosyned.storage.common.listing import ListStore

_INSTANT = timedelta(microseconds=1)
_SHOWN_BEFORE = {"hour": timedelta(hours=23), "day": timedelta(days=29)}
"""Time before the last hour or day that is counted where a request has no `since`."""
_MONTHS_SHOWN_BEFORE = 11
SUBJECT_WORDS_MAX = 5
"""A question with more words of its own names a time and a source in passing."""


def make_query(request: Recall, *, now: datetime) -> Query:
    """Return the query that a recall request stands for, with its times, filters and subject."""
    asked_at = instant(request.asked_at) or in_zone(now, local_zone())
    times = parse_times(request.query, asked_at)
    asked = AskedSource()
    subject: tuple[str, ...] = ()
    is_timed = bool(times.spans or times.order)
    if is_timed:
        asked = asked_source(times.subject_text)
        subject = subject_words(times.subject_text, asked)
    if len(subject) > SUBJECT_WORDS_MAX:
        # A question that tells a whole story has words of its own to be found by.
        is_timed = False
        asked, times = AskedSource(), replace(times, order=None)
    topic = None if times.spans or times.order else broad_topic(request.query)
    limit = request.limit
    if topic is not None:
        limit = max(limit, min(RANKED_MAX, POOL_PER_RESULT * limit))
    terms = _search_terms(request.query, times, asked)
    return Query(
        terms=(parse_content_terms(topic) if topic else None) or terms,
        limit=limit,
        topic=topic,
        spans=times.spans,
        order=times.order,
        subject=Terms(subject, ()) if is_timed else None,
        asked=asked,
        expected=expected_answer(request.query),
        only_then=times.only_time,
        now=asked_at,
        explain=request.explain,
        tier=request.tier,
        valid_at=now,
        superseded=request.history,
        **read_filters(request),
    )


def read_filters(
    request: Recall | ListMemories | Filtered[Any] | Export, *, prefix: str = ""
) -> dict[str, Any]:
    """Return {field of `MemoryFilter`: value} for the filters that a request names.

    The request's names of fields such as `session` begin with `prefix`. Raises `InvalidRequest` and
    `InvalidTime`.
    """
    return {
        **{
            field.filter: names(getattr(request, prefix + field.name, None))
            for field in FILTER_FIELDS
        },
        "tags": tag_names(names(request.tag), field="tag"),
        "since": to_utc(request.since, field="since"),
        "until": to_utc(request.until, field="until"),
    }


def _search_terms(question: str, times: QuestionTimes, asked: AskedSource) -> Terms:
    """Return the words of a question to search for, without the words for its times.

    A word for an order, as "last", is left out if the question names a kind of source (`asked`), or
    asks for what is current. If no word is left, all of the question count.
    """
    if times.only_time:
        return parse_content_terms(times.remaining_text)
    text = times.remaining_text
    is_order_alone = times.order is TimeOrder.CURRENT or bool(asked)
    if times.order and is_order_alone and not times.spans:
        text = times.subject_text
    return parse_terms(text) or parse_terms(question)


def missing_time_note(query: Query, *, has_hits: bool) -> str:
    """Return a note that no hit is from the time which the question names."""
    zone = query.now.tzinfo if query.now else None
    span = query.spans[0]
    first = in_zone(span.since, zone)
    last = in_zone(shift(span.until, -_INSTANT), zone)
    period = format_period(first.date(), last.date())
    note = f"nothing that matches is from {period}"
    return f"{note}; what follows is from other times" if has_hits else note


@dataclass(eq=False, kw_only=True)
class ListService:
    """The verbs that list what is kept."""

    store: ListStore
    clock: Clock

    def list_memories(self, request: ListMemories) -> Listed:
        """Return one page of memories or summaries, with secrets masked unless revealed."""
        page = self.store.page(self._list_filter(request))
        memories, summaries = page.memories, page.summaries
        if not request.reveal:
            memories = [mask_memory(memory) for memory in memories]
            summaries = [mask_episode(summary) for summary in summaries]
        return Listed(
            memories,
            [without_superseded(summary) for summary in summaries],
            page.next.encode() if page.next else None,
        )

    def sessions(self, request: Sessions) -> SessionList:
        """Return sessions whose names begin with a prefix, up to a limit, and the total number."""
        prefix = request.prefix or ""
        totals = [
            total for total in self.store.sessions() if total.session.startswith(prefix)
        ]
        return SessionList(totals[: request.limit], len(totals))

    def sources(self, request: Sources) -> SourceList:
        """Return sources whose names begin with a prefix, up to a limit, and how many there are."""
        prefix = request.prefix or ""
        totals = [
            total
            for total in self.store.sources()
            if (total.source or "").startswith(prefix)
        ]
        return SourceList(totals[: request.limit], len(totals))

    def count_today(self) -> int:
        """Count the memories of today in this machine's time zone."""
        zone = get_localzone()
        midnight = datetime.combine(in_zone(self.clock.now(), zone), time(), zone)
        bounds = [midnight, shift(midnight, timedelta(days=1))]
        return self.store.count_periods(bounds)[0][0]

    def days(self, request: Days) -> DayList:
        """Return the counts of each day, hour or month of a time, the oldest first.

        Raises `InvalidRequest` for more than `DAYS_MAX` of them, for a time that ends before it
        begins, and for an unknown zone.
        """
        try:
            zone = ZoneInfo(request.zone) if request.zone else get_localzone()
        except (LookupError, ValueError, OSError) as error:
            raise InvalidRequest(
                f"zone: {request.zone!r} is no time zone here; give one such as Europe/Berlin",
                field="zone",
            ) from error
        until = to_utc(request.until, field="until")
        end = shift(until, -_INSTANT) if until else self.clock.now()
        first = last = in_zone(end, zone)
        if since := to_utc(request.since, field="since"):
            first = in_zone(since, zone)
        elif request.by == "month":
            first = shift_months(last, -_MONTHS_SHOWN_BEFORE)
        else:
            first = shift(last, -_SHOWN_BEFORE[request.by])
        start = datetime.combine(first.date(), time(), zone)
        count = (last.date() - first.date()).days + 1
        if request.by == "month":
            start = start.replace(day=1)
            count = (last.year - first.year) * 12 + last.month - first.month + 1
        elif request.by == "hour":
            start = start.replace(hour=first.hour)
            count = 24 * (count - 1) + last.hour - first.hour + 1
        if count < 1:
            problem = "after until; exchange them" if until else "in the future"
            raise InvalidRequest(f"since is {problem}", field="since")
        if count > DAYS_MAX:
            raise InvalidRequest(
                f"since and until are 1 to {DAYS_MAX} {request.by}s apart; ask for fewer",
                field="since",
            )
        bounds = [
            shift_months(start, number)
            if request.by == "month"
            else shift(start, timedelta(**{f"{request.by}s": number}))
            for number in range(count + 1)
        ]
        counts = zip(bounds, self.store.count_periods(bounds), strict=False)
        hours = request.by == "hour"
        return DayList(
            [
                DayTotals(begins.date(), *totals, begins.hour if hours else None)
                for begins, totals in counts
            ],
            request.by,
        )

    def _list_filter(self, request: ListMemories) -> ListFilter:
        """Return the filter for a list request. Raises `InvalidRequest` and `InvalidTime`."""
        if request.level and request.tier not in (None, Tier.EPISODIC):
            raise InvalidRequest(
                f"level is for summaries, and {request.tier} has none; leave tier out",
                field="level",
            )
        terms = parse_terms(request.query) if request.query else None
        if terms is not None and not terms:
            raise InvalidRequest("query has no word to search for", field="query")
        return ListFilter(
            limit=request.limit,
            terms=terms,
            project=request.project or "",
            order=request.order,
            after=parse_cursor(request.after) if request.after else None,
            tier=request.tier,
            level=LEVELS.index(request.level) if request.level else None,
            pinned=request.pinned,
            id_prefix=request.id_prefix or "",
            valid_at=None if request.history else self.clock.now(),
            **read_filters(request),
        )
