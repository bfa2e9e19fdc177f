"""The verbs from the shell, through the client."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from io import StringIO
from pathlib import Path
from typing import Any

import click
import msgspec
from click.shell_completion import get_completion_class

from mnemosyned.cli.calls import called, confirmed, on_interrupt
from mnemosyned.cli.importer import PROBLEMS_SHOWN_MAX, ImportReport, import_lines
from mnemosyned.cli.show_memories import remarks, render
from mnemosyned.client import Client
from mnemosyned.domain.consolidation import CycleReport
from mnemosyned.domain.errors import InvalidRequest, Kind, MnemosynedError
from mnemosyned.domain.text.invisible import escape_invisible
from mnemosyned.terminal import say, say_json
from mnemosyned.verbs.memories import VERBS, Recalled
from mnemosyned.verbs.request import Request, fields_of, parse_text
from mnemosyned.verbs.retention import Forget, Prune
from mnemosyned.version import __version__

EXIT_OF_KIND = {
    Kind.INVALID: 2,
    Kind.UNAVAILABLE: 3,
    Kind.NOT_FOUND: 4,
    Kind.CONFLICT: 5,
    Kind.INTERNAL: 6,
}
EXIT_NOTHING = 1
EXIT_INTERRUPTED = 130
HELP_COLUMNS = 100
STDIN_BYTES_MAX = 64 << 20
POSITIONAL = {"content", "query", "id", "message", "messages", "file"}
FILES = {"messages", "tools"}
"""Fields that are lists of objects: the shell takes a file that holds them, or - for its input."""
OPTIONAL_ARGUMENTS = {("remember", "content"), ("forget", "id")}
"""Positional, and yet may be left out: read from standard input, or said in options."""
METAVARS = {"supersedes": "ID", "undo": "CYCLE|last", "after": "ID"}
ASKS_FIRST = ("forget", "prune")
"""What cannot be taken back is shown first, and done when it was confirmed."""


class _Mnem(click.Group):
    """The commands; `model`, which needs more modules than the verbs, is loaded where named."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted([*super().list_commands(ctx), "model"])

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name == "model":
            from mnemosyned.cli.model import model  # noqa: PLC0415

            return model
        return super().get_command(ctx, cmd_name)


@click.group(
    cls=_Mnem,
    context_settings={
        "help_option_names": ["-h", "--help"],
        "max_content_width": HELP_COLUMNS,
    },
    epilog="Exit codes: 0 done; 1 nothing found, or part of it failed; 2 bad input; 3 no daemon "
    "answers; 4 unknown id; 5 conflict, such as a sleep cycle under way; 6 the daemon failed.",
)
@click.option(
    "--socket", help="The daemon's socket; default: $MNEMOSYNE_SOCKET or the usual one."
)
@click.version_option(__version__)
@click.pass_context
def mnem(context: click.Context, socket: str | None) -> None:
    """Ask the memory daemon: remember, recall, sleep, expand, forget."""
    context.obj = socket


def main() -> None:
    """Run the shell client; every failure is one sentence and an exit code."""
    try:
        code = mnem(standalone_mode=False)
    except click.ClickException as error:
        if "--json" in sys.argv:
            _tell_error(InvalidRequest(error.format_message()))
        else:
            say(_usage(error), err=True)
        code = error.exit_code
    except (click.Abort, KeyboardInterrupt):
        code = EXIT_INTERRUPTED
    except MnemosynedError as error:
        _tell_error(error)
        code = EXIT_OF_KIND[error.kind]
    sys.exit(code)


def _usage(error: click.ClickException) -> str:
    """A mistake in the words of the command line, as click shows it."""
    shown = StringIO()
    error.show(file=shown)
    return shown.getvalue().removesuffix("\n")


def _tell_error(error: MnemosynedError) -> None:
    """In words, or for a program that asked for JSON in the form of the wire."""
    if "--json" in sys.argv:
        told = {"code": error.code, "message": error.message, "field": error.field}
        say_json({"error": told}, err=True)
    else:
        say(f"mnem: {error.message}", err=True)


# -------------------------------------------------------- commands from verbs


def _command(name: str, verb: type[Request[Any]]) -> click.Command:
    """A shell command with the verb's fields as its arguments and options."""
    params = [_parameter(name, field) for field in fields_of(verb)]
    params.append(click.Option(["--json", "as_json"], is_flag=True, help="Print JSON."))
    if name in ASKS_FIRST:
        params.append(
            click.Option(["--yes"], is_flag=True, help="Do it without asking.")
        )
    return click.Command(
        name,
        params=params,
        callback=click.pass_context(_runner(verb)),
        help=verb.__doc__,
        context_settings={"help_option_names": ["-h", "--help"]},
    )


