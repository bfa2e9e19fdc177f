"""How a terminal shows text: nothing that controls it, cut and wrapped by the cells that it takes."""

import json
import textwrap
import unicodedata

from hypothesis import given, strategies as st
from support.cases import each_case

from mnemosyned.text.display import (
    cell_count,
    chars_that_fit,
    escape_invisible,
    escape_invisible_json,
    escape_line,
    find_matching_words,
    strip_invisible,
    wrap_cells,
)

HOSTILE = (
    "\x1b\x07\x08\x0b\x0c\r\x7f\x85\x9b\u061c\u200b\u200e\u2028\u2029\u202e\u2066"
    "\ufeff\U000e0041\u115f\u17b4\u180f\u3164\uffa0"
)


@each_case("char", HOSTILE)
def test_control_and_invisible_characters_are_escaped(char: str) -> None:
    code = char.encode("unicode_escape").decode().replace("\\r", "\\x0d")

    assert escape_invisible(f"a{char}b") == f"a{code}b"


@each_case("text", [
    "plain", "zwei\nZeilen\tTab", "👩\u200d👩\u200d👧", "می\u200cخواهم", "日本語", "🇩🇪 ❤️", "क\u094dष",
])  # fmt: skip
def test_ordinary_text_is_unchanged(text: str) -> None:
    assert escape_invisible(text) == text
    assert strip_invisible(text) == text


@given(st.text(alphabet=st.characters(codec=None)))
def test_no_control_survives(text: str) -> None:
    shown = escape_invisible(text)

    assert not any(
        unicodedata.category(char) in ("Cc", "Cs", "Zl", "Zp") and char not in "\n\t"
        for char in shown
    )
    assert len(shown.splitlines()) <= text.count("\n") + 1


@given(st.text())
def test_json_says_the_same(text: str) -> None:
    shown = escape_invisible_json(json.dumps(text, ensure_ascii=False))

    assert json.loads(shown) == text
    assert not any(char in shown for char in "\x7f\x85\x9b\u202e\u2028\u200b")


@each_case(
    "char", ["\x0b", "\x0c", "\x1c", "\x1e", "\x85", "\u2028", "\u2029", "\r", "\r\n"]
)
def test_each_line_break_is_a_line_feed(char: str) -> None:
    assert strip_invisible(f"a{char}b") == "a\nb"
    assert escape_line("a\nb\tc") == r"a\nb\tc"  # a name stays on one line


@each_case(("text", "matching", "shown"), [
    ("사용 설명서는 서울에서", "서울", ["서울"]),
    ("она ждет, а он нет", "он", ["он"]),
    ("Él está en casa", "el", ["Él"]),
    ("我在东京都", "东京", ["东京"]),
    ("ＡＰＩのｻｰﾊﾞｰ", "api", ["ＡＰＩ"]),
])  # fmt: skip
def test_a_short_word_of_a_script_with_spaces_is_marked_as_a_word_alone(
    text: str, matching: str, shown: list[str]
) -> None:
    places = find_matching_words(text, [matching])

    assert [text[start:stop] for start, stop in places] == shown


# -------------------------------------------------------------------- cells


TEXTS = st.text(alphabet="ab -é日本語한\u0301👍", max_size=60)


@each_case(("text", "cells"), [
    ("Tür", 3),
    ("e\u0301", 1),
    ("日本語", 6),
    ("ｱ", 1),
    ("Ａ", 2),
    ("👨\u200d👩\u200d👧", 2),
    ("❤\ufe0f", 2),
    ("", 0),
])  # fmt: skip
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
    lines = wrap_cells("橋は火曜日まで通行止めです", 10, 10)

    assert lines == ["橋は火曜日", "まで通行止", "めです"]
