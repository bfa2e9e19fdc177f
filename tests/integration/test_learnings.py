"""What users say to hold: learned, listed, edited, and forgotten."""

import re
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
from support.cases import each_case
from support.leftovers import left_of
from support.services import Lab

from mnemosyned.cli.output.show import render
from mnemosyned.errors import EmptyContent, InvalidRequest, NotFound, SecretRefused
from mnemosyned.memory.values import LearningKind, LearningScope
from mnemosyned.verbs.conversation import (
    EditLearning,
    Learn,
    RemoveLearning,
)
from mnemosyned.verbs.memories import Remember
from mnemosyned.verbs.request import Request
from mnemosyned.verbs.retention import Forget

UNIQUE = "Zqxjv48213Kwyz"


def texts(lab: Lab, **fields: object) -> list[str]:
    return [one.text for one in lab.learnings(**fields).learnings]  # type: ignore[arg-type]


def test_the_list_says_where_each_learning_applies(lab: Lab) -> None:
    expected = {
        "In this repo we use pnpm, never npm.": LearningScope.PROJECT,
        "Answer me in German from now on.": LearningScope.EVERYWHERE,
    }
    for text in expected:
        lab.remember(text, role="user")

    listed = lab.learnings()

    assert {each.text: listed.scopes[each.id] for each in listed.learnings} == expected
    assert "instruction  everywhere  default" in render(listed)
    projects = {each.id: "w/shop" for each in listed}
    of_shop = render(msgspec.structs.replace(listed, projects=projects))
    assert re.findall("instruction  (.*)  default", of_shop) == ["everywhere", "w/shop"]


def test_the_list_is_searched_paged_and_says_what_people_changed(lab: Lab) -> None:
    rules = [f"Always taste the {dish} first." for dish in ("soup", "sauce", "roast")]
    ids = [lab.learn(rule, source="cook").learning.id for rule in rules]
    lab.edit_briefing(ids[0], drop=True)

    first = lab.learnings(limit=2)
    last = lab.learnings(limit=2, after=first.next)

    assert [each.id for each in first] + [each.id for each in last] == ids[::-1]
    assert (bool(first.next), last.next) == (True, None)
    assert [(each.id, each.dropped) for each in last.edits] == [(ids[0], True)]
    assert first.edits == []
    assert "   dropped" in render(last)
    assert texts(lab, query="SAUCE taste") == ["Always taste the sauce first."]
    assert texts(lab, id=[ids[0]]) == ["Always taste the soup first."]
    with pytest.raises(InvalidRequest, match="not a cursor"):
        lab.learnings(after="x")


def test_only_a_user_gives_instructions(lab: Lab) -> None:
    for role in ("assistant", "tool", "Ada", "system"):
        lab.remember("Never use emojis.", role=role)

    assert texts(lab) == []


@pytest.mark.parametrize(
    "note",
    [
        "Never use emojis.",
        "Rule: never use emojis",
        "Allergic to peanuts and cashews",
        "Allergy: penicillin (rash in 2019)",
        "Lea hat eine Nussallergie",
        "Bitte immer auf Deutsch antworten",
        "Allergie aux noix",
        "Tom verträgt keine Laktose",
        "mai usare var nel codice javascript",
    ],
)
def test_a_note_that_reads_as_a_rule_is_learned_and_told_at_a_start(
    lab: Lab, note: str
) -> None:
    lab.remember(note)

    assert texts(lab) == [note]
    assert note in lab.briefing(project="shop").text


@pytest.mark.parametrize(
    "note",
    [
        "Ada decided: we never deploy on Fridays",
        "Recipe: always whisk the eggs first, then add sugar",
        "The server never recovered after the outage",
        "Immer noch keine Antwort vom Amt bekommen",
        "Tom verträgt keine Kritik",
        "Mai dire mai di Fleming, giovedì alle nove",
        "Page of the wiki.\nNever use emojis.",
        "Mom, we land at six and take the bus. " * 5 + "Never wait for me.",
    ],
)
def test_a_note_on_something_else_is_no_rule(lab: Lab, note: str) -> None:
    lab.remember(note)

    assert texts(lab) == []


def test_a_record_from_a_source_is_no_note(lab: Lab) -> None:
    memory = lab.remember("Never use emojis.", source="web").id
    note = lab.remember("Never use emojis in mails.").id

    assert texts(lab) == ["Never use emojis in mails."]
    lab.edit(note, text="Never use emojis in mails to clients.")
    assert texts(lab) == ["Never use emojis in mails to clients."]
    lab.edit(note, role="assistant")
    lab.edit(memory, role="user")
    assert texts(lab) == ["Never use emojis."]


def test_a_batch_says_how_many_learnings_in_force_it_brought_and_a_dry_run_none(
    lab: Lab,
) -> None:
    batch = [
        Remember("So I prefer tabs over spaces, ok.", id="1", role="user"),
        Remember("I prefer spaces over tabs, I changed my mind.", id="2", role="user"),
        Remember("Call me Bob.", id="3", role="User"),
        Remember("We never finished that conversation.", id="4", role="user"),
    ]

    checked = lab.remember_many(batch, dry_run=True)
    nothing = texts(lab)
    first = lab.remember_many(batch)
    again = lab.remember_many(batch)

    assert (checked.learned, first.learned, again.learned) == (0, 2, 0)
    assert nothing == []
    assert sorted(texts(lab)) == ["Call me Bob.", "Prefers spaces over tabs"]


