"""The daemon's own compaction: the least that makes room, and nothing lost on the way."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from support.cases import each_case
from support.fakes import raising
from support.messages import call, result, text_block, tool_result, tool_use

from mnemosyned import AutoPolicy, RoundsPolicy, extract_facts
from mnemosyned.conversation import compaction
from mnemosyned.conversation.messages import STUB, FullCounter, Message, message_text
from mnemosyned.conversation.summary_message import is_summary, read_summary
from mnemosyned.text.token_counts import Chars4

FULL = FullCounter(Chars4())
LOG = "exit 0: deployed 47 files to /opt/app\n" + "copied another file\n" * 400


def says(at: int, words: str = "", role: str = "user", **more: Any) -> Message:  # noqa: ANN401
    return {"role": role, "content": words or f"order {at}", "id": f"m{at}", **more}


def worked(id: str, output: str = LOG) -> list[Message]:
    return [call(id, name="deploy"), result(id, output)]


def prose(count: int, *, first: int = 100) -> list[Message]:
    rest = "Nothing came of it at all. " * 20
    weeks = range(first, first + count)
    return [says(at, f"In week {at} we talked at length. {rest}") for at in weeks]


class Model:
    """Writes a summary, and keeps what it was given."""

    def __init__(self) -> None:
        self.given: list[Sequence[Message]] = []

    def __call__(self, messages: Sequence[Message]) -> str:
        self.given.append(messages)
        return f"Summary number {len(self.given)}."


# ---------------------------------------------------------------- when it begins


def test_it_begins_at_the_threshold_and_goes_down_to_the_target() -> None:
    policy = AutoPolicy(10_000, counter=FULL)

    done = policy.compact(prose(60))

    assert (policy.due(7_999).due, policy.due(8_000).due) == (False, True)
    assert done.tokens_before >= 8_000
    assert done.tokens_after <= 6_000
    assert policy.compact(done.messages).messages == done.messages
    assert not policy.compact(prose(10)).changed


# -------------------------------------------------------------------- the stubs


def test_old_tool_results_are_stubbed_before_any_model_is_asked() -> None:
    model = Model()
    talk = [says(0), *worked("c1"), *worked("c2"), *[says(at) for at in range(1, 6)]]

    done = AutoPolicy(5_000, counter=FULL, summarize=model).compact(talk)

    assert model.given == []
    assert len(done.messages) == len(talk)
    stub = done.messages[2]["content"]
    assert stub.startswith(STUB)
    assert f"expand {done.archived[0].id}]" in stub
    assert done.archived[0].message is talk[2]
    assert done.messages[2]["tool_call_id"] == "c1"
    assert "/opt/app" in [detail.value for detail in done.details]


def test_only_as_many_results_are_stubbed_as_make_room() -> None:
    talk = [*worked("c1"), *worked("c2"), *[says(at) for at in range(6)]]

    done = AutoPolicy(4_500, counter=FULL).compact(talk)

    assert [one.message is talk[1] for one in done.archived] == [True]
    assert done.messages[3] is talk[3]


@each_case("padding", ["", " " * 50])
def test_a_stub_has_the_key_fact_of_what_it_stands_for(padding: str) -> None:
    talk = [*worked("c1", padding + LOG), *[says(at) for at in range(6)]]

    done = AutoPolicy(2_000, counter=FULL).compact(talk)

    assert done.changed
    assert extract_facts(done.messages) == extract_facts(talk)


def test_blocks_of_results_are_stubbed_in_their_own_form() -> None:
    talk: list[Message] = [
        tool_use("t1"),
        {
            "role": "user",
            "content": [tool_result("t1", [text_block(LOG)]), text_block("go on")],
        },
        *[says(at) for at in range(6)],
    ]

    done = AutoPolicy(2_000, counter=FULL).compact(talk)

    stub, rest = done.messages[1]["content"]
    assert (stub["type"], stub["tool_use_id"]) == ("tool_result", "t1")
    assert stub["content"].startswith(f"{STUB}sh, ")
    assert rest == text_block("go on")


GIANT = LOG * 50


def test_a_new_result_longer_than_the_window_is_stubbed_before_anything_else() -> None:
    talk = [*[says(at) for at in range(6)], *worked("c1", GIANT), *worked("c2")]

    done = AutoPolicy(5_000, counter=FULL).compact(talk)

    assert not done.over_budget
    assert [one.message for one in done.archived] == [talk[7]]
    assert f"expand {done.archived[0].id}]" in done.messages[7]["content"]
    assert done.messages[9] is talk[9]


def test_new_results_stay_whole_where_the_newest_messages_fit() -> None:
    talk = [*prose(60), *worked("c1"), *worked("c2")]

    done = AutoPolicy(10_000, counter=FULL).compact(talk)

    assert done.messages[-4:] == talk[-4:]


def test_rounds_stub_a_giant_result_among_the_newest_messages() -> None:
    talk = [says(0), *worked("c0"), says(1), *worked("c1", GIANT), *worked("c2")]

    done = RoundsPolicy(5_000, counter=FULL).compact(talk)

    assert not done.over_budget
    assert done.archived[-1].message is talk[5]
    assert f"expand {done.archived[-1].id}]" in done.messages[-3]["content"]
    assert done.messages[-1] is talk[-1]


# ------------------------------------------------------------------- the summary


def test_facts_and_exact_values_are_there_whatever_the_model_says() -> None:
    talk = [says(0, "Ship it on 2026-04-01 to ops@example.org"), *prose(60)]

    done = AutoPolicy(10_000, counter=FULL, summarize=Model()).compact(talk)

    (summary,) = filter(is_summary, done.messages)
    assert "Summary number 1." in message_text(summary)
    assert "- Ship it on 2026-04-01 to ops@example.org" in message_text(summary)
    assert {"2026-04-01", "ops@example.org"} <= set(read_summary(summary).values)
    assert f"expand {read_summary(summary).id}" in message_text(summary)
    assert read_summary(summary).summary_of == done.expand


def test_a_further_summary_is_merged_with_the_one_before() -> None:
    model = Model()
    policy = AutoPolicy(10_000, counter=FULL, summarize=model)
    first = policy.compact([says(0, "decided: blue-green"), *prose(60)])

    second = policy.compact([*first.messages, *prose(60, first=200)])

    assert model.given[1][0] == {"role": "summary", "content": "Summary number 1."}
    (summary,) = filter(is_summary, second.messages)
    assert "Summary number 1." not in message_text(summary)
    assert "- decided: blue-green" in message_text(summary)
    assert read_summary(summary).summary_of[: len(first.expand)] == first.expand


@each_case(("summarize", "reason"), [
    (raising(TimeoutError("too slow for: decided: blue-green")), "TimeoutError"),
    (lambda _: "so " * 9_000, "the model's summary is too long"),
])  # fmt: skip
def test_a_model_that_fails_or_talks_on_costs_nothing_but_its_words(
    summarize: Callable[[Sequence[Message]], str], reason: str
) -> None:
    talk = [says(0, "decided: blue-green"), *prose(60)]

    done = AutoPolicy(10_000, counter=FULL, summarize=summarize).compact(talk)

    assert done.fallback_reason == reason
    assert "decided: blue-green" in done.facts
    assert done.tokens_after <= 6_000


def test_a_failure_of_our_own_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compaction, "write_plain_messages", raising(KeyError("role")))

    policy = AutoPolicy(10_000, counter=FULL, summarize=lambda _: "In short.")
    with pytest.raises(KeyError):
        policy.compact(prose(60))


def test_secrets_reach_neither_the_model_nor_the_summary() -> None:
    key, password = "sk-test-51HAbCdEfGhIjKlMnOp", "hunter2xyz"
    model = Model()
    talk = [
        says(0, f"the staging key is {key}"),
        says(1, f"the password is {password}"),
        says(2, f"try {password} again"),
        *prose(60),
    ]

    done = AutoPolicy(10_000, counter=FULL, summarize=model).compact(talk)

    for secret in (key, password):
        assert secret not in str(model.given)
        assert secret not in str(done.messages)
    sensitive = {detail.value for detail in done.details if detail.sensitive}
    assert sensitive == {key, password}
    assert "try [secret:password] again" in done.facts
    assert done.archived[0].message is talk[0]


def test_relative_dates_are_resolved_in_dated_messages() -> None:
    said = {"created_at": "2026-03-17T12:00:00+00:00"}
    leak = "Yesterday the auditors found a leak in the vault of Basel."
    long = says(0, f"{'It was quiet. ' * 30}{leak}", **said)
    talk = [long, says(1, "I saw it yesterday", **said), *prose(20)]

    done = AutoPolicy(3_000, counter=FULL, keep_recent=2).compact(talk)

    assert "I saw it yesterday (16 March 2026)" in done.facts
    assert any("leak in the vault of Basel" in fact for fact in done.facts)


def test_a_summary_shows_the_most_telling_facts_and_keeps_all_of_them() -> None:
    orders = [says(at, f"so it goes then, well well number{at}") for at in range(400)]
    rule = says(1_000, "decided: never deploy to eu-west-1 on Fridays")

    done = AutoPolicy(3_000, counter=FULL).compact([rule, *orders])

    (summary,) = filter(is_summary, done.messages)
    shown = message_text(summary)
    assert "- decided: never deploy" in shown
    assert "earlier facts are in the archive)" in shown
    assert len(read_summary(summary).facts) == len(done.facts) > shown.count("\n- ")
    assert FULL.message(summary) <= 3_000 * 0.2


def test_it_says_when_the_newest_messages_alone_are_too_much() -> None:
    talk = [says(0), says(1), *prose(4), *[says(9, "x" * 40_000)]]

    done = AutoPolicy(5_000, counter=FULL, keep_recent=1).compact(talk)

    assert done.over_budget
    assert done.messages[-1] is talk[-1]
