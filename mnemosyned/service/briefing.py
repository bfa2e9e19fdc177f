"""Briefings at the start of a session, edits of their lines, and the ledger of injected context."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from mnemosyned.config.settings import SettingsInForce
from mnemosyned.conversation import briefing, injected, successors
from mnemosyned.conversation.learnings.relevance import (
    concerns_health,
    find_scope,
    is_personal,
)
from mnemosyned.errors import InvalidRequest
from mnemosyned.ids import made_at, new_id
from mnemosyned.memory import engine_ports, injections as ledger, listing, ports, values
from mnemosyned.memory.clock import Clock
from mnemosyned.memory.values import Learning, LearningScope, MemoryRecord
from mnemosyned.service.intake import MEMBER, clean_learning_text
from mnemosyned.text import frames, token_counts, tokens
from mnemosyned.text.secrets.masking import mask_secrets
from mnemosyned.verbs import conversation
from mnemosyned.verbs.request import read_span

BRIEFING_CHARS_MAX = 3_000
PINNED_CHARS_MAX = 800
LEARNINGS_CHARS_MAX = 900
OPEN_CHARS_MAX = 500
LAST_CHARS_MAX = 800
LEARNINGS_MAX = 12
OWN_FIRST, GENERAL_MIN = 6, 4
"""Number of a project's learnings that come before all others, and of others before the rest of these."""
LEARNINGS_READ_MAX = 200
SESSIONS_READ_MAX = 50
MEMORIES_READ_MAX = 600
NOTES_READ_MAX = 60
"""Number of newest notes read: a newer one may replace a learning from a note."""
SESSION_READ_MAX = 3_000
"""Number of memories read if the newest are all of one session."""
DECIDED_MAX = 40
"""Maximum number of decisions considered: more than fit."""
NEED_LIKELY, NEED_POSSIBLE = -1.5, -4.0
"""Log odds that later sessions need a statement, from which it comes first, and is shown at all."""


