"""The French language."""

from __future__ import annotations

from mnemosyned.text.languages.language import Language, OrderWords, TimeGrammar

FRENCH = Language(
    code="fr",
    stop_words="""
        le la les de des du un une et est en que qui dans pour pas sur au aux avec
        ce cette il elle ne se plus par sont ou mais nous vous ils elles été leur
        leurs son sa ses à a
    """,
    deeds="fais fait faisais faisait faire font passait",
    question_stop_words="""
        le la les l un une des du de d et ou est sont était étaient a ai as ont
        avait je tu il elle on nous vous ils elles me te se ce c s j n qu que qui
        quoi quel quelle quels quelles quand où comment pourquoi combien mon ma mes
        ton ta tes son sa ses notre nos dans en sur à au aux pour par avec est-ce t
        y été fait passé
        prévu prévue
    """,
    continuations="""
        continue continuez vas-y allez maintenant ensuite après suite suivant suivante
        étape merci parfait super oui non accord bien
    """,
    months=(
        "janvier",
        "février",
        "mars",
        "avril",
        "mai",
        "juin",
        "juillet",
        "août",
        "septembre",
        "octobre",
        "novembre",
        "décembre",
    ),
    weekdays=(
        "lundi",
        "mardi",
        "mercredi",
        "jeudi",
        "vendredi",
        "samedi",
        "dimanche",
    ),
    counts=(
        "un une",
        "deux",
        "trois",
        "quatre",
        "cinq",
        "six",
        "sept",
        "huit",
        "neuf",
        "dix",
        "onze",
        "douze",
    ),
    times=TimeGrammar(
        phrases={
            "the day before yesterday": "avant-hier",
            "yesterday evening": "hier soir",
            "yesterday morning": "hier matin",
            "this morning": "ce matin",
            "tonight": "ce soir",
            "last night": "la nuit dernière",
            "yesterday": "hier",
            "today": "aujourd['’]hui",
            "last weekend": "le week-?end dernier",
            "last week": "la semaine (?:dernière|passée)",
            "last month": "le mois (?:dernier|passé)",
            "last year": "l['’]an(?:née)? (?:dernier|dernière|passée?)",
            "this week": "cette semaine",
            "this month": "ce mois(?:-ci)?",
            "this year": "cette année",
            "last summer": "l['’]été dernier",
            "last winter": "l['’]hiver dernier",
            "the day after tomorrow": "après-demain",
            "tomorrow morning": "demain matin",
            "tomorrow evening": "demain soir",
            "tomorrow": "demain",
            "next weekend": "le week-?end prochain",
            "next week": "la semaine prochaine",
            "next month": "le mois prochain",
            "next year": "l['’]an(?:née)? prochaine?",
        },
        units={
            "second": "secondes?",
            "minute": "minutes?",
            "hour": "heures?",
            "day": "jours?",
            "week": "semaines?",
            "month": "mois",
            "year": "ans?",
        },
        ago_before="il y a",
        ahead_before="dans",
        on_day="le",
        in_month="en|à",
        weekday_article="le ",
        last_after="dernier",
        on_weekday="le |ce ",
        next_after="prochain",
    ),
    order=OrderWords(
        latest="derni[eè]re?s?|plus récente?s?",
        earliest="premi[eè]re?s?|plus ancienne?s?",
        current="maintenant|encore|toujours|actuellement|désormais|en ce moment",
        ahead="est|sont|sera|seront|vient|viennent|dois|doit|prévue?s?",
        soon="demain prochain prochaine",
        past=(
            "généralement|habituellement|d['’]habitude|était|étaient|avait|avaient|s['’]est"
            "|a dit|a écrit|ai fait"
        ),
    ),
    backward_heads="""
        il elle ils elles ce cela ça c'est c'était cette ces celui celle ceux celles
        lui leur leurs parce ensuite
    """,
    connectives="et mais donc alors puis aussi",
    openers="bon bah ben oui non ok bref",
    courtesies="""
        bonjour salut bonsoir merci coucou bisous cordialement super parfait désolé désolée
    """,
)
