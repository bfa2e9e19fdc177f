"""Words as search reads them: stems, the terms of a question, and the snippet that shows a match.

`stem` is Porter's, as the full-text index stores it; it and `stem_prefix` are for search,
`light_stem` recognizes repetition within a text, and `match_prefix` finds the forms of a word in
a snippet. Case is folded, and accents are removed.

Terms are words, codes, compounds, and character pairs of scripts without spaces. Next to them
are the words that say little, in all languages: stop words, function words and common words.

Source: M. F. Porter, An algorithm for suffix stripping, Program 14(3), 1980, as SQLite's FTS5
applies it in its `porter unicode61 remove_diacritics 2`.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import chain, islice, pairwise
from string import ascii_letters

from mnemosyned.text.languages.tables import LANGUAGES
from mnemosyned.text.rule_files import compile_on_use, read_tables
from mnemosyned.text.sentences import UNSPACED, WORD_START
from mnemosyned.text.word_cache import WordCache, clear_on_forget

WORD = re.compile(r"[^\W_]+")
STEMMED_CHARS_MAX = 64
"""FTS5 leaves longer words as they are."""
_MARKS = re.compile("[\u0300-\u036f]+")
_MARKS_LEAD_BYTES = (b"\xcc", b"\xcd")
"""First bytes of these marks in UTF-8, which only a few Greek letters share."""

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
PREFIX_CHARS_MAX = 100


_RAISED = "²³¹⁰⁴-⁹₀-₉"
_VARIANT = (
    f"[{_RAISED}ªµºĲĳĿŀŉſǄ-ǌǱ-ǳʰ-ʸˠ-ˤᴬ-ᵪᵸᶛ-ᶿⁱⁿₐ-ₜℂ℃ℇ℉-ℓℕℙ-ℝℤℨℬ-ℹℼ-ℿⅅ-ⅉⅠ-ⅿ①-⒛ⱼⱽ"
    "\u2e9f\u2ef3\u2f00-\u2fd5\u3200-\u33ff\ufb00-\ufbff\ufc00-\ufdfb\ufe70-\ufefc"
    "０-９Ａ-Ｚａ-ｚ\uff66-\uffdc\U0001d400-\U0001d7ff\U0001ee00-\U0001eeff]"
)
_VARIANTS = compile_on_use(f"{_VARIANT}(?<![0-9{_RAISED}][{_RAISED}]){_VARIANT}*")
"""Other forms of common letters and digits: `ＡＰＩ`, `ｻｰﾊﾞｰ`, `ﬁ`, `CO₂`, `㎏`.

A raised digit after a digit is none (`10²` is not 102), and neither are fractions, signs such as `™`, and
full-width marks, which separate words."""


def unify_letters(text: str) -> str:
    """Return the text with common forms of its letters and digits: `API` for `ＡＰＩ`. Its length may change.

    Letters in parts, as in names of files from macOS, become whole. A change here needs a migration that
    rebuilds the indexes.
    """
    if text.isascii() or unicodedata.is_normalized("NFKC", text):
        return text
    common = _VARIANTS.sub(lambda run: unicodedata.normalize("NFKC", run[0]), text)
    return unicodedata.normalize("NFC", common)


def fold_case(text: str) -> str:
    """Return the text in lower case, without accents, and in common letters, as it is searched."""
    lower = unify_letters(text).lower()
    if lower.isascii():
        return lower
    parted = unicodedata.normalize("NFD", lower.replace("ς", "σ"))
    written = parted.encode("utf-8", "surrogatepass")
    # A search of bytes takes a tenth of the time: most texts have quotation marks, and no accents.
    has_marks = any(lead in written for lead in _MARKS_LEAD_BYTES)
    return _MARKS.sub("", parted) if has_marks else parted


def stem_prefix(stem: str) -> str:
    """Return the beginning of all words with a stem: the stem without a final i, e or l."""
    return stem[:-1] if len(stem) > 1 and stem[-1] in "iel" else stem


def light_stem(word: str) -> str:
    """Return a word in lower case without a common English ending, to recognize its other forms."""
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
    """Return the beginning common to all forms of a word, up to 100 characters; all of a short word or code."""
    if not word.isalpha() or len(word) <= 4:
        return word[:PREFIX_CHARS_MAX]
    return _ENDING.sub("", word[:PREFIX_CHARS_MAX])


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
    if word.endswith("y") and "v" in _letter_kinds(word[:-1]):
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
    """Return a word without a participle's `ed` or `ing`, by step 1b of Porter's algorithm.

    The ending is removed if a vowel precedes it. A doubled consonant becomes single: `hop` for `hopping`. A
    short word gets an `e`: `hope` for `hoping`. Other words are returned unchanged.
    """
    if word.endswith("eed") and word != "eed":
        return word[:-1] if _letter_kinds(word[:-3]).count("vc") else word
    ending = next((ending for ending in ("ed", "ing") if word.endswith(ending)), "")
    base = word.removesuffix(ending)
    if not ending or "v" not in _letter_kinds(base):
        return word
    if base.endswith(("at", "bl", "iz")):
        return base + "e"
    if base.endswith(_DOUBLES) or (base[-1:] >= "\x80" and base[-2:-1] == base[-1:]):
        return base[:-1]
    is_short = _letter_kinds(base).count("vc") == 1 and _ends_in_short_syllable(base)
    return base + "e" if is_short else base


def _replace_ending(word: str, table: dict[str, str], groups_min: int = 1) -> str:
    """Return a word with its ending replaced by the table's, if the rest of the word is long enough.

    It must have Porter's measure of at least `groups_min`, and before `ion` also end with s or t.
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


