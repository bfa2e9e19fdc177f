"""How tags are written."""

import pytest
from support.cases import each_case

from mnemosyned.errors import InvalidRequest
from mnemosyned.memory.values import tag_name, tag_names


@each_case(
    ("given", "kept"),
    [
        ("Travel", "travel"),
        ("  #Work ", "work"),
        ("two \t words", "two words"),
        ("Cafe\u0301", "caf\u00e9"),
        ("旅行", "旅行"),
        ("ÜBER", "über"),
    ],
)
def test_a_tag_is_kept_in_one_form(given: str, kept: str) -> None:
    assert tag_name(given) == kept
    assert tag_name(kept) == kept


@each_case("given", ["", " # ", "a,b", "a\u202eb", "x" * 101])
def test_what_is_no_tag_is_refused(given: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        tag_name(given, field="tags")

    assert refused.value.field == "tags"


def test_tags_are_sorted_and_each_is_there_once() -> None:
    assert tag_names(["b", "A", "a"]) == ("a", "b")
