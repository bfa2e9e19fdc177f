"""Labeled fields under common names, and calendar entries: ICS, and labeled fields."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import date, datetime, timedelta, tzinfo

from mnemosyned.memory.values import MemoryRecord
from mnemosyned.summary.records.lines import (
    RecordRule,
    RecordSentence,
    Sentences,
    collapse_blanks,
    enclose,
    end_sentence,
    parse_epoch,
    parse_moment,
    shorten,
    show_span,
    split_nonblank_lines,
    take_first_sentences,
    write_sentences,
)
from mnemosyned.text.rule_files import read_rule_file

_WORDS, _NAMES, _PATTERNS, _FORMS = read_rule_file(__file__)


BODY_CHARS_MAX = 240
TITLE_CHARS_MAX = 140
PLACE_CHARS_MAX = 90
NAME_CHARS_MAX = 60

Fields = Mapping[str, str]
"""Values by common name, as they stand in the source."""

LABELS = _NAMES["labels"]


def find_common_name(label: str) -> str:
    """Return the common name of a field with this label, such as "sender" for "From".

    Empty if the label is unknown.
    """
    lower = label.strip().lower()
    return LABELS.get(lower) or LABELS.get(re.sub(r"[\s_-]", "", lower), "")


def show_event_time(fields: Fields, zone: tzinfo) -> str:
    """Return the time or time span in the fields of an event or message, as text in `zone`.

    A time that cannot be read is shown as written; empty without one.
    """
    start_text = fields.get("start") or fields.get("date") or ""
    end_text = fields.get("end", "")
    start = parse_moment(start_text) or parse_epoch(start_text)
    end = parse_moment(end_text) or parse_epoch(end_text)
    if start:
        unread_end = "" if end else collapse_blanks(end_text)
        return show_span(start, end, zone) + enclose("–", unread_end)
    if not start_text:
        return ""
    return shorten(start_text + enclose("–", end_text), NAME_CHARS_MAX)


def describe_event(fields: Fields, zone: tzinfo) -> str:
    """Return "Dentist at Praxis Huber, Tue 10 March 2026, 08:20." for an event's fields.

    Notes follow as further sentences. Times are shown in `zone`.
    """
    text = shorten(fields["title"], TITLE_CHARS_MAX).rstrip(".")
    text += enclose(" at ", shorten(fields.get("place", ""), PLACE_CHARS_MAX))
    text += enclose(", ", show_event_time(fields, zone))
    extras = [
        shorten(fields.get(name, ""), NAME_CHARS_MAX) for name in ("status", "duration")
    ]
    text = end_sentence(text + enclose(" (", ", ".join(filter(None, extras)), ")"))
    body = fields.get("body", "")
    if collapse_blanks(body) in text:
        return text
    return f"{text} {end_sentence(take_first_sentences(body, BODY_CHARS_MAX))}"


def describe_message(fields: Fields, zone: tzinfo, *, kind: str = "Message") -> str:
    """Return "Message from Anna to Ben, “Trip”, 14:03: See you there." for a message's fields.

    `kind` is its first word; times are shown in `zone`.
    """
    head = kind
    via = "in" if fields.get("sender") else "from"
    for label, name in (("from", "sender"), ("to", "recipient"), (via, "app")):
        party = extract_person_name(fields.get(name, ""))
        head += enclose(f" {label} ", shorten(party, NAME_CHARS_MAX))
    body = fields.get("body", "")
    title = collapse_blanks(fields.get("title", ""))
    if title not in body:
        head += f", “{shorten(title, TITLE_CHARS_MAX).rstrip('.')}”"
    head += enclose(", ", show_event_time(fields, zone))
    if not body.strip():
        return end_sentence(head)
    return f"{head}: {end_sentence(take_first_sentences(body, BODY_CHARS_MAX))}"


def extract_person_name(text: str) -> str:
    """Return the name in a mail address such as `Ben Kofler <ben@example.org>`, or the address."""
    name = text.partition("<")[0].strip().strip("\"'")
    return name or text.strip(" <>")


def read_fields(lines: Sequence[str]) -> dict[str, str] | None:
    """Return the values of lines "Label: value" by the labels' common names.

    A body may go on in further lines. None if any other line has no known label. If labels are
    equal, the first counts, but a time of day is added to a date.
    """
    fields: dict[str, str] = {}
    last = ""
    for line in lines:
        label, colon, value = line.partition(":")
        name = find_common_name(label.strip("*- \t"))
        if name and colon and value[:1] in " \t*":
            last, text = name, value.strip(" \t*")
            day = fields.get("date", "")
            if name == "date" and "date" in fields and ":" in text and ":" not in day:
                fields[name] = f"{day} {text}"
            else:
                fields.setdefault(name, text)
        elif last == "body":
            fields[last] = f"{fields[last]}\n{line}".strip()
        else:
            return None
    return fields


EVENTS_MAX = 200
LABELED_LINES_MAX = 40
EVENT_WORTH = 0.75
CANCELED_WORTH = 0.8

_DEPTH_CHANGES = {
    "BEGIN:VALARM": 1, "END:VALARM": -1, "BEGIN:VTIMEZONE": 1, "END:VTIMEZONE": -1,
}  # fmt: skip
"""Begin and end of the parts of an event whose properties are not the event's."""
_SOURCE_NAMES = ("title", "place", "body")


