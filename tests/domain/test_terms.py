import re
import sqlite3
import tomllib
from contextlib import closing
from itertools import groupby
from pathlib import Path
from unicodedata import normalize

from hypothesis import example, given, strategies as st
from support.cases import each_case

from mnemosyned.memory.forgetting import name_matcher
from mnemosyned.text import terms as terms_module
from mnemosyned.text.terms import (
    FUNCTION_WORDS,
    JOINS_MAX,
    PHRASE_TOKENS_MAX,
    SPELLINGS_MAX,
    TERMS_MAX,
    WORD,
    Terms,
    accent_variants,
    cut_snippet,
    glued_words,
    gram_text,
    has_unspaced_script,
    irregular_forms,
    join_compounds,
    parse_terms,
    split_compound,
    stem,
    stem_prefix,
    synonyms_of,
    with_words_apart,
    without_unspaced,
)

CODE = "3f2504e0-4f89-11d3-9a0c-0305e82c3301/2026-03-09T14"


@each_case(("question", "words"), [
    ("When did Anna move to Lisbon?", ("Anna", "move", "Lisbon")),
    ("Anna's bike", ("Anna", "bike")),
    ("mother/daughter", ("mother/daughter", "mother", "daughter")),
    ("order QX-48213!", ("order", "QX-48213")),
    ("anna ANNA Anna", ("anna",)),
    ("what is the plan", ("plan",)),
    ("Größe Straße", ("Größe", "Straße")),
    ("Was kommt in die Kürbissuppe?", ("kommt", "Kürbissuppe")),
    ("Où est la clé de la cave ?", ("clé", "cave")),
    ("¿Dónde está la llave?", ("llave",)),
    ("Who cast the die?", ("cast", "die")),
    ("Was La Perla open on Sol street?", ("La", "Perla", "open", "Sol", "street")),
    (CODE, (CODE,)),
    ("?!… ---", ()),
    ("", ()),
])  # fmt: skip
def test_a_question_is_read_as_its_words(question: str, words: tuple[str, ...]) -> None:
    assert parse_terms(question).words == words
    assert bool(parse_terms(question)) == bool(words)


def test_stop_words_go_unless_there_is_nothing_else() -> None:
    assert parse_terms("to be or not to be").words


@each_case(("text", "words", "grams"), [
    ("東京都", (), ("東京", "京都")),
    ("猫", (), ("猫",)),
    ("Anna 東京", ("Anna",), ("東京",)),
])  # fmt: skip
def test_a_text_without_spaces_is_read_as_pairs(
    text: str, words: tuple[str, ...], grams: tuple[str, ...]
) -> None:
    assert parse_terms(text) == Terms(words, grams)


@given(st.text(max_size=3_000))
def test_any_question_gives_a_bounded_number_of_terms(question: str) -> None:
    found = parse_terms(question)

    assert len(found.words) <= TERMS_MAX
    assert len(found.grams) <= TERMS_MAX
    assert all(found.words)


@each_case(("text", "parts"), [
    ("call getUserProfile now", "get User Profile"),
    ("parseHTTPResponse2", "parse HTTP Response 2"),
    ("東京 and Anna", "東京"),
    ("We met Anna at noon, 12 March 2026.", ""),
])  # fmt: skip
def test_the_second_index_holds_pairs_and_parts_of_names(text: str, parts: str) -> None:
    assert gram_text(text) == parts


@given(st.text(), st.text())
def test_a_name_is_parted_wherever_it_stands(before: str, behind: str) -> None:
    assert "get User Profile" in gram_text(f"{before} getUserProfile {behind}")


@given(
    st.text(alphabet=st.sampled_from("aéß東 _1"))
    | st.text(alphabet=st.sampled_from("AÉ東 _1"))
)
def test_only_a_capital_after_a_small_letter_parts_a_name(text: str) -> None:
    assert set(gram_text(text)) <= set("東 ")


@each_case("code", ["1%" * 2000, "0," * 2000, "a_1" * 1300, "a/b" * 900])
def test_a_long_code_is_looked_for_by_its_beginning(code: str) -> None:
    (word, *_) = parse_terms(code).words

    assert code.startswith(word)
    assert len(WORD.findall(word)) == PHRASE_TOKENS_MAX


@each_case(("text", "words"), [
    ("サーバーはnginxです", ["nginx"]),
    ("チケットABC-123を閉じた", ["ABC-123"]),
    ("用 MySQL 存储", []),
    ("用MySQL 8.0和 Redis存储", ["MySQL", "8.0", "Redis"]),
    ("用「nginx」", []),
    ("用nginx，x，Redis和", ["nginx，x，Redis"]),
    ("nginx", []),
    ("naïve café “quoted” text", []),
    ("", []),
])  # fmt: skip
def test_a_word_that_touches_another_script_is_one(text: str, words: list[str]) -> None:
    assert glued_words(text) == words


@given(st.text("ab1-. 東はเ가_\u0301。", max_size=40))
def test_what_touches_no_such_script_is_left_to_the_first_index(text: str) -> None:
    glued = glued_words(text)

    assert all(word in text and not has_unspaced_script(word) for word in glued)
    assert not glued or has_unspaced_script(text)
    assert len(without_unspaced(text)) == len(text)
    assert not has_unspaced_script(without_unspaced(text))
    runs = ["".join(run) for _, run in groupby(text, has_unspaced_script)]
    assert with_words_apart(text).split() == " ".join(runs).split()


# ----------------------------------------------------------------- compounds


