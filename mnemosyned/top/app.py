"""The live view as a Textual application: reads once a second, in a thread, and shows it."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import ClassVar, TypeVar

from textual import work
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.message import Message
from textual.widgets import Footer, OptionList, Static
from textual.widgets.option_list import Option

from mnemosyned.client.connection import Connection
from mnemosyned.domain.errors import MnemosynedError
from mnemosyned.domain.memory import MemoryRecord
from mnemosyned.domain.sleep.cycles import CycleReport, CycleStatus
from mnemosyned.terminal import counted, when
from mnemosyned.top import view
from mnemosyned.top.feed import Feed, Snapshot
from mnemosyned.top.listening import Listener
from mnemosyned.top.screens import (
    HelpScreen,
    Records,
    RecordScreen,
    SearchScreen,
    styled,
)
from mnemosyned.verbs.request import Request
from mnemosyned.verbs.sleep import Sleep
from mnemosyned.verbs.streams.events import Event

R = TypeVar("R")

PAUSE_MINUTES = 60
EVERY_S = 1.0
EVENTS_EVERY_S = 0.2
"""A screen that is drawn for each event could not follow a busy daemon."""
CYCLES_SHOWN, CYCLES_SHOWN_TALL = 3, 8
EVENTS_SHOWN, EVENTS_SHOWN_TALL, EVENTS_KEPT = 2, 6, 50
TALL_ROWS = 36


class Read(Message):
    """The answers of one look."""

    def __init__(self, snapshot: Snapshot) -> None:
        super().__init__()
        self.snapshot = snapshot


class Unreachable(Message):
    """A look that brought nothing, and why."""

    def __init__(self, reason: str) -> None:
        super().__init__()
        self.reason = reason


class Top(App[None]):
    """The full screen."""

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

    def __init__(self, looks: Connection, calls: Connection) -> None:
        """Make a view of a daemon: `looks` has a short time limit, as its view is drawn again."""
        super().__init__(ansi_color=True)
        self.theme = "ansi-dark"
        self._looks = looks
        self._calls = calls
        self._feed = Feed(self._looks)
        self._over = threading.Event()
        self._events: deque[Event] = deque(maxlen=EVENTS_KEPT)
        self._listener = Listener(self._calls, self._events.append)
        self._events_shown: list[Event] = []
        self._paused = False
        self._shown: Sequence[MemoryRecord] = ()

    def compose(self) -> ComposeResult:
        yield Static("mnem top", id="heading")
        with Vertical(id="panels"):
            for name in ("tiers", "activity", "sleep", "hooks", "problems", "events"):
                yield Static(id=name)
        yield Static("latest memories", classes="title")
        yield Records(id="latest", markup=False)
        yield Footer(compact=True, show_command_palette=False)

    def on_mount(self) -> None:
        self.query_one("#panels").styles.height = "auto"
        self.query_one("#latest").focus()
        self._look()
        self._listener.start()
        self.set_interval(EVENTS_EVERY_S, self._show_events)

    def on_unmount(self) -> None:
        self._over.set()
        self._listener.stop()
        self._looks.close()
        self._calls.close()

    # ------------------------------------------------------------------ looks

    @work(thread=True, group="looks")
    def _look(self) -> None:
        """Read and post what came, until the end."""
        while not self._over.is_set():
            try:
                self.post_message(Read(self._feed.read()))
            except MnemosynedError as error:
                self._feed.forget_seen()
                self.post_message(Unreachable(error.message))
            self._over.wait(EVERY_S)
        self._looks.close()  # the last look may have ended after the view

    def on_read(self, message: Read) -> None:
        snapshot, minute = message.snapshot, self._feed.minute
        stats = snapshot.stats
        self._paused = stats.sleep.paused_until is not None
        self._put_out(lost=False)
        cycles = CYCLES_SHOWN_TALL if self._tall else CYCLES_SHOWN
        self._put("heading", [view.heading(stats, minute.newest)])
        self._put("tiers", view.tiers(stats, minute.memories_per_s()))
        self._put("activity", view.activity(minute.rows()))
        self._put(
            "sleep",
            [
                view.sleep(stats.sleep, snapshot.watched_s),
                *view.cycles(snapshot.cycles, cycles),
            ],
        )
        self._put("hooks", view.hooks(stats.agents, datetime.now(UTC)))
        self._put("problems", view.problems(stats))
        self._show_latest(snapshot.latest)

    def _show_events(self) -> None:
        """Show the newest events, however many have come since the last look."""
        events = list(self._events)
        if events == self._events_shown:
            return
        self._events_shown = events
        limit = EVENTS_SHOWN_TALL if self._tall else EVENTS_SHOWN
        self._put("events", view.events(events, limit))

    @property
    def _tall(self) -> bool:
        """Whether the terminal has room for more lines."""
        return bool(self.size.height >= TALL_ROWS)

    def on_unreachable(self, message: Unreachable) -> None:
        self._put("heading", [view.lost(message.reason)])
        self._put_out(lost=True)

    def _put_out(self, *, lost: bool) -> None:
        """Dim the figures while no daemon answers."""
        self.screen_stack[0].query_one("#panels").set_class(lost, "lost")

    def _put(self, id: str, lines: Sequence[view.Line]) -> None:
        """Show lines in a panel of the main screen, whatever lies above it."""
        panel = self.screen_stack[0].query_one(f"#{id}", Static)
        panel.update(Content("\n").join(styled(line) for line in lines))

    def _show_latest(self, records: Sequence[MemoryRecord]) -> None:
        if records == self._shown:
            return
        self._shown = records
        latest = self.screen_stack[0].query_one("#latest", OptionList)
        chosen = latest.highlighted_option
        latest.clear_options()
        latest.add_options(
            Option(
                styled(
                    view.record_line(record.created_at, record.source, record.content)
                ),
                id=record.id,
            )
            for record in records
        )
        ids = [record.id for record in records]
        known = chosen is not None and chosen.id in ids
        latest.highlighted = ids.index(chosen.id) if known and chosen.id else 0

    # ------------------------------------------------------------------- keys

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        if event.option_id:
            self.push_screen(RecordScreen(self._calls, event.option_id))

    def action_search(self) -> None:
        """Ask for words."""
        if isinstance(self.screen, SearchScreen):
            self.screen.ask_again()
        else:
            self.push_screen(SearchScreen(self._calls))

    def action_help(self) -> None:
        """Show the keys."""
        if not isinstance(self.screen, HelpScreen):
            self.push_screen(HelpScreen())

    def action_sleep(self) -> None:
        """Run a cycle; what it did is told when it is over."""
        self.notify("a sleep cycle was asked for")
        self._call(Sleep(), _slept)

    def action_pause(self) -> None:
        """Let no cycle start by itself for an hour, or again."""
        self._call(Sleep(pause_minutes=0 if self._paused else PAUSE_MINUTES), _paused)

    @work(thread=True, group="calls")
    def _call(self, request: Request[R], words: Callable[[R], str]) -> None:
        """Call the daemon and tell what came of it."""
        try:
            answer = words(self._calls.call(request))
        except MnemosynedError as error:
            self.call_from_thread(self.notify, error.message, severity="error")
        else:
            self.call_from_thread(self.notify, answer)


def _slept(report: CycleReport) -> str:
    if report.status is CycleStatus.NOTHING_TO_DO:
        return "nothing to do: no memory is old enough (mnem sleep --force takes all)"
    episodes = counted(report.promoted, "episode")
    return f"{counted(report.evicted, 'memory')} became {episodes}"


def _paused(report: CycleReport) -> str:
    if report.held_until is None:
        return "cycles start by themselves again"
    return f"no cycle starts by itself until {when(report.held_until)}"


def run(looks: Connection, calls: Connection) -> None:
    """Show the live view until `q`."""
    Top(looks, calls).run()
