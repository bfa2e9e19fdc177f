"""`Selector`: the memories that a call selects by ids or by filters, and their preview."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypedDict

from mnemosyned.domain.errors import BatchChanged, InvalidRequest
from mnemosyned.domain.keeping.retention import ForgetFilter, Newest
from mnemosyned.domain.memory import Episode, MemoryRecord
from mnemosyned.domain.ports.store import MemoryStore
from mnemosyned.domain.preview_line import PreviewLine
from mnemosyned.domain.secrets.masking import mask_memory
from mnemosyned.domain.tags import tag_names
from mnemosyned.domain.text.snippets import snippet
from mnemosyned.domain.text.terms import Terms, terms
from mnemosyned.service.intake import check_text, to_utc
from mnemosyned.service.steps import CHUNK, chunks
from mnemosyned.verbs.request import Names, names
from mnemosyned.verbs.selection import Filtered

LISTED_MAX = 10_000
"""So many memories a preview lists at once, in some 0.4 s and 3 MB; `after` lists the rest."""
SNIPPET_CHARS = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Selected:
    """The selection of a call."""

    ids: Sequence[str]
    learned: Sequence[str] = ()
    """Learnings that match the filters themselves."""
    mark: str = ""
    """What tells this selection from others; empty for one by ids."""


class Foretold(TypedDict):
    """The fields that the preview of every verb has: see `Foreseen`."""

    dry_run: bool
    memories: int
    lines: list[PreviewLine]
    further: int
    mark: str


class Selector:
    """Reads selections from one store."""

    def __init__(self, store: MemoryStore) -> None:
        self._store = store

    def select(
        self, request: Filtered[Any], *, session: Names, source: Names
    ) -> Selected:
        """Return what a request selects, with these sessions and sources as its filters.

        Raises `NotFound`, `InvalidRequest`, `InvalidTime`, and `BatchChanged` where it is no longer
        what the preview showed that the request's mark is of.
        """
        if request.after is not None and not request.dry_run:
            raise InvalidRequest(
                "after needs dry_run: it lists the rest of a preview", field="after"
            )
        filters = (
            request.query,
            request.tag,
            session,
            source,
            request.since,
            request.until,
            request.person,
        )
        if request.id is not None:
            if any(filters):
                raise InvalidRequest(
                    "give either an id or filters, not both", field="id"
                )
            return Selected(ids=self._named(names(request.id)))
        if not any(filters):
            raise InvalidRequest(
                "say which memories: give an id or a filter (query, tag, session, source, since, "
                "until, person)",
                field="id",
            )
        choice = _filter(request, session=session, source=source)
        return self._matching(choice, request.mark)

    def _named(self, ids: Iterable[str]) -> list[str]:
        """The ids of memories, with those of its originals in place of an episode's."""
        selected: dict[str, None] = {}
        for id in ids:
            record = self._store.memories.get(id)
            is_summary = isinstance(record, Episode)
            under = self._store.deletion.ids_under(id) if is_summary else [id]
            selected.update(dict.fromkeys(under))
        return list(selected)

    def _matching(self, choice: ForgetFilter, mark: str | None) -> Selected:
        newest = _newest(mark) if mark else self._store.deletion.newest()
        choice = replace(choice, newest=newest)
        ids = self._store.deletion.select(choice)
        learned = self._store.deletion.select_learnings(choice)
        seen = _mark(newest, [*ids, "", *learned])
        if mark and mark != seen:
            raise BatchChanged(
                "what matches has changed since the preview, and nothing was done; look at a new "
                "preview",
                field="mark",
            )
        return Selected(ids=ids, learned=learned, mark=seen)

    def preview(self, selected: Selected, *, after: str | None) -> Foretold:
        """Return what a preview says of a selection."""
        lines, further = self.lines(selected.ids, after=after)
        return Foretold(
            dry_run=True,
            memories=len(selected.ids),
            lines=lines,
            further=further,
            mark=selected.mark,
        )

    def lines(
        self, ids: Sequence[str], *, after: str | None
    ) -> tuple[list[PreviewLine], int]:
        """Return a preview's lines after a memory, and how many there are beyond them."""
        remaining = _after(ids, after)
        lines: list[PreviewLine] = []
        for chunk in chunks(remaining[:LISTED_MAX], CHUNK):
            found = {each.id: each for each in self._store.memories.existing(chunk)}
            # Some may have been forgotten by somebody else meanwhile.
            lines += [_line(found[id]) for id in chunk if id in found]
        return lines, max(0, len(remaining) - LISTED_MAX)


def _filter(request: Filtered[Any], *, session: Names, source: Names) -> ForgetFilter:
    for name in ("query", "person"):
        check_text(getattr(request, name), field=name)
    words = terms(request.query) if request.query else None
    if words is not None and not words:
        raise InvalidRequest("query has no word to search for", field="query")
    if request.person is not None and not request.person.strip():
        raise InvalidRequest("person is empty", field="person")
    return ForgetFilter(
        terms=words,
        sessions=names(session),
        sources=names(source),
        tags=tag_names(names(request.tag), field="tag"),
        since=to_utc(request.since, field="since") if request.since else None,
        until=to_utc(request.until, field="until") if request.until else None,
        person=request.person,
    )


def _mark(newest: Newest, ids: Iterable[str]) -> str:
    digest = hashlib.sha256("\n".join(sorted(ids)).encode()).hexdigest()
    return f"{newest.memory}.{newest.learning}.{digest[:24]}"


def _newest(mark: str) -> Newest:
    """Return what was the last at a preview. Raises `InvalidRequest`."""
    memory, _, rest = mark.partition(".")
    learning = rest.partition(".")[0]
    if not (memory.isdecimal() and learning.isdecimal()):
        raise InvalidRequest("mark is not the mark of a preview", field="mark")
    return Newest(int(memory), int(learning))


def _after(ids: Sequence[str], id: str | None) -> Sequence[str]:
    """The ids that come after one of them; all without one."""
    if id is None:
        return ids
    if id not in ids:
        raise InvalidRequest(
            f"none of the memories selected has the id {id!r}; leave after out to list them from "
            "the beginning",
            field="after",
        )
    return ids[ids.index(id) + 1 :]


def _line(memory: MemoryRecord) -> PreviewLine:
    text = " ".join(mask_memory(memory).content.split())
    return PreviewLine(
        id=memory.id,
        tier=memory.tier,
        created_at=memory.created_at,
        session=memory.session,
        role=memory.role,
        snippet=snippet(text, Terms((), ()), width=SNIPPET_CHARS),
    )
