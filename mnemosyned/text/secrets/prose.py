"""Finds secrets in prose by their names: "the password of the router is …".

Names are searched for around their hints. A value follows its name directly, or after a colon or a
copula ("is", "lautet") within a bounded window, and must look like what the name announces: a
password, a key, a phrase. Time is linear in the text. The words of all languages are in
`names.toml`, the patterns of values in `values.toml`; each kind of name has its own function.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cache
from itertools import chain, islice
from math import log2
from typing import NamedTuple

from mnemosyned.text.details import DetailKind, Secret
from mnemosyned.text.rule_files import compile_on_use, read_patterns, read_tables
from mnemosyned.text.sentences import UNSPACED, WORD_END, end_words_at_unspaced
from mnemosyned.text.terms import has_unspaced_script

_TABLES = read_tables(__file__, "names.toml")


def words_in_tables(*tables: str) -> frozenset[str]:
    """Return the words of all languages from these tables of `names.toml`."""
    rows = [row for table in tables for row in _TABLES[table].values()]
    return frozenset(" ".join(rows).split())


LABELS: dict[str, dict[str, list[str]]] = _TABLES["labels"]
"""Patterns of the names with each label, by language."""
HINTS: tuple[str, ...] = tuple(_TABLES["hints"])
HINTS_BEYOND_ASCII = tuple(_TABLES["hints_beyond_ascii"])
HINTS_OF_LOGINS = tuple(_TABLES["hints_of_logins"])
COPULAS, ADVERBS = words_in_tables("copulas"), words_in_tables("adverbs")
FROM_TO: dict[str, set[str]] = {}
"""Words between an old and a new value, by the word before the old one."""
for _from, _to in _TABLES["from_to"].values():
    FROM_TO.setdefault(_from, set()).update(_to.split("|"))
NO_PASSWORDS = frozenset(_TABLES["no_passwords"].split())
PROSE = frozenset(_TABLES["prose"].split())

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


class SecretName(NamedTuple):
    """A name of a secret, such as "password", and its position in a text."""

    text: str
    low: str
    """The text in lower case."""
    word: str
    label: str
    """Its key in `LABELS`, the kind of value that it announces."""
    start: int
    end: int

    @property
    def in_spaced_script(self) -> bool:
        """Whether the name is in a script that puts spaces between words."""
        return self.word[-1] < FIRST_WITHOUT_SPACES


class ValueLink(NamedTuple):
    """A place where the value of a secret may begin, and how its name leads there."""

    sign: str
    """`:`, `is` for a copula, or empty."""
    start: int
    """Start of the value."""
    apart: bool
    """Whether other words separate the name from its value."""


@cache
def _compile_names_pattern(hint: str) -> re.Pattern[str]:
    """Return a pattern of all secret names that contain `hint`, with a group per kind of value.

    It is compiled on first use: all of them together would delay every start.
    """
    groups = [_MASKED]
    for label, table in LABELS.items():
        all_names = chain.from_iterable(table.values())
        names = "|".join(name for name in all_names if hint in name)
        if names:
            names = names.replace(" ", "[ _-]")
            groups.append(f"(?P<{label}>{names})")
    return re.compile("|".join(groups))


_MASKED = r"(?P<MASK>\[secret:\w{1,20}\])"
_SUFFIX = re.compile(r"(?:s\b|_\w{1,30})?")
_LONGER = re.compile(r"[a-z]|[./#]\w")
"""Matches after a name that is only part of a longer word or of a path."""
_BOUNDED = frozenset("pass code combination login_code seed answer login id".split())
"""Labels whose names must begin a word: "shopping" has "pin", "encode" has "code"."""
_COLON_ONLY = ("pass", "psk")
"""Names that are ordinary words unless a colon follows. Scripts without spaces need a colon, too."""
_ROMANCE = (
    "mot de passe", "mdp", "contrase", "senha", "phrase", "frase", "cl", "parola",
)  # fmt: skip
"""Names that a noun or adjective may follow: "mot de passe NETFLIX"."""
_COLON = compile_on_use(
    r"[\"'`”»)\]]{0,2}\s{0,3}(?::=|=>|->|[:=：＝→]|(?:は|是|为|為|가|는|은)(?:[:：]|(?=[!-~「『“]))"
    r"|(?:は|是|为|為|가|는|은|(?:已经?)?(?:改成|改为|换成|变成|设为)了?|を)\s?(?=[!-~]*\d|[「『“]))"
    r"\s{0,3}"
)
_COLONS = ("=", ":", "：", "->", "=>")
_ENDS = (".", "!", "?", ";", '"', '",', "',", ")")
TOKEN = re.compile(r"\S{1,100}")
_SPACE = re.compile(r"[^\S\n]{0,3}")
_PREPOSITIONS = words_in_tables("prepositions")
_AMBIGUOUS_COPULAS = frozenset(_TABLES["ambiguous_copulas"])
_KEYWORDS = tuple(_TABLES["keywords"])
_ELIDED = ("d'", "l'", "dell'", "all'", "nell'", "d’", "l’", "dell’", "all’")


def find_names(text: str) -> Iterator[SecretName]:
    """Yield each name of a secret in a text, such as "password" or "API key", in order."""
    low = text.lower()
    if len(low) != len(text):
        # A letter whose lower case is two letters stays, so that positions agree.
        low = "".join(char if len(char.lower()) > 1 else char.lower() for char in text)
    for hint, start, stop in _find_name_windows(low):
        for match in _compile_names_pattern(hint).finditer(low, start, stop):
            begin, label = match.start(), match.lastgroup or ""
            suffix = _SUFFIX.match(low, match.end())
            end = suffix.end() if suffix else match.end()
            # In a longer word or a term such as "mot clé", a name is none.
            if label == "MASK" or _LONGER.match(low, end):
                continue
            before = low[max(0, begin - 1) : begin]
            within_word = before.isalnum() and not has_unspaced_script(before)
            if low.endswith(_KEYWORDS, 0, begin) or (within_word and label in _BOUNDED):
                continue
            yield SecretName(text, low, match[0], label, begin, end)


def _find_name_windows(low: str) -> Iterator[tuple[str, int, int]]:
    """Yield (hint, start, end) of parts of a lower-case text that may contain names of secrets.

    Every name contains a hint, such as "passw". Overlapping parts are joined; for a part with several
    hints, the hint is empty. A search for hints takes much less time than a pattern of all names.
    """
    hints = HINTS if low.isascii() else HINTS + HINTS_BEYOND_ASCII
    if " / " in low:
        hints += HINTS_OF_LOGINS
    present = [hint for hint in hints if hint in low]  # in half of the time of `find`
    hits = []
    for hint in present:
        position = low.find(hint)
        while position >= 0:
            hits.append((position, hint))
            position = low.find(hint, position + 1)
    if not hits:
        return
    hits.sort()
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


def find_value_links(name: SecretName) -> Iterator[ValueLink]:
    """Yield the places after a name where its secret value may begin, the likeliest first."""
    text, end = name.text, name.end
    if colon := _COLON.match(text, end):
        yield ValueLink(":", colon.end(), apart=False)
        return
    mark = text[end : end + 1]
    is_quoted = mark and mark in CLOSING_QUOTES and text[name.start - 1] == mark
    if name.word not in _COLON_ONLY and name.in_spaced_script and not is_quoted:
        yield from _find_distant_links(name)


def _find_distant_links(name: SecretName) -> Iterator[ValueLink]:
    """Yield the places where a value may begin among the words after a secret's name."""
    text = name.text
    start = name.end + text.startswith(",", name.end)
    limit = min(name.end + WINDOW_CHARS, len(text))
    newline = text.find("\n", name.end, limit)
    limit = newline if newline >= 0 else limit
    inside = False
    for token in islice(TOKEN.finditer(text, start, limit), WORDS_BETWEEN):
        raw, adjacent = token[0], token.start() == start
        word = name.low[token.start() : token.end()].strip(EDGES)
        if raw in ("'s", "’s") or (word in COPULAS and not adjacent):
            value_start = skip_words(name.low, token.end(), limit, ADVERBS)
            sign = "" if word in _AMBIGUOUS_COPULAS else "is"
            yield ValueLink(sign, value_start, apart=inside)
            inside = True
            continue
        if raw in _COLONS or (word and raw[-1] in ":："):
            space = _SPACE.match(text, token.end())
            yield ValueLink(":", space.end() if space else token.end(), apart=True)
            return
        ends_clause = word and raw.endswith(_ENDS)
        if inside or word in ADVERBS:
            if ends_clause:
                return
            continue
        inside = True
        # An attribute may follow: "the password OF the router".
        if raw[0] == "(" or word in _PREPOSITIONS or word.startswith(_ELIDED):
            continue
        if not adjacent:
            yield ValueLink("", token.start(), apart=False)
        if ends_clause or not name.word.startswith(_ROMANCE):
            return


