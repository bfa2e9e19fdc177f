"""Log lines counted by level and template, and stack traces with the deepest own frame."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, tzinfo
from itertools import chain, repeat
from typing import NamedTuple

from mnemosyned.instants import in_zone
from mnemosyned.memory.values import MemoryRecord
from mnemosyned.summary.records.data import find_first_value, parse_json
from mnemosyned.summary.records.lines import (
    RecordLine,
    RecordReading,
    RecordRule,
    enclose,
    end_line,
    find_first_match,
    group_by,
    is_prose,
    join_names,
    make_line,
    parse_moment,
    shorten,
    show_count,
    show_moment,
    split_command,
    split_nonblank_lines,
)
from mnemosyned.text.rule_files import read_rule_file

_WORDS, _NAMES, _PATTERNS, _FORMS = read_rule_file(__file__)


LOG_LINES_MAX = 20_000
QUOTED_MAX = 6
TEMPLATES_MAX = 3
LOG_MESSAGE_CHARS_MAX = 180
INFO_CHARS_MAX = 90
CONTINUED_SHARE_MAX = 0.8
SOURCE_CHARS_MAX = 6_000
LOG_WORTH = 0.3
WARNING_WORTH = 0.6
ERROR_WORTH = 0.85


@dataclass(frozen=True, slots=True)
class LogLine:
    """A line of a log, or a request of an access log."""

    level: str
    message: str
    when: datetime | None = None
    clock: str = ""
    status: str = ""
    """The HTTP status, of a line of an access log."""


def read_log(memory: MemoryRecord, _zone: tzinfo) -> tuple[LogLine, ...] | None:
    """Return the log lines that are all a memory contains; None for any other memory."""
    content = memory.content.strip()
    if content.startswith("{"):
        return _read_json_log(content)
    if not _PATTERNS["stamp_sign"].search(content, 0, 120):
        return None
    _, lines = split_command(split_nonblank_lines(content)[:LOG_LINES_MAX])
    entries: list[LogLine] = []
    for line in lines:
        if entry := _read_line(line):
            entries.append(entry)
        elif not entries or (is_prose(line) and not line.startswith((" ", "\t"))):
            return None
        elif _PATTERNS["crash"].fullmatch(line):
            last = entries[-1]  # whose error this line names
            entries[-1] = replace(last, message=f"{last.message}: {line}")
    others = len(lines) - len(entries)
    if not entries or others > CONTINUED_SHARE_MAX * len(lines):
        return None
    return tuple(entries)


def _read_line(line: str) -> LogLine | None:
    """Return a parsed line of an access log, a common log form or logfmt; else None."""
    if match := _PATTERNS["access"].fullmatch(line):
        return _read_request(match)
    if match := find_first_match(_FORMS["log_forms"], line):
        return _read_log_parts(match.groupdict(""))
    return _read_pairs(line) if "level=" in line else None


def _read_pairs(line: str) -> LogLine | None:
    """Return a parsed line of logfmt, `time=… level=… msg="…"`; None if one of these is missing."""
    pairs = {
        name: quoted or bare for name, quoted, bare in _PATTERNS["pair"].findall(line)
    }
    level = _NAMES["level_names"].get(pairs.pop("level", "").lower())
    message = pairs.pop("msg", "") or pairs.pop("message", "")
    stamp = pairs.pop("time", "") or pairs.pop("ts", "")
    when = _parse_instant(stamp)
    if not level or not message or not when:
        return None
    values = ", ".join(f"{name} {value}" for name, value in pairs.items())
    return LogLine(level, message + enclose(" (", values, ")"), when)


def _read_request(match: re.Match[str]) -> LogLine:
    """Return a parsed line of an access log; with a status from 500 on its level is "error"."""
    status = match["status"]
    path = match["path"].partition("?")[0]
    level = "error" if status >= "500" else "info"
    stamp = match["when"].replace("/", " ").replace(":", " ", 1).replace(" +", "+", 1)
    clock = match["when"][12:20]
    return LogLine(
        level, f"{match['method']} {path}", _parse_instant(stamp), clock, status
    )


def _read_log_parts(parts: dict[str, str]) -> LogLine:
    """Return a parsed log line from the named groups of its match.

    Without a level in the line, the words of the message decide.
    """
    message, unit = parts["message"], parts.get("unit", "")
    name = parts.get("level") or parts.get("letter", "")
    if unit:
        inner = _PATTERNS["inner_level"].match(message)
        name = inner["level"] if inner else ""
        message = message[inner.end() :] if inner else message
    trouble = "error" if _PATTERNS["failing"].search(message) else "info"
    stamp = parts.get("when", "").replace(",", " ")
    offset = parts.get("offset", "").strip()
    return LogLine(
        level=_NAMES["level_names"].get(name.lower(), trouble),
        message=f"{enclose('', unit, ': ')}{message}".strip(),
        when=_parse_instant(f"{stamp}{offset}"),
        clock=parts.get("clock", ""),
    )


def _parse_instant(text: str) -> datetime | None:
    """Return the date and time that a text spells; None for any other text, and a day alone."""
    moment = parse_moment(text)
    return moment if isinstance(moment, datetime) else None


def _read_json_log(content: str) -> tuple[LogLine, ...] | None:
    """Return the parsed lines of a JSON log, with level, message and time; else None."""
    value = parse_json(content)
    objects = value if isinstance(value, list) else [value]
    entries: list[LogLine] = []
    for item in objects[:LOG_LINES_MAX]:
        if not isinstance(item, dict):
            return None
        level = find_first_value(item, "level", "severity", "levelname")
        message = find_first_value(item, "msg", "message", "event")
        when = find_first_value(item, "time", "timestamp", "ts")
        name = _NAMES["level_names"].get(str(level).lower())
        if not name or not isinstance(message, str) or when is None:
            return None
        cause = find_first_value(item, "error", "err", "exception")
        if isinstance(cause, str):
            message = f"{message}: {cause}"
        entries.append(LogLine(name, message, _parse_instant(str(when))))
    return tuple(entries)


LogReading = RecordReading[LogLine]
"""A log entry with its memory."""


def write_logs(
    readings: Sequence[RecordReading[tuple[LogLine, ...]]], zone: tzinfo
) -> Iterator[RecordLine]:
    """Yield a line that counts log lines by level, then one for each kind of error and warning.

    Beyond `QUOTED_MAX` kinds, the others are counted. Times are shown in `zone`.
    """
    entries = [
        RecordReading(reading.position, reading.memory, entry)
        for reading in readings
        for entry in reading.value
    ]
    troubles = [item for item in entries if item.value.level in _WORDS["troubles"]]
    if len(entries) > 1 or not troubles:
        yield _make_overview_line(entries, zone)
    groups = group_by(
        troubles, lambda item: (item.value.level, _blank_values(item.value.message))
    )
    # Errors before warnings, and frequent before rare.
    kinds = sorted(
        groups.values(),
        key=lambda items: (items[0].value.level != "error", -len(items)),
    )
    for items in kinds[:QUOTED_MAX]:
        yield _make_trouble_line(items, zone)
    if hidden := kinds[QUOTED_MAX:]:
        items = list(chain.from_iterable(hidden))
        more = show_count(len(hidden), "more kind")
        lines = show_count(len(items), "line")
        text = f"The log has {more} of errors and warnings, in {lines}."
        source = "\n".join(group[0].value.message for group in hidden[:40])
        yield _make_log_line(text, source, items, LOG_WORTH)


def _make_log_line(
    text: str, source: str, items: Sequence[LogReading], worth: float
) -> RecordLine:
    """Return a summary's line about log lines, with the words of `source` as index terms."""
    return make_line(text, source, [item.position for item in items], worth)


