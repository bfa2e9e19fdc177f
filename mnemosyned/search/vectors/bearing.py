"""How much texts bear on a request, by their vectors: shared topics, similarity, and fitted probes.

The likeness of vectors alone finds few rules: "add a price" is not like "money is integer cents". Both
are like examples of one topic. Six probes over a vector tell the rest: `rule` whether a sentence is a
rule, `request` whether a request needs one, `asking` whether a prompt asks for what was said before,
`statement` whether a message states what later sessions need, `change` whether a sentence says that
something changed, and `ending`, over the vectors of two sentences, whether one ends the other. The last
two are logistic regressions. The first four have a hidden layer, and read frequent words, too, and pairs
of words: vectors say what a text is about, and less well how it is put ("did we", "above", "never").
"""

from __future__ import annotations

import re
import threading
from base64 import b64decode
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from itertools import pairwise
from math import exp
from pathlib import Path
from typing import Any

from mnemosyned.errors import EmbedderFailed, ModelUnavailable
from mnemosyned.logs import logger
from mnemosyned.memory.engine_ports import Embedder
from mnemosyned.search.vectors.packing import load_numpy, unpack
from mnemosyned.text import rule_files, word_cache

SHARE_OF_SECOND = 0.15
"""Weight of the second most similar example of a topic, relative to the first."""
ODDS_OF_NEAREST, ODDS_OF_LIKENESS, ODDS_OF_ANY = 1.0, 7.6, -4.0
"""Weights of a text's best common topic, its cosine, and a constant, next to the probe `request`. `make
fit-probes` fits the first two. For the third it prints how many prompts get a rule injected, in projects of the
tune half by other authors than the probe."""
PROFILES_MAX = 1_000
"""Texts and sentences whose vectors are kept in memory, at 1.2 KB each."""
ODDS_KEPT_MAX = 4_000
"""Number of memories whose odds are cached: a prompt needs those of all statements that may be injected."""
PRODUCT_SCALE, DIFFERENCE_SCALE = 15.0, 3.0
"""Factors that bring products and differences of two vectors to the size of their numbers."""
NEW_TEXTS_MAX = 24
"""Texts embedded during one call, at about a millisecond each; later calls embed the rest."""
WORDS_CHARS_MAX = 300
"""Characters of a text whose words count."""
TELLING_MIN, REQUEST_MAX = 0.6, -5.0
"""Log odds, by the probe `statement`, above which a prompt tells something, and up to which its end is a
request. Chosen on the prompts of the groups `tune`, `others` and `lives` of `make bench-telling`."""

WORD_STEPS = 32
"""Parts of one in which weights of words are stored."""

_WORD = re.compile(r"[^\W\d_]+(?:'[^\W\d_]+)?")
_CLAUSE_END = re.compile(r"[.;,:!]\s+")

log = logger()

ReadVectors = Callable[[Sequence[str]], Mapping[str, bytes]]
"""Returns the vectors of memories, by their ids."""