def skip_words(low: str, start: int, limit: int, words: frozenset[str]) -> int:
    """Return the position of the first word from `start` on that is not in `words`, or `limit`."""
    for token in TOKEN.finditer(low, start, limit):
        if token[0].strip(",") not in words:
            return token.start()
    return limit


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
KEY_CHARS_MIN = 8
UNLINKED_KEY_CHARS_MIN = 10
BARE_KEY_CHARS_MIN = 16
"""Minimum length of a value after "key" alone, a word with many meanings."""
FRUITLESS_MAX, CHARS_PER_NAME = 200, 16
"""Names without a value after which the search in a text ends, as each takes 25 µs; more in a long text."""
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

CLOSING = ".,;:)]}>\"'`“”’»」』。、，"
"""Marks that end a value without being part of it. `!` and `?` may be its last character."""
_QUOTES = {
    '"': '"', "'": "'", "`": "`", "“": "”", "„": "“”", "‘": "’", "«": "»", "「": "」", "『": "』",
}  # fmt: skip
_OPENING = "\"'`“”„‘’«<(「『"
_VALUE_ENDS = ".,;:!?)]}>\"'`“”’»」』。、，\n "
SIGNS = "!#$%&*+@^~?_=|\\"
_UNIT = "年月日号號時时分秒桁位個个回次件人円元년월일시분초자번개"
"""Units of scripts without spaces: `2026年` is no code."""

