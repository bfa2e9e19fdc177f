"""Splits a sentence into tokens with their kinds and cues.

Cue words mark a sentence as a ruling, a value or a mere answer.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import chain

from mnemosyned.text.sentences import SENTENCE_CHARS_MAX, UNSPACED
from mnemosyned.text.stems import light_stem
from mnemosyned.text.word_cache import WordCache
from mnemosyned.text.words import COMMON_WORDS, STOP_WORDS


def _word_set(text: str) -> frozenset[str]:
    return frozenset(text.split())


RULING = 2.0
EVENT = 1.3
ACKNOWLEDGEMENT = 0.6
ECHO = 0.85

_RULINGS = _word_set(
    """
    decide decided decision decisions agreed chose chosen settled concluded approved rejected
    must mustn't required requires prefer prefers preferred preference
    preferences allergic policy rule instruction instructions convention deadline todo owns password
    entschieden beschlossen entscheidung muss müssen bevorzugt allergisch regel frist spätestens
    vereinbart ursache niemals passwort kennwort
    decidimos decidido decidió decisión acordado acordamos debe deben prefiere alérgico alérgica
    plazo contraseña nunca siempre
    décidé décision doit doivent préfère allergique délai toujours jamais
    アレルギー パスワード ルール
    """
)
"""Words of a ruling: a decision, an instruction, a preference."""

_EVENTS = _word_set(
    """
    choose picked accepted switched replaced resolved confirmed don't favorite favourite due plan
    plans planning planned schedule scheduled appointment meeting booked
    error failed fails failure fix fixed cause caused because bug broke broken crash crashed
    warning timeout exception root expires
    moved bought started joined adopted married born graduated hired launched released deployed
    merged shipped signed won received named called lives works remember note key token
    gebucht bestellt termin fehler behoben gekauft bezahlt
    reservado reservada pedido cita fallo causa comprado pagado
    réservé commandé rendez-vous erreur panne cause payé
    """
)
"""Words of an event: a plan, a failure, its cause, a change."""

ORDERS = frozenset(
    ("never", "always", "don't", "don’t", "do not", "avoid", "ensure", "no more")
)
"""Words of a ruling only at the start of a clause; "it never ran" is none."""

RULING_PAIRS = frozenset(
    tuple(pair.split())
    for pair in "root cause,not before,no later,at most,i want,we take,we'll take,we use,for good,"
    "no earlier,not until,only if,please never,please always,"
    "nicht vor,ab sofort,bis spätestens,wir nehmen,ich möchte,"
    "no antes,más tardar,a partir,quiero que,pas avant,plus tard".split(",")
)
"""Pairs of adjacent words of a ruling."""

HAN_RULINGS = "決定|决定|必ず|必须|禁止|締切|締め切り|期限|截止|原因|暗証番号|予約番号|密码|过敏|決ま|決め"
"""Parts of words of a ruling in Chinese and Japanese."""

CUES = dict.fromkeys(_EVENTS, EVENT) | dict.fromkeys(_RULINGS, RULING)

ANSWERS = _word_set(
    """
    ok okay noted understood great thanks thank perfect good yes yeah yep no sure sorry fine cool
    nice done right exactly indeed wow haha hello hi hey welcome
    danke gut ja nein genau hallo super klar gerne
    gracias vale sí bueno perfecto hola claro
    merci oui non bonjour bien
    """
)
"""First words of a mere answer."""

REFERENCES = _word_set(
    """
    he she it they this that these those his her their
    er sie es das dies él ella eso esto il elle ils elles cela
    """
)
"""First words that refer to another sentence for its subject."""

LABELS = _word_set(
    """
    code codes password passphrase pin puk key token secret
    reservation booking confirmation order invoice receipt quote ticket contract policy
    account iban bic customer member membership licence license passport serial tracking reference
    ref phone tel telephone mobile extension room gate seat flight train platform locker plate
    version release build port host network ssid username login model part batch lot case
    total price rent fee cost deposit budget limit deadline
    rechnung bestellung buchung reservierung angebot vertrag konto zimmer gleis sitz flug tür
    passwort kennwort frist termin betrag miete kaution schlüssel zug
    reserva pedido factura clave contraseña código habitación puerta asiento vuelo cuenta
    presupuesto plazo importe precio alquiler teléfono billete
    réservation commande facture chambre siège compte devis loyer
    """
)
"""Labels of a following exact value."""

LABEL_ENDINGS = (
    *("nummer", "nummern", "passwort", "kennwort", "frist", "-code", "-nr", "-pin"),
    *("番号", "密码", "号码", "コード", "パスワード", "暗号", "单号", "口令"),
)

SECRETS = _word_set(
    "code password passphrase pin passwort kennwort clave contraseña network ssid username login"
)
"""Labels whose value may be an ordinary word."""

CONNECTORS = _word_set(
    """
    is was number no nr is: under as the = ist lautet nummer es número núm est numéro
    """
)
"""Words between a label and its value."""

COPULAS = _word_set("is was = ist lautet es est")
"""Words before a value that let its label be farther away."""

TITLES = _word_set(
    "mr mrs ms dr prof herr frau señor señora sr sra don doña monsieur madame mme st sankt saint"
)

CURRENCIES = _word_set(
    """
    eur usd gbp chf jpy cny sek nok dkk pln czk huf aud cad euro euros dollar dollars pound pounds
    franken francs yen cents € $ £ ¥
    """
)

UNITS = CURRENCIES | _word_set(
    """
    km m cm mm mi ft kg g mg l ml cl dl ms s sec min mins h hr hrs hours minutes seconds days
    weeks months years kb mb gb tb kib mib gib kbit mbit gbit bytes hz khz mhz ghz kw kwh mwh
    mah px dpi percent °c °f % am pm uhr tage stunden minuten wochen monate jahre prozent días
    horas minutos semanas meses años jours heures
    """
)

CALENDAR = _word_set(
    """
    Monday Tuesday Wednesday Thursday Friday Saturday Sunday
    Montag Dienstag Mittwoch Donnerstag Freitag Samstag Sonntag
    lunes martes miércoles jueves viernes sábado domingo
    lundi mardi mercredi jeudi vendredi samedi dimanche
    January February March April May June July August September October November December
    Jan Feb Mar Apr Jun Jul Aug Sep Sept Oct Nov Dec
    Januar Jänner Februar März Mai Juni Juli Oktober Dezember
    enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre
    janvier février mars avril juin juillet août septembre octobre novembre décembre
    """
)
"""Months and days as they are capitalized; in lower case, "may" and "march" are other words."""

FOREIGN_COMMON = _word_set(
    """
    der das des dem den ein eine einen einem einer eines und oder aber nicht noch nur auch schon
    ist sind wird werden wurde wurden sein haben habe wir ihr ihre ihren sie er es ich mich mir dich
    dir uns euch für mit von vom zum zur bei nach aus auf über unter vor durch gegen ohne um im am
    ab bis seit wegen dass wenn weil als wie wo wer denn doch mal bitte kein keine keinen dieser
    diese dieses alle mehr sehr jetzt heute morgen gestern liebe lieber grüße kann können soll
    sollen muss müssen möchte hatte waren wäre gibt geht etwas wieder immer schön
    el la los las un una unos unas y o pero no ya muy más menos es son está están ser estar fue era
    de del al en con sin por para según entre hasta desde sobre que qué quien cuando donde como
    porque si se lo le les su sus mi mis tu tus nos nuestro nuestra este esta estos estas ese esa
    hay tiene tienen hoy mañana ayer también solo todo todos toda todas
    le les une et ou mais ne pas plus très est sont être avoir du au aux dans avec sans pour par sur
    sous entre depuis que qui quand où comment parce ce cette ces il elle nous vous ils elles je on
    son sa ses mon ma mes notre votre leur aussi tout tous toute toutes aujourd'hui demain hier
    two three four five six seven eight nine ten half twice once
    """
) - _word_set(
    "war hat die man son sin con mal y o on plus pour sobre dieses sale tu ma mon un de"
)
"""Stop words of other languages, and number words, without those with a meaning in English."""


CHUNKS_KEPT = 1 << 13


class TokenKind(StrEnum):
    """The kind of a token."""

    URL = "url"
    EMAIL = "email"
    PATH = "path"
    DATE = "date"
    TIME = "time"
    MONEY = "money"
    VERSION = "version"
    NUMBER = "number"
    IDENTIFIER = "identifier"
    CALENDAR = "calendar"
    UNIT = "unit"
    TITLE = "title"
    WORD = "word"
    COMMON = "common"
    STOP = "stop"

    __hash__ = str.__hash__  # an Enum's own is written in Python: 5 times as slow


PATTERNS: dict[TokenKind, str] = {
    TokenKind.URL: r"(?:[a-z][a-z0-9+.-]{1,9}://|www\.)\S+",
    TokenKind.EMAIL: r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+",
    TokenKind.DATE: (
        r"\d{4}[-/.]\d{1,2}[-/.]\d{1,2}(?:[T_]\d\d:?\d\d\S*)?|\d{1,2}[-/.]\d{1,2}[-/.]\d{2,4}"
    ),
    TokenKind.TIME: r"\d{1,2}:\d\d(?::\d\d)?(?:[.,]\d+)?(?:[ap]m|Z)?|\d{1,2}[ap]m",
    TokenKind.MONEY: r"[$€£¥₹₩]\d[\d.,]*[kKmMbB]?|\d[\d.,]*[$€£¥₹₩]",
    TokenKind.VERSION: r"v?\d+(?:\.\d+){2,}[\w.+-]*|v\d+(?:\.\d+)*[\w.+-]*",
    TokenKind.NUMBER: r"[#+~±<>=-]{0,2}\d+(?:[.,:/x×-]\d+)*(?:%|°[CF]?|st|nd|rd|th|[a-zµ]{1,4})?",
    TokenKind.PATH: (
        r"(?:~|\.{1,2})?/[^\s/]+(?:/[^\s/]*)*|[A-Za-z]:\\\S+"
        r"|[\w.@-]+/(?:[\w.@-]+/)*[\w@-]+\.\w+"
    ),
    TokenKind.IDENTIFIER: (
        r"[A-Za-z_][\w-]*(?:(?:\.|::|->)[A-Za-z_]\w*)+(?:\(\))?"  # a.b.c, a::b, a.b()
        r"|\w+\(\)|--[a-z][\w-]*(?:=\S+)?"  # call(), --flag=value
        r"|\w*[^\W\d_]_\w+|[A-Z]{2,}-\d+"  # snake_case, ABC-123
        r"|[a-z]+[A-Z]\w*|(?:[A-Z][a-z]+){2,}"  # camelCase, PascalCase
        r"|(?=[\w-]*\d)(?=[\w-]*[A-Za-z])[\w-]+"  # x86-64, a1b2c3
    ),
}
"""The form of an exact value between spaces; the first pattern that matches gives its kind."""

EXACT_KINDS = frozenset(PATTERNS)
COMMONPLACE_KINDS = (TokenKind.STOP, TokenKind.COMMON)
"""Kinds of words that identify no text."""

_EXACT = re.compile(
    "|".join(f"(?P<{kind}>{shape})" for kind, shape in PATTERNS.items())
)
_EDGE = " \t\"'`“”‘’«»„()[]{}<>,.;:!?…*|·•–—。、，！？；：「」『』（）【】"
_HAN = "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_PARTICLES = "的了是和与们这那也都就还把被"
_UNSPACED_LETTER = re.compile(f"[{UNSPACED}]")
_LETTER = rf"(?:(?![\u3040-\u30ff{_HAN}])[^\W_])"
_SPACED = rf"(?:(?![{UNSPACED}])[^\W_])"
_CLINGING = rf"(?:(?![\u3040-\u30ff{_HAN}])[{UNSPACED}])"
"""A letter of Hangul, Thai and the like, to which a word of another script may cling."""
_HAN_RULING = re.compile(HAN_RULINGS)
_NAME = re.compile(rf"(?!.*\d)(?=.*-[^\W\d_a-zß-ÿ]){_LETTER}+(?:[-'’]{_LETTER}+)+")
"""Names with a hyphen stay one word: `Wi-Fi`, `Baden-Baden`."""
CODE_PARTS_MAX = 16
"""Parts that a code may have before a hyphen and a digit."""
AMOUNT_CHARS_MAX = 32
"""Digits and points that an amount may have before its unit.

