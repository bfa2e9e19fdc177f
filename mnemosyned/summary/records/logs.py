"""Log lines counted by level and template, and stack traces with the deepest frame of one's own code."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, tzinfo
from itertools import chain
from typing import Any

from mnemosyned.instants import in_zone
from mnemosyned.memory.values import MemoryRecord
from mnemosyned.summary.records.data import first_of, read_json
from mnemosyned.summary.records.lines import (
    Reading,
    RecordLine,
    Rule,
    below_command,
    counted,
    full_stop,
    is_prose,
    lines_of,
    listed,
    make_line,
    most_common,
    parse_moment,
    phrase,
    shorten,
    show_moment,
)
from mnemosyned.summary.records.matching import first_match, grouped

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

_TROUBLES = frozenset({"error", "warning"})
_LEVEL_NAMES = {
    "trace": "debug", "debug": "debug", "dbg": "debug", "verbose": "debug", "info": "info",
    "inf": "info", "notice": "info", "log": "info", "information": "info", "warn": "warning",
    "warning": "warning", "wrn": "warning", "error": "error", "err": "error", "severe": "error",
    "fatal": "error", "critical": "error", "crit": "error", "panic": "error", "alert": "error",
    "emerg": "error", "i": "info", "w": "warning", "e": "error", "d": "debug", "f": "error",
}  # fmt: skip
_LEVEL_WORD = (
    r"(?P<level>TRACE|DEBUG|DBG|VERBOSE|INFO|INF|NOTICE|LOG|WARN(?:ING)?|WRN|ERR(?:OR)?|SEVERE"
    r"|FATAL|CRIT(?:ICAL)?|PANIC|ALERT|EMERG)"
)
_LEVEL = rf"(?:[\[(<|]\s*)?{_LEVEL_WORD}(?:\s*[\])>|])?:?"
_ISO = (
    r"\[?(?P<when>\d{4}[-/]\d\d[-/]\d\d[T ,]\d\d:\d\d(?::\d\d)?)(?:[.,]\d+)?"
    r"(?P<offset> ?(?:Z|UTC|[+-]\d\d:?\d\d))?\]?"
)
_PAIR = re.compile(r'(?<![\w.])([\w.]+)=(?:"((?:[^"\\]|\\.)*)"|(\S+))')
_CRASH = re.compile(r"\w[\w.]*(?:Error|Exception)\b.*")
_LOG_FORMS = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"{_ISO}[ |:-]+{_LEVEL}(?:[ |:-]+(?P<message>.*))?",
        rf"{_ISO}[ |:-]+(?:\[[\w. /:-]+\] |[\w.-]+(?:\[\d+\])?:? ){{1,3}}{_LEVEL}[ |:-]+(?P<message>.*)",
        rf"{_LEVEL}[ |:-]+{_ISO}[ |:-]+(?P<message>.*)",
        rf"{_ISO} [\w.-]+\.{_LEVEL} (?P<message>.*)",
        (
            r"[A-Z][a-z]{2}\s+\d{1,2} (?P<clock>\d\d:\d\d:\d\d) [\w.-]+"
            r" (?P<unit>[\w./@-]+)(?:\[\d+\])?: (?P<message>.*)"
        ),
        r"(?P<letter>[IWEF])\d{4} (?P<clock>\d\d:\d\d:\d\d)\.\d+ +\d+ [\w.-]+:\d+\] (?P<message>.*)",
        rf"\[?(?P<clock>\d\d:\d\d:\d\d)(?:[.,]\d+)?\]?[ |:-]+{_LEVEL}[ |:-]+(?P<message>.*)",
    )
)
_ACCESS = re.compile(
    r"\S+ \S+ \S+ \[(?P<when>\d\d/\w{3}/\d{4}:\d\d:\d\d:\d\d [+-]\d{4})\]"
    r" \"(?P<method>[A-Z]+) (?P<path>\S+)[^\"]*\" (?P<status>\d{3}) \S+.*"
)
_INNER_LEVEL = re.compile(rf"{_LEVEL}[ :]+(?=\S)", re.IGNORECASE)
_FAILING = re.compile(
    r"\b(?:fail(?:ed|ure)?|errors?|fatal|panic|denied|refused|cannot|could not|out of memory"
    r"|killed process|segfault|timed out)\b",
    re.IGNORECASE,
)
_VALUES = re.compile(
    r"0x[0-9a-f]+|\b[0-9a-f]{8,}\b|\"[^\"]*\"|'[^']*'|\d+(?:[.,:]\d+)*", re.IGNORECASE
)
_STAMP_SIGN = re.compile(r"\d\d:\d\d")


@dataclass(frozen=True, slots=True)
class LogEntry:
    """One log line: its level, message, unit and time."""

    level: str
    message: str
    when: datetime | None = None
    clock: str = ""
    status: str = ""
    """The HTTP status, of a line of an access log."""


def read_log(memory: MemoryRecord) -> tuple[LogEntry, ...] | None:
    """Return the entries of a memory that is nothing but log lines."""
    content = memory.content.strip()
    if content.startswith("{"):
        return _read_json_log(memory)
    if not _STAMP_SIGN.search(content, 0, 120):
        return None
    _, lines = below_command(lines_of(content)[:LOG_LINES_MAX])
    entries: list[LogEntry] = []
    for line in lines:
        if entry := _read_line(line):
            entries.append(entry)
        elif entries and _may_continue(line):
            entries[-1] = _continued(entries[-1], line)
        else:
            return None
    others = len(lines) - len(entries)
    if not entries or others > CONTINUED_SHARE_MAX * len(lines):
        return None
    return tuple(entries)


def _may_continue(line: str) -> bool:
    return line.startswith((" ", "\t")) or not is_prose(line)


def _continued(entry: LogEntry, line: str) -> LogEntry:
    """Return an entry with the error that the line below it names."""
    if not _CRASH.fullmatch(line):
        return entry
    return replace(entry, message=f"{entry.message}: {line}")


def _read_line(line: str) -> LogEntry | None:
    if match := _ACCESS.fullmatch(line):
        return _read_request(match)
    if match := first_match(_LOG_FORMS, line):
        return _read_entry(match.groupdict(""))
    return _read_pairs(line) if "level=" in line else None


def _read_pairs(line: str) -> LogEntry | None:
    """Read a line of logfmt: `time=… level=… msg="…"` and further values."""
    pairs = {name: quoted or bare for name, quoted, bare in _PAIR.findall(line)}
    level = _LEVEL_NAMES.get(pairs.pop("level", "").lower())
    message = pairs.pop("msg", "") or pairs.pop("message", "")
    stamp = pairs.pop("time", "") or pairs.pop("ts", "")
    when = _instant(stamp)
    if not level or not message or not when:
        return None
    values = ", ".join(f"{name} {value}" for name, value in pairs.items())
    return LogEntry(level, message + phrase(" (", values, ")"), when)


def _read_request(match: re.Match[str]) -> LogEntry:
    status = match["status"]
    path = match["path"].partition("?")[0]
    level = "error" if status >= "500" else "info"
    stamp = match["when"].replace("/", " ").replace(":", " ", 1).replace(" +", "+", 1)
    clock = match["when"][12:20]
    return LogEntry(level, f"{match['method']} {path}", _instant(stamp), clock, status)


def _read_entry(parts: dict[str, str]) -> LogEntry:
    message, unit = parts["message"], parts.get("unit", "")
    name = parts.get("level") or parts.get("letter", "")
    if unit:
        name, message = _inner_level(message)
    trouble = "error" if _FAILING.search(message) else "info"
    said = phrase("", unit, ": ") + message
    stamp = parts.get("when", "").replace(",", " ")
    offset = parts.get("offset", "").strip()
    return LogEntry(
        level=_LEVEL_NAMES.get(name.lower(), trouble),
        message=said.strip(),
        when=_instant(f"{stamp}{offset}"),
        clock=parts.get("clock", ""),
    )


def _inner_level(message: str) -> tuple[str, str]:
    """Return the level at the beginning of a message, and what follows it."""
    match = _INNER_LEVEL.match(message)
    return (match["level"], message[match.end() :]) if match else ("", message)


def _instant(text: str) -> datetime | None:
    moment = parse_moment(text)
    return moment if isinstance(moment, datetime) else None


def _read_json_log(memory: MemoryRecord) -> tuple[LogEntry, ...] | None:
    """Read JSON lines that have a level, a message and a time."""
    value = read_json(memory)
    objects = value if isinstance(value, list) else [value]
    entries: list[LogEntry] = []
    for item in objects[:LOG_LINES_MAX]:
        entry = _read_object(item) if isinstance(item, dict) else None
        if entry is None:
            return None
        entries.append(entry)
    return tuple(entries)


def _read_object(item: Mapping[str, Any]) -> LogEntry | None:
    level = first_of(item, "level", "severity", "levelname")
    message = first_of(item, "msg", "message", "event")
    when = first_of(item, "time", "timestamp", "ts")
    name = _LEVEL_NAMES.get(str(level).lower())
    if not name or not isinstance(message, str) or when is None:
        return None
    cause = first_of(item, "error", "err", "exception")
    said = f"{message}: {cause}" if isinstance(cause, str) else message
    return LogEntry(name, said, _instant(str(when)))


@dataclass(frozen=True, slots=True)
class _PlacedEntry:
    """An entry with its memory."""

    reading: Reading[tuple[LogEntry, ...]]
    entry: LogEntry


def write_logs(
    readings: Sequence[Reading[tuple[LogEntry, ...]]], zone: tzinfo
) -> Iterator[RecordLine]:
    """Write how many lines there are of each level, and quote errors and warnings once."""
    placed = [
        _PlacedEntry(reading, entry) for reading in readings for entry in reading.value
    ]
    troubles = [item for item in placed if item.entry.level in _TROUBLES]
    if len(placed) > 1 or not troubles:
        yield _overview(placed, zone)
    kinds = sorted(grouped(troubles, _kind).values(), key=_rank)
    for items in kinds[:QUOTED_MAX]:
        yield _quoted(items, zone)
    hidden = kinds[QUOTED_MAX:]
    if hidden:
        yield _left_over(hidden)


def _kind(item: _PlacedEntry) -> tuple[str, str]:
    return item.entry.level, _template(item.entry.message)


def _rank(items: Sequence[_PlacedEntry]) -> tuple[bool, int]:
    """Order errors before warnings, and those that came often before the others."""
    return items[0].entry.level != "error", -len(items)


def _overview(placed: Sequence[_PlacedEntry], zone: tzinfo) -> RecordLine:
    """Return how many lines of which levels from when to when, and the commonest messages."""
    entries = [item.entry for item in placed]
    first, last = _time(placed[0], zone), _time(placed[-1], zone)
    span = first if first == last else f"{first} to {last.rpartition(', ')[2]}"
    if all(entry.status for entry in entries):
        text = f"{counted(len(entries), 'request')}, {span}: {_statuses(entries)}"
    elif len(entries) == 1:
        message = shorten(entries[0].message, LOG_MESSAGE_CHARS_MAX)
        text = f"Log, {span}: {message.rstrip('.')}"
    else:
        text = f"{counted(len(entries), 'log line')}, {span} ({_levels(entries)})"
        text += phrase(": ", _commonest(entries))
    quiet = [entry.message for entry in entries if entry.level == "info"]
    source = "\n".join(quiet[:200])[:SOURCE_CHARS_MAX]
    return _entry_line(full_stop(text), source, placed, LOG_WORTH)


def _entry_line(
    text: str, source: str, items: Sequence[_PlacedEntry], worth: float
) -> RecordLine:
    positions = [item.reading.position for item in items]
    return make_line(text, source, positions, worth)


def _statuses(entries: Sequence[LogEntry]) -> str:
    counts = most_common(entry.status for entry in entries)
    return listed([f"{count} with status {status}" for status, count in counts], 5)


def _levels(entries: Sequence[LogEntry]) -> str:
    counts = most_common(entry.level for entry in entries)
    return ", ".join(_share(level, count) for level, count in counts)


def _share(level: str, count: int) -> str:
    """Return "2 warnings" or "3 info"."""
    return counted(count, level) if level in _TROUBLES else f"{count} {level}"


def _times(messages: Sequence[str]) -> str:
    """Return how often a message came, and whether always in the same words."""
    if len(messages) == 1:
        return ""
    if len(set(messages)) == 1:
        return f" ({len(messages)} times)"
    return f" (and {len(messages) - 1} more like it)"


def _commonest(entries: Sequence[LogEntry]) -> str:
    """Return the commonest plain messages, the first of each template as it stands."""
    plain = [entry.message for entry in entries if entry.level not in _TROUBLES]
    groups = sorted(grouped(plain, _template).values(), key=len, reverse=True)
    shown = [
        shorten(messages[0], INFO_CHARS_MAX).rstrip(".") + _times(messages)
        for messages in groups[:TEMPLATES_MAX]
    ]
    return "; ".join(shown)


def _template(message: str) -> str:
    """Return a message with its values blanked, alike for messages that differ in them only."""
    return _VALUES.sub("#", message[:LOG_MESSAGE_CHARS_MAX])


def _quoted(items: Sequence[_PlacedEntry], zone: tzinfo) -> RecordLine:
    """Return an error or warning in its own words, and how often it came."""
    entry = items[0].entry
    message = shorten(entry.message, LOG_MESSAGE_CHARS_MAX).rstrip(".")
    message = phrase("status ", entry.status, " on ") + message
    messages = [item.entry.message for item in items]
    head = f"{entry.level.capitalize()}, {_time(items[0], zone)}"
    text = full_stop(f"{head}: {message}{_times(messages)}")
    worth = ERROR_WORTH if entry.level == "error" else WARNING_WORTH
    return _entry_line(text, "\n".join(messages[:20]), items, worth)


def _left_over(groups: Sequence[Sequence[_PlacedEntry]]) -> RecordLine:
    items = list(chain.from_iterable(groups))
    kinds = counted(len(groups), "more kind")
    lines = counted(len(items), "line")
    text = f"The log has {kinds} of errors and warnings, in {lines}."
    source = "\n".join(group[0].entry.message for group in groups[:40])
    return _entry_line(text, source, items, LOG_WORTH)


def _time(item: _PlacedEntry, zone: tzinfo) -> str:
    """Return the time of an entry: its own, or the time of day with the memory's date."""
    entry = item.entry
    if entry.when:
        return show_moment(entry.when, zone)
    if entry.clock:
        return entry.clock[:5]
    return f"{in_zone(item.reading.memory.created_at, zone):%H:%M}"


