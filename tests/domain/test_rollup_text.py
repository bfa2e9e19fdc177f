"""Texts of days, weeks and months: one line for each summary below."""

from datetime import UTC, datetime, timedelta

from hypothesis import given, strategies as st
from support.cases import each_case

from mnemosyned.memory.periods import Level
from mnemosyned.summary.rollup import (
    RollupSource,
    RollupText,
    compose_rollup,
    format_date_label,
)
from mnemosyned.summary.statements import shorten_at_clause

MONDAY = datetime(2026, 3, 9, 7, tzinfo=UTC)


def day(*texts: str, level: Level = Level.DAY, terms: str = "") -> RollupText:
    step = timedelta(hours=1) if level is Level.DAY else timedelta(days=1)
    sources = [
        RollupSource(text=text, index_terms=terms, begins=MONDAY + at * step)
        for at, text in enumerate(texts)
    ]
    return compose_rollup(sources, level=level, minimum=3)


BILLING = (
    "user: Decision on TIDE-240: we round VAT per invoice line, half up, to the cent.\n"
    "assistant: I will change tax.py and add the three invoices of the accountant as tests.\n"
    "priya: The review of the berth map took the whole morning and found nothing at all."
)
OUTAGE = (
    "assistant: Root cause of the outage: the export worker leaks a connection for every pier "
    "that is closed, which used up the pool of 40 after 28 runs.\n"
    "priya: The pager was silent for the rest of the night, and people slept well."
)
CRANE = (
    "user: Crane bought, 39.90 EUR, at Spielkiste in Sporgasse.\n"
    "assistant: The wrapping paper with the whales is in the hall, next to the card for Mila."
)


def test_a_day_has_one_line_for_each_episode_in_their_order() -> None:
    rolled_up = day(BILLING, OUTAGE, CRANE)

    for line, word in zip(rolled_up.lines, ("VAT", "outage", "Crane"), strict=True):
        assert word in line


def test_it_has_at_most_sixty_percent_of_what_is_below() -> None:
    rolled_up = day(BILLING, OUTAGE, CRANE)

    assert len(rolled_up.text) <= 0.6 * sum(map(len, (BILLING, OUTAGE, CRANE)))


def test_a_week_has_a_line_for_each_day_that_begins_with_it() -> None:
    rolled_up = day(BILLING, OUTAGE, CRANE, level=Level.WEEK)

    starts = [line.split(": ")[0] for line in rolled_up.lines]
    assert starts == ["Mon 9 March", "Tue 10 March", "Wed 11 March"]


def test_a_month_takes_the_days_off_the_lines_of_its_weeks() -> None:
    weeks = (
        "Mon 9 March: Crane bought, 39.90 EUR.\nTue 10 March: The pool of 40 was used up.",
        "Mon 16 March: We moved the archive to Malmö.",
    )
    rolled_up = day(*weeks, level=Level.MONTH)

    assert rolled_up.lines[0].startswith("9–15 March: ")
    assert "Mon 9 March" not in rolled_up.text


WEEK = (
    "Mon 9 March: Crane bought, 39.90 EUR.\nTue 10 March: The pool of 40 was used up."
)


def test_a_month_of_one_week_is_that_week() -> None:
    rolled_up = day(WEEK, level=Level.MONTH, terms="crane\npool")

    assert rolled_up.text == WEEK
    assert rolled_up.index_terms == "crane\npool"


def projects(*texts: tuple[str, str], level: Level = Level.DAY) -> RollupText:
    sources = [
        RollupSource(
            text=text, project=project, begins=MONDAY + at * timedelta(hours=1)
        )
        for at, (project, text) in enumerate(texts)
    ]
    return compose_rollup(sources, level=level, minimum=3)


def test_a_day_names_the_project_of_each_line_and_keeps_projects_apart() -> None:
    rolled_up = projects(("tide", BILLING), ("shop", CRANE), ("tide", OUTAGE))

    starts = [line.split(" ")[0] for line in rolled_up.lines]
    assert starts == ["[tide]", "[tide]", "[shop]"]


def test_a_week_keeps_the_lines_of_a_project_together_the_newest_last() -> None:
    rolled_up = day(
        "[tide] We decided to round VAT on every line.\n[shop] I bought a crane for Mila.",
        "[tide] The outage was caused by a leak in the worker.",
        level=Level.WEEK,
    )

    starts = [line.split(": ")[0] for line in rolled_up.lines]
    assert starts == ["[tide] Mon 9 March", "[tide] Tue 10 March", "[shop] Mon 9 March"]
    assert "outage" in rolled_up.lines[1]


TALK = (
    "Jo: I lost my job at the bank last week. I love how the sea calms me down.\n"
    "Ines: I'm so proud of you, you will find your way!\n"
    "Ines: I opened a shop for prints in Graz."
)
LATER_TALK = (
    "Jo: I started as a carpenter in Linz on Monday.\n"
    "Ines: Keep going, it's inspiring to see that.\n"
    "Ines: I sold the first forty prints to a hotel."
)


