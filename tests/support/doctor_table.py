"""Prints, as a Markdown table, what the doctor says of each broken installation."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from support.broken_installations import CASES, fill, make_home, outcome

CHARS_MAX = 110


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="mn-") as name:
        room = Path(name)
        fill(room / "memory.db")
        print("| broken | what it said | to mend it | what repair did |")
        print("|---|---|---|---|")
        for number, case in enumerate(CASES):
            home = make_home(room / f"h{number}", room / "memory.db")
            seen = outcome(case, home)
            said, command = "NOT FOUND", ""
            if seen.finding:
                said = f"{seen.finding.severity.value}: {seen.finding.text}"
                command = seen.finding.command
            did = "; ".join(seen.repairs) if case.repairs else "nothing"
            cells = [case.name, said, f"`{command}`", did]
            row = " | ".join(shown(cell, home.path) for cell in cells)
            print(f"| {row} |")


def shown(text: str, home: Path) -> str:
    line = text.replace(str(home), "~").replace("|", "\\|").replace("\n", " ")
    return line if len(line) <= CHARS_MAX else f"{line[:CHARS_MAX]}…"


if __name__ == "__main__":
    main()
