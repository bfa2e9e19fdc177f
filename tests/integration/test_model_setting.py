"""One setting written into the user's file, and every other word of it left alone."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from mnemosyned.cli.settings_file import with_setting, write_settings
from mnemosyned.config import load_config
from mnemosyned.errors import ConfigInvalid
from mnemosyned.paths import shipped


@pytest.mark.parametrize(
    "text",
    [
        "",
        "# only a comment",
        "wm_max: 5\n",
        "llm:\n",
        "llm:   # a model\n  threads: 2\n",
        "llm:\n    # none yet\n    threads: 2\nwm_max: 5\n",
        "llm:\n  model_path: null        # a file\n  threads: 2\n",
        "llm:\n  model_path: ~/a b.gguf\n",
        "llm:\n  model_path:\n",
        "llm:\n  model_path: '/it''s # here'   # a file",
        'llm:\n  model_path: "/a \\" # b"\n',
        "llm:\r\n  threads: 2\r\nwm_max: 5\r\n",
    ],
)
def test_a_setting_is_written_and_every_other_word_stays(
    tmp_path: Path, text: str
) -> None:
    file = tmp_path / "mnemosyned.yaml"
    file.write_bytes(text.encode())
    before = load_config(file, environ={})

    write_settings(file, {"llm.model_path": "/models/ü #1.gguf"})

    after = load_config(file, environ={})
    assert after.llm.model_path == "/models/ü #1.gguf"
    assert (after.wm_max, after.llm.threads) == (before.wm_max, before.llm.threads)
    comments = [comment for comment in re.findall(r"# \w+( \w+)*", text) if comment]
    assert all(comment in file.read_text("utf-8") for comment in comments)
    assert [kept.name for kept in tmp_path.iterdir()] == ["mnemosyned.yaml"]


def test_a_setting_changes_one_line_of_the_shipped_file() -> None:
    before = (shipped("config") / "mnemosyned.yaml").read_text("utf-8")

    after = with_setting(before, "llm.model_path", "/m.gguf")

    pairs = zip(before.splitlines(), after.splitlines(), strict=True)
    changed = [(old, new) for old, new in pairs if old != new]
    assert len(changed) == 1
    assert '"/m.gguf"' in changed[0][1]
    assert changed[0][0].partition("#")[2] == changed[0][1].partition("#")[2]


@pytest.mark.parametrize(
    "text",
    [
        "llm: {threads: 2}\n",
        "llm:\n  endpoint: http://127.0.0.1:1/v1\n",
        "colour: red\n",
    ],
)
def test_a_file_that_would_not_be_valid_stays_as_it_is(
    tmp_path: Path, text: str
) -> None:
    file = tmp_path / "mnemosyned.yaml"
    file.write_text(text, "utf-8")

    with pytest.raises(ConfigInvalid):
        write_settings(file, {"llm.model_path": "/m.gguf"})

    assert file.read_text("utf-8") == text


def test_a_linked_file_stays_a_link_and_keeps_its_mode(tmp_path: Path) -> None:
    real, link = tmp_path / "real.yaml", tmp_path / "mnemosyned.yaml"
    real.write_text("wm_max: 5\n", "utf-8")
    real.chmod(0o640)
    link.symlink_to(real)

    write_settings(link, {"llm.model_path": "/m.gguf"})

    assert link.is_symlink()
    assert load_config(real, environ={}).llm.model_path == "/m.gguf"
    assert real.stat().st_mode & 0o777 == 0o640
