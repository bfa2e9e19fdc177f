"""Stems of words, irregular forms, and spellings with and without accents.

`stem` is Porter's, as the full-text index stores it; it and `stem_prefix` are for search,
`light_stem` recognizes repetition within a text, and `match_prefix` finds the forms of a word in
a snippet. Case is folded, and accents are removed.

Source: M. F. Porter, An algorithm for suffix stripping, Program 14(3), 1980, as SQLite's FTS5
applies it in its `porter unicode61 remove_diacritics 2`.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from itertools import chain, islice

from mnemosyned.text.rule_files import read_tables
from mnemosyned.text.word_cache import WordCache

WORD = re.compile(r"[^\W_]+")
STEMMED_CHARS_MAX = 64
"""FTS5 leaves longer words as they are."""
STEMS_KEPT_MAX = 10_000
_MARKS = re.compile("[\u0300-\u036f]+")
_MARKS_LEAD_BYTES = (b"\xcc", b"\xcd")
"""First bytes of these marks in UTF-8; nothing else than a few Greek letters has them."""

_ENDING = re.compile(r"(?:ing|edly|ed|ies|es|s|e|y)$")

_TABLES = read_tables(__file__, "stems.toml")
_STEPS_2_AND_3: list[dict[str, str]] = [
    {ending: _TABLES[step][ending] for ending in sorted(_TABLES[step], key=len)[::-1]}
    for step in ("step_2", "step_3")
]
_STEP_4 = dict.fromkeys(_TABLES["step_4"].split(), "")
_SUFFIXES = tuple(_TABLES["light_suffixes"].split())
STEM_CHARS_MIN = 3
"""Characters that a light stem keeps of a word."""


def fold_case(text: str) -> str:
    """Return the text in lower case and without accents, as the full-text index stores it."""
    lower = text.lower()
    if lower.isascii():
        return lower
    parted = unicodedata.normalize("NFD", lower.replace("ς", "σ"))
    written = parted.encode("utf-8", "surrogatepass")
    # A search of bytes takes a tenth of the time: most texts have quotation marks, and no accents.
    has_marks = any(lead in written for lead in _MARKS_LEAD_BYTES)
    return _MARKS.sub("", parted) if has_marks else parted


def stem_prefix(stem: str) -> str:
    """Return the beginning that all words of a stem have: the stem without a final i, e or l."""
    return stem[:-1] if len(stem) > 1 and stem[-1] in "iel" else stem


def light_stem(word: str) -> str:
    """Return the lower-case word without a common English ending, by which repeats are found."""
    word = word.lower().replace("’", "'").removesuffix("'s")
    if not word.isascii():
        return word
    suffixes = (
        suffix
        for suffix in _SUFFIXES
        if word.endswith(suffix) and len(word) - len(suffix) >= STEM_CHARS_MIN
    )
    suffix = next(suffixes, "")
    if suffix == "s" and word.endswith(("ss", "us", "is")):
        suffix = ""  # no plural
    if suffix in ("ied", "ies"):
        return word.removesuffix(suffix) + "i"
    if suffix:
        word = word.removesuffix(suffix)
        if word[-1] == word[-2] and word[-1] not in "aeols":
            word = word[:-1]  # `stopp`, which an ending has doubled
    if len(word) > STEM_CHARS_MIN:
        word = word.removesuffix("e")
    return word[:-1] + "i" if word.endswith("y") else word


def match_prefix(word: str) -> str:
    """Return a word's beginning that its other forms have, too; short words and codes stay whole."""
    if not word.isalpha() or len(word) <= 4:
        return word
    return _ENDING.sub("", word)


def stem_bytes(word: str) -> str:
    """Return the Porter stem of a folded word, as the full-text index computes it.

    Each character of `word` is a byte of its UTF-8 form. Bytes beyond ASCII count as consonants.
    """
    if not 3 <= len(word) <= STEMMED_CHARS_MAX:
        return word
    if word.endswith(("sses", "ies")) and word not in ("sses", "ies"):
        word = word[:-2]
    elif word.endswith("s") and not word.endswith("ss"):
        word = word[:-1]
    word = _remove_participle_ending(word)
    if word.endswith("y") and _has_vowel(word[:-1]):
        word = word[:-1] + "i"
    for step in _STEPS_2_AND_3:
        word = _replace_ending(word, step)
    word = _replace_ending(word, _STEP_4, groups_min=2)
    if word.endswith("e"):
        size = _letter_kinds(word[:-1]).count("vc")
        if size > 1 or (size == 1 and not _ends_in_short_syllable(word[:-1])):
            word = word[:-1]
    is_double = word.endswith("ll") and _letter_kinds(word[:-1]).count("vc") > 1
    return word[:-1] if is_double else word


_DOUBLES = tuple(2 * letter for letter in "bcdfghjkmnpqrtvwxy0123456789")
"""Endings of a word that a participle has doubled; `l`, `s` and `z` may be double without."""


