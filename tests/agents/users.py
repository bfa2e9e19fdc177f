"""Someone who has agents' programs, in a home of their own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from e2e.daemons import environment

PROGRAMS = Path(__file__).parents[2] / "build" / "npm" / "node_modules" / ".bin"
BIN = Path(sys.executable).parent
TIME_LIMIT_S = 120


class User:
    """Someone with these tools, and a home of their own."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.environment = environment(
            home, PATH=f"{PROGRAMS}:{BIN}:{os.environ['PATH']}", COLUMNS="100"
        )
        # In each new home, opencode would install a package of types next to a plugin, and wait for it.
        self.environment |= {
            "npm_config_registry": "http://127.0.0.1:9/",
            "npm_config_fetch_retries": "0",
        }
        self.go(home)

    def go(self, directory: Path) -> None:
        """Work in this directory from now on."""
        self.directory = directory
        self.environment["PWD"] = str(directory)

    def run(self, *command: str) -> str:
        """What a command prints; it must succeed."""
        done = self.tried(*command)
        assert done.returncode == 0, done.stdout
        return done.stdout

    def tried(self, *command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command,
            cwd=self.directory,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=TIME_LIMIT_S,
            text=True,
            check=False,
        )

    def write(self, name: str, text: str) -> Path:
        file = self.home / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        return file
