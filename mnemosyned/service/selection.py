"""`Selector`: the memories that a call selects by ids or by filters, and their preview."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from mnemosyned.errors import BatchChanged, InvalidRequest
from mnemosyned.memory.fields import FILTER_FIELDS
from mnemosyned.memory.forgetting import ForgetFilter, Newest
from mnemosyned.memory.masking import mask_memory
from mnemosyned.memory.ports import MemoryStore
from mnemosyned.memory.values import Episode, PreviewLine
from mnemosyned.service.intake import CHUNK, split_into_chunks
from mnemosyned.service.reading import read_filters
from mnemosyned.text.terms import Terms, cut_snippet, parse_terms
from mnemosyned.verbs.memories import Filtered
from mnemosyned.verbs.request import names

LISTED_MAX = 10_000
"""So many memories a preview lists at once, in some 0.4 s and 3 MB; `after` lists the rest."""
SNIPPET_CHARS = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectedMemories:
    """Memories that a call selects."""

    ids: Sequence[str]
    learned: Sequence[str] = ()
    """Learnings that match the filters themselves."""
    mark: str = ""
    """Fingerprint of the selection."""


@dataclass(eq=False)
class Selector:
    """Reads selections from one store."""

    store: MemoryStore

    def select(self, request: Filtered[Any], *, prefix: str = "") -> SelectedMemories:
        """Return the memories that a request selects, by ids or by filters.

        The request's names of filters by a field, such as `session`, begin with `prefix`. Raises
        `NotFound`, `InvalidRequest`, `InvalidTime`, and `BatchChanged` if the selection differs
        from that of the preview whose `mark` is given.
        """
        if request.after is not None and not request.dry_run:
            raise InvalidRequest(
                "after needs dry_run: it lists the rest of a preview", field="after"
            )
        columns = [
            prefix + field.name
            for field in FILTER_FIELDS
            if hasattr(request, prefix + field.name)
        ]
        filters = ["query", "tag", *columns, "since", "until", "person"]
        is_filtered = any(getattr(request, name) for name in filters)
        if request.id is not None:
            if is_filtered:
                raise InvalidRequest(
                    "give either an id or filters, not both", field="id"
                )
            ids: dict[str, None] = {}
            for id in names(request.id):
                is_summary = isinstance(self.store.memories.get(id), Episode)
                originals = self.store.deletion.ids_under(id) if is_summary else [id]
                ids.update(dict.fromkeys(originals))
            selected = SelectedMemories(ids=list(ids), mark=_digest_ids(ids))
        elif is_filtered:
            selected = self._select_by_filters(request, prefix)
        else:
            raise InvalidRequest(
                "say which memories: give an id or a filter "
                f"({', '.join(name.removeprefix(prefix) for name in filters)})",
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
        self, request: Filtered[Any], prefix: str
    ) -> SelectedMemories:
        """Return the memories that a request's filters select.

        `prefix` begins the names of filters in the request. With the `mark` of a preview, newer
        memories are left out. Raises `InvalidRequest` and `InvalidTime`.
        """
        deletion, mark = self.store.deletion, request.mark
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
        chosen = ForgetFilter(
            terms=words,
            person=request.person,
            newest=newest,
            **read_filters(request, prefix=prefix),
        )
        ids = deletion.select(chosen)
        learned = deletion.select_learnings(chosen)
        digest = _digest_ids([*ids, "", *learned])
        seen = f"{newest.memory}.{newest.learning}.{digest}"
        return SelectedMemories(ids=ids, learned=learned, mark=seen)

    def preview(
        self, selected: SelectedMemories, *, after: str | None
    ) -> dict[str, Any]:
        """Return the fields of a `SelectionPreview`: the count, and the page of lines after an id."""
        lines, further = self.preview_lines(selected.ids, after=after)
        return {
            "dry_run": True,
            "memories": len(selected.ids),
            "lines": lines,
            "further": further,
            "mark": selected.mark,
        }

    def preview_lines(
        self, ids: Sequence[str], *, after: str | None
    ) -> tuple[list[PreviewLine], int]:
        """Return a line for each of the next `LISTED_MAX` memories, and the number of those after.

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
        lines: list[PreviewLine] = []
        for chunk in split_into_chunks(remaining[:LISTED_MAX], CHUNK):
            found = {each.id: each for each in self.store.memories.existing(chunk)}
            # Some may have been forgotten by somebody else meanwhile.
            for memory in (found[id] for id in chunk if id in found):
                text = " ".join(mask_memory(memory).content.split())
                line = PreviewLine(
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
    """Return a digest of ids, in any order."""
    return hashlib.sha256("\n".join(sorted(ids)).encode()).hexdigest()[:24]
