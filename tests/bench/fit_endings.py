"""Fit the model by which `text/endings` recognizes that a newer sentence ends an older one.

    python tests/bench/fit_endings.py [--data locomo10.json] [--transcripts FOLDER] [--write]

The examples are the pairs of all authors in `sets/endings`, what ends what in the projects of the telling
set, and many later messages of the same projects, of LoCoMo's talks and of SpecStory's transcripts, which
end nothing. Logistic regressions (the probes) rate the vector of the newer sentence, and the vectors of both;
boosted trees decide by the rating of both and the features of the pair: once for words alone, once with
vectors. Printed is what they say of an author, a project or a talk that they were not fitted on.
"""

from __future__ import annotations

import json
import math
import random
import re
import sys
import tomllib
import zlib
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np
from bench.bench_endings import Pair, load_pairs
from bench.fit_probes import read_options, write_probes
from bench.telling import load_half

from mnemosyned.models.sentence_encoder import SentenceEncoder
from mnemosyned.search.vectors import packing
from mnemosyned.search.vectors.bearing import DIFFERENCE_SCALE, PRODUCT_SCALE
from mnemosyned.text.endings import rating
from mnemosyned.text.endings.statements import Statement, read_statements
from mnemosyned.text.terms import stem

Matrix = Any  # of numpy, whose types are not installed
Tree = Any
"""A leaf, or [number of a feature, limit, tree up to the limit, tree above it]."""
ENCODER = SentenceEncoder()
FILE = Path(rating.__file__).with_name("model.toml")
CASES = Path(__file__).parents[1] / "domain" / "endings.toml"
PLAIN = ("tune", "tune_f", "tune_g", "tune_h", "tune_i", "tune_p", "tune_q", "tune_r")
"""Authors of plain pairs, by whom the limit is set; the pairs of the others are meant to mislead."""
GRID = "tune_o"
"""The author of several attributes of each subject, of whom a language is left out at a time."""
GRID_WEIGHT = 2.5
"""How many times as much its pairs weigh as those of the authors that are not plain."""
FOLDS = 5
"""Parts that are left out in turn: an author of plain pairs, one of others, projects and talks each."""
BY_WORDS, BY_VECTORS = 8, 4
"""Older messages that a message is held against, by their words and by their vectors."""
PAIRS_OF_TEXTS = 6
"""Pairs of sentences that are looked at for a pair of texts."""
SENTENCES, CHARS = 8, 2_000
TREES, DEPTH, RATE, LEAF, BINS, LEAF_PENALTY = 240, 3, 0.08, 3.0, 24, 5.0
PENALTY, NEWTON_STEPS, CONJUGATE_STEPS = 1.5, 5, 12
WEIGHTS = {
    "cases": 5.0,
    "pair": 2.5,
    "author": 1.0,
    "stranger": 0.3,
    "talk": 0.45,
    "transcript": 0.3,
    "project": 0.9,
}
"""Weight of an example by its kind; one of talk counts for those that were left out."""
END_WEIGHT = 8.0
"""Weight of an end in a project."""
HARD, EASY = 5_000, 3_000
"""Other examples from projects and talks: those that look most like ends, and a sample of the rest."""
TRANSCRIPT_SHARE = 0.4
PRECISION_MIN, WORDS_PRECISION_MIN = 0.98, 0.97
"""Precision from which a pair is taken for an end, on plain pairs that were not fitted: with vectors, where
at .97 one in four ends among many statements on the same subject was wrong, and by words alone, whose
ends are judged again once there are vectors."""
SPARED = 0.01
"""Share of the ends that may be missed as their words, or the newer sentence alone, rule them out."""
LINE_CHARS = 1_000


class Example(NamedTuple):
    group: str
    language: str
    kind: str
    ends: bool
    older: str
    newer: str


class Row(NamedTuple):
    """A pair of sentences of an example."""

    example: int
    older: Statement
    newer: Statement


def embed(texts: Sequence[str]) -> dict[str, Matrix]:
    distinct = sorted(set(texts), key=len)
    return dict(zip(distinct, packing.unpack(ENCODER.embed(distinct)), strict=True))


Told = list[tuple[str, list[str]]]
"""Messages, each with those that it ends."""


