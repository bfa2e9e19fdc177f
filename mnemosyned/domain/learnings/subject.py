"""What an instruction is about, as far as its words tell: its subject, its sense, its choice."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from mnemosyned.domain.text.stopwords import FUNCTION_WORDS
from mnemosyned.domain.text.terms import Terms, terms

MEANINGS_KEPT_MAX = 2_000
ALIKE = 0.6
"""Of the words of two instructions together, the share in both that makes them about the same."""


@dataclass(frozen=True, slots=True)
class Meaning:
    """The words of an instruction, told apart."""

    negative: bool
    about: frozenset[str]
    """What is left once the words are gone that make it an instruction."""
    choices: Mapping[int, int]
    """Of the groups in `CHOICES`, the one alternative that it names."""
    choosing: frozenset[str]
    """Those of its words that name alternatives."""
    chosen: frozenset[str]
    refused: frozenset[str]
    """With "A over B" or "A instead of B", what stands on each side."""
    slot: str
    """With "my favourite editor", what only one thing can be."""


@lru_cache(maxsize=MEANINGS_KEPT_MAX)
def meaning(text: str) -> Meaning:
    """Read an instruction or a preference; remembered, as each is held against many."""
    low = text.casefold().replace("’", "'")
    kept, _, instead = _INSTEAD.sub("\n", low, count=1).partition("\n")
    about = _subject(kept)
    choices: dict[int, int] = {}
    choosing: set[str] = set()
    for group, alternatives in enumerate(CHOICES if _ANY_CHOICE.search(kept) else ()):
        named = [at for at, words in enumerate(alternatives) if words.search(kept)]
        if len(named) == 1:
            choices[group] = named[0]
            choosing |= {word for word in about if alternatives[named[0]].search(word)}
    slot = _SLOT.search(low)
    return Meaning(
        negative=bool(_NOT.search(kept)),
        about=about,
        choices=choices,
        choosing=frozenset(choosing),
        chosen=about if instead else frozenset(),
        refused=_subject(instead) if instead else frozenset(),
        slot=slot[1] if slot else "",
    )


def alike(one: frozenset[str], other: frozenset[str]) -> bool:
    """Whether two subjects are the same, or nearly."""
    return bool(one & other) and len(one & other) >= ALIKE * len(one | other)


def stems(asked: Terms) -> frozenset[str]:
    """Words as they compare: without case, little words and the ending of the plural."""
    words = {word.casefold() for word in asked.words} - FUNCTION_WORDS
    return frozenset([*(_PLURAL.sub("", word) for word in words), *asked.grams])


def _subject(text: str) -> frozenset[str]:
    return stems(terms(_CUES.sub(" ", _NOT.sub(" ", _ELIDED.sub("", text)))))


def _either(*alternatives: str) -> tuple[re.Pattern[str], ...]:
    return tuple(re.compile(words) for words in alternatives)


CHOICES = (
    _either(  # languages, as they are called in several
        r"\b(?:english|englisch|anglais|inglés|inglese|inglês|по-английски)\b|英语|英文|英語",
        r"\b(?:german|deutsch|allemand|alemán|tedesco|alemão|по-немецки)\b|德语|德文|ドイツ語",
        r"\b(?:french|französisch|français|francés|francese|francês|по-французски)\b|法语|フランス語",
        r"\b(?:spanish|spanisch|espagnol|español|spagnolo|espanhol|по-испански)\b|西班牙语|スペイン語",
        r"\b(?:italian|italienisch|italien|italiano|по-итальянски)\b|意大利语|イタリア語",
        r"\b(?:portuguese|portugiesisch|portugais|portugués|portoghese|português)\b|葡萄牙语",
        r"\b(?:russian|russisch|russe|ruso|russo|по-русски)\b|俄语|ロシア語",
        r"\b(?:chinese|chinesisch|chinois|chino|cinese|chinês|по-китайски)\b|中文|中国語",
        r"\b(?:japanese|japanisch|japonais|japonés|giapponese|japonês|по-японски)\b|日语|日本語",
    ),
    _either(r"\btab(?:s|ulations?)?\b|tabulator", r"\bspaces?\b|leerzeichen|espaces|espacios"),
    _either(r"\bmetric\b|metrisch|métrique|métric[oa]", r"\bimperial\b"),
    _either(r"\bcelsius\b|°c\b", r"\bfahrenheit\b|°f\b", r"\bkelvin\b"),
    _either(r"\b(?:24|twenty-four)[- ]?h", r"\b(?:12|twelve)[- ]?h|\b[ap]\.?m\b"),
    _either(r"\bduze?\b|\btutoie", r"\bsieze?\b|\bvouvoie"),
    _either(r"\bwindow\b|fenster|fenêtre|ventan|窓", r"\baisle\b|gang|couloir|pasillo|通路"),
    _either(r"\bdark\b|dunkel|sombre|oscur", r"\blight\b|\bhell|clair\b|clar[oa]\b"),
    _either(
        r"\bshort|\bbrief|\bconcise|kurz|kürz|\bcourt|\bcort[oa]|\bbrev",
        r"\blong|\bdetail|lang\b|ausführ|\blarg[oa]",
    ),
    _either(r"\bformal\b|förmlich", r"\b(?:informal|casual)\b|locker"),
    _either(r"\bbritish\b", r"\bamerican\b"),
    _either(r"\bsingle quotes?\b", r"\bdouble quotes?\b"),
)  # fmt: skip
"""Few things of which one holds at a time."""
_ANY_CHOICE = re.compile(
    "|".join(words.pattern for group in CHOICES for words in group)
)
OF_SOMETHING = frozenset({6, 7, 8, 9})
"""Those that say nothing without what they are of: a long answer is not a long walk."""

_INSTEAD = re.compile(
    r", not |,? \b(?:instead of|rather than|over|statt|anstatt|anstelle von|plutôt que|au lieu de"
    r"|en lugar de|en vez de|invece di|piuttosto che|em vez de|вместо|а не)\b |而不是|ではなく"
    r"|(?<=\w) to (?=\w+[.!]?$)"
)
_NOT = re.compile(
    r"\b(?:never|don't|not|no|stop|avoid|without|any ?more|nie|niemals|nicht|keine?n?|hör"
    r"|jamais|ne|n'|plus|arrête|arrêtez|nunca|jamás|deja|mai|non|smetti|smettila|não|pare"
    r"|никогда|не|перестань)\b"
    r"|不要|别|不再|ないで|しない"
)
_SLOT = re.compile(
    r"\bmy (?:preferred|favou?rite|default) (\w+(?: \w+)?) (?:is|are)\b"
    r"|\bmy (pronouns) are\b"
)
_CUES = re.compile(
    r"\b(?:always|never|ever|again|from (?:now|here|today) on\w*|going forward|in (?:the )?future"
    r"|please|(?:do|does)(?:n't)?|no more|any ?more|remember|keep in mind|make sure|us(?:e|es|ing)"
    r"|writ(?:e|es|ing)|answer(?:ing)?|reply(?:ing)?|respond(?:ing)?|speak(?:ing)?|talk(?:ing)?"
    r"|add(?:ing)?|includ(?:e|ing)|put(?:ting)?|mak(?:e|ing)|giv(?:e|ing)|prefer|like|want|rather"
    r"|really|should|must|would|keep|when|instead"
    r"|immer|wieder|bitte|ab jetzt|ab sofort|von nun an|künftig|in zukunft|benutze?|verwende|nutze?"
    r"|antworte|schreibe?|sprich|bevorzuge|lieber|mehr|auf|mit"
    r"|toujours|désormais|à partir de maintenant|s'il te plaît|utilise[sz]?|réponds|écris|parle"
    r"|préfère|en|siempre|a partir de ahora|de ahora en adelante|por favor|us[ae]s?|responde"
    r"|escribe|prefiero|sempre|d'ora in poi|per favore|usa(?:re)?|rispondi|scrivi|preferisco|in"
    r"|a partir de agora|responda|escreva|prefiro"
    r"|der|die|das|den|des|du|les|le|la|el|los|las|del|de|il|lo|gli|um|uma"
    r"|всегда|больше|с этого момента|впредь|пожалуйста|используй\w*|отвечай|пиши|предпочитаю)\b"
    r"|请|始终|总是|永远|从现在开始|以后|今后|使用|用|回答|记住|我更?喜欢"
    r"|常に|いつも|必ず|絶対に?|これからは?|今後は?|ください|使わ|使って|答えて|は|を|で"
)
"""What makes a sentence an instruction, whatever it is about; and its little words."""
_ELIDED = re.compile(r"\b[cdjlmnst]'(?=\w{2})")
_PLURAL = re.compile(r"(?<=[a-zà-ÿ]{3})(?:(?<!s)s)$")
