"""Each import within a function says why it is there."""

from itertools import takewhile
from pathlib import Path

import mnemosyned

PACKAGE = Path(mnemosyned.__file__).parent
MARK = "# noqa: PLC0415"


def has_reason(lines: list[str], number: int) -> bool:
    """Whether a reason follows the mark, or stands above the imports that it is one of."""
    if lines[number].partition(MARK)[2].strip():
        return True
    imports = takewhile(is_of_an_import, reversed(lines[:number]))
    above = number - len(list(imports)) - 1
    return lines[above].strip().startswith("#")


def is_of_an_import(line: str) -> bool:
    text = line.strip()
    return not text or text.startswith(("from ", "import ")) or text in ("try:", ")")


def test_each_import_within_a_function_says_why() -> None:
    silent = []
    for file in PACKAGE.rglob("*.py"):
        lines = file.read_text("utf-8").splitlines()
        silent += [
            f"{file.relative_to(PACKAGE)}:{number + 1}: {line.strip()}"
            for number, line in enumerate(lines)
            if MARK in line and not has_reason(lines, number)
        ]

    assert silent == []
