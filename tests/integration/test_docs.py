"""The pages of the documentation match the product: verbs, commands, settings, errors, files."""

import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
import yaml
from bench.published import BENCHMARKS, CHARTS, charts
from bench.readability import Readability
from bench.scale import PAGE, Assumed, tables, written
from bench.summary_levels import LEVELS, demo_week, written_levels
from support.cases import each_case
from support.pages import DOCS, PAGES, PROJECT, README, anchors, blocks, links

from mnemosyned.cli.main import mnem
from mnemosyned.verbs.facade import VERBS
from mnemosyned.verbs.owners import ADMINISTRATION, ENROLMENT

README_BYTES_MAX = 6_144
MAP_ROWS_MAX = 20
OTHERS_FILES = {"AGENTS.md", "CLAUDE.md"}
"""Files of agents' tools, which pages name."""
CONTRIBUTING = PROJECT / "CONTRIBUTING.md"
DEFAULTS = PROJECT / "config" / "mnemosyned.yaml"
ALL_TEXT = "\n".join(page.read_text("utf-8") for page in PAGES)


def commands(
    group: click.Group, context: click.Context, path: str = "mnem"
) -> Iterator[tuple[str, click.Command]]:
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        if isinstance(command, click.Group):
            yield from commands(command, context, f"{path} {name}")
        else:
            yield f"{path} {name}", command


COMMANDS = dict(commands(mnem, click.Context(mnem)))
GROUPS = {path.rsplit(" ", 1)[0] for path in COMMANDS}


def settings() -> dict[str, str]:
    """Every setting and its default, as the configuration file spells it."""
    keys: dict[str, str] = {}
    section = ""
    for line in DEFAULTS.read_text("utf-8").splitlines():
        if heading := re.fullmatch(r"(\w+):\s*(?:#.*)?", line):
            section = f"{heading[1]}."
        elif setting := re.match(r"( *)(\w+): +(.+?)(?:\s+#|$)", line):
            keys[(section if setting[1] else "") + setting[2]] = setting[3]
    return keys


def table(page: str, shape: str) -> list[tuple[str, str]]:
    """The two cells of each row of a page that match a shape."""
    return re.findall(shape, (DOCS / page).read_text("utf-8"), re.MULTILINE)


def test_the_readme_stays_short() -> None:
    assert len(README.read_bytes()) <= README_BYTES_MAX


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


def test_every_documented_command_and_option_exists() -> None:
    lines = [
        line.removeprefix("$ ")
        for page in PAGES
        for block in blocks(page)
        if block.language in ("console", "sh")
        for line in block.text.replace("\\\n", "").splitlines()
    ]
    lines += re.findall(r"`(mnem [^`]+)`", ALL_TEXT)

    for line in lines:
        for call in re.findall(r"\bmnem (?![|.])[^|;)#]*", line):
            path, *rest = _split(call)
            if path in GROUPS:
                continue
            assert path in COMMANDS, f"there is no {path!r}, in {line!r}"
            options = {name for part in COMMANDS[path].params for name in part.opts} | {
                "--help"
            }
            for word in rest:
                option = word.split("=")[0].strip('"')
                if re.fullmatch(r"--[a-z][a-z-]*", option):
                    assert option in options, f"{path} has no {option}, in {line!r}"


def _split(call: str) -> list[str]:
    """The words of a call, with those that name the command joined."""
    words = re.sub(r'"[^"]*"', '""', call).split()
    length = next((n for n in (3, 2) if " ".join(words[:n]) in {*COMMANDS, *GROUPS}), 2)
    return [" ".join(words[:length]), *words[length:]]


def test_a_listed_route_takes_its_methods() -> None:
    rows = table("http-api.md", r"^\| \[?`/v1/([\w/]+)`\S* \| ([A-Z, ]+) \|")
    verbs = VERBS | {verb.verb_name(): verb for verb in (*ENROLMENT, *ADMINISTRATION)}
    methods = {"events": "GET"} | {
        name: "POST" if verb.writes else "GET, POST" for name, verb in verbs.items()
    }

    assert {name: methods.get(name) for name, _ in rows} == dict(rows)
    assert {verb.verb_name() for verb in (*ENROLMENT, *ADMINISTRATION)} <= dict(
        rows
    ).keys()


