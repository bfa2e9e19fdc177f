"""Finds the names of secrets in a text, and the positions after them where a value may begin.

Names are searched for around their hints. A value follows its name directly, or after a colon or
a copula ("is", "lautet") within a bounded window. Time is linear in the text.

`LABELS` are regular expressions over lower-case text; in each, a space also matches a hyphen or
an underscore. The other tables hold plain words. A new language is a new entry in each table.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from enum import Enum, auto
from functools import cache
from itertools import chain, islice
from typing import NamedTuple

from mnemosyned.text.terms import has_unspaced_script


class Label(Enum):
    """The kind of value that a name announces."""

    PASSWORD = auto()
    PHRASE = auto()
    """A passphrase, which may have several words."""
    PASS = auto()
    """Short names with other meanings, whose value must look like a password."""
    CODE = auto()
    """A PIN, or the code of a door: digits."""
    COMBINATION = auto()
    """The combination of a lock: groups of digits."""
    LOGIN_CODE = auto()
    """One-time and recovery codes: one or several."""
    SEED = auto()
    """The words of a wallet."""
    ANSWER = auto()
    """The answer to a security question: any word."""
    LOGIN = auto()
    """A user's name, a slash and a password."""
    KEY = auto()
    """Names with many meanings: the value must be long and random, unless the word before tells
    what it opens."""
    NAMED_KEY = auto()
    TOKEN = auto()
    BEARER = auto()


