"""The same memory on SQLite and on PostgreSQL: whether both answer alike, and how soon.

    python tests/bench/bench_postgres.py --data path/to/locomo10.json

Asked are the questions of LoCoMo (where `--data` names its file), those of the mixed year and of
the timed sets, and words of many languages, before and after a sleep, until there are as many as
`--questions` says. An answer counts as the same if its hits are, in their order, to the last digit
of their scores. Then questions of the synthetic corpus are asked in turns over so many memories as
`--memories` says: both engines on this machine, the server with 1 GB of shared buffers and a vacuum
behind it, also for what has a tag. `--large` asks the server alone over so many of one owner,
`--owners` over so many owners.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from datetime import datetime
from pathlib import Path
from typing import cast

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import msgspec
import psycopg
from bench.corpus import ASK_ALL, COMMON_WORDS, PLANTED_EVERY, Corpus
from bench.databases import NEWEST, year
from bench.locomo import Conversation
from bench.measure import as_request, latency, say, timed
from bench.report import Report
from postgres.test_same_hits import (
    LANGUAGE_QUESTIONS,
    mixed_languages,
    told_of,
    variants,
)
from support.datasets.mixed_year import NOW, mixed_year
from support.datasets.timed_questions import timed_questions, timed_sets
from support.engines import POSTGRES, new_database, postgres_store
from support.fakes import FakeClock
from support.postgres import SETTINGS
from support.twins import service_over, twins

from mnemosyned.paths import shipped
from mnemosyned.service.service import MemoryService
from mnemosyned.storage.postgres.store import open_owned_stores
from mnemosyned.storage.sqlite.store import SqliteStore
from mnemosyned.verbs.memories import BATCH_MAX, Recall, Remember, RememberMany

QUESTIONS_USUAL, MEMORIES_USUAL, MEMORIES_OF_EACH = 2_000, 100_000, 1_000
PER_CLASS, ASKED_AGAIN = 100, 3
EQUAL_BAR = 1.0
HELD = ("question", COMMON_WORDS)
SLOWER_BAR, GROWN_BAR, OWNERS_BAR = 1.5, 2.0, 1.5
"""How much slower the 95th of a hundred answers may come: from PostgreSQL; of ten times as many
memories; of one owner among many."""
PERSON_AND_CODE_BAR_MS = 10.0
SERVER = {"shared_buffers": "1GB", "max_wal_size": "2GB"}
"""What a server of this size would have."""
HEADERS = ["question", "p50", "p95", "p50", "p95", "ratio of p95"]
TAGS = {"rare": 100, "often": 3}
"""Every how many memories have a tag."""

Set = tuple[str, list[Remember], list[Recall]]


def sets(locomo: Path | None) -> Iterator[Set]:
    """What is told, and what is asked of it."""
    if locomo:
        talks = msgspec.json.decode(locomo.read_bytes(), type=list[Conversation])
        asked = [
            Recall(query=question.text, source=source)
            for talk in talks
            for question in talk.questions()
            for source in (None, [question.sample])
        ]
        yield "LoCoMo", [turn for talk in talks for turn in talk.turns()], asked
    lines = LANGUAGE_QUESTIONS.strip().splitlines()
    languages = [request for text in lines for request in variants(text)]
    yield "languages", mixed_languages(), languages
    for name, records in timed_sets().items():
        questions = timed_questions(name, records)
        requests = [Recall(query=q.text, asked_at=q.asked_at) for q in questions]
        yield f"times, {name}", told_of(records, sessions=4), requests
    year = mixed_year(per_day=4)
    requests = [Recall(query=question) for question in year.questions]
    yield "mixed year", told_of(year.records), requests


def compare(report: Report, chosen: Sequence[Set], questions: int) -> None:
    """Ask both engines before and after a sleep; half of the questions each time."""
    rows: list[list[object]] = []
    asked_of_all = differing = 0
    each = max(1, questions // (2 * len(chosen)))
    short = sum(max(0, each - len(asked)) for _, _, asked in chosen)
    for name, told, asked in chosen:
        some = asked[: each + short if len(asked) > each else each]
        short -= max(0, len(some) - each)
        with (
            tempfile.TemporaryDirectory() as room,
            twins(Path(room), _clock(told)) as pair,
        ):
            say(f"{name}: {len(told)} memories, {len(some)} questions, twice")
            pair.remember(*told)
            before = pair.differing(some)
            pair.sleep()
            after = pair.differing(some)
        for text in [*before, *after]:
            say(f"differs: {text}")
        asked_of_all += 2 * len(some)
        differing += len(before) + len(after)
        rows.append([name, len(told), len(some), len(before), len(after)])
    headers = ["set", "memories", "questions", "differ before", "differ after a sleep"]
    report.table("Answers that differ between SQLite and PostgreSQL", headers, rows)
    equal = 1 - differing / asked_of_all
    report.figure("questions", asked_of_all)
    report.bar("share of equal answers", report.figure("equal", equal), ">=", EQUAL_BAR)


def _clock(told: Sequence[Remember]) -> FakeClock:
    times = [
        memory.created_at for memory in told if isinstance(memory.created_at, datetime)
    ]
    return FakeClock(max([NOW, *times]))


def race(report: Report, memories: int, *, slept: bool) -> None:
    """Ask both engines in turns over many memories, in the end also after a sleep."""
    corpus = year(memories)
    with (
        tempfile.TemporaryDirectory() as room,
        twins(Path(room), FakeClock(NEWEST)) as pair,
    ):
        say(f"filling both with {memories:,} memories")
        pair.remember(*tagged(corpus))
        settle(pair.stores[POSTGRES])
        _race(report, pair.services, corpus, barred=True)
        by_tags(report, pair.services, corpus)
        if slept:
            say("letting both sleep")
            pair.sleep()
            settle(pair.stores[POSTGRES])
            _race(report, pair.services, corpus, suffix=" after a sleep")


def tagged(corpus: Corpus) -> Iterator[Remember]:
    """What is told of a corpus, with `TAGS`."""
    for at, entry in enumerate(corpus):
        tags = [tag for tag, every in TAGS.items() if not at % every]
        yield msgspec.structs.replace(as_request(entry), tags=tags)


def by_tags(
    report: Report, services: Mapping[str, MemoryService], corpus: Corpus
) -> None:
    """Ask both engines in turns for what has a tag."""
    rows: list[list[object]] = []
    step = corpus.count // PLANTED_EVERY // PER_CLASS * PLANTED_EVERY
    for tag, every in TAGS.items():
        took: dict[str, list[float]] = {which: [] for which in services}
        for at in range(PER_CLASS):
            text = ASK_ALL["question"](corpus, step * at).text
            request = Recall(query=text, tag=[tag])
            for which, service in services.items():
                took[which].append(_quickest(service, request))
        quick, slow = (latency(taken) for taken in took.values())
        ratio = slow.p95_ms / quick.p95_ms
        name = f"question by the tag of one memory in {every}"
        report.figure(f"{name}: p95 against SQLite", ratio)
        rows.append([name, quick.p50_ms, quick.p95_ms, slow.p50_ms, slow.p95_ms, ratio])
        say(f"{name}: {ratio:.2f}")
    report.table("Recall by tags, ms: SQLite and PostgreSQL", HEADERS, rows)


def _quickest(service: MemoryService, request: Recall) -> float:
    """How many seconds a question takes: the quickest of `ASKED_AGAIN`."""
    return min(timed(service.recall, request)[0] for _ in range(ASKED_AGAIN))


def grown(report: Report, small: int, large: int) -> None:
    """Ask the server in turns over fewer and more memories of one owner."""
    with ExitStack() as opened:
        services: dict[str, MemoryService] = {}
        for count in (small, large):
            say(f"filling the server with {count:,} memories of one owner")
            store = opened.enter_context(postgres_store())
            services[f"{count:,}"] = service = _service(store)
            _fill(service, year(count))
            settle(store)
        corpora = {f"{count:,}": year(count) for count in (small, large)}
        bar = f"p95 over {large:,} against {small:,}"
        rows = _in_turns(report, services, corpora, bar=bar, most=GROWN_BAR)
        report.table(
            f"Recall of one owner, ms: {small:,} and {large:,} memories", HEADERS, rows
        )


def among_owners(report: Report, owners: int, each: int) -> None:
    """Ask the server for an owner alone in its database, and in turns for one of many."""
    migrations = shipped("migrations") / "postgres"
    with ExitStack() as opened:
        services: dict[str, list[MemoryService]] = {}
        for count in (1, owners):
            say(
                f"filling the server with {each:,} memories of each of {count:,} owners"
            )
            dsn = new_database()
            stores = opened.enter_context(open_owned_stores(dsn, migrations=migrations))
            numbers = [stores.owners.add(f"owner-{at}").number for at in range(count)]
            made = [_service(stores.store(number)) for number in numbers]
            for service in made:
                _fill(service, year(each))
            settle_database(dsn)
            services[f"of {count:,}"] = made
        corpora = dict.fromkeys(services, year(each))
        bar = f"p95 of {owners:,} owners against one"
        rows = _in_turns(report, services, corpora, bar=bar, most=OWNERS_BAR)
        report.table(
            f"Recall of an owner with {each:,} memories, ms: alone and one of {owners:,}",
            HEADERS,
            rows,
        )


def settle(store: object) -> None:
    """Do at once what the server would do within minutes by itself."""
    settle_database(store.pool._dsn)  # type: ignore[attr-defined]  # noqa: SLF001


def settle_database(dsn: str) -> None:
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("VACUUM ANALYZE")


def _service(store: object) -> MemoryService:
    return service_over(cast("SqliteStore", store), FakeClock(NEWEST), 0)


def _fill(service: MemoryService, corpus: Corpus) -> None:
    told = list(map(as_request, corpus))
    for start in range(0, len(told), BATCH_MAX):
        service.remember_many(RememberMany(told[start : start + BATCH_MAX]))


def _race(
    report: Report,
    services: Mapping[str, MemoryService],
    corpus: Corpus,
    *,
    barred: bool = False,
    suffix: str = "",
) -> None:
    corpora = dict.fromkeys(services, corpus)
    rows = _in_turns(
        report,
        services,
        corpora,
        bar="p95 against SQLite",
        suffix=suffix,
        barred=barred,
    )
    report.table(
        f"Recall over {corpus.count:,} memories, ms: SQLite and PostgreSQL{suffix}",
        HEADERS,
        rows,
    )


def _in_turns(
    report: Report,
    services: Mapping[str, MemoryService | list[MemoryService]],
    corpora: Mapping[str, Corpus],
    *,
    bar: str,
    most: float = SLOWER_BAR,
    suffix: str = "",
    barred: bool = True,
) -> list[list[object]]:
    """Ask two in turns, each question as often as `ASKED_AGAIN`: the quickest answer counts."""
    rows: list[list[object]] = []
    for name, ask in ASK_ALL.items():
        took: dict[str, list[float]] = {which: [] for which in services}
        for at in range(PER_CLASS):
            for which, made in services.items():
                corpus = corpora[which]
                step = corpus.count // PLANTED_EVERY // PER_CLASS * PLANTED_EVERY
                request = Recall(query=ask(corpus, step * at).text)
                service = (
                    made[at * len(made) // PER_CLASS]
                    if isinstance(made, list)
                    else made
                )
                took[which].append(_quickest(service, request))
        quick, slow = (latency(taken) for taken in took.values())
        for which, taken in zip(took, (quick, slow), strict=True):
            report.figure(f"{name}{suffix}, {which}, p50 ms", taken.p50_ms)
            report.figure(f"{name}{suffix}, {which}, p95 ms", taken.p95_ms)
        ratio = slow.p95_ms / quick.p95_ms
        report.figure(f"{name}{suffix}: {bar}", ratio)
        if barred and name in HELD:
            report.bar(f"{name}: {bar}", ratio, "<=", most)
        if barred and name == "person+code" and POSTGRES in services:
            report.bar(f"{name}: p95 ms", slow.p95_ms, "<=", PERSON_AND_CODE_BAR_MS)
        rows.append([name, quick.p50_ms, quick.p95_ms, slow.p50_ms, slow.p95_ms, ratio])
        say(f"{name}{suffix}: {ratio:.2f}")
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", default="", help="the file of LoCoMo")
    parser.add_argument("--questions", type=int, default=QUESTIONS_USUAL)
    parser.add_argument("--memories", type=int, default=MEMORIES_USUAL)
    parser.add_argument("--large", type=int, default=0, help="memories of one owner")
    parser.add_argument(
        "--owners", type=int, default=0, help="each with 1,000 memories"
    )
    parser.add_argument("--sleep", action="store_true", help="ask after a sleep, too")
    options = parser.parse_args()
    SETTINGS.update(SERVER)
    report = Report("postgres")
    if options.questions:
        locomo = Path(options.data) if options.data else None
        compare(report, list(sets(locomo)), options.questions)
    if options.memories:
        race(report, options.memories, slept=options.sleep)
    if options.large:
        grown(report, options.memories or MEMORIES_USUAL, options.large)
    if options.owners:
        among_owners(report, options.owners, MEMORIES_OF_EACH)
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
