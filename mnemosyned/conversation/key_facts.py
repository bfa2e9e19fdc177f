"""Key facts of a conversation, extracted by patterns, and excerpts of tool results."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, pairwise

from mnemosyned.conversation import messages
from mnemosyned.text import sentences, tokens
from mnemosyned.text.frames import format_origin, neutralize, neutralize_tags

RESULT_CHARS = 200
CLEANED_CHARS = 2_000
"""Characters of a result that are cleaned before its beginning is taken."""
READ_CHARS = 40_000
"""Characters read at the end of a result, and half as many at its beginning."""
LINE_CHARS = 120
"""Characters shown of one line."""
GAP = " … "
"""Mark of lines left out between two lines."""


WORTH_OF_FAILURE = 3.0
"""A line with a failure."""
WORTH_OF_TOTAL = 2.0
"""A line with totals: "3 failed, 12 passed in 4.1 s"."""
WORTH_OF_LAST = 1.5
"""The last line."""
WORTH_OF_FIRST = 1.0
WORTH_OF_OTHER = 0.2

_FAILURE = re.compile(
    r"\b(?:error|errors|fail|failed|failure|failures|exception|fatal|panic(?:ked)?|denied"
    r"|refused|time[d ]?out|not found|cannot|unable|aborted|killed|assert\w*)\b|\w+Error\b",
    re.IGNORECASE,
)
_TOTAL = re.compile(
    r"\b(?:passed|failed|skipped|total|totals|summary|succeeded|success|completed?|finished"
    r"|done|built|installed|updated|created|changed|exit(?:ed)?|rows?|warnings?)\b",
    re.IGNORECASE,
)
_NONE_FAILED = re.compile(
    r"\b(?:0|no) (?:errors?|fail(?:ed|ures?)|exceptions?)\b", re.IGNORECASE
)


def excerpt_beginning(result: str) -> str:
    """Return the beginning of a tool's result, with prompt tags made harmless."""
    return neutralize_tags(neutralize(result.strip()[:CLEANED_CHARS])[:RESULT_CHARS])


