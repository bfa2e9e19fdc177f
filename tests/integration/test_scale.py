"""The page on scale has the tables that its script computes, and the script computes soundly."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

from bench.scale import PAGE, Assumed, Plan, heavy, per_node, tables, written

SCRIPT = Path(__file__).parents[1] / "bench" / "scale.py"


def test_the_page_has_the_tables_of_the_script() -> None:
    text = PAGE.read_text("utf-8")

    for name, table in tables(Assumed()).items():
        assert f"<!-- {name} -->\n{table}\n" in text
    assert written(text, Assumed()) == text


def test_other_assumptions_give_other_tables() -> None:
    text = PAGE.read_text("utf-8")

    assert written(text, Assumed(node_tb=8)) != text


def test_twice_the_owners_need_twice_of_everything() -> None:
    one, two = Plan(1e6, Assumed()), Plan(2e6, Assumed())

    assert two.bytes == 2 * one.bytes
    assert two.server_cores == 2 * one.server_cores
    assert abs(two.nodes - 2 * one.nodes) <= 2


def test_a_full_node_is_one_and_an_owner_more_needs_another() -> None:
    given = Assumed(copies=1)
    fits = min(per_node(given))

    assert Plan(fits, given).nodes == 1
    assert Plan(fits * 1.01, given).nodes == 2


def test_cores_decide_where_disks_are_large() -> None:
    roomy = replace(heavy(Assumed()), node_tb=1_000)
    disk, cores = per_node(roomy)

    assert cores < disk


def test_the_script_prints_all_tables() -> None:
    run = subprocess.run(
        [sys.executable, SCRIPT, "--memories", "200"],
        capture_output=True,
        text=True,
        check=True,
    )

    given = Assumed(memories=200)
    assert run.stdout == "\n\n".join(tables(given).values()) + "\n"
