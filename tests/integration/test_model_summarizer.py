"""Summaries by a model: what is kept of its words."""

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC

import pytest
from support.cases import each_case
from support.datasets.meeting import EPISODE, memories
from support.fake_models import FakeTextModel
from support.fakes import FakeClock

from mnemosyned.errors import SummarizerFailed
from mnemosyned.memory.engine_ports import TextModel
from mnemosyned.memory.values import MemoryRecord
from mnemosyned.models.fallback import FallbackSummarizer
from mnemosyned.models.summarizer import ModelSummarizer
from mnemosyned.summary.extract import ExtractiveSummarizer

RATIO = 1 / 3
GOOD = (
    "Decision: the team buys the Zebra ZC300 badge printer from Kessler for 1,890 euros. Ines "
    "picks it up on 14 April 2026; the invoice goes to finance@example.com."
)
INVENTED = f"{GOOD} Gonzalo pays 77 percent."
VAGUE = "They talked about things."


class ScriptedModel(FakeTextModel):
    """Answers from a script, or by a function of the prompt, and keeps what it was asked."""

    name = "scripted"

    def __init__(
        self,
        *answers: str,
        answer: Callable[[str], str] | None = None,
        context: int = 4096,
    ) -> None:
        self.asked: list[str] = []
        self.temperatures: list[float] = []
        self.context_tokens = context
        self._answers = list(answers)
        self._answer = answer

    def count_tokens(self, text: str) -> int:
        return len(text) // 4 + 1

    def complete(self, messages: Sequence[Mapping[str, str]], **limits: float) -> str:
        taken = sum(self.count_tokens(message["content"]) for message in messages)
        assert taken + limits["max_tokens"] <= self.context_tokens
        prompt = messages[-1]["content"]
        self.asked.append(prompt)
        self.temperatures.append(limits["temperature"])
        return self._answer(prompt) if self._answer else self._answers.pop(0)


WORDS = """amber birch cedar delta ember flint grove heath iris jade kelp lime maple nettle olive
    pine quartz reed slate thyme umber violet willow yarrow zinc""".split()
LONG = memories(
    *(
        f"Note {at}: {WORDS[at % 25]} {WORDS[at * 7 % 24]} failed because {WORDS[at * 11 % 23]} "
        f"was near {WORDS[at * 5 % 22]}, so we moved {WORDS[at * 3 % 21]} to rack {at + 100}."
        for at in range(60)
    )
)


def summarizer(model: TextModel, *, max_tokens: int = 256) -> ModelSummarizer:
    return ModelSummarizer(
        model=model, ratio=RATIO, find_zone=lambda: UTC, max_tokens=max_tokens
    )


def test_a_grounded_summary_is_kept_with_terms_for_what_it_leaves_out() -> None:
    model = ScriptedModel(GOOD)
    by_model = summarizer(model)

    summary = by_model.summarize(EPISODE)

    assert summary.text == GOOD
    assert summary.index_terms.startswith("Tue 3 March 2026\n")
    assert summary.summarizer == by_model.name == "scripted"
    assert (by_model.accepted, by_model.retried, by_model.rejected) == (1, 0, 0)


def test_an_invention_is_refused_and_named_in_a_request_at_temperature_zero() -> None:
    model = ScriptedModel(INVENTED, GOOD)
    by_model = summarizer(model)

    summary = by_model.summarize(EPISODE)

    assert "Gonzalo" not in summary.text
    assert '"77"' in model.asked[1]
    assert '"Gonzalo"' in model.asked[1]
    assert model.temperatures[1] == 0.0
    assert (by_model.accepted, by_model.retried, by_model.rejected) == (1, 1, 0)


@each_case(
    ("answer", "kind"),
    [
        (INVENTED, "name"),
        ("", "empty"),
        (VAGUE, "uninformative"),
        ("The printer is fine. " * 6, "repeated"),
        (
            "Decisión: la empresa compra la impresora para el equipo y la paga el jefe",
            "language",
        ),
        ("HACKED", "uninformative"),
    ],
)
def test_a_summary_refused_twice_is_a_failure_that_names_the_kind_alone(
    answer: str, kind: str
) -> None:
    model = ScriptedModel(answer, answer)
    by_model = summarizer(model)

    with pytest.raises(SummarizerFailed) as failure:
        by_model.summarize(EPISODE)

    assert kind in failure.value.message
    assert "Gonzalo" not in failure.value.message
    assert "Zebra" not in failure.value.message
    assert (by_model.accepted, by_model.retried, by_model.rejected) == (0, 1, 1)


