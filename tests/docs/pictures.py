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


def box(x: int, y: int, width: int, height: int, *lines: str, kind: str = "box") -> str:
    """A box; its first line is bold, a line that begins with ">" is code."""
    marks = [
        f'<rect class="{kind}" x="{x}" y="{y}" width="{width}" height="{height}" rx="8"/>'
    ]
    top = y + (height - ROW * len(lines)) // 2 + 15
    for number, line in enumerate(lines):
        style = "m" if line.startswith(">") else "s" if number else "b"
        place = (x + width // 2, top + ROW * number)
        marks.append(text(*place, line.removeprefix(">"), f"c {style}"))
    return "\n".join(marks)


def text(x: int, y: int, line: str, style: str = "s") -> str:
    """A line of text."""
    return f'<text class="{style}" x="{x}" y="{y}">{escape(line)}</text>'


def arrow(*points: tuple[int, int]) -> str:
    """An arrow along points."""
    path = " ".join(f"{x},{y}" for x, y in points)
    return f'<polyline class="line" points="{path}"/>'


def svg(title: str, height: int, *marks: str) -> str:
    """A picture of boxes and arrows on a light ground, which suits a dark page too."""
    head = (
        '<marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="6" '
        'markerHeight="6" orient="auto"><path d="M0 0 8 4 0 8z" fill="#3f7d6b"/></marker>'
    )
    size = f'viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}"'
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img">',
        f"<title>{escape(title)}</title>",
        f"<style>{STYLE}</style><defs>{head}</defs>",
        f'<rect width="{WIDTH}" height="{height}" rx="10" fill="#f4f8f6"/>',
        *marks,
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


def joined(*marks: str) -> str:
    return "\n".join(marks)


WAYS = (
    ("Hooks", "mnem-hook"),
    ("MCP", "mnem mcp"),
    ("Shell", "mnem"),
    ("Python", "Client"),
)
LIFE = (
    (
        "at once",
        "Working memory",
        "one memory: text, time, session, source, role",
        "box",
    ),
    ("12 hours later", "Episode", "a summary of that conversation", "sand"),
    ("next day", "Day, week, month", "summaries of summaries", "sand"),
)
SAID = ("We deploy on Tuesdays", "Notes are in Markdown", "Commit 3f2a91c fixed it")
FOUND_BY = (("Time", "last week"), ("Words", "decide, VAT"), ("Vector", "what is near"))
LEVELS = (("Month", 150), ("Weeks", 250), ("Days", 350), ("Episodes", 450))
PLACES = (
    ("Tiers", "working, archive"),
    ("Summaries", "are rewritten"),
    ("Index", "words, vectors"),
    ("File", "pages, log"),
)
PARTS = (
    (16, "System prompt", "yours", 40, "box"),
    (60, "Relevant memory", "up to 15 %", 52, "sand"),
    (116, "Past learnings", "up to 5 %", 40, "sand"),
    (160, "Summaries of older messages", "what was shortened", 40, "green"),
    (204, "Newest messages", "always kept", 72, "box"),
    (280, "The new message", "", 36, "box"),
)
DRAWN = {
    "how-it-works": svg(
        "Hooks, MCP, the shell and Python reach the daemon, which keeps working memory, "
        "summaries and originals in one file", 486,
        *(joined(box(x, 20, 124, 56, name, f">{program}"), arrow((x + 62, 76), (x + 62, 110)))
          for x, (name, program) in zip(range(20, 560, 132), WAYS, strict=False)),
        box(20, 112, 520, 56, "mnemosyned, the daemon", "on your machine", kind="green"),
        arrow((280, 168), (280, 210)),
        box(20, 192, 520, 278, kind="plain"),
        text(280, 460, "one SQLite file, or a PostgreSQL database", "c s"),
        box(120, 212, 320, 56, "Working memory", "new memories, as they were said"),
        arrow((280, 268), (280, 302)),
        text(292, 290, "sleep"),
        box(120, 304, 320, 56, "Summaries", "episodes, days, weeks, months", kind="sand"),
        arrow((280, 360), (280, 394)),
        text(292, 382, "each sentence leads back to"),
        box(120, 396, 320, 46, "Originals, word for word"),
    ),
    "concept-memory": svg(
        "One memory from the moment it is said to a summary of its month", 392,
        box(20, 20, 520, 58, "Tuesday 10:12, in a session with an agent",
            ">We decided: round VAT per invoice line."),
        *(joined(arrow((340, y - 26), (340, y)), text(24, y + 30, when),
                 box(140, y, 400, 52, title, about, kind=kind))
          for y, (when, title, about, kind) in zip(range(104, 300, 78), LIFE, strict=False)),
        box(140, 330, 400, 46, "The original stays in the archive", kind="green"),
        text(24, 357, "always"),
    ),
    "concept-sleep": svg(
        "A sleep cycle turns a group of memories into a summary and an archive", 300,
        *(box(20, y, 214, 40, f">{line}") for y, line in zip((24, 74, 124), SAID, strict=True)),
        text(20, 196, "three memories of a session"),
        arrow((238, 94), (318, 94)),
        text(252, 84, "sleep"),
        box(322, 34, 218, 66, "Episode", "a summary with its sources", kind="sand"),
        box(322, 120, 218, 66, "Archive", "the same three, word for word", kind="green"),
        arrow((430, 100), (430, 118)),
        arrow((430, 190), (430, 236), (120, 236), (120, 206)),
        text(204, 258, "mnem undo brings them back"),
        text(20, 284, "One transaction: all of it happens, or none."),
    ),
    "concept-recall": svg(
        "A question is read, candidates are found three ways, and ranked", 372,
        box(20, 20, 520, 50, ">what did we decide about VAT last week?"),
        *(joined(arrow((x + 80, 70), (x + 80, 100)), box(x, 102, 160, 54, title, about),
                 arrow((x + 80, 156), (280, 190)))
          for x, (title, about) in zip((20, 200, 380), FOUND_BY, strict=True)),
        box(20, 192, 520, 54, "Rank", "one score for each candidate; near-duplicates become one",
            kind="green"),
        arrow((280, 246), (280, 276)),
        box(20, 278, 520, 76, "Hits, the best first", "a summary, with the lines that match",
            ">“We round VAT per invoice line.”", kind="sand"),
    ),
    "concept-summaries": svg(
        "Months are made from weeks, weeks from days, days from episodes", 360,
        *(joined(box((WIDTH - width) // 2, y, width, 44, title, kind="sand"),
                 arrow((280, y + 44), (280, y + 62)))
          for y, (title, width) in zip(range(20, 270, 64), LEVELS, strict=False)),
        box(20, 276, 520, 52, "Originals", "every message, word for word", kind="green"),
        text(20, 350, "Each level consists of sentences from the level below it."),
    ),
    "concept-forgetting": svg(
        "Forgetting removes a memory from every place, and names backups", 320,
        box(160, 20, 240, 46, ">mnem forget ID"),
        *(joined(arrow((280, 66), (x + 62, 104)), box(x, 106, 124, 56, title, about, kind="green"))
          for x, (title, about) in zip(range(20, 560, 132), PLACES, strict=False)),
        arrow((280, 166), (280, 202)),
        box(100, 204, 360, 50, "Receipt", "counts, and no words"),
        text(20, 284, "It names backups that still have the words. Copies elsewhere"),
        text(20, 304, "are out of reach."),
    ),
    "concept-context": svg(
        "A context window: system prompt, memory, learnings, summaries, messages", 348,
        *(joined(box(20, y, 300, height, title, kind=kind), text(336, y + height // 2 + 5, about))
          for y, title, about, height, kind in PARTS),
        text(20, 338, "Never more than the total, counted in tokens."),
    ),
}  # fmt: skip
"""The pictures by the names of their files."""


if __name__ == "__main__":
    for name, picture in DRAWN.items():
        (PICTURES / f"{name}.svg").write_text(picture, "utf-8")