LABELS: dict[Label, dict[str, tuple[str, ...]]] = {
    Label.PASSWORD: {
        "en": (
            "password", "passcode", "passwd", "pwd", r"wi fi code", r"wifi code",
            r"wpa[23]? (?:key|passwor[dt])",
        ),
        "de": ("passwort", "kennwort", "losungswort", "wlan schlüssel", "netzwerkschlüssel"),
        "fr": (
            "mot de passe", r"mdp\b",
            r"clé (?:du |de la )?(?:wi fi|wifi|wpa2?)", "code wi fi",
        ),
        "es": (
            "contraseña", "contrasena",
            r"clave(?=:| es | de acceso| (?:del|de la) (?:wi fi|wifi|router|red|correo|banco))",
        ),
        "it": (
            r"parola d['’]ordine", r"chiave (?:del |della )?(?:wi fi|wifi|rete)",
            "parola di accesso",
        ),
        "pt": ("senha", "palavra passe"),
        "nl": ("wachtwoord",),
        "pl": (r"hasł(?:o|a|em)\b",),
        "ru": (r"парол(?:ь|я|ем)\b",),
        "sv": (r"lösenord(?:et)?",),
        "tr": (r"parola\b", r"şifre(?:si)?\b"),
        "ja": ("パスワード", "暗証番号"),
        "zh": ("密码", "密碼", "口令"),
        "ko": ("비밀번호",),
    },
    Label.PHRASE: {
        "en": ("passphrase", "pass phrase"),
        "fr": ("phrase de passe", "phrase secrète"),
        "es": ("frase de contraseña", "frase de paso"),
        "it": ("frase di accesso", "frase segreta"),
    },
    Label.PASS: {
        "en": (r"pw(?![a-z0-9])|pass(?![a-z0-9])|psk(?![a-z0-9])", r"requirepass\b"),
    },
    Label.CODE: {
        "en": (
            r"pin(?: ?(?:code|number))?\b", r"puk\b", r"cv[vc]2?\b",
            (r"(?:alarm|door|gate|entry|entrance|garage|lock ?box|key ?safe|keypad|locker|vault)"
            r"(?:['’]s)? code\b"),
        ),
        "de": (
            "geheimzahl", r"(?:alarm|tür|tor|haustür|garagen|zugangs|schlüsselbox|schloss) ?code\b",
            r"code (?:der|des|vom|zur|für die|für das) (?:alarm|haustür|tür|tor|garage|safe)\w*",
            r"prüfziffer\b", "kartenprüfnummer",
        ),
        "fr": (
            r"code (?:pin|puk|secret)\b", "digicode", "cryptogramme",
            (r"code (?:d['’]|de l['’]|de la |du |de )?"
            r"(?:alarme|portail|porte|entrée|immeuble|garage)\b"),
        ),
        "es": (
            (r"código (?:de la |del |de )?"
            r"(?:alarma|portal|puerta|garaje|entrada|portón|caja fuerte)\b"),
        ),
        "it": (
            (r"codice (?:dell['’]|della |del |di )?"
            r"(?:allarme|portone|cancello|garage|porta|ingresso)\b"),
        ),
        "pt": (r"código (?:do |da |de )?(?:alarme|portão|porta|cofre)\b",),
        "nl": (r"pin ?code\b", r"code van (?:het|de) (?:alarm|slot|deur|poort|kluis)\b"),
        "ru": (r"пин код\w*",),
    },
    Label.COMBINATION: {
        "en": (r"combination\b",),
        "de": (r"kombination\b",),
        "fr": (r"combinaison\b",),
        "es": (r"combinación\b",),
        "it": (r"combinazione\b",),
    },
    Label.LOGIN_CODE: {
        "en": (
            (r"(?:verification|recovery|backup|one time|confirmation|login|2fa|two factor|otp"
            r"|authenticator setup|authentication|security) (?:code|key|password)s?\b"),
            r"totp (?:secret|seed|key)\b", r"otp\b",
        ),
        "de": (
            r"(?:bestätigungs|wiederherstellungs|einmal|sicherheits|anmelde|backup ?)codes?\b",
        ),
        "fr": (r"codes? de (?:vérification|récupération|confirmation|secours|sécurité)\b",),
        "es": (r"códigos? de (?:verificación|recuperación|confirmación|seguridad|respaldo)\b",),
        "it": (r"codic[ei] di (?:verifica|recupero|conferma|sicurezza|backup)\b",),
        "pt": (r"códigos? de (?:verificação|recuperação|confirmação)\b",),
        "nl": (r"(?:verificatie|herstel)codes?\b",),
    },
    Label.SEED: {
        "en": (r"(?:seed|recovery) phrase\b", r"mnemonic\b", r"wallet\b", r"ledger\b"),
        "fr": (r"phrase (?:de récupération|mnémonique)",),
        "es": (r"frase (?:semilla|de recuperación)",),
        "it": (r"frase (?:seme|di recupero)",),
        "de": (r"wiederherstellungsphrase",),
    },
    Label.ANSWER: {
        "en": (r"answer\b",),
        "de": (r"antwort auf (?:die|meine) sicherheitsfrage",),
        "fr": (r"réponse à (?:la|ma) question (?:secrète|de sécurité)",),
    },
    Label.LOGIN: {
        "en": (r"credentials?\b", r"login\b"),
        "de": (r"zugangsdaten\b", r"anmeldung\b"),
        "fr": (r"identifiants?\b",),
        "es": (r"credenciales\b",),
        "it": (r"credenziali\b",),
    },
    Label.NAMED_KEY: {
        "fr": (r"clé (?:d['’])?api\b", "clé de licence"),
        "es": (r"clave de (?:la )?(?:api|licencia)\b",),
        "it": (r"chiave (?:di )?(?:api|licenza)\b",),
    },
    Label.KEY: {"en": ("key",), "de": ("schlüssel",)},
    Label.TOKEN: {"en": ("token", "secret")},
    Label.BEARER: {"en": ("bearer",)},
}  # fmt: skip

HINTS = (
    "pass", "cod", "pin", "pw", "key", "token", "secret", "clave", "contras", "senha", "nnwort",
    "gswort", "ntwort", "htwo", "mdp", "chiave", "parola", "bearer", "psk", "puk", "cv", "otp",
    "ombina", "geheim", "rase", "mnemonic", "wallet", "ledger", "answer", "ryptogr",
)  # fmt: skip
"""Every name of a secret contains one of these, in lower case; other texts are skipped."""
HINTS_BEYOND_ASCII = (
    "clé", "schlüssel", "hasł", "парол", "пин", "lösenord", "şifre", "réponse", "prüf", "código",
    "パスワード", "暗証番号", "密码", "密碼", "口令", "비밀번호",
)  # fmt: skip
"""Hints of names with letters beyond ASCII, which a text in ASCII cannot have."""
HINTS_OF_LOGINS = ("creden", "login", "zugang", "anmeldung", "identifiant")
"""Hints of names before "user / password"."""
LOGIN_SIGN = " / "

KEYWORDS = ("palabra ", "palabras ", "mot ", "mots ", "parola ", "parole ")
"""Words that give a name such as "clave" another meaning when they precede it."""

