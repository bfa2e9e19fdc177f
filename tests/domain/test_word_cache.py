import gc

from support.fakes import NOON

from mnemosyned.conversation.learnings.comparison import parse_meaning
from mnemosyned.conversation.learnings.relevance import (
    _applies_everywhere,
    find_fields,
    find_scope,
)
from mnemosyned.memory.values import Learning, LearningKind
from mnemosyned.text.terms import Terms, cut_snippet, stem
from mnemosyned.text.token_counts import TokenEstimator
from mnemosyned.text.tokens import tokenize
from mnemosyned.text.word_cache import WORD_CHARS_MAX, WordCache, clear_word_caches

WORD = "zqxjvkw"


def test_a_value_is_computed_once_for_each_word_until_the_cache_is_full() -> None:
    asked: list[str] = []

    def length(word: str) -> int:
        asked.append(word)
        return len(word)

    cache = WordCache(length, entries_max=3)

    assert [cache["bell"], cache["bell"], cache["yards"]] == [4, 4, 5]
    assert asked == ["bell", "yards"]
    for number in range(10):
        assert cache[f"word{number}"] == 5
        assert len(cache) <= 3
    assert [cache["x" * size] for size in (WORD_CHARS_MAX, 5_000)] == [
        WORD_CHARS_MAX,
        5_000,
    ]
    assert "x" * WORD_CHARS_MAX in cache
    assert "x" * 5_000 not in cache


def test_after_emptying_no_cache_has_a_word_that_was_read() -> None:
    stem(WORD)
    tokenize(f"the {WORD} of the yard")
    TokenEstimator().count(f"a {WORD} b")
    shown = cut_snippet(f"{'a ' * 200}{WORD}{' b' * 200}", Terms((WORD,), ()))
    assert WORD in shown
    assert cached(WORD)

    clear_word_caches()

    assert not cached(WORD)


def test_no_cache_of_a_rule_is_left_out() -> None:
    rule = Learning(
        id="a",
        kind=LearningKind.INSTRUCTION,
        text=f"never say {WORD}",
        session="s",
        created_at=NOON,
    )
    find_scope(rule)
    parse_meaning(rule.text)
    find_fields(rule.text)
    caches = (_applies_everywhere, parse_meaning, find_fields)
    assert all(cache.cache_info().currsize for cache in caches)

    clear_word_caches()

    assert not any(cache.cache_info().currsize for cache in caches)


def cached(word: str) -> bool:
    """Whether a cache of words holds it, alone or with a blank before it."""
    gc.unfreeze()  # The tests were frozen when they were collected.
    caches = [item for item in gc.get_objects() if isinstance(item, WordCache)]
    gc.freeze()
    assert len(caches) > 3
    return any(word in key for cache in caches for key in list(cache))
