"""Key facts of a conversation, by rule, and the bullet list they are written as."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise

from mnemosyned.domain.conversation.messages import (
    Message,
    PartKind,
    is_intent,
    is_plain,
    parts,
    strip_stub_mark,
    text,
    tool_names,
)
from mnemosyned.domain.conversation.result_excerpts import beginning, clip_at_word
from mnemosyned.domain.text.frames import neutralize, origin
from mnemosyned.domain.text.sentences import sentences
from mnemosyned.domain.text.tokenizer import (
    EXACT_KINDS,
    UNTELLING_KINDS,
    emphasis,
    tokens,
)

KEYWORDS = (
    "result:", "decided:", "found:", "error:", "success:",
    "created:", "updated:", "deleted:", "confirmed:", "output:",
)  # fmt: skip
SHORT_CHARS = 120
"""Maximum length of a user's message that is kept whole: often an instruction or decision."""
NAMELESS = "tool"

EXACT_WORTH = 2.0
RESULT_SHARE = 0.5
"""Factor of a tool's result, which begins with the tool's name in brackets."""
COST_CHARS = 16
LENGTH_POWER = 0.55
"""Exponent of the length a score is divided by, below one as for sentences of an extract."""

CONCLUSION = "In the end: "
"""Beginning of the fact that holds an agent's last sentences in a round."""
CONCLUSION_CHARS = 240
CONCLUSION_SENTENCES = 2
CONCLUSION_WORDS_MIN = 4
CONCLUSION_FACTOR = 3.0
"""Factor of a conclusion, which must outlast the results that led to it."""

Excerpt = Callable[[str], str]

_LINE_END = re.compile(r"\r\n|\n|\r")
_INDENT = "  "


def extract_facts(
    messages: Sequence[Message], *, excerpt: Excerpt = beginning
) -> list[str]:
    """Extract tool results, lines with a keyword and short messages of the user, each once.

    Other prose of the assistant holds no facts. `excerpt` shortens a tool's result.
    """
    names = tool_names(messages)
    return unique(
        fact
        for message in messages
        for fact in facts_of(message, names, excerpt=excerpt)
    )


def unique(facts: Iterable[str]) -> list[str]:
    """Remove repetitions, keeping first occurrences."""
    return list(dict.fromkeys(facts))


def bullets(facts: Iterable[str]) -> str:
    """Write facts as a bullet list; continuation lines are indented."""
    return "\n".join("- " + fact.replace("\n", "\n" + _INDENT) for fact in facts)


def from_bullets(lines: Iterable[str]) -> tuple[list[str], list[str]]:
    """Parse a bullet list; return its facts, and the lines that belong to no bullet."""
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


def facts_of(
    message: Message, names: Mapping[str, str], *, excerpt: Excerpt = beginning
) -> Iterator[str]:
    """Yield the key facts of one message; `names` maps ids of calls to tools.

    `excerpt` shortens a tool's result.
    """
    yield from _result_facts(message, names, excerpt)
    words = neutralize(text(message))
    for line in _LINE_END.split(words):
        lower = line.lower()
        if any(keyword in lower for keyword in KEYWORDS):
            yield line.strip()
    if message.get("role") == "user" and 0 < len(words) <= SHORT_CHARS:
        yield words


def _result_facts(
    message: Message, names: Mapping[str, str], excerpt: Excerpt
) -> Iterator[str]:
    """Yield excerpts of a message's tool results, with the names of the tools."""
    if is_plain(message):
        return
    for part in parts(message):
        if part.kind is not PartKind.RESULT:
            continue
        if shown := excerpt(strip_stub_mark(part.text)):
            name = origin(part.name or names.get(part.id) or NAMELESS)
            yield f"[{name}] {shown}"


def conclusions(messages: Sequence[Message]) -> dict[int, str]:
    """Return the last sentences of the agent in each round with tools, by position.

    A round is the agent's work between two messages of the user.
    """
    concluding: dict[int, str] = {}
    requests = [index for index, message in enumerate(messages) if is_intent(message)]
    for start, stop in pairwise([-1, *requests, len(messages)]):
        work = messages[start + 1 : stop]
        spoken = list(map(_is_spoken, work))
        if any(spoken) and any(map(_uses_tools, work)):
            last = stop - 1 - spoken[::-1].index(True)
            closing = last_sentences(text(messages[last]))
            if _says_something(closing):
                concluding[last] = CONCLUSION + closing
    return concluding


def _is_spoken(message: Message) -> bool:
    """Whether the agent says something in a message."""
    return message.get("role") == "assistant" and bool(text(message).strip())


def last_sentences(words: str) -> str:
    """Return the last sentences of a text, neutralized: two, or one where two are too long."""
    spoken = [sentence for sentence, _ in sentences(neutralize(words))]
    spoken = [sentence for sentence in spoken if any(map(str.isalpha, sentence))]
    closing = spoken[-CONCLUSION_SENTENCES:]
    while len(closing) > 1 and len(" ".join(closing)) > CONCLUSION_CHARS:
        closing.pop(0)
    return clip_at_word(" ".join(closing), CONCLUSION_CHARS)


def _says_something(closing: str) -> bool:
    """Whether a closing has enough telling words; "I read it." has not."""
    stems = {word.stem for word in tokens(closing) if word.kind not in UNTELLING_KINDS}
    return len(stems) >= CONCLUSION_WORDS_MIN


def _uses_tools(message: Message) -> bool:
    if is_plain(message):
        return False
    return any(part.kind in (PartKind.CALL, PartKind.RESULT) for part in parts(message))


def select_facts(
    facts: Sequence[str], room: int, count: Callable[[str], int]
) -> list[str]:
    """Select the facts that fit into `room` tokens, by score; return them in their order."""
    costs = [count(f"- {fact}\n") for fact in facts]
    if sum(costs) <= room:
        return list(facts)
    scores = [fact_score(fact) for fact in facts]
    selected: set[int] = set()
    for index in sorted(range(len(facts)), key=lambda at: (-scores[at], -at)):
        if costs[index] <= room:
            selected.add(index)
            room -= costs[index]
    return [facts[index] for index in sorted(selected)]


def fact_score(fact: str) -> float:
    """Score a fact by its content for its length: decisions and exact values first."""
    words = tokens(" ".join(fact.split()))
    content = sum(
        EXACT_WORTH if word.kind in EXACT_KINDS else 1.0
        for word in {word.stem: word for word in words}.values()
        if word.kind not in UNTELLING_KINDS
    )
    factor = RESULT_SHARE if fact.startswith("[") else 1.0
    if fact.startswith(CONCLUSION):
        factor = CONCLUSION_FACTOR
    length = float((len(fact) + COST_CHARS) ** LENGTH_POWER)
    return factor * emphasis(words) * content / length
