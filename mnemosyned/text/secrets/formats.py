"""Finds secrets by their format: tokens, keys, command lines, files and numbers with a checksum.

Sources: the forms that AWS, GitHub, GitLab, Slack, Stripe, Google, OpenAI and others document, as
gathered by detect-secrets 1.5 (Apache-2.0) and gitleaks 8 (MIT); ISO/IEC 7812 (cards) and ISO
13616 (IBAN) for the numbers. Every repetition is bounded, so that time is linear.
"""

from __future__ import annotations

import re
from base64 import b64decode
from binascii import Error as NotBase64
from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

from mnemosyned.text.details import DetailKind
from mnemosyned.text.terms import without_unspaced


class Secret(NamedTuple):
    """The kind of a secret and its position in a text."""

    kind: DetailKind
    start: int
    stop: int


TOKEN_HINTS = {
    "A": ("AKIA", "ASIA", "ABIA", "ACCA", "A3T", "AIza", "AGE-SECRET-KEY-1", ":AA", "TAN ", "TAN:"),
    "G": ("SG.", "G-"),
    "_": (
        "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "_pat_", "k_live_", "k_test_", "hf_", "npm_",
        "dop_v1_", "doo_v1_", "dor_v1_", "shpat_", "shpss_", "shpca_", "shppa_", "glsa_", "glc_",
        "sntrys_", "sntryu_", "whsec_",
    ),
    "-": ("sk-", "xox", "xapp-", "pypi-AgE", "-----BEGIN", "pul-"),
    "gl": ("glpat-", "gldt-", "glft-", "glsoat-", "glrt-", "glcbt-", "glptt-", "glagent-"),
    "/": ("hooks.slack.com/services/", "1//0"),
    "hv": ("hvs.", "hvb."),
    "ya29.": ("ya29.",),
}  # fmt: skip
"""Every text with a token has one of these; other texts are skipped in 1 µs."""

_TOKENS = re.compile(
    r"(?P<private_key>-----BEGIN [A-Z ]{0,30}PRIVATE KEY(?: BLOCK)?-----[^-]*(?:-(?!----END)[^-]*)*"
    r"(?:-----END[^\n]{0,60}?-----)?|AGE-SECRET-KEY-1[0-9A-Za-z]{40,80})"
    r"|(?P<aws_key>\b(?:A3T[A-Z0-9]|ABIA|ACCA|AKIA|ASIA)[A-Z0-9]{16})\b"
    r"|(?P<github_token>\b(?:gh[pousr]_[A-Za-z0-9]{20,255}|github_pat_\w{20,255}))"
    r"|(?P<gitlab_token>\bgl(?:pat|dt|ft|soat|rt|cbt|ptt|agent)-[\w-]{16,255})"
    r"|(?P<slack_token>\bxox[abeposr]-[\w-]{10,255}|\bxapp-\d-[\w-]{20,255}"
    r"|https://hooks\.slack\.com/services/[\w/]{16,100})"
    r"|(?P<api_key>\b(?:sk-[\w-]{16,255}|[rsp]k_(?:live|test)_[A-Za-z0-9]{10,255}|AIza[\w-]{35}"
    r"|hf_[A-Za-z0-9]{24,64}|npm_[A-Za-z0-9]{30,64}|pypi-AgE[\w-]{40,512}"
    r"|SG\.[\w-]{16,64}\.[\w-]{16,64}|whsec_[A-Za-z0-9+/=]{16,100}))"
    r"|(?P<token>\b(?:do[por]_v1_[0-9a-f]{64}|shp(?:at|ss|ca|pa)_[0-9a-fA-F]{32}"
    r"|glsa_[A-Za-z0-9]{32}_[0-9a-f]{8}|glc_[A-Za-z0-9+/=]{32,400}|pul-[0-9a-f]{40}"
    r"|sntry[su]_[\w=+/-]{30,400}|hv[sb]\.[\w-]{20,300}|\d{8,10}:AA[\w-]{33}|1//0[\w-]{20,200}"
    r"|ya29\.[\w-]{20,400}))"
    r"|(?<![\w-])(?:G-|TAN:? )(?P<login_code>\d{6})(?!\w)"
)
_JWT = re.compile(r"\b(?P<jwt>eyJ[\w-]{8,}\.[\w-]{4,}(?:\.[\w-]*)?)|\beyJ[\w-]*")
"""The second alternative skips what is no token, so that no character is read twice."""
_IN_URL = re.compile(r"://[^\s:/@]{0,128}:(?P<password>(?![\[${<])[^\s@/]{1,256})@")
_BASIC = re.compile(r"\b[Bb]asic\s{1,3}(?P<token>[A-Za-z0-9+/]{8,512}={0,2})")
_SIGNED = re.compile(
    r"[?&;](?:(?P<_sig>sig|[Ss]ignature|X-(?:Amz|Goog|Ms)-Signature|X-Amz-Security-Token|hmac)"
    r"|(?:access_|auth_|reset_|id_)?(?:token|code|secret|password))="
    r"(?P<signature>(?![\[${<])[\w%.~+/=-]{8,2000})"
)
_COOKIE = re.compile(
    r"(?:\b[Cc]ookie:|\s-b\s|\s--cookie[ =])[ \"']{0,3}(?P<pairs>[^\"'\n]{1,4000})"
)
_PAIR = re.compile(r"[\w.-]{1,64}=(?P<cookie>[^;\s\"']{8,1000})")
_COOKIE_NAMES = re.compile(
    r"sess|sid|auth|token|jwt|csrf|xsrf|remember|login", re.IGNORECASE
)
_ELEMENT = re.compile(
    r"<\w{0,40}?(?:[Pp]ass(?:word|wd|phrase)?|PASSWORD|[Ss]ecret|[Tt]oken|[Aa]pi[Kk]ey)>"
    r"(?P<password>[^<>\s]{4,256})</"
)
_INPUT = re.compile(
    r"(?:[Pp]assword|PASSWORD|[Pp]wd|[Ss]ecret|[Tt]oken|[Aa]pi[Kk]ey)[\"']\s{1,3}value="
    r"[\"'](?P<password>[^\"'\n]{4,256})"
)
_HASH = re.compile(
    r"(?P<password>\$(?:apr1|1|2[abxy]|5|6|7|y|gy|argon2(?:id|i|d)|scrypt|pbkdf2-sha\d{3})\$"
    r"[\w./$,=+-]{16,300})"
)
_PGPASS = re.compile(
    r"^[^\s:]{1,100}:(?:\d{4,5}|\*):[^\s:]{1,64}:[^\s:]{1,64}:(?P<password>[^\s:]{4,256})$",
    re.MULTILINE,
)
_WIFI_QR = re.compile(
    r"\bWIFI:(?:[A-OQ-Z]:[^;\n]{0,64};){0,4}P:(?P<password>[^;\n]{4,64})"
)

