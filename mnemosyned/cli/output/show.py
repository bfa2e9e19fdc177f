"""Answers as words, lines or JSON: renderers, records of lists, printing, and the pager.

A module adds its results to `RENDERERS` when it is imported: those of the verbs in `verbs/x.py` in
`output/x.py`, which is loaded with the first of them.
"""

from __future__ import annotations

import dataclasses
import os
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from datetime import datetime
from enum import Enum
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol

import click
import msgspec

from mnemosyned.cli.ids import save_list
from mnemosyned.cli.options import chosen_format, may_page, prints_json
from mnemosyned.cli.output import terminal
from mnemosyned.instants import in_zone
from mnemosyned.text.display import escape_invisible, escape_line
from mnemosyned.verbs.request import R

if TYPE_CHECKING:
    import subprocess

    from mnemosyned.memory.injections import InjectionTotals

LESS = "FRX"
"""Default options of less: quit if one screen is enough, show styles, leave the text on the screen."""
VERBS = "mnemosyned.verbs"
MODULES = ("memories", "listing", "upkeep", "conversation", "retention")
"""The modules of this package that register renderers, each for the verbs of the same name."""
DEPTH_MAX = 50
"""Values nested deeper are shown as JSON."""
TEXTS = frozenset({"content", "snippet", "text", "system"})
"""Fields that may have several lines; names, ids and the like have one."""


# ------------------------------------------------------------------ renderers


@dataclasses.dataclass(frozen=True, slots=True)
class Renderer:
    """How the shell shows results of one type: as text, with remarks, and as records."""

    text: Callable[..., str]
    """The result in words; numbered lists also take the number of their first entry."""
    remark: Callable[[Any], str] = lambda _: ""
    """A remark for standard error; empty if there is none."""
    records: Callable[[Any], Iterable[object] | None] = lambda _: None
    """The records of a list, in the order in which they are shown; None for other results."""
    is_nothing: Callable[[Any], bool] = lambda _: False
    """Whether nothing was found, or a part of the call failed: the exit code is 1."""
    is_numbered: bool = False
    """Whether later commands can use the numbers of the records."""
    is_as_written: bool = False
    """Whether long lines are left to the terminal, so that whole texts can be copied."""


RENDERERS: dict[type, Renderer] = {}
CELLS: dict[type, Sequence[str | Callable[[Any], str | None]]] = {}
"""Cells of a record's line, by type of record: names of fields, or functions of the record. The first cell is
the id. A cell is left out if its function returns None."""


class Page(Protocol):
    """Part of a list."""

    @property
    def next(self) -> str | None:
        """The cursor of the next page; None on the last page."""

    def __len__(self) -> int: ...


def page_remark(page: Page, nothing: str, *, options: str = "--after") -> str:
    """Return how to see the next page, "" on the last page, or `nothing` if the page is empty."""
    if page.next:
        return f"more follow: {options} {page.next}"
    return "" if len(page) else nothing


def injections_row(totals: InjectionTotals) -> str:
    """Return one line with the sums over all kept injections; empty without any."""
    if not (totals.injections or totals.said_again):
        return ""
    row = (
        f"{totals.injections:,} with about {terminal.count_of(totals.tokens, 'token')}"
    )
    if totals.precision is not None:
        rated = totals.useful + totals.not_useful
        row += f"; {totals.useful:,} of {rated:,} rated useful ({totals.precision:.0%})"
    if totals.said_again:
        times = terminal.count_of(totals.said_again, "time")
        row += f"; {times} a user said again what was known"
    return row


def renderer_of(kind: type) -> Renderer:
    """Return the renderer for a type of result; import its module if necessary."""
    # A result comes from a verb, whose module is loaded.
    for name in sorted(MODULES, key=lambda name: f"{VERBS}.{name}" not in sys.modules):
        if kind in RENDERERS:
            break
        import_module(f"{__package__}.{name}")
    return RENDERERS[kind]


def render(result: object, *, first: int = 1) -> str:
    """Return a result as text with styles; a numbered list begins with number `first`."""
    renderer = renderer_of(type(result))
    numbers = [first] if renderer.is_numbered else []
    return renderer.text(escape_strings(result), *numbers)


