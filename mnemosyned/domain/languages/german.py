"""The German language."""

from __future__ import annotations

from mnemosyned.domain.languages.language import Language, TimeGrammar

GERMAN = Language(
    code="de",
    stop_words="""
        der die das und ist nicht ein eine einen mit für auf von dem den des sich
        auch wird wurde werden sie er es wir ich zu im am zum zur bei nach aus aber
        oder dass hat haben sind als wie noch nur um über
    """,
    question_stop_words="""
        der die das den dem des ein eine einen einem einer und oder aber ist sind
        war waren wird wurde wurden hat habe haben hatte ich du er sie es wir ihr
        mich dich mir dir mein meine meinen meiner in im an am auf aus bei beim mit
        nach seit von vom zu zum zur für was wer wen wem wann wo wie warum wieso
        welche welcher welches welchen passiert gemacht getan
    """,
    continuations="""
        weiter weitermachen mach los nun dann danach nächster nächste nächstes schritt
        fertig super prima genau richtig danke bitte gerne klar passt geht
    """,
    months=(
        "januar jänner",
        "februar",
        "märz",
        "april",
        "mai",
        "juni",
        "juli",
        "august",
        "september",
        "oktober okt",
        "november",
        "dezember dez",
    ),
    months_capitalized=True,
    weekdays=(
        "montag",
        "dienstag",
        "mittwoch",
        "donnerstag",
        "freitag",
        "samstag sonnabend",
        "sonntag",
    ),
    counts=(
        "eins ein eine einem einer",
        "zwei",
        "drei",
        "vier",
        "fünf",
        "sechs",
        "sieben",
        "acht",
        "neun",
        "zehn",
        "elf",
        "zwölf",
    ),
    times=TimeGrammar(
        phrases={
            "the day before yesterday": "vorgestern",
            "yesterday evening": "gestern abend",
            "yesterday morning": "gestern (?:morgen|früh)",
            "this morning": "heute (?:morgen|früh)",
            "tonight": "heute (?:abend|nacht)",
            "last night": "(?:letzte|vorige) nacht",
            "yesterday": "gestern",
            "today": "heute",
            "last weekend": "(?:letzte[ns]|vorige[ns]|vergangene[ns]|am) wochenende",
            "last week": "(?:letzte[rn]?|vorige[rn]?|vergangene[rn]?) woche",
            "last month": "(?:letzten|vorigen|vergangenen) monat",
            "last year": "(?:letzte[ns]|vorige[ns]|vergangene[ns]) jahr",
            "this week": "diese[r]? woche",
            "this month": "diese[nm] monat",
            "this year": "dieses jahr",
            "last summer": "(?:letzten|vorigen) sommer",
            "last winter": "(?:letzten|vorigen) winter",
        },
        units={
            "day": "tag(?:en)?",
            "week": "wochen?",
            "month": "monat(?:en)?",
            "year": "jahr(?:en)?",
        },
        ago_before="vor",
        on_day="am|den|vom",
        in_month="im",
        last_before="am |letzten |vorigen ",
    ),
)
