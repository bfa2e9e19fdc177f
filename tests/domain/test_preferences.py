"""Preferences said in passing: which messages state one, and in what form it is held."""

from support.cases import each_case
from support.preferences import LabelledMessage, labelled_messages, preference_figures

from mnemosyned.conversation.learnings.recognize import find_statements
from mnemosyned.conversation.learnings.rules import (
    LANGUAGES,
    load_passing_rules,
    load_table,
)
from mnemosyned.memory.values import LearningKind

MESSAGES = labelled_messages()
PRECISION_MIN, RECALL_MIN = 0.9, 0.75


def learned(text: str) -> list[str]:
    return [statement.text for statement in find_statements(text)]


LANGUAGES_SAID = sorted({message.language for message in MESSAGES})


@each_case(("chosen", "precision_min"), [
    (MESSAGES, PRECISION_MIN),
    ([message for message in MESSAGES if not message.held_out], PRECISION_MIN),
    ([message for message in MESSAGES if message.held_out], PRECISION_MIN),
    *(([message for message in MESSAGES if message.language == language], PRECISION_MIN - 0.05)
      for language in LANGUAGES_SAID),
])  # fmt: skip
def test_preferences_are_learned_in_each_language_and_no_look_alike(
    chosen: list[LabelledMessage], precision_min: float
) -> None:
    figures = preference_figures(chosen, learned)

    assert figures.precision >= precision_min, figures.wrong
    assert figures.recall >= RECALL_MIN, figures.wrong


@each_case(("said", "held"), [
    ("I build sites, and I prefer plain HTML over frameworks because it lasts, ok?",
     "Prefers plain HTML over frameworks"),
    ("I like my coffee black.", "Likes their coffee black"),
    ("I usually go with SQLite, so how?", "Usually goes with SQLite"),
    ("Ship it small: keep it under 100 KB, ok?", "Keep it under 100 KB"),
    ("I prefer `pathlib` over `os.path`.", "Prefers `pathlib` over `os.path`"),
    ("Ich nehme meistens den Zug.", "Nimmt meistens den Zug"),
    ("Je préfère le train à l'avion.", "Préfère le train à l'avion"),
])  # fmt: skip
def test_a_preference_is_kept_in_the_third_person(said: str, held: str) -> None:
    assert learned(said) == [held]


@each_case("said", [
    "I prefer what?", "Do I prefer tabs over spaces?",
    'She wrote "I prefer tabs over spaces" on the board.', "```\nI prefer tabs over spaces.\n```",
    "If I prefer tabs over spaces, what then?", "I prefer the second one over the first.",
    "I prefer tea over coffee today.", "I prefer " + "very " * 40 + "long lists.",
])  # fmt: skip
def test_what_only_resembles_a_preference_is_not_learned(said: str) -> None:
    assert learned(said) == []


def test_a_message_may_state_several() -> None:
    text = (
        "I like subcommands and long flags. Please no progress bars with emoji, I hate "
        "blinking cursors."
    )

    assert [statement[:2] for statement in find_statements(text)] == [
        (LearningKind.PREFERENCE, "Likes subcommands and long flags"),
        (LearningKind.INSTRUCTION, "No progress bars with emoji"),
        (LearningKind.PREFERENCE, "Hates blinking cursors"),
    ]


@each_case(
    "language",
    [language for language in LANGUAGES if "passing" in load_table(language)],
)
def test_every_form_names_groups_that_its_rule_has(language: str) -> None:
    rules = load_passing_rules(language)
    for rule in (*rules.at_starts, *rules.inside):
        fields = {field.strip("{}") for field in rule.form.split() if "{" in field}
        names = {name for field in fields for name in field.split("}{")}
        assert {name.split("}")[0].split("{")[-1] for name in names} <= set(
            rule.pattern.groupindex
        ), rule.pattern.pattern
