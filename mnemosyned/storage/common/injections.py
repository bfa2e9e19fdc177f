"""The ledger of injected context, and a person's edits of briefings."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace

from mnemosyned.errors import InvalidRequest, NotFound
from mnemosyned.memory import injections as limits
from mnemosyned.memory.injections import (
    BRIEFING_EDITS_MAX,
    BriefingEdit,
    BriefingEdits,
    InjectedLine,
    Injection,
    InjectionFilter,
    InjectionOutcome,
    InjectionTotals,
)
from mnemosyned.storage.common.rows import BRIEFING_EDITS, INJECTIONS
from mnemosyned.storage.common.session import (
    UNLESS_KNOWN,
    CommonSession,
    StorePart,
    reads,
    writes,
    writes_lazily,
)
from mnemosyned.storage.common.state import request_purge


def insert_injection(session: CommonSession, injection: Injection) -> bool:
    """Insert an injection with its lines unless the id is stored; return whether it was inserted."""
    if not INJECTIONS.add(session, injection, UNLESS_KNOWN):
        return False
    session.insert_each(
        "injected_line",
        [
            {
                "injection_id": injection.id,
                "place": place,
                "memory_id": line.id,
                "text": line.text,
                "reason": line.reason,
            }
            for place, line in enumerate(injection.lines)
        ],
    )
    return True


def read_injections(
    session: CommonSession, condition: str, **values: object
) -> Iterator[Injection]:
    """Yield the injections, with their lines, that an SQL clause selects, orders and limits."""
    rows = session.execute(
        f"SELECT {INJECTIONS.columns} FROM injection WHERE owner = %(owner)s {condition}",
        **values,
    ).fetchall()
    lines: dict[str, list[InjectedLine]] = defaultdict(list)
    for injection, id, text, reason in session.select(
        "injected_line",
        "injection_id, memory_id, text, reason",
        "ORDER BY injection_id, place",
        injection_id=[row[0] for row in rows],
    ):
        lines[injection].append(InjectedLine(id=id, text=text, reason=reason))
    for row in rows:
        yield INJECTIONS.read(row, lines=tuple(lines[row[0]]))


def forget_injected_words(
    session: CommonSession, ids: Sequence[str], *, sessions: Collection[str] = ()
) -> None:
    """Delete the injected lines that quote memories or learnings, and the edits of these briefing lines.

    If the `sessions` of memories are given, also erase the prompts of these sessions and the prompts for
    which one of the memories was injected, as prompts may contain the same words.
    """
    if sessions:
        session.execute(
            "UPDATE injection SET prompt = '' WHERE owner = %(owner)s AND prompt != '' "
            "AND (session_id = ANY(%(sessions)s::text[]) OR id IN ("
            "SELECT l.injection_id FROM injected_line AS l "
            "WHERE l.owner = %(owner)s AND l.memory_id = ANY(%(ids)s::text[])))",
            sessions=sorted(sessions),
            ids=list(ids),
        )
    session.delete("injected_line", memory_id=ids)
    session.delete("briefing_line", id=ids)


def erase_injected_texts(session: CommonSession, ids: Sequence[str]) -> None:
    """Erase the texts of injected lines that quote these memories or learnings; the lines stay."""
    session.update("injected_line", {"text": ""}, memory_id=ids)


class InjectionStore(StorePart):
    """Store of the newest injections, and of the edits of briefings.

    A power failure may lose the last injections.
    """

    @writes_lazily
    def add(self, session: CommonSession, injection: Injection) -> None:
        """Add an injection; the oldest are deleted if there are more than `INJECTIONS_MAX`.

        If a memory or learning was forgotten while the injection was made, neither its line nor the prompt is
        kept.
        """
        ids = [line.id for line in injection.lines]
        there = session.known_records(ids).keys() | set(
            session.select_column("learning", "id", id=ids)
        )
        lines = tuple(line for line in injection.lines if line.id in there)
        if len(lines) < len(ids):
            injection = replace(injection, lines=lines, prompt="")
        insert_injection(session, injection)
        session.keep_newest("injection", "id", "id", limits.INJECTIONS_MAX)

    @reads
    def find(
        self, session: CommonSession, chosen: InjectionFilter, *, limit: int
    ) -> list[Injection]:
        """Return up to `limit` injections that meet all conditions, the newest first."""
        found = read_injections(
            session,
            "AND (%(named)s::text IS NULL OR session_id = %(named)s::text) "
            "AND (%(project)s::text IS NULL OR project = %(project)s::text) "
            "AND (%(since)s::timestamptz IS NULL OR created_at >= %(since)s::timestamptz) "
            "AND (%(until)s::timestamptz IS NULL OR created_at < %(until)s::timestamptz) "
            "AND (%(outcome)s::text IS NULL OR outcome = %(outcome)s::text) "
            "AND (%(after)s::text IS NULL OR id < %(after)s::text) "
            "ORDER BY id DESC LIMIT %(limit)s",
            named=chosen.session,
            project=chosen.project,
            since=chosen.since,
            until=chosen.until,
            outcome=chosen.outcome and str(chosen.outcome),
            after=chosen.after,
            limit=limit,
        )
        return list(found)

    @writes
    def rate(self, session: CommonSession, id: str, outcome: InjectionOutcome) -> None:
        """Save the outcome of an injection. Raises `NotFound` if no injection with this id can be rated."""
        changed = session.update(
            "injection",
            {"outcome": str(outcome)},
            f"AND outcome != '{InjectionOutcome.SAID_AGAIN}'",
            id=id,
        )
        if not changed.rowcount:
            problem = f"no injection has the id {id!r}; `injections` shows them"
            raise NotFound(problem, field="id")

    @reads
    def totals(self, session: CommonSession) -> InjectionTotals:
        """Return sums over the injections that are kept."""
        rows = session.execute(
            "SELECT outcome, count(*), coalesce(sum(tokens), 0)::bigint FROM injection "
            "WHERE owner = %(owner)s GROUP BY outcome"
        ).fetchall()
        counts = {InjectionOutcome(outcome): count for outcome, count, _ in rows}
        missed = counts.pop(InjectionOutcome.SAID_AGAIN, 0)
        useful = counts.get(InjectionOutcome.USEFUL, 0)
        not_useful = counts.get(InjectionOutcome.NOT_USEFUL, 0)
        rated = useful + not_useful
        return InjectionTotals(
            injections=sum(counts.values()),
            tokens=sum(tokens for *_, tokens in rows),
            useful=useful,
            not_useful=not_useful,
            said_again=missed,
            precision=round(useful / rated, 3) if rated else None,
        )

    @reads
    def edits(
        self, session: CommonSession, ids: Sequence[str] | None = None
    ) -> BriefingEdits:
        """Return the edits of the lines with these ids, or all edits for None."""
        among = "" if ids is None else "AND id = ANY(%(ids)s::text[])"
        edits = BRIEFING_EDITS.find(
            session,
            f"{among} ORDER BY changed_at DESC, id LIMIT %(most)s",
            ids=list(ids or ()),
            most=BRIEFING_EDITS_MAX,
        )
        return BriefingEdits({edit.id: edit for edit in edits})

    @writes
    def save_edit(self, session: CommonSession, edit: BriefingEdit) -> None:
        """Replace the edit of a briefing line; delete it if `edit` has no effect.

        A purge of an earlier text is requested. Raises `InvalidRequest` if there are too many edits.
        """
        deleted = session.delete("briefing_line", "RETURNING text", id=edit.id)
        if any(text != edit.text for (text,) in deleted):
            request_purge(session)
        if not (edit.pinned or edit.dropped or edit.text):
            return
        count = session.select_value("briefing_line", "count(*)")
        if count >= BRIEFING_EDITS_MAX:
            raise InvalidRequest(
                f"{BRIEFING_EDITS_MAX:,} lines are pinned, dropped or reworded, and no more are "
                "kept; undo some that are not needed",
                field="id",
            )
        BRIEFING_EDITS.add(session, edit)
