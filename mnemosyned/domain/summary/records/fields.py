"""Labeled fields under common names, whatever format and language they come from."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import tzinfo

from mnemosyned.domain.summary.records.moments import (
    Moment,
    parse_epoch,
    parse_moment,
    show_span,
)
from mnemosyned.domain.summary.records.wording import (
    closed,
    collapse,
    first_sentences,
    phrase,
    shorten,
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
