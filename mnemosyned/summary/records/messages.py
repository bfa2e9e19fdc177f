"""Mails with their headers, labeled messages such as SMS and notifications, and exported chats."""

from __future__ import annotations

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
)
from mnemosyned.summary.records.lines import (
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
from mnemosyned.text.rule_files import read_rule_file
from mnemosyned.text.sentences import split_sentences
from mnemosyned.text.tokens import EXACT_KINDS, tokenize

_WORDS, _NAMES, _PATTERNS, _FORMS = read_rule_file(__file__)


LINES_PER_MEMORY_MAX = 60
MESSAGE_BODY_CHARS_MAX = 240
MESSAGE_NAME_CHARS_MAX = 60
MESSAGE_WORTH = 0.5
SHORT_WORTH = 0.15
SHORT_WORDS = 4


@dataclass(frozen=True, slots=True)
class PhoneMessage:
    """A message or notification of a phone, or one of a chat."""

    head: str
    """Kind and party: "SMS from Anna"."""
    text: str
    when: str
    """Time as written; empty for the time of the memory, "-" for none."""
    source: str


def read_messages(
    memory: MemoryRecord, _zone: tzinfo
) -> tuple[PhoneMessage, ...] | None:
    """Return the phone or chat messages that are all a memory contains; None for other memories."""
    return find_first_reading(
        (_read_chat, _read_labeled_message), memory.content.strip()
    )


def _read_chat(content: str) -> tuple[PhoneMessage, ...] | None:
    """Return the messages of an exported chat, "time name: text" on each line; else None.

    Lines past a limit are counted in a last message.
    """
    lines = split_nonblank_lines(content)
    form = _PATTERNS["chat_line"] if content.startswith("[") else _PATTERNS["chat_dash"]
    if not lines or not form.fullmatch(lines[0]):
        return None
    messages: list[PhoneMessage] = []
    for line in lines[:LINES_PER_MEMORY_MAX]:
        if match := form.fullmatch(line.strip()):
            parts = match.groupdict("")
            name = (parts["nick"] or parts["name"]).strip()
            if name.rpartition(".")[2].lower() in _WORDS["levels"]:
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
    """Return the message in a text "SMS" or "Notification" with labeled lines; else None.

    The lines are such as "From: Anna" and "Time: 14:03".
    """
    if "\n" not in content:
        return None
    lines = split_nonblank_lines(content)
    kind = _find_message_kind(lines[0])
    fields = read_fields(lines[1:]) if kind else None
    if not fields or _WORDS["named"].isdisjoint(fields):
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
    """Return the kind in a line such as "[Notification]" or "Type: SMS"; empty if there is none."""
    label, _, value = (part.strip().lower() for part in line.partition(":"))
    name = label.strip("[]# ")
    if name == "type":
        return _NAMES["kinds"].get(value, "")
    return "" if value else _NAMES["kinds"].get(name, "")


def write_messages(
    readings: Sequence[RecordReading[tuple[PhoneMessage, ...]]], zone: tzinfo
) -> Iterator[RecordLine]:
    """Yield a line for each distinct message, with its time in `zone`.

    The day is added if the memories are of several days.
    """
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
    """Return a sentence about a message: sender, time in `zone`, and text.

    The day is left out unless `dated`.
    """
    text, worth = message.text, MESSAGE_WORTH
    head = shorten(message.head, MESSAGE_NAME_CHARS_MAX)
    head += enclose(", ", _show_time(message, memory, zone, dated=dated))
    if not text.strip():
        return RecordSentence(end_sentence(head), worth, message.source)
    if (
        len(text.split()) < SHORT_WORDS
        and text.isascii()
        and not _PATTERNS["digit"].search(text)
    ):
        worth = SHORT_WORTH
    quoted = end_sentence(take_first_sentences(text, MESSAGE_BODY_CHARS_MAX))
    return RecordSentence(f"{head}: {quoted}", worth, message.source)


def _show_time(
    message: PhoneMessage, memory: MemoryRecord, zone: tzinfo, *, dated: bool
) -> str:
    """Return the time of a message as text in `zone`; empty if it has none.

    The day is left out unless `dated`.
    """
    if message.when == "-":
        return ""
    moment = parse_moment(message.when) if message.when else memory.created_at
    if moment is None:
        return remove_hashes(message.when)
    clock = "" if dated else show_clock(moment, zone)
    return clock or show_moment(moment, zone)


MESSAGES = RecordRule("messages", read_messages, write_messages)

MAIL_BODY_CHARS_MAX = 300
SUBJECT_CHARS_MAX = 120
PARTY_CHARS_MAX = 60
SENTENCES_READ_MAX = 60
WORDS_MIN = 4
MAIL_WORTH = 0.65

_POLITE = (_PATTERNS["greeting"], _PATTERNS["courtesy"])


def read_mail(memory: MemoryRecord, zone: tzinfo) -> Sentences | None:
    """Return a sentence with sender, subject and gist of a memory that is a mail; else None."""
    if not _PATTERNS["opening"].match(memory.content):
        return None
    lines = memory.content.strip().splitlines()
    headers = list(takewhile(_PATTERNS["header_line"].fullmatch, lines))
    fields: dict[str, str] = {}
    for match in filter(
        None, map(_PATTERNS["header"].fullmatch, map(str.strip, headers))
    ):
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
    """Return a mail's first sentence, and those with most exact values that fit, in order."""
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
        if _PATTERNS["farewell"].fullmatch(line) or _PATTERNS["quoted"].match(line):
            break
        text = line.strip()
        if is_wrapped and text and not text.startswith(("-", "*", "•")):
            paragraphs[-1] += f" {text}"
        else:
            paragraphs.append(text)
        is_wrapped = len(text) > 50
    bare = [
        _PATTERNS["greeting_head"].sub("", sentence, count=1).strip()
        for sentence, _ in split_sentences("\n".join(paragraphs))[:SENTENCES_READ_MAX]
    ]
    return [
        remove_hashes(sentence[0].upper() + sentence[1:])
        for sentence in bare
        if len(sentence.split()) >= WORDS_MIN
        and not find_first_match(_POLITE, sentence)
    ]


MAILS = RecordRule("mails", read_mail, write_sentences)
