"""Further processes of one daemon, which answer owners' requests at the same address on other cores.

The first process starts them, starts those again that end, and alone serves the Unix socket, makes
the rounds of sleep and does the upkeep. Each listens on the address itself, and the kernel shares
the connections among them. An event is numbered by the first process and handed to all, so that a
reader sees what happens in any of them. Which owners have readers is in memory that all share:
without readers nothing is sent.
"""

from __future__ import annotations

import mmap
import os
import queue
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import partial
from multiprocessing.connection import Connection
from weakref import WeakValueDictionary

import msgspec

from mnemosyned.daemon.metrics import Collector, Sample
from mnemosyned.logs import logger
from mnemosyned.service import events, service
from mnemosyned.verbs.upkeep import Event

COMMAND = (
    sys.executable,
    "-P",
    "-c",
    "from mnemosyned.daemon.main import main; main()",
)
SERVICE_VARIABLES = ("NOTIFY_SOCKET", "WATCHDOG_PID", "WATCHDOG_USEC")
"""Environment variables of systemd, which hears from the first process only."""
ONCE = ("process_start_time_seconds",)
"""Metrics that are not summed over processes."""
SLOTS = 4_096
"""Number of slots for owners with readers, by owner number; two owners in one slot only cause more messages."""
ALWAYS = 2**63
MESSAGES_MAX = 10_000
"""Maximum messages that wait for a process; more are lost, and readers get an event about that."""
READY_S = 15.0
"""Seconds that the first process waits for the others at its start."""
ANSWER_S = 2.0
SILENT_S = 60.0
"""Seconds without an answer after which a process is killed."""
PAUSE_MIN_S, PAUSE_MAX_S = 0.5, 60.0
"""Pause before an ended process is started again; doubled for one that ran less than a minute."""
STOP_S = 20.0
"""Seconds to wait, beyond the time of draining, for processes that have to stop."""
READY, EVENT, LOST, SAMPLES = range(4)

Message = tuple[int, int, int, bytes]
"""Kind, owner number, event number, and an event or samples, encoded."""
_MESSAGES = msgspec.msgpack.Decoder(Message)
_EVENTS = msgspec.msgpack.Decoder(Event)
_SAMPLES = msgspec.msgpack.Decoder(list[Sample])

log = logger()


class SharedReaders:
    """Which owners have readers of events, in memory that all processes of a daemon share.

    Each process writes a row of its own: until when an owner has readers there, in milliseconds of
    the monotonic clock.
    """

    def __init__(self, descriptor: int, process: int, processes: int) -> None:
        """Map the file `descriptor` for the process with this number of so many."""
        size = 8 * SLOTS * processes
        os.ftruncate(descriptor, size)
        self._table = memoryview(mmap.mmap(descriptor, size)).cast("Q")
        self._process = process
        self._processes = processes

    def has_readers(self, owner: int) -> bool:
        """Return whether an owner has readers of events in any process, or had some a moment ago."""
        now_ms, slot = time.monotonic_ns() // 1_000_000, owner % SLOTS
        return any(
            self._table[process * SLOTS + slot] > now_ms
            for process in range(self._processes)
        )

    def note(self, slot: int, *, has_readers: bool) -> None:
        """Note whether owners of a slot, their number modulo `SLOTS`, have readers in this process.

        Without readers, the owners count as read for `KEPT_S` more seconds, as readers may come back.
        """
        kept_ms = time.monotonic_ns() // 1_000_000 + int(events.KEPT_S * 1_000)
        until_ms = ALWAYS if has_readers else kept_ms
        self._table[self._process * SLOTS + slot] = until_ms

    def end(self, process: int) -> None:
        """Note the end of a process: its owners count as having readers for at most `KEPT_S` more seconds."""
        until_ms = time.monotonic_ns() // 1_000_000 + int(events.KEPT_S * 1_000)
        first = process * SLOTS
        for place in range(first, first + SLOTS):
            self._table[place] = min(self._table[place], until_ms)


