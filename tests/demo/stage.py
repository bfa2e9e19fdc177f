"""What `make demo` stands on: a story with numbered steps, and a daemon of its own."""

import json
import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
import textwrap
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from mnemosyned import Client
from mnemosyned.errors import DaemonUnreachable
from mnemosyned.memory.values import Tier

PATIENCE_S = 60
WIDTH = max(60, min(96, shutil.get_terminal_size((96, 24)).columns))
COLOR = sys.stdout.isatty() and not os.environ.get("NO_COLOR")


class ClaimFailed(Exception):
    """Something the demo says about the product is not so."""


class Story:
    """Numbered steps, each with its reason, its command and the claims it proves."""

    def __init__(self) -> None:
        self._steps = 0
        self.claims = 0

    def say(self, text: str, **style: Any) -> None:  # noqa: ANN401 passed to click.style
        for line in textwrap.wrap(text, WIDTH):
            click.echo(click.style(line, **style) if style else line, color=COLOR)

    def step(self, title: str, why: str) -> None:
        """Open the next step with what comes and why it matters."""
        self._steps += 1
        rule = f"━━ {self._steps}  {title} ".ljust(WIDTH, "━")
        click.echo("\n" + click.style(rule, fg="cyan", bold=True), color=COLOR)
        self.say(why)

    def command(self, *words: str) -> None:
        typed = " ".join(
            f'"{word}"' if " " in word else shlex.quote(word) for word in words
        )
        lines = textwrap.wrap(
            typed, WIDTH - 4, break_on_hyphens=False, break_long_words=False
        )
        text = "$ " + " \\\n    ".join(lines)
        click.echo("\n" + click.style(text, fg="yellow"), color=COLOR)

    def claim(self, sentence: str, *, holds: bool, because: object) -> None:
        if not holds:
            raise ClaimFailed(
                f"This does not hold: {sentence}\nFound instead: {because!r}"
            )
        self.claims += 1
        mark = click.style("✓", fg="green", bold=True)
        text = "\n  ".join(textwrap.wrap(sentence, WIDTH - 2))
        click.echo(f"\n{mark} {text}", color=COLOR)


class Stage:
    """A daemon of the demo's own, with its file, its socket and its clients."""

    def __init__(self, folder: Path, *, database: str | None = None) -> None:
        """Keep everything in the folder, or in the `database` on a server with all its owners."""
        self.database = folder / "memory.db"
        self.log = folder / "daemon.log"
        config, socket = folder / "mnemosyned.yaml", folder / "mnem.sock"
        config.touch()
        # The reader's own settings and daemon stay out of it.
        foreign = ("MNEM_", "MNEMOSYNE_", "NOTIFY_SOCKET")
        kept = {
            name: text
            for name, text in os.environ.items()
            if not name.startswith(foreign)
        }
        self.environment = kept | {
            "MNEMOSYNE_CONFIG": str(config),
            "MNEMOSYNE_SOCKET": str(socket),
            "MNEMOSYNE_DATABASE": database or str(self.database),
            "MNEMOSYNE_AUTO_SLEEP": "false",
            "MNEMOSYNE_EMBEDDING_ENCODER": "none",  # it works in the background
            "PYTHONWARNINGS": "error",  # what Python will refuse one day fails here now
            "COLUMNS": str(WIDTH),
            "MNEM_FORMAT": "table",  # as at a terminal, also in a pipe
            "MNEM_PAGER": "",  # a pager would wait for keys in the middle of the story
        }
        if database:
            self.environment |= {
                "MNEMOSYNE_OWNERS_SERVE": "true",
                "MNEMOSYNE_LISTEN": "127.0.0.1:0",
            }
        self.client = Client(socket)

    @contextmanager
    def daemon(self) -> Iterator[subprocess.Popen[bytes]]:
        """Run the daemon; whatever happens, it is gone afterwards."""
        command = [script("mnemosyned")]
        with (
            self.log.open("wb") as log,
            subprocess.Popen(command, env=self.environment, stderr=log) as process,
        ):
            try:
                yield process
            finally:
                self.client.close()
                if process.poll() is None:
                    process.kill()

    @staticmethod
    def command(*words: str) -> list[str]:
        """The shell client, to be run in this environment."""
        return [script("mnem"), *words]

    def mnem(self, *words: str) -> None:
        """Run the shell client and let the reader see what it prints."""
        out = None if COLOR else subprocess.PIPE
        errors = None if sys.stderr.isatty() else subprocess.PIPE
        done = self._run(*words, stdout=out, stderr=errors)
        if done.stdout:
            click.echo(done.stdout.decode(), nl=False)
        if done.returncode:
            problem = (done.stderr or b"see above").decode().strip()
            raise ClaimFailed(
                f"mnem {words[0]} ended with {done.returncode}: {problem}"
            )

    def show(self, story: Story, *words: str, typed: Sequence[str] = ()) -> None:
        """Show a command of the shell client, as a person types it, and run it."""
        story.command("mnem", *(typed or words))
        self.mnem(*words)

    def printed(self, *words: str) -> str:
        """Run the shell client for what it prints."""
        done = self._run(*words, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        if done.returncode:
            raise ClaimFailed(done.stderr.decode().strip())
        return str(done.stdout.decode().strip())

    def _run(self, *words: str, **streams: Any) -> subprocess.CompletedProcess[bytes]:  # noqa: ANN401
        return subprocess.run(
            self.command(*words),
            env=self.environment,
            timeout=PATIENCE_S,
            check=False,
            **streams,
        )

    def answering_pid(self) -> int:
        """Wait until the daemon answers, and return the id of its process."""
        ends = time.monotonic() + PATIENCE_S
        while time.monotonic() < ends:
            try:
                return self.client.status().pid
            except DaemonUnreachable:
                time.sleep(0.02)
        raise ClaimFailed(self.log.read_text())

    def address(self) -> str:
        """The address over TCP, from the log."""
        for line in self.log.read_text().splitlines():
            entry = json.loads(line)
            if entry["event"] == "listening":
                return str(entry["address"])
        raise ClaimFailed(self.log.read_text())

    def tiers(self) -> list[int]:
        tiers = self.client.status().tiers
        return [
            tiers[tier].count for tier in (Tier.WORKING, Tier.EPISODIC, Tier.ARCHIVE)
        ]


def script(name: str) -> str:
    """The path of a program of the installation."""
    return str(Path(sysconfig.get_path("scripts")) / name)