LOGS = Rule("log lines", read_log, write_logs)


TRACE_MESSAGE_CHARS_MAX = 200
TRACE_LINES_MAX = 2_000
OTHER_LINES_MAX = 4
NAMED_FRAMES_MAX = 12
TRACE_WORTH = 0.8
REPEATED_TRACE_WORTH = 0.9

_ERROR = (
    r"(?P<error>[A-Za-z_][\w.$:\\]*(?:Error|Exception|Warning|Interrupt|Exit|Fault|Failure|Panic)"
    r"|Error|Exception)"
)
_THREAD = r"thread '(?P<thread>[^']*)'(?: \(\d+\))? (?P<error>panicked)"
_PYTHON_END = re.compile(
    r"(?P<error>[A-Za-z_][\w.]*)(?:: (?P<message>.*))?(?:\s*\|.*)?"
)
_HEADS = tuple(
    re.compile(pattern)
    for pattern in (
        (
            r"(?:Uncaught |Unhandled rejection |\[?Unhandled )?(?:Exception in thread \S+ )?"
            rf"{_ERROR}\]?(?:: (?P<message>.*?))?(?: \{{)?"
        ),
        rf"Caused by: {_ERROR}(?:: (?P<message>.*))?",
        rf"Unhandled [Ee]xception[.:] {_ERROR}(?:: (?P<message>.*))?",
        (
            rf"(?:PHP )?Fatal error:\s+Uncaught {_ERROR}: (?P<message>.*?)"
            r"(?: in (?P<path>\S+?):(?P<line>\d+))?"
        ),
        r"(?P<error>panic): (?P<message>.*)",
        r"(?P<error>fatal error): (?P<message>.*)",
        rf"{_THREAD} at '(?P<message>.*)', (?P<path>[^:]+):(?P<line>\d+)(?::\d+)?",
        rf"{_THREAD} at (?P<path>[^:']+):(?P<line>\d+)(?::\d+)?:?",
        rf"(?P<path>[^\s:]+\.rb):(?P<line>\d+):in [`'](?P<function>[^']*)': (?P<message>.*) \({_ERROR}\)",
    )
)
_FRAMES = tuple(
    re.compile(pattern)
    for pattern in (
        r'\s*File "(?P<path>[^"]+)", line (?P<line>\d+)(?:, in (?P<function>.+))?',
        r"\s+at (?:async )?(?P<function>[^()]+?) \((?P<path>[^()]+?):(?P<line>\d+)(?::\d+)?\)(?: \{)?",
        r"\s+at (?P<path>(?:file://)?[^\s()]+?):(?P<line>\d+):\d+",
        r"\s+at (?P<function>[\w.$<>/@]+)\((?P<path>[^():]+)(?::(?P<line>\d+))?\)(?: ~?\[.*\])?",
        r"\s+at (?P<function>.+?) in (?P<path>.+?):line (?P<line>\d+)",
        r"\s+(?P<path>/[^\s:]+\.go):(?P<line>\d+)(?: \+0x[0-9a-f]+)?",
        r"\s+at (?P<path>[^\s:]+\.rs):(?P<line>\d+)(?::\d+)?",
        r"\s+(?:\d+: from |from )(?P<path>[^\s:]+):(?P<line>\d+):in [`'](?P<function>[^']*)'",
        r"#\d+ (?P<path>/[^\s(]+)\((?P<line>\d+)\): (?P<function>.*)",
    )
)
_FOREIGN = re.compile(
    r"site-packages|dist-packages|node_modules|node:|internal/|<frozen|<anonymous>|<string>"
    r"|lib/python3|^(?:java|javax|jdk|sun|kotlin|scala|jakarta)\.|^org\.(?:springframework|apache|junit)"
    r"|/usr/(?:local/)?(?:lib|go)/|/rustc/|/go/pkg/mod/|/vendor/|^System\.|^Microsoft\.|/gems/"
)
_FURNITURE = re.compile(
    r"Traceback \(most recent call last\):|During handling of the above exception.*"
    r"|The above exception was the direct cause.*|\s*\.\.\. \d+ (?:more|common frames omitted)"
    r"|goroutine \d+.*:|\s*\[signal .*|created by .*|exit status \d+|note: .*|stack backtrace:"
    r"|\s+\d+: .*|\s+[~^]+\s*|[\w./*()-]{1,200}?\(.*\)|Stack trace:|#\d+ .*|Node\.js v.*|\s+thrown in .*"
    r"|\s+--- End of .*|\s+at .*|\s+\[Previous line repeated.*|main\..*|.*\{|\}|\s+throw .*|\S+:\d+"
)
_SIGNS = (
    "Traceback (most", "\n    at ", "\n\tat ", "   at ", "panic: ", "panicked at", "goroutine ",
    "Caused by: ", "Fatal error:", ":in `", ":in '",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Trace:
    """A stack trace's gist."""

    error: str
    message: str
    place: str
    """Function, file and line of the deepest frame of one's own code."""
    names: str = ""
    """Errors, files and functions of one's own code on the way."""
    repeats: int = 1


def read_trace(memory: MemoryRecord) -> Trace | None:
    """Return the gist of a memory that is nothing but a stack trace."""
    content = memory.content.strip("\n")
    if not _may_be_trace(content):
        return None
    lines = lines_of(content)[:TRACE_LINES_MAX]
    if _has_remarks(lines):
        return None
    if "Traceback (most" in content:
        return _python_trace(lines, content.count("Traceback (most recent call last)"))
    return _other_trace(lines)


def _may_be_trace(content: str) -> bool:
    framed = "\n" in content or "panicked at" in content
    return framed and any(sign in content for sign in _SIGNS)


def _has_remarks(lines: Sequence[str]) -> bool:
    """Tell whether a person wrote some of the lines, or too many are no part of a trace."""
    others = [line for line in lines if not _is_part(line)]
    opens = is_prose(lines[0]) and not _is_part(lines[0])
    too_many = len(others) > OTHER_LINES_MAX + len(lines) // 2
    return opens or too_many or any(map(_is_remark, others))


def _python_trace(lines: Sequence[str], repeats: int) -> Trace | None:
    """Read tracebacks of Python: the deepest frame comes last, the error below it."""
    heads, frames = _python_ends(lines), _frames(lines)
    if not heads or not frames:
        return None
    same = len({match["error"] for match in heads}) == 1
    return _trace_gist(
        lines, heads, heads[-1], frames[::-1], repeats=repeats if same else 1
    )


def _other_trace(lines: Sequence[str]) -> Trace | None:
    """Read traces with the error on top; the last cause is what went wrong."""
    heads, frames = _heads(lines), _frames(lines)
    if not heads or not (frames or heads[0].groupdict().get("path")):
        return None
    head = heads[0]
    if heads[-1][0].startswith("Caused"):
        head = heads[-1]
        frames = _frames("\n".join(lines).rpartition(head[0])[2].splitlines())
    return _trace_gist(lines, heads, head, frames)


def _trace_gist(
    lines: Sequence[str],
    heads: Sequence[re.Match[str]],
    head: re.Match[str],
    frames: Sequence[re.Match[str]],
    *,
    repeats: int = 1,
) -> Trace:
    """Return the gist of a trace from its frames, the deepest first."""
    message = head.groupdict().get("message") or _panic_message(lines, head)
    return Trace(
        error=_error_name(head),
        message=shorten(message, TRACE_MESSAGE_CHARS_MAX),
        place=_frame_place(frames, head),
        names=_names(heads, frames),
        repeats=repeats,
    )


def _frames(lines: Sequence[str]) -> list[re.Match[str]]:
    return [match for line in lines if (match := first_match(_FRAMES, line))]


def _heads(lines: Sequence[str]) -> list[re.Match[str]]:
    return [match for line in lines if (match := first_match(_HEADS, line.strip()))]


def _python_ends(lines: Sequence[str]) -> list[re.Match[str]]:
    """Return the lines that end a Python traceback: flush left, right below a frame."""
    ends: list[re.Match[str]] = []
    inside = False
    for line in lines:
        bare = line.lstrip("| +-") if line.startswith(("  |", "  +")) else line
        if bare.startswith("Traceback (most"):
            inside = True
        elif inside and not bare.startswith((" ", "\t")):
            inside = False
            if match := _PYTHON_END.fullmatch(bare):
                ends.append(match)
    return ends


def _is_part(line: str) -> bool:
    """Tell whether a line has a form that stack traces are made of."""
    body = first_match((*_FRAMES, _FURNITURE), line)
    return bool(body or first_match(_HEADS, line.strip()))


def _is_remark(line: str) -> bool:
    """Tell whether a line that is no part of a trace was written by a person."""
    return not line.startswith((" ", "\t")) and is_prose(line) and ": " not in line[:60]


def _panic_message(lines: Sequence[str], head: re.Match[str]) -> str:
    """Return the line below a panic of Rust, where its message stands."""
    if head["error"] != "panicked":
        return ""
    below = next(index for index, line in enumerate(lines) if head[0] in line) + 1
    return lines[below] if below < len(lines) else ""


def _error_name(head: re.Match[str]) -> str:
    error = head["error"]
    if error == "panicked":
        return f"Panic in thread {head['thread']}"
    if error == "panic":
        return "Panic"
    return re.split(r"[.\\]|::", error)[-1] if error != "fatal error" else "Fatal error"


def _frame_place(frames: Sequence[re.Match[str]], head: re.Match[str]) -> str:
    """Return where it happened: the first own frame, or else the first of all."""
    if "path" in _trace_parts(head):
        return _file_and_line(_trace_parts(head))
    own = [frame for frame in frames if not _is_foreign(frame)]
    if not frames:
        return ""
    frame = _trace_parts((own or frames)[0])
    where = _file_and_line(frame)
    function = frame.get("function", "").strip()
    is_named = function and not function.startswith("<")
    return f"{function} ({where})" if is_named else where


def _trace_parts(match: re.Match[str]) -> dict[str, str]:
    """Return the groups of a match that have a text."""
    return {name: text for name, text in match.groupdict().items() if text}


def _file_and_line(parts: Mapping[str, str]) -> str:
    return _short_path(parts["path"]) + phrase(", line ", parts.get("line", ""))


def _names(heads: Sequence[re.Match[str]], frames: Sequence[re.Match[str]]) -> str:
    """Return the names worth finding a trace by."""
    names = [match["error"] for match in heads]
    for frame in frames[-NAMED_FRAMES_MAX:]:
        if not _is_foreign(frame):
            parts = _trace_parts(frame)
            names += [_short_path(parts["path"]), parts.get("function", "")]
    return " ".join(names)


def _is_foreign(frame: re.Match[str]) -> bool:
    parts = _trace_parts(frame)
    names = (parts["path"], parts.get("function", ""))
    return any(map(_FOREIGN.search, names))


def _short_path(path: str) -> str:
    """Return the last three parts of a path: enough to find the file."""
    return "/".join(path.removeprefix("file://").split("/")[-3:])


def write_traces(
    readings: Sequence[Reading[Trace]], _zone: tzinfo
) -> Iterator[RecordLine]:
    """Write each error with its place once, and how often it came."""
    for group in grouped(readings, _cause).values():
        trace = group[0].value
        count = sum(reading.value.repeats for reading in group)
        text = trace.error + phrase(": ", trace.message.rstrip("."))
        text += phrase(" in ", trace.place)
        worth = TRACE_WORTH
        if count > 1:
            text += f", {count} times"
            worth = REPEATED_TRACE_WORTH
        positions = [reading.position for reading in group]
        yield make_line(f"{text}.", trace.names, positions, worth)


def _cause(reading: Reading[Trace]) -> tuple[str, str, str]:
    """Return what traces of one fault have in common."""
    trace = reading.value
    return trace.error, re.sub(r"\d+", "#", trace.message), trace.place


TRACES = Rule("stack traces", read_trace, write_traces)
