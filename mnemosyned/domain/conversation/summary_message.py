"""The message that stands for compacted ones: how it is written, known again and read back."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from mnemosyned.domain.conversation.key_facts import (
    bullets,
    from_bullets,
    select_facts,
    unique,
)
from mnemosyned.domain.conversation.messages import (
    Message,
    PartKind,
    digest,
    parts,
    text,
)
from mnemosyned.domain.summary.prompt import neutralize, neutralize_line

SESSION_HEADER = "[Session context consolidated]"
ROUND_HEADER = "[Summary]:"
HEADERS = (
    SESSION_HEADER,
    ROUND_HEADER,
    "[Summary: depth",
    "[Conversation Summary",
    "[Assistant Execution Summary]",
)
"""The forms the seeds and the programs behind them write; all are known again."""
NO_FACTS = "(previous conversation context — no key facts extracted)"
VALUES = "Exact values: "
VALUE_SEPARATOR = " · "
POINTER = "Archived word for word: "
LEFT_OUT = "earlier facts are in the archive)"
KIND = "summary"
MEMORY_KIND = "memory"
"""The message with recalled memory, where that stands beside the new message."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SummaryContent:
    """What a summary message holds of those it stands for."""

    facts: tuple[str, ...] = ()
    values: tuple[str, ...] = ()
    """Exact values, word for word."""
    prose: str = ""
    """A model's words, or a rule's."""
    summary_of: tuple[str, ...] = ()
    """Ids of the messages it stands for, oldest first."""

    @property
    def id(self) -> str:
        """What the archive can call all of them together."""
        return digest("c", self.summary_of)


def is_summary(message: Message) -> bool:
    """Whether an earlier compaction wrote it, as its metadata or its first words show.

    What a tool answered is none, whatever it says.
    """
    content = message.get("content")
    if isinstance(content, str) and "[" not in content[:64]:
        return False
    if message.get("role") not in ("user", "assistant"):
        return False
    if any(part.kind is not PartKind.TEXT for part in parts(message)):
        return False
    metadata = message.get("metadata")
    if isinstance(metadata, Mapping) and metadata.get("kind") == KIND:
        return True
    return text(message).lstrip().startswith(HEADERS)


def summary_message(
    content: str, condensed: SummaryContent, *, policy: str
) -> dict[str, Any]:
    """The message as it is kept: by the user, marked as a summary in its metadata."""
    metadata = {
        "kind": KIND,
        "policy": policy,
        "id": condensed.id,
        "summary_of": list(condensed.summary_of),
        "facts": list(condensed.facts),
        "values": list(condensed.values),
        "prose": condensed.prose,
    }
    return {"role": "user", "content": content, "metadata": metadata}


def read_summary(message: Message) -> SummaryContent:
    """What a summary message holds: from its metadata, else as far as its text says."""
    metadata = message.get("metadata")
    if (
        isinstance(metadata, Mapping)
        and metadata.get("kind") == KIND
        and "facts" in metadata
    ):
        prose = metadata.get("prose")
        return SummaryContent(
            facts=_strings(metadata.get("facts")),
            values=_strings(metadata.get("values")),
            prose=prose if isinstance(prose, str) else "",
            summary_of=_strings(metadata.get("summary_of")),
        )
    return _parse_summary(text(message).strip())


def merge_summaries(earlier: Iterable[SummaryContent]) -> SummaryContent:
    """One out of several, oldest first; nothing but repetition is lost."""
    all_of = list(earlier)
    return SummaryContent(
        facts=tuple(unique(fact for one in all_of for fact in one.facts)),
        values=tuple(unique(value for one in all_of for value in one.values)),
        prose="\n".join(one.prose for one in all_of if one.prose),
        summary_of=tuple(unique(id for one in all_of for id in one.summary_of)),
    )


def prose_to_facts(earlier: SummaryContent) -> SummaryContent:
    """The same where prose has no place: it goes on as a fact of its own, and so do values."""
    told = "\n".join((*earlier.facts, earlier.prose))
    left = VALUE_SEPARATOR.join(value for value in earlier.values if value not in told)
    further = [
        *([earlier.prose] if earlier.prose else []),
        *([VALUES + left] if left else []),
    ]
    facts = unique([*earlier.facts, *further])
    return replace(earlier, facts=tuple(facts), values=(), prose="")


