"""Places of an answer: one for what says the same, and one for each episode."""

from domain.test_ranking import COUNT, far, match, order, query, ranked

from mnemosyned.memory.values import Tier
from mnemosyned.search.query import Corpus, Match, SearchCandidates
from mnemosyned.search.ranking import ALIKE_MAX, rank
from mnemosyned.search.weights import WEIGHTS


def test_duplicates_share_one_position_and_a_count() -> None:
    same = [far(at, "Battery low: bike", source="phone") for at in range(50)]

    places = ranked(query(), *same, far(100, "my bike"))

    assert [
        (place.memory, place.duplicates) for place in places if place.duplicates
    ] == [(49, 49)]
    assert len(places) == 2


def test_the_same_words_from_elsewhere_keep_their_place() -> None:
    assert len(order("bike", far(1, source="a"), far(2, source="b"))) == 2
    assert len(order("bike", far(1, role="Ann"), far(2, role="Bob"))) == 2


def test_texts_that_differ_only_in_numbers_yield_to_other_hits() -> None:
    many = [far(at, f"bike at {at} percent") for at in range(50)]
    other = far(
        100, "there is another rusty old bike in the cellar, behind the boxes, I think"
    )

    places = ranked(query(limit=5), *many, other)

    assert [place.memory for place in places][-1] == 100
    assert places[0].duplicates == 50 - ALIKE_MAX - 1
    assert len(places) == 5


def test_texts_that_differ_in_numbers_are_shown_if_there_is_room() -> None:
    assert len(order("bike", *(far(at, f"bike {at}") for at in range(8)))) == 8


# ------------------------------------------------------------------ episodes


def test_the_limit_is_respected() -> None:
    matches = [
        far(at, f"bike {word}") for at, word in enumerate("abcdefghijklmnopqrst")
    ]

    assert len(ranked(query(limit=7), *matches)) == 7


def test_an_episode_has_one_place_with_its_best_lines_under_it() -> None:
    originals = [
        match(at * 10, "bike " * at + "x" * at, episode=5) for at in range(1, 6)
    ]

    places = ranked(query(limit=1), *originals)

    assert [place.episode for place in places] == [5]
    assert len(places[0].lines) == WEIGHTS.lines_max


def test_lines_that_had_places_of_their_own_before_a_sleep_are_all_shown_after_it() -> (
    None
):
    awake = [match(at * 10, "bike " * at + "x" * at) for at in range(1, 9)]
    asleep = [one._replace(episode=5) for one in awake]

    before = [place.memory for place in ranked(query(limit=6), *awake)]
    (place,) = ranked(query(limit=6), *asleep)

    assert [position for position, _ in place.lines] == before


def test_an_exact_original_outranks_a_summary_alone() -> None:
    original = match(1, "bike", episode=5)
    places = rank(
        query(), SearchCandidates([original], {6: 4.0}, corpus=Corpus(count=COUNT))
    )

    assert [place.episode for place in places] == [5, 6]


def test_further_lines_and_the_summary_add_to_an_episode() -> None:
    best, further = match(10, episode=5), match(90, "the bike", episode=5)

    def score(*matches: Match, summary: float = 0.0) -> float:
        return rank(
            query(), SearchCandidates(matches, {5: summary}, corpus=Corpus(count=COUNT))
        )[0].score

    assert score(best, further) > score(best)
    assert score(best, summary=1.0) > score(best)


def test_asked_for_episodes_only_their_own_words_count() -> None:
    found = SearchCandidates([match(1, episode=5)], {6: 1.0})

    assert [place.episode for place in rank(query(tier=Tier.EPISODIC), found)] == [6]


def test_asked_for_the_archive_each_original_has_its_own_place() -> None:
    originals = match(1, "my bike", episode=5), match(9, "her bike", episode=5)

    places = ranked(query(tier=Tier.ARCHIVE), *originals)

    assert {(place.memory, place.episode) for place in places} == {(1, None), (9, None)}


def test_a_repeat_is_counted_however_far_behind_and_in_whatever_case() -> None:
    others = [far(at, f"bike {'abcde'[at]}", importance=0.5) for at in range(5)]
    repeats = [far(6, "A BIKE ", importance=0.0), far(7, "a bikes", importance=0.0)]

    places = ranked(query(limit=2), far(8, "a bike", importance=1.0), *others, *repeats)

    assert [(place.memory, place.duplicates) for place in places] == [(8, 1), (4, 0)]
