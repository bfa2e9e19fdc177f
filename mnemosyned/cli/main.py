"""The verbs from the shell, through the client."""

from __future__ import annotations

import sys
from collections.abc import Callable
from io import StringIO
from pathlib import Path
from typing import Any

import click
import msgspec
from click.shell_completion import get_completion_class

from mnemosyned.cli.calls import called, client_of, confirmed, on_interrupt
from mnemosyned.cli.importer import PROBLEMS_SHOWN_MAX, ImportReport, import_lines
from mnemosyned.cli.parameters import FILES, FROM_STDIN, parameter
from mnemosyned.cli.show_memories import remarks, render
from mnemosyned.client import Client
from mnemosyned.domain.cycles import CycleReport
from mnemosyned.domain.errors import InvalidRequest, Kind, MnemosynedError
from mnemosyned.domain.text.invisible import escape_invisible
from mnemosyned.terminal import say, say_json
from mnemosyned.verbs.facade import VERBS
from mnemosyned.verbs.memories import Recalled
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
ASK_FIRST = (Forget, Prune)
"""Verbs that cannot be undone: they show a preview and ask for confirmation."""


class _Mnem(click.Group):
    """The commands; those that need more modules than the verbs are loaded where named."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted([*super().list_commands(ctx), *_LOADED_WHERE_NAMED])

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if load := _LOADED_WHERE_NAMED.get(cmd_name):
            return load()
        return super().get_command(ctx, cmd_name)


def _model() -> click.Command:
    # Loaded here: the other commands need no download.
    from mnemosyned.cli.model import model  # noqa: PLC0415

    return model


def _setup() -> click.Command:
    # Loaded here: the other commands touch no configuration of other tools.
    from mnemosyned.cli.setup import setup  # noqa: PLC0415

    return setup


def _mcp() -> click.Command:
    # Loaded here: it is for agents, which start it without this module.
    from mnemosyned.cli.mcp import mcp  # noqa: PLC0415

    return mcp


_LOADED_WHERE_NAMED: dict[str, Callable[[], click.Command]] = {
    "mcp": _mcp,
    "model": _model,
    "setup": _setup,
}


@click.group(
    cls=_Mnem,
    context_settings={
        "help_option_names": ["-h", "--help"],
        "max_content_width": HELP_COLUMNS,
    },
    epilog="Exit codes: 0 done; 1 nothing found, or part of it failed; 2 bad input; 3 no daemon "
    "answers; 4 unknown id; 5 conflict, such as a running sleep cycle; 6 the daemon failed.",
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
            _print_error(InvalidRequest(error.format_message()))
        else:
            say(_usage(error), err=True)
        code = error.exit_code
    except (click.Abort, KeyboardInterrupt):
        code = EXIT_INTERRUPTED
    except MnemosynedError as error:
        _print_error(error)
        code = EXIT_OF_KIND[error.kind]
    sys.exit(code)


def _usage(error: click.ClickException) -> str:
    """A mistake on the command line, as click shows it."""
    shown = StringIO()
    error.show(file=shown)
    return shown.getvalue().removesuffix("\n")


def _print_error(error: MnemosynedError) -> None:
    """Print an error as words, or with --json in the form of the HTTP API."""
    if "--json" in sys.argv:
        shown = {"code": error.code, "message": error.message, "field": error.field}
        say_json({"error": shown}, err=True)
    else:
        say(f"mnem: {error.message}", err=True)


# -------------------------------------------------------- commands from verbs


def _command(name: str, verb: type[Request[Any]]) -> click.Command:
    """A shell command with the verb's fields as its arguments and options."""
    params = [parameter(verb, field) for field in fields_of(verb)]
    params.append(click.Option(["--json", "as_json"], is_flag=True, help="Print JSON."))
    if verb in ASK_FIRST:
        params.append(
            click.Option(["--yes"], is_flag=True, help="Do it without asking.")
        )
    return click.Command(
        name,
        params=params,
        callback=click.pass_context(_runner(verb)),
        help=_help(verb),
        context_settings={"help_option_names": ["-h", "--help"]},
    )


def _help(verb: type[Request[Any]]) -> str:
    """The verb's docstring without its errors, which exit codes tell a shell."""
    return str(verb.__doc__).partition("\n\n    Raises")[0]


def _runner(verb: type[Request[Any]]) -> Callable[..., int]:
    def run(
        context: click.Context,
        /,
        *,
        as_json: bool,
        yes: bool = True,
        **given: Any,  # noqa: ANN401
    ) -> int:
        request = parse_text(verb, _fields(given))
        with client_of(context) as client:
            asks = isinstance(request, ASK_FIRST) and not (yes or request.dry_run)
            call: Callable[..., object] = confirmed if asks else called
            result = call(client, request)
        _show(result, as_json=as_json)
        return _exit_code(result)

    return run