def _ends_in_short_syllable(word: str) -> bool:
    """Return True if a word ends in a consonant, a vowel, and a consonant other than w, x or y."""
    return _letter_kinds(word)[-3:] == "cvc" and word[-1] not in "wxy"


_STEMS = WordCache(
    lambda word: stem_bytes(word) if word.isascii() else word,
    entries_max=10_000,
)
stem = _STEMS.__getitem__
"""Returns the Porter stem of a folded word (lower case, no accents); stems are cached."""


@lru_cache(maxsize=1)
def _irregular_forms_by_stem() -> dict[str, tuple[str, ...]]:
    """Return {stem: other irregular forms of the word}, such as `bought` for the stem of `buy`."""
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
    """Return {stem: synonyms of the word, with their irregular forms}."""
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
    """Return spellings of a word with other accents, if the full-text index keeps them apart.

    The index ignores accents of Latin letters only. Greek has one accent in a word, and none in
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
    """Yield a word, then a copy for each letter in `accented`, with this letter accented."""
    yield word
    for index, letter in enumerate(word):
        if letter in accented:
            yield word[:index] + accented[letter] + word[index + 1 :]


_WORDS = {
    name: frozenset(words.split())
    for name, words in read_tables(__file__, "words.toml").items()
}
FUNCTION_WORDS = _WORDS["function_words"]
"""English words that a search ignores, in lower case."""
STOP_WORDS = FUNCTION_WORDS | _WORDS["stop_words"]
"""English words without content: function words, further pronouns, adverbs and conversational fillers."""
COMMON_WORDS = _WORDS["common_words"]
"""English words with a meaning, yet too common to identify one text among many."""

_QUESTION_STOP_WORDS = tuple(
    frozenset(language.question_stop_words.split())
    for language in LANGUAGES
    if language.question_stop_words
)
FOREIGN_STOP_WORDS = frozenset().union(*_QUESTION_STOP_WORDS)
STOP_WORDS_MIN = 2
"""A single stop word may be a name, or have another meaning in English: `die`, `was`, `an`."""


def foreign_stop_words(words: Collection[str]) -> frozenset[str]:
    """Return the foreign stop words among a question's lower-case words; empty for English or a single one."""
    if FOREIGN_STOP_WORDS.isdisjoint(words):
        return frozenset()
    matches = (known.intersection(words) for known in _QUESTION_STOP_WORDS)
    best = max(matches, key=len)
    english = FUNCTION_WORDS.intersection(words)
    return best if len(best) >= max(STOP_WORDS_MIN, len(english) + 1) else frozenset()


STOP_WORDS_FOLDED = STOP_WORDS | frozenset(map(fold_case, FOREIGN_STOP_WORDS))
"""Stop words of all languages in lower case, without accents."""
_VAGUE = STOP_WORDS_FOLDED | COMMON_WORDS


