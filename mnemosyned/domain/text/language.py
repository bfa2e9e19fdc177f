"""Detects the script and the language of a text by its letters and stop words."""

from __future__ import annotations

import re

SHARE_MIN = 0.3
"""Share of the letters above which a text is written in a script; names need less."""
KNOWN_MIN = 0.08
"""Share of the letters of its sources above which a summary may use a script."""
LETTERS_MIN = 8
WORDS_MIN = 3
"""Stop words needed to tell a language."""
CLEAR = 2.0
"""Factor by which the stop words of one language must outnumber those of another."""
ALSO = 0.25
"""Share of the stop words of the main language above which another is used as well."""
KANA_MIN = 0.05

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

STOP_WORDS_BY_LANGUAGE = {
    "en": """the and of to is was were with that this for have has had are be been they she he his
        her their from not will would about which who at on it by as an or but you we""",
    "de": """der die das und ist nicht ein eine einen mit für auf von dem den des sich auch wird
        wurde werden sie er es wir ich zu im am zum zur bei nach aus aber oder dass hat haben sind
        als wie noch nur um über""",
    "es": """el la los las de del que y en un una es por con para no se su al lo como más pero sus
        le ya o este sí porque esta entre cuando muy sin sobre también fue ha era son está""",
    "fr": """le la les de des du un une et est en que qui dans pour pas sur au aux avec ce cette il
        elle ne se plus par sont ou mais nous vous ils elles été leur leurs son sa ses à a""",
    "it": """il lo la gli le di del della dei che e è un una in per con non si da al alla sono
        come anche ma più nel nella hanno ha questo questa loro suo sua""",
    "pt": """o a os as de do da dos das que e é um uma em no na para com não se por mais como mas
        ao ou foi são seu sua pelo pela também está eu ele ela""",
    "nl": """de het een en van ik te dat die in is niet op met voor zijn er aan om ook als maar
        naar bij uit nog heeft hebben wordt werd door ze hij wij""",
    "sv": """och att det som en på är av för med till den har de inte om ett han hon men var jag
        från vi kan när ska sig så""",
    "pl": """i w na z do nie się że to jest o jak po ale co od za przez dla czy są był była ma
        przy oraz tym tego""",
    "tr": """ve bir bu da de için ile çok olarak daha en gibi ama ne var o kadar sonra olan""",
    "ru": """и в не на что с по как это к но из у за от для о же так его её они мы был была было
        были при до или я он она если""",
    "uk": """і в не на що з та як це до але із у за від для про же так його її вони ми був була
        було були при або я він вона якщо є""",
}
_LANGUAGES_OF_WORD: dict[str, list[str]] = {}
for _language, _words in STOP_WORDS_BY_LANGUAGE.items():
    for _word in _words.split():
        _LANGUAGES_OF_WORD.setdefault(_word, []).append(_language)


def script_shares(text: str) -> dict[str, float]:
    """Return the share of each script among the letters of known scripts."""
    letters = "".join(_LETTERS.findall(text))
    counts = {name: len(shape.findall(letters)) for name, shape in _RUNS.items()}
    total = sum(counts.values())
    return {name: count / total for name, count in counts.items() if count}


def foreign_script(summary: str, sources: str) -> str:
    """Return the script of a summary if its sources do not use it, else an empty string."""
    if len(_LETTERS.sub("", summary)) > len(summary) - LETTERS_MIN:
        return ""
    known = script_shares(sources)
    for name, share in script_shares(summary).items():
        if share >= SHARE_MIN and known.get(name, 0) < KNOWN_MIN:
            return name
    return ""


def foreign_language(summary: str, sources: str) -> str:
    """Return the language of a summary if its sources clearly do not use it, else an empty string."""
    ours, theirs = script_shares(summary), script_shares(sources)
    if ours.get("han", 0) >= SHARE_MIN and theirs.get("han", 0) >= SHARE_MIN / 2:
        return _foreign_han_language(ours.get("kana", 0), theirs.get("kana", 0))
    source_counts, counts = count_stop_words(sources), count_stop_words(summary)
    if not source_counts or not counts:
        return ""
    most = max(source_counts.values())
    allowed = [name for name, count in source_counts.items() if count >= ALSO * most]
    best = max(counts, key=counts.__getitem__)
    rival = max(counts.get(name, 0) for name in allowed)
    if best in allowed or most < WORDS_MIN:
        return ""
    return best if counts[best] >= max(WORDS_MIN, CLEAR * max(rival, 1)) else ""


def _foreign_han_language(kana: float, source_kana: float) -> str:
    """Tell Japanese from Chinese, both written in Han, by the share of kana."""
    if kana >= KANA_MIN > source_kana:
        return "ja"
    return "zh" if source_kana >= KANA_MIN * 2 and not kana else ""


def count_stop_words(text: str) -> dict[str, float]:
    """Count the stop words of each language in a text; a word of several counts in parts."""
    counts: dict[str, float] = {}
    for word in _LETTERS.findall(text):
        languages = _LANGUAGES_OF_WORD.get(word.lower(), ())
        for name in languages:
            counts[name] = counts.get(name, 0.0) + 1 / len(languages)
    return counts
