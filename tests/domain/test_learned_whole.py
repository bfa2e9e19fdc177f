"""Instructions and preferences as people say them: learned with all clauses, and not of look-alikes."""

import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from support.cases import each_case

from mnemosyned.conversation.learnings.recognize import find_statements

HERE = Path(__file__).parent
SAID: list[dict[str, Any]] = tomllib.loads(
    (HERE / "instructions_whole.toml").read_text(encoding="utf-8")
)["said"]
ALONE = (HERE / "said_alone.txt").read_text(encoding="utf-8").splitlines()
WHOLE_MIN = 0.9
LENGTH_SHARE_MIN = 0.8
"""Length of what is learned of a message that is all instruction, in parts of its length."""


def learned(text: str) -> list[str]:
    return [statement.text for statement in find_statements(text)]


def missed_clauses(said: dict[str, Any]) -> list[str]:
    together = "\n".join(learned(said["text"])).casefold()
    return [clause for clause in said["clauses"] if clause.casefold() not in together]


def test_instructions_and_preferences_are_learned_with_all_their_clauses() -> None:
    missed = [said["text"] for said in SAID if missed_clauses(said)]

    assert len(SAID) >= 100
    assert len(missed) <= (1 - WHOLE_MIN) * len(SAID), missed


@each_case(("text", "learned_of_it"), [
    ("Migrations are deployed already. Always write a new one.", None),
    ("Two spaces in Go files. That's how we do it everywhere.", None),
    ("Never force push. If the history is a mess, leave it and tell me.", None),
    ("I feel uneasy on boats.", None),
    ("Keep it short, no emoji, and never mention my name.", None),
    ("I saw Ann. Always use tabs.", "Always use tabs."),
    ("Always use tabs. Can you fix the parser?", "Always use tabs."),
    ("Always use tabs. If you have time, look at the parser.", "Always use tabs."),
])  # fmt: skip
def test_what_belongs_to_a_rule_is_kept(text: str, learned_of_it: str | None) -> None:
    assert learned(text) == [learned_of_it or text]


@each_case("text", [line for line in ALONE if not line.startswith("#")])
def test_what_is_said_alone_is_learned_whole(text: str) -> None:
    assert len(" ".join(learned(text))) >= LENGTH_SHARE_MIN * len(text)


LOOK_ALIKES = """
We always go camping in the summer with the kids.
We never met again after that.
In this repo the tests fail on my machine.
In this project we have a problem with the cache.
Here we go again!
Family is always important, never forget that.
The build is always red on Mondays.
The bug is in the parser, not in the lexer.
The server never starts on the first try.
All tests are green now.
Every function has been tested.
We use pnpm now for the first time, it is fast.
You must be tired, it was a long day.
I must have missed the train.
I have a meeting at noon and a call at four.
I'm against the wall here, what can I do?
I find this hard to read, can you rewrite it?
I can't come tomorrow.
I won't be there in time.
If you write to Ann, greet her from me.
When you wrote that function, did you test it?
Is it our convention to name branches by ticket?
Should we always squash in this repo?
She said that in their repo they use pnpm, not npm.
I insist on nothing, do what you like.
I believe in you, Dave.
I love it!
I hate this bug.
I always get error 500 here.
I only changed the header.
I like the second version.
I'm afraid it was my fault.
I want to add a login page.
I need a function that sorts names.
Update the doc, don't keep the cache as an appendix.
Let's do this and don't allow sync with print.
If you prefer, I can send the log as an attachment.
No problem, always here for you.
Friends are always there for me.
It's a habit of his to be late.
No errors in the log.
tests: 3 failed, 120 passed
In diesem Projekt gab es gestern viele Fehler.
Wir haben im Projekt gerade keine Zeit.
Wenn du Zeit hast, schau bitte rein.
En este proyecto trabajan cinco personas.
Dans ce projet il y a un bug.
In questo progetto ci sono errori.
このプロジェクトは先月始まりました。
这个项目上个月开始了。
""".strip().splitlines()


@each_case("text", LOOK_ALIKES)
def test_a_look_alike_teaches_nothing(text: str) -> None:
    assert learned(text) == []


CARDS = "cards are tagged by trade, one tag each"
COMMENTS = "bitte keine Kommentare im Code, und Bezeichner auf Englisch wie im Handbuch"


@each_case(("text", "ratings", "expected"), [
    (f"{CARDS}\nthe notes are short\nis every card tagged by trade?", [0.9, 0.1, 0.9], CARDS),
    # A rule is whole where a pattern finds a clause of it.
    (COMMENTS, None, "Keine Kommentare im Code"),
    (COMMENTS, [0.9], "Keine Kommentare im Code"),
    (COMMENTS, [0.97], COMMENTS),
])  # fmt: skip
def test_a_sentence_is_a_rule_by_its_rating_unless_it_is_a_question(
    text: str, ratings: list[float] | None, expected: str
) -> None:
    def rate(sentences: Sequence[str]) -> list[float]:
        assert ratings
        return ratings[: len(sentences)]

    statements = find_statements(text, rate=rate if ratings else None)

    assert [each.text for each in statements] == [expected]


def test_a_long_text_is_not_rated() -> None:
    text = "\n".join(f"card {number} lies on the pile" for number in range(40))

    assert not find_statements(text, rate=lambda sentences: [0.9] * len(sentences))