COPULAS: dict[str, str] = {
    "en": "is are was be reads remains",
    "de": "ist sind war lautet lauten lautete heißt heisst hieß bleibt",
    "fr": "est était sont c'est c’est reste sera",
    "es": "es son era sigue será",
    "it": "è sono era resta rimane sarà",
    "pt": "é era",
    "nl": "is was luidt",
    "pl": "to jest brzmi",
    "ru": "— – - это",
    "sv": "är var",
    "tr": "şu",
}
AMBIGUOUS = frozenset({"to"})
"""Copulas that are another word in another language: the value after them must be strong."""

PREPOSITIONS: dict[str, str] = {
    "en": "for at of on to in from that which we i you your our my the",
    "de": "für fürs von vom der die des zum zur am im in auf bei beim an steht",
    "fr": "pour du de des de la sur au aux à chez qui",
    "es": "para del de la en al que a",
    "it": "per del della dello dei delle di al alla su che da",
    "pt": "do da de para no na",
    "nl": "van voor op de het",
    "pl": "do od na dla",
    "ru": "от для на к из",
    "sv": "till för på",
}
"""Words that may open an attribute of a name: "the password OF the router is"."""

ADVERBS: dict[str, str] = {
    "en": "still now just currently itself set reset changed to temporarily again actually admin "
    "administrator root temporary default guest new old",
    "de": "noch immer jetzt nun früher gerade derzeit weiterhin selbst wieder also",
    "fr": "toujours encore maintenant désormais actuellement temporaire provisoire administrateur "
    "actuel",
    "es": "todavía aún ahora sigue siendo actualmente temporal provisional",
    "it": "ancora adesso ora sempre attualmente provvisoria temporanea",
    "pt": "ainda agora temporária",
    "nl": "nog nu steeds tijdelijk",
}
"""Words skipped next to a copula: "is STILL", "is NOW SET TO", "mot de passe TEMPORAIRE"."""

AND_NOW: dict[str, str] = {
    "en": "and now it it's then but used to be later before",
    "de": "und jetzt nun es früher dann",
    "fr": "et maintenant c'est il désormais",
    "es": "y ahora pero luego",
    "it": "e ora adesso ma poi",
    "pt": "e agora",
    "nl": "en nu",
}
"""Words between a value and the one that replaced it."""

FROM_TO: dict[str, tuple[str, str]] = {
    "en": ("from", "to"),
    "de": ("von", "auf|zu|in"),
    "fr": ("de", "à|en|vers"),
    "es": ("de", "a|por"),
    "it": ("da", "a|in"),
    "pt": ("de", "para"),
    "nl": ("van", "naar|in"),
}
AS: dict[str, str] = {
    "en": "as",
    "de": "als",
    "fr": "comme",
    "es": "como",
    "it": "come",
    "pt": "como",
    "nl": "als",
}
"""Words between a value and its name: "use X AS the password"."""

DETERMINERS: dict[str, str] = {
    "en": "my your the our",
    "de": "mein dein unser das",
    "fr": "mon ton notre le",
    "es": "mi tu nuestra la",
    "it": "mia tua nostra la",
}
"""Words between a copula and the name: "X is MY password"."""

NO_PASSWORDS = frozenset(
    "a an and any changed changeme das default der die empty expired falsch false for incorrect "
    "invalid is it leer missing my needed neu new nicht no none not null optional out password "
    "redacted required reset set still str string text that the there to todo too true unknown "
    "unset up very was weak wrong xxx yes your both bytes hidden secret".split()
)
"""Words that follow a name and are no value: "password: required"."""

PROSE = frozenset(
    "the and was for are not his her from has had but if is it in on at of to a an too than "
    "should must can be by der die das und ist zu im mit le les est et trop doit il el los las "
    "es y en il lo gli che non è un una".split()
)
"""Words that no seed phrase contains, and that no passphrase begins with."""


WINDOW_CHARS = 160
"""Distance from the end of a name within which its value must begin."""
WORDS_BETWEEN = 10
NAME_CHARS = 48
"""Longest reach of a name on either side of its hint."""
CLOSING_QUOTES = "\"'`"
EDGES = "\"'`“”„‘’«»<>()[]{}.,;:!?「」『』"
"""Stripped off a word before it is looked up."""
FIRST_WITHOUT_SPACES = "\u3000"
"""First character of the scripts without spaces between words."""


