"""Summaries of records, such as logs, commits, test runs and tables: items, and lines about items.

Imported only by a sleep: the rules take a tenth of the daemon's start.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import tzinfo
from functools import partial
from itertools import chain
from typing import Any

from mnemosyned.memory.values import MemoryRecord
from mnemosyned.summary.records.lines import (
    RecordLine,
    RecordSummary,
    enclose,
    group_by,
    is_prose,
    parse_moment,
    remove_hashes,
    select_record_terms,
    shorten,
    show_moment,
    split_nonblank_lines,
)
from mnemosyned.text.rule_files import read_rule_file

_WORDS, _NAMES, _PATTERNS, _FORMS = read_rule_file(__file__)

LINES_MAX = 20_000
TEXT_CHARS_MAX = 180
VALUE_CHARS_MAX = 80


@dataclass(frozen=True, slots=True)
class ItemKind:
    """A kind of items, and how much space lines about them get in a summary."""

    noun: str
    worth: float
    alert_worth: float
    """Worth of items that report a failure or a breaking change."""
    shapes_per_line: int = 1
    lines_max: int = 24
    is_named: bool = False
    """True if the noun is before a single item, too."""


LOG = ItemKind("log line", 0.3, 0.85, shapes_per_line=4, lines_max=1, is_named=True)
REQUEST = replace(LOG, noun="request")
WARNING = ItemKind("warning", 0.6, 0.6, is_named=True)
ERROR = ItemKind("error", 0.85, 0.85, is_named=True)
TRACE = ItemKind("stack trace", 0.8, 0.8)
COMMIT = ItemKind("commit", 0.45, 0.65, shapes_per_line=4, is_named=True)
RUN = ItemKind("test run", 0.35, 0.85)
COMMAND = ItemKind("command", 0.35, 0.8)
OBJECT = ItemKind("JSON record", 0.5, 0.8, shapes_per_line=4, is_named=True)
ROW = replace(OBJECT, noun="row", lines_max=1)


@dataclass(frozen=True, slots=True)
class RecordItem:
    """One thing that a record reports: a log line, a commit, a command, a row of a table."""

    kind: ItemKind
    text: str
    source: str
    """Text of the record, whose words go to the index if the text lacks them."""
    about: str = ""
    """What follows the noun: " to importer by Ben". Items with another text here are apart."""
    when: str = ""
    """Time as text; empty if the record has none."""
    is_alert: bool = False
    """True if the item reports a failure or a breaking change."""


LEVEL_CHARS_MAX = 80
"""Characters after the time within which the level of a log line is."""
CONTINUED_SHARE_MAX = 0.8
SIGN_CHARS_MAX = 120
_AROUND_LEVEL = " -|:])>"
_KIND_OF_LEVEL = {"error": ERROR, "warning": WARNING}


def read_log(content: str, zone: tzinfo) -> list[RecordItem]:
    """Return the entries of a log as items; empty for any other text.

    Other lines are left out, except the error of a crash, which is added to the entry above.
    """
    if not _PATTERNS["clock"].search(content, 0, SIGN_CHARS_MAX):
        return []
    lines = _remove_command_line(split_nonblank_lines(content)[:LINES_MAX])
    items: list[RecordItem] = []
    for line in lines:
        if item := _read_log_line(line, zone):
            items.append(item)
        elif not items or (is_prose(line) and not line.startswith((" ", "\t"))):
            return []
        elif _PATTERNS["crash"].fullmatch(line):  # the error of the line above
            items[-1] = replace(items[-1], text=f"{items[-1].text}: {line}")
    others = len(lines) - len(items)
    return items if others <= CONTINUED_SHARE_MAX * len(lines) else []


def _read_log_line(line: str, zone: tzinfo) -> RecordItem | None:
    """Return a line of a log or an access log as an item; None for any other line."""
    if match := _PATTERNS["access"].fullmatch(line):
        text = f"status {match['status']} on {match['method']} {match['path']}"
        is_alert = match["status"] >= "500"
        return RecordItem(REQUEST, text, text, when=match["clock"], is_alert=is_alert)
    if "level=" in line:
        pairs = _PATTERNS["pair"].findall(line)
        fields = {name: quoted or bare for name, quoted, bare in pairs}
        return _make_log_item(fields, zone)
    match = _PATTERNS["stamped"].match(line)
    if match is None:
        return None
    parts = match.groupdict("")
    rest = line[match.end() :]
    found = _PATTERNS["level"].search(rest, 0, LEVEL_CHARS_MAX)
    level = parts["level"] or parts["letter"] or (found["level"] if found else "")
    if not level and not _PATTERNS["unit"].match(rest):
        return None
    if found and not parts["level"]:
        named = _PATTERNS["logger"].search(rest[: found.start()])
        logger = named[0].rstrip(".:") if named else ""
        rest = enclose("", logger, ": ") + rest[found.end() :].lstrip(_AROUND_LEVEL)
    trouble = "error" if _PATTERNS["failing"].search(rest) else "info"
    day, offset = parts["day"].replace("/", "-"), parts["offset"].strip()
    moment = parse_moment(f"{day} {parts['clock']}{offset.replace('UTC', 'Z')}")
    when = show_moment(moment, zone) if moment and day else parts["clock"][:5]
    return _make_item_of_level(level or trouble, rest.lstrip(_AROUND_LEVEL), when)


def _make_log_item(fields: Mapping[str, Any], zone: tzinfo) -> RecordItem | None:
    """Return the fields of a structured log line as an item; None if level, text or time is missing."""
    known = {
        name: next(filter(None, map(fields.get, names.split())), None)
        for name, names in _LOG_FIELDS.items()
    }
    level, message = str(known["level"]).lower(), known["message"]
    if level not in _NAMES["levels"] or not isinstance(message, str):
        return None
    if known["time"] is None:
        return None
    used = set(" ".join(_LOG_FIELDS.values()).split())
    others = {key: value for key, value in fields.items() if key not in used}
    values = ", ".join(f"{label} {text}" for label, text in _list_values(others))
    moment = parse_moment(str(known["time"]))
    when = show_moment(moment, zone) if moment else str(known["time"])
    return _make_item_of_level(level, message + enclose(" (", values, ")"), when)


_LOG_FIELDS = {
    "level": "level severity levelname",
    "message": "msg message event",
    "time": "time timestamp ts",
}


def _make_item_of_level(level: str, message: str, when: str) -> RecordItem:
    """Return a log entry as an item; its kind depends on the level, such as "warning"."""
    kind = _KIND_OF_LEVEL.get(_NAMES["levels"][level.lower()], LOG)
    return RecordItem(kind, shorten(message, TEXT_CHARS_MAX), message, when=when)


OTHER_LINES_MAX = 4


def read_trace(content: str, _zone: tzinfo) -> list[RecordItem]:
    """Return the error and the deepest frame of the program itself in a stack trace, as one item; or []."""
    lines = split_nonblank_lines(content)[:2_000]
    is_frame = _PATTERNS["frame"].match
    heads = [line.strip() for line in lines if _PATTERNS["error_head"].match(line)]
    frames = [line.strip() for line in lines if is_frame(line)]
    is_python = "Traceback (most" in content
    if is_python and frames:  # the deepest frame is last, the error after it
        last = max(index for index, line in enumerate(lines) if is_frame(line))
        heads = [line for line in lines[last + 1 :] if not line.startswith(" ")][:1]
        frames.reverse()
    if not heads or len(lines) < 2 or not (frames or "panicked at" in heads[0]):
        return []
    others = [
        line for line in lines if not is_frame(line) and line.strip() not in heads
    ]
    if len(others) > OTHER_LINES_MAX + len(lines) // 2:
        return []
    for line in others:  # a sentence around the trace, or its first line
        is_remark = not line.startswith((" ", "\t")) and ": " not in line[:60]
        if is_prose(line) and (is_remark or line is lines[0]):
            return []
    head = heads[0]
    if heads[-1].startswith("Caused by"):  # of several causes the last counts
        head = heads[-1]
        below = content.rpartition(head)[2].splitlines()
        frames = [line.strip() for line in below if is_frame(line)]
    if head.endswith(":"):  # Rust has the message on the next line, if any
        stripped = [line.strip() for line in lines]
        head = " ".join(stripped[stripped.index(head) :][:2])
    own = [frame for frame in frames if not _PATTERNS["library"].search(frame)]
    has_place = bool(own) or "panicked at" in head
    place = "".join((own if has_place else frames)[:1])
    text = shorten(head, TEXT_CHARS_MAX).rstrip(".")
    text += enclose(", ", shorten(place.rstrip(" {"), TEXT_CHARS_MAX))
    return [RecordItem(TRACE, text, "\n".join([*heads, *own[:12]]))]


SUBJECT_CHARS_MAX = 120


def read_commits(content: str, zone: tzinfo) -> list[RecordItem]:
    """Return each commit of a list of commits as an item; empty for any other text."""
    lines = split_nonblank_lines(content.strip())
    if lines[0].startswith("$ git "):
        lines = lines[1:]
    commits: list[dict[str, str]] = []
    in_log = False
    for line in lines[:LINES_MAX]:
        if _PATTERNS["commit_head"].fullmatch(line):
            in_log = True
            commits.append({})
        elif not in_log and (parts := _read_commit_line(line, is_first=not commits)):
            commits.append(parts)
        elif not commits:
            return []
        elif field := _PATTERNS["commit_field"].fullmatch(line):
            commits[-1][field["name"].lower()] = field["value"]
        elif in_log and "subject" not in commits[-1] and line.startswith("    "):
            commits[-1]["subject"] = line.strip()
        elif line.startswith((" ", "\t")) or _PATTERNS["changes"].fullmatch(line):
            commits[-1]["body"] = f"{commits[-1].get('body', '')}\n{line}"
        else:
            return []
    return [_make_commit_item(one, zone) for one in commits if one.get("subject")]


def _read_commit_line(line: str, *, is_first: bool) -> dict[str, str] | None:
    """Return the hash, `subject` and other parts of a line about a commit; None for other lines.

    With `is_first`, the line may also be a `git commit` command or the line that Git prints for it.
    """
    line = _PATTERNS["graph"].sub("", line)
    for form in (*_FORMS["commits"], *_FORMS["commit_commands"] * is_first):
        match = form.fullmatch(line)
        if match and _looks_like_commit(match.groupdict("")):
            return match.groupdict("")
    return None


def _looks_like_commit(parts: Mapping[str, str]) -> bool:
    """Return True if the `subject` among a line's parts is neither prose nor long.

    If the `hash` may be a word or number, the `subject` must be of the form "fix(api): …".
    """
    subject = parts["subject"]
    if _PATTERNS["word_or_number"].fullmatch(parts.get("hash", "a1")):
        return _PATTERNS["component"].fullmatch(subject) is not None
    is_sentence = subject[0].islower() and subject.endswith(".")
    fits = len(subject) <= 2 * SUBJECT_CHARS_MAX
    return fits and not (is_sentence and is_prose(subject))


def _make_commit_item(parts: Mapping[str, str], zone: tzinfo) -> RecordItem:
    """Return a commit as an item, to be grouped by component, author and day."""
    subject, body = remove_hashes(parts["subject"]), parts.get("body", "")
    component = ""
    match = _PATTERNS["component"].fullmatch(subject)
    if match and (match["scope"] or match["plain"] not in _WORDS["commit_types"]):
        component, subject = match["scope"] or match["plain"], match["what"]
    about = enclose(" to ", component)
    about += enclose(" by ", parts.get("author", "").partition("<")[0].strip())
    if moment := parse_moment(parts.get("date", "")):
        about += f" on {show_moment(moment, zone).rpartition(',')[0]}"
    is_breaking = bool(match and match["breaking"]) or "BREAKING" in body
    text = shorten(subject, SUBJECT_CHARS_MAX)
    return RecordItem(COMMIT, text, f"{subject}\n{body}", about, is_alert=is_breaking)


COMMANDS_MAX = 400
COMMAND_CHARS_MAX = 140
FAILURES_SHOWN_MAX = 4
PROSE_SHARE_MAX = 0.34


def read_run(content: str, _zone: tzinfo) -> list[RecordItem]:
    """Return the outcome of a test run from its output, as an item; empty for any other text."""
    if "\n" in content.strip():
        return _read_run_output(split_nonblank_lines(content)[:LINES_MAX])
    line = content.strip()
    matches = filter(None, (form.fullmatch(line) for form in _FORMS["run_lines"]))
    match = next(matches, None)
    if match is None:
        return []
    parts = match.groupdict("")
    command, detail = parts.get("command", ""), parts["detail"]
    if command:
        is_report = is_prose(command) or not _PATTERNS["runners"].search(command)
    else:
        is_report = is_prose(detail) and not _PATTERNS["test_name"].search(detail)
    if is_report:
        return []
    has_failed = _has_failed(parts["outcome"])
    return [RecordItem(RUN, shorten(line, 300), line, is_alert=has_failed)]


def _read_run_output(lines: Sequence[str]) -> list[RecordItem]:
    """Return the outcome that a test runner's lines print: counts and failed tests; empty for other lines."""
    output = _remove_command_line(lines)
    counts = [line.strip(" =") for line in output if _PATTERNS["counts"].search(line)]
    if not counts or sum(map(is_prose, output)) > PROSE_SHARE_MAX * len(output):
        return []
    names_failure = _PATTERNS["failed_test"].match
    if any(is_prose(one) and not names_failure(one) for one in (output[0], output[-1])):
        return []
    failures = [line.strip() for line in output if names_failure(line)]
    shown = [shorten(line, TEXT_CHARS_MAX) for line in failures[:FAILURES_SHOWN_MAX]]
    left = len(failures) - len(shown)
    shown += [f"and {left} more"] * bool(left)
    command = lines[0].removeprefix("$ ") if output is not lines else "Test run"
    failed = [line for line in counts if _has_failed(line)]
    passed = [line for line in counts if not _has_failed(line)]
    parts = [shorten(line, TEXT_CHARS_MAX) for line in failed[:FAILURES_SHOWN_MAX]]
    if passed:
        such = f"{len(passed)} lines such as " if len(passed) > 1 else ""
        parts.append(f"{such}{shorten(passed[-1], TEXT_CHARS_MAX)}")
    text = f"{shorten(command, COMMAND_CHARS_MAX)}: {'; '.join([*parts, *shown])}"
    source = "\n".join(failures)
    return [RecordItem(RUN, text, source, is_alert=bool(failed or failures))]


