"""Pages on memories and what is known: now, search, a memory, the timeline, changes, learnings, subjects."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from datetime import UTC, date, datetime, time, timedelta
from hashlib import sha256
from itertools import chain
from typing import Any, NamedTuple

from mnemosyned import errors, ids
from mnemosyned.cli.commands.look import PeriodReader
from mnemosyned.conversation.archived import REST, WHOLE
from mnemosyned.http_messages import Response
from mnemosyned.instants import day_at, in_zone, shift_months
from mnemosyned.memory import forgetting, values
from mnemosyned.memory.listing import ListOrder
from mnemosyned.summary import rollup, statements
from mnemosyned.summary.grounding.check import SHARED_MIN, find_content_stems
from mnemosyned.summary.grounding.names import find_unknown_names
from mnemosyned.text import sentences, tokens
from mnemosyned.text.languages.tables import WEEKDAYS, count_stop_words
from mnemosyned.verbs import conversation, memories, retention
from mnemosyned.verbs.listing import Days, DayTotals, ListMemories, PeriodUnit, Projects
from mnemosyned.verbs.times import local_now, local_zone
from mnemosyned.verbs.upkeep import Status
from mnemosyned.web.application import Visit, make_change, redirect_to

LEARNING_ROWS = "30"


def show_learnings(visit: Visit) -> Response:
    """Show the page of learnings, newest first, with a form to add one."""
    chosen = visit.pick(("query", "source", "kind", "superseded"))
    page = visit.ask(
        conversation.Learnings, chosen | visit.pick(["after"]), limit=LEARNING_ROWS
    )
    kinds = list(values.LearningKind)
    return visit.show("learnings.html", chosen=chosen, page=page, kinds=kinds)


def learn(visit: Visit) -> Response:
    """Store a learning, and redirect to its page, which also shows the replaced learnings."""
    learned = visit.ask(conversation.Learn, ("content", "kind", "source"))
    return redirect_to("/memory", id=learned.learning.id)


def read_learning(visit: Visit) -> dict[str, Any]:
    """Return a learning, the learnings it replaced, and `mark`, a hash of all texts. Raises `NotFound`."""
    id = visit.field("id")
    page = visit.call(conversation.Learnings(id=id))
    for learning in page:
        if learning.id == id:
            replaced = [each for each in page if each.superseded_by == id]
            words = [(each.id, each.text) for each in (learning, *replaced)]
            mark = sha256(repr(words).encode()).hexdigest()
            return {
                "page": page,
                "learning": learning,
                "replaced": replaced,
                "mark": mark,
            }
    raise errors.NotFound(
        f"no memory, summary or learning has the id {id!r}; search for it"
    )


def show_learning(visit: Visit) -> Response:
    """Show a learning and its memory, with a form to reword the learning, or the page to remove it."""
    shown = read_learning(visit)
    if visit.request.path == "/unlearn":
        return visit.show("unlearn.html", **shown)
    said = None
    with suppress(errors.NotFound):  # it was forgotten just now
        if shown["learning"].memory:
            said = visit.call(memories.Get(shown["learning"].memory)).memory
    return visit.show("learning.html", said=said, **shown)


def change_learning(visit: Visit) -> Response:
    """Reword or remove a learning, unless it changed since the form was shown."""
    shown = read_learning(visit)
    if shown["mark"] != visit.field("mark"):
        raise errors.BatchChanged("it has changed: go back, and reload the page")
    if visit.request.path == "/unlearn":
        visit.call(conversation.RemoveLearning(visit.field("id")))
        return redirect_to("/learnings")
    visit.ask(conversation.EditLearning, ("id", "text"))
    return redirect_to("/memory", id=visit.field("id"))


def show_ended(visit: Visit) -> Response:
    """Show ended statements: all, those of one memory, or those whose ending was undone."""
    chosen = visit.pick(("id", "undone"))
    asked = {"undone": "all" if "id" in chosen else "false"} | chosen
    if asked["undone"] == "all":
        del asked["undone"]
    asked |= visit.pick(["after"])
    page = visit.ask(conversation.Endings, asked, limit=LEARNING_ROWS, at_once="true")
    return visit.show("ended.html", chosen=chosen, page=page)


NEWEST, MONTHS, DAYS = 200, 12, 30
"""Number of newest memories and summaries whose names are listed."""
READ_CHARS_MAX = 4_000
NAMES_MAX, FEW_NAMES = 60, 20
ROWS, FURTHER = "50", "150"
"""Memories on a page, and how many more are counted by day on the first page."""
BARS_MAX = 360
KINDS = {"name": "query", "project": "project", "source": "source"}
"""Filter of lists by the kind of a subject."""


_NO_NAMES = frozenset(f"{day}s" for day in WEEKDAYS).union(
    """stunde woche monat jahr wochenende add backup book build bump call check cut drop fix keep
    merge migrate move ping remove rename replace revert rewrite run skip split switch test use
    herrn ja nein oui""".split(),
    tokens.TITLES,
    tokens.UNITS,
    statements.COURTESIES,
)
"""Plurals of days, units, titles such as "Frau", greetings, and verbs that open a request: "Drop MySQL"."""


def count_names(
    texts: Iterable[tuple[datetime, str, str]],
) -> list[tuple[str, int, datetime]]:
    """Return the names in texts, each with its number of texts and newest time, most frequent first.

    Each text comes with its time and its speaker. If more than `FEW_NAMES` are found, names in a single text
    are left out, and all beyond `NAMES_MAX`. Spellings that differ only in case are one name, in the most
    frequent spelling.
    """
    moments: dict[str, list[datetime]] = {}
    spellings: dict[str, Counter[str]] = {}
    for moment, speaker, text in texts:
        found = find_unknown_names(text[:READ_CHARS_MAX], _NO_NAMES, "")
        names = [
            name.removesuffix("'s") for name in found if not count_stop_words(name)
        ]
        if speaker.casefold() not in rollup.SPEAKERS:
            names.append(speaker)
        names = [name for name in names if len(name) > 1 or not name.isascii()]
        for name in names:
            spellings.setdefault(name.casefold(), Counter())[name] += 1
        for key in {name.casefold() for name in names}:
            moments.setdefault(key, []).append(moment)
    # One text alone often has a word that only looks like a name.
    least = 1 if len(moments) <= FEW_NAMES else 2
    listed = [
        (spellings[key].most_common(1)[0][0], len(said), max(said))
        for key, said in moments.items()
        if len(said) >= least
    ]
    return sorted(listed, key=lambda each: (-each[1], each[0]))[:NAMES_MAX]


def count_by_period(days: Iterable[date]) -> tuple[str, list[DayTotals]]:
    """Return a unit (day, week or month), and the number of given days in each period of that unit.

    The unit is the shortest that needs at most 60 periods, else month; the newest `BARS_MAX` periods are
    returned. There must be at least one day.
    """
    ordered = sorted(days)
    span = (ordered[-1] - ordered[0]).days
    unit, length = next(
        (each for each in (("day", 1), ("week", 7)) if span <= 60 * each[1]),
        ("month", 31),
    )

    def begin_of(day: date) -> date:
        """Return the first day of the period that contains a day."""
        if unit == "month":
            return day.replace(day=1)
        return day - timedelta(days=day.weekday()) if unit == "week" else day

    counts = Counter(map(begin_of, ordered))
    periods, begin = list[DayTotals](), begin_of(ordered[0])
    while begin <= ordered[-1]:
        periods.append(DayTotals(begin, counts[begin], 0))
        following = day_at(begin, length)
        if following is None:
            break
        begin = begin_of(following)
    return unit, periods[-BARS_MAX:]


def show_subjects(visit: Visit) -> Response:
    """Show the page of subjects: projects, and names and sources in the newest memories and summaries."""
    newest = visit.call(ListMemories(limit=NEWEST)).memories
    months = visit.call(ListMemories(level="month", limit=MONTHS)).episodes
    days = visit.call(ListMemories(level="day", limit=DAYS)).episodes
    texts = [(each.created_at, each.role, each.content) for each in newest]
    texts += [(each.covers_until, "", each.content) for each in (*days, *months)]
    return visit.show(
        "subjects.html",
        projects=visit.call(Projects()).projects,
        names=count_names(texts),
        sources=sorted({each.source for each in newest if each.source}),
    )


def show_subject(visit: Visit) -> Response:
    """Show a name, project or source: facts, when it came up, and memories, page by page."""
    subject = visit.pick(KINDS)
    if len(subject) != 1:
        raise errors.InvalidRequest(
            "give one name, project or source; the page Subjects has them"
        )
    ((kind, name),) = subject.items()
    within = {KINDS[kind]: name}
    page = visit.ask(ListMemories, within | visit.pick(["after"]), limit=ROWS)
    page_values: dict[str, Any] = {"found": None, "episodes": []}
    if "after" not in visit.fields:
        drawn, next = list(page.memories), page.next
        if next:
            further = visit.ask(ListMemories, within, after=next, limit=FURTHER)
            drawn, next = [*drawn, *further.memories], further.next
        days = [in_zone(each.created_at, None).date() for each in drawn]
        page_values["line"] = count_by_period(days) if days else None
        page_values |= {"drawn": len(days), "is_cut": bool(next)}
        asked = {} if kind == "project" else within  # learnings have no such filter
        learned = visit.ask(conversation.Learnings, asked, limit="1000")
        page_values["learnings"] = [
            each
            for each in learned.learnings
            if kind != "project" or learned.projects.get(each.id) == name
        ]
        if kind == "name":
            page_values["found"] = visit.ask(memories.Recall, within)
        else:
            listed = visit.ask(ListMemories, within, level="episode", limit="10")
            page_values["episodes"] = listed.episodes
        asked = within if kind == "project" else {}
        given = visit.ask(conversation.Injections, asked, limit="200").injections
        is_named = forgetting.name_matcher(name)
        page_values["injections"] = [
            each
            for each in given
            if asked
            or is_named(" ".join([each.client, *(one.text for one in each.lines)]))
        ]
    return visit.show("subject.html", kind=kind, name=name, page=page, **page_values)


HITS, HITS_MAX = "20", 100
TRACED_MAX = 20_000
"""Characters of a source in which the words of a summary's sentence are looked for."""
RECENT_WEEKS = 12
NEWER_MAX = 10
"""Maximum hits offered as the memory that supersedes another one."""
SEARCHING = ("session", "source", "role", "tier", "since", "until")
SELECTING = "id session source project person query tag since until".split()


