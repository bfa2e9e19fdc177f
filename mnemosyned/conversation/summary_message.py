"""The summary message of a compaction: how to write, recognize and read a summary."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from mnemosyned.conversation import key_facts, messages
from mnemosyned.text import details, exact_values, frames

SESSION_HEADER = "[Session context consolidated]"
ROUND_HEADER = "[Summary]:"
HEADERS = (
    SESSION_HEADER,
    ROUND_HEADER,
    "[Summary: depth",
    "[Conversation Summary",
    "[Assistant Execution Summary]",
)
"""Headers of summaries, by this and other programs; all are recognized."""
NO_FACTS = "(previous conversation context — no key facts extracted)"
VALUES = "Exact values: "
VALUE_SEPARATOR = " · "
POINTER = "Archived word for word: "
LEFT_OUT = "earlier facts are in the archive)"
KIND = "summary"
MEMORY_KIND = "memory"
"""Kind of the message with recalled memory that precedes the new message."""
PROSE_SHARE = 0.6
"""Maximum share of a summary that a model's prose may take."""
VALUES_SHARE = 0.25
"""Maximum share of a summary for exact values that its facts do not show."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SummaryContent:
    """Content of a summary: facts, exact values, prose, and the ids of summarized messages."""

    facts: tuple[str, ...] = ()
    values: tuple[str, ...] = ()
    """Exact values, word for word."""
    prose: str = ""
    """Prose of a model or a rule."""
    summary_of: tuple[str, ...] = ()
    """Ids of the messages summarized, oldest first."""

    @property
    def id(self) -> str:
        """Id of the compaction that archived the summarized messages, for `expand`."""
        return messages.make_short_digest("c", self.summary_of)


def is_summary(message: messages.Message) -> bool:
    """Return True if a message of text alone is a summary, by its metadata or its first words."""
    content = message.get("content")
    if isinstance(content, str) and "[" not in content[:64]:
        return False
    if message.get("role") not in ("user", "assistant"):
        return False
    if any(
        part.kind is not messages.PartKind.TEXT
        for part in messages.message_parts(message)
    ):
        return False
    if _read_metadata(message).get("kind") == KIND:
        return True
    return messages.message_text(message).lstrip().startswith(HEADERS)


def _read_metadata(message: messages.Message) -> Mapping[str, Any]:
    """Return the metadata of a message, empty for none."""
    metadata = message.get("metadata")
    return metadata if isinstance(metadata, Mapping) else {}


def make_summary_message(
    content: str, condensed: SummaryContent, *, policy: str
) -> dict[str, Any]:
    """Return a summary as a message of the user, with the parsed content `condensed` in its metadata."""
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


def read_summary(message: messages.Message) -> SummaryContent:
    """Return a summary message's content, from the metadata or, without any, from the text."""
    metadata = _read_metadata(message)
    if metadata.get("kind") == KIND and "facts" in metadata:
        prose = metadata.get("prose")
        return SummaryContent(
            facts=_read_string_list(metadata.get("facts")),
            values=_read_string_list(metadata.get("values")),
            prose=prose if isinstance(prose, str) else "",
            summary_of=_read_string_list(metadata.get("summary_of")),
        )
    content = remove_header(messages.message_text(message).strip())
    facts, others = key_facts.parse_bullets(content.split("\n"))
    values: list[str] = []
    texts: list[str] = []
    ids: list[str] = []
    for line in others:
        if line.startswith(VALUES):
            values += line.removeprefix(VALUES).split(VALUE_SEPARATOR)
        elif line.startswith(POINTER):
            ids += [word for word in line.split() if word.startswith("c-")]
        elif not line.endswith(LEFT_OUT):
            texts.append(line)
    return SummaryContent(
        facts=tuple(fact for fact in facts if not fact.startswith(NO_FACTS)),
        values=tuple(values),
        prose="\n".join(texts).strip(),
        summary_of=tuple(ids),
    )


def merge_summaries(earlier: Iterable[SummaryContent]) -> SummaryContent:
    """Return the content of several summaries in one, oldest first, without repetitions."""
    contents = list(earlier)
    return SummaryContent(
        facts=key_facts.merge_lists(*(content.facts for content in contents)),
        values=key_facts.merge_lists(*(content.values for content in contents)),
        prose="\n".join(filter(None, (content.prose for content in contents))),
        summary_of=key_facts.merge_lists(*(content.summary_of for content in contents)),
    )