def _has_failed(counts: str) -> bool:
    """Return True if the outcome of a run names a failure: "2 failed", "was canceled"."""
    return _PATTERNS["failed_count"].search(counts) is not None


def read_session(content: str, _zone: tzinfo) -> list[RecordItem]:
    """Return each command of a shell session with its outcome; empty for any other text."""
    if not _PATTERNS["prompt_sign"].search(content, 0, SIGN_CHARS_MAX):
        return []
    lines = split_nonblank_lines(content.strip())[:LINES_MAX]
    ends_in_prose = is_prose(lines[-1]) and not _PATTERNS["failure"].search(lines[-1])
    if not _find_command(lines[0]) or ends_in_prose:
        return []
    if sum(map(is_prose, lines)) > len(lines) // 3:
        return []
    commands: list[tuple[str, list[str]]] = []
    for line in lines:
        if command := _find_command(line):
            commands.append((command, []))
        else:
            commands[-1][1].append(line.strip())
    return [_make_command_item(*command) for command in commands[:COMMANDS_MAX]]


def _find_command(line: str) -> str:
    """Return the command after a shell prompt in a line; empty if the line has none."""
    match = _PATTERNS["prompt"].fullmatch(line.strip())
    if not match or _PATTERNS["not_a_command"].match(match["command"]):
        return ""
    command = match["command"].strip()
    return "" if is_prose(command) else command


