"""The reference, generated from the code: commands, settings, verbs, types, errors and packages."""

import ast
import inspect
import json
import re
import sys
import textwrap
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import is_dataclass
from functools import cache
from pathlib import Path
from typing import Any

import click
import msgspec
from docs.markup import (
    code,
    fence,
    fields_table,
    inline,
    page,
    paragraphs,
    slug,
    table,
    type_of,
)
from manual_pages import ENVIRONMENT
from support.pages import DOCS, PROJECT, blocks

import mnemosyned
from mnemosyned.cli.main import mnem
from mnemosyned.cli.options import EXIT_CODES, EXIT_OF_KIND
from mnemosyned.cli.registry import COMMANDS, GROUPS
from mnemosyned.config.settings import Config, needs_restart, variable
from mnemosyned.daemon.http.protocol import STATUS_OF_KIND
from mnemosyned.daemon.main import main as mnemosyned_command
from mnemosyned.daemon.openapi import UNEXPECTED, errors_of, openapi, summary_of
from mnemosyned.errors import MnemosynedError, error_classes_by_code
from mnemosyned.verbs.facade import ALIASES, VERBS
from mnemosyned.verbs.owners import ADMINISTRATION, ENROLMENT
from mnemosyned.verbs.request import Request, result_type

PACKAGE = PROJECT / "mnemosyned"
SETTINGS = PROJECT / "config" / "mnemosyned.yaml"
TYPES = "types.md"
DOORS = ("Client", "AsyncClient", "Memory", "AsyncMemory")
VERB_PAGES = {
    "memories": "Store and find",
    "listing": "Browse",
    "upkeep": "Sleep and state",
    "retention": "Forget, restore, back up",
    "conversation": "Contexts and learnings",
    "injections": "What agents are given",
    "owners": "Owners",
}
"""The title of each page of verbs, which are those of the module in `verbs/` with its name."""
OWN_PAGE = dict.fromkeys(
    (
        *("endings", "undo_ending", "injections", "rate_injection"),
        *("briefing", "edit_briefing"),
    ),
    "injections",
)
"""The page of verbs that are on another one than those of their module."""


def reference() -> dict[str, str]:
    """Return the Markdown of each generated page of the reference by its path in the site."""
    return {
        **command_pages(),
        **verb_pages(),
        "reference/verbs/types.md": types_page(),
        "reference/errors.md": errors_page(),
        "reference/environment.md": environment_page(),
        "reference/python.md": python_page(),
        "reference/packages.md": packages_page(),
    }


# ------------------------------------------------------------------ commands


def command_pages() -> dict[str, str]:
    """Return a page for each group of commands, and one that lists them all."""
    used = _pages_by_command()
    root = click.Context(mnem, info_name="mnem")
    pages, index = {}, []
    for group in GROUPS:
        path = f"{slug(group)}.md"
        sections: list[str] = []
        rows = []
        for entry in COMMANDS.values():
            if entry.group != group:
                continue
            command = mnem.get_command(root, entry.name)
            assert command is not None
            sections += _command_sections(command, entry.name, root, used, level=2)
            link = f"[{code(f'mnem {entry.name}')}]({path}#mnem-{entry.name})"
            rows.append((link, inline(entry.summary)))
        origin = f"the group {group!r} of `mnem help all` and each command's `--help`"
        names = ", ".join(
            code(f"mnem {entry.name}")
            for entry in COMMANDS.values()
            if entry.group == group
        )
        pages[f"reference/cli/{path}"] = page(
            f"Commands: {group}", origin, f"This page describes {names}.", *sections
        )
        index.append(f"## {group}\n\n{table(('command', 'what it does'), rows)}")
    codes = EXIT_CODES.removeprefix("Exit codes: ").removesuffix(".").split("; ")
    exits = table(
        ("exit code", "meaning"), (each.split(" ", 1) for each in [*codes, INTERRUPTED])
    )
    daemon = click.Context(mnemosyned_command, info_name="mnemosyned")
    pages["reference/cli/index.md"] = page(
        "Commands",
        "`mnem help all`",
        _options_of(mnem, root, title="Options of every command"),
        *index,
        "## Exit codes",
        exits,
        "## mnemosyned",
        paragraphs(mnemosyned_command.help or ""),
        _options_of(mnemosyned_command, daemon),
    )
    return pages


INTERRUPTED = "130 interrupted"


