"""Nothing is printed but through the one function that lets nothing steer a terminal."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

import mnemosyned
from mnemosyned.cli.output.show import DEPTH_MAX, escape_strings
from mnemosyned.cli.output.terminal import say, say_json

ROOT = Path(mnemosyned.__file__).parent
PRINTING = {
    "echo",
    "secho",
    "confirm",
    "prompt",
    "echo_via_pager",
    "pause",
    "print",
    "show",
}
WRITING = {"write", "writelines"}
STREAMS = {"sys.stdout", "sys.stderr", "sys.stdout.buffer", "sys.stderr.buffer"}


@dataclass(frozen=True)
class Line:
    content: str
    session: str
    metadata: dict[str, object]


def calls_that_print(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        name = node.func
        if isinstance(name, ast.Name) and name.id == "print":
            yield "print"
        if isinstance(name, ast.Attribute) and name.attr in {*PRINTING, *WRITING}:
            owner = ast.unparse(name.value)
            if owner == "click" and name.attr in PRINTING:
                yield f"click.{name.attr}"
            if owner in STREAMS and name.attr in WRITING:
                yield f"{owner}.{name.attr}"


def test_nothing_prints_but_the_terminal_module() -> None:
    found: dict[str, list[str]] = {}
    for file in sorted(ROOT.rglob("*.py")):
        program = file.read_text(encoding="utf-8")
        if not any(word in program for word in ("print", "click", "sys.std")):
            continue
        if calls := sorted(set(calls_that_print(ast.parse(program)))):
            found[str(file.relative_to(ROOT))] = calls

    assert found == {"cli/output/terminal.py": ["click.confirm", "click.echo"]}


def test_styles_are_ours_alone(capsys: pytest.CaptureFixture[str]) -> None:
    memory = Line(
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

    assert "\x1b" not in str(escape_strings(Line("", "", {"deep": deep})))


def test_json_keeps_what_it_says(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    say_json({"content": "a\x9b\u202e\U000e0041b"})

    assert (
        capfdbinary.readouterr().out
        == b'{"content":"a\\u009b\\u202e\\udb40\\udc41b"}\n'
    )