def _make_command_item(command: str, output: Sequence[str]) -> RecordItem:
    """Return a command as an item, with the failure, success or last line of its output."""
    exits = list(filter(None, map(_PATTERNS["exit"].fullmatch, output)))
    code = exits[-1]["code"] if exits else ""
    failures = list(filter(_PATTERNS["failure"].search, output))
    has_failed = code != "0" and bool(code or failures)
    lines = [line for line in output if not _PATTERNS["exit"].fullmatch(line)]
    told = failures if has_failed else list(filter(_PATTERNS["success"].search, lines))
    outcome = (told or lines or [""])[-1]
    if not told and len(lines) > 1:
        outcome = f"{len(lines)} lines, the last {outcome}"
    outcome = shorten(outcome, TEXT_CHARS_MAX).rstrip(".")
    if has_failed:
        outcome += enclose(" (exit code ", code, ")")
    verb = "failed with" if has_failed else "printed"
    line = f"`{shorten(command, COMMAND_CHARS_MAX)}`"
    text = f"The command {line} {verb}: {outcome}" if outcome else f"Ran {line}"
    source = "\n".join((command, *output[-40:]))
    return RecordItem(COMMAND, text, source, is_alert=has_failed)


def _remove_command_line(lines: Sequence[str]) -> Sequence[str]:
    """Return lines of output, without the first if it is a command such as `$ make test`."""
    return lines[1:] if len(lines) > 1 and lines[0].startswith("$ ") else lines


