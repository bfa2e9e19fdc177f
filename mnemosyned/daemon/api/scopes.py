"""The scopes of an owner's token, and what each allows."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, TypeVar

from mnemosyned.domain.errors import ScopeMissing
from mnemosyned.domain.ports.servers.owners import Scope
from mnemosyned.verbs.facade import Caller
from mnemosyned.verbs.request import Request

R = TypeVar("R")


def require_scope(scope: Scope, scopes: Collection[Scope] | None, what: str) -> None:
    """Require a scope of a token; who needs none has None. Raises `ScopeMissing`."""
    if scopes is None or scope in scopes:
        return
    allowed = " and ".join(each for each in Scope if each in scopes)
    raise ScopeMissing(f"this token allows {allowed}; {what} needs the scope {scope}")


def scope_of(verb: type[Request[Any]]) -> Scope:
    """The scope that a verb needs."""
    if verb.deletes:
        return Scope.FORGET
    return Scope.WRITE if verb.writes else Scope.READ


class ScopedCaller(Caller):
    """A caller that does what a token allows."""

    def __init__(self, caller: Caller, scopes: Collection[Scope]) -> None:
        self._caller = caller
        self._scopes = scopes

    def call(self, request: Request[R], /) -> R:
        """Run one verb. Raises `ScopeMissing` besides what the verb raises."""
        require_scope(scope_of(type(request)), self._scopes, request.verb_name())
        return self._caller.call(request)
