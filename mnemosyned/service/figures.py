"""Figures of each day: how long recalls took, and the size of the database."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from itertools import accumulate
from math import log2
from typing import TYPE_CHECKING

import msgspec
from tzlocal import get_localzone

from mnemosyned.errors import MnemosynedError
from mnemosyned.instants import in_zone
from mnemosyned.logs import logger
from mnemosyned.memory.clock import Clock
from mnemosyned.verbs.listing import DayList

if TYPE_CHECKING:
    from mnemosyned.storage.common.listing import ListStore

STEPS = 4
"""Steps of time for each doubling: a percentile is right to within 9 %."""
RECALL_MS_MIN = 1 / 16
SAVED_EVERY_S = 60.0
GROWTH_BYTES = 1 << 20
"""A database that grew or shrank by less is not worth a write."""

log = logger()


@dataclass(eq=False, kw_only=True)
class DailyFigures:
    """Counts recalls by the time they took; safe from any thread.

    A recall never waits for the store: counts are kept in memory until they are saved.
    """

    store: ListStore
    clock: Clock
    bytes_on_disk: Callable[[], int]
    """Returns the size of the database; 0 if it is unknown."""

    def __post_init__(self) -> None:
        self._lock = threading.Lock()
        self._unsaved = Counter[int]()
        self._saved_bytes: int | None = None
        self._next_save = time.monotonic() + SAVED_EVERY_S

    def count_recall(self, duration_s: float) -> None:
        """Count a recall that took so many seconds."""
        step = round(log2(max(duration_s * 1_000, RECALL_MS_MIN)) * STEPS)
        with self._lock:
            self._unsaved[step] += 1

    def save_if_due(self) -> None:
        """Save the figures if they were last saved at least `SAVED_EVERY_S` seconds ago."""
        if time.monotonic() >= self._next_save:
            self.save()

    def save(self) -> None:
        """Save new counts and a size that changed by `GROWTH_BYTES`; after a failure keep and log them."""
        self._next_save = time.monotonic() + SAVED_EVERY_S
        with self._lock:
            unsaved, self._unsaved = self._unsaved, Counter()
        try:
            size = self.bytes_on_disk()
            if self._saved_bytes is None:
                self._saved_bytes = size
            if unsaved or abs(size - self._saved_bytes) >= GROWTH_BYTES:
                self.store.add_figures(self._today().isoformat(), unsaved, size)
                self._saved_bytes = size
        except MnemosynedError as error:
            with self._lock:
                self._unsaved.update(unsaved)
            log.warning("figures_not_saved", code=error.code)

    def complete(self, totals: DayList) -> DayList:
        """Return ascending days with figures, by default the last size; hours and months as they are."""
        if totals.by != "day":
            return totals
        saved, today = self.store.figures(), self._today()
        first = totals.days[0].day.isoformat()
        size = ([0] + [size for day, (_, size) in saved.items() if day < first])[-1]
        days = []
        for total in totals.days:
            times, size = saved.get(total.day.isoformat(), (Counter[int](), size))
            if total.day == today:
                size = self.bytes_on_disk()
                with self._lock:
                    times = times + self._unsaved
            day = msgspec.structs.replace(
                total,
                recalls=times.total(),
                recall_p50_ms=_percentile_ms(times, 0.5),
                recall_p95_ms=_percentile_ms(times, 0.95),
                # It is tomorrow already in a zone ahead of this machine's.
                bytes_on_disk=size if (total.day - today).days <= 1 else 0,
            )
            days.append(day)
        return DayList(days)

    def _today(self) -> date:
        """Return the present day in this machine's time zone."""
        return in_zone(self.clock.now(), get_localzone()).date()


def _percentile_ms(times: Counter[int], share: float) -> float | None:
    """Return the time in ms that a share of recalls took at most, given by step; None for none."""
    steps = sorted(times)
    for step, count in zip(
        steps, accumulate(times[each] for each in steps), strict=True
    ):
        if count >= share * times.total():
            return float(f"{2 ** (step / STEPS):.3g}")
    return None
