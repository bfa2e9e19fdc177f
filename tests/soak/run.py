"""A soak: many clients on one real daemon for a while, and everything that went wrong."""

import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from e2e.daemons import Daemon, running
from soak.clients import Client, Pace
from soak.ledger import merged
from soak.sampler import Samples, sampling
from soak.verdict import findings

PROGRESS_S = 10.0
CALM_S = 12.0
"""After the load: what is released when nothing is asked is released by then."""
STOP_S = 120.0
ERRORS = ("error", "critical")
LOGGED = {
    "group_failed batch_changed": "a client restored or pinned what the cycle was summarizing",
}
"""Errors that the log of a busy daemon may have, and why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Soaked:
    """What a soak did, saw and found wrong."""

    seconds: float
    requests: Counter[str]
    expected_errors: Counter[str]
    slowest: dict[str, float]
    memories: int
    forgotten: int
    samples: Samples
    calm_mb: float
    """Resident memory a while after the load."""
    file_mb: float
    findings: list[str]


def soak(
    home: Path,
    *,
    seconds: float,
    clients: int,
    seed: int,
    forgets_per_minute: float,
    pause_s: float,
    say: Callable[[str], None],
    every_s: float = 1.0,
) -> Soaked:
    """Put the load on a daemon of its own, stop it, and check what it leaves."""
    # Cycles run when a client asks, and early when working memory is full; the last at the stop.
    with running(home, anew=True, MNEMOSYNE_SLEEP_SHUTDOWN_DEADLINE_S="30") as daemon:
        pace = Pace(forgets_per_minute)
        agents = [
            Client(number, daemon.socket, seed=seed, pace=pace, pause_s=pause_s)
            for number in range(clients)
        ]
        with sampling(daemon.process.pid, every_s=every_s) as samples:
            took_s = _work(agents, seconds, lambda: say(_progress(agents, samples)))
            loaded = len(samples.taken)
            time.sleep(CALM_S)
        calm = samples.taken[-1].resident_mb
        del samples.taken[loaded:]
        ledger = merged(agent.ledger for agent in agents)
        found = [finding for agent in agents for finding in agent.findings]
        found += _end(daemon)
    say("checking the file")
    found += findings(daemon.database, ledger)
    return Soaked(
        seconds=took_s,
        requests=sum((agent.counts for agent in agents), Counter()),
        expected_errors=sum((agent.expected for agent in agents), Counter()),
        slowest=_slowest(agents),
        memories=len(set(ledger.expected())),
        forgotten=len(ledger.forgotten_ids),
        samples=samples,
        calm_mb=calm,
        file_mb=daemon.database.stat().st_size / 1_000_000,
        findings=found,
    )


def _work(agents: list[Client], seconds: float, report: Callable[[], None]) -> float:
    """Let all agents work for so long; answers how long it took until the last ended."""
    began = time.monotonic()
    threads = [
        threading.Thread(target=agent.run, args=(began + seconds,)) for agent in agents
    ]
    for thread in threads:
        thread.start()
    told = began
    for thread in threads:
        while thread.is_alive():
            thread.join(0.5)
            if time.monotonic() - told > PROGRESS_S:
                told = time.monotonic()
                report()
    return time.monotonic() - began


def _end(daemon: Daemon) -> list[str]:
    """Finish what is due, stop the daemon and read its log."""
    ended = daemon.process.poll()
    if ended is not None:
        return [f"the daemon ended by itself with {ended}"]
    daemon.process.terminate()
    code = daemon.process.wait(STOP_S)
    wrong = [f"the daemon ended with {code}"] if code else []
    events = Counter(
        f"{line['event']} {line.get('code', line.get('error', ''))}".strip()
        for line in daemon.events()
        if line["level"] in ERRORS
    )
    return wrong + [
        f"logged {count} times: {event}"
        for event, count in events.items()
        if event not in LOGGED
    ]


def _progress(agents: list[Client], samples: Samples) -> str:
    last = samples.taken[-1]
    requests = sum(agent.counts.total() for agent in agents)
    wrong = sum(len(agent.findings) for agent in agents)
    return (
        f"{last.seconds:5.0f} s  {requests:7,} requests  {last.resident_mb:4.0f} MB  "
        f"{last.descriptors} descriptors  {last.threads} threads  {wrong} findings"
    )


def _slowest(agents: list[Client]) -> dict[str, float]:
    verbs = {verb for agent in agents for verb in agent.slowest}
    return {
        verb: max(agent.slowest.get(verb, 0.0) for agent in agents)
        for verb in sorted(verbs)
    }
