"""What users say to hold: learned, listed, edited, and forgotten."""

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
from support.cases import each_case
from support.fakes import FakeClock
from support.leftovers import left_of
from support.settings import change

from mnemosyned.cli.output.show import render
from mnemosyned.config.settings import SettingsInForce
from mnemosyned.errors import EmptyContent, InvalidRequest, NotFound, SecretRefused
from mnemosyned.memory.values import LearningKind, LearningScope
from mnemosyned.service.service import MemoryService
from mnemosyned.storage.sqlite.store import SqliteStore
from mnemosyned.verbs.conversation import (
    EditBriefing,
    EditLearning,
    Learn,
    Learnings,
    RemoveLearning,
)
from mnemosyned.verbs.memories import Remember, RememberMany
from mnemosyned.verbs.request import Request
from mnemosyned.verbs.retention import Forget

UNIQUE = "Zqxjv48213Kwyz"


def texts(service: MemoryService, **fields: object) -> list[str]:
    return [one.text for one in service.call(Learnings(**fields)).learnings]  # type: ignore[arg-type]


def test_the_list_says_where_each_learning_applies(service: MemoryService) -> None:
    expected = {
        "In this repo we use pnpm, never npm.": LearningScope.PROJECT,
        "Answer me in German from now on.": LearningScope.EVERYWHERE,
    }
    for text in expected:
        service.call(Remember(text, role="user"))

    listed = service.call(Learnings())

    assert {each.text: listed.scopes[each.id] for each in listed.learnings} == expected
    assert "instruction  project  default" in render(listed)


def test_the_list_is_searched_paged_and_says_what_people_changed(
    service: MemoryService,
) -> None:
    rules = [f"Always taste the {dish} first." for dish in ("soup", "sauce", "roast")]
    ids = [service.call(Learn(rule, source="cook")).learning.id for rule in rules]
    service.call(EditBriefing(ids[0], drop=True))

    first = service.call(Learnings(limit=2))
    last = service.call(Learnings(limit=2, after=first.next))

    assert [each.id for each in first] + [each.id for each in last] == ids[::-1]
    assert (bool(first.next), last.next) == (True, None)
    assert [(each.id, each.dropped) for each in last.edits] == [(ids[0], True)]
    assert first.edits == []
    assert "   dropped" in render(last)
    assert texts(service, query="SAUCE taste") == ["Always taste the sauce first."]
    assert texts(service, id=[ids[0]]) == ["Always taste the soup first."]
    with pytest.raises(InvalidRequest, match="not a cursor"):
        service.call(Learnings(after="x"))


def test_only_a_user_gives_instructions(service: MemoryService) -> None:
    for role in ("assistant", "tool", "", "system"):
        service.call(Remember("Never use emojis.", role=role))

    assert texts(service) == []


def test_a_batch_says_how_many_learnings_in_force_it_brought_and_a_dry_run_none(
    service: MemoryService,
) -> None:
    batch = [
        Remember("So I prefer tabs over spaces, ok.", id="1", role="user"),
        Remember("I prefer spaces over tabs, I changed my mind.", id="2", role="user"),
        Remember("Call me Bob.", id="3", role="User"),
        Remember("We never finished that conversation.", id="4", role="user"),
    ]

    checked = service.call(RememberMany(batch, dry_run=True))
    nothing = texts(service)
    first = service.call(RememberMany(batch))
    again = service.call(RememberMany(batch))

    assert (checked.learned, first.learned, again.learned) == (0, 2, 0)
    assert nothing == []
    assert sorted(texts(service)) == ["Call me Bob.", "Prefers spaces over tabs"]


def test_a_preference_names_the_memory_it_was_said_in(service: MemoryService) -> None:
    said = "We ship a widget, and I prefer plain JS over frameworks, can you help me?"
    kept = service.call(Remember(said, role="user", source="widget"))

    (learning,) = service.call(Learnings()).learnings

    assert learning.text == "Prefers plain JS over frameworks"
    assert (learning.memory, learning.source) == (kept.id, "widget")


def test_no_secret_is_learned(service: MemoryService) -> None:
    twice = "Always log in with the password hunter22x!, and password: hunter22x!"
    service.call(Remember("Remember that my password is hunter22x!", role="user"))
    service.call(Learn(twice))

    assert texts(service)
    assert not any("hunter22x" in text for text in texts(service))