def _command_sections(
    command: click.Command,
    name: str,
    parent: click.Context,
    used: dict[str, list[str]],
    *,
    level: int,
) -> Iterator[str]:
    """Yield the Markdown of a command and of its subcommands."""
    context = click.Context(
        command, info_name=name, parent=parent, help_option_names=["-h", "--help"]
    )
    path = context.command_path
    yield f"{'#' * level} {path}"
    yield paragraphs(command.help or "")
    usage = " ".join([path, *command.collect_usage_pieces(context)])
    first = (command.epilog or "").partition("\n\n")[0]
    example = first.removeprefix("Example: ") if first.startswith("Example: ") else ""
    yield fence("text", usage)
    if example:
        yield "Example:"
        yield fence("sh", example)
    yield _options_of(command, context)
    if pages := used.get(path):
        yield f"Used on {', '.join(pages)}."
    if isinstance(command, click.Group):
        for each in command.list_commands(context):
            if member := command.get_command(context, each):
                yield from _command_sections(
                    member, each, context, used, level=level + 1
                )


def _options_of(command: click.Command, context: click.Context, title: str = "") -> str:
    """Return the table of a command's options, without those that every command has."""
    rows = []
    for parameter in command.get_params(context):
        record = parameter.get_help_record(context)
        if (
            isinstance(parameter, click.Option)
            and record
            and "--help" not in parameter.opts
        ):
            rows.append((code(record[0]), inline(record[1])))
    heading = f"## {title}\n\n" if title and rows else ""
    return heading + table(("option", "meaning"), rows)


def _pages_by_command() -> dict[str, list[str]]:
    """Return links to the pages that show each command in a block."""
    used: dict[str, list[str]] = defaultdict(list)
    names = sorted(_command_names(mnem, "mnem"), key=len, reverse=True)
    for path in sorted(DOCS.glob("*.md")):
        text = "\n".join(
            block.text for block in blocks(path) if block.language in ("console", "sh")
        )
        title = path.read_text("utf-8").partition("\n")[0].removeprefix("# ")
        for name in names:
            if re.search(rf"\b{re.escape(name)}(?![\w-])", text):
                used[name].append(f"[{title.replace('`', '')}](../../{path.name})")
    return used


def _command_names(command: click.Command, path: str) -> Iterator[str]:
    """Yield the full names of a group's commands."""
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            if member := command.get_command(context, name):
                yield f"{path} {name}"
                yield from _command_names(member, f"{path} {name}")


# ------------------------------------------------------------------ settings


def settings_tables() -> str:
    """Return a table of each section's settings, from the configuration file and the types."""
    schema = msgspec.json.schema(Config)
    types = schema["$defs"]
    sections: dict[str, list[tuple[str, ...]]] = {}
    notes: dict[str, str] = {}
    for section, key, default, meaning, note in _settings_with_comments():
        if not key:
            notes[section] = f"{notes.get(section, '')} {meaning}".strip()
            continue
        name = f"{section}.{key}" if section else key
        holder = types["Config"]["properties"]
        field = (
            types[_type_name(holder[section])]["properties"] if section else holder
        )[key]
        kind = type_of(field, TYPES)
        restart = "*(restart)* " if needs_restart(name) else ""
        cell = restart + inline(meaning.replace("(restart) ", ""))
        row = (
            f'<span id="{name.replace(".", "-")}">{code(name)}</span>',
            code(default),
            kind,
        )
        sections.setdefault(section, []).append((*row, cell))
        notes[section] = notes.get(section) or note
    parts = []
    for section, rows in sections.items():
        parts.append(f"### {section or 'General'}")
        if notes[section]:
            parts.append(inline(notes[section]))
        parts.append(table(("key", "default", "type", "meaning"), rows))
    return "\n\n".join(parts)


def _type_name(schema: dict[str, Any]) -> str:
    """Return the name of the type that a schema refers to."""
    reference = schema.get("$ref") or schema["allOf"][0]["$ref"]
    return str(reference).rpartition("/")[2]


def _settings_with_comments() -> Iterator[tuple[str, str, str, str, str]]:
    """Yield section, key, default, comment, and the section's note, of each setting."""
    rows: list[list[str]] = []
    section = note = ""
    for line in SETTINGS.read_text("utf-8").splitlines():
        if heading := re.fullmatch(r"(\w+): *(?:# *(.*))?", line):
            section, note = heading[1], heading[2] or ""
        elif remark := re.fullmatch(r"  # (.*)", line):
            rows.append([section, "", "", remark[1], ""])
        elif setting := re.fullmatch(r"( *)(\w+): +(.+?)(?: +# ?(.*))?", line):
            owner = section if setting[1] else ""
            rows.append([owner, setting[2], setting[3], setting[4] or "", note])
        elif (further := re.fullmatch(r" {12,}# (.*)", line)) and rows:
            rows[-1][3] += f" {further[1]}"
    for row in rows:
        yield row[0], row[1], row[2], row[3], row[4] if row[0] else ""


