"""Mails with their headers, and messages of a phone: SMS, chats, calls, notifications, photos."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, tzinfo
from itertools import takewhile

from mnemosyned.instants import in_zone
from mnemosyned.memory.values import MemoryRecord
from mnemosyned.summary.records.fields import (
    describe_message,
    extract_person_name,
    find_common_name,
    read_fields,
    show_event_time,
    split_title,
)
from mnemosyned.summary.records.lines import (
    STAMP,
    RecordLine,
    RecordReading,
    RecordRule,
    RecordSentence,
    Sentences,
    collapse_blanks,
    enclose,
    end_sentence,
    find_first_match,
    find_first_reading,
    has_stamp_in_first_paragraph,
    merge_equal,
    parse_moment,
    remove_hashes,
    shorten,
    show_clock,
    show_moment,
    split_nonblank_lines,
    take_first_sentences,
    write_sentences,
)
from mnemosyned.text.sentences import split_sentences
from mnemosyned.text.tokens import EXACT_KINDS, tokenize

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


_ROWS = (
    (_PHOTO, "Photo", "{text} {note}", MESSAGE_WORTH),
    (_PUSH, "Notification from {app}", "{title} {source} {note} {text}", NOTICE_WORTH),
    (_SMS, "SMS {way} {name}", "{text} {note}", MESSAGE_WORTH),
    (_CALL, "Call with {name}", "{name} {note}", CALL_WORTH),
    (_BARE_PUSH, "Notification from {app}", "{title} {text} {note}", NOTICE_WORTH),
)
"""Rows of a phone's tables: pattern, templates of head and index source, worth."""


@dataclass(frozen=True, slots=True)
class PhoneMessage:
    """A message, call, notification or photo caption of a phone."""

    head: str
    """Kind and party: "SMS from Anna"."""
    text: str
    when: str
    """Time as written; empty for the time of the memory, "-" for none."""
    source: str
    worth: float = MESSAGE_WORTH
    end: str = ""
    state: str = ""
    """Result of a call, unless it was answered."""


def read_messages(
    memory: MemoryRecord, _zone: tzinfo
) -> tuple[PhoneMessage, ...] | None:
    """Return the messages of a memory that holds only messages, else None."""
    content = memory.content.strip()
    if messages := find_first_reading((_read_chat, _read_labeled_message), content):
        return messages
    return _read_phone_row(content) if has_stamp_in_first_paragraph(content) else None


def _read_phone_row(content: str) -> tuple[PhoneMessage, ...] | None:
    """Read a phone's row without labels by the first form that matches; return None without one."""
    for pattern, head, source, worth in _ROWS:
        match = pattern.fullmatch(content)
        parts = match.groupdict("") if match else {}
        name = (parts.get("name") or parts.get("first", "")).strip()
        if not match or not _is_name(name):
            continue
        text, title = parts.get("text", ""), parts.get("title", "")
        note = _BOILERPLATE.sub("", parts["note"])
        if pattern is _BARE_PUSH:  # title and text run into each other
            title, text = split_title(" ".join(text.split()))
        elif pattern is _SMS:
            text = re.sub(rf"^(?:Me|{re.escape(name)}): ", "", text)
        way = "to" if parts.get("way", "").startswith("Sen") else "from"
        result = parts.get("result", "").lower()
        parts |= {"name": name, "title": title, "text": text, "note": note, "way": way}
        message = PhoneMessage(
            head=head.format_map(parts),
            text=text or title or note,
            when=parts.get("when") or parts["start"],
            source=source.format_map(parts),
            worth=worth,
            end=parts.get("end", ""),
            state="" if result.startswith(("connect", "answer")) else result,
        )
        return (message,)
    return None


def _is_name(text: str) -> bool:
    """Tell whether a text of few words may be a name: no lower-case word other than "of"."""
    words = text.split()
    plain = set(filter(_PLAIN_WORD.fullmatch, words)) - _LINKS
    return len(words) <= 5 and not plain