_PATTERNS = read_patterns(__file__, "values.toml", unspaced=UNSPACED, word_end=WORD_END)
_NEXT, _WORDS, _NAMED, _BEARER, _KEY, _NEXT_CODE, _SEED, _AFTER_SLASH, _IDENTITY = (
    compile_on_use(_PATTERNS[name])
    for name in "next words named bearer key next_code seed after_slash identity".split()
)
_UNLIKELY = compile_on_use(_PATTERNS["unlikely"], re.DOTALL)
_CODE, _GROUPS, _LOGIN_CODE = (
    # A code does not go on as a word, or with a unit such as `年`.
    compile_on_use(end_words_at_unspaced(pattern, end=f"{WORD_END}(?![{_UNIT}])"))
    for pattern in map(_PATTERNS.__getitem__, ("code", "groups", "login_code"))
)
_RUN = compile_on_use(rf"\S{{1,{JUDGED_CHARS}}}")
_REST = compile_on_use(rf"\S{{0,{VALUE_CHARS_MAX}}}")
_DIGIT = re.compile(r"\d")
_LETTER = re.compile(r"[^\W\d_]")
_SPLIT = re.compile(r"[_.:/=-]+")
_MIXED = re.compile(r"(?=.*\d)(?=.*[a-z])(?=.*[A-Z]).{8}")
_CITED = re.compile(
    r"[a-z]+(?:19|20)\d\d[a-z]*"
)  # in a bibliography: `knuth1984literate`
_EDGE_RUN = re.compile(f"[{re.escape(EDGES)}]*")

_AND_NOW, _AS, _DETERMINERS, _CLAUSE = map(
    words_in_tables, ("and_now", "as", "determiners", "clause")
)
_CHANGES = ADVERBS | COPULAS
_LATER = _CHANGES | _AND_NOW
_NO_PHRASE = PROSE | NO_PASSWORDS


class SecretCandidate(NamedTuple):
    """A text that may be a secret's value, its position, and whether it is in quotation marks."""

    text: str
    start: int
    quoted: bool = False

    @property
    def stop(self) -> int:
        """The position after the value."""
        return self.start + len(self.text)


def read_candidate(text: str, start: int) -> SecretCandidate | None:
    """Return the quotation at `start`, or else the unquoted value there; None if it is empty.

    An unquoted value ends at a space, at another script, before the next of several settings, or
    after `JUDGED_CHARS`. Punctuation around the value is left out.
    """
    line = text[start + 1 : start + 1 + JUDGED_CHARS].partition("\n")[0]
    ends = [line.find(mark) for mark in _QUOTES.get(text[start : start + 1], "")]
    if end := min((end for end in ends if end > 0), default=0):
        inside = line[:end].lstrip()
        begin = start + 1 + end - len(inside)
        return SecretCandidate(inside.rstrip(), begin, quoted=True)
    run = _RUN.match(text, start)
    if run is None:
        return None
    quotes = min(len(run[0]) - len(run[0].lstrip(_OPENING)), QUOTES_MAX)
    words = run[0][quotes:]
    following = _NEXT.search(words, 1)
    if following:
        words = words[: following.start()]
    if following or run.end() < start + JUDGED_CHARS:
        words = words.rstrip(CLOSING)
    return SecretCandidate(words, start + quotes) if words else None


