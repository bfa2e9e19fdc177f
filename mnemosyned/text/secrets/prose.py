"""Finds secrets in prose by their names: "the password of the router is …".

A value must look like what its name announces: a password, a key, a phrase; each kind of name has
its own function.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import islice
from math import log2
from typing import NamedTuple

from mnemosyned.text.details import DetailKind
from mnemosyned.text.secrets.formats import Secret
from mnemosyned.text.secrets.names import (
    ADVERBS,
    COPULAS,
    EDGES,
    FROM_TO,
    NO_PASSWORDS,
    PROSE,
    TOKEN,
    WINDOW_CHARS,
    SecretLabel,
    SecretName,
    ValueLink,
    find_names,
    find_value_links,
    skip_words,
    words_in_tables,
)
from mnemosyned.text.sentences import UNSPACED, WORD_END, end_words_at_unspaced

PASSWORD_CHARS_MIN = 4
VALUE_CHARS_MAX = 4_096
JUDGED_CHARS = 64
"""Characters of a value that are judged, so that a long one takes no more time."""
ENTROPY_MIN = 2.5
"""Bits per character of a random value: "20260317a" has 2.7, a word and a number fewer."""
PHRASE_WORDS = range(3, 13)
PHRASE_CHARS_MAX = 120
QUOTES_MAX = 4
BARE_PHRASE_WORDS = range(4, 9)
"""Words of a phrase after "password:", where a sentence is likelier than after "passphrase:"."""

CLOSING = ".,;:)]}>\"'`“”’»」』。、，"
"""Marks that end a value without being part of it. `!` and `?` may be its last character."""
_QUOTES = {
    '"': '"', "'": "'", "`": "`", "“": "”", "„": "“”", "‘": "’", "«": "»", "「": "」", "『": "』",
}  # fmt: skip
_RUN = re.compile(rf"\S{{1,{JUDGED_CHARS}}}")
_REST = re.compile(rf"\S{{0,{VALUE_CHARS_MAX}}}")
_OPENING = "\"'`“”„‘’«<(「『"
_NEXT = re.compile(rf"(?<=[!-~])[\u3001-\u303f{UNSPACED}]|[;&][\w ]{{1,40}}=")
"""Another script, or the next of several settings."""
_DIGIT = re.compile(r"\d")
_LETTER = re.compile(r"[^\W\d_]")
SIGNS = "!#$%&*+@^~?_=|\\"
_SPLIT = re.compile(r"[_.:/=-]+")
_WORDS = re.compile(
    r"[^\W\d_]+(?: [^\W\d_]+){2,11}"
    r"(?=[.!?,;)\"'”»]*(?:\n|\s*$|[.!?,;)]\s))"
)
_NO_PHRASE = PROSE | NO_PASSWORDS
_CLAUSE = frozenset(
    "than should must is are not be was has ist sind est sont es è sono doit".split()
)
_UNLIKELY = re.compile(
    r"[\W_]{1,99}"  # no letter or digit
    r"|[\w.%+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,8}"  # an address
    r"|\w{1,20}://.*|(?:\.{0,2}/|~/).*"  # a URL, a path
    r"|\d{1,4}([./-])\d{1,2}\1\d{1,4}|\d{1,2}:\d\d(?::\d\d)?(?:[ap]m)?"  # a date, a time
    r"|v?\d{1,9}(?:[.,]\d{1,9}){1,8}\w{0,4}|\d{1,9}(?:[a-z]{1,3}|%)|[#§]\d{1,9}"  # a version
    r"|[A-Za-z_.]{1,99}:\d{1,9}|[A-Za-z_.][\w.]{0,99}[\[(].*|.*\(\).*"  # code
    r"|(?:self|this|cls|args|opts|options|config|settings|request|req|env|os|params|ctx)\..*"
    r"|\w{0,40}(?:passw|pwd|user|cred|auth)[a-z_]*|%[sdr(].*|[A-Za-z_]{1,40}=(?:[\"'].*)?"
    r"|[A-Za-z_-]{1,40}=[\"'].*|(?:[$%]\w*[{(]|\$[A-Za-z_]|[{<\[\\]|--).*"  # a variable
    r"|[xX•.*-]{1,99}",  # a blank
    re.DOTALL,
)


class SecretCandidate(NamedTuple):
    """A text that may be a secret's value, its position, and whether it is in quotation marks."""

    text: str
    start: int
    stop: int
    quoted: bool