JSON_CHARS_MAX = 1_000_000
DEPTH_MAX = 4
VALUES_SHOWN_MAX = 10
LABELS_SHOWN_MAX = 8
ANSWER_KEYS_MAX = 4


def read_json(content: str, zone: tzinfo) -> list[RecordItem]:
    """Return each object of a JSON text as an item; empty for any other text.

    Objects with level, message and time are log lines. A list of other values is one item.
    """
    value = _parse_json(content.strip())
    if not value:
        return []
    objects = [value] if isinstance(value, dict) else value
    if isinstance(value, dict) and len(value) <= ANSWER_KEYS_MAX:
        lists = [item for item in value.values() if isinstance(item, list) and item]
        is_record = not _WORDS["titles"].isdisjoint(map(str.lower, value))
        is_answer = len(lists) == 1 and not is_record
        if is_answer and all(isinstance(item, dict) for item in lists[0]):
            objects = lists[0]  # such as `{"items": [{…}], "total": 2}`
    if not all(item and isinstance(item, dict) for item in objects):
        return [_make_object_item(OBJECT, {"values": objects}, zone)]
    return [
        _make_log_item(item, zone) or _make_object_item(OBJECT, item, zone)
        for item in objects[:LINES_MAX]
    ]


def _parse_json(text: str) -> dict[str, Any] | list[Any] | None:
    """Return the object or list in a JSON text, or a list of JSON lines; None for other texts."""
    if text.startswith("```"):
        text = text.removeprefix("```json").strip("`").strip()
    if text[:1] not in ("{", "[") or len(text) > JSON_CHARS_MAX:
        return None
    text = _PATTERNS["escape"].sub(lambda one: r"\ufffd" if one[1] else one[0], text)
    for whole in (text, f"[{','.join(filter(str.strip, text.splitlines()))}]"):
        try:
            value = json.loads(whole, parse_float=str)
        except (ValueError, RecursionError):
            continue
        return value if isinstance(value, dict | list) else None
    return None