def convert_prose_to_facts(earlier: SummaryContent) -> SummaryContent:
    """Return a summary's content with its prose and values moved into its facts."""
    shown = "\n".join((*earlier.facts, earlier.prose))
    missing = [value for value in earlier.values if value not in shown]
    values = VALUES + VALUE_SEPARATOR.join(missing) if missing else ""
    facts = key_facts.merge_lists(earlier.facts, filter(None, (earlier.prose, values)))
    return replace(earlier, facts=facts, values=(), prose="")


def render_summary(
    facts: Sequence[str],
    *,
    header: str = SESSION_HEADER,
    prose: str = "",
    values: Sequence[str] = (),
    pointer: str = "",
    left_out: int = 0,
) -> str:
    """Return a summary's text: header, prose, facts as bullets, values and the archive pointer.

    `pointer` is the line that says how to get the originals; `left_out` is the number of facts not
    shown. Prompt tags are made harmless, as the summary becomes a message of the conversation.
    """
    prose = frames.neutralize(prose)
    listed = key_facts.write_bullets(map(frames.neutralize, facts)) or (
        "" if prose else f"- {NO_FACTS}"
    )
    body = [prose, listed]
    if left_out:
        body.append(f"({left_out:,} {LEFT_OUT}")
    if values:
        body.append(VALUES + frames.neutralize_line(VALUE_SEPARATOR.join(values)))
    body.append(pointer)
    separator = " " if header == ROUND_HEADER else "\n\n"
    return header + separator + "\n".join(part for part in body if part)


def remove_header(content: str) -> str:
    """Return a summary's text without its header."""
    header = next(filter(content.startswith, HEADERS), "")
    if header in (SESSION_HEADER, ROUND_HEADER):
        return content.removeprefix(header).strip()
    first, _, rest = content.partition("\n")
    return rest.strip() if first.rstrip().endswith("]") else content


def write_fitting_summary(
    content: SummaryContent, room: int, count: Callable[[str], int], *, policy: str
) -> dict[str, Any]:
    """Return a summary message of about `room` tokens; its metadata has all facts and values.

    `count` returns the tokens of a text. The best facts are shown, then exact values that neither
    they nor the prose show; prose too long for its share is left out.
    """
    prose = content.prose if count(content.prose) <= room * PROSE_SHARE else ""
    originals = len(content.summary_of)
    pointer = f"{POINTER}{originals:,} messages, expand {content.id}"
    room -= count(render_summary((), prose=prose, pointer=pointer))
    facts = key_facts.select_facts(content.facts, int(room * (1 - VALUES_SHARE)), count)
    room -= sum(count(f"- {fact}\n") for fact in facts)
    shown = "\n".join((prose, *facts))
    missing = [
        value
        for value in content.values
        if value not in shown
        and any(
            detail.kind in details.SELF_EXPLANATORY_KINDS
            for detail in exact_values.extract_details(value)
        )
    ]
    body = render_summary(
        facts,
        prose=prose,
        values=key_facts.select_facts(missing, room, count),
        pointer=pointer,
        left_out=len(content.facts) - len(facts),
    )
    return make_summary_message(body, content, policy=policy)


def shrink_summary(
    message: messages.Message, room: int, count: Callable[[str], int]
) -> dict[str, Any]:
    """Return a summary message shortened to about `room` tokens by `count`; its metadata keeps all facts."""
    policy = _read_metadata(message).get("policy")
    policy = policy if isinstance(policy, str) else ""
    return write_fitting_summary(read_summary(message), room, count, policy=policy)


def sendable(
    conversation: Iterable[messages.Message], *, alternate: bool = False
) -> list[messages.Message]:
    """Return messages for a model's API, without our metadata.

    With `alternate`, a summary that would follow a message of the user gets the role `assistant`.
    """
    sent: list[messages.Message] = []
    for message in conversation:
        if _read_metadata(message).get("kind") in (KIND, MEMORY_KIND):
            after_user = bool(sent) and sent[-1].get("role") == "user"
            role = "assistant" if alternate and after_user else message.get("role")
            sent.append({"role": role, "content": message.get("content")})
        else:
            sent.append(message)
    return sent


def _read_string_list(value: object) -> tuple[str, ...]:
    """Return the texts in a list; empty if the value is no list."""
    if not isinstance(value, list | tuple):
        return ()
    return tuple(item for item in value if isinstance(item, str))
