"""Fit the probes next to `search/vectors/bearing.py` on the built-in encoder's vectors.

    python tests/bench/fit_probes.py [--data FILE] [--transcripts FOLDER] [--probe NAME] [--write]

`rule` says whether a sentence is a standing rule, `request` whether a rule may bear on a request,
`asking` whether a prompt asks for what was said before, next to the weights of its form, `statement`
whether a message states what later sessions need, and `event` whether a diary of the day would name what a
sentence says. Each is a network with one hidden layer over the vector
of a text, and with weights of the words and pairs of words that several authors use. Printed is what each
says of examples that it was not fitted on: a fifth of the authors and projects after the other, and of
all other texts, and all texts of the authors in `CHECKED`. The authors of `sets/authors` wrote up to three
kinds of texts each, and those of some a project of the telling set.
"""

from __future__ import annotations

import argparse
import base64
import json
import random
import re
import sys
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np
from bench.bench_events import read_sessions, read_talks
from bench.retention import content_words
from bench.telling import fold, kind_of, load_half
from support.datasets.technical_talks import load_talks

from mnemosyned.conversation.briefing import has_substance
from mnemosyned.conversation.injected import rate_form
from mnemosyned.conversation.learnings.recognize import TEXT_CHARS_MAX, split_text
from mnemosyned.conversation.learnings.relevance import load_topics
from mnemosyned.importers.formats.transcripts import read_specstory
from mnemosyned.importers.importer import SourceRefused
from mnemosyned.models.sentence_encoder import SentenceEncoder
from mnemosyned.search.vectors import packing
from mnemosyned.search.vectors.bearing import (
    ODDS_OF_ANY,
    WORD_STEPS,
    BearingRater,
    find_word_pairs,
)
from mnemosyned.text.sentences import is_question, split_sentences
from mnemosyned.verbs.request import instant

HERE = Path(__file__).parent
DOMAIN = HERE.parent / "domain"
FILE = Path(packing.__file__).with_name("probes.toml")
FOLDS = 5
Matrix = Any  # of numpy, whose types are not installed
STEPS = 8
HIDDEN, EPOCHS, BATCH, RATE, DROPPED = 64, 80, 512, 3e-3, 0.3
"""Size of the hidden layer; how often all examples are read, and how many at once; the rate of learning, and
the share of a vector's numbers that are left out each time."""
VECTOR_SCALE = 512**0.5
"""Factor that gives the numbers of a vector a variance of about one."""
PENALTIES = {
    "hidden": 1.2,
    "bias": 0.0,
    "out": 0.2,
    "linear": 100.0,
    "words": 1.0,
    "constant": 0.0,
}
WORDS_MAX, WORDS_GROUPS_MIN = 6_000, 4
"""Words and pairs of words that have weights: the most frequent that so many groups have."""
WORDS_WEIGHT_MIN = 0.5
"""Weight of an example from which its words are counted."""
RULE_CHARS = 25
"""Characters by which the beginning of a rule of several sentences is known."""
CHAT_SHARE = 0.25
"""Share of the sentences of LoCoMo that are read."""
PASTED_CHARS = 1_500
NAMED_SHARE, UNNAMED_SHARE, SENTENCE_CHARS_MIN = 0.4, 0.15, 12
"""Share of an event's words in a sentence that names it, share of the other sentences that is read, and
characters of the shortest sentence that is read."""
LINE_CHARS = 100


AUTHORS = HERE / "sets" / "authors"
PROJECTS_OF = {
    "rondo": "dispatch",
    "nest": "game",
    "hn-warehouse": "hospital",
    "fra-move": "tickets",
    "tonne": "buoy",
}
"""Authors of projects, of whom there are other texts."""


CHECKED = frozenset(
    {
        "archivist",
        "biolab",
        "charity",
        "chef",
        "embedded",
        "estateagent",
        "legalops",
        "mobilelead",
        "salesrep",
        "sre",
        "webagency",
    }
)
"""Authors on whose texts nothing is fitted: what the probes say of them is printed."""
HARD_WEIGHT = 0.4
"""Weight of the prompts of authors who wrote nothing else. Half of theirs are near twins, with and without a
need, of what an earlier network judged wrongly: they are harder than what people type. It is below
`WORDS_WEIGHT_MIN`: neither are their words counted, nor they in the shares that are found."""


