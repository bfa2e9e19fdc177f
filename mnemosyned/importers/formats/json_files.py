"""Memories as JSON lines or as a JSON list, and the files that `mnem export` writes."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from functools import partial
from typing import BinaryIO

import msgspec

from mnemosyned.errors import MnemosynedError
from mnemosyned.importers import importer, reading
from mnemosyned.verbs import exchange, memories, request


class _Identity(msgspec.Struct):
    """The fields that distinguish a line from others with the same words."""

    content: object = None
    id: object = None
    created_at: object = None


_IDENTITY_DECODER = msgspec.json.Decoder(_Identity)


class JsonLines(importer.ImportFormat):
    """A file with a JSON object a line."""

    name = "jsonl"

    def recognizes(self, source: importer.ImportSource) -> bool:
        """Return True if a line in the head is, or seems to be, an object with a text `content`."""
        lines = reading.head_as_utf8(source.head).split(b"\n")
        if any(isinstance(_decode_identity(line).content, str) for line in lines):
            return True
        # A first line longer than the head may be a memory.
        is_cut = len(lines[0]) >= importer.HEAD_BYTES - 3
        return is_cut and lines[0].startswith(b"{") and b'"content"' in lines[0]

    def read_records(
        self, source: importer.ImportSource, position: str
    ) -> importer.Records:
        """Yield the memories in the lines after the byte `position`.

        Earlier lines are read, but not yielded: the ids of lines without an id depend on the count of equal
        lines.
        """
        start = int(position or 0)
        occurrences = reading.OccurrenceCounter()
        with reading.open_text(source) as text:
            for line in reading.lines_of(text):
                if not (line.data.strip() or line.too_long):
                    continue
                id = _make_line_id(line, occurrences)
                if line.end <= start:
                    continue
                place, position = f"{source.name}:{line.number}", str(line.end)
                size = line.end - line.offset
                if line.too_long:
                    reason = f"the line is longer than {reading.LINE_BYTES_MAX:,} bytes"
                    yield importer.BadRecord(place, reason, position, size)
                else:
                    read = partial(_parse_memory, line.data, "the line", id)
                    yield from importer.parse_record(
                        read, place, position, size, exact=True
                    )


def _decode_identity(line: bytes) -> _Identity:
    """Return the content, id and time in a JSON line; all None if the line is no JSON object."""
    try:
        return _IDENTITY_DECODER.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return _Identity()


def _make_line_id(
    line: reading.TextLine, occurrences: reading.OccurrenceCounter
) -> str:
    """Return an id from a line's text, and without a time from the count of equal lines; "" if it has an id."""
    identity = _decode_identity(line.data)
    if identity.id or identity.content is None:
        return ""
    text = reading.decode_text(line.data.strip())
    if identity.created_at:
        return importer.stable_id("jsonl", text)
    return importer.stable_id("jsonl", text, str(occurrences.count(text)))


def _parse_memory(data: bytes, noun: str, id: str) -> memories.Remember:
    """Return the memory in JSON, by default with this `id`. Raises `RecordRefused`, which calls it `noun`."""
    try:
        memory = request.parse(memories.Remember, data)
    except MnemosynedError as error:
        reason = error.message.replace("the body", noun)
        raise importer.RecordRefused(f"{reason} ({error.code})") from error
    return msgspec.structs.replace(memory, id=memory.id or id)


class JsonArray(importer.ImportFormat):
    """A file with one JSON list, of any length."""

    name = "json"

    def recognizes(self, source: importer.ImportSource) -> bool:
        """Return True for a JSON list whose first object has the key `content`."""
        outline = reading.outline_document(source.head)
        return outline is not None and outline.is_list and "content" in outline.keys

    def read_records(
        self, source: importer.ImportSource, position: str
    ) -> importer.Records:
        """Yield the memories in a JSON list after its first `position` elements."""
        done = int(position or 0)
        occurrences = reading.OccurrenceCounter()
        with reading.open_text(source) as text:
            for element in reading.JsonReader(text).elements():
                written = json.dumps(element.value)
                count = occurrences.count(written)
                if element.index < done:
                    continue
                id = importer.stable_id("json", written, str(count))
                read = partial(_parse_memory, written.encode(), "the entry", id)
                number = element.index + 1
                place = f"{source.name}, entry {number}"
                yield from importer.parse_record(
                    read, place, str(number), element.size, exact=True
                )


EXPORT_LINE_BYTES_MAX = 64 << 20
"""Maximum bytes of a line: a month's summary names all its sources, a memory has a megabyte or more."""
GROUP_LINES_MAX = 10_000
GROUP_BYTES_MAX = 16 << 20
"""Maximum bytes of lines restored together, for which a request has room; a larger episode is split."""


