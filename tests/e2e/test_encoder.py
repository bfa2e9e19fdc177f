"""The built-in encoder in a daemon as it comes: by meaning, across languages, without a step."""

from __future__ import annotations

from pathlib import Path

import pytest
from e2e.daemons import eventually, running

pytestmark = pytest.mark.e2e
NUMPY = "numpy/_core"


def loads_numpy(process: int) -> bool:
    return NUMPY in Path(f"/proc/{process}/maps").read_text("utf-8")


@pytest.mark.thorough
def test_a_daemon_finds_by_meaning_without_a_step(tmp_path: Path) -> None:
    with running(tmp_path, MNEMOSYNE_EMBEDDING_ENCODER=None) as daemon:
        daemon.post(
            "remember", content="We moved the release to Thursday", id="release"
        )
        daemon.post("remember", content="The cat sleeps on the sofa", id="cat")

        def is_embedded() -> bool:
            return b"2 of 2 memories embedded" in daemon.mnem("status").stdout

        eventually(is_embedded, "both memories are embedded", timeout_s=120)
        answers = [
            daemon.mnem("recall", question, "--json").stdout
            for question in (
                "Auf welchen Tag wurde die Veröffentlichung verschoben?",
                "где спит кошка?",
            )
        ]
        assert daemon.stop() == 0

    assert b'"release"' in answers[0]
    assert b'"cat"' in answers[1]
    cached = [file.name for file in (tmp_path / ".cache" / "mnemosyned").iterdir()]
    assert len(cached) == 2


def test_a_daemon_without_the_encoder_loads_none_of_it(tmp_path: Path) -> None:
    with running(tmp_path, anew=True) as daemon:
        daemon.post("remember", content="We moved the release to Thursday")
        status = daemon.mnem("status").stdout
        recalled = daemon.mnem("recall", "release").stdout

        assert b"recall goes by words alone" in status
        assert b"by words alone" not in recalled
        assert not loads_numpy(daemon.process.pid)
    assert not (tmp_path / ".cache").exists()
