"""English irregular forms, which no stemmer unites: `buy` and `bought`, `child` and `children`."""

from __future__ import annotations

from functools import lru_cache

from mnemosyned.domain.text.stemming import stem

_FAMILIES = """
    arise arose arisen, awake awoke awoken, beat beaten, become became, begin began begun,
    bend bent, bind bound, bite bit bitten, bleed bled, blow blew blown, break broke broken,
    breed bred, bring brought, build built, burn burnt, buy bought, catch caught,
    choose chose chosen, cling clung, come came, creep crept, deal dealt, dig dug,
    draw drew drawn, dream dreamt, drink drank drunk, drive drove driven, eat ate eaten,
    fall fell fallen, feed fed, feel felt, fight fought, find found, flee fled, fly flew flown,
    forbid forbade forbidden, forget forgot forgotten, forgive forgave forgiven,
    freeze froze frozen, give gave given, grow grew grown, hang hung, hear heard,
    hide hid hidden, hold held, keep kept, know knew known, lay laid, lead led, lean leant,
    learn learnt, leave left, lend lent, lie lain, light lit, lose lost, make made, mean meant,
    meet met, pay paid, prove proven, ride rode ridden, ring rang rung, rise rose risen,
    run ran, say said, see saw seen, seek sought, sell sold, send sent, sew sewn,
    shake shook shaken, shine shone, shoot shot, show shown, shrink shrank shrunk,
    sing sang sung, sink sank sunk, sit sat, sleep slept, slide slid, smell smelt,
    speak spoke spoken, spend spent, spill spilt, spin spun, stand stood, steal stole stolen,
    stick stuck, strike struck, sweep swept, swim swam swum, swing swung, take took taken,
    teach taught, tear tore torn, tell told, think thought, throw threw thrown,
    understand understood, wake woke woken, wear wore worn, weave wove woven, weep wept,
    win won, wind wound, write wrote written,
    man men, woman women, child children, foot feet, tooth teeth, mouse mice, goose geese,
    wife wives, life lives, knife knives, leaf leaves, shelf shelves, half halves, wolf wolves,
    die dying, tie tying
"""


@lru_cache(maxsize=1)
def _other_forms_by_stem() -> dict[str, tuple[str, ...]]:
    """Return one word of every other stem of the same family, by stem."""
    others: dict[str, tuple[str, ...]] = {}
    for family in _FAMILIES.split(","):
        stems = {stem(word): word for word in family.split()}
        for own, own_word in stems.items():
            words = list(stems.values())
            words.remove(own_word)
            others[own] = tuple(words)
    return others


def other_forms(word: str) -> tuple[str, ...]:
    """Return the irregular forms of a folded word: `bought` for `buying`."""
    return _other_forms_by_stem().get(stem(word), ())
