"""Messages of a phone: SMS, chats, calls, notifications and captions of photos."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo

from mnemosyned.domain.instants import in_zone
from mnemosyned.domain.memory import MemoryRecord
from mnemosyned.domain.summary.records.fields import (
    message_sentence,
    read_fields,
    split_title,
)
from mnemosyned.domain.summary.records.lines import (
    Reading,
    RecordLine,
    Rule,
    Sentence,
    merge_equal,
)
from mnemosyned.domain.summary.records.moments import (
    localized,
    parse_moment,
    show_moment,
)
from mnemosyned.domain.summary.records.wording import (
    closed,
    first_sentences,
    lines_of,
    shorten,
    without_hashes,
)

LINES_PER_MEMORY_MAX = 60
BODY_CHARS_MAX = 240
NAME_CHARS_MAX = 60
WORTH = 0.5
NOTICE_WORTH = 0.35
CALL_WORTH = 0.3
SHORT_WORTH = 0.15
SHORT_WORDS = 4

_STAMP = r"\d{4}-\d\d-\d\d \d\d:\d\d(?::\d\d)?"
_PHONE = r"\+?\d[\d ()-]{3,18}\d"
_STAMPED = re.compile(_STAMP)
_SMS = re.compile(
    rf"(?P<text>\S.*[.!?…~)\]\"”’】]) (?P<name>\S(?:.{{0,48}}\S)?) (?P<phone>{_PHONE}) (?P<when>{_STAMP})"
    r" (?P<way>Send|Sent|Receive|Received)(?: (?P<note>\S.*))?",
    re.DOTALL,
)
_CALL = re.compile(
    rf"(?:(?P<phone>{_PHONE}) (?P<name>\D{{2,48}})|(?P<first>\D{{2,48}}) (?P<last>{_PHONE}))"
    rf" (?P<start>{_STAMP})(?: (?P<end>{_STAMP}))?"
    r"(?: [01])?(?: (?P<result>[A-Z][A-Za-z]+(?: [A-Za-z]+)?))?(?: (?P<note>\S.*))?",
    re.DOTALL,
)
_PUSH = re.compile(
    rf"(?P<title>[^【】\n]{{2,160}}?) ?【(?P<app>[^】\n]{{1,40}})】(?P<text>.+?) (?P<when>{_STAMP})"
    r" (?P<source>\S.*?) (?:Read|Unread)(?: (?P<note>\S.*))?",
    re.DOTALL,
)
_BARE_PUSH = re.compile(
    rf"(?P<text>\S.+?) (?P<when>{_STAMP}) (?P<app>\S.{{0,60}}?) (?:Read|Unread) (?P<note>[^.]{{0,120}}→.*)",
    re.DOTALL,
)
_PHOTO = re.compile(
    rf"(?P<text>\S.*?) (?:IMG|VID|PXL|DSC|MVIMG|Screenshot)[_-]\w+ (?P<when>{_STAMP})"
    r"(?: (?P<note>\S.*))?",
    re.DOTALL,
)
_BOILERPLATE = re.compile(r"Please translate the following.*", re.DOTALL)
_CHAT_TIME = (
    r"(?:(?P<day>\d{1,4}[./-]\d{1,2}[./-]\d{2,4}),? )?(?P<time>\d{1,2}:\d\d(?::\d\d)?)"
    r"(?:\s?[APap]\.?[Mm]\.?)?"
)
_CHAT_LINE = re.compile(
    rf"(?:\[{_CHAT_TIME}\] )(?:<(?P<nick>[^>]{{1,40}})>|(?P<name>[^:<\[\]]{{1,40}}):) (?P<text>\S.*)"
)
_CHAT_DASH = re.compile(
    rf"{_CHAT_TIME} - (?:<(?P<nick>[^>]{{1,40}})>|(?P<name>[^:<\[\]]{{1,40}}):) (?P<text>\S.*)"
)
_NAMED = frozenset({"sender", "recipient", "app", "title"})
_LINKS = frozenset("and of the de la".split())
_DIGIT = re.compile(r"\d")
_LEVELS = frozenset(
    "info warn warning error debug fatal trace critical notice err".split()
)
_KINDS = {
    "sms": "SMS", "mms": "MMS", "message": "Message", "chat": "Chat message", "text": "SMS",
    "whatsapp": "WhatsApp message", "signal": "Signal message", "telegram": "Telegram message",
    "notification": "Notification", "push": "Notification", "call": "Call", "nachricht": "Message",
    "imessage": "iMessage", "voicemail": "Voicemail", "missed call": "Missed call",
    "incoming call": "Incoming call", "outgoing call": "Outgoing call",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Message:
    """One message, call, notice or caption; the text that is said of it stands first."""

    head: str
    """What it is and from whom: "SMS from Anna"."""
    text: str
    when: str
    """Its time as written; empty for the memory's own."""
    source: str
    worth: float = WORTH
    end: str = ""
    state: str = ""
    """How a call ended, unless it was answered."""