_VALUE = r"[\"']?(?P<password>[^\s\"'$<>{}`|;][^\s\"'|]{3,127})"
_STRONG = (
    r"[\"']?(?P<password>(?=[^\s\"'|]{0,40}?[\d!#%&*+@^~])(?=[^\s\"'|]{0,40}?[A-Za-z])"
    r"[^\s\"'$<>{}`|;][^\s\"'|]{3,127})"
)
_ARGUMENTS = r"\b[^\n|;&]{0,200}?\s"
COMMANDS = {
    "curl": (
        rf"\bcurl{_ARGUMENTS}(?:-[uU] ?|--(?:proxy-)?user[ =])[\"']?[^\s:\"'$]{{1,64}}:{_VALUE}"
    ),
    "mysql": rf"\bmysql(?:dump|admin|import|show)?{_ARGUMENTS}-p{_VALUE}",
    "mariadb": rf"\bmariadb(?:-\w+)?{_ARGUMENTS}-p{_VALUE}",
    "sshpass": rf"\bsshpass\s{{1,3}}-p\s{{0,3}}{_VALUE}",
    "login": (
        rf"\b(?:docker|podman|helm|nerdctl|oras|crane|az|npm)\b[^\n|;&]{{0,40}}?\blogin"
        rf"{_ARGUMENTS}(?:-p\s{{0,2}}|--password[ =])(?![\w-]*stdin){_VALUE}"
    ),
    "redis-cli": rf"\bredis-cli{_ARGUMENTS}-a\s{{1,3}}{_VALUE}",
    "sudo": rf"\becho\s{{1,3}}{_VALUE}[\"']?\s{{0,3}}\|\s{{0,3}}sudo\s[^\n|]{{0,40}}?-S",
    "openssl": rf"\bopenssl{_ARGUMENTS}-(?:k\s{{1,3}}|pass(?:in|out)?\s{{1,3}}pass:){_VALUE}",
    "7z": rf"\b7z{_ARGUMENTS}-p{_STRONG}",
    "zip": rf"\b(?:un)?zip{_ARGUMENTS}-P\s{{0,3}}{_STRONG}",
    "rar": rf"\b(?:un)?rar{_ARGUMENTS}-h?p{_STRONG}",
    "htpasswd": (
        rf"\bhtpasswd\s{{1,3}}-\w{{0,5}}b\w{{0,5}}\s{{1,3}}\S{{1,200}}\s{{1,3}}\S{{1,64}}"
        rf"\s{{1,3}}{_VALUE}"
    ),
    "chpasswd": (
        rf"[\"'][\w.-]{{1,64}}:{_VALUE}[\"']\s{{0,3}}\|\s{{0,3}}(?:sudo\s{{1,3}})?chpasswd"
    ),
    "net use": rf"\bnet use\b[^\n]{{0,40}}?\\\\\S{{1,200}}\s{{1,3}}{_VALUE}\s{{1,3}}/user",
    "ldap": rf"\bldap(?:search|add|modify|delete|passwd|whoami){_ARGUMENTS}-w\s{{0,3}}{_VALUE}",
}
"""Commands that take a password as an argument, by a word in the text that hints at them."""
_COMMANDS = {hint: re.compile(pattern) for hint, pattern in COMMANDS.items()}