class Link:
    """Messages between two processes: sent by a thread, so that nobody waits for the other one."""

    def __init__(self, end: socket.socket) -> None:
        self._connection = Connection(end.detach())
        self._queue: queue.Queue[Message | None] = queue.Queue(MESSAGES_MAX)
        self._is_lossy = False
        threading.Thread(target=self._send_queued, name="link", daemon=True).start()

    def send(self, message: Message) -> None:
        """Queue a message; if the queue is full, drop it, and send a notice of the loss later."""
        try:
            self._queue.put_nowait(message)
        except queue.Full:
            self._is_lossy = True

    def receive(self) -> Iterator[Message]:
        """Yield messages until the other process ends."""
        with suppress(EOFError, OSError):
            while True:
                yield _MESSAGES.decode(self._connection.recv_bytes())

    def close(self) -> None:
        """Make the sending thread end after the queued messages, without waiting for it."""
        with suppress(queue.Full):
            self._queue.put_nowait(None)

    def _send_queued(self) -> None:
        """Send queued messages until the link is closed or the other process has ended."""
        with suppress(OSError), self._connection:
            while message := self._queue.get():
                if self._is_lossy:
                    self._is_lossy = False
                    self._connection.send_bytes(
                        msgspec.msgpack.encode((LOST, 0, 0, b""))
                    )
                self._connection.send_bytes(msgspec.msgpack.encode(message))


class ProcessRelay:
    """The buses of owners' events in one process, which pass events on to the other processes."""

    def __init__(self, readers: SharedReaders, *, to_first: Link | None) -> None:
        """Send events to the first process by `to_first`; None in the first process itself."""
        self.links: dict[int, Link] = {}
        """From the first process to each other one, by its number."""
        self._readers = readers
        self._to_first = to_first
        self._changing = threading.Lock()
        self._buses: WeakValueDictionary[int, events.EventBus] = WeakValueDictionary()
        self._read: dict[int, events.EventBus] = {}
        """Those with readers in any process: their events are kept for readers that come back."""
        self._counts: Counter[int] = Counter()
        self._numbers: Counter[int] = Counter()

    def bus(self, owner: int) -> events.EventBus:
        """Return the bus of an owner's events in this process."""
        with self._changing:
            return self._find_bus(owner)

    def has_readers(self, owner: int) -> bool:
        """Return whether an owner has readers in any process, or had some a moment ago."""
        return self._readers.has_readers(owner)

    def count_readers(self, owner: int, change: int) -> None:
        """Add `change` to an owner's number of readers; at 0, note that readers may come back for `KEPT_S`."""
        slot = owner % SLOTS
        with self._changing:
            self._counts[slot] += change
            self._readers.note(slot, has_readers=bool(self._counts[slot]))

    def send(self, owner: int, event: Event) -> None:
        """Send an event of an owner to all processes; the first process numbers it."""
        message = (EVENT, owner, 0, msgspec.msgpack.encode(event))
        if self._to_first:
            self._to_first.send(message)
        else:
            self.spread(message)

    def spread(self, message: Message) -> None:
        """Send a message to all processes: an event with its owner's next number, or a notice of a loss."""
        kind, owner, _, encoded = message
        # Within the lock: all processes get the events of an owner in one order.
        with self._changing:
            self._numbers[owner] += kind == EVENT
            numbered = (kind, owner, self._numbers[owner], encoded)
            for link in self.links.values():
                link.send(numbered)
            self._deliver(numbered)

    def handle(self, message: Message) -> None:
        """Deliver a message of the first process to the readers in this process."""
        with self._changing:
            self._deliver(message)

    def _deliver(self, message: Message) -> None:
        """Hand an event to its owner's bus; for a message of the kind `LOST`, drop all readers."""
        kind, owner, number, encoded = message
        if kind == LOST:
            for bus in list(self._buses.values()):
                bus.drop_readers()
            return
        event = _EVENTS.decode(encoded)
        self._read[owner] = self._find_bus(owner)
        self._read[owner].deliver(msgspec.structs.replace(event, id=number))
        for other in [each for each, bus in self._read.items() if not bus.listening]:
            del self._read[other]

    def _find_bus(self, owner: int) -> events.EventBus:
        """Return the bus of an owner, made if missing."""
        bus = self._buses.get(owner)
        if bus is None:
            bus = events.EventBus(clock=service.SystemClock(), relay=self, owner=owner)
            self._buses[owner] = bus
        return bus


