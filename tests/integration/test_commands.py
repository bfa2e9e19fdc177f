"""Verbs, commands and manual pages say what they do, and agree with each other."""

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
from mnemosyned.cli.arguments import FOR_PROGRAMS, read_fields
from mnemosyned.cli.main import load_command, mnem
from mnemosyned.cli.registry import COMMANDS
from mnemosyned.verbs.facade import ALIASES, VERBS, AsyncVerbs, Verbs
from mnemosyned.verbs.request import Request, result_type

UNLISTED = set("remember_many prune rate_injection edit_briefing undo_ending".split())
"""Verbs that commands of other names run, such as `import` and `archive prune`."""


@each_case("name", COMMANDS)
def test_the_help_of_a_command_has_its_summary_its_example_and_each_field(
    name: str,
) -> None:
    command, entry = load_command(COMMANDS[name]), COMMANDS[name]
    shown = command.get_help(click.Context(command, info_name=name))

    assert command.get_short_help_str(limit=200) == entry.summary
    assert entry.example in shown
    assert entry.example.split()[:2] == ["mnem", name]
    if verb := VERBS.get(ALIASES.get(name, name.replace("-", "_"))):
        assert str(verb.__doc__).splitlines()[0] in " ".join(shown.split())
        for field in msgspec.structs.fields(verb):
            option = re.compile(rf"--{field.name.replace('_', '-')}[ ,]")
            assert (
                field.name in FOR_PROGRAMS
                or option.search(shown)
                or field.name.upper() in shown
            ), field.name


@each_case("name", COMMANDS)
def test_an_example_can_be_typed(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "~" / "notes").mkdir(parents=True, exist_ok=True)
    words = shlex.split(COMMANDS[name].example)[2:]
    command = load_command(COMMANDS[name])
    if isinstance(command, click.Group) and words:
        name, *words = words
        command = command.commands[name]

    with command.make_context(name, words) as context:
        assert context.args == []


def test_every_verb_has_a_command() -> None:
    named = {name.replace("_", "-") for name in VERBS.keys() - UNLISTED}

    assert named <= COMMANDS.keys()


def test_a_request_knows_the_name_of_its_verb() -> None:
    """A class whose name is not the verb's says it: `verb = "list"`."""
    assert [verb.verb_name() for verb in VERBS.values()] == [*VERBS]