@each_case(("word", "split", "is_split"), [
    ("wifi", "wi fi", True), ("oncall", "on call", True), ("checkin", "check in", True),
    ("office", "of fice", False),
])  # fmt: skip
def test_a_word_may_be_two_but_none_a_function_word(
    word: str, split: str, *, is_split: bool
) -> None:
    assert (split in split_compound(word)) is is_split


@each_case("word", ["cat", "x86", "often", "without", "a" * 17, "", "QX-4"])
def test_short_long_and_common_words_and_codes_are_not_split(word: str) -> None:
    assert split_compound(word) == ()


@each_case(("question", "joined"), [
    ("Wi-Fi", "WiFi"), ("who is on call?", "oncall"), ("late check in", "checkin"),
    ("wann bauen wir es bei Wübben ein?", "einbauen"), ("wanneer bellen we Jan op?", "opbellen"),
    ("the file server", "fileserver"), ("the call", None), ("QX-48213", None), ("call 42", None),
])  # fmt: skip
def test_neighbors_may_be_one_word_but_articles_and_numbers(
    question: str, joined: str | None
) -> None:
    terms = parse_terms(question)

    forms = [form for _, form in terms.joins]
    assert joined in forms if joined else not forms
    assert {word for word, _ in terms.joins} <= set(terms.words)


def test_the_joins_of_a_question_are_few() -> None:
    words = [f"word{letter}" for letter in "abcdefghijklmnopqrstuvwxyz"]

    assert len(join_compounds(" ".join(words), words)) <= JOINS_MAX


# ----------------------------------------------- stems, and words without accents


ENDINGS = """
    s es ed ing ies ied ation ational tional izer ousness iveness fulness ably ness ful icate ical
    ement ance able ible ism ate ive ize ly y e ll ee
""".split()
ENDINGS_ALONE = {"eed", "ies", "sses"}
"""What FTS5 does not take for an ending where it is the whole word."""
ENGLISH = st.builds("".join, st.tuples(st.text("abeilnorsty", min_size=1, max_size=7),
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


@given(st.lists(ENGLISH, min_size=1, max_size=20))
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


def test_irregular_forms_belong_together() -> None:
    assert "bought" in irregular_forms("buying")
    assert "buy" in irregular_forms("bought")
    assert "children" in irregular_forms("child")
    assert irregular_forms("bicycle") == ()


def test_a_telephone_is_found_in_other_languages_and_an_abbreviation() -> None:
    assert {"tel", "telefono"} <= set(synonyms_of("telefonnummer"))
    assert synonyms_of("address") == ("addr",)


def test_no_irregular_form_has_the_stem_of_a_word_that_says_nothing() -> None:
    table = (
        Path(terms_module.__file__).with_name("stems.toml").read_text(encoding="utf-8")
    )
    families = tomllib.loads(table)["irregular_forms"]

    assert not {stem(form) for form in re.findall(r"\w+", families)} & FUNCTION_WORDS


@each_case(("one", "other"), [
    ("ΑΘΗΝΑ", "Αθήνα"),
    ("οδος", "οδός"),
    ("προιον", "προϊόν"),
    ("Ευβοια", "Εύβοια"),
    ("елка", "ёлка"),
])  # fmt: skip
def test_a_word_is_the_same_with_its_accents_and_without(one: str, other: str) -> None:
    for word, form in ((one, other), (other, one)):
        assert indexed([form])[0] in indexed([word, *accent_variants(word)])


@each_case("word", ["plan", "Größe", "Łódź", "東京", "QX-48213", "мир", ""])
def test_other_words_have_one_spelling(word: str) -> None:
    assert accent_variants(word) == ()


@given(st.text(alphabet="αεηιουωϊΐάέήίόύώςσνЁёей", max_size=40))
def test_the_spellings_of_a_word_are_few_and_other_than_it(word: str) -> None:
    found = accent_variants(word)

    assert len(found) <= SPELLINGS_MAX
    assert word.lower() not in found


@each_case("word", ["Ångström", "Đặng", "Ёлка", "Ελένη", "が"])
def test_a_word_in_parts_is_searched_for_whole(word: str) -> None:
    assert parse_terms(normalize("NFD", word)) == parse_terms(word)


def test_no_spelling_is_asked_for_twice() -> None:
    asked = indexed(["οδός", *accent_variants("οδός")])

    assert len(asked) == len(set(asked)) == 3


@each_case(
    ("name", "text"),
    [
        ("Ελένη", "Η ΕΛΕΝΗ ΠΗΓΕ"),
        ("Elodie", "Élodie asked"),
        ("JOSÉ", "jose left"),
        ("Zoë O'Brien", "Zoe\u0308 O’Brien"),
        ("Jean‑Luc", "Jean-Luc knows"),
        ("Annabelle", "Anna\u00adbelle knows"),
    ],
)
def test_a_name_is_found_however_it_is_spelled(name: str, text: str) -> None:
    assert name_matcher(name)(text)
    assert not name_matcher(f"{name}x")(text)


@each_case("word", ["αι" * 2000, "е" * 4000])
def test_a_word_of_thousands_of_letters_has_few_spellings(word: str) -> None:
    forms = accent_variants(word)

    assert len(set(forms)) == len(forms) == SPELLINGS_MAX
    assert word not in forms


def test_a_snippet_without_spaces_is_cut_at_commas_and_stops() -> None:
    text = "在庫の同期が遅い原因を調べたところ、一括取得に変えると速くなりました。" * 9
    text = f"{text}決済画面の改修は来月に行います。{text}"

    snippet = cut_snippet(text, parse_terms("決済画面"))

    assert snippet.strip("…").startswith(("在庫", "一括", "決済"))
    assert snippet.strip("…").endswith(("ところ", "ました"))
