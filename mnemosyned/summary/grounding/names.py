"""Proper names of a text that its sources do not contain."""

from __future__ import annotations

from collections.abc import Iterator, Set as AbstractSet
from typing import NamedTuple

from mnemosyned.text import rule_files, sentences, terms
from mnemosyned.text.languages.tables import MONTHS, WEEKDAYS, count_stop_words
from mnemosyned.text.tokens import FOREIGN_COMMON, TITLES

_WORDS, _NAMES, _PATTERNS, _FORMS = rule_files.read_rule_file(__file__)

TITLED_SHARE = 0.7
"""Minimum share of capitalized words, among the longer ones, in a title."""
TITLED_WORDS_MIN = 3
SENTENCE_ENDS = tuple(sentences.SPACED_ENDS)
"""Marks at the end of sentences, but not of titles."""
ENDING_CHARS_MAX = 3
"""Maximum length of a case ending of a name: Анна, Анны; Petr, Petrem."""
STEM_CHARS_MIN = 3
MISSPELLED_CHARS_MIN = 7
"""Minimum length of a name to accept transposed letters in: Brian is not Brain."""

AS_NAME = "@"
"""Prefix that marks the forms of words with a capital letter in the sources."""

_STARTS = '.!?…:;\n"“”„«»()[]*#•|。！？-–—>'

ORDINARY = _WORDS["ordinary"]
_ALL_TITLES = TITLES | frozenset("herr herrn frau dr prof".split())
_NOUN_ENDINGS = tuple(_WORDS["noun_endings"])
_THING_ENDINGS = tuple(_WORDS["thing_endings"])


_ORDINARY_PARTS = terms.STOP_WORDS | terms.COMMON_WORDS | ORDINARY
_NOT_NAMES = _ORDINARY_PARTS.union(MONTHS, WEEKDAYS, FOREIGN_COMMON)
_CYRILLIC_ENDINGS = tuple("а я ы и у ю е ой ей ом ем".split())


class _NameWord(NamedTuple):
    """A word of a line, perhaps a name, with its position in characters."""

    text: str
    start: int
    end: int
    opens: bool
    """True at the start of a sentence, a clause after a colon or an item of a list."""

    @property
    def capital(self) -> bool:
        """Whether the word begins with a capital letter."""
        return self.text[0].isupper()

    @property
    def folded(self) -> str:
        """The word in lower case."""
        return self.text.casefold()


def find_unknown_names(
    text: str, known: AbstractSet[str], folded: str
) -> Iterator[str]:
    """Yield each name in a text that is in no source.

    `known` contains the forms of the sources' words; `folded`, for scripts without spaces, their text in lower
    case. In German and at the start of a sentence, a capitalized word is a name only if the words around it
    show one, as a title does.
    """
    counts = count_stop_words(text)
    german = bool(counts) and counts.get("de") == max(counts.values())
    for line in text.split("\n"):
        words = list(_read_words(line))
        long = [word for word in words if len(word.text) > STEM_CHARS_MIN]
        capitals = sum(word.capital for word in long)
        is_title = (
            len(long) >= TITLED_WORDS_MIN
            and capitals >= TITLED_SHARE * len(long)
            and not line.rstrip().endswith(SENTENCE_ENDS)
        )
        for at, word in enumerate(words):
            if not word.capital or _is_known(word.text, known):
                continue
            is_certain = not (german or word.opens or is_title)
            if is_certain or _is_name_in_context(words, at, known, german=german):
                yield word.text
    for match in _PATTERNS["cjk_name"].finditer(text):
        run = match[1]
        least = 1 if len(run) == 1 else 2
        if run not in _WORDS["han_generic"] and not any(
            run[at:] in folded for at in range(len(run) - least + 1)
        ):
            yield run
    for match in _PATTERNS["hangul_name"].finditer(text):
        if match[1] not in folded:
            yield match[1]


def list_name_forms(text: str) -> Iterator[str]:
    """Yield the lower-case forms of a text's words, to compare the names in another text with.

    Capitalized words also yield forms marked by `AS_NAME`, and initials such as "nyc".
    """
    previous: list[str] = []
    for match in _PATTERNS["word"].finditer(text):
        word = match[0]
        yield from _list_word_forms(word)
        if word[0].isupper():
            yield from [f"{AS_NAME}{form}" for form in _list_word_forms(word)]
        previous = [*previous[-4:], word[0].lower()] if word[0].isupper() else []
        for length in range(2, len(previous) + 1):
            yield "".join(previous[-length:])  # the initials of "New York City"


def _list_word_forms(word: str) -> Iterator[str]:
    """Yield a word in lower case and the stem; for a compound, also the parts and their stems."""
    lower = word.casefold().replace(".", "").removesuffix("'s").rstrip("'")
    yield lower
    yield from _find_distinctive_stem(lower)
    if not lower.isalpha() or not (word.islower() or word.istitle()):
        for part in _split_parts(word):
            yield part
            yield from _find_distinctive_stem(part)


