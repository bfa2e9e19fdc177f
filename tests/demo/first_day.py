"""A first day with `mnem`, recorded in a terminal of 80 by 24: `make first-day` writes it to docs.

Everything runs as a person types it, in tmux, in a home of its own: the installation, the first
memory, notes that are imported, a sleep, a question. The text goes into docs/first-day.md, and a
picture of each scene next to it.
"""

import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

CHECKOUT = Path(__file__).parents[2]
PAGE = CHECKOUT / "docs" / "first-day.md"
PICTURES = CHECKOUT / "docs" / "pictures"
COLUMNS, LINES = 80, 24
WAIT_S = 300
ANSWER_S = 20
NOTES = {
    "boat.md": """---
title: The boat
date: 2026-11-14
tags: [boat]
---
# The boat
The hull is antifouled every April. Jansen in Lemmer charges 640 euros for it.
The spare key hangs behind the compass.
""",
    "2026-11-18.md": """# Wednesday
Ines confirmed the crane for 14 April, 9:30. It lifts 8 tons at most.

    def tide(hour):
        return 1.8 * math.sin(hour / 12.42 * 2 * math.pi)
""",
}


@dataclass(frozen=True)
class Scene:
    """Commands on one screen, and what the page says about them."""

    name: str
    title: str
    words: str
    commands: tuple[str, ...]


SCENES = (
    Scene(
        "install",
        "Install",
        "These commands ran in a checkout, in a container without systemd. "
        "With systemd, the daemon also starts at each login.",
        ("make install", "mnem"),
    ),
    Scene(
        "remember",
        "Remember",
        "You only need quotes for shell metacharacters.",
        (
            "mnem remember We deploy on Tuesdays, never on Fridays -s work -S me",
            "mnem remember Ada wants the release notes in Markdown -s work -S me",
            "echo 'The build broke on main; 3f2a91c fixed it' | mnem remember -s work",
            "mnem remember Die Sitzung im Team beginnt montags um zehn -s work",
            "mnem recall when do we deploy -n 1",
        ),
    ),
    Scene(
        "import",
        "Bring in what you have",
        "`mnem import` reads notes, chats, mail, shell history and more. A dry run shows the records first.",
        (
            "ls notes",
            "mnem import notes --dry-run",
            "mnem import notes",
            "mnem recall how much does Jansen charge for the hull -n 1",
        ),
    ),
    Scene(
        "look",
        "Look around",
        "`mnem list` shows the newest memories first, by day. In the next commands, the number of an entry "
        "stands for its id.",
        ("mnem list", "mnem get 2"),
    ),
    Scene(
        "change",
        "Change and forget",
        "Before a permanent deletion, `mnem` shows a preview and asks.",
        (
            "mnem edit 1 --text 'Die Sitzung im Team beginnt montags um neun'",
            "mnem tag work,meeting 1",
            "mnem recall wann ist die Sitzung --tag meeting -n 1",
            "mnem forget --query notes\nn",
        ),
    ),
    Scene(
        "sleep",
        "Sleep",
        "Older memories become summaries; the originals are kept, word for word.",
        (
            "mnem sleep --force",
            "mnem recall what does Ines say about the crane -n 1",
        ),
    ),
    Scene(
        "keep",
        "Keep it",
        "`mnem backup` writes a verified copy, and `mnem doctor` checks the installation.",
        ("mnem backup memory.db", "mnem doctor"),
    ),
)


