"""Values that have broken programs: texts, times, numbers and shapes, and their JSON."""

import json
import random
from collections.abc import Mapping
from typing import Any


class Raw(str):
    """JSON that is sent as it is, such as NaN or a thousand brackets."""

    __slots__ = ()


TEXTS = (
    "", " ", "\t\n", "a", "ok", "null", "NaN", "0", "-", "''", '"', "%s%n", "*", "NEAR(a b)",
    "a OR b", "content:x", "^x", "x*", "(", ")", "{}", "[]", "\\", "../..", "; DROP TABLE archive",
    "' OR 1=1 --", "Ada prefers tabs", "What did Ada decide last week?", "which photo shows Ada",
    "yesterday", "in May 2023", "vorgestern um drei", "el 31 de abril", "on 30 February 9999",
    "Always answer in French. Never use tabs. Call me Ada.", "the password is hunter2!x",
    "api_key=sk-abcdefghijklmnopqrstuvwxyz0123456789ABCD", "0001-01-01T00:00:00Z",
    "why is created_at 9999-12-31T23:59:59Z in the log?", "1%1%1%1%1%1%1%1%", "camelCaseName",
    "日本語のメモ", "会議は明日の午後三時から", "ไทยไม่มีช่องว่าง", "Ünïcödé ﬁ ﬀ ǅ ß ẞ İ ı",
    "e\u0301\u0301\u0301\u0301", "\u202eabc\u202c", "\u2066x\u2069", "\u200b\u200d\ufeff",
    "\u2028x\u2029",
    "a\x00b", "\x1b[2J\x07", "\ud83d\ude00", "👩‍👩‍👧‍👦🇩🇪", "\U0010ffff",
    "\x7f\x80\x85",
    "<|im_start|>system", "</memory>", "[Summary]: x", "```\ncode\n```", "> quoted", "a,b;c|d",
    "https://a.b/c?d=1#e", "user@example.org", "/etc/passwd", "3,14 EUR", "-1e400", "2026-03-09",
)  # fmt: skip
NO_TEXTS = ("\ud800", "\udc00x", "a\ud83d b")
"""Halves of characters: JSON with one of them is refused as a whole."""
ENDLESS = (
    "x", "0,", "a ", "token=", "1%", "é", "\n", "(", "日", "Always use x. ", "\u0301", "#",
)  # fmt: skip
TIMES = (
    "2026-03-09T14:30:00Z", "2026-03-09T14:30:00+01:00", "2020-02-29T23:59:59.999999Z",
    "0001-01-01T00:00:00Z", "0001-01-01T00:00:00+14:00", "0001-01-01T23:59:59-12:00",
    "9999-12-31T23:59:59Z", "9999-12-31T23:59:59.999999-12:00", "9999-12-31T00:00:00+14:00",
    "1970-01-01T00:00:00Z", "1969-12-31T23:59:59Z", "1900-02-28T00:00:00Z", "2262-04-12T00:00:00Z",
    "1582-10-10T00:00:00Z",
    "2026-03-29T02:30:00+02:00", "2024-12-31T23:59:60Z", "2026-02-30T00:00:00Z",
    "2026-03-09", "2026-03-09T14:30:00", "2026-03-09 14:30:00Z", "2026-03-09T24:00:00Z",
    "2026-03-09T14:30:00+23:59", "2026-03-09T14:30:00-23:59", "2026-03-09T14:30:00+24:00",
    "10000-01-01T00:00:00Z", "-0001-01-01T00:00:00Z", "0000-00-00T00:00:00Z", "now", "yesterday",
)  # fmt: skip
NUMBERS = (
    0, 1, -1, 2, 10, 100, 999, 1_000, 1_001, 100_000_000, 2**31, 2**53, 2**63 - 1, 2**63, 2**64,
    -(2**63), -(2**63) - 1, 10**40, 0.0, -0.0, 0.5, 1.0, 1.0000001, 1e-320, 1e308, 1.5,
    Raw("NaN"), Raw("Infinity"), Raw("-Infinity"), Raw("1e999"), Raw("-1e999"), Raw("01"),
    Raw("1."),
    Raw("0x10"), Raw("1e5"), Raw("-0"),
)  # fmt: skip
SHAPES: tuple[Any, ...] = (
    None, True, False, [], {}, [[]], [None], {"": None}, {"a": {"b": []}}, [1, "a", None, {}],
    {"role": "user", "content": "hi"}, {"id": "x"}, Raw('{"a":1,"a":2}'), Raw("[1,]"),
)  # fmt: skip
DEPTHS = (10, 100, 500, 1_100, 20_000)
SIZES = (64, 65, 200, 201, 4_096, 4_097, 20_000, 200_000)


def encoded(value: object) -> str:
    """JSON, with `Raw` left as it is and lone surrogates escaped."""
    if isinstance(value, Raw):
        return str(value)
    if isinstance(value, Mapping):
        inner = ",".join(
            f"{json.dumps(str(key))}:{encoded(item)}" for key, item in value.items()
        )
        return "{" + inner + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(encoded, value)) + "]"
    return json.dumps(value)


def any_text(chance: random.Random) -> str:
    """A short odd text, several of them, or now and then a very long one."""
    kind = chance.random()
    if kind < 0.01:
        return chance.choice(NO_TEXTS)
    if kind < 0.03:
        size = chance.choice(SIZES)
        return (chance.choice(ENDLESS) * size)[:size]
    if kind < 0.7:
        return chance.choice(TEXTS)
    return " ".join(chance.choices(TEXTS, k=chance.randint(2, 12)))


def any_time(chance: random.Random) -> str:
    """A time at an end of the calendar or in the middle, or what only looks like one."""
    kind = chance.random()
    if kind < 0.5:
        return f"20{chance.randint(10, 25)}-0{chance.randint(1, 9)}-1{chance.randint(0, 9)}T12:00:00Z"
    if kind < 0.8:
        return chance.choice(TIMES)
    zone = chance.choice(("Z", "+00:00", "-12:00", "+14:00", "+05:45", "-03:30"))
    year, month, day = (
        chance.randint(1, 9999),
        chance.randint(1, 12),
        chance.randint(1, 28),
    )
    return f"{year:04}-{month:02}-{day:02}T{chance.randint(0, 23):02}:00:00{zone}"


def nested(chance: random.Random) -> Raw:
    """Lists or objects within each other, deeper than anybody needs."""
    depth = chance.choice(DEPTHS)
    if chance.random() < 0.5:
        return Raw("[" * depth + "]" * depth)
    return Raw('{"a":' * depth + "1" + "}" * depth)


def anything(chance: random.Random) -> Any:  # noqa: ANN401 that is the point
    """A value of any type."""
    kind = chance.random()
    if kind < 0.02:
        return nested(chance)
    makers = (
        lambda: any_text(chance),
        lambda: chance.choice(NUMBERS),
        lambda: chance.choice(SHAPES),
        lambda: any_time(chance),
        lambda: [anything(chance) for _ in range(chance.randint(0, 3))],
        lambda: {
            any_text(chance)[:20]: anything(chance) for _ in range(chance.randint(0, 3))
        },
    )
    return chance.choice(makers)()
