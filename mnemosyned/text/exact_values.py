"""Extracts the exact values of a text, such as dates, numbers and addresses, and its secrets.

One pattern reads the text in one pass: it skips runs of plain words, and the digits of a URL, an e-mail address
or a date are not numbers of their own. All repetitions are bounded, so that the time is linear in the text. A
chain of parts is matched as a whole, by a lookahead and a backreference to its group: Python before 3.11.6
matches possessive repetitions and atomic groups wrongly.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from functools import cache

from mnemosyned.text.details import SELF_EXPLANATORY_KINDS, Detail, DetailKind
from mnemosyned.text.languages.tables import LANGUAGES
from mnemosyned.text.rule_files import compile_on_use, read_patterns
from mnemosyned.text.secrets.masking import find_secrets
from mnemosyned.text.sentences import UNSPACED, end_words_at_unspaced

VALUE_CHARS_MAX = 2_000
DETAILS_MAX = 500
"""Number of values kept for one memory; a memory with more is a table, whose text the archive keeps anyway."""


_LATIN = "A-Za-zÀ-ÖØ-öø-ɏ"
_MONTHS_OF_LANGUAGES = [
    months.title() if language.months_capitalized else months
    for language in LANGUAGES
    for months in (" ".join(language.months),)
]
"""The names of months as each language writes them within a sentence."""
_MONTHS = f"(?:{'|'.join(' '.join(_MONTHS_OF_LANGUAGES).split())})"
_PATTERNS = read_patterns(
    __file__, "exact_values.toml", latin=_LATIN, months=_MONTHS, unspaced=UNSPACED
)
_SCAN = compile_on_use(end_words_at_unspaced(_PATTERNS["values"]), re.DOTALL)
_OPENED_BY_NUMBER = frozenset({"duration", "money", "_number"})
_TRIMMED = {"flag", "url", "email", "_email", "path", "_path", "path_"}
_TRAILING = ".,;:!?)]}>'\"*`"
_WITH_TAIL = SELF_EXPLANATORY_KINDS | {DetailKind.VERSION}
_GLUED_TAIL = compile_on_use(_PATTERNS["glued_tail"])
"""The rest of a sentence after a value without spaces, as in `main.pyを`."""


def extract_details(text: str, *, memory: str = "") -> tuple[Detail, ...]:
    """Return the secrets, then the exact values of a text, each once, in order, `DETAILS_MAX` at most.

    Values inside a secret are left out. `memory` is the id of the memory that the details belong to.
    """
    secrets = find_secrets(text)[:DETAILS_MAX]
    details: dict[tuple[DetailKind, str], Detail] = {}
    for kind, start, stop in secrets:
        value = text[start:stop]
        details[kind, value] = Detail(kind, value, sensitive=True, memory=memory)
    starts = [secret.start for secret in secrets]
    for match in _SCAN.finditer(text):
        group = match.lastgroup
        if group is None:
            continue
        start = match.start("number" if group in _OPENED_BY_NUMBER else group)
        value = text[start : match.end()]
        kind = _kind_of_group(group)
        if group in _TRIMMED:
            value = value.rstrip(_TRAILING)
        if kind in _WITH_TAIL and not value.isascii():
            value = _GLUED_TAIL.sub(r"\1", value)
        if len(details) >= DETAILS_MAX:
            break
        if len(value) > VALUE_CHARS_MAX or (kind, value) in details:
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


@cache
def _kind_of_group(group: str) -> DetailKind:
    """Return the kind of exact value that a named group of the pattern matches."""
    return DetailKind.IDENTIFIER if group == "flag" else DetailKind(group.strip("_"))
