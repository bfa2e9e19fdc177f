"""The lines of a summary: whole by themselves, and each with its speaker where several speak."""

import pytest
from domain.test_extract import group

from mnemosyned.summary.extract import extract


def lines_of(*said: str | tuple[str, str], ratio: float = 0.5) -> tuple[str, ...]:
    return extract(group(*said), ratio=ratio).lines


FILLER = (
    (
        "Jo",
        "The weather stayed grey the whole morning, and nobody felt like going out.",
    ),
    ("Ines", "People walked along the river, as they do whenever the sun comes back."),
)


def test_a_sentence_that_leans_on_the_one_before_comes_with_it_or_not_at_all() -> None:
    lines = lines_of(
        ("Jo", "It cost 1,890 EUR at the dealer in Graz."),
        (
            "Ines",
            "The Zebra ZC300 is at the front desk. It prints 180 badges an hour.",
        ),
        *FILLER,
    )

    assert not any("1,890" in line for line in lines)
    assert (
        "Ines: The Zebra ZC300 is at the front desk. It prints 180 badges an hour."
        in lines
    )


def test_he_and_she_need_somebody_in_the_sentence_before() -> None:
    lines = lines_of(
        ("Jo", "Season opens on 3 April. He prefers calls after 14:00, +39 040 555."),
        ("Jo", "Call with Jonas Berg on Monday. He has 184 berths, A to H."),
        *FILLER,
    )

    text = "\n".join(lines)
    assert "He prefers" not in text
    assert "Call with Jonas Berg on Monday. He has 184 berths, A to H." in text


def test_each_line_names_its_speaker_where_several_speak() -> None:
    lines = lines_of(
        ("Jo", "The lease of the workshop in Linz ends on 30 June 2026."),
        ("Jo", "Rent is 640 EUR a month, and the deposit was 1,280 EUR."),
        ("Ines", "Thanks, that is good to know!"),
        ratio=1.0,
    )

    assert lines
    assert all(line.startswith("Jo: ") for line in lines)


def test_one_speaker_is_named_where_the_line_says_i() -> None:
    lines = lines_of(
        ("Jo", "I prefer the train to Linz, never the bus on Fridays."),
        ("Jo", "The train to Linz leaves at 07:42 from platform 4."),
        ("Jo", "Morning!"),
        ratio=1.0,
    )

    assert lines == (
        "Jo: I prefer the train to Linz, never the bus on Fridays.",
        "The train to Linz leaves at 07:42 from platform 4.",
    )


def test_interjections_and_calls_by_name_make_way_for_the_statement() -> None:
    lines = lines_of(
        ("Jo", "Well, but the invoice RE-118 over 460 EUR is paid."),
        ("Ines", "Hey Jo, the parcel 7788 arrived in Linz at 09:15."),
        ("Ines", "Dear Ms. Weiss, the quote Q-26-0388 lapses on 31 March."),
        ratio=1.0,
    )

    assert lines == (
        "Jo: The invoice RE-118 over 460 EUR is paid.",
        "Ines: The parcel 7788 arrived in Linz at 09:15.",
        "Ines: The quote Q-26-0388 lapses on 31 March.",
    )


@pytest.mark.parametrize(
    "empty",
    [
        "Hi Mel! Good to see you!",
        "Thank you so much!",
        "(laughs and waves at the camera)",
        "160 EUR, 142 EUR, 9 minutes, Bella",
        "The steps are as follows:",
        "```\nmake install PREFIX=/opt/lume-7\n```",
    ],
)
def test_what_says_nothing_alone_is_no_line(empty: str) -> None:
    said = "The boiler of the house in Graz was repaired on 14 April for 1,890 EUR."
    lines = lines_of(("Jo", empty), ("Jo", said), *FILLER, ratio=0.9)

    assert any(said in line for line in lines)
    assert not any(part in "\n".join(lines) for part in empty.split("\n"))


def test_records_become_lines_that_stand_for_them() -> None:
    runs = [
        ("ci", f"Run 88{at} on main passed: 4{at} passed, 3 skipped in 3 min 15 s.")
        for at in range(10, 22)
    ]
    lines = lines_of(*runs, ("Jo", "The release of 1.8.0 is planned for 14 April."))

    assert len(lines) < 6
    assert any("12 " in line for line in lines)


def test_german_sentences_lean_back_too() -> None:
    lines = lines_of(
        ("Jo", "Er kostet 1.890 EUR bei Hansen in Graz."),
        ("Ines", "Der Drucker Zebra ZC300 steht am Empfang im zweiten Stock."),
        *FILLER,
    )

    assert not any("1.890" in line for line in lines)
    assert any("ZC300" in line for line in lines)
