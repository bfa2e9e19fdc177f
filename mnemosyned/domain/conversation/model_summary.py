"""A model's summary of messages: what it is given to read, and what becomes of its failures."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mnemosyned.domain.conversation.key_facts import NAMELESS
from mnemosyned.domain.conversation.messages import (
    TIME_KEYS,
    Message,
    PartKind,
    parts,
    tool_names,
)
from mnemosyned.domain.errors import reason_of
from mnemosyned.domain.memory import Detail
from mnemosyned.domain.secrets.known import KnownSecrets

EARLIER_ROLE = "summary"
PART_CHARS_MAX = 4_000
"""Of one tool result or call; the rest of it says little that the beginning does not."""

Summarize = Callable[[Sequence[Message]], str]
"""Makes prose of plain messages; the first may be an earlier summary, with the role `summary`.

It may raise or answer nothing: a rule writes the summary then.
"""


def summarize_with_model(
    summarize: Summarize | None,
    messages: Sequence[Message],
    *,
    fits: Callable[[str], bool],
    earlier: str = "",
    secrets: Sequence[Detail] = (),
) -> tuple[str, str]:
    """A model's summary, empty without one, and why there is none where one was asked for."""
    if summarize is None or not messages:
        return "", ""
    plain = plain_messages(messages, earlier=earlier, secrets=secrets)
    try:
        prose = summarize(plain)
    except Exception as error:  # noqa: BLE001 whatever a model does, the work is told by rule
        return "", reason_of(error)
    prose = prose.strip() if isinstance(prose, str) else ""
    if not prose:
        return "", "the model answered nothing"
    return (prose, "") if fits(prose) else ("", "the model's summary is too long")


def plain_messages(
    messages: Sequence[Message], *, earlier: str = "", secrets: Sequence[Detail] = ()
) -> list[Message]:
    """The messages as plain text without secrets, tool calls and results told in words.

    `secrets` are known from elsewhere, and masked wherever they stand.
    """
    names = tool_names(messages)
    known = KnownSecrets(secrets)
    plain: list[Message] = []
    if earlier:
        plain.append({"role": EARLIER_ROLE, "content": known.mask(earlier)})
    for message in messages:
        role = message.get("role")
        lines = []
        for part in parts(message):
            name = part.name or names.get(part.id) or NAMELESS
            words = (
                part.text if part.kind is PartKind.TEXT else part.text[:PART_CHARS_MAX]
            )
            if part.kind is PartKind.CALL:
                words = f"calls {name} {words}"
            elif part.kind is PartKind.RESULT:
                words = f"{name} answers: {words}"
            elif part.kind is not PartKind.TEXT:
                continue
            if words.strip():
                lines.append(words)
        if lines:
            content = known.mask("\n".join(lines))
            said = {key: message[key] for key in TIME_KEYS if key in message}
            plain.append(
                {
                    "role": role if isinstance(role, str) else "",
                    "content": content,
                    **said,
                }
            )
    return plain
