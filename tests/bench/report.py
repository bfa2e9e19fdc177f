"""What a bench found: figures and bars, as a table for people and as JSON for machines."""

from __future__ import annotations

import json
import operator
import os
from dataclasses import asdict, dataclass
from pathlib import Path

from tabulate import tabulate

# A bench measures words alone unless it turns the encoder on: it works in the background.
os.environ.setdefault("MNEMOSYNE_EMBEDDING_ENCODER", "none")

OUTPUT = Path(
    os.environ.get("BENCH_OUTPUT", Path(__file__).parents[2] / "build" / "bench")
)
COMPARE = {">=": operator.ge, "<=": operator.le, "<": operator.lt}


@dataclass(frozen=True, slots=True)
class Bar:
    """What a figure has to reach."""

    name: str
    value: float
    op: str
    bar: float
    met: bool


class Report:
    """Collects figures and bars while a bench runs; `finish` shows and keeps them."""

    def __init__(self, target: str) -> None:
        self.target = target
        self.figures: dict[str, float] = {}
        """By name, as rounded for the reader."""
        self.bars: list[Bar] = []
        """In the order in which they were held against their values."""
        self._sections: list[str] = []

    def figure(self, name: str, value: float) -> float:
        """Keep a figure and hand it back."""
        self.figures[name] = rounded(value)
        return value

    def bar(self, name: str, value: float, op: str, bar: float) -> None:
        """Hold a value against its bar: unrounded, so that a near miss is a miss."""
        self.bars.append(Bar(name, rounded(value), op, bar, COMPARE[op](value, bar)))

    @property
    def missed(self) -> int:
        """How many bars were not reached."""
        return sum(not bar.met for bar in self.bars)

    def table(self, title: str, headers: list[str], rows: list[list[object]]) -> None:
        """Show rows to the reader; what a machine should read belongs in figures."""
        self._sections.append(f"{title}\n{tabulate(rows, headers, floatfmt='.4g')}")

    def picture(self, name: str, svg: str) -> None:
        """Write a chart of this run next to the JSON file."""
        OUTPUT.mkdir(parents=True, exist_ok=True)
        (OUTPUT / f"{name}.svg").write_text(svg, encoding="utf-8")

    def finish(self) -> int:
        """Print everything, write the JSON file, and answer with the exit status."""
        print("\n\n".join([f"== {self.target}", *self._sections, self._figure_table()]))
        print(f"\n{self._bar_table()}")
        OUTPUT.mkdir(parents=True, exist_ok=True)
        written = OUTPUT / f"{self.target}.json"
        content = {"figures": self.figures, "bars": [asdict(bar) for bar in self.bars]}
        written.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
        print(f"\n{len(self.bars)} bars, {self.missed} missed; written to {written}")
        return 1 if self.missed else 0

    def _figure_table(self) -> str:
        return tabulate(list(self.figures.items()), ["figure", "value"], floatfmt=".4g")

    def _bar_table(self) -> str:
        rows = [
            ["met" if bar.met else "MISSED", bar.name, bar.value, bar.op, bar.bar]
            for bar in self.bars
        ]
        return tabulate(rows, ["", "bar", "value", "", "bar"], floatfmt=".4g")


def rounded(value: float) -> float:
    """Four significant digits: more would be noise."""
    return float(f"{value:.4g}")