def environment_page() -> str:
    """Return the page on the variables of the environment."""
    rows = [(code(name), inline(meaning)) for name, meaning in ENVIRONMENT.items()]
    return page(
        "Environment variables",
        "the manual page of `mnem`",
        "The shell client reads these variables.",
        table(("variable", "meaning"), rows),
        f"Each [setting](../settings.md) has one, too: {code(variable('sleep.ttl_hours'))} is "
        f"{code('sleep.ttl_hours')}.",
    )


# --------------------------------------------------------------------- verbs


def verb_pages() -> dict[str, str]:
    """Return pages on the verbs, each verb once for Python, HTTP and the shell."""
    verbs: dict[str, type[Request[Any]]] = {
        **VERBS,
        **{verb.verb_name(): verb for verb in (*ENROLMENT, *ADMINISTRATION)},
    }
    schemas = openapi(serves_owners=True)["components"]["schemas"]
    sections: dict[str, list[str]] = {module: [] for module in VERB_PAGES}
    names: dict[str, list[str]] = {module: [] for module in VERB_PAGES}
    index = []
    for name, verb in verbs.items():
        module = OWN_PAGE.get(name, verb.__module__.rpartition(".")[2])
        names[module].append(name)
        sections[module] += _verb_sections(name, verb, schemas)
        methods = "POST" if verb.writes else "GET, POST"
        link = f"[{code(name)}]({module}.md#{slug(name)})"
        index.append((link, methods, inline(summary_of(verb)[0])))
    origin = "`mnemosyned/verbs/` and the OpenAPI document"
    pages = {
        f"reference/verbs/{module}.md": page(
            f"Verbs: {title}",
            origin,
            f"This page describes {', '.join(map(code, names[module]))}.",
            *sections[module],
        )
        for module, title in VERB_PAGES.items()
    }
    pages["reference/verbs/index.md"] = page(
        "Verbs",
        origin,
        "A verb is a method of `Client`, `AsyncClient`, `Memory` and `AsyncMemory`, a route "
        "`/v1/VERB` of the [HTTP API](../../http-api.md), and most are a command of `mnem`. All "
        "of them take the same fields.",
        table(("verb", "HTTP", "what it does"), index),
    )
    return pages


def _verb_sections(
    name: str, verb: type[Request[Any]], schemas: dict[str, Any]
) -> Iterator[str]:
    """Yield the Markdown of a verb: what it does, how it is called, fields, result, errors."""
    summary, more = summary_of(verb)
    yield f"## {name}"
    yield paragraphs(f"{summary}.\n\n{more}")
    methods = "POST" if verb.writes else "GET or POST"
    ways = [f"HTTP: {methods} {code(f'/v1/{name}')}"]
    if name in VERBS:
        ways.insert(0, f"Python: {code(f'memory.{name}(…)')}")
    command = name.replace("_", "-")
    if command in COMMANDS:
        group = slug(COMMANDS[command].group)
        shown = code(f"mnem {command}")
        ways.append(f"Shell: [{shown}](../cli/{group}.md#mnem-{command})")
    yield "\n".join(f"- {way}" for way in ways)
    yield fields_table(schemas[verb.__name__], TYPES) or "It takes no fields."
    result = result_type(verb).__name__
    yield f"It returns [{result}]({TYPES}#{result.lower()})."
    codes = sorted(
        error.code for error in errors_of(verb) if error not in _everywhere()
    )
    if codes:
        links = (f"[{code(each)}](../errors.md#{each})" for each in codes)
        yield f"Errors: {', '.join(links)}; and [those of every call](../errors.md)."


def _everywhere() -> set[type[MnemosynedError]]:
    """Return the errors that every verb may raise."""
    return set.intersection(*(errors_of(verb) for verb in VERBS.values()))