def _read_chat(content: str) -> tuple[PhoneMessage, ...] | None:
    """Read a messenger's or IRC's export: a time, a name and the text on each line."""
    lines = split_nonblank_lines(content)
    form = _CHAT_LINE if content.startswith("[") else _CHAT_DASH
    if not lines or not form.fullmatch(lines[0]):
        return None
    messages: list[PhoneMessage] = []
    for line in lines[:LINES_PER_MEMORY_MAX]:
        if match := form.fullmatch(line.strip()):
            parts = match.groupdict("")
            name = (parts["nick"] or parts["name"]).strip()
            if name.rpartition(".")[2].lower() in _LEVELS:
                return None  # a log
            when = enclose("", parts["day"], ", ") + parts["time"]
            messages.append(PhoneMessage(name, parts["text"], when, parts["text"]))
        else:
            text = f"{messages[-1].text}\n{line}"
            messages[-1] = replace(messages[-1], text=text, source=text)
    if hidden := lines[LINES_PER_MEMORY_MAX:]:
        text = f"The chat goes on for {len(hidden)} more lines."
        messages.append(PhoneMessage("Chat", text, "-", "\n".join(hidden)))
    return tuple(messages)


def _read_labeled_message(content: str) -> tuple[PhoneMessage, ...] | None:
    """Read a line "SMS" or "Notification", followed by lines with labels such as From and Time."""
    if "\n" not in content:
        return None
    lines = split_nonblank_lines(content)
    kind = _find_message_kind(lines[0])
    fields = read_fields(lines[1:]) if kind else None
    if not fields or _NAMED.isdisjoint(fields):
        return None
    when = fields.pop("start", "") or fields.pop("date", "")
    parties = {name: fields.get(name, "") for name in ("sender", "recipient", "app")}
    head = describe_message(parties, UTC, kind=kind).rstrip(".")
    title, body, duration, status = (
        fields.get(name, "") for name in ("title", "body", "duration", "status")
    )
    text = ": ".join(filter(None, (title, body))) or duration or status
    return (PhoneMessage(head, text, when, " ".join(fields.values())),)


def _find_message_kind(line: str) -> str:
    """Return the kind in a first line such as "[Notification]" or "Type: SMS", or an empty text."""
    label, _, value = (part.strip().lower() for part in line.partition(":"))
    name = label.strip("[]# ")
    if name == "type":
        return _KINDS.get(value, "")
    return "" if value else _KINDS.get(name, "")


def write_messages(
    readings: Sequence[RecordReading[tuple[PhoneMessage, ...]]], zone: tzinfo
) -> Iterator[RecordLine]:
    """Write a line for each message with its time, and its day if the group has several days."""
    first, last = readings[0].memory.created_at, readings[-1].memory.created_at
    dated = in_zone(first, zone).date() != in_zone(last, zone).date()
    return merge_equal(
        (
            reading.position,
            _make_message_sentence(message, reading.memory, zone, dated=dated),
        )
        for reading in readings
        for message in reading.value
    )


def _make_message_sentence(
    message: PhoneMessage, memory: MemoryRecord, zone: tzinfo, *, dated: bool
) -> RecordSentence:
    """Return a sentence about a message: its head, time and text; `dated` adds the day."""
    text, worth = message.text, message.worth
    head = shorten(message.head, MESSAGE_NAME_CHARS_MAX)
    head += enclose(", ", _show_time(message, memory, zone, dated=dated))
    if not text.strip():
        return RecordSentence(end_sentence(head), worth, message.source)
    if len(text.split()) < SHORT_WORDS and text.isascii() and not _DIGIT.search(text):
        worth = SHORT_WORTH
    quoted = end_sentence(take_first_sentences(text, MESSAGE_BODY_CHARS_MAX))
    return RecordSentence(f"{head}: {quoted}", worth, message.source)