def test_a_folder_names_its_project(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = tmp_path / "shop" / ".git" / "config"
    config.parent.mkdir(parents=True)
    config.write_text('[remote "origin"]\nurl = git@github.com:ann/shop.git\n')
    monkeypatch.chdir(tmp_path / "shop")

    for typed in (".", str(tmp_path / "shop"), "github.com/ann/shop"):
        assert read_fields({"project": typed}) == {"project": "github.com/ann/shop"}


def test_a_misspelled_command_gets_the_nearest_one() -> None:
    with pytest.raises(click.UsageError, match="did you mean recall"):
        mnem(["recal"], standalone_mode=False)


# The shell and the client start fast: they load what they need, and none of the rules.


NEEDLESS = {
    *("asyncio", "email", "hashlib", "http.client", "logging", "numpy", "ssl"),
    *("tempfile", "mnemosyned.text.languages.tables", "mnemosyned.text.terms"),
    "mnemosyned.memory.forgetting",
}
"""Modules that the client had once, or could easily get, and does not need."""


def modules_after(statement: str) -> set[str]:
    """The modules in memory once a new interpreter has run a statement."""
    last = "finally: print(*sys.modules, file=sys.stderr)"
    program = f"import sys\ntry: {statement}\n{last}"
    run = subprocess.run(
        [sys.executable, "-P", "-c", program],
        capture_output=True,
        check=False,
        text=True,
    )
    return set(run.stderr.split())


def modules_of_shell(line: str) -> set[str]:
    start = "from mnemosyned.cli.entry import main"
    return modules_after(f"{start}; sys.argv = {line.split()}; main()")


def test_the_help_page_needs_the_table_alone() -> None:
    loaded = modules_of_shell("mnem --help")

    assert "click" in loaded
    assert not loaded & {"msgspec", "mnemosyned.verbs", "mnemosyned.client", "yaml"}


def test_a_recall_loads_its_own_verb_and_words() -> None:
    loaded = modules_of_shell("mnem recall x --socket /nowhere/socket")

    assert "mnemosyned.client.connection" in loaded
    assert not loaded & {
        "mnemosyned.cli.output.upkeep",
        "mnemosyned.client.blocking",
        "mnemosyned.config",
        "mnemosyned.text.secrets.formats",
        "mnemosyned.verbs.conversation",
        "mnemosyned.verbs.facade",
        "mnemosyned.verbs.retention",
        "tabulate",
        "yaml",
    }


def test_the_client_loads_no_rules_and_no_library_it_does_not_need() -> None:
    loaded = modules_after("import mnemosyned.client.blocking")

    assert "mnemosyned.client.blocking" in loaded
    assert loaded & NEEDLESS == set()


@pytest.mark.thorough
def test_tls_is_loaded_for_a_daemon_behind_https_alone() -> None:
    make = "from mnemosyned.client.connection import Connection as C; C({})"
    local = modules_after(make.format("'/run/none'"))
    loopback = modules_after(make.format("url='http://127.0.0.1:1', token='x'"))
    elsewhere = modules_after(make.format("url='https://memory.example', token='x'"))
    shell = modules_after("import mnemosyned.cli.main, mnemosyned.cli.calls")

    assert "ssl" in elsewhere
    assert not {"ssl", "mnemosyned.client.tls"} & (local | loopback | shell)
    assert not {"mnemosyned.client.remote"} & (local | shell)


@pytest.mark.thorough
def test_a_framework_is_loaded_by_its_own_adapter_alone() -> None:
    loaded = modules_after("import mnemosyned.adapters, mnemosyned.assembly.embedded")

    assert "mnemosyned.adapters" in loaded
    assert not {name for name in loaded if name.startswith("mnemosyned.adapters.")}
    assert not loaded & {"agents", "langgraph", "llama_index", "pydantic_ai"}


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
def test_a_verb_has_its_requests_signature(methods: dict[str, Any], name: str) -> None:
    request = request_of(name)
    signature = inspect.signature(methods[name])

    itself, *parameters = signature.parameters.values()

    fields = msgspec.structs.fields(request)
    assert itself.name == "self"
    for parameter, field in zip(parameters, fields, strict=True):
        assert parameter.name == field.name
        assert (parameter.default is parameter.empty) == field.required
        assert get_origin(parameter.annotation) is not Annotated
        assert "Meta(" not in str(parameter.annotation)
    assert all(parameter.kind is parameter.KEYWORD_ONLY for parameter in parameters[1:])
    assert signature.return_annotation is result_type(request)


@each_case("name", VERBS)
def test_a_verbs_docstring_names_the_errors_it_raises(name: str) -> None:
    first, _, rest = inspect.cleandoc(str(VERBS[name].__doc__)).partition("Raises ")

    words = set(re.findall(r"`(\w+)`", rest))
    named = words - VERBS.keys() - {"field"}
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


# Manual pages and completion scripts are made from the commands.


MAKEFILE = Path(__file__).parents[2] / "Makefile"


@pytest.fixture(scope="module")
def pages() -> dict[str, str]:
    return dict(manual_pages())


def test_every_command_has_a_page_with_its_example(pages: dict[str, str]) -> None:
    assert {"mnem", "mnemosyned", "mnem-archive-prune"} <= pages.keys()
    for name, command in COMMANDS.items():
        page = pages[f"mnem-{name}"].replace(r"\-", "-")
        summary = command.summary.removesuffix(".")
        assert f".SH NAME\nmnem-{name} - {summary}\n" in page
        assert f".SH EXAMPLE\n.EX\n{command.example}" in page


@pytest.mark.skipif(not shutil.which("groff"), reason="groff is not installed")
def test_the_pages_are_roff_without_a_mistake(pages: dict[str, str]) -> None:
    done = subprocess.run(
        ["groff", "-man", "-Tutf8", "-ww"],
        input="".join(pages.values()).encode(),
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


def test_the_summary_of_a_subcommand_is_not_cut() -> None:
    command = load_command(COMMANDS["model"])

    shown = command.get_help(click.Context(command, info_name="model"))

    assert "the models that can be fetched by a short name." in " ".join(shown.split())


def test_every_command_is_in_a_group_of_the_help() -> None:
    assert all(command.group for command in COMMANDS.values())
