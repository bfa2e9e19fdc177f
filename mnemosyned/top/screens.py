"""Screens above the main one: search, one memory in full, the keys."""

from __future__ import annotations

from typing import ClassVar

from textual import work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.screen import Screen
from textual.widgets import Footer, Input, OptionList, Static
from textual.widgets.option_list import Option

from mnemosyned.client.connection import Connection
from mnemosyned.domain.errors import MnemosynedError
from mnemosyned.domain.text.invisible import escape_invisible
from mnemosyned.terminal import when
from mnemosyned.top import view
from mnemosyned.verbs.memories import Expand, Get, Got, Recall, Recalled

RESULTS = 50
STYLES = {"red": "ansi_red", "green": "ansi_green", "yellow": "ansi_yellow"}
KEYS = """\
/        search memories and summaries
Enter    open the selected one; its originals, if it is a summary
s        run a sleep cycle now
p        pause automatic sleep for an hour, or resume it
?        these keys
Esc      back
q        quit

The figures are of the last minute. "a second" is of the last five seconds.
The daemon may restart: this view finds it again."""


def styled(line: view.Line) -> Content:
    """A line as Textual shows it."""
    return Content.assemble(
        *((span.text, STYLES.get(span.style, span.style)) for span in line)
    )


class Records(OptionList):
    """Memories or hits, a line each; Enter opens the selected one."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("enter", "select", "open")]


class Above(Screen[None]):
    """A screen that Escape leaves."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "app.pop_screen", "back"),
    ]


class HelpScreen(Above):
    """The keys."""

    def compose(self) -> ComposeResult:
        yield Static("mnem top: keys", classes="title")
        yield Static(KEYS, markup=False)
        yield Footer(compact=True, show_command_palette=False)


class SearchScreen(Above):
    """A question and its hits."""

    CSS = """
    #hits { height: 1fr; border: none; padding: 0; background: ansi_default;
            text-wrap: nowrap; text-overflow: ellipsis; }
    Input { border: none; height: 1; padding: 0; background: ansi_default; }
    """

    def __init__(self, connection: Connection) -> None:
        super().__init__()
        self._connection = connection

    def compose(self) -> ComposeResult:
        yield Input(placeholder="words to look for, then Enter", id="question")
        yield Static("", id="note")
        yield Records(id="hits", markup=False)
        yield Footer(compact=True, show_command_palette=False)

    def ask_again(self) -> None:
        """Go back to the question."""
        self.query_one("#question", Input).focus()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        if event.value.strip():
            self._ask(event.value)

    @work(thread=True, exclusive=True)
    def _ask(self, question: str) -> None:
        try:
            recalled = self._connection.call(Recall(question, limit=RESULTS))
        except MnemosynedError as error:
            self.app.call_from_thread(self._say, error.message)
        else:
            self.app.call_from_thread(self._show, recalled)

    def _say(self, words: str) -> None:
        shown = Content(escape_invisible(words, one_line=True))
        self.query_one("#note", Static).update(shown)

    def _show(self, recalled: Recalled) -> None:
        hits = self.query_one("#hits", OptionList)
        hits.clear_options()
        hits.add_options(
            Option(
                styled(view.record_line(hit.created_at, hit.source, hit.snippet)),
                id=hit.id,
            )
            for hit in recalled.hits
        )
        self._say(recalled.note or ("" if recalled.hits else "nothing was found"))
        if recalled.hits:
            hits.highlighted = 0
            hits.focus()


class RecordScreen(Above):
    """One memory or summary in full."""

    def __init__(self, connection: Connection, id: str) -> None:
        super().__init__()
        self._connection = connection
        self._record = id

    def compose(self) -> ComposeResult:
        yield Static(self._record, classes="title", markup=False)
        with VerticalScroll(id="record"):
            yield Static("", id="text", markup=False)
        yield Footer(compact=True, show_command_palette=False)

    def on_mount(self) -> None:
        self.query_one("#text").styles.text_wrap = "wrap"
        self.query_one("#record").focus()
        self._read()

    @work(thread=True)
    def _read(self) -> None:
        try:
            got = self._connection.call(Get(self._record))
            text = _in_full(got)
            if got.episode:
                text += "\n\n" + _originals(self._connection, self._record)
        except MnemosynedError as error:
            text = error.message
        self.app.call_from_thread(self._show, text)

    def _show(self, text: str) -> None:
        self.query_one("#text", Static).update(Content(escape_invisible(text)))


def _in_full(got: Got) -> str:
    if got.memory:
        memory = got.memory
        names = (memory.tier.value, memory.session, memory.source, memory.role)
        head = "  ".join([when(memory.created_at), *filter(None, names)])
        return f"{head}\n\n{memory.content}"
    if got.episode is None:
        return ""
    episode = got.episode
    covers = f"{when(episode.covers_from)} to {when(episode.covers_until)}"
    return f"{covers}  {episode.session}  by {episode.summarizer}\n\n{episode.content}"


def _originals(connection: Connection, id: str) -> str:
    """The originals of a summary, a paragraph each."""
    originals = connection.call(Expand(id)).originals
    return "\n".join(
        f"{when(memory.created_at)}  {memory.content}" for memory in originals
    )