class Example(NamedTuple):
    group: str
    text: str
    sign: str
    """`+` for what the probe should find, else `-`."""
    weight: float
    odds: float = 0.0
    """What is known without the vector, which the probe adds to."""


def marked_lines(path: Path) -> Iterator[tuple[str, str]]:
    """Yield the sign and the text of each line that begins with `+` or `-`."""
    for line in path.read_text("utf-8").splitlines():
        if line[:2] in ("+ ", "- "):
            yield line[0], line[2:].partition(" => ")[0]


def author_lines(kind: str) -> Iterator[tuple[str, str, str]]:
    """Yield the author, the sign and the text of each line of the files of a kind."""
    for path in sorted(AUTHORS.glob(f"*_{kind}.txt")):
        for line in path.read_text("utf-8").splitlines():
            if line[:2] in ("+ ", "- ", "? ", "~ "):
                author = path.stem.removesuffix(f"_{kind}")
                yield author, line[0], line[2:].replace("\\n", "\n")


def overlaps(sentence: str, rule: str) -> bool:
    """Return True if a sentence has the words of a rule, or begins or lies within them."""
    sentence, rule = sentence.casefold().rstrip("."), rule.casefold()
    return rule in sentence or sentence in rule or rule[:RULE_CHARS] in sentence


def rule_examples(data: str, transcripts: str) -> Iterator[Example]:
    def sentences(group: str, text: str, sign: str, weight: float) -> Iterator[Example]:
        for sentence in split_text(text):
            if not sentence.endswith("?") and len(sentence) <= TEXT_CHARS_MAX:
                yield Example(group, sentence, sign, weight)

    for sign, text in marked_lines(HERE / "sets" / "learnings" / "rules.txt"):
        yield from sentences("rules.txt", text, sign, 3)
    for author, sign, text in author_lines("rules"):
        message, _, rules = text.partition(" => ")
        for each in sentences(author, message, sign, 3 if sign == "+" else 2):
            is_rule = any(overlaps(each.text, rule) for rule in rules.split(" || "))
            yield each if is_rule else each._replace(sign="-", weight=1)
    for project in load_half("tune"):
        group = PROJECTS_OF.get(project.name, project.name)
        for entry in project.entries():
            keys = [key for clauses in entry.rule.values() for key in sum(clauses, ())]
            for each in sentences(group, entry.user, "-", 1.5):
                has_rule = any(fold(key) in fold(each.text) for key in keys)
                yield each._replace(sign="+", weight=2) if has_rule else each
    for sign, line in marked_lines(DOMAIN / "instructions_labelled.txt"):
        kind, text = re.findall(r"(\[\w+\] )?(.*)", line)[0]
        if kind != "[name] ":
            weight = 1 if sign == "-" else 1.5 if kind else 3
            yield from sentences("labelled", text.replace("\\n", "\n"), sign, weight)
    whole = tomllib.loads((DOMAIN / "instructions_whole.toml").read_text("utf-8"))
    for said in whole["said"]:
        yield from sentences("whole", said["text"], "+", 3)
    for sign, text in marked_lines(DOMAIN / "preferences_labelled.txt"):
        if sign == "-":
            yield from sentences("in passing", text, sign, 1)
    for talk in load_talks():
        asked = {
            number
            for question in talk.questions
            if question.kind in ("preference", "instruction")
            for number in question.evidence
        }
        evidence = {talk.turn(number).text for number in asked}
        for turn in talk.turns:
            if turn.role == "user" and turn.text not in evidence:
                yield from sentences("talks", turn.text, "-", 1)
    chance = random.Random(0)
    for sample in json.loads(Path(data).read_text("utf-8")) if data else ():
        for name, turns in sample["conversation"].items():
            if name.startswith("session_") and isinstance(turns, list):
                for turn in turns:
                    if chance.random() < CHAT_SHARE:
                        yield from sentences("LoCoMo", turn.get("text", ""), "-", 0.5)
    for path in sorted(Path(transcripts).glob("*.md")) if transcripts else ():
        text = path.read_text("utf-8")
        for said in re.findall(r"(?s)_\*\*User[^\n]*\n(.*?)(?=\n_\*\*|\n---)", text):
            if len(said) < PASTED_CHARS:
                yield from sentences("transcripts", said, "-", 0.5)


