"""Verbs, commands and manual pages say what they do, and agree with each other."""

from __future__ import annotations

import inspect
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, get_origin

import click
import msgspec
import pytest
from manual_pages import SCRIPTS, manual_pages, write_manual
from support.cases import each_case

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
from mnemosyned.cli.main import load_command
from mnemosyned.cli.registry import COMMANDS
from mnemosyned.verbs.facade import ALIASES, VERBS, AsyncVerbs, Verbs
from mnemosyned.verbs.request import Request, result_type

UNLISTED = {
    "remember_many",
    "prune",
    "rate_injection",
    "edit_briefing",
    "undo_ending",
}
"""Verbs that commands of other names run, such as `import` and `archive prune`."""


@each_case("name", COMMANDS)
def test_a_summary_is_the_first_sentence_of_the_command(name: str) -> None:
    command = load_command(COMMANDS[name])

    assert command.get_short_help_str(limit=200) == COMMANDS[name].summary


@each_case("name", COMMANDS)
def test_the_help_of_a_command_has_its_example(name: str) -> None:
    command = load_command(COMMANDS[name])
    example = COMMANDS[name].example

    assert example in command.get_help(click.Context(command, info_name=name))
    assert example.split()[:2] == ["mnem", name]


@pytest.mark.parametrize("name", COMMANDS)
def test_an_example_can_be_typed(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "~" / "notes").mkdir(parents=True)
    words = shlex.split(COMMANDS[name].example)[2:]
    command = load_command(COMMANDS[name])
    if isinstance(command, click.Group) and words:
        name, *words = words
        command = command.commands[name]

    with command.make_context(name, words) as context:
        assert context.args == []


def test_every_command_is_in_a_group_of_the_help() -> None:
    assert all(command.group for command in COMMANDS.values())


def test_every_verb_has_a_command() -> None:
    named = {name.replace("_", "-") for name in VERBS.keys() - UNLISTED}

    assert named <= COMMANDS.keys()


def test_a_request_knows_the_name_of_its_verb() -> None:
    """A class whose name is not the verb's says it: `verb = "list"`."""
    assert {name: verb.verb_name() for name, verb in VERBS.items()} == {
        name: name for name in VERBS
    }


def modules_after(line: str) -> set[str]:
    program = f"import sys\nfrom mnemosyned.cli.entry import main\nsys.argv = {line.split()}\n"
    program += "try: main()\nfinally: print(*sys.modules, file=sys.stderr)"
    run = subprocess.run(
        [sys.executable, "-P", "-c", program],
        capture_output=True,
        check=False,
        text=True,
    )
    return set(run.stderr.split())


def test_the_help_page_needs_the_table_alone() -> None:
    loaded = modules_after("mnem --help")

    assert "click" in loaded
    assert not loaded & {"msgspec", "mnemosyned.verbs", "mnemosyned.client", "yaml"}


def test_a_recall_loads_its_own_verb_and_words() -> None:
    loaded = modules_after("mnem recall x --socket /nowhere/socket")

    assert "mnemosyned.client.connection" in loaded
    assert not loaded & {
        "mnemosyned.cli.output.upkeep",
        "mnemosyned.client.blocking",
        "mnemosyned.config",
        "mnemosyned.text.secrets.masking",
        "mnemosyned.verbs.conversation",
        "mnemosyned.verbs.facade",
        "mnemosyned.verbs.retention",
        "tabulate",
        "yaml",
    }


def test_a_misspelled_command_gets_the_nearest_one() -> None:
    with pytest.raises(click.UsageError, match="did you mean recall"):
        load_by_name("recal")


def load_by_name(name: str) -> None:
    from mnemosyned.cli.main import mnem  # noqa: PLC0415 the group as users run it

    mnem([name], standalone_mode=False)


# The methods of `Client` and `Memory` as `help`, editors and careless callers meet them.


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


@each_case("name", METHODS)
@each_case("owner", [Client, Memory, AsyncClient, AsyncMemory])
def test_a_verb_has_the_name_and_docstring_of_a_method(
    owner: type[Verbs | AsyncVerbs], name: str
) -> None:
    method = getattr(owner, name)

    base = "AsyncVerbs" if issubclass(owner, AsyncVerbs) else "Verbs"
    assert method.__name__ == name
    assert method.__qualname__ == f"{base}.{name}"
    assert method.__module__ == "mnemosyned.verbs.facade"
    assert inspect.getdoc(method) == inspect.cleandoc(str(request_of(name).__doc__))


@each_case("name", METHODS)
@each_case("methods", [METHODS, COROUTINES])
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


@each_case("name", VERBS)
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


# Manual pages and completion scripts are made from the commands.


PAGES = dict(manual_pages())
MAKEFILE = Path(__file__).parents[2] / "Makefile"


def test_every_command_has_a_page_with_its_example() -> None:
    assert {f"mnem-{name}" for name in COMMANDS} | {
        "mnem",
        "mnemosyned",
    } <= PAGES.keys()
    assert "mnem-archive-prune" in PAGES
    for name, command in COMMANDS.items():
        page = PAGES[f"mnem-{name}"].replace(r"\-", "-")
        summary = command.summary.removesuffix(".")
        assert f".SH NAME\nmnem-{name} - {summary}\n" in page
        assert f".SH EXAMPLE\n.EX\n{command.example}" in page


@pytest.mark.skipif(not shutil.which("groff"), reason="groff is not installed")
def test_the_pages_are_roff_without_a_mistake() -> None:
    done = subprocess.run(
        ["groff", "-man", "-Tutf8", "-ww"],
        input="".join(PAGES.values()).encode(),
        capture_output=True,
        check=True,
    )
    text = re.sub("\x1b\\[[0-9;]*m|.\x08", "", done.stdout.decode())

    assert done.stderr == b""
    assert "-n, --limit NUMBER" in text


def test_what_is_installed_is_what_uninstall_removes(tmp_path: Path) -> None:
    write_manual(tmp_path)
    for script in SCRIPTS.values():
        assert "_MNEM_COMPLETE" in (tmp_path / script).read_text("utf-8")

    definition = re.search(
        r"^PAGES := ((?:.*\\\n)*.*)", MAKEFILE.read_text("utf-8"), re.MULTILINE
    )
    assert definition
    for pattern in definition[1].replace("\\\n", " ").split():
        for file in tmp_path.glob(pattern):
            file.unlink()
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_the_help_of_every_subcommand_has_an_example() -> None:
    for name, entry in COMMANDS.items():
        command = load_command(entry)
        waiting = [(f"mnem {name}", command)]
        while waiting:
            path, each = waiting.pop()
            members = each.commands if isinstance(each, click.Group) else {}
            waiting += [(f"{path} {word}", members[word]) for word in members]
            if not members:
                assert f"Example: {path}" in str(each.epilog), path
