"""The scopes of an owner's token, and what each allows."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, TypeVar

from mnemosyned.domain.errors import ScopeMissing
from mnemosyned.domain.ports.servers.owners import Scope
from mnemosyned.verbs.facade import Caller
from mnemosyned.verbs.memories import RememberMany
from mnemosyned.verbs.request import Request

R = TypeVar("R")


def require_scope(scope: Scope, scopes: Collection[Scope] | None, what: str) -> None:
    """Require a scope of a token; who needs none has None. Raises `ScopeMissing`."""
    if scopes is None or scope in scopes:
        return
    allowed = " and ".join(each for each in Scope if each in scopes)
    raise ScopeMissing(f"this token allows {allowed}; {what} needs the scope {scope}")


def scopes_of(request: Request[Any]) -> tuple[Scope, ...]:
    """Return the scopes that a call needs: the verb's, and `read` for a preview, which shows memories."""
    needed = Scope.READ
    if request.writes:
        needed = Scope.FORGET if request.deletes else Scope.WRITE
    # A dry run of `remember_many` shows what the caller sent.
    shows = getattr(request, "dry_run", False) and not isinstance(request, RememberMany)
    return (needed, Scope.READ) if shows else (needed,)


class ScopedCaller(Caller):
    """A caller that does what a token allows."""

    def __init__(self, caller: Caller, scopes: Collection[Scope]) -> None:
        self._caller = caller
        self._scopes = scopes

    def call(self, request: Request[R], /) -> R:
        """Run one verb. Raises `ScopeMissing` besides what the verb raises."""
        verb = request.verb_name()
        needed, *further = scopes_of(request)
        require_scope(needed, self._scopes, verb)
        for scope in further:
            require_scope(scope, self._scopes, f"a preview ({verb} with dry_run)")
        return self._caller.call(request)
