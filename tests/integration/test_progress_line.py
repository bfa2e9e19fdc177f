"""The line that shows how far an import is."""

from __future__ import annotations

from mnemosyned.cli.output.terminal import ProgressLine


def test_it_shows_share_rate_and_time_left() -> None:
    line = ProgressLine("importing", "memory", 1_000)

    line.advance(250, 5_000)

    shown = "importing · 25 % · 5,000 memories · 2,500/s · 0 min 6 s left"
    assert line.text(2.0) == shown


def test_what_an_earlier_run_did_does_not_count_as_speed() -> None:
    line = ProgressLine("importing", "memory", 1_000)
    line.advance(500, 0)

    line.advance(100, 10)

    assert line.text(10.0) == "importing · 60 % · 10 memories · 1/s · 0 min 40 s left"


def test_without_a_known_size_it_shows_what_is_done() -> None:
    line = ProgressLine("importing", "memory", 0)

    line.advance(250, 1)

    assert line.text(0.5) == "importing · 1 memory"
    assert line.text(2.0) == "importing · 1 memory · 0/s"
