"""The documentation site: `make docs` stages pages, generates the reference and runs MkDocs.

Sources are `docs/`, README, CONTRIBUTING and CHANGELOG. Pages keep their links: each link to a page
of the repository becomes one to the page of the site, and a linked file is copied next to it.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from posixpath import normpath, relpath

import yaml
from docs.agent_pages import agent_pages
from docs.reference import reference, settings_tables
from support.pages import DOCS, PROJECT

CONFIG = PROJECT / ".mkdocs.yml"
STAGED = PROJECT / "build" / "docs-pages"
SITE = PROJECT / "build" / "site"
MKDOCS = (sys.executable, "-m", "mkdocs")
THEME = Path(__file__).parent / "theme"
ROOT_PAGES = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    ".github/SECURITY.md": "report-a-vulnerability.md",
    ".github/CODE_OF_CONDUCT.md": "code-of-conduct.md",
}
"""The page of the site for each page outside of `docs/`."""
SOURCES = {
    "mnemosyned/__init__.pyi": "reference/python.md",
    "mnemosyned/agents/setup/targets.toml": "agents/index.md",
    "mnemosyned/cli/registry.txt": "reference/cli/index.md",
    "mnemosyned/errors.py": "reference/errors.md",
    "mnemosyned/verbs/facade.py": "reference/verbs/index.md",
}
"""The page that is generated from a source: a link to the source becomes one to the page."""
MOVEMENT = re.compile(r"@keyframes s\d+\{.*?\}\}|\.s\d+\{animation[^}]*\}")
"""What makes lines of a picture appear one after the other; the first screen has them all at once."""
SETTINGS_MARK = "<!-- generated: settings -->"
FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"(!?\[[^\]]*\]\()([^)\s]+)(\))")


def stage(folder: Path = STAGED) -> None:
    """Write all pages of the site as Markdown into `folder`, with the files they link to."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(DOCS / "pictures", folder / "pictures")
    shutil.copytree(THEME / "assets", folder / "assets")
    moving = (DOCS / "pictures" / "two-agents.svg").read_text("utf-8")
    still = MOVEMENT.sub("", moving)
    (folder / "assets" / "two-agents.svg").write_text(still, "utf-8")
    pages = {f"docs/{path.name}": path.name for path in sorted(DOCS.glob("*.md"))}
    pages |= ROOT_PAGES
    texts = {}
    for source, target in pages.items():
        text = (PROJECT / source).read_text("utf-8")
        if source == "README.md":
            text = home_page(text)
        texts[target] = _with_links_of_the_site(text, source, target, pages, folder)
    texts["settings.md"] = texts["settings.md"].replace(
        SETTINGS_MARK, settings_tables()
    )
    texts |= reference() | agent_pages()
    for target, text in texts.items():
        path = folder / target
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")


def _with_links_of_the_site(
    text: str, source: str, target: str, pages: dict[str, str], folder: Path
) -> str:
    """Return a page's text with its links leading to pages of the site, or to copied files."""
    here = Path(source).parent.as_posix()

    def moved(match: re.Match[str]) -> str:
        file, sign, anchor = match[2].partition("#")
        if not file or "://" in file or file.startswith("mailto:"):
            return match[0]
        path = normpath(f"{here}/{file}")
        new = pages.get(path) or SOURCES.get(path)
        if new is None and path.startswith(("docs/", "assets/")):
            new = path.removeprefix("docs/")
        if new is None:
            new = f"files/{path}"
            copy = folder / new
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(PROJECT / path, copy)
        start = Path(target).parent.as_posix()
        return f"{match[1]}{relpath(new, start)}{sign}{anchor}{match[3]}"

    parts: list[str] = []
    end = 0
    for block in FENCE.finditer(text):
        parts += [LINK.sub(moved, text[end : block.start()]), block[0]]
        end = block.end()
    return "".join([*parts, LINK.sub(moved, text[end:])])


