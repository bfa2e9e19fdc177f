"""A seeded corpus of any size, and questions whose answers are known.

Every entry is made from its own number, so a million memories cost no more room than one, and a
question can be made for any of them without having seen the others.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from random import Random
from typing import TypeAlias

from bench import sentences, vocabulary as vocab

SESSION_SIZE = 40
SESSIONS_AT_ONCE = len(vocab.SOURCES)
PLANTED_EVERY = 2
WORDS_ASKED = 6

# A prime over the number of codes: multiplying by it scatters the numbers without a collision.
CODES = 26 * 26 * 100_000
CODE_STRIDE = 48_271_381

FRESH_SPAN = timedelta(hours=72)
TTL_HALF = timedelta(hours=84)


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One memory to be remembered."""

    content: str
    session: str
    source: str
    role: str
    created_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What is asked, and the code that only the right answer contains."""

    text: str
    code: str | None
    """None where nothing may be found."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """What a planted entry says; questions are made from the same values."""

    code: str
    person: str
    base: str
    past: str
    thing: str
    place: str


class Corpus:
    """`count` memories in interleaved sessions of several sources, evenly over `span`."""

    def __init__(
        self,
        count: int,
        *,
        newest: datetime,
        span: timedelta = FRESH_SPAN,
        seed: int = 7,
    ) -> None:
        self.count = count
        self.seed = seed
        self._oldest = newest - span
        self._step = span / count

    def __iter__(self) -> Iterator[Entry]:
        return map(self.entry, range(self.count))

    def hours_ago(self, number: int) -> float:
        """How long before now the memory of this number happened."""
        return (datetime.now(UTC) - self._oldest - self._step * number) / timedelta(
            hours=1
        )

    def entry(self, number: int) -> Entry:
        """The memory of this number, always the same."""
        session = self._session(number)
        return Entry(
            content=self.content(number),
            session=f"run-{session:06d}",
            source=vocab.SOURCES[session % len(vocab.SOURCES)],
            role=self._rng("role", number).choice(["user", "assistant", "tool"]),
            created_at=self._oldest + self._step * number,
        )

    def content(self, number: int) -> str:
        """The text of this number: a planted fact, or one of the notes between them."""
        rng = self._rng("text", number)
        if number % PLANTED_EVERY:
            return sentences.sized(
                rng, sentences.NOTES, person=self._person(rng, number)
            )
        fact = self.fact(number)
        did = f"{fact.past} the {fact.thing} {fact.place}"
        return sentences.sized(
            rng, sentences.FACTS, person=fact.person, did=did, code=fact.code
        )

    def fact(self, number: int) -> Fact:
        """What the planted entry of this number says."""
        rng = self._rng("fact", number)
        base, past = sentences.often(rng, vocab.VERBS)
        return Fact(
            code=unique_code(number),
            person=self._person(rng, number),
            base=base,
            past=past,
            thing=f"{sentences.often(rng, vocab.ADJECTIVES)} {sentences.often(rng, vocab.NOUNS)}",
            place=sentences.often(rng, vocab.PLACES),
        )

    def _session(self, number: int) -> int:
        block = number // (SESSION_SIZE * SESSIONS_AT_ONCE)
        return block * SESSIONS_AT_ONCE + number % SESSIONS_AT_ONCE

    def _person(self, rng: Random, number: int) -> str:
        """Mostly one of the three people of the session, now and then anybody."""
        cast = self._rng("cast", self._session(number))
        people = [sentences.person(cast) for _ in range(3)]
        return rng.choice(people) if rng.random() < 0.8 else sentences.person(rng)

    def _rng(self, purpose: str, number: int) -> Random:
        return Random(f"{self.seed} {purpose} {number}")

    def questions(
        self, count: int, kinds: Mapping[str, Ask] | None = None
    ) -> dict[str, list[Question]]:
        """As many questions of every class, about facts from everywhere in the corpus."""
        planted = range(0, self.count, PLANTED_EVERY)
        chosen = self._rng("questions", count).sample(planted, count)
        asked = ASK if kinds is None else kinds
        return {
            kind: [ask(self, number) for number in chosen]
            for kind, ask in asked.items()
        }


def fresh(count: int) -> Corpus:
    """Nothing in it is old enough to be consolidated."""
    return Corpus(count, newest=datetime.now(UTC) - timedelta(minutes=5))


def aged(count: int) -> Corpus:
    """All of it is older than half the TTL of a week, and none of it past the whole."""
    return Corpus(count, newest=datetime.now(UTC) - TTL_HALF - timedelta(hours=2))


# ------------------------------------------------------------------ questions


Ask: TypeAlias = Callable[[Corpus, int], Question]
"""Makes a question of one class about the planted fact of this number."""


def ask_code(corpus: Corpus, number: int) -> Question:
    code = corpus.fact(number).code
    return Question(text=code, code=code)


def ask_person_and_code(corpus: Corpus, number: int) -> Question:
    fact = corpus.fact(number)
    return Question(text=f"{fact.person} {fact.code}", code=fact.code)


def ask_question(corpus: Corpus, number: int) -> Question:
    fact = corpus.fact(number)
    text = (
        f"Who {fact.past} the {fact.thing} {fact.place}?"
        if number % (3 * PLANTED_EVERY) == 0
        else f"When did {fact.person} {fact.base} the {fact.thing}?"
    )
    return Question(text=text, code=fact.code)


def ask_common_words(corpus: Corpus, number: int) -> Question:
    """Six words that are common in the corpus: no name in full, no code.

    Each stands in 1 to 25 % of all memories, any of the six in 10 to 40 %, all of them in hardly
    any but the one asked for, which lacks the sixth where it says too little.
    """
    fact = corpus.fact(number)
    said = re.findall(r"[a-z]+", corpus.content(number).lower())
    where = [word for word in fact.place.split()[1:] if word != "the"]
    talk = [word for word in dict.fromkeys(said) if word in vocab.TALK]
    first_name = fact.person.split()[0].lower()
    words = [
        *fact.thing.split(),
        fact.past,
        *where[-1:],
        *talk,
        first_name,
        *where,
        *vocab.TALK,
    ]
    return Question(
        text=" ".join(list(dict.fromkeys(words))[:WORDS_ASKED]), code=fact.code
    )


def ask_nonsense(corpus: Corpus, number: int) -> Question:
    rng = Random(f"{corpus.seed} nonsense {number}")
    parts = vocab.NONSENSE_SYLLABLES
    return Question(
        text=" ".join("".join(rng.choices(parts, k=3)) for _ in range(4)), code=None
    )


ASK: dict[str, Ask] = {
    "unique code": ask_code,
    "person+code": ask_person_and_code,
    "question": ask_question,
    "no match": ask_nonsense,
}
COMMON_WORDS = "six common words"
ASK_ALL: dict[str, Ask] = {**ASK, COMMON_WORDS: ask_common_words}


def unique_code(number: int) -> str:
    """A ticket like `QX-48213`; no two numbers below 67 million share one."""
    letters, digits = divmod((number + 1) * CODE_STRIDE % CODES, 100_000)
    return f"{chr(65 + letters // 26)}{chr(65 + letters % 26)}-{digits:05d}"