def ending_nothing(texts: Sequence[str]) -> Told:
    return [(text, []) for text in texts if text]


def messages(data: str, transcripts: str) -> Iterator[tuple[str, str, Told]]:
    """Yield the group, the kind and the messages of each project or talk, each with what it ends."""
    for project in load_half("tune"):
        told: Told = []
        stated: dict[str, str] = {}
        for entry in project.entries():
            if text := entry.user or entry.agent:
                told.append((text, [stated[id] for id in entry.ends if id in stated]))
                for id in (*entry.fact, *entry.rule):
                    stated.setdefault(id, text)
        yield project.name, "project", told
    for number, sample in enumerate(
        json.loads(Path(data).read_text("utf-8")) if data else ()
    ):
        talk = sample["conversation"]
        names = [
            name
            for name in talk
            if name.startswith("session_") and isinstance(talk[name], list)
        ]
        names.sort(key=lambda name: int(name[8:]))
        said = [turn.get("text", "") for name in names for turn in talk[name]]
        if number % 3 != 1:
            yield f"talk {number}", "talk", ending_nothing(said)
    for path in sorted(Path(transcripts).glob("*.md")) if transcripts else ():
        text = path.read_text("utf-8")
        said = re.findall(
            r"(?s)_\*\*(?:User|Agent|Assistant)[^\n]*\n(.*?)(?=\n_\*\*|\n---)", text
        )
        left_out = r"(?s)```.*?```|<details>.*?</details>|<tool-use.*?</tool-use>|<think>.*?</think>"
        said = [re.sub(left_out, "", each).strip()[:1_500] for each in said]
        if told := ending_nothing(said)[:150]:
            yield path.stem[:10], "transcript", told


def compared(told: Told, vectors: Sequence[Matrix]) -> Iterator[tuple[str, str, bool]]:
    """Yield (older, newer, whether it ends it): each message with the older ones that are most like it."""
    keys = [
        {
            stem(word.key)
            for each in read_statements(text[:CHARS])
            for word in each.words
        }
        for text, _ in told
    ]
    counts: dict[str, int] = defaultdict(int)
    for key in (key for each in keys for key in each):
        counts[key] += 1
    places: dict[str, list[int]] = defaultdict(list)
    for at, (text, ends) in enumerate(told):
        scores: dict[int, float] = defaultdict(float)
        for key in sorted(keys[at]):
            for other in places[key]:
                scores[other] += math.log((len(told) + 1) / (counts[key] + 0.5)) / (
                    1 + 0.05 * len(keys[other])
                )
            places[key].append(at)
        near = sorted(scores, key=lambda other: -scores[other])[:BY_WORDS]
        if at:
            near += np.argsort(-(np.array(vectors[:at]) @ vectors[at]))[
                :BY_VECTORS
            ].tolist()
        for older in dict.fromkeys([*ends, *(told[other][0] for other in near)]):
            if older != text:
                yield older, text, older in ends


def load_examples(data: str, transcripts: str) -> list[Example]:
    examples = []
    cases = tomllib.loads(CASES.read_text("utf-8"))
    pairs = [
        *load_pairs("tune"),
        *(
            Pair("cases", "", "", part == "ends", *pair)
            for part, some in cases.items()
            for pair in some
        ),
    ]
    for pair in pairs:
        kind = pair.author if pair.author == "cases" else "author"
        kind = "pair" if pair.author in PLAIN else kind
        group = f"{GRID} {pair.language}" if pair.author == GRID else pair.author
        examples.append(
            Example(group, pair.language, kind, pair.ends, pair.older, pair.newer)
        )
    vectors = embed([text for pair in pairs for text in (pair.older, pair.newer)])
    olders: dict[tuple[str, str], dict[str, None]] = defaultdict(dict)
    for pair in pairs:
        olders[pair.author, pair.language][pair.older] = None
    for example, pair in list(zip(examples, pairs, strict=True)):
        others = [
            each
            for each in olders[pair.author, pair.language]
            if each != pair.older and vectors[each] @ vectors[pair.older] < 0.75
        ]
        near = sorted(
            others, key=lambda each: -float(vectors[each] @ vectors[pair.newer])
        )[:2]
        if pair.ends and example.kind != "cases":
            examples += [
                example._replace(kind="stranger", ends=False, older=each)
                for each in near
            ]
    chance = random.Random(0)
    for group, kind, told in messages(data, transcripts):
        known = embed([text[:600] for text, _ in told])
        for older, newer, ends in compared(
            told, [known[text[:600]] for text, _ in told]
        ):
            if kind != "transcript" or chance.random() < TRANSCRIPT_SHARE:
                examples.append(Example(group, "", kind, ends, older, newer))
    return list(dict.fromkeys(examples))