def test_no_secret_is_learned(lab: Lab) -> None:
    twice = "Always log in with the password hunter22x!, and password: hunter22x!"
    lab.remember("Remember that my password is hunter22x!", role="user")
    lab.learn(twice)

    assert texts(lab)
    assert not any("hunter22x" in text for text in texts(lab))


def test_a_secret_in_a_lesson_is_refused_where_secrets_are(lab: Lab) -> None:
    lab.change({"secrets": "refuse"})

    with pytest.raises(SecretRefused) as refused:
        lab.learn("The password is hunter22x!")

    assert refused.value.field == "content"
    assert "hunter22x" not in refused.value.message


def test_a_lesson_is_kept_edited_and_removed(lab: Lab) -> None:
    kept = lab.learn("Taste first.", source="cook").learning

    edited = lab.edit_learning(kept.id, text="Taste twice.")
    after_edit = texts(lab)
    removed = lab.remove_learning(kept.id)

    assert (kept.kind, kept.memory) == (LearningKind.LESSON, None)
    assert (edited.id, edited.text, removed.id) == (kept.id, "Taste twice.", kept.id)
    assert (after_edit, texts(lab)) == (["Taste twice."], [])


def test_a_lesson_says_what_it_takes_the_place_of(lab: Lab) -> None:
    old = lab.learn("Always use tabs.").learning
    lab.clock.advance(hours=1)

    answer = lab.learn("Always use spaces.")

    assert answer.superseded == [old.id]
    assert texts(lab) == ["Always use spaces."]
    assert texts(lab, superseded=True) == ["Always use spaces.", "Always use tabs."]


def test_what_a_superseded_memory_said_is_in_force_no_more_until_the_newer_is_forgotten(
    lab: Lab,
) -> None:
    old = lab.remember("Always deploy quokka on Mondays.", role="user")
    lab.clock.advance(hours=1)
    new = lab.remember(
        "Always deploy quokka on Thursdays.", role="user", supersedes=old.id
    )

    superseded = texts(lab)
    lab.forget(id=new.id)

    assert superseded == ["Always deploy quokka on Thursdays."]
    assert texts(lab) == ["Always deploy quokka on Mondays."]


@each_case(
    ("request_", "error"),
    [
        (Learn("  \n"), EmptyContent),
        (EditLearning("x", text="Taste twice."), NotFound),
        (EditLearning("x", text=" "), EmptyContent),
        (RemoveLearning("x"), NotFound),
    ],
)
def test_what_cannot_be_learned_is_refused(
    lab: Lab, request_: Request[Any], error: type[Exception]
) -> None:
    with pytest.raises(error):
        lab.call(request_)


def test_what_is_forgotten_is_unlearned_and_gone_from_the_disk(lab: Lab) -> None:
    words = f"Always call the boat {UNIQUE}."
    kept = lab.remember(words, role="user")
    lesson = lab.learn(f"The boat is the {UNIQUE}.").learning
    before = texts(lab)

    lab.forget(kept.id)
    lab.remove_learning(lesson.id)

    assert len(before) == 2
    assert texts(lab) == []
    assert left_of(lab.store, UNIQUE) == []


def test_the_receipt_counts_what_was_unlearned_as_the_preview_did(lab: Lab) -> None:
    rules = "Always write tests first. Never use emojis."
    kept = lab.remember(rules, role="user")
    lab.remember("I prefer tabs.", role="user")

    preview = lab.forget(kept.id, dry_run=True)
    receipt = lab.forget(kept.id)

    assert preview.learnings == receipt.learnings == 2
    assert texts(lab) == ["Prefers tabs"]
    assert "2 learnings" in render(receipt)
    assert "mnem learnings shows" in render(preview)
    assert "mnem learnings shows" not in render(receipt)


@pytest.mark.parametrize(
    "meant",
    [
        Forget(person="ada"),
        Forget(query="signs releases"),
        Forget(session="one"),
        Forget(source="agent"),
        Forget(query="release", source="agent"),
    ],
    ids=str,
)
def test_a_lesson_of_its_own_that_is_meant_is_forgotten_too(
    lab: Lab, meant: Forget
) -> None:
    lesson = f"Ada signs off every release, as {UNIQUE} does"
    lab.learn(lesson, session="one", source="agent")
    lab.learn("Adam prefers tabs", session="two")
    lab.remember("the harbour is closed", session="three")

    preview = lab.call(msgspec.structs.replace(meant, dry_run=True))
    receipt = lab.call(meant)

    assert (preview.memories, preview.learnings) == (0, 1)
    assert (receipt.memories, receipt.learnings) == (0, 1)
    assert texts(lab) == ["Adam prefers tabs"]
    assert left_of(lab.store, UNIQUE) == []
    assert lab.call(meant).learnings == 0


@each_case(
    "meant",
    [
        Forget(person="Ad"),
        Forget(query="release emojis"),
        Forget(session="one", source="other"),
        Forget(person="Ada", until=datetime(2000, 1, 1, tzinfo=UTC)),
    ],
)
def test_a_lesson_that_is_not_meant_stays(lab: Lab, meant: Forget) -> None:
    lab.learn("Ada signs off every release", session="one", source="agent")

    assert lab.call(meant).learnings == 0
    assert texts(lab) == ["Ada signs off every release"]


def test_words_from_before_the_epoch_are_learned_too(lab: Lab) -> None:
    long_ago = datetime(1869, 5, 1, tzinfo=UTC)

    for words in ("Never use emojis.", "Call me Ada."):
        lab.remember(words, role="user", created_at=long_ago)

    assert sorted(texts(lab)) == ["Call me Ada.", "Never use emojis."]