class Terminal:
    """A terminal of tmux, in a home of its own."""

    def __init__(self, home: Path) -> None:
        self._home = str(home)
        self._socket = home / "tmux"
        path = f"{home}/.local/bin:{os.environ['PATH']}"
        ready = f"tmux -S {self._socket} wait-for -S ready"
        self._tmux(
            *("-f", "/dev/null", "new-session", "-d", "-x", str(COLUMNS)),
            *("-y", str(LINES), "env", "-i", f"HOME={home}", f"PATH={path}"),
            *("LANG=C.UTF-8", "TERM=xterm-256color", f"PROMPT_COMMAND={ready}"),
            *(f"PIP_CONFIG_FILE={_pip_settings()}", "PIP_QUIET=2", "PS1=$ "),
            *("bash", "--norc", "--noprofile"),
        )
        self._wait()

    def run(self, command: str) -> None:
        """Type a command; further lines are the answers to what it asks."""
        line, *answers = command.split("\n")
        self._tmux("send-keys", "-l", line)
        self._tmux("send-keys", "Enter")
        for answer in answers:
            self._until(r"\[y/N\]")
            self._tmux("send-keys", "-l", answer)
            self._tmux("send-keys", "Enter")
        self._wait()

    def clear(self) -> None:
        """Begin with a prompt on an empty screen."""
        self.run("clear")
        self._tmux("clear-history")

    def text(self) -> str:
        """All that was printed since the screen was cleared."""
        shown = self._tmux("capture-pane", "-p", "-J", "-S", "-")
        return "\n".join(line.rstrip() for line in shown.rstrip().split("\n"))

    def screen(self) -> str:
        """The screen with its styles."""
        return self._tmux("capture-pane", "-p", "-e")

    def close(self) -> None:
        """End the shell."""
        self._tmux("kill-server")

    def _wait(self) -> None:
        self._tmux("wait-for", "ready")
        time.sleep(0.3)  # the prompt is drawn after it

    def _until(self, pattern: str) -> None:
        deadline = time.monotonic() + ANSWER_S
        while not re.search(pattern, self.text()):
            if time.monotonic() > deadline:
                raise TimeoutError(f"not seen: {pattern}\n{self.text()}")
            time.sleep(0.1)

    def _tmux(self, *words: str) -> str:
        return subprocess.run(
            ["tmux", "-S", str(self._socket), *words],
            check=True,
            text=True,
            stdout=subprocess.PIPE,
            timeout=WAIT_S,
        ).stdout.replace(self._home, "~")


def _pip_settings() -> Path:
    """The settings of pip, which may stand in the home that is hidden here."""
    return Path.home() / ".config" / "pip" / "pip.conf"


@contextmanager
def _terminal() -> Iterator[Terminal]:
    home = Path(tempfile.mkdtemp(prefix="first-day-"))
    notes = home / "notes"
    notes.mkdir()
    for name, text in NOTES.items():
        (notes / name).write_text(text, encoding="utf-8")
    terminal = Terminal(home)
    try:
        yield terminal
    finally:
        terminal.run("mnem stop")
        terminal.close()
        shutil.rmtree(home, ignore_errors=True)


def _draw(screen: str, file: Path) -> None:
    """A picture of a screen, by rich."""
    from rich.console import Console  # noqa: PLC0415 `make first-day` installs it
    from rich.text import Text  # noqa: PLC0415

    with open(os.devnull, "w") as nowhere:  # noqa: PTH123
        console = Console(
            record=True, width=COLUMNS, height=LINES, file=nowhere, force_terminal=True
        )
        console.print(Text.from_ansi(screen.rstrip()), soft_wrap=True)
    file.write_text(console.export_svg(title="mnem"), encoding="utf-8")


def _section(scene: Scene, text: str) -> str:
    shown = text.removesuffix("\n$")
    picture = f"![{scene.title}](pictures/first-day-{scene.name}.svg)"
    return f"## {scene.title}\n\n{scene.words}\n\n```text\n{shown}\n```\n\n{picture}\n"


def record() -> None:
    """Play the day and write the page."""
    PICTURES.mkdir(parents=True, exist_ok=True)
    sections: list[str] = []
    with _terminal() as terminal:
        terminal.run(f"cd {shlex.quote(str(CHECKOUT))}")
        for scene in SCENES:
            terminal.clear()
            for command in scene.commands:
                terminal.run(command)
            if "Traceback" in terminal.text():
                raise RuntimeError(terminal.text())
            sections.append(_section(scene, terminal.text()))
            _draw(terminal.screen(), PICTURES / f"first-day-{scene.name}.svg")
            if scene.name == "install":
                terminal.run("cd")
            sys.stderr.write(f"{scene.title}\n")
    head = (
        "# A first day\n\nThis page shows a first day with mnemosyned. `make first-day` recorded it in a "
        "terminal of 80 × 24.\n"
    )
    PAGE.write_text("\n".join([head, *sections]), encoding="utf-8")


if __name__ == "__main__":
    record()
