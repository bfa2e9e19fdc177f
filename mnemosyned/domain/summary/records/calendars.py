"""Calendar entries: ICS, labeled fields, and flat rows of a phone's calendar."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import datetime, tzinfo

from mnemosyned.domain.memory import MemoryRecord
from mnemosyned.domain.summary.records.fields import (
    BODY_CHARS_MAX,
    Fields,
    common_name,
    event_sentence,
    read_fields,
    split_title,
)
from mnemosyned.domain.summary.records.lines import Reading, Rule, Sentence, write_each
from mnemosyned.domain.summary.records.moments import (
    STAMP,
    has_stamp_in_first_paragraph,
    parse_moment,
    previous_day,
    show_span,
)
from mnemosyned.domain.summary.records.wording import (
    closed,
    first_sentences,
    lines_of,
    shorten,
)

EVENTS_MAX = 200
LABELED_LINES_MAX = 40
WORTH = 0.75
CANCELED_WORTH = 0.8

_FOLDED = re.compile(r"\r?\n[ \t]")
_PROPERTY = re.compile(r"(?P<name>[A-Z-]+)(?P<parameters>;[^:]*)?:(?P<value>.*)")
_ESCAPED = re.compile(r"\\([\\;,nN])")
_RULES = {"DAILY": "day", "WEEKLY": "week", "MONTHLY": "month", "YEARLY": "year"}
_ICS_NAMES = {
    "SUMMARY": "title", "LOCATION": "place", "DTSTART": "start", "DTEND": "end",
    "DESCRIPTION": "body", "DUE": "start", "STATUS": "status", "RRULE": "rule",
}  # fmt: skip
_EVENT_ENDS = frozenset({"END:VEVENT", "END:VTODO"})
_DEPTH_CHANGES = {
    "BEGIN:VALARM": 1, "END:VALARM": -1, "BEGIN:VTIMEZONE": 1, "END:VTIMEZONE": -1,
}  # fmt: skip
"""Where the parts of an event begin and end whose properties are not its own."""
_SHOWN_STATES = {
    "cancelled": "canceled",
    "canceled": "canceled",
    "tentative": "tentative",
}
_SOURCE_NAMES = ("title", "place", "body", "note")
_EVENT_LABEL = re.compile(
    r"^(?:[*-] )?(?:Event|Title|Summary|Subject|Termin|Titel|Betreff|Veranstaltung|Événement"
    r"|Titre|Evento|Título|Titolo|Meeting|Appointment|Was|What)\s*:",
    re.IGNORECASE,
)
_TIME_LABEL = re.compile(
    r"\b(?:Start|Starts|When|Begin|Begins|Date|Beginn|Wann|Datum|Début|Quand|Date|Inicio|Fecha"
    r"|Inizio|Quando|Data)\s*:",
    re.IGNORECASE,
)
_INLINE_LABEL = re.compile(
    r"(?:(?<=^)|(?<=[\s;,.|]))(?P<label>Event|Title|Summary|Subject|Location|Place|Venue|Where|Start|Starts"
    r"|Begin|Begins|End|Ends|When|Date|Time|Description|Notes|Status|Termin|Titel|Betreff|Ort|Wo|Beginn"
    r"|Ende|Wann|Datum|Uhrzeit|Beschreibung|Événement|Titre|Lieu|Début|Fin|Quand|Evento|Título|Lugar"
    r"|Inicio|Fecha|Titolo|Luogo|Inizio|Fine|Quando)\s*: ?"
)
_FLAT = re.compile(
    rf"(?P<text>\S.{{3,}}?) (?P<start>{STAMP}) (?P<end>{STAMP}) {STAMP}(?: (?P<note>\S.*))?",
    re.DOTALL,
)


def read_events(memory: MemoryRecord) -> tuple[Fields, ...] | None:
    """Return the events that the whole memory is made of."""
    content = memory.content.strip()
    if content.startswith(("BEGIN:VCALENDAR", "BEGIN:VEVENT", "BEGIN:VTODO")):
        return _read_ics(content)
    if _EVENT_LABEL.match(content) and _TIME_LABEL.search(content):
        fields = _read_labeled(content)
        return (fields,) if fields else None
    if not has_stamp_in_first_paragraph(content):
        return None
    match = _FLAT.fullmatch(content)
    return (_read_flat(match),) if match else None


def _read_ics(content: str) -> tuple[Fields, ...] | None:
    """Read the events of iCalendar (RFC 5545)."""
    lines = [line.strip() for line in _FOLDED.sub("", content).splitlines()]
    properties = list(map(_PROPERTY.fullmatch, filter(None, lines)))
    if None in properties:
        return None
    events: list[Fields] = []
    fields: dict[str, str] = {}
    for name, value in _outer(filter(None, properties)):
        if name == "BEGIN":
            fields = {}
        elif f"{name}:{value}" in _EVENT_ENDS and fields.get("title"):
            events.append(_closed_event(fields))
            fields = {}
        elif name in _ICS_NAMES:
            fields[_ICS_NAMES[name]] = _ESCAPED.sub(_unescape, value)
    return tuple(events[:EVENTS_MAX]) or None


def _outer(properties: Iterable[re.Match[str]]) -> Iterator[tuple[str, str]]:
    """Yield the properties that are not those of an alarm or a time zone."""
    depth = 0
    for match in properties:
        depth += _DEPTH_CHANGES.get(f"{match['name']}:{match['value']}", 0)
        if depth == 0:
            yield match["name"], match["value"]


def _unescape(match: re.Match[str]) -> str:
    return " " if match[1] in "nN" else match[1]


def _closed_event(fields: dict[str, str]) -> Fields:
    """Return an event with the last day of its span and the words of its rule."""
    end = parse_moment(fields.get("end", ""))
    if end and not isinstance(end, datetime):
        fields["end"] = f"{previous_day(end):%Y-%m-%d}"
    status = fields.pop("status", "").lower()
    if status in _SHOWN_STATES:
        fields["status"] = _SHOWN_STATES[status]
    if rule := _rule_words(fields.pop("rule", "")):
        fields["duration"] = rule
    return dict(fields)


def _rule_words(rule: str) -> str:
    parts = dict(part.partition("=")[::2] for part in rule.split(";"))
    unit = _RULES.get(parts.get("FREQ", ""))
    if not unit:
        return ""
    interval = parts.get("INTERVAL", "1")
    return f"every {unit}" if interval == "1" else f"every {interval} {unit}s"


def _read_labeled(content: str) -> Fields | None:
    """Read "Event: …" with its other labels, one a line or all on one line."""
    lines = lines_of(content)[:LABELED_LINES_MAX]
    fields = read_fields(lines) if len(lines) > 1 else _read_inline(content)
    if fields is None or not fields.get("title"):
        return None
    timed = fields.get("start") or fields.get("date")
    return fields if timed and len(fields["title"]) <= BODY_CHARS_MAX else None


def _read_inline(content: str) -> dict[str, str] | None:
    labels = list(_INLINE_LABEL.finditer(content))
    if len(labels) < 2 or labels[0].start() > 0:
        return None
    fields: dict[str, str] = {}
    ends = [label.start() for label in labels[1:]] + [len(content)]
    for label, end in zip(labels, ends, strict=True):
        value = content[label.end() : end].strip(" ;,|\t")
        fields.setdefault(common_name(label["label"]), value.rstrip("."))
    return fields


def _read_flat(match: re.Match[str]) -> Fields:
    """Read a row "title description start end created note", whose labels are lost."""
    title, body = split_title(" ".join(match["text"].split()))
    fields = {"title": title, "start": match["start"], "end": match["end"]}
    fields |= {"body": body} if body else {}
    return fields | {"note": match["note"] or ""}


def _sentences(
    reading: Reading[tuple[Fields, ...]], zone: tzinfo
) -> Iterator[Sentence]:
    """Write each event as one sentence."""
    for fields in reading.value:
        source = [fields.get(name, "") for name in _SOURCE_NAMES]
        worth = CANCELED_WORTH if fields.get("status") == "canceled" else WORTH
        yield Sentence(_text(fields, zone), worth, " ".join(source))


def _text(fields: Fields, zone: tzinfo) -> str:
    start = parse_moment(fields.get("start", ""))
    title = fields["title"]
    is_one_text = "note" in fields and "body" not in fields
    if not is_one_text or start is None:
        short = {"title": shorten(title, BODY_CHARS_MAX)}
        return event_sentence({**fields, **short}, zone)
    span = show_span(start, parse_moment(fields.get("end", "")), zone)
    return f"Event, {span}: {closed(first_sentences(title, BODY_CHARS_MAX))}"


CALENDARS = Rule("calendar entries", read_events, write_each(_sentences))
