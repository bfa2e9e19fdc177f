"""The pictures of the pages on concepts: `make pictures-docs` draws them into `docs/pictures`.

They are narrow with large letters, so that they can be read on a telephone.
"""

from html import escape

from support.pages import DOCS

PICTURES = DOCS / "pictures"
WIDTH = 560
ROW = 20
STYLE = (
    "text{font:15px system-ui,sans-serif;fill:#1d2b28}.b{font-weight:600}.s{font-size:13px;"
    "fill:#48605a}.m{font:13px ui-monospace,Menlo,Consolas,monospace}"
    ".c{text-anchor:middle}.box{fill:#fff;stroke:#8fb3a8}.green{fill:#dff0ea;stroke:#3f7d6b}"
    ".sand{fill:#fbeed9;stroke:#b98332}.plain{fill:none;stroke:#8fb3a8;stroke-dasharray:5 4}"
    ".line{stroke:#3f7d6b;stroke-width:2;fill:none;marker-end:url(#head)}"
)


class Picture:
    """A picture of boxes and arrows on a light ground, which suits a dark page too."""

    def __init__(self, title: str, height: int) -> None:
        self.title = title
        self.height = height
        self._marks: list[str] = []

    def box(
        self, x: int, y: int, width: int, height: int, *lines: str, kind: str = "box"
    ) -> None:
        """Draw a box; its first line is bold, a line that begins with ">" is code."""
        self._marks.append(
            f'<rect class="{kind}" x="{x}" y="{y}" width="{width}" height="{height}" rx="8"/>'
        )
        top = y + (height - ROW * len(lines)) // 2 + 15
        for number, line in enumerate(lines):
            style = "b" if number == 0 else "s"
            if line.startswith(">"):
                style = "m"
            place = (x + width // 2, top + ROW * number)
            self.text(*place, line.removeprefix(">"), f"c {style}")

    def text(self, x: int, y: int, line: str, style: str = "s") -> None:
        """Write a line."""
        self._marks.append(
            f'<text class="{style}" x="{x}" y="{y}">{escape(line)}</text>'
        )

    def arrow(self, *points: tuple[int, int]) -> None:
        """Draw an arrow along points."""
        path = " ".join(f"{x},{y}" for x, y in points)
        self._marks.append(f'<polyline class="line" points="{path}"/>')

    def svg(self) -> str:
        """Return the whole picture."""
        head = (
            '<marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="6" '
            'markerHeight="6" orient="auto"><path d="M0 0 8 4 0 8z" fill="#3f7d6b"/></marker>'
        )
        size = f'viewBox="0 0 {WIDTH} {self.height}" width="{WIDTH}" height="{self.height}"'
        lines = [
            f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img">',
            f"<title>{escape(self.title)}</title>",
            f"<style>{STYLE}</style><defs>{head}</defs>",
            f'<rect width="{WIDTH}" height="{self.height}" rx="10" fill="#f4f8f6"/>',
            *self._marks,
            "</svg>",
        ]
        return "\n".join(lines) + "\n"


def how_it_works() -> Picture:
    """Ways in, the daemon, and where memories are kept."""
    picture = Picture(
        "Hooks, MCP, the shell and Python reach the daemon, which keeps working memory, "
        "summaries and originals in one file",
        486,
    )
    for number, lines in enumerate(
        (
            ("Hooks", "mnem-hook"),
            ("MCP", "mnem mcp"),
            ("Shell", "mnem"),
            ("Python", "Client"),
        )
    ):
        picture.box(20 + 132 * number, 20, 124, 56, lines[0], f">{lines[1]}")
        picture.arrow((82 + 132 * number, 76), (82 + 132 * number, 110))
    picture.box(
        20, 112, 520, 56, "mnemosyned, the daemon", "on your machine", kind="green"
    )
    picture.arrow((280, 168), (280, 210))
    picture.box(20, 192, 520, 278, kind="plain")
    picture.text(280, 460, "one SQLite file, or a PostgreSQL database", "c s")
    picture.box(120, 212, 320, 56, "Working memory", "new memories, as they were said")
    picture.arrow((280, 268), (280, 302))
    picture.text(292, 290, "sleep")
    picture.box(
        120, 304, 320, 56, "Summaries", "episodes, days, weeks, months", kind="sand"
    )
    picture.arrow((280, 360), (280, 394))
    picture.text(292, 382, "each sentence leads back to")
    picture.box(120, 396, 320, 46, "Originals, word for word")
    return picture


def memory() -> Picture:
    """The life of one memory."""
    picture = Picture(
        "One memory from the moment it is said to a summary of its month", 392
    )
    picture.box(
        20,
        20,
        520,
        58,
        "Tuesday 10:12, in a session with an agent",
        ">We decided: round VAT per invoice line.",
    )
    for number, (left, title, about) in enumerate(
        (
            (
                "at once",
                "Working memory",
                "one memory: text, time, session, source, role",
            ),
            ("12 hours later", "Episode", "a summary of that conversation"),
            ("next day", "Day, week, month", "summaries of summaries"),
        )
    ):
        top = 104 + 78 * number
        picture.arrow((340, top - 26), (340, top))
        picture.text(24, top + 30, left)
        kind = "sand" if number else "box"
        picture.box(140, top, 400, 52, title, about, kind=kind)
    picture.box(140, 330, 400, 46, "The original stays in the archive", kind="green")
    picture.text(24, 357, "always")
    return picture


def sleep() -> Picture:
    """What one cycle does with a group of memories."""
    picture = Picture(
        "A sleep cycle turns a group of memories into a summary and an archive", 300
    )
    for number, line in enumerate(
        ("We deploy on Tuesdays", "Notes are in Markdown", "Commit 3f2a91c fixed it")
    ):
        picture.box(20, 24 + 50 * number, 214, 40, f">{line}")
    picture.text(20, 196, "three memories of a session")
    picture.arrow((238, 94), (318, 94))
    picture.text(252, 84, "sleep")
    picture.box(322, 34, 218, 66, "Episode", "a summary with its sources", kind="sand")
    picture.box(
        322, 120, 218, 66, "Archive", "the same three, word for word", kind="green"
    )
    picture.arrow((430, 100), (430, 118))
    picture.arrow((430, 190), (430, 236), (120, 236), (120, 206))
    picture.text(204, 258, "mnem undo brings them back")
    picture.text(20, 284, "One transaction: all of it happens, or none.")
    return picture


def recall() -> Picture:
    """From a question to hits."""
    picture = Picture(
        "A question is read, candidates are found three ways, and ranked", 372
    )
    picture.box(20, 20, 520, 50, ">what did we decide about VAT last week?")
    for number, (title, about) in enumerate(
        (("Time", "last week"), ("Words", "decide, VAT"), ("Vector", "what is near"))
    ):
        x = 20 + 180 * number
        picture.arrow((x + 80, 70), (x + 80, 100))
        picture.box(x, 102, 160, 54, title, about)
        picture.arrow((x + 80, 156), (280, 190))
    picture.box(
        20,
        192,
        520,
        54,
        "Rank",
        "one score for each candidate; near-duplicates become one",
        kind="green",
    )
    picture.arrow((280, 246), (280, 276))
    picture.box(
        20,
        278,
        520,
        76,
        "Hits, the best first",
        "a summary, with the lines that match",
        ">“We round VAT per invoice line.”",
        kind="sand",
    )
    return picture


def summaries() -> Picture:
    """The levels of summaries."""
    picture = Picture("Months are made of weeks, weeks of days, days of episodes", 360)
    for number, (title, width) in enumerate(
        (("Month", 150), ("Weeks", 250), ("Days", 350), ("Episodes", 450))
    ):
        top = 20 + 64 * number
        picture.box((WIDTH - width) // 2, top, width, 44, title, kind="sand")
        picture.arrow((280, top + 44), (280, top + 62))
    picture.box(
        20, 276, 520, 52, "Originals", "every message, word for word", kind="green"
    )
    picture.text(20, 350, "Each level consists of sentences from the level below it.")
    return picture


def forgetting() -> Picture:
    """From where a forgotten memory leaves."""
    picture = Picture(
        "Forgetting removes a memory from every place, and names backups", 320
    )
    picture.box(160, 20, 240, 46, ">mnem forget ID")
    for number, (title, about) in enumerate(
        (
            ("Tiers", "working, archive"),
            ("Summaries", "are rewritten"),
            ("Index", "words, vectors"),
            ("File", "pages, log"),
        )
    ):
        x = 20 + 132 * number
        picture.arrow((280, 66), (x + 62, 104))
        picture.box(x, 106, 124, 56, title, about, kind="green")
    picture.arrow((280, 166), (280, 202))
    picture.box(100, 204, 360, 50, "Receipt", "counts, and no words")
    picture.text(
        20, 284, "It names backups that still have the words. Copies elsewhere"
    )
    picture.text(20, 304, "are out of reach.")
    return picture


def context() -> Picture:
    """The parts of a context window."""
    picture = Picture(
        "A context window: system prompt, memory, learnings, summaries, messages", 348
    )
    parts = (
        ("System prompt", "yours", 40, "box"),
        ("Relevant memory", "up to 15 %", 52, "sand"),
        ("Past learnings", "up to 5 %", 40, "sand"),
        ("Summaries of older messages", "what was shortened", 40, "green"),
        ("Newest messages", "always kept", 72, "box"),
        ("The new message", "", 36, "box"),
    )
    top = 16
    for title, about, height, kind in parts:
        picture.box(20, top, 300, height, title, kind=kind)
        picture.text(336, top + height // 2 + 5, about)
        top += height + 4
    picture.text(20, top + 18, "Never more than the total, counted in tokens.")
    return picture


DRAWN = {
    "how-it-works": how_it_works,
    "concept-memory": memory,
    "concept-sleep": sleep,
    "concept-recall": recall,
    "concept-summaries": summaries,
    "concept-forgetting": forgetting,
    "concept-context": context,
}
"""The pictures by the names of their files."""


if __name__ == "__main__":
    for name, draw in DRAWN.items():
        (PICTURES / f"{name}.svg").write_text(draw().svg(), "utf-8")
