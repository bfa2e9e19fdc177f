"""Templates and their filters: all text is escaped, invisible characters are shown, times are local."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import datetime
from difflib import SequenceMatcher
from functools import cache
from itertools import accumulate, takewhile
from operator import eq
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from mnemosyned.cli.output.listing import day_title, local_day, period_name
from mnemosyned.cli.output.terminal import count_of, duration_text, local_time
from mnemosyned.summary.rollup import SPEAKERS
from mnemosyned.text.display import escape_invisible, find_matching_words
from mnemosyned.text.sentences import UNSPACED
from mnemosyned.verbs.listing import LEVELS

FOLDER = Path(__file__).parent
NAVIGATION = (
    ("Now", "/", "n"),
    ("Search", "/search", "s"),
    ("Timeline", "/timeline", "t"),
    ("Subjects", "/subjects", "p"),
    ("Sleep", "/sleep", "l"),
    ("Injections", "/injections", "i"),
    ("Learnings", "/learnings", "e"),
    ("Ended", "/ended", "f"),
    ("Health", "/state", "h"),
)
"""Pages named at the top of each page: name, path, and the key that leads there after `g`."""
_WORD = re.compile(rf"[{UNSPACED}]|[^\W{UNSPACED}]+|\s+|.")
COMPARED_MAX = 100_000
"""Words and spaces of one text times those of the other that are compared one by one: 0.1 s."""


def render(template: str, **values: Any) -> bytes:  # noqa: ANN401 what a template shows
    """Return a template of the folder `templates` as a page in UTF-8."""
    return _environment().get_template(template).render(values).encode()


@cache
def _environment() -> Environment:
    """Return the environment of all templates, made at its first use."""
    environment = Environment(
        loader=FileSystemLoader(FOLDER / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_show_invisible,
    )
    environment.filters |= {
        "count": count_of,
        "day": day_title,
        "duration": duration_text,
        "exact": escape,
        "local_day": local_day,
        "compare": mark_changes,
        "mark": mark_words,
        "number": "{:,}".format,
        "period": period_name,
        "when": _time_element,
    }
    environment.globals |= {
        "LEVELS": LEVELS,
        "NAVIGATION": NAVIGATION,
        "SPEAKERS": SPEAKERS,
        "link": link,
    }
    return environment


def _show_invisible(value: object) -> object:
    """Return a value with the invisible characters of a text, which could hide words, escaped."""
    if isinstance(value, str) and not isinstance(value, Markup):
        return escape_invisible(value)
    return value


def mark_words(text: str, matching: Sequence[str]) -> Markup:
    """Return a text as HTML with the words that match a query marked."""
    return _mark_spans(text, find_matching_words(text, matching), "mark")


def mark_changes(before: str, after: str) -> tuple[Markup, Markup]:
    """Return two texts as HTML, the first with `del`, the second with `ins`, where they differ."""
    old, new = _WORD.findall(before), _WORD.findall(after)
    first = sum(takewhile(bool, map(eq, old, new)))
    ends = map(eq, reversed(old[first:]), reversed(new[first:]))
    last = sum(takewhile(bool, ends))
    middles = [words[first : len(words) - last] for words in (old, new)]
    changes = [[0, len(middles[0]), 0, len(middles[1])]]
    if len(middles[0]) * len(middles[1]) <= COMPARED_MAX:
        codes = SequenceMatcher(
            str.isspace, middles[0], middles[1], autojunk=False
        ).get_opcodes()
        changes = [places for kind, *places in codes if kind != "equal"]
    shown = []
    for text, words, tag, place in ((before, old, "del", 0), (after, new, "ins", 2)):
        starts = [0, *accumulate(map(len, words))]
        spans = [
            (starts[first + change[place]], starts[first + change[place + 1]])
            for change in changes
        ]
        shown.append(_mark_spans(text, spans, tag))
    return shown[0], shown[1]


def _mark_spans(text: str, spans: Iterable[tuple[int, int]], tag: str) -> Markup:
    """Return a text as HTML with the parts between each start and end in an element `tag`."""
    parts, end = list[Markup](), 0
    element = Markup(f"<{tag}>%s</{tag}>")  # noqa: S704 one of three names
    for start, stop in spans:
        parts.append(escape(escape_invisible(text[end:start])))
        if stop > start:
            parts.append(element % escape_invisible(text[start:stop]))
        end = stop
    return Markup("").join([*parts, escape(escape_invisible(text[end:]))])


def _time_element(moment: datetime | None) -> Markup:
    """Return a time in the local zone as an element of HTML; empty for None."""
    if moment is None:
        return Markup("")
    return Markup('<time datetime="{}">{}</time>').format(
        moment.isoformat(), local_time(moment)
    )


def link(path: str, **fields: object) -> str:
    """Return the address of a page with these fields; those without a value are left out."""
    given = {name: value for name, value in fields.items() if value}
    return f"{path}?{urlencode(given, doseq=True)}" if given else path