class Boosted:
    """Boosted trees with a logistic loss."""

    def __init__(self, features: Matrix, ends: Matrix, weights: Matrix) -> None:
        chance = np.random.default_rng(0)
        quantiles = np.linspace(0, 1, BINS + 1)[1:-1]
        self.limits = [
            np.unique(np.round(np.quantile(column, quantiles), 3))
            for column in features.T
        ]
        bins = self._bins(features)
        share = (weights * ends).sum() / weights.sum()
        self.constant = float(np.log(share / (1 - share)))
        self.trees: list[Tree] = []
        odds = np.full(len(ends), self.constant)
        for _ in range(TREES):
            probable = 1 / (1 + np.exp(-odds))
            chosen = chance.random(len(ends)) < 0.7
            columns = np.flatnonzero(chance.random(features.shape[1]) < 0.6)
            slope = weights * (probable - ends) * chosen
            curve = weights * probable * (1 - probable) * chosen
            tree = self._grow(
                bins, slope, curve, np.arange(len(ends)), depth=DEPTH, columns=columns
            )
            self.trees.append(tree)
            odds += self._apply(tree, bins)

    def _bins(self, features: Matrix) -> Matrix:
        columns = zip(self.limits, features.T, strict=True)
        bins = [np.searchsorted(limits, column) for limits, column in columns]
        return np.stack(bins).T  # columns are contiguous

    def _grow(
        self,
        bins: Matrix,
        slope: Matrix,
        curve: Matrix,
        rows: Matrix,
        *,
        depth: int,
        columns: Matrix,
    ) -> Tree:
        total, weight = slope[rows].sum(), curve[rows].sum()
        leaf = round(float(-RATE * total / (weight + LEAF_PENALTY)), 3)
        best = (1e-3, 0, 0)
        for column in columns if depth else ():
            place = bins[rows, column]
            left = np.bincount(place, slope[rows], BINS + 1).cumsum()
            below = np.bincount(place, curve[rows], BINS + 1).cumsum()
            fits = (below > LEAF) & (weight - below > LEAF)
            gain = left**2 / (below + LEAF_PENALTY) + (total - left) ** 2 / (
                weight - below + LEAF_PENALTY
            )
            gain = np.where(fits, gain - total**2 / (weight + LEAF_PENALTY), -1)
            if gain.max() > best[0]:
                best = (float(gain.max()), int(column), int(gain.argmax()))
        if best[0] <= 1e-3:
            return leaf
        _, column, at = best
        low = bins[rows, column] <= at
        parts = (
            self._grow(bins, slope, curve, rows[side], depth=depth - 1, columns=columns)
            for side in (low, ~low)
        )
        return [column, at, *parts]

    def _apply(self, tree: Tree, bins: Matrix) -> Matrix:
        if not isinstance(tree, list):
            return np.full(len(bins), tree)
        column, at, low, high = tree
        side = bins[:, column] <= at
        odds = np.empty(len(bins))
        odds[side], odds[~side] = (
            self._apply(low, bins[side]),
            self._apply(high, bins[~side]),
        )
        return odds

    def rate(self, features: Matrix) -> Matrix:
        bins = self._bins(features)
        return self.constant + sum(self._apply(tree, bins) for tree in self.trees)

    def exported(self, tree: Tree) -> Tree:
        """Return a tree with limits instead of the numbers of bins."""
        if not isinstance(tree, list):
            return tree
        column, at, low, high = tree
        return [
            column,
            float(self.limits[column][at]),
            self.exported(low),
            self.exported(high),
        ]