def read_calendar(memory: MemoryRecord, zone: tzinfo) -> Sentences | None:
    """Return a sentence for each event of a memory that contains calendar entries.

    None if it contains anything else. Times are shown in `zone`.
    """
    content = memory.content.strip()
    events: list[Fields] = []
    label = _PATTERNS["label"].match(content.lstrip("*- "))
    if content.startswith(("BEGIN:VCALENDAR", "BEGIN:VEVENT", "BEGIN:VTODO")):
        events = _read_ics(content)
    elif label and find_common_name(label["label"]) == "title":
        events = _read_labeled_event(content)
    return tuple(_make_event_sentence(fields, zone) for fields in events) or None


def _read_ics(content: str) -> list[Fields]:
    """Return the fields of each event in iCalendar text; empty if a line is not valid."""
    events: list[Fields] = []
    fields: dict[str, str] = {}
    depth = 0  # of alarms and time zones, whose properties are not the event's
    for line in filter(
        None, map(str.strip, _PATTERNS["folded"].sub("", content).splitlines())
    ):
        match = _PATTERNS["property"].fullmatch(line)
        if match is None:
            return []
        name, value = match["name"], match["value"]
        depth += _DEPTH_CHANGES.get(f"{name}:{value}", 0)
        if depth:
            continue
        if name == "BEGIN":
            fields = {}
        elif f"{name}:{value}" in _WORDS["event_ends"] and fields.get("title"):
            events.append(_finish_event(fields))
            fields = {}
        elif name in _NAMES["ics_names"]:
            fields[_NAMES["ics_names"][name]] = _PATTERNS["escaped"].sub(
                lambda mark: " " if mark[1] in "nN" else mark[1], value
            )
    return events[:EVENTS_MAX]


def _finish_event(fields: dict[str, str]) -> Fields:
    """Return an event's fields with its last day, status and repetition in words.

    The dict given is changed.
    """
    end = parse_moment(fields.get("end", ""))
    if end and not isinstance(end, datetime):  # the format excludes the last day
        last = end - timedelta(1) if end > date.min else end
        fields["end"] = f"{last:%Y-%m-%d}"
    status = fields.pop("status", "").lower()
    if status in _NAMES["shown_states"]:
        fields["status"] = _NAMES["shown_states"][status]
    rule = fields.pop("rule", "")
    parts = dict(part.partition("=")[::2] for part in rule.split(";"))
    if unit := _NAMES["rules"].get(parts.get("FREQ", "")):
        interval = parts.get("INTERVAL", "1")
        fields["duration"] = (
            f"every {unit}" if interval == "1" else f"every {interval} {unit}s"
        )
    return fields


def _read_labeled_event(content: str) -> list[Fields]:
    """Return a list with the fields of an event in a text "Event: …", with other labels.

    Empty if title or start are missing.
    """
    lines = split_nonblank_lines(content)[:LABELED_LINES_MAX]
    fields = read_fields(lines) if len(lines) > 1 else _read_inline_fields(content)
    if fields is None or not 0 < len(fields.get("title", "")) <= BODY_CHARS_MAX:
        return []
    return [fields] if fields.get("start") or fields.get("date") else []


def _read_inline_fields(content: str) -> dict[str, str] | None:
    """Return the fields in one line "Event: Dentist, Start: 2026-03-10" by common name, or None."""
    labels = [
        label
        for label in _PATTERNS["label"].finditer(content)
        if label["label"][0].isupper() and find_common_name(label["label"])
    ]
    if len(labels) < 2 or labels[0].start() > 0:
        return None
    fields: dict[str, str] = {}
    ends = [label.start() for label in labels[1:]] + [len(content)]
    for label, end in zip(labels, ends, strict=True):
        value = content[label.end() : end].strip(" ;,|\t")
        fields.setdefault(find_common_name(label["label"]), value.rstrip("."))
    return fields


def _make_event_sentence(fields: Fields, zone: tzinfo) -> RecordSentence:
    """Return the sentence about an event, with its times shown in `zone`."""
    short = {"title": shorten(fields["title"], BODY_CHARS_MAX)}
    worth = CANCELED_WORTH if fields.get("status") == "canceled" else EVENT_WORTH
    source = [fields.get(name, "") for name in _SOURCE_NAMES]
    text = describe_event({**fields, **short}, zone)
    return RecordSentence(text, worth, " ".join(source))


CALENDARS = RecordRule("calendar entries", read_calendar, write_sentences)
