"""What a prompt asks for."""

import pytest
from support.cases import each_case

from mnemosyned.conversation.prompts import find_prompt_form


@each_case(
    "prompt",
    [
        "which port does the sandbox proxy use?",
        "when may we release",
        "reconcile hangs. which lock id is ours?",
        "wer muss den PR freigeben, ich hab die Buchungen angefasst",
        "bis wann muss das Manuskript fertig sein?",
        "¿quién revisa ahora los cambios?",
        "ist 8443 noch richtig?",
        "which merchants have ledger_v2?",
        "プロキシのポートは何番ですか？",
    ],
)
def test_a_question_may_be_answered_by_the_project(prompt: str) -> None:
    assert find_prompt_form(prompt) == "question"


@each_case(
    "prompt",
    [
        "what is a monad?",
        "what does ON CONFLICT DO NOTHING return?",
        "how do I undo a commit?",
        "what's the difference between gather and TaskGroup?",
        "how do you say 'dry rot' in Spanish?",
        "was ist der Unterschied zwischen whose und who's",
        "wie viel ist 14 mal 27?",
        "¿qué es una junta de dilatación?",
        "¿cómo se dice 'estante' en alemán?",
        "what is idempotency?",
        "regex for an email address?",
        "how would that look in kotlin?",
        "was bedeutet p95?",
        "how much is 350 fahrenheit in celsius",
    ],
)
def test_a_question_of_general_knowledge_is_told_apart(prompt: str) -> None:
    assert find_prompt_form(prompt) == "general"


@pytest.mark.parametrize(
    "prompt",
    [
        "rename tmp to total",
        "go on",
        "sortier die Liste",
        "fix it:\n```\nwhat is a?\n```",
    ],
)
def test_anything_else_is_work(prompt: str) -> None:
    assert find_prompt_form(prompt) == "work"


@pytest.mark.parametrize(
    "prompt",
    ["how large is a bath tub?", "is Klarna a Swedish company?", "wo liegt Hendaye?"],
)
def test_a_question_without_a_known_thing_may_be_general(prompt: str) -> None:
    assert find_prompt_form(prompt) == "indefinite"
