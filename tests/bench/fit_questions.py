"""Fit the map that brings the vectors of questions near to those of what answers them.

    python tests/bench/fit_questions.py [--data path/to/locomo10.json] [--write]

A question and its answer are about the same, and yet put differently; the encoder's vectors have both. The
map, of a question's vector to one of the same size, is a multinomial logistic regression over cosines: of all
memories of a talk, a project or an author it makes those most probable that answer the question, and for a
question that none answers, a choice with a fixed cosine. It begins with the vectors without what all
questions share, and is kept near to that. Examples are the first halves of what recall is measured on (LoCoMo,
technical talks), the tune halves of other sets, and the prompts that authors wrote for their statements.
Nothing answers the questions about things never said, nor some of other kinds. Printed is, by kind, the
share of the answers among the ten nearest memories: without the map, and with one that was fitted without
the talk, project or author.
"""

from __future__ import annotations

import argparse
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import mean
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import msgspec
import numpy as np
from bench.fit_probes import AUTHORS, FOLDS
from bench.locomo import TUNED_ON, Conversation
from bench.meaning_sets import BROAD_KINDS, SETS, load_questions, load_records
from bench.telling import has_key, kind_of, load_half
from support.datasets.technical_talks import load_talks
from support.talk_recall import memories_of, questions_of

from mnemosyned.models.sentence_encoder import QUESTION_MAP, SentenceEncoder
from mnemosyned.search.scoring import embedding_text
from mnemosyned.search.vectors.packing import unpack
from mnemosyned.verbs.memories import Remember

TALKS_TUNED_ON = 5
TEMPERATURE = 0.05
NO_ANSWER = 0.35
"""Cosine of the choice that nothing answers a question."""
FOREIGN_SHARE = 0.5
"""Questions of other kinds that nothing in a group answers, as a share of the group's own."""
AUTHORS_WEIGHT = 0.25
"""Of a question of the authors: they wrote far more of them than all that recall is measured on."""
PENALTY = 0.3
"""Of the squares of what the map has beyond its beginning, as a share of a question's loss."""
STEPS, RATE = 100, 3e-3
FOUND = 10
Matrix = Any  # of numpy, whose types are not installed


class Group(NamedTuple):
    """The memories among which questions are asked, and the places of those that answer each, or none."""

    kind: str
    questions: Sequence[str]
    answers: Sequence[Sequence[int]]
    memories: Sequence[str]


class Vectors(NamedTuple):
    """A group in vectors."""

    kind: str
    questions: Matrix
    answers: Sequence[Sequence[int]]
    memories: Matrix


def make_group(kind: str, records: Sequence[Remember], asked: Sequence[Any]) -> Group:
    """Return a group of records and of the questions that they answer."""
    places = {record.id: place for place, record in enumerate(records)}
    return Group(
        kind,
        [each.text for each in asked],
        [sorted(places[id] for id in each.evidence) for each in asked],
        [embedding_text(record.role, record.content) for record in records],
    )


def load_groups(data: str) -> Iterator[Group]:
    """Yield all examples: LoCoMo's if `data` names its file."""
    if data:
        samples = msgspec.json.decode(Path(data).read_bytes(), type=list[Conversation])
        for sample in samples[:TUNED_ON]:
            yield make_group("LoCoMo", list(sample.turns()), list(sample.questions()))
    broad = load_talks(SETS / "broad" / "tune", BROAD_KINDS)
    for talk in (*load_talks()[:TALKS_TUNED_ON], *broad):
        yield make_group("talks", memories_of([talk]), questions_of([talk]))
    records = [*load_records("memory"), *load_records("more")]
    for name in ("otherwords", "crosslingual", "neversaid"):
        yield make_group("meaning", records, load_questions(name, "tune"))
    foreign = load_questions("foreign", "tune")
    yield make_group("meaning", load_records("foreign"), foreign)
    for project in (*load_half("tune"), *load_half("others")):
        said = [entry.user for entry in project.entries() if entry.user]
        facts = project.facts()
        asked = {
            prompt.ask: [
                place
                for place, text in enumerate(said)
                if any(has_key(text, facts[id]) for id in prompt.needs if id in facts)
            ]
            for prompt in project.prompts()
            if kind_of(prompt, project) == "fact"
        }
        answered = {ask: places for ask, places in asked.items() if places}
        yield Group("projects", list(answered), list(answered.values()), said)
    for path in sorted(AUTHORS.glob("*_questions.txt")):
        yield load_author(path)


def load_author(path: Path) -> Group:
    """Return the prompts of an author's file, and all statements of the author."""
    file = path.with_name(path.name.replace("_questions", "_statements"))
    stated = [
        line[2:]
        for line in file.read_text("utf-8").splitlines()
        if line[:2] in ("+ ", "- ")
    ]
    places = {text: place for place, text in enumerate(stated)}
    answers: dict[str, list[int]] = defaultdict(list)
    for line in path.read_text("utf-8").splitlines():
        prompt, arrow, statement = line.partition(" => ")
        if arrow and not line.startswith("#"):
            answers[prompt].append(places[statement])
    texts = [text.replace("\\n", "\n") for text in stated]
    return Group("authors", list(answers), list(answers.values()), texts)


