"""Databases of the bench corpus, filled once for each size and kept in `build/bench/`."""

from __future__ import annotations

import hashlib
import re
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

from bench.corpus import Corpus, Entry
from bench.daemon import embedded
from bench.measure import fill, say, timed
from bench.report import OUTPUT

MIGRATIONS = Path(__file__).parents[2] / "migrations"
NEWEST, SPAN = datetime(2026, 1, 1, tzinfo=UTC), timedelta(days=365)
PROGRESS_EVERY = 50_000
UNTOUCHED = {"MNEMOSYNE_SLEEP_ON_SHUTDOWN": "false"}
"""A daemon with this setting leaves a database as it is, however old its memories are."""


def year(count: int) -> Corpus:
    """A year of memories; the same whenever it is made, so that a file can be kept."""
    return Corpus(count, newest=NEWEST, span=SPAN)


def filled(count: int) -> Path:
    """The database with a year of `count` memories: a kept one if there is, else a new one."""
    database = OUTPUT / f"year-{count}-{fingerprint()}.db"
    if database.exists():
        say(f"using {database}; delete it to have it made anew")
        return database
    OUTPUT.mkdir(parents=True, exist_ok=True)
    for outdated in OUTPUT.glob(f"year-{count}-*.db*"):
        outdated.unlink()
    say(f"remembering {count:,}; the file is kept as {database}")
    with tempfile.TemporaryDirectory(dir=OUTPUT, prefix="filling-") as room:
        unfinished = Path(room, database.name)
        with embedded(unfinished) as memory:
            seconds, _ = timed(fill, memory, announced(year(count)))
        unfinished.rename(database)
    say(f"remembered {count:,} in {seconds:.0f} s, {count / seconds:,.0f} a second")
    return database


def kept_sizes() -> list[int]:
    """The sizes of which there is an up-to-date file, the smallest first."""
    names = [file.name for file in OUTPUT.glob(f"year-*-{fingerprint()}.db")]
    return sorted(
        int(found[1]) for name in names if (found := re.match(r"year-(\d+)-", name))
    )


def fingerprint() -> str:
    """Changes with whatever decides what is in a file: the corpus, and the migrations."""
    names = ("corpus.py", "sentences.py", "vocabulary.py")
    sources = [Path(__file__).with_name(name) for name in names]
    digest = hashlib.sha256(f"{NEWEST} {SPAN}".encode())
    for file in [*sources, *sorted(MIGRATIONS.glob("*.sql"))]:
        digest.update(file.read_bytes())
    return digest.hexdigest()[:12]


def announced(corpus: Corpus) -> Iterator[Entry]:
    """The entries, with a word to whoever waits now and then."""
    for number, entry in enumerate(corpus):
        if number and number % PROGRESS_EVERY == 0:
            say(f"  {number:,} of {corpus.count:,}")
        yield entry