def _make_overview_line(items: Sequence[LogReading], zone: tzinfo) -> RecordLine:
    """Return a line that counts log lines by level, with time span and frequent messages.

    Requests of an access log are counted by status.
    """
    entries = [item.value for item in items]
    first, last = _show_time(items[0], zone), _show_time(items[-1], zone)
    span = first if first == last else f"{first} to {last.rpartition(', ')[2]}"
    if all(entry.status for entry in entries):
        counts = Counter(entry.status for entry in entries).most_common()
        statuses = [f"{count} with status {status}" for status, count in counts]
        text = f"{show_count(len(entries), 'request')}, {span}: "
        text += join_names(statuses, 5)
    elif len(entries) == 1:
        message = shorten(entries[0].message, LOG_MESSAGE_CHARS_MAX)
        text = f"Log, {span}: {message.rstrip('.')}"
    else:
        counts = Counter(entry.level for entry in entries).most_common()
        levels = ", ".join(
            show_count(count, level)
            if level in _WORDS["troubles"]
            else f"{count} {level}"
            for level, count in counts
        )
        text = f"{show_count(len(entries), 'log line')}, {span} ({levels})"
        text += enclose(": ", _list_commonest(entries))
    quiet = [entry.message for entry in entries if entry.level == "info"]
    source = "\n".join(quiet[:200])[:SOURCE_CHARS_MAX]
    return _make_log_line(end_line(text), source, items, LOG_WORTH)


