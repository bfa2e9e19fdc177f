"""First words of sentences: which lean on the sentence before, and which can be left out."""

from __future__ import annotations

import re
from collections.abc import Sequence

from mnemosyned.domain.languages import LANGUAGES
from mnemosyned.domain.text.words.cue_words import CALENDAR

COURTESY_WORDS_MAX = 7
"""Words of the longest sentence that is nothing but a greeting, thanks or applause."""
OPENERS_MAX = 3

_EDGE = "\"'“”‘’«»„([*_—–-…¿¡"


def _every(field: str) -> frozenset[str]:
    return frozenset(
        word for language in LANGUAGES for word in getattr(language, field).split()
    )


BACKWARD = _every("backward_heads")
CONNECTIVES = _every("connectives")
OPENERS = _every("openers") | CONNECTIVES
COURTESIES = _every("courtesies")
_CONDITIONAL = frozenset(("so", "then", "also", "aussi", "también", "anche", "auch"))
"""Connectives that are something else before most words: "so glad", "so far"."""
_SUBJECTS = frozenset(
    """
    i we you the a an my our your he she it they this that these those there his her its their
    i'm i've i'd i'll we're we've we'd we'll you're it's that's he's she's they're there's
    wir ich der die das nous je le la les nosotros el los noi io il
    """.split()
)
_TIME_NOUNS = frozenset(
    """
    week month year morning evening afternoon night weekend summer winter spring fall autumn
    monday tuesday wednesday thursday friday saturday sunday quarter semester season
    woche monat jahr morgen abend nachmittag nacht wochenende sommer winter
    semaine mois année matin soir nuit été hiver semana mes año mañana tarde noche verano
    settimana mese anno mattina sera ano manhã noite maand jaar ochtend avond
    """.split()
)
"""After "this", they make a time, which the day of the line explains."""
_CALLS = frozenset(
    """
    Hey Hi Hello Yeah Yes Wow Thanks Oh Well Morning Dear Hallo Liebe Lieber Liebes Sehr Hola
    Querido Querida Estimado Estimada Salut Bonjour Cher Chère Ciao Caro Cara Gentile Beste
    """.split()
)
_CALLERS = frozenset(map(str.lower, _CALLS))
_CALL = re.compile(r"\w+(?: geehrte[rs]?)? [^\W\d_a-zß-ÿ][^,!?:;]{0,40}[,!] +(?=\w)")
"""A call by name: "Hey Jon, …", "Dear Ms. Weiss, …"."""
_SIGN_OFFS = frozenset("regards grüße grüßen cordialement saludos saluti".split())
_PERSONAL = frozenset(
    "he she his her him er sie il elle él lui lei hij zij ele ela".split()
)
_SOMEBODY = re.compile(
    r"(?<!^)(?<![.!?:] )[A-Z][a-z]+|\b(?:mom|mum|mother|dad|father|parents?|sister|brother"
    r"|son|daughter|kid|child|baby|aunt|uncle|cousin|niece|nephew|grand\w+|wife|husband|partner"
    r"|(?:girl|boy)?friend|boss|colleague|coach|doctor|vet|nurse|teacher|neighbou?r|landlord"
    r"|plumber|guy|man|woman|girl|boy|lady|dog|cat|puppy|kitten|pup|author|artist|player|fan)s?\b"
)
"""A name inside a sentence, or a word for a person."""
_LEANING = BACKWARD | CONNECTIVES


def may_lean_back(first: str) -> bool:
    """Tell whether a sentence that begins with this word, in lower case, may lean back."""
    return first.replace("’", "'") in _LEANING


def may_be_opener(first: str) -> bool:
    """Tell whether this word, in lower case, can be left out at the head of some sentences."""
    return first in OPENERS or first in _CALLERS


def leans_back(sentence: str) -> bool:
    """Tell whether a sentence begins with a word that stands for something before it."""
    head, _, rest = sentence.partition(" ")
    word = head.strip(_EDGE).rstrip(",.;:!?").lower()
    if not word.isalpha():
        word = word.replace("’", "'").replace("`", "'")
    if word not in _LEANING:
        return False
    following = rest.partition(" ")[0].strip(",.;:!?").lower()
    return following not in _TIME_NOUNS


def without_opener(sentence: str) -> str:
    """Return a sentence without the interjections and connectives at its head.

    "Well, but the invoice is paid." is "The invoice is paid."
    """
    for _ in range(OPENERS_MAX):
        shorter = _without_first(sentence)
        if shorter == sentence:
            break
        sentence = shorter
    return sentence


def _without_first(sentence: str) -> str:
    head, _, rest = sentence.partition(" ")
    if head in _CALLS and (called := _CALL.match(sentence)):
        rest = sentence[called.end() :]
        return rest[0].upper() + rest[1:]
    word = head.rstrip(",!.…").lower()
    if word not in OPENERS or not rest:
        return sentence
    if head[-1] not in ",!…":
        following = rest.partition(" ")[0].strip(",.;:!?").lower().replace("’", "'")
        if word not in CONNECTIVES or (
            word in _CONDITIONAL and following not in _SUBJECTS
        ):
            return sentence
    if not rest[0].isalpha():
        return sentence
    return rest[0].upper() + rest[1:]


def is_courtesy(words: Sequence[str]) -> bool:
    """Tell whether a sentence of these words, in lower case, is a greeting, thanks or applause."""
    if words[0] not in COURTESIES and _SIGN_OFFS.isdisjoint(words):
        return False
    return not any(map(str.isdigit, "".join(words)))


def names_somebody(text: str) -> bool:
    """Tell whether a text says who "he" or "she" after it may be."""
    return any(word not in CALENDAR for word in _SOMEBODY.findall(text))


def is_personal(sentence: str) -> bool:
    """Tell whether a sentence begins with "he" or "she"."""
    return (
        sentence.partition(" ")[0].strip(_EDGE).partition("'")[0].lower() in _PERSONAL
    )
