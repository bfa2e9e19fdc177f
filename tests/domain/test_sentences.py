"""What a sentence is: a statement, or a question typed without its mark."""

from support.cases import each_case

from mnemosyned.text.sentences import is_question


@each_case("sentence", [
    "where do audios live",
    "whats the visa rule for japan",
    "how to get rid of moths",
    "wie bekomme ich Rotwein aus dem Teppich",
    "comment enlever une tache de vin",
    "quel est le loyer",
    "a qué hora es la notaría",
    "qué es una nota convertible",
    "come faccio a togliere il vino",
    "qual é o prazo",
    "hoe laat is het",
    "wat kost het drukken",
    "hur gör man pannkakor",
    "ile kosztuje bilet",
    "как вывести пятно",
])  # fmt: skip
def test_a_question_is_known_without_its_mark(sentence: str) -> None:
    assert is_question(sentence)


@each_case("sentence", [
    "whose turn it was changed on Monday",
    "how releases work is in the wiki",
    "who was on call was Ben",
    "wie gesagt nehmen wir Postgres",
    "quand on déploie il faut prévenir Léa",
    "cuando es fiesta no abrimos",
    "come si è detto partiamo alle nove",
    "wat betreft de kosten blijven we op 312 euro",
    "co tydzień sprzątamy klatkę",
])  # fmt: skip
def test_a_clause_before_a_statement_is_no_question(sentence: str) -> None:
    assert not is_question(sentence)