def may_be_password(value: str) -> bool:
    """Return False if a value cannot be a password: under four characters, a placeholder, address or date."""
    blank = not value.strip("*•.xX-_")
    if blank or len(value) < PASSWORD_CHARS_MIN:
        return False
    if value.lower().rstrip("!?") in NO_PASSWORDS:
        return False
    return not _UNLIKELY.fullmatch(value)


def looks_like_password(value: str, *, signs: str = SIGNS) -> bool:
    """Return True if a value mixes letters with digits or `signs`, as no word does."""
    inside = value.rstrip("!?")
    if not _LETTER.search(inside):
        return False
    return bool(_DIGIT.search(inside)) or not set(signs).isdisjoint(inside)


def looks_random(value: str, chars_min: int) -> bool:
    """Return True if a value of at least `chars_min` characters mixes letters and digits at random."""
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


def find_by_name(text: str) -> Iterator[Secret]:
    """Yield the secrets in a text that follow or precede a name such as "password", in order.

    The search stops after `FRUITLESS_MAX` names without a value, or more in a long text.
    """
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
    """Yield the password after or before a name; and the new password if the sentence changes it."""
    text = name.text
    if change := _find_changed_passwords(name):
        yield from (_make_password(text, value) for value in change)
        return
    is_phrase = name.label == "phrase"
    for link in islice(find_value_links(name), LINKS_MAX):
        value = None
        if name.label != "pass" and (link.sign if is_phrase else link.sign == ":"):
            value = _read_passphrase(text, link.start, named=is_phrase)
        value = value or read_candidate(text, link.start)
        if value and _is_password(text, value, link, short=name.label == "pass"):
            secret = _make_password(text, value)
            yield secret
            yield from _find_successors(name, secret.stop)
            return
    if earlier := _keep_if_strong(_find_value_before(name)):
        yield _make_password(text, earlier)


def _make_password(text: str, value: SecretCandidate) -> Secret:
    """Return a candidate as a password; if the candidate was cut at the limit, extend it to a space."""
    stop = value.stop
    is_cut = len(value.text) >= JUDGED_CHARS - QUOTES_MAX and not value.quoted
    if is_cut and (remainder := _REST.match(text, stop)):
        whole = text[value.start : remainder.end()].rstrip(CLOSING)
        stop = value.start + len(whole)
    return Secret(DetailKind.PASSWORD, value.start, stop)


def _keep_if_strong(value: SecretCandidate | None) -> SecretCandidate | None:
    """Return a candidate that looks like a password by itself, else None."""
    if value is None or not may_be_password(value.text):
        return None
    return value if looks_like_password(value.text) else None


def _read_passphrase(text: str, start: int, *, named: bool) -> SecretCandidate | None:
    """Return the words from `start` if likely a passphrase, else None.

    `named` says that the text calls them a passphrase, and not only a password.
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
    return SecretCandidate(match[0], start) if plausible else None


def _is_password(
    text: str, value: SecretCandidate, link: ValueLink, *, short: bool
) -> bool:
    """Return True if a value after a name is a password.

    With `short`, the name is only "pass": then a number or a plain word is not a password.
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
    """Return True if a number or plain word is a password by its place: "password: sesame"."""
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
    low, end = name.low, name.end
    start = skip_words(low, end, min(end + WINDOW_CHARS, len(low)), _CHANGES)
    limit = min(start + WINDOW_CHARS, len(low))
    tokens = list(islice(TOKEN.finditer(low, start, limit), 4))
    if len(tokens) < 4 or not name.in_spaced_script:
        return None
    opening, old, to, new = tokens
    if to[0] not in FROM_TO.get(opening[0], ()):
        return None
    before = read_candidate(name.text, old.start())
    after = read_candidate(name.text, new.start())
    is_strong = _keep_if_strong(before) or _keep_if_strong(after)
    return (before, after) if before and after and is_strong else None


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
        yield _make_password(text, value)
        stop = value.stop


