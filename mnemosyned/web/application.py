"""The pages behind one address: access, templates, errors and headers.

Templates escape all text, show invisible characters, and write times in local time.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from difflib import SequenceMatcher
from functools import cache
from http import HTTPStatus
from itertools import accumulate, takewhile
from operator import eq
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlencode

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from mnemosyned import errors
from mnemosyned.cli.output import listing, terminal
from mnemosyned.daemon.http.protocol import STATUS_OF_KIND
from mnemosyned.http_messages import HttpRequest, Response
from mnemosyned.logs import logger
from mnemosyned.summary.rollup import SPEAKERS
from mnemosyned.text import display, sentences
from mnemosyned.verbs.facade import Caller
from mnemosyned.verbs.listing import LEVELS
from mnemosyned.verbs.request import R, Request, parse_text
from mnemosyned.web.access import AGAIN, WebAccess, WebSession

FOLDER = Path(__file__).parent
NAVIGATION = (
    ("Now", "/", "n"),
    ("Search", "/search", "s"),
    ("Timeline", "/timeline", "t"),
    ("Subjects", "/subjects", "p"),
    ("Sleep", "/sleep", "l"),
    ("Injections", "/injections", "i"),
    ("Learnings", "/learnings", "e"),
    ("Endings", "/ended", "f"),
    ("Health", "/state", "h"),
)
"""Pages named at the top of each page: name, path, and the key that leads there after `g`."""
_WORD = re.compile(rf"[{sentences.UNSPACED}]|[^\W{sentences.UNSPACED}]+|\s+|.")
LONG = 100_000
"""Characters of a text above which its first letter sets the direction of all its paragraphs."""
COMPARED_MAX = 100_000
"""Words and spaces of one text times those of the other that are compared one by one: 0.1 s."""


def render(template: str, **values: Any) -> bytes:  # noqa: ANN401 what a template shows
    """Return a template of the folder `templates` as a page in UTF-8."""
    return _environment().get_template(template).render(values).encode()


@cache
def _environment() -> Environment:
    """Return the environment of all templates, cached."""
    environment = Environment(
        loader=FileSystemLoader(FOLDER / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_show_invisible,
    )
    environment.filters |= {
        "count": terminal.count_of,
        "day": listing.day_title,
        "duration": terminal.duration_text,
        "exact": escape,
        "from_match": display.cut_before_match,
        "local_day": listing.local_day,
        "long": lambda text: " long" if len(text) > LONG else "",
        "compare": mark_changes,
        "mark": mark_words,
        "number": "{:,}".format,
        "period": listing.period_name,
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
    """Return a value; in a text, invisible characters, which could hide words, are escaped."""
    if isinstance(value, str) and not isinstance(value, Markup):
        return display.escape_invisible(value)
    return value


def mark_words(text: str, matching: Sequence[str]) -> Markup:
    """Return a text as HTML with the words that match a query marked."""
    return _mark_spans(text, display.find_matching_words(text, matching), "mark")


def mark_changes(before: str, after: str) -> tuple[Markup, Markup]:
    """Return two texts as HTML, deleted words marked by `del` in the first, inserted by `ins` in the second."""
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
        parts.append(escape(display.escape_invisible(text[end:start])))
        if stop > start:
            parts.append(element % display.escape_invisible(text[start:stop]))
        end = stop
    return Markup("").join([*parts, escape(display.escape_invisible(text[end:]))])


def _time_element(moment: datetime | None) -> Markup:
    """Return a time in the local zone as an element of HTML; empty for None."""
    if moment is None:
        return Markup("")
    return Markup('<time datetime="{}">{}</time>').format(
        moment.isoformat(), terminal.local_time(moment)
    )


def link(path: str, **fields: object) -> str:
    """Return the address of a page with these fields; empty fields are left out."""
    given = {name: value for name, value in fields.items() if value}
    return f"{path}?{urlencode(given, doseq=True)}" if given else path


HTML = "text/html; charset=utf-8"
FORM = "application/x-www-form-urlencoded"
FRAGMENT, LIVE = "x-fragment", "live"
"""Header with which the pages' script asks for the main part alone, and its value for a refresh."""
EVENTS, EVENT_STREAM = "/events", "text/event-stream"
"""Path at which a page is told that something changed, and the type of the stream."""
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)
HEADERS = (
    ("Content-Security-Policy", POLICY),
    ("X-Content-Type-Options", "nosniff"),
    ("X-Frame-Options", "DENY"),
    # Not no-referrer: browsers would then send forms with `Origin: null`.
    ("Referrer-Policy", "same-origin"),
    ("Cache-Control", "no-store"),
    ("Cross-Origin-Opener-Policy", "same-origin"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
)
"""Headers of every response of the server."""
STATIC = {
    "/page.css": "text/css; charset=utf-8",
    "/page.js": "text/javascript; charset=utf-8",
    "/icon.svg": "image/svg+xml",
}
"""Files without any memory, by their path; browsers get them without a session."""

log = logger()


@dataclass(frozen=True, slots=True)
class Visit:
    """A browser's request for a page."""

    caller: Caller
    session: WebSession
    request: HttpRequest
    fields: Mapping[str, str]
    """The fields of the address, or of a form that was sent."""

    def call(self, request: Request[R]) -> R:
        """Run a verb and return its result. Raises its errors."""
        return self.caller.call(request)

    def pick(self, names: Iterable[str]) -> dict[str, str]:
        """Return the fields with these names, without empty fields."""
        return {name: self.fields[name] for name in names if self.fields.get(name)}

    def ask(self, verb: type[Request[R]], names: Iterable[str] = (), **fixed: str) -> R:
        """Run a verb with the visit's fields `names`, and with `fixed`; return its result.

        `names` may also be a mapping of fields to values. Raises the errors of parsing and of the verb.
        """
        given = names if isinstance(names, Mapping) else self.pick(names)
        return self.caller.call(parse_text(verb, {**given, **fixed}))

    def field(self, name: str) -> str:
        """Return a field that the page needs. Raises `InvalidRequest` if it is missing."""
        if not self.fields.get(name):
            raise errors.InvalidRequest(
                f"{name} is missing; go back, and follow a link"
            )
        return self.fields[name]

    def show(self, template: str, **values: Any) -> Response:  # noqa: ANN401 what it shows
        """Return the response with a page, made from a template and values."""
        return Response(HTTPStatus.OK, render(template, visit=self, **values), HTML)


PageHandler = Callable[[Visit], Response]
"""Answers a visit of a page, or a form that was sent."""


def redirect_to(path: str, **fields: object) -> Response:
    """Return the response that redirects a browser to a page, with these fields in the address."""
    headers = (("Location", link(path, **fields)),)
    return Response(HTTPStatus.SEE_OTHER, content_type="", headers=headers)


def make_change(
    verb: type[Request[Any]], names: Sequence[str], path: str, kept: Sequence[str]
) -> PageHandler:
    """Return the handler of a form that runs a verb with the fields `names`, and redirects to `path`.

    The address of the redirect has the fields `kept`.
    """

    def change(visit: Visit) -> Response:
        given = {name: visit.fields[name] for name in names if name in visit.fields}
        visit.call(parse_text(verb, given))
        return redirect_to(path, **visit.pick(kept))

    return change


@dataclass(frozen=True, slots=True)
class WebApplication:
    """Answers the requests of browsers; safe from any thread."""

    caller: Caller
    access: WebAccess
    """Which browsers are let in."""
    routes: Mapping[str, PageHandler]
    """The pages, by method and path."""
    listen: Callable[[Callable[[], bool]], Iterator[bytes]] | None = None
    """Returns a stream of what changes, which ends once its function returns False."""

    def answer(self, request: HttpRequest) -> Response:
        """Return the response to a request: a page, a file, or an error as a page."""
        session = self.access.find_session(request.headers)
        try:
            self.access.check_origin(request)
            response = self._respond(request, session)
        except errors.MnemosynedError as error:
            response = _show_error(error, session)
        except Exception:
            log.exception("page_failed", path=request.path)
            unexpected = errors.MnemosynedError(
                "unexpected; the terminal of `mnem web` has the traceback"
            )
            response = _show_error(unexpected, session)
        return response

    def _respond(self, request: HttpRequest, session: WebSession | None) -> Response:
        """Return the response to a request of an allowed origin. Raises a `MnemosynedError`."""
        if request.path in STATIC and request.method in ("GET", "HEAD"):
            body = (FOLDER / "static" / request.path[1:]).read_bytes()
            return Response(HTTPStatus.OK, body, STATIC[request.path])
        if request.path == "/enter" and request.method == "GET":
            return self._let_in(request, session)
        if session is None:
            raise errors.Unauthorized(f"this browser is not let in: {AGAIN}")
        if request.path == EVENTS and request.method == "GET" and self.listen:
            # A page that is left open does not use it, and so neither does its stream.
            stream = self.listen(lambda: session in self.access.sessions)
            return Response(HTTPStatus.OK, content_type=EVENT_STREAM, stream=stream)
        method = "GET" if request.method == "HEAD" else request.method
        handler = self.routes.get(f"{method} {request.path}")
        if handler is None:
            raise errors.UnknownVerb(
                f"there is no page for {method} {request.path}; follow a link above"
            )
        if method == "POST":
            fields = _read_form(request)
            self.access.check_form(session, fields.pop("token", ""))
        else:
            fields = _first_values(request.query)
        visit = Visit(self.caller, session, request, fields)
        if request.headers.get(FRAGMENT) == LIVE:
            return handler(visit)
        with self.access.note_use():
            response = handler(visit)
        if response.stream is None:
            return response
        return dataclasses.replace(response, stream=self._note_use_of(response.stream))

    def _note_use_of(self, stream: Iterator[bytes]) -> Iterator[bytes]:
        """Yield a stream's chunks; until its end it counts as a running request of a person."""
        with self.access.note_use():
            yield from stream

    def _let_in(self, request: HttpRequest, session: WebSession | None) -> Response:
        """Return a redirect that sets a new session's cookie, in exchange for the one-time key in the address.

        A browser with a session is only redirected. Raises `Unauthorized` for a key that is not valid.
        """
        if session:
            return redirect_to("/")
        session = self.access.redeem_key(_first_values(request.query).get("key", ""))
        cookie = f"{self.access.cookie_name}={session.cookie}; Path=/; HttpOnly; SameSite=Strict"
        response = redirect_to("/")
        return dataclasses.replace(
            response, headers=(*response.headers, ("Set-Cookie", cookie))
        )


def _show_error(error: errors.MnemosynedError, session: WebSession | None) -> Response:
    """Return the page of an error, with the status of its kind."""
    status = STATUS_OF_KIND[error.kind]
    body = render("error.html", error=error, status=status, session=session)
    return Response(status, body, HTML)


def _first_values(encoded: str) -> dict[str, str]:
    r"""Return {field: first value} of a query or form, with `\n` as line break. Raises `MalformedRequest`."""
    try:
        fields = parse_qs(
            encoded, keep_blank_values=True, errors="strict", max_num_fields=100
        )
    except ValueError as error:
        raise errors.MalformedRequest(f"the fields cannot be read: {error}") from error
    # Browsers send the line breaks of a form as those of HTTP.
    return {name: values[0].replace("\r\n", "\n") for name, values in fields.items()}


def _read_form(request: HttpRequest) -> dict[str, str]:
    """Return the fields of a form that was sent. Raises `MalformedRequest` for another body."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != FORM or not bytes(request.body).isascii():
        raise errors.MalformedRequest(
            f"a change is sent as a form, {FORM}; use the page's own button"
        )
    return _first_values(request.body.decode("ascii"))