def id_of(record: object) -> str:
    """Return the id or name of a record, as other commands take it; empty if the record has none."""
    return _cell_text(record, CELLS.get(type(record), ["id"])[0]) or ""


def _cell_text(record: object, column: str | Callable[[Any], str | None]) -> str | None:
    """Return the text of a record's cell, by a field's name or a function in `column`; None for no cell."""
    if callable(column):
        return column(record)
    value = getattr(record, column, None)
    if isinstance(value, datetime):
        return zoned_time(value)
    if isinstance(value, list | tuple):
        return ", ".join(value)
    return "" if value is None else str(value)


def zoned_time(moment: datetime | None) -> str:
    """Return a local time with its zone, to the second; empty for None."""
    return in_zone(moment, None).isoformat(timespec="seconds") if moment else ""


# ------------------------------------------------------- control characters


def escape_strings(value: R) -> R:
    """Return a result with control characters escaped; only the fields in `TEXTS` keep line breaks."""
    clean: R = _escape_value(value, "", 0)
    return clean


def _escape_value(value: Any, name: str, depth: int) -> Any:  # noqa: ANN401 any part of a result
    """Return a value of the field `name` with strings escaped; below `DEPTH_MAX` levels as JSON."""
    if isinstance(value, str):
        escape = escape_invisible if name in TEXTS else escape_line
        return value if isinstance(value, Enum) else escape(value)
    if isinstance(value, Mapping | list | tuple) and depth > DEPTH_MAX:
        return escape_invisible(msgspec.json.encode(value).decode())
    if isinstance(value, Mapping):
        return {
            _escape_value(key, "", depth): _escape_value(member, str(key), depth + 1)
            for key, member in value.items()
        }
    if isinstance(value, list | tuple):
        return type(value)([_escape_value(member, name, depth + 1) for member in value])
    replace: Callable[..., Any] = dataclasses.replace
    names: Iterable[str] = ()
    if isinstance(value, msgspec.Struct):
        names, replace = value.__struct_fields__, msgspec.structs.replace
    elif dataclasses.is_dataclass(value):
        names = [field.name for field in dataclasses.fields(value)]
    changed: dict[str, Any] = {}
    for field in names:
        member = getattr(value, field)
        clean = _escape_value(member, field, depth + 1)
        if clean is not member:
            changed[field] = clean
    return replace(value, **changed) if changed else value


# ------------------------------------------------------------------- printing


class AnswerPrinter:
    """Printer of one answer, or of the pages of a list as they arrive, with consecutive numbers."""

    def __init__(self, form: str) -> None:
        self._form = form
        self.ids: list[str] = []
        self._remarks: list[str] = []
        self.is_over: Callable[[], bool] = lambda: False

    def show(self, result: object) -> None:
        """Print a result or the next page of a list, and keep its remark for `close`."""
        renderer = renderer_of(type(result))
        records = renderer.records(result)
        records = None if records is None else list(records)
        first = len(self.ids) + 1
        if renderer.is_numbered:
            self.ids += map(id_of, records or ())
        if self._form == "json":
            terminal.say_json(result)
        elif self._form == "table" or (self._form == "tsv" and records is None):
            text = render(result, first=first)
            if not renderer.is_as_written:
                text = terminal.fold_lines(text, terminal.columns_of(sys.stdout))
            if text:
                terminal.say(text, styled=True)
        else:
            if records is None and self._form == "ids":
                names = ("memory", "episode", "learning")
                parts = [result, *(getattr(result, name, None) for name in names)]
                records = list(filter(id_of, parts))[:1]
            for record in [result] if records is None else records:
                say_record(record, self._form)
        if remark := renderer.remark(result):
            self._remarks.append(remark)

    def close(self) -> None:
        """Print the remarks on standard error, and save the ids of a numbered list."""
        for remark in self._remarks:
            terminal.say(click.style(remark, dim=True), err=True, styled=True)
        if self._form == "table" and self.ids:
            save_list(self.ids)


