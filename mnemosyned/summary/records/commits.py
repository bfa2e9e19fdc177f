"""Commits: git logs, single commits and reports of hooks, grouped by component and day."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, tzinfo
from itertools import takewhile

from mnemosyned.instants import in_zone
from mnemosyned.memory.values import MemoryRecord
from mnemosyned.summary.records.lines import (
    RecordLine,
    RecordReading,
    RecordRule,
    collapse_blanks,
    enclose,
    end_line,
    find_first_match,
    find_first_reading,
    group_by,
    is_prose,
    join_names,
    make_line,
    parse_moment,
    remove_hashes,
    shorten,
    show_count,
    show_moment,
    split_nonblank_lines,
)
from mnemosyned.text.rule_files import read_rule_file

_WORDS, _NAMES, _PATTERNS, _FORMS = read_rule_file(__file__)


SUBJECT_CHARS_MAX = 120
SUBJECTS_PER_LINE = 4
COMMITS_PER_MEMORY_MAX = 2_000
BODY_CHARS_MAX = 400
COMMON_WORDS_MAX = 40
WORTH = 0.45
BREAKING_WORTH = 0.65

_BETWEEN_COMMITS = (_PATTERNS["stat"], re.compile(r"[*|\\/ ]*"))
"""Lines between commits: files, and the graph."""


@dataclass(frozen=True, slots=True)
class CommitRecord:
    """A commit as read from a memory, without its hash."""

    subject: str
    author: str = ""
    when: datetime | date | None = None
    body: str = ""
    paths: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _ComponentCommit:
    """A commit with its component, day, and the index of its memory."""

    position: int
    commit: CommitRecord
    component: str
    subject: str
    day: date


def read_commits(
    memory: MemoryRecord, _zone: tzinfo
) -> tuple[CommitRecord, ...] | None:
    """Return the commits that are all a memory contains; None for any other memory."""
    content = memory.content
    if not _PATTERNS["opening"].match(content) and not _PATTERNS["hash_at_end"].match(
        content
    ):
        return None
    lines = split_nonblank_lines(content.strip())
    if lines and lines[0].startswith(("$ git log", "$ git show", "$ git commit")):
        lines = lines[1:]
    if not lines:
        return None
    return find_first_reading(
        (_read_log, _read_oneline_log, _read_commit_output), lines
    )


def _read_log(lines: Sequence[str]) -> tuple[CommitRecord, ...] | None:
    """Return the commits in the lines of `git log`; None if they are anything else."""
    if not _PATTERNS["head"].fullmatch(lines[0]):
        return None
    blocks: list[list[str]] = []
    for line in lines[: COMMITS_PER_MEMORY_MAX * 8]:
        if _PATTERNS["head"].fullmatch(line):
            blocks.append([])
        else:
            blocks[-1].append(line)
    commits = list(map(_read_log_commit, blocks))
    if None in commits:
        return None
    return tuple(commit for commit in commits if commit and commit.subject) or None


def _read_log_commit(lines: Sequence[str]) -> CommitRecord | None:
    """Return the commit in its lines of `git log` without the hash; None for other lines.

    They hold fields, the indented message and changed files.
    """
    fields: dict[str, str] = {}
    message: list[str] = []
    paths: list[str] = []
    for line in lines:
        if match := _PATTERNS["field"].fullmatch(line):
            fields[match[1]] = match[2]
        elif path := _find_paths(line):
            paths += path
        elif line.startswith("    ") or (fields and not message):
            message.append(line.strip())
        elif not _PATTERNS["stat"].fullmatch(line):
            return None
    when = fields.get("Date") or fields.get("AuthorDate", "")
    body = [line for line in message[1:] if not _PATTERNS["trailer"].fullmatch(line)]
    return CommitRecord(
        subject="".join(message[:1]),
        author=fields.get("Author", "").partition("<")[0].strip(),
        when=parse_moment(when),
        body=" ".join(body)[:BODY_CHARS_MAX],
        paths=tuple(paths),
    )


def _find_paths(text: str) -> list[str]:
    """Return the file paths in lines of a commit's statistics."""
    return [
        match["stat"] or match["status"] for match in _PATTERNS["path"].finditer(text)
    ]