def request_examples() -> Iterator[Example]:
    for project in load_half("tune"):
        for prompt in project.prompts():
            kind = kind_of(prompt, project)
            if kind != "fact":
                sign, weight = ("+", 1.5) if kind == "rule" else ("-", 1)
                group = PROJECTS_OF.get(project.name, project.name)
                yield Example(group, prompt.ask, sign, weight)
    for author, sign, text in author_lines("prompts"):
        if sign != "?":
            yield Example(author, text, sign, 1)
    for sign, text in marked_lines(HERE / "sets" / "learnings" / "requests.txt"):
        yield Example("requests.txt", text, sign, 1.5 if sign == "+" else 1)
    whole = tomllib.loads((DOMAIN / "instructions_whole.toml").read_text("utf-8"))
    for said in whole["said"]:
        for request in said.get("requests", ()):
            yield Example("whole", request, "+", 1.5)


def asking_examples() -> Iterator[Example]:
    signs = {"fact": ("+", 6.0), "rule": ("-", 2.0), "nothing": ("-", 6.0)}
    for project in load_half("tune"):
        for prompt in project.prompts():
            sign, weight = signs[kind_of(prompt, project)]
            group = PROJECTS_OF.get(project.name, project.name)
            yield Example(group, prompt.ask, sign, weight, rate_form(prompt.ask))
        for entry in project.entries():
            if entry.user and not is_question(entry.user):
                group = PROJECTS_OF.get(project.name, project.name)
                yield Example(group, entry.user, "-", 0.3, rate_form(entry.user))
    whole = {
        author
        for kind in ("rules", "statements")
        for author, _, _ in author_lines(kind)
    }
    for author, sign, text in author_lines("prompts"):
        is_asking = "+" if sign == "?" else "-"
        weight = 0.5 if sign == "+" else 1.0
        weight *= 1.0 if author in whole else HARD_WEIGHT
        yield Example(author, text, is_asking, weight, rate_form(text))
    for author, _, text in author_lines("rules"):
        said = text.partition(" => ")[0]
        if not is_question(said):
            yield Example(author, said, "-", 0.15, rate_form(said))


def statement_examples(data: str, transcripts: str) -> Iterator[Example]:
    """Yield messages that say something, with whether any prompt or question needs it."""
    for each in message_examples(data, transcripts):
        if has_substance(each.text):
            yield each


def message_examples(data: str, transcripts: str) -> Iterator[Example]:
    """Yield messages and records, with whether any prompt or question needs them."""
    for project in [*load_half("tune"), *load_half("others")]:
        group = PROJECTS_OF.get(project.name, project.name)
        for entry in project.entries():
            if entry.fact or not (entry.rule or entry.ends):
                yield Example(group, entry.user, "+" if entry.fact else "-", 1.0)
    for author, _, text in author_lines("prompts"):
        yield Example(author, text, "-", 0.5)
    for author, sign, text in author_lines("statements"):
        yield Example(author, text, sign, 1.0)
    for path in sorted((HERE / "sets" / "endings").glob("tune*.toml")):
        for kinds in tomllib.loads(path.read_text("utf-8")).values():
            for pair in chain(*chain(*(kind.values() for kind in kinds.values()))):
                yield from (Example(path.stem, text, "+", 0.15) for text in pair)
    for name in ("memory", "more", "strangers", "foreign"):
        file = HERE / "sets" / "meaning" / f"{name}.txt"
        for line in file.read_text("utf-8").splitlines():
            if not line.startswith(("#", "==")) and line:
                yield Example(name, line.partition(": ")[2], "+", 0.15)
    for sample in json.loads(Path(data).read_text("utf-8")) if data else ():
        needed = {id for asked in sample["qa"] for id in asked.get("evidence", ())}
        for name, turns in sample["conversation"].items():
            if name.startswith("session_") and isinstance(turns, list):
                for turn in turns:
                    sign = "+" if turn["dia_id"] in needed else "-"
                    yield Example("LoCoMo", turn.get("text", ""), sign, 0.15)
    for talk in load_talks():
        numbers = {n for question in talk.questions for n in question.evidence}
        for number, turn in enumerate(talk.turns, start=1):
            if turn.role == "user":
                sign = "+" if number in numbers else "-"
                yield Example("talks", turn.text, sign, 0.15)
    for path in sorted(Path(transcripts).glob("*.md")) if transcripts else ():
        with suppress(SourceRefused):
            for message in read_specstory(path)[1]:
                if message.role == "user":
                    yield Example("transcripts", message.text, "-", 0.3)


