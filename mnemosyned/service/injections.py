"""The verbs of the ledger of injected context."""

from __future__ import annotations

from mnemosyned.memory.injections import (
    InjectionFilter,
    InjectionOutcome,
    InjectionStore,
)
from mnemosyned.verbs.injections import (
    InjectionList,
    Injections,
    RatedInjection,
    RateInjection,
)
from mnemosyned.verbs.request import instant


class LedgerService:
    """The verbs of the ledger over one store."""

    def __init__(self, *, store: InjectionStore) -> None:
        self._store = store

    def injections(self, request: Injections) -> InjectionList:
        """Return the injections that a request's filters select, the newest first."""
        chosen = InjectionFilter(
            session=request.session,
            project=request.project,
            since=instant(request.since),
            outcome=request.outcome,
        )
        found = self._store.find(chosen, limit=request.limit)
        return InjectionList(found, self._store.totals())

    def rate(self, request: RateInjection) -> RatedInjection:
        """Save what an injection was good for."""
        outcome = InjectionOutcome(request.outcome)
        self._store.rate(request.id, outcome)
        return RatedInjection(request.id, outcome, self._store.totals())