def _make_object_item(
    kind: ItemKind, value: Mapping[str, Any], zone: tzinfo
) -> RecordItem:
    """Return an object or a row as an item: its title, values by label, and its text."""
    pairs = list(_list_values(value, zone))
    title = next((one for one in pairs if one[0].lower() in _WORDS["titles"]), ("", ""))
    body = next((one for one in pairs if one[0].lower() in _WORDS["bodies"]), ("", ""))
    others = [pair for pair in pairs if pair not in (title, body)]
    shown = [f"{label} {text}" for label, text in others[:VALUES_SHOWN_MAX]]
    if hidden := [label for label, _ in others[VALUES_SHOWN_MAX:]]:
        labels = ", ".join(hidden[:LABELS_SHOWN_MAX])
        shown.append(f"and {len(hidden)} more: {labels}")
    text = ", ".join(shown) or f"with {', '.join([*value][:LABELS_SHOWN_MAX])}"
    if title[1]:
        text = title[1] + enclose(" (", ", ".join(shown), ")")
    text += enclose(": ", shorten(body[1], 240))
    words = {word for label, one in pairs for word in (label, *one.lower().split())}
    source = " ".join(text for _, text in pairs)[:6_000]
    is_alert = not _WORDS["failures"].isdisjoint(words)
    return RecordItem(kind, text, source, is_alert=is_alert)


def _list_values(
    value: Mapping[str, Any], zone: tzinfo | None = None, prefix: str = ""
) -> Iterator[tuple[str, str]]:
    """Yield (label, text) for the texts, numbers and flags of an object, nested ones too, except ids."""
    for key, item in value.items():
        label = f"{prefix}{shorten(str(key), 40)}"
        if isinstance(item, dict) and prefix.count(".") < DEPTH_MAX:
            yield from _list_values(item, zone, f"{label}.")
            continue
        values = item[:VALUES_SHOWN_MAX] if isinstance(item, list) else [item]
        text = "/".join(filter(None, (_format_value(one, zone) for one in values)))
        is_id = str(key).lower() in _WORDS["identifiers"] and not text.isdigit()
        if text and not is_id:
            yield label, text