def read_messages(memory: MemoryRecord) -> tuple[Message, ...] | None:
    """Return the messages that the whole memory is made of."""
    content = memory.content.strip()
    framed = content[:1] == "[" or content[:1].isdigit() or "\n" in content
    if framed and (messages := _read_chat(content) or _read_labeled(content)):
        return messages
    stamp = _STAMPED.search(content)
    if not stamp or "\n\n" in content[: stamp.start()]:
        return None
    for reader in _FLAT_READERS:
        if messages := reader(content):
            return messages
    return None


def _read_sms(content: str) -> tuple[Message, ...] | None:
    match = _SMS.fullmatch(content)
    if not match or not _is_name(match["name"]):
        return None
    way = "to" if match["way"].startswith("Sen") else "from"
    source = f"{match['text']} {match['note'] or ''}"
    name = match["name"]
    text = re.sub(rf"^(?:Me|{re.escape(name)}): ", "", match["text"])
    return (Message(f"SMS {way} {name}", text, match["when"], source),)


def _is_name(text: str) -> bool:
    words = text.split()
    return len(words) <= 5 and all(
        word[0].isupper()
        or not (word[0].isalpha() and word.isascii())
        or word in _LINKS
        for word in words
    )


def _read_call(content: str) -> tuple[Message, ...] | None:
    match = _CALL.fullmatch(content)
    if not match:
        return None
    name = (match["name"] or match["first"]).strip()
    result = match["result"] or ""
    if not _is_name(name):
        return None
    reached = not result or result.lower().startswith(("connect", "answer"))
    note = match["note"] or ""
    head = f"Call with {name}"
    return (
        Message(
            head,
            note,
            match["start"],
            f"{name} {note}",
            CALL_WORTH,
            end=match["end"] or "",
            state="" if reached else result.lower(),
        ),
    )


def _read_push(content: str) -> tuple[Message, ...] | None:
    match = _PUSH.fullmatch(content)
    if not match:
        return None
    source = f"{match['title']} {match['source']} {match['note'] or ''} {match['text']}"
    head = f"Notification from {match['app']}"
    return (Message(head, match["text"], match["when"], source, NOTICE_WORTH),)


def _read_bare_push(content: str) -> tuple[Message, ...] | None:
    """Read a notification whose title and text run into each other."""
    match = _BARE_PUSH.fullmatch(content)
    if not match:
        return None
    title, text = split_title(" ".join(match["text"].split()))
    source = f"{title} {text} {match['note']}"
    head = f"Notification from {match['app']}"
    return (Message(head, text or title, match["when"], source, NOTICE_WORTH),)


def _read_photo(content: str) -> tuple[Message, ...] | None:
    match = _PHOTO.fullmatch(content)
    if not match:
        return None
    note = _BOILERPLATE.sub("", match["note"] or "")
    return (Message("Photo", match["text"], match["when"], f"{match['text']} {note}"),)


