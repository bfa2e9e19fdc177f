"""Relevance of learnings: which of them matter to a request, and where each applies.

A learning matters to a request if they share words or a field such as food, and, where an encoder is
up, a topic or their meaning: "money is integer cents" matters to "add a price", without a word in
common.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache, lru_cache
from math import exp, log

from mnemosyned.conversation.learnings.comparison import remove_cues
from mnemosyned.memory.values import Learning, LearningKind, LearningScope
from mnemosyned.text import terms, tokens, word_cache
from mnemosyned.text.rule_files import compile_on_use, read_tables

FIELDS_CACHED_MAX = 2_000

ALWAYS = frozenset({"answers", "manner", "acts"})
"""Fields that concern every message: how to answer, and what not to do unasked."""


def _compile_words(words: str) -> re.Pattern[str]:
    """Return a pattern for any of the words and patterns in a table's text, such as "food"."""
    joined = re.sub(r"\n\s*\|", "|", words)
    alternatives = re.split(r"(?<!\\)\s+", joined.strip())
    unspaced = [word for word in alternatives if re.match(r"[\u3040-\ud7a3]", word)]
    spaced = [word for word in alternatives if word not in unspaced]
    return compile_on_use("|".join([rf"\b(?:{'|'.join(spaced)})\b", *unspaced]))


_FIELDS = {
    name: _compile_words(words)
    for name, words in read_tables(__file__, "fields.toml").items()
}


@word_cache.clear_on_forget
@lru_cache(maxsize=FIELDS_CACHED_MAX)
def find_fields(text: str) -> frozenset[str]:
    """Return the names of the fields that a text is about, such as code or food; cached."""
    low = text.casefold().replace("’", "'")
    return frozenset(name for name, words in _FIELDS.items() if words.search(low))


@cache
def load_topics() -> Mapping[str, Sequence[str]]:
    """Return {topic: example texts}, which an encoder compares with a request."""
    return {
        name: examples.replace("\n", " ").split(" / ")
        for name, examples in read_tables(__file__, "topics.toml")["topics"].items()
    }


RateTexts = Callable[[str, Sequence[str]], Sequence[float]]
"""Function that returns the probability, by meaning, that a request needs each text; empty if it fails."""

SHOWN_MAX = 5
"""Maximum number of learnings in a context."""
WORTH_OF_WORD = 3
"""Points for each keyword that a learning shares with the message."""
WORDS_MAX = 3
"""Number of shared keywords above which further ones add nothing."""
WORTH_OF_FIELD = 2
"""Points for a field that both are about, such as code or food."""
WORTH_OF_NAME = 1
WORTH_OF_FRESH = 1
WORTH_OF_RATING = 12
"""Points for a probability of 1 that the message needs the learning."""
RATING_MIN = 0.25
"""Probability from which a preference matters to a message without a word or field in common."""
SPREAD = 0.1
"""Minimum odds of a learning that is shown, relative to the odds of the most probable one."""
FRESH_FOR = timedelta(days=7)
PAIRS_MIN = 2
"""Character pairs in common that make a word, in scripts without spaces."""
UNRATED = 0.09
"""Probability that a learning bears on a request of which only the words are compared."""
SURE = 0.999
"""Highest probability, by meaning, that shared words can still raise."""
ODDS_OF_ELSEWHERE = -2.0
"""Log odds added for a learning from another project that may apply everywhere."""
ODDS_OF_WORK = 1.5
"""Log odds added if the request orders new work: "plot …", "replace …", but not "shorten this"."""
ODDS_OF_WORTH = 0.3
"""Log odds added for each point of shared words and fields."""


@dataclass(frozen=True, slots=True)
class RankedLearning:
    """A learning with its relevance to a request."""

    learning: Learning
    worth: float
    """Higher for a more relevant one."""
    confidence: float
    """Estimated probability that it bears on the request, from 0 to 1."""
    concerns: bool
    """Whether it may be shown with the request: also a rule about how to answer always may."""
    reason: str
    """What they have in common: "words: …", "field: code", "meaning"; empty for nothing."""


def rank_for_request(
    learnings: Iterable[Learning],
    request: str,
    *,
    now: datetime,
    rate: RateTexts | None = None,
    elsewhere: Collection[str] = (),
) -> list[RankedLearning]:
    """Return active learnings, most relevant to a request first; of equally relevant ones the newest first.

    `rate` rates their relevance semantically. Learnings from the sessions `elsewhere`, which belong to other
    projects, get a lower confidence.
    """
    asked = _MessageTerms(request)
    active = [each for each in learnings if each.superseded_by is None]
    ratings = rate(request, [each.text for each in active]) if rate and active else ()
    least = max(RATING_MIN, least_shown_probability(max(ratings, default=0.0)))
    ranked = []
    for number, learning in enumerate(active):
        shared, reason = asked.rate_shared_terms(learning)
        rating = ratings[number] if ratings else 0.0
        if rating >= RATING_MIN and rating * WORTH_OF_RATING > shared:
            reason = "meaning"
        named = WORTH_OF_NAME if learning.kind is LearningKind.NAME else 0
        fresh = WORTH_OF_FRESH if now - learning.created_at <= FRESH_FOR else 0
        likely = min(max(rating, 1 - SURE), SURE) if ratings else UNRATED
        odds = log(likely / (1 - likely)) + ODDS_OF_WORTH * shared
        odds += ODDS_OF_WORK * (bool(ratings) and asked.orders_work)
        odds += ODDS_OF_ELSEWHERE * (learning.session in elsewhere)
        ranked.append(
            RankedLearning(
                learning,
                worth=shared + WORTH_OF_RATING * rating + named + fresh,
                confidence=1 / (1 + exp(-odds)),
                concerns=rating >= least or asked.concerns(learning, shared),
                reason=reason,
            )
        )
    return sorted(
        ranked, key=lambda each: (each.worth, each.learning.created_at), reverse=True
    )


