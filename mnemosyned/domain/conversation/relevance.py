"""Relevance: whether recalled memory is worth its tokens beside a message."""

from __future__ import annotations

import re
from dataclasses import dataclass

from mnemosyned.domain.dates.questions import QuestionTimes
from mnemosyned.domain.languages import LANGUAGES
from mnemosyned.domain.search.results import Hit
from mnemosyned.domain.text.sentences import sentences
from mnemosyned.domain.text.stemming import fold_case
from mnemosyned.domain.text.terms import grams, has_unspaced_script
from mnemosyned.domain.text.tokenizer import EXACT_KINDS, UNTELLING_KINDS, Token, tokens
from mnemosyned.domain.text.words.irregular_forms import other_forms


@dataclass(frozen=True, slots=True, kw_only=True)
class RelevanceWeights:
    """Weights of what a recalled memory must share with the message."""

    words_min: int = 2
    """Telling words in common; one is enough if the message has no more than these."""
    pairs_min: int = 2
    """Character pairs in common, in scripts without spaces."""
    score_share_min: float = 0.2
    """Share of the best hit's score below which a hit is left out."""


WEIGHTS = RelevanceWeights()

_WORDS = " ".join(language.continuations for language in LANGUAGES)
_CONTINUATIONS = frozenset(
    token.stem for word in _WORDS.split() for token in tokens(word)
)
_UNSPACED_CONTINUATIONS = re.compile(
    "続けて|つづけて|ください|下さい|お願いします|次|进行|継続|继续|繼續|下一步|接下来|接下來|请|請"
    "|好的|谢谢|謝謝|ありがとう|はい|然后|然後|吧|呢|계속|해줘|해주세요|다음|부탁|네"
)


class Relevance:
    """The telling words of a message, and what shares them."""

    def __init__(self, message: str, times: QuestionTimes) -> None:
        bare = _UNSPACED_CONTINUATIONS.sub(" ", message)
        telling = [token for token in tokens(bare) if _is_telling(token)]
        stems = {token.stem for token in telling}
        self._stems = stems.union(*(_forms(token) for token in telling))
        self._count = len(stems)
        self._names = _names(bare)
        self._pairs = set(grams(bare).split()) if has_unspaced_script(bare) else set()
        self._names_a_time = bool(times.spans)

    @property
    def has_content(self) -> bool:
        """Whether the message says anything to recall memory for; "What next?" does not."""
        enough_pairs = len(self._pairs) >= WEIGHTS.pairs_min
        return bool(self._stems) or enough_pairs or self._names_a_time

    def worthwhile(self, hits: list[Hit]) -> list[Hit]:
        """Return the hits worth showing, in their order."""
        if not self.has_content or not hits:
            return []
        floor = hits[0].score * WEIGHTS.score_share_min
        return [hit for hit in hits if hit.score >= floor and self._is_worth(hit)]

    def _is_worth(self, hit: Hit) -> bool:
        if self._names_a_time or (hit.explanation or {}).get("meaning"):
            return True
        texts = [hit.content, *(line.content for line in hit.lines)]
        return self._shares("\n".join(texts))

    def _shares(self, text: str) -> bool:
        """Whether a text has enough of the message's telling words."""
        stems = {token.stem for token in tokens(text)}
        shared = self._stems & stems
        few = self._count <= WEIGHTS.words_min
        if len(shared) >= WEIGHTS.words_min or (shared and few):
            return True
        if shared & self._names:
            return True
        pairs = self._pairs & set(grams(text).split())
        return len(pairs) >= WEIGHTS.pairs_min


def _is_telling(token: Token) -> bool:
    return token.kind not in UNTELLING_KINDS and token.stem not in _CONTINUATIONS


def _names(message: str) -> set[str]:
    """Return the stems of exact values, and of names: capitalized words within a sentence."""
    names: set[str] = set()
    for sentence, _ in sentences(message):
        for position, token in enumerate(tokens(sentence)):
            named = token.kind in EXACT_KINDS or (token.capital and position > 0)
            if named and _is_telling(token):
                names.add(token.stem)
    return names


def _forms(token: Token) -> set[str]:
    """Return the stems of a word's irregular forms: of "bought" for "buy"."""
    forms = other_forms(fold_case(token.surface))
    return {form.stem for word in forms for form in tokens(word)}
