"""The text beside a prompt: earlier lines that bear on it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from math import ceil

from mnemosyned.conversation.briefing import find_keywords, is_question, is_sample
from mnemosyned.conversation.injected import (
    InjectedQuote,
    InjectedSection,
    InjectedText,
    assemble_sections,
)
from mnemosyned.conversation.sections import Relevance
from mnemosyned.instants import in_zone
from mnemosyned.memory.capture import AgentSession, AgentStore
from mnemosyned.memory.injections import InjectionStore
from mnemosyned.memory.values import Hit
from mnemosyned.service.service import MemoryService
from mnemosyned.text.dates.questions import parse_times
from mnemosyned.text.terms import cut_snippet, parse_terms
from mnemosyned.verbs.memories import Recall
from mnemosyned.verbs.times import local_zone

REMINDER_CHARS_MAX = 1_500
REMINDER_LINES_MAX = 4
REMINDER_LINE_CHARS_MAX = 300
QUERY_CHARS_MAX = 600
HITS_MAX = 20
PROJECT_SESSIONS_MAX = 100
KEYWORDS_SHARE_MIN = 0.3
"""Share of the prompt's keywords that a line needs to be worth an interruption."""
KEYWORDS_MIN = 2
KEYWORDS_ENOUGH = 6
"""More common keywords are never required, however long the prompt is."""
ASSISTANT_KEYWORDS = 1
"""Further common keywords for a line of an agent: long answers share words by chance."""
NEW_KEYWORDS_MIN = 1
"""Keywords beyond the prompt's: a line that only repeats the prompt tells nothing."""


class Reminder:
    """The text beside a prompt: earlier lines that bear on it."""

    def __init__(
        self, *, service: MemoryService, agents: AgentStore, ledger: InjectionStore
    ) -> None:
        self._service = service
        self._agents = agents
        self._ledger = ledger

    def compose(
        self, session: AgentSession, prompt: str, *, now: datetime
    ) -> InjectedText:
        """Return the text to inject with a prompt; empty if no memory is relevant.

        `now` is the time from which "yesterday" counts.
        """
        query = " ".join(prompt.replace("\0", " ").split())[:QUERY_CHARS_MAX]
        relevance = Relevance(query, parse_times(query, in_zone(now, local_zone())))
        if not relevance.has_content:
            return InjectedText()
        section = InjectedSection(
            "Said before about this:",
            self._find_quotes(session, query, relevance)[:REMINDER_LINES_MAX],
            REMINDER_CHARS_MAX,
            line_chars_max=REMINDER_LINE_CHARS_MAX + 2,
        )
        return assemble_sections([section], chars_max=REMINDER_CHARS_MAX)

    def _find_quotes(
        self, session: AgentSession, query: str, relevance: Relevance
    ) -> list[InjectedQuote]:
        """Return quotes of memories relevant to the query, best first.

        The project's other sessions are searched first; if nothing is found, all memories that
        belong to no other project. Nothing from the session itself is quoted.
        """

        def recall_hits(sessions: list[str] | None) -> list[Hit]:
            """Return the relevant hits of the query in these sessions, or in all for None."""
            recall = Recall(query, limit=HITS_MAX, session=sessions, explain=True)
            return relevance.select_relevant_hits(self._service.call(recall).hits)

        own = self._agents.sessions_of(session.project, PROJECT_SESSIONS_MAX)
        others = [other for other in own if other != session.session]
        if others and (
            quotes := self._choose_quotes(session, query, recall_hits(others))
        ):
            return quotes
        hits = recall_hits(None)
        projects = self._agents.projects_of([hit.session for hit in hits])
        free = [
            hit
            for hit in hits
            if projects.get(hit.session, "") in ("", session.project)
        ]
        return self._choose_quotes(session, query, free)

    def _choose_quotes(
        self, session: AgentSession, query: str, hits: Sequence[Hit]
    ) -> list[InjectedQuote]:
        """Return the lines of hits that are relevant to the query, as quotes cut to a snippet.

        Lines from the session itself, already shown in it, or dropped by the user are left out.
        """
        asked = parse_terms(query)
        keywords = find_keywords(query)
        lines = [
            (hit, line)
            for hit in hits
            if hit.session != session.session
            for line in hit.lines or (hit,)
        ]
        edits = self._ledger.edits([line.id for _, line in lines])
        shown = set(session.shown)
        quotes: list[InjectedQuote] = []
        for hit, line in lines:
            if line.id in shown or edits.is_dropped(line.id):
                continue
            if is_sample(line.content) or not _is_relevant(
                keywords, line.content, line.role
            ):
                continue
            shown.add(line.id)
            quotes.append(
                InjectedQuote(
                    id=line.id,
                    text=edits.text_of(line.id)
                    or cut_snippet(line.content, asked, width=REMINDER_LINE_CHARS_MAX),
                    said=line.created_at,
                    source=hit.source or "",
                    speaker=line.role,
                    reason=hit.why,
                )
            )
        return quotes


def _is_relevant(asked: frozenset[str], text: str, role: str) -> bool:
    """Return True if a text shares enough of the query's keywords and has a further keyword.

    `asked` are the stems of the query's keywords. Questions are never relevant, and a text with the
    role "assistant" must share one keyword more.
    """
    if is_question(text):
        return False
    count = len(asked)
    least = max(min(count, KEYWORDS_MIN), ceil(count * KEYWORDS_SHARE_MIN))
    least = min(least, KEYWORDS_ENOUGH)
    if role == "assistant":
        least += ASSISTANT_KEYWORDS
    keywords = find_keywords(text)
    is_about = len(keywords & asked) >= least
    return is_about and len(keywords - asked) >= NEW_KEYWORDS_MIN