def test_every_section_of_the_settings_has_its_row() -> None:
    sections = yaml.safe_load(DEFAULTS.read_text("utf-8"))
    rows = table("settings.md", r"^\| `(\w+)` \| (.+) \|$")

    assert {name for name, _ in rows} == {
        name for name, value in sections.items() if isinstance(value, dict)
    }


def test_every_setting_that_a_page_names_exists() -> None:
    sections = yaml.safe_load(DEFAULTS.read_text("utf-8"))
    names = "|".join(key for key, value in sections.items() if isinstance(value, dict))
    named = set(re.findall(rf"`((?:{names})\.[a-z_]+)`", ALL_TEXT)) - {"config.py"}

    assert named <= settings().keys()


def test_every_file_that_a_page_names_exists() -> None:
    named = re.findall(r"`([\w.-]+(?:/[\w.-]+)*(?:/|\.py|\.md|\.yaml))`", ALL_TEXT)
    roots = (PROJECT, PROJECT / "mnemosyned")

    missing = [
        name for name in named if not any((root / name).exists() for root in roots)
    ]
    assert set(missing) <= OTHERS_FILES


def test_the_map_has_every_room_and_stays_short() -> None:
    package = PROJECT / "mnemosyned"
    rooms = {
        f"{folder.name}/" for folder in package.iterdir() if any(folder.glob("*.py"))
    }
    rows = re.findall(
        r"^\| `([\w/]+/)` \|", CONTRIBUTING.read_text("utf-8"), re.MULTILINE
    )
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


SUMMARIES_PAGE = Path(__file__).parents[2] / "docs" / "summaries.md"
BLOCK = re.compile(r"```text\n(.+?)\n```", re.DOTALL)


@pytest.fixture(scope="module")
def page() -> dict[str, list[str]]:
    """The shown summaries, by the heading above them."""
    parts = SUMMARIES_PAGE.read_text("utf-8").split("\n## ")[1:]
    return {part.split("\n")[0]: BLOCK.findall(part) for part in parts}


def test_the_summaries_of_the_page_are_of_the_demo(page: dict[str, list[str]]) -> None:
    levels = [
        {episode.content for episode, _ in level}
        for level in written_levels(next(demo_week()))
    ]

    assert [len(page[name]) for name in ("Episodes", "A day", "A week")] == [5, 1, 1]
    assert set(page["Episodes"]) <= levels[0]
    assert set(page["A day"]) <= levels[1]
    assert set(page["A week"]) <= levels[2]


def test_the_summaries_of_the_demo_can_be_read() -> None:
    levels = written_levels(next(demo_week()))

    for name, level in zip(LEVELS, levels, strict=True):
        readable = Readability()
        for episode, below in level:
            readable.add(episode.content, below)
        figures = readable.figures()
        assert figures["whole"] >= 0.95, name
        assert figures["dangling"] <= 0.03, name
        assert figures["bare_lists"] == 0, name
        assert figures["shrunk"] == 1, name


# The page on scale has the tables that its script computes, and the script computes soundly.


def test_the_page_has_the_tables_of_the_script() -> None:
    text = PAGE.read_text("utf-8")

    for name, table in tables(Assumed()).items():
        assert f"<!-- {name} -->\n{table}\n" in text
    assert written(text, Assumed()) == text


# The charts of the page on benchmarks are drawn from its tables.


def test_the_charts_of_the_page_show_the_figures_of_its_tables() -> None:
    for name, svg in charts(BENCHMARKS.read_text("utf-8")).items():
        assert (CHARTS / f"{name}.svg").read_text("utf-8") == svg, (
            f"{name}.svg is not of the page's figures: make bench-plots"
        )
