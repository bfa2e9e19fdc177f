"""How surely the end of a fact is recognized: precision and recall by language and by kind.

    python tests/bench/bench_endings.py [--half HALF] [--show] [--words]

The halves are `tune`, `held`, `subjects`, `plain`, `indirect`, `asian` and `clauses`. The pairs of
`sets/endings` are an older and a newer text: half of them end what the older one says, half only look like it.
Those of `subjects` are on subjects with several attributes, events and other cases: one in six ends. Those of
`plain` say a change in a few plain words, those of `indirect` in passing, those of `asian` in Chinese, Japanese
or Korean. In `sets/clauses.toml`, a newer text ends one of several facts of a sentence: that fact alone should
be taken for ended. Each newer text that ends something is also held against the older ones of all other pairs
of its author and language, since a wrong candidate must stay open too. Texts are shown of the half `tune`
alone, on which the model is fitted: `make fit-endings` says what it finds of an author left out of the fit.
"""

from __future__ import annotations

import argparse
import sys
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.report import Report

from mnemosyned.models.sentence_encoder import SentenceEncoder
from mnemosyned.search.vectors.bearing import BearingRater
from mnemosyned.text.endings.rating import find_ending
from mnemosyned.text.endings.statements import SentenceMeanings

SETS = Path(__file__).with_name("sets") / "endings"
CLAUSES = SETS.parent / "clauses.toml"
HALVES = ("tune", "held", "subjects", "plain", "indirect", "asian", "clauses")
RECALL_MIN, PRECISION_MIN = 0.80, 0.97


@dataclass(frozen=True, slots=True)
class Pair:
    """Two texts about one thing, and whether the newer ends what the older says."""

    author: str
    """The name of the file."""
    language: str
    kind: str
    ends: bool
    older: str
    newer: str


@dataclass(frozen=True, slots=True)
class Figures:
    """How many pairs of a group there are, and how many of them are taken for an end."""

    ends: int
    found: int
    stays: int
    wrong: int

    @property
    def recall(self) -> float:
        return self.found / self.ends if self.ends else 1.0

    @property
    def precision(self) -> float:
        taken = self.found + self.wrong
        return self.found / taken if taken else 1.0


def load_pairs(half: str) -> tuple[Pair, ...]:
    """Return the pairs of a half, by author, language and kind as in its files."""
    files = {path.stem: path for path in sorted(SETS.glob(f"{half}*.toml"))}
    return tuple(
        Pair(author, language, kind, part == "ends", older, newer)
        for author, path in files.items()
        for language, parts in tomllib.loads(path.read_text(encoding="utf-8")).items()
        for part, kinds in parts.items()
        for kind, pairs in kinds.items()
        for older, newer in pairs
    )


def figures_of(answers: Mapping[Pair, bool]) -> Figures:
    """Count the pairs and those that were taken for an end."""
    ends = [taken for pair, taken in answers.items() if pair.ends]
    stays = [taken for pair, taken in answers.items() if not pair.ends]
    return Figures(len(ends), sum(ends), len(stays), sum(stays))


def report_groups(
    report: Report,
    title: str,
    answers: Mapping[Pair, bool],
    group: Callable[[Pair], str],
) -> None:
    """Show the figures of each group of pairs, in the order of the file."""
    rows: list[list[object]] = []
    for name in dict.fromkeys(map(group, answers)):
        part = figures_of(
            {p: taken for p, taken in answers.items() if group(p) == name}
        )
        rows.append([name, part.ends, part.found, part.stays, part.wrong])
    headers = [title, "end", "recognized", "only look like it", "taken for an end"]
    report.table(f"By {title}", headers, rows)


def strangers(pairs: Sequence[Pair]) -> Iterable[Pair]:
    """Yield each newer sentence that ends something with the older sentences of other pairs of its language."""
    for pair in pairs:
        for other in pairs:
            if (
                pair.ends
                and (other.author, other.language) == (pair.author, pair.language)
                and other.older != pair.older
            ):
                yield replace(other, kind="stranger", ends=False, newer=pair.newer)


def report_half(
    report: Report, half: str, meanings: SentenceMeanings | None, *, show: bool
) -> None:
    pairs = load_pairs(half)
    answers = {
        pair: bool(find_ending(pair.older, pair.newer, meanings)) for pair in pairs
    }
    figures = figures_of(answers)
    report_groups(report, f"language, {half}", answers, lambda pair: pair.language)
    report_groups(report, f"author, {half}", answers, lambda pair: pair.author)
    if len({pair.author for pair in pairs}) == 1:
        report_groups(report, f"kind, {half}", answers, lambda pair: pair.kind)
    report.bar(f"recall, {half}", figures.recall, ">=", RECALL_MIN)
    report.bar(f"precision, {half}", figures.precision, ">=", PRECISION_MIN)
    others = list(strangers(pairs))
    closed = [pair for pair in others if find_ending(pair.older, pair.newer, meanings)]
    report.figure(f"unrelated pairs, {half}", len(others))
    report.figure(f"unrelated pairs taken for an end, {half}", len(closed))
    if show and half == "tune":
        wrong = [pair for pair, taken in answers.items() if taken != pair.ends] + closed
        report.table(
            "Missed, or wrongly taken for an end",
            ["", "language", "kind", "older", "newer"],
            [
                [
                    "missed" if pair.ends else "wrong",
                    pair.language,
                    pair.kind,
                    pair.older,
                    pair.newer,
                ]
                for pair in wrong
            ],
        )


def report_clauses(report: Report, meanings: SentenceMeanings | None) -> None:
    """Show of how many sentences the fact that ended is found, and of how many no other fact is."""
    sets = tomllib.loads(CLAUSES.read_text(encoding="utf-8"))
    rows: list[list[object]] = []
    for name, part in (("A", sets["changes"][::2]), ("B", sets["changes"][1::2])):
        ended: list[str] = []
        for _, older, newer, _, _ in part:
            found = find_ending(older, newer, meanings)
            start, end = found.span if found else (0, 0)
            ended.append(older[start : end or None] if found else "")
        pairs = list(zip(part, ended, strict=True))
        closed = [gone in words for (*_, gone, _), words in pairs]
        kept = [holds not in words for (*_, holds), words in pairs]
        both = sum(map(min, closed, kept))
        rows.append([name, len(part), sum(closed), sum(kept), both])
    headers = ["half", "sentences", "ended fact found", "other fact left", "both"]
    report.table("Sentences of several facts", headers, rows)
    wrong = sum(
        bool(find_ending(older, newer, meanings)) for _, older, newer in sets["stays"]
    )
    report.figure(f"of {len(sets['stays'])} other pairs, taken for an end", wrong)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--half", choices=HALVES, help="only this half")
    parser.add_argument("--show", action="store_true", help="list the faults of `tune`")
    parser.add_argument("--words", action="store_true", help="without vectors")
    options = parser.parse_args()
    report = Report("bench-endings")
    meanings = None if options.words else BearingRater(SentenceEncoder(), {})
    for half in [options.half] if options.half else HALVES:
        if half == "clauses":
            report_clauses(report, meanings)
        else:
            report_half(report, half, meanings, show=options.show)
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