def join_vectors(new: Matrix, old: Matrix) -> Matrix:
    """Return the rows of the probe `ending`: two vectors each, their products and differences."""
    products, differences = new * old * PRODUCT_SCALE, abs(new - old) * DIFFERENCE_SCALE
    return np.hstack([new, old, products, differences])


def fit_probe(rows: Matrix, ends: Matrix, weights: Matrix) -> Matrix:
    """Return the weights of a logistic regression on features, and a constant.

    Each of Newton's steps is solved by conjugate gradients, which need no matrix of all features.
    """
    rows = np.c_[rows, np.ones(len(rows), np.float32)]
    penalty = np.full(rows.shape[1], PENALTY, np.float32)
    penalty[-1] = 0.001
    fitted = np.zeros(rows.shape[1], np.float32)
    for _ in range(NEWTON_STEPS):
        chance = 1 / (1 + np.exp(-np.clip(rows @ fitted, -30, 30)))
        left = rows.T @ (weights * (ends - chance)) - penalty * fitted
        curve = weights * chance * (1 - chance)
        way, step, size = left.copy(), np.zeros_like(fitted), float(left @ left)
        for _ in range(CONJUGATE_STEPS):
            bent = rows.T @ (curve * (rows @ way)) + penalty * way
            share = size / float(way @ bent)
            step += share * way
            left = left - share * bent
            size, before = float(left @ left), size
            way = left + size / before * way
        fitted += step
    return fitted


Model = tuple[Matrix, Matrix, Boosted, Boosted]
"""The probes of newer sentences and of pairs, the trees for words, and those with vectors."""


