"""Conversations of all kinds, for tests that hold for any of them."""

from collections.abc import Sequence
from typing import Any

from hypothesis import strategies as st
from support.messages import call, result, says, text_block, tool_result, tool_use

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
    [None, 0, 3.5, True, {}, text_block("alone"), [[]], b"bytes", "\udc80", "a\x00b"]
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
        asked = call(*ids)
        replies = [result(*each) for each in zip(ids, results, strict=True)]
    elif form == "anthropic":
        uses = [tool_use(id, a=1)["content"][0] for id in ids]
        asked = says(uses, "assistant")
        blocks = [tool_result(*each) for each in zip(ids, results, strict=True)]
        if draw(st.booleans()):
            blocks.append(text_block("and one more thing"))
        replies = [says(blocks)]
    else:
        asked = says("calling sh", "assistant")
        replies = [says(text, "tool", name="sh") for text in results]
    return [*[asked] * called, *replies * answered]


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
            odd_role = draw(st.sampled_from(["user", "assistant", 3]))
            made.append({"role": odd_role, "content": draw(ODD)})
        else:
            made.append(draw(st.sampled_from([{}, says("be brief", "developer")])))
    return made


def same(kept: Sequence[object], given: Sequence[object]) -> bool:
    """Whether the very same objects stand in both, in the same order."""
    return len(kept) == len(given) and all(
        one is two for one, two in zip(kept, given, strict=True)
    )
