"""Notifications to systemd, if it is there: ready, stopping, alive, more time."""

from __future__ import annotations

import os
import socket

from mnemosyned.logs import logger

TIMEOUT_S = 1.0

log = logger()


def notify(*states: str) -> None:
    """Send states such as `READY=1` to the service manager. Source: sd_notify(3)."""
    address = os.environ.get("NOTIFY_SOCKET")
    if not address:
        return
    if address.startswith("@"):  # an abstract socket
        address = "\0" + address[1:]
    try:
        with socket.socket(
            socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC
        ) as channel:
            channel.settimeout(TIMEOUT_S)
            channel.connect(address)
            channel.sendall("\n".join(states).encode())
    except FileNotFoundError:  # `mnem start` listens until the daemon is ready
        os.environ.pop("NOTIFY_SOCKET", None)
    except OSError as error:  # a manager that does not listen is no reason to fail
        log.warning("notify_failed", address=address, reason=str(error))


def watchdog_s() -> float | None:
    """Seconds between two signs of life that the service manager wants; None for never."""
    if os.environ.get("WATCHDOG_PID", str(os.getpid())) != str(os.getpid()):
        return None
    interval = os.environ.get("WATCHDOG_USEC")
    return int(interval) / 1e6 if interval else None