def read_candidate(text: str, start: int) -> SecretCandidate | None:
    """Return the quotation at `start`, or else the unquoted value there; None if empty.

    An unquoted value ends at a space, at another script, before the next of several settings, or
    after `JUDGED_CHARS`. Punctuation around the value is left out.
    """
    if quotation := _read_quotation(text, start):
        return quotation
    run = _RUN.match(text, start)
    if run is None:
        return None
    bare = run[0].lstrip(_OPENING)
    quotes = min(len(run[0]) - len(bare), QUOTES_MAX)
    words = run[0][quotes:]
    following = _NEXT.search(words, 1)
    if following:
        words = words[: following.start()]
    if following or run.end() < start + JUDGED_CHARS:
        words = words.rstrip(CLOSING)
    return _make_unquoted_candidate(words, start + quotes) if words else None


def _make_unquoted_candidate(words: str, begin: int) -> SecretCandidate:
    """Return a candidate without quotation marks that begins at position `begin`."""
    return SecretCandidate(words, begin, begin + len(words), quoted=False)


def _read_quotation(text: str, start: int) -> SecretCandidate | None:
    """Return the text in quotation marks at `start`, or None if no quotation begins there."""
    closing = _QUOTES.get(text[start : start + 1])
    if not closing:
        return None
    line = text[start + 1 : start + 1 + JUDGED_CHARS].partition("\n")[0]
    ends = [line.find(mark) for mark in closing]
    end = min((end for end in ends if end > 0), default=0)
    if not end:
        return None
    inside = line[:end]
    begin = start + 1 + len(inside) - len(inside.lstrip())
    inside = inside.strip()
    return SecretCandidate(inside, begin, begin + len(inside), quoted=True)


def extend_candidate(text: str, value: SecretCandidate) -> SecretCandidate:
    """Return a candidate up to the next space if `read_candidate` cut it at `JUDGED_CHARS`."""
    if value.quoted or len(value.text) < JUDGED_CHARS - QUOTES_MAX:
        return value
    remainder = _REST.match(text, value.stop)
    stop = remainder.end() if remainder else value.stop
    return _make_unquoted_candidate(
        text[value.start : stop].rstrip(CLOSING), value.start
    )


def may_be_password(value: str) -> bool:
    """Return whether a value may be a password: no blank, placeholder, address, date or code."""
    blank = not value.strip("*•.xX-_")
    if blank or len(value) < PASSWORD_CHARS_MIN:
        return False
    if value.lower().rstrip("!?") in NO_PASSWORDS:
        return False
    return not _UNLIKELY.fullmatch(value)


def looks_like_password(value: str, *, signs: str = SIGNS) -> bool:
    """Return whether a value mixes letters with digits or signs, as no word does."""
    inside = value.rstrip("!?")
    if not _LETTER.search(inside):
        return False
    return bool(_DIGIT.search(inside)) or not set(signs).isdisjoint(inside)


def looks_random(value: str, chars_min: int) -> bool:
    """Return whether at least `chars_min` characters mix letters and digits at random."""
    if len(value) < chars_min:
        return False
    value = value[:JUDGED_CHARS]
    if not _DIGIT.search(value) or not _LETTER.search(value):
        return False
    parts = filter(None, _SPLIT.split(value))
    if all(part.isalpha() or part.isdigit() for part in parts):
        return False
    shares = [value.count(char) / len(value) for char in set(value)]
    return -sum(share * log2(share) for share in shares) >= ENTROPY_MIN  # Shannon


