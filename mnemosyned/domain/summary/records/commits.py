"""Commits: git logs, single commits and what hooks hand on, grouped by what they touch."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime, tzinfo

from mnemosyned.domain.memory import MemoryRecord
from mnemosyned.domain.summary.records.lines import Reading, RecordLine, Rule
from mnemosyned.domain.summary.records.moments import (
    localized,
    parse_moment,
    show_moment,
)
from mnemosyned.domain.summary.records.wording import (
    collapse,
    counted,
    index_terms,
    is_prose,
    lines_of,
    listed,
    most_common,
    shorten,
    without_hashes,
)

SUBJECT_CHARS_MAX = 120
SUBJECTS_PER_LINE = 4
COMMITS_PER_MEMORY_MAX = 2_000
BODY_CHARS_MAX = 400
COMMON_WORDS_MAX = 40
WORTH = 0.45
BREAKING_WORTH = 0.65

_HASH = r"[0-9a-f]{7,40}"
_OPENING = re.compile(
    rf"\s*(?:commit |Commit |New commit |(?:\$ )?git |Merge |\[[\w./-]+ |[*|]|{_HASH}\b)"
)
_HASH_AT_END = re.compile(rf".{{0,400}}[( ]{_HASH}\)\s*(?:\n|$)")
_HEAD = re.compile(rf"commit {_HASH}\b(?: \([^)]*\))?")
_FIELD = re.compile(
    r"(Author|AuthorDate|Date|Commit|CommitDate|Committer|Merge):\s*(.*)"
)
_GRAPH = re.compile(r"^[*|\\/ ]*\*[|\\/ ]* ")
_ONE_LINE = re.compile(
    rf"(?P<hash>{_HASH}) (?:\([^)]*\) )?(?P<subject>\S.*)|"
    rf"(?P<subject_first>\S.*) \((?:commit )?(?P<hash_last>{_HASH})\)"
)
_COMMITTED = re.compile(
    rf"\[(?P<branch>[\w./-]+)(?: \(root-commit\))? (?P<hash>{_HASH})\] (?P<subject>\S.*)"
)
_STAT = re.compile(
    r"\s*\d+ files? changed(?:, \d+ \w+\([+]\))?(?:, \d+ \w+\(-\))?"
    r"|\s*\d+ files? changed[\w, ]*"
    r"|\s(?:create|delete|rename|mode change) .*|\s*\S+\s+\|\s+(?:\d+ ?[+-]*|Bin.*)"
    r"|[AMDRCT]\d*\t\S.*|\d+\t\d+\t\S+| Date: .*| Author: .*"
)
_MESSAGE_OPTION = re.compile(
    r"git commit (?:-\w+ )*-\w*m (?P<quote>[\"'])(?P<subject>.+?)(?P=quote)"
    r"(?:: (?P<stat>\d+ files? changed[\w, ]*))?\.?"
)
_HANDED_ON = re.compile(
    rf"(?:New )?[Cc]ommit (?P<hash>{_HASH})(?: by (?P<author>[\w .-]{{1,40}}?))?"
    r"(?: (?:on|to|in) (?P<branch>[\w./-]+))?: (?P<subject>\S.*)"
)
_STAMPED = re.compile(
    rf"(?P<hash>{_HASH})[ \t|]+(?P<when>\d{{4}}-\d\d-\d\d(?:[ T]\d\d:\d\d(?::\d\d)?(?: ?[+-]\d{{4}})?)?)"
    r"[ \t|]+(?:(?P<author>[^|\t]{1,40}?)(?:[\t|] ?| \| |: ))?(?P<subject>\S.*)"
)
_PULL_REQUEST = re.compile(
    r"Merge (?:pull request|branch|remote-tracking branch|tag) \S.*"
)
_CONVENTIONAL = re.compile(
    r"(?P<type>[a-z]{2,10})(?:\((?P<scope>[^)]{1,40})\))?(?P<breaking>!)?: (?P<what>\S.*)"
)
_COMPONENT = re.compile(
    r"(?:\[(?P<bracket>[\w ./-]{2,30})\]:? |(?P<plain>[\w./-]{2,40}): )(?P<what>\S.*)"
)
_PATH = re.compile(
    r"^\s*(?P<stat>[\w.@/-]+)\s+\|\s+\d|^[AMDT]\t(?P<status>\S+)", re.MULTILINE
)
_TRAILER = re.compile(
    r"(?:Signed-off-by|Co-authored-by|Reviewed-by|Change-Id|git-svn-id|Cc): .*"
)
_TYPES = {
    "feat": "features", "fix": "fixes", "docs": "documentation", "test": "tests",
    "tests": "tests", "refactor": "refactoring", "perf": "performance", "style": "style",
    "build": "build", "ci": "CI", "chore": "chores", "revert": "reverts",
}  # fmt: skip
_WORD = re.compile(r"[^\W\d_][\w-]{3,}")


@dataclass(frozen=True, slots=True)
class Commit:
    """One commit, without its hash."""

    subject: str
    author: str = ""
    when: datetime | date | None = None
    body: str = ""
    paths: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Placed:
    """A commit with its memory, the part it touches and its day."""

    position: int
    commit: Commit
    component: str
    subject: str
    day: date


def read_commits(memory: MemoryRecord) -> tuple[Commit, ...] | None:
    """Return the commits that the whole memory is made of."""
    content = memory.content
    if not _OPENING.match(content) and not _HASH_AT_END.match(content):
        return None
    lines = lines_of(content.strip())
    if lines and lines[0].startswith(("$ git log", "$ git show", "$ git commit")):
        lines = lines[1:]
    if not lines:
        return None
    if _HEAD.fullmatch(lines[0]):
        return _read_log("\n".join(lines))
    readers: tuple[Callable[[Sequence[str]], tuple[Commit, ...] | None], ...] = (
        _read_one_lines,
        _read_committed,
    )
    for reader in readers:
        if commits := reader(lines):
            return commits
    return None


def _read_log(text: str) -> tuple[Commit, ...] | None:
    """Read what `git log` prints: a head, fields, and the message indented."""
    commits: list[Commit] = []
    fields: dict[str, str] = {}
    message: list[str] = []
    paths: list[str] = []

    def finish() -> None:
        if message:
            commits.append(_finished(fields, message, paths))
        fields.clear()
        message.clear()
        paths.clear()

    for line in text.splitlines()[: COMMITS_PER_MEMORY_MAX * 8]:
        if _HEAD.fullmatch(line):
            finish()
        elif match := _FIELD.fullmatch(line):
            fields[match[1]] = match[2]
        elif match := _PATH.match(line):
            paths.append(match["stat"] or match["status"])
        elif line.startswith("    ") or (not message and fields):
            message.append(line.strip())
        elif not _STAT.fullmatch(line):
            return None
    finish()
    return tuple(commits) or None


def _finished(
    fields: dict[str, str], message: Sequence[str], paths: Sequence[str]
) -> Commit:
    author = fields.get("Author", "").partition("<")[0].strip()
    when = fields.get("Date") or fields.get("AuthorDate") or ""
    body = [line for line in message[1:] if not _TRAILER.fullmatch(line)]
    return Commit(
        subject=message[0],
        author=author,
        when=parse_moment(when),
        body=" ".join(body)[:BODY_CHARS_MAX],
        paths=tuple(paths),
    )


def _read_one_lines(lines: Sequence[str]) -> tuple[Commit, ...] | None:
    """Read one commit a line, as `git log --oneline` and hooks write them."""
    commits: list[Commit] = []
    paths: list[str] = []
    for line in lines[:COMMITS_PER_MEMORY_MAX]:
        bare = _GRAPH.sub("", line)
        if commits and (_STAT.fullmatch(line) or not bare.strip("*|\\/ ")):
            paths += [m["stat"] or m["status"] for m in _PATH.finditer(line)]
        elif commit := _read_one_line(bare.strip()):
            commits.append(commit)
        else:
            return _with_body(commits, lines)
    if len(commits) == 1 and paths:
        only = commits[0]
        return (Commit(only.subject, only.author, only.when, paths=tuple(paths)),)
    return tuple(commits) or None


def _with_body(
    commits: Sequence[Commit], lines: Sequence[str]
) -> tuple[Commit, ...] | None:
    """Return a single commit with the message body below it, if that is what the lines are."""
    if len(commits) != 1 or not _read_one_line(lines[0]):
        return None
    indented = all(line.startswith(("  ", "\t")) for line in lines[1:])
    if not indented:
        return None
    only = commits[0]
    body = collapse(" ".join(lines[1:]))[:BODY_CHARS_MAX]
    return (Commit(only.subject, only.author, only.when, body),)


def _read_one_line(line: str) -> Commit | None:
    for form in (_STAMPED, _HANDED_ON, _ONE_LINE):
        match = form.fullmatch(line)
        if not match:
            continue
        parts = match.groupdict()
        hash_ = parts.get("hash") or parts.get("hash_last") or ""
        subject = parts.get("subject") or parts.get("subject_first") or ""
        if _looks_like_commit(hash_, subject):
            when = parse_moment(parts["when"]) if parts.get("when") else None
            return Commit(subject, (parts.get("author") or "").strip(), when)
    return None


def _looks_like_commit(hash_: str, subject: str) -> bool:
    """Tell a hash from a number or a word, and a subject from a sentence of prose."""
    digits = sum(letter.isdigit() for letter in hash_)
    if digits == 0 or (digits == len(hash_) and len(hash_) < 40):
        return _CONVENTIONAL.fullmatch(subject) is not None
    return len(subject) <= 2 * SUBJECT_CHARS_MAX and not (
        subject[0].islower() and subject.endswith(".") and is_prose(subject)
    )


def _read_committed(lines: Sequence[str]) -> tuple[Commit, ...] | None:
    """Read what `git commit` prints, the command itself, or a merge."""
    first = lines[0].strip().removeprefix("$ ")
    if _PULL_REQUEST.fullmatch(first):
        return _read_merge(first, lines[1:])
    match = _MESSAGE_OPTION.fullmatch(first) or _COMMITTED.fullmatch(first)
    if not match:
        return None
    echoed = len(lines) > 1 and _COMMITTED.match(lines[1])
    remaining = lines[2:] if echoed else lines[1:]
    if not all(_STAT.fullmatch(line) for line in remaining):
        return None
    paths = [m["stat"] or m["status"] for m in _PATH.finditer("\n".join(remaining))]
    return (Commit(match["subject"], paths=tuple(paths)),)


def _read_merge(first: str, titles: Sequence[str]) -> tuple[Commit, ...] | None:
    """Read the head of a merge and the title of the pull request below it."""
    prose = any(title.endswith(".") for title in titles)
    if len(titles) > 1 or prose or len(first) > SUBJECT_CHARS_MAX:
        return None
    return (Commit("; ".join((first, *(title.strip() for title in titles)))),)


def write_commits(
    readings: Sequence[Reading[tuple[Commit, ...]]], zone: tzinfo
) -> Iterator[RecordLine]:
    """Write the commits of each part and day, a few subjects a line."""
    groups: dict[tuple[str, date], list[_Placed]] = {}
    for placed in _place(readings, zone):
        groups.setdefault((placed.component, placed.day), []).append(placed)
    single_day = len({day for _, day in groups}) == 1
    for group in groups.values():
        for start in range(0, len(group), SUBJECTS_PER_LINE):
            chunk = group[start : start + SUBJECTS_PER_LINE]
            yield _line(chunk, zone, dated=not single_day or _is_dated(chunk))


def _is_dated(chunk: Sequence[_Placed]) -> bool:
    return chunk[0].commit.when is not None


def _place(
    readings: Sequence[Reading[tuple[Commit, ...]]], zone: tzinfo
) -> list[_Placed]:
    """Find the part that each commit touches; words in common serve where nothing says it."""
    common = _common_words(
        commit.subject for reading in readings for commit in reading.value
    )
    placed: list[_Placed] = []
    for reading in readings:
        for commit in reading.value:
            component, subject = _component(commit, common)
            when = commit.when or reading.memory.created_at
            day = _local_day(when, zone)
            placed.append(_Placed(reading.position, commit, component, subject, day))
    return placed


def _local_day(when: datetime | date, zone: tzinfo) -> date:
    if not isinstance(when, datetime):
        return when
    return (localized(when, zone) if when.tzinfo else when).date()


def _common_words(subjects: Iterator[str]) -> dict[str, int]:
    """Return words that at least two subjects share, with their rank."""
    words = most_common(
        word
        for subject in subjects
        for word in dict.fromkeys(_WORD.findall(subject.lower())[1:])
    )
    shared = [word for word, count in words if count > 1 and word not in _PLAIN_WORDS]
    return {word: rank for rank, word in enumerate(shared[:COMMON_WORDS_MAX])}


def _component(commit: Commit, common: dict[str, int]) -> tuple[str, str]:
    """Return the part a commit touches and its subject without the name of that part."""
    subject = without_hashes(commit.subject)
    if match := _CONVENTIONAL.fullmatch(subject):
        if match["type"] in _TYPES:
            return match["scope"] or f"({_TYPES[match['type']]})", match["what"]
        return match["scope"] or match["type"], match["what"]
    if match := _COMPONENT.fullmatch(subject):
        return match["bracket"] or match["plain"], match["what"]
    if commit.paths:
        return _common_path(commit.paths), subject
    words = [word for word in _WORD.findall(subject.lower())[1:] if word in common]
    return min(words, key=common.__getitem__, default=""), subject


def _common_path(paths: Sequence[str]) -> str:
    """Return the deepest folder that all paths share, or the folder of most of them."""
    if len(paths) == 1:
        return paths[0]
    folders = [path.rpartition("/")[0] for path in paths]
    shared = folders[0].split("/")
    for folder in folders[1:]:
        parts = folder.split("/")
        same = 0
        while same < min(len(shared), len(parts)) and shared[same] == parts[same]:
            same += 1
        shared = shared[:same]
    return "/".join(shared) or most_common(folders)[0][0]


def _line(chunk: Sequence[_Placed], zone: tzinfo, *, dated: bool) -> RecordLine:
    """Write one line of a few commits: how many, to what, by whom, and their subjects."""
    first = chunk[0]
    many = len(chunk) > 1
    head = counted(len(chunk), "commit") if many else "Commit"
    if first.component:
        part = first.component
        head += f" {part}" if part.startswith("(") else f" to {part}"
    authors = list(
        dict.fromkeys(placed.commit.author for placed in chunk if placed.commit.author)
    )
    if authors:
        head += f" by {listed(authors, 3)}"
    if dated:
        head += f" on {show_moment(first.day, zone)}"
    subjects = [
        shorten(placed.subject, SUBJECT_CHARS_MAX).rstrip(".") for placed in chunk
    ]
    text = f"{head}: {'; '.join(dict.fromkeys(subjects))}."
    body = "\n".join(
        f"{placed.subject} {placed.commit.body} {' '.join(placed.commit.paths)}"
        for placed in chunk
    )
    urgent = any(_is_breaking(placed.commit) for placed in chunk)
    return RecordLine(
        text=text.replace("….", "…"),
        index_terms=index_terms(body, text),
        position=first.position,
        worth=BREAKING_WORTH if urgent else WORTH,
        memories=len({placed.position for placed in chunk}),
    )


def _is_breaking(commit: Commit) -> bool:
    match = _CONVENTIONAL.fullmatch(commit.subject)
    breaking = match is not None and match["breaking"] is not None
    return breaking or "BREAKING" in commit.body


_PLAIN_WORDS = frozenset(
    """
    that this with from into when where which their they them then than what while after before
    only also more less have been were does make makes made used uses using same other every each
    between without instead should could would must some such about again both there these those
    """.split()
)
"""Words that name no part of a program."""

COMMITS = Rule("commits", read_commits, write_commits)
