"""`mnem model`: what it fetches, checks, chooses and removes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from click.testing import CliRunner
from support.model_source import CONTENT, DIGEST, Source, pull, shelf, source

from mnemosyned.cli.commands.model import model as command
from mnemosyned.errors import InvalidRequest
from mnemosyned.models.catalog import CATALOG, ModelStore

__all__ = ["shelf", "source"]


def run(*words: str) -> tuple[int, str]:
    done = CliRunner().invoke(command, words, standalone_mode=False)
    if done.exception:
        raise done.exception
    return int(done.return_value or 0), done.output


def test_a_part_is_shown_and_can_be_removed(shelf: ModelStore) -> None:
    shelf.folder.mkdir(parents=True)
    (shelf.folder / "tiny.gguf.part").write_bytes(CONTENT[:1_000])

    _, listed = run("list")
    run("remove", "tiny", "--yes")

    assert re.search(r"tiny\.gguf +1,000 bytes +in part", listed)
    assert not list(shelf.folder.iterdir())


def test_a_model_is_pulled_verified_used_and_removed(
    shelf: ModelStore, source: Source
) -> None:
    _, pulled = run("pull", source.url)
    _, listed = run("list")
    whole, _ = run("verify", "tiny")
    _, used = run("use", "tiny")
    _, listed_in_use = run("list")
    with pytest.raises(InvalidRequest, match="in use"):
        run("remove", "tiny", "--yes")
    run("use", "none")
    run("remove", "tiny", "--yes")

    assert DIGEST in pulled
    assert "tiny.gguf" in listed
    assert whole == 0
    assert str(shelf.folder / "tiny.gguf") in used
    assert "in use" in listed_in_use
    assert not list(shelf.folder.iterdir())


def test_a_model_that_changed_on_disk_does_not_verify(
    shelf: ModelStore, source: Source
) -> None:
    path, _ = pull(shelf, source.url)
    path.write_bytes(CONTENT[:-1] + b"!")

    code, said = run("verify", "tiny")

    assert code == 1
    assert "instead of" in said


def test_nothing_is_fetched_to_say_how_it_is_done_by_hand(shelf: ModelStore) -> None:
    _, said = run("pull", "tinyllama", "--by-hand")

    assert CATALOG["tinyllama"].url in said
    assert "668,788,096" in said
    assert str(shelf.folder) in said
    assert not shelf.folder.exists()


def test_a_file_that_is_no_model_cannot_be_used(
    shelf: ModelStore, tmp_path: Path
) -> None:
    (tmp_path / "notes.txt").write_text("notes")

    with pytest.raises(InvalidRequest, match="GGUF"):
        run("use", str(tmp_path / "notes.txt"))
    with pytest.raises(InvalidRequest, match="mnem model list"):
        run("use", "absent")

    assert not list(shelf)
