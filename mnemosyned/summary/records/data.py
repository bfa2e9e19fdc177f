"""JSON objects and arrays, and tables of Markdown, CSV and aligned output."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import tzinfo
from itertools import chain
from typing import Any

from mnemosyned.memory.values import MemoryRecord
from mnemosyned.summary.records.fields import (
    Fields,
    describe_event,
    describe_message,
    find_common_name,
)
from mnemosyned.summary.records.lines import (
    RecordRule,
    RecordSentence,
    Sentences,
    collapse_blanks,
    enclose,
    end_line,
    end_sentence,
    find_first_match,
    find_first_reading,
    is_prose,
    join_names,
    pluralize,
    remove_hashes,
    shorten,
    show_count,
    split_command,
    split_nonblank_lines,
    write_sentences,
)
from mnemosyned.text.rule_files import read_rule_file

_WORDS, _NAMES, _PATTERNS, _FORMS = read_rule_file(__file__)


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
_INNER_KEYS = (
    "dateTime", "date", "displayName", "name", "title", "email", "value",
)  # fmt: skip
"""Keys whose value stands for the whole object in a field."""
_KIND_KEYS = ("type", "kind", "event")

Value = dict[str, Any] | list[Any]


def parse_json(content: str) -> Value | None:
    """Return the object or list in a JSON text, or a list of the objects in lines of JSON.

    None for any other text, and for an empty object or list.
    """
    text = content.strip()
    if text.startswith("```"):
        text = text.removeprefix("```json").strip("`").strip()
    if text[:1] not in ("{", "[") or len(text) > CHARS_MAX:
        return None
    value = _parse_value(text)
    if value is None and text[0] == "{" and "\n" in text:
        lines = [_parse_value(line) for line in text.splitlines() if line.strip()]
        value = None if None in lines else lines
    return value or None


def _parse_value(text: str) -> Value | None:
    """Return the object or list in a JSON text; None for any other text."""
    try:
        value = json.loads(text, parse_float=str)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict | list) else None


def read_json(memory: MemoryRecord, zone: tzinfo) -> Sentences | None:
    """Return a sentence for each object in a memory that is JSON; None for any other memory.

    A list of other values gives one sentence. Times are shown in `zone`.
    """
    value = parse_json(memory.content)
    if value is None:
        return None
    items = [value] if isinstance(value, dict) else value
    if isinstance(value, dict) and (inner := _find_wrapped_list(value)):
        items = inner
    if not all(item and isinstance(item, dict) for item in items):
        return (_describe_list(items),)
    sentences = [_describe_object(item, zone) for item in items[:OBJECTS_MAX]]
    if hidden := items[OBJECTS_MAX:]:
        left = show_count(len(hidden), "more record")
        source = json.dumps(hidden, ensure_ascii=False)
        sentences.append(
            RecordSentence(f"The list has {left}.", OTHER_WORTH / 2, source)
        )
    return tuple(sentences)


def _find_wrapped_list(value: Mapping[str, Any]) -> list[Any] | None:
    """Return the only list of objects in an answer such as `{"items": [{…}], "total": 2}`.

    None if the object is anything else.
    """
    lists = [item for item in value.values() if isinstance(item, list) and item]
    is_record = not _WORDS["record_names"].isdisjoint(_read_known_fields(value))
    if len(lists) != 1 or len(value) > ANSWER_KEYS_MAX or is_record:
        return None
    return lists[0] if all(isinstance(item, dict) for item in lists[0]) else None


def _describe_list(value: Sequence[Any]) -> RecordSentence:
    """Return a sentence about a JSON list whose elements are not all objects."""
    scalars = list(filter(None, map(_show_scalar, value)))
    source = " ".join(scalars)
    if not scalars:
        text = f"JSON list of {show_count(len(value), 'item')}."
        return RecordSentence(text, 0.2, source)
    shown = join_names(scalars, SCALARS_MAX)
    text = f"JSON list of {show_count(len(value), 'value')}: {shown}"
    return RecordSentence(
        end_sentence(text), OTHER_WORTH / 2, source[:SOURCE_CHARS_MAX]
    )


def _describe_object(value: Mapping[str, Any], zone: tzinfo) -> RecordSentence:
    """Return a sentence about a JSON object, as a message, an event or another record.

    Times are shown in `zone`.
    """
    fields = _read_known_fields(value)
    way = str(find_first_value(value, "message_type", "direction")).lower()
    if way in _WORDS["sent"] and "sender" in fields and "recipient" not in fields:
        fields["recipient"] = fields.pop("sender")
    source = " ".join(_walk_texts(value, DEPTH_MAX))[:SOURCE_CHARS_MAX]
    kind = _find_object_kind(value)
    has_party = bool(fields.keys() & {"sender", "recipient"})
    if has_party and ("body" in fields or (kind and "title" not in fields)):
        text = describe_message(fields, zone, kind=kind or "Message")
        return RecordSentence(text, MESSAGE_WORTH, source)
    if "title" in fields and fields.keys() & {"start", "place"}:
        return RecordSentence(describe_event(fields, zone), EVENT_WORTH, source)
    if "title" in fields:
        text, worth = _describe_titled_object(fields, value, zone), MESSAGE_WORTH
    else:
        text, worth = _describe_untitled_object(value, kind), OTHER_WORTH
    status = fields.get("status", "").lower().split()
    if "error" in value or not _WORDS["failures"].isdisjoint(status):
        worth = FAILED_WORTH
    return RecordSentence(text, worth, source)


def _find_object_kind(value: Mapping[str, Any]) -> str:
    """Return the kind that a JSON object names, such as "SMS"; empty without a name."""
    kind = find_first_value(value, *_KIND_KEYS)
    if not isinstance(kind, str) or not 1 < len(kind) <= 30 or kind.count(" ") > 2:
        return ""
    words = kind.replace("_", " ").replace(".", " ")
    return words.upper() if words in {"sms", "mms"} else words[0].upper() + words[1:]


def find_first_value(value: Mapping[str, Any], *keys: str) -> object | None:
    """Return the first value under these keys that is there and not empty or 0; else None."""
    return next(filter(None, map(value.get, keys)), None)


def _describe_titled_object(
    fields: Fields, value: Mapping[str, Any], zone: tzinfo
) -> str:
    """Return a text about an object with a title: title, time, exact values and body.

    `fields` are its known fields by common name.
    """
    base = {name: fields.get(name, "") for name in ("title", "date", "body")}
    used = set(filter(base.get, base))
    scalars = [
        pair
        for pair in _list_exact_scalars(value)
        if find_common_name(pair[0]) not in used
    ]
    base["title"] = shorten(fields["title"], VALUE_CHARS_MAX).rstrip(".")
    sentence = describe_event(base, zone)
    if not scalars:
        return sentence
    head = describe_event({**base, "body": ""}, zone)
    body = sentence[len(head) :]
    return f"{head.rstrip('.')} ({_list_scalars(scalars)}).{body}"


def _describe_untitled_object(value: Mapping[str, Any], kind: str) -> str:
    """Return a text about an object without a title: its exact values, or else its keys.

    `kind` is its first word, "Config" if empty.
    """
    scalars = dict(_list_exact_scalars(value))
    head = f"{kind or 'Config'} with"
    if not scalars:
        keys = join_names([shorten(key, 40) for key in value], KEYS_MAX)
        return f"{head} {pluralize(len(value), 'key')} {keys}."
    shown = [pair for pair in scalars.items() if pair[0] not in _KIND_KEYS]
    parents = {label.partition(".")[0] for label in scalars}
    opaque = [
        key
        for key, item in value.items()
        if key not in parents and isinstance(item, dict | list)
    ]
    also = enclose("; also ", join_names(opaque, KEYS_MAX))
    return f"{head} {_list_scalars(shown or [*scalars.items()])}{also}."


def _list_scalars(scalars: Sequence[tuple[str, str]]) -> str:
    """Return pairs of key and value as text; after `SCALARS_MAX` only the keys."""
    shown = [f"{label} {text}" for label, text in scalars[:SCALARS_MAX]]
    hidden = [label for label, _ in scalars[SCALARS_MAX:]]
    if not hidden:
        return join_names(shown, SCALARS_MAX)
    names = join_names(hidden, KEYS_MAX)
    return f"{', '.join(shown)}, and {len(hidden)} more: {names}"


def _list_exact_scalars(
    value: Mapping[str, Any], prefix: str = ""
) -> list[tuple[str, str]]:
    """Return the values of a JSON object that can be shown, as pairs of key and text.

    Keys of inner objects are dotted, after `prefix`. Ids are left out.
    """
    pairs: list[tuple[str, str]] = []
    for key, item in value.items():
        label = f"{prefix}{key}"
        if isinstance(item, dict) and prefix.count(".") < DEPTH_MAX:
            pairs += _list_exact_scalars(item, f"{label}.")
            continue
        if isinstance(item, list):
            text = "/".join(list(filter(None, map(_show_scalar, item)))[:5])
        else:
            text = "" if key.lower() in _WORDS["identifiers"] else _show_scalar(item)
        if text:
            pairs.append((label, text))
    return pairs


def _show_scalar(value: object) -> str:
    """Return a JSON number, flag or text as text, without hashes; empty for other values."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return repr(value)
    return shorten(value, VALUE_CHARS_MAX) if isinstance(value, str) else ""