def read_passphrase(text: str, start: int, *, named: bool) -> SecretCandidate | None:
    """Return the rest of the sentence from `start` if it may be a passphrase, else None.

    `named` says that the name was "passphrase", so that more is accepted.
    """
    limit = start + PHRASE_CHARS_MAX
    match = _WORDS.match(text, start, limit)
    if match is None or match.end() == limit < len(text):
        return None
    words = match[0].split(" ")
    low = match[0].lower().split(" ")
    if low[0] in PROSE or _CLAUSE.intersection(low):
        return None
    if named:
        plausible = len(words) in PHRASE_WORDS and low[1] not in PROSE
    else:
        is_bare = len(words) in BARE_PHRASE_WORDS and min(map(len, words)) > 2
        plausible = words == low and is_bare and _NO_PHRASE.isdisjoint(words)
    return _make_unquoted_candidate(match[0], start) if plausible else None


KEY_CHARS_MIN = 8
UNLINKED_KEY_CHARS_MIN = 10
BARE_KEY_CHARS_MIN = 16
"""Length of a value after a bare "key", which has many meanings."""
KEY_CHARS = 64
"""Characters of a key that are judged for randomness."""
FRUITLESS_MAX, CHARS_PER_NAME = 200, 16
"""Names without a value after which a text is given up: each takes 25 µs."""
LINKS_MAX = 3
"""Links tried for one name."""
BEFORE_CHARS = 80
"""Distance before its name within which a value may begin: "use X as the password"."""
CODE_DIGITS_MIN = 4
CHECK_DIGITS = 3
"""Digits of the check number of a card."""
CODES_MAX = 16
"""Recovery codes read from one list."""
CHANGES_MAX = 3
"""Successive values read from one sentence: "it was A, then B, now C"."""

_AND_NOW, _AS, _DETERMINERS = (
    words_in_tables("and_now"),
    words_in_tables("as"),
    words_in_tables("determiners"),
)
_CHANGES = ADVERBS | COPULAS
_LATER = _CHANGES | _AND_NOW

_VALUE_ENDS = ".,;:!?)]}>\"'`“”’»」』。、，\n "
_NAMED = re.compile(
    r"(?:api|access|secret|auth|private|signing|encryption|client|service|account|shared|licen[cs]e"
    r"|refresh|session|deploy|webhook|master|zugangs|app|bot|lizenz|product|activation)[ _-]?$"
)
_BEARER_VALUE = re.compile(
    r"\s{1,3}(?P<value>(?=[A-Za-z_.~+/-]{0,64}\d)[\w.~+/-]{14,4096}=*)"
)
_KEY_VALUE = re.compile(r"[\w.+/=~-]{8,4096}")
_UNIT = "年月日号號時时分秒桁位個个回次件人円元년월일시분초자번개"
"""Units of scripts without spaces: `2026年` is no code."""


def _compile_code(pattern: str) -> re.Pattern[str]:
    """Return the pattern of a code that must not go on as a word or with a unit such as `年`."""
    return re.compile(end_words_at_unspaced(pattern, end=f"{WORD_END}(?![{_UNIT}])"))


_CODE = _compile_code(r"[#*]?[A-Z]?\d{2,8}[A-Z]?\d{0,4}[#*]?(?![\w@%])(?![.,:/-]\d)")
_GROUPS = _compile_code(r"\d{1,3}(?:[ .-]\d{1,3}){2,5}(?![\w-])")
_LOGIN_CODE = _compile_code(
    r"\d{3}[ -]\d{3}(?!\w)|\d{4,8}(?![\w-])(?![.,:/]\d)"
    r"|(?=[a-zA-Z-]{0,30}\d)[a-zA-Z0-9]{3,12}(?:-[a-zA-Z0-9]{3,12}){1,6}(?!\w)"
    r"|(?=[A-Z]{0,60}[2-7])[A-Z2-7]{16,64}(?!\w)|[A-Z2-7]{32,64}(?!\w)"
    r"|(?=[a-z ]{0,30}\d)(?:[a-z0-9]{4} ){3,15}[a-z0-9]{4}(?!\w)"
)
_NEXT_CODE = re.compile(
    r"\s{0,3}[,;/|]\s{0,3}|\s{1,3}(?:(?:and|und|et|y|e|or|oder)\s{1,3})?"
)
_SEED = re.compile(
    r"(?=(?P<link>[^\n:=]{0,60}?(?::|=|\b(?:is|ist|est|es|è)\b)\s{0,3}[\"'`“„«]?))(?P=link)"
    r"(?P<words>[a-z]{3,8}(?: [a-z]{3,8}){11,23})(?!-)" + WORD_END
)
_EDGE_RUN = re.compile(f"[{re.escape(EDGES)}]*")
_AFTER_SLASH = re.compile(r"[^\n/]{1,80}?\s[/|]\s(?=\S)")