def show_now(visit: Visit) -> Response:
    """Show the overview page: tiers, sleep, working memory, hooks, and the last thirty days."""
    recent = visit.call(ListMemories(tier=values.Tier.WORKING, limit=12)).memories
    return visit.show(
        "now.html", stats=visit.call(Status()), recent=recent, days=count_days(visit)
    )


def search(visit: Visit) -> Response:
    """Show the hits of a query, a list of memories without a query, or the error for a wrong filter."""
    chosen = visit.pick(("query", *SEARCHING))
    limit = visit.fields.get("limit") or HITS
    found = page = None
    problem = ""
    try:
        if "query" in chosen:
            found = visit.ask(memories.Recall, chosen, limit=limit, explain="true")
        else:
            page = visit.ask(ListMemories, (*SEARCHING, "after"), limit=ROWS)
    except errors.MnemosynedError as error:
        if error.kind is not errors.Kind.INVALID:
            raise
        problem = error.message
    return visit.show(
        "search.html",
        chosen=chosen,
        found=found,
        page=page,
        problem=problem,
        is_cut=limit == HITS,
        hits_max=HITS_MAX,
        tiers=list(values.Tier),
    )


# ------------------------------------------------------------------ memory


class TracedSentence(NamedTuple):
    """A sentence of a summary, with the source that says it."""

    text: str
    starts_line: bool
    source: int
    """The number of that source, from 1; 0 where none says most of it."""
    share: float
    """Share of the sentence's content words that this source has."""