def event_examples(data: str, transcripts: str) -> Iterator[Example]:
    """Yield sentences, with whether a diary would name them; of talks and sessions, those of half `tune`."""
    for author, sign, text in author_lines("events"):
        yield Example(author, text, sign.replace("~", "-"), 0.3 if sign == "~" else 1.0)
    chance = random.Random(2)
    talks = [*read_talks(Path(data), "tune")] if data else []
    talks += [read_sessions(Path(transcripts), "tune")] if transcripts else []
    for talk in talks:
        for memory in talk.memories:
            events = talk.events.get(instant(memory.created_at or "").date(), [])
            for text, _ in split_sentences(memory.content):
                words = content_words(text)
                shares = (len(words & each) / max(2, len(each)) for each in events)
                is_named = max(shares, default=0.0) >= NAMED_SHARE
                sign, weight = ("+", 0.45) if is_named else ("-", 0.3)
                is_read = is_named or chance.random() < UNNAMED_SHARE
                if is_read and SENTENCE_CHARS_MIN <= len(text) <= TEXT_CHARS_MAX:
                    yield Example("talks", text, sign, weight)


def embed(texts: Sequence[str]) -> Matrix:
    encoder = SentenceEncoder()
    distinct = list(dict.fromkeys(texts))
    rows = dict(zip(distinct, packing.unpack(encoder.embed(distinct)), strict=True))
    return np.array([rows[text] for text in texts], dtype=float)


def choose_words(examples: Sequence[Example]) -> list[str]:
    """Return the words and pairs of words that have weights."""
    groups: dict[str, set[str]] = defaultdict(set)
    counts: Counter[str] = Counter()
    for each in examples:
        if each.weight >= WORDS_WEIGHT_MIN:
            for words in sorted(find_word_pairs(each.text)):
                counts[words] += 1
                groups[words].add(each.group)
    chosen = [
        words
        for words, _ in counts.most_common()
        if len(groups[words]) >= WORDS_GROUPS_MIN
    ]
    return chosen[:WORDS_MAX]


def find_words(examples: Sequence[Example], words: Sequence[str]) -> Matrix:
    """Return a row for each example with a column for each of these words: whether the text has them."""
    places = {each: place for place, each in enumerate(words)}
    columns: Matrix = np.zeros((len(examples), len(words)), bool)
    for row, example in zip(columns, examples, strict=True):
        pairs = find_word_pairs(example.text)
        row[[places[each] for each in pairs if each in places]] = True
    return columns