def _remove_participle_ending(word: str) -> str:
    """Return the word without `ed` or `ing`, as a verb, by step 1b of Porter's algorithm.

    A doubled consonant becomes single (`hopp` of `hopping`), and an `e` is added after a short
    word: `hope` for `hop` from `hoping`.
    """
    if word.endswith("eed") and word != "eed":
        return word[:-1] if _letter_kinds(word[:-3]).count("vc") else word
    ending = next((ending for ending in ("ed", "ing") if word.endswith(ending)), "")
    base = word.removesuffix(ending)
    if not ending or not _has_vowel(base):
        return word
    if base.endswith(("at", "bl", "iz")):
        return base + "e"
    if base.endswith(_DOUBLES) or (base[-1:] >= "\x80" and base[-2:-1] == base[-1:]):
        return base[:-1]
    is_short = _letter_kinds(base).count("vc") == 1 and _ends_in_short_syllable(base)
    return base + "e" if is_short else base


def _replace_ending(word: str, table: dict[str, str], groups_min: int = 1) -> str:
    """Return the word with the first ending of a table that it has replaced, if enough is left.

    That is Porter's measure of `groups_min`, and an s or t before `ion`.
    """
    for ending, replacement in table.items():
        if word.endswith(ending) and word != ending:
            base = word[: -len(ending)]
            is_left = ending != "ion" or base.endswith(("s", "t"))
            is_left = is_left and _letter_kinds(base).count("vc") >= groups_min
            return base + replacement if is_left else word
    return word


def _letter_kinds(word: str) -> str:
    """Return `v` for each vowel and `c` for each consonant; the count of `vc` is Porter's measure."""
    kinds = ""
    for char in word:
        if char == "y":
            kinds += "v" if kinds.endswith("c") else "c"
        else:
            kinds += "v" if char in "aeiou" else "c"
    return kinds


def _has_vowel(word: str) -> bool:
    """Return whether a word has a vowel, also `y` after a consonant."""
    return "v" in _letter_kinds(word)


def _ends_in_short_syllable(word: str) -> bool:
    """Return whether a word ends in consonant, vowel, consonant, the last not w, x or y."""
    return _letter_kinds(word)[-3:] == "cvc" and word[-1] not in "wxy"


_STEMS = WordCache(
    lambda word: stem_bytes(word) if word.isascii() else word,
    entries_max=STEMS_KEPT_MAX,
)
stem = _STEMS.__getitem__
"""Returns the Porter stem of a folded word (lower case, no accents); stems are cached."""


@lru_cache(maxsize=1)
def _irregular_forms_by_stem() -> dict[str, tuple[str, ...]]:
    """Return {stem: irregular forms of its word}, such as `bought` for the stem of `buy`."""
    others: dict[str, tuple[str, ...]] = {}
    for family in _TABLES["irregular_forms"].split(","):
        stems = {stem(word): word for word in family.split()}
        for own, own_word in stems.items():
            words = list(stems.values())
            words.remove(own_word)
            others[own] = tuple(words)
    return others


def irregular_forms(word: str) -> tuple[str, ...]:
    """Return the irregular forms of a folded word, `bought` for `buying`, or an empty tuple."""
    return _irregular_forms_by_stem().get(stem(word), ())


@lru_cache(maxsize=1)
def _synonyms_by_stem() -> dict[str, tuple[str, ...]]:
    """Return {stem: synonyms of its word, with their irregular forms}."""
    synonyms: dict[str, tuple[str, ...]] = {}
    for family in _TABLES["synonyms"].split(","):
        for own in (words := family.split()):
            others = [each for each in words if each != own]
            meant = (*others, *chain.from_iterable(map(irregular_forms, others)))
            for form in (own, *irregular_forms(own)):
                synonyms[stem(form)] = meant
    return synonyms


def synonyms_of(word: str) -> tuple[str, ...]:
    """Return words that mean the same as a folded word in most texts: `chose` for `decided`."""
    return _synonyms_by_stem().get(stem(word), ())


SPELLINGS_MAX = 32
_ACCENTED = dict(zip("αεηιουωϊϋ", "άέήίόύώΐΰ", strict=True))
_DIAERESES = {"ι": "ϊ", "υ": "ϋ"}
"""Vowels with a diaeresis, which occurs only after another vowel."""


def accent_variants(word: str) -> tuple[str, ...]:
    """Return the spellings of a word with other accents that the full-text index tells apart.

    FTS5 removes the accents of Latin letters only. Greek has one accent in a word, and none in
    capitals; Russian mostly writes `е` for `ё`.
    """
    if word.isascii() or not word.isalpha():
        return ()
    lower = word.lower().replace("ς", "σ")  # the index treats them alike
    plain = fold_case(word)
    forms: Iterator[str]
    if _ACCENTED.keys().isdisjoint(plain):
        forms = _accented_forms(lower.replace("ё", "е"), {"е": "ё"})
    else:
        with_diaeresis = (
            plain[:index] + _DIAERESES[plain[index]] + plain[index + 1 :]
            for index in range(1, len(plain))
            if plain[index] in _DIAERESES and plain[index - 1] in _ACCENTED
        )
        unaccented = chain((plain,), with_diaeresis)
        forms = chain.from_iterable(
            _accented_forms(form, _ACCENTED) for form in unaccented
        )
    others = (form for form in forms if form != lower)
    return tuple(islice(others, SPELLINGS_MAX))


def _accented_forms(word: str, accented: dict[str, str]) -> Iterator[str]:
    """Yield a word, and then the word with one accent, for each of its letters that `accented` maps."""
    yield word
    for index, letter in enumerate(word):
        if letter in accented:
            yield word[:index] + accented[letter] + word[index + 1 :]
