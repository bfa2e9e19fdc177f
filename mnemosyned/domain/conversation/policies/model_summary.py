"""Summaries of messages by a model: its input, and fallback on its failures."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from mnemosyned.domain.conversation.key_facts import NAMELESS
from mnemosyned.domain.conversation.messages import (
    TIME_KEYS,
    Message,
    Part,
    PartKind,
    parts,
    tool_names,
)
from mnemosyned.domain.errors import reason_of
from mnemosyned.domain.memory import Detail
from mnemosyned.domain.secrets.known import KnownSecrets

EARLIER_ROLE = "summary"
PART_CHARS_MAX = 4_000
"""Characters shown of one tool result or call; the rest adds little."""

Summarize = Callable[[Sequence[Message]], str]
"""Summarizer of plain messages; the first may be an earlier summary, with the role `summary`.

Where it raises or answers nothing, a rule writes the summary.
"""


def summarize_with_model(
    summarize: Summarize | None,
    messages: Sequence[Message],
    *,
    fits: Callable[[str], bool],
    earlier: str = "",
    secrets: Sequence[Detail] = (),
) -> tuple[str, str]:
    """Return a model's summary, or an empty text and the reason for it."""
    if summarize is None or not messages:
        return "", ""
    plain = plain_messages(messages, earlier=earlier, secrets=secrets)
    try:
        prose = summarize(plain)
    except Exception as error:  # noqa: BLE001 a rule writes the summary instead
        return "", reason_of(error)
    prose = prose.strip() if isinstance(prose, str) else ""
    if not prose:
        return "", "the model answered nothing"
    return (prose, "") if fits(prose) else ("", "the model's summary is too long")


def plain_messages(
    messages: Sequence[Message], *, earlier: str = "", secrets: Sequence[Detail] = ()
) -> list[Message]:
    """Return the messages as plain text without secrets, tool calls and results in words.

    `secrets` are known from elsewhere, and masked everywhere.
    """
    names = tool_names(messages)
    known = KnownSecrets(secrets)
    plain: list[Message] = []
    if earlier:
        plain.append({"role": EARLIER_ROLE, "content": known.mask(earlier)})
    for message in messages:
        lines = [line for part in parts(message) if (line := _line(part, names))]
        if lines:
            plain.append(_plain_message(message, known.mask("\n".join(lines))))
    return plain


def _line(part: Part, names: Mapping[str, str]) -> str:
    """Return a text, call or result in words; empty for anything else."""
    if part.kind is PartKind.TEXT:
        line = part.text
    elif part.kind in (PartKind.CALL, PartKind.RESULT):
        name = part.name or names.get(part.id) or NAMELESS
        words = part.text[:PART_CHARS_MAX]
        called = part.kind is PartKind.CALL
        line = f"calls {name} {words}" if called else f"{name} answers: {words}"
    else:
        line = ""
    return line if line.strip() else ""


def _plain_message(message: Message, content: str) -> Message:
    role = message.get("role")
    times = {key: message[key] for key in TIME_KEYS if key in message}
    return {"role": role if isinstance(role, str) else "", "content": content, **times}
