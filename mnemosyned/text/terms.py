"""Search terms of a question, and the snippet that shows why a search found a text.

Terms are words, codes, compounds, and character pairs of scripts without spaces. Next to them
are the words that say little, in all languages: stop words, function words and common words.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice, pairwise
from string import ascii_letters

from mnemosyned.text.languages.tables import LANGUAGES
from mnemosyned.text.rule_files import read_tables
from mnemosyned.text.sentences import UNSPACED, WORD_START
from mnemosyned.text.stems import (
    WORD,
    accent_variants,
    fold_case,
    irregular_forms,
    match_prefix,
    stem,
    synonyms_of,
)
from mnemosyned.text.word_cache import WordCache, clear_on_forget

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
    """Return the stop words of a question's language, by its words in lower case; none in English."""
    if FOREIGN_STOP_WORDS.isdisjoint(words):
        return frozenset()
    matches = (known.intersection(words) for known in _QUESTION_STOP_WORDS)
    best = max(matches, key=len)
    english = FUNCTION_WORDS.intersection(words)
    return best if len(best) >= max(STOP_WORDS_MIN, len(english) + 1) else frozenset()


_STOP_WORDS_FOLDED = STOP_WORDS | frozenset(map(fold_case, FOREIGN_STOP_WORDS))
_VAGUE = _STOP_WORDS_FOLDED | COMMON_WORDS


def is_stop_word(word: str) -> bool:
    """Tell whether a folded word (lower case, no accents) is a stop word of any language."""
    return word in _STOP_WORDS_FOLDED


def is_code(word: str) -> bool:
    """Tell whether a word is exact as it is written: `QX-48213`, `test_merge_twice`, `v1.2`."""
    if word.isalpha() or len(word) < CODE_CHARS_MIN:
        return False
    return _CODE.search(word) is not None


def is_vague(word: str) -> bool:
    """Tell whether a folded word (lower case, no accents), or its stem, is too common to identify a memory."""
    return not _VAGUE.isdisjoint((word, stem(word)))


def stems_with_content(text: str) -> set[str]:
    """Return the stems of words that may identify a text, at most one per chunk between spaces.

    Splitting at spaces alone takes a third of the time.
    """
    return set(map(_CONTENT_STEMS.__getitem__, text.split())) - {""}


def _content_stem(word: str) -> str:
    """Return the stem of a word's first part that is not vague, or ""; one with a digit is whole."""
    if not _DIGITS.isdisjoint(word):
        return word
    for part in WORD.findall(fold_case(word)):
        if _VAGUE.isdisjoint((part, stem(part))):
            return stem(part)
    return ""


_DIGITS = frozenset("0123456789")
_CONTENT_STEMS = WordCache(_content_stem, entries_max=20_000)


TERMS_MAX = 48
"""Terms of a question; each further one costs time and adds little."""
PHRASE_TOKENS_MAX = 12
"""Tokens of a code that are searched for. FTS5 compares each token of a phrase wherever the first
one occurs: `0,0,0,…` in a text of zeros takes the product of their lengths."""

_UNSPACED_RUN = re.compile(f"[{UNSPACED}]+")
_SPACED_BYTES = bytes(range(0xE0)) + b"\xe2"
"""First bytes, in UTF-8, of letters of scripts with spaces, and of common signs."""
_LETTER = re.compile("[^\\W_]|[\u0300-\u036f]")
_CASES = bytes.maketrans(ascii_letters.encode(), b"a" * 26 + b"A" * 26)
_CAMEL_WORD = re.compile(r"\b[^\W\d_]*[a-z][A-Z]\w*")
_CAMEL_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_WORD = re.compile(r"\w+")
_CODE = re.compile(r"_|\w[./:\\]\w|[^\W\d].*\d|\d.*[^\W\d]|[a-z][A-Z]")
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
    def are_codes(self) -> bool:
        """Whether all terms are codes with digits, such as `QX-48213`, which have no meaning as `mp3` has."""
        counts = (sum(map(str.isdigit, word)) for word in self.words if is_code(word))
        codes = sum(count >= CODE_DIGITS_MIN for count in counts)
        return bool(codes) and codes == len(self.words) and not self.grams

    def forms(self, word: str) -> tuple[str, ...]:
        """Return a word with its irregular forms, synonyms and accent variants: `buy` and `bought`."""
        folded = fold_case(word)
        kin = (*irregular_forms(folded), *synonyms_of(folded))
        return (word, *kin, *accent_variants(word))

    def __bool__(self) -> bool:
        """Tell whether there is any term to search for."""
        return bool(self.words or self.grams)


def parse_terms(text: str) -> Terms:
    """Return the search terms of a question; stop words only if there are no other words."""
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
    """Return what a memory has in the index of character pairs: pairs, and parts of camelCase.

    The pairs are of scripts without spaces, such as Chinese. The text is empty for most memories. A
    change here needs a migration that rebuilds that index.
    """
    parts = [] if text.isascii() else _character_pairs(text)
    if b"aA" in text.encode().translate(_CASES):  # a tenth of the time of the pattern
        for name in _CAMEL_WORD.findall(text):
            parts.extend(_CAMEL_PART.findall(name))
    return " ".join(parts)