def say_result(value: object, text: str) -> None:
    """Print a command's result: `value` as JSON if an option chose JSON, or else `text`."""
    if prints_json():
        terminal.say_json(value)
    else:
        terminal.say(text)


def say_record(record: object, form: str) -> None:
    """Print a record in the format `form`, which is json, jsonl, ids or tsv."""
    if form in ("json", "jsonl"):
        terminal.say_json(record)
    elif form == "tsv":
        columns = CELLS.get(type(record), ["id"])
        texts = (_cell_text(record, column) for column in columns)
        say_cells([text for text in texts if text is not None])
    elif id := id_of(record):
        terminal.say(escape_line(id))


def say_cells(cells: Sequence[str]) -> None:
    """Print cells on one line, separated by tabs."""
    terminal.say("\t".join(escape_line(cell) for cell in cells))


@contextmanager
def open_printer() -> Iterator[AnswerPrinter]:
    """Yield a printer for the chosen format; at a terminal, long answers go to a pager."""
    printer = AnswerPrinter(chosen_format())
    try:
        with page_output(printer):
            yield printer
    finally:
        printer.close()


class PagedOutput:
    """Standard output at a terminal: held back until a screen is full, then sent to a pager."""

    def __init__(self, pager: str) -> None:
        """Send long output to the command line `pager`."""
        self._pager = pager
        self._waiting: list[str] = []
        self._lines = 0
        self._process: subprocess.Popen[str] | None = None
        self.is_over = False
        """Whether the reader has left the pager."""

    def write(self, text: str) -> None:
        """Delay a text until the screen is full; then start the pager, which gets all text."""
        self._waiting.append(text)
        self._lines += text.count("\n")
        if self._process is None and self._lines >= shutil.get_terminal_size().lines:
            # Loaded here: most answers fit a screen, or go into a pipe.
            import subprocess  # noqa: PLC0415

            environment = {"LESS": LESS, "LV": "-c", **os.environ}
            try:
                self._process = subprocess.Popen(  # noqa: S602 a command line, as git reads it
                    self._pager,
                    shell=True,
                    stdin=subprocess.PIPE,
                    env=environment,
                    encoding=sys.stdout.encoding,
                    errors="replace",
                )
            except OSError:
                self._write_waiting()
        if self._process is not None:
            self._write_waiting()

    def close(self) -> None:
        """Print the held text if it fits the screen, or wait until the reader leaves the pager."""
        self._write_waiting()
        if self._process is None:
            return
        with suppress(OSError):
            if self._process.stdin:
                self._process.stdin.close()
        while self._process.returncode is None:
            with suppress(KeyboardInterrupt):  # Ctrl-C is the pager's own
                self._process.wait()

    def _write_waiting(self) -> None:
        """Send the held text to the pager, or print it; drop it if the reader has left."""
        text = "".join(self._waiting)
        self._waiting, self._lines = [], 0
        if self._process is None:
            terminal.print_as_is(text)
            return
        try:
            if self._process.stdin and not self.is_over:
                self._process.stdin.write(text)
                self._process.stdin.flush()
        except OSError:
            self.is_over = True


def find_pager() -> str:
    """Return the pager's command line; empty for no terminal, --no-pager or no pager."""
    if not (terminal.is_terminal(sys.stdout) and may_page()):
        return ""
    for name in ("MNEM_PAGER", "PAGER"):
        if name in os.environ:
            words = os.environ[name].split()
            is_there = words and words[0] != "cat" and shutil.which(words[0])
            return os.environ[name] if is_there else ""
    if os.environ.get("TERM") == "dumb":
        return ""
    return next(filter(shutil.which, ("less", "more")), "")


@contextmanager
def page_output(printer: AnswerPrinter | None = None) -> Iterator[None]:
    """Within the block, page output that fills the screen; `printer.is_over` tells if the reader left."""
    if not (pager := find_pager()):
        yield
        return
    with closing(PagedOutput(pager)) as output, terminal.printing_to(output.write):
        if printer is not None:
            printer.is_over = lambda: output.is_over
        yield


def show(result: object) -> None:
    """Print one result on standard output, and remarks about it on standard error."""
    with open_printer() as printer:
        printer.show(result)