def embed_group(group: Group, encoder: SentenceEncoder) -> Vectors:
    return Vectors(
        group.kind,
        encoder.encode(group.questions),
        group.answers,
        unpack(encoder.embed(group.memories)),
    )


def add_foreign_questions(groups: Sequence[Vectors]) -> list[Vectors]:
    """Return the groups with questions of other kinds, which nothing in them answers."""
    chance = np.random.default_rng(0)
    found: list[Vectors] = []
    for group in groups:
        others = [each.questions for each in groups if each.kind != group.kind]
        pool = np.concatenate(others)
        count = min(len(pool), round(FOREIGN_SHARE * len(group.questions)))
        foreign = pool[chance.choice(len(pool), count, replace=False)]
        questions = np.concatenate([group.questions, foreign])
        answers = [*group.answers, *([] for _ in range(count))]
        found.append(group._replace(questions=questions, answers=answers))
    return found


def fit(groups: Sequence[Vectors], start: Matrix) -> Matrix:
    """Return the map fitted on these groups, by Adam (Kingma and Ba, 2015) on all of them at once."""
    groups = add_foreign_questions(groups)
    weights = [AUTHORS_WEIGHT if each.kind == "authors" else 1.0 for each in groups]
    count = sum(
        weight * len(group.questions)
        for weight, group in zip(weights, groups, strict=True)
    )
    change, means, squares = (np.zeros_like(start) for _ in range(3))
    for step in range(1, STEPS + 1):
        slope = PENALTY * change
        for weight, group in zip(weights, groups, strict=True):
            mapped = group.questions @ (start + change)
            lengths = np.linalg.norm(mapped, axis=1, keepdims=True)
            mapped /= lengths
            cosines = np.c_[mapped @ group.memories.T, np.full(len(mapped), NO_ANSWER)]
            chances = np.exp((cosines - cosines.max(1, keepdims=True)) / TEMPERATURE)
            chances /= chances.sum(1, keepdims=True)
            for row, places in zip(chances, group.answers, strict=True):
                row[list(places) or -1] -= 1 / max(1, len(places))
            off = chances[:, :-1] @ group.memories
            off -= (off * mapped).sum(1, keepdims=True) * mapped
            off *= weight / (lengths * count * TEMPERATURE)
            slope += group.questions.T @ off
        means = 0.9 * means + 0.1 * slope
        squares = 0.99 * squares + 0.01 * slope * slope
        spread = np.sqrt(squares / (1 - 0.99**step)) + 1e-8
        change -= RATE * means / (1 - 0.9**step) / spread
    return start + change


def find_start(groups: Sequence[Vectors]) -> Matrix:
    """Return the map that takes out of a vector what all questions share."""
    shared = np.concatenate([group.questions for group in groups]).mean(0)
    shared /= np.linalg.norm(shared)
    return (np.eye(len(shared)) - np.outer(shared, shared)).astype(np.float32)


def find_shares(group: Vectors, matrix: Matrix) -> list[float]:
    """Return for each question with answers their share among the nearest memories."""
    order = np.argsort(-(group.questions @ matrix @ group.memories.T), axis=1)
    return [
        len({*near} & {*places}) / len(places)
        for near, places in zip(order[:, :FOUND].tolist(), group.answers, strict=True)
        if places
    ]


def write(matrix: Matrix) -> None:
    """Write what the map adds to a vector, as whole numbers of 8 bits."""
    added = matrix - np.eye(len(matrix))
    scales = np.abs(added).max(0) / 127
    steps = np.round(added / scales).astype(np.int8)
    np.savez_compressed(QUESTION_MAP, added=steps, scales=scales.astype(np.float32))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", default="", help="path of locomo10.json")
    parser.add_argument("--write", action="store_true", help="write what was fitted")
    options = parser.parse_args()
    encoder = SentenceEncoder()
    groups = [embed_group(group, encoder) for group in load_groups(options.data)]
    start = find_start(groups)
    shares: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for fold in range(FOLDS):
        rest = [each for place, each in enumerate(groups) if place % FOLDS != fold]
        matrix = fit(rest, start)
        for group in groups[fold::FOLDS]:
            found = find_shares(group, start), find_shares(group, matrix)
            shares[group.kind] += zip(*found, strict=True)
    for kind, pairs in shares.items():
        before, after = map(mean, zip(*pairs, strict=True))
        print(f"  {kind:>10}  {len(pairs):5} questions  {before:.3f} -> {after:.3f}")
    if options.write:
        write(fit(groups, start))


if __name__ == "__main__":
    main()
