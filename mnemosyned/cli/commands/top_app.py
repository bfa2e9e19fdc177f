"""The full-screen program of `mnem top`: keys and screens. Only this module needs Textual."""

from __future__ import annotations

import re
import threading
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import ClassVar

from click import style, unstyle
from textual import work
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.message import Message
from textual.screen import Screen
from textual.widgets import Footer, Input, OptionList, Static
from textual.widgets.option_list import Option

from mnemosyned.cli.commands import top_view
from mnemosyned.cli.commands.top_view import Feed, Snapshot
from mnemosyned.cli.output.show import render
from mnemosyned.client.connection import Connection
from mnemosyned.errors import MnemosynedError
from mnemosyned.memory.values import Hit, MemoryRecord
from mnemosyned.text.display import escape_invisible, escape_line
from mnemosyned.verbs import memories, upkeep

_STYLED = re.compile("\x1b\\[(\\d+)m(.*?)\x1b\\[0m")
STYLES = {"1": "bold", "2": "dim"} | {
    "31": "ansi_red",
    "32": "ansi_green",
    "33": "ansi_yellow",
}
"""Styles of Textual by the sequences that `click.style` writes for a line."""
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


def styled_content(line: str) -> Content:
    """Return a line with styles of `click.style` as content for a Textual widget."""
    plain, *parts = _STYLED.split(line)
    pieces: list[str | tuple[str, str]] = [plain]
    for code, styled, after in zip(*[iter(parts)] * 3, strict=True):
        pieces += [(styled, STYLES[code]), after]
    return Content.assemble(*pieces)


def make_option(record: Hit | MemoryRecord, text: str) -> Option:
    """Return the list entry of a memory or hit: its time, source and `text` on one line."""
    line = top_view.record_line(record.created_at, record.source, text)
    return Option(styled_content(line), id=record.id)


class RecordList(OptionList):
    """A list of memories or hits, one a line; Enter opens the selected record."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("enter", "select", "open")]


class OverlayScreen(Screen[None]):
    """A screen on top of the main screen; Escape closes it."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "app.pop_screen", "back"),
    ]


class HelpScreen(OverlayScreen):
    """The screen that lists the keys."""

    def compose(self) -> ComposeResult:
        """Yield the widgets of the screen: a title, the list of keys, and the footer."""
        yield Static("mnem top: keys", classes="title")
        yield Static(KEYS, markup=False)
        yield Footer(compact=True, show_command_palette=False)


