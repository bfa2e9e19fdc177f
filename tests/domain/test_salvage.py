"""What is kept of a small model's sentences, and what is not."""

from __future__ import annotations

import pytest
from support.cases import each_case

from mnemosyned.summary.grounding.claims import SalvagedClaim, Speakers, salvage_claims

TALK = Speakers("Ana", "Ben")


def kept(answer: str, *said: str, speakers: Speakers = TALK) -> list[str]:
    return [sentence.text for sentence in salvage_claims(answer, said, speakers)]


@pytest.mark.parametrize(
    ("said", "answer", "summary"),
    [
        (
            "I'm after Marley flooring, which is what studios use.",
            "Ana said that she's after Marley flooring, which is what studios use.",
            "Ana is after Marley flooring, which is what studios use.",
        ),
        (
            "We're thinking about going camping next month!",
            "Ana said that they're thinking about going camping next month.",
            "Ana said that they're thinking about going camping next month.",
        ),
        (
            "Last week I went to a council meeting.",
            "Ana said that she went to a council meeting.",
            "Last week Ana went to a council meeting.",
        ),
        (
            "The support group has made me feel accepted.",
            "Ana said that the support group has made her feel accepted.",
            "Ana said that the support group has made her feel accepted.",
        ),
        (
            "I've known these friends for 4 years.",
            "Ana said that she's known these friends for 4 years.",
            "Ana has known these friends for 4 years.",
        ),
        (
            "You made my day.",
            "Ana said that Ben made her day.",
            "Ana said that Ben made her day.",
        ),
    ],
)
def test_a_sentence_in_the_third_person_is_kept(
    said: str, answer: str, summary: str
) -> None:
    assert kept(answer, said) == [summary]


@each_case(
    ("said", "answer"),
    [
        ("I bought 3 lamps in Oslo.", "Ana said that she bought 4 lamps in Oslo."),
        ("I bought 3 lamps in Oslo.", "Ana said that she bought 3 lamps in Rome."),
        ("I did not sign the lease.", "Ana said that she signed the lease."),
        ("I signed the lease.", "Ana said that she never signed the lease."),
        ("My sister sold her old car.", "Ana said that she sold her old car."),
        (
            "A friend made it for my birthday.",
            "Ana said that she made it for her birthday.",
        ),
        (
            "You'd be a great counselor!",
            "Ana said that she would be a great counselor.",
        ),
        ("I might move to Spain.", "Ana said that she moved to Spain."),
        ("I want to adopt a child.", "Ana said that she adopted a child."),
        ("I'll quit the job if Tom leaves.", "Ana said that she will quit the job."),
        ("If it rains, I cancel the walk.", "Ana said that she cancels the walk."),
        ("Did I leave my keys there?", "Ana said that she left her keys."),
        ("I moved here from Sweden.", "Ana said that she moved here to Sweden."),
        ("Tom paid Eva the whole rent.", "Ana said that Eva paid Tom the whole rent."),
        ("I was a nurse in Bergen.", "Ana said that she is a nurse in Bergen."),
        ("My mom says I am lazy at home.", "Ana said that she is lazy at home."),
        ("I almost missed the last train.", "Ana said that she missed the last train."),
        ('He wrote "I hate this job" again.', "Ana said that she hates this job."),
        ("I walk my dogs every day.", "Ana said that she walks her dog every day."),
        ("That really made me proud.", "Ana said that that made her proud."),
        ("I wish I owned a garden.", "Ana said that she owned a garden."),
        ("We can do it together again.", "Ana said that she can do it together again."),
        ("I painted it after work.", "Ana said that she painted it after work."),
        ("It only costs 5 euros a week.", "Ana said that it costs 5 euros a week."),
    ],
)
def test_a_sentence_that_its_source_does_not_say_is_dropped(
    said: str, answer: str
) -> None:
    assert kept(answer, said) == []


@pytest.mark.parametrize(
    "answer",
    [
        "Ana: I painted the lake sunrise last year.",
        "Ana said that I painted the lake sunrise last year.",
        "I painted the lake sunrise last year.",
        "",
        "...",
    ],
)
def test_an_answer_that_continues_the_talk_is_no_summary(answer: str) -> None:
    assert kept(answer, "I painted the lake sunrise last year.") == []


def test_an_invented_end_is_cut_and_the_source_completes_the_sentence() -> None:
    tea = "Ana said that she likes tea and cocoa at night."
    assert kept(tea, "I like tea or cocoa at night.") == [
        "Ana likes tea or cocoa at night."
    ]
    said = "I ran a charity race on Sunday, and it was rewarding."
    answer = "Ana said that she ran a charity race on Sunday, and she won a gold medal."

    assert kept(answer, said) == [
        "Ana ran a charity race on Sunday, and it was rewarding."
    ]


def test_a_clause_in_the_first_person_is_left_for_the_rules_to_quote() -> None:
    said = "I'm keen on counseling - I'd love to help others."

    (sentence,) = salvage_claims(
        "Ana said that she's keen on counseling.", [said], TALK
    )

    assert sentence == SalvagedClaim(
        "Ana is keen on counseling.", 0, 25, "she", "I'd love to help others."
    )


def test_an_answer_is_cut_where_it_repeats_itself() -> None:
    said = ["I sold the red car.", "I rented a van for the move."]
    answer = (
        "Ana sold the red car. Ana sold the red car. She rented a van for the move."
    )

    assert kept(answer, *said) == ["Ana sold the red car."]
    assert len(kept(answer.replace("Ana sold the red car. ", "", 1), *said)) == 2


def test_a_cut_sentence_is_still_a_sentence() -> None:
    said = "Finding happy moments and keeping them is key."

    assert kept("Ana said that finding happy moments is hard.", said) == []
