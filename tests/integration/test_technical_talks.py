"""The technical talks are whole, and a broken file is refused with its line."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import mean

import pytest
from support.datasets.technical_talks import (
    FOLDER,
    KINDS,
    Talk,
    TalkFileError,
    load_talks,
    parse_talk,
)

TALKS = load_talks()
BEGINNING = "# talk: A shed\n# user: Ada\n"
TWO_TURNS = "== 2026-03-04 19:12\n> user\nThe roof leaks.\n\n# see this\n> assistant\nMend it.\n"
WHOLE = f"{BEGINNING}{TWO_TURNS}?? questions\n[single fact] What drips? -> 01\n"
whole_talks = pytest.mark.parametrize("talk", TALKS, ids=lambda talk: talk.name)


def words(talk: Talk, role: str) -> list[int]:
    return [len(turn.text.split()) for turn in talk.turns if turn.role == role]


def test_every_file_of_the_folder_but_its_page_is_a_talk() -> None:
    files = {path.stem for path in Path(FOLDER).iterdir()} - {"README"}

    assert {talk.name for talk in TALKS} == files


@whole_talks
def test_a_talk_is_long_and_has_several_sittings(talk: Talk) -> None:
    assert 60 <= len(talk.turns) <= 70
    assert 3 <= talk.turns[-1].sitting <= 6
    assert mean(words(talk, "assistant")) >= 300
    assert 20 <= mean(words(talk, "user")) <= 120


@whole_talks
def test_a_talk_has_two_questions_of_each_kind(talk: Talk) -> None:
    assert Counter(question.kind for question in talk.questions) == dict.fromkeys(
        KINDS, 2
    )
    assert len({question.text for question in talk.questions}) == 20


@whole_talks
def test_evidence_is_as_its_kind_demands(talk: Talk) -> None:
    for question in talk.questions:
        sittings = {talk.turn(number).sitting for number in question.evidence}
        if question.kind == "several sessions":
            assert len(sittings) >= 2, question
        if question.kind in ("summary", "contradiction"):
            assert len(question.evidence) >= 2, question


def test_a_file_is_read_with_its_times_and_what_looks_like_a_comment() -> None:
    talk = parse_talk("01_shed", WHOLE)

    assert (talk.title, talk.user) == ("A shed", "Ada")
    assert [turn.role for turn in talk.turns] == ["user", "assistant"]
    assert talk.turn(1).text == "The roof leaks.\n\n# see this"
    assert talk.turn(1).said_at == datetime(2026, 3, 4, 19, 12, tzinfo=UTC)
    pause = talk.turn(2).said_at - talk.turn(1).said_at
    assert timedelta(minutes=1) <= pause <= timedelta(minutes=4)
    assert talk.questions[0].evidence == (1,)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "line 1: expected '# talk:'"),
        ("# talk: A shed\n", "line 2: expected '# user:'"),
        (f"{BEGINNING}> user\nHello\n", "line 3: a turn comes before"),
        (f"{BEGINNING}== 2026-02-30 10:00\n", "line 3: 2026-02-30 10:00 is no date"),
        (f"{BEGINNING}{TWO_TURNS}> assistant\n", "line 10: two turns of the assistant"),
        (f"{BEGINNING}{TWO_TURNS}> user\n", "line 10: the turn of the user"),
        (f"{BEGINNING}{TWO_TURNS}== 2026-03-04 19:12\n", "line 10: a sitting begins"),
        (WHOLE.replace("single fact", "gossip"), "line 11: 'gossip' is none"),
        (WHOLE.replace("01", "3"), "line 11: no turn 3; the talk has 2"),
        (WHOLE.replace("01", ""), "line 11: 0 turns of evidence"),
        (WHOLE.replace(" -> 01", ""), "line 11: expected"),
    ],
)
def test_a_broken_file_is_refused_with_its_line(text: str, problem: str) -> None:
    with pytest.raises(TalkFileError, match=f"01_shed, {problem}"):
        parse_talk("01_shed", text)
