"""Excerpts of tool results keep what a reader looks for: failures, totals, the end."""

from support.cases import each_case
from support.messages import call, result, says

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


LONG = '{"items": [' + '{"id": 7}, ' * 300 + '], "total": 300}'


@each_case(("log", "begin", "middle", "end"), [
    (RUN, "", "AssertionError: 39.91 != 39.90", "1 failed, 411 passed in 12.3 s"),
    ("Cloning into crane\n" + "Receiving objects\n" * 90 + "Resolving deltas",
     "Cloning into crane", "", "Resolving deltas"),
    ("rows per day\n" + "12 19 4 7\n" * 80 + "mean is 10.5 a day",
     "rows per day\nmean is 10.5 a day", "", "rows per day\nmean is 10.5 a day"),
    ("0 errors in step one\n" + "work goes on\n" * 60 + "disk full: cannot write",
     "", "disk full: cannot write", ""),
    (LONG, '{"items":', "", '"total": 300}'),
])  # fmt: skip
def test_an_excerpt_keeps_failures_totals_and_both_ends(
    log: str, begin: str, middle: str, end: str
) -> None:
    shown = excerpt_highlights(log)

    assert shown.startswith(begin)
    assert middle in shown
    assert shown.endswith(end)


@each_case("text", ["", "short", "x" * 5_000, "word " * 5_000, "1 2 3 " * 900])
def test_an_excerpt_is_never_longer_than_allowed(text: str) -> None:
    assert len(excerpt_highlights(text)) <= RESULT_CHARS


def test_a_clip_ends_at_a_word() -> None:
    assert clip_at_word("one two three four", 12) == "one two…"


def test_each_round_with_tools_leaves_its_conclusion() -> None:
    found = "The index was old. I rebuilt it; all tests pass."
    talk = [
        says("Why does it fail?"),
        {**call("1"), "content": "I look."},
        result("1", "a log"),
        says(f"First I read the log. {found}", "assistant"),
        says("Thanks"),
        says("You are welcome.", "assistant"),
    ]

    assert find_round_conclusions(talk) == {3: f"{CONCLUSION}{found}"}


def test_a_conclusion_outlasts_the_results_that_led_to_it() -> None:
    facts = [f"[sh] {RUN[:200]}", f"{CONCLUSION}I rebuilt the index."]

    assert select_facts(facts, 60, len) == [facts[1]]