def find_by_name(text: str) -> Iterator[Secret]:
    """Yield the secrets that follow or precede a name such as "password", in the order of names."""
    done = fruitless = 0
    for name in find_names(text):
        fruitless_max = FRUITLESS_MAX + name.start // CHARS_PER_NAME
        if name.start < done or fruitless > fruitless_max:
            continue
        fruitless += 1
        for secret in _RULES[name.label](name):
            done = max(done, secret.stop)
            fruitless = 0
            yield secret


def _find_passwords(name: SecretName) -> Iterator[Secret]:
    """Yield the password of a name, with an old or new password that the sentence also names."""
    text = name.text
    if change := _find_changed_passwords(name):
        yield from (_make_password_secret(text, value) for value in change)
        return
    for link in islice(find_value_links(name), LINKS_MAX):
        if value := _read_linked_password(name, link):
            secret = _make_password_secret(text, value)
            yield secret
            yield from _find_successors(name, secret.stop)
            return
    if earlier := _keep_if_strong(_find_value_before(name)):
        yield _make_password_secret(text, earlier)


def _read_linked_password(name: SecretName, link: ValueLink) -> SecretCandidate | None:
    """Return the password or passphrase at a link, or None if the text there is neither."""
    short = name.label is SecretLabel.PASS
    value = _read_linked_passphrase(name, link) or read_candidate(name.text, link.start)
    if value and _is_password(name.text, value, link, short=short):
        return value
    return None


def _make_password_secret(text: str, value: SecretCandidate) -> Secret:
    """Return a candidate as a secret of the kind password, up to its end."""
    value = extend_candidate(text, value)
    return Secret(DetailKind.PASSWORD, value.start, value.stop)


def _keep_if_strong(value: SecretCandidate | None) -> SecretCandidate | None:
    """Return a candidate that looks like a password by itself, else None."""
    if value is None or not may_be_password(value.text):
        return None
    return value if looks_like_password(value.text) else None


def _read_linked_passphrase(
    name: SecretName, link: ValueLink
) -> SecretCandidate | None:
    """Return the passphrase at a link after "passphrase" or a colon, or None."""
    named = name.label is SecretLabel.PHRASE
    announced = link.sign != "" if named else link.sign == ":"
    if announced and name.label is not SecretLabel.PASS:
        return read_passphrase(name.text, link.start, named=named)
    return None


def _is_password(
    text: str, value: SecretCandidate, link: ValueLink, *, short: bool
) -> bool:
    """Return whether the value after "password:" or "the password is" is a password.

    `short` says that the name is short and ambiguous, such as "pass", so that more is demanded.
    """
    words, quoted = value.text, value.quoted
    if not may_be_password(words.replace(" ", "") if quoted else words):
        return False
    if link.sign:
        distinct = (
            " " in words
            or looks_like_password(words)
            or (quoted and not words.isdigit())
        )
        return distinct or (not short and _is_bare_password(text, value, link))
    adjacent = text[link.start - 1].isspace() and text[link.start - 2] != ","
    if quoted and adjacent:
        return True
    return looks_like_password(words, signs="!#$%&*+@^~?")


def _is_bare_password(text: str, value: SecretCandidate, link: ValueLink) -> bool:
    """Return whether a number or plain word is a password by its place: "password: sesame"."""
    words = value.text
    after_colon = link.sign == ":"
    following = text[value.stop : value.stop + 2]
    ends = not following.strip(_VALUE_ENDS)
    if words.isdigit():
        linked = after_colon or not link.apart
        return linked or ends or following[0] in ",."
    if not after_colon:
        return words.isalpha() and words not in (words.lower(), words.title())
    if words.isascii() and not words.isalpha():
        return True
    # A plain word counts if nothing follows it: "password: opensesame".
    return ends and not link.apart