def home_page(readme: str) -> str:
    """Return the first page of the site, made of README's parts; the menu replaces its last."""
    intro, *rest = re.split(r"^## ", readme, flags=re.MULTILINE)
    parts = {part.partition("\n")[0]: part.partition("\n")[2].strip() for part in rest}
    title, tagline, about, picture = intro.strip().split("\n\n")
    picture = picture.replace("docs/pictures/", "assets/")
    cards = re.sub(r"^- ", "-   ", parts["Why this one"], flags=re.MULTILINE)
    reasons, _, shown = cards.partition("\n\n!")
    return f"""---
hide:
  - navigation
  - toc
---

<div class="hero" markdown>

{title}

<div class="tagline" markdown>{tagline}</div>

{about}

[Get started](docs/getting-started.md){{ .md-button .md-button--primary }}
[For a team](docs/team.md){{ .md-button }}

</div>

<div class="wide" markdown tabindex="0" role="group" aria-label="A picture">

{picture}

</div>

## Install

{parts["Install"]}

## Why this one

<div class="grid cards" markdown>

{reasons.replace(chr(10) + "  ", chr(10) + "    ")}

</div>

!{shown}

## The first minute

{parts["The first minute"]}

## Measured

{parts["Measured"]}
"""


def build(site: Path = SITE) -> None:
    """Stage the pages, and build the site strictly: a warning ends it."""
    stage()
    packages = str(PROJECT / "build" / "docs")
    run = subprocess.run(
        [*MKDOCS, "build", "--strict", "--config-file", CONFIG, "--site-dir", site],
        env={**os.environ, "PYTHONPATH": packages, "NO_MKDOCS_2_WARNING": "1"},
        cwd=PROJECT,
        capture_output=True,
        text=True,
        check=False,
    )
    if run.returncode:
        raise SystemExit(run.stderr)
    for path in sorted(STAGED.rglob("*.md")):
        shutil.copyfile(path, site / path.relative_to(STAGED))
    write_llms(site)


# ------------------------------------------------------- for agents that read


def write_llms(site: Path) -> None:
    """Write `llms.txt`, a list of all pages, and `llms-full.txt`, their texts."""
    tagline = re.search(
        r"^\*\*(.+)\*\*", (PROJECT / "README.md").read_text(), re.MULTILINE
    )
    assert tagline
    lines = ["# mnemosyned", "", f"> {tagline[1]}", ""]
    texts = []
    for section, pages in _sections():
        lines += [f"## {section}", ""]
        for title, target in pages:
            text = (STAGED / target).read_text("utf-8")
            lines.append(f"- [{title or _title(text)}]({target}): {_opening(text)}")
            texts.append(f"<!-- {target} -->\n{text}")
        lines.append("")
    (site / "llms.txt").write_text("\n".join(lines), "utf-8")
    (site / "llms-full.txt").write_text("\n\n".join(texts), "utf-8")


def _sections() -> Iterator[tuple[str, list[tuple[str, str]]]]:
    """Yield each section of the menu with the title and the file of its pages."""
    for entry in yaml.safe_load(CONFIG.read_text("utf-8").partition("\nnav:\n")[2]):
        if isinstance(entry, str):
            yield "Start", [("", entry)]
            continue
        for section, value in entry.items():
            yield section, list(_pages_of(value))


def _pages_of(value: object, title: str = "") -> Iterator[tuple[str, str]]:
    """Yield title and file of all pages below an entry of the menu."""
    if isinstance(value, str):
        yield title, value
    elif isinstance(value, list):
        for each in value:
            yield from _pages_of(each)
    elif isinstance(value, dict):
        for name, each in value.items():
            yield from _pages_of(each, name)


def _title(text: str) -> str:
    """Return the first heading of a page."""
    match = re.search(r"^# (.+)$", text, re.MULTILINE)
    return match[1].replace("`", "") if match else ""


def _opening(text: str) -> str:
    """Return the first sentence of a page's first paragraph."""
    for part in FENCE.sub("", text).split("\n\n")[1:]:
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", " ".join(part.split()))
        if re.match(r"[A-Z*`]", plain) and not plain.startswith("*Generated"):
            first = re.split(r"(?<=[.?]) ", plain)[0].replace("**", "")
            return f"{first.rstrip(':.')}."
    return ""


if __name__ == "__main__":
    if sys.argv[1:] == ["stage"]:
        stage()
    else:
        build()
        print(f"the site is in {SITE.relative_to(PROJECT)}: open index.html there")
