"""Verbs that change memories and learnings: edit, tag, untag, pin, unpin, learn.

`Selector` finds the memories that a call selects by ids or by filters, and previews them.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypedDict, TypeVar

from mnemosyned.conversation.archived import WHOLE
from mnemosyned.errors import BatchChanged, InvalidRequest, NotFound, WordsPruned
from mnemosyned.ids import new_id
from mnemosyned.memory.clock import Clock
from mnemosyned.memory.edit import Edition, MemoryEdit
from mnemosyned.memory.forgetting import ForgetFilter, Newest
from mnemosyned.memory.learning import Learning
from mnemosyned.memory.masking import mask_memory
from mnemosyned.memory.ports import LearningStore, MemoryStore
from mnemosyned.memory.values import Episode, MemoryRecord, PreviewLine, tag_names
from mnemosyned.service.intake import (
    CHUNK,
    check_created_at,
    chunks,
    clean_learning_text,
    in_steps,
    to_utc,
)
from mnemosyned.service.policies import PolicyHolder
from mnemosyned.text.secrets.masking import mask_secrets
from mnemosyned.text.terms import Terms, snippet, terms
from mnemosyned.verbs.conversation import (
    EditedLearning,
    EditLearning,
    Learn,
    Learned,
    LearningList,
    Learnings,
    RemovedLearning,
    RemoveLearning,
)
from mnemosyned.verbs.memories import (
    Edited,
    EditMemory,
    Filtered,
    Pin,
    Pinned,
    Tag,
    Tagged,
    Unpin,
    Untag,
)
from mnemosyned.verbs.request import Names, instant, names

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


T = TypeVar("T")

TRIES_MAX = 5
"""How often an edit reads a memory again that changed while it was being edited."""
ONE_ONLY = ("text", "role", "created_at", "importance", "if_text")
"""Fields that make sense for one memory alone."""
_PLACEHOLDER = re.compile(r"\[secret:\w+\]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Aftermath:
    """The steps that follow an edit."""

    rewrite_stale: Callable[[], str]
    """Rewrites stale summaries; returns why some are left, if any."""
    purge: Callable[[], tuple[bool, str]]
    """Takes deleted words out of the file: whether all, and what failed."""
    enforce_cap: Callable[[int], None]
    """Brings working memory of this size under its capacity."""
    reworded: Callable[[Sequence[int]], None] | None = None
    """Makes the vectors of memories with other words again."""


class EditService:
    """Edits memories, in short steps that can be repeated."""

    def __init__(
        self,
        *,
        store: MemoryStore,
        clock: Clock,
        policies: PolicyHolder,
        aftermath: Aftermath,
    ) -> None:
        self._store = store
        self._clock = clock
        self._policies = policies
        self._aftermath = aftermath
        self._selector = Selector(store)

    def edit(self, request: EditMemory) -> Edited:
        changes = _changes(request)
        ids = names(request.id)
        if len(ids) == 1:
            if request.dry_run:
                raise InvalidRequest("dry_run needs filters", field="dry_run")
            return self._edit_one(request, ids[0], changes)
        _require_bulk(request)
        selected = self._selector.select(
            request, session=request.of_session, source=request.of_source
        )
        if request.dry_run:
            return Edited(**self._selector.preview(selected, after=request.after))
        return self._edit_many(request, selected.ids, changes)

    def _edit_one(
        self, request: EditMemory, id: str, changes: dict[str, Any]
    ) -> Edited:
        def edited() -> tuple[Edition | None, str]:
            before = self._editable(id, request)
            edit, secrets = self._made(before, changes)
            if not _has_effect(edit, drop_history=request.drop_history):
                return None, secrets
            edition = self._write([edit], drop_history=request.drop_history)
            return edition, secrets

        edition, secrets = _repeated(edited)
        if edition is None:
            return Edited(id=id, memories=1)
        if edition.kept:
            raise WordsPruned(
                f"other originals of the episode of {id} were pruned, and its summary is all that "
                "is left of their words; this edit would delete it. `get` shows the memory",
                field="id",
            )
        return self._receipt(
            edition, id=id, memories=1, secrets=secrets, purge=request.drop_history
        )

    def _edit_many(
        self, request: EditMemory, ids: Sequence[str], changes: dict[str, Any]
    ) -> Edited:
        def edited(group: Sequence[str]) -> Edition:
            edits = []
            for id in group:
                try:
                    before = self._store.memories.get(id)
                except NotFound:  # forgotten by somebody else meanwhile
                    continue
                if isinstance(before, MemoryRecord):
                    edits.append(self._made(before, changes)[0])
            drop = request.drop_history
            changing = [edit for edit in edits if _has_effect(edit, drop_history=drop)]
            return self._write(changing, drop_history=drop)

        def done(editions: Sequence[Edition]) -> str:
            changed = sum(edition.changed for edition in editions)
            return f"{changed:,} of {len(ids):,} memories are edited"

        groups = self._store.changes.groups(ids, size=CHUNK)
        editions = in_steps(
            groups,
            1,
            lambda group: _repeated(partial(edited, group[0])),
            done=done,
        )
        return self._receipt(
            _joined(editions), memories=len(ids), purge=request.drop_history
        )

    def _editable(self, id: str, request: EditMemory) -> MemoryRecord:
        """Return the memory to be edited. Raises `NotFound`, `InvalidRequest`, `BatchChanged`."""
        before = self._store.memories.get(id)
        if isinstance(before, Episode):
            raise InvalidRequest(
                f"{id} is a summary, which follows from its memories; edit those: `expand` shows "
                "them, and the summary is rewritten",
                field="id",
            )
        if request.text is not None and WHOLE in before.metadata:
            raise InvalidRequest(
                f"{id} is a message that `compact` took out of a conversation, and is kept as it "
                "was; remember the correction, with `supersedes`",
                field="text",
            )
        seen = request.if_text
        if seen not in (None, before.content, mask_secrets(before.content)):
            raise BatchChanged(
                f"{id} was changed meanwhile, and nothing was done; read it again",
                field="if_text",
            )
        if request.text is not None:
            _require_secrets(request.text, before.content)
        return before

    def _made(
        self, before: MemoryRecord, changes: dict[str, Any]
    ) -> tuple[MemoryEdit, str]:
        now = self._clock.now()
        after = replace(before, **changes)
        if "created_at" in changes:
            moment = check_created_at(changes["created_at"], now, field="created_at")
            after = replace(after, created_at=moment)
        return self._policies.intake.edited(before, after, now=now)

    def _write(self, edits: Sequence[MemoryEdit], *, drop_history: bool) -> Edition:
        edition = self._store.changes.edit(
            edits, now=self._clock.now(), drop_history=drop_history
        )
        if edition.positions and self._aftermath.reworded:
            self._aftermath.reworded(edition.positions)
        return edition

    def _receipt(
        self,
        edition: Edition,
        *,
        memories: int,
        id: str = "",
        secrets: str = "",
        purge: bool,
    ) -> Edited:
        notes = [self._aftermath.rewrite_stale()]
        if purge:
            notes.append(self._aftermath.purge()[1])
        if edition.restored:
            self._aftermath.enforce_cap(edition.working)
        return Edited(
            id=id,
            memories=memories,
            changed=edition.changed,
            restored=len(edition.restored),
            kept=len(edition.kept),
            secrets=secrets,
            note="; ".join(filter(None, notes)),
        )


def _has_effect(edit: MemoryEdit, *, drop_history: bool) -> bool:
    """Whether a memory is changed by an edit, or has a history that it drops."""
    drops = drop_history and edit.before.edited_at is not None
    return drops or not edit.changes_nothing


def _repeated(edit: Callable[[], T]) -> T:
    """Read and write again what changed in between. Raises `BatchChanged` if it always does."""
    for _ in range(TRIES_MAX - 1):
        with suppress(BatchChanged):
            return edit()
    return edit()


def _changes(request: EditMemory) -> dict[str, Any]:
    """The fields of a memory that a request changes. Raises `InvalidRequest`."""
    given: dict[str, Any] = {
        "content": request.text,
        "session": request.session,
        "source": request.source,
        "role": request.role,
        "created_at": instant(request.created_at),
        "importance": request.importance,
        "tags": None if request.tags is None else tag_names(request.tags),
    }
    changes: dict[str, Any] = {
        name: value for name, value in given.items() if value is not None
    }
    if not changes and not request.drop_history:
        raise InvalidRequest(
            "say what to change: text, session, source, role, created_at, importance or tags",
            field="text",
        )
    if changes.get("source") == "":
        changes["source"] = None
    return changes


def _require_bulk(request: EditMemory) -> None:
    """Refuse what is for one memory alone. Raises `InvalidRequest`."""
    for name in ONE_ONLY:
        if getattr(request, name) is not None:
            raise InvalidRequest(
                f"{name} is for one memory: give its id alone. Many at once can get another "
                "session, source and tags",
                field=name,
            )


def _require_secrets(text: str, stored: str) -> None:
    """Refuse the mask of a secret in place of the secret. Raises `InvalidRequest`."""
    before = Counter(_PLACEHOLDER.findall(stored))
    for mask, count in Counter(_PLACEHOLDER.findall(text)).items():
        if count > before[mask]:
            raise InvalidRequest(
                f"text has {mask}, the mask of a secret in the stored words; read them with "
                "reveal and keep the secret, or leave it out",
                field="text",
            )


def _joined(editions: Sequence[Edition]) -> Edition:
    return Edition(
        changed=sum(edition.changed for edition in editions),
        restored=tuple(id for edition in editions for id in edition.restored),
        kept=tuple(id for edition in editions for id in edition.kept),
        working=editions[-1].working if editions else 0,
    )


class LearningService:
    """The verbs of learnings over one store."""

    def __init__(
        self,
        *,
        store: LearningStore,
        clock: Clock,
        policies: PolicyHolder,
        purge: Callable[[], tuple[bool, str]],
    ) -> None:
        self._store = store
        self._clock = clock
        self._policies = policies
        self._purge = purge

    def learn(self, request: Learn) -> Learned:
        now = self._clock.now()
        learning, superseded = self._store.add(
            Learning(
                id=new_id(now),
                kind=request.kind,
                text=clean_learning_text(
                    request.content, self._policies.intake.secrets, field="content"
                ),
                created_at=now,
                session=request.session,
                source=request.source,
            )
        )
        return Learned(learning, superseded)

    def learnings(self, request: Learnings) -> LearningList:
        return LearningList(
            self._store.find(
                sources=names(request.source),
                kind=request.kind,
                superseded=request.superseded,
                limit=request.limit,
            )
        )

    def edit(self, request: EditLearning) -> EditedLearning:
        text = clean_learning_text(
            request.text, self._policies.intake.secrets, field="text"
        )
        self._store.edit(request.id, text)
        _, note = self._purge()
        return EditedLearning(request.id, text, note)

    def remove(self, request: RemoveLearning) -> RemovedLearning:
        self._store.remove(request.id)
        _, note = self._purge()
        return RemovedLearning(request.id, note)
