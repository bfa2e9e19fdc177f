"""Mails with their headers, and messages of a phone.

SMS, chats, calls, notifications and captions of photos.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, tzinfo
from itertools import takewhile

from mnemosyned.instants import in_zone
from mnemosyned.memory.values import MemoryRecord
from mnemosyned.summary.records.fields import (
    Fields,
    common_name,
    message_sentence,
    person,
    read_fields,
    split_title,
    when_of,
)
from mnemosyned.summary.records.lines import (
    STAMP,
    Reading,
    RecordLine,
    Rule,
    Sentence,
    closed,
    collapse,
    first_sentences,
    has_stamp_in_first_paragraph,
    lines_of,
    merge_equal,
    parse_moment,
    phrase,
    shorten,
    show_clock,
    show_moment,
    without_hashes,
    write_each,
)
from mnemosyned.summary.records.matching import first_match, first_reading
from mnemosyned.text.sentences import sentences
from mnemosyned.text.tokens import EXACT_KINDS, tokens

LINES_PER_MEMORY_MAX = 60
MESSAGE_BODY_CHARS_MAX = 240
MESSAGE_NAME_CHARS_MAX = 60
MESSAGE_WORTH = 0.5
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
    worth: float = MESSAGE_WORTH
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


def _parse_sms(parts: dict[str, str]) -> Message | None:
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


def _parse_call(parts: dict[str, str]) -> Message | None:
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


def _parse_push(parts: dict[str, str]) -> Message:
    source = f"{parts['title']} {parts['source']} {parts['note']} {parts['text']}"
    head = f"Notification from {parts['app']}"
    return Message(head, parts["text"], parts["when"], source, NOTICE_WORTH)


def _parse_bare_push(parts: dict[str, str]) -> Message:
    """Return a notification whose title and text run into each other."""
    title, text = split_title(" ".join(parts["text"].split()))
    source = f"{title} {text} {parts['note']}"
    head = f"Notification from {parts['app']}"
    return Message(head, text or title, parts["when"], source, NOTICE_WORTH)


def _parse_photo(parts: dict[str, str]) -> Message:
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
            messages.append(_parse_chat_line(match.groupdict("")))
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


def _parse_chat_line(parts: dict[str, str]) -> Message:
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
    _read_row(_PHOTO, _parse_photo),
    _read_row(_PUSH, _parse_push),
    _read_row(_SMS, _parse_sms),
    _read_row(_CALL, _parse_call),
    _read_row(_BARE_PUSH, _parse_bare_push),
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
            _message_line(message, reading.memory, zone, dated=len(days) > 1),
        )
        for reading in readings
        for message in reading.value
    )


def _message_line(
    message: Message, memory: MemoryRecord, zone: tzinfo, *, dated: bool
) -> Sentence:
    when = _message_time(message, memory, zone, dated=dated)
    head = shorten(message.head, MESSAGE_NAME_CHARS_MAX) + phrase(", ", when)
    if not message.text.strip():
        return Sentence(closed(head), message.worth, message.source)
    said = closed(first_sentences(message.text, MESSAGE_BODY_CHARS_MAX))
    worth = SHORT_WORTH if _is_short_message(message.text) else message.worth
    return Sentence(f"{head}: {said}", worth, message.source)


def _is_short_message(text: str) -> bool:
    """Tell whether a text is a word or two without a value."""
    few_words = len(text.split()) < SHORT_WORDS and text.isascii()
    return few_words and not _DIGIT.search(text)


def _message_time(
    message: Message, memory: MemoryRecord, zone: tzinfo, *, dated: bool
) -> str:
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


MAIL_BODY_CHARS_MAX = 300
SUBJECT_CHARS_MAX = 120
PARTY_CHARS_MAX = 60
SENTENCES_READ_MAX = 60
WORDS_MIN = 4
MAIL_WORTH = 0.65

_HEADER = re.compile(
    r"(?P<label>From|To|Cc|Bcc|Subject|Date|Sent|Reply-To|Message-ID|Von|An|Betreff|Datum|Gesendet|De"
    r"|À|Objet|Envoyé|Para|Asunto|Fecha|Da|A|Oggetto|Data|Assunto|Van|Aan|Onderwerp|[A-Z][\w-]*-[\w-]+"
    r"|Received|Importance|Priority)\s*: ?(?P<value>.*)"
)
_HEADER_LINE = re.compile(rf"(?:{_HEADER.pattern})|[ \t].*")
"""A header, or the rest of one that was folded."""
_OPENING = re.compile(r"\s*[A-ZÀ][\w-]{0,30}\s*:")
_GREETING = re.compile(
    r"(?:dear|hi|hello|hey|good (?:morning|afternoon|evening|day)|liebe[rs]?|sehr geehrte\w*|hallo"
    r"|guten (?:tag|morgen|abend)|servus|bonjour|cher|chère|madame|monsieur|hola|estimad[oa]|querid[oa]"
    r"|gentile|ciao|buongiorno|caro|cara|beste|geachte|hej)\b[^.!?\n]{0,60}[,!.:]?\s*$",
    re.IGNORECASE,
)
_GREETING_HEAD = re.compile(
    r"(?:dear|hi|hello|hey|liebe[rs]?|sehr geehrte\w*|hallo|guten (?:tag|morgen)|bonjour|hola"
    r"|estimad[oa]|gentile|ciao)(?: [\w.’-]+){0,4}[,!]\s+",
    re.IGNORECASE,
)
_COURTESY = re.compile(
    r"(?:thank you|thanks|many thanks|i hope (?:this|you)|hope (?:this|you)|vielen dank|danke"
    r"|ich hoffe|merci|j'espère|gracias|espero|grazie)\b[^.!?]{0,70}[.!]?$",
    re.IGNORECASE,
)
_POLITE = (_GREETING, _COURTESY)
_FAREWELL = re.compile(
    r"\s*(?:--\s*$|(?:best|kind|warm)? ?regards|best wishes|all the best|cheers|sincerely|yours"
    r"|mit freundlichen|viele grüße|liebe grüße|herzliche grüße|beste grüße|cordialement|bien à vous"
    r"|saludos|cordiali saluti|met vriendelijke)\b.*|--\s*",
    re.IGNORECASE,
)
_QUOTED = re.compile(
    r"\s*>|On .{4,80} wrote:|Am .{4,80} schrieb .{1,60}:|Le .{4,80} a écrit"
)


@dataclass(frozen=True, slots=True)
class Mail:
    """One mail: its headers under common names, and its body."""

    fields: dict[str, str]
    body: str


def read_mail(memory: MemoryRecord) -> Mail | None:
    """Return the mail that the whole memory is: headers on top, then the body."""
    if not _OPENING.match(memory.content):
        return None
    lines = memory.content.strip().splitlines()
    headers = list(takewhile(_HEADER_LINE.fullmatch, lines))
    fields: dict[str, str] = {}
    for match in filter(None, map(_HEADER.fullmatch, map(str.strip, headers))):
        fields.setdefault(common_name(match["label"]), collapse(match["value"]))
    has_party = fields.get("sender") or fields.get("recipient")
    if not has_party or "title" not in fields:
        return None
    return Mail(fields, "\n".join(lines[len(headers) :]))


def _mail_sentences(reading: Reading[Mail], zone: tzinfo) -> Iterator[Sentence]:
    """Write a mail with its sender, subject and what it says first."""
    fields, body = reading.value.fields, reading.value.body
    sender = _party(fields, "sender")
    is_own = reading.memory.role in {"user", "me"}
    recipient = _party(fields, "recipient") if is_own or not sender else ""
    subject = shorten(fields["title"], SUBJECT_CHARS_MAX)
    head = "Mail" + phrase(" from ", sender) + phrase(" to ", recipient)
    head += phrase(", “", subject, "”") + phrase(", ", when_of(fields, zone))
    said = _mail_gist(body)
    source = f"{' '.join(fields.values())} {body}"
    yield Sentence(
        f"{head}: {closed(said)}" if said else f"{head}.", MAIL_WORTH, source
    )


def _party(fields: Fields, name: str) -> str:
    return shorten(person(fields.get(name, "")), PARTY_CHARS_MAX)


def _mail_gist(body: str) -> str:
    """Return the sentences worth most that fit, in order: the first, then those with values."""
    informative = _informative(body)
    rated = sorted(
        range(len(informative)),
        key=lambda index: (index > 0, -_exact_values(informative[index]), index),
    )
    room = MAIL_BODY_CHARS_MAX
    kept: list[int] = []
    for index in rated:
        size = len(informative[index]) + 1
        if kept and size > room:
            continue
        kept.append(index)
        room -= size
    said = " ".join(informative[index] for index in sorted(kept))
    return shorten(said, MAIL_BODY_CHARS_MAX + 60)


def _exact_values(sentence: str) -> int:
    return sum(token.kind in EXACT_KINDS for token in tokens(sentence))


def _informative(body: str) -> list[str]:
    """Return the sentences of a body without greetings, courtesies and what it quotes."""
    text = _paragraphs(takewhile(_has_mail_headers, body.splitlines()))
    bare = [
        _GREETING_HEAD.sub("", sentence, count=1).strip()
        for sentence, _ in sentences(text)[:SENTENCES_READ_MAX]
    ]
    return [
        without_hashes(sentence[0].upper() + sentence[1:])
        for sentence in bare
        if len(sentence.split()) >= WORDS_MIN and not first_match(_POLITE, sentence)
    ]


def _has_mail_headers(line: str) -> bool:
    """Tell whether a line stands above the farewell and what is quoted."""
    return not (_FAREWELL.fullmatch(line) or _QUOTED.match(line))


def _paragraphs(lines: Iterable[str]) -> str:
    """Join lines that were wrapped, so that sentences are whole again."""
    joined: list[str] = []
    open_ = False
    for line in lines:
        text = line.strip()
        if open_ and text and not text.startswith(("-", "*", "•")):
            joined[-1] += f" {text}"
        else:
            joined.append(text)
        open_ = len(text) > 50
    return "\n".join(joined)


MAILS = Rule("mails", read_mail, write_each(_mail_sentences))
