"""Prompts for summaries, and removal of the reasoning, greetings and marks around an answer."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, tzinfo

from mnemosyned.instants import in_zone
from mnemosyned.memory.values import MemoryRecord
from mnemosyned.text.dates.formatting import format_day
from mnemosyned.text.frames import neutralize, neutralize_line
from mnemosyned.text.languages.tables import WEEKDAY_ABBREVIATIONS
from mnemosyned.text.rule_files import read_rule_file, read_tables
from mnemosyned.text.sentences import CLOSING_QUOTES, SPACED_ENDS, UNSPACED_ENDS

_WORDS, _NAMES, _PATTERNS, _FORMS = read_rule_file(
    __file__,
    spaced_ends=SPACED_ENDS,
    unspaced_ends=UNSPACED_ENDS,
    closing_quotes=CLOSING_QUOTES,
)

CHARS_PER_WORD = 6
WORDS_MIN = 15
ROLE_CHARS_MAX = 40
ITEMS_MAX = 12
ITEM_CHARS_MAX = 60

Message = dict[str, str]

_TEXTS: dict[str, str] = read_tables(__file__, "prompts.toml")["texts"]
"""The prompts and their parts."""


def write_summary_request(
    memories: Sequence[MemoryRecord], *, chars_max: int, zone: tzinfo = UTC
) -> list[Message]:
    """Return the chat messages that ask a model for a summary of these memories.

    `chars_max` is the length to ask for; times are given in `zone`. Blank memories are left out.
    """
    blocks = "\n".join(
        render_memory(memory, zone=zone)
        for memory in memories
        if memory.content.strip()
    )
    return _write_request(blocks, given="memories", chars_max=chars_max)


def write_combining_request(
    summaries: Sequence[str], *, chars_max: int
) -> list[Message]:
    """Return the chat messages that ask a model to combine partial summaries into one.

    `chars_max` is the length to ask for.
    """
    blocks = "\n".join(
        render_partial_summary(text, at) for at, text in enumerate(summaries, start=1)
    )
    return _write_request(
        f"{_TEXTS['parts']}\n{blocks}", given="summaries", chars_max=chars_max
    )


def write_retry_request(
    messages: Sequence[Message],
    *,
    ungrounded: Sequence[str],
    otherwise: Sequence[str] = (),
) -> list[Message]:
    """Return a request's chat messages with the faults of the model's first answer added.

    `ungrounded` are values that no source contains, `otherwise` names other faults, such as "too
    long". The first answer itself is left out, as the model would copy it.
    """
    given = "summaries" if "<summary part=" in messages[-1]["content"] else "memories"
    # Cut short, and with markup made harmless.
    blank = _PATTERNS["attribute"]
    named = [
        f'"{blank.sub(" ", neutralize(item)).strip()[:ITEM_CHARS_MAX]}"'
        for item in ungrounded[:ITEMS_MAX]
    ]
    reasons = []
    if named:
        reasons.append(_TEXTS["ungrounded"].format(given=given, items=", ".join(named)))
    if otherwise:
        reasons.append(_TEXTS["otherwise"].format(items=" and ".join(otherwise)))
    again = _TEXTS["retry"].format(given=given, reason=" Also, ".join(reasons))
    last = messages[-1]
    return [*messages[:-1], {**last, "content": f"{last['content']}\n{again}"}]


def render_memory(memory: MemoryRecord, *, zone: tzinfo = UTC) -> str:
    """Return a memory's text between tags with its time in `zone` and its role.

    Text that looks like a tag is neutralized, so that it cannot end the memory.
    """
    said = in_zone(memory.created_at, zone)
    when = f"{WEEKDAY_ABBREVIATIONS[said.weekday()]} {format_day(said)} {said:%H:%M}"
    role = (
        _PATTERNS["attribute"]
        .sub(" ", neutralize_line(memory.role))
        .strip()[:ROLE_CHARS_MAX]
    )
    who = f' role="{role}"' if role else ""
    return f'<memory time="{when}"{who}>\n{neutralize(memory.content)}\n</memory>'


def render_partial_summary(text: str, part: int) -> str:
    """Return a partial summary between tags that have its number, `part`."""
    return f'<summary part="{part}">\n{neutralize(text)}\n</summary>'


def _write_request(blocks: str, *, given: str, chars_max: int) -> list[Message]:
    """Return a system and a user message that ask for a summary of the text `blocks`.

    `given` names what the blocks are, such as "memories"; `chars_max` is the length to ask for.
    """
    words = max(chars_max // CHARS_PER_WORD, WORDS_MIN)
    return [
        {"role": "system", "content": _TEXTS["task"].format(given=given, words=words)},
        {"role": "user", "content": f"{blocks}\n\n{_TEXTS['ask'].format(given=given)}"},
    ]


ROUNDS_MAX = 6
"""Maximum nesting of wrappings: a fence in a preamble in quotation marks."""
PREAMBLE_CHARS_MAX = 160

_PAIRS = dict(zip("\"'“‘«「『„", "\"'”’»」』“", strict=True))
"""Closing quotation marks, by the opening ones."""


def clean_answer(output: str) -> str:
    """Return a model's answer without reasoning, greetings, quotation marks and code fences.

    Empty if nothing is left.
    """
    text = _PATTERNS["opening"].sub("", output.strip())
    text = _PATTERNS["thought_end"].sub("", _PATTERNS["thought"].sub("", text)).strip()
    text = (
        _PATTERNS["template"]
        .sub("", _PATTERNS["turn"].sub("", _PATTERNS["opening"].sub("", text)))
        .strip()
    )
    for _ in range(ROUNDS_MAX):
        before = text
        text = _unwrap_once(_PATTERNS["closing"].sub("", text).strip())
        if text == before:
            break
    return "\n".join(line.rstrip() for line in text.splitlines())


def trim_to_sentence(text: str) -> str:
    """Return a truncated text up to the end of its last whole sentence.

    The text is returned unchanged if more than half of it would be lost.
    """
    ends = [match.end() for match in _PATTERNS["sentence_end"].finditer(text)]
    return text[: ends[-1]].rstrip() if ends and ends[-1] > len(text) // 2 else text


def _unwrap_once(text: str) -> str:
    """Return the text without its outermost wrapping: code fence, quotes, preamble or heading."""
    text = _PATTERNS["rule"].sub("", text).strip()
    fence = _PATTERNS["fence"].match(text)
    if fence:
        return fence[1].strip()
    if len(text) > 1 and _PAIRS.get(text[0]) == text[-1]:
        inner = text[1:-1]
        if text[0] not in inner and text[-1] not in inner:  # unlike `"A" and "B"`
            return inner.strip()
    affirmed = _PATTERNS["affirmed"].match(text)
    rest = text[affirmed.end() :] if affirmed else ""
    wrapped = _PATTERNS["preamble"].match(rest) or _PATTERNS["heading"].match(rest)
    if rest and (wrapped or not _PATTERNS["continues"].match(rest)):
        text = rest
    preamble = _PATTERNS["preamble"].match(text)
    if (
        preamble
        and preamble.end() <= PREAMBLE_CHARS_MAX
        and _PATTERNS["itself"].search(preamble[0])
    ):
        return text[preamble.end() :].strip()
    return _PATTERNS["heading"].sub("", text).strip()