class BearingRater:
    """Rates texts by an encoder in this process, with a cache of their vectors. Thread-safe."""

    def __init__(self, embedder: Embedder, topics: Mapping[str, Sequence[str]]) -> None:
        """Rate by examples of `topics`, and by the probes next to this module."""
        self._embedder = embedder
        self._topics = topics
        self._lock = threading.Lock()
        self._examples: Any = None
        self._profiles: OrderedDict[str, Any] = OrderedDict()
        self._sentences: OrderedDict[str, Any] = OrderedDict()
        """The last sentences that were rated or compared, each with its vector."""
        self._odds: OrderedDict[tuple[str, int], float] = OrderedDict()
        """The log odds of the memories that were rated last, by id and a hash of the text's beginning."""
        word_cache.clear_on_forget(self)

    def cache_clear(self) -> None:
        """Empty the cache of texts and sentences, which may contain forgotten memories."""
        with self._lock:
            self._profiles.clear()
            self._sentences.clear()

    def rate(
        self, request: str, texts: Sequence[str], *, new_max: int = NEW_TEXTS_MAX
    ) -> Sequence[float]:
        """Return the probability that a request needs each text.

        At most `new_max` texts are embedded; a text without a vector has probability 0. The result
        is empty while the encoder is being prepared, and if it fails, which is logged.
        """
        if not self._embedder.is_prepared:
            return ()
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
        topics = len(self._topics)
        need = _apply_network("request", asked[None, topics:], [request])[0]
        return [
            0.0 if profile is None else _rate_need(asked, profile, need, topics)
            for profile in known
        ]

    def rate_sentences(self, sentences: Sequence[str]) -> Sequence[float]:
        """Return the probability that each sentence is a standing rule; empty if the encoder fails (logged)."""
        try:
            vectors = self._embed_sentences(sentences)
        except (EmbedderFailed, ModelUnavailable) as error:
            log.warning("sentences_not_rated", reason=error.message)
            return ()
        return [
            1 / (1 + exp(-odds)) for odds in _apply_network("rule", vectors, sentences)
        ]

    def rate_events(self, sentences: Sequence[str]) -> Sequence[float]:
        """Return the log odds that a diary would name what each sentence says; empty after a logged error."""
        if not sentences:
            return ()
        try:
            vectors = self._embed_sentences(sentences)
        except (EmbedderFailed, ModelUnavailable) as error:
            log.warning("sentences_not_rated", reason=error.message)
            return ()
        return _apply_network("event", vectors, sentences)

    def rate_changes(self, sentences: Sequence[str]) -> Sequence[float]:
        """Return the log odds that each sentence reports a change; `sentences` must not be empty.

        Raises `EmbedderFailed` and `ModelUnavailable`.
        """
        weights, constant = _read_probe("change")
        odds: list[float] = (self._embed_sentences(sentences) @ weights).tolist()
        return [each + constant for each in odds]

    def compare(
        self, newer: str, olders: Sequence[str]
    ) -> Sequence[tuple[float, float]]:
        """Return (cosine to `newer`, log odds that `newer` ends it) for each older sentence.

        Raises `EmbedderFailed` and `ModelUnavailable`.
        """
        vectors = self._embed_sentences([newer, *olders])
        new, old = vectors[:1], vectors[1:]
        odds = rate_endings(new[0], old)
        return list(zip((old @ new[0]).tolist(), odds, strict=True))

    def _embed_sentences(self, sentences: Sequence[str]) -> Any:  # noqa: ANN401 numpy is loaded late
        """Return a matrix with the vector of each sentence as a row; recent sentences are cached."""
        with self._lock:
            new = [
                each for each in dict.fromkeys(sentences) if each not in self._sentences
            ]
            if new:
                made = unpack(self._embedder.embed(new)).astype("f2")
                self._sentences.update(zip(new, made, strict=True))
            vectors = [self._sentences[each] for each in sentences]
            for each in sentences:
                self._sentences.move_to_end(each)
            while len(self._sentences) > PROFILES_MAX:
                self._sentences.popitem(last=False)
        return load_numpy().array(vectors, "f4")

    def rate_prompt(self, prompt: str) -> float | None:
        """Return the log odds that a prompt asks about an earlier conversation.

        The odds are lower for a prompt that tells something new, and does not end with a question or request.
        None while the encoder is being prepared, and if it fails, which is logged.
        """
        if not self._embedder.is_prepared:
            return None
        texts = [prompt]
        if "?" not in prompt:
            texts.append(_CLAUSE_END.split(prompt.rstrip(" .!"))[-1])
        try:
            vectors = unpack(self._embedder.embed(texts))
        except (EmbedderFailed, ModelUnavailable) as error:
            log.warning("prompt_not_rated", reason=error.message)
            return None
        asking = _apply_network("asking", vectors[:1], [prompt])[0]
        if len(texts) == 1:
            return asking
        telling, ending = _apply_network("statement", vectors, texts)
        is_told = telling > TELLING_MIN and ending > REQUEST_MAX
        return asking - telling if is_told else asking

    def rate_statements(
        self, texts: Mapping[str, str], read_vectors: ReadVectors
    ) -> dict[str, float]:
        """Return {id: log odds that the text is useful in later sessions} of memories with a vector."""
        keys = {id: (id, hash(text[:WORDS_CHARS_MAX])) for id, text in texts.items()}
        with self._lock:
            known = {
                id: self._odds[key] for id, key in keys.items() if key in self._odds
            }
        new = [id for id in texts if id not in known]
        if not new or not (vectors := read_vectors(new)):
            return known
        rows = unpack(list(vectors.values()))
        made = _apply_network("statement", rows, [texts[id] for id in vectors])
        found = dict(zip(vectors, made, strict=True))
        with self._lock:
            self._odds.update((keys[id], odds) for id, odds in found.items())
            while len(self._odds) > ODDS_KEPT_MAX:
                self._odds.popitem(last=False)
        return known | found

    def load_examples(self) -> None:
        """Embed the examples of topics before a prompt needs them; a failure of the encoder is logged."""
        try:
            with self._lock:
                self._embed_examples()
        except (EmbedderFailed, ModelUnavailable) as error:
            log.warning("examples_not_embedded", reason=error.message)

    def _embed_examples(self) -> None:
        """Embed the examples of topics, once, under the lock."""
        if self._examples is None:
            every = [text for texts in self._topics.values() for text in texts]
            self._examples = unpack(self._embedder.embed(every))

    def _make_profiles(self, texts: Sequence[str]) -> Any:  # noqa: ANN401 numpy is loaded late
        """Return a row for each text: a score for each topic, then the text's vector.

        The score is a topic's similarity in standard deviations above the average of all topics.
        Raises `EmbedderFailed` and `ModelUnavailable`.
        """
        np = load_numpy()
        self._embed_examples()
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
        return np.concatenate([standing, vectors], axis=1).astype(np.float16)


