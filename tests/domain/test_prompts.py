"""What a prompt asks for."""

import pytest
from support.cases import each_case

from mnemosyned.conversation.injected import estimate_need, has_answer_form, rate_form
from mnemosyned.service.reminder import (
    CONFIDENCE_WEIGHT,
    ODDS_MIN,
    ODDS_OF_SCORE,
)

QUESTIONS = [
    "which port does the sandbox proxy use?", "when may we release",
    "reconcile hangs. which lock id is ours?",
    "wer muss den PR freigeben, ich hab die Buchungen angefasst",
    "bis wann muss das Manuskript fertig sein?", "¿quién revisa ahora los cambios?",
    "ist die 8443 noch richtig?", "プロキシのポートは何番ですか？",
]  # fmt: skip
ORDERS = [
    "rename tmp to total", "go on", "sortier die Liste", "fix it:\n```\nwhat is the port?\n```",
    "how large is a bath tub?", "what does ON CONFLICT DO NOTHING return?",
]  # fmt: skip
GENERAL = [
    "what is a monad?", "how do I undo a commit?",
    "what's the difference between gather and TaskGroup?",
    "was ist eigentlich ein Statiker, und wie schreibt man das?",
    "¿qué es una junta de dilatación?", "¿cómo se dice 'estante' en alemán?",
    "how many seconds are in the day?", "wie viel ist 14 mal 27 in unserer Tabelle?",
    "how do you say 'dry rot' in Spanish?", "was ist der Unterschied zwischen whose und who's",
    "what is idempotency?", "was bedeutet p95?",
]  # fmt: skip


def test_without_an_encoder_each_kind_of_prompt_has_its_least_score() -> None:
    """A question about something known needs most, a general question less than an order."""
    [question], orders, general = (
        {(ODDS_MIN - estimate_need(each)) / ODDS_OF_SCORE for each in group}
        for group in (QUESTIONS, ORDERS, GENERAL)
    )

    assert (question, min(orders)) == pytest.approx((0.0, 0.4))
    assert min(general) > max(CONFIDENCE_WEIGHT, *orders)


def test_what_a_prompt_is_like_outweighs_its_form() -> None:
    question = "is the second column wider than the first?"

    asking = estimate_need(question, lambda _: 3.0)
    needless = estimate_need(question, lambda _: -3.0)
    unknown = estimate_need(question, lambda _: None)

    assert needless < 0.0 < asking
    assert unknown == estimate_need(question)


def test_code_is_not_compared_in_meaning() -> None:
    seen: list[str] = []

    def rate(text: str) -> float:
        seen.append(text)
        return 0.0

    estimate_need("fix it:\n```\nport = 1\n```\nplease", rate)

    assert seen == ["fix it: please"]


@each_case(("prompt", "text", "fits"), [
    ("when is the next chance to roll out?", "we deploy on Tuesday", True),
    ("when is the next chance to roll out?", "we deploy by hand", False),
    ("wer liest das Manuskript?", "das liest ab jetzt Jule", True),
    ("wer liest das Manuskript?", "das liest niemand", False),
    ("which port is it?", "Tuesday, says Jule", False),
    ("what was the accuracy of run 7?", "Run 7: EfficientNet, .84", True),
    ("what was the accuracy of run 7?", "run 17: EfficientNet, .84", False),
    ("what did experiment B bring?", "Experiment B costs one point", True),
    ("learning rate 0.1?", "learning rate 0.01 is too low", False),
])  # fmt: skip
def test_an_answer_has_the_form_asked_for(
    prompt: str, text: str, *, fits: bool
) -> None:
    assert has_answer_form(prompt, text) == fits


def test_a_question_about_something_known_adds_to_its_rating() -> None:
    assert rate_form("is our door wider?") > rate_form("is a door wider?") > 0
    assert rate_form("rename tmp to total") == 0
