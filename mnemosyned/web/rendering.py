"""Templates and their filters: all text is escaped, invisible characters are shown, times are local."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from mnemosyned.cli.output.listing import day_title, local_day, period_name
from mnemosyned.cli.output.terminal import count_of, duration_text, local_time
from mnemosyned.text.display import escape_invisible, find_matching_words
from mnemosyned.verbs.listing import LEVELS

FOLDER = Path(__file__).parent
NAVIGATION = (
    ("Now", "/", "n"),
    ("Search", "/search", "s"),
    ("Timeline", "/timeline", "t"),
    ("Sleep", "/sleep", "l"),
    ("Told", "/told", "i"),
)
"""Pages named at the top of each page: name, path, and the key that leads there after `g`."""


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
        "mark": mark_words,
        "number": "{:,}".format,
        "period": period_name,
        "when": _time_element,
    }
    environment.globals |= {"LEVELS": LEVELS, "NAVIGATION": NAVIGATION, "link": link}
    return environment


def _show_invisible(value: object) -> object:
    """Return a value of a template with the invisible characters of a text as escapes.

    A memory could hide words with them, or reverse the order of the page around it.
    """
    if isinstance(value, str) and not isinstance(value, Markup):
        return escape_invisible(value)
    return value


def mark_words(text: str, matching: Sequence[str]) -> Markup:
    """Return a text as HTML with the words that match a query marked."""
    parts, end = list[str](), 0
    for start, stop in find_matching_words(text, matching):
        parts += text[end:start], text[start:stop]
        end = stop
    shown = [escape(escape_invisible(part)) for part in (*parts, text[end:])]
    shown[1::2] = [Markup("<mark>%s</mark>") % word for word in shown[1::2]]
    return Markup("").join(shown)


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
