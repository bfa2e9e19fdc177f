"""Fit the weights by which `conversation/successors` finds what followed on an older statement.

    python tests/bench/fit_successors.py

The examples are all pairs of an older and a newer statement of a project of the telling set's halves `tune`
and `others`, as they are known after each of its sessions. The newer one of a pair follows on the older one
if its message ends what the older message states. Printed are the weights of a logistic regression, and by
the weights of all other projects: how many successors are found, and how many other statements are told with
an older one, on average after a session.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np
from bench.fit_probes import embed
from bench.telling import PAUSE, Project, load_half
from support.fakes import memory

from mnemosyned.conversation.briefing import ProjectStatement, find_statements
from mnemosyned.conversation.injected import InjectedQuote
from mnemosyned.conversation.successors import ODDS_MIN, SURE_MIN, SuccessorFinder
from mnemosyned.memory.engine_ports import MemoryComparison
from mnemosyned.memory.injections import BriefingEdits
from mnemosyned.memory.values import MemoryRecord
from mnemosyned.search.vectors.bearing import rate_endings

HALVES = ("tune", "others")
STEPS, PENALTY = 30, 1.0
Matrix = Any  # of numpy, whose types are not installed


class Pair(NamedTuple):
    """An older and a newer statement of a project, as they are known after a session."""

    project: str
    half: str
    features: tuple[float, ...]
    follows: bool
    weight: float


def list_pairs(project: Project, half: str) -> Iterator[Pair]:
    """Yield the pairs of a project; the copies of a pair have a weight of one together."""
    memories: list[MemoryRecord] = []
    ended: set[tuple[str, str]] = set()
    """The ids of an older memory and of the newer one that ends its statement."""
    stated: dict[str, str] = {}
    snapshots: list[list[ProjectStatement]] = []
    for session in project.session:
        for number, entry in enumerate(session.messages):
            text = entry.user or entry.agent
            if text:
                id = f"{project.name}-{len(memories)}"
                role = "user" if entry.user else "assistant"
                at = session.start + number * PAUSE
                memories.append(
                    memory(
                        id, text, session=f"{session.start}", role=role, created_at=at
                    )
                )
                ended |= {(stated[old], id) for old in entry.ends if old in stated}
                stated |= dict.fromkeys((*entry.fact, *entry.rule), id)
        snapshots.append(list(find_statements(memories[::-1])))
    rows = embed([each.content for each in memories])
    vectors = {each.id: row for each, row in zip(memories, rows, strict=True)}

    def compare(ids: Sequence[str]) -> MemoryComparison:
        """Compare the vectors of the memories with these ids."""
        known = np.array([vectors[id] for id in ids])
        return MemoryComparison(
            lambda one: dict(zip(ids, (known @ vectors[one]).tolist(), strict=True)),
            lambda new, old: rate_endings(vectors[new], vectors[old][None])[0],
        )

    for statements in snapshots:
        finder = SuccessorFinder(
            statements,
            edits=BriefingEdits(),
            endings_of=lambda _: {},
            compare=compare,
        )
        finder.put_newest_first([])  # which compares the vectors
        for older, statement in enumerate(statements):
            quote = InjectedQuote(
                id=statement.memory.id,
                text=statement.text,
                said=statement.memory.created_at,
            )
            for place, newer in enumerate(statements[:older]):
                features = finder.list_features(quote, place)
                follows = (quote.id, newer.memory.id) in ended
                weight = 1 / len(snapshots)
                yield Pair(project.name, half, features, follows, weight)


def fit(rows: Matrix, follows: Matrix, weights: Matrix) -> Matrix:
    """Return the weights of a logistic regression, the constant last."""
    mean, spread = rows.mean(0), rows.std(0)
    rows = np.c_[(rows - mean) / spread, np.ones(len(rows))]
    fitted = np.zeros(rows.shape[1])
    penalty = np.diag([PENALTY] * len(mean) + [0.0])
    for _ in range(STEPS):
        chance = 1 / (1 + np.exp(-rows @ fitted))
        slope = rows.T @ (weights * (follows - chance)) - penalty @ fitted
        curve = (rows * (weights * chance * (1 - chance))[:, None]).T @ rows + penalty
        fitted += np.linalg.solve(curve, slope)
    fitted[:-1] /= spread
    fitted[-1] -= fitted[:-1] @ mean
    return fitted


def main() -> None:
    pairs = [
        pair
        for half in HALVES
        for project in load_half(half)
        for pair in list_pairs(project, half)
    ]
    rows = np.array([each.features for each in pairs])
    follows = np.array([each.follows for each in pairs], float)
    weights = np.array([each.weight for each in pairs])
    projects = np.array([each.project for each in pairs])
    halves = np.array([each.half for each in pairs])
    odds = np.zeros(len(pairs))
    for project in set(projects):
        own = projects == project
        fitted = fit(rows[~own], follows[~own], weights[~own])
        odds[own] = rows[own] @ fitted[:-1] + fitted[-1]
    for half in HALVES:
        for least in (-5, ODDS_MIN, -4, -3, -2, -1, 0, SURE_MIN):
            told = weights * (odds >= least) * (halves == half)
            found = (told * follows).sum() / (weights * follows)[halves == half].sum()
            wrong = (told * (1 - follows)).sum()
            print(f"{half:>7} from {least}: {found:.3f} found, {wrong:.1f} others")
    print("weights, and the constant:", fit(rows, follows, weights).round(2))


if __name__ == "__main__":
    main()
