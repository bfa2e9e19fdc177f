"""The methods of `Client` and `Memory` as `help`, editors and careless callers meet them."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, get_origin

import msgspec
import pytest

import mnemosyned
from mnemosyned import (
    AsyncClient,
    AsyncMemory,
    Client,
    InvalidRequest,
    Memory,
    MnemosynedError,
    Remember,
)
from mnemosyned.verbs.facade import ALIASES, VERBS, AsyncVerbs, Verbs
from mnemosyned.verbs.request import Request, result_type


def methods_of(verbs: type[Verbs | AsyncVerbs]) -> dict[str, Any]:
    return {
        name: method
        for name, method in vars(verbs).items()
        if inspect.isfunction(method) and not name.startswith("_")
    }


METHODS = methods_of(Verbs)
COROUTINES = methods_of(AsyncVerbs)
SHOWN_IN_FULL = 57
"""Characters of a first sentence that `mnem --help` shows on a terminal of 80 columns."""


def request_of(name: str) -> type[Request[Any]]:
    return VERBS[ALIASES.get(name, name)]


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    with Memory(tmp_path / "memory.db") as opened:
        yield opened


def test_every_verb_is_a_method_and_a_coroutine() -> None:
    assert METHODS.keys() == VERBS.keys() | ALIASES.keys()
    assert COROUTINES.keys() == METHODS.keys()
    assert all(map(inspect.iscoroutinefunction, COROUTINES.values()))
    assert not any(map(inspect.iscoroutinefunction, METHODS.values()))


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("owner", [Client, Memory, AsyncClient, AsyncMemory])
def test_a_verb_has_the_name_and_docstring_of_a_method(
    owner: type[Verbs | AsyncVerbs], name: str
) -> None:
    method = getattr(owner, name)

    base = "AsyncVerbs" if issubclass(owner, AsyncVerbs) else "Verbs"
    assert method.__name__ == name
    assert method.__qualname__ == f"{base}.{name}"
    assert method.__module__ == "mnemosyned.verbs.facade"
    assert inspect.getdoc(method) == inspect.cleandoc(str(request_of(name).__doc__))


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("methods", [METHODS, COROUTINES])
def test_a_verb_has_the_signature_of_its_request(
    methods: dict[str, Any], name: str
) -> None:
    request = request_of(name)

    itself, *parameters = inspect.signature(methods[name]).parameters.values()

    fields = msgspec.structs.fields(request)
    assert itself.name == "self"
    assert [parameter.name for parameter in parameters] == [
        field.name for field in fields
    ]
    for parameter, field in zip(parameters, fields, strict=True):
        assert (parameter.default is parameter.empty) == field.required
        assert get_origin(parameter.annotation) is not Annotated
        assert "Meta(" not in str(parameter.annotation)
    assert all(parameter.kind is parameter.KEYWORD_ONLY for parameter in parameters[1:])
    result = inspect.signature(methods[name]).return_annotation
    assert result is result_type(request)


@pytest.mark.parametrize("name", VERBS)
def test_a_verbs_docstring_names_the_errors_it_raises(name: str) -> None:
    first, _, rest = inspect.cleandoc(str(VERBS[name].__doc__)).partition("Raises ")

    named = {
        word for word in re.findall(r"`(\w+)`", rest) if word not in (*VERBS, "field")
    }
    assert rest
    assert named or "what `remember` raises" in rest
    errors = {getattr(mnemosyned, word) for word in named if word[0].isupper()}
    assert all(issubclass(error, MnemosynedError) for error in errors)
    assert len(first.split(".")[0]) <= SHOWN_IN_FULL


def test_a_second_positional_argument_is_refused(memory: Memory) -> None:
    with pytest.raises(TypeError, match=r"remember\(\): only the first field"):
        memory.remember("a", "b")  # type: ignore[call-arg]  # mypy finds it, too
    with pytest.raises(TypeError):
        Remember("a", "b")  # type: ignore[call-arg]
    with pytest.raises(TypeError, match=r"sleep\(\): only"):
        memory.sleep("session")  # type: ignore[call-arg]
    with pytest.raises(TypeError, match=r"recall\(\): .*'number'"):
        memory.recall("x", number=3)  # type: ignore[call-arg]


def test_bytes_are_no_text(memory: Memory) -> None:
    with pytest.raises(InvalidRequest, match="content must be text, not bytes") as told:
        memory.remember(b"the bike is blue")  # type: ignore[arg-type]  # mypy finds it, too
    with pytest.raises(InvalidRequest) as nested:
        memory.remember_many([Remember("x"), Remember("y", role=b"me")])  # type: ignore[arg-type]

    assert told.value.field == "content"
    assert nested.value.field == "memories[1].role"
    assert memory.status().tiers["working"].count == 0  # type: ignore[index]


def test_results_that_are_lists_are_iterated_and_counted(memory: Memory) -> None:
    kept = memory.remember_many([Remember("The bike is blue."), Remember("Tea at 4.")])
    lesson = memory.learn("Taste before you salt.").learning
    found = memory.recall("bike")
    memory.sleep(force=True)

    assert [one.stored for one in kept] == [True, True]
    assert len(kept) == 2
    assert [hit.snippet for hit in found] == ["The bike is blue."]
    assert len(found) == 1
    assert not memory.recall("parrot")
    assert [one.id for one in memory.learnings()] == [lesson.id]
    assert [row.items_consolidated for row in memory.log()] == [1, 1]