def test_a_week_of_a_talk_tells_what_happened_to_each_person() -> None:
    rolled_up = day(TALK, LATER_TALK, level=Level.WEEK)

    assert rolled_up.lines == (
        (
            "Jo: Mon 9 March: I lost my job at the bank last week. "
            "Tue 10 March: I started as a carpenter in Linz on Monday."
        ),
        (
            "Ines: Mon 9 March: I opened a shop for prints in Graz. "
            "Tue 10 March: I sold the first forty prints to a hotel."
        ),
    )


def test_a_correction_stands_instead_of_what_it_corrects() -> None:
    rolled_up = day(
        "user: The release of Tideline is on Friday.\nuser: I bought a crane for Mila.",
        "user: The release of Tideline is now on Tuesday.",
        "user: I booked the hotel in Copenhagen.",
        level=Level.WEEK,
    )

    assert "now on Tuesday" in rolled_up.text
    assert "on Friday" not in rolled_up.text


def test_a_line_of_a_prompt_that_comes_every_day_makes_way() -> None:
    prompt = "user: Examine all proposed code changes with the commands of git."
    rolled_up = day(
        f"{prompt}\n{BILLING}",
        f"{prompt}\n{OUTAGE}",
        f"{prompt}\n{CRANE}",
        level=Level.WEEK,
    )

    assert "Examine" not in rolled_up.text


def test_a_speaker_in_the_middle_of_a_line_is_not_taken_for_the_first() -> None:
    talk = (
        "Jo: I moved to Linz on 3 March 2026. Ines: I sold the Yamaha for 850 EUR.\n"
        "Ines: I start at Siemens in Erlangen on 1 November 2026.\n"
        "Jo: I signed the lease of the flat on the third floor yesterday."
    )
    rolled_up = day(talk)

    assert "Ines: I sold the Yamaha" in rolled_up.text
    assert "Jo: I sold" not in rolled_up.text


def test_an_episode_that_says_nothing_has_no_line() -> None:
    rolled_up = day(BILLING, "Thanks, have a good night!", OUTAGE, CRANE)

    words = ("VAT", "outage", "Crane")
    assert all(map(str.__contains__, rolled_up.lines, words))
    assert len(rolled_up.lines) == 3


def test_a_short_day_of_few_episodes_keeps_all_they_say() -> None:
    rolled_up = day(
        "Jo: I moved to Linz on 3 March.", "The boiler was repaired in Graz."
    )

    assert rolled_up.lines == (
        "Jo: I moved to Linz on 3 March.",
        "The boiler was repaired in Graz.",
    )


def test_it_is_searched_by_days_words_it_leaves_out_and_terms_of_the_summaries() -> (
    None
):
    rolled_up = day(BILLING, OUTAGE, CRANE, terms="Xylander\nPX-4471")
    terms = rolled_up.index_terms.split("\n")

    assert terms[0] == "Mon 9 March 2026"
    assert {"Xylander", "PX-4471"} <= set(terms)
    assert [term for term in terms if term in rolled_up.text] == []


@each_case(
    ("begins", "label"),
    [("2026-03-30", "30 March–5 April: "), ("2026-03-09", "9–15 March: ")],
)
def test_the_line_of_a_week_names_its_first_and_last_day(
    begins: str, label: str
) -> None:
    moment = datetime.fromisoformat(begins).replace(tzinfo=UTC)

    assert format_date_label(Level.MONTH, moment) == label


def test_the_last_week_of_the_calendar_has_a_label() -> None:
    assert format_date_label(Level.MONTH, datetime.max.replace(tzinfo=UTC))


@given(
    st.lists(
        st.text(max_size=400) | st.text(alphabet="Jo: ab1. \n,;(", max_size=300),
        min_size=1,
        max_size=8,
    ),
    st.sampled_from([Level.DAY, Level.WEEK, Level.MONTH]),
)
def test_odd_texts_never_raise_and_always_give_something(
    texts: list[str], level: Level
) -> None:
    rolled_up = day(*texts, level=level)

    assert bool(rolled_up.text) == any(text.strip() for text in texts)
    assert rolled_up == day(*texts, level=level)


@each_case(
    ("text", "chars_max", "head"),
    [
        (
            "The export worker opens a transaction for every pier, which used up the pool.",
            60,
            "The export worker opens a transaction for every pier.",
        ),
        ("We round VAT per line; the total may differ by a cent.", 40, ""),
        (
            "We round VAT on every invoice line; the total may differ by a cent.",
            50,
            "We round VAT on every invoice line.",
        ),
        ("When the pier is closed, the worker returns early and leaks.", 30, ""),
        ("We never deploy on Friday unless Priya says so in the chat.", 40, ""),
    ],
)
def test_a_sentence_is_shortened_where_a_clause_ends(
    text: str, chars_max: int, head: str
) -> None:
    assert shorten_at_clause(text, chars_max) == head
