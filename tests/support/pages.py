"""The pages of the documentation: their links, tables and runnable blocks."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

PROJECT = Path(__file__).parents[2]
README = PROJECT / "README.md"
DOCS = PROJECT / "docs"
PAGES = (README, PROJECT / "CONTRIBUTING.md", *sorted(DOCS.glob("*.md")))

_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#+ +(.+)$", re.MULTILINE)
_ID = re.compile(r"\b[0-9A-HJKMNP-TV-Z]{26}\b")
_CHANGING = (
    (_ID, "ID"),
    (re.compile(r"\b\d{4}-\d\d-\d\d(?:[ T]\d\d:\d\d(?::\d\d\S*)?)?"), "TIME"),
    (re.compile(r"\b\d\d:\d\d\b(?!;)"), "HOUR"),
    (re.compile(r"\b\d+\.\d+ (?=s\b|MB\b)"), "SIZE "),
    (re.compile(r"-{3,}"), "---"),
    (re.compile(r" {2,}"), "  "),
)
"""Ids, times, durations and sizes differ from run to run; so do the widths of columns."""


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block: its language, its text, and the output that a page shows below it."""

    language: str
    text: str
    output: str | None = None


@dataclass(frozen=True, slots=True)
class Step:
    """A command of a `console` block and the output below it."""

    command: str
    output: str


def blocks(page: Path) -> list[Block]:
    """The fenced blocks of a page; a `text` block is the output of the block before it."""
    found: list[Block] = []
    for language, text in _FENCE.findall(page.read_text("utf-8")):
        if language == "text" and found:
            found[-1] = Block(found[-1].language, found[-1].text, text)
        else:
            found.append(Block(language, text))
    return found


def steps(block: Block) -> list[Step]:
    r"""The commands of a `console` block, each with its output. `\\` continues a command."""
    made: list[Step] = []
    for part in re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]:
        lines = part.splitlines()
        length = 1 + next(
            number for number, line in enumerate(lines) if not line.endswith("\\")
        )
        made.append(Step("\n".join(lines[:length]), "\n".join(lines[length:])))
    return made


def links(page: Path) -> Iterator[tuple[str, str]]:
    """The file and the anchor of each link that stays within the project."""
    prose = _FENCE.sub("", page.read_text("utf-8"))
    for target in _LINK.findall(prose):
        if "://" not in target:
            file, _, anchor = target.partition("#")
            yield file, anchor


def anchors(page: Path) -> set[str]:
    """The anchors that GitHub gives to the headings of a page."""
    prose = _FENCE.sub("", page.read_text("utf-8"))
    titles = (
        re.sub(r"[^\w\- ]", "", title.lower()) for title in _HEADING.findall(prose)
    )
    return {title.strip().replace(" ", "-") for title in titles}


def ids(text: str) -> list[str]:
    """The generated ids in a text, in their order."""
    return _ID.findall(text)


def normalized(output: str) -> list[str]:
    """The lines of an output without what changes from run to run."""
    for shape, name in _CHANGING:
        output = shape.sub(name, output)
    return [line.rstrip() for line in output.strip("\n").splitlines()]


def matches(shown: str, printed: str) -> bool:
    """Whether a page shows what was printed; a line `…` on the page stands for any number of lines."""
    pattern = ""
    for line in normalized(shown):
        if line == "…":
            pattern += r"(?:[^\n]*\n)*"
        else:
            pattern += re.escape(line).replace("…", "[^\\n]*") + "\n"
    lines = "".join(f"{line}\n" for line in normalized(printed))
    return re.fullmatch(pattern, lines) is not None
