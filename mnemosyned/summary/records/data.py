"""JSON objects and arrays, and tables of Markdown, CSV and aligned output."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import tzinfo
from itertools import chain
from typing import Any

from mnemosyned.memory.values import MemoryRecord
from mnemosyned.summary.records.fields import (
    Fields,
    common_name,
    event_sentence,
    message_sentence,
)
from mnemosyned.summary.records.lines import (
    Reading,
    Rule,
    Sentence,
    below_command,
    closed,
    collapse,
    counted,
    full_stop,
    is_prose,
    lines_of,
    listed,
    phrase,
    plural,
    shorten,
    without_hashes,
    write_each,
)
from mnemosyned.summary.records.matching import first_match, first_reading

CHARS_MAX = 1_000_000
DEPTH_MAX = 4
OBJECTS_MAX = 24
SCALARS_MAX = 10
KEYS_MAX = 8
ANSWER_KEYS_MAX = 4
VALUE_CHARS_MAX = 80
SOURCE_CHARS_MAX = 6_000
EVENT_WORTH = 0.75
MESSAGE_WORTH = 0.6
OTHER_WORTH = 0.45
FAILED_WORTH = 0.8
_FAILURES = frozenset("failed failure error errored declined rejected critical".split())
_IDENTIFIERS = frozenset(
    "id uid uuid guid hash sha sha256 digest etag token checksum signature".split()
)
_INNER_KEYS = (
    "dateTime", "date", "displayName", "name", "title", "email", "value",
)  # fmt: skip
"""What an object stands for that is the value of a field."""
_KIND_KEYS = ("type", "kind", "event")
_RECORD_NAMES = frozenset({"title", "body", "sender", "start"})
"""Fields of an object that is a record itself, and no answer that wraps records."""
_SENT = frozenset({"send", "sent", "out", "outgoing", "outbound"})
_CURRENCY_MARKS = frozenset("$€£¥")

Value = dict[str, Any] | list[Any]


def read_json(memory: MemoryRecord) -> Value | None:
    """Return the objects or array that the whole memory is."""
    text = memory.content.strip()
    if text.startswith("```"):
        text = text.removeprefix("```json").strip("`").strip()
    if text[:1] not in ("{", "[") or len(text) > CHARS_MAX:
        return None
    value = _parse(text)
    if value is None and text[0] == "{" and "\n" in text:
        value = _parse_lines(text)
    return value or None


def _parse(text: str) -> Value | None:
    try:
        value = json.loads(text, parse_float=str)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict | list) else None


def _parse_lines(text: str) -> Value | None:
    """Return the objects of JSON lines."""
    objects: list[Any] = []
    for line in text.splitlines():
        if line.strip():
            value = _parse(line)
            if value is None:
                return None
            objects.append(value)
    return objects


def _json_sentences(reading: Reading[Value], zone: tzinfo) -> Iterator[Sentence]:
    """Write a sentence for each object."""
    value = reading.value
    items = [value] if isinstance(value, dict) else value
    if isinstance(value, dict) and (inner := _only_list(value)):
        items = inner
    if not all(item and isinstance(item, dict) for item in items):
        yield _describe_list(items)
        return
    for item in items[:OBJECTS_MAX]:
        yield _describe(item, zone)
    hidden = items[OBJECTS_MAX:]
    if hidden:
        left = counted(len(hidden), "more record")
        source = json.dumps(hidden, ensure_ascii=False)
        yield Sentence(f"The list has {left}.", OTHER_WORTH / 2, source)


def _only_list(value: Mapping[str, Any]) -> list[Any] | None:
    """Return the list of objects that an answer wraps: {"items": [{…}], "total": 2}."""
    lists = [item for item in value.values() if isinstance(item, list) and item]
    is_record = not _RECORD_NAMES.isdisjoint(_fields_of(value))
    if len(lists) != 1 or len(value) > ANSWER_KEYS_MAX or is_record:
        return None
    return lists[0] if all(isinstance(item, dict) for item in lists[0]) else None


def _describe_list(value: Sequence[Any]) -> Sentence:
    scalars = list(filter(None, map(_scalar, value)))
    source = " ".join(scalars)
    if not scalars:
        return Sentence(f"JSON list of {counted(len(value), 'item')}.", 0.2, source)
    shown = listed(scalars, SCALARS_MAX)
    text = f"JSON list of {counted(len(value), 'value')}: {shown}"
    return Sentence(closed(text), OTHER_WORTH / 2, source[:SOURCE_CHARS_MAX])


def _describe(value: Mapping[str, Any], zone: tzinfo) -> Sentence:
    """Return the sentence of an object by the fields it has."""
    fields = _directed(_fields_of(value), value)
    source = " ".join(_texts(value, DEPTH_MAX))[:SOURCE_CHARS_MAX]
    kind = _kind_of(value)
    if _is_message(fields, kind):
        text = message_sentence(fields, zone, kind=kind or "Message")
        return Sentence(text, MESSAGE_WORTH, source)
    if "title" in fields and fields.keys() & {"start", "place"}:
        return Sentence(event_sentence(fields, zone), EVENT_WORTH, source)
    if "title" in fields:
        text, worth = _titled(fields, value, zone), MESSAGE_WORTH
    else:
        text, worth = _by_keys(value, kind), OTHER_WORTH
    status = fields.get("status", "").lower().split()
    if "error" in value or not _FAILURES.isdisjoint(status):
        worth = FAILED_WORTH
    return Sentence(text, worth, source)


def _is_message(fields: Fields, kind: str) -> bool:
    """Tell whether somebody wrote to somebody: a text, or at least a kind of message."""
    has_party = bool(fields.keys() & {"sender", "recipient"})
    return has_party and ("body" in fields or (kind != "" and "title" not in fields))


def _directed(fields: dict[str, str], value: Mapping[str, Any]) -> dict[str, str]:
    """Return the fields of a message with its other side as recipient, if it was sent."""
    way = str(first_of(value, "message_type", "direction")).lower()
    if way in _SENT and "sender" in fields and "recipient" not in fields:
        fields["recipient"] = fields.pop("sender")
    return fields


def _kind_of(value: Mapping[str, Any]) -> str:
    """Return what the object says it is, such as "SMS"."""
    kind = first_of(value, *_KIND_KEYS)
    if not isinstance(kind, str) or not 1 < len(kind) <= 30 or kind.count(" ") > 2:
        return ""
    words = kind.replace("_", " ").replace(".", " ")
    return words.upper() if words in {"sms", "mms"} else words[0].upper() + words[1:]


def first_of(value: Mapping[str, Any], *keys: str) -> object | None:
    """Return the value of the first key that has one."""
    return next(filter(None, map(value.get, keys)), None)


def _titled(fields: Fields, value: Mapping[str, Any], zone: tzinfo) -> str:
    """Return an object by its title, its time and its exact scalars."""
    base = {name: fields.get(name, "") for name in ("title", "date", "body")}
    used = set(filter(base.get, base))
    scalars = [pair for pair in _scalars(value) if common_name(pair[0]) not in used]
    base["title"] = shorten(fields["title"], VALUE_CHARS_MAX).rstrip(".")
    sentence = event_sentence(base, zone)
    if not scalars:
        return sentence
    head = event_sentence({**base, "body": ""}, zone)
    body = sentence[len(head) :]
    return f"{head.rstrip('.')} ({_listing(scalars)}).{body}"


def _by_keys(value: Mapping[str, Any], kind: str) -> str:
    """Return an object without a title by its exact scalars, or else by its keys."""
    scalars = dict(_scalars(value))
    head = f"{kind or 'Config'} with"
    if not scalars:
        keys = listed([shorten(key, 40) for key in value], KEYS_MAX)
        return f"{head} {plural(len(value), 'key')} {keys}."
    shown = [pair for pair in scalars.items() if pair[0] not in _KIND_KEYS]
    also = phrase("; also ", listed(_opaque_keys(value, scalars), KEYS_MAX))
    return f"{head} {_listing(shown or [*scalars.items()])}{also}."


def _opaque_keys(value: Mapping[str, Any], labels: Iterable[str]) -> list[str]:
    """Return the keys of inner values of which no scalar is shown."""
    shown = {label.partition(".")[0] for label in labels}
    return [key for key in value if key not in shown and _is_nested(value[key])]


def _listing(scalars: Sequence[tuple[str, str]]) -> str:
    shown = [f"{label} {text}" for label, text in scalars[:SCALARS_MAX]]
    hidden = [label for label, _ in scalars[SCALARS_MAX:]]
    if not hidden:
        return listed(shown, SCALARS_MAX)
    names = listed(hidden, KEYS_MAX)
    return f"{', '.join(shown)}, and {len(hidden)} more: {names}"


def _is_nested(value: object) -> bool:
    return isinstance(value, dict | list)


def _scalars(value: Mapping[str, Any], prefix: str = "") -> list[tuple[str, str]]:
    """Return the exact scalars with their keys, those of inner objects too."""
    pairs: list[tuple[str, str]] = []
    for key, item in value.items():
        label = f"{prefix}{key}"
        if isinstance(item, dict) and prefix.count(".") < DEPTH_MAX:
            pairs += _scalars(item, f"{label}.")
        elif text := _shown_value(key, item):
            pairs.append((label, text))
    return pairs


def _shown_value(key: str, item: object) -> str:
    """Return a scalar, or the first of a list; empty for identifiers."""
    if isinstance(item, list):
        return "/".join(list(filter(None, map(_scalar, item)))[:5])
    return "" if key.lower() in _IDENTIFIERS else _scalar(item)


def _scalar(value: object) -> str:
    """Return a scalar as it is written, without hashes; empty for everything else."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return repr(value)
    return shorten(value, VALUE_CHARS_MAX) if isinstance(value, str) else ""


