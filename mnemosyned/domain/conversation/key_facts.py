"""Key facts of a conversation, by the Missy seed's rules, and the bullets they are written as."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from mnemosyned.domain.conversation.messages import (
    Message,
    PartKind,
    is_plain,
    parts,
    strip_stub_mark,
    text,
    tool_names,
)
from mnemosyned.domain.summary.prompt import neutralize, neutralize_line
from mnemosyned.domain.text.tokenizer import EXACT_KINDS, Kind, emphasis, tokens

KEYWORDS = (
    "result:", "decided:", "found:", "error:", "success:",
    "created:", "updated:", "deleted:", "confirmed:", "output:",
)  # fmt: skip
RESULT_CHARS = 200
CLEANED_CHARS = 2_000
"""As much of a result is cleaned for its beginning."""
SHORT_CHARS = 120
"""A message of the user's up to this long is often an instruction or a decision."""
NAMELESS = "tool"

_LINE_END = re.compile(r"\r\n|\n|\r")
_INDENT = "  "


def extract_facts(messages: Sequence[Message]) -> list[str]:
    """Tool results, lines with a keyword and short words of the user's, in order, each once.

    Of prose by the assistant only the lines with a keyword are facts.
    """
    names = tool_names(messages)
    return unique(fact for message in messages for fact in facts_of(message, names))


def unique(facts: Iterable[str]) -> list[str]:
    """Each once, at its first place."""
    return list(dict.fromkeys(facts))


def bullets(facts: Iterable[str]) -> str:
    """The facts as a list; the further lines of one are indented."""
    return "\n".join("- " + fact.replace("\n", "\n" + _INDENT) for fact in facts)


def from_bullets(lines: Iterable[str]) -> tuple[list[str], list[str]]:
    """What `bullets` wrote, and the lines that belong to no bullet."""
    facts: list[str] = []
    others: list[str] = []
    inside = False
    for line in lines:
        if line.startswith("- "):
            facts.append(line[2:])
            inside = True
        elif inside and line.startswith(_INDENT):
            facts[-1] += "\n" + line.removeprefix(_INDENT)
        else:
            others.append(line)
            inside = inside and not line.strip()
    return facts, others


def result_excerpt(result: str) -> str:
    """How a tool's result begins, with nothing in it that could be taken for more than that."""
    return neutralize(result.strip()[:CLEANED_CHARS])[:RESULT_CHARS]


def facts_of(message: Message, names: Mapping[str, str]) -> Iterator[str]:
    """The key facts of one message; `names` are those of the tools, by the ids of their calls."""
    if not is_plain(message):
        for part in parts(message):
            if part.kind is PartKind.RESULT:
                found = result_excerpt(strip_stub_mark(part.text))
                name = neutralize_line(part.name or names.get(part.id) or NAMELESS)
                if found:
                    yield f"[{name}] {found}"
    words = neutralize(text(message))
    for line in _LINE_END.split(words):
        lower = line.lower()
        if any(keyword in lower for keyword in KEYWORDS):
            yield line.strip()
    if message.get("role") == "user" and 0 < len(words) <= SHORT_CHARS:
        yield words


EXACT_WORTH = 2.0


RESULT_SHARE = 0.5
"""A tool's result, which begins with its name in brackets, gives way to what people say."""


COST_CHARS = 16


LENGTH_POWER = 0.55
"""Worth is judged by length, to a power below one, as for the sentences of an extract."""


_SILENT = (Kind.STOP, Kind.COMMON)


def select_facts(
    facts: Sequence[str], room: int, count: Callable[[str], int]
) -> list[str]:
    """As many facts as so many tokens hold, the most telling first, in the order they came in."""
    costs = [count(f"- {fact}\n") for fact in facts]
    if sum(costs) <= room:
        return list(facts)
    worth = [fact_score(fact) for fact in facts]
    chosen: set[int] = set()
    for at in sorted(range(len(facts)), key=lambda at: (-worth[at], -at)):
        if costs[at] <= room:
            chosen.add(at)
            room -= costs[at]
    return [facts[at] for at in sorted(chosen)]


def fact_score(fact: str) -> float:
    """How much a fact says for its length: rulings and exact values before chatter."""
    words = tokens(" ".join(fact.split()))
    said = sum(
        EXACT_WORTH if word.kind in EXACT_KINDS else 1.0
        for word in {word.stem: word for word in words}.values()
        if word.kind not in _SILENT
    )
    share = RESULT_SHARE if fact.startswith("[") else 1.0
    return (
        share * emphasis(words) * said / float((len(fact) + COST_CHARS) ** LENGTH_POWER)
    )
