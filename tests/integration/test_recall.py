"""Recall through the service: times relative to the asker, repeats, abstaining, sleep, and groups."""

from collections.abc import Iterator
from contextlib import ExitStack
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
from support.cases import each_case
from support.fakes import NOON, FakeClock
from support.services import Lab

from mnemosyned import Memory
from mnemosyned.errors import StorageFailed
from mnemosyned.memory.values import Hit
from mnemosyned.service import service as services
from mnemosyned.service.service import MemoryService
from mnemosyned.verbs.memories import Recall, Remember
from mnemosyned.verbs.upkeep import Sleep

DAY = timedelta(days=1)


def keep(lab: Lab, id: str, content: str, **fields: Any) -> None:  # noqa: ANN401
    lab.remember(content, id=id, **fields)


def recall(lab: Lab, question: str, **fields: Any) -> list[Hit]:  # noqa: ANN401
    return lab.recall(question, **fields).hits


def lunches(lab: Lab) -> None:
    for days in range(1, 40):
        text = f"lunch with {'Ann Bob Cy'.split()[days % 3]}, soup {days}"
        keep(lab, f"lunch-{days}", text, created_at=NOON - days * DAY)


@pytest.mark.parametrize(
    ("question", "asked_days_ago", "answer"),
    [
        ("lunch yesterday", 0, "lunch-1"),
        ("who was at lunch 3 days ago", 0, "lunch-3"),
        ("lunch on 20 February", 0, "lunch-25"),
        ("lunch on 2026-02-20", 0, "lunch-25"),
        ("lunch yesterday", 10, "lunch-11"),
    ],
)
def test_a_time_is_relative_to_the_asker(
    lab: Lab, question: str, asked_days_ago: int, answer: str
) -> None:
    lunches(lab)
    zone = timezone(timedelta(hours=-5))
    asked_at = (NOON - asked_days_ago * DAY).astimezone(zone)

    assert recall(lab, question, asked_at=asked_at)[0].id == answer


@pytest.mark.parametrize(
    ("text", "question"),
    [
        pytest.param(
            "the boat was sold",
            "was the boat sold last week?",
            id="a time prefers and does not exclude",
        ),
        pytest.param(
            "QX-48213 is on its way",
            "could somebody of the warehouse staff please look up parcel QX-48213",
            id="a code is an answer whatever else was asked",
        ),
    ],
)
def test_a_memory_is_found_although_not_all_of_a_question_fits(
    lab: Lab, text: str, question: str
) -> None:
    keep(lab, "it", text, created_at=NOON - 200 * DAY)

    assert [hit.id for hit in recall(lab, question)] == ["it"]


def test_what_was_never_said_gets_no_hit(lab: Lab) -> None:
    for number in range(20):
        keep(lab, f"note-{number}", f"note {number}: the garden needs water")
    keep(lab, "car", "The car insurance costs 480 euros a year")

    question = "which lawyer handles the Nakamura lawsuit about the car patent"
    nothing = lab.recall(question)
    known = lab.recall("how much is the car insurance")

    assert nothing.hits == []
    assert [hit.id for hit in nothing.nearest] == ["car"]
    assert nothing.confidence < known.confidence
    assert [hit.id for hit in known.hits][:1] == ["car"]
    assert known.nearest == []
    assert known.hits[0].why == "words: car, insurance"


def test_the_same_is_known_after_a_sleep(lab: Lab) -> None:
    lunches(lab)
    keep(lab, "car", "The car insurance costs 480 euros a year")
    questions = ("how much is the insurance", "who is the dentist of the Nakamuras")

    before = [bool(recall(lab, question)) for question in questions]
    lab.sleep(force=True)

    assert before == [True, False]
    assert [bool(recall(lab, question)) for question in questions] == before


def test_a_repeated_notice_has_one_place(lab: Lab) -> None:
    for at in range(50):
        keep(lab, f"low-{at}", "Battery low", source="phone",
             created_at=NOON - timedelta(hours=at))  # fmt: skip
    keep(lab, "swap", "The battery was swapped at the garage", source="notes")

    hits = recall(lab, "battery")

    assert {hit.id for hit in hits} == {"low-0", "swap"}
    (notice,) = (hit for hit in hits if hit.id == "low-0")
    assert notice.duplicates == 49
    assert len(notice.lines) == 3


def test_hundreds_of_the_same_do_not_hide_the_rest(lab: Lab) -> None:
    lab.remember_many([Remember("Battery low", source="phone")] * 300)
    swap = "Yesterday the old battery of the car was swapped at the garage"
    keep(lab, "swap", swap)

    assert "swap" in [hit.id for hit in recall(lab, "battery low")]


