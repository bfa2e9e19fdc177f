"""Stop words of questions in other languages than English."""

from __future__ import annotations

from collections.abc import Collection

from mnemosyned.domain.text.stopwords import FUNCTION_WORDS

_STOP_WORDS = (
    """der die das den dem des ein eine einen einem einer und oder aber ist sind war waren wird
    wurde wurden hat habe haben hatte ich du er sie es wir ihr mich dich mir dir mein meine meinen
    meiner in im an am auf aus bei beim mit nach seit von vom zu zum zur für was wer wen wem wann wo
    wie warum wieso welche welcher welches welchen passiert gemacht getan""",
    """le la les l un une des du de d et ou est sont était étaient a ai as ont avait je tu il elle
    on nous vous ils elles me te se ce c s j n qu que qui quoi quel quelle quels quelles quand où
    comment pourquoi combien mon ma mes ton ta tes son sa ses notre nos dans en sur à au aux pour
    par avec est-ce t y été fait passé""",
    """el la los las un una unos unas y o es son era fue fueron ha he han hay yo tú él ella nosotros
    me te se mi mis tu tus su sus de del en al a por para con que qué quién quiénes cuál cuáles
    cuándo dónde cómo cuánto cuánta cuántos cuántas está estaba pasó hice hizo""",
    """il lo la i gli le un uno una e o è sono era ha ho hanno io tu lui lei noi mi ti si mio mia
    miei di del della dei in nel nella al alla a da per con che chi cosa quale quali quando dove
    come quanto quanta quanti perché stato fatto successo""",
)
"""Languages without declined nouns only: with declension and no stemmer, stop words may be all
that a question and its answer have in common."""
_LANGUAGES = tuple(frozenset(words.split()) for words in _STOP_WORDS)
FOREIGN_STOP_WORDS = frozenset().union(*_LANGUAGES)
STOP_WORDS_MIN = 2
"""A single one may be a name, or have another meaning in English: `die`, `was`, `an`."""


def foreign_stop_words(words: Collection[str]) -> frozenset[str]:
    """Return the stop words among lower-case words, in the language of the question."""
    if FOREIGN_STOP_WORDS.isdisjoint(words):
        return frozenset()
    matches = (known.intersection(words) for known in _LANGUAGES)
    best = max(matches, key=len)
    english = FUNCTION_WORDS.intersection(words)
    return best if len(best) >= max(STOP_WORDS_MIN, len(english) + 1) else frozenset()
