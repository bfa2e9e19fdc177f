"""Every verb as a Python method, and the table from which the other surfaces are made."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Coroutine
from typing import (
    Any,
    Concatenate,
    Generic,
    ParamSpec,
    Protocol,
    TypeVar,
    cast,
    get_type_hints,
    overload,
)

import msgspec

from mnemosyned.verbs import conversation, listing, memories, retention, upkeep
from mnemosyned.verbs.request import Request, result_type

R = TypeVar("R")
P = ParamSpec("P")


class Caller(Protocol):
    """Carries a request to the service and brings back its result."""

    def call(self, request: Request[R], /) -> R:
        """Run the verb of a request, wait until the verb is done, and return its result.

        In addition to the errors that the verb names, each verb may raise `InvalidRequest`, `StorageFailed`,
        `DatabaseReplaced`, `DatabaseUnreachable` and `MemoryBusy`; a verb that changes the store may raise
        `ShuttingDown`; over a socket each may raise `DaemonUnreachable`, `ForeignDaemon`, `DaemonBusy` and
        `MalformedRequest`, and `LimitReached` where a daemon serves many owners.
        """


class AsyncCaller(Protocol):
    """Carries a request to the service without blocking the event loop."""

    def call(self, request: Request[R], /) -> Coroutine[Any, Any, R]:
        """Return a coroutine that runs the verb of a request and returns the verb's result.

        The coroutine raises the same errors as `Caller.call`: those that the verb names, and those
        that each verb may raise.
        """


class Verb(Generic[P, R]):
    """A verb as a method with its request's signature and result: blocking, or a coroutine.

    Types alone follow from `__get__`: `Verbs` and `AsyncVerbs` have real functions in its place.
    """

    def __init__(self, request: Callable[P, Request[R]]) -> None:
        self.request = request

    @overload
    def __get__(self, caller: Caller, owner: type[Any]) -> Callable[P, R]: ...
    @overload
    def __get__(
        self, caller: AsyncCaller, owner: type[Any]
    ) -> Callable[P, Coroutine[Any, Any, R]]: ...
    @overload
    def __get__(
        self, caller: None, owner: type[Any]
    ) -> Callable[Concatenate[Any, P], Any]: ...
    def __get__(self, caller: object, owner: type[Any]) -> object:
        """Return this descriptor itself; only type checkers use the overloads."""
        return self


class VerbTable:
    """Every verb, once; the other surfaces are made from it."""

    remember = Verb(memories.Remember)
    remember_many = Verb(memories.RememberMany)
    recall = Verb(memories.Recall)
    get = Verb(memories.Get)
    expand = Verb(memories.Expand)
    list = Verb(listing.ListMemories)
    sessions = Verb(listing.Sessions)
    sources = Verb(listing.Sources)
    projects = Verb(listing.Projects)
    days = Verb(listing.Days)
    sleep = Verb(upkeep.Sleep)
    undo = Verb(upkeep.Undo)
    forget = Verb(retention.Forget)
    edit = Verb(memories.EditMemory)
    tag = Verb(memories.Tag)
    untag = Verb(memories.Untag)
    pin = Verb(memories.Pin)
    unpin = Verb(memories.Unpin)
    restore = Verb(retention.Restore)
    prune = Verb(retention.Prune)
    backup = Verb(retention.Backup)
    watch = Verb(upkeep.Watch)
    status = Verb(upkeep.Status)
    log = Verb(upkeep.Log)
    learn = Verb(conversation.Learn)
    learnings = Verb(conversation.Learnings)
    edit_learning = Verb(conversation.EditLearning)
    remove_learning = Verb(conversation.RemoveLearning)
    context = Verb(conversation.Context)
    compact = Verb(conversation.Compact)
    endings = Verb(conversation.Endings)
    undo_ending = Verb(conversation.UndoEnding)
    injections = Verb(conversation.Injections)
    rate_injection = Verb(conversation.RateInjection)
    briefing = Verb(conversation.Briefing)
    edit_briefing = Verb(conversation.EditBriefing)
    consolidate = Verb(upkeep.Sleep)


ALIASES = {"consolidate": "sleep"}
VERBS: dict[str, type[Request[Any]]] = {
    name: cast("type[Request[Any]]", verb.request)
    for name, verb in vars(VerbTable).items()
    if isinstance(verb, Verb) and name not in ALIASES
}


class Verbs(VerbTable):
    """Every verb as a method; `Client` and `Memory` inherit them and bring `call`."""


class AsyncVerbs(VerbTable):
    """Every verb as a coroutine; `AsyncClient` and `AsyncMemory` inherit them and bring `call`."""


def _make_request(
    verb: str,
    request: Callable[..., Request[R]],
    args: tuple[object, ...],
    kwargs: dict[str, object],
) -> Request[R]:
    """Return a verb's request from the arguments of its method. Raises `TypeError`, naming the verb."""
    try:
        return request(*args, **kwargs)
    except TypeError as error:
        problem = str(error)
        if "positional" in problem:
            problem = "only the first field may be given by position; name the others"
        raise TypeError(f"{verb}(): {problem}") from error


class _Signature:
    """The signature of a verb's method, made when `inspect` first asks: a start does not wait."""

    def __init__(self, request: type[Request[Any]]) -> None:
        self._request = request

    @property
    def __signature__(self) -> inspect.Signature:
        """The signature of the verb's method, made from the fields of its request."""
        hints = get_type_hints(self._request)  # without the constraints in `Annotated`
        parameters = [inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY)]
        for field in msgspec.structs.fields(self._request):
            default = field.default
            if field.required:
                default = inspect.Parameter.empty
            elif field.default_factory is not msgspec.NODEFAULT:
                default = field.default_factory()
            is_first = field.name in self._request.__match_args__
            parameters.append(
                inspect.Parameter(
                    field.name,
                    inspect.Parameter.POSITIONAL_OR_KEYWORD
                    if is_first
                    else inspect.Parameter.KEYWORD_ONLY,
                    default=default,
                    annotation=hints[field.name],
                )
            )
        return inspect.Signature(
            parameters, return_annotation=result_type(self._request)
        )


def _add_methods(name: str) -> None:
    """Give the verb's method to `Verbs`, and its coroutine to `AsyncVerbs`, with the verb's docstring."""
    request = VERBS[ALIASES.get(name, name)]

    def run(self: Caller, /, *args: object, **kwargs: object) -> object:
        return self.call(_make_request(name, request, args, kwargs))

    async def run_async(
        self: AsyncCaller, /, *args: object, **kwargs: object
    ) -> object:
        return await self.call(_make_request(name, request, args, kwargs))

    methods: dict[type[VerbTable], Any] = {Verbs: run, AsyncVerbs: run_async}
    for owner, method in methods.items():
        method.__name__ = name
        method.__qualname__ = f"{owner.__qualname__}.{name}"
        method.__module__ = owner.__module__
        method.__doc__ = request.__doc__
        method.__wrapped__ = _Signature(request)  # where `inspect.signature` looks
        setattr(owner, name, method)


for _name in (*VERBS, *ALIASES):
    _add_methods(_name)
