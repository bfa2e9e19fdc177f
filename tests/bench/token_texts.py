"""Texts of many kinds to count tokens of: the written ones, and those that machines write."""

from __future__ import annotations

import base64
import json
import random
import uuid
from collections.abc import Callable, Mapping
from pathlib import Path

WRITTEN = Path(__file__).with_name("token_texts.txt")
EACH = 4
"""Texts of each kind: the first and third are for calibration, the others for the report."""
_WORDS = """order user account invoice sensor batch region status price count email address retry
    worker queue total shipped pending active name title label window driver engine""".split()
_PEOPLE = (
    "Ana Ruiz",
    "Kofi Mensah",
    "Lena Vogt",
    "Priya Nair",
    "Tom O'Neil",
    "Mei Chen",
)


def texts() -> dict[str, list[str]]:
    """The texts of each kind, in the same words on every machine."""
    found: dict[str, list[str]] = {}
    for section in WRITTEN.read_text().split("\n=== ")[1:]:
        kind, _, body = section.partition("\n")
        found[kind] = [text.strip("\n") for text in body.split("\n---\n")]
    for kind, make in _MADE.items():
        found[kind] = [make(random.Random(f"{kind}{number}")) for number in range(EACH)]
    if wrong := [kind for kind, of_kind in found.items() if len(of_kind) != EACH]:
        raise ValueError(f"not {EACH} texts each: {', '.join(wrong)}")
    return found


def _record(chance: random.Random) -> dict[str, object]:
    return {
        "id": chance.randrange(10**6),
        "name": chance.choice(_PEOPLE),
        "status": chance.choice(("open", "paid", "shipped", None)),
        "amount": round(chance.random() * 1000, 2),
        "created_at": f"2025-0{chance.randrange(1, 10)}-1{chance.randrange(10)}T08:15:00Z",
        chance.choice(_WORDS) + "_" + chance.choice(_WORDS): chance.random() > 0.5,
        "tags": chance.sample(_WORDS, 3),
        "address": {
            "city": chance.choice(("Porto", "Gent", "Kobe")),
            "zip": str(chance.random()),
        },
    }


def _json(chance: random.Random) -> str:
    return json.dumps([_record(chance) for _ in range(3)], indent=2)


def _json_compact(chance: random.Random) -> str:
    return json.dumps([_record(chance) for _ in range(4)], separators=(",", ":"))


def _log(chance: random.Random) -> str:
    return "\n".join(
        f"2025-03-1{chance.randrange(10)}T{chance.randrange(10, 24)}:{chance.randrange(10, 60)}:"
        f"{chance.randrange(10, 60)}.{chance.randrange(1000):03}Z "
        f"{chance.choice(('INFO', 'WARN', 'ERROR', 'DEBUG'))} "
        f"[{chance.choice(_WORDS)}-{chance.randrange(32)}] {chance.choice(_WORDS)}."
        f"{chance.choice(_WORDS)} took {chance.randrange(4000)} ms, peer=10.0."
        f"{chance.randrange(256)}.{chance.randrange(256)}:{chance.randrange(1024, 65536)} "
        f"request_id={chance.randbytes(6).hex()}"
        for _ in range(8)
    )


def _base64(chance: random.Random) -> str:
    whole = base64.b64encode(chance.randbytes(450)).decode()
    if chance.random() < 0.5:
        return "data:image/png;base64," + whole
    return "\n".join(whole[start : start + 76] for start in range(0, len(whole), 76))


def _hex(chance: random.Random) -> str:
    lines = [f"{chance.randbytes(32).hex()}  file-{number}.bin" for number in range(3)]
    lines += [str(uuid.UUID(bytes=chance.randbytes(16))) for _ in range(4)]
    return "\n".join([*lines, chance.randbytes(20).hex()])


def _csv(chance: random.Random) -> str:
    rows = (
        f"{chance.randrange(1000)},{chance.choice(_PEOPLE)},{chance.uniform(0, 500):.2f},"
        f"2025-0{chance.randrange(1, 10)}-{chance.randrange(10, 29)},{chance.choice(_WORDS)}"
        for _ in range(14)
    )
    return "id,customer,amount,date,item\n" + "\n".join(rows)


def _numbers(chance: random.Random) -> str:
    rows = (
        " ".join(f"{chance.gauss(0, 10 ** chance.randrange(4)):.4f}" for _ in range(6))
        for _ in range(10)
    )
    return "\n".join(rows)


def _table(chance: random.Random) -> str:
    rows = [("item", "in stock", "price", "updated")] + [
        (
            chance.choice(_WORDS),
            str(chance.randrange(5000)),
            f"{chance.uniform(1, 90):.2f} €",
            f"2025-0{chance.randrange(1, 10)}-{chance.randrange(10, 29)}",
        )
        for _ in range(9)
    ]
    lines = ["| " + " | ".join(cell.ljust(10) for cell in row) + " |" for row in rows]
    return "\n".join([lines[0], "|" + "------------|" * 4, *lines[1:]])


def _boxes(chance: random.Random) -> str:
    rule = "+" + ("-" * 14 + "+") * 3
    lines = [
        "|" + "|".join(f" {chance.choice(_WORDS):<12} " for _ in range(3)) + "|"
        for _ in range(6)
    ]
    framed = (
        "┌"
        + "─" * 30
        + "┐\n"
        + f"│ {chance.choice(_PEOPLE):<28} │\n"
        + "└"
        + "─" * 30
        + "┘"
    )
    return "\n".join([rule, lines[0], rule, *lines[1:], rule, framed])


def _addresses(chance: random.Random) -> str:
    return "\n".join(
        chance.choice(
            (
                f"https://www.example.org/{chance.choice(_WORDS)}/{chance.randrange(10**5)}?page=9#top",
                f"/usr/share/{chance.choice(_WORDS)}/{chance.choice(_WORDS)}_v2.tar.gz",
                f"C:\\Users\\{chance.choice(_WORDS)}\\AppData\\Local\\{chance.choice(_WORDS)}.log",
                f"{chance.choice(_WORDS)}.{chance.choice(_WORDS)}@mail.example.com",
                f"s3://{chance.choice(_WORDS)}-backup/2025/{chance.randrange(10**5):05}.parquet",
            )
        )
        for _ in range(12)
    )


_MADE: Mapping[str, Callable[[random.Random], str]] = {
    "json": _json,
    "json_compact": _json_compact,
    "log": _log,
    "base64": _base64,
    "hex": _hex,
    "csv": _csv,
    "numbers": _numbers,
    "table": _table,
    "boxes": _boxes,
    "addresses": _addresses,
}