def test_a_page_that_answers_comes_before_lines_that_do_not(lab: Lab) -> None:
    filler = "We spoke of this and that for an hour. " * 20
    keep(lab, "page", f"{filler}Vera sold the green canoe to Mike. {filler}")
    for name in "Ada Bea Cid Dan Eva Flo Gus Hal Ida Jim Kim Lou".split():
        keep(lab, f"line-{name}", f"{name} saw a green canoe")
        keep(lab, f"other-{name}", f"Vera met {name}")

    assert recall(lab, "Did Vera sell the green canoe?")[0].id == "page"


def test_an_answer_stays_within_its_filters(lab: Lab) -> None:
    texts = [*(f"line {at} of the talk" for at in range(4)), "the canoe"]
    for at, text in enumerate(texts):
        when = NOON - timedelta(minutes=9 - at)
        keep(lab, f"m{at}", text, session="talk", created_at=when)
    until = datetime.fromisoformat("2026-03-17T11:55:30Z")

    hits = recall(lab, "canoe", since=NOON - timedelta(minutes=6), until=until)

    assert {hit.id for hit in hits} == {"m3", "m4"}


@pytest.mark.parametrize(
    "question", ["number of doctor Perrin", "numéro du docteur Perrin", "Nummer von Perrin"]
)  # fmt: skip
def test_a_line_with_a_telephone_number_answers_a_question_for_one(
    lab: Lab, question: str
) -> None:
    keep(lab, "visit", "Visit to doctor Perrin at 11:30 on 2026-03-20")
    keep(lab, "phone", "Doctor Perrin sees children, 04 78 55 01 22, not on Thursdays")

    assert recall(lab, question)[0].id == "phone"


@pytest.mark.parametrize("question", ["what did I do?", "¿qué hice?", "anything new?"])
def test_a_question_without_a_word_of_its_own_asks_about_the_filtered_time(
    lab: Lab, question: str
) -> None:
    for days, text in ((9, "the bikes were repaired"), (2, "the canoe was sold")):
        keep(lab, text, text, created_at=NOON - timedelta(days=days))

    (hit,) = recall(lab, question, since=NOON - timedelta(days=5))

    assert hit.content == "the canoe was sold"


@pytest.mark.parametrize(
    ("question", "text"),
    [("zebra", "a zebra in the garden"), ("wifi", "Wi-Fi needs a new password")],
)
def test_a_word_that_stood_nowhere_is_found_once_it_does(
    lab: Lab, question: str, text: str
) -> None:
    lunches(lab)
    assert recall(lab, question) == []

    keep(lab, "new", text)

    assert [hit.id for hit in recall(lab, question)] == ["new"]


TOLD = [
    ("tram", "the tram was late", 28, 0.5),
    ("dentist", "the dentist wants to see me again in May", 25, 0.9),
    ("cake", "grandmother called about the cake", 18, 0.5),
    ("boat", "the boat was sold", 17 * 24, 0.5),
    ("talk", "what happened at the boat show yesterday", 9 * 24, 0.9),
]


@pytest.fixture(params=[False, True], ids=["fresh", "slept"])
def slept(request: pytest.FixtureRequest, lab: Lab) -> bool:
    """Whether what was told has been slept over."""
    for id, content, hours_ago, importance in TOLD:
        when = NOON - timedelta(hours=hours_ago)
        keep(lab, id, content, created_at=when, importance=importance, session=id)
    if request.param:
        lab.sleep(force=True)
    return bool(request.param)


@each_case(
    ("question", "answers"),
    [
        ("what happened yesterday?", ["dentist", "tram", "cake"]),
        ("What did I do yesterday morning?", ["dentist", "tram"]),
        ("who called yesterday?", ["cake", "dentist", "tram"]),
        ("what happened on 28 February", ["boat"]),
        ("yesterday", ["dentist", "tram", "cake"]),
        ("yesterday's activities", ["dentist", "tram", "cake"]),
        ("the boat yesterday", ["boat", "talk"]),
        ("what happened 5 days ago?", []),
        ("what did Zoe do yesterday?", []),
    ],
)
def test_a_question_for_nothing_but_a_time_lists_what_happened_then(
    lab: Lab, question: str, answers: list[str], *, slept: bool
) -> None:
    hits = recall(lab, question)

    originals = [hit for hit in hits if hit.lines or not slept]
    shown = [hit.lines[0].content if slept else hit.content for hit in originals]
    ids = {content: id for id, content, *_ in TOLD}
    assert [ids[text] for text in shown] == answers


