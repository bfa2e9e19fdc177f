"""The Swedish language."""

from __future__ import annotations

from mnemosyned.text.languages.language import Language

SWEDISH = Language(
    code="sv",
    stop_words="""
        och att det som en på är av för med till den har de inte om ett han hon men
        var jag från vi kan när ska sig så
    """,
    deeds="gör göra gjorde gjort hände vad jag mig",
    continuations="""
        fortsätt vidare nu sedan nästa steg tack perfekt bra ja klart
    """,
    months=(
        "januari",
        "februari",
        "mars",
        "april",
        "",  # "maj" is not read
        "juni",
        "juli",
        "augusti",
        "september",
        "oktober",
        "november",
        "december",
    ),
)