class SearchScreen(OverlayScreen):
    """The screen with a search field and the hits."""

    CSS = """
    #hits { height: 1fr; border: none; padding: 0; background: ansi_default;
            text-wrap: nowrap; text-overflow: ellipsis; }
    Input { border: none; height: 1; padding: 0; background: ansi_default; }
    """

    def __init__(self, connection: Connection) -> None:
        super().__init__()
        self._connection = connection

    def compose(self) -> ComposeResult:
        """Yield the widgets of the screen: search field, note, list of hits, and footer."""
        yield Input(placeholder="words to look for, then Enter", id="question")
        yield Static("", id="note")
        yield RecordList(id="hits", markup=False)
        yield Footer(compact=True, show_command_palette=False)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Start the search for the submitted words, unless blank (called by Textual)."""
        if event.value.strip():
            self._search(event.value)

    @work(thread=True, exclusive=True)
    def _search(self, question: str) -> None:
        """Search for memories in a thread, and show the hits or the error on the screen."""
        try:
            recalled = self._connection.call(memories.Recall(question, limit=50))
        except MnemosynedError as error:
            self.app.call_from_thread(self._show_note_line, error.message)
        else:
            self.app.call_from_thread(self._show_hits, recalled)

    def _show_note_line(self, words: str) -> None:
        """Show a text, escaped, on the line below the search field."""
        shown = Content(escape_line(words))
        self.query_one("#note", Static).update(shown)

    def _show_hits(self, recalled: memories.Recalled) -> None:
        """Show the hits and the note of a search on the screen, and select the first hit."""
        hits = self.query_one("#hits", OptionList)
        hits.clear_options()
        hits.add_options(make_option(hit, hit.snippet) for hit in recalled.hits)
        self._show_note_line(
            recalled.note or ("" if recalled.hits else "nothing was found")
        )
        if recalled.hits:
            hits.highlighted = 0
            hits.focus()


class RecordScreen(OverlayScreen):
    """The screen with one memory or summary in full."""

    def __init__(self, connection: Connection, id: str) -> None:
        super().__init__()
        self._connection = connection
        self._record = id

    def compose(self) -> ComposeResult:
        """Yield the widgets of the screen: the id as title, the text, and the footer."""
        yield Static(self._record, classes="title", markup=False)
        with VerticalScroll(id="record"):
            yield Static("", id="text", markup=False)
        yield Footer(compact=True, show_command_palette=False)

    def on_mount(self) -> None:
        """When the screen opens, wrap its text, and start to read the record."""
        self.query_one("#text").styles.text_wrap = "wrap"
        self.query_one("#record").focus()
        self._read_record()

    @work(thread=True)
    def _read_record(self) -> None:
        """Read the memory, or summary with originals, in a thread; show it or the error."""
        try:
            result: object = self._connection.call(memories.Get(self._record))
            if isinstance(result, memories.Got) and result.episode:
                result = self._connection.call(memories.Expand(self._record))
            text = unstyle(render(result))
        except MnemosynedError as error:
            text = error.message
        shown = self.query_one("#text", Static)
        self.app.call_from_thread(shown.update, Content(escape_invisible(text)))


RETRY_S = 2.0
"""Seconds until events are asked for again after the stream ended or was refused."""
EVENTS_EVERY_S = 0.2
"""Interval of drawing events: a screen drawn for each event could not follow a busy daemon."""
CYCLES_SHOWN, CYCLES_SHOWN_TALL = 3, 8
EVENTS_SHOWN, EVENTS_SHOWN_TALL, EVENTS_KEPT = 2, 6, 50
TALL_ROWS = 36


class StateRead(Message):
    """The message that a snapshot was read, or None and why the daemon does not answer."""

    def __init__(self, snapshot: Snapshot | None, reason: str = "") -> None:
        super().__init__()
        self.snapshot = snapshot
        self.reason = reason


class Top(App[None]):
    """The Textual application of `mnem top`."""

    TITLE = "mnem top"
    ENABLE_COMMAND_PALETTE = False
    CSS = """
    Screen { background: ansi_default; color: ansi_default; }
    Static { height: auto; text-wrap: nowrap; text-overflow: ellipsis; }
    .title { text-style: bold underline; }
    #panels.lost { text-style: dim; }
    #latest { height: 1fr; min-height: 3; border: none; padding: 0;
              background: ansi_default; text-wrap: nowrap; text-overflow: ellipsis; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("slash", "search", "search"),
        Binding("s", "sleep", "sleep"),
        Binding("p", "pause", "pause"),
        Binding("question_mark", "help", "help"),
        Binding("q", "quit", "quit"),
    ]

    def __init__(
        self, state_connection: Connection, call_connection: Connection
    ) -> None:
        """Show a daemon's state, read with a short time limit; the other connection calls it."""
        super().__init__(ansi_color=True)
        self.theme = "ansi-dark"
        self._state_connection = state_connection
        self._call_connection = call_connection
        self._feed = Feed(self._state_connection)
        self._has_ended = threading.Event()
        self._events: deque[upkeep.Event] = deque(maxlen=EVENTS_KEPT)
        self._events_shown: list[upkeep.Event] = []
        self._paused = False
        self._shown: Sequence[MemoryRecord] = ()

    def compose(self) -> ComposeResult:
        """Yield the widgets of the main screen: heading, panels, newest memories, and footer."""
        yield Static("mnem top", id="heading")
        with Vertical(id="panels"):
            for name in ("tiers", "activity", "sleep", "hooks", "problems", "events"):
                yield Static(id=name)
        yield Static("latest memories", classes="title")
        yield RecordList(id="latest", markup=False)
        yield Footer(compact=True, show_command_palette=False)

    def on_mount(self) -> None:
        """When the program begins, start the threads that read the daemon's state and events."""
        self.query_one("#panels").styles.height = "auto"
        self.query_one("#latest").focus()
        self._post_snapshots()
        # A daemon thread: it would wait for an event while the program ends.
        threading.Thread(target=self._follow_events, name="events", daemon=True).start()
        self.set_interval(EVENTS_EVERY_S, self._show_events)

    def on_unmount(self) -> None:
        """When the program ends, stop the threads and close the connections."""
        self._has_ended.set()
        self._state_connection.close()
        self._call_connection.close()

    # ------------------------------------------------------------------ looks

    @work(thread=True, group="looks")
    def _post_snapshots(self) -> None:
        """Post the daemon's state, or why there is none, every second until the program ends."""
        while not self._has_ended.is_set():
            try:
                self.post_message(StateRead(self._feed.read()))
            except MnemosynedError as error:
                self._feed.seen.clear()
                self.post_message(StateRead(None, error.message))
            self._has_ended.wait(1.0)
        self._state_connection.close()  # the last look may have ended after the view

    def on_state_read(self, message: StateRead) -> None:
        """Show the daemon's state in the panels, or dim them and show why there is none."""
        if not self.is_running:  # `q` has closed the panels
            return
        snapshot, minute = message.snapshot, self._feed.minute
        panels = self.screen_stack[0].query_one("#panels")
        panels.set_class(snapshot is None, "lost")
        if snapshot is None:
            loss = f"{style('no daemon', fg='red')}  {escape_line(message.reason)}"
            self._show_panel("heading", [f"{style('mnem top', bold=True)}  {loss}"])
            return
        stats = snapshot.stats
        self._paused = stats.sleep.paused_until is not None
        cycles = CYCLES_SHOWN_TALL if self._is_tall else CYCLES_SHOWN
        resident = minute.newest.resident_bytes
        self._show_panel("heading", [top_view.heading_line(stats, resident)])
        self._show_panel("tiers", top_view.tier_lines(stats, minute.memories_per_s()))
        requests = top_view.request_lines(minute.rows()) if resident else []
        self._show_panel("activity", requests)
        self._show_panel(
            "sleep",
            [
                top_view.sleep_line(stats.sleep, snapshot.watched_s),
                *top_view.cycle_lines(snapshot.cycles, cycles),
            ],
        )
        self._show_panel("hooks", top_view.hook_lines(stats.agents, datetime.now(UTC)))
        self._show_panel("problems", top_view.problem_lines(stats))
        self._show_latest(snapshot.latest)

    def _follow_events(self) -> None:
        """Collect the daemon's events until the program ends, connecting again after a loss."""
        while not self._has_ended.is_set():
            with suppress(MnemosynedError, OSError):  # the heading shows the loss
                for event in self._call_connection.events():
                    if self._has_ended.is_set():
                        return
                    self._events.append(event)
            self._has_ended.wait(RETRY_S)

    def _show_events(self) -> None:
        """Show the newest events in their panel, if there are new ones."""
        events = list(self._events)
        if events == self._events_shown or not self.is_running:
            return
        self._events_shown = events
        limit = EVENTS_SHOWN_TALL if self._is_tall else EVENTS_SHOWN
        self._show_panel("events", top_view.event_lines(events, limit))

    @property
    def _is_tall(self) -> bool:
        """Whether the terminal has at least `TALL_ROWS` rows."""
        return bool(self.size.height >= TALL_ROWS)

    def _show_panel(self, id: str, lines: Sequence[str]) -> None:
        """Replace the lines of a panel of the main screen, also below another screen."""
        panel = self.screen_stack[0].query_one(f"#{id}", Static)
        panel.update(Content("\n").join(styled_content(line) for line in lines))

    def _show_latest(self, records: Sequence[MemoryRecord]) -> None:
        """Replace the list of the newest memories; the highlighted memory stays highlighted."""
        if records == self._shown:
            return
        self._shown = records
        latest = self.screen_stack[0].query_one("#latest", OptionList)
        chosen = latest.highlighted_option
        latest.clear_options()
        latest.add_options(make_option(record, record.content) for record in records)
        ids = [record.id for record in records]
        known = chosen is not None and chosen.id in ids
        latest.highlighted = ids.index(chosen.id) if known and chosen.id else 0

    # ------------------------------------------------------------------- keys

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        """Open the screen of the memory or hit selected in a list (called by Textual)."""
        if event.option_id:
            self.push_screen(RecordScreen(self._call_connection, event.option_id))

    def action_search(self) -> None:
        """Open the search screen, or move the focus to its search field."""
        if isinstance(self.screen, SearchScreen):
            self.screen.query_one("#question", Input).focus()
        else:
            self.push_screen(SearchScreen(self._call_connection))

    def action_help(self) -> None:
        """Open the screen with the keys, unless it is open."""
        if not isinstance(self.screen, HelpScreen):
            self.push_screen(HelpScreen())

    def action_sleep(self) -> None:
        """Have the daemon run a sleep cycle, and show a notification at its end."""
        self.notify("a sleep cycle was asked for")
        self._run_sleep(upkeep.Sleep())

    def action_pause(self) -> None:
        """Pause automatic sleep for an hour, or resume it if paused; show a notification."""
        minutes = 0 if self._paused else 60
        self._run_sleep(upkeep.Sleep(pause_minutes=minutes))

    @work(thread=True, group="calls")
    def _run_sleep(self, request: upkeep.Sleep) -> None:
        """Send a request in a thread, and show a notification of its result or error."""
        try:
            report = self._call_connection.call(request)
        except MnemosynedError as error:
            self.call_from_thread(self.notify, error.message, severity="error")
            return
        notice = unstyle(render(report)).partition("\n")[0]
        self.call_from_thread(self.notify, notice)