def _read_chat(content: str) -> tuple[Message, ...] | None:
    """Read what messengers and IRC export: a time, a name and the text on each line."""
    lines = lines_of(content)
    form = _CHAT_LINE if content.startswith("[") else _CHAT_DASH
    if not lines or not form.fullmatch(lines[0]):
        return None
    messages: list[Message] = []
    for line in lines[:LINES_PER_MEMORY_MAX]:
        match = form.fullmatch(line.strip())
        if match:
            name = (match["nick"] or match["name"]).strip()
            if name.rpartition(".")[2].lower() in _LEVELS:
                return None
            day = f"{match['day']}, " if match["day"] else ""
            text = match["text"]
            messages.append(Message(name, text, f"{day}{match['time']}", text))
        else:
            last = messages[-1]
            joined = f"{last.text}\n{line}"
            messages[-1] = Message(last.head, joined, last.when, joined)
    left = len(lines) - LINES_PER_MEMORY_MAX
    if left > 0:
        hidden = "\n".join(lines[LINES_PER_MEMORY_MAX:])
        messages.append(
            Message("Chat", f"The chat goes on for {left} more lines.", "-", hidden)
        )
    return tuple(messages)


def _read_labeled(content: str) -> tuple[Message, ...] | None:
    """Read "SMS" or "Notification" with the fields From, Time and Text below it."""
    lines = lines_of(content)
    kind = _kind_of(lines[0]) if len(lines) > 1 else None
    fields = read_fields(lines[1:]) if kind else None
    if not kind or not fields or _NAMED.isdisjoint(fields):
        return None
    when = fields.pop("start", "") or fields.pop("date", "")
    named: dict[str, str] = {
        key: fields[key] for key in ("sender", "recipient", "app") if key in fields
    }
    head = message_sentence(named, UTC, kind=kind, when="").rstrip(".")
    said = [fields[key] for key in ("title", "body") if fields.get(key)]
    text = ": ".join(said) or fields.get("duration", "") or fields.get("status", "")
    return (Message(head, text, when, " ".join(fields.values())),)


def _kind_of(line: str) -> str | None:
    """Return the kind that a first line names: "SMS", "[Notification]" or "Type: SMS"."""
    label, _, value = line.partition(":")
    name = label.strip("[]# ").lower()
    if name == "type":
        return _KINDS.get(value.strip().lower())
    return None if value.strip() else _KINDS.get(name)


_FLAT_READERS: tuple[Callable[[str], tuple[Message, ...] | None], ...] = (
    _read_photo,
    _read_push,
    _read_sms,
    _read_call,
    _read_bare_push,
)


def write_messages(
    readings: Sequence[Reading[tuple[Message, ...]]], zone: tzinfo
) -> Iterator[RecordLine]:
    """Write each message with its time; the day too where the group has several."""
    days = {
        in_zone(reading.memory.created_at, zone).date()
        for reading in (readings[0], readings[-1])
    }
    return merge_equal(
        (
            reading.position,
            _sentence(message, reading.memory, zone, dated=len(days) > 1),
        )
        for reading in readings
        for message in reading.value
    )


def _sentence(
    message: Message, memory: MemoryRecord, zone: tzinfo, *, dated: bool
) -> Sentence:
    when = _when(message, memory, zone, dated=dated)
    head = shorten(message.head, NAME_CHARS_MAX)
    head = f"{head}, {when}" if when else head
    if not message.text.strip():
        return Sentence(closed(head), message.worth, message.source)
    said = closed(first_sentences(message.text, BODY_CHARS_MAX))
    short = len(message.text.split()) < SHORT_WORDS and message.text.isascii()
    worth = SHORT_WORTH if short and not _DIGIT.search(message.text) else message.worth
    return Sentence(f"{head}: {said}", worth, message.source)


def _when(message: Message, memory: MemoryRecord, zone: tzinfo, *, dated: bool) -> str:
    written = message.when
    if written == "-":
        return ""
    moment = parse_moment(written) if written else memory.created_at
    if moment is None:
        return without_hashes(written)
    if not isinstance(moment, datetime) or dated:
        shown = show_moment(moment, zone)
    else:
        shown = f"{localized(moment, zone):%H:%M}"
    end = parse_moment(message.end)
    if isinstance(end, datetime):
        until = f"{localized(end, zone):%H:%M}"
        shown += "" if shown.endswith(until) else f"–{until}"
    return f"{shown} ({message.state})" if message.state else shown


MESSAGES = Rule("messages", read_messages, write_messages)