def _read_oneline_log(lines: Sequence[str]) -> tuple[CommitRecord, ...] | None:
    """Return the commits in lines "hash subject", as of `git log --oneline`; else None.

    An indented message may follow a single commit.
    """
    commits: list[CommitRecord] = []
    paths: list[str] = []
    for line in lines[:COMMITS_PER_MEMORY_MAX]:
        if commits and find_first_match(_BETWEEN_COMMITS, line):
            paths += _find_paths(line)
        elif commit := _read_oneline_commit(_PATTERNS["graph"].sub("", line).strip()):
            commits.append(commit)
        elif len(commits) == 1 and _is_oneline_with_body(lines):
            body = collapse_blanks(" ".join(lines[1:]))[:BODY_CHARS_MAX]
            return (replace(commits[0], body=body),)
        else:
            return None
    if len(commits) == 1:
        return (replace(commits[0], paths=tuple(paths)),)
    return tuple(commits)


def _is_oneline_with_body(lines: Sequence[str]) -> bool:
    """Return True if the first line is a commit "hash subject" and all others are indented."""
    indented = all(line.startswith(("  ", "\t")) for line in lines[1:])
    return indented and _read_oneline_commit(lines[0]) is not None


def _read_oneline_commit(line: str) -> CommitRecord | None:
    """Return the commit in a line with hash and subject; None for any other line."""
    for form in (_PATTERNS["stamped"], _PATTERNS["handed_on"], _PATTERNS["one_line"]):
        match = form.fullmatch(line)
        parts = match.groupdict("") if match else {}
        hash_ = parts.get("hash") or parts.get("hash_last", "")
        subject = parts.get("subject") or parts.get("subject_first", "")
        if subject and _looks_like_commit(hash_, subject):
            author = parts.get("author", "").strip()
            return CommitRecord(subject, author, parse_moment(parts.get("when", "")))
    return None


def _looks_like_commit(hash_: str, subject: str) -> bool:
    """Return True if a text is likely a hash, no word, and the subject no sentence of prose."""
    if _PATTERNS["word_or_number"].fullmatch(hash_):
        return _PATTERNS["conventional"].fullmatch(subject) is not None
    is_sentence = subject[0].islower() and subject.endswith(".")
    fits = len(subject) <= 2 * SUBJECT_CHARS_MAX
    return fits and not (is_sentence and is_prose(subject))


def _read_commit_output(lines: Sequence[str]) -> tuple[CommitRecord, ...] | None:
    """Return the commit in the lines of `git commit`, of its command, or of a merge's message.

    None for any other lines.
    """
    first = lines[0].strip().removeprefix("$ ")
    if _PATTERNS["pull_request"].fullmatch(first):
        title = "".join(lines[1:])  # of the pull request
        if len(lines) > 2 or title.endswith(".") or len(first) > SUBJECT_CHARS_MAX:
            return None
        return (CommitRecord("; ".join(filter(None, (first, title.strip())))),)
    match = _PATTERNS["message_option"].fullmatch(first) or _PATTERNS[
        "committed"
    ].fullmatch(first)
    if not match:
        return None
    echoed = len(lines) > 1 and _PATTERNS["committed"].match(lines[1])
    remaining = lines[2:] if echoed else lines[1:]
    if not all(_PATTERNS["stat"].fullmatch(line) for line in remaining):
        return None
    paths = tuple(_find_paths("\n".join(remaining)))
    return (CommitRecord(match["subject"], paths=paths),)


def write_commits(
    readings: Sequence[RecordReading[tuple[CommitRecord, ...]]], zone: tzinfo
) -> Iterator[RecordLine]:
    """Yield lines about the commits of each component and day, a few subjects in each.

    Days are shown in `zone`.
    """
    commits = _assign_components(readings, zone)
    groups = group_by(commits, lambda item: (item.component, item.day))
    several_days = len({day for _, day in groups}) > 1
    for group in groups.values():
        for start in range(0, len(group), SUBJECTS_PER_LINE):
            chunk = group[start : start + SUBJECTS_PER_LINE]
            dated = several_days or chunk[0].commit.when is not None
            yield _make_commits_line(chunk, zone, dated=dated)


