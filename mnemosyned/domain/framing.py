"""What someone else wrote of a group, framed as an episode: a heading before it, keywords after."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from datetime import UTC, tzinfo

from mnemosyned.domain import dates
from mnemosyned.domain.extract import KEYWORDS, Extract
from mnemosyned.domain.facts import EXACT_KINDS, Kind, Token, sentences, tokens
from mnemosyned.domain.keywords import SEPARATOR, Vocabulary, keywords
from mnemosyned.domain.memory import Memory

TOLD_MIN = 0.25
"""Of what the extract's sentences tell, what the prose itself must: below that it is filler."""


@dataclass(frozen=True, slots=True)
class Framed:
    """An episode's text, and whether it says as much as an extract of the same group."""

    text: str
    informative: bool


def framed(
    memories: Sequence[Memory],
    prose: str,
    *,
    extract: Extract,
    chars_aim: int,
    chars_max: int,
    zone: tzinfo = UTC,
) -> Framed:
    """The prose under the extract's heading, with a keyword line for what it leaves out.

    What the extract keeps and the prose does not stands first in line for the keywords, so that
    a search finds at least as much: up to `chars_max`, and any other keywords up to `chars_aim`.
    """
    known = _vocabulary(memories, zone)
    prose = prose.strip()
    told = _stems(f"{extract.heading}\n{prose}")
    wanted = _telling(known, _stems(extract.text))
    taken = len(extract.heading) + len(prose) + len(KEYWORDS) + len(SEPARATOR)
    named = _missing(known, told, wanted - told, chars_max=chars_max - taken)
    taken += len(SEPARATOR.join(named)) + len(SEPARATOR)
    told |= _stems(" ".join(named))
    named += keywords(known, covered=told, chars_max=chars_aim - taken)
    text = Extract(extract.heading, tuple(prose.splitlines()), named).text
    return Framed(
        text,
        informative=_as_much(known, _telling(known, _stems(text)), wanted)
        and _worth(known, _stems(prose))
        >= TOLD_MIN * _worth(known, _stems("\n".join(extract.lines))),
    )


def _missing(
    known: Vocabulary, told: AbstractSet[str], missing: AbstractSet[str], *, chars_max: int
) -> tuple[str, ...]:
    """Keywords for what is missing: as they read best, then whatever was left by itself."""
    others = known.first.keys() - missing
    found = list(keywords(known, covered=told | others, chars_max=chars_max))
    room = chars_max - sum(len(word) + len(SEPARATOR) for word in found)
    for root in known.first:
        if root in missing and root not in _stems(" ".join(found)):
            written = _written(known, root)
            if len(written) + len(SEPARATOR) <= room:
                found.append(written)
                room -= len(written) + len(SEPARATOR)
    return tuple(found)


def _written(known: Vocabulary, root: str) -> str:
    """A word as it was said; a bare number with what it counts."""
    words, _, place = known.first[root]
    counted = words[place].kind is Kind.NUMBER and not words[place].closes
    return " ".join(token.surface for token in words[place : place + 1 + counted])


def _vocabulary(memories: Iterable[Memory], zone: tzinfo) -> Vocabulary:
    """The words of the group with what they are worth, relative dates made absolute."""
    known = Vocabulary()
    roles: dict[str, None] = {}
    for memory in memories:
        said = memory.created_at.astimezone(zone)
        for sentence, _ in sentences(memory.content):
            known.add(tokens(dates.anchor(sentence, said)))
        roles[memory.role] = None
    known.discount(roles)
    return known


def _stems(text: str) -> set[str]:
    return {token.stem for token in _tokens(text)}


def _tokens(text: str) -> tuple[Token, ...]:
    return tokens(" ".join(text.split()))


def _telling(known: Vocabulary, stems: Iterable[str]) -> set[str]:
    """Those of the stems that could be keywords: names, exact values, words that single out."""
    return {root for root in stems if root in known.first and known.worth[root] > 0}


def _as_much(known: Vocabulary, ours: AbstractSet[str], theirs: AbstractSet[str]) -> bool:
    """Whether one text keeps as many telling words as another, and as many exact values."""
    return len(ours) >= len(theirs) and _exact(known, ours) >= _exact(known, theirs)


def _exact(known: Vocabulary, stems: Iterable[str]) -> int:
    found = (known.first[root] for root in stems)
    return sum(words[place].kind in EXACT_KINDS for words, _, place in found)


def _worth(known: Vocabulary, stems: Iterable[str]) -> float:
    return sum(known.worth.get(root, 0.0) for root in stems)
