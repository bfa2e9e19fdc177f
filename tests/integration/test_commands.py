"""The table of commands says what the commands are, and loads none but the one that is named."""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path

import click
import pytest

from mnemosyned.cli.main import load_command
from mnemosyned.cli.registry import COMMANDS
from mnemosyned.verbs.facade import VERBS

UNLISTED = {"remember_many", "prune"}
"""Verbs that other commands run: `import` and `archive prune`."""


@pytest.mark.parametrize("name", COMMANDS)
def test_a_summary_is_the_first_sentence_of_the_command(name: str) -> None:
    command = load_command(COMMANDS[name])

    assert command.get_short_help_str(limit=200) == COMMANDS[name].summary


@pytest.mark.parametrize("name", COMMANDS)
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
        "mnemosyned.text.secrets.formats",
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
