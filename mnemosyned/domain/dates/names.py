"""Names of months and weekdays and small numbers, in the languages that people write dates in."""

from __future__ import annotations

_MONTH_NAMES = (
    "january jan januar jänner enero janvier gennaio janeiro januari января январь январе",
    "february feb februar febrero février febbraio fevereiro februari февраля февраль феврале",
    "march mar märz marzo mars março maart марта март марте",
    "april apr abril avril aprile апреля апрель апреле",
    "may mai mayo maggio maio mei мая май мае",
    "june jun juni junio juin giugno junho июня июнь июне",
    "july jul juli julio juillet luglio julho июля июль июле",
    "august aug agosto août augustus augusti августа август августе",
    "september sep sept septiembre septembre settembre setembro сентября сентябрь сентябре",
    "october oct oktober okt octubre octobre ottobre outubro октября октябрь октябре",
    "november nov noviembre novembre novembro ноября ноябрь ноябре",
    "december dec dezember dez diciembre décembre dicembre dezembro декабря декабрь декабре",
)
MONTHS = {
    name: at for at, names in enumerate(_MONTH_NAMES, 1) for name in names.split()
}
_DAY_NAMES = (
    "monday mon montag lunes lundi lunedì понедельник понедельника",
    "tuesday tue tues dienstag martes mardi martedì вторник вторника",
    "wednesday wed mittwoch miércoles mercredi mercoledì среда среду среды",
    "thursday thu thurs donnerstag jueves jeudi giovedì четверг четверга",
    "friday fri freitag viernes vendredi venerdì пятница пятницу пятницы",
    "saturday sat samstag sonnabend sábado samedi sabato суббота субботу субботы",
    "sunday sun sonntag domingo dimanche domenica воскресенье воскресенья",
)
WEEKDAYS = {name: at for at, names in enumerate(_DAY_NAMES) for name in names.split()}
COUNTS = {
    word: value
    for value, words in enumerate(
        (
            "a an ein eine einem einer un una une один одну",
            "two couple zwei dos deux два две",
            "three drei tres trois три",
            "four vier cuatro quatre четыре",
            "five fünf cinco cinq пять",
            "six sechs seis шесть",
            "seven sieben siete sept семь",
            "eight acht ocho huit восемь",
            "nine neun nueve neuf девять",
            "ten zehn diez dix десять",
            "eleven elf once onze одиннадцать",
            "twelve zwölf doce douze двенадцать",
        ),
        start=1,
    )
    for word in words.split()
} | {"one": 1, "eins": 1, "uno": 1}