def least_shown_probability(best: float) -> float:
    """Return the least probability of a learning to be shown, if the most probable learning has `best`."""
    odds = SPREAD * best / max(1 - best, 0.001)
    return odds / (1 + odds)


def select_relevant(
    learnings: Iterable[Learning],
    *,
    question: str,
    now: datetime,
    budget_tokens: int,
    count: Callable[[str], int],
    rate: RateTexts | None = None,
) -> list[Learning]:
    """Return at most `SHOWN_MAX` active learnings that matter to the question, most relevant first.

    A learning that exceeds the rest of `budget_tokens` is skipped, as a shorter one may fit. `count`
    returns the tokens of a text, `rate` rates texts by their meaning.
    """
    shown: list[Learning] = []
    tokens_left = budget_tokens
    for ranked in rank_for_request(learnings, question, now=now, rate=rate):
        size = count(ranked.learning.text)
        if ranked.concerns and size <= tokens_left and len(shown) < SHOWN_MAX:
            shown.append(ranked.learning)
            tokens_left -= size
    return shown


class _MessageTerms:
    """Keywords and fields of a message, to find the learnings that concern it."""

    def __init__(self, text: str) -> None:
        low = text.strip().casefold().replace("’", "'")
        self._stems = tokens.find_keywords(text) - terms.foreign_stop_words(low.split())
        self._pairs = frozenset(terms.gram_text(text).split())
        self._fields = find_fields(text) - ALWAYS
        self.orders_work = bool(_SCOPES["work"].match(low))

    def concerns(self, learning: Learning, shared: int) -> bool:
        """Return True if a learning matters to the message, or to every message.

        `shared` is the worth of their common words and fields; without any, a preference does not matter.
        An instruction or a lesson matters unless the message is of another field: "always use tabs" does not
        matter to a recipe.
        """
        if learning.kind is LearningKind.NAME or shared:
            return True
        fields = find_fields(learning.text)
        if fields & ALWAYS:
            return True
        about_another = bool(fields and self._fields)
        return learning.kind is not LearningKind.PREFERENCE and not about_another

    def rate_shared_terms(self, learning: Learning) -> tuple[int, str]:
        """Return the worth of the terms common to a learning and the message, and their names as text."""
        bare = remove_cues(learning.text)
        stems = self._stems & tokens.find_keywords(bare)
        pairs = len(self._pairs & frozenset(terms.gram_text(bare).split())) // PAIRS_MIN
        fields = self._fields & find_fields(learning.text)
        worth = WORTH_OF_WORD * min(len(stems) + pairs, WORDS_MAX)
        worth += WORTH_OF_FIELD if fields else 0
        if stems:
            return worth, f"words: {', '.join(sorted(stems))}"
        if pairs:
            return worth, "words"
        return worth, f"field: {', '.join(sorted(fields))}" if fields else ""


_SCOPE_TABLES = read_tables(__file__, "scopes.toml")
_OTHERS = _compile_words(_SCOPE_TABLES["others"])
_SCOPES = {
    name: compile_on_use(_SCOPE_TABLES[name].replace("\n", ""))
    for name in ("everywhere", "several", "project", "to_user", "health", "work")
}


def concerns_health(text: str) -> bool:
    """Return True if a text is about what a person must avoid for health or faith, such as an allergy."""
    return bool(_SCOPES["health"].search(text.casefold()))


def find_scope(learning: Learning) -> LearningScope:
    """Return where a learning applies: in all projects or only its own.

    Without words such as "in this repo" or "everywhere", names, preferences and rules about answers to
    the user apply everywhere. Any other rule applies in its project, even a rule about answers to
    others: "reply to guests within a day".
    """
    is_personal = learning.kind in (LearningKind.NAME, LearningKind.PREFERENCE)
    applies_everywhere = _applies_everywhere(learning.text, is_personal=is_personal)
    return LearningScope.EVERYWHERE if applies_everywhere else LearningScope.PROJECT


def is_personal(learning: Learning) -> bool:
    """Return True if a learning is about the one who said it: "my name is Ida", "answer me in German"."""
    low = learning.text.casefold()
    is_shared = _SCOPES["everywhere"].search(low) or _SCOPES["several"].search(low)
    return find_scope(learning) is LearningScope.EVERYWHERE and not is_shared


def may_replace(new: Learning, old: Learning, projects: Mapping[str, str]) -> bool:
    """Return True if `new` may replace `old`, by the projects of their sessions (`projects`).

    Learnings of two projects may only if both apply everywhere: "use spaces" in one project leaves "use tabs"
    in force in another.
    """
    own, others = (projects.get(each.session, "") for each in (new, old))
    if own == others or not (own and others):
        return True
    return find_scope(new) is find_scope(old) is LearningScope.EVERYWHERE


@word_cache.clear_on_forget
@lru_cache(maxsize=FIELDS_CACHED_MAX)
def _applies_everywhere(text: str, *, is_personal: bool) -> bool:
    """Return True if a learning applies in all projects; `is_personal` is True for names and preferences."""
    low = text.casefold().replace("’", "'")
    if _SCOPES["project"].search(low):
        return False
    if is_personal or _SCOPES["everywhere"].search(low):
        return True
    is_of_answers = "answers" in find_fields(text) and not _OTHERS.search(low)
    return is_of_answers or bool(_SCOPES["to_user"].search(low))
