"""Parses an instruction: its subject, whether it is negative, and which alternative it names."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from mnemosyned.domain.text.terms import Terms, terms
from mnemosyned.domain.text.words.stopwords import FUNCTION_WORDS

MEANINGS_CACHED_MAX = 2_000
SUBJECT_OVERLAP_MIN = 0.6
"""Share of their words that two instructions on one subject have in common, at least."""


@dataclass(frozen=True, slots=True)
class Meaning:
    """The words of an instruction by the part they play in it."""

    negative: bool
    subject: frozenset[str]
    """The words left without those that only make it an instruction."""
    choices: Mapping[int, int]
    """The one alternative it names, by the group in `CHOICES` it is from."""
    choice_words: frozenset[str]
    """Words of the subject that name an alternative."""
    preferred: frozenset[str]
    """The subject of A in "A over B" or "A instead of B"."""
    rejected: frozenset[str]
    """The subject of B in "A over B" or "A instead of B"."""
    numbers: frozenset[str]
    """Words of the subject that begin with a digit."""
    slot: str
    """The attribute with a single value, such as "editor" in "my favorite editor is"."""


@lru_cache(maxsize=MEANINGS_CACHED_MAX)
def parse_meaning(text: str) -> Meaning:
    """Parse an instruction or a preference; cached, as each is compared with many."""
    low = text.casefold().replace("’", "'")
    statement, _, alternative = _INSTEAD.sub("\n", low, count=1).partition("\n")
    subject = _parse_subject(statement)
    choices = _parse_choices(statement)
    slot = _SLOT.search(low)
    return Meaning(
        negative=bool(_NOT.search(statement)),
        subject=subject,
        choices=choices,
        choice_words=frozenset(
            word
            for group, choice in choices.items()
            for word in subject
            if CHOICES[group][choice].search(word)
        ),
        preferred=subject if alternative else frozenset(),
        rejected=_parse_subject(alternative) if alternative else frozenset(),
        numbers=frozenset(word for word in subject if word[:1].isdigit()),
        slot=slot[1] if slot else "",
    )


def _parse_choices(statement: str) -> dict[int, int]:
    """Return the alternative that a statement names, for each group it names just one of."""
    if not _ANY_CHOICE.search(statement):
        return {}
    choices: dict[int, int] = {}
    for group, alternatives in enumerate(CHOICES):
        named = [
            index for index, words in enumerate(alternatives) if words.search(statement)
        ]
        if len(named) == 1:
            choices[group] = named[0]
    return choices


def is_same_subject(new: frozenset[str], old: frozenset[str]) -> bool:
    """Tell whether two subjects have most of their words in common."""
    shared = len(new & old)
    return shared > 0 and shared >= SUBJECT_OVERLAP_MIN * len(new | old)


def content_words(parsed: Terms) -> frozenset[str]:
    """Return words in lower case and the singular, without function words, and all grams."""
    words = {word.casefold() for word in parsed.words} - FUNCTION_WORDS
    return frozenset([*(_PLURAL.sub("", word) for word in words), *parsed.grams])


def without_cues(text: str) -> str:
    """Return a text without the words that only make it an instruction or a preference."""
    low = text.casefold().replace("’", "'")
    return _CUES.sub(" ", _NOT.sub(" ", _ELIDED.sub("", low)))


def _parse_subject(text: str) -> frozenset[str]:
    return content_words(terms(without_cues(text)))


def _alternatives(*alternatives: str) -> tuple[re.Pattern[str], ...]:
    return tuple(re.compile(words) for words in alternatives)


CHOICES = (
    _alternatives(  # languages, as they are called in several
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
    _alternatives(r"\btab(?:s|ulations?)?\b|tabulator", r"\bspaces?\b|leerzeichen|espaces|espacios"),
    _alternatives(r"\bmetric\b|metrisch|métrique|métric[oa]", r"\bimperial\b"),
    _alternatives(r"\bcelsius\b|°c\b", r"\bfahrenheit\b|°f\b", r"\bkelvin\b"),
    _alternatives(r"\b(?:24|twenty-four)[- ]?h", r"\b(?:12|twelve)[- ]?h|\b[ap]\.?m\b"),
    _alternatives(r"\bduze?\b|\btutoie", r"\bsieze?\b|\bvouvoie"),
    _alternatives(r"\bwindow\b|fenster|fenêtre|ventan|窓", r"\baisle\b|gang|couloir|pasillo|通路"),
    _alternatives(r"\bdark\b|dunkel|sombre|oscur", r"\blight\b|\bhell|clair\b|clar[oa]\b"),
    _alternatives(
        r"\bshort|\bbrief|\bconcise|kurz|kürz|\bcourt|\bcort[oa]|\bbrev",
        r"\blong|\bdetail|\blange?[nrs]?\b|ausführ|\blarg[oa]",
    ),
    _alternatives(r"\bformal\b|förmlich", r"\b(?:informal|casual)\b|locker"),
    _alternatives(r"\bbritish\b", r"\bamerican\b"),
    _alternatives(r"\bsingle quotes?\b", r"\bdouble quotes?\b"),
)  # fmt: skip
"""Groups of alternatives; only one of a group can apply at a time."""
_ANY_CHOICE = re.compile(
    "|".join(words.pattern for group in CHOICES for words in group)
)
CHOICES_OF_A_SUBJECT = frozenset({6, 7, 8, 9})
"""Groups that need the same subject to conflict: a long answer does not rule out a short walk."""

_INSTEAD = re.compile(
    r", not |,? \b(?:instead of|rather than|over|statt|anstatt|anstelle von|plutôt que|au lieu de"
    r"|en lugar de|en vez de|invece di|piuttosto che|em vez de|вместо|а не)\b |而不是|ではなく"
    r"|(?<=\w) to (?=\w+[.!]?$)|(?<=\w) than (?!\d)|(?<=\w) (?:framför|boven|zamiast|niż) "
)
_NOT = re.compile(
    r"\b(?:never|don't|doesn't|can't|not|no|stop|avoids?|without|hates?|dislikes?|loathes?|detests?"
    r"|hasst|déteste|odia|odeia|haat|hatar|gillar inte|nienawidzi|ненавидит|geen|niet|inte"
    r"|ing(?:a|en|et)|bez"
    r"|zonder|utan|sin|sans|senza|sem|ohne|без|any ?more|nie|niemals|nicht|keine?n?|hör"
    r"|jamais|ne|n'|plus|arrête|arrêtez|nunca|jamás|deja|mai|non|smetti|smettila|não|pare"
    r"|никогда|не|перестань)\b"
    r"|不要|别|不再|ないで|しない"
)
_SLOT = re.compile(
    r"(?:^|\bmy )(?:preferred|favou?rite|default) (\w+(?: \w+)?) (?:is|are)\b"
    r"|\bmy (pronouns) are\b"
)
_CUES = re.compile(
    r"\b(?:always|never|ever|again|from (?:now|here|today) on\w*|going forward|in (?:the )?future"
    r"|please|(?:do|does)(?:n't)?|no more|any ?more|remember|keep in mind|make sure|us(?:e|es|ing)"
    r"|writ(?:e|es|ing)|answer(?:ing)?|reply(?:ing)?|respond(?:ing)?|speak(?:ing)?|talk(?:ing)?"
    r"|add(?:ing)?|includ(?:e|ing)|put(?:ting)?|mak(?:e|ing)|giv(?:e|ing)|prefers?|likes?|wants?|rather"
    r"|loves?|enjoys?|hates?|dislikes?|favou?rs?|tends to|leans towards?|usually|much|strongly"
    r"|personally|generally|stand|uses|goes with|is|fan of|to|bevorzugt|mag|hasst|nimmt|nutzt|benutzt"
    r"|verwendet|normalerweise|meistens|lieber|préfère|aime|déteste|prefiere|odia|preferisce|prefere|odeia|heeft|liever|haat|houdt|van"
    r"|föredrar|gillar|hatar|woli|lubi|предпочитает|любит|ненавидит"
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
"""Words that make a sentence an instruction, whatever its subject; and articles, prepositions."""
_ELIDED = re.compile(r"\b[cdjlmnst]'(?=\w{2})")
_PLURAL = re.compile(r"(?<=[a-zà-ÿ]{3})(?:(?<!s)s)$")