def _find_value_before(name: SecretName) -> SecretCandidate | None:
    """Return the value of "use X as the password" or "X is my password"; None for other text."""
    if not name.in_spaced_script:
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
    """Yield the API key, token or other random value that follows or precedes a name."""
    text = name.text
    kind = DetailKind.TOKEN if name.label == "token" else DetailKind.API_KEY
    before = max(0, name.start - 16)
    # Without a word before it that says what it opens, "key" needs a colon or copula next to it.
    bare = name.label == "key" and not _NAMED.search(name.low, before, name.start)
    for link in islice(find_value_links(name), LINKS_MAX):
        if bare and (link.apart or not link.sign):
            return
        value = read_candidate(text, link.start)
        if value is None:
            continue
        chars_min = BARE_KEY_CHARS_MIN if bare else KEY_CHARS_MIN
        chars_min = chars_min if link.sign else max(chars_min, UNLINKED_KEY_CHARS_MIN)
        if not value.quoted or " " in value.text:
            key = _KEY.match(text, value.start)
            value = SecretCandidate(key[0].rstrip(".") if key else "", value.start)
        if looks_random(value.text, chars_min):
            if not (bare and _CITED.fullmatch(value.text)):
                yield Secret(kind, value.start, value.stop)
            return
    earlier = None if bare else _find_value_before(name)
    if earlier and looks_random(earlier.text, KEY_CHARS_MIN):
        yield Secret(kind, earlier.start, earlier.stop)


def _find_bearer_tokens(name: SecretName) -> Iterator[Secret]:
    """Yield the token after "Bearer" in an HTTP header."""
    if value := _BEARER.match(name.text, name.end):
        yield Secret(DetailKind.TOKEN, *value.span("value"))


def _find_codes(name: SecretName) -> Iterator[Secret]:
    """Yield a PIN, a door code or the combination of a lock after its name."""
    patterns: tuple[re.Pattern[str], ...] = (_GROUPS, _CODE)
    of_card = name.word.startswith(("cv", "pr", "cr", "kart"))
    digits_min = CHECK_DIGITS if of_card else CODE_DIGITS_MIN
    if name.label == "combination":
        patterns, digits_min = (_GROUPS,), 0
    for link in find_value_links(name):
        for pattern in patterns:
            value = pattern.match(name.text, link.start)
            if value and sum(map(str.isdigit, value[0])) >= digits_min:
                yield Secret(DetailKind.ACCESS_CODE, *value.span())
                return


def _find_identity_numbers(name: SecretName) -> Iterator[Secret]:
    """Yield the number of a person after its name; digits alone must follow with no words between."""
    for link in find_value_links(name):
        value = _IDENTITY.match(name.text, link.start)
        if value and (value["letters"] or not link.apart):
            yield Secret(DetailKind.SSN, *value.span())
            return


def _find_login_codes(name: SecretName) -> Iterator[Secret]:
    """Yield one-time codes or recovery codes after their name, up to `CODES_MAX` in a list."""
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
    """Yield the seed phrase of a wallet after its name: 12 to 24 words, a multiple of three."""
    run = _SEED.match(name.text, name.end)
    words = run["words"].split(" ") if run else []
    if run and PROSE.isdisjoint(words):
        start = run.start("words")
        size = len(" ".join(words[: len(words) // 3 * 3]))
        yield Secret(DetailKind.SEED_PHRASE, start, start + size)


def _find_answers(name: SecretName) -> Iterator[Secret]:
    """Yield the answer to a security question after the word "answer"."""
    around = name.low[max(0, name.start - 60) : name.end + 40]
    if name.word == "answer" and "security" not in around:
        return
    for link in find_value_links(name):
        value = read_candidate(name.text, link.start) if link.sign else None
        if value is None or value.text.lower() in PROSE:
            continue
        if may_be_password(value.text):
            yield _make_password(name.text, value)
            return


def _find_logins(name: SecretName) -> Iterator[Secret]:
    """Yield the password after the slash in "credentials: user / password", or in "login user / Pass-1"."""
    text = name.text
    for link in find_value_links(name):
        slash = _AFTER_SLASH.match(text, link.start)
        value = _keep_if_strong(read_candidate(text, slash.end())) if slash else None
        if not slash or value is None:
            continue
        # Without a colon, prose may have "login page / step2".
        is_likely = len(slash[0].split()) == 2 and _MIXED.match(value.text)
        if link.sign == ":" or is_likely:
            yield _make_password(text, value)
            return


_RULES: dict[str, Callable[[SecretName], Iterator[Secret]]] = {
    **dict.fromkeys(("password", "phrase", "pass"), _find_passwords),
    **dict.fromkeys(("code", "combination"), _find_codes),
    **dict.fromkeys(("key", "named_key", "token"), _find_keys),
    "login_code": _find_login_codes,
    "id": _find_identity_numbers,
    "seed": _find_seed_phrases,
    "answer": _find_answers,
    "login": _find_logins,
    "bearer": _find_bearer_tokens,
}
"""The function that finds the value of a name, by the label of the name."""
