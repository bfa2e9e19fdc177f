"""The client finds its daemon by the settings, also by those that have a mistake."""

from __future__ import annotations

from pathlib import Path

import pytest

from mnemosyned.cli.calls import configured_socket


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CONFIGURATION_DIRECTORY", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("MNEMOSYNE_SOCKET", raising=False)
    return tmp_path / "mnemosyned.yaml"


@pytest.mark.parametrize(
    ("text", "socket"),
    [
        ("socket: /run/m.sock\n", "/run/m.sock"),
        ("wm_max: 5\nsocket: '/run/m.sock'  # ours\n", "/run/m.sock"),
        ("socket: ~/m.sock\n", "HOME/m.sock"),
        ("socket: null   # the usual one\n", None),
        ("socket:\n", None),
        ("llm:\n  model_path: socket\n", None),
        ("", None),
    ],
)
def test_the_settings_name_the_socket(
    settings: Path, text: str, socket: str | None
) -> None:
    settings.write_text(text)

    found = configured_socket()

    assert found == (socket and socket.replace("HOME", str(settings.parent)))


@pytest.mark.parametrize("mistake", ["wm_maxx: 5", "wm_max: [", "wm_max: much"])
def test_a_mistake_in_the_settings_is_a_remark(
    settings: Path, capsys: pytest.CaptureFixture[str], mistake: str
) -> None:
    settings.write_text(f'socket: "/run/m.sock"  # ours\n{mistake}\n')

    assert configured_socket() == "/run/m.sock"
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("mnem: a mistake in the settings was ignored: ")
    assert len(err.splitlines()) == 1


def test_settings_that_cannot_be_read_are_a_remark(
    settings: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    settings.write_bytes(b"socket: \xff\n")

    assert configured_socket() is None
    assert "cannot be read" in capsys.readouterr().err