def _format_value(value: object, zone: tzinfo | None) -> str:
    """Return a number, flag or text as short text, with times in `zone`, without hashes; else empty."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return repr(value)
    if not isinstance(value, str):
        return ""
    is_time = zone is not None and _PATTERNS["iso_time"].match(value)
    moment = parse_moment(value) if is_time else None
    if moment and zone:
        return show_moment(moment, zone)
    return shorten(value, VALUE_CHARS_MAX)


Grid = list[list[str]]

COLUMNS_MAX = 60
CELL_MEAN_MAX = 32


def read_table(content: str, zone: tzinfo) -> list[RecordItem]:
    """Return the rows of a table in Markdown, CSV or aligned columns; empty for other texts."""
    lines = _remove_command_line(split_nonblank_lines(content)[:LINES_MAX])
    if len(lines) < 3:
        return []
    for read in (_read_piped, _read_separated, _read_aligned):
        if grid := read(lines):
            names, *rows = grid
            columns = [name or "unnamed" for name in names]
            return [
                _make_object_item(ROW, dict(zip(columns, row, strict=True)), zone)
                for row in rows
            ]
    return []


def _read_piped(lines: Sequence[str]) -> Grid | None:
    """Return the rows, header first, of a table in Markdown or of a SQL shell; None for other lines."""
    barred = [line.strip().replace("│", "|") for line in lines]
    is_rule = _PATTERNS["rule"].fullmatch
    if "|" not in barred[0] + barred[1] or not any(map(is_rule, barred[:2])):
        return None
    grid = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in barred
        if not is_rule(line)
    ]
    return grid if len(grid) > 1 and _has_even_rows(grid) else None


def _read_separated(lines: Sequence[str]) -> Grid | None:
    """Return the rows of lines separated by tabs, semicolons or commas; else None.

    The first row has the names of the columns. Two columns need at least four lines.
    """
    for separator in ("\t", ";", ","):
        count = lines[0].count(separator)
        if count == 0 or (count == 1 and len(lines) < 4):
            continue
        try:
            grid = list(csv.reader(lines, delimiter=separator))
        except csv.Error:
            continue
        if grid and _has_even_rows(grid) and _is_tabular(grid, lines):
            return [[cell.strip() for cell in row] for row in grid]
    return None


def _is_tabular(grid: Grid, lines: Sequence[str]) -> bool:
    """Return True if rows of cells are a table, not lines of prose with equally many commas."""
    cells = [cell for row in grid[:200] for cell in row]
    spaced = sum(cell.startswith(" ") for cell in cells)
    named = all(cell.strip() and not cell.strip()[0].isdigit() for cell in grid[0])
    ended = any(line.endswith((".", "!", "?", ":")) for line in lines)
    is_short = sum(map(len, cells)) <= CELL_MEAN_MAX * len(cells)
    is_spaced = spaced > len(cells) // 4
    return named and not (ended or is_spaced or any(map(is_prose, cells))) and is_short


def _read_aligned(lines: Sequence[str]) -> Grid | None:
    """Return the rows, header first, of columns aligned by blanks, as `df` prints; None for other lines."""
    header = lines[0].strip().replace("Mounted on", "Mounted")
    rows = [line.strip() for line in lines[1:]]
    has_digit = re.compile(r"\d").search
    if has_digit(header) or header.endswith((".", "!", "?", ":")):
        return None
    if not any(map(has_digit, rows)) or any(map(is_prose, lines)):
        return None
    for split in (_PATTERNS["gap"].split, str.split):
        grid = [split(line) for line in (header, *rows)]
        is_named = all(map(_PATTERNS["column_name"].fullmatch, grid[0]))
        if len(grid[0]) > 2 and is_named and _has_even_rows(grid):
            return grid
    return None


def _has_even_rows(grid: Grid) -> bool:
    """Return True if all rows have the same number of cells, at least two."""
    width = len(grid[0])
    return 2 <= width <= COLUMNS_MAX and all(len(row) == width for row in grid)


READERS: tuple[Callable[[str, tzinfo], Sequence[RecordItem]], ...] = (
    read_commits,
    read_run,
    read_log,
    read_trace,
    read_json,
    read_session,
    read_table,
)
"""Readers from the most to the least certain; the first that returns items takes a text."""


CONTENT_CHARS_MAX = 400_000
"""Longer memories are treated as prose, and cut into sentences."""

_ENDS = (".", "!", "?", "…", "。", "！", "？")
_SIGN = re.compile(r"[\d:{\[$#<>|]")
"""Characters of which each record of one line has at least one."""

Placed = tuple[int, RecordItem]
"""An item with the index of its memory."""


def summarize_records(
    memories: Sequence[MemoryRecord], *, zone: tzinfo
) -> RecordSummary:
    """Return lines about the memories that are records, and the rest of the memories, all prose."""
    placed: list[Placed] = []
    prose: list[MemoryRecord] = []
    for position, memory in enumerate(memories):
        items = _read_items(memory.content, zone)
        placed += [(position, item) for item in items]
        if not items:
            prose.append(memory)
    groups = group_by(
        placed, lambda pair: (pair[1].kind, pair[1].about, pair[1].is_alert)
    )
    lines = list(chain.from_iterable(map(_write_lines, groups.values())))
    lines.sort(key=lambda line: line.position)
    return RecordSummary(tuple(lines), tuple(prose))


def _read_items(content: str, zone: tzinfo) -> Sequence[RecordItem]:
    """Return the items of the first reader that takes a memory's text; empty for prose or a long text."""
    if len(content) > CONTENT_CHARS_MAX or not content.strip():
        return ()
    if "\n" not in content and not _SIGN.search(content):
        return ()
    for read in READERS:
        if items := read(content.strip("\n"), zone):
            return items
    return ()


