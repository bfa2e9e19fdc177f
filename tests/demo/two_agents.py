"""Two agents, one memory: `make pictures-agents` draws docs/pictures/two-agents.svg from a real run.

What the first agent and its user say is written here. What the second agent gets three days
later is what the daemon answers to its hook.
"""

import json
import re
import subprocess
import tempfile
import textwrap
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from html import escape
from pathlib import Path

from demo.stage import Stage, script

from mnemosyned.errors import DaemonUnreachable

PICTURE = Path(__file__).parents[2] / "docs" / "pictures" / "two-agents.svg"
AGO = timedelta(days=3)
SAID = (
    ("user", "How should invoices round VAT? The totals are off by a cent."),
    ("assistant", "Per invoice line, or once on the total: the tax office takes both."),
    ("user", "We decided: round VAT per invoice line, half up, never on the total."),
    ("user", "The rounding goes into billing/vat.py, and Mila reviews it."),
    ("assistant", "Done, and the tests for half a cent pass."),
)
ASKED = "who reviews the rounding?"
READY_S = 120

WIDTH, ROW, MARGIN, COLUMNS = 840, 20, 20, 96
STEP_S, REST_S = 1.6, 9.0
SIGN = {"user": "> ", "assistant": "• ", "told": "▌ ", "shell": "$ "}


@dataclass(frozen=True)
class Line:
    """A line of the picture: its kind, its text, and whether it comes with the one before."""

    kind: str
    text: str
    follows: bool = False


def main() -> None:
    """Let two agents use one memory, and draw what they saw."""
    with tempfile.TemporaryDirectory() as folder:
        stage = Stage(Path(folder))
        del stage.environment["MNEMOSYNE_EMBEDDING_ENCODER"]
        stage.environment["MNEMOSYNE_HOOK_WAIT_S"] = "5"
        project = Path(folder, "shop")
        project.mkdir()
        with stage.daemon():
            wait_until_embedded(stage, 0)
            began = datetime.now(UTC) - AGO
            agent = ("claude-code", "one", project)
            messages = [
                {
                    "id": f"m{number}",
                    "role": role,
                    "content": content,
                    "timestamp": (began + timedelta(minutes=number)).isoformat(),
                }
                for number, (role, content) in enumerate(SAID)
            ]
            run_hook(stage, *agent, "Stop", messages=messages)
            run_hook(stage, *agent, "SessionEnd", reason="exit")
            wait_until_embedded(stage, len(SAID))
            agent = ("cursor", "two", project)
            at_start = run_hook(stage, *agent, "SessionStart", source="startup")
            recalled = stage.printed("recall", ASKED, "--limit", "1")
    if not at_start:
        raise SystemExit("the second agent was told nothing; nothing was drawn")
    now = datetime.now(UTC)
    lines = [
        Line("title", f"{began:%A}, Claude Code in ~/shop"),
        *[line for role, text in SAID for line in wrap(role, text)],
        Line("title", f"{now:%A}, Cursor in ~/shop, a new session"),
        Line("note", "mnemosyned adds to its context:"),
        *[line for text in at_start for line in wrap("told", text)],
        Line("title", "And in a shell"),
        Line("shell", f"mnem recall {ASKED}"),
        *[Line("output", text, follows=True) for text in recalled.splitlines()],
    ]
    PICTURE.write_text(draw(lines), encoding="utf-8")
    print(f"{PICTURE.name}: {PICTURE.stat().st_size:,} bytes")


def run_hook(
    stage: Stage, client: str, session: str, folder: Path, event: str, **fields: object
) -> list[str]:
    """Run the hook of an agent's event, and return the lines that the agent is told."""
    asked = {
        "client": client,
        "session_id": session,
        "cwd": str(folder),
        "hook_event_name": event,
        **fields,
    }
    done = subprocess.run(
        [script("mnem-hook")],
        input=json.dumps(asked),
        env=stage.environment,
        text=True,
        stdout=subprocess.PIPE,
        check=True,
    )
    told = json.loads(done.stdout).get("hookSpecificOutput", {})
    return re.findall(r"^- (.*)$", told.get("additionalContext", ""), re.MULTILINE)


def wait_until_embedded(stage: Stage, count: int) -> None:
    """Wait until the daemon answers and has embedded so many memories."""
    deadline = time.monotonic() + READY_S
    while time.monotonic() < deadline:
        with suppress(DaemonUnreachable):
            if stage.client.status().embedder.embedded >= count:
                return
        time.sleep(0.1)
    raise SystemExit(f"{count} memories were not embedded within {READY_S} s")


def wrap(kind: str, text: str) -> list[Line]:
    """Return the lines of a text, of which the later ones come with the first."""
    rows = textwrap.wrap(text, COLUMNS - 2)
    return [Line(kind, row, follows=place > 0) for place, row in enumerate(rows)]


def draw(lines: Sequence[Line]) -> str:
    """Return an SVG in which the lines appear one after another, over and over."""
    steps = sum(not line.follows for line in lines)
    total = steps * STEP_S + REST_S
    rows: list[str] = []
    styles: list[str] = []
    step, y = -1, MARGIN
    for line in lines:
        if not line.follows:
            step += 1
            at = 100 * step * STEP_S / total
            styles.append(
                f"@keyframes s{step}{{0%,{at:.1f}%{{opacity:0}}{at + 1:.1f}%,100%{{opacity:1}}}}"
                f".s{step}{{animation:s{step} {total:.1f}s infinite}}"
            )
        y += ROW * 2 if line.kind == "title" and rows else ROW
        sign = "  " if line.follows else SIGN.get(line.kind, "")
        rows.append(
            f'<text class="{line.kind} s{step}" x="{MARGIN}" y="{y}" xml:space="preserve">'
            f"{escape(sign + line.text, quote=False)}</text>"
        )
    height = y + MARGIN
    said = " ".join(line.text for line in lines)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
        f'width="{WIDTH}" height="{height}" role="img">\n'
        f"<title>{escape(said, quote=False)}</title>\n"
        "<style>text{font:13px ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;fill:#c9d1d9}"
        ".title{font-weight:bold;fill:#fff}.note{fill:#8b949e}.told{fill:#7ee787}"
        f"{''.join(styles)}"
        "@media(prefers-reduced-motion:reduce){text{animation:none!important}}</style>\n"
        f'<rect width="{WIDTH}" height="{height}" rx="8" fill="#0d1117"/>\n'
        + "\n".join(rows)
        + "\n</svg>\n"
    )


if __name__ == "__main__":
    main()
