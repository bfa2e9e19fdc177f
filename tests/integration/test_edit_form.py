"""The form that an editor shows, and what is read from it."""

from datetime import timedelta

import pytest
from support.fakes import NOON, memory

from mnemosyned.cli.commands.edit import changes_in, form_text
from mnemosyned.errors import InvalidRequest

KETTLE = memory(
    "m", "The kettle\n---\nis hot", session="home", tags=("a", "b"), created_at=NOON
)


def test_a_form_left_as_it_is_changes_nothing() -> None:
    assert changes_in(form_text(KETTLE), KETTLE) == {}


@pytest.mark.parametrize("emptied", ["", "\n \n"])
def test_an_emptied_form_changes_nothing(emptied: str) -> None:
    assert changes_in(emptied, KETTLE) == {}


def test_only_what_differs_is_changed() -> None:
    edited = (
        form_text(KETTLE)
        .replace("session: home", "Session :  away")
        .replace("hot", "on")
    )

    assert changes_in(edited, KETTLE) == {
        "session": "away",
        "text": "The kettle\n---\nis on",
        "if_text": KETTLE.content,
    }


def test_an_emptied_text_is_left_as_it_was() -> None:
    head = form_text(KETTLE).partition("---\n")[0]

    assert changes_in(f"{head}---\n\n", KETTLE) == {}


def test_fields_can_be_emptied_left_out_and_retyped() -> None:
    assert changes_in("tags:\ntime: yesterday\n---\n" + KETTLE.content, KETTLE) == {
        "tags": ("",),
        "created_at": "yesterday",
    }


@pytest.mark.parametrize(
    ("edited", "message"),
    [("no rule at all", "is missing"), ("sesion: x\n---\ny", "no field 'sesion'")],
)
def test_what_cannot_be_read_is_said(edited: str, message: str) -> None:
    with pytest.raises(InvalidRequest, match=message):
        changes_in(edited, KETTLE)


def test_a_text_without_a_final_newline_is_the_same() -> None:
    late = memory("m", "ends here\n", created_at=NOON - timedelta(days=1))

    assert changes_in(form_text(late), late) == {}
