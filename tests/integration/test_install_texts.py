"""What pages and errors say of installing works today: from a checkout, until the package is on an index."""

import re
import sys
from pathlib import Path

import pytest
from support.cases import each_case
from support.pages import DOCS, PAGES, PROJECT

from mnemosyned import version

EXTRAS_PAGE = DOCS / "getting-started.md"
PUBLISHED = re.compile(
    r"(?:pip|pipx|uv tool|uv)\s+(?:install|inject|add|run)\s(?:--?\S+\s+)*['\"]?mnemosyned\b(?!\s+['\"]?\w)"
)
"""Installs this package from an index; `pipx inject mnemosyned PACKAGE` adds to one that is there."""
CHECKOUT = re.compile(
    r"(?:pip|pipx|uv tool)\s+install\s(?:--?\S+\s+)*['\"]?(?:\.|PATH)(?![\w/])|on no index"
)
"""Installs this package from its checkout."""


def texts() -> list[Path]:
    """The pages, and all that is installed or shipped as configuration."""
    return [
        *(page for page in PAGES if page.name != "CONTRIBUTING.md"),
        *(PROJECT / "mnemosyned").rglob("*.py"),
        *(PROJECT / "mnemosyned").rglob("*.toml"),
        *(PROJECT / "config").rglob("*.yaml"),
        *(PROJECT / "systemd").iterdir(),
    ]


def lines_with(pattern: re.Pattern[str]) -> list[str]:
    return [
        f"{file.relative_to(PROJECT)}: {found[0]}"
        for file in texts()
        for found in pattern.finditer(file.read_text("utf-8"))
    ]


def test_no_text_installs_what_does_not_exist_yet_or_no_longer_must_be_checked_out() -> (
    None
):
    wrong = CHECKOUT if version.IS_PUBLISHED else PUBLISHED

    assert lines_with(wrong) == []
    assert lines_with(PUBLISHED if version.IS_PUBLISHED else CHECKOUT)


@each_case(
    "line",
    [
        "pip install mnemosyned",
        "`pip install 'mnemosyned[postgres]'`",
        "pipx install --force mnemosyned",
        "uv tool install mnemosyned[top]",
    ],
)
def test_a_line_for_an_index_is_told_from_one_for_a_checkout(line: str) -> None:
    assert PUBLISHED.search(line)
    assert not CHECKOUT.search(line)
    assert CHECKOUT.search(re.sub(r"mnemosyned", ".", line))
    assert not PUBLISHED.search("pipx inject mnemosyned 'psycopg[binary]'")


def test_every_page_that_names_an_extra_says_how_to_install_it() -> None:
    named = re.compile(r"\bextras?\b(?:\]\(\S+\))?(?:, a group| `)|`mnemosyned\[")
    pages = [page for page in PAGES if named.search(page.read_text("utf-8"))]

    assert {"frameworks.md", "owners.md", "server.md"} <= {page.name for page in pages}
    others = {EXTRAS_PAGE, DOCS / "decisions.md", PROJECT / "CONTRIBUTING.md"}
    for page in set(pages) - others:
        assert "getting-started.md#extras" in page.read_text("utf-8"), page
    assert "## Extras" in EXTRAS_PAGE.read_text("utf-8")


def test_an_extra_is_named_by_its_packages_until_the_package_is_published(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    python = f"{sys.executable} -m pip install "

    monkeypatch.setattr(version, "IS_PUBLISHED", False)
    assert version.install_command("top") == f"{python}'textual<9,>=8.2'"

    monkeypatch.setattr(version, "IS_PUBLISHED", True)
    assert version.install_command("top") == f"{python}'mnemosyned[top]'"
