"""Mails with their headers: from whom, about what, and the first informative sentences."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import tzinfo

from mnemosyned.domain.memory import MemoryRecord
from mnemosyned.domain.summary.records.fields import common_name, person, when_of
from mnemosyned.domain.summary.records.lines import (
    Reading,
    RecordLine,
    Rule,
    Sentence,
    merge_equal,
)
from mnemosyned.domain.summary.records.wording import (
    closed,
    collapse,
    shorten,
    without_hashes,
)
from mnemosyned.domain.text.sentences import sentences
from mnemosyned.domain.text.tokenizer import EXACT_KINDS, tokens

BODY_CHARS_MAX = 300
SUBJECT_CHARS_MAX = 120
NAME_CHARS_MAX = 60
SENTENCES_READ_MAX = 60
WORDS_MIN = 4
WORTH = 0.65

_HEADER = re.compile(
    r"(?P<label>From|To|Cc|Bcc|Subject|Date|Sent|Reply-To|Message-ID|Von|An|Betreff|Datum|Gesendet|De"
    r"|À|Objet|Envoyé|Para|Asunto|Fecha|Da|A|Oggetto|Data|Assunto|Van|Aan|Onderwerp|[A-Z][\w-]*-[\w-]+"
    r"|Received|Importance|Priority)\s*: ?(?P<value>.*)"
)
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
    fields: dict[str, str] = {}
    index = 0
    for index, line in enumerate(lines):  # noqa: B007 the body begins where the loop ends
        match = _HEADER.fullmatch(line.strip())
        if match:
            name = common_name(match["label"])
            fields.setdefault(name, collapse(match["value"]))
        elif not fields or not line.startswith((" ", "\t")):
            break
    else:
        index = len(lines)
    if not fields.get("sender") and not fields.get("recipient"):
        return None
    if "title" not in fields:
        return None
    return Mail(fields, "\n".join(lines[index:]))


def write_mails(
    readings: Sequence[Reading[Mail]], zone: tzinfo
) -> Iterator[RecordLine]:
    """Write each mail with its sender, subject and what it says first."""
    return merge_equal(
        (reading.position, _sentence(reading, zone)) for reading in readings
    )


def _sentence(reading: Reading[Mail], zone: tzinfo) -> Sentence:
    mail = reading.value
    fields = mail.fields
    head = "Mail"
    if sender := fields.get("sender"):
        head += f" from {shorten(person(sender), NAME_CHARS_MAX)}"
    if not sender or reading.memory.role in {"user", "me"}:
        head += f" to {shorten(person(fields.get('recipient', '')), NAME_CHARS_MAX)}"
    if subject := shorten(fields["title"], SUBJECT_CHARS_MAX):
        head += f", “{subject}”"
    if when := when_of(fields, zone):
        head += f", {when}"
    said = _gist(mail.body)
    source = f"{' '.join(fields.values())} {mail.body}"
    return Sentence(f"{head}: {closed(said)}" if said else f"{head}.", WORTH, source)


def _gist(body: str) -> str:
    """Return the sentences worth most that fit, in order: the first, then those with values."""
    informative = _informative(body)
    if not informative:
        return ""
    rated = sorted(
        range(len(informative)),
        key=lambda index: (index > 0, -_exact_values(informative[index]), index),
    )
    room = BODY_CHARS_MAX
    kept: list[int] = []
    for index in rated:
        size = len(informative[index]) + 1
        if kept and size > room:
            continue
        kept.append(index)
        room -= size
    said = " ".join(informative[index] for index in sorted(kept))
    return shorten(said, BODY_CHARS_MAX + 60)


def _exact_values(sentence: str) -> int:
    return sum(token.kind in EXACT_KINDS for token in tokens(sentence))


def _informative(body: str) -> list[str]:
    """Return the sentences of a body without greetings, courtesies and what it quotes."""
    lines: list[str] = []
    for line in body.splitlines():
        if _FAREWELL.fullmatch(line) or _QUOTED.match(line):
            break
        lines.append(line)
    found: list[str] = []
    for sentence, _ in sentences(_paragraphs(lines))[:SENTENCES_READ_MAX]:
        bare = _GREETING_HEAD.sub("", sentence, count=1).strip()
        polite = _GREETING.fullmatch(bare) or _COURTESY.fullmatch(bare)
        if polite or len(bare.split()) < WORDS_MIN:
            continue
        found.append(without_hashes(bare[0].upper() + bare[1:]))
    return found


def _paragraphs(lines: Sequence[str]) -> str:
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


MAILS = Rule("mails", read_mail, write_mails)
