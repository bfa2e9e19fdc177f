"""Whoever wrote the prose, the episode says no less than the rule-made one."""

import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import snowballstemmer
from hypothesis import given, strategies as st

from mnemosyned.domain.memory import MemoryRecord
from mnemosyned.domain.summary.episode_text import ComposedEpisode, compose_episode
from mnemosyned.domain.summary.extract import KEYWORDS, extract
from mnemosyned.domain.text.stopwords import STOP_WORDS

NOON = datetime(2026, 3, 3, 12, tzinfo=UTC)
RATIO = 1 / 3
SAID = (
    "I finally painted the kitchen yesterday, in a warm yellow that Ines had picked.",
    "The old gas boiler leaks again; the plumber from Kessler comes on 14 April at 9:30.",
    "It was a lovely weekend, we made bread with my sister and talked about the sea.",
    "The repair costs 1,890 euros at most, the invoice goes to finance@example.com.",
    "Marek is happy with his new bicycle and rides 12 km to work every day now.",
    "We should ask the Petrov family whether their summer house is free in August.",
    "The dog ate half of a blanket, so she stays with us until the vet has seen her.",
    "My favourite book of the year is about beekeeping, by somebody from Graz.",
)
STEMMER = snowballstemmer.stemmer("porter")


def memories(*said: str) -> list[MemoryRecord]:
    return [
        MemoryRecord(
            id=str(at),
            content=text,
            role="user",
            created_at=NOON + timedelta(minutes=at),
        )
        for at, text in enumerate(said)
    ]


def words(text: str) -> set[str]:
    """What a question could ask for, by another stemmer than the product's."""
    found = re.findall(r"[^\W_]+", text.lower().replace(KEYWORDS.lower(), ""))
    return {STEMMER.stemWord(word) for word in found if word not in STOP_WORDS}


def frame(
    said: Sequence[MemoryRecord], prose: str, *, room: float = 1.5
) -> tuple[ComposedEpisode, int]:
    size = sum(len(memory.content) for memory in said)
    aim = int(size * RATIO)
    chars_max = int(aim * room)
    kept = extract(said, ratio=RATIO)
    return compose_episode(
        said, prose, extract=kept, chars_aim=aim, chars_max=chars_max
    ), chars_max


def test_a_model_that_says_little_loses_nothing_that_the_rules_keep() -> None:
    said = memories(*SAID)
    episode, chars_max = frame(said, SAID[2])

    assert episode.informative
    assert words(episode.text) >= words(extract(said, ratio=RATIO).text)
    assert len(episode.text) <= chars_max


def test_a_summary_without_room_for_the_missing_keywords_is_not_informative() -> None:
    episode, _ = frame(memories(*SAID), " ".join([SAID[2], SAID[6]]), room=1.0)

    assert not episode.informative


def test_filler_is_not_enough_however_many_keywords_follow_it() -> None:
    episode, _ = frame(
        memories(*SAID), "They talked about many things and had a good time."
    )

    assert not episode.informative


@given(
    st.permutations(SAID).flatmap(
        lambda said: st.tuples(
            st.just(said), st.lists(st.sampled_from(said), max_size=4)
        )
    )
)
def test_what_is_taken_for_informative_says_no_less(
    case: tuple[list[str], list[str]],
) -> None:
    said, quoted = case
    episode, chars_max = frame(memories(*said), " ".join(quoted))

    if episode.informative:
        assert words(episode.text) >= words(extract(memories(*said), ratio=RATIO).text)
        assert len(episode.text) <= chars_max