def types_page() -> str:
    """Return the page on the types that results are made of."""
    schemas = openapi(serves_owners=True)["components"]["schemas"]
    requests = {
        verb.__name__ for verb in (*VERBS.values(), *ENROLMENT, *ADMINISTRATION)
    }
    named = re.findall(r"schemas/(\w+)", json.dumps(schemas))
    parts = []
    for name in sorted(schemas.keys() - (requests - set(named))):
        schema = schemas[name]
        parts += [f"## {name}", paragraphs(schema.get("description", ""))]
        if "enum" in schema:
            parts.append(f"One of {', '.join(code(str(v)) for v in schema['enum'])}.")
        else:
            parts.append(_result_table(name, schema))
    return page(
        "Types",
        "the OpenAPI document and the docstrings of fields",
        "Results of [verbs](index.md) are made of these. In Python they are classes of the "
        "same names, to be imported from `mnemosyned`.",
        *parts,
    )


def _result_table(name: str, schema: dict[str, Any]) -> str:
    """Return the table of a type's fields; their meaning is in the docstrings of its class."""
    kind = _values_by_name().get(name)
    meanings = _documented(kind) if kind else {}
    rows = [
        (
            code(field),
            type_of(described, ""),
            inline(described.get("description") or meanings.get(field, ("", ""))[1]),
        )
        for field, described in schema.get("properties", {}).items()
    ]
    return table(("field", "type", "meaning"), rows)


@cache
def _values_by_name() -> dict[str, type[Any]]:
    """Return the values of all loaded modules of the package by their names."""
    return {
        name: each
        for module in list(sys.modules.values())
        if module.__name__.startswith("mnemosyned.")
        for name, each in vars(module).items()
        if inspect.isclass(each) and _is_value(each)
    }


def _is_value(kind: type[Any]) -> bool:
    """Return True for a class of fields."""
    return issubclass(kind, msgspec.Struct) or is_dataclass(kind)


# -------------------------------------------------------------------- errors


def errors_page() -> str:
    """Return the page with a heading for each error code."""
    raised: dict[type[MnemosynedError], list[str]] = defaultdict(list)
    for name, verb in VERBS.items():
        for error in errors_of(verb) - _everywhere():
            raised[error].append(name)
    parts = []
    by_status = sorted(
        error_classes_by_code().items(), key=lambda item: STATUS_OF_KIND[item[1].kind]
    )
    for each, error in by_status:
        status = STATUS_OF_KIND[error.kind]
        facts = [
            f"HTTP {status.value} {status.phrase}",
            f"exit code {EXIT_OF_KIND[error.kind]}",
            code(f"mnemosyned.{error.__name__}"),
        ]
        if error.retry_after_s:
            facts.append(f"try again after {error.retry_after_s} s")
        if error in _everywhere():
            facts.append("raised by every verb")
        elif verbs := raised[error]:
            facts.append(f"raised by {', '.join(code(verb) for verb in verbs)}")
        meaning = UNEXPECTED if error is MnemosynedError else error.__doc__ or ""
        parts += [
            f"## {each}",
            paragraphs(inspect.cleandoc(meaning)),
            " · ".join(facts),
        ]
    return page(
        "Errors",
        "`mnemosyned/errors.py`",
        "An error has a stable code, a message that says what to do next, and the field at "
        "fault, if there is one. The [HTTP API](../http-api.md#errors) has the form.",
        *parts,
    )


# -------------------------------------------------------------------- Python


def python_page() -> str:
    """Return the page on the public names of the package that are no verbs and no errors."""
    parts = []
    schemas = openapi()["components"]["schemas"]
    groups: dict[str, list[tuple[str, Any]]] = {
        title: [] for title in ("Ways to the memory", "Functions", "Classes", "Values")
    }
    for name in sorted(_public_names(), key=lambda name: (name not in DOORS, name)):
        each = getattr(mnemosyned, name)
        is_elsewhere = inspect.isclass(each) and issubclass(
            each, MnemosynedError | Request
        )
        if is_elsewhere or name in schemas:
            continue
        if name in DOORS:
            title = "Ways to the memory"
        elif inspect.isfunction(each):
            title = "Functions"
        else:
            title = "Classes" if _methods(each) else "Values"
        groups[title].append((name, each))
    for title, group in groups.items():
        parts.append(f"## {title}")
        for name, each in group:
            parts += _object_sections(name, each)
    return page(
        "Python names",
        "the docstrings of what `mnemosyned` exports",
        "The [verbs](verbs/index.md) are methods of all four classes below, their results are "
        "[types](verbs/types.md), and the [errors](errors.md) are exceptions of the package.",
        *parts,
    )