@dataclass(eq=False, kw_only=True)
class BriefingService:
    """Composes briefings, keeps a person's edits of their lines, and lists what agents were given."""

    store: ports.MemoryStore
    clock: Clock
    settings: SettingsInForce
    compare: Callable[[Sequence[str]], engine_ports.MemoryComparison]
    """Compares memories in meaning."""
    rate_statements: Callable[[Mapping[str, str]], Mapping[str, float]]
    """Returns the log odds that later sessions need what memories state."""

    def edit(self, request: conversation.EditBriefing) -> ledger.BriefingEdit:
        """Pin, drop or reword a line of briefings, or undo that; return the edit now in force.

        The returned edit is without its text unless the request sets one.
        """
        if (request.pin, request.drop, request.text) == (None, None, None):
            raise InvalidRequest("say what to change: give pin, drop or text")
        before = self.store.injections.edits([request.id]).by_id.get(request.id)
        if before is None and not self.store.memories.existing([request.id]):
            chosen = listing.LearningFilter(ids=[request.id])
            if not self.store.learnings.read_page(chosen, limit=1)[0]:
                self.store.memories.get(request.id)  # a summary, or it raises
        text = before.text if before else ""
        if request.text is not None:
            text = request.text and clean_learning_text(
                request.text, self.settings.config.secrets, field="text"
            )
        pinned, dropped = request.pin, request.drop
        edit = ledger.BriefingEdit(
            id=request.id,
            pinned=bool(before and before.pinned) if pinned is None else pinned,
            dropped=bool(before and before.dropped) if dropped is None else dropped,
            text=text,
            changed_at=self.clock.now(),
        )
        if edit.pinned and edit.dropped:
            raise InvalidRequest(
                "a line is either pinned or dropped; take the other back first",
                field="drop",
            )
        self.store.injections.save_edit(edit)
        # Who may only write reads nothing of what was kept before.
        return edit if request.text is not None else replace(edit, text="")

    def compose(self, project: str, *, session: str = "") -> injected.InjectedText:
        """Return the text to inject at a start in a project; empty if nothing is known.

        Sections are pinned lines, learnings, the last session, open matters, and other decisions
        and statements. Nothing of `session` itself is included.
        """
        agents = self.store.agents
        edits = self.store.injections.edits()
        names = agents.sessions_of(project, SESSIONS_READ_MAX)
        others = [name for name in names if name != session]
        memories = agents.latest(others, MEMORIES_READ_MAX) if others else []
        if memories and memories[0].session == memories[-1].session:
            memories = agents.latest(others, SESSION_READ_MAX)  # all of a long session
        learnings = self.learnings_in(project, edits)[:LEARNINGS_MAX]
        pinned = list(self._quote_pinned(project, edits))
        stated = [
            statement
            for statement in briefing.find_statements(memories)
            if not (
                edits.is_dropped(statement.memory.id)
                or edits.is_pinned(statement.memory.id)
            )
        ]
        comparable = [*stated]
        if any(each.session == values.DEFAULT_SESSION for each in learnings):
            # Messages with a role there are those of programs that name no session.
            notes = agents.latest([values.DEFAULT_SESSION], NOTES_READ_MAX)
            notes = [each for each in notes if not each.role]
            comparable += briefing.find_statements(notes)
            comparable.sort(key=lambda each: each.memory.created_at, reverse=True)
        finder = successors.SuccessorFinder(
            comparable,
            edits=edits,
            endings_of=self.store.endings.of,
            compare=self.compare,
            rules=find_rules(learnings, comparable),
            origins={
                each.id: ", ".join(filter(None, (each.source, each.role)))
                for each in memories
            },
        )
        stated, odds = self._select_statements(stated, learnings, pinned)
        tasks = {
            each.memory.id
            for each in stated
            if each.kind is briefing.StatementKind.OPEN
        }
        sections = [
            injected.InjectedSection("Pinned by the user:", pinned, PINNED_CHARS_MAX),
            injected.InjectedSection(
                "Standing preferences and instructions:",
                [
                    quote_learning(each, edits, reason=f"{each.kind} in force")
                    for each in learnings
                ],
                LEARNINGS_CHARS_MAX,
            ),
            *_divide_statements(stated, odds, edits),
        ]
        *first, unfinished, rest = finder.put_newest_first(sections)
        # A task whose line now begins with a newer statement is done, unless that is a task, too.
        open_tasks = [
            quote
            for quote in unfinished.quotes
            if any(
                each.id in tasks
                for each in (quote, *quote.related)
                if each.said >= quote.said
            )
        ]
        done = [each for each in unfinished.quotes if each not in open_tasks]
        unfinished = replace(unfinished, quotes=open_tasks)
        rest = replace(rest, quotes=[*done, *rest.quotes])
        sections = [*first, unfinished, rest]
        if MEMBER.get()[0]:
            sections = name_members(sections, [self.store])
        return injected.assemble_sections(sections, chars_max=BRIEFING_CHARS_MAX)

    def _select_statements(
        self,
        stated: Iterable[briefing.ProjectStatement],
        learnings: Sequence[Learning],
        pinned: Iterable[injected.InjectedQuote],
    ) -> tuple[list[briefing.ProjectStatement], Mapping[str, float]]:
        """Return (statements that later sessions may need, {memory id: log odds that they need it}).

        Statements that repeat learnings, pinned lines or newer statements are left out.
        """
        known = [tokens.find_keywords(learning.text) for learning in learnings]
        known += [tokens.find_keywords(quote.text) for quote in pinned]
        learned: dict[str, list[str]] = defaultdict(list)
        for learning in learnings:
            learned[learning.memory or ""].append(learning.text)
        besides = []
        for each in stated:
            left = each
            if rules := learned.get(each.memory.id):
                text = briefing.leave_out_rules(rules, each.text, each.memory.content)
                left = replace(each, text=text, keywords=tokens.find_keywords(text))
            if left.text:
                besides.append(left)
        odds = self.rate_statements(
            {
                each.memory.id: each.memory.content
                for each in besides
                if each.kind is briefing.StatementKind.STATED
            }
        )
        needed = [
            each
            for each in briefing.drop_repetitions(besides, known=known)
            if odds.get(each.memory.id, 0.0) >= NEED_POSSIBLE
        ]
        return needed, odds

    def _quote_pinned(
        self, project: str, edits: ledger.BriefingEdits
    ) -> Iterator[injected.InjectedQuote]:
        """Yield quotes of the memories pinned to briefings by a person, in this project or in no project."""
        ids = [id for id in edits.by_id if edits.is_pinned(id)]
        memories = {each.id: each for each in self.store.memories.existing(ids)}
        found = [memories[id] for id in ids if id in memories]
        projects = self.store.agents.projects_of([each.session for each in found])
        for memory in found:
            if projects.get(memory.session, "") in ("", project):
                text = memory.content
                yield quote_memory(memory, text, edits, reason="pinned by the user")

    def learnings_in(self, project: str, edits: ledger.BriefingEdits) -> list[Learning]:
        """Return the learnings that apply in a project, at most `LEARNINGS_READ_MAX`.

        First come learnings pinned to the project or to none, then those on health. Then come `OWN_FIRST`
        others of the project, `GENERAL_MIN` of no project or valid in every project, and the rest. In each
        group the newest come first; among those of no project, the ones that apply everywhere precede. Dropped
        and repeated learnings are left out, and what other members of a group say of themselves unless pinned.
        """
        in_force = self.store.learnings.find(limit=LEARNINGS_READ_MAX)
        for_user = {each.id for each in leave_out_others(in_force, self.store)}
        in_force = [
            each for each in in_force if each.id in for_user or edits.is_pinned(each.id)
        ]
        projects = self.store.agents.projects_of(
            list({learning.session for learning in in_force})
        )

        def rank(learning: Learning) -> int:
            """Return the place of a learning in the order; 6 if it is not shown."""
            place = projects.get(learning.session, "")
            is_general = find_scope(learning) is LearningScope.EVERYWHERE
            is_elsewhere = place not in ("", project)
            is_hidden = edits.is_dropped(learning.id) or briefing.is_sample(
                learning.text
            )
            if is_hidden or (is_elsewhere and not is_general):
                return 6
            if edits.is_pinned(learning.id) and not is_elsewhere:
                return 0
            if concerns_health(learning.text):
                return 1
            if place:
                return 5 if is_elsewhere else 2
            return 3 if is_general else 4

        ranks = {learning.id: rank(learning) for learning in in_force}
        in_force = [learning for learning in in_force if ranks[learning.id] < 6]
        in_force.sort(key=lambda each: ranks[each.id])  # newest first within each
        places = [ranks[each.id] for each in in_force]
        begin = places.index(2) + OWN_FIRST if 2 in places else 0
        end = max(begin, sum(place <= 2 for place in places))
        own, others = in_force[begin:end], in_force[end:]
        in_force[begin:] = [*others[:GENERAL_MIN], *own, *others[GENERAL_MIN:]]
        first = {each.text.casefold(): each for each in reversed(in_force)}
        return [each for each in in_force if each is first[each.text.casefold()]]

    def injections(
        self, request: conversation.Injections
    ) -> conversation.InjectionList:
        """Return the injections that a request selects, newest first, and totals. Raises `InvalidRequest`."""
        after = request.after and request.after.upper()
        if after and made_at(after) is None:
            raise InvalidRequest(
                "after is no id of an injection; give the id of the last one listed",
                field="after",
            )
        chosen = ledger.InjectionFilter(
            session=request.session,
            project=request.project,
            **read_span(request.since, request.until),
            outcome=request.outcome,
            after=after,
        )
        found = self.store.injections.find(chosen, limit=request.limit)
        return conversation.InjectionList(found, self.store.injections.totals())

    def rate(self, request: conversation.RateInjection) -> conversation.RatedInjection:
        """Save a person's rating of an injection; return the rating, and the totals of all injections."""
        outcome = ledger.InjectionOutcome(request.outcome)
        self.store.injections.rate(request.id, outcome)
        return conversation.RatedInjection(
            request.id, outcome, self.store.injections.totals()
        )


