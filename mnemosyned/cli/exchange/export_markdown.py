"""Memories as Markdown, day by day: the day's summary, then each memory with its time and session."""

from __future__ import annotations

import tempfile
from collections import defaultdict
from collections.abc import Iterable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Self

import msgspec

from mnemosyned.cli.exchange.whole_file import whole_file
from mnemosyned.domain.errors import InvalidRequest
from mnemosyned.domain.exchange import ExportedEpisode, ExportedMemory
from mnemosyned.domain.instants import in_zone
from mnemosyned.domain.memory import Detail, DetailKind
from mnemosyned.domain.secrets.masking import mask_secrets
from mnemosyned.verbs.streams.exchange import line_kind, parse_record

WAITING_BYTES_MAX = 4 << 20
"""Bytes of memories that wait to be written to their days."""
DAY_LEVEL = 1
_MARKUP = ("#", "---", "```", "~~~")
"""Beginnings of lines that would end a section of ours."""


class Days:
    """The memories of an export by day; on disk until they are written, each day at a time."""

    def __init__(self, *, reveal: bool) -> None:
        """Mask secrets, unless they are to be revealed."""
        self._reveal = reveal
        self._folder = tempfile.TemporaryDirectory(prefix="mnem-export-")
        self._waiting: dict[str, list[bytes]] = defaultdict(list)
        self._waiting_bytes = 0
        self._summaries: dict[str, str] = {}
        self.count = 0
        """How many memories there are."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._folder.cleanup()

    def collect(self, lines: Iterable[bytes]) -> None:
        """Sort the lines of an export by day."""
        for line in lines:
            kind = line_kind(line)
            if kind.record not in ("memory", "episode"):
                continue
            record = parse_record(line)
            if isinstance(record, ExportedMemory) and record.content:
                self._add(_day_of(record.created_at), line)
            elif isinstance(record, ExportedEpisode) and record.level == DAY_LEVEL:
                day = _day_of(record.period_from or record.covers_from)
                self._summaries[day] = self._shown(record.content)
        self._flush()

    def texts(self) -> Iterator[str]:
        """Yield the text of each day, the earliest first."""
        for day in self._days():
            yield self._text(day)

    def write(self, folder: Path, *, force: bool) -> int:
        """Write a file for each day; the number of files.

        Raises `InvalidRequest` before anything is written where one exists, unless forced.
        """
        if folder.exists() and not folder.is_dir():
            raise InvalidRequest(f"{folder} is not a folder", field="file")
        taken = [day for day in self._days() if (folder / f"{day}.md").exists()]
        if taken and not force:
            raise InvalidRequest(
                f"{folder / taken[0]}.md exists; --force replaces such files",
                field="file",
            )
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        for day in self._days():
            with whole_file(folder / f"{day}.md") as file:
                file.write(self._text(day).encode())
        return len(self._days())

    def _days(self) -> list[str]:
        days = {path.name for path in Path(self._folder.name).iterdir()}
        return sorted(days | self._summaries.keys())

    def _add(self, day: str, line: bytes) -> None:
        self.count += 1
        self._waiting[day].append(line)
        self._waiting_bytes += len(line)
        if self._waiting_bytes > WAITING_BYTES_MAX:
            self._flush()

    def _flush(self) -> None:
        for day, lines in self._waiting.items():
            with Path(self._folder.name, day).open("ab") as file:
                file.writelines(lines)
        self._waiting.clear()
        self._waiting_bytes = 0

    def _text(self, day: str) -> str:
        memories = sorted(self._memories(day), key=lambda memory: memory.created_at)
        sessions = sorted({memory.session for memory in memories})
        head = (
            f"---\ndate: {day}\nmemories: {len(memories)}\n"
            f"sessions: {msgspec.json.encode(sessions).decode()}\n---\n\n# {day}\n"
        )
        summary = (
            f"\n{_quoted(self._summaries[day])}\n" if day in self._summaries else ""
        )
        return head + summary + "".join(map(self._section, memories)) + "\n"

    def _memories(self, day: str) -> list[ExportedMemory]:
        path = Path(self._folder.name, day)
        if not path.exists():
            return []
        with path.open("rb") as file:
            records = map(parse_record, file)
            return [each for each in records if isinstance(each, ExportedMemory)]

    def _section(self, memory: ExportedMemory) -> str:
        """Return a memory under a heading of its time, session, source and role."""
        time = f"{in_zone(memory.created_at, None):%H:%M}"
        about = (memory.session, memory.source or "", memory.role)
        heading = " · ".join(
            [time, *(" ".join(name.split()) for name in about if name)]
        )
        known = [
            Detail(DetailKind(kind), value, sensitive)
            for kind, value, sensitive in memory.details
            if sensitive
        ]
        return f"\n## {heading}\n\n{_protected(self._shown(memory.content, known))}\n"

    def _shown(self, text: str, known: Iterable[Detail] = ()) -> str:
        return text if self._reveal else mask_secrets(text, known)


def _day_of(moment: datetime) -> str:
    """Return the day of an instant here."""
    return in_zone(moment, None).date().isoformat()


def _protected(text: str) -> str:
    """Return a text whose lines cannot be taken for our headings."""
    lines = text.rstrip().splitlines()
    return "\n".join(
        f"\\{line}" if line.startswith(_MARKUP) else line for line in lines
    )


def _quoted(text: str) -> str:
    return "\n".join(f"> {line}".rstrip() for line in text.rstrip().splitlines())
