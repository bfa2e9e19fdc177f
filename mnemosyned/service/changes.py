"""Verbs that change memories and learnings: edit, tag, untag, pin, unpin, learn."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from operator import attrgetter
from typing import Any, TypeVar

from mnemosyned.conversation.archived import WHOLE
from mnemosyned.conversation.learnings.relevance import find_scope
from mnemosyned.errors import BatchChanged, InvalidRequest, WordsPruned
from mnemosyned.ids import new_id
from mnemosyned.memory import engine_ports, listing, ports, values
from mnemosyned.memory.edit import EditOutcome, MemoryEdit, values_before
from mnemosyned.memory.endings import find_ended_in
from mnemosyned.service import forgetting, intake
from mnemosyned.service.endings import EndingFinder, mask_ended
from mnemosyned.service.reading import preview_selection, select_memories
from mnemosyned.sleep.sleeper import Sleeper
from mnemosyned.text.secrets.masking import PLACEHOLDER, mask_secrets
from mnemosyned.verbs import conversation, memories as verbs
from mnemosyned.verbs.request import instant, names

T = TypeVar("T")

CHANGED_SINCE = "changed since"
PRUNED_SINCE = "other originals of the summary were pruned"
"""Reasons why an undo leaves a memory as it is."""
TRIES_MAX = 5
"""Number of times that an edit reads a memory which changed while it was being edited."""
ONE_ONLY = ("text", "role", "created_at", "importance", "if_text")
"""Fields that make sense for one memory alone."""
_MANY = [name for name in values.EDITABLE if name not in ONE_ONLY]
_FOR_MANY = f"{', '.join(_MANY[:-1])} and {_MANY[-1]}"
"""The other fields, as an error lists them."""


@dataclass(eq=False, kw_only=True)
class ChangeService:
    """The verbs that change memories, in short steps that can be repeated, and the verbs of learnings."""

    store: ports.MemoryStore
    sleeper: Sleeper
    retention: forgetting.RetentionService
    endings: EndingFinder
    """Reads new texts again."""
    vectors: engine_ports.MemoryVectors

    def change_tags(self, request: verbs.Tag | verbs.Untag) -> verbs.Tagged:
        """Add tags to the selected memories, or remove them; with `dry_run`, only preview that."""
        tags = values.tag_names(request.tags)
        selected = select_memories(self.store, request)
        adds = isinstance(request, verbs.Tag)
        if request.dry_run:
            preview = preview_selection(self.store, selected, after=request.after)
            return verbs.Tagged(**preview, tags=list(tags), tagged=adds)
        change = partial(self.store.changes.tag, remove=not adds)
        action = self._new_action(
            values.ActionKind.TAG if adds else values.ActionKind.UNTAG
        )
        step = partial(change, tags=tags, action=action)
        report = f"memories are {'tagged' if adds else 'untagged'}"
        changed = intake.run_in_chunks(selected.ids, intake.CHUNK, step, report=report)
        return verbs.Tagged(
            memories=len(selected.ids),
            tags=list(tags),
            tagged=adds,
            changed=sum(changed),
        )

    def change_pins(self, request: verbs.Pin | verbs.Unpin) -> verbs.Pinned:
        """Pin or unpin the selected working memories; with `dry_run`, only preview. Raises `InvalidRequest`."""
        pinned = isinstance(request, verbs.Pin)
        ids = names(request.id)
        for id in ids:
            memory = self.store.memories.get(id)
            if isinstance(memory, values.Episode) or memory.episode:
                state = (
                    "an episode"
                    if isinstance(memory, values.Episode)
                    else "archived. `restore` brings it back, pinned"
                )
                raise InvalidRequest(
                    f"only working memories can be pinned; {id} is {state}", field="id"
                )
        selected = select_memories(self.store, request)
        if request.dry_run:
            preview = preview_selection(self.store, selected, after=request.after)
            working = sum(
                len(self.store.memories.working(chunk))
                for chunk in intake.split_into_chunks(selected.ids, intake.CHUNK)
            )
            archived = len(selected.ids) - working
            return verbs.Pinned(**preview, pinned=pinned, archived=archived)
        action = self._new_action(
            values.ActionKind.PIN if pinned else values.ActionKind.UNPIN
        )
        pin = partial(self.store.changes.pin, pinned=pinned, action=action)
        report = f"memories are {'pinned' if pinned else 'unpinned'}"
        chunks = intake.run_in_chunks(selected.ids, intake.CHUNK, pin, report=report)
        changed = sum(chunks)
        return verbs.Pinned(
            id=ids[0] if len(ids) == 1 else "",
            memories=changed,
            pinned=pinned,
            archived=len(selected.ids) - changed,
        )

    def _new_action(self, kind: values.ActionKind) -> values.Action:
        """Return a new undoable action of this kind, which begins now."""
        now = self.sleeper.cycle.clock.now()
        return values.Action(new_id(now), kind, now)

    def edit(self, request: verbs.EditMemory) -> verbs.Edited:
        """Edit one memory by id, or all selected by filters; with `dry_run`, only preview.

        Raises `InvalidRequest` for a change that only one memory can get, and the errors of
        `EditMemory`.
        """
        changes = _read_changes(request)
        ids = names(request.id)
        if len(ids) == 1:
            if request.dry_run:
                raise InvalidRequest(
                    "dry_run previews what filters select; give filters instead of one id",
                    field="dry_run",
                )
            return self._edit_one(request, ids[0], changes)
        for name in ONE_ONLY:
            if getattr(request, name) is not None:
                raise InvalidRequest(
                    f"{name} is for one memory: give its id alone. Many at once can get another "
                    f"{_FOR_MANY}",
                    field=name,
                )
        selected = select_memories(self.store, request, prefix="of_")
        if request.dry_run:
            return verbs.Edited(
                **preview_selection(self.store, selected, after=request.after)
            )
        action = self._new_action(values.ActionKind.EDIT)
        drop = request.drop_history

        def edit_group(group: Sequence[str]) -> EditOutcome:
            """Edit the memories of one group that still exist, and return the outcome."""
            existing = self.store.memories.existing(group)
            edits = [self._make_edit(before, changes)[0] for before in existing]
            changing = [edit for edit in edits if _has_effect(edit, drop_history=drop)]
            return self._write_edits(changing, action, drop_history=drop)

        edition = self._edit_in_groups(selected.ids, edit_group)
        return self._finish_edit(edition, memories=len(selected.ids), purge=drop)

    def _edit_one(
        self, request: verbs.EditMemory, id: str, changes: dict[str, Any]
    ) -> verbs.Edited:
        """Edit one memory, if need be again after another change. Raises the errors of `EditMemory`."""
        action = self._new_action(values.ActionKind.EDIT)

        def edit_once() -> tuple[EditOutcome | None, str]:
            """Edit the memory; return the outcome, or None without any effect, and the treatment of secrets."""
            before = self._read_editable(id, request)
            edit, secrets = self._make_edit(before, changes)
            if not _has_effect(edit, drop_history=request.drop_history):
                return None, secrets
            drop = request.drop_history
            edition = self._write_edits([edit], action, drop_history=drop)
            return edition, secrets

        edition, secrets = _retry_edit(edit_once)
        if edition is None:
            return verbs.Edited(id=id, memories=1)
        if edition.kept:
            raise WordsPruned(
                f"other originals of the episode of {id} were pruned, and its summary is all that "
                "is left of their words; this edit would delete it. `get` shows the memory",
                field="id",
            )
        return self._finish_edit(
            edition, id=id, memories=1, secrets=secrets, purge=request.drop_history
        )

    def undo_edit(
        self, action: str, moment: datetime, *, dry_run: bool
    ) -> tuple[int, dict[str, list[str]], str]:
        """Restore the values that an edit replaced; with `dry_run`, only count the memories.

        `action` is the id of the edit and `moment` its time. Return the number of changed memories, the
        ids of unchanged memories by reason, and a note on unfinished work.
        """
        left: dict[str, list[str]] = {CHANGED_SINCE: []}

        def make_edits(group: Sequence[str]) -> list[MemoryEdit]:
            """Return edits that restore former values; add memories changed since then to `left`."""
            edits = []
            for before in self.store.memories.existing(group):
                revisions = self.store.changes.revisions(before.id)
                former_values = values_before(before, revisions, moment)
                if former_values is None and before.id not in left[CHANGED_SINCE]:
                    left[CHANGED_SINCE].append(before.id)
                if former_values:
                    edit = self._make_edit(before, former_values)[0]
                    edits.append(replace(edit, undoes=moment))
            return edits

        ids = [step.memory for step in self.store.undo.steps(action)]
        if dry_run:
            return len(make_edits(ids)), left, ""
        edition = self._edit_in_groups(
            ids,
            lambda group: self._write_edits(
                make_edits(group), None, drop_history=False
            ),
        )
        left[PRUNED_SINCE] = list(edition.kept)
        edited = self._finish_edit(edition, memories=len(ids), purge=False)
        return edition.changed, left, edited.note

    def _edit_in_groups(
        self, ids: Sequence[str], edit_group: Callable[[Sequence[str]], EditOutcome]
    ) -> EditOutcome:
        """Call `edit_group` for each group of ids, again if the group changed; return the summed outcome."""
        groups = self.store.changes.groups(ids, size=intake.CHUNK)
        editions = intake.run_in_chunks(
            groups,
            1,
            lambda group: _retry_edit(partial(edit_group, group[0])),
            report="memories are edited",
            count=attrgetter("changed"),
            total=len(ids),
        )
        return EditOutcome(
            changed=sum(edition.changed for edition in editions),
            restored=tuple(id for edition in editions for id in edition.restored),
            kept=tuple(id for edition in editions for id in edition.kept),
            working=editions[-1].working if editions else 0,
        )

    def _read_editable(self, id: str, request: verbs.EditMemory) -> values.MemoryRecord:
        """Return the memory with an id, after a check that it may be edited as the request asks.

        Raises `NotFound`, and `BatchChanged` if its text is not the request's `if_text`. Raises
        `InvalidRequest` for a summary, the text of an archived message, or a text with a secret's mask.
        """
        before = self.store.memories.get(id)
        if isinstance(before, values.Episode):
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
        shown = self._list_shown_texts(before)
        if seen not in (None, before.content) and seen not in shown:
            raise BatchChanged(
                f"{id} has changed, and nothing was done; read it again",
                field="if_text",
            )
        stored = Counter(PLACEHOLDER.findall(before.content))
        for mask, count in Counter(PLACEHOLDER.findall(request.text or "")).items():
            if count > stored[mask]:  # it would overwrite the secret that it stands for
                raise InvalidRequest(
                    f"text has {mask}, the mask of a secret in the stored words; read them with "
                    "reveal and keep the secret, or leave it out",
                    field="text",
                )
        return before

    def _list_shown_texts(self, memory: values.MemoryRecord) -> Iterator[str]:
        """Yield the text of a memory as it is shown without `reveal`: in a list, and by `get`."""
        yield mask_secrets(memory.content)
        if memory.episode:
            secrets = self.store.memories.secrets(memory.episode)
            yield mask_secrets(memory.content, secrets)

    def _make_edit(
        self, before: values.MemoryRecord, changes: dict[str, Any]
    ) -> tuple[MemoryEdit, str]:
        """Return the edit that makes `changes`, and what was done to secrets: "kept", "masked" or ""."""
        now = self.sleeper.cycle.clock.now()
        after = replace(before, **changes)
        if "created_at" in changes:
            moment = intake.check_created_at(
                changes["created_at"], now, field="created_at"
            )
            after = replace(after, created_at=moment)
        config = self.sleeper.cycle.settings.config
        return intake.make_edit(before, after, config, now=now)

    def _write_edits(
        self,
        edits: Sequence[MemoryEdit],
        action: values.Action | None,
        *,
        drop_history: bool,
    ) -> EditOutcome:
        """Store edits, recorded for undo as `action` if given; renew endings and vectors of new texts."""
        edition = self.store.changes.edit(
            edits,
            now=action.at if action else self.sleeper.cycle.clock.now(),
            drop_history=drop_history,
            action=action,
        )
        if edition.positions:
            former = {
                edit.before.id: edit.before.content
                for edit in edits
                if edit.before.role == edit.after.role
            }
            if action:
                self.endings.find_again(edition.positions, former)
            self.endings.note_new_memories()
            self.vectors.note_edits(edition.positions)
        return edition

    def _finish_edit(
        self,
        edition: EditOutcome,
        *,
        memories: int,
        id: str = "",
        secrets: str = "",
        purge: bool,
    ) -> verbs.Edited:
        """Rewrite stale summaries, purge earlier text if `purge`, start a cycle if due; return the result."""
        notes = [self.retention.rewrite_stale_or_log()]
        if purge:
            notes.append(self.retention.purger.try_purge()[1])
        if edition.restored:
            self.sleeper.enforce_cap(edition.working)
        return verbs.Edited(
            id=id,
            memories=memories,
            changed=edition.changed,
            restored=len(edition.restored),
            kept=len(edition.kept),
            secrets=secrets,
            note="; ".join(filter(None, notes)),
        )

    def learn(self, request: conversation.Learn) -> conversation.Learned:
        """Store a learning, unless it repeats one, or is a correction of nothing.

        Return it, or the one that it repeats, and the ids of the learnings that it supersedes.
        """
        now = self.sleeper.cycle.clock.now()
        rule = self.sleeper.cycle.settings.config.secrets
        text = intake.clean_learning_text(request.content, rule, field="content")
        new = values.Learning(
            id=new_id(now),
            kind=request.kind,
            text=text,
            created_at=now,
            session=request.session,
            source=request.source,
        )
        learning, superseded = self.store.learnings.add(new)
        return conversation.Learned(learning, superseded)

    def learnings(self, request: conversation.Learnings) -> conversation.LearningList:
        """Return a page of the learnings that filters select, newest first, and their edits for briefings."""
        chosen = listing.LearningFilter(
            sources=names(request.source),
            kind=request.kind,
            ids=names(request.id),
            words=(request.query or "").casefold().split(),
            superseded=request.superseded,
            after=listing.parse_cursor(request.after) if request.after else None,
        )
        found, place = self.store.learnings.read_page(chosen, limit=request.limit)
        project_of = self.store.agents.projects_of([each.session for each in found])
        edits = self.store.injections.edits([each.id for each in found])
        return conversation.LearningList(
            found,
            scopes={each.id: find_scope(each) for each in found},
            projects={
                each.id: project_of[each.session]
                for each in found
                if each.session in project_of
            },
            edits=list(edits.by_id.values()),
            ended={
                id: [mask_ended(each) for each in ended]
                for id, ended in find_ended_in(found, self.store.endings.of).items()
            },
            next=place.encode() if place else None,
        )

    def edit_learning(
        self, request: conversation.EditLearning
    ) -> conversation.EditedLearning:
        """Replace the text of a learning, and purge the old text."""
        rule = self.sleeper.cycle.settings.config.secrets
        text = intake.clean_learning_text(request.text, rule, field="text")
        self.store.learnings.edit(request.id, text)
        _, note = self.retention.purger.try_purge()
        return conversation.EditedLearning(request.id, text, note)

    def remove_learning(
        self, request: conversation.RemoveLearning
    ) -> conversation.RemovedLearning:
        """Delete a learning, and purge its text."""
        self.store.learnings.remove(request.id)
        _, note = self.retention.purger.try_purge()
        return conversation.RemovedLearning(request.id, note)


def _has_effect(edit: MemoryEdit, *, drop_history: bool) -> bool:
    """Return whether an edit changes a memory, or with `drop_history` deletes existing history."""
    drops = drop_history and edit.before.edited_at is not None
    is_reworded = edit.before.content != edit.after.content
    return bool(drops or is_reworded or edit.changed_fields)


def _retry_edit(edit: Callable[[], T]) -> T:
    """Return the result of `edit`, called again after `BatchChanged`, `TRIES_MAX` times in all."""
    for _ in range(TRIES_MAX - 1):
        with suppress(BatchChanged):
            return edit()
    return edit()


def _read_changes(request: verbs.EditMemory) -> dict[str, Any]:
    """Return the {field: new value} that a request names. Raises `InvalidRequest` for none."""
    given: dict[str, Any] = {
        "content": request.text,
        **{name: getattr(request, name) for name in values.EDITABLE},
        "created_at": instant(request.created_at),
        "tags": None if request.tags is None else values.tag_names(request.tags),
    }
    changes: dict[str, Any] = {
        name: value for name, value in given.items() if value is not None
    }
    if not changes and not request.drop_history:
        raise InvalidRequest(
            f"say what to change: {', '.join(f'`{name}`' for name in ('text', *values.EDITABLE))}",
            field="text",
        )
    if changes.get("source") == "":
        changes["source"] = None
    return changes