def _find_changed_passwords(
    name: SecretName,
) -> tuple[SecretCandidate, SecretCandidate] | None:
    """Return the old and the new password of "password changed from A to B", or None."""
    text, low, end = name.text, name.low, name.end
    start = skip_words(low, end, min(end + WINDOW_CHARS, len(low)), _CHANGES)
    limit = min(start + WINDOW_CHARS, len(low))
    tokens = list(islice(TOKEN.finditer(low, start, limit), 4))
    if len(tokens) < 4 or not name.has_spaces:
        return None
    opening, old, to, new = tokens
    if to[0] not in FROM_TO.get(opening[0], ()):
        return None
    before = read_candidate(text, old.start())
    after = read_candidate(text, new.start())
    if before is None or after is None:
        return None
    return (
        (before, after) if _keep_if_strong(before) or _keep_if_strong(after) else None
    )


def _find_successors(name: SecretName, stop: int) -> Iterator[Secret]:
    """Yield the new passwords that a sentence names from `stop` on: "…, now it is X"."""
    text, low = name.text, name.low
    for _ in range(CHANGES_MAX):
        edges = _EDGE_RUN.match(text, stop)
        stop = edges.end() if edges else stop
        limit = min(stop + WINDOW_CHARS, len(low))
        start = skip_words(low, stop, limit, _LATER)
        between = low[stop:start].replace(",", " ").split()
        if COPULAS.isdisjoint(between) or _AND_NOW.isdisjoint(between):
            return
        value = _keep_if_strong(read_candidate(text, start))
        if value is None:
            return
        yield _make_password_secret(text, value)
        stop = value.stop


def _find_value_before(name: SecretName) -> SecretCandidate | None:
    """Return the value of "use X as the password" or "X is my password", or None."""
    if not name.has_spaces:
        return None
    window = max(0, name.start - BEFORE_CHARS)
    tokens = list(TOKEN.finditer(name.low, window, name.start))[-4:]
    following = ""
    for value, token in zip(tokens[-2::-1], tokens[:0:-1], strict=True):
        word = token[0]
        is_mine = word in COPULAS and following in _DETERMINERS
        if is_mine or word in _AS:
            return read_candidate(name.text, value.start())
        following = word
    return None


def _find_keys(name: SecretName) -> Iterator[Secret]:
    """Yield the API key, token or other random value of a name, if there is one."""
    kind = DetailKind.TOKEN if name.label is SecretLabel.TOKEN else DetailKind.API_KEY
    if value := _find_key_value(name):
        yield Secret(kind, value.start, value.stop)


def _find_key_value(name: SecretName) -> SecretCandidate | None:
    """Return the random value that follows or precedes a name such as "API key", or None."""
    before = max(0, name.start - 16)
    is_bare = name.label is SecretLabel.KEY and not _NAMED.search(
        name.low, before, name.start
    )
    if is_bare:  # no word before "key" says what it opens
        return _find_linked_key(name, BARE_KEY_CHARS_MIN, bare=True)
    if value := _find_linked_key(name, KEY_CHARS_MIN, bare=False):
        return value
    earlier = _find_value_before(name)
    if earlier and looks_random(earlier.text, KEY_CHARS_MIN):
        return earlier
    return None


def _find_linked_key(
    name: SecretName, chars_min: int, *, bare: bool
) -> SecretCandidate | None:
    """Return the whole random value of at least `chars_min` characters after a name, or None.

    `bare` says that the name is "key" alone, which needs a colon or copula next to it.
    """
    text = name.text
    for link in islice(find_value_links(name), LINKS_MAX):
        if bare and (link.apart or not link.sign):
            return None
        least = chars_min if link.sign else max(chars_min, UNLINKED_KEY_CHARS_MIN)
        if value := _read_random_value(text, link, least):
            return value if value.quoted else _read_key(text, value.start, None)
    return None


def _read_random_value(
    text: str, link: ValueLink, chars_min: int
) -> SecretCandidate | None:
    """Return the value at a link if it looks random and has `chars_min` characters, else None."""
    value = read_candidate(text, link.start)
    if value is None:
        return None
    whole = value.quoted and " " not in value.text
    if not whole:
        value = _read_key(text, value.start, KEY_CHARS)
    return value if looks_random(value.text, chars_min) else None