class FurtherProcess:
    """A further process's end of the link to the first process."""

    is_first = False

    def __init__(self, text: str) -> None:
        """Take what `FirstProcess` gave on the command line."""
        number, count, link, table, self.address = text.split(":", 4)
        self._link = Link(socket.socket(fileno=int(link)))
        readers = SharedReaders(int(table), int(number), int(count))
        self.relay = ProcessRelay(readers, to_first=self._link)
        self.is_orphaned = False
        """Whether the first process has ended."""
        self._collector: Collector = tuple

    def collect(self, own: Collector) -> Collector:
        """Set `own` as the source of samples for the first process, and return `own`."""
        self._collector = own
        return own

    def start(self, address: str) -> None:  # noqa: ARG002 as for the first process
        """Report this process as ready, and start a thread that answers the first process.

        When the first process ends, the thread stops this process by SIGTERM.
        """

        def answer() -> None:
            """Answer questions and deliver events until the first process ends, then end this process."""
            for message in self._link.receive():
                if message[0] == SAMPLES:
                    found = msgspec.msgpack.encode(list(self._collector()))
                    self._link.send((SAMPLES, 0, message[2], found))
                else:
                    self.relay.handle(message)
            self.is_orphaned = True
            os.kill(os.getpid(), signal.SIGTERM)

        threading.Thread(target=answer, name="first-process", daemon=True).start()
        self._link.send((READY, 0, 0, b""))


