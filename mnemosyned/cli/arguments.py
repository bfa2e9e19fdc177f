"""Arguments and options of a verb's command, and a request's fields from what was typed."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import click
import msgspec

from mnemosyned.cli.registry import COMMANDS
from mnemosyned.errors import InvalidRequest
from mnemosyned.paths import require_usable_path
from mnemosyned.verbs.request import Request, fields_of

FILES = {"messages", "tools"}
"""Fields that are lists of objects: the shell reads them from a file, or from - for its input."""
FROM_STDIN = {
    "content": "say what to remember: mnem {} We deploy on Tuesdays",
    "query": "ask something: mnem {} when do we deploy",
    "message": "say what the message is: mnem {} when do we deploy",
}
"""Arguments of several words, without quotes; if left out, or -, they come from standard input. The values are
hints, printed if standard input is a terminal."""
SHORT = {
    "limit": "-n",
    "session": "-s",
    "source": "-S",
    "tag": "-t",
    "tags": "-t",
    "role": "-r",
}
"""Options with a letter of their own, the same in all commands."""
COMPLETION_VARIABLE = "_MNEM_COMPLETE"
METAVARS = {"supersedes": "ID", "after": "ID", "project": "DIR|KEY"} | dict.fromkeys(
    ("since", "until", "asked_at", "created_at", "valid_until"), "TIME"
)
FOR_PROGRAMS = {"after", "mark", "if_text", "id_prefix", "reported_tokens"}
"""Fields for programs, whose options are on no help page."""
FIRST = {"tag": "tags", "untag": "tags"}
"""Field that is a verb's first argument in the shell, although other clients give it by name."""


def make_parameter(
    verb: type[Request[Any]], field: msgspec.inspect.Field
) -> click.Parameter:
    """Return a click argument for a positional field of a verb, else an option.

    click leaves the value as the typed text, which the verb parses later.
    """
    kind, description = _unwrap_metadata(field.type)
    if field.name in (*verb.__match_args__, FIRST.get(verb.verb_name())):
        metavar: str | None = None
        required: bool | None = field.required
        nargs = 1
        if field.name == "tags":
            metavar = "TAGS"
        elif field.name in FILES:
            metavar = f"{field.name.upper()}.json|-"
        elif _takes_list(kind) or field.name in FROM_STDIN:
            dots = "..." if field.name in FROM_STDIN else "…"
            metavar, required, nargs = f"[{field.name.upper()}]{dots}", None, -1
        argument = click.Argument(
            [field.name], required=required, nargs=nargs, metavar=metavar
        )
        suggest_for(argument, verb.verb_name())
        return argument
    option: str = field.name.replace("_", "-")
    if option == "tags" and "tag" not in verb.__struct_fields__:
        option = "tag"  # given again for each
    letter = SHORT.get(field.name)
    earlier = verb.__struct_fields__[: verb.__struct_fields__.index(field.name)]
    is_taken = letter in {SHORT.get(other) for other in earlier}
    letters = [letter] if letter and not is_taken else []
    names = [f"--{option}", *letters, field.name]
    sentence = f"{description[:1].upper()}{description[1:]}"
    help_text = name_options(sentence, options_of(verb))
    hidden = field.name in FOR_PROGRAMS
    if isinstance(kind, msgspec.inspect.BoolType):
        return click.Option(
            names, is_flag=True, default=None, hidden=hidden, help=f"{help_text}."
        )
    if any(
        isinstance(member, msgspec.inspect.BoolType) for member in _union_members(kind)
    ):
        pair = f"{names[0]}/--no-{names[0].removeprefix('--')}"
        return click.Option([pair, field.name], default=None, help=f"{help_text}.")
    if field.name in FILES:
        return click.Option(names, metavar="FILE|-", help=f"{help_text}, as JSON.")
    choice, metavar = _choice_or_metavar(field.name, kind)
    is_shown = isinstance(field.default, int | float | str) and field.default != ""
    default = f" [default: {field.default}]" if is_shown else ""
    made = click.Option(
        names,
        required=field.required,
        multiple=_takes_list(kind),
        type=choice or str,
        metavar=metavar,
        hidden=hidden,
        help=f"{help_text}.{default}",
    )
    suggest_for(made, verb.verb_name())
    return made


def make_parameters(
    verb: type[Request[Any]], names: Iterable[str] = ()
) -> list[click.Parameter]:
    """Return click arguments and options for the fields `names` of a verb, or for all fields."""
    fields = {field.name: field for field in fields_of(verb)}
    return [make_parameter(verb, fields[name]) for name in names or fields]


def options_of(verb: type[Request[Any]]) -> dict[str, str]:
    """Return {field: option} for all fields of a verb."""
    return {name: f"--{name.replace('_', '-')}" for name in verb.__struct_fields__}


def name_options(text: str, options: Mapping[str, str]) -> str:
    """Return a help text or error with fields replaced by their `options`, and verbs by shell commands."""

    def name_option(found: re.Match[str]) -> str:
        """Return the word in backticks, or in its place a field's option or a verb's command."""
        word = found[1]
        command = f"mnem {word}" if word in COMMANDS else word
        return f"`{options.get(word, command)}`"

    text = re.sub(r"`(\w+)`", name_option, text)
    for name, option in options.items():
        if "_" in name:
            text = re.sub(rf"(?<![\w-]){name}\b", option, text)
    return text


def suggest_for(parameter: click.Parameter, verb: str) -> None:
    """During shell completion, let the daemon's data complete a parameter, such as an id; else do nothing."""
    if COMPLETION_VARIABLE not in os.environ:
        return
    # Loaded here: a command that runs completes nothing.
    from mnemosyned.cli.ids import suggester  # noqa: PLC0415

    setattr(parameter, "shell_complete", suggester(parameter, verb))  # noqa: B010 a method