def _find_distinctive_stem(word: str) -> Iterator[str]:
    """Yield the stem of a word, if the stem has more than `STEM_CHARS_MIN` letters."""
    root = terms.light_stem(word)
    if len(root) > STEM_CHARS_MIN:
        yield root


def _split_parts(word: str) -> list[str]:
    """Return the parts of `McKinsey-Report` in lower case, without single letters and a final "'s"."""
    found = _PATTERNS["part"].findall(word.removesuffix("'s"))
    return [part.casefold() for part in found if len(part) > 1]


def _read_words(line: str) -> Iterator[_NameWord]:
    """Yield the words of a line, marking those at the start of a sentence, clause or item."""
    end = 0
    for match in _PATTERNS["word"].finditer(line):
        gap = line[end : match.start()]
        marks = gap.replace(" ", "")
        opens = end == 0 or any(mark in _STARTS for mark in marks)
        if gap.startswith(".") and line[:end].rpartition(" ")[2].lower() in TITLES:
            opens = False
        end = match.end()
        yield _NameWord(match[0], match.start(), end, opens)


def _is_known(word: str, known: AbstractSet[str]) -> bool:
    """Return True if a capitalized word is ordinary, a form of a word in `known`, or a compound of these."""
    lower = word.casefold().removesuffix("'s")
    if lower in _NOT_NAMES or not set(_list_word_forms(word)).isdisjoint(known):
        return True
    parts = _split_parts(word)
    if len(parts) > 1 and all(
        part in _ORDINARY_PARTS or part in known or len(part) == 1 for part in parts
    ):
        return True
    return _is_inflection(lower, known) or _is_transposition(lower, known)


def _is_transposition(word: str, known: AbstractSet[str]) -> bool:
    """Return True if a word is a known name with two neighboring letters exchanged: Francsico."""
    return len(word) >= MISSPELLED_CHARS_MIN and any(
        f"{AS_NAME}{word[:at]}{word[at + 1]}{word[at]}{word[at + 2 :]}" in known
        for at in range(1, len(word) - 1)
        if word[at] != word[at + 1]
    )


def _is_inflection(word: str, known: AbstractSet[str]) -> bool:
    """Return True if a word differs from a known name only in its ending."""
    if len(word) <= STEM_CHARS_MIN:
        return f"{AS_NAME}{word}s" in known
    for cut in range(1, ENDING_CHARS_MAX + 1):
        root = word[:-cut]
        if len(root) < max(STEM_CHARS_MIN, cut + 2):
            break
        if f"{AS_NAME}{root}" in known:
            return True
    is_cyrillic = any("а" <= char <= "я" for char in word)
    roots = [word[: len(word) - cut] for cut in range(3 if is_cyrillic else 1)]
    endings = _CYRILLIC_ENDINGS if is_cyrillic else ("s", "n")
    return any(
        f"{AS_NAME}{root}{ending}" in known
        for root in roots
        if len(root) >= STEM_CHARS_MIN
        for ending in endings
    )


def _is_name_in_context(
    words: list[_NameWord], at: int, known: AbstractSet[str], *, german: bool
) -> bool:
    """Return True if the words around the capitalized word at index `at` show that it is a name.

    Names occur after a title, before a verb of speech or another name, and in German after a
    preposition of place.
    """
    word = words[at]
    # Within the same clause.
    before = words[at - 1] if at and not word.opens else None
    after = words[at + 1] if at + 1 < len(words) else None
    if after and after.opens:
        after = None
    if before and before.folded in _ALL_TITLES:
        return True
    if german and (
        word.folded.endswith(_NOUN_ENDINGS) or word.folded in _WORDS["german_things"]
    ):
        return False
    acts = word.text.endswith("'s") or (
        after and after.folded in _WORDS["speech_verbs"]
    )
    is_joined = before is not None and before.folded in _WORDS["conjunctions"]
    has_no_article = before is None or before.capital or is_joined
    if acts and (not german or has_no_article):
        return True
    if after and after.capital and not _is_known(after.text, known):
        return True
    if not german:
        return after is not None and word.opens and _is_subject(words, at, after)
    if before and before.folded in _WORDS["place_prepositions"]:
        return after is None or not after.capital
    partner = words[at - 2] if at > 1 and is_joined else None
    return (
        partner is not None
        and partner.capital
        and f"{AS_NAME}{partner.folded}" in known
    )


def _is_subject(words: list[_NameWord], at: int, after: _NameWord) -> bool:
    """Return True if `after`, the next word, shows that the word at index `at` is a subject."""
    if after.folded in _WORDS["conjunctions"] and at + 2 < len(words):
        other = words[at + 2]
        if other.capital and not other.opens:
            return True
    verb = after.text
    if words[at].folded.endswith(_THING_ENDINGS) or not verb.islower():
        return False
    return verb in _WORDS["auxiliaries"] or (
        len(verb) > STEM_CHARS_MIN
        and verb.endswith(("ed", "s"))
        and not verb.endswith("ss")
    )
