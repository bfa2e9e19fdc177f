"""What Python 3.13.0 misreads: it joins a comprehension's variable with one of an outer function."""

from __future__ import annotations

import symtable
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import mnemosyned

PACKAGE = Path(mnemosyned.__file__).parent
COMPREHENSIONS = {"listcomp", "setcomp", "dictcomp"}

pytestmark = pytest.mark.skipif(
    sys.version_info >= (3, 12), reason="newer symbol tables have no comprehensions"
)


def hidden_names(table: symtable.SymbolTable) -> Iterator[str]:
    """Names that a function has of an outer one, and that a comprehension in it uses anew."""
    for inner in table.get_children():
        if table.get_type() == "function" and inner.get_name() in COMPREHENSIONS:
            own = {name.get_name() for name in inner.get_symbols() if name.is_local()}
            outer = {name.get_name() for name in table.get_symbols() if name.is_free()}
            yield from own & outer
        yield from hidden_names(inner)


def test_a_hidden_name_is_known() -> None:
    source = "def f(a):\n def g(b):\n  return a, [a for a in b]\n return g"

    assert [*hidden_names(symtable.symtable(source, "-", "exec"))] == ["a"]


def test_no_comprehension_hides_a_name_of_an_outer_function() -> None:
    found = {
        str(path.relative_to(PACKAGE)): names
        for path in PACKAGE.rglob("*.py")
        if (
            names := [
                *hidden_names(symtable.symtable(path.read_text("utf-8"), "-", "exec"))
            ]
        )
    }

    assert found == {}
