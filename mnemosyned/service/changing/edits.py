"""`EditService`: the verb that changes the words of memories, or where they belong."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar

from mnemosyned.domain.conversation.as_memories import WHOLE
from mnemosyned.domain.errors import (
    BatchChanged,
    InvalidRequest,
    NotFound,
    WordsPruned,
)
from mnemosyned.domain.memory import Episode, MemoryRecord
from mnemosyned.domain.ports.clock import Clock
from mnemosyned.domain.ports.store import MemoryStore
from mnemosyned.domain.revisions import Edition, MemoryEdit
from mnemosyned.domain.secrets.masking import mask_secrets
from mnemosyned.domain.tags import tag_names
from mnemosyned.service.changing.selection import Selector
from mnemosyned.service.intake import check_created_at, check_text
from mnemosyned.service.policies import PolicyHolder
from mnemosyned.service.steps import CHUNK, in_steps
from mnemosyned.verbs.changes import Edited, EditMemory
from mnemosyned.verbs.request import instant, names

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
    for name in ("text", "session", "source", "role"):
        check_text(getattr(request, name), field=name)
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
