"""Answers in the form that was chosen, within the columns there are, and nothing that steers a terminal."""

import ast
import io
import sys
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

import click
import msgspec
import pytest
from support.cases import each_case

import mnemosyned
from mnemosyned import Memory
from mnemosyned.cli.ids import id_in_last_list, number_of, save_list
from mnemosyned.cli.output.memories import highlight
from mnemosyned.cli.output.show import (
    DEPTH_MAX,
    AnswerPrinter,
    escape_strings,
    render,
    renderer_of,
)
from mnemosyned.cli.output.terminal import (
    cut_text,
    local_time,
    say,
    say_json,
    table,
    wrap_lines,
)
from mnemosyned.cli.registry import COMMANDS
from mnemosyned.errors import InvalidRequest
from mnemosyned.memory.injections import InjectedLine
from mnemosyned.memory.values import Acknowledged, EndedStatement, Hit, Line, Tier
from mnemosyned.verbs.conversation import (
    Briefed,
    EndingList,
    InjectionList,
    LearningList,
)
from mnemosyned.verbs.facade import VERBS
from mnemosyned.verbs.listing import Listed
from mnemosyned.verbs.memories import Recalled
from mnemosyned.verbs.request import result_type

NOON = datetime(2026, 3, 9, 12, tzinfo=UTC)


def hit(id: str, content: str, snippet: str = "") -> Hit:
    return Hit(
        id=id,
        tier=Tier.WORKING,
        score=1.0,
        snippet=snippet or content,
        content=content,
        created_at=NOON,
        session="work",
        source="notes",
        role="user",
    )


TWO = Recalled([hit("01AB", "one\n\ttwo"), hit("01CD", "tea at four")])
ONE = Acknowledged(id="01EF", created_at=NOON, stored=True)


def printed(capsys: pytest.CaptureFixture[str], form: str, result: object) -> list[str]:
    AnswerPrinter(form).show(result)
    return capsys.readouterr().out.splitlines()


def test_a_pipe_gets_a_record_on_each_line(capsys: pytest.CaptureFixture[str]) -> None:
    first, second = printed(capsys, "tsv", TWO)
    lines = [msgspec.json.decode(line) for line in printed(capsys, "jsonl", TWO)]

    id, time, *origin, text = first.split("\t")
    assert (id, text) == ("01AB", r"one\n\ttwo")
    assert origin == ["working", "work", "notes", "user"]
    assert datetime.fromisoformat(time) == NOON
    assert second.endswith("\ttea at four")
    assert [line["id"] for line in lines] == ["01AB", "01CD"]
    assert printed(capsys, "ids", TWO) == ["01AB", "01CD"]
    assert printed(capsys, "ids", ONE) == ["01EF"]


def test_a_line_in_a_pipe_says_what_no_longer_applies(
    capsys: pytest.CaptureFixture[str],
) -> None:
    four, five = "tea at four", "tea at five now"
    ended = EndedStatement(
        at=NOON, by="01CD", reason="now", sentence=four, successor=five
    )
    old = Line(
        id="01AA", created_at=NOON, role="user", content=four, score=1, ended=(ended,)
    )
    hits = [
        replace(hit("01AB", four), ended=(ended,)),
        replace(hit("01EF", "tea"), summary_of=("01AA",), lines=(old,)),
        replace(hit("01GH", "coffee"), superseded_at=NOON),
        replace(hit("01CD", five), history=(old,)),
        hit("01CD", five),
    ]

    lines = printed(capsys, "tsv", Recalled(hits))

    notes = ["\t".join(line.split("\t")[7:]) for line in lines]
    noon = local_time(NOON)
    until = f"until {noon}, then: “{five}”"
    before = f"before, {noon}: “{four}”"
    assert notes == [until, until, f"superseded on {noon}", before, ""]


def test_lines_of_repeats_are_none_of_a_summarys_originals(
    capsys: pytest.CaptureFixture[str],
) -> None:
    lines = tuple(
        Line(id=id, created_at=NOON, role="user", content="tea", score=1)
        for id in ("01AA", "01AB", "02AA", "02AB")
    )
    summary = replace(hit("01EF", "tea"), tier=Tier.EPISODIC, lines=lines)
    summary = replace(summary, summary_of=("01AA", "01AB", "01AC"))

    shown = printed(capsys, "table", Recalled([summary]))

    assert any("2 of 3 originals: mnem expand 01EF" in line for line in shown)


