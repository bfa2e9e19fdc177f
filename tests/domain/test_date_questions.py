"""What a question's time expressions mean, asked on a Wednesday afternoon."""

import re
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given, settings, strategies as st
from support.cases import each_case, read_cases

from mnemosyned.text.dates import questions
from mnemosyned.text.dates.questions import (
    SPANS_MAX,
    TIME_PATTERNS,
    TimeSpan,
    parse_times,
)
from mnemosyned.text.languages.tables import TimeOrder
from mnemosyned.text.terms import WORD

CASES = read_cases("date_questions")
NOW = datetime(2026, 3, 18, 15, tzinfo=UTC)


def day(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def span(since: str, until: str) -> TimeSpan:
    return TimeSpan(day(since), day(until))


@each_case(("text", "since", "until"), [
    *CASES["a_time_expression_means_a_stretch_of_time"],
    # Without a year, a date is past or to come as the question is.
    ("what is on Friday", "2026-03-20", "2026-03-21"),
    ("what was on Friday", "2026-03-13", "2026-03-14"),
    ("what is on 26 March", "2026-03-26", "2026-03-27"),
    ("what is the bill from 5 May", "2025-05-05", "2025-05-06"),
    ("which trains do I take on the 15th", "2026-04-15", "2026-04-16"),
    ("what happened on the 15th", "2026-03-15", "2026-03-16"),
    ("the walk of the seventh of November", "2025-11-07", "2025-11-08"),
    ("the day after tomorrow", "2026-03-20", "2026-03-21"),
    ("am 6.11.2026", "2026-11-06", "2026-11-07"),
    # A week, a month and a year of the calendar.
    ("what did I buy this year", "2026-01-01", "2027-01-01"),
    ("what did I buy last year", "2025-01-01", "2026-01-01"),
    ("what is due next year", "2027-01-01", "2028-01-01"),
    ("what is due next month", "2026-04-01", "2026-05-01"),
    ("what happened last weekend", "2026-03-14", "2026-03-16"),
    ("what did we sell in Q4", "2025-10-01", "2026-01-01"),
    ("the revenue of Q3 2024", "2024-07-01", "2024-10-01"),
    # A week by its number: the latest, or the next to come.
    ("what happened in week 10?", "2026-03-02", "2026-03-09"),
    ("was war in KW 47?", "2025-11-17", "2025-11-24"),
    ("cosa è successo nella settimana 10", "2026-03-02", "2026-03-09"),
    ("qu'est-ce qu'on a fait la semaine 10 ?", "2026-03-02", "2026-03-09"),
    ("what is due in week 10", "2027-03-08", "2027-03-15"),
    ("KW 2/2025", "2025-01-06", "2025-01-13"),
    ("last week 3 people came", "2026-03-09", "2026-03-16"),
    # From one named time to the end of a later one: the latest that is over, or the next.
    ("what changed between Friday and Sunday", "2026-03-13", "2026-03-16"),
    ("what changed between Thursday and Tuesday", "2026-03-12", "2026-03-18"),
    ("what is on from Thursday to Tuesday", "2026-03-19", "2026-03-25"),
    ("what did we do Monday through Wednesday last week", "2026-03-09", "2026-03-12"),
    ("which bills came from March to May", "2025-03-01", "2025-06-01"),
    ("from November to February", "2025-11-01", "2026-03-01"),
    ("between March and May 2023", "2023-03-01", "2023-06-01"),
    ("between 3 and 9 May", "2025-05-03", "2025-05-10"),
    ("between the 3rd and the 9th", "2026-03-03", "2026-03-10"),
    ("what did I read between 2019 and 2021", "2019-01-01", "2022-01-01"),
    ("from 2026-03-01 to 2026-03-07", "2026-03-01", "2026-03-08"),
    # A day of a week, a week of a month, and a night.
    ("what broke on Tuesday of last week", "2026-03-10", "2026-03-11"),
    ("last week Tuesday", "2026-03-10", "2026-03-11"),
    ("what is due next week Tuesday", "2026-03-24", "2026-03-25"),
    ("Friday evening of last week", "2026-03-13T17", "2026-03-14"),
    ("the week before last", "2026-03-02", "2026-03-09"),
    ("in the first week of March", "2026-03-01", "2026-03-08"),
    ("who called two nights ago", "2026-03-16T18", "2026-03-17T06"),
    ("what do I have to send by Friday", "2026-03-18T15", "2026-03-21"),
    ("what did I get done by Monday", "2026-03-10", "2026-03-17"),
    # As many hours or minutes ago, give or take one.
    ("what did I say 2 hours ago", "2026-03-18T12", "2026-03-18T14"),
    ("what did I say an hour ago", "2026-03-18T13", "2026-03-18T15"),
    ("five minutes ago", "2026-03-18T14:54", "2026-03-18T14:56"),
    ("the last three hours", "2026-03-18T12", "2026-03-18T15"),
    # The first of a month is one day.
    ("le 1er novembre", "2025-11-01", "2025-11-02"),
    ("l'1 novembre", "2025-11-01", "2025-11-02"),
    ("el 1º de noviembre", "2025-11-01", "2025-11-02"),
    ("1-го ноября", "2025-11-01", "2025-11-02"),
])  # fmt: skip
def test_an_expression_means_a_stretch_of_time(
    text: str, since: str, until: str
) -> None:
    assert parse_times(text, NOW).spans == (span(since, until),)


@each_case(("text", "english"), [
    *CASES["times_are_understood_in_other_languages"],
    ("Was ist morgen?", "tomorrow"),
    ("Was sagte ich vor zwei Stunden?", "two hours ago"),
    ("qu'est-ce que j'ai dit il y a une heure", "an hour ago"),
    ("Was ist nächste Woche los?", "next week"),
    ("Was ist am Freitag?", "this Friday"),
    ("Wer kommt nächsten Montag?", "next Monday"),
    ("was ist am 26. los", "what is on the 26th"),
    ("qu'est-ce qui est prévu demain", "tomorrow"),
    ("quels rendez-vous sont prévus la semaine prochaine", "next week"),
    ("¿qué hay la próxima semana?", "next week"),
    ("¿qué tengo el viernes?", "this Friday"),
    ("cosa c'è domani", "tomorrow"),
    ("quali mail sono arrivate a maggio 2025", "May 2025"),
    ("was lief von Mo bis Mi", "from Monday to Wednesday"),
    ("was war vom 3. bis 9. Mai los", "from 3 to 9 May"),
    ("von März 2022 bis Mai 2023", "from March 2022 to May 2023"),
    ("entre el martes y el jueves", "from Tuesday to Thursday"),
    ("o que mudou entre terça e quinta", "from Tuesday to Thursday"),
    ("с марта по май", "from March to May"),
    ("quels mails sont arrivés de juin à août ?", "from June to August"),
    ("del 3 al 9 de mayo de 2025", "from 3 to 9 May 2025"),
    ("entre el 3 de marzo y el 9 de mayo", "from 3 March to 9 May"),
    ("da giugno ad agosto", "from June to August"),
    ("que dois-je payer avant dimanche ?", "what is due before Sunday"),
    ("vorletzte Woche", "the week before last"),
    ("no último fim de semana", "last weekend"),
    ("wie belde eergisteravond", "the day before yesterday evening"),
    ("de senaste två veckorna", "the last two weeks"),
    ("między wtorkiem a czwartkiem", "from Tuesday to Thursday"),
    ("mellan tisdag och torsdag", "from Tuesday to Thursday"),
    ("letzte Woche Dienstag", "Tuesday of last week"),
    ("la semaine dernière mardi", "Tuesday of last week"),
    ("el martes de la semana pasada", "Tuesday of last week"),
    ("martedì della settimana scorsa", "Tuesday of last week"),
    ("na terça da semana passada", "Tuesday of last week"),
    ("o que fiz na segunda-feira", "on Monday"),
    ("dinsdag vorige week", "Tuesday of last week"),
    ("во вторник на прошлой неделе", "Tuesday of last week"),
    ("we wtorek w zeszłym tygodniu", "Tuesday of last week"),
    ("i tisdags förra veckan", "Tuesday of last week"),
    ("last week on Tuesday", "Tuesday of last week"),
    ("qu'ai-je fait l'an dernier", "last year"),
    ("for ett år sedan, förra året", "last year"),
    ("какие встречи были прошлым летом", "last summer"),
    ("co mam w piątek", "this Friday"),
    ("что у меня в пятницу", "this Friday"),
    ("vad har jag på fredag", "this Friday"),
    ("co zrobiłem w piątek", "last Friday"),
    ("что я делал в пятницу", "last Friday"),
    ("vad har jag gjort i fredags", "last Friday"),
    ("przedwczoraj wieczorem", "the day before yesterday evening"),
    ("за последние три дня", "the last three days"),
    ("ces trois derniers jours", "the last three days"),
    ("de afgelopen drie dagen", "the last three days"),
    ("hace unas tres semanas", "three weeks ago"),
    ("vor ungefähr drei Wochen", "three weeks ago"),
    ("недели три назад", "three weeks ago"),
    ("¿quién llamó anteanoche?", "two nights ago"),
    ("qu'a-t-on fait ce week-end ?", "on the weekend"),
    ("что мы делали на выходных", "on the weekend"),
    ("qu'est-ce que j'ai noté le 3 ?", "on the 3rd"),
    ("¿qué anoté el día 3?", "on the 3rd"),
    ("wat schreef ik op de 3e", "on the 3rd"),
    ("что я записал 3-го числа", "on the 3rd"),
    ("¿qué tengo que entregar antes del viernes?", "what is due before Friday"),
])  # fmt: skip
def test_times_are_understood_in_other_languages(text: str, english: str) -> None:
    assert parse_times(text, NOW).spans == parse_times(english, NOW).spans != ()


@each_case("text", CASES["a_day_is_read_with_the_mark_of_its_ordinal"])
def test_a_day_is_read_with_the_mark_of_its_ordinal(text: str) -> None:
    times = parse_times(text, NOW)

    assert times.spans == (span("2025-11-22", "2025-11-23"),)
    assert times.only_time, times.subject_text


def test_a_noun_that_another_language_has_as_a_stop_word_is_asked_for() -> None:
    for noun in ("van", "font"):
        assert not parse_times(f"what about the {noun} on 22 November", NOW).only_time


@each_case("text", [
    "Was ist gestern passiert?", "¿Qué hice ayer?", "il mese scorso",
    "what did we decide on 18 November?", "was haben wir gestern besprochen?",
    "cosa abbiamo deciso ieri?", "¿qué dije ayer?", "qu'est-ce qu'on a décidé hier ?",
    "昨日は何をした？", "先週の水曜に何を決めた？", "昨天做了什么？", "어제 뭐 했지?",
])  # fmt: skip
def test_a_question_for_a_time_alone_is_known(text: str) -> None:
    assert parse_times(text, NOW).only_time


@each_case("text", [
    "Mai Tai", "Mars bars", "ask Mai", "I am sat down", "may I go", "march on", "call 5551234",
    "second best", "", "May I ask about version 10.3", "version 10.3 may fail", "this may be wrong",
    "version 2.11. is out", "I am 2.5 metres tall", "may 5 people come", "March on",
    "what do I do on Monday mornings", "que fait-on le lundi matin", "cosa faccio il lunedì mattina",
    "give it to an engineer", "qual è la segunda opção", "op de 3e plaats", "it runs with 3.10",
    "is it on the 3rd floor", "room 2024", "the next step", "which Q4 model do we use",
    "week 3 of the course", "a week 3 exam", "weeks 3-4", "KW 60",
    "毎週火曜の定例", "每周一的例会", "一周三次", "매주 월요일", "週次レポート",
])  # fmt: skip
def test_other_words_numbers_and_verbs_mean_no_time(text: str) -> None:
    assert parse_times(text, NOW).spans == ()


def test_a_day_begins_where_the_question_is_asked() -> None:
    tokyo = timezone(timedelta(hours=9))

    (span,) = parse_times("today", datetime(2026, 3, 18, 2, tzinfo=tokyo)).spans

    assert span.since == datetime(2026, 3, 17, 15, tzinfo=UTC)


def test_what_a_memory_would_not_repeat_is_no_word_of_the_question() -> None:
    times = parse_times("what did Ann buy last week", NOW)

    assert times.remaining_text.split() == "what did Ann buy".split()
    tuesday = parse_times("what did Ann buy on Tuesday of last week", NOW)
    assert tuesday.remaining_text.split() == "what did Ann buy".split()


def test_a_date_counts_as_a_whole_as_it_may_stand_in_the_memory() -> None:
    bill = parse_times("the bill of 5 May 2023", NOW).remaining_text

    assert bill.split()[-2:] == ["5-May", "May-5"]
    assert "Monday" in parse_times("the Monday call", NOW).remaining_text


@given(st.text(max_size=200))
def test_any_question_has_a_bounded_number_of_times(text: str) -> None:
    said = parse_times(text, NOW)

    assert len(said.spans) <= SPANS_MAX
    assert all(span.since < span.until for span in said.spans)


@given(
    st.lists(
        st.sampled_from(
            "3 two 8 may Sept December 2023 2023-05 2023-05-08 days month ago last Past this next "
            "week years weekend Friday morning Tonight yesterday the day before of in since , ſ "
            "spring winter 1999 year laſt RV-22787 bike".split()
        ),
        max_size=6,
    )
)
def test_a_question_without_a_hint_of_time_says_nothing_of_it(words: list[str]) -> None:
    text = " ".join(words)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(questions, "_may_mention_time", lambda _: True)
        read = parse_times(text, NOW)

    assert parse_times(text, NOW) == read


def test_next_friday_may_be_of_this_week_or_of_the_next() -> None:
    assert [span.since for span in parse_times("next Friday", NOW).spans] == [
        day("2026-03-20"),
        day("2026-03-27"),
    ]


@each_case(("text", "order", "subject"), [
    ("my last note", TimeOrder.LATEST, "my note"),
    ("latest mail from Ben", TimeOrder.LATEST, "mail from Ben"),
    ("the first commit of tomasz", TimeOrder.EARLIEST, "the commit of tomasz"),
    ("how much is the rent now", TimeOrder.CURRENT, "how much is the rent"),
    ("meine letzte Notiz", TimeOrder.LATEST, "meine Notiz"),
    ("wie hoch ist die Miete jetzt", TimeOrder.CURRENT, "wie hoch ist die Miete"),
    ("la dernière note", TimeOrder.LATEST, "la note"),
    ("¿cuánto es el alquiler ahora?", TimeOrder.CURRENT, "¿cuánto es el alquiler ?"),
    ("l'ultima mail di Marco", TimeOrder.LATEST, "l' mail di Marco"),
])  # fmt: skip
def test_a_question_may_ask_for_the_first_or_the_last_of_its_matches(
    text: str, order: TimeOrder, subject: str
) -> None:
    times = parse_times(text, NOW)

    assert times.order is order
    assert times.subject_text.split() == subject.split()


@each_case("text", [
    "what is her first name", "how long does the battery last", "the last but one", "first aid",
    "it is on the first floor", "last week", "the last two weeks", "what did Ann buy last Friday",
])  # fmt: skip
def test_other_words_ask_for_no_order(text: str) -> None:
    assert parse_times(text, NOW).order is None


@pytest.mark.thorough
@settings(max_examples=20)
@given(st.data())
def test_what_a_rule_finds_has_one_of_its_words(data: st.DataObject) -> None:
    words, pattern = data.draw(st.sampled_from(TIME_PATTERNS))
    rule = re.compile(pattern.pattern, re.IGNORECASE)

    expression = data.draw(st.from_regex(rule, fullmatch=True))

    present = set(WORD.findall(expression.casefold()))
    assert not words or not words.isdisjoint(present)
