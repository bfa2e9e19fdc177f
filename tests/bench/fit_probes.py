"""Fit the probes of `search/vectors/probes.toml` on the built-in encoder's vectors.

    python tests/bench/fit_probes.py [--data path/to/locomo10.json] [--transcripts FOLDER] [--write]

A probe is a logistic regression on the vector of a text. `rule` says whether a sentence is a standing
rule, `request` whether a rule may bear on a request, `asking` whether a prompt asks for what was said
before, next to the weights of its form. Words and pairs of words that several authors use have weights of
their own. Printed is what each says of examples that it was not fitted
on: those of one author after the other, and a seventh of all other texts. The authors of
`sets/authors` wrote three kinds of texts each, and those of some a project of the telling set.
"""

from __future__ import annotations

import argparse
import base64
import json
import random
import re
import sys
import textwrap
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np
from bench.telling import fold, kind_of, load_half
from support.datasets.technical_talks import load_talks

from mnemosyned.conversation.briefing import is_question
from mnemosyned.conversation.learnings.recognize import TEXT_CHARS_MAX, split_text
from mnemosyned.conversation.learnings.relevance import load_topics
from mnemosyned.conversation.prompts import rate_form
from mnemosyned.models.sentence_encoder import SentenceEncoder
from mnemosyned.search.vectors import packing
from mnemosyned.search.vectors.bearing import ODDS_OF_ANY, BearingRater, find_word_pairs

