"""The Polish language."""

from __future__ import annotations

from mnemosyned.text.languages.language import Language

POLISH = Language(
    code="pl",
    stop_words="""
        i w na z do nie się że to jest o jak po ale co od za przez dla czy są był
        była ma przy oraz tym tego
    """,
    deeds="co ja robię robiłem robiłam zrobiłem zrobiłam robił robiła działo",
    months=tuple(
        (
            "stycznia lutego marca kwietnia maja czerwca "
            "lipca sierpnia września października listopada grudnia"
        ).split()
    ),
    continuations="""
        dalej kontynuuj teraz potem następny następna krok dziękuję dzięki proszę
        super tak dobrze gotowe
    """,
)
