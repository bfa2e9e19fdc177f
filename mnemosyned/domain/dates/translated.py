"""Time expressions of German, French, Spanish and Italian, said in English for `when` to read."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache

from mnemosyned.domain.dates.names import COUNTS, MONTHS, WEEKDAYS
from mnemosyned.domain.dates.relative import MONTH_NAMES as IN_ENGLISH
from mnemosyned.domain.text.stemming import WORD

_WEEKDAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()
_FIXED = {
    "the day before yesterday": "vorgestern|avant-hier|anteayer|antes de ayer|l['’]altro ieri",
    "yesterday evening": "gestern abend|hier soir|ayer por la (?:tarde|noche)|ieri sera",
    "yesterday morning": "gestern (?:morgen|früh)|hier matin|ayer por la mañana|ieri mattina",
    "this morning": "heute (?:morgen|früh)|ce matin|esta mañana|stamattina",
    "tonight": "heute (?:abend|nacht)|ce soir|esta noche|stasera|stanotte",
    "last night": "(?:letzte|vorige) nacht|la nuit dernière|anoche|la notte scorsa",
    "yesterday": "gestern|hier|ayer|ieri",
    "today": "heute|aujourd['’]hui|hoy|oggi",
    "last weekend": "(?:letzte[ns]|vorige[ns]|vergangene[ns]|am) wochenende"
    "|le week-?end dernier|el fin de semana pasado|lo scorso (?:fine settimana|weekend)",
    "last week": "(?:letzte[rn]?|vorige[rn]?|vergangene[rn]?) woche|la semaine (?:dernière|passée)"
    "|la semana pasada|la settimana scorsa|la scorsa settimana",
    "last month": "(?:letzten|vorigen|vergangenen) monat|le mois (?:dernier|passé)"
    "|el mes pasado|il mese scorso|lo scorso mese",
    "last year": "(?:letzte[ns]|vorige[ns]|vergangene[ns]) jahr|l['’]an(?:née)? (?:dernier|dernière"
    "|passée?)|el año pasado|l['’]anno scorso",
    "this week": "diese[r]? woche|cette semaine|esta semana|questa settimana",
    "this month": "diese[nm] monat|ce mois(?:-ci)?|este mes|questo mese",
    "this year": "dieses jahr|cette année|este año|quest['’]anno",
    "last summer": "(?:letzten|vorigen) sommer|l['’]été dernier|el verano pasado"
    "|l['’]estate scorsa",
    "last winter": "(?:letzten|vorigen) winter|l['’]hiver dernier|el invierno pasado"
    "|l['’]inverno scorso",
}
_UNITS = {
    "day": "tag(?:en)?|jours?|días?|giorn[oi]",
    "week": "wochen?|semaines?|semanas?|settiman[ae]",
    "month": "monat(?:en)?|mois|mes(?:es)?|mes[ei]",
    "year": "jahr(?:en)?|ans?|años?|ann[oi]",
}
WHOLE = 5
_OF = r"(?:de |del |di )?"
_YEAR = rf"(?: {_OF}(?P<year>\d{{4}}))?"


def translate_times(text: str) -> str:
    """The question with such expressions in English; one without them as it is."""
    if _hints().isdisjoint(WORD.findall(text.lower())):
        return text
    for rule, said in _rules():
        text = rule.sub(said, text)
    return text


@lru_cache(maxsize=1)
def _hints() -> frozenset[str]:
    """One of these words is in every such expression."""
    fixed = {
        word for forms in _FIXED.values() for word in re.findall(r"[^\W\d_]{3,}", forms)
    }
    return frozenset({*fixed, *MONTHS, *WEEKDAYS, *"vor il hace fa".split()})


@lru_cache(maxsize=1)
def _rules() -> list[tuple[re.Pattern[str], str | Callable[[re.Match[str]], str]]]:
    days = [name for name in WEEKDAYS if len(name) >= WHOLE]  # no "I am sat"
    month, weekday, count = (
        "|".join(map(re.escape, names)) for names in (MONTHS, days, COUNTS)
    )
    units = "|".join(f"(?P<{unit}>{forms})" for unit, forms in _UNITS.items())

    def dated(said: re.Match[str]) -> str:
        day = said.groupdict().get("day") or "in"
        name = IN_ENGLISH[MONTHS[said["month"].lower()] - 1]
        return " ".join(filter(None, (day, name, said["year"])))

    def counted(said: re.Match[str]) -> str:
        number = said["count"]
        amount = number if number.isdigit() else str(COUNTS[number.lower()])
        return f"{amount} {next(unit for unit in _UNITS if said[unit])}s ago"

    def last(said: re.Match[str]) -> str:
        return f"last {_WEEKDAYS[WEEKDAYS[said['weekday'].lower()]]}"

    shapes: list[tuple[str, str | Callable[[re.Match[str]], str]]] = [
        (forms, english) for english, forms in _FIXED.items()
    ]
    shapes += [
        (rf"(?:vor|il y a|hace) (?P<count>\d{{1,3}}|{count}) (?:{units})", counted),
        (rf"(?P<count>\d{{1,3}}|{count}) (?:{units}) fa", counted),
        (
            rf"(?:am|den|vom|le|el|il) (?P<day>\d{{1,2}})\.? {_OF}(?P<month>{month}){_YEAR}",
            dated,
        ),
        (rf"(?P<day>\d{{1,2}})(?:\.| de) (?P<month>{month}){_YEAR}", dated),
        (rf"(?:im|en|nel|à) (?P<month>{month}){_YEAR}", dated),
        (rf"(?:am |letzten |vorigen )+(?P<weekday>{weekday})", last),
        (rf"(?:le |el |il )?(?P<weekday>{weekday}) (?:dernier|pasado|scorso)", last),
    ]
    return [
        (re.compile(rf"(?<!\w)(?:{shape})(?!\w)", re.IGNORECASE), said)
        for shape, said in shapes
    ]