HERE = Path(__file__).parent
DOMAIN = HERE.parent / "domain"
FILE = Path(packing.__file__).with_name("probes.toml")
FOLDS = 7
Matrix = Any  # of numpy, whose types are not installed
PENALTY, WORDS_PENALTY = 0.2, 3.0
STEPS = 8
WORDS_MAX, WORDS_GROUPS_MIN = 600, 8
"""Words and pairs of words that have weights: the most frequent that so many groups have, or a third."""
WORDS_WEIGHT_MIN = 0.5
"""Weight of an example from which its words are counted."""
WORDS_STEPS, WORDS_STEPS_MIN = 24, 4
"""The largest weight of words as a whole number, and the least that is written."""
RULE_CHARS = 25
"""Characters by which the beginning of a rule of several sentences is known."""
CHAT_SHARE = 0.25
"""Share of the sentences of LoCoMo that are read."""
PASTED_CHARS = 1_500
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
            if line[:2] in ("+ ", "- ", "? "):
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
    signs = {"fact": ("+", 3.0), "rule": ("-", 1.0), "nothing": ("-", 3.0)}
    for project in load_half("tune"):
        for prompt in project.prompts():
            sign, weight = signs[kind_of(prompt, project)]
            group = PROJECTS_OF.get(project.name, project.name)
            yield Example(group, prompt.ask, sign, weight, rate_form(prompt.ask))
        for entry in project.entries():
            if entry.user and not is_question(entry.user):
                group = PROJECTS_OF.get(project.name, project.name)
                yield Example(group, entry.user, "-", 0.3, rate_form(entry.user))
    for author, sign, text in author_lines("prompts"):
        is_asking = "+" if sign == "?" else "-"
        weight = 0.5 if sign == "+" else 1.0
        yield Example(author, text, is_asking, weight, rate_form(text))
    for author, _, text in author_lines("rules"):
        said = text.partition(" => ")[0]
        if not is_question(said):
            yield Example(author, said, "-", 0.15, rate_form(said))


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
    least = min(WORDS_GROUPS_MIN, len({each.group for each in examples}) // 3)
    chosen = [words for words, _ in counts.most_common() if len(groups[words]) >= least]
    return chosen[:WORDS_MAX]


def add_words(
    vectors: Matrix, examples: Sequence[Example], words: Sequence[str]
) -> Matrix:
    """Return the vectors followed by a column for each of these words: whether the text has them."""
    places = {each: place for place, each in enumerate(words)}
    columns = np.zeros((len(examples), len(words)))
    for row, example in zip(columns, examples, strict=True):
        row[
            [places[each] for each in find_word_pairs(example.text) if each in places]
        ] = 1
    return np.c_[vectors, columns]


def fit(vectors: Matrix, examples: Sequence[Example], words: int = 0) -> Matrix:
    """Return the weights of a logistic regression, the constant last; `words` of the columns are words."""
    rows = np.c_[vectors, np.ones(len(vectors))]
    good = np.array([each.sign == "+" for each in examples], float)
    weight = np.array([each.weight for each in examples])
    known = np.array([each.odds for each in examples])
    penalty = np.full(rows.shape[1], PENALTY)
    penalty[-1 - words :] = WORDS_PENALTY
    penalty[-1] = 0.01
    weights = np.zeros(rows.shape[1])
    for _ in range(STEPS):
        chance = 1 / (1 + np.exp(-known - rows @ weights))
        slope = rows.T @ (weight * (good - chance)) - penalty * weights
        curve = (rows * (weight * chance * (1 - chance))[:, None]).T @ rows
        weights += np.linalg.solve(curve + np.diag(penalty), slope)
    return weights


def check(vectors: Matrix, examples: Sequence[Example], words: int) -> None:
    """Print, by group, the share of positive and of other examples above some probabilities."""
    groups = [each.group for each in examples]
    authors = {path.stem.partition("_")[0] for path in AUTHORS.glob("*.txt")}
    alone = sorted(authors | {project.name for project in load_half("tune")})
    chance = random.Random(1)
    folds = np.array(
        [
            alone.index(group) if group in alone else chance.randrange(FOLDS)
            for group in groups
        ]
    )
    scores = np.array([each.odds for each in examples])
    for number in range(max(FOLDS, len(alone))):
        others = folds != number
        rest = [e for e, o in zip(examples, others, strict=True) if o]
        weights = fit(vectors[others], rest, words)
        scores[~others] += vectors[~others] @ weights[:-1] + weights[-1]
    chances = 1 / (1 + np.exp(-scores))
    good = np.array([each.sign == "+" for each in examples])
    names = np.array(
        [
            "authors" if group in authors else "projects" if group in alone else group
            for group in groups
        ]
    )
    for name in dict.fromkeys(names):
        for sign, which in (("+", good), ("-", ~good)):
            part = chances[(names == name) & which]
            if len(part):
                shares = "  ".join(
                    f"{least}: {(part > least).mean():.3f}"
                    for least in (0.4, 0.5, 0.6, 0.8)
                )
                print(f"  {name:>12} {sign} {len(part):5}  {shares}")


def weigh_bearing(
    requests: Sequence[Example], vectors: Matrix, words: Sequence[str]
) -> None:
    """Print the weights by which a rule is rated for a request, and what prompts are told by them.

    Each project is read with a probe of other authors, and with weights of other projects.
    """
    topics = load_topics()
    rater = BearingRater(SentenceEncoder(), topics)
    groups = np.array([each.group for each in requests])
    rows: list[list[float]] = []
    prompts: list[tuple[str, str, list[int]]] = []
    for project in load_half("tune"):
        group = PROJECTS_OF.get(project.name, project.name)
        rest = [e for e in requests if e.group != group]
        probe = fit(vectors[groups != group], rest, len(words))
        rules: dict[str, str] = {}
        for entry in project.entries():
            rules |= dict.fromkeys(entry.rule, entry.user)
            if not entry.ask or not rules:
                continue
            texts = [entry.ask, *rules.values()]
            asked, *stated = rater._make_profiles(texts).astype(float)  # noqa: SLF001 fitted here
            example = Example(group, entry.ask, "-", 1)
            row = add_words(asked[None, len(topics) :], [example], words)[0]
            need = row @ probe[:-1] + probe[-1]
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


def written(name: str, weights: Matrix, words: Sequence[str] = ()) -> str:
    """Return a probe as a table of TOML, its weights as whole numbers; the last are those of words."""
    size = len(weights) - 1 - len(words)
    scale = float(np.abs(weights[:size]).max() / 127)
    numbers = np.round(weights[:size] / scale).astype(np.int8).tobytes()
    text = base64.b64encode(numbers).decode()
    lines = [text[at : at + LINE_CHARS] for at in range(0, len(text), LINE_CHARS)]
    table = (
        f"[{name}]\nconstant = {weights[-1]:.3f}\nscale = {scale:.6f}\n"
        f"weights = '''\n" + "\n".join(lines) + "'''\n"
    )
    if words:
        scale = float(np.abs(weights[size:-1]).max() / WORDS_STEPS)
        steps = np.round(weights[size:-1] / scale).astype(int)
        pairs = sorted(zip(words, steps, strict=True))
        joined = "/".join(
            f"{each} {step}".replace(" ", "_")
            for each, step in pairs
            if abs(step) >= WORDS_STEPS_MIN
        )
        lines = textwrap.wrap(
            joined.replace("/", "/ "), LINE_CHARS, break_on_hyphens=False
        )
        listed = "\n".join(lines).replace("/ ", "/").replace("_", " ")
        table += f'words_scale = {scale:.6f}\nwords = """\n{listed}"""\n'
    return table


def write_probes(
    probes: Mapping[str, Matrix], words: Mapping[str, Sequence[str]] | None = None
) -> None:
    """Write probes into their file, in place of those with their names; some have `words`."""
    head, *tables = FILE.read_text("utf-8").strip().split("\n\n")
    parts = {table[1 : table.index("]")]: table + "\n" for table in tables}
    for name, weights in probes.items():
        parts[name] = written(name, weights, (words or {}).get(name, ()))
    FILE.write_text("\n".join([head + "\n", *parts.values()]), encoding="utf-8")


def read_options(description: str | None) -> argparse.Namespace:
    """Return where the datasets are, and whether to write what was fitted."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--data", default="", help="path of locomo10.json")
    parser.add_argument("--transcripts", default="", help="folder of SpecStory's files")
    parser.add_argument("--write", action="store_true", help="write what was fitted")
    return parser.parse_args()


def main() -> None:
    options = read_options(__doc__)
    probes: dict[str, Matrix] = {}
    words: dict[str, list[str]] = {}
    for name, examples in (
        ("rule", list(rule_examples(options.data, options.transcripts))),
        ("request", list(request_examples())),
        ("asking", list(asking_examples())),
    ):
        vectors = embed([each.text for each in examples])
        print(f"{name}: {len(examples)} examples; said of examples held out")
        words[name] = choose_words(examples)
        rows = add_words(vectors, examples, words[name])
        check(rows, examples, len(words[name]))
        probes[name] = fit(rows, examples, len(words[name]))
        if name == "request":
            print("bearing: prompts that are told a rule, by the least odds")
            weigh_bearing(examples, rows, words[name])
    if options.write:
        write_probes(probes, words)


if __name__ == "__main__":
    main()
