"""Mails with their headers: from whom, about what, and the first informative sentences."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import tzinfo
from itertools import takewhile

from mnemosyned.domain.memory import MemoryRecord
from mnemosyned.domain.summary.records.fields import (
    Fields,
    common_name,
    person,
    when_of,
)
from mnemosyned.domain.summary.records.lines import Reading, Rule, Sentence, write_each
from mnemosyned.domain.summary.records.wording import (
    closed,
    collapse,
    phrase,
    shorten,
    without_hashes,
)
from mnemosyned.domain.text.matching import first_match
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


def _sentences(reading: Reading[Mail], zone: tzinfo) -> Iterator[Sentence]:
    """Write a mail with its sender, subject and what it says first."""
    fields, body = reading.value.fields, reading.value.body
    sender = _party(fields, "sender")
    is_own = reading.memory.role in {"user", "me"}
    recipient = _party(fields, "recipient") if is_own or not sender else ""
    subject = shorten(fields["title"], SUBJECT_CHARS_MAX)
    head = "Mail" + phrase(" from ", sender) + phrase(" to ", recipient)
    head += phrase(", “", subject, "”") + phrase(", ", when_of(fields, zone))
    said = _gist(body)
    source = f"{' '.join(fields.values())} {body}"
    yield Sentence(f"{head}: {closed(said)}" if said else f"{head}.", WORTH, source)


def _party(fields: Fields, name: str) -> str:
    return shorten(person(fields.get(name, "")), NAME_CHARS_MAX)


def _gist(body: str) -> str:
    """Return the sentences worth most that fit, in order: the first, then those with values."""
    informative = _informative(body)
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
    text = _paragraphs(takewhile(_is_message, body.splitlines()))
    bare = [
        _GREETING_HEAD.sub("", sentence, count=1).strip()
        for sentence, _ in sentences(text)[:SENTENCES_READ_MAX]
    ]
    return [
        without_hashes(sentence[0].upper() + sentence[1:])
        for sentence in bare
        if len(sentence.split()) >= WORDS_MIN and not first_match(_POLITE, sentence)
    ]


def _is_message(line: str) -> bool:
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


MAILS = Rule("mails", read_mail, write_each(_sentences))
