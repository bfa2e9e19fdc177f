"""The ways to write a word that the index keeps apart, and no others."""

import sqlite3
from contextlib import closing

from hypothesis import given, strategies as st
from support.cases import each_case

from mnemosyned.memory.forgetting import name_matcher
from mnemosyned.text.stems import SPELLINGS_MAX, accent_variants


@each_case(
    ("one", "other"),
    [
        ("ΑΘΗΝΑ", "Αθήνα"),
        ("οδος", "οδός"),
        ("προιον", "προϊόν"),
        ("Ευβοια", "Εύβοια"),
        ("елка", "ёлка"),
    ],
)
def test_a_word_is_the_same_with_its_accents_and_without(one: str, other: str) -> None:
    assert _indexed(other) in {_indexed(form) for form in (one, *accent_variants(one))}
    assert _indexed(one) in {
        _indexed(form) for form in (other, *accent_variants(other))
    }


@each_case("word", ["plan", "Größe", "Łódź", "東京", "QX-48213", "мир", ""])
def test_other_words_have_one_spelling(word: str) -> None:
    assert accent_variants(word) == ()


@given(st.text(alphabet="αεηιουωϊΐάέήίόύώςσνЁёей", max_size=40))
def test_the_spellings_of_a_word_are_few_and_other_than_it(word: str) -> None:
    found = accent_variants(word)

    assert len(found) <= SPELLINGS_MAX
    assert word.lower() not in found


def test_no_spelling_is_asked_for_twice() -> None:
    asked = [_indexed(form) for form in ("οδός", *accent_variants("οδός"))]

    assert len(asked) == len(set(asked)) == 3


@each_case(
    ("name", "text"),
    [("Ελένη", "Η ΕΛΕΝΗ ΠΗΓΕ"), ("Elodie", "Élodie asked"), ("JOSÉ", "jose left")],
)
def test_a_name_is_found_with_its_accents_and_without(name: str, text: str) -> None:
    assert name_matcher(name)(text)
    assert not name_matcher(f"{name}x")(text)


def _indexed(word: str) -> str:
    """A word as the index keeps it."""
    with closing(sqlite3.connect(":memory:")) as beside:
        beside.execute(
            "CREATE VIRTUAL TABLE t USING fts5"
            "(x, tokenize = 'porter unicode61 remove_diacritics 2')"
        )
        beside.execute("CREATE VIRTUAL TABLE v USING fts5vocab(t, 'row')")
        beside.execute("INSERT INTO t VALUES (?)", (word,))
        return "".join(term for (term,) in beside.execute("SELECT term FROM v"))


@each_case("word", ["αι" * 2000, "е" * 4000])
def test_a_word_of_thousands_of_letters_has_as_many_spellings_as_others(
    word: str,
) -> None:
    forms = accent_variants(word)

    assert len(set(forms)) == len(forms) == SPELLINGS_MAX
    assert word not in forms
