"""The process: start, wait for a signal, stop."""

from __future__ import annotations

import os
import signal
import socket
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, cast

import click

from mnemosyned import errors, process_memory
from mnemosyned.assembly import build, stores
from mnemosyned.cli.output.terminal import say
from mnemosyned.client.connection import Connection
from mnemosyned.config.loading import config_file, load_config, with_default_model
from mnemosyned.config.settings import Config, LimitsConfig
from mnemosyned.daemon import metrics
from mnemosyned.daemon.http import listening, server
from mnemosyned.daemon.resources import resources
from mnemosyned.http_messages import Resource
from mnemosyned.logs import configure_logs, log_failure, logger
from mnemosyned.paths import token_path
from mnemosyned.sleep.sleeper import final_consolidation
from mnemosyned.text.word_cache import clear_word_caches
from mnemosyned.verbs.times import local_zone
from mnemosyned.verbs.upkeep import Status
from mnemosyned.version import __version__, install_command

if TYPE_CHECKING:
    from mnemosyned.assembly.owners import OwnerMemories
    from mnemosyned.daemon.owners import OwnerResources
    from mnemosyned.daemon.processes import FirstProcess, ProcessGroup


def answers_health_check(path: Path) -> bool:
    """Return True if the daemon on the Unix socket `path` says within 5 seconds that it is live."""
    try:
        with Connection(path, timeout_s=5.0) as client:
            client.page(metrics.LIVE_PATH)
    except errors.MnemosynedError:
        return False
    return True


LOG_FILE_BYTES_MAX = 5_000_000
"""Size from which a new file is begun; one older file is kept."""


