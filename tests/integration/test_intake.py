"""Drafts made of requests."""

from support.fakes import NOON
from support.settings import settings_in_force

from mnemosyned.memory.values import LearningKind
from mnemosyned.service.intake import DraftMaker
from mnemosyned.verbs.memories import Remember


def test_only_an_id_that_was_made_here_is_new() -> None:
    maker = DraftMaker(settings_in_force())

    made = maker.draft(Remember("Tea at four."), now=NOON)
    given = maker.draft(Remember("Tea at four.", id=made.memory.id), now=NOON)

    assert made.has_new_id
    assert not given.has_new_id
    assert given.memory.id == made.memory.id


def test_a_learning_is_recognized_with_and_without_a_secret_beside_it() -> None:
    maker = DraftMaker(settings_in_force())
    plain = "Always answer in French."
    secret = f"{plain} The password is Zq7xK9vB2m."

    drafts = [
        maker.draft(Remember(text, role="user"), now=NOON) for text in (plain, secret)
    ]

    assert [draft.secrets for draft in drafts] == ["", "kept"]
    for draft in drafts:
        (learning,) = draft.learnings
        assert (learning.kind, learning.text) == (LearningKind.INSTRUCTION, plain)
