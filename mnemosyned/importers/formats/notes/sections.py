"""Long notes parted at their headings, else between paragraphs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

SECTION_CHARS_MAX = 4_000
"""A longer note is parted, as is a longer section."""
_HEADING = re.compile(r"(#{1,6})[ \t]+(\S.*)")
_FENCE = re.compile(r"^[ \t]{0,3}(```|~~~)")


@dataclass(frozen=True, slots=True)
class Section:
    """A part of a note, with the headings it stands under."""

    text: str
    headings: tuple[str, ...] = ()
    line: int = 1
    """The line of the body on which it begins."""


def sections_of(body: str) -> list[Section]:
    """Return a short note whole, and the parts of a long one."""
    if len(body) <= SECTION_CHARS_MAX:
        return [Section(body.strip())] if body.strip() else []
    parts: list[Section] = []
    for section in _at_headings(body):
        last = parts[-1] if parts else section
        is_near = section.headings[: len(last.headings) - 1] == last.headings[:-1]
        has_room = len(last.text) + len(section.text) < SECTION_CHARS_MAX
        if parts and is_near and has_room:
            text = f"{last.text}\n\n{section.text}"
            parts[-1] = Section(text, last.headings, last.line)
        else:
            parts += _cut(section)
    return parts


def heading_of(line: str) -> tuple[int, str] | None:
    """Return a heading's level and title; None for another line."""
    match = _HEADING.match(line)
    if match is None:
        return None
    title = match[2].rstrip()
    return len(match[1]), title.rstrip("#").rstrip() or title


def _at_headings(body: str) -> Iterator[Section]:
    """Yield the text from each heading to the next; headings in code do not count."""
    path: dict[int, str] = {}
    lines: list[str] = []
    begin, fence = 1, ""
    for number, line in enumerate(body.split("\n"), 1):
        mark = _FENCE.match(line)
        if mark:
            fence = "" if fence == mark[1] else fence or mark[1]
        heading = None if fence else heading_of(line)
        if heading:
            yield from _section(lines, path, begin)
            level, title = heading
            path = {each: name for each, name in path.items() if each < level}
            path[level] = title
            lines, begin = [], number
        lines.append(line)
    yield from _section(lines, path, begin)


def _section(lines: list[str], path: dict[int, str], begin: int) -> Iterator[Section]:
    text = "\n".join(lines).strip()
    if text:
        yield Section(text, tuple(path[level] for level in sorted(path)), begin)


def _cut(section: Section) -> Iterator[Section]:
    """Yield a section, or pieces of it that end between paragraphs, lines or words."""
    text, line = section.text, section.line
    while len(text) > SECTION_CHARS_MAX:
        end = _cut_place(text)
        piece, text = text[:end], text[end:]
        yield Section(piece.strip(), section.headings, line)
        line += piece.count("\n")
    if text.strip():
        yield Section(text.strip(), section.headings, line)


def _cut_place(text: str) -> int:
    for mark in ("\n\n", "\n", " "):
        place = text.rfind(mark, SECTION_CHARS_MAX // 2, SECTION_CHARS_MAX)
        if place > 0:
            return place + len(mark)
    return SECTION_CHARS_MAX
