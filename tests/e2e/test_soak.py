"""Many clients at once for a short while: nothing lost, nothing wrong, nothing that piles up.

SOAK_SECONDS makes it longer, SOAK_SEED repeats a run. `make bench-soak MINUTES=30` is the long
form.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from soak.run import soak
from support.seeds import seed_of

pytestmark = [pytest.mark.e2e, pytest.mark.fault, pytest.mark.alone]

SECONDS = float(os.environ.get("SOAK_SECONDS", "20"))
SEED = seed_of("SOAK_SEED")
CLIENTS = 30
FORGETS_PER_MINUTE = float(os.environ.get("SOAK_FORGETS", "12"))
RESIDENT_MB_MAX = 120


def test_thirty_clients_find_just_what_they_remembered(tmp_path: Path) -> None:
    print(f"SOAK_SEED={SEED}")

    soaked = soak(
        tmp_path,
        seconds=SECONDS,
        clients=CLIENTS,
        seed=SEED,
        forgets_per_minute=FORGETS_PER_MINUTE,
        pause_s=0.05,
        say=print,
    )

    assert soaked.findings == []
    assert soaked.requests.total() > CLIENTS
    assert soaked.memories > CLIENTS
    assert soaked.forgotten > 0 or not FORGETS_PER_MINUTE
    assert soaked.samples.highest(lambda sample: sample.resident_mb) <= RESIDENT_MB_MAX