def _fields_of(value: Mapping[str, Any]) -> dict[str, str]:
    """Return the known fields of an object under their common names."""
    fields: dict[str, str] = {}
    for key, item in value.items():
        name = common_name(key)
        text = _text_of(item)
        if name and text and name not in fields:
            fields[name] = text
    amount, currency = fields.get("amount"), fields.pop("currency", "")
    if amount and currency and not _CURRENCY_MARKS.intersection(amount):
        fields["amount"] = f"{amount} {currency}"
    return fields


def _text_of(item: object) -> str:
    """Return the text of a field; of an inner object the name, time or address in it."""
    if isinstance(item, dict):
        texts = filter(_is_text, map(item.get, _INNER_KEYS))
        return str(next(texts, ""))
    if isinstance(item, list):
        names = filter(None, map(_text_of, item[:SCALARS_MAX]))
        return listed(list(names), SCALARS_MAX)
    if isinstance(item, str):
        return collapse(item)
    return _scalar(item)


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _texts(item: object, depth: int) -> Iterator[str]:
    """Yield the texts of a value, for the index."""
    if isinstance(item, str):
        yield without_hashes(item[:SOURCE_CHARS_MAX])
    elif depth and isinstance(item, dict):
        for key, inner in item.items():
            if key.lower() not in _IDENTIFIERS:
                yield from _texts(inner, depth - 1)
    elif depth and isinstance(item, list):
        for inner in item[:SCALARS_MAX]:
            yield from _texts(inner, depth - 1)