@pytest.mark.parametrize("slept", [False, True])
def test_a_list_of_what_happened_gives_every_source_its_turn(
    lab: Lab, *, slept: bool
) -> None:
    day = NOON - 2 * DAY
    for minutes in range(40):
        when = day - timedelta(minutes=minutes)
        step, laugh = f"step {minutes} of 90", f"{'ha' * (minutes % 9)}!"
        keep(lab, f"n{minutes}", step, source="notices", created_at=when)
        keep(lab, f"c{minutes}", laugh, source="chat", created_at=when)
    told = {
        "calendar": "dentist, 14:30",
        "photos": "Ida and a swan",
        "chat": "we are getting married in June",
    }
    for source, text in told.items():
        keep(lab, source, text, source=source, created_at=day)
    if slept:
        lab.sleep(force=True)

    hits = recall(lab, "what happened 2 days ago", limit=6)

    assert {*told.values()} <= {
        line
        for hit in hits
        for line in [hit.content, *(one.content for one in hit.lines)]
    }


def test_a_list_of_what_happened_stays_within_its_filters(lab: Lab) -> None:
    lunches(lab)
    when = NOON - 3 * DAY
    keep(lab, "call", "call with Ann", session="calls", created_at=when)

    (hit,) = recall(lab, "what happened 3 days ago", session="calls")
    assert hit.id == "call"
    assert recall(lab, "what happened 4 days ago", session="calls") == []


def test_a_long_memory_is_listed_by_its_importance_too(lab: Lab) -> None:
    lunches(lab)
    when = NOON - 3 * DAY
    keep(lab, "report", "so it went on " * 400, importance=0.9, created_at=when)

    hits = recall(lab, "what happened 3 days ago")
    assert [hit.id for hit in hits] == ["report", "lunch-3"]


@pytest.mark.parametrize(
    ("question", "short"),
    [
        ("boiler pressure", "boiler pressure is 1.6 bar"),
        ("who has the ladder", "Jonas has the ladder"),
        ("tire pressure winter", "winter tire pressure 2.6"),
    ],
)
def test_a_short_message_is_not_drowned_by_long_ones_that_repeat_its_words(
    lab: Lab, question: str, short: str
) -> None:
    keep(lab, "short", short)
    filler = "the meeting went on and nobody could say why it took so long"
    for number in range(15):
        lines = [f"{filler} about the {question}." for _ in range(12 + number)]
        keep(lab, f"long{number}", f"Report {number}. {' '.join(lines)}")
    for number in range(60):
        keep(lab, f"other{number}", f"{filler}, part {number}. " * 4)

    assert recall(lab, question)[0].id == "short"


# Words written joined, with a hyphen or apart find each other.


COMPOUNDS = {
    "hyphen": "the Wi-Fi at the cabin is heron-lagoon",
    "joined": "wifi on the boat: albatross",
    "duty": "on-call this month: Tomasz",
    "oncall": "the oncall phone is in the drawer",
    "late": "late check-in until eleven",
    "checkin": "checkin closes an hour before departure",
    "server": "the file server hums",
    "fileserver": "our fileserver has a new disk",
}
NOISE = [f"note {number} about gardens, soup and trains" for number in range(40)]


@pytest.fixture(scope="module", params=[False, True], ids=["before", "after sleep"])
def memory(request: pytest.FixtureRequest) -> Iterator[Memory]:
    with Memory(":memory:") as memory:
        for id, text in COMPOUNDS.items():
            memory.remember(text, id=id, session=id)
        for text in NOISE:
            memory.remember(text)
        if request.param:
            memory.sleep(force=True)
        yield memory


@each_case(
    ("question", "found"),
    [
        ("wifi", {"hyphen", "joined"}),
        ("Wi-Fi", {"hyphen", "joined"}),
        ("wi fi", {"hyphen", "joined"}),
        ("what is the wifi password", {"hyphen", "joined"}),
        ("oncall", {"duty", "oncall"}),
        ("on-call", {"duty", "oncall"}),
        ("who is on call", {"duty", "oncall"}),
        ("checkin", {"late", "checkin"}),
        ("check-in", {"late", "checkin"}),
        ("check in", {"late", "checkin"}),
        ("fileserver", {"server", "fileserver"}),
        ("file server", {"server", "fileserver"}),
        ("file-server", {"server", "fileserver"}),
    ],
)
def test_a_compound_is_found_however_it_is_written(
    memory: Memory, question: str, found: set[str]
) -> None:
    shown = {
        id
        for hit in memory.recall(question)
        for id in (hit.id, *(line.id for line in hit.lines))
    }

    assert shown & COMPOUNDS.keys() == found


