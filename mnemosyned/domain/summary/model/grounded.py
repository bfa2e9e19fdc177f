"""The sentences of a refused answer that can be kept, each judged by itself."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence

from mnemosyned.domain.summary.model.chunking import Piece
from mnemosyned.domain.summary.model.grounding import Fault, Problem
from mnemosyned.domain.text.sentences import sentences
from mnemosyned.domain.text.tokenizer import UNTELLING_KINDS, tokens

OF_THE_WHOLE = frozenset((Fault.UNINFORMATIVE, Fault.TOO_LONG))
"""Faults that a sentence has only as part of an answer."""
SHARED_MIN = 0.6
"""Share of a sentence's words that one source must have to be what it is about."""
_NEGATION = re.compile(
    r"\b(?:not|no|never|none|nobody|nothing|without|cannot|nicht|keine?[nmrs]?|nie|niemals|ohne"
    r"|pas|jamais|sans|nunca|sin|não|nem|mai|senza|niet|geen|inte|nie|не|нет|никогда|без)\b"
    r"|n't\b",
    re.IGNORECASE,
)


def grounded_sentences(
    answer: str, judge: Callable[[str], Sequence[Problem]], sources: Sequence[Piece]
) -> str:
    """Return an answer without its faulty sentences, cut where it begins to repeat itself.

    Its model has invented something, so that the others are held to more than an accepted
    answer: each word of theirs is said by whom they name, with the same negations. Empty where
    no sentence is left, or where all are, which mends nothing.
    """
    seen: set[str] = set()
    kept: list[str] = []
    dropped = False
    for sentence, starts_line in sentences(answer):
        key = sentence.casefold()
        if key in seen:
            dropped = True
            break
        seen.add(key)
        faulty = any(problem.kind not in OF_THE_WHOLE for problem in judge(sentence))
        if faulty or not is_said(sentence, sources):
            dropped = True
        else:
            kept.append(f"\n{sentence}" if starts_line else f" {sentence}")
    return "".join(kept).strip() if dropped else ""


def is_said(sentence: str, sources: Sequence[Piece]) -> bool:
    """Whether all words of a sentence are said by those it names, and nothing is denied or affirmed."""
    roles = {piece.role for piece in sources}
    names = roles - {""}
    wanted = _stems([sentence]) - _stems(names)
    speakers = {name for name in names if _is_named(name, sentence)} or roles
    texts = [piece.text for piece in sources if piece.role in speakers]
    if not wanted or not wanted <= _stems(texts):
        return False
    about = _closest_line(texts, wanted)
    if len(wanted & _stems([about])) < SHARED_MIN * len(wanted):
        return False
    return bool(_NEGATION.search(sentence)) == bool(_NEGATION.search(about))


def _is_named(name: str, sentence: str) -> bool:
    return re.search(rf"\b{re.escape(name)}\b", sentence) is not None


def _closest_line(texts: Iterable[str], stems: set[str]) -> str:
    """Return the sentence of the texts that has most of the stems."""
    lines = [line for text in texts for line, _ in sentences(text)]
    return max(lines, key=lambda line: len(stems & _stems([line])))


def _stems(texts: Iterable[str]) -> set[str]:
    return {
        token.stem
        for text in texts
        for token in tokens(" ".join(text.split()))
        if token.kind not in UNTELLING_KINDS
    }
