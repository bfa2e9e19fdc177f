"""What people read is plain American English: pages, comments of settings, help, errors, docstrings.

Prose is pages, comments of configuration files, help of commands, messages of errors, and docstrings
of modules and public names. Code, fenced blocks and generated tables are not prose. The words to avoid
are in `tests/support/words.toml`.
"""

import ast
import re
import tomllib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import click
import pytest
from support.cases import each_case
from support.commands import walk_commands
from support.pages import PAGES, PROJECT

PACKAGE = PROJECT / "mnemosyned"
WORDS = PROJECT / "tests" / "support" / "words.toml"
RULES = tomllib.loads(WORDS.read_text("utf-8"))
WORDS_MAX = 35
SEMICOLONS_MAX = 1
PRONOUNS_MAX = 2
PRONOUN_SPAN = 24

_AVOIDED = re.compile(
    r"\b(?:{})\b".format(
        "|".join(f"(?P<a{number}>{word})" for number, word in enumerate(RULES["avoid"]))
    ),
    re.IGNORECASE,
)
_REPLACEMENTS = [*RULES["avoid"].items()]
_ALLOWED = re.compile("|".join(RULES["allowed"]["phrases"]))
_OPENER = re.compile(rf"[“\"(*]*(?:{'|'.join(RULES['openers']['words'])})\b")
_SUBJECT = re.compile(
    r"(?:^|[;:] |\b(?:but|that|if|when) )what (?:is|was|are|were|has|had)\b(?!.*\?$)",
    re.IGNORECASE,
)
_PRONOUN = re.compile(
    r"(?:what|whatever|those|which|whose|whom|one|ones|such)\b", re.IGNORECASE
)
_END = re.compile(r"(?<=[.!?])[”\")*]*\s+(?=[“\"(*]*[A-Z`‹¶])")
_WORD = re.compile(r"[^\W_][\w’'.,/-]*")
_FENCE = re.compile(r"^ *```.*?^ *```$", re.MULTILINE | re.DOTALL)
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_CODE = re.compile(r"``.+?``|`[^`]+`", re.DOTALL)
_LINK = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence, and where it is; a heading or a short cell of a table is judged by its words alone."""

    place: str
    text: str
    is_whole: bool = True

    def faults(self) -> Iterator[tuple[str, str]]:
        """The rules that the sentence breaks, each with a hint."""
        for match in _AVOIDED.finditer(_ALLOWED.sub("", self.text)):
            hint = _REPLACEMENTS[int(str(match.lastgroup)[1:])][1]
            yield "word", f"{match[0]!r}: {hint}"
        if not self.is_whole:
            return
        words = _WORD.findall(self.text)
        if (
            len(words) > 2
            and not self.text.rstrip('*”")').endswith("?")
            and (opener := _OPENER.match(self.text))
        ):
            yield "opener", f"{opener[0]!r}: begin with the subject"
        if len(words) > WORDS_MAX:
            yield "long", f"{len(words)} words"
        if self.text.count(";") > SEMICOLONS_MAX:
            yield "semicolons", f"{self.text.count(';')} semicolons"
        if _SUBJECT.search(self.text):
            yield "subject", "name what is meant"
        at = [number for number, word in enumerate(words) if _PRONOUN.fullmatch(word)]
        if any(
            last - first < PRONOUN_SPAN
            for first, last in zip(at, at[PRONOUNS_MAX:], strict=False)
        ):
            yield "pronouns", "put nouns for some of the pronouns"


def sentences(place: str, text: str, *, is_whole: bool = True) -> Iterator[Sentence]:
    """The sentences of a paragraph, without the marks of Markdown."""
    plain = _LINK.sub(r"\1", _CODE.sub("`x`", text)).replace("**", "")
    for part in _END.split(" ".join(plain.split())):
        if part:
            yield Sentence(place, part, is_whole)


def of_page(page: Path) -> Iterator[Sentence]:
    """The sentences of a page in Markdown: paragraphs, items of lists, headings and cells of tables."""
    place = str(page.relative_to(PROJECT))
    text = _COMMENT.sub("", _FENCE.sub("\n\n", page.read_text("utf-8")))
    paragraph: list[str] = []
    for line in [*text.splitlines(), ""]:
        mark = re.match(r"\s*(?:[-*] |\d+\. |> )", line)
        if paragraph and (not line.strip() or mark or line.startswith(("#", "|"))):
            yield from sentences(place, " ".join(paragraph))
            paragraph = []
        if line.startswith("#"):
            yield from sentences(place, line.lstrip("# "), is_whole=False)
        elif line.startswith("|"):
            for part in re.split(r"(?<!\\)\||;", line):
                yield from sentences(place, part, is_whole=len(part.split()) > 8)
        elif line.strip():
            paragraph.append(line[mark.end() :] if mark else line)


def of_comments(file: Path) -> Iterator[Sentence]:
    """The sentences of the comments of a file in YAML."""
    place = str(file.relative_to(PROJECT))
    paragraph: list[str] = []
    for line in [*file.read_text("utf-8").splitlines(), ""]:
        before, _, comment = (
            line.partition("# ") if re.search(r"(?:^|\s)# ", line) else (line, "", "")
        )
        if paragraph and (before.strip() or not comment):
            for part in " ".join(paragraph).split(";"):
                yield from sentences(place, part)
            paragraph = []
        if comment:
            paragraph.append(comment)


def of_targets() -> Iterator[Sentence]:
    """The sentences of `make help`."""
    for line in (PROJECT / "Makefile").read_text("utf-8").splitlines():
        target, mark, text = line.partition(": ")[0], *line.partition(" ## ")[1:]
        if mark:
            for part in text.split(";"):
                yield from sentences(f"make {target}", part)


def of_help() -> Iterator[Sentence]:
    """The sentences of the help of every command: its text, its options, its epilog."""
    for path, command in walk_commands():
        place = f"{path} --help"
        for text in (command.help, command.short_help, command.epilog):
            for paragraph in re.split(r"\n\s*\n", text or ""):
                if not paragraph.startswith(("Example", "\b")):
                    yield from sentences(place, paragraph)
        for parameter in command.params:
            if isinstance(parameter, click.Option) and not parameter.hidden:
                yield from sentences(
                    f"{place} {parameter.opts[0]}", parameter.help or ""
                )


def of_docstrings() -> list[Sentence]:
    """The sentences of the docstrings of modules and of public classes and functions."""
    return _of_package()[0]


def of_errors() -> list[Sentence]:
    """The messages of the errors that the package raises, with `x` for what is filled in."""
    return _of_package()[1]


@cache
def _of_package() -> tuple[list[Sentence], list[Sentence]]:
    """The sentences of docstrings and of errors: each module is parsed once, and no tree is kept."""
    docstrings: list[Sentence] = []
    errors: list[Sentence] = []
    for path in sorted(PACKAGE.rglob("*.py")):
        module, place = ast.parse(path.read_bytes()), str(path.relative_to(PROJECT))
        docstrings += _docstrings(place, module)
        for node in _raises(module):
            for argument in node.args[:1]:
                if text := _literal(argument):
                    errors += sentences(f"{place}:{node.lineno}", text)
    return docstrings, errors


def _docstrings(
    place: str, node: ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
) -> Iterator[Sentence]:
    for paragraph in re.split(r"\n\s*\n", ast.get_docstring(node) or ""):
        if "\n    " not in paragraph and not paragraph.startswith(("- ", "| ")):
            yield from sentences(place, paragraph)
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return
    for child in node.body:
        if isinstance(
            child, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
        ) and not child.name.startswith("_"):
            yield from _docstrings(f"{place}:{child.lineno}", child)


def _raises(node: ast.AST) -> Iterator[ast.Call]:
    """The calls in the `raise` statements below a node; expressions are not searched."""
    for field in ("body", "orelse", "finalbody", "handlers", "cases"):
        children = getattr(node, field, None)
        for child in children if isinstance(children, list) else []:
            if isinstance(child, ast.Raise) and isinstance(child.exc, ast.Call):
                yield child.exc
            yield from _raises(child)


def _literal(node: ast.expr) -> str:
    """The text of a literal or of an f-string; empty for another expression."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else ""
    if isinstance(node, ast.JoinedStr):
        return "".join(_literal(part) or "`x`" for part in node.values)
    return ""


