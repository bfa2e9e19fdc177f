"""Log lines: counted by level and template, errors quoted, requests counted by status."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, tzinfo
from itertools import chain
from typing import Any

from mnemosyned.domain.instants import in_zone
from mnemosyned.domain.memory import MemoryRecord
from mnemosyned.domain.summary.records.json_records import first_of, read_json
from mnemosyned.domain.summary.records.lines import (
    Reading,
    RecordLine,
    Rule,
    make_line,
)
from mnemosyned.domain.summary.records.moments import (
    parse_moment,
    show_moment,
)
from mnemosyned.domain.summary.records.wording import (
    below_command,
    counted,
    full_stop,
    is_prose,
    lines_of,
    listed,
    most_common,
    phrase,
    shorten,
)
from mnemosyned.domain.text.matching import first_match, grouped

LINES_MAX = 20_000
QUOTED_MAX = 6
TEMPLATES_MAX = 3
MESSAGE_CHARS_MAX = 180
INFO_CHARS_MAX = 90
CONTINUED_SHARE_MAX = 0.8
SOURCE_CHARS_MAX = 6_000
WORTH = 0.3
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
_FORMS = tuple(
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
class Entry:
    """One log line: its level, message, unit and time."""

    level: str
    message: str
    when: datetime | None = None
    clock: str = ""
    status: str = ""
    """The HTTP status, of a line of an access log."""


def read_log(memory: MemoryRecord) -> tuple[Entry, ...] | None:
    """Return the entries of a memory that is nothing but log lines."""
    content = memory.content.strip()
    if content.startswith("{"):
        return _read_json_log(memory)
    if not _STAMP_SIGN.search(content, 0, 120):
        return None
    _, lines = below_command(lines_of(content)[:LINES_MAX])
    entries: list[Entry] = []
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


def _continued(entry: Entry, line: str) -> Entry:
    """Return an entry with the error that the line below it names."""
    if not _CRASH.fullmatch(line):
        return entry
    return replace(entry, message=f"{entry.message}: {line}")


def _read_line(line: str) -> Entry | None:
    if match := _ACCESS.fullmatch(line):
        return _read_request(match)
    if match := first_match(_FORMS, line):
        return _read_entry(match.groupdict(""))
    return _read_pairs(line) if "level=" in line else None


def _read_pairs(line: str) -> Entry | None:
    """Read a line of logfmt: `time=… level=… msg="…"` and further values."""
    pairs = {name: quoted or bare for name, quoted, bare in _PAIR.findall(line)}
    level = _LEVEL_NAMES.get(pairs.pop("level", "").lower())
    message = pairs.pop("msg", "") or pairs.pop("message", "")
    stamp = pairs.pop("time", "") or pairs.pop("ts", "")
    when = _instant(stamp)
    if not level or not message or not when:
        return None
    values = ", ".join(f"{name} {value}" for name, value in pairs.items())
    return Entry(level, message + phrase(" (", values, ")"), when)


def _read_request(match: re.Match[str]) -> Entry:
    status = match["status"]
    path = match["path"].partition("?")[0]
    level = "error" if status >= "500" else "info"
    stamp = match["when"].replace("/", " ").replace(":", " ", 1).replace(" +", "+", 1)
    clock = match["when"][12:20]
    return Entry(level, f"{match['method']} {path}", _instant(stamp), clock, status)


def _read_entry(parts: dict[str, str]) -> Entry:
    message, unit = parts["message"], parts.get("unit", "")
    name = parts.get("level") or parts.get("letter", "")
    if unit:
        name, message = _inner_level(message)
    trouble = "error" if _FAILING.search(message) else "info"
    said = phrase("", unit, ": ") + message
    stamp = parts.get("when", "").replace(",", " ")
    offset = parts.get("offset", "").strip()
    return Entry(
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


def _read_json_log(memory: MemoryRecord) -> tuple[Entry, ...] | None:
    """Read JSON lines that have a level, a message and a time."""
    value = read_json(memory)
    objects = value if isinstance(value, list) else [value]
    entries: list[Entry] = []
    for item in objects[:LINES_MAX]:
        entry = _read_object(item) if isinstance(item, dict) else None
        if entry is None:
            return None
        entries.append(entry)
    return tuple(entries)


def _read_object(item: Mapping[str, Any]) -> Entry | None:
    level = first_of(item, "level", "severity", "levelname")
    message = first_of(item, "msg", "message", "event")
    when = first_of(item, "time", "timestamp", "ts")
    name = _LEVEL_NAMES.get(str(level).lower())
    if not name or not isinstance(message, str) or when is None:
        return None
    cause = first_of(item, "error", "err", "exception")
    said = f"{message}: {cause}" if isinstance(cause, str) else message
    return Entry(name, said, _instant(str(when)))


@dataclass(frozen=True, slots=True)
class _Placed:
    """An entry with its memory."""

    reading: Reading[tuple[Entry, ...]]
    entry: Entry


def write_logs(
    readings: Sequence[Reading[tuple[Entry, ...]]], zone: tzinfo
) -> Iterator[RecordLine]:
    """Write how many lines there are of each level, and quote errors and warnings once."""
    placed = [
        _Placed(reading, entry) for reading in readings for entry in reading.value
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


def _kind(item: _Placed) -> tuple[str, str]:
    return item.entry.level, _template(item.entry.message)


def _rank(items: Sequence[_Placed]) -> tuple[bool, int]:
    """Order errors before warnings, and those that came often before the others."""
    return items[0].entry.level != "error", -len(items)


def _overview(placed: Sequence[_Placed], zone: tzinfo) -> RecordLine:
    """Return how many lines of which levels from when to when, and the commonest messages."""
    entries = [item.entry for item in placed]
    first, last = _time(placed[0], zone), _time(placed[-1], zone)
    span = first if first == last else f"{first} to {last.rpartition(', ')[2]}"
    if all(entry.status for entry in entries):
        text = f"{counted(len(entries), 'request')}, {span}: {_statuses(entries)}"
    elif len(entries) == 1:
        message = shorten(entries[0].message, MESSAGE_CHARS_MAX)
        text = f"Log, {span}: {message.rstrip('.')}"
    else:
        text = f"{counted(len(entries), 'log line')}, {span} ({_levels(entries)})"
        text += phrase(": ", _commonest(entries))
    quiet = [entry.message for entry in entries if entry.level == "info"]
    source = "\n".join(quiet[:200])[:SOURCE_CHARS_MAX]
    return _line(full_stop(text), source, placed, WORTH)


def _line(text: str, source: str, items: Sequence[_Placed], worth: float) -> RecordLine:
    positions = [item.reading.position for item in items]
    return make_line(text, source, positions, worth)


def _statuses(entries: Sequence[Entry]) -> str:
    counts = most_common(entry.status for entry in entries)
    return listed([f"{count} with status {status}" for status, count in counts], 5)


def _levels(entries: Sequence[Entry]) -> str:
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


def _commonest(entries: Sequence[Entry]) -> str:
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
    return _VALUES.sub("#", message[:MESSAGE_CHARS_MAX])


def _quoted(items: Sequence[_Placed], zone: tzinfo) -> RecordLine:
    """Return an error or warning in its own words, and how often it came."""
    entry = items[0].entry
    message = shorten(entry.message, MESSAGE_CHARS_MAX).rstrip(".")
    message = phrase("status ", entry.status, " on ") + message
    messages = [item.entry.message for item in items]
    head = f"{entry.level.capitalize()}, {_time(items[0], zone)}"
    text = full_stop(f"{head}: {message}{_times(messages)}")
    worth = ERROR_WORTH if entry.level == "error" else WARNING_WORTH
    return _line(text, "\n".join(messages[:20]), items, worth)


def _left_over(groups: Sequence[Sequence[_Placed]]) -> RecordLine:
    items = list(chain.from_iterable(groups))
    kinds = counted(len(groups), "more kind")
    lines = counted(len(items), "line")
    text = f"The log has {kinds} of errors and warnings, in {lines}."
    source = "\n".join(group[0].entry.message for group in groups[:40])
    return _line(text, source, items, WORTH)


def _time(item: _Placed, zone: tzinfo) -> str:
    """Return the time of an entry: its own, or the time of day with the memory's date."""
    entry = item.entry
    if entry.when:
        return show_moment(entry.when, zone)
    if entry.clock:
        return entry.clock[:5]
    return f"{in_zone(item.reading.memory.created_at, zone):%H:%M}"


LOGS = Rule("log lines", read_log, write_logs)
