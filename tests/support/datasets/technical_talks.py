"""Long technical talks of a user with an assistant, and questions about them, from text files."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

FOLDER = Path(__file__).parent / "technical_talks"
NOTHING_KNOWN = "nothing known"
KINDS = (
    "single fact",
    "update",
    "contradiction",
    "order of events",
    "several sessions",
    "time span",
    "preference",
    "instruction",
    "summary",
    NOTHING_KNOWN,
)
QUESTIONS_LINE = "?? questions"
ROLE_LINES = {"> user": "user", "> assistant": "assistant"}
SITTING_LINE = re.compile(r"== (\d{4}-\d\d-\d\d \d\d:\d\d)")
QUESTION_LINE = re.compile(
    r"\[(?P<kind>[^]]+)\] (?P<text>.+\S) ->(?P<evidence>[ \d,]*)"
)
# Minutes from a turn to the next one, in turn.
PAUSES = (2, 1, 4, 2, 3, 1, 3)


class TalkFileError(ValueError):
    """A line of a talk's file that does not have the form of README.txt."""


@dataclass(frozen=True, slots=True)
class Turn:
    """A message; `sitting` counts from 1."""

    role: str
    said_at: datetime
    text: str
    sitting: int


@dataclass(frozen=True, slots=True)
class Question:
    """A question and the numbers of the turns that answer it, counted from 1."""

    kind: str
    text: str
    evidence: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Talk:
    """A conversation over several sittings."""

    name: str
    title: str
    user: str
    turns: tuple[Turn, ...]
    questions: tuple[Question, ...]

    def turn(self, number: int) -> Turn:
        return self.turns[number - 1]


@dataclass(slots=True)
class _Draft:
    """Turns read up to a line of a file."""

    turns: list[Turn] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    role: str = ""
    next_at: datetime | None = None
    sitting: int = 0
    line_number: int = 0

    def next_line(self, lines: Iterator[str]) -> str:
        self.line_number += 1
        return next(lines, "")

    def begin_sitting(self, began_at: datetime) -> None:
        self.end_turn()
        if self.turns and began_at <= self.turns[-1].said_at:
            raise TalkFileError("a sitting begins before the one above it ends")
        self.next_at = began_at
        self.sitting += 1

    def begin_turn(self, role: str) -> None:
        self.end_turn()
        if self.next_at is None:
            raise TalkFileError("a turn comes before the first sitting")
        if role == (self.turns[-1].role if self.turns else "assistant"):
            raise TalkFileError(f"two turns of the {role} follow each other")
        self.role = role

    def end_turn(self) -> None:
        text = "\n".join(self.lines).strip()
        self.lines.clear()
        if self.role and not text:
            raise TalkFileError(f"the turn of the {self.role} above has no text")
        if text and not self.role:
            raise TalkFileError("text comes before the first turn of a sitting")
        if self.role and self.next_at is not None:
            self.turns.append(Turn(self.role, self.next_at, text, self.sitting))
            pause = PAUSES[len(self.turns) % len(PAUSES)]
            self.next_at += timedelta(minutes=pause)
        self.role = ""


def load_talks(
    folder: Path = FOLDER, kinds: Collection[str] = KINDS
) -> tuple[Talk, ...]:
    """All talks of a folder, by name, with questions of these kinds."""
    return tuple(
        parse_talk(path.stem, path.read_text(encoding="utf-8"), kinds)
        for path in sorted(folder.glob("[0-9][0-9]_*.txt"))
    )


def parse_talk(name: str, text: str, kinds: Collection[str] = KINDS) -> Talk:
    """The talk of a file's text; an error names the file and the line."""
    lines = iter(text.splitlines())
    draft = _Draft()
    questions: list[Question] = []
    try:
        title = _header(draft.next_line(lines), "# talk: ")
        user = _header(draft.next_line(lines), "# user: ")
        for line in lines:
            draft.line_number += 1
            if line == QUESTIONS_LINE:
                break
            _read_line(draft, line)
        draft.end_turn()
        for line in lines:
            draft.line_number += 1
            questions.extend(_questions(line, len(draft.turns), kinds))
    except TalkFileError as error:
        raise TalkFileError(f"{name}, line {draft.line_number}: {error}") from None
    return Talk(name, title, user, tuple(draft.turns), tuple(questions))


def _header(line: str, prefix: str) -> str:
    if not line.startswith(prefix):
        raise TalkFileError(f"expected {prefix.strip()!r} and its value")
    return line.removeprefix(prefix).strip()


def _read_line(draft: _Draft, line: str) -> None:
    sitting = SITTING_LINE.fullmatch(line)
    if sitting:
        draft.begin_sitting(_moment(sitting[1]))
    elif line in ROLE_LINES:
        draft.begin_turn(ROLE_LINES[line])
    else:
        draft.lines.append(line)


def _moment(words: str) -> datetime:
    try:
        return datetime.strptime(words, "%Y-%m-%d %H:%M").replace(tzinfo=UTC)
    except ValueError:
        raise TalkFileError(f"{words} is no date and time") from None


def _questions(line: str, turns: int, kinds: Collection[str]) -> Iterator[Question]:
    """The question of a line, or nothing if the line is blank."""
    if not line.strip():
        return
    parts = QUESTION_LINE.fullmatch(line.rstrip())
    if parts is None:
        raise TalkFileError("expected [kind] question -> numbers")
    kind = parts["kind"]
    if kind not in kinds:
        raise TalkFileError(f"{kind!r} is none of the kinds: {', '.join(kinds)}")
    evidence = tuple(int(number) for number in re.findall(r"\d+", parts["evidence"]))
    if bool(evidence) == (kind == NOTHING_KNOWN):
        raise TalkFileError(f"{len(evidence)} turns of evidence for {kind!r}")
    outside = [number for number in evidence if not 1 <= number <= turns]
    if outside:
        raise TalkFileError(f"no turn {outside[0]}; the talk has {turns}")
    yield Question(kind, parts["text"], evidence)
