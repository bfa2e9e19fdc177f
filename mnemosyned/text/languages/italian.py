"""The Italian language."""

from __future__ import annotations

from mnemosyned.text.languages.language import Language, OrderWords, TimeGrammar

ITALIAN = Language(
    code="it",
    stop_words="""
        il lo la gli le di del della dei che e è un una in per con non si da al alla
        sono come anche ma più nel nella hanno ha questo questa loro suo sua
    """,
    deeds="faccio feci fece facevo faceva fare fatto successe accadde",
    question_stop_words="""
        il lo la i gli le un uno una e o è sono era ha ho hanno io tu lui lei noi mi
        ti si mio mia miei di del della dei in nel nella al alla a da per con che
        chi cosa quale quali quando dove come quanto quanta quanti perché stato
        fatto successo
        devo fare
    """,
    continuations="""
        continua vai avanti adesso ora poi dopo prossimo prossima passo grazie
        perfetto sì bene pronto
    """,
    months=(
        "gennaio",
        "febbraio",
        "marzo",
        "aprile",
        "maggio",
        "giugno",
        "luglio",
        "agosto",
        "settembre",
        "ottobre",
        "novembre",
        "dicembre",
    ),
    weekdays=(
        "lunedì",
        "martedì",
        "mercoledì",
        "giovedì",
        "venerdì",
        "sabato",
        "domenica",
    ),
    counts=("uno un una",),
    times=TimeGrammar(
        phrases={
            "the day before yesterday": "l['’]altro ieri",
            "yesterday evening": "ieri sera",
            "yesterday morning": "ieri mattina",
            "this morning": "stamattina",
            "tonight": "stasera|stanotte",
            "last night": "la notte scorsa",
            "yesterday": "ieri",
            "today": "oggi",
            "last weekend": "lo scorso (?:fine settimana|weekend)",
            "last week": "la settimana scorsa|la scorsa settimana",
            "last month": "il mese scorso|lo scorso mese",
            "last year": "l['’]anno scorso",
            "this week": "questa settimana",
            "this month": "questo mese",
            "this year": "quest['’]anno",
            "last summer": "l['’]estate scorsa",
            "last winter": "l['’]inverno scorso",
            "the day after tomorrow": "dopodomani",
            "tomorrow morning": "domani mattina",
            "tomorrow evening": "domani sera",
            "tomorrow": "domani",
            "next weekend": "il (?:prossimo (?:fine settimana|weekend)|(?:fine settimana|weekend) prossimo)",
            "next week": "la (?:prossima settimana|settimana prossima)",
            "next month": "il (?:prossimo mese|mese prossimo)",
            "next year": "(?:l['’]anno prossimo|il prossimo anno)",
        },
        units={
            "second": "second[oi]",
            "minute": "minut[oi]",
            "hour": "or[ae]",
            "day": "giorn[oi]",
            "week": "settiman[ae]",
            "month": "mes[ei]",
            "year": "ann[oi]",
        },
        ago_after="fa",
        ahead_before="tra|fra",
        on_day="il",
        in_month="nel",
        weekday_article="il ",
        last_after="scorso",
        on_weekday="questo |il ",
        next_before="il prossimo |prossimo ",
        next_after="prossimo",
    ),
    order=OrderWords(
        latest="ultim[oaie]|più recent[ei]",
        earliest="prim[oaie]",
        current="adesso|ora|ancora|attualmente|oggigiorno|in questo momento",
        ahead="è|sono|sarà|saranno|viene|vengono|devo|deve|previst[oaie]",
        soon="domani dopodomani prossimo prossima",
        past="normalmente|di solito|solitamente|era|erano|aveva|ha detto|ha scritto|ho fatto|successo",
    ),
    backward_heads="""
        lui loro questo questa questi queste quello quella quelli quelle ciò perché
        quindi inoltre
    """,
    connectives="e ma allora poi anche",
    openers="beh oh sì no ok dunque",
    courtesies="ciao grazie buongiorno buonasera saluti perfetto",
)
