"""Roots of Debian to install in: made by mmdebstrap, kept in build, entered in namespaces of their own."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parents[2]
ARCHIVES = CHECKOUT / "build" / "chroots"
ARCHIVE_S_MAX = 7 * 86_400
"""An older archive is made again, with the packages of that day."""
TIMEOUT_S = 900
NEEDED = ("python3", "libstdc++6", "zlib1g", "init-system-helpers")
"""What our packages need; to make the root with it takes 20 s of a processor."""
RECORDS = {"./proc", "var/lib/dpkg", "var/lib/apt", "var/log", "var/cache"}
ENVIRONMENT = {
    "PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
    "HOME": "/root",
    "LC_ALL": "C.UTF-8",
    "DEBIAN_FRONTEND": "noninteractive",
}


def require_programs(*programs: str) -> None:
    """Skip the test, or fail it in CI, where a program is missing or this is not root."""
    missing = [name for name in programs if not shutil.which(name)]
    missing += ["root"] if os.geteuid() else []
    if missing:
        reason = f"NOT RUN: needs {', '.join(missing)}"
        assert "CI" not in os.environ, reason
        pytest.skip(reason)


def own_suite() -> str:
    """The name of the Debian that this machine runs, such as bookworm."""
    lines = Path("/etc/os-release").read_text().splitlines()
    return dict(line.split("=", 1) for line in lines if "=" in line)["VERSION_CODENAME"]


def archive(suite: str, *packages: str) -> Path:
    """An archive with a minimal root of Debian and some packages; made where there is none."""
    require_programs("mmdebstrap", "unshare")
    file = ARCHIVES / f"{'-'.join((suite, *packages))}.tar"
    if not file.exists() or time.time() - file.stat().st_mtime > ARCHIVE_S_MAX:
        ARCHIVES.mkdir(parents=True, exist_ok=True)
        part = file.with_suffix(".part")
        command = ["mmdebstrap", "--quiet", "--variant=minbase", "--format=tar"]
        if packages:
            command.append(f"--include={','.join(packages)}")
        done = subprocess.run(
            [*command, suite, part], capture_output=True, text=True, check=False,
            timeout=TIMEOUT_S,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        part.replace(file)
    return file


class Chroot:
    def __init__(self, root: Path, archive: Path) -> None:
        """Unpack an archive to `root`, which does not exist."""
        self.root = root
        root.mkdir()
        subprocess.run(["tar", "-xpf", archive, "-C", root], check=True)
        shutil.copy("/etc/resolv.conf", root / "etc/resolv.conf")

    def run(
        self,
        script: str,
        environ: Mapping[str, str] | None = None,
        *,
        works: bool = True,
    ) -> str:
        """Run a script of the shell as root in there; what it printed and said, in order."""
        done = subprocess.run(
            [
                "unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc",
                f"--root={self.root}", "--wd=/", "/bin/sh", "-euc", script,
            ],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env={**ENVIRONMENT, **(environ or {})},
            text=True,
            timeout=TIMEOUT_S,
            check=False,
        )  # fmt: skip
        assert (done.returncode == 0) is works, done.stdout
        return done.stdout

    def files(self) -> set[str]:
        """Every path in it but those of the package manager's own records."""
        found = set()
        for folder, folders, files in os.walk(self.root):
            place = os.path.relpath(folder, self.root)
            folders[:] = [each for each in folders if f"{place}/{each}" not in RECORDS]
            found |= {
                f"{place}/{name}".removeprefix("./") for name in (*folders, *files)
            }
        return found
