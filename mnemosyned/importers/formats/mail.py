"""Mail in an mbox file."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import datetime
from email import message_from_bytes, policy
from email.message import EmailMessage
from email.utils import parseaddr, parsedate_to_datetime
from html.parser import HTMLParser

from mnemosyned.importers import importer, reading
from mnemosyned.verbs.memories import Remember

MAIL_BYTES_MAX = 8 << 20
"""Bytes read of one mail; the rest are attachments."""
TEXT_CHARS_MAX = 50_000
_BEGIN = re.compile(rb"From \S+ .*\d{4}|From - ")
_QUOTED_BEGIN = re.compile(rb"^>(>*From )", re.MULTILINE)
_REPLY = re.compile(
    r"\A(?:(?:re|fwd?|aw|wg|antw|sv|vs|rv|tr)(?:\[\d+\])?\s*:\s*)+", re.IGNORECASE
)


@dataclass(slots=True)
class _Mail(reading.FileRecord):
    arrival: str = ""
    """The time of its "From …" line."""
    data: bytearray = field(default_factory=bytearray)
    is_after_blank: bool = False
    """Whether its last line is blank, so that a mail may begin with the next."""


class Mailbox(importer.ImportFormat):
    """An mbox file."""

    name = "mbox"

    def recognizes(self, source: importer.ImportSource) -> bool:
        """Return True if the source begins with the "From …" line of an mbox file and headers."""
        lines = source.head.split(b"\n", 20)
        has_fields = any(b": " in line for line in lines[1:20])
        return bool(_BEGIN.match(lines[0])) and has_fields

    def read_records(
        self, source: importer.ImportSource, position: str
    ) -> importer.Records:
        """Yield the mails of an mbox file after a position, "byte offset/number of the mail"."""
        return reading.read_grouped_lines(
            source, position, _take_mail_line, _memory_of_mail, noun="mail"
        )


def _take_mail_line(line: reading.TextLine, mail: _Mail | None) -> _Mail | None:
    """Return a new mail if the line begins one, else add the line to the last `mail` and return None."""
    if (mail is None or mail.is_after_blank) and _BEGIN.match(line.data):
        return _Mail(arrival=line.data.decode("latin-1").split(None, 2)[-1])
    if mail:
        if len(mail.data) < MAIL_BYTES_MAX:
            mail.data += b"\n" if line.too_long else line.data[:MAIL_BYTES_MAX]
        mail.is_after_blank = not line.data.strip()
    return None


def _memory_of_mail(mail: _Mail) -> Remember:
    """Return the memory of a mail, in a session of its subject. Raises `PARSE_ERRORS`."""
    data = _QUOTED_BEGIN.sub(rb"\1", bytes(mail.data))
    message = message_from_bytes(data, policy=policy.default)
    subject = importer.clean_name(_decode_header(message, "subject"))
    name, address = parseaddr(_decode_header(message, "from"))
    topic = _REPLY.sub("", subject) or "without subject"
    date = _parse_date(_decode_header(message, "date"))
    text = _extract_mail_text(message)
    if not (subject or text):
        raise ValueError("it has neither subject nor text")
    own_id = (
        _decode_header(message, "message-id") or f"{date}\n{address}\n{subject}\n{text}"
    )
    return Remember(
        f"{subject}\n\n{text}".strip(),
        id=importer.stable_id("mail", own_id),
        session=f"mail:{topic}",
        source="mail",
        role=name or address,
        created_at=date or _parse_date(mail.arrival),
        metadata={
            "subject": subject,
            "from": importer.clean_name(_decode_header(message, "from")),
            "to": importer.clean_name(_decode_header(message, "to")),
        },
        tags=_decode_header(message, "x-gmail-labels").split(","),
    )


def _parse_date(text: str) -> datetime | None:
    """Return the time in the text of a mail's header; None if the text is no valid date."""
    try:
        return importer.moment_from(parsedate_to_datetime(text))
    except (ValueError, TypeError, IndexError):
        return None


def _decode_header(message: EmailMessage, name: str) -> str:
    """Return a mail's header of this name as text; empty if it is missing or broken."""
    try:
        return str(message.get(name) or "")
    except importer.PARSE_ERRORS:
        return ""


def _extract_mail_text(message: EmailMessage) -> str:
    """Return a mail's text, cut at `TEXT_CHARS_MAX`, without the quoted lines at the end."""
    part = message.get_body(preferencelist=("plain", "html"))
    if part is None:
        return ""
    try:
        content = part.get_content()
    except (LookupError, ValueError, KeyError):
        payload = part.get_payload(decode=True)
        content = payload.decode("latin-1") if isinstance(payload, bytes) else ""
    if not isinstance(content, str):
        return ""
    if part.get_content_type() == "text/html":
        page = _PageText()
        page.feed(content[: 4 * TEXT_CHARS_MAX])
        page.close()
        stripped = (line.strip() for line in "".join(page.parts).split("\n"))
        content = "\n".join(filter(None, stripped))
    text = content.replace("\r\n", "\n").strip()
    lines = text.split("\n")
    while lines and (lines[-1].startswith(">") or not lines[-1].strip()):
        lines.pop()
    return ("\n".join(lines).strip() or text)[:TEXT_CHARS_MAX]


class _PageText(HTMLParser):
    """The text of a page; pieces of a quotation begin with `>`."""

    HIDDEN = frozenset({"script", "style", "head", "title"})
    BREAKS = frozenset({"p", "br", "div", "tr", "li", "h1", "h2", "h3", "blockquote"})

    def __init__(self) -> None:
        super().__init__()
        self.parts: list[str] = []
        self._hidden = 0
        self._quoted = 0

    def handle_starttag(self, tag: str, _attrs: object) -> None:
        """Hide the text after a tag such as `script`; begin a new line at a tag such as `p`."""
        self._hidden += tag in self.HIDDEN
        self._quoted += tag == "blockquote"
        if tag in self.BREAKS:
            self.parts.append("\n")

    def handle_endtag(self, tag: str) -> None:
        """Show text again after the closing tag of a hidden element; end a quotation."""
        self._hidden = max(0, self._hidden - (tag in self.HIDDEN))
        if tag == "blockquote" and self._quoted:
            self._quoted -= 1
            self.parts.append("\n")

    def handle_data(self, data: str) -> None:
        """Keep a piece of the page's text, with single spaces, unless it is in a hidden element."""
        if not self._hidden and data.strip():
            self.parts.append("> " * self._quoted + " ".join(data.split()) + " ")
