"""The Spanish language."""

from __future__ import annotations

from mnemosyned.text.languages.language import Language, OrderWords, TimeGrammar

SPANISH = Language(
    code="es",
    stop_words="""
        el la los las de del que y en un una es por con para no se su al lo como más
        pero sus le ya o este sí porque esta entre cuando muy sin sobre también fue
        ha era son está
    """,
    deeds="hago hice hizo hacía hacías hacer hecho pasaba ocurrió día",
    question_stop_words="""
        el la los las un una unos unas y o es son era fue fueron ha he han hay yo tú
        él ella nosotros me te se mi mis tu tus su sus de del en al a por para con
        que qué quién quiénes cuál cuáles cuándo dónde cómo cuánto cuánta cuántos
        cuántas está estaba pasó hice hizo
        tengo toca
    """,
    continuations="""
        continúa continua sigue adelante ahora luego después siguiente paso gracias
        perfecto vale sí bien listo
    """,
    months=(
        "enero",
        "febrero",
        "marzo",
        "abril",
        "mayo",
        "junio",
        "julio",
        "agosto",
        "septiembre",
        "octubre",
        "noviembre",
        "diciembre",
    ),
    weekdays=(
        "lunes",
        "martes",
        "miércoles",
        "jueves",
        "viernes",
        "sábado",
        "domingo",
    ),
    counts=(
        "uno un una",
        "dos",
        "tres",
        "cuatro",
        "cinco",
        "seis",
        "siete",
        "ocho",
        "nueve",
        "diez",
        "once",
        "doce",
    ),
    times=TimeGrammar(
        phrases={
            "the day before yesterday": "anteayer|antes de ayer",
            "yesterday evening": "ayer por la (?:tarde|noche)",
            "yesterday morning": "ayer por la mañana",
            "this morning": "esta mañana",
            "tonight": "esta noche",
            "last night": "anoche",
            "yesterday": "ayer",
            "today": "hoy",
            "last weekend": "el fin de semana pasado",
            "last week": "la semana pasada",
            "last month": "el mes pasado",
            "last year": "el año pasado",
            "this week": "esta semana",
            "this month": "este mes",
            "this year": "este año",
            "last summer": "el verano pasado",
            "last winter": "el invierno pasado",
            "the day after tomorrow": "pasado mañana",
            "tomorrow morning": "mañana por la mañana",
            "tomorrow evening": "mañana por la (?:tarde|noche)",
            "tomorrow": "(?<!la )(?<!esta )mañana",
            "next weekend": "el (?:próximo fin de semana|fin de semana que viene)",
            "next week": "la (?:próxima semana|semana (?:próxima|que viene))",
            "next month": "el (?:próximo mes|mes (?:próximo|que viene))",
            "next year": "el (?:próximo año|año (?:próximo|que viene))",
        },
        units={
            "second": "segundos?",
            "minute": "minutos?",
            "hour": "horas?",
            "day": "días?",
            "week": "semanas?",
            "month": "mes(?:es)?",
            "year": "años?",
        },
        ago_before="hace",
        ahead_before="en|dentro de",
        on_day="el",
        in_month="en",
        weekday_article="el ",
        last_after="pasado",
        on_weekday="el |este ",
        next_before="el próximo |próximo ",
        next_after="próximo|que viene",
    ),
    order=OrderWords(
        latest="últim[oa]s?|más recientes?",
        earliest="primer[oa]?s?|más antigu[oa]s?",
        current="ahora|todavía|aún|actualmente|hoy en día|en este momento",
        ahead="es|son|está|están|será|serán|hay|viene|vienen|tengo|debo|toca",
        soon="mañana próximo próxima viene",
        past="normalmente|generalmente|suelo|sueles|suele|era|eran|fue|fueron|había|pasó|hice|hizo|dijo|escribió",
    ),
    backward_heads="""
        él ellos ellas eso esto ese esa esos esas este estos estas aquello porque
        después además así
    """,
    connectives="y pero entonces luego también",
    openers="pues bueno oh sí no vale claro",
    courtesies="""
        hola gracias buenos buenas adiós saludos perfecto genial vale claro qué
    """,
)