@dataclass(frozen=True, slots=True, kw_only=True)
class SummaryLayout:
    """How a summary is written out."""

    header: str = SESSION_HEADER
    pointer: str = ""
    """Where the originals can be had, on a line of its own."""
    values: Sequence[str] = field(default_factory=tuple)


def render_summary(
    facts: Sequence[str], *, shape: SummaryLayout, prose: str = "", left_out: int = 0
) -> str:
    """A summary's text: header, prose, facts as bullets, values and the pointer.

    What others said in it is made harmless: it stands in the window as a message of its own.
    """
    prose = neutralize(prose)
    listed = bullets(map(neutralize, facts)) or ("" if prose else f"- {NO_FACTS}")
    body = [prose, listed]
    if left_out:
        body.append(f"({left_out:,} {LEFT_OUT}")
    if shape.values:
        body.append(VALUES + neutralize_line(VALUE_SEPARATOR.join(shape.values)))
    body.append(shape.pointer)
    joint = " " if shape.header == ROUND_HEADER else "\n\n"
    return shape.header + joint + "\n".join(part for part in body if part)


def body_of(content: str) -> str:
    """A summary's text without its header."""
    header = next((one for one in HEADERS if content.startswith(one)), "")
    if header in (SESSION_HEADER, ROUND_HEADER):
        return content.removeprefix(header).strip()
    first, _, rest = content.partition("\n")
    return rest.strip() if first.rstrip().endswith("]") else content


def shrink_summary(
    message: Message, room: int, count: Callable[[str], int]
) -> dict[str, Any]:
    """A summary message in about so many tokens: fewer facts in its words, all in its metadata."""
    holds = read_summary(message)
    shape = SummaryLayout(
        pointer=f"{POINTER}{len(holds.summary_of):,} messages, expand {holds.id}"
    )
    room -= count(render_summary((), shape=shape, left_out=1))
    prose = holds.prose if count(holds.prose) <= room // 2 else ""
    facts = select_facts(holds.facts, room - count(prose), count)
    left_out = len(holds.facts) - len(facts)
    body = render_summary(facts, shape=shape, prose=prose, left_out=left_out)
    metadata = message.get("metadata")
    policy = metadata.get("policy") if isinstance(metadata, Mapping) else None
    return summary_message(
        body, holds, policy=policy if isinstance(policy, str) else ""
    )


def sendable(messages: Iterable[Message], *, alternate: bool = False) -> list[Message]:
    """The messages as an API takes them: what we wrote has no metadata any more.

    With `alternate`, a summary that would follow one of the user's own is the assistant's.
    """
    sent: list[Message] = []
    for message in messages:
        metadata = message.get("metadata")
        if isinstance(metadata, Mapping) and metadata.get("kind") in (
            KIND,
            MEMORY_KIND,
        ):
            after_user = bool(sent) and sent[-1].get("role") == "user"
            role = "assistant" if alternate and after_user else message.get("role")
            sent.append({"role": role, "content": message.get("content")})
        else:
            sent.append(message)
    return sent


def _parse_summary(content: str) -> SummaryContent:
    facts, others = from_bullets(body_of(content).split("\n"))
    values: list[str] = []
    prose: list[str] = []
    ids: list[str] = []
    for line in others:
        if line.startswith(VALUES):
            values += line.removeprefix(VALUES).split(VALUE_SEPARATOR)
        elif line.startswith(POINTER):
            ids += [word for word in line.split() if word.startswith("c-")]
        elif not line.endswith(LEFT_OUT):
            prose.append(line)
    return SummaryContent(
        facts=tuple(fact for fact in facts if not fact.startswith(NO_FACTS)),
        values=tuple(values),
        prose="\n".join(prose).strip(),
        summary_of=tuple(ids),
    )


def _strings(value: object) -> tuple[str, ...]:
    if not isinstance(value, list | tuple):
        return ()
    return tuple(one for one in value if isinstance(one, str))
