"""The verbs for a token's owner, who may also be a member of groups."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar, cast

import msgspec

from mnemosyned.daemon.resources import ScopedCaller
from mnemosyned.errors import MnemosynedError, NotFound, ScopeMissing
from mnemosyned.memory.engine_ports import Scope, SharedMemory, TokenHolder
from mnemosyned.service.audit import REQUESTER
from mnemosyned.service.service import Groups, MemoryService
from mnemosyned.verbs.conversation import Context, EditLearning, RemoveLearning
from mnemosyned.verbs.listing import Listed, ListMemories
from mnemosyned.verbs.memories import (
    EditMemory,
    Expand,
    Get,
    Pin,
    Recall,
    Tag,
    Unpin,
    Untag,
)
from mnemosyned.verbs.request import Request, names
from mnemosyned.verbs.retention import Forget, Restore
from mnemosyned.verbs.upkeep import GroupAccess, Stats

R = TypeVar("R")
BY_ID = (
    *(Get, Expand, EditMemory, Tag, Untag, Pin, Unpin, Forget, Restore),
    *(EditLearning, RemoveLearning),
)
"""Verbs that find the memory of their id themselves: one's own first, then those of one's groups."""


class MemberCaller(ScopedCaller):
    """Caller of verbs on an owner's memory and, unless a request names a memory, on its groups'.

    Recall and context search all of them. A verb with an id works in the first that has it.
    """

    def __init__(
        self,
        own: MemoryService,
        holder: TokenHolder,
        *,
        service_of: Callable[[int], MemoryService],
        groups_max: int,
    ) -> None:
        """Call verbs on `own`, and by `service_of` on the first groups, as the token allows."""
        super().__init__(own, holder.scopes)
        self._own = own
        self._holder = holder
        self._service_of = service_of
        self._groups = holder.groups[:groups_max]

    @property
    def readable_groups(self) -> Groups:
        """Functions that open the memories of groups that the token may read, by name of the group."""
        return {
            group.name: partial(self._open, group, is_noted=True)
            for group in self._groups
            if Scope.READ in group.scopes
        }

    def call(self, request: Request[R], /) -> R:
        """Carry out a request and return its result. Raises `ScopeMissing`, and its errors."""
        verb: type[Request[Any]] = type(request)
        _log_about(self._holder.owner)  # a call before it may have been about a group
        if verb in (Recall, Context):
            self.check(request)
            return self._own.call(request, groups=self.readable_groups)
        if verb in BY_ID and getattr(request, "id", None):
            return self._call_by_id(request)
        result: R = super().call(request)
        if isinstance(result, Stats):
            groups = [
                GroupAccess(group.name, sorted(group.scopes))
                for group in self._holder.groups
            ]
            return cast("R", msgspec.structs.replace(result, groups=groups))
        if verb is ListMemories and getattr(request, "id_prefix", None):
            # The shell asks so for an id whose beginning was typed.
            for group in self._groups:
                if Scope.READ in group.scopes and not len(cast("Listed", result)):
                    result = self._open(group).call(request)
                    if len(cast("Listed", result)):
                        _log_about(group.owner)
        return result

    def _call_by_id(self, request: Request[R]) -> R:
        """Carry out a request in the first memory with its id: one's own, then each group's.

        Raises `ScopeMissing` if a group has it and the token may not, and `NotFound` without any.
        """
        refused: MnemosynedError
        try:
            return super().call(request)
        except NotFound as unknown:
            refused = unknown
        for group in self._groups:
            caller = ScopedCaller(self._open(group), group.scopes)
            _log_about(group.owner)
            try:
                return caller.call(request)
            except NotFound:
                continue
            except ScopeMissing as missing:
                # Who may read it is told that it is there.
                with suppress(NotFound, ScopeMissing):
                    caller.call(Get(names(getattr(request, "id", None))[0]))
                    refused = missing
        _log_about(self._holder.owner)
        raise refused

    def _open(self, group: SharedMemory, *, is_noted: bool = False) -> MemoryService:
        """Return the service of a group's memory; `is_noted` has the audit log name the group."""
        service = self._service_of(group.owner)
        if is_noted:
            sender = REQUESTER.get()
            REQUESTER.set(sender._replace(groups=(*sender.groups, group.owner)))
        return service


def _log_about(owner: int) -> None:
    """Have the audit log name the owner of the memory that this thread's request is about."""
    REQUESTER.set(REQUESTER.get()._replace(about=owner, groups=()))
