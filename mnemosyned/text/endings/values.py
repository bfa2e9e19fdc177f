"""Values and places of one thing: how far to lower the needed odds if a statement gives a new one."""

from __future__ import annotations

import re
from itertools import compress, groupby, pairwise

from mnemosyned.text.endings.plain import (
    ARTICLES,
    CONTRARY,
    DEFINITE,
    HOLDING,
    INDEFINITE,
    LETTERS,
    SHORT_MAX,
    WORDS,
    find,
    has,
    is_replaced,
)
from mnemosyned.text.endings.statements import (
    EXACT_KINDS,
    MONTH_WORDS,
    NAMING,
    Statement,
    StatementWord,
    is_among,
    is_weekday,
)

VALUE_MARGIN, WORDING_MARGIN, OTHER_WORDS_MAX = 2.0, 1.0, 3
"""How far the needed odds fall for another value of one thing, and if each statement has words that the other
lacks; and the maximum number of such words."""
RENAMED_MARGIN, MORE_WORDS_MARGIN, LEADER_MARGIN = 1.5, 0.75, 4.0
"""How far they fall for another name of a thing, for one more word or another end, and for another leader."""
PLACE_WORDS_MAX = 4
"""Maximum words of a place to which a thing was moved."""
SOFT = HOLDING.union(
    *(WORDS[name] for name in ("light", "doing", "new", "prices", "valuing"))
)
_APART = re.compile("x|fp*s|sp+f|snv|^p+f")
"""Pattern, over letters for kinds of words, of what names the thing that a value n belongs to: a name or
period x, "garage rent", "deposit for the rent", "rent of the garage", "room 12 seats", "for the garage"."""


def moves_thing(old: Statement, new: Statement) -> bool:
    """Return True if `new` probably changes the place or day in `old`: "I moved the keys to the safe"."""
    is_now_in = "now" in new.cues and "residing" in old.signs & new.signs
    shift = find("shifting", new) or (find("residing", new) if is_now_in else None)
    is_held = any(has(old, name) for name in ("staying", "light", "dated"))
    signs = (old.signs | new.signs) & CONTRARY | ((new.signs - old.signs) & {"new"})
    if not shift or not is_held or old.cues or signs:
        return False
    kinds: list[set[str]] = []
    for each, other in ((old, new), (new, old)):
        # Both first say what is moved, in the same words, and then where it is.
        if not (fresh := _list_end(each, other)):
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
    """Return by how much lower odds are enough if two statements give one thing two values; else 0.

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


def wording_margin(old: Statement, new: Statement) -> float:
    """Return how far to lower the odds needed if `new` says little more than what changed; else 0.

    - it is over: "the Lisbon trip is cancelled" after "we fly to Lisbon in May"
    - the thing has another name: "penny goes by ledger" after "the repo is called penny"
    - the former value is named: "GoodJob took over from Sidekiq" after "the queue is Sidekiq"
    - the same sentence has another name: "our lead is Ben" after "our lead is Ana"
    - with "now", it ends otherwise: "the ladder is in the attic now" after "the ladder hangs in the shed"
    """
    signs, doubts = old.signs | new.signs, CONTRARY - {"negation"}
    pairs = ((old, new), (new, old))
    gone, fresh = (
        [
            w
            for w in each.words
            if w.key not in SOFT | WORDS["recent"] and not is_among(w.key, other)
        ]
        for each, other in pairs
    )
    if "gone" in new.cues and not fresh and not new.signs & doubts:
        return VALUE_MARGIN
    if "gone" in new.cues and not gone and (but := find("contrast", new)):
        is_before = all(w in fresh or w.start < but.start() for w in new.words)
        is_over = is_before and not (old.cues or new.signs & doubts)
        return VALUE_MARGIN if is_over else 0.0
    if old.cues or signs & doubts or "negation" in old.signs:
        return 0.0
    if "gone" in new.cues:
        before = [w.key for w in new.frame if fresh and w.start < fresh[0].start]
        is_over = any(w.kind != "when" and is_among(w.key, old) for w in new.words)
        is_over &= len(fresh) == 1 < len(gone) and not has(new, "relatives")
        is_over &= WORDS["parts"].isdisjoint(before[-1:])
        return MORE_WORDS_MARGIN if is_over else 0.0
    if "negation" in signs or len(old.words) > SHORT_MAX:
        return 0.0
    if "naming" in old.signs and not new.signs.isdisjoint(NAMING):
        is_renamed = fresh and is_among(old.words[-1].key, new)
        if is_renamed and len(fresh) <= OTHER_WORDS_MAX:
            return RENAMED_MARGIN
        return _rate_other_name(old, new)
    if is_replaced(old, new, is_held=False):
        return VALUE_MARGIN
    if "i" in old.signs ^ new.signs:
        return 0.0
    ends = [_list_end(*pair) for pair in pairs]
    kinds = [{word.kind for word in end} & {*EXACT_KINDS} for end in ends]
    is_end = all(0 < len(end) <= OTHER_WORDS_MAX for end in ends) and "now" in new.cues
    is_other = "new" in new.signs or has(new, "relatives") > has(old, "relatives")
    is_end &= kinds[0] == kinds[1] and not is_other
    return max(_rate_other_name(old, new), MORE_WORDS_MARGIN * is_end)


def _rate_other_name(old: Statement, new: Statement) -> float:
    """Return how far the needed odds fall if two sentences differ only in a name and its article; else 0."""
    frames: list[list[str]] = []
    for each, other in ((old, new), (new, old)):
        named = (w for w in each.words if w.kind == "name" or not w.start)
        names = {word.key for word in named if not is_among(word.key, other)}
        keys = ["" if word.key in names else word.key for word in each.frame]
        keys = [  # "o Renato", "a Beatriz", and "o meu" as "a minha"
            (key[0] if key[0] in "mnu" else "-")
            if key in ARTICLES | INDEFINITE
            else key
            for key, after in pairwise([*keys, "."])
            if after or key not in ARTICLES | INDEFINITE
        ]
        frames.append([key for key, _ in groupby(keys)])
    frame, new_frame = frames
    if frame != new_frame or frame.count("") != 1 or not frame[2:]:
        return 0.0
    front = [key for key in frame[: frame.index("")] if key not in WORDS["titles"]]
    if not front:
        return LEADER_MARGIN if find("led", old) else 0.0
    is_several = any(has(old, name) for name in ("additive", "plural", "shared_roles"))
    is_several |= front[0] in INDEFINITE | WORDS["parts"]
    is_held = bool({"naming"} & old.signs or {"now"} & new.cues.keys())
    is_held |= front[-1] in HOLDING | WORDS["by"]
    is_held &= not is_several
    return VALUE_MARGIN if is_held or front[-1] in WORDS["caring"] else 0.0


def _list_end(statement: Statement, other: Statement) -> list[StatementWord]:
    """Return the last words of a statement, if `other` has all words before them but none of them; else []."""
    words = [w for w in statement.words if w.key not in SOFT | WORDS["staying"]]
    are_fresh = [not is_among(word.key, other) for word in words]
    is_end = are_fresh[:1] == [False] and are_fresh == sorted(are_fresh)
    return list(compress(words, are_fresh)) if is_end else []


def _read_value(statement: Statement, other: Statement) -> tuple[str, dict[str, str]]:
    """Return the kind of the only value that `other` lacks, or "", and {missing word: word before it}."""
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
