"""The verbs that change what is kept, and the parts that do them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mnemosyned.domain.ports.store import MemoryStore
from mnemosyned.domain.ports.vectors import MemoryVectors
from mnemosyned.service.changing.changes import ChangeService
from mnemosyned.service.changing.edits import Aftermath, EditService
from mnemosyned.service.forgetting.retention import RetentionService
from mnemosyned.service.forgetting.undo import CycleUndo
from mnemosyned.service.learnings import LearningService
from mnemosyned.service.policies import PolicyHolder
from mnemosyned.sleep.sleeper import Sleeper
from mnemosyned.verbs.changes import EditMemory, Pin, Tag, Unpin, Untag
from mnemosyned.verbs.learnings import EditLearning, Learn, Learnings, RemoveLearning
from mnemosyned.verbs.request import Request
from mnemosyned.verbs.retention import Forget, Prune, Restore
from mnemosyned.verbs.sleep import Undo


def change_verbs(
    *,
    store: MemoryStore,
    sleeper: Sleeper,
    retention: RetentionService,
    policies: PolicyHolder,
    vectors: MemoryVectors | None,
) -> dict[type[Request[Any]], Callable[[Any], Any]]:
    """Return the implementation of each verb that changes memories or learnings."""
    clock = sleeper.cycle.clock
    learnings = LearningService(
        store=store.learnings,
        clock=clock,
        policies=policies,
        purge=retention.purger.attempt,
    )
    changes = ChangeService(store=store)
    aftermath = Aftermath(
        rewrite_stale=retention.rewrite_stale_or_log,
        purge=retention.purger.attempt,
        enforce_cap=sleeper.enforce_cap,
        reworded=vectors.reworded if vectors else None,
    )
    edits = EditService(
        store=store, clock=clock, policies=policies, aftermath=aftermath
    )
    undo = CycleUndo(
        store=store, sleeper=sleeper, rewrite_stale=retention.rewrite_stale_or_log
    )
    return {
        Undo: undo.undo,
        Forget: retention.forget,
        EditMemory: edits.edit,
        Tag: changes.tag,
        Untag: changes.untag,
        Pin: changes.pin,
        Unpin: changes.unpin,
        Restore: retention.restore,
        Prune: retention.pruner.prune,
        Learn: learnings.learn,
        Learnings: learnings.learnings,
        EditLearning: learnings.edit,
        RemoveLearning: learnings.remove,
    }