def is_code(word: str) -> bool:
    """Return True if a word is a code or identifier: `QX-48213`, `test_merge_twice`, `v1.2`."""
    if word.isalpha() or len(word) < CODE_CHARS_MIN:
        return False
    return _CODE.search(word) is not None


def is_vague(word: str) -> bool:
    """Return True if a folded word (lower case, no accents), or its stem, is too common for a search."""
    return not _VAGUE.isdisjoint((word, stem(word)))


def stems_with_content(text: str) -> set[str]:
    """Return the stems of words that may identify a text, at most one per chunk between spaces."""
    return set(map(_CONTENT_STEMS.__getitem__, text.split())) - {""}


def _content_stem(word: str) -> str:
    """Return the stem of a word's first part that is not vague, or ""; a word with digits stays whole."""
    if not _DIGITS.isdisjoint(word):
        return word
    for part in WORD.findall(fold_case(word)):
        if _VAGUE.isdisjoint((part, stem(part))):
            return stem(part)
    return ""


_DIGITS = frozenset("0123456789")
_CONTENT_STEMS = WordCache(_content_stem, entries_max=20_000)


TERMS_MAX = 48
"""Maximum terms of a question; each more costs time and adds little."""
PHRASE_TOKENS_MAX = 12
"""Maximum tokens of a code that are searched for. FTS5 compares all tokens of a phrase wherever the first one
occurs: `0,0,0,…` in a text of zeros takes the product of their lengths."""

