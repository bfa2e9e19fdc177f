"""The Portuguese language."""

from __future__ import annotations

from mnemosyned.text.languages.language import Language

PORTUGUESE = Language(
    code="pt",
    stop_words="""
        o a os as de do da dos das que e é um uma em no na para com não se por mais
        como mas ao ou foi são seu sua pelo pela também está eu ele ela
    """,
    deeds="fiz fez fazia faço fazer feito aconteceu houve eu dia",
    continuations="""
        continua continue segue adiante agora depois próximo próxima passo obrigado
        obrigada perfeito sim bem pronto
    """,
    months=(
        "janeiro",
        "fevereiro",
        "março",
        "abril",
        "maio",
        "junho",
        "julho",
        "agosto",
        "setembro",
        "outubro",
        "novembro",
        "dezembro",
    ),
    backward_heads="""
        ele eles ela elas isso isto esse essa esses essas este esta porque além
    """,
    connectives="e mas então depois também",
    openers="bem oh sim não ok",
    courtesies="olá oi obrigado obrigada tchau abraços",
)