def _read_known_fields(value: Mapping[str, Any]) -> dict[str, str]:
    """Return a JSON object's known fields as texts by common name, such as "title".

    Any value is written as text by `_show_field`. If several fields have one common name, the first
    with a text counts. The currency is added to the amount, unless the amount has a currency mark,
    and is no field of its own.
    """
    fields: dict[str, str] = {}
    for key, item in value.items():
        name = find_common_name(key)
        text = _show_field(item)
        if name and text and name not in fields:
            fields[name] = text
    amount, currency = fields.get("amount"), fields.pop("currency", "")
    if amount and currency and not _WORDS["currency_marks"].intersection(amount):
        fields["amount"] = f"{amount} {currency}"
    return fields


def _show_field(item: object) -> str:
    """Return a field's value as text; of an object its name, time or address.

    The texts of a list's first items are joined. Empty for null, and for an object without such a
    key.
    """
    if isinstance(item, dict):
        inner = map(item.get, _INNER_KEYS)
        return next((text for text in inner if isinstance(text, str)), "")
    if isinstance(item, list):
        names = filter(None, map(_show_field, item[:SCALARS_MAX]))
        return join_names(list(names), SCALARS_MAX)
    if isinstance(item, str):
        return collapse_blanks(item)
    return _show_scalar(item)