def _unwrap_metadata(kind: msgspec.inspect.Type) -> tuple[msgspec.inspect.Type, str]:
    """Return a msgspec type without constraints, and the description given with the constraints."""
    description = ""
    while isinstance(kind, msgspec.inspect.Metadata):
        extra = kind.extra_json_schema or {}
        description = description or extra.get("description", "")
        kind = kind.type
    return kind, description


def _union_members(kind: msgspec.inspect.Type) -> list[msgspec.inspect.Type]:
    """Return the types of a union, or a list of the type itself if it is no union."""
    return list(kind.types) if isinstance(kind, msgspec.inspect.UnionType) else [kind]


def _takes_list(kind: msgspec.inspect.Type) -> bool:
    """Return whether a field of this type may be a list."""
    members = [_unwrap_metadata(member)[0] for member in _union_members(kind)]
    return any(isinstance(member, msgspec.inspect.ListType) for member in members)


def _choice_or_metavar(
    name: str, kind: msgspec.inspect.Type
) -> tuple[click.Choice[str] | None, str | None]:
    """Return (the allowed values, None) for an enumeration or literal, else (None, placeholder such as ID)."""
    members = _union_members(kind)
    for member in members:
        if isinstance(member, msgspec.inspect.EnumType):
            return click.Choice([choice.value for choice in member.cls]), None
        if isinstance(member, msgspec.inspect.LiteralType):
            return click.Choice(list(map(str, member.values))), None
    metavars = (_METAVARS_OF_TYPES.get(type(member)) for member in members)
    return None, next(filter(None, metavars), METAVARS.get(name, name.upper()))


_METAVARS_OF_TYPES: dict[type, str] = {
    msgspec.inspect.DateTimeType: "TIME",
    msgspec.inspect.IntType: "NUMBER",
    msgspec.inspect.FloatType: "NUMBER",
    msgspec.inspect.DictType: "JSON",
}


STDIN_BYTES_MAX = 64 << 20


def read_fields(given: dict[str, Any], command: str = "") -> dict[str, Any]:
    """Return the fields of a request as typed, with files and standard input read.

    `given` contains click's values by field, `command` is the name for hints. Fields without a value
    are left out, tags are split at commas, and `metadata` and lists of objects are parsed as JSON.
    Raises `InvalidRequest` and `click.UsageError`.
    """
    fields: dict[str, Any] = {
        name: list(value) if isinstance(value, tuple) else value
        for name, value in given.items()
        if value not in (None, ())
    }
    for name in FROM_STDIN.keys() & given.keys():
        if isinstance(given[name], tuple):  # an option `--query` is left alone
            words = given[name]
            is_typed = words and words != ("-",)
            hint = FROM_STDIN[name].format(command)
            fields[name] = " ".join(words) if is_typed else read_standard_input(hint)
    if "metadata" in fields:
        fields["metadata"] = _parse_json(
            fields["metadata"], "--metadata", field="metadata"
        )
    if "tags" in fields:  # of an argument or a repeated option, at each comma
        typed = fields["tags"]
        parts = [typed] if isinstance(typed, str) else typed
        fields["tags"] = [
            tag for part in parts for tag in part.split(",") if tag.strip()
        ]
    if "file" in fields:  # the daemon has another working directory
        fields["file"] = str(
            require_usable_path(fields["file"], field="file").absolute()
        )
    if named := fields.get("project"):
        fields["project"] = project_key(named)
        if not fields["project"]:
            raise InvalidRequest(f"{named} belongs to no project", field="project")
    for name in FILES & fields.keys():
        fields[name] = _read_list(fields[name], field=name)
    return fields


def project_key(named: str) -> str:
    """Return the key of a directory's project; if `named` is no directory, return it as the key."""
    # Loaded here: few commands name a project.
    from mnemosyned.importers.projects import project_of  # noqa: PLC0415

    directory = Path(named).expanduser()
    return project_of(directory.resolve()).key if directory.is_dir() else named


def read_standard_input(hint: str) -> str:
    """Return standard input without its last newline.

    Raises `click.UsageError` at a terminal, with `hint`, and if it is too long or not UTF-8.
    """
    if sys.stdin.isatty():
        raise click.UsageError(f"{hint}, or pipe it in")
    data = sys.stdin.buffer.read(STDIN_BYTES_MAX + 1)
    if len(data) > STDIN_BYTES_MAX:
        raise click.UsageError(
            f"standard input exceeds {STDIN_BYTES_MAX:,} bytes; split it"
        )
    try:
        return data.decode().removesuffix("\n")
    except UnicodeDecodeError as error:
        raise click.UsageError(
            f"standard input is not UTF-8 at byte {error.start}"
        ) from error


def _read_list(file: str, *, field: str) -> object:
    """Return the JSON value in a file or standard input ("-"), or the member `field` of a JSON object."""
    if file == "-":
        text = read_standard_input(f"{field} are JSON: name a file")
    else:
        try:
            text = Path(file).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or error
            raise InvalidRequest(
                f"{file} cannot be read: {reason}", field=field
            ) from error
    content = _parse_json(text, file, field=field)
    return content.get(field, content) if isinstance(content, dict) else content


def _parse_json(text: str, where: str, *, field: str) -> object:
    """Return the value of a JSON text. Raises `InvalidRequest`, which says `where` it is from."""
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError as error:
        raise InvalidRequest(f"{where} is not JSON: {error}", field=field) from error