_UNSPACED_RUN = compile_on_use(f"[{UNSPACED}]+")
_SPACED_BYTES = bytes(range(0xE0)) + b"\xe2"
"""First bytes, in UTF-8, of letters of scripts with spaces, and of common signs."""
_LETTER = re.compile("[^\\W_]|[\u0300-\u036f]")
_LATIN_PARTS = compile_on_use("[A-Za-z][\u0300-\u036f]+")
"""Letters with their accents apart, which the index of words knows."""
_CASES = bytes.maketrans(ascii_letters.encode(), b"a" * 26 + b"A" * 26)
_CAMEL_WORD = re.compile(r"\b[^\W\d_]*[a-z][A-Z]\w*")
_CAMEL_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_WORD = re.compile(r"\w+")
_CODE = re.compile(r"_|\w[./:\\]\w|^(?=.*\d).*[^\W\d]|[a-z][A-Z]")
CODE_CHARS_MIN = 3
CODE_DIGITS_MIN = 2
_EDGES = re.compile(r"^\W+|\W+$")
_POSSESSIVE = re.compile(r"['’]s?$", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Terms:
    """The terms of a search."""

    words: tuple[str, ...]
    """Words as typed, as the index folds case in its own way (it keeps the `ß` that Python's
    `casefold` replaces), and codes such as `QX-48213`, which match only as phrases."""
    grams: tuple[str, ...]
    """Character pairs of scripts without spaces."""
    joins: tuple[tuple[str, str], ...] = ()
    """Words with the form in which they would be joined with a neighbor: `call` and `oncall`."""

    @property
    def are_names_and_codes(self) -> bool:
        """Whether all terms are names or codes, with a code of at least two digits: `Renate QX-48213`.

        Semantic search cannot tell what such terms mean; it can for `mp3`.
        """
        codes = {
            word
            for word in self.words
            if sum(map(str.isdigit, word)) >= CODE_DIGITS_MIN and is_code(word)
        }
        names = (word for word in self.words if word not in codes)
        return bool(codes) and not self.grams and all(w[0].isupper() for w in names)

    def forms(self, word: str) -> tuple[str, ...]:
        """Return a word with its irregular forms, synonyms and accent variants: `buy` and `bought`."""
        folded = fold_case(word)
        kin = (*irregular_forms(folded), *synonyms_of(folded))
        return (word, *kin, *accent_variants(word))

    def __bool__(self) -> bool:
        """Return True if there is any term to search for."""
        return bool(self.words or self.grams)


def parse_terms(text: str) -> Terms:
    """Return the search terms of a question, up to `TERMS_MAX` words, without stop words if others are left."""
    text = unify_letters(text)
    words: dict[str, str] = {}
    for raw in _UNSPACED_RUN.sub(" ", text).split():
        token = _POSSESSIVE.sub("", _EDGES.sub("", raw))
        for word in _compound_and_parts(token):
            words.setdefault(word.lower(), word)
    stopped = FUNCTION_WORDS | foreign_stop_words(words.keys())
    content = [word for lower, word in words.items() if lower not in stopped]
    grams = tuple(dict.fromkeys(_character_pairs(text)))[:TERMS_MAX]
    if not content and not grams:
        content = list(words.values())
    return Terms(tuple(content[:TERMS_MAX]), grams, join_compounds(text, content))


def parse_content_terms(text: str) -> Terms:
    """Return the search terms of a question without stop words, even if no terms are left."""
    parsed = parse_terms(text)
    return Terms(
        tuple(word for word in parsed.words if word.lower() not in STOP_WORDS),
        parsed.grams,
        parsed.joins,
    )


def gram_text(text: str) -> str:
    """Return a memory's text for the index of character pairs: pairs, and parts of camelCase.

    Only scripts without spaces, such as Chinese, give pairs; most memories give an empty text. A
    change here needs a migration that rebuilds the index.
    """
    text = unify_letters(text)
    parts = [] if text.isascii() else _character_pairs(text)
    if b"aA" in text.encode().translate(_CASES):  # a tenth of the time of the pattern
        for name in _CAMEL_WORD.findall(text):
            parts.extend(_CAMEL_PART.findall(name))
    return " ".join(parts)


def glued_words(text: str) -> list[str]:
    """Return texts that the index has in no common form: `v1.2` in `版本v1.2已发布`, or all of `ＡＰＩ key`.

    If a text has letters in other forms, all its words are returned in one text, in their common forms.
    """
    unified = unify_letters(text)
    if unified != text and unified != _LATIN_PARTS.sub(
        lambda letter: unicodedata.normalize("NFC", letter[0]), text
    ):
        spaced = _UNSPACED_RUN.sub(" ", unified)
        return [spaced] if WORD.search(spaced) else []
    if not may_be_unspaced(text):
        return []
    glued: list[str] = []
    pieces = _UNSPACED_RUN.split(text)
    last = len(pieces) - 1
    for number, piece in enumerate(pieces):
        begins = number > 0 and _LETTER.match(piece)
        ends = number < last and _LETTER.match(piece[-1:])
        if begins or ends:
            words = piece.split()
            if begins:
                glued.append(words[0])
            if ends and not (begins and len(words) == 1):
                glued.append(words[-1])
    return glued


def with_words_apart(text: str) -> str:
    """Return the text with spaces around each run of Chinese or another script without spaces."""
    return _UNSPACED_RUN.sub(r" \g<0> ", text) if may_be_unspaced(text) else text


def without_unspaced(text: str) -> str:
    """Return the text, at the same length, with `。` for each letter of scripts without spaces."""
    if not may_be_unspaced(text):
        return text
    return _UNSPACED_RUN.sub(lambda run: "。" * len(run[0]), text)


def may_be_unspaced(text: str) -> bool:
    """Return False if a text surely has no script without spaces; faster than a pattern."""
    if text.isascii():
        return False
    return bool(text.encode("utf-8", "surrogatepass").translate(None, _SPACED_BYTES))


def length_in_letters(text: str) -> int:
    """Return a text's length, where a character of a script without spaces counts as three letters."""
    if not may_be_unspaced(text):
        return len(text)
    return len(text) + 2 * sum(map(len, _UNSPACED_RUN.findall(text)))


def count_unspaced(text: str) -> int:
    """Return the number of runs of letters in scripts without spaces."""
    return len(_UNSPACED_RUN.findall(text)) if may_be_unspaced(text) else 0


def has_unspaced_script(text: str) -> bool:
    """Return whether a text has a letter of a script without spaces, such as Chinese or Thai."""
    return _UNSPACED_RUN.search(text) is not None


def _compound_and_parts(token: str) -> list[str]:
    """Return a compound such as `mother/daughter`, then the words in the compound.

    A code, a single word or a function word is returned alone. A compound is cut to `PHRASE_TOKENS_MAX`
    tokens. The list is empty for a token without letters or digits.
    """
    ends = [part.end() for part in islice(WORD.finditer(token), PHRASE_TOKENS_MAX)]
    if len(ends) == PHRASE_TOKENS_MAX:
        token = token[: ends[-1]]
    words = _WORD.findall(token)
    if not words:
        return []
    is_code = len(words) == 1 or any(map(str.isdigit, token))
    if is_code or token.casefold() in FUNCTION_WORDS:
        return [token]
    return [token, *(word for word in words if len(word) > 1)]


def _character_pairs(text: str) -> list[str]:
    """Return all pairs of neighboring letters in scripts without spaces, and lone letters."""
    pairs: list[str] = []
    for run in _UNSPACED_RUN.findall(text):
        pairs.extend(run[i : i + 2] for i in range(max(1, len(run) - 1)))
    return pairs


# ----------------------------------------------------------------- compounds

PART_CHARS_MIN = 2
COMPOUND_CHARS_MIN, COMPOUND_CHARS_MAX = 4, 16
JOINS_MAX = 8
"""Joined forms that are looked for in a question."""
_PARTICLES = frozenset("on in up out off over down back by after under through".split())
"""Words without content that a compound may begin or end with: `on-call`, `check-in`."""
_SEPARABLE = frozenset(
    "ab an auf aus bei durch ein fest her hin los mit nach um vor weg zurück zusammen af op uit".split()
)
"""Prefixes of German and Dutch verbs, which may be the last word of a question: "wann bauen wir es ein?"."""
_EDGE_MARKS = "\"'“”‘’«»()[]{}<>,.;:!?¿¡…"


def split_compound(word: str) -> tuple[str, ...]:
    """Return the ways to write a word as two, such as `wi fi` for `wifi`; empty for none."""
    if not _may_be_joined([word]) or is_vague(fold_case(word)):
        return ()
    last = len(word) - PART_CHARS_MIN
    halves = [(word[:cut], word[cut:]) for cut in range(PART_CHARS_MIN, last + 1)]
    return tuple(
        f"{first} {second}"
        for first, second in halves
        if _may_be_compound_part(first) and _may_be_compound_part(second)
    )


def join_compounds(text: str, content: Iterable[str]) -> tuple[tuple[str, str], ...]:
    """Return (word of `content`, compound that has the word) pairs, such as (`call`, `oncall`) for "on call".

    A compound is a word without its hyphens, two neighbors, or a verb with a prefix that ends the text.
    """
    searched = {word.lower(): word for word in content}
    words = [raw.strip(_EDGE_MARKS) for raw in text.split()]
    hyphened, neighboring = [], []
    for word in words:
        parts = word.split("-")
        if len(parts) > 1 and word.lower() in searched and _may_be_joined(parts):
            hyphened.append((searched[word.lower()], "".join(parts)))
    for pair in pairwise(words):
        lower = [word.lower() for word in pair]
        in_content = [searched[word] for word in lower if word in searched]
        others = set(lower) - searched.keys() - _PARTICLES
        if in_content and not others and _may_be_joined(pair):
            neighboring.append((in_content[-1], "".join(pair)))
    last = words[-1].lower() if words else ""
    apart = [
        (word, f"{last}{lower}")
        for lower, word in searched.items()
        if last in _SEPARABLE and _may_be_joined((last, word))
    ]
    return tuple(dict.fromkeys(hyphened + neighboring + apart))[:JOINS_MAX]


def _may_be_joined(parts: Iterable[str]) -> bool:
    """Return True if parts have only letters, none is too short, and their total length suits a compound."""
    lengths = [len(part) if part.isalpha() else 0 for part in parts]
    return (
        min(lengths) >= PART_CHARS_MIN
        and COMPOUND_CHARS_MIN <= sum(lengths) <= COMPOUND_CHARS_MAX
    )


def _may_be_compound_part(word: str) -> bool:
    """Return True if a word may be part of a compound: `on` may, `of` may not."""
    lower = word.lower()
    return lower in _PARTICLES or lower not in FUNCTION_WORDS


# ------------------------------------------------------------------ snippets

SNIPPET_CHARS = 200
MATCHES_MAX = 200
EDGE_CHARS = 20
"""Distance from its ends within which a snippet is cut at a space."""


_WORD_START = compile_on_use(WORD_START)
_SNIPPET_BREAK = re.compile("[ 、。，；！？]")


@clear_on_forget
@lru_cache(maxsize=64)
def _compile_beginnings_pattern(terms: Terms) -> re.Pattern[str] | None:
    """Return a pattern that finds the beginnings of words that match; None without terms.

    It is for lower-case text. Without pairs of characters, it also matches within words, which saves
    a millisecond of compiling `WORD_START`.
    """
    words = "|".join(re.escape(match_prefix(word).lower()) for word in terms.words)
    if not terms.grams:
        return re.compile(words) if words else None
    prefixes = [rf"{WORD_START}(?:{words})"] if words else []
    prefixes += [re.escape(gram.lower()) for gram in terms.grams]
    return re.compile("|".join(prefixes))


def _find_beginnings(
    pattern: re.Pattern[str], low: str, at: int = 0, *, at_starts: bool
) -> Iterator[re.Match[str]]:
    """Yield the matches in a text in lower case, from `at` on; with `at_starts`, only starts of words."""
    while match := pattern.search(low, at):
        # Within a word, from the next word's start on: a word may be a million letters.
        start = _WORD_START.search(low, match.start()) if at_starts else match
        if start is None:
            return
        is_found = start.start() == match.start()
        at = match.end() if is_found else start.start()
        if is_found:
            yield match


def match_beginnings(terms: Terms) -> tuple[str, ...]:
    """Return the beginnings, in lower case, of words that match the terms, the longest first."""
    forms = (form for word in terms.words for form in terms.forms(word))
    words = {match_prefix(form).lower() for form in forms}
    words.update(gram.lower() for gram in terms.grams)
    return tuple(sorted(words, key=lambda word: (-len(word), word)))


def cut_snippet(content: str, terms: Terms, *, width: int = SNIPPET_CHARS) -> str:
    """Return the part of a text, about `width` characters long, with the most distinct terms.

    It is cut at spaces or marks such as `、` if possible, with `…` at each cut end. A short text stays whole.
    """
    if len(content) <= width:
        return content
    begin = min(_find_best_start(content, terms, width), len(content) - width)
    end = begin + width
    before = after = ""
    if begin > 0:
        found = _SNIPPET_BREAK.search(content, begin, begin + EDGE_CHARS)
        begin = found.end() if found else begin
        before = "…"
    if end < len(content):
        breaks = [*_SNIPPET_BREAK.finditer(content, end - EDGE_CHARS, end)]
        end = breaks[-1].start() if breaks else end
        after = "…"
    return before + content[begin:end] + after


def _find_best_start(content: str, terms: Terms, width: int) -> int:
    """Return the start of the part, `width` characters long, with the most distinct terms."""
    pattern = _compile_beginnings_pattern(terms)
    if pattern is None:
        return 0
    # This letter alone would become two.
    low = unify_letters(content).replace("İ", "I").lower()
    find = partial(_find_beginnings, low=low, at_starts=not terms.grams)
    first = list(islice(find(pattern), MATCHES_MAX))
    if len(first) == MATCHES_MAX:  # of words that are frequent here; others say more
        known = {match[0] for match in first}
        words = [
            word for word in terms.words if match_prefix(word).lower() not in known
        ]
        grams = [gram for gram in terms.grams if gram.lower() not in known]
        others = _compile_beginnings_pattern(Terms((*words,), (*grams,)))
        if other := next(find(others), None) if others else None:
            at = max(0, other.start() - width // 2)
            first += islice(find(pattern, at=at), MATCHES_MAX)
    matches = sorted({(match.start(), match[0]) for match in first})
    begin = 0
    most = -1
    for index, (start, _) in enumerate(matches):
        stop = start + width * 3 // 4
        end = bisect_left(matches, (stop, ""), lo=index)
        distinct = {text for _, text in matches[index:end]}
        if len(distinct) > most:
            begin, most = max(0, start - width // 5), len(distinct)
    if len(low) == len(content):
        return begin
    return bisect_left(
        range(len(content)), begin, key=lambda end: len(unify_letters(content[:end]))
    )
