"""Excerpts of tool results keep what a reader looks for: failures, totals, the end."""

from __future__ import annotations

from support.cases import each_case

from mnemosyned.conversation.key_facts import (
    CONCLUSION,
    RESULT_CHARS,
    clip_at_word,
    excerpt_highlights,
    find_round_conclusions,
    select_facts,
)

RUN = "\n".join(
    [
        "collecting 412 items",
        *(f"tests/test_{n}.py {'.' * 30} [{n} %]" for n in range(90)),
        "FAILED tests/test_rounding.py::test_vat - AssertionError: 39.91 != 39.90",
        *(f"tests/test_{n}.py {'.' * 30} [{n} %]" for n in range(90, 99)),
        "1 failed, 411 passed in 12.3 s",
    ]
)


def test_failures_and_totals_come_before_the_head_of_a_log() -> None:
    shown = excerpt_highlights(RUN)

    assert "AssertionError: 39.91 != 39.90" in shown
    assert shown.endswith("1 failed, 411 passed in 12.3 s")
    assert len(shown) <= RESULT_CHARS


def test_without_a_failure_the_first_and_the_last_line_stay() -> None:
    shown = excerpt_highlights(
        "Cloning into crane\n" + "Receiving objects\n" * 90 + "Resolving deltas"
    )

    assert shown.startswith("Cloning into crane")
    assert shown.endswith("Resolving deltas")


def test_lines_of_bare_numbers_are_left_out() -> None:
    shown = excerpt_highlights(
        "rows per day\n" + "12 19 4 7\n" * 80 + "mean is 10.5 a day"
    )

    assert shown == "rows per day\nmean is 10.5 a day"


def test_no_failures_is_no_failure() -> None:
    log = "0 errors in step one\n" + "work goes on\n" * 60 + "disk full: cannot write"

    assert "disk full: cannot write" in excerpt_highlights(log, chars=60)


@each_case("text", ["", "short", "x" * 5_000, "word " * 5_000, "1 2 3 " * 900])
def test_an_excerpt_is_never_longer_than_allowed(text: str) -> None:
    assert len(excerpt_highlights(text)) <= RESULT_CHARS


def test_one_long_line_keeps_both_ends() -> None:
    shown = excerpt_highlights('{"items": [' + '{"id": 7}, ' * 300 + '], "total": 300}')

    assert shown.startswith('{"items":')
    assert shown.endswith('"total": 300}')


def test_a_clip_ends_at_a_word() -> None:
    assert clip_at_word("one two three four", 12) == "one two…"


def agent(words: str | None, *, call: str = "") -> dict[str, object]:
    calls = (
        [{"id": call, "function": {"name": "sh", "arguments": "{}"}}] if call else []
    )
    return {"role": "assistant", "content": words, "tool_calls": calls}


def test_each_round_with_tools_leaves_its_conclusion() -> None:
    talk: list[dict[str, object]] = [
        {"role": "user", "content": "Why does it fail?"},
        agent("I look.", call="1"),
        {"role": "tool", "tool_call_id": "1", "content": "a log"},
        agent("First I read the log. The index was old. I rebuilt it; all tests pass."),
        {"role": "user", "content": "Thanks"},
        agent("You are welcome."),
    ]

    assert find_round_conclusions(talk) == {
        3: f"{CONCLUSION}The index was old. I rebuilt it; all tests pass."
    }


def test_a_conclusion_outlasts_the_results_that_led_to_it() -> None:
    facts = [f"[sh] {RUN[:200]}", f"{CONCLUSION}I rebuilt the index."]

    assert select_facts(facts, 60, len) == [facts[1]]
