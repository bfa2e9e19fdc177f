"""Conversations of all kinds, for tests that hold for any of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hypothesis import strategies as st

from mnemosyned.conversation.messages import Message

WORDS = st.sampled_from(
    [
        "",
        "   ",
        "ok",
        "use staging\nnot production",
        "result: 3 failed",
        "decided: blue-green\r\nfound: a bug in parser.py",
        "[Summary]: what was done before",
        "[Session context consolidated]\n\n- an earlier fact\n- a second\n  line",
        "日本語のメモ 2026-03-17",
        "It was a long discussion about many things. " * 12,
        "x" * 2_000,
        "error: exit 1 at https://a.b/c?d=1 " * 30,
    ]
)
BLOCKS = st.sampled_from(
    [
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}},
        {"type": "image", "source": {"type": "base64", "data": "AAAA"}},
        {"type": "text", "text": "decided: use X"},
        {"type": "text"},
        {"type": "thinking", "thinking": "hm"},
        {"type": 7},
        "just a string",
        None,
        42,
    ]
)
ODD: st.SearchStrategy[Any] = st.sampled_from(
    [
        None,
        0,
        3.5,
        True,
        {},
        {"type": "text", "text": "alone"},
        [[]],
        b"bytes",
        "\udc80",
        "a\x00b",
    ]
)
FORMS = ("openai", "anthropic", "plain")


@st.composite
def exchanges(draw: st.DrawFn, form: str, number: int) -> list[Message]:
    """Tool calls with their results; now and then one of them is missing."""
    count = draw(st.integers(1, 3))
    ids = [f"call-{number}-{at}" for at in range(count)]
    results = [draw(WORDS) for _ in ids]
    called, answered = draw(
        st.sampled_from([(True, True)] * 8 + [(True, False), (False, True)])
    )
    if form == "openai":
        calls = [
            {"id": id, "function": {"name": "sh", "arguments": '{"a": 1}'}}
            for id in ids
        ]
        call: dict[str, Any] = {
            "role": "assistant",
            "content": None,
            "tool_calls": calls,
        }
        replies: list[dict[str, Any]] = [
            {"role": "tool", "tool_call_id": id, "content": text}
            for id, text in zip(ids, results, strict=True)
        ]
    elif form == "anthropic":
        uses = [
            {"type": "tool_use", "id": id, "name": "sh", "input": {"a": 1}}
            for id in ids
        ]
        call = {"role": "assistant", "content": uses}
        blocks: list[Any] = [
            {"type": "tool_result", "tool_use_id": id, "content": text}
            for id, text in zip(ids, results, strict=True)
        ]
        if draw(st.booleans()):
            blocks.append({"type": "text", "text": "and one more thing"})
        replies = [{"role": "user", "content": blocks}]
    else:
        call = {"role": "assistant", "content": "calling sh"}
        replies = [{"role": "tool", "name": "sh", "content": text} for text in results]
    return [*[call] * called, *replies * answered]


@st.composite
def talks(draw: st.DrawFn, *, size_max: int = 14) -> list[Message]:
    """A conversation in one of the three forms, with odd things in it."""
    form = draw(st.sampled_from(FORMS))
    made: list[Message] = []
    if draw(st.booleans()):
        made.append({"role": "system", "content": "You are X."})
    for number in range(draw(st.integers(0, size_max))):
        kind = draw(st.sampled_from("uuuaaaettbo"))
        if kind in "ua":
            role = "user" if kind == "u" else "assistant"
            made.append({"role": role, "content": draw(WORDS), "id": f"n{number}"})
        elif kind == "t":
            made += draw(exchanges(form, number))
        elif kind == "b":
            made.append({"role": "user", "content": draw(st.lists(BLOCKS, max_size=3))})
        elif kind == "o":
            made.append(
                {
                    "role": draw(st.sampled_from(["user", "assistant", 3])),
                    "content": draw(ODD),
                }
            )
        else:
            made.append(
                draw(
                    st.sampled_from([{}, {"role": "developer", "content": "be brief"}])
                )
            )
    return made


def same(kept: Sequence[object], given: Sequence[object]) -> bool:
    """Whether the very same objects stand in both, in the same order."""
    return len(kept) == len(given) and all(
        one is two for one, two in zip(kept, given, strict=True)
    )