class ExportFile(importer.ImportFormat):
    """The file that `mnem export` writes."""

    name = "export"

    def recognizes(self, source: importer.ImportSource) -> bool:
        """Return True if the first line is the header of an export by `mnem export`."""
        first = reading.head_as_utf8(source.head).partition(b"\n")[0]
        try:
            kind = exchange.parse_line_kind(first)
        except MnemosynedError:
            return False
        return kind.record == exchange.HEADER and kind.format == exchange.FORMAT

    def read_records(
        self, source: importer.ImportSource, position: str
    ) -> importer.Records:
        """Yield groups of lines to restore together, after the byte `position`.

        An episode comes with its originals. Earlier lines are read again for the checksum.
        """
        reader = _ExportReader(source, start=int(position or 0))
        with reading.open_text(source) as opened:
            yield from reader.read(opened)


class _ExportReader:
    """Reads the lines of one export, and puts them into groups."""

    def __init__(self, source: importer.ImportSource, *, start: int) -> None:
        self._source = source
        self._start = start
        self._digest = hashlib.sha256()
        self._counts: Counter[str] = Counter()
        self._group: list[reading.TextLine] = []
        self._group_bytes = 0
        self._begins_with_episode = False
        self._missing = 0
        """Originals still missing in the group."""

    def read(self, file: BinaryIO) -> importer.Records:
        """Yield groups of the export's lines after the start position, and a bad record for each fault."""
        ended = ""
        number = end = 0
        while data := file.readline(EXPORT_LINE_BYTES_MAX):
            number += 1
            end += len(data)
            line = reading.TextLine(number, end - len(data), end, data)
            try:
                kind = exchange.parse_line_kind(line.data)
            except MnemosynedError as error:
                yield self._make_bad_line(line, error.message)
                continue
            if kind.record in (exchange.FOOTER, exchange.CUT_OFF):
                ended = kind.record
                yield from self._read_last_line(line, kind)
                continue
            self._digest.update(line.data)
            self._counts[kind.record] += 1
            if kind.record == exchange.HEADER:
                version = msgspec.json.decode(line.data).get("version")
                if version != exchange.VERSION:
                    reason = f"the export is of version {version}; this program reads {exchange.VERSION}"
                    yield self._make_bad_line(line, reason)
                    return
            if kind.record != exchange.HEADER and line.end > self._start:
                yield from self._group_line(line, kind)
        if ended != exchange.FOOTER:
            yield from self._finish_incomplete_group()
            reason = "the export was cut off here: it has no last line"
            yield importer.BadRecord(self._source.name, reason)

    def _group_line(
        self, line: reading.TextLine, kind: exchange.LineKind
    ) -> importer.Records:
        """Add a line to the group; yield the group once it is complete, full or interrupted."""
        if self._missing and kind.record != "memory":
            yield from self._finish_incomplete_group()
        if kind.record == "episode":
            self._missing = kind.originals
            self._begins_with_episode = True
        elif self._missing:
            self._missing -= 1
        self._group.append(line)
        self._group_bytes += len(line.data)
        is_full = (
            len(self._group) >= GROUP_LINES_MAX or self._group_bytes >= GROUP_BYTES_MAX
        )
        if is_full or not self._missing:
            yield self._finish_group()

    def _finish_group(self) -> importer.ExportGroup:
        """Return the collected lines as a group, and begin an empty group."""
        group, self._group = self._group, []
        self._group_bytes, self._begins_with_episode = 0, False
        data = b"".join(line.data.rstrip(b"\n") + b"\n" for line in group)
        end = group[-1].end
        size = sum(len(line.data) for line in group)
        place = f"{self._source.name}:{group[0].number}"
        return importer.ExportGroup(data, len(group), place, str(end), size)

    def _finish_incomplete_group(self) -> importer.Records:
        """Yield an episode without all originals as a bad record, and then the originals that are there."""
        self._missing = 0
        if self._begins_with_episode:
            yield self._make_bad_line(
                self._group.pop(0), "the summary lacks originals and is left out"
            )
        if self._group:
            yield self._finish_group()
        self._begins_with_episode = False

    def _read_last_line(
        self, line: reading.TextLine, kind: exchange.LineKind
    ) -> importer.Records:
        """Yield the unfinished group, then a bad record for each fault of the export, then the footer.

        The footer is left out if the daemon ended the export early.
        """
        yield from self._finish_incomplete_group()
        if kind.record == exchange.CUT_OFF:
            yield self._make_bad_line(line, "the export was ended early by the daemon")
            return
        if problem := self._find_footer_problem(line.data):
            yield self._make_bad_line(line, problem)
        self._group = [line]
        yield self._finish_group()

    def _find_footer_problem(self, footer: bytes) -> str:
        """Return how the lines differ from the footer's counts or checksum, or an empty text."""
        try:
            expected = request.decoder_of(exchange.Footer).decode(footer)
        except msgspec.DecodeError as error:
            return f"the last line is damaged: {error}"
        if expected.counts != dict(self._counts):
            return "lines are missing or were added: the counts in the last line differ"
        if expected.sha256 != self._digest.hexdigest():
            return "lines were changed since the export: its hash differs"
        return ""

    def _make_bad_line(self, line: reading.TextLine, reason: str) -> importer.BadRecord:
        """Return a bad record that names a line of the export and the reason."""
        return importer.BadRecord(f"{self._source.name}:{line.number}", reason)