def _parameter(command: str, field: msgspec.inspect.Field) -> click.Parameter:
    """An option whose value stays a word here: the verb's own rules read it."""
    kind, help_text = field.type, ""
    while isinstance(kind, msgspec.inspect.Metadata):
        help_text = help_text or (kind.extra_json_schema or {}).get("description", "")
        kind = kind.type
    name = field.name
    optional = (command, name) in OPTIONAL_ARGUMENTS
    if name in POSITIONAL and (field.required or optional):
        metavar = f"{name.upper()}.json|-" if name in FILES else None
        return click.Argument([name], required=not optional, metavar=metavar)
    option = f"--{name.replace('_', '-')}"
    if name in FILES:
        return click.Option(
            [option, name], metavar="FILE|-", help=f"{help_text}, as JSON"
        )
    if isinstance(kind, msgspec.inspect.BoolType):
        return click.Option(
            [option, name], is_flag=True, default=None, help=_sentence(help_text)
        )
    default = field.default if isinstance(field.default, int | float | str) else None
    return click.Option(
        [option, name],
        multiple=_takes_list(kind),
        type=_choice(kind) or str,
        metavar=None if _choice(kind) else _metavar(name, kind),
        help=_sentence(help_text)
        + (f" [default: {default}]" if default not in (None, "") else ""),
    )


def _sentence(text: str) -> str:
    """A field's description as the other options have theirs."""
    return f"{text[:1].upper()}{text[1:]}."


def _members(kind: msgspec.inspect.Type) -> list[msgspec.inspect.Type]:
    return list(kind.types) if isinstance(kind, msgspec.inspect.UnionType) else [kind]


def _takes_list(kind: msgspec.inspect.Type) -> bool:
    return any(
        isinstance(
            member.type if isinstance(member, msgspec.inspect.Metadata) else member,
            msgspec.inspect.ListType,
        )
        for member in _members(kind)
    )


def _choice(kind: msgspec.inspect.Type) -> click.Choice[str] | None:
    for member in _members(kind):
        if isinstance(member, msgspec.inspect.EnumType):
            return click.Choice([choice.value for choice in member.cls])
    return None


def _metavar(name: str, kind: msgspec.inspect.Type) -> str:
    for member in _members(kind):
        if isinstance(member, msgspec.inspect.DateTimeType):
            return "TIME"
        if isinstance(member, msgspec.inspect.IntType | msgspec.inspect.FloatType):
            return "NUMBER"
        if isinstance(member, msgspec.inspect.DictType):
            return "JSON"
    return METAVARS.get(name, name.upper())


def _runner(verb: type[Request[Any]]) -> Callable[..., int]:
    def run(
        context: click.Context,
        /,
        *,
        as_json: bool,
        yes: bool = True,
        **given: Any,  # noqa: ANN401
    ) -> int:
        fields: dict[str, Any] = {}
        for name, value in given.items():
            if value is not None and value != ():
                fields[name] = list(value) if isinstance(value, tuple) else value
        if "content" in given and "content" not in fields:
            fields["content"] = _standard_input(
                'say what to remember: mnem remember "…"'
            )
        if "metadata" in fields:
            fields["metadata"] = _object(
                fields["metadata"], "--metadata", field="metadata"
            )
        if "file" in fields:  # the daemon has another working directory
            fields["file"] = str(Path(fields["file"]).expanduser().absolute())
        for name in FILES & fields.keys():
            fields[name] = _listed(fields[name], field=name)
        request = parse_text(verb, fields)
        with _client(context) as client:
            asks = isinstance(request, Forget | Prune) and not (yes or request.dry_run)
            call: Callable[..., object] = confirmed if asks else called
            result = call(client, request)
        _show(result, as_json=as_json)
        empty = isinstance(result, Recalled) and not result.hits
        failed = isinstance(result, CycleReport) and (result.failed or result.problem)
        return EXIT_NOTHING if empty or failed else 0

    return run


def _show(result: object, *, as_json: bool) -> None:
    """Print a result on standard output, and what is to be said beside it on standard error."""
    if as_json:
        say_json(result)
        return
    if text := render(result):
        say(text, styled=True)
    if remark := remarks(result):
        say(click.style(remark, dim=True), err=True, styled=True)


