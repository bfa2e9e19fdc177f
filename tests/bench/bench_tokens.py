"""The estimator beside real tokenizers and chars/4, on texts that it was not fitted to."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import venv
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean

from bench.measure import say
from bench.report import Report
from bench.token_texts import texts

from mnemosyned.models.tokenizers import RanksCounter
from mnemosyned.text.token_counts import (
    _PIECE,
    MARGIN,
    WEIGHTS,
    Chars4,
    TokenEstimator,
    _find_language_group,
    _measure_piece,
)

PROJECT = Path(__file__).parents[2]
ENVIRONMENT = PROJECT / "build" / "tokens-venv"
REQUIREMENTS = ("tiktoken==0.14.0", "tokenizers==0.23.3")
VOCABULARIES = "litellm==1.109.1"
"""It carries the vocabularies themselves, so nothing is fetched but packages."""
WORKER = Path(__file__).with_name("tokens_worker.py")
MEAN_MAX, WORST_MAX, PAIRS_MAX = 0.10, 0.25, 0.01
FITTED_TO = "cl100k_base"
PULL = 0.02
"""How strongly a weight is held where it stood: what few texts have must not be bent by one."""
WEIGHT_MIN = 0.02
ROUNDS = 500

Counts = Mapping[str, Mapping[str, Sequence[int]]]
"""Of each tokenizer, of each kind, the tokens of its texts."""


def installed() -> Path:
    """The Python of an environment with the tokenizers, which is made on first use."""
    python = ENVIRONMENT / "bin" / "python"
    done = ENVIRONMENT / ".done"
    if not done.exists():
        say(f"installing {', '.join((*REQUIREMENTS, VOCABULARIES))} into {ENVIRONMENT}")
        venv.create(ENVIRONMENT, clear=True, with_pip=True)
        pip = [
            str(python),
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
        ]
        subprocess.run([*pip, *REQUIREMENTS], check=True)
        subprocess.run([*pip, "--no-deps", VOCABULARIES], check=True)
        done.touch()
    return python


def counted(of_kind: Mapping[str, Sequence[str]]) -> tuple[Counts, Mapping[str, str]]:
    """What the real tokenizers find, and where the vocabularies in tiktoken's form stand."""
    ran = subprocess.run(
        [installed(), WORKER],
        env={**os.environ, "PYTHONPATH": str(PROJECT)},
        input=json.dumps(of_kind),
        text=True,
        check=True,
        stdout=subprocess.PIPE,
    )
    answer = json.loads(ran.stdout)
    return answer["counts"], answer["ranks"]


def fitted(
    of_kind: Mapping[str, Sequence[str]], real: Mapping[str, Sequence[int]]
) -> None:
    """Print the weights with the least error on the first half, near where they stood."""

    def measure_units(text: str) -> dict[str, float]:
        """How many "english word", "digits" and so on a text has."""
        group = _find_language_group(text)
        amounts: dict[str, float] = {}
        for piece in _PIECE.findall(text):
            for unit, amount in _measure_piece(piece, group):
                amounts[unit] = amounts.get(unit, 0.0) + amount
        return amounts

    rows = [
        ({unit: amount / tokens for unit, amount in measure_units(text).items()}, 1.0)
        for kind, written in of_kind.items()
        for text, tokens in list(zip(written, real[kind], strict=True))[::2]
    ]
    weights = dict(WEIGHTS)
    pulls = {unit: PULL / max(weight, 0.2) ** 2 for unit, weight in weights.items()}
    left = [
        target - sum(row[unit] * weights[unit] for unit in row) for row, target in rows
    ]
    for _ in range(ROUNDS):
        for unit, start in WEIGHTS.items():
            held = [
                (at, row[unit]) for at, (row, _) in enumerate(rows) if row.get(unit)
            ]
            power = sum(share * share for _, share in held) + pulls[unit]
            slope = sum(left[at] * share for at, share in held)
            step = (slope - pulls[unit] * (weights[unit] - start)) / power
            moved = max(WEIGHT_MIN, weights[unit] + step) - weights[unit]
            weights[unit] += moved
            for at, share in held:
                left[at] -= moved * share
    for unit, weight in weights.items():
        sys.stdout.write(f'    "{unit}": {weight:.2f},\n')