@each_case(
    ("page", "nothing"),
    [
        (Listed([]), "nothing matches"),
        (LearningList([]), "no learning matches"),
        (EndingList([]), "no statement was ended"),
    ],
)
def test_a_page_says_how_to_see_what_follows_even_an_empty_one(
    page: Listed | LearningList | EndingList, nothing: str
) -> None:
    remark = renderer_of(type(page)).remark

    assert remark(page) == nothing
    assert remark(msgspec.structs.replace(page, next="c7")).endswith("--after c7")


def test_a_table_too_wide_for_the_terminal_loses_columns_or_becomes_blocks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rows = [("01KAYTE2S0AAAAAAAAAAAAAAAA", "work", "a summary of some length")]
    monkeypatch.setenv("COLUMNS", "40")
    narrow = table(("id", "session", "summary"), rows, optional=("id",))
    monkeypatch.setenv("COLUMNS", "30")
    names = [f"name-{number}" for number in range(6)]
    blocks = click.unstyle(table(names, [["a long value of a cell"] * 6]))

    assert narrow.splitlines()[-1] == "work     a summary of some length"
    assert blocks.splitlines()[0] == "name-0      a long value of a"


def test_lines_have_no_end_in_a_pipe(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)

    assert cut_text("word " * 500, 10_000) == ("word " * 500).strip()
    assert "\n" not in wrap_lines("word " * 500)


def test_code_keeps_its_lines_and_a_long_text_its_title() -> None:
    code = "def f():\n    return 1"
    notes = "# Deploys\n" + "filler words " * 40 + "we deploy on Tuesdays"
    found = Recalled([hit("a", code), hit("b", notes, "…we deploy on Tuesdays")])

    lines = click.unstyle(render(found)).splitlines()

    assert lines[2:4] == ["   def f():", "       return 1"]
    assert lines[-2:] == ["   # Deploys", "   …we deploy on Tuesdays"]


def test_the_long_name_of_an_agents_session_keeps_the_indent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    session = "claude-code:6f1c2a34-9b1d-4f7e-8a55-0c9d3e7b1a22"
    said = replace(hit("01AB", "one"), session=session, source="claude-code")

    lines = click.unstyle(render(Recalled([said]))).splitlines()

    assert lines[0].endswith(f"  working  {session}")
    assert lines[1:] == ["   user", "   01AB", "   one"]


def test_an_original_is_quoted_near_its_match() -> None:
    text = "filler words " * 40 + "we deploy on Tuesdays"
    line = Line(id="01AA", created_at=NOON, role="user", content=text, score=1)
    summary = replace(hit("01EF", "tea"), tier=Tier.EPISODIC, lines=(line,))
    summary = replace(summary, summary_of=("01AA",))
    found = Recalled([summary], matching=("deploy",))

    (_, _, quoted, *_) = click.unstyle(render(found)).splitlines()

    assert quoted.startswith("   user: “…")
    assert quoted.endswith("we deploy on Tuesdays”")


def test_a_briefing_says_of_each_line_why_and_from_where() -> None:
    quotes = {id: f"[2026-03-09, user] {id}" for id in ("old", "new", "last")}
    lines = [
        InjectedLine(id=id, text=text, reason=f"why {id}")
        for id, text in quotes.items()
    ]
    text = f"Stated:\n- {quotes['old']} (later: {quotes['new']})\n- {quotes['last']}"

    shown = click.unstyle(render(Briefed(lines, text))).splitlines()

    assert shown[2:4] == ["   why old; old", "   why new; new"]
    assert shown[4:] == [f"- {quotes['last']}", "   why last; last"]


@each_case(
    ("text", "matching", "marked"),
    [
        ("We deployed it; redeploy?", ["deploy"], ["deployed"]),
        ("tea for the team, teas", ["tea"], ["tea", "teas"]),
        ("Die STRASSE, Brücken", ["bruck"], ["Brücken"]),
        ("火曜日に出発", ["火曜"], ["火曜"]),
        ("code QX-48213 and QX-482139", ["qx-48213"], ["QX-48213"]),
        ("a crane, two cranes, no cranberry", ["cran"], ["crane", "cranes"]),
        ("サーバーはnginxです、nginxing", ["nginx"], ["nginx", "nginxing"]),
        ("由Ana主持，banana", ["ana"], ["Ana"]),
        ("nothing", [], []),
    ],
)
def test_the_words_that_match_stand_out(
    text: str, matching: list[str], marked: list[str]
) -> None:
    parts = highlight(text, matching).split("\x1b[1m\x1b[4m")

    assert [part.split("\x1b[0m")[0] for part in parts[1:]] == marked
    assert click.unstyle(highlight(text, matching)) == text


