"""Episode text around a model's prose: a heading before it, keywords after it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set as AbstractSet
from dataclasses import dataclass
from datetime import UTC, tzinfo

from mnemosyned.domain.dates import relative
from mnemosyned.domain.instants import in_zone
from mnemosyned.domain.memory import MemoryRecord
from mnemosyned.domain.summary.extract import KEYWORDS, Extract
from mnemosyned.domain.summary.keywords import SEPARATOR, Vocabulary, select_keywords
from mnemosyned.domain.text.tokenizer import Token, TokenKind, sentences, tokens

PROSE_WORTH_MIN = 0.25
"""Minimum worth of the prose as a share of the extract's; prose below it is filler."""


@dataclass(frozen=True, slots=True)
class ComposedEpisode:
    """Episode text, and whether it says as much as an extract of the same group."""

    text: str
    informative: bool


def compose_episode(
    memories: Sequence[MemoryRecord],
    prose: str,
    *,
    extract: Extract,
    chars_aim: int,
    chars_max: int,
    zone: tzinfo = UTC,
) -> ComposedEpisode:
    """Put the prose under the extract's heading, with a line of keywords that it leaves out.

    Every word of the extract that the prose lacks becomes a keyword, so that search finds at least
    as much: up to `chars_max`, and other keywords up to `chars_aim`. Where there is no room for
    all of them, the episode is not informative.
    """
    known = _vocabulary(memories, zone)
    prose = prose.strip()
    covered = _stems(f"{extract.heading}\n{prose}")
    wanted = {token.stem: token for token in _content_words(extract)}
    taken = len(extract.heading) + len(prose) + len(KEYWORDS) + len(SEPARATOR)
    missing = {root: token for root, token in wanted.items() if root not in covered}
    named = _missing_keywords(known, covered, missing, chars_max=chars_max - taken)
    taken += len(SEPARATOR.join(named)) + len(SEPARATOR)
    covered |= _stems(SEPARATOR.join(named))
    named += select_keywords(known, covered=covered, chars_max=chars_aim - taken)
    text = Extract(extract.heading, tuple(prose.splitlines()), named).text
    rule_worth = _worth(known, _stems("\n".join(extract.lines)))
    return ComposedEpisode(
        text,
        informative=wanted.keys() <= _stems(text)
        and _worth(known, _stems(prose)) >= PROSE_WORTH_MIN * rule_worth,
    )


def _content_words(extract: Extract) -> Iterator[Token]:
    """Yield the words of an extract that are not stop words, as written."""
    for text in ("\n".join(extract.lines), SEPARATOR.join(extract.keywords)):
        yield from (
            token for token in _tokens(text) if token.kind is not TokenKind.STOP
        )


def _missing_keywords(
    known: Vocabulary,
    covered: AbstractSet[str],
    missing: Mapping[str, Token],
    *,
    chars_max: int,
) -> tuple[str, ...]:
    """Return keywords for missing words: as phrases where possible, the rest alone."""
    others = known.first.keys() - missing.keys()
    found = list(select_keywords(known, covered=covered | others, chars_max=chars_max))
    room = chars_max - sum(len(word) + len(SEPARATOR) for word in found)
    named = _stems(SEPARATOR.join(found))
    for root, token in missing.items():
        if root not in named:
            written = _surface(known, token)
            if len(written) + len(SEPARATOR) <= room:
                found.append(written)
                room -= len(written) + len(SEPARATOR)
                named |= _stems(written)
    return tuple(found)


def _surface(known: Vocabulary, token: Token) -> str:
    """Return a word as written; a bare number with the word it counts."""
    if token.kind is not TokenKind.NUMBER or token.stem not in known.first:
        return token.surface
    words, _, place = known.first[token.stem]
    counted = words[place].kind is TokenKind.NUMBER and not words[place].closes
    return " ".join(one.surface for one in words[place : place + 1 + counted])


def _vocabulary(memories: Iterable[MemoryRecord], zone: tzinfo) -> Vocabulary:
    """Return the words of the group with their worth, relative dates made absolute."""
    known = Vocabulary()
    roles: dict[str, None] = {}
    for memory in memories:
        said = in_zone(memory.created_at, zone)
        for sentence, _ in sentences(memory.content):
            known.add(tokens(relative.annotate_relative_dates(sentence, said)))
        roles[memory.role] = None
    known.discount(roles)
    return known


def _stems(text: str) -> set[str]:
    return {token.stem for token in _tokens(text)}


def _tokens(text: str) -> tuple[Token, ...]:
    return tokens(" ".join(text.split()))


def _worth(known: Vocabulary, stems: Iterable[str]) -> float:
    return sum(known.worth.get(root, 0.0) for root in stems)