JSON = Rule("JSON records", read_json, write_each(_json_sentences))


ROWS_READ_MAX = 20_000
ROWS_SHOWN_MAX = 3
COLUMNS_SHOWN_MAX = 8
CELL_CHARS_MAX = 48
CELL_MEAN_MAX = 32
NAME_CHARS_MAX = 40
COLUMNS_MAX = 60
TABLE_WORTH = 0.5
SOURCE_ROWS_MAX = 60

_RULE_ROW = re.compile(r"\|?\s*:?-{2,}:?\s*(?:[|+]\s*:?-{2,}:?\s*)*\|?")
_FRAME = re.compile(r"[+\-=─━┌┬┐├┼┤└┴┘╭╮╰╯|│\s]+")
_GAP = re.compile(r"\s{2,}|\t")
_BETWEEN_ROWS = (_FRAME, _RULE_ROW, re.compile(r"\(\d+ rows?\)|\d+ rows? in set.*"))
_COLUMN_NAME = re.compile(r"\s*[^\s\d]")
_DIGIT = re.compile(r"\d")
_ENDING_MARK = (".", "!", "?", ":")

Grid = list[list[str]]


@dataclass(frozen=True, slots=True)
class Table:
    """A table: its columns and its rows."""

    columns: Sequence[str]
    rows: Sequence[Sequence[str]]


def read_table(memory: MemoryRecord) -> Table | None:
    """Return the table that the whole memory is."""
    if memory.content.count("\n") < 2:
        return None
    lines = lines_of(memory.content.strip("\n"))[:ROWS_READ_MAX]
    if len(lines) < 3:
        return None
    _, lines = below_command(lines)
    grid = first_reading(_READERS, lines)
    return Table(grid[0], grid[1:]) if grid else None