def excerpt_highlights(result: str, *, chars: int = RESULT_CHARS) -> str:
    """Return the most important lines of a tool's result, in their order, in about `chars`.

    Prompt tags are made harmless. Failures and totals are preferred, then the last line, then
    the first; lines without a letter are left out. A result of at most `chars` is returned whole.
    """
    result = result.strip()
    if len(result) <= chars:
        return neutralize_tags(neutralize(result)[:chars])
    if len(result) > READ_CHARS * 3 // 2:
        result = f"{result[: READ_CHARS // 2]}\n{result[-READ_CHARS:]}"
    lines = [
        line.strip()
        for line in neutralize(result).split("\n")
        if any(map(str.isalpha, line))
    ] or [" ".join(result.split())]
    if len(lines) == 1:  # cut in the middle; the end is not shorter than the beginning
        room = chars - len(GAP)
        head = clip_at_word(lines[0], room // 2).rstrip("…")
        tail = lines[0][-(room - len(head)) :]
        space = tail.find(" ")
        tail = tail[space + 1 :] if 0 <= space < len(tail) // 2 else tail
        return neutralize_tags(f"{head}{GAP}{tail}")
    text = ""
    previous = None
    for position in _choose_lines(lines, chars):
        if previous is not None:
            text += "\n" if position == previous + 1 else GAP
        text += clip_at_word(lines[position], LINE_CHARS)
        previous = position
    return neutralize_tags(text)


def clip_at_word(text: str, chars: int) -> str:
    """Return a text; above `chars` characters, the beginning, cut between words, with `…`."""
    if len(text) <= chars:
        return text
    head = text[: max(chars - 1, 0)]
    space = head.rfind(" ")
    return (head[:space] if space > chars // 2 else head).rstrip(" ,;:") + "…"


def _choose_lines(lines: Sequence[str], chars: int) -> list[int]:
    """Return the positions of the most valuable lines that fit, ascending; at least one."""
    worth = [_rate_line(line, position, lines) for position, line in enumerate(lines)]
    order = sorted(
        range(len(lines)), key=lambda position: (-worth[position], -position)
    )
    chosen: list[int] = []
    for position in order:
        cost = min(len(lines[position]), LINE_CHARS) + len(GAP)
        if cost <= chars or not chosen:
            chosen.append(position)
            chars -= cost
    return sorted(chosen)


def _rate_line(line: str, position: int, lines: Sequence[str]) -> float:
    """Return a line's worth: highest for failures, then totals, the last and the first line."""
    fails = _FAILURE.search(line) and not _NONE_FAILED.search(line)
    totals = _TOTAL.search(line) and any(map(str.isdigit, line))
    worth = WORTH_OF_FAILURE if fails else WORTH_OF_OTHER
    if totals:
        worth = max(worth, WORTH_OF_TOTAL)
    if position == len(lines) - 1:
        worth = max(worth, WORTH_OF_LAST)
    elif position == 0:
        worth = max(worth, WORTH_OF_FIRST)
    return worth


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
"""Exponent of the length by which a score is divided; below one, as for sentences of an extract."""

CONCLUSION = "In the end: "
"""Beginning of the fact that holds an agent's last sentences in a round."""
CONCLUSION_CHARS = 240
CONCLUSION_SENTENCES = 2
CONCLUSION_WORDS_MIN = 4
CONCLUSION_FACTOR = 3.0
"""Factor of a conclusion, which must outrank the results that led to it."""

Excerpt = Callable[[str], str]

_LINE_END = re.compile(r"\r\n|\n|\r")
_INDENT = "  "


def extract_facts(
    conversation: Sequence[messages.Message], *, excerpt: Excerpt = excerpt_beginning
) -> list[str]:
    """Return the key facts of messages, each once, in order.

    Facts are tool results, lines with a keyword, and short messages of the user; other prose of the
    assistant contains none. `excerpt` shortens a tool's result.
    """
    names = messages.find_tool_names(conversation)
    return list(
        dict.fromkeys(
            fact
            for message in conversation
            for fact in extract_message_facts(message, names, excerpt=excerpt)
        )
    )


def merge_lists(*lists: Iterable[str]) -> tuple[str, ...]:
    """Return the distinct texts of one or more lists, in the order of first occurrence."""
    return tuple(dict.fromkeys(chain.from_iterable(lists)))


def write_bullets(facts: Iterable[str]) -> str:
    """Return facts as a bullet list; continuation lines are indented."""
    return "\n".join("- " + fact.replace("\n", "\n" + _INDENT) for fact in facts)


def parse_bullets(lines: Iterable[str]) -> tuple[list[str], list[str]]:
    """Return the facts of a bullet list, and the lines that are part of no bullet."""
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


def extract_message_facts(
    message: messages.Message,
    names: Mapping[str, str],
    *,
    excerpt: Excerpt = excerpt_beginning,
) -> Iterator[str]:
    """Yield the key facts of one message: results of tools, lines with a keyword, and short texts."""
    for part in () if messages.is_plain(message) else messages.message_parts(message):
        if part.kind is not messages.PartKind.RESULT:
            continue
        if shown := excerpt(messages.strip_truncation_mark(part.text)):
            name = format_origin(part.name or names.get(part.id) or NAMELESS)
            yield f"[{name}] {shown}"
    words = neutralize(messages.message_text(message))
    for line in _LINE_END.split(words):
        lower = line.lower()
        if any(keyword in lower for keyword in KEYWORDS):
            yield line.strip()
    if message.get("role") == "user" and 0 < len(words) <= SHORT_CHARS:
        yield words


def find_round_conclusions(conversation: Sequence[messages.Message]) -> dict[int, str]:
    """Return {position of a message: the agent's last sentences} for rounds with tool calls.

    A round is the agent's work between two messages of the user. The position is that of the agent's
    last message with text. Conclusions with few content words are left out.
    """
    concluding: dict[int, str] = {}
    requests = [
        index
        for index, message in enumerate(conversation)
        if messages.has_user_content(message)
    ]
    for start, stop in pairwise([-1, *requests, len(conversation)]):
        work = conversation[start + 1 : stop]
        spoken = [
            message.get("role") == "assistant"
            and bool(messages.message_text(message).strip())
            for message in work
        ]
        has_tools = any(
            part.kind in (messages.PartKind.CALL, messages.PartKind.RESULT)
            for message in work
            if not messages.is_plain(message)
            for part in messages.message_parts(message)
        )
        if any(spoken) and has_tools:
            last = stop - 1 - spoken[::-1].index(True)
            closing = excerpt_last_sentences(messages.message_text(conversation[last]))
            # More than "I read it.".
            if len(tokens.find_keywords(closing)) >= CONCLUSION_WORDS_MIN:
                concluding[last] = CONCLUSION + closing
    return concluding


def excerpt_last_sentences(words: str) -> str:
    """Return the last two sentences, or only the last, in `CONCLUSION_CHARS` at most; tags made harmless."""
    spoken = [sentence for sentence, _ in sentences.split_sentences(neutralize(words))]
    spoken = [sentence for sentence in spoken if any(map(str.isalpha, sentence))]
    closing = spoken[-CONCLUSION_SENTENCES:]
    while len(closing) > 1 and len(" ".join(closing)) > CONCLUSION_CHARS:
        closing.pop(0)
    return clip_at_word(" ".join(closing), CONCLUSION_CHARS)


def select_facts(
    facts: Sequence[str], room: int, count: Callable[[str], int]
) -> list[str]:
    """Return the best facts that fit in `room` tokens, in the order given; all if all fit."""
    costs = [count(f"- {fact}\n") for fact in facts]
    if sum(costs) <= room:
        return list(facts)
    scores = [score_fact(fact) for fact in facts]
    selected: set[int] = set()
    for index in sorted(range(len(facts)), key=lambda at: (-scores[at], -at)):
        if costs[index] <= room:
            selected.add(index)
            room -= costs[index]
    return [facts[index] for index in sorted(selected)]


def score_fact(fact: str) -> float:
    """Return a fact's score: the number of its distinct content words, relative to its length.

    Exact values such as numbers and paths weigh more, words of decision raise the score, tool results
    have a smaller score, and conclusions a higher one.
    """
    words = tokens.tokenize(" ".join(fact.split()))
    content = sum(
        EXACT_WORTH if word.kind in tokens.EXACT_KINDS else 1.0
        for word in {word.stem: word for word in words}.values()
        if word.kind not in tokens.COMMONPLACE_KINDS
    )
    factor = RESULT_SHARE if fact.startswith("[") else 1.0
    if fact.startswith(CONCLUSION):
        factor = CONCLUSION_FACTOR
    length = float((len(fact) + COST_CHARS) ** LENGTH_POWER)
    return factor * tokens.emphasis_factor(words) * content / length
