"""Every SQL text of the store names the owner of every table in it."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest
from support.postgres import rows

import mnemosyned
from mnemosyned.storage import common, postgres

pytestmark = pytest.mark.postgres
ROOT = Path(mnemosyned.__file__).parents[1]
FOLDERS = [Path(package.__path__[0]) for package in (common, postgres)]
STATEMENT = re.compile(r"\b(SELECT|INSERT INTO|UPDATE|DELETE FROM)\b")
REFERENCE = re.compile(
    r"\b(FROM|JOIN|INTO|UPDATE|USING)\s+(?:ONLY\s+)?\"?([a-z_]+|\{\w+\}\w*)\"?"
    r"(?:\s+AS\s+([a-z_]+|(?:[a-z_]*\{\w+\})+))?"
)
DEPTH_MAX = 3
ABOUT_ALL = {
    "postgres/schema.py": ("ORDER BY owner, seq LIMIT %s",),
    "postgres/administration.py": ("GROUP BY owner",),
    "postgres/store.py": ("SELECT EXISTS (SELECT 1 FROM owner WHERE owner <>",),
    "postgres/forgetting.py": ("FROM scrub_due GROUP BY owner",),
    "postgres/session.py": ("FROM {function}(",),
}
"""What is asked of all owners: by whoever runs the server, by an upgrade of their rows, and of functions, which
hold what they answer to an owner or to an administrator themselves."""


def sources() -> Iterator[tuple[Path, ModuleType]]:
    for path in sorted(path for folder in FOLDERS for path in folder.rglob("*.py")):
        name = ".".join(path.relative_to(ROOT).with_suffix("").parts)
        yield path, import_module(name)


def texts(path: Path, module: ModuleType) -> Iterator[tuple[int, str]]:
    """The texts of a module; what is put into them stands there if it has a name."""
    tree = ast.parse(path.read_text("utf-8"))
    resolver = Resolver(module, tree)
    inner = {
        id(part)
        for node in ast.walk(tree)
        if isinstance(node, ast.JoinedStr | ast.BinOp)
        for part in ast.walk(node)
        if part is not node
    }
    for node in ast.walk(tree):
        if id(node) in inner or not isinstance(
            node, ast.Constant | ast.JoinedStr | ast.BinOp
        ):
            continue
        yield node.lineno, resolver.text_of(node)


class Resolver:
    """Texts of a module with those put into them that have a name, and only one value."""

    def __init__(self, module: ModuleType, tree: ast.Module) -> None:
        assigned = [
            (node.targets[0].id, node.value)
            for node in ast.walk(tree)
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
        ]
        times = Counter(name for name, _ in assigned)
        self._local = {name: value for name, value in assigned if times[name] == 1}
        self._module = module

    def text_of(self, node: ast.expr, depth: int = 0) -> str:
        match node:
            case ast.Constant():
                return str(node.value)
            case ast.JoinedStr():
                return "".join(self.text_of(part, depth) for part in node.values)
            case ast.BinOp():
                return self.text_of(node.left, depth) + self.text_of(node.right, depth)
            case ast.FormattedValue(value=ast.Name(id=name)):
                return self._named(name, depth)
        return "{…}"

    def _named(self, name: str, depth: int) -> str:
        constant = getattr(self._module, name, None)
        if isinstance(constant, str):
            return constant
        value = self._local.get(name)
        if isinstance(value, ast.Constant | ast.JoinedStr) and depth < DEPTH_MAX:
            return self.text_of(value, depth + 1)
        return f"{{{name}}}"


def unheld(text: str, tables: set[str]) -> list[str]:
    missing: list[str] = []
    bare = len(re.findall(r"(?<![\w.])(?:\{tables?\}\.)?owner = ", text))
    for verb, table, alias in REFERENCE.findall(text):
        if table not in tables and not table.startswith("{"):
            continue
        held: object
        if verb == "INTO":
            held = re.search(rf"INTO {re.escape(table)}( AS \w+)? \(owner\b", text)
        elif alias:
            name = re.escape(alias)
            held = re.search(rf"(?<!\w){name}(\.owner\b| ON false\b)", text)
        else:
            bare -= 1
            held = bare >= 0
        if not held:
            missing.append(f"{verb} {table} {alias}".strip())
    return missing


def compares_no_owner(text: str, tables: set[str]) -> bool:
    """Whether a whole statement joins owners to each other, and none to the one who asks."""
    named = any(table in tables for _, table, _ in REFERENCE.findall(text))
    is_whole = "{" not in text and not text.startswith("INSERT")
    return named and is_whole and "%(owner)s" not in text


def tables_of(dsn: str) -> set[str]:
    found = rows(
        dsn,
        "SELECT c.relname FROM pg_class AS c JOIN pg_attribute AS a "
        "ON a.attrelid = c.oid AND a.attname = 'owner' "
        "WHERE c.relkind IN ('r', 'v') AND c.relnamespace = 'public'::regnamespace",
    )
    return {name for (name,) in found}


def statements() -> Iterator[tuple[str, str]]:
    """The place and text of each statement that is about one owner."""
    for path, module in sources():
        name = f"{path.parent.name}/{path.name}"
        for line, text in texts(path, module):
            is_statement = STATEMENT.search(text) and REFERENCE.search(text)
            if is_statement and not any(
                known in text for known in ABOUT_ALL.get(name, ())
            ):
                yield f"{name}:{line}", text


def test_every_statement_names_the_owner_of_every_table(dsn: str) -> None:
    tables, checked = tables_of(dsn), list(statements())

    assert "memory_index" in tables
    assert len(checked) > 150
    assert [
        f"{place}: {each}" for place, text in checked for each in unheld(text, tables)
    ] == []
    assert [place for place, text in checked if compares_no_owner(text, tables)] == []


@pytest.mark.parametrize(
    ("text", "missing"),
    [
        ("SELECT 1 FROM memory WHERE owner = %(owner)s", []),
        ("SELECT 1 FROM memory WHERE id = 1", ["FROM memory"]),
        (
            "SELECT 1 FROM memory AS m JOIN fresh AS f ON f.seq = m.seq WHERE m.owner = 1",
            ["JOIN fresh f"],
        ),
        ("SELECT 1 FROM memory AS m JOIN fresh AS f ON f.owner = m.owner", []),
        (
            "DELETE FROM tag WHERE owner = 1 AND seq IN (SELECT seq FROM memory)",
            ["FROM memory"],
        ),
        ("INSERT INTO tag (owner, name) VALUES (1, 2)", []),
        ("INSERT INTO tag (name) VALUES (2)", ["INTO tag"]),
        ("UPDATE tag SET name = 1", ["UPDATE tag"]),
        ("SELECT 1 FROM pg_class", []),
    ],
)
def test_a_table_without_an_owner_is_noticed(text: str, missing: list[str]) -> None:
    assert unheld(text, {"memory", "fresh", "tag"}) == missing


BY_ANOTHER = re.compile(r"\b(WHERE|AND) (\w+)\.owner = [a-z]\w*\.owner\b")
"""A subquery that has its owner from the query around it: no cluster can tell its node then."""
BY_LIMITED = re.compile(
    r"LIMIT %\(\w+\)s\) AS (\w+) .*\.owner = \1\.owner\b", re.DOTALL
)
"""A join that has its owner from rows within a limit, out of which no planner takes it."""
OF_NOTHING = re.compile(
    r"^INSERT INTO (?!.* AS o\b)(?!.*\bJOIN memory\b).*\bunnest\(", re.DOTALL
)
"""Rows of arrays alone: a cluster would store them by way of the coordinator."""


def test_every_statement_can_be_handed_to_the_node_of_its_owner() -> None:
    shapes = (BY_ANOTHER, BY_LIMITED, OF_NOTHING)

    assert [
        f"{place}: {shape.pattern}"
        for place, text in statements()
        for shape in shapes
        if shape.search(text)
    ] == []


def test_shapes_that_no_node_can_run_alone_are_noticed() -> None:
    assert BY_ANOTHER.search("(SELECT 1 FROM tag AS t WHERE t.owner = m.owner)")
    assert BY_LIMITED.search(
        "FROM (SELECT owner FROM fresh LIMIT %(most)s) AS f JOIN tag AS t ON t.owner = f.owner"
    )
    assert OF_NOTHING.search("INSERT INTO tag (owner) SELECT %(owner)s, unnest(%(a)s)")
    assert not OF_NOTHING.search(
        "INSERT INTO tag (owner) SELECT o.owner FROM owner AS o CROSS JOIN unnest(%(a)s)"
    )