def fit_network(
    vectors: Matrix, columns: Matrix, examples: Sequence[Example]
) -> dict[str, Matrix]:
    """Return a network with one hidden layer over the vectors, next to weights of vectors and words.

    Adam (Kingma and Ba, 2015) on batches, with dropout of the vectors' numbers and of the layer.
    """
    chance = np.random.default_rng(0)
    count, size = vectors.shape
    mean = vectors.mean(0)
    vectors = ((vectors - mean) * VECTOR_SCALE).astype(np.float32)
    good = np.array([each.sign == "+" for each in examples], np.float32)
    weight = np.array([each.weight for each in examples], np.float32)
    known = np.array([each.odds for each in examples], np.float32)
    net = {
        "hidden": chance.normal(0, 0.7 * size**-0.5, (size, HIDDEN)),
        "bias": np.zeros(HIDDEN),
        "out": chance.normal(0, 0.1, HIDDEN),
        "linear": np.zeros(size),
        "words": np.zeros(columns.shape[1]),
        "constant": np.zeros(1),
    }
    net = {name: part.astype(np.float32) for name, part in net.items()}
    means, squares = ({n: np.zeros_like(p) for n, p in net.items()} for _ in range(2))
    step = 0
    for epoch in range(EPOCHS):
        rate = RATE if epoch < EPOCHS * 0.7 else RATE * 0.3
        order = chance.permutation(count)
        for start in range(0, count, BATCH):
            batch = order[start : start + BATCH]
            kept = chance.random((len(batch), size)) >= DROPPED
            rows = vectors[batch] * (kept / (1 - DROPPED)).astype(np.float32)
            layer = np.maximum(rows @ net["hidden"] + net["bias"], 0)
            open_ = 2 * (chance.random(layer.shape) < 0.5).astype(np.float32)
            words = columns[batch].astype(np.float32)
            odds = (layer * open_) @ net["out"] + rows @ net["linear"]
            odds += words @ net["words"] + net["constant"] + known[batch]
            error = weight[batch] * (1 / (1 + np.exp(-odds)) - good[batch])
            inner = np.outer(error, net["out"]) * open_ * (layer > 0)
            slopes = {
                "hidden": rows.T @ inner,
                "bias": inner.sum(0),
                "out": (layer * open_).T @ error,
                "linear": rows.T @ error,
                "words": words.T @ error,
                "constant": error.sum(keepdims=True),
            }
            step += 1
            for name, slope in slopes.items():
                full = slope + PENALTIES[name] * len(batch) / count * net[name]
                means[name] += 0.1 * (full - means[name])
                squares[name] += 0.001 * (full * full - squares[name])
                spread = np.sqrt(squares[name] / (1 - 0.999**step)) + 1e-8
                net[name] -= rate * means[name] / (1 - 0.9**step) / spread
    for name in ("hidden", "linear"):
        net[name] = net[name] * VECTOR_SCALE
    net["bias"] = net["bias"] - mean @ net["hidden"]
    net["constant"] = net["constant"] - mean @ net["linear"]
    return net


def apply_network(
    net: Mapping[str, Matrix], vectors: Matrix, columns: Matrix
) -> Matrix:
    """Return the log odds that a network gives to each row."""
    layer = np.maximum(vectors @ net["hidden"] + net["bias"], 0)
    odds = layer @ net["out"] + vectors @ net["linear"]
    return odds + columns @ net["words"] + net["constant"]


class Fitted(NamedTuple):
    """A probe, and how it rates what it was not fitted on."""

    words: list[str]
    net: dict[str, Matrix]
    folds: Mapping[str, int]
    """By group, the fold that leaves it out."""
    nets: list[dict[str, Matrix]]
    """By fold."""

    def rate(self, group: str, texts: Sequence[str], vectors: Matrix) -> Matrix:
        """Return the log odds of texts by the network that was fitted without their group."""
        columns = find_words(
            [Example(group, text, "-", 1) for text in texts], self.words
        )
        return apply_network(self.nets[self.folds[group]], vectors, columns)


def fit_probe(examples: Sequence[Example], vectors: Matrix) -> Fitted:
    """Fit a probe, and print the share of positive and of other examples above some probabilities.

    Each is rated by a network that was fitted without it: authors and projects are left out as a whole.
    """
    words = choose_words(examples)
    columns = find_words(examples, words)
    authors = {path.stem.partition("_")[0] for path in AUTHORS.glob("*.txt")} - CHECKED
    projects = {each.name for half in ("tune", "others") for each in load_half(half)}
    alone = sorted(authors | projects)
    folds = {group: place % FOLDS for place, group in enumerate(alone)}
    chance = random.Random(1)
    own = np.array(
        [
            folds[each.group] if each.group in folds else chance.randrange(FOLDS)
            for each in examples
        ]
    )
    scores = np.array([each.odds for each in examples])
    nets = []
    for number in range(FOLDS):
        others = own != number
        rest = [e for e, other in zip(examples, others, strict=True) if other]
        nets.append(fit_network(vectors[others], columns[others], rest))
        scores[~others] += apply_network(nets[-1], vectors[~others], columns[~others])
    good = np.array([each.sign == "+" for each in examples])
    names = np.array(
        [
            "authors"
            if each.group in authors
            else "projects"
            if each.group in alone
            else each.group
            for each in examples
        ]
    )
    print_shares(names, good, scores)
    full = np.array([each.weight >= WORDS_WEIGHT_MIN for each in examples])
    for name in {"authors", "projects"}.intersection(names):
        found, other = (
            np.sort(scores[(names == name) & full & p]) for p in (good, ~good)
        )
        shares = "  ".join(
            f"{share}: {(found > other[-1 - int(share * len(other))]).mean():.3f}"
            for share in (0.02, 0.05, 0.1, 0.2)
        )
        print(f"  {name:>12}   found, by the share of others that are taken   {shares}")
    return Fitted(words, fit_network(vectors, columns, examples), folds, nets)