def trace_sentences(summary: str, sources: Sequence[str]) -> Iterator[TracedSentence]:
    """Yield a summary's sentences with the number of the source sharing most content words; 0 for none."""
    stems = [find_content_stems([source]) for source in sources]
    for sentence, starts_line in sentences.split_sentences(summary):
        wanted = find_content_stems([sentence])
        shares = [
            len(wanted & found) / len(wanted) if wanted else float(sentence in source)
            for found, source in zip(stems, sources, strict=True)
        ]
        share = max(shares, default=0.0)
        number = shares.index(share) + 1 if share >= SHARED_MIN else 0
        yield TracedSentence(sentence, starts_line, number, share)


def read_provenance(visit: Visit, id: str) -> dict[str, Any]:
    """Return a summary, the direct sources, and the sentences with the source of each."""
    expanded = visit.call(memories.Expand(id, depth=1))
    sources: Sequence[values.Episode | values.MemoryRecord] = (
        expanded.summaries or expanded.originals
    )
    # A summary may name who said a sentence.
    texts = [
        f"{getattr(each, 'role', '')} {each.content[:TRACED_MAX]}" for each in sources
    ]
    traced = trace_sentences(expanded.episode.content, texts)
    return {"episode": expanded.episode, "sources": sources, "sentences": list(traced)}


