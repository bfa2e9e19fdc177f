"""What a question expects: a time, the assistant's words, or much, spread over time."""

from datetime import timedelta

from support.cases import each_case
from support.fakes import NOON

from mnemosyned.search.query import (
    Match,
    RankedResult,
    expected_answer,
    says_when,
)
from mnemosyned.search.ranking import broad_topic, spread_results


@each_case(("question", "topic"), [
    ("Tell me everything about the cat.", "about the cat"),
    ("In which order did the events around the grant take place?", "In the around the grant place"),
    ("Summarize how the project went", "the project"),
    ("What have we tried against the moisture?", "against the moisture"),
    ("Erzähl mir alles über die Heizung", "Erzähl mir über die Heizung"),
    ("Résume tout ce que nous savons", "ce que"),
    ("In quale ordine abbiamo visitato le scuole?", "quale abbiamo visitato le scuole"),
    ("Расскажи всё про крышу", "Расскажи про крышу"),
])  # fmt: skip
def test_a_broad_question_names_its_subject(question: str, topic: str) -> None:
    words = (broad_topic(question) or "").split()

    assert set(topic.split()) - {"In"} <= set(words)
    assert not {"everything", "order", "Summarize", "alles", "tout"} & set(words)


@each_case("question", [
    "When did John resume playing drums?", "How did the skydiving course go?",
    "What is the cat called?", "Did we order the wood?", "Where do all the children sleep?",
    "And what about Marta?",
])  # fmt: skip
def test_a_question_for_one_fact_is_not_broad(question: str) -> None:
    assert broad_topic(question) is None


def match(position: int, session: str, *, days: int, role: str = "") -> Match:
    when = NOON + timedelta(days=days)
    return Match(position, 1.0, session, content="a line", created_at=when, role=role)


def test_an_answer_is_spread_over_sessions_in_the_order_of_time() -> None:
    one_session = [match(number, "long", days=30) for number in range(1, 6)]
    others = [match(20, "later", days=60), match(10, "earlier", days=1)]
    results = [
        RankedResult(10.0 - rank, memory=found.position)
        for rank, found in enumerate([*one_session, *others])
    ]

    shown = spread_results(results, [*one_session, *others], limit=4)

    assert [result.memory for result in shown] == [10, 1, 4, 20]


def test_a_user_says_what_an_assistant_repeats_and_summaries_fill_places() -> None:
    roles = enumerate(("assistant", "user"), 1)
    found = [match(at, role, days=at, role=role) for at, role in roles]
    repeated, said = (RankedResult(1.3 - at / 10, memory=at) for at in (1, 2))
    summary = RankedResult(2.0, episode=7)

    assert spread_results([repeated, said], found, limit=1) == [said]
    assert spread_results([summary, said], found[1:], limit=2) == [said, summary]
    assert spread_results([summary, said], found[1:], limit=1) == [said]


def test_everything_about_a_number_has_that_number() -> None:
    found = [
        match(at, "s", days=at)._replace(content=f"run {number} ended")
        for at, number in enumerate((15, 17, 18, 17))
    ]
    results = [RankedResult(1.0, memory=each.position) for each in found]

    shown = spread_results(results, found, limit=3, topic="run 17")

    assert [result.memory for result in shown] == [1, 3]
    assert len(spread_results(results, found, limit=3, topic="run 99")) == 3


# ------------------------------------------------------- a time, or whose words


@each_case(("question", "time", "assistant"), [
    ("When did Caroline go to the group?", True, False),
    ("  when is it", True, False),
    ("Wann war der Umzug?", True, False),
    ("¿Cuándo llega Ana?", True, False),
    ("Quand part le train ?", True, False),
    ("Когда приезжает Анна?", True, False),
    ("What did he say when he left?", False, False),
    ("Whenever it rains, what leaks?", False, False),
    ("which hotel", False, False),
    ("", False, False),
    ("What did you suggest?", False, True),
    ("the assistant's advice on caching", False, True),
    ("was hast du gesagt", False, True),
    ("What did I say?", False, False),
    ("who is the young one", False, False),
    ("port", False, False),
])  # fmt: skip
def test_a_question_expects_a_time_or_the_assistant(
    question: str, *, time: bool, assistant: bool
) -> None:
    expected = expected_answer(question)

    assert (bool(expected.time), bool(expected.assistant)) == (time, assistant)


@each_case(("text", "has_time"), [
    *((text, True) for text in ("We met yesterday", "on 7 September", "im Oktober", "in 2023", "at 7:30",
                                "on Friday")),
    *((text, False) for text in ("You may go", "the sunny room", "dial 0176 555", "")),
])  # fmt: skip
def test_texts_that_name_a_time(text: str, *, has_time: bool) -> None:
    assert bool(says_when(text)) is has_time
