import pytest
from hypothesis import given, strategies as st

from mnemosyned.domain.summary.extract import KEYWORDS
from mnemosyned.summarizers.extractive import ABBREVIATIONS, decode, encode

PIECES = st.sampled_from(
    [
        *ABBREVIATIONS,
        *ABBREVIATIONS.values(),
        *(phrase.capitalize() for phrase in ABBREVIATIONS),
        *(code.capitalize() for code in ABBREVIATIONS.values()),
        *"\\ ` \" ' “ ” ‘ ’ « » 「 」 ``` \n \r \t   . , ! ) (".split(" "),
        KEYWORDS,
        "not",
        "https://example.org/for/example",
    ]
)


@given(st.text())
def test_any_text_survives_the_round_trip_exactly(text: str) -> None:
    assert decode(encode(text)) == text


@given(st.lists(PIECES | st.text(max_size=3)), st.sampled_from([" ", "", "\n", "  "]))
def test_text_made_of_codes_and_quotes_survives_it_too(
    pieces: list[str], glue: str
) -> None:
    text = glue.join(pieces)

    assert decode(encode(text)) == text


@pytest.mark.parametrize(("phrase", "code"), ABBREVIATIONS.items())
def test_every_code_is_shorter_and_one_word(phrase: str, code: str) -> None:
    text = f"We met {phrase}, then left."

    assert encode(text) == f"We met {code}, then left."
    assert len(code) < len(phrase)
    assert " " not in code


def test_the_codes_are_all_different() -> None:
    assert len(set(ABBREVIATIONS.values())) == len(ABBREVIATIONS)


def test_a_phrase_that_begins_a_sentence_keeps_its_capital() -> None:
    assert (
        encode("As far as I know, yes. In the meantime, wait!")
        == "Afaik, yes. Meanwhile, wait!"
    )


@pytest.mark.parametrize(
    "text",
    [
        "see https://example.org/for%20example and /srv/for example.d",
        "run `deploy --note 'by the way' for example` now",
        'she said "let me know as soon as possible" and left',
        "she said “let me know at the moment” and left",
        "the label 'is shown on top of all' stays",
        "```\nprint for example\n```",
        "Keywords: for example, by the way",
        "mail by.the.way@example.org, call by_the_way()",
        "forexample bytheway fore example",
    ],
)
def test_code_quotations_addresses_and_keywords_stay_as_they_are(text: str) -> None:
    assert encode(text) == text


@pytest.mark.parametrize(
    ("text", "short"),
    [
        ("It is not working at the moment.", "It is not working atm."),
        ("Networking does not help even though it should.", None),
        ("Never deploy on top of it; don't, for example, on Friday.", None),
    ],
)
def test_negation_stays(text: str, short: str | None) -> None:
    encoded = encode(text)

    assert short is None or encoded == short
    for word in ("not", "Never", "don't", "Networking"):
        assert (word in encoded.split()) == (word in text.split())


def test_a_code_in_the_text_itself_is_marked_and_comes_back() -> None:
    assert encode("aka Bob, also known as Rob") == "\\aka Bob, aka Rob"
    assert decode("\\aka Bob, aka Rob") == "aka Bob, also known as Rob"


def test_a_phrase_broken_over_lines_or_punctuation_is_no_phrase() -> None:
    text = "for\nexample, by the\tway, on top. of"

    assert encode(text) == text
