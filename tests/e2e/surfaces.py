"""The four ways to call a verb, made alike: fields of JSON in, the result as JSON out."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import msgspec
from e2e.daemons import Daemon, Json

from mnemosyned import Client, Memory, MnemosynedError
from mnemosyned.verbs.facade import ALIASES, VERBS

FILES = {"messages", "tools"}
COMMANDS = {"prune": ["archive", "prune"]}
"""Verbs whose shell command has another name."""
ASK_FIRST = {"forget", "prune", "edit", "tag", "untag", "pin", "unpin", "undo"}


@dataclass(frozen=True, slots=True)
class Refused(Exception):
    """A surface's no, in the words every surface has."""

    exit_code: int | None
    code: str | None
    field: str | None
    message: str


class Surface(Protocol):
    def call(self, name: str, **fields: Json) -> Json:
        """The result as JSON. Raises `Refused`."""
        ...


@dataclass(frozen=True, slots=True)
class OverHttp:
    """POST with a JSON object."""

    daemon: Daemon

    def call(self, name: str, **fields: Json) -> Json:
        answer = self.daemon.post(name, **fields)
        if answer.status != 200:
            raise Refused(None, *answer.error, answer.body["error"]["message"])
        return answer.body


@dataclass(frozen=True, slots=True)
class InPython:
    caller: Client | Memory

    def call(self, name: str, **fields: Json) -> Json:
        verb = VERBS[ALIASES.get(name, name)]
        given: Mapping[str, Json] = fields
        try:
            request = msgspec.convert(fields, verb)
        except msgspec.ValidationError:
            pass  # what the types forbid is handed over as it is, as a careless program would
        else:
            given = {field: getattr(request, field) for field in fields}
        try:
            result = getattr(self.caller, name)(**given)
        except MnemosynedError as error:
            raise Refused(None, error.code, error.field, error.message) from error
        return msgspec.json.decode(msgspec.json.encode(result))


@dataclass(frozen=True, slots=True)
class InTheShell:
    """`mnem VERB … --json`; a batch is a file for `mnem import`."""

    daemon: Daemon
    room: Path

    def call(self, name: str, **fields: Json) -> Json:
        if name == "remember_many":  # noqa: SIM108 longer than a line can be
            words = self._import(fields)
        else:
            words = _words(name, self._in_files(fields))
        done = self.daemon.mnem(*words)
        if done.returncode not in (0, 1):
            told = json.loads(done.stderr)["error"]
            raise Refused(done.returncode, told["code"], told["field"], told["message"])
        return json.loads(done.stdout)

    def _in_files(self, fields: Mapping[str, Json]) -> dict[str, Json]:
        """Fields that the shell reads from files, written to files."""
        given = dict(fields)
        for name in FILES & given.keys():
            file = self.room / f"{name}.json"
            file.write_text(json.dumps(given[name]))
            given[name] = str(file)
        return given

    def _import(self, fields: Mapping[str, Json]) -> list[str]:
        file = self.room / "batch.jsonl"
        file.write_text(
            "".join(json.dumps(memory) + "\n" for memory in fields["memories"])
        )
        return ["import", "--json", str(file)]


def _words_of_another_command(name: str, fields: Mapping[str, Json]) -> list[str]:
    """The words for a verb that is a form of another command."""
    if name == "rate_injection":
        return ["injections", "--json", fields["outcome"], fields["id"]]
    if name == "undo_ending":
        change = "redo" if fields["redo"] else "undo"
        return ["endings", "--json", change, fields["id"]]
    if "text" in fields:
        return ["briefing", "--json", "--reword", fields["id"], fields["text"]]
    change = "--pin" if fields["pin"] else "--drop"
    return ["briefing", "--json", change, fields["id"]]


def _words(name: str, fields: Mapping[str, Json]) -> list[str]:
    if name in ("rate_injection", "undo_ending", "edit_briefing"):
        return _words_of_another_command(name, fields)
    options = [
        *COMMANDS.get(name, [name.replace("_", "-")]),
        "--json",
        *(["--yes"] if name in ASK_FIRST else []),
    ]
    last = ["--"]
    for field, value in fields.items():
        option = f"--{field.replace('_', '-')}"
        if field == "tags" and name in ("tag", "untag"):
            last.insert(1, ",".join(value))
        elif field == "tags" and name == "remember":
            options += [word for tag in value for word in ("--tag", tag)]
        elif field in VERBS[ALIASES.get(name, name)].__match_args__:
            last += value if isinstance(value, list) else [value]
        elif value is True:
            options.append(option)
        elif isinstance(value, list) and field != "metadata":
            options += [word for member in value for word in (option, member)]
        elif value is not False:
            options += [option, value if isinstance(value, str) else json.dumps(value)]
    return options + last