def _public_names() -> list[str]:
    """Return the names that the package exports, without its version."""
    stub = (PACKAGE / "__init__.pyi").read_text("utf-8")
    return [name for name in re.findall(r"\bas (\w+)", stub) if name[0] != "_"]


def _methods(kind: type[Any]) -> list[str]:
    """Return the public methods of a class that the package defines, without verbs."""
    return [
        name
        for name, value in inspect.getmembers(kind, inspect.isfunction)
        if name[0] != "_"
        and name not in {*VERBS, *ALIASES}
        and value.__module__.startswith("mnemosyned")
    ]


def _object_sections(name: str, each: Any) -> Iterator[str]:  # noqa: ANN401
    """Yield the Markdown of a class or a function: signature, docstring, fields and methods."""
    yield f"### {name}"
    is_value = isinstance(each, type) and _is_value(each)
    if not (is_value or (isinstance(each, type) and hasattr(each, "__members__"))):
        yield fence("python", _signature(name, each))
    yield paragraphs(inspect.cleandoc(each.__doc__ or ""))
    if isinstance(each, type):
        if members := getattr(each, "__members__", None):
            shown = ", ".join(code(str(member.value)) for member in members.values())
            yield f"One of {shown}."
        elif is_value:
            yield table(("field", "type", "meaning"), _field_rows(each))
        for method in _methods(each):
            function = getattr(each, method)
            yield f"#### {name}.{method}"
            yield fence("python", _signature(method, function))
            yield paragraphs(inspect.cleandoc(function.__doc__ or ""))


def _signature(name: str, function: Any) -> str:  # noqa: ANN401
    """Return the call of a function, an argument a line where it is long."""
    try:
        text = str(inspect.signature(function))
    except ValueError:
        return f"{name}(…)"
    text = text.replace("'", "").replace("(self, ", "(").replace("(self)", "()")
    text = re.sub(r"\b(?:[a-z_]+\.)+([A-Z]\w*)", r"\1", text)
    call = f"{name}{text}".removesuffix(" -> None")
    return (
        call
        if len(call) < 90
        else call.replace(", ", ",\n    ").replace("(", "(\n    ", 1)
    )


def _field_rows(kind: type[Any]) -> Iterator[tuple[str, str, str]]:
    """Yield name, type and description of each field of a value, as its source has them."""
    for name, (annotation, meaning) in _documented(kind).items():
        if name[0] != "_":
            yield code(name), code(annotation), inline(meaning)


def _documented(kind: type[Any]) -> dict[str, tuple[str, str]]:
    """Return annotation and docstring of each field of a value, inherited ones too."""
    fields: dict[str, tuple[str, str]] = {}
    for base in reversed(kind.__mro__):
        if base.__module__.startswith("mnemosyned"):
            fields |= _own_fields(base)
    return fields


def _own_fields(kind: type[Any]) -> dict[str, tuple[str, str]]:
    """Return annotation and following docstring of each field that a class defines."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(kind)))
    fields: dict[str, tuple[str, str]] = {}
    last = ""
    body = tree.body[0]
    assert isinstance(body, ast.ClassDef)
    for node in body.body:
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            last = node.target.id
            if not ast.unparse(node.annotation).startswith("ClassVar"):
                fields[last] = (ast.unparse(node.annotation), "")
        elif (
            isinstance(node, ast.Expr)
            and isinstance(node.value, ast.Constant)
            and isinstance(node.value.value, str)
            and last in fields
        ):
            fields[last] = (fields[last][0], node.value.value)
        else:
            last = ""
    return fields


# ------------------------------------------------------------------ packages


def packages_page() -> str:
    """Return the page on every package and module, for those who change the code."""
    parts = []
    for folder in sorted({path.parent for path in PACKAGE.rglob("*.py")}):
        init = folder / "__init__.py"
        name = folder.relative_to(PROJECT).as_posix()
        rows = [
            (code(path.name), inline(_first_sentence(path)))
            for path in sorted(folder.glob("*.py"))
            if path != init
        ]
        if not rows:
            continue
        about = inline(_docstring(init)) if init.exists() else ""
        parts += [f"## {name}", about, table(("module", "what it is for"), rows)]
    return page("Packages and modules", "the docstrings of modules", *parts)


def _docstring(path: Path) -> str:
    """Return the docstring of a module's file."""
    return ast.get_docstring(ast.parse(path.read_text("utf-8"))) or ""


def _first_sentence(path: Path) -> str:
    """Return the first paragraph of a module's docstring."""
    return _docstring(path).partition("\n\n")[0]