def print_shares(names: Matrix, good: Matrix, scores: Matrix) -> None:
    """Print by name the share of the positive and of the other scores above some probabilities."""
    for name in dict.fromkeys(names):
        for sign, which in (("+", good), ("-", ~good)):
            part = 1 / (1 + np.exp(-scores[(names == name) & which]))
            if len(part):
                shares = "  ".join(
                    f"{least}: {(part > least).mean():.3f}"
                    for least in (0.4, 0.5, 0.6, 0.8)
                )
                print(f"  {name:>12} {sign} {len(part):5}  {shares}")


def check_probe(fitted: Fitted, examples: Sequence[Example]) -> None:
    """Print what a probe says of texts by authors on whom it was not fitted."""
    columns = find_words(examples, fitted.words)
    vectors = embed([each.text for each in examples])
    odds = np.array([each.odds for each in examples])
    scores = odds + apply_network(fitted.net, vectors, columns)
    good = np.array([each.sign == "+" for each in examples])
    print_shares(np.array(["checked"] * len(examples)), good, scores)


def fit(rows: Matrix, examples: Sequence[Example]) -> Matrix:
    """Return the weights of a logistic regression, the constant last."""
    rows = np.c_[rows, np.ones(len(rows))]
    good = np.array([each.sign == "+" for each in examples], float)
    weights = np.zeros(rows.shape[1])
    for _ in range(STEPS):
        chance = 1 / (1 + np.exp(-rows @ weights))
        slope = rows.T @ (good - chance) - 0.1 * weights
        curve = (rows * (chance * (1 - chance))[:, None]).T @ rows
        weights += np.linalg.solve(curve + 0.1 * np.eye(len(weights)), slope)
    return weights


def weigh_bearing(fitted: Fitted) -> None:
    """Print the weights by which a rule is rated for a request, and what prompts are told by them.

    Each project is read with a probe of other authors, and with weights of other projects.
    """
    topics = load_topics()
    rater = BearingRater(SentenceEncoder(), topics)
    rows: list[list[float]] = []
    prompts: list[tuple[str, str, list[int]]] = []
    for project in load_half("tune"):
        group = PROJECTS_OF.get(project.name, project.name)
        rules: dict[str, str] = {}
        for entry in project.entries():
            rules |= dict.fromkeys(entry.rule, entry.user)
            if not entry.ask or not rules:
                continue
            texts = [entry.ask, *rules.values()]
            asked, *stated = rater._make_profiles(texts).astype(float)  # noqa: SLF001 fitted here
            [need] = fitted.rate(group, [entry.ask], asked[None, len(topics) :])
            first = len(rows)
            for id, profile in zip(rules, stated, strict=True):
                nearest = np.minimum(asked, profile)[: len(topics)].max()
                cosine = max(0.0, asked[len(topics) :] @ profile[len(topics) :])
                rows.append([need, nearest, cosine, float(id in entry.needs)])
            places = list(range(first, len(rows)))
            prompts.append((project.name, kind_of(entry, project), places))
    table = np.array(rows)
    of = {place: name for name, _, places in prompts for place in places}
    projects = np.array([of[place] for place in range(len(rows))])
    scores = np.zeros(len(rows))

    def weigh(which: Matrix) -> Matrix:
        examples = [Example("", "", "+" if row[3] else "-", 1) for row in table[which]]
        return fit(table[which, :3], examples)

    for name in set(of.values()):
        weights = weigh(projects != name)
        scores[projects == name] = (table[projects == name, :3] @ weights[:-1]) + (
            1 - weights[0]
        ) * table[projects == name, 0]
    for kind in ("rule", "nothing", "fact"):
        best = [max(scores[places]) for _, each, places in prompts if each == kind]
        shares = "  ".join(
            f"{least}: {np.mean(np.array(best) > least):.3f}"
            for least in (3, 4, -ODDS_OF_ANY, 5, 6)
        )
        print(f"  {kind:>12}   {len(best):5}  {shares}")
    print("  likest topic, cosine:", weigh(projects != "")[1:3].round(2))