def show_summary(visit: Visit) -> Response:
    """Show the page of a summary and its sources."""
    return visit.show("summary.html", **read_provenance(visit, visit.field("id")))


def show_memory(visit: Visit) -> Response:
    """Show the page of a memory or learning; for a summary's id, redirect to the page of the summary."""
    id = visit.field("id")
    try:
        got = visit.call(memories.Get(id, history=True))
    except errors.NotFound:
        return show_learning(visit)
    if got.memory is None:
        return redirect_to("/summary", id=id)
    return visit.show("memory.html", memory=got.memory, got=got)


def edit(visit: Visit) -> Response:
    """Show the form to edit a memory, then a preview, and after its confirmation edit the memory.

    If the memory changed in between, nothing is edited. The form shows secrets, as masked ones would be stored.
    """
    memory = visit.call(memories.Get(visit.field("id"), reveal=True)).memory
    if memory is None:
        raise errors.InvalidRequest(
            "a summary is not edited: edit the memories that it was made from"
        )
    # A field of one line comes back without line breaks, the words with those of Unix.
    former = {
        "text": re.sub("\r\n?", "\n", memory.content),
        "session": re.sub("[\r\n]", "", memory.session),
        "source": re.sub("[\r\n]", "", memory.source or ""),
        "role": re.sub("[\r\n]", "", memory.role),
        "tags": ",".join(memory.tags),
    }
    mark = sha256(repr(former).encode()).hexdigest()
    page_values = {"memory": memory, "mark": mark, "former": former}
    if visit.request.method != "POST":
        return visit.show("edit.html", given=former, changed=(), **page_values)
    if mark != visit.field("mark"):
        raise errors.BatchChanged(
            "it has changed: go back, reload the form, and edit it again"
        )
    given = {name: visit.fields.get(name, "") for name in former}
    changes: dict[str, Any] = {
        name: given[name] for name in former if given[name] != former[name]
    }
    if not changes:
        return redirect_to("/memory", id=memory.id)
    if visit.request.path == "/edit/preview":
        return visit.show(
            "edit.html", given=given, changed=list(changes), **page_values
        )
    if "tags" in changes:
        changes["tags"] = [tag for tag in given["tags"].split(",") if tag.strip()]
    done = visit.call(
        memories.EditMemory([memory.id], if_text=memory.content, **changes)
    )
    return visit.show(
        "receipt.html", title="Edited", done=done, kind="edit", id=memory.id
    )


