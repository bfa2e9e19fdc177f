"""Texts of days, weeks and months: one line for each summary below."""

from datetime import UTC, datetime, timedelta

from hypothesis import given, strategies as st
from support.cases import each_case

from mnemosyned.memory.engine_ports import RateEvents
from mnemosyned.memory.periods import Level
from mnemosyned.summary.rollup import (
    RollupSource,
    RollupText,
    compose_rollup,
    format_date_label,
)
from mnemosyned.summary.statements import shorten_at_clause

MONDAY = datetime(2026, 3, 9, 7, tzinfo=UTC)


def rolled(
    *texts: str | tuple[str, str],
    level: Level = Level.DAY,
    terms: str = "",
    rate_events: RateEvents | None = None,
) -> RollupText:
    """The text of a day of hours, or of a longer period; a pair is (project, text)."""
    step = timedelta(hours=1) if level is Level.DAY else timedelta(days=1)
    pairs = [("", one) if isinstance(one, str) else one for one in texts]
    sources = [
        RollupSource(
            text=text, index_terms=terms, project=project, begins=MONDAY + at * step
        )
        for at, (project, text) in enumerate(pairs)
    ]
    return compose_rollup(sources, level=level, minimum=3, rate_events=rate_events)


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


def test_a_day_names_what_is_rated_as_an_event_before_what_is_not() -> None:
    lines = [
        f"user: The {color} boat left the old harbor at nine in the morning with {number} people on board.\n"
        f"user: The {color} bus left the new station at ten in the morning with {number} people on board."
        for number, color in enumerate(("red", "blue", "green", "white"), start=41)
    ]

    def named(rated: str) -> tuple[int, int]:
        text = rolled(
            *lines,
            rate_events=lambda each: [6.0 if rated in one else -8.0 for one in each],
        ).text
        return text.count("boat"), text.count("bus")

    (boats, few_buses), (few_boats, buses) = named("boat"), named("bus")

    assert boats > few_buses
    assert buses > few_boats
    # Where the encoder fails, nothing is rated.
    assert rolled(*lines, rate_events=lambda _: ()) == rolled(*lines)


THANKS = "Thanks, have a good night!"


@each_case("texts", [(BILLING, OUTAGE, CRANE), (BILLING, THANKS, OUTAGE, CRANE)])
def test_a_day_has_a_line_for_each_telling_episode(texts: tuple[str, ...]) -> None:
    rolled_up = rolled(*texts)

    for line, word in zip(rolled_up.lines, ("VAT", "outage", "Crane"), strict=True):
        assert word in line
    assert len(rolled_up.text) <= 0.6 * sum(map(len, texts))


WEEK = (
    "Mon 9 March: Crane bought, 39.90 EUR.\nTue 10 March: The pool of 40 was used up."
)
VAT_AND_CRANE = (
    "[tide] We decided to round VAT on every line.\n[shop] I bought a crane for Mila."
)
LEAK = "[tide] The outage was caused by a leak in the worker."


@each_case(("texts", "level", "begins"), [
    ((BILLING, OUTAGE, CRANE), Level.WEEK, ["Mon 9 March: ", "Tue 10 March: ", "Wed 11 March: "]),
    ((("tide", BILLING), ("shop", CRANE), ("tide", OUTAGE)), Level.DAY, ["[tide] ", "[tide] ", "[shop] "]),
    ((VAT_AND_CRANE, LEAK), Level.WEEK,
     ["[tide] Mon 9 March: ", "[tide] Tue 10 March: The outage", "[shop] Mon 9 March: "]),
    ((WEEK, "Mon 16 March: We moved the archive to Malmö."), Level.MONTH, ["9–15 March: ", ""]),
])  # fmt: skip
def test_a_line_begins_with_its_project_and_its_day_or_week(
    texts: tuple[str | tuple[str, str], ...], level: Level, begins: list[str]
) -> None:
    lines = rolled(*texts, level=level).lines

    for line, begin in zip(lines, begins, strict=True):
        assert line.startswith(begin)
    assert level is not Level.MONTH or "Mon 9 March" not in "".join(lines)


def test_a_day_leaves_out_no_project_for_another_with_more_news() -> None:
    news = [("tideline", text) for text in (OUTAGE, BILLING, CRANE)]

    lines = rolled(*news, ("shop", "the offer has 14 hours"), ("", "the tea")).lines

    assert lines[-1] == "[shop] the offer has 14 hours"


def test_a_month_of_one_week_is_that_week() -> None:
    rolled_up = rolled(WEEK, level=Level.MONTH, terms="crane\npool")

    assert (rolled_up.text, rolled_up.index_terms) == (WEEK, "crane\npool")


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
    rolled_up = rolled(TALK, LATER_TALK, level=Level.WEEK)

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


