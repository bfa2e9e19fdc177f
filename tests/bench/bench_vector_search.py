"""The nearest vectors of one owner, compared by the server with pgvector, as they grow in number.

    python tests/bench/bench_vector_search.py --sizes 10000,100000

The vectors are random, and as many of a hundred other owners lie between them. A search is that of
a recall: the 200 nearest of all, exactly, through the role that sees one owner's rows.
"""

from __future__ import annotations

import argparse
import random
import statistics
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import psycopg
from bench.measure import say, timed
from bench.report import Report
from support.engines import new_database
from support.vectors import pack

from mnemosyned.paths import shipped
from mnemosyned.storage.postgres.store import open_store

OWNER, OTHERS = 7, 100
WIDTH, QUESTIONS, ASKED_FOR = 384, 100, 200
MIGRATIONS = shipped("migrations") / "postgres"
FILL = f"""
    INSERT INTO embedding (owner, memory_seq, model, version, vector, near)
    SELECT CASE WHEN n %% 2 = 0 THEN {OWNER} ELSE {OWNER} + 1 + n %% {OTHERS} END, n, %(model)s, n,
        decode(repeat('3c', {2 * WIDTH}), 'hex'),
        (SELECT l2_normalize(array_agg(random() - 0.5)::real[]::halfvec)
            FROM generate_series(1, {WIDTH}) WHERE n > 0)
    FROM generate_series(1, 2 * %(size)s) AS n
"""
"""No memories are needed for it: keys to them are not checked meanwhile."""


def fill(dsn: str, model: int, size: int) -> None:
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("SET session_replication_role = replica")
        connection.execute(FILL.encode(), {"model": model, "size": size})
        connection.execute("VACUUM ANALYZE embedding")


def measure(report: Report, size: int) -> list[object]:
    """Ask at one size; a row of the table."""
    dsn = new_database()
    with open_store(
        dsn, migrations=MIGRATIONS, owner=OWNER, guarded=True, embeds=True
    ) as store:
        model = store.vectors.register_model("made", "made")
        say(f"writing {size:,}")
        fill(dsn, model, size)
        search = store.vectors.search(model)
        assert search, "the server has no pgvector"
        chance = random.Random(4)
        questions = [
            pack([chance.gauss(0, 1) for _ in range(WIDTH)]) for _ in range(QUESTIONS)
        ]
        say("asking")
        search.nearest(questions[0], ASKED_FOR, least=-1.0)
        seconds = []
        for question in questions:
            took, near = timed(search.nearest, question, ASKED_FOR, least=-1.0)
            assert len(near) == min(ASKED_FOR, size)
            seconds.append(took)
    p50 = statistics.median(seconds) * 1_000
    p95 = statistics.quantiles(seconds, n=20)[-1] * 1_000
    report.figure(f"{size}/p50_ms", p50)
    report.figure(f"{size}/p95_ms", p95)
    return [size, p50, p95]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", default="10000,100000", help="separated by commas")
    options = parser.parse_args()
    report = Report("bench-vector-search")
    rows = [measure(report, int(size)) for size in options.sizes.split(",")]
    report.table("the 200 nearest", ["vectors", "p50, ms", "p95, ms"], rows)
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
