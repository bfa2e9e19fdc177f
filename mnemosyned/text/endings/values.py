"""Values and places of one thing: how far to lower the odds needed where a statement gives another one."""

from __future__ import annotations

import re
from itertools import compress

from mnemosyned.text.endings.plain import (
    ARTICLES,
    CONTRARY,
    DEFINITE,
    HOLDING,
    INDEFINITE,
    LETTERS,
    LIGHT,
    WORDS,
    find,
    has,
)
from mnemosyned.text.endings.statements import (
    EXACT_KINDS,
    MONTH_WORDS,
    Statement,
    is_among,
    is_weekday,
)

VALUE_MARGIN, WORDING_MARGIN, OTHER_WORDS_MAX = 2.0, 1.0, 3
"""How much less odds have to be for another value of one thing, and where both statements have words that the
other has not; and how many such words there may be."""
PLACE_WORDS_MAX = 4
"""Words of a place to which a thing was moved."""
SOFT = HOLDING.union(
    *(WORDS[name] for name in ("light", "doing", "new", "prices", "valuing"))
)
_APART = re.compile("x|fp*s|sp+f|snv|^p+f")
"""What tells what a value n is of: a name or period x, "garage rent", "deposit for the rent",
"rent of the garage", "room 12 seats", "for the garage"."""


def moves_thing(old: Statement, new: Statement) -> bool:
    """Return True if `new` probably changes the place or day in `old`: "I moved the keys to the safe"."""
    shift = find("shifting", new)
    is_held = any(has(old, name) for name in ("staying", "light", "dated"))
    signs = (old.signs | new.signs) & CONTRARY | ((new.signs - old.signs) & {"new"})
    if not shift or not is_held or old.cues or signs:
        return False
    kinds: list[set[str]] = []
    for each, other in ((old, new), (new, old)):
        words = [w for w in each.words if w.key not in LIGHT | WORDS["staying"]]
        are_fresh = [not is_among(word.key, other) for word in words]
        fresh = list(compress(words, are_fresh))
        # Both first say what is moved, in the same words, and then where it is.
        if not fresh or are_fresh[0] or are_fresh != sorted(are_fresh):
            return False
        before = [w for w in each.frame if w.start < fresh[0].start]
        place = next((w for w in before[::-1] if w.key not in ARTICLES), fresh[0])
        is_other = bool(place.kind) or place.key in HOLDING | WORDS["others"]
        is_other |= place.key in WORDS["belonging"] and (
            each is old or place.key != "do"
        )
        if is_other or fresh[0].unit or len(fresh) > PLACE_WORDS_MAX:
            return False
        kinds.append({word.kind for word in fresh})
    is_behind = "german" in new.signs or shift.start() < fresh[0].start
    return is_behind and all(
        (k in kinds[0]) == (k in kinds[1]) for k in ("when", "code")
    )


def value_margin(old: Statement, new: Statement) -> float:
    """Return how far to lower the odds needed if two statements give two values of one thing; else 0.

    "For the phone we pay 89 euros" and "the phone costs 104 euros from May" share a noun and have a number
    with one unit, a time, weekday or date each. Few words of only one of them may tell other things apart.
    """
    is_no_value = bool(old.cues) or "gone" in new.cues or "i" in old.signs ^ new.signs
    if is_no_value or (old.signs | new.signs) & CONTRARY:
        return 0.0
    (kind, gone), (new_kind, fresh) = _read_value(old, new), _read_value(new, old)
    is_other = not kind or kind != new_kind or len(gone) + len(fresh) > OTHER_WORDS_MAX
    is_other |= bool(find("required", old)) != bool(find("required", new))
    for word in () if is_other or "changed" in new.cues else new.frame[1:]:
        is_other |= word.key in WORDS["apart"]
        is_other |= word.key.endswith("ed") and is_among(word.key, old)
    for was in gone:
        is_other |= any(was[-4:] == w[-4:] or gone[was] == fresh[w] for w in fresh)
    return 0.0 if is_other else WORDING_MARGIN if gone and fresh else VALUE_MARGIN


def _read_value(statement: Statement, other: Statement) -> tuple[str, dict[str, str]]:
    """Return the kind of the one value that `other` lacks, else "", and {missing word: word before it}."""
    kinds: set[str] = set()
    rest: dict[str, str] = {}
    narrowing = WORDS["narrowing"] | WORDS["back"]
    letters = before = unit = ""
    for word in statement.frame:
        key, is_shared = word.key, is_among(word.key, other)
        if word.kind in EXACT_KINDS:
            is_start = key.isalpha() and before in WORDS["since"]  # "from May"
            letters += "-" if is_shared or is_start else "n"
            if letters[-1] == "n":
                is_day = word.unit or key in MONTH_WORDS
                when = "weekday" if is_weekday(key) else "day" if is_day else "time"
                soon = before if before in WORDS["soon"] else ""
                kinds.add(f"{word.unit} {soon}" if word.kind != "when" else when)
        elif (word.kind and key not in SOFT and not unit) or key in narrowing:
            is_thing = word.kind == "name" or key in narrowing
            letters += "s" if is_shared else "x" if is_thing else "f"
            rest |= {} if is_shared else {key: before}
        elif key not in DEFINITE | INDEFINITE or key in WORDS["parts"]:
            letters += "p" if key in WORDS["parts"] else LETTERS.get(key, "-")
        before, unit = key, word.unit
    is_one = len(kinds) == 1 and "s" in letters and not _APART.search(letters)
    return kinds.pop() if is_one else "", rest
