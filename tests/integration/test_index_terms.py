"""The index terms of the PostgreSQL store, against those of SQLite's FTS5."""

import sqlite3
from collections.abc import Callable, Iterable
from contextlib import closing

import pytest
from hypothesis import given, strategies as st
from support.cases import thorough

from mnemosyned.storage.postgres.fulltext import (
    COLUMN_END,
    gram_hashes,
    gram_term_hashes,
    phrase_hashes,
    word_hashes,
)
from mnemosyned.text.terms import gram_text

OWNER = 7
STEMMED = "porter unicode61 remove_diacritics 2"
UNSTEMMED = "unicode61"
LAST_DENSE = 0x20000
"""Up to here every character is compared, or every 11th, and every 97th of those after."""
ODDITIES = [
    "naïve café Ångström ÅNGSTRÖM e\u0301te\u0301 \u0301x a\u0308b Straße STRASSE GROẞ größers",
    "мой мои Мой ёлка Ёлка йод ПОДЪЕЗД їжак Україна θάλασσα ΘΑΛΑΣΣΑ σοφός ΣΟΦΌΣ ὀδυσσεύς",
    "İstanbul ISTANBUL ıssız Iğdır Việt Nam tiếng Đặng ǖ Ǘ ế ŀ ĳ ﬁsh ſtone µm μm K Å",
    "がくせい ガクセイ ｶﾞｸｾｲ パソコン 東京都 한국어 한국 ไทยที่นี่ ភាសាខ្មែរ မြန်မာ ລາວ हिन्दी क़लम ড় தமிழ்",
    "سلام آب إسلام مكتوب كِتَاب שָׁלוֹם ʼn ŉ Ǆ ǆ ⅷ Ⅷ ½ ² ① 𝐀𝐛𝐜 𐐀𐐨 Ꭰꭰ Ა ა 🤖great🦄idea😀ok🎉 a\u200bb a\u00adb",
    "_under_score_ __ 0,0,0,0 QX-48213 10.5% C++ l'été rock'n'roll x\ue000y \ue000 \U000f0000z a\u2028b",
    "running runners ran hopping fillings sssing yyying 1100ing caresses ponies agreed plastered sky",
    "Ünïcodeing éed æsthetics æsthetically größings größed åing ссing ееed "
    + "a" * 70
    + "ing",
]


def fts5(texts: Iterable[str], tokenizer: str) -> list[list[bytes]]:
    """The terms of each text in FTS5's index, in order."""
    with closing(sqlite3.connect(":memory:")) as database:
        database.text_factory = bytes
        database.executescript(
            f"CREATE VIRTUAL TABLE f USING fts5(x, content='', tokenize='{tokenizer}');"
            "CREATE VIRTUAL TABLE v USING fts5vocab(f, instance);"
        )
        count = 0
        for count, text in enumerate(texts, 1):
            database.execute("INSERT INTO f (rowid, x) VALUES (?, ?)", (count, text))
        found: list[list[bytes]] = [[] for _ in range(count)]
        for doc, term in database.execute(
            "SELECT doc, term FROM v ORDER BY doc, offset"
        ):
            found[doc - 1].append(term)
        return found


def assert_alike(
    texts: list[str], tokenizer: str, hashed: Callable[[int, str], list[int]]
) -> None:
    """As many terms, and two of a text are the same in one index where they are in the other.

    Of all texts together some few numbers stand for two terms: they have 32 bits.
    """
    numbers: dict[bytes, int] = {}
    for text, expected in zip(texts, fts5(texts, tokenizer), strict=True):
        hashes = hashed(OWNER, text)
        terms: dict[int, bytes] = {}
        assert len(hashes) == len(expected), text
        for term, number in zip(expected, hashes, strict=True):
            assert numbers.setdefault(term, number) == number, (text, term.decode())
            assert terms.setdefault(number, term) == term, (text, term.decode())


@pytest.mark.parametrize("each", [37, *thorough(1)])
@pytest.mark.parametrize(
    ("tokenizer", "hashed"),
    [(STEMMED, phrase_hashes), (UNSTEMMED, gram_term_hashes)],
)
def test_every_character_parts_and_folds_as_in_fts5(
    tokenizer: str, hashed: Callable[[int, str], list[int]], each: int
) -> None:
    numbers = [*range(1, LAST_DENSE, each), *range(LAST_DENSE, 0x110000, 97)]
    characters = [chr(at) for at in numbers if not 0xD800 <= at < 0xE000]
    within = [f"q{character}q" for character in characters]
    alone = [f"{character} {character}q" for character in characters]
    texts = [
        " ".join(words[at : at + 500])
        for words in (within, alone)
        for at in range(0, len(words), 500)
    ]

    assert_alike([*ODDITIES, *texts], tokenizer, hashed)


@given(st.lists(st.text(st.characters(exclude_characters="\0", codec="utf-8"))))
def test_any_text_has_the_terms_of_fts5(texts: list[str]) -> None:
    assert_alike(texts, STEMMED, phrase_hashes)
    assert_alike(texts, UNSTEMMED, gram_term_hashes)


@given(st.text("aeiouybcdlstzngr1éßй", min_size=1, max_size=12))
def test_any_word_has_the_stem_of_fts5(word: str) -> None:
    endings = ["", "s", "ing", "ed", "eed", "ies", "ational", "iveness", "ement", "ll"]
    assert_alike([word + ending for ending in endings], STEMMED, phrase_hashes)


def test_texts_of_a_row_are_apart_and_keep_their_order_and_repeats() -> None:
    bike, red = phrase_hashes(OWNER, "bikes red")

    assert word_hashes(OWNER, "red bike, Red bikes", "biking") == [
        red, bike, red, bike, COLUMN_END, bike,
    ]  # fmt: skip
    assert word_hashes(OWNER, "", "red") == [red]
    assert word_hashes(OWNER, "red", "?!") == [red]
    assert phrase_hashes(OWNER, "QX-48213") != phrase_hashes(OWNER + 1, "QX-48213")


def test_the_second_index_has_pairs_and_parts_of_names() -> None:
    assert gram_hashes(OWNER, "plain words") is None
    text = "東京都 by myCamelCase"
    assert gram_hashes(OWNER, text) == gram_term_hashes(OWNER, gram_text(text))
    assert gram_hashes(OWNER, text) == [
        number
        for part in ("東京", "京都", "my", "Camel", "Case")
        for number in gram_term_hashes(OWNER, part)
    ]