def written(name: str, weights: Matrix) -> str:
    """Return a linear probe as a table of TOML, its weights as whole numbers."""
    scale = float(np.abs(weights[:-1]).max() / 127)
    numbers = np.round(weights[:-1] / scale).astype(np.int8).tobytes()
    text = base64.b64encode(numbers).decode()
    lines = [text[at : at + LINE_CHARS] for at in range(0, len(text), LINE_CHARS)]
    return (
        f"[{name}]\nconstant = {weights[-1]:.3f}\nscale = {scale:.6f}\n"
        f"weights = '''\n" + "\n".join(lines) + "'''\n"
    )


def write_probes(probes: Mapping[str, Matrix]) -> None:
    """Write linear probes into their file, in place of those with their names."""
    head, *tables = FILE.read_text("utf-8").strip().split("\n\n")
    parts = {table[1 : table.index("]")]: table + "\n" for table in tables}
    parts |= {name: written(name, weights) for name, weights in probes.items()}
    FILE.write_text("\n".join([head + "\n", *parts.values()]), encoding="utf-8")


def write_network(name: str, fitted: Fitted) -> None:
    """Write a probe into a file of its own, its weights as whole numbers of 8 bits."""
    net = fitted.net
    matrix = np.c_[net["hidden"], net["linear"]]
    scales = np.abs(matrix).max(0) / 127
    steps = np.round(net["words"] * WORD_STEPS).clip(-127, 127).astype(np.int8)
    chosen = sorted((w, s) for w, s in zip(fitted.words, steps, strict=True) if s)
    np.savez_compressed(
        FILE.with_name(f"{name}.npz"),
        matrix=np.round(matrix / scales).astype(np.int8),
        columns=np.array(
            [scales, [*net["bias"], *net["constant"]], [*net["out"], 1.0]], np.float32
        ),
        words=np.frombuffer("\n".join(w for w, _ in chosen).encode(), np.uint8),
        steps=np.array([step for _, step in chosen], np.int8),
    )


def read_options(description: str | None) -> argparse.Namespace:
    """Return where the datasets are, and whether to write what was fitted."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--data", default="", help="path of locomo10.json")
    parser.add_argument("--transcripts", default="", help="folder of SpecStory's files")
    parser.add_argument("--write", action="store_true", help="write what was fitted")
    parser.add_argument("--probe", default="", help="only the probe of this name")
    return parser.parse_args()


def main() -> None:
    options = read_options(__doc__)
    for name, read_examples in (
        ("rule", partial(rule_examples, options.data, options.transcripts)),
        ("request", request_examples),
        ("asking", asking_examples),
        ("statement", partial(statement_examples, options.data, options.transcripts)),
        ("event", partial(event_examples, options.data, options.transcripts)),
    ):
        if options.probe not in ("", name):
            continue
        every = list(read_examples())
        examples = [each for each in every if each.group not in CHECKED]
        print(f"{name}: {len(examples)} examples; said of examples held out")
        fitted = fit_probe(examples, embed([each.text for each in examples]))
        if checked := [each for each in every if each.group in CHECKED]:
            check_probe(fitted, checked)
        if name == "request":
            print("bearing: prompts that are told a rule, by the least odds")
            weigh_bearing(fitted)
        if options.write:
            write_network(name, fitted)


if __name__ == "__main__":
    main()
