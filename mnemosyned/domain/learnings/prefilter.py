"""Prefilter of the learning rules: a text without one of these words cannot match a rule.

Each language has its own hints; a rule matches only where one of its language occurs, which a
test proves for every rule. A new rule may need a new hint.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from functools import cache
from typing import NamedTuple

from mnemosyned.domain.learnings.passing.languages import PASSING_LANGUAGES

REQUEST = "request"
"""Key among the languages for the hints of lasting requests, whatever their language."""

_HINTS = {
    "english": (
        "always|never|do not|don't|no |remember|prefer|favourite|favorit|rather|default|avoid |"
        "call me|address me|refer to me|my name|go by|in mind|pronouns|allerg|vegan|vegetarian|"
        "appreciate it| hate |can't stand|like it |you to only|only |every time|each time|"
        "any time|anytime|when i |if i |like my|like all|like your|want my|want all|want your|"
        "take my|take all|take your|you write|you send|you make|you produce|going forward|"
        "henceforth|future|from now on|from here on|from today on|from this point|starting now|"
        "starting today|as a rule|stop |you propose|you suggest|you recommend|you explain|with each |"
        "with every |when something|when anything|when we |whenever"
    ),
    "german": (
        "immer|stets|ab jetzt|ab heute|ab sofort|in zukunft|künftig|von nun an|von jetzt an|"
        "grundsätzlich| mehr|nur noch|nie|hör|duz|siez|fortan|nenn|ich heisse|mein name|merk|denk|"
        "vergiss|lieblings|bevorzug|am liebsten|lieber|gern|ziehe |mag es|allerg"
    ),
    "french": (
        "jamais|plus|toujours|appelle|appelez|m'appel|nom est|souviens|souvenez|n'oubli|retiens|"
        "préf|j'aime|n'aime|cesse|arrête|chaque fois|à partir d|dorénavant|désormais|à l'avenir|"
        "allerg"
    ),
    "spanish": (
        "no |nunca|jamás|siempre|llámame|llámeme|llamarme|me llamo|mi nombre|recuerda|acuérdate|"
        "ten en cuenta|prefiero|preferi|me gusta|favorit|cada vez|a partir de|desde ahora|futuro|"
        "en adelante|deja |deje |para de|para ya|alérgic"
    ),
    "italian": (
        "chiamami|chiamarmi|mi chiamo|mio nome|ricorda|preferi|mi piace|allerg|non |sempre|"
        "ogni volta|ora in|adesso in|futuro|smett|basta con"
    ),
    "portuguese": (
        "chame|chama|chamo|meu |lembr|não |prefiro|preferi|gosto|alérgic|nunca|jamais|sempre|"
        "a partir de|agora em|hoje em|daqui p|futuro|pare de|para de|deixe de|deixa de"
    ),
    "russian": (
        "называй|зови|зовут|имя|помни|имей в виду|учти|аллерги|предпоч|нравится|всегда|никогда|"
        "больше не|этого момента|отныне|впредь|в будущем|сегодняшнего|теперь|перестань|прекрати|"
        "хватит|каждый раз"
    ),
    "chinese": (
        "叫|称呼我|名字|记住|忘|过敏|喜欢|偏好|倾向|希望|始终|总是|一直|永远|每次|务必|一律|绝对|"
        "千万|以后|今后|再|从现在|从今|每当|只要"
    ),
    "japanese": (
        "呼んで|名前は|覚えて|忘|ほうが|方が|常に|いつも|必ず|毎回|絶対|二度と|決して|これから|"
        "今後|以後|以降|もう"
    ),
    "korean": (
        "불러|이름은|선호|더 좋아|기억해|알아|항상|언제나|절대|앞으로|이제부터|다시는|매번"
    ),
    REQUEST: (
        "always|never|stop |default|going forward|henceforth|future|from now on|from here on|"
        "from today on|from this point|starting now|starting today|as a rule|immer|nie|ab jetzt|"
        "künftig|in zukunft|toujours|jamais|plus|siempre|dejar de|no "
    ),
}

PASSING = " in passing"
"""Ending of the keys of hints at preferences said in passing."""
_HINTS |= {
    language + PASSING: table.hints for language, table in PASSING_LANGUAGES.items()
}


def passing_languages(keys: Collection[str]) -> frozenset[str]:
    """Return those languages whose rules of preferences in passing could match."""
    return frozenset(key.removesuffix(PASSING) for key in keys if key.endswith(PASSING))


class _Hints(NamedTuple):
    first: re.Pattern[str]
    """Finds one hint."""
    each: re.Pattern[str]
    """Finds every hint as its first group, also those that overlap, without its longer forms."""
    longer: dict[str, list[tuple[str, frozenset[str]]]]
    """Hints that begin with one that `each` finds, itself included, with their languages."""


def may_match_rule(text: str) -> bool:
    """Tell whether any rule could match in a text; for most texts this takes 8 µs."""
    low = _normalize(text)
    return _hints(low.isascii()).first.search(low) is not None


def candidate_languages(text: str) -> frozenset[str]:
    """Return the languages, or `REQUEST`, of which a rule could match within the text."""
    low = _normalize(text)
    hints = _hints(low.isascii())
    languages: set[str] = set()
    for beginning in set(hints.each.findall(low)):
        for hint, hinted in hints.longer[beginning]:
            if hint in low:
                languages |= hinted
    return frozenset(languages)


def _normalize(text: str) -> str:
    low = text.casefold()
    if low.isascii():
        return low
    # A rule takes these for the letters and marks that the hints are written with.
    return low.replace("’", "'").replace("ı", "i").replace("i\u0307", "i")


@cache
def _hints(ascii_only: bool) -> _Hints:  # noqa: FBT001 a cache knows no names
    """Return the hints that can occur in a text: an ASCII text needs only those in ASCII.

    A hint that begins with another is looked for where the shorter one occurs. One pattern that
    branches by letter takes a third of the time of one search per hint.
    """
    languages: dict[str, set[str]] = {}
    for language, table in _HINTS.items():
        for hint in table.split("|"):
            if hint.isascii() or not ascii_only:
                languages.setdefault(hint, set()).add(language)
    longer = {
        beginning: [(hint, frozenset(languages[hint])) for hint in hints]
        for beginning, hints in _by_beginning(languages).items()
    }
    pattern = _trie_pattern(list(longer))
    return _Hints(
        first=re.compile(pattern),
        each=re.compile(f"(?=({pattern}))"),
        longer=longer,
    )


def _by_beginning(hints: Iterable[str]) -> dict[str, list[str]]:
    """Return the hints of which no other is the beginning, in order, each with those it begins."""
    by_beginning: dict[str, list[str]] = {}
    beginning = None
    for hint in sorted(hints):  # what begins with a hint follows it
        if beginning is None or not hint.startswith(beginning):
            beginning = hint
        by_beginning.setdefault(beginning, []).append(hint)
    return by_beginning


def _trie_pattern(words: list[str]) -> str:
    """Return a pattern of these sorted words, none of which begins with another."""
    by_letter: dict[str, list[str]] = {}
    for word in words:
        by_letter.setdefault(word[:1], []).append(word[1:])
    branches = [
        re.escape(letter) + (_trie_pattern(endings) if endings != [""] else "")
        for letter, endings in by_letter.items()
    ]
    return branches[0] if len(branches) == 1 else f"(?:{'|'.join(branches)})"
