"""Log lines: counted by level and template, errors quoted, requests counted by status."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, tzinfo
from typing import Any

from mnemosyned.domain.instants import in_zone
from mnemosyned.domain.memory import MemoryRecord
from mnemosyned.domain.summary.records.json_records import read_json
from mnemosyned.domain.summary.records.lines import Reading, RecordLine, Rule
from mnemosyned.domain.summary.records.moments import (
    parse_moment,
    show_moment,
)
from mnemosyned.domain.summary.records.wording import (
    counted,
    index_terms,
    is_prose,
    lines_of,
    listed,
    most_common,
    shorten,
)

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
    lines = lines_of(content)[:LINES_MAX]
    if lines[0].startswith("$ ") and len(lines) > 1:
        lines = lines[1:]
    entries: list[Entry] = []
    others = 0
    for line in lines:
        entry = _read_line(line)
        if entry:
            entries.append(entry)
        elif not entries or (is_prose(line) and not line.startswith((" ", "\t"))):
            return None
        else:
            others += 1
            if _CRASH.fullmatch(line):
                last = entries[-1]
                entries[-1] = replace(last, message=f"{last.message}: {line}")
    if others > CONTINUED_SHARE_MAX * len(lines):
        return None
    return tuple(entries) or None


def _read_line(line: str) -> Entry | None:
    if match := _ACCESS.fullmatch(line):
        return _read_request(match)
    for form in _FORMS:
        if match := form.fullmatch(line):
            return _read_entry(match.groupdict())
    return _read_pairs(line) if "level=" in line else None


def _read_pairs(line: str) -> Entry | None:
    """Read a line of logfmt: `time=… level=… msg="…"` and further values."""
    pairs = {name: quoted or bare for name, quoted, bare in _PAIR.findall(line)}
    level = _LEVEL_NAMES.get(pairs.pop("level", "").lower())
    message = pairs.pop("msg", "") or pairs.pop("message", "")
    stamp = pairs.pop("time", "") or pairs.pop("ts", "")
    when = parse_moment(stamp)
    if not level or not message or not isinstance(when, datetime):
        return None
    values = ", ".join(f"{name} {value}" for name, value in pairs.items())
    return Entry(level, f"{message} ({values})" if values else message, when)


def _read_request(match: re.Match[str]) -> Entry:
    status = match["status"]
    path = match["path"].partition("?")[0]
    level = "error" if status >= "500" else "info"
    when = parse_moment(
        match["when"].replace("/", " ").replace(":", " ", 1).replace(" +", "+", 1)
    )
    moment = when if isinstance(when, datetime) else None
    clock = match["when"][12:20]
    return Entry(level, f"{match['method']} {path}", moment, clock, status)


def _read_entry(parts: dict[str, str | None]) -> Entry:
    message = parts.get("message") or ""
    name = parts.get("level") or parts.get("letter") or ""
    unit = parts.get("unit")
    if unit and not name:
        name, message = _inner_level(message)
    trouble = "error" if _FAILING.search(message) else "info"
    level = _LEVEL_NAMES.get(name.lower(), trouble)
    said = f"{unit}: {message}" if unit else message
    stamp = (parts.get("when") or "").replace(",", " ")
    offset = (parts.get("offset") or "").strip()
    return Entry(
        level, said.strip(), _instant(f"{stamp}{offset}"), parts.get("clock") or ""
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
    level = _first_of(item, "level", "severity", "levelname")
    message = _first_of(item, "msg", "message", "event")
    when = _first_of(item, "time", "timestamp", "ts")
    name = _LEVEL_NAMES.get(str(level).lower())
    if not name or not isinstance(message, str) or when is None:
        return None
    cause = _first_of(item, "error", "err", "exception")
    said = f"{message}: {cause}" if isinstance(cause, str) else message
    return Entry(name, said, _instant(str(when)))


def _first_of(item: Mapping[str, Any], *keys: str) -> object | None:
    return next((item[key] for key in keys if item.get(key)), None)


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
    troubles: dict[tuple[str, str], list[_Placed]] = {}
    for item in placed:
        if item.entry.level in {"error", "warning"}:
            key = (item.entry.level, _template(item.entry.message))
            troubles.setdefault(key, []).append(item)
    if len(placed) > 1 or not troubles:
        yield _overview(placed, zone)
    ranked = sorted(
        troubles.items(), key=lambda pair: (pair[0][0] != "error", -len(pair[1]))
    )
    for (level, _), items in ranked[:QUOTED_MAX]:
        yield _quoted(level, items, zone)
    hidden = ranked[QUOTED_MAX:]
    if hidden:
        yield _left_over([items for _, items in hidden])


def _overview(placed: Sequence[_Placed], zone: tzinfo) -> RecordLine:
    """Return how many lines of which levels from when to when, and the commonest messages."""
    levels = most_common(item.entry.level for item in placed)
    requests = [item.entry for item in placed if item.entry.status]
    first, last = _time(placed[0], zone), _time(placed[-1], zone)
    span = first if first == last else f"{first} to {last.rpartition(', ')[2]}"
    if len(requests) == len(placed):
        statuses = most_common(entry.status for entry in requests)
        shares = [f"{count} with status {status}" for status, count in statuses]
        head = f"{counted(len(placed), 'request')}, {span}: {listed(shares, 5)}"
        text = f"{head}."
    elif len(placed) == 1:
        message = shorten(placed[0].entry.message, MESSAGE_CHARS_MAX)
        text = f"Log, {span}: {message.rstrip('.')}."
    else:
        shares = [_share(level, count) for level, count in levels]
        text = f"{counted(len(placed), 'log line')}, {span} ({', '.join(shares)})"
        text += f"{_commonest(placed)}."
    quiet = [item.entry.message for item in placed if item.entry.level == "info"]
    source = "\n".join(quiet[:200])
    return RecordLine(
        text=text.replace("….", "…"),
        index_terms=index_terms(source[:SOURCE_CHARS_MAX], text),
        position=placed[0].reading.position,
        worth=WORTH,
        memories=_memories(placed),
    )


def _share(level: str, count: int) -> str:
    """Return "2 warnings" or "3 info"."""
    return (
        counted(count, level) if level in {"error", "warning"} else f"{count} {level}"
    )


def _times(messages: Sequence[str]) -> str:
    """Return how often a message came, and whether always in the same words."""
    if len(messages) == 1:
        return ""
    if len(set(messages)) == 1:
        return f" ({len(messages)} times)"
    return f" (and {len(messages) - 1} more like it)"


def _commonest(placed: Sequence[_Placed]) -> str:
    """Return the commonest plain messages, the first of each template as it stands."""
    plain = [item.entry for item in placed if item.entry.level in {"info", "debug"}]
    groups: dict[str, list[str]] = {}
    for entry in plain:
        groups.setdefault(_template(entry.message), []).append(entry.message)
    ranked = sorted(groups.values(), key=lambda messages: -len(messages))
    shown = [
        shorten(messages[0], INFO_CHARS_MAX).rstrip(".") + _times(messages)
        for messages in ranked[:TEMPLATES_MAX]
    ]
    return f": {'; '.join(shown)}" if shown else ""


def _template(message: str) -> str:
    """Return a message with its values blanked, alike for messages that differ in them only."""
    return _VALUES.sub("#", message[:MESSAGE_CHARS_MAX])


def _quoted(level: str, items: Sequence[_Placed], zone: tzinfo) -> RecordLine:
    """Return an error or warning in its own words, and how often it came."""
    first = items[0]
    entry = first.entry
    message = shorten(entry.message, MESSAGE_CHARS_MAX).rstrip(".")
    if entry.status:
        message = f"status {entry.status} on {message}"
    times = _times([item.entry.message for item in items])
    text = f"{level.capitalize()}, {_time(first, zone)}: {message}{times}."
    return RecordLine(
        text=text.replace("….", "…"),
        index_terms=index_terms(
            "\n".join(item.entry.message for item in items[:20]), text
        ),
        position=first.reading.position,
        worth=ERROR_WORTH if level == "error" else WARNING_WORTH,
        memories=_memories(items),
    )


def _left_over(groups: Sequence[Sequence[_Placed]]) -> RecordLine:
    items = [item for group in groups for item in group]
    kinds = counted(len(groups), "more kind")
    text = (
        f"The log has {kinds} of errors and warnings, in {counted(len(items), 'line')}."
    )
    source = "\n".join(group[0].entry.message for group in groups[:40])
    return RecordLine(
        text=text,
        index_terms=index_terms(source, text),
        position=items[0].reading.position,
        worth=WORTH,
        memories=_memories(items),
    )


def _time(item: _Placed, zone: tzinfo) -> str:
    """Return the time of an entry: its own, or the time of day with the memory's date."""
    entry = item.entry
    if entry.when:
        return show_moment(entry.when, zone)
    if entry.clock:
        return entry.clock[:5]
    return f"{in_zone(item.reading.memory.created_at, zone):%H:%M}"


def _memories(items: Iterable[_Placed]) -> int:
    return len({item.reading.position for item in items})


LOGS = Rule("log lines", read_log, write_logs)
