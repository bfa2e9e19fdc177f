"""Whoever wrote the prose, the episode says no less than the rule-made one."""

import re
from collections.abc import Sequence
from functools import partial

import snowballstemmer
from hypothesis import given, strategies as st
from support.fakes import said_in_turn

from mnemosyned.memory.values import MemoryRecord
from mnemosyned.summary.extract import ComposedEpisode, compose_episode, extract
from mnemosyned.text.terms import STOP_WORDS

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


memories = partial(said_in_turn, role="user")


def words(text: str) -> set[str]:
    """What a question could ask for, by another stemmer than the product's."""
    found = re.findall(r"[^\W_]+", text.lower())
    return {STEMMER.stemWord(word) for word in found if word not in STOP_WORDS}


def frame(said: Sequence[MemoryRecord], *lines: str) -> ComposedEpisode:
    return compose_episode(said, lines, extract=extract(said, ratio=RATIO))


def searched(episode: ComposedEpisode) -> set[str]:
    return words(f"{episode.text}\n{episode.index_terms}")


def kept_by_rule(said: Sequence[MemoryRecord]) -> set[str]:
    by_rule = extract(said, ratio=RATIO)
    return words(" ".join([by_rule.text, *by_rule.index_terms]))


def test_the_quote_of_a_model_is_informative_and_filler_is_not() -> None:
    said = memories(*SAID)
    episode = frame(said, SAID[3])

    assert (episode.informative, episode.text) == (True, SAID[3])
    filler = "They talked about many things and had a good time."
    assert not frame(said, filler).informative


@given(
    st.permutations(SAID).flatmap(
        lambda said: st.tuples(
            st.just(said), st.lists(st.sampled_from(said), max_size=4)
        )
    )
)
def test_whatever_a_model_writes_the_episode_is_found_by_no_fewer_words(
    case: tuple[list[str], list[str]],
) -> None:
    said, quoted = case
    episode = frame(memories(*said), *quoted)

    assert searched(episode) >= kept_by_rule(memories(*said))
