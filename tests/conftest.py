"""The parts most tests start from: a clock, a summarizer and an open store."""

import gc
import os
import re
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import pytest
from hypothesis import HealthCheck, settings as hypothesis_settings
from support.blank_database import copy_blank_databases
from support.citus import citus_store
from support.engines import (
    CITUS,
    ENGINES,
    POSTGRES,
    SQLITE,
    emptied_store,
    sqlite_store,
)
from support.fakes import FakeClock, FakeSummarizer
from support.services import database_file, make_service
from support.settings import settings_in_force
from support.stores import open_store

from mnemosyned import fairness
from mnemosyned.config.settings import SettingsInForce
from mnemosyned.search.vectors.packing import THREADS
from mnemosyned.service.forgetting import RetentionService
from mnemosyned.service.service import MemoryService
from mnemosyned.sleep.context import SummarizerLease
from mnemosyned.sleep.cycle import SleepCycle
from mnemosyned.storage.sqlite.store import SqliteStore

# Collecting thousands of tests and parsing the package make many objects, none of them garbage: looking
# through them as often as usual takes longer than making them.
gc.set_threshold(100_000, 20, 100)

# A shell gives what it starts in the background an ignored SIGINT, which programs inherit.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Workers get the size of pytest's own terminal, which is not that of the answers under test.
for name in ("COLUMNS", "LINES"):
    os.environ.pop(name, None)

# Days begin at midnight in the zone of the process; most tests name theirs in UTC.
os.environ["TZ"] = "UTC"
time.tzset()

# Where a test module imports numpy first, its threads would spin after each short product: four fifths of the
# processor time of the tests of vectors.
os.environ.setdefault(THREADS[0], "1")

# The sentence encoder is on by default: tests that are about it turn it on.
os.environ.setdefault("MNEMOSYNE_EMBEDDING_ENCODER", "none")

# How long an example takes says nothing on a machine that does other work.
hypothesis_settings.register_profile(
    "suite",
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    max_examples=int(os.environ.get("EXAMPLES", "20")),
)
hypothesis_settings.load_profile("suite")

# A test's requests are always just over: the pauses of cycles would be a tenth of the time of all tests.
fairness.WORK_REST_TIMES = 0

copy_blank_databases()

SERVED = {POSTGRES: emptied_store, CITUS: citus_store}


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--engine", choices=ENGINES, default=SQLITE, help="where stores keep memories"
    )


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out a module whose own mark `-m "not (…)"` leaves out: a third of all modules."""
    unwanted = re.fullmatch(r"not \(([\w ]+)\)", config.option.markexpr)
    if unwanted and collection_path.suffix == ".py":
        marks = unwanted[1].replace(" or ", "|")
        own = rf"(?m)^pytestmark = .*\bmark\.({marks})\b"
        if re.search(own, collection_path.read_text("utf-8")):
            return True
    return None


def pytest_collection_modifyitems(
    config: pytest.Config, items: list[pytest.Item]
) -> None:
    """On another engine than SQLite, run the tests of a store that are not about its file."""
    if config.getoption("--engine") == SQLITE:
        return
    kept = [item for item in items if _is_for_any_engine(item)]
    config.hook.pytest_deselected(items=[item for item in items if item not in kept])
    items[:] = kept


def pytest_collection_finish() -> None:
    """Let collections of garbage, such as an idle daemon's, pass over the collected tests."""
    gc.freeze()


def _is_for_any_engine(item: pytest.Item) -> bool:
    stores = {"store", "listed_memory"} & {*getattr(item, "fixturenames", ())}
    return bool(stores) and not item.get_closest_marker("sqlite")


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def summarizer() -> FakeSummarizer:
    return FakeSummarizer()


@pytest.fixture
def database(tmp_path: Path) -> Path:
    return tmp_path / "memory.db"


@pytest.fixture(scope="session")
def blank(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty database of the present schema; a copy is ready sooner than a new one."""
    path = tmp_path_factory.mktemp("blank") / "memory.db"
    with open_store(path):
        return path


@pytest.fixture
def store(
    request: pytest.FixtureRequest, database: Path, blank: Path
) -> Iterator[SqliteStore]:
    """A store on the engine under test; where only a SQLite file will do, tests open one."""
    engine = request.config.getoption("--engine")
    if engine != SQLITE:
        with SERVED[engine]() as opened:
            yield cast("SqliteStore", opened)
    else:
        with sqlite_store(database, blank) as opened:
            yield opened


@pytest.fixture
def settings() -> SettingsInForce:
    return settings_in_force({"limits.content_bytes_max": 10_000, "wm_max": 1_000})


@pytest.fixture
def cycle(
    store: SqliteStore,
    summarizer: FakeSummarizer,
    clock: FakeClock,
    settings: SettingsInForce,
) -> SleepCycle:
    return SleepCycle(
        store=store, lease=SummarizerLease(summarizer), clock=clock, settings=settings
    )


@pytest.fixture
def retention(
    store: SqliteStore, cycle: SleepCycle, settings: SettingsInForce
) -> RetentionService:
    return RetentionService(
        store=store, cycle=cycle, settings=settings, file=database_file(store)
    )


@pytest.fixture
def service(
    store: SqliteStore,
    cycle: SleepCycle,
    retention: RetentionService,
    settings: SettingsInForce,
) -> MemoryService:
    return make_service(store, cycle, retention, settings)
