"""Many owners on paper: nodes, bytes, cost and what breaks first, from measured inputs.

    python tests/bench/scale.py [--memories 20] [--questions 30] [--node-tb 4] … [--write]

`--write` puts the tables into docs/scale.md; a test compares them. Every input was measured by the
command next to it, or is an assumption that an option changes.
"""

from __future__ import annotations

import argparse
import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path

PAGE = Path(__file__).resolve().parents[2] / "docs" / "scale.md"
DAYS = 365
DAY_S = 86_400
TERA = 1e12
HASHES = 2**32
"""Numbers that the index has for words."""
XIDS = 2e9
"""Transactions after which a server that never froze a row stops."""


@dataclass(frozen=True, slots=True)
class Measured:
    """A figure that a command of this repository printed."""

    what: str
    value: float
    unit: str
    command: str
    date: str


_BENCH, _DATE = "make bench-scale", "2026-11-30"
MEASURED = {
    "characters": Measured("characters of a memory", 161, "", _BENCH, _DATE),
    "words": Measured("words of a memory", 30, "", _BENCH, _DATE),
    "bytes": Measured(
        "a memory after sleep, indexes included", 1895, "B", _BENCH, _DATE
    ),
    "log": Measured(
        "write-ahead log of a memory, sleep included", 7550, "B", _BENCH, _DATE
    ),
    "write_ms": Measured("remember, server", 0.55, "ms", _BENCH, _DATE),
    "write_daemon_ms": Measured("remember, daemon", 1.6, "ms", _BENCH, _DATE),
    "embed_ms": Measured("embed a memory, server", 0.45, "ms", _BENCH, _DATE),
    "embed_daemon_ms": Measured("embed a memory, daemon", 3.9, "ms", _BENCH, _DATE),
    "recall_ms": Measured("recall, server", 10.7, "ms", _BENCH, _DATE),
    "recall_daemon_ms": Measured("recall, daemon", 21.9, "ms", _BENCH, _DATE),
    "sleep_ms": Measured("sleep of a memory, server", 0.14, "ms", _BENCH, _DATE),
    "sleep_daemon_ms": Measured("sleep of a memory, daemon", 0.46, "ms", _BENCH, _DATE),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Assumed:
    """What is assumed; each is an option."""

    memories: float = 20
    """Memories that an owner adds a day."""
    questions: float = 30
    """Questions that an owner asks a day."""
    years: float = 1
    """Years that are kept."""
    peak: float = 5
    """The busiest minute against the average."""
    node_cores: float = 16
    """Cores of a node."""
    node_tb: float = 4
    """Terabytes of disk of a node."""
    node_usd: float = 500
    """What a node costs a month, in dollars."""
    copies: float = 2
    """Copies of each node: a primary and its standby."""
    fill: float = 0.7
    """The share of disk and cores that is used at most."""
    daemon_cores: float = 4
    """Cores of a machine for daemons."""
    daemon_usd: float = 60
    """What such a machine costs a month, in dollars."""
    connections: float = 500
    """Connections that a server admits."""


HEAVY = 10
"""Memories and questions of a heavy owner against a light one."""


@dataclass(frozen=True, slots=True)
class Plan:
    """So many owners of one kind."""

    owners: float
    given: Assumed

    @property
    def memories(self) -> float:
        return self.owners * self.given.memories * DAYS * self.given.years

    @property
    def bytes(self) -> float:
        return self.memories * MEASURED["bytes"].value

    @property
    def writes_s(self) -> float:
        return self.owners * self.given.memories / DAY_S

    @property
    def recalls_s(self) -> float:
        return self.owners * self.given.questions / DAY_S

    @property
    def server_cores(self) -> float:
        """Cores of servers in the busiest minute."""
        return self._cores("")

    @property
    def daemon_cores(self) -> float:
        return self._cores("_daemon")

    def _cores(self, who: str) -> float:
        a_write = sum(
            MEASURED[f"{step}{who}_ms"].value for step in ("write", "embed", "sleep")
        )
        a_recall = MEASURED[f"recall{who}_ms"].value
        used = self.writes_s * a_write + self.recalls_s * a_recall
        return used / 1e3 * self.given.peak

    @property
    def log_mb_s(self) -> float:
        return self.writes_s * MEASURED["log"].value / 1e6

    @property
    def nodes(self) -> int:
        """Primaries and standbys, as many as disk or cores ask for."""
        given = self.given
        by_disk = self.bytes / (given.node_tb * TERA * given.fill)
        by_cores = self.server_cores / (given.node_cores * given.fill)
        return _up(max(by_disk, by_cores)) * int(given.copies)

    @property
    def daemons(self) -> int:
        """Machines for daemons, one at least."""
        return _up(self.daemon_cores / (self.given.daemon_cores * self.given.fill))

    @property
    def usd(self) -> float:
        """A month's cost."""
        return self.nodes * self.given.node_usd + self.daemons * self.given.daemon_usd


def _up(count: float) -> int:
    return max(1, math.ceil(count - 1e-6))


def heavy(given: Assumed) -> Assumed:
    return replace(
        given, memories=given.memories * HEAVY, questions=given.questions * HEAVY
    )


def per_node(given: Assumed) -> tuple[float, float]:
    """Owners that disk, and that cores of a node admit."""
    one = Plan(1, given)
    disk = given.node_tb * TERA * given.fill / one.bytes
    cores = given.node_cores * given.fill / one.server_cores
    return disk, cores


def tables(given: Assumed) -> dict[str, str]:
    """The tables of the page, by their names."""
    return {
        "inputs": _inputs(),
        "assumptions": _assumptions(given),
        "owners": _owners(given),
        "many": _many(given),
        "limits": _limits(given),
    }


def _inputs() -> str:
    rows = [
        (
            each.what,
            f"{each.value:,g} {each.unit}".strip(),
            f"`{each.command}`",
            each.date,
        )
        for each in MEASURED.values()
    ]
    return _table(("measured", "value", "by", "on"), rows)


def _assumptions(given: Assumed) -> str:
    rows = [
        (
            f"`--{field.name.replace('_', '-')}`",
            f"{getattr(given, field.name):,g}",
            _MEANING[field.name],
        )
        for field in fields(Assumed)
    ]
    return _table(("option", "value", "what"), rows)


_MEANING = {
    "memories": "memories that a light owner adds a day; a heavy one adds ten times as many",
    "questions": "questions that a light owner asks a day; a heavy one ten times as many",
    "years": "years that are kept",
    "peak": "the busiest minute against the average",
    "node_cores": "cores of a database node",
    "node_tb": "terabytes of its disk",
    "node_usd": "dollars a month for it",
    "copies": "copies of each node: a primary and its standby",
    "fill": "share of disk and cores that is used at most",
    "daemon_cores": "cores of a machine for daemons",
    "daemon_usd": "dollars a month for it",
    "connections": "connections that a server admits",
}


def _owners(given: Assumed) -> str:
    rows: list[tuple[str, ...]] = []
    for name, kind in (("light", given), ("heavy", heavy(given))):
        one = Plan(1, kind)
        disk, cores = per_node(kind)
        full = Plan(min(disk, cores), kind)
        rows.append((
            name,
            _si(one.memories),
            f"{_si(one.bytes)}B",
            _si(disk),
            _si(cores),
            "disk" if disk < cores else "cores",
            f"{full.usd / full.owners:.3f}",
        ))  # fmt: skip
    heads = (
        "owner", "memories kept", "bytes", "owners per node, by disk", "owners per node, by cores",
        "first full", "dollars a month",
    )  # fmt: skip
    return _table(heads, rows)


def _many(given: Assumed) -> str:
    ten_billion = 1e10 / Plan(1, given).memories
    plans = {
        "1,000 light": Plan(1e3, given),
        "100,000 light": Plan(1e5, given),
        "a million light": Plan(1e6, given),
        "ten billion memories": Plan(ten_billion, given),
        "a million heavy": Plan(1e6, heavy(given)),
    }
    rows = [
        (
            name,
            _si(plan.memories),
            f"{_si(plan.bytes)}B",
            f"{plan.writes_s * given.peak:,.0f} / {plan.recalls_s * given.peak:,.0f}",
            f"{plan.server_cores:,.1f} / {plan.daemon_cores:,.1f}",
            f"{plan.log_mb_s * DAY_S / 1e6:,.2f} TB",
            f"{plan.nodes:,} / {plan.daemons:,}",
            f"{plan.usd:,.0f}",
        )
        for name, plan in plans.items()
    ]
    heads = (
        "owners", "memories", "bytes", "writes / recalls a second at the peak",
        "cores of servers / daemons", "log a day", "nodes / daemons", "dollars a month",
    )  # fmt: skip
    return _table(heads, rows)


def _limits(given: Assumed) -> str:
    """Each limit in light owners on one primary, the first to be met on top."""
    one = Plan(1, given)
    disk, cores = per_node(given)
    pools = given.connections / 10  # eight of a pool, one that sleeps, one to spare
    a_machine = given.daemon_cores * given.fill / one.daemon_cores
    writes = 2 + 1 / 20  # transactions for a memory: remembered; promoted with others
    freeze_day = XIDS / (writes * given.memories)
    limits = [
        (min(disk, cores), "disk" if disk < cores else "cores",
         "a second node: `mnem db distribute`, or another database"),
        (max(disk, cores), "cores" if disk < cores else "disk",
         "the same; more cores or disk move it"),
        (pools * a_machine, f"{given.connections:,g} connections, ten a daemon",
         "fewer and larger daemons, or `max_connections`"),
        (freeze_day, "transactions in a day that a day's freezing has to keep up with",
         "autovacuum with more workers; a second node"),
        (HASHES / (MEASURED["words"].value * one.memories),
         "one row of another owner for each word looked up, as hashes have 32 bits",
         "nothing to do: such a row is read and left out, within microseconds"),
    ]  # fmt: skip
    limits.sort()
    rows = [(_si(owners), what, then) for owners, what, then in limits]
    return _table(("at so many light owners", "what is met", "then"), rows)


def _si(value: float) -> str:
    for size, unit in ((1e12, " T"), (1e9, " G"), (1e6, " M"), (1e3, " k")):
        if value >= size:
            return f"{value / size:.3g}{unit}"
    return f"{value:.3g}"


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def written(text: str, given: Assumed) -> str:
    """The page with these tables in the places of its own."""
    for name, table in tables(given).items():
        marked = f"<!-- {name} -->\n"
        place = re.compile(f"{re.escape(marked)}(\\|.*\n)*")
        text = place.sub(f"{marked}{table}\n".replace("\\", r"\\"), text)
    return text


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    for field in fields(Assumed):
        parser.add_argument(
            f"--{field.name.replace('_', '-')}",
            type=float,
            default=field.default,
            help=_MEANING[field.name],
        )
    parser.add_argument("--write", action="store_true", help="into docs/scale.md")
    chosen = vars(parser.parse_args())
    write = chosen.pop("write")
    given = Assumed(**chosen)
    if write:
        PAGE.write_text(written(PAGE.read_text("utf-8"), given), "utf-8")
    else:
        print("\n\n".join(tables(given).values()))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
