"""The data of `mnem top`, read from the daemon: state, events and figures; its panels as lines."""

from __future__ import annotations

import re
from collections import Counter, defaultdict, deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from time import monotonic

from click import style

from mnemosyned import errors, instants
from mnemosyned.cli.commands.now import event_text
from mnemosyned.cli.output.terminal import count_of, duration_text, local_time
from mnemosyned.client.connection import Connection
from mnemosyned.memory.consolidation import GroupStatus, LogEntry
from mnemosyned.memory.values import AgentActivity, MemoryRecord, Tier
from mnemosyned.text.display import escape_line
from mnemosyned.verbs.listing import ListMemories
from mnemosyned.verbs.upkeep import Event, EventKind, Log, SleepStatus, Stats, Status

SAMPLES_MAX = 61
"""Samples of a minute, one a second."""
RATE_SAMPLES = 6
"""Samples for a rate, over some five seconds."""
GROUPS: Mapping[str, frozenset[str]] = {
    "remember": frozenset({"remember", "remember_many"}),
    "recall": frozenset({"recall"}),
    "context": frozenset({"context", "compact"}),
    "hooks": frozenset({"/hooks"}),
    "MCP": frozenset({"/mcp"}),
}
"""Rows of the view with the verbs or paths of their requests."""
_DURATIONS = "mnemosyned_request_duration_seconds"
_LINE = re.compile(r"(?P<name>[a-z_]+)(?:\{(?P<labels>.*)\})? (?P<value>\S+)")
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')


@dataclass(slots=True)
class Figures:
    """Figures from the daemon's metrics page at one moment."""

    moment: float
    """Seconds of a clock that only goes forward."""
    started_at: float = 0.0
    """The start of the daemon's process."""
    resident_bytes: float = 0.0
    memories: float = 0.0
    """Originals kept, in working memory and in the archive."""
    buckets: defaultdict[str, Counter[float]] = field(
        default_factory=lambda: defaultdict(Counter)
    )
    """By group: requests that took at most so many seconds."""
    requests: Counter[str] = field(default_factory=Counter)
    failures: Counter[str] = field(default_factory=Counter)
    """By group: requests that were answered with an error."""


@dataclass(frozen=True, slots=True)
class RequestRow:
    """Rate and latencies of one group of requests over the last minute."""

    name: str
    per_s: float
    p50_s: float | None
    """None if none was answered in the last minute."""
    p95_s: float | None
    total: int
    failures: int


def read_figures(page: str, *, moment: float) -> Figures:
    """Return the figures in the daemon's metrics page, in Prometheus's format; 0 if missing.

    `moment` is the time of reading by a monotonic clock, in seconds.
    """
    figures = Figures(moment)
    for match in filter(None, map(_LINE.fullmatch, page.splitlines())):
        name, value = match["name"], float(match["value"])
        labels = dict(_LABEL.findall(match["labels"] or ""))
        verb = labels.get("verb", "")
        group = next((group for group, verbs in GROUPS.items() if verb in verbs), "")
        if name == f"{_DURATIONS}_bucket" and group:
            figures.buckets[group][float(labels["le"])] += int(value)
        elif name == f"{_DURATIONS}_count" and group:
            figures.requests[group] += int(value)
            figures.failures[group] += int(value) if labels["status"] >= "400" else 0
        elif name == "mnemosyned_memories" and labels.get("tier") != "episodic":
            figures.memories += value
        elif name == "process_start_time_seconds":
            figures.started_at = value
        elif name == "process_resident_memory_bytes":
            figures.resident_bytes = value
    return figures


class LastMinute:
    """Samples of the figures over the last minute; a restart of the daemon clears them."""

    def __init__(self) -> None:
        self._samples = deque([Figures(0.0)], maxlen=SAMPLES_MAX)

    def add(self, figures: Figures) -> None:
        """Add a sample; if the daemon restarted after the previous sample, remove all previous samples."""
        if figures.started_at != self.newest.started_at:
            self._samples.clear()
        self._samples.append(figures)

    @property
    def newest(self) -> Figures:
        """The newest sample; an empty sample if none was added."""
        return self._samples[-1]

    def rows(self) -> list[RequestRow]:
        """Return rates and latencies of each group of requests."""
        newest, rows = self.newest, []
        for name in GROUPS:
            taken = Counter(newest.buckets[name])
            if len(self._samples) > 1:
                taken.subtract(self._samples[0].buckets[name])
            row = RequestRow(
                name=name,
                per_s=self._per_s(newest.requests[name] - self._before.requests[name]),
                p50_s=percentile(taken, 0.5),
                p95_s=percentile(taken, 0.95),
                total=newest.requests[name],
                failures=newest.failures[name],
            )
            rows.append(row)
        return rows

    def memories_per_s(self) -> float:
        """Return the growth of the store in memories per second, over some five seconds."""
        return self._per_s(self.newest.memories - self._before.memories)

    @property
    def _before(self) -> Figures:
        """The sample of some five seconds ago, from which rates are computed."""
        return self._samples[max(0, len(self._samples) - RATE_SAMPLES)]

    def _per_s(self, grown: float) -> float:
        """Return a growth since the sample `_before` per second; 0 if no time has passed."""
        seconds = self.newest.moment - self._before.moment
        return grown / seconds if seconds > 0 else 0.0


