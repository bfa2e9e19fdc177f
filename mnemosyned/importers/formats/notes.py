"""Notes in Markdown: front matter, sections, and the folders that contain them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec
import yaml

from mnemosyned.importers import importer, projects, transcripts
from mnemosyned.importers.reading import decode_text, is_binary, open_text
from mnemosyned.paths import printable_path
from mnemosyned.verbs.memories import Remember

_BLOCK = re.compile(
    r"\A---[ \t]*\n(.*?)^(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.DOTALL | re.MULTILINE
)


@dataclass(frozen=True, slots=True)
class ParsedNote:
    """A note's fields and its text."""

    body: str
    fields: Mapping[str, Any] = field(default_factory=dict)
    """Front matter by names in lower case."""
    front_matter: str = ""
    problem: str = ""
    """Reason why the front matter cannot be read; the body then begins with it."""


class _FrontMatterLoader(yaml.SafeLoader):
    """A loader that refuses aliases, as a few lines with them make gigabytes.

    A date that does not exist, such as 2024-02-30, is a text.
    """

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        """Compose the next YAML node; raise `ConstructorError` for an alias."""
        if self.check_event(yaml.AliasEvent):
            event = self.peek_event()  # type: ignore[no-untyped-call]
            raise yaml.constructor.ConstructorError(
                None, None, "aliases are not read", event.start_mark
            )
        return super().compose_node(parent, index)

    def construct_time_or_text(self, node: yaml.ScalarNode) -> date | str:
        """Return the date or time of a YAML node, or its text if no such day exists."""
        try:
            return self.construct_yaml_timestamp(node)
        except ValueError:
            return str(node.value)


_FrontMatterLoader.add_constructor(
    "tag:yaml.org,2002:timestamp", _FrontMatterLoader.construct_time_or_text
)


def split_note(text: str) -> ParsedNote:
    """Return a note's front matter as fields, and the body; for invalid YAML the whole text and the problem."""
    block = _BLOCK.match(text[: 64 * 1024])
    if block is None:
        return ParsedNote(text)
    try:
        fields = yaml.load(block[1], Loader=_FrontMatterLoader)  # noqa: S506 a SafeLoader
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        problem = getattr(error, "problem", None) or str(error)
        return ParsedNote(text, problem=f"the front matter is not YAML: {problem}")
    if not isinstance(fields, dict):
        return ParsedNote(text[block.end() :])
    named = {str(key).strip().lower(): value for key, value in fields.items()}
    return ParsedNote(text[block.end() :], named, block[1])


SECTION_CHARS_MAX = 4_000
"""A longer note is split, and so is a longer section."""
_HEADING = re.compile(r"(#{1,6})[ \t]+(\S.*)")
_FENCE = re.compile(r"^[ \t]{0,3}(```|~~~)")


@dataclass(frozen=True, slots=True)
class NoteSection:
    """A part of a note, with the headings above it."""

    text: str
    headings: tuple[str, ...] = ()
    line: int = 1
    """The number of its first line in the body."""


def sections_of(body: str) -> list[NoteSection]:
    """Return a note's body in sections; a long one is divided at its headings, then at blank lines."""
    if len(body) <= SECTION_CHARS_MAX:
        return [NoteSection(body.strip())] if body.strip() else []
    parts: list[NoteSection] = []
    for section in _split_at_headings(body):
        last = parts[-1] if parts else section
        is_near = section.headings[: len(last.headings) - 1] == last.headings[:-1]
        has_room = len(last.text) + len(section.text) < SECTION_CHARS_MAX
        if parts and is_near and has_room:
            text = f"{last.text}\n\n{section.text}"
            parts[-1] = NoteSection(text, last.headings, last.line)
        else:
            parts += _cut_section(section)
    return parts


def heading_of(line: str) -> tuple[int, str] | None:
    """Return the level, from 1, and the title of a Markdown heading; None for any other line."""
    match = _HEADING.match(line)
    if match is None:
        return None
    title = match[2].rstrip()
    return len(match[1]), title.rstrip("#").rstrip() or title


def _split_at_headings(body: str) -> Iterator[NoteSection]:
    """Yield a section from each Markdown heading to the next; lines in code are no headings."""
    path: dict[int, str] = {}
    lines: list[str] = []
    begin, fence = 1, ""
    for number, line in enumerate(body.split("\n"), 1):
        mark = _FENCE.match(line)
        if mark:
            fence = "" if fence == mark[1] else fence or mark[1]
        heading = None if fence else heading_of(line)
        if heading:
            yield from _make_section(lines, path, begin)
            level, title = heading
            path = {each: name for each, name in path.items() if each < level}
            path[level] = title
            lines, begin = [], number
        lines.append(line)
    yield from _make_section(lines, path, begin)