class FirstProcess:
    """Starter of the further processes: restarts each after its end, and stops all."""

    is_first = True
    is_orphaned = False

    def __init__(self, count: int, arguments: Sequence[str]) -> None:
        """Run so many processes, this one included, with the command line `arguments`."""
        self._count = count
        self._arguments = arguments
        self._table = os.memfd_create("mnemosyned-readers", os.MFD_CLOEXEC)
        self._readers = SharedReaders(self._table, 0, count)
        self.relay = ProcessRelay(self._readers, to_first=None)
        self._changed = threading.Condition()
        self._running: dict[int, subprocess.Popen[bytes]] = {}
        self._answered: dict[int, float] = {}
        """When each process answered last, by the monotonic clock."""
        self._answers: dict[int, tuple[int, bytes]] = {}
        self._asked = 0
        self._checked = 0.0
        """When the last check asked each process for an answer, by the monotonic clock."""
        self._stopped = threading.Event()
        self._threads: list[threading.Thread] = []

    def start(self, address: str) -> None:
        """Start the further processes on "host:port"; wait up to `READY_S` seconds until they are ready."""
        for number in range(1, self._count):
            thread = threading.Thread(
                target=self._supervise, args=(number, address), name=f"process-{number}"
            )
            self._threads.append(thread)
            thread.start()
        with self._changed:
            self._changed.wait_for(
                lambda: len(self._answered) == self._count - 1, READY_S
            )

    def collect(self, own: Collector) -> Collector:
        """Return a function that yields the samples of `own`, summed over all processes."""
        return partial(self.sum_samples, own)

    def check(self, received: object) -> None:
        """Pass on a SIGHUP (if `received`), kill processes silent for `SILENT_S`, and ask for an answer."""
        if received:
            self.signal_all(signal.SIGHUP)
        with self._changed:
            for number, answered in self._answered.items():
                # If this process stood still since then, so did the others: they get another turn.
                if self._checked - answered > SILENT_S:
                    log.error("process_silent", number=number)
                    self._running[number].kill()
            self._checked = time.monotonic()
            self._ask_for_samples()

    def signal_all(self, number: signal.Signals) -> None:
        """Send a signal to the further processes; after SIGTERM, ended ones are not started again."""
        if number is signal.SIGTERM:
            self._stopped.set()
        with self._changed:
            for process in self._running.values():
                process.send_signal(number)

    def close(self, drain_s: float) -> None:
        """Stop the further processes; kill those that run after `drain_s` plus `STOP_S` seconds."""
        self.signal_all(signal.SIGTERM)
        ends = time.monotonic() + drain_s + STOP_S
        for thread in self._threads:
            thread.join(max(0.0, ends - time.monotonic()))
        with self._changed:
            for process in self._running.values():
                process.kill()

    def sum_samples(self, own: Collector) -> Iterator[Sample]:
        """Yield the sums of the samples of all processes, `own` included; of a late process the last ones."""
        with self._changed:
            asked = self._ask_for_samples()
            self._changed.wait_for(
                lambda: all(
                    self._answers.get(number, (0, b""))[0] >= asked
                    for number in self._answered
                ),
                ANSWER_S,
            )
            answers = [encoded for _, encoded in self._answers.values()]
        samples = list(own())
        for encoded in answers:
            samples += _SAMPLES.decode(encoded)
        totals: dict[str, dict[tuple[object, ...], Sample]] = {}
        for sample in samples:
            key = (sample.suffix, *sorted(sample.labels.items()))
            known = totals.setdefault(sample.name, {})
            if key not in known:
                known[key] = sample
            elif sample.name not in ONCE:
                total = known[key].value + sample.value
                known[key] = sample._replace(value=total)
        for known in totals.values():
            yield from known.values()

    def _ask_for_samples(self) -> int:
        """Ask the further processes for their samples; return the number that the answers will carry."""
        self._asked += 1
        for link in self.relay.links.values():
            link.send((SAMPLES, 0, self._asked, b""))
        return self._asked

    def _supervise(self, number: int, address: str) -> None:
        """Run the process with this number, again and again until the daemon stops."""
        pause_s = PAUSE_MIN_S
        while not self._stopped.is_set():
            began = time.monotonic()
            try:
                status: int | str = self._attend_process(number, address)
            except (OSError, RuntimeError) as error:  # no memory, descriptors, threads
                status = str(error)
            if self._stopped.is_set():
                return
            lived_s = time.monotonic() - began
            pause_s = PAUSE_MIN_S if lived_s > PAUSE_MAX_S else 2 * pause_s
            pause_s = min(pause_s, PAUSE_MAX_S)
            log.error("process_ended", number=number, status=status, again_s=pause_s)
            self._stopped.wait(pause_s)

    def _attend_process(self, number: int, address: str) -> int:
        """Start the further process `number`, relay its messages until it ends, and return its exit status.

        It gets the `address` to listen on. Raises `OSError`, `RuntimeError`.
        """
        ours, theirs = socket.socketpair()
        with theirs, ours:
            given = f"{number}:{self._count}:{theirs.fileno()}:{self._table}:{address}"
            environment = {
                name: value
                for name, value in os.environ.items()
                if name not in SERVICE_VARIABLES
            }
            process = subprocess.Popen(  # noqa: S603 this program again
                [*COMMAND, *self._arguments, "--process", given],
                pass_fds=(theirs.fileno(), self._table),
                env=environment,
            )
            link = Link(ours)
        with self._changed:
            self._running[number] = process
            self.relay.links[number] = link
        if self._stopped.is_set():
            process.terminate()
        for kind, owner, sent, encoded in link.receive():
            if kind in (EVENT, LOST):
                self.relay.spread((kind, owner, sent, encoded))
                continue
            with self._changed:
                self._answered[number] = time.monotonic()
                if kind == SAMPLES:
                    self._answers[number] = sent, encoded
                self._changed.notify_all()
        status = process.wait()
        with self._changed:
            for table in (self._running, self._answered, self._answers):
                table.pop(number, None)
            del self.relay.links[number]
        link.close()
        self._readers.end(number)
        return status


ProcessGroup = FirstProcess | FurtherProcess
"""One process's connection with the other processes of the daemon."""
