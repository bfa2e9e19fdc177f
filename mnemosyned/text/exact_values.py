"""Extracts the exact values of a text, such as dates, numbers and addresses, and its secrets.

One pattern reads the text in one pass: it skips runs of plain words, and the digits of a URL, an
e-mail address or a date are not numbers of their own. All repetitions are bounded, so that the
time is linear in the text. A chain of parts is matched as a whole, by a lookahead and a
backreference to its group: Python before 3.11.6 matches possessive repetitions and atomic groups
wrongly.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator

from mnemosyned.text.details import Detail, DetailKind
from mnemosyned.text.languages.tables import LANGUAGES
from mnemosyned.text.secrets.masking import find_secrets
from mnemosyned.text.sentences import UNSPACED, end_words_at_unspaced

VALUE_CHARS_MAX = 2_000
DETAILS_MAX = 500
"""Values kept of one memory; more make it a table, whose words the archive keeps anyway."""


_LATIN = "A-Za-zÀ-ÖØ-öø-ɏ"
_MONTHS_OF_LANGUAGES = [
    months.title() if language.months_capitalized else months
    for language in LANGUAGES
    for months in (" ".join(language.months),)
]
"""The names of months as each language writes them within a sentence."""
_MONTHS = f"(?:{'|'.join(' '.join(_MONTHS_OF_LANGUAGES).split())})"
_NUMBER = r"\d{1,400}(?:[.,]\d{1,400}|[\u00a0\u202f']\d{3}(?!\d)){0,20}"
_UNITS = (
    r"[  ]?(?:ms|µs|ns|secs?|mins?)\b|[  ]?(?:s|h)\b|[smhdw]\b"
    r"|[  -](?:seconds?|minutes?|hours?|days?|weeks?|months?|years?"
    r"|Sekunden?|Minuten?|Stunden?|Tagen?|Tage?|Wochen?|Monaten?|Monate?|Jahren?|Jahre?"
    r"|secondes?|heures?|jours?|semaines?|mois|ans?|segundos?|minutos?|horas?|días?|semanas?"
    r"|mes(?:es)?|años?)\b|(?:秒|分間?|時間|小时|分钟|日間|天|週間|ヶ月|か月|年間)"
)
_CURRENCY = (
    r"[  ]?(?:[$€£¥₹₩]|(?:EUR|USD|GBP|CHF|JPY|CNY|INR|SEK|NOK|DKK|PLN|CZK|BRL|KRW)\b"
    r"|(?:[Ee]uros?|[Dd]ollars?|pounds|francs|Franken|dólares|pesos)\b|万?円|万?元)"
)
_DATE = (
    r"\d{4}-\d\d-\d\d(?!\d)(?:T\d\d:?\d\d(?::?\d\d(?:[.,]\d{1,9})?)?(?:Z|[+-]\d\d:?\d\d)?)?"
    r"|\d{4}/\d\d?/\d\d?(?![\d/])|\d\d?(?P<_>[./])\d\d?(?P=_)\d{4}(?!\d)"
    rf"|\d\d?(?:\.|st|nd|rd|th|er|º)?(?: of| de)? {_MONTHS}\b(?:[.,]?(?: de)? \d{{4}}(?!\d))?"
    r"|\d{4}年(?:\d\d?月(?:\d\d?日)?)?|\d\d?月\d\d?日"
)
_MONTH_FIRST = (
    rf"{_MONTHS}\.? (?:\d\d?(?:st|nd|rd|th)?(?![\d:.])(?:, ?\d{{4}}(?!\d)| \d{{4}}(?!\d))?"
    r"|\d{4}(?!\d))"
)
_EMAIL = rf"[{_LATIN}0-9._%+-]{{1,64}}@[{_LATIN}0-9-]{{1,63}}(?:\.[{_LATIN}0-9-]{{1,63}}){{1,8}}"
_URL = r"(?:[A-Za-z][A-Za-z0-9+.-]{1,15}://|www\.)[^\s<>\"“”「」『』。、，（）]{1,2000}"
_FILE = r"[\w.@-]{1,100}/(?=(?P<%s>(?:[\w.@-]{1,100}/){0,30}))(?P=%s)[\w@-]{1,100}\.[A-Za-z]\w{0,9}"
_FROM_LETTER = (
    rf"(?P<url>{_URL})|(?P<email>{_EMAIL})|(?P<date>{_MONTH_FIRST})"
    r"|(?P<version>v(?=(?P<_v>\d{1,9}(?:\.\d{1,9}){0,8}))(?P=_v)(?:-[A-Za-z][\w.]{0,40})?(?![\w-]))"
    rf"|(?P<_code>(?:EUR|USD|GBP|CHF) {_NUMBER})"
    rf"|(?P<path>{_FILE % ('_f', '_f')}|[A-Za-z]:\\[^\s\"<>|]{{1,400}})"
    r"|(?P<_sha>(?=[a-f]{1,40}\d|sha\d|md5)(?:sha\d{1,3}:|md5:)?[0-9a-f]{7,128}(?!\w))"
    rf"|(?P<identifier>(?:[{_LATIN}_]\w{{0,60}}(?=(?P<_c>(?:(?:::|->)\w{{1,60}}){{1,10}}))(?P=_c)(?:\(\))?"
    r"|[a-z_][a-z0-9_]{0,60}\.(?=(?P<_m>[a-z_][a-z0-9_]{1,60}(?:\.[a-z_][a-z0-9_]{1,60}){0,9}))(?P=_m)(?:\(\))?"
    r"|[A-Za-z_]\w{0,60}\(\)"
    rf"|[{_LATIN}]{{0,60}}_\w+|[a-z]{{1,40}}[A-Z]\w+"
    rf"|[{_LATIN}_-]{{1,40}}\d(?=(?P<_n>[{_LATIN}0-9_]{{0,60}}"
    rf"(?:-[{_LATIN}0-9_]{{1,60}}){{0,10}}))(?P=_n))(?!\w))"
)
_FROM_DIGIT = (
    # In a table of numbers most are followed by another: nothing else begins so.
    r"(?P<_plain>\d{1,400}(?=[ \t\n]\d))"
    rf"|(?P<_date>{_DATE})|(?P<_email>{_EMAIL})"
    r"|(?P<_id>[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}(?!\w)"
    r"|(?:\d{1,3}\.){3}\d{1,3}(?:[:/]\d{1,5})?(?![\w.]))"
    r"|(?P<hash>(?=\d{1,64}[a-f])[0-9a-f]{7,128}(?!\w))"
    r"|(?P<time>\d\d?:\d\d(?::\d\d(?:[.,]\d{1,9})?)?(?![\d:])(?: ?[ap]m\b)?|\d\d? ?[ap]m\b)"
    r"|(?P<_version>(?!\d{1,3}(?:\.\d{3}){2,8}(?!\d))\d{1,9}(?:\.\d{1,9}){2,8}"
    r"(?:[-+]?[A-Za-z][\w.+-]{0,40})?|\d{1,4}\.\d{1,4}(?:a|b|rc|-alpha|-beta|-rc)\.?\d{1,4})"
    rf"|(?P<_path>{_FILE % ('_g', '_g')})"
    r"|(?P<_mixed>\d{1,40}(?!(?:st|nd|rd|th|[A-Za-zµ]{1,4})(?!\w))[A-Za-z][A-Za-z0-9_-]{1,60})"
)
_VALUES = (
    # Runs of plain words, up to one that may open "March 17" or "CHF 20".
    rf"(?:(?![JFMASOND][aeäpuco]|[EUGC][USBH][RDPF] )[{_LATIN}]+[,.;:!?)\"'’]{{0,4}}\s\s*)*(?:"
    rf"(?=[{_LATIN}_])(?:{_FROM_LETTER})|(?=\d)(?:{_FROM_DIGIT})"
    rf"|(?P<_sum>[$€£¥₹₩][  ]?{_NUMBER}(?:[kKmMbB]n?\b)?)"
    # After a script without spaces, a slash may also part two words.
    rf"|(?<![/)])(?:(?<!\w)|(?<=[{UNSPACED}])(?=[~.]{{0,2}}/[!-.0-~]{{1,255}}/))"
    r"(?P<_root>(?:~|\.{1,2})?/[\w.@+-]{1,255}(?:/[\w.@+-]{0,255}){0,60})"
    r"|(?P<_flag>--[a-z][\w-]{0,60}(?:=[^\s,;]{1,100})?)"
    rf"|(?P<number>(?:(?<![\w)\]-])[-+−±])?{_NUMBER})"
    rf"(?:(?P<duration>{_UNITS})|(?P<money>{_CURRENCY})"
    r"|(?P<_more>[  ]?%|[  ]?°[CF]?|(?:st|nd|rd|th)\b|[A-Za-zµ]{1,4}\b"
    r"|[  ](?:[KMGTPk]i?[Bb]|kWh?|[kMG]Hz|kg|km|cm|mm)\b))?"
    # Else the rest of a run of letters, or of anything.
    rf"|(?:[{_LATIN}]+|[^\W\d_{_LATIN}]+|[\s,;:!?()\[\]\"'“”‘’]+|.|\Z))"
)
_SCAN = re.compile(end_words_at_unspaced(_VALUES), re.DOTALL)
_KINDS = {
    **{kind.value: kind for kind in DetailKind},
    "_code": DetailKind.MONEY,
    "_sha": DetailKind.HASH,
    "_date": DetailKind.DATE,
    "_email": DetailKind.EMAIL,
    "_id": DetailKind.IDENTIFIER,
    "_version": DetailKind.VERSION,
    "_path": DetailKind.PATH,
    "_mixed": DetailKind.IDENTIFIER,
    "_plain": DetailKind.NUMBER,
    "_sum": DetailKind.MONEY,
    "_root": DetailKind.PATH,
    "_flag": DetailKind.IDENTIFIER,
    "_more": DetailKind.NUMBER,
}
"""The kind of each group of the pattern; two groups may be of one kind."""
_OPENED_BY_NUMBER = frozenset({"duration", "money", "_more"})
_TRIMMED = frozenset({"url", "email", "_email", "path", "_root", "_path", "_flag"})
_TRAILING = ".,;:!?)]}>'\"*`"
_WITH_TAIL = frozenset(
    {
        DetailKind.URL,
        DetailKind.EMAIL,
        DetailKind.PATH,
        DetailKind.IDENTIFIER,
        DetailKind.VERSION,
    }
)
_GLUED_TAIL = re.compile(rf"((?:^|[/\\])[!-.0-~]*[A-Za-z0-9)])[{UNSPACED}]+$")
"""The rest of a sentence after a value without spaces, as in `main.pyを`."""


def extract_details(text: str, *, memory: str = "") -> tuple[Detail, ...]:
    """Return the secrets and then the exact values of a text, each kind and value once, in order.

    `memory` is the id to set in each detail.
    """
    secrets = find_secrets(text)[:DETAILS_MAX]
    details: dict[tuple[DetailKind, str], Detail] = {}
    for kind, start, stop in secrets:
        value = text[start:stop]
        details[kind, value] = Detail(kind, value, sensitive=True, memory=memory)
    starts = [secret.start for secret in secrets]
    for kind, start, value in _find_exact_values(text):
        if len(details) >= DETAILS_MAX:
            break
        if (kind, value) in details:
            continue
        stop = start + len(value)
        nearby = secrets[
            max(0, bisect_right(starts, start) - 1) : bisect_left(starts, stop)
        ]
        overlapping = [secret for secret in nearby if start < secret.stop]
        # A value within a secret, or across its border, is no value of its own.
        if all(start < secret.start and secret.stop <= stop for secret in overlapping):
            details[kind, value] = Detail(
                kind, value, sensitive=bool(overlapping), memory=memory
            )
    return tuple(details.values())


def _find_exact_values(text: str) -> Iterator[tuple[DetailKind, int, str]]:
    """Yield the kind, start and text of each exact value that the pattern finds."""
    for match in _SCAN.finditer(text):
        group = match.lastgroup
        if group is None:
            continue
        start = match.start("number" if group in _OPENED_BY_NUMBER else group)
        value = text[start : match.end()]
        if group in _TRIMMED:
            value = value.rstrip(_TRAILING)
        kind = _KINDS[group]
        if kind in _WITH_TAIL and not value.isascii():
            value = _GLUED_TAIL.sub(r"\1", value)
        if len(value) <= VALUE_CHARS_MAX:
            yield kind, start, value