def _walk_texts(item: object, depth: int) -> Iterator[str]:
    """Yield all texts within a JSON value, down to `depth` levels, except ids."""
    if isinstance(item, str):
        yield remove_hashes(item[:SOURCE_CHARS_MAX])
    elif depth and isinstance(item, dict):
        for key, inner in item.items():
            if key.lower() not in _WORDS["identifiers"]:
                yield from _walk_texts(inner, depth - 1)
    elif depth and isinstance(item, list):
        for inner in item[:SCALARS_MAX]:
            yield from _walk_texts(inner, depth - 1)


JSON = RecordRule("JSON records", read_json, write_sentences)


ROWS_READ_MAX = 20_000
ROWS_SHOWN_MAX = 3
COLUMNS_SHOWN_MAX = 8
CELL_CHARS_MAX = 48
CELL_MEAN_MAX = 32
NAME_CHARS_MAX = 40
COLUMNS_MAX = 60
TABLE_WORTH = 0.5
SOURCE_ROWS_MAX = 60

_BETWEEN_ROWS = (
    _PATTERNS["frame"],
    _PATTERNS["rule_row"],
    re.compile(r"\(\d+ rows?\)|\d+ rows? in set.*"),
)
_ENDING_MARK = (".", "!", "?", ":")

Grid = list[list[str]]


