"""The stems are the index's: what it brings together, a reading brings together too."""

import sqlite3
from contextlib import closing

from hypothesis import example, given, strategies as st

from mnemosyned.text.stems import fold_case, irregular_forms, stem, stem_prefix

ENDINGS = """
    s es ed ing ies ied ation ational tional izer ousness iveness fulness ably ness ful icate ical
    ement ance able ible ism ate ive ize ly y e ll ee
""".split()
ENDINGS_ALONE = {"eed", "ies", "sses"}
"""What FTS5 does not take for an ending where it is the whole word."""
WORDS = st.builds("".join, st.tuples(st.text("abeilnorsty", min_size=1, max_size=7),
                                     st.sampled_from(ENDINGS)))  # fmt: skip


def indexed(words: list[str]) -> list[str]:
    """The words as FTS5 keeps them."""
    with closing(sqlite3.connect(":memory:")) as database:
        database.executescript(
            "CREATE VIRTUAL TABLE f USING fts5("
            "c, tokenize = 'porter unicode61 remove_diacritics 2');"
            "CREATE VIRTUAL TABLE v USING fts5vocab(f, instance);"
        )
        database.executemany("INSERT INTO f (rowid, c) VALUES (?, ?)", enumerate(words))
        return [term for (term,) in database.execute("SELECT term FROM v ORDER BY doc")]


@given(st.lists(WORDS, min_size=1, max_size=20))
@example(["ies", "sses", "ties", "passes"])
def test_a_stem_is_what_the_index_keeps(words: list[str]) -> None:
    words = [word for word in words if word not in ENDINGS_ALONE]

    assert [stem(word) for word in words] == indexed(words)


@given(
    word=st.from_regex(r"[a-z]{1,12}", fullmatch=True), ending=st.sampled_from(ENDINGS)
)
def test_a_word_begins_as_its_stem_says(word: str, ending: str) -> None:
    assert (word + ending).startswith(stem_prefix(stem(word + ending)))
    assert stem_prefix(stem(word + ending))


def test_accents_and_case_are_folded_as_in_the_index() -> None:
    words = ["São", "Übermut", "ΟΔΟΣ", "Ёлка", "Ångström"]

    assert [fold_case(word) for word in words] == [
        fold_case(word) for word in indexed(words)
    ]


def test_irregular_forms_belong_together() -> None:
    assert "bought" in irregular_forms("buying")
    assert "buy" in irregular_forms("bought")
    assert "children" in irregular_forms("child")
    assert irregular_forms("bicycle") == ()