def _read_piped(lines: Sequence[str]) -> Grid | None:
    """Read Markdown tables and the frames that SQL shells draw."""
    if not _begins_piped(lines):
        return None
    barred = (line.strip().replace("│", "|") for line in lines)
    grid = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in barred
        if not first_match(_BETWEEN_ROWS, line)
    ]
    return grid if len(grid) > 1 and _is_even(grid) else None


def _begins_piped(lines: Sequence[str]) -> bool:
    head = lines[0].replace("│", "|")
    is_ruled = "|" in head and _RULE_ROW.fullmatch(lines[1].strip())
    return bool(is_ruled or head.count("|") > 1 or _FRAME.fullmatch(head))


def _read_separated(lines: Sequence[str]) -> Grid | None:
    """Read CSV with commas, semicolons or tabs."""
    for separator in ("\t", ";", ","):
        grid = _separated(lines, separator)
        if grid and _is_even(grid) and _is_tabular(grid, lines):
            return [[cell.strip() for cell in row] for row in grid]
    return None


def _separated(lines: Sequence[str], separator: str) -> Grid:
    """Return the cells between separators; a single one takes more lines to be a sign."""
    count = lines[0].count(separator)
    if count == 0 or (count == 1 and len(lines) < 4):
        return []
    try:
        return list(csv.reader(lines, delimiter=separator))
    except csv.Error:
        return []


def _is_tabular(grid: Grid, lines: Sequence[str]) -> bool:
    """Tell a table from lines of prose that happen to have as many commas."""
    cells = list(chain.from_iterable(grid[:200]))
    spaced = sum(cell.startswith(" ") for cell in cells)
    mean = sum(map(len, cells)) / len(cells)
    named = all(map(_COLUMN_NAME.match, grid[0]))
    ended = any(line.endswith(_ENDING_MARK) for line in lines)
    return (
        named
        and not ended
        and mean <= CELL_MEAN_MAX
        and spaced <= len(cells) // 4
        and not any(map(is_prose, cells))
    )


def _read_aligned(lines: Sequence[str]) -> Grid | None:
    """Read columns aligned with blanks, as `df` and `kubectl get` print them."""
    header = lines[0].strip().replace("Mounted on", "Mounted")
    if _DIGIT.search(header) or header.endswith(_ENDING_MARK):
        return None
    rows = list(map(str.strip, lines[1:]))
    if not any(map(_DIGIT.search, rows)) or any(map(is_prose, lines)):
        return None
    for split in (_GAP.split, str.split):
        grid = list(map(split, (header, *rows)))
        if len(grid[0]) > 2 and _is_even(grid):
            return grid
    return None


def _is_even(grid: Grid) -> bool:
    """Tell whether all rows have as many cells as the first."""
    width = len(grid[0])
    return 2 <= width <= COLUMNS_MAX and all(len(row) == width for row in grid)


_READERS: tuple[Callable[[Sequence[str]], Grid | None], ...] = (
    _read_piped,
    _read_separated,
    _read_aligned,
)


def _table_sentences(reading: Reading[Table], _zone: tzinfo) -> Iterator[Sentence]:
    """Write a table by its size, its columns and its first rows."""
    table = reading.value
    names = [shorten(name, NAME_CHARS_MAX) or "unnamed" for name in table.columns]
    head = f"Table of {counted(len(table.rows), 'row')} with columns "
    head += listed(names, COLUMNS_SHOWN_MAX)
    rows = [_row_text(names, row) for row in table.rows[:ROWS_SHOWN_MAX]]
    label = plural(len(rows), "row")
    if len(table.rows) > len(rows):
        label = f"first {label}"
    shown = phrase(f"; {label}: ", "; ".join(filter(None, rows)))
    source = "\n".join(map(" ".join, table.rows[:SOURCE_ROWS_MAX]))
    yield Sentence(full_stop(head + shown), TABLE_WORTH, source)


def _row_text(names: Sequence[str], row: Sequence[str]) -> str:
    cells = [
        phrase(f"{name} ", shorten(cell, CELL_CHARS_MAX))
        for name, cell in zip(names, row, strict=True)
    ]
    return ", ".join(list(filter(None, cells))[:COLUMNS_SHOWN_MAX])


TABLES = Rule("tables", read_table, write_each(_table_sentences))
