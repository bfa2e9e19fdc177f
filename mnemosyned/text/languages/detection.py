"""Detects the script and the language of a text by its letters and stop words."""

from __future__ import annotations

import re

from mnemosyned.text.languages.tables import LANGUAGES

SHARE_MIN = 0.3
"""Share of the letters above which a text is written in a script; names need less."""
KNOWN_SHARE_MIN = 0.08
"""Share of the letters of its sources above which a summary may use a script."""
LETTERS_MIN = 8
WORDS_MIN = 3
"""Stop words needed to tell a language."""
CLEAR_FACTOR = 2.0
"""Factor by which the stop words of one language must outnumber those of another."""
ALSO_SHARE_MIN = 0.25
"""Share of the stop words of the main language above which another is used as well."""
KANA_MIN = 0.05
"""Share of kana among the letters of Japanese; Chinese, in the same Han characters, has none."""

_LETTERS = re.compile(r"[^\W\d_]+")
_SCRIPTS: tuple[tuple[str, str], ...] = (
    ("latin", "A-Za-zÀ-ɏḀ-ỿ"),
    ("greek", "Ͱ-Ͽἀ-῿"),
    ("cyrillic", "Ѐ-ԯ"),
    ("hebrew", "֐-׿"),
    ("arabic", "؀-ۿݐ-ݿ"),
    ("devanagari", "ऀ-ॿ"),
    ("thai", "฀-๿"),
    ("hangul", "가-힣ᄀ-ᇿ"),
    ("kana", "\u3040-\u30ff"),
    ("han", "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"),
)
_RUNS = {name: re.compile(f"[{ranges}]") for name, ranges in _SCRIPTS}

_LANGUAGES_OF_WORD: dict[str, list[str]] = {}
for _language in LANGUAGES:
    for _word in _language.stop_words.split():
        _LANGUAGES_OF_WORD.setdefault(_word, []).append(_language.code)


def script_shares(text: str) -> dict[str, float]:
    """Return the share of letters in each script, from 0 to 1, by its name, such as `han`."""
    letters = "".join(_LETTERS.findall(text))
    counts = {name: len(shape.findall(letters)) for name, shape in _RUNS.items()}
    total = sum(counts.values())
    return {name: count / total for name, count in counts.items() if count}


def foreign_script(summary: str, sources: str) -> str:
    """Return the name of a script that a summary uses and its sources do not, or ""."""
    if len(_LETTERS.sub("", summary)) > len(summary) - LETTERS_MIN:
        return ""
    known = script_shares(sources)
    for name, share in script_shares(summary).items():
        if share >= SHARE_MIN and known.get(name, 0) < KNOWN_SHARE_MIN:
            return name
    return ""


def foreign_language(summary: str, sources: str) -> str:
    """Return the language code of a summary if its sources clearly use another, else ""."""
    ours, theirs = script_shares(summary), script_shares(sources)
    if ours.get("han", 0) >= SHARE_MIN and theirs.get("han", 0) >= SHARE_MIN / 2:
        kana, source_kana = ours.get("kana", 0), theirs.get("kana", 0)
        if kana >= KANA_MIN > source_kana:
            return "ja"
        return "zh" if not kana and source_kana >= KANA_MIN * 2 else ""
    counts, source_counts = count_stop_words(summary), count_stop_words(sources)
    most = max(source_counts.values(), default=0)
    if most < WORDS_MIN or not counts:
        return ""
    allowed = [
        name for name, count in source_counts.items() if count >= ALSO_SHARE_MIN * most
    ]
    best = max(counts, key=counts.__getitem__)
    if best in allowed:
        return ""
    rival = max(counts.get(name, 0) for name in allowed)
    least = max(WORDS_MIN, CLEAR_FACTOR * rival, CLEAR_FACTOR)
    return best if counts[best] >= least else ""


def count_stop_words(text: str) -> dict[str, float]:
    """Return the number of stop words in a text by language code.

    A word that two languages share counts half for each.
    """
    counts: dict[str, float] = {}
    for word in _LETTERS.findall(text):
        languages = _LANGUAGES_OF_WORD.get(word.lower(), ())
        for name in languages:
            counts[name] = counts.get(name, 0.0) + 1 / len(languages)
    return counts