Both are read again from each word of a chain, which may be as long as a text: `a-a-a-`, `1,1,1,`.
"""
_VALUE = (
    rf"[A-Za-z0-9]+(?:-[A-Za-z0-9]+){{0,{CODE_PARTS_MAX - 1}}}?"
    r"-\d[A-Za-z0-9]*(?:-[A-Za-z0-9]+)*"
    r"|(?:\d+年)?\d+月(?:\d+日)?"
    rf"|\d[\d,.:]{{0,{AMOUNT_CHARS_MAX - 1}}}[万億亿]?"
    r"(?:円|元|時半?|时|分|日|年|名|人|泊|階|号)"
)
"""Matches an exact value inside a run without spaces."""
_INNER = re.compile(
    rf"(?P<value>{_VALUE})"
    rf"|(?P<han>(?:(?![{_PARTICLES}])[{_HAN}])+)"
    r"|[\u30a0-\u30ff]+"  # Katakana; Hiragana, which carries grammar, is skipped
    rf"|(?P<particle>(?<=[A-Za-z0-9])[\uac00-\ud7a3]+)"
    rf"|(?:\d{{1,9}}(?:[.,]\d{{1,9}}){{0,3}})?{_CLINGING}+"  # with its number: `3개`
    rf"|{_SPACED}+(?:[_.'’]{_SPACED}+)*"
)
HAN_WORD_MAX = 6


@dataclass(slots=True, eq=False)  # if frozen, creating one takes 1.4 µs instead of 0.4
class Token:
    """A word or exact value of a text. Sentences share tokens: they never change."""

    stem: str
    """The key of repetition: the word in lower case, without its ending."""
    surface: str
    kind: TokenKind
    capital: bool
    closes: bool
    """Whether punctuation follows, so that it forms no phrase with the next token."""
    cue: float = 1.0
    """Factor of the importance of a sentence with this word."""
    label: bool = False
    """Whether it labels the exact value that follows."""
    notable: bool = False
    """Whether it has a cue, or makes a ruling at the start of a clause or in a pair of words."""


def tokenize(sentence: str) -> tuple[Token, ...]:
    """Return the words and exact values of a sentence, in order."""
    return tuple(
        chain.from_iterable(map(_CHUNK_TOKENS.__getitem__, sentence.split(" ")))
    )


def emphasis_factor(words: Sequence[Token]) -> float:
    """Return the factor of the importance of a sentence by its cue words."""
    notable = [word for word in words if word.notable]
    if notable and _is_ruling(words):
        return RULING
    factor = max([word.cue for word in notable], default=1.0)
    if words and factor < RULING:
        factor *= _OPENING_FACTORS.get(words[0].surface.lower(), 1.0)
    return factor


_OPENING_FACTORS = dict.fromkeys(REFERENCES, ECHO) | dict.fromkeys(
    ANSWERS, ACKNOWLEDGEMENT
)
"""Factor of a sentence by its first word: an answer or a reference says little of its own."""


def _is_ruling(words: Sequence[Token]) -> bool:
    """Tell whether an order opens a clause of a sentence, or two adjacent words are a ruling."""
    previous = ""
    opens_clause = True
    for index, word in enumerate(words):
        lower = word.surface.lower()
        if word.notable:
            if opens_clause and lower in ORDERS:
                return True
            if (previous, lower) in RULING_PAIRS:
                return True
            if index == 1 and f"{previous} {lower}" in ORDERS:
                return True
        previous, opens_clause = lower, word.closes
    return False


_COMMON_STEMS = frozenset(map(light_stem, COMMON_WORDS))
# Reading these names takes a tenth of the time of an attribute of an Enum.
_CALENDAR = TokenKind.CALENDAR
_COMMON = TokenKind.COMMON
_DATE = TokenKind.DATE
_IDENTIFIER = TokenKind.IDENTIFIER
_MONEY = TokenKind.MONEY
_NUMBER = TokenKind.NUMBER
_STOP = TokenKind.STOP
_WORD = TokenKind.WORD
_KINDS = {str(kind): kind for kind in TokenKind}
_BINDING = {words.split(" ")[-1] for words in ORDERS} | {
    second for _, second in RULING_PAIRS
}
_UNITS_AND_TITLES = dict.fromkeys(UNITS, TokenKind.UNIT) | dict.fromkeys(
    TITLES, TokenKind.TITLE
)


_CERTAIN_WORDS = STOP_WORDS | _UNITS_AND_TITLES.keys()


def _analyze_chunk(chunk: str) -> tuple[Token, ...]:
    """Return the tokens of the text between two spaces."""
    core = chunk.strip(_EDGE)
    if not core:
        return ()
    closes = not chunk.endswith(core)
    if closes and f"{core}()" in chunk:
        core += "()"  # a call
        closes = not chunk.endswith(core)
    lower = core.lower().replace("’", "'")
    plain = core.isalpha() and core.isascii() and (core.islower() or core.istitle())
    if plain or core in CALENDAR or lower in _CERTAIN_WORDS:
        return (_word_token(core, closes=closes),)
    unspaced = not core.isascii() and _UNSPACED_LETTER.search(core)
    is_short = not unspaced and len(core) <= SENTENCE_CHARS_MAX
    if is_short and (kind := _exact_kind(core)):
        label = kind is _IDENTIFIER and lower.endswith(LABEL_ENDINGS)
        return (Token(lower, core, kind, core[0].isupper(), closes, 1.0, label),)
    if "-" in core and _NAME.fullmatch(core):
        return (_word_token(core, closes=closes),)
    return tuple(_compound_tokens(core, closes=closes))


def _exact_kind(core: str) -> TokenKind | None:
    """Return the kind of an exact value, or None for other text."""
    exact = _EXACT.fullmatch(core)
    return _KINDS[exact.lastgroup or ""] if exact else None


def _compound_tokens(core: str, *, closes: bool) -> Iterator[Token]:
    """Yield the tokens of a chunk of several words or values: `a/b`, JSON, CJK."""
    for match in _INNER.finditer(core):
        run, end = match[0], match.end()
        tail = core[end : end + 1] != "-" if end < len(core) else closes
        if match["value"]:
            kind = _IDENTIFIER
            if not run.isascii():
                kind = _MONEY if run[-1] in "円元" else _DATE
            yield Token(run.lower(), run, kind, capital=False, closes=tail)
        elif match["han"]:
            yield from _han_tokens(run, closes=tail)
        elif match["particle"]:
            yield Token(run, run, _COMMON, capital=False, closes=tail)
        elif exact_kind := _exact_kind(run):
            yield Token(run.lower(), run, exact_kind, capital=False, closes=tail)
        else:
            yield _word_token(run, closes=tail)


def _han_tokens(run: str, *, closes: bool) -> Iterator[Token]:
    if 1 < len(run) <= HAN_WORD_MAX:
        cue = RULING if _HAN_RULING.search(run) else 1.0
        label = run.endswith(LABEL_ENDINGS)
        yield Token(
            run,
            run,
            _WORD,
            capital=False,
            closes=closes,
            cue=cue,
            label=label,
            notable=cue > 1,
        )
        return
    # The borders of words are unknown: overlapping pairs only show repetition.
    for start in range(max(len(run) - 1, 1)):
        pair = run[start : start + 2]
        yield Token(pair, pair, _COMMON, capital=False, closes=True)


def _word_token(word: str, *, closes: bool) -> Token:
    lower = word.lower().replace("’", "'")
    root = light_stem(word)
    cue = CUES.get(lower, 1.0)
    return Token(
        root,
        word,
        _word_kind(word, lower, root),
        word[0].isupper(),
        closes,
        cue=cue,
        label=lower in LABELS or lower.endswith(LABEL_ENDINGS),
        notable=cue > 1 or lower in _BINDING,
    )


def _word_kind(word: str, lower: str, root: str) -> TokenKind:
    if word in CALENDAR:
        return _CALENDAR
    if lower in _UNITS_AND_TITLES:
        return _UNITS_AND_TITLES[lower]
    if not STOP_WORDS.isdisjoint((lower, root, lower.partition("'")[0])):
        return _STOP
    if word.isdigit():
        return _NUMBER
    letter = len(word) == 1 and word.isascii()
    if letter or root in _COMMON_STEMS or lower in FOREIGN_COMMON:
        return _COMMON
    return _WORD


_CHUNK_TOKENS = WordCache(_analyze_chunk, entries_max=CHUNKS_KEPT)
"""Tokens by the text between two spaces."""