def glued_words(text: str) -> list[str]:
    """Return words such as `v1.2` in `版本v1.2已发布`, which the index stores with the adjacent letters."""
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


def has_unspaced_script(text: str) -> bool:
    """Return whether a text has a letter of a script without spaces, such as Chinese or Thai."""
    return _UNSPACED_RUN.search(text) is not None


def _compound_and_parts(token: str) -> list[str]:
    """Return a compound such as `mother/daughter` and its words, or only the token if it is a code.

    It is cut to `PHRASE_TOKENS_MAX` tokens. The list is empty for a token without letters or
    digits.
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
    """Return all pairs of neighboring letters in scripts without spaces; a single letter alone."""
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
    """Return pairs such as `call` and `oncall` for "on call": a searched word, and its compound."""
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
    return tuple(dict.fromkeys(hyphened + neighboring))[:JOINS_MAX]


def _may_be_joined(parts: Iterable[str]) -> bool:
    """Tell whether the parts are of letters only and, joined, of the length of a compound."""
    lengths = [len(part) if part.isalpha() else 0 for part in parts]
    return (
        min(lengths) >= PART_CHARS_MIN
        and COMPOUND_CHARS_MIN <= sum(lengths) <= COMPOUND_CHARS_MAX
    )


def _may_be_compound_part(word: str) -> bool:
    """Tell whether a word may be part of a compound: `on` may, `of` may not."""
    lower = word.lower()
    return lower in _PARTICLES or lower not in FUNCTION_WORDS


# ------------------------------------------------------------------ snippets

SNIPPET_CHARS = 200
MATCHES_MAX = 200
EDGE_CHARS = 20
"""Distance from its ends within which a snippet is cut at a space."""


_WORD_START = re.compile(WORD_START)


@clear_on_forget
@lru_cache(maxsize=64)
def _compile_beginnings_pattern(terms: Terms) -> re.Pattern[str] | None:
    """Return a pattern that finds words which match the terms, by beginnings; None for no terms.

    It is for text in lower case. Without pairs of characters, it finds them within words, too:
    `WORD_START` takes a millisecond to compile.
    """
    words = "|".join(re.escape(match_prefix(word).lower()) for word in terms.words)
    if not terms.grams:
        return re.compile(words) if words else None
    prefixes = [rf"{WORD_START}(?:{words})"] if words else []
    prefixes += [re.escape(gram.lower()) for gram in terms.grams]
    return re.compile("|".join(prefixes))


def _find_beginnings(
    pattern: re.Pattern[str], low: str, *, at_starts: bool
) -> Iterator[re.Match[str]]:
    """Yield the matches in a text in lower case; with `at_starts`, only those where a word starts."""
    at = 0
    while match := pattern.search(low, at):
        is_found = not at_starts or _WORD_START.match(low, match.start())
        at = match.end() if is_found else match.start() + 1
        if is_found:
            yield match


def match_beginnings(terms: Terms) -> tuple[str, ...]:
    """Return the beginnings of words that match the terms, in lower case, the longest first."""
    forms = (form for word in terms.words for form in terms.forms(word))
    words = {match_prefix(form).lower() for form in forms}
    words.update(gram.lower() for gram in terms.grams)
    return tuple(sorted(words, key=lambda word: (-len(word), word)))


def cut_snippet(content: str, terms: Terms, *, width: int = SNIPPET_CHARS) -> str:
    """Return the part of a text, `width` characters long, with the most distinct terms in it.

    It is cut at spaces if possible, with `…` at each cut end; a shorter text is returned whole.
    """
    if len(content) <= width:
        return content
    begin = min(_find_best_start(content, terms, width), len(content) - width)
    end = begin + width
    before = after = ""
    if begin > 0:
        begin = content.find(" ", begin, begin + EDGE_CHARS) + 1 or begin
        before = "…"
    if end < len(content):
        space = content.rfind(" ", end - EDGE_CHARS, end)
        end = space if space >= 0 else end
        after = "…"
    return before + content[begin:end] + after


def _find_best_start(content: str, terms: Terms, width: int) -> int:
    """Return the position of the part, `width` characters long, with the most distinct terms."""
    pattern = _compile_beginnings_pattern(terms)
    if pattern is None:
        return 0
    low = content.replace("İ", "I").lower()  # this letter alone would become two
    matches = [
        (match.start(), match[0])
        for match in islice(
            _find_beginnings(pattern, low, at_starts=not terms.grams), MATCHES_MAX
        )
    ]
    begin = 0
    most = -1
    for index, (start, _) in enumerate(matches):
        stop = start + width * 3 // 4
        end = bisect_left(matches, (stop, ""), lo=index)
        distinct = {text for _, text in matches[index:end]}
        if len(distinct) > most:
            begin, most = max(0, start - width // 5), len(distinct)
    return begin