_DIGITS = re.compile(
    r"[0-9](?<![0-9].)(?![0-9]{3}-[0-9]{2}-[0-9]{2}(?![0-9]))[0-9 -]{8}"
)
"""Matches in every number below, and not at a date such as 2026-03-09."""
_NUMBERS = re.compile(
    r"(?P<card>[2-6][0-9]{3}(?<![\w.-][0-9]{4})(?:[ -]?[0-9]){10,12}(?![\w-]))"
    r"|(?P<ssn>[0-9]{3}-(?<![\w.-][0-9]{3}-)(?![0-9][0-9]-0000)(?!00)[0-9][0-9]-[0-9]{4}(?![\w-]))"
    r"|(?P<nir>[12] ?[0-9][0-9] ?(?:0[1-9]|1[0-2]) ?[0-9][0-9]"
    r" ?[0-9]{3} ?[0-9]{3} ?[0-9][0-9](?![\w-]))"
    r"|(?P<iban>[A-Z]{2}[0-9][0-9](?<![\w-][A-Z]{2}[0-9][0-9])(?: ?[A-Z0-9]){11,30})"
)
_CARD_DIGITS = {"34": 15, "37": 15, "30": 14, "36": 14, "38": 14, "35": 16}
"""Digits of card numbers that begin with 3; others have 16."""
_IBAN_CHARS = {
    "AD": 24, "AT": 20, "BE": 16, "BG": 22, "CH": 21, "CY": 28, "CZ": 24, "DE": 22, "DK": 18,
    "EE": 20, "ES": 24, "FI": 18, "FR": 27, "GB": 22, "GR": 27, "HR": 21, "HU": 28, "IE": 22,
    "IS": 26, "IT": 27, "LI": 21, "LT": 20, "LU": 20, "LV": 21, "MC": 27, "MT": 31, "NL": 18,
    "NO": 15, "PL": 28, "PT": 25, "RO": 24, "SE": 24, "SI": 19, "SK": 24, "SM": 27, "TR": 26,
    "UA": 29,
}  # fmt: skip


def find_by_format(text: str) -> list[Secret]:
    """Return the secrets of a text that their format gives away."""
    text = without_unspaced(text)  # in which a token ends, as at a space
    secrets: list[Secret] = []
    if _may_have_token(text):
        secrets += _spans(_TOKENS, text)
    for sign, finders in _FINDERS.items():
        if sign in text:
            for hint, finder in finders:
                if hint in text:
                    secrets += finder(text)
    if _may_have_command(text):
        secrets += _find_in_commands(text)
    if _DIGITS.search(text):
        secrets += _find_numbers(text)
    return secrets


def _may_have_token(text: str) -> bool:
    for sign, hints in TOKEN_HINTS.items():
        if sign in text:
            for hint in hints:  # `any` takes a third longer
                if hint in text:
                    return True
    return False


def _may_have_command(text: str) -> bool:
    return " -" in text or "$" in text or "|" in text or " /user" in text


def _spans(pattern: re.Pattern[str], text: str) -> Iterator[Secret]:
    for match in pattern.finditer(text):
        group = match.lastgroup or ""
        yield Secret(DetailKind(group), *match.span(group))


def _find_jwts(text: str) -> Iterator[Secret]:
    for match in _JWT.finditer(text):
        if match["jwt"]:
            yield Secret(DetailKind.JWT, *match.span())


def _find_basic_auth(text: str) -> Iterator[Secret]:
    for match in _BASIC.finditer(text):
        if _is_basic_auth(match["token"]):
            yield Secret(DetailKind.PASSWORD, *match.span("token"))


