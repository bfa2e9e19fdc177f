"""Makes prompt tags and chat marks harmless in texts that are shown to a model.

A memory may come from a web page or a log, and may contain `</system-reminder>` or the like. It is
shown with `‹` in place of the bracket that makes it a tag; the stored text stays as it is. HTML
entities stay too: no agent's tool decodes `&lt;system&gt;` before a model reads it.
"""

from __future__ import annotations

import re
import unicodedata

from mnemosyned.text.display import strip_invisible
from mnemosyned.text.rule_files import compile_on_use, read_tables

OWN_TAG = "mnemosyne-memory"
"""Tag around texts that hooks inject, so that they are never captured as something that was said."""
PRIVATE_TAG = "private"
_TABLES = read_tables(__file__, "frames.toml")
HARNESS_TAGS = _TABLES["harness_tags"].split()
"""Blocks that tools put into a conversation by themselves."""
WRAPPER_TAGS = ("user_query", "USER_REQUEST", "task", "user_message")
"""Tags around what a person typed."""
_TAGS = (OWN_TAG, PRIVATE_TAG, *HARNESS_TAGS, *WRAPPER_TAGS)
_TAG = rf"(?:[a-z]+:)?(?:{'|'.join([*_TAGS, *_TABLES['shown_tags'].split()])})(?![a-z0-9_-]|\.[a-z])"
_ATTRIBUTE = r"(?:\s+[\w:.-]+\s*=\s*\\*[\"']|[^\S\n]+[\w:.-]+=(?!=))"
_CHAT_MARK = (
    "(?:INST|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_CALLS|TOOL_RESULTS|TOOL_CONTENT)"
)
_MARKUP = compile_on_use(
    rf"<(?:<[^<>‹›]{{0,40}}>)*(?:\s*[/\\]+\s*)?{_TAG}"  # also with tags to be taken out before it
    rf"|<\s+{_TAG}(?:\s*(?:/\s*)?>|{_ATTRIBUTE})"  # not `a < context`
    rf"|<\s*\||(?<=\w\|)>|<(?:\s*/\s*)?(?:s|bos|eos|pad|unk)\s*>"
    r"|<\s*<\s*(?:/\s*)?SYS\s*>"
    rf"|\[\s*(?:/\s*)?{_CHAT_MARK}\s*\]",
    re.IGNORECASE,
)
"""Tags of a frame and marks of chat templates."""
_BRACKET = re.compile("[<＜﹤>＞﹥[［﹇]")
"""Brackets that `_MARKUP` begins with, and those that NFKC normalization turns into them."""
_HARMLESS = str.maketrans("<＜﹤>＞﹥[［﹇", "‹‹‹›››⟦⟦⟦")
_UNSEEN = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f"
    "\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    "\U000e0000-\U000e0fff\u0338]"
)
"""Characters that are ignored where they cannot be displayed, and the one that combines with `<`."""
_ROUND = str.maketrans("[]［］", "()()")
_ALIKE = str.maketrans("‐‒–—―−∕⁄⧸∣", "------///|")


def neutralize(text: str) -> str:
    """Return the text with `‹` for `<` in prompt tags such as `<system>`, and `⟦` for `[` in chat marks.

    The text then can neither begin nor end a frame or a turn of a conversation. Other brackets stay, so
    that code is readable. Invisible characters, and blanks at both ends, are removed; all line breaks
    become line feeds.
    """
    return neutralize_tags(strip_invisible(text).strip())


def neutralize_line(text: str) -> str:
    """Return a name or rule for a line of a prompt: on one line, with `‹` for `<` in prompt tags.

    Invisible characters are removed, and white space becomes single spaces.
    """
    return neutralize_tags(" ".join(strip_invisible(" ".join(text.split())).split()))


def format_origin(*parts: str) -> str:
    """Return the parts of a quotation's origin, such as date and speaker, joined by commas.

    Each part is made harmless for a prompt, and its square brackets become round; empty parts are left out.
    """
    lines = (neutralize_line(part).translate(_ROUND) for part in parts)
    return ", ".join(filter(None, lines))


def neutralize_tags(text: str) -> str:
    """Return the text with `‹` for `<` in prompt tags, and `⟦` for `[` in chat marks, at the same length.

    The text must have no invisible characters. A second call changes nothing.
    """
    if not _BRACKET.search(text):
        return text
    bare = text
    if not text.isascii():
        bare = unicodedata.normalize("NFKC", _UNSEEN.sub("", text)).translate(_ALIKE)
    # Both have the same brackets in the same order.
    live = (_MARKUP.match(bare, bracket.start()) for bracket in _BRACKET.finditer(bare))
    return _BRACKET.sub(
        lambda bracket: bracket[0].translate(_HARMLESS) if next(live) else bracket[0],
        text,
    )
