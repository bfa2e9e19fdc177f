"""`LearningService`: the verbs that store, list, edit and remove learnings."""

from __future__ import annotations

from collections.abc import Callable

from mnemosyned.domain.ids import new_id
from mnemosyned.domain.learnings.learning import Learning
from mnemosyned.domain.ports.clock import Clock
from mnemosyned.domain.ports.learnings import LearningStore
from mnemosyned.service.intake import clean_learning_text
from mnemosyned.service.policies import PolicyHolder
from mnemosyned.verbs.learnings import (
    EditedLearning,
    EditLearning,
    Learn,
    Learned,
    LearningList,
    Learnings,
    RemovedLearning,
    RemoveLearning,
)
from mnemosyned.verbs.request import names


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