def _standard_input(otherwise: str) -> str:
    if sys.stdin.isatty():
        raise click.UsageError(f"{otherwise}, or pipe it in")
    data = sys.stdin.buffer.read(STDIN_BYTES_MAX + 1)
    if len(data) > STDIN_BYTES_MAX:
        raise click.UsageError(
            f"standard input exceeds {STDIN_BYTES_MAX:,} bytes; part it"
        )
    try:
        return data.decode().removesuffix("\n")
    except UnicodeDecodeError as error:
        raise click.UsageError(
            f"standard input is not UTF-8 at byte {error.start}"
        ) from error


def _listed(file: str, *, field: str) -> object:
    """The list in a file of JSON; of an object, such as a request to an API, the one so named."""
    if file == "-":
        text = _standard_input(f"{field} are JSON: name a file")
    else:
        try:
            text = Path(file).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise InvalidRequest(
                f"{file} cannot be read: {error}", field=field
            ) from error
    found = _object(text, file, field=field)
    return found.get(field) if isinstance(found, dict) else found


def _object(text: str, where: str, *, field: str) -> object:
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError as error:
        raise InvalidRequest(f"{where} is not JSON: {error}", field=field) from error


def _client(context: click.Context) -> Client:
    return Client(context.find_root().obj or _configured_socket())


def _configured_socket() -> str | None:
    """The socket named in the daemon's own file, which is read only where there is one."""
    # Loaded here: most clients find the daemon where it usually is.
    from mnemosyned.paths import config_dir  # noqa: PLC0415

    file = config_dir() / "mnemosyned.yaml"
    if "MNEMOSYNE_SOCKET" in os.environ or not file.exists():
        return None
    from mnemosyned.config import load_config  # noqa: PLC0415

    return load_config(file).socket


@mnem.group(context_settings={"help_option_names": ["-h", "--help"]})
def archive() -> None:
    """Limit what the archive keeps."""


for _name, _verb in VERBS.items():
    if _name == "prune":
        archive.add_command(_command(_name, _verb))
    elif _name != "remember_many":  # `import` is its command
        mnem.add_command(_command(_name, _verb))
mnem.add_command(_command("consolidate", VERBS["sleep"]))


# ------------------------------------------------------------ other commands


@mnem.command("import")
@click.argument("file", type=click.Path(dir_okay=False, exists=True, allow_dash=False))
@click.option(
    "--bad-lines",
    type=click.Choice(["refuse", "skip"]),
    default="refuse",
    show_default=True,
    help="refuse: keep nothing if any line is bad; skip: keep the good ones.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_context
def import_file(
    context: click.Context, file: str, bad_lines: str, *, as_json: bool
) -> int:
    """Remember every line of a file.

    Each line is a JSON object with the fields of `remember`. The same file can be imported
    again: what is known is not kept twice.
    """
    again = "what was imported so far is kept; import the file again for the rest"
    with _client(context) as client, on_interrupt(again):
        report = None
        if bad_lines == "refuse":
            report = _pass(file, client, label="checking", check_only=True)
        if report is None or not report.refused:
            report = _pass(file, client, label="importing", check_only=False)
    if as_json:
        say_json(msgspec.to_builtins(report))
    else:
        _tell(report)
    return EXIT_OF_KIND[Kind.INVALID] if report.refused else 0


def _pass(file: str, client: Client, *, label: str, check_only: bool) -> ImportReport:
    path = Path(file)
    with (
        path.open("rb") as opened,
        click.progressbar(
            length=path.stat().st_size,
            label=label,
            file=sys.stderr,
            hidden=not sys.stderr.isatty(),
        ) as bar,
    ):
        return import_lines(opened, client, check_only=check_only, progress=bar.update)


def _tell(report: ImportReport) -> None:
    for problem in report.refused[:PROBLEMS_SHOWN_MAX]:
        say(escape_invisible(problem, one_line=True), err=True)
    hidden = len(report.refused) - PROBLEMS_SHOWN_MAX
    if hidden > 0:
        say(f"… and {hidden:,} more bad lines", err=True)
    if report.refused and not report.stored + report.known:
        say("nothing was kept; mend the lines, or use --bad-lines skip", err=True)
    else:
        say(f"{report.stored:,} remembered, {report.known:,} already known")


@mnem.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print a shell's completion script.

    For bash: source <(mnem completion bash)
    """
    found = get_completion_class(shell)
    if found is None:
        raise click.UsageError(f"no completion for {shell}")
    say(found(mnem, {}, "mnem", "_MNEM_COMPLETE").source())
