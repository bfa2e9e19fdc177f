"""Text takes the cells of a terminal that its characters take, and is cut and wrapped by them."""

from __future__ import annotations

import textwrap

from hypothesis import given, strategies as st
from support.cases import each_case

from mnemosyned.text.display import cell_count, chars_that_fit, wrap_cells

TEXTS = st.text(alphabet="ab -é日本語한\u0301👍", max_size=60)


@each_case(
    ("text", "cells"),
    [
        ("Tür", 3),
        ("e\u0301", 1),
        ("日本語", 6),
        ("ｱ", 1),
        ("Ａ", 2),
        ("👨\u200d👩\u200d👧", 2),
        ("❤\ufe0f", 2),
        ("", 0),
    ],
)
def test_a_character_takes_as_many_cells_as_it_is_wide(text: str, cells: int) -> None:
    assert cell_count(text) == cells


@given(TEXTS, st.integers(0, 40))
def test_what_fits_is_the_longest_beginning(text: str, cells: int) -> None:
    size = chars_that_fit(text, cells)

    assert cell_count(text[:size]) <= cells
    assert size == len(text) or cell_count(text[: size + 1]) > cells


@given(TEXTS, st.integers(2, 30))
def test_wrapped_lines_fit_and_lose_nothing(text: str, cells: int) -> None:
    lines = wrap_cells(text, cells, cells)

    assert max(map(cell_count, lines)) <= cells
    assert "".join("".join(lines).split()) == "".join(text.split())


@given(st.text(alphabet="abc d", max_size=80), st.integers(6, 30))
def test_latin_text_is_wrapped_as_textwrap_does(text: str, cells: int) -> None:
    expected = textwrap.wrap(text.strip(), cells) or [""]

    # After a word that it broke, textwrap leaves a space.
    assert wrap_cells(text.strip(), cells, cells) == [
        line.rstrip() for line in expected
    ]


def test_japanese_is_broken_where_a_line_ends() -> None:
    assert wrap_cells("橋は火曜日まで通行止めです", 10, 10) == [
        "橋は火曜日",
        "まで通行止",
        "めです",
    ]
