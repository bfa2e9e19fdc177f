"""Labeled fields under common names, and the calendar entries made of them (ICS, labeled fields.

Rows of a phone's calendar).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, tzinfo

from mnemosyned.memory.values import MemoryRecord
from mnemosyned.summary.records.lines import (
    STAMP,
    Moment,
    Reading,
    Rule,
    Sentence,
    closed,
    collapse,
    first_sentences,
    has_stamp_in_first_paragraph,
    lines_of,
    parse_epoch,
    parse_moment,
    phrase,
    previous_day,
    shorten,
    show_span,
    write_each,
)

BODY_CHARS_MAX = 240
TITLE_CHARS_MAX = 140
PLACE_CHARS_MAX = 90
NAME_CHARS_MAX = 60

Fields = Mapping[str, str]
"""Values by common name, as they stand in the source."""

_LABELS = {
    "title": (
        "title name event summary subject headline topic betreff titel termin veranstaltung "
        "ereignis événement evenement objet titre evento asunto oggetto titolo título assunto "
        "onderwerp afspraak eventname eventtitle meeting appointment what was"
    ),
    "start": (
        "start starts starttime startdate startsat begin begins from_time dtstart when start_time "
        "beginn anfang wann début debut quand inicio inizio quando cuándo date_start startdatetime"
    ),
    "end": (
        "end ends endtime enddate endsat finish until dtend end_time ende bis fin fine hasta "
        "date_end enddatetime"
    ),
    "date": (
        "date day datum data fecha datetime time timestamp created createdat created_at sentat sent "
        "zeit uhrzeit heure hora gesendet envoyé enviado ts at receivedat updatedat due duedate"
    ),
    "place": (
        "location place venue where ort wo adresse address lieu lugar luogo local locatie room raum"
    ),
    "sender": (
        "from sender author user von absender de expéditeur mittente da remitente fromname username "
        "contact contactname caller autor actor"
    ),
    "recipient": "to recipient recipients an empfänger à para destinataire toname a",
    "body": (
        "body content text message msg description details note notes comment nachricht "
        "beschreibung texte mensaje messaggio messagecontent message_content caption snippet "
        "description_text texto testo corpo"
    ),
    "status": "status state result outcome conclusion call_result zustand estado état stato",
    "amount": (
        "amount total price sum cost betrag summe preis montant prix importe importo precio valor"
    ),
    "currency": "currency währung devise moneda valuta",
    "app": "app application package channel appname",
    "duration": "duration length dauer durée duración durata",
}
_SMALL_WORDS = frozenset(
    "a an the of with for and in on to at from by or vs via de la du des und mit".split()
)
LABELS = {label: name for name, labels in _LABELS.items() for label in labels.split()}


def common_name(label: str) -> str:
    """Return the common name of a field's label, or an empty text."""
    lower = label.strip().lower()
    return LABELS.get(lower) or LABELS.get(re.sub(r"[\s_-]", "", lower), "")


def field_moment(value: str) -> Moment | None:
    """Return the time that a field holds."""
    return parse_moment(value) or parse_epoch(value)


def when_of(fields: Fields, zone: tzinfo) -> str:
    """Return the time or span of the fields; what cannot be read stays as it is written."""
    start_text = fields.get("start") or fields.get("date") or ""
    start = field_moment(start_text)
    end_text = fields.get("end", "")
    end = field_moment(end_text)
    if start:
        unread_end = "" if end else collapse(end_text)
        return show_span(start, end, zone) + phrase("–", unread_end)
    if not start_text:
        return ""
    return shorten(start_text + phrase("–", end_text), NAME_CHARS_MAX)


def event_sentence(fields: Fields, zone: tzinfo) -> str:
    """Return "Dentist at Praxis Huber, Tue 10 March 2026, 08:20–08:50." and what is noted."""
    text = shorten(fields["title"], TITLE_CHARS_MAX).rstrip(".")
    text += phrase(" at ", shorten(fields.get("place", ""), PLACE_CHARS_MAX))
    text += phrase(", ", when_of(fields, zone))
    extras = [_short(fields, name) for name in ("status", "duration")]
    text = closed(text + phrase(" (", ", ".join(filter(None, extras)), ")"))
    body = fields.get("body", "")
    if collapse(body) in text:
        return text
    return f"{text} {closed(first_sentences(body, BODY_CHARS_MAX))}"


def message_sentence(fields: Fields, zone: tzinfo, *, kind: str = "Message") -> str:
    """Return "Message from Anna to Ben, “Trip”, 14:03: See you at the station."."""
    head = kind
    via = "in" if fields.get("sender") else "from"
    for label, name in (("from", "sender"), ("to", "recipient"), (via, "app")):
        party = person(fields.get(name, ""))
        head += phrase(f" {label} ", shorten(party, NAME_CHARS_MAX))
    body = fields.get("body", "")
    title = collapse(fields.get("title", ""))
    if title not in body:
        head += f", “{shorten(title, TITLE_CHARS_MAX).rstrip('.')}”"
    head += phrase(", ", when_of(fields, zone))
    if not body.strip():
        return closed(head)
    return f"{head}: {closed(first_sentences(body, BODY_CHARS_MAX))}"


def _short(fields: Fields, name: str) -> str:
    return shorten(fields.get(name, ""), NAME_CHARS_MAX)


def person(text: str) -> str:
    """Return the name in an address such as `Ben Kofler <ben@example.org>`."""
    name = text.partition("<")[0].strip().strip("\"'")
    return name or text.strip(" <>")


def read_fields(lines: Sequence[str]) -> dict[str, str] | None:
    """Return the fields of lines of the form "Label: value"; a body goes on below.

    None where a line of another field has no label.
    """
    fields: dict[str, str] = {}
    last = ""
    for line in lines:
        label, colon, value = line.partition(":")
        name = common_name(label.strip("*- \t"))
        if name and colon and value[:1] in " \t*":
            last = name
            _add(fields, name, value.strip(" \t*"))
        elif last == "body":
            fields[last] = f"{fields[last]}\n{line}".strip()
        else:
            return None
    return fields


def _add(fields: dict[str, str], name: str, value: str) -> None:
    """Keep the first value of a name; a time of day completes a day before it."""
    if name == "date" and name in fields and ":" in value and ":" not in fields[name]:
        fields[name] += f" {value}"
    else:
        fields.setdefault(name, value)


def split_title(text: str) -> tuple[str, str]:
    """Return a title in capitals and the sentence after it, where the two can be told apart."""
    words = text.split()
    capital = 0
    for index, word in enumerate(words):
        if word[0].isupper():
            capital = index
        elif word[0].islower() and word not in _SMALL_WORDS:
            break
    if capital < 2 or capital > len(words) - 2:
        return text, ""
    return " ".join(words[:capital]), " ".join(words[capital:])


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
