"""Printing and layout: only `say` prints, so that no control character reaches a terminal."""

from __future__ import annotations

import os
import re
import select
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from typing import TextIO

import click
import msgspec

from mnemosyned.errors import InvalidRequest
from mnemosyned.instants import in_zone
from mnemosyned.text import display

WIDTH_MAX = 120
"""Maximum columns of running text."""
COLUMNS = 80
"""Columns of a terminal that does not know its own."""
ENDLESS = 1_000_000
LINE_CHARS = 400
CELLS_MIN = 8
"""Minimum cells of a column of text, if it has as many."""
TAB_CELLS = 4
INDENT = " " * 3
_STYLED = re.compile("((?:\x1b\\[\\d+m)+)(.*?)((?:\x1b\\[0m)+)", re.DOTALL)
_STYLE = re.compile("(\x1b\\[(?:0|1|2|4|31)m)")
"""Sequences that `click.style` writes here: reset, bold, dim, underlined, red."""
_IN_ASCII = str.maketrans(
    {"…": "...", "“": '"', "”": '"', "„": '"', "’": "'", "–": "-", "—": "-", "→": "->"}
    | {"×": "x", "·": "-", "✓": "v", "✗": "x", "▁": "_", "█": "#", "░": "."}
)


def say(text: str, *, err: bool = False, styled: bool = False) -> None:
    """Print a line with terminals' control characters escaped, to standard error if `err`.

    `styled` keeps our own styles: escape values first, with `show.escape_strings`.
    """
    parts = _STYLE.split(text) if styled else [text]
    # Between them are the styles.
    parts[::2] = map(display.escape_invisible, parts[::2])
    shown = "".join(parts)
    _print_to_stream(
        fold_lines(shown, columns_of(sys.stderr)) if err else shown, err=err
    )


def say_json(value: object, *, err: bool = False) -> None:
    """Print a value as JSON on one line, to standard error if `err`; paths become texts."""
    written = msgspec.json.encode(value, enc_hook=str).decode()
    _print_to_stream(display.escape_invisible_json(written).encode(), err=err)


def ask_or_exit(question: str) -> None:
    """Ask the user a yes-or-no question; if the answer is no, exit with code 1."""
    if not ask_user(question, default=False):
        say("nothing was changed", err=True)
        raise click.exceptions.Exit(1)


def ask_user(question: str, *, default: bool) -> bool:
    """Ask on standard error; an empty line means `default`. Raises `InvalidRequest` if piped input ends."""
    shown = _text_for_stream(display.escape_line(question), sys.stderr)
    try:
        return click.confirm(shown, default=default, err=True)
    except click.Abort:
        if sys.stdin.isatty():
            raise
        raise InvalidRequest("the input ended without an answer; use --yes") from None


_sinks: list[Callable[[str], object]] = []
"""Receivers of text for standard output, such as a pager; the last one gets it. See `printing_to`."""


@contextmanager
def printing_to(sink: Callable[[str], object]) -> Iterator[None]:
    """Within the block, hand text for standard output to `sink` instead of printing it."""
    _sinks.append(sink)
    try:
        yield
    finally:
        _sinks.pop()


def is_terminal(stream: TextIO) -> bool:
    """Return whether a stream is a terminal; False for a closed stream."""
    try:
        return stream.isatty()
    except (AttributeError, ValueError):
        return False


def is_reader_gone() -> bool:
    """Return whether standard output is a pipe whose reader has closed it."""
    poll = select.poll()
    with suppress(AttributeError, OSError, ValueError):
        poll.register(sys.stdout.fileno(), select.POLLERR)
        return any(flags & select.POLLERR for _, flags in poll.poll(0))
    return False


def _print_to_stream(text: str | bytes, *, err: bool) -> None:
    """Print a line to standard error if `err`, else to a sink or standard output; drop unwanted styles."""
    stream = sys.stderr if err else sys.stdout
    is_forced = os.environ.get("FORCE_COLOR", "0") not in ("", "0")
    is_plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    styled = not is_plain and (is_forced or is_terminal(stream))
    if isinstance(text, str):
        text = _text_for_stream(text if styled else click.unstyle(text), stream)
        if _sinks and not err:
            _sinks[-1](f"{text}\n")
            return
    _write_to_stream(text, stream, end=True)