def _write_lines(group: Sequence[Placed]) -> Iterator[RecordLine]:
    """Yield lines that summarize items of one kind; items of one shape differ only in their values.

    Each line shows a few shapes. Beyond the maximum of lines, the rarest shapes are left out, and the last
    line counts their items.
    """
    kind = group[0][1].kind
    # Texts are of one shape if they are equal without their values.
    blank = partial(_PATTERNS["values"].sub, "#")
    shapes = list(group_by(group, lambda pair: blank(pair[1].text)).values())
    shown_max = kind.lines_max * kind.shapes_per_line
    if len(shapes) > shown_max:
        shapes.sort(key=len, reverse=True)
    hidden = list(chain.from_iterable(shapes[shown_max:]))
    for start in range(0, min(len(shapes), shown_max), kind.shapes_per_line):
        shown = shapes[start : start + kind.shapes_per_line]
        is_last = start + kind.shapes_per_line >= shown_max
        yield _write_line(shown, hidden if is_last else ())


def _write_line(
    shapes: Sequence[Sequence[Placed]], hidden: Sequence[Placed]
) -> RecordLine:
    """Return a line about items of one kind, grouped by shape; `hidden` items are only counted."""
    pairs = [*chain.from_iterable(shapes), *hidden]
    items = [item for _, item in pairs]
    first, kind = items[0], items[0].kind
    parts = [_show_shape([item.text for _, item in shape]) for shape in shapes]
    if hidden:
        parts.append(f"and {len(hidden)} more")
    text = "; ".join(parts)
    if kind.is_named or len(parts) > 1:
        noun = kind.noun[0].upper() + kind.noun[1:]
        name = noun if len(items) == 1 else f"{len(items)} {kind.noun}s"
        text = f"{name}{first.about}{_show_span(items)}: {text}"
    positions = [position for position, _ in pairs]
    return RecordLine(
        text=text if text.endswith(_ENDS) else f"{text}.",
        index_terms=select_record_terms("\n".join(item.source for item in items), text),
        position=min(positions),
        worth=kind.alert_worth if first.is_alert else kind.worth,
        memories=len(set(positions)),
    )


def _show_shape(texts: Sequence[str]) -> str:
    """Return the first and the last of several texts of one shape, and their number, as text."""
    first, last = texts[0].rstrip(".…"), texts[-1].rstrip(".")
    if len(texts) == 1:
        return last
    if len(set(texts)) == 1:
        return f"{first} ({len(texts)} times)"
    if len(texts) == 2:
        return f"{first}; {last}"
    return f"{first} … {last} ({len(texts)} alike)"


def _show_span(items: Sequence[RecordItem]) -> str:
    """Return the times of the first and the last item as text; empty for items without a time."""
    first, last = items[0].when, items[-1].when
    if not first or first == last:
        return f", {first}" if first else ""
    day, _, clock = last.rpartition(", ")
    return f", {first} to {clock if first.startswith(day) else last}"
