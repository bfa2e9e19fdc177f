"""`ChangeService`: the verbs that change memories: tag, untag, pin and unpin."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mnemosyned.domain.errors import InvalidRequest
from mnemosyned.domain.memory import Episode
from mnemosyned.domain.ports.store import MemoryStore
from mnemosyned.domain.tags import tag_names
from mnemosyned.service.changing.selection import Selected, Selector
from mnemosyned.service.steps import CHUNK, in_steps
from mnemosyned.verbs.changes import Pin, Pinned, Tag, Tagged, Unpin, Untag
from mnemosyned.verbs.request import names


class ChangeService:
    """Changes memories in short steps that can be repeated."""

    def __init__(self, *, store: MemoryStore) -> None:
        self._store = store
        self._selector = Selector(store)

    # --------------------------------------------------------- tag and untag

    def tag(self, request: Tag) -> Tagged:
        return self._retag(request, self._store.changes.tag, "tagged")

    def untag(self, request: Untag) -> Tagged:
        return self._retag(request, self._store.changes.untag, "untagged")

    def _retag(
        self,
        request: Tag | Untag,
        change: Callable[[Sequence[str], Sequence[str]], int],
        done: str,
    ) -> Tagged:
        tags = tag_names(request.tags)
        selected = self._selector.select(
            request, session=request.session, source=request.source
        )
        if request.dry_run:
            preview = self._selector.preview(selected, after=request.after)
            return Tagged(**preview, tags=list(tags))
        changed = _in_chunks(selected, lambda chunk: change(chunk, tags), done=done)
        return Tagged(memories=len(selected.ids), tags=list(tags), changed=changed)

    # --------------------------------------------------------- pin and unpin

    def pin(self, request: Pin) -> Pinned:
        return self._set_pinned(request, pinned=True)

    def unpin(self, request: Unpin) -> Pinned:
        return self._set_pinned(request, pinned=False)

    def _set_pinned(self, request: Pin | Unpin, *, pinned: bool) -> Pinned:
        ids = names(request.id)
        for id in ids:
            self._check_pinnable(id)
        selected = self._selector.select(
            request, session=request.session, source=request.source
        )
        if request.dry_run:
            preview = self._selector.preview(selected, after=request.after)
            archived = len(selected.ids) - self._count_working(selected.ids)
            return Pinned(**preview, pinned=pinned, archived=archived)

        def pin(chunk: Sequence[str]) -> int:
            return self._store.changes.pin(chunk, pinned=pinned)

        done = "pinned" if pinned else "unpinned"
        changed = _in_chunks(selected, pin, done=done)
        return Pinned(
            id=ids[0] if len(ids) == 1 else "",
            memories=changed,
            pinned=pinned,
            archived=len(selected.ids) - changed,
        )

    def _count_working(self, ids: Sequence[str]) -> int:
        chunks = (ids[start : start + CHUNK] for start in range(0, len(ids), CHUNK))
        return sum(len(self._store.memories.working(chunk)) for chunk in chunks)

    def _check_pinnable(self, id: str) -> None:
        """Require a working memory. Raises `NotFound` and `InvalidRequest`."""
        memory = self._store.memories.get(id)
        if isinstance(memory, Episode):
            raise InvalidRequest(
                f"only working memories can be pinned; {id} is an episode", field="id"
            )
        if memory.episode:
            raise InvalidRequest(
                f"only working memories can be pinned; {id} is archived. `restore` brings it "
                "back, pinned",
                field="id",
            )


def _in_chunks(
    selected: Selected, change: Callable[[Sequence[str]], int], *, done: str
) -> int:
    """Change the memories chunk by chunk; returns how many. Raises `PartlyDone`."""

    def words(changed: Sequence[int]) -> str:
        return f"{sum(changed):,} of {len(selected.ids):,} memories are {done}"

    return sum(in_steps(selected.ids, CHUNK, change, done=words))