def _find_bearer_tokens(name: SecretName) -> Iterator[Secret]:
    """Yield the token after "Bearer" in an HTTP header."""
    if value := _BEARER_VALUE.match(name.text, name.end):
        yield Secret(DetailKind.TOKEN, *value.span("value"))


def _read_key(text: str, start: int, chars: int | None) -> SecretCandidate:
    """Return the key at `start`, up to `chars` characters, or in full if `chars` is None."""
    run = _KEY_VALUE.match(text, start, len(text) if chars is None else start + chars)
    words = run[0].rstrip(".") if run else ""
    return SecretCandidate(words, start, start + len(words), quoted=False)


def _find_codes(name: SecretName) -> Iterator[Secret]:
    """Yield a PIN, a door code or the combination of a lock."""
    patterns: tuple[re.Pattern[str], ...] = (_GROUPS, _CODE)
    of_card = name.word.startswith(("cv", "pr", "cr", "kart"))
    digits_min = CHECK_DIGITS if of_card else CODE_DIGITS_MIN
    if name.label is SecretLabel.COMBINATION:
        patterns, digits_min = (_GROUPS,), 0
    for link in find_value_links(name):
        for pattern in patterns:
            value = pattern.match(name.text, link.start)
            if value and sum(map(str.isdigit, value[0])) >= digits_min:
                yield Secret(DetailKind.ACCESS_CODE, *value.span())
                return


def _find_login_codes(name: SecretName) -> Iterator[Secret]:
    """Yield one-time codes or recovery codes, up to `CODES_MAX` in a list."""
    for link in find_value_links(name):
        codes, start = 0, link.start
        while codes < CODES_MAX and (code := _LOGIN_CODE.match(name.text, start)):
            yield Secret(DetailKind.LOGIN_CODE, *code.span())
            codes += 1
            separator = _NEXT_CODE.match(name.text, code.end())
            start = separator.end() if separator else code.end()
        if codes:
            return


def _find_seed_phrases(name: SecretName) -> Iterator[Secret]:
    """Yield the seed phrase of a wallet: 12 to 24 words, a multiple of three."""
    run = _SEED.match(name.text, name.end)
    if run is None or not PROSE.isdisjoint(run["words"].split(" ")):
        return
    words = run["words"].split(" ")
    kept = " ".join(words[: len(words) // 3 * 3])
    start = run.start("words")
    yield Secret(DetailKind.SEED_PHRASE, start, start + len(kept))


def _find_answers(name: SecretName) -> Iterator[Secret]:
    """Yield the answer to a security question."""
    around = name.low[max(0, name.start - 60) : name.end + 40]
    if name.word == "answer" and "security" not in around:
        return
    text = name.text
    for link in find_value_links(name):
        value = read_candidate(text, link.start) if link.sign else None
        if value is None or value.text.lower() in PROSE:
            continue
        if may_be_password(value.text):
            yield _make_password_secret(text, value)
            return


def _find_logins(name: SecretName) -> Iterator[Secret]:
    """Yield the password after "credentials: user /"."""
    text = name.text
    for link in find_value_links(name):
        slash = _AFTER_SLASH.match(text, link.start)
        if slash is None or link.sign != ":":
            continue
        if value := _keep_if_strong(read_candidate(text, slash.end())):
            yield _make_password_secret(text, value)
            return


_RULES: dict[SecretLabel, Callable[[SecretName], Iterator[Secret]]] = {
    SecretLabel.PASSWORD: _find_passwords,
    SecretLabel.PHRASE: _find_passwords,
    SecretLabel.PASS: _find_passwords,
    SecretLabel.CODE: _find_codes,
    SecretLabel.COMBINATION: _find_codes,
    SecretLabel.LOGIN_CODE: _find_login_codes,
    SecretLabel.SEED: _find_seed_phrases,
    SecretLabel.ANSWER: _find_answers,
    SecretLabel.LOGIN: _find_logins,
    SecretLabel.KEY: _find_keys,
    SecretLabel.NAMED_KEY: _find_keys,
    SecretLabel.TOKEN: _find_keys,
    SecretLabel.BEARER: _find_bearer_tokens,
}