def read_table(memory: MemoryRecord, _zone: tzinfo) -> Sentences | None:
    """Return a sentence with a table's size, columns and first rows; None for any other memory."""
    if memory.content.count("\n") < 2:
        return None
    lines = split_nonblank_lines(memory.content.strip("\n"))[:ROWS_READ_MAX]
    if len(lines) < 3:
        return None
    grid = find_first_reading(_READERS, split_command(lines)[1])
    if grid is None:
        return None
    columns, *rows = grid
    names = [shorten(name, NAME_CHARS_MAX) or "unnamed" for name in columns]
    text = f"Table of {show_count(len(rows), 'row')} with columns "
    text += join_names(names, COLUMNS_SHOWN_MAX)
    shown = [_show_row(names, row) for row in rows[:ROWS_SHOWN_MAX]]
    label = pluralize(len(shown), "row")
    if len(rows) > len(shown):
        label = f"first {label}"
    text += enclose(f"; {label}: ", "; ".join(filter(None, shown)))
    source = "\n".join(map(" ".join, rows[:SOURCE_ROWS_MAX]))
    return (RecordSentence(end_line(text), TABLE_WORTH, source),)


def _show_row(names: Sequence[str], row: Sequence[str]) -> str:
    """Return a table's row as text, each cell after its column's name, without empty cells."""
    cells = [
        enclose(f"{name} ", shorten(cell, CELL_CHARS_MAX))
        for name, cell in zip(names, row, strict=True)
    ]
    return ", ".join(list(filter(None, cells))[:COLUMNS_SHOWN_MAX])


def _read_piped(lines: Sequence[str]) -> Grid | None:
    """Return the rows of a Markdown table or of a table framed by a SQL shell; else None.

    The first row has the names of the columns.
    """
    head = lines[0].replace("│", "|")
    is_ruled = "|" in head and _PATTERNS["rule_row"].fullmatch(lines[1].strip())
    if not (is_ruled or head.count("|") > 1 or _PATTERNS["frame"].fullmatch(head)):
        return None
    barred = (line.strip().replace("│", "|") for line in lines)
    grid = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in barred
        if not find_first_match(_BETWEEN_ROWS, line)
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
    """Return True if rows of cells are a table, not prose whose lines have as many commas.

    `lines` is the text of the rows.
    """
    cells = list(chain.from_iterable(grid[:200]))
    spaced = sum(cell.startswith(" ") for cell in cells)
    mean = sum(map(len, cells)) / len(cells)
    named = all(map(_PATTERNS["column_name"].match, grid[0]))
    ended = any(line.endswith(_ENDING_MARK) for line in lines)
    return (
        named
        and not ended
        and mean <= CELL_MEAN_MAX
        and spaced <= len(cells) // 4
        and not any(map(is_prose, cells))
    )


def _read_aligned(lines: Sequence[str]) -> Grid | None:
    """Return the rows of columns aligned by blanks, as printed by `df`; None for other lines.

    The first row has the names of the columns.
    """
    header = lines[0].strip().replace("Mounted on", "Mounted")
    if _PATTERNS["digit"].search(header) or header.endswith(_ENDING_MARK):
        return None
    rows = list(map(str.strip, lines[1:]))
    if not any(map(_PATTERNS["digit"].search, rows)) or any(map(is_prose, lines)):
        return None
    for split in (_PATTERNS["gap"].split, str.split):
        grid = list(map(split, (header, *rows)))
        if len(grid[0]) > 2 and _has_even_rows(grid):
            return grid
    return None


def _has_even_rows(grid: Grid) -> bool:
    """Return True if all rows have the same number of cells, at least two."""
    width = len(grid[0])
    return 2 <= width <= COLUMNS_MAX and all(len(row) == width for row in grid)


_READERS: tuple[Callable[[Sequence[str]], Grid | None], ...] = (
    _read_piped,
    _read_separated,
    _read_aligned,
)


TABLES = RecordRule("tables", read_table, write_sentences)
