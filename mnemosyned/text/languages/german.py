"""The German language."""

from __future__ import annotations

from mnemosyned.text.languages.language import Language, OrderWords, TimeGrammar

GERMAN = Language(
    code="de",
    stop_words="""
        der die das und ist nicht ein eine einen mit für auf von dem den des sich
        auch wird wurde werden sie er es wir ich zu im am zum zur bei nach aus aber
        oder dass hat haben sind als wie noch nur um über
    """,
    deeds="""
        mache machst macht machen machte machtest machten tat taten tun tue hab hast
        erledigt unternommen geschah geschehen
    """,
    question_stop_words="""
        der die das den dem des ein eine einen einem einer und oder aber ist sind
        war waren wird wurde wurden hat habe haben hatte ich du er sie es wir ihr
        mich dich mir dir mein meine meinen meiner in im an am auf aus bei beim mit
        nach seit von vom zu zum zur für was wer wen wem wann wo wie warum wieso
        welche welcher welches welchen passiert gemacht getan
        steht gibt liegt los
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
            "the day after tomorrow": "übermorgen",
            "tomorrow morning": "morgen (?:früh|vormittag)",
            "tomorrow evening": "morgen abend",
            "tomorrow": "(?<!guten )(?<!am )(?<!jeden )morgen",
            "next weekend": "(?:nächste[ns]|kommende[ns]) wochenende",
            "next week": "(?:nächste[rn]?|kommende[rn]?) woche",
            "next month": "(?:nächste[nm]|kommende[nm]) monat",
            "next year": "(?:nächste[ns]|kommende[ns]) jahr",
        },
        units={
            "second": "sekunden?",
            "minute": "minuten?",
            "hour": "stunden?",
            "day": "tag(?:en?)?",
            "week": "wochen?",
            "month": "monat(?:en?)?",
            "year": "jahr(?:en?)?",
        },
        ago_before="vor",
        ahead_before="in",
        on_day="am|den|vom",
        in_month="im",
        last_before="letzten |vorigen |vergangenen ",
        on_weekday="am ",
        next_before="nächsten |kommenden ",
    ),
    order=OrderWords(
        latest="letzte[rnsm]?|neue?ste[rnsm]?|jüngste[rnsm]?|aktuellste[rnsm]?",
        earliest="erste[rnsm]?|früheste[rnsm]?|älteste[rnsm]?",
        current="jetzt|noch|immer noch|derzeit|aktuell|momentan|inzwischen|zurzeit|mittlerweile",
        ahead="ist|sind|bin|kommt|kommen|wird|werden|werde|steht|muss|müssen|soll|sollen|geplant|findet|beginnt",
        soon="morgen übermorgen nächste nächsten nächster nächstes kommende kommenden",
        past=r"normalerweise|gewöhnlich|üblicherweise|meistens|war|waren|hatte|hatten|wurde|wurden|passiert|ge\w{2,}(?:t|en)|\w+ge\w{2,}(?:t|en)",
    ),
    backward_heads="""
        er sie es dies dieser diese dieses diesem diesen ihr ihre sein seine deren
        dessen davon dafür damit dabei darum deshalb deswegen daher weil denn sondern
        außerdem danach sonst trotzdem
    """,
    connectives="und aber also dann auch",
    openers="naja ach oh ja nein ok okay genau übrigens eigentlich",
    courtesies="""
        hallo moin servus danke dankeschön tschüss guten gute schöne schönen liebe lieber
        super prima klar gerne gern verstanden bitte grüße gruß
    """,
)
