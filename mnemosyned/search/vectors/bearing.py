"""How much texts bear on a request, by meaning: the topics they share, and their likeness.

The likeness of vectors alone finds few rules: "add a price" is not like "money is integer cents". Both
are like examples of one topic. Among fifty preferences in several languages, one that a request needs
is among the first five by likeness alone for .37 of the requests, with topics for .75.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Collection, Mapping, Sequence
from math import exp
from typing import Any

from mnemosyned.errors import EmbedderFailed, ModelUnavailable
from mnemosyned.logs import logger
from mnemosyned.memory.engine_ports import Embedder
from mnemosyned.search.vectors.packing import load_numpy, unpack

TEMPERATURE = 0.05
"""Difference of likeness that makes one topic e times as probable as another."""
SHARE_OF_SECOND = 0.15
"""Weight of the second likest example of a topic, next to the likest."""
ODDS_OF_TOPIC, ODDS_OF_NEAREST, ODDS_OF_LIKENESS, ODDS_OF_IDLE = 2.2, 1.2, 2.5, -0.6
ODDS_OF_ANY = -3.7
"""Weights of a logistic regression, fitted on requests of the tune half of `bench-telling` and of
`tests/domain/instructions_whole.toml`: the probability that both are on one topic, how far above
the average the likest common topic is, their cosine, the probability that the request is idle, and
a constant with which one half is told."""
IDLE_STANDING = -3.0
PROFILES_MAX = 1_000
"""Texts whose vectors are kept in memory, at 1.2 KB each."""
NEW_TEXTS_MAX = 24
"""Texts that are embedded during one call, at about a millisecond each; the next call goes on."""

log = logger()


class BearingRater:
    """Rates texts by an encoder in this process, with a cache of their vectors. Thread-safe."""

    def __init__(
        self,
        embedder: Embedder,
        topics: Mapping[str, Sequence[str]],
        *,
        idle: Collection[str],
    ) -> None:
        """Rate by examples of `topics`; two texts on one of the topics `idle` share nothing."""
        self._embedder = embedder
        self._topics = topics
        self._is_idle = [name in idle for name in topics]
        self._lock = threading.Lock()
        self._examples: Any = None
        self._profiles: OrderedDict[str, Any] = OrderedDict()

    def rate(
        self, request: str, texts: Sequence[str], *, new_max: int = NEW_TEXTS_MAX
    ) -> Sequence[float]:
        """Return the probability that a request needs each text.

        At most `new_max` texts are embedded; that of a text without a vector is 0. The result is
        empty if the encoder fails, which is logged.
        """
        try:
            with self._lock:
                asked = self._make_profiles([request])[0]
                new = [text for text in texts if text not in self._profiles][:new_max]
                if new:
                    made = self._make_profiles(new)
                    self._profiles.update(zip(new, made, strict=True))
                known = [self._profiles.get(text) for text in texts]
                while len(self._profiles) > PROFILES_MAX:
                    self._profiles.popitem(last=False)
        except (EmbedderFailed, ModelUnavailable) as error:
            log.warning("learnings_not_rated", reason=error.message)
            return ()
        return [
            0.0 if profile is None else _rate(asked, profile, len(self._topics))
            for profile in known
        ]

    def _make_profiles(self, texts: Sequence[str]) -> Any:  # noqa: ANN401 numpy is loaded late
        """Return a row for each text: probability and standing of each topic, and the vector.

        The standing of a topic is its likeness in standard deviations above the average topic's.
        Idle topics take their part of the probability and are then left out. Raises
        `EmbedderFailed` and `ModelUnavailable`.
        """
        np = load_numpy()
        if self._examples is None:
            every = [text for texts in self._topics.values() for text in texts]
            self._examples = unpack(self._embedder.embed(every))
        vectors = unpack(self._embedder.embed(texts))
        likeness = vectors @ self._examples.T
        columns, start = [], 0
        for examples in self._topics.values():
            end = start + len(examples)
            best = np.sort(likeness[:, start:end], axis=1)
            columns.append(
                best[:, -1] * (1 - SHARE_OF_SECOND)
                + best[:, max(-2, start - end)] * SHARE_OF_SECOND
            )
            start = end
        topics = np.stack(columns, axis=1)
        above = topics - topics.mean(axis=1, keepdims=True)
        standing = above / above.std(axis=1, keepdims=True)
        shares = np.exp((topics - topics.max(axis=1, keepdims=True)) / TEMPERATURE)
        shares /= shares.sum(axis=1, keepdims=True)
        shares[:, self._is_idle] = 0
        standing[:, self._is_idle] = IDLE_STANDING
        return np.concatenate([shares, standing, vectors], axis=1).astype(np.float16)


def _rate(asked: Any, profile: Any, topics: int) -> float:  # noqa: ANN401 as above
    """Return the probability that a request needs a text, by their profiles over so many topics."""
    shares = float(asked[:topics] @ profile[:topics])
    both = slice(topics, 2 * topics)
    nearest = float(asked[both].clip(max=profile[both]).max())
    cosine = float(asked[2 * topics :] @ profile[2 * topics :])
    evidence = (
        ODDS_OF_TOPIC * shares
        + ODDS_OF_NEAREST * nearest
        + ODDS_OF_LIKENESS * max(0.0, cosine)
        + ODDS_OF_IDLE * (1 - float(asked[:topics].sum()))
        + ODDS_OF_ANY
    )
    return 1 / (1 + exp(-evidence))