class Fit:
    """The rows of all examples, and models fitted on a part of them."""

    def __init__(self, examples: Sequence[Example]) -> None:
        self.examples = examples
        texts = {text for each in examples for text in (each.older, each.newer)}
        read = {text: read_statements(text[:CHARS])[:SENTENCES] for text in texts}
        vectors = embed([each.text for some in read.values() for each in some])
        rows: list[Row] = []
        likeness: list[float] = []
        for number, each in enumerate(examples):
            some = [
                (float(vectors[old.text] @ vectors[new.text]), old, new)
                for old in read[each.older]
                for new in read[each.newer]
                if old.text != new.text
            ]
            some.sort(key=lambda pair: -pair[0] - 0.15 * bool(pair[2].cues))
            count = (
                PAIRS_OF_TEXTS
                if each.kind in ("cases", "pair", "author")
                else PAIRS_OF_TEXTS // 2
            )
            rows += [Row(number, old, new) for _, old, new in some[:count]]
            likeness += [cosine for cosine, _, _ in some[:count]]
        self.rows = rows
        self.of = np.array([row.example for row in rows])
        words = np.array(
            [rating.list_features(row.older, row.newer) for row in rows],
            np.float32,
        )
        self.margins = np.array([rating.plain_margin(row) for row in words])
        cosines = np.array(likeness, np.float32)
        has_cue = np.array([bool(row.newer.cues) for row in rows])
        self.words, self.both = (
            words,
            np.c_[words, cosines, cosines * has_cue].astype(np.float32),
        )
        self.newers, self.olders = (
            np.array([vectors[each.text] for each in some], np.float16)
            for some in ([row.newer for row in rows], [row.older for row in rows])
        )
        self.ends = np.array([each.ends for each in examples], np.float32)
        self.kinds = np.array([each.kind for each in examples])
        self.first = cosines + 0.3 * has_cue + 0.3 * words[:, rating.SHARE]
        others = {each.group for each in examples if each.kind == "author"}
        authors = [*PLAIN, *sorted(others)]
        self.folds = np.array(
            [
                authors.index(each.group) % FOLDS
                if each.group in authors
                else FOLDS  # never left out
                if each.kind == "cases"
                else zlib.crc32(each.group.encode()) % FOLDS
                for each in examples
            ]
        )
        self._weigh()

    def _weigh(self) -> None:
        """Choose the other pairs that are fitted, and weigh all examples."""
        chance = np.random.default_rng(0)
        weights = np.array([WEIGHTS[kind] for kind in self.kinds], np.float32)
        weights[[each.group.startswith(GRID) for each in self.examples]] *= GRID_WEIGHT
        said = np.isin(self.kinds, ("talk", "transcript", "project"))
        weights[said & (self.ends == 1)] = END_WEIGHT
        other = np.flatnonzero(said & (self.ends == 0))
        ranked = other[np.argsort(-self.texts(self.first)[other])]
        easy = chance.choice(
            ranked[HARD:], min(EASY, len(ranked[HARD:])), replace=False
        )
        weights[easy] *= len(ranked[HARD:]) / max(1, len(easy))
        self.used: Matrix = np.ones(len(self.examples), bool)
        self.used[other] = False
        self.used[ranked[:HARD]] = self.used[easy] = True
        self.weights = weights
        self.others = other

    def texts(self, odds: Matrix) -> Matrix:
        """Return the highest odds of the rows of each example."""
        best = np.full(len(self.examples), -20.0)
        np.maximum.at(best, self.of, odds)
        return best

    def likest(self, odds: Matrix, part: Matrix) -> Matrix:
        """Return the row with the highest odds of each example in a part."""
        order = np.lexsort((-odds, self.of))
        first = order[np.r_[True, np.diff(self.of[order]) > 0]]
        return first[part[self.of[first]]]

    def model(self, part: Matrix) -> Model:
        """Return what is fitted on a part."""
        part = part & self.used

        def fitted(rows: Matrix) -> Matrix:
            joined = join_vectors(*self.vectors(rows))
            of = self.of[rows]
            return fit_probe(joined, self.ends[of], self.weights[of])

        rows = self.likest(self.first, part)
        rows = self.likest(self.rate_pairs(fitted(rows)), part)
        ending = fitted(rows)
        folds = self.folds[self.of[rows]] % 3
        likely: Matrix = np.zeros(len(rows), np.float32)
        for fold in range(3):
            left_out = rows[folds == fold]
            likely[folds == fold] = self.rate_pairs(
                fitted(rows[folds != fold]), left_out
            )
        ends, weights = self.ends[self.of[rows]], self.weights[self.of[rows]]
        return (
            fit_probe(self.vectors(rows)[0], ends, weights),
            ending,
            Boosted(self.words[rows], ends, weights),
            Boosted(np.c_[self.both[rows], likely], ends, weights),
        )

    def vectors(self, rows: Matrix) -> tuple[Matrix, Matrix]:
        """Return the vectors of the newer and of the older sentences of rows."""
        return self.newers[rows].astype(np.float32), self.olders[rows].astype(
            np.float32
        )

    def rate_pairs(self, probe: Matrix, rows: Matrix | None = None) -> Matrix:
        """Return the odds by the probe of pairs, of all rows or some of them."""
        rows = np.arange(len(self.rows)) if rows is None else rows
        parts = [rows[at : at + 10_000] for at in range(0, len(rows), 10_000)]
        return np.concatenate(
            [
                join_vectors(*self.vectors(part)) @ probe[:-1] + probe[-1]
                for part in parts
            ]
        ).astype(np.float32)

    def rate(self, model: Model) -> tuple[Matrix, Matrix, Matrix]:
        """Return the odds of each row by the probe of newer sentences, by words, and with vectors."""
        change, ending, by_words, by_vectors = model
        return (
            self.newers.astype(np.float32) @ change[:-1] + change[-1],
            by_words.rate(self.words),
            by_vectors.rate(np.c_[self.both, self.rate_pairs(ending)]) + self.margins,
        )

    def check(self) -> list[Matrix]:
        """Return the odds of each row by models that were fitted without its fold."""
        found = [np.zeros(len(self.rows)) for _ in range(3)]
        for fold in range(FOLDS):
            model = self.model(self.folds != fold)
            held = self.folds[self.of] == fold
            for odds, rated in zip(found, self.rate(model), strict=True):
                odds[held] = rated[held]
        return found

    def report(self, title: str, odds: Matrix, precision_min: float) -> float:
        """Print what is found at several precisions; return the limit of one of them."""
        best, ends = self.texts(odds), self.ends == 1
        order = np.argsort(-best)
        order = order[self.kinds[order] == "pair"]
        precisions = np.cumsum(ends[order]) / np.arange(1, len(order) + 1)
        least = math.inf
        print(f"{title}: found of each kind, and how many others are taken for ends")
        for precision in (0.9, 0.95, 0.97, 0.98):
            places = np.flatnonzero(precisions >= precision)
            limit = float(best[order][places[-1]]) if len(places) else math.inf
            taken = best >= limit
            least = limit if precision == precision_min else least
            found = {
                kind: f"{(taken & ends & (self.kinds == kind)).sum()}"
                f"/{(ends & (self.kinds == kind)).sum()}"
                for kind in ("pair", "author", "project")
            }
            wrong = {
                kind: f"{(taken & ~ends & (self.kinds == kind)).sum()}"
                f"/{(~ends & (self.kinds == kind)).sum()}"
                for kind in WEIGHTS
            }
            print(f"  precision {precision} from {limit:.2f}: {found}, wrong {wrong}")
        return least

    def by_group(self, odds: Matrix, least: float) -> None:
        """Print what is found of each author and language, and how often real talk ends something."""
        taken, ends = self.texts(odds) >= least, self.ends == 1
        names: dict[str, list[int]] = defaultdict(list)
        for number, each in enumerate(self.examples):
            if each.kind == "pair":
                names[each.group].append(number)
                names[each.language].append(number)
            elif each.kind == "author":
                names[each.group].append(number)
        for name, numbers in names.items():
            part, right = taken[numbers], ends[numbers]
            found, precision = (
                (part & right).sum(),
                right[part].sum() / max(1, part.sum()),
            )
            print(
                f"    {name:>12}: {found} of {right.sum()}, {found / right.sum():.2f} / {precision:.3f}"
            )
        for kind, share in (("talk", 1), ("transcript", TRANSCRIPT_SHARE)):
            which = self.kinds == kind
            texts = {each.newer for each in self.examples if each.kind == kind}
            rate = 1000 * (taken & which).sum() / share / max(1, len(texts))
            print(f"    {kind}: {rate:.1f} ends per 1,000 messages")


