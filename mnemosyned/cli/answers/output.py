"""Answers on standard output, in the form that was chosen: for people, for pipes, for programs."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import click

from mnemosyned.cli.answers.formats import chosen_format, may_page
from mnemosyned.cli.answers.records import cells_of, id_of, ids_of, records_of
from mnemosyned.cli.answers.render import NUMBERED, remarks, render
from mnemosyned.cli.arguments.last_list import keep_list
from mnemosyned.domain.text.invisible import escape_invisible
from mnemosyned.terminal import (
    columns_of,
    folded,
    is_terminal,
    printing_to,
    say,
    say_json,
)

AS_WRITTEN = {"Assembled", "Expanded", "Got", "Shortened"}
"""Answers with whole texts: their long lines are left to the terminal, so that they can be copied."""


class Answers:
    """Prints one answer or the pages of a list; entries are numbered through.

    A list of any length goes out as it comes: ask `is_over` whether anyone still reads.
    """

    def __init__(self, form: str) -> None:
        self._show = _FORMS[form]
        self._keeps_ids = form == "table"
        self.ids: list[str] = []
        self._remarks: list[str] = []
        self.is_over: Callable[[], bool] = lambda: False

    def show(self, result: object) -> None:
        """Print a result, or the next page of a list."""
        first = len(self.ids) + 1
        if type(result).__name__ in NUMBERED:
            self.ids += map(id_of, records_of(result) or ())
        self._show(result, first)
        if remark := remarks(result):
            self._remarks.append(remark)

    def close(self) -> None:
        """Print the remarks below the answer; keep the ids of a list that was shown with numbers."""
        for remark in self._remarks:
            say(click.style(remark, dim=True), err=True, styled=True)
        if self._keeps_ids and self.ids:
            keep_list(self.ids)


@contextmanager
def answers() -> Iterator[Answers]:
    """Print answers in the form that was chosen, at a terminal with a pager where they are long."""
    form = chosen_format()
    printer = Answers(form)
    try:
        with paged(printer):
            yield printer
    finally:
        printer.close()


@contextmanager
def paged(printer: Answers | None = None) -> Iterator[None]:
    """Send standard output through a pager once it is longer than the screen."""
    if not (is_terminal(sys.stdout) and may_page()):
        yield
        return
    # Loaded here: in a pipe there is no pager.
    from mnemosyned.cli.answers.pager import Screen, chosen_pager  # noqa: PLC0415

    pager = chosen_pager()
    if not pager:
        yield
        return
    with Screen(pager) as screen, printing_to(screen):
        if printer is not None:
            printer.is_over = lambda: screen.is_over
        yield


def show(result: object) -> None:
    """Print one result on standard output, and remarks about it on standard error."""
    with answers() as printer:
        printer.show(result)


def _show_table(result: object, first: int) -> None:
    text = render(result, first=first)
    if type(result).__name__ not in AS_WRITTEN:
        text = folded(text, columns_of(sys.stdout))
    if text:
        say(text, styled=True)


def _show_lines(result: object, first: int) -> None:
    """Print each record on a line, its cells parted by tabs; other answers as text."""
    records = records_of(result)
    if records is None:
        _show_table(result, first)
        return
    for record in records:
        cells = (escape_invisible(cell, one_line=True) for cell in cells_of(record))
        say("\t".join(cells))


def _show_json_lines(result: object, _first: int) -> None:
    records = records_of(result)
    for record in [result] if records is None else records:
        say_json(record)


def _show_json(result: object, _first: int) -> None:
    say_json(result)


def _show_ids(result: object, _first: int) -> None:
    for id in ids_of(result):
        say(escape_invisible(id, one_line=True))


_FORMS: dict[str, Callable[[object, int], None]] = {
    "table": _show_table,
    "tsv": _show_lines,
    "jsonl": _show_json_lines,
    "json": _show_json,
    "ids": _show_ids,
}
