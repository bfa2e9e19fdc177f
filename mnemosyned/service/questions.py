"""Reads a question: its times, its order, the source it asks for and its words."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

from mnemosyned.domain.dates.questions import QuestionTimes, parse_times
from mnemosyned.domain.dates.relative import format_period
from mnemosyned.domain.instants import in_zone, shift
from mnemosyned.domain.languages.language import TimeOrder
from mnemosyned.domain.search.query import Query
from mnemosyned.domain.search.questions.expected_answers import expected_answer
from mnemosyned.domain.search.questions.source_hints import (
    AskedSource,
    asked_source,
    subject_words,
)
from mnemosyned.domain.tags import tag_names
from mnemosyned.domain.text.terms import Terms, content_terms, terms
from mnemosyned.service.intake import to_utc
from mnemosyned.verbs.memories import Recall
from mnemosyned.verbs.request import instant, names
from mnemosyned.verbs.times import local_zone

_INSTANT = timedelta(microseconds=1)
SUBJECT_WORDS_MAX = 5
"""A question with more words of its own names a time and a source in passing."""


def query_of(request: Recall, *, now: datetime) -> Query:
    """Return the query that a recall asks at this time."""
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
    return Query(
        terms=_terms(request.query, times, asked),
        limit=request.limit,
        spans=times.spans,
        order=times.order,
        subject=Terms(subject, ()) if is_timed else None,
        asked=asked,
        expected=expected_answer(request.query),
        only_then=times.only_time,
        now=asked_at,
        explain=request.explain,
        sessions=names(request.session),
        sources=names(request.source),
        tags=tag_names(names(request.tag), field="tag"),
        tier=request.tier,
        since=to_utc(request.since, field="since") if request.since else None,
        until=to_utc(request.until, field="until") if request.until else None,
        valid_at=now,
        superseded=request.history,
    )


def _terms(question: str, times: QuestionTimes, asked: AskedSource) -> Terms:
    """Return the words to search for; the word of an order is none of them."""
    if times.only_time:
        return content_terms(times.remaining_text)
    text = times.remaining_text
    is_order_alone = times.order is TimeOrder.CURRENT or bool(asked)
    if times.order and is_order_alone and not times.spans:
        text = times.subject_text
    return terms(text) or terms(question)


def missing_time_note(query: Query, *, has_hits: bool) -> str:
    """Return what to say where nothing of the time that a question names was found."""
    zone = query.now.tzinfo if query.now else None
    span = query.spans[0]
    first = in_zone(span.since, zone)
    last = in_zone(shift(span.until, -_INSTANT), zone)
    period = format_period(first.date(), last.date())
    note = f"nothing that matches is from {period}"
    return f"{note}; what follows is from other times" if has_hits else note