def test_without_characters_of_its_own_a_terminal_gets_ascii(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr(sys, "stdout", stream)

    say("“Brücke” → cut…")

    assert stream.buffer.getvalue() == b'"Br?cke" -> cut...\n'


def test_entries_of_the_last_list_have_numbers(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("STATE_DIRECTORY", str(tmp_path))
    with pytest.raises(InvalidRequest, match="has shown no list yet"):
        id_in_last_list(1)

    save_list(["01AB", "01CD"])

    assert id_in_last_list(2) == "01CD"
    assert [number_of(word) for word in ("#2", "@2", "%2", "2", "2026", "01AB")] == [
        2, 2, 2, 2, None, None,
    ]  # fmt: skip
    with pytest.raises(InvalidRequest, match="the numbers 1 to 2"):
        id_in_last_list(3)
    (file,) = (tmp_path / "lists").iterdir()
    assert file.stat().st_mode & 0o777 == 0o600


def test_what_can_be_changed_has_a_number_in_its_list() -> None:
    with Memory(":memory:") as memory:
        ids = [memory.learn(rule).learning.id for rule in ("Use tabs.", "Use pnpm.")]
        memory.context("Which tool installs packages?")
        learnings, injections = memory.learnings(), memory.injections()
    printer = AnswerPrinter("table")

    printer.show(learnings)

    assert printer.ids == ids[::-1]
    assert click.unstyle(render(learnings, first=7)).startswith("7. ")
    assert click.unstyle(render(injections)).startswith("1. ")
    for kind in (LearningList, InjectionList, EndingList):
        assert renderer_of(kind).is_numbered


def test_every_result_of_a_verb_in_the_shell_has_a_renderer() -> None:
    shown = {
        result_type(verb)
        for name, verb in VERBS.items()
        if name.replace("_", "-") in COMMANDS
    }

    assert all(map(renderer_of, shown))


# Nothing is printed but through the one function that lets nothing steer a terminal.


ROOT = Path(mnemosyned.__file__).parent
PROMPTS = "echo secho confirm prompt echo_via_pager pause print show"
PRINTING = {
    "print",
    *(f"click.{name}" for name in PROMPTS.split()),
    *(
        f"sys.{stream}.{name}"
        for stream in ("stdout", "stderr", "stdout.buffer", "stderr.buffer")
        for name in ("write", "writelines")
    ),
}


@dataclass(frozen=True)
class Output:
    content: str
    session: str
    metadata: dict[str, object]


@pytest.mark.thorough
def test_nothing_prints_but_the_terminal_module() -> None:
    found: dict[str, list[str]] = {}
    for file in sorted(ROOT.rglob("*.py")):
        program = file.read_text(encoding="utf-8")
        if not any(word in program for word in ("print", "click", "sys.std")):
            continue
        nodes = ast.walk(ast.parse(program))
        calls = {ast.unparse(node.func) for node in nodes if isinstance(node, ast.Call)}
        if printing := sorted(calls & PRINTING):
            found[str(file.relative_to(ROOT))] = printing

    assert found == {"cli/output/terminal.py": ["click.confirm", "click.echo"]}


def test_styles_are_ours_alone(capsys: pytest.CaptureFixture[str]) -> None:
    memory = Output(
        "a\x1b[8mhidden\x1b[0m\nb", "s\n1\x1b[2m", {"k\x9b": ["\u202e", 1, None]}
    )

    clean = escape_strings(memory)
    say(f"{clean.content} {clean.session} {clean.metadata}", styled=True)
    say("\x1b[2mdim\x1b[0m")

    assert clean.metadata == {r"k\x9b": [r"\u202e", 1, None]}
    assert capsys.readouterr().out == (
        "a\\x1b[8mhidden\\x1b[0m\nb s\\n1\\x1b[2m {'k\\\\x9b': ['\\\\u202e', 1, None]}\n"
        "\\x1b[2mdim\\x1b[0m\n"
    )


def test_deep_metadata_is_shown_as_json() -> None:
    deep: object = "\x1b"
    for _ in range(DEPTH_MAX + 300):
        deep = [deep]

    assert "\x1b" not in str(escape_strings(Output("", "", {"deep": deep})))


def test_json_keeps_what_it_says(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    say_json({"content": "a\x9b\u202e\U000e0041b"})

    assert (
        capfdbinary.readouterr().out
        == b'{"content":"a\\u009b\\u202e\\udb40\\udc41b"}\n'
    )