def errors(
    counter: Chars4 | TokenEstimator,
    of_kind: Mapping[str, Sequence[str]],
    real: Mapping[str, Sequence[int]],
    half: int,
) -> dict[str, list[float]]:
    """By kind, how far off the counter is in each text of one half, as a share."""
    return {
        kind: [
            counter.count(text) / tokens - 1
            for text, tokens in list(zip(written, real[kind], strict=True))[half::2]
        ]
        for kind, written in of_kind.items()
    }


def summary(found: Mapping[str, Sequence[float]]) -> tuple[float, float, float]:
    """Mean error, worst error, and the worst on the short side, over all texts."""
    every = [error for of_kind in found.values() for error in of_kind]
    return fmean(map(abs, every)), max(map(abs, every)), min(every)


def compare(
    report: Report, of_kind: Mapping[str, Sequence[str]], counts: Counts
) -> None:
    """Hold the estimator and chars/4 against every tokenizer."""
    estimate, chars = TokenEstimator(), Chars4()
    real = counts[FITTED_TO]
    mine, theirs = errors(estimate, of_kind, real, 1), errors(chars, of_kind, real, 1)
    report.table(
        f"off {FITTED_TO}, on texts that the weights were not fitted to",
        ["kind", "tokens", "estimate", "chars/4"],
        [
            [
                kind,
                sum(real[kind][1::2]),
                f"{fmean(mine[kind]):+.1%}",
                f"{fmean(theirs[kind]):+.1%}",
            ]
            for kind in of_kind
        ],
    )
    rows: list[list[object]] = []
    for name, found in counts.items():
        for label, half in (("fitted to", 0), ("held out", 1)):
            for counter in (estimate, chars):
                off = [
                    f"{share:.1%}"
                    for share in summary(errors(counter, of_kind, found, half))
                ]
                rows.append([name, label, counter.name, *off])
    report.table(
        "over all texts",
        ["tokenizer", "texts", "counter", "mean", "worst", "most short"],
        rows,
    )
    for counter, off_by in ((estimate, mine), (chars, theirs)):
        for label, share in zip(
            ("mean", "worst", "most short"), summary(off_by), strict=True
        ):
            report.figure(f"{counter.name}: {label} error", share)
    mean, worst, short = summary(mine)
    report.bar("mean error of the estimate", mean, "<=", MEAN_MAX)
    report.bar("worst error of the estimate", worst, "<=", WORST_MAX)
    report.bar(
        "margin that the shortest estimate needs", 1 / (1 + short) - 1, "<=", MARGIN
    )


def own_pairs(
    report: Report,
    of_kind: Mapping[str, Sequence[str]],
    counts: Counts,
    ranks: Mapping[str, str],
) -> None:
    """Hold the product's own byte pairs against the package's, on the same vocabularies."""
    for name, path in ranks.items():
        own = RanksCounter(Path(path))
        off = [
            abs(own.count(text) / tokens - 1)
            for kind, written in of_kind.items()
            for text, tokens in zip(written, counts[name][kind], strict=True)
        ]
        exact = fmean(not error for error in off)
        report.figure(f"own byte pairs, {name}: share of texts exact", exact)
        report.bar(
            f"worst error of the own byte pairs, {name}", max(off), "<=", PAIRS_MAX
        )


def main() -> int:
    """Count, compare, and fail where a bar is not met."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--fit", action="store_true", help="print weights fitted anew")
    arguments = options.parse_args()
    of_kind = texts()
    counts, ranks = counted(of_kind)
    if arguments.fit:
        fitted(of_kind, counts[FITTED_TO])
        return 0
    report = Report("tokens")
    compare(report, of_kind, counts)
    own_pairs(report, of_kind, counts, ranks)
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