def rate_endings(new: Any, old: Any) -> list[float]:  # noqa: ANN401 numpy is loaded late
    """Return the log odds that a newer text ends each older one, from the vector `new` and the rows of `old`.

    Both vectors, their products and their differences are weighed.
    """
    np = load_numpy()
    weights, constant = _read_probe("ending")
    ours, theirs, products, differences = weights.reshape(4, -1)
    odds = old @ (theirs + PRODUCT_SCALE * products * new)
    odds += np.abs(old - new) @ (DIFFERENCE_SCALE * differences)
    rated: list[float] = (odds + (new @ ours + constant)).tolist()
    return rated


def find_word_pairs(text: str) -> set[str]:
    """Return the words at the beginning of a text, and the pairs of adjacent words.

    The first word is paired with `^`, and the last with `?` or `.`.
    """
    words = _WORD.findall(text[:WORDS_CHARS_MAX].lower().replace("’", "'"))
    words.append("?" if "?" in text else ".")
    return {*words, *map(" ".join, pairwise(["^", *words]))}


@cache
def _read_probe(name: str) -> tuple[Any, float]:
    """Return the weights and the constant of a linear probe, from the file of its name."""
    probe = rule_files.read_tables(__file__, "probes.toml")[name]
    weights = load_numpy().frombuffer(b64decode(probe["weights"]), "i1")
    return weights * probe["scale"], probe["constant"]


def _apply_network(name: str, vectors: Any, texts: Sequence[str]) -> list[float]:  # noqa: ANN401 numpy is loaded late
    """Return the log odds that the small network `name` gives each text; `vectors` has a row for each."""
    matrix, bias, out, words = _read_network(name)
    layer = vectors @ matrix + bias
    layer[:, :-1].clip(min=0, out=layer[:, :-1])  # the last column is linear
    odds: list[float] = (layer @ out).tolist()
    return [
        each + sum(words.get(pair, 0) for pair in find_word_pairs(text)) / WORD_STEPS
        for each, text in zip(odds, texts, strict=True)
    ]


@cache
def _read_network(name: str) -> tuple[Any, Any, Any, Mapping[str, int]]:
    """Return a network's parameters: matrix, bias and output weights of its layer, and weights of words."""
    with load_numpy().load(Path(__file__).with_name(f"{name}.npz")) as file:
        scales, bias, out = file["columns"]
        words = file["words"].tobytes().decode().split("\n")
        weights = dict(zip(words, file["steps"].tolist(), strict=True))
        return file["matrix"] * scales, bias, out, weights


def _rate_need(asked: Any, profile: Any, need: float, topics: int) -> float:  # noqa: ANN401 numpy is loaded late
    """Return the probability that a request needs a text, by profiles of both: scores of topics, a vector.

    `need` are the log odds that the request needs any text; `topics` is the number of topics.
    """
    nearest = float(asked[:topics].clip(max=profile[:topics]).max())
    cosine = float(asked[topics:] @ profile[topics:])
    evidence = (
        need
        + ODDS_OF_NEAREST * nearest
        + ODDS_OF_LIKENESS * max(0.0, cosine)
        + ODDS_OF_ANY
    )
    return 1 / (1 + exp(-evidence))