SURFACES: dict[str, Callable[[], Iterable[Sentence]]] = {
    "pages": lambda: (
        sentence
        for page in (*PAGES, PROJECT / "CHANGELOG.md")
        for sentence in of_page(page)
    ),
    "config": lambda: (
        sentence
        for file in sorted((PROJECT / "config").rglob("*.y*ml"))
        for sentence in of_comments(file)
    ),
    "targets": of_targets,
    "help": of_help,
    "errors": of_errors,
    "docstrings": of_docstrings,
}


@pytest.mark.parametrize("surface", SURFACES)
def test_prose_keeps_to_the_rules(surface: str) -> None:
    faults: dict[str, list[str]] = {}
    for sentence in SURFACES[surface]():
        for rule, hint in sentence.faults():
            faults.setdefault(rule, []).append(
                f"{sentence.place}: {hint}\n    {sentence.text}"
            )

    limits = Counter(RULES["limits"].get(surface, {}))
    over = {rule: found for rule, found in faults.items() if len(found) > limits[rule]}

    assert not over, "\n".join(
        f"{len(found)} of rule {rule!r}, at most {limits[rule]}:\n" + "\n".join(found)
        for rule, found in over.items()
    )


def test_pages_for_users_break_no_rule() -> None:
    excepted = {PROJECT / name for name in RULES["plain"]["excepted"]}

    faults = [
        f"{sentence.place}: {rule}, {hint}: {sentence.text}"
        for page in PAGES
        if page not in excepted
        for sentence in of_page(page)
        for rule, hint in sentence.faults()
    ]

    assert not faults, "\n".join(faults)


@each_case(
    "text, rules",
    [
        ("The daemon stores each memory on disk.", ""),
        ("What was forgotten is deleted.", "opener subject"),
        ("What is captured?", ""),
        ("The agent is told about it.", "word"),
        ("Call `told` and [read on](told.md).", ""),
        ("Stop it; wait; start it again.", "semicolons"),
        ("It takes those of which one fails.", "pronouns"),
        (f"The daemon {'really ' * 33}stops.", "long"),
        (f"The daemon {'really ' * 32}stops.", ""),
        ("It ends. So it is.", "opener"),
    ],
)
def test_a_rule_finds_what_it_is_for(text: str, rules: str) -> None:
    found = {rule for each in sentences("here", text) for rule, _ in each.faults()}

    assert " ".join(sorted(found)) == rules
