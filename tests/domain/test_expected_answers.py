"""What a question expects of its answer: a time, or the assistant's own words."""

from support.cases import each_case

from mnemosyned.search.query import expected_answer, says_when


@each_case("question", [
    "When did Caroline go to the group?", "  when is it", "Wann war der Umzug?",
    "¿Cuándo llega Ana?", "Quand part le train ?", "Когда приезжает Анна?",
])  # fmt: skip
def test_a_question_that_begins_with_when_expects_a_time(question: str) -> None:
    assert expected_answer(question).time


@each_case("question", [
    "What did he say when he left?", "Whenever it rains, what leaks?", "which hotel", "",
])  # fmt: skip
def test_other_questions_expect_no_time(question: str) -> None:
    assert not expected_answer(question).time


@each_case("question", [
    "What did you suggest?", "the assistant's advice on caching", "was hast du gesagt",
])  # fmt: skip
def test_a_question_to_the_assistant_expects_its_words(question: str) -> None:
    assert expected_answer(question).assistant


@each_case("question", ["What did I say?", "who is the young one", "port"])
def test_other_questions_do_not_expect_the_assistant(question: str) -> None:
    assert not expected_answer(question).assistant


@each_case("text", [
    "We met yesterday", "on 7 September", "im Oktober", "in 2023", "at 7:30", "on Friday",
])  # fmt: skip
def test_texts_that_name_a_time(text: str) -> None:
    assert says_when(text)


@each_case("text", ["You may go", "the sunny room", "dial 0176 555", ""])
def test_texts_that_name_none(text: str) -> None:
    assert not says_when(text)
