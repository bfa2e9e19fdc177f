"""The pages of the documentation match the product: verbs, commands, settings, errors, files."""

import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from bench.published import BENCHMARKS, CHARTS, charts
from bench.readability import Readability
from bench.scale import PAGE, Assumed, tables, written
from bench.summary_levels import LEVELS, demo_week, written_levels
from support.cases import each_case
from support.commands import walk_commands
from support.pages import DOCS, PAGES, PROJECT, README, anchors, blocks, links

from mnemosyned.config.settings import keys
from mnemosyned.memory.values import Episode
from mnemosyned.verbs.facade import VERBS
from mnemosyned.verbs.owners import ADMINISTRATION, ENROLMENT

README_BYTES_MAX = 6_144
MAP_ROWS_MAX = 20
OTHERS_FILES = {"AGENTS.md", "CLAUDE.md"}
"""Files of agents' tools, which pages name."""
CONTRIBUTING = PROJECT / "CONTRIBUTING.md"
ALL_TEXT = "\n".join(page.read_text("utf-8") for page in PAGES)
SECTIONS = {key.partition(".")[0] for key, _ in keys() if "." in key}


COMMANDS = {
    path: command
    for path, command in walk_commands()
    if not isinstance(command, click.Group)
}
GROUPS = {path.rsplit(" ", 1)[0] for path in COMMANDS}


def table(page: str, shape: str) -> list[tuple[str, str]]:
    """The two cells of each row of a page that match a shape."""
    return re.findall(shape, (DOCS / page).read_text("utf-8"), re.MULTILINE)


def test_the_readme_stays_short() -> None:
    assert len(README.read_bytes()) <= README_BYTES_MAX


def test_the_readme_and_the_comparison_give_the_figures_of_the_benchmarks() -> None:
    rows = table(
        "benchmarks.md",
        r"^\| searched in all ten conversations, \w+ a sleep \| (\.\d+) \| ([^|]+) \| [^\n]+$",
    )
    (before, plain), (after, _) = rows[:2]  # LoCoMo is the first set of the page

    measured = README.read_text("utf-8")
    assert f"| mnemosyned, before / after a sleep | {before} / {after} |" in measured
    assert f"| SQLite FTS5 alone | {plain} |" in measured
    compared = " ".join((DOCS / "comparison.md").read_text("utf-8").split())
    assert f"mnemosyned {before}, and SQLite FTS5 alone {plain}." in compared


@each_case("page", PAGES)
def test_links_lead_to_a_file_and_a_heading(page: Path) -> None:
    for file, anchor in links(page):
        target = page.parent / file if file else page
        assert target.exists(), f"{page.name}: {file} does not exist"
        if anchor:
            assert anchor in anchors(target), f"{page.name}: {file} has no #{anchor}"


def test_every_page_is_linked_from_the_readme() -> None:
    linked = {(PROJECT / file).resolve() for file, _ in links(README)}

    assert {page for page in PAGES if page != README} <= linked


def test_every_page_is_in_the_menu_of_the_site() -> None:
    menu = (PROJECT / ".mkdocs.yml").read_text("utf-8").partition("\nnav:\n")[2]

    listed = set(re.findall(r"([\w-]+\.md)$", menu, re.MULTILINE))
    assert {path.name for path in DOCS.glob("*.md")} <= listed


def documented_calls() -> Iterator[list[str]]:
    """The words of each call that a page shows, with those that name the command joined."""
    shown = [
        line.removeprefix("$ ")
        for page in PAGES
        for block in blocks(page)
        if block.language in ("console", "sh")
        for line in block.text.replace("\\\n", "").splitlines()
    ]
    for line in [*shown, *re.findall(r"`(mnem [^`]+)`", ALL_TEXT)]:
        for call in re.findall(r"\bmnem (?![|.])[^|;)#]*", line):
            words = re.sub(r'"[^"]*"', '""', call).split()
            named = {*COMMANDS, *GROUPS}
            length = next((n for n in (3, 2) if " ".join(words[:n]) in named), 2)
            yield [" ".join(words[:length]), *words[length:]]


def test_every_documented_command_and_option_exists() -> None:
    for path, *rest in documented_calls():
        if path in GROUPS:
            continue
        assert path in COMMANDS, f"there is no {path!r}, with {rest}"
        options = {name for part in COMMANDS[path].params for name in part.opts}
        for word in rest:
            option = word.split("=")[0].strip('"')
            if re.fullmatch(r"--[a-z][a-z-]*", option):
                assert option in {*options, "--help"}, f"{path} has no {option}"


