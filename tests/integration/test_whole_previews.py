"""The shell joins the pages of a long preview."""

from pathlib import Path

import pytest

from mnemosyned import Memory
from mnemosyned.cli.verb_command import join_preview_pages
from mnemosyned.service import selection
from mnemosyned.verbs.memories import Remember
from mnemosyned.verbs.retention import Forget


def test_a_preview_of_several_pages_is_shown_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(selection, "LISTED_MAX", 4)
    with Memory(tmp_path / "memory.db") as memory:
        memory.remember_many(
            [Remember(f"ibex {number}", id=f"m{number}") for number in range(10)]
        )
        request = Forget(query="ibex", dry_run=True)
        first = memory.call(request)
        memory.remember("ibex too late", id="late")

        joined = join_preview_pages(memory, request, first)  # type: ignore[arg-type]

    assert (len(first.lines), first.further) == (4, 6)
    assert [line.id for line in joined.lines] == [f"m{n}" for n in range(10)]
    assert joined.further == 0