def _divide_statements(
    stated: Sequence[briefing.ProjectStatement],
    odds: Mapping[str, float],
    edits: ledger.BriefingEdits,
) -> list[injected.InjectedSection]:
    """Return sections for the last session, for open tasks, and for other decisions and statements."""
    left = [each for each in stated if each.kind is briefing.StatementKind.OPEN][:4]
    last = [
        each
        for each in stated
        if each.memory.session == stated[0].memory.session and each not in left
    ]
    weighty = [each for each in last if each.kind is not briefing.StatementKind.STATED]
    last = sorted(
        weighty or last, key=lambda each: each.kind is not briefing.StatementKind.GRAVE
    )[:5]
    decided = [each for each in stated if each not in (*last, *left)]
    # What was only stated fills the room that is left, and what is hardly needed the rest of it.
    decided.sort(
        key=lambda each: (
            each.kind is not briefing.StatementKind.DECIDED,
            odds.get(each.memory.id, 0.0) < NEED_LIKELY,
        )
    )
    decided = decided[:DECIDED_MAX]
    return [
        injected.InjectedSection(
            f"{title} in this project:",
            [
                quote_memory(each.memory, each.text, edits, reason=_REASONS[each.kind])
                for each in statements
            ],
            chars_max,
            line_chars_max=briefing.STATEMENT_CHARS_MAX,
            newest_first=statements is decided,
        )
        for title, statements, chars_max in (
            ("Last session", last, LAST_CHARS_MAX),
            ("Still open", left, OPEN_CHARS_MAX),
            ("Decided or stated", decided, BRIEFING_CHARS_MAX),
        )
    ]


def find_rules(
    learnings: Sequence[Learning], statements: Iterable[briefing.ProjectStatement]
) -> set[str]:
    """Return the ids of all `learnings`, and of memories that state nothing beyond their learnings."""
    stated: dict[str, set[str]] = defaultdict(set)
    for learning in learnings:
        stated[learning.memory or ""] |= tokens.find_keywords(learning.text)
    return {learning.id for learning in learnings} | {
        each.memory.id
        for each in statements
        if each.memory.id in stated and each.keywords <= stated[each.memory.id]
    }


