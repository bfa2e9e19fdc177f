"""Compaction by the seeds' two policies, beyond what their cases say of it."""

from collections.abc import Sequence
from typing import Any

from support.cases import each_case
from support.messages import call, result, says, text_block, tool_result, tool_use

from mnemosyned import MemoryConsolidator, RoundsPolicy, sendable, should_compact
from mnemosyned.conversation.messages import FullCounter, Message, message_text
from mnemosyned.conversation.summary_message import (
    HEADERS,
    SummaryContent,
    is_summary,
    read_summary,
)
from mnemosyned.text.token_counts import Chars4

FULL = FullCounter(Chars4())
TALK = [says(f"order {at}") for at in range(6)]


def stripped(messages: Sequence[Message]) -> list[Message]:
    """As they come back from a client that knows of no metadata."""
    return [{"role": one["role"], "content": one["content"]} for one in messages]


# --------------------------------------------------------------------- summaries


@each_case("earlier", [
    "[Session context consolidated]\n\n- decided: x\n- second\n  line", "[Summary]: decided: x",
    "[Summary: depth 1, 4 messages]\ndecided: x", "[Conversation Summary — depth 1]\ndecided: x",
    "[Assistant Execution Summary]\n\ndecided: x",
])  # fmt: skip
def test_earlier_summaries_of_any_form_are_known_and_merged(earlier: str) -> None:
    result, summary = MemoryConsolidator().consolidate([says(earlier), *TALK])

    assert [is_summary(one) for one in result] == [True, *[False] * 4]
    assert "- decided: x" in summary
    assert "- order 1" in summary


@each_case("header", HEADERS)
def test_a_tools_answer_is_no_summary_whatever_it_says(header: str) -> None:
    assert not is_summary({"role": "tool", "content": f"{header} x", "name": "sh"})


def test_a_summary_without_its_metadata_is_read_from_its_words() -> None:
    policy = MemoryConsolidator()
    log = says("line one\n\n  line two \nthree", "tool", name="sh")
    first, _ = policy.consolidate([log, *TALK])

    again, _ = policy.consolidate([*stripped(first), says("last"), says("and last")])

    assert read_summary(again[0]).facts == (
        "[sh] line one\n\n  line two \nthree",
        *[f"order {at}" for at in range(4)],
    )


def test_nothing_to_say_of_what_was_removed_still_tells_where_it_is() -> None:
    talk = [says("Well, let me think.", "assistant"), *TALK[:4]]

    done = MemoryConsolidator().compact(talk)

    summary = done.messages[0]
    assert f"[expand {read_summary(summary).id}]" in message_text(summary)
    assert read_summary(summary).summary_of == done.expand
    again = MemoryConsolidator().compact([*stripped(done.messages), says("x")])
    assert read_summary(again.messages[0]).facts == ("order 0",)


def test_a_summary_takes_the_role_that_keeps_turns_alternating() -> None:
    first, _ = MemoryConsolidator().consolidate([*TALK, says("a", "assistant")])
    rounds = [TALK[0], *first]

    roles = [one["role"] for one in sendable(rounds, alternate=True)]
    assert roles[:2] == ["user", "assistant"]
    assert sendable(rounds)[1] == {"role": "user", "content": first[0]["content"]}


def test_metadata_of_any_shape_does_no_harm() -> None:
    noted = {"kind": "summary", "facts": 3, "summary_of": [1, "m1"], "prose": None}
    odd = says("[Summary]: x", metadata=noted)

    assert read_summary(odd) == SummaryContent(summary_of=("m1",))


# ------------------------------------------------------------------------- facts


def test_leading_system_messages_stay_and_do_not_count() -> None:
    system = says("You are X.", "system")

    assert not MemoryConsolidator().compact([system, *TALK[:4]]).changed
    done = MemoryConsolidator().compact([system, *TALK[:5]])
    assert done.messages[0] is system
    assert done.messages[2:] == TALK[1:5]


def test_the_threshold_is_exact_and_names_its_rule() -> None:
    policy = MemoryConsolidator(threshold_pct=0.07, max_tokens=100)

    assert should_compact(policy, 7).rule == "7% of 100"
    assert not should_compact(policy, 6).due
    assert should_compact(RoundsPolicy(), 80_001).rule == "over 80,000"


# ------------------------------------------------------------------------ rounds


def worked(name: str, words: str = "long output " * 60) -> list[Message]:
    return [call(name, id=f"A-{name}"), result(name, words, id=f"T-{name}")]


def over(messages: Sequence[Message], **options: Any) -> RoundsPolicy:  # noqa: ANN401
    """A policy to which these messages are one token too many."""
    return RoundsPolicy(sum(map(FULL.message, messages)) - 1, counter=FULL, **options)


def test_an_earlier_summary_within_a_round_is_merged_into_its_summary() -> None:
    talk = [says("build it"), *worked("1"), *worked("2"), *worked("3"), *worked("4")]
    first = over(talk).compact(talk).messages
    longer = [*first, says("test it"), *worked("5")]

    second = over(longer).compact(longer).messages

    assert [is_summary(one) for one in first] == [False, True, *[False] * 4]
    assert [is_summary(one) for one in second] == [False, True, False, False, False]
    assert read_summary(second[1]).summary_of == tuple(
        f"{kind}-{number}" for number in "1234" for kind in "AT"
    )


def test_a_user_who_speaks_beside_results_keeps_their_call() -> None:
    answer = tool_result("t1", "long output " * 60)
    stopped = [tool_use("t1"), says([answer, text_block("no, stop")])]
    talk = [says("build it"), *stopped, *worked("2"), says("go on")]

    done = over(talk).compact(talk)

    assert [*map(is_summary, done.messages)] == [False] * 3 + [True, False]


def test_a_round_is_left_alone_where_its_summary_would_be_no_shorter() -> None:
    def never(_: Sequence[Message]) -> str:
        raise AssertionError("no model needs to be asked")

    talk = [says("hi"), says("hello", "assistant"), says("x" * 400)]

    done = over(talk, summarize=never).compact(talk)

    assert done.messages == talk
    assert done.fallback_reason == ""
    assert done.over_budget


def test_a_summary_by_rule_says_what_was_done_as_if_a_model_says_too_much() -> None:
    built = [*worked("1"), *worked("2"), says("Built.", "assistant")]
    talk = [says("build it"), *built, says("ok")]

    done = over(talk).compact(talk)
    instead = over(talk, summarize=lambda _: "so " * 2_000).compact(talk)

    (summary,) = filter(is_summary, done.messages)
    assert message_text(summary).startswith(
        "[Summary]: 5 messages, tools called: sh ×2\nIn the end: Built."
    )
    assert "- [sh] long output" in message_text(summary)
    assert instead.fallback_reason == "the model's summary is too long"
    assert instead.summaries == done.summaries