def _show_repetitions(messages: Sequence[str]) -> str:
    """Return " (3 times)" for equal messages, " (and 2 more like it)" for others.

    Empty for a single message.
    """
    if len(messages) == 1:
        return ""
    if len(set(messages)) == 1:
        return f" ({len(messages)} times)"
    return f" (and {len(messages) - 1} more like it)"


def _list_commonest(entries: Sequence[LogLine]) -> str:
    """Return the most frequent messages that are no errors or warnings, as text.

    Messages that differ only in values count as one.
    """
    plain = [
        entry.message for entry in entries if entry.level not in _WORDS["troubles"]
    ]
    groups = sorted(group_by(plain, _blank_values).values(), key=len, reverse=True)
    shown = [
        shorten(messages[0], INFO_CHARS_MAX).rstrip(".") + _show_repetitions(messages)
        for messages in groups[:TEMPLATES_MAX]
    ]
    return "; ".join(shown)


def _blank_values(message: str) -> str:
    """Return a log message with "#" for each value, so that messages of one kind are equal."""
    return _PATTERNS["values"].sub("#", message[:LOG_MESSAGE_CHARS_MAX])


def _make_trouble_line(items: Sequence[LogReading], zone: tzinfo) -> RecordLine:
    """Return a line that quotes the first of similar errors or warnings, and counts them."""
    entry = items[0].value
    message = shorten(entry.message, LOG_MESSAGE_CHARS_MAX).rstrip(".")
    message = enclose("status ", entry.status, " on ") + message
    messages = [item.value.message for item in items]
    head = f"{entry.level.capitalize()}, {_show_time(items[0], zone)}"
    text = end_line(f"{head}: {message}{_show_repetitions(messages)}")
    worth = ERROR_WORTH if entry.level == "error" else WARNING_WORTH
    return _make_log_line(text, "\n".join(messages[:20]), items, worth)


def _show_time(item: LogReading, zone: tzinfo) -> str:
    """Return a log line's time as text in `zone`, or else the time of day of its memory."""
    entry = item.value
    if entry.when:
        return show_moment(entry.when, zone)
    if entry.clock:
        return entry.clock[:5]
    return f"{in_zone(item.memory.created_at, zone):%H:%M}"


LOGS = RecordRule("log lines", read_log, write_logs)


TRACE_MESSAGE_CHARS_MAX = 200
TRACE_LINES_MAX = 2_000
OTHER_LINES_MAX = 4
NAMED_FRAMES_MAX = 12
TRACE_WORTH = 0.8
REPEATED_TRACE_WORTH = 0.9

