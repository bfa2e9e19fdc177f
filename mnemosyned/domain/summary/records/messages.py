"""Messages of a phone: SMS, chats, calls, notifications and captions of photos."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, tzinfo

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
    STAMP,
    has_stamp_in_first_paragraph,
    parse_moment,
    show_clock,
    show_moment,
)
from mnemosyned.domain.summary.records.wording import (
    closed,
    first_sentences,
    lines_of,
    phrase,
    shorten,
    without_hashes,
)
from mnemosyned.domain.text.matching import first_reading

LINES_PER_MEMORY_MAX = 60
BODY_CHARS_MAX = 240
NAME_CHARS_MAX = 60
WORTH = 0.5
NOTICE_WORTH = 0.35
CALL_WORTH = 0.3
SHORT_WORTH = 0.15
SHORT_WORDS = 4

_PHONE = r"\+?\d[\d ()-]{3,18}\d"
_SMS = re.compile(
    rf"(?P<text>\S.*[.!?…~)\]\"”’】]) (?P<name>\S(?:.{{0,48}}\S)?) (?P<phone>{_PHONE}) (?P<when>{STAMP})"
    r" (?P<way>Send|Sent|Receive|Received)(?: (?P<note>\S.*))?",
    re.DOTALL,
)
_CALL = re.compile(
    rf"(?:(?P<phone>{_PHONE}) (?P<name>\D{{2,48}})|(?P<first>\D{{2,48}}) (?P<last>{_PHONE}))"
    rf" (?P<start>{STAMP})(?: (?P<end>{STAMP}))?"
    r"(?: [01])?(?: (?P<result>[A-Z][A-Za-z]+(?: [A-Za-z]+)?))?(?: (?P<note>\S.*))?",
    re.DOTALL,
)
_PUSH = re.compile(
    rf"(?P<title>[^【】\n]{{2,160}}?) ?【(?P<app>[^】\n]{{1,40}})】(?P<text>.+?) (?P<when>{STAMP})"
    r" (?P<source>\S.*?) (?:Read|Unread)(?: (?P<note>\S.*))?",
    re.DOTALL,
)
_BARE_PUSH = re.compile(
    rf"(?P<text>\S.+?) (?P<when>{STAMP}) (?P<app>\S.{{0,60}}?) (?:Read|Unread) (?P<note>[^.]{{0,120}}→.*)",
    re.DOTALL,
)
_PHOTO = re.compile(
    rf"(?P<text>\S.*?) (?:IMG|VID|PXL|DSC|MVIMG|Screenshot)[_-]\w+ (?P<when>{STAMP})"
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
_PLAIN_WORD = re.compile(r"[a-z][\x00-\x7f]*")
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
    if messages := first_reading(_LINE_READERS, content):
        return messages
    if not has_stamp_in_first_paragraph(content):
        return None
    message = first_reading(_ROW_READERS, content)
    return (message,) if message else None


def _read_row(
    pattern: re.Pattern[str], describe: Callable[[dict[str, str]], Message | None]
) -> Callable[[str], Message | None]:
    """Return the reader of rows that have the pattern."""

    def read(content: str) -> Message | None:
        match = pattern.fullmatch(content)
        return describe(match.groupdict("")) if match else None

    return read


def _sms(parts: dict[str, str]) -> Message | None:
    name = parts["name"]
    if not _is_name(name):
        return None
    way = "to" if parts["way"].startswith("Sen") else "from"
    text = re.sub(rf"^(?:Me|{re.escape(name)}): ", "", parts["text"])
    source = f"{parts['text']} {parts['note']}"
    return Message(f"SMS {way} {name}", text, parts["when"], source)


def _is_name(text: str) -> bool:
    words = text.split()
    plain = set(filter(_PLAIN_WORD.fullmatch, words)) - _LINKS
    return len(words) <= 5 and not plain


def _call(parts: dict[str, str]) -> Message | None:
    name = (parts["name"] or parts["first"]).strip()
    if not _is_name(name):
        return None
    result = parts["result"].lower()
    return Message(
        head=f"Call with {name}",
        text=parts["note"],
        when=parts["start"],
        source=f"{name} {parts['note']}",
        worth=CALL_WORTH,
        end=parts["end"],
        state="" if result.startswith(("connect", "answer")) else result,
    )


def _push(parts: dict[str, str]) -> Message:
    source = f"{parts['title']} {parts['source']} {parts['note']} {parts['text']}"
    head = f"Notification from {parts['app']}"
    return Message(head, parts["text"], parts["when"], source, NOTICE_WORTH)


def _bare_push(parts: dict[str, str]) -> Message:
    """Return a notification whose title and text run into each other."""
    title, text = split_title(" ".join(parts["text"].split()))
    source = f"{title} {text} {parts['note']}"
    head = f"Notification from {parts['app']}"
    return Message(head, text or title, parts["when"], source, NOTICE_WORTH)


def _photo(parts: dict[str, str]) -> Message:
    note = _BOILERPLATE.sub("", parts["note"])
    return Message("Photo", parts["text"], parts["when"], f"{parts['text']} {note}")


def _read_chat(content: str) -> tuple[Message, ...] | None:
    """Read what messengers and IRC export: a time, a name and the text on each line."""
    lines = lines_of(content)
    form = _CHAT_LINE if content.startswith("[") else _CHAT_DASH
    if not lines or not form.fullmatch(lines[0]):
        return None
    messages: list[Message] = []
    for line in lines[:LINES_PER_MEMORY_MAX]:
        if match := form.fullmatch(line.strip()):
            messages.append(_chat_message(match.groupdict("")))
        else:
            last = messages[-1]
            joined = f"{last.text}\n{line}"
            messages[-1] = Message(last.head, joined, last.when, joined)
    if any(map(_is_log_entry, messages)):
        return None
    hidden = lines[LINES_PER_MEMORY_MAX:]
    if hidden:
        text = f"The chat goes on for {len(hidden)} more lines."
        messages.append(Message("Chat", text, "-", "\n".join(hidden)))
    return tuple(messages)


def _chat_message(parts: dict[str, str]) -> Message:
    name = (parts["nick"] or parts["name"]).strip()
    when = phrase("", parts["day"], ", ") + parts["time"]
    return Message(name, parts["text"], when, parts["text"])


def _is_log_entry(message: Message) -> bool:
    """Tell whether what seems to be a name is the level of a log line."""
    return message.head.rpartition(".")[2].lower() in _LEVELS


def _read_labeled(content: str) -> tuple[Message, ...] | None:
    """Read "SMS" or "Notification" with the fields From, Time and Text below it."""
    if "\n" not in content:
        return None
    lines = lines_of(content)
    kind = _kind_of(lines[0])
    fields = read_fields(lines[1:]) if kind else None
    if not fields or _NAMED.isdisjoint(fields):
        return None
    when = fields.pop("start", "") or fields.pop("date", "")
    parties = {name: fields.get(name, "") for name in ("sender", "recipient", "app")}
    head = message_sentence(parties, UTC, kind=kind).rstrip(".")
    title, body, duration, status = (
        fields.get(name, "") for name in ("title", "body", "duration", "status")
    )
    text = ": ".join(filter(None, (title, body))) or duration or status
    return (Message(head, text, when, " ".join(fields.values())),)


def _kind_of(line: str) -> str:
    """Return the kind that a first line names: "SMS", "[Notification]" or "Type: SMS"."""
    label, _, value = (part.strip().lower() for part in line.partition(":"))
    name = label.strip("[]# ")
    if name == "type":
        return _KINDS.get(value, "")
    return "" if value else _KINDS.get(name, "")


_LINE_READERS = (_read_chat, _read_labeled)
_ROW_READERS = (
    _read_row(_PHOTO, _photo),
    _read_row(_PUSH, _push),
    _read_row(_SMS, _sms),
    _read_row(_CALL, _call),
    _read_row(_BARE_PUSH, _bare_push),
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
    head = shorten(message.head, NAME_CHARS_MAX) + phrase(", ", when)
    if not message.text.strip():
        return Sentence(closed(head), message.worth, message.source)
    said = closed(first_sentences(message.text, BODY_CHARS_MAX))
    worth = SHORT_WORTH if _is_short(message.text) else message.worth
    return Sentence(f"{head}: {said}", worth, message.source)


def _is_short(text: str) -> bool:
    """Tell whether a text is a word or two without a value."""
    few_words = len(text.split()) < SHORT_WORDS and text.isascii()
    return few_words and not _DIGIT.search(text)


def _when(message: Message, memory: MemoryRecord, zone: tzinfo, *, dated: bool) -> str:
    written = message.when
    if written == "-":
        return ""
    moment = parse_moment(written) if written else memory.created_at
    if moment is None:
        return without_hashes(written)
    clock = "" if dated else show_clock(moment, zone)
    shown = clock or show_moment(moment, zone)
    end = show_clock(parse_moment(message.end), zone)
    if not shown.endswith(end):
        shown += f"–{end}"
    return shown + phrase(" (", message.state, ")")


MESSAGES = Rule("messages", read_messages, write_messages)