class Name(NamedTuple):
    """A name of a secret in a text."""

    text: str
    low: str
    """The text in lower case."""
    word: str
    label: Label
    start: int
    end: int

    @property
    def spaced(self) -> bool:
        """Tell whether its script puts spaces between words."""
        return self.word[-1] < FIRST_WITHOUT_SPACES


class Link(NamedTuple):
    """The connection of a name to its value."""

    sign: str
    """`:`, `is` for a copula, or empty."""
    start: int
    """Position where the value begins."""
    apart: bool
    """Whether other words separate the name from its value."""


def all_words(*tables: Mapping[str, str]) -> frozenset[str]:
    """Return the words of all languages in these tables."""
    rows = [row for table in tables for row in table.values()]
    return frozenset(" ".join(rows).split())


@cache
def _pattern(hint: str) -> re.Pattern[str]:
    """Compile a pattern of the names with this hint, one group per label.

    Compiled on first use: all of them together would delay every start.
    """
    groups = [_MASKED]
    for label, table in LABELS.items():
        all_names = chain.from_iterable(table.values())
        names = "|".join(name for name in all_names if hint in name)
        if names:
            names = names.replace(" ", "[ _-]")
            groups.append(f"(?P<{label.name}>{names})")
    return re.compile("|".join(groups))


_MASKED = r"(?P<MASK>\[secret:\w{1,20}\])"
_SUFFIX = re.compile(r"(?:s\b|_\w{1,30})?")
_LONGER = re.compile(r"[a-z]|[./#]\w")
"""Follows a name that is part of a longer word or of a path."""
_BOUNDED = frozenset(Label) - {
    Label.PASSWORD, Label.PHRASE, Label.KEY, Label.NAMED_KEY, Label.TOKEN, Label.BEARER,
}  # fmt: skip
"""Labels whose names must begin a word: "shopping" has "pin", "encode" has "code"."""
_COLON_ONLY = ("pass", "psk")
"""Names that are other words unless a colon follows. Scripts without spaces need one, too."""
_ROMANCE = (
    "mot de passe",
    "mdp",
    "contrase",
    "senha",
    "phrase",
    "frase",
    "cl",
    "parola",
)
"""Names that a noun or adjective may follow: "mot de passe NETFLIX"."""
_COLON = re.compile(
    r"[\"'`”»)\]]{0,2}\s{0,3}(?::=|=>|->|[:=：＝→]|(?:は|是|为|為|가|는|은)(?=[!-~「『“]))"
    r"\s{0,3}"
)
_COLONS = ("=", ":", "：", "->", "=>")
_ENDS = (".", "!", "?", ";", '"', '",', "',", ")")
TOKEN = re.compile(r"\S{1,100}")
_SPACE = re.compile(r"[^\S\n]{0,3}")
_COPULAS, _ADVERBS = all_words(COPULAS), all_words(ADVERBS)
_PREPOSITIONS = all_words(PREPOSITIONS)
_ELIDED = ("d'", "l'", "dell'", "all'", "nell'", "d’", "l’", "dell’", "all’")


def find_names(text: str) -> Iterator[Name]:
    """Yield the names of secrets in a text, in order."""
    low = text.lower()
    if len(low) != len(text):
        low = "".join(map(_single_lower, text))
    for hint, start, stop in _windows(low):
        for match in _pattern(hint).finditer(low, start, stop):
            if match.lastgroup != "MASK" and (name := _name(text, low, match)):
                yield name


def _single_lower(char: str) -> str:
    """Return a letter in lower case, unless that is two letters."""
    lower = char.lower()
    return lower if len(lower) == 1 else char


def _name(text: str, low: str, match: re.Match[str]) -> Name | None:
    label = Label[match.lastgroup or ""]
    start = match.start()
    end = _end(_SUFFIX, low, match.end())
    if _LONGER.match(low, end) or low.endswith(KEYWORDS, 0, start):
        return None
    before = low[max(0, start - 1) : start]
    within_word = before.isalnum() and not has_unspaced_script(before)
    if within_word and label in _BOUNDED:
        return None
    return Name(text, low, match[0], label, start, end)


