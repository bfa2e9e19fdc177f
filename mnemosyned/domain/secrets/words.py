"""Word tables of the secret rules: the names of secrets, and the words between name and value.

Labels are regular expressions over lower-case text; in each, a space also matches a hyphen or an
underscore. The other tables hold plain words. A new language is a new entry in each table.
"""

from __future__ import annotations

from enum import Enum, auto


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