def quote_learning(
    learning: Learning, edits: ledger.BriefingEdits, *, reason: str
) -> injected.InjectedQuote:
    """Return a learning as a quote with its reason, in a person's words if it was reworded."""
    return injected.InjectedQuote(
        id=learning.id,
        text=edits.text_of(learning.id) or learning.text,
        said=learning.created_at,
        source=learning.source or "",
        speaker=learning.kind.value,
        reason=reason,
        memory=learning.memory or "",
    )


def quote_memory(
    memory: MemoryRecord, text: str, edits: ledger.BriefingEdits, *, reason: str
) -> injected.InjectedQuote:
    """Return a memory's `text` as a quote with its reason, or a person's rewording of the memory."""
    return injected.InjectedQuote(
        id=memory.id,
        text=edits.text_of(memory.id) or text,
        said=memory.created_at,
        source=memory.source or "",
        speaker=memory.role,
        reason=reason,
    )


def find_other_members(
    ids: Iterable[str], groups: Iterable[ports.MemoryStore]
) -> dict[str, str]:
    """Return {memory id: member who wrote it} for memories of `groups`, without those of who asks.

    An agent would otherwise take "I" in them for its own user.
    """
    sought = list(dict.fromkeys(ids))
    _, asking = MEMBER.get()
    return {
        each.id: str(each.member)
        for store in groups
        for each in store.memories.existing(sought)
        if each.role != briefing.ASSISTANT and each.member not in (None, asking)
    }


def leave_out_others(
    learnings: Sequence[Learning], store: ports.MemoryStore
) -> list[Learning]:
    """Return the learnings in a store without what other members of its group say of themselves.

    An agent would otherwise call its user by another one's name, or answer in another one's language. Health
    concerns of others, such as allergies, stay.
    """
    if not MEMBER.get()[0]:
        return [*learnings]
    personal = {
        each.id: each.memory
        for each in learnings
        if each.memory and is_personal(each) and not concerns_health(each.text)
    }
    others = find_other_members(personal.values(), [store])
    return [each for each in learnings if personal.get(each.id) not in others]


def name_members(
    sections: Sequence[injected.InjectedSection], groups: Iterable[ports.MemoryStore]
) -> list[injected.InjectedSection]:
    """Return the sections with other members of `groups` as the speakers of what they wrote there."""
    lines = [line for section in sections for line in section.quotes]
    ids = (quote.source_id for line in lines for quote in (line, *line.related))
    members = find_other_members(ids, groups)

    def name(quote: injected.InjectedQuote) -> injected.InjectedQuote:
        """Return a quote with the member's name, after the kind of a learning."""
        speaker = members.get(quote.source_id)
        if speaker and quote.memory:
            speaker = f"{quote.speaker} of {speaker}"
        return replace(
            quote,
            speaker=speaker or quote.speaker,
            related=tuple(map(name, quote.related)),
        )

    return [
        replace(section, quotes=[name(quote) for quote in section.quotes])
        for section in sections
    ]


_REASONS = {
    briefing.StatementKind.GRAVE: "a failure in this project",
    briefing.StatementKind.OPEN: "open in this project",
    briefing.StatementKind.DECIDED: "decided in this project",
    briefing.StatementKind.FOUND: "found out in this project",
    briefing.StatementKind.STATED: "stated in this project",
}


def make_injection(
    now: datetime,
    kind: ledger.InjectionKind,
    *,
    client: str,
    session: str,
    project: str = "",
    prompt: str = "",
    text: str = "",
    lines: Sequence[ledger.InjectedLine] = (),
    outcome: ledger.InjectionOutcome = ledger.InjectionOutcome.UNKNOWN,
) -> ledger.Injection:
    """Return a new entry of the ledger for a text given to an agent; `text` is empty if none was given.

    The beginning of the prompt and of each line is kept, with secrets masked and tags neutralized.
    """
    return ledger.Injection(
        id=new_id(now),
        created_at=now,
        client=client,
        session=session,
        project=project,
        kind=kind,
        prompt=_mask_beginning(prompt, ledger.PROMPT_CHARS_MAX),
        characters=len(text),
        tokens=token_counts.TokenEstimator().count(text) if text else 0,
        outcome=outcome,
        lines=tuple(
            replace(line, text=_mask_beginning(line.text, ledger.LINE_CHARS_MAX))
            for line in lines
        ),
    )


def _mask_beginning(text: str, chars_max: int) -> str:
    """Return the first `chars_max` characters of a text as one line, secrets masked and tags neutralized."""
    return frames.neutralize_line(mask_secrets(text))[:chars_max]