def supersede(visit: Visit) -> Response:
    """Show the form for a text that supersedes a memory, then both texts, and finally store it.

    With a `query`, the form offers texts of newer memories that match.
    """
    old = visit.call(memories.Get(visit.field("id"))).memory
    is_sent = visit.request.path == "/supersede" and visit.request.method == "POST"
    if is_sent and old and old.superseded_by == visit.field("new"):
        return redirect_to("/memory", id=old.id)  # the form was sent twice
    if old is None or old.superseded_at or old.pruned_at:
        raise errors.InvalidRequest(
            "only a memory that still has its text, and that no newer one supersedes, can be superseded"
        )
    text = visit.fields.get("text", "")
    mark = sha256(old.content.encode()).hexdigest()
    if is_sent:
        if mark != visit.field("mark"):
            raise errors.BatchChanged("it has changed: go back, and preview again")
        # As it is stored: what is masked would be lost. A message of a conversation is its own.
        whole = visit.call(memories.Get(old.id, reveal=True)).memory or old
        kept = {key: whole.metadata[key] for key in {*whole.metadata} - {WHOLE, REST}}
        visit.call(
            memories.Remember(
                text,
                id=visit.field("new"),
                session=old.session,
                source=old.source,
                role="user",
                importance=old.importance,
                pinned=old.pinned,
                metadata=kept,
                tags=list(old.tags),
                supersedes=old.id,
            )
        )
        return redirect_to("/memory", id=old.id)
    if taken := visit.fields.get("from"):
        newer = visit.call(memories.Get(taken, reveal=True)).memory
        text = newer.content if newer else ""
    since = {"since": old.created_at.isoformat(), "limit": str(NEWER_MAX)}
    query = visit.fields.get("query", "")
    hits = visit.ask(memories.Recall, ["query"], **since).hits if query else ()
    lines: Iterator[values.Hit | values.Line] = chain.from_iterable(
        hit.lines if hit.summary_of else (hit,) for hit in hits
    )
    return visit.show(
        "supersede.html",
        old=old,
        mark=mark,
        text=text,
        is_preview=visit.request.method == "POST" and text != old.content,
        said=[line for line in lines if line.id != old.id],
        query=query,
        new=ids.new_id(datetime.now(UTC)),
    )


def show_forget(visit: Visit) -> Response:
    """Show what forgetting the selected memories would delete; without a selection, the form to select."""
    chosen = visit.pick(SELECTING)
    preview = visit.ask(retention.Forget, chosen, dry_run="true") if chosen else None
    return visit.show("forget.html", chosen=chosen, preview=preview, previewed_max=100)


def forget(visit: Visit) -> Response:
    """Forget the previewed memories, and show the receipt."""
    done = visit.ask(retention.Forget, visit.pick(SELECTING), mark=visit.field("mark"))
    return visit.show(
        "receipt.html", title="Forgotten", done=done, kind="forget", id=""
    )


# ---------------------------------------------------------------- timeline


def count_days(
    visit: Visit,
    first: date | None = None,
    last: date | None = None,
    by: PeriodUnit = "day",
) -> list[DayTotals]:
    """Return the counts by day (or hour, month) of memories between two days, or of the last 30 days.

    Days begin at midnight of this machine's zone, or if the daemon does not know it, of the daemon's.
    """
    within = {"since": str(first), "until": str(last)} if first else {}
    try:
        return visit.ask(Days, within | {"zone": str(local_zone())}, by=by).days
    except errors.InvalidRequest as error:
        if error.field != "zone":
            raise
    return visit.ask(Days, within, by=by).days


