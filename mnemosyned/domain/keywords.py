"""How telling each word of a group of sentences is, and the keywords that its extract lacks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import NamedTuple

from mnemosyned.domain.facts import EXACT_KINDS, Kind, Token, stem

NAME = 1.5
EXACT = 2.0
NUMBER = 1.2
TIME = 0.6
ORDINARY = 1.0
COMMON = 0.3
BY_KIND = {Kind.NUMBER: NUMBER, Kind.TIME: TIME}
SURFACE_CHARS_MAX = 80
SEPARATOR = ", "


class _Candidate(NamedTuple):
    worth: float
    sentence: int
    place: int
    token: Token


def weights(texts: Iterable[Sequence[Token]], *, known: Iterable[str]) -> dict[str, float]:
    """What each stem is worth: exact values and names most, everyday words little.

    `known` are names the reader sees anyway, such as the speakers'; they are worth nothing.
    """
    worth: dict[str, float] = {}
    for words in texts:
        for place, token in enumerate(words):
            if token.kind is Kind.STOP:
                continue
            value = _value(token, opens=place == 0)
            if value > worth.get(token.stem, 0.0):
                worth[token.stem] = value
    worth.update((stem(part), 0.0) for name in known for part in name.split())
    return worth


def _value(token: Token, *, opens: bool) -> float:
    if token.kind in EXACT_KINDS:
        return BY_KIND.get(token.kind, EXACT)
    if token.kind is Kind.COMMON:
        return COMMON
    return NAME if token.capital and not opens else ORDINARY


def keywords(
    texts: Sequence[Sequence[Token]],
    worth: Mapping[str, float],
    *,
    covered: AbstractSet[str],
    chars_max: int,
) -> tuple[str, ...]:
    """The most telling words not yet covered, as they were written and in that order.

    Neighbours become one phrase ("support group"), which reads better and costs no more.
    """
    chosen: list[_Candidate] = []
    room = chars_max + len(SEPARATOR)
    for candidate in sorted(_candidates(texts, worth, covered), key=_best_first):
        cost = len(candidate.token.surface) + len(SEPARATOR)
        if cost <= room:
            chosen.append(candidate)
            room -= cost
    return tuple(_phrases(sorted(chosen, key=lambda one: (one.sentence, one.place))))


def _candidates(
    texts: Sequence[Sequence[Token]], worth: Mapping[str, float], covered: AbstractSet[str]
) -> Iterable[_Candidate]:
    seen = set(covered)
    for sentence, words in enumerate(texts):
        for place, token in enumerate(words):
            if token.kind in (Kind.STOP, Kind.COMMON) or token.stem in seen:
                continue
            seen.add(token.stem)
            size = len(token.surface)
            if worth[token.stem] > 0 and _telling(token):
                value = worth[token.stem] / (size + len(SEPARATOR)) ** 0.5
                yield _Candidate(value, sentence, place, token)


def _telling(token: Token) -> bool:
    """A small number says nothing by itself, and a blob nothing to anyone."""
    size = len(token.surface)
    return size <= SURFACE_CHARS_MAX and (token.kind is not Kind.NUMBER or size > 2)


def _best_first(candidate: _Candidate) -> tuple[float, int, int]:
    return -candidate.worth, candidate.sentence, candidate.place


def _phrases(chosen: Iterable[_Candidate]) -> list[str]:
    phrases: list[str] = []
    open_at: tuple[int, int] | None = None
    for _, sentence, place, token in chosen:
        if open_at == (sentence, place):
            phrases[-1] += f" {token.surface}"
        else:
            phrases.append(token.surface)
        open_at = None if token.closes else (sentence, place + 1)
    return phrases
