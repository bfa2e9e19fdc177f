"""The tools that test: the fuzzer, seeds of chance and the verdict of the soak."""

import random
import re
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from fuzz.requests import Requests
from fuzz.run import problem
from soak.ledger import Entry, Ledger, digest, new_marker
from soak.verdict import findings
from soak.wire import Reply
from support.cases import each_case
from support.seeds import seed_of

from mnemosyned import Memory
from mnemosyned.verbs.facade import VERBS


def error(code: str, message: str = "do something else") -> dict[str, Any]:
    return {"error": {"code": code, "message": message, "field": None}}


@each_case(
    ("status", "body", "seconds", "found"),
    [
        (200, {"hits": []}, 0.1, ""),
        (400, error("invalid_request"), 0.1, ""),
        (503, error("storage_failed", "database or disk is full"), 0.1, ""),
        (503, error("storage_failed", "database disk image is malformed"), 0.1, "503"),
        (500, error("internal_error"), 0.1, "500 internal_error"),
        (0, "ConnectionResetError()", 0.1, "no answer"),
        (200, {"hits": []}, 30.0, "slow"),
        (200, "<html>", 0.1, "not an object"),
        (400, error("surprise"), 0.1, "an error of another form"),
        (400, error("invalid_request", ""), 0.1, "an error of another form"),
    ],
)
def test_a_wrong_answer_is_known(
    status: int, body: object, seconds: float, found: str
) -> None:
    assert problem(Reply(status, body, seconds)).startswith(found)
    assert bool(problem(Reply(status, body, seconds))) == bool(found)


@pytest.mark.thorough
def test_a_seed_makes_the_same_requests_again_and_leaves_no_verb_out() -> None:
    first, again = Requests("seed"), Requests("seed")
    made = [first.next() for _ in range(400)]

    assert made == [again.next() for _ in range(400)]
    assert {sent.verb for sent in made} >= VERBS.keys()
    assert {sent.method for sent in made} == {"GET", "POST"}


# Tests by chance do the same in CI, and something else elsewhere, unless their seed is named.


TESTS = Path(__file__).parents[1]
BY_CHANCE = re.compile(r"random\.(seed|randrange|SystemRandom)\(|\bRandom\(\)")


@pytest.mark.parametrize("ci", ["", "true"])
def test_a_seed_is_the_same_where_it_is_named_and_in_ci_alone(
    monkeypatch: pytest.MonkeyPatch, ci: str
) -> None:
    monkeypatch.setenv("CI", ci)
    monkeypatch.delenv("ANY_SEED", raising=False)
    by_chance = {seed_of("ANY_SEED") for _ in range(20)}
    monkeypatch.setenv("ANY_SEED", "895546")

    assert (len(by_chance) == 1) is bool(ci)
    assert seed_of("ANY_SEED") == 895546


def test_no_test_has_a_seed_of_its_own_by_chance() -> None:
    own = [
        str(file.relative_to(TESTS))
        for file in TESTS.rglob("*.py")
        if file.name not in ("seeds.py", Path(__file__).name)
        and "bench" not in file.parts
        and BY_CHANCE.search(file.read_text("utf-8"))
    ]

    assert own == []


# The soak's verdict finds what it is there to find.


@pytest.fixture
def ledger(database: Path) -> Ledger:
    """Five acknowledged memories in the file, one of them forgotten again."""
    chance, ledger = random.Random(7), Ledger()
    with Memory(database) as memory:
        for number in range(5):
            marker = new_marker(chance)
            content = f"Ada mended bell {number} ({marker})"
            memory.remember(content, id=f"m{number}", session="yard")
            ledger.keep([Entry(f"m{number}", marker, digest(content), "yard")])
        memory.forget("m4")
        ledger.forget("m4")
    return ledger


def test_a_sound_file_has_no_findings(database: Path, ledger: Ledger) -> None:
    assert findings(database, ledger) == []


DAMAGE = {
    "acknowledged and lost: 1, such as m1": "DELETE FROM working_memory WHERE id = 'm1'",
    "with other words: 1, such as m2": (
        "UPDATE working_memory SET content = content || '.' WHERE id = 'm2'"
    ),
    "not found by its own word: 1, such as m3": (
        "INSERT INTO memory_fts (memory_fts, rowid, content, role) "
        "SELECT 'delete', seq, content, role FROM working_memory WHERE id = 'm3'"
    ),
}


@pytest.mark.parametrize("finding", DAMAGE)
def test_a_memory_that_is_not_as_it_was_is_a_finding(
    database: Path, ledger: Ledger, finding: str
) -> None:
    with closing(sqlite3.connect(database)) as connection, connection:
        connection.execute(DAMAGE[finding])

    assert finding in findings(database, ledger)


def test_a_forgotten_memory_is_a_finding(database: Path, ledger: Ledger) -> None:
    ledger.forget("m0")

    found = findings(database, ledger)

    assert "forgotten and there: 1, such as m0" in found
    assert "forgotten and readable in memory.db: 1, such as m0" in found


def test_forgotten_words_in_a_file_beside_the_database_are_a_finding(
    database: Path, ledger: Ledger
) -> None:
    (gone,) = ledger.forgotten
    database.with_name("notes").write_text("x" * 100 + gone.marker)

    assert findings(database, ledger) == [
        "forgotten and readable in notes: 1, such as m4"
    ]
