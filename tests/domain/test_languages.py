"""The tables of the languages agree, and texts that speak of a time to come are known in each."""

import re
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings, strategies as st
from support.cases import each_case

from mnemosyned.summary.grounding.values import find_mentions
from mnemosyned.text.dates.mentions import MentionReader, mention_terms
from mnemosyned.text.dates.questions import (
    TimeSpan,
    compile_translation_rules,
    translate_times,
)
from mnemosyned.text.languages.tables import (
    COUNTS,
    LANGUAGES,
    MONTHS,
    PHRASES,
    UNITS,
    WEEKDAYS,
    Language,
    TimeGrammar,
    fold_letters,
)
from mnemosyned.text.terms import WORD

GRAMMARS = [language.times for language in LANGUAGES if language.times]


@each_case("language", LANGUAGES)
def test_a_calendar_is_complete_or_missing_and_no_word_means_two_numbers(
    language: Language,
) -> None:
    assert [each.code for each in LANGUAGES].count(language.code) == 1
    assert len(language.months) in (0, 12)
    assert len(language.weekdays) in (0, 7)
    for numbers, rows, first in (
        (MONTHS, language.months, 1),
        (WEEKDAYS, language.weekdays, 0),
        (COUNTS, language.counts, 1),
    ):
        for number, row in enumerate(rows, first):
            assert {numbers[word] for word in row.split()} <= {number}


@each_case("grammar", GRAMMARS)
def test_a_grammar_translates_known_phrases_and_all_units(grammar: TimeGrammar) -> None:
    assert grammar.phrases.keys() <= set(PHRASES)
    assert set(grammar.units) == set(UNITS)
    assert set(grammar.periods) <= set(GRAMMARS[0].periods)


@each_case(("text", "english"), [
    ("vor drei Wochen", "3 weeks ago"),
    ("il y a deux jours", "2 days ago"),
    ("hace un mes", "1 months ago"),
    ("tre giorni fa, 2 giorni fa", "3 days ago, 2 days ago"),
    ("am 5. Mai 2023", "5 May 2023"),
    ("lundi dernier", "last Monday"),
    ("on a fait quoi lundi ?", "on a fait quoi on Monday ?"),
    ("cosa è successo mercoledì?", "cosa è successo on Wednesday?"),
    ("letzten Freitag", "last Friday"),
    ("en KASIM y en mayo", "in November y in May"),
    ("en mayo y en NİSAN", "in May y in April"),
    ("im Auguſt", "in August"),
])  # fmt: skip
def test_each_grammar_is_read(text: str, english: str) -> None:
    assert translate_times(text) == english


@pytest.mark.thorough
@settings(max_examples=20)
@given(st.data())
def test_what_a_rule_translates_has_a_word_of_its_group(data: st.DataObject) -> None:
    hints, rules = data.draw(st.sampled_from(compile_translation_rules()))
    pattern, _ = data.draw(st.sampled_from(rules))
    whole = re.compile(pattern.pattern, pattern.flags)

    expression = data.draw(st.from_regex(whole, fullmatch=True))

    assert not hints.isdisjoint(WORD.findall(fold_letters(expression)))
    translate_times(expression)  # every name that a pattern matches is in its table


def test_names_are_read_in_every_letter_that_a_pattern_takes_for_theirs() -> None:
    found = [each.text for each in find_mentions("NİSAN, KASIM, auguſt, DİENSTAG")]

    assert found == ["NİSAN", "KASIM", "DİENSTAG"]  # a month begins with a capital


# ------------------------------------------------------------ times to come


SAID = datetime(2026, 10, 28, 9, tzinfo=UTC)  # a Wednesday
FRIDAY = TimeSpan(datetime(2026, 11, 6, tzinfo=UTC), datetime(2026, 11, 7, tzinfo=UTC))
NEXT_WEEK = TimeSpan(
    datetime(2026, 11, 2, tzinfo=UTC), datetime(2026, 11, 9, tzinfo=UTC)
)


YEAR = TimeSpan(datetime(2027, 1, 1, tzinfo=UTC), datetime(2028, 1, 1, tzinfo=UTC))


@each_case(("text", "span", "mentioned"), [
    ("Dinner with Ravi, Fri 6 November 19:30", FRIDAY, True),
    ("Abfahrt am 6. November um 16:04", FRIDAY, True),
    ("rendez-vous le 6 novembre", FRIDAY, True),
    ("due 2026-11-06", FRIDAY, True),
    ("am 6.11.2026 kommt der Elektriker", FRIDAY, True),
    ("on the sixth of November we walk", FRIDAY, True),
    ("see you on the 6th", FRIDAY, True),
    ("I come next Friday", FRIDAY, True),
    ("the parts arrive next week", NEXT_WEEK, True),
    ("on-call 2 to 8 November: Ravi", NEXT_WEEK, True),
    ("Dinner on 6 November 2025", FRIDAY, False),
    ("it was on 5 November", FRIDAY, False),
    ("sometime in November", FRIDAY, False),
    ("version 6.11 is out", FRIDAY, False),
    ("the parts arrive next week", FRIDAY, False),
    ("", FRIDAY, False),
])  # fmt: skip
def test_a_date_to_come_is_mentioned(
    text: str, span: TimeSpan, *, mentioned: bool
) -> None:
    assert MentionReader([span]).mentions_any_time(text, SAID) is mentioned


@each_case(("text", "days_before"), [
    ("the technician comes tomorrow", 1), ("übermorgen ist Training", 2), ("the party is on Friday", 4),
])  # fmt: skip
def test_a_day_is_counted_from_when_it_was_said(text: str, days_before: int) -> None:
    said = FRIDAY.since - timedelta(days=days_before)
    long_ago = said - timedelta(days=30)

    assert MentionReader([FRIDAY]).mentions_any_time(text, said)
    assert not MentionReader([FRIDAY]).mentions_any_time(text, long_ago)


def test_terms_are_few_however_long_the_time_is() -> None:
    terms = mention_terms(YEAR)

    assert len(terms.dates) + len(terms.days) + len(terms.months) < 100
