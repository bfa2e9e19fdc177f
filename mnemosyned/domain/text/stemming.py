"""Porter's stemmer and the folding of case and accents: a word as the index knows it.

Source: M. F. Porter, An algorithm for suffix stripping, Program 14(3), 1980, as SQLite's FTS5
applies it in its `porter unicode61 remove_diacritics 2`.
"""

from __future__ import annotations

import re
import unicodedata

from mnemosyned.domain.text.word_cache import WordCache

WORD = re.compile(r"[^\W_]+")
STEMMED_CHARS_MAX = 64
"""FTS5 leaves longer words as they are."""
STEMS_KEPT_MAX = 10_000
_MARKS = re.compile("[\u0300-\u036f]+")

_STEP_2 = {
    "ational": "ate", "tional": "tion", "enci": "ence", "anci": "ance", "izer": "ize",
    "logi": "log", "bli": "ble", "alli": "al", "entli": "ent", "eli": "e", "ousli": "ous",
    "ization": "ize", "ation": "ate", "ator": "ate", "alism": "al", "iveness": "ive",
    "fulness": "ful", "ousness": "ous", "aliti": "al", "iviti": "ive", "biliti": "ble",
}  # fmt: skip
_STEP_3 = {
    "icate": "ic", "ative": "", "alize": "al", "iciti": "ic", "ical": "ic", "ful": "", "ness": "",
}  # fmt: skip
_STEP_4 = (
    "ement", "ance", "ence", "able", "ible", "ment", "ant", "ent", "ion", "ism", "ate", "iti",
    "ous", "ive", "ize", "al", "er", "ic", "ou",
)  # fmt: skip
_BY_LENGTH_2 = sorted(_STEP_2, key=len, reverse=True)
_BY_LENGTH_3 = sorted(_STEP_3, key=len, reverse=True)


def fold_case(text: str) -> str:
    """The text in lower case and without accents, as long as the index does the same."""
    lower = text.lower()
    if lower.isascii():
        return lower
    return _MARKS.sub("", unicodedata.normalize("NFD", lower.replace("ς", "σ")))


def stem(word: str) -> str:
    """The stem of a folded word; cached, as texts repeat their words."""
    return _STEMS[word]


def stem_prefix(stem: str) -> str:
    """What every word of this stem begins with: an ending may have become i, e or (b)l."""
    return stem[:-1] if len(stem) > 1 and stem[-1] in "iel" else stem


def _porter(word: str) -> str:
    if not 3 <= len(word) <= STEMMED_CHARS_MAX or not word.isascii():
        return word
    word = _step_1(word)
    word = _replace_ending(word, _BY_LENGTH_2, _STEP_2)
    word = _replace_ending(word, _BY_LENGTH_3, _STEP_3)
    word = _step_4(word)
    if word.endswith("e"):
        rest = word[:-1]
        size = _measure(rest)
        if size > 1 or (size == 1 and not _ends_short(rest)):
            word = rest
    if word.endswith("ll") and _measure(word[:-1]) > 1:
        word = word[:-1]
    return word


def _step_1(word: str) -> str:
    if word.endswith(("sses", "ies")) and word not in ("sses", "ies"):
        word = word[:-2]
    elif word.endswith("s") and not word.endswith("ss"):
        word = word[:-1]
    if word.endswith("eed"):
        if _measure(word[:-3]):
            word = word[:-1]
    else:
        for ending in ("ed", "ing"):
            if word.endswith(ending):
                if _has_vowel(word[: -len(ending)]):
                    word = _restore_ending(word[: -len(ending)])
                break
    if word.endswith("y") and _has_vowel(word[:-1]):
        word = word[:-1] + "i"
    return word


def _restore_ending(rest: str) -> str:
    """What is left of `hoping`, `hopping`, `filing`: hope, hop, file."""
    if rest.endswith(("at", "bl", "iz")):
        return rest + "e"
    if len(rest) > 1 and rest[-1] == rest[-2] and rest[-1] not in "aeioulsz":
        return rest[:-1]
    if _measure(rest) == 1 and _ends_short(rest):
        return rest + "e"
    return rest


def _replace_ending(word: str, endings: list[str], table: dict[str, str]) -> str:
    for ending in endings:
        if word.endswith(ending):
            rest = word[: -len(ending)]
            return rest + table[ending] if _measure(rest) else word
    return word


def _step_4(word: str) -> str:
    for ending in _STEP_4:
        if word.endswith(ending):
            rest = word[: -len(ending)]
            if ending == "ion" and not rest.endswith(("s", "t")):
                return word
            return rest if _measure(rest) > 1 else word
    return word


def _pattern(word: str) -> str:
    """`v` for a vowel, `c` for a consonant, letter by letter."""
    kinds: list[str] = []
    for at, char in enumerate(word):
        vowel = char in "aeiou" or (char == "y" and at > 0 and kinds[-1] == "c")
        kinds.append("v" if vowel else "c")
    return "".join(kinds)


def _measure(word: str) -> int:
    """How many times vowels are followed by consonants: Porter's m."""
    return _pattern(word).count("vc")


def _has_vowel(word: str) -> bool:
    return "v" in _pattern(word)


def _ends_short(word: str) -> bool:
    """Whether it ends in consonant, vowel, consonant, the last not w, x or y."""
    return _pattern(word)[-3:] == "cvc" and word[-1] not in "wxy"


_STEMS = WordCache(_porter, entries_max=STEMS_KEPT_MAX)
