"""Forgetting again and again, and beside writers and readers.

A purge adds two levels to an index, which is rebuilt from its 24th on: that happens a dozen times here.
FORGETS sets how often; `make bench-forget` measures the same at 100,000 memories.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from bench.bench_forget import in_peace, under_load
from bench.report import Report

pytestmark = [pytest.mark.e2e, pytest.mark.fault]

LEFT = 1_000
"""Memories that stay: a small index does not grow by a purge."""
FORGETS = int(os.environ.get("FORGETS", "150"))


def missed(report: Report, *, but: str = "none") -> list[str]:
    """The bars that were missed; times are the bench's own, on a machine that does nothing else."""
    return [bar.name for bar in report.bars if not bar.met and but not in bar.name]


def test_forgetting_again_and_again_leaves_the_store_whole(tmp_path: Path) -> None:
    report = Report("forget")

    in_peace(tmp_path, FORGETS, report, left=LEFT)

    assert missed(report) == []


def test_forgetting_beside_writers_and_readers_is_complete(tmp_path: Path) -> None:
    report = Report("forget")

    under_load(tmp_path, 4_000, 100, report, idle_s=1.0)

    assert missed(report, but="p95") == []