def print_as_is(text: str) -> None:
    """Print a text to standard output as it is: no newline is added, nothing is escaped."""
    _write_to_stream(text, sys.stdout, end=False)


def show_progress(text: str) -> None:
    """Show a text as the progress line on standard error; an empty text removes the line."""
    columns = min(columns_of(sys.stderr), WIDTH_MAX) - 1
    shown = display.escape_line(text)[:columns]
    line = _text_for_stream(f"\r{shown:<{columns}}\r{shown}", sys.stderr)
    _write_to_stream(line, sys.stderr, end=False)


def _write_to_stream(text: str | bytes, stream: TextIO, *, end: bool) -> None:
    """Write a text, and if `end` a line break, to a stream; after a failure, discard all later output.

    Raises `OSError`, but not for a broken pipe.
    """
    try:
        click.echo(text, file=stream, nl=end, color=True)
    except OSError as error:
        # What the stream still holds goes nowhere, so that the end of the program succeeds.
        with suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
        if not isinstance(error, BrokenPipeError):
            problem = f"the answer could not be written: {error.strerror}"
            raise OSError(error.errno, problem) from error


def _text_for_stream(text: str, stream: TextIO) -> str:
    """Return a text with signs that a stream's encoding lacks replaced by ASCII."""
    encoding = getattr(stream, "encoding", None) or "utf-8"
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        plain = text.translate(_IN_ASCII)
        return plain.encode(encoding, "replace").decode(encoding)
    except LookupError:
        pass
    return text


def ellipsis() -> str:
    """Return `…`, or `...` if standard output cannot encode the sign."""
    return _text_for_stream("…", sys.stdout)


# --------------------------------------------------------------------- layout


def width() -> int:
    """Return the columns in COLUMNS, or else of standard output; `ENDLESS` without a terminal."""
    named = os.environ.get("COLUMNS", "")
    if named.isdecimal() and int(named):
        return int(named)
    return columns_of(sys.stdout)


def columns_of(stream: TextIO) -> int:
    """Return the number of columns of a terminal; `ENDLESS` for other streams."""
    if not is_terminal(stream):
        return ENDLESS
    with suppress(OSError):
        return os.get_terminal_size(stream.fileno()).columns or COLUMNS
    return COLUMNS