def _assign_components(
    readings: Sequence[RecordReading[tuple[CommitRecord, ...]]], zone: tzinfo
) -> list[_ComponentCommit]:
    """Return each commit with its component, such as "parser", and its day in `zone`.

    If the subject names no component, a common folder or a word that several subjects share is
    used.
    """
    common = _rank_common_words(
        commit.subject for reading in readings for commit in reading.value
    )
    result: list[_ComponentCommit] = []
    for reading in readings:
        for commit in reading.value:
            component, subject = _split_component(commit, common)
            day = commit.when or reading.memory.created_at
            if isinstance(day, datetime):
                day = (in_zone(day, zone) if day.tzinfo else day).date()
            item = _ComponentCommit(reading.position, commit, component, subject, day)
            result.append(item)
    return result


def _rank_common_words(subjects: Iterable[str]) -> dict[str, int]:
    """Return words that at least two subjects have, with their rank, 0 for the most frequent.

    The first word of each subject does not count.
    """
    counts = Counter(
        word
        for subject in subjects
        for word in dict.fromkeys(_PATTERNS["word"].findall(subject.lower())[1:])
    )
    shared = [
        word
        for word, count in counts.most_common()
        if count > 1 and word not in _WORDS["plain_words"]
    ]
    return {word: rank for rank, word in enumerate(shared[:COMMON_WORDS_MAX])}


def _split_component(commit: CommitRecord, common: dict[str, int]) -> tuple[str, str]:
    """Return the component that a commit is about, and the subject without the component.

    `common` has words that several subjects share, by rank; the best one in the subject is used if
    nothing else names a component. Empty without one.
    """
    subject = remove_hashes(commit.subject)
    if match := _PATTERNS["conventional"].fullmatch(subject):
        kind = match["type"]
        return match["scope"] or _NAMES["types"].get(kind, kind), match["what"]
    if match := _PATTERNS["component"].fullmatch(subject):
        return match["bracket"] or match["plain"], match["what"]
    if commit.paths:
        return _find_common_folder(commit.paths), subject
    words = [
        word
        for word in _PATTERNS["word"].findall(subject.lower())[1:]
        if word in common
    ]
    return min(words, key=common.__getitem__, default=""), subject


def _find_common_folder(paths: Sequence[str]) -> str:
    """Return the deepest folder that all paths share, or else the most frequent folder.

    A single path is returned whole.
    """
    if len(paths) == 1:
        return paths[0]
    folders = [path.rpartition("/")[0] for path in paths]
    levels = zip(*(folder.split("/") for folder in folders), strict=False)
    shared = [
        names[0] for names in takewhile(lambda names: len(set(names)) == 1, levels)
    ]
    return "/".join(shared) or Counter(folders).most_common(1)[0][0]


def _make_commits_line(
    chunk: Sequence[_ComponentCommit], zone: tzinfo, *, dated: bool
) -> RecordLine:
    """Return a line about a few commits of one component: count, authors, day and subjects.

    The day is left out unless `dated`.
    """
    first = chunk[0]
    head = show_count(len(chunk), "commit") if len(chunk) > 1 else "Commit"
    is_kind = first.component.startswith("(")
    head += enclose(" " if is_kind else " to ", first.component)
    authors = dict.fromkeys(item.commit.author for item in chunk)
    head += enclose(" by ", join_names(list(filter(None, authors)), 3))
    if dated:
        head += f" on {show_moment(first.day, zone)}"
    subjects = [shorten(item.subject, SUBJECT_CHARS_MAX).rstrip(".") for item in chunk]
    text = end_line(f"{head}: {'; '.join(dict.fromkeys(subjects))}")
    worth, sources = WORTH, []
    for item in chunk:
        commit = item.commit
        sources.append(f"{item.subject} {commit.body} {' '.join(commit.paths)}")
        match = _PATTERNS["conventional"].fullmatch(commit.subject)
        if (match and match["breaking"]) or "BREAKING" in commit.body:
            worth = BREAKING_WORTH
    positions = [item.position for item in chunk]
    return make_line(text, "\n".join(sources), positions, worth)


COMMITS = RecordRule("commits", read_commits, write_commits)