def percentile(buckets: Mapping[float, int], share: float) -> float | None:
    """Return the value below which a share (0 to 1) of a histogram's values lies, interpolated.

    `buckets` maps each upper bound to the number of values up to it. None without values.
    """
    bounds = sorted(buckets)
    total = buckets[bounds[-1]] if bounds else 0
    if total <= 0:
        return None
    wanted = share * total
    lower, below = 0.0, 0
    for bound in bounds:
        count = buckets[bound]
        if count >= wanted and bound != float("inf"):
            within = (wanted - below) / (count - below)
            return lower + (bound - lower) * within
        if bound != float("inf"):
            lower, below = bound, count
    return lower


RUNNING_LOG_S = 2.0
"""Seconds between two looks at the log while a cycle runs."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The daemon's state at one moment, as the view shows it."""

    stats: Stats
    cycles: Sequence[LogEntry]
    latest: Sequence[MemoryRecord]
    watched_s: float
    """Seconds since the view first saw the sleep cycle running; 0 if none runs."""


class Feed:
    """Reads the daemon's state for the view, in one thread at a time.

    Reading the log or the newest memories counts as a request, and the daemon defers work while
    there are requests: both are read again only after a change of the state.
    """

    def __init__(self, connection: Connection) -> None:
        self.minute = LastMinute()
        self._connection = connection
        self._cycles: Sequence[LogEntry] = ()
        self._latest: Sequence[MemoryRecord] = ()
        self.seen: dict[str, object] = {}
        """What was read last, by name: without it, `read` reads the log and the newest again."""
        self._running_since: float | None = None

    def read(self) -> Snapshot:
        """Return the daemon's state, and add its figures to `minute`. Raises `MnemosynedError`."""
        stats = self._connection.call(Status())
        try:
            page = self._connection.page("/metrics")
        except errors.UnknownVerb:  # as for one of its owners
            page = ""
        self.minute.add(read_figures(page, moment=monotonic()))
        watched_s = self._watched_s(stats)
        looks = int(watched_s // RUNNING_LOG_S)
        if self._save_if_changed("cycles", (stats.pid, stats.sleep.last_cycle, looks)):
            self._cycles = self._connection.call(Log(limit=300)).rows
        totals = {
            tier: (total.count, total.characters) for tier, total in stats.tiers.items()
        }
        if self._save_if_changed("latest", (stats.pid, totals)):
            newest = ListMemories(limit=100)
            self._latest = self._connection.call(newest).memories
        return Snapshot(stats, self._cycles, self._latest, watched_s)

    def _save_if_changed(self, name: str, state: object) -> bool:
        """Save a state under a name; return whether it differs from the state saved before."""
        changed = self.seen.get(name) != state
        self.seen[name] = state
        return changed

    def _watched_s(self, stats: Stats) -> float:
        """Return the seconds since `read` first saw the sleep cycle running; 0 if none runs."""
        if not stats.sleep.running:
            self._running_since = None
            return 0.0
        now = monotonic()
        if self._running_since is None:
            self._running_since = now
        return now - self._running_since


BAR_CELLS = 24
HOOKS_SHOWN_MAX = 3
PROBLEMS_SHOWN_MAX = 4
VERBATIM = "verbatim"
"""The summarizer of groups that are not summarized."""


def heading_line(stats: Stats, resident_bytes: float) -> str:
    """Return the heading of the view: the daemon's health, uptime, and sizes in memory and disk."""
    state = style("healthy", fg="green")
    if stats.warnings or stats.clock:
        state = style("warning", fg="yellow")
    if stats.problems:
        state = style("bad", fg="red")
    sizes = [f"up {duration_text(stats.uptime_s)}"]
    sizes += [f"{resident_bytes / 1e6:.0f} MB in memory"] if resident_bytes else []
    if stats.bytes_on_disk:
        sizes.append(f"{stats.bytes_on_disk / 1e6:.1f} MB on disk")
    return "  ".join([style("mnem top", bold=True), state, *sizes])


def tier_lines(stats: Stats, per_s: float) -> list[str]:
    """Return a line for each tier with its counts, and the growth of working memory."""
    working = stats.tiers[Tier.WORKING]
    share = working.count / stats.wm_max if stats.wm_max else 0.0
    coming = f"  {per_s:+.1f} a second" if round(per_s, 1) else ""
    due = f"  {stats.sleep.due:,} due" if stats.sleep.due else ""
    bar = style(filled_bar(share), bold=True)
    further = {Tier.WORKING: f"of {stats.wm_max:,} {bar}{due}{coming}"}
    for tier, noun in ((Tier.EPISODIC, "summary"), (Tier.ARCHIVE, "original")):
        totals = stats.tiers[tier]
        things = count_of(totals.count, noun).partition(" ")[2]
        since = f" since {local_time(totals.oldest)[:10]}" if totals.oldest else ""
        size = count_of(totals.characters, "character")
        further[tier] = f"{things}, {size}{since}"
    return [
        f"{style(f'{tier.value:<10}', dim=True)}{stats.tiers[tier].count:>9,} {rest}"
        for tier, rest in further.items()
    ]


def filled_bar(share: float) -> str:
    """Return a bar of `BAR_CELLS` cells, filled to `share` between 0 and 1."""
    filled = round(max(0.0, min(1.0, share)) * BAR_CELLS)
    return "█" * filled + "░" * (BAR_CELLS - filled)


def request_lines(rows: Sequence[RequestRow]) -> list[str]:
    """Return the lines of a table of requests: rate, latencies and failures of each group."""
    head = f"{'':<10}{'a second':>9}{'p50':>10}{'p95':>10}{'in all':>12}{'failed':>9}"
    lines = [style(head, dim=True)]
    for row in rows:
        failed = f"{row.failures:>9,}"
        lines.append(
            f"{style(f'{row.name:<10}', dim=True)}{row.per_s:>9.1f}"
            f"{short_duration(row.p50_s):>10}{short_duration(row.p95_s):>10}{row.total:>12,}"
            f"{style(failed, fg='red') if row.failures else failed}"
        )
    return lines


def short_duration(seconds: float | None) -> str:
    """Return seconds as `1.2 s` or `3.4 ms`; a dash for None."""
    if seconds is None:
        return "-"
    if seconds >= 1:
        return f"{seconds:.1f} s"
    return f"{seconds * 1_000:.1f} ms"


def sleep_line(status: SleepStatus, watched_s: float) -> str:
    """Return a line about the cycle that runs (watched for `watched_s`), the pause, or the next cycle."""
    if progress := status.progress:
        share = progress.done / progress.total if progress.total else 0.0
        left = watched_s / share * (1 - share) if share > 0 else 0.0
        bar = style(filled_bar(share), fg="green")
        rest = f", {duration_text(left)} left" if left >= 1 else ""
        done = f"{progress.done:,} of {progress.total:,} {bar} {share:.0%}{rest}"
        return f"{style('sleeping', bold=True)}  {done}"
    if status.running:
        return f"{style('sleeping', bold=True)}  the cycle has just begun"
    if status.paused_until:
        until = local_time(status.paused_until)
        return f"{style('paused', fg='yellow')}    until {until}; p resumes"
    coming = "none: auto_sleep is off"
    if status.next_cycle:
        waits = f"; waits: {escape_line(status.waits_for)}" if status.waits_for else ""
        coming = f"{local_time(status.next_cycle)}, {status.schedule}{waits}"
    return f"{style('next cycle', dim=True)} {coming}"


def cycle_lines(entries: Sequence[LogEntry], limit: int) -> list[str]:
    """Return a line for each of the last `limit` cycles in the log, newest first."""
    by_cycle: dict[str, list[LogEntry]] = {}
    for entry in entries:
        by_cycle.setdefault(entry.cycle, []).append(entry)
    lines: list[str] = []
    for groups in list(by_cycle.values())[:limit]:
        newest = groups[0]
        items = sum(group.items_consolidated for group in groups)
        memories = f"{newest.trigger:<9}{count_of(items, 'memory')}"
        if any(group.undone_at for group in groups):
            memories += style(", undone", fg="yellow")
        parts = [memories, *_writer_counts(groups)]
        if failed := sum(group.status is GroupStatus.FAILED for group in groups):
            parts.append(style(f"{count_of(failed, 'group')} failed", fg="red"))
        stamp = style(local_time(newest.created_at), dim=True)
        lines.append(f"{stamp}  {'; '.join(parts)}")
    return lines or [style("no cycle yet", dim=True)]


def _writer_counts(groups: Sequence[LogEntry]) -> Iterator[str]:
    """Yield how many of a cycle's summaries each kind of writer made: "3 summaries by the model"."""
    numbers: Counter[str] = Counter()
    for group in groups:
        if group.status is GroupStatus.FAILED:
            continue
        writer = "by the model" if group.model_share else "without a model"
        if group.fallback_reason:
            writer = "without the model, which failed"
        elif group.status is GroupStatus.VERBATIM or group.summarizer == VERBATIM:
            writer = "word for word"
        numbers[writer] += 1
    for writer, number in numbers.items():
        is_kept = writer == "word for word"
        things = f"{number:,} kept" if is_kept else count_of(number, "summary")
        yield f"{things} {writer}"


def hook_lines(agents: Sequence[AgentActivity], now: datetime) -> list[str]:
    """Return a line for the hooks of each tool, the last used first, and a count of the rest."""
    by_client: dict[str, list[AgentActivity]] = defaultdict(list)
    for agent in sorted(agents, key=lambda agent: agent.called_at, reverse=True):
        by_client[agent.client].append(agent)
    lines: list[str] = []
    for client, events in list(by_client.items())[:HOOKS_SHOWN_MAX]:
        stored = sum(event.stored for event in events)
        characters = sum(event.characters for event in events)
        since = max(0.0, (now - events[0].called_at).total_seconds())
        counts = f"{stored:,} stored, {characters:,} characters shown"
        name = style(f"{escape_line(client):<14}", dim=True)
        line = f"{name}{counts}, {duration_text(since)} ago"
        if failures := sum(event.failures for event in events):
            line += style(f", {failures:,} failed", fg="red")
        lines.append(line)
    if len(by_client) > HOOKS_SHOWN_MAX:
        lines.append(style(f"and {len(by_client) - HOOKS_SHOWN_MAX} more", dim=True))
    return lines or [style("no agent's hook has called yet: mnem setup", dim=True)]


def event_lines(happened: Sequence[Event], limit: int) -> list[str]:
    """Return up to `limit` of the newest events as lines, oldest first; failed requests are preferred."""
    news = [event for event in happened if event.kind is not EventKind.CYCLE_PROGRESS]
    failures = [event for event in news if event.kind is EventKind.REFUSED]
    others = [event for event in news if event.kind is not EventKind.REFUSED]
    kept_failures = failures[-max(1, limit - 1) :]
    room = limit - len(kept_failures)
    shown = sorted(
        [*kept_failures, *(others[-room:] if room else ())], key=lambda event: event.at
    )
    return [_event_line(event) for event in shown] or [style("no events yet", dim=True)]


def _event_line(event: Event) -> str:
    """Return the line of an event: time, words and session; a failed request is red."""
    time = instants.in_zone(event.at, None).isoformat(" ")[11:19]
    words = escape_line(event_text(event) or event.kind.value.replace("_", " "))
    if event.kind is EventKind.REFUSED:
        words = style(words, fg="red")
    session = event.session or next((new.session for new in event.memories), "")
    where = style(f"  {escape_line(session)}", dim=True) if session else ""
    return f"{style(time, dim=True)}  {words}{where}"


def problem_lines(stats: Stats) -> list[str]:
    """Return lines for the first problems and warnings, and the number of the rest, or "no problems"."""
    shown = [
        *((problem, "red") for problem in stats.problems),
        *((warning, "yellow") for warning in stats.warnings),
        *(((stats.clock, "yellow"),) if stats.clock else ()),
    ]
    lines = [
        style(escape_line(text), fg=color) for text, color in shown[:PROBLEMS_SHOWN_MAX]
    ]
    if len(shown) > PROBLEMS_SHOWN_MAX:
        lines.append(f"and {len(shown) - PROBLEMS_SHOWN_MAX} more: mnem status")
    return lines or [style("no problems", dim=True)]


def record_line(moment: datetime, source: str | None, content: str) -> str:
    """Return a memory or hit as one line: time, source and content."""
    time = instants.in_zone(moment, None).isoformat(" ")[5:16]
    head = f"{time}  {escape_line(source or '-'):<12.12}  "
    return f"{style(head, dim=True)}{escape_line(' '.join(content.split()))}"
