"""Text for display: invisible characters are escaped or removed; width in terminal cells.

A memory may come from web pages and logs: its text may try to control a terminal, hide words,
reverse the order of letters, or break a line where a plain-text reader sees no break. East Asian
characters take two cells, combining marks none (Unicode Standard Annex #11, East Asian Width).
"""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from mnemosyned.text.sentences import UNSPACED, WORD_END, WORD_START

_CONTROLS = "\x00-\x08\x0b-\x1f\x7f-\x9f"
"""C0 without tab and line feed, DEL and C1."""
BREAKS = "\x0b\x0c\x1c-\x1e\x85\u2028\u2029"
"""Line breaks besides `\\n` and `\\r`, as `str.splitlines` knows them."""
_DIRECTIONS = "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"
_INVISIBLE = (
    "\u00ad\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u2028\u2029\u2060-\u2065\u206a-\u206f\u3164"
    "\ufeff\uffa0\ufff9-\ufffb\U000e0000-\U000e0fff"
)
"""Zero-width characters, separators, fillers, and the tags in which text can be smuggled."""
_SURROGATES = "\ud800-\udfff"
_UNSEEN = f"{_CONTROLS}{_DIRECTIONS}{_INVISIBLE}{_SURROGATES}"
_LONE_JOINER = "(?<![^\x00-\x7f])[\u200c\u200d]|[\u200c\u200d](?![^\x00-\x7f])"
"""Joiners next to ASCII; they belong between letters of some scripts and between emoji."""
_INVISIBLE_OR_JOINER = re.compile(f"[{_UNSEEN}]|{_LONE_JOINER}")
_ANY_UNSEEN = re.compile(f"[{_UNSEEN}]")
_LONE_JOINERS = re.compile(
    "(?<![^\x00-\x7f])[\u200c\u200d]+|[\u200c\u200d]+(?![^\x00-\x7f])"
)
"""Joiners at ASCII, removed after all other invisible characters, so that a second run finds none."""
_IN_JSON = re.compile(
    f"[\x7f-\x9f{_DIRECTIONS}{_INVISIBLE}{_SURROGATES}]|{_LONE_JOINER}"
)
_ANY_BREAK = re.compile(f"\r\n|[\r{BREAKS}]")
_CONTROL = re.compile(f"[{_CONTROLS}]")
_ASCII_BREAK = re.compile("\r\n|[\r\x0b\x0c\x1c-\x1e]")
_LINE_FEEDS = str.maketrans({"\n": r"\n", "\t": r"\t"})


def escape_invisible(text: str) -> str:
    r"""Return the text with invisible characters, except line feeds and tabs, as escapes such as `\x1b`.

    Both characters of a Windows line break become one line feed.
    """
    if text.isascii() and text.isprintable():  # fillers are printable
        return text
    return _INVISIBLE_OR_JOINER.sub(_python_escape, text.replace("\r\n", "\n"))


def escape_line(text: str) -> str:
    r"""Return the text with invisible characters, line feeds and tabs as escapes such as `\n`."""
    return escape_invisible(text).translate(_LINE_FEEDS)


def escape_invisible_json(text: str) -> str:
    r"""Return JSON text with invisible characters as `\u` escapes, so that its values stay the same."""
    if text.isascii() and "\x7f" not in text:
        return text
    return _IN_JSON.sub(_json_escape, text)


def strip_invisible(text: str) -> str:
    """Return a text for models: without invisible characters, and with line feeds as the only breaks."""
    if text.isascii():
        if not _CONTROL.search(text):
            return text
        return _CONTROL.sub("", _ASCII_BREAK.sub("\n", text))
    return _LONE_JOINERS.sub("", _ANY_UNSEEN.sub("", _ANY_BREAK.sub("\n", text)))


def _python_escape(match: re.Match[str]) -> str:
    r"""Return the matched character as a Python escape: `\x1b`, `\u200b` or `\U000e0041`."""
    code = ord(match[0])
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _json_escape(match: re.Match[str]) -> str:
    r"""Return the matched character as JSON escapes: one `\u` escape for each UTF-16 unit."""
    units = match[0].encode("utf-16-be", "surrogatepass").hex(" ", 2)
    return "".join(f"\\u{unit}" for unit in units.split())


_ZERO_WIDTH = frozenset({"Mn", "Me", "Cf"})
_DOUBLE_WIDTH = frozenset({"W", "F"})
_WORD = re.compile(r"(\s*)(\S+)")
_JOINER = "\u200d"
_EMOJI_STYLE = "\ufe0f"


def cell_count(text: str) -> int:
    """Return the number of terminal cells that a text takes on one line."""
    return len(text) if text.isascii() else sum(_cell_widths(text))


