"""Which script and language a text is in, as far as its letters and little words tell."""

from __future__ import annotations

import re

SHARE_MIN = 0.3
"""Of a text's letters, what makes a script one that it is written in; names need less."""
KNOWN_MIN = 0.08
"""Of the sources' letters, what makes a script one that a summary may be written in."""
LETTERS_MIN = 8
WORDS_MIN = 3
"""With fewer little words, which language it is remains open."""
CLEAR = 2.0
"""How many times as often the words of one language must occur as another's."""
ALSO = 0.25
"""Of the commonest language's little words, what another has where both are spoken."""
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

_LITTLE = {
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
_OF_WORD: dict[str, list[str]] = {}
for _name, _words in _LITTLE.items():
    for _word in _words.split():
        _OF_WORD.setdefault(_word, []).append(_name)


def script_shares(text: str) -> dict[str, float]:
    """The share of each script among the letters that are of a known one."""
    letters = "".join(_LETTERS.findall(text))
    counts = {name: len(shape.findall(letters)) for name, shape in _RUNS.items()}
    total = sum(counts.values())
    return {name: count / total for name, count in counts.items() if count}


def foreign_script(summary: str, sources: str) -> str:
    """The script that the summary is in and its sources are not; empty where there is none."""
    if len(_LETTERS.sub("", summary)) > len(summary) - LETTERS_MIN:
        return ""
    known = script_shares(sources)
    for name, share in script_shares(summary).items():
        if share >= SHARE_MIN and known.get(name, 0) < KNOWN_MIN:
            return name
    return ""


def foreign_language(summary: str, sources: str) -> str:
    """The language that the summary is clearly in and its sources are not; empty if unsure."""
    ours, theirs = script_shares(summary), script_shares(sources)
    if ours.get("han", 0) >= SHARE_MIN and theirs.get("han", 0) >= SHARE_MIN / 2:
        kana, expected = ours.get("kana", 0), theirs.get("kana", 0)
        if kana >= KANA_MIN > expected:
            return "ja"
        return "zh" if expected >= KANA_MIN * 2 and not kana else ""
    spoken, told = count_stop_words(sources), count_stop_words(summary)
    if not spoken or not told:
        return ""
    most = max(spoken.values())
    allowed = [name for name, count in spoken.items() if count >= ALSO * most]
    best = max(told, key=told.__getitem__)
    rival = max(told.get(name, 0) for name in allowed)
    clear = told[best] >= WORDS_MIN and told[best] >= CLEAR * max(rival, 1)
    return best if best not in allowed and most >= WORDS_MIN and clear else ""


def count_stop_words(text: str) -> dict[str, float]:
    """How many little words of each language a text has; those of several count in parts."""
    found: dict[str, float] = {}
    for word in _LETTERS.findall(text):
        shared = _OF_WORD.get(word.lower(), ())
        for name in shared:
            found[name] = found.get(name, 0.0) + 1 / len(shared)
    return found
