from itertools import groupby

from hypothesis import given, strategies as st
from support.cases import each_case

from mnemosyned.text.stems import WORD
from mnemosyned.text.terms import (
    PHRASE_TOKENS_MAX,
    TERMS_MAX,
    Terms,
    glued_words,
    gram_text,
    has_unspaced_script,
    parse_terms,
    with_words_apart,
    without_unspaced,
)


@each_case(
    ("question", "words"),
    [
        ("When did Anna move to Lisbon?", ("Anna", "move", "Lisbon")),
        ("Anna's bike", ("Anna", "bike")),
        ("mother/daughter", ("mother/daughter", "mother", "daughter")),
        ("order QX-48213!", ("order", "QX-48213")),
        ("anna ANNA Anna", ("anna",)),
        ("Größe Straße", ("Größe", "Straße")),
        ("?!… ---", ()),
        ("", ()),
    ],
)
def test_a_question_is_read_as_its_words(question: str, words: tuple[str, ...]) -> None:
    assert parse_terms(question).words == words


def test_stop_words_go_unless_there_is_nothing_else() -> None:
    assert parse_terms("what is the plan").words == ("plan",)
    assert parse_terms("to be or not to be").words


def test_a_text_without_spaces_is_read_as_pairs() -> None:
    assert parse_terms("東京都").grams == ("東京", "京都")
    assert parse_terms("猫").grams == ("猫",)


def test_words_and_pairs_stand_side_by_side() -> None:
    assert parse_terms("Anna 東京") == Terms(("Anna",), ("東京",))


def test_no_words_and_no_pairs_is_no_question() -> None:
    assert not parse_terms(" ?! ")
    assert parse_terms("x")


@given(st.text(max_size=3_000))
def test_any_question_gives_a_bounded_number_of_terms(question: str) -> None:
    found = parse_terms(question)

    assert len(found.words) <= TERMS_MAX
    assert len(found.grams) <= TERMS_MAX
    assert all(found.words)


def test_plain_prose_needs_no_second_index() -> None:
    assert gram_text("We met Anna at noon, 12 March 2026.") == ""


@each_case(
    ("text", "parts"),
    [
        ("call getUserProfile now", "get User Profile"),
        ("parseHTTPResponse2", "parse HTTP Response 2"),
        ("東京 and Anna", "東京"),
    ],
)
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


@each_case(
    ("question", "words"),
    [
        ("Was kommt in die Kürbissuppe?", ("kommt", "Kürbissuppe")),
        ("Où est la clé de la cave ?", ("clé", "cave")),
        ("¿Dónde está la llave?", ("llave",)),
        ("Who cast the die?", ("cast", "die")),
        ("Was La Perla open on Sol street?", ("La", "Perla", "open", "Sol", "street")),
    ],
)
def test_other_languages_have_words_that_a_question_can_do_without(
    question: str, words: tuple[str, ...]
) -> None:
    assert parse_terms(question).words == words


@each_case("code", ["1%" * 2000, "0," * 2000, "a_1" * 1300, "a/b" * 900])
def test_a_long_code_is_looked_for_by_its_beginning(code: str) -> None:
    (word, *_) = parse_terms(code).words

    assert code.startswith(word)
    assert len(WORD.findall(word)) == PHRASE_TOKENS_MAX


def test_a_code_of_usual_length_is_looked_for_whole() -> None:
    code = "3f2504e0-4f89-11d3-9a0c-0305e82c3301/2026-03-09T14"

    assert parse_terms(code).words == (code,)


@each_case(
    ("text", "words"),
    [
        ("サーバーはnginxです", ["nginx"]),
        ("チケットABC-123を閉じた", ["ABC-123"]),
        ("用 MySQL 存储", []),
        ("用MySQL 8.0和 Redis存储", ["MySQL", "8.0", "Redis"]),
        ("用「nginx」", []),
        ("用nginx，x，Redis和", ["nginx，x，Redis"]),
        ("nginx", []),
        ("naïve café “quoted” text", []),
        ("", []),
    ],
)
def test_a_word_that_touches_a_script_without_spaces_is_one_by_itself(
    text: str, words: list[str]
) -> None:
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