def _cell_widths(text: str) -> Iterator[int]:
    """Yield the terminal cells, 0 to 2, of each character; characters joined to an emoji take 0."""
    before = ""
    for character in text:
        if character.isascii():
            yield 1
        elif before == _JOINER:
            yield 0
        elif character == _EMOJI_STYLE:  # the character before is drawn as an emoji
            yield int(bool(before) and not _is_wide(before))
        elif unicodedata.category(character) in _ZERO_WIDTH:
            yield 0
        else:
            yield 2 if _is_wide(character) else 1
        before = character


def _is_wide(character: str) -> bool:
    """Return whether a character takes two terminal cells, as East Asian ones do."""
    return unicodedata.east_asian_width(character) in _DOUBLE_WIDTH


def chars_that_fit(text: str, cells: int) -> int:
    """Return how many characters from the start of a text fit into `cells` terminal cells."""
    if text.isascii():
        return min(cells, len(text))
    taken = 0
    for index, size in enumerate(_cell_widths(text)):
        taken += size
        if taken > cells:
            return index
    return len(text)


def wrap_cells(text: str, first: int, further: int) -> list[str]:
    """Return the lines of a paragraph: the first up to `first` cells wide, the others up to `further`.

    Lines break at spaces. Words longer than a line and East Asian text are broken where the line ends.
    """
    lines: list[str] = []
    line, room = "", first
    for blanks, word in _WORD.findall(text):
        gap = " " * len(blanks) if line else ""
        remainder = word
        while remainder:
            size = _count_chars_for_line(
                remainder, room - cell_count(line) - len(gap), further
            )
            if size:
                line += gap + remainder[:size]
                remainder = remainder[size:]
            if remainder:
                lines.append(line)
                line, room = "", further
            gap = ""
    return [*lines, line] if line or not lines else lines


def _count_chars_for_line(word: str, space: int, whole_line: int) -> int:
    """Return how many characters of a word to put on a line with `space` cells left.

    0 means to begin the word on the next line. `whole_line` is the width of an empty line in cells.
    """
    if space < 0:  # not even the blank before it fits
        return 0
    size = chars_that_fit(word, space)
    if size == len(word):
        return size
    is_breakable = cell_count(word) > whole_line or _is_wide(word[max(size - 1, 0)])
    if space >= whole_line:  # an empty line takes what it can, at least one character
        return max(size, 1)
    return size if is_breakable else 0


GRAM_CHARS = 2
"""Length of the pairs of characters that are matched in scripts without spaces."""
SHORT_CHARS = 4
"""Maximum length of words that match only with a common ending, as `tea` must not match `team`."""


def find_matching_words(
    text: str, matching: Sequence[str]
) -> Iterator[tuple[int, int]]:
    """Yield the start and the end of each word of a text that matches a query, for highlighting.

    `matching` are the words of the query. A word of the text matches if it is a query word, with or
    without an ending as in `_words_pattern`. Case and accents are ignored.
    """
    if matching:
        pattern = _words_pattern(map(_plain_lower, matching))
        for match in re.finditer(pattern, _plain_lower(text)):
            yield match.span()


def cut_before_match(text: str, matching: Sequence[str], *, room: int = 100) -> str:
    """Return a text, with `…` for the beginning if the first matching word is beyond `room` characters."""
    first, _ = next(find_matching_words(text, matching), (0, 0))
    if first <= room:
        return text
    return f"…{text[text.rfind(' ', 0, first - room // 2) + 1 or first :]}"


def _words_pattern(words: Iterable[str]) -> str:
    """Return a regular expression that matches any of some words, with or without an ending.

    A word of up to `SHORT_CHARS` letters may have a common English ending, and a longer word any ending of up
    to six letters. A word with digits or signs has no ending. A short word of a script without spaces matches
    anywhere in a text. The pattern has each class of letters once, as compiling a class takes milliseconds.
    """
    anywhere, of_ending = list[str](), defaultdict[str, list[str]](list)
    for word in words:
        if len(word) <= GRAM_CHARS and re.search(f"[{UNSPACED}]", word):
            anywhere.append(re.escape(word))
        elif not word.isalpha():
            of_ending[""].append(re.escape(word))
        elif len(word) <= SHORT_CHARS:
            of_ending[r"(?:s|e[sd]?|ing|y|ies)?"].append(re.escape(word))
        else:
            of_ending[f"[^\\W{UNSPACED}]{{0,6}}"].append(re.escape(word))
    ended = "|".join(f"(?:{'|'.join(same)}){end}" for end, same in of_ending.items())
    whole = [f"{WORD_START}(?:{ended}){WORD_END}"] if ended else []
    return "|".join([*anywhere, *whole])


def _plain_lower(text: str) -> str:
    """Return a text in lower case without accents or full width; each character keeps its position."""
    if text.isascii():
        return text.lower()
    characters = (character.lower()[0] for character in text)
    parted = [(each, unicodedata.normalize("NFKD", each)) for each in characters]
    return "".join(  # the letters of which a Korean syllable is made are no accents
        parts[0] if all(map(unicodedata.combining, parts[1:])) else each
        for each, parts in parted
    )
