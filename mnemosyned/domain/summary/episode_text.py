"""Episode text around a model's prose, with index terms for what it leaves out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set as AbstractSet
from dataclasses import dataclass
from datetime import UTC, tzinfo

from mnemosyned.domain.dates import relative
from mnemosyned.domain.instants import in_zone
from mnemosyned.domain.memory import MemoryRecord
from mnemosyned.domain.summary.extract import Extract, terms_room
from mnemosyned.domain.summary.keywords import (
    SEPARATOR,
    Vocabulary,
    joined_terms,
    select_keywords,
)
from mnemosyned.domain.text.sentences import sentences
from mnemosyned.domain.text.tokenizer import Token, TokenKind, tokens

PROSE_WORTH_MIN = 0.25
"""Minimum worth of the prose as a share of the extract's; prose below it is filler."""


@dataclass(frozen=True, slots=True)
class ComposedEpisode:
    """Episode text and index terms, and whether the text says something."""

    text: str
    index_terms: str
    informative: bool
    """Whether the text is worth a good part of the extract's lines."""


def compose_episode(
    memories: Sequence[MemoryRecord],
    lines: Sequence[str],
    *,
    extract: Extract,
    zone: tzinfo = UTC,
) -> ComposedEpisode:
    """Join the lines, with index terms for what they leave out.

    Every word of the extract that the lines lack becomes an index term, so that search finds at
    least as much; other words fill the room that the terms of the extract have.
    """
    known = _vocabulary(memories, zone)
    text = "\n".join(line for line in map(str.strip, lines) if line)
    covered = _stems(text)
    terms = [term for term in extract.index_terms if not _stems(term) <= covered]
    covered |= _stems(" ".join(terms))
    missing = {
        token.stem: token
        for token in _content_words(extract)
        if token.stem not in covered
    }
    terms += _terms_of_missing(known, covered, missing)
    covered |= missing.keys()
    room = terms_room(memories) - sum(len(term) + len(SEPARATOR) for term in terms)
    terms += select_keywords(known, covered=covered, chars_max=room)
    rule_worth = _worth(known, _stems(extract.text))
    return ComposedEpisode(
        text,
        joined_terms(terms),
        informative=_worth(known, _stems(text)) >= PROSE_WORTH_MIN * rule_worth,
    )


def _content_words(extract: Extract) -> Iterator[Token]:
    """Yield the words of an extract's text that are not stop words, as written."""
    return (
        token for token in _tokens(extract.text) if token.kind is not TokenKind.STOP
    )


def _terms_of_missing(
    known: Vocabulary, covered: AbstractSet[str], missing: Mapping[str, Token]
) -> Iterator[str]:
    """Yield terms for missing words: as phrases where possible, the rest alone."""
    others = known.first.keys() - missing.keys()
    chars_max = sum(len(token.surface) * 2 for token in missing.values())
    phrases = select_keywords(known, covered=covered | others, chars_max=chars_max)
    yield from phrases
    named = _stems(" ".join(phrases))
    for root, token in missing.items():
        if root not in named:
            written = _surface(known, token)
            named |= _stems(written)
            yield written


def _surface(known: Vocabulary, token: Token) -> str:
    """Return a word as written; a bare number with the word it counts."""
    if token.kind is not TokenKind.NUMBER or token.stem not in known.first:
        return token.surface
    words, _, place = known.first[token.stem]
    counted = words[place].kind is TokenKind.NUMBER and not words[place].closes
    return " ".join(word.surface for word in words[place : place + 1 + counted])


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