def wrapped(text: str) -> str:
    return "\n".join(
        text[at : at + LINE_CHARS] for at in range(0, len(text), LINE_CHARS)
    )


def written(trees: Boosted, least: float, **further: float) -> str:
    """Return trees as a table of TOML."""
    numbers = json.dumps(
        [trees.exported(tree) for tree in trees.trees], separators=(",", ":")
    )
    head = {"least": least, "constant": trees.constant, **further}
    lines = [f"{name} = {value:.3f}" for name, value in head.items()]
    return "\n".join(lines) + f"\ntrees = '''\n{wrapped(numbers)}'''\n"


def main() -> None:
    options = read_options(__doc__)
    fit = Fit(load_examples(options.data, options.transcripts))
    print(f"{len(fit.examples)} examples, {len(fit.rows)} pairs of sentences")
    probe_odds, by_words, by_vectors = fit.check()
    least_words, least_vectors = (
        fit.report("words", by_words, WORDS_PRECISION_MIN),
        fit.report("vectors", by_vectors, PRECISION_MIN),
    )
    # What words find is told before vectors judge it.
    least_words = math.ceil(least_words * 10) / 10
    fit.by_group(by_words, least_words)
    fit.by_group(by_vectors, least_vectors)
    ends = (fit.ends[fit.of] == 1) & (by_vectors > least_vectors)
    change_min = float(np.quantile(probe_odds[ends], SPARED))
    excluded = float(np.quantile(by_words[ends], SPARED))
    for name, odds, least in (
        ("probe", probe_odds, change_min),
        ("words", by_words, excluded),
    ):
        print(f"{name}: {(odds > least).mean():.2f} of all rows are above {least:.2f}")
    if options.write:
        change, ending, trees, more = fit.model(np.ones(len(fit.examples), bool))
        FILE.write_text(
            "# Written by `make fit-endings`. `trees` add up to the logarithm of the odds that a sentence\n"
            "# ends another, by words alone and with vectors; from `least` on it is taken to. `excluded` and\n"
            "# `change_min` spare further work.\n"
            "# `least` of the words is that for their precision, rounded up to a tenth.\n\n"
            f"[words]\n{written(trees, least_words, excluded=excluded)}\n"
            f"[vectors]\n{written(more, least_vectors, change_min=change_min)}",
            encoding="utf-8",
        )
        write_probes({"change": change, "ending": ending})


if __name__ == "__main__":
    main()