@each_case("question", ["often", "island", "into"])
def test_two_small_words_are_no_compound(question: str) -> None:
    with Memory(":memory:") as memory:
        memory.remember("one of ten is land, went in to see")

        assert not memory.recall(question).hits


# Recall over one's own memory and those of groups: as over one memory with everything in it.


OWN = (
    "The dentist moved my appointment to Friday.",
    "Grace lent me the book about lighthouses.",
    "My deploys go to the blue cluster.",
    "I water the fern on Mondays.",
)
TEAM = (
    "Deploys to production need two approvals.",
    "The blue cluster is in Dublin and has nine nodes.",
    "The release train leaves every second Thursday.",
    "Ticket 4711: the deploy of the mailer failed in Dublin.",
    "The lighthouse project ends in May.",
)
QUESTIONS = (
    "who lent me a book about lighthouses?",
    "what do deploys to production need?",
    "where is the blue cluster?",
    "which cluster do my deploys go to?",
    "the latest deploy",
    "what is known about deploys?",
    "who repairs the zeppelin?",
)


@pytest.fixture
def trio() -> Iterator[list[MemoryService]]:
    """The memory of somebody, that of a team, and one with what both keep."""
    with ExitStack() as opened:
        found: list[MemoryService] = []
        for _ in range(3):
            memory = Memory(
                ":memory:", clock=FakeClock(NOON), **{"embedding.encoder": "none"}
            )
            service = opened.enter_context(memory)._caller  # noqa: SLF001 by its verbs
            assert isinstance(service, MemoryService)
            found.append(service)
        own, team, both = found
        lines = [(text, own) for text in OWN] + [(text, team) for text in TEAM]
        for number, (text, place) in enumerate(lines):
            said = Remember(text, created_at=NOON - timedelta(hours=5 * number))
            place.call(said)
            both.call(said)
        yield found


def shown(hits: list[Hit]) -> list[tuple[str, float, float]]:
    return [
        (hit.content, round(hit.score, 6), round(hit.confidence, 6)) for hit in hits
    ]


@each_case("question", QUESTIONS)
def test_hits_are_those_of_one_memory_with_everything(
    trio: list[MemoryService], question: str
) -> None:
    own, team, both = trio
    asked = Recall(question, explain=True)

    answer = own.call(asked, groups={"team": lambda: team})

    expected = both.call(asked)
    assert shown(answer.hits) == shown(expected.hits)
    assert shown(answer.nearest) == shown(expected.nearest)
    assert (answer.confidence, answer.note) == (expected.confidence, expected.note)
    for hit in (*answer.hits, *answer.nearest):
        assert hit.owner == ("team" if hit.content in TEAM else None)
    assert [hit.owner for hit in own.call(asked).hits] == [None] * len(
        own.call(asked).hits
    )


def test_a_question_for_a_time_alone_gets_all_of_that_time(
    trio: list[MemoryService],
) -> None:
    own, team, both = trio
    asked = Recall("what happened yesterday?")

    answer = own.call(asked, groups={"team": lambda: team})

    contents = {hit.content for hit in answer.hits}
    assert contents == {hit.content for hit in both.call(asked).hits}
    assert {hit.owner for hit in answer.hits} == {None, "team"}


def test_summaries_of_groups_come_with_their_originals(
    trio: list[MemoryService],
) -> None:
    own, team, _ = trio
    team.call(Sleep(force=True))

    answer = own.call(
        Recall("what do deploys to production need?"), groups={"team": lambda: team}
    )

    best = answer.hits[0]
    assert (best.owner, best.lines[0].content) == ("team", TEAM[0])
    assert best.summary_of


def test_a_group_that_fails_or_would_take_too_long_is_left_out_with_a_note(
    trio: list[MemoryService], monkeypatch: pytest.MonkeyPatch
) -> None:
    own, team, _ = trio

    def fail() -> MemoryService:
        raise StorageFailed("the server is away")

    asked = Recall("which cluster do my deploys go to?")
    answer = own.call(asked, groups={"board": fail, "team": lambda: team})
    assert "the memory of board was left out: the server is away" in answer.note
    assert {hit.owner for hit in answer.hits} == {None, "team"}

    monkeypatch.setattr(services, "GROUPS_S", -1.0)
    answer = own.call(asked, groups={"team": lambda: team})
    assert answer.note == "the memory of team was left out, for lack of time"
    assert answer.hits == own.call(asked).hits