def _make_section(
    lines: list[str], path: dict[int, str], begin: int
) -> Iterator[NoteSection]:
    """Yield `lines`, unless blank, as one section below the headings `path`; `begin` is the first number."""
    text = "\n".join(lines).strip()
    if text:
        yield NoteSection(text, tuple(path[level] for level in sorted(path)), begin)


def _cut_section(section: NoteSection) -> Iterator[NoteSection]:
    """Yield a section in pieces, cut at blank lines if possible, or at line breaks or blanks."""
    text, line = section.text, section.line
    while len(text) > SECTION_CHARS_MAX:
        end = SECTION_CHARS_MAX
        for mark in ("\n\n", "\n", " "):
            place = text.rfind(mark, SECTION_CHARS_MAX // 2, SECTION_CHARS_MAX)
            if place > 0:
                end = place + len(mark)
                break
        piece, text = text[:end], text[end:]
        yield NoteSection(piece.strip(), section.headings, line)
        line += piece.count("\n")
    if text.strip():
        yield NoteSection(text.strip(), section.headings, line)


NOTE_SUFFIXES = (".md", ".markdown", ".mdown")
NOTE_BYTES_MAX = 16 << 20
TRANSCRIPTS_READ_MAX = 20
"""Maximum transcripts that are searched for a project's directory."""
_DATE_FIELDS = (
    "date", "created", "created_at", "date created", "creation date", "created-at", "datetime",
    "updated", "modified",
)  # fmt: skip
_EXPORTED_DAY = re.compile(r"(?m)^(?=---\ndate: [\d-]+\nmemories: \d)")
"""Beginning of each day in a file that `mnem export` wrote with all days."""
_FIELD = re.compile(r"(?m)^([^\s#:-][^:\n]*):(.*(?:\n(?:[ \t-].*|(?=\n)))*)")
"""A field of the front matter, with the lines that continue it."""
_EMPTY_VALUE = re.compile(r"""(?i)\s*(?:\[\]|\{\}|""|''|null|~|true|false)?\s*""")
_TITLE_WORD = re.compile(r"[^\W_]+")
_DATE_IN_NAME = re.compile(r"(?<!\d)(\d{4})[-_.]?(\d{2})[-_.]?(\d{2})(?!\d)")
_INLINE_TAG = re.compile(r"(?<![\w#/&])#([^\W\d_][\w/-]*)")


class Notes(importer.ImportFormat):
    """A note in Markdown."""

    name = "notes"
    needs_file = True
    read_fields = frozenset(
        (*_DATE_FIELDS, *"title tag tags permalink type cssclass cssclasses memories sessions".split())
    )  # fmt: skip
    """Names of fields that are read, are about how a note looks, or are counts of `mnem export`."""

    def recognizes(self, source: importer.ImportSource) -> bool:
        """Return True for a file whose name has a suffix of Markdown, such as ".md"."""
        is_note = source.path.name.lower().endswith(NOTE_SUFFIXES)
        return is_note and not source.is_folder

    def read_records(
        self, source: importer.ImportSource, position: str
    ) -> importer.Records:
        """Yield the sections of a note as memories; nothing if `position` is not empty.

        Raises `SourceRefused` for a file that is too large or not text.
        """
        size = source.size()
        if position:
            return
        if size > NOTE_BYTES_MAX:
            raise importer.SourceRefused(f"it exceeds {NOTE_BYTES_MAX:,} bytes")
        if is_binary(source.head):
            raise importer.SourceRefused("it is not text")
        with open_text(source) as opened:
            text = decode_text(opened.read()).replace("\r\n", "\n")
        days = list(filter(None, _EXPORTED_DAY.split(text)))
        for day in days:
            note = split_note(day)
            if note.problem:
                yield importer.BadRecord(source.name, note.problem)
            further = self._find_further_fields(note.front_matter)
            sections = sections_of(note.body) or [NoteSection("")][: bool(further)]
            whole = self.make_template(source, note)
            for number, section in enumerate(sections, 1):
                text = _add_title_and_headings(whole.metadata["title"], section)
                if number == 1 and further:
                    text = f"{text.rstrip()}\n\n{further}"
                memory = msgspec.structs.replace(
                    whole,
                    content=text,
                    id=importer.stable_id(self.name, whole.session, text),
                )
                is_last = number == len(sections) and day is days[-1]
                position, place = "end" * is_last, f"{source.name}:{section.line}"
                yield importer.ImportItem(
                    importer.sanitize(memory), place, position, size
                )
                size = 0

    def _find_further_fields(self, front_matter: str) -> str:
        """Return the lines of front matter with fields that no memory has, such as a telephone number."""
        kept: list[str] = []
        for found in _FIELD.finditer(front_matter):
            name = found[1].strip("\"' ").lower()
            if name not in self.read_fields and not _EMPTY_VALUE.fullmatch(found[2]):
                kept.append(found[0].rstrip())
        return "\n".join(kept)[:SECTION_CHARS_MAX]

    def make_template(
        self, source: importer.ImportSource, note: ParsedNote
    ) -> Remember:
        """Return a memory with the note's title, session, time and tags, but no text or id."""
        title = importer.text_in(note.fields.get("title")).strip()
        tags = [
            *importer.tags_in(note.fields.get("tags")),
            *importer.tags_in(note.fields.get("tag")),
        ]
        folders = source.path.resolve().parents[:64]
        vaults = (folder for folder in folders if (folder / ".obsidian").is_dir())
        named = _DATE_IN_NAME.search(source.path.stem)
        in_name = "-".join(named.groups()) if named else None
        modified = datetime.fromtimestamp(source.path.stat().st_mtime, tz=UTC)
        times = (*map(note.fields.get, _DATE_FIELDS), in_name, modified)
        return Remember(
            "",
            session=f"{self.name}:{printable_path(next(vaults, folders[0]).name)}",
            source=self.name,
            created_at=importer.first_past(times) or datetime.now(UTC),
            metadata={
                "title": title or source.text_path.stem,
                "file": str(source.text_path.absolute()),
                "permalink": importer.text_in(note.fields.get("permalink")),
                "type": importer.text_in(note.fields.get("type")),
            },
            tags=[*tags, *_INLINE_TAG.findall(note.body[:NOTE_BYTES_MAX])],
        )


_CLAUDE_MEMORY = re.compile(r"(.*/projects/-[^/]*)/memory/.+")
"""A file in the folder in which Claude Code keeps notes of a project, and the folder above."""
_INDEX_LINE = re.compile(r"\s*(?:#.*|[-*]\s+\[[^\]]*\]\([^)]*\).*)?")
"""A blank line, a heading or a link with a remark."""


class ClaudeMemory(Notes):
    """A note that Claude Code keeps of a project, in `~/.claude/projects/*/memory`."""

    name = "claude-memory"
    read_fields = Notes.read_fields | {"name", "description", "metadata"}

    def recognizes(self, source: importer.ImportSource) -> bool:
        """Return True for a Markdown file in the `memory` folder of a Claude Code project."""
        is_note = super().recognizes(source)
        return is_note and _find_project_folder(source.path) is not None

    def read_records(
        self, source: importer.ImportSource, position: str
    ) -> importer.Records:
        """Yield the sections of a note; nothing for an index that only lists other notes."""
        if all(map(_INDEX_LINE.fullmatch, decode_text(source.head).splitlines())):
            return
        yield from super().read_records(source, position)

    def make_template(
        self, source: importer.ImportSource, note: ParsedNote
    ) -> Remember:
        """Return a memory with the fields of a note, in the session of its project."""
        whole = super().make_template(source, note)
        folder = _find_project_folder(source.path) or source.path.parent
        directory = _find_directory(folder)
        further = note.fields.get("metadata")
        fields = {**note.fields, **(further if isinstance(further, dict) else {})}
        about = {
            name: importer.text_in(fields.get(name)) for name in ("description", "type")
        }
        return msgspec.structs.replace(
            whole,
            session=f"{self.name}:{printable_path(folder.name)}",
            role="assistant",
            metadata={
                **whole.metadata,
                **about,
                "title": importer.text_in(fields.get("name"))
                or whole.metadata["title"],
                "project": projects.project_of(directory).key,
                "cwd": directory,
            },
            tags=[*whole.tags, about["type"]],
        )


def _find_project_folder(path: Path) -> Path | None:
    """Return Claude Code's folder for the project of a note; None for other notes."""
    match = _CLAUDE_MEMORY.fullmatch(str(path.absolute()))
    return Path(match[1]) if match else None


def _find_directory(folder: Path) -> str:
    """Return the working directory that a transcript in a folder names; empty without one."""
    for path in islice(sorted(folder.glob("*.jsonl")), TRANSCRIPTS_READ_MAX):
        source = importer.ImportSource.of_path(path)
        identity = transcripts.identify_transcript(printable_path(path), source.head)
        if identity and identity.directory:
            return identity.directory
    return ""


def _add_title_and_headings(title: str, section: NoteSection) -> str:
    """Return a section's text below its note's title and the headings above, " › " between."""
    first = heading_of(section.text.partition("\n")[0])
    own = first[1] if first else ""
    above = [title, *section.headings]
    if own:
        above = above[:-1] if section.headings else above
    said = _find_title_words(own)
    path = [
        name
        for name in dict.fromkeys(above)
        if name != own and not (said and _find_title_words(name) == said)
    ]
    return f"{' › '.join(path)}\n\n{section.text}" if path else section.text


def _find_title_words(title: str) -> list[str]:
    """Return the words of a title without a date: the same for "2026-11-18-team_lunch" and "Team lunch"."""
    return _TITLE_WORD.findall(_DATE_IN_NAME.sub(" ", title).casefold())
