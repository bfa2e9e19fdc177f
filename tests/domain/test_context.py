"""What an agent's window holds, beyond what the seeds' cases say of it."""

from typing import Any

import pytest
from support.cases import each_case
from support.messages import call, result, says

from mnemosyned import (
    ContextManager,
    MemoryConsolidator,
    PastSummary,
    Quoted,
    TokenBudget,
)
from mnemosyned.conversation.messages import Message, message_text
from mnemosyned.conversation.summary_message import is_summary, read_summary

SMALL = TokenBudget(
    1_000, 0, 0, memory_fraction=0.2, learnings_fraction=0.1, fresh_tail_count=2
)


def history(count: int, tokens: int = 10) -> list[Message]:
    texts = [f"{at:03} ".ljust(4 * tokens, "x") for at in range(count)]
    return [says(text, id=f"h{at}") for at, text in enumerate(texts)]


def past(name: str, **more: Any) -> PastSummary:  # noqa: ANN401
    return PastSummary(content=name, messages=3, **more)


def summaries(messages: list[Message]) -> list[str]:
    return [message_text(one).splitlines()[-1] for one in messages if is_summary(one)]


def test_the_breakdown_tells_where_the_tokens_went() -> None:
    context = ContextManager(SMALL).build_messages(
        "s" * 40,
        "n" * 40,
        history(90),
        memory_results=["m" * 400],
        learnings=["l" * 200],
    )

    parts = context.breakdown
    assert (parts.system, parts.new_message, parts.summaries, parts.counter) == (
        10,
        10,
        0,
        "chars4",
    )
    assert (parts.memory, parts.learnings) == ((400 + 19) // 4, (200 + 20 + 2) // 4)
    assert parts.history == 690  # 700, less the new message
    assert parts.total == 10 + 104 + 55 + 700
    assert (len(context.kept), len(context.dropped)) == (69, 21)
    assert not context.over_budget


def test_unused_tokens_are_lent_and_learnings_shrink_on_request() -> None:
    lessons = ["a" * 200, "b" * 100, "c" * 200]
    given: dict[str, Any] = {
        "new_message": "n" * 40,
        "history": history(120),
        "learnings": lessons,
    }

    usual = ContextManager(SMALL).build_messages(**given)
    lent = ContextManager(SMALL, reclaim_unused=True).build_messages(**given)
    shrunk = ContextManager(SMALL, shrink_learnings=True).build_messages(**given)

    assert (len(usual.kept), usual.learnings_shown) == (69, 0)
    assert len(lent.kept) == 99
    assert shrunk.learnings_shown == 2


def test_tools_that_exceed_their_reserve_are_counted() -> None:
    tools = [{"name": "sh", "description": "d" * 9_000}]

    context = ContextManager(SMALL).build_messages("", "hi", [], tool_definitions=tools)

    assert context.breakdown.tools > 2_000
    assert context.over_budget


# ---------------------------------------------------------- memory and learnings


def test_snippets_are_shown_whole_up_to_the_first_misfit() -> None:
    context = ContextManager(SMALL).build_messages(
        "", "x", [], memory_results=["a" * 500, "b" * 500, "c"]
    )

    assert context.system == "## Relevant Memory\n" + "a" * 500
    assert context.memory_shown == 1


def test_memory_never_comes_between_a_call_and_its_result() -> None:
    budget = TokenBudget(100, 0, 0, fresh_tail_count=0)
    manager = ContextManager(budget, memory_place="message")

    _, messages = manager.build_messages(
        "", result("c1"), [call("c1")], memory_results=["m"]
    )

    assert [one["role"] for one in messages] == ["user", "assistant", "tool"]


def test_secrets_are_not_spread_into_a_context() -> None:
    key = "sk-test-51HAbCdEfGhIjKlMnOp"

    system, messages = ContextManager().build_messages(
        "",
        "x",
        [],
        memory_results=[f"the key is {key}", Quoted(text=f"use {key}")],
        learnings=[f"the key is {key}"],
        summaries=[past(f"they used {key}")],
    )

    assert key not in system
    assert key not in str(messages)


# ---------------------------------------------------------------------- summaries


def test_summaries_come_in_the_order_of_what_they_cover() -> None:
    given = [
        past("undated"),
        past("later", start="2024-02-01", end="2024-02-03"),
        past("earlier", start="2024-01-01T10:00:00+00:00", end="2024-01-02"),
        past("folded", start="2023-01-01", end="2023-01-02", parent="earlier"),
    ]

    context = ContextManager().build_messages("", "x", [], summaries=given)

    assert summaries(context.messages) == ["earlier", "later", "undated"]


def test_a_summary_of_messages_or_dates_that_are_all_kept_is_left_out() -> None:
    budget = TokenBudget(200, 0, 0, 0.0, 0.0, fresh_tail_count=2)
    by_ids = [past(ids, summary_of=tuple(ids.split())) for ids in ("h8 h9", "h1 h9")]
    dates = {"inside": "2024-01-02", "before": "2023-12-30"}
    by_dates = [past(name, start=day, end="2024-01-03") for name, day in dates.items()]
    dated = [
        {**one, "created_at": f"2024-01-{at:02}"}
        for at, one in enumerate(history(5), 1)
    ]

    some = ContextManager(budget).build_messages(
        "", "x", history(10, 30), summaries=by_ids
    )
    every = ContextManager().build_messages("", "x", dated, summaries=by_dates)

    assert summaries(some.messages) == ["h1 h9"]
    assert 8 in some.kept
    assert summaries(every.messages) == ["before"]


def test_earlier_summaries_stay_in_the_window() -> None:
    done = MemoryConsolidator(keep_recent=40).compact(
        [says(f"order number {at}") for at in range(400)] + history(40, 10)
    )

    context = ContextManager(SMALL).build_messages("", "x", done.messages)

    (summary,) = filter(is_summary, context.messages)
    assert "- order number 399" in message_text(done.messages[0])
    assert "earlier facts are in the archive)" in message_text(summary)
    assert read_summary(summary).facts == done.facts
    assert not context.over_budget


def test_system_messages_in_the_history_stay_and_are_no_part_of_the_tail() -> None:
    system = says("s" * 400, "system")

    context = ContextManager(SMALL).build_messages("", "x", [system, *history(80, 100)])

    assert context.messages[0] is system
    assert context.breakdown.system == 100
    assert context.breakdown.history <= 700


@each_case("name", ["total", "system_reserve", "fresh_tail_count"])
def test_a_budget_takes_whole_numbers_only(name: str) -> None:
    for value in (1.5, "3", True, -1, None):
        with pytest.raises(Exception, match=name):
            TokenBudget(**{name: value})  # type: ignore[arg-type]
