"""Numbers of a text, in figures and in words, with their possible readings."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

from mnemosyned.domain.dates.names import COUNTS

NUMBER_WORDS = {
    word: value for word, value in COUNTS.items() if len(word) > 2 or not word.isascii()
} | {
    "twenty": 20, "thirty": 30, "forty": 40, "fifty": 50, "sixty": 60, "seventy": 70,
    "eighty": 80, "ninety": 90, "hundred": 100, "thousand": 1000, "dozen": 12, "half": 0.5,
    "first": 1, "second": 2, "third": 3, "fourth": 4, "fifth": 5, "sixth": 6, "seventh": 7,
    "eighth": 8, "ninth": 9, "tenth": 10, "eleventh": 11, "twelfth": 12, "twice": 2,
    "double": 2, "triple": 3, "both": 2, "pair": 2, "一": 1, "二": 2, "三": 3, "四": 4, "五": 5,
}  # fmt: skip
FIGURE_CHARS_MAX = 20
"""Length above which a number is a code with no reading but itself."""

_DIGITS = re.compile(r"\d+(?:[.,:'’·]\d+)*")
_SCALE = re.compile(
    r"\s?(k|thousand|tausend|mil|m|mio|million|millones|millionen|bn|billion|万|億|亿)\b|([万億亿千])",
    re.IGNORECASE,
)
_SCALES = {
    "k": 1e3, "thousand": 1e3, "tausend": 1e3, "mil": 1e3, "千": 1e3, "万": 1e4, "億": 1e8,
    "亿": 1e8, "bn": 1e9, "billion": 1e9,
}  # fmt: skip
_THOUSANDS = re.compile(r"\d{1,3}(?:[.,'’]\d{3})+")
_GROUPED = re.compile(r"\d{1,3}(?:\.\d{3})+,\d+|\d{1,3}(?:,\d{3})+\.\d+")
_HALF_DAY = re.compile(r"\s*([ap])\.?m\b", re.IGNORECASE)
_ORDINAL = re.compile(r"(?:st|nd|rd|th)\b|[日일]")
_WORDS = re.compile(r"[^\W\d_]+")


def numbers(text: str) -> list[tuple[str, frozenset[str]]]:
    """Return every number in figures with its readings: 1,000 is 1000 or 1.0."""
    plain = unicodedata.normalize("NFKC", text)
    return [
        (
            match[0],
            frozenset(_readings(match[0], plain[match.end() : match.end() + 12])),
        )
        for match in _DIGITS.finditer(plain)
    ]


def _readings(written: str, after: str) -> Iterator[str]:
    if len(written) > FIGURE_CHARS_MAX:
        yield written
        return
    if ":" in written:
        yield from clock_readings(written, _HALF_DAY.match(after))
        return
    if _ORDINAL.match(after):
        yield f"day {int(written)}" if written.isdigit() else written
    half = _HALF_DAY.match(after)
    if half and written.isdigit():
        yield from clock_readings(f"{written}:00", half)
    yield from _value_readings(written, _SCALE.match(after))


def _value_readings(written: str, scale: re.Match[str] | None) -> Iterator[str]:
    """Yield the values of a number, plain and multiplied by the word after it."""
    values = [_normalized(written)]
    if _THOUSANDS.fullmatch(written):
        values.append(_normalized(re.sub(r"\D", "", written)))
    for value in values:
        yield value
        if scale:
            yield _scaled(value, (scale[1] or scale[2]).lower())


def _scaled(value: str, unit: str) -> str:
    if not _is_float(value):
        return value
    return _format_number(float(value) * _SCALES.get(unit, 1e6))


def _normalized(written: str) -> str:
    plain = (
        written.replace(",", ".").replace("’", ".").replace("'", ".").replace("·", ".")
    )
    whole, _, rest = plain.rpartition(".")
    if _GROUPED.fullmatch(written):
        return _format_number(float(f"{whole.replace('.', '')}.{rest}"))
    if "." in whole:
        return plain
    return _format_number(float(plain))


def _is_float(value: str) -> bool:
    return value.count(".") <= 1


def _format_number(value: float) -> str:
    return str(int(value)) if value == int(value) else repr(round(value, 6))


def clock_readings(written: str, half: re.Match[str] | None = None) -> Iterator[str]:
    """Yield a time of day by 24 hours; both halves of the day where none is named."""
    head, _, rest = written.partition(":")
    hour = int(head)
    if half and hour <= 12:
        hour = hour % 12 + (12 if half[1].lower() == "p" else 0)
    yield f"{hour}:{rest}"
    if half is None and 0 < hour <= 12:
        yield f"{(hour + 12) % 24}:{rest}"


def number_words(text: str) -> Iterator[tuple[str, str]]:
    """Yield every number written as a word, with its value."""
    for match in _WORDS.finditer(text):
        value = NUMBER_WORDS.get(match[0].lower())
        if value is not None:
            yield match[0], _format_number(value)