_SIGNS = (
    "Traceback (most", "\n    at ", "\n\tat ", "   at ", "panic: ", "panicked at", "goroutine ",
    "Caused by: ", "Fatal error:", ":in `", ":in '",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class StackTrace:
    """Error of a stack trace, with the deepest frame that belongs to no library."""

    error: str
    message: str
    place: str
    """Function, file and line of the deepest frame that belongs to no library."""
    names: str = ""
    """Errors, files and functions of the frames that belong to no library."""
    repeats: int = 1


def read_trace(memory: MemoryRecord, _zone: tzinfo) -> StackTrace | None:
    """Return the error of the stack trace that is all a memory contains; None for other memories."""
    content = memory.content.strip("\n")
    is_framed = "\n" in content or "panicked at" in content
    if not is_framed or not any(sign in content for sign in _SIGNS):
        return None
    lines = split_nonblank_lines(content)[:TRACE_LINES_MAX]
    body = (*_FORMS["frames"], _PATTERNS["furniture"])
    others = [
        line
        for line in lines
        if not find_first_match(body, line)
        and not find_first_match(_FORMS["heads"], line.strip())
    ]
    if len(others) > OTHER_LINES_MAX + len(lines) // 2:
        return None
    for line in others:  # a sentence around the trace, or its first line
        is_remark = not line.startswith((" ", "\t")) and ": " not in line[:60]
        if is_prose(line) and (is_remark or line is lines[0]):
            return None
    frames = _read_frames(lines)
    if "Traceback (most" in content:  # the deepest frame is last, the error after it
        heads = _match_python_ends(lines)
        if not heads or not frames:
            return None
        repeats = content.count("Traceback (most recent call last)")
        is_same = len({match["error"] for match in heads}) == 1
        trace = _make_trace(lines, heads, heads[-1], frames[::-1])
        return replace(trace, repeats=repeats) if is_same else trace
    matches = (find_first_match(_FORMS["heads"], line.strip()) for line in lines)
    heads = list(filter(None, matches))
    if not heads or not (frames or heads[0].groupdict().get("path")):
        return None
    head = heads[0]
    if heads[-1][0].startswith("Caused"):  # of several causes the last counts
        head = heads[-1]
        frames = _read_frames("\n".join(lines).rpartition(head[0])[2].splitlines())
    return _make_trace(lines, heads, head, frames)


class _TraceFrame(NamedTuple):
    """A line of a stack trace: a function, its file and the number of the line."""

    function: str
    path: str
    line: str

    @property
    def is_library(self) -> bool:
        """Whether the frame belongs to a library, by its path or function."""
        return any(map(_PATTERNS["library"].search, (self.path, self.function)))

    @property
    def short_path(self) -> str:
        """The last three parts of the path."""
        return "/".join(self.path.removeprefix("file://").split("/")[-3:])

    def show_place(self) -> str:
        """Return "function (file, line 3)"; a function such as "<module>" is left out."""
        where = self.short_path + enclose(", line ", self.line)
        function = self.function.strip()
        is_named = function and not function.startswith("<")
        return f"{function} ({where})" if is_named else where


def _read_frames(lines: Sequence[str]) -> list[_TraceFrame]:
    """Return the stack frames in the lines of a trace, in their order."""
    matches = filter(None, (find_first_match(_FORMS["frames"], line) for line in lines))
    return [
        _TraceFrame(*map(match.groupdict("").get, _TraceFrame._fields, repeat("")))
        for match in matches
    ]


def _match_python_ends(lines: Sequence[str]) -> list[re.Match[str]]:
    """Return the match of each line that names a Python error right after a traceback's frames."""
    ends: list[re.Match[str]] = []
    inside = False
    for line in lines:
        bare = line.lstrip("| +-") if line.startswith(("  |", "  +")) else line
        if bare.startswith("Traceback (most"):
            inside = True
        elif inside and not bare.startswith((" ", "\t")):
            inside = False
            if match := _PATTERNS["python_end"].fullmatch(bare):
                ends.append(match)
    return ends


def _make_trace(
    lines: Sequence[str],
    heads: Sequence[re.Match[str]],
    head: re.Match[str],
    frames: Sequence[_TraceFrame],
) -> StackTrace:
    """Return the error in the match `head`, with the deepest frame that belongs to no library.

    `frames` come deepest first. `heads` are the matches of all errors, whose names become index
    terms.
    """
    parts = head.groupdict("")
    error, message = parts["error"], parts.get("message", "")
    if not message and error == "panicked":  # Rust has it on the next line
        below = next(index for index, line in enumerate(lines) if head[0] in line) + 1
        message = lines[below] if below < len(lines) else ""
    names = [match["error"] for match in heads]
    for frame in frames[-NAMED_FRAMES_MAX:]:
        if not frame.is_library:
            names += [frame.short_path, frame.function]
    own = [frame for frame in frames if not frame.is_library]
    places = [frame.show_place() for frame in own or frames]
    if path := parts.get("path"):
        places = [_TraceFrame("", path, parts.get("line", "")).show_place()]
    named = {
        "panicked": f"Panic in thread {parts.get('thread')}",
        "panic": "Panic",
        "fatal error": "Fatal error",
    }
    return StackTrace(
        error=named.get(error) or re.split(r"[.\\]|::", error)[-1],
        message=shorten(message, TRACE_MESSAGE_CHARS_MAX),
        place=places[0] if places else "",
        names=" ".join(names),
    )


def write_traces(
    readings: Sequence[RecordReading[StackTrace]], _zone: tzinfo
) -> Iterator[RecordLine]:
    """Yield a line for each distinct error and place, with the number of times it occurred.

    Messages that differ only in numbers count as equal.
    """
    kinds = group_by(
        readings,
        lambda reading: (
            reading.value.error,
            re.sub(r"\d+", "#", reading.value.message),
            reading.value.place,
        ),
    )
    for group in kinds.values():
        trace = group[0].value
        count = sum(reading.value.repeats for reading in group)
        text = trace.error + enclose(": ", trace.message.rstrip("."))
        text += enclose(" in ", trace.place)
        if count > 1:
            text += f", {count} times"
        worth = REPEATED_TRACE_WORTH if count > 1 else TRACE_WORTH
        positions = [reading.position for reading in group]
        yield make_line(f"{text}.", trace.names, positions, worth)


TRACES = RecordRule("stack traces", read_trace, write_traces)