def test_a_secret_in_a_lesson_is_refused_where_secrets_are(
    service: MemoryService, settings: SettingsInForce
) -> None:
    change(settings, {"secrets": "refuse"})

    with pytest.raises(SecretRefused) as refused:
        service.call(Learn("The password is hunter22x!"))

    assert refused.value.field == "content"
    assert "hunter22x" not in refused.value.message


def test_a_lesson_is_kept_edited_and_removed(service: MemoryService) -> None:
    kept = service.call(Learn("Taste first.", source="cook")).learning

    edited = service.call(EditLearning(kept.id, text="Taste twice."))
    after_edit = texts(service)
    removed = service.call(RemoveLearning(kept.id))

    assert (kept.kind, kept.memory) == (LearningKind.LESSON, None)
    assert (edited.id, edited.text, removed.id) == (kept.id, "Taste twice.", kept.id)
    assert (after_edit, texts(service)) == (["Taste twice."], [])


def test_a_lesson_says_what_it_takes_the_place_of(
    service: MemoryService, clock: FakeClock
) -> None:
    old = service.call(Learn("Always use tabs.")).learning
    clock.advance(hours=1)

    answer = service.call(Learn("Always use spaces."))

    assert answer.superseded == [old.id]
    assert texts(service) == ["Always use spaces."]
    assert texts(service, superseded=True) == ["Always use spaces.", "Always use tabs."]


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
    service: MemoryService, request_: Request[Any], error: type[Exception]
) -> None:
    with pytest.raises(error):
        service.call(request_)


def test_what_is_forgotten_is_unlearned_and_gone_from_the_disk(
    store: SqliteStore, service: MemoryService
) -> None:
    words = f"Always call the boat {UNIQUE}."
    kept = service.call(Remember(words, role="user"))
    lesson = service.call(Learn(f"The boat is the {UNIQUE}.")).learning
    before = texts(service)

    service.call(Forget(kept.id))
    service.call(RemoveLearning(lesson.id))

    assert len(before) == 2
    assert texts(service) == []
    assert left_of(store, UNIQUE) == []


def test_the_receipt_counts_what_was_unlearned_as_the_preview_did(
    service: MemoryService,
) -> None:
    rules = "Always write tests first. Never use emojis."
    kept = service.call(Remember(rules, role="user"))
    service.call(Remember("I prefer tabs.", role="user"))

    preview = service.call(Forget(kept.id, dry_run=True))
    receipt = service.call(Forget(kept.id))

    assert preview.learnings == receipt.learnings == 2
    assert texts(service) == ["Prefers tabs"]
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
    service: MemoryService, store: SqliteStore, meant: Forget
) -> None:
    lesson = f"Ada signs off every release, as {UNIQUE} does"
    service.call(Learn(lesson, session="one", source="agent"))
    service.call(Learn("Adam prefers tabs", session="two"))
    service.call(Remember("the harbour is closed", session="three"))

    preview = service.call(msgspec.structs.replace(meant, dry_run=True))
    receipt = service.call(meant)

    assert (preview.memories, preview.learnings) == (0, 1)
    assert (receipt.memories, receipt.learnings) == (0, 1)
    assert texts(service) == ["Adam prefers tabs"]
    assert left_of(store, UNIQUE) == []
    assert service.call(meant).learnings == 0


@each_case(
    "meant",
    [
        Forget(person="Ad"),
        Forget(query="release emojis"),
        Forget(session="one", source="other"),
        Forget(person="Ada", until=datetime(2000, 1, 1, tzinfo=UTC)),
    ],
)
def test_a_lesson_that_is_not_meant_stays(
    service: MemoryService, meant: Forget
) -> None:
    service.call(Learn("Ada signs off every release", session="one", source="agent"))

    assert service.call(meant).learnings == 0
    assert texts(service) == ["Ada signs off every release"]


def test_words_from_before_the_epoch_are_learned_too(service: MemoryService) -> None:
    long_ago = datetime(1869, 5, 1, tzinfo=UTC)

    for words in ("Never use emojis.", "Call me Ada."):
        service.call(Remember(words, role="user", created_at=long_ago))

    assert sorted(texts(service)) == ["Call me Ada.", "Never use emojis."]
