"""The ledger of injected context: its entries and its verbs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING

from mnemosyned.errors import InvalidRequest
from mnemosyned.ids import made_at, new_id
from mnemosyned.memory.injections import (
    LINE_CHARS_MAX,
    PROMPT_CHARS_MAX,
    InjectedLine,
    Injection,
    InjectionFilter,
    InjectionKind,
    InjectionOutcome,
)
from mnemosyned.text.frames import neutralize_line
from mnemosyned.text.secrets.masking import mask_secrets
from mnemosyned.text.token_counts import TokenEstimator
from mnemosyned.verbs.injections import (
    InjectionList,
    Injections,
    RatedInjection,
    RateInjection,
)
from mnemosyned.verbs.request import instant

if TYPE_CHECKING:
    from mnemosyned.storage.common.injections import InjectionStore


def make_injection(
    now: datetime,
    kind: InjectionKind,
    *,
    client: str,
    session: str,
    project: str = "",
    prompt: str = "",
    text: str = "",
    lines: Sequence[InjectedLine] = (),
    outcome: InjectionOutcome = InjectionOutcome.UNKNOWN,
) -> Injection:
    """Return the ledger's entry for a text given to an agent now; empty for one that was missed.

    The beginning of the prompt and of each line is kept, with secrets masked and tags neutralized.
    """
    return Injection(
        id=new_id(now),
        created_at=now,
        client=client,
        session=session,
        project=project,
        kind=kind,
        prompt=_mask_beginning(prompt, PROMPT_CHARS_MAX),
        characters=len(text),
        tokens=TokenEstimator().count(text) if text else 0,
        outcome=outcome,
        lines=tuple(
            replace(line, text=_mask_beginning(line.text, LINE_CHARS_MAX))
            for line in lines
        ),
    )


def _mask_beginning(text: str, chars_max: int) -> str:
    """Return the beginning of a text as one line, with secrets masked and tags neutralized."""
    return neutralize_line(mask_secrets(text))[:chars_max]


@dataclass(eq=False, kw_only=True)
class LedgerService:
    """The verbs of the ledger over one store."""

    store: InjectionStore

    def injections(self, request: Injections) -> InjectionList:
        """Return the injections that a request selects, newest first. Raises `InvalidRequest`."""
        after = request.after and request.after.upper()
        if after and made_at(after) is None:
            raise InvalidRequest(
                "after is no id of an injection; give the id of the last one listed",
                field="after",
            )
        chosen = InjectionFilter(
            session=request.session,
            project=request.project,
            since=instant(request.since),
            until=instant(request.until),
            outcome=request.outcome,
            after=after,
        )
        found = self.store.find(chosen, limit=request.limit)
        return InjectionList(found, self.store.totals())

    def rate(self, request: RateInjection) -> RatedInjection:
        """Save what an injection was good for."""
        outcome = InjectionOutcome(request.outcome)
        self.store.rate(request.id, outcome)
        return RatedInjection(request.id, outcome, self.store.totals())
