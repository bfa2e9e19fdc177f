"""`mnem export`: everything that is stored, as JSON lines or as Markdown."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager, nullcontext
from itertools import chain, groupby
from operator import itemgetter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import click
import msgspec

from mnemosyned import errors, paths
from mnemosyned.cli import arguments, options
from mnemosyned.cli.calls import call_daemon, connect_to_daemon, on_interrupt
from mnemosyned.cli.commands.backup import PARTIAL, check_target, open_whole_file
from mnemosyned.cli.output import listing, terminal
from mnemosyned.client.connection import Connection
from mnemosyned.instants import calendar_time, in_zone
from mnemosyned.memory.exchange import ExportedEpisode, ExportedMemory
from mnemosyned.text.details import Detail, DetailKind
from mnemosyned.text.secrets.masking import KnownSecrets, extract_secrets, mask_secrets
from mnemosyned.verbs.exchange import (
    HEADER,
    Export,
    Footer,
    Header,
    parse_line_kind,
    parse_record,
)
from mnemosyned.verbs.request import decoder_of, parse_text
from mnemosyned.verbs.retention import Backup
from mnemosyned.verbs.upkeep import Status

NOTHING_WRITTEN = "interrupted; no whole file was written"
SUFFIXES = {".md": "markdown", ".db": "sqlite", ".sqlite": "sqlite"}


@click.command("export")
@click.argument("file", default="-", metavar="[FILE|-]")
@click.option(
    "--format",
    "format_name",
    type=click.Choice(["jsonl", "markdown", "sqlite"]),
    help="Default: by the file's name, else jsonl.",
)
@click.option("--force", is_flag=True, help="Replace a file that exists.")
@click.option(
    "--reveal", is_flag=True, help="Show secrets, which Markdown masks otherwise."
)
@options.json_option("Print what was exported as JSON.")
@click.pass_context
def export_command(
    context: click.Context,
    /,
    *,
    file: str,
    format_name: str | None,
    force: bool,
    reveal: bool,
    **given: Any,  # noqa: ANN401
) -> int:
    """Write everything that is kept to a file.

    jsonl: one record in each line, all from one moment; `mnem import FILE` restores it exactly.
    Secrets are in it as they are stored, so keep it private.

    markdown: to read. A folder gets a file for each day, FILE.md has all days.

    sqlite: a copy of the database, as `mnem backup` makes one.
    """
    by_name = SUFFIXES.get(Path(file).suffix, "jsonl")
    format_name = format_name or ("markdown" if Path(file).is_dir() else by_name)
    request = parse_text(Export, arguments.read_fields(given))
    if reveal and format_name != "markdown":
        raise errors.InvalidRequest(
            f"{format_name} has secrets as they are stored; --reveal is for markdown",
            field="reveal",
        )
    if file != "-":
        paths.require_usable_path(file, field="file", suffix=PARTIAL)
    if file != "-" and not _is_folder_of_days(file, format_name):
        check_target(Path(file), force=force)
    with on_interrupt(NOTHING_WRITTEN), connect_to_daemon(context) as client:
        if named := os.environ.get("MNEMOSYNE_DATABASE"):
            served = client.call(Status()).database
            if str(Path(named).expanduser().absolute()) != served != named:
                terminal.say(
                    "mnem: MNEMOSYNE_DATABASE chooses no memory to export; this is the one of the running "
                    f"daemon: {served or 'a database of many owners'}",
                    err=True,
                )
        if format_name == "sqlite":
            options.use_local_daemon(context, "export --format sqlite")
            if request != Export():
                raise errors.InvalidRequest(
                    "a copy of the database is whole; filters are for jsonl and markdown"
                )
            if file == "-":
                problem = "name the file that the copy is written to"
                raise errors.InvalidRequest(problem, field="file")
            path = str(paths.require_usable_path(file, field="file").absolute())
            written = call_daemon(client, Backup(path))
            summary: dict[str, Any] = {"file": written.file, "bytes": written.bytes}
        elif format_name == "markdown":
            summary = _write_markdown(client, request, file, reveal=reveal, force=force)
        else:
            summary = _write_lines(client, request, file)
    if options.prints_json():
        terminal.say_json(summary, err=file == "-")
    elif file != "-":
        nouns = {"memory": "memory", "episode": "summary", "files": "file"}
        parts = [
            terminal.count_of(summary[name], noun)
            for name, noun in nouns.items()
            if name in summary
        ]
        size = f", {summary['bytes']:,} bytes" if "bytes" in summary else ""
        terminal.say(f"{summary['file']}: {', '.join(parts) or 'a whole copy'}{size}")
    return 0


export_command.params[1:1] = arguments.make_parameters(Export)


def _is_folder_of_days(file: str, format_name: str) -> bool:
    """Return whether an export writes a folder with a Markdown file for each day."""
    return format_name == "markdown" and not file.endswith(".md")


# --------------------------------------------------------------------- lines


def _write_lines(client: Connection, request: Export, file: str) -> dict[str, Any]:
    """Write an export as JSON lines to a file or standard output ("-"); return its counts.

    Raises `InvalidRequest` if the output is a terminal, and `MnemosynedError` if the export is not whole.
    """
    if file == "-" and sys.stdout.isatty():
        raise errors.InvalidRequest(
            "refusing to fill the terminal; name a file, or pipe it", field="file"
        )
    size, footer = 0, b""
    with (
        nullcontext(sys.stdout.buffer)
        if file == "-"
        else open_whole_file(Path(file)) as written
    ):
        with open_export(client, request) as lines:
            for line in lines:
                written.write(line)
                size += len(line)
                footer = line
        written.flush()
    counts = decoder_of(Footer).decode(footer).counts
    return {"file": file, "bytes": size, **counts}


@contextmanager
def open_export(client: Connection, request: Export) -> Iterator[Iterable[bytes]]:
    """Yield an iterator over the lines of an export, with a progress line at a terminal."""
    with closing(client.transfers()) as transfers, transfers.export(request) as lines:
        first = next(iter(lines), b"")
        count = 0
        if first and parse_line_kind(first).record == HEADER:
            count = sum(decoder_of(Header).decode(first).expected.values())
        with terminal.progress_line("exporting", "record", count) as advance:

            def advancing_lines() -> Iterator[bytes]:
                yield first
                for number, line in enumerate(lines, 1):
                    yield line
                    advance(1, number)

            yield advancing_lines()


# ------------------------------------------------------------------ markdown


def _write_markdown(
    client: Connection, request: Export, file: str, *, reveal: bool, force: bool
) -> dict[str, Any]:
    """Write the memories of each day as Markdown to a folder, a file or standard output.

    Return the counts. `reveal` shows secrets, `force` replaces files.
    """
    with TemporaryDirectory(prefix="mnem-export-") as folder:
        days = DaysOfExport(folder, reveal=reveal)
        with open_export(client, request) as lines:
            days.collect(lines)
        summary = {"file": file, "memory": days.count}
        if file == "-":
            for text in days.day_texts():
                terminal.say(text)
        elif not _is_folder_of_days(file, "markdown"):
            with open_whole_file(Path(file)) as written:
                for text in days.day_texts():
                    written.write(text.encode())
        else:
            summary["files"] = days.write_files(Path(file), force=force)
        return summary


DAY_LEVEL = 1
_MARKUP = ("#", "---", "```", "~~~")
"""Beginnings of lines that Markdown would read as the end of a section."""


class DaysOfExport:
    """The memories of an export sorted by day into files."""

    def __init__(self, folder: str, *, reveal: bool) -> None:
        """Sort into files of an empty folder; secrets are masked unless `reveal` is given."""
        self._folder = Path(folder)
        self._reveal = reveal
        self._summaries: dict[str, str] = {}
        self.count = 0
        """Number of memories."""

    def collect(self, lines: Iterable[bytes]) -> None:
        """Sort an export's memories into a file for each local day, and keep the summaries of days."""
        # An export is in the order of remembering: many lines in a row are of one day.
        for day, memories in groupby(self._memory_lines(lines), key=itemgetter(0)):
            with (self._folder / day).open("ab") as file:
                file.writelines(line for _, line in memories)

    def _memory_lines(self, lines: Iterable[bytes]) -> Iterator[tuple[str, bytes]]:
        """Yield (local day, line) of each memory that has text; keep the summaries of days."""
        for line in lines:
            if parse_line_kind(line).record not in ("memory", "episode"):
                continue
            record = parse_record(line)
            if isinstance(record, ExportedMemory) and record.content:
                self.count += 1
                yield str(listing.local_day(record.created_at)), line
            elif isinstance(record, ExportedEpisode) and record.level == DAY_LEVEL:
                begins = record.period_from or calendar_time(record.covers_from)
                day = str(begins.date())
                text = record.content
                self._summaries[day] = text if self._reveal else mask_secrets(text)

    def day_texts(self) -> Iterator[str]:
        """Yield the Markdown text of each day, the earliest first."""
        for day in self._sorted_days():
            yield self._day_text(day)

    def write_files(self, folder: Path, *, force: bool) -> int:
        """Write a Markdown file for each day to a folder; return the number of files.

        Raises `InvalidRequest` before anything is written if a file exists, unless `force`.
        """
        if folder.exists() and not folder.is_dir():
            raise errors.InvalidRequest(f"{folder} is not a folder", field="file")
        taken = [day for day in self._sorted_days() if (folder / f"{day}.md").exists()]
        if taken and not force:
            raise errors.InvalidRequest(
                f"{folder / taken[0]}.md exists; --force replaces such files",
                field="file",
            )
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        for day in self._sorted_days():
            with open_whole_file(folder / f"{day}.md") as file:
                file.write(self._day_text(day).encode())
        return len(self._sorted_days())

    def _sorted_days(self) -> list[str]:
        """Return the days with memories or a summary, as ISO dates, the earliest first."""
        days = {path.name for path in self._folder.iterdir()}
        return sorted(days | self._summaries.keys())

    def _day_text(self, day: str) -> str:
        """Return a day as Markdown: front matter, its summary, and a section for each memory."""
        path = self._folder / day
        written = path.read_bytes().splitlines() if path.exists() else []
        records = map(parse_record, written)
        memories = [each for each in records if isinstance(each, ExportedMemory)]
        memories.sort(key=lambda memory: memory.created_at)
        sessions = sorted({memory.session for memory in memories})
        head = (
            f"---\ndate: {day}\nmemories: {len(memories)}\n"
            f"sessions: {msgspec.json.encode(sessions).decode()}\n---\n\n# {day}\n"
        )
        summary = ""
        if day in self._summaries:
            lines = self._summaries[day].rstrip().splitlines()
            quoted = "\n".join(f"> {line}".rstrip() for line in lines)
            summary = f"\n{quoted}\n"
        known = None
        if not self._reveal:
            known = KnownSecrets(chain.from_iterable(map(_secrets_of, memories)))
        sections = (self._memory_section(each, known) for each in memories)
        return head + summary + "".join(sections) + "\n"

    def _memory_section(
        self, memory: ExportedMemory, known: KnownSecrets | None
    ) -> str:
        """Return a memory as Markdown under a heading of its time, session, source and role.

        Secrets in `known` are masked; None shows all secrets.
        """
        time = f"{in_zone(memory.created_at, None):%H:%M}"
        about = (memory.session, memory.source or "", memory.role)
        heading = " · ".join(
            [time, *(" ".join(name.split()) for name in about if name)]
        )
        content = memory.content if known is None else known.mask(memory.content)
        # No line may be taken for a heading of ours.
        lines = content.rstrip().splitlines()
        text = "\n".join(
            f"\\{line}" if line.startswith(_MARKUP) else line for line in lines
        )
        return f"\n## {heading}\n\n{text}\n"


def _secrets_of(memory: ExportedMemory) -> Iterator[Detail]:
    """Yield the secrets in a memory's text and among the exact values."""
    yield from extract_secrets(memory.content)
    for kind, value, sensitive in memory.details:
        if sensitive:
            yield Detail(DetailKind(kind), value, sensitive)