def _show_time(
    message: PhoneMessage, memory: MemoryRecord, zone: tzinfo, *, dated: bool
) -> str:
    """Return the time or span of a message as text; `dated` adds the day. Empty without a time."""
    if message.when == "-":
        return ""
    moment = parse_moment(message.when) if message.when else memory.created_at
    if moment is None:
        return remove_hashes(message.when)
    clock = "" if dated else show_clock(moment, zone)
    shown = clock or show_moment(moment, zone)
    end = show_clock(parse_moment(message.end), zone)
    if not shown.endswith(end):
        shown += f"–{end}"
    return shown + enclose(" (", message.state, ")")


MESSAGES = RecordRule("messages", read_messages, write_messages)

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


def read_mail(memory: MemoryRecord, zone: tzinfo) -> Sentences | None:
    """Return a sentence with sender, subject and gist of a memory that is a mail, else None."""
    if not _OPENING.match(memory.content):
        return None
    lines = memory.content.strip().splitlines()
    headers = list(takewhile(_HEADER_LINE.fullmatch, lines))
    fields: dict[str, str] = {}
    for match in filter(None, map(_HEADER.fullmatch, map(str.strip, headers))):
        fields.setdefault(
            find_common_name(match["label"]), collapse_blanks(match["value"])
        )
    sender, recipient = (
        shorten(extract_person_name(fields.get(name, "")), PARTY_CHARS_MAX)
        for name in ("sender", "recipient")
    )
    if not (sender or recipient) or "title" not in fields:
        return None
    is_own = memory.role in {"user", "me"}
    head = "Mail" + enclose(" from ", sender)
    head += enclose(" to ", recipient if is_own or not sender else "")
    head += enclose(", “", shorten(fields["title"], SUBJECT_CHARS_MAX), "”")
    head += enclose(", ", show_event_time(fields, zone))
    body = "\n".join(lines[len(headers) :])
    gist = _summarize_mail(body)
    text = f"{head}: {end_sentence(gist)}" if gist else f"{head}."
    return (RecordSentence(text, MAIL_WORTH, f"{' '.join(fields.values())} {body}"),)


def _summarize_mail(body: str) -> str:
    """Return a mail's first sentence, and sentences with exact values while there is room."""
    informative = _list_informative_sentences(body)
    exact = [
        sum(token.kind in EXACT_KINDS for token in tokenize(sentence))
        for sentence in informative
    ]
    room = MAIL_BODY_CHARS_MAX
    selected: list[int] = []
    for index in sorted(
        range(len(informative)), key=lambda index: (index > 0, -exact[index], index)
    ):
        size = len(informative[index]) + 1
        if not selected or size <= room:
            selected.append(index)
            room -= size
    gist = " ".join(informative[index] for index in sorted(selected))
    return shorten(gist, MAIL_BODY_CHARS_MAX + 60)


def _list_informative_sentences(body: str) -> list[str]:
    """Return the sentences of a mail's body without greetings, courtesies, farewell and quotes."""
    paragraphs: list[str] = []
    is_wrapped = False
    for line in body.splitlines():
        if _FAREWELL.fullmatch(line) or _QUOTED.match(line):
            break
        text = line.strip()
        if is_wrapped and text and not text.startswith(("-", "*", "•")):
            paragraphs[-1] += f" {text}"
        else:
            paragraphs.append(text)
        is_wrapped = len(text) > 50
    bare = [
        _GREETING_HEAD.sub("", sentence, count=1).strip()
        for sentence, _ in split_sentences("\n".join(paragraphs))[:SENTENCES_READ_MAX]
    ]
    return [
        remove_hashes(sentence[0].upper() + sentence[1:])
        for sentence in bare
        if len(sentence.split()) >= WORDS_MIN
        and not find_first_match(_POLITE, sentence)
    ]


MAILS = RecordRule("mails", read_mail, write_sentences)