def show_timeline(visit: Visit) -> Response:
    """Show the page with a line of the months, their summaries, and the last weeks as a calendar."""
    today = local_now().date()
    first = today - timedelta(days=today.weekday() + 7 * (RECENT_WEEKS - 1))
    months = visit.ask(ListMemories, ["after"], level="month", limit="12")
    days, line = list[DayTotals](), list[DayTotals]()
    if "after" not in visit.fields:
        days = count_days(visit, first, today)
        newest, oldest = (
            visit.call(ListMemories(order=order, limit=1, history=True)).memories
            for order in ListOrder
        )
        if newest:
            end = in_zone(newest[0].created_at, None)
            begin = max(in_zone(oldest[0].created_at, None), shift_months(end, -360))
            line = count_days(visit, begin.date(), end.date(), "month")
    return visit.show("timeline.html", months=months, days=days, line=line, today=today)


def show_period(visit: Visit) -> Response:
    """Show a month or week: its days as a line and a calendar, its summary, its weeks and days."""
    reader = PeriodReader(visit.caller, ListMemories())
    day = _read_day(visit)
    view = reader.read_period(
        str(day), "week" if visit.request.path == "/week" else "month"
    )
    days = count_days(visit, view.first, view.last)
    before, after = view.first - timedelta(days=1), view.last + timedelta(days=1)
    return visit.show("period.html", view=view, days=days, before=before, after=after)


def show_day(visit: Visit) -> Response:
    """Show a day, or one hour: its hours as a line, its summary, its episodes, its memories."""
    day = _read_day(visit)
    hours = count_days(visit, day, day, "hour")
    hour = visit.fields.get("hour", "")
    if hour and hour not in [f"{each.hour:02}" for each in hours]:
        raise errors.InvalidRequest(
            "hour is one such as 09 or 17; follow a link of the day"
        )
    begin = datetime.combine(day, time(int(hour or 0)))
    end = begin + timedelta(hours=1 if hour else 24)
    since, until = in_zone(begin, None), in_zone(end, None)
    within: dict[str, Any] = {"since": since, "until": until, "order": ListOrder.OLDEST}
    cursor = visit.fields.get("after")
    return visit.show(
        "day.html",
        day=day,
        hour=hour,
        hours=hours,
        summary=PeriodReader(visit.caller, ListMemories())
        .read_summaries("day", day, day)
        .get(day),
        episodes=visit.call(ListMemories(**within, level="episode")),
        page=visit.call(ListMemories(**within, after=cursor)),
        before=day - timedelta(days=1),
        after=day + timedelta(days=1),
    )


def _read_day(visit: Visit) -> date:
    """Return the day in the address. Raises `InvalidRequest` if it is not a date."""
    try:
        day = date.fromisoformat(visit.field("day"))
        month = timedelta(days=40)
        _ = day - month, day + month  # what is around it is shown
    except (ValueError, OverflowError) as error:
        reason = "day is a date such as 2026-03-09; follow a link of the timeline"
        raise errors.InvalidRequest(reason) from error
    return day


MEMORY_ROUTES = {
    "GET /": show_now,
    "GET /search": search,
    "GET /memory": show_memory,
    "GET /summary": show_summary,
    "GET /edit": edit,
    "POST /edit/preview": edit,
    "POST /edit": edit,
    "GET /supersede": supersede,
    "POST /supersede/preview": supersede,
    "POST /supersede": supersede,
    "POST /pin": make_change(memories.Pin, ["id"], "/memory", ["id"]),
    "POST /unpin": make_change(memories.Unpin, ["id"], "/memory", ["id"]),
    "POST /restore": make_change(retention.Restore, ["id"], "/memory", ["id"]),
    "POST /applies": make_change(conversation.UndoEnding, ["id"], "/memory", ["id"]),
    "GET /forget": show_forget,
    "POST /forget": forget,
    "GET /timeline": show_timeline,
    "GET /month": show_period,
    "GET /week": show_period,
    "GET /day": show_day,
    "GET /learnings": show_learnings,
    "POST /learn": learn,
    "POST /reword": change_learning,
    "GET /unlearn": show_learning,
    "POST /unlearn": change_learning,
    "GET /ended": show_ended,
    "POST /ended": make_change(
        conversation.UndoEnding, ["id", "redo"], "/ended", ["id"]
    ),
    "GET /subjects": show_subjects,
    "GET /subject": show_subject,
}
