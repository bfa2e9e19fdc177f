"""One place for what an episode, its day, its week and its month all tell."""

from mnemosyned.search.query import RankedResult
from mnemosyned.search.ranking import best_level_only

EPISODE, OTHER, DAY, NEXT_DAY, WEEK = 1, 2, 10, 11, 20
ABOVE = {EPISODE: DAY, OTHER: DAY, DAY: WEEK, NEXT_DAY: WEEK}


def place(score: float, episode: int, *, told: bool = False) -> RankedResult:
    return RankedResult(score, episode=episode, lines=((99, score),) if told else ())


def kept(*places: RankedResult) -> list[int | None]:
    return [one.episode for one in best_level_only(places, ABOVE)]


def test_a_summary_gives_way_to_exact_words_below_it_whatever_the_scores() -> None:
    assert kept(place(9, WEEK), place(5, DAY), place(1, EPISODE, told=True)) == [
        EPISODE
    ]


def test_without_exact_words_the_best_level_answers() -> None:
    assert kept(place(9, DAY), place(5, EPISODE), place(4, OTHER), place(3, WEEK)) == [
        DAY
    ]
    assert kept(place(9, EPISODE), place(5, DAY), place(4, OTHER)) == [EPISODE, OTHER]


def test_places_beside_each_other_keep_theirs() -> None:
    assert kept(place(9, DAY), place(5, NEXT_DAY), place(4, OTHER, told=True)) == [
        NEXT_DAY,
        OTHER,
    ]
    assert kept(place(9, DAY), place(5, NEXT_DAY)) == [DAY, NEXT_DAY]


def test_memories_by_themselves_are_left_alone() -> None:
    alone = RankedResult(3.0, memory=7)

    assert best_level_only([alone, place(2, DAY)], ABOVE) == [
        alone,
        place(2, DAY),
    ]