def _exit_code(result: object) -> int:
    """The exit code of a call that was answered."""
    nothing = False
    if isinstance(result, Recalled):
        nothing = not result.hits
    if isinstance(result, CycleReport):
        nothing = bool(result.failed or result.problem)
    return EXIT_NOTHING if nothing else 0


def _fields(given: dict[str, Any]) -> dict[str, Any]:
    """The fields of a request from what was typed, with files and standard input read."""
    fields: dict[str, Any] = {
        name: list(value) if isinstance(value, tuple) else value
        for name, value in given.items()
        if value not in (None, ())
    }
    for name in (FROM_STDIN & given.keys()) - fields.keys():
        fields[name] = _standard_input('say what to remember: mnem remember "…"')
    if "metadata" in fields:
        fields["metadata"] = _object(fields["metadata"], "--metadata", field="metadata")
    if "file" in fields:  # the daemon has another working directory
        fields["file"] = str(Path(fields["file"]).expanduser().absolute())
    for name in FILES & fields.keys():
        fields[name] = _listed(fields[name], field=name)
    return fields


def _show(result: object, *, as_json: bool) -> None:
    """Print a result on standard output, and remarks about it on standard error."""
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
            f"standard input exceeds {STDIN_BYTES_MAX:,} bytes; split it"
        )
    try:
        return data.decode().removesuffix("\n")
    except UnicodeDecodeError as error:
        raise click.UsageError(
            f"standard input is not UTF-8 at byte {error.start}"
        ) from error


def _listed(file: str, *, field: str) -> object:
    """Return the list in a JSON file; in an object, such as an API request, the list of that name."""
    if file == "-":
        text = _standard_input(f"{field} are JSON: name a file")
    else:
        try:
            text = Path(file).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise InvalidRequest(
                f"{file} cannot be read: {error}", field=field
            ) from error
    content = _object(text, file, field=field)
    return content.get(field) if isinstance(content, dict) else content


def _object(text: str, where: str, *, field: str) -> object:
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError as error:
        raise InvalidRequest(f"{where} is not JSON: {error}", field=field) from error


@mnem.group(context_settings={"help_option_names": ["-h", "--help"]})
def archive() -> None:
    """Limit what the archive keeps."""


for _name, _verb in VERBS.items():
    if _name == "prune":
        archive.add_command(_command(_name, _verb))
    elif _name != "remember_many":  # `import` is its command
        mnem.add_command(_command(_name.replace("_", "-"), _verb))
mnem.add_command(_command("consolidate", VERBS["sleep"]))


# ------------------------------------------------------------ other commands


@mnem.command("import")
@click.argument("file", type=click.Path(dir_okay=False, exists=True, allow_dash=False))
@click.option(
    "--bad-lines",
    type=click.Choice(["refuse", "skip"]),
    default="refuse",
    show_default=True,
    help="refuse: store nothing if any line is bad; skip: store the good ones.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_context
def import_file(
    context: click.Context, file: str, bad_lines: str, *, as_json: bool
) -> int:
    """Remember every line of a file.

    Each line is a JSON object with the fields of `remember`. A file can be imported again: known
    lines are not stored twice.
    """
    again = "what was imported so far is stored; import the file again for the rest"
    with client_of(context) as client, on_interrupt(again):
        report = None
        if bad_lines == "refuse":
            report = _pass(file, client, label="checking", check_only=True)
        if report is None or not report.refused:
            report = _pass(file, client, label="importing", check_only=False)
    if as_json:
        say_json(msgspec.to_builtins(report))
    else:
        _print_import(report)
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


def _print_import(report: ImportReport) -> None:
    for problem in report.refused[:PROBLEMS_SHOWN_MAX]:
        say(escape_invisible(problem, one_line=True), err=True)
    hidden = len(report.refused) - PROBLEMS_SHOWN_MAX
    if hidden > 0:
        say(f"… and {hidden:,} more bad lines", err=True)
    if report.refused and not report.stored + report.known:
        say("nothing was stored; fix these lines, or use --bad-lines skip", err=True)
    else:
        say(
            f"{report.stored:,} remembered, {report.known:,} already known, "
            f"{report.learned:,} learned"
        )


@mnem.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print a shell's completion script.

    For bash: source <(mnem completion bash)
    """
    script = get_completion_class(shell)
    if script is None:
        raise click.UsageError(f"no completion for {shell}")
    say(script(mnem, {}, "mnem", "_MNEM_COMPLETE").source())