def fold_lines(text: str, columns: int) -> str:
    """Return a text with lines longer than `columns` cells wrapped; indentation and style stay."""
    lines: list[str] = []
    for line in text.split("\n"):
        before, inner, after = _split_style(line)  # repeated on each part
        if display.cell_count(inner) <= columns or "\x1b" in inner:
            lines.append(line)
            continue
        lead = inner[: len(inner) - len(inner.lstrip())][: columns // 2]
        room = columns - len(lead)
        parts = display.wrap_cells(inner, room, room)
        lines += [f"{before}{lead}{part}{after}" for part in parts]
    return "\n".join(lines)


def prose_width() -> int:
    """Return the columns for running text, at most `WIDTH_MAX`; `ENDLESS` without a terminal."""
    columns = width()
    return columns if columns == ENDLESS else min(columns, WIDTH_MAX)


def key_lines(rows: Iterable[tuple[str, str]]) -> str:
    """Return a line `key value` for each pair with a value, long values wrapped in a column."""
    return "\n".join(
        hanging_text(click.style(f"{key:<12}", dim=True), value, 12)
        for key, value in rows
        if value
    )


def hanging_text(head: str, text: str, indent: int) -> str:
    """Return `head` and `text`, wrapped to the terminal; further lines are indented by `indent` cells."""
    room = max(width() - indent, CELLS_MIN)
    before, inner, after = _split_style(text)
    is_one_word = inner.isascii() and " " not in inner.strip()  # a path stays whole
    if display.cell_count(inner) <= room or is_one_word:
        return head + text
    lines = [f"{before}{line}{after}" for line in display.wrap_cells(inner, room, room)]
    return head + f"\n{' ' * indent}".join(lines)


def _split_style(text: str) -> tuple[str, str, str]:
    """Return the style codes before a text, the text, and the codes after it."""
    match = _STYLED.fullmatch(text)
    return (match[1], match[2], match[3]) if match else ("", text, "")


def local_time(moment: datetime | None) -> str:
    """Return a time as `2026-11-23 10:00` in the local zone; empty for None."""
    return in_zone(moment, None).isoformat(" ")[:16] if moment else ""


def duration_text(seconds: float) -> str:
    """Return seconds as `2 h 5 min`, or as `5 min 3 s` below an hour."""
    minutes, whole_seconds = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {whole_seconds} s"


RECORD_NOUNS = {
    "memory": "memory",
    "episode": "summary",
    "supersession": "supersession",
    "learning": "learning",
    "log": "log entry",
    "compaction": "compaction",
    "agent_session": "agent session",
    "forgotten": "forgotten id",
    "briefing_line": "edited line",
    "ending": "ended statement",
    "recoverable": "recoverable item",
    "watched_folder": "watched folder",
    "watched_file": "watched file",
    "hook_activity": "hook count",
    "injection": "injection",
    "vector": "vector",
    "clock": "clock reading",
}
"""Nouns for the kinds of records of an export or a move."""


def count_of(number: int, noun: str) -> str:
    """Return a number with its noun, in the plural unless it is 1: `1,200 memories`."""
    if number == 1:
        return f"1 {noun}"
    plural = f"{noun[:-1]}ies" if noun.endswith("ry") else f"{noun}s"
    return f"{number:,} {plural}"


def cut_text(text: str, room: int) -> str:
    """Return a text on one line, truncated to `room` cells; a style around the whole text stays."""
    before, inner, after = _split_style(text)
    return f"{before}{cut_line(' '.join(inner.split()), room)}{after}"


def cut_line(line: str, room: int) -> str:
    """Return a line truncated to `room` cells, with an ellipsis at the end; blanks in it stay."""
    if len(line) * 2 <= room or display.cell_count(line) <= room:
        return line
    sign = ellipsis()
    return line[: display.chars_that_fit(line, max(room - len(sign), 0))] + sign[:room]


def wrap_paragraph(text: str) -> str:
    """Return a text as one paragraph, indented and wrapped; its line breaks become blanks."""
    room = max(prose_width() - len(INDENT), CELLS_MIN)
    return "\n".join(f"{INDENT}{line}" for line in display.wrap_cells(text, room, room))


def wrap_lines(text: str) -> str:
    """Return a text with all lines indented and long ones wrapped; line breaks and indents stay."""
    room = max(prose_width() - len(INDENT), CELLS_MIN)
    lines = "\n".join(text.expandtabs(TAB_CELLS).splitlines())
    folded = fold_lines(lines, room).split("\n")
    return "\n".join(f"{INDENT}{line}".rstrip() for line in folded)


def wrap_prose(text: str) -> str:
    """Return a text with lines wrapped to the terminal's width; indented lines, such as code, stay."""
    room = width()
    lines: list[str] = []
    for line in text.splitlines():
        is_prose = display.cell_count(line) > room and not line[:1].isspace()
        lines += display.wrap_cells(line, room, room) if is_prose else [line]
    return "\n".join(lines)


def indent_lines(text: str) -> str:
    """Return a text with each line indented by three blanks."""
    return "\n".join(f"{INDENT}{line}" for line in text.splitlines() or [""])


GAP = "  "
_NUMBER = re.compile(r"(?:about )?[-+]?[\d,.]+%?")


def table(
    headers: Iterable[str],
    rows: Iterable[Iterable[object]],
    *,
    optional: Sequence[str] = (),
    room: Mapping[str, int] | None = None,
    without_empty: bool = False,
) -> str:
    """Return rows under their headers, columns aligned, within the width of the terminal.

    If the table is too wide, the `optional` columns are left out one by one, in the given order,
    then the widest columns are truncated; if it is still too wide, each row becomes a block with a
    line for each column. `room` maps headers to the cells to which long columns may shrink before
    optional ones are left out. `without_empty` leaves out columns without values, and returns ""
    without rows.
    """
    texts = (map(str, row) for row in rows)
    columns: list[tuple[str, ...]] = list(zip(headers, *texts, strict=True))
    if without_empty:
        columns = [column for column in columns if any(column[1:])]
        if not columns:
            return ""
    for name in optional:
        least = (
            min(size, (room or {}).get(column[0], size))
            for size, column in zip(_column_sizes(columns), columns, strict=True)
        )
        if _surplus_cells(list(least)) > 0:
            columns = [column for column in columns if column[0] != name]
    sizes = _column_sizes(columns)
    names, *cells = (list(row) for row in zip(*columns, strict=True))
    for _ in range(max(_surplus_cells(sizes), 0)):  # shrink the widest
        widest = max(range(len(sizes)), key=sizes.__getitem__)
        if sizes[widest] <= CELLS_MIN:  # each row becomes a block
            rows_as_pairs = (zip(names, row, strict=True) for row in cells)
            return "\n\n".join(map(key_lines, rows_as_pairs))
        sizes[widest] -= 1
    # Numbers are easier to compare at the right.
    right = [
        any(column[1:]) and all(map(_NUMBER.fullmatch, filter(None, column[1:])))
        for column in columns
    ]
    lines: list[str] = []
    for row in (names, ["-" * size for size in sizes], *cells):
        parts: list[str] = []
        for cell, size, is_right in zip(
            map(cut_text, row, sizes), sizes, right, strict=True
        ):
            blanks = " " * max(size - _visible_cells(cell), 0)
            parts.append(blanks + cell if is_right else cell + blanks)
        lines.append(GAP.join(parts).rstrip())
    return "\n".join(lines)


def _column_sizes(columns: Iterable[Iterable[str]]) -> list[int]:
    """Return the width of each column in cells: the size of its longest text."""
    return [max(map(_visible_cells, column)) for column in columns]


def _surplus_cells(sizes: Sequence[int]) -> int:
    """Return by how many cells columns of these sizes exceed the terminal; negative if less."""
    return sum(sizes) + len(GAP) * (len(sizes) - 1) - width()


def _visible_cells(text: str) -> int:
    """Return the number of terminal cells of a text without its styles."""
    return display.cell_count(click.unstyle(text) if "\x1b" in text else text)


SHOWN_EVERY_S = 0.2
RATE_AFTER_S = 1.0
"""Seconds after which a rate is shown, as before it means little."""

Advance = Callable[[int, int], object]
"""Function called with the amount done since the last call, and the number of things done in all."""


class ProgressLine:
    """A progress line on standard error for one task, with a rate and the time left."""

    def __init__(self, label: str, noun: str, total: int) -> None:
        """Count things named by `noun` up to `total`, such as bytes; 0 if it is unknown."""
        self.label, self.noun, self.total = label, noun, total
        self.done = self.things = self.skipped = 0
        """The part done, the things in it, and the part that an earlier run did."""
        self.began, self.shown = time.monotonic(), 0.0

    def advance(self, amount: int, things: int) -> None:
        """Add `amount` to what is done, and draw the line at most every `SHOWN_EVERY_S` seconds.

        `things` is the number of records done; 0 means that an earlier run did this part.
        """
        self.done += amount
        self.things = things
        if not things:
            self.skipped = self.done
        now = time.monotonic()
        if now - self.shown >= SHOWN_EVERY_S:
            self.shown = now
            show_progress(self.text(now - self.began))

    def text(self, elapsed_s: float) -> str:
        """Return the line `elapsed_s` seconds after the start: share, count, rate and time left."""
        parts = [self.label]
        if self.total:
            parts.append(f"{min(100, 100 * self.done // self.total)} %")
        parts.append(count_of(self.things, self.noun))
        if elapsed_s >= RATE_AFTER_S:
            parts.append(f"{self.things / elapsed_s:,.0f}/s")
            worked = self.done - self.skipped
            remaining = self.total - self.done
            if worked > 0 and remaining > 0:
                left = duration_text(remaining * elapsed_s / worked)
                parts.append(f"{left} left")
        return " · ".join(parts)


@contextmanager
def progress_line(label: str, noun: str, total: int) -> Iterator[Advance]:
    """Show progress on standard error at a terminal; yield the function that advances it."""
    if not sys.stderr.isatty():
        yield lambda _amount, _things: None
        return
    line = ProgressLine(label, noun, total)
    try:
        yield line.advance
    finally:
        if line.shown:
            show_progress("")
