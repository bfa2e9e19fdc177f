"""The joined and split forms of words that may be compounds."""

from support.cases import each_case

from mnemosyned.text.terms import JOINS_MAX, join_compounds, parse_terms, split_compound


@each_case(
    ("word", "split"),
    [("wifi", "wi fi"), ("oncall", "on call"), ("checkin", "check in")],
)
def test_a_word_may_be_two(word: str, split: str) -> None:
    assert split in split_compound(word)


@each_case("word", ["cat", "x86", "often", "without", "a" * 17, "", "QX-4"])
def test_short_long_and_common_words_and_codes_are_not_split(word: str) -> None:
    assert split_compound(word) == ()


def test_a_split_has_no_function_word() -> None:
    assert "of fice" not in split_compound("office")


@each_case(
    ("question", "joined"),
    [
        ("Wi-Fi", "WiFi"),
        ("who is on call?", "oncall"),
        ("late check in", "checkin"),
        ("the file server", "fileserver"),
    ],
)
def test_neighbors_may_be_one_word(question: str, joined: str) -> None:
    assert joined in [form for _, form in parse_terms(question).joins]


def test_a_join_belongs_to_a_word_that_is_searched_for() -> None:
    question = parse_terms("who is on call for the file server")

    assert {word for word, _ in question.joins} <= set(question.words)


@each_case("question", ["the call", "QX-48213", "call 42"])
def test_articles_and_numbers_are_joined_with_nothing(question: str) -> None:
    assert parse_terms(question).joins == ()


def test_the_joins_of_a_question_are_few() -> None:
    words = [f"word{letter}" for letter in "abcdefghijklmnopqrstuvwxyz"]

    assert len(join_compounds(" ".join(words), words)) <= JOINS_MAX