def _is_basic_auth(code: str) -> bool:
    """Tell whether it is `user:password` in base64."""
    try:
        return b":" in b64decode(code, validate=True)
    except NotBase64:
        return False


def _find_in_pgpass(text: str) -> Iterator[Secret]:
    """Yield the passwords of a file `.pgpass`, whose lines have five fields."""
    if text.count(":") >= 4:
        yield from _spans(_PGPASS, text)


def _find_signatures(text: str) -> Iterator[Secret]:
    """Yield signatures and tokens in the query of a URL."""
    if "?" not in text and "&" not in text:
        return
    for match in _SIGNED.finditer(text):
        kind = DetailKind.SIGNATURE if match["_sig"] else DetailKind.TOKEN
        if any(map(str.isdigit, match["signature"])):
            yield Secret(kind, *match.span("signature"))


def _find_cookies(text: str) -> Iterator[Secret]:
    for match in _COOKIE.finditer(text):
        for pair in _PAIR.finditer(text, *match.span("pairs")):
            if _COOKIE_NAMES.search(text, pair.start(), pair.start("cookie")):
                yield Secret(DetailKind.COOKIE, *pair.span("cookie"))


_FINDERS: dict[str, tuple[tuple[str, Callable[[str], Iterator[Secret]]], ...]] = {
    "J": (("eyJ", _find_jwts),),
    "@": (("://", partial(_spans, _IN_URL)),),
    ":": (
        ("asic ", _find_basic_auth),
        ("ookie", _find_cookies),
        ("WIFI:", partial(_spans, _WIFI_QR)),
        (":", _find_in_pgpass),
    ),
    "=": (
        ("=", _find_signatures),
        ("value=", partial(_spans, _INPUT)),
        ("curl", _find_cookies),
    ),
    "</": (("</", partial(_spans, _ELEMENT)),),
    "$": (("$", partial(_spans, _HASH)),),
}
"""What finds secrets by a hint without which there are none, by a sign that the hints share."""


def _find_in_commands(text: str) -> Iterator[Secret]:
    for hint, pattern in _COMMANDS.items():
        if hint in text:
            yield from _spans(pattern, text)


def _find_numbers(text: str) -> Iterator[Secret]:
    for match in _NUMBERS.finditer(text):
        kind, measure = _NUMBER_KINDS[match.lastgroup or ""]
        start = match.start()
        if chars := measure(match[0]):
            yield Secret(kind, start, start + chars)


def _card_chars(text: str) -> int:
    """Return the length of a card number, or 0 if no network issues it or its check digit is wrong."""
    digits = re.sub(r"\W", "", text)
    wanted = _CARD_DIGITS.get(digits[:2], 0) if digits[0] == "3" else 16
    doubled = [sum(divmod(2 * int(digit), 10)) for digit in digits[-2::-2]]
    checksum = sum(map(int, digits[-1::-2])) + sum(doubled)
    valid = len(digits) == wanted and checksum % 10 == 0
    return len(text) * valid


def _ssn_chars(text: str) -> int:
    """Return the length of a social security number, or 0 for an area that is not used."""
    unused = text.startswith(("000", "666", "9"))
    return len(text) * (not unused)


def _nir_chars(text: str) -> int:
    """Return the length of a French social security number, or 0 if its key is wrong."""
    digits = re.sub(r"\W", "", text)
    number, key = int(digits[:13]), int(digits[13:])
    return len(text) * (97 - number % 97 == key)


def _iban_chars(text: str) -> int:
    """Return the length of the IBAN at the start of a text, with spaces, or 0 if there is none."""
    size = _IBAN_CHARS.get(text[:2], 0)
    if not size:
        return 0
    ends = [end for end, char in enumerate(text, start=1) if char != " "][:size]
    if len(ends) < size or text[ends[-1] : ends[-1] + 1].isalnum():
        return 0
    number = text[: ends[-1]].replace(" ", "")
    rotated = number[4:] + number[:4]
    digits = "".join(str(int(char, 36)) for char in rotated)
    return ends[-1] if int(digits) % 97 == 1 else 0


_NUMBER_KINDS: dict[str, tuple[DetailKind, Callable[[str], int]]] = {
    "card": (DetailKind.CARD_NUMBER, _card_chars),
    "ssn": (DetailKind.SSN, _ssn_chars),
    "nir": (DetailKind.SSN, _nir_chars),
    "iban": (DetailKind.IBAN, _iban_chars),
}
"""The kind of each number, and how many characters of a match it has."""