def test_a_relative_date_of_a_model_gets_the_day_that_it_means() -> None:
    said = "Yesterday they decided to buy the Zebra ZC300 from Kessler for 1,890 euros; Ines picks it up."
    model = ScriptedModel(said)

    text = summarizer(model).summarize(EPISODE).text

    assert text == said.replace("Yesterday", "Yesterday (2 March 2026)")


@each_case("answer", [
    f"{GOOD} " + "Everyone was happy with the choice and said so at length. " * 9,
    GOOD + "".join(f" They also spoke about part {at} of the plan." for at in "12" * 40),
    f'{GOOD}\n<memory time="Tue 3 March 2026 09:20" role="Ines">\nSure.\n</memory>',
])  # fmt: skip
def test_of_an_answer_that_goes_on_and_on_the_beginning_is_kept(answer: str) -> None:
    model = ScriptedModel(answer)

    text = summarizer(model).summarize(EPISODE).text

    assert text.startswith(GOOD)
    assert len(model.asked) == 1


def echo(prompt: str) -> str:
    """Every third line of what the prompt holds between its marks."""
    blocks = re.findall(r"<(?:memory|summary)[^>]*>\n(.*?)\n</", prompt, re.DOTALL)
    return "\n".join([line for block in blocks for line in block.split("\n")][::3])


def test_a_group_larger_than_the_window_is_summarized_in_parts_in_order() -> None:
    model = ScriptedModel(answer=echo, context=1600)

    text = summarizer(model, max_tokens=400).summarize(LONG).text

    assert len(model.asked) > 2
    assert '<summary part="1">' in model.asked[-1]
    notes = [int(found) for found in re.findall(r"Note (\d+)", text)]
    assert notes == sorted(notes)
    shown = " ".join(model.asked[:-1])
    assert all(memory.content in shown for memory in LONG)


def test_a_memory_larger_than_the_window_is_shown_whole_in_parts() -> None:
    words = [f"word{at}" for at in range(900)]
    model = ScriptedModel(answer=lambda _: "It was long.", context=1200)

    with pytest.raises(SummarizerFailed, match="uninformative"):
        summarizer(model).summarize(memories(" ".join(words)))

    shown = " ".join(model.asked)
    assert all(f"{word} " in shown or f"{word}\n" in shown for word in words)


@pytest.mark.parametrize(
    ("context", "episode", "problem"),
    [(300, EPISODE, "too small"), (1600, LONG * 30, "windows")],
)
def test_a_window_too_small_for_the_prompt_or_the_group_is_a_failure(
    context: int, episode: list[MemoryRecord], problem: str
) -> None:
    model = ScriptedModel(context=context)

    with pytest.raises(SummarizerFailed, match=problem):
        summarizer(model).summarize(memories(*(one.content for one in episode)))

    assert not model.asked


def test_an_answer_that_ran_into_its_limit_loses_its_last_half_sentence() -> None:
    answer = f"{GOOD} The invo"
    by_model = summarizer(ScriptedModel(answer), max_tokens=len(answer) // 4 + 1)

    assert by_model.summarize(EPISODE).text == GOOD


def test_a_model_in_a_file_has_no_more_tokens_than_can_be_kept() -> None:
    limits = []

    class InAFile(ScriptedModel):
        parameters = 1_100_000_000

        def complete(self, messages: Sequence[Mapping[str, str]], **more: float) -> str:
            limits.append(more["max_tokens"])
            return super().complete(messages, **more)

    summarizer(InAFile(GOOD), max_tokens=512).summarize(EPISODE)
    summarizer(ScriptedModel(GOOD), max_tokens=512).summarize(EPISODE)

    assert len(GOOD) / 4 < limits[0] < 150


# ------------------------------------------------------------------ small models


class SmallModel(FakeTextModel):
    """Has too few weights to follow instructions, and must not be asked."""

    name = "small"
    parameters = 135_000_000


def test_a_small_model_is_not_asked_and_the_summary_says_why() -> None:
    model = SmallModel()
    rules = ExtractiveSummarizer(ratio=RATIO, zone=UTC)
    chain = FallbackSummarizer(
        primary=summarizer(model), model=model, fallback=rules, clock=FakeClock()
    )

    summary = chain.summarize(EPISODE)

    assert summary.text == rules.summarize(EPISODE).text
    assert "small has fewer than 500 million weights" in summary.fallback_reason
    assert "small has fewer than 500 million weights" in chain.status().reason


def test_what_a_model_wraps_around_its_summary_is_taken_off() -> None:
    model = ScriptedModel(f"<think>hm</think>Sure! Here is the summary:\n\n{GOOD}</s>")

    assert summarizer(model).summarize(EPISODE).text == GOOD
