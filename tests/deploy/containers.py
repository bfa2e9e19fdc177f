"""A container by the kernel's own means: a read-only root, no privileges, a network of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from deploy.containerfile import Stage
from support.processes import child_pids

TIMEOUT_S = 120
# Brings up the loopback of the new network, which is all that is in it.
LOOPBACK_UP = (
    "import fcntl, socket, struct; "
    "fcntl.ioctl(socket.socket(), 0x8914, struct.pack('16sh14x', b'lo', 65))"
)
SETUP = """
set -eu
root=$1 user=$2 group=$3; shift 3
mount --bind "$root" "$root"
for place in $FOLDERS; do
    mount --bind "${place%%:*}" "$root${place##*:}"
    mount -o remount,bind,ro "$root${place##*:}"
done
mount -o remount,bind,ro "$root"
for place in $WRITABLE; do mount -t tmpfs -o "mode=0770,uid=0,gid=$group" tmpfs "$root$place"; done
mount -t proc proc "$root/proc"
"$PYTHON" -c "$LOOPBACK_UP"
exec chroot "$root" /usr/bin/setpriv --reuid "$user" --regid "$group" --clear-groups --no-new-privs \\
    --bounding-set=-all --inh-caps=-all /usr/bin/env --ignore-environment "$@"
"""


@dataclass(frozen=True)
class Container:
    image: Stage
    folders: Mapping[Path, str]
    """Folders that it sees read-only, and where."""
    writable: tuple[str, ...]
    """Folders on a tmpfs that only the group of the image's user may write to, as of an emptyDir."""
    environment: Mapping[str, str]

    def run(self, *command: str) -> subprocess.CompletedProcess[str]:
        """Run a command as process 1 of a container until it ends."""
        return subprocess.run(
            self._command(command), env=self._settings(), capture_output=True, text=True,
            timeout=TIMEOUT_S, check=False,
        )  # fmt: skip

    @contextmanager
    def started(self, log: Path) -> Iterator[subprocess.Popen[bytes]]:
        """Run the image's own command in the background; its output goes to a file."""
        with log.open("wb") as output:
            process = subprocess.Popen(
                self._command(self.image.command),
                env=self._settings(),
                stdout=output,
                stderr=output,
            )
        try:
            yield process
        finally:
            process.kill()
            process.wait(TIMEOUT_S)

    def execute(
        self, process: subprocess.Popen[bytes], *command: str, **environ: str
    ) -> subprocess.CompletedProcess[str]:
        """Run a further command in the container of a process."""
        user, group = self.image.user.split(":")
        return subprocess.run(
            [
                "nsenter", f"--target={first_process(process)}",
                "--mount", "--pid", "--net", "--root", "--wd=/",
                "/usr/bin/setpriv", f"--reuid={user}", f"--regid={group}", "--clear-groups",
                "/usr/bin/env", "--ignore-environment", *self._variables(environ), *command,
            ],
            capture_output=True, text=True, timeout=TIMEOUT_S, check=False,
        )  # fmt: skip

    def stop(self, process: subprocess.Popen[bytes]) -> int:
        """Send process 1 the signal to stop; its exit code."""
        os.kill(first_process(process), signal.SIGTERM)
        return process.wait(TIMEOUT_S)

    def await_health(
        self, process: subprocess.Popen[bytes], path: str = "/livez"
    ) -> bool:
        """Run the check of the image's health, with another path if one is named, until it passes."""
        check = [word.replace("/livez", path) for word in self.image.health]
        ends = time.monotonic() + TIMEOUT_S
        while time.monotonic() < ends and process.poll() is None:
            if self.execute(process, *check).returncode == 0:
                return True
            time.sleep(0.3)
        return False

    def _variables(self, further: Mapping[str, str]) -> list[str]:
        variables = {**self.image.environment, **self.environment, **further}
        return [f"{name}={value}" for name, value in variables.items()]

    def _command(self, command: tuple[str, ...] | list[str]) -> list[str]:
        return [
            "unshare", "--mount", "--pid", "--net", "--ipc", "--fork", "--kill-child",
            "/bin/sh", "-c", SETUP, "sh", str(self.image.root.root), *self.image.user.split(":"),
            *self._variables({}), *command,
        ]  # fmt: skip

    def _settings(self) -> dict[str, str]:
        return {
            **os.environ,
            "FOLDERS": " ".join(
                f"{path}:{place}" for path, place in self.folders.items()
            ),
            "WRITABLE": " ".join(self.writable),
            "PYTHON": sys.executable,
            "LOOPBACK_UP": LOOPBACK_UP,
        }


def first_process(process: subprocess.Popen[bytes]) -> int:
    """The id, seen from outside, of process 1 in a container, once it is there."""
    ends = time.monotonic() + TIMEOUT_S
    while time.monotonic() < ends and process.poll() is None:
        if found := child_pids(process.pid):
            return min(found)
        time.sleep(0.02)
    raise AssertionError("the container has ended")