def _windows(low: str) -> Iterator[tuple[str, int, int]]:
    """Yield the windows that can contain names, with their hint; overlapping windows are joined.

    Searching for a hint takes 50 ns, one pattern of all names 1 µs for each character.
    """
    hits = _hint_positions(low)
    if not hits:
        return
    stop, window = hits[0]
    start = max(0, stop - NAME_CHARS)
    for position, hint in hits:
        if position - NAME_CHARS > stop:
            yield window, start, stop
            start, window = position - NAME_CHARS, hint
        elif hint != window:
            window = ""  # names of all hints
        stop = position + NAME_CHARS
    yield window, start, stop


def _hint_positions(low: str) -> list[tuple[int, str]]:
    """Return the hints in a text with their positions, in order."""
    hints: tuple[str, ...] = HINTS if low.isascii() else HINTS + HINTS_BEYOND_ASCII
    if LOGIN_SIGN in low:
        hints += HINTS_OF_LOGINS
    present = [hint for hint in hints if hint in low]  # in half of the time of `find`
    hits = []
    for hint in present:
        position = low.find(hint)
        while position >= 0:
            hits.append((position, hint))
            position = low.find(hint, position + 1)
    hits.sort()
    return hits


def find_links(name: Name) -> Iterator[Link]:
    """Yield the links to where the value of a name may begin, the likeliest first."""
    text, end = name.text, name.end
    if colon := _COLON.match(text, end):
        yield Link(":", colon.end(), apart=False)
        return
    needs_colon = name.word in _COLON_ONLY or not name.spaced
    if not needs_colon and not _is_quoted(name):
        yield from _find_distant_links(name)


def _is_quoted(name: Name) -> bool:
    """Tell whether the name itself is in quotation marks, as a value or a mention."""
    mark = name.text[name.end : name.end + 1]
    return mark != "" and mark in CLOSING_QUOTES and name.text[name.start - 1] == mark


def _find_distant_links(name: Name) -> Iterator[Link]:
    """Yield links word by word: after a colon, after copulas, or directly after the name."""
    text, low = name.text, name.low
    start = name.end + text.startswith(",", name.end)
    limit = _line_end(text, name.end)
    inside = False
    for token in islice(TOKEN.finditer(text, start, limit), WORDS_BETWEEN):
        raw, adjacent = token[0], token.start() == start
        word = low[token.start() : token.end()].strip(EDGES)
        if _is_copula(raw, word, adjacent=adjacent):
            value_start = skip_words(low, token.end(), limit, _ADVERBS)
            yield Link(_sign_of(word), value_start, apart=inside)
            inside = True
            continue
        if _is_colon(raw, word):
            yield Link(":", _end(_SPACE, text, token.end()), apart=True)
            return
        if inside or word in _ADVERBS:
            if _ends_clause(raw, word):
                return
            continue
        inside = True
        if _opens_attribute(raw, word):
            continue
        if not adjacent:
            yield Link("", token.start(), apart=False)
        if not _may_name_go_on(name, raw, word):
            return


def _sign_of(copula: str) -> str:
    return "" if copula in AMBIGUOUS else "is"


def _may_name_go_on(name: Name, raw: str, word: str) -> bool:
    """Tell whether the word after a name may belong to it: "mot de passe NETFLIX"."""
    return name.word.startswith(_ROMANCE) and not _ends_clause(raw, word)


def _ends_clause(raw: str, word: str) -> bool:
    return word != "" and raw.endswith(_ENDS)


def _is_copula(raw: str, word: str, *, adjacent: bool) -> bool:
    return raw in ("'s", "’s") or (word in _COPULAS and not adjacent)


def _is_colon(raw: str, word: str) -> bool:
    return raw in _COLONS or (raw[-1] in ":：" and word != "")


def _opens_attribute(raw: str, word: str) -> bool:
    """Tell whether a word begins an attribute of the name: "the password OF the router"."""
    return raw[0] == "(" or word in _PREPOSITIONS or word.startswith(_ELIDED)


def _line_end(text: str, start: int) -> int:
    limit = min(start + WINDOW_CHARS, len(text))
    newline = text.find("\n", start, limit)
    return newline if newline >= 0 else limit


def skip_words(low: str, start: int, limit: int, words: frozenset[str]) -> int:
    """Return where the first word begins that is not one of these."""
    for token in TOKEN.finditer(low, start, limit):
        if token[0].strip(",") not in words:
            return token.start()
    return limit


def _end(pattern: re.Pattern[str], text: str, start: int) -> int:
    """Return where a pattern that may match nothing ends."""
    match = pattern.match(text, start)
    return match.end() if match else start