TWO_SPEAKERS = (
    "Jo: I moved to Linz on 3 March 2026. Ines: I sold the Yamaha for 850 EUR.\n"
    "Ines: I start at Siemens in Erlangen on 1 November 2026.\n"
    "Jo: I signed the lease of the flat on the third floor yesterday."
)
PLAN_AND_REPORT = (
    "Ines: I read a long book about the birds of the lake.\n"
    "Jo: Can't wait for the big hike in May with everybody from the shop, it's going to be such fun for all! "
    "They always put a smile on my face. We took the dogs to the frozen lake at Linz on Saturday 7 March, "
    "and Rex fell through the ice, but he got out again. Right now a book about bird watching helps."
)
PROMPT = "user: Examine all proposed code changes with the commands of git."


@each_case(("texts", "level", "shown", "hidden"), [
    (("user: The release of Tideline is on Friday.\nuser: I bought a crane for Mila.",
      "user: The release of Tideline is now on Tuesday.", "user: I booked the hotel in Copenhagen."),
     Level.WEEK, "now on Tuesday", "on Friday"),
    ((f"{PROMPT}\n{BILLING}", f"{PROMPT}\n{OUTAGE}", f"{PROMPT}\n{CRANE}"),
     Level.WEEK, "outage", "Examine"),
    ((TWO_SPEAKERS,), Level.DAY, "Ines: I sold the Yamaha", "Jo: I sold"),
    (("Neuer Termin mit Dr. Sauer: Freitag 11 Uhr, er muss operieren. Ich rechne 0,45 € ab.",
      "Mila has a crane."), Level.WEEK, "Dr. Sauer: Freitag 11 Uhr", "\nSauer"),
    ((PLAN_AND_REPORT,), Level.WEEK, "Jo: We took the dogs", "the lake.\nWe took"),
    (("Somos 3: Lucía vende, Andrés programa y yo llevo las cuentas.", "Mila has a crane."),
     Level.WEEK, "Mon 9 March: Somos 3: Lucía", "Somos 3: Mon"),
])  # fmt: skip
def test_corrections_replace_prompts_make_way_and_speakers_keep_their_words(
    texts: tuple[str, ...], level: Level, shown: str, hidden: str
) -> None:
    text = rolled(*texts, level=level).text

    assert shown in text
    assert hidden not in text


def test_a_short_day_of_few_episodes_keeps_all_they_say() -> None:
    said = "Jo: I moved to Linz on 3 March.", "Ersatz für die Platte kommt Donnerstag."

    assert rolled(*said).lines == said


def test_it_is_searched_by_days_left_out_words_and_terms() -> None:
    rolled_up = rolled(BILLING, OUTAGE, CRANE, terms="Xylander\nPX-4471")
    terms = rolled_up.index_terms.split("\n")

    assert terms[0] == "Mon 9 March 2026"
    assert {"Xylander", "PX-4471"} <= set(terms)
    assert [term for term in terms if term in rolled_up.text] == []


@each_case(("begins", "label"), [
    (datetime(2026, 3, 30, tzinfo=UTC), "30 March–5 April: "),
    (MONDAY, "9–15 March: "),
])  # fmt: skip
def test_a_week_names_its_first_and_last_day(begins: datetime, label: str) -> None:
    assert format_date_label(Level.MONTH, begins) == label
    assert format_date_label(Level.MONTH, datetime.max.replace(tzinfo=UTC))


@given(
    st.lists(
        st.text(max_size=400) | st.text(alphabet="Jo: ab1. \n,;(", max_size=300),
        min_size=1,
        max_size=8,
    ),
    st.sampled_from([Level.DAY, Level.WEEK, Level.MONTH]),
)
def test_odd_texts_always_give_something(texts: list[str], level: Level) -> None:
    rolled_up = rolled(*texts, level=level)

    assert bool(rolled_up.text) == any(text.strip() for text in texts)
    assert rolled_up == rolled(*texts, level=level)


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
        ("Der Go-live rutscht auf den 1. Februar, da Ada im Urlaub ist.", 40, ""),
    ],
)
def test_a_sentence_is_cut_after_a_clause(text: str, chars_max: int, head: str) -> None:
    assert shorten_at_clause(text, chars_max) == head


def test_a_busy_week_has_room_for_more_than_one_of_few_long_days() -> None:
    days = [
        "\n".join(
            f"We moved the archive of customer {day}{number} to Malmö on 4 March."
            for number in range(30)
        )
        for day in "ABC"
    ]

    rolled_up = rolled(*days, level=Level.WEEK)

    assert 0.2 < len(rolled_up.text) / sum(map(len, days)) < 0.3
