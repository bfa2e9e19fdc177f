"""Random requests to a real daemon: each gets an answer that says what is wrong with it.

FUZZ sets how many (50000 for the long form), FUZZ_SEED repeats a run, FUZZ_WITHOUT names verbs
that are left out.
"""

from __future__ import annotations

import os

import pytest
from e2e.conftest import Start
from fuzz.run import fuzz
from soak.verdict import broken_file
from support.seeds import seed_of

pytestmark = [pytest.mark.e2e, pytest.mark.fault]

SHOWN = 5
COUNT = int(os.environ.get("FUZZ", "2500"))
SEED = str(seed_of("FUZZ_SEED"))
WITHOUT = tuple(os.environ.get("FUZZ_WITHOUT", "").split())


def test_no_request_breaks_the_daemon_or_its_file(start: Start) -> None:
    print(f"FUZZ={COUNT} FUZZ_SEED={SEED}")
    daemon = start(MNEMOSYNE_SLEEP_ON_SHUTDOWN="false")

    fuzzed = fuzz(daemon, count=COUNT, seed=SEED, without=WITHOUT)
    ended = daemon.stop()

    lines = daemon.log.read_text().split("\n")
    print("\n".join([line for line in lines if "request_failed" in line][:SHOWN]))
    wrong = [*map(str, fuzzed.findings), *broken_file(daemon.database)]
    assert "\n".join(wrong) == ""
    assert ended == 0
    assert fuzzed.answers[200] > COUNT / 10
    assert fuzzed.answers[400] > COUNT / 10
