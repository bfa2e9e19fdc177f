"""Every verb as a Python method, and the table from which the other surfaces are made."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar, get_type_hints

import msgspec

from mnemosyned.verbs.conversation import Compact, Context
from mnemosyned.verbs.learnings import EditLearning, Learn, Learnings, RemoveLearning
from mnemosyned.verbs.memories import Expand, Get, Recall, Remember, RememberMany
from mnemosyned.verbs.request import Request, prepare, result_type
from mnemosyned.verbs.retention import Backup, Forget, Pin, Prune, Restore, Unpin
from mnemosyned.verbs.sleep import Log, Sleep, Undo
from mnemosyned.verbs.status import Status

R = TypeVar("R")
P = ParamSpec("P")

VERBS: dict[str, type[Request[Any]]] = {
    "remember": Remember,
    "remember_many": RememberMany,
    "recall": Recall,
    "get": Get,
    "expand": Expand,
    "sleep": Sleep,
    "undo": Undo,
    "forget": Forget,
    "pin": Pin,
    "unpin": Unpin,
    "restore": Restore,
    "prune": Prune,
    "backup": Backup,
    "status": Status,
    "log": Log,
    "learn": Learn,
    "learnings": Learnings,
    "edit_learning": EditLearning,
    "remove_learning": RemoveLearning,
    "context": Context,
    "compact": Compact,
}
ALIASES = {"consolidate": "sleep"}
for _verb in VERBS.values():  # at import, which no two threads do at once
    prepare(_verb)


class Caller(Protocol):
    """Carries a request to the service and brings back its result."""

    def call(self, request: Request[R], /) -> R:
        """Run one verb.

        Besides the errors a verb names, each may raise `InvalidRequest`, `StorageFailed` and
        `DatabaseReplaced`; one that writes `ShuttingDown`; and over a socket `DaemonUnreachable`,
        `ForeignDaemon`, `DaemonBusy` and `MalformedRequest`.
        """
        ...


def verb(request: Callable[P, Request[R]]) -> Callable[Concatenate[Caller, P], R]:
    """Turn a request type into a method with that request's signature and result."""

    def method(self: Caller, /, *args: P.args, **kwargs: P.kwargs) -> R:
        try:
            call = request(*args, **kwargs)
        except TypeError as error:
            raise TypeError(_misuse(method.__name__, str(error))) from error
        return self.call(call)

    return method


def _misuse(name: str, problem: str) -> str:
    """The message about wrong arguments of a call."""
    if "positional" in problem:
        problem = "only the first field may be given by position; name the others"
    return f"{name}(): {problem}"


class Verbs:
    """Every verb as a method; `Client` and `Memory` inherit them and bring `call`."""

    remember = verb(Remember)
    remember_many = verb(RememberMany)
    recall = verb(Recall)
    get = verb(Get)
    expand = verb(Expand)
    sleep = verb(Sleep)
    consolidate = verb(Sleep)
    undo = verb(Undo)
    forget = verb(Forget)
    pin = verb(Pin)
    unpin = verb(Unpin)
    restore = verb(Restore)
    prune = verb(Prune)
    backup = verb(Backup)
    status = verb(Status)
    log = verb(Log)
    learn = verb(Learn)
    learnings = verb(Learnings)
    edit_learning = verb(EditLearning)
    remove_learning = verb(RemoveLearning)
    context = verb(Context)
    compact = verb(Compact)


class _Signature:
    """The signature of a verb's method, made when `inspect` first asks: a start does not wait."""

    def __init__(self, request: type[Request[Any]]) -> None:
        self._request = request

    @property
    def __signature__(self) -> inspect.Signature:
        hints = get_type_hints(self._request)  # without the constraints in `Annotated`
        parameters = [
            inspect.Parameter(
                field.name,
                inspect.Parameter.POSITIONAL_OR_KEYWORD
                if field.name in self._request.__match_args__
                else inspect.Parameter.KEYWORD_ONLY,
                default=_default(field),
                annotation=hints[field.name],
            )
            for field in msgspec.structs.fields(self._request)
        ]
        itself = inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY)
        return inspect.Signature(
            [itself, *parameters], return_annotation=result_type(self._request)
        )


def _default(field: msgspec.structs.FieldInfo) -> object:
    if field.required:
        return inspect.Parameter.empty
    if field.default_factory is not msgspec.NODEFAULT:
        return field.default_factory()
    return field.default


def _describe(method: Any, name: str, request: type[Request[Any]]) -> None:  # noqa: ANN401
    """Give a verb's method the name, docstring and signature of a function written by hand."""
    method.__name__ = name
    method.__qualname__ = f"{Verbs.__qualname__}.{name}"
    method.__module__ = Verbs.__module__
    method.__doc__ = request.__doc__
    method.__wrapped__ = _Signature(request)  # where `inspect.signature` looks


for _name in (*VERBS, *ALIASES):
    _describe(getattr(Verbs, _name), _name, VERBS[ALIASES.get(_name, _name)])