def test_a_listed_route_takes_its_methods() -> None:
    rows = dict(table("http-api.md", r"^\| \[?`/v1/([\w/]+)`\S* \| ([A-Z, ]+) \|"))
    of_owners = {verb.verb_name(): verb for verb in (*ENROLMENT, *ADMINISTRATION)}
    methods = {"events": "GET"} | {
        name: "POST" if verb.writes else "GET, POST"
        for name, verb in (VERBS | of_owners).items()
    }

    assert {name: methods.get(name) for name in rows} == rows
    assert of_owners.keys() <= rows.keys()


def test_every_section_of_the_settings_has_its_row() -> None:
    rows = table("settings.md", r"^\| `(\w+)` \| (.+) \|$")

    assert {name for name, _ in rows} == SECTIONS


def test_every_setting_that_a_page_names_exists() -> None:
    names = "|".join(SECTIONS)
    named = set(re.findall(rf"`((?:{names})\.[a-z_]+)`", ALL_TEXT)) - {"config.py"}

    assert named <= {key for key, _ in keys()}


def test_every_file_that_a_page_names_exists() -> None:
    named = re.findall(r"`([\w.-]+(?:/[\w.-]+)*(?:/|\.py|\.md|\.yaml))`", ALL_TEXT)
    roots = (PROJECT, PROJECT / "mnemosyned")

    missing = {name for name in named if not any((r / name).exists() for r in roots)}
    assert missing <= OTHERS_FILES


def test_the_map_has_every_room_and_stays_short() -> None:
    package = PROJECT / "mnemosyned"
    rooms = {f"{file.parent.name}/" for file in package.glob("*/*.py")}
    text = CONTRIBUTING.read_text("utf-8")
    rows = re.findall(r"^\| `([\w/]+/)` \|", text, re.MULTILINE)
    mapped = [row for row in rows if not row.startswith("tests/")]

    assert set(mapped) == rooms
    assert len(mapped) <= MAP_ROWS_MAX


def test_the_layers_are_those_of_the_import_contract() -> None:
    text = (PROJECT / "pyproject.toml").read_text("utf-8")
    layers = re.search(r"layers = \[\n(.*?)\]", text, re.DOTALL)
    assert layers
    drawn = "\n".join(re.findall(r'"(.*)"', layers[1]))

    assert f"```text\n{drawn}\n```" in CONTRIBUTING.read_text("utf-8")


def test_every_make_target_that_a_page_names_exists() -> None:
    makefile = (PROJECT / "Makefile").read_text("utf-8")
    targets = set(re.findall(r"^([a-z][\w-]*):", makefile, re.MULTILINE))
    named = re.findall(r"(?:`|^)make ([a-z][\w-]*)", ALL_TEXT, re.MULTILINE)

    assert set(named) <= targets


def test_the_changelog_has_features_alone_before_the_first_release() -> None:
    text = (PROJECT / "CHANGELOG.md").read_text("utf-8")

    assert re.findall(r"^## (.*)$", text, re.MULTILINE) == ["[Unreleased]"]
    assert re.findall(r"^### (.*)$", text, re.MULTILINE) == ["Added"]


# The page of summaries shows what the product writes of the demo's week, word for word.


Levels = list[list[tuple[Episode, list[str]]]]


@pytest.fixture(scope="module")
def levels() -> Levels:
    """The summaries of the demo's week by their levels, each with what it was made of."""
    return written_levels(next(demo_week()))


@pytest.mark.thorough
def test_every_summary_on_the_page_is_one_of_the_demo(levels: Levels) -> None:
    parts = (DOCS / "summaries.md").read_text("utf-8").split("\n## ")[1:]
    blocks = re.compile(r"```text\n(.+?)\n```", re.DOTALL)
    page = {part.split("\n")[0]: blocks.findall(part) for part in parts}

    shown = [page[name] for name in ("Episodes", "A day", "A week")]
    assert [len(texts) for texts in shown] == [5, 1, 1]
    for texts, level in zip(shown, levels, strict=False):
        assert set(texts) <= {episode.content for episode, _ in level}


def test_the_summaries_of_the_demo_can_be_read(levels: Levels) -> None:
    for name, level in zip(LEVELS, levels, strict=True):
        readable = Readability()
        for episode, below in level:
            readable.add(episode.content, below)
        figures = readable.figures()
        assert figures["whole"] >= 0.95, name
        assert figures["dangling"] <= 0.03, name
        assert figures["bare_lists"] == 0, name
        assert figures["shrunk"] == 1, name


def test_the_page_has_the_tables_of_the_script() -> None:
    text = PAGE.read_text("utf-8")

    for name, table in tables(Assumed()).items():
        assert f"<!-- {name} -->\n{table}\n" in text
    assert written(text, Assumed()) == text


def test_the_charts_of_the_page_show_the_figures_of_its_tables() -> None:
    for name, svg in charts(BENCHMARKS.read_text("utf-8")).items():
        assert (CHARTS / f"{name}.svg").read_text("utf-8") == svg, (
            f"{name}.svg is not of the page's figures: make bench-plots"
        )