class LogFile:
    """A log file that receives standard output and standard error, rotated when it is full."""

    def __init__(self, path: Path, *, bytes_max: int = LOG_FILE_BYTES_MAX) -> None:
        """Redirect standard output and error to the file at `path`. Raises `ConfigInvalid`."""
        self._path = path
        self._bytes_max = bytes_max
        try:
            self.open()
        except OSError as error:
            raise errors.ConfigInvalid(
                f"--log-file: {path} cannot be written to: {error.strerror}; remove it, or give "
                "it and its folder to the user of the daemon"
            ) from error

    def rotate(self) -> None:
        """If the log file is full, rename it to `NAME.1` and begin a new file; ignore a failure.

        If it was deleted, begin a new one: the deleted file would grow, and nobody could read it.
        """
        with suppress(OSError):
            if not self._path.exists():
                self.open()
            elif self._path.stat().st_size >= self._bytes_max:
                self._path.replace(self._path.with_name(f"{self._path.name}.1"))
                self.open()

    def open(self) -> None:
        """Open the log file for appending, and redirect standard output and error to it."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
        descriptor = os.open(self._path, flags, 0o600)
        for standard in (1, 2):
            os.dup2(descriptor, standard)
        os.close(descriptor)


log = logger()


def notify_service_manager(*states: str) -> None:
    """Send states such as `READY=1` to systemd by sd_notify(3); do nothing without systemd."""
    address = os.environ.get("NOTIFY_SOCKET")
    if not address:
        return
    if address.startswith("@"):  # an abstract socket
        address = "\0" + address[1:]
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as channel:
            channel.settimeout(1.0)
            channel.connect(address)
            channel.sendall("\n".join(states).encode())
    except FileNotFoundError:  # `mnem start` listens until the daemon is ready
        os.environ.pop("NOTIFY_SOCKET", None)
    except OSError as error:  # a manager that does not listen is no reason to fail
        log.warning("notify_failed", address=address, reason=str(error))


EXIT_FAILED = 1
EXIT_CONFIG = 78
"""EX_CONFIG of sysexits.h: a restart will not help."""
HEARTBEAT_S = 10.0
QUIET_S = 15.0
"""Seconds without a request after which the daemon is idle, and frees its caches."""
CLOCK_JUMP_S = 5.0
"""Difference between wall clock and waiting time, in seconds, from which the machine was suspended."""
EXTENSION_S = 30
METRICS_LIMITS = LimitsConfig(threads=2, connections_max=32, body_bytes_max=1)
DRAIN_POLL_S = 0.2
"""Seconds until a second stop signal ends the drain."""
AWAIT_MIN_S, AWAIT_MAX_S = 0.25, 5.0
"""Pauses between two attempts to open a database whose server cannot be reached."""
AWAIT_TOLD_S = 600.0
"""Interval of log lines while the daemon waits for a database for the same reason."""
SWITCH_S = 0.0001
"""Interval at which Python switches threads. With Python's 5 ms, a remember next to a thread that computes, as
a cycle does, takes 30 ms at the median, and 3 ms with this."""
SERVED_SWITCH_S = 0.0005
"""Interval in a daemon that serves owners: eight questions at once take a fifth less processor time, as busy
threads are switched less often (`make bench-team`)."""
STOP_SIGNALS = {signal.SIGTERM, signal.SIGINT}


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--config",
    "file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Settings; default: mnemosyned.yaml in the configuration directory, if it exists.",
)
@click.option("--database", help="The SQLite file; wins over the settings.")
@click.option("--socket", help="The Unix socket; wins over the settings.")
@click.option(
    "--log-file",
    type=click.Path(readable=False, path_type=Path),  # `LogFile` says what is wrong
    help="Write the log there, 10 MB at most, instead of to standard error.",
)
@click.option("--process", "further", hidden=True)
@click.option("--check", is_flag=True, help="Check the settings and exit.")
@click.version_option(__version__)
def main(
    file: Path | None,
    database: str | None,
    socket: str | None,
    log_file: Path | None,
    *,
    further: str | None,
    check: bool,
) -> None:
    """Keep memory for AI agents: remember, sleep, recall. Runs until SIGTERM or SIGINT.

    SIGHUP re-reads the settings. `mnem` is the client.
    """
    os.umask(0o077)
    process_memory.forbid_core_dumps()
    process_memory.limit_heap()
    sys.setswitchinterval(SWITCH_S)
    named = {"database": database, "socket": socket}
    overrides = {key: value for key, value in named.items() if value}
    group: ProcessGroup | None = None
    if further:
        # Loaded here, as below: with one process the start need not wait for it.
        from mnemosyned.daemon.processes import FurtherProcess  # noqa: PLC0415

        joined = FurtherProcess(further)
        group, overrides["listen"] = joined, joined.address
    try:
        config = with_default_model(
            load_config(file or config_file(), overrides=overrides)
        )
        kept_log = LogFile(log_file) if log_file else None
        configure_logs(level=config.log.level, form=config.log.format)
        if check:
            build.check_settings(config)
            _load_certificate(config)
            say("the settings are valid")
            return
        if group is None and config.owners.processes > 1:
            from mnemosyned.daemon.processes import FirstProcess  # noqa: PLC0415 as above

            group = FirstProcess(config.owners.processes, sys.argv[1:])
        Daemon(
            config, file=file, overrides=overrides, log_file=kept_log, group=group
        ).run()
    except errors.MnemosynedError as error:
        say(f"mnemosyned: {error.explained}", err=True)
        code = EXIT_CONFIG if isinstance(error, errors.ConfigInvalid) else EXIT_FAILED
        raise SystemExit(code) from error


class Daemon:
    """The daemon process, from its start to its stop."""

    def __init__(
        self,
        config: Config,
        *,
        file: Path | None,
        overrides: dict[str, str],
        log_file: LogFile | None = None,
        group: ProcessGroup | None = None,
    ) -> None:
        """Take settings, their file, and the command line's `overrides` by dotted key.

        `group` connects this process with others of the same daemon.
        """
        self._config = config
        self._log_file = log_file
        self._socket = config.socket_path  # for all this life, whatever a reload says
        self._file = file
        self._overrides = overrides
        self._extended = -1.0
        self._certificate = _load_certificate(config)
        self._growth = process_memory.MemoryGrowth()
        self._owners: OwnerMemories | None = None
        self._probe = metrics.HealthProbe()
        self._group = group
        self._is_first = group is None or group.is_first
        self._others = cast("FirstProcess | None", group if self._is_first else None)
        """From the first process, those that it started."""

    def run(self) -> None:
        """Open the memories, serve until a stop signal, consolidate a last time, and close all."""
        started = time.monotonic()
        # Blocked before any thread starts, so that only the wait below receives them.
        signal.pthread_sigmask(signal.SIG_BLOCK, {*STOP_SIGNALS, signal.SIGHUP})
        config = self._config
        path = self._socket
        with ExitStack() as stack:
            activity = metrics.ServerActivity()
            served: metrics.Collector = partial(metrics.server_samples, activity)
            if self._group:
                served = self._group.collect(served)
            collectors: list[metrics.Collector] = [served, self._probe.samples]
            if certificate := self._certificate:
                name = "mnemosyned_certificate_expiry_timestamp_seconds"
                collectors.append(lambda: [metrics.Sample(name, certificate.ends)])
            if config.metrics_listen and self._is_first:
                self._serve_metrics(stack, config.metrics_listen, collectors)
            if config.tracing.endpoint:
                self._trace_requests(stack, config.tracing.endpoint, activity)
            memory = self._await_memories(stack)
            if memory is None:
                return
            activity.pools["database"] = memory.store.maintenance.pool_figures
            collectors.append(partial(metrics.memory_samples, memory))
            if self._owners:
                collectors.append(partial(metrics.owner_samples, self._owners))
            stack.callback(collectors.clear)  # before the memories are closed
            owner_resources: OwnerResources | None = None
            if self._owners:
                # Loaded here: a memory with one owner need not wait for it.
                from mnemosyned.daemon.owners import resources_of_owners  # noqa: PLC0415

                owner_resources = resources_of_owners(self._owners, memory)
            listeners = self._open_listeners(stack, owner_resources)
            self._probe.memory = memory
            loop = stack.enter_context(
                server.EventLoop(
                    listeners,
                    answer=server.make_handler(
                        resources(memory, collectors),
                        activity,
                        tcp_resources=owner_resources,
                    ),
                    limits=config.limits,
                    activity=activity,
                    owner_of=owner_resources.guess_owner if owner_resources else None,
                    probe=self._probe,
                )
            )
            self._probe.loop = loop
            if self._others:
                stack.callback(self._others.close, config.shutdown_drain_s)
            if self._group:
                self._group.start(listeners[-1].access.address)
            notify_service_manager("READY=1", f"STATUS=serving on {path}")
            log.info(
                "ready",
                pid=os.getpid(),
                socket=str(path),
                database=str(config.location),
                start_s=round(time.monotonic() - started, 3),
            )
            self._wait_for_stop(memory, loop)
            if self._others:
                self._others.signal_all(signal.SIGTERM)
            self._drain(loop)
            self._finish_work(memory)
        log.info("stopped", uptime_s=round(time.monotonic() - started, 3))

    def _serve_metrics(
        self, stack: ExitStack, address: str, collectors: Sequence[metrics.Collector]
    ) -> None:
        """Serve only metrics and probes on "host:port", in threads of their own, until `stack` closes."""
        listener = stack.enter_context(listening.listen_for_metrics(address))
        activity = metrics.ServerActivity()
        table = {metrics.METRICS_PATH: Resource(metrics.metrics_route(collectors))}
        stack.enter_context(
            server.EventLoop(
                [listener],
                answer=server.make_handler(table, activity),
                limits=METRICS_LIMITS,
                activity=activity,
                probe=self._probe,
            )
        )

    def _trace_requests(
        self, stack: ExitStack, endpoint: str, activity: metrics.ServerActivity
    ) -> None:
        """Send traces to `endpoint` until `stack` closes. Raises `ConfigInvalid` if the package is missing."""
        try:
            # Loaded here: without traces nobody needs the package.
            from mnemosyned.daemon.tracing import trace_requests  # noqa: PLC0415
        except ImportError as error:
            raise errors.ConfigInvalid(
                f"tracing.endpoint needs OpenTelemetry: {install_command('otel')}",
                field="tracing.endpoint",
            ) from error
        activity.trace = stack.enter_context(trace_requests(endpoint))

    def _open_listeners(
        self, stack: ExitStack, owner_resources: OwnerResources | None
    ) -> list[listening.Listener]:
        """Listen on the socket, in the first process only, and on the TCP address of the settings."""
        config, listeners = self._config, []
        if self._is_first:
            unix = listening.listen_on_socket(self._socket)
            listeners.append(stack.enter_context(unix))
        if config.listen:
            tcp = listening.listen_on_tcp(
                config.listen,
                token_file=None if config.owners.serve else token_path(),
                certificate=self._certificate,
                joins=not self._is_first,
                admits=owner_resources.admits if owner_resources else None,
            )
            listeners.append(stack.enter_context(tcp))
        return listeners

    def _finish_work(self, memory: build.OpenMemory) -> None:
        """Stop the writes of all memories, and consolidate a last time if the settings say so."""
        notify_service_manager("STOPPING=1", "STATUS=last sleep cycle")
        memory.service.stop_writes()
        if self._owners:
            self._owners.stop_writes()
        memory.service.sleeper.cycle.lease.interrupt()  # a model stops writing now
        may_sleep = self._is_first and not memory.store.read_only
        if self._config.sleep.on_shutdown and may_sleep:
            self._run_final_consolidation(memory)

    def _await_memories(self, stack: ExitStack) -> build.OpenMemory | None:
        """Open the memories in `stack` and return the local one, once the database is there.

        Returns None if a stop signal ends the wait. Raises errors that waiting cannot fix.
        """
        pause_s, told, reason = AWAIT_MIN_S, -AWAIT_TOLD_S, ""
        while True:
            with ExitStack() as opening:
                try:
                    memory = opening.enter_context(
                        build.open_memory(
                            self._config,
                            socket=self._socket if self._is_first else None,
                            find_bus=self._group.relay.bus if self._group else None,
                            makes_rounds=self._is_first,
                        )
                    )
                    audit = opening.enter_context(stores.open_audit(self._config))
                    memory.shared.audit = audit
                    if memory.config.owners.serve:
                        # Loaded here: a memory with one owner need not wait for it.
                        from mnemosyned.assembly.owners import serve_owners  # noqa: PLC0415

                        sys.setswitchinterval(SERVED_SWITCH_S)
                        self._owners = opening.enter_context(serve_owners(memory))
                except (errors.DatabaseUnreachable, errors.MemoryBusy) as error:
                    former, reason = reason, error.reason
                else:
                    stack.push(opening.pop_all())
                    return memory
            now = time.monotonic()
            if reason != former or now - told >= AWAIT_TOLD_S:
                log.warning("database_awaited", reason=reason)
                told = now
            self._extend_stop_timeout()
            notify_service_manager(f"STATUS=waiting for the database: {reason}")
            received = signal.sigtimedwait(STOP_SIGNALS, pause_s)
            if received:
                log.info("stopping", signal=signal.Signals(received.si_signo).name)
                return None
            pause_s = min(2 * pause_s, AWAIT_MAX_S)

    def _wait_for_stop(self, memory: build.OpenMemory, loop: server.EventLoop) -> None:
        """Wait for a stop signal, doing the upkeep at least every `HEARTBEAT_S` seconds.

        It checks file and health, notifies the watchdog, frees memory, rotates the log, and wakes the
        schedulers after a jump of the clock. SIGHUP re-reads the settings.
        """
        pid = str(os.getpid())
        has_watchdog = os.environ.get("WATCHDOG_PID", pid) == pid
        watchdog_us = int(os.environ.get("WATCHDOG_USEC") or 0) * has_watchdog
        beat = min(HEARTBEAT_S, watchdog_us / 2e6) if watchdog_us else HEARTBEAT_S
        waited, wall = time.monotonic(), time.clock_gettime(time.CLOCK_REALTIME)
        while True:
            received = signal.sigtimedwait({*STOP_SIGNALS, signal.SIGHUP}, beat)
            if received and received.si_signo in STOP_SIGNALS:
                log.info("stopping", signal=signal.Signals(received.si_signo).name)
                return
            if received:
                self._reload_settings(memory)
            if self._others:
                self._others.check(received)
            local_zone()  # follows the machine to another one
            safe = self._check_database_file(memory)
            self._trim_process_memory(memory)
            if self._log_file and self._is_first:
                self._log_file.rotate()
            elif self._log_file:
                self._log_file.open()  # as the first process may have begun another
            if watchdog_us and safe and self._is_healthy(memory, loop):
                notify_service_manager("WATCHDOG=1")
            elapsed, now = (
                time.monotonic() - waited,
                time.clock_gettime(time.CLOCK_REALTIME),
            )
            if abs(now - wall - elapsed) > CLOCK_JUMP_S:
                log.info("clock_jumped", seconds=round(now - wall - elapsed))
                memory.service.sleeper.wake()
                if self._owners:
                    self._owners.rounds.wake()
            waited, wall = time.monotonic(), now

    def _drain(self, loop: server.EventLoop) -> None:
        """Serve for `shutdown_drain_s` more seconds, but report "not ready"; a second signal ends that."""
        self._probe.draining = True
        drain_s = self._config.shutdown_drain_s
        if not drain_s or (self._group and self._group.is_orphaned):
            return
        notify_service_manager("STOPPING=1", f"STATUS=draining for {drain_s:g} s")
        log.info("draining", seconds=drain_s)
        loop.drain()
        ends = time.monotonic() + drain_s
        while (
            left_s := ends - time.monotonic()
        ) > 0 and self._extend_and_may_continue():
            time.sleep(min(left_s, DRAIN_POLL_S))

    @staticmethod
    def _check_database_file(memory: build.OpenMemory) -> bool:
        """Check the database file; return False if it was replaced and a restart would lose nothing."""
        if memory.store.read_only:
            return True
        try:
            memory.service.look_after_file()
        except errors.DatabaseReplaced as error:
            return not error.saved
        except errors.StorageFailed as error:
            log.warning("upkeep_failed", reason=error.reason)
        return True

    def _is_healthy(self, memory: build.OpenMemory, loop: server.EventLoop) -> bool:
        """Return True if the socket answers and the store reports no problems.

        An unreachable database, or a socket silent because all connections are busy, counts as healthy.
        """
        if not answers_health_check(self._socket) and not loop.is_full:
            log.error("socket_silent", socket=str(self._socket))
            return False
        try:
            problems = memory.service.call(Status()).problems
        except (errors.DatabaseUnreachable, errors.MemoryBusy) as error:
            # A restart mends neither.
            log.warning(error.code, reason=error.reason)
            return True
        except errors.MnemosynedError:
            log.exception("unhealthy")
            return False
        if problems:
            log.error("unhealthy", problems=problems)
        return not problems

    def _trim_process_memory(self, memory: build.OpenMemory) -> None:
        """Free caches and return unused heap to the system, if the process has grown or just become idle."""
        cycle = memory.service.sleeper.cycle
        idle = cycle.gate.quiet_s >= QUIET_S and not cycle.lease.is_lent
        if self._growth.is_trim_due(idle=idle):
            memory.store.maintenance.release_memory()
            if self._owners:
                self._owners.release()
            process_memory.trim_heap()
            process_memory.exclude_present_objects()
            self._growth.note_trim()

    def _reload_settings(self, memory: build.OpenMemory) -> None:
        """Read settings and certificate again and apply them; keep the present ones if invalid."""
        try:
            config = load_config(self._file or config_file(), overrides=self._overrides)
            config = with_default_model(config)
            memory.reconfigure(config)
            if self._owners:
                self._owners.reconfigure()
            if self._certificate:  # it may have been renewed
                self._certificate.read()
        except errors.ConfigInvalid as error:
            log.error("config_refused", reason=error.message)  # noqa: TRY400 no bug of ours
            return
        self._config = config
        configure_logs(level=config.log.level, form=config.log.format)
        log.info("config_reloaded")
        if pending := memory.service.settings.restart_needed:
            log.warning("restart_needed", settings=list(pending))

    def _run_final_consolidation(self, memory: build.OpenMemory) -> None:
        """Run a last sleep cycle until the deadline or a second stop signal; log its errors."""
        memory.store.maintenance.release_memory()  # the last cycle needs the room, and nobody asks any more
        clear_word_caches()
        process_memory.trim_heap()
        self._extend_stop_timeout()
        try:
            final_consolidation(
                memory.service.sleeper.cycle,
                deadline_s=self._config.sleep.shutdown_deadline_s,
                keep_going=self._extend_and_may_continue,
            )
        except errors.SleepInProgress as error:
            # Another daemon does this one's work.
            log.info("final_consolidation_left", reason=error.message)
        except errors.MnemosynedError as error:
            log_failure("final_consolidation_failed", error)

    def _extend_and_may_continue(self) -> bool:
        """Ask systemd for more time to stop; return False once a second stop signal has come."""
        self._extend_stop_timeout()
        return not signal.sigpending() & STOP_SIGNALS

    def _extend_stop_timeout(self) -> None:
        """Ask systemd, at most once a second, to wait `EXTENSION_S` seconds before it kills the process."""
        now = time.monotonic()
        if now - self._extended >= 1:
            self._extended = now
            notify_service_manager(f"EXTEND_TIMEOUT_USEC={EXTENSION_S * 1_000_000}")


def _load_certificate(config: Config) -> listening.Certificate | None:
    """Return the certificate of the settings, None without one. Raises `ConfigInvalid`."""
    _ = config.listen_address
    if config.tls_files is None:
        return None
    return listening.Certificate(*config.tls_files)
