import json
import unicodedata

from hypothesis import given, strategies as st
from support.cases import each_case

from mnemosyned.text.display import (
    escape_invisible,
    escape_invisible_json,
    escape_line,
    find_matching_words,
    strip_invisible,
)

HOSTILE = (
    "\x1b\x07\x08\x0b\x0c\r\x7f\x85\x9b\u061c\u200b\u200e\u2028\u2029\u202e\u2066"
    "\ufeff\U000e0041\u115f\u17b4\u180f\u3164\uffa0"
)


@each_case("char", HOSTILE)
def test_control_and_invisible_characters_are_escaped(char: str) -> None:
    shown = escape_invisible(f"a{char}b")

    assert (
        shown
        == f"a{char.encode('unicode_escape').decode().replace(chr(92) + 'r', '!')}b".replace(
            "!", "\\x0d"
        )
    )
    assert shown.isascii()


@each_case("text", [
    "plain", "zwei\nZeilen\tTab", "👩\u200d👩\u200d👧", "می\u200cخواهم", "日本語", "🇩🇪 ❤️", "क\u094dष",
])  # fmt: skip
def test_ordinary_text_is_unchanged(text: str) -> None:
    assert escape_invisible(text) == text
    assert strip_invisible(text) == text


def test_names_stay_on_one_line() -> None:
    assert escape_line("a\nb\tc") == r"a\nb\tc"


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


def marked(text: str, *matching: str) -> list[str]:
    """The parts of a text that are highlighted for the words of a query."""
    return [text[start:stop] for start, stop in find_matching_words(text, matching)]


def test_a_korean_word_is_marked_by_its_syllables_alone() -> None:
    assert marked("사용 설명서는 서울에서", "서울") == ["서울"]


def test_a_short_word_of_a_script_with_spaces_is_marked_as_a_word_alone() -> None:
    assert marked("она ждет, а он нет", "он") == ["он"]
    assert marked("Él está en casa", "el") == ["Él"]
    assert marked("我在东京都", "东京") == ["东京"]
